/* op_dense.c - the dense layer and its gradients */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

static int infer_dense(const struct graph *graph, const struct op *op, struct shape *ret,
                       struct ms_err *err)
{
    const struct shape *rows = &graph->tensors[op->in[0]]->shape;
    const struct shape *w = &graph->tensors[op->in[1]]->shape;
    const int last = rows->n_dims - 1; /* of a row, or of each token */
    if ((last != 1 && last != 2) || w->n_dims != 2 || w->dim[1] != rows->dim[last]) {
        return graph_fail_op(graph, op, err,
                             "the input (n, i) or (n, tokens, i) wants a weight (o, i); flatten "
                             "images first");
    }
    *ret = *rows;
    ret->dim[last] = w->dim[0];
    return op->n_in < 3 ? MS_OK : graph_check_bias(graph, op, w->dim[0], err);
}

static int gradient_dense(struct tape *tape, int index, const struct op *op, int dy)
{
    const int for_weights[] = {op->in[0], dy};
    const int for_data[] = {dy, op->in[1]};
    int back = tape_append(tape, OP_DENSE_BWD_WEIGHTS, index, for_weights);
    int rc = back;
    for (int slot = 1; slot < op->n_in && rc >= 0; slot++) {
        rc = tape_output(tape, back, slot - 1, slot);
    }
    return rc < 0 ? rc : tape_simple(tape, OP_DENSE_BWD_DATA, index, for_data, 0);
}

static const struct op_row rows[] = {
    {.kind = OP_DENSE,
     .name = "dense",
     .n_in = 3,
     .n_out = 1,
     .n_optional = 1,
     .wants = "vpp",
     .differentiable = 7,
     .infer = infer_dense,
     .gradient = gradient_dense,
     .products = graph_products_forward,
     .page = "Rows, or tokens, times a weight, perhaps plus a bias."},
    {.kind = OP_DENSE_BWD_DATA,
     .name = "dense_bwd_data",
     .n_in = 2,
     .n_out = 1,
     .products = graph_products_of_data,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_DENSE_BWD_WEIGHTS,
     .name = "dense_bwd_weights",
     .n_in = 2,
     .n_out = 2,
     .products = graph_products_of_weights,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_dense = {rows, MS_ARRAY_SIZE(rows)};

int graph_dense(struct graph *graph, int x, int weight, int bias, struct ms_err *err)
{
    const struct op op = {.kind = OP_DENSE, .n_in = 3, .in = {x, weight, bias}};
    return graph_apply(graph, &op, err);
}
