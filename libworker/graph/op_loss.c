/* op_loss.c - losses: a scalar of predictions and labels, and its gradient */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

#include <math.h>

static int infer_softmax_ce(const struct graph *graph, const struct op *op, struct shape *ret,
                            struct ms_err *err)
{
    if (!(op->smoothing >= 0 && op->smoothing < 1)) {
        return graph_fail_op(graph, op, err, "label smoothing %g is not from 0 to less than 1",
                             op->smoothing);
    }
    struct shape each = graph->tensors[op->in[0]]->shape; /* that has a label */
    const int is_known = each.n_dims == 2 || shape_is_sequence(&each);
    if (is_known && op->class_weights != NULL && op->n_class_weights != each.dim[each.n_dims - 1]) {
        return graph_fail_op(graph, op, err, "%lld class weights for %lld classes",
                             (long long)op->n_class_weights, (long long)each.dim[each.n_dims - 1]);
    }
    const struct tensor *labels = graph->tensors[op->in[1]];
    const int is_soft = labels->dtype == MS_F32 && each.n_dims == 2;
    each.n_dims -= !is_soft;
    if (!is_known || (labels->dtype == MS_F32) != is_soft || !shape_equal(&each, &labels->shape)) {
        return graph_fail_op(graph, op, err,
                             "logits (n, k) want labels (n), or (n, k) that are floats, and (n, "
                             "tokens, k) want (n, tokens)");
    }
    *ret = (struct shape){GRAPH_SCALAR_DIMS, {0}};
    return MS_OK;
}

static int gradient_softmax_ce(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)dy;
    return tape_simple(tape, OP_SOFTMAX_CE_BWD, index, op->in, 0);
}

static int infer_target(const struct graph *graph, const struct op *op, struct shape *ret,
                        struct ms_err *err)
{
    if (op->kind == OP_HUBER && !(op->alpha > 0 && isfinite(op->alpha))) {
        return graph_fail_op(graph, op, err, "delta %g is no number above 0", op->alpha);
    }
    const struct shape *rows = &graph->tensors[op->in[0]]->shape;
    if (rows->n_dims != 2 || !shape_equal(rows, &graph->tensors[op->in[1]]->shape)) {
        return graph_fail_op(graph, op, err, "the output (n, k) wants a target of its shape");
    }
    *ret = (struct shape){GRAPH_SCALAR_DIMS, {0}};
    return MS_OK;
}

static int gradient_target(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)dy;
    return tape_simple(tape, OP_TARGET_BWD, index, op->in, 0);
}

#define TARGET_LOSS(op_kind, op_name, factor, text)                                                \
    {                                                                                              \
        .kind = (op_kind), .name = (op_name), .n_in = 2, .n_out = 1, .wants = "vf",                \
        .differentiable = 1, .is_loss = 1, .alpha = (factor), .infer = infer_target,               \
        .gradient = gradient_target, .products = graph_no_products, .page = (text),                \
    }

static const struct op_row rows[] = {
    {.kind = OP_SOFTMAX_CE,
     .name = "softmax_ce",
     .n_in = 2,
     .n_out = 1,
     .wants = "vl",
     .differentiable = 1,
     .is_loss = 1,
     .infer = infer_softmax_ce,
     .gradient = gradient_softmax_ce,
     .products = graph_no_products,
     .page = "Cross entropy of the softmax, mean over the batch, or over all its tokens, by the "
             "weights of their classes."},
    TARGET_LOSS(OP_MSE, "mse", NULL, "Mean of squared differences."),
    TARGET_LOSS(OP_L1, "l1", NULL, "Mean of distances."),
    TARGET_LOSS(OP_HUBER, "huber", "delta",
                "Mean of halves of squared differences, of distances where they are large."),
    TARGET_LOSS(OP_BCE, "bce", NULL, "Binary cross entropy of logits, mean over all of them."),
    {.kind = OP_SOFTMAX_CE_BWD,
     .name = "softmax_ce_bwd",
     .n_in = 2,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_TARGET_BWD,
     .name = "target_bwd",
     .n_in = 2,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_loss = {rows, MS_ARRAY_SIZE(rows)};

int graph_softmax_ce(struct graph *graph, int logits, int labels, struct ms_err *err)
{
    const struct op op = {.kind = OP_SOFTMAX_CE, .in = {logits, labels}};
    return graph_apply(graph, &op, err);
}

int graph_target_loss(struct graph *graph, enum op_kind kind, int y, int target, double delta,
                      struct ms_err *err)
{
    const struct op op = {.kind = kind, .in = {y, target}, .alpha = delta};
    return graph_apply(graph, &op, err);
}

int graph_mse(struct graph *graph, int y, int target, struct ms_err *err)
{
    return graph_target_loss(graph, OP_MSE, y, target, 0, err);
}
