/* ops.c - the rows of all ops: which fuse, how each is lowered, what it costs */
#include "libworker/plan/ops.h"

#include "proto/macros.h"

#include <assert.h>

/* Of y (or its gradient) every element is a sum over a row of w: two operations a product. */
static double products(const struct graph *graph, int y, int w)
{
    const struct shape *weight = &graph_tensor(graph, w)->shape;
    double count = (double)shape_count(&graph_tensor(graph, y)->shape);
    return 2 * count * (double)shape_count(weight) / (double)weight->dim[0];
}

static double products_forward(const struct graph *graph, const struct op *op)
{
    return products(graph, op->out[0], op->in[1]);
}

static double products_of_data(const struct graph *graph, const struct op *op)
{
    return products(graph, op->in[0], op->in[1]);
}

static double products_of_weights(const struct graph *graph, const struct op *op)
{
    return products(graph, op->in[1], op->out[0]);
}

static double few(const struct graph *graph, const struct op *op)
{
    (void)graph;
    (void)op;
    return 0;
}

static const struct plan_op rows[] = {
    {OP_CONV2D, fuse_relu, lower_conv, products_forward},
    {OP_BATCH_NORM, fuse_batch_norm, lower_batch_norm, few},
    {OP_RELU, NULL, lower_elementwise, few},
    {OP_DROPOUT, NULL, lower_dropout, few},
    {OP_ADD, fuse_relu, lower_elementwise, few},
    {OP_MAX_POOL, NULL, lower_pool, few},
    {OP_AVG_POOL, NULL, lower_pool, few},
    {OP_CONCAT, NULL, lower_concat, few},
    {OP_FLATTEN, NULL, lower_same, few},
    {OP_DENSE, fuse_relu, lower_dense, products_forward},
    {OP_SOFTMAX_CE, NULL, lower_loss, few},
    {OP_MSE, NULL, lower_loss, few},
    {OP_CONV2D_BWD_DATA, NULL, lower_conv_bwd_data, products_of_data},
    {OP_CONV2D_BWD_WEIGHTS, NULL, lower_conv_bwd_weights, products_of_weights},
    {OP_BATCH_NORM_BWD, NULL, lower_batch_norm_bwd, few},
    {OP_RELU_BWD, fuse_mask, lower_relu_bwd, few},
    {OP_DROPOUT_BWD, NULL, lower_dropout, few},
    {OP_MAX_POOL_BWD, NULL, lower_pool_bwd, few},
    {OP_AVG_POOL_BWD, NULL, lower_pool_bwd, few},
    {OP_CONCAT_BWD, NULL, lower_concat_bwd, few},
    {OP_FLATTEN_BWD, NULL, lower_same, few},
    {OP_DENSE_BWD_DATA, NULL, lower_dense_bwd_data, products_of_data},
    {OP_DENSE_BWD_WEIGHTS, NULL, lower_dense_bwd_weights, products_of_weights},
    {OP_SOFTMAX_CE_BWD, fuse_loss, NULL, few},
    {OP_MSE_BWD, fuse_loss, NULL, few},
    {OP_SUM, NULL, lower_sum, few},
};

const struct plan_op *plan_op(enum op_kind kind)
{
    size_t i = 0;
    while (i < MS_ARRAY_SIZE(rows) && rows[i].kind != kind) {
        i++;
    }
    assert(i < MS_ARRAY_SIZE(rows)); /* every kind has a row */
    return &rows[i];
}
