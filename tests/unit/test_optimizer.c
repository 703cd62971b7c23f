/* test_optimizer.c - optimizers over ranges, against their formulas in double */
#include "libworker/data/weights_names.h"
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
    static const struct job_optimizer optimizers[] = {{.kind = JOB_SGD},     {.kind = JOB_MOMENTUM},
                                                      {.kind = JOB_ADAM},    {.kind = JOB_ADAMW},
                                                      {.kind = JOB_RMSPROP}, {.kind = JOB_LAMB}};
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

/* torch.optim.RMSprop(lr=0.01, alpha=0.9, eps=1e-3, ...) of PyTorch 2.15, and LAMB(lr=0.01,
 * betas=(0.9, 0.999), eps=1e-6) in double, m and v as Adam's:
 *     r = (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps) + wd * w
 *     w = w - lr * w.norm() / r.norm() * r
 * Each three steps from (0.5, -1.25, 2, 0). */
static const struct {
    struct job_optimizer optimizer;
    float decay;
    int n_slots;
    const char *slots[3];
    double want[4];
} three_steps[] = {
    {{.kind = JOB_RMSPROP, .epsilon = 1e-3},
     0,
     1,
     {"mean_square", "", ""},
     {0.485628366, -1.26550674, 1.93460071, -0.0145580517}},
    {{.kind = JOB_RMSPROP, .epsilon = 1e-3, .momentum = 0.9},
     0,
     2,
     {"mean_square", "moments", ""},
     {0.422780782, -1.23780537, 1.87101746, -0.0478623807}},
    {{.kind = JOB_RMSPROP, .epsilon = 1e-3, .centered = 1},
     0,
     2,
     {"mean_square", "mean_gradient", ""},
     {0.483197838, -1.26511359, 1.92923415, -0.0162558071}},
    {{.kind = JOB_RMSPROP, .epsilon = 1e-3, .momentum = 0.9, .centered = 1},
     0.1F,
     3,
     {"mean_square", "mean_gradient", "moments"},
     {0.409384221, -1.2136308, 1.84074497, -0.0522894636}},
    {{.kind = JOB_LAMB, .epsilon = 1e-6},
     0,
     2,
     {"moment1", "moment2", ""},
     {0.476237054, -1.25657417, 1.95081238, -0.0125875727}},
    {{.kind = JOB_LAMB, .epsilon = 1e-6},
     0.1F,
     2,
     {"moment1", "moment2", ""},
     {0.476315815, -1.25020804, 1.946396, -0.0114531474}},
};

START_TEST(three_steps_are_those_of_PyTorch)
{
    static const float gs[3][4] = {
        {0.3F, -0.2F, 0.01F, 1.0F}, {0.1F, 0.4F, 0.02F, -1.0F}, {-0.5F, 0.3F, 0.015F, 0.25F}};
    float w[4] = {0.5F, -1.25F, 2.0F, 0.0F};
    float slots[OPTIMIZER_SLOTS_MAX][4] = {{0}};
    double scratch[2];
    struct job_optimizer o = three_steps[_i].optimizer;
    o.learning_rate = 0.01;
    o.alpha = o.beta1 = 0.9;
    o.beta2 = 0.999;
    struct optimizer_range r = {.weights = w,
                                .slots = {slots[0], slots[1], slots[2]},
                                .count = 4,
                                .weight_decay = three_steps[_i].decay,
                                .scratch = scratch};
    ck_assert_int_eq(optimizer_slots(&o), three_steps[_i].n_slots);
    for (int s = 0; s < 3; s++) {
        ck_assert_str_eq(optimizer_slot_name(&o, s), three_steps[_i].slots[s]);
    }
    ck_assert_uint_le(optimizer_scratch(&o, 4), 2);

    for (uint64_t step = 1; step <= 3; step++) {
        r.grads = gs[step - 1];
        optimizer_apply(&o, step, 1.0F, &r, 1);
    }

    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq_tol((double)w[i], three_steps[_i].want[i], 1e-6);
    }
}
END_TEST

/* As torch.optim.swa_utils.AveragedModel with get_ema_avg_fn: the first step's weights are copied.
 */
START_TEST(an_average_of_the_weights_is_a_slot_behind_those_of_its_kind)
{
    enum { LARGE = 40000 }; /* several pieces */
    static float w[LARGE], m1[LARGE], m2[LARGE], average[LARGE], g[LARGE];
    static double scratch[8], want[LARGE];
    const struct job_optimizer o = {.kind = _i == 0 ? JOB_SGD : JOB_LAMB,
                                    .learning_rate = 0.1,
                                    .beta1 = 0.9,
                                    .beta2 = 0.999,
                                    .epsilon = 1e-6,
                                    .has_average = 1,
                                    .average_decay = 0.75};
    struct optimizer_range r = {.weights = w,
                                .slots = {_i == 0 ? average : m1, m2, average},
                                .grads = g,
                                .count = LARGE,
                                .scratch = scratch};
    const int slot = _i == 0 ? 0 : 2;
    ck_assert_uint_le(optimizer_scratch(&o, LARGE), MS_ARRAY_SIZE(scratch));
    ck_assert_int_eq(optimizer_slots(&o), slot + 1);
    ck_assert_int_eq(optimizer_average_slot(&o), slot);
    ck_assert_str_eq(optimizer_slot_name(&o, slot), "average");
    ck_assert_str_eq(optimizer_slot_name(&o, slot + 1), "");
    for (uint64_t i = 0; i < LARGE; i++) {
        w[i] = (float)ms_rng_unit(1, i);
        g[i] = (float)ms_rng_unit(2, i);
        average[i] = 77;
    }
    for (uint64_t step = 1; step <= 3; step++) {
        optimizer_apply(&o, step, 1.0F, &r, 2);
        for (int i = 0; i < LARGE; i++) {
            want[i] = step == 1 ? (double)w[i] : 0.75 * want[i] + 0.25 * (double)w[i];
        }
    }
    for (int i = 0; i < LARGE; i++) {
        ck_assert_double_eq_tol((double)average[i], want[i], 1e-6);
    }
    ck_assert_float_ne(average[5], w[5]);
}
END_TEST

START_TEST(tensors_of_a_checkpoint_are_known_by_their_slots)
{
    struct job_optimizer optimizer = {
        .kind = (enum job_optimizer_kind)_i, .momentum = 0.9, .centered = 1, .has_average = 1};
    for (int slot = 0; slot < optimizer_slots(&optimizer); slot++) {
        char name[64];
        snprintf(name, sizeof(name), "%s.fc.weight", optimizer_slot_name(&optimizer, slot));
        ck_assert_pstr_eq(weights_name_of_slot(name), "fc.weight");
    }
    ck_assert_ptr_null(weights_name_of_slot("mean.fc.weight"));
    ck_assert_ptr_null(weights_name_of_slot("fc.weight"));
    ck_assert_ptr_null(weights_name_of_slot(".weight"));
    ck_assert_ptr_null(weights_name_of_slot("moments"));
}
END_TEST

START_TEST(padding_of_zeros_stays_zero)
{
    struct job_optimizer kinds[] = {
        {.kind = JOB_SGD, .learning_rate = 1},
        {.kind = JOB_MOMENTUM, .learning_rate = 1, .momentum = 0.9},
        {.kind = JOB_MOMENTUM, .learning_rate = 1, .momentum = 0.9, .nesterov = 1},
        {.kind = JOB_ADAMW, .learning_rate = 1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.kind = JOB_ADAM, .learning_rate = 1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.kind = JOB_RMSPROP, .learning_rate = 1, .alpha = 0.99, .epsilon = 1e-8},
        {.kind = JOB_RMSPROP, .learning_rate = 1, .centered = 1, .epsilon = 1e-8},
        {.kind = JOB_RMSPROP, .learning_rate = 1, .momentum = 0.9, .epsilon = 1e-8},
        {.kind = JOB_LAMB, .learning_rate = 1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6}};
    double scratch[2];
    memset(weights, 0, sizeof(weights));
    memset(slot0, 0, sizeof(slot0));
    memset(slot1, 0, sizeof(slot1));
    memset(grads, 0, sizeof(grads));
    struct optimizer_range r = range();
    r.weight_decay = 0.1F;
    r.scratch = scratch;

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
        {.kind = JOB_ADAMW, .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.kind = JOB_RMSPROP, .learning_rate = 0.1, .alpha = 0.9, .epsilon = 1e-8, .momentum = 0.9},
        {.kind = JOB_RMSPROP, .learning_rate = 0.1, .alpha = 0.9, .epsilon = 1e-8, .centered = 1},
        {.kind = JOB_LAMB, .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6}};
    static double scratch[2 * (MANY / 16384 + 1)];
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
        r.scratch = scratch;
        ck_assert_uint_le(optimizer_scratch(&optimizers[_i], MANY), MS_ARRAY_SIZE(scratch));
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
    tcase_add_loop_test(tc, three_steps_are_those_of_PyTorch, 0, (int)MS_ARRAY_SIZE(three_steps));
    tcase_add_loop_test(tc, an_average_of_the_weights_is_a_slot_behind_those_of_its_kind, 0, 2);
    tcase_add_loop_test(tc, tensors_of_a_checkpoint_are_known_by_their_slots, JOB_SGD,
                        JOB_LAMB + 1);
    tcase_add_test(tc, padding_of_zeros_stays_zero);
    tcase_add_loop_test(tc, bits_do_not_depend_on_the_threads, 0, 8);
    tcase_add_test(tc, what_is_too_small_becomes_zero);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
