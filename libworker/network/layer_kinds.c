/* layer_kinds.c - the kinds of layers: the keys of each, and the ops that it is */
#include "libworker/network/layer.h"

#include "libworker/graph/op.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN(member)  offsetof(struct layer, member)
#define OUT_MAX     (1 << 20)
#define KERNEL_MAX  MS_IMAGE_SIDE_MAX
#define REPEATS_MAX 1000
#define ALPHA_MAX   1e6
#define DEPTH_MAX   32

/* ---- parameters ---- */

struct init build_init(const struct rule *rule, struct fans fans)
{
    const double in = (double)fans.in;
    switch (rule->kind) {
    case RULE_ONES:
        return (struct init){INIT_CONSTANT, 1};
    case RULE_FAN_IN:
        return (struct init){INIT_UNIFORM, 1 / sqrt(in)};
    case RULE_HE_NORMAL:
        return (struct init){INIT_NORMAL, sqrt(2.0 / in)};
    case RULE_HE_UNIFORM:
        return (struct init){INIT_UNIFORM, sqrt(6.0 / in)};
    case RULE_XAVIER_NORMAL:
        return (struct init){INIT_NORMAL, sqrt(2.0 / (double)(fans.in + fans.out))};
    case RULE_XAVIER_UNIFORM:
        return (struct init){INIT_UNIFORM, sqrt(6.0 / (double)(fans.in + fans.out))};
    case RULE_CONSTANT:
        return (struct init){INIT_CONSTANT, rule->a};
    case RULE_NORMAL:
        return (struct init){INIT_NORMAL, rule->a};
    case RULE_UNIFORM:
        return (struct init){INIT_UNIFORM, rule->a};
    default:
        return (struct init){INIT_CONSTANT, 0};
    }
}

/* PyTorch's word for a part of a batch norm; else it is the same. */
static const char *torch_name(const char *part)
{
    static const char *const names[][2] = {{"gamma", "weight"},
                                           {"beta", "bias"},
                                           {"moving_mean", "running_mean"},
                                           {"moving_variance", "running_var"}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        part = strcmp(names[i][0], part) == 0 ? names[i][1] : part;
    }
    return part;
}

/* <prefix><layer>.<part>, or what `parameters` says instead of the latter two. A name that would be
 * cut is refused by the graph's check of lengths: the buffer holds more than GRAPH_NAME_MAX. */
static const char *part_name(const struct building *b, const struct layer *layer, const char *part,
                             char buf[4 * GRAPH_NAME_MAX])
{
    const struct tree_node *names = layer->parameters;
    const struct tree_item *own =
        names != NULL && names->kind == TREE_MAP ? tree_find(names, part) : NULL;
    if (own != NULL) {
        snprintf(buf, 4 * GRAPH_NAME_MAX, "%s%s", b->prefix, own->value->text);
    } else {
        snprintf(buf, 4 * GRAPH_NAME_MAX, "%s%s.%s", b->prefix, layer->name,
                 names != NULL && names->kind == TREE_SCALAR ? torch_name(part) : part);
    }
    return buf;
}

int build_param(const struct building *b, const struct layer *layer, const char *part,
                const struct shape *shape, struct init init)
{
    char name[4 * GRAPH_NAME_MAX];
    return graph_param(b->graph, part_name(b, layer, part, name), shape, init, b->err);
}

static int state(const struct building *b, const struct layer *layer, const char *part,
                 const struct shape *shape, double value)
{
    char name[4 * GRAPH_NAME_MAX];
    const struct init init = {INIT_CONSTANT, value};
    return graph_state(b->graph, part_name(b, layer, part, name), shape, init, layer->momentum,
                       b->err);
}

/* ---- what a layer reads ---- */

int build_want_dims(struct building *b, const struct layer *layer, const struct tree_node *at,
                    int x, int n_dims)
{
    char shape[96];
    if (build_shape(b, x)->n_dims == n_dims) {
        return MS_OK;
    }
    shape_format(build_shape(b, x), shape, sizeof(shape));
    ms_fail(b->err, MS_E_INVALID, "it reads %s, and gets %s%s",
            n_dims == 4   ? "images (n, channels, height, width)"
            : n_dims == 3 ? "sequences (n, tokens, channels)"
                          : "rows (n, values)",
            shape, n_dims == 2 ? "; put a flatten or a global_avg_pool before it" : "");
    return build_fail(b, at, layer);
}

int build_made(struct building *b, const struct layer *layer, const struct tree_node *at, int y)
{
    return y < 0 ? build_fail(b, at, layer) : y;
}

/* What a side is padded more at its end for a window over what is left, as in PyTorch: none that
 * would begin behind the image and its first padding. */
static int64_t more_at_end(int64_t size, int64_t padding, int64_t kernel, int64_t stride)
{
    const int64_t free = size + 2 * padding - kernel;
    const int64_t rest = free >= 0 ? free % stride : 0;
    const int64_t begin = (free / stride + 1) * stride; /* of the window, from the first padding */
    return rest > 0 && begin < size + padding ? stride - rest : 0;
}

static struct op_window window_of(const struct building *b, const struct layer *layer, int x)
{
    const int has_stride = layer->stride[0] != 0;
    struct op_window w = {
        .kernel_h = layer->kernel[0],
        .kernel_w = layer->kernel[1],
        .stride_h = has_stride ? layer->stride[0] : layer->kernel[0],
        .stride_w = has_stride ? layer->stride[1] : layer->kernel[1],
        .pad_top = layer->padding.pixels[0],
        .pad_bottom = layer->padding.pixels[0],
        .pad_left = layer->padding.pixels[1],
        .pad_right = layer->padding.pixels[1],
        .gap_h = layer->dilation[0] > 0 ? layer->dilation[0] - 1 : 0, /* pools have none */
        .gap_w = layer->dilation[1] > 0 ? layer->dilation[1] - 1 : 0,
    };
    if (layer->ceil) {
        const int64_t *dim = build_shape(b, x)->dim;
        w.pad_bottom += more_at_end(dim[2], w.pad_top, w.kernel_h, w.stride_h);
        w.pad_right += more_at_end(dim[3], w.pad_left, w.kernel_w, w.stride_w);
    }
    return layer->padding.kind == PADDING_SAME ? graph_window_padded(b->graph, x, &w) : w;
}

/* ---- leaves ---- */

/* Where the layer has one, and its weight is there. */
static void add_bias(const struct building *b, const struct layer *layer, struct op *op,
                     int64_t out, struct fans fans)
{
    const struct shape shape = {1, {out}};
    if (layer->bias.kind != RULE_NONE && op->in[1] >= 0) {
        op->in[op->n_in++] = build_param(b, layer, "bias", &shape, build_init(&layer->bias, fans));
    }
}

static int build_conv2d(struct building *b, const struct layer *layer, const struct tree_node *at,
                        int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    if (rc < 0) {
        return rc;
    }
    const int64_t in = build_shape(b, x)->dim[1];
    const int64_t area = layer->kernel[0] * layer->kernel[1];
    const int64_t out = layer->out != 0 ? layer->out : b->input->classes;
    if (in % layer->groups != 0 || out % layer->groups != 0) {
        ms_fail(b->err, MS_E_INVALID,
                "%lld groups of %lld channels that make %lld: both must be multiples of it",
                (long long)layer->groups, (long long)in, (long long)out);
        return build_fail(b, at, layer);
    }
    const int64_t reads = in / layer->groups; /* channels that an output sums over */
    const struct shape shape = {4, {out, reads, layer->kernel[0], layer->kernel[1]}};
    const struct fans fans = {reads * area, out * area};
    struct op op = {.kind = OP_CONV2D, .n_in = 2, .window = window_of(b, layer, x)};
    op.groups = layer->groups;
    op.in[0] = x;
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    add_bias(b, layer, &op, out, fans);
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

/* fans as PyTorch counts them: of the weight (in, out / groups, h, w), as a convolution's. */
static int build_transposed(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    if (rc < 0) {
        return rc;
    }
    const int64_t in = build_shape(b, x)->dim[1];
    const int64_t area = layer->kernel[0] * layer->kernel[1];
    const int64_t out = layer->out != 0 ? layer->out : b->input->classes;
    if (in % layer->groups != 0 || out % layer->groups != 0) {
        ms_fail(b->err, MS_E_INVALID,
                "%lld groups of %lld channels that make %lld: both must be multiples of it",
                (long long)layer->groups, (long long)in, (long long)out);
        return build_fail(b, at, layer);
    }
    if (layer->padding.kind == PADDING_SAME) {
        ms_fail(b->err, MS_E_INVALID,
                "padding: same is not for a transposed convolution; give numbers: it makes "
                "(size - 1) stride + reach - 2 padding + output_padding");
        return build_fail(b, at, layer);
    }
    const int64_t makes = out / layer->groups;
    const struct shape shape = {4, {in, makes, layer->kernel[0], layer->kernel[1]}};
    const struct shape channels = {1, {out}};
    const struct fans fans = {makes * area, in * area};
    struct op op = {.kind = OP_CONV_TRANSPOSE2D, .in = {x}, .groups = layer->groups};
    op.window = window_of(b, layer, x);
    op.window.more_h = layer->output_padding[0];
    op.window.more_w = layer->output_padding[1];
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    int y = build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
    if (y < 0 || layer->bias.kind == RULE_NONE) {
        return y;
    }
    op = (struct op){.kind = OP_BIAS, .in = {y}};
    op.in[1] = build_param(b, layer, "bias", &channels, build_init(&layer->bias, fans));
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

/* Of the channels of each pixel it is a convolution whose weight is a matrix. */
static int build_dense(struct building *b, const struct layer *layer, const struct tree_node *at,
                       int x)
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
    add_bias(b, layer, &op, out, fans);
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_embedding(struct building *b, const struct layer *layer,
                           const struct tree_node *at, int x)
{
    const int64_t words = layer->words != 0 ? layer->words : b->input->classes;
    const struct shape shape = {2, {words, layer->size}};
    const struct fans fans = {words, layer->size};
    struct op op = {.kind = OP_EMBEDDING, .in = {x}};
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_positional(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    const int64_t *dim = build_shape(b, x)->dim;
    const struct shape of_sample = {3, {1, dim[1], dim[2]}};
    const struct shape places = {2, {dim[1], dim[2]}};
    const struct shape shape = layer->leading > 0 ? of_sample : places;
    const struct fans fans = {dim[1], dim[2]};
    struct op op = {.kind = OP_BIAS, .in = {x}};
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_tokens(struct building *b, const struct layer *layer, const struct tree_node *at,
                        int x)
{
    const struct op op = {.kind = OP_TOKENS, .in = {x}};
    int rc = build_want_dims(b, layer, at, x, 4);
    return rc < 0 ? rc : build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

/* Of rows, where a sample is one of all its tokens. */
static int slice(struct building *b, const struct layer *layer, const struct tree_node *at, int x,
                 int64_t first, int64_t size)
{
    const struct op op = {.kind = OP_SLICE, .in = {x}, .first = first, .size = size};
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_slice(struct building *b, const struct layer *layer, const struct tree_node *at,
                       int x)
{
    return slice(b, layer, at, x, layer->begin, layer->size);
}

static int build_shuffle(struct building *b, const struct layer *layer, const struct tree_node *at,
                         int x)
{
    const struct op op = {.kind = OP_SHUFFLE, .in = {x}, .groups = layer->groups};
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_class_token(struct building *b, const struct layer *layer,
                             const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    const int64_t channels = build_shape(b, x)->dim[2];
    const struct fans fans = {1, channels};
    struct shape shape = {.n_dims = (int)layer->leading + 1, .dim = {1, 1, 1}};
    shape.dim[layer->leading] = channels;
    struct op op = {.kind = OP_CLASS_TOKEN, .in = {x}};
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_token(struct building *b, const struct layer *layer, const struct tree_node *at,
                       int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    const int64_t tokens = build_shape(b, x)->dim[1];
    const int64_t channels = build_shape(b, x)->dim[2];
    if (layer->begin >= tokens) {
        ms_fail(b->err, MS_E_INVALID, "token %lld of %lld: they are counted from 0",
                (long long)layer->begin, (long long)tokens);
        return build_fail(b, at, layer);
    }
    int y = graph_flatten(b->graph, x, b->err);
    return y < 0 ? build_made(b, layer, at, y)
                 : slice(b, layer, at, y, layer->begin * channels, channels);
}

/* A dense layer of tokens; the parts are those of PyTorch's MultiheadAttention. */
static int project(const struct building *b, const struct layer *layer, int x, int64_t out,
                   const struct rule *rule, const char *const parts[2])
{
    const int64_t in = build_shape(b, x)->dim[2];
    const struct shape shape = {2, {out, in}};
    const struct shape values = {1, {out}};
    const struct fans fans = {in, out};
    struct op op = {.kind = OP_DENSE, .n_in = 2, .in = {x}};
    op.in[1] = build_param(b, layer, parts[0], &shape, build_init(rule, fans));
    if (layer->bias.kind != RULE_NONE && op.in[1] >= 0) {
        op.in[op.n_in++] = build_param(b, layer, parts[1], &values, build_init(&layer->bias, fans));
    }
    return graph_apply(b->graph, &op, b->err);
}

static struct op attention_of(const struct layer *layer, int x)
{
    return (struct op){.kind = OP_ATTENTION,
                       .in = {x},
                       .groups = layer->heads,
                       .is_causal = layer->is_causal,
                       .rate = layer->rate};
}

/* Without what makes queries, keys and values, and without what comes behind the heads. */
static int build_dot_product(struct building *b, const struct layer *layer,
                             const struct tree_node *at, int x)
{
    const struct op op = attention_of(layer, x);
    int rc = build_want_dims(b, layer, at, x, 3);
    return rc < 0 ? rc : build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_attention(struct building *b, const struct layer *layer,
                           const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    static const char *const in[] = {"in_proj_weight", "in_proj_bias"};
    static const char *const out[] = {"out_proj.weight", "out_proj.bias"};
    const int64_t channels = build_shape(b, x)->dim[2];
    const struct op op =
        attention_of(layer, project(b, layer, x, 3 * channels, &layer->weight, in));
    int y = graph_apply(b->graph, &op, b->err);
    y = y < 0 ? y : project(b, layer, y, channels, &layer->out_weight, out);
    return build_made(b, layer, at, y);
}

static int build_batch_norm(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
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
    int mean = beta < 0 ? beta : state(b, layer, "moving_mean", &shape, 0);
    int variance = mean < 0 ? mean : state(b, layer, "moving_variance", &shape, 1);
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

static int build_layer_norm(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
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

static int build_group_norm(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
{
    return build_groups(b, layer, at, x, layer->groups);
}

/* Each channel of each image by itself. */
static int build_instance_norm(struct building *b, const struct layer *layer,
                               const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    return rc < 0 ? rc : build_groups(b, layer, at, x, build_shape(b, x)->dim[1]);
}

static int build_relu(struct building *b, const struct layer *layer, const struct tree_node *at,
                      int x)
{
    return build_made(b, layer, at, graph_relu(b->graph, x, b->err));
}

static int build_softmax(struct building *b, const struct layer *layer, const struct tree_node *at,
                         int x)
{
    const struct op op = {.kind = OP_SOFTMAX, .in = {x}};
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_dropout(struct building *b, const struct layer *layer, const struct tree_node *at,
                         int x)
{
    const struct op op = {
        .kind = OP_DROPOUT, .in = {x}, .rate = layer->rate, .of = (enum drop_of)layer->of};
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

/* The op of the layer's name. */
static int build_activation(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
{
    enum op_kind kind = OP_RELU6;
    while (strcmp(op_row(kind)->name, b->kind->name) != 0) {
        kind++;
        assert(kind <= OP_TANH); /* only activations are built by this */
    }
    return build_made(b, layer, at, graph_activation(b->graph, kind, x, layer->alpha, b->err));
}

static int build_gelu(struct building *b, const struct layer *layer, const struct tree_node *at,
                      int x)
{
    const enum op_kind kind = layer->approximate == APPROXIMATE_TANH ? OP_GELU_TANH : OP_GELU;
    return build_made(b, layer, at, graph_activation(b->graph, kind, x, 0, b->err));
}

static int build_flatten(struct building *b, const struct layer *layer, const struct tree_node *at,
                         int x)
{
    return build_made(b, layer, at, graph_flatten(b->graph, x, b->err));
}

/* The first two, then each of the others. */
static int build_add(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
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
static int build_mul(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
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

static int build_linear(struct building *b, const struct layer *layer, const struct tree_node *at,
                        int x)
{
    return build_made(b, layer, at, linear(b, x, layer->alpha, layer->offset));
}

/* The first, less each of the others. */
static int build_sub(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    for (int i = 1; i < layer->n_in; i++) {
        x = graph_add(b->graph, x, linear(b, layer->in[i], -1, 0), b->err);
    }
    return build_made(b, layer, at, x);
}

/* relu6(x + 3) / 6 */
static int build_hard_sigmoid(struct building *b, const struct layer *layer,
                              const struct tree_node *at, int x)
{
    x = graph_activation(b->graph, OP_RELU6, linear(b, x, 1, 3), 0, b->err);
    return build_made(b, layer, at, linear(b, x, 1.0 / 6, 0));
}

static int build_scale(struct building *b, const struct layer *layer, const struct tree_node *at,
                       int x)
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

static int build_max_pool(struct building *b, const struct layer *layer, const struct tree_node *at,
                          int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    const struct op_window window = rc < 0 ? (struct op_window){0} : window_of(b, layer, x);
    return rc < 0 ? rc : build_made(b, layer, at, graph_max_pool(b->graph, x, &window, b->err));
}

static int build_avg_pool(struct building *b, const struct layer *layer, const struct tree_node *at,
                          int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    const struct op_window window = rc < 0 ? (struct op_window){0} : window_of(b, layer, x);
    return rc < 0 ? rc : build_made(b, layer, at, graph_avg_pool(b->graph, x, &window, b->err));
}

/* ---- images of another size ---- */

static int build_pad(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    const int64_t *sides = layer->sides;
    struct op op = {.kind = OP_PAD, .in = {x}};
    int rc = build_want_dims(b, layer, at, x, 4);
    op.window.pad_top = sides[0];
    op.window.pad_bottom = sides[1];
    op.window.pad_left = sides[2];
    op.window.pad_right = sides[3];
    return rc < 0 ? rc : build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_upsample(struct building *b, const struct layer *layer, const struct tree_node *at,
                          int x)
{
    const int is_linear = layer->mode == MODE_LINEAR;
    struct op op = {.kind = OP_UPSAMPLE, .in = {x}};
    int rc = build_want_dims(b, layer, at, x, 4);
    op.window.stride_h = layer->stride[0];
    op.window.stride_w = layer->stride[1];
    op.mode = !is_linear             ? UPSAMPLE_NEAREST
              : layer->is_by_corners ? UPSAMPLE_LINEAR_CORNERS
                                     : UPSAMPLE_LINEAR;
    return rc < 0 ? rc : build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int check_upsample(const struct layer *layer, const struct tree_node *at, const char *place,
                          struct ms_err *err)
{
    return layer->is_by_corners && layer->mode != MODE_LINEAR
               ? tree_fail(at, err, "%s.upsample: align_corners is of `mode: linear`", place)
               : MS_OK;
}

static int build_global_avg_pool(struct building *b, const struct layer *layer,
                                 const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    if (rc < 0) {
        return rc;
    }
    const int64_t *dim = build_shape(b, x)->dim;
    const struct op_window whole = {
        .kernel_h = dim[2], .kernel_w = dim[3], .stride_h = 1, .stride_w = 1};
    int y = graph_avg_pool(b->graph, x, &whole, b->err);
    return build_made(b, layer, at, graph_flatten(b->graph, y, b->err));
}

/* ---- keys ---- */

#define NAME_ROW(what)                                                                             \
    {                                                                                              \
        .key = "name", .type = FIELD_NAME, .flags = FIELD_OPTIONAL | FIELD_ADDED,                  \
        .offset = IN(name), .help = what                                                           \
    }
#define FROM_ROW(type_of, needed, what)                                                            \
    {                                                                                              \
        .key = "from", .type = FIELD_OWN, .own = &(type_of), .flags = needed, .offset = IN(from),  \
        .help = what                                                                               \
    }
#define FROM                                                                                       \
    FROM_ROW(layer_from, FIELD_OPTIONAL | FIELD_ADDED, "what it reads; default: the layer before")
/* of every layer */
#define OWN_NAME                                                                                   \
    NAME_ROW("first part of its parameters' names; default: its kind and a number"), FROM
#define NEST_NAME NAME_ROW("before the names of all layers inside; default: nothing"), FROM
#define BARE_NAME NAME_ROW("what others call it; default: its kind and a number"), FROM
#define OUT_ROW(what)                                                                              \
    {                                                                                              \
        .key = "out", .type = FIELD_OWN, .own = &layer_out, .flags = FIELD_REQUIRED,               \
        .offset = IN(out), .min = 1, .max = OUT_MAX, .help = what                                  \
    }
#define KERNEL_ROW                                                                                 \
    {                                                                                              \
        .key = "kernel", .type = FIELD_SIZE, .flags = FIELD_REQUIRED, .offset = IN(kernel),        \
        .min = 1, .max = KERNEL_MAX, .help = "[height, width] of the window"                       \
    }
#define STRIDE_ROW(least, value, what)                                                             \
    {                                                                                              \
        .key = "stride", .type = FIELD_SIZE, .offset = IN(stride), .min = least,                   \
        .max = KERNEL_MAX, .builtin = value, .help = what                                          \
    }
#define PADDING_ROW                                                                                \
    {                                                                                              \
        .key = "padding", .type = FIELD_OWN, .own = &layer_padding, .offset = IN(padding),         \
        .min = 0, .max = KERNEL_MAX, .builtin = "0", .help = "around the images"                   \
    }
#define RULE_ROW(part, value, what)                                                                \
    {                                                                                              \
        .key = #part, .type = FIELD_OWN, .own = &layer_rule, .offset = IN(part), .min = -1e6,      \
        .max = 1e6, .builtin = value, .help = what                                                 \
    }
#define BIAS_ROW(value)                                                                            \
    {                                                                                              \
        .key = "bias", .type = FIELD_OWN, .own = &layer_rule_or_none, .offset = IN(bias),          \
        .min = -1e6, .max = 1e6, .builtin = value,                                                 \
        .help = "how the bias begins; none: there is none"                                         \
    }
#define ALPHA_ROW(word, value, what)                                                               \
    {                                                                                              \
        .key = (word), .type = FIELD_REAL, .offset = IN(alpha), .min = -ALPHA_MAX,                 \
        .max = ALPHA_MAX, .builtin = (value), .help = (what)                                       \
    }
#define LIST_ROW(part, needed, what)                                                               \
    {                                                                                              \
        .key = #part, .type = FIELD_OWN, .own = &layer_list, .flags = needed, .offset = IN(part),  \
        .help = what                                                                               \
    }

#define PARAMETERS_ROW(of)                                                                         \
    {                                                                                              \
        .key = "parameters", .type = FIELD_OWN, .own = &layer_parameters,                          \
        .flags = FIELD_OPTIONAL | FIELD_ADDED, .offset = IN(parameters), .choices = of,            \
        .help = "what its parameters are called; torch: as PyTorch's module calls them"            \
    }
static const char *const affine_parts[] = {"weight", "bias", NULL};
static const char *const norm_parts[] = {"gamma", "beta", "moving_mean", "moving_variance", NULL};
static const char *const sample_norm_parts[] = {"gamma", "beta", NULL};
#define GROUPS_ROW                                                                                 \
    {                                                                                              \
        .key = "groups", .type = FIELD_INT64, .offset = IN(groups), .min = 1, .max = OUT_MAX,      \
        .builtin = "1", .help = "of channels, each by itself; as many as channels: depthwise"      \
    }
#define DILATION_ROW                                                                               \
    {                                                                                              \
        .key = "dilation", .type = FIELD_SIZE, .offset = IN(dilation), .min = 1,                   \
        .max = KERNEL_MAX, .builtin = "1", .help = "[height, width] from one tap to the next"      \
    }

static const struct field conv2d_rows[] = {
    OWN_NAME,         OUT_ROW("channels that it makes"),
    KERNEL_ROW,       STRIDE_ROW(1, "1", "[height, width] of a step"),
    PADDING_ROW,      RULE_ROW(weight, "fan_in", "how the weight begins"),
    BIAS_ROW("none"), GROUPS_ROW,
    DILATION_ROW,     PARAMETERS_ROW(affine_parts),
};
static const struct field transposed_rows[] = {
    OWN_NAME,
    OUT_ROW("channels that it makes"),
    KERNEL_ROW,
    STRIDE_ROW(1, "1", "[height, width] of a step"),
    PADDING_ROW,
    {.key = "output_padding",
     .type = FIELD_SIZE,
     .offset = IN(output_padding),
     .min = 0,
     .max = KERNEL_MAX,
     .builtin = "0",
     .help = "[height, width] of rows and columns more, less than the stride"},
    RULE_ROW(weight, "fan_in", "how the weight begins"),
    BIAS_ROW("none"),
    GROUPS_ROW,
    DILATION_ROW,
    PARAMETERS_ROW(affine_parts),
};
static const char *const overs[] = {
    [OVER_SAMPLE] = "sample",
    [OVER_CHANNELS] = "channels",
    NULL,
};
#define OVER_ROW(more, what)                                                                       \
    {                                                                                              \
        .key = "over", .type = FIELD_ENUM, .flags = (more), .offset = IN(over), .choices = overs,  \
        .builtin = "sample", .help = (what)                                                        \
    }
static const struct field dense_rows[] = {
    OWN_NAME,
    PARAMETERS_ROW(affine_parts),
    OUT_ROW("values that it makes of a row, or of each token"),
    OVER_ROW(FIELD_ADDED, "sample: all its values, which are a row; channels: those of each pixel"),
    RULE_ROW(weight, "fan_in", "how the weight begins"),
    BIAS_ROW("fan_in"),
};
#define EPSILON_ROW                                                                                \
    {                                                                                              \
        .key = "epsilon", .type = FIELD_REAL, .flags = FIELD_ABOVE, .offset = IN(epsilon),         \
        .min = 0, .max = 1, .builtin = "1e-5", .help = "added to a variance"                       \
    }
#define AFFINE_ROWS(ones, zeros)                                                                   \
    {.key = "gamma",                                                                               \
     .type = FIELD_OWN,                                                                            \
     .own = &layer_rule_or_none,                                                                   \
     .offset = IN(gamma),                                                                          \
     .min = -1e6,                                                                                  \
     .max = 1e6,                                                                                   \
     .builtin = (ones),                                                                            \
     .help = "how the scale begins; none: there is none"},                                         \
    {                                                                                              \
        .key = "beta", .type = FIELD_OWN, .own = &layer_rule_or_none, .offset = IN(beta),          \
        .min = -1e6, .max = 1e6, .builtin = (zeros),                                               \
        .help = "how the shift begins; none: there is none"                                        \
    }

#define RATE_ROW(word, value, what)                                                                \
    {                                                                                              \
        .key = (word), .type = FIELD_REAL, .offset = IN(rate), .min = 0, .max = 0.9999,            \
        .builtin = (value), .help = (what)                                                         \
    }
static const char *const weight_part[] = {"weight", NULL};
static const char *const attention_parts[] = {"in_proj_weight", "in_proj_bias", "out_proj.weight",
                                              "out_proj.bias", NULL};
static const struct field embedding_rows[] = {
    OWN_NAME,
    {.key = "words",
     .type = FIELD_OWN,
     .own = &layer_out,
     .flags = FIELD_REQUIRED,
     .offset = IN(words),
     .min = 1,
     .max = OUT_MAX,
     .help = "that there are: tokens are numbers from 0 to one less"},
    {.key = "size",
     .type = FIELD_INT64,
     .flags = FIELD_REQUIRED,
     .offset = IN(size),
     .min = 1,
     .max = OUT_MAX,
     .help = "channels that a token becomes"},
    RULE_ROW(weight, "{normal: 1}", "how the weight begins"),
    PARAMETERS_ROW(weight_part),
};
#define LEADING_ROW(most)                                                                          \
    {                                                                                              \
        .key = "leading", .type = FIELD_INT64, .flags = FIELD_ADDED, .offset = IN(leading),        \
        .min = 0, .max = (most), .builtin = "0",                                                   \
        .help = "dimensions of 1 that its weight has before its own"                               \
    }
static const struct field positional_rows[] = {
    OWN_NAME,
    RULE_ROW(weight, "{normal: 0.02}", "how the weight begins"),
    LEADING_ROW(1),
    PARAMETERS_ROW(weight_part),
};
static const struct field class_token_rows[] = {
    OWN_NAME,
    RULE_ROW(weight, "zeros", "how the token begins"),
    LEADING_ROW(2),
    PARAMETERS_ROW(weight_part),
};
#define SIDE_ROW(word, i)                                                                          \
    {                                                                                              \
        .key = (word), .type = FIELD_INT64, .offset = IN(sides) + (i) * sizeof(int64_t), .min = 0, \
        .max = KERNEL_MAX, .builtin = "0", .help = "zeros there"                                   \
    }
static const struct field pad_rows[] = {
    BARE_NAME, SIDE_ROW("top", 0), SIDE_ROW("bottom", 1), SIDE_ROW("left", 2), SIDE_ROW("right", 3),
};
static const char *const modes[] = {
    [MODE_NEAREST] = "nearest",
    [MODE_LINEAR] = "linear",
    NULL,
};
static const struct field upsample_rows[] = {
    BARE_NAME,
    {.key = "factor",
     .type = FIELD_SIZE,
     .flags = FIELD_REQUIRED,
     .offset = IN(stride),
     .min = 1,
     .max = KERNEL_MAX,
     .help = "[height, width] of how much larger images become"},
    {.key = "mode",
     .type = FIELD_ENUM,
     .offset = IN(mode),
     .choices = modes,
     .builtin = "nearest",
     .help = "nearest: the pixel that lies there; linear: between the next two of each side"},
    {.key = "align_corners",
     .type = FIELD_BOOL,
     .offset = IN(is_by_corners),
     .builtin = "false",
     .help = "linear: centres of the pixels at the corners stay where they are, not the corners"},
};
static const struct field slice_rows[] = {
    BARE_NAME,
    {.key = "first",
     .type = FIELD_INT64,
     .offset = IN(begin),
     .min = 0,
     .max = OUT_MAX,
     .builtin = "0",
     .help = "channel that it takes, counted from 0"},
    {.key = "size",
     .type = FIELD_INT64,
     .flags = FIELD_REQUIRED,
     .offset = IN(size),
     .min = 1,
     .max = OUT_MAX,
     .help = "channels that it takes"},
};
static const struct field shuffle_rows[] = {
    BARE_NAME,
    {.key = "groups",
     .type = FIELD_INT64,
     .flags = FIELD_REQUIRED,
     .offset = IN(groups),
     .min = 1,
     .max = OUT_MAX,
     .help = "of channels: it makes the first ones of all groups, then the second ones, ..."},
};
static const struct field token_rows[] = {
    BARE_NAME,
    {.key = "at",
     .type = FIELD_INT64,
     .offset = IN(begin),
     .min = 0,
     .max = OUT_MAX,
     .builtin = "0",
     .help = "which token, counted from 0"},
};
#define HEADS_ROWS                                                                                 \
    {.key = "heads",                                                                               \
     .type = FIELD_INT64,                                                                          \
     .flags = FIELD_REQUIRED,                                                                      \
     .offset = IN(heads),                                                                          \
     .min = 1,                                                                                     \
     .max = OUT_MAX,                                                                               \
     .help = "parts of the channels, each by itself"},                                             \
        {.key = "causal",                                                                          \
         .type = FIELD_BOOL,                                                                       \
         .offset = IN(is_causal),                                                                  \
         .builtin = "false",                                                                       \
         .help = "a token sees itself and those before it alone"},                                 \
        RATE_ROW("dropout", "0", "how many of the weights of attention become 0 in training")
static const struct field dot_product_rows[] = {
    BARE_NAME,
    HEADS_ROWS,
};
static const struct field attention_rows[] = {
    OWN_NAME,
    HEADS_ROWS,
    RULE_ROW(weight, "xavier_uniform", "how the weight of queries, keys and values begins"),
    RULE_ROW(out_weight, "fan_in", "how the weight behind the heads begins"),
    BIAS_ROW("zeros"),
    PARAMETERS_ROW(attention_parts),
};
static const char *const outputs[] = {
    [OUTPUT_SEQUENCE] = "sequence",
    [OUTPUT_LAST] = "last",
    NULL,
};
static const char *const recurrent_parts[] = {
    "weight_ih_l0",       "weight_hh_l0",         "bias_ih_l0",
    "bias_hh_l0",         "weight_ih_l0_reverse", "weight_hh_l0_reverse",
    "bias_ih_l0_reverse", "bias_hh_l0_reverse",   NULL};
static const struct field recurrent_rows[] = {
    OWN_NAME,
    {.key = "hidden",
     .type = FIELD_INT64,
     .flags = FIELD_REQUIRED,
     .offset = IN(hidden),
     .min = 1,
     .max = OUT_MAX,
     .help = "channels that a direction makes of a token"},
    {.key = "layers",
     .type = FIELD_INT64,
     .offset = IN(depth),
     .min = 1,
     .max = DEPTH_MAX,
     .builtin = "1",
     .help = "one behind the other"},
    {.key = "bidirectional",
     .type = FIELD_BOOL,
     .offset = IN(is_bidirectional),
     .builtin = "false",
     .help = "a second one goes from the last token to the first; channels of both stand in a row"},
    RATE_ROW("dropout", "0", "how many of the values between layers become 0 in training"),
    {.key = "output",
     .type = FIELD_ENUM,
     .offset = IN(output),
     .choices = outputs,
     .builtin = "sequence",
     .help = "sequence: of each token; last: what is left behind all tokens, as a row"},
    RULE_ROW(weight, "fan_in", "how the weights begin"),
    BIAS_ROW("fan_in"),
    PARAMETERS_ROW(recurrent_parts),
};

static const struct field batch_norm_rows[] = {
    OWN_NAME,
    PARAMETERS_ROW(norm_parts),
    {.key = "momentum",
     .type = FIELD_REAL,
     .offset = IN(momentum),
     .min = 0,
     .max = 1,
     .builtin = "0.9",
     .help = "what stays of a moving statistic at a step (PyTorch counts what goes)"},
    EPSILON_ROW,
    RULE_ROW(gamma, "ones", "how the scale begins"),
    RULE_ROW(beta, "zeros", "how the shift begins"),
};
static const struct field layer_norm_rows[] = {
    OWN_NAME,
    OVER_ROW(0, "sample: all its values; channels: those of each pixel or token by itself"),
    EPSILON_ROW,
    AFFINE_ROWS("ones", "zeros"),
    PARAMETERS_ROW(sample_norm_parts),
};
static const struct field group_norm_rows[] = {
    OWN_NAME,
    {.key = "groups",
     .type = FIELD_INT64,
     .flags = FIELD_REQUIRED,
     .offset = IN(groups),
     .min = 1,
     .max = OUT_MAX,
     .help = "of channels, each by itself"},
    EPSILON_ROW,
    AFFINE_ROWS("ones", "zeros"),
    PARAMETERS_ROW(sample_norm_parts),
};
static const struct field instance_norm_rows[] = {
    OWN_NAME,
    EPSILON_ROW,
    AFFINE_ROWS("none", "none"),
    PARAMETERS_ROW(sample_norm_parts),
};
static const struct field bare_rows[] = {BARE_NAME};
static const struct field add_rows[] = {
    NAME_ROW("what others call it; default: its kind and a number"),
    FROM_ROW(layer_from_list, FIELD_REQUIRED, "what it sums up"),
};
static const struct field difference_rows[] = {
    NAME_ROW("what others call it; default: its kind and a number"),
    FROM_ROW(layer_from_list, FIELD_REQUIRED, "what it takes from the first one, and that"),
};
static const struct field product_rows[] = {
    NAME_ROW("what others call it; default: its kind and a number"),
    FROM_ROW(layer_from_list, FIELD_REQUIRED, "what it multiplies"),
};
static const char *const scale_parts[] = {"gamma", NULL};
static const struct field scale_rows[] = {
    OWN_NAME,
    {.key = "shape",
     .type = FIELD_OWN,
     .own = &layer_shape,
     .offset = IN(factor),
     .min = 1,
     .max = OUT_MAX,
     .builtin = "channels",
     .help = "of the factor; channels: (c, 1, 1) of images, (c) of rows"},
    RULE_ROW(gamma, "ones", "how the factor begins"),
    PARAMETERS_ROW(scale_parts),
};
static const struct field linear_rows[] = {
    BARE_NAME,
    ALPHA_ROW("factor", "1", "what values are multiplied by"),
    {.key = "offset",
     .type = FIELD_REAL,
     .offset = IN(offset),
     .min = -ALPHA_MAX,
     .max = ALPHA_MAX,
     .builtin = "0",
     .help = "what is added then"},
};
static const char *const drops[] = {
    [DROP_VALUES] = "values",
    [DROP_CHANNELS] = "channels",
    [DROP_SAMPLES] = "samples",
    NULL,
};
static const struct field dropout_rows[] = {
    BARE_NAME,
    RATE_ROW("rate", "0.5", "how many of the values become 0 in training"),
    {.key = "of",
     .type = FIELD_ENUM,
     .flags = FIELD_ADDED,
     .offset = IN(of),
     .choices = drops,
     .builtin = "values",
     .help = "what becomes 0 as one: values, channels of a sample, or all of a sample"},
};
static const struct field leaky_relu_rows[] = {
    BARE_NAME,
    ALPHA_ROW("slope", "0.01", "what negative values are multiplied by"),
};
static const struct field elu_rows[] = {
    BARE_NAME,
    ALPHA_ROW("alpha", "1", "what exp(x) - 1 of negative values x is multiplied by"),
};
static const char *const approximations[] = {
    [APPROXIMATE_NONE] = "none",
    [APPROXIMATE_TANH] = "tanh",
    NULL,
};
static const struct field gelu_rows[] = {
    BARE_NAME,
    {.key = "approximate",
     .type = FIELD_ENUM,
     .offset = IN(approximate),
     .choices = approximations,
     .builtin = "none",
     .help = "none: by the error function; tanh: by a hyperbolic tangent"},
};
static const struct field pool_rows[] = {
    BARE_NAME,
    KERNEL_ROW,
    STRIDE_ROW(0, "0", "[height, width] of a step; 0: the kernel's"),
    PADDING_ROW,
    {.key = "ceil",
     .type = FIELD_BOOL,
     .flags = FIELD_ADDED,
     .offset = IN(ceil),
     .builtin = "false",
     .help = "a window more where pixels are left at the right or bottom, as PyTorch's ceil_mode"},
};
static const struct field sequential_rows[] = {
    NEST_NAME,
    LIST_ROW(layers, FIELD_REQUIRED, "one behind the other"),
};
static const struct field residual_rows[] = {
    NEST_NAME,
    LIST_ROW(body, FIELD_REQUIRED, "what is added to the input"),
    LIST_ROW(shortcut, FIELD_OPTIONAL | FIELD_ADDED, "what the input goes through before that"),
};
static const struct field concat_rows[] = {
    NAME_ROW("before the names of all layers inside; default: nothing"),
    FROM_ROW(layer_from_any, FIELD_OPTIONAL | FIELD_ADDED,
             "what the branches read, or a list of what it puts in a row, without branches"),
    {.key = "branches",
     .type = FIELD_OWN,
     .own = &layer_branches,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN(branches),
     .help = "what makes the channels, one behind the other"},
};
static const struct field repeat_rows[] = {
    NEST_NAME,
    {.key = "times",
     .type = FIELD_INT64,
     .flags = FIELD_REQUIRED,
     .offset = IN(times),
     .min = 1,
     .max = REPEATS_MAX,
     .help = "how often"},
    {.key = "first",
     .type = FIELD_NAME,
     .offset = IN(first),
     .builtin = "0",
     .help = "a number or a letter before the names of the first ones; it counts on"},
    LIST_ROW(layers, FIELD_REQUIRED, "one behind the other"),
};

#define TABLE(rows, of)                                                                            \
    {                                                                                              \
        rows, MS_ARRAY_SIZE(rows), of                                                              \
    }
#define NO_KEYS(of) TABLE(bare_rows, of)
const struct layer_kind layer_kinds[] = {
    {"conv2d", TABLE(conv2d_rows, "conv2d"), build_conv2d, 1, NULL},
    {"conv_transpose2d", TABLE(transposed_rows, "conv_transpose2d"), build_transposed, 1, NULL},
    {"dense", TABLE(dense_rows, "dense"), build_dense, 1, NULL},
    {"embedding", TABLE(embedding_rows, "embedding"), build_embedding, 1, NULL},
    {"positional_embedding", TABLE(positional_rows, "positional_embedding"), build_positional, 1,
     NULL},
    {"tokens", NO_KEYS("tokens"), build_tokens, 0, NULL},
    {"class_token", TABLE(class_token_rows, "class_token"), build_class_token, 1, NULL},
    {"token", TABLE(token_rows, "token"), build_token, 0, NULL},
    {"dot_product_attention", TABLE(dot_product_rows, "dot_product_attention"), build_dot_product,
     0, NULL},
    {"attention", TABLE(attention_rows, "attention"), build_attention, 1, NULL},
    {"lstm", TABLE(recurrent_rows, "lstm"), build_recurrent, 1, layer_check_recurrent},
    {"gru", TABLE(recurrent_rows, "gru"), build_recurrent, 1, layer_check_recurrent},
    {"batch_norm", TABLE(batch_norm_rows, "batch_norm"), build_batch_norm, 1, NULL},
    {"layer_norm", TABLE(layer_norm_rows, "layer_norm"), build_layer_norm, 1, NULL},
    {"group_norm", TABLE(group_norm_rows, "group_norm"), build_group_norm, 1, NULL},
    {"instance_norm", TABLE(instance_norm_rows, "instance_norm"), build_instance_norm, 1, NULL},
    {"relu", NO_KEYS("relu"), build_relu, 0, NULL},
    {"dropout", TABLE(dropout_rows, "dropout"), build_dropout, 0, NULL},
    {"relu6", NO_KEYS("relu6"), build_activation, 0, NULL},
    {"leaky_relu", TABLE(leaky_relu_rows, "leaky_relu"), build_activation, 0, NULL},
    {"elu", TABLE(elu_rows, "elu"), build_activation, 0, NULL},
    {"gelu", TABLE(gelu_rows, "gelu"), build_gelu, 0, NULL},
    {"silu", NO_KEYS("silu"), build_activation, 0, NULL},
    {"hard_swish", NO_KEYS("hard_swish"), build_activation, 0, NULL},
    {"sigmoid", NO_KEYS("sigmoid"), build_activation, 0, NULL},
    {"tanh", NO_KEYS("tanh"), build_activation, 0, NULL},
    {"softmax", NO_KEYS("softmax"), build_softmax, 0, NULL},
    {"max_pool", TABLE(pool_rows, "max_pool"), build_max_pool, 0, NULL},
    {"avg_pool", TABLE(pool_rows, "avg_pool"), build_avg_pool, 0, NULL},
    {"global_avg_pool", NO_KEYS("global_avg_pool"), build_global_avg_pool, 0, NULL},
    {"pad", TABLE(pad_rows, "pad"), build_pad, 0, NULL},
    {"upsample", TABLE(upsample_rows, "upsample"), build_upsample, 0, check_upsample},
    {"slice", TABLE(slice_rows, "slice"), build_slice, 0, NULL},
    {"channel_shuffle", TABLE(shuffle_rows, "channel_shuffle"), build_shuffle, 0, NULL},
    {"add", TABLE(add_rows, "add"), build_add, 0, NULL},
    {"sub", TABLE(difference_rows, "sub"), build_sub, 0, NULL},
    {"mul", TABLE(product_rows, "mul"), build_mul, 0, NULL},
    {"scale", TABLE(scale_rows, "scale"), build_scale, 1, NULL},
    {"linear", TABLE(linear_rows, "linear"), build_linear, 0, NULL},
    {"hard_sigmoid", NO_KEYS("hard_sigmoid"), build_hard_sigmoid, 0, NULL},
    {"flatten", NO_KEYS("flatten"), build_flatten, 0, NULL},
    {"sequential", TABLE(sequential_rows, "sequential"), build_sequential, 0, NULL},
    {"residual", TABLE(residual_rows, "residual"), build_residual, 0, NULL},
    {"concat", TABLE(concat_rows, "concat"), build_concat, 0, layer_check_concat},
    {"repeat", TABLE(repeat_rows, "repeat"), build_repeat, 0, NULL},
};
const size_t n_layer_kinds = MS_ARRAY_SIZE(layer_kinds);
