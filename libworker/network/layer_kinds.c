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

/* ---- parameters ---- */

struct fans { /* values that one output sums over, and outputs that one value goes into */
    int64_t in, out;
};

static struct init init_of(const struct rule *rule, struct fans fans)
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

static int param(const struct building *b, const struct layer *layer, const char *part,
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

static int want_dims(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x, int n_dims)
{
    char shape[96];
    if (build_shape(b, x)->n_dims == n_dims) {
        return MS_OK;
    }
    shape_format(build_shape(b, x), shape, sizeof(shape));
    ms_fail(b->err, MS_E_INVALID, "it reads %s, and gets %s%s",
            n_dims == 4 ? "images (n, channels, height, width)" : "rows (n, values)", shape,
            n_dims == 2 ? "; put a flatten or a global_avg_pool before it" : "");
    return build_fail(b, at, layer);
}

/* The graph's error gets its place. */
static int made(struct building *b, const struct layer *layer, const struct tree_node *at, int y)
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
        op->in[op->n_in++] = param(b, layer, "bias", &shape, init_of(&layer->bias, fans));
    }
}

static int build_conv2d(struct building *b, const struct layer *layer, const struct tree_node *at,
                        int x)
{
    int rc = want_dims(b, layer, at, x, 4);
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
    op.in[1] = param(b, layer, "weight", &shape, init_of(&layer->weight, fans));
    add_bias(b, layer, &op, out, fans);
    return made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

/* fans as PyTorch counts them: of the weight (in, out / groups, h, w), as a convolution's. */
static int build_transposed(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
{
    int rc = want_dims(b, layer, at, x, 4);
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
    op.in[1] = param(b, layer, "weight", &shape, init_of(&layer->weight, fans));
    int y = made(b, layer, at, graph_apply(b->graph, &op, b->err));
    if (y < 0 || layer->bias.kind == RULE_NONE) {
        return y;
    }
    op = (struct op){.kind = OP_BIAS, .in = {y}};
    op.in[1] = param(b, layer, "bias", &channels, init_of(&layer->bias, fans));
    return made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_dense(struct building *b, const struct layer *layer, const struct tree_node *at,
                       int x)
{
    int rc = want_dims(b, layer, at, x, 2);
    if (rc < 0) {
        return rc;
    }
    const int64_t in = build_shape(b, x)->dim[1];
    const int64_t out = layer->out != 0 ? layer->out : b->input->classes;
    const struct shape shape = {2, {out, in}};
    const struct fans fans = {in, out};
    struct op op = {.kind = OP_DENSE, .n_in = 2, .in = {x}};
    op.in[1] = param(b, layer, "weight", &shape, init_of(&layer->weight, fans));
    add_bias(b, layer, &op, out, fans);
    return made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_batch_norm(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
{
    int rc = want_dims(b, layer, at, x, 4);
    if (rc < 0) {
        return rc;
    }
    const struct shape shape = {1, {build_shape(b, x)->dim[1]}};
    const struct fans fans = {1, 1};
    /* in this order: definition order is the order of files and of the reference's streams */
    int g = param(b, layer, "gamma", &shape, init_of(&layer->gamma, fans));
    int beta = g < 0 ? g : param(b, layer, "beta", &shape, init_of(&layer->beta, fans));
    int mean = beta < 0 ? beta : state(b, layer, "moving_mean", &shape, 0);
    int variance = mean < 0 ? mean : state(b, layer, "moving_variance", &shape, 1);
    return made(b, layer, at,
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
        op->in[op->n_in++] = param(b, layer, "gamma", shape, init_of(&layer->gamma, fans));
    }
    if (layer->beta.kind != RULE_NONE && op->in[1] >= 0) {
        op->in[op->n_in++] = param(b, layer, "beta", shape, init_of(&layer->beta, fans));
    }
    return MS_OK;
}

static int build_layer_norm(struct building *b, const struct layer *layer,
                            const struct tree_node *at, int x)
{
    const struct shape *of = build_shape(b, x);
    struct op op = {.kind = OP_LAYER_NORM, .in = {x}, .epsilon = layer->epsilon};
    op.of_pixels = layer->over == OVER_CHANNELS && of->n_dims == 4;
    struct shape shape = {.n_dims = op.of_pixels ? 1 : of->n_dims - 1};
    memcpy(shape.dim, &of->dim[1], (size_t)shape.n_dims * sizeof(shape.dim[0]));
    int rc = add_affine(b, layer, at, &shape, &op);
    return rc < 0 ? rc : made(b, layer, at, graph_apply(b->graph, &op, b->err));
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
    return rc < 0 ? rc : made(b, layer, at, graph_apply(b->graph, &op, b->err));
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
    int rc = want_dims(b, layer, at, x, 4);
    return rc < 0 ? rc : build_groups(b, layer, at, x, build_shape(b, x)->dim[1]);
}

static int build_relu(struct building *b, const struct layer *layer, const struct tree_node *at,
                      int x)
{
    return made(b, layer, at, graph_relu(b->graph, x, b->err));
}

static int build_softmax(struct building *b, const struct layer *layer, const struct tree_node *at,
                         int x)
{
    const struct op op = {.kind = OP_SOFTMAX, .in = {x}};
    return made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

static int build_dropout(struct building *b, const struct layer *layer, const struct tree_node *at,
                         int x)
{
    const struct op op = {.kind = OP_DROPOUT, .in = {x}, .rate = layer->rate};
    return made(b, layer, at, graph_apply(b->graph, &op, b->err));
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
    return made(b, layer, at, graph_activation(b->graph, kind, x, layer->alpha, b->err));
}

static int build_gelu(struct building *b, const struct layer *layer, const struct tree_node *at,
                      int x)
{
    const enum op_kind kind = layer->approximate == APPROXIMATE_TANH ? OP_GELU_TANH : OP_GELU;
    return made(b, layer, at, graph_activation(b->graph, kind, x, 0, b->err));
}

static int build_flatten(struct building *b, const struct layer *layer, const struct tree_node *at,
                         int x)
{
    return made(b, layer, at, graph_flatten(b->graph, x, b->err));
}

/* The first two, then each of the others. */
static int build_add(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    for (int i = 1; i < layer->n_in; i++) {
        x = graph_add(b->graph, x, layer->in[i], b->err);
    }
    return made(b, layer, at, x);
}

static int build_max_pool(struct building *b, const struct layer *layer, const struct tree_node *at,
                          int x)
{
    int rc = want_dims(b, layer, at, x, 4);
    const struct op_window window = rc < 0 ? (struct op_window){0} : window_of(b, layer, x);
    return rc < 0 ? rc : made(b, layer, at, graph_max_pool(b->graph, x, &window, b->err));
}

static int build_avg_pool(struct building *b, const struct layer *layer, const struct tree_node *at,
                          int x)
{
    int rc = want_dims(b, layer, at, x, 4);
    const struct op_window window = rc < 0 ? (struct op_window){0} : window_of(b, layer, x);
    return rc < 0 ? rc : made(b, layer, at, graph_avg_pool(b->graph, x, &window, b->err));
}

static int build_global_avg_pool(struct building *b, const struct layer *layer,
                                 const struct tree_node *at, int x)
{
    int rc = want_dims(b, layer, at, x, 4);
    if (rc < 0) {
        return rc;
    }
    const int64_t *dim = build_shape(b, x)->dim;
    const struct op_window whole = {
        .kernel_h = dim[2], .kernel_w = dim[3], .stride_h = 1, .stride_w = 1};
    int y = graph_avg_pool(b->graph, x, &whole, b->err);
    return made(b, layer, at, graph_flatten(b->graph, y, b->err));
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
static const struct field dense_rows[] = {
    OWN_NAME,
    PARAMETERS_ROW(affine_parts),
    OUT_ROW("values that it makes of a row"),
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
static const char *const overs[] = {
    [OVER_SAMPLE] = "sample",
    [OVER_CHANNELS] = "channels",
    NULL,
};
static const struct field layer_norm_rows[] = {
    OWN_NAME,
    {.key = "over",
     .type = FIELD_ENUM,
     .offset = IN(over),
     .choices = overs,
     .builtin = "sample",
     .help = "sample: all its values; channels: those of each pixel by itself"},
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
static const struct field dropout_rows[] = {
    BARE_NAME,
    {.key = "rate",
     .type = FIELD_REAL,
     .offset = IN(rate),
     .min = 0,
     .max = 0.9999,
     .builtin = "0.5",
     .help = "how many of the values become 0 in training"},
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
    {"add", TABLE(add_rows, "add"), build_add, 0, NULL},
    {"flatten", NO_KEYS("flatten"), build_flatten, 0, NULL},
    {"sequential", TABLE(sequential_rows, "sequential"), build_sequential, 0, NULL},
    {"residual", TABLE(residual_rows, "residual"), build_residual, 0, NULL},
    {"concat", TABLE(concat_rows, "concat"), build_concat, 0, layer_check_concat},
    {"repeat", TABLE(repeat_rows, "repeat"), build_repeat, 0, NULL},
};
const size_t n_layer_kinds = MS_ARRAY_SIZE(layer_kinds);
