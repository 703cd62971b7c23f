/* op_channels.c - channels that are taken or moved, and a token before others */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

/* Which dimension the channels are; -1: there are none. */
static int axis_of(const struct shape *x)
{
    return x->n_dims < 2 ? -1 : shape_is_sequence(x) ? 2 : 1;
}

static int fail_dims(const struct graph *graph, const struct op *op, struct ms_err *err)
{
    return graph_fail_op(graph, op, err,
                         "the input must be images (n, c, h, w), sequences (n, tokens, c) or rows "
                         "(n, c)");
}

/* ---- slice ---- */

static int infer_slice(const struct graph *graph, const struct op *op, struct shape *ret,
                       struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const int axis = axis_of(x);
    if (axis < 0) {
        return fail_dims(graph, op, err);
    }
    const int64_t channels = x->dim[axis];
    const int is_first = op->first >= 0 && op->first < channels;
    const int64_t size = op->size != 0 || !is_first ? op->size : channels - op->first;
    if (!is_first || size < 1 || size > channels - op->first) {
        return graph_fail_op(graph, op, err, "channels %lld to %lld of %lld are not there",
                             (long long)op->first, (long long)(op->first + size - 1),
                             (long long)channels);
    }
    *ret = *x;
    ret->dim[axis] = size;
    return MS_OK;
}

static int gradient_slice(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_SLICE_BWD, index, &dy, 0);
}

/* ---- shuffle ---- */

static int infer_shuffle(const struct graph *graph, const struct op *op, struct shape *ret,
                         struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const int axis = axis_of(x);
    const int64_t groups = op->groups > 0 ? op->groups : 1;
    if (axis < 0) {
        return fail_dims(graph, op, err);
    }
    if (x->dim[axis] % groups != 0) {
        return graph_fail_op(graph, op, err, "%lld channels are no multiple of %lld groups",
                             (long long)x->dim[axis], (long long)groups);
    }
    *ret = *x;
    return MS_OK;
}

static int gradient_shuffle(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    return tape_simple(tape, OP_SHUFFLE_BWD, index, &dy, 0);
}

/* ---- class token ---- */

static int infer_class_token(const struct graph *graph, const struct op *op, struct shape *ret,
                             struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const struct shape *w = &graph->tensors[op->in[1]]->shape;
    if (!shape_is_sequence(x)) {
        return graph_fail_op(graph, op, err, "the input must be sequences (n, tokens, c)");
    }
    if (w->n_dims < 1 || w->n_dims > 3 || w->dim[w->n_dims - 1] != x->dim[2] ||
        shape_count(w) != x->dim[2]) {
        return graph_fail_op(graph, op, err,
                             "the token must be (%lld), with dimensions of 1 "
                             "before it at most",
                             (long long)x->dim[2]);
    }
    *ret = *x;
    ret->dim[1] += 1;
    return MS_OK;
}

static int gradient_class_token(struct tape *tape, int index, const struct op *op, int dy)
{
    (void)op;
    int rc = tape_simple(tape, OP_CLASS_TOKEN_BWD_WEIGHTS, index, &dy, 1);
    return rc < 0 ? rc : tape_simple(tape, OP_CLASS_TOKEN_BWD_DATA, index, &dy, 0);
}

static const struct op_row rows[] = {
    {.kind = OP_SLICE,
     .name = "slice",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_slice,
     .gradient = gradient_slice,
     .products = graph_no_products,
     .page = "Channels of a value, from one to another."},
    {.kind = OP_SHUFFLE,
     .name = "shuffle",
     .n_in = 1,
     .n_out = 1,
     .wants = "v",
     .differentiable = 1,
     .infer = infer_shuffle,
     .gradient = gradient_shuffle,
     .products = graph_no_products,
     .page = "Channels in groups change their places: one of each group, then the next of each."},
    {.kind = OP_CLASS_TOKEN,
     .name = "class_token",
     .n_in = 2,
     .n_out = 1,
     .wants = "vp",
     .differentiable = 3,
     .infer = infer_class_token,
     .gradient = gradient_class_token,
     .products = graph_no_products,
     .page = "A trained token before those of each sample."},
    {.kind = OP_SLICE_BWD,
     .name = "slice_bwd",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_SHUFFLE_BWD,
     .name = "shuffle_bwd",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_CLASS_TOKEN_BWD_DATA,
     .name = "class_token_bwd_data",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
    {.kind = OP_CLASS_TOKEN_BWD_WEIGHTS,
     .name = "class_token_bwd_weights",
     .n_in = 1,
     .n_out = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_channels = {rows, MS_ARRAY_SIZE(rows)};
