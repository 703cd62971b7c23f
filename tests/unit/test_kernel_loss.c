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
    ck_assert(isnan(kernel_l1(a, b, N, K, grad)) && isnan(grad[5]));
    ck_assert(isnan(kernel_huber(a, b, N, K, 1, grad)) && isnan(grad[5]));
    ck_assert(isnan(kernel_bce(a, b, N, K, grad)) && isnan(grad[5]));
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

START_TEST(losses_of_targets_agree_with_the_reference)
{
    a[7] = b[7]; /* a kink */
    da[7] = db[7];
    double loss = ref_l1(da, db, N, K, want);
    ck_assert_double_eq(want[7], 0);
    ck_assert_double_eq_tol(kernel_l1(a, b, N, K, grad), loss, 1e-12);
    ck_grad();
    ck_assert_double_eq_tol(kernel_l1(a, b, N, K, NULL), loss, 1e-12);
    for (int i = 0; i < 3; i++) {
        const double delta = i == 0 ? 0.1 : i == 1 ? 1 : 30;
        loss = ref_huber(da, db, N, K, delta, want);
        ck_assert_double_eq_tol(kernel_huber(a, b, N, K, delta, grad), loss, 1e-11);
        ck_grad();
        ck_assert_double_eq_tol(kernel_huber(a, b, N, K, delta, NULL), loss, 1e-11);
    }
    loss = ref_bce(da, db, N, K, want);
    ck_assert_double_eq_tol(kernel_bce(a, b, N, K, grad), loss, 1e-12);
    ck_grad();
    ck_assert_double_eq_tol(kernel_bce(a, b, N, K, NULL), loss, 1e-12);
}
END_TEST

/* torch 2.15, float64: torch.nn.L1Loss(), HuberLoss(delta=0.5), HuberLoss(delta=2.0),
 * BCEWithLogitsLoss() of y and t, and y.grad after backward(). */
START_TEST(losses_of_targets_are_those_of_torch)
{
    enum { L1, HUBER_HALF, HUBER_TWO, BCE, LOSSES };
    static const float y[] = {2.5F, -1.25F, 0, 40, -60, 0.75F};
    static const float t[] = {1, 0, 1, 0.25F, 0, 1};
    static const struct {
        double loss, grad[6];
    } torch[LOSSES] = {
        {17.291666666666668, {1 / 6.0, -1 / 6.0, -1 / 6.0, 1 / 6.0, -1 / 6.0, -1 / 6.0}},
        {8.526041666666666,
         {0.08333333333333333, -0.08333333333333333, -0.08333333333333333, 0.08333333333333333,
          -0.08333333333333333, -0.041666666666666664}},
        {32.989583333333336,
         {0.25, -0.20833333333333331, -0.16666666666666666, 0.3333333333333333, -0.3333333333333333,
          -0.041666666666666664}},
        {5.235139500385461,
         {-0.012643030003540575, 0.03711668980421814, -0.08333333333333333, 0.125,
          1.45941846044942e-27, -0.05347021680410117}}};
    for (int i = 0; i < LOSSES; i++) {
        const double loss = i == L1           ? kernel_l1(y, t, 2, 3, grad)
                            : i == HUBER_HALF ? kernel_huber(y, t, 2, 3, 0.5, grad)
                            : i == HUBER_TWO  ? kernel_huber(y, t, 2, 3, 2, grad)
                                              : kernel_bce(y, t, 2, 3, grad);
        ck_assert_double_eq_tol(loss, torch[i].loss, 1e-14 * torch[i].loss);
        for (int j = 0; j < 6; j++) {
            ck_assert_msg(fabs((double)grad[j] - torch[i].grad[j]) <= 1e-7 * fabs(torch[i].grad[j]),
                          "loss %d, [%d]: %.9g, want %.17g", i, j, (double)grad[j],
                          torch[i].grad[j]);
        }
    }
}
END_TEST

START_TEST(huge_logits_have_a_finite_entropy)
{
    static const float y[] = {3e38F, -3e38F, INFINITY};
    static const float t[] = {0, 1, 1};
    ck_assert_double_eq_tol(kernel_bce(y, t, 1, 2, grad), 3e38, 1e32);
    ck_assert_float_eq(grad[0], 0.5F);
    ck_assert_float_eq(grad[1], -0.5F);
    ck_assert(isnan(kernel_bce(y + 2, t + 2, 1, 1, grad))); /* inf - inf: it shows */
}
END_TEST

START_TEST(sides_of_all_values_of_a_row_count)
{
    static const float logits[] = {1, -1, 0, 2, -0.5F, 3};
    static const float targets[] = {1, 0, 0.5F, 0.9F, 1, 1};
    ck_assert_int_eq(kernel_count_sides(logits, targets, 3, 2), 2);
    ck_assert_int_eq(kernel_count_sides(logits, targets, 2, 3), 1);
    ck_assert_int_eq(kernel_count_sides(logits, targets, 6, 1), 5);
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
    tcase_add_test(tc, losses_of_targets_agree_with_the_reference);
    tcase_add_test(tc, losses_of_targets_are_those_of_torch);
    tcase_add_test(tc, huge_logits_have_a_finite_entropy);
    tcase_add_test(tc, sides_of_all_values_of_a_row_count);
    tcase_add_test(tc, correct_answers_are_first_maxima);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
