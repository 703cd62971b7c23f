/* test_inputs.c - layers that say by name what they read, and what their parameters are called */
#include "libworker/network/network.h"
#include "tests/test.h"

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

static struct graph *built(const char *text)
{
    struct graph *graph = NULL;
    ck_ms_ok(build(text, &graph, err));
    return graph;
}

#define END "- global_avg_pool\n- dense: {out: classes}\n"

/* What the op makes that follows: the names of op i's inputs, "a b". */
static const char *reads(const struct graph *graph, int i)
{
    static char text[GRAPH_OP_TENSORS_MAX * GRAPH_NAME_MAX];
    const struct op *op = graph_op(graph, i);
    size_t used = 0;
    for (int k = 0; k < op->n_in; k++) {
        const struct tensor *tensor = graph_tensor(graph, op->in[k]);
        if (tensor->role == TENSOR_VALUE || tensor->role == TENSOR_DATA) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? " " : "",
                                     tensor->name);
        }
    }
    return text;
}

START_TEST(a_layer_reads_the_one_that_it_names)
{
    struct graph *graph = built("- conv2d: {name: a, out: 3, kernel: 3, padding: 1}\n"
                                "- relu: {name: b}\n"
                                "- relu: {from: a}\n"
                                "- conv2d: {name: c, from: input, out: 3, kernel: 1}\n"
                                "- add: {name: s, from: [b, relu1, c]}\n"
                                "- concat: {from: [s, input, b]}\n" END);

    ck_assert_str_eq(reads(graph, 2), "a");
    ck_assert_str_eq(reads(graph, 3), "data");
    ck_assert_int_eq(graph_op(graph, 4)->kind, OP_ADD); /* b + relu1 */
    ck_assert_int_eq(graph_op(graph, 4)->in[0], graph_op(graph, 1)->out[0]);
    ck_assert_int_eq(graph_op(graph, 4)->in[1], graph_op(graph, 2)->out[0]);
    ck_assert_int_eq(graph_op(graph, 5)->in[0], graph_op(graph, 4)->out[0]);
    ck_assert_int_eq(graph_op(graph, 5)->in[1], graph_op(graph, 3)->out[0]);
    const struct op *row = graph_op(graph, 6);
    ck_assert_int_eq(row->kind, OP_CONCAT);
    ck_assert_int_eq(row->n_in, 3);
    ck_assert_int_eq(row->in[0], graph_op(graph, 5)->out[0]);
    ck_assert_int_eq(row->in[1], graph_data_index(graph));
    ck_assert_int_eq(row->in[2], graph_op(graph, 1)->out[0]);
    graph_destroy(graph);
}
END_TEST

START_TEST(what_is_said_by_lists_in_lists_can_be_said_by_names)
{
    struct graph *lists = built("- conv2d: {name: a, out: 4, kernel: 3}\n"
                                "- residual:\n"
                                "    body: [relu, conv2d: {name: b, out: 4, kernel: 1}]\n"
                                "    shortcut: [conv2d: {name: c, out: 4, kernel: 1}]\n"
                                "- concat: {branches: [[], [relu]]}\n" END);
    struct graph *names = built("- conv2d: {name: a, out: 4, kernel: 3}\n"
                                "- relu\n"
                                "- conv2d: {name: b, out: 4, kernel: 1}\n"
                                "- conv2d: {name: c, from: a, out: 4, kernel: 1}\n"
                                "- add: {from: [b, c]}\n"
                                "- relu: {name: r}\n"
                                "- concat: {from: [add1, r]}\n" END);
    char *a = graph_describe(lists);
    char *b = graph_describe(names);

    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    graph_destroy(lists);
    graph_destroy(names);
}
END_TEST

START_TEST(names_are_looked_for_from_the_inside_out)
{
    struct graph *graph =
        built("- conv2d: {name: a, out: 4, kernel: 1}\n"
              "- conv2d: {name: b, out: 4, kernel: 1}\n"
              "- repeat:\n"
              "    name: r\n"
              "    times: 2\n"
              "    layers:\n"
              "      - conv2d: {name: a, out: 4, kernel: 1}\n"
              "      - add: {name: inner, from: [a, b]}\n" /* r.N.a of this turn, b outside */
              "- conv2d: {name: d, from: r.0.inner, out: 4, kernel: 1}\n" /* by its whole name */
              "- sequential: {name: s, from: a, layers: [relu]}\n"
              "- add: {from: [d, s, r]}\n" END); /* s and r make what their last layers make */

    ck_assert_str_eq(reads(graph, 3), "r.0.a b");
    ck_assert_str_eq(reads(graph, 5), "r.1.a b");
    ck_assert_int_eq(graph_op(graph, 6)->in[0], graph_op(graph, 3)->out[0]);
    ck_assert_str_eq(reads(graph, 7), "a");
    ck_assert_int_eq(graph_op(graph, 9)->in[1], graph_op(graph, 5)->out[0]);
    graph_destroy(graph);
}
END_TEST

START_TEST(lists_begin_with_what_they_are_given)
{
    struct graph *graph = built("- conv2d: {name: a, out: 3, kernel: 1}\n"
                                "- relu: {name: b}\n"
                                "- residual: {name: r, from: a, body: [relu]}\n" /* a + relu(a) */
                                "- concat: {name: c, from: input, branches: [[], [relu]]}\n"
                                "- repeat: {name: t, from: a, times: 2, layers: [tanh]}\n"
                                "- concat: {from: [r, c, t, b]}\n" END);

    ck_assert_str_eq(reads(graph, 2), "a");
    ck_assert_int_eq(graph_op(graph, 3)->in[1], graph_op(graph, 0)->out[0]);
    ck_assert_str_eq(reads(graph, 4), "data");
    ck_assert_str_eq(reads(graph, 6), "a");
    graph_destroy(graph);
}
END_TEST

START_TEST(a_layer_called_input_is_not_the_images)
{
    struct graph *graph = built("- conv2d: {name: input, out: 3, kernel: 1}\n"
                                "- relu\n"
                                "- add: {from: [relu1, input]}\n" END);

    ck_assert_int_eq(graph_op(graph, 2)->in[1], graph_op(graph, 0)->out[0]);
    graph_destroy(graph);
}
END_TEST

START_TEST(names_stand_in_the_canonical_form_where_they_were_said)
{
    static const char text[] = "- conv2d: {name: a, out: 3, kernel: 1}\n"
                               "- relu: {name: b}\n"
                               "- relu\n"
                               "- add: {from: [b, input]}\n"
                               "- concat: {from: [add1, relu1]}\n" END;
    struct network *network = NULL;
    struct network *again = NULL;
    size_t size = 0;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    char *canonical = network_format(network, &size);
    ck_ms_ok(network_parse(canonical, size, "canonical", "net", &again, err));
    char *twice = network_format(again, NULL);

    ck_assert_ptr_nonnull(strstr(canonical, "{\"relu\":{\"name\":\"b\"}},{\"relu\":{}},"
                                            "{\"add\":{\"from\":[\"b\",\"input\"]}},"
                                            "{\"concat\":{\"from\":[\"add1\",\"relu1\"]}}"));
    ck_assert_str_eq(canonical, twice);
    free(canonical);
    free(twice);
    network_destroy(network);
    network_destroy(again);
}
END_TEST

/* ---- names of parameters ---- */

START_TEST(parameters_are_called_as_they_are_told)
{
    static const char *const names[] = {"r.0.n.weight",
                                        "r.0.n.bias",
                                        "r.0.n.running_mean",
                                        "r.0.n.running_var",
                                        "r.0.k",
                                        "r.0.c.bias",
                                        "w",
                                        "fc.bias",
                                        "m.gamma",
                                        "shift",
                                        "m.moving_mean",
                                        "m.moving_variance"};
    struct graph *graph = built("- batch_norm: {name: m, parameters: {beta: shift}}\n"
                                "- repeat:\n"
                                "    name: r\n"
                                "    times: 1\n"
                                "    layers:\n"
                                "      - batch_norm: {name: n, parameters: torch}\n"
                                "      - conv2d: {name: c, out: 4, kernel: 1, bias: zeros, "
                                "parameters: {weight: k}}\n"
                                "- global_avg_pool\n"
                                "- dense: {name: fc, out: classes, parameters: {weight: w}}\n");

    ck_assert_int_eq(graph_n_stored(graph), (int)MS_ARRAY_SIZE(names));
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        ck_assert_msg(graph_find(graph, names[i]) >= 0, "no %s", names[i]);
    }
    graph_destroy(graph);
}
END_TEST

START_TEST(names_of_parameters_stand_in_the_canonical_form)
{
    static const char text[] = "- batch_norm: {parameters: torch}\n"
                               "- conv2d: {out: 3, kernel: 1, parameters: {weight: k}}\n" END;
    struct network *network = NULL;
    struct network *again = NULL;
    size_t size = 0;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    char *canonical = network_format(network, &size);
    ck_ms_ok(network_parse(canonical, size, "canonical", "net", &again, err));
    char *twice = network_format(again, NULL);

    ck_assert_ptr_nonnull(strstr(canonical, "\"parameters\":\"torch\""));
    ck_assert_ptr_nonnull(strstr(canonical, "\"parameters\":{\"weight\":\"k\"}"));
    ck_assert_str_eq(canonical, twice);
    free(canonical);
    free(twice);
    network_destroy(network);
    network_destroy(again);
}
END_TEST

/* ---- what is refused ---- */

static const struct {
    const char *text, *words;
} wrong[] = {
    {"- conv2d: {out: 3, kernel: 1, parameters: tensorflow}\n" END,
     "layers[0].conv2d.parameters: 'tensorflow' names no parameters; give torch, or a map"},
    {"- conv2d: {out: 3, kernel: 1, parameters: {wieght: k}}\n" END,
     "net.yaml:1:44: layers[0].conv2d.parameters.wieght is no parameter of the layer; did you mean "
     "weight?"},
    {"- batch_norm: {parameters: {gamma: 'a b'}}\n" END, "layers[0].batch_norm.parameters: 'a b'"},
    {"- conv2d: {name: a, out: 3, kernel: 1, parameters: {weight: w}}\n"
     "- conv2d: {name: b, out: 4, kernel: 1, parameters: {weight: w}}\n" END,
     "net.yaml:2:3: layer b (conv2d): w, which it shares"},
    {"- conv2d: {name: stem, out: 3, kernel: 1}\n- relu: {from: sten}\n" END,
     "net.yaml:2:16: from: there is no layer sten before it; did you mean stem?"},
    {"- relu: {from: nowhere}\n" END,
     "net.yaml:1:16: from: there is no layer nowhere before it; `input` is the images"},
    {"- relu\n- relu: {from: relu2}\n" END,
     "there is no layer relu2 before it; did you mean relu1"},
    {"- relu: {from: later}\n- relu: {name: later}\n" END,
     "net.yaml:1:16: from: layer later stands behind it, in line 2, and a layer reads what stands "
     "before it"},
    {"- relu: {name: itself, from: itself}\n" END,
     "from: layer itself is not made yet: a layer reads none that it stands in, and not itself"},
    {"- sequential: {name: around, layers: [relu: {from: around}]}\n" END,
     "from: layer around is not made yet"},
    {"- conv2d: {name: a, out: 3, kernel: 1}\n- relu: {name: two}\n- relu: {name: two}\n"
     "- add: {from: [a, two]}\n" END,
     "net.yaml:4:19: from: 2 layers before it are called two; give the one that is meant a name"},
    {"- conv2d: {name: a, out: 4, kernel: 3}\n- add: {name: s, from: [a, input]}\n" END,
     "net.yaml:2:3: layer s (add): add: the shapes differ; inputs: a (8, 4, 10, 8), data (8, 3, "
     "12, 10)"},
    {"- conv2d: {name: a, out: 4, kernel: 3}\n- concat: {name: s, from: [a, input]}\n" END,
     "net.yaml:2:3: layer s (concat): concat: the shapes differ in more than their channels"},
    {"- conv2d: {name: a, out: 4, kernel: 3}\n- relu\n- tanh: {from: a}\n" END,
     "net.yaml:2:3: layer relu1 (relu): nobody reads what it makes; say `from: relu1` where it is "
     "wanted, or leave it out"},
    {"- repeat: {name: r, times: 2, layers: [relu: {from: input}]}\n" END,
     "layer r.0.relu1 (relu): nobody reads what it makes"},
    {"- add: {from: input}\n" END, "layers[0].add.from: 'input' is no list of two to eight names"},
    {"- add: {from: [input]}\n" END, "layers[0].add.from: a list is no list of two to eight names"},
    {"- add\n" END, "layers[0].add.from is missing (what it sums up); give a list of two to eight"},
    {"- relu: {from: [input, input]}\n" END, "layers[0].relu.from: a list"},
    {"- relu: {from: 'no name'}\n" END, "layers[0].relu.from: 'no name'"},
    {"- concat: {name: c}\n" END,
     "net.yaml:1:3: layers[0].concat: it puts branches in a row, or what a list of names says: "
     "give it `branches`, or `from: [a, b]`"},
    {"- concat: {from: [input, input], branches: [[], []]}\n" END, "`from: [a, b]`, not both"},
    {"- concat: {from: input}\n" END, "layers[0].concat: it puts branches in a row, or what"},
};

START_TEST(refusals_say_where_and_what)
{
    struct graph *graph = NULL;
    ck_ms_fails(build(wrong[_i].text, &graph, err), MS_E_INVALID, wrong[_i].words);
    ck_assert_ptr_null(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inputs");
    TCase *t = tcase_create("names");
    tcase_add_test(t, a_layer_reads_the_one_that_it_names);
    tcase_add_test(t, what_is_said_by_lists_in_lists_can_be_said_by_names);
    tcase_add_test(t, names_are_looked_for_from_the_inside_out);
    tcase_add_test(t, lists_begin_with_what_they_are_given);
    tcase_add_test(t, a_layer_called_input_is_not_the_images);
    tcase_add_test(t, names_stand_in_the_canonical_form_where_they_were_said);
    tcase_add_test(t, parameters_are_called_as_they_are_told);
    tcase_add_test(t, names_of_parameters_stand_in_the_canonical_form);
    tcase_add_loop_test(t, refusals_say_where_and_what, 0, (int)MS_ARRAY_SIZE(wrong));
    suite_add_tcase(suite, t);
    return test_run(suite);
}
