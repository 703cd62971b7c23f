/* rounds.h - batches of shards that are computed side by side, in the order of the data
 *
 *     member i:  rounds_put, batch after batch -> rounds_end
 *     member 0:  the same, and takes each round once all have put theirs, or have ended
 *
 * Row r of round k of member i of n is sample (k batch + r) n + i. Each holds one batch for the
 * round, and computes the next meanwhile. */
#ifndef INFER_ROUNDS_H
#define INFER_ROUNDS_H

#include "libworker/data/data.h"
#include "libworker/plan/plan.h"

struct rounds;

struct rounds_row {
    int64_t sample;
    const float *values;   /* (tokens, columns) */
    const int32_t *labels; /* (tokens); NULL: they have none */
};
/* Each row of a round, in order, in member 0's thread; a negative code ends all. */
typedef int rounds_row_fn(void *arg, const struct rounds_row *row, struct ms_err *err);

/* tokens: of a row, 0 or 1: it is one. Returns owned. MS_E_NOMEM. */
int rounds_create(int members, int64_t batch, int64_t tokens, int64_t columns,
                  rounds_row_fn *on_row, void *arg, struct rounds **ret, struct ms_err *err);
void rounds_destroy(struct rounds *rounds); /* NULL allowed */

/* Copies; waits for the round before to be taken. MS_E_ABORTED: after rounds_stop. */
int rounds_put(struct rounds *rounds, int member, const struct batch *batch,
               const struct plan_evaluated *made, struct ms_err *err);
/* That member has no more. Member 0, whose shard is the longest: there are no more rounds. */
void rounds_end(struct rounds *rounds, int member);
/* Wakes whoever waits, for good. Any thread. */
void rounds_stop(struct rounds *rounds);

#endif
