/* test_exact.c - our own exp, log, powers and cos against libm's, and at their edges */
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

START_TEST(whole_powers_are_products)
{
    ck_assert_double_eq(ms_exact_power(0.1, 0), 1);
    ck_assert_double_eq(ms_exact_power(0.5, 10), 0x1p-10);
    ck_assert_double_eq(ms_exact_power(3, 5), 243);
    ck_assert_double_eq(ms_exact_power(0, 0), 1);
    ck_assert_double_eq(ms_exact_power(0, 3), 0);
    ck_assert_double_eq(ms_exact_power(0.9, 1ULL << 40), 0);
    ck_assert_double_eq(ms_exact_power(1, UINT64_MAX), 1);
}
END_TEST

START_TEST(powers_of_shares_agree_with_libm)
{
    for (uint64_t i = 0; i < 100000; i++) {
        const double unit = ms_rng_unit(3, i);
        const double x = i % 2 == 0 ? unit : pow(10, -12 * unit);
        const double y = (i % 3 == 0 ? 100 : 3) * ms_rng_unit(4, i) + 1e-3;
        const double want = pow(x, y);
        const double got = ms_exact_share_power(x, y);
        ck_assert_msg(fabs(got - want) <= 2e-15 * (1 + y * fabs(log(x))) * want + 1e-300,
                      "%a^%a: %a, want %a", x, y, got, want);
        ck_assert(got >= 0 && got <= 1);
    }
}
END_TEST

START_TEST(ends_of_powers_of_shares_are_exact)
{
    static const double powers[] = {1e-6, 0.5, 0.9, 1, 2, 99.5, 100};
    for (size_t i = 0; i < MS_ARRAY_SIZE(powers); i++) {
        ck_assert_double_eq(ms_exact_share_power(0, powers[i]), 0);
        ck_assert_double_eq(ms_exact_share_power(1, powers[i]), 1);
    }
    ck_assert_double_eq(ms_exact_share_power(0.3, 1), 0.3);
    ck_assert_double_eq(ms_exact_share_power(0x1p-40, 99.5), 0); /* 2^-3980 */
}
END_TEST

START_TEST(cos_agrees_with_libm)
{
    for (uint64_t i = 0; i < 100000; i++) {
        const double x = ms_rng_unit(5, i);
        const double want = (double)cosl(3.14159265358979323846264338327950288L * (long double)x);
        const double got = ms_exact_cos_pi(x);
        ck_assert_msg(fabs(got - want) <= 3e-16, "cos(pi %a): %a, want %a", x, got, want);
        ck_assert(got >= -1 && got <= 1);
    }
    ck_assert_double_eq(ms_exact_cos_pi(0), 1);
    ck_assert_double_eq(ms_exact_cos_pi(0.5), 0);
    ck_assert_double_eq(ms_exact_cos_pi(1), -1);
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
    tcase_add_test(tc, whole_powers_are_products);
    tcase_add_test(tc, powers_of_shares_agree_with_libm);
    tcase_add_test(tc, ends_of_powers_of_shares_are_exact);
    tcase_add_test(tc, cos_agrees_with_libm);
    tcase_add_test(tc, edges_are_what_the_standard_says);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
