/* safetensors.c - reads named tensors from a file that may be hostile
 *
 * Every rule of the format is checked before anything is believed: sizes against the file, shapes
 * against offsets, offsets against each other (no holes, no overlap). */
#include "libworker/data/safetensors.h"

#include "libworker/data/path.h"
#include "libworker/data/source.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors are little endian; this reader copies bytes as they are"
#endif

struct safetensors {
    char *path;
    int fd;
    uint64_t data_start, data_size; /* bytes */
    size_t n;
    struct safetensors_entry *entries; /* sorted by name */
    json_t *metadata;                  /* NULL: none */
};

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
    {"F32", 32},    {"F64", 64},    {"F16", 16},        {"BF16", 16},       {"BOOL", 8},
    {"U8", 8},      {"I8", 8},      {"U16", 16},        {"I16", 16},        {"U32", 32},
    {"I32", 32},    {"U64", 64},    {"I64", 64},        {"C64", 64},        {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

/* ---- one entry ---- */

static int fail_entry(const struct safetensors *file, const char *name, const char *why,
                      struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID,
                   "%.140s: tensor %.80s: %s; the file is damaged or no safetensors file",
                   file->path, name, why);
}

/* What is no tensor yet may be anybody's file: its names are not repeated. */
static int fail_format(const struct safetensors *file, const struct safetensors_entry *entry,
                       const char *why, struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID,
                   "%.140s: entry %td of its header: %s; the file is damaged or no safetensors "
                   "file",
                   file->path, entry - file->entries + 1, why);
}

static int read_dtype(const struct safetensors *file, const json_t *object, unsigned *ret_bits,
                      struct safetensors_entry *entry, struct ms_err *err)
{
    const char *dtype = json_string_value(json_object_get(object, "dtype"));
    for (size_t i = 0; dtype != NULL && i < MS_ARRAY_SIZE(dtypes); i++) {
        if (strcmp(dtypes[i].name, dtype) == 0) {
            memcpy(entry->dtype, dtype, strlen(dtype) + 1);
            *ret_bits = dtypes[i].bits;
            return MS_OK;
        }
    }
    return fail_format(file, entry, "its dtype is none of the format's", err);
}

/* Shape, and the bytes that it takes. */
static int read_shape(const struct safetensors *file, const json_t *object, unsigned bits,
                      struct safetensors_entry *entry, uint64_t *ret_bytes, struct ms_err *err)
{
    const json_t *shape = json_object_get(object, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > SAFETENSORS_DIMS_MAX) {
        return fail_format(file, entry, "its shape is no list of at most 8 numbers", err);
    }
    entry->n_dims = (int)json_array_size(shape);
    uint64_t total_bits = bits;
    for (int i = 0; i < entry->n_dims; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0) {
            return fail_format(file, entry, "its shape has something else than sizes", err);
        }
        entry->dim[i] = json_integer_value(dim);
        if (__builtin_mul_overflow(total_bits, (uint64_t)entry->dim[i], &total_bits)) {
            return fail_format(file, entry, "its shape is larger than any memory", err);
        }
    }
    if (total_bits % 8 != 0) {
        return fail_format(file, entry, "its elements do not fill whole bytes", err);
    }
    *ret_bytes = total_bits / 8;
    return MS_OK;
}

static int read_offsets(const struct safetensors *file, const json_t *object, uint64_t bytes,
                        struct safetensors_entry *entry, struct ms_err *err)
{
    const json_t *offsets = json_object_get(object, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0);
    const json_t *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
        return fail_format(file, entry, "its data_offsets are no pair [begin, end]", err);
    }
    entry->begin = (uint64_t)json_integer_value(begin);
    entry->end = (uint64_t)json_integer_value(end);
    if (entry->end > file->data_size) {
        return fail_format(file, entry, "its data lie behind the end of the file", err);
    }
    if (entry->end - entry->begin != bytes) {
        return fail_format(file, entry, "its shape and its data_offsets disagree", err);
    }
    return MS_OK;
}

static int read_name(const struct safetensors *file, const char *name,
                     struct safetensors_entry *entry, struct ms_err *err)
{
    size_t length = strlen(name);
    if (length >= SAFETENSORS_NAME_MAX) {
        return fail_format(file, entry, "its name is longer than 255 bytes", err);
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F) {
            return fail_format(file, entry, "its name has control characters", err);
        }
    }
    memcpy(entry->name, name, length + 1);
    return MS_OK;
}

static int read_entry(const struct safetensors *file, const char *name, const json_t *object,
                      struct safetensors_entry *entry, struct ms_err *err)
{
    unsigned bits = 0;
    uint64_t bytes = 0;
    int rc = read_name(file, name, entry, err);
    if (rc == MS_OK && (!json_is_object(object) || json_object_size(object) != 3)) {
        rc = fail_format(file, entry, "it has other keys than dtype, shape and data_offsets", err);
    }
    if (rc == MS_OK) {
        rc = read_dtype(file, object, &bits, entry, err);
    }
    if (rc == MS_OK) {
        rc = read_shape(file, object, bits, entry, &bytes, err);
    }
    return rc < 0 ? rc : read_offsets(file, object, bytes, entry, err);
}

/* ---- all of them ---- */

static int compare_begin(const void *a, const void *b)
{
    const struct safetensors_entry *x = a;
    const struct safetensors_entry *y = b;
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return x->end < y->end ? -1 : x->end > y->end; /* empty tensors stand before full ones */
}

static int compare_name(const void *a, const void *b)
{
    return strcmp(((const struct safetensors_entry *)a)->name,
                  ((const struct safetensors_entry *)b)->name);
}

/* The data part is covered from its first byte to its last, each byte once. */
static int check_cover(struct safetensors *file, struct ms_err *err)
{
    uint64_t at = 0;
    if (file->n > 0) {
        qsort(file->entries, file->n, sizeof(file->entries[0]), compare_begin);
    }
    for (size_t i = 0; i < file->n; i++) {
        if (file->entries[i].begin != at) {
            return fail_entry(file, file->entries[i].name,
                              file->entries[i].begin > at ? "there is a hole before its data"
                                                          : "its data overlap another tensor's",
                              err);
        }
        at = file->entries[i].end;
    }
    if (at != file->data_size) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: %llu bytes behind the last tensor belong to nobody; the file is "
                       "damaged or no safetensors file",
                       file->path, (unsigned long long)(file->data_size - at));
    }
    if (file->n > 0) {
        qsort(file->entries, file->n, sizeof(file->entries[0]), compare_name);
    }
    return MS_OK;
}

static int take_metadata(struct safetensors *file, json_t *metadata, struct ms_err *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    int is_good = json_is_object(metadata);
    json_object_foreach(metadata, key, value)
    {
        is_good &= json_is_string(value);
    }
    file->metadata = json_incref(metadata);
    return is_good ? MS_OK
                   : ms_fail(err, MS_E_INVALID,
                             "%.160s: __metadata__ holds something else than texts", file->path);
}

static int read_entries(struct safetensors *file, json_t *root, struct ms_err *err)
{
    size_t n = json_object_size(root);
    if (n > SAFETENSORS_MAX) {
        return ms_fail(err, MS_E_FULL, "%.160s has %zu tensors; at most %d", file->path, n,
                       SAFETENSORS_MAX);
    }
    file->entries = calloc(n + 1, sizeof(*file->entries));
    if (file->entries == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.160s: no memory for %zu tensors", file->path, n);
    }
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(root, key, value)
    {
        int is_meta = strcmp(key, "__metadata__") == 0;
        int rc = is_meta ? take_metadata(file, value, err)
                         : read_entry(file, key, value, &file->entries[file->n], err);
        if (rc < 0) {
            return rc;
        }
        file->n += !is_meta;
    }
    return check_cover(file, err);
}

/* jansson says what it met behind "near": that is the file's. */
static int fail_json(const struct safetensors *file, const json_error_t *why, struct ms_err *err)
{
    const char *near = strstr(why->text, " near ");
    int length = near != NULL ? (int)(near - why->text) : (int)strlen(why->text);
    return ms_fail(err, MS_E_INVALID,
                   "%.140s: its header is no JSON (%.*s at byte %d); no safetensors file, or a "
                   "damaged one",
                   file->path, length < 80 ? length : 80, why->text, why->position);
}

static int read_header(struct safetensors *file, uint64_t header_size, struct ms_err *err)
{
    char *text = malloc(header_size);
    if (text == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.160s: no memory for its header", file->path);
    }
    json_t *root = NULL;
    json_error_t why;
    int rc = source_pread(file->fd, text, header_size, 8, file->path, err);
    if (rc == MS_OK && text[0] != '{') {
        rc = ms_fail(err, MS_E_INVALID, "%.200s: its header is no JSON object: no safetensors file",
                     file->path);
    }
    if (rc == MS_OK) {
        root = json_loadb(text, header_size, JSON_REJECT_DUPLICATES, &why);
        rc = root != NULL ? read_entries(file, root, err) : fail_json(file, &why, err);
    }
    json_decref(root);
    free(text);
    return rc;
}

static int read_file(struct safetensors *file, struct ms_err *err)
{
    struct stat st;
    if (fstat(file->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return ms_fail(err, MS_E_INVALID, "%.200s is no regular file", file->path);
    }
    uint64_t size = (uint64_t)st.st_size;
    uint8_t bytes[8];
    uint64_t header_size = 0;
    if (size < 8 + 2) {
        return ms_fail(err, MS_E_INVALID, "%.200s has %llu bytes: no safetensors file", file->path,
                       (unsigned long long)size);
    }
    int rc = source_pread(file->fd, bytes, sizeof(bytes), 0, file->path, err);
    if (rc < 0) {
        return rc;
    }
    memcpy(&header_size, bytes, sizeof(header_size));
    const int is_zip = memcmp(bytes, "PK\3\4", 4) == 0;
    const int is_size =
        header_size >= 2 && header_size <= SAFETENSORS_HEADER_MAX && header_size <= size - 8;
    if (!is_size && (is_zip || (bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5))) {
        return ms_fail(err, MS_E_INVALID,
                       "%.120s is a %s, as PyTorch writes its files (.pt), and no safetensors "
                       "file; write one in Python: safetensors.torch.save_file("
                       "module.state_dict(), \"net.safetensors\")",
                       file->path, is_zip ? "zip archive" : "Python pickle");
    }
    if (!is_size) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.140s: its first eight bytes are no size of a header within a file of %llu "
            "bytes: truncated, or no safetensors file",
            file->path, (unsigned long long)size);
    }
    file->data_start = 8 + header_size;
    file->data_size = size - file->data_start;
    return read_header(file, header_size, err);
}

/* Takes fd. */
static int open_fd(const char *path, int fd, struct safetensors **ret, struct ms_err *err)
{
    struct safetensors *file = calloc(1, sizeof(*file));
    if (file == NULL || (file->path = strdup(path)) == NULL) {
        free(file);
        close(fd);
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to open it", path);
    }
    file->fd = fd;
    int rc = read_file(file, err);
    if (rc < 0) {
        safetensors_close(file);
        return rc;
    }
    *ret = file;
    return MS_OK;
}

int safetensors_open(const char *path, struct safetensors **ret, struct ms_err *err)
{
    int fd = -1;
    int rc = data_file_open(path, &fd, err);
    return rc < 0 ? rc : open_fd(path, fd, ret, err);
}

int safetensors_open_own(const char *path, struct safetensors **ret, struct ms_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? data_open_fail(path, err) : open_fd(path, fd, ret, err);
}

void safetensors_close(struct safetensors *file)
{
    if (file == NULL) {
        return;
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    json_decref(file->metadata);
    free(file->entries);
    free(file->path);
    free(file);
}

size_t safetensors_count(const struct safetensors *file)
{
    return file->n;
}

const char *safetensors_meta(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(file->metadata, key));
}

const struct safetensors_entry *safetensors_at(const struct safetensors *file, size_t i)
{
    return i < file->n ? &file->entries[i] : NULL;
}

const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name)
{
    size_t low = 0;
    size_t high = file->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(file->entries[middle].name, name);
        if (order == 0) {
            return &file->entries[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

int64_t safetensors_place(const struct safetensors *file, const struct safetensors_entry *entry,
                          int *ret_fd)
{
    *ret_fd = file->fd;
    return (int64_t)(file->data_start + entry->begin);
}

int safetensors_read(struct safetensors *file, const struct safetensors_entry *entry, float *dst,
                     size_t count, struct ms_err *err)
{
    if (strcmp(entry->dtype, "F32") != 0) {
        return ms_fail(err, MS_E_UNSUPPORTED, "%.160s: tensor %.80s is %s; convert the file to F32",
                       file->path, entry->name, entry->dtype);
    }
    if ((entry->end - entry->begin) / sizeof(float) != count) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: tensor %.80s has %llu elements where %zu are wanted", file->path,
                       entry->name,
                       (unsigned long long)((entry->end - entry->begin) / sizeof(float)), count);
    }
    return source_pread(file->fd, dst, count * sizeof(float),
                        (int64_t)(file->data_start + entry->begin), file->path, err);
}
