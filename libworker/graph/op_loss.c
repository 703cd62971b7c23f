/* op_loss.c - losses: a scalar of predictions and labels, and its gradient */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

static int infer_softmax_ce(const struct graph *graph, const struct op *op, struct shape *ret,
                            struct ms_err *err)
{
    if (!(op->smoothing >= 0 && op->smoothing < 1)) {
        return graph_fail_op(graph, op, err, "label smoothing %g is not from 0 to less than 1",
                             op->smoothing);
    }
    const struct shape *rows = &graph->tensors[op->in[0]]->shape;
    const struct shape *classes = &graph->tensors[op->in[1]]->shape;
    if (rows->n_dims != 2 || classes->n_dims != 1 || classes->dim[0] != rows->dim[0]) {
        return graph_fail_op(graph, op, err, "logits (n, k) want labels (n)");
    }
    *ret = (struct shape){GRAPH_SCALAR_DIMS, {0}};
    return MS_OK;
}

static int gradient_softmax_ce(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)dy;
    return tape_simple(tape, OP_SOFTMAX_CE_BWD, index, op->in, 0);
}

static int infer_mse(const struct graph *graph, const struct op *op, struct shape *ret,
                     struct ms_err *err)
{
    const struct shape *rows = &graph->tensors[op->in[0]]->shape;
    if (rows->n_dims != 2 || !shape_equal(rows, &graph->tensors[op->in[1]]->shape)) {
        return graph_fail_op(graph, op, err, "the output (n, k) wants a target of its shape");
    }
    *ret = (struct shape){GRAPH_SCALAR_DIMS, {0}};
    return MS_OK;
}

static int gradient_mse(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)dy;
    return tape_simple(tape, OP_MSE_BWD, index, op->in, 0);
}

static const struct op_row rows[] = {
    {.kind = OP_SOFTMAX_CE,
     .name = "softmax_ce",
     .n_in = 2,
     .n_out = 1,
     .wants = "vi",
     .differentiable = 1,
     .is_loss = 1,
     .infer = infer_softmax_ce,
     .gradient = gradient_softmax_ce,
     .products = graph_no_products,
     .page = "Cross entropy of the softmax, mean over the batch."},
    {.kind = OP_MSE,
     .name = "mse",
     .n_in = 2,
     .n_out = 1,
     .wants = "vf",
     .differentiable = 1,
     .is_loss = 1,
     .infer = infer_mse,
     .gradient = gradient_mse,
     .products = graph_no_products,
     .page = "Mean of squared differences."},
    {.kind = OP_SOFTMAX_CE_BWD,
     .name = "softmax_ce_bwd",
     .n_in = 2,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_MSE_BWD,
     .name = "mse_bwd",
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

int graph_mse(struct graph *graph, int y, int target, struct ms_err *err)
{
    const struct op op = {.kind = OP_MSE, .in = {y, target}};
    return graph_apply(graph, &op, err);
}
