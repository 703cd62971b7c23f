/* cifar10.c - CIFAR-10, binary version: records of a label and 3 x 32 x 32 bytes, nothing between
 *
 * Format: https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version". Read record by record with
 * pread: eight ranks on a host share the page cache, and nobody's RSS holds 180 MB. */
#include "libworker/data/path.h"
#include "libworker/data/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CIFAR_FILES_MAX = 256, CIFAR_CLASSES = 10 };

struct cifar_file {
    char *path;
    int fd;
    int64_t first, rows; /* of the whole source */
};

struct cifar10 {
    struct data_source base;
    struct cifar_file file[CIFAR_FILES_MAX];
    size_t n_files;
    uint8_t record[CIFAR_RECORD]; /* that was read last */
};

static const char *const name_part[] = {
    [DATA_TRAIN] = "data_batch", [DATA_TEST] = "test_batch", [DATA_ALL] = "batch"};

static void cifar_close(struct data_source *source)
{
    struct cifar10 *set = (struct cifar10 *)source;
    for (size_t i = 0; i < set->n_files; i++) {
        free(set->file[i].path);
        if (set->file[i].fd >= 0) {
            close(set->file[i].fd);
        }
    }
    free(set);
}

static int cifar_read(struct data_source *source, int64_t row, struct data_record *ret,
                      struct ms_err *err)
{
    struct cifar10 *set = (struct cifar10 *)source;
    size_t i = 0;
    while (row >= set->file[i].first + set->file[i].rows) {
        i++;
    }
    const struct cifar_file *file = &set->file[i];
    int64_t record = row - file->first;
    uint8_t *bytes = set->record;
    int rc = source_pread(file->fd, bytes, CIFAR_RECORD, record * CIFAR_RECORD, file->path, err);
    if (rc < 0) {
        return rc;
    }
    if (bytes[0] >= CIFAR_CLASSES) {
        return ms_fail(err, MS_E_INVALID,
                       "%.200s: record %lld has label %d, CIFAR-10 has 0 to 9: the file is damaged "
                       "or no CIFAR-10 (CIFAR-100 has two label bytes); get cifar-10-binary.tar.gz "
                       "again",
                       file->path, (long long)record, bytes[0]);
    }
    *ret = (struct data_record){.values = bytes + 1, .label = bytes[0]};
    return MS_OK;
}

/* ---- finding the files ---- */

static int is_wanted(const char *name, enum data_usage usage)
{
    size_t length = strlen(name);
    return name[0] != '.' && length > 4 && strcmp(name + length - 4, ".bin") == 0 &&
           strstr(name, name_part[usage]) != NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct cifar_file *)a)->path, ((const struct cifar_file *)b)->path);
}

static int add_file(struct cifar10 *set, const char *directory, const char *name,
                    struct ms_err *err)
{
    if (set->n_files == CIFAR_FILES_MAX) {
        return ms_fail(err, MS_E_FULL,
                       "data set %.160s has more than %d files with 'batch' in the "
                       "name; give the folder of one data set",
                       directory, CIFAR_FILES_MAX);
    }
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);
    if (path == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set %.160s: no memory", directory);
    }
    snprintf(path, size, "%s/%s", directory, name);
    set->file[set->n_files++] = (struct cifar_file){.path = path, .fd = -1};
    return MS_OK;
}

/* What people have instead of the binary version, with the way out. */
static int fail_nothing(const char *directory, enum data_usage usage, int has_python, int has_inner,
                        struct ms_err *err)
{
    if (has_inner) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "data set %.160s has no *%s*.bin, but a folder cifar-10-batches-bin inside; "
                       "give that one as dataset.path",
                       directory, name_part[usage]);
    }
    if (has_python) {
        return ms_fail(
            err, MS_E_NOT_FOUND,
            "data set %.160s is CIFAR-10's Python version (batches without .bin); get the "
            "binary version, cifar-10-binary.tar.gz",
            directory);
    }
    return ms_fail(
        err, MS_E_NOT_FOUND,
        "data set %.160s has no *%s*.bin file; get cifar-10-binary.tar.gz, unpack it and "
        "give the folder cifar-10-batches-bin as dataset.path",
        directory, name_part[usage]);
}

static int find_files(struct cifar10 *set, const char *directory, enum data_usage usage,
                      struct ms_err *err)
{
    DIR *dir = opendir(directory);
    if (dir == NULL) {
        return data_open_fail(directory, err);
    }
    int rc = MS_OK;
    int has_python = 0;
    int has_inner = 0;
    for (const struct dirent *entry; rc == MS_OK && (entry = readdir(dir)) != NULL;) {
        has_python |= strcmp(entry->d_name, "data_batch_1") == 0;
        has_inner |= strcmp(entry->d_name, "cifar-10-batches-bin") == 0;
        if (is_wanted(entry->d_name, usage)) {
            rc = add_file(set, directory, entry->d_name, err);
        }
    }
    closedir(dir);
    if (rc == MS_OK && set->n_files == 0) {
        rc = fail_nothing(directory, usage, has_python, has_inner, err);
    }
    qsort(set->file, set->n_files, sizeof(set->file[0]), compare_names);
    return rc;
}

static int open_file(struct cifar_file *file, struct ms_err *err)
{
    struct stat st;
    int rc = data_file_open(file->path, &file->fd, err);
    if (rc < 0) {
        return rc;
    }
    if (fstat(file->fd, &st) != 0) {
        return ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", file->path);
    }
    if (st.st_size == 0 || st.st_size % CIFAR_RECORD != 0) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.160s has %lld bytes, which is no whole number of records of %d: it is "
            "truncated or no CIFAR-10; get cifar-10-binary.tar.gz again (each file there "
            "has 30730000 bytes)",
            file->path, (long long)st.st_size, CIFAR_RECORD);
    }
    file->rows = st.st_size / CIFAR_RECORD;
    return MS_OK;
}

int cifar10_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                 struct ms_err *err)
{
    struct cifar10 *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    set->base = (struct data_source){
        .info = {.channels = 3,
                 .height = CIFAR_SIDE,
                 .width = CIFAR_SIDE,
                 .dtype = MS_U8,
                 .classes = CIFAR_CLASSES},
        .read = cifar_read,
        .close = cifar_close,
    };
    int rc = find_files(set, path, spec->usage, err);
    for (size_t i = 0; i < set->n_files && rc == MS_OK; i++) {
        rc = open_file(&set->file[i], err);
        set->file[i].first = set->base.info.rows;
        set->base.info.rows += set->file[i].rows;
    }
    if (rc < 0) {
        cifar_close(&set->base);
        return rc;
    }
    *ret = &set->base;
    return MS_OK;
}
