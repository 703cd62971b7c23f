/* layers.h - layers with their parameters: what a network file is written in
 *
 * Every function returns a tensor index or a negative code and passes a negative x through (see
 * graph.h), so that a network reads as a chain and checks once, at the loss. Private to this room.
 */
#ifndef LAYERS_H
#define LAYERS_H

#include "libworker/model/model.h"

struct layers { /* what every layer needs */
    struct graph *graph;
    struct ms_err *err;
};

enum padding { PADDING_VALID, PADDING_SAME };

/* <name>.weight (out_c, in_c, kernel, kernel), no bias. */
int layer_conv(const struct layers *l, int x, const char *name, int64_t out_c, int64_t kernel,
               int64_t stride, enum padding padding, struct init init);
/* <name>.gamma, .beta, .moving_mean, .moving_variance (c). */
int layer_batch_norm(const struct layers *l, int x, const char *name, double momentum,
                     double epsilon, struct init gamma);
int layer_max_pool(const struct layers *l, int x, int64_t kernel, int64_t stride,
                   enum padding padding);
/* Mean over height and width, as (n, c). */
int layer_global_mean(const struct layers *l, int x);
/* <name>.weight (out, in), <name>.bias (out). */
int layer_dense(const struct layers *l, int x, const char *name, int64_t out, struct init weight,
                struct init bias);

/* Size of dimension i of tensor x; 0 if x is an error. */
int64_t layer_dim(const struct layers *l, int x, int i);

/* N(0, sqrt(2 / fan_in)) of a convolution (He et al., 2015). */
struct init layer_init_he(int64_t in_c, int64_t kernel);

/* One network: its forward ops from the data to the output. input is checked already. */
typedef int network_fn(const struct layers *l, const struct model_input *input, int x);
network_fn network_resnet50, network_lenet5, network_mnist, network_linear, network_cifar_small;

#endif
