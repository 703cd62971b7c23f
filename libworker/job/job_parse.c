/* job_parse.c - from a tree of YAML to a job: binds nodes to rows, then reads row by row */
#include "libworker/job/job_schema.h"
#include "libworker/job/yaml_tree.h"

#include "proto/settings.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 64, KEY_MAX = 128 };

struct binding {
    const struct job_table *table;
    const char *prefix;   /* before a row's key in errors: "" or "transforms[2].resize." */
    const char *base_dir; /* NULL: paths must be absolute */
    const struct tree_node *node[ROWS_MAX]; /* of row i, or NULL: not given */
    struct ms_err *err;
};

/* ---- which node belongs to which row ---- */

/* The row a stray key might have meant: a sibling that looks like it, else the same last word in
 * another section ("learning_rate" at the top). */
static const char *suggest(const struct job_table *table, const char *section, const char *word)
{
    const char *siblings[ROWS_MAX];
    size_t n = 0;
    size_t length = strlen(section);
    for (size_t i = 0; i < table->n; i++) {
        const char *key = table->rows[i].key;
        if (table->rows[i].type != JOB_LATER && strncmp(key, section, length) == 0 &&
            strchr(key + length, '.') == NULL) {
            siblings[n++] = key + length;
        }
    }
    const char *near = ms_nearest(word, siblings, n);
    near = near != NULL ? near - length : NULL; /* with its section, as --set wants it */
    for (size_t i = 0; near == NULL && i < table->n; i++) {
        const char *dot = strrchr(table->rows[i].key, '.');
        if (dot != NULL && strcmp(dot + 1, word) == 0) {
            near = table->rows[i].key;
        }
    }
    return near;
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
                            "%s%s%s is no key of a job; did you mean %s?", b->prefix, section, key,
                            near);
    }
    char known[200] = "";
    size_t used = 0;
    size_t length = strlen(section);
    for (size_t i = 0; i < b->table->n && used < sizeof(known); i++) {
        const char *row = b->table->rows[i].key;
        if (b->table->rows[i].type != JOB_LATER && strncmp(row, section, length) == 0 &&
            strchr(row + length, '.') == NULL) {
            int wrote = snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? " " : "",
                                 row + length);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
    return tree_fail_at(item->value->origin, item->line, item->column, b->err,
                        "%s%s%s is no key of a job; known here: %s", b->prefix, section, key,
                        known);
}

static int has_required(const struct binding *b, const char *section)
{
    const size_t length = strlen(section);
    for (size_t i = 0; i < b->table->n; i++) {
        const struct job_field *row = &b->table->rows[i];
        if ((row->flags & JOB_REQUIRED) != 0 && strncmp(row->key, section, length) == 0 &&
            row->key[length] == '.') {
            return 1;
        }
    }
    return 0;
}

/* A key with nothing behind it, as a section whose keys are all comments. Whoever wrote it wanted
 * something: none at all is the word null. */
static int fail_empty(const struct binding *b, const struct job_field *row,
                      const struct tree_node *node)
{
    char legal[200];
    if (row->type == JOB_SECTION) {
        snprintf(legal, sizeof(legal), "%s (%s)",
                 has_required(b, row->key) ? "its keys" : "{} for the defaults, or its keys",
                 row->help);
    } else {
        job_value_describe(row, legal, sizeof(legal));
    }
    return tree_fail(node, b->err, "%s%s has no value; give %s%s", b->prefix, row->key, legal,
                     (row->flags & JOB_OPTIONAL) != 0 ? ", or null for none" : "");
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
        const struct job_field *row = &b->table->rows[i];
        if (row->type == JOB_LATER) {
            return tree_fail_at(item->value->origin, item->line, item->column, b->err,
                                "%s comes with a later version (%s); leave the key out", key,
                                row->help);
        }
        const int is_null = tree_is_null(item->value);
        const int is_optional = (row->flags & JOB_OPTIONAL) != 0;
        if (is_null && is_optional && item->value->text[0] != '\0') {
            continue;
        }
        if (is_null && (is_optional || row->type == JOB_SECTION)) {
            return fail_empty(b, row, item->value);
        }
        b->node[i] = item->value;
        if (row->type == JOB_SECTION) {
            if (item->value->kind != TREE_MAP) {
                return tree_fail(item->value, b->err, "%s must be a section of keys: %s", key,
                                 row->help);
            }
            char below[KEY_MAX + 1];
            snprintf(below, sizeof(below), "%s.", key);
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
        const struct job_field *row = &b->table->rows[s];
        size_t length = strlen(row->key);
        if (row->type == JOB_SECTION && strncmp(key, row->key, length) == 0 && key[length] == '.') {
            *ret_is_off |= b->node[s] == NULL && (row->flags & JOB_OPTIONAL) != 0;
            found = b->node[s] != NULL ? b->node[s] : found;
        }
    }
    return found;
}

/* ---- rows to values ---- */

static int read_transforms(const struct binding *b, const struct job_field *row,
                           const struct tree_node *list, struct job *job);

static int read_builtin(const struct binding *b, const struct job_field *row, void *base)
{
    struct tree_node *node = NULL;
    int rc = tree_parse(row->builtin, strlen(row->builtin), "default", 0, &node, b->err);
    if (rc == MS_OK && row->type == JOB_TRANSFORMS) {
        rc = read_transforms(b, row, node, base);
    } else if (rc == MS_OK) {
        rc = job_value_read(row, node, row->key, NULL, base, b->err);
    }
    assert(rc == MS_OK || rc == MS_E_NOMEM);
    tree_destroy(node);
    return rc;
}

static int fail_not_applicable(const struct binding *b, const struct job_field *row,
                               const struct tree_node *node, const void *base)
{
    for (size_t i = 0; i < b->table->n; i++) {
        const struct job_field *other = &b->table->rows[i];
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

static int read_row(const struct binding *b, const struct tree_node *root, size_t i, void *base)
{
    const struct job_field *row = &b->table->rows[i];
    const struct tree_node *node = b->node[i];
    int is_off = 0;
    const struct tree_node *around = section_of(b, root, i, &is_off);
    if (is_off || row->type == JOB_LATER) {
        return MS_OK;
    }
    if (!job_field_applies(row, base)) {
        return node == NULL ? MS_OK : fail_not_applicable(b, row, node, base);
    }
    if (node == NULL && (row->flags & JOB_REQUIRED) != 0) {
        char legal[200];
        job_value_describe(row, legal, sizeof(legal));
        return tree_fail(around, b->err, "%s%s is missing (%s); give %s", b->prefix, row->key,
                         row->help, legal);
    }
    if (row->type == JOB_SECTION) {
        if ((row->flags & JOB_OPTIONAL) != 0) {
            *(int *)((char *)base + row->offset) = node != NULL;
        }
        return MS_OK;
    }
    if (node == NULL) {
        return row->builtin != NULL ? read_builtin(b, row, base) : MS_OK;
    }
    if (row->type == JOB_TRANSFORMS) {
        return read_transforms(b, row, node, base);
    }
    char shown[KEY_MAX];
    snprintf(shown, sizeof(shown), "%s%s", b->prefix, row->key);
    return job_value_read(row, node, shown, b->base_dir, base, b->err);
}

static int read_table(struct binding *b, const struct tree_node *map, void *base)
{
    assert(b->table->n <= ROWS_MAX);
    int rc = bind_map(b, "", map);
    for (size_t i = 0; i < b->table->n && rc == MS_OK; i++) {
        rc = read_row(b, map, i, base);
    }
    return rc;
}

/* ---- transforms: a list of maps with one key each ---- */

static int read_transform(const struct binding *b, const struct tree_node *entry, size_t index,
                          struct transform *dst)
{
    static const char shape[] = "write each as - name: {key: value}";
    if (entry->kind != TREE_MAP || entry->n_items != 1) {
        return tree_fail(entry, b->err, "transforms[%zu] must have exactly one name; %s", index,
                         shape);
    }
    const struct tree_item *item = &entry->items[0];
    const char *names[8];
    assert(job_n_transform_kinds <= MS_ARRAY_SIZE(names));
    const struct job_transform_kind *kind = NULL;
    for (size_t i = 0; i < job_n_transform_kinds; i++) {
        names[i] = job_transform_kinds[i].name;
        if (strcmp(names[i], item->key) == 0) {
            kind = &job_transform_kinds[i];
        }
    }
    if (kind == NULL) {
        const char *near = ms_nearest(item->key, names, job_n_transform_kinds);
        return tree_fail_at(item->value->origin, item->line, item->column, b->err,
                            "transforms[%zu]: %.40s is no transform%s%s%s; known: random_crop "
                            "random_horizontal_flip resize rescale normalize",
                            index, item->key, near != NULL ? "; did you mean " : "",
                            near != NULL ? near : "", near != NULL ? "?" : "");
    }
    static const struct tree_node nothing = {.kind = TREE_MAP, .origin = ""};
    struct tree_node empty = nothing;
    empty.origin = item->value->origin;
    empty.line = item->line;
    empty.column = item->column;
    const struct tree_node *map = tree_is_null(item->value) ? &empty : item->value;
    if (map->kind != TREE_MAP) {
        return tree_fail(map, b->err, "transforms[%zu].%s must hold keys; %s", index, kind->name,
                         shape);
    }
    char prefix[KEY_MAX];
    snprintf(prefix, sizeof(prefix), "transforms[%zu].%s.", index, kind->name);
    struct binding inner = {.table = &kind->table, .prefix = prefix, .err = b->err};
    dst->kind = kind->kind;
    return read_table(&inner, map, dst);
}

static int read_transforms(const struct binding *b, const struct job_field *row,
                           const struct tree_node *list, struct job *job)
{
    if (list->kind != TREE_LIST) {
        return tree_fail(list, b->err, "%s must be a list: each line begins with \"- \"", row->key);
    }
    if (list->n_items > MS_TRANSFORMS_MAX) {
        return tree_fail(list, b->err, "%s has %zu entries; at most %d", row->key, list->n_items,
                         MS_TRANSFORMS_MAX);
    }
    for (size_t i = 0; i < list->n_items; i++) {
        int rc = read_transform(b, list->items[i].value, i, &job->transforms[i]);
        if (rc < 0) {
            return rc;
        }
    }
    job->n_transforms = (int)list->n_items;
    return MS_OK;
}

/* ---- the whole job ---- */

/* Defaults that follow from other keys. */
static void derive(struct job *job, int loss_is_given, int recovery_is_given)
{
    if (job->name[0] == '\0') {
        memcpy(job->name, job->network, sizeof(job->name) - 1); /* networks' names are short */
    }
    if (!loss_is_given) {
        job->loss = job->dataset.kind == DATA_NONLINEAR ? JOB_LOSS_MSE : JOB_LOSS_SOFTMAX_CE;
    }
    if (job->has_checkpoint && job->checkpoint_prefix[0] == '\0') {
        memcpy(job->checkpoint_prefix, job->name, sizeof(job->checkpoint_prefix));
    }
    if (job->has_evaluate && job->evaluate_batch_size == 0) {
        job->evaluate_batch_size = job->batch_size;
    }
    if (!recovery_is_given && job_is_split(job)) {
        job->recovery = 0;
    }
}

static int apply_overrides(struct tree_node *root, const struct job_override *overrides, size_t n,
                           char **origins, struct ms_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = overrides[i].key_value;
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text) {
            return ms_fail(err, MS_E_INVALID, "--set %.60s: write --set KEY=VALUE", text);
        }
        size_t length = (size_t)(equals - text);
        size_t size = length + sizeof("--set ");
        origins[i] = malloc(size);
        if (origins[i] == NULL) {
            return ms_fail(err, MS_E_NOMEM, "--set: no memory");
        }
        snprintf(origins[i], size, "--set %.*s", (int)length, text);
        if (equals[1] == '\0') {
            return ms_fail(err, MS_E_INVALID, "%.100s: no value after the =", origins[i]);
        }
        struct tree_node *value = NULL;
        int rc = tree_parse(equals + 1, strlen(equals + 1), origins[i], 0, &value, err);
        if (rc == MS_OK) {
            rc = tree_set(root, origins[i] + strlen("--set "), value, err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return MS_OK;
}

static int is_bound(const struct binding *b, const char *key)
{
    for (size_t i = 0; i < b->table->n; i++) {
        if (strcmp(b->table->rows[i].key, key) == 0) {
            return b->node[i] != NULL;
        }
    }
    return 0;
}

int job_parse(const char *text, size_t size, const char *origin, const char *base_dir,
              const struct job_override *overrides, size_t n, int workers, struct job *ret,
              struct ms_err *err)
{
    struct tree_node *root = NULL;
    struct job *job = calloc(1, sizeof(*job));
    char **origins = calloc(n + 1, sizeof(*origins));
    struct binding b = {.table = &job_table, .prefix = "", .base_dir = base_dir, .err = err};
    int rc = MS_OK;
    if (job == NULL || origins == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", origin);
        goto out;
    }
    if (size > MS_JOB_FILE_MAX) {
        rc = tree_fail_at(origin, 0, 0, err, "%zu bytes: a job has at most %u", size,
                          MS_JOB_FILE_MAX);
        goto out;
    }
    rc = tree_parse(text, size, origin, 1, &root, err);
    if (rc == MS_OK && tree_is_null(root)) {
        rc = tree_fail(root, err, "the file is empty; examples/ has jobs to start from");
    } else if (rc == MS_OK && root->kind != TREE_MAP) {
        rc = tree_fail(root, err, "a job is a list of lines \"key: value\"; this is %s",
                       root->kind == TREE_LIST ? "a list of values" : "a single value");
    }
    if (rc == MS_OK) {
        rc = apply_overrides(root, overrides, n, origins, err);
    }
    if (rc == MS_OK) {
        rc = read_table(&b, root, job);
    }
    if (rc == MS_OK && workers > MS_WORKERS_MAX) {
        rc = ms_fail(err, MS_E_INVALID, "-n %d: give a whole number from 1 to %d", workers,
                     MS_WORKERS_MAX);
    }
    if (rc < 0) {
        goto out;
    }
    job->workers = workers > 0 ? workers : job->workers;
    derive(job, is_bound(&b, "loss"), is_bound(&b, "recovery"));
    rc = job_check(job, root, err);
    if (rc == MS_OK) {
        memcpy(ret, job, sizeof(*ret));
    }
out:
    tree_destroy(root);
    for (size_t i = 0; origins != NULL && i < n; i++) {
        free(origins[i]);
    }
    free(origins);
    free(job);
    return rc;
}
