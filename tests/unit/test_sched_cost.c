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

static int count_drops(enum sched_effect_kind kind)
{
    size_t n = 0;
    int drops = 0;
    const struct sched_effect *effects = sched_effects(fix.s, &n);
    for (size_t i = 0; i < n; i++) {
        drops += effects[i].kind == kind;
    }
    return drops;
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
        ck_assert_int_gt(count_drops(SCHED_DO_DROP_MEMBERS), 0);
        requeued += count_drops(SCHED_DO_DROP_MEMBERS);
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
    const int before = count_drops(SCHED_DO_DROP_MEMBERS);
    ck_assert_int_lt(before, JOBS);
    ck_assert_int_eq(sched_tick_is_full(fix.s), 1);

    Ms__Cancel msg = MS__CANCEL__INIT;
    msg.job = JOBS;
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conn, .type = MS_MSG_CANCEL, .id = 7, .msg = &msg.base};
    sched_apply(fix.s, &event, fix.now); /* in the same turn */

    ck_assert_uint_eq(fix_stored(JOBS)->state, JOB_CANCELLED);
    ck_assert_uint_eq(fix_stored(JOBS)->generation, 0);
    ck_assert_int_eq(count_drops(SCHED_DO_DROP_MEMBERS), before + 1);
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
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
