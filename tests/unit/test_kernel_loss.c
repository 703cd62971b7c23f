/* test_kernel_loss.c - losses and their gradients against the reference in double */
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/ref.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { N = 37, K = 11 };

static float a[N * K], b[N * K], grad[N * K];
static double da[N * K], db[N * K], want[N * K];
static int32_t labels[N];

static void setup(void)
{
    for (uint64_t i = 0; i < (uint64_t)N * K; i++) {
        a[i] = (float)(2 * ms_rng_unit(1, i) - 1) * 9;
        b[i] = (float)(2 * ms_rng_unit(2, i) - 1);
        da[i] = (double)a[i];
        db[i] = (double)b[i];
    }
    for (uint64_t i = 0; i < N; i++) {
        labels[i] = (int32_t)ms_rng_below(3, i, K);
    }
}

static void ck_grad(void)
{
    for (int i = 0; i < N * K; i++) {
        ck_assert_msg(fabs((double)grad[i] - want[i]) < 1e-7 * fabs(want[i]) + 1e-12,
                      "[%d] %.9g, want %.9g", i, (double)grad[i], want[i]);
    }
}

START_TEST(cross_entropy_agrees_with_the_reference)
{
    double loss = ref_softmax_ce(da, labels, N, K, 0, want);

    ck_assert_double_eq_tol(kernel_softmax_ce(a, labels, N, K, 0, grad, 1), loss, 1e-13);
    ck_grad();
    ck_assert_double_eq_tol(kernel_softmax_ce(a, labels, N, K, 0, NULL, 1), loss, 1e-13);
}
END_TEST

START_TEST(cross_entropy_agrees_beyond_the_exponentials_that_are_kept)
{
    ck_assert_int_gt(N * K, 256); /* one row of so many classes */
    double loss = ref_softmax_ce(da, labels, 1, N * K, 0, want);

    ck_assert_double_eq_tol(kernel_softmax_ce(a, labels, 1, N * K, 0, grad, 1), loss, 1e-13);
    ck_grad();
}
END_TEST

/* Short rows and one that is computed in pieces. */
START_TEST(smoothed_labels_agree_with_the_reference)
{
    for (int as_one = 0; as_one < 2; as_one++) {
        const int n = as_one ? 1 : N;
        const int k = as_one ? N * K : K;
        const double plain = kernel_softmax_ce(a, labels, n, k, 0, NULL, 1);
        const double loss = ref_softmax_ce(da, labels, n, k, 0.1, want);

        ck_assert_double_eq_tol(kernel_softmax_ce(a, labels, n, k, 0.1, grad, 1), loss, 1e-13);
        ck_grad();
        ck_assert_double_eq_tol(kernel_softmax_ce(a, labels, n, k, 0.1, NULL, 3), loss, 1e-13);
        ck_assert_double_ne(loss, plain);
    }
}
END_TEST

START_TEST(cross_entropy_survives_huge_logits_and_one_class)
{
    const float huge[] = {3e38F, -3e38F, 0};
    const int32_t second[] = {1}, first[] = {0};

    double loss = kernel_softmax_ce(huge, second, 1, 3, 0, grad, 1);

    ck_assert_double_eq_tol(loss, 6e38, 1e32);
    ck_assert_float_eq(grad[0], 1);
    ck_assert_float_eq(grad[1], -1);
    ck_assert_float_eq(grad[2], 0);
    ck_assert_double_eq(kernel_softmax_ce(huge, first, 1, 1, 0, grad, 1), 0);
    ck_assert_float_eq(grad[0], 0);
}
END_TEST

START_TEST(a_nan_in_the_logits_shows_in_the_loss)
{
    a[5] = NAN;
    ck_assert(isnan(kernel_softmax_ce(a, labels, N, K, 0, grad, 1)));
    ck_assert(isnan(kernel_mse(a, b, N, K, grad)));
}
END_TEST

START_TEST(mean_squared_error_agrees_with_the_reference)
{
    double loss = ref_mse(da, db, N, K, want);

    ck_assert_double_eq_tol(kernel_mse(a, b, N, K, grad), loss, 1e-11);
    ck_grad();
    ck_assert_double_eq_tol(kernel_mse(a, b, N, K, NULL), loss, 1e-11);
}
END_TEST

START_TEST(correct_answers_are_first_maxima)
{
    const float rows[] = {1, 3, 3, 5, 2, 1, 0, 0, 0, -1, -2, -0.5F};
    const int32_t right[] = {1, 0, 0, 2}, wrong[] = {2, 1, 1, 0};

    ck_assert_int_eq(kernel_count_correct(rows, right, 4, 3), 4);
    ck_assert_int_eq(kernel_count_correct(rows, wrong, 4, 3), 0);
    ck_assert_int_eq(kernel_count_correct(rows, right, 0, 3), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_loss");
    TCase *tc = tcase_create("loss");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, cross_entropy_agrees_with_the_reference);
    tcase_add_test(tc, cross_entropy_agrees_beyond_the_exponentials_that_are_kept);
    tcase_add_test(tc, smoothed_labels_agree_with_the_reference);
    tcase_add_test(tc, cross_entropy_survives_huge_logits_and_one_class);
    tcase_add_test(tc, a_nan_in_the_logits_shows_in_the_loss);
    tcase_add_test(tc, mean_squared_error_agrees_with_the_reference);
    tcase_add_test(tc, correct_answers_are_first_maxima);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
