/* msw_layers.c - a function for each kind of layer that is no list of others */
#include "libworker/msw_impl.h"

#include <stdio.h>

enum { TYPED_MAX = 64 };

static int add_one(struct msw_net *net, const char *kind, int x, const char *keys)
{
    return net_add(net, kind, &x, 1, "", keys);
}

/* What is 0 stands in keys, if anywhere. */
static int put_number(char typed[TYPED_MAX], int used, const char *key, int64_t number)
{
    char value[24];
    if (number == 0) {
        return used;
    }
    snprintf(value, sizeof(value), "%lld", (long long)number);
    return used + snprintf(typed + used, (size_t)(TYPED_MAX - used), "%s%s: %s",
                           used > 0 ? ", " : "", key, number == MSW_CLASSES ? "classes" : value);
}

static int add_with(struct msw_net *net, const char *kind, int x, const char *first, int64_t a,
                    const char *second, int64_t b, const char *keys)
{
    char typed[TYPED_MAX] = "";
    const int used = put_number(typed, 0, first, a);
    put_number(typed, used, second, b);
    return net_add(net, kind, &x, 1, typed, keys);
}

/* ---- with parameters ---- */

int msw_conv2d(struct msw_net *net, int x, int64_t out, int64_t kernel, const char *keys)
{
    return add_with(net, "conv2d", x, "out", out, "kernel", kernel, keys);
}

int msw_conv_transpose2d(struct msw_net *net, int x, int64_t out, int64_t kernel, const char *keys)
{
    return add_with(net, "conv_transpose2d", x, "out", out, "kernel", kernel, keys);
}

int msw_dense(struct msw_net *net, int x, int64_t out, const char *keys)
{
    return add_with(net, "dense", x, "out", out, "", 0, keys);
}

int msw_embedding(struct msw_net *net, int x, int64_t words, int64_t size, const char *keys)
{
    return add_with(net, "embedding", x, "words", words, "size", size, keys);
}

int msw_positional_embedding(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "positional_embedding", x, keys);
}

int msw_class_token(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "class_token", x, keys);
}

int msw_attention(struct msw_net *net, int x, int64_t heads, const char *keys)
{
    return add_with(net, "attention", x, "heads", heads, "", 0, keys);
}

int msw_lstm(struct msw_net *net, int x, int64_t hidden, const char *keys)
{
    return add_with(net, "lstm", x, "hidden", hidden, "", 0, keys);
}

int msw_gru(struct msw_net *net, int x, int64_t hidden, const char *keys)
{
    return add_with(net, "gru", x, "hidden", hidden, "", 0, keys);
}

int msw_rnn(struct msw_net *net, int x, int64_t hidden, const char *keys)
{
    return add_with(net, "rnn", x, "hidden", hidden, "", 0, keys);
}

int msw_batch_norm(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "batch_norm", x, keys);
}

int msw_layer_norm(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "layer_norm", x, keys);
}

int msw_group_norm(struct msw_net *net, int x, int64_t groups, const char *keys)
{
    return add_with(net, "group_norm", x, "groups", groups, "", 0, keys);
}

int msw_instance_norm(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "instance_norm", x, keys);
}

int msw_scale(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "scale", x, keys);
}

/* ---- without ---- */

int msw_relu(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "relu", x, keys);
}

int msw_relu6(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "relu6", x, keys);
}

int msw_leaky_relu(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "leaky_relu", x, keys);
}

int msw_elu(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "elu", x, keys);
}

int msw_gelu(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "gelu", x, keys);
}

int msw_silu(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "silu", x, keys);
}

int msw_hard_swish(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "hard_swish", x, keys);
}

int msw_hard_sigmoid(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "hard_sigmoid", x, keys);
}

int msw_sigmoid(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "sigmoid", x, keys);
}

int msw_tanh(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "tanh", x, keys);
}

int msw_softmax(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "softmax", x, keys);
}

int msw_linear(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "linear", x, keys);
}

int msw_dropout(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "dropout", x, keys);
}

int msw_max_pool(struct msw_net *net, int x, int64_t kernel, const char *keys)
{
    return add_with(net, "max_pool", x, "kernel", kernel, "", 0, keys);
}

int msw_avg_pool(struct msw_net *net, int x, int64_t kernel, const char *keys)
{
    return add_with(net, "avg_pool", x, "kernel", kernel, "", 0, keys);
}

int msw_global_avg_pool(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "global_avg_pool", x, keys);
}

int msw_flatten(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "flatten", x, keys);
}

int msw_pad(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "pad", x, keys);
}

int msw_upsample(struct msw_net *net, int x, int64_t factor, const char *keys)
{
    return add_with(net, "upsample", x, "factor", factor, "", 0, keys);
}

int msw_slice(struct msw_net *net, int x, int64_t first, int64_t size, const char *keys)
{
    return add_with(net, "slice", x, "first", first, "size", size, keys);
}

int msw_channel_shuffle(struct msw_net *net, int x, int64_t groups, const char *keys)
{
    return add_with(net, "channel_shuffle", x, "groups", groups, "", 0, keys);
}

int msw_dot_product_attention(struct msw_net *net, int x, int64_t heads, const char *keys)
{
    return add_with(net, "dot_product_attention", x, "heads", heads, "", 0, keys);
}

int msw_token(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "token", x, keys);
}

int msw_tokens(struct msw_net *net, int x, const char *keys)
{
    return add_one(net, "tokens", x, keys);
}

/* ---- of several ---- */

int msw_add(struct msw_net *net, const int *inputs, int n, const char *keys)
{
    return net_add(net, "add", inputs, n, "", keys);
}

int msw_sub(struct msw_net *net, const int *inputs, int n, const char *keys)
{
    return net_add(net, "sub", inputs, n, "", keys);
}

int msw_mul(struct msw_net *net, const int *inputs, int n, const char *keys)
{
    return net_add(net, "mul", inputs, n, "", keys);
}

int msw_concat(struct msw_net *net, const int *inputs, int n, const char *keys)
{
    return net_add(net, "concat", inputs, n, "", keys);
}
