/* build.c - from a list of layers to ops: names, places of errors, lists in lists */
#include "libworker/network/layer.h"

#include <stdio.h>
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
    if (kind->has_params && layer.name[0] == '\0') { /* "conv2d2": the second one like that here */
        snprintf(layer.name, sizeof(layer.name), "%s%d", kind->name,
                 ++b->counts[kind - layer_kinds]);
    }
    b->kind = kind;
    return kind->build(b, &layer, entry, x);
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
