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
    fix_close(w1);
    ck_assert_str_eq(happened(), "node.lost w1");
    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_EVENT)->event->text, "connection closed by peer");
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
    ck_assert_str_eq(happened(), "node.registered w2, job.placed 1");
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
    sched_refuse_writes(fix.s, "the disk is full");
    fix_time();
    fix_register("w0", 1);
    ck_assert_str_eq(happened(), "");
    sched_refuse_writes(fix.s, "");
    fix_register("w1", 1);
    ck_assert_str_eq(happened(), "node.registered w1");
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
    suite_add_tcase(s, t);
    return test_run(s);
}
