/* op_elementwise.c - element by element: ReLU, sums, and another shape for the same elements */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

static int infer_relu(const struct graph *graph, const struct op *op, struct shape *ret,
                      struct ms_err *err)
{
    (void)err;
    *ret = graph->tensors[op->in[0]]->shape;
    return MS_OK;
}

static int gradient_relu(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->out[0], dy};
    return tape_simple(tape, OP_RELU_BWD, index, in, 0);
}

static int infer_dropout(const struct graph *graph, const struct op *op, struct shape *ret,
                         struct ms_err *err)
{
    if (!(op->rate >= 0 && op->rate < 1)) {
        return graph_fail_op(graph, op, err, "the rate %g is not from 0 to less than 1", op->rate);
    }
    if (op->of == DROP_CHANNELS && graph->tensors[op->in[0]]->shape.n_dims != 4) {
        return graph_fail_op(graph, op, err, "only images (n, c, h, w) have channels to drop");
    }
    return infer_relu(graph, op, ret, err);
}

static int gradient_dropout(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_DROPOUT_BWD, index, &dy, 0);
}

static int infer_add(const struct graph *graph, const struct op *op, struct shape *ret,
                     struct ms_err *err)
{
    const struct shape *a = &graph->tensors[op->in[0]]->shape;
    if (!shape_equal(a, &graph->tensors[op->in[1]]->shape)) {
        return graph_fail_op(graph, op, err, "the shapes differ");
    }
    *ret = *a;
    return MS_OK;
}

/* Both inputs read the same tensor: no copy. */
static int gradient_add(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)index;
    int rc = MS_OK;
    for (int slot = 0; slot < 2 && rc >= 0; slot++) {
        if (tape_wants(tape, op, slot)) {
            rc = tape_give(tape, op->in[slot], dy);
        }
    }
    return rc;
}

static int infer_flatten(const struct graph *graph, const struct op *op, struct shape *ret,
                         struct ms_err *err)
{
    const struct shape *images = &graph->tensors[op->in[0]]->shape;
    if (images->n_dims < 2) {
        return graph_fail_op(graph, op, err, "the input needs two dimensions or more");
    }
    *ret = (struct shape){2, {images->dim[0], shape_count(images) / images->dim[0]}};
    return MS_OK;
}

static int gradient_flatten(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_FLATTEN_BWD, index, &dy, 0);
}

static const struct op_row rows[] = {
    {.kind = OP_RELU,
     .name = "relu",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_relu,
     .gradient = gradient_relu,
     .products = graph_no_products,
     .page = "Negative values become 0."},
    {.kind = OP_DROPOUT,
     .name = "dropout",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_dropout,
     .gradient = gradient_dropout,
     .products = graph_no_products,
     .page = "Some values become 0 at random, the others larger; in evaluation nothing happens."},
    {.kind = OP_ADD,
     .name = "add",
     .n_in = 2,
     .n_out = 1,
     .wants = "vv",
     .differentiable = 3,
     .infer = infer_add,
     .gradient = gradient_add,
     .products = graph_no_products,
     .page = "Sum of two values of one shape."},
    {.kind = OP_FLATTEN,
     .name = "flatten",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_flatten,
     .gradient = gradient_flatten,
     .is_view = 1,
     .products = graph_no_products,
     .page = "An image becomes a row."},
    {.kind = OP_RELU_BWD,
     .name = "relu_bwd",
     .n_in = 2,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_DROPOUT_BWD,
     .name = "dropout_bwd",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_FLATTEN_BWD,
     .name = "flatten_bwd",
     .n_in = 1,
     .n_out = 1,
     .is_view = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_SUM,
     .name = "sum",
     .n_in = 2,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_elementwise = {rows, MS_ARRAY_SIZE(rows)};

int graph_relu(struct graph *graph, int x, struct ms_err *err)
{
    const struct op op = {.kind = OP_RELU, .in = {x}};
    return graph_apply(graph, &op, err);
}

int graph_add(struct graph *graph, int a, int b, struct ms_err *err)
{
    const struct op op = {.kind = OP_ADD, .in = {a, b}};
    return graph_apply(graph, &op, err);
}

int graph_flatten(struct graph *graph, int x, struct ms_err *err)
{
    const struct op op = {.kind = OP_FLATTEN, .in = {x}};
    return graph_apply(graph, &op, err);
}
