/* test_train_rules.c - one rank alone: groups of parameters, steps of several batches, the average
 * of the weights, by the weights that come of them */
#include "libworker/train/train.h"

#include "libworker/train/model_copy.h"
#include "tests/unit/train_case.h"

#include <math.h>

static struct job job;
static struct train_result result;

/* What on_progress saw last. */
struct seen {
    float loss;
    double eval_loss, rows; /* of a step */
    int evaluations;
};

static void watch(void *arg, const struct train_progress *progress)
{
    struct seen *seen = arg;
    if (progress->phase == TRAIN_TRAINING && progress->step > 0) {
        seen->loss = progress->loss;
        seen->rows = progress->samples_per_s * progress->step_ms / 1000;
    }
    if (progress->phase == TRAIN_EVALUATING && progress->has_eval) {
        seen->evaluations++;
        seen->eval_loss = progress->eval_loss;
    }
}

/* The weights of a trained job, by name. */
static struct model_copy *trained(const char *const *sets, size_t n, struct seen *ret_seen)
{
    struct model_copy *copy = NULL;
    struct seen seen = {.loss = NAN};
    struct train_info info;
    train_case_job(&job, sets, n);
    struct train_config cfg = train_case_config(&job, "");
    cfg.on_progress = watch;
    cfg.arg = ret_seen != NULL ? ret_seen : &seen;
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));
    ck_ms_ok(model_copy_make(train_replica(train), result.steps, &copy, err));
    ck_assert_str_eq(result.weights_sha256, copy->sha256);
    train_destroy(train);
    return copy;
}

static const struct {
    const char *group, *same; /* NULL: as without groups */
} trained_alike[] = {
    {"{match: fc.weight}", NULL},
    {"{match: [fc.bias, fc.weight], learning_rate: 0.05}", NULL},
    {"{match: '*', learning_rate: 0.025}", "optimizer.learning_rate=0.025"},
    {"{match: '*', weight_decay: 0.5}", "optimizer.weight_decay=0.5"},
    {"{match: fc.weight, weight_decay: 0, learning_rate: 0.1}, {match: '*', learning_rate: 0.1}",
     "optimizer.learning_rate=0.1"},
};

START_TEST(a_group_has_what_it_says_and_all_else_of_the_optimizer)
{
    char sets[2][160];
    const char *const all[] = {sets[0], sets[1]};
    char digests[2][MS_SHA256_HEX];
    for (int i = 0; i < 2; i++) {
        snprintf(sets[i], sizeof(sets[i]), "optimizer.schedule={kind: cosine, by: step}");
        snprintf(sets[1], sizeof(sets[1]), "optimizer.groups=[%s]", trained_alike[_i].group);
        if (i == 1) {
            snprintf(sets[0], sizeof(sets[0]), "%s",
                     trained_alike[_i].same != NULL ? trained_alike[_i].same : "seed=1");
            snprintf(sets[1], sizeof(sets[1]), "optimizer.schedule={kind: cosine, by: step}");
        }
        model_copy_destroy(trained(all, 2, NULL));
        memcpy(digests[i], result.weights_sha256, sizeof(digests[i]));
    }
    ck_assert_str_eq(digests[0], digests[1]);
}
END_TEST

static int has_same(const struct model_copy *a, const struct model_copy *b, const char *name)
{
    const int at = model_copy_find(a, name);
    ck_assert_int_ge(at, 0);
    return memcmp(a->values[at], b->values[at], a->counts[at] * sizeof(float)) == 0;
}

#define SMALL_NET                                                                                  \
    "network=cifar_small", "dataset={kind: shapes, samples: 48}", "loss=softmax_cross_entropy",    \
        "transforms=[{rescale: {scale: 0.0039, shift: 0}}]"

/* No kind of optimizer moves them, in no layout, and what it is told of decay, clipping or a
 * velocity is told of the others. */
START_TEST(frozen_parameters_keep_their_bits_and_others_move)
{
    static const char *const optimizers[] = {
        "optimizer={kind: sgd, learning_rate: 0.05, weight_decay: 0.1, clip_norm: 0.1",
        "optimizer={kind: momentum, learning_rate: 0.05, weight_decay: 0.1, nesterov: true",
        "optimizer={kind: adam, learning_rate: 0.01, weight_decay: 0.1, clip_value: 0.01",
        "optimizer={kind: adamw, learning_rate: 0.01, weight_decay: 0.1",
        "optimizer={kind: rmsprop, learning_rate: 0.01, weight_decay: 0.1, momentum: 0.9",
        "optimizer={kind: lamb, learning_rate: 0.01, weight_decay: 0.1, clip_norm: 0.1",
    };
    static const char *const frozen[] = {"conv1.weight", "bn1.gamma", "conv2.weight", "fc.bias"};
    static const char *const moved[] = {"bn1.beta", "bn2.gamma", "conv3.weight", "fc.weight",
                                        "bn3.moving_mean"};
    char whole[256];
    snprintf(whole, sizeof(whole), "%s%s", optimizers[_i],
             ", groups: [{match: [conv1.*, bn1.gamma, conv2.*, fc.bias], frozen: true}]}");
    const char *const sets[] = {SMALL_NET, whole, "steps=3"};
    const char *const at_once[] = {
        SMALL_NET, "optimizer={kind: sgd, learning_rate: 0, clip_norm: 0.1}", "steps=3"};
    struct model_copy *first = trained(at_once, MS_ARRAY_SIZE(at_once), NULL);
    struct model_copy *last = trained(sets, MS_ARRAY_SIZE(sets), NULL);
    for (size_t i = 0; i < MS_ARRAY_SIZE(frozen); i++) {
        ck_assert_msg(has_same(first, last, frozen[i]), "%s moved", frozen[i]);
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(moved); i++) {
        ck_assert_msg(!has_same(first, last, moved[i]), "%s did not move", moved[i]);
    }
    model_copy_destroy(first);
    model_copy_destroy(last);
}
END_TEST

/* PyTorch's frozen parameters have no gradient, which makes none longer. With a step of clip_norm
 * along the gradient of all others, these are moved by just that length. */
START_TEST(gradients_of_frozen_parameters_do_not_count_where_all_are_clipped)
{
    const char *const none[] = {SMALL_NET, "optimizer={kind: sgd, learning_rate: 0}", "steps=1"};
    const char *const clipped[] = {SMALL_NET,
                                   "optimizer={kind: sgd, learning_rate: 1, clip_norm: 0.001, "
                                   "groups: [{match: [fc.weight, conv2.*], frozen: true}]}",
                                   "steps=1"};
    struct model_copy *first = trained(none, MS_ARRAY_SIZE(none), NULL);
    struct model_copy *last = trained(clipped, MS_ARRAY_SIZE(clipped), NULL);
    double sum = 0;
    for (size_t i = 0; i < first->n; i++) {
        const int is_state = strstr(first->entries[i].name, "moving") != NULL;
        for (size_t k = 0; !is_state && k < first->counts[i]; k++) {
            const double way = (double)last->values[i][k] - (double)first->values[i][k];
            sum += way * way;
        }
    }
    ck_assert_double_eq_tol(sqrt(sum), 0.001, 2e-6);
    model_copy_destroy(first);
    model_copy_destroy(last);
}
END_TEST

/* Without batch norm, k batches of b train as one of k b, whose rows drop the same values: with a
 * last step of fewer batches, the last of them short, or without it. */
START_TEST(batches_of_a_step_train_as_one_that_is_as_large)
{
    static const char *const drops[] = {"drop_remainder=false", "drop_remainder=true"};
    static const char *const batches[][2] = {{"batch_size=12", "accumulate=1"},
                                             {"batch_size=4", "accumulate=3"},
                                             {"batch_size=5", "accumulate=1"},
                                             {"batch_size=1", "accumulate=5"}};
    struct model_copy *copies[2] = {NULL, NULL};
    float last[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const char *const sets[] = {
            "network=[flatten, dense: {out: 24}, tanh, dropout: {rate: 0.3}, dense: {out: "
            "classes}]",
            "dataset={kind: shapes, samples: 70}",
            "loss=softmax_cross_entropy",
            "transforms=[{rescale: {scale: 0.0039, shift: 0}}]",
            "optimizer={kind: momentum, learning_rate: 0.01, weight_decay: 0.01}",
            drops[_i % 2],
            batches[_i / 2 * 2 + i][0],
            batches[_i / 2 * 2 + i][1]};
        struct seen seen = {.loss = NAN};
        copies[i] = trained(sets, MS_ARRAY_SIZE(sets), &seen);
        last[i] = seen.loss;
        ck_assert_uint_eq(result.steps, _i == 0 ? 12 : _i == 1 ? 10 : 28);
        const double rows = _i == 0 ? 10 : _i == 1 ? 12 : 5;
        ck_assert(_i == 0 ? seen.rows > rows : fabs(seen.rows - rows) < 1e-6);
    }
    ck_assert_float_eq_tol(last[1], last[0], 1e-5F * last[0]);
    for (size_t i = 0; i < copies[0]->n; i++) {
        for (size_t k = 0; k < copies[0]->counts[i]; k++) {
            const double want = (double)copies[0]->values[i][k];
            ck_assert_double_eq_tol((double)copies[1]->values[i][k], want,
                                    1e-5 * (0.1 + fabs(want)));
        }
    }
    model_copy_destroy(copies[0]);
    model_copy_destroy(copies[1]);
}
END_TEST

/* The weights that are saved are the average of those that each step made; moving statistics are
 * the last ones, and what is frozen is what it was. */
START_TEST(a_moving_average_of_the_weights_is_what_is_saved)
{
    static const char *const steps[] = {"steps=1", "steps=2", "steps=3", "steps=4"};
    static const char rule[] = "optimizer={kind: momentum, learning_rate: 0.05, groups: [{match: "
                               "conv2.*, frozen: true}]}";
    struct model_copy *each[4] = {NULL};
    const char *const averaged[] = {SMALL_NET, rule, "batch_size=8", steps[3],
                                    "average={decay: 0.5}"};
    for (int i = 0; i < 4; i++) {
        const char *const sets[] = {SMALL_NET, rule, "batch_size=8", steps[i]};
        each[i] = trained(sets, MS_ARRAY_SIZE(sets), NULL);
    }
    struct model_copy *last = trained(averaged, MS_ARRAY_SIZE(averaged), NULL);
    for (size_t t = 0; t < last->n; t++) {
        const int is_state = strstr(last->entries[t].name, "moving") != NULL;
        for (size_t k = 0; k < last->counts[t]; k++) {
            double want = (double)each[0]->values[t][k];
            for (int i = 1; i < 4; i++) {
                want = 0.5 * want + 0.5 * (double)each[i]->values[t][k];
            }
            want = is_state ? (double)each[3]->values[t][k] : want;
            ck_assert_double_eq_tol((double)last->values[t][k], want, 1e-6 * (1 + fabs(want)));
        }
    }
    ck_assert(has_same(last, each[3], "bn3.moving_mean"));
    ck_assert(has_same(last, each[3], "conv2.weight"));
    ck_assert(!has_same(last, each[3], "conv1.weight"));
    model_copy_destroy(last);
    for (int i = 0; i < 4; i++) {
        model_copy_destroy(each[i]);
    }
}
END_TEST

/* An average that hardly moves is that of the first step, whatever the weights do meanwhile. */
START_TEST(a_moving_average_of_the_weights_is_what_is_evaluated)
{
    static const char *const sets[][3] = {
        {"steps=1", "average=null", "evaluate={dataset: {kind: nonlinear, samples: 30}}"},
        {"steps=10", "average={decay: 0.999999}",
         "evaluate={dataset: {kind: nonlinear, samples: 30}}"},
        {"steps=10", "average=null", "evaluate={dataset: {kind: nonlinear, samples: 30}}"}};
    double losses[3] = {0};
    for (int i = 0; i < 3; i++) {
        struct seen seen = {.evaluations = 0};
        model_copy_destroy(trained(sets[i], 3, &seen));
        ck_assert_int_ge(seen.evaluations, 1);
        losses[i] = seen.eval_loss;
    }
    ck_assert_double_eq_tol(losses[1], losses[0], 1e-4 * losses[0]);
    ck_assert(losses[2] < 0.9 * losses[0]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_rules");
    TCase *tc = tcase_create("train_rules");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_group_has_what_it_says_and_all_else_of_the_optimizer, 0,
                        (int)MS_ARRAY_SIZE(trained_alike));
    tcase_add_test(tc, a_moving_average_of_the_weights_is_what_is_saved);
    tcase_add_test(tc, a_moving_average_of_the_weights_is_what_is_evaluated);
    tcase_add_loop_test(tc, batches_of_a_step_train_as_one_that_is_as_large, 0, 4);
    tcase_add_loop_test(tc, frozen_parameters_keep_their_bits_and_others_move, 0, 6);
    tcase_add_test(tc, gradients_of_frozen_parameters_do_not_count_where_all_are_clipped);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
