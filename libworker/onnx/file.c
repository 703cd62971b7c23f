/* file.c - an ONNX file unpacked, checked, and what it holds by name */
#include "libworker/onnx/file.h"

#include "libworker/data/path.h"
#include "proto/grow.h"
#include "proto/limits.h"
#include "proto/macros.h"
#include "proto/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPSET_LEAST = 11, OPSET_MOST = 23 };

int onnx_is_path(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".onnx") == 0;
}

const char *onnx_type_name(int type)
{
    static const char *const names[] = {"UNDEFINED",  "FLOAT",   "UINT8",  "INT8",   "UINT16",
                                        "INT16",      "INT32",   "INT64",  "STRING", "BOOL",
                                        "FLOAT16",    "DOUBLE",  "UINT32", "UINT64", "COMPLEX64",
                                        "COMPLEX128", "BFLOAT16"};
    return type >= 0 && (size_t)type < MS_ARRAY_SIZE(names) ? names[type] : "of an unknown type";
}

static int fail(const struct onnx_file *file, const char *why, struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID, "%.160s: %s; the file is damaged or no ONNX model",
                   file->path, why);
}

static int fail_memory(const struct onnx_file *file, struct ms_err *err)
{
    return ms_fail(err, MS_E_NOMEM, "%.160s: no memory to read it", file->path);
}

/* ---- unpacking ---- */

static void *budget_alloc(void *data, size_t size)
{
    struct onnx_file *file = data;
    if (size > file->budget) {
        return NULL;
    }
    file->budget -= size;
    void *ret = malloc(size);
    file->has_no_memory |= ret == NULL && size > 0;
    return ret;
}

static void budget_free(void *data, void *pointer)
{
    (void)data;
    free(pointer);
}

/* A frugal file of many small messages takes some forty times its size; a model some five times. */
static int unpack(struct onnx_file *file, const struct onnx_skim *skim, struct ms_err *err)
{
    file->budget = (size_t)MS_UNPACK_FACTOR * skim->size + (1U << 16);
    file->allocator = (ProtobufCAllocator){budget_alloc, budget_free, file};
    file->model = ms_onnx__model__unpack(&file->allocator, skim->size, skim->bytes);
    return file->model != NULL   ? MS_OK
           : file->has_no_memory ? fail_memory(file, err)
                                 : fail(file, "its fields cannot be read", err);
}

/* ---- texts: names that errors repeat, and that are looked for ---- */

static int is_text(const char *text)
{
    return strlen(text) < 512 && ms_text_is_valid(text, MS_TEXT_LINE);
}

static int are_texts(char *const *texts, size_t n)
{
    int are = 1;
    for (size_t i = 0; i < n && are; i++) {
        are = is_text(texts[i]);
    }
    return are;
}

static int check_node(const struct onnx_file *file, const MsOnnx__Node *node, struct ms_err *err)
{
    int is = is_text(node->name) && is_text(node->op_type) && is_text(node->domain) &&
             are_texts(node->input, node->n_input) && are_texts(node->output, node->n_output);
    for (size_t i = 0; i < node->n_attribute && is; i++) {
        const MsOnnx__Tensor *tensor = node->attribute[i]->t;
        is = is_text(node->attribute[i]->name) && (tensor == NULL || is_text(tensor->name));
    }
    return is ? MS_OK : fail(file, "a node has a name that is no text", err);
}

static int check_tensor(const struct onnx_file *file, const MsOnnx__Tensor *tensor,
                        struct ms_err *err)
{
    int64_t count = 1;
    if (!is_text(tensor->name) || tensor->name[0] == '\0') {
        return fail(file, "an initializer has no name, or one that is no text", err);
    }
    if (tensor->n_dims > ONNX_DIMS_MAX) {
        return fail(file, "an initializer has more than 8 dimensions", err);
    }
    for (size_t i = 0; i < tensor->n_dims; i++) {
        if (tensor->dims[i] < 0 || __builtin_mul_overflow(count, tensor->dims[i], &count)) {
            return fail(file, "an initializer has a shape that is none", err);
        }
    }
    return MS_OK;
}

static int check_values(const struct onnx_file *file, MsOnnx__ValueInfo *const *values, size_t n,
                        struct ms_err *err)
{
    int are = 1;
    for (size_t i = 0; i < n && are; i++) {
        are = is_text(values[i]->name);
    }
    return are ? MS_OK : fail(file, "an input or output has a name that is no text", err);
}

static int check_model(struct onnx_file *file, size_t n_raw, struct ms_err *err)
{
    const MsOnnx__Graph *graph = file->model->graph;
    int rc = MS_OK;
    if (graph == NULL || graph->n_initializer != n_raw) {
        return fail(file, "its graph cannot be read", err);
    }
    if (!is_text(file->model->producer_name) || !is_text(file->model->producer_version)) {
        return fail(file, "its producer is no text", err);
    }
    if (graph->n_node > MS_ONNX_NODES_MAX) {
        return ms_fail(err, MS_E_INVALID, "%.160s: %zu nodes; at most %d", file->path,
                       graph->n_node, MS_ONNX_NODES_MAX);
    }
    for (size_t i = 0; i < graph->n_node && rc == MS_OK; i++) {
        rc = check_node(file, graph->node[i], err);
    }
    for (size_t i = 0; i < graph->n_initializer && rc == MS_OK; i++) {
        rc = check_tensor(file, graph->initializer[i], err);
    }
    rc = rc < 0 ? rc : check_values(file, graph->input, graph->n_input, err);
    return rc < 0 ? rc : check_values(file, graph->output, graph->n_output, err);
}

static int check_opset(struct onnx_file *file, struct ms_err *err)
{
    int n_own = 0; /* versions of it; it has two names */
    for (size_t i = 0; i < file->model->n_opset_import; i++) {
        const MsOnnx__Opset *opset = file->model->opset_import[i];
        if (opset->domain[0] == '\0' || strcmp(opset->domain, "ai.onnx") == 0) {
            n_own += n_own == 0 || opset->version != file->opset;
            file->opset = opset->version;
        }
    }
    if (n_own > 1) {
        return fail(file, "it imports ONNX's own opset in two versions", err);
    }
    return file->opset >= OPSET_LEAST && file->opset <= OPSET_MOST
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "%.160s: opset %lld; those from %d to %d are read: export it with "
                         "opset_version=17",
                         file->path, (long long)file->opset, OPSET_LEAST, OPSET_MOST);
}

/* ---- by name ---- */

static int add_name(struct onnx_file *file, const char *name, size_t index, struct ms_err *err)
{
    const MsOnnx__Tensor *tensor = file->model->graph->initializer[index];
    void *grown = ms_grow(file->named, file->n_named, 1, sizeof(*file->named), &file->named_room);
    if (grown == NULL) {
        return fail_memory(file, err);
    }
    file->named = grown;
    struct onnx_tensor *ret = &file->named[file->n_named++];
    *ret = (struct onnx_tensor){.name = name,
                                .type = onnx_type_name(tensor->data_type),
                                .n_dims = (int)tensor->n_dims,
                                .index = index};
    for (size_t i = 0; i < tensor->n_dims; i++) {
        ret->dim[i] = tensor->dims[i];
    }
    return MS_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct onnx_tensor *)a)->name, ((const struct onnx_tensor *)b)->name);
}

static int sort_names(struct onnx_file *file, struct ms_err *err)
{
    if (file->n_named > 0) {
        qsort(file->named, file->n_named, sizeof(*file->named), compare);
    }
    for (size_t i = 1; i < file->n_named; i++) {
        if (strcmp(file->named[i].name, file->named[i - 1].name) == 0) {
            return ms_fail(err, MS_E_INVALID, "%.160s: two initializers are called %.80s",
                           file->path, file->named[i].name);
        }
    }
    return MS_OK;
}

const struct onnx_tensor *onnx_find(const struct onnx_file *file, const char *name)
{
    const struct onnx_tensor key = {.name = name};
    return file->n_named == 0
               ? NULL
               : bsearch(&key, file->named, file->n_named, sizeof(*file->named), compare);
}

int onnx_has_prefix(const struct onnx_file *file, const char *prefix)
{
    size_t low = 0; /* the first name that is not before it */
    size_t high = file->n_named;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(file->named[middle].name, prefix) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < file->n_named && strncmp(file->named[low].name, prefix, strlen(prefix)) == 0;
}

/* PyTorch's older exporter keeps one of several initializers that begin with the same values, and
 * gives it the other names by Identity: each is a parameter of its own. */
static int name_all(struct onnx_file *file, struct ms_err *err)
{
    const MsOnnx__Graph *graph = file->model->graph;
    int rc = MS_OK;
    for (size_t i = 0; i < graph->n_initializer && rc == MS_OK; i++) {
        rc = add_name(file, graph->initializer[i]->name, i, err);
    }
    rc = rc < 0 ? rc : sort_names(file, err);
    const size_t n_initializers = file->n_named;
    for (size_t i = 0; i < graph->n_node && rc == MS_OK; i++) {
        const MsOnnx__Node *node = graph->node[i];
        const int is_name = strcmp(node->op_type, "Identity") == 0 && node->n_input == 1 &&
                            node->n_output == 1 && n_initializers > 0;
        const struct onnx_tensor key = {.name = is_name ? node->input[0] : ""};
        const struct onnx_tensor *of =
            is_name ? bsearch(&key, file->named, n_initializers, sizeof(key), compare) : NULL;
        rc = of != NULL ? add_name(file, node->output[0], of->index, err) : rc;
    }
    return rc < 0 ? rc : sort_names(file, err);
}

/* ---- the file ---- */

int onnx_open(const char *path, struct onnx_file **ret, struct ms_err *err)
{
    struct onnx_skim skim = {.bytes = NULL};
    struct onnx_file *file = calloc(1, sizeof(*file));
    if (file == NULL || (file->path = strdup(path)) == NULL) {
        free(file);
        return ms_fail(err, MS_E_NOMEM, "%.160s: no memory to read it", path);
    }
    file->fd = -1;
    int rc = data_file_open(path, &file->fd, err);
    rc = rc < 0 ? rc : onnx_skim(file->fd, path, &skim, err);
    if (rc == MS_OK) {
        file->raw = skim.raw;
        skim.raw = NULL;
        rc = unpack(file, &skim, err);
    }
    rc = rc < 0 ? rc : check_model(file, skim.n_raw, err);
    rc = rc < 0 ? rc : check_opset(file, err);
    rc = rc < 0 ? rc : name_all(file, err);
    onnx_skim_fini(&skim);
    if (rc < 0) {
        onnx_close(file);
        return rc;
    }
    *ret = file;
    return MS_OK;
}

void onnx_close(struct onnx_file *file)
{
    if (file == NULL) {
        return;
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    if (file->model != NULL) {
        ms_onnx__model__free_unpacked(file->model, &file->allocator);
    }
    free(file->named);
    free(file->raw);
    free(file->path);
    free(file);
}
