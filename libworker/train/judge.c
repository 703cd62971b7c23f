/* judge.c - evaluations judge a training: it may end early, and the best weights are kept (best.c)
 */
#include "libworker/train/judge.h"

#include "libworker/train/train_impl.h"
#include "proto/state_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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

/* Not so where an evaluation that is made again was given up, or another rank has its sums. */
static int has_value(const struct train *train, enum job_score score)
{
    return score == JOB_SCORE_LOSS || score == JOB_SCORE_ACCURACY || train->has_scores;
}

/* NaN: there is none. */
static double value_of(const struct train *train, enum job_score score)
{
    const struct train_progress *progress = &train->progress;
    if (!has_value(train, score)) {
        return NAN;
    }
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

/* ---- the end ---- */

void train_end_early(struct train *train)
{
    const struct job *job = train->cfg.job;
    const uint64_t step = train->progress.step;
    if (job->has_early_stop && train->watch.seen == step &&
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

int train_keep_best(struct train *train, struct ms_err *err)
{
    const struct job *job = train->cfg.job;
    const int is_saver = train->cfg.rank == 0 || train->saves;
    if (!job->has_best || !is_saver || train->cfg.run_dir == NULL ||
        train->cfg.run_dir[0] == '\0') {
        return MS_OK;
    }
    const double value = value_of(train, job->best.metric);
    if (!isfinite(value)) {
        return MS_OK; /* none, which may come yet */
    }
    return best_keep(train, value, err);
}

static void keep_on_the_way(struct train *train)
{
    if (train->progress.step < train->known.steps_total) {
        (void)train_keep_best(train, NULL);
    }
}

void train_judge_missed(struct train *train)
{
    keep_on_the_way(train);
}

void train_judge(struct train *train)
{
    const struct job *job = train->cfg.job;
    if (job->has_early_stop && is_in_turn(train)) {
        watch_count(&train->watch, job_judge_wants_more(&job->early_stop),
                    job->early_stop_min_delta, train->progress.step,
                    value_of(train, job->early_stop.metric));
        train_end_early(train);
    }
    keep_on_the_way(train);
}
