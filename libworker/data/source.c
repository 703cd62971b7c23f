/* source.c - opens a data set by its kind */
#include "libworker/data/source.h"

#include "libworker/data/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    int has_path;
    int (*open)(const struct data_spec *spec, const char *path, struct data_source **ret,
                struct ms_err *err);
} kinds[] = {
    [DATA_CIFAR10] = {1, cifar10_open},
    [DATA_MNIST] = {1, mnist_open},
    [DATA_NONLINEAR] = {0, nonlinear_open},
    [DATA_SHAPES] = {0, shapes_open},
};

static int check_directory(const char *path, struct ms_err *err)
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
        return ms_fail(err, MS_E_INVALID,
                       "data set %.200s is no folder; dataset.path names the folder with the files",
                       path);
    }
    /* else its files would seem to be missing */
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? MS_OK : data_open_fail(path, err);
}

int data_open(const struct data_spec *spec, struct data_source **ret, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1] = "";
    int rc = MS_OK;
    if (spec->kind < DATA_CIFAR10 || spec->kind > DATA_SHAPES) {
        return ms_fail(err, MS_E_INVALID, "data set kind %d is not known", (int)spec->kind);
    }
    if (kinds[spec->kind].has_path) {
        rc = data_path_expand(spec->path, path, sizeof(path), err);
        if (rc == MS_OK) {
            rc = check_directory(path, err);
        }
    }
    if (rc == MS_OK) {
        rc = kinds[spec->kind].open(spec, path, ret, err);
    }
    if (rc < 0) {
        data_path_hide(path, spec->path, err);
    }
    return rc;
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

int data_verify(struct data_source *source, struct ms_err *err)
{
    return source->verify != NULL ? source->verify(source, err) : MS_OK;
}

int64_t data_in_memory(const struct data_source *source)
{
    return source->in_memory != NULL ? source->in_memory(source) : 0;
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
