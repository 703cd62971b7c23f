/* table_read.c - from a map to a C struct: binds nodes to rows, then reads row by row */
#include "libworker/schema/field.h"

#include "proto/nearest.h"
#include "proto/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 192, KEY_MAX = 128 };
enum { LIST_MAX = 2048 }; /* names of all layers have 0.7 KiB */

struct binding {
    const struct field_table *table;
    const char *prefix;
    const char *base_dir;
    const struct tree_node *node[ROWS_MAX]; /* of row i, or NULL: not given */
    struct ms_err *err;
};

/* ---- which node belongs to which row ---- */

/* A row of the section, whose keys may have several: the first of its key. */
static int is_first_of(const struct field_table *table, const char *section, size_t row)
{
    const char *key = table->rows[row].key;
    const size_t length = strlen(section);
    size_t first = 0;
    if (!field_is_key(&table->rows[row]) || strncmp(key, section, length) != 0 ||
        strchr(key + length, '.') != NULL) {
        return 0;
    }
    while (strcmp(table->rows[first].key, key) != 0) {
        first++;
    }
    return first == row;
}

/* The only one of which word is the first word: "keep" of "keep_max". */
static const char *begun_by(const char *word, const char *const *siblings, size_t n)
{
    const size_t length = strlen(word);
    const char *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(siblings[i], word, length) == 0 && siblings[i][length] == '_') {
            if (found != NULL) {
                return NULL;
            }
            found = siblings[i];
        }
    }
    return found;
}

/* The row a stray key might have meant: a sibling that looks like it, or begins with it, else the
 * same last word in another section, at the top before all others ("learning_rate" there,
 * "optimizer.seed"). */
static const char *suggest(const struct field_table *table, const char *section, const char *word)
{
    const char *siblings[ROWS_MAX];
    size_t n = 0;
    size_t length = strlen(section);
    for (size_t i = 0; i < table->n; i++) {
        if (is_first_of(table, section, i)) {
            siblings[n++] = table->rows[i].key + length;
        }
    }
    const char *near = ms_nearest(word, siblings, n);
    near = near != NULL ? near : begun_by(word, siblings, n);
    near = near != NULL ? near - length : NULL; /* with its section, as --set wants it */
    for (size_t i = 0; near == NULL && i < table->n; i++) {
        near = strcmp(table->rows[i].key, word) == 0 && field_is_key(&table->rows[i]) ? word : NULL;
    }
    for (size_t i = 0; near == NULL && i < table->n; i++) {
        const char *dot = strrchr(table->rows[i].key, '.');
        if (dot != NULL && strcmp(dot + 1, word) == 0) {
            near = table->rows[i].key;
        }
    }
    return near;
}

/* "a b c", of a long list the first ones: keys of a section, "": of the top. */
static void show_keys(const struct binding *b, const char *section, char *buf, size_t size)
{
    char all[LIST_MAX] = "";
    size_t used = 0;
    const size_t length = strlen(section);
    for (size_t i = 0; i < b->table->n && used < sizeof(all); i++) {
        if (is_first_of(b->table, section, i)) {
            used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used > 0 ? " " : "",
                                     b->table->rows[i].key + length);
        }
    }
    ms_text_words(buf, size, all);
}

static int fail_unknown(const struct binding *b, const char *section, const struct tree_item *item)
{
    char key[41];
    size_t n = 0;
    for (const char *c = item->key; *c != '\0' && n < sizeof(key) - 1; c++) {
        key[n++] = (unsigned char)*c < 0x20 || *c == 0x7F ? ' ' : *c;
    }
    key[n] = '\0';
    const char *near = suggest(b->table, section, item->key);
    if (near != NULL) {
        return tree_fail_at(item->value->origin, item->line, item->column, b->err,
                            "%s%s%s is no key of %s; did you mean %s?", b->prefix, section, key,
                            b->table->of, near);
    }
    char known[200];
    show_keys(b, section, known, sizeof(known));
    return tree_fail_at(item->value->origin, item->line, item->column, b->err,
                        "%s%s%s is no key of %s; known here: %s", b->prefix, section, key,
                        b->table->of, known);
}

static int fail_section(const struct binding *b, const struct field *row, const char *below,
                        const struct tree_node *node)
{
    char known[120];
    show_keys(b, below, known, sizeof(known));
    return tree_fail(node, b->err, "%s must be a section of keys: %s; known here: %s", row->key,
                     row->help, known);
}

static int has_required(const struct binding *b, const char *section)
{
    const size_t length = strlen(section);
    for (size_t i = 0; i < b->table->n; i++) {
        const struct field *row = &b->table->rows[i];
        if ((row->flags & FIELD_REQUIRED) != 0 && strncmp(row->key, section, length) == 0 &&
            row->key[length] == '.') {
            return 1;
        }
    }
    return 0;
}

/* A key with nothing behind it, as a section whose keys are all comments. Whoever wrote it wanted
 * something: none at all is the word null. */
static int fail_empty(const struct binding *b, const struct field *row,
                      const struct tree_node *node)
{
    char legal[200];
    if (row->type == FIELD_SECTION) {
        snprintf(legal, sizeof(legal), "%s (%s)",
                 has_required(b, row->key) ? "its keys" : "{} for the defaults, or its keys",
                 row->help);
    } else {
        field_describe(row, legal, sizeof(legal));
    }
    return tree_fail(node, b->err, "%s%s has no value; give %s%s", b->prefix, row->key, legal,
                     (row->flags & FIELD_OPTIONAL) != 0 ? ", or null for none" : "");
}

/* section: "" or "optimizer.". At most two levels of recursion: the schema's own depth. */
static int bind_map(struct binding *b, const char *section, const struct tree_node *map)
{
    for (size_t k = 0; k < map->n_items; k++) {
        const struct tree_item *item = &map->items[k];
        char key[KEY_MAX];
        snprintf(key, sizeof(key), "%s%.80s", section, item->key);
        size_t i = 0;
        while (i < b->table->n && strcmp(b->table->rows[i].key, key) != 0) {
            i++;
        }
        if (i == b->table->n || strlen(item->key) > 80) {
            return fail_unknown(b, section, item);
        }
        const struct field *row = &b->table->rows[i];
        if (row->type == FIELD_MOVED) {
            return tree_fail_at(item->value->origin, item->line, item->column, b->err,
                                "%s is called %s here; give that key", key, row->help);
        }
        if (row->type == FIELD_LATER) {
            return tree_fail_at(item->value->origin, item->line, item->column, b->err,
                                "%s comes with a later version (%s); leave the key out", key,
                                row->help);
        }
        const int is_null = tree_is_null(item->value);
        const int is_optional = (row->flags & FIELD_OPTIONAL) != 0;
        if (is_null && is_optional && item->value->text[0] != '\0') {
            continue;
        }
        if (is_null && (is_optional || row->type == FIELD_SECTION)) {
            return fail_empty(b, row, item->value);
        }
        for (size_t same = i; same < b->table->n; same++) {
            if (strcmp(b->table->rows[same].key, key) == 0) {
                b->node[same] = item->value;
            }
        }
        if (row->type == FIELD_SECTION) {
            char below[KEY_MAX + 1];
            snprintf(below, sizeof(below), "%s.", key);
            if (item->value->kind != TREE_MAP) {
                return fail_section(b, row, below, item->value);
            }
            int rc = bind_map(b, below, item->value);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return MS_OK;
}

/* The node of the section around row i; root for top-level rows; NULL: the section is not given. */
static const struct tree_node *section_of(const struct binding *b, const struct tree_node *root,
                                          size_t i, int *ret_is_off)
{
    const struct tree_node *found = root;
    *ret_is_off = 0;
    const char *key = b->table->rows[i].key;
    for (size_t s = 0; s < i; s++) {
        const struct field *row = &b->table->rows[s];
        size_t length = strlen(row->key);
        if (row->type == FIELD_SECTION && strncmp(key, row->key, length) == 0 &&
            key[length] == '.') {
            *ret_is_off |= b->node[s] == NULL && (row->flags & FIELD_OPTIONAL) != 0;
            found = b->node[s] != NULL ? b->node[s] : found;
        }
    }
    return found;
}

/* ---- rows to values ---- */

static int read_builtin(const struct binding *b, const struct field *row, void *base)
{
    struct tree_node *node = NULL;
    int rc = tree_parse(row->builtin, strlen(row->builtin), "default", 0, &node, b->err);
    if (rc == MS_OK) {
        const struct field_reader reader = {row, row->key, NULL, b->err};
        rc = field_read(&reader, node, base);
    }
    assert(rc == MS_OK || rc == MS_E_NOMEM);
    tree_destroy(node);
    return rc;
}

static int fail_not_applicable(const struct binding *b, const struct field *row,
                               const struct tree_node *node, const void *base)
{
    for (size_t i = 0; i < b->table->n; i++) {
        const struct field *other = &b->table->rows[i];
        if (strcmp(other->key, row->when_key) == 0) {
            int value = 0;
            memcpy(&value, (const char *)base + other->offset, sizeof(value));
            return tree_fail(node, b->err, "%s%s has no meaning with %s: %s; leave it out",
                             b->prefix, row->key, other->key, other->choices[value]);
        }
    }
    assert(0 && "when_key names a row");
    return MS_E_INVALID;
}

/* It may have another row for what base holds. */
static int has_row(const struct binding *b, const char *key, const void *base)
{
    size_t i = 0;
    while (i < b->table->n &&
           (strcmp(b->table->rows[i].key, key) != 0 || !field_applies(&b->table->rows[i], base))) {
        i++;
    }
    return i < b->table->n;
}

static int read_row(const struct binding *b, const struct tree_node *root, size_t i, void *base)
{
    const struct field *row = &b->table->rows[i];
    const struct tree_node *node = b->node[i];
    int is_off = 0;
    const struct tree_node *around = section_of(b, root, i, &is_off);
    if (is_off || !field_is_key(row)) {
        return MS_OK;
    }
    if (!field_applies(row, base)) {
        return node == NULL || has_row(b, row->key, base) ? MS_OK
                                                          : fail_not_applicable(b, row, node, base);
    }
    if (node == NULL && (row->flags & FIELD_REQUIRED) != 0) {
        char legal[200];
        field_describe(row, legal, sizeof(legal));
        return tree_fail(around, b->err, "%s%s is missing (%s); give %s", b->prefix, row->key,
                         row->help, legal);
    }
    if (row->type == FIELD_SECTION) {
        if ((row->flags & FIELD_OPTIONAL) != 0) {
            *(int *)((char *)base + row->offset) = node != NULL;
        }
        return MS_OK;
    }
    if (node == NULL) {
        return row->builtin != NULL ? read_builtin(b, row, base) : MS_OK;
    }
    char shown[KEY_MAX];
    snprintf(shown, sizeof(shown), "%s%s", b->prefix, row->key);
    const struct field_reader reader = {row, shown, b->base_dir, b->err};
    return field_read(&reader, node, base);
}

int table_read(const struct table_reader *reader, const struct tree_node *map, void *base)
{
    struct binding b = {.table = reader->table,
                        .prefix = reader->prefix,
                        .base_dir = reader->base_dir,
                        .err = reader->err};
    assert(b.table->n <= ROWS_MAX);
    int rc = bind_map(&b, "", map);
    for (size_t i = 0; i < b.table->n && rc == MS_OK; i++) {
        rc = read_row(&b, map, i, base);
    }
    return rc;
}

int table_has(const struct tree_node *map, const char *key)
{
    const struct tree_item *item = tree_find(map, key);
    return item != NULL && !tree_is_null(item->value);
}

/* ---- entries of a list of maps with one key each ---- */

static const char entry_shape[] = "write each as - name: {key: value}";

int entry_read(const struct tree_node *entry, const char *place, const struct tree_item **ret,
               struct ms_err *err)
{
    if (entry->kind != TREE_MAP || entry->n_items != 1) {
        return tree_fail(entry, err, "%s must have exactly one name; %s", place, entry_shape);
    }
    *ret = &entry->items[0];
    return MS_OK;
}

int entry_fail_unknown(const struct tree_item *item, const char *place, const char *what,
                       const char *const *known, size_t n, struct ms_err *err)
{
    char all[LIST_MAX] = "";
    char list[200];
    size_t used = 0;
    for (size_t i = 0; i < n && used < sizeof(all); i++) {
        used +=
            (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used > 0 ? " " : "", known[i]);
    }
    ms_text_words(list, sizeof(list), all);
    const char *near = ms_nearest(item->key, known, n);
    return tree_fail_at(item->value->origin, item->line, item->column, err,
                        "%s: %.40s is no %s%s%s%s; known: %s", place, item->key, what,
                        near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                        near != NULL ? "?" : "", list);
}

int entry_read_table(const struct tree_item *item, const char *place,
                     const struct field_table *table, void *base, struct ms_err *err)
{
    const struct tree_node nothing = {.kind = TREE_MAP,
                                      .origin = item->value->origin,
                                      .line = item->line,
                                      .column = item->column};
    const struct tree_node *map = tree_is_null(item->value) ? &nothing : item->value;
    if (map->kind != TREE_MAP) {
        return tree_fail(map, err, "%s.%s must hold keys; %s", place, item->key, entry_shape);
    }
    char prefix[KEY_MAX];
    snprintf(prefix, sizeof(prefix), "%s.%s.", place, item->key);
    const struct table_reader reader = {.table = table, .prefix = prefix, .err = err};
    return table_read(&reader, map, base);
}
