/* test_sched_cost.c - what a turn decides fits one transaction of the database: the rest is next */
#include "daemon/sched/cost.h"
#include "tests/unit/sched_fixture.h"

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

int main(void)
{
    Suite *suite = suite_create("sched_cost");
    TCase *tcase = tcase_create("sched_cost");
    tcase_add_checked_fixture(tcase, NULL, fix_end);
    tcase_add_test(tcase, a_submit_counts_with_its_text);
    tcase_add_test(tcase, jobs_with_large_texts_are_placed_in_as_many_turns_as_it_takes);
    tcase_add_test(tcase, losses_are_told_in_as_many_turns_as_it_takes);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
