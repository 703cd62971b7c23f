/* test_mixup.c - which samples are mixed, and how much of each: shares are those of the
 * distribution */
#include "libworker/data/mixup.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

enum { DRAWS = 20000, ROWS = 1000 };

static double shares[DRAWS];

static void draw_all(double alpha)
{
    for (int i = 0; i < DRAWS; i++) {
        shares[i] = (double)mixup_draw(alpha, 7, (uint64_t)(i / ROWS), i % ROWS, ROWS).share;
        ck_assert(shares[i] >= 0 && shares[i] <= 1);
    }
}

/* Beta(a, a) has the mean 1 / 2 and the variance 1 / (4 (2 a + 1)). */
START_TEST(shares_have_the_mean_and_the_variance)
{
    static const double alphas[] = {1e-310, 0.05, 0.2, 0.4, 1, 1.5, 4, 100};
    for (size_t i = 0; i < MS_ARRAY_SIZE(alphas); i++) {
        const double want = 1 / (4 * (2 * alphas[i] + 1));
        double mean = 0;
        double variance = 0;
        draw_all(alphas[i]);
        for (int k = 0; k < DRAWS; k++) {
            mean += shares[k] / DRAWS;
        }
        for (int k = 0; k < DRAWS; k++) {
            variance += (shares[k] - mean) * (shares[k] - mean) / DRAWS;
        }
        ck_assert_double_eq_tol(mean, 0.5, 4 * sqrt(want / DRAWS));
        ck_assert_double_eq_tol(variance, want, 0.05 * want);
    }
}
END_TEST

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double arcsine(double x)
{
    return 2 / 3.14159265358979323846 * asin(sqrt(x));
}

static double uniform(double x)
{
    return x;
}

static double parabola(double x)
{
    return x * x * (3 - 2 * x);
}

/* Kolmogorov and Smirnov: above 1.63 / sqrt(n) in one of a hundred samples. */
START_TEST(shares_are_distributed_as_beta)
{
    static const struct {
        double alpha;
        double (*below)(double x);
    } known[] = {{0.5, arcsine}, {1, uniform}, {2, parabola}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(known); i++) {
        double worst = 0;
        draw_all(known[i].alpha);
        qsort(shares, DRAWS, sizeof(*shares), compare);
        for (int k = 0; k < DRAWS; k++) {
            worst = fmax(worst, fabs(known[i].below(shares[k]) - (k + 0.5) / DRAWS));
        }
        ck_assert_double_lt(worst, 1.63 / sqrt(DRAWS));
    }
}
END_TEST

START_TEST(draws_are_functions_of_seed_epoch_and_record)
{
    const struct mixup one = mixup_draw(0.2, 1, 2, 3, ROWS);
    const struct mixup again = mixup_draw(0.2, 1, 2, 3, ROWS);
    const struct mixup others[] = {mixup_draw(0.2, 2, 2, 3, ROWS), mixup_draw(0.2, 1, 3, 3, ROWS),
                                   mixup_draw(0.2, 1, 2, 4, ROWS)};
    ck_assert(one.share == again.share && one.other == again.other);
    for (int i = 0; i < 3; i++) {
        ck_assert(one.share != others[i].share && one.other != others[i].other);
    }
}
END_TEST

START_TEST(any_record_may_be_the_other_one)
{
    int times[10] = {0};
    for (int i = 0; i < ROWS; i++) {
        const struct mixup mixup = mixup_draw(1, 5, 0, i, 10);
        ck_assert(mixup.other >= 0 && mixup.other < 10);
        times[mixup.other]++;
    }
    for (int i = 0; i < 10; i++) {
        ck_assert(times[i] > 60 && times[i] < 140);
    }
    ck_assert_int_eq(mixup_draw(1, 5, 0, 0, 1).other, 0);
}
END_TEST

START_TEST(values_are_mixed_by_the_share)
{
    float a[] = {1, -2, 8};
    const float b[] = {3, 2, 0};
    mixup_values(a, b, 3, 0.75F);
    ck_assert_float_eq(a[0], 1.5F);
    ck_assert_float_eq(a[1], -1);
    ck_assert_float_eq(a[2], 6);
    mixup_values(a, b, 3, 1);
    ck_assert_float_eq(a[2], 6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mixup");
    TCase *tc = tcase_create("mixup");
    tcase_add_test(tc, shares_have_the_mean_and_the_variance);
    tcase_add_test(tc, shares_are_distributed_as_beta);
    tcase_add_test(tc, draws_are_functions_of_seed_epoch_and_record);
    tcase_add_test(tc, any_record_may_be_the_other_one);
    tcase_add_test(tc, values_are_mixed_by_the_share);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
