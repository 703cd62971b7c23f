/* model.c - the table of networks; checks the input, adds data, labels and loss around a network */
#include "libworker/model/model.h"

#include "libworker/model/layers.h"
#include "proto/limits.h"

#include <stddef.h>
#include <string.h>

struct network {
    struct model_info info;
    network_fn *build;
    const char *wants;     /* for the message when sizes do not fit */
    int64_t height, width; /* 0: any */
    int64_t features;      /* c h w, 0: any */
    int64_t side_multiple; /* of height and width, 0: any */
};

static const struct network networks[] = {
    {.info = {"resnet50", "ResNet-50 of the MindSpore samples: stride in a block's first 1x1"},
     .build = network_resnet50,
     .wants = "CxHxW"},
    {.info = {"lenet5", "two 5x5 convolutions and three dense layers"},
     .build = network_lenet5,
     .wants = "Cx32x32",
     .height = 32,
     .width = 32},
    {.info = {"mnist", "one dense layer and ReLU on 784 pixels"},
     .build = network_mnist,
     .wants = "1x28x28 (784 features)",
     .features = 784},
    {.info = {"linear", "one dense layer"}, .build = network_linear, .wants = "CxHxW"},
    {.info = {"cifar_small", "three 3x3 convolutions with batch norm and a dense layer"},
     .build = network_cifar_small,
     .wants = "CxHxW with height and width multiples of 8",
     .side_multiple = 8},
};

const struct model_info *model_at(size_t i)
{
    return i < MS_ARRAY_SIZE(networks) ? &networks[i].info : NULL;
}

static const struct network *network_find(const char *name)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(networks); i++) {
        if (strcmp(networks[i].info.name, name) == 0) {
            return &networks[i];
        }
    }
    return NULL;
}

static int in_range(int64_t value, int64_t max)
{
    return value >= 1 && value <= max;
}

static int check_input(const struct network *network, const struct model_input *in,
                       struct ms_err *err)
{
    const char *name = network->info.name;
    if (!in_range(in->batch, MS_BATCH_MAX)) {
        return ms_fail(err, MS_E_INVALID, "network %s: batch %lld is not in 1 to %d", name,
                       (long long)in->batch, MS_BATCH_MAX);
    }
    if (!in_range(in->classes, MS_CLASSES_MAX)) {
        return ms_fail(err, MS_E_INVALID, "network %s: classes %lld is not in 1 to %d", name,
                       (long long)in->classes, MS_CLASSES_MAX);
    }
    int fits = in_range(in->channels, INT32_MAX) && in_range(in->height, MS_IMAGE_SIDE_MAX) &&
               in_range(in->width, MS_IMAGE_SIDE_MAX);
    fits = fits && (network->height == 0 || in->height == network->height);
    fits = fits && (network->width == 0 || in->width == network->width);
    fits = fits &&
           (network->features == 0 || in->channels * in->height * in->width == network->features);
    int64_t multiple = network->side_multiple > 0 ? network->side_multiple : 1;
    fits = fits && in->height % multiple == 0 && in->width % multiple == 0;
    if (!fits) {
        return ms_fail(err, MS_E_INVALID,
                       "network %s wants %s and gets %lldx%lldx%lld; add a resize transform or "
                       "choose another network",
                       name, network->wants, (long long)in->channels, (long long)in->height,
                       (long long)in->width);
    }
    return MS_OK;
}

static int add_loss(struct graph *graph, int output, const struct model_input *input,
                    enum model_loss loss, struct ms_err *err)
{
    if (output < 0) {
        return output;
    }
    struct shape shape = {loss == MODEL_LOSS_MSE ? 2 : 1, {input->batch, input->classes}};
    enum ms_dtype dtype = loss == MODEL_LOSS_MSE ? MS_F32 : MS_I32;
    int label = graph_label(graph, "label", &shape, dtype, err);
    int value = loss == MODEL_LOSS_MSE ? graph_mse(graph, output, label, err)
                                       : graph_softmax_ce(graph, output, label, err);
    int rc = graph_set_loss(graph, value, err);
    return rc < 0 ? rc : graph_set_output(graph, output, err);
}

int model_build(const char *name, const struct model_input *input, enum model_loss loss,
                struct graph **ret, struct ms_err *err)
{
    const struct network *network = network_find(name);
    if (network == NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "there is no network %s; known: resnet50, lenet5, mnist, linear, "
                       "cifar_small",
                       name);
    }
    int rc = check_input(network, input, err);
    if (rc < 0) {
        return rc;
    }
    struct graph *graph = graph_create(name);
    if (graph == NULL) {
        return ms_fail(err, MS_E_NOMEM, "network %s: no memory for its graph", name);
    }
    const struct layers layers = {graph, err};
    const struct shape shape = {4, {input->batch, input->channels, input->height, input->width}};
    int x = graph_data(graph, "data", &shape, err);
    rc = add_loss(graph, network->build(&layers, input, x), input, loss, err);
    if (rc < 0) {
        graph_destroy(graph);
        return rc;
    }
    *ret = graph;
    return MS_OK;
}
