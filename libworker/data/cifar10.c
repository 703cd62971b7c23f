/* cifar10.c - CIFAR-10 and CIFAR-100, binary versions: records of a label (CIFAR-100: a coarse and
 * a fine one) and 3 x 32 x 32 bytes, nothing between
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

enum { CIFAR_FILES_MAX = 256, CIFAR_RECORD_MAX = 2 + CIFAR_PIXELS };

static const struct layout {
    const char *name, *archive, *folder,
        *python;         /* python: a file of the version that is not this */
    int labels;          /* bytes before the pixels; the last one is the fine label */
    int classes[2];      /* of enum data_labels */
    const char *part[3]; /* in names of files, by usage */
} cifar10 = {"CIFAR-10",
             "cifar-10-binary.tar.gz",
             "cifar-10-batches-bin",
             "data_batch_1",
             1,
             {[DATA_FINE] = 10},
             {[DATA_TRAIN] = "data_batch", [DATA_TEST] = "test_batch", [DATA_ALL] = "batch"}},
  cifar100 = {"CIFAR-100",
              "cifar-100-binary.tar.gz",
              "cifar-100-binary",
              "train",
              2,
              {[DATA_FINE] = 100, [DATA_COARSE] = CIFAR100_COARSE},
              {[DATA_TRAIN] = "train", [DATA_TEST] = "test", [DATA_ALL] = "t"}};

struct cifar_file {
    char *path;
    int fd;
    int64_t first, rows; /* of the whole source */
};

struct cifar {
    struct data_source base;
    struct cifar_file file[CIFAR_FILES_MAX];
    size_t n_files;
    const struct layout *layout;
    enum data_labels labels;
    int64_t record_size;
    uint8_t record[CIFAR_RECORD_MAX]; /* that was read last */
};

static void cifar_close(struct data_source *source)
{
    struct cifar *set = (struct cifar *)source;
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
    struct cifar *set = (struct cifar *)source;
    size_t i = 0;
    while (row >= set->file[i].first + set->file[i].rows) {
        i++;
    }
    const struct layout *layout = set->layout;
    const struct cifar_file *file = &set->file[i];
    int64_t record = row - file->first;
    uint8_t *bytes = set->record;
    int rc = source_pread(file->fd, bytes, (size_t)set->record_size, record * set->record_size,
                          file->path, err);
    if (rc < 0) {
        return rc;
    }
    const int classes = layout->classes[set->labels];
    const int label = bytes[set->labels == DATA_COARSE ? 0 : layout->labels - 1];
    if (label >= classes) {
        return ms_fail(
            err, MS_E_INVALID,
            "%.200s: record %lld has label %d, %s has 0 to %d: the file is damaged or of "
            "another data set%s; get %s again",
            file->path, (long long)record, label, layout->name, classes - 1,
            layout == &cifar10 ? " (CIFAR-100 has two label bytes)" : "", layout->archive);
    }
    *ret = (struct data_record){.values = bytes + layout->labels, .label = label};
    return MS_OK;
}

/* ---- finding the files ---- */

static int is_wanted(const char *name, const char *part)
{
    size_t length = strlen(name);
    return name[0] != '.' && length > 4 && strcmp(name + length - 4, ".bin") == 0 &&
           strstr(name, part) != NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct cifar_file *)a)->path, ((const struct cifar_file *)b)->path);
}

static int add_file(struct cifar *set, const char *directory, const char *name, struct ms_err *err)
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
static int fail_nothing(const char *directory, const struct layout *layout, const char *part,
                        int has_python, int has_inner, struct ms_err *err)
{
    if (has_inner) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "data set %.160s has no *%s*.bin, but a folder %s inside; give that one as "
                       "dataset.path",
                       directory, part, layout->folder);
    }
    if (has_python) {
        return ms_fail(
            err, MS_E_NOT_FOUND,
            "data set %.160s is %s's Python version (files without .bin); get the binary "
            "version, %s",
            directory, layout->name, layout->archive);
    }
    return ms_fail(err, MS_E_NOT_FOUND,
                   "data set %.160s has no *%s*.bin file; get %s, unpack it and give the folder %s "
                   "as dataset.path",
                   directory, part, layout->archive, layout->folder);
}

static int find_files(struct cifar *set, const char *directory, enum data_usage usage,
                      struct ms_err *err)
{
    const struct layout *layout = set->layout;
    DIR *dir = opendir(directory);
    if (dir == NULL) {
        return data_open_fail(directory, err);
    }
    int rc = MS_OK;
    int has_python = 0;
    int has_inner = 0;
    for (const struct dirent *entry; rc == MS_OK && (entry = readdir(dir)) != NULL;) {
        has_python |= strcmp(entry->d_name, layout->python) == 0;
        has_inner |= strcmp(entry->d_name, layout->folder) == 0;
        if (is_wanted(entry->d_name, layout->part[usage])) {
            rc = add_file(set, directory, entry->d_name, err);
        }
    }
    closedir(dir);
    if (rc == MS_OK && set->n_files == 0) {
        rc = fail_nothing(directory, layout, layout->part[usage], has_python, has_inner, err);
    }
    qsort(set->file, set->n_files, sizeof(set->file[0]), compare_names);
    return rc;
}

static int open_file(const struct cifar *set, struct cifar_file *file, struct ms_err *err)
{
    struct stat st;
    int rc = data_file_open(file->path, &file->fd, err);
    if (rc < 0) {
        return rc;
    }
    if (fstat(file->fd, &st) != 0) {
        return ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", file->path);
    }
    if (st.st_size == 0 || st.st_size % set->record_size != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has %lld bytes, which is no whole number of records of %lld: it is "
                       "truncated or "
                       "no %s; get %s again%s",
                       file->path, (long long)st.st_size, (long long)set->record_size,
                       set->layout->name, set->layout->archive,
                       set->layout == &cifar10 ? " (each file there has 30730000 bytes)" : "");
    }
    file->rows = st.st_size / set->record_size;
    return MS_OK;
}

static int open_as(const struct layout *layout, const struct data_spec *spec, const char *path,
                   struct data_source **ret, struct ms_err *err)
{
    struct cifar *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    set->base = (struct data_source){
        .info = {.channels = 3,
                 .height = CIFAR_SIDE,
                 .width = CIFAR_SIDE,
                 .dtype = MS_U8,
                 .classes = layout->classes[spec->labels]},
        .read = cifar_read,
        .close = cifar_close,
    };
    set->layout = layout;
    set->labels = spec->labels;
    set->record_size = layout->labels + CIFAR_PIXELS;
    int rc = find_files(set, path, spec->usage, err);
    for (size_t i = 0; i < set->n_files && rc == MS_OK; i++) {
        rc = open_file(set, &set->file[i], err);
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

int cifar10_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                 struct ms_err *err)
{
    return open_as(&cifar10, spec, path, ret, err);
}

int cifar100_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                  struct ms_err *err)
{
    return open_as(&cifar100, spec, path, ret, err);
}
