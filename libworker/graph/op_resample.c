/* op_resample.c - images of another size: zeros around them, and pixels between theirs */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

static int check_images(const struct graph *graph, const struct op *op, struct ms_err *err)
{
    return graph->tensors[op->in[0]]->shape.n_dims == 4
               ? MS_OK
               : graph_fail_op(graph, op, err, "the input must be images (n, c, h, w)");
}

/* ---- zeros around ---- */

static int infer_pad(const struct graph *graph, const struct op *op, struct shape *ret,
                     struct ms_err *err)
{
    const struct op_window *w = &op->window;
    const int64_t pads[4] = {w->pad_top, w->pad_bottom, w->pad_left, w->pad_right};
    int rc = check_images(graph, op, err);
    if (rc < 0) {
        return rc;
    }
    *ret = graph->tensors[op->in[0]]->shape;
    for (int i = 0; i < 4; i++) {
        if (pads[i] < 0 || pads[i] > GRAPH_ELEMENTS_MAX) {
            return graph_fail_op(graph, op, err, "padding must be at least 0");
        }
        ret->dim[2 + i / 2] += pads[i];
    }
    return MS_OK;
}

static int gradient_pad(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_PAD_BWD, index, &dy, 0);
}

/* ---- pixels between ---- */

static int infer_upsample(const struct graph *graph, const struct op *op, struct shape *ret,
                          struct ms_err *err)
{
    const int64_t factors[2] = {op->window.stride_h, op->window.stride_w};
    int rc = check_images(graph, op, err);
    if (rc < 0) {
        return rc;
    }
    *ret = graph->tensors[op->in[0]]->shape;
    for (int i = 0; i < 2; i++) {
        if (factors[i] < 1 || factors[i] > GRAPH_ELEMENTS_MAX / ret->dim[2 + i]) {
            return graph_fail_op(graph, op, err, "images cannot become %lld times as large",
                                 (long long)factors[i]);
        }
        ret->dim[2 + i] *= factors[i];
    }
    return MS_OK;
}

static int gradient_upsample(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_UPSAMPLE_BWD, index, &dy, 0);
}

static const struct op_row rows[] = {
    {.kind = OP_PAD,
     .name = "pad",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_pad,
     .gradient = gradient_pad,
     .products = graph_no_products,
     .page = "Zeros around images."},
    {.kind = OP_UPSAMPLE,
     .name = "upsample",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_upsample,
     .gradient = gradient_upsample,
     .products = graph_no_products,
     .page = "Images become larger, by the nearest pixel or linearly between pixels."},
    {.kind = OP_PAD_BWD,
     .name = "pad_bwd",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_UPSAMPLE_BWD,
     .name = "upsample_bwd",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_resample = {rows, MS_ARRAY_SIZE(rows)};
