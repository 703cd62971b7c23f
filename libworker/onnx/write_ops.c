/* write_ops.c - the ops of a graph as nodes of ONNX */
#include "libworker/onnx/file.h"
#include "libworker/onnx/write_impl.h"

#include "libworker/graph/op.h"
#include "proto/macros.h"

#include <stdio.h>
#include <string.h>

/* ---- windows ---- */

static void put_window(struct write *w, const struct op_window *window)
{
    const int64_t kernel[2] = {window->kernel_h, window->kernel_w};
    const int64_t strides[2] = {window->stride_h, window->stride_w};
    const int64_t pads[4] = {window->pad_top, window->pad_left, window->pad_bottom,
                             window->pad_right};
    write_put_ints(w, "kernel_shape", kernel, 2);
    write_put_ints(w, "strides", strides, 2);
    write_put_ints(w, "pads", pads, 4);
}

static void put_convolution(struct write *w, const struct op *op)
{
    const int64_t dilations[2] = {op->window.gap_h + 1, op->window.gap_w + 1};
    put_window(w, &op->window);
    write_put_ints(w, "dilations", dilations, 2);
    write_put_int(w, "group", op->groups > 0 ? op->groups : 1);
}

/* The tensor with two dimensions of 1 behind its own. */
static const char *with_pixel(struct write *w, const struct op *op, int tensor,
                              char buf[WRITE_NAME_MAX])
{
    static const int64_t behind[2] = {-2, -1};
    char axes[WRITE_NAME_MAX];
    write_constant_ints(w, write_part_of(op, "axes", axes), behind, 2);
    write_begin(w, "Unsqueeze");
    write_in_tensor(w, tensor);
    write_in(w, axes);
    write_end(w, write_part_of(op, "of_pixel", buf));
    return buf;
}

/* A weight (out, channels) is one of a pixel. */
static int write_conv2d(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    const int is_matrix = graph_tensor(w->graph, op->in[1])->shape.n_dims == 2;
    char weight[WRITE_NAME_MAX];
    if (is_matrix) {
        with_pixel(w, op, op->in[1], weight);
    } else {
        write_name(w, op->in[1], weight);
    }
    write_begin(w, "Conv");
    write_in_tensor(w, op->in[0]);
    write_in(w, weight);
    for (int i = 2; i < op->n_in; i++) {
        write_in_tensor(w, op->in[i]);
    }
    put_convolution(w, op);
    write_end_op(w, op);
    return index + 1;
}

/* With the bias that is an op of its own here. */
static int write_transposed(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    const struct op *next = graph_op(w->graph, index + 1); /* behind all of these is a loss */
    const int has_bias = next->kind == OP_BIAS && next->in[0] == op->out[0];
    const int64_t more[2] = {op->window.more_h, op->window.more_w};
    write_begin(w, "ConvTranspose");
    write_in_tensor(w, op->in[0]);
    write_in_tensor(w, op->in[1]);
    if (has_bias) {
        write_in_tensor(w, next->in[1]);
    }
    put_convolution(w, op);
    write_put_ints(w, "output_padding", more, 2);
    write_end_op(w, has_bias ? next : op);
    return index + 1 + has_bias;
}

static int write_max_pool(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    write_begin(w, "MaxPool");
    write_in_tensor(w, op->in[0]);
    put_window(w, &op->window);
    write_end_op(w, op);
    return index + 1;
}

static int is_whole(const struct op_window *w, const struct shape *x)
{
    return w->kernel_h == x->dim[2] && w->kernel_w == x->dim[3] && w->pad_top == 0 &&
           w->pad_left == 0 && w->pad_bottom == 0 && w->pad_right == 0;
}

static int write_avg_pool(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    const int whole = is_whole(&op->window, &graph_tensor(w->graph, op->in[0])->shape);
    write_begin(w, whole ? "GlobalAveragePool" : "AveragePool");
    write_in_tensor(w, op->in[0]);
    if (!whole) {
        put_window(w, &op->window);
        write_put_int(w, "count_include_pad", 0);
    }
    write_end_op(w, op);
    return index + 1;
}

/* ---- products ---- */

static int write_dense(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    if (write_is_recurrent(w, index)) {
        return write_recurrent(w, index);
    }
    if (shape_is_sequence(&graph_tensor(w->graph, op->in[0])->shape)) {
        return write_dense_of_tokens(w, index);
    }
    write_begin(w, "Gemm");
    for (int i = 0; i < op->n_in; i++) {
        write_in_tensor(w, op->in[i]);
    }
    write_put_int(w, "transB", 1);
    write_end_op(w, op);
    return index + 1;
}

/* Factors are repeated as in numpy: gates (n, c) over pixels. */
static int write_gate(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    const int is_rows = graph_tensor(w->graph, op->in[1])->shape.n_dims == 2;
    char gate[WRITE_NAME_MAX];
    if (is_rows) {
        with_pixel(w, op, op->in[1], gate);
    } else {
        write_name(w, op->in[1], gate);
    }
    write_begin(w, "Mul");
    write_in_tensor(w, op->in[0]);
    write_in(w, gate);
    write_end_op(w, op);
    return index + 1;
}

static int write_linear(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    char factor[WRITE_NAME_MAX];
    char offset[WRITE_NAME_MAX];
    char scaled[WRITE_NAME_MAX];
    write_constant_real(w, write_part_of(op, "factor", factor), op->alpha);
    write_constant_real(w, write_part_of(op, "offset", offset), op->beta);
    write_begin(w, "Mul");
    write_in_tensor(w, op->in[0]);
    write_in(w, factor);
    write_end(w, write_part_of(op, "scaled", scaled));
    write_begin(w, "Add");
    write_in(w, scaled);
    write_in(w, offset);
    write_end_op(w, op);
    return index + 1;
}

/* ---- norms ---- */

static int write_batch_norm(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    write_begin(w, "BatchNormalization");
    for (int i = 0; i < op->n_in; i++) {
        write_in_tensor(w, op->in[i]);
    }
    write_put_real(w, "epsilon", op->epsilon);
    write_put_real(w, "momentum", graph_tensor(w->graph, op->in[3])->momentum);
    write_end_op(w, op);
    return index + 1;
}

/* A node that reads x, a scale and a shift, ones and zeros of that shape where the op has none;
 * what it may say more is the caller's. */
static void begin_norm(struct write *w, const char *type, const struct op *op, const char *x,
                       const struct shape *shape)
{
    char ones[WRITE_NAME_MAX] = "";
    char zeros[WRITE_NAME_MAX] = "";
    char buf[WRITE_NAME_MAX];
    if (op->n_in < 2) {
        write_filled(w, op, "ones", shape, 1, ones);
    }
    if (op->n_in < 3) {
        write_filled(w, op, "zeros", shape, 0, zeros);
    }
    write_begin(w, type);
    write_in(w, x);
    write_in(w, op->n_in > 1 ? write_name(w, op->in[1], buf) : ones);
    write_in(w, op->n_in > 2 ? write_name(w, op->in[2], buf) : zeros);
    write_put_real(w, "epsilon", op->epsilon);
}

/* Of the last axes: the channels of pixels are put there and back; those of tokens are there. */
static int write_layer_norm(struct write *w, int index)
{
    static const int64_t last[4] = {0, 2, 3, 1};
    static const int64_t first[4] = {0, 3, 1, 2};
    const struct op *op = graph_op(w->graph, index);
    const struct shape *of = &graph_tensor(w->graph, op->in[0])->shape;
    const int is_moved = op->of_pixels && !shape_is_sequence(of);
    const int64_t *dim = &of->dim[op->of_pixels && !is_moved ? 2 : 1];
    char x[WRITE_NAME_MAX];
    char y[WRITE_NAME_MAX];
    struct shape shape = {.n_dims = op->of_pixels ? 1 : of->n_dims - 1};
    memcpy(shape.dim, dim, (size_t)shape.n_dims * sizeof(shape.dim[0]));
    write_name(w, op->in[0], x);
    if (is_moved) {
        write_transpose(w, x, last, 4, write_part_of(op, "pixels", y));
        memcpy(x, y, sizeof(x));
    }
    begin_norm(w, "LayerNormalization", op, x, &shape);
    write_put_int(w, "axis", op->of_pixels ? -1 : 1);
    if (!is_moved) {
        write_end_op(w, op);
        return index + 1;
    }
    write_end(w, write_part_of(op, "normed", y));
    write_transpose(w, y, first, 4, write_name(w, op->out[0], x));
    return index + 1;
}

/* InstanceNormalization where each channel is a group: every runtime has it. */
static int write_group_norm(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    const struct shape *of = &graph_tensor(w->graph, op->in[0])->shape;
    const struct shape shape = {1, {of->dim[1]}};
    const int64_t groups = op->groups > 0 ? op->groups : 1;
    const int is_instance = groups == of->dim[1];
    char x[WRITE_NAME_MAX];
    begin_norm(w, is_instance ? "InstanceNormalization" : "GroupNormalization", op,
               write_name(w, op->in[0], x), &shape);
    if (!is_instance) {
        write_put_int(w, "num_groups", groups);
    }
    write_end_op(w, op);
    return index + 1;
}

/* ---- functions of one value ---- */

static void write_function(struct write *w, const struct op *op, const char *type)
{
    write_begin(w, type);
    write_in_tensor(w, op->in[0]);
}

static int write_relu6(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    char least[WRITE_NAME_MAX];
    char most[WRITE_NAME_MAX];
    write_constant_real(w, write_part_of(op, "least", least), 0);
    write_constant_real(w, write_part_of(op, "most", most), 6);
    write_function(w, op, "Clip");
    write_in(w, least);
    write_in(w, most);
    write_end_op(w, op);
    return index + 1;
}

static int write_slope(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    write_function(w, op, op->kind == OP_ELU ? "Elu" : "LeakyRelu");
    write_put_real(w, "alpha", op->alpha);
    write_end_op(w, op);
    return index + 1;
}

static int write_gelu(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    write_function(w, op, "Gelu");
    write_put_text(w, "approximate", op->kind == OP_GELU_TANH ? "tanh" : "none");
    write_end_op(w, op);
    return index + 1;
}

static int write_silu(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    char gate[WRITE_NAME_MAX];
    write_function(w, op, "Sigmoid");
    write_end(w, write_part_of(op, "gate", gate));
    write_function(w, op, "Mul");
    write_in(w, gate);
    write_end_op(w, op);
    return index + 1;
}

/* ---- channels ---- */

static int64_t axis_of_channels(const struct write *w, const struct op *op)
{
    return shape_is_sequence(&graph_tensor(w->graph, op->out[0])->shape) ? 2 : 1;
}

static int write_slice(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    const int64_t axis = axis_of_channels(w, op);
    const int64_t end_at = op->first + graph_tensor(w->graph, op->out[0])->shape.dim[axis];
    const struct {
        const char *part;
        const int64_t *value;
    } inputs[] = {{"starts", &op->first}, {"ends", &end_at}, {"axes", &axis}};
    char names[MS_ARRAY_SIZE(inputs)][WRITE_NAME_MAX];
    for (size_t i = 0; i < MS_ARRAY_SIZE(inputs); i++) {
        write_constant_ints(w, write_part_of(op, inputs[i].part, names[i]), inputs[i].value, 1);
    }
    write_begin(w, "Slice");
    write_in_tensor(w, op->in[0]);
    for (size_t i = 0; i < MS_ARRAY_SIZE(inputs); i++) {
        write_in(w, names[i]);
    }
    write_end_op(w, op);
    return index + 1;
}

/* (n, groups, c / groups, h w), of tokens (n, t, groups, c / groups), turned, and as it was; 0: as
 * many as there are. */
static int write_shuffle(struct write *w, int index)
{
    static const int64_t of_images[4] = {0, 2, 1, 3};
    static const int64_t of_tokens[4] = {0, 1, 3, 2};
    const struct op *op = graph_op(w->graph, index);
    const struct shape *of = &graph_tensor(w->graph, op->in[0])->shape;
    const int is_sequence = shape_is_sequence(of);
    const int64_t groups = op->groups > 0 ? op->groups : 1;
    const int64_t each = of->dim[axis_of_channels(w, op)] / groups;
    const int64_t pixels = of->n_dims == 4 ? of->dim[2] * of->dim[3] : 1;
    const int64_t images[4] = {0, groups, each, pixels};
    const int64_t tokens[4] = {0, of->dim[1], groups, each};
    const int64_t back[4] = {0, of->dim[1], of->dim[2], of->dim[3]};
    char x[WRITE_NAME_MAX];
    char y[WRITE_NAME_MAX];
    write_reshape(w, op, write_name(w, op->in[0], x), "groups", is_sequence ? tokens : images, 4,
                  write_part_of(op, "apart", y));
    write_transpose(w, y, is_sequence ? of_tokens : of_images, 4, write_part_of(op, "turned", x));
    write_reshape(w, op, x, "shape", back, of->n_dims, write_name(w, op->out[0], y));
    return index + 1;
}

/* In evaluation it is the identity. */
static int write_dropout(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    char ratio[WRITE_NAME_MAX];
    write_constant_real(w, write_part_of(op, "ratio", ratio), op->rate);
    write_function(w, op, "Dropout");
    write_in(w, ratio);
    write_end_op(w, op);
    return index + 1;
}

/* Those of one node, and the axis that it has. */
static int write_plain(struct write *w, int index)
{
    static const struct {
        enum op_kind kind;
        const char *type;
        int has_axis;
    } rows[] = {
        {OP_ADD, "Add", 0},
        {OP_CONCAT, "Concat", 1},
        {OP_FLATTEN, "Flatten", 1},
        {OP_RELU, "Relu", 0},
        {OP_HARD_SWISH, "HardSwish", 0},
        {OP_SIGMOID, "Sigmoid", 0},
        {OP_SOFTMAX, "Softmax", 1},
        {OP_TANH, "Tanh", 0},
        {OP_MUL, "Mul", 0},
        {OP_SCALE, "Mul", 0},
    };
    const struct op *op = graph_op(w->graph, index);
    size_t i = 0;
    while (rows[i].kind != op->kind) { /* the table below has no others */
        i++;
    }
    write_begin(w, rows[i].type);
    for (int k = 0; k < op->n_in; k++) {
        write_in_tensor(w, op->in[k]);
    }
    if (rows[i].has_axis) {
        write_put_int(w, "axis", axis_of_channels(w, op));
    }
    write_end_op(w, op);
    return index + 1;
}

/* ---- all of them ---- */

static int (*const writers[OP_KINDS])(struct write *w, int index) = {
    [OP_CONV2D] = write_conv2d,
    [OP_CONV_TRANSPOSE2D] = write_transposed,
    [OP_BIAS] = write_places, /* others are in write_transposed */
    [OP_EMBEDDING] = write_embedding,
    [OP_TOKENS] = write_tokens,
    [OP_CLASS_TOKEN] = write_class_token,
    [OP_ATTENTION] = write_attention,
    [OP_BATCH_NORM] = write_batch_norm,
    [OP_LAYER_NORM] = write_layer_norm,
    [OP_GROUP_NORM] = write_group_norm,
    [OP_RELU] = write_plain,
    [OP_RELU6] = write_relu6,
    [OP_LEAKY_RELU] = write_slope,
    [OP_ELU] = write_slope,
    [OP_GELU] = write_gelu,
    [OP_GELU_TANH] = write_gelu,
    [OP_SILU] = write_silu,
    [OP_HARD_SWISH] = write_plain,
    [OP_SIGMOID] = write_plain,
    [OP_TANH] = write_plain,
    [OP_SOFTMAX] = write_plain,
    [OP_DROPOUT] = write_dropout,
    [OP_ADD] = write_plain,
    [OP_MUL] = write_plain,
    [OP_GATE] = write_gate,
    [OP_SCALE] = write_plain,
    [OP_LINEAR] = write_linear,
    [OP_MAX_POOL] = write_max_pool,
    [OP_AVG_POOL] = write_avg_pool,
    [OP_PAD] = write_pad,
    [OP_UPSAMPLE] = write_upsample,
    [OP_CONCAT] = write_plain,
    [OP_SLICE] = write_slice,
    [OP_SHUFFLE] = write_shuffle,
    [OP_FLATTEN] = write_plain,
    [OP_DENSE] = write_dense,
};

int write_op(struct write *w, int index, struct ms_err *err)
{
    const struct op *op = graph_op(w->graph, index);
    const char *name = op_row(op->kind)->name;
    if (writers[op->kind] == NULL) {
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "network %s: op %s is not written as ONNX yet; export its weights as "
                       ".safetensors",
                       graph_name(w->graph), name);
    }
    for (int i = 0; i < op->n_in && w->is_words && op->kind != OP_EMBEDDING; i++) {
        if (op->in[i] == graph_data_index(w->graph)) {
            return ms_fail(err, MS_E_UNSUPPORTED,
                           "network %s: op %s reads the data as real numbers, and an embedding as "
                           "words, and the input of an ONNX file is one of them; export its "
                           "weights as .safetensors",
                           graph_name(w->graph), name);
        }
    }
    return writers[op->kind](w, index);
}
