/* op.h - what a graph knows of its ops: a row a kind, a file a family
 *
 *     op.c               all rows, found by kind
 *     op_conv.c ...      a family: rows with their shape rules and gradients, and the builders
 *     cost.c             products of a run, for the rows; sums over ops
 *     roofline.c         seconds of ops, by their products and bytes
 *     build.c            graph_apply: any forward op, by its row
 *     autodiff.c         the tape on which gradient rules write
 *
 * A new op is: its kind in graph.h, with what goes in and out; its row here; a row in plan/ops.c; a
 * reference in tests/ref_graph.c; a line of msched-job(5), OPS. tests/unit/test_op_rows builds a
 * graph around every row and names what a row lacks. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "libworker/graph/graph.h"

struct tape; /* tape.h */

struct op_row {
    enum op_kind kind;
    const char *name; /* "conv2d" */
    int n_in, n_out;
    int n_optional; /* the last of n_in that an op may be without */
    /* Forward ops: what each input must be, a letter each: v a value or the data, d the data, p a
     * parameter, s a state, i integer labels, f float targets. NULL: a backward op, which gradients
     * make. */
    const char *wants;
    unsigned differentiable; /* inputs that a gradient can flow into: a bit each */
    int is_loss;             /* its output may be what is minimised */
    const char *alpha;       /* what users call the op's alpha; NULL: it has none */
    /* Shape rule of forward ops: op has kind, inputs of the right roles, window, epsilon and
     * alpha; fills the shape of output 0, or MS_E_INVALID by graph_fail_op. */
    int (*infer)(const struct graph *graph, const struct op *op, struct shape *ret,
                 struct ms_err *err);
    /* Appends the outputs beside output 0; NULL: there are none. */
    int (*outputs)(struct graph *graph, int op, struct ms_err *err);
    /* Gradient rule of forward ops: appends the backward ops of op, which is graph op `index` and
     * whose output has the gradient dy (-1: a loss, whose gradient is 1). */
    int (*gradient)(struct tape *tape, int index, const struct op *op, int dy);
    int is_view; /* output 0 is input 0 in another shape: the same bytes */
    /* Products that a run sums up, an addition each; graph_no_products: what counts is the memory
     * that it touches. Reals, for there may be more than an int64_t holds. */
    double (*products)(const struct graph *graph, const struct op *op);
    const char *page; /* what msched-job(5) says it is; OP_NOT_FOR_USERS: nothing */
};

/* Plans and messages name the op; nobody writes it. */
#define OP_NOT_FOR_USERS ""

const struct op_row *op_row(enum op_kind kind);
static inline int op_is_backward(const struct op_row *row)
{
    return row->wants == NULL;
}

/* Of a recurrent op: values that it wants of its input for each one that it makes, 1 to 4; 0: it is
 * none. */
int64_t op_gates(enum op_kind kind);

/* How OP_SCALE's factor is repeated over x: along samples, and along its dimensions of 1. */
enum scale_of { SCALE_NOT, SCALE_CHANNELS, SCALE_VALUES, SCALE_ALL };
enum scale_of graph_scale_of(const struct shape *x, const struct shape *gamma);

/* Appends a forward op: kind, in[], window, groups, first, size, of_pixels, is_causal, is_reversed,
 * epsilon, rate, of, smoothing, class_weights, ignored, alpha and beta count, and n_in where the
 * row has optional inputs; 0: without them. Returns its output 0, or MS_E_INVALID with the op, its
 * inputs' names and shapes; a negative input is passed through. */
int graph_apply(struct graph *graph, const struct op *wanted, struct ms_err *err);

#endif
