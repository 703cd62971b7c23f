/* layer_kinds.c - the kinds of layers: the keys of each, and what builds it */
#include "libworker/network/layer.h"

#include <stdlib.h>

#define IN(member)  offsetof(struct layer, member)
#define OUT_MAX     (1 << 20)
#define KERNEL_MAX  MS_IMAGE_SIDE_MAX
#define REPEATS_MAX 1000
#define ALPHA_MAX   1e6
#define DEPTH_MAX   32

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
static const char *const nonlinearities[] = {
    [NONLINEARITY_TANH] = "tanh",
    [NONLINEARITY_RELU] = "relu",
    NULL,
};
#define HIDDEN_ROW                                                                                 \
    {                                                                                              \
        .key = "hidden", .type = FIELD_INT64, .flags = FIELD_REQUIRED, .offset = IN(hidden),       \
        .min = 1, .max = OUT_MAX, .help = "channels that a direction makes of a token"             \
    }
#define LEVELS_ROW                                                                                 \
    {                                                                                              \
        .key = "layers", .type = FIELD_INT64, .offset = IN(depth), .min = 1, .max = DEPTH_MAX,     \
        .builtin = "1", .help = "one behind the other"                                             \
    }
#define BIDIRECTIONAL_ROW                                                                          \
    {                                                                                              \
        .key = "bidirectional", .type = FIELD_BOOL, .offset = IN(is_bidirectional),                \
        .builtin = "false",                                                                        \
        .help = "a second one goes from the last token to the first; channels of both stand "      \
                "in a row"                                                                         \
    }
#define OUTPUT_ROW                                                                                 \
    {                                                                                              \
        .key = "output", .type = FIELD_ENUM, .offset = IN(output), .choices = outputs,             \
        .builtin = "sequence",                                                                     \
        .help = "sequence: of each token; last: what is left behind all tokens, as a row"          \
    }
static const struct field recurrent_rows[] = {
    OWN_NAME,
    HIDDEN_ROW,
    LEVELS_ROW,
    BIDIRECTIONAL_ROW,
    RATE_ROW("dropout", "0", "how many of the values between layers become 0 in training"),
    OUTPUT_ROW,
    RULE_ROW(weight, "fan_in", "how the weights begin"),
    BIAS_ROW("fan_in"),
    PARAMETERS_ROW(recurrent_parts),
};
static const struct field rnn_rows[] = {
    OWN_NAME,
    HIDDEN_ROW,
    {.key = "nonlinearity",
     .type = FIELD_ENUM,
     .offset = IN(nonlinearity),
     .choices = nonlinearities,
     .builtin = "tanh",
     .help = "what becomes of the sum of a token's input and of the token before"},
    LEVELS_ROW,
    BIDIRECTIONAL_ROW,
    RATE_ROW("dropout", "0", "how many of the values between layers become 0 in training"),
    OUTPUT_ROW,
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
    {"rnn", TABLE(rnn_rows, "rnn"), build_recurrent, 1, layer_check_recurrent},
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
    {"upsample", TABLE(upsample_rows, "upsample"), build_upsample, 0, layer_check_upsample},
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
