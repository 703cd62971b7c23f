/* job_own.c - the types of values that a job alone has: its network, where it writes, transforms */
#include "libworker/job/job_schema.h"

#include "proto/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- network ---- */

/* A network is a name; what looks like a file is one day a graph file. */
static int read_network(const struct field_reader *r, const struct tree_node *node, void *base)
{
    static const char *const endings[] = {".onnx", ".json", ".yaml", ".pb", ".mindir", ".graph"};
    if (node->kind == TREE_SCALAR) {
        const char *dot = strrchr(node->text, '.');
        int is_file = strchr(node->text, '/') != NULL;
        for (size_t i = 0; dot != NULL && i < MS_ARRAY_SIZE(endings); i++) {
            is_file |= strcmp(dot, endings[i]) == 0;
        }
        if (is_file) {
            char legal[160];
            field_describe(r->field, legal, sizeof(legal));
            return tree_fail(node, r->err,
                             "%s: a network from a graph file comes later; this version has %s",
                             r->shown, legal);
        }
    }
    int index = 0;
    int rc = field_read_choice(r, node, &index);
    if (rc == MS_OK) {
        snprintf((char *)base + r->field->offset, MS_PATH_MAX + 1, "%s", r->field->choices[index]);
    }
    return rc;
}

static json_t *write_network(const struct field *field, const void *base)
{
    return json_string((const char *)base + field->offset);
}

const struct field_own job_network = {.read = read_network, .write = write_network};

/* ---- folders ---- */

/* Written to, on each worker's host: what a variable or a way up may lead to is not for a job. */
static int read_output(const struct field_reader *r, const struct tree_node *node, void *base)
{
    enum { OUTPUT_MAX = MS_PATH_MAX - 128 }; /* names of files come behind it */
    if (node->kind != TREE_SCALAR || node->text[0] == '\0') {
        return field_fail(r, node, "is no folder");
    }
    if (strlen(node->text) > OUTPUT_MAX) {
        return field_fail(r, node, "is too long a path");
    }
    if (!ms_text_is_valid(node->text, MS_TEXT_LINE)) {
        return field_fail(r, node, "has a control character in it");
    }
    const char *why = job_output_refuse(node->text);
    if (why != NULL) {
        return field_fail(r, node, why);
    }
    snprintf((char *)base + r->field->offset, MS_PATH_MAX + 1, "%s", node->text);
    return MS_OK;
}

static json_t *write_output(const struct field *field, const void *base)
{
    return json_string((const char *)base + field->offset);
}

const struct field_own job_output = {
    .legal = "a folder below the run directory, or an absolute path",
    .read = read_output,
    .write = write_output,
};

/* ---- transforms: a list of maps with one key each ---- */

static int read_transform(const struct field_reader *r, const struct tree_node *entry, size_t index,
                          struct transform *dst)
{
    char place[32];
    snprintf(place, sizeof(place), "%s[%zu]", r->field->key, index);
    const struct tree_item *item = NULL;
    int rc = entry_read(entry, place, &item, r->err);
    if (rc < 0) {
        return rc;
    }
    const char *names[8];
    assert(job_n_transform_kinds <= MS_ARRAY_SIZE(names));
    const struct job_transform_kind *kind = NULL;
    for (size_t i = 0; i < job_n_transform_kinds; i++) {
        names[i] = job_transform_kinds[i].name;
        kind = strcmp(names[i], item->key) == 0 ? &job_transform_kinds[i] : kind;
    }
    if (kind == NULL) {
        return entry_fail_unknown(item, place, "transform", names, job_n_transform_kinds, r->err);
    }
    dst->kind = kind->kind;
    return entry_read_table(item, place, &kind->table, dst, r->err);
}

static int read_transforms(const struct field_reader *r, const struct tree_node *list, void *base)
{
    struct transform *dst = (void *)((char *)base + r->field->offset);
    if (list->kind != TREE_LIST) {
        return tree_fail(list, r->err, "%s must be a list: each line begins with \"- \"",
                         r->field->key);
    }
    if (list->n_items > MS_TRANSFORMS_MAX) {
        return tree_fail(list, r->err, "%s has %zu entries; at most %d", r->field->key,
                         list->n_items, MS_TRANSFORMS_MAX);
    }
    for (size_t i = 0; i < list->n_items; i++) {
        int rc = read_transform(r, list->items[i].value, i, &dst[i]);
        if (rc < 0) {
            return rc;
        }
    }
    *(int *)((char *)base + r->field->count_offset) = (int)list->n_items;
    return MS_OK;
}

static json_t *write_transforms(const struct field *field, const void *base)
{
    const struct transform *transforms = (const void *)((const char *)base + field->offset);
    const int n = *(const int *)((const char *)base + field->count_offset);
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < job_n_transform_kinds; k++) {
            const struct job_transform_kind *kind = &job_transform_kinds[k];
            if (kind->kind == transforms[i].kind) {
                list = list_append(list, json_pack("{s:o}", kind->name,
                                                   table_write(&kind->table, &transforms[i])));
            }
        }
    }
    return list;
}

const struct field_own job_transforms = {
    .legal = "a list of transforms",
    .read = read_transforms,
    .write = write_transforms,
};
