/* weights.c - initial weights of a replica from a file of tensors or an ONNX model, checked name by
 * name
 *
 * The names of tensors are the network's, or torch's for its norms (weights_names.h). What
 * optimizers and counters left in the file is passed over. */
#include "libworker/data/weights_file.h"
#include "libworker/data/weights_names.h"
#include "libworker/onnx/onnx.h"
#include "libworker/train/replica.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void format_dims(const int64_t *dim, int n, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "(");
    for (int i = 0; i < n && used < size; i++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%" PRId64, i > 0 ? ", " : "", dim[i]);
    }
    if (used < size) {
        snprintf(buf + used, size - used, ")");
    }
}

static int check_shape(const char *path, const int64_t *dim, int n_dims,
                       const struct tensor *tensor, struct ms_err *err)
{
    char have[96];
    char want[96];
    if (n_dims == tensor->shape.n_dims &&
        memcmp(dim, tensor->shape.dim, (size_t)n_dims * sizeof(int64_t)) == 0) {
        return MS_OK;
    }
    format_dims(dim, n_dims, have, sizeof(have));
    format_dims(tensor->shape.dim, tensor->shape.n_dims, want, sizeof(want));
    return ms_fail(err, MS_E_INVALID, "%s: tensor %s has shape %s, the network wants %s", path,
                   tensor->name, have, want);
}

static int check_entry(const char *path, const struct safetensors_entry *entry,
                       const struct tensor *tensor, struct ms_err *err)
{
    int rc = check_shape(path, entry->dim, entry->n_dims, tensor, err);
    return rc < 0 || strcmp(entry->dtype, "F32") == 0
               ? rc
               : ms_fail(err, MS_E_INVALID,
                         "%s: tensor %s is %s, the network wants F32; convert it", path,
                         entry->name, entry->dtype);
}

/* Of the network, by its own name or torch's. */
static int is_known(const struct graph *graph, const char *name)
{
    char own[SAFETENSORS_NAME_MAX];
    return graph_find(graph, name) >= 0 ||
           graph_find(graph, weights_name_from_torch(name, own, sizeof(own))) >= 0 ||
           graph_find(graph, weights_name_to_torch(name, own, sizeof(own))) >= 0;
}

/* What an optimizer or a counter left there. */
static int is_passed_over(const struct weights_file *file, const struct graph *graph,
                          const struct safetensors_entry *entry)
{
    const char *of_slot = optimizer_slot_of(entry->name);
    return (of_slot != NULL && is_known(graph, of_slot)) || weights_file_is_aside(file, entry);
}

static int check_names(struct weights_file *file, const char *path, const struct graph *graph,
                       struct ms_err *err)
{
    for (size_t i = 0; i < weights_file_count(file); i++) {
        const struct safetensors_entry *entry = weights_file_at(file, i);
        if (!is_known(graph, entry->name) && !is_passed_over(file, graph, entry)) {
            return ms_fail(err, MS_E_INVALID,
                           "%s: tensor %s is not in the network %s; is it another network's file?",
                           path, entry->name, graph_name(graph));
        }
    }
    return 0;
}

/* What a file may be without: statistics begin anew. */
static int fail_missing(const char *path, const struct tensor *tensor, struct ms_err *err)
{
    return tensor->role == TENSOR_STATE
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "%s: parameter %s of the network is missing", path,
                         tensor->name);
}

/* By its own name, or by what others call it. Of a checkpoint with moving averages it is those that
 * were evaluated. */
static const struct safetensors_entry *find_entry(const struct weights_file *file, const char *name)
{
    char buf[SAFETENSORS_NAME_MAX];
    const struct safetensors_entry *entry = weights_file_find(file, name);
    if (entry == NULL) {
        entry = weights_file_find(file, weights_name_to_torch(name, buf, sizeof(buf)));
    }
    if (entry == NULL) {
        entry = weights_file_find(file, weights_name_from_torch(name, buf, sizeof(buf)));
    }
    return entry != NULL ? weights_file_source(file, entry) : NULL;
}

static const struct onnx_tensor *find_in_model(const struct onnx_file *file, const char *name)
{
    char buf[SAFETENSORS_NAME_MAX];
    const struct onnx_tensor *entry = onnx_find(file, name);
    entry = entry != NULL ? entry : onnx_find(file, weights_name_to_torch(name, buf, sizeof(buf)));
    return entry != NULL ? entry : onnx_find(file, weights_name_from_torch(name, buf, sizeof(buf)));
}

static int read_one(struct weights_file *file, const char *path, const struct tensor *tensor,
                    float *values, size_t count, int *ret_is_there, struct ms_err *err)
{
    const struct safetensors_entry *entry = find_entry(file, tensor->name);
    *ret_is_there = entry != NULL;
    if (entry == NULL) {
        return fail_missing(path, tensor, err);
    }
    int rc = check_entry(path, entry, tensor, err);
    return rc < 0 ? rc : weights_file_read(file, entry, values, count, err);
}

struct model_names {
    const char *path;
    const struct graph *graph;
};

static int check_parameter(void *arg, const struct onnx_tensor *tensor, struct ms_err *err)
{
    const struct model_names *names = arg;
    return is_known(names->graph, tensor->name)
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "%s: tensor %s is not in the network %s; is it another network's file?",
                         names->path, tensor->name, graph_name(names->graph));
}

/* A model may have what is no parameter of its layers (constants): it is left unread. */
static int read_one_onnx(const struct onnx_file *file, const char *path,
                         const struct tensor *tensor, float *values, size_t count,
                         int *ret_is_there, struct ms_err *err)
{
    const struct onnx_tensor *entry = find_in_model(file, tensor->name);
    *ret_is_there = entry != NULL;
    if (entry == NULL) {
        return fail_missing(path, tensor, err);
    }
    int rc = check_shape(path, entry->dim, entry->n_dims, tensor, err);
    return rc < 0 ? rc : onnx_read(file, entry, values, count, err);
}

/* One of the two files is NULL. */
static int load_one(struct replica *replica, struct weights_file *file,
                    const struct onnx_file *model, const char *path, int index, struct ms_err *err)
{
    const struct tensor *tensor = graph_tensor(replica_graph(replica), index);
    const size_t count = (size_t)shape_count(&tensor->shape);
    int is_there = 0;
    float *values = malloc(count * sizeof(*values));
    if (values == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to read %s of %s", tensor->name, path);
    }
    int rc = model != NULL ? read_one_onnx(model, path, tensor, values, count, &is_there, err)
                           : read_one(file, path, tensor, values, count, &is_there, err);
    rc = rc < 0 || !is_there ? rc : replica_set(replica, index, values, err);
    free(values);
    return rc;
}

int replica_load_weights(struct replica *replica, const char *path, struct ms_err *err)
{
    const struct graph *graph = replica_graph(replica);
    struct weights_file *file = NULL;
    struct onnx_file *model = NULL;
    int n = graph_n_stored(graph);
    int rc =
        onnx_is_path(path) ? onnx_open(path, &model, err) : weights_file_open(path, &file, err);
    if (rc == MS_OK && file != NULL) {
        rc = check_names(file, path, graph, err);
    }
    if (rc == MS_OK && model != NULL) {
        struct model_names names = {path, graph};
        rc = onnx_each_parameter(model, check_parameter, &names, err);
    }
    for (int i = 0; rc == MS_OK && i < n; i++) {
        rc = load_one(replica, file, model, path, graph_stored_at(graph, i), err);
    }
    weights_file_close(file);
    onnx_close(model);
    return rc;
}
