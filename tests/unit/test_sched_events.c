/* test_sched_events.c - what happened: one row for each change of a state, and none without */
#include "tests/unit/sched_fixture.h"

static void begin(void)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_meta(fix.s, "next_event", 41, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
}

/* Kinds of the last tick in their order, and what belongs to each: "job.placed 1, ..." */
static const char *happened(void)
{
    static char text[1024];
    static uint64_t last = 40;
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind != SCHED_DO_PUT_EVENT) {
            continue;
        }
        const struct sched_event_row *row = effects[i].event;
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s %s", used > 0 ? ", " : "", row->kind,
                 row->node[0] != '\0' ? row->node : "");
        used = strlen(text);
        if (row->job != 0) {
            snprintf(text + used, sizeof(text) - used, "%llu", (unsigned long long)row->job);
        }
        ck_assert_uint_gt(row->seq, last); /* goes on from what was loaded */
        ck_assert_int_eq(row->at_ms, fix.now.wall_ms);
        last = row->seq;
    }
    return text;
}

START_TEST(each_change_of_a_state_is_one_event)
{
    begin();
    fix_time();
    ck_assert_str_eq(happened(), "scheduler.started ");
    uint64_t w0 = fix_register("w0", 1);
    ck_assert_str_eq(happened(), "node.registered w0");
    uint64_t w1 = fix_register("w1", 2);
    fix_submit(2, 0);
    ck_assert_str_eq(happened(), "job.submitted 1, job.placed 1");
    fix_ready(w0, 1, 1, 0);
    ck_assert_str_eq(happened(), "");
    fix_beat(w0);
    ck_assert_str_eq(happened(), "");
    fix_ready(w1, 1, 1, 1);
    ck_assert_str_eq(happened(), "job.started 1");
    uint64_t alice = fix_open(MS_ROLE_ADMIN, "alice");
    fix_cancel(alice, 1, 1);
    ck_assert_str_eq(happened(), "job.cancel_asked 1");
    ck_assert_ptr_nonnull(strstr(fix_effect(SCHED_DO_PUT_EVENT)->event->text, "cancelled by"));
    fix_cancel(alice, 1, 0);
    ck_assert_str_eq(happened(), "job.cancelled 1");
    fix_stopped(w1, 1, 1, 1);
    ck_assert_str_eq(happened(), "");
    fix.now.mono_ms += 84;
    fix.now.wall_ms += 84;
    fix_close(w1);
    ck_assert_str_eq(happened(), "node.lost w1");
    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_EVENT)->event->text,
                     "connection closed by peer; last heard of 84 ms before");
    Ms__Leave leave = MS__LEAVE__INIT;
    fix_say(w0, MS_MSG_LEAVE, &leave.base);
    ck_assert_str_eq(happened(), "node.left w0");
}
END_TEST

START_TEST(a_job_that_loses_a_node_before_its_start_is_requeued_and_a_failure_is_told)
{
    uint64_t w[3];
    begin();
    w[0] = fix_register("w0", 1);
    w[1] = fix_register("w1", 2);
    fix_submit(2, 0);
    fix_close(w[1]);
    ck_assert_str_eq(happened(), "node.lost w1, job.requeued 1");
    fix_stopped(w[0], 1, 1, 0);
    w[2] = fix_register("w2", 3);
    ck_assert_str_eq(happened(), "node.registered w2");
    fix_pass(MS_HOST_PAUSE_MS);
    ck_assert_str_eq(happened(), "job.placed 1");
    fix_done(w[2], 1, 2, 0, MS_E_IO, "no space");
    fix_done(w[2], 1, 2, 1, MS_E_IO, "no space");
    ck_assert_str_eq(happened(), "job.failed 1");
    ck_assert_ptr_nonnull(strstr(fix_effect(SCHED_DO_PUT_EVENT)->event->text, "no space"));
}
END_TEST

START_TEST(nothing_is_told_without_a_database_or_while_its_disk_is_full)
{
    fix_standing();
    fix_register("w0", 1);
    ck_assert_str_eq(happened(), "");
    begin();
    sched_refuse_writes(fix.s, "the disk is full", 1);
    fix_time();
    fix_register("w0", 1);
    ck_assert_str_eq(happened(), "");
    sched_refuse_writes(fix.s, "", 1);
    fix_register("w1", 1);
    ck_assert_str_eq(happened(), "node.registered w1");
}
END_TEST

/* ---- who asks -----------------------------------------------------------------------------------
 */

static void ask(uint64_t conn, uint64_t after, uint64_t job, int wait)
{
    Ms__EventQuery msg = MS__EVENT_QUERY__INIT;
    msg.after = after;
    msg.job = job;
    msg.wait = wait;
    fix_say(conn, MS_MSG_EVENT_QUERY, &msg.base);
}

/* Answers of the last tick that the database completes, and the last of them. */
static size_t reads(const struct sched_effect **ret_last)
{
    size_t n = 0;
    size_t found = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_READ) {
            *ret_last = &effects[i];
            found++;
        }
    }
    return found;
}

START_TEST(what_is_there_is_answered_from_the_database_and_what_is_not_at_once)
{
    const struct sched_effect *effect = NULL;
    begin(); /* 40 were loaded, and 41 says that it started */
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    ask(alice, 7, 3, 1);

    ck_assert_uint_eq(reads(&effect), 1);
    ck_assert_uint_eq(effect->conn, alice);
    ck_assert_int_eq(effect->read->kind, SCHED_READ_EVENTS);
    ck_assert_uint_eq(effect->read->frame_id, fix.frame);
    ck_assert_uint_eq(effect->read->after, 7);
    ck_assert_uint_eq(effect->read->last, 41);
    ck_assert_uint_eq(effect->read->job, 3);
    ck_assert_uint_eq(effect->read->limit, MS_EVENTS_PAGE);
    for (uint64_t after = 41; after < 43; after++) { /* at the end, and of another database */
        ask(alice, after, 0, after > 41);
        const Ms__EventList *list = fix_heard(alice, MS_MSG_EVENT_LIST);
        ck_assert_ptr_nonnull(list);
        ck_assert_uint_eq(list->n_events, 0);
        ck_assert_uint_eq(list->last, 41);
        ck_assert_uint_eq(list->at, 41);
        ck_assert_uint_eq(reads(&effect), 0);
    }
    ck_assert_int_eq(sched_conn_kind(fix.s, alice), SCHED_CONN_IDLE);
}
END_TEST

START_TEST(a_follower_is_answered_with_the_first_event_that_it_asks_for)
{
    const struct sched_effect *effect = NULL;
    begin();
    fix_time();
    uint64_t all = fix_open(MS_ROLE_USER, "alice");
    uint64_t some = fix_open(MS_ROLE_USER, "bob");
    ask(all, 41, 0, 1);
    uint32_t frame = fix.frame;
    ask(some, 41, 2, 1);
    ck_assert_uint_eq(reads(&effect), 0);
    ck_assert_uint_eq(fix.n_answers, 0);
    ck_assert_int_eq(sched_conn_kind(fix.s, all), SCHED_CONN_BUSY);

    fix_submit(1, 0);
    ck_assert_uint_eq(reads(&effect), 1);
    ck_assert_uint_eq(effect->conn, all);
    ck_assert_uint_eq(effect->read->frame_id, frame);
    ck_assert_uint_eq(effect->read->after, 41);
    ck_assert_uint_eq(effect->read->last, 42);
    ck_assert_int_eq(sched_conn_kind(fix.s, all), SCHED_CONN_IDLE);
    ck_assert_int_eq(sched_conn_kind(fix.s, some), SCHED_CONN_BUSY);

    fix_submit(1, 0);
    ck_assert_uint_eq(reads(&effect), 1);
    ck_assert_uint_eq(effect->conn, some);
    ck_assert_uint_eq(effect->read->job, 2);
    ck_assert_uint_eq(effect->read->last, 43);
}
END_TEST

START_TEST(a_follower_of_a_node_hears_of_no_other)
{
    const struct sched_effect *effect = NULL;
    Ms__EventQuery msg = MS__EVENT_QUERY__INIT;
    begin();
    fix_time();
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    msg.after = 41;
    msg.node_id = (char *)"w1";
    msg.wait = 1;
    msg.limit = 3;
    fix_say(alice, MS_MSG_EVENT_QUERY, &msg.base);

    fix_register("w0", 1);
    ck_assert_uint_eq(reads(&effect), 0);
    fix_register("w1", 2);

    ck_assert_uint_eq(reads(&effect), 1);
    ck_assert_str_eq(effect->read->node_id, "w1");
    ck_assert_uint_eq(effect->read->limit, 3);
}
END_TEST

START_TEST(a_connection_has_one_question_about_events_and_takes_it_with_it)
{
    const struct sched_effect *effect = NULL;
    begin();
    fix_time();
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    ask(alice, 41, 0, 1);
    ask(alice, 41, 0, 1);
    fix_refused(alice, MS_E_FULL, "waits for events already");
    fix_close(alice);
    fix_register("w0", 1);
    ck_assert_uint_eq(reads(&effect), 0);
    Ms__EventQuery msg = MS__EVENT_QUERY__INIT;
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    msg.before = 7;
    msg.wait = 1;
    fix_say(bob, MS_MSG_EVENT_QUERY, &msg.base);
    fix_refused(bob, MS_E_INVALID, "only newer ones");
    uint64_t worker = fix_open(MS_ROLE_WORKER, "h");
    ask(worker, 0, 0, 0);
    fix_refused(worker, MS_E_REFUSED, "EventQuery is not for a worker");
    fix_standing();
    bob = fix_open(MS_ROLE_USER, "bob");
    ask(bob, 0, 0, 0);
    fix_refused(bob, MS_E_UNSUPPORTED, "no database");
}
END_TEST

START_TEST(many_followers_are_answered_over_several_turns_and_none_is_forgotten)
{
    const struct sched_effect *effect = NULL;
    size_t answered = 0;
    unsigned turns = 0;
    begin();
    fix_time();
    for (int i = 0; i < 100; i++) {
        ask(fix_open(MS_ROLE_USER, "alice"), 41, 0, 1);
    }

    fix_register("w0", 1);
    answered = reads(&effect);
    ck_assert_uint_eq(answered, MS_EVENT_READS);
    while (sched_deadline(fix.s) <= fix.now.mono_ms && turns < 100) {
        fix_time();
        ck_assert_uint_le(reads(&effect), MS_EVENT_READS);
        answered += reads(&effect);
        turns++;
    }

    ck_assert_uint_eq(answered, 100);
    ck_assert_uint_le(turns, 4);
}
END_TEST

START_TEST(a_page_of_events_counts_as_what_its_asker_may_have_in_a_turn)
{
    begin();
    fix_time();
    ask(fix_open(MS_ROLE_USER, "alice"), 0, 0, 0);
    ck_assert_uint_ge(sched_tick_bytes(fix.s), MS_EVENTS_PAGE * 500);
}
END_TEST

/* Whoever follows knows numbers that a copy of the database does not: none is given again. */
START_TEST(numbers_jump_where_a_copy_of_the_database_is_taken_up)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.skip_ahead = 1000000;
    fix_create(&cfg);
    ck_ms_ok(sched_load_meta(fix.s, "next_event", 41, err));
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    size_t n = 0;
    uint64_t stored = 0;
    uint64_t last = 0;

    fix_time();

    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_PUT_EVENT) {
            ck_assert_uint_gt(effects[i].event->seq, 1000000 * MS_EVENTS_A_MS);
            last = effects[i].event->seq;
        } else if (effects[i].kind == SCHED_DO_PUT_META &&
                   strcmp(effects[i].meta_key, "next_event") == 0) {
            stored = effects[i].meta_value;
        }
    }
    ck_assert_uint_eq(last, 1000000 * MS_EVENTS_A_MS + 2);
    ck_assert_uint_eq(stored, last); /* also where the disk is full and no event can say so */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_events");
    TCase *t = tcase_create("events");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, each_change_of_a_state_is_one_event);
    tcase_add_test(t, a_job_that_loses_a_node_before_its_start_is_requeued_and_a_failure_is_told);
    tcase_add_test(t, nothing_is_told_without_a_database_or_while_its_disk_is_full);
    tcase_add_test(t, what_is_there_is_answered_from_the_database_and_what_is_not_at_once);
    tcase_add_test(t, a_follower_is_answered_with_the_first_event_that_it_asks_for);
    tcase_add_test(t, a_follower_of_a_node_hears_of_no_other);
    tcase_add_test(t, a_connection_has_one_question_about_events_and_takes_it_with_it);
    tcase_add_test(t, many_followers_are_answered_over_several_turns_and_none_is_forgotten);
    tcase_add_test(t, a_page_of_events_counts_as_what_its_asker_may_have_in_a_turn);
    tcase_add_test(t, numbers_jump_where_a_copy_of_the_database_is_taken_up);
    suite_add_tcase(s, t);
    return test_run(s);
}
