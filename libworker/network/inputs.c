/* inputs.c - what a layer reads by name: layers that stand before it, or the images */
#include "libworker/network/layer.h"

#include "proto/grow.h"
#include "proto/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct named {
    char *name; /* full: "layer1.a.relu2" */
    uint64_t hash;
    int output;                 /* the tensor that it makes */
    const struct tree_node *at; /* its entry */
    const char *kind;
};

struct inputs {
    struct named *at; /* in the order in which they are built */
    size_t n, room;
    const struct tree_node *layers; /* the whole document's */
    int images;
};

static const char images_name[] = "input";

/* FNV-1a */
static uint64_t hash_of(const char *text, size_t length, uint64_t hash)
{
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3U;
    }
    return hash;
}

#define HASH_BEGIN 0xcbf29ce484222325U

struct inputs *inputs_create(const struct tree_node *layers, int images)
{
    struct inputs *inputs = calloc(1, sizeof(*inputs));
    if (inputs != NULL) {
        inputs->layers = layers;
        inputs->images = images;
    }
    return inputs;
}

void inputs_destroy(struct inputs *inputs)
{
    for (size_t i = 0; inputs != NULL && i < inputs->n; i++) {
        free(inputs->at[i].name);
    }
    if (inputs != NULL) {
        free(inputs->at);
        free(inputs);
    }
}

int inputs_keep(struct building *b, const char *name, const struct layer_kind *kind,
                const struct tree_node *at, int output)
{
    struct inputs *inputs = b->inputs;
    void *grown = ms_grow(inputs->at, inputs->n, 1, sizeof(*inputs->at), &inputs->room);
    inputs->at = grown != NULL ? grown : inputs->at;
    char *copy = grown != NULL ? strdup(name) : NULL;
    if (copy == NULL) {
        return ms_fail(b->err, MS_E_NOMEM, "network %s: no memory for the names of its layers",
                       graph_name(b->graph));
    }
    inputs->at[inputs->n++] =
        (struct named){copy, hash_of(name, strlen(name), HASH_BEGIN), output, at, kind->name};
    return output;
}

/* ---- by name ---- */

/* The one called prefix and name; *ret_n: how many there are. */
static const struct named *with_name(const struct inputs *inputs, const char *prefix, size_t length,
                                     const char *name, int *ret_n)
{
    const uint64_t hash = hash_of(name, strlen(name), hash_of(prefix, length, HASH_BEGIN));
    const struct named *found = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < inputs->n; i++) {
        const struct named *named = &inputs->at[i];
        if (named->hash == hash && strncmp(named->name, prefix, length) == 0 &&
            strcmp(named->name + length, name) == 0) {
            found = named;
            ++*ret_n;
        }
    }
    return found;
}

/* "layer1.b." ends before "b.": the names of the lists around, from the inside out. */
static size_t outer(const char *prefix, size_t length)
{
    while (length > 0 && --length > 0 && prefix[length - 1] != '.') {
    }
    return length;
}

/* An entry of a list anywhere below node whose key `name` is that; NULL: none. Lists are as deep as
 * tree_parse lets them be. */
static const struct tree_node *find_entry(const struct tree_node *node, const char *name)
{
    const struct tree_node *found = NULL;
    for (size_t i = 0; i < node->n_items && found == NULL; i++) {
        const struct tree_node *value = node->items[i].value;
        const struct tree_item *own = value->kind == TREE_MAP ? tree_find(value, "name") : NULL;
        const int is_it =
            own != NULL && own->value->kind == TREE_SCALAR && strcmp(own->value->text, name) == 0;
        found = is_it ? value : find_entry(value, name);
    }
    return found;
}

/* Names as they may be said here: without what the lists around are called. */
static int fail_unknown(struct building *b, const struct tree_node *at, const char *name)
{
    const struct inputs *inputs = b->inputs;
    const char **known = malloc((inputs->n + 1) * sizeof(*known));
    char near[GRAPH_NAME_MAX + 32] = "";
    const char *dot = strrchr(name, '.');
    const struct tree_node *later = find_entry(inputs->layers, dot != NULL ? dot + 1 : name);
    if (known == NULL) {
        return ms_fail(b->err, MS_E_NOMEM, "network %s: no memory to look for a layer",
                       graph_name(b->graph));
    }
    for (size_t i = 0; i < inputs->n; i++) {
        const char *full = inputs->at[i].name;
        const size_t length = strlen(b->prefix);
        known[i] = full + (strncmp(full, b->prefix, length) == 0 ? length : 0);
    }
    known[inputs->n] = images_name;
    const char *found = ms_nearest(name, known, inputs->n + 1);
    if (found != NULL) {
        snprintf(near, sizeof(near), "; did you mean %.70s?", found);
    }
    free(known);
    return later != NULL && later->line > at->line
               ? tree_fail(
                     at, b->err,
                     "from: layer %.70s stands behind it, in line %zu, and a layer reads what "
                     "stands before it",
                     name, later->line)
           : later != NULL && found == NULL
               ? tree_fail(at, b->err,
                           "from: layer %.70s is not made yet: a layer reads none that it stands "
                           "in, and not itself",
                           name)
               : tree_fail(at, b->err, "from: there is no layer %.70s before it%s", name,
                           near[0] != '\0' ? near : "; `input` is the images");
}

static int find(struct building *b, const struct tree_node *at)
{
    const char *name = at->text;
    size_t length = strlen(b->prefix);
    int n = 0;
    const struct named *named = with_name(b->inputs, b->prefix, length, name, &n);
    while (named == NULL && length > 0) {
        length = outer(b->prefix, length);
        named = with_name(b->inputs, b->prefix, length, name, &n);
    }
    if (n > 1) {
        return tree_fail(at, b->err,
                         "from: %d layers before it are called %s; give the one that is meant a "
                         "name of its own",
                         n, named->name);
    }
    if (named != NULL) {
        return named->output;
    }
    return strcmp(name, images_name) == 0 ? b->inputs->images : fail_unknown(b, at, name);
}

int inputs_find(struct building *b, struct layer *layer, int x)
{
    const struct tree_node *from = layer->from;
    if (from == NULL) {
        return x;
    }
    if (from->kind == TREE_SCALAR) {
        return find(b, from);
    }
    for (size_t i = 0; i < from->n_items; i++) {
        layer->in[i] = find(b, from->items[i].value);
        if (layer->in[i] < 0) {
            return layer->in[i];
        }
    }
    layer->n_in = (int)from->n_items;
    return layer->in[0];
}

/* ---- what nobody reads ---- */

static int fail_unread(struct building *b, int tensor)
{
    const struct inputs *inputs = b->inputs;
    for (size_t i = 0; i < inputs->n; i++) {
        const struct named *named = &inputs->at[i];
        if (named->output == tensor) {
            return tree_fail(named->at, b->err,
                             "layer %s (%s): nobody reads what it makes; say `from: %s` where it "
                             "is wanted, or leave it out",
                             named->name, named->kind, named->name);
        }
    }
    return MS_OK; /* made inside of a layer that uses it up */
}

int inputs_check_read(struct building *b, int output)
{
    const int n = graph_n_tensors(b->graph);
    unsigned char *is_read = calloc((size_t)n, 1);
    int rc = MS_OK;
    if (is_read == NULL) {
        return ms_fail(b->err, MS_E_NOMEM, "network %s: no memory to check its layers",
                       graph_name(b->graph));
    }
    is_read[output] = 1;
    for (int i = 0; i < graph_n_ops(b->graph); i++) {
        const struct op *op = graph_op(b->graph, i);
        for (int k = 0; k < op->n_in; k++) {
            is_read[op->in[k]] = 1;
        }
    }
    for (int i = 0; i < graph_n_ops(b->graph) && rc == MS_OK; i++) {
        const int made = graph_op(b->graph, i)->out[0];
        rc = is_read[made] ? MS_OK : fail_unread(b, made);
    }
    free(is_read);
    return rc;
}
