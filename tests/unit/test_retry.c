/* test_retry.c - when a node knocks at the scheduler again */
#include "libworker/agent/retry.h"
#include "proto/limits.h"
#include "proto/rng.h"
#include "tests/test.h"

START_TEST(only_one_that_nobody_answers_for_is_absent)
{
    ck_assert_int_eq(retry_cause_of(MS_E_UNREACHABLE), RETRY_ABSENT);
    ck_assert_int_eq(retry_cause_of(MS_E_TIMEOUT), RETRY_CROWDED);
    ck_assert_int_eq(retry_cause_of(MS_E_CLOSED), RETRY_CROWDED);
}
END_TEST

START_TEST(a_scheduler_that_is_late_costs_a_second_at_the_most)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct retry retry = {0};
        int64_t now = 0;
        for (uint64_t i = 0; now < 60000; i++) {
            int64_t wait = retry_wait_ms(&retry, RETRY_ABSENT, now, 0, ms_rng_u64(seed, i));
            ck_assert_int_ge(wait, 50);
            ck_assert_int_le(wait, 1000);
            now += wait;
        }
        ck_assert_uint_lt(retry.attempts, 200);
    }
}
END_TEST

START_TEST(one_that_stays_away_is_asked_every_few_seconds)
{
    struct retry retry = {0};
    int64_t sum = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        int64_t wait = retry_wait_ms(&retry, RETRY_ABSENT, 3600000, 0, ms_rng_u64(1, i));
        ck_assert_int_le(wait, MS_RECONNECT_LATER_MS);
        sum += wait;
    }
    ck_assert_int_gt(sum / 1000, MS_RECONNECT_LATER_MS / 2);
}
END_TEST

START_TEST(a_crowd_spreads_over_half_a_minute)
{
    int64_t most = 0;
    int64_t sum = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct retry retry = {0};
        int64_t wait = 0;
        for (uint64_t i = 0; i < 8; i++) {
            wait = retry_wait_ms(&retry, RETRY_CROWDED, 0, 0, ms_rng_u64(seed, i));
            ck_assert_int_ge(wait, MS_RECONNECT_MIN_MS);
            ck_assert_int_le(wait, MS_RECONNECT_MAX_MS);
        }
        most = wait > most ? wait : most;
        sum += wait;
    }
    ck_assert_int_gt(most, 25000);
    ck_assert_int_gt(sum / 1000, 12000);
    ck_assert_int_lt(sum / 1000, 18000);
}
END_TEST

START_TEST(who_holds_a_rank_is_back_within_a_fifth_of_the_lease)
{
    static const enum retry_cause causes[] = {RETRY_ABSENT, RETRY_CROWDED};
    for (int64_t most = 1; most <= 2000; most += 333) {
        struct retry retry = {0};
        for (uint64_t i = 0; i < 100; i++) {
            int64_t wait = retry_wait_ms(&retry, causes[i % 2], 120000, most, ms_rng_u64(7, i));
            ck_assert_int_ge(wait, 0);
            ck_assert_int_le(wait, most);
        }
    }
}
END_TEST

/* ... and of a dynamic cluster, whose lease is ten minutes, before its scheduler goes. */
START_TEST(who_holds_a_rank_of_a_dynamic_cluster_hears_of_its_end)
{
    ck_assert_int_eq(retry_most_ms(0, 1, 600000), 0);
    ck_assert_int_eq(retry_most_ms(1, 0, 10000), 2000);
    ck_assert_int_eq(retry_most_ms(1, 0, 600000), 120000);
    ck_assert_int_eq(retry_most_ms(1, 1, 10000), 2000);
    ck_assert_int_eq(retry_most_ms(1, 1, 600000), MS_RECONNECT_HEAR_MS);
    ck_assert_int_le(MS_RECONNECT_HEAR_MS + MS_HANDSHAKE_MS, MS_UNHEARD_MS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("retry");
    TCase *tc = tcase_create("retry");
    tcase_add_test(tc, only_one_that_nobody_answers_for_is_absent);
    tcase_add_test(tc, a_scheduler_that_is_late_costs_a_second_at_the_most);
    tcase_add_test(tc, one_that_stays_away_is_asked_every_few_seconds);
    tcase_add_test(tc, a_crowd_spreads_over_half_a_minute);
    tcase_add_test(tc, who_holds_a_rank_is_back_within_a_fifth_of_the_lease);
    tcase_add_test(tc, who_holds_a_rank_of_a_dynamic_cluster_hears_of_its_end);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
