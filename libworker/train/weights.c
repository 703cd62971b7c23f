/* weights.c - initial weights of a replica from a safetensors file, checked name by name */
#include "libworker/data/safetensors.h"
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

static int check_entry(const char *path, const struct safetensors_entry *entry,
                       const struct tensor *tensor, struct ms_err *err)
{
    int same = entry->n_dims == tensor->shape.n_dims &&
               memcmp(entry->dim, tensor->shape.dim, (size_t)entry->n_dims * sizeof(int64_t)) == 0;
    if (!same) {
        char have[96];
        char want[96];
        format_dims(entry->dim, entry->n_dims, have, sizeof(have));
        format_dims(tensor->shape.dim, tensor->shape.n_dims, want, sizeof(want));
        return ms_fail(err, MS_E_INVALID, "%s: tensor %s has shape %s, the network wants %s", path,
                       entry->name, have, want);
    }
    if (strcmp(entry->dtype, "F32") != 0) {
        return ms_fail(err, MS_E_INVALID, "%s: tensor %s is %s, the network wants F32; convert it",
                       path, entry->name, entry->dtype);
    }
    return 0;
}

static int check_names(struct safetensors *file, const char *path, const struct graph *graph,
                       struct ms_err *err)
{
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_at(file, i)->name;
        const char *of_slot = optimizer_slot_of(name); /* of a checkpoint: left unread */
        if (graph_find(graph, name) < 0 && (of_slot == NULL || graph_find(graph, of_slot) < 0)) {
            return ms_fail(err, MS_E_INVALID,
                           "%s: tensor %s is not in the network %s; is it another network's file?",
                           path, name, graph_name(graph));
        }
    }
    return 0;
}

static int load_one(struct replica *replica, struct safetensors *file, const char *path, int index,
                    struct ms_err *err)
{
    const struct tensor *tensor = graph_tensor(replica_graph(replica), index);
    const struct safetensors_entry *entry = safetensors_find(file, tensor->name);
    if (entry == NULL) {
        return tensor->role == TENSOR_STATE
                   ? 0
                   : ms_fail(err, MS_E_INVALID, "%s: parameter %s of the network is missing", path,
                             tensor->name);
    }
    int rc = check_entry(path, entry, tensor, err);
    if (rc < 0) {
        return rc;
    }
    size_t count = (size_t)shape_count(&tensor->shape);
    float *values = malloc(count * sizeof(*values));
    if (values == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to read %s of %s", entry->name, path);
    }
    rc = safetensors_read(file, entry, values, count, err);
    if (rc == 0) {
        rc = replica_set(replica, index, values, err);
    }
    free(values);
    return rc;
}

int replica_load_weights(struct replica *replica, const char *path, struct ms_err *err)
{
    const struct graph *graph = replica_graph(replica);
    struct safetensors *file = NULL;
    int n = graph_n_stored(graph);
    int rc = safetensors_open(path, &file, err);
    if (rc == 0) {
        rc = check_names(file, path, graph, err);
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        int index = graph_stored_at(graph, i);
        rc = load_one(replica, file, path, index, err);
    }
    safetensors_close(file);
    return rc;
}
