/* layers.c - layers with their parameters, on top of the graph's ops */
#include "libworker/model/layers.h"

#include <math.h>
#include <stdio.h>

/* A parameter named <layer>.<part>. A name that would be cut is refused by the graph's check of
 * lengths: the buffer holds more than GRAPH_NAME_MAX. */
static const char *part_name(char *buf, size_t size, const char *layer, const char *part)
{
    snprintf(buf, size, "%s.%s", layer, part);
    return buf;
}

static int param(const struct layers *l, const char *layer, const char *part,
                 const struct shape *shape, struct init init)
{
    char name[2 * GRAPH_NAME_MAX];
    return graph_param(l->graph, part_name(name, sizeof(name), layer, part), shape, init, l->err);
}

static int state(const struct layers *l, const char *layer, const char *part,
                 const struct shape *shape, double value, double momentum)
{
    char name[2 * GRAPH_NAME_MAX];
    const struct init init = {INIT_CONSTANT, value};
    return graph_state(l->graph, part_name(name, sizeof(name), layer, part), shape, init, momentum,
                       l->err);
}

int64_t layer_dim(const struct layers *l, int x, int i)
{
    if (x < 0 || i >= graph_tensor(l->graph, x)->shape.n_dims) {
        return 0;
    }
    return graph_tensor(l->graph, x)->shape.dim[i];
}

struct init layer_init_he(int64_t in_c, int64_t kernel)
{
    return (struct init){INIT_NORMAL, sqrt(2.0 / (double)(in_c * kernel * kernel))};
}

static struct op_window window(const struct layers *l, int x, int64_t kernel, int64_t stride,
                               enum padding padding)
{
    return padding == PADDING_SAME ? graph_window_same(l->graph, x, kernel, stride)
                                   : graph_window_valid(kernel, stride);
}

int layer_conv(const struct layers *l, int x, const char *name, int64_t out_c, int64_t kernel,
               int64_t stride, enum padding padding, struct init init)
{
    if (x < 0) {
        return x;
    }
    const struct shape shape = {4, {out_c, layer_dim(l, x, 1), kernel, kernel}};
    const struct op_window win = window(l, x, kernel, stride, padding);
    return graph_conv2d(l->graph, x, param(l, name, "weight", &shape, init), &win, l->err);
}

int layer_batch_norm(const struct layers *l, int x, const char *name, double momentum,
                     double epsilon, struct init gamma)
{
    if (x < 0) {
        return x;
    }
    const struct shape shape = {1, {layer_dim(l, x, 1)}};
    const struct init zero = {INIT_CONSTANT, 0};
    /* in this order: definition order is the order of files and of the reference's streams */
    int g = param(l, name, "gamma", &shape, gamma);
    int b = g < 0 ? g : param(l, name, "beta", &shape, zero);
    int mean = b < 0 ? b : state(l, name, "moving_mean", &shape, 0, momentum);
    int variance = mean < 0 ? mean : state(l, name, "moving_variance", &shape, 1, momentum);
    return graph_batch_norm(l->graph, x, g, b, mean, variance, epsilon, l->err);
}

int layer_max_pool(const struct layers *l, int x, int64_t kernel, int64_t stride,
                   enum padding padding)
{
    const struct op_window win = window(l, x, kernel, stride, padding);
    return graph_max_pool(l->graph, x, &win, l->err);
}

int layer_global_mean(const struct layers *l, int x)
{
    const struct op_window win = {.kernel_h = layer_dim(l, x, 2),
                                  .kernel_w = layer_dim(l, x, 3),
                                  .stride_h = 1,
                                  .stride_w = 1};
    return graph_flatten(l->graph, graph_avg_pool(l->graph, x, &win, l->err), l->err);
}

int layer_dense(const struct layers *l, int x, const char *name, int64_t out, struct init weight,
                struct init bias)
{
    if (x < 0) {
        return x;
    }
    const struct shape w_shape = {2, {out, layer_dim(l, x, 1)}};
    const struct shape b_shape = {1, {out}};
    int w = param(l, name, "weight", &w_shape, weight);
    int b = w < 0 ? w : param(l, name, "bias", &b_shape, bias);
    return graph_dense(l->graph, x, w, b, l->err);
}
