/* evaluation.c - one pass over evaluation data: what it reads, and what it adds up */
#include "libworker/train/evaluation.h"

#include <math.h>

int64_t evaluation_batch(const struct job *job)
{
    return job->evaluate_batch_size > 0 ? job->evaluate_batch_size : job->batch_size;
}

struct loader_config evaluation_loader(const struct evaluation_pass *pass,
                                       struct transform fixed[MS_TRANSFORMS_MAX])
{
    const struct job *job = pass->job;
    int n = 0;
    for (int i = 0; i < job->n_transforms; i++) {
        if (!transform_is_random(&job->transforms[i])) {
            fixed[n++] = job->transforms[i];
        }
    }
    return (struct loader_config){.source = pass->source,
                                  .transforms = fixed,
                                  .n_transforms = n,
                                  .batch = pass->batch,
                                  .rank = pass->rank,
                                  .world = pass->world,
                                  .has_probabilities = job_has_probabilities(job),
                                  .evaluation = 1,
                                  .seed = job->seed,
                                  .epochs = 1,
                                  .threads = pass->threads,
                                  .depth = LOADER_DEPTH};
}

static void add_scores(const struct job *job, struct scores *scores, const struct batch *batch,
                       int64_t tokens, const struct plan_evaluated *made)
{
    const int has_classes = batch->labels.dtype == MS_I32;
    const struct scored scored = {.predictions = made->predictions,
                                  .labels = has_classes ? batch->labels.values : NULL,
                                  .targets = has_classes ? NULL : batch->labels.values,
                                  .rows = batch->rows * tokens,
                                  .is_soft = !has_classes && job->loss == JOB_LOSS_SOFTMAX_CE,
                                  .ignored = job->dataset.ignored};
    scores_add(scores, &scored);
}

void evaluation_add(const struct job *job, double sums[EVAL_SUMS], struct scores *scores,
                    const struct batch *batch, int64_t tokens, const struct plan_evaluated *made)
{
    const int64_t each = tokens > 0 ? tokens : 1;
    if (scores != NULL) {
        add_scores(job, scores, batch, each, made);
    }
    sums[EVAL_LOSS] += made->loss_sum;
    sums[EVAL_CORRECT] += (double)made->correct;
    sums[EVAL_WEIGHT] += made->weight_sum;
    sums[EVAL_JUDGED] += (double)made->counted;
}

double evaluation_loss(const double sums[EVAL_SUMS])
{
    return sums[EVAL_WEIGHT] > 0 ? sums[EVAL_LOSS] / sums[EVAL_WEIGHT] : 0;
}

/* A distance to numbers has none. */
double evaluation_accuracy(const struct job *job, const double sums[EVAL_SUMS])
{
    return job->loss == JOB_LOSS_SOFTMAX_CE || job->loss == JOB_LOSS_BCE
               ? sums[EVAL_CORRECT] / sums[EVAL_JUDGED]
               : (double)NAN;
}

int evaluation_scores(const struct job *job, const struct loader_info *data, struct scores **ret,
                      struct ms_err *err)
{
    const int64_t classes = job->classes > 0 ? job->classes : data->classes;
    *ret = NULL;
    return job->evaluate_metrics == 0
               ? MS_OK
               : scores_create(job->evaluate_metrics,
                               data->target_width > 0 ? data->target_width : classes, ret, err);
}
