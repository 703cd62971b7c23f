/* test_layers.c - lists of layers: names, shapes, first values, places of errors, canonical form */
#include "libworker/graph/cost.h"
#include "libworker/network/layer.h"
#include "tests/test.h"

#include <math.h>

static const struct network_input images = {
    .batch = 8, .channels = 3, .height = 12, .width = 10, .classes = 5};

static int build(const char *text, struct graph **ret, struct ms_err *err)
{
    struct network *network = NULL;
    int rc = network_parse(text, strlen(text), "net.yaml", "net", &network, err);
    rc = rc < 0 ? rc : network_build(network, &images, NETWORK_LOSS_SOFTMAX_CE, ret, err);
    network_destroy(network);
    return rc;
}

/* What that text makes of such images; the caller destroys it. */
static struct graph *built(const char *text)
{
    struct graph *graph = NULL;
    ck_ms_ok(build(text, &graph, err));
    return graph;
}

/* Reading or building it is refused, in such words. */
static void refused(const char *text, const char *words)
{
    struct graph *graph = NULL;
    ck_ms_fails(build(text, &graph, err), MS_E_INVALID, words);
    ck_assert_ptr_null(graph);
}

static const struct tensor *named(const struct graph *graph, const char *name)
{
    int index = graph_find(graph, name);
    ck_assert_msg(index >= 0, "no %s", name);
    return graph_tensor(graph, index);
}

static void ck_shape(const struct graph *graph, const char *name, const char *shape)
{
    char buf[96];
    ck_assert_str_eq(shape_format(&named(graph, name)->shape, buf, sizeof(buf)), shape);
}

/* ---- names ---- */

static const char end[] = "- global_avg_pool\n- dense: {out: classes}\n";

static const char *with_end(const char *text)
{
    static char whole[4096];
    snprintf(whole, sizeof(whole), "%s%s", text, end);
    return whole;
}

START_TEST(layers_without_a_name_are_numbered_by_kind)
{
    struct graph *graph = built(with_end("- conv2d: {out: 4, kernel: 3}\n"
                                         "- batch_norm\n"
                                         "- conv2d: {out: 6, kernel: 1, name: mine}\n"
                                         "- conv2d: {out: 7, kernel: 1}\n"));
    ck_shape(graph, "conv2d1.weight", "(4, 3, 3, 3)");
    ck_shape(graph, "batch_norm1.moving_variance", "(4)");
    ck_shape(graph, "mine.weight", "(6, 4, 1, 1)");
    ck_shape(graph, "conv2d2.weight", "(7, 6, 1, 1)");
    ck_shape(graph, "dense1.bias", "(5)");
    graph_destroy(graph);
}
END_TEST

START_TEST(names_of_lists_stand_before_those_inside)
{
    struct graph *graph = built(with_end(
        "- sequential:\n"
        "    name: stem\n"
        "    layers:\n"
        "      - conv2d: {out: 4, kernel: 3}\n"
        "      - sequential: {layers: [conv2d: {out: 4, kernel: 1}]}\n" /* the same counts */
        "- repeat:\n"
        "    name: block\n"
        "    times: 2\n"
        "    first: 9\n"
        "    layers:\n"
        "      - residual: {name: r, body: [conv2d: {name: c, out: 4, kernel: 1}]}\n"));
    ck_shape(graph, "stem.conv2d1.weight", "(4, 3, 3, 3)");
    ck_shape(graph, "stem.conv2d2.weight", "(4, 4, 1, 1)");
    ck_shape(graph, "block.9.r.c.weight", "(4, 4, 1, 1)");
    ck_shape(graph, "block.10.r.c.weight", "(4, 4, 1, 1)");
    graph_destroy(graph);
}
END_TEST

START_TEST(letters_count_on_and_end_with_the_alphabet)
{
    struct graph *graph =
        built(with_end("- repeat: {times: 2, first: y, layers: [conv2d: {out: 3, kernel: 1}]}\n"));
    ck_shape(graph, "y.conv2d1.weight", "(3, 3, 1, 1)");
    ck_shape(graph, "z.conv2d1.weight", "(3, 3, 1, 1)");
    graph_destroy(graph);
    refused(with_end("- repeat: {times: 3, first: y, layers: [conv2d: {out: 3, kernel: 1}]}\n"),
            "net.yaml:1:3: repeat.first: 'y' is no label that counts on for 3 times");
}
END_TEST

START_TEST(two_layers_of_one_name_are_refused)
{
    refused(with_end("- conv2d: {name: c, out: 4, kernel: 3}\n"
                     "- conv2d: {name: c, out: 4, kernel: 3}\n"),
            "net.yaml:2:3: layer c (conv2d): ");
}
END_TEST

/* ---- one parameter of several layers ---- */

START_TEST(layers_share_the_parameters_that_they_name)
{
    struct graph *graph =
        built(with_end("- conv2d: {name: c, out: 3, kernel: 3, padding: same, bias: fan_in, "
                       "weight: {normal: 0.5}}\n"
                       "- conv2d: {out: 3, kernel: 3, padding: same, bias: fan_in, "
                       "parameters: {weight: c.weight}}\n"));
    struct graph_cost cost;
    const int w = graph_find(graph, "c.weight");
    ck_assert_int_eq(graph_op(graph, 0)->in[1], w);
    ck_assert_int_eq(graph_op(graph, 1)->in[1], w);
    ck_assert_int_eq(graph_tensor(graph, w)->init.kind, INIT_NORMAL); /* as the first one says */
    ck_assert_int_ge(graph_find(graph, "conv2d1.bias"), 0);
    graph_cost(graph, 0, 1, &cost);
    ck_assert_int_eq(cost.parameters, 81 + 3);
    graph_cost(graph, 1, 1, &cost);
    ck_assert_int_eq(cost.parameters, 3); /* it is counted once */
    graph_destroy(graph);
}
END_TEST

static const struct {
    const char *layers, *why;
} unshared[] = {
    {"- conv2d: {name: c, out: 3, kernel: 3}\n"
     "- conv2d: {out: 3, kernel: 1, parameters: {weight: c.weight}}\n",
     "net.yaml:2:3: layer conv2d1 (conv2d): c.weight, which it shares with a layer before it, is "
     "(3, 3, 3, 3) there, and here it would be a parameter (3, 3, 1, 1)"},
    {"- batch_norm: {name: b}\n- batch_norm: {parameters: {gamma: b.moving_mean}}\n",
     "b.moving_mean, which it shares"},
    {"- batch_norm: {name: b}\n- batch_norm: {parameters: {moving_mean: b.moving_mean}}\n",
     "net.yaml:2:3: layer batch_norm1 (batch_norm): "},
};

START_TEST(what_cannot_be_shared_has_its_place)
{
    refused(with_end(unshared[_i].layers), unshared[_i].why);
}
END_TEST

/* ---- shapes ---- */

/* 12 x 10; PyTorch's formula: floor((size + 2 padding - kernel) / stride) + 1. */
static const struct {
    const char *layer, *shape;
} windows[] = {
    {"conv2d: {out: 5, kernel: 3}", "(8, 5, 10, 8)"},
    {"conv2d: {out: 5, kernel: 3, padding: 1}", "(8, 5, 12, 10)"},
    {"conv2d: {out: 5, kernel: 3, padding: same, stride: 2}", "(8, 5, 6, 5)"},
    {"conv2d: {out: 5, kernel: [5, 2], stride: [2, 3]}", "(8, 5, 4, 3)"},
    {"conv2d: {out: 5, kernel: [5, 2], padding: [2, 1]}", "(8, 5, 12, 11)"},
    {"conv2d: {out: 5, kernel: [1, 10], padding: valid}", "(8, 5, 12, 1)"},
    {"conv2d: {out: 5, kernel: 3, dilation: 2}", "(8, 5, 8, 6)"},
    {"conv2d: {out: 5, kernel: 3, dilation: [1, 4], padding: same}", "(8, 5, 12, 10)"},
    {"conv2d: {out: 5, kernel: [3, 2], dilation: [3, 5], stride: 2, padding: [4, 1]}",
     "(8, 5, 7, 4)"},
    {"conv_transpose2d: {out: 5, kernel: 3}", "(8, 5, 14, 12)"},
    {"conv_transpose2d: {out: 5, kernel: 4, stride: 2, padding: 1}", "(8, 5, 24, 20)"},
    {"conv_transpose2d: {out: 6, kernel: [3, 2], stride: [3, 1], padding: [1, 0], output_padding: "
     "[2, 0], dilation: [1, 4], groups: 3}",
     "(8, 6, 36, 14)"},
    {"max_pool: {kernel: 2}", "(8, 3, 6, 5)"},
    {"max_pool: {kernel: 3, stride: 2, padding: same}", "(8, 3, 6, 5)"},
    {"max_pool: {kernel: [3, 2], stride: [1, 2]}", "(8, 3, 10, 5)"},
    {"avg_pool: {kernel: 5, stride: 5}", "(8, 3, 2, 2)"},
    /* torch.nn.MaxPool2d(..., ceil_mode=True)(torch.zeros(8, 3, 12, 10)).shape */
    {"max_pool: {kernel: 3, stride: 2, ceil: true}", "(8, 3, 6, 5)"},
    {"max_pool: {kernel: 3, stride: [4, 3], ceil: true}", "(8, 3, 3, 4)"},
    {"max_pool: {kernel: 2, stride: [5, 4], ceil: true}", "(8, 3, 3, 3)"},
    {"max_pool: {kernel: [1, 3], stride: [5, 5], padding: [0, 1], ceil: true}", "(8, 3, 3, 3)"},
    {"avg_pool: {kernel: 4, stride: 3, ceil: true}", "(8, 3, 4, 3)"},
};

START_TEST(windows_have_the_shapes_of_their_formula)
{
    char text[256];
    char buf[96];
    snprintf(text, sizeof(text), "- %s\n", windows[_i].layer);
    struct graph *graph = built(with_end(text));
    const struct tensor *made = graph_tensor(graph, graph_op(graph, 0)->out[0]);
    ck_assert_str_eq(shape_format(&made->shape, buf, sizeof(buf)), windows[_i].shape);
    graph_destroy(graph);
}
END_TEST

START_TEST(branches_stand_in_a_row)
{
    struct graph *graph = built(with_end("- repeat:\n"
                                         "    name: block\n"
                                         "    times: 2\n"
                                         "    layers:\n"
                                         "      - concat:\n"
                                         "          branches:\n"
                                         "            - []\n"
                                         "            - - batch_norm\n"
                                         "              - conv2d: {out: 4, kernel: 1}\n"
                                         "- concat: {name: c, branches: [[relu, conv2d: {out: 6, "
                                         "kernel: 1}], [], [conv2d: {out: 2, kernel: 1}]]}\n"));
    ck_shape(graph, "block.0.batch_norm1.gamma", "(3)");
    ck_shape(graph, "block.1.conv2d1.weight", "(4, 7, 1, 1)"); /* 3 and 4 */
    ck_shape(graph, "c.conv2d1.weight", "(6, 11, 1, 1)");
    ck_shape(graph, "c.conv2d2.weight", "(2, 11, 1, 1)");
    ck_shape(graph, "dense1.weight", "(5, 19)"); /* 6, 11 and 2 */
    const struct op *first = graph_op(graph, 2);
    ck_assert_int_eq(first->kind, OP_CONCAT);
    ck_assert_int_eq(first->in[0], graph_data_index(graph));
    graph_destroy(graph);
}
END_TEST

START_TEST(groups_read_their_channels_and_a_bias_is_one_a_channel)
{
    struct graph *graph = built(with_end("- conv2d: {name: a, out: 6, kernel: 3, groups: 3}\n"
                                         "- conv2d: {name: b, out: 4, kernel: 1, groups: 2, bias: "
                                         "fan_in, weight: he_normal}\n"
                                         "- conv2d: {name: c, out: 4, kernel: 1, bias: zeros}\n"));
    ck_shape(graph, "a.weight", "(6, 1, 3, 3)");
    ck_assert_int_lt(graph_find(graph, "a.bias"), 0);
    ck_shape(graph, "b.weight", "(4, 3, 1, 1)");
    ck_shape(graph, "b.bias", "(4)");
    ck_assert_double_eq_tol(named(graph, "b.weight")->init.a, 0.816496580927726, 1e-12);
    ck_assert_double_eq_tol(named(graph, "b.bias")->init.a, 0.5773502691896258, 1e-12);
    ck_assert_double_eq(named(graph, "c.bias")->init.a, 0);
    ck_assert_int_eq(graph_op(graph, 0)->groups, 3);
    graph_destroy(graph);
    graph = built("- flatten\n- dense: {name: fc, out: classes, bias: none}\n");
    ck_assert_int_lt(graph_find(graph, "fc.bias"), 0);
    ck_assert_int_eq(graph_op(graph, 1)->n_in, 2);
    graph_destroy(graph);
}
END_TEST

/* The weight is PyTorch's, (in, out / groups, h, w), and so are its fans. */
START_TEST(a_transposed_convolution_has_the_weight_of_torch)
{
    struct graph *graph = built(
        with_end("- conv_transpose2d: {name: a, out: 6, kernel: [2, 4], groups: 3, bias: fan_in}\n"
                 "- conv_transpose2d: {name: b, out: 4, kernel: 1, weight: xavier_uniform}\n"));
    ck_shape(graph, "a.weight", "(3, 2, 2, 4)");
    ck_shape(graph, "a.bias", "(6)");
    ck_assert_double_eq_tol(named(graph, "a.weight")->init.a, 0.25, 1e-12); /* 16 values */
    ck_assert_double_eq_tol(named(graph, "a.bias")->init.a, 0.25, 1e-12);
    ck_shape(graph, "b.weight", "(6, 4, 1, 1)");
    ck_assert_int_lt(graph_find(graph, "b.bias"), 0);
    ck_assert_double_eq_tol(named(graph, "b.weight")->init.a, sqrt(6.0 / 10), 1e-12);
    graph_destroy(graph);
}
END_TEST

START_TEST(a_residual_adds_what_its_shortcut_makes)
{
    struct graph *graph = built(with_end("- residual:\n"
                                         "    body:\n"
                                         "      - conv2d: {out: 4, kernel: 3, padding: same}\n"
                                         "      - relu\n"
                                         "    shortcut:\n"
                                         "      - conv2d: {out: 4, kernel: 1}\n"));
    const struct op *add = graph_op(graph, 3);
    ck_assert_int_eq(add->kind, OP_ADD);
    ck_assert_int_eq(graph_op(graph, graph_tensor(graph, add->in[0])->producer)->kind, OP_RELU);
    ck_assert_int_eq(graph_tensor(graph, add->in[1])->producer, 2);
    ck_shape(graph, "conv2d2.weight", "(4, 3, 1, 1)"); /* body first */
    graph_destroy(graph);
}
END_TEST

/* ---- first values ---- */

static const struct {
    const char *rule;
    enum init_kind kind;
    double a;
} rules[] = {
    /* 4 outputs of 3 x 5 x 2 values: fan_in 30, fan_out 40 */
    {"", INIT_UNIFORM, 1 / 5.477225575051661},
    {", weight: fan_in", INIT_UNIFORM, 1 / 5.477225575051661},
    {", weight: zeros", INIT_CONSTANT, 0},
    {", weight: ones", INIT_CONSTANT, 1},
    {", weight: he_normal", INIT_NORMAL, 0.2581988897471611},
    {", weight: he_uniform", INIT_UNIFORM, 0.4472135954999579},
    {", weight: xavier_normal", INIT_NORMAL, 0.1690308509457033},
    {", weight: xavier_uniform", INIT_UNIFORM, 0.2927700218845599},
    {", weight: {constant: -2.5}", INIT_CONSTANT, -2.5},
    {", weight: {normal: 0.02}", INIT_NORMAL, 0.02},
    {", weight: {uniform: 0.07}", INIT_UNIFORM, 0.07},
};

START_TEST(parameters_begin_as_their_rule_says)
{
    char text[256];
    snprintf(text, sizeof(text), "- conv2d: {name: c, out: 4, kernel: [5, 2]%s}\n", rules[_i].rule);
    struct graph *graph = built(with_end(text));
    const struct init init = named(graph, "c.weight")->init;
    ck_assert_int_eq(init.kind, rules[_i].kind);
    ck_assert_double_eq_tol(init.a, rules[_i].a, 1e-12);
    graph_destroy(graph);
}
END_TEST

/* A bias has the fans of its layer: 360 values make 5. */
START_TEST(a_bias_begins_as_its_weight_does)
{
    struct graph *graph = built("- flatten\n- dense: {name: fc, out: classes, weight: "
                                "xavier_uniform, bias: xavier_uniform}\n");
    ck_assert_double_eq_tol(named(graph, "fc.bias")->init.a, 0.12821215295120647, 1e-12);
    ck_assert_double_eq(named(graph, "fc.bias")->init.a, named(graph, "fc.weight")->init.a);
    graph_destroy(graph);
}
END_TEST

START_TEST(defaults_are_those_of_the_manual)
{
    struct graph *graph = built(with_end("- conv2d: {out: 4, kernel: 3}\n- batch_norm\n"));
    ck_assert_double_eq(named(graph, "batch_norm1.moving_mean")->momentum, 0.9);
    ck_assert_double_eq(graph_op(graph, 1)->epsilon, 1e-5);
    ck_assert_double_eq(named(graph, "batch_norm1.gamma")->init.a, 1);
    ck_assert_double_eq(named(graph, "batch_norm1.beta")->init.a, 0);
    ck_assert_int_eq(graph_op(graph, 0)->window.stride_h, 1);
    ck_assert_int_eq(graph_op(graph, 0)->window.pad_left, 0);
    ck_assert_int_eq(named(graph, "dense1.bias")->init.kind, INIT_UNIFORM);
    ck_assert_double_eq_tol(named(graph, "dense1.bias")->init.a, 0.5, 1e-12);
    graph_destroy(graph);
}
END_TEST

/* ---- refusals ---- */

static const struct {
    const char *text, *words;
} wrong[] = {
    {"- conv3d: {out: 4}\n", "net.yaml:1:3: layers[0]: conv3d is no layer; did you mean conv2d?; "
                             "known: conv2d conv_transpose2d dense embedding"},
    {"- relu\n- batchnorm\n", "net.yaml:2:3: layers[1]: batchnorm is no layer; did you mean "
                              "batch_norm?"},
    {"- relu: {slope: 1}\n", "net.yaml:1:10: layers[0].relu.slope is no key of relu; known here: "},
    {"- relu6: {max: 8}\n", "net.yaml:1:11: layers[0].relu6.max is no key of relu6"},
    {"- leaky_relu: {alpha: 0.1}\n", "layers[0].leaky_relu.alpha is no key of leaky_relu; "},
    {"- leaky_relu: {slope: steep}\n", "layers[0].leaky_relu.slope: 'steep' is no number; give"},
    {"- leaky_relu: {slope: .nan}\n", "layers[0].leaky_relu.slope: '.nan' is not finite; give"},
    {"- elu: {alpha: 2e6}\n", "layers[0].elu.alpha: '2e6' is out of range; give a number from "},
    {"- gelu: {approximate: erf}\n",
     "layers[0].gelu.approximate: 'erf' is not known; legal: none | tanh"},
    {"- layer_norm: {over: pixels}\n",
     "layers[0].layer_norm.over: 'pixels' is not known; legal: sample | channels"},
    {"- layer_norm: {epsilon: 0}\n", "layers[0].layer_norm.epsilon: '0' is out of range"},
    {"- layer_norm: {gamma: none}\n", "net.yaml:1:3: layer layer_norm1 (layer_norm): there is no "
                                      "beta without a gamma; write beta: none, too"},
    {"- group_norm\n", "layers[0].group_norm.groups is missing (of channels, each by itself)"},
    {"- group_norm: {groups: 2}\n", "net.yaml:1:3: layer group_norm1 (group_norm): 3 channels are "
                                    "no multiple of 2 groups"},
    {"- flatten\n- instance_norm\n",
     "net.yaml:2:3: layer instance_norm1 (instance_norm): it reads images (n, channels, height, "
     "width), and gets (8, 360)"},
    {"- conv_transpose2d: {out: 4, kernel: 2, padding: same}\n",
     "layer conv_transpose2d1 (conv_transpose2d): padding: same is not for a transposed "},
    {"- conv_transpose2d: {out: 4, kernel: 2, output_padding: 1}\n",
     "conv_transpose2d: output padding must be at least 0 and less than the stride: window 2x2"},
    {"- conv_transpose2d: {out: 4, kernel: 2, groups: 2}\n",
     "2 groups of 3 channels that make 4: both must be multiples of it"},
    {"- flatten\n- conv_transpose2d: {out: 4, kernel: 2}\n", "it reads images (n, channels, "},
    {"- flatten\n- tokens\n", "net.yaml:2:3: layer tokens: it reads images (n, channels, height, "},
    {"- embedding: {words: 4, size: 8}\n", "net.yaml:1:3: layer embedding1 (embedding): embedding: "
                                           "the data must be rows of tokens (n, tokens)"},
    {"- embedding: {size: 8}\n",
     "layers[0].embedding.words is missing (that there are: tokens are"},
    {"- embedding: {words: 4, size: 0}\n", "layers[0].embedding.size: '0' is out of range"},
    {"- attention: {heads: 2}\n", "net.yaml:1:3: layer attention1 (attention): it reads sequences "
                                  "(n, tokens, channels), and gets (8, 3, 12, 10)"},
    {"- positional_embedding\n", "it reads sequences (n, tokens, channels), and gets (8, 3, 12"},
    {"- tokens\n- token: {at: 120}\n- dense: {out: classes}\n",
     "layer token: token 120 of 120: they are counted from 0"},
    {"- class_token\n", "it reads sequences (n, tokens, channels), and gets (8, 3, 12"},
    {"- upsample: {factor: 1024}\n- upsample: {factor: 1024}\n",
     "layer upsample: upsample: the result has more than 2^40 elements"},
    {"- upsample: {factor: 2, align_corners: true}\n",
     "layers[0].upsample: align_corners is of `mode: linear`"},
    {"- flatten\n- pad: {left: 1}\n", "it reads images (n, channels, height, width)"},
    {"- slice: {first: 2, size: 2}\n", "channels 2 to 3 of 3 are not there"},
    {"- slice: {first: 3, size: 1}\n", "channels 3 to 3 of 3 are not there"},
    {"- channel_shuffle: {groups: 2}\n", "3 channels are no multiple of 2 groups"},
    {"- tokens\n- dot_product_attention: {heads: 2}\n", "1 channels are no multiple of 2 heads"},
    {"- attention: {heads: 2, parameters: {out_proj: p}}\n", "layers[0].attention.parameters"},
    {"- softmax: {axis: 1}\n", "layers[0].softmax.axis is no key of softmax"},
    {"- flatten\n- dense: {out: 1}\n- softmax\n", "net.yaml:3:3: layer softmax: softmax: "
                                                  "the softmax of one value is 1, whatever it is"},
    {"- flatten\n- group_norm: {groups: 360}\n", "a group has one value, of which normalisation"},
    {"- flatten\n- dense: {out: 1}\n- layer_norm\n", "a sample has one value, of which"},
    {"- conv2d: {out: 1, kernel: 3}\n- layer_norm: {over: channels}\n",
     "a pixel or token has one value"},
    {"- dense: {outs: 4}\n", "layers[0].dense.outs is no key of dense; did you mean out?"},
    {"- dense: {}\n", "layers[0].dense.out is missing (values that it makes of a row, or of each "
                      "token); give a "
                      "whole number from 1 to 1048576, or the word classes"},
    {"- dense: {out: many}\n", "layers[0].dense.out: 'many' is no whole number; give a whole"},
    {"- dense: {out: 0}\n", "layers[0].dense.out: '0' is out of range"},
    {"- conv2d: {out: 4}\n", "layers[0].conv2d.kernel is missing"},
    {"- conv2d: {out: 4, kernel: [3, 3, 3]}\n", "layers[0].conv2d.kernel: a list does not fit"},
    {"- conv2d: {out: 4, kernel: 3, padding: full}\n", "layers[0].conv2d.padding: 'full' is"},
    {"- conv2d: {out: 4, kernel: 3, weight: {normal: -1}}\n",
     "has a negative width; give zeros | "},
    {"- conv2d: {out: 4, kernel: 3, weight: {gauss: 1}}\n",
     "is no way to begin; give zeros | ones"},
    {"- conv2d: {out: 4, kernel: 3, weight: normal}\n", "is no way to begin"},
    {"- conv2d: {out: 4, kernel: 3, weight: none}\n", "is no way to begin; give zeros"},
    {"- conv2d: {out: 4, kernel: 3, bias: false}\n", "is no way to begin; give none | zeros"},
    {"- conv2d: {out: 4, kernel: 3, groups: 2}\n",
     "net.yaml:1:3: layer conv2d1 (conv2d): 2 groups of 3 channels that make 4: both must be"},
    {"- conv2d: {out: 4, kernel: 3, groups: 3}\n", "3 groups of 3 channels that make 4"},
    {"- conv2d: {out: 4, kernel: 3, dilation: 0}\n", "layers[0].conv2d.dilation: "},
    {"- conv2d: {out: 4, kernel: 3, dilation: 6}\n",
     "conv2d: the kernel is larger than the padded image: window 3x3"},
    {"- repeat: {times: 2, layers: relu}\n", "layers[0].repeat.layers must be a list of layers"},
    {"- repeat: {times: 0, layers: [relu]}\n", "layers[0].repeat.times: '0' is out of range"},
    {"- {relu: {}, flatten: {}}\n", "layers[0] must have exactly one name; write each as"},
    {"- [relu]\n", "net.yaml:1:3: layers[0] must have exactly one name"},
    {"- sequential: {layers: [nothing]}\n", "sequential.layers[0]: nothing is no layer"},
    {"- conv2d: {out: 4, kernel: 13}\n",
     "net.yaml:1:3: layer conv2d1 (conv2d): conv2d: the kernel is larger than the padded image: "
     "window 13x13, stride 1x1, padding top 0 left 0 bottom 0 right 0; inputs: data (8, 3, 12, "
     "10), conv2d1.weight (4, 3, 13, 13)"},
    {"- relu\n- dense: {name: fc, out: 4}\n",
     "net.yaml:2:3: layer fc (dense): it reads rows (n, values), and gets (8, 3, 12, 10); put a "
     "flatten or a global_avg_pool before it"},
    {"- flatten\n- conv2d: {out: 4, kernel: 3}\n",
     "net.yaml:2:3: layer conv2d1 (conv2d): it reads images (n, channels, height, width), and "
     "gets (8, 360)"},
    {"- flatten\n- max_pool: {kernel: 2}\n", "net.yaml:2:3: layer max_pool: it reads images"},
    {"- residual:\n    body:\n      - conv2d: {out: 4, kernel: 3}\n",
     "net.yaml:1:3: layer residual: add: the shapes differ; inputs: conv2d1 (8, 4, 10, 8), data "
     "(8, 3, 12, 10)"},
    {"- flatten\n- dense: {out: 4}\n",
     "net.yaml:1:1: layers: the last one makes (8, 4), and 5 classes want (8, 5)"},
    {"- flatten\n- dense: {out: classes}\n- softmax\n",
     "net.yaml:1:1: layers: the last one is a softmax, and loss softmax_cross_entropy takes the "
     "softmax of what it gets; leave the layer out"},
    {"layers:\n  - relu\n", "layers: the last one makes (8, 3, 12, 10), and 5 classes want (8, 5)"},
    {"- concat: {branches: [[relu], [conv2d: {out: 2, kernel: 3}]]}\n",
     "net.yaml:1:3: layer concat: concat: the shapes differ in more than their channels"},
    {"- concat: {branches: [[relu]]}\n",
     "layers[0].concat.branches: a list is no list of two to eight lists; give a list"},
    {"- concat: {branches: [[relu], relu]}\n",
     "layers[0].concat.branches[1] must be a list of layers; [] is the input itself"},
    {"- concat: {branches: [[], [nothing]]}\n",
     "layers[0].concat.branches[1][0]: nothing is no layer"},
    {"[]\n", "net.yaml:1:1: a network is a list of layers"},
    {"layers: []\n", "net.yaml:1:9: layers is empty; put a layer in it"},
    {"- residual: {body: [relu], shortcut: []}\n", "layers[0].residual.shortcut is empty"},
    {"relu\n", "net.yaml:1:1: a network is a list of layers, or a map that has one under the key"},
    {"input: {height: 32}\nlayers: [flatten, dense: {out: classes}]\n",
     "network net wants Cx32xW and gets 3x12x10; add a resize transform"},
    {"input: {hight: 32}\nlayers: [flatten]\n", "input.hight is no key of a network; did you mean "
                                                "input.height?"},
    {"summary: x\n", "layers is missing (what it is, one behind the other); give a list of layers"},
};

START_TEST(refusals_say_where_and_what)
{
    refused(wrong[_i].text, wrong[_i].words);
}
END_TEST

START_TEST(a_list_that_grows_without_end_is_refused)
{
    refused("- repeat:\n    times: 1000\n    layers:\n"
            "      - repeat: {times: 1000, layers: [relu]}\n",
            "the network has more than 10000 layers");
}
END_TEST

START_TEST(a_name_that_files_cannot_hold_is_refused)
{
    char text[512];
    static const char part[] = "a-name-of-forty-characters-and-no-more-x";
    snprintf(text, sizeof(text),
             "- sequential: {name: %s, layers: [conv2d: {name: %s, out: 4, kernel: 1}]}\n", part,
             part);
    refused(with_end(text), "net.yaml:1:");
}
END_TEST

/* ---- canonical form ---- */

/* All defaults are in it, and it makes the same graph. */
static void check_again(const struct network *network, const struct network_input *input)
{
    struct network *again = NULL;
    struct graph *a = NULL;
    struct graph *b = NULL;
    size_t size = 0;
    char *text = network_format(network, &size);
    ck_assert_ptr_nonnull(text);
    ck_ms_ok(network_parse(text, size, "canonical", "net", &again, err));
    char *twice = network_format(again, NULL);
    ck_assert_str_eq(text, twice);
    ck_ms_ok(network_build(network, input, NETWORK_LOSS_SOFTMAX_CE, &a, err));
    ck_ms_ok(network_build(again, input, NETWORK_LOSS_SOFTMAX_CE, &b, err));
    char *as = graph_describe(a);
    char *bs = graph_describe(b);
    ck_assert_str_eq(strchr(as, '\n'), strchr(bs, '\n')); /* behind the name */
    ck_assert_int_eq(graph_n_stored(a), graph_n_stored(b));
    for (int i = 0; i < graph_n_stored(a); i++) {
        const struct tensor *x = graph_tensor(a, graph_stored_at(a, i));
        const struct tensor *y = graph_tensor(b, graph_stored_at(b, i));
        ck_assert_str_eq(x->name, y->name);
        ck_assert_int_eq(x->init.kind, y->init.kind);
        ck_assert(x->init.a == y->init.a && x->momentum == y->momentum);
    }
    free(as);
    free(bs);
    graph_destroy(a);
    graph_destroy(b);
    free(twice);
    free(text);
    network_destroy(again);
}

START_TEST(branches_are_the_same_from_their_canonical_form)
{
    static const char text[] =
        "- conv2d: {out: 12, kernel: 3, dilation: [1, 2], bias: {normal: 0.25}, padding: same}\n"
        "- repeat:\n"
        "    times: 3\n"
        "    name: block\n"
        "    layers:\n"
        "      - concat: {branches: [[], [batch_norm, conv2d: {out: 6, kernel: 1, groups: 6}]]}\n"
        "- global_avg_pool\n"
        "- concat: {name: head, branches: [[dense: {out: 7, bias: none}], []]}\n"
        "- dense: {out: classes}\n";
    struct network *network = NULL;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    check_again(network, &images);
    network_destroy(network);
}
END_TEST

START_TEST(known_networks_are_the_same_from_their_canonical_form)
{
    const char *name = network_known((size_t)_i);
    const int is_mnist = strcmp(name, "mnist") == 0;
    const struct network_input input = {.batch = 2,
                                        .channels = is_mnist ? 1 : 3,
                                        .height = is_mnist ? 28 : 32,
                                        .width = is_mnist ? 28 : 32,
                                        .classes = 7};
    struct network *network = NULL;
    ck_ms_ok(network_by_name(name, &network, err));
    check_again(network, &input);
    network_destroy(network);
}
END_TEST

START_TEST(the_canonical_form_has_all_defaults)
{
    static const char text[] = "- conv2d: {out: 4, kernel: 3}\n- global_avg_pool\n"
                               "- dense: {out: classes, weight: {normal: 0.5}}\n";
    struct network *network = NULL;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    char *canonical = network_format(network, NULL);
    ck_assert_str_eq(canonical, "{\"layers\":[{\"conv2d\":{\"bias\":\"none\",\"dilation\":[1,1],"
                                "\"groups\":1,\"kernel\":[3,3],\"out\":4,\"padding\":[0,0],"
                                "\"stride\":[1,1],\"weight\":\"fan_in\"}},{\"global_avg_pool\":{}},"
                                "{\"dense\":{\"bias\":\"fan_in\",\"out\":\"classes\",\"weight\":"
                                "{\"normal\":0.5}}}],\"name\":\"net\",\"summary\":\"\"}");
    check_again(network, &images);
    free(canonical);
    network_destroy(network);
}
END_TEST

/* ---- which layer an op is of ---- */

struct layered {
    struct graph *graph;
    struct network_layers *layers;
};

static struct layered layered(const struct network *network, const struct network_input *input)
{
    struct layered of = {NULL, NULL};
    ck_ms_ok(
        network_build_layers(network, input, NETWORK_LOSS_SOFTMAX_CE, &of.layers, &of.graph, err));
    return of;
}

static void layered_done(struct layered *of)
{
    graph_destroy(of->graph);
    network_layers_destroy(of->layers);
}

static const char in_lists[] = "- sequential:\n"
                               "    name: stem\n"
                               "    layers:\n"
                               "      - conv2d: {name: conv, out: 4, kernel: 3, padding: 1}\n"
                               "      - relu\n"
                               "      - sequential: {layers: [relu]}\n" /* the same counts */
                               "- repeat:\n"
                               "    times: 2\n"
                               "    first: a\n"
                               "    layers:\n"
                               "      - residual:\n"
                               "          body: [conv2d: {out: 4, kernel: 1}, relu]\n"
                               "          shortcut: [batch_norm]\n"
                               "      - residual: {name: last, body: [relu]}\n"
                               "- relu\n"
                               "- global_avg_pool\n"
                               "- dense: {out: classes}\n";

START_TEST(layers_that_make_something_are_listed_in_the_order_of_their_ops)
{
    static const struct {
        const char *name, *kind;
        int n_ops;
    } want[] = {
        {"stem.conv", "conv2d", 1},
        {"stem.relu1", "relu", 1},
        {"stem.relu2", "relu", 1},
        {"a.conv2d1", "conv2d", 1},
        {"a.relu1", "relu", 1},
        {"a.batch_norm1", "batch_norm", 1},
        {"a.residual1", "residual", 1},
        {"a.last.relu1", "relu", 1},
        {"a.last", "residual", 1},
        {"b.conv2d1", "conv2d", 1},
        {"b.relu1", "relu", 1},
        {"b.batch_norm1", "batch_norm", 1},
        {"b.residual1", "residual", 1},
        {"b.last.relu1", "relu", 1},
        {"b.last", "residual", 1},
        {"relu1", "relu", 1},
        {"global_avg_pool1", "global_avg_pool", 2},
        {"dense1", "dense", 1},
    };
    struct network *network = NULL;
    ck_ms_ok(network_parse(in_lists, strlen(in_lists), "net.yaml", "net", &network, err));
    struct layered of = layered(network, &images);
    network_destroy(network); /* a table does not borrow it */

    ck_assert_uint_eq(of.layers->n, MS_ARRAY_SIZE(want));
    for (size_t i = 0; i < of.layers->n; i++) {
        ck_assert_str_eq(of.layers->at[i].name, want[i].name);
        ck_assert_str_eq(of.layers->at[i].kind, want[i].kind);
        ck_assert_int_eq(of.layers->at[i].n_ops, want[i].n_ops);
    }
    layered_done(&of);
}
END_TEST

static int is_part_of(const char *whole, const char *layer)
{
    const size_t n = strlen(layer);
    return strncmp(whole, layer, n) == 0 && whole[n] == '.';
}

/* Each op is of one layer, whose parameters it reads; the last one is the loss. */
static void ck_ranges(const struct layered *of)
{
    int next = 0;
    for (size_t i = 0; i < of->layers->n; i++) {
        const struct network_layer *layer = &of->layers->at[i];
        ck_assert_int_eq(layer->first_op, next);
        ck_assert_int_gt(layer->n_ops, 0);
        for (int at = next; at < next + layer->n_ops; at++) {
            const struct op *op = graph_op(of->graph, at);
            for (int in = 0; in < op->n_in; in++) {
                const struct tensor *t = graph_tensor(of->graph, op->in[in]);
                const int is_own = t->role != TENSOR_PARAM || is_part_of(t->name, layer->name);
                ck_assert_msg(is_own, "%s reads %s", layer->name, t->name);
            }
        }
        next += layer->n_ops;
        ck_assert_int_eq(graph_op(of->graph, next - 1)->out[0], layer->output);
    }
    ck_assert_int_eq(next, graph_n_ops(of->graph) - 1);
    ck_assert_int_eq(of->layers->at[of->layers->n - 1].output, graph_output(of->graph));
}

START_TEST(each_op_is_of_one_layer_and_the_graph_is_the_same)
{
    const char *name = network_known((size_t)_i);
    const int is_mnist = name != NULL && strcmp(name, "mnist") == 0;
    const struct network_input known = {.batch = 2,
                                        .channels = is_mnist ? 1 : 3,
                                        .height = is_mnist ? 28 : 32,
                                        .width = is_mnist ? 28 : 32,
                                        .classes = 7};
    const struct network_input *input = name != NULL ? &known : &images;
    struct network *network = NULL;
    struct graph *plain = NULL;
    if (name != NULL) {
        ck_ms_ok(network_by_name(name, &network, err));
    } else {
        ck_ms_ok(network_parse(in_lists, strlen(in_lists), "net.yaml", "net", &network, err));
    }
    struct layered of = layered(network, input);
    ck_ms_ok(network_build(network, input, NETWORK_LOSS_SOFTMAX_CE, &plain, err));
    char *as = graph_describe(of.graph);
    char *bs = graph_describe(plain);

    ck_ranges(&of);
    ck_assert_str_eq(as, bs);

    free(as);
    free(bs);
    graph_destroy(plain);
    layered_done(&of);
    network_destroy(network);
}
END_TEST

START_TEST(a_network_that_does_not_fit_has_no_table)
{
    static const char text[] = "- relu\n- dense: {out: classes}\n";
    struct network *network = NULL;
    struct network_layers *layers = NULL;
    struct graph *graph = NULL;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    ck_ms_fails(
        network_build_layers(network, &images, NETWORK_LOSS_SOFTMAX_CE, &layers, &graph, err),
        MS_E_INVALID, "net.yaml:2:3: layer dense1 (dense): it reads rows");
    ck_assert_ptr_null(layers);
    ck_assert_ptr_null(graph);

    network_destroy(network);
}
END_TEST

/* ---- activations ---- */

/* Defaults are those of torch.nn. */
static const struct {
    const char *layer;
    enum op_kind kind;
    double alpha;
    const char *canonical;
} activations[] = {
    {"relu6", OP_RELU6, 0, "{\"relu6\":{}}"},
    {"leaky_relu", OP_LEAKY_RELU, 0.01, "{\"leaky_relu\":{\"slope\":0.01}}"},
    {"leaky_relu: {slope: -0.25}", OP_LEAKY_RELU, -0.25, "{\"leaky_relu\":{\"slope\":-0.25}}"},
    {"elu", OP_ELU, 1, "{\"elu\":{\"alpha\":1.0}}"},
    {"elu: {alpha: 0.5}", OP_ELU, 0.5, "{\"elu\":{\"alpha\":0.5}}"},
    {"gelu", OP_GELU, 0, "{\"gelu\":{\"approximate\":\"none\"}}"},
    {"gelu: {approximate: none}", OP_GELU, 0, "{\"gelu\":{\"approximate\":\"none\"}}"},
    {"gelu: {approximate: tanh}", OP_GELU_TANH, 0, "{\"gelu\":{\"approximate\":\"tanh\"}}"},
    {"silu", OP_SILU, 0, "{\"silu\":{}}"},
    {"hard_swish", OP_HARD_SWISH, 0, "{\"hard_swish\":{}}"},
    {"sigmoid", OP_SIGMOID, 0, "{\"sigmoid\":{}}"},
    {"tanh", OP_TANH, 0, "{\"tanh\":{}}"},
    {"softmax", OP_SOFTMAX, 0, "{\"softmax\":{}}"},
};

/* Of images and of rows. */
START_TEST(activations_are_the_op_of_their_name)
{
    char text[512];
    struct network *network = NULL;
    snprintf(text, sizeof(text), "- %s\n- flatten\n- %s\n- dense: {out: classes}\n",
             activations[_i].layer, activations[_i].layer);
    struct graph *graph = built(text);
    for (int i = 0; i <= 2; i += 2) {
        const struct op *op = graph_op(graph, i);
        ck_assert_int_eq(op->kind, activations[_i].kind);
        ck_assert_double_eq(op->alpha, activations[_i].alpha);
        ck_assert(shape_equal(&graph_tensor(graph, op->in[0])->shape,
                              &graph_tensor(graph, op->out[0])->shape));
    }
    graph_destroy(graph);
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    char *canonical = network_format(network, NULL);
    ck_assert_msg(strstr(canonical, activations[_i].canonical) != NULL, "%s", canonical);
    check_again(network, &images);
    free(canonical);
    network_destroy(network);
}
END_TEST

/* ---- sequences ---- */

static const struct network_input sequences = {
    .batch = 8, .channels = 6, .height = 1, .width = 1, .classes = 5, .tokens = 6};

/* Shapes, names and first values are those of torch.nn.Embedding and MultiheadAttention. */
START_TEST(layers_of_tokens_have_the_parameters_of_torch)
{
    static const char text[] = "- embedding: {words: 300, size: 12}\n"
                               "- positional_embedding: {name: places}\n"
                               "- attention: {name: a, heads: 3, causal: true, dropout: 0.25}\n"
                               "- layer_norm: {over: channels, parameters: torch}\n"
                               "- layer_norm\n"
                               "- dense: {out: classes}\n";
    struct network *network = NULL;
    struct graph *graph = NULL;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    ck_ms_ok(network_build(network, &sequences, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    ck_shape(graph, "embedding1.weight", "(300, 12)");
    ck_shape(graph, "places.weight", "(6, 12)");
    ck_shape(graph, "a.in_proj_weight", "(36, 12)");
    ck_shape(graph, "a.in_proj_bias", "(36)");
    ck_shape(graph, "a.out_proj.weight", "(12, 12)");
    ck_shape(graph, "a.out_proj.bias", "(12)");
    ck_shape(graph, "layer_norm1.weight", "(12)");
    ck_shape(graph, "layer_norm2.gamma", "(6, 12)");
    ck_shape(graph, "dense1.weight", "(5, 12)");
    const struct tensor *label = graph_tensor(graph, graph_label_index(graph));
    ck_assert(shape_equal(&label->shape, &(struct shape){2, {8, 6}}));
    ck_assert_double_eq(named(graph, "embedding1.weight")->init.a, 1);
    ck_assert_double_eq_tol(named(graph, "a.in_proj_weight")->init.a, sqrt(6.0 / 48), 1e-12);
    ck_assert_double_eq_tol(named(graph, "a.out_proj.weight")->init.a, 1 / sqrt(12.0), 1e-12);
    ck_assert_double_eq(named(graph, "a.in_proj_bias")->init.a, 0);
    ck_assert_int_eq(graph_op(graph, 3)->kind, OP_ATTENTION);
    ck_assert_int_eq(graph_op(graph, 3)->groups, 3);
    ck_assert_int_eq(graph_op(graph, 3)->is_causal, 1);
    ck_assert_double_eq(graph_op(graph, 3)->rate, 0.25);
    check_again(network, &sequences);
    graph_destroy(graph);
    network_destroy(network);
}
END_TEST

/* What vision transformers have around their blocks, with the shapes of nn.Parameter. */
START_TEST(a_token_comes_and_goes)
{
    static const char text[] = "- embedding: {words: 300, size: 12}\n"
                               "- class_token: {name: cls, leading: 2}\n"
                               "- positional_embedding: {name: places, leading: 1}\n"
                               "- dense: {out: 36}\n"
                               "- dot_product_attention: {heads: 3, causal: true, dropout: 0.5}\n"
                               "- token: {at: 1}\n"
                               "- slice: {first: 2, size: 9}\n"
                               "- channel_shuffle: {groups: 3}\n"
                               "- dense: {out: classes}\n";
    struct network_input input = sequences;
    struct network *network = NULL;
    struct graph *graph = NULL;
    input.tokens = 0;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    ck_shape(graph, "cls.weight", "(1, 1, 12)");
    ck_shape(graph, "places.weight", "(1, 7, 12)");
    ck_assert_double_eq(named(graph, "cls.weight")->init.a, 0);
    ck_shape(graph, "dense2.weight", "(5, 9)");
    const struct op *attention = graph_op(graph, 4);
    ck_assert_int_eq(attention->kind, OP_ATTENTION);
    ck_assert_int_eq(attention->groups, 3);
    ck_assert_int_eq(attention->is_causal, 1);
    ck_assert_double_eq(attention->rate, 0.5);
    const struct op *token = graph_op(graph, 6); /* behind a flatten */
    ck_assert_int_eq(token->kind, OP_SLICE);
    ck_assert_int_eq(token->first, 12);
    ck_assert_int_eq(token->size, 12);
    check_again(network, &input);
    graph_destroy(graph);
    network_destroy(network);
}
END_TEST

/* As many words as classes, and a class a token is no class a sample. */
START_TEST(tokens_have_as_many_labels_as_the_data)
{
    static const char text[] = "- embedding: {words: classes, size: 12}\n"
                               "- flatten\n"
                               "- dense: {out: classes}\n";
    struct network *network = NULL;
    struct graph *graph = NULL;
    struct network_input input = sequences;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    ck_ms_fails(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err), MS_E_INVALID,
                "the last one makes (8, 5), and 5 classes want (8, 6, 5)");
    input.tokens = 0;
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    ck_shape(graph, "embedding1.weight", "(5, 12)");
    graph_destroy(graph);
    network_destroy(network);
}
END_TEST

/* ---- norms of samples ---- */

/* Defaults and shapes are those of torch.nn: LayerNorm([3, 12, 10]) and of a row, GroupNorm,
 * InstanceNorm2d, and LayerNorm(3) channels last. */
static const struct {
    const char *layer;
    enum op_kind kind;
    int64_t groups;
    int of_pixels, n_in;
    const char *gamma; /* its shape; NULL: none */
    const char *canonical;
} norms[] = {
    {"layer_norm: {name: n}", OP_LAYER_NORM, 0, 0, 3, "(3, 12, 10)",
     "{\"layer_norm\":{\"beta\":\"zeros\",\"epsilon\":1.0000000000000001e-5,\"gamma\":\"ones\","
     "\"name\":\"n\","
     "\"over\":\"sample\"}}"},
    {"layer_norm: {name: n, over: channels, beta: none}", OP_LAYER_NORM, 0, 1, 2, "(3)",
     "{\"layer_norm\":{\"beta\":\"none\",\"epsilon\":1.0000000000000001e-5,\"gamma\":\"ones\","
     "\"name\":\"n\","
     "\"over\":\"channels\"}}"},
    {"flatten\n- layer_norm: {name: n}", OP_LAYER_NORM, 0, 0, 3, "(360)", "layer_norm"},
    {"flatten\n- layer_norm: {name: n, over: channels}", OP_LAYER_NORM, 0, 0, 3, "(360)",
     "layer_norm"},
    {"layer_norm: {gamma: none, beta: none}", OP_LAYER_NORM, 0, 0, 1, NULL, "layer_norm"},
    {"group_norm: {name: n, groups: 3, epsilon: 0.5}", OP_GROUP_NORM, 3, 0, 3, "(3)",
     "{\"group_norm\":{\"beta\":\"zeros\",\"epsilon\":0.5,\"gamma\":\"ones\",\"groups\":3,"
     "\"name\":\"n\"}}"},
    {"flatten\n- group_norm: {name: n, groups: 30}", OP_GROUP_NORM, 30, 0, 3, "(360)",
     "group_norm"},
    {"instance_norm", OP_GROUP_NORM, 3, 0, 1, NULL,
     "{\"instance_norm\":{\"beta\":\"none\",\"epsilon\":1.0000000000000001e-5,\"gamma\":\"none\"}"
     "}"},
    {"instance_norm: {name: n, gamma: ones, beta: zeros}", OP_GROUP_NORM, 3, 0, 3, "(3)",
     "instance_norm"},
};

START_TEST(norms_of_samples_have_the_shapes_of_torch)
{
    char text[512];
    struct network *network = NULL;
    snprintf(text, sizeof(text), "- %s\n- flatten\n- dense: {out: classes}\n", norms[_i].layer);
    struct graph *graph = built(text);
    int index = 0;
    while (graph_op(graph, index)->kind != norms[_i].kind) {
        index++;
    }
    const struct op *op = graph_op(graph, index);
    ck_assert_int_eq(op->groups, norms[_i].groups);
    ck_assert_int_eq(op->of_pixels, norms[_i].of_pixels);
    ck_assert_int_eq(op->n_in, norms[_i].n_in);
    ck_assert(shape_equal(&graph_tensor(graph, op->in[0])->shape,
                          &graph_tensor(graph, op->out[0])->shape));
    if (norms[_i].gamma != NULL) {
        ck_shape(graph, "n.gamma", norms[_i].gamma);
        ck_assert_double_eq(named(graph, "n.gamma")->init.a, 1);
    }
    if (op->n_in == 3) {
        ck_shape(graph, "n.beta", norms[_i].gamma);
        ck_assert_double_eq(named(graph, "n.beta")->init.a, 0);
    }
    graph_destroy(graph);
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    char *canonical = network_format(network, NULL);
    ck_assert_msg(strstr(canonical, norms[_i].canonical) != NULL, "%s", canonical);
    check_again(network, &images);
    free(canonical);
    network_destroy(network);
}
END_TEST

/* ---- the table itself ---- */

/* Where the word stands in the first cell of a row, behind `from`. */
static char *in_first_cell(char *from, const char *word)
{
    char *at = from;
    while (at != NULL && (at = strstr(at, word)) != NULL) {
        char *begin = at;
        int bars = 0;
        for (; begin > from && begin[-1] != '\n'; begin--) {
            bars += begin[-1] == '|';
        }
        if (bars == 1) {
            return at;
        }
        at++;
    }
    return NULL;
}

START_TEST(every_kind_and_key_stands_in_the_manual)
{
    static char manual[65536];
    char path[1024];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    ck_assert_ptr_nonnull(root);
    snprintf(path, sizeof(path), "%s/docs/networks.md", root);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_lt(fread(manual, 1, sizeof(manual) - 1, file), sizeof(manual) - 1);
    fclose(file);
    for (size_t k = 0; k < n_layer_kinds; k++) {
        const struct field_table *table = &layer_kinds[k].table;
        char want[64];
        snprintf(want, sizeof(want), "`%s`", layer_kinds[k].name);
        char *row = strstr(manual, "| kind |");
        row = row != NULL ? in_first_cell(row, want) : NULL;
        ck_assert_msg(row != NULL, "no row of %s", want);
        const size_t length = strcspn(row, "\n");
        for (size_t i = 0; i < table->n; i++) {
            ck_assert_ptr_nonnull(table->rows[i].help);
            snprintf(want, sizeof(want), "`%s`", table->rows[i].key);
            const int is_common = /* said once, before the table */
                strcmp(table->rows[i].key, "name") == 0 || strcmp(table->rows[i].key, "from") == 0;
            if (is_common) {
                ck_assert_ptr_nonnull(memmem(manual, (size_t)(row - manual), want, strlen(want)));
                continue;
            }
            ck_assert_msg(memmem(row, length, want, strlen(want)) != NULL, "%s lacks %s",
                          layer_kinds[k].name, want);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *t = tcase_create("lists");
    tcase_add_test(t, layers_without_a_name_are_numbered_by_kind);
    tcase_add_test(t, names_of_lists_stand_before_those_inside);
    tcase_add_test(t, letters_count_on_and_end_with_the_alphabet);
    tcase_add_test(t, two_layers_of_one_name_are_refused);
    tcase_add_test(t, layers_share_the_parameters_that_they_name);
    tcase_add_loop_test(t, what_cannot_be_shared_has_its_place, 0, (int)MS_ARRAY_SIZE(unshared));
    tcase_add_loop_test(t, windows_have_the_shapes_of_their_formula, 0,
                        (int)MS_ARRAY_SIZE(windows));
    tcase_add_test(t, branches_stand_in_a_row);
    tcase_add_test(t, groups_read_their_channels_and_a_bias_is_one_a_channel);
    tcase_add_test(t, a_transposed_convolution_has_the_weight_of_torch);
    tcase_add_test(t, a_residual_adds_what_its_shortcut_makes);
    tcase_add_loop_test(t, parameters_begin_as_their_rule_says, 0, (int)MS_ARRAY_SIZE(rules));
    tcase_add_test(t, a_bias_begins_as_its_weight_does);
    tcase_add_test(t, defaults_are_those_of_the_manual);
    tcase_add_loop_test(t, activations_are_the_op_of_their_name, 0,
                        (int)MS_ARRAY_SIZE(activations));
    tcase_add_loop_test(t, refusals_say_where_and_what, 0, (int)MS_ARRAY_SIZE(wrong));
    tcase_add_test(t, a_list_that_grows_without_end_is_refused);
    tcase_add_test(t, a_name_that_files_cannot_hold_is_refused);
    tcase_add_test(t, branches_are_the_same_from_their_canonical_form);
    tcase_add_loop_test(t, known_networks_are_the_same_from_their_canonical_form, 0, 5);
    tcase_add_test(t, the_canonical_form_has_all_defaults);
    tcase_add_test(t, layers_that_make_something_are_listed_in_the_order_of_their_ops);
    tcase_add_loop_test(t, each_op_is_of_one_layer_and_the_graph_is_the_same, 0, 6);
    tcase_add_test(t, a_network_that_does_not_fit_has_no_table);
    tcase_add_loop_test(t, norms_of_samples_have_the_shapes_of_torch, 0, (int)MS_ARRAY_SIZE(norms));
    tcase_add_test(t, every_kind_and_key_stands_in_the_manual);
    tcase_add_test(t, layers_of_tokens_have_the_parameters_of_torch);
    tcase_add_test(t, a_token_comes_and_goes);
    tcase_add_test(t, tokens_have_as_many_labels_as_the_data);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
