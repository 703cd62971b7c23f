/* test_kernel_elementwise.c - ReLU, ReLU6, their gradients, sums, products: exact, in place, any
 * length */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { COUNT = 1003 };

static float a[COUNT], b[COUNT], y[COUNT + 1];

static void setup(void)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        a[i] = (float)(2 * ms_rng_unit(1, i) - 1);
        b[i] = (float)(2 * ms_rng_unit(2, i) - 1);
    }
    a[3] = 0.0F;
    a[4] = -0.0F;
    y[COUNT] = 42;
}

static float relu(float x)
{
    return x > 0 ? x : 0;
}

START_TEST(relu_cuts_at_zero)
{
    kernel_relu(y, a, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_float_eq(y[i], relu(a[i]));
    }
    kernel_relu(a, a, COUNT);
    ck_assert_mem_eq(a, y, sizeof(a));
    ck_assert_float_eq(y[COUNT], 42);
}
END_TEST

START_TEST(the_gradient_of_relu_passes_where_the_output_is_positive)
{
    kernel_relu_backward(y, a, b, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_float_eq(y[i], a[i] > 0 ? b[i] : 0);
    }
    kernel_relu_backward(b, a, b, COUNT);
    ck_assert_mem_eq(b, y, sizeof(b));
    ck_assert_float_eq(y[COUNT], 42);
}
END_TEST

/* As PyTorch: nothing passes at 0 and at 6, and a NaN stays what it is. */
START_TEST(relu6_cuts_at_zero_and_at_six)
{
    static const float edges[] = {6, 7, INFINITY, -INFINITY, 1e30F, -1e30F, 5.9999995F};
    for (int i = 0; i < COUNT; i++) {
        a[i] *= 12;
    }
    memcpy(a + 5, edges, sizeof(edges));
    a[COUNT - 1] = NAN;
    kernel_relu6(y, a, COUNT);
    for (int i = 0; i < COUNT - 1; i++) {
        ck_assert_float_eq(y[i], a[i] > 6 ? 6 : relu(a[i]));
    }
    ck_assert_float_nan(y[COUNT - 1]);
    kernel_relu6_backward(y, a, b, COUNT);
    for (int i = 0; i < COUNT - 1; i++) {
        ck_assert_float_eq(y[i], a[i] > 0 && a[i] < 6 ? b[i] : 0);
    }
    ck_assert_float_eq(y[COUNT - 1], b[COUNT - 1]);
    kernel_relu6_backward(b, a, b, COUNT);
    ck_assert_mem_eq(b, y, sizeof(b));
    ck_assert_float_eq(y[COUNT], 42);
}
END_TEST

/* Two images of 19 channels in blocks of 8, 20 positions: the last five lanes of each third block.
 */
START_TEST(padding_is_cleared_and_nothing_else)
{
    const struct kernel_layout layout = {
        .n = 2, .n_blocks = 3, .spatial = 20, .block = 8, .channels = 19};
    for (int threads = 1; threads <= 3; threads++) {
        memcpy(y, a, sizeof(a));
        kernel_clear_padding(&layout, y, threads);
        for (int i = 0; i < COUNT; i++) {
            int is_padding = i < 2 * 3 * 20 * 8 && i / (20 * 8) % 3 == 2 && i % 8 >= 3;
            ck_assert_float_eq(y[i], is_padding ? 0 : a[i]);
        }
    }
    ck_assert_float_eq(y[COUNT], 42);
}
END_TEST

START_TEST(sums_are_sums_and_may_be_in_place)
{
    kernel_add(y, a, b, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_float_eq(y[i], a[i] + b[i]);
    }
    kernel_add_relu(y, a, b, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_float_eq(y[i], relu(a[i] + b[i]));
    }
    kernel_add_relu(b, a, b, COUNT);
    ck_assert_mem_eq(b, y, sizeof(b));
    kernel_add(a, a, b, 0);
    ck_assert_float_eq(y[COUNT], 42);
}
END_TEST

START_TEST(products_are_products_and_may_be_in_place)
{
    kernel_mul(y, a, b, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_float_eq(y[i], a[i] * b[i]);
    }
    kernel_mul(b, a, b, COUNT);
    ck_assert_mem_eq(b, y, sizeof(b));
    kernel_linear(y, a, -0.7F, 0.3F, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_float_eq(y[i], -0.7F * a[i] + 0.3F);
    }
    kernel_linear(a, a, -0.7F, 0.3F, COUNT);
    ck_assert_mem_eq(a, y, sizeof(a));
    ck_assert_float_eq(y[COUNT], 42);
}
END_TEST

START_TEST(shares_are_added_in_place_or_not_on_any_team)
{
    enum { MANY = 2 * KERNEL_PIECE + 77 };
    static float sums[MANY + 1], x[MANY], into[2][MANY + 1];
    for (uint64_t i = 0; i < MANY; i++) {
        sums[i] = (float)ms_rng_unit(3, i);
        x[i] = (float)ms_rng_unit(4, i);
    }
    sums[MANY] = into[0][MANY] = 42;
    kernel_add_share(into[0], sums, x, 0.3F, MANY, 3);
    for (int i = 0; i < MANY; i++) {
        ck_assert_float_eq(into[0][i], sums[i] + 0.3F * x[i]);
    }
    kernel_add_share(sums, sums, x, 0.3F, MANY, 1);
    ck_assert_mem_eq(sums, into[0], sizeof(sums));
    kernel_add_share(into[1], NULL, x, 0.3F, MANY, 2);
    ck_assert_float_eq(into[1][MANY - 1], 0.3F * x[MANY - 1]);
    kernel_add_share(x, into[0], x, 0.0F, MANY, 2);
    ck_assert_mem_eq(x, into[0], sizeof(x));
    ck_assert_float_eq(sums[MANY], 42);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_elementwise");
    TCase *tc = tcase_create("elementwise");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, relu_cuts_at_zero);
    tcase_add_test(tc, the_gradient_of_relu_passes_where_the_output_is_positive);
    tcase_add_test(tc, relu6_cuts_at_zero_and_at_six);
    tcase_add_test(tc, padding_is_cleared_and_nothing_else);
    tcase_add_test(tc, sums_are_sums_and_may_be_in_place);
    tcase_add_test(tc, products_are_products_and_may_be_in_place);
    tcase_add_test(tc, shares_are_added_in_place_or_not_on_any_team);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
