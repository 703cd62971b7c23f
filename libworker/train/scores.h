/* scores.h - what an evaluation counts beside loss and accuracy: key evaluate.metrics of a job
 *
 *     scores_clear -> scores_add, a batch after the other, on every rank
 *       -> scores_sums, which the caller sums over the ranks -> scores_json, scores_say
 *
 * All are sums of whole numbers (mae: of distances, in double), so that they do not depend on how
 * rows were shared out. One thread. */
#ifndef TRAIN_SCORES_H
#define TRAIN_SCORES_H

#include "libworker/job/job.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

struct scores;

/* wanted: bits 1 << enum job_metric; columns: of a row of predictions. MS_E_INVALID: more classes
 * than a metric can show. Returns owned. */
int scores_create(unsigned wanted, int64_t columns, struct scores **ret, struct ms_err *err);
void scores_destroy(struct scores *scores); /* NULL allowed */
void scores_clear(struct scores *scores);

struct scored { /* the rows of a batch that count */
    const float
        *predictions;      /* (rows, columns), C order: logits, or what a target is compared with */
    const int32_t *labels; /* (rows), of sequences tokens; NULL: there are targets */
    const float *targets;  /* (rows, columns) */
    int64_t rows;
    int is_soft; /* targets are what each class counts: the largest one is the label */
    struct data_ignored ignored; /* of labels: their rows do not count */
};
void scores_add(struct scores *scores, const struct scored *batch);

/* What is summed over ranks, in place; borrowed. */
double *scores_sums(struct scores *scores, size_t *ret_n);

/* TOP5, PERPLEXITY or MAE, of a job that counts it. loss: mean over all rows. */
double scores_value(const struct scores *scores, enum job_metric metric, double loss);

/* Members of an object of metrics.jsonl, each with a comma before it: `,"top5":0.98`. A quotient
 * that has no meaning (the precision of a class that was never predicted) is null. loss: mean over
 * all rows. Returns owned; NULL without memory. */
char *scores_json(const struct scores *scores, double loss);
/* For people: lines, each with its newline, of at most 200 bytes. names: of classes, LF between, as
 * in a job; "": they have numbers alone. Returns owned; NULL without memory. */
char *scores_say(const struct scores *scores, double loss, const char *names);

#endif
