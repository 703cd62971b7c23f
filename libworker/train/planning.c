/* planning.c - which plan a rank has, and whether there is memory for it here */
#include "libworker/host/memory.h"
#include "libworker/host/offer.h"
#include "libworker/plan/plan.h"
#include "libworker/train/checkpoint.h"
#include "libworker/train/environment.h"
#include "libworker/train/model_copy.h"
#include "libworker/train/resumed_plan.h"
#include "libworker/train/train_impl.h"
#include "proto/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libdnnl, libc, stacks, the JIT's code: measured with `linear`, whose own buffers are nothing. */
#define BASE_BYTES (70U << 20)

/* ---- what a rank needs ---- */

static uint64_t loader_bytes(const struct train *train)
{
    const struct loader_info *info = &train->info;
    uint64_t image =
        (uint64_t)(info->channels * info->height * info->width) * ms_dtype_bytes(MS_F32);
    return image * (uint64_t)(LOADER_DEPTH + 1) *
           (uint64_t)(train->cfg.job->batch_size + train->eval_batch);
}

/* Of the data sets' files in memory, which the ranks of a host share. */
static uint64_t copied_bytes(const struct train *train, int locals)
{
    int64_t bytes = data_get_info(train->source)->copied_bytes;
    if (train->eval_source != NULL) {
        bytes += data_get_info(train->eval_source)->copied_bytes;
    }
    return ((uint64_t)bytes + (uint64_t)locals - 1) / (uint64_t)locals;
}

/* What each rank has of its own to find records. */
static uint64_t held_bytes(const struct train *train)
{
    int64_t bytes = data_get_info(train->source)->held_bytes;
    if (train->eval_source != NULL) {
        bytes += data_get_info(train->eval_source)->held_bytes;
    }
    return (uint64_t)bytes;
}

/* What this rank will have touched at its peak beside its replica: its own buffers, its part of
 * what is shared, of each local peer's exchange buffer the slice that it sums, and the copy of the
 * model that is digested at the end, when all else is still there. */
static uint64_t fixed_bytes(const struct train *train, int locals)
{
    uint64_t exchange = ms_dtype_size(train->sizes.exchange_dtype, train->sizes.exchange);
    return exchange + exchange * (uint64_t)(locals - 1) / (uint64_t)locals + loader_bytes(train) +
           copied_bytes(train, locals) + held_bytes(train) +
           model_copy_bytes(replica_graph(train->replica)) + BASE_BYTES;
}

/* Of the plans that the replica has now. */
static void measure(struct train *train)
{
    train->known.threads = replica_threads(train->replica);
    replica_sizes(train->replica, &train->sizes);
    train->known.reorders = train->sizes.reorders;
    train->has_spare = 0;
    train->known.peak_bytes =
        replica_bytes(train->replica) + fixed_bytes(train, train_local_ranks(&train->cfg));
}

/* A tenth of the share stays free where making activations again can do it (it costs 2 % of a
 * step): page cache, other programs, and a measure that was taken a moment ago. What is not known
 * is more than any peak. */
static uint64_t room_of(uint64_t share)
{
    return share / 10 * 9;
}

/* Of the data sets' files in memory, what is there already: the peak counts it, and what is free
 * is lower by it. */
static uint64_t present_bytes(const struct train *train)
{
    int64_t bytes = data_in_memory(train->source);
    if (train->eval_source != NULL) {
        bytes += data_in_memory(train->eval_source);
    }
    return (uint64_t)bytes;
}

static uint64_t with_present(uint64_t free_bytes, uint64_t present)
{
    return free_bytes < MEMORY_UNKNOWN - present ? free_bytes + present : MEMORY_UNKNOWN;
}

/* Of all ranks. What hosts offered may be old: it decides what is made again, and refuses nobody.
 */
static uint64_t least_share(const struct train *train)
{
    const uint64_t present = present_bytes(train);
    uint64_t least =
        with_present(memory_available(), present) / (uint64_t)train_local_ranks(&train->cfg);
    struct train_config of = train->cfg;
    for (of.rank = 0; of.offers != NULL && of.rank < of.world; of.rank++) {
        const uint64_t bytes = of.offers[of.rank].memory_bytes;
        const int is_here = train_is_local(&train->cfg, of.rank);
        const uint64_t share =
            with_present(bytes, is_here ? present : 0) / (uint64_t)train_local_ranks(&of);
        least = bytes > 0 && share < least ? share : least;
    }
    return least;
}

/* ---- choosing ---- */

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

/* The graphs of the job. */
static int begin_replica(struct train *train, struct ms_err *err)
{
    const struct replica_config cfg = {.job = train->cfg.job,
                                       .train = train->info,
                                       .has_evaluate = train->cfg.job->has_evaluate,
                                       .evaluate_batch = train->eval_batch,
                                       .rank = train->data_rank,
                                       .world = train->data_world,
                                       .cancel = &train->cancelled};
    replica_destroy(train->replica);
    train->replica = NULL;
    return replica_create(&cfg, &train->replica, err);
}

/* Plans with room for memory_max bytes of activations and mirrors of weights. */
static int choose(struct train *train, uint64_t memory_max, struct ms_err *err)
{
    const struct replica_wish wish = {.threads = train->cpus.threads,
                                      .mixed_caches = has_mixed_caches(&train->cfg),
                                      .isa = train->cfg.isa,
                                      .memory_max = memory_max};
    int rc = replica_choose(train->replica, &wish, err);
    if (rc == 0) {
        measure(train);
    }
    return rc;
}

static int choose_within(struct train *train, uint64_t share, struct ms_err *err)
{
    const uint64_t room = room_of(share);
    int rc = begin_replica(train, err);
    rc = rc < 0 ? rc : choose(train, room, err);
    if (rc == 0 && train->known.peak_bytes > room) {
        /* what is beside the activations is known now: once more, with the room that is left */
        uint64_t rest = train->known.peak_bytes - train->sizes.arena_bytes -
                        ms_dtype_size(train->sizes.weights_dtype, train->sizes.mirrors);
        rc = choose(train, room > rest ? room - rest : 1, err);
    }
    return rc;
}

/* ---- memory that is not there ---- */

enum { MARGIN = 50 }; /* of what is free: the next worker finds a little less */

/* An evaluation needs no larger batches than the training. */
static int64_t eval_batch_with(const struct job *job, int64_t batch)
{
    const int64_t given = evaluation_batch(job);
    return given < batch ? given : batch;
}

/* Is the job with another batch one that would be taken? The train has no replica and is
 * of no use after it. */
static int fits_with(struct train *train, int64_t batch, uint64_t share)
{
    const struct job *given = train->cfg.job;
    struct job *job = malloc(sizeof(*job)); /* too large for a stack */
    if (job == NULL) {
        return 0;
    }
    *job = *given;
    job->evaluate_batch_size = eval_batch_with(given, batch);
    train->eval_batch = job->evaluate_batch_size;
    job->batch_size = batch;
    train->info.last_rows = batch;
    train->cfg.job = job;
    const char *isa = train->cfg.isa;
    train->cfg.isa = plan_isa(); /* of this process, whoever chose it */
    int rc = choose_within(train, share - share / MARGIN, NULL);
    train->cfg.isa = isa;
    train->cfg.job = given;
    replica_destroy(train->replica); /* it borrows the job with that batch */
    train->replica = NULL;
    free(job);
    return rc == 0 && train->known.peak_bytes <= share - share / MARGIN;
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
    if (train->cfg.job->has_evaluate && evaluation_batch(train->cfg.job) > given &&
        fits_with(train, given, share)) {
        return given; /* and nothing but the evaluation is too large */
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(percent); i++) {
        int64_t batch = (int64_t)(guess * percent[i] / 100);
        batch = batch < given ? batch : given - 1;
        if (batch < 1 || batch >= tried) {
            continue;
        }
        if (fits_with(train, batch, share)) {
            while (2 * batch < tried && fits_with(train, 2 * batch, share)) {
                batch *= 2; /* where activations are made again it grows less than was guessed */
            }
            return batch;
        }
        tried = batch;
    }
    return 0;
}

/* "batch_size 8 with evaluate.batch_size 8", and that of the evaluation alone where it is enough.
 */
static void print_batch(const struct job *job, int64_t batch, const char *without, char *buf,
                        size_t size)
{
    const int64_t evaluates = eval_batch_with(job, batch);
    const int is_less = job->has_evaluate && evaluates < evaluation_batch(job);
    char of_evaluation[64] = "";
    if (is_less) {
        snprintf(of_evaluation, sizeof(of_evaluation), "%sevaluate.batch_size %" PRId64,
                 batch < job->batch_size ? " with " : "", evaluates);
    }
    if (batch < job->batch_size) {
        snprintf(buf, size, "batch_size %" PRId64 "%s%s", batch, of_evaluation, without);
    } else {
        snprintf(buf, size, "%s%s", of_evaluation, without);
    }
}

static int refuse_memory(struct train *train, uint64_t free_bytes, uint64_t present, int locals,
                         struct ms_err *err)
{
    char a[32];
    char b[32];
    char c[32];
    const uint64_t peak = train->known.peak_bytes;
    const uint64_t room = with_present(free_bytes, present);
    const uint64_t ranks = room / peak;
    const int64_t batch = find_batch(train, room / (uint64_t)locals);
    const char *without = train->cfg.is_plan_given ? " (without --plan)" : "";
    char smaller[128];
    char fits[192];
    print_batch(train->cfg.job, batch, without, smaller, sizeof(smaller));
    if (batch >= 1 && ranks >= 1) {
        snprintf(fits, sizeof(fits), "%s or %" PRIu64 " rank%s on this host fit", smaller, ranks,
                 ranks == 1 ? "" : "s");
    } else if (batch >= 1) {
        snprintf(fits, sizeof(fits), "%s fits", smaller);
    } else if (ranks >= 1) {
        snprintf(fits, sizeof(fits), "%" PRIu64 " rank%s on this host fit%s", ranks,
                 ranks == 1 ? "" : "s", ranks == 1 ? "s" : "");
    } else {
        snprintf(fits, sizeof(fits), "no batch size fits: use hosts with more memory%s",
                 locals > 1 ? ", or fewer ranks on each" : "");
    }
    char beside[80] = "";
    if (present > 0) {
        char d[32];
        snprintf(beside, sizeof(beside), " beside the %s of its data that are in memory already",
                 memory_format(present, d, sizeof(d)));
    }
    return ms_fail(
        err, MS_E_FULL,
        "the job does not fit into memory: a rank needs %s at its peak, the %d rank%s of "
        "this host %s, and %s are free%s; %s",
        memory_format(peak, a, sizeof(a)), locals, locals == 1 ? "" : "s",
        memory_format(peak * (uint64_t)locals, b, sizeof(b)),
        memory_format(free_bytes, c, sizeof(c)), beside, fits);
}

/* What costs least goes first; nothing where the plan has nothing of the kind. */
static int drop_mirrors(struct train *train, struct ms_err *err)
{
    const int has = train->sizes.mirrors > 0;
    int rc = replica_drop_mirrors(train->replica, err);
    if (rc == 0 && has) {
        train_note(train,
                   "the plan keeps more than there is memory for here: this rank reorders weights "
                   "in each step, which changes no bit");
        measure(train);
    }
    return rc;
}

static int recompute(struct train *train, struct ms_err *err)
{
    int rc = replica_recompute(train->replica, err);
    if (rc == 0 && replica_recomputes(train->replica)) {
        train_note(train, "the plan keeps more than there is memory for here: this rank makes "
                          "activations again, which changes no bit");
        measure(train);
    }
    return rc;
}

/* The spare copy of checkpoints comes last: without it a few steps are longer, and none is other.
 */
static void fit_spare(struct train *train, uint64_t share)
{
    const uint64_t bytes = checkpoint_spare_bytes(train);
    char text[MS_TEXT_MAX];
    char size[32];
    if (train->has_spare) {
        return; /* it counts already */
    }
    train->has_spare = bytes > 0 && train->known.peak_bytes + bytes <= room_of(share);
    if (train->has_spare) {
        train->known.peak_bytes += bytes;
    } else if (bytes > 0) {
        snprintf(text, sizeof(text),
                 "there is no memory for a spare copy of the state (%s): the steps that are saved "
                 "wait for the write of their checkpoint",
                 memory_format(bytes, size, sizeof(size)));
        train_note(train, text);
    }
}

/* What an image takes decoded, with its mark. */
static uint64_t images_bytes(const struct data_source *source)
{
    enum { ROUND = 1 << 16, MARK = 64 };
    const struct data_info *info = data_get_info(source);
    return (uint64_t)info->rows * (uint64_t)(info->channels * info->height * info->width + MARK) +
           ROUND;
}

/* Decoded images save time alone: they get a quarter of what is free, and half of what the ranks
 * would leave if each were there twice: who takes the place of a lost one is judged beside the
 * others, and is refused no sooner for them. */
static void keep_images(struct train *train, uint64_t free_bytes, uint64_t locals)
{
    const uint64_t twice = 2 * train->known.peak_bytes * locals;
    const uint64_t left = free_bytes > twice ? (free_bytes - twice) / 2 : 0;
    uint64_t bytes = left < free_bytes / 4 ? left : free_bytes / 4;
    bytes = bytes < (uint64_t)train->cfg.image_bytes ? bytes : (uint64_t)train->cfg.image_bytes;
    if (train->loader != NULL || free_bytes == MEMORY_UNKNOWN || bytes == 0) {
        return;
    }
    const uint64_t training = images_bytes(train->source);
    data_keep_decoded(train->source, (int64_t)bytes);
    if (train->eval_source != NULL && training < bytes) {
        data_keep_decoded(train->eval_source, (int64_t)(bytes - training));
    }
}

static int fit_memory(struct train *train, struct ms_err *err)
{
    const int locals = train_local_ranks(&train->cfg);
    const uint64_t present =
        present_bytes(train); /* first: what comes meanwhile counts as lacking */
    const uint64_t free_bytes = memory_available();
    const uint64_t share = with_present(free_bytes, present) / (uint64_t)locals;
    int rc = train->known.peak_bytes > room_of(share) ? drop_mirrors(train, err) : 0;
    if (rc == 0 && train->known.peak_bytes > room_of(share) &&
        !replica_recomputes(train->replica)) {
        rc = recompute(train, err);
    }
    if (rc == 0 && train->known.peak_bytes > share) {
        return refuse_memory(train, free_bytes, present, locals, err);
    }
    fit_spare(train, share);
    if (rc == 0) {
        keep_images(train, free_bytes, (uint64_t)locals);
    }
    return rc;
}

/* ---- obeying ---- */

/* A plan that this rank does not have yet. */
static int take_text(struct train *train, const char *text, struct ms_err *err)
{
    char *copy = strdup(text);
    int rc = copy != NULL ? 0 : ms_fail(err, MS_E_NOMEM, "no memory for a plan");
    free(train->plan_text);
    train->plan_text = copy;
    rc = rc < 0 ? rc : begin_replica(train, err);
    return rc < 0 ? rc : replica_obey(train->replica, text, err);
}

/* A line that this node cannot obey says what it has instead: whoever reads it sees neither. */
static int name_node(const struct train *train, int rc, const struct ms_err *why,
                     struct ms_err *err)
{
    return ms_fail(
        err, rc, "%.230s (this node: isa %s, onednn %s, caches %" PRId64 " %" PRId64 ")%s",
        ms_err_text(why), plan_isa(), plan_library(), plan_cache_bytes(1), plan_cache_bytes(2),
        train->cfg.is_plan_given ? "; without --plan rank 0 chooses one" : "");
}

static int obey_text(struct train *train, const char *text, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    int rc = take_text(train, text, &why);
    if (rc == 0) {
        measure(train);
        return 0;
    }
    return rc == MS_E_INVALID || rc == MS_E_UNSUPPORTED ? name_node(train, rc, &why, err)
                                                        : ms_fail(err, rc, "%s", why.text);
}

/* ---- choosing, or what a checkpoint brings ---- */

/* 1: taken. One that cannot be had here is no plan of this job's, nor its checkpoint's. */
static int take_resumed(struct train *train, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    char *text = NULL;
    int rc = begin_replica(train, err);
    if (rc < 0) {
        return rc;
    }
    rc = resumed_plan(train, &text, &why);
    const int is_there = rc < 0 || text != NULL;
    rc = rc == 0 && text != NULL ? obey_text(train, text, &why) : rc;
    free(text);
    free(train->plan_text);
    train->plan_text = NULL;
    if (rc < 0) {
        char words[MS_ERR_TEXT_MAX];
        snprintf(words, sizeof(words), "the checkpoint's plan is not taken: %.400s", why.text);
        train_note(train, words);
    }
    return is_there && rc == 0;
}

static int choose_plan(struct train *train, struct ms_err *err)
{
    int rc = train_cpus_find(&train->cfg, &train->cpus, err);
    rc = rc < 0 ? rc : take_resumed(train, err);
    rc = rc == 0 ? choose_within(train, least_share(train), err) : rc;
    return rc < 0 ? rc : replica_plan_text(train->replica, &train->plan_text, err);
}

/* Threads are the plan's, whatever this host has. */
static int find_cpus(struct train *train, struct ms_err *err)
{
    const int threads = train->known.threads;
    int rc = train_cpus_find(&train->cfg, &train->cpus, err);
    const int own = train->cpus.threads;
    rc = rc < 0 ? rc : train_cpus_for(&train->cfg, threads, &train->cpus, err);
    if (rc == 0 && threads > own) {
        char text[MS_TEXT_MAX];
        snprintf(text, sizeof(text),
                 "the plan has %d threads for each rank, and this host offers cores for %d: they "
                 "take turns",
                 threads, own);
        train_note(train, text);
    }
    return rc;
}

static int has_plan(const struct train *train, const char *text)
{
    return train->plan_text != NULL && (text == NULL || strcmp(text, train->plan_text) == 0);
}

static int make_plan(struct train *train, const char *text, struct ms_err *err)
{
    int rc = has_plan(train, text) ? 0 : obey_text(train, text, err);
    rc = rc < 0 ? rc : find_cpus(train, err);
    rc = rc < 0 ? rc : fit_memory(train, err);
    rc = rc < 0 ? rc : train_start_loader(train, err);
    rc = rc < 0 ? rc : replica_plan_sha256(train->replica, train->known.plan_sha256, err);
    if (rc == 0 && train->cfg.on_note != NULL) {
        environment_note(train->known.threads, plan_isa(), train->cfg.on_note, train->cfg.arg);
    }
    if (rc < 0) { /* the replica may have none any more */
        free(train->plan_text);
        train->plan_text = NULL;
    }
    return rc;
}

/* ---- with an eye on aborts ---- */

static int end(struct train *train, int rc, struct ms_err *err)
{
    return rc < 0 && train_check_abort(train, err) < 0 ? MS_E_ABORTED : rc;
}

int train_choose(struct train *train, const char **ret_text, struct ms_err *err)
{
    int rc = train_check_abort(train, err);
    rc = rc < 0 ? rc : end(train, choose_plan(train, err), err);
    if (rc == 0) {
        *ret_text = train->plan_text;
    }
    return rc;
}

const char *train_plan_text(const struct train *train)
{
    return train->plan_text;
}

const char *train_plan_sha256(const struct train *train)
{
    return train->known.plan_sha256;
}

int train_obey(struct train *train, const char *text, struct ms_err *err)
{
    int rc = train_check_abort(train, err);
    return rc < 0 ? rc : end(train, make_plan(train, text, err), err);
}
