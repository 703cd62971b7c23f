/* op_conv.c - convolution and its gradients */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

static int infer_conv2d(const struct graph *graph, const struct op *op, struct shape *ret,
                        struct ms_err *err)
{
    const struct op_window *window = &op->window;
    const struct shape *w = &graph->tensors[op->in[1]]->shape;
    int rc = graph_window_shape(graph, op, ret, err);
    if (rc < 0) {
        return rc;
    }
    const int of_pixels = window->kernel_h == 1 && window->kernel_w == 1;
    if (w->n_dims != 4 && !(w->n_dims == 2 && of_pixels)) {
        return graph_fail_op(graph, op, err, "the weight must be (out, in, kh, kw)%s",
                             of_pixels ? " or (out, in)" : "");
    }
    const int64_t groups = op->groups > 0 ? op->groups : 1;
    if (ret->dim[1] % groups != 0 || w->dim[1] != ret->dim[1] / groups) {
        return graph_fail_op(
            graph, op, err, "the images have %lld channels and the weight reads %lld%s",
            (long long)ret->dim[1], (long long)w->dim[1], groups > 1 ? " in each group" : "");
    }
    if (w->dim[0] % groups != 0) {
        return graph_fail_op(graph, op, err, "%lld channels are not to be had from %lld groups",
                             (long long)w->dim[0], (long long)groups);
    }
    if (w->n_dims == 4 && (w->dim[2] != window->kernel_h || w->dim[3] != window->kernel_w)) {
        return graph_fail_op(graph, op, err, "the window is %lldx%lld, not the weight's",
                             (long long)window->kernel_h, (long long)window->kernel_w);
    }
    ret->dim[1] = w->dim[0];
    return op->n_in < 3 ? MS_OK : graph_check_bias(graph, op, w->dim[0], err);
}

static int gradient_conv2d(struct tape *tape, int index, const struct op *op, int dy)
{
    const int for_weights[] = {op->in[0], dy};
    const int for_data[] = {dy, op->in[1]};
    int back = tape_append(tape, OP_CONV2D_BWD_WEIGHTS, index, for_weights);
    int rc = back;
    for (int slot = 1; slot < op->n_in && rc >= 0; slot++) {
        rc = tape_output(tape, back, slot - 1, slot);
    }
    return rc < 0 ? rc : tape_simple(tape, OP_CONV2D_BWD_DATA, index, for_data, 0);
}

static const struct op_row rows[] = {
    {.kind = OP_CONV2D,
     .name = "conv2d",
     .n_in = 3,
     .n_out = 1,
     .n_optional = 1,
     .wants = "vpp",
     .differentiable = 7,
     .infer = infer_conv2d,
     .gradient = gradient_conv2d,
     .products = graph_products_forward,
     .page = "Two-dimensional convolution, perhaps in groups, with holes, or plus a bias."},
    {.kind = OP_CONV2D_BWD_DATA,
     .name = "conv2d_bwd_data",
     .n_in = 2,
     .n_out = 1,
     .products = graph_products_of_data,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_CONV2D_BWD_WEIGHTS,
     .name = "conv2d_bwd_weights",
     .n_in = 2,
     .n_out = 2,
     .products = graph_products_of_weights,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_conv = {rows, MS_ARRAY_SIZE(rows)};

int graph_conv2d(struct graph *graph, int x, int weight, const struct op_window *window,
                 struct ms_err *err)
{
    const struct op op = {.kind = OP_CONV2D, .in = {x, weight}, .window = *window};
    return graph_apply(graph, &op, err);
}
