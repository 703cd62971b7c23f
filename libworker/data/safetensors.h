/* safetensors.h - named tensors in a file: https://github.com/huggingface/safetensors, README
 * "Format"
 *
 * Bytes 0-7: length N of the header, u64 little endian; N bytes of JSON, padded with spaces so that
 * data is aligned to 8; data, C order, little endian, without holes. We write F32 and read F32. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include "libworker/data/sum.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum { SAFETENSORS_DIMS_MAX = 8, SAFETENSORS_NAME_MAX = 256, SAFETENSORS_MAX = 100000 };
/* So many tensors of 160 bytes of JSON each; the format's own limit is 100 MB. */
#define SAFETENSORS_HEADER_MAX (UINT64_C(16) << 20)

struct safetensors_entry {
    char name[SAFETENSORS_NAME_MAX];
    int n_dims;
    int64_t dim[SAFETENSORS_DIMS_MAX];
    uint64_t begin, end; /* bytes in the data part */
    char dtype[12];      /* "F32" */
};

struct safetensors; /* an open file */

/* Opens and checks every rule of the format: safe for hostile input. Returns owned. */
int safetensors_open(const char *path, struct safetensors **ret, struct ms_err *err);
/* Likewise, a file of this program's own: the lists of path.h do not count. */
int safetensors_open_own(const char *path, struct safetensors **ret, struct ms_err *err);
void safetensors_close(struct safetensors *file); /* NULL allowed */
size_t safetensors_count(const struct safetensors *file);
const struct safetensors_entry *safetensors_at(const struct safetensors *file, size_t i);
const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name);
/* A text of its metadata; NULL: it has none of that name. */
const char *safetensors_meta(const struct safetensors *file, const char *key);
/* Where its bytes stand, all of them within the file: the descriptor is borrowed. */
int64_t safetensors_place(const struct safetensors *file, const struct safetensors_entry *entry,
                          int *ret_fd);
/* Reads an F32 tensor; count must be its elements. */
int safetensors_read(struct safetensors *file, const struct safetensors_entry *entry, float *dst,
                     size_t count, struct ms_err *err);

struct safetensors_writer;
/* Begins a file, without a name or with one for the moment (file_write.h). entries: names, dims
 * (dtype F32, offsets are computed), written sorted by name. metadata: n_meta pairs key, value;
 * NULL allowed. Returns owned. */
int safetensors_create(const char *path, const struct safetensors_entry *entries, size_t n,
                       const char *const *metadata, size_t n_meta, struct safetensors_writer **ret,
                       struct ms_err *err);
/* Data of an entry, by name, in any order, each once. */
int safetensors_put(struct safetensors_writer *writer, const char *name, const float *data,
                    size_t count, struct ms_err *err);
/* For who gives all tensors in the order of their names: room for the count elements of the next
 * one, borrowed until safetensors_put_next. The file then goes past the page cache where it can. */
int safetensors_next(struct safetensors_writer *writer, size_t count, float **ret,
                     struct ms_err *err);
int safetensors_put_next(struct safetensors_writer *writer, struct ms_err *err);
struct safetensors_sum { /* what is in the file */
    uint64_t size;       /* bytes */
    char hex[SUM_HEX];
};
/* Before safetensors_finish: a second descriptor of the file, by which its name is known to lead to
 * it still. Until it is closed, too, the file is locked (flock), as it is in the making. To close.
 * MS_E_NOMEM. */
int safetensors_hold(const struct safetensors_writer *writer, int *ret_fd, struct ms_err *err);
/* Before safetensors_finish, of a writer by safetensors_put that was given all: what takes long of
 * it is done here. MS_E_IO. */
int safetensors_sync(const struct safetensors_writer *writer, struct ms_err *err);
/* Synced before path leads to it: an incomplete file is never left there. Destroys the writer in
 * any case. ret: of a writer that was given all tensors by safetensors_next; else NULL. */
int safetensors_finish(struct safetensors_writer *writer, struct safetensors_sum *ret,
                       struct ms_err *err);
void safetensors_abandon(struct safetensors_writer *writer); /* NULL allowed */

#endif
