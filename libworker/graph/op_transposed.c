/* op_transposed.c - transposed convolution, a bias of channels, and their gradients */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

static int infer_transposed(const struct graph *graph, const struct op *op, struct shape *ret,
                            struct ms_err *err)
{
    const struct op_window *window = &op->window;
    const struct shape *w = &graph->tensors[op->in[1]]->shape;
    const int64_t groups = op->groups > 0 ? op->groups : 1;
    int rc = graph_unwindow_shape(graph, op, ret, err);
    if (rc < 0) {
        return rc;
    }
    if (w->n_dims != 4 || w->dim[0] != ret->dim[1]) {
        return graph_fail_op(graph, op, err, "the weight must be (%lld, out, kh, kw)",
                             (long long)ret->dim[1]);
    }
    if (ret->dim[1] % groups != 0) {
        return graph_fail_op(graph, op, err, "%lld channels are no multiple of %lld groups",
                             (long long)ret->dim[1], (long long)groups);
    }
    if (w->dim[2] != window->kernel_h || w->dim[3] != window->kernel_w) {
        return graph_fail_op(graph, op, err, "the window is %lldx%lld, not the weight's",
                             (long long)window->kernel_h, (long long)window->kernel_w);
    }
    if (w->dim[1] > GRAPH_ELEMENTS_MAX / groups) {
        return graph_fail_op(graph, op, err, "the result is too large");
    }
    ret->dim[1] = w->dim[1] * groups;
    return MS_OK;
}

static int gradient_transposed(struct tape *tape, int index, const struct op *op, int dy)
{
    const int for_weights[] = {op->in[0], dy};
    const int for_data[] = {dy, op->in[1]};
    int rc = tape_simple(tape, OP_CONV_TRANSPOSE2D_BWD_WEIGHTS, index, for_weights, 1);
    return rc < 0 ? rc : tape_simple(tape, OP_CONV_TRANSPOSE2D_BWD_DATA, index, for_data, 0);
}

static int infer_bias(const struct graph *graph, const struct op *op, struct shape *ret,
                      struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const struct shape *b = &graph->tensors[op->in[1]]->shape;
    if (x->n_dims < 2 || x->n_dims > 4) {
        return graph_fail_op(graph, op, err,
                             "the input must be images (n, c, h, w), sequences (n, tokens, c) or "
                             "rows (n, c)");
    }
    if (shape_is_sequence(x)) {
        const struct shape places = {2, {x->dim[1], x->dim[2]}};
        const struct shape of_sample = {3, {1, x->dim[1], x->dim[2]}};
        *ret = *x;
        return shape_equal(b, &places) || shape_equal(b, &of_sample)
                   ? MS_OK
                   : graph_fail_op(graph, op, err,
                                   "the bias of a sequence must be (%lld, %lld), or (1, "
                                   "%lld, %lld)",
                                   (long long)x->dim[1], (long long)x->dim[2], (long long)x->dim[1],
                                   (long long)x->dim[2]);
    }
    if (b->n_dims != 1 || b->dim[0] != x->dim[1]) {
        return graph_fail_op(graph, op, err, "the bias must be (%lld)", (long long)x->dim[1]);
    }
    *ret = *x;
    return MS_OK;
}

/* What is added to has the gradient of the sum: no copy. */
static int gradient_bias(struct tape *tape, int index, const struct op *op, int dy)
{
    int rc = tape_simple(tape, OP_BIAS_BWD, index, &dy, 1);
    return rc < 0 || !tape_wants(tape, op, 0) ? rc : tape_give(tape, op->in[0], dy);
}

static const struct op_row rows[] = {
    {.kind = OP_CONV_TRANSPOSE2D,
     .name = "conv_transpose2d",
     .n_in = 2,
     .n_out = 1,
     .wants = "vp",
     .differentiable = 3,
     .infer = infer_transposed,
     .gradient = gradient_transposed,
     .products = graph_products_of_data,
     .page = "Transposed two-dimensional convolution, perhaps in groups or with holes."},
    {.kind = OP_BIAS,
     .name = "bias",
     .n_in = 2,
     .n_out = 1,
     .wants = "vp",
     .differentiable = 3,
     .infer = infer_bias,
     .gradient = gradient_bias,
     .products = graph_no_products,
     .page = "A value of each channel, or of each place of a sequence, is added."},
    {.kind = OP_CONV_TRANSPOSE2D_BWD_DATA,
     .name = "conv_transpose2d_bwd_data",
     .n_in = 2,
     .n_out = 1,
     .products = graph_products_forward,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_CONV_TRANSPOSE2D_BWD_WEIGHTS,
     .name = "conv_transpose2d_bwd_weights",
     .n_in = 2,
     .n_out = 1,
     .products = graph_products_of_transposed,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_BIAS_BWD,
     .name = "bias_bwd",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_transposed = {rows, MS_ARRAY_SIZE(rows)};
