/* test_kernel_softmax.c - softmax of rows: PyTorch's numbers, the formula, the same bits on any
 * team
 */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

/* PyTorch 2.15 in float64:
 *   x = torch.tensor([7 * i % 11 / 2 - 2.5 for i in range(24)]).reshape(2, 3, 2, 2)
 *   y = torch.nn.Softmax2d()(x); y.backward(dy), dy of 5 * i % 7 / 2 - 1.5 */
enum { N = 2, C = 3, S = 4, COUNT = N * C * S };
static const double torch_y[COUNT] = {
    0.0439864803, 0.366192216,  0.0439864803, 0.918422967,  0.883492074,   0.0300588876,
    0.883492074,  0.075388748,  0.0725214457, 0.603748896,  0.0725214457,  0.00618828527,
    0.366192216,  0.0439864803, 0.918422967,  0.366192216,  0.0300588876,  0.883492074,
    0.075388748,  0.0300588876, 0.603748896,  0.0725214457, 0.00618828527, 0.603748896};
static const double torch_dx[COUNT] = {
    -0.124560028, 0.226591812,   0.0226208165,  0.0204107205,  0.148621181,   0.00357034477,
    0.0126052079, -0.03601896,   -0.0240611534, -0.230162156,  -0.0352260244, 0.0156082395,
    0.226591812,  0.0226208165,  -0.221924931,  0.226591812,   0.00357034477, 0.0126052079,
    0.207949536,  0.00357034477, -0.230162156,  -0.0352260244, 0.0139753948,  -0.230162156};

/* Value (n, c, s) of images that are channels last, with `block` floats a pixel. */
static int64_t place(int64_t i, int64_t block)
{
    const int64_t s = i % S, c = i / S % C, n = i / (S * C);
    return (n * S + s) * block + c;
}

START_TEST(numbers_are_those_of_torch)
{
    const int64_t block = C + _i; /* padding behind each pixel, and none */
    const struct kernel_layout pixels = {N * S, 1, 1, block, C};
    float x[2 * COUNT] = {0}, dy[2 * COUNT] = {0}, y[2 * COUNT], dx[2 * COUNT];
    for (int64_t i = 0; i < COUNT; i++) {
        x[place(i, block)] = (float)(7 * i % 11) / 2 - 2.5F;
        dy[place(i, block)] = (float)(5 * i % 7) / 2 - 1.5F;
    }

    kernel_softmax(&pixels, x, y, 1);
    kernel_softmax_backward(&pixels, y, dy, dx, 1);

    for (int64_t i = 0; i < COUNT; i++) {
        const int64_t at = place(i, block);
        ck_assert_double_eq_tol((double)y[at], torch_y[i], 1e-7);
        ck_assert_double_eq_tol((double)dx[at], torch_dx[i], 2e-7);
    }
    for (int64_t i = 0; i < N * S && _i > 0; i++) {
        ck_assert_float_eq(y[i * block + C], 0);
        ck_assert_float_eq(dx[i * block + C], 0);
    }
}
END_TEST

static float *floats(int64_t n, uint64_t seed, double width)
{
    float *p = calloc((size_t)n, sizeof(*p));
    ck_assert_ptr_nonnull(p);
    for (int64_t i = 0; i < n; i++) {
        p[i] = (float)(width * (2 * ms_rng_unit(seed, (uint64_t)i) - 1));
    }
    return p;
}

/* Few classes, those of a whole tile, one more, several pieces. */
static const struct {
    int64_t rows, k;
} sizes[] = {{1000, 2}, {77, 10}, {3, 1024}, {5, 1025}, {4, 5000}};

static void check_row(const float *x, const float *dy, const float *y, const float *dx, int64_t k)
{
    double max = -INFINITY, sum = 0, product = 0;
    for (int64_t i = 0; i < k; i++) {
        max = fmax(max, (double)x[i]);
    }
    for (int64_t i = 0; i < k; i++) {
        sum += exp((double)x[i] - max);
    }
    for (int64_t i = 0; i < k; i++) {
        product += exp((double)x[i] - max) / sum * (double)dy[i];
    }
    for (int64_t i = 0; i < k; i++) {
        const double want = exp((double)x[i] - max) / sum;
        ck_assert_double_eq_tol((double)y[i], want, 1e-7 * want);
        ck_assert_double_eq_tol((double)dx[i], want * ((double)dy[i] - product), 4e-7 * want);
    }
}

START_TEST(rows_are_right_and_the_same_on_any_team)
{
    const int64_t rows = sizes[_i].rows, k = sizes[_i].k;
    const size_t bytes = (size_t)(rows * k) * sizeof(float);
    const struct kernel_layout layout = {rows, 1, 1, k, k};
    float *x = floats(rows * k, 1, 20), *dy = floats(rows * k, 2, 1);
    float *y = floats(rows * k, 3, 1), *dx = floats(rows * k, 4, 1);
    float *other = floats(rows * k, 5, 1);

    kernel_softmax(&layout, x, y, 1);
    kernel_softmax_backward(&layout, y, dy, dx, 1);

    for (int64_t r = 0; r < rows; r++) {
        check_row(x + r * k, dy + r * k, y + r * k, dx + r * k, k);
    }
    for (int threads = 2; threads <= 4; threads++) {
        memcpy(other, x, bytes);
        kernel_softmax(&layout, other, other, threads); /* in place */
        ck_assert_mem_eq(other, y, bytes);
        memcpy(other, dy, bytes);
        kernel_softmax_backward(&layout, y, other, other, threads);
        ck_assert_mem_eq(other, dx, bytes);
    }
    free(x);
    free(dy);
    free(y);
    free(dx);
    free(other);
}
END_TEST

START_TEST(large_values_do_not_overflow_and_a_nan_stays_in_its_row)
{
    const struct kernel_layout layout = {3, 1, 1, 3, 3};
    const float x[9] = {3e38F, -3e38F, 3e38F, 1, NAN, 2, -INFINITY, 0, 0};
    float y[9];

    kernel_softmax(&layout, x, y, 1);

    ck_assert_float_eq(y[0], 0.5F);
    ck_assert_float_eq(y[1], 0);
    ck_assert_float_eq(y[2], 0.5F);
    for (int i = 3; i < 6; i++) {
        ck_assert_float_nan(y[i]);
    }
    ck_assert_float_eq(y[6], 0);
    ck_assert_float_eq(y[7], 0.5F);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_softmax");
    TCase *tc = tcase_create("softmax");
    tcase_add_loop_test(tc, numbers_are_those_of_torch, 0, 2);
    tcase_add_loop_test(tc, rows_are_right_and_the_same_on_any_team, 0, (int)MS_ARRAY_SIZE(sizes));
    tcase_add_test(tc, large_values_do_not_overflow_and_a_nan_stays_in_its_row);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
