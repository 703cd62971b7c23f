/* test_kernel_elementwise.c - ReLU, its gradient, sums: exact, in place, any length */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

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

int main(void)
{
    Suite *suite = suite_create("kernel_elementwise");
    TCase *tc = tcase_create("elementwise");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, relu_cuts_at_zero);
    tcase_add_test(tc, the_gradient_of_relu_passes_where_the_output_is_positive);
    tcase_add_test(tc, sums_are_sums_and_may_be_in_place);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
