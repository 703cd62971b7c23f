/* train.c - the step loop of one rank, evaluation, the end */
#include "libworker/train/train.h"

#include "libworker/kernel/kernel.h"
#include "libworker/train/checkpoint.h"
#include "libworker/train/end_weights.h"
#include "libworker/train/model_copy.h"
#include "libworker/train/train_impl.h"
#include "proto/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct train *train_create(const struct train_config *cfg)
{
    struct train *train = calloc(1, sizeof(*train));
    if (train == NULL) {
        return NULL;
    }
    train->cfg = *cfg;
    snprintf(train->job_tag, sizeof(train->job_tag), "%s",
             cfg->job_tag != NULL ? cfg->job_tag : "");
    train->cfg.job_tag = train->job_tag;
    train->log.out.fd = -1;
    train->culprit = -1;
    int alone = cfg->job->mode == JOB_STAND_ALONE;
    train->data_rank = alone ? 0 : cfg->rank;
    train->data_world = alone ? 1 : cfg->world;
    pthread_mutex_init(&train->lock, NULL);
    return train;
}

void train_destroy(struct train *train)
{
    if (train == NULL) {
        return;
    }
    train_cpus_unbind(&train->cpus);
    checkpoint_close(train->checkpoint);
    checkpoint_list_fini(&train->found);
    reducer_destroy(train->reducer);
    loader_destroy(train->loader);
    data_close(train->source);
    data_close(train->eval_source);
    mesh_destroy(train->mesh);
    replica_destroy(train->replica);
    scores_destroy(train->scores);
    metrics_close(train->metrics);
    rank_log_close(&train->log);
    free(train->plan_text);
    free(train->results);
    pthread_mutex_destroy(&train->lock);
    free(train);
}

void train_stop_at_step(struct train *train)
{
    atomic_store(&train->stop_asked, 1);
    pthread_mutex_lock(&train->lock);
    if (train->loader != NULL) {
        loader_interrupt(train->loader);
    }
    if (train->eval_loader != NULL) {
        loader_interrupt(train->eval_loader);
    }
    pthread_mutex_unlock(&train->lock);
}

void train_abort(struct train *train, const char *text)
{
    atomic_store(&train->cancelled, 1);
    pthread_mutex_lock(&train->lock);
    if (!train->aborted) {
        train->aborted = 1;
        snprintf(train->abort_text, sizeof(train->abort_text), "%s", text);
    }
    if (train->cfg.listener != NULL) {
        comm_listener_abort(train->cfg.listener);
    }
    if (train->loader != NULL) {
        loader_abort(train->loader);
    }
    if (train->eval_loader != NULL) {
        loader_abort(train->eval_loader);
    }
    if (train->mesh != NULL) {
        mesh_abort(train->mesh, text);
    }
    pthread_mutex_unlock(&train->lock);
}

int train_check_abort(struct train *train, struct ms_err *err)
{
    pthread_mutex_lock(&train->lock);
    int aborted = train->aborted || train->held;
    if (aborted) {
        ms_fail(err, MS_E_ABORTED, "%s", train->abort_text);
    }
    pthread_mutex_unlock(&train->lock);
    return aborted ? MS_E_ABORTED : 0;
}

/* ---- lines that cannot be written ---- */

void train_note(const struct train *train, const char *text)
{
    if (train->cfg.on_note != NULL) {
        train->cfg.on_note(train->cfg.arg, text);
    }
}

/* "of step 8", "of steps 8 to 30" */
static const char *gap_words(const struct train_gap *gap, char buf[64])
{
    if (gap->first == gap->last) {
        snprintf(buf, 64, "of step %" PRIu64, gap->first);
    } else {
        snprintf(buf, 64, "of steps %" PRIu64 " to %" PRIu64, gap->first, gap->last);
    }
    return buf;
}

/* had: the last step that the file has a line of; until: the last one that it lacks. What waited in
 * the memory of the process that had the rank before went with it. */
static void note_gap(const struct train *train, const char *what, struct train_gap *gap,
                     uint64_t had, uint64_t until)
{
    char text[MS_TEXT_MAX];
    char steps[64];
    if (had >= until) {
        return;
    }
    *gap = (struct train_gap){had + 1, until};
    snprintf(text, sizeof(text),
             "no %s %s here: the process that had rank %d before ended while they waited for room "
             "on the disk, or its host went down, or it was on another one, where they are",
             what, gap_words(gap, steps), train->cfg.rank);
    train_note(train, text);
}

/* until: of metrics.jsonl. */
static void note_gaps(struct train *train, int is_pulled, uint64_t until)
{
    const uint64_t had = train->metrics != NULL ? metrics_last_step(train->metrics) : 0;
    if (train->metrics != NULL && (had > 0 || (is_pulled && train->job_tag[0] != '\0'))) {
        note_gap(train, "metrics", &train->metrics_gap, had, until);
    }
    if (train->log.last > 0 && rank_log_is_full(&train->log)) { /* else it may be no file */
        note_gap(train, "loss lines", &train->log_gap, train->log.last, train->known.step);
    }
}

void train_note_gaps(struct train *train)
{
    note_gaps(train, 0, train->known.step);
}

/* They wait in memory. It is said, once for each cause, and so is that it is over; the training
 * goes on. known: the cause as it was said. */
static void note_lines(const struct train *train, const char *what, char known[MS_ERR_TEXT_MAX],
                       const struct train_gap *gap, uint64_t step, uint64_t lost, int rc,
                       const struct ms_err *why)
{
    char text[MS_TEXT_MAX];
    char steps[64];
    const char *cause = rc < 0 ? ms_err_text(why) : "";
    if (strcmp(known, cause) == 0) {
        return;
    }
    snprintf(known, MS_ERR_TEXT_MAX, "%s", cause);
    if (rc < 0) {
        snprintf(text, sizeof(text),
                 "no %s from step %" PRIu64 " on: %.200s; the training goes on, and they wait",
                 what, step, cause);
    } else if (lost == 0 && gap->first == 0) {
        snprintf(text, sizeof(text), "%s are written again: none is missing", what);
    } else if (lost == 0) {
        snprintf(text, sizeof(text), "%s are written again: those %s are missing, as was said",
                 what, gap_words(gap, steps));
    } else {
        snprintf(text, sizeof(text),
                 "%s are written again: %" PRIu64 " lines found no room in memory meanwhile, and "
                 "are missing%s%s%s",
                 what, lost, gap->first > 0 ? ", and so are those " : "",
                 gap->first > 0 ? gap_words(gap, steps) : "",
                 gap->first > 0 ? ", as was said" : "");
    }
    train_note(train, text);
}

static void note_metrics(struct train *train, int rc, const struct ms_err *why)
{
    note_lines(train, "metrics", train->metrics_trouble, &train->metrics_gap, train->progress.step,
               metrics_lost(train->metrics), rc, why);
}

static void note_log(struct train *train, uint64_t step, int rc, const struct ms_err *why)
{
    note_lines(train, "loss lines", train->log_trouble, &train->log_gap, step,
               rank_log_lost(&train->log), rc, why);
}

void train_log_loss(struct train *train, uint64_t step, float loss)
{
    struct ms_err why = {0, ""};
    if (isfinite(loss)) { /* else the step is the last one, and its error says so */
        const double now = ms_mono_s();
        rank_log_took(&train->log, step, (now - train->told_s) * 1e3);
        train->told_s = now;
        note_log(train, step, rank_log_step(&train->log, step, loss, &why), &why);
    }
}

static void note_phase(struct train *train, struct train_progress *progress, enum train_phase phase)
{
    progress->phase = phase;
    progress->saved = checkpoint_saved(train);
    if (train->cfg.on_progress != NULL) {
        train->cfg.on_progress(train->cfg.arg, progress);
    }
}

int train_evaluation_due(const struct train *train)
{
    const struct job *job = train->cfg.job;
    const struct train_progress *progress = &train->progress;
    if (!job->has_evaluate) {
        return 0;
    }
    /* the last step may be within an epoch (`steps`), or of an epoch that is not in turn */
    return progress->step == train->known.steps_total ||
           (progress->step_in_epoch == progress->steps_per_epoch &&
            progress->epoch % job->evaluate_every_epochs == 0);
}

static void put_step(struct train *train, double samples_per_s, double step_s)
{
    struct ms_err why = {0, ""};
    const struct train_progress *progress = &train->progress;
    struct metrics_step line = {.generation = train->cfg.generation,
                                .epoch = progress->epoch,
                                .step = progress->step,
                                .loss = progress->loss,
                                .has_learning_rate = train->cfg.job->optimizer.has_schedule,
                                .learning_rate =
                                    (float)replica_learning_rate(train->replica, progress->step),
                                .samples_per_s = samples_per_s,
                                .step_ms = step_s * 1e3,
                                .comm_wait_ms = progress->comm_wait_ms};
    if (train->metrics != NULL) {
        note_metrics(train, metrics_put_step(train->metrics, &line, &why), &why);
    }
}

void train_step_done(struct train *train, float loss_here, float loss_mean, double wait_s)
{
    struct train_progress *progress = &train->progress;
    const struct batch *batch = &train->batch;
    double rows = (double)(batch->step_rows * train->data_world);
    double now = ms_mono_s();
    double step_s = now - train->since_s;
    train->since_s = now;
    progress->step++;
    train->is_copy = 0;
    progress->epoch = batch->epoch + 1;
    progress->step_in_epoch = batch->step + 1;
    progress->loss = loss_mean;
    progress->loss_here = loss_here;
    /* smoothed over about twenty steps: people read it. Both from the same two sums, so that their
     * product is the samples of a step. */
    double keep = train->recent_s > 0 ? 0.95 : 0;
    train->recent_rows = keep * train->recent_rows + (1 - keep) * rows;
    train->recent_s = keep * train->recent_s + (1 - keep) * step_s;
    progress->samples_per_s = train->recent_rows / train->recent_s;
    progress->step_ms = train->recent_s * 1e3;
    progress->comm_wait_ms = wait_s * 1e3;
    progress->has_eval = 0;
    train->evaluates = train_evaluation_due(train);
    train->has_batch = 0;
    train->is_within = batch->part + 1 < batch->n_parts; /* whose commit came from another rank */
    loader_release(train->loader);
    progress->has_step = 1;
    note_phase(train, progress, TRAIN_TRAINING);
    progress->has_step = 0;
    put_step(train, rows / step_s, step_s);
}

static void put_eval(struct train *train)
{
    const struct train_progress *progress = &train->progress;
    struct ms_err why = {0, ""};
    if (train->metrics == NULL) {
        return;
    }
    char *more = train->scores != NULL ? scores_json(train->scores, progress->eval_loss) : NULL;
    const struct metrics_eval line = {.epoch = progress->epoch,
                                      .step = progress->step,
                                      .loss = progress->eval_loss,
                                      .accuracy = progress->accuracy,
                                      .more = more};
    note_metrics(train, metrics_put_eval(train->metrics, &line, &why), &why);
    free(more);
}

/* Where a training goes on from a checkpoint that nobody made a step of, its step may be one of
 * another job. */
static int lacks_last(const struct train *train, int is_copy)
{
    const uint64_t step = train->progress.step;
    const uint64_t had = train->metrics != NULL ? metrics_last_step(train->metrics) : step;
    return had + 1 == step || (had < step && !is_copy && train->job_tag[0] != '\0');
}

void train_tell_missed(struct train *train, int is_copy)
{
    const struct train_progress *progress = &train->progress;
    const uint64_t step = progress->step;
    const int tells = lacks_last(train, is_copy);
    note_gaps(train, 1, tells ? step - 1 : step);
    if (tells) {
        put_step(train, 0, 0);
    }
    const int has_line = train->metrics != NULL && metrics_last_step(train->metrics) == step;
    if (progress->has_eval && has_line && train->scores == NULL) { /* else rank 0 has told it */
        put_eval(train);
    }
    if (progress->has_eval) {
        train_judge_missed(train);
    }
}

/* ---- evaluation ---- */

/* As much of the statistics' first values is not worth a word. */
#define UNSETTLED 0.05

static int evaluate_here(struct train *train, double sums[EVAL_SUMS], struct ms_err *err)
{
    struct loader *loader = train->eval_loader;
    struct batch batch;
    int rc;
    while ((rc = train_next(train, loader, train->eval_source, &batch, err)) == 1) {
        if (atomic_load(&train->stop_asked)) { /* an evaluation may take long: give it up */
            sums[EVAL_STOP] = 1;
            loader_release(loader);
            return 0;
        }
        struct plan_evaluated made;
        rc = replica_evaluate(train->replica, &batch, &made, err);
        if (rc == 0) {
            evaluation_add(train->cfg.job, sums, train->scores, &batch, train->eval_info.tokens,
                           &made);
        }
        loader_release(loader);
        if (rc < 0) {
            return rc;
        }
    }
    if (train_was_woken(train, rc)) {
        sums[EVAL_STOP] = 1;
        return 0;
    }
    return rc;
}

/* The moving statistics that change most slowly: their momentum; 0: there are none. */
static double slowest_momentum(const struct graph *graph)
{
    double momentum = 0;
    for (int i = 0; i < graph_n_states(graph); i++) {
        momentum = fmax(momentum, graph_tensor(graph, graph_state_at(graph, i))->momentum);
    }
    return momentum;
}

/* Evaluation normalises by moving statistics, which are those that were initialised for a part of
 * momentum^batches still: until that is small, a net that was trained well looks untrained. Those
 * of initial weights are of some training already. */
static double unsettled_share(const struct train *train, double momentum)
{
    const double batches = (double)train->progress.step * (double)train->cfg.job->accumulate;
    const double left = pow(momentum, batches);
    const int is_settled = left <= UNSETTLED || momentum <= 0 || momentum >= 1 ||
                           train->cfg.job->initial_weights[0] != '\0';
    return is_settled ? 0 : left;
}

static void note_unsettled(struct train *train)
{
    const double momentum = slowest_momentum(replica_graph(train->replica));
    const double left = unsettled_share(train, momentum);
    const double settled = log(UNSETTLED) / log(momentum); /* batches */
    train->progress.unsettled = left;
    if (train->cfg.rank != 0 || left <= 0) {
        return;
    }
    rank_log_say(
        &train->log,
        "evaluation after %" PRIu64 " steps: %.0f %% of the moving statistics are what they "
        "were at first (momentum %g), and the net may look less trained than it is; from %.0f "
        "steps on they tell\n",
        train->progress.step, 100 * left, momentum,
        ceil(settled / (double)train->cfg.job->accumulate));
}

/* In the log of rank 0, line by line. */
static void say_scores(struct train *train)
{
    if (train->scores == NULL || train->cfg.rank != 0) {
        return;
    }
    char *text =
        scores_say(train->scores, train->progress.eval_loss, train->cfg.job->dataset.class_names);
    rank_log_say(&train->log, "evaluation after %" PRIu64 " steps:\n", train->progress.step);
    for (char *line = text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        *end = '\0';
        rank_log_say(&train->log, "%s\n", line);
        line = end + 1;
    }
    free(text);
}

/* Some rank may be asked to stop meanwhile: then all give the evaluation up. */
static int evaluate(struct train *train, struct ms_err *err)
{
    struct train_progress *progress = &train->progress;
    double sums[EVAL_SUMS] = {0};
    note_phase(train, progress, TRAIN_EVALUATING);
    note_unsettled(train);
    train->has_scores = 0;
    if (train->scores != NULL) {
        scores_clear(train->scores);
    }
    int rc = train_start_eval(train, err);
    if (rc == 0) {
        rc = evaluate_here(train, sums, err);
    }
    train_end_eval(train);
    if (rc == 0) {
        rc = mesh_all_reduce_sum_f64(train->mesh, sums, EVAL_SUMS, err);
    }
    if (rc == 0 && train->scores != NULL) {
        size_t n = 0;
        double *scores = scores_sums(train->scores, &n);
        rc = mesh_all_reduce_sum_f64(train->mesh, scores, n, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (sums[EVAL_STOP] > 0) { /* it stays due: who resumes makes up for it */
        train->stopped = 1;
        return 0;
    }
    train->evaluates = 0;
    train->has_scores = 1;
    progress->has_eval = 1;
    progress->eval_loss = evaluation_loss(sums);
    progress->accuracy = evaluation_accuracy(train->cfg.job, sums);
    note_phase(train, progress, TRAIN_EVALUATING);
    put_eval(train);
    say_scores(train);
    train_judge(train);
    const double now = ms_mono_s();
    train->told_s += now - train->since_s;
    train->since_s = now;
    return 0;
}

/* ---- the loop ---- */

static int check_finite(const struct batch *batch, float loss, struct ms_err *err)
{
    if (isfinite(loss)) {
        return 0;
    }
    return ms_fail(err, MS_E_FAILED,
                   "In epoch: %" PRId64 " step: %" PRId64 ", " MS_TEXT_NOT_FINITE
                   ", training process cannot continue, terminating training. A smaller learning "
                   "rate is the usual cure",
                   batch->epoch + 1, batch->step + 1);
}

/* A batch stays in hand until it is committed: a step of one that was given up begins anew with it.
 */
static int take_step(struct train *train, struct ms_err *err)
{
    struct train_step_numbers numbers;
    uint64_t step = train->progress.step + 1;
    int rc = train_run_step(train, step, &numbers, err);
    if (rc == 0 && numbers.is_void) {
        train->stopped = 1;
        return 0;
    }
    if (rc == 0) {
        rc = check_finite(&train->batch, numbers.loss_mean, err);
    }
    if (rc < 0) {
        return rc;
    }
    replica_commit(train->replica, step, train->data_world, numbers.weight, &train->batch,
                   train->results);
    train->stopped = numbers.stop;
    train_step_done(train, numbers.loss_here, numbers.loss_mean, numbers.wait_s);
    checkpoint_offer(train);
    return 0;
}

static int train_loop(struct train *train, struct ms_err *err)
{
    int rc = train_check_abort(train, err);
    kernel_float_forget(); /* what was bound and initialised had the team before */
    train->since_s = train->told_s = ms_mono_s();
    if (rc == 0 && train->evaluates && !train->stopped) { /* which a lost peer kept from its end */
        rc = evaluate(train, err);
    }
    while (rc == 0 && train->progress.step < train->known.steps_total && !train->stopped &&
           (rc = train_take_batch(train, err)) == 1) {
        rc = take_step(train, err);
        if (rc == 0 && !train->stopped && train->evaluates) {
            rc = evaluate(train, err);
        }
    }
    return rc < 0 ? rc : 0;
}

static int has_run_dir(const struct train *train)
{
    return train->cfg.run_dir != NULL && train->cfg.run_dir[0] != '\0';
}

/* The weights are its part. */
static int is_saver(const struct train *train)
{
    return train->cfg.rank == 0 || train->saves;
}

/* Of ranks that train for themselves no step of one is later than another's. */
static const char *weights_tag(const struct train *train)
{
    return train->data_world < train->cfg.world ? "" : train->job_tag;
}

/* Rank 0 has come to the end, and says so beside it: two runs of one job leave the same file. Who
 * was asked to save may have no lines there. */
static int is_plain_end(const struct train *train)
{
    return train->progress.step == train->known.steps_total && !train->saves;
}

static int save(const struct train *train, struct end_weights *place, const struct model_copy *copy,
                uint64_t *ret_later, struct ms_err *err)
{
    if (!is_saver(train) || !has_run_dir(train)) {
        return 0;
    }
    /* a try before may have got that far, whose process nobody heard: that needs no room twice */
    int rc = end_weights_save(place, copy, ret_later, err);
    return rc < 0 && model_copy_is_kept(copy, place->path) ? 0 : rc;
}

/* It is not all that the disk did not take. */
static int name_missing(struct train *train, int rc, struct ms_err *err)
{
    const int is_all = train->metrics == NULL || metrics_flush(train->metrics, NULL) == 0;
    const uint64_t missing = is_all ? 0 : metrics_missing(train->metrics);
    char text[MS_ERR_TEXT_MAX];
    snprintf(text, sizeof(text), "%s", ms_err_text(err));
    return missing == 0 ? rc
                        : ms_fail(err, rc, "%.300s; metrics.jsonl has no step from %" PRIu64 " on",
                                  text, missing);
}

/* In the place of rank 0, where that has its lines in this folder. */
static int add_done(const struct train *train, const struct metrics_done *done, struct ms_err *err)
{
    char path[MS_PATH_MAX + 32];
    if (!train->saves || !has_run_dir(train)) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/" METRICS_FILE, train->cfg.run_dir);
    return metrics_add_done(path, train->training, done, err);
}

static int put_done(struct train *train, const struct train_result *result, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    const struct metrics_done done = {.steps = result->steps,
                                      .has_eval = result->has_eval,
                                      .weights_sha256 = result->weights_sha256,
                                      .plan_sha256 = result->plan_sha256,
                                      .seconds = result->seconds};
    if (train->metrics == NULL) {
        return add_done(train, &done, err);
    }
    int rc = metrics_put_done(train->metrics, &done, &why);
    note_metrics(train, rc, &why);
    return rc < 0 ? ms_fail(err, rc, "%s", why.text) : 0;
}

static int tell_done(struct train *train, struct train_result *ret, struct ms_err *err)
{
    int rc = put_done(train, ret, err);
    rc = rc < 0 ? name_missing(train, rc, err) : rc;
    if (rc < 0 && train->cfg.job->recovery) { /* what was trained for is there */
        snprintf(ret->lacks, sizeof(ret->lacks), "%s", ms_err_text(err));
        return 0;
    }
    return rc;
}

/* Weights and the line of the end are of one step, whichever rank saves beside this one. */
static int save_end(struct train *train, const struct model_copy *copy, struct train_result *ret,
                    struct ms_err *err)
{
    char path[MS_PATH_MAX + 32];
    struct end_weights place;
    snprintf(path, sizeof(path), "%s/%s", has_run_dir(train) ? train->cfg.run_dir : "",
             TRAIN_WEIGHTS_FILE);
    end_weights_init(&place, path, weights_tag(train), train->training, is_plain_end(train));
    int rc = save(train, &place, copy, &ret->later, err);
    if (rc < 0) {
        rc = name_missing(train, rc, err);
    } else if (ret->later > 0) {
        ret->weights_sha256[0] = '\0'; /* of those that lie there who saved them says it */
    } else {
        rc = tell_done(train, ret, err);
    }
    end_weights_fini(&place);
    return rc;
}

static int finish(struct train *train, const struct train_progress *progress,
                  struct train_result *ret, struct ms_err *err)
{
    struct model_copy *copy = NULL;
    memcpy(ret->plan_sha256, train->known.plan_sha256, sizeof(ret->plan_sha256));
    ret->steps = progress->step;
    ret->loss = progress->loss;
    ret->has_eval = progress->has_eval;
    ret->eval_loss = progress->eval_loss;
    ret->accuracy = progress->accuracy;
    int rc = model_copy_make(train->replica, progress->step, &copy, err);
    if (rc < 0) {
        return rc;
    }
    memcpy(ret->weights_sha256, copy->sha256, sizeof(ret->weights_sha256));
    rc = save_end(train, copy, ret, err);
    model_copy_destroy(copy);
    return rc;
}

void train_tell_end(struct train *train, const struct train_result *result)
{
    if (result->unsaved < 0 && result->weights_sha256[0] != '\0' && train->metrics != NULL) {
        (void)put_done(train, result, NULL);
    }
}

static void say_later(struct train_result *result)
{
    char saved[MS_ERR_TEXT_MAX];
    if (result->later == 0) {
        return;
    }
    snprintf(saved, sizeof(saved), "%s", result->kept);
    snprintf(result->kept, sizeof(result->kept),
             "%.250s%sthe weights of step %" PRIu64 " of this job are there already: those of step "
             "%" PRIu64 " are not saved over them",
             saved, saved[0] != '\0' ? "; " : "", result->later, result->steps);
}

static void say_lack(struct train_result *result)
{
    char saved[MS_ERR_TEXT_MAX];
    say_later(result);
    if (result->lacks[0] == '\0') {
        return;
    }
    snprintf(saved, sizeof(saved), "%s", result->kept);
    snprintf(result->kept, sizeof(result->kept), "%.250s; %s",
             saved[0] != '\0' ? saved : "the weights are saved", result->lacks);
}

int train_culprit(const struct train *train)
{
    const int culprit = train->mesh != NULL ? mesh_culprit(train->mesh) : train->culprit;
    const int is_alone = train->data_world < train->cfg.world; /* in a mesh of one, as rank 0 */
    return culprit >= 0 && is_alone ? train->cfg.rank : culprit;
}

int train_is_of_mesh(struct train *train, int rc)
{
    const int ended = train->mesh != NULL ? mesh_status(train->mesh) : 0;
    return rc < 0 && (rc == ended || rc == train->mesh_rc);
}

struct replica *train_replica(struct train *train)
{
    return train->replica;
}

/* What waits still has no other step to wait for. */
static void flush_log(struct train *train)
{
    struct ms_err why = {0, ""};
    int rc = rank_log_flush(&train->log, &why);
    note_log(train, train->progress.step, rc, &why);
}

static int holds_step(const struct train *train)
{
    return train->has_state && train->progress.step > 0;
}

static int has_made_all(const struct train *train)
{
    return train->progress.step == train->known.steps_total && !train->evaluates;
}

/* Behind the weights of the end, which need the room first. Of a step in whose evaluation they were
 * kept already nothing is left to do; who kept them may have died before, or had no room. */
static void keep_best(struct train *train, struct train_result *result)
{
    struct ms_err why = {0, ""};
    char lacks[MS_ERR_TEXT_MAX];
    char text[MS_ERR_TEXT_MAX];
    const int rc = train->progress.has_eval ? train_keep_best(train, &why) : MS_OK;
    if (!best_say_unkept(train, text, sizeof(text))) {
        if (rc == MS_OK) {
            return;
        }
        snprintf(text, sizeof(text), "as the best ones they are not kept: %.300s",
                 ms_err_text(&why));
    }
    snprintf(lacks, sizeof(lacks), "%s", result->lacks);
    snprintf(result->lacks, sizeof(result->lacks), "%.200s%s%.300s", lacks,
             lacks[0] != '\0' ? "; " : "", text);
}

/* What an end keeps, once no step follows. Steps of the result: they are what they should be, and
 * what fails is that. */
static int conclude(struct train *train, struct train_result *result, struct ms_err *err)
{
    struct train_progress saving = train->progress;
    saving.has_eval = 0;
    note_phase(train, &saving, TRAIN_SAVING);
    checkpoint_finish(train);
    int rc = loader_finish(train->loader, err); /* no result of data that were damaged */
    rc = rc < 0 ? rc : finish(train, &train->progress, result, err);
    if (rc == 0) {
        keep_best(train, result);
    }
    train_finish_data(train);
    flush_log(train);
    train->has_kept |= rc == 0 && has_made_all(train) && is_saver(train);
    return rc;
}

/* The end of the training, not one that somebody asked for. Another rank, or a later try, may have
 * the room that it lacks: where the job recovers, that is no failure of the training. */
static int owe(const struct train *train, int rc, struct train_result *result,
               const struct ms_err *err)
{
    if (rc == 0 || result->stopped || result->steps == 0 || !train->cfg.job->recovery) {
        return rc;
    }
    result->unsaved = rc;
    snprintf(result->kept, sizeof(result->kept), "%s", ms_err_text(err));
    return 0;
}

static void say_weights_alone(const struct train *train, const struct ms_err *why,
                              struct train_result *result)
{
    char text[96];
    snprintf(text, sizeof(text), "the weights of step %" PRIu64 " are saved; its checkpoint is not",
             train->progress.step);
    snprintf(result->kept, sizeof(result->kept), "%s: %.300s",
             result->later > 0 ? "no checkpoint is saved" : text, ms_err_text(why));
}

static void say_no_checkpoint(const struct train *train, struct train_result *result)
{
    if (result->later == 0) {
        snprintf(result->kept, sizeof(result->kept),
                 "nothing is saved but the weights of step %" PRIu64
                 ": no checkpoint is configured",
                 train->progress.step);
    }
}

/* Of who stopped with the others. */
static void say_kept(const struct train *train, struct train_result *result)
{
    struct ms_err why = {0, ""};
    if (train->checkpoint == NULL) {
        if (is_saver(train) && has_run_dir(train)) {
            say_no_checkpoint(train, result);
        }
    } else if (checkpoint_kept(train, result->kept, sizeof(result->kept)) < 0 &&
               has_run_dir(train) && checkpoint_look(train, &why) < 0) {
        say_weights_alone(train, &why, result);
    }
}

int train_run(struct train *train, struct train_result *ret, struct ms_err *err)
{
    struct train_progress *progress = &train->progress;
    struct train_result result = {0};
    train->run_begun_s = ms_mono_s();
    note_phase(train, progress, TRAIN_TRAINING);
    int rc = train_loop(train, err);
    train->seconds += ms_mono_s() - train->run_begun_s;
    train->run_begun_s = ms_mono_s();
    result.seconds = train->seconds;
    result.stopped =
        train->stopped && (progress->step < train->known.steps_total || train->evaluates);
    rc = rc < 0 ? rc : conclude(train, &result, err);
    if (rc < 0 && train_check_abort(train, err) < 0) {
        return MS_E_ABORTED;
    }
    rc = owe(train, rc, &result, err);
    if (rc < 0) {
        return rc;
    }
    if (result.stopped) {
        say_kept(train, &result);
    }
    if (!result.stopped && result.unsaved == 0 && is_saver(train)) {
        train_say_early(train, result.kept, sizeof(result.kept));
    }
    say_lack(&result);
    *ret = result;
    return 0;
}

/* Of who was asked to save, and has no place for it: others hold the same, and may have one. */
static int fail_placeless(struct ms_err *err)
{
    return ms_fail(err, MS_E_UNSUPPORTED,
                   "the weights have no place: this training has no run directory");
}

/* Of a training that has made its steps: the weights. */
static int keep_end(struct train *train, int is_asked, struct train_result *result,
                    struct ms_err *err)
{
    char early[224];
    train->saves = 1;
    train->run_begun_s = ms_mono_s(); /* it may have waited for long: no time of the training */
    int rc = conclude(train, result, err);
    if (rc < 0 || !has_run_dir(train)) {
        return rc < 0 ? rc : is_asked ? fail_placeless(err) : 0;
    }
    train_say_early(train, early, sizeof(early));
    snprintf(result->kept, sizeof(result->kept),
             "%s%sthe weights of step %" PRIu64 ", the last, are saved: %.300s/%s%s", early,
             early[0] != '\0' ? "; " : "", result->steps, train->cfg.run_dir, TRAIN_WEIGHTS_FILE,
             train->has_skipped ? "; the evaluation behind it was not made" : "");
    return 0;
}

/* rc: of opening its checkpoints. Others hold the step as well, and may have what is short here. A
 * folder that is of no use will be so, and the weights are what there is of the step. */
static int keep_weights(const struct train *train, int rc, const struct ms_err *why,
                        struct train_result *result, struct ms_err *err)
{
    struct ms_err reason = *why;
    if (rc == 0) {
        rc = checkpoint_look(train, &reason);
    }
    if (rc == 0) {
        return ms_fail(err, MS_E_IO, "%s", result->kept);
    }
    if (rc == MS_E_NOMEM || !has_run_dir(train)) {
        return ms_fail(err, rc, "%s", reason.text);
    }
    say_weights_alone(train, &reason, result);
    return MS_OK;
}

static int keep_here(struct train *train, int is_asked, struct train_result *result,
                     struct ms_err *err)
{
    struct ms_err why = {0, ""};
    train->saves = 1;
    train->stopped = 1;
    train->run_begun_s = ms_mono_s(); /* what a checkpoint adds to the seconds until now */
    const int opened = checkpoint_open(train, &why);
    const int rc = conclude(train, result, err);
    if (rc < 0) {
        return rc;
    }
    const int kept = checkpoint_kept(train, result->kept, sizeof(result->kept));
    if (kept < 0) {
        return keep_weights(train, opened, &why, result, err);
    }
    if (kept == 0 && !has_run_dir(train)) {
        return is_asked ? fail_placeless(err) : 0;
    }
    if (kept == 0) {
        say_no_checkpoint(train, result);
    }
    return MS_OK;
}

void train_leave(struct train *train)
{
    if (train->has_state) {
        train->run_begun_s = ms_mono_s(); /* it may have held for long */
        checkpoint_leave(train);
    }
}

/* Who was not asked may be the last one that has them: rank 0 may be gone. Of ranks that train for
 * themselves each has its own. */
int train_owes(const struct train *train)
{
    const int is_alone = train->data_world < train->cfg.world;
    return train->cfg.job->recovery && holds_step(train) && has_made_all(train) &&
           (is_saver(train) || (has_run_dir(train) && !is_alone)) && !train->has_kept;
}

void train_save_owed(struct train *train)
{
    struct train_result result = {.steps = train->progress.step, .seconds = train->seconds};
    struct ms_err err = {0, ""};
    char saved[MS_ERR_TEXT_MAX];
    char text[2 * MS_ERR_TEXT_MAX];
    if (keep_end(train, 1, &result, &err) == 0) {
        say_lack(&result);
        train_note(train, result.kept);
        return;
    }
    const int has_step = checkpoint_kept(train, saved, sizeof(saved)) > 0;
    snprintf(text, sizeof(text),
             "the weights of step %" PRIu64 ", the last, are not saved; %.250s: %s",
             train->progress.step,
             has_step ? saved : "what was trained is lost, unless another rank saved it",
             ms_err_text(&err));
    train_note(train, text);
}

void train_skip_evaluation(struct train *train)
{
    if (train->progress.step == train->known.steps_total) {
        train->has_skipped |= train->evaluates;
        train->evaluates = 0;
    }
}

int train_stop_here(struct train *train, int is_asked, struct train_result *ret, struct ms_err *err)
{
    const int saves = is_asked || train->cfg.rank == 0;
    const int holds = holds_step(train);
    const int has_ended = holds && has_made_all(train);
    struct train_result result = {
        .steps = train->progress.step, .seconds = train->seconds, .stopped = !has_ended};
    if (saves && !holds) {
        snprintf(result.kept, sizeof(result.kept), "nothing is saved: rank %d holds no step",
                 train->cfg.rank);
    }
    int rc = !saves || !holds ? 0
             : has_ended      ? keep_end(train, is_asked, &result, err)
                              : keep_here(train, is_asked, &result, err);
    if (rc < 0 && train_check_abort(train, err) < 0) {
        return MS_E_ABORTED;
    }
    rc = owe(train, rc, &result, err);
    if (rc == 0) {
        say_lack(&result);
        *ret = result;
    }
    return rc;
}
