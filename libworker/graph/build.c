/* build.c - forward ops: checks roles and shapes, infers the shape of what an op makes */
#include "libworker/graph/graph_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What each input of a forward op may be: v a value or the data, p a parameter, s a state,
 * i integer labels, f float targets. */
static const char *const op_wants[OP_KINDS] = {
    [OP_CONV2D] = "vp",     [OP_BATCH_NORM] = "vppss", [OP_RELU] = "v",    [OP_ADD] = "vv",
    [OP_MAX_POOL] = "v",    [OP_AVG_POOL] = "v",       [OP_FLATTEN] = "v", [OP_DENSE] = "vpp",
    [OP_SOFTMAX_CE] = "vi", [OP_MSE] = "vf",
};

static const char *role_name(char want)
{
    switch (want) {
    case 'p':
        return "a parameter";
    case 's':
        return "a moving state";
    case 'i':
        return "an integer label";
    case 'f':
        return "a float target";
    default:
        return "the data or the output of an op";
    }
}

static int role_fits(const struct tensor *tensor, char want)
{
    switch (want) {
    case 'p':
        return tensor->role == TENSOR_PARAM;
    case 's':
        return tensor->role == TENSOR_STATE;
    case 'i':
        return tensor->role == TENSOR_LABEL && tensor->dtype == MS_I32;
    case 'f':
        return tensor->role == TENSOR_LABEL && tensor->dtype == MS_F32;
    default:
        return tensor->role == TENSOR_DATA || tensor->role == TENSOR_VALUE;
    }
}

/* "graph g: conv2d: <reason>; inputs: image (2, 3, 8, 8), conv1.weight (4, 2, 3, 3)": the reason
 * first, so that a text that is cut loses the less important part. */
static int fail_op(const struct graph *graph, enum op_kind kind, const int *in, struct ms_err *err,
                   const char *fmt, ...) MS_PRINTF(5, 6);

static int fail_op(const struct graph *graph, enum op_kind kind, const int *in, struct ms_err *err,
                   const char *fmt, ...)
{
    char reason[MS_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);

    char inputs[MS_ERR_TEXT_MAX] = "";
    size_t used = 0;
    for (int i = 0; i < op_traits(kind)->n_in && used < sizeof(inputs); i++) {
        const struct tensor *tensor = graph->tensors[in[i]];
        char shape[96];
        int n = snprintf(inputs + used, sizeof(inputs) - used, "%s%s %s", i > 0 ? ", " : "",
                         tensor->name, shape_format(&tensor->shape, shape, sizeof(shape)));
        used += n > 0 ? (size_t)n : 0;
    }
    return ms_fail(err, MS_E_INVALID, "graph %s: %s: %s; inputs: %s", graph->name,
                   op_traits(kind)->name, reason, inputs);
}

static int check_inputs(const struct graph *graph, enum op_kind kind, const int *in,
                        struct ms_err *err)
{
    int n_in = op_traits(kind)->n_in;
    for (int i = 0; i < n_in; i++) {
        if (in[i] < 0) {
            return in[i]; /* err holds the text of the call that failed */
        }
        if (in[i] >= graph->n_tensors) {
            return ms_fail(err, MS_E_INVALID, "graph %s: %s: input %d is tensor %d of %d",
                           graph->name, op_traits(kind)->name, i, in[i], graph->n_tensors);
        }
    }
    int rc = graph_check_open(graph, op_traits(kind)->name, err);
    for (int i = 0; i < n_in && rc == MS_OK; i++) {
        if (!role_fits(graph->tensors[in[i]], op_wants[kind][i])) {
            rc = fail_op(graph, kind, in, err, "input %d (%s) must be %s", i,
                         graph->tensors[in[i]]->name, role_name(op_wants[kind][i]));
        }
    }
    return rc;
}

/* Name of what an op makes: "head.conv1" from head.conv1.weight, else "relu_12". */
static void value_name(const struct graph *graph, enum op_kind kind, const int *in, char *buf,
                       size_t size)
{
    const char *owner =
        op_wants[kind][0] == 'v' && op_wants[kind][1] == 'p' ? graph->tensors[in[1]]->name : "";
    const char *dot = strrchr(owner, '.');
    if (dot != NULL && dot > owner) {
        snprintf(buf, size, "%.*s", (int)(dot - owner), owner);
    } else {
        snprintf(buf, size, "%s_%d", op_traits(kind)->name, graph->n_ops);
    }
}

/* Appends the op and its first output; returns that tensor. */
static int emit(struct graph *graph, enum op_kind kind, const int *in, const struct shape *shape,
                const struct op_window *window, struct ms_err *err)
{
    char name[GRAPH_NAME_MAX];
    value_name(graph, kind, in, name, sizeof(name));
    if (graph_shape_bad(shape)) {
        return fail_op(graph, kind, in, err, "the result has more than 2^40 elements");
    }
    int n_tensors = graph->n_tensors;
    int n_ops = graph->n_ops;
    int op = graph_append_op(graph, kind, in, err);
    if (op < 0) {
        return op;
    }
    if (window != NULL) {
        graph->ops[op]->window = *window;
    }
    int out = graph_append_output(graph, op, 0, name, TENSOR_VALUE, shape, err);
    if (out < 0) {
        graph_truncate(graph, n_tensors, n_ops, graph->n_gradients);
    }
    return out;
}

/* ---- windows --------------------------------------------------------------------------------- */

struct op_window graph_window_valid(int64_t kernel, int64_t stride)
{
    return (struct op_window){
        .kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride};
}

static void pad_same(int64_t size, int64_t kernel, int64_t stride, int64_t *before, int64_t *after)
{
    int64_t total = ((size + stride - 1) / stride - 1) * stride + kernel - size;
    total = total > 0 ? total : 0;
    *before = total / 2;
    *after = total - total / 2;
}

struct op_window graph_window_same(const struct graph *graph, int x, int64_t kernel, int64_t stride)
{
    struct op_window window = graph_window_valid(kernel, stride);
    /* the op that uses the window reports what is wrong with x or the stride */
    if (x >= 0 && x < graph->n_tensors && graph->tensors[x]->shape.n_dims == 4 && stride > 0) {
        const int64_t *dim = graph->tensors[x]->shape.dim;
        pad_same(dim[2], kernel, stride, &window.pad_top, &window.pad_bottom);
        pad_same(dim[3], kernel, stride, &window.pad_left, &window.pad_right);
    }
    return window;
}

/* One axis: size of the output or why there is none. */
static const char *window_axis(int64_t size, int64_t kernel, int64_t stride, int64_t before,
                               int64_t after, int64_t *ret_size)
{
    if (kernel < 1 || stride < 1) {
        return "kernel and stride must be at least 1";
    }
    if (before < 0 || after < 0 || before >= kernel || after >= kernel) {
        return "padding must be at least 0 and less than the kernel";
    }
    if (kernel > size + before + after) {
        return "the kernel is larger than the padded image";
    }
    *ret_size = (size + before + after - kernel) / stride + 1;
    return NULL;
}

/* Height and width of the output of a windowed op on x into shape->dim[2], [3]. */
static int window_shape(const struct graph *graph, enum op_kind kind, const int *in,
                        const struct op_window *w, struct shape *shape, struct ms_err *err)
{
    const struct shape *x = &graph->tensors[in[0]]->shape;
    if (x->n_dims != 4) {
        return fail_op(graph, kind, in, err, "the input must be images (n, c, h, w)");
    }
    const char *why =
        window_axis(x->dim[2], w->kernel_h, w->stride_h, w->pad_top, w->pad_bottom, &shape->dim[2]);
    if (why == NULL) {
        why = window_axis(x->dim[3], w->kernel_w, w->stride_w, w->pad_left, w->pad_right,
                          &shape->dim[3]);
    }
    if (why != NULL) {
        return fail_op(graph, kind, in, err,
                       "%s: window %lldx%lld, stride %lldx%lld, padding top %lld left %lld bottom "
                       "%lld right %lld",
                       why, (long long)w->kernel_h, (long long)w->kernel_w, (long long)w->stride_h,
                       (long long)w->stride_w, (long long)w->pad_top, (long long)w->pad_left,
                       (long long)w->pad_bottom, (long long)w->pad_right);
    }
    shape->n_dims = 4;
    shape->dim[0] = x->dim[0];
    shape->dim[1] = x->dim[1];
    return MS_OK;
}

/* ---- ops ------------------------------------------------------------------------------------- */

int graph_conv2d(struct graph *graph, int x, int weight, const struct op_window *window,
                 struct ms_err *err)
{
    const int in[] = {x, weight};
    struct shape shape;
    int rc = check_inputs(graph, OP_CONV2D, in, err);
    if (rc < 0 || (rc = window_shape(graph, OP_CONV2D, in, window, &shape, err)) < 0) {
        return rc;
    }
    const struct shape *w = &graph->tensors[weight]->shape;
    if (w->n_dims != 4) {
        return fail_op(graph, OP_CONV2D, in, err, "the weight must be (out, in, kh, kw)");
    }
    if (w->dim[1] != shape.dim[1]) {
        return fail_op(graph, OP_CONV2D, in, err,
                       "the images have %lld channels and the weight reads %lld",
                       (long long)shape.dim[1], (long long)w->dim[1]);
    }
    if (w->dim[2] != window->kernel_h || w->dim[3] != window->kernel_w) {
        return fail_op(graph, OP_CONV2D, in, err, "the window is %lldx%lld, not the weight's",
                       (long long)window->kernel_h, (long long)window->kernel_w);
    }
    shape.dim[1] = w->dim[0];
    return emit(graph, OP_CONV2D, in, &shape, window, err);
}

/* Batch mean (slot 1) or variance (slot 2) of the batch norm that made y. */
static int emit_stat(struct graph *graph, int y, int slot, int state, struct ms_err *err)
{
    const struct tensor *out = graph->tensors[y];
    struct shape shape = {1, {out->shape.dim[1]}};
    char name[2 * GRAPH_NAME_MAX];
    snprintf(name, sizeof(name), "%s.%s", out->name, slot == 1 ? "batch_mean" : "batch_variance");
    int index = graph_append_output(graph, out->producer, slot, name, TENSOR_STAT, &shape, err);
    if (index >= 0) {
        struct tensor *stat = graph->tensors[index];
        stat->of = state;
        stat->is_variance = slot == 2;
        stat->stat_count = out->shape.dim[0] * out->shape.dim[2] * out->shape.dim[3];
    }
    return index;
}

int graph_batch_norm(struct graph *graph, int x, int gamma, int beta, int moving_mean,
                     int moving_variance, double epsilon, struct ms_err *err)
{
    const int in[] = {x, gamma, beta, moving_mean, moving_variance};
    int rc = check_inputs(graph, OP_BATCH_NORM, in, err);
    if (rc < 0) {
        return rc;
    }
    const struct shape *images = &graph->tensors[x]->shape;
    if (images->n_dims != 4) {
        return fail_op(graph, OP_BATCH_NORM, in, err, "the input must be images (n, c, h, w)");
    }
    for (int i = 1; i < 5; i++) {
        const struct tensor *vector = graph->tensors[in[i]];
        if (vector->shape.n_dims != 1 || vector->shape.dim[0] != images->dim[1]) {
            return fail_op(graph, OP_BATCH_NORM, in, err,
                           "the images have %lld channels, so %s must be (%lld)",
                           (long long)images->dim[1], vector->name, (long long)images->dim[1]);
        }
    }
    if (!(epsilon > 0) || !isfinite(epsilon)) {
        return fail_op(graph, OP_BATCH_NORM, in, err, "epsilon %g must be above 0", epsilon);
    }
    int n_tensors = graph->n_tensors;
    int n_ops = graph->n_ops;
    int y = emit(graph, OP_BATCH_NORM, in, images, NULL, err);
    if (y < 0) {
        return y;
    }
    graph->ops[graph->tensors[y]->producer]->epsilon = epsilon;
    if ((rc = emit_stat(graph, y, 1, moving_mean, err)) < 0 ||
        (rc = emit_stat(graph, y, 2, moving_variance, err)) < 0) {
        graph_truncate(graph, n_tensors, n_ops, graph->n_gradients);
        return rc;
    }
    return y;
}

int graph_relu(struct graph *graph, int x, struct ms_err *err)
{
    const int in[] = {x};
    int rc = check_inputs(graph, OP_RELU, in, err);
    if (rc < 0) {
        return rc;
    }
    return emit(graph, OP_RELU, in, &graph->tensors[x]->shape, NULL, err);
}

int graph_add(struct graph *graph, int a, int b, struct ms_err *err)
{
    const int in[] = {a, b};
    int rc = check_inputs(graph, OP_ADD, in, err);
    if (rc < 0) {
        return rc;
    }
    if (!shape_equal(&graph->tensors[a]->shape, &graph->tensors[b]->shape)) {
        return fail_op(graph, OP_ADD, in, err, "the shapes differ");
    }
    return emit(graph, OP_ADD, in, &graph->tensors[a]->shape, NULL, err);
}

static int pool(struct graph *graph, enum op_kind kind, int x, const struct op_window *window,
                struct ms_err *err)
{
    const int in[] = {x};
    struct shape shape;
    int rc = check_inputs(graph, kind, in, err);
    if (rc < 0 || (rc = window_shape(graph, kind, in, window, &shape, err)) < 0) {
        return rc;
    }
    return emit(graph, kind, in, &shape, window, err);
}

int graph_max_pool(struct graph *graph, int x, const struct op_window *window, struct ms_err *err)
{
    return pool(graph, OP_MAX_POOL, x, window, err);
}

int graph_avg_pool(struct graph *graph, int x, const struct op_window *window, struct ms_err *err)
{
    return pool(graph, OP_AVG_POOL, x, window, err);
}

int graph_flatten(struct graph *graph, int x, struct ms_err *err)
{
    const int in[] = {x};
    int rc = check_inputs(graph, OP_FLATTEN, in, err);
    if (rc < 0) {
        return rc;
    }
    const struct shape *images = &graph->tensors[x]->shape;
    if (images->n_dims < 2) {
        return fail_op(graph, OP_FLATTEN, in, err, "the input needs two dimensions or more");
    }
    struct shape shape = {2, {images->dim[0], shape_count(images) / images->dim[0]}};
    return emit(graph, OP_FLATTEN, in, &shape, NULL, err);
}

int graph_dense(struct graph *graph, int x, int weight, int bias, struct ms_err *err)
{
    const int in[] = {x, weight, bias};
    int rc = check_inputs(graph, OP_DENSE, in, err);
    if (rc < 0) {
        return rc;
    }
    const struct shape *rows = &graph->tensors[x]->shape;
    const struct shape *w = &graph->tensors[weight]->shape;
    const struct shape *b = &graph->tensors[bias]->shape;
    if (rows->n_dims != 2 || w->n_dims != 2 || w->dim[1] != rows->dim[1]) {
        return fail_op(graph, OP_DENSE, in, err,
                       "the input (n, i) wants a weight (o, i); flatten images first");
    }
    if (b->n_dims != 1 || b->dim[0] != w->dim[0]) {
        return fail_op(graph, OP_DENSE, in, err, "the bias must be (%lld)", (long long)w->dim[0]);
    }
    struct shape shape = {2, {rows->dim[0], w->dim[0]}};
    return emit(graph, OP_DENSE, in, &shape, NULL, err);
}

int graph_softmax_ce(struct graph *graph, int logits, int labels, struct ms_err *err)
{
    const int in[] = {logits, labels};
    int rc = check_inputs(graph, OP_SOFTMAX_CE, in, err);
    if (rc < 0) {
        return rc;
    }
    const struct shape *rows = &graph->tensors[logits]->shape;
    const struct shape *classes = &graph->tensors[labels]->shape;
    if (rows->n_dims != 2 || classes->n_dims != 1 || classes->dim[0] != rows->dim[0]) {
        return fail_op(graph, OP_SOFTMAX_CE, in, err, "logits (n, k) want labels (n)");
    }
    struct shape shape = {GRAPH_SCALAR_DIMS, {0}};
    return emit(graph, OP_SOFTMAX_CE, in, &shape, NULL, err);
}

int graph_mse(struct graph *graph, int y, int target, struct ms_err *err)
{
    const int in[] = {y, target};
    int rc = check_inputs(graph, OP_MSE, in, err);
    if (rc < 0) {
        return rc;
    }
    const struct shape *rows = &graph->tensors[y]->shape;
    if (rows->n_dims != 2 || !shape_equal(rows, &graph->tensors[target]->shape)) {
        return fail_op(graph, OP_MSE, in, err, "the output (n, k) wants a target of its shape");
    }
    struct shape shape = {GRAPH_SCALAR_DIMS, {0}};
    return emit(graph, OP_MSE, in, &shape, NULL, err);
}
