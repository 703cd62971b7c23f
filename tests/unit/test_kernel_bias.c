/* test_kernel_bias.c - a value of each channel: added or multiplied, and summed up, the same in
 * every layout, on any team, in place */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { N = 5, C = 70, S = 37, COUNT = N * C * S, ROOM = N * 80 * S };

static float x[ROOM], y[ROOM], z[ROOM], bias[C], db[C], first[C];
static _Alignas(64) char scratch[2 * N * 80 * sizeof(double)];

static int64_t place(const struct kernel_layout *l, int64_t i)
{
    const int64_t s = i % S, c = i / S % C, n = i / (S * C);
    return ((n * l->n_blocks + c / l->block) * S + s) * l->block + c % l->block;
}

/* nchw, nChw8c and nChw16c with padding, nhwc in two slices */
static const int64_t blocks[] = {1, 8, 16, C};

static struct kernel_layout layout_of(int64_t block)
{
    return (struct kernel_layout){N, (C + block - 1) / block, S, block, C};
}

static void fill(const struct kernel_layout *l)
{
    memset(x, 0, sizeof(x));
    for (int64_t i = 0; i < COUNT; i++) {
        x[place(l, i)] = (float)(2 * ms_rng_unit(1, (uint64_t)i) - 0.9);
    }
    for (uint64_t c = 0; c < C; c++) {
        bias[c] = (float)(2 * ms_rng_unit(2, c) - 1);
    }
}

START_TEST(each_channel_gets_its_value)
{
    const struct kernel_layout l = layout_of(blocks[_i]);
    for (int threads = 1; threads <= 3; threads++) {
        fill(&l);
        float *to = threads == 2 ? x : y;
        memset(y, 0x7f, sizeof(y));

        kernel_bias(to, x, bias, &l, threads);

        for (int64_t i = 0; i < COUNT; i++) {
            const float was = (float)(2 * ms_rng_unit(1, (uint64_t)i) - 0.9);
            ck_assert_float_eq(to[place(&l, i)], was + bias[i / S % C]);
        }
        for (int64_t c = C; c < l.n_blocks * l.block; c++) { /* padding */
            ck_assert_float_eq(to[((l.n_blocks - 1) * S + 3) * l.block + c % l.block], 0);
        }
    }
}
END_TEST

START_TEST(gradients_have_the_same_bits_in_every_layout_and_on_any_team)
{
    for (int b = 0; b < 4; b++) {
        const struct kernel_layout l = layout_of(blocks[b]);
        fill(&l);
        ck_assert_uint_le(kernel_bias_scratch(&l), sizeof(scratch));
        for (int threads = 1; threads <= 4; threads++) {
            kernel_bias_backward(db, x, &l, scratch, threads);
            if (b == 0 && threads == 1) {
                memcpy(first, db, sizeof(db));
            }
            ck_assert_mem_eq(db, first, sizeof(db));
        }
    }
    for (int64_t c = 0; c < C; c++) {
        double sum = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            sum += i / S % C == c ? (double)(float)(2 * ms_rng_unit(1, (uint64_t)i) - 0.9) : 0;
        }
        ck_assert_double_eq_tol((double)first[c], sum, 1e-6 * (1 + fabs(sum)));
    }
}
END_TEST

START_TEST(each_channel_is_multiplied_by_its_value)
{
    const struct kernel_layout l = layout_of(blocks[_i]);
    for (int threads = 1; threads <= 3; threads++) {
        fill(&l);
        float *to = threads == 2 ? x : y;
        memset(y, 0x7f, sizeof(y));

        kernel_scale(to, x, bias, &l, threads);

        for (int64_t i = 0; i < COUNT; i++) {
            const float was = (float)(2 * ms_rng_unit(1, (uint64_t)i) - 0.9);
            ck_assert_float_eq(to[place(&l, i)], was * bias[i / S % C]);
        }
        for (int64_t c = C; c < l.n_blocks * l.block; c++) { /* padding */
            ck_assert_float_eq(to[((l.n_blocks - 1) * S + 3) * l.block + c % l.block], 0);
        }
    }
}
END_TEST

/* With dy = x + its channel's value. */
START_TEST(gradients_of_factors_have_the_same_bits_in_every_layout_and_on_any_team)
{
    for (int b = 0; b < 4; b++) {
        const struct kernel_layout l = layout_of(blocks[b]);
        fill(&l);
        kernel_bias(z, x, bias, &l, 1);
        for (int threads = 1; threads <= 4; threads++) {
            kernel_scale_backward(db, x, z, &l, scratch, threads);
            if (b == 0 && threads == 1) {
                memcpy(first, db, sizeof(db));
            }
            ck_assert_mem_eq(db, first, sizeof(db));
        }
    }
    for (int64_t c = 0; c < C; c++) {
        double sum = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            const float v = (float)(2 * ms_rng_unit(1, (uint64_t)i) - 0.9);
            sum += i / S % C == c ? (double)v * (double)(v + bias[c]) : 0;
        }
        ck_assert_double_eq_tol((double)first[c], sum, 1e-6 * (1 + fabs(sum)));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_bias");
    TCase *tc = tcase_create("bias");
    tcase_add_loop_test(tc, each_channel_gets_its_value, 0, 4);
    tcase_add_test(tc, gradients_have_the_same_bits_in_every_layout_and_on_any_team);
    tcase_add_loop_test(tc, each_channel_is_multiplied_by_its_value, 0, 4);
    tcase_add_test(tc, gradients_of_factors_have_the_same_bits_in_every_layout_and_on_any_team);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
