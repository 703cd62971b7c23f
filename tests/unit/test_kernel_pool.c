/* test_kernel_pool.c - max pooling against the definition, element by element */
#include "libworker/kernel/pool.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { FLOATS_MAX = 3 * 14 * 14 * 24, TRIES = 64 };

static float x[FLOATS_MAX], dx[FLOATS_MAX], y[FLOATS_MAX], dy[FLOATS_MAX];
static uint8_t places[FLOATS_MAX];

static struct pool_shape random_shape(uint64_t try)
{
    static const int64_t blocks[] = {1, 8, 16, 16, 24};
    return (struct pool_shape){.planes = 1 + (int64_t)ms_rng_below(1, try, 3),
                               .h = 4 + (int64_t)ms_rng_below(2, try, 11),
                               .w = 4 + (int64_t)ms_rng_below(3, try, 11),
                               .block = blocks[ms_rng_below(4, try, 5)],
                               .kernel = 1 + (int64_t)ms_rng_below(5, try, POOL_KERNEL_MAX)};
}

/* Few values, so that a window has several maxima: the first one counts. */
static void fill(uint64_t try)
{
    for (uint64_t i = 0; i < FLOATS_MAX; i++) {
        x[i] = (float)ms_rng_below(100 + try, i, 7);
        dy[i] = 1.0F + (float)ms_rng_below(200 + try, i, 1000);
        dx[i] = y[i] = NAN;
    }
}

/* Where in its window the (first) maximum of output (plane, i, j, lane) is; ret_at: its place in x.
 */
static int64_t first_maximum(const struct pool_shape *s, int64_t plane, int64_t i, int64_t j,
                             int64_t lane, int64_t *ret_at)
{
    int64_t best = -1;
    for (int64_t t = 0; t < s->kernel * s->kernel; t++) {
        int64_t row = i * s->kernel + t / s->kernel;
        int64_t column = j * s->kernel + t % s->kernel;
        int64_t at = ((plane * s->h + row) * s->w + column) * s->block + lane;
        if (best < 0 || x[at] > x[*ret_at]) {
            best = t;
            *ret_at = at;
        }
    }
    return best;
}

static void check(const struct pool_shape *s)
{
    static float want[FLOATS_MAX];
    memset(want, 0, sizeof(want));
    int64_t out_h = s->h / s->kernel;
    int64_t out_w = s->w / s->kernel;
    for (int64_t k = 0; k < s->planes * out_h * out_w * s->block; k++) {
        int64_t lane = k % s->block;
        int64_t window = k / s->block;
        int64_t at = 0;
        int64_t place = first_maximum(s, window / (out_h * out_w), window / out_w % out_h,
                                      window % out_w, lane, &at);
        ck_assert_float_eq(y[k], x[at]);
        ck_assert_int_eq(places[k], place);
        want[at] = dy[k];
    }
    size_t count = (size_t)(s->planes * s->h * s->w * s->block);
    ck_assert_mem_eq(dx, want, count * sizeof(float));
    ck_assert(count == FLOATS_MAX || isnan(dx[count]));
}

START_TEST(windows_give_their_first_maximum_and_it_alone_the_gradient)
{
    for (uint64_t try = 0; try < TRIES; try++) {
        struct pool_shape shape = random_shape(try);
        for (int threads = 1; threads <= 2; threads++) {
            fill(try);

            pool_max(&shape, x, y, places, threads);
            pool_max_backward(&shape, places, dy, dx, threads);

            check(&shape);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_pool");
    TCase *tc = tcase_create("pools");
    tcase_add_test(tc, windows_give_their_first_maximum_and_it_alone_the_gradient);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
