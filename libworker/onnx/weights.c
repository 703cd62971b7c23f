/* weights.c - the values of a tensor: in the file, or in one that lies beside it */
#include "libworker/onnx/file.h"

#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "proto/limits.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw_data are little endian; this reader copies bytes as they are"
#endif

enum { LOCATION_EXTERNAL = 1 };

/* ---- small ones, as numbers ---- */

static int64_t raw_number(const uint8_t *at, int type, double *ret_real)
{
    float f = 0;
    double d = 0;
    int32_t i32 = 0;
    int64_t i64 = 0;
    switch (type) {
    case ONNX_FLOAT:
        memcpy(&f, at, sizeof(f));
        *ret_real = (double)f;
        return 0;
    case ONNX_DOUBLE:
        memcpy(&d, at, sizeof(d));
        *ret_real = d;
        return 0;
    case ONNX_INT32:
        memcpy(&i32, at, sizeof(i32));
        return i32;
    case ONNX_INT64:
        memcpy(&i64, at, sizeof(i64));
        return i64;
    default:
        return *at != 0;
    }
}

static size_t type_bytes(int type)
{
    return type == ONNX_FLOAT || type == ONNX_INT32    ? 4
           : type == ONNX_DOUBLE || type == ONNX_INT64 ? 8
           : type == ONNX_BOOL                         ? 1
                                                       : 0;
}

/* Element i of the lists that a tensor may have instead of raw_data. */
static int64_t listed_number(const MsOnnx__Tensor *tensor, size_t i, double *ret_real)
{
    *ret_real = i < tensor->n_float_data ? (double)tensor->float_data[i] : 0;
    return tensor->data_type == ONNX_INT64 && i < tensor->n_int64_data   ? tensor->int64_data[i]
           : tensor->data_type != ONNX_INT64 && i < tensor->n_int32_data ? tensor->int32_data[i]
                                                                         : 0;
}

/* Its elements; -1: its dimensions are none. */
static int64_t count_of(const MsOnnx__Tensor *tensor)
{
    int64_t count = 1;
    for (size_t i = 0; i < tensor->n_dims; i++) {
        if (tensor->dims[i] < 0 || __builtin_mul_overflow(count, tensor->dims[i], &count)) {
            return -1;
        }
    }
    return count;
}

/* Do so many elements lie in the model? */
static int is_inside(const MsOnnx__Tensor *tensor, size_t count)
{
    const size_t n_listed = tensor->data_type == ONNX_FLOAT    ? tensor->n_float_data
                            : tensor->data_type == ONNX_INT64  ? tensor->n_int64_data
                            : tensor->data_type == ONNX_DOUBLE ? 0
                                                               : tensor->n_int32_data;
    return tensor->raw_data.len > 0
               ? tensor->raw_data.len / type_bytes(tensor->data_type) == count &&
                     tensor->raw_data.len % type_bytes(tensor->data_type) == 0
               : n_listed == count;
}

/* Element i of what lies in raw, or in the model where that is NULL. */
static int64_t number_at(const MsOnnx__Tensor *tensor, const uint8_t *raw, size_t i,
                         double *ret_real)
{
    const uint8_t *bytes = raw == NULL && tensor->raw_data.len > 0 ? tensor->raw_data.data : raw;
    return bytes != NULL
               ? raw_number(bytes + i * type_bytes(tensor->data_type), tensor->data_type, ret_real)
               : listed_number(tensor, i, ret_real);
}

int onnx_is_even(const MsOnnx__Tensor *tensor, double *ret)
{
    const int64_t count = count_of(tensor);
    const int is_real = tensor->data_type == ONNX_FLOAT || tensor->data_type == ONNX_DOUBLE;
    if (count < 1 || !is_real || tensor->data_location == LOCATION_EXTERNAL ||
        !is_inside(tensor, (size_t)count)) {
        return 0;
    }
    double first = 0;
    int is = 1;
    (void)number_at(tensor, NULL, 0, &first);
    for (int64_t i = 1; i < count && is; i++) { /* a single one may be no number */
        double real = 0;
        (void)number_at(tensor, NULL, (size_t)i, &real);
        is = real == first;
    }
    *ret = first;
    return is;
}

/* ---- in another file ---- */

enum { PLACE_MAX = NAME_MAX + 1 };

struct place {
    char location[PLACE_MAX];
    uint64_t offset, length;
    int has_length;
};

static int fail_tensor(const struct onnx_file *file, const char *name, const char *why,
                       struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID, "%.140s: tensor %.80s: %s", file->path, name, why);
}

/* As text that nothing in it cuts off; "" and 0: it is none, too long, or has a zero in it. */
static int read_text(const ProtobufCBinaryData *value, char ret[PLACE_MAX])
{
    const int is =
        value->len > 0 && value->len < PLACE_MAX && memchr(value->data, '\0', value->len) == NULL;
    ret[0] = '\0';
    if (is) {
        snprintf(ret, PLACE_MAX, "%.*s", (int)value->len, (const char *)value->data);
    }
    return is;
}

static int read_whole(const ProtobufCBinaryData *value, uint64_t *ret)
{
    char text[PLACE_MAX];
    char *end = NULL;
    const int is_text = read_text(value, text);
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return is_text && text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
           *ret <= INT64_MAX;
}

static int read_place(const struct onnx_file *file, const MsOnnx__Tensor *model, const char *name,
                      struct place *ret, struct ms_err *err)
{
    int is_legal = 1;
    int has_location = 0;
    *ret = (struct place){.location = ""};
    for (size_t i = 0; i < model->n_external_data; i++) {
        const MsOnnx__Entry *entry = model->external_data[i];
        if (strcmp(entry->key, "location") == 0) {
            has_location = 1;
            (void)read_text(&entry->value, ret->location); /* "" where it is none */
        } else if (strcmp(entry->key, "offset") == 0) {
            is_legal &= read_whole(&entry->value, &ret->offset);
        } else if (strcmp(entry->key, "length") == 0) {
            is_legal &= read_whole(&entry->value, &ret->length);
            ret->has_length = 1;
        }
    }
    if (!has_location || !is_legal) {
        return fail_tensor(file, name, "its external_data say no place; the file is damaged", err);
    }
    /* a name alone: nothing that a file says leads out of its folder */
    if (ret->location[0] == '\0' || ret->location[0] == '.' || strchr(ret->location, '/') != NULL) {
        return fail_tensor(file, name,
                           "its values lie in a file that is not beside the model by its name "
                           "alone; such a file is not opened: save the model again with its data "
                           "beside it",
                           err);
    }
    return MS_OK;
}

/* A regular file of that name beside the model, and no link to one elsewhere. */
static int open_beside(const struct onnx_file *file, const char *name, const char *location,
                       int *ret_fd, char path[PATH_MAX], struct ms_err *err)
{
    struct stat named;
    struct stat opened;
    const char *slash = strrchr(file->path, '/');
    const int head = slash != NULL ? (int)(slash - file->path) + 1 : 0;
    if (snprintf(path, PATH_MAX, "%.*s%s", head, file->path, location) >= PATH_MAX) {
        return fail_tensor(file, name, "the path of its values is too long", err);
    }
    int rc = data_file_open(path, ret_fd, err);
    if (rc == MS_OK && (lstat(path, &named) != 0 || fstat(*ret_fd, &opened) != 0 ||
                        named.st_ino != opened.st_ino || named.st_dev != opened.st_dev)) {
        close(*ret_fd);
        return fail_tensor(file, name,
                           "the file with its values is a link; copy it beside the model", err);
    }
    if (rc == MS_OK && (fstat(file->fd, &named) != 0 ||
                        (named.st_ino == opened.st_ino && named.st_dev == opened.st_dev))) {
        close(*ret_fd);
        return fail_tensor(file, name, "its values lie in the model's own file; it is damaged",
                           err);
    }
    return rc;
}

/* Where those bytes lie, all of them: a file beside the model, open, and the offset in it. */
static int find_beside(const struct onnx_file *file, const MsOnnx__Tensor *model, const char *name,
                       size_t bytes, int *ret_fd, int64_t *ret_offset, char path[PATH_MAX],
                       struct ms_err *err)
{
    struct place place;
    struct stat st;
    int rc = read_place(file, model, name, &place, err);
    if (rc == MS_OK && place.has_length && place.length != bytes) {
        rc = fail_tensor(file, name, "its external_data have another length than its shape", err);
    }
    rc = rc < 0 ? rc : open_beside(file, name, place.location, ret_fd, path, err);
    if (rc < 0) {
        return rc;
    }
    if (fstat(*ret_fd, &st) != 0 || (uint64_t)st.st_size < bytes ||
        place.offset > (uint64_t)st.st_size - bytes) {
        close(*ret_fd);
        return fail_tensor(file, name, "the file with its values is too short", err);
    }
    *ret_offset = (int64_t)place.offset;
    return MS_OK;
}

static int read_beside(const struct onnx_file *file, const MsOnnx__Tensor *model, const char *name,
                       void *dst, size_t bytes, struct ms_err *err)
{
    char path[PATH_MAX];
    int64_t offset = 0;
    int fd = -1;
    int rc = find_beside(file, model, name, bytes, &fd, &offset, path, err);
    if (rc == MS_OK) {
        rc = source_pread(fd, dst, bytes, offset, path, err);
        close(fd);
    }
    return rc;
}

/* ---- any ---- */

int onnx_numbers(const struct onnx_file *file, const MsOnnx__Tensor *tensor, double *reals,
                 int64_t *ints, int n, struct ms_err *err)
{
    const int is_real = tensor->data_type == ONNX_FLOAT || tensor->data_type == ONNX_DOUBLE;
    const size_t bytes = type_bytes(tensor->data_type);
    const int64_t count = count_of(tensor);
    const int is_beside = tensor->data_location == LOCATION_EXTERNAL;
    const char *name = tensor->name[0] != '\0' ? tensor->name : "of a node";
    const char *type = onnx_type_name(tensor->data_type);
    uint8_t *raw = NULL;
    int rc = MS_OK;
    if (bytes == 0 || is_real != (reals != NULL)) {
        return ms_fail(err, MS_E_INVALID, "constant %.60s is %s, and no number and no shape", name,
                       type);
    }
    if (count < 0) {
        return ms_fail(err, MS_E_INVALID,
                       "constant %.60s has a shape that is none; the file is damaged", name);
    }
    if (count > n) {
        return ms_fail(err, MS_E_INVALID,
                       "constant %.60s is %s with %lld numbers, and at most %d are known as a "
                       "shape, or as places",
                       name, type, (long long)count, n);
    }
    if (!is_beside && !is_inside(tensor, (size_t)count)) {
        return ms_fail(err, MS_E_INVALID,
                       "constant %.60s is %s, and its numbers are not as many as its shape says, "
                       "or stand in a list that is not read; save the model with raw_data",
                       name, type);
    }
    if (is_beside && count > 0) {
        raw = malloc((size_t)count * bytes);
        rc = raw == NULL ? ms_fail(err, MS_E_NOMEM, "%.160s: no memory to read it", file->path)
                         : read_beside(file, tensor, name, raw, (size_t)count * bytes, err);
    }
    for (int i = 0; i < (int)count && rc == MS_OK; i++) {
        double real = 0;
        const int64_t whole = number_at(tensor, raw, (size_t)i, &real);
        if (reals != NULL) {
            reals[i] = real;
        } else {
            ints[i] = whole;
        }
    }
    free(raw);
    return rc < 0 ? rc : (int)count;
}

int onnx_look(const struct onnx_file *file, const struct onnx_tensor *tensor, size_t count,
              struct ms_err *err)
{
    char path[PATH_MAX];
    int64_t offset = 0;
    int fd = -1;
    const MsOnnx__Tensor *model = file->model->graph->initializer[tensor->index];
    if (model->data_location != LOCATION_EXTERNAL) {
        return MS_OK;
    }
    int rc = find_beside(file, model, tensor->name, count * sizeof(float), &fd, &offset, path, err);
    if (rc == MS_OK) {
        close(fd);
    }
    return rc;
}

int onnx_read(const struct onnx_file *file, const struct onnx_tensor *tensor, float *dst,
              size_t count, struct ms_err *err)
{
    const MsOnnx__Tensor *model = file->model->graph->initializer[tensor->index];
    const struct onnx_raw *raw = &file->raw[tensor->index];
    const size_t bytes = count * sizeof(*dst);
    if (model->data_type != ONNX_FLOAT) {
        return ms_fail(err, MS_E_INVALID,
                       "%.140s: tensor %.80s is %s, the network wants FLOAT; export the model in "
                       "float32",
                       file->path, tensor->name, tensor->type);
    }
    if (model->data_location == LOCATION_EXTERNAL) {
        return read_beside(file, model, tensor->name, dst, bytes, err);
    }
    if (raw->size == 0 && model->n_float_data == count) {
        memcpy(dst, model->float_data, bytes);
        return MS_OK;
    }
    return raw->size != bytes
               ? fail_tensor(file, tensor->name,
                             "its shape and its data disagree; the file is damaged", err)
               : source_pread(file->fd, dst, bytes, (int64_t)raw->offset, file->path, err);
}
