/* test_throttle.c - a flood of lines is a burst, a trickle and a count */
#include "daemon/throttle.h"
#include "tests/test.h"

static struct throttle t;

static void setup(void)
{
    memset(&t, 0, sizeof(t));
}

/* A worker provoked 78 MiB in 5 s. */
START_TEST(a_flood_of_one_event_is_cut_and_counted)
{
    unsigned long hidden = 0;
    unsigned long told = 0;
    unsigned long passed = 0;
    enum { LINES = 100000, MS = 5000 };
    for (int i = 0; i < LINES; i++) {
        passed += (unsigned long)throttle_pass(&t, "message.refused type=Submit",
                                               1000 + (int64_t)i * MS / LINES, &hidden);
        told += hidden;
        hidden = 0;
    }
    ck_assert_uint_le(passed, THROTTLE_BURST + MS / 1000 * THROTTLE_PER_S + 1);
    const char *event = throttle_next_report(&t, 1000 + MS + THROTTLE_REPORT_MS, &hidden);
    ck_assert_str_eq(event, "message.refused");
    ck_assert_uint_eq(passed + told + hidden, LINES);
    ck_assert_ptr_null(throttle_next_report(&t, 1000000, &hidden));
}
END_TEST

START_TEST(other_events_are_not_cut_with_it)
{
    unsigned long hidden = 0;
    while (throttle_pass(&t, "message.refused type=Submit", 1000, &hidden)) {
    }
    ck_assert(throttle_pass(&t, "job.ended job=1", 1000, &hidden));
    ck_assert(throttle_pass(&t, "message.refuse", 1000, &hidden)); /* a prefix is another */
    ck_assert(!throttle_pass(&t, "message.refused", 1000, &hidden));
}
END_TEST

START_TEST(what_strangers_provoke_is_cut_sooner)
{
    unsigned long hidden = 0;
    int passed = 0;
    while (throttle_pass(&t, "conn.refused peer=10.0.0.1:1", 1000, &hidden)) {
        passed++;
    }
    ck_assert_int_eq(passed, THROTTLE_STRANGERS);
    ck_assert(!throttle_pass(&t, "conn.refused peer=10.0.0.1:1", 1900, &hidden));
    ck_assert(throttle_pass(&t, "conn.refused peer=10.0.0.1:1", 2000, &hidden));
}
END_TEST

START_TEST(events_beyond_the_table_share_a_slot)
{
    unsigned long hidden = 0;
    char line[32];
    int passed = 1;
    for (int i = 0; i < 100000 && passed; i++) {
        snprintf(line, sizeof(line), "event%d", i);
        passed = throttle_pass(&t, line, 1000, &hidden);
    }
    ck_assert(!passed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("throttle");
    TCase *tcase = tcase_create("throttle");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_flood_of_one_event_is_cut_and_counted);
    tcase_add_test(tcase, other_events_are_not_cut_with_it);
    tcase_add_test(tcase, what_strangers_provoke_is_cut_sooner);
    tcase_add_test(tcase, events_beyond_the_table_share_a_slot);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
