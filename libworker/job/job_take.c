/* job_take.c - the key initial_weights: a file, and what of it is taken by which name */
#include "libworker/job/job_pattern.h"
#include "libworker/job/job_schema.h"

#include "libworker/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

#define IN_JOB(member)    offsetof(struct job, member)
#define IN_RENAME(member) offsetof(struct job_rename, member)

/* ---- one rename ---- */

static int n_stars(const char *pattern)
{
    int n = 0;
    for (const char *at = pattern; *at != '\0'; at++) {
        n += *at == '*';
    }
    return n;
}

static int read_name(const struct field_reader *r, const struct tree_node *node, void *base)
{
    char *dst = (char *)base + r->field->offset;
    int rc = job_pattern_read(r, node, dst);
    return rc == MS_OK && (n_stars(dst) > 1 || strchr(dst, '?') != NULL)
               ? field_fail(r, node, "has more than one star, or a question mark")
               : rc;
}

static json_t *write_name(const struct field *field, const void *base)
{
    return json_string((const char *)base + field->offset);
}

static const struct field_own name_type = {
    .legal = "a name of tensors, with one * at the most, which stands for any text",
    .read = read_name,
    .write = write_name,
};

static const struct field rename_rows[] = {
    {.key = "from",
     .type = FIELD_OWN,
     .own = &name_type,
     .flags = FIELD_REQUIRED,
     .offset = IN_RENAME(from),
     .help = "a name as the file has it"},
    {.key = "to",
     .type = FIELD_OWN,
     .own = &name_type,
     .flags = FIELD_REQUIRED,
     .offset = IN_RENAME(to),
     .help = "the network's"},
};
static const struct field_table rename_table = {rename_rows, MS_ARRAY_SIZE(rename_rows),
                                                "a rename"};

static int read_rename(const struct tree_node *node, size_t index, struct job_rename *dst,
                       struct ms_err *err)
{
    char prefix[48];
    snprintf(prefix, sizeof(prefix), "initial_weights.rename[%zu].", index);
    const struct table_reader reader = {.table = &rename_table, .prefix = prefix, .err = err};
    if (node->kind != TREE_MAP) {
        return tree_fail(node, err,
                         "initial_weights.rename[%zu] must hold keys; write it as - {from: "
                         "\"module.*\", to: \"*\"}",
                         index);
    }
    int rc = table_read(&reader, node, dst);
    return rc == MS_OK && n_stars(dst->from) != n_stars(dst->to)
               ? tree_fail(node, err,
                           "initial_weights.rename[%zu]: from '%s' to '%s': what the star of one "
                           "stands for takes the place of the other's; give both one, or none",
                           index, dst->from, dst->to)
               : rc;
}

/* ---- the keys ---- */

static int read_exclude(const struct field_reader *r, const struct tree_node *node, void *base)
{
    struct job_take *take = &((struct job *)base)->take;
    return job_patterns_read(r, node, take->exclude, MS_WEIGHT_PATTERNS_MAX, &take->n_exclude);
}

static json_t *write_exclude(const struct field *field, const void *base)
{
    const struct job_take *take = &((const struct job *)base)->take;
    (void)field;
    return job_patterns_write(take->exclude, take->n_exclude);
}

static int read_renames(const struct field_reader *r, const struct tree_node *list, void *base)
{
    struct job_take *take = &((struct job *)base)->take;
    if (list->kind != TREE_LIST || list->n_items == 0 || list->n_items > MS_WEIGHT_PATTERNS_MAX) {
        return tree_fail(list, r->err,
                         "%s must be a list of 1 to %d renames: - {from: \"module.*\", to: \"*\"}",
                         r->shown, MS_WEIGHT_PATTERNS_MAX);
    }
    for (size_t i = 0; i < list->n_items; i++) {
        int rc = read_rename(list->items[i].value, i, &take->rename[i], r->err);
        if (rc < 0) {
            return rc;
        }
    }
    take->n_rename = (int)list->n_items;
    return MS_OK;
}

static json_t *write_renames(const struct field *field, const void *base)
{
    const struct job_take *take = &((const struct job *)base)->take;
    json_t *list = json_array();
    (void)field;
    for (int i = 0; i < take->n_rename; i++) {
        list = list_append(list, table_write(&rename_table, &take->rename[i]));
    }
    return list;
}

static const struct field_own exclude_type = {
    .legal = "a name of parameters, or a list of names, with * for any text and ? for a character",
    .read = read_exclude,
    .write = write_exclude,
};

static const struct field_own rename_type = {
    .legal = "a list of renames",
    .read = read_renames,
    .write = write_renames,
};

static const struct field rows[] = {
    {.key = "file",
     .type = FIELD_PATH,
     .flags = FIELD_OPTIONAL,
     .offset = IN_JOB(initial_weights),
     .help = "where they are"},
    {.key = "exclude",
     .type = FIELD_OWN,
     .own = &exclude_type,
     .flags = FIELD_OPTIONAL,
     .help = "parameters that begin by their init"},
    {.key = "rename",
     .type = FIELD_OWN,
     .own = &rename_type,
     .flags = FIELD_OPTIONAL,
     .help = "what the file calls otherwise than the network"},
};
static const struct field_table table = {rows, MS_ARRAY_SIZE(rows), "initial_weights"};

/* ---- a path, or the keys ---- */

static int read_first_weights(const struct field_reader *r, const struct tree_node *node,
                              void *base)
{
    struct job *job = base;
    char prefix[MS_NAME_MAX];
    snprintf(prefix, sizeof(prefix), "%s.", r->shown);
    const struct table_reader reader = {&table, prefix, r->base_dir, r->err};
    return node->kind == TREE_MAP ? table_read(&reader, node, job)
                                  : field_read_path(r, node, job->initial_weights);
}

static json_t *write_first_weights(const struct field *field, const void *base)
{
    const struct job *job = base;
    (void)field;
    if (job->take.n_exclude == 0 && job->take.n_rename == 0) { /* as older releases read it */
        return job->initial_weights[0] != '\0' ? json_string(job->initial_weights) : json_null();
    }
    json_t *object = table_write(&table, job);
    if (job->take.n_exclude == 0) {
        (void)json_object_del(object, "exclude");
    }
    if (job->take.n_rename == 0) {
        (void)json_object_del(object, "rename");
    }
    return object;
}

const struct field_own job_first_weights = {
    .legal = "a path, or {file: PATH, exclude: [PATTERN, ...], rename: [{from: NAME, to: NAME}]}",
    .read = read_first_weights,
    .write = write_first_weights,
};

int job_take_weights(struct job *job, const struct tree_node *tree, const char *base_dir,
                     struct ms_err *err)
{
    const struct tree_item *network = tree_find(tree, "network");
    const struct tree_item *weights = tree_find(tree, "initial_weights");
    static const struct field row = {.key = "network", .type = FIELD_PATH};
    const struct field_reader reader = {&row, row.key, base_dir, err};
    const int is_map = weights != NULL && weights->value->kind == TREE_MAP;
    if (job->initial_weights[0] != '\0' || (weights != NULL && !is_map)) {
        return MS_OK;
    }
    if (network != NULL && network->value->kind == TREE_SCALAR &&
        onnx_is_path(network->value->text)) {
        return field_read_path(&reader, network->value, job->initial_weights);
    }
    return is_map ? tree_fail(weights->value, err,
                              "initial_weights.file is missing (where they are); give a path")
                  : MS_OK;
}
