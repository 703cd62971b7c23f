/* safetensors_write.c - named tensors into a file that is whole or not there */
#include "libworker/data/json_text.h"
#include "libworker/data/safetensors.h"
#include "libworker/data/straight.h"
#include "proto/file_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 8 };

struct safetensors_writer {
    char *path;
    struct ms_file_new file;
    int is_open;
    char *header;              /* NULL: it is written */
    struct straight *straight; /* of who gives them in their order */
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
            pwrite(w->file.fd, (const char *)src + done, size - done, (off_t)(offset + done));
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return ms_fail_errno(err, MS_E_IO, "%.200s cannot be written", w->path);
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

static int begin_file(struct safetensors_writer *w, const char *const *metadata, size_t n_meta,
                      struct ms_err *err)
{
    size_t size = 0;
    w->header = format_header(w, metadata, n_meta, &size);
    if (w->header == NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "%.200s: a tensor's name or the metadata are no UTF-8, or memory is short",
                       w->path);
    }
    int rc = ms_file_begin(w->path, 0666, &w->file, err);
    w->is_open = rc == MS_OK;
    w->data_start = size;
    return rc;
}

/* Once it is known in which way the data come. */
static int write_header(struct safetensors_writer *w, struct ms_err *err)
{
    int rc = w->header != NULL ? write_at(w, w->header, w->data_start, 0, err) : MS_OK;
    free(w->header);
    w->header = NULL;
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
    w->n = n;
    w->path = strdup(path);
    w->entries = calloc(n + 1, sizeof(*w->entries));
    w->is_put = calloc(n + 1, sizeof(*w->is_put));
    if (w->path == NULL || w->entries == NULL || w->is_put == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "%.200s: no memory to write it", path);
    } else {
        rc = lay_out(w, entries, err);
    }
    if (rc == MS_OK) {
        rc = begin_file(w, metadata, n_meta, err);
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
    assert(writer->straight == NULL);
    int rc = write_header(writer, err);
    rc = rc < 0 ? rc
                : write_at(writer, data, count * sizeof(float), writer->data_start + entry->begin,
                           err);
    if (rc == MS_OK) {
        writer->is_put[i] = 1;
        writer->n_put++;
    }
    return rc;
}

/* ---- in their order ---- */

static uint64_t data_size(const struct safetensors_writer *w)
{
    return w->n > 0 ? w->entries[w->n - 1].end : 0;
}

static uint64_t bytes_of(const struct safetensors_entry *entry)
{
    return entry->end - entry->begin;
}

static int begin_straight(struct safetensors_writer *w, struct ms_err *err)
{
    uint64_t largest = w->data_start;
    for (size_t i = 0; i < w->n; i++) {
        largest = bytes_of(&w->entries[i]) > largest ? bytes_of(&w->entries[i]) : largest;
    }
    assert(w->header != NULL); /* nothing was put */
    int rc = straight_create(w->file.fd, w->path, (size_t)largest, w->data_start + data_size(w),
                             &w->straight, err);
    if (rc < 0) {
        return rc;
    }
    memcpy(straight_room(w->straight), w->header, w->data_start);
    free(w->header);
    w->header = NULL;
    return straight_add(w->straight, w->data_start, err);
}

int safetensors_next(struct safetensors_writer *writer, size_t count, float **ret,
                     struct ms_err *err)
{
    int rc = writer->straight == NULL ? begin_straight(writer, err) : MS_OK;
    if (rc < 0) {
        return rc;
    }
    if (writer->n_put == writer->n ||
        bytes_of(&writer->entries[writer->n_put]) != count * sizeof(float)) {
        return ms_fail(err, MS_E_INVALID, "%.160s: its tensor %zu does not have %zu elements",
                       writer->path, writer->n_put, count);
    }
    *ret = straight_room(writer->straight);
    return MS_OK;
}

int safetensors_put_next(struct safetensors_writer *writer, struct ms_err *err)
{
    const size_t i = writer->n_put++;
    writer->is_put[i] = 1;
    return straight_add(writer->straight, (size_t)bytes_of(&writer->entries[i]), err);
}

/* ---- the end ---- */

/* A name is durable when its folder is. */
static int give_name(struct safetensors_writer *w, struct ms_err *err)
{
    int rc = w->straight != NULL ? straight_end(w->straight, err) : write_header(w, err);
    if (rc < 0) {
        return rc;
    }
    w->is_open = 0;
    rc = ms_file_end(&w->file, 0, err);
    return rc < 0 ? rc : ms_folder_sync(w->path, err);
}

int safetensors_hold(const struct safetensors_writer *writer, int *ret_fd, struct ms_err *err)
{
    assert(writer->is_open);
    const int fd = fcntl(writer->file.fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_NOMEM, "%.200s cannot be held open", writer->path);
    }
    *ret_fd = fd;
    return MS_OK;
}

int safetensors_sync(const struct safetensors_writer *writer, struct ms_err *err)
{
    assert(writer->is_open && writer->straight == NULL);
    return fsync(writer->file.fd) == 0
               ? MS_OK
               : ms_fail_errno(err, MS_E_IO, "cannot write %s", writer->path);
}

int safetensors_finish(struct safetensors_writer *writer, struct safetensors_sum *ret,
                       struct ms_err *err)
{
    int rc = writer->n_put == writer->n
                 ? give_name(writer, err)
                 : ms_fail(err, MS_E_INVALID, "%.200s: %zu of %zu tensors were not written",
                           writer->path, writer->n - writer->n_put, writer->n);
    if (rc == MS_OK && ret != NULL) {
        assert(straight_size(writer->straight) == writer->data_start + data_size(writer));
        ret->size = straight_size(writer->straight);
        straight_sum(writer->straight, ret->hex);
    }
    safetensors_abandon(writer);
    return rc;
}

void safetensors_abandon(struct safetensors_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->is_open) {
        ms_file_drop(&writer->file);
    }
    straight_destroy(writer->straight);
    free(writer->header);
    free(writer->path);
    free(writer->entries);
    free(writer->is_put);
    free(writer);
}
