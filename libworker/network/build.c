/* build.c - from a list of layers to ops: names, places of errors, lists in lists */
#include "libworker/network/layer.h"

#include "proto/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct shape *build_shape(const struct building *b, int x)
{
    return &graph_tensor(b->graph, x)->shape;
}

int build_fail(struct building *b, const struct tree_node *at, const struct layer *layer)
{
    char why[MS_ERR_TEXT_MAX];
    char head[GRAPH_NAME_MAX + 16];
    const char *kind = b->kind->name;
    const char *text = ms_err_text(b->err);
    if (ms_err_code(b->err) == MS_E_NOMEM) { /* not the layer's fault */
        return MS_E_NOMEM;
    }
    snprintf(head, sizeof(head), "graph %s: ", graph_name(b->graph));
    text += strncmp(text, head, strlen(head)) == 0 ? strlen(head) : 0;
    snprintf(why, sizeof(why), "%s", text);
    return layer->name[0] != '\0'
               ? tree_fail(at, b->err, "layer %s%s (%s): %s", b->prefix, layer->name, kind, why)
               : tree_fail(at, b->err, "layer %s: %s", kind, why);
}

/* ---- what a layer is in the graph ---- */

/* Ops that no layer inside has are this one's; one that has none is no row. */
static int keep_layer(struct building *b, const struct layer_kind *kind, const char *name,
                      int output)
{
    struct network_layers *layers = b->layers;
    const struct network_layer *last = layers->n > 0 ? &layers->at[layers->n - 1] : NULL;
    const int first = last != NULL ? last->first_op + last->n_ops : 0;
    const int n_ops = graph_n_ops(b->graph) - first;
    if (n_ops == 0) {
        return output;
    }
    void *grown = ms_grow(layers->at, layers->n, 1, sizeof(*layers->at), &layers->room);
    layers->at = grown != NULL ? grown : layers->at;
    char *copy = grown != NULL ? strdup(name) : NULL;
    if (copy == NULL) {
        return ms_fail(b->err, MS_E_NOMEM, "network %s: no memory for a table of its layers",
                       graph_name(b->graph));
    }
    layers->at[layers->n++] = (struct network_layer){copy, kind->name, first, n_ops, output};
    return output;
}

void network_layers_destroy(struct network_layers *layers)
{
    for (size_t i = 0; layers != NULL && i < layers->n; i++) {
        free(layers->at[i].name);
    }
    if (layers != NULL) {
        free(layers->at);
        free(layers);
    }
}

/* ---- lists ---- */

/* A layer's own name, or its kind and number: "conv2d2" is the second one like that here. */
static const char *name_of(struct building *b, const struct layer_kind *kind,
                           const struct layer *layer, char *buf, size_t size)
{
    if (layer->name[0] != '\0') {
        snprintf(buf, size, "%s", layer->name);
    } else {
        snprintf(buf, size, "%s%d", kind->name, ++b->counts[kind - layer_kinds]);
    }
    return buf;
}

static int build_entry(struct building *b, const struct tree_node *entry, const char *place, int x)
{
    const struct layer_kind *kind = NULL;
    struct layer layer;
    int rc = layer_read(entry, place, &kind, &layer, b->err);
    if (rc < 0) {
        return rc;
    }
    if (++b->n_layers > MS_LAYERS_MAX) {
        return tree_fail(entry, b->err, "%s: the network has more than %d layers", place,
                         MS_LAYERS_MAX);
    }
    char name[MS_NAME_MAX + 1];
    char full[sizeof(((struct scope *)NULL)->prefix) + sizeof(name)];
    snprintf(full, sizeof(full), "%s%s", b->prefix, name_of(b, kind, &layer, name, sizeof(name)));
    if (kind->has_params) {
        snprintf(layer.name, sizeof(layer.name), "%s", name);
    }
    x = inputs_find(b, &layer, x);
    b->kind = kind;
    x = x < 0 ? x : kind->build(b, &layer, entry, x);
    x = x < 0 ? x : inputs_keep(b, full, kind, entry, x);
    return x < 0 || b->layers == NULL ? x : keep_layer(b, kind, full, x);
}

int build_list(struct building *b, const struct tree_node *list, const char *place, int x)
{
    for (size_t i = 0; i < list->n_items && x >= 0; i++) {
        char below[96];
        snprintf(below, sizeof(below), "%s[%zu]", place, i);
        x = build_entry(b, list->items[i].value, below, x);
    }
    return x;
}

struct building build_within(const struct building *b, const char *name, struct scope *scope)
{
    struct building inner = *b;
    if (name[0] != '\0') {
        memset(scope->counts, 0, sizeof(scope->counts));
        snprintf(scope->prefix, sizeof(scope->prefix), "%s%s.", b->prefix, name);
        inner.prefix = scope->prefix;
        inner.counts = scope->counts;
    }
    return inner;
}
