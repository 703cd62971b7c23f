/* test_kernel_dropout.c - dropout: its formula, the same in every layout, in place, on any team */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { N = 3, C = 20, H = 5, W = 4, S = H * W, ROOM = N * 32 * S };

static float x[ROOM], y[ROOM], z[ROOM];

/* Value (n, c, s) in memory. */
static int64_t place(const struct kernel_layout *l, int64_t n, int64_t c, int64_t s)
{
    return ((n * l->n_blocks + c / l->block) * l->spatial + s) * l->block + c % l->block;
}

static double value(int64_t n, int64_t c, int64_t s)
{
    return 2 * ms_rng_unit(5, (uint64_t)((n * C + c) * S + s)) - 1;
}

static struct kernel_layout layout_of(int64_t block)
{
    return (struct kernel_layout){N, (C + block - 1) / block, S, block, C};
}

static void fill(const struct kernel_layout *l)
{
    memset(x, 0, sizeof(x));
    memset(y, 0x7f, sizeof(y));
    for (int64_t i = 0; i < N * C * S; i++) {
        const int64_t n = i / (C * S), c = i / S % C, s = i % S;
        x[place(l, n, c, s)] = (float)value(n, c, s);
    }
}

/* nchw, nChw8c, nChw16c with padding, nhwc */
static const int64_t blocks[] = {1, 8, 16, C};

START_TEST(a_value_is_dropped_by_its_place_alone)
{
    const struct kernel_dropout d = {layout_of(blocks[_i]), 77, 1000, 0.3, KERNEL_DROP_VALUES};
    int64_t n_dropped = 0;
    fill(&d.layout);

    kernel_dropout(y, x, &d, 1);

    for (int64_t i = 0; i < N * C * S; i++) {
        const int64_t n = i / (C * S), c = i / S % C, s = i % S;
        const uint64_t stream = ms_rng_stream(77, 1000 + (uint64_t)n, 0);
        const int is_dropped = ms_rng_unit(stream, (uint64_t)(c * S + s)) < 0.3;
        const float want = is_dropped ? 0.0F : (float)value(n, c, s) * (float)(1 / 0.7);
        ck_assert_float_eq(y[place(&d.layout, n, c, s)], want);
        n_dropped += is_dropped;
    }
    const double deviation = sqrt(N * C * S * 0.3 * 0.7);
    ck_assert_double_lt(fabs((double)n_dropped - N * C * S * 0.3), 4 * deviation);
    for (int64_t c = C; c < d.layout.n_blocks * d.layout.block; c++) { /* padding */
        ck_assert_float_eq(y[place(&d.layout, N - 1, c, S - 1)], 0);
    }
}
END_TEST

/* By its channel, or its row: what is dropped is so as one. */
START_TEST(channels_and_rows_are_dropped_whole)
{
    for (int of = KERNEL_DROP_CHANNELS; of <= KERNEL_DROP_ROWS; of++) {
        const struct kernel_dropout d = {layout_of(blocks[_i]), 78, 5, 0.4, (enum kernel_drop)of};
        int n_dropped = 0;
        fill(&d.layout);

        kernel_dropout(y, x, &d, 2);

        for (int64_t i = 0; i < N * C * S; i++) {
            const int64_t n = i / (C * S), c = i / S % C, s = i % S;
            const uint64_t stream = ms_rng_stream(78, 5 + (uint64_t)n, 0);
            const uint64_t own = of == KERNEL_DROP_CHANNELS ? (uint64_t)c : 0;
            const int is_dropped = ms_rng_unit(stream, own) < 0.4;
            const float want = is_dropped ? 0.0F : (float)value(n, c, s) * (float)(1 / 0.6);
            ck_assert_float_eq(y[place(&d.layout, n, c, s)], want);
            n_dropped += is_dropped;
        }
        ck_assert_int_gt(n_dropped, 0);
        ck_assert_int_lt(n_dropped, N * C * S);
    }
}
END_TEST

START_TEST(threads_and_place_change_no_bit)
{
    const struct kernel_dropout d = {layout_of(blocks[_i]), 9, 0, 0.5, KERNEL_DROP_VALUES};
    const size_t bytes = (size_t)(N * d.layout.n_blocks * d.layout.block * S) * sizeof(float);
    fill(&d.layout);
    kernel_dropout(y, x, &d, 1);

    kernel_dropout(z, x, &d, 3);
    kernel_dropout(x, x, &d, 2);

    ck_assert_mem_eq(z, y, bytes);
    ck_assert_mem_eq(x, y, bytes);
}
END_TEST

START_TEST(draws_and_rows_differ)
{
    struct kernel_dropout d = {layout_of(1), 9, 0, 0.5, KERNEL_DROP_VALUES};
    fill(&d.layout);
    kernel_dropout(y, x, &d, 1);
    d.draw = 10;
    kernel_dropout(z, x, &d, 1);
    ck_assert_mem_ne(z, y, sizeof(float) * N * C * S);
    d = (struct kernel_dropout){layout_of(1), 9, 1, 0.5, KERNEL_DROP_VALUES};
    /* row 1 of before is its first */
    memmove(x, x + C * S, sizeof(float) * (N - 1) * C * S);
    kernel_dropout(z, x, &d, 1);
    ck_assert_mem_eq(z, y + C * S, sizeof(float) * (N - 1) * C * S);
}
END_TEST

START_TEST(ends_of_the_range)
{
    struct kernel_dropout d = {layout_of(16), 9, 0, 0, KERNEL_DROP_VALUES};
    fill(&d.layout);
    kernel_dropout(y, x, &d, 1);
    ck_assert_mem_eq(y, x, sizeof(float) * N * 2 * 16 * S); /* nothing is dropped */
    x[3] = NAN;
    d.rate = 1 - 0x1.0p-20; /* next to nothing is kept, and a NaN that is dropped is gone */
    kernel_dropout(y, x, &d, 1);
    ck_assert_float_eq(y[3], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_dropout");
    TCase *tc = tcase_create("dropout");
    tcase_add_loop_test(tc, a_value_is_dropped_by_its_place_alone, 0, 4);
    tcase_add_loop_test(tc, channels_and_rows_are_dropped_whole, 0, 4);
    tcase_add_loop_test(tc, threads_and_place_change_no_bit, 0, 4);
    tcase_add_test(tc, draws_and_rows_differ);
    tcase_add_test(tc, ends_of_the_range);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
