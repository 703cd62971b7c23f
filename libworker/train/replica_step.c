/* replica_step.c - what a replica does in a step: forward and backward, the commit; evaluation */
#include "libworker/kernel/kernel.h"
#include "libworker/plan/spec.h"
#include "libworker/train/replica_impl.h"
#include "libworker/train/schedule.h"

#include <assert.h>

static int make_mirrors(struct replica *replica, struct ms_err *err)
{
    int rc = replica->has_mirrors ? 0
                                  : plan_write_mirrors(replica->uses[PLAN_TRAIN].plan, 0,
                                                       replica->sizes.weights, err);
    replica->has_mirrors = rc == 0;
    return rc;
}

static const struct use *use_for(const struct replica *replica, int64_t rows)
{
    const struct use *tail = &replica->uses[PLAN_TAIL];
    return tail->plan != NULL && rows == tail->batch ? tail : &replica->uses[PLAN_TRAIN];
}

/* ---- batches of a step ---- */

/* One of several: what it made is added to what those before it made, and with the last one all of
 * it lies in the exchange buffer. */
struct folding {
    struct replica *replica;
    const struct batch *batch;
    plan_bucket_fn *on_bucket;
    void *arg;
};

static void fold_stats(struct replica *replica, const struct batch *batch, float *into)
{
    plan_fold_stats(use_for(replica, batch->rows)->plan, into,
                    batch->part > 0 ? replica->sums : NULL, replica->exchange);
}

/* Means over a batch become their share of the mean over all rows of the step. */
static void fold_gradients(struct replica *replica, const struct batch *batch,
                           const struct plan_bucket *bucket, float *into)
{
    const float share = (float)((double)batch->rows / (double)batch->step_rows);
    const float *sums = batch->part > 0 ? (const float *)replica->sums + bucket->begin : NULL;
    kernel_add_share(into + bucket->begin, sums, (float *)replica->exchange + bucket->begin, share,
                     bucket->count, replica->spec->threads);
}

static void fold(void *arg, int index)
{
    const struct folding *folding = arg;
    struct replica *replica = folding->replica;
    const struct batch *batch = folding->batch;
    const int is_last = batch->part + 1 == batch->n_parts;
    const struct plan_bucket bucket = replica_bucket(replica, index);
    float *into = is_last ? replica->exchange : replica->sums;
    if (index == 0 && replica->sizes.stats > 0) {
        fold_stats(replica, batch, into);
    } else {
        fold_gradients(replica, batch, &bucket, into);
    }
    if (is_last && folding->on_bucket != NULL) {
        folding->on_bucket(folding->arg, index);
    }
}

/* The same rows draw the same numbers, whatever the batch in which they are. */
static struct plan_draw draw_of(const struct replica *replica, uint64_t step,
                                const struct batch *batch)
{
    const struct job *job = replica->job;
    const uint64_t rank = (uint64_t)replica->cfg.rank;
    const uint64_t before = rank * (uint64_t)job->accumulate + (uint64_t)batch->part; /* batches */
    return (struct plan_draw){job->seed, step, before * (uint64_t)job->batch_size};
}

int replica_step(struct replica *replica, uint64_t step, const struct batch *batch,
                 plan_bucket_fn *on_bucket, void *arg, float *ret_loss, struct ms_err *err)
{
    const struct use *use = use_for(replica, batch->rows);
    assert(use->batch == batch->rows);
    struct folding folding = {replica, batch, on_bucket, arg};
    const int is_whole = batch->n_parts <= 1;
    const struct plan_draw draw = draw_of(replica, step, batch);
    plan_set_draw(use->plan, &draw);
    plan_set_others(use->plan, batch->others, batch->shares);
    int rc = make_mirrors(replica, err);
    return rc < 0 ? rc
                  : plan_train_step(use->plan, batch->images.values, batch->labels.values,
                                    is_whole ? on_bucket : fold, is_whole ? arg : &folding,
                                    ret_loss, err);
}

/* ---- the commit ---- */

double replica_learning_rate(const struct replica *replica, uint64_t step)
{
    return schedule_rate(replica->job, replica->cfg.train.steps_per_epoch, step);
}

/* Gradients of a piece, summed over ranks. */
static const void *sums_of(const struct replica *replica, const struct piece *piece,
                           const void *const *results)
{
    return (const char *)results[piece->bucket] +
           ms_dtype_size(replica->sizes.exchange_dtype, piece->in_bucket);
}

/* Of all gradients that there are: frozen parameters have none. */
static double sum_squares(struct replica *replica, const void *const *results)
{
    double sum = 0;
    struct piece run;
    for (int i = 0; i < replica->pieces.n;) {
        i = pieces_run(&replica->pieces, i, &run);
        sum += kernel_sum_squares(sums_of(replica, &run, results), run.count, replica->partial,
                                  replica->spec->threads);
    }
    return sum;
}

/* optimizer: as it is in this step, for parameters of no group. */
static void update(struct replica *replica, const struct job_optimizer *optimizer, uint64_t step,
                   float scale, const struct piece *piece, const void *const *results)
{
    const struct plan_sizes *sizes = &replica->sizes;
    const struct job_group *group = piece->group;
    const int has_decay = group != NULL && group->has_weight_decay;
    const size_t bytes_at = ms_dtype_size(sizes->weights_dtype, piece->begin);
    struct job_optimizer own = *optimizer;
    struct optimizer_range range = {
        .weights_dtype = sizes->weights_dtype,
        .grads_dtype = sizes->exchange_dtype,
        .weights = (char *)replica->weights + bytes_at,
        .grads = sums_of(replica, piece, results),
        .count = piece->count,
        .scratch = replica->partial,
        .weight_decay = (float)(has_decay ? group->weight_decay : optimizer->weight_decay)};
    for (int s = 0; s < replica->n_slots; s++) {
        range.slots[s] = (char *)replica->slots[s] + bytes_at;
    }
    own.learning_rate =
        schedule_group_rate(&replica->job->optimizer, group, optimizer->learning_rate);
    optimizer_apply(&own, step, scale, &range, replica->spec->threads);
}

static void commit_stats(struct replica *replica, const struct batch *batch, const float *sums,
                         float mean)
{
    struct plan *plan = use_for(replica, batch->rows)->plan;
    if (batch->n_parts > 1) {
        plan_commit_folded(plan, sums, mean, batch->n_parts, replica->moving);
    } else {
        plan_commit_stats(plan, sums, mean, replica->moving);
    }
}

double replica_weight(const struct replica *replica, const struct batch *batch)
{
    return plan_weight(use_for(replica, batch->rows)->plan);
}

void replica_commit(struct replica *replica, uint64_t step, int world, float weight,
                    const struct batch *batch, const void *const *results)
{
    if (replica->sizes.stats > 0) {
        commit_stats(replica, batch, results[0], 1.0F / (float)world);
    }
    const float of = replica->job->gradients_mean ? 1.0F : (float)world;
    float scale = weight > 0 ? of / weight : 0;
    struct job_optimizer optimizer = replica->job->optimizer; /* as it is in this step */
    optimizer.learning_rate = replica_learning_rate(replica, step);
    if (optimizer.clip_norm > 0) {
        scale = optimizer_clip(&optimizer, scale, sum_squares(replica, results));
    }
    (void)replica_weights_to_write(replica);
    int rc = 0;
    for (int i = 0; i < replica->pieces.n; i++) {
        const struct piece *piece = &replica->pieces.items[i];
        update(replica, &optimizer, step, scale, piece, results);
        /* the piece is in a cache still; what fails is made, or fails, before the next run */
        rc |= plan_write_mirrors(replica->uses[PLAN_TRAIN].plan, piece->begin, piece->count, NULL);
    }
    replica->has_mirrors = rc == 0;
}

int replica_evaluate(struct replica *replica, const struct batch *batch, struct plan_evaluated *ret,
                     struct ms_err *err)
{
    int rc = make_mirrors(replica, err);
    return rc < 0 ? rc
                  : plan_evaluate(replica->uses[PLAN_EVALUATE].plan, batch->images.values,
                                  batch->labels.values, batch->rows, ret, err);
}
