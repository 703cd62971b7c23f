/* test_standstill.c - lateness against an appointment, and a machine that slept */
#include "daemon/standstill.h"
#include "proto/limits.h"
#include "tests/test.h"

static struct standstill still;

static void setup(void)
{
    standstill_init(&still, 1000, 5000);
}

START_TEST(without_an_appointment_nothing_is_late)
{
    ck_assert_int_eq(standstill_check(&still, 1000000, 1004000, 10000), 0);
    standstill_expect(&still, 1000, INT64_MAX);
    ck_assert_int_eq(standstill_check(&still, 9000000, 9004000, 10000), 0);
}
END_TEST

START_TEST(an_ordinary_delay_is_none)
{
    standstill_expect(&still, 1000, 500);
    ck_assert_int_eq(standstill_check(&still, 1500, 5500, 10000), 0);
    ck_assert_int_eq(standstill_check(&still, 2500, 6500, 10000), 0);
}
END_TEST

START_TEST(a_standstill_is_told_once_with_its_length)
{
    standstill_expect(&still, 1000, 500);
    ck_assert_int_eq(standstill_check(&still, 61500, 65500, 10000), 60000);
    ck_assert_int_eq(standstill_check(&still, 61500, 65500, 10000), 0);
    ck_assert_int_eq(standstill_check(&still, 62000, 66000, 10000), 0);
    /* and a second one in the same iteration: a slow commit */
    ck_assert_int_eq(standstill_check(&still, 65000, 69000, 10000), 3500);
}
END_TEST

START_TEST(a_suspended_machine_grants_at_most_one_lease)
{
    /* CLOCK_MONOTONIC stood still for an hour */
    standstill_expect(&still, 1000, 500);
    ck_assert_int_eq(standstill_check(&still, 1500, 5500 + 3600000, 10000), 10000);
    ck_assert_int_eq(standstill_check(&still, 1600, 5600 + 3600000, 10000), 0);
    ck_assert_int_eq(standstill_check(&still, 1700, 5700 + 3603000, 10000), 3000);
}
END_TEST

START_TEST(a_short_lease_is_protected_from_a_short_standstill)
{
    standstill_expect(&still, 1000, standstill_pulse_ms(1000));
    ck_assert_int_eq(standstill_check(&still, 1100 + 240, 5340, 1000), 0);
    ck_assert_int_eq(standstill_check(&still, 1100 + 300, 5400, 1000), 300);
}
END_TEST

/* A node beats five times a lease. In the worst case the process stopped right after it began to
 * wait, and the beat before that was a fifth of a lease old. */
START_TEST(after_any_standstill_a_beating_node_has_time_left)
{
    for (int64_t lease = MS_LEASE_MIN_MS; lease <= MS_LEASE_MAX_MS; lease += 777) {
        int64_t pulse = standstill_pulse_ms(lease);
        int64_t seen = 100000;
        int64_t stopped = seen + lease / MS_HEARTBEATS_PER_LEASE;
        standstill_init(&still, seen, seen);
        for (int64_t length = 0; length < 3 * lease; length += lease / 7) {
            int64_t woke = stopped + (length > pulse ? length : pulse);
            standstill_expect(&still, stopped, pulse);
            int64_t stretch = standstill_check(&still, woke, woke, lease);
            ck_assert_int_gt(seen + lease + stretch, woke + lease / 4);
        }
    }
}
END_TEST

START_TEST(a_wait_for_ever_does_not_overflow)
{
    standstill_expect(&still, INT64_MAX - 10, INT64_MAX - 5);
    ck_assert_int_eq(still.due_ms, INT64_MAX);
    standstill_expect(&still, INT64_MAX - 10, 100);
    ck_assert_int_eq(still.due_ms, INT64_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("standstill");
    TCase *tcase = tcase_create("standstill");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, without_an_appointment_nothing_is_late);
    tcase_add_test(tcase, an_ordinary_delay_is_none);
    tcase_add_test(tcase, a_standstill_is_told_once_with_its_length);
    tcase_add_test(tcase, a_suspended_machine_grants_at_most_one_lease);
    tcase_add_test(tcase, a_short_lease_is_protected_from_a_short_standstill);
    tcase_add_test(tcase, after_any_standstill_a_beating_node_has_time_left);
    tcase_add_test(tcase, a_wait_for_ever_does_not_overflow);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
