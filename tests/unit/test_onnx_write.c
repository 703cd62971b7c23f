/* test_onnx_write.c - graphs written as ONNX, and read back: the same ops, with the same weights */
#include "libworker/network/network.h"
#include "libworker/onnx/onnx.h"
#include "libworker/onnx/write.h"
#include "proto/macros.h"
#include "tests/test.h"

#include <sys/stat.h>

static const char *dir;
static char path[160];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/net.onnx", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

/* ---- weights ---- */

/* A value of its own for each element of each tensor. */
static void fill(const struct tensor *tensor, float *dst, size_t count)
{
    const float first = (float)(strlen(tensor->name) * 1000 + (unsigned char)tensor->name[0]);
    for (size_t i = 0; i < count; i++) {
        dst[i] = first + (float)i / 64;
    }
}

static int get(void *arg, const struct tensor *tensor, float *dst, size_t count, struct ms_err *err)
{
    (void)arg;
    (void)err;
    fill(tensor, dst, count);
    return MS_OK;
}

static const struct onnx_weights weights = {get, NULL};

static void ck_weights(const struct graph *graph, const struct onnx_file *file)
{
    for (int i = 0; i < graph_n_stored(graph); i++) {
        const struct tensor *tensor = graph_tensor(graph, graph_stored_at(graph, i));
        const struct onnx_tensor *from = onnx_find(file, tensor->name);
        const size_t count = (size_t)shape_count(&tensor->shape);
        float *values = malloc(2 * count * sizeof(*values));
        ck_assert_msg(from != NULL, "no %s", tensor->name);
        ck_ms_ok(onnx_read(file, from, values, count, err));
        fill(tensor, values + count, count);
        ck_assert_msg(memcmp(values, values + count, count * sizeof(*values)) == 0, "%s",
                      tensor->name);
        free(values);
    }
}

/* ---- graphs ---- */

static struct graph *graph_of(const char *text, const struct network_input *input)
{
    struct network *network = NULL;
    struct graph *graph = NULL;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    ck_ms_ok(network_build(network, input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    return graph;
}

static struct graph *read_back(const struct onnx_file *file, const struct network_input *input)
{
    json_t *document = NULL;
    ck_ms_ok(onnx_network(file, &document, err));
    char *text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(17));
    struct graph *graph = graph_of(text, input);
    json_decref(document);
    free(text);
    return graph;
}

/* What an op is told that the text of a graph leaves out; epsilon is a float in the file. */
static void ck_settings(const struct graph *a, const struct graph *b)
{
    for (int i = 0; i < graph_n_ops(a); i++) {
        const struct op *of = graph_op(a, i);
        const struct op *as = graph_op(b, i);
        ck_assert_int_eq(of->groups, as->groups);
        ck_assert_int_eq(of->of_pixels, as->of_pixels);
        ck_assert_msg((float)of->epsilon == (float)as->epsilon &&
                          (float)of->rate == (float)as->rate,
                      "op %d", i);
        ck_assert_msg((float)of->alpha == (float)as->alpha, "op %d", i);
    }
}

/* The graph, its file read, and the graph of that. */
static void ck_same(struct graph *graph, const struct network_input *input)
{
    struct onnx_file *file = NULL;
    struct onnx_written written;
    struct stat st;
    ck_ms_ok(onnx_write(path, graph, &weights, &written, err));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, written.bytes);
    ck_assert_uint_eq(written.tensors, graph_n_stored(graph));

    ck_ms_ok(onnx_open(path, &file, err));
    struct graph *again = read_back(file, input);
    char *a = graph_describe(graph);
    char *b = graph_describe(again);
    ck_assert_str_eq(strchr(a, ':'), strchr(b, ':')); /* behind the name */
    ck_settings(graph, again);
    ck_weights(graph, file);
    free(a);
    free(b);
    graph_destroy(again);
    graph_destroy(graph);
    onnx_close(file);
}

static const struct network_input images = {
    .batch = 2, .channels = 3, .height = 32, .width = 32, .classes = 5};

START_TEST(a_named_network_comes_back)
{
    struct network *network = NULL;
    struct graph *graph = NULL;
    struct network_input input = images;
    const char *name = network_known((size_t)_i);
    if (strcmp(name, "mnist") == 0) {
        input = (struct network_input){
            .batch = 2, .channels = 1, .height = 28, .width = 28, .classes = 10};
    }
    ck_ms_ok(network_by_name(name, &network, err));
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    ck_same(graph, &input);
}
END_TEST

#define END "- global_avg_pool\n- dense: {out: classes}\n"
static const char *const lists[] = {
    "- conv2d: {out: 8, kernel: [3, 5], stride: [2, 1], padding: [1, 2]}\n"
    "- relu\n"
    "- conv2d: {out: 8, kernel: 3, padding: same, groups: 4, dilation: [2, 1], bias: zeros}\n" END,
    "- conv_transpose2d: {out: 6, kernel: 3, stride: 2, padding: 1, output_padding: [1, 0], bias: "
    "zeros}\n"
    "- relu6\n"
    "- conv_transpose2d: {out: 4, kernel: [2, 3], groups: 2}\n" END,
    "- conv2d: {name: c, out: 8, kernel: 3}\n"
    "- batch_norm: {name: bn, momentum: 0.75, epsilon: 0.001, parameters: torch}\n"
    "- relu\n"
    "- residual: {body: [{conv2d: {out: 8, kernel: 1}}, batch_norm], shortcut: [{conv2d: {out: 8, "
    "kernel: 1}}]}\n" END,
    "- layer_norm\n- flatten\n- layer_norm: {epsilon: 0.01}\n- dense: {out: 7, bias: none}\n"
    "- layer_norm: {gamma: none, beta: none}\n- dense: {out: classes}\n",
    "- conv2d: {out: 6, kernel: 3}\n- group_norm: {groups: 3}\n"
    "- instance_norm: {gamma: ones, beta: zeros}\n- instance_norm\n"
    "- group_norm: {groups: 2, gamma: none, beta: none}\n" END,
    "- leaky_relu: {slope: 0.125}\n- batch_norm\n- elu: {alpha: 1.5}\n- batch_norm\n- gelu\n"
    "- batch_norm\n- gelu: {approximate: tanh}\n- batch_norm\n- silu\n- batch_norm\n- hard_swish\n"
    "- batch_norm\n- sigmoid\n- batch_norm\n- tanh\n- batch_norm\n- softmax\n" END,
    "- max_pool: {kernel: 3, stride: 2, padding: 1, ceil: true}\n"
    "- dropout: {rate: 0.25}\n"
    "- avg_pool: {kernel: [2, 3], stride: 1, padding: [0, 1]}\n"
    "- concat: {branches: [[], [{conv2d: {out: 4, kernel: 1}}], [{conv2d: {out: 2, kernel: 3, "
    "padding: 1}}, relu]]}\n" END,
    "- scale\n- conv2d: {name: a, out: 4, kernel: 1}\n- layer_norm: {over: channels}\n"
    "- conv2d: {name: b, out: 4, kernel: 1}\n- mul: {from: [layer_norm1, b]}\n" END,
    "- conv2d: {name: a, out: 4, kernel: 1}\n- hard_sigmoid\n"
    "- conv2d: {name: b, out: 4, kernel: 1}\n- linear: {factor: 0.5, offset: 2}\n" END,
    "- dense: {out: 4, over: channels}\n- relu\n"
    "- dense: {name: d, out: 6, over: channels, bias: none}\n" END,
    "- conv2d: {name: c, out: 4, kernel: 1}\n- global_avg_pool\n- dense: {out: 2}\n- relu\n"
    "- dense: {out: 4}\n- sigmoid: {name: gate}\n- mul: {from: [c, gate]}\n" END,
    "- conv2d: {out: 12, kernel: 3}\n- slice: {first: 3, size: 8}\n- channel_shuffle: {groups: 4}\n"
    "- global_avg_pool\n- slice: {size: 6}\n- channel_shuffle: {groups: 2}\n"
    "- dense: {out: classes}\n",
    "- pad: {top: 1, right: 2}\n- conv2d: {out: 4, kernel: 3}\n- upsample: {factor: [2, 3]}\n"
    "- upsample: {factor: 2, mode: linear}\n- relu\n"
    "- upsample: {factor: [1, 2], mode: linear, align_corners: true}\n- pad: {left: 1}\n" END,
};

START_TEST(a_list_comes_back)
{
    ck_same(graph_of(lists[_i], &images), &images);
}
END_TEST

/* ---- of sequences ---- */

static const char *const of_words[] = {
    "- embedding: {words: 20, size: 6}\n- positional_embedding\n- dense: {out: 5}\n- gelu\n"
    "- layer_norm: {over: channels}\n- dense: {out: classes, bias: none}\n",
    "- embedding: {name: e, words: 20, size: 6}\n- positional_embedding: {leading: 1}\n"
    "- layer_norm\n- slice: {first: 1, size: 4}\n- channel_shuffle: {groups: 2}\n"
    "- concat: {from: [channel_shuffle1, e]}\n- softmax\n- dropout: {rate: 0.25}\n"
    "- dense: {out: classes}\n",
    "- embedding: {words: 20, size: 6}\n- dense: {out: 18}\n"
    "- dot_product_attention: {heads: 2, causal: true}\n- dense: {out: classes}\n",
    "- embedding: {name: e, words: 20, size: 6}\n"
    "- attention: {name: a, heads: 3, dropout: 0.125, parameters: {in_proj_weight: "
    "a.in_proj_weight, "
    "in_proj_bias: a.in_proj_bias, out_proj.weight: a.out_proj.weight, out_proj.bias: "
    "a.out_proj.bias}}\n- add: {from: [a, e]}\n- dense: {out: classes}\n",
    "- embedding: {words: 20, size: 6}\n"
    "- lstm: {name: r, hidden: 4, layers: 2, bidirectional: true, dropout: 0.25}\n"
    "- gru: {hidden: 3, bias: none}\n- lstm: {hidden: 1, bidirectional: true}\n"
    "- rnn: {hidden: 3, bidirectional: true}\n- rnn: {hidden: 2, nonlinearity: relu, bias: none}\n"
    "- dense: {out: classes}\n",
    /* one weight three times, one twice */
    "- embedding: {name: w, words: classes, size: 6}\n- dense: {name: a, out: 6}\n- tanh\n"
    "- dense: {out: 6, parameters: {weight: a.weight, bias: a.bias}}\n"
    "- dense: {out: classes, bias: none, parameters: {weight: w.weight}}\n",
    /* both directions belong to the second, though the first is as wide and reads the same */
    "- embedding: {name: e, words: 20, size: 6}\n- lstm: {name: a, hidden: 4}\n"
    "- lstm: {name: b, from: e, hidden: 4, bidirectional: true}\n- concat: {from: [a, b]}\n"
    "- dense: {out: classes}\n",
};

START_TEST(a_list_of_words_comes_back)
{
    const struct network_input words = {
        .batch = 2, .channels = 8, .height = 1, .width = 1, .classes = 5, .tokens = 8};
    ck_same(graph_of(of_words[_i], &words), &words);
}
END_TEST

/* Of one direction the list is the same graph; of two, a part of what both make each. */
START_TEST(what_a_recurrent_layer_ends_with_comes_back)
{
    static const char *const of_samples[] = {
        "- embedding: {words: 20, size: 6}\n- gru: {hidden: 4, layers: 2, output: last}\n"
        "- dense: {out: classes}\n",
        "- embedding: {words: 20, size: 6}\n"
        "- lstm: {hidden: 4, bidirectional: true, output: last}\n- dense: {out: classes}\n",
        "- embedding: {words: 20, size: 6}\n" /* two that cannot both be called lstm1 */
        "- lstm: {hidden: 4, layers: 2, bidirectional: true, output: last}\n"
        "- dense: {out: classes}\n"};
    const struct network_input words = {
        .batch = 2, .channels = 8, .height = 1, .width = 1, .classes = 5};
    struct onnx_file *file = NULL;
    struct onnx_written written;
    struct graph *graph = graph_of(of_samples[_i], &words);
    if (_i == 0) {
        ck_same(graph, &words);
        return;
    }
    ck_ms_ok(onnx_write(path, graph, &weights, &written, err));
    ck_ms_ok(onnx_open(path, &file, err));
    struct graph *again = read_back(file, &words);
    char *text = graph_describe(again);
    ck_assert_ptr_nonnull(strstr(text, " [from the last token]\n"));
    ck_assert_ptr_nonnull(strstr(text, " [4 from 4 on]\n")); /* channels of the second, ... */
    ck_weights(graph, file);
    free(text);
    graph_destroy(again);
    graph_destroy(graph);
    onnx_close(file);
}
END_TEST

static const char *const of_patches[] = {
    "- conv2d: {out: 6, kernel: 8, stride: 8}\n- tokens\n- class_token: {leading: 2}\n"
    "- positional_embedding: {leading: 1}\n- dense: {out: 18, bias: none}\n"
    "- dot_product_attention: {heads: 1}\n- token\n- dense: {out: classes}\n",
    "- conv2d: {out: 6, kernel: 8, stride: 8}\n- tokens\n- class_token\n- class_token: {leading: "
    "1}\n- dense: {out: 6}\n- token: {at: 2}\n- dense: {out: classes}\n",
    "- conv2d: {out: 6, kernel: 8, stride: 8}\n- tokens\n- layer_norm: {over: channels, gamma: "
    "none, "
    "beta: none}\n- linear: {factor: 2}\n- flatten\n- dense: {out: classes}\n",
    /* one channel of a head, and of all; one token */
    "- conv2d: {out: 6, kernel: 8, stride: 8}\n- tokens\n- dense: {out: 6}\n"
    "- dot_product_attention: {heads: 2}\n- dense: {out: 3}\n"
    "- dot_product_attention: {heads: 1, causal: true}\n- class_token\n"
    "- class_token: {leading: 1}\n- flatten\n- dense: {out: classes}\n",
    "- conv2d: {out: 6, kernel: 32}\n- tokens\n- dense: {out: 12}\n"
    "- dot_product_attention: {heads: 2}\n- dense: {out: 6}\n"
    "- dot_product_attention: {heads: 1, causal: true}\n- flatten\n- dense: {out: classes}\n",
};

START_TEST(a_list_of_patches_comes_back)
{
    ck_same(graph_of(of_patches[_i], &images), &images);
}
END_TEST

/* A model that came from elsewhere goes back with the names that it had. */
START_TEST(a_model_comes_back)
{
    const struct network_input input = {
        .batch = 2, .channels = 3, .height = 20, .width = 16, .classes = 10};
    char name[512];
    struct onnx_file *file = NULL;
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(name, sizeof(name), "%s/tests/golden/onnx/net-torchscript-train.onnx",
             root != NULL ? root : ".");
    ck_ms_ok(onnx_open(name, &file, err));
    ck_same(read_back(file, &input), &input);
    onnx_close(file);
}
END_TEST

/* No version of ours is in it, for the same weights are the same bytes. */
START_TEST(a_summary_has_no_blank_for_a_version_that_is_not_there)
{
    struct onnx_file *file = NULL;
    struct onnx_written written;
    json_t *document = NULL;
    struct graph *graph = graph_of(lists[0], &images);
    ck_ms_ok(onnx_write(path, graph, &weights, &written, err));
    ck_ms_ok(onnx_open(path, &file, err));
    ck_ms_ok(onnx_network(file, &document, err));
    ck_assert_str_eq(json_string_value(json_object_get(document, "summary")),
                     "ONNX, opset 21, of msched");
    json_decref(document);
    onnx_close(file);
    graph_destroy(graph);
}
END_TEST

/* ---- names ---- */

START_TEST(the_data_has_a_name_that_no_parameter_has)
{
    static const char list[] = "- conv2d: {out: 4, kernel: 3, parameters: {weight: input}}\n" END;
    struct graph *graph = graph_of(list, &images);
    ck_same(graph, &images);
}
END_TEST

/* ---- what cannot be ---- */

/* A layer pads alike on both sides, or as `same` or `ceil` do: a graph made by hand may not. */
START_TEST(padding_that_no_layer_has_is_refused_when_it_is_read)
{
    const struct shape data = {4, {2, 3, 8, 8}};
    const struct shape kernel = {4, {4, 3, 3, 3}};
    const struct shape labels = {1, {2}};
    struct op_window window = graph_window_valid(3, 1);
    struct onnx_written written;
    struct onnx_file *file = NULL;
    json_t *document = NULL;
    struct graph *graph = graph_create("net");
    window.pad_left = 2; /* and none right */
    int x = graph_data(graph, "data", &data, NULL);
    int weight = graph_param(graph, "w", &kernel, (struct init){INIT_NORMAL, 1}, NULL);
    int y = graph_flatten(graph, graph_conv2d(graph, x, weight, &window, NULL), NULL);
    ck_ms_ok(graph_set_output(graph, y, err));
    int label = graph_label(graph, "label", &labels, MS_I32, NULL);
    ck_ms_ok(graph_set_loss(graph, graph_softmax_ce(graph, y, label, NULL), err));
    ck_ms_ok(onnx_write(path, graph, &weights, &written, err));
    ck_ms_ok(onnx_open(path, &file, err));
    ck_ms_fails(onnx_network(file, &document, err), MS_E_INVALID,
                "pads [0, 2, 0, 0]: padding is as much on both sides");
    graph_destroy(graph);
    onnx_close(file);
}
END_TEST

static int get_none(void *arg, const struct tensor *tensor, float *dst, size_t count,
                    struct ms_err *err)
{
    (void)arg;
    (void)dst;
    (void)count;
    return ms_fail(err, MS_E_INVALID, "no values of %s", tensor->name);
}

/* The data are words or numbers. */
/* Layers and their parameters are called as in the list, norms in its words, too. */
START_TEST(names_of_a_list_come_back)
{
    static const char list[] =
        "- conv2d: {out: 4, kernel: 3}\n- batch_norm\n- group_norm: {groups: 2}\n"
        "- layer_norm: {name: n, over: channels}\n- batch_norm\n- global_avg_pool\n"
        "- dense: {out: classes}\n";
    static const char *const names[] = {"conv2d1",     "batch_norm1", "group_norm1", "n",
                                        "batch_norm2", NULL,          "dense1"};
    struct onnx_file *file = NULL;
    struct onnx_written written;
    json_t *document = NULL;
    size_t i = 0;
    json_t *entry = NULL;
    struct graph *graph = graph_of(list, &images);
    ck_ms_ok(onnx_write(path, graph, &weights, &written, err));
    ck_ms_ok(onnx_open(path, &file, err));
    ck_ms_ok(onnx_network(file, &document, err));
    json_array_foreach(json_object_get(document, "layers"), i, entry)
    {
        const json_t *keys = json_object_iter_value(json_object_iter(entry));
        const char *name = json_string_value(json_object_get(keys, "name"));
        ck_assert_ptr_null(json_object_get(keys, "parameters"));
        ck_assert_msg(names[i] == NULL || (name != NULL && strcmp(name, names[i]) == 0), "%zu: %s",
                      i, name != NULL ? name : "none");
    }
    ck_assert_uint_eq(i, MS_ARRAY_SIZE(names));
    json_decref(document);
    graph_destroy(graph);
    onnx_close(file);
}
END_TEST

START_TEST(what_is_no_node_is_refused)
{
    static const char list[] = "- embedding: {words: 20, size: 1}\n- flatten: {name: words}\n"
                               "- flatten: {name: numbers, from: input}\n"
                               "- add: {from: [words, numbers]}\n- dense: {out: classes}\n";
    const struct network_input tokens = {
        .batch = 2, .channels = 8, .height = 1, .width = 1, .classes = 5};
    struct graph *graph = graph_of(list, &tokens);
    struct onnx_written written;
    ck_ms_fails(
        onnx_write(path, graph, &weights, &written, err), MS_E_UNSUPPORTED,
        "network net: op flatten reads the data as real numbers, and an embedding as words");
    ck_assert_int_ne(access(path, F_OK), 0);
    graph_destroy(graph);
}
END_TEST

START_TEST(a_file_without_its_weights_is_none)
{
    const struct onnx_weights none = {get_none, NULL};
    struct graph *graph = graph_of(lists[0], &images);
    struct onnx_written written;
    ck_ms_fails(onnx_write(path, graph, &none, &written, err), MS_E_INVALID,
                "no values of conv2d1.weight");
    ck_assert_int_ne(access(path, F_OK), 0);
    graph_destroy(graph);
}
END_TEST

START_TEST(a_file_of_more_than_two_gib_is_refused)
{
    static const char list[] = "- flatten\n- dense: {out: 180000}\n- dense: {out: classes}\n";
    struct graph *graph = graph_of(list, &images);
    struct onnx_written written;
    ck_ms_fails(onnx_write(path, graph, &weights, &written, err), MS_E_FULL,
                "an ONNX file has at most 2 GiB, and this one would have 2.1");
    ck_assert_int_ne(access(path, F_OK), 0);
    graph_destroy(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_write");
    TCase *t = test_case_create("written");
    int n_known = 0;
    while (network_known((size_t)n_known) != NULL) {
        n_known++;
    }
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, a_named_network_comes_back, 0, n_known);
    tcase_add_loop_test(t, a_list_comes_back, 0, (int)MS_ARRAY_SIZE(lists));
    tcase_add_test(t, names_of_a_list_come_back);
    tcase_add_loop_test(t, what_a_recurrent_layer_ends_with_comes_back, 0, 3);
    tcase_add_loop_test(t, a_list_of_words_comes_back, 0, (int)MS_ARRAY_SIZE(of_words));
    tcase_add_loop_test(t, a_list_of_patches_comes_back, 0, (int)MS_ARRAY_SIZE(of_patches));
    tcase_add_test(t, a_model_comes_back);
    tcase_add_test(t, a_summary_has_no_blank_for_a_version_that_is_not_there);
    tcase_add_test(t, the_data_has_a_name_that_no_parameter_has);
    tcase_add_test(t, padding_that_no_layer_has_is_refused_when_it_is_read);
    tcase_add_test(t, what_is_no_node_is_refused);
    tcase_add_test(t, a_file_without_its_weights_is_none);
    tcase_add_test(t, a_file_of_more_than_two_gib_is_refused);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
