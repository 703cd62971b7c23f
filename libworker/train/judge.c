/* judge.c - evaluations judge a training: it may end early, and the best weights are kept (best.c)
 */
#include "libworker/train/judge.h"

#include "libworker/train/train_impl.h"
#include "proto/state_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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

/* Better they may have been, and are kept as the best then, where by less than it asks for. */
void train_say_early(const struct train *train, char *buf, unsigned long size)
{
    const struct watch *watch = &train->watch;
    const double min_delta = train->cfg.job->early_stop_min_delta;
    char by[64] = "";
    buf[0] = '\0';
    if (train->is_early && watch->step > 0) {
        if (min_delta > 0) {
            snprintf(by, sizeof(by), " by more than %.6g (early_stop.min_delta)", min_delta);
        }
        snprintf(buf, size,
                 MS_TEXT_ENDED_EARLY ": %s was %.6g after step %" PRIu64 ", and the %" PRId64
                                     " evaluation%s since then %s no better%s",
                 job_judge_metric(&train->cfg.job->early_stop), watch->best, watch->step,
                 watch->bad, watch->bad == 1 ? "" : "s", watch->bad == 1 ? "was" : "were", by);
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

/* ---- the best of all ---- */

static void put_on_record(struct train *train)
{
    const struct job *job = train->cfg.job;
    struct record *record = &train->record;
    if (job->has_best && has_value(train, job->best.metric)) {
        watch_count(&record->watch, job_judge_wants_more(&job->best), 0, train->progress.step,
                    value_of(train, job->best.metric));
    } else {
        record->since = UINT64_MAX; /* one is missing */
    }
}

/* Else jobs before this one may have evaluated as well, even on other data. */
static int began_here(const struct train *train)
{
    return train->first_tag[0] == '\0' ? train->job_tag[0] != '\0' || train->record.since == 0
                                       : strcmp(train->first_tag, train->job_tag) == 0;
}

static int counts_for_best(const struct job *job)
{
    return job->has_early_stop && job->early_stop.metric == job->best.metric &&
           job_judge_wants_more(&job->early_stop) == job_judge_wants_more(&job->best) &&
           job->early_stop_min_delta <= 0;
}

/* Of all evaluations of the training, but one that is out of turn; NULL: nothing here has counted
 * them all. What early_stop counts goes with the state to who comes later. */
static const struct watch *find_record(const struct train *train)
{
    const uint64_t first =
        (uint64_t)train->cfg.job->evaluate_every_epochs * (uint64_t)train->progress.steps_per_epoch;
    if (!began_here(train)) {
        return NULL;
    }
    return train->record.since <= first      ? &train->record.watch
           : counts_for_best(train->cfg.job) ? &train->watch
                                             : NULL;
}

/* In the folder of rank 0, which may be its own, too, it judges as that does; elsewhere nothing
 * says how good the others are that are kept. */
static int keep_in_place_of_0(struct train *train, double value, struct ms_err *err)
{
    const struct watch *record = find_record(train);
    const int wants_more = job_judge_wants_more(&train->cfg.job->best);
    char text[MS_ERR_TEXT_MAX];
    if (best_is_here(train, train->progress.step, value)) {
        return MS_OK; /* rank 0 has got that far */
    }
    if (record == NULL) {
        snprintf(text, sizeof(text),
                 "the weights of step %" PRIu64 " are not kept as the best so far: rank %d has not "
                 "seen all evaluations of the training, and cannot tell; the best ones are those "
                 "that rank 0 kept",
                 train->progress.step, train->cfg.rank);
        train_note(train, text);
        return ms_fail(err, MS_E_NOT_FOUND, "rank %d has not seen all evaluations",
                       train->cfg.rank);
    }
    const int is_best = record->step == 0 || record->step == train->progress.step ||
                        is_better(wants_more, 0, value, record->best);
    const int is_place_of_0 = best_is_here(train, record->step, record->best);
    return is_best || is_place_of_0 ? best_keep(train, value, err) : MS_OK;
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
    return train->cfg.rank == 0 ? best_keep(train, value, err)
                                : keep_in_place_of_0(train, value, err);
}

static void keep_on_the_way(struct train *train)
{
    if (train->progress.step < train->known.steps_total) {
        (void)train_keep_best(train, NULL);
    }
}

void train_judge_missed(struct train *train)
{
    put_on_record(train);
    keep_on_the_way(train);
}

void train_judge(struct train *train)
{
    const struct job *job = train->cfg.job;
    put_on_record(train);
    if (job->has_early_stop && is_in_turn(train)) {
        watch_count(&train->watch, job_judge_wants_more(&job->early_stop),
                    job->early_stop_min_delta, train->progress.step,
                    value_of(train, job->early_stop.metric));
        train_end_early(train);
    }
    keep_on_the_way(train);
}
