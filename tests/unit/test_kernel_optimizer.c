/* test_kernel_optimizer.c - one step of each optimizer against its formula in double */
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { COUNT = 1003 };

static float w[COUNT + 1], v[COUNT + 1], m[COUNT + 1], g[COUNT + 1];
static double dw[COUNT], dv[COUNT], dm[COUNT];

static const struct kernel_update momentum_update = {
    .scale = 0.125F, .lr = 0.01F, .momentum = 0.9F};

static struct kernel_update adam_update(int step)
{
    double lr = 0.001 * sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step));
    return (struct kernel_update){
        .scale = 0.125F, .lr = (float)lr, .beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F};
}

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
    kernel_sgd(w, g, COUNT, &momentum_update);
    for (int i = 0; i < COUNT; i++) {
        dw[i] -= 0.01 * ((double)g[i] * 0.125);
    }
    ck_close(w, dw);
    ck_assert_float_eq(w[COUNT], end);
}
END_TEST

static double clipped(double grad, double most)
{
    return grad > most ? most : grad < -most ? -most : grad;
}

/* Of all kinds, before the decay; a NaN is not hidden by it. */
START_TEST(values_of_gradients_are_clipped)
{
    struct kernel_update update = momentum_update;
    update.clip = 0.03F;
    update.decay = 0.5F;
    int n_clipped = 0;
    for (int i = 0; i < COUNT; i++) {
        const double grad = clipped((double)g[i] * 0.125, (double)0.03F);
        n_clipped += grad != (double)g[i] * 0.125;
        dm[i] = 0.9 * dm[i] + grad + 0.5 * dw[i];
        dw[i] -= 0.01 * dm[i];
    }
    kernel_momentum(w, m, g, COUNT, &update);
    ck_assert_int_gt(n_clipped, COUNT / 2);
    ck_assert_int_lt(n_clipped, COUNT);
    ck_close(w, dw);
    g[5] = NAN;
    kernel_sgd(w, g, COUNT, &update);
    ck_assert(isnan(w[5]) && !isnan(w[6]));
}
END_TEST

START_TEST(sums_of_squares_do_not_depend_on_threads_and_places)
{
    enum { MANY = 3 * KERNEL_PIECE + 1003 };
    static float x[MANY];
    double partial[4];
    double want = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        x[i] = (float)(2 * ms_rng_unit(9, i) - 1);
        want += (double)x[i] * (double)x[i];
    }
    ck_assert_uint_eq(kernel_sum_squares_room(MANY), 4);
    const double one = kernel_sum_squares(x, MANY, partial, 1);
    ck_assert_double_eq_tol(one, want, 1e-9 * want);
    ck_assert(kernel_sum_squares(x, MANY, partial, 3) == one);
    ck_assert(kernel_sum_squares(x, 0, partial, 1) == 0);
    ck_assert(kernel_sum_squares(x, 1, partial, 1) == (double)x[0] * (double)x[0]);
    x[MANY - 1] = NAN;
    ck_assert(isnan(kernel_sum_squares(x, MANY, partial, 2)));
}
END_TEST

START_TEST(momentum_keeps_a_velocity)
{
    float end = m[COUNT];
    for (int step = 0; step < 3; step++) {
        kernel_momentum(w, m, g, COUNT, &momentum_update);
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
        const struct kernel_update update = adam_update(step);
        kernel_adam(w, m, v, g, COUNT, &update);
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

/* v = momentum v + g; w -= lr (g + momentum v): PyTorch's SGD with nesterov. */
START_TEST(nesterov_looks_one_velocity_ahead)
{
    struct kernel_update update = momentum_update;
    update.nesterov = 1;
    update.decay = _i == 0 ? 0.0F : 0.05F;
    for (int step = 0; step < 3; step++) {
        kernel_momentum(w, m, g, COUNT, &update);
        for (int i = 0; i < COUNT; i++) {
            double grad = (double)g[i] * 0.125 + (double)update.decay * dw[i];
            dm[i] = 0.9 * dm[i] + grad;
            dw[i] -= 0.01 * (grad + 0.9 * dm[i]);
        }
    }
    ck_close(w, dw);
    ck_close(m, dm);
}
END_TEST

START_TEST(adamw_takes_its_decay_from_the_weight_alone)
{
    for (int step = 1; step <= 3; step++) {
        double lr_t = 0.001 * sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step));
        struct kernel_update update = adam_update(step);
        update.decay = 0.02F; /* of the weight, in this step */
        kernel_adamw(w, m, v, g, COUNT, &update);
        for (int i = 0; i < COUNT; i++) {
            double grad = (double)g[i] * 0.125;
            dm[i] = 0.9 * dm[i] + 0.1 * grad;
            dv[i] = 0.999 * dv[i] + 0.001 * grad * grad;
            dw[i] = dw[i] * (1 - 0.02) - lr_t * dm[i] / (sqrt(dv[i]) + 1e-8);
        }
    }
    ck_close(w, dw);
    ck_close(m, dm);
    ck_close(v, dv);
}
END_TEST

START_TEST(adamw_without_decay_is_adam_to_the_bit)
{
    static float other[COUNT + 1], slot1[COUNT + 1], slot2[COUNT + 1];
    const struct kernel_update update = adam_update(1);
    w[0] = INFINITY;
    memcpy(other, w, sizeof(other));
    memcpy(slot1, m, sizeof(slot1));
    memcpy(slot2, v, sizeof(slot2));
    kernel_adam(other, slot1, slot2, g, COUNT, &update);
    kernel_adamw(w, m, v, g, COUNT, &update);
    ck_assert_mem_eq(w, other, sizeof(w));
    ck_assert_mem_eq(m, slot1, sizeof(m));
    ck_assert_mem_eq(v, slot2, sizeof(v));
}
END_TEST

/* With and without decay, means and velocities; what is not asked for is not touched. */
START_TEST(rmsprop_divides_by_the_root_of_the_mean_square)
{
    static float a[COUNT + 1];
    const int is_centered = _i / 2 % 2;
    const int has_momentum = _i / 4;
    const struct kernel_update u = {.scale = 0.125F,
                                    .lr = 0.01F,
                                    .decay = _i % 2 == 1 ? 0.05F : 0.0F,
                                    .alpha = 0.9F,
                                    .momentum = 0.8F,
                                    .epsilon = 1e-3F};
    double da[COUNT] = {0};
    memset(a, 0, sizeof(a));
    for (int step = 0; step < 3; step++) {
        kernel_rmsprop(w, v, is_centered ? a : NULL, has_momentum ? m : NULL, g, COUNT, &u);
        for (int i = 0; i < COUNT; i++) {
            const double grad = (double)g[i] * 0.125 + (double)u.decay * dw[i];
            dv[i] = (double)u.alpha * dv[i] + (1 - (double)u.alpha) * grad * grad;
            da[i] = (double)u.alpha * da[i] + (1 - (double)u.alpha) * grad;
            const double around = is_centered ? fmax(dv[i] - da[i] * da[i], 0) : dv[i];
            const double change = grad / (sqrt(around) + (double)u.epsilon);
            dm[i] = has_momentum ? (double)u.momentum * dm[i] + change : dm[i];
            dw[i] -= (double)u.lr * (has_momentum ? dm[i] : change);
        }
    }
    ck_close(w, dw);
    ck_close(v, dv);
    ck_close(m, dm);
    ck_assert(is_centered || a[0] == 0.0F);
    ck_assert_float_eq(a[COUNT], 0);
}
END_TEST

/* Whose mean square is, but for rounding, the square of its mean. */
START_TEST(rmsprop_of_a_gradient_that_never_changes_stays_a_number)
{
    float weight[] = {1, 1, 1};
    float square[3] = {0}, mean[3] = {0};
    const float grads[] = {0.3F, 1e-3F, 7.7F};
    const struct kernel_update u = {.scale = 1, .lr = 1e-6F, .alpha = 0.5F, .epsilon = 1e-2F};
    for (int step = 0; step < 200; step++) {
        kernel_rmsprop(weight, square, mean, NULL, grads, 3, &u);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(isfinite(weight[i]) && weight[i] < 1, "[%d] %g", i, (double)weight[i]);
    }
}
END_TEST

/* The lengths are those of all elements, over several pieces. */
START_TEST(lamb_makes_its_step_as_long_as_the_weights_are)
{
    enum { MANY = 2 * KERNEL_PIECE + 77 };
    static float weights[2][MANY], m1[2][MANY], m2[2][MANY], grads[MANY];
    static double want[MANY], change[MANY];
    static double partial[6];
    struct kernel_update u = adam_update(1);
    u.lr = 0.01F;
    u.decay = _i == 1 ? 0.1F : 0.0F;
    u.m_scale = 10;
    u.root_scale = 31.6F;
    double length = 0;
    double way = 0;
    ck_assert_uint_eq(kernel_lamb_room(MANY), 6);
    for (uint64_t i = 0; i < MANY; i++) {
        weights[0][i] = weights[1][i] = (float)(2 * ms_rng_unit(1, i) - 1);
        m1[0][i] = m1[1][i] = (float)(2 * ms_rng_unit(2, i) - 1);
        m2[0][i] = m2[1][i] = (float)ms_rng_unit(3, i);
        grads[i] = (float)(2 * ms_rng_unit(4, i) - 1) * 8;
        const double grad = (double)grads[i] * 0.125;
        const double a = 0.9 * (double)m1[0][i] + 0.1 * grad;
        const double b = 0.999 * (double)m2[0][i] + 0.001 * grad * grad;
        want[i] = (double)weights[0][i];
        change[i] = a * 10 / (sqrt(b) * 31.6 + 1e-8) + (double)u.decay * want[i];
        length += want[i] * want[i];
        way += change[i] * change[i];
    }

    kernel_lamb(weights[0], m1[0], m2[0], grads, MANY, &u, partial, 3);
    kernel_lamb(weights[1], m1[1], m2[1], grads, MANY, &u, partial, 1);

    for (int i = 0; i < MANY; i++) {
        want[i] -= 0.01 * sqrt(length / way) * change[i];
        ck_assert_double_eq_tol((double)weights[0][i], want[i], 2e-6 * (1 + fabs(want[i])));
    }
    ck_assert_mem_eq(weights[0], weights[1], sizeof(weights[0]));
    ck_assert_mem_eq(m2[0], m2[1], sizeof(m2[0]));
}
END_TEST

START_TEST(lamb_without_a_length_has_the_rate_itself)
{
    float weights[2] = {0, 0};
    float m1[2] = {0}, m2[2] = {0};
    const float grads[2] = {1, -1};
    double partial[2];
    const struct kernel_update u = {.scale = 1,
                                    .lr = 0.5F,
                                    .beta1 = 0.5F,
                                    .beta2 = 0.75F,
                                    .epsilon = 1e-8F,
                                    .m_scale = 2,
                                    .root_scale = 2};
    kernel_lamb(weights, m1, m2, grads, 2, &u, partial, 1);
    ck_assert_float_eq_tol(weights[0], -0.5F, 1e-6F);
    ck_assert_float_eq_tol(weights[1], 0.5F, 1e-6F);
    weights[0] = NAN;
    kernel_lamb(weights, m1, m2, grads, 2, &u, partial, 1);
    ck_assert(isnan(weights[0])); /* the loss says it */
}
END_TEST

START_TEST(an_average_comes_closer_and_stays_where_it_arrived)
{
    float end = m[COUNT];
    kernel_average(m, w, 0.25F, COUNT);
    for (int i = 0; i < COUNT; i++) {
        dm[i] += 0.25 * (dw[i] - dm[i]);
    }
    ck_close(m, dm);
    kernel_average(m, w, 1.0F, COUNT);
    ck_assert_mem_eq(m, w, COUNT * sizeof(float));
    kernel_average(m, w, 0.3F, COUNT);
    ck_assert_mem_eq(m, w, COUNT * sizeof(float));
    ck_assert_float_eq(m[COUNT], end);
}
END_TEST

/* Padding of kernel layouts: zero weight, zero gradient, zero slots. */
START_TEST(zero_stays_zero)
{
    static float zero[64], slot1[64], slot2[64], none[128];
    struct kernel_update update = momentum_update;
    struct kernel_update adam = adam_update(1);
    update.decay = adam.decay = _i == 0 ? 0.0F : 0.01F;
    kernel_sgd(zero, none, 64, &update);
    kernel_momentum(zero, slot1, none, 64, &update);
    kernel_adam(zero, slot1, slot2, none, 64, &adam);
    kernel_adamw(zero, slot1, slot2, none, 64, &adam);
    update.nesterov = 1;
    kernel_momentum(zero, slot1, none, 64, &update);
    adam.alpha = 0.9F;
    adam.m_scale = adam.root_scale = 10;
    kernel_rmsprop(zero, slot1, slot2, none + 64, none, 64, &adam);
    kernel_rmsprop(zero, slot1, NULL, NULL, none, 64, &adam);
    double partial[2];
    kernel_lamb(zero, slot1, slot2, none, 64, &adam, partial, 1);
    for (int i = 0; i < 64; i++) {
        ck_assert(zero[i] == 0.0F && slot1[i] == 0.0F && slot2[i] == 0.0F);
    }
}
END_TEST

/* The formulas of kernel.h in float, one element after the other. */
static void serial(float *weights, float *slot, const float *grads, const struct kernel_update *u)
{
    for (int i = 0; i < COUNT; i++) {
        float grad = grads[i] * u->scale + u->decay * weights[i];
        slot[i] = u->momentum * slot[i] + grad;
        weights[i] -= u->lr * (u->nesterov ? grad + u->momentum * slot[i] : slot[i]);
    }
}

static void serial_adam(float *weights, float *slot1, float *slot2, const float *grads,
                        const struct kernel_update *u)
{
    for (int i = 0; i < COUNT; i++) {
        float grad = grads[i] * u->scale + u->decay * weights[i];
        slot1[i] = u->beta1 * slot1[i] + (1.0F - u->beta1) * grad;
        slot2[i] = u->beta2 * slot2[i] + (1.0F - u->beta2) * (grad * grad);
        weights[i] -= u->lr * slot1[i] / (sqrtf(slot2[i]) + u->epsilon);
    }
}

static void serial_adamw(float *weights, float *slot1, float *slot2, const float *grads,
                         const struct kernel_update *u)
{
    for (int i = 0; i < COUNT; i++) {
        float grad = grads[i] * u->scale;
        slot1[i] = u->beta1 * slot1[i] + (1.0F - u->beta1) * grad;
        slot2[i] = u->beta2 * slot2[i] + (1.0F - u->beta2) * (grad * grad);
        float change = u->lr * slot1[i] / (sqrtf(slot2[i]) + u->epsilon);
        weights[i] -= u->decay * weights[i] + change;
    }
}

START_TEST(weight_decay_joins_the_gradient_to_the_bit)
{
    static float want[COUNT + 1], slot1[COUNT + 1], slot2[COUNT + 1], none[COUNT + 1];
    struct kernel_update update = momentum_update;
    update.decay = 0.05F;
    memcpy(want, w, sizeof(want));
    memcpy(slot1, m, sizeof(slot1));
    memcpy(slot2, v, sizeof(slot2));
    for (int step = 1; step <= 3; step++) {
        struct kernel_update sgd = update;
        struct kernel_update adam = adam_update(step);
        sgd.momentum = 0; /* momentum of 0 over a velocity of 0 is SGD */
        adam.decay = 0.05F;
        memset(none, 0, sizeof(none));

        kernel_momentum(w, m, g, COUNT, &update);
        serial(want, slot1, g, &update);
        ck_assert_mem_eq(w, want, sizeof(w));
        ck_assert_mem_eq(m, slot1, sizeof(m));
        kernel_adam(w, m, v, g, COUNT, &adam);
        serial_adam(want, slot1, slot2, g, &adam);
        ck_assert_mem_eq(w, want, sizeof(w));
        ck_assert_mem_eq(v, slot2, sizeof(v));
        kernel_sgd(w, g, COUNT, &sgd);
        serial(want, none, g, &sgd);
        ck_assert_mem_eq(w, want, sizeof(w));
        kernel_adamw(w, m, v, g, COUNT, &adam);
        serial_adamw(want, slot1, slot2, g, &adam);
        ck_assert_mem_eq(w, want, sizeof(w));
        update.nesterov = step % 2;
    }
    ck_assert_float_ne(w[0], (float)dw[0]);
}
END_TEST

START_TEST(no_weight_decay_leaves_infinity_and_the_sign_of_zero_alone)
{
    float weights[] = {INFINITY, 1};
    float velocity[] = {0, -0.0F};
    const float grads[] = {1, -0.0F};

    kernel_momentum(weights, velocity, grads, 2, &momentum_update);

    ck_assert(isinf(weights[0]));
    ck_assert(velocity[1] == 0.0F && signbit(velocity[1]));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_optimizer");
    TCase *tc = tcase_create("optimizer");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, sgd_subtracts_the_scaled_gradient);
    tcase_add_test(tc, values_of_gradients_are_clipped);
    tcase_add_test(tc, sums_of_squares_do_not_depend_on_threads_and_places);
    tcase_add_test(tc, momentum_keeps_a_velocity);
    tcase_add_test(tc, adam_follows_kingma_and_ba);
    tcase_add_loop_test(tc, nesterov_looks_one_velocity_ahead, 0, 2);
    tcase_add_test(tc, adamw_takes_its_decay_from_the_weight_alone);
    tcase_add_test(tc, adamw_without_decay_is_adam_to_the_bit);
    tcase_add_loop_test(tc, rmsprop_divides_by_the_root_of_the_mean_square, 0, 8);
    tcase_add_test(tc, rmsprop_of_a_gradient_that_never_changes_stays_a_number);
    tcase_add_loop_test(tc, lamb_makes_its_step_as_long_as_the_weights_are, 0, 2);
    tcase_add_test(tc, lamb_without_a_length_has_the_rate_itself);
    tcase_add_test(tc, an_average_comes_closer_and_stays_where_it_arrived);
    tcase_add_loop_test(tc, zero_stays_zero, 0, 2);
    tcase_add_test(tc, weight_decay_joins_the_gradient_to_the_bit);
    tcase_add_test(tc, no_weight_decay_leaves_infinity_and_the_sign_of_zero_alone);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
