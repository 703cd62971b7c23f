/* prepare.c - everything before the first step: data, mesh, memory, weights; planning.c has the
 * plan, agree.c where the ranks stand */
#include "libworker/data/path.h"
#include "libworker/train/checkpoint.h"
#include "libworker/train/schedule.h"
#include "libworker/train/train_impl.h"
#include "proto/clock.h"
#include "proto/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- data ---- */

static int check_classes(const struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    int wants_classes = job->loss == JOB_LOSS_SOFTMAX_CE;
    const int is_soft = wants_classes && train->info.target_width > 1;
    if (!is_soft && wants_classes != (train->info.classes > 0)) {
        return ms_fail(err, MS_E_INVALID, "loss: %s does not fit the data set, whose labels are %s",
                       job_loss_name(job->loss),
                       wants_classes ? "numbers; use mse" : "classes; use softmax_cross_entropy");
    }
    if (wants_classes && job->classes > 0 && job->classes < train->info.classes) {
        return ms_fail(err, MS_E_INVALID,
                       "classes: %d is fewer than the %" PRId64 " classes of the data set",
                       job->classes, train->info.classes);
    }
    return 0;
}

static int identify(const struct data_spec *spec, struct data_source *source,
                    struct data_identity *ret, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    int rc = data_identify(source, ret, err);
    if (rc < 0 && data_path_expand(spec->path, path, sizeof(path), NULL) == 0) {
        data_path_hide(path, spec->path, err);
    }
    return rc;
}

static int make_loader(const struct train *train, const struct loader_config *cfg,
                       struct loader **ret, struct ms_err *err)
{
    struct cpuset here;
    train_cpus_step_out(&train->cpus, &here);
    int rc = loader_create(cfg, ret, err);
    train_cpus_step_back(&here);
    return rc;
}

static struct loader_config loader_config(const struct train *train)
{
    const struct job *job = train->cfg.job;
    return (struct loader_config){.source = train->source,
                                  .transforms = job->transforms,
                                  .n_transforms = job->n_transforms,
                                  .batch = job->batch_size,
                                  .accumulate = job->accumulate,
                                  .drop_remainder = job->drop_remainder,
                                  .rank = train->data_rank,
                                  .world = train->data_world,
                                  .shuffle = job->dataset.shuffle,
                                  .has_probabilities = job_has_probabilities(job),
                                  .seed = job->seed,
                                  .epochs = job->epochs,
                                  .threads = train->cpus.threads,
                                  .depth = LOADER_DEPTH};
}

static int measure_loader(struct train *train, struct ms_err *err)
{
    const struct loader_config cfg = loader_config(train);
    int rc = loader_measure(&cfg, &train->info, err);
    return rc < 0 ? rc : check_classes(train, err);
}

/* Puts it into one of the places that train_stop_at_step, train_hold and train_abort reach into,
 * who may have been there before. The old one. */
static struct loader *set_loader(struct train *train, struct loader **place, struct loader *loader)
{
    pthread_mutex_lock(&train->lock);
    struct loader *old = *place;
    *place = loader;
    if (loader != NULL && train->aborted) {
        loader_abort(loader);
    } else if (loader != NULL && atomic_load(&train->stop_asked)) {
        loader_interrupt(loader);
    }
    if (loader != NULL && train->held) {
        loader_hold(loader, 1);
    }
    pthread_mutex_unlock(&train->lock);
    return old;
}

static int start_loader(struct train *train, uint64_t step, struct ms_err *err)
{
    struct loader_config cfg = loader_config(train);
    struct loader *loader = NULL;
    cfg.first_epoch = (int64_t)step / train->info.steps_per_epoch;
    cfg.first_step = (int64_t)step % train->info.steps_per_epoch;
    int rc = make_loader(train, &cfg, &loader, err);
    if (rc == 0) {
        train->loader_step = step;
        train->is_within = 0;
        (void)set_loader(train, &train->loader, loader);
    }
    return rc;
}

int train_start_loader(struct train *train, struct ms_err *err)
{
    return train->loader != NULL ? 0 : start_loader(train, 0, err);
}

/* What it has read ahead is for nothing; the host's copy of the files that it began goes on. */
int train_place_loader(struct train *train, uint64_t step, struct ms_err *err)
{
    if (train->loader != NULL && train->loader_step == step && !train->is_within) {
        return 0;
    }
    loader_destroy(set_loader(train, &train->loader, NULL));
    train->has_batch = 0; /* it was of that loader */
    return start_loader(train, step, err);
}

static struct loader_config eval_config(const struct train *train,
                                        struct transform fixed[MS_TRANSFORMS_MAX])
{
    const struct evaluation_pass pass = {.job = train->cfg.job,
                                         .source = train->eval_source,
                                         .batch = train->eval_batch,
                                         .rank = train->data_rank,
                                         .world = train->data_world,
                                         .threads = train->cpus.threads};
    return evaluation_loader(&pass, fixed);
}

int train_start_eval(struct train *train, struct ms_err *err)
{
    struct transform fixed[MS_TRANSFORMS_MAX];
    struct loader *loader = NULL;
    struct loader_config cfg = eval_config(train, fixed);
    int rc = make_loader(train, &cfg, &loader, err);
    if (rc == 0) {
        (void)set_loader(train, &train->eval_loader, loader);
    }
    return rc;
}

void train_end_eval(struct train *train)
{
    loader_destroy(set_loader(train, &train->eval_loader, NULL));
}

static int prepare_eval(struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    if (!job->has_evaluate) {
        return 0;
    }
    train->eval_batch = evaluation_batch(job);
    int rc = data_open_beside(&job->evaluate_dataset, &job->dataset, &train->eval_source, err);
    struct transform fixed[MS_TRANSFORMS_MAX];
    struct loader_config cfg = eval_config(train, fixed);
    if (rc == 0) {
        rc = loader_measure(&cfg, &train->eval_info, err);
    }
    if (rc == 0) {
        rc = identify(&job->evaluate_dataset, train->eval_source, &train->data.evaluation, err);
    }
    if (rc < 0) {
        ms_err_prefix(err, "evaluate");
        return rc;
    }
    const int has_bytes = data_get_info(train->source)->dtype == MS_U8;
    rc = data_check_values(job->evaluate_dataset.path, data_get_info(train->eval_source),
                           has_bytes ? DATA_BYTES : DATA_NUMBERS, err);
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
    return train->scores != NULL ? 0 : evaluation_scores(job, a, &train->scores, err);
}

/* ---- peers ---- */

static int make_reducer(struct train *train, struct ms_err *err)
{
    int n = train->sizes.n_buckets;
    if (n < 1) {
        return ms_fail(err, MS_E_INVALID, "the network has no parameters: nothing can be trained");
    }
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
    buckets[n - 1].count += TAIL_FLOATS;
    int rc = reducer_create(mesh_all(train->mesh), buckets, n, &train->reducer, err);
    free(buckets);
    return rc;
}

static int make_mesh(struct train *train, struct ms_err *err)
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
                                   .exchange_dtype = train->sizes.exchange_dtype,
                                   .exchange_count = train->sizes.exchange + TAIL_FLOATS,
                                   .timeout_ms = cfg->peer_timeout_ms,
                                   .force_remote = cfg->force_remote,
                                   .spin = train->cpus.fits,
                                   .on_wait = cfg->on_wait,
                                   .arg = cfg->arg,
                                   .ret_culprit = &train->culprit};
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

static int join_mesh(struct train *train, struct ms_err *err)
{
    const double begun = ms_mono_s();
    struct cpuset here;
    train_cpus_step_out(&train->cpus, &here);
    int rc = make_mesh(train, err);
    train->mesh_rc = rc;
    train_cpus_step_back(&here);
    train->known.joined_ms = (uint32_t)((ms_mono_s() - begun) * 1e3);
    return rc;
}

/* ---- weights ---- */

static int load_weights(struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    char path[MS_PATH_MAX + 1];
    char words[MS_ERR_TEXT_MAX];
    int rc = job_expand_path(job->initial_weights, path, sizeof(path), err);
    if (rc == 0) {
        rc = replica_load_weights(train->replica, path, &job->take, words, sizeof(words), err);
    }
    if (rc < 0) {
        data_path_hide(path, job->initial_weights, err);
        ms_err_prefix(err, "initial_weights");
    } else if (train->cfg.rank == 0) {
        rank_log_say(&train->log, "initial weights: %s\n", words); /* one of the two may be long */
        rank_log_say(&train->log, "initial weights are those of %s\n", job->initial_weights);
    }
    return rc;
}

int train_initial_weights(struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    int rc = replica_init(train->replica, err);
    if (rc == 0 && job->initial_weights[0] != '\0') {
        rc = load_weights(train, err);
    }
    void *state = NULL;
    size_t bytes = 0;
    for (int i = 0; rc == 0 && job->parameter_broadcast && i < 2; i++) {
        if (replica_state(train->replica, i, &state, &bytes) && bytes > 0) {
            rc = mesh_broadcast(train->mesh, state, bytes, 0, err);
        }
    }
    replica_start_average(train->replica);
    return rc;
}

/* ---- lines ---- */

/* A job by its plan gives the same lines each time. "": it has no name. */
static int name_training(const struct train *train, char ret[METRICS_TRAINING_MAX + 1],
                         struct ms_err *err)
{
    uint8_t digest[MS_SHA256_BYTES];
    char hex[MS_SHA256_HEX];
    ret[0] = '\0';
    if (train->job_tag[0] == '\0') {
        return 0;
    }
    struct ms_sha256 *sha = ms_sha256_create();
    if (sha == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a digest");
    }
    ms_sha256_add(sha, train->job_tag, strlen(train->job_tag));
    ms_sha256_add(sha, train->known.plan_sha256, strlen(train->known.plan_sha256));
    ms_sha256_finish(sha, digest);
    ms_sha256_hex(digest, hex);
    snprintf(ret, METRICS_TRAINING_MAX + 1, "%.*s", (int)METRICS_TRAINING_MAX, hex);
    return 0;
}

static int open_lines(struct train *train, struct ms_err *err)
{
    const struct train_config *cfg = &train->cfg;
    char *training = train->training;
    char path[MS_PATH_MAX + 32];
    const struct rank_log_rule rule = {.loss_every =
                                           cfg->job->has_print ? cfg->job->print_loss_every : 1,
                                       .epochs = cfg->job->print_epochs,
                                       .time = cfg->job->print_time};
    int rc = train->has_lines ? 0 : name_training(train, training, err);
    if (rc < 0 || train->has_lines) {
        return rc;
    }
    if (cfg->rank == 0 && cfg->run_dir != NULL && cfg->run_dir[0] != '\0') {
        snprintf(path, sizeof(path), "%s/" METRICS_FILE, cfg->run_dir);
        rc = metrics_open(path, training, &train->metrics, err);
    }
    if (rc == 0) {
        rank_log_open(&train->log, cfg->log_fd, cfg->log_path, training, cfg->rank, cfg->world,
                      train->info.steps_per_epoch);
        rank_log_set_rule(&train->log, &rule);
        train->has_lines = 1;
    }
    return rc;
}

static void count_steps(struct train *train)
{
    const struct job *job = train->cfg.job;
    const uint64_t total = job_total_steps(job, train->info.steps_per_epoch);
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

static int check_schedule(struct train *train, struct ms_err *err)
{
    return schedule_check(train->cfg.job, train->info.steps_per_epoch, err);
}

static int open_data(struct train *train, struct ms_err *err)
{
    const struct data_spec *spec = &train->cfg.job->dataset;
    int rc = data_open(spec, &train->source, err);
    return rc < 0 ? rc : identify(spec, train->source, &train->data.training, err);
}

/* The threads of loader, mesh and checkpoints are there and stay on all CPUs; memory is not touched
 * yet, and comes from the node of the share. */
static int allocate(struct train *train, struct ms_err *err)
{
    if (train->is_allocated) {
        return 0;
    }
    count_steps(train);
    train_cpus_bind(&train->cpus);
    int rc = replica_allocate(train->replica, err);
    train->is_allocated = rc == 0;
    return rc;
}

static int bind(struct train *train, struct ms_err *err)
{
    mesh_populate_exchange(train->mesh);
    return replica_bind(train->replica, mesh_exchange(train->mesh), err);
}

static int settle_checkpoints(struct train *train, struct ms_err *err)
{
    return checkpoint_settle(train, err); /* what cannot be written is no reason not to train */
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

int train_open(struct train *train, struct ms_err *err)
{
    static prepare_step *const steps[] = {check_inputs, open_data, measure_loader, check_schedule,
                                          prepare_eval};
    train->begun_s = ms_mono_s();
    return run_steps(train, steps, MS_ARRAY_SIZE(steps), err);
}

/* What a rank is short of before it stands ready is of the mesh, and not of what it holds: it may
 * be had the next time. The others hear who it is. */
static void give_up_for_lack(struct train *train, int rc, const struct ms_err *err)
{
    train->mesh_rc = rc;
    if (train->mesh != NULL) {
        mesh_give_up(train->mesh, rc, ms_err_text(err));
    }
}

int train_stand_ready(struct train *train, struct ms_err *err)
{
    /* files only of who is in the mesh: one that was asleep, and has a successor, is in none */
    static prepare_step *const steps[] = {train_digest, join_mesh, open_lines,  checkpoint_open,
                                          allocate,     bind,      train_agree, settle_checkpoints};
    train->culprit = -1;
    train->mesh_rc = 0;
    int rc = run_steps(train, steps, MS_ARRAY_SIZE(steps), err);
    if (rc == MS_E_NOMEM) {
        give_up_for_lack(train, rc, err);
    }
    return rc;
}

int train_join(struct train *train, struct train_info *ret, struct ms_err *err)
{
    train->known.prepared_ms = (uint32_t)((ms_mono_s() - train->begun_s) * 1e3);
    int rc = train_stand_ready(train, err);
    if (rc == 0) {
        *ret = train->known;
    }
    return rc;
}

int train_prepare(struct train *train, struct train_info *ret, struct ms_err *err)
{
    const char *text;
    int rc = train_open(train, err);
    rc = rc < 0 ? rc : train_choose(train, &text, err);
    rc = rc < 0 ? rc : train_obey(train, NULL, err);
    return rc < 0 ? rc : train_join(train, ret, err);
}
