/* layer_own.c - the types of values that layers alone have: widths, padding, first values,
 * names, lists */
#include "libworker/network/layer.h"

#include "proto/nearest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int is_word(const struct tree_node *node, const char *word)
{
    return node->kind == TREE_SCALAR && strcmp(node->text, word) == 0;
}

/* ---- out: a number, or as many as there are classes ---- */

static int read_out(const struct field_reader *r, const struct tree_node *node, void *base)
{
    int64_t *dst = (void *)((char *)base + r->field->offset);
    if (is_word(node, "classes")) {
        *dst = 0;
        return MS_OK;
    }
    return field_read_whole(r, node, dst);
}

static json_t *write_out(const struct field *field, const void *base)
{
    const int64_t out = *(const int64_t *)(const void *)((const char *)base + field->offset);
    return out == 0 ? json_string("classes") : json_integer(out);
}

const struct field_own layer_out = {
    .legal = "a whole number from 1 to 1048576, or the word classes",
    .read = read_out,
    .write = write_out,
};

/* ---- shape: of a parameter, or as its input has channels ---- */

enum { SHAPE_DIMS_MAX = 4 };

static int read_shape(const struct field_reader *r, const struct tree_node *node, void *base)
{
    struct shape *dst = (void *)((char *)base + r->field->offset);
    struct shape shape = {.n_dims = -1};
    if (is_word(node, "channels")) {
        *dst = shape;
        return MS_OK;
    }
    if (node->kind != TREE_LIST || node->n_items < 1 || node->n_items > SHAPE_DIMS_MAX) {
        return field_fail(r, node, "is no list of one to four sizes");
    }
    int rc = MS_OK;
    for (shape.n_dims = 0; shape.n_dims < (int)node->n_items && rc == MS_OK; shape.n_dims++) {
        rc = field_read_whole(r, node->items[shape.n_dims].value, &shape.dim[shape.n_dims]);
    }
    *dst = rc < 0 ? *dst : shape;
    return rc;
}

static json_t *write_shape(const struct field *field, const void *base)
{
    const struct shape *shape = (const void *)((const char *)base + field->offset);
    json_t *ret = shape->n_dims < 0 ? json_string("channels") : json_array();
    for (int i = 0; i < shape->n_dims; i++) {
        ret = list_append(ret, json_integer(shape->dim[i]));
    }
    return ret;
}

const struct field_own layer_shape = {
    .legal = "the word channels, or a list of one to four sizes",
    .read = read_shape,
    .write = write_shape,
};

/* ---- padding ---- */

static int read_padding(const struct field_reader *r, const struct tree_node *node, void *base)
{
    struct padding *dst = (void *)((char *)base + r->field->offset);
    if (is_word(node, "same") || is_word(node, "valid")) {
        *dst = (struct padding){is_word(node, "same") ? PADDING_SAME : PADDING_NUMBERS, {0, 0}};
        return MS_OK;
    }
    dst->kind = PADDING_NUMBERS;
    return field_read_size(r, node, dst->pixels);
}

static json_t *write_padding(const struct field *field, const void *base)
{
    const struct padding *padding = (const void *)((const char *)base + field->offset);
    if (padding->kind == PADDING_SAME) {
        return json_string("same");
    }
    return list_append(list_append(json_array(), json_integer(padding->pixels[0])),
                       json_integer(padding->pixels[1]));
}

const struct field_own layer_padding = {
    .legal = "same, valid, [height, width] or one number of pixels at each side",
    .read = read_padding,
    .write = write_padding,
};

/* ---- how a parameter begins ---- */

static const char *const words[] = {
    [RULE_ZEROS] = "zeros",
    [RULE_ONES] = "ones",
    [RULE_FAN_IN] = "fan_in",
    [RULE_HE_NORMAL] = "he_normal",
    [RULE_HE_UNIFORM] = "he_uniform",
    [RULE_XAVIER_NORMAL] = "xavier_normal",
    [RULE_XAVIER_UNIFORM] = "xavier_uniform",
    [RULE_CONSTANT] = "constant",
    [RULE_NORMAL] = "normal",
    [RULE_UNIFORM] = "uniform",
    [RULE_NONE] = "none",
};

static int read_rule(const struct field_reader *r, const struct tree_node *node, void *base)
{
    struct rule *dst = (void *)((char *)base + r->field->offset);
    const int has_number = node->kind == TREE_MAP && node->n_items == 1;
    const char *word = has_number                  ? node->items[0].key
                       : node->kind == TREE_SCALAR ? node->text
                                                   : "";
    int kind = has_number ? RULE_CONSTANT : RULE_ZEROS;
    const int end = has_number ? RULE_UNIFORM : RULE_XAVIER_UNIFORM;
    while (kind <= end && strcmp(words[kind], word) != 0) {
        kind++;
    }
    if (kind > end) {
        return field_fail(r, node, "is no way to begin");
    }
    double a = 0;
    int rc = has_number ? field_read_real(r, node->items[0].value, &a) : MS_OK;
    if (rc == MS_OK && kind != RULE_CONSTANT && a < 0) {
        return field_fail(r, node, "has a negative width");
    }
    *dst = (struct rule){(enum rule_kind)kind, a};
    return rc;
}

static json_t *write_rule(const struct field *field, const void *base)
{
    const struct rule *rule = (const void *)((const char *)base + field->offset);
    const int has_number = rule->kind >= RULE_CONSTANT && rule->kind <= RULE_UNIFORM;
    return has_number ? json_pack("{s:f}", words[rule->kind], rule->a)
                      : json_string(words[rule->kind]);
}

/* Of a parameter that a layer may be without. */
static int read_rule_or_none(const struct field_reader *r, const struct tree_node *node, void *base)
{
    struct rule *dst = (void *)((char *)base + r->field->offset);
    if (is_word(node, words[RULE_NONE])) {
        *dst = (struct rule){RULE_NONE, 0};
        return MS_OK;
    }
    return read_rule(r, node, base);
}

#define WAYS_TO_BEGIN                                                                              \
    "zeros | ones | fan_in | he_normal | he_uniform | xavier_normal | xavier_uniform | "           \
    "{constant: a} | {normal: a} | {uniform: a}"

const struct field_own layer_rule = {
    .legal = WAYS_TO_BEGIN,
    .read = read_rule,
    .write = write_rule,
};
const struct field_own layer_rule_or_none = {
    .legal = "none | " WAYS_TO_BEGIN,
    .read = read_rule_or_none,
    .write = write_rule,
};

/* ---- lists of layers ---- */

int layers_read(const struct tree_node *list, const char *place, struct ms_err *err)
{
    int rc = MS_OK;
    for (size_t i = 0; i < list->n_items && rc == MS_OK; i++) {
        char below[96];
        const struct layer_kind *kind = NULL;
        struct layer layer;
        snprintf(below, sizeof(below), "%s[%zu]", place, i);
        rc = layer_read(list->items[i].value, below, &kind, &layer, err);
    }
    return rc;
}

static int read_list(const struct field_reader *r, const struct tree_node *node, void *base)
{
    if (node->kind != TREE_LIST) {
        return tree_fail(node, r->err, "%s must be a list of layers: each line begins with \"- \"",
                         r->shown);
    }
    if (node->n_items == 0) {
        return tree_fail(node, r->err, "%s is empty; put a layer in it%s", r->shown,
                         (r->field->flags & FIELD_OPTIONAL) != 0 ? ", or leave it out" : "");
    }
    const struct tree_node **dst = (void *)((char *)base + r->field->offset);
    *dst = node;
    return layers_read(node, r->shown, r->err);
}

static json_t *write_list(const struct field *field, const void *base)
{
    const struct tree_node *const *src = (const void *)((const char *)base + field->offset);
    return *src == NULL ? json_null() : layers_write(*src);
}

const struct field_own layer_list = {
    .legal = "a list of layers",
    .read = read_list,
    .write = write_list,
};

/* ---- from: names of layers ---- */

enum { BRANCHES_MAX = GRAPH_OP_TENSORS_MAX };

static int read_layer_name(const struct field_reader *r, const struct tree_node *node)
{
    char name[MS_NAME_MAX + 1];
    const struct field row = {.key = r->field->key, .type = FIELD_NAME};
    const struct field_reader reader = {&row, r->shown, r->base_dir, r->err};
    return field_read(&reader, node, name);
}

static int read_from(const struct field_reader *r, const struct tree_node *node, void *base)
{
    const struct tree_node **dst = (void *)((char *)base + r->field->offset);
    *dst = node;
    return read_layer_name(r, node);
}

static int read_from_list(const struct field_reader *r, const struct tree_node *node, void *base)
{
    if (node->kind != TREE_LIST || node->n_items < 2 || node->n_items > BRANCHES_MAX) {
        return field_fail(r, node, "is no list of two to eight names");
    }
    int rc = MS_OK;
    for (size_t i = 0; i < node->n_items && rc == MS_OK; i++) {
        rc = read_layer_name(r, node->items[i].value);
    }
    const struct tree_node **dst = (void *)((char *)base + r->field->offset);
    *dst = node;
    return rc;
}

static int read_from_any(const struct field_reader *r, const struct tree_node *node, void *base)
{
    return node->kind == TREE_LIST ? read_from_list(r, node, base) : read_from(r, node, base);
}

static json_t *write_from(const struct field *field, const void *base)
{
    const struct tree_node *from =
        *(const struct tree_node *const *)(const void *)((const char *)base + field->offset);
    if (from == NULL) {
        return json_null();
    }
    if (from->kind == TREE_SCALAR) {
        return json_string(from->text);
    }
    json_t *ret = json_array();
    for (size_t i = 0; i < from->n_items; i++) {
        ret = list_append(ret, json_string(from->items[i].value->text));
    }
    return ret;
}

const struct field_own layer_from = {
    .legal = "the name of a layer before it, or input",
    .read = read_from,
    .write = write_from,
};
const struct field_own layer_from_list = {
    .legal = "a list of two to eight names of layers before it, or input",
    .read = read_from_list,
    .write = write_from,
};
const struct field_own layer_from_any = {
    .legal = "the name of a layer before it, or input, or a list of two to eight of those",
    .read = read_from_any,
    .write = write_from,
};

/* ---- parameters: what they are called ---- */

static const char torch_word[] = "torch";

static int read_part(const struct field_reader *r, const struct tree_item *part)
{
    const char *const *known = r->field->choices;
    size_t n = 0;
    int is = 0;
    for (n = 0; known[n] != NULL; n++) {
        is |= strcmp(known[n], part->key) == 0;
    }
    if (!is) {
        const char *near = ms_nearest(part->key, known, n);
        return tree_fail_at(part->value->origin, part->line, part->column, r->err,
                            "%s.%s is no parameter of the layer%s%s%s", r->shown, part->key,
                            near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                            near != NULL ? "?" : "");
    }
    return read_layer_name(r, part->value);
}

static int read_parameters(const struct field_reader *r, const struct tree_node *node, void *base)
{
    int rc = is_word(node, torch_word) || (node->kind == TREE_MAP && node->n_items > 0)
                 ? MS_OK
                 : field_fail(r, node, "names no parameters");
    for (size_t i = 0; node->kind == TREE_MAP && i < node->n_items && rc == MS_OK; i++) {
        rc = read_part(r, &node->items[i]);
    }
    const struct tree_node **dst = (void *)((char *)base + r->field->offset);
    *dst = node;
    return rc;
}

static json_t *write_parameters(const struct field *field, const void *base)
{
    const struct tree_node *node =
        *(const struct tree_node *const *)(const void *)((const char *)base + field->offset);
    if (node == NULL) {
        return json_null();
    }
    if (node->kind == TREE_SCALAR) {
        return json_string(torch_word);
    }
    json_t *ret = json_object();
    for (size_t i = 0; i < node->n_items && ret != NULL; i++) {
        if (json_object_set_new(ret, node->items[i].key, json_string(node->items[i].value->text)) <
            0) {
            json_decref(ret);
            ret = NULL;
        }
    }
    return ret;
}

const struct field_own layer_parameters = {
    .legal = "torch, or a map with a name for each",
    .read = read_parameters,
    .write = write_parameters,
};

/* ---- branches: lists beside each other ---- */

static int read_branches(const struct field_reader *r, const struct tree_node *node, void *base)
{
    if (node->kind != TREE_LIST || node->n_items < 2 || node->n_items > BRANCHES_MAX) {
        return field_fail(r, node, "is no list of two to eight lists");
    }
    int rc = MS_OK;
    for (size_t i = 0; i < node->n_items && rc == MS_OK; i++) {
        const struct tree_node *branch = node->items[i].value;
        char place[96];
        snprintf(place, sizeof(place), "%s[%zu]", r->shown, i);
        rc = branch->kind == TREE_LIST
                 ? layers_read(branch, place, r->err)
                 : tree_fail(branch, r->err, "%s must be a list of layers; [] is the input itself",
                             place);
    }
    const struct tree_node **dst = (void *)((char *)base + r->field->offset);
    *dst = node;
    return rc;
}

static json_t *write_branches(const struct field *field, const void *base)
{
    const struct tree_node *const *src = (const void *)((const char *)base + field->offset);
    json_t *ret = *src == NULL ? json_null() : json_array();
    for (size_t i = 0; *src != NULL && i < (*src)->n_items; i++) {
        ret = list_append(ret, layers_write((*src)->items[i].value));
    }
    return ret;
}

const struct field_own layer_branches = {
    .legal = "a list of two to eight lists of layers, of which [] is the input itself",
    .read = read_branches,
    .write = write_branches,
};

json_t *layers_write(const struct tree_node *list)
{
    json_t *ret = json_array();
    for (size_t i = 0; i < list->n_items; i++) {
        const struct layer_kind *kind = NULL;
        struct layer layer;
        if (layer_read(list->items[i].value, "", &kind, &layer, NULL) < 0) {
            json_decref(ret);
            return NULL; /* without memory: it was read before */
        }
        ret = list_append(ret, json_pack("{s:o}", kind->name, table_write(&kind->table, &layer)));
    }
    return ret;
}

/* ---- an entry ---- */

int layer_read(const struct tree_node *entry, const char *place, const struct layer_kind **ret_kind,
               struct layer *ret, struct ms_err *err)
{
    const char *names[KINDS_MAX];
    assert(n_layer_kinds <= KINDS_MAX);
    struct tree_node no_keys = {
        .kind = TREE_MAP, .origin = entry->origin, .line = entry->line, .column = entry->column};
    const struct tree_item bare = {.key = entry->text, /* "- relu" */
                                   .line = entry->line,
                                   .column = entry->column,
                                   .value = &no_keys};
    const struct tree_item *item = &bare;
    int rc = entry->kind == TREE_SCALAR && !tree_is_null(entry)
                 ? MS_OK
                 : entry_read(entry, place, &item, err);
    if (rc < 0) {
        return rc;
    }
    const struct layer_kind *kind = NULL;
    for (size_t i = 0; i < n_layer_kinds; i++) {
        names[i] = layer_kinds[i].name;
        kind = strcmp(names[i], item->key) == 0 ? &layer_kinds[i] : kind;
    }
    if (kind == NULL) {
        return entry_fail_unknown(item, place, "layer", names, n_layer_kinds, err);
    }
    *ret_kind = kind;
    memset(ret, 0, sizeof(*ret));
    rc = entry_read_table(item, place, &kind->table, ret, err);
    return rc == MS_OK && kind->check != NULL ? kind->check(ret, entry, place, err) : rc;
}
