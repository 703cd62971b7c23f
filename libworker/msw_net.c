/* msw_net.c - a network that functions make: the list of layers that a job file would have
 *
 * What a layer is, what it may say and which shapes it makes is the business of network/: here are
 * texts, one a layer, and the names by which layers read others. */
#include "libworker/msw_impl.h"

#include "libworker/schema/tree.h"
#include "proto/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *text; /* a list of one layer */
    char kind[MS_NAME_MAX + 1];
    char name[MS_NAME_MAX + 1]; /* given, or its kind and number */
    int is_named;
};

struct msw_net {
    struct entry *layers; /* number i + 1 of msworker.h; 0 is the input */
    size_t n, room;
    struct ms_err err; /* of the first call that failed; code 0: none has */
};

struct msw_net *msw_net_create(void)
{
    return calloc(1, sizeof(struct msw_net));
}

void msw_net_destroy(struct msw_net *net)
{
    for (size_t i = 0; net != NULL && i < net->n; i++) {
        free(net->layers[i].text);
    }
    if (net != NULL) {
        free(net->layers);
        free(net);
    }
}

/* ---- a layer ---- */

static const char input_name[] = "input";

static const char *name_of(const struct msw_net *net, int x)
{
    return x == MSW_INPUT ? input_name : net->layers[x - 1].name;
}

/* What stands before each layer already is not said. */
static int is_unsaid(const struct msw_net *net, const int *inputs, int n)
{
    return n == 1 && inputs[0] == (int)net->n;
}

static int put_from(const struct msw_net *net, const int *inputs, int n, char *buf, size_t size)
{
    int used = 0;
    if (is_unsaid(net, inputs, n)) {
        return 0;
    }
    if (n == 1) {
        return snprintf(buf, size, "from: %s, ", name_of(net, inputs[0]));
    }
    for (int i = 0; i < n; i++) {
        used += snprintf(buf + used, size - (size_t)used, "%s%s", i == 0 ? "from: [" : ", ",
                         name_of(net, inputs[i]));
    }
    used += snprintf(buf + used, size - (size_t)used, "], ");
    return used;
}

/* On lines of their own, so that a comment in keys ends. */
static char *make_text(const struct msw_net *net, const char *kind, const int *inputs, int n,
                       const char *typed, const char *keys)
{
    keys = keys != NULL ? keys : "";
    const size_t size = strlen(kind) + strlen(typed) + strlen(keys) +
                        (size_t)n * (MS_NAME_MAX + 8) + sizeof("[{: {from: [], , \n}}]");
    char *text = malloc(size);
    if (text == NULL) {
        return NULL;
    }
    int used = snprintf(text, size, "[{%s: {", kind);
    used += put_from(net, inputs, n, text + used, size - (size_t)used);
    snprintf(text + used, size - (size_t)used, "%s%s%s\n}}]", typed, typed[0] != '\0' ? ", " : "",
             keys);
    return text;
}

static int is_layer(const struct tree_node *list, const char *kind)
{
    const struct tree_node *map =
        list->kind == TREE_LIST && list->n_items == 1 ? list->items[0].value : NULL;
    return map != NULL && map->kind == TREE_MAP && map->n_items == 1 &&
           strcmp(map->items[0].key, kind) == 0 && map->items[0].value->kind == TREE_MAP;
}

static void set_name(const struct msw_net *net, const struct tree_node *list, struct entry *entry)
{
    const struct tree_item *name = tree_find(list->items[0].value->items[0].value, "name");
    int number = 1;
    if (name != NULL && name->value->kind == TREE_SCALAR) {
        snprintf(entry->name, sizeof(entry->name), "%s", name->value->text);
        entry->is_named = 1;
        return;
    }
    for (size_t i = 0; i < net->n; i++) {
        number += !net->layers[i].is_named && strcmp(net->layers[i].kind, entry->kind) == 0;
    }
    snprintf(entry->name, sizeof(entry->name), "%.*s%d", MS_NAME_MAX - 12, entry->kind, number);
}

/* A map of them; NULL: they are none, which is said of the whole layer. Owned. */
static struct tree_node *map_of(const char *keys)
{
    struct tree_node *map = NULL;
    const size_t size = strlen(keys) + sizeof("{\n}");
    char *text = malloc(size);
    if (text != NULL) {
        snprintf(text, size, "{%s\n}", keys);
        (void)tree_parse(text, strlen(text), "keys", 0, &map, NULL);
    }
    free(text);
    if (map != NULL && map->kind != TREE_MAP) {
        tree_destroy(map);
        return NULL;
    }
    return map;
}

/* What its function has arguments for stands in no key. */
static int check_keys(const char *kind, const char *typed, const char *keys, struct ms_err *err)
{
    struct tree_node *said = map_of(typed);
    struct tree_node *more = map_of(keys != NULL ? keys : "");
    int rc = MS_OK;
    for (size_t i = 0; more != NULL && i < more->n_items && rc == MS_OK; i++) {
        const char *key = more->items[i].key;
        if (strcmp(key, "from") == 0) {
            rc = ms_fail(err, MS_E_INVALID,
                         "%.60s: from: what it reads is an argument of its function; leave the key "
                         "out",
                         kind);
        } else if (said != NULL && tree_find(said, key) != NULL) {
            rc = ms_fail(err, MS_E_INVALID,
                         "%.60s: %.60s: it is an argument of its function; leave the key out", kind,
                         key);
        }
    }
    tree_destroy(said);
    tree_destroy(more);
    return rc;
}

static int read_entry(const struct msw_net *net, const char *kind, const char *typed,
                      const char *keys, struct entry *entry, struct ms_err *err)
{
    struct tree_node *list = NULL;
    snprintf(entry->kind, sizeof(entry->kind), "%s", kind);
    int rc = check_keys(kind, typed, keys, err);
    rc = rc < 0 ? rc : tree_parse(entry->text, strlen(entry->text), entry->kind, 0, &list, err);
    if (rc == MS_OK && !is_layer(list, kind)) {
        rc = ms_fail(err, MS_E_INVALID,
                     "%.60s: '%.160s' are no keys of a layer; write \"key: value, key: value\"",
                     kind, keys != NULL ? keys : "");
    }
    if (rc == MS_OK) {
        set_name(net, list, entry);
    }
    tree_destroy(list);
    return rc;
}

/* A layer that is called as the input is: there layers behind it find it instead. */
static int hides_input(const struct msw_net *net)
{
    size_t i = 0;
    while (i < net->n && strcmp(net->layers[i].name, input_name) != 0) {
        i++;
    }
    return i < net->n;
}

static int check_inputs(const struct msw_net *net, const char *kind, const int *inputs, int n,
                        struct ms_err *err)
{
    if (n < 1 || n > MSW_INPUTS_MAX) {
        return ms_fail(err, MS_E_INVALID, "%.60s: it reads %d layers; give 1 to %d", kind, n,
                       MSW_INPUTS_MAX);
    }
    for (int i = 0; i < n; i++) {
        if (inputs[i] < 0 || (size_t)inputs[i] > net->n) {
            return ms_fail(err, MS_E_INVALID,
                           "%.60s: it reads layer %d, and there are %zu before it; give MSW_INPUT, "
                           "or what a function of this network returned",
                           kind, inputs[i], net->n);
        }
        if (inputs[i] == MSW_INPUT && hides_input(net)) {
            return ms_fail(err, MS_E_INVALID,
                           "%.60s: it reads MSW_INPUT, and a layer before it is called %s; give "
                           "that one another name",
                           kind, input_name);
        }
    }
    return MS_OK;
}

static int append(struct msw_net *net, const struct entry *entry, struct ms_err *err)
{
    struct entry *grown = ms_grow(net->layers, net->n, 1, sizeof(*net->layers), &net->room);
    if (grown == NULL || net->n == MS_NETWORK_MAX) { /* of which each takes a byte and more */
        net->layers = grown != NULL ? grown : net->layers;
        return ms_fail(err, grown == NULL ? MS_E_NOMEM : MS_E_INVALID,
                       "%s: no room for another layer", entry->name);
    }
    net->layers = grown;
    net->layers[net->n++] = *entry;
    return MS_OK;
}

static int add(struct msw_net *net, const char *kind, const int *inputs, int n, const char *typed,
               const char *keys)
{
    struct entry entry = {.text = NULL};
    int rc = check_inputs(net, kind, inputs, n, &net->err);
    if (rc < 0) {
        return rc;
    }
    entry.text = make_text(net, kind, inputs, n, typed, keys);
    rc = entry.text == NULL ? ms_fail(&net->err, MS_E_NOMEM, "%.60s: no memory for it", kind)
                            : read_entry(net, kind, typed, keys, &entry, &net->err);
    rc = rc < 0 ? rc : append(net, &entry, &net->err);
    if (rc < 0) {
        free(entry.text);
        return rc;
    }
    return (int)net->n;
}

int net_add(struct msw_net *net, const char *kind, const int *inputs, int n, const char *typed,
            const char *keys)
{
    if (net == NULL || net->err.code < 0) {
        return net == NULL ? MS_E_NOMEM : net->err.code;
    }
    const locale_t locale = locale_enter();
    const int rc = add(net, kind, inputs, n, typed, keys);
    locale_leave(locale);
    return rc;
}

int msw_layer(struct msw_net *net, const char *kind, const int *inputs, int n, const char *keys)
{
    return net_add(net, kind, inputs, n, "", keys);
}

/* ---- all of them ---- */

/* Moves the layer of the entry's list behind those of list. */
static int move_layer(const struct entry *entry, struct tree_node *list, struct ms_err *err)
{
    struct tree_node *one = NULL;
    int rc = tree_parse(entry->text, strlen(entry->text), entry->name, 0, &one, err);
    if (rc == MS_OK) {
        rc = tree_append(list, one->items[0].value, err);
        one->n_items = 0;
    }
    tree_destroy(one);
    return rc;
}

int net_layers(const struct msw_net *net, struct tree_node **ret, struct ms_err *err)
{
    struct tree_node *list = NULL;
    if (net->err.code < 0) {
        return ms_fail(err, net->err.code, "%s", net->err.text);
    }
    if (net->n == 0) {
        return ms_fail(err, MS_E_INVALID, "the network has no layer; msw_dense makes one");
    }
    int rc = tree_parse("[]", 2, "network", 0, &list, err);
    for (size_t i = 0; rc == MS_OK && i < net->n; i++) {
        rc = move_layer(&net->layers[i], list, err);
    }
    if (rc < 0) {
        tree_destroy(list);
        return rc;
    }
    *ret = list;
    return MS_OK;
}
