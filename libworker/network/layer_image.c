/* layer_image.c - the ops of layers that go over images: convolutions, pools, and their size */
#include "libworker/network/layer.h"

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

static int64_t n_out(const struct building *b, const struct layer *layer)
{
    return layer->out != 0 ? layer->out : b->input->classes;
}

/* Images, whose channels can be read and made in groups. */
static int want_groups(struct building *b, const struct layer *layer, const struct tree_node *at,
                       int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    if (rc < 0) {
        return rc;
    }
    const int64_t in = build_shape(b, x)->dim[1];
    const int64_t out = n_out(b, layer);
    if (in % layer->groups != 0 || out % layer->groups != 0) {
        ms_fail(b->err, MS_E_INVALID,
                "%lld groups of %lld channels that make %lld: both must be multiples of it",
                (long long)layer->groups, (long long)in, (long long)out);
        return build_fail(b, at, layer);
    }
    return MS_OK;
}

int build_conv2d(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    int rc = want_groups(b, layer, at, x);
    if (rc < 0) {
        return rc;
    }
    const int64_t in = build_shape(b, x)->dim[1];
    const int64_t out = n_out(b, layer);
    const int64_t area = layer->kernel[0] * layer->kernel[1];
    const int64_t reads = in / layer->groups; /* channels that an output sums over */
    const struct shape shape = {4, {out, reads, layer->kernel[0], layer->kernel[1]}};
    const struct fans fans = {reads * area, out * area};
    struct op op = {.kind = OP_CONV2D, .n_in = 2, .window = window_of(b, layer, x)};
    op.groups = layer->groups;
    op.in[0] = x;
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    build_bias(b, layer, &op, out, fans);
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

/* fans as PyTorch counts them: of the weight (in, out / groups, h, w), as a convolution's. */
int build_transposed(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    int rc = want_groups(b, layer, at, x);
    if (rc < 0) {
        return rc;
    }
    const int64_t in = build_shape(b, x)->dim[1];
    const int64_t out = n_out(b, layer);
    const int64_t area = layer->kernel[0] * layer->kernel[1];
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

int build_max_pool(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    const struct op_window window = rc < 0 ? (struct op_window){0} : window_of(b, layer, x);
    return rc < 0 ? rc : build_made(b, layer, at, graph_max_pool(b->graph, x, &window, b->err));
}

int build_avg_pool(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 4);
    const struct op_window window = rc < 0 ? (struct op_window){0} : window_of(b, layer, x);
    return rc < 0 ? rc : build_made(b, layer, at, graph_avg_pool(b->graph, x, &window, b->err));
}

int build_global_avg_pool(struct building *b, const struct layer *layer, const struct tree_node *at,
                          int x)
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

int build_pad(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
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

int build_upsample(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
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

int layer_check_upsample(const struct layer *layer, const struct tree_node *at, const char *place,
                         struct ms_err *err)
{
    return layer->is_by_corners && layer->mode != MODE_LINEAR
               ? tree_fail(at, err, "%s.upsample: align_corners is of `mode: linear`", place)
               : MS_OK;
}
