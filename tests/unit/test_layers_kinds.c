/* test_layers_kinds.c - kinds of layers that have rules of their own: activations, sequences, norms
 * of samples */
#include "tests/unit/layers_case.h"

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

int main(void)
{
    Suite *suite = suite_create("layers_kinds");
    TCase *t = tcase_create("layers_kinds");
    tcase_add_loop_test(t, activations_are_the_op_of_their_name, 0,
                        (int)MS_ARRAY_SIZE(activations));
    tcase_add_loop_test(t, norms_of_samples_have_the_shapes_of_torch, 0, (int)MS_ARRAY_SIZE(norms));
    tcase_add_test(t, layers_of_tokens_have_the_parameters_of_torch);
    tcase_add_test(t, a_token_comes_and_goes);
    tcase_add_test(t, tokens_have_as_many_labels_as_the_data);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
