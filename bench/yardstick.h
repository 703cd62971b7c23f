/* yardstick.h - what a plan's step would cost as a plain sequence of oneDNN primitives
 *
 * For bench/step. The peer of a step runs on the plan's own buffers and layouts: a primitive is its
 * own peer; our fused kernels stand against batch norm (with oneDNN's fused ReLU), add and ReLU one
 * after the other. Batch norms that are made again, statistics and the loss have no peer. */
#ifndef BENCH_YARDSTICK_H
#define BENCH_YARDSTICK_H

#include "libworker/plan/plan.h"

struct yardstick;

/* plan: of graph, for training and bound; both borrowed. Returns owned. */
int yardstick_create(struct plan *plan, const struct graph *graph, struct yardstick **ret,
                     struct ms_err *err);
void yardstick_destroy(struct yardstick *yardstick); /* NULL allowed */

int yardstick_n_steps(const struct yardstick *yardstick);
/* "convolution", "batch norm backward", ...: what a step belongs to in a table of shares. */
const char *yardstick_group(const struct yardstick *yardstick, int step);

/* One step of the plan, and the mirrors that the commit before it writes; the seconds of each of
 * its steps are added to seconds. */
int yardstick_run_plan(struct yardstick *yardstick, const float *data, const void *labels,
                       double *seconds, struct ms_err *err);
/* The peers of all steps in order, after at least one step of the plan. seconds: as above, or NULL:
 * no clock is read in between. */
int yardstick_run_peers(struct yardstick *yardstick, double *seconds, struct ms_err *err);

#endif
