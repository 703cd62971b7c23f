/* layer_lists.c - the ops of layers that are lists of layers */
#include "libworker/network/layer.h"

#include "libworker/graph/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int build_sequential(struct building *b, const struct layer *layer, const struct tree_node *at,
                     int x)
{
    (void)at;
    struct scope scope;
    struct building inner = build_within(b, layer->name, &scope);
    x = build_list(&inner, layer->layers, "sequential.layers", x);
    b->n_layers = inner.n_layers;
    return x;
}

/* Body first: definition order. */
int build_residual(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    struct scope scope;
    struct building inner = build_within(b, layer->name, &scope);
    int y = build_list(&inner, layer->body, "residual.body", x);
    int other = x;
    if (layer->shortcut != NULL && y >= 0) {
        other = build_list(&inner, layer->shortcut, "residual.shortcut", x);
    }
    b->n_layers = inner.n_layers;
    if (y < 0 || other < 0) {
        return y < 0 ? y : other; /* err has its place */
    }
    y = graph_add(b->graph, y, other, b->err);
    return y < 0 ? build_fail(b, at, layer) : y;
}

int layer_check_concat(const struct layer *layer, const struct tree_node *at, const char *place,
                       struct ms_err *err)
{
    const int has_list = layer->from != NULL && layer->from->kind == TREE_LIST;
    return has_list != (layer->branches != NULL)
               ? MS_OK
               : tree_fail(at, err,
                           "%s.concat: it puts branches in a row, or what a list of names says: "
                           "give it `branches`, or `from: [a, b]`%s",
                           place, has_list ? ", not both" : "");
}

/* In the order of the branches, or of the names. */
int build_concat(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    if (layer->branches == NULL) {
        struct op row = {.kind = OP_CONCAT, .n_in = layer->n_in};
        memcpy(row.in, layer->in, sizeof(row.in));
        const int y = graph_apply(b->graph, &row, b->err);
        return y < 0 ? build_fail(b, at, layer) : y;
    }
    struct scope scope;
    struct building inner = build_within(b, layer->name, &scope);
    struct op op = {.kind = OP_CONCAT, .n_in = (int)layer->branches->n_items};
    for (int i = 0; i < op.n_in; i++) {
        char place[64];
        snprintf(place, sizeof(place), "concat.branches[%d]", i);
        op.in[i] = build_list(&inner, layer->branches->items[i].value, place, x);
        if (op.in[i] < 0) {
            b->n_layers = inner.n_layers;
            return op.in[i]; /* err has its place */
        }
    }
    b->n_layers = inner.n_layers;
    const int y = graph_apply(b->graph, &op, b->err);
    return y < 0 ? build_fail(b, at, layer) : y;
}

/* "b" and two on is "d", "8" and two on "10". */
static int label_of(const char *first, int64_t i, char *buf, size_t size)
{
    const size_t n = strlen(first);
    if (strspn(first, "0123456789") == n && n < 10) {
        snprintf(buf, size, "%lld", (long long)(atoll(first) + i));
        return MS_OK;
    }
    const int is_letter =
        n == 1 && ((first[0] >= 'a' && first[0] <= 'z') || (first[0] >= 'A' && first[0] <= 'Z'));
    const int64_t last = first[0] >= 'a' ? 'z' : 'Z';
    if (!is_letter || first[0] + i > last) {
        return MS_E_INVALID;
    }
    snprintf(buf, size, "%c", (char)(first[0] + i));
    return MS_OK;
}

int build_repeat(struct building *b, const struct layer *layer, const struct tree_node *at, int x)
{
    for (int64_t i = 0; i < layer->times && x >= 0; i++) {
        char label[32];
        char name[MS_NAME_MAX + 40];
        struct scope scope;
        if (label_of(layer->first, i, label, sizeof(label)) < 0) {
            return tree_fail(at, b->err,
                             "repeat.first: '%s' is no label that counts on for %lld times; give a "
                             "number or a letter",
                             layer->first, (long long)layer->times);
        }
        snprintf(name, sizeof(name), "%s%s%s", layer->name, layer->name[0] != '\0' ? "." : "",
                 label);
        struct building inner = build_within(b, name, &scope);
        x = build_list(&inner, layer->layers, "repeat.layers", x);
        b->n_layers = inner.n_layers;
    }
    return x;
}
