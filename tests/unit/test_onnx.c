/* test_onnx.c - models of PyTorch's exporters as networks: what they make is what PyTorch makes of
 * the same batch (tests/golden/onnx/make.py) */
#include "libworker/network/network.h"
#include "libworker/onnx/onnx.h"
#include "tests/ref_graph.h"
#include "tests/test.h"

#include <math.h>

static const char *golden(const char *name)
{
    static char path[1024];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/onnx/%s", root != NULL ? root : ".", name);
    return path;
}

static struct onnx_file *opened(const char *name)
{
    struct onnx_file *file = NULL;
    ck_ms_ok(onnx_open(golden(name), &file, err));
    return file;
}

/* As text; the caller frees it. */
static char *document_of(const struct onnx_file *file)
{
    json_t *document = NULL;
    ck_ms_ok(onnx_network(file, &document, err));
    char *text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(document);
    return text;
}

static char *document_named(const char *name)
{
    struct onnx_file *file = opened(name);
    char *text = document_of(file);
    onnx_close(file);
    return text;
}

static struct graph *graph_of(const struct onnx_file *file, const struct network_input *input)
{
    struct network *network = NULL;
    struct graph *graph = NULL;
    char *text = document_of(file);
    ck_ms_ok(network_parse(text, strlen(text), "model.onnx", "net", &network, err));
    ck_ms_ok(network_build(network, input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    free(text);
    return graph;
}

/* ---- what PyTorch made of it ---- */

struct sample {
    struct network_input input;
    int is_training;
    int64_t words; /* that the data are; 0: none */
    json_t *root, *logits;
};

static struct sample sample_of(const char *name)
{
    struct sample ret = {.root = json_load_file(golden("logits.json"), 0, NULL)};
    const json_t *of = json_object_get(ret.root, name);
    ck_assert_msg(of != NULL, "no logits of %s", name);
    int64_t dim[4] = {0, 0, 1, 1};
    const json_t *shape = json_object_get(of, "input");
    for (size_t i = 0; i < json_array_size(shape); i++) {
        dim[i] = json_integer_value(json_array_get(shape, i));
    }
    ret.logits = json_object_get(of, "logits");
    ret.is_training = json_is_true(json_object_get(of, "is_training"));
    ret.words = json_integer_value(json_object_get(of, "words"));
    ret.input = (struct network_input){.batch = dim[0],
                                       .channels = dim[1],
                                       .height = dim[2],
                                       .width = dim[3],
                                       .classes = (int64_t)json_array_size(ret.logits) / dim[0]};
    if (ret.words > 0 && ret.input.classes == ret.words * dim[1]) { /* of each token */
        ret.input.classes = ret.words;
        ret.input.tokens = dim[1];
    }
    return ret;
}

static void set_batch(struct ref_graph *run, const struct graph *graph, int64_t words)
{
    const int data = graph_data_index(graph);
    const int64_t n = shape_count(&graph_tensor(graph, data)->shape);
    float *values = malloc((size_t)n * sizeof(*values));
    for (int64_t i = 0; i < n; i++) {
        values[i] = (float)sin(0.37 * (double)i);
        if (words > 0) {
            values[i] = (float)floor(((double)values[i] * 0.499 + 0.5) * (double)words);
        }
    }
    ref_graph_set(run, data, values);
    free(values);
}

static void set_weights(struct ref_graph *run, const struct graph *graph,
                        const struct onnx_file *file)
{
    for (int i = 0; i < graph_n_stored(graph); i++) {
        const int index = graph_stored_at(graph, i);
        const struct tensor *tensor = graph_tensor(graph, index);
        const struct onnx_tensor *from = onnx_find(file, tensor->name);
        const size_t count = (size_t)shape_count(&tensor->shape);
        float *values = malloc(count * sizeof(*values));
        ck_assert_msg(from != NULL, "no %s", tensor->name);
        ck_assert_int_eq(from->n_dims, tensor->shape.n_dims);
        ck_ms_ok(onnx_read(file, from, values, count, err));
        ref_graph_set(run, index, values);
        free(values);
    }
}

static const char *const models[] = {
    "net-torchscript-train",
    "net-torchscript-eval-13",
    "net-torchscript-static",
    "net-torchscript-sizes",
    "net-dynamo-train",
    "net-dynamo-eval-20",
    "net-dynamo-static",
    "net-dynamo-external",
    "rows-torchscript",
    "rows-dynamo",
    "rows-dynamo-optimized",
    "dense-torchscript",
    "functional-dynamo",
    "called-input-dynamo",
    "called-input-torchscript",
    "called-relu1-dynamo",
    "called-lstm1-dynamo",
    "constants-dynamo",
    "relu6-dynamo-optimized",
    "same-torchscript",
    "pools-torchscript",
    "pools-dynamo",
    "upwards-torchscript",
    "upwards-dynamo",
    "norms-torchscript",
    "norms-dynamo",
    "norms-alike-torchscript",
    "groups-torchscript",
    "groups-dynamo",
    "groups-dynamo-static",
    "gated-torchscript",
    "scale-dynamo",
    "rezero-dynamo",
    "next-torchscript",
    "next-dynamo",
    "next-dynamo-eval",
    "shuffled-torchscript",
    "shuffled-dynamo",
    "patches-torchscript",
    "patches-dynamo",
    "words-torchscript",
    "words-dynamo",
    "last-pooled-torchscript",
    "last-pooled-dynamo",
    "words-dynamo",
    "recurrent-torchscript",
    "recurrent-dynamo",
    "halved-torchscript",
    "halved-dynamo",
    "whole-dynamo",
    "begun-torchscript",
    "resampled-torchscript",
    "resampled-dynamo",
    "plain-torchscript",
    "tied-torchscript",
    "tied-dynamo",
};

START_TEST(a_model_makes_of_a_batch_what_pytorch_makes)
{
    char name[64];
    snprintf(name, sizeof(name), "%s.onnx", models[_i]);
    struct sample sample = sample_of(models[_i]);
    struct onnx_file *file = opened(name);
    struct graph *graph = graph_of(file, &sample.input);
    struct ref_graph *run = ref_graph_create(graph);
    set_batch(run, graph, sample.words);
    set_weights(run, graph, file);

    if (sample.is_training) {
        ref_graph_run_forward(run);
    } else {
        ref_graph_evaluate(run);
    }

    const double *made = ref_graph_values(run, graph_output(graph));
    for (size_t i = 0; i < json_array_size(sample.logits); i++) {
        const double want = json_real_value(json_array_get(sample.logits, i));
        ck_assert_msg(fabs(made[i] - want) < 2e-5 * (1 + fabs(want)), "%s[%zu]: %.9g, not %.9g",
                      models[_i], i, made[i], want);
    }
    ref_graph_destroy(run);
    graph_destroy(graph);
    onnx_close(file);
    json_decref(sample.root);
}
END_TEST

/* ---- names ---- */

/* Those of net.state_dict(), without num_batches_tracked. */
static const char *const net_names[] = {
    "stem.0.weight",       "stem.1.weight",      "stem.1.bias",       "depthwise.weight",
    "depthwise.bias",      "dilated.weight",     "norm.weight",       "norm.bias",
    "inner.weight",        "inner.bias",         "fc.weight",         "fc.bias",
    "stem.1.running_mean", "stem.1.running_var", "norm.running_mean", "norm.running_var",
};

START_TEST(parameters_have_the_names_of_the_module)
{
    static const char *const of[] = {"net-torchscript-train", "net-torchscript-eval-13",
                                     "net-dynamo-train", "net-dynamo-external"};
    char name[64];
    snprintf(name, sizeof(name), "%s.onnx", of[_i]);
    struct sample sample = sample_of(of[_i]);
    struct onnx_file *file = opened(name);
    struct graph *graph = graph_of(file, &sample.input);

    ck_assert_int_eq(graph_n_stored(graph), (int)MS_ARRAY_SIZE(net_names));
    for (size_t i = 0; i < MS_ARRAY_SIZE(net_names); i++) {
        ck_assert_msg(graph_find(graph, net_names[i]) >= 0, "no %s", net_names[i]);
    }
    graph_destroy(graph);
    onnx_close(file);
    json_decref(sample.root);
}
END_TEST

struct listed {
    const struct graph *graph;
    int n;
};

static int list_parameter(void *arg, const struct onnx_tensor *tensor, struct ms_err *err)
{
    struct listed *listed = arg;
    (void)err;
    ck_assert_msg(graph_find(listed->graph, tensor->name) >= 0, "no %s", tensor->name);
    listed->n++;
    return MS_OK;
}

/* Embeddings, places and class tokens are parameters of the file as of the network. */
START_TEST(parameters_of_tokens_are_those_of_the_file)
{
    static const char *const of[] = {
        "patches-torchscript",   "patches-dynamo",     "words-torchscript", "words-dynamo",
        "recurrent-torchscript", "recurrent-dynamo",   "plain-torchscript", "tied-torchscript",
        "tied-dynamo",           "groups-torchscript", "groups-dynamo"};
    char name[64];
    snprintf(name, sizeof(name), "%s.onnx", of[_i]);
    struct sample sample = sample_of(of[_i]);
    struct onnx_file *file = opened(name);
    struct graph *graph = graph_of(file, &sample.input);
    struct listed listed = {.graph = graph};

    ck_ms_ok(onnx_each_parameter(file, list_parameter, &listed, err));

    ck_assert_int_eq(listed.n, graph_n_params(graph));
    graph_destroy(graph);
    onnx_close(file);
    json_decref(sample.root);
}
END_TEST

START_TEST(the_list_is_what_a_person_would_write)
{
    char *text = document_named("functional-dynamo.onnx");
    ck_assert_str_eq(
        strstr(text, "\"layers\""),
        "\"layers\":[{\"conv2d\":{\"bias\":\"fan_in\",\"dilation\":[1,1],\"groups\":1,"
        "\"kernel\":[3,3],\"out\":4,\"padding\":[1,1],\"parameters\":{\"bias\":\"shift\","
        "\"weight\":\"kernel\"},\"stride\":[1,1]}},{\"relu\":{}},{\"avg_pool\":{\"kernel\":[2,2],"
        "\"padding\":[0,0],\"stride\":[2,2]}},{\"flatten\":{}},{\"dense\":{\"bias\":\"none\","
        "\"out\":3,\"parameters\":{\"weight\":\"out\"}}}],\"summary\":\"ONNX, opset 18, of pytorch "
        "2.15.0+cu132\"}");
    free(text);

    text = document_named("net-torchscript-train.onnx"); /* epsilon, momentum: PyTorch's 0.2 */
    ck_assert_ptr_nonnull(strstr(text, "\"input\":{\"channels\":3,\"height\":20,\"width\":16}"));
    ck_assert_ptr_nonnull(
        strstr(text, "{\"batch_norm\":{\"epsilon\":0.001,\"momentum\":0.80000000000000004,\"name\":"
                     "\"norm\",\"parameters\":\"torch\"}},{\"hard_swish\":{}}"));
    free(text);
    text = document_named("net-torchscript-sizes.onnx");
    ck_assert_ptr_nonnull(strstr(text, "\"input\":{\"channels\":3},"));
    free(text);
}
END_TEST

/* A layer is called `input` by no name, and numbers leave out those that a module has. */
START_TEST(names_that_modules_have_are_no_others)
{
    char *text = document_named("called-input-dynamo.onnx");
    ck_assert_ptr_nonnull(strstr(text, "\"parameters\":{\"bias\":\"input.bias\",\"weight\":\"input."
                                       "weight\"}"));
    ck_assert_ptr_nonnull(strstr(text, "{\"add\":{\"from\":[\"input\",\"conv2d1\"]}}"));
    ck_assert_ptr_null(strstr(text, "\"name\":\"input\""));
    free(text);
    text = document_named("called-relu1-dynamo.onnx"); /* modules relu1 and relu3 */
    ck_assert_ptr_nonnull(strstr(text, "{\"relu\":{\"name\":\"relu2\"}}"));
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"relu4\"}}"));
    ck_assert_ptr_nonnull(strstr(text, "[\"relu4\",\"relu5\"]"));
    free(text);
    text = document_named("called-lstm1-dynamo.onnx"); /* parameters that are no weight */
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"lstm1\"}},{\"lstm\":{"));
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"lstm2\",\"parameters\":{"));
    free(text);
}
END_TEST

/* It is cut to 40 bytes, and never within a letter. */
START_TEST(a_producer_is_cut_between_letters)
{
    char *text = document_named("producer-long.onnx");
    ck_assert_ptr_nonnull(
        strstr(text, "\"summary\":\"ONNX, opset 17, of xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""));
    free(text);
}
END_TEST

/* Data may have more channels than transforms compute with. */
START_TEST(a_model_may_read_many_channels)
{
    const struct network_input input = {
        .batch = 3, .channels = 32, .height = 6, .width = 5, .classes = 4};
    struct onnx_file *file = opened("channels-32.onnx");
    struct graph *graph = graph_of(file, &input);
    ck_assert_int_eq(graph_tensor(graph, graph_data_index(graph))->shape.dim[1], 32);
    graph_destroy(graph);
    onnx_close(file);
}
END_TEST

/* Each row of DenseNet's block is the one before it and one more. */
START_TEST(rows_that_begin_alike_are_made_once)
{
    char *text = document_named("dense-torchscript.onnx");
    ck_assert_ptr_nonnull(strstr(text, "{\"concat\":{\"from\":[\"concat7\",\"relu8\"]}}"));
    free(text);
}
END_TEST

/* Each a function of the one before it; SiLU comes as a product of two of these. */
START_TEST(a_chain_of_functions_is_one_layer_each)
{
    char *text = document_named("chain-torchscript.onnx");
    ck_assert_ptr_nonnull(strstr(text,
                                 "{\"leaky_relu\":{\"slope\":0.01}},{\"elu\":{\"alpha\":1.0}},"
                                 "{\"gelu\":{}},{\"silu\":{}},{\"softmax\":{}}"));
    free(text);
}
END_TEST

/* Dropout2d, as it is taken apart: the numbers have a height and a width of 1. */
START_TEST(what_is_drawn_for_channels_drops_them_whole)
{
    struct onnx_file *file = opened("noise-of-channels.onnx");
    char *text = document_of(file);
    ck_assert_msg(strstr(text, "[{\"dropout\":{\"of\":\"channels\",\"rate\":0.5}},{\"flatten\":") !=
                      NULL,
                  "%s", text);
    free(text);
    onnx_close(file);
}
END_TEST

/* A dense layer over channels, with the matrix and the bias that the file has. */
START_TEST(a_matrix_that_a_conv_reads_is_of_each_pixel)
{
    char *text = document_named("matrix-of-pixels.onnx");
    ck_assert_msg(strstr(text, "[{\"dense\":{\"bias\":\"fan_in\",\"name\":\"c\",\"out\":4,"
                               "\"over\":\"channels\"}},{\"flatten\":") != NULL,
                  "%s", text);
    free(text);
}
END_TEST

/* A mask that a module keeps as a buffer is none of its parameters. */
static int count_parameter(void *arg, const struct onnx_tensor *tensor, struct ms_err *err)
{
    (void)err;
    ck_assert_str_eq(tensor->name, "a.weight");
    *(int *)arg += 1;
    return MS_OK;
}

START_TEST(a_buffer_may_hide_what_is_behind_the_diagonal)
{
    int n = 0;
    struct onnx_file *file = opened("attention-buffer.onnx");
    char *text = document_of(file);
    ck_assert_msg(strstr(text, "{\"concat\":{\"from\":[\"tokens1\",\"tokens2\",\"tokens1\"]}},"
                               "{\"dot_product_attention\":{\"causal\":true,\"dropout\":0.5,"
                               "\"heads\":1}},{\"flatten\":{}}") != NULL,
                  "%s", text);
    ck_ms_ok(onnx_each_parameter(file, count_parameter, &n, err));
    ck_assert_int_eq(n, 1);
    free(text);
    onnx_close(file);
}
END_TEST

START_TEST(a_buffer_that_is_turned_hides_what_it_then_hides)
{
    char *text = document_named("attention-turned-back.onnx");
    ck_assert_msg(strstr(text, "{\"dot_product_attention\":{\"causal\":true,") != NULL, "%s", text);
    free(text);
}
END_TEST

/* Before opset 13 it is over all values from the axis on, of which these have one dimension. */
START_TEST(a_softmax_of_rows_means_the_same_in_all_opsets)
{
    char *text = document_named("softmax-12-rows.onnx");
    ck_assert_msg(strstr(text, "{\"softmax\":{}},{\"dense\"") != NULL, "%s", text);
    free(text);
    text = document_named("softmax-12-pixels.onnx");
    ck_assert_msg(strstr(text, "{\"softmax\":{}},{\"mul\"") != NULL, "%s", text);
    free(text);
}
END_TEST

/* As onnx.save writes them with size_threshold=0. */
START_TEST(bounds_may_lie_beside_the_model)
{
    char *text = document_named("bounds-beside.onnx");
    ck_assert_msg(strstr(text, "{\"relu6\":{}},{\"flatten\":{}}") != NULL, "%s", text);
    free(text);
}
END_TEST

/* As opset 23 has it. */
START_TEST(attention_may_be_one_op)
{
    char *text = document_named("attention-whole.onnx");
    ck_assert_msg(strstr(text, "{\"tokens\":{}},{\"concat\":{\"from\":[\"tokens1\",\"tokens1\","
                               "\"tokens1\"]}},{\"dot_product_attention\":{\"causal\":true,"
                               "\"dropout\":0.0,\"heads\":2}},{\"flatten\":{}}") != NULL,
                  "%s", text);
    free(text);
}
END_TEST

/* All values by their places, steps of (n, 30, 3) in (n, 3, 30): nothing is gathered. */
START_TEST(values_that_are_taken_one_by_one_are_seen_in_a_shape)
{
    char *text = document_named("places-turned.onnx");
    ck_assert_msg(strstr(text, "\"layers\":[{\"flatten\":{}},{\"dense\":") != NULL, "%s", text);
    free(text);
}
END_TEST

/* Halves of channels go two ways, and each shuffle is made once. */
START_TEST(channels_that_change_places_are_layers)
{
    static const char *const files[] = {"shuffled-torchscript.onnx", "shuffled-dynamo.onnx"};
    char *text = document_named(files[_i]);
    const char *at = strstr(text, "{\"slice\":{\"first\":6,\"size\":6}},{\"conv2d\"");
    ck_assert_msg(at != NULL, "%s", text);
    at = strstr(at, "{\"concat\":{\"from\":[\"slice2\",\"relu1\"]}},{\"channel_shuffle\":"
                    "{\"groups\":2}}");
    ck_assert_msg(at != NULL, "%s", text);
    at = strstr(at, "\"channel_shuffle\":{\"groups\":3}}");
    ck_assert_msg(at != NULL && strstr(at + 9, "channel_shuffle\"") == NULL, "%s", text);
    free(text);
}
END_TEST

/* Queries, keys and values of one dense layer are its channels; of three they are put in a row. */
START_TEST(attention_is_found_in_its_products)
{
    static const char *const files[] = {"words-torchscript.onnx", "words-dynamo.onnx"};
    char *text = document_named(files[_i]);
    const char *one = strstr(text, "\"name\":\"qkv\",\"out\":24}},{\"dot_product_attention\":"
                                   "{\"causal\":true,\"dropout\":0.0,\"heads\":2}}");
    const char *three = strstr(text, "{\"concat\":{\"from\":[\"q\",\"k\",\"v\"]}},"
                                     "{\"dot_product_attention\":{\"causal\":false,");
    ck_assert_msg(strstr(text, "[{\"embedding\":{\"name\":\"word\",\"size\":8,\"words\":7}},"
                               "{\"positional_embedding\":{\"leading\":0,\"name\":\"place\"}}"),
                  "%s", text);
    ck_assert_msg(one != NULL && three != NULL, "%s", text);
    free(text);
}
END_TEST

/* Below opset 21 it is an InstanceNormalization of groups, a product and a sum. */
START_TEST(a_group_norm_is_put_together)
{
    static const char *const files[] = {"groups-torchscript.onnx", "groups-dynamo.onnx",
                                        "groups-dynamo-static.onnx"};
    static const char *const wanted[] = {
        "{\"group_norm\":{\"beta\":\"zeros\",\"epsilon\":0.001,\"gamma\":\"ones\",\"groups\":2,"
        "\"name\":\"norm\",\"parameters\":\"torch\"}},{\"relu\":{}},{\"group_norm\":{\"beta\":"
        "\"none\",",
        "\"gamma\":\"none\",\"groups\":3}},{\"flatten\":{}}",
        "\"groups\":2,\"name\":\"rows\",\"parameters\":\"torch\"}},{\"relu\":{}},{\"dense\":",
    };
    char *text = document_named(files[_i]);
    for (size_t i = 0; i < MS_ARRAY_SIZE(wanted); i++) {
        ck_assert_msg(strstr(text, wanted[i]) != NULL, "no %s in %s", wanted[i], text);
    }
    free(text);
}
END_TEST

/* Each node is a layer, by PyTorch's names: those of a module's second layer are given. */
START_TEST(recurrent_layers_have_the_parameters_of_the_module)
{
    static const char *const files[] = {"recurrent-torchscript.onnx", "recurrent-dynamo.onnx"};
    static const char *const wanted[] = {
        "{\"lstm\":{\"bias\":\"fan_in\",\"bidirectional\":true,\"hidden\":4,\"name\":\"lstm\"}}",
        "\"weight_ih_l0_reverse\":\"lstm.weight_ih_l1_reverse\"",
        "{\"gru\":{\"bias\":\"none\",\"bidirectional\":false,\"hidden\":6,\"name\":\"gru\"}}",
        "{\"token\":{\"at\":5",
        "\"weight_hh_l0\":\"last.weight_hh_l1\"",
    };
    char *text = document_named(files[_i]);
    for (size_t i = 0; i < MS_ARRAY_SIZE(wanted); i++) {
        ck_assert_msg(strstr(text, wanted[i]) != NULL, "no %s in %s", wanted[i], text);
    }
    free(text);
}
END_TEST

/* Of one gate the parameter itself; a function other than tanh is said. */
START_TEST(plain_recurrent_layers_have_the_parameters_of_the_module)
{
    static const char *const wanted[] = {
        "{\"rnn\":{\"bias\":\"fan_in\",\"bidirectional\":true,\"hidden\":4,\"name\":\"rnn\"}}",
        "\"bias_hh_l0_reverse\":\"rnn.bias_hh_l1_reverse\"",
        "{\"rnn\":{\"bias\":\"none\",\"bidirectional\":false,\"hidden\":6,\"name\":\"relu\","
        "\"nonlinearity\":\"relu\"}}",
    };
    char *text = document_named("plain-torchscript.onnx");
    for (size_t i = 0; i < MS_ARRAY_SIZE(wanted); i++) {
        ck_assert_msg(strstr(text, wanted[i]) != NULL, "no %s in %s", wanted[i], text);
    }
    free(text);
}
END_TEST

/* Pads that have a row of pixels more at the end, as (6, 5) with windows of 3 in steps of 2 want
 * it: (4, 3) of each channel, whether the file rounds down, up, or says nothing. */
START_TEST(more_padding_at_the_end_is_kept_however_a_pool_rounds)
{
    static const char *const files[] = {"pool-padded-unsaid.onnx", "pool-padded-floor.onnx",
                                        "pool-padded-ceil.onnx"};
    const struct network_input input = {
        .batch = 2, .channels = 3, .height = 6, .width = 5, .classes = 4};
    struct onnx_file *file = opened(files[_i]);
    struct graph *graph = graph_of(file, &input);
    const struct tensor *weight = graph_tensor(graph, graph_find(graph, "a.weight"));
    ck_assert_int_eq(weight->shape.dim[1], 3 * 4 * 3);
    graph_destroy(graph);
    onnx_close(file);
}
END_TEST

/* ---- what is refused ---- */

static const struct {
    const char *name, *words;
} refused[] = {
    {"net-torchscript-folded.onnx",
     "(Conv, opset 17): the exporter has put a batch norm into this convolution, so that it can no "
     "longer be trained: export with optimize=False"},
    {"net-dynamo-optimized.onnx",
     "(Conv, opset 18): the exporter has put a batch norm into this convolution"},
    {"upwards-dynamo-optimized.onnx",
     "(ConvTranspose, opset 18): the exporter has put a batch norm into this layer"},
    {"norm-of-rows-dynamo.onnx", "it is of rows (BatchNorm1d), and batch_norm is of images"},
    {"norm-of-rows-dynamo-optimized.onnx",
     "(Gemm, opset 18): the exporter has put a batch norm into this layer"},
    {"norm-of-width-torchscript.onnx",
     "(LayerNormalization, opset 17): axis -1: layer norms are over all values of a sample"},
    {"norms-dynamo-optimized.onnx",
     "(InstanceNormalization, opset 18): val_6 is a constant that the exporter made"},
    {"norm-twice-dynamo.onnx",
     "node node__native_batch_norm_legit_functional_1__0 (BatchNormalization, opset 18): it is "
     "called twice, for node node__native_batch_norm_legit_functional__0 moves the statistic "
     "norm.running_mean, too; give each call a module of its own"},
    {"norm-twice-torchscript.onnx",
     "it is called twice, for node /norm/BatchNormalization moves the statistic norm.running_mean, "
     "too; give each call a module of its own"},
    {"pool-begun-behind-torchscript.onnx",
     "(AveragePool, opset 17): padding counts in its means, and with ceil_mode a window would "
     "begin "
     "in the zeros behind the image; export it with ceil_mode=False or count_include_pad=False"},
    {"kernel-other.onnx", "node h (Conv, opset 17): its kernel_shape is [3, 3], and its weight has "
                          "[1, 1]; the file is "},
    {"attribute-twice.onnx",
     "node f (Flatten, opset 17): it has the attribute axis twice; the file is damaged"},
    {"groups-read-before.onnx",
     "(Mul, opset 17): it calculates with a tensor (c.weight) that is no number"},
    {"norm-half-dynamo.onnx", "its scale is a number, and not trained"},
    {"clip-0-20-torchscript.onnx", "what it makes is none of the functions that layers have"},
    {"clip-30-torchscript.onnx", "what it makes is none of the functions that layers have"},
    {"clip-5000-torchscript.onnx", "what it makes is none of the functions that layers have"},
    {"scale-torchscript.onnx",
     "(Mul, opset 17): it calculates with scale, which the model has as a number that is trained, "
     "and no shape: give it one, torch.ones(1)"},
    {"frozen-dynamo.onnx",
     "no_training__0 (BatchNormalization, opset 18): this batch norm is frozen (it was in eval()), "
     "and 1 others are trained: frozen ones are not read yet"},
    {"frozen-torchscript.onnx",
     "node /frozen/BatchNormalization (BatchNormalization, opset 17): this batch norm is frozen"},
    {"cloned-dynamo.onnx",
     "(Add, opset 18): it calculates with a tensor (shift) that is no number"},
    {"copy-identity.onnx", "node p (Add, opset 17): it calculates with a tensor (a.bias)"},
    {"copy-cast.onnx", "node p (Add, opset 17): it calculates with a tensor (a.bias)"},
    {"copy-flatten.onnx", "node p (Add, opset 17): it calculates with a tensor (a.bias)"},
    {"even-cast.onnx", "node i (Cast, opset 17): more than 64 whole numbers"},
    {"group-of-columns.onnx", "node m (Mul, opset 17): it calculates with a tensor (w)"},
    /* whatever an exporter writes before it */
    {"slope-learned.onnx", "node p (PRelu, opset 17): there is no ReLU with a learned slope yet"},
    {"behind-the-output.onnx", "behind-the-output.onnx: its output y is not what its last layer "
                               "makes: there are layers whose "
                               "output nobody reads"},
    {"number-repeated.onnx", "node m (Mul, opset 17): a number is repeated in it to a shape"},
    {"epsilon-nan.onnx",
     "node g (BatchNormalization, opset 17): attribute epsilon is no real number"},
    {"elu-infinite.onnx", "node e (Elu, opset 17): attribute alpha is no real number"},
    {"clip-nan.onnx", "node e (Clip, opset 17): a bound that is no number"},
    {"noise-unscaled.onnx", "node e (Mul, opset 17): what is drawn at random is divided by how "},
    {"noise-halved.onnx",
     "node d (Div, opset 17): what is left is divided by 0.25, and 0.5 of it are kept"},
    {"noise-reshaped.onnx", "node q (Reshape, opset 17): what is drawn at random keeps its shape"},
    {"noise-of-pixels.onnx", "node q (Reshape, opset 17): what is drawn at random keeps its shape"},
    {"cast-of-nothing.onnx", "node n (Cast, opset 17): it has no input"},
    {"softmax-without-output.onnx", "the graph has 0 outputs, and a network here has one"},
    {"matrix-strided.onnx", "node h (Conv, opset 17): its weight is a matrix, of each pixel"},
    {"matrix-in-groups.onnx", "node h (Conv, opset 17): its weight is a matrix, of each pixel"},
    {"matrix-transposed.onnx", "c.weight has 2 dimensions in the file, and 4 are known"},
    {"matrix-as-factor.onnx", "it calculates with a tensor (c.weight) that is no number"},
    {"matrix-behind.onnx", "node k (Unsqueeze, opset 17): only sizes and what the data make get a"},
    {"attention-unscaled.onnx", "node h (MatMul, opset 17): scores are multiplied by 1, and not by "
                                "1 / sqrt(3), the width of a head"},
    {"attention-unsoft.onnx",
     "node h (MatMul, opset 17): the softmax of scores is multiplied with "},
    {"attention-backwards.onnx", "node m (Add, opset 17): scores are multiplied by a number, or "},
    {"attention-turned.onnx", "node m (Add, opset 17): scores are multiplied by a number, or "},
    {"scale-turned.onnx",
     "node h (LayerNormalization, opset 17): w is transposed before it, which only the weight of "},
    {"attention-over-queries.onnx", "node p (Softmax, opset 17): axis 1: attention's softmax is "},
    {"attention-of-itself.onnx", "node h (MatMul, opset 17): layers' values are multiplied as "},
    {"attention-scaled.onnx",
     "node h (Attention, opset 23): scores are multiplied by 0.25, and not "
     "by 1 / sqrt(3), the width of a head"},
    {"attention-masked.onnx", "node h (Attention, opset 23): its mask hides something else"},
    {"softmax-12-channels.onnx",
     "node s (Softmax, opset 12): axis 1: before opset 13 softmax is over all values from there "
     "on, of 3 dimensions, and over one here: export it with opset 13 or later"},
    {"softmax-11-unsaid.onnx",
     "node s (Softmax, opset 11): axis 1: before opset 13 softmax is over all values"},
    {"attention-12.onnx",
     "node p (Softmax, opset 12): axis 1: before opset 13 softmax is over all values"},
    {"reshape-to-nothing.onnx", "node f (Reshape, opset 17): a shape of no values: it has allow"},
    {"attention-capped.onnx",
     "node h (Attention, opset 23): its softcap 2 bends scores before their softmax"},
    {"attention-halved.onnx", "node h (Attention, opset 23): its softmax_precision is FLOAT16; "},
    {"attention-goes-on.onnx", "node h (Attention, opset 23): it reads keys and values of tokens "},
    {"constant-of-no-shape.onnx",
     "node o (Constant, opset 17): constant of a node has a shape that is none"},
    {"attention-of-bools.onnx",
     "node h (Attention, opset 23): constant mask is BOOL with 900 numbers, and at most 64 are "},
    {"bias-of-nothing.onnx",
     "node h (Conv, opset 17): it reads nobody, which nothing before it makes"},
    {"bias-of-nothing-gemm.onnx",
     "node y (Gemm, opset 17): it reads nobody, which nothing before it makes"},
    {"ratio-of-nothing.onnx",
     "node h (Dropout, opset 17): it reads nobody, which nothing before it makes"},
    {"places-many.onnx", "node f (Gather, opset 17): constant places is INT64 with 100 numbers, "},
    {"bounds-away.onnx", "bounds-away.onnx.data cannot be opened"},
    {"recurrent-of-lengths.onnx", "node h (LSTM, opset 17): it has sequence_lens, and samples "},
    {"places-apart.onnx", "(Gather, opset 17): values that are taken one by one, and are not all "},
    {"places-later.onnx", "(Add, opset 17): places from 30 on: all values of a layer are taken"},
    {"places-together.onnx", "(Add, opset 17): places that are added up along one dimension"},
    {"recurrent-folded.onnx",
     "node h (LSTM, opset 17): input 2 (w) is not put together of a module's parameters: export it "
     "with optimize=False"},
    {"recurrent-as-torch.onnx", "input 2 is not all gates of one parameter each, in the order of "},
    {"recurrent-cells.onnx", "node d (Squeeze, opset 17): it reads the cells that an LSTM ends "},
    {"recurrent-reset-first.onnx", "layout 0, input_forget 0, linear_before_reset 0, or a "},
    {"recurrent-backwards.onnx", "a direction that is neither forward nor bidirectional"},
    {"recurrent-clipped.onnx", "it has clip, and a layer is as PyTorch's module is"},
    {"plain-dynamo.onnx", "(Squeeze, opset 18): its input is numbers of the file; PyTorch's newer "
                          "exporter writes an nn.RNN so, token by token"},
    {"plain-sine.onnx", "node h (RNN, opset 17): its activations are not Tanh, or Relu, in each "},
    {"plain-of-rows.onnx", "input 2 has not the shape that its other inputs want"},
    {"recurrent-begun.onnx", "its first state is no zeros: a layer begins with them"},
    {"resized-by-axes.onnx",
     "(Resize, opset 18): it has axes, or a keep_aspect_ratio_policy other"},
    {"resized-by-policy.onnx", "(Resize, opset 18): it has axes, or a keep_aspect_ratio_policy "},
    {"part-of-height.onnx", "it reads 2 dimensions of which some were cut or turned as no layer "},
    {"reshape-across.onnx",
     "node h (Reshape, opset 17): 4 dimensions in a shape of 3: sizes that "},
    {"two-orders.onnx", "node h (Add, opset 17): its inputs have two shapes: their dimensions "},
    {"heads-apart.onnx", "it reads 5 dimensions of which some were cut or turned as no layer does"},
    {"channels-last.onnx", "node s (Flatten, opset 17): channels of images are first when rows"},
};

START_TEST(what_cannot_be_kept_is_refused_with_its_node)
{
    json_t *document = NULL;
    struct onnx_file *file = opened(refused[_i].name);
    ck_ms_fails(onnx_network(file, &document, err), MS_E_INVALID, refused[_i].words);
    ck_assert_ptr_null(document);
    onnx_close(file);
}
END_TEST

/* ---- models made here, byte by byte ---- */

struct bytes {
    uint8_t at[8192];
    size_t n;
};

static void put_varint(struct bytes *b, uint64_t value)
{
    do {
        b->at[b->n++] = (uint8_t)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
}

static void put_number(struct bytes *b, unsigned field, uint64_t value)
{
    put_varint(b, field << 3);
    put_varint(b, value);
}

static void put_bytes(struct bytes *b, unsigned field, const void *src, size_t n)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, n);
    memcpy(b->at + b->n, src, n);
    b->n += n;
}

static void put_text(struct bytes *b, unsigned field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

static void put_message(struct bytes *b, unsigned field, const struct bytes *message)
{
    put_bytes(b, field, message->at, message->n);
}

/* x (n, 4) -> Gemm(w (2, 4), without a bias) -> y; what follows may be something else. */
struct model {
    const char *op;
    const char *weight; /* its name */
    int64_t opset;
    uint64_t dims[2];
    const char *location; /* of external data; NULL: raw_data of n_raw bytes */
    size_t n_raw;
    int n_outputs;
};

static const struct model fine = {"Gemm", "w", 17, {2, 4}, NULL, 32, 1};

static void put_value(struct bytes *graph, unsigned field, const char *name)
{
    struct bytes info = {.n = 0};
    struct bytes type = {.n = 0};
    struct bytes tensor = {.n = 0};
    struct bytes shape = {.n = 0};
    struct bytes batch = {.n = 0};
    struct bytes four = {.n = 0};
    put_text(&batch, 2, "batch");
    put_number(&four, 1, 4);
    put_message(&shape, 1, &batch);
    put_message(&shape, 1, &four);
    put_number(&tensor, 1, 1);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, &type);
    put_message(graph, field, &info);
}

static void put_tensor(struct bytes *graph, const struct model *model)
{
    static const uint8_t raw[64] = {0};
    struct bytes tensor = {.n = 0};
    put_number(&tensor, 1, model->dims[0]);
    put_number(&tensor, 1, model->dims[1]);
    put_number(&tensor, 2, 1);
    put_text(&tensor, 8, model->weight);
    if (model->location != NULL) {
        struct bytes entry = {.n = 0};
        put_text(&entry, 1, "location");
        put_text(&entry, 2, model->location);
        put_message(&tensor, 13, &entry);
        put_number(&tensor, 14, 1);
    } else {
        put_bytes(&tensor, 9, raw, model->n_raw);
    }
    put_message(graph, 5, &tensor);
}

static void put_model(struct bytes *ret, const struct model *model)
{
    struct bytes graph = {.n = 0};
    struct bytes node = {.n = 0};
    struct bytes attribute = {.n = 0};
    struct bytes opset = {.n = 0};
    put_text(&node, 1, "x");
    put_text(&node, 1, model->weight);
    put_text(&node, 2, "y");
    put_text(&node, 4, model->op);
    put_text(&attribute, 1, "transB");
    put_number(&attribute, 3, 1);
    put_number(&attribute, 20, 2);
    put_message(&node, 5, &attribute);
    put_message(&graph, 1, &node);
    put_tensor(&graph, model);
    put_value(&graph, 11, "x");
    for (int i = 0; i < model->n_outputs; i++) {
        put_value(&graph, 12, "y");
    }
    put_number(&opset, 2, (uint64_t)model->opset);
    ret->n = 0;
    put_message(ret, 7, &graph);
    put_message(ret, 8, &opset);
}

static const char *dir;

static const char *written(const struct model *model)
{
    static char path[256];
    static struct bytes bytes;
    put_model(&bytes, model);
    snprintf(path, sizeof(path), "%s/m.onnx", dir);
    FILE *file = fopen(path, "w");
    ck_assert_uint_eq(fwrite(bytes.at, 1, bytes.n, file), bytes.n);
    fclose(file);
    return path;
}

static void setup(void)
{
    dir = test_dir_make();
}

static void teardown(void)
{
    test_dir_remove(dir);
}

START_TEST(a_model_of_one_layer_is_read)
{
    struct onnx_file *file = NULL;
    ck_ms_ok(onnx_open(written(&fine), &file, err));
    char *text = document_of(file);
    ck_assert_ptr_nonnull(
        strstr(text, "[{\"flatten\":{}},{\"dense\":{\"bias\":\"none\",\"out\":2,\"parameters\":"
                     "{\"weight\":\"w\"}}}]"));
    free(text);
    onnx_close(file);
}
END_TEST

static const struct {
    struct model model;
    const char *words;
} wrong[] = {
    {{"Gemm", "w", 7, {2, 4}, NULL, 32, 1}, "m.onnx: opset 7; those from 11 to 23 are read"},
    {{"Gemm", "a name", 17, {2, 4}, NULL, 32, 1}, "a parameter is called a name: names have"},
    {{"Gemm", "w\n", 17, {2, 4}, NULL, 32, 1}, "a node has a name that is no text"},
    {{"Gemm", "w", 17, {2, UINT64_C(1) << 62}, NULL, 32, 1}, "a shape that is none"},
    {{"Gemm", "w", 17, {2, (uint64_t)-4}, NULL, 32, 1}, "a shape that is none"},
    {{"Gemm", "w", 17, {2, 4}, NULL, 32, 2}, "the graph has 2 outputs, and a network here has one"},
    {{"Gemm", "w", 17, {2, 4}, NULL, 32, 0}, "the graph has 0 outputs"},
    {{"Softmax", "w", 17, {2, 4}, NULL, 32, 1},
     "node y (Softmax, opset 17): the loss has it: let the model end in what goes into it"},
    {{"Selu", "w", 17, {2, 4}, NULL, 32, 1}, "node y (Selu, opset 17): there is no layer selu yet"},
    {{"Einsum", "w", 17, {2, 4}, NULL, 32, 1}, "this op is not known: it would need a layer"},
    {{"Mul", "w", 17, {2, 4}, NULL, 32, 1}, "its factor w is neither of each channel (c, 1, 1)"},
    {{"Conv", "w", 17, {2, 4}, NULL, 32, 1}, "it reads images (n, channels, height, width)"},
};

START_TEST(a_model_that_is_none_is_refused)
{
    struct onnx_file *file = NULL;
    json_t *document = NULL;
    struct ms_err why = {0, ""};
    int rc = onnx_open(written(&wrong[_i].model), &file, &why);
    rc = rc < 0 ? rc : onnx_network(file, &document, &why);
    ck_assert_int_eq(rc, MS_E_INVALID);
    ck_assert_msg(strstr(why.text, wrong[_i].words) != NULL, "%s", why.text);
    onnx_close(file);
}
END_TEST

/* Nothing that a file says leads out of its folder. */
START_TEST(values_elsewhere_are_not_followed)
{
    static const char *const locations[] = {"/etc/passwd", "../m.onnx", "sub/w", ".", ""};
    struct onnx_file *file = NULL;
    float values[8];
    struct model model = fine;
    model.location = locations[_i];
    ck_ms_ok(onnx_open(written(&model), &file, err));
    ck_ms_fails(onnx_read(file, onnx_find(file, "w"), values, 8, err), MS_E_INVALID,
                "tensor w: its values lie in a file that is not beside the model");
    onnx_close(file);
}
END_TEST

/* A zero in the name of another file does not cut it off, nor is the model such a file. */
START_TEST(values_of_no_file_are_refused)
{
    static struct bytes bytes;
    static const char *const words[] = {"its values lie in a file that is not beside the model",
                                        "its values lie in the model's own file; it is damaged"};
    struct onnx_file *file = NULL;
    float values[8];
    struct model model = fine;
    model.location = _i == 0 ? "m.onnx?more" : "m.onnx";
    const char *path = written(&model);
    put_model(&bytes, &model);
    uint8_t *mark = memchr(bytes.at, '?', bytes.n);
    if (mark != NULL) {
        *mark = '\0';
        FILE *out = fopen(path, "w");
        ck_assert_uint_eq(fwrite(bytes.at, 1, bytes.n, out), bytes.n);
        fclose(out);
    }
    ck_ms_ok(onnx_open(path, &file, err));
    ck_ms_fails(onnx_read(file, onnx_find(file, "w"), values, 8, err), MS_E_INVALID, words[_i]);
    onnx_close(file);
}
END_TEST

static const char *written_with(uint64_t second)
{
    static struct bytes bytes;
    struct bytes opset = {.n = 0};
    const char *path = written(&fine);
    put_model(&bytes, &fine);
    put_text(&opset, 1, "ai.onnx");
    put_number(&opset, 2, second);
    put_message(&bytes, 8, &opset);
    FILE *out = fopen(path, "w");
    ck_assert_uint_eq(fwrite(bytes.at, 1, bytes.n, out), bytes.n);
    fclose(out);
    return path;
}

/* Its two names may stand for one. */
START_TEST(a_second_opset_is_refused)
{
    struct onnx_file *file = NULL;
    ck_ms_ok(onnx_open(written_with(17), &file, err));
    onnx_close(file);
    const char *path = written_with(13);
    ck_ms_fails(onnx_open(path, &file, err), MS_E_INVALID,
                "it imports ONNX's own opset in two versions; the file is damaged");
}
END_TEST

START_TEST(values_behind_a_link_are_not_followed)
{
    struct onnx_file *file = NULL;
    float values[8];
    char path[256];
    struct model model = fine;
    model.location = "w.data";
    ck_ms_ok(onnx_open(written(&model), &file, err));
    const struct onnx_tensor *tensor = onnx_find(file, "w");
    ck_ms_fails(onnx_read(file, tensor, values, 8, err), MS_E_NOT_FOUND, "w.data cannot be opened");
    snprintf(path, sizeof(path), "%s/w.data", dir);
    ck_assert_int_eq(symlink("/proc/self/exe", path), 0);
    ck_ms_fails(onnx_read(file, tensor, values, 8, err), MS_E_INVALID,
                "the file with its values is a link");
    ck_assert_int_eq(unlink(path), 0);
    FILE *data = fopen(path, "w");
    ck_assert_uint_eq(fwrite("1234567890123456789012345678901", 1, 31, data), 31);
    fclose(data);
    ck_ms_fails(onnx_read(file, tensor, values, 8, err), MS_E_INVALID, "is too short");
    onnx_close(file);
}
END_TEST

START_TEST(a_tensor_whose_data_end_early_is_refused)
{
    struct onnx_file *file = NULL;
    float values[8];
    struct model model = fine;
    model.n_raw = 28;
    ck_ms_ok(onnx_open(written(&model), &file, err));
    ck_ms_fails(onnx_read(file, onnx_find(file, "w"), values, 8, err), MS_E_INVALID,
                "its shape and its data disagree");
    onnx_close(file);
}
END_TEST

/* Cut anywhere, it is refused or has a graph; never read past its end. */
START_TEST(a_file_that_is_cut_is_refused)
{
    static struct bytes bytes;
    char path[256];
    snprintf(path, sizeof(path), "%s/cut.onnx", dir);
    put_model(&bytes, &fine);
    for (size_t n = 0; n < bytes.n; n++) {
        struct onnx_file *file = NULL;
        FILE *out = fopen(path, "w");
        ck_assert_uint_eq(fwrite(bytes.at, 1, n, out), n);
        fclose(out);
        ck_assert_int_eq(onnx_open(path, &file, NULL), MS_E_INVALID);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx");
    TCase *t = tcase_create("models");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_buffer_that_is_turned_hides_what_it_then_hides);
    tcase_add_test(t, a_softmax_of_rows_means_the_same_in_all_opsets);
    tcase_add_test(t, bounds_may_lie_beside_the_model);
    tcase_add_test(t, attention_may_be_one_op);
    tcase_add_test(t, values_that_are_taken_one_by_one_are_seen_in_a_shape);
    tcase_add_test(t, a_buffer_may_hide_what_is_behind_the_diagonal);
    tcase_add_loop_test(t, channels_that_change_places_are_layers, 0, 2);
    tcase_add_loop_test(t, a_group_norm_is_put_together, 0, 3);
    tcase_add_loop_test(t, recurrent_layers_have_the_parameters_of_the_module, 0, 2);
    tcase_add_test(t, plain_recurrent_layers_have_the_parameters_of_the_module);
    tcase_add_loop_test(t, attention_is_found_in_its_products, 0, 2);
    tcase_add_loop_test(t, a_model_makes_of_a_batch_what_pytorch_makes, 0,
                        (int)MS_ARRAY_SIZE(models));
    tcase_add_loop_test(t, parameters_of_tokens_are_those_of_the_file, 0, 11);
    tcase_add_loop_test(t, parameters_have_the_names_of_the_module, 0, 4);
    tcase_add_test(t, the_list_is_what_a_person_would_write);
    tcase_add_test(t, names_that_modules_have_are_no_others);
    tcase_add_test(t, a_producer_is_cut_between_letters);
    tcase_add_test(t, a_model_may_read_many_channels);
    tcase_add_test(t, rows_that_begin_alike_are_made_once);
    tcase_add_test(t, a_chain_of_functions_is_one_layer_each);
    tcase_add_test(t, what_is_drawn_for_channels_drops_them_whole);
    tcase_add_test(t, a_matrix_that_a_conv_reads_is_of_each_pixel);
    tcase_add_loop_test(t, more_padding_at_the_end_is_kept_however_a_pool_rounds, 0, 3);
    tcase_add_loop_test(t, what_cannot_be_kept_is_refused_with_its_node, 0,
                        (int)MS_ARRAY_SIZE(refused));
    tcase_add_test(t, a_model_of_one_layer_is_read);
    tcase_add_loop_test(t, a_model_that_is_none_is_refused, 0, (int)MS_ARRAY_SIZE(wrong));
    tcase_add_loop_test(t, values_elsewhere_are_not_followed, 0, 5);
    tcase_add_loop_test(t, values_of_no_file_are_refused, 0, 2);
    tcase_add_test(t, a_second_opset_is_refused);
    tcase_add_test(t, values_behind_a_link_are_not_followed);
    tcase_add_test(t, a_tensor_whose_data_end_early_is_refused);
    tcase_add_test(t, a_file_that_is_cut_is_refused);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
