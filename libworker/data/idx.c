/* idx.c - one IDX file of unsigned bytes (MNIST's format), plain or gzip, read from the front */
#include "libworker/data/idx.h"

#include "libworker/data/host_copy.h"
#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "libworker/data/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* 60,000 images of 28 x 28 are 47 MB; EMNIST's 814,255 are 638 MB. */
#define IDX_BYTES_MAX (INT64_C(4) << 30)

/* Below, a copy is not worth its thread. */
#define COPY_BYTES_MIN (INT64_C(1) << 20)
/* Who cannot share what is unpacked has it for himself. Of a plain file the page cache holds a copy
 * already, and a record costs half a microsecond: that is worth MNIST's 47 MB, not EMNIST's 638. */
#define COPY_PACKED_MAX (INT64_C(1) << 30)
#define COPY_PLAIN_MAX  (INT64_C(64) << 20)

struct idx {
    char *path;
    int fd;
    gzFile gz; /* NULL: plain, fd */
    int n_dims;
    int64_t dim[IDX_DIMS_MAX];
    int64_t header, data; /* bytes */
    int64_t record;       /* bytes of one */
    struct host_copy *copy;
    int has_tried; /* to have a copy */
    uint8_t
        *inflated; /* gzip without one: data, filled up to done; pages are touched as they come */
    int64_t done;
};

/* ---- what a wrong file looks like ---- */

static const struct {
    uint8_t bytes[4];
    size_t n;
    const char *what;
} looks[] = {
    {{0, 0, 8, 1}, 4, "an IDX file of labels"},
    {{0, 0, 8, 3}, 4, "an IDX file of images"},
    {{0, 0, 8}, 3, "an IDX file with another number of dimensions"},
    {{0, 0, 9}, 3, "an IDX file of signed bytes"},
    {{0, 0, 11}, 3, "an IDX file of 16-bit integers"},
    {{0, 0, 12}, 3, "an IDX file of 32-bit integers"},
    {{0, 0, 13}, 3, "an IDX file of floats"},
    {{0, 0, 14}, 3, "an IDX file of doubles"},
    {{0, 0, 0, 0}, 4, "zero bytes, an interrupted download"},
    {{0x1F, 0x8B}, 2, "gzip inside gzip"},
    {{'P', 'K', 3, 4}, 4, "a zip archive"},
    {{0x89, 'P', 'N', 'G'}, 4, "a PNG image"},
    {{0xFF, 0xD8, 0xFF}, 3, "a JPEG image"},
    {{'B', 'Z', 'h'}, 3, "a bzip2 file"},
    {{0xFD, '7', 'z', 'X'}, 4, "an xz file"},
    {{0x93, 'N', 'U', 'M'}, 4, "a NumPy array"},
    {{'<'}, 1, "a web page"},
    {{0x80}, 1, "a Python pickle"},
};

static int fail_magic(const struct idx *idx, const uint8_t magic[4], int n_dims, struct ms_err *err)
{
    const char *what = "something else";
    for (size_t i = 0; i < MS_ARRAY_SIZE(looks); i++) {
        if (memcmp(looks[i].bytes, magic, looks[i].n) == 0) {
            what = looks[i].what;
            break;
        }
    }
    return ms_fail(err, MS_E_INVALID,
                   "%.160s is no MNIST %s file: its first four bytes should be %d and are not "
                   "(%s); get the file again",
                   idx->path, n_dims == 1 ? "label" : "image", 0x800 + n_dims, what);
}

/* ---- gzip ---- */

static int fail_gz(const struct idx *idx, int64_t at, struct ms_err *err)
{
    int code = Z_OK;
    const char *text = gzerror(idx->gz, &code);
    const char *colon = strstr(text, ": "); /* behind zlib's name of the file */
    text = colon != NULL ? colon + 2 : text;
    if (code == Z_ERRNO) {
        return ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", idx->path);
    }
    return ms_fail(err, MS_E_INVALID,
                   "%.160s is truncated or damaged: unpacking stops near byte %lld%s%.60s; get the "
                   "file again",
                   idx->path, (long long)at, code != Z_OK && *text != '\0' ? ": " : "",
                   code != Z_OK ? text : "");
}

/* Inflates exactly size bytes. */
static int gz_read(const struct idx *idx, void *dst, int64_t size, int64_t at, struct ms_err *err)
{
    int64_t done = 0;
    while (done < size) {
        int64_t want = size - done < 1 << 20 ? size - done : 1 << 20;
        int got = gzread(idx->gz, (char *)dst + done, (unsigned)want);
        if (got <= 0) {
            return fail_gz(idx, at + done, err);
        }
        done += got;
    }
    return MS_OK;
}

/* The last four bytes of a gzip file are its unpacked size: tells a truncated download at once. */
static int check_gz_size(const struct idx *idx, int64_t file_size, struct ms_err *err)
{
    uint8_t tail[4];
    int rc = file_size < 18
                 ? MS_E_INVALID
                 : source_pread(idx->fd, tail, sizeof(tail), file_size - 4, idx->path, err);
    if (rc == MS_E_IO) {
        return rc;
    }
    uint32_t size = (uint32_t)tail[3] << 24 | (uint32_t)tail[2] << 16 | (uint32_t)tail[1] << 8 |
                    (uint32_t)tail[0];
    if (rc < 0 || size != (uint32_t)(idx->header + idx->data)) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.160s is truncated or damaged: its %lld bytes do not end as a gzip file of "
            "%lld unpacked bytes does; get the file again",
            idx->path, (long long)file_size, (long long)(idx->header + idx->data));
    }
    return MS_OK;
}

static int open_gz(struct idx *idx, struct ms_err *err)
{
    int fd = fcntl(idx->fd, F_DUPFD_CLOEXEC, 0); /* gzclose closes it; idx->fd stays ours */
    idx->gz = fd >= 0 ? gzdopen(fd, "rb") : NULL;
    if (idx->gz == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory or descriptor to unpack it", idx->path);
    }
    return MS_OK;
}

/* ---- the file ---- */

void idx_close(struct idx *idx)
{
    if (idx == NULL) {
        return;
    }
    host_copy_close(idx->copy);
    if (idx->gz != NULL) {
        gzclose(idx->gz);
    }
    if (idx->fd >= 0) {
        close(idx->fd);
    }
    free(idx->inflated);
    free(idx->path);
    free(idx);
}

static int read_front(struct idx *idx, uint8_t *dst, size_t size, int64_t at, struct ms_err *err)
{
    return idx->gz != NULL ? gz_read(idx, dst, (int64_t)size, at, err)
                           : source_pread(idx->fd, dst, size, at, idx->path, err);
}

static int read_header(struct idx *idx, int n_dims, int64_t file_size, struct ms_err *err)
{
    uint8_t bytes[4 + 4 * IDX_DIMS_MAX];
    size_t size = 4 + 4 * (size_t)n_dims;
    if (idx->gz == NULL && file_size < (int64_t)size) {
        return ms_fail(err, MS_E_INVALID,
                       "%.200s has %lld bytes, less than an IDX header; get the file again",
                       idx->path, (long long)file_size);
    }
    int rc = read_front(idx, bytes, 4, 0, err);
    if (rc < 0) {
        return rc;
    }
    if (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != n_dims) {
        return fail_magic(idx, bytes, n_dims, err);
    }
    rc = read_front(idx, bytes + 4, size - 4, 4, err);
    if (rc < 0) {
        return rc;
    }
    idx->header = (int64_t)size;
    idx->data = 1;
    for (int i = 0; i < n_dims; i++) {
        const uint8_t *at = bytes + 4 + 4 * i;
        idx->dim[i] = (int64_t)at[0] << 24 | (int64_t)at[1] << 16 | (int64_t)at[2] << 8 | at[3];
        if (idx->dim[i] == 0 || idx->dim[i] > IDX_BYTES_MAX / idx->data) {
            return ms_fail(err, MS_E_INVALID,
                           "%.200s: dimension %d is %s in its header: the file is damaged; get it "
                           "again",
                           idx->path, i, idx->dim[i] == 0 ? "0" : "too large");
        }
        idx->data *= idx->dim[i];
    }
    idx->record = idx->data / idx->dim[0];
    return MS_OK;
}

/* Magic decides about gzip, not the name. */
static int read_start(struct idx *idx, int n_dims, struct ms_err *err)
{
    struct stat st;
    uint8_t two[2] = {0, 0};
    if (fstat(idx->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return ms_fail(err, MS_E_INVALID, "%.200s is no regular file", idx->path);
    }
    int rc = st.st_size < 2 ? MS_OK : source_pread(idx->fd, two, sizeof(two), 0, idx->path, err);
    if (rc == MS_OK && two[0] == 0x1F && two[1] == 0x8B) {
        rc = open_gz(idx, err);
    }
    if (rc == MS_OK) {
        rc = read_header(idx, n_dims, st.st_size, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (idx->gz != NULL) {
        return check_gz_size(idx, st.st_size, err);
    }
    if (st.st_size != idx->header + idx->data) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.160s has %lld bytes where its header promises %lld: it is %s; get the file "
            "again",
            idx->path, (long long)st.st_size, (long long)(idx->header + idx->data),
            st.st_size < idx->header + idx->data ? "truncated" : "longer than it should be");
    }
    return MS_OK;
}

int idx_open(const char *path, int n_dims, struct idx **ret, struct ms_err *err)
{
    struct idx *idx = calloc(1, sizeof(*idx));
    if (idx == NULL || (idx->path = strdup(path)) == NULL) {
        free(idx);
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to open it", path);
    }
    idx->n_dims = n_dims;
    idx->fd = -1;
    int rc = data_file_open(path, &idx->fd, err);
    if (rc == MS_OK) {
        rc = read_start(idx, n_dims, err);
    }
    if (rc < 0) {
        idx_close(idx);
        return rc;
    }
    *ret = idx;
    return MS_OK;
}

int64_t idx_dim(const struct idx *idx, int i)
{
    return idx->dim[i];
}

const char *idx_path(const struct idx *idx)
{
    return idx->path;
}

/* Inflates up to byte `need` of the data, in pieces worth the call. */
static int inflate_to(struct idx *idx, int64_t need, struct ms_err *err)
{
    if (idx->inflated == NULL) {
        idx->inflated = malloc((size_t)idx->data);
        if (idx->inflated == NULL) {
            return ms_fail(err, MS_E_NOMEM,
                           "%.200s: no memory for its %lld unpacked bytes; unpack it with gunzip, "
                           "plain files need none",
                           idx->path, (long long)idx->data);
        }
    }
    int64_t end = need + (64 << 10) < idx->data ? need + (64 << 10) : idx->data;
    int rc = gz_read(idx, idx->inflated + idx->done, end - idx->done, idx->done, err);
    if (rc < 0) {
        return rc;
    }
    uint8_t more = 0;
    if (end == idx->data && gzread(idx->gz, &more, 1) != 0) { /* also checks the CRC at the end */
        return fail_gz(idx, end, err);
    }
    idx->done = end;
    return MS_OK;
}

int64_t idx_copied(const struct idx *idx)
{
    const int64_t max = idx->gz != NULL ? COPY_PACKED_MAX : COPY_PLAIN_MAX;
    return idx->data >= COPY_BYTES_MIN && idx->data <= max ? idx->data : 0;
}

static struct host_copy_file file_of(const struct idx *idx)
{
    return (struct host_copy_file){
        .fd = idx->fd, .is_packed = idx->gz != NULL, .skip = idx->header, .bytes = idx->data};
}

int64_t idx_in_memory(const struct idx *idx)
{
    const struct host_copy_file file = file_of(idx);
    return idx_copied(idx) > 0 ? host_copy_done(&file) : 0;
}

/* The record at byte `at` in this host's copy; NULL: not there. */
static const uint8_t *find_in_copy(struct idx *idx, int64_t at)
{
    const int is_packed = idx->gz != NULL;
    if (!idx->has_tried && idx_copied(idx) > 0) {
        const struct host_copy_file file = file_of(idx);
        idx->copy = host_copy_open(&file);
    }
    idx->has_tried = 1;
    if (idx->copy == NULL) {
        return NULL;
    }
    const uint8_t *bytes = host_copy_get(idx->copy, at, idx->record, is_packed);
    if (bytes == NULL && is_packed) { /* it never will be: alone from here on */
        host_copy_close(idx->copy);
        idx->copy = NULL;
    }
    return bytes;
}

int idx_verify(struct idx *idx, struct ms_err *err)
{
    if (idx->gz == NULL || !idx->has_tried || find_in_copy(idx, idx->data - idx->record) != NULL) {
        return MS_OK; /* the last piece of a copy is there once the checksum was right */
    }
    return idx->done < idx->data ? inflate_to(idx, idx->data, err) : MS_OK;
}

/* ---- its front ---- */

static int read_piece(const struct idx *idx, struct unpacking *u, uint8_t *dst, int64_t size,
                      int64_t at, struct ms_err *err)
{
    if (u == NULL) {
        return source_pread(idx->fd, dst, (size_t)size, idx->header + at, idx->path, err);
    }
    return unpack_next(u, idx->fd, dst, (size_t)size) == size
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "%.160s is truncated or damaged: unpacking stops near byte %lld; get the "
                         "file again",
                         idx->path, (long long)at);
}

static int add_pieces(const struct idx *idx, struct unpacking *u, struct sum *sum,
                      struct ms_err *err)
{
    uint8_t piece[16 << 10];
    const int64_t end = idx->data < IDX_FRONT ? idx->data : IDX_FRONT;
    int rc = MS_OK;
    for (int64_t at = 0; rc == MS_OK && at < end;) {
        const int64_t rest = end - at;
        const int64_t size = rest < (int64_t)sizeof(piece) ? rest : (int64_t)sizeof(piece);
        rc = read_piece(idx, u, piece, size, at, err);
        if (rc == MS_OK) {
            sum_add(sum, piece, (size_t)size);
            at += size;
        }
    }
    return rc;
}

int idx_add_front(const struct idx *idx, struct sum *sum, struct ms_err *err)
{
    struct unpacking u;
    if (idx->gz == NULL) {
        return add_pieces(idx, NULL, sum, err);
    }
    if (unpack_begin(&u) < 0) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to unpack it", idx->path);
    }
    int rc = unpack_skip(&u, idx->fd, idx->header) < 0
                 ? ms_fail(err, MS_E_INVALID, "%.160s is damaged; get the file again", idx->path)
                 : add_pieces(idx, &u, sum, err);
    unpack_end(&u);
    return rc;
}

int idx_read(struct idx *idx, int64_t i, uint8_t *dst, struct ms_err *err)
{
    int64_t at = i * idx->record;
    const uint8_t *copied = find_in_copy(idx, at);
    if (copied != NULL) {
        memcpy(dst, copied, (size_t)idx->record);
        return MS_OK;
    }
    if (idx->gz == NULL) {
        return source_pread(idx->fd, dst, (size_t)idx->record, idx->header + at, idx->path, err);
    }
    int rc = at + idx->record > idx->done ? inflate_to(idx, at + idx->record, err) : MS_OK;
    if (rc == MS_OK) {
        memcpy(dst, idx->inflated + at, (size_t)idx->record);
    }
    return rc;
}
