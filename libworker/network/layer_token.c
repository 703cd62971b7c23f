/* layer_token.c - the ops of layers of tokens */
#include "libworker/network/layer.h"

int build_embedding(struct building *b, const struct layer *layer, const struct tree_node *at,
                    int x)
{
    const int64_t words = layer->words != 0 ? layer->words : b->input->classes;
    const struct shape shape = {2, {words, layer->size}};
    const struct fans fans = {words, layer->size};
    struct op op = {.kind = OP_EMBEDDING, .in = {x}};
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_positional(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    const int64_t *dim = build_shape(b, x)->dim;
    const struct shape of_sample = {3, {1, dim[1], dim[2]}};
    const struct shape places = {2, {dim[1], dim[2]}};
    const struct shape shape = layer->leading > 0 ? of_sample : places;
    const struct fans fans = {dim[1], dim[2]};
    struct op op = {.kind = OP_BIAS, .in = {x}};
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_tokens(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    const struct op op = {.kind = OP_TOKENS, .in = {x}};
    int rc = build_want_dims(b, layer, at, x, 4);
    return rc < 0 ? rc : build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_class_token(struct building *b, const struct layer *layer, const struct tree_node *at,
                      int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    const int64_t channels = build_shape(b, x)->dim[2];
    const struct fans fans = {1, channels};
    struct shape shape = {.n_dims = (int)layer->leading + 1, .dim = {1, 1, 1}};
    shape.dim[layer->leading] = channels;
    struct op op = {.kind = OP_CLASS_TOKEN, .in = {x}};
    op.in[1] = build_param(b, layer, "weight", &shape, build_init(&layer->weight, fans));
    return build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_token(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    const int64_t tokens = build_shape(b, x)->dim[1];
    const int64_t channels = build_shape(b, x)->dim[2];
    if (layer->begin >= tokens) {
        ms_fail(b->err, MS_E_INVALID, "token %lld of %lld: they are counted from 0",
                (long long)layer->begin, (long long)tokens);
        return build_fail(b, at, layer);
    }
    int y = graph_flatten(b->graph, x, b->err);
    return y < 0 ? build_made(b, layer, at, y)
                 : build_slice_of(b, layer, at, y, layer->begin * channels, channels);
}

/* A dense layer of tokens; the parts are those of PyTorch's MultiheadAttention. */
static int project(const struct building *b, const struct layer *layer, int x, int64_t out,
                   const struct rule *rule, const char *const parts[2])
{
    const int64_t in = build_shape(b, x)->dim[2];
    const struct shape shape = {2, {out, in}};
    const struct shape values = {1, {out}};
    const struct fans fans = {in, out};
    struct op op = {.kind = OP_DENSE, .n_in = 2, .in = {x}};
    op.in[1] = build_param(b, layer, parts[0], &shape, build_init(rule, fans));
    if (layer->bias.kind != RULE_NONE && op.in[1] >= 0) {
        op.in[op.n_in++] = build_param(b, layer, parts[1], &values, build_init(&layer->bias, fans));
    }
    return graph_apply(b->graph, &op, b->err);
}

static struct op attention_of(const struct layer *layer, int x)
{
    return (struct op){.kind = OP_ATTENTION,
                       .in = {x},
                       .groups = layer->heads,
                       .is_causal = layer->is_causal,
                       .rate = layer->rate};
}

/* Without what makes queries, keys and values, and without what comes behind the heads. */
int build_dot_product(struct building *b, const struct layer *layer, const struct tree_node *at,
                      int x)
{
    const struct op op = attention_of(layer, x);
    int rc = build_want_dims(b, layer, at, x, 3);
    return rc < 0 ? rc : build_made(b, layer, at, graph_apply(b->graph, &op, b->err));
}

int build_attention(struct building *b, const struct layer *layer, const struct tree_node *at,
                    int x)
{
    int rc = build_want_dims(b, layer, at, x, 3);
    if (rc < 0) {
        return rc;
    }
    static const char *const in[] = {"in_proj_weight", "in_proj_bias"};
    static const char *const out[] = {"out_proj.weight", "out_proj.bias"};
    const int64_t channels = build_shape(b, x)->dim[2];
    const struct op op =
        attention_of(layer, project(b, layer, x, 3 * channels, &layer->weight, in));
    int y = graph_apply(b->graph, &op, b->err);
    y = y < 0 ? y : project(b, layer, y, channels, &layer->out_weight, out);
    return build_made(b, layer, at, y);
}
