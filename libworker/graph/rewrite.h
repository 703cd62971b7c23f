/* rewrite.h - another graph made of a graph: a copying pass that keeps, replaces or inserts ops
 *
 *     graph ──> leaf of each leaf, op of each op, in their order ──> new graph ──> differentiate
 *
 * The pass walks the old graph; a rewrite says what becomes of each piece and appends it to the new
 * graph with the builders of graph.h. Shapes are inferred anew and every rule of a graph holds for
 * the new one. Names follow from parameters and places, so the same ops give the same plan. */
#ifndef GRAPH_REWRITE_H
#define GRAPH_REWRITE_H

#include "libworker/graph/graph.h"

struct rewrite_op { /* an op of the old graph, met in the new one */
    const struct graph *from;
    int index; /* of the op in `from` */
    const struct op *op;
    int in[GRAPH_OP_TENSORS_MAX]; /* what its inputs have become: tensors of the new graph */
};

struct rewrite {
    const char *name; /* "shard", for errors */
    /* Each returns a tensor of `to`, or fails. Borrowed for the call; `to` is not kept. */

    /* What stands for a leaf (data, label, parameter or state `tensor` of `from`) from here on:
     * rewrite_keep_leaf, or one of another shape. NULL: all are kept. */
    int (*leaf)(const void *arg, const struct graph *from, int tensor, struct graph *to,
                struct ms_err *err);
    /* What stands for the op's output 0: rewrite_keep, other ops over site->in, some more after it,
     * or an input itself, which leaves the op out. NULL: all are kept. */
    int (*op)(const void *arg, const struct rewrite_op *site, struct graph *to, struct ms_err *err);
    const void *arg;
};

/* A copy of `graph`, loss and output marked alike; it has no backward ops yet. Returns owned.
 * MS_E_INVALID: the graph is differentiated already, or what the rewrite makes is no graph; the
 * error names rewrite, op and reason. No graph is left over then. */
int graph_copy_with(const struct graph *graph, const struct rewrite *rewrite, struct graph **ret,
                    struct ms_err *err);

/* The leaf, or the op over site->in, as it is. */
int rewrite_keep_leaf(const struct graph *from, int tensor, struct graph *to, struct ms_err *err);
int rewrite_keep(const struct rewrite_op *site, struct graph *to, struct ms_err *err);

#endif
