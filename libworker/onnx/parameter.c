/* parameter.c - which initializers the layers of a graph have as their parameters */
#include "libworker/onnx/file.h"

#include "proto/macros.h"

#include <string.h>

/* An op, and which of its inputs are parameters. */
static const struct {
    const char *name;
    size_t first, last;
} ops[] = {
    {"Conv", 1, 2},
    {"ConvTranspose", 1, 2},
    {"Gemm", 1, 2},
    {"MatMul", 0, 1},
    {"Add", 0, 1},    /* a vector: the bias of a MatMul; of places */
    {"Gather", 0, 0}, /* of words, or of places */
    {"Expand", 0, 0}, /* a class token */
    /* the gates of a recurrent layer, and of one gate the weight; its biases */
    {"Slice", 0, 0},
    {"Unsqueeze", 0, 0},
    {"Concat", 0, 1},
    {"Mul", 0, 1}, /* a factor */
    {"BatchNormalization", 1, 4},
    {"LayerNormalization", 1, 2},
    {"InstanceNormalization", 1, 2},
    {"GroupNormalization", 1, 2},
};

int onnx_is_made(const struct onnx_file *file, const struct onnx_tensor *tensor)
{
    static const char *const heads[] = {
        "val_", "onnx::", "lifted_tensor_", "_tensor_constant", "min_val_cast", "max_val_cast"};
    const char *name = tensor->name;
    /* an alias of a constant is one, too */
    const char *own = file->model->graph->initializer[tensor->index]->name;
    int is = name[strspn(name, "0123456789")] == '\0' || strchr(name, '/') != NULL ||
             strncmp(own, "lifted_tensor_", 14) == 0;
    for (size_t i = 0; i < MS_ARRAY_SIZE(heads) && !is; i++) {
        is = strncmp(name, heads[i], strlen(heads[i])) == 0;
    }
    return is;
}

struct walk {
    const struct onnx_file *file;
    json_t *flipped; /* of what a Transpose makes of an initializer: that one's name */
    json_t *used;    /* by layers of the graph; NULL: it is no list of layers */
    json_t *told;    /* by name: of those that several nodes take the first one tells */
    json_t *widened; /* of what an Unsqueeze makes of a matrix, for a Conv: likewise */
    onnx_each_fn *each;
    void *arg;
    struct ms_err *err;
};

/* NULL: it is no initializer, and none that was turned for the node. */
static const struct onnx_tensor *find(const struct walk *w, const MsOnnx__Node *node, size_t i,
                                      int *ret_is_flipped)
{
    const char *name = node->input[i];
    const char *of = json_string_value(json_object_get(w->flipped, name));
    *ret_is_flipped = of != NULL;
    if (of == NULL && strcmp(node->op_type, "Conv") == 0 && i == 1) {
        of = json_string_value(json_object_get(w->widened, name));
    }
    return onnx_find(w->file, of != NULL ? of : name);
}

static int keep_turned(struct walk *w, const MsOnnx__Node *node)
{
    json_t *to = strcmp(node->op_type, "Transpose") == 0 && node->n_input == 1   ? w->flipped
                 : strcmp(node->op_type, "Unsqueeze") == 0 && node->n_input >= 1 ? w->widened
                                                                                 : NULL;
    const int is = to != NULL && node->n_output == 1 && onnx_find(w->file, node->input[0]) != NULL;
    return !is || json_object_set_new(to, node->output[0], json_string(node->input[0])) == 0
               ? MS_OK
               : ms_fail(w->err, MS_E_NOMEM, "%.160s: no memory to read it", w->file->path);
}

/* Of a layer's parameters, by a node before that of the layer. */
static int is_part(const MsOnnx__Node *node)
{
    return strcmp(node->op_type, "Slice") == 0 || strcmp(node->op_type, "Unsqueeze") == 0 ||
           strcmp(node->op_type, "Concat") == 0;
}

/* x W^T + b with W (out, in), as a dense layer has it; from the left a MatMul has none. */
static int check_order(struct walk *w, const MsOnnx__Node *node, size_t i, int is_flipped,
                       const struct onnx_tensor *tensor)
{
    int is_turned = is_flipped;
    for (size_t k = 0; k < node->n_attribute; k++) {
        is_turned ^= strcmp(node->attribute[k]->name, "transB") == 0 && node->attribute[k]->i != 0;
    }
    const int is_dense = strcmp(node->op_type, "Gemm") == 0 || strcmp(node->op_type, "MatMul") == 0;
    return !is_dense || i > 1 || tensor->n_dims < 2 || (is_turned && i == 1)
               ? MS_OK
               : ms_fail(w->err, MS_E_INVALID,
                         "%.160s: node %.70s (%.40s) reads its weight %.80s as (in, out), and a "
                         "dense layer has (out, in): export it with do_constant_folding=False, or "
                         "use nn.Linear",
                         w->file->path, node->name[0] != '\0' ? node->name : node->output[0],
                         node->op_type, tensor->name);
}

static int walk_input(struct walk *w, const MsOnnx__Node *node, size_t i)
{
    int is_flipped = 0;
    const struct onnx_tensor *tensor = find(w, node, i, &is_flipped);
    if (tensor == NULL || tensor->n_dims == 0 || strcmp(tensor->type, "FLOAT") != 0) {
        return MS_OK;
    }
    const int is_one = tensor->n_dims == 1 && tensor->dim[0] == 1;
    if (strcmp(node->op_type, "Mul") == 0 && is_one && onnx_is_made(w->file, tensor)) {
        return MS_OK;
    }
    const int is_sum = strcmp(node->op_type, "Add") == 0;
    const int is_bias = is_sum && tensor->n_dims == 1;
    if (is_bias && is_one) {
        return MS_OK;
    }
    const int may_be_else = (is_sum && !is_bias) || is_part(node) ||
                            strcmp(node->op_type, "Gather") == 0 ||
                            strcmp(node->op_type, "Expand") == 0; /* a mask, or places */
    if (may_be_else && json_object_get(w->used, tensor->name) == NULL) {
        return MS_OK;
    }
    if (json_object_get(w->told, tensor->name) != NULL) {
        return MS_OK;
    }
    int rc = json_object_set_new(w->told, tensor->name, json_true()) == 0
                 ? w->each(w->arg, tensor, w->err)
                 : ms_fail(w->err, MS_E_NOMEM, "%.160s: no memory to read it", w->file->path);
    return rc < 0 ? rc : check_order(w, node, i, is_flipped, tensor);
}

static int walk_node(struct walk *w, const MsOnnx__Node *node)
{
    int rc = keep_turned(w, node);
    for (size_t k = 0; k < MS_ARRAY_SIZE(ops); k++) {
        if (strcmp(ops[k].name, node->op_type) != 0 || node->n_output == 0) {
            continue;
        }
        for (size_t i = ops[k].first; i <= ops[k].last && i < node->n_input && rc == MS_OK; i++) {
            rc = walk_input(w, node, i);
        }
    }
    return rc;
}

int onnx_each_parameter(const struct onnx_file *file, onnx_each_fn *each, void *arg,
                        struct ms_err *err)
{
    const MsOnnx__Graph *graph = file->model->graph;
    struct walk w = {.file = file,
                     .flipped = json_object(),
                     .told = json_object(),
                     .widened = json_object(),
                     .used = onnx_used(file),
                     .each = each,
                     .arg = arg,
                     .err = err};
    int rc = w.flipped != NULL && w.told != NULL && w.widened != NULL
                 ? MS_OK
                 : ms_fail(err, MS_E_NOMEM, "%.160s: no memory to read it", file->path);
    for (size_t i = 0; i < graph->n_node && rc == MS_OK; i++) {
        rc = walk_node(&w, graph->node[i]);
    }
    json_decref(w.flipped);
    json_decref(w.told);
    json_decref(w.widened);
    json_decref(w.used);
    return rc;
}
