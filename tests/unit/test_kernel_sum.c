/* test_kernel_sum.c - tree sums bit by bit against the recursive definition */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { N_MAX = 40, COUNT = 1500 }; /* three chunks, the last one short and no multiple of a lane */

static float *srcs[N_MAX];
static float want[COUNT + 1], got[COUNT + 1];

/* Magnitudes from 1e-4 to 1e4, so that every other bracketing rounds differently somewhere. */
static void setup(void)
{
    for (int s = 0; s < N_MAX; s++) {
        srcs[s] = malloc((COUNT + 1) * sizeof(float));
        ck_assert_ptr_nonnull(srcs[s]);
        for (uint64_t i = 0; i <= COUNT; i++) {
            uint64_t at = (uint64_t)s * 10000 + i;
            srcs[s][i] =
                (float)((2 * ms_rng_unit(1, at) - 1) * pow(10, (double)ms_rng_below(2, at, 9) - 4));
        }
    }
}

static void teardown(void)
{
    for (int s = 0; s < N_MAX; s++) {
        free(srcs[s]);
    }
}

/* The definition, word by word. */
static float tree(size_t i, int lo, int hi)
{
    if (hi - lo == 1) {
        return srcs[lo][i];
    }
    int mid = lo + (hi - lo + 1) / 2;
    return tree(i, lo, mid) + tree(i, mid, hi);
}

static void compute_want(int n, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        want[i] = tree(i, 0, n);
    }
}

static void ck_bits(const float *a, size_t count, const char *what, int n)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(memcmp(&a[i], &want[i], sizeof(float)) == 0, "%s of %d at %zu: %a, want %a",
                      what, n, i, (double)a[i], (double)want[i]);
    }
}

START_TEST(every_rank_count_gives_the_bits_of_the_definition)
{
    for (int n = 1; n <= N_MAX; n++) {
        compute_want(n, COUNT);
        memset(got, 0, sizeof(got));
        got[COUNT] = 42;

        kernel_sum_tree(got, (const float *const *)srcs, n, COUNT);

        ck_bits(got, COUNT, "sum", n);
        ck_assert_float_eq(got[COUNT], 42); /* nothing behind the end */
    }
}
END_TEST

START_TEST(the_bracketing_matters_in_this_data)
{
    int differs = 0;
    for (size_t i = 0; i < COUNT; i++) {
        float serial = srcs[0][i];
        for (int s = 1; s < 8; s++) {
            serial += srcs[s][i];
        }
        differs += serial != tree(i, 0, 8);
    }
    ck_assert_int_gt(differs, COUNT / 10);
}
END_TEST

START_TEST(odd_counts_and_unaligned_buffers_give_the_same_bits)
{
    static const size_t counts[] = {0, 1, 2, 7, 15, 16, 17, 31, 511, 512, 513, 1024};
    const float *shifted[N_MAX];
    for (int s = 0; s < N_MAX; s++) {
        shifted[s] = srcs[s] + 1;
    }
    for (int n = 1; n <= 9; n++) {
        for (size_t c = 0; c < MS_ARRAY_SIZE(counts); c++) {
            for (size_t i = 0; i < counts[c]; i++) {
                want[i] = tree(i + 1, 0, n);
            }
            kernel_sum_tree(got, shifted, n, counts[c]);
            ck_bits(got, counts[c], "sum", n);
        }
    }
}
END_TEST

START_TEST(the_destination_may_be_any_source)
{
    for (int n = 1; n <= 17; n++) {
        for (int at = 0; at < n; at++) {
            compute_want(n, COUNT);
            kernel_sum_tree(srcs[at], (const float *const *)srcs, n, COUNT);
            ck_bits(srcs[at], COUNT, "sum in place", n);
            teardown();
            setup();
        }
    }
}
END_TEST

START_TEST(every_destination_gets_the_sum_even_if_it_is_a_source)
{
    for (int n = 1; n <= 17; n++) {
        float *dsts[N_MAX];
        compute_want(n, COUNT);
        for (int s = 0; s < n; s++) {
            dsts[s] = srcs[s];
        }
        dsts[n] = got;

        kernel_sum_tree_to(dsts, n + 1, (const float *const *)srcs, n, COUNT);

        for (int d = 0; d <= n; d++) {
            ck_bits(dsts[d], COUNT, "sum to all", n);
        }
        teardown();
        setup();
    }
}
END_TEST

START_TEST(maximum_is_the_maximum)
{
    for (int n = 1; n <= 17; n++) {
        for (size_t i = 0; i < COUNT; i++) {
            want[i] = srcs[0][i];
            for (int s = 1; s < n; s++) {
                want[i] = fmaxf(want[i], srcs[s][i]);
            }
        }
        kernel_max_tree(got, (const float *const *)srcs, n, COUNT);
        ck_bits(got, COUNT, "max", n);
    }
    kernel_max_tree(srcs[3], (const float *const *)srcs, 17, COUNT);
    ck_bits(srcs[3], COUNT, "max in place", 17);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_sum");
    TCase *tc = tcase_create("sum");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_rank_count_gives_the_bits_of_the_definition);
    tcase_add_test(tc, the_bracketing_matters_in_this_data);
    tcase_add_test(tc, odd_counts_and_unaligned_buffers_give_the_same_bits);
    tcase_add_test(tc, the_destination_may_be_any_source);
    tcase_add_test(tc, every_destination_gets_the_sum_even_if_it_is_a_source);
    tcase_add_test(tc, maximum_is_the_maximum);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
