/* source.c - opens a data set by its kind */
#include "libworker/data/source.h"

#include "libworker/data/path.h"
#include "proto/macros.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum place { NOWHERE, FOLDER, FOLDER_OR_FILE, PROGRAM };

/* What a record is where the kind alone tells; channels 0: its files do. */
static const struct {
    enum place place;
    int (*open)(const struct data_spec *spec, const char *path, struct data_source **ret,
                struct ms_err *err);
    struct data_shape shape;
    enum data_values values;
} kinds[] = {
    [DATA_CIFAR10] = {FOLDER, cifar10_open, {3, 32, 32, 10, 0}, DATA_BYTES},
    [DATA_MNIST] = {FOLDER, mnist_open, {1, 28, 28, 10, 0}, DATA_BYTES},
    [DATA_NONLINEAR] = {NOWHERE, nonlinear_open, {2, 1, 1, 0, 1}, DATA_NUMBERS},
    [DATA_SHAPES] = {NOWHERE, shapes_open, {3, 32, 32, 10, 0}, DATA_BYTES},
    [DATA_NUMPY] = {FOLDER_OR_FILE, numpy_open, {0, 0, 0, 0, 0}, DATA_VALUES_AUTO},
    [DATA_IMAGE_FOLDER] = {FOLDER, image_folder_open, {0, 0, 0, 0, 0}, DATA_BYTES},
    [DATA_CIFAR100] = {FOLDER, cifar100_open, {3, 32, 32, 100, 0}, DATA_BYTES},
    [DATA_CSV] = {FOLDER_OR_FILE, csv_open, {0, 0, 0, 0, 0}, DATA_NUMBERS},
    [DATA_PROGRAM] = {PROGRAM, program_open, {0, 0, 0, 0, 0}, DATA_VALUES_AUTO},
    [DATA_TEXT] = {FOLDER_OR_FILE, text_open, {0, 0, 0, 0, 0}, DATA_VALUES_AUTO},
    [DATA_SAFETENSORS] = {FOLDER_OR_FILE, tensors_open, {0, 0, 0, 0, 0}, DATA_VALUES_AUTO},
    [DATA_CALLBACK] = {NOWHERE, callback_open, {0, 0, 0, 0, 0}, DATA_VALUES_AUTO},
};

int data_kind_is_own(enum data_kind kind)
{
    return kinds[kind].shape.channels == 0;
}

struct data_shape data_shape_of(const struct data_spec *spec)
{
    struct data_shape shape = data_kind_is_own(spec->kind) ? spec->shape : kinds[spec->kind].shape;
    if (spec->kind == DATA_CIFAR100 && spec->labels == DATA_COARSE) {
        shape.classes = CIFAR100_COARSE;
    }
    return shape;
}

enum data_values data_values_of(const struct data_spec *spec)
{
    return spec->values != DATA_VALUES_AUTO ? spec->values : kinds[spec->kind].values;
}

static int check_place(const char *path, enum place place, struct ms_err *err)
{
    struct stat st;
    int rc = data_path_check(path, err);
    if (rc < 0) {
        return rc;
    }
    if (stat(path, &st) != 0) {
        return errno == EACCES
                   ? data_open_fail(path, err)
                   : ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO,
                                   "data set %.200s cannot be opened; check dataset.path", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        return place == FOLDER_OR_FILE ? MS_OK
                                       : ms_fail(err, MS_E_INVALID,
                                                 "data set %.200s is no folder; dataset.path names "
                                                 "the folder with the files",
                                                 path);
    }
    /* else its files would seem to be missing */
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? MS_OK : data_open_fail(path, err);
}

int data_check_shape(const char *name, const struct data_info *info, struct ms_err *err)
{
    const int is_image = info->height > 1 || info->width > 1;
    const int64_t most = MS_FEATURES_MAX;
    if (info->rows > MS_DATA_ROWS_MAX) {
        return ms_fail(err, MS_E_INVALID, "%.160s has %lld records; at most %d are read", name,
                       (long long)info->rows, MS_DATA_ROWS_MAX);
    }
    if (info->height > MS_IMAGE_SIDE_MAX || info->width > MS_IMAGE_SIDE_MAX ||
        info->channels > most / (info->height * info->width)) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has records of %lldx%lldx%lld; sides are from 1 to %d, values of a "
                       "%s at most %lld",
                       name, (long long)info->channels, (long long)info->height,
                       (long long)info->width, MS_IMAGE_SIDE_MAX, is_image ? "image" : "record",
                       (long long)most);
    }
    if (info->target_width > MS_CLASSES_MAX) {
        return ms_fail(err, MS_E_INVALID, "%.160s has %lld targets a row; at most %d are read",
                       name, (long long)info->target_width, MS_CLASSES_MAX);
    }
    return MS_OK;
}

int data_check_values(const char *path, const struct data_info *info, enum data_values want,
                      struct ms_err *err)
{
    static const char *const names[] = {
        [DATA_BYTES] = "bytes (uint8)", [DATA_NUMBERS] = "numbers (float32)"};
    const enum data_values have = info->dtype == MS_U8 ? DATA_BYTES : DATA_NUMBERS;
    return want == DATA_VALUES_AUTO || want == have
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "data set %.140s has %s, and what is trained on %s; the same transforms "
                         "are for both: give both the same type, and the same range",
                         path, names[have], names[want]);
}

/* Is what the files hold what the job says? */
static int check_expected(const struct data_spec *spec, const char *path,
                          const struct data_info *info, struct ms_err *err)
{
    const struct data_shape *want = &spec->shape;
    if (!data_kind_is_own(spec->kind)) {
        return MS_OK;
    }
    if (want->channels > 0 && (want->channels != info->channels || want->height != info->height ||
                               want->width != info->width)) {
        return ms_fail(err, MS_E_INVALID,
                       "data set %.140s has records of %lldx%lldx%lld, and the job says "
                       "%lldx%lldx%lld (dataset.shape); leave the key out, or give the right data",
                       path, (long long)info->channels, (long long)info->height,
                       (long long)info->width, (long long)want->channels, (long long)want->height,
                       (long long)want->width);
    }
    if ((want->target_width > 0 && want->target_width != info->target_width) ||
        (want->classes > 0 && want->classes != info->classes)) {
        return ms_fail(err, MS_E_INVALID,
                       "data set %.140s has %lld %s, and the job says %lld (dataset.%s); leave the "
                       "key out, or give the right data",
                       path, (long long)(info->classes > 0 ? info->classes : info->target_width),
                       info->classes > 0 ? "classes" : "numbers a row as targets",
                       (long long)(want->classes > 0 ? want->classes : want->target_width),
                       want->classes > 0 ? "classes" : "target_width");
    }
    return MS_OK;
}

/* A split would train on the test that the user made. */
static int check_unparted(const struct data_spec *spec, const char *path, struct ms_err *err)
{
    struct data_parts parts;
    const int has_arrays = spec->kind == DATA_NUMPY || spec->kind == DATA_SAFETENSORS;
    const int rc = data_parts_at(spec, path, &parts, err);
    return rc < 0 || (parts.usages & 1U << DATA_TEST) == 0
               ? rc
               : ms_fail(err, MS_E_INVALID,
                         "data set %.120s has parts of its own (%.100s), and dataset.split makes "
                         "parts of what has none; leave the key out, or name one of them (%s)",
                         path, parts.names,
                         parts.of_test[0] == '\0' && has_arrays ? "dataset.inputs and targets"
                                                                : "dataset.path");
}

/* Where it is split, the file of both parts is that of the training; a program has all records. */
static int open_kind(const struct data_spec *spec, const char *path, struct data_source **ret,
                     struct ms_err *err)
{
    struct data_source *whole = NULL;
    const int is_split = spec->has_split && data_kind_is_own(spec->kind);
    struct data_spec of = *spec;
    of.usage = !is_split ? spec->usage : spec->kind == DATA_PROGRAM ? DATA_ALL : DATA_TRAIN;
    int rc = is_split ? check_unparted(spec, path, err) : MS_OK;
    rc = rc < 0 ? rc : kinds[spec->kind].open(&of, path, is_split ? &whole : ret, err);
    return rc == MS_OK && is_split ? split_open(spec, path, whole, ret, err) : rc;
}

int data_open(const struct data_spec *spec, struct data_source **ret, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1] = "";
    int rc = MS_OK;
    struct data_source *source = NULL;
    if (spec->kind < DATA_CIFAR10 || (size_t)spec->kind >= MS_ARRAY_SIZE(kinds)) {
        return ms_fail(err, MS_E_INVALID, "data set kind %d is not known", (int)spec->kind);
    }
    if (kinds[spec->kind].place != NOWHERE) {
        rc = data_path_expand(spec->path, path, sizeof(path), err);
        if (rc == MS_OK && kinds[spec->kind].place != PROGRAM) { /* which judges it by itself */
            rc = check_place(path, kinds[spec->kind].place, err);
        }
    }
    if (rc == MS_OK) {
        rc = open_kind(spec, path, &source, err);
    }
    if (rc == MS_OK) {
        rc = check_expected(spec, path, &source->info, err);
    }
    if (rc == MS_OK) {
        rc = data_check_values(path, &source->info, spec->values, err);
    }
    if (rc < 0) {
        data_close(source);
        data_path_hide(path, spec->path, err);
        return rc;
    }
    *ret = source;
    return MS_OK;
}

enum data_values data_find_values(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    enum data_values values = data_values_of(spec);
    const int has_arrays = spec->kind == DATA_NUMPY || spec->kind == DATA_SAFETENSORS;
    if (values == DATA_VALUES_AUTO && has_arrays && data_open(spec, &source, NULL) == MS_OK) {
        values = source->info.dtype == MS_U8 ? DATA_BYTES : DATA_NUMBERS;
        data_close(source);
    }
    return values;
}

void data_close(struct data_source *source)
{
    if (source != NULL) {
        source->close(source);
    }
}

const struct data_info *data_get_info(const struct data_source *source)
{
    return &source->info;
}

int data_read(struct data_source *source, int64_t row, struct data_record *ret, struct ms_err *err)
{
    if (row < 0 || row >= source->info.rows) {
        return ms_fail(err, MS_E_INVALID, "record %lld of a data set with %lld", (long long)row,
                       (long long)source->info.rows);
    }
    return source->read(source, row, ret, err);
}

int data_expect(struct data_source *source, int64_t row, uint64_t epoch, uint64_t seed,
                struct ms_err *err)
{
    return source->expect != NULL ? source->expect(source, row, epoch, seed, err) : MS_OK;
}

void data_forget(struct data_source *source)
{
    if (source->forget != NULL) {
        source->forget(source);
    }
}

void data_interrupt(struct data_source *source)
{
    if (source->interrupt != NULL) {
        source->interrupt(source);
    }
}

int data_hear(struct data_source *source, char *buf, size_t size)
{
    return source->hear != NULL ? source->hear(source, buf, size) : 0;
}

void data_finish(struct data_source *source)
{
    if (source->finish != NULL) {
        source->finish(source);
    }
}

void data_name_record(const struct data_source *source, int64_t row, char *buf, size_t size)
{
    if (source->name != NULL) {
        source->name(source, row, buf, size);
    } else {
        snprintf(buf, size, "record %lld of the data set", (long long)row);
    }
}

int data_reader_create(struct data_source *source, struct data_reader **ret, struct ms_err *err)
{
    assert(source->info.is_decoded);
    return source->reader_create(source, ret, err);
}

void data_reader_destroy(struct data_reader *reader)
{
    if (reader != NULL) {
        reader->destroy(reader);
    }
}

int data_reader_read(struct data_reader *reader, int64_t row, struct data_record *ret,
                     struct ms_err *err)
{
    assert(row >= 0 && row < reader->source->info.rows);
    return reader->read(reader, row, ret, err);
}

int data_verify(struct data_source *source, struct ms_err *err)
{
    return source->verify != NULL ? source->verify(source, err) : MS_OK;
}

int64_t data_in_memory(const struct data_source *source)
{
    return source->in_memory != NULL ? source->in_memory(source) : 0;
}

void data_keep_decoded(struct data_source *source, int64_t bytes_max)
{
    if (source->keep_decoded != NULL) {
        source->keep_decoded(source, bytes_max);
    }
}

int64_t data_decoded_count(const struct data_source *source)
{
    return source->decoded_count != NULL ? source->decoded_count(source) : 0;
}

int source_pread(int fd, void *dst, size_t size, int64_t offset, const char *name,
                 struct ms_err *err)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, (char *)dst + done, size - done, offset + (int64_t)done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return ms_fail_errno(err, MS_E_IO, "%.200s cannot be read at byte %lld", name,
                                 (long long)offset);
        }
        if (got == 0) {
            return ms_fail(err, MS_E_IO,
                           "%.200s ends before byte %lld: it became shorter since it was opened",
                           name, (long long)(offset + (int64_t)size));
        }
        done += (size_t)got;
    }
    return MS_OK;
}
