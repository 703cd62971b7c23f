/* job_judge.c - what judges a training: does an evaluation have that number? */
#include "libworker/job/job_schema.h"

#include <stdio.h>

int job_judge_wants_more(const struct job_judge *judge)
{
    return judge->mode == JOB_BETTER_AUTO
               ? judge->metric == JOB_SCORE_ACCURACY || judge->metric == JOB_SCORE_TOP5
               : judge->mode == JOB_BETTER_MORE;
}

static int has_metric(const struct job *job, enum job_score score)
{
    switch (score) {
    case JOB_SCORE_LOSS:
        return 1;
    case JOB_SCORE_ACCURACY:
        return job->loss == JOB_LOSS_SOFTMAX_CE || job->loss == JOB_LOSS_BCE;
    case JOB_SCORE_TOP5:
        return (job->evaluate_metrics & 1U << JOB_METRIC_TOP5) != 0;
    case JOB_SCORE_PERPLEXITY:
        return (job->evaluate_metrics & 1U << JOB_METRIC_PERPLEXITY) != 0;
    case JOB_SCORE_MAE:
        return (job->evaluate_metrics & 1U << JOB_METRIC_MAE) != 0;
    }
    return 0;
}

static int check(const struct job *job, const struct tree_node *tree, const char *section,
                 const struct job_judge *judge, struct ms_err *err)
{
    char key[32];
    snprintf(key, sizeof(key), "%s.metric", section);
    if (!job->has_evaluate) {
        return tree_fail(job_node_at(tree, section), err,
                         "%s: evaluations decide, and the job has none; give evaluate", section);
    }
    if (has_metric(job, judge->metric)) {
        return MS_OK;
    }
    return judge->metric == JOB_SCORE_ACCURACY
               ? tree_fail(job_node_at(tree, key), err,
                           "%s: accuracy: an evaluation with loss: %s has none; give loss", key,
                           job_loss_name(job->loss))
               : tree_fail(job_node_at(tree, key), err,
                           "%s: %s is not counted; add it to evaluate.metrics", key,
                           job_judge_metric(judge));
}

int job_check_judges(const struct job *job, const struct tree_node *tree, struct ms_err *err)
{
    int rc = job->has_early_stop ? check(job, tree, "early_stop", &job->early_stop, err) : MS_OK;
    if (rc == MS_OK && job->has_early_stop && job_is_split(job)) {
        return tree_fail(job_node_at(tree, "early_stop"), err,
                         "early_stop: in mode stand_alone each of the %d workers has a training "
                         "of its own, and they would end at different steps; use one worker, or "
                         "data_parallel",
                         job->workers);
    }
    return rc == MS_OK && job->has_best ? check(job, tree, "best", &job->best, err) : rc;
}
