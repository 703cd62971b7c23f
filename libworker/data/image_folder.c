/* image_folder.c - images in folders, one a class: each is decoded when it is read */
#include "libworker/data/decoded.h"
#include "libworker/data/image_list.h"
#include "libworker/data/path.h"
#include "libworker/data/picture.h"
#include "libworker/data/source.h"
#include "proto/macros.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a reader keeps from one image to the next; of a larger one it gives the memory back. */
#define KEPT_MAX ((size_t)32 << 20)

struct image_reader {
    struct data_reader base;
    char path[2 * MS_PATH_MAX];
    uint8_t *file;
    size_t room; /* of file */
    struct picture picture;
    struct picture_work work;
    uint8_t *values; /* (c, h, w) of the record that was read last */
};

struct image_folder {
    struct data_source base;
    struct image_list list;
    int has_size;                /* else all images must have the same one */
    struct image_reader *reader; /* of data_read */
    struct decoded *decoded;     /* NULL: what is decoded is not kept */
};

/* ---- a file ---- */

static int reserve_file(struct image_reader *r, int64_t size, struct ms_err *err)
{
    if (size > PICTURE_FILE_MAX) {
        return ms_fail(err, MS_E_INVALID, "%.200s has %lld bytes; at most %d are read", r->path,
                       (long long)size, PICTURE_FILE_MAX);
    }
    if ((size_t)size > r->room || r->file == NULL) {
        free(r->file);
        r->file = malloc((size_t)size + 1);
        r->room = r->file != NULL ? (size_t)size : 0;
    }
    return r->file != NULL ? MS_OK
                           : ms_fail(err, MS_E_NOMEM, "%.200s: no memory to read it", r->path);
}

static int open_file(const struct image_reader *r, int *ret_fd, struct stat *ret_st,
                     struct ms_err *err)
{
    int fd = -1;
    int rc = data_file_open(r->path, &fd, err);
    if (rc == MS_OK && fstat(fd, ret_st) != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", r->path);
        close(fd);
    }
    *ret_fd = rc == MS_OK ? fd : -1;
    return rc;
}

static int read_opened(struct image_reader *r, int fd, const struct stat *st, size_t *ret_size,
                       struct ms_err *err)
{
    int rc = reserve_file(r, st->st_size, err);
    rc = rc < 0 ? rc : source_pread(fd, r->file, (size_t)st->st_size, 0, r->path, err);
    *ret_size = rc == MS_OK ? (size_t)st->st_size : 0;
    return rc;
}

static int read_file(struct image_reader *r, size_t *ret_size, struct ms_err *err)
{
    struct stat st;
    int fd = -1;
    int rc = open_file(r, &fd, &st, err);
    if (rc == MS_OK) {
        rc = read_opened(r, fd, &st, ret_size, err);
        close(fd);
    }
    return rc;
}

static void give_back(struct image_reader *r)
{
    if (r->room > KEPT_MAX) {
        free(r->file);
        r->file = NULL;
        r->room = 0;
    }
    if (r->picture.room > KEPT_MAX) {
        picture_free(&r->picture);
    }
    if (r->work.room > KEPT_MAX) {
        free(r->work.bytes);
        r->work = (struct picture_work){NULL, 0};
    }
}

static int decode(struct image_reader *r, const struct image_folder *set, size_t size,
                  struct ms_err *err)
{
    const struct data_info *info = &set->base.info;
    int rc = picture_decode(r->file, size, r->path, (int)info->channels, &r->picture, err);
    if (rc < 0) {
        return rc;
    }
    if (!set->has_size && (r->picture.height != info->height || r->picture.width != info->width)) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.160s has %lld x %lld pixels and others %lld x %lld; give dataset.size, as "
            "size: [%lld, %lld], to which all are resized and cut",
            r->path, (long long)r->picture.height, (long long)r->picture.width,
            (long long)info->height, (long long)info->width, (long long)info->height,
            (long long)info->width);
    }
    return picture_cover(&r->picture, r->path, info->height, info->width, &r->work, r->values, err);
}

/* The file is judged in any case, and where it changed since a record was made of it that record is
 * none of it. */
static int decode_opened(struct image_reader *r, const struct image_folder *set, int64_t row,
                         int fd, const struct stat *st, const uint8_t **ret, struct ms_err *err)
{
    size_t size = 0;
    const uint8_t *kept = set->decoded != NULL ? decoded_find(set->decoded, row, st) : NULL;
    if (kept != NULL) {
        *ret = kept;
        return MS_OK;
    }
    int rc = read_opened(r, fd, st, &size, err);
    rc = rc < 0 ? rc : decode(r, set, size, err);
    give_back(r);
    if (rc == MS_OK && set->decoded != NULL) {
        decoded_keep(set->decoded, row, st, r->values);
    }
    *ret = r->values;
    return rc;
}

static int image_read(struct data_reader *reader, int64_t row, struct data_record *ret,
                      struct ms_err *err)
{
    struct image_reader *r = (struct image_reader *)reader;
    const struct image_folder *set = (const struct image_folder *)reader->source;
    const uint8_t *values = NULL;
    struct stat st;
    int fd = -1;
    image_list_path(&set->list, (size_t)row, r->path, sizeof(r->path));
    int rc = open_file(r, &fd, &st, err);
    if (rc < 0) {
        return rc;
    }
    rc = decode_opened(r, set, row, fd, &st, &values, err);
    close(fd);
    if (rc == MS_OK) {
        *ret = (struct data_record){.values = values, .label = set->list.entries[row].label};
    }
    return rc;
}

static void image_reader_destroy(struct data_reader *reader)
{
    struct image_reader *r = (struct image_reader *)reader;
    free(r->file);
    picture_free(&r->picture);
    free(r->work.bytes);
    free(r->values);
    free(r);
}

static int image_reader_create(struct data_source *source, struct data_reader **ret,
                               struct ms_err *err)
{
    const struct data_info *info = &source->info;
    struct image_reader *r = calloc(1, sizeof(*r));
    const size_t size = (size_t)(info->channels * info->height * info->width);
    if (r == NULL || (r->values = malloc(size)) == NULL) {
        free(r);
        return ms_fail(err, MS_E_NOMEM, "no memory to decode images of %lldx%lldx%lld",
                       (long long)info->channels, (long long)info->height, (long long)info->width);
    }
    r->base = (struct data_reader){source, image_read, image_reader_destroy};
    *ret = &r->base;
    return MS_OK;
}

/* ---- the set ---- */

static int folder_read(struct data_source *source, int64_t row, struct data_record *ret,
                       struct ms_err *err)
{
    struct image_folder *set = (struct image_folder *)source;
    return image_read(&set->reader->base, row, ret, err);
}

static void folder_close(struct data_source *source)
{
    struct image_folder *set = (struct image_folder *)source;
    if (set->reader != NULL) {
        image_reader_destroy(&set->reader->base);
    }
    decoded_close(set->decoded);
    image_list_free(&set->list);
    free(set);
}

/* Which file a record is of stands beside it: the digest of their names alone tells sets apart. */
static void folder_keep_decoded(struct data_source *base, int64_t bytes_max)
{
    struct image_folder *set = (struct image_folder *)base;
    const struct data_info *info = &base->info;
    uint8_t bytes[DATA_SUM_BYTES];
    struct stat st;
    struct decoded_set of = {.channels = info->channels,
                             .height = info->height,
                             .width = info->width,
                             .rows = info->rows,
                             .bytes_max = bytes_max};
    struct sum *sum = set->decoded == NULL && bytes_max > 0 ? sum_create() : NULL;
    if (sum == NULL) {
        return;
    }
    sum_add(sum, set->list.names, set->list.names_size);
    sum_bytes(sum, bytes);
    sum_destroy(sum);
    memcpy(&of.names, bytes, sizeof(of.names));
    if (stat(set->list.root, &st) == 0) {
        of.device = (int64_t)st.st_dev;
        of.inode = (int64_t)st.st_ino;
        set->decoded = decoded_open(&of);
    }
}

static int64_t folder_decoded_count(const struct data_source *base)
{
    const struct image_folder *set = (const struct image_folder *)base;
    return set->decoded != NULL ? decoded_count(set->decoded) : 0;
}

/* As it is given, as the job says, or as the first image is. */
static int measure(struct image_folder *set, const struct data_spec *spec, struct ms_err *err)
{
    struct data_info *info = &set->base.info;
    set->has_size = spec->height > 0;
    info->height = set->has_size ? spec->height : spec->shape.height;
    info->width = set->has_size ? spec->width : spec->shape.width;
    if (info->height > 0) {
        return MS_OK;
    }
    struct image_reader r = {.file = NULL};
    size_t size = 0;
    image_list_path(&set->list, 0, r.path, sizeof(r.path));
    int rc = read_file(&r, &size, err);
    rc = rc < 0 ? rc : picture_measure(r.file, size, r.path, &info->height, &info->width, err);
    if (rc == MS_OK && (info->height > MS_IMAGE_SIDE_MAX || info->width > MS_IMAGE_SIDE_MAX)) {
        rc = ms_fail(err, MS_E_INVALID,
                     "%.160s has %lld x %lld pixels; sides are at most %d: give dataset.size, to "
                     "which all are resized and cut",
                     r.path, (long long)info->height, (long long)info->width, MS_IMAGE_SIDE_MAX);
    }
    free(r.file);
    return rc;
}

static void folder_name(const struct data_source *base, int64_t row, char *buf, size_t size)
{
    const struct image_folder *set = (const struct image_folder *)base;
    image_list_path(&set->list, (size_t)row, buf, size);
}

int image_folder_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                      struct ms_err *err)
{
    struct image_folder *set = calloc(1, sizeof(*set));
    struct data_reader *reader = NULL;
    if (set == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    set->base = (struct data_source){.read = folder_read,
                                     .name = folder_name,
                                     .reader_create = image_reader_create,
                                     .keep_decoded = folder_keep_decoded,
                                     .decoded_count = folder_decoded_count,
                                     .close = folder_close};
    int rc = image_list_make(spec, path, &set->list, err);
    struct data_info *info = &set->base.info;
    info->rows = (int64_t)set->list.n;
    info->held_bytes =
        (int64_t)(set->list.names_room + set->list.room * sizeof(*set->list.entries));
    info->channels = spec->colours == DATA_GREY ? 1 : 3;
    info->dtype = MS_U8;
    info->classes = (int64_t)set->list.n_classes;
    info->folders = (const char *const *)set->list.classes;
    info->is_decoded = 1;
    rc = rc < 0 ? rc : measure(set, spec, err);
    rc = rc < 0 ? rc : data_check_shape(path, info, err);
    rc = rc < 0 ? rc : image_reader_create(&set->base, &reader, err);
    if (rc < 0) {
        folder_close(&set->base);
        return rc;
    }
    set->reader = (struct image_reader *)reader;
    *ret = &set->base;
    return MS_OK;
}
