/* test_optimizer.c - optimizers over ranges, against their formulas in double */
#include "libworker/train/optimizer.h"
#include "tests/test.h"

#include <math.h>

enum { N = 37 };

static float weights[N], slot0[N], slot1[N], grads[N];

static void fill(void)
{
    for (int i = 0; i < N; i++) {
        weights[i] = 0.1F * (float)i;
        slot0[i] = 0.01F * (float)(i % 5);
        slot1[i] = 0.02F * (float)(i % 3);
        grads[i] = (float)((i % 7) - 3);
    }
}

static struct optimizer_range range(void)
{
    return (struct optimizer_range){
        .weights = weights, .slots = {slot0, slot1}, .grads = grads, .count = N};
}

START_TEST(sgd_steps_against_the_scaled_gradient)
{
    struct job_optimizer o = {.kind = JOB_SGD, .learning_rate = 0.5};
    struct optimizer_range r = range();

    optimizer_apply(&o, 1, 0.25F, &r);

    ck_assert_int_eq(optimizer_slots(&o), 0);
    for (int i = 0; i < N; i++) {
        ck_assert_float_eq_tol(weights[i], 0.1F * (float)i - 0.5F * 0.25F * grads[i], 1e-6F);
    }
}
END_TEST

START_TEST(momentum_keeps_a_velocity)
{
    struct job_optimizer o = {.kind = JOB_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9};
    struct optimizer_range r = range();

    optimizer_apply(&o, 1, 0.5F, &r);

    ck_assert_int_eq(optimizer_slots(&o), 1);
    ck_assert_str_eq(optimizer_slot_name(&o, 0), "moments");
    for (int i = 0; i < N; i++) {
        double v = 0.9 * 0.01 * (i % 5) + 0.5 * (double)grads[i];
        ck_assert_double_eq_tol((double)slot0[i], v, 1e-6);
        ck_assert_double_eq_tol((double)weights[i], 0.1 * i - 0.1 * v, 1e-5);
    }
}
END_TEST

START_TEST(adam_corrects_its_bias_by_the_step)
{
    struct job_optimizer o = {
        .kind = JOB_ADAM, .learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    static const uint64_t steps[] = {1, 2, 3, 1000, 123457, 1ULL << 40};
    const uint64_t step = steps[_i];
    const double t = (double)step;
    struct optimizer_range r = range();

    optimizer_apply(&o, step, 1.0F, &r);

    ck_assert_int_eq(optimizer_slots(&o), 2);
    for (int i = 0; i < N; i++) {
        double g = (double)grads[i];
        double m = 0.9 * 0.01 * (i % 5) + 0.1 * g;
        double v = 0.999 * 0.02 * (i % 3) + 0.001 * g * g;
        double rate = 0.001 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t));
        double want = 0.1 * i - rate * m / (sqrt(v) + 1e-8);
        ck_assert_double_eq_tol((double)weights[i], want, 1e-5 * (1 + fabs(want)));
    }
}
END_TEST

START_TEST(padding_of_zeros_stays_zero)
{
    struct job_optimizer kinds[] = {
        {.kind = JOB_SGD, .learning_rate = 1},
        {.kind = JOB_MOMENTUM, .learning_rate = 1, .momentum = 0.9},
        {.kind = JOB_ADAM, .learning_rate = 1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}};
    memset(weights, 0, sizeof(weights));
    memset(slot0, 0, sizeof(slot0));
    memset(slot1, 0, sizeof(slot1));
    memset(grads, 0, sizeof(grads));
    struct optimizer_range r = range();

    for (size_t k = 0; k < MS_ARRAY_SIZE(kinds); k++) {
        optimizer_apply(&kinds[k], 1, 1.0F, &r);
    }

    for (int i = 0; i < N; i++) {
        ck_assert_float_eq(weights[i], 0.0F);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("optimizer");
    TCase *tc = tcase_create("optimizer");
    tcase_add_checked_fixture(tc, fill, NULL);
    tcase_add_test(tc, sgd_steps_against_the_scaled_gradient);
    tcase_add_test(tc, momentum_keeps_a_velocity);
    tcase_add_loop_test(tc, adam_corrects_its_bias_by_the_step, 0, 6);
    tcase_add_test(tc, padding_of_zeros_stays_zero);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
