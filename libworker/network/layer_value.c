/* layer_value.c - the ops of layers that take values of any shape: dense ones, activations, sums,
 * products, parts */
#include "libworker/network/layer.h"

#include <assert.h>
#include <string.h>

/* Of the channels of each pixel it is a convolution whose weight is a matrix. */
int build_dense(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    const struct shape *of = build_shape(b, x); /* rows, or the tokens of sequences */
    const int of_pixels = layer->over == OVER_CHANNELS && of->n_dims == 4;
    int rc = of_pixels || shape_is_sequence(of) ? MS_OK : build_want_dims(b, layer, at, x, 2);
    if (rc < 0) {
        return rc;
    }
    const int64_t in = of->dim[of_pixels ? 1 : of->n_dims - 1];
    const int64_t out = layer->out != 0 ? layer->out : b->input->classes;
    const struct shape shape = {2, {out, in}};
    const struct fans fans = {in, out};
    struct op op = {.kind = of_pixels ? OP_CONV2D : OP_DENSE, .n_in = 2, .in = {x}};
    op.window = of_pixels ? graph_window_valid(1, 1) : op.window;
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    build_bias(b, layer, &op, out, fans);
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

/* Of rows, where a sample is one of all its tokens. */
int build_slice_of(struct building *b, const struct layer *layer, const struct tree_node *at, int x,
                   int64_t first, int64_t size)
{
    const struct op op = {.kind = OP_SLICE, .in = {x}, .first = first, .size = size};
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_slice(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    return build_slice_of(b, layer, at, x, layer->begin, layer->size);
}

int build_shuffle(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    const struct op op = {.kind = OP_SHUFFLE, .in = {x}, .groups = layer->groups};
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_relu(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    return build_made(b, layer, at, graph_relu(b->graph, x, b->err));
}

int build_softmax(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    const struct op op = {.kind = OP_SOFTMAX, .in = {x}};
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_dropout(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    const struct op op = {
        .kind = OP_DROPOUT, .in = {x}, .rate = layer->rate, .of = (enum drop_of)layer->of};
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

/* The op of the layer's name. */
int build_activation(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    enum op_kind kind = OP_RELU6;
    while (strcmp(op_row(kind)->name, b->kind->name) != 0) {
        kind++;
        assert(kind <= OP_TANH); /* only activations are built by this */
    }
    return build_made(b, layer, at, graph_activation(b->graph, kind, x, layer->alpha, b->err));
}

int build_gelu(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    const enum op_kind kind = layer->approximate == APPROXIMATE_TANH ? OP_GELU_TANH : OP_GELU;
    return build_made(b, layer, at, graph_activation(b->graph, kind, x, 0, b->err));
}

int build_flatten(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    return build_made(b, layer, at, graph_flatten(b->graph, x, b->err));
}

/* The first two, then each of the others. */
int build_add(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    for (int i = 1; i < layer->n_in; i++) {
        x = graph_add(b->graph, x, layer->in[i], b->err);
    }
    return build_made(b, layer, at, x);
}

/* More values, or as many as an image. */
static int is_larger(const struct shape *a, const struct shape *b)
{
    const int64_t x = shape_count(a);
    const int64_t y = shape_count(b);
    return x > y || (x == y && a->n_dims > b->n_dims);
}

/* The product of all: images come first, what is smaller is their gates. */
int build_mul(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    int first = 0;
    for (int i = 1; i < layer->n_in; i++) {
        const int is = is_larger(build_shape(b, layer->in[i]), build_shape(b, layer->in[first]));
        first = is ? i : first;
    }
    x = layer->in[first];
    for (int i = 0; i < layer->n_in && x >= 0; i++) {
        const int by = layer->in[i];
        const int is_same = shape_equal(build_shape(b, x), build_shape(b, by));
        const struct op op = {.kind = is_same ? OP_MUL : OP_GATE, .in = {x, by}};
        x = i == first ? x : graph_apply(b->graph, &op, b->err);
    }
    return build_made(b, layer, at, x);
}

static int linear(struct building *b, int x, double factor, double offset)
{
    const struct op op = {.kind = OP_LINEAR, .in = {x}, .alpha = factor, .beta = offset};
    return graph_apply(b->graph, &op, b->err);
}

int build_linear(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    return build_made(b, layer, at, linear(b, x, layer->alpha, layer->offset));
}

/* The first, less each of the others. */
int build_sub(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    for (int i = 1; i < layer->n_in; i++) {
        x = graph_add(b->graph, x, linear(b, layer->in[i], -1, 0), b->err);
    }
    return build_made(b, layer, at, x);
}

/* relu6(x + 3) / 6 */
int build_hard_sigmoid(struct building *b, const struct layer *layer, const struct tree_node *at,
                       int x)
{
    x = graph_activation(b->graph, OP_RELU6, linear(b, x, 1, 3), 0, b->err);
    return build_made(b, layer, at, linear(b, x, 1.0 / 6, 0));
}
