/* layer_recurrent.c - the ops of recurrent layers, with the parameters of torch.nn.LSTM, GRU, RNN
 */
#include "libworker/network/layer.h"

#include "libworker/graph/op.h"

#include <stdio.h>
#include <string.h>

int layer_check_recurrent(const struct layer *layer, const struct tree_node *at, const char *place,
                          struct ms_err *err)
{
    return layer->rate == 0 || layer->depth > 1
               ? MS_OK
               : tree_fail(at, err,
                           "%s: dropout is between the layers of a recurrent one, and layers is 1; "
                           "put a dropout layer behind it",
                           place);
}

enum { LEVEL_WEIGHT_IH, LEVEL_WEIGHT_HH, LEVEL_BIAS_IH, LEVEL_BIAS_HH, LEVEL_PARTS };

/* "weight_ih_l0_reverse"; an index or a negative code. */
static int level_param(const struct building *b, const struct layer *layer, int part, int level,
                       int is_reversed, const struct shape *shape)
{
    static const char *const parts[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const struct rule *rule = part < LEVEL_BIAS_IH ? &layer->weight : &layer->bias;
    const struct fans fans = {layer->hidden, layer->hidden}; /* PyTorch's, of all parts */
    char name[48];
    snprintf(name, sizeof(name), "%s_l%d%s", parts[part], level, is_reversed ? "_reverse" : "");
    return build_param(b, layer, name, shape, build_init(rule, fans));
}

static enum op_kind op_of(const struct building *b, const struct layer *layer)
{
    if (strcmp(b->kind->name, "rnn") == 0) {
        return layer->nonlinearity == NONLINEARITY_RELU ? OP_RNN_RELU : OP_RNN_TANH;
    }
    return strcmp(b->kind->name, "gru") == 0 ? OP_GRU : OP_LSTM;
}

/* One direction of a level: (n, tokens, hidden). What the gates get of the input is a dense layer
 * of all tokens at once. */
static int add_direction(const struct building *b, const struct layer *layer, int x, int level,
                         int is_reversed)
{
    const enum op_kind kind = op_of(b, layer);
    const int64_t rows = op_gates(kind) * layer->hidden;
    const struct shape shapes[LEVEL_PARTS] = {{2, {rows, build_shape(b, x)->dim[2]}},
                                              {2, {rows, layer->hidden}},
                                              {1, {rows}},
                                              {1, {rows}}};
    const int n_parts = layer->bias.kind == RULE_NONE ? LEVEL_BIAS_IH : LEVEL_PARTS;
    int params[LEVEL_PARTS];
    for (int i = 0; i < n_parts; i++) {
        params[i] = level_param(b, layer, i, level, is_reversed, &shapes[i]);
        if (params[i] < 0) {
            return params[i];
        }
    }
    struct op dense = {.kind = OP_DENSE, .n_in = 2, .in = {x, params[LEVEL_WEIGHT_IH]}};
    struct op op = {.kind = kind, .n_in = 2, .is_reversed = is_reversed};
    if (n_parts == LEVEL_PARTS) {
        dense.in[dense.n_in++] = params[LEVEL_BIAS_IH];
        op.in[2] = params[LEVEL_BIAS_HH];
        op.n_in = 3;
    }
    op.in[0] = graph_apply(b->graph, &dense, b->err);
    op.in[1] = params[LEVEL_WEIGHT_HH];
    return graph_apply(b->graph, &op, b->err);
}

/* What a direction has made of the last token that it came to, as a row. */
static int last_of(const struct building *b, int y, int is_reversed)
{
    const int64_t tokens = build_shape(b, y)->dim[1], channels = build_shape(b, y)->dim[2];
    struct op op = {.kind = OP_SLICE, .size = channels};
    op.first = is_reversed ? 0 : (tokens - 1) * channels;
    op.in[0] = graph_flatten(b->graph, y, b->err);
    return graph_apply(b->graph, &op, b->err);
}

static int add_level(const struct building *b, const struct layer *layer, int x, int level)
{
    const int is_row = layer->output == OUTPUT_LAST && level == layer->depth - 1;
    const int n = layer->is_bidirectional ? 2 : 1;
    struct op both = {.kind = OP_CONCAT, .n_in = 2};
    for (int i = 0; i < n; i++) {
        int y = add_direction(b, layer, x, level, i);
        y = y >= 0 && is_row ? last_of(b, y, i) : y;
        if (y < 0) {
            return y;
        }
        both.in[i] = y;
    }
    return n == 1 ? both.in[0] : graph_apply(b->graph, &both, b->err);
}

int build_recurrent(struct building *b, const struct layer *layer, const struct tree_node *at,
                    int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    for (int level = 0; level < layer->depth && x >= 0; level++) {
        if (level > 0 && layer->rate > 0) {
            const struct op drop = {.kind = OP_DROPOUT, .in = {x}, .rate = layer->rate};
            x = graph_apply(b->graph, &drop, b->err);
        }
        x = x < 0 ? x : add_level(b, layer, x, level);
    }
    return build_made(b, layer, at, x);
}
