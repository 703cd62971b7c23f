/* test_ref.c - the oracle itself: small cases by hand, and gradients by finite differences */
#include "libworker/kernel/ref.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { MAX = 4096 };

static double noise(uint64_t stream, int64_t i)
{
    return 2 * ms_rng_unit(stream, (uint64_t)i) - 1;
}

static int64_t count(struct ref_image s)
{
    return s.n * s.c * s.h * s.w;
}

static void ck_all(const double *got, const double *want, int n)
{
    for (int i = 0; i < n; i++) {
        ck_assert_msg(fabs(got[i] - want[i]) < 1e-12, "[%d] %g, want %g", i, got[i], want[i]);
    }
}

START_TEST(convolution_of_a_small_image_by_hand)
{
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const double w[] = {1, 0, 0, -1};
    const struct ref_window valid = {2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0};
    const struct ref_window padded = {2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0};
    double y[4];

    ref_conv2d(x, (struct ref_image){1, 1, 3, 3}, w, 1, &valid, y, (struct ref_image){1, 1, 2, 2});
    ck_all(y, (const double[]){-4, -4, -4, -4}, 4);
    ref_conv2d(x, (struct ref_image){1, 1, 3, 3}, w, 1, &padded, y, (struct ref_image){1, 1, 2, 2});
    ck_all(y, (const double[]){-1, -3, -7, 5 - 9}, 4);
}
END_TEST

START_TEST(groups_holes_and_a_bias_by_hand)
{
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90};
    const double w[] = {1, 0, 0, -1, 0, 2, 0, 0}; /* two groups of one channel: (2, 1, 2, 2) */
    const double bias[] = {100, -1};
    const struct ref_window holes = {2, 2, 1, 1, 0, 0, 0, 0, 1, 1, 2};
    const struct ref_image xs = {1, 2, 3, 3}, ys = {1, 2, 1, 1};
    double y[2], db[2];

    ref_conv2d(x, xs, w, 2, &holes, y, ys);
    ck_all(y, (const double[]){1 - 9, 2 * 30}, 2);
    ref_add_bias(bias, y, ys);
    ck_all(y, (const double[]){92, 59}, 2);
    ref_bias_bwd(x, (struct ref_image){2, 2, 2, 2}, db);
    ck_all(db,
           (const double[]){1 + 2 + 3 + 4 + 9 + 10 + 20 + 30, 5 + 6 + 7 + 8 + 40 + 50 + 60 + 70},
           2);
}
END_TEST

START_TEST(channels_are_summed_and_outputs_kept_apart)
{
    const double x[] = {1, 2, 10, 20}; /* two channels of 1x2 */
    const double w[] = {1, 1, 2, -1};  /* (2, 2, 1, 1) */
    const struct ref_window one = {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0};
    double y[4];

    ref_conv2d(x, (struct ref_image){1, 2, 1, 2}, w, 2, &one, y, (struct ref_image){1, 2, 1, 2});

    ck_all(y, (const double[]){11, 22, -8, -16}, 4);
}
END_TEST

START_TEST(pools_of_a_small_image_by_hand)
{
    const double x[] = {1, 5, 2, 5, 5, 0, -3, -1, -2};
    const struct ref_window win = {2, 2, 2, 2, 0, 0, 1, 1, 0, 0, 0};
    const struct ref_image xs = {1, 1, 3, 3}, ys = {1, 1, 2, 2};
    const double dy[] = {1, 10, 100, 1000};
    double y[4], dx[9];

    ref_max_pool(x, xs, &win, y, ys);
    ck_all(y, (const double[]){5, 2, -1, -2}, 4); /* padding is -inf, not zero */
    ref_max_pool_bwd(x, xs, dy, ys, &win, dx);
    ck_all(dx, (const double[]){0, 1, 10, 0, 0, 0, 0, 100, 1000}, 9); /* the first maximum */
    ref_avg_pool(x, xs, &win, y, ys);
    ck_all(y, (const double[]){4, 1, -2, -2}, 4); /* padding is not counted */
    ref_avg_pool_bwd(dy, ys, &win, dx, xs);
    ck_all(dx, (const double[]){.25, .25, 5, .25, .25, 5, 50, 50, 1000}, 9);
}
END_TEST

START_TEST(batch_norm_of_two_values_by_hand)
{
    const double x[] = {1, 3, 10, 10}; /* n 2, c 2 : channel 0 is {1, 10} ... */
    const double gamma[] = {2, 1}, beta[] = {0.5, 0};
    double y[4], mean[2], variance[2];

    ref_batch_norm(x, (struct ref_image){2, 2, 1, 1}, gamma, beta, 1e-12, y, mean, variance);

    ck_all(mean, (const double[]){5.5, 6.5}, 2);
    ck_all(variance, (const double[]){20.25, 12.25}, 2); /* population, not sample */
    ck_all(y, (const double[]){-1.5, -1, 2.5, 1}, 4);
    ref_batch_norm_moving(x, (struct ref_image){2, 2, 1, 1}, gamma, beta, (const double[]){1, 1},
                          (const double[]){4, 4}, 0, y);
    ck_all(y, (const double[]){0.5, 1, 9.5, 4.5}, 4);
}
END_TEST

START_TEST(dense_and_losses_by_hand)
{
    const double x[] = {1, 2, 3, 4}, w[] = {1, 0, 0, 1, 1, 1}, b[] = {0, 10, 100};
    const double logits[] = {0, 0, log(3.0), 0};
    const int32_t labels[] = {1, 0};
    double y[6], grad[4];

    ref_dense(x, w, b, 2, 2, 3, y);
    ck_all(y, (const double[]){1, 12, 103, 3, 14, 107}, 6);
    ck_assert_double_eq_tol(ref_softmax_ce(logits, labels, 2, 2, 0, grad),
                            (log(2.0) + log(4.0 / 3)) / 2, 1e-14);
    ck_all(grad, (const double[]){.25, -.25, -.125, .125}, 4);
    ck_assert_double_eq_tol(ref_mse(x, logits, 2, 2, grad), (1 + 4 + pow(3 - log(3.0), 2) + 16) / 4,
                            1e-14);
    ck_all(grad, (const double[]){.5, 1, (3 - log(3.0)) / 2, 2}, 4);
}
END_TEST

START_TEST(cross_entropy_survives_huge_logits)
{
    const double logits[] = {1e4, -1e4, 0};
    const int32_t label[] = {1};
    double grad[3];

    ck_assert_double_eq_tol(ref_softmax_ce(logits, label, 1, 3, 0, grad), 2e4, 1e-9);
    ck_all(grad, (const double[]){1, -1, 0}, 3);
}
END_TEST

/* ---- finite differences: loss = sum of r y for fixed random r, so dy = r -----------------------
 */

typedef double loss_fn(void *arg);

static void ck_gradient(double *value, const double *grad, int64_t n, loss_fn *loss, void *arg)
{
    for (int64_t i = 0; i < n; i++) {
        double kept = value[i];
        value[i] = kept + 1e-5;
        double up = loss(arg);
        value[i] = kept - 1e-5;
        double down = loss(arg);
        value[i] = kept;
        double want = (up - down) / 2e-5;
        ck_assert_msg(fabs(grad[i] - want) < 1e-8 + 1e-7 * fabs(want), "[%lld] %.12g, want %.12g",
                      (long long)i, grad[i], want);
    }
}

struct image_case {
    struct ref_image xs, ys;
    struct ref_window win;
};

static const struct image_case image_cases[] = {
    {{2, 3, 5, 4}, {2, 4, 5, 4}, {3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0}},
    {{1, 2, 7, 6}, {1, 3, 3, 2}, {3, 3, 2, 3, 0, 1, 1, 0, 0, 0, 0}},
    {{2, 2, 4, 4}, {2, 2, 2, 2}, {1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0}},
    {{1, 1, 6, 5}, {1, 2, 2, 1}, {5, 4, 1, 2, 0, 0, 0, 0, 0, 0, 0}},
};

static const struct image_case conv_cases[] = {
    {{2, 4, 5, 4}, {2, 6, 5, 4}, {3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 2}},
    {{1, 3, 7, 6}, {1, 3, 4, 4}, {3, 2, 1, 1, 0, 1, 1, 0, 1, 2, 3}},
    {{2, 2, 8, 7}, {2, 4, 3, 2}, {2, 3, 2, 3, 0, 0, 0, 0, 2, 1, 1}},
};

static double x[MAX], w[MAX], y[MAX], dy[MAX], dx[MAX], dw[MAX];

static double dot(int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += y[i] * dy[i];
    }
    return sum;
}

static void fill(void)
{
    for (int64_t i = 0; i < MAX; i++) {
        x[i] = noise(1, i);
        w[i] = noise(2, i);
        dy[i] = noise(3, i);
    }
}

static double conv_loss(void *arg)
{
    const struct image_case *c = arg;
    ref_conv2d(x, c->xs, w, c->ys.c, &c->win, y, c->ys);
    return dot(count(c->ys));
}

static double max_loss(void *arg)
{
    const struct image_case *c = arg;
    struct ref_image ys = {c->ys.n, c->xs.c, c->ys.h, c->ys.w};
    ref_max_pool(x, c->xs, &c->win, y, ys);
    return dot(count(ys));
}

static double avg_loss(void *arg)
{
    const struct image_case *c = arg;
    struct ref_image ys = {c->ys.n, c->xs.c, c->ys.h, c->ys.w};
    ref_avg_pool(x, c->xs, &c->win, y, ys);
    return dot(count(ys));
}

static void ck_conv(struct image_case c)
{
    int64_t reads = c.xs.c / (c.win.groups > 0 ? c.win.groups : 1);
    int64_t weights = c.ys.c * reads * c.win.kernel_h * c.win.kernel_w;
    fill();

    ref_conv2d_bwd_data(dy, c.ys, w, &c.win, dx, c.xs);
    ck_gradient(x, dx, count(c.xs), conv_loss, &c);
    ref_conv2d_bwd_weights(x, c.xs, dy, c.ys, &c.win, dw);
    ck_gradient(w, dw, weights, conv_loss, &c);
}

START_TEST(gradients_of_windows_agree_with_differences)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(conv_cases); i++) {
        ck_conv(conv_cases[i]);
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(image_cases); i++) {
        struct image_case c = image_cases[i];
        struct ref_image pooled = {c.ys.n, c.xs.c, c.ys.h, c.ys.w};
        ck_conv(c);
        ref_max_pool_bwd(x, c.xs, dy, pooled, &c.win, dx);
        ck_gradient(x, dx, count(c.xs), max_loss, &c);
        ref_avg_pool_bwd(dy, pooled, &c.win, dx, c.xs);
        ck_gradient(x, dx, count(c.xs), avg_loss, &c);
    }
}
END_TEST

static double mean[8], variance[8];

static double norm_loss(void *arg)
{
    struct ref_image xs = *(const struct ref_image *)arg;
    ref_batch_norm(x, xs, w, w + 8, 1e-3, y, mean, variance);
    return dot(count(xs));
}

START_TEST(gradients_of_batch_norm_agree_with_differences)
{
    struct ref_image xs = {3, 4, 2, 3};
    double dgamma[8], dbeta[8];
    fill();

    norm_loss(&xs);
    ref_batch_norm_bwd(x, xs, dy, w, mean, variance, 1e-3, dx, dgamma, dbeta);

    ck_gradient(x, dx, count(xs), norm_loss, &xs);
    ck_gradient(w, dgamma, xs.c, norm_loss, &xs);
    ck_gradient(w + 8, dbeta, xs.c, norm_loss, &xs);
}
END_TEST

enum { ROWS = 3, IN = 5, OUT = 4 };

static double dense_loss(void *arg)
{
    (void)arg;
    ref_dense(x, w, w + IN * OUT, ROWS, IN, OUT, y);
    return dot(ROWS * OUT);
}

static double ce_loss(void *arg)
{
    return ref_softmax_ce(x, arg, ROWS, IN, 0, NULL);
}

static double mse_loss(void *arg)
{
    return ref_mse(x, arg, ROWS, IN, NULL);
}

static double l1_loss(void *arg)
{
    return ref_l1(x, arg, ROWS, IN, NULL);
}

static double huber_loss(void *arg)
{
    return ref_huber(x, arg, ROWS, IN, 0.3, NULL);
}

static double bce_loss(void *arg)
{
    return ref_bce(x, arg, ROWS, IN, NULL);
}

START_TEST(gradients_of_dense_and_losses_agree_with_differences)
{
    int32_t labels[ROWS] = {4, 0, 2};
    double db[OUT];
    fill();

    ref_dense_bwd_data(dy, w, ROWS, IN, OUT, dx);
    ck_gradient(x, dx, ROWS * IN, dense_loss, NULL);
    ref_dense_bwd_weights(x, dy, ROWS, IN, OUT, dw, db);
    ck_gradient(w, dw, IN * OUT, dense_loss, NULL);
    ck_gradient(w + IN * OUT, db, OUT, dense_loss, NULL);
    ref_softmax_ce(x, labels, ROWS, IN, 0, dx);
    ck_gradient(x, dx, ROWS * IN, ce_loss, labels);
    ref_mse(x, w, ROWS, IN, dx);
    ck_gradient(x, dx, ROWS * IN, mse_loss, w);
    ref_l1(x, w, ROWS, IN, dx);
    ck_gradient(x, dx, ROWS * IN, l1_loss, w);
    ref_huber(x, w, ROWS, IN, 0.3, dx);
    ck_gradient(x, dx, ROWS * IN, huber_loss, w);
    ref_bce(x, w, ROWS, IN, dx);
    ck_gradient(x, dx, ROWS * IN, bce_loss, w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ref");
    TCase *tc = tcase_create("ref");
    tcase_add_test(tc, convolution_of_a_small_image_by_hand);
    tcase_add_test(tc, groups_holes_and_a_bias_by_hand);
    tcase_add_test(tc, channels_are_summed_and_outputs_kept_apart);
    tcase_add_test(tc, pools_of_a_small_image_by_hand);
    tcase_add_test(tc, batch_norm_of_two_values_by_hand);
    tcase_add_test(tc, dense_and_losses_by_hand);
    tcase_add_test(tc, cross_entropy_survives_huge_logits);
    tcase_add_test(tc, gradients_of_windows_agree_with_differences);
    tcase_add_test(tc, gradients_of_batch_norm_agree_with_differences);
    tcase_add_test(tc, gradients_of_dense_and_losses_agree_with_differences);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
