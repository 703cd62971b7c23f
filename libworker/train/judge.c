/* judge.c - evaluations judge a training: it may end early, and the best weights are kept */
#include "libworker/train/judge.h"

#include "libworker/data/safetensors.h"
#include "libworker/train/model_copy.h"
#include "libworker/train/train_impl.h"
#include "proto/state_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_better(int wants_more, double min_delta, double value, double best)
{
    return wants_more ? value > best + min_delta : value < best - min_delta;
}

void watch_count(struct watch *watch, int wants_more, double min_delta, uint64_t step, double value)
{
    if (watch->seen == step) {
        return;
    }
    watch->seen = step;
    if (isfinite(value) &&
        (watch->step == 0 || is_better(wants_more, min_delta, value, watch->best))) {
        watch->step = step;
        watch->best = value;
        watch->bad = 0;
    } else {
        watch->bad++;
    }
}

static double value_of(const struct train *train, enum job_score score)
{
    const struct train_progress *progress = &train->progress;
    switch (score) {
    case JOB_SCORE_LOSS:
        return progress->eval_loss;
    case JOB_SCORE_ACCURACY:
        return progress->accuracy;
    case JOB_SCORE_TOP5:
        return scores_value(train->scores, JOB_METRIC_TOP5, progress->eval_loss);
    case JOB_SCORE_PERPLEXITY:
        return scores_value(train->scores, JOB_METRIC_PERPLEXITY, progress->eval_loss);
    case JOB_SCORE_MAE:
        return scores_value(train->scores, JOB_METRIC_MAE, progress->eval_loss);
    }
    return NAN;
}

/* ---- the best weights ---- */

/* Of the training, whichever of its jobs writes. */
static const char *training_of(const struct train *train)
{
    return train->first_tag[0] != '\0' ? train->first_tag : train->job_tag;
}

static int is_meta(const struct safetensors *file, const char *key, const char *want)
{
    const char *have = safetensors_meta(file, key);
    return have != NULL && strcmp(have, want) == 0;
}

/* A process before this one may have kept some: its file says how good they are. */
static void find_kept(struct train *train, const char *path)
{
    struct safetensors *file = NULL;
    if (train->kept.seen > 0 || training_of(train)[0] == '\0' ||
        safetensors_open_own(path, &file, NULL) < 0) {
        return;
    }
    const char *value = safetensors_meta(file, "value");
    const char *steps = safetensors_meta(file, "steps");
    if (value != NULL && steps != NULL && is_meta(file, "training", training_of(train)) &&
        is_meta(file, "metric", job_judge_metric(&train->cfg.job->best))) {
        train->kept.step = strtoull(steps, NULL, 10);
        train->kept.best = strtod(value, NULL);
    }
    safetensors_close(file);
}

static int save_best(struct train *train, const char *path, struct ms_err *err)
{
    struct model_copy *copy = NULL;
    char value[32];
    snprintf(value, sizeof(value), "%.17g", train->kept.best);
    const char *const more[] = {"metric",   job_judge_metric(&train->cfg.job->best),
                                "value",    value,
                                "training", training_of(train)};
    int rc = model_copy_make(train->replica, train->progress.step, &copy, err);
    rc = rc < 0 ? rc : model_copy_save_with(copy, path, more, 3, err);
    model_copy_destroy(copy);
    return rc;
}

static void keep_best(struct train *train)
{
    const struct job *job = train->cfg.job;
    const uint64_t step = train->progress.step;
    char path[MS_PATH_MAX + 32];
    char text[MS_TEXT_MAX];
    struct ms_err err = {0, ""};
    snprintf(path, sizeof(path), "%s/%s", train->cfg.run_dir, TRAIN_BEST_FILE);
    find_kept(train, path);
    const struct watch before = train->kept;
    watch_count(&train->kept, job_judge_wants_more(&job->best), 0, step,
                value_of(train, job->best.metric));
    if (train->kept.step != step || before.step == step) {
        return;
    }
    if (save_best(train, path, &err) < 0) {
        train->kept = before; /* the file has those still */
        train->kept.seen = step;
        snprintf(text, sizeof(text),
                 "the weights of step %" PRIu64 ", the best so far, are not kept: %.250s", step,
                 ms_err_text(&err));
        train_note(train, text);
        return;
    }
    rank_log_say(&train->log, "%s is %.6g after step %" PRIu64 ", the best so far: kept in %s\n",
                 job_judge_metric(&job->best), train->kept.best, step, TRAIN_BEST_FILE);
}

/* ---- the end ---- */

void train_end_early(struct train *train)
{
    const struct job *job = train->cfg.job;
    const uint64_t step = train->progress.step;
    if (job->has_early_stop && !train->evaluates && train->watch.seen == step &&
        train->watch.bad >= job->early_stop_patience && step < train->known.steps_total) {
        train->known.steps_total = train->progress.steps_total = step;
        train->is_early = 1;
    }
}

void train_say_early(const struct train *train, char *buf, unsigned long size)
{
    const struct watch *watch = &train->watch;
    buf[0] = '\0';
    if (train->is_early && watch->step > 0) {
        snprintf(buf, size,
                 MS_TEXT_ENDED_EARLY ": %s was %.6g after step %" PRIu64 ", and the %" PRId64
                                     " evaluation%s since then %s no better",
                 job_judge_metric(&train->cfg.job->early_stop), watch->best, watch->step,
                 watch->bad, watch->bad == 1 ? "" : "s", watch->bad == 1 ? "was" : "were");
    } else if (train->is_early) {
        snprintf(buf, size, MS_TEXT_ENDED_EARLY ": %s was no number in %" PRId64 " evaluations",
                 job_judge_metric(&train->cfg.job->early_stop), watch->bad);
    }
}

/* One for the end of a job within an epoch alone would not be made if it were longer. */
static int is_in_turn(const struct train *train)
{
    const struct train_progress *progress = &train->progress;
    return progress->step_in_epoch == progress->steps_per_epoch &&
           progress->epoch % train->cfg.job->evaluate_every_epochs == 0;
}

void train_judge(struct train *train)
{
    const struct job *job = train->cfg.job;
    if (job->has_best && train->cfg.rank == 0 && train->cfg.run_dir != NULL &&
        train->cfg.run_dir[0] != '\0') {
        keep_best(train);
    }
    if (job->has_early_stop && is_in_turn(train)) {
        watch_count(&train->watch, job_judge_wants_more(&job->early_stop),
                    job->early_stop_min_delta, train->progress.step,
                    value_of(train, job->early_stop.metric));
        train_end_early(train);
    }
}
