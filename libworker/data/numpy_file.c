/* numpy_file.c - arrays by name: in a folder (NAME.npy), an archive (.npz) or a file of tensors */
#include "libworker/data/numpy_file.h"

#include "libworker/data/path.h"
#include "libworker/data/safetensors.h"
#include "libworker/data/source.h"
#include "libworker/data/zip.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMBER_MAX = MS_NAME_MAX + 8 };

int numpy_place_open(const char *path, struct numpy_place *ret, struct ms_err *err)
{
    struct stat st;
    uint8_t magic[4] = {0};
    *ret = (struct numpy_place){.path = path, .archive = -1};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return MS_OK;
    }
    int rc = data_file_open(path, &ret->archive, err);
    if (rc < 0) {
        return rc;
    }
    if (pread(ret->archive, magic, sizeof(magic), 0) < 0) {
        rc = ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", path);
    } else if (magic[0] == 0x93 && magic[1] == 'N') {
        ret->is_array = 1;
    } else if (magic[0] != 'P' || magic[1] != 'K') {
        rc = ms_fail(err, MS_E_INVALID,
                     "%.200s is no .npz archive; write it with np.savez(file, x=..., y=...)", path);
    }
    if (rc < 0 || ret->is_array) { /* which is opened by its path, as in a folder */
        numpy_place_close(ret);
    }
    return rc;
}

int numpy_place_open_tensors(const char *path, struct numpy_place *ret, struct ms_err *err)
{
    *ret = (struct numpy_place){.path = path, .archive = -1};
    return safetensors_open(path, &ret->tensors, err);
}

void numpy_place_close(struct numpy_place *place)
{
    safetensors_close(place->tensors);
    place->tensors = NULL;
    if (place->archive >= 0) {
        close(place->archive);
        place->archive = -1;
    }
}

/* Names have no slash in them (FIELD_NAME): it stays in the folder, links apart, which
 * data_file_open judges. Returns owned. */
static char *file_path(const struct numpy_place *place, const char *name)
{
    const size_t size = strlen(place->path) + strlen(name) + sizeof("/.npy");
    char *path = malloc(size);
    if (path != NULL && place->is_array) {
        snprintf(path, size, "%s", place->path);
    } else if (path != NULL) {
        snprintf(path, size, "%s/%s.npy", place->path, name);
    }
    return path;
}

int numpy_place_has(const struct numpy_place *place, const char *name, struct ms_err *err)
{
    if (place->is_array) {
        return 1;
    }
    if (place->tensors != NULL) {
        return safetensors_find(place->tensors, name) != NULL;
    }
    if (place->archive >= 0) {
        char member[MEMBER_MAX];
        struct zip_member found;
        snprintf(member, sizeof(member), "%s.npy", name);
        const int rc = zip_find(place->archive, place->path, member, &found, err);
        return rc == MS_E_NOT_FOUND ? 0 : rc < 0 ? rc : 1;
    }
    char *path = file_path(place, name);
    if (path == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory", place->path);
    }
    const int is_there = access(path, F_OK) == 0;
    free(path);
    return is_there;
}

/* An array is called as its file without the end. */
static void cut_ends(char *list)
{
    char *end = list;
    for (const char *at = list; *at != '\0';) {
        const size_t length = strcspn(at, ",");
        const size_t kept =
            length > 4 && memcmp(at + length - 4, ".npy", 4) == 0 ? length - 4 : length;
        memmove(end, at, kept);
        end += kept;
        at += length;
        if (*at == ',') {
            *end++ = *at++;
        }
    }
    *end = '\0';
}

void numpy_place_list(const struct numpy_place *place, char *buf, int size)
{
    int used = 0;
    buf[0] = '\0';
    for (size_t i = 0; place->tensors != NULL && used < size; i++) {
        const struct safetensors_entry *entry = safetensors_at(place->tensors, i);
        if (entry == NULL) {
            break;
        }
        used += snprintf(buf + used, (size_t)(size - used), "%s%.60s", used > 0 ? ", " : "",
                         entry->name);
    }
    if (place->tensors != NULL) {
        return;
    }
    if (place->archive >= 0) {
        zip_list(place->archive, place->path, buf, size);
        cut_ends(buf);
        return;
    }
    DIR *dir = opendir(place->path);
    for (const struct dirent *entry;
         dir != NULL && used < size && (entry = readdir(dir)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".npy") == 0) {
            used += snprintf(buf + used, (size_t)(size - used), "%s%.60s", used > 0 ? ", " : "",
                             entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    cut_ends(buf);
}

/* ---- an array ---- */

void numpy_array_close(struct numpy_array *array)
{
    stored_destroy(array->bytes);
    if (array->fd >= 0) {
        close(array->fd);
    }
    free(array->name);
    *array = (struct numpy_array){.fd = -1};
}

/* Where it lies: its own file, or a member of the archive. */
struct whole {
    int fd;
    int is_deflated;
    int64_t at, size; /* of the file; size unpacked */
    struct unpack_member member;
};

static int find_file(const struct numpy_place *place, const char *name, struct numpy_array *array,
                     struct whole *ret, struct ms_err *err)
{
    struct stat st;
    array->name = file_path(place, name);
    if (array->name == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory", place->path);
    }
    int rc = data_file_open(array->name, &array->fd, err);
    if (rc == MS_OK && fstat(array->fd, &st) != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", array->name);
    }
    if (rc == MS_OK) {
        *ret = (struct whole){.fd = array->fd, .size = st.st_size};
    }
    return rc;
}

static int find_member(const struct numpy_place *place, const char *name, struct numpy_array *array,
                       struct whole *ret, struct ms_err *err)
{
    char file[MEMBER_MAX];
    struct zip_member found;
    const size_t size = strlen(place->path) + strlen(name) + sizeof(": ");
    snprintf(file, sizeof(file), "%s.npy", name);
    array->name = malloc(size);
    if (array->name == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory", place->path);
    }
    snprintf(array->name, size, "%s: %s", place->path, name);
    int rc = zip_find(place->archive, place->path, file, &found, err);
    if (rc == MS_OK) {
        *ret = (struct whole){.fd = place->archive,
                              .is_deflated = found.is_deflated,
                              .at = found.at,
                              .size = found.size,
                              .member = {found.at, found.packed, found.crc}};
    }
    return rc;
}

/* ---- a tensor ---- */

static const struct {
    const char *name;
    enum npy_kind kind;
    int item, is_brain;
} tensor_types[] = {
    {"F32", NPY_FLOAT, 4, 0},    {"F16", NPY_FLOAT, 2, 0},    {"BF16", NPY_FLOAT, 2, 1},
    {"F64", NPY_FLOAT, 8, 0},    {"U8", NPY_UNSIGNED, 1, 0},  {"BOOL", NPY_UNSIGNED, 1, 0},
    {"U16", NPY_UNSIGNED, 2, 0}, {"U32", NPY_UNSIGNED, 4, 0}, {"U64", NPY_UNSIGNED, 8, 0},
    {"I8", NPY_SIGNED, 1, 0},    {"I16", NPY_SIGNED, 2, 0},   {"I32", NPY_SIGNED, 4, 0},
    {"I64", NPY_SIGNED, 8, 0},
};

/* Its sizes are within the file, or it would not have been opened. */
static int make_head(const struct safetensors_entry *entry, const char *name, struct npy_head *ret,
                     struct ms_err *err)
{
    size_t i = 0;
    while (i < MS_ARRAY_SIZE(tensor_types) && strcmp(tensor_types[i].name, entry->dtype) != 0) {
        i++;
    }
    if (i == MS_ARRAY_SIZE(tensor_types)) {
        return ms_fail(err, MS_E_INVALID, "%.160s is %s, which is not read; write x.float()", name,
                       entry->dtype);
    }
    if (entry->begin == entry->end) {
        return ms_fail(err, MS_E_INVALID, "%.200s has no elements", name);
    }
    *ret = (struct npy_head){.kind = tensor_types[i].kind,
                             .item = tensor_types[i].item,
                             .is_brain = tensor_types[i].is_brain,
                             .n_dims = entry->n_dims};
    memcpy(ret->dim, entry->dim, sizeof(ret->dim));
    ret->count = (int64_t)(entry->end - entry->begin) / ret->item;
    return MS_OK;
}
_Static_assert((int)NPY_DIMS_MAX == (int)SAFETENSORS_DIMS_MAX,
               "a tensor's dimensions are an array's");

static int open_tensor(const struct numpy_place *place, const char *name, struct numpy_array *ret,
                       struct ms_err *err)
{
    const struct safetensors_entry *entry = safetensors_find(place->tensors, name);
    const size_t size = strlen(place->path) + strlen(name) + sizeof(": ");
    ret->name = malloc(size);
    if (ret->name == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory", place->path);
    }
    snprintf(ret->name, size, "%s: %s", place->path, name);
    if (entry == NULL) {
        return ms_fail(err, MS_E_NOT_FOUND, "%.200s is not there", ret->name);
    }
    int rc = make_head(entry, ret->name, &ret->head, err);
    if (rc < 0) {
        return rc;
    }
    struct stored_config cfg = {.path = ret->name, .size = (int64_t)(entry->end - entry->begin)};
    cfg.skip = safetensors_place(place->tensors, entry, &cfg.fd);
    ret->bytes = stored_create(&cfg);
    return ret->bytes != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "%.200s: no memory", ret->name);
}

/* ---- a NumPy array ---- */

/* The head of what is deflated comes from its front. */
static int read_front(const struct whole *whole, const char *name, uint8_t *dst, int64_t size,
                      struct ms_err *err)
{
    struct unpacking u;
    if (!whole->is_deflated) {
        return source_pread(whole->fd, dst, (size_t)size, whole->at, name, err);
    }
    if (unpack_begin_member(&u, &whole->member) < 0) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to unpack it", name);
    }
    const int64_t got = unpack_next(&u, whole->fd, dst, (size_t)size);
    unpack_end(&u);
    return got == size
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "%.200s is damaged: it cannot be unpacked; write the file again", name);
}

static int read_head(const struct whole *whole, struct numpy_array *array, struct ms_err *err)
{
    uint8_t head[NPY_HEAD_MAX];
    int64_t size = 0;
    if (whole->size < NPY_PREFIX) {
        return ms_fail(err, MS_E_INVALID, "%.200s has %lld bytes, no NumPy array is so short",
                       array->name, (long long)whole->size);
    }
    int rc = read_front(whole, array->name, head, NPY_PREFIX, err);
    rc = rc < 0 ? rc : npy_measure(head, array->name, &size, err);
    if (rc == MS_OK && size > whole->size) {
        rc =
            ms_fail(err, MS_E_INVALID, "%.200s is truncated: it ends within its head", array->name);
    }
    rc = rc < 0 ? rc : read_front(whole, array->name, head, size, err);
    rc = rc < 0 ? rc : npy_parse(head, size, array->name, &array->head, err);
    if (rc < 0) {
        return rc;
    }
    const int64_t want = size + array->head.count * array->head.item;
    if (whole->size != want) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has %lld bytes where its head promises %lld: it is %s; write it "
                       "again",
                       array->name, (long long)whole->size, (long long)want,
                       whole->size < want ? "truncated" : "longer than it should be");
    }
    return MS_OK;
}

int numpy_array_open(const struct numpy_place *place, const char *name, struct numpy_array *ret,
                     struct ms_err *err)
{
    struct whole whole;
    *ret = (struct numpy_array){.fd = -1};
    if (place->tensors != NULL) {
        return open_tensor(place, name, ret, err);
    }
    int rc = place->archive >= 0 ? find_member(place, name, ret, &whole, err)
                                 : find_file(place, name, ret, &whole, err);
    rc = rc < 0 ? rc : read_head(&whole, ret, err);
    if (rc < 0) {
        return rc;
    }
    const struct stored_config cfg = {.fd = whole.fd,
                                      .path = ret->name,
                                      .is_deflated = whole.is_deflated,
                                      .member = whole.member,
                                      .skip = (whole.is_deflated ? 0 : whole.at) + ret->head.size,
                                      .size = ret->head.count * ret->head.item};
    ret->bytes = stored_create(&cfg);
    return ret->bytes != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "%.200s: no memory", ret->name);
}
