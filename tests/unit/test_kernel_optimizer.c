/* test_kernel_optimizer.c - one step of each optimizer against its formula in double */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { COUNT = 1003 };

static float w[COUNT + 1], v[COUNT + 1], m[COUNT + 1], g[COUNT + 1];
static double dw[COUNT], dv[COUNT], dm[COUNT];

static void setup(void)
{
    for (uint64_t i = 0; i <= COUNT; i++) {
        w[i] = (float)(2 * ms_rng_unit(1, i) - 1);
        m[i] = (float)(2 * ms_rng_unit(2, i) - 1);
        v[i] = (float)ms_rng_unit(3, i);
        g[i] = (float)(2 * ms_rng_unit(4, i) - 1) * 8;
        if (i < COUNT) {
            dw[i] = (double)w[i];
            dm[i] = (double)m[i];
            dv[i] = (double)v[i];
        }
    }
}

static void ck_close(const float *got, const double *want)
{
    for (int i = 0; i < COUNT; i++) {
        ck_assert_msg(fabs((double)got[i] - want[i]) < 1e-6 * (1 + fabs(want[i])),
                      "[%d] %.9g, want %.9g", i, (double)got[i], want[i]);
    }
}

START_TEST(sgd_subtracts_the_scaled_gradient)
{
    float end = w[COUNT];
    kernel_sgd(w, g, COUNT, 0.125F, 0.01F);
    for (int i = 0; i < COUNT; i++) {
        dw[i] -= 0.01 * ((double)g[i] * 0.125);
    }
    ck_close(w, dw);
    ck_assert_float_eq(w[COUNT], end);
}
END_TEST

START_TEST(momentum_keeps_a_velocity)
{
    float end = m[COUNT];
    for (int step = 0; step < 3; step++) {
        kernel_momentum(w, m, g, COUNT, 0.125F, 0.01F, 0.9F);
        for (int i = 0; i < COUNT; i++) {
            dm[i] = 0.9 * dm[i] + (double)g[i] * 0.125;
            dw[i] -= 0.01 * dm[i];
        }
    }
    ck_close(w, dw);
    ck_close(m, dm);
    ck_assert_float_eq(m[COUNT], end);
}
END_TEST

START_TEST(adam_follows_kingma_and_ba)
{
    for (int step = 1; step <= 3; step++) {
        double lr_t = 0.001 * sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step));
        kernel_adam(w, m, v, g, COUNT, 0.125F, (float)lr_t, 0.9F, 0.999F, 1e-8F);
        for (int i = 0; i < COUNT; i++) {
            double grad = (double)g[i] * 0.125;
            dm[i] = 0.9 * dm[i] + 0.1 * grad;
            dv[i] = 0.999 * dv[i] + 0.001 * grad * grad;
            dw[i] -= lr_t * dm[i] / (sqrt(dv[i]) + 1e-8);
        }
    }
    ck_close(w, dw);
    ck_close(m, dm);
    ck_close(v, dv);
}
END_TEST

/* Padding of kernel layouts: zero weight, zero gradient, zero slots. */
START_TEST(zero_stays_zero)
{
    static float zero[64], slot1[64], slot2[64], none[64];
    kernel_sgd(zero, none, 64, 0.5F, 0.1F);
    kernel_momentum(zero, slot1, none, 64, 0.5F, 0.1F, 0.9F);
    kernel_adam(zero, slot1, slot2, none, 64, 0.5F, 0.1F, 0.9F, 0.999F, 1e-8F);
    for (int i = 0; i < 64; i++) {
        ck_assert(zero[i] == 0.0F && slot1[i] == 0.0F && slot2[i] == 0.0F);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_optimizer");
    TCase *tc = tcase_create("optimizer");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, sgd_subtracts_the_scaled_gradient);
    tcase_add_test(tc, momentum_keeps_a_velocity);
    tcase_add_test(tc, adam_follows_kingma_and_ba);
    tcase_add_test(tc, zero_stays_zero);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
