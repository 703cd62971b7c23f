/* safetensors_write.c - named tensors into a file that is whole or not there */
#include "libworker/data/json_text.h"
#include "libworker/data/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 8 };

struct safetensors_writer {
    char *path, *temporary;
    int fd;
    uint64_t data_start;
    size_t n, n_put;
    struct safetensors_entry *entries; /* sorted by name */
    uint8_t *is_put;
};

static int compare_name(const void *a, const void *b)
{
    return strcmp(((const struct safetensors_entry *)a)->name,
                  ((const struct safetensors_entry *)b)->name);
}

static int write_at(struct safetensors_writer *w, const void *src, size_t size, uint64_t offset,
                    struct ms_err *err)
{
    size_t done = 0;
    while (done < size) {
        ssize_t wrote =
            pwrite(w->fd, (const char *)src + done, size - done, (off_t)(offset + done));
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return ms_fail_errno(err, MS_E_IO, "%.200s cannot be written", w->temporary);
        }
        done += (size_t)wrote;
    }
    return MS_OK;
}

/* ---- the header ---- */

static int lay_out(struct safetensors_writer *w, const struct safetensors_entry *entries,
                   struct ms_err *err)
{
    memcpy(w->entries, entries, w->n * sizeof(*entries));
    if (w->n > 0) {
        qsort(w->entries, w->n, sizeof(w->entries[0]), compare_name);
    }
    uint64_t at = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct safetensors_entry *entry = &w->entries[i];
        uint64_t bytes = sizeof(float);
        assert(entry->n_dims >= 0 && entry->n_dims <= SAFETENSORS_DIMS_MAX);
        for (int d = 0; d < entry->n_dims; d++) {
            if (entry->dim[d] < 0 ||
                __builtin_mul_overflow(bytes, (uint64_t)entry->dim[d], &bytes)) {
                return ms_fail(err, MS_E_INVALID, "tensor %.80s: its shape cannot be written",
                               entry->name);
            }
        }
        if (entry->name[0] == '\0' || strcmp(entry->name, "__metadata__") == 0 ||
            (i > 0 && strcmp(entry->name, w->entries[i - 1].name) == 0)) {
            return ms_fail(err, MS_E_INVALID,
                           "tensor '%.80s': a name must be there, be unique and "
                           "not __metadata__",
                           entry->name);
        }
        snprintf(entry->dtype, sizeof(entry->dtype), "F32");
        entry->begin = at;
        if (__builtin_add_overflow(at, bytes, &at)) {
            return ms_fail(err, MS_E_INVALID, "tensor %.80s: the file would be too large",
                           entry->name);
        }
        entry->end = at;
    }
    return MS_OK;
}

/* NULL without memory. */
static json_t *describe(const struct safetensors_entry *entry)
{
    json_t *shape = json_array();
    for (int d = 0; d < entry->n_dims; d++) {
        if (json_array_append_new(shape, json_integer(entry->dim[d])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", entry->dtype, "shape", shape, "data_offsets",
                     (json_int_t)entry->begin, (json_int_t)entry->end);
}

/* Returns owned (malloc) or NULL: 8 bytes of length, JSON, spaces. */
static char *format_header(const struct safetensors_writer *w, const char *const *metadata,
                           size_t n_meta, size_t *ret_size)
{
    json_t *root = json_object();
    json_t *meta = json_object();
    int is_complete = 1;
    for (size_t i = 0; i < n_meta; i++) {
        is_complete &=
            json_object_set_new(meta, metadata[2 * i], json_string(metadata[2 * i + 1])) == 0;
    }
    if (n_meta > 0) {
        is_complete &= json_object_set(root, "__metadata__", meta) == 0;
    }
    for (size_t i = 0; i < w->n; i++) {
        is_complete &= json_object_set_new(root, w->entries[i].name, describe(&w->entries[i])) == 0;
    }
    size_t length = 0;
    char *json = is_complete ? json_text(root, JSON_COMPACT, &length) : NULL;
    json_decref(meta);
    json_decref(root);
    uint64_t padded = (length + ALIGN - 1) / ALIGN * ALIGN;
    char *header = json != NULL ? malloc(sizeof(padded) + padded) : NULL;
    if (header != NULL) {
        memcpy(header, &padded, sizeof(padded));
        memcpy(header + sizeof(padded), json, length);
        memset(header + sizeof(padded) + length, ' ', padded - length);
        *ret_size = sizeof(padded) + padded;
    }
    free(json);
    return header;
}

static int write_header(struct safetensors_writer *w, const char *const *metadata, size_t n_meta,
                        struct ms_err *err)
{
    size_t size = 0;
    char *header = format_header(w, metadata, n_meta, &size);
    if (header == NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "%.200s: a tensor's name or the metadata are no UTF-8, or memory is short",
                       w->path);
    }
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc = w->fd >= 0 ? write_at(w, header, size, 0, err)
                        : ms_fail_errno(err, MS_E_IO, "%.200s cannot be written", w->temporary);
    w->data_start = size;
    free(header);
    return rc;
}

/* ---- the writer ---- */

int safetensors_create(const char *path, const struct safetensors_entry *entries, size_t n,
                       const char *const *metadata, size_t n_meta, struct safetensors_writer **ret,
                       struct ms_err *err)
{
    if (n > SAFETENSORS_MAX) {
        return ms_fail(err, MS_E_FULL, "%.160s: %zu tensors; at most %d", path, n, SAFETENSORS_MAX);
    }
    struct safetensors_writer *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to write it", path);
    }
    int rc = MS_OK;
    size_t size = strlen(path) + sizeof(".part");
    w->fd = -1;
    w->n = n;
    w->path = strdup(path);
    w->temporary = malloc(size);
    w->entries = calloc(n + 1, sizeof(*w->entries));
    w->is_put = calloc(n + 1, sizeof(*w->is_put));
    if (w->path == NULL || w->temporary == NULL || w->entries == NULL || w->is_put == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "%.200s: no memory to write it", path);
    } else {
        snprintf(w->temporary, size, "%s.part", path);
        rc = lay_out(w, entries, err);
    }
    if (rc == MS_OK) {
        rc = write_header(w, metadata, n_meta, err);
    }
    if (rc < 0) {
        safetensors_abandon(w);
        return rc;
    }
    *ret = w;
    return MS_OK;
}

static int compare_key(const void *name, const void *entry)
{
    return strcmp(name, ((const struct safetensors_entry *)entry)->name);
}

int safetensors_put(struct safetensors_writer *writer, const char *name, const float *data,
                    size_t count, struct ms_err *err)
{
    const struct safetensors_entry *entry =
        bsearch(name, writer->entries, writer->n, sizeof(*entry), compare_key);
    size_t i = entry != NULL ? (size_t)(entry - writer->entries) : 0;
    if (entry == NULL || writer->is_put[i]) {
        return ms_fail(err, MS_E_INVALID, "%.160s: tensor %.80s %s", writer->path, name,
                       entry == NULL ? "was not announced" : "is written already");
    }
    if ((entry->end - entry->begin) / sizeof(float) != count) {
        return ms_fail(err, MS_E_INVALID, "%.160s: tensor %.80s has %llu elements, not %zu",
                       writer->path, name,
                       (unsigned long long)((entry->end - entry->begin) / sizeof(float)), count);
    }
    int rc = write_at(writer, data, count * sizeof(float), writer->data_start + entry->begin, err);
    if (rc == MS_OK) {
        writer->is_put[i] = 1;
        writer->n_put++;
    }
    return rc;
}

/* A rename is durable when its folder is. */
static int sync_folder(const char *path, struct ms_err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? strdup(".")
                   : slash == path ? strdup("/")
                                   : strndup(path, (size_t)(slash - path));
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int rc = MS_OK;
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) { /* EINVAL: a file system without it */
        rc = ms_fail_errno(err, MS_E_IO, "the folder of %.200s cannot be synced", path);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(folder);
    return rc;
}

static int close_and_rename(struct safetensors_writer *w, struct ms_err *err)
{
    int fd = w->fd;
    w->fd = -1; /* gone after close, whatever close says */
    int is_synced = fsync(fd) == 0;
    if (close(fd) != 0 || !is_synced) {
        return ms_fail_errno(err, MS_E_IO, "%.200s cannot be written", w->temporary);
    }
    if (rename(w->temporary, w->path) != 0) {
        return ms_fail_errno(err, MS_E_IO, "%.200s cannot take its name", w->path);
    }
    free(w->temporary); /* nothing is left to remove */
    w->temporary = NULL;
    return sync_folder(w->path, err);
}

int safetensors_finish(struct safetensors_writer *writer, struct ms_err *err)
{
    int rc = writer->n_put == writer->n
                 ? close_and_rename(writer, err)
                 : ms_fail(err, MS_E_INVALID, "%.200s: %zu of %zu tensors were not written",
                           writer->path, writer->n - writer->n_put, writer->n);
    safetensors_abandon(writer);
    return rc;
}

void safetensors_abandon(struct safetensors_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->fd >= 0) {
        close(writer->fd);
    }
    if (writer->temporary != NULL) {
        unlink(writer->temporary);
    }
    free(writer->path);
    free(writer->temporary);
    free(writer->entries);
    free(writer->is_put);
    free(writer);
}
