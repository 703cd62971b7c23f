/* import.c - the graph of an ONNX file as a list of layers */
#include "libworker/onnx/import.h"

#include "proto/grow.h"
#include "proto/macros.h"
#include "proto/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

int import_fail(struct importer *m, const char *fmt, ...)
{
    char why[MS_ERR_TEXT_MAX];
    const MsOnnx__Node *node = m->node;
    const char *slash = strrchr(m->file->path, '/');
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (node == NULL) {
        return ms_fail(m->err, MS_E_INVALID, "%.60s: %s", slash != NULL ? slash + 1 : m->file->path,
                       why);
    }
    return ms_fail(m->err, MS_E_INVALID, "%.60s: node %.70s (%.40s, opset %lld): %s",
                   slash != NULL ? slash + 1 : m->file->path,
                   node->name[0] != '\0' ? node->name
                   : node->n_output > 0  ? node->output[0]
                                         : "without a name",
                   node->op_type, (long long)m->file->opset, why);
}

int import_fail_memory(struct importer *m)
{
    return ms_fail(m->err, MS_E_NOMEM, "%.160s: no memory to read it", m->file->path);
}

/* ---- values by name ---- */

struct value *import_value(const struct importer *m, int index)
{
    return &m->values[index];
}

int import_keep(struct importer *m, const char *name, const struct value *value)
{
    const struct value copy = *value; /* it may be one of those that move */
    void *grown = ms_grow(m->values, m->n_values, 1, sizeof(copy), &m->values_room);
    if (grown == NULL) {
        return import_fail_memory(m);
    }
    m->values = grown;
    m->values[m->n_values] = copy;
    if (json_object_set_new(m->by_name, name, json_integer((json_int_t)m->n_values)) < 0) {
        return import_fail_memory(m);
    }
    return (int)m->n_values++;
}

int import_bind(struct importer *m, const MsOnnx__Node *node, size_t i, const struct value *value)
{
    if (i >= node->n_output || node->output[i][0] == '\0') {
        return MS_OK; /* nobody wants it */
    }
    const char *name = node->output[i];
    if (json_object_get(m->by_name, name) != NULL) {
        return import_fail(m, "value %.80s is made a second time; the file is damaged", name);
    }
    int rc = import_keep(m, name, value);
    if (rc < 0) {
        return rc;
    }
    m->values[rc].dense = NULL; /* a bias that is added to a copy is not added to the layer */
    m->values[rc].norm = NULL;
    return MS_OK;
}

/* An initializer: a parameter, or numbers if there are few. */
static int add_tensor(struct importer *m, const struct onnx_tensor *tensor)
{
    const MsOnnx__Tensor *model = m->file->model->graph->initializer[tensor->index];
    struct value value = {
        .kind = VALUE_PARAM, .n_dims = tensor->n_dims, .tensor = tensor, .expr = NO_VALUE};
    memcpy(value.dim, tensor->dim, sizeof(value.dim));
    if (model->data_type == ONNX_INT64 || model->data_type == ONNX_INT32 ||
        model->data_type == ONNX_BOOL || (model->data_type == ONNX_FLOAT && tensor->n_dims == 0)) {
        int rc = import_tensor(m, model, &value);
        if (rc < 0) {
            return rc;
        }
        value.tensor = tensor;
    }
    return import_keep(m, tensor->name, &value);
}

int import_input(struct importer *m, const MsOnnx__Node *node, size_t i)
{
    const char *name = i < node->n_input ? node->input[i] : "";
    if (name[0] == '\0') {
        return NO_VALUE;
    }
    const json_t *index = json_object_get(m->by_name, name);
    if (index != NULL) {
        return (int)json_integer_value(index);
    }
    const struct onnx_tensor *tensor = onnx_find(m->file, name);
    return tensor != NULL
               ? add_tensor(m, tensor)
               : import_fail(
                     m, "it reads %.80s, which nothing before it makes; the file is damaged", name);
}

int import_failed(int index)
{
    return index < 0 && index != NO_VALUE;
}

int import_need(struct importer *m, const MsOnnx__Node *node, size_t i)
{
    int index = import_input(m, node, i);
    return index == NO_VALUE ? import_fail(m, "it has no input %zu", i + 1) : index;
}

/* ---- what an op reads ---- */

static int import_read(struct importer *m, const MsOnnx__Node *node, size_t i)
{
    int x = import_input(m, node, i);
    if (import_failed(x)) {
        return x;
    }
    if (x == NO_VALUE || import_value(m, x)->kind != VALUE_LAYER) {
        return import_fail(m, "input %zu (%.60s) is nothing that is made of the data", i + 1,
                           i < node->n_input ? node->input[i] : "none");
    }
    int rc = import_settle(m, x);
    return rc < 0 ? rc : x;
}

void import_set_view(struct value *value, const struct view *view)
{
    value->view = *view;
    value->n_dims = view->n_dims;
    for (int i = 0; i < view->n_dims; i++) {
        value->dim[i] = view_dim(view, i);
    }
}

int import_image(struct importer *m, const MsOnnx__Node *node, size_t i)
{
    int x = import_read(m, node, i);
    const struct value *value = x >= 0 ? import_value(m, x) : NULL;
    if (x >= 0 && view_is_pixels(&value->view) && !view_is_whole(&value->view, VIEW_IMAGES)) {
        return import_fail(m, "it reads images (n, channels, height, width), and gets their "
                              "channels last");
    }
    if (x >= 0 && !view_is_whole(&value->view, VIEW_IMAGES)) {
        return import_fail(m,
                           "it reads images (n, channels, height, width), and gets %d dimensions%s",
                           value->n_dims,
                           value->n_dims != 4              ? ""
                           : value->view.form == VIEW_ROWS ? ", of which two were pooled away"
                                                           : " that were moved");
    }
    return x;
}

int import_rows(struct importer *m, const MsOnnx__Node *node, size_t i)
{
    int x = import_read(m, node, i);
    int rc = x < 0 || import_value(m, x)->n_dims != 2 ? x : import_as_rows(m, x);
    return rc < 0 || import_value(m, x)->n_dims == 2
               ? rc
               : import_fail(m,
                             "it reads rows (n, values), and gets %d dimensions; flatten them "
                             "before it",
                             import_value(m, x)->n_dims);
}

int import_tokens(struct importer *m, const MsOnnx__Node *node, size_t i)
{
    int x = import_read(m, node, i);
    int rc = x < 0 || view_is_pixels(&import_value(m, x)->view) ? x : import_as_sequence(m, x);
    return rc < 0 || view_is_tokens(&import_value(m, x)->view)
               ? rc
               : import_fail(m,
                             "it reads rows (n, values), tokens (n, t, values) or images with "
                             "their channels last, and gets %d dimensions that are no such",
                             import_value(m, x)->n_dims);
}

int import_sequence(struct importer *m, const MsOnnx__Node *node, size_t i)
{
    int x = import_read(m, node, i);
    int rc = x < 0 ? x : import_as_sequence(m, x);
    return rc < 0 || view_is_whole(&import_value(m, x)->view, VIEW_SEQUENCE)
               ? rc
               : import_fail(m,
                             "it reads a sequence (n, tokens, channels), and gets %d dimensions "
                             "that are none",
                             import_value(m, x)->n_dims);
}

/* n_stored: the dimensions that it has in the file. */
static int take_param(struct importer *m, const MsOnnx__Node *node, size_t i, int n_dims,
                      int n_stored, struct value *ret)
{
    int index = import_input(m, node, i);
    if (import_failed(index)) {
        return index;
    }
    const struct value *value = index >= 0 ? import_value(m, index) : NULL;
    if (value == NULL || value->kind != VALUE_PARAM) {
        return import_fail(m,
                           "input %zu (%.60s) is no initializer, so nothing that can be trained%s",
                           i + 1, i < node->n_input ? node->input[i] : "none",
                           value != NULL && value->kind == VALUE_LAYER
                               ? ": weights that are made of the data are not known"
                               : "");
    }
    if (value->n_dims != n_dims || value->tensor->n_dims != n_stored) {
        return import_fail(m, "%.80s has %d dimensions in the file, and %d are known",
                           value->tensor->name, value->tensor->n_dims, n_stored);
    }
    const int is_dense = strcmp(node->op_type, "Gemm") == 0 || strcmp(node->op_type, "MatMul") == 0;
    if (value->is_transposed && !is_dense) {
        return import_fail(m,
                           "%.80s is transposed before it, which only the weight of a dense layer "
                           "may be: keep it as it is read",
                           value->tensor->name);
    }
    int rc = import_use(m, value->tensor);
    if (rc == MS_OK) {
        *ret = *import_value(m, index);
    }
    return rc;
}

int import_use(struct importer *m, const struct onnx_tensor *tensor)
{
    const char *name = tensor->name;
    const char *own = m->file->model->graph->initializer[tensor->index]->name;
    if (strncmp(own, "val_", 4) == 0 || strncmp(own, "lifted_tensor_", 14) == 0) {
        return import_fail(m,
                           "%.80s is a constant that the exporter made, and would be trained; give "
                           "the module a parameter, or export it with optimize=False",
                           name);
    }
    if (strcmp(tensor->type, "FLOAT") != 0) {
        return import_fail(m, "%.80s is %s; export the model in float32", name, tensor->type);
    }
    const json_int_t before = json_integer_value(json_object_get(m->used, name));
    return json_object_set_new(m->used, name, json_integer(before + 1)) == 0
               ? MS_OK
               : import_fail_memory(m);
}

int import_is_shared(const struct importer *m, const char *parameter)
{
    return json_integer_value(json_object_get(m->used, parameter)) > 1;
}

int import_param(struct importer *m, const MsOnnx__Node *node, size_t i, int n_dims,
                 struct value *ret)
{
    return take_param(m, node, i, n_dims, n_dims, ret);
}

int import_of_channels(struct importer *m, const MsOnnx__Node *node, size_t i, int n_dims,
                       struct value *ret)
{
    return take_param(m, node, i, n_dims, 1, ret);
}

int import_is_kernel_of_matrix(const struct importer *m, int value)
{
    return value >= 0 && import_value(m, value)->kind == VALUE_PARAM &&
           import_value(m, value)->n_dims == 4 && import_value(m, value)->tensor->n_dims == 2;
}

int import_kernel_of_matrix(struct importer *m, const MsOnnx__Node *node, size_t i,
                            struct value *ret)
{
    return take_param(m, node, i, 4, 2, ret);
}

int import_repeated(struct importer *m, const MsOnnx__Node *node, size_t i, int n_dims,
                    struct value *ret)
{
    int index = import_input(m, node, i);
    const struct onnx_tensor *tensor = index >= 0 ? import_value(m, index)->tensor : NULL;
    return take_param(m, node, i, n_dims, tensor != NULL ? tensor->n_dims : n_dims, ret);
}

/* ---- attributes ---- */

enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7 };

const MsOnnx__Attribute *attribute_find(const MsOnnx__Node *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (strcmp(node->attribute[i]->name, name) == 0) {
            return node->attribute[i];
        }
    }
    return NULL;
}

int attribute_int(struct importer *m, const MsOnnx__Node *node, const char *name, int64_t none,
                  int64_t *ret)
{
    const MsOnnx__Attribute *at = attribute_find(node, name);
    *ret = at != NULL ? at->i : none;
    return at == NULL || at->type == ATTRIBUTE_INT
               ? MS_OK
               : import_fail(m, "attribute %s is no whole number", name);
}

double import_real(float f)
{
    char text[32];
    double best = (double)f;
    for (int digits = 9; digits >= 1; digits--) {
        snprintf(text, sizeof(text), "%.*g", digits, (double)f);
        best = strtof(text, NULL) == f ? strtod(text, NULL) : best;
    }
    return best;
}

int attribute_real(struct importer *m, const MsOnnx__Node *node, const char *name, double none,
                   double *ret)
{
    const MsOnnx__Attribute *at = attribute_find(node, name);
    if (at != NULL && (at->type != ATTRIBUTE_FLOAT || !isfinite(at->f))) {
        return import_fail(m, "attribute %s is no real number", name);
    }
    *ret = at != NULL ? import_real(at->f) : none;
    return MS_OK;
}

int attribute_ints(struct importer *m, const MsOnnx__Node *node, const char *name, int n,
                   int64_t none, int64_t *ret)
{
    const MsOnnx__Attribute *at = attribute_find(node, name);
    if (at != NULL && (at->type != ATTRIBUTE_INTS || at->n_ints != (size_t)n)) {
        return import_fail(m,
                           "attribute %s has %zu numbers, and %d are known: it is no layer of "
                           "two-dimensional images",
                           name, at->n_ints, n);
    }
    for (int i = 0; i < n; i++) {
        ret[i] = at != NULL ? at->ints[i] : none;
    }
    return MS_OK;
}

/* ---- layers ---- */

/* Has a module that name, whatever its parameters are called? Its layer has it, then. */
static int is_stem(const struct importer *m, const char *name)
{
    char prefix[MS_NAME_MAX + sizeof(".")];
    snprintf(prefix, sizeof(prefix), "%s.", name);
    return onnx_has_prefix(m->file, prefix);
}

/* The next number that no module has; the list's own, as long as there was none to leave out. */
static int number_layer(struct importer *m, const char *kind, json_t *keys,
                        char ret[MS_NAME_MAX + 1])
{
    json_int_t n = json_integer_value(json_object_get(m->counts, kind));
    int is_named = json_object_get(m->named, kind) != NULL;
    for (;;) {
        snprintf(ret, MS_NAME_MAX + 1, "%s%lld", kind, (long long)++n);
        if (!is_stem(m, ret)) {
            break;
        }
        is_named = 1;
    }
    int rc = json_object_set_new(m->counts, kind, json_integer(n));
    if (is_named) {
        rc |= json_object_set_new(m->named, kind, json_true());
        rc |= json_object_set_new(keys, "name", json_string(ret));
    }
    return rc == 0 ? MS_OK : import_fail_memory(m);
}

/* Its own name, or its kind and a number. */
static int name_layer(struct importer *m, const char *kind, const char *name, json_t *keys,
                      char ret[MS_NAME_MAX + 1])
{
    if (name[0] != '\0') {
        snprintf(ret, MS_NAME_MAX + 1, "%s", name);
        return json_object_set_new(keys, "name", json_string(name)) == 0 ? MS_OK
                                                                         : import_fail_memory(m);
    }
    return number_layer(m, kind, keys, ret);
}

static int add_layer(struct importer *m, const char *kind, json_t *keys)
{
    json_t *entry = json_pack("{s:O}", kind, keys);
    return entry != NULL && json_array_append_new(m->layers, entry) == 0 ? MS_OK
                                                                         : import_fail_memory(m);
}

/* The last of the list. */
static void fill_layer(const struct importer *m, struct value *ret, const struct value *like,
                       const char *name)
{
    *ret = *like;
    ret->kind = VALUE_LAYER;
    ret->expr = NO_VALUE;
    ret->dense = NULL;
    ret->norm = NULL;
    ret->at = json_array_size(m->layers);
    snprintf(ret->layer, sizeof(ret->layer), "%s", name);
}

int import_layer(struct importer *m, const char *kind, const char *name, json_t *keys, int x,
                 struct value *ret)
{
    char own[MS_NAME_MAX + 1];
    const struct value *from = import_value(m, x);
    int rc = keys != NULL ? MS_OK : import_fail_memory(m);
    if (rc == MS_OK && from->at != json_array_size(m->layers) &&
        json_object_set_new(keys, "from", json_string(from->layer)) < 0) {
        rc = import_fail_memory(m);
    }
    rc = rc < 0 ? rc : name_layer(m, kind, name, keys, own);
    rc = rc < 0 ? rc : add_layer(m, kind, keys);
    if (rc == MS_OK) {
        fill_layer(m, ret, import_value(m, x), own);
    }
    json_decref(keys); /* the list has it */
    return rc;
}

int import_rename(struct importer *m, const char *kind, const char *name, json_t *keys,
                  struct value *value)
{
    const json_int_t n = json_integer_value(json_object_get(m->counts, kind));
    snprintf(value->layer, sizeof(value->layer), "%s", name);
    return json_object_set_new(m->counts, kind, json_integer(n - 1)) == 0 &&
                   json_object_set_new(keys, "name", json_string(name)) == 0
               ? MS_OK
               : import_fail_memory(m);
}

int import_join(struct importer *m, const char *kind, const int *values, int n, struct value *ret)
{
    char own[MS_NAME_MAX + 1];
    json_t *from = json_array();
    for (int i = 0; i < n; i++) {
        json_array_append_new(from, json_string(import_value(m, values[i])->layer));
    }
    json_t *keys = json_pack("{s:o}", "from", from);
    int rc = keys != NULL && json_array_size(from) == (size_t)n ? MS_OK : import_fail_memory(m);
    rc = rc < 0 ? rc : name_layer(m, kind, "", keys, own);
    rc = rc < 0 ? rc : add_layer(m, kind, keys);
    if (rc == MS_OK) {
        fill_layer(m, ret, import_value(m, values[0]), own);
    }
    json_decref(keys);
    return rc;
}

/* ---- what the graph reads and makes ---- */

static int count_readers(struct importer *m)
{
    static const char *const flatten[] = {"Flatten", "Reshape", "Squeeze"};
    const MsOnnx__Graph *graph = m->file->model->graph;
    for (size_t i = 0; i < graph->n_node; i++) {
        const MsOnnx__Node *node = graph->node[i];
        int makes_rows = 0;
        for (size_t k = 0; k < MS_ARRAY_SIZE(flatten); k++) {
            makes_rows |= strcmp(node->op_type, flatten[k]) == 0;
        }
        for (size_t k = 0; k < node->n_input; k++) {
            const char *name = node->input[k];
            const json_int_t n = json_integer_value(json_object_get(m->reads, name));
            if (k == 1 && strcmp(node->op_type, "CastLike") == 0) {
                continue; /* it asks what type that has */
            }
            if (json_object_set_new(m->reads, name, json_integer(n + 1)) < 0) {
                return import_fail_memory(m);
            }
            if (makes_rows && k == 0) {
                continue;
            }
            if (strcmp(node->op_type, "Shape") != 0 && node->input[k][0] != '\0' &&
                json_object_set_new(m->readers, node->input[k], json_true()) < 0) {
                return import_fail_memory(m);
            }
        }
    }
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = graph->output[i]->name;
        const json_int_t n = json_integer_value(json_object_get(m->reads, name));
        if (json_object_set_new(m->readers, name, json_true()) < 0 ||
            json_object_set_new(m->reads, name, json_integer(n + 1)) < 0) {
            return import_fail_memory(m);
        }
    }
    return MS_OK;
}

/* The one input that is no initializer (older files list those as inputs, too). */
static int find_input(struct importer *m, const MsOnnx__ValueInfo **ret)
{
    const MsOnnx__Graph *graph = m->file->model->graph;
    const MsOnnx__ValueInfo *found = NULL;
    for (size_t i = 0; i < graph->n_input; i++) {
        if (onnx_find(m->file, graph->input[i]->name) != NULL) {
            continue;
        }
        if (found != NULL) {
            return import_fail(m,
                               "the graph has the inputs %.60s and %.60s, and a network here has "
                               "one",
                               found->name, graph->input[i]->name);
        }
        found = graph->input[i];
    }
    if (found == NULL) {
        return import_fail(m, "the graph has no input");
    }
    *ret = found;
    return MS_OK;
}

static json_t *wanted(const struct value *x)
{
    json_t *input = json_object();
    static const char *const keys[] = {"channels", "height", "width"};
    for (int i = 1; i < x->n_dims && input != NULL; i++) {
        const char *key = x->n_dims == 2 ? "features" : keys[i - 1];
        if (x->dim[i] > 0 && json_object_set_new(input, key, json_integer(x->dim[i])) < 0) {
            json_decref(input);
            input = NULL;
        }
    }
    return input;
}

/* Numbers of words. */
static int add_tokens(struct importer *m, const MsOnnx__ValueInfo *info, struct value *x)
{
    x->kind = VALUE_TOKENS;
    int index = import_keep(m, info->name, x);
    return index < 0 ? index : MS_OK;
}

/* Images, or rows that are their pixels one behind the other, or tokens. */
static int add_input(struct importer *m, json_t *document)
{
    const MsOnnx__ValueInfo *info = NULL;
    int rc = find_input(m, &info);
    if (rc < 0) {
        return rc;
    }
    const MsOnnx__TensorType *type = info->type != NULL ? info->type->tensor_type : NULL;
    const size_t n = type != NULL && type->shape != NULL ? type->shape->n_dim : 0;
    const int is_tokens =
        n == 2 && (type->elem_type == ONNX_INT64 || type->elem_type == ONNX_INT32);
    if (!is_tokens && ((n != 4 && n != 2) || type->elem_type != ONNX_FLOAT)) {
        return import_fail(m,
                           "its input %.60s is %s with %zu dimensions; FLOAT images (n, channels, "
                           "height, width) or rows (n, values) are known, and INT64 tokens (n, t)",
                           info->name, onnx_type_name(type != NULL ? type->elem_type : 0), n);
    }
    struct value x = {.kind = VALUE_LAYER, .expr = NO_VALUE};
    int64_t size[VIEW_AXES] = {1, 1, 1, 1};
    for (size_t i = 0; i < n; i++) {
        const int64_t given = type->shape->dim[i]->dim_value;
        size[i] = given > 0 ? given : i == 0 ? SIZE_BATCH : SIZE_UNKNOWN;
    }
    const struct view view = view_whole(n == 4 ? VIEW_IMAGES : VIEW_ROWS, size);
    import_set_view(&x, &view);
    snprintf(x.layer, sizeof(x.layer), "input");
    if (json_object_set_new(document, "input", wanted(&x)) < 0) {
        return import_fail_memory(m);
    }
    if (is_tokens) {
        return add_tokens(m, info, &x);
    }
    int index = import_keep(m, info->name, &x);
    if (index >= 0 && n == 2) {
        struct value rows;
        rc = import_layer(m, "flatten", "", json_object(), index, &rows);
        if (rc < 0) {
            return rc;
        }
        *import_value(m, index) = rows;
    }
    return index < 0 ? index : MS_OK;
}

static int add_output(struct importer *m)
{
    const MsOnnx__Graph *graph = m->file->model->graph;
    if (graph->n_output != 1) {
        return import_fail(m,
                           "the graph has %zu outputs, and a network here has one; export it "
                           "without the others (of auxiliary losses, too)",
                           graph->n_output);
    }
    const char *name = graph->output[0]->name;
    const json_t *index = json_object_get(m->by_name, name);
    if (index == NULL || import_value(m, (int)json_integer_value(index))->kind != VALUE_LAYER) {
        return import_fail(m, "its output %.60s is made of nothing that the graph reads", name);
    }
    const int output = (int)json_integer_value(index);
    int rc = import_settle(m, output);
    const struct view *view = &import_value(m, output)->view;
    if (rc == MS_OK && !view_is_whole(view, view->form)) {
        rc = import_fail(m, "its output %.60s is what a layer makes with its dimensions moved",
                         name);
    }
    return rc < 0 || import_value(m, output)->at == json_array_size(m->layers)
               ? rc
               : import_fail(m,
                             "its output %.60s is not what its last layer makes: there are layers "
                             "whose output nobody reads; export the model without them",
                             name);
}

/* ---- nodes ---- */

/* What exporters write of modules that have no layer here, and what would be needed. */
static const struct {
    const char *name, *why;
} unknown[] = {
    {"LogSoftmax", "the loss has it: let the model end in what goes into it"},
    {"Softplus", "there is no layer softplus or mish yet"},
    {"Mish", "there is no layer mish yet"},
    {"PRelu", "there is no ReLU with a learned slope yet"},
    {"Selu", "there is no layer selu yet"},
    {"LRN", "there is no local response normalization yet"},
    {"Upsample", "it is of opset 9: export with opset 11 or later, where it is Resize"},
    {"If", "graphs with branches that the data choose are no lists of layers"},
    {"Loop", "graphs with loops are no lists of layers"},
};

const struct node_op *import_op(const char *name)
{
    const struct node_op *const tables[] = {
        layer_ops, norm_ops,     shape_ops,   constant_ops,  part_ops,      place_ops,
        join_ops,  function_ops, product_ops, attention_ops, recurrent_ops, resample_ops};
    for (size_t t = 0; t < MS_ARRAY_SIZE(tables); t++) {
        for (const struct node_op *op = tables[t]; op->name != NULL; op++) {
            if (strcmp(op->name, name) == 0) {
                return op;
            }
        }
    }
    return NULL;
}

static int fail_unknown(struct importer *m, const MsOnnx__Node *node)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(unknown); i++) {
        if (strcmp(unknown[i].name, node->op_type) == 0) {
            return import_fail(m, "%s", unknown[i].why);
        }
    }
    return import_fail(m,
                       "this op is not known: it would need a layer that does the same, with its "
                       "gradient; docs/networks.md lists those that are");
}

/* Of a recurrent one perhaps its states alone. */
static int makes_something(const MsOnnx__Node *node)
{
    return node->n_output > 0 && (node->output[0][0] != '\0' || import_is_recurrent(node->op_type));
}

/* Before all that is wrong with those around it: what exporters put there for its sake is no
 * reason. */
static int refuse_unknown(struct importer *m)
{
    const MsOnnx__Graph *graph = m->file->model->graph;
    for (size_t i = 0; i < graph->n_node; i++) {
        const MsOnnx__Node *node = graph->node[i];
        m->node = node;
        if (node->domain[0] != '\0' && strcmp(node->domain, "ai.onnx") != 0) {
            return import_fail(m, "it is of domain %.60s; those of ONNX itself are known",
                               node->domain);
        }
        if (import_op(node->op_type) == NULL) {
            return fail_unknown(m, node);
        }
    }
    m->node = NULL;
    return MS_OK;
}

enum { ATTRIBUTES_MAX = 32 }; /* of an op some ten */

/* An attribute that it has twice, or one of too many; NULL: none. */
static const char *told_twice(const MsOnnx__Node *node)
{
    const char *twice = node->n_attribute > ATTRIBUTES_MAX ? node->attribute[0]->name : NULL;
    for (size_t i = 0; i < node->n_attribute && twice == NULL; i++) {
        for (size_t k = 0; k < i && twice == NULL; k++) {
            twice = strcmp(node->attribute[i]->name, node->attribute[k]->name) == 0
                        ? node->attribute[k]->name
                        : NULL;
        }
    }
    return twice;
}

static int import_node(struct importer *m, const MsOnnx__Node *node)
{
    m->node = node;
    const struct node_op *op = import_op(node->op_type);
    const char *twice = told_twice(node);
    if (twice != NULL) {
        return import_fail(m, "it has the attribute %.40s twice; the file is damaged", twice);
    }
    if (node->n_input < (size_t)op->n_in || !makes_something(node)) {
        return import_fail(m, "it has %zu inputs and %zu outputs; the file is damaged",
                           node->n_input, node->n_output);
    }
    return op->import(m, node);
}

/* PyTorch's exporters leave a trace: names of weights that were computed, or what was rewritten. */
static int is_folded_norm(const MsOnnx__Node *node)
{
    int is = strcmp(node->op_type, "Conv") == 0 && node->n_input > 1 &&
             strncmp(node->input[1], "onnx::", 6) == 0;
    for (size_t i = 0; i < node->n_metadata_props; i++) {
        const MsOnnx__Entry *entry = node->metadata_props[i];
        static const char rule[] = "FuseBatchNorm";
        is |= entry->value.len >= sizeof(rule) - 1 &&
              memmem(entry->value.data, entry->value.len, rule, sizeof(rule) - 1) != NULL &&
              strcmp(entry->key, "pkg.onnxscript.rewriter.rule_name") == 0;
    }
    return is;
}

static int refuse_folded(struct importer *m)
{
    const MsOnnx__Graph *graph = m->file->model->graph;
    for (size_t i = 0; i < graph->n_node; i++) {
        if (is_folded_norm(graph->node[i])) {
            m->node = graph->node[i];
            return import_fail(m,
                               "the exporter has put a batch norm into this %s, so that "
                               "it can no longer be trained: export with optimize=False, or with "
                               "dynamo=False, training=torch.onnx.TrainingMode.TRAINING and "
                               "do_constant_folding=False",
                               strcmp(m->node->op_type, "Conv") == 0 ? "convolution" : "layer");
        }
    }
    return MS_OK;
}

/* Does it take the statistics of the batch? Before opset 14 it has the outputs of training then.
 * PyTorch's newer exporter says it in the node's name alone: of aten._native_batch_norm_legit...,
 * those that end in no_training are frozen. */
static int is_trained_norm(const struct importer *m, const MsOnnx__Node *node)
{
    const MsOnnx__Attribute *at = attribute_find(node, "training_mode");
    const int is_named = strstr(node->name, "native_batch_norm_legit") != NULL &&
                         strstr(node->name, "no_training") == NULL;
    return (at != NULL && at->i != 0) || is_named || (m->file->opset < 14 && node->n_output > 1);
}

/* Frozen ones among those that are trained; a file of evaluation has none of those. */
static int refuse_frozen(struct importer *m)
{
    const MsOnnx__Graph *graph = m->file->model->graph;
    const MsOnnx__Node *frozen = NULL;
    int n_trained = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        if (strcmp(graph->node[i]->op_type, "BatchNormalization") == 0) {
            const int is_trained = is_trained_norm(m, graph->node[i]);
            n_trained += is_trained;
            frozen = !is_trained && frozen == NULL ? graph->node[i] : frozen;
        }
    }
    if (n_trained == 0 || frozen == NULL) {
        return MS_OK;
    }
    m->node = frozen;
    return import_fail(m,
                       "this batch norm is frozen (it was in eval()), and %d others are trained: "
                       "frozen ones are not read yet; call model.train() before the export, which "
                       "trains it too",
                       n_trained);
}

static int import_graph(struct importer *m, json_t *document)
{
    const MsOnnx__Graph *graph = m->file->model->graph;
    int rc = refuse_unknown(m);
    rc = rc < 0 ? rc : refuse_folded(m);
    rc = rc < 0 ? rc : refuse_frozen(m);
    rc = rc < 0 ? rc : count_readers(m);
    rc = rc < 0 ? rc : add_input(m, document);
    for (size_t i = 0; i < graph->n_node && rc == MS_OK; i++) {
        rc = import_node(m, graph->node[i]);
    }
    m->node = NULL;
    rc = rc < 0 ? rc : add_output(m);
    if (rc == MS_OK && json_array_size(m->layers) == 0) {
        rc = import_fail(m, "the graph has no layers");
    }
    return rc;
}

/* "ONNX, opset 18, of pytorch 2.15.0": what the file does not say of its producer is left out. */
static void summarize(const struct onnx_file *file, char *buf, size_t size)
{
    const MsOnnx__Model *model = file->model;
    char producer[41]; /* cut between letters */
    char version[41] = "";
    ms_text_copy(producer, sizeof(producer), model->producer_name);
    if (producer[0] != '\0') {
        ms_text_copy(version, sizeof(version), model->producer_version);
    }
    snprintf(buf, size, "ONNX, opset %lld%s%s%s%s", (long long)file->opset,
             producer[0] != '\0' ? ", of " : "", producer, version[0] != '\0' ? " " : "", version);
}

/* ret_used: the initializers that its layers have; NULL: nobody asks. */
static int read_network(const struct onnx_file *file, json_t **ret, json_t **ret_used,
                        struct ms_err *err)
{
    struct ms_err why = {0, ""};
    char summary[160];
    summarize(file, summary, sizeof(summary));
    struct importer m = {.file = file,
                         .err = &why,
                         .by_name = json_object(),
                         .readers = json_object(),
                         .reads = json_object(),
                         .pads = json_object(),
                         .used = json_object(),
                         .counts = json_object(),
                         .named = json_object(),
                         .layers = json_array()};
    json_t *document = json_pack("{s:s, s:O}", "summary", summary, "layers", m.layers);
    int rc = document != NULL && m.by_name != NULL && m.readers != NULL && m.reads != NULL &&
                     m.pads != NULL && m.used != NULL && m.counts != NULL && m.named != NULL
                 ? import_graph(&m, document)
                 : import_fail_memory(&m);
    free(m.values);
    free(m.exprs);
    free(m.rows);
    free(m.pieces);
    json_decref(m.by_name);
    json_decref(m.readers);
    json_decref(m.reads);
    json_decref(m.pads);
    json_decref(m.counts);
    json_decref(m.named);
    json_decref(m.layers);
    if (rc < 0 || ret_used == NULL) {
        json_decref(m.used);
    } else {
        *ret_used = m.used;
    }
    if (rc < 0) {
        json_decref(document);
        return ms_fail(err, rc, "%s", why.text);
    }
    *ret = document;
    return MS_OK;
}

int onnx_network(const struct onnx_file *file, json_t **ret, struct ms_err *err)
{
    return read_network(file, ret, NULL, err);
}

json_t *onnx_used(const struct onnx_file *file)
{
    json_t *document = NULL;
    json_t *used = NULL;
    if (read_network(file, &document, &used, NULL) < 0) {
        return NULL;
    }
    json_decref(document);
    return used;
}
