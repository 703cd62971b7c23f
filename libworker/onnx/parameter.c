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
    {"Add", 0, 1}, /* a vector: the bias of a MatMul */
    {"BatchNormalization", 1, 4},
    {"LayerNormalization", 1, 2},
    {"InstanceNormalization", 1, 2},
    {"GroupNormalization", 1, 2},
};

struct walk {
    const struct onnx_file *file;
    json_t *flipped; /* of what a Transpose makes of an initializer: that one's name */
    onnx_each_fn *each;
    void *arg;
    struct ms_err *err;
};

/* NULL: it is no initializer, and no transposed one. */
static const struct onnx_tensor *find(const struct walk *w, const char *name, int *ret_is_flipped)
{
    const char *of = json_string_value(json_object_get(w->flipped, name));
    *ret_is_flipped = of != NULL;
    return onnx_find(w->file, of != NULL ? of : name);
}

static int keep_flipped(struct walk *w, const MsOnnx__Node *node)
{
    const int is = strcmp(node->op_type, "Transpose") == 0 && node->n_input == 1 &&
                   node->n_output == 1 && onnx_find(w->file, node->input[0]) != NULL;
    return !is || json_object_set_new(w->flipped, node->output[0], json_string(node->input[0])) == 0
               ? MS_OK
               : ms_fail(w->err, MS_E_NOMEM, "%.160s: no memory to read it", w->file->path);
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
    const struct onnx_tensor *tensor = find(w, node->input[i], &is_flipped);
    if (tensor == NULL || tensor->n_dims == 0 || strcmp(tensor->type, "FLOAT") != 0) {
        return MS_OK;
    }
    if (strcmp(node->op_type, "Add") == 0 && (tensor->n_dims != 1 || tensor->dim[0] == 1)) {
        return MS_OK;
    }
    int rc = w->each(w->arg, tensor, w->err);
    return rc < 0 ? rc : check_order(w, node, i, is_flipped, tensor);
}

static int walk_node(struct walk *w, const MsOnnx__Node *node)
{
    int rc = keep_flipped(w, node);
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
    struct walk w = {file, json_object(), each, arg, err};
    int rc = w.flipped != NULL
                 ? MS_OK
                 : ms_fail(err, MS_E_NOMEM, "%.160s: no memory to read it", file->path);
    for (size_t i = 0; i < graph->n_node && rc == MS_OK; i++) {
        rc = walk_node(&w, graph->node[i]);
    }
    json_decref(w.flipped);
    return rc;
}
