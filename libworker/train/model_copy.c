/* model_copy.c - parameters and moving statistics outside of a replica: plain arrays in name order
 */
#include "libworker/train/model_copy.h"

#include "proto/file_write.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b, void *graph)
{
    return strcmp(graph_tensor(graph, *(const int *)a)->name,
                  graph_tensor(graph, *(const int *)b)->name);
}

/* Graph indices of parameters and states, sorted by name; owned by the caller. */
static int *sorted_tensors(const struct graph *graph, int n)
{
    int *index = malloc((size_t)(n > 0 ? n : 1) * sizeof(*index));
    if (index == NULL) {
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        index[i] = graph_stored_at(graph, i);
    }
    union {
        const struct graph *in;
        void *out;
    } arg = {.in = graph}; /* qsort_r takes no pointer to const */
    qsort_r(index, (size_t)n, sizeof(*index), by_name, arg.out);
    return index;
}

static int copy_one(struct model_copy *copy, size_t i, struct replica *replica, int tensor_index,
                    struct ms_err *err)
{
    const struct tensor *tensor = graph_tensor(replica_graph(replica), tensor_index);
    struct safetensors_entry *entry = &copy->entries[i];
    snprintf(entry->name, sizeof(entry->name), "%s", tensor->name);
    snprintf(entry->dtype, sizeof(entry->dtype), "F32");
    entry->n_dims = tensor->shape.n_dims;
    memcpy(entry->dim, tensor->shape.dim, (size_t)tensor->shape.n_dims * sizeof(int64_t));
    copy->counts[i] = (size_t)shape_count(&tensor->shape);
    copy->values[i] = malloc(copy->counts[i] * sizeof(**copy->values));
    if (copy->values[i] == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a copy of %s", tensor->name);
    }
    return replica_get(replica, tensor_index, copy->values[i], err);
}

static int digest(struct model_copy *copy, struct ms_err *err)
{
    struct ms_sha256 *sha = ms_sha256_create();
    if (sha == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the digest of the weights");
    }
    for (size_t i = 0; i < copy->n; i++) {
        ms_sha256_add(sha, copy->values[i], copy->counts[i] * sizeof(**copy->values));
    }
    uint8_t bytes[MS_SHA256_BYTES];
    ms_sha256_finish(sha, bytes);
    ms_sha256_hex(bytes, copy->sha256);
    return 0;
}

int model_copy_make(struct replica *replica, uint64_t steps, struct model_copy **ret,
                    struct ms_err *err)
{
    const struct graph *graph = replica_graph(replica);
    int n = graph_n_stored(graph);
    int *index = sorted_tensors(graph, n);
    struct model_copy *copy = calloc(1, sizeof(*copy));
    int rc = 0;
    if (copy != NULL) {
        copy->entries = calloc((size_t)n, sizeof(*copy->entries));
        copy->counts = calloc((size_t)n, sizeof(*copy->counts));
        copy->values = calloc((size_t)n, sizeof(*copy->values));
    }
    if (index == NULL || copy == NULL || copy->entries == NULL || copy->counts == NULL ||
        copy->values == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for a copy of %d tensors", n);
    } else {
        copy->n = (size_t)n;
        copy->steps = steps;
        snprintf(copy->network, sizeof(copy->network), "%s", graph_name(graph));
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        rc = copy_one(copy, (size_t)i, replica, index[i], err);
    }
    if (rc == 0) {
        rc = digest(copy, err);
    }
    free(index);
    if (rc < 0) {
        model_copy_destroy(copy);
        return rc;
    }
    *ret = copy;
    return 0;
}

uint64_t model_copy_bytes(const struct graph *graph)
{
    uint64_t count = 0;
    for (int i = 0; i < graph_n_stored(graph); i++) {
        count += (uint64_t)shape_count(&graph_tensor(graph, graph_stored_at(graph, i))->shape);
    }
    return count * ms_dtype_bytes(MS_F32);
}

void model_copy_destroy(struct model_copy *copy)
{
    if (copy == NULL) {
        return;
    }
    for (size_t i = 0; i < copy->n; i++) {
        free(copy->values[i]);
    }
    free(copy->values);
    free(copy->counts);
    free(copy->entries);
    free(copy);
}

int model_copy_find(const struct model_copy *copy, const char *name)
{
    for (size_t i = 0; i < copy->n; i++) {
        if (strcmp(copy->entries[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int model_copy_save(const struct model_copy *copy, const char *path, struct ms_err *err)
{
    return model_copy_save_with(copy, path, NULL, 0, err);
}

int model_copy_begin(const struct model_copy *copy, const char *path, const char *const *more,
                     size_t n_more, struct safetensors_writer **ret, struct ms_err *err)
{
    enum { OWN = 3, MORE_MAX = 4 };
    struct safetensors_writer *writer = NULL;
    char steps[24];
    snprintf(steps, sizeof(steps), "%" PRIu64, copy->steps);
    const char *meta[2 * (OWN + MORE_MAX)] = {"format",      MODEL_COPY_FORMAT, "network",
                                              copy->network, "steps",           steps};
    assert(n_more <= MORE_MAX);
    for (size_t i = 0; i < 2 * n_more; i++) {
        meta[2 * OWN + i] = more[i];
    }
    int rc = safetensors_create(path, copy->entries, copy->n, meta, OWN + n_more, &writer, err);
    for (size_t i = 0; rc == 0 && i < copy->n; i++) {
        rc = safetensors_put(writer, copy->entries[i].name, copy->values[i], copy->counts[i], err);
    }
    if (rc < 0) {
        safetensors_abandon(writer);
        return rc;
    }
    *ret = writer;
    return 0;
}

int model_copy_save_with(const struct model_copy *copy, const char *path, const char *const *more,
                         size_t n_more, struct ms_err *err)
{
    struct safetensors_writer *writer = NULL;
    int rc = model_copy_begin(copy, path, more, n_more, &writer, err);
    return rc < 0 ? rc : safetensors_finish(writer, NULL, err);
}

static int is_same(struct safetensors *file, const struct model_copy *copy, size_t i, float *room)
{
    const struct safetensors_entry *entry = safetensors_find(file, copy->entries[i].name);
    const uint64_t bytes = ms_dtype_size(MS_F32, copy->counts[i]);
    return entry != NULL && entry->end - entry->begin == bytes &&
           safetensors_read(file, entry, room, copy->counts[i], NULL) == 0 &&
           memcmp(room, copy->values[i], bytes) == 0;
}

int model_copy_is_at(const struct model_copy *copy, const char *path)
{
    struct safetensors *file = NULL;
    size_t most = 1;
    for (size_t i = 0; i < copy->n; i++) {
        most = copy->counts[i] > most ? copy->counts[i] : most;
    }
    float *room = malloc(most * sizeof(*room));
    int is = room != NULL && safetensors_open_own(path, &file, NULL) == 0 &&
             safetensors_count(file) == copy->n;
    for (size_t i = 0; is && i < copy->n; i++) {
        is = is_same(file, copy, i, room);
    }
    safetensors_close(file);
    free(room);
    return is;
}

int model_copy_is_kept(const struct model_copy *copy, const char *path)
{
    return model_copy_is_at(copy, path) && ms_file_sync(path, NULL) == MS_OK;
}
