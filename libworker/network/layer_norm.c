/* layer_norm.c - the ops of norms, and of learned factors */
#include "libworker/network/layer.h"

#include <string.h>

int build_batch_norm(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    if (rc < 0) {
        return rc;
    }
    const struct shape shape = {1, {build_shape(b, x)->dim[1]}};
    const struct fans fans = {1, 1};
    /* in this order: definition order is the order of files and of the reference's streams */
    int g = build_param(b, layer, "gamma", &shape, build_init(&layer->gamma, fans));
    int beta = g < 0 ? g : build_param(b, layer, "beta", &shape, build_init(&layer->beta, fans));
    int mean = beta < 0 ? beta : build_state(b, layer, "moving_mean", &shape, 0);
    int variance = mean < 0 ? mean : build_state(b, layer, "moving_variance", &shape, 1);
    return build_made(
        b, layer, at,
        graph_batch_norm(b->graph, x, g, beta, mean, variance, layer->epsilon, b->err));
}

/* gamma and beta of this shape, where the layer has them, for an op that reads x. */
static int add_affine(struct building *b, const struct layer *layer, const struct tree_node *at,
                      const struct shape *shape, struct op *op)
{
    const struct fans fans = {1, 1};
    if (layer->gamma.kind == RULE_NONE && layer->beta.kind != RULE_NONE) {
        ms_fail(b->err, MS_E_INVALID, "there is no beta without a gamma; write beta: none, too");
        return build_fail(b, at, layer);
    }
    op->n_in = 1;
    if (layer->gamma.kind != RULE_NONE) {
        op->in[op->n_in++] = build_param(b, layer, "gamma", shape, build_init(&layer->gamma, fans));
    }
    if (layer->beta.kind != RULE_NONE && op->in[1] >= 0) {
        op->in[op->n_in++] = build_param(b, layer, "beta", shape, build_init(&layer->beta, fans));
    }
    return MS_OK;
}

int build_layer_norm(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    const struct shape *of = build_shape(b, x);
    struct op op = {.kind = OP_LAYER_NORM, .in = {x}, .epsilon = layer->epsilon};
    op.of_pixels = layer->over == OVER_CHANNELS && of->n_dims > 2;
    const int first = op.of_pixels && shape_is_sequence(of) ? 2 : 1;
    struct shape shape = {.n_dims = op.of_pixels ? 1 : of->n_dims - 1};
    memcpy(shape.dim, &of->dim[first], (size_t)shape.n_dims * sizeof(shape.dim[0]));
    int rc = add_affine(b, layer, at, &shape, &op);
    return rc < 0 ? rc : build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_groups(struct building *b, const struct layer *layer, const struct tree_node *at,
                        int x, int64_t groups)
{
    const int64_t channels = build_shape(b, x)->dim[1];
    const struct shape shape = {1, {channels}};
    struct op op = {.kind = OP_GROUP_NORM, .in = {x}, .groups = groups, .epsilon = layer->epsilon};
    if (channels % groups != 0) {
        ms_fail(b->err, MS_E_INVALID, "%lld channels are no multiple of %lld groups",
                (long long)channels, (long long)groups);
        return build_fail(b, at, layer);
    }
    int rc = add_affine(b, layer, at, &shape, &op);
    return rc < 0 ? rc : build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_group_norm(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    return build_groups(b, layer, at, x, layer->groups);
}

/* Each channel of each image by itself. */
int build_instance_norm(struct building *b, const struct layer *layer, const struct tree_node *at,
                        int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    return rc < 0 ? rc : build_groups(b, layer, at, x, build_shape(b, x)->dim[1]);
}

int build_scale(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    const struct shape *of = build_shape(b, x);
    const struct fans fans = {1, 1};
    struct shape shape = layer->factor;
    if (shape.n_dims < 0) {
        shape = (struct shape){of->n_dims - 1, {of->dim[1], 1, 1}};
    }
    struct op op = {.kind = OP_SCALE, .in = {x}};
    op.in[1] = build_param(b, layer, "gamma", &shape, build_init(&layer->gamma, fans));
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}
