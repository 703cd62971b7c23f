/* test_layers.c - lists of layers: names, shapes, first values, canonical form */
#include "tests/unit/layers_case.h"

#include "libworker/graph/cost.h"

#include <math.h>

/* ---- names ---- */

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

/* ---- canonical form ---- */

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
    tcase_add_test(t, branches_are_the_same_from_their_canonical_form);
    tcase_add_loop_test(t, known_networks_are_the_same_from_their_canonical_form, 0, 5);
    tcase_add_test(t, the_canonical_form_has_all_defaults);
    tcase_add_test(t, layers_that_make_something_are_listed_in_the_order_of_their_ops);
    tcase_add_loop_test(t, each_op_is_of_one_layer_and_the_graph_is_the_same, 0, 6);
    tcase_add_test(t, a_network_that_does_not_fit_has_no_table);
    tcase_add_test(t, every_kind_and_key_stands_in_the_manual);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
