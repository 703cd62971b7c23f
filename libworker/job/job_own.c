/* job_own.c - the types of values that a job alone has: its network, where it writes, transforms,
 * milestones */
#include "libworker/job/job_schema.h"

#include "libworker/data/json_text.h"
#include "libworker/network/network.h"
#include "libworker/onnx/onnx.h"
#include "proto/folder.h"
#include "proto/nearest.h"
#include "proto/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- network: a name, a list of layers, or a file with one or with a graph ---- */

/* endings: up to NULL. */
static int ends_in(const char *text, const char *const *endings)
{
    const char *dot = strrchr(text, '.');
    int is = 0;
    for (size_t i = 0; dot != NULL && endings[i] != NULL; i++) {
        is |= strcmp(dot, endings[i]) == 0;
    }
    return is;
}

static int is_file(const char *text)
{
    static const char *const endings[] = {".yaml", ".yml", ".json", ".onnx", NULL};
    return strchr(text, '/') != NULL || ends_in(text, endings);
}

/* Known, and not read yet. */
static int is_graph_file(const char *text)
{
    static const char *const endings[] = {".pb", ".mindir", ".graph", NULL};
    return ends_in(text, endings);
}

/* Weights, or objects of Python: there is no graph in them that anybody else could read. */
static int is_torch_file(const char *text)
{
    static const char *const endings[] = {".pt", ".pth", NULL};
    return ends_in(text, endings);
}

static const char default_name[] = "network"; /* where the document does not say one */

/* A job of nets/my-net.yaml is called my-net where nobody says another name. */
static void stem_of(const char *path, char *buf, size_t size)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *name = ms_name_of(path);
    const char *dot = strrchr(name, '.');
    const size_t n = dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name);
    snprintf(buf, size, "%.*s", (int)n, name);
    for (char *c = buf; *c != '\0'; c++) {
        *c = strchr(allowed, *c) == NULL ? '_' : *c;
    }
    if (buf[0] == '\0' || strchr(".-", buf[0]) != NULL) {
        snprintf(buf, size, "network");
    }
}

/* The graph of a model as a list. */
static int read_onnx(const char *path, char **ret, size_t *ret_size, struct ms_err *err)
{
    struct onnx_file *file = NULL;
    json_t *document = NULL;
    int rc = onnx_open(path, &file, err);
    rc = rc < 0 ? rc : onnx_network(file, &document, err);
    onnx_close(file);
    if (rc < 0) {
        return rc;
    }
    *ret = json_text(document, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17), ret_size);
    json_decref(document);
    return *ret != NULL ? MS_OK
                        : ms_fail(err, MS_E_NOMEM, "no memory for the layers of %.160s", path);
}

/* It is as if it stood in the job: workers hear of no file, and open none, for a reason of theirs
 * would tell somebody else what it holds. */
static int parse_file(const struct field_reader *r, const struct tree_node *node,
                      struct network **ret)
{
    char given[MS_PATH_MAX + 1];
    char path[MS_PATH_MAX + 1];
    char *text = NULL;
    size_t size = 0;
    if (r->base_dir == NULL) {
        return tree_fail(node, r->err,
                         "%s: a job that is sent has a list of layers or a name, no file; msctl "
                         "puts the file's layers into it",
                         r->shown);
    }
    struct ms_err why = {0, ""};
    int rc = field_read_path(r, node, given);
    if (rc < 0) {
        return rc;
    }
    rc = job_expand_path(given, path, sizeof(path), &why);
    if (rc == MS_OK) {
        rc = onnx_is_path(path) ? read_onnx(path, &text, &size, &why)
                                : job_read_text("network file", path, &text, &size, &why);
    }
    if (rc < 0) {
        return rc == MS_E_NOMEM ? ms_fail(r->err, rc, "%s", why.text)
                                : tree_fail(node, r->err, "%s: %s", r->shown, why.text);
    }
    rc = network_parse(text, size, node->text, default_name, ret, r->err);
    free(text);
    return rc;
}

/* Of those that have a name. */
static int read_known(const struct field_reader *r, const struct tree_node *node,
                      struct network **ret)
{
    size_t n = 0;
    while (r->field->choices[n] != NULL && strcmp(r->field->choices[n], node->text) != 0) {
        n++;
    }
    if (r->field->choices[n] != NULL) {
        return network_by_name(node->text, ret, r->err);
    }
    const char *near = ms_nearest(node->text, r->field->choices, n);
    char why[128];
    snprintf(why, sizeof(why), "is no network that has a name%s%s%s",
             near != NULL ? ", did you mean " : "", near != NULL ? near : "",
             near != NULL ? "?" : "");
    return field_fail(r, node, why);
}

int job_network_read(const struct field_reader *r, const struct tree_node *node,
                     struct network **ret)
{
    if (node->kind != TREE_SCALAR) {
        return network_read(node, default_name, ret, r->err);
    }
    if (is_graph_file(node->text)) {
        return tree_fail(node, r->err,
                         "%s: of graph files those of ONNX are read (.onnx); give one, a list of "
                         "layers, a file with one (.yaml, .json), or a name",
                         r->shown);
    }
    if (is_torch_file(node->text)) {
        return tree_fail(node, r->err,
                         "%s: a PyTorch file holds weights, and no network that can be read; give "
                         "an ONNX model of the module, or a list of layers, and the weights as "
                         "initial_weights: safetensors.torch.save_file(module.state_dict(), "
                         "\"net.safetensors\")",
                         r->shown);
    }
    if (is_file(node->text)) {
        return parse_file(r, node, ret);
    }
    return read_known(r, node, ret);
}

/* The job's text has it one level deeper than a file of its own. */
static int check_text(const struct field_reader *r, const struct tree_node *node, const char *text,
                      size_t size)
{
    struct tree_node *tree = NULL;
    struct ms_err why = {0, ""};
    if (size > MS_NETWORK_MAX) {
        return tree_fail(node, r->err,
                         "%s: a text of %zu bytes with all defaults, and at most %u are taken; let "
                         "`repeat` say what is there several times",
                         r->shown, size, MS_NETWORK_MAX);
    }
    const size_t room = size + sizeof("{\"network\":}");
    char *job = malloc(room);
    if (job == NULL) {
        return ms_fail(r->err, MS_E_NOMEM, "%s: no memory for its text", r->shown);
    }
    const int n = snprintf(job, room, "{\"network\":%s}", text);
    int rc = tree_parse(job, (size_t)n, "with all defaults", 0, &tree, &why);
    tree_destroy(tree);
    free(job);
    return rc == MS_OK        ? MS_OK
           : rc == MS_E_NOMEM ? ms_fail(r->err, rc, "%s", why.text)
                              : tree_fail(node, r->err, "%s: %s", r->shown, why.text);
}

static int read_network(const struct field_reader *r, const struct tree_node *node, void *base)
{
    struct job *job = base;
    struct network *network = NULL;
    size_t size = 0;
    int rc = job_network_read(r, node, &network);
    if (rc < 0) {
        return rc;
    }
    const int has_name = node->kind == TREE_SCALAR && !is_file(node->text);
    char *text = has_name ? NULL : network_format(network, &size);
    snprintf(job->network, sizeof(job->network), "%s", network_name(network));
    network_destroy(network);
    if (has_name) {
        return MS_OK;
    }
    rc = text == NULL ? ms_fail(r->err, MS_E_NOMEM, "%s: no memory for its text", r->shown)
                      : check_text(r, node, text, size);
    if (rc == MS_OK) {
        memcpy(job->layers, text, size + 1);
    }
    const int is_named = strcmp(job->network, default_name) != 0;
    if (node->kind == TREE_SCALAR && !is_named && job->name[0] == '\0') {
        stem_of(node->text, job->name, sizeof(job->name));
    }
    free(text);
    return rc;
}

static json_t *write_network(const struct field *field, const void *base)
{
    const struct job *job = base;
    struct network *network = NULL;
    (void)field;
    if (job->layers[0] == '\0') {
        return json_string(job->network);
    }
    json_t *ret = job_network_create(job, &network, NULL) == MS_OK ? network_write(network) : NULL;
    network_destroy(network);
    return ret;
}

const struct field_own job_network = {
    .legal = "a list of layers, a file with one, an ONNX model, or a name: resnet50 | lenet5 | "
             "mnist | linear | "
             "cifar_small",
    .read = read_network,
    .write = write_network,
};

int job_network_create(const struct job *job, struct network **ret, struct ms_err *err)
{
    return job->layers[0] == '\0'
               ? network_by_name(job->network, ret, err)
               : network_parse(job->layers, strlen(job->layers), "the job", job->network, ret, err);
}

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
    const char *names[16];
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

/* ---- a set of words ---- */

static int read_metrics(const struct field_reader *r, const struct tree_node *list, void *base)
{
    unsigned bits = 0;
    if (list->kind != TREE_LIST) {
        return tree_fail(list, r->err, "%s must be a list, as [top5, per_class]", r->shown);
    }
    for (size_t i = 0; i < list->n_items; i++) {
        const struct tree_node *node = list->items[i].value;
        int which = 0;
        int rc = field_read_choice(r, node, &which);
        if (rc < 0) {
            return rc;
        }
        if ((bits >> which & 1U) != 0) {
            return tree_fail(node, r->err, "%s has %s twice", r->shown, node->text);
        }
        bits |= 1U << which;
    }
    *(unsigned *)(void *)((char *)base + r->field->offset) = bits;
    return MS_OK;
}

static json_t *write_metrics(const struct field *field, const void *base)
{
    const unsigned bits = *(const unsigned *)(const void *)((const char *)base + field->offset);
    json_t *list = bits == 0 ? json_null() : json_array();
    for (unsigned i = 0; field->choices[i] != NULL; i++) {
        if ((bits >> i & 1U) != 0) {
            list = list_append(list, json_string(field->choices[i]));
        }
    }
    return list;
}

const struct field_own job_metrics = {
    .legal = "a list of top5 | per_class | confusion | perplexity | mae",
    .read = read_metrics,
    .write = write_metrics,
};

/* ---- milestones: whole numbers that rise ---- */

static int read_milestones(const struct field_reader *r, const struct tree_node *list, void *base)
{
    int64_t *dst = (void *)((char *)base + r->field->offset);
    if (list->kind != TREE_LIST || list->n_items == 0) {
        return tree_fail(list, r->err, "%s must be a list of whole numbers, as [30, 60]", r->shown);
    }
    if (list->n_items > MS_MILESTONES_MAX) {
        return tree_fail(list, r->err, "%s has %zu entries; at most %d", r->shown, list->n_items,
                         MS_MILESTONES_MAX);
    }
    for (size_t i = 0; i < list->n_items; i++) {
        const struct tree_node *node = list->items[i].value;
        int rc = field_read_whole(r, node, &dst[i]);
        if (rc < 0) {
            return rc;
        }
        if (i > 0 && dst[i] <= dst[i - 1]) {
            return tree_fail(node, r->err, "%s: %lld follows %lld, and each must be larger",
                             r->shown, (long long)dst[i], (long long)dst[i - 1]);
        }
    }
    *(int *)((char *)base + r->field->count_offset) = (int)list->n_items;
    return MS_OK;
}

static json_t *write_milestones(const struct field *field, const void *base)
{
    const int64_t *milestones = (const void *)((const char *)base + field->offset);
    const int n = *(const int *)((const char *)base + field->count_offset);
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        list = list_append(list, json_integer(milestones[i]));
    }
    return list;
}

const struct field_own job_milestones = {
    .legal = "a list of whole numbers that rise, each from 1 to 1000000000000",
    .read = read_milestones,
    .write = write_milestones,
};

/* ---- the shape of a record ---- */

static int read_shape(const struct field_reader *r, const struct tree_node *list, void *base)
{
    struct data_shape *dst = (void *)((char *)base + r->field->offset);
    int64_t side[3] = {1, 1, 1};
    if (list->kind != TREE_LIST || (list->n_items != 1 && list->n_items != 3)) {
        return tree_fail(list, r->err,
                         "%s must be a list, [channels, height, width] of images or [features]",
                         r->shown);
    }
    for (size_t i = 0; i < list->n_items; i++) {
        const struct tree_node *node = list->items[i].value;
        int rc = field_read_whole(r, node, &side[i]);
        if (rc < 0) {
            return rc;
        }
        if (i > 0 && side[i] > MS_IMAGE_SIDE_MAX) {
            return tree_fail(node, r->err, "%s: %lld; height and width are at most %d", r->shown,
                             (long long)side[i], MS_IMAGE_SIDE_MAX);
        }
    }
    if (side[0] > MS_FEATURES_MAX / (side[1] * side[2])) {
        return tree_fail(list, r->err, "%s has more than %d values", r->shown, MS_FEATURES_MAX);
    }
    dst->channels = side[0];
    dst->height = side[1];
    dst->width = side[2];
    return MS_OK;
}

static json_t *write_shape(const struct field *field, const void *base)
{
    const struct data_shape *shape = (const void *)((const char *)base + field->offset);
    if (shape->channels == 0) {
        return json_null();
    }
    return json_pack("[I,I,I]", (json_int_t)shape->channels, (json_int_t)shape->height,
                     (json_int_t)shape->width);
}

const struct field_own job_shape = {
    .legal = "[channels, height, width] or [features]",
    .read = read_shape,
    .write = write_shape,
};

/* ---- names that users chose ---- */

static int check_line(const struct field_reader *r, const struct tree_node *node, size_t most)
{
    if (node->kind != TREE_SCALAR || node->text[0] == '\0') {
        return field_fail(r, node, most == MS_NAME_MAX ? "is no name" : "is no text");
    }
    if (strlen(node->text) > most || !ms_text_is_valid(node->text, MS_TEXT_LINE)) {
        return field_fail(r, node, "is more than a short line");
    }
    return MS_OK;
}

static int check_word(const struct field_reader *r, const struct tree_node *node)
{
    return check_line(r, node, MS_NAME_MAX);
}

static int read_word(const struct field_reader *r, const struct tree_node *node, void *base)
{
    const int rc = check_word(r, node);
    if (rc == MS_OK) {
        snprintf((char *)base + r->field->offset, MS_NAME_MAX + 1, "%s", node->text);
    }
    return rc;
}

static json_t *write_word(const struct field *field, const void *base)
{
    const char *text = (const char *)base + field->offset;
    return *text != '\0' ? json_string(text) : json_null();
}

const struct field_own job_word = {
    .legal = "a name, or a number",
    .read = read_word,
    .write = write_word,
};

/* word: bytes of one at most. */
static int read_list(const struct field_reader *r, const struct tree_node *list, void *base,
                     size_t word)
{
    char *dst = (char *)base + r->field->offset;
    const size_t most = (size_t)r->field->max;
    size_t used = 0;
    if (list->kind != TREE_LIST || list->n_items == 0) {
        return tree_fail(list, r->err, "%s must be %s, as [a, b]", r->shown, r->field->own->legal);
    }
    for (size_t i = 0; i < list->n_items; i++) {
        const struct tree_node *node = list->items[i].value;
        const int rc = check_line(r, node, word);
        if (rc < 0) {
            return rc;
        }
        const size_t size = strlen(node->text) + (i > 0);
        if (size > most - used) {
            return tree_fail(node, r->err, "%s: more than %zu bytes of them", r->shown, most);
        }
        used +=
            (size_t)snprintf(dst + used, most + 1 - used, "%s%s", i > 0 ? "\n" : "", node->text);
    }
    return MS_OK;
}

static int read_words(const struct field_reader *r, const struct tree_node *list, void *base)
{
    return read_list(r, list, base, MS_NAME_MAX);
}

static int read_arguments(const struct field_reader *r, const struct tree_node *list, void *base)
{
    return read_list(r, list, base, DATA_ARGUMENTS_MAX);
}

static json_t *write_words(const struct field *field, const void *base)
{
    const char *at = (const char *)base + field->offset;
    if (*at == '\0') {
        return json_null();
    }
    json_t *list = json_array();
    while (*at != '\0') {
        const size_t length = strcspn(at, "\n");
        list = list_append(list, json_stringn(at, length));
        at += length + (at[length] == '\n');
    }
    return list;
}

const struct field_own job_words = {
    .legal = "a list of names",
    .read = read_words,
    .write = write_words,
};

/* Older releases know no such key of what is tested on. */
static json_t *write_tested_words(const struct field *field, const void *base)
{
    const struct job *job = base;
    const int is_known = job->evaluate_dataset.kind == DATA_CSV &&
                         strcmp(job->evaluate_dataset.class_names, job->dataset.class_names) == 0;
    return is_known ? json_null() : write_words(field, base);
}

const struct field_own job_tested_words = {
    .legal = "a list of names",
    .read = read_words,
    .write = write_tested_words,
};

const struct field_own job_arguments = {
    .legal = "a list of texts",
    .read = read_arguments,
    .write = write_words,
};
