/* test_histogram.c - quantiles of what was counted, rounded up by an eighth at most */
#include "daemon/histogram.h"
#include "tests/test.h"

static struct histogram h;

START_TEST(quantiles_are_within_an_eighth_and_never_below)
{
    static const unsigned per_mille[] = {1, 500, 900, 990, 999, 1000};
    memset(&h, 0, sizeof(h));
    for (uint64_t value = 1; value <= 100000; value++) {
        histogram_add(&h, value);
    }
    for (size_t i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++) {
        uint64_t exact = 100000ULL * per_mille[i] / 1000;
        uint64_t got = histogram_at(&h, per_mille[i]);
        ck_assert_uint_ge(got, exact);
        ck_assert_uint_le(got, exact + exact / 8 + 1);
    }
    ck_assert_uint_eq(histogram_at(&h, 1000), 100000);
}
END_TEST

START_TEST(extremes_have_a_bucket)
{
    static const uint64_t values[] = {0, 1, 7, 8, 15, 16, 1ULL << 40, UINT64_MAX};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        memset(&h, 0, sizeof(h));
        ck_assert_uint_eq(histogram_at(&h, 999), 0);
        histogram_add(&h, values[i]);
        ck_assert_uint_eq(histogram_at(&h, 500), values[i]);
        ck_assert_uint_eq(h.max, values[i]);
    }
}
END_TEST

START_TEST(one_slow_tick_in_a_thousand_is_the_last_one)
{
    memset(&h, 0, sizeof(h));
    for (int i = 0; i < 999; i++) {
        histogram_add(&h, 100);
    }
    histogram_add(&h, 50000);
    ck_assert_uint_le(histogram_at(&h, 999), 112);
    ck_assert_uint_eq(histogram_at(&h, 1000), 50000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("histogram");
    TCase *tcase = tcase_create("histogram");
    tcase_add_test(tcase, quantiles_are_within_an_eighth_and_never_below);
    tcase_add_test(tcase, extremes_have_a_bucket);
    tcase_add_test(tcase, one_slow_tick_in_a_thousand_is_the_last_one);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
