/* test_sched_nomem.c - a scheduler without memory refuses requests, and its decisions stand
 *
 * The linker redirects malloc, calloc and realloc of the core to this file. */
#include "tests/unit/sched_fixture.h"

#include "daemon/sched/memory.h"

#include <stdlib.h>

static long countdown = -1; /* -1: nothing fails; 0: the next one does */
static int has_failed;
static int is_dry; /* all fail, until the core gave its reserve back */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static int fails_now(void)
{
    if (is_dry) {
        has_failed |= !memory_is_spent();
        return !memory_is_spent();
    }
    if (countdown < 0 || countdown-- > 0) {
        return 0;
    }
    has_failed = 1;
    return 1;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __real_realloc(p, size);
}

/* A tick in which allocations fail; Check and unpacking come after it. */
static int apply_failing(const struct sched_event *event, long n, int dry)
{
    sched_begin_tick(fix.s);
    fix_drop_answers();
    has_failed = 0;
    countdown = n;
    is_dry = dry;
    sched_apply(fix.s, event, fix.now);
    countdown = -1;
    is_dry = 0;
    fix_collect();
    ck_ms_ok(sched_check(fix.s, err));
    return has_failed;
}

static int say_failing(uint64_t conn, uint16_t type, const ProtobufCMessage *msg, long n, int dry)
{
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conn, .type = type, .id = ++fix.frame, .msg = msg};
    return apply_failing(&event, n, dry);
}

/* Answered, or refused for want of memory; nothing else, and never silence. */
static void check_answer(uint64_t conn, uint16_t answer, int has_failed_once)
{
    const Ms__Error *error = fix_heard(conn, MS_MSG_ERROR);
    if (error != NULL) {
        ck_assert_int_eq(error->code, MS_E_NOMEM);
        ck_assert(has_failed_once);
    } else {
        ck_assert_ptr_nonnull(fix_heard(conn, answer));
    }
}

static void ask_until_nothing_fails(uint64_t conn, uint16_t type, const ProtobufCMessage *msg,
                                    uint16_t answer)
{
    int more = 1;
    for (long n = 0; more; n++) {
        more = say_failing(conn, type, msg, n, 0);
        check_answer(conn, answer, more);
    }
    ck_assert_ptr_nonnull(fix_heard(conn, answer));
    (void)say_failing(conn, type, msg, -1, 1);
    check_answer(conn, answer, has_failed);
    sched_begin_tick(fix.s);
    ck_assert(!sched_is_starved(fix.s)); /* memory is back, and so is the reserve */
}

START_TEST(every_request_is_answered_or_refused)
{
    uint64_t conns[2];
    Ms__JobQuery jobs = MS__JOB_QUERY__INIT;
    Ms__NodeQuery nodes = MS__NODE_QUERY__INIT;
    Ms__StatusQuery status = MS__STATUS_QUERY__INIT;
    Ms__Watch watch = MS__WATCH__INIT;
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    ask_until_nothing_fails(conn, MS_MSG_JOB_QUERY, &jobs.base, MS_MSG_JOB_LIST);
    jobs.job = 1;
    ask_until_nothing_fails(conn, MS_MSG_JOB_QUERY, &jobs.base, MS_MSG_JOB_LIST);
    ask_until_nothing_fails(conn, MS_MSG_NODE_QUERY, &nodes.base, MS_MSG_NODE_LIST);
    ask_until_nothing_fails(conn, MS_MSG_STATUS_QUERY, &status.base, MS_MSG_STATUS_INFO);
    watch.job = 1;
    ask_until_nothing_fails(conn, MS_MSG_WATCH, &watch.base, MS_MSG_JOB_UPDATE);
    fix_end();
}
END_TEST

START_TEST(every_question_about_events_is_answered_or_refused)
{
    Ms__EventQuery events = MS__EVENT_QUERY__INIT;
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    fix_time();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    events.after = UINT64_MAX;
    ask_until_nothing_fails(conn, MS_MSG_EVENT_QUERY, &events.base, MS_MSG_EVENT_LIST);

    events.after = 1; /* waits: nothing is said, and the next event costs nobody more memory */
    events.wait = 1;
    fix_say(conn, MS_MSG_EVENT_QUERY, &events.base);
    ck_assert_uint_eq(fix.n_answers, 0);
    fix_submit(1, 0);
    ck_assert_ptr_nonnull(fix_effect(SCHED_DO_READ));
    fix_end();
}
END_TEST

START_TEST(every_submit_is_answered_or_refused)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);
    ask_until_nothing_fails(conn, MS_MSG_SUBMIT, &msg.base, MS_MSG_SUBMITTED);
    fix_end();
}
END_TEST

START_TEST(a_large_list_without_memory_is_refused_and_a_small_answer_is_not)
{
    Ms__JobQuery jobs = MS__JOB_QUERY__INIT;
    Ms__StatusQuery status = MS__STATUS_QUERY__INIT;
    fix_standing();
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_ne(fix_submit(1, 0), 0);
    }
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");

    (void)say_failing(conn, MS_MSG_JOB_QUERY, &jobs.base, -1, 1);
    fix_refused(conn, MS_E_NOMEM, "no memory for this list");
    (void)say_failing(conn, MS_MSG_STATUS_QUERY, &status.base, -1, 1);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_STATUS_INFO));
    ck_assert(!sched_is_starved(fix.s)); /* requests do not touch the reserve */
    fix_say(conn, MS_MSG_JOB_QUERY, &jobs.base);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_JOB_LIST));
    fix_end();
}
END_TEST

/* What is decided about nodes and running jobs happens all the same. */
START_TEST(decisions_stand_whatever_allocation_fails)
{
    int more = 1;
    for (long n = 0; more; n++) {
        uint64_t conns[2];
        fix_running(conns);
        struct sched_event event = {.kind = SCHED_EV_CLOSED, .conn = conns[1], .reason = "gone"};
        more = apply_failing(&event, n, 0);
        ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_STOP));
        const struct sched_job_row *row = fix_stored(1);
        ck_assert_ptr_nonnull(row);
        ck_assert_int_eq(row->state, JOB_FAILED);
        fix_end();
    }
}
END_TEST

START_TEST(a_decision_without_memory_spends_the_reserve_and_the_next_tick_mends_it)
{
    enum { N = 60 }; /* their Assigns take 300 KiB */
    char id[16];
    fix_standing();
    for (uint64_t i = 1; i < N; i++) {
        snprintf(id, sizeof(id), "w%llu", (unsigned long long)i);
        fix_register(id, i);
    }
    ck_assert_uint_eq(fix_submit(N, 0), 1);
    uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
    Ms__Register msg = fix_node("w60", N);

    (void)say_failing(conn, MS_MSG_REGISTER, &msg.base, -1, 1);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), N);
    ck_assert(sched_is_starved(fix.s));
    sched_begin_tick(fix.s);
    ck_assert(!sched_is_starved(fix.s));
    fix_end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_nomem");
    TCase *tcase = tcase_create("sched_nomem");
    tcase_add_test(tcase, every_request_is_answered_or_refused);
    tcase_add_test(tcase, every_question_about_events_is_answered_or_refused);
    tcase_add_test(tcase, every_submit_is_answered_or_refused);
    tcase_add_test(tcase, a_large_list_without_memory_is_refused_and_a_small_answer_is_not);
    tcase_add_test(tcase, decisions_stand_whatever_allocation_fails);
    tcase_add_test(tcase, a_decision_without_memory_spends_the_reserve_and_the_next_tick_mends_it);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
