/* weights_walk.c - the values of a file of weights in the order of their names */
#include "libworker/data/data.h"
#include "libworker/data/safetensors.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    const struct safetensors_entry *x = *(const struct safetensors_entry *const *)a;
    const struct safetensors_entry *y = *(const struct safetensors_entry *const *)b;
    return strcmp(x->name, y->name);
}

static int walk_tensor(struct safetensors *file, const struct safetensors_entry *entry,
                       void (*take)(void *arg, const void *bytes, size_t size), void *arg,
                       struct ms_err *err)
{
    size_t size = (size_t)(entry->end - entry->begin);
    float *values = (float *)malloc(size > 0 ? size : 1);
    int rc = values != NULL ? safetensors_read(file, entry, values, size / sizeof(float), err)
                            : ms_fail(err, MS_E_NOMEM, "no memory for the tensor %s", entry->name);
    if (rc == MS_OK) {
        take(arg, values, size);
    }
    free(values);
    return rc;
}

int data_walk_weights(const char *path, void (*take)(void *arg, const void *bytes, size_t size),
                      void *arg, struct ms_err *err)
{
    struct safetensors *file = NULL;
    int rc = safetensors_open(path, &file, err);
    if (rc != MS_OK) {
        return rc;
    }
    size_t n = safetensors_count(file);
    const struct safetensors_entry **order =
        (const struct safetensors_entry **)calloc(n + 1, sizeof(*order));
    if (order == NULL) {
        safetensors_close(file);
        return ms_fail(err, MS_E_NOMEM, "no memory for the tensors of %s", path);
    }
    for (size_t i = 0; i < n; i++) {
        order[i] = safetensors_at(file, i);
    }
    if (n > 0) {
        qsort((void *)order, n, sizeof(*order), by_name);
    }
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        rc = walk_tensor(file, order[i], take, arg, err);
    }
    free((void *)order);
    safetensors_close(file);
    return rc;
}
