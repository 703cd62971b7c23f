/* ckpt.c - reads MindSpore's checkpoints, which may be hostile
 *
 * The wire format (https://protobuf.dev/programming-guides/encoding) is read from the file piece by
 * piece: a key, a length, and what is inside, each held against what is around it. */
#include "libworker/data/ckpt.h"

#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "proto/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5,
    WINDOW = 4096,       /* bytes of the file that are at hand */
    PIECES_MAX = 200000, /* of all tensors */
};

static const char crc_mark[] = "crc_num";
enum { CRC_MARK = sizeof(crc_mark) - 1, CRC_NUMBER = 10 };

struct piece { /* bytes of the file */
    uint64_t begin, size;
};

struct tensor {
    struct safetensors_entry entry;
    size_t first, n; /* pieces */
};

struct ckpt {
    char *path;
    int fd;
    uint64_t size; /* of the message */
    size_t n, n_room;
    struct tensor *tensors; /* in the order of the file, then of names */
    size_t n_pieces, pieces_room;
    struct piece *pieces;
    uint64_t window_at;
    size_t window_size;
    uint8_t window[WINDOW];
};

static const struct {
    const char *type, *dtype;
    unsigned bytes;
} types[] = {
    {"Float32", "F32", 4}, {"Float64", "F64", 8}, {"Float16", "F16", 2}, {"BFloat16", "BF16", 2},
    {"Bool", "BOOL", 1},   {"Int8", "I8", 1},     {"UInt8", "U8", 1},    {"Int16", "I16", 2},
    {"UInt16", "U16", 2},  {"Int32", "I32", 4},   {"UInt32", "U32", 4},  {"Int64", "I64", 8},
    {"UInt64", "U64", 8},
};

/* What is none may be anybody's file: nothing of it is repeated. */
static int fail_at(const struct ckpt *file, uint64_t at, const char *why, struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID,
                   "%.140s: at byte %" PRIu64 " %s; the file is damaged or no checkpoint of "
                   "MindSpore's",
                   file->path, at, why);
}

static int fail_tensor(const struct ckpt *file, const char *name, const char *why,
                       struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID, "%.140s: tensor %.80s: %s", file->path, name, why);
}

/* ---- the wire ---- */

static int byte_at(struct ckpt *file, uint64_t at, uint8_t *ret, struct ms_err *err)
{
    if (at < file->window_at || at - file->window_at >= file->window_size) {
        const uint64_t rest = file->size - at;
        const size_t size = rest < WINDOW ? (size_t)rest : WINDOW;
        file->window_size = 0;
        int rc = source_pread(file->fd, file->window, size, (int64_t)at, file->path, err);
        if (rc < 0) {
            return rc;
        }
        file->window_at = at;
        file->window_size = size;
    }
    *ret = file->window[at - file->window_at];
    return MS_OK;
}

static int read_varint(struct ckpt *file, uint64_t *at, uint64_t end, uint64_t *ret,
                       struct ms_err *err)
{
    const uint64_t begin = *at;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = 0;
        if (*at >= end) {
            return fail_at(file, begin, "a number has no end", err);
        }
        int rc = byte_at(file, *at, &byte, err);
        if (rc < 0) {
            return rc;
        }
        (*at)++;
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *ret = value;
            return MS_OK;
        }
    }
    return fail_at(file, begin, "a number has more than 64 bits", err);
}

struct part { /* one field of a message */
    uint64_t field, type;
    uint64_t number;     /* VARINT */
    uint64_t begin, end; /* BYTES: of the file */
};

/* The next field in [*at, end). */
static int read_part(struct ckpt *file, uint64_t *at, uint64_t end, struct part *ret,
                     struct ms_err *err)
{
    const uint64_t begin = *at;
    uint64_t key = 0;
    uint64_t size = 0;
    int rc = read_varint(file, at, end, &key, err);
    *ret = (struct part){.field = key >> 3, .type = key & 7};
    if (rc < 0) {
        return rc;
    }
    if (ret->type == VARINT) {
        return read_varint(file, at, end, &ret->number, err);
    }
    if (ret->type == BYTES) {
        rc = read_varint(file, at, end, &size, err);
    } else if (ret->type == FIXED64 || ret->type == FIXED32) {
        size = ret->type == FIXED64 ? 8 : 4;
    } else {
        return fail_at(file, begin, "a field is of no type that there is", err);
    }
    if (rc == MS_OK && size > end - *at) {
        return fail_at(file, begin, "a field is longer than what it is in", err);
    }
    ret->begin = *at;
    ret->end = *at + size;
    *at = ret->end;
    return rc;
}

static int is_bytes(const struct part *part, uint64_t field)
{
    return part->field == field && part->type == BYTES;
}

/* A text of less than size bytes. */
static int read_text(struct ckpt *file, const struct part *part, char *buf, size_t size,
                     struct ms_err *err)
{
    const size_t n = (size_t)(part->end - part->begin);
    if (part->end - part->begin >= size) {
        return fail_at(file, part->begin, "a name is longer than any that is known", err);
    }
    int rc = source_pread(file->fd, buf, n, (int64_t)part->begin, file->path, err);
    buf[n] = '\0';
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        if ((unsigned char)buf[i] < 0x20 || buf[i] == 0x7F) {
            return fail_at(file, part->begin, "a name has control characters", err);
        }
    }
    return rc;
}

/* ---- a tensor ---- */

struct value { /* of which a tensor has one, or several */
    char name[SAFETENSORS_NAME_MAX];
    char type[sizeof(((struct safetensors_entry *)NULL)->dtype)];
    int has_name, has_type, has_content;
    int n_dims;
    int64_t dim[SAFETENSORS_DIMS_MAX];
    struct piece content;
};

static int add_dim(struct ckpt *file, struct value *value, uint64_t at, uint64_t dim,
                   struct ms_err *err)
{
    if (value->n_dims == SAFETENSORS_DIMS_MAX || dim > INT64_MAX) {
        return fail_at(file, at, "a shape is not of at most 8 sizes", err);
    }
    value->dim[value->n_dims++] = (int64_t)dim;
    return MS_OK;
}

/* One by one, as proto2 writes them, or packed. */
static int read_dims(struct ckpt *file, const struct part *part, struct value *value, uint64_t at,
                     struct ms_err *err)
{
    if (part->type == VARINT) {
        return add_dim(file, value, at, part->number, err);
    }
    int rc = MS_OK;
    for (uint64_t next = part->begin; rc == MS_OK && next < part->end;) {
        uint64_t dim = 0;
        rc = read_varint(file, &next, part->end, &dim, err);
        rc = rc < 0 ? rc : add_dim(file, value, at, dim, err);
    }
    return rc;
}

static int read_tensor(struct ckpt *file, const struct part *whole, struct value *value,
                       struct ms_err *err)
{
    int rc = MS_OK;
    for (uint64_t at = whole->begin; rc == MS_OK && at < whole->end;) {
        const uint64_t begin = at;
        struct part part;
        rc = read_part(file, &at, whole->end, &part, err);
        if (rc == MS_OK && part.field == 1 && (part.type == VARINT || part.type == BYTES)) {
            rc = read_dims(file, &part, value, begin, err);
        } else if (rc == MS_OK && is_bytes(&part, 2)) {
            rc = read_text(file, &part, value->type, sizeof(value->type), err);
            value->has_type = 1;
        } else if (rc == MS_OK && is_bytes(&part, 3)) {
            value->content = (struct piece){part.begin, part.end - part.begin};
            value->has_content = 1;
        }
    }
    return rc;
}

static int read_value(struct ckpt *file, const struct part *whole, struct value *ret,
                      struct ms_err *err)
{
    int is_map = 0;
    int rc = MS_OK;
    memset(ret, 0, sizeof(*ret));
    for (uint64_t at = whole->begin; rc == MS_OK && at < whole->end;) {
        struct part part;
        rc = read_part(file, &at, whole->end, &part, err);
        if (rc == MS_OK && is_bytes(&part, 1)) {
            rc = read_text(file, &part, ret->name, sizeof(ret->name), err);
            ret->has_name = 1;
        } else if (rc == MS_OK && is_bytes(&part, 2)) {
            rc = read_tensor(file, &part, ret, err);
        } else if (rc == MS_OK && is_bytes(&part, 3)) {
            is_map = 1;
        }
    }
    if (rc < 0) {
        return rc;
    }
    if (!ret->has_name || (!is_map && (!ret->has_type || !ret->has_content))) {
        return fail_at(file, whole->begin, "a tensor lacks its name, type or values", err);
    }
    return is_map ? fail_tensor(file, ret->name,
                                "it is a map of keys and values, which is not read", err)
                  : MS_OK;
}

/* ---- all of them ---- */

static int grow(void **items, size_t *room, size_t n, size_t size)
{
    if (n < *room) {
        return 1;
    }
    const size_t more = *room > 0 ? 2 * *room : 64;
    void *larger = realloc(*items, more * size);
    if (larger == NULL) {
        return 0;
    }
    *items = larger;
    *room = more;
    return 1;
}

static int is_same(const struct tensor *tensor, const struct value *value)
{
    return strcmp(tensor->entry.name, value->name) == 0;
}

static int add_piece(struct ckpt *file, const struct value *value, struct ms_err *err)
{
    if (file->n_pieces == PIECES_MAX) {
        return ms_fail(err, MS_E_FULL, "%.160s has more than %d pieces of tensors", file->path,
                       PIECES_MAX);
    }
    if (!grow((void **)&file->pieces, &file->pieces_room, file->n_pieces, sizeof(*file->pieces))) {
        return ms_fail(err, MS_E_NOMEM, "%.160s: no memory for its tensors", file->path);
    }
    file->pieces[file->n_pieces++] = value->content;
    return MS_OK;
}

static int add_tensor(struct ckpt *file, const struct value *value, struct ms_err *err)
{
    if (file->n == SAFETENSORS_MAX) {
        return ms_fail(err, MS_E_FULL, "%.160s has more than %d tensors", file->path,
                       SAFETENSORS_MAX);
    }
    if (!grow((void **)&file->tensors, &file->n_room, file->n, sizeof(*file->tensors))) {
        return ms_fail(err, MS_E_NOMEM, "%.160s: no memory for its tensors", file->path);
    }
    struct tensor *tensor = &file->tensors[file->n++];
    *tensor = (struct tensor){.first = file->n_pieces};
    memcpy(tensor->entry.name, value->name, sizeof(value->name));
    memcpy(tensor->entry.dim, value->dim, sizeof(value->dim));
    tensor->entry.n_dims = value->n_dims;
    snprintf(tensor->entry.dtype, sizeof(tensor->entry.dtype), "%s", value->type);
    return MS_OK;
}

/* A tensor of its own, or another piece of the one before it. */
static int take_value(struct ckpt *file, const struct value *value, struct ms_err *err)
{
    struct tensor *last = file->n > 0 ? &file->tensors[file->n - 1] : NULL;
    if (last == NULL || !is_same(last, value)) {
        int rc = add_tensor(file, value, err);
        if (rc < 0) {
            return rc;
        }
        last = &file->tensors[file->n - 1];
    } else if (last->entry.n_dims != value->n_dims ||
               memcmp(last->entry.dim, value->dim, sizeof(value->dim)) != 0 ||
               strcmp(last->entry.dtype, value->type) != 0) {
        return fail_tensor(file, value->name, "its pieces are of different shapes or types", err);
    }
    int rc = add_piece(file, value, err);
    last->n += rc == MS_OK;
    last->entry.end += value->content.size;
    return rc;
}

/* One that is none of MindSpore's may be called as one of ours is, and nobody has held its bytes
 * against its shape. */
static int name_type(const struct ckpt *file, const struct safetensors_entry *entry,
                     struct ms_err *err)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(types); i++) {
        if (strcmp(types[i].dtype, entry->dtype) == 0) {
            return fail_tensor(file, entry->name, "its type is none of MindSpore's", err);
        }
    }
    return MS_OK;
}

/* Its bytes are those of its shape. */
static int settle(const struct ckpt *file, struct tensor *tensor, struct ms_err *err)
{
    struct safetensors_entry *entry = &tensor->entry;
    size_t type = 0;
    while (type < MS_ARRAY_SIZE(types) && strcmp(types[type].type, entry->dtype) != 0) {
        type++;
    }
    if (type == MS_ARRAY_SIZE(types)) { /* a text, or a type of tomorrow: no weights */
        return name_type(file, entry, err);
    }
    memcpy(entry->dtype, types[type].dtype, strlen(types[type].dtype) + 1);
    const int is_scalar = entry->n_dims == 1 && entry->dim[0] == 0 && entry->end > 0;
    entry->n_dims = is_scalar ? 0 : entry->n_dims;
    uint64_t bytes = types[type].bytes;
    for (int i = 0; i < entry->n_dims; i++) {
        if (__builtin_mul_overflow(bytes, (uint64_t)entry->dim[i], &bytes)) {
            return fail_tensor(file, entry->name, "its shape is larger than any memory", err);
        }
    }
    return bytes == entry->end
               ? MS_OK
               : fail_tensor(file, entry->name,
                             "its values are more or fewer than its shape says; the "
                             "file is damaged",
                             err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->entry.name, ((const struct tensor *)b)->entry.name);
}

static int read_values(struct ckpt *file, struct ms_err *err)
{
    int rc = MS_OK;
    for (uint64_t at = 0; rc == MS_OK && at < file->size;) {
        const uint64_t begin = at;
        struct part part;
        struct value value;
        rc = read_part(file, &at, file->size, &part, err);
        if (rc == MS_OK && !is_bytes(&part, 1)) {
            rc = fail_at(file, begin, "stands something else than a tensor", err);
        }
        rc = rc < 0 ? rc : read_value(file, &part, &value, err);
        rc = rc < 0 ? rc : take_value(file, &value, err);
    }
    for (size_t i = 0; rc == MS_OK && i < file->n; i++) {
        rc = settle(file, &file->tensors[i], err);
    }
    if (rc == MS_OK && file->n > 0) {
        qsort(file->tensors, file->n, sizeof(*file->tensors), by_name);
    }
    for (size_t i = 1; rc == MS_OK && i < file->n; i++) {
        if (by_name(&file->tensors[i - 1], &file->tensors[i]) == 0) {
            rc = fail_tensor(file, file->tensors[i].entry.name, "it stands there twice", err);
        }
    }
    return rc;
}

/* ---- the file ---- */

static int check_crc(const struct ckpt *file, uint64_t want, struct ms_err *err)
{
    enum { BLOCK = 1 << 18 };
    uint8_t *block = malloc(BLOCK);
    uLong crc = crc32(0, NULL, 0);
    int rc = block != NULL ? MS_OK
                           : ms_fail(err, MS_E_NOMEM, "%.160s: no memory to check it", file->path);
    for (uint64_t at = 0; rc == MS_OK && at < file->size;) {
        const uint64_t rest = file->size - at;
        const size_t size = rest < BLOCK ? (size_t)rest : BLOCK;
        rc = source_pread(file->fd, block, size, (int64_t)at, file->path, err);
        if (rc == MS_OK) {
            crc = crc32(crc, block, (uInt)size);
        }
        at += size;
    }
    free(block);
    return rc < 0 || crc == want
               ? rc
               : ms_fail(err, MS_E_INVALID, "%.160s: its checksum is another one: it is damaged",
                         file->path);
}

/* Where the message ends; what stands behind it has to be right. */
static int find_end(struct ckpt *file, struct ms_err *err)
{
    uint8_t tail[CRC_MARK + CRC_NUMBER];
    struct stat st;
    if (fstat(file->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return ms_fail(err, MS_E_INVALID, "%.200s is no regular file", file->path);
    }
    file->size = (uint64_t)st.st_size;
    if (file->size == 0) {
        return ms_fail(err, MS_E_INVALID, "%.200s is empty", file->path);
    }
    if (file->size < sizeof(tail)) {
        return MS_OK;
    }
    int rc = source_pread(file->fd, tail, sizeof(tail), (int64_t)(file->size - sizeof(tail)),
                          file->path, err);
    if (rc < 0 || memcmp(tail, crc_mark, CRC_MARK) != 0) {
        return rc;
    }
    uint64_t want = 0;
    for (size_t i = CRC_MARK; i < sizeof(tail); i++) {
        want = want << 8 | tail[i];
    }
    file->size -= sizeof(tail);
    return check_crc(file, want, err);
}

int ckpt_open(const char *path, struct ckpt **ret, struct ms_err *err)
{
    struct ckpt *file = calloc(1, sizeof(*file));
    if (file == NULL || (file->path = strdup(path)) == NULL) {
        free(file);
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to open it", path);
    }
    file->fd = -1;
    int rc = data_file_open(path, &file->fd, err);
    rc = rc < 0 ? rc : find_end(file, err);
    rc = rc < 0 ? rc : read_values(file, err);
    if (rc < 0) {
        ckpt_close(file);
        return rc;
    }
    *ret = file;
    return MS_OK;
}

void ckpt_close(struct ckpt *file)
{
    if (file == NULL) {
        return;
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    free(file->tensors);
    free(file->pieces);
    free(file->path);
    free(file);
}

size_t ckpt_count(const struct ckpt *file)
{
    return file->n;
}

const struct safetensors_entry *ckpt_at(const struct ckpt *file, size_t i)
{
    return i < file->n ? &file->tensors[i].entry : NULL;
}

static const struct tensor *find(const struct ckpt *file, const char *name)
{
    size_t low = 0;
    size_t high = file->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(file->tensors[middle].entry.name, name);
        if (order == 0) {
            return &file->tensors[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

const struct safetensors_entry *ckpt_find(const struct ckpt *file, const char *name)
{
    const struct tensor *tensor = find(file, name);
    return tensor != NULL ? &tensor->entry : NULL;
}

int ckpt_read(struct ckpt *file, const struct safetensors_entry *entry, float *dst, size_t count,
              struct ms_err *err)
{
    const struct tensor *tensor = find(file, entry->name);
    if (tensor == NULL || strcmp(entry->dtype, "F32") != 0) {
        return ms_fail(err, MS_E_UNSUPPORTED, "%.160s: tensor %.80s is %s; convert it to Float32",
                       file->path, entry->name, entry->dtype);
    }
    if (entry->end % sizeof(float) != 0 || entry->end / sizeof(float) != count) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: tensor %.80s has %" PRIu64 " elements where %zu are wanted",
                       file->path, entry->name, entry->end / sizeof(float), count);
    }
    char *at = (char *)dst;
    int rc = MS_OK;
    for (size_t i = tensor->first; rc == MS_OK && i < tensor->first + tensor->n; i++) {
        rc = source_pread(file->fd, at, file->pieces[i].size, (int64_t)file->pieces[i].begin,
                          file->path, err);
        at += file->pieces[i].size;
    }
    return rc;
}
