/* train_step.c - one step of a rank, up to the sums over ranks: its batches, its loss */
#include "libworker/train/train_impl.h"
#include "proto/clock.h"

#include <assert.h>
#include <string.h>

static void post_bucket(void *arg, int bucket)
{
    struct train *train = arg;
    if (bucket < train->sizes.n_buckets - 1) {
        reducer_post(train->reducer, bucket);
    } /* the last one waits for the tail */
}

/* The next batch of the step in the place of the one in hand, of which nothing is left to do. */
static int take_part(struct train *train, struct ms_err *err)
{
    train->is_within = 1;
    train->has_batch = 0;
    loader_release(train->loader);
    int rc = loader_next(train->loader, &train->batch, err);
    train->has_batch = rc == 1;
    assert(rc != 0); /* the loader has whole steps */
    return rc < 0 ? rc : 0;
}

/* All batches of the step; the last one stays in hand. */
static int run_parts(struct train *train, uint64_t step, float *ret_loss, struct ms_err *err)
{
    const struct batch *batch = &train->batch;
    double mean = 0; /* over all rows of the step */
    float loss = 0;
    int rc = 0;
    for (int is_last = 0; rc == 0 && !is_last;) {
        rc = replica_step(train->replica, step, batch, post_bucket, train, &loss, err);
        mean += (double)loss * ((double)batch->rows / (double)batch->step_rows);
        is_last = batch->part + 1 == batch->n_parts;
        if (rc == 0 && !is_last) {
            rc = take_part(train, err);
        }
    }
    *ret_loss = (float)mean;
    return rc;
}

int train_run_step(struct train *train, uint64_t step, struct train_step_numbers *ret,
                   struct ms_err *err)
{
    double waited = 0;
    double before = ms_mono_s();
    int rc = reducer_begin(train->reducer, step, err);
    waited += ms_mono_s() - before;
    float loss = 0;
    if (rc == 0) {
        rc = run_parts(train, step, &loss, err);
    }
    if (rc < 0) {
        return rc;
    }
    const int last = train->sizes.n_buckets - 1;
    const struct plan_bucket bucket = replica_bucket(train->replica, last);
    float *tail = (float *)mesh_exchange(train->mesh) + bucket.begin + bucket.count;
    memset(tail, 0, TAIL_FLOATS * sizeof(*tail)); /* what may lie there is of frozen parameters */
    tail[TAIL_LOSS] = loss;
    tail[TAIL_STOP] = atomic_load(&train->stop_asked) ? 1.0F : 0.0F;
    train_log_loss(train, step, loss);
    before = ms_mono_s();
    reducer_post(train->reducer, last);
    rc = reducer_wait(train->reducer, train->results, err);
    waited += ms_mono_s() - before;
    if (rc < 0) {
        return rc;
    }
    const float *sum = (const float *)train->results[last] + bucket.count;
    ret->loss_here = loss;
    ret->loss_mean = sum[TAIL_LOSS] / (float)train->data_world;
    ret->stop = sum[TAIL_STOP] > 0.0F;
    ret->wait_s = waited;
    return 0;
}

/* A step that was given up in a later batch begins anew with its first one, which is read again. */
int train_take_batch(struct train *train, struct ms_err *err)
{
    int rc = train->is_within ? train_place_loader(train, train->progress.step, err) : 0;
    if (rc == 0) {
        rc = train->has_batch ? 1 : loader_next(train->loader, &train->batch, err);
        train->has_batch = rc == 1;
    }
    return rc;
}
