/* lenet5.c - LeNet-5 as in MindSpore's samples, on Cx32x32 */
#include "libworker/model/layers.h"

static int conv_relu_pool(const struct layers *l, int x, const char *name, int64_t out_c)
{
    const struct init normal = {INIT_NORMAL, 0.02};
    x = layer_conv(l, x, name, out_c, 5, 1, PADDING_VALID, normal);
    x = graph_relu(l->graph, x, l->err);
    return layer_max_pool(l, x, 2, 2, PADDING_VALID);
}

int network_lenet5(const struct layers *l, const struct model_input *input, int x)
{
    const struct init normal = {INIT_NORMAL, 0.02};
    const struct init zero = {INIT_CONSTANT, 0};
    x = conv_relu_pool(l, x, "conv1", 6);
    x = conv_relu_pool(l, x, "conv2", 16);
    x = graph_flatten(l->graph, x, l->err);
    x = graph_relu(l->graph, layer_dense(l, x, "fc1", 120, normal, zero), l->err);
    x = graph_relu(l->graph, layer_dense(l, x, "fc2", 84, normal, zero), l->err);
    return layer_dense(l, x, "fc3", input->classes, normal, zero);
}
