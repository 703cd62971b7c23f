/* fuzz_network.c - a list of layers: what is accepted makes a graph whose canonical form makes the
 * same one, each of whose ops is of one layer */
#include "libworker/network/network.h"
#include "proto/limits.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const struct network_input inputs[] = {
    {.batch = 2, .channels = 3, .height = 16, .width = 24, .classes = 5},
    {.batch = 2,
     .channels = 6,
     .height = 1,
     .width = 1,
     .classes = 5,
     .tokens = 6}, /* tokens, each with a class */
};
static const struct network_input *input;

static int build(const char *text, size_t size, struct network **ret_network,
                 struct graph **ret_graph, struct ms_err *err)
{
    int rc = network_parse(text, size, "fuzz.yaml", "fuzz", ret_network, err);
    return rc < 0 ? rc
                  : network_build(*ret_network, input, NETWORK_LOSS_SOFTMAX_CE, ret_graph, err);
}

static void check_same(const struct graph *a, const struct graph *b)
{
    char *as = graph_describe(a);
    char *bs = graph_describe(b);
    FUZZ_CHECK(as != NULL && bs != NULL && strcmp(as, bs) == 0);
    FUZZ_CHECK(graph_n_stored(a) == graph_n_stored(b));
    for (int i = 0; i < graph_n_stored(a); i++) {
        const struct tensor *x = graph_tensor(a, graph_stored_at(a, i));
        const struct tensor *y = graph_tensor(b, graph_stored_at(b, i));
        FUZZ_CHECK(strcmp(x->name, y->name) == 0 && shape_equal(&x->shape, &y->shape));
        FUZZ_CHECK(x->init.kind == y->init.kind && x->init.a == y->init.a);
    }
    free(as);
    free(bs);
}

static void check_round_trip(const struct network *network, const struct graph *graph)
{
    struct network *again = NULL;
    struct graph *same = NULL;
    struct ms_err err = {0, ""};
    size_t size = 0;
    char *text = network_format(network, &size);
    FUZZ_CHECK(text != NULL && strlen(text) == size);
    int rc = build(text, size, &again, &same, &err);
    if (rc != MS_OK) {
        fprintf(stderr, "%s\n%s\n", err.text, text);
    }
    FUZZ_CHECK(rc == MS_OK);
    check_same(graph, same);
    graph_destroy(same);
    network_destroy(again);
    free(text);
}

/* The last op is the loss. */
static void check_layers(const struct network *network, const struct graph *graph)
{
    struct network_layers *layers = NULL;
    struct graph *same = NULL;
    int next = 0;
    FUZZ_CHECK(network_build_layers(network, input, NETWORK_LOSS_SOFTMAX_CE, &layers, &same,
                                    NULL) == MS_OK);
    check_same(graph, same);
    for (size_t i = 0; i < layers->n; i++) {
        const struct network_layer *layer = &layers->at[i];
        FUZZ_CHECK(layer->first_op == next && layer->n_ops > 0 && layer->name[0] != '\0');
        next += layer->n_ops;
        FUZZ_CHECK(graph_op(same, next - 1)->out[0] == layer->output);
    }
    FUZZ_CHECK(next == graph_n_ops(same) - 1);
    network_layers_destroy(layers);
    graph_destroy(same);
}

static void check_text(const char *text, size_t size)
{
    struct network *network = NULL;
    struct graph *graph = NULL;
    struct ms_err err = {0, ""};
    int rc = build(text, size, &network, &graph, &err);
    if (rc == MS_OK) {
        check_round_trip(network, graph);
        check_layers(network, graph);
    } else {
        FUZZ_CHECK(rc == MS_E_INVALID && err.text[0] != '\0');
    }
    graph_destroy(graph);
    network_destroy(network);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        input = &inputs[i];
        check_text((const char *)data, size);
    }
    return 0;
}
