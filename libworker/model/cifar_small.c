/* cifar_small.c - a small convolutional network for the quickstart: minutes, not hours, on two
 * cores
 *
 *     3 x (conv 3x3, batch norm, ReLU, max pool 2x2/2), dense
 *
 * Channels are multiples of 16, so that no kernel layout pads. */
#include "libworker/model/layers.h"

#include <math.h>

static int stage(const struct layers *l, int x, const char *conv, const char *norm, int64_t out_c,
                 double gamma)
{
    const struct init scale = {INIT_CONSTANT, gamma};
    x = layer_conv(l, x, conv, out_c, 3, 1, PADDING_SAME, layer_init_he(layer_dim(l, x, 1), 3));
    /* 0.9: a run of the quickstart has few steps, and evaluation must not lag behind them */
    x = layer_batch_norm(l, x, norm, 0.9, 1e-5, scale);
    x = graph_relu(l->graph, x, l->err);
    return layer_max_pool(l, x, 2, 2, PADDING_VALID);
}

int network_cifar_small(const struct layers *l, const struct model_input *input, int x)
{
    const struct init zero = {INIT_CONSTANT, 0};
    x = stage(l, x, "conv1", "bn1", 16, 1);
    x = stage(l, x, "conv2", "bn2", 32, 1);
    /* The dense layer reads 1024 values: at full size a step of 0.05 throws it off for good. A
     * quarter of it trains with learning rates from 0.01 to 0.1 (batch 64, momentum 0.9). */
    x = stage(l, x, "conv3", "bn3", 64, 0.25);
    x = graph_flatten(l->graph, x, l->err);
    const struct init he = {INIT_NORMAL, sqrt(2.0 / (double)layer_dim(l, x, 1))};
    return layer_dense(l, x, "fc", input->classes, he, zero);
}
