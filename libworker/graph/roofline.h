/* roofline.h - how long a step may take on a core, by the graph and two rates: no plan */
#ifndef GRAPH_ROOFLINE_H
#define GRAPH_ROOFLINE_H

#include "libworker/graph/graph.h"

struct roofline { /* of one core; both above 0 */
    double products_per_s;
    double bytes_per_s;
};

/* Seconds of each forward op of a differentiated graph, with those of its backward ops, into
 * ret_seconds, of graph_n_forward_ops. An op takes as long as its arithmetic or its memory,
 * whichever is longer; one that plans let run inside another adds nothing to that. The sum of
 * gradients of a tensor belongs to the op that gave the last of them. */
int graph_roofline(const struct graph *graph, const struct roofline *rates, double *ret_seconds,
                   struct ms_err *err);

#endif
