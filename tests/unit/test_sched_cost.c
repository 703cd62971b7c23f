/* test_sched_cost.c - what a turn decides fits one transaction of the database: the rest is next */
#include "daemon/sched/cost.h"
#include "tests/unit/sched_load_case.h"

enum { JOBS = 24, NODES = JOBS, LARGE = 200 << 10 };

static size_t cost_of_tick(void)
{
    size_t n = 0;
    size_t cost = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        cost += sched_effect_cost(&effects[i]);
    }
    return cost;
}

static void submit_large(void)
{
    static uint8_t text[LARGE];
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);
    memset(text, ' ', sizeof(text));
    msg.job_json.data = text;
    msg.job_json.len = sizeof(text);
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_SUBMITTED));
}

static void register_nodes(void)
{
    char id[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(id, sizeof(id), "w%d", i);
        fix_register(id, (uint64_t)i + 1);
    }
}

START_TEST(a_submit_counts_with_its_text)
{
    fix_standing();

    submit_large();

    ck_assert_uint_ge(cost_of_tick(), LARGE);
    ck_assert(!sched_tick_is_full(fix.s));
    fix_time();
    ck_assert_uint_eq(cost_of_tick(), 0);
}
END_TEST

/* A row that changes is written anew with the text of its job. */
START_TEST(jobs_with_large_texts_are_placed_in_as_many_turns_as_it_takes)
{
    size_t placed = 0;
    int turns = 0;
    fix_standing();
    for (int i = 0; i < JOBS; i++) {
        submit_large();
    }
    sched_refuse_writes(fix.s, "no space left", 1);
    register_nodes();
    sched_refuse_writes(fix.s, "", 1);

    while (placed < JOBS) {
        ck_assert_int_le(sched_deadline(fix.s), fix.now.mono_ms); /* the rest is due at once */
        fix_time();
        ck_assert_uint_gt(fix_count(MS_MSG_ASSIGN), 0);
        ck_assert_uint_le(cost_of_tick(), MS_TURN_STORE + MS_STORE_COST(LARGE + 4096));
        placed += fix_count(MS_MSG_ASSIGN);
        turns++;
    }

    ck_assert_int_gt(turns, 1);
    ck_assert_int_gt(sched_deadline(fix.s), fix.now.mono_ms);
}
END_TEST

/* Leases that end, and jobs with them, are bounded likewise. */
START_TEST(losses_are_told_in_as_many_turns_as_it_takes)
{
    int turns = 0;
    fix_standing();
    register_nodes();
    for (int i = 0; i < JOBS; i++) {
        submit_large();
    }
    fix.now.mono_ms += 10LL * MS_LEASE_MS;
    fix.now.wall_ms += 10LL * MS_LEASE_MS;

    while (sched_deadline(fix.s) <= fix.now.mono_ms) {
        fix_time();
        ck_assert_uint_le(cost_of_tick(), MS_TURN_STORE + MS_STORE_COST(LARGE + 4096) + 65536);
        ck_assert_int_lt(++turns, 1000);
    }

    ck_assert_int_gt(turns, 1);
}
END_TEST

/* ---- a restart ----------------------------------------------------------------------------------
 */

static void load_placing(void)
{
    static uint8_t text[LARGE];
    memset(text, ' ', sizeof(text));
    begin();
    for (uint64_t id = 1; id <= JOBS; id++) {
        struct sched_job_row row = job_row(id, JOB_PLACING);
        row.spec = text;
        row.spec_bytes = sizeof(text);
        ck_ms_ok(sched_load_job(fix.s, &row, err));
        load_members(id);
    }
    loaded();
}

/* One job with one node after the other: none of them is placed before all are in the queue. */
START_TEST(a_restart_requeues_in_as_many_turns_as_it_takes)
{
    int requeued = 0;
    int turns = 0;
    load_placing();

    while (requeued < JOBS) {
        ck_assert_int_le(sched_deadline(fix.s), fix.now.mono_ms);
        fix_time();
        ck_assert_uint_le(cost_of_tick(), MS_TURN_STORE + MS_STORE_COST(LARGE + 4096) + 65536);
        ck_assert_int_gt(fix_effects(SCHED_DO_DROP_MEMBERS), 0);
        requeued += fix_effects(SCHED_DO_DROP_MEMBERS);
        ck_assert_int_lt(++turns, JOBS);
    }

    ck_assert_int_gt(turns, 1);
    ck_assert_int_eq(requeued, JOBS);
    ck_assert_int_gt(sched_deadline(fix.s), fix.now.mono_ms);
    ck_assert_uint_eq(fix_stored(JOBS)->generation, 0);
}
END_TEST

/* Else the database would hold the ranks of its last placement under an end that knows none. */
START_TEST(a_job_that_is_cancelled_before_its_turn_is_requeued_first)
{
    load_placing();
    uint64_t conn = fix_open(MS_ROLE_ADMIN, "root");
    const int before = fix_effects(SCHED_DO_DROP_MEMBERS);
    ck_assert_int_lt(before, JOBS);
    ck_assert_int_eq(sched_tick_is_full(fix.s), 1);

    Ms__Cancel msg = MS__CANCEL__INIT;
    msg.job = JOBS;
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conn, .type = MS_MSG_CANCEL, .id = 7, .msg = &msg.base};
    sched_apply(fix.s, &event, fix.now); /* in the same turn */

    ck_assert_uint_eq(fix_stored(JOBS)->state, JOB_CANCELLED);
    ck_assert_uint_eq(fix_stored(JOBS)->generation, 0);
    ck_assert_int_eq(fix_effects(SCHED_DO_DROP_MEMBERS), before + 1);
    ck_ms_ok(sched_check(fix.s, err));
}
END_TEST

/* ---- history ------------------------------------------------------------------------------------
 */

enum { OLD = 1000 };

static void load_history(const struct sched_config *cfg)
{
    fix_create(cfg);
    for (uint64_t id = 1; id <= OLD; id++) {
        struct sched_job_row row = job_row(id, JOB_FAILED);
        struct sched_member_row member = member_row(id, 0);
        row.workers = 1;
        ck_ms_ok(sched_load_job(fix.s, &row, err));
        ck_ms_ok(sched_load_member(fix.s, &member, err));
        struct sched_event_row event = fix_event(id, "job.submitted", id, "user:alice");
        ck_ms_ok(sched_load_event(fix.s, &event, err));
    }
    loaded();
}

/* Settles what is due; returns how many effects of the kind that took. */
static int settle(enum sched_effect_kind kind)
{
    int n = 0;
    for (int turns = 0; sched_deadline(fix.s) <= fix.now.mono_ms; turns++) {
        ck_assert_int_lt(turns, 1000);
        fix_time();
        ck_assert_uint_le(cost_of_tick(), MS_TURN_STORE + 65536);
        n += fix_effects(kind);
    }
    return n;
}

static void end_a_job(void)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit submit = fix_job(1);
    fix_say(conn, MS_MSG_SUBMIT, &submit.base);
    const Ms__Submitted *submitted = fix_heard(conn, MS_MSG_SUBMITTED);
    Ms__Cancel cancel = MS__CANCEL__INIT;
    cancel.job = submitted->job;
    fix_say(conn, MS_MSG_CANCEL, &cancel.base);
    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_OK));
    ck_assert_uint_le(cost_of_tick(), MS_TURN_STORE + 65536);
}

/* A job of many ranks that ends pushes out as many jobs of one; so does a release that keeps fewer.
 */
START_TEST(history_goes_in_as_many_turns_as_it_takes)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.members_kept_max = _i == 0 ? 1 : OLD;
    cfg.jobs_kept_max = _i == 1 ? 1 : 2 * OLD;
    load_history(&cfg);

    end_a_job();
    const int at_once = fix_effects(SCHED_DO_DROP_MEMBERS);
    const int later = settle(SCHED_DO_DROP_MEMBERS);

    ck_assert_int_gt(at_once, 0);
    ck_assert_int_gt(later, 0);
    ck_assert_int_eq(at_once + later, _i == 0 ? OLD - 1 : OLD);
    ck_ms_ok(sched_check(fix.s, err));
}
END_TEST

START_TEST(events_go_in_as_many_turns_as_it_takes)
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    cfg.events_kept_max = 1;
    load_history(&cfg);

    const int n = settle(SCHED_DO_DROP_EVENT);

    ck_assert_int_eq(n, OLD); /* of which one says that the scheduler started */
    ck_ms_ok(sched_check(fix.s, err));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_cost");
    TCase *tcase = tcase_create("sched_cost");
    tcase_add_checked_fixture(tcase, NULL, fix_end);
    tcase_add_test(tcase, a_submit_counts_with_its_text);
    tcase_add_test(tcase, jobs_with_large_texts_are_placed_in_as_many_turns_as_it_takes);
    tcase_add_test(tcase, losses_are_told_in_as_many_turns_as_it_takes);
    tcase_add_test(tcase, a_restart_requeues_in_as_many_turns_as_it_takes);
    tcase_add_test(tcase, a_job_that_is_cancelled_before_its_turn_is_requeued_first);
    tcase_add_loop_test(tcase, history_goes_in_as_many_turns_as_it_takes, 0, 2);
    tcase_add_test(tcase, events_go_in_as_many_turns_as_it_takes);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
