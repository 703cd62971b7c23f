/* test_kernel_resample.c - images of another size: each pixel by its definition, in each layout */
#include "libworker/kernel/kernel.h"
#include "tests/test.h"

#include <math.h>

enum { PLANES = 3, FLOATS_MAX = PLANES * 12 * 15 * 16 };

static const struct kernel_resample cases[] = {
    {.by = KERNEL_PAD, .h = 4, .w = 5, .y_h = 7, .y_w = 7, .top = 2, .left = 0},
    {.by = KERNEL_PAD, .h = 1, .w = 2, .y_h = 1, .y_w = 5, .top = 0, .left = 3},
    {.by = KERNEL_NEAREST, .h = 4, .w = 5, .y_h = 12, .y_w = 10},
    {.by = KERNEL_LINEAR, .h = 4, .w = 5, .y_h = 8, .y_w = 15},
    {.by = KERNEL_LINEAR, .h = 1, .w = 1, .y_h = 3, .y_w = 2},
    {.by = KERNEL_LINEAR_CORNERS, .h = 4, .w = 5, .y_h = 8, .y_w = 15},
    {.by = KERNEL_LINEAR_CORNERS, .h = 1, .w = 3, .y_h = 1, .y_w = 6},
};
static const int64_t blocks[] = {1, 7, 16};
enum { N_CASES = 7, N_BLOCKS = 3 };

static double value(int64_t i)
{
    return (double)(i * 37 % 101) / 16 - 3;
}

/* How much of place k of n is in place i of n_out. */
static double part(const struct kernel_resample *of, int64_t i, int64_t n, int64_t n_out,
                   int64_t before, int64_t k)
{
    const double corners = n_out > 1 ? (double)(i * (n - 1)) / (double)(n_out - 1) : 0;
    const double centre = ((double)i + 0.5) * (double)n / (double)n_out - 0.5;
    const double place = of->by == KERNEL_LINEAR_CORNERS ? corners : centre;
    return of->by == KERNEL_PAD ? i - before == k
           : of->by == KERNEL_NEAREST
               ? i * n / n_out == k
               : fmax(0, 1 - fabs(fmin(fmax(place, 0), (double)(n - 1)) - (double)k));
}

/* Of y from x, or of dx from dy. */
static double wanted(const struct kernel_resample *of, int64_t at, int is_backward)
{
    const int64_t from_h = is_backward ? of->y_h : of->h, from_w = is_backward ? of->y_w : of->w;
    const int64_t to_h = is_backward ? of->h : of->y_h, to_w = is_backward ? of->w : of->y_w;
    const int64_t block = of->of_x.block;
    const int64_t pixel = at / block, lane = at % block;
    const int64_t plane = pixel / (to_h * to_w), i = pixel / to_w % to_h, j = pixel % to_w;
    double sum = 0;
    for (int64_t k = 0; k < from_h * from_w; k++) {
        const int64_t row = k / from_w, column = k % from_w;
        const double share = is_backward ? part(of, row, of->h, of->y_h, of->top, i) *
                                               part(of, column, of->w, of->y_w, of->left, j)
                                         : part(of, i, of->h, of->y_h, of->top, row) *
                                               part(of, j, of->w, of->y_w, of->left, column);
        sum += share * (double)(float)value((plane * from_h * from_w + k) * block + lane);
    }
    return sum;
}

START_TEST(each_pixel_is_what_it_is_defined_as)
{
    static float from[FLOATS_MAX], to[FLOATS_MAX];
    struct kernel_resample of = cases[_i / N_BLOCKS];
    const int64_t block = blocks[_i % N_BLOCKS];
    of.of_x = (struct kernel_layout){PLANES, 1, of.h * of.w, block, block};
    of.of_y = (struct kernel_layout){PLANES, 1, of.y_h * of.y_w, block, block};
    for (int64_t i = 0; i < FLOATS_MAX; i++) {
        from[i] = (float)value(i);
    }
    for (int threads = 1; threads <= 3; threads += 2) {
        for (int is_backward = 0; is_backward <= 1; is_backward++) {
            memset(to, 0xff, sizeof(to)); /* all is written */
            if (is_backward) {
                kernel_resample_backward(to, from, &of, threads);
            } else {
                kernel_resample(to, from, &of, threads);
            }

            const int64_t pixels = is_backward ? of.h * of.w : of.y_h * of.y_w;
            for (int64_t at = 0; at < PLANES * pixels * block; at++) {
                ck_assert_double_eq_tol(to[at], wanted(&of, at, is_backward), 1e-5);
            }
        }
    }
}
END_TEST

/* One channel of two in a layout with more of them, and one of which each pixel has its own. */
START_TEST(layouts_may_differ)
{
    const float x[4] = {1, 2, 3, 4}; /* channels 0 and 1 side by side, of one pixel, and padding */
    float y[4], dx[4];
    const struct kernel_resample of = {.by = KERNEL_NEAREST,
                                       .of_x = {1, 1, 1, 4, 4},
                                       .of_y = {1, 2, 2, 1, 2},
                                       .h = 1,
                                       .w = 1,
                                       .y_h = 1,
                                       .y_w = 2};

    kernel_resample(y, x, &of, 1);
    kernel_resample_backward(dx, y, &of, 1);

    const float want_y[4] = {1, 1, 2, 2}, want_dx[4] = {2, 4, 0, 0};
    for (int i = 0; i < 4; i++) {
        ck_assert_float_eq(y[i], want_y[i]);
        ck_assert_float_eq(dx[i], want_dx[i]);
    }
}
END_TEST

/* Zeros that are put around are those of no pixel. */
START_TEST(an_infinite_pixel_stays_where_it_is)
{
    const float x[2] = {INFINITY, 1};
    float y[4];
    const struct kernel_resample of = {.by = KERNEL_PAD,
                                       .of_x = {1, 1, 2, 1, 1},
                                       .of_y = {1, 1, 4, 1, 1},
                                       .h = 1,
                                       .w = 2,
                                       .y_h = 1,
                                       .y_w = 4,
                                       .left = 1};

    kernel_resample(y, x, &of, 1);

    ck_assert_float_eq(y[0], 0);
    ck_assert(isinf(y[1]));
    ck_assert_float_eq(y[2], 1);
    ck_assert_float_eq(y[3], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_resample");
    TCase *tcase = tcase_create("resample");
    tcase_add_loop_test(tcase, each_pixel_is_what_it_is_defined_as, 0, N_CASES * N_BLOCKS);
    tcase_add_test(tcase, layouts_may_differ);
    tcase_add_test(tcase, an_infinite_pixel_stays_where_it_is);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
