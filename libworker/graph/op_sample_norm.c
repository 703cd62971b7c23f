/* op_sample_norm.c - layer and group normalisation and their gradient: of each sample by itself */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

/* gamma and beta, where they are there, have this shape. */
static int check_affine(const struct graph *graph, const struct op *op, const struct shape *want,
                        struct ms_err *err)
{
    for (int i = 1; i < op->n_in; i++) {
        const struct tensor *tensor = graph->tensors[op->in[i]];
        char text[96];
        if (!shape_equal(&tensor->shape, want)) {
            return graph_fail_op(graph, op, err, "%s must be %s", tensor->name,
                                 shape_format(want, text, sizeof(text)));
        }
    }
    return graph_check_epsilon(graph, op, err);
}

/* One value is its own mean: nothing would be left of it. */
static int check_count(const struct graph *graph, const struct op *op, int64_t count,
                       const char *what, struct ms_err *err)
{
    return count > 1 ? MS_OK
                     : graph_fail_op(graph, op, err,
                                     "%s has one value, of which normalisation makes 0", what);
}

static int infer_layer_norm(const struct graph *graph, const struct op *op, struct shape *ret,
                            struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    if (x->n_dims < 2 || x->n_dims > 4 || (x->n_dims == 2 && op->of_pixels)) {
        return graph_fail_op(graph, op, err,
                             "the input must be images (n, c, h, w)%s sequences (n, tokens, c)%s",
                             op->of_pixels ? " or" : ",", op->of_pixels ? "" : " or rows (n, k)");
    }
    struct shape sample = {.n_dims = op->of_pixels ? 1 : x->n_dims - 1};
    const int first = op->of_pixels && shape_is_sequence(x) ? 2 : 1;
    int64_t count = 1;
    for (int d = 0; d < sample.n_dims; d++) {
        sample.dim[d] = x->dim[first + d];
        count *= sample.dim[d];
    }
    *ret = *x;
    int rc = check_count(graph, op, count, op->of_pixels ? "a pixel or token" : "a sample", err);
    return rc < 0 ? rc : check_affine(graph, op, &sample, err);
}

static int infer_group_norm(const struct graph *graph, const struct op *op, struct shape *ret,
                            struct ms_err *err)
{
    const struct shape *x = &graph->tensors[op->in[0]]->shape;
    const int64_t groups = op->groups > 0 ? op->groups : 1;
    if (x->n_dims != 2 && x->n_dims != 4) {
        return graph_fail_op(graph, op, err,
                             "the input must be images (n, c, h, w) or rows (n, c)");
    }
    if (x->dim[1] % groups != 0) {
        return graph_fail_op(graph, op, err, "%lld channels are no multiple of %lld groups",
                             (long long)x->dim[1], (long long)groups);
    }
    const struct shape channels = {1, {x->dim[1]}};
    *ret = *x;
    int rc = check_count(graph, op, shape_count(x) / x->dim[0] / groups, "a group", err);
    return rc < 0 ? rc : check_affine(graph, op, &channels, err);
}

static int gradient_norm(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->in[0], dy, op->in[1]};
    const int n_in = op->n_in > 1 ? 3 : 2;
    int wanted = 0;
    for (int slot = 0; slot < op->n_in; slot++) {
        wanted |= tape_wants(tape, op, slot);
    }
    int back = wanted ? tape_append_with(tape, OP_NORM_BWD, index, n_in, in) : MS_OK;
    int rc = back;
    for (int slot = 0; wanted && slot < op->n_in && rc >= 0; slot++) {
        rc = tape_output(tape, back, slot, slot);
    }
    return rc;
}

static const struct op_row rows[] = {
    {.kind = OP_LAYER_NORM,
     .name = "layer_norm",
     .n_in = 3,
     .n_out = 1,
     .n_optional = 2,
     .wants = "vpp",
     .differentiable = 7,
     .infer = infer_layer_norm,
     .gradient = gradient_norm,
     .products = graph_no_products,
     .page = "Normalisation of each sample, pixel or token, perhaps with gamma and beta."},
    {.kind = OP_GROUP_NORM,
     .name = "group_norm",
     .n_in = 3,
     .n_out = 1,
     .n_optional = 2,
     .wants = "vpp",
     .differentiable = 7,
     .infer = infer_group_norm,
     .gradient = gradient_norm,
     .products = graph_no_products,
     .page = "Normalisation of groups of channels in each sample, perhaps with gamma and beta."},
    {.kind = OP_NORM_BWD,
     .name = "norm_bwd",
     .n_in = 3,
     .n_out = 3,
     .n_optional = 1,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_sample_norm = {rows, MS_ARRAY_SIZE(rows)};
