/* op_pool.c - pooling and its gradients */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

static int gradient_max_pool(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->in[0], op->out[0], dy};
    return tape_simple(tape, OP_MAX_POOL_BWD, index, in, 0);
}

static int gradient_avg_pool(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_AVG_POOL_BWD, index, &dy, 0);
}

static const struct op_row rows[] = {
    {.kind = OP_MAX_POOL,
     .name = "max_pool",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = graph_window_shape,
     .gradient = gradient_max_pool,
     .products = graph_no_products,
     .page = "Largest value of each window."},
    {.kind = OP_AVG_POOL,
     .name = "avg_pool",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = graph_window_shape,
     .gradient = gradient_avg_pool,
     .products = graph_no_products,
     .page = "Mean of each window, without its padding."},
    {.kind = OP_MAX_POOL_BWD,
     .name = "max_pool_bwd",
     .n_in = 3,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_AVG_POOL_BWD,
     .name = "avg_pool_bwd",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_pool = {rows, MS_ARRAY_SIZE(rows)};

int graph_max_pool(struct graph *graph, int x, const struct op_window *window, struct ms_err *err)
{
    const struct op op = {.kind = OP_MAX_POOL, .in = {x}, .window = *window};
    return graph_apply(graph, &op, err);
}

int graph_avg_pool(struct graph *graph, int x, const struct op_window *window, struct ms_err *err)
{
    const struct op op = {.kind = OP_AVG_POOL, .in = {x}, .window = *window};
    return graph_apply(graph, &op, err);
}
