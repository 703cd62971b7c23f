/* cost.h - what a run of ops costs, by the graph alone: no machine, no plan */
#ifndef GRAPH_COST_H
#define GRAPH_COST_H

#include "libworker/graph/graph.h"

struct graph_cost {
    int64_t parameters; /* elements that are trained, of those that the ops read */
    int64_t states;     /* the same of moving statistics */
    int64_t values;     /* elements that the ops make, of the whole batch; a view makes none */
    double products;    /* with an addition each, of the whole batch; exact up to 2^53 */
};

/* Of ops first .. first + n - 1, which are forward ops. A parameter counts for the first op of the
 * graph that reads it. */
void graph_cost(const struct graph *graph, int first, int n, struct graph_cost *ret);

/* Of all that an op reads and makes, as fp32 whatever the precision: a cheaper step needs no other
 * team. A view counts as if it were copied. */
double graph_bytes(const struct graph *graph, const struct op *op);

#endif
