/* train_step.c - one step of a rank, up to the sums over ranks: its batches, its loss */
#include "libworker/train/train_impl.h"
#include "proto/clock.h"
#include "proto/macros.h"

#include <assert.h>
#include <string.h>

static void post_bucket(void *arg, int bucket)
{
    struct train *train = arg;
    if (bucket < train->sizes.n_buckets - 1) {
        reducer_post(train->reducer, bucket);
    } /* the last one waits for the tail */
}

/* What a program that delivers records has said is put into the rank's log. */
static void hear(struct train *train, struct data_source *source)
{
    char line[RANK_LOG_LINE_MAX];
    while (data_hear(source, line, sizeof(line))) {
        rank_log_say(&train->log, "%s\n", line);
    }
}

int train_next(struct train *train, struct loader *loader, struct data_source *source,
               struct batch *ret, struct ms_err *err)
{
    const int rc = loader_next(loader, ret, err);
    hear(train, source);
    return rc;
}

void train_finish_data(struct train *train)
{
    struct data_source *const all[] = {train->source, train->eval_source};
    for (size_t i = 0; i < MS_ARRAY_SIZE(all); i++) {
        if (all[i] != NULL) {
            data_finish(all[i]);
            hear(train, all[i]);
        }
    }
}

int train_was_woken(const struct train *train, int rc)
{
    return rc == MS_E_ABORTED && atomic_load(&train->stop_asked) && !atomic_load(&train->cancelled);
}

/* The next batch of the step in the place of the one in hand, of which nothing is left to do. */
static int take_part(struct train *train, struct ms_err *err)
{
    train->is_within = 1;
    train->has_batch = 0;
    loader_release(train->loader);
    int rc = train_next(train, train->loader, train->source, &train->batch, err);
    train->has_batch = rc == 1;
    assert(rc != 0); /* the loader has whole steps */
    return rc < 0 ? rc : 0;
}

/* All batches of the step; the last one stays in hand. Both are means over all rows of the step:
 * of losses times weights, and of weights. */
static int run_parts(struct train *train, uint64_t step, float *ret_loss, float *ret_weight,
                     struct ms_err *err)
{
    const struct batch *batch = &train->batch;
    double mean = 0;
    double weight = 0;
    float loss = 0;
    int rc = 0;
    for (int is_last = 0; rc == 0 && !is_last;) {
        rc = replica_step(train->replica, step, batch, post_bucket, train, &loss, err);
        mean += (double)loss * ((double)batch->rows / (double)batch->step_rows);
        weight += rc == 0 ? replica_weight(train->replica, batch) * (double)batch->rows : 0;
        is_last = batch->part + 1 == batch->n_parts;
        if (rc == 0 && !is_last) {
            rc = take_part(train, err);
        }
    }
    *ret_loss = (float)mean;
    *ret_weight = (float)(weight / (double)batch->step_rows); /* 1 where all count alike */
    return rc;
}

/* Where nothing counts there is no loss. */
static float mean_of(float loss, float weight)
{
    return weight > 0 ? loss / weight : 0;
}

/* In the place of gradients what lies there: nobody takes it. */
static void post_void(struct train *train)
{
    for (int i = 0; i < train->sizes.n_buckets - 1; i++) {
        reducer_post(train->reducer, i);
    }
}

int train_run_step(struct train *train, uint64_t step, struct train_step_numbers *ret,
                   struct ms_err *err)
{
    double waited = 0;
    double before = ms_mono_s();
    int rc = reducer_begin(train->reducer, step, err);
    waited += ms_mono_s() - before;
    float loss = 0;
    float weight = 0;
    if (rc == 0 && train->has_batch) {
        rc = run_parts(train, step, &loss, &weight, err);
    }
    const int is_void = !train->has_batch && (rc == 0 || train_was_woken(train, rc));
    if (rc < 0 && !is_void) {
        return rc;
    }
    if (is_void) {
        post_void(train);
        loss = weight = 0;
    }
    const int last = train->sizes.n_buckets - 1;
    const struct plan_bucket bucket = replica_bucket(train->replica, last);
    float *tail = (float *)mesh_exchange(train->mesh) + bucket.begin + bucket.count;
    memset(tail, 0, TAIL_FLOATS * sizeof(*tail)); /* what may lie there is of frozen parameters */
    tail[TAIL_LOSS] = loss;
    tail[TAIL_STOP] = atomic_load(&train->stop_asked) ? 1.0F : 0.0F;
    tail[TAIL_VOID] = is_void ? 1.0F : 0.0F;
    tail[TAIL_WEIGHT] = weight;
    if (!is_void) {
        train_log_loss(train, step, mean_of(loss, weight));
    }
    before = ms_mono_s();
    reducer_post(train->reducer, last);
    rc = reducer_wait(train->reducer, train->results, err);
    waited += ms_mono_s() - before;
    if (rc < 0) {
        return rc;
    }
    const float *sum = (const float *)train->results[last] + bucket.count;
    ret->loss_here = mean_of(loss, weight);
    ret->weight = sum[TAIL_WEIGHT];
    ret->loss_mean = mean_of(sum[TAIL_LOSS], ret->weight);
    ret->stop = sum[TAIL_STOP] > 0.0F;
    ret->is_void = sum[TAIL_VOID] > 0.0F;
    ret->wait_s = waited;
    return 0;
}

/* A step that was given up in a later batch begins anew with its first one, which is read again. */
int train_take_batch(struct train *train, struct ms_err *err)
{
    int rc = train->is_within ? train_place_loader(train, train->progress.step, err) : 0;
    if (rc == 0) {
        rc = train->has_batch ? 1
                              : train_next(train, train->loader, train->source, &train->batch, err);
        train->has_batch = rc == 1;
    }
    return train_was_woken(train, rc) ? 1 : rc;
}
