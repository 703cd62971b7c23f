/* test_rng.c - the counter-based generator is splitmix64 and stays so: recovery depends on it */
#include "proto/rng.h"
#include "tests/test.h"

START_TEST(first_value_of_stream_zero_is_that_of_splitmix64)
{
    ck_assert_uint_eq(ms_rng_u64(0, 0), 0xE220A8397B1DCDAFU);
}
END_TEST

START_TEST(unit_values_fill_the_interval_evenly)
{
    double sum = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        double u = ms_rng_unit(7, i);
        ck_assert(u >= 0 && u < 1);
        sum += u;
    }
    ck_assert_double_eq_tol(sum / 100000, 0.5, 0.005);
}
END_TEST

START_TEST(below_stays_below_and_hits_every_value)
{
    int seen[10] = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t v = ms_rng_below(3, i, 10);
        ck_assert_uint_lt(v, 10);
        seen[v] = 1;
    }
    for (int v = 0; v < 10; v++) {
        ck_assert_int_eq(seen[v], 1);
    }
}
END_TEST

START_TEST(streams_of_different_words_differ)
{
    ck_assert_uint_ne(ms_rng_stream(1, 2, 3), ms_rng_stream(1, 3, 2));
    ck_assert_uint_lt(ms_rng_stream(1, 2, 3), UINT64_C(1) << 32);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rng");
    TCase *tc = tcase_create("rng");
    tcase_add_test(tc, first_value_of_stream_zero_is_that_of_splitmix64);
    tcase_add_test(tc, unit_values_fill_the_interval_evenly);
    tcase_add_test(tc, below_stays_below_and_hits_every_value);
    tcase_add_test(tc, streams_of_different_words_differ);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
