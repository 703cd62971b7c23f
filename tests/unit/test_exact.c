/* test_exact.c - our own exp and log against libm's, and at their edges */
#include "proto/exact.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <float.h>

static void ck_close(double got, double want, double x)
{
    ck_assert_msg(fabs(got - want) <= 2e-15 * fabs(want) + 1e-300, "at %a: %a, want %a", x, got,
                  want);
}

START_TEST(exp_agrees_with_libm)
{
    for (uint64_t i = 0; i < 100000; i++) {
        double x = (2 * ms_rng_unit(1, i) - 1) * (i % 2 != 0 ? 2 : 700);
        ck_close(ms_exact_exp(x), exp(x), x);
    }
    ck_assert_double_eq(ms_exact_exp(0), 1);
}
END_TEST

START_TEST(log_agrees_with_libm)
{
    for (uint64_t i = 0; i < 100000; i++) {
        double x = i % 2 != 0 ? 0.9 + 0.2 * ms_rng_unit(2, i)
                              : ldexp(1 + ms_rng_unit(2, i), (int)(i % 2000) - 1000);
        double error = fabs(ms_exact_log(x) - log(x));
        ck_assert_msg(error <= 4e-16 + 2e-15 * fabs(log(x)), "at %a: off by %g", x, error);
    }
    ck_assert_double_eq(ms_exact_log(1), 0);
}
END_TEST

START_TEST(edges_are_what_the_standard_says)
{
    ck_assert(isinf(ms_exact_exp(710)));
    ck_assert_double_eq(ms_exact_exp(-800), 0);
    ck_assert_double_eq(ms_exact_exp(-(double)INFINITY), 0);
    ck_assert(isinf(ms_exact_exp((double)INFINITY)));
    ck_assert(isnan(ms_exact_exp((double)NAN)));
    ck_assert_double_gt(ms_exact_exp(-740), 0); /* denormal, not flushed */
    ck_assert(isinf(ms_exact_log(0)) && ms_exact_log(0) < 0);
    ck_assert(isnan(ms_exact_log(-1)));
    ck_assert(isnan(ms_exact_log((double)NAN)));
    ck_assert(isinf(ms_exact_log((double)INFINITY)));
    ck_assert_double_lt(fabs(ms_exact_log(DBL_MIN / 4) - log(DBL_MIN / 4)), 1e-12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exact");
    TCase *tc = tcase_create("exact");
    tcase_add_test(tc, exp_agrees_with_libm);
    tcase_add_test(tc, log_agrees_with_libm);
    tcase_add_test(tc, edges_are_what_the_standard_says);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
