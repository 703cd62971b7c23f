/* window.c - windows of convolution and pooling: padding, and the shape of what they make */
#include "libworker/graph/graph_impl.h"

/* Of a transposed convolution: a product of two of them, and of one with a side, is no overflow. */
#define WINDOW_MAX ((int64_t)1 << 20)

struct op_window graph_window_valid(int64_t kernel, int64_t stride)
{
    return (struct op_window){
        .kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride};
}

/* Pixels from the first tap to the last. */
static int64_t reach(int64_t kernel, int64_t gap)
{
    return (kernel - 1) * (gap + 1) + 1;
}

static void pad_same(int64_t size, int64_t kernel, int64_t stride, int64_t *before, int64_t *after)
{
    int64_t total = ((size + stride - 1) / stride - 1) * stride + kernel - size;
    total = total > 0 ? total : 0;
    *before = total / 2;
    *after = total - total / 2;
}

struct op_window graph_window_padded(const struct graph *graph, int x,
                                     const struct op_window *unpadded)
{
    struct op_window window = *unpadded;
    /* the op that uses the window reports what is wrong with x or the stride */
    if (x >= 0 && x < graph->n_tensors && graph->tensors[x]->shape.n_dims == 4 &&
        window.stride_h > 0 && window.stride_w > 0) {
        const int64_t *dim = graph->tensors[x]->shape.dim;
        pad_same(dim[2], reach(window.kernel_h, window.gap_h), window.stride_h, &window.pad_top,
                 &window.pad_bottom);
        pad_same(dim[3], reach(window.kernel_w, window.gap_w), window.stride_w, &window.pad_left,
                 &window.pad_right);
    }
    return window;
}

struct op_window graph_window_same(const struct graph *graph, int x, int64_t kernel, int64_t stride)
{
    const struct op_window window = graph_window_valid(kernel, stride);
    return graph_window_padded(graph, x, &window);
}

/* One axis: size of the output or why there is none. */
static const char *window_axis(int64_t size, int64_t taps, int64_t gap, int64_t stride,
                               int64_t before, int64_t after, int64_t *ret_size)
{
    if (taps < 1 || stride < 1 || gap < 0) {
        return "kernel, stride and dilation must be at least 1";
    }
    if (gap > 0 && taps > GRAPH_ELEMENTS_MAX / (gap + 1)) {
        return "the kernel is larger than the padded image";
    }
    const int64_t kernel = reach(taps, gap);
    if (before < 0 || after < 0 || before >= kernel || after >= kernel) {
        return "padding must be at least 0 and less than the kernel";
    }
    if (kernel > size + before + after) {
        return "the kernel is larger than the padded image";
    }
    *ret_size = (size + before + after - kernel) / stride + 1;
    return NULL;
}

int graph_window_shape(const struct graph *graph, const struct op *op, struct shape *ret,
                       struct ms_err *err)
{
    const struct op_window *w = &op->window;
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    struct shape shape = {4, {x->dim[0], x->dim[1]}};
    if (x->n_dims != 4) {
        return graph_fail_op(graph, op, err, "the input must be images (n, c, h, w)");
    }
    const char *why = window_axis(x->dim[2], w->kernel_h, w->gap_h, w->stride_h, w->pad_top,
                                  w->pad_bottom, &shape.dim[2]);
    if (why == NULL) {
        why = window_axis(x->dim[3], w->kernel_w, w->gap_w, w->stride_w, w->pad_left, w->pad_right,
                          &shape.dim[3]);
    }
    if (why != NULL) {
        return graph_fail_op(
            graph, op, err,
            "%s: window %lldx%lld, stride %lldx%lld, padding top %lld left %lld bottom "
            "%lld right %lld",
            why, (long long)w->kernel_h, (long long)w->kernel_w, (long long)w->stride_h,
            (long long)w->stride_w, (long long)w->pad_top, (long long)w->pad_left,
            (long long)w->pad_bottom, (long long)w->pad_right);
    }
    *ret = shape;
    return MS_OK;
}

/* As many pixels as a window needs to stand `size` times. NULL, or why there are none. */
static const char *unwindow_axis(int64_t size, int64_t taps, int64_t gap, int64_t stride,
                                 int64_t padding, int64_t more, int64_t *ret_size)
{
    if (taps < 1 || stride < 1 || gap < 0) {
        return "kernel, stride and dilation must be at least 1";
    }
    if (taps > WINDOW_MAX || gap > WINDOW_MAX || stride > WINDOW_MAX ||
        size > GRAPH_ELEMENTS_MAX / WINDOW_MAX) {
        return "the result is too large";
    }
    const int64_t kernel = reach(taps, gap);
    if (padding < 0 || padding >= kernel) {
        return "padding must be at least 0 and less than the kernel";
    }
    if (more < 0 || more >= stride) {
        return "output padding must be at least 0 and less than the stride";
    }
    *ret_size = (size - 1) * stride + kernel - 2 * padding + more;
    return *ret_size > 0 ? NULL : "padding takes away all of the result";
}

int graph_unwindow_shape(const struct graph *graph, const struct op *op, struct shape *ret,
                         struct ms_err *err)
{
    const struct op_window *w = &op->window;
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    struct shape shape = {4, {x->dim[0], x->dim[1]}};
    if (x->n_dims != 4) {
        return graph_fail_op(graph, op, err, "the input must be images (n, c, h, w)");
    }
    if (w->pad_top != w->pad_bottom || w->pad_left != w->pad_right) {
        return graph_fail_op(graph, op, err, "padding must be the same on both sides");
    }
    const char *why = unwindow_axis(x->dim[2], w->kernel_h, w->gap_h, w->stride_h, w->pad_top,
                                    w->more_h, &shape.dim[2]);
    if (why == NULL) {
        why = unwindow_axis(x->dim[3], w->kernel_w, w->gap_w, w->stride_w, w->pad_left, w->more_w,
                            &shape.dim[3]);
    }
    if (why != NULL) {
        return graph_fail_op(graph, op, err,
                             "%s: window %lldx%lld, stride %lldx%lld, padding %lldx%lld, output "
                             "padding %lldx%lld",
                             why, (long long)w->kernel_h, (long long)w->kernel_w,
                             (long long)w->stride_h, (long long)w->stride_w, (long long)w->pad_top,
                             (long long)w->pad_left, (long long)w->more_h, (long long)w->more_w);
    }
    *ret = shape;
    return MS_OK;
}
