/* layer_part.c - what layers are built of: their parameters by name, and what they read */
#include "libworker/network/layer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct init build_init(const struct rule *rule, struct fans fans)
{
    const double in = (double)fans.in;
    switch (rule->kind) {
    case RULE_ONES:
        return (struct init){INIT_CONSTANT, 1};
    case RULE_FAN_IN:
        return (struct init){INIT_UNIFORM, 1 / sqrt(in)};
    case RULE_HE_NORMAL:
        return (struct init){INIT_NORMAL, sqrt(2.0 / in)};
    case RULE_HE_UNIFORM:
        return (struct init){INIT_UNIFORM, sqrt(6.0 / in)};
    case RULE_XAVIER_NORMAL:
        return (struct init){INIT_NORMAL, sqrt(2.0 / (double)(fans.in + fans.out))};
    case RULE_XAVIER_UNIFORM:
        return (struct init){INIT_UNIFORM, sqrt(6.0 / (double)(fans.in + fans.out))};
    case RULE_CONSTANT:
        return (struct init){INIT_CONSTANT, rule->a};
    case RULE_NORMAL:
        return (struct init){INIT_NORMAL, rule->a};
    case RULE_UNIFORM:
        return (struct init){INIT_UNIFORM, rule->a};
    default:
        return (struct init){INIT_CONSTANT, 0};
    }
}

/* PyTorch's word for a part of a batch norm; else it is the same. */
static const char *torch_name(const char *part)
{
    static const char *const names[][2] = {{"gamma", "weight"},
                                           {"beta", "bias"},
                                           {"moving_mean", "running_mean"},
                                           {"moving_variance", "running_var"}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        part = strcmp(names[i][0], part) == 0 ? names[i][1] : part;
    }
    return part;
}

/* What `parameters` calls the part; NULL: nothing. */
static const struct tree_item *own_name(const struct layer *layer, const char *part)
{
    const struct tree_node *names = layer->parameters;
    return names != NULL && names->kind == TREE_MAP ? tree_find(names, part) : NULL;
}

/* <prefix><layer>.<part>, or what `parameters` says instead of the latter two. A name that would be
 * cut is refused by the graph's check of lengths: the buffer holds more than GRAPH_NAME_MAX. */
static const char *part_name(const struct building *b, const struct layer *layer, const char *part,
                             char buf[4 * GRAPH_NAME_MAX])
{
    const struct tree_node *names = layer->parameters;
    const struct tree_item *own = own_name(layer, part);
    if (own != NULL) {
        snprintf(buf, 4 * GRAPH_NAME_MAX, "%s%s", b->prefix, own->value->text);
    } else {
        snprintf(buf, 4 * GRAPH_NAME_MAX, "%s%s.%s", b->prefix, layer->name,
                 names != NULL && names->kind == TREE_SCALAR ? torch_name(part) : part);
    }
    return buf;
}

/* That of a layer before, which begins as that one says. */
static int share_param(const struct building *b, int param, const struct shape *shape)
{
    const struct tensor *there = graph_tensor(b->graph, param);
    char of_that[96];
    char of_this[96];
    return there->role == TENSOR_PARAM && shape_equal(&there->shape, shape)
               ? param
               : ms_fail(b->err, MS_E_INVALID,
                         "%s, which it shares with a layer before it, is %s there, and here it "
                         "would be a parameter %s",
                         there->name, shape_format(&there->shape, of_that, sizeof(of_that)),
                         shape_format(shape, of_this, sizeof(of_this)));
}

int build_param(const struct building *b, const struct layer *layer, const char *part,
                const struct shape *shape, struct init init)
{
    char name[4 * GRAPH_NAME_MAX];
    part_name(b, layer, part, name);
    const int shared = own_name(layer, part) != NULL ? graph_find(b->graph, name) : -1;
    return shared >= 0 ? share_param(b, shared, shape)
                       : graph_param(b->graph, name, shape, init, b->err);
}

int build_state(const struct building *b, const struct layer *layer, const char *part,
                const struct shape *shape, double value)
{
    char name[4 * GRAPH_NAME_MAX];
    const struct init init = {INIT_CONSTANT, value};
    return graph_state(b->graph, part_name(b, layer, part, name), shape, init, layer->momentum,
                       b->err);
}

int build_want_dims(struct building *b, const struct layer *layer, const struct tree_node *at,
                    int x, int n_dims)
{
    char shape[96];
    if (build_shape(b, x)->n_dims == n_dims) {
        return MS_OK;
    }
    shape_format(build_shape(b, x), shape, sizeof(shape));
    ms_fail(b->err, MS_E_INVALID, "it reads %s, and gets %s%s",
            n_dims == 4   ? "images (n, channels, height, width)"
            : n_dims == 3 ? "sequences (n, tokens, channels)"
                          : "rows (n, values)",
            shape, n_dims == 2 ? "; put a flatten or a global_avg_pool before it" : "");
    return build_fail(b, at, layer);
}

int build_made(struct building *b, const struct layer *layer, const struct tree_node *at, int y)
{
    return y < 0 ? build_fail(b, at, layer) : y;
}

void build_bias(const struct building *b, const struct layer *layer, struct op *op, int64_t out,
                struct fans fans)
{
    const struct shape shape = {1, {out}};
    if (layer->bias.kind != RULE_NONE && op->in[1] >= 0) {
        op->in[op->n_in++] = build_param(b, layer, "bias", &shape, build_init(&layer->bias, fans));
    }
}
