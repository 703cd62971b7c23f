/* write.c - an ONNX file of a graph: its nodes in memory, the weights one after the other */
#include "libworker/onnx/file.h"
#include "libworker/onnx/write_impl.h"

#include "libworker/graph/op.h"
#include "proto/file_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw_data are little endian; this writer copies bytes as they are"
#endif

enum { IR_VERSION = 10, OPSET = 21 };
#define FILE_MAX UINT64_C(0x7FFFFFFF) /* of a protobuf message */

/* ---- names ---- */

/* No parameter begins with a slash. */
const char *write_name(const struct write *w, int tensor, char buf[WRITE_NAME_MAX])
{
    const struct tensor *of = graph_tensor(w->graph, tensor);
    const char *name = tensor == graph_data_index(w->graph) ? w->input
                       : tensor == graph_output(w->graph)   ? w->output
                       : of->producer < 0                   ? of->name
                                                            : NULL;
    if (name != NULL) {
        snprintf(buf, WRITE_NAME_MAX, "%s", name);
    } else {
        const enum op_kind kind = graph_op(w->graph, of->producer)->kind;
        snprintf(buf, WRITE_NAME_MAX, "/%s_%d", op_row(kind)->name, tensor);
    }
    return buf;
}

/* ... that no parameter has. */
static void free_name(const struct graph *graph, const char *word, char ret[WRITE_NAME_MAX])
{
    snprintf(ret, WRITE_NAME_MAX, "%s", word);
    while (graph_find(graph, ret) >= 0) {
        snprintf(ret + strlen(ret), WRITE_NAME_MAX - strlen(ret), "_");
    }
}

/* ---- what goes in and out ---- */

static void put_dim(struct ms_message *shape, int64_t size)
{
    struct ms_message dim = {.bytes = NULL};
    if (size > 0) {
        ms_message_put_int(&dim, DIM_VALUE, size);
    } else {
        ms_message_put_text(&dim, DIM_PARAM, "batch");
    }
    ms_message_put(shape, ENTRY_SHAPE_DIM, &dim);
    ms_message_fini(&dim);
}

static void put_value_info(struct ms_message *graph, unsigned field, const char *name,
                           const struct shape *of, int elem)
{
    struct ms_message shape = {.bytes = NULL};
    struct ms_message tensor = {.bytes = NULL};
    struct ms_message type = {.bytes = NULL};
    struct ms_message info = {.bytes = NULL};
    for (int i = 0; i < of->n_dims; i++) {
        put_dim(&shape, i > 0 ? of->dim[i] : 0);
    }
    ms_message_put_int(&tensor, TENSOR_TYPE_ELEM, elem);
    ms_message_put(&tensor, TENSOR_TYPE_SHAPE, &shape);
    ms_message_put(&type, TYPE_TENSOR, &tensor);
    ms_message_put_text(&info, VALUE_INFO_NAME, name);
    ms_message_put(&info, VALUE_INFO_TYPE, &type);
    ms_message_put(graph, field, &info);
    ms_message_fini(&shape);
    ms_message_fini(&tensor);
    ms_message_fini(&type);
    ms_message_fini(&info);
}

/* ---- nodes ---- */

/* Forward ops up to the loss. */
static int put_nodes(struct write *w, struct ms_err *err)
{
    int i = 0;
    while (i >= 0 && i < graph_n_ops(w->graph) && !op_row(graph_op(w->graph, i)->kind)->is_loss) {
        i = write_op(w, i, err);
    }
    return i < 0 ? i : MS_OK;
}

/* Are the data words? */
static int reads_words(const struct graph *graph)
{
    int reads = 0;
    for (int i = 0; i < graph_n_forward_ops(graph); i++) {
        reads |= graph_op(graph, i)->kind == OP_EMBEDDING;
    }
    return reads;
}

/* All of the graph but its weights. */
static int put_graph(struct write *w, struct ms_message *graph, struct ms_err *err)
{
    const struct tensor *data = graph_tensor(w->graph, graph_data_index(w->graph));
    const struct tensor *output = graph_tensor(w->graph, graph_output(w->graph));
    const struct shape words = {2, {data->shape.dim[0], data->shape.dim[1]}};
    w->is_words = reads_words(w->graph);
    ms_message_put_text(graph, GRAPH_NAME, graph_name(w->graph));
    put_value_info(graph, GRAPH_INPUT, w->input, w->is_words ? &words : &data->shape,
                   w->is_words ? ONNX_INT64 : ONNX_FLOAT);
    put_value_info(graph, GRAPH_OUTPUT, w->output, &output->shape, ONNX_FLOAT);
    return put_nodes(w, err);
}

/* ---- weights ---- */

/* A field of the graph, up to its values. */
static void put_weight(struct ms_message *to, const struct tensor *tensor)
{
    const uint64_t size = (uint64_t)shape_count(&tensor->shape) * sizeof(float);
    struct ms_message inner = {.bytes = NULL};
    for (int i = 0; i < tensor->shape.n_dims; i++) {
        ms_message_put_int(&inner, TENSOR_DIMS, tensor->shape.dim[i]);
    }
    ms_message_put_int(&inner, TENSOR_DATA_TYPE, ONNX_FLOAT);
    ms_message_put_text(&inner, TENSOR_NAME, tensor->name);
    ms_message_put_head(&inner, TENSOR_RAW_DATA, size);
    ms_message_put_begin(to, GRAPH_INITIALIZER, &inner, size);
    ms_message_fini(&inner);
}

/* Bytes of all of them. */
static uint64_t weights_size(const struct graph *graph, struct ms_message *scratch)
{
    uint64_t size = 0;
    for (int i = 0; i < graph_n_stored(graph); i++) {
        const struct tensor *tensor = graph_tensor(graph, graph_stored_at(graph, i));
        ms_message_clear(scratch);
        put_weight(scratch, tensor);
        size += scratch->n + (uint64_t)shape_count(&tensor->shape) * sizeof(float);
    }
    return size;
}

static int write_weight(const struct ms_file_new *file, const struct tensor *tensor,
                        const struct onnx_weights *weights, struct ms_message *scratch,
                        struct ms_err *err)
{
    const size_t count = (size_t)shape_count(&tensor->shape);
    float *values = malloc(count * sizeof(*values));
    ms_message_clear(scratch);
    put_weight(scratch, tensor);
    int rc = values != NULL && !ms_message_failed(scratch)
                 ? weights->get(weights->arg, tensor, values, count, err)
                 : ms_fail(err, MS_E_NOMEM, "no memory to write %.80s", tensor->name);
    rc = rc < 0 ? rc : ms_file_put(file, scratch->bytes, scratch->n, err);
    rc = rc < 0 ? rc : ms_file_put(file, values, count * sizeof(*values), err);
    free(values);
    return rc;
}

/* ---- the file ---- */

/* The model up to its graph's bytes, of which there are so many. */
static void put_model(struct ms_message *model, uint64_t graph_size)
{
    struct ms_message opset = {.bytes = NULL};
    ms_message_put_text(&opset, OPSET_DOMAIN, "");
    ms_message_put_int(&opset, OPSET_VERSION, OPSET);
    ms_message_put_int(model, MODEL_IR_VERSION, IR_VERSION);
    ms_message_put_text(model, MODEL_PRODUCER_NAME, ONNX_PRODUCER);
    ms_message_put(model, MODEL_OPSET, &opset);
    ms_message_put_head(model, MODEL_GRAPH, graph_size);
    ms_message_fini(&opset);
}

static int write_file(const struct write *w, const char *path, const struct ms_message *parts,
                      int n_parts, const struct onnx_weights *weights, struct ms_message *scratch,
                      struct ms_err *err)
{
    struct ms_file_new file;
    int rc = ms_file_begin(path, 0666, &file, err);
    if (rc < 0) {
        return rc;
    }
    for (int i = 0; i < n_parts && rc == MS_OK; i++) {
        rc = ms_file_put(&file, parts[i].bytes, parts[i].n, err);
    }
    for (int i = 0; i < graph_n_stored(w->graph) && rc == MS_OK; i++) {
        rc = write_weight(&file, graph_tensor(w->graph, graph_stored_at(w->graph, i)), weights,
                          scratch, err);
    }
    if (rc < 0) {
        ms_file_drop(&file);
        return rc;
    }
    return ms_file_end(&file, 0, err);
}

int onnx_write(const char *path, const struct graph *graph, const struct onnx_weights *weights,
               struct onnx_written *ret, struct ms_err *err)
{
    enum { MODEL, GRAPH, NODES, CONSTANTS, PARTS };
    struct write w = {.graph = graph};
    struct ms_message parts[PARTS] = {{.bytes = NULL}};
    struct ms_message scratch = {.bytes = NULL};
    uint64_t size = 0;
    free_name(graph, "input", w.input);
    free_name(graph, "output", w.output);
    int rc = put_graph(&w, &parts[GRAPH], err);
    parts[NODES] = w.nodes;
    parts[CONSTANTS] = w.constants;
    if (rc == MS_OK) {
        size = parts[GRAPH].n + parts[NODES].n + parts[CONSTANTS].n + weights_size(graph, &scratch);
        put_model(&parts[MODEL], size);
        size += parts[MODEL].n;
        rc = size <= FILE_MAX
                 ? MS_OK
                 : ms_fail(err, MS_E_FULL,
                           "%.200s: an ONNX file has at most 2 GiB, and this one would "
                           "have %.1f; export the weights as .safetensors",
                           path, (double)size / (double)(1U << 30));
    }
    int failed = ms_message_failed(&scratch);
    for (int i = 0; i < PARTS; i++) {
        failed |= ms_message_failed(&parts[i]);
    }
    if (rc == MS_OK && failed) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory to write %.200s", path);
    }
    rc = rc < 0 ? rc : write_file(&w, path, parts, PARTS, weights, &scratch, err);
    for (int i = 0; i < PARTS; i++) {
        ms_message_fini(&parts[i]);
    }
    ms_message_fini(&w.node);
    ms_message_fini(&scratch);
    if (rc == MS_OK) {
        *ret = (struct onnx_written){(size_t)graph_n_stored(graph), size};
    }
    return rc;
}
