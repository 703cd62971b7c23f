/* evaluation.h - one pass over evaluation data: what it reads, and what it adds up
 *
 * The same for a training that evaluates between its steps and for weights that are evaluated by
 * themselves (room infer), so that both come to the same bits. */
#ifndef TRAIN_EVALUATION_H
#define TRAIN_EVALUATION_H

#include "libworker/data/data.h"
#include "libworker/job/job.h"
#include "libworker/plan/plan.h"
#include "libworker/train/scores.h"

/* Batches that wait ready, of training and of evaluation. */
enum { LOADER_DEPTH = 2 };

/* Of a batch of the evaluation; by default that of the training. */
int64_t evaluation_batch(const struct job *job);

struct evaluation_pass {
    const struct job *job;
    struct data_source *source;
    int64_t batch;
    int rank, world; /* which shard of the data */
    int threads;     /* that decode */
};
/* One pass in the order of the data, by the transforms of training without the random ones, for
 * which fixed is room: borrowed until the loader is made. */
struct loader_config evaluation_loader(const struct evaluation_pass *pass,
                                       struct transform fixed[MS_TRANSFORMS_MAX]);

/* Sums over batches, and then over ranks by the tree of comm.h. */
enum { EVAL_LOSS, EVAL_CORRECT, EVAL_WEIGHT, EVAL_JUDGED, EVAL_STOP, EVAL_SUMS };

/* tokens: of a record, 0 or 1: it is judged as one; scores NULL: nothing more is counted. */
void evaluation_add(const struct job *job, double sums[EVAL_SUMS], struct scores *scores,
                    const struct batch *batch, int64_t tokens, const struct plan_evaluated *made);
/* By the weights of labels; 0 where none counts. */
double evaluation_loss(const double sums[EVAL_SUMS]);
/* Of those that are not ignored. NaN: its loss has none, or all are ignored. */
double evaluation_accuracy(const struct job *job, const double sums[EVAL_SUMS]);

/* What the job counts beside these, with rows of `data`; NULL: nothing. Errors as scores_create. */
int evaluation_scores(const struct job *job, const struct loader_info *data, struct scores **ret,
                      struct ms_err *err);

#endif
