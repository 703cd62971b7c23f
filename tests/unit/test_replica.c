/* test_replica.c - a rank's copy of the network: second layouts of weights, and what a step draws
 *
 * Mirrors are never those of a step before: two replicas of one job, one with mirrors and one
 * without, whose weights are written in all ways that there are, in any order. After each the same
 * batch must give both the same bits.
 */
#include "libworker/train/replica.h"
#include "proto/limits.h"
#include "proto/rng.h"
#include "tests/unit/train_case.h"

#include <math.h>

enum { BATCH = 6, TAIL = 4, EVAL = 5, SIDE = 32, CHANNELS = 3, CLASSES = 10, ROUNDS = 60 };

struct twin {
    struct replica *replica;
    struct plan_sizes sizes;
    float *exchange;
    const void **results;
};

static float *floats(size_t count)
{
    size_t bytes = (count * sizeof(float) / 64 + 1) * 64;
    float *p = aligned_alloc(64, bytes);
    ck_assert_ptr_nonnull(p);
    memset(p, 0, bytes);
    return p;
}

static void twin_init(struct twin *t, const struct job *job, int mirrors, int rank)
{
    struct replica_config cfg = {.job = job,
                                 .train = {.channels = CHANNELS,
                                           .height = SIDE,
                                           .width = SIDE,
                                           .classes = CLASSES,
                                           .last_rows = TAIL},
                                 .has_evaluate = 1,
                                 .evaluate_batch = EVAL,
                                 .rank = rank,
                                 .world = rank + 1};
    const struct replica_wish wish = {.threads = 1, .isa = "", .mirrors = mirrors};
    ck_ms_ok(replica_create(&cfg, &t->replica, err));
    ck_ms_ok(replica_choose(t->replica, &wish, err));
    replica_sizes(t->replica, &t->sizes);
    ck_ms_ok(replica_allocate(t->replica, err));
    t->exchange = floats(t->sizes.exchange);
    t->results = calloc((size_t)t->sizes.n_buckets, sizeof(*t->results));
    ck_assert_ptr_nonnull(t->results);
    for (int b = 0; b < t->sizes.n_buckets; b++) {
        t->results[b] = t->exchange + replica_bucket(t->replica, b).begin;
    }
    ck_ms_ok(replica_bind(t->replica, t->exchange, err));
    ck_ms_ok(replica_init(t->replica, err));
}

static void twin_fini(struct twin *t)
{
    replica_destroy(t->replica);
    free(t->exchange);
    free(t->results);
}

/* ---- the ways in which weights are written ------------------------------------------------------
 */

static void commit(struct twin *t, const struct batch *batch, uint64_t round)
{
    replica_commit(t->replica, round + 1, 1, 1, batch, t->results);
}

static void set_one(struct twin *t, const struct batch *batch, uint64_t round)
{
    const struct graph *graph = replica_graph(t->replica);
    int at = (int)ms_rng_below(5, round, (uint64_t)graph_n_params(graph));
    int tensor = graph_param_at(graph, at);
    int64_t count = shape_count(&graph_tensor(graph, tensor)->shape);
    float *values = floats((size_t)count);
    (void)batch;
    for (int64_t i = 0; i < count; i++) {
        values[i] = 0.1F * (float)(2.0 * ms_rng_unit(round, (uint64_t)i) - 1.0);
    }
    ck_ms_ok(replica_set(t->replica, tensor, values, err));
    free(values);
}

/* As a broadcast, or who takes the state of another rank. */
static void write_state(struct twin *t, const struct batch *batch, uint64_t round)
{
    void *bytes = NULL;
    size_t size = 0;
    (void)batch;
    ck_assert(replica_state(t->replica, 0, &bytes, &size));
    ck_assert_uint_eq(size, t->sizes.weights * sizeof(float));
    float *state = bytes;
    for (size_t i = 0; i < t->sizes.weights; i++) {
        state[i] *= 1.0F + 0.125F * (float)(1 + round % 3);
    }
}

static void begin_anew(struct twin *t, const struct batch *batch, uint64_t round)
{
    (void)batch;
    (void)round;
    ck_ms_ok(replica_init(t->replica, err));
}

static void bind_again(struct twin *t, const struct batch *batch, uint64_t round)
{
    (void)batch;
    (void)round;
    ck_ms_ok(replica_bind(t->replica, t->exchange, err));
}

typedef void way(struct twin *t, const struct batch *batch, uint64_t round);
static way *const ways[] = {commit, set_one, write_state, begin_anew, bind_again};

/* ---- comparison ---------------------------------------------------------------------------------
 */

static void same_step(struct twin *a, struct twin *b, const struct batch *batch, uint64_t round)
{
    float losses[2] = {NAN, NAN};
    ck_ms_ok(replica_step(a->replica, round, batch, NULL, NULL, &losses[0], err));
    ck_ms_ok(replica_step(b->replica, round, batch, NULL, NULL, &losses[1], err));
    ck_assert_msg(isfinite(losses[0]) && losses[0] == losses[1], "round %d: losses %.9g, %.9g",
                  (int)round, (double)losses[0], (double)losses[1]);
    size_t bytes = a->sizes.exchange * sizeof(float);
    ck_assert_msg(memcmp(a->exchange, b->exchange, bytes) == 0, "round %d: gradients", (int)round);
}

static void same_evaluation(struct twin *a, struct twin *b, const struct batch *batch)
{
    struct plan_evaluated made[2] = {{.loss_sum = NAN}, {.loss_sum = NAN}};
    ck_ms_ok(replica_evaluate(a->replica, batch, &made[0], err));
    ck_ms_ok(replica_evaluate(b->replica, batch, &made[1], err));
    ck_assert(made[0].loss_sum == made[1].loss_sum && made[0].correct == made[1].correct);
}

static void run_rounds(struct twin *a, struct twin *b, struct batch *batch)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        batch->rows = ms_rng_below(1, round, 3) == 0 ? TAIL : BATCH;
        way *write = ways[ms_rng_below(2, round, MS_ARRAY_SIZE(ways))];
        same_step(a, b, batch, round);
        write(a, batch, round);
        write(b, batch, round);
        if (ms_rng_below(3, round, 2) == 0) {
            batch->rows = EVAL;
            same_evaluation(a, b, batch);
        }
    }
}

/* Returns its images, owned. */
static float *batch_init(struct batch *batch)
{
    static int32_t labels[BATCH];
    const size_t n_pixels = (size_t)BATCH * CHANNELS * SIDE * SIDE;
    float *images = floats(n_pixels);
    for (uint64_t i = 0; i < n_pixels; i++) {
        images[i] = (float)(2.0 * ms_rng_unit(8, i) - 1.0);
    }
    for (int i = 0; i < BATCH; i++) {
        labels[i] = i % CLASSES;
    }
    *batch = (struct batch){
        .images = {MS_F32, n_pixels, images}, .labels = {MS_I32, BATCH, labels}, .rows = BATCH};
    return images;
}

START_TEST(mirrors_are_those_of_the_weights)
{
    static const char *const sets[] = {
        "network=cifar_small", "dataset={kind: shapes}", "loss=softmax_cross_entropy",
        "batch_size=6", "optimizer={kind: momentum, learning_rate: 0.01, momentum: 0.9}"};
    struct job job;
    struct twin with, without;
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets));
    twin_init(&with, &job, 1, 0);
    twin_init(&without, &job, 0, 0);
    ck_assert_uint_eq(without.sizes.mirrors, 0);
    if (with.sizes.mirrors == 0) {
        printf("skip: with %s no weights are wanted in two layouts\n", plan_isa());
    } else {
        ck_assert_uint_gt(without.sizes.reorders, with.sizes.reorders);
    }
    struct batch batch;
    float *images = batch_init(&batch);

    run_rounds(&with, &without, &batch);

    free(images);
    twin_fini(&without);
    twin_fini(&with);
}
END_TEST

/* What is dropped goes by step and by the rows that the rank has of all, and is drawn in training
 * alone. */
START_TEST(each_step_and_rank_drops_its_own)
{
    static const char *const sets[] = {
        "network=[flatten, dropout: {rate: 0.5}, dense: {out: classes}]", "dataset={kind: shapes}",
        "loss=softmax_cross_entropy", "batch_size=6", "optimizer={kind: sgd, learning_rate: 0.01}"};
    struct job job;
    struct twin first, other;
    struct batch batch;
    float losses[4] = {NAN, NAN, NAN, NAN};
    struct plan_evaluated made[2] = {{.loss_sum = NAN}, {.loss_sum = NAN}};
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets));
    twin_init(&first, &job, 0, 0);
    twin_init(&other, &job, 0, 1); /* the same weights: its seed is the job's */
    float *images = batch_init(&batch);

    ck_ms_ok(replica_step(first.replica, 1, &batch, NULL, NULL, &losses[0], err));
    ck_ms_ok(replica_step(first.replica, 2, &batch, NULL, NULL, &losses[1], err));
    ck_ms_ok(replica_step(other.replica, 1, &batch, NULL, NULL, &losses[2], err));
    ck_ms_ok(replica_step(first.replica, 1, &batch, NULL, NULL, &losses[3], err));
    batch.rows = EVAL;
    ck_ms_ok(replica_evaluate(first.replica, &batch, &made[0], err));
    ck_ms_ok(replica_evaluate(other.replica, &batch, &made[1], err));

    ck_assert(losses[0] == losses[3]);
    ck_assert(losses[0] != losses[1] && losses[0] != losses[2] && losses[1] != losses[2]);
    ck_assert(made[0].loss_sum == made[1].loss_sum);
    free(images);
    twin_fini(&other);
    twin_fini(&first);
}
END_TEST

/* Gradients are the mean over all rows, and each batch's statistics enter the moving ones in turn,
 * the short one's by its own count: as if each had been committed by itself. */
START_TEST(batches_of_a_step_are_added_up_by_their_rows)
{
    static const char *const sets[] = {"network=cifar_small",
                                       "dataset={kind: shapes}",
                                       "loss=softmax_cross_entropy",
                                       "batch_size=6",
                                       "optimizer={kind: sgd, learning_rate: 0}",
                                       "accumulate=3"};
    static const int64_t rows[] = {BATCH, BATCH, TAIL};
    const double all_rows = BATCH + BATCH + TAIL;
    struct job several_job, one_job;
    struct twin several, one;
    struct batch batch;
    float loss = NAN;
    train_case_job(&several_job, sets, MS_ARRAY_SIZE(sets));
    train_case_job(&one_job, sets, MS_ARRAY_SIZE(sets) - 1);
    twin_init(&several, &several_job, 0, 0);
    twin_init(&one, &one_job, 0, 0);
    ck_assert_uint_gt(one.sizes.stats, 0);
    const size_t n = one.sizes.exchange;
    double *want = calloc(n, sizeof(*want));
    ck_assert_ptr_nonnull(want);
    float *images = batch_init(&batch);
    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < batch.images.count; k++) {
            images[k] = (float)(2.0 * ms_rng_unit(20 + (uint64_t)i, k) - 1.0) * (float)(i + 1);
        }
        batch.rows = rows[i];
        batch.n_parts = 1;
        ck_ms_ok(replica_step(one.replica, 1, &batch, NULL, NULL, &loss, err));
        for (size_t k = one.sizes.stats; k < n; k++) {
            want[k] += (double)one.exchange[k] * (double)rows[i] / all_rows;
        }
        replica_commit(one.replica, 1, 1, 1, &batch, one.results);
        batch.part = i;
        batch.n_parts = 3;
        batch.step_rows = (int64_t)all_rows;
        ck_ms_ok(replica_step(several.replica, 1, &batch, NULL, NULL, &loss, err));
        batch.part = 0;
    }
    for (size_t k = one.sizes.stats; k < n; k++) {
        ck_assert_double_eq_tol((double)several.exchange[k], want[k], 1e-6 * (1 + fabs(want[k])));
    }
    replica_commit(several.replica, 1, 1, 1, &batch, several.results);
    const void *moving[2] = {NULL, NULL};
    size_t bytes = 0;
    ck_assert(replica_view_state(one.replica, 1, &moving[0], &bytes));
    ck_assert(replica_view_state(several.replica, 1, &moving[1], &bytes));
    for (size_t k = 0; k < bytes / sizeof(float); k++) {
        const double a = (double)((const float *)moving[0])[k];
        ck_assert_double_eq_tol((double)((const float *)moving[1])[k], a, 1e-6 * (1 + fabs(a)));
    }
    free(want);
    free(images);
    twin_fini(&one);
    twin_fini(&several);
}
END_TEST

/* ---- labels that do not count alike ---- */

enum { PIXELS = BATCH * CHANNELS * SIDE * SIDE };

/* A third of the rows has a label that does not count, the second batch's almost all. */
static void weighed_batch(struct batch *batch, float *images, int32_t *labels, uint64_t which)
{
    for (uint64_t i = 0; i < PIXELS; i++) {
        images[i] = (float)(2.0 * ms_rng_unit(30 + which, i) - 1.0);
    }
    for (uint64_t i = 0; i < BATCH; i++) {
        const int is_out = which == 0 ? i % 3 == 0 : i > 0;
        labels[i] = is_out ? -100 : (int32_t)ms_rng_below(40 + which, i, CLASSES);
    }
    *batch = (struct batch){.images = {MS_F32, PIXELS, images},
                            .labels = {MS_I32, BATCH, labels},
                            .rows = BATCH,
                            .n_parts = 1,
                            .step_rows = BATCH};
}

static const char *const weighed_sets[] = {"network=[flatten, dense: {out: classes}]",
                                           "dataset={kind: shapes}",
                                           "loss=softmax_cross_entropy",
                                           "class_weights=[1, 2, 0.5, 4, 1, 0.25, 3, 1, 1, 0]",
                                           "ignored_label=-100",
                                           "batch_size=6",
                                           "optimizer={kind: sgd, learning_rate: 0.5}",
                                           "accumulate=2"};

static float *weights_of(const struct twin *t)
{
    const void *state = NULL;
    size_t bytes = 0;
    ck_assert(replica_view_state(t->replica, 0, &state, &bytes));
    float *copy = floats(bytes / sizeof(float));
    memcpy(copy, state, bytes);
    return copy;
}

/* The mean is over what counts on all ranks, as if all of it had been one batch: other than the
 * mean of the means of the ranks. */
START_TEST(labels_with_weights_are_a_mean_over_all_ranks)
{
    static float images[2][PIXELS];
    static int32_t labels[2][BATCH];
    struct batch batches[2];
    struct job together_job, apart_job;
    struct twin together, apart;
    float loss = NAN;
    double weight[2];
    train_case_job(&together_job, weighed_sets, MS_ARRAY_SIZE(weighed_sets));
    train_case_job(&apart_job, weighed_sets, MS_ARRAY_SIZE(weighed_sets) - 1);
    twin_init(&together, &together_job, 0, 0);
    twin_init(&apart, &apart_job, 0, 0);
    const size_t n = apart.sizes.exchange;
    float *sums = floats(n);
    for (int i = 0; i < 2; i++) {
        weighed_batch(&batches[i], images[i], labels[i], (uint64_t)i);
        ck_ms_ok(replica_step(apart.replica, 1, &batches[i], NULL, NULL, &loss, err));
        weight[i] = replica_weight(apart.replica, &batches[i]);
        for (size_t k = 0; k < n; k++) {
            sums[k] += apart.exchange[k];
        }
        batches[i].part = i;
        batches[i].n_parts = 2;
        batches[i].step_rows = 2 * BATCH;
        ck_ms_ok(replica_step(together.replica, 1, &batches[i], NULL, NULL, &loss, err));
    }
    ck_assert_double_gt(fabs(weight[0] - weight[1]), 0.2);

    memcpy(apart.exchange, sums, n * sizeof(*sums));
    replica_commit(apart.replica, 1, 2, (float)(weight[0] + weight[1]), &batches[1], apart.results);
    replica_commit(together.replica, 1, 1, (float)((weight[0] + weight[1]) / 2), &batches[1],
                   together.results);

    float *want = weights_of(&together);
    float *have = weights_of(&apart);
    for (size_t k = 0; k < apart.sizes.weights; k++) {
        ck_assert_float_eq_tol(have[k], want[k], 1e-6F);
    }
    free(want);
    free(have);
    free(sums);
    twin_fini(&apart);
    twin_fini(&together);
}
END_TEST

START_TEST(a_step_in_which_nothing_counts_changes_nothing)
{
    static float images[PIXELS];
    static int32_t labels[BATCH];
    struct batch batch;
    struct job job;
    struct twin t;
    float loss = NAN;
    train_case_job(&job, weighed_sets, MS_ARRAY_SIZE(weighed_sets) - 1);
    twin_init(&t, &job, 0, 0);
    weighed_batch(&batch, images, labels, 0);
    for (int i = 0; i < BATCH; i++) {
        labels[i] = i % 2 == 0 ? -100 : CLASSES - 1; /* whose weight is 0 */
    }
    float *before = weights_of(&t);

    ck_ms_ok(replica_step(t.replica, 1, &batch, NULL, NULL, &loss, err));
    ck_assert_float_eq(loss, 0);
    ck_assert_double_eq(replica_weight(t.replica, &batch), 0);
    replica_commit(t.replica, 1, 1, 0, &batch, t.results);

    float *after = weights_of(&t);
    ck_assert_mem_eq(before, after, t.sizes.weights * sizeof(*after));
    free(before);
    free(after);
    twin_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replica");
    TCase *tc = tcase_create("mirrors");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, mirrors_are_those_of_the_weights);
    tcase_add_test(tc, each_step_and_rank_drops_its_own);
    tcase_add_test(tc, batches_of_a_step_are_added_up_by_their_rows);
    tcase_add_test(tc, labels_with_weights_are_a_mean_over_all_ranks);
    tcase_add_test(tc, a_step_in_which_nothing_counts_changes_nothing);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
