/* prepare.c - everything before step 0: data, plan, memory check, mesh, weights */
#include "libworker/data/path.h"
#include "libworker/host/memory.h"
#include "libworker/host/offer.h"
#include "libworker/train/model_copy.h"
#include "libworker/train/train_impl.h"
#include "proto/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libdnnl, libc, stacks, the JIT's code: measured with `linear`, whose own buffers are nothing. */
#define BASE_BYTES (70U << 20)

enum { LOADER_DEPTH = 2 };

/* ---- data ---- */

static int check_classes(const struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    int wants_classes = job->loss == JOB_LOSS_SOFTMAX_CE;
    if (wants_classes != (train->info.classes > 0)) {
        return ms_fail(err, MS_E_INVALID, "loss: %s does not fit the data set, whose labels are %s",
                       wants_classes ? "softmax_cross_entropy" : "mse",
                       wants_classes ? "numbers; use mse" : "classes; use softmax_cross_entropy");
    }
    if (wants_classes && job->classes > 0 && job->classes < train->info.classes) {
        return ms_fail(err, MS_E_INVALID,
                       "classes: %d is fewer than the %" PRId64 " classes of the data set",
                       job->classes, train->info.classes);
    }
    return 0;
}

static int start_loader(struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    struct loader_config cfg = {.source = train->source,
                                .transforms = job->transforms,
                                .n_transforms = job->n_transforms,
                                .batch = job->batch_size,
                                .drop_remainder = job->drop_remainder,
                                .rank = train->data_rank,
                                .world = train->data_world,
                                .shuffle = job->dataset.shuffle,
                                .seed = job->seed,
                                .epochs = job->epochs,
                                .depth = LOADER_DEPTH};
    struct loader *loader = NULL;
    int rc = loader_create(&cfg, &loader, err);
    if (rc < 0) {
        return rc;
    }
    pthread_mutex_lock(&train->lock);
    train->loader = loader;
    pthread_mutex_unlock(&train->lock);
    loader_get_info(loader, &train->info);
    return check_classes(train, err);
}

/* One pass over the evaluation data; fixed: room for the transforms of training without the random
 * ones. */
static struct loader_config eval_config(const struct train *train,
                                        struct transform fixed[MS_TRANSFORMS_MAX])
{
    const struct job *job = train->cfg.job;
    int n = 0;
    for (int i = 0; i < job->n_transforms; i++) {
        if (job->transforms[i].kind != TRANSFORM_RANDOM_CROP &&
            job->transforms[i].kind != TRANSFORM_RANDOM_HORIZONTAL_FLIP) {
            fixed[n++] = job->transforms[i];
        }
    }
    return (struct loader_config){.source = train->eval_source,
                                  .transforms = fixed,
                                  .n_transforms = n,
                                  .batch = train->eval_batch,
                                  .rank = train->data_rank,
                                  .world = train->data_world,
                                  .evaluation = 1,
                                  .seed = job->seed,
                                  .epochs = 1,
                                  .depth = LOADER_DEPTH};
}

int train_eval_loader(struct train *train, struct loader **ret, struct ms_err *err)
{
    struct transform fixed[MS_TRANSFORMS_MAX];
    struct loader_config cfg = eval_config(train, fixed);
    if (train->cpus.is_bound) { /* the loader's thread is none of the team */
        (void)cpuset_bind_thread(&train->cpus.whole);
    }
    int rc = loader_create(&cfg, ret, err);
    if (train->cpus.is_bound) {
        (void)cpuset_bind_thread(&train->cpus.share);
    }
    return rc;
}

static int prepare_eval(struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    if (!job->has_evaluate) {
        return 0;
    }
    train->eval_batch = job->evaluate_batch_size > 0 ? job->evaluate_batch_size : job->batch_size;
    int rc = data_open(&job->evaluate_dataset, &train->eval_source, err);
    struct transform fixed[MS_TRANSFORMS_MAX];
    struct loader_config cfg = eval_config(train, fixed);
    if (rc == 0) {
        rc = loader_measure(&cfg, &train->eval_info, err);
    }
    if (rc < 0) {
        ms_err_prefix(err, "evaluate");
        return rc;
    }
    const struct loader_info *a = &train->info;
    const struct loader_info *b = &train->eval_info;
    if (a->channels != b->channels || a->height != b->height || a->width != b->width ||
        a->target_width != b->target_width || b->classes > a->classes) {
        return ms_fail(err, MS_E_INVALID,
                       "evaluate: its samples are %" PRId64 "x%" PRId64 "x%" PRId64 " with %" PRId64
                       " classes, those of training %" PRId64 "x%" PRId64 "x%" PRId64
                       " with %" PRId64,
                       b->channels, b->height, b->width, b->classes, a->channels, a->height,
                       a->width, a->classes);
    }
    return 0;
}

/* ---- plan and memory ---- */

static uint64_t loader_bytes(const struct train *train)
{
    const struct loader_info *info = &train->info;
    uint64_t image =
        (uint64_t)(info->channels * info->height * info->width) * ms_dtype_bytes(MS_F32);
    return image * (uint64_t)(LOADER_DEPTH + 1) *
           (uint64_t)(train->cfg.job->batch_size + train->eval_batch);
}

/* What this rank will have touched at its peak beside its replica: its own buffers, of each local
 * peer's exchange buffer the slice that it sums, and the copy of the model that is digested at the
 * end, when all else is still there. */
static uint64_t fixed_bytes(const struct train *train, int locals)
{
    uint64_t exchange = ms_dtype_size(train->sizes.exchange_dtype, train->sizes.exchange);
    return exchange + exchange * (uint64_t)(locals - 1) / (uint64_t)locals + loader_bytes(train) +
           model_copy_bytes(replica_graph(train->replica)) + BASE_BYTES;
}

/* Do the machines of the ranks differ in the caches by which oneDNN cuts its sums? Each replica
 * then has gradients of its own rounding, and all the same sums of them. */
static int has_mixed_caches(const struct train_config *cfg)
{
    for (int i = 0; cfg->offers != NULL && cfg->world > 1 && i < cfg->world; i++) {
        const uint64_t *other = cfg->offers[i].cache_bytes;
        if (other[0] == 0 || other[1] == 0) { /* not known */
            return 1;
        }
        if (memcmp(other, cfg->offers[0].cache_bytes, 2 * sizeof(*other)) != 0) { /* L1d, L2 */
            return 1;
        }
    }
    return 0;
}

/* Plans the replica with room for memory_max bytes of activations and mirrors of weights, and
 * measures the rank's peak. */
static int plan_replica(struct train *train, uint64_t memory_max, struct ms_err *err)
{
    const struct train_config *cfg = &train->cfg;
    struct replica_config plan = {.job = cfg->job,
                                  .train = train->info,
                                  .has_evaluate = cfg->job->has_evaluate,
                                  .evaluate_batch = train->eval_batch,
                                  .world = train->data_world,
                                  .threads = train->cpus.threads,
                                  .mixed_caches = has_mixed_caches(cfg),
                                  .isa = cfg->isa,
                                  .memory_max = memory_max,
                                  .cancel = &train->cancelled};
    replica_destroy(train->replica);
    train->replica = NULL;
    int rc = replica_create(&plan, &train->replica, err);
    if (rc == 0) {
        train->known.threads = replica_threads(train->replica);
        replica_sizes(train->replica, &train->sizes);
        train->known.reorders = train->sizes.reorders;
        train->known.peak_bytes =
            replica_bytes(train->replica) + fixed_bytes(train, train_local_ranks(cfg));
    }
    return rc;
}

/* A tenth of the share stays free where making activations again can do it (it costs 2 % of a
 * step): page cache, other programs, and a measure that was taken a moment ago. What is not known
 * is more than any peak. */
static int plan_within(struct train *train, uint64_t share, struct ms_err *err)
{
    uint64_t room = share / 10 * 9;
    int rc = plan_replica(train, room, err);
    if (rc == 0 && train->known.peak_bytes > room) {
        /* what is beside the activations is known now: once more, with the room that is left */
        uint64_t rest = train->known.peak_bytes - train->sizes.arena_bytes -
                        ms_dtype_size(train->sizes.weights_dtype, train->sizes.mirrors);
        rc = plan_replica(train, room > rest ? room - rest : 1, err);
    }
    return rc;
}

/* Is the job with another batch one that make_replica would take? The train has no replica and is
 * of no use after it. */
static int fits_with(struct train *train, int64_t batch, uint64_t share)
{
    const struct job *given = train->cfg.job;
    struct job job = *given;
    if (job.evaluate_batch_size == job.batch_size) { /* by default it follows */
        job.evaluate_batch_size = batch;
        train->eval_batch = batch;
    }
    job.batch_size = batch;
    train->info.last_rows = batch;
    train->cfg.job = &job;
    int rc = plan_within(train, share, NULL);
    train->cfg.job = given;
    replica_destroy(train->replica); /* it borrows the job with that batch */
    train->replica = NULL;
    return rc == 0 && train->known.peak_bytes <= share;
}

/* The largest of some that was tried and fits; 0: none. Arena and loader grow with the batch, about
 * in proportion: from that the first guess. */
static int64_t find_batch(struct train *train, uint64_t share)
{
    static const int percent[] = {100, 90, 80, 65, 50, 30, 15, 5};
    const double grows = (double)(train->sizes.arena_bytes + loader_bytes(train)) /
                         (double)train->cfg.job->batch_size;
    const uint64_t rest = train->known.peak_bytes - train->sizes.arena_bytes - loader_bytes(train);
    const double guess = share > rest ? (double)(share - rest) / grows : 0;
    const int64_t given = train->cfg.job->batch_size;
    int64_t tried = given;
    for (size_t i = 0; i < MS_ARRAY_SIZE(percent); i++) {
        int64_t batch = (int64_t)(guess * percent[i] / 100);
        batch = batch < given ? batch : given - 1;
        if (batch < 1 || batch >= tried) {
            continue;
        }
        if (fits_with(train, batch, share)) {
            return batch;
        }
        tried = batch;
    }
    return 0;
}

static int refuse_memory(struct train *train, uint64_t free_bytes, int locals, struct ms_err *err)
{
    char a[32];
    char b[32];
    char c[32];
    const uint64_t peak = train->known.peak_bytes;
    const uint64_t ranks = free_bytes / peak;
    const int64_t batch = find_batch(train, free_bytes / (uint64_t)locals);
    char fits[96];
    if (batch >= 1 && ranks >= 1) {
        snprintf(fits, sizeof(fits), "batch_size %" PRId64 " or %" PRIu64 " ranks on this host fit",
                 batch, ranks);
    } else if (batch >= 1) {
        snprintf(fits, sizeof(fits), "batch_size %" PRId64 " fits", batch);
    } else if (ranks >= 1) {
        snprintf(fits, sizeof(fits), "%" PRIu64 " ranks on this host fit", ranks);
    } else {
        snprintf(fits, sizeof(fits), "no batch size fits on this host");
    }
    return ms_fail(err, MS_E_FULL,
                   "the job does not fit into memory: a rank needs %s at its peak, the %d ranks of "
                   "this host %s, and %s are free; %s",
                   memory_format(peak, a, sizeof(a)), locals,
                   memory_format(peak * (uint64_t)locals, b, sizeof(b)),
                   memory_format(free_bytes, c, sizeof(c)), fits);
}

static int make_replica(struct train *train, struct ms_err *err)
{
    int locals = train_local_ranks(&train->cfg);
    uint64_t free_bytes = memory_available();
    uint64_t share = free_bytes / (uint64_t)locals;
    int rc = train_cpus_find(&train->cfg, &train->cpus, err);
    if (rc == 0) {
        rc = plan_within(train, share, err);
    }
    if (rc < 0) {
        return rc;
    }
    train->cpus.threads = train->known.threads; /* that are bound */
    if (train->known.peak_bytes > share) {
        return refuse_memory(train, free_bytes, locals, err);
    }
    return replica_plan_sha256(train->replica, train->known.plan_sha256, err);
}

/* ---- peers ---- */

static int make_reducer(struct train *train, struct ms_err *err)
{
    int n = train->sizes.n_buckets;
    struct reducer_bucket *buckets = calloc((size_t)n, sizeof(*buckets));
    if (train->results == NULL) {
        train->results = calloc((size_t)n, sizeof(*train->results));
    }
    if (buckets == NULL || train->results == NULL) {
        free(buckets);
        return ms_fail(err, MS_E_NOMEM, "no memory for %d buckets", n);
    }
    for (int i = 0; i < n; i++) {
        struct plan_bucket bucket = replica_bucket(train->replica, i);
        buckets[i].begin = bucket.begin;
        buckets[i].count = bucket.count;
    }
    buckets[n - 1].count = train->sizes.exchange + TAIL_FLOATS - buckets[n - 1].begin;
    int rc = reducer_create(mesh_all(train->mesh), buckets, n, &train->reducer, err);
    free(buckets);
    return rc;
}

int train_make_mesh(struct train *train, struct ms_err *err)
{
    const struct train_config *cfg = &train->cfg;
    static const struct mesh_member alone = {.node_id = "",
                                             .host_name = "",
                                             .host_id = "",
                                             .data_address = "",
                                             .data_unix = "",
                                             .cert_name = ""};
    struct mesh_config mesh_cfg = {.job = cfg->job_id,
                                   .generation = cfg->generation,
                                   .rank = train->data_world > 1 ? cfg->rank : 0,
                                   .world = train->data_world,
                                   .members = cfg->members != NULL ? cfg->members : &alone,
                                   .listener = cfg->listener,
                                   .tls = cfg->tls,
                                   .exchange_floats = train->sizes.exchange + TAIL_FLOATS,
                                   .timeout_ms = cfg->peer_timeout_ms,
                                   .force_remote = cfg->force_remote,
                                   .spin = train->cpus.fits,
                                   .on_wait = cfg->on_wait,
                                   .arg = cfg->arg};
    memcpy(mesh_cfg.token, cfg->token, sizeof(mesh_cfg.token));
    struct mesh *mesh = NULL;
    int rc = mesh_create(&mesh_cfg, &mesh, err);
    if (rc < 0) {
        return rc;
    }
    pthread_mutex_lock(&train->lock);
    train->mesh = mesh;
    if (train->aborted || train->held) {
        mesh_abort(mesh, train->abort_text);
    }
    pthread_mutex_unlock(&train->lock);
    return make_reducer(train, err);
}

/* ---- weights ---- */

static int make_weights(struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    int rc = replica_bind(train->replica, mesh_exchange(train->mesh), err);
    if (rc == 0) {
        rc = replica_init(train->replica, err);
    }
    if (rc == 0 && job->initial_weights[0] != '\0') {
        char path[MS_PATH_MAX + 1];
        rc = job_expand_path(job->initial_weights, path, sizeof(path), err);
        if (rc == 0) {
            rc = replica_load_weights(train->replica, path, err);
        }
        if (rc < 0) {
            data_path_hide(path, job->initial_weights, err);
        }
    }
    void *state = NULL;
    size_t bytes = 0;
    for (int i = 0; rc == 0 && job->parameter_broadcast && i < 2; i++) {
        if (replica_state(train->replica, i, &state, &bytes) && bytes > 0) {
            rc = mesh_broadcast(train->mesh, state, bytes, 0, err);
        }
    }
    return rc;
}

static int open_metrics(struct train *train, struct ms_err *err)
{
    if (train->cfg.rank != 0 || train->cfg.run_dir == NULL || train->cfg.run_dir[0] == '\0') {
        return 0;
    }
    char path[MS_PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/metrics.jsonl", train->cfg.run_dir);
    return metrics_open(path, &train->metrics, err);
}

static void count_steps(struct train *train)
{
    const struct job *job = train->cfg.job;
    uint64_t total = (uint64_t)train->info.steps_per_epoch * (uint64_t)job->epochs;
    if (job->steps > 0 && (uint64_t)job->steps < total) {
        total = (uint64_t)job->steps;
    }
    train->known.steps_total = total;
    train->known.steps_per_epoch = train->info.steps_per_epoch;
    train->known.epochs = job->epochs;
    train->progress = (struct train_progress){.phase = TRAIN_TRAINING,
                                              .steps_total = total,
                                              .epoch = 1,
                                              .epochs = job->epochs,
                                              .steps_per_epoch = train->info.steps_per_epoch};
}

static int check_inputs(struct train *train, struct ms_err *err)
{
    return job_check_inputs(train->cfg.job, err); /* all of them, before the long work begins */
}

static int open_data(struct train *train, struct ms_err *err)
{
    return data_open(&train->cfg.job->dataset, &train->source, err);
}

/* The threads of loader and mesh are there and stay on all CPUs; memory is not touched yet, and
 * comes from the node of the share. */
static int allocate(struct train *train, struct ms_err *err)
{
    train_cpus_bind(&train->cpus);
    return replica_allocate(train->replica, err);
}

typedef int prepare_step(struct train *train, struct ms_err *err);

/* An abort interrupts what is long, and waits, by itself: before the first step and after the last
 * one it is asked for, and has the last word on what it interrupted. */
static int run_steps(struct train *train, prepare_step *const steps[], size_t n, struct ms_err *err)
{
    int rc = train_check_abort(train, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = steps[i](train, err);
    }
    return train_check_abort(train, err) < 0 ? MS_E_ABORTED : rc;
}

int train_plan(struct train *train, struct ms_err *err)
{
    static prepare_step *const steps[] = {
        check_inputs, open_data, start_loader, prepare_eval, make_replica, open_metrics,
    };
    return run_steps(train, steps, MS_ARRAY_SIZE(steps), err);
}

int train_join(struct train *train, struct train_info *ret, struct ms_err *err)
{
    static prepare_step *const steps[] = {train_make_mesh, allocate, make_weights};
    int rc = run_steps(train, steps, MS_ARRAY_SIZE(steps), err);
    if (rc == 0) {
        count_steps(train);
        *ret = train->known;
    }
    return rc;
}

int train_prepare(struct train *train, struct train_info *ret, struct ms_err *err)
{
    int rc = train_plan(train, err);
    return rc == 0 ? train_join(train, ret, err) : rc;
}
