/* test_optimizer.c - optimizers over ranges, against their formulas in double */
#include "libworker/train/optimizer.h"
#include "proto/rng.h"
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

    optimizer_apply(&o, 1, 0.25F, &r, 1);

    ck_assert_int_eq(optimizer_slots(&o), 0);
    for (int i = 0; i < N; i++) {
        ck_assert_float_eq_tol(weights[i], 0.1F * (float)i - 0.5F * 0.25F * grads[i], 1e-6F);
    }
}
END_TEST

START_TEST(types_without_a_kernel_are_refused)
{
    static const struct job_optimizer optimizers[] = {
        {.kind = JOB_SGD}, {.kind = JOB_MOMENTUM}, {.kind = JOB_ADAM}, {.kind = JOB_ADAMW}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(optimizers); i++) {
        ck_ms_ok(optimizer_check(&optimizers[i], MS_F32, MS_F32, err));
        ck_ms_fails(optimizer_check(&optimizers[i], MS_BF16, MS_F32, err), MS_E_UNSUPPORTED,
                    "weights of bf16 with gradients of f32");
        ck_ms_fails(optimizer_check(&optimizers[i], MS_F32, MS_BF16, err), MS_E_UNSUPPORTED,
                    "weights of f32 with gradients of bf16");
    }
}
END_TEST

START_TEST(weight_decay_pulls_towards_zero_in_every_piece_of_the_range)
{
    enum { LARGE = 40000 }; /* several pieces */
    static float many[LARGE], none[LARGE];
    struct job_optimizer o = {.kind = JOB_SGD, .learning_rate = 0.5};
    struct optimizer_range r = {
        .weights = many, .grads = none, .count = LARGE, .weight_decay = 0.25F};
    for (int i = 0; i < LARGE; i++) {
        many[i] = (float)i;
    }

    optimizer_apply(&o, 1, 1.0F, &r, 2);

    int i = 0;
    while (i < LARGE && many[i] == (float)i * 0.875F) {
        i++;
    }
    ck_assert_int_eq(i, LARGE);
}
END_TEST

/* PyTorch: 2 ranks with a sum of gradients (6, 8), mean length 5, clipped to 1. */
START_TEST(a_length_is_clipped_as_PyTorch_clips_it)
{
    struct job_optimizer o = {.kind = JOB_SGD, .learning_rate = 1, .clip_norm = 1};
    ck_assert_float_eq_tol(optimizer_clip(&o, 0.5F, 100), 0.5F * 0.19999996F, 1e-9F);
    o.clip_norm = 5.1;
    ck_assert_float_eq(optimizer_clip(&o, 0.5F, 100), 0.5F); /* short enough */
    o.clip_norm = 0;
    ck_assert_float_eq(optimizer_clip(&o, 0.5F, 100), 0.5F);
    o.clip_norm = 1;
    ck_assert_float_eq(optimizer_clip(&o, 0.5F, 0), 0.5F);
    ck_assert_float_eq(optimizer_clip(&o, 0.5F, NAN), 0.5F); /* the gradient says it */
    ck_assert_float_eq(optimizer_clip(&o, 0.5F, INFINITY), 0);
}
END_TEST

START_TEST(momentum_keeps_a_velocity)
{
    struct job_optimizer o = {.kind = JOB_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9};
    struct optimizer_range r = range();

    optimizer_apply(&o, 1, 0.5F, &r, 1);

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

    optimizer_apply(&o, step, 1.0F, &r, 1);

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

/* PyTorch's AdamW, as its manual has it: w -= lr decay w; m^ = m / (1 - b1^t), v^ = v / (1 - b2^t);
 * w -= lr m^ / (sqrt(v^) + epsilon). A large epsilon shows where it stands. */
START_TEST(adamw_is_that_of_PyTorch)
{
    struct job_optimizer o = {
        .kind = JOB_ADAMW, .learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 0.5};
    static const uint64_t steps[] = {1, 2, 1000};
    const double t = (double)steps[_i];
    struct optimizer_range r = range();
    r.weight_decay = 0.25F;

    optimizer_apply(&o, steps[_i], 1.0F, &r, 1);

    ck_assert_int_eq(optimizer_slots(&o), 2);
    ck_assert_str_eq(optimizer_slot_name(&o, 1), "moment2");
    for (int i = 0; i < N; i++) {
        double g = (double)grads[i];
        double m = 0.9 * 0.01 * (i % 5) + 0.1 * g;
        double v = 0.999 * 0.02 * (i % 3) + 0.001 * g * g;
        double w = 0.1 * i;
        w -= 0.01 * 0.25 * w;
        w -= 0.01 * (m / (1 - pow(0.9, t))) / (sqrt(v / (1 - pow(0.999, t))) + 0.5);
        ck_assert_double_eq_tol((double)weights[i], w, 1e-6 * (1 + fabs(w)));
    }
}
END_TEST

START_TEST(nesterov_is_that_of_PyTorch)
{
    struct job_optimizer o = {
        .kind = JOB_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9, .nesterov = 1};
    struct optimizer_range r = range();
    r.weight_decay = 0.5F;

    optimizer_apply(&o, 1, 0.5F, &r, 1);

    for (int i = 0; i < N; i++) {
        double g = 0.5 * (double)grads[i] + 0.5 * 0.1 * i;
        double v = 0.9 * 0.01 * (i % 5) + g;
        ck_assert_double_eq_tol((double)slot0[i], v, 1e-6);
        ck_assert_double_eq_tol((double)weights[i], 0.1 * i - 0.1 * (g + 0.9 * v), 1e-5);
    }
}
END_TEST

START_TEST(padding_of_zeros_stays_zero)
{
    struct job_optimizer kinds[] = {
        {.kind = JOB_SGD, .learning_rate = 1},
        {.kind = JOB_MOMENTUM, .learning_rate = 1, .momentum = 0.9},
        {.kind = JOB_MOMENTUM, .learning_rate = 1, .momentum = 0.9, .nesterov = 1},
        {.kind = JOB_ADAMW, .learning_rate = 1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.kind = JOB_ADAM, .learning_rate = 1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}};
    memset(weights, 0, sizeof(weights));
    memset(slot0, 0, sizeof(slot0));
    memset(slot1, 0, sizeof(slot1));
    memset(grads, 0, sizeof(grads));
    struct optimizer_range r = range();
    r.weight_decay = 0.1F;

    for (size_t k = 0; k < MS_ARRAY_SIZE(kinds); k++) {
        optimizer_apply(&kinds[k], 1, 1.0F, &r, 1);
    }

    for (int i = 0; i < N; i++) {
        ck_assert_float_eq(weights[i], 0.0F);
    }
}
END_TEST

enum { MANY = 70001 };

static void draw(float *values, uint64_t seed)
{
    for (size_t i = 0; i < MANY; i++) {
        values[i] = (float)(ms_rng_mix(seed + i) % 2000) / 1000.0F;
    }
}

START_TEST(bits_do_not_depend_on_the_threads)
{
    static const struct job_optimizer optimizers[] = {
        {.kind = JOB_SGD, .learning_rate = 0.1},
        {.kind = JOB_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9},
        {.kind = JOB_ADAM, .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.kind = JOB_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9, .nesterov = 1},
        {.kind = JOB_ADAMW, .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}};
    static const int teams[] = {1, 2, 3, 8};
    static float w[2][MANY], a[2][MANY], b[2][MANY], g[MANY];
    draw(g, 4);
    for (size_t t = 0; t < MS_ARRAY_SIZE(teams); t++) {
        const int one = t == 0 ? 0 : 1;
        draw(w[one], 1);
        draw(a[one], 2);
        draw(b[one], 3);
        struct optimizer_range r = {
            .weights = w[one], .slots = {a[one], b[one]}, .grads = g, .count = MANY};
        r.weight_decay = _i < 3 ? 0.0F : 0.01F;
        for (uint64_t step = 1; step <= 3; step++) {
            optimizer_apply(&optimizers[_i], step, 0.5F, &r, teams[t]);
        }
        ck_assert_mem_eq(w[one], w[0], sizeof(w[0]));
        ck_assert_mem_eq(a[one], a[0], sizeof(a[0]));
        ck_assert_mem_eq(b[one], b[0], sizeof(b[0]));
    }
}
END_TEST

/* Each costs a hundred cycles, and a velocity that only decays would stay one for ever. */
START_TEST(what_is_too_small_becomes_zero)
{
#if defined(__SSE2__)
    struct job_optimizer o = {.kind = JOB_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9};
    struct optimizer_range r = range();
    volatile float tiny = 1e-41F;
    memset(grads, 0, sizeof(grads));
    for (int i = 0; i < N; i++) {
        slot0[i] = tiny;
    }

    optimizer_apply(&o, 1, 1.0F, &r, 1);

    for (int i = 0; i < N; i++) {
        ck_assert(slot0[i] == 0.0F);
    }
    ck_assert(tiny * 0.5F > 0.0F); /* the caller's arithmetic is as it was */
#endif
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("optimizer");
    TCase *tc = tcase_create("optimizer");
    tcase_add_checked_fixture(tc, fill, NULL);
    tcase_add_test(tc, sgd_steps_against_the_scaled_gradient);
    tcase_add_test(tc, types_without_a_kernel_are_refused);
    tcase_add_test(tc, weight_decay_pulls_towards_zero_in_every_piece_of_the_range);
    tcase_add_test(tc, a_length_is_clipped_as_PyTorch_clips_it);
    tcase_add_test(tc, momentum_keeps_a_velocity);
    tcase_add_loop_test(tc, adam_corrects_its_bias_by_the_step, 0, 6);
    tcase_add_loop_test(tc, adamw_is_that_of_PyTorch, 0, 3);
    tcase_add_test(tc, nesterov_is_that_of_PyTorch);
    tcase_add_test(tc, padding_of_zeros_stays_zero);
    tcase_add_loop_test(tc, bits_do_not_depend_on_the_threads, 0, 5);
    tcase_add_test(tc, what_is_too_small_becomes_zero);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
