/* loader.c - a thread that reads, transforms and batches ahead of the trainer
 *
 * A ring of depth + 1 batches: one is the trainer's, the others are ready or being filled. Nothing
 * is allocated after the start. Which record enters which batch is order.c's pure function, so the
 * thread's timing decides nothing. */
#include "libworker/data/loader_impl.h"
#include "proto/thread.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_DEFAULT = 2, DEPTH_MAX = 64, ALIGNMENT = 64 };

/* 64 Ki samples of 224 x 224 x 3 are 39 GB: what is beyond was never meant. */
#define LOADER_BATCH_BYTES_MAX (INT64_C(16) << 30)

/* ---- the thread ---- */

/* The slot to fill next, once the trainer has let go of it; NULL: stop. */
static struct slot *wait_for_slot(struct loader *l)
{
    struct slot *slot = NULL;
    pthread_mutex_lock(&l->lock);
    while (!atomic_load(&l->stop) && l->n_filled - l->n_released == l->n_slots) {
        pthread_cond_wait(&l->freed, &l->lock);
    }
    if (!atomic_load(&l->stop)) {
        slot = &l->slots[l->n_filled % l->n_slots];
    }
    pthread_mutex_unlock(&l->lock);
    return slot;
}

static void publish(struct loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->n_filled++;
    pthread_cond_signal(&l->filled);
    pthread_mutex_unlock(&l->lock);
}

static int run_epoch(struct loader *l, int64_t epoch, int64_t first_step, struct ms_err *err)
{
    int64_t expected = first_step * l->cfg.accumulate;
    if (l->perm != NULL) {
        data_permute(&l->shard, (uint64_t)epoch, l->perm);
    }
    for (int64_t i = first_step * l->cfg.accumulate; i < l->batches_per_epoch; i++) {
        struct slot *slot = wait_for_slot(l);
        if (slot == NULL) {
            return ms_fail(err, MS_E_ABORTED, "the loader was stopped");
        }
        int rc = loader_expect(l, epoch, i, &expected, err);
        rc = rc < 0 ? rc : loader_fill(l, slot, epoch, i, err);
        if (rc < 0) {
            return rc;
        }
        publish(l);
    }
    return MS_OK;
}

static void *loader_main(void *arg)
{
    struct loader *l = arg;
    struct ms_err err = {0, ""};
    int64_t first_step = l->cfg.first_step;
    int rc = MS_OK;
    for (int64_t epoch = l->cfg.first_epoch; rc == MS_OK && epoch < l->cfg.epochs; epoch++) {
        rc = run_epoch(l, epoch, first_step, &err);
        first_step = 0;
    }
    pthread_mutex_lock(&l->lock);
    l->is_done = 1;
    l->error = err;
    pthread_cond_signal(&l->filled);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- creation ---- */

static struct row row_of(enum ms_dtype dtype, int64_t count)
{
    return (struct row){dtype, (size_t)count, (size_t)count * ms_dtype_bytes(dtype)};
}

static int fail_empty(const struct loader *l, struct ms_err *err)
{
    const struct loader_config *cfg = &l->cfg;
    char accumulated[48] = "";
    if (cfg->accumulate > 1) {
        snprintf(accumulated, sizeof(accumulated), ", %lld times a step,",
                 (long long)cfg->accumulate);
    }
    return ms_fail(err, MS_E_INVALID,
                   "batch_size %lld%s with drop_remainder leaves nothing: each of %d workers has "
                   "%lld of the %lld samples; make the batch smaller",
                   (long long)cfg->batch, accumulated, cfg->world, (long long)l->info.rows,
                   (long long)l->data.rows);
}

/* Everything that loader_info tells, and what cannot work. */
static int measure(struct loader *l, struct ms_err *err)
{
    const struct loader_config *cfg = &l->cfg;
    l->shard = (struct data_shard){.rows = l->data.rows,
                                   .rank = cfg->rank,
                                   .world = cfg->world,
                                   .shuffle = cfg->shuffle && !cfg->evaluation,
                                   .seed = cfg->seed,
                                   .wrap = !cfg->evaluation};
    struct loader_info *info = &l->info;
    *info = (struct loader_info){.channels = l->data.channels,
                                 .height = l->data.height,
                                 .width = l->data.width,
                                 .classes = l->data.classes,
                                 .target_width = l->data.target_width,
                                 .tokens = l->data.tokens,
                                 .rows = data_shard_rows(&l->shard)};
    int rc = transform_check(l->transforms, cfg->n_transforms, &info->channels, &info->height,
                             &info->width, err);
    if (rc < 0) {
        return rc;
    }
    int drops = cfg->drop_remainder && !cfg->evaluation;
    const int64_t of_step = cfg->batch * cfg->accumulate;
    info->steps_per_epoch = drops ? info->rows / of_step : (info->rows + of_step - 1) / of_step;
    l->batches_per_epoch = drops ? info->steps_per_epoch * cfg->accumulate
                                 : (info->rows + cfg->batch - 1) / cfg->batch;
    info->last_rows = drops || info->rows == 0
                          ? cfg->batch
                          : info->rows - (l->batches_per_epoch - 1) * cfg->batch;
    if (info->steps_per_epoch == 0 && !cfg->evaluation) {
        return fail_empty(l, err);
    }
    /* elements: below 2^28 by the limits */
    l->images = row_of(MS_F32, info->channels * info->height * info->width);
    l->labels = info->classes > 0 ? row_of(MS_I32, info->tokens > 0 ? info->tokens : 1)
                                  : row_of(MS_F32, info->target_width);
    if ((int64_t)l->images.bytes > LOADER_BATCH_BYTES_MAX / cfg->batch) {
        return ms_fail(err, MS_E_INVALID,
                       "a batch of %lld images of %lldx%lldx%lld has more than 16 GiB; make "
                       "batch_size or the resize smaller",
                       (long long)cfg->batch, (long long)info->channels, (long long)info->height,
                       (long long)info->width);
    }
    return MS_OK;
}

static int check_config(const struct loader_config *cfg, struct ms_err *err)
{
    assert(cfg->source != NULL && cfg->world > 0 && cfg->rank >= 0 && cfg->rank < cfg->world);
    assert(cfg->first_epoch >= 0 && cfg->first_step >= 0);
    if (cfg->batch < 1 || cfg->batch > MS_BATCH_MAX) {
        return ms_fail(err, MS_E_INVALID, "batch_size %lld: give a whole number from 1 to %d",
                       (long long)cfg->batch, MS_BATCH_MAX);
    }
    if (cfg->n_transforms < 0 || cfg->n_transforms > MS_TRANSFORMS_MAX) {
        return ms_fail(err, MS_E_INVALID, "%d transforms: at most %d", cfg->n_transforms,
                       MS_TRANSFORMS_MAX);
    }
    if (cfg->depth < 0 || cfg->depth > DEPTH_MAX) {
        return ms_fail(err, MS_E_INVALID, "%d batches ahead: from 1 to %d", cfg->depth, DEPTH_MAX);
    }
    return MS_OK;
}

static void *allocate(size_t n, size_t size)
{
    size_t bytes = (n * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return aligned_alloc(ALIGNMENT, bytes > 0 ? bytes : ALIGNMENT);
}

static int allocate_slots(struct loader *l)
{
    size_t batch = (size_t)l->cfg.batch;
    int is_complete = 1;
    for (int i = 0; i < l->n_slots; i++) {
        struct slot *slot = &l->slots[i];
        slot->images = allocate(batch, l->images.bytes);
        slot->labels = allocate(batch, l->labels.bytes);
        is_complete &= slot->images != NULL && slot->labels != NULL;
        if (l->alpha > 0 && l->data.classes > 0) {
            slot->others = allocate(batch, sizeof(*slot->others));
            slot->shares = allocate(batch, sizeof(*slot->shares));
            is_complete &= slot->others != NULL && slot->shares != NULL;
        }
    }
    return is_complete;
}

/* Threads decode; of what lies there as it is used, one reads as fast as any. */
static int make_readers(struct loader *l, struct ms_err *err)
{
    int rc = MS_OK;
    if (!l->data.is_decoded) {
        return MS_OK;
    }
    l->readers = calloc((size_t)l->n_threads, sizeof(*l->readers));
    if (l->readers == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %d threads that decode", l->n_threads);
    }
    for (int i = 0; rc == MS_OK && i < l->n_threads; i++) {
        rc = data_reader_create(l->cfg.source, &l->readers[i], err);
    }
    return rc == MS_OK && l->n_threads > 1 ? pool_create(l->n_threads, &l->pool, err) : rc;
}

static int allocate_all(struct loader *l, struct ms_err *err)
{
    const struct data_info *data = &l->data;
    size_t scratch =
        transform_scratch(l->transforms, l->n_single, data->channels, data->height, data->width);
    size_t mixing = l->alpha > 0 ? l->images.bytes + l->labels.bytes : 0;
    l->slots = calloc((size_t)l->n_slots, sizeof(*l->slots));
    l->scratch_bytes = (scratch + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    l->scratch = allocate(l->scratch_bytes, (size_t)l->n_threads);
    l->mixing_bytes = (mixing + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    l->mixing = allocate(l->mixing_bytes, (size_t)l->n_threads);
    l->perm = l->shard.shuffle ? malloc((size_t)data->rows * sizeof(*l->perm)) : NULL;
    if (l->slots == NULL || l->scratch == NULL || l->mixing == NULL ||
        (l->shard.shuffle && l->perm == NULL) || !allocate_slots(l)) {
        return ms_fail(err, MS_E_NOMEM,
                       "no memory for %d batches of %lld images of %lldx%lldx%lld; make batch_size "
                       "smaller",
                       l->n_slots, (long long)l->cfg.batch, (long long)l->info.channels,
                       (long long)l->info.height, (long long)l->info.width);
    }
    return MS_OK;
}

static int start_thread(struct loader *l, struct ms_err *err)
{
    data_forget(l->cfg.source); /* what another loader expected */
    int rc = ms_thread_start(&l->thread, loader_main, l);
    if (rc != 0) {
        return ms_fail(err, MS_E_NOMEM, "the loader's thread cannot be started: %s", strerror(rc));
    }
    l->has_thread = 1;
    return MS_OK;
}

/* A loader that knows its shapes and counts, without buffers and thread. */
static int make(const struct loader_config *cfg, struct loader **ret, struct ms_err *err)
{
    int rc = check_config(cfg, err);
    if (rc < 0) {
        return rc;
    }
    struct loader *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the loader");
    }
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->freed, NULL);
    atomic_init(&l->stop, 0);
    l->cfg = *cfg;
    memcpy(l->transforms, cfg->transforms != NULL ? cfg->transforms : l->transforms,
           (size_t)cfg->n_transforms * sizeof(l->transforms[0]));
    l->cfg.transforms = l->transforms;
    l->n_single = cfg->n_transforms;
    if (l->n_single > 0 && l->transforms[l->n_single - 1].kind == TRANSFORM_MIXUP) {
        l->n_single--;
        l->alpha = l->transforms[l->n_single].alpha;
    }
    l->cfg.accumulate = cfg->accumulate > 0 && !cfg->evaluation ? cfg->accumulate : 1;
    if (cfg->evaluation) {
        l->cfg.epochs = 1;
        l->cfg.first_epoch = 0;
        l->cfg.first_step = 0;
    }
    l->n_slots = (cfg->depth > 0 ? cfg->depth : DEPTH_DEFAULT) + 1;
    l->data = *data_get_info(cfg->source);
    l->n_threads = l->data.is_decoded && cfg->threads > 1 ? cfg->threads : 1;
    rc = measure(l, err);
    if (rc < 0) {
        loader_destroy(l);
        return rc;
    }
    *ret = l;
    return MS_OK;
}

int loader_measure(const struct loader_config *cfg, struct loader_info *ret, struct ms_err *err)
{
    struct loader *l = NULL;
    int rc = make(cfg, &l, err);
    if (rc == MS_OK) {
        *ret = l->info;
        loader_destroy(l);
    }
    return rc;
}

int loader_create(const struct loader_config *cfg, struct loader **ret, struct ms_err *err)
{
    struct loader *l = NULL;
    int rc = make(cfg, &l, err);
    if (rc < 0) {
        return rc;
    }
    rc = allocate_all(l, err);
    if (rc == MS_OK) {
        rc = make_readers(l, err);
    }
    if (rc == MS_OK) {
        rc = start_thread(l, err);
    }
    if (rc < 0) {
        loader_destroy(l);
        return rc;
    }
    *ret = l;
    return MS_OK;
}

static void end_thread(struct loader *loader)
{
    if (loader->has_thread) {
        pthread_mutex_lock(&loader->lock);
        atomic_store(&loader->stop, 1);
        pthread_cond_broadcast(&loader->freed);
        pthread_mutex_unlock(&loader->lock);
        data_interrupt(loader->cfg.source);
        pthread_join(loader->thread, NULL);
        loader->has_thread = 0;
    }
}

void loader_destroy(struct loader *loader)
{
    if (loader == NULL) {
        return;
    }
    end_thread(loader);
    pool_destroy(loader->pool);
    for (int i = 0; loader->readers != NULL && i < loader->n_threads; i++) {
        data_reader_destroy(loader->readers[i]);
    }
    free(loader->readers);
    for (int i = 0; loader->slots != NULL && i < loader->n_slots; i++) {
        free(loader->slots[i].images);
        free(loader->slots[i].labels);
        free(loader->slots[i].others);
        free(loader->slots[i].shares);
    }
    free(loader->slots);
    free(loader->scratch);
    free(loader->mixing);
    free(loader->perm);
    pthread_cond_destroy(&loader->freed);
    pthread_cond_destroy(&loader->filled);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

int loader_finish(struct loader *loader, struct ms_err *err)
{
    end_thread(loader);
    return data_verify(loader->cfg.source, err);
}

void loader_get_info(const struct loader *loader, struct loader_info *ret)
{
    *ret = loader->info;
}

/* ---- the trainer's side ---- */

int loader_next(struct loader *loader, struct batch *ret, struct ms_err *err)
{
    int rc = 0;
    pthread_mutex_lock(&loader->lock);
    assert(loader->n_taken == loader->n_released); /* the last batch was released */
    while (!loader->is_aborted && !loader->is_held && !loader->is_done &&
           loader->n_filled == loader->n_taken) {
        pthread_cond_wait(&loader->filled, &loader->lock);
    }
    if (loader->is_aborted) {
        rc = ms_fail(err, MS_E_ABORTED, "the loader was stopped");
    } else if (loader->n_filled > loader->n_taken) { /* what was read well before an error counts */
        *ret = loader->slots[loader->n_taken % loader->n_slots].batch;
        loader->n_taken++;
        rc = 1;
    } else if (!loader->is_done) {
        rc = ms_fail(err, MS_E_ABORTED, "the loader is held");
    } else if (loader->error.code < 0) {
        rc = ms_fail(err, loader->error.code, "%s", loader->error.text);
    }
    pthread_mutex_unlock(&loader->lock);
    return rc;
}

void loader_release(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    assert(loader->n_taken == loader->n_released + 1);
    loader->n_released++;
    pthread_cond_signal(&loader->freed);
    pthread_mutex_unlock(&loader->lock);
}

void loader_hold(struct loader *loader, int is_held)
{
    pthread_mutex_lock(&loader->lock);
    loader->is_held = is_held;
    pthread_cond_broadcast(&loader->filled);
    pthread_mutex_unlock(&loader->lock);
}

void loader_interrupt(struct loader *loader)
{
    data_interrupt(loader->cfg.source);
}

void loader_abort(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->is_aborted = 1;
    atomic_store(&loader->stop, 1);
    pthread_cond_broadcast(&loader->filled);
    pthread_cond_broadcast(&loader->freed);
    pthread_mutex_unlock(&loader->lock);
    data_interrupt(loader->cfg.source);
}
