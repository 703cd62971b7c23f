/* network.c - the document of a network: what stands around the list of layers, and the graph with
 * data, label and loss around what the list makes */
#include "libworker/network/network.h"

#include "libworker/data/json_text.h"
#include "libworker/graph/op.h"
#include "libworker/network/known.h"
#include "libworker/network/layer.h"
#include "proto/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUMMARY_MAX = 160 };

struct network {
    char name[MS_NAME_MAX + 1];
    char summary[SUMMARY_MAX + 1];
    int has_input; /* what it wants of it; 0: any */
    int64_t channels, height, width;
    int64_t features; /* c h w */
    int64_t multiple; /* of height and width */
    const struct tree_node *layers;
    struct tree_node *tree; /* owned; NULL: somebody else's */
};

/* ---- the document ---- */

static int read_summary(const struct field_reader *r, const struct tree_node *node, void *base)
{
    if (node->kind != TREE_SCALAR || strlen(node->text) > SUMMARY_MAX ||
        !ms_text_is_valid(node->text, MS_TEXT_LINE)) {
        return field_fail(r, node, "is no line of text");
    }
    snprintf((char *)base + r->field->offset, SUMMARY_MAX + 1, "%s", node->text);
    return MS_OK;
}

static json_t *write_summary(const struct field *field, const void *base)
{
    return json_string((const char *)base + field->offset);
}

static const struct field_own summary_own = {
    .legal = "a line of at most 160 bytes",
    .read = read_summary,
    .write = write_summary,
};

#define SIZE_ROW(name, member, most, what)                                                         \
    {                                                                                              \
        .key = "input." name, .type = FIELD_INT64, .offset = offsetof(struct network, member),     \
        .min = 0, .max = most, .builtin = "0", .help = what                                        \
    }
static const struct field rows[] = {
    {.key = "name",
     .type = FIELD_NAME,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = offsetof(struct network, name),
     .help = "what it is called"},
    {.key = "summary",
     .type = FIELD_OWN,
     .own = &summary_own,
     .offset = offsetof(struct network, summary),
     .builtin = "''",
     .help = "a line about it for people"},
    {.key = "input",
     .type = FIELD_SECTION,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = offsetof(struct network, has_input),
     .help = "what it wants of its data"},
    SIZE_ROW("channels", channels, MS_FEATURES_MAX, "of an image; 0: any"),
    SIZE_ROW("height", height, MS_IMAGE_SIDE_MAX, "of an image; 0: any"),
    SIZE_ROW("width", width, MS_IMAGE_SIDE_MAX, "of an image; 0: any"),
    SIZE_ROW("features", features, INT32_MAX, "values of a sample; 0: any"),
    SIZE_ROW("multiple_of", multiple, MS_IMAGE_SIDE_MAX, "height and width are of this; 0: any"),
    {.key = "layers",
     .type = FIELD_OWN,
     .own = &layer_list,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct network, layers),
     .help = "what it is, one behind the other"},
};
static const struct field_table table = {rows, MS_ARRAY_SIZE(rows), "a network"};

/* Of a document that is not the network's to free. */
static int read_document(struct network *network, const struct tree_node *node, struct ms_err *err)
{
    const struct table_reader reader = {.table = &table, .prefix = "", .err = err};
    if (node->kind == TREE_LIST && node->n_items > 0) {
        network->layers = node;
        return layers_read(node, "layers", err);
    }
    if (node->kind != TREE_MAP) {
        return tree_fail(node, err,
                         "a network is a list of layers, or a map that has one under "
                         "the key layers");
    }
    return table_read(&reader, node, network);
}

static int create(const char *name, struct network **ret, struct ms_err *err)
{
    struct network *network = calloc(1, sizeof(*network));
    if (network == NULL) {
        return ms_fail(err, MS_E_NOMEM, "network %.80s: no memory to read it", name);
    }
    snprintf(network->name, sizeof(network->name), "%s", name);
    *ret = network;
    return MS_OK;
}

int network_read(const struct tree_node *node, const char *name, struct network **ret,
                 struct ms_err *err)
{
    struct network *network = NULL;
    int rc = create(name, &network, err);
    rc = rc < 0 ? rc : read_document(network, node, err);
    if (rc == MS_OK && strlen(network->name) >= GRAPH_NAME_MAX) {
        rc = tree_fail(node, err, "name: '%.40s...' is too long; give at most %d characters",
                       network->name, GRAPH_NAME_MAX - 1);
    }
    if (rc < 0) {
        network_destroy(network);
        return rc;
    }
    *ret = network;
    return MS_OK;
}

int network_parse(const char *text, size_t size, const char *origin, const char *name,
                  struct network **ret, struct ms_err *err)
{
    struct tree_node *tree = NULL;
    struct network *network = NULL;
    int rc = tree_parse(text, size, origin, 1, &tree, err);
    rc = rc < 0 ? rc : network_read(tree, name, &network, err);
    if (rc < 0) {
        tree_destroy(tree);
        return rc;
    }
    network->tree = tree;
    *ret = network;
    return MS_OK;
}

void network_destroy(struct network *network)
{
    if (network != NULL) {
        tree_destroy(network->tree);
        free(network);
    }
}

const char *network_name(const struct network *network)
{
    return network->name;
}

const char *network_summary(const struct network *network)
{
    return network->summary;
}

json_t *network_write(const struct network *network)
{
    return table_write(&table, network);
}

char *network_format(const struct network *network, size_t *ret_size)
{
    json_t *root = network_write(network);
    char *text = json_text(root, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17), ret_size);
    json_decref(root);
    return text;
}

/* ---- those that have a name ---- */

const char *network_known(size_t i)
{
    return i < n_known_networks ? known_networks[i].name : NULL;
}

int network_by_name(const char *name, struct network **ret, struct ms_err *err)
{
    char names[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < n_known_networks; i++) {
        const struct known_network *known = &known_networks[i];
        if (strcmp(known->name, name) == 0) {
            return network_parse(known->text, strlen(known->text), known->name, name, ret, err);
        }
        int n =
            snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", known->name);
        used += n > 0 && used + (size_t)n < sizeof(names) ? (size_t)n : 0;
    }
    return ms_fail(err, MS_E_INVALID, "there is no network %.80s; known: %s", name, names);
}

/* ---- the graph ---- */

static int in_range(int64_t value, int64_t max)
{
    return value >= 1 && value <= max;
}

static int fits(int64_t want, int64_t is)
{
    return want == 0 || is == want;
}

static void put_side(int64_t want, const char *any, char *buf, size_t size)
{
    if (want != 0) {
        snprintf(buf, size, "%lld", (long long)want);
    } else {
        snprintf(buf, size, "%s", any);
    }
}

/* "Cx32x32", "CxHxW with height and width multiples of 8". */
static int fail_input(const struct network *network, const struct network_input *in,
                      struct ms_err *err)
{
    char c[24];
    char h[24];
    char w[24];
    char more[96] = "";
    put_side(network->channels, "C", c, sizeof(c));
    put_side(network->height, "H", h, sizeof(h));
    put_side(network->width, "W", w, sizeof(w));
    if (network->features != 0) {
        snprintf(more, sizeof(more), " of %lld features", (long long)network->features);
    } else if (network->multiple != 0) {
        snprintf(more, sizeof(more), " with height and width multiples of %lld",
                 (long long)network->multiple);
    }
    return ms_fail(err, MS_E_INVALID,
                   "network %s wants %sx%sx%s%s and gets %lldx%lldx%lld; add a resize transform or "
                   "choose another network",
                   network->name, c, h, w, more, (long long)in->channels, (long long)in->height,
                   (long long)in->width);
}

static int check_input(const struct network *network, const struct network_input *in,
                       struct ms_err *err)
{
    const char *name = network->name;
    const int64_t multiple = network->multiple > 0 ? network->multiple : 1;
    if (!in_range(in->batch, MS_BATCH_MAX)) {
        return ms_fail(err, MS_E_INVALID, "network %s: batch %lld is not in 1 to %d", name,
                       (long long)in->batch, MS_BATCH_MAX);
    }
    if (!in_range(in->classes, MS_CLASSES_MAX)) {
        return ms_fail(err, MS_E_INVALID, "network %s: classes %lld is not in 1 to %d", name,
                       (long long)in->classes, MS_CLASSES_MAX);
    }
    const int is_image = in_range(in->channels, INT32_MAX) &&
                         in_range(in->height, MS_IMAGE_SIDE_MAX) &&
                         in_range(in->width, MS_IMAGE_SIDE_MAX);
    return is_image && fits(network->channels, in->channels) && fits(network->height, in->height) &&
                   fits(network->width, in->width) &&
                   fits(network->features, in->channels * in->height * in->width) &&
                   in->height % multiple == 0 && in->width % multiple == 0
               ? MS_OK
               : fail_input(network, in, err);
}

/* A row a sample, or a token, as wide as there are classes. */
static struct shape wanted_output(const struct network_input *input)
{
    const struct shape of_samples = {2, {input->batch, input->classes}};
    const struct shape of_tokens = {3, {input->batch, input->tokens, input->classes}};
    return input->tokens > 0 ? of_tokens : of_samples;
}

static int check_output(const struct network *network, const struct graph *graph, int output,
                        const struct network_input *input, struct ms_err *err)
{
    const struct shape want = wanted_output(input);
    const struct shape *is = &graph_tensor(graph, output)->shape;
    char a[96];
    char b[96];
    char help[160] = "";
    if (shape_equal(is, &want)) {
        return MS_OK;
    }
    const int64_t width = is->dim[is->n_dims - 1];
    if (is->n_dims == want.n_dims) {
        snprintf(help, sizeof(help),
                 "; write it with out: classes, or export the model with as many outputs");
    }
    if (is->n_dims == want.n_dims && width > input->classes) {
        const size_t used = strlen(help);
        snprintf(help + used, sizeof(help) - used,
                 "; or leave some of its outputs without data with classes: %lld",
                 (long long)width);
    }
    return tree_fail(network->layers, err, "layers: the last one makes %s, and %lld class%s %s%s",
                     shape_format(is, a, sizeof(a)), (long long)input->classes,
                     input->classes == 1 ? " wants" : "es want", shape_format(&want, b, sizeof(b)),
                     help);
}

static int softmax_ce(struct graph *graph, int output, int label, const struct network_input *input,
                      struct ms_err *err)
{
    const struct op op = {.kind = OP_SOFTMAX_CE,
                          .in = {output, label},
                          .smoothing = input->label_smoothing,
                          .class_weights = input->class_weights,
                          .n_class_weights = input->n_class_weights,
                          .has_ignored = input->has_ignored,
                          .ignored = input->ignored};
    return graph_apply(graph, &op, err);
}

/* Twice is once too often. */
static int check_softmax(const struct network *network, const struct graph *graph, int output,
                         enum network_loss loss, struct ms_err *err)
{
    const int producer = graph_tensor(graph, output)->producer;
    const int is_softmax = producer >= 0 && graph_op(graph, producer)->kind == OP_SOFTMAX;
    return loss == NETWORK_LOSS_SOFTMAX_CE && is_softmax
               ? tree_fail(
                     network->layers, err,
                     "layers: the last one is a softmax, and loss softmax_cross_entropy takes "
                     "the softmax of what it gets; leave the layer out")
               : MS_OK;
}

static int add_loss(struct graph *graph, int output, const struct network_input *input,
                    enum network_loss loss, struct ms_err *err)
{
    static const enum op_kind kinds[] = {[NETWORK_LOSS_SOFTMAX_CE] = OP_SOFTMAX_CE,
                                         [NETWORK_LOSS_MSE] = OP_MSE,
                                         [NETWORK_LOSS_L1] = OP_L1,
                                         [NETWORK_LOSS_HUBER] = OP_HUBER,
                                         [NETWORK_LOSS_BCE] = OP_BCE};
    const int has_classes = loss == NETWORK_LOSS_SOFTMAX_CE;
    const int has_numbers = has_classes && !input->has_soft_labels;
    struct shape shape = wanted_output(input);
    shape.n_dims -= has_numbers;
    int label = graph_label(graph, "label", &shape, has_numbers ? MS_I32 : MS_F32, err);
    int value = has_classes
                    ? softmax_ce(graph, output, label, input, err)
                    : graph_target_loss(graph, kinds[loss], output, label, input->huber_delta, err);
    int rc = graph_set_loss(graph, value, err);
    return rc < 0 ? rc : graph_set_output(graph, output, err);
}

static int fill_graph(const struct network *network, struct graph *graph,
                      const struct network_input *input, enum network_loss loss,
                      struct network_layers *layers, struct ms_err *err)
{
    struct ms_err why = {0, ""}; /* which layers put their places before */
    struct scope scope = {.prefix = ""};
    const struct shape shape = {4, {input->batch, input->channels, input->height, input->width}};
    struct building b = {.graph = graph,
                         .input = input,
                         .err = &why,
                         .prefix = scope.prefix,
                         .counts = scope.counts,
                         .layers = layers};
    int x = graph_data(graph, "data", &shape, &why);
    b.inputs = inputs_create(network->layers, x);
    if (b.inputs == NULL) {
        return ms_fail(err, MS_E_NOMEM, "network %s: no memory to build it", network->name);
    }
    x = x < 0 ? x : build_list(&b, network->layers, "layers", x);
    int rc = x < 0 ? x : inputs_check_read(&b, x);
    inputs_destroy(b.inputs);
    rc = rc < 0 ? rc : check_output(network, graph, x, input, &why);
    if (rc == MS_OK && graph_n_params(graph) == 0) {
        rc = tree_fail(
            network->layers, &why,
            "layers: none of them has parameters, so there is nothing to train; give it a "
            "dense or conv2d layer");
    }
    rc = rc < 0 ? rc : check_softmax(network, graph, x, loss, &why);
    rc = rc < 0 ? rc : add_loss(graph, x, input, loss, &why);
    return rc < 0 ? ms_fail(err, rc, "%s", why.text) : MS_OK;
}

/* layers: NULL where nobody asks for them. */
static int build(const struct network *network, const struct network_input *input,
                 enum network_loss loss, struct network_layers *layers, struct graph **ret,
                 struct ms_err *err)
{
    int rc = check_input(network, input, err);
    if (rc < 0) {
        return rc;
    }
    struct graph *graph = graph_create(network->name);
    if (graph == NULL) {
        return ms_fail(err, MS_E_NOMEM, "network %s: no memory for its graph", network->name);
    }
    rc = fill_graph(network, graph, input, loss, layers, err);
    if (rc < 0) {
        graph_destroy(graph);
        return rc;
    }
    *ret = graph;
    return MS_OK;
}

int network_build(const struct network *network, const struct network_input *input,
                  enum network_loss loss, struct graph **ret, struct ms_err *err)
{
    return build(network, input, loss, NULL, ret, err);
}

int network_build_layers(const struct network *network, const struct network_input *input,
                         enum network_loss loss, struct network_layers **ret_layers,
                         struct graph **ret, struct ms_err *err)
{
    struct network_layers *layers = calloc(1, sizeof(*layers));
    if (layers == NULL) {
        return ms_fail(err, MS_E_NOMEM, "network %s: no memory for a table of its layers",
                       network->name);
    }
    int rc = build(network, input, loss, layers, ret, err);
    if (rc < 0) {
        network_layers_destroy(layers);
        return rc;
    }
    *ret_layers = layers;
    return MS_OK;
}

int network_build_known(const char *name, const struct network_input *input, enum network_loss loss,
                        struct graph **ret, struct ms_err *err)
{
    struct network *network = NULL;
    int rc = network_by_name(name, &network, err);
    rc = rc < 0 ? rc : network_build(network, input, loss, ret, err);
    network_destroy(network);
    return rc;
}
