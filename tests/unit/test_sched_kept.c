/* test_sched_kept.c - events are bounded, and nobody pushes out those of somebody who has fewer */
#include "tests/unit/sched_fixture.h"

#include <time.h>

enum { NUMBERS_MAX = 4096 };

/* What the database would hold: by number. */
static struct {
    char kind[32], principal[MS_PRINCIPAL_MAX + 1], node[MS_NAME_MAX + 1];
    uint64_t job;
    int is_there;
} told[NUMBERS_MAX];

static uint64_t last;

static void take_told(void)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == SCHED_DO_PUT_EVENT) {
            const struct sched_event_row *row = effects[i].event;
            ck_assert_uint_lt(row->seq, NUMBERS_MAX);
            snprintf(told[row->seq].kind, sizeof(told[0].kind), "%s", row->kind);
            snprintf(told[row->seq].node, sizeof(told[0].node), "%s", row->node);
            snprintf(told[row->seq].principal, sizeof(told[0].principal), "%s", row->principal);
            told[row->seq].job = row->job;
            told[row->seq].is_there = 1;
            last = row->seq;
        } else if (effects[i].kind == SCHED_DO_DROP_EVENT) {
            ck_assert(told[effects[i].event_seq].is_there);
            told[effects[i].event_seq].is_there = 0;
        }
    }
}

static void begin(uint32_t kept)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.events_kept_max = kept;
    memset(told, 0, sizeof(told));
    last = 0;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    fix_time();
    take_told();
}

static size_t count(const char *principal)
{
    size_t n = 0;
    for (uint64_t seq = 1; seq <= last; seq++) {
        n += told[seq].is_there && strcmp(told[seq].principal, principal) == 0;
    }
    return n;
}

static void say(uint64_t conn, uint16_t type, const ProtobufCMessage *msg)
{
    fix_say(conn, type, msg);
    take_told();
}

/* Over its own certificate, and it leaves again: two events. */
static void come_and_go(const char *name, uint64_t incarnation)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, name);
    Ms__Register msg = fix_node(name, incarnation);
    Ms__Leave leave = MS__LEAVE__INIT;
    say(conn, MS_MSG_REGISTER, &msg.base);
    say(conn, MS_MSG_LEAVE, &leave.base);
}

/* Two events. */
static uint64_t submit_cancel(uint64_t conn)
{
    Ms__Submit msg = fix_job(1000);
    say(conn, MS_MSG_SUBMIT, &msg.base);
    uint64_t job = ((const Ms__Submitted *)fix_heard(conn, MS_MSG_SUBMITTED))->job;
    fix_cancel(conn, job, 0);
    take_told();
    return job;
}

START_TEST(an_event_counts_against_who_provoked_it)
{
    begin(100);
    ck_assert_str_eq(told[1].kind, "scheduler.started");
    ck_assert_str_eq(told[1].principal, "");
    come_and_go("h1", 1);
    ck_assert_str_eq(told[2].principal, "worker:h1");
    ck_assert_str_eq(told[3].kind, "node.left");
    ck_assert_str_eq(told[3].principal, "worker:h1");
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__Submit msg = fix_job(1000);
    say(conn, MS_MSG_SUBMIT, &msg.base);
    ck_assert_str_eq(told[4].principal, "user:bob");
    fix_cancel(fix_open(MS_ROLE_ADMIN, "root"), 1, 0); /* whoever cancels it */
    take_told();
    ck_assert_str_eq(told[5].kind, "job.cancelled");
    ck_assert_str_eq(told[5].principal, "user:bob");
    Ms__Register claims = fix_node("h2", 1);
    claims.job = 7;
    claims.generation = 9;
    say(fix_open(MS_ROLE_WORKER, "h2"), MS_MSG_REGISTER, &claims.base);
    ck_assert_str_eq(told[6].kind, "job.next_raised");
    ck_assert_str_eq(told[6].principal, "worker:h2");
    ck_assert_str_eq(told[7].kind, "generation.raised");
    ck_assert_str_eq(told[7].principal, "worker:h2");
}
END_TEST

START_TEST(one_worker_pushes_out_nobodys_events_but_its_own)
{
    begin(40);
    submit_cancel(fix_open(MS_ROLE_USER, "bob"));
    for (uint64_t i = 0; i < 5; i++) {
        come_and_go("honest", i + 1);
    }

    for (uint64_t i = 0; i < 200; i++) {
        come_and_go("evil", i + 1);
    }

    ck_assert_uint_eq(count("user:bob"), 2);
    ck_assert_uint_eq(count("worker:honest"), 10);
    ck_assert_uint_eq(count(""), 1);
    ck_assert_uint_eq(count("worker:evil"), 40 - 13);
    ck_assert(told[last].is_there); /* of its own the newest stay */
    ck_assert(told[last - 26].is_there);
    ck_assert(!told[last - 27].is_there);
}
END_TEST

START_TEST(one_user_pushes_out_nobodys_events_but_his_own)
{
    begin(40);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    submit_cancel(bob);
    submit_cancel(bob);
    come_and_go("honest", 1);

    for (int i = 0; i < 200; i++) {
        submit_cancel(alice);
    }

    ck_assert_uint_eq(count("user:bob"), 4);
    ck_assert_uint_eq(count("worker:honest"), 2);
    ck_assert_uint_eq(count("user:alice"), 40 - 7);
}
END_TEST

/* A large cluster whose hosts all come back, again and again, has no author who stands out. */
START_TEST(many_nodes_push_out_no_events_of_jobs)
{
    char name[32];
    begin(40);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    for (int i = 0; i < 9; i++) {
        submit_cancel(bob);
    }

    for (uint64_t i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "h%d", (int)(i % 5));
        come_and_go(name, i + 1);
    }

    ck_assert_uint_eq(count("user:bob"), 18);
    ck_assert_uint_eq(count(""), 1);
    for (int i = 0; i < 5; i++) { /* as much of each: four or five */
        snprintf(name, sizeof(name), "worker:h%d", i);
        ck_assert_uint_ge(count(name), 4);
    }
    for (uint64_t seq = last - 19; seq <= last; seq++) { /* and what is newest */
        ck_assert(told[seq].is_there);
    }
}
END_TEST

/* The more there were of jobs before: they make way, down to a half. */
START_TEST(nodes_and_jobs_have_a_half_each_where_both_need_it)
{
    char name[16];
    begin(40);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    for (int i = 0; i < 30; i++) {
        submit_cancel(bob);
    }
    ck_assert_uint_eq(count("user:bob"), 39);

    for (uint64_t i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "h%d", (int)i);
        come_and_go(name, i + 1);
    }

    ck_assert_uint_eq(count("user:bob"), 20);
}
END_TEST

START_TEST(a_restart_knows_whose_events_it_has)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.events_kept_max = 10;
    begin(10);
    fix_create(&cfg);
    for (uint64_t seq = 11; seq <= 20; seq++) {
        told[seq].is_there = 1;
        snprintf(told[seq].principal, sizeof(told[0].principal), "%s",
                 seq <= 13 ? "user:bob" : "user:alice");
        struct sched_event_row row = fix_event(seq, "job.submitted", seq, told[seq].principal);
        ck_ms_ok(sched_load_event(fix.s, &row, err));
    }
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    fix_time(); /* 21: it started */
    take_told();
    ck_assert_uint_eq(last, 21);
    submit_cancel(fix_open(MS_ROLE_USER, "carol"));

    ck_assert_uint_eq(count("user:bob"), 3);
    ck_assert_uint_eq(count("user:alice"), 4);
    ck_assert_uint_eq(count("user:carol"), 2);
    ck_assert(!told[14].is_there);
    ck_assert(!told[16].is_there);
    ck_assert(told[17].is_there);
    struct sched_event_row row = fix_event(MS_EVENTS_NUMBER_MAX, "scheduler.started", 0, "");
    ck_ms_fails(sched_load_event(fix.s, &row, err), MS_E_CONFIG, "next_event");
}
END_TEST

/* Events tell nobody that something was acknowledged: dropping one is no tick either. */
START_TEST(an_event_that_goes_is_no_tick)
{
    begin(2);
    come_and_go("h1", 1);
    ck_assert_int_eq(fix_effects(SCHED_DO_PUT_META), 0);
    ck_assert_int_eq(fix_effects(SCHED_DO_DROP_EVENT), 1);
}
END_TEST

/* What ten thousand hosts that come back cost with a list that is full. */
START_TEST(a_full_list_of_ten_thousand_authors_costs_a_start_and_a_node_little)
{
    enum { AUTHORS = 10000 };
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    struct timespec at[3];
    char name[40];
    int refused = 0;
    cfg.has_database = 1;
    fix_create(&cfg);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at[0]);
    for (uint64_t seq = 1; seq <= MS_EVENTS_KEPT; seq++) {
        snprintf(name, sizeof(name), "worker:h%u", (unsigned)(seq % AUTHORS));
        struct sched_event_row row = fix_event(seq, "node.registered", 0, name);
        refused |= sched_load_event(fix.s, &row, NULL); /* Check would cost more */
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at[1]);
    ck_assert_int_eq(refused, 0);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    for (uint64_t i = 0; i < AUTHORS; i++) {
        struct ms_peer peer;
        memset(&peer, 0, sizeof(peer));
        snprintf(name, sizeof(name), "h%u", (unsigned)i);
        ck_assert(ms_principal_from_certificate(MS_ROLE_WORKER, name, &peer.who));
        Ms__Register msg = fix_node(name, 1);
        struct sched_event events[2] = {
            {.kind = SCHED_EV_OPENED, .conn = i + 1, .peer = &peer},
            {.kind = SCHED_EV_MESSAGE, .conn = i + 1, .type = MS_MSG_REGISTER, .msg = &msg.base}};
        sched_begin_tick(fix.s);
        sched_apply(fix.s, &events[0], fix.now);
        sched_apply(fix.s, &events[1], fix.now);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at[2]);
    double load_ms =
        (double)(at[1].tv_sec - at[0].tv_sec) * 1e3 + (double)(at[1].tv_nsec - at[0].tv_nsec) / 1e6;
    double each_us = ((double)(at[2].tv_sec - at[1].tv_sec) * 1e6 +
                      (double)(at[2].tv_nsec - at[1].tv_nsec) / 1e3) /
                     AUTHORS;
    printf("%d events loaded in %.1f ms, a node registered in %.1f us\n", MS_EVENTS_KEPT, load_ms,
           each_us);
    ck_assert_double_lt(load_ms, 1000);
    ck_assert_double_lt(each_us, 500);
    ck_ms_ok(sched_check(fix.s, err));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched_kept");
    TCase *t = tcase_create("kept");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, an_event_counts_against_who_provoked_it);
    tcase_add_test(t, one_worker_pushes_out_nobodys_events_but_its_own);
    tcase_add_test(t, one_user_pushes_out_nobodys_events_but_his_own);
    tcase_add_test(t, many_nodes_push_out_no_events_of_jobs);
    tcase_add_test(t, nodes_and_jobs_have_a_half_each_where_both_need_it);
    tcase_add_test(t, a_restart_knows_whose_events_it_has);
    tcase_add_test(t, an_event_that_goes_is_no_tick);
    tcase_add_test(t, a_full_list_of_ten_thousand_authors_costs_a_start_and_a_node_little);
    suite_add_tcase(s, t);
    return test_run(s);
}
