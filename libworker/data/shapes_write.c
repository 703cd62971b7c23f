/* shapes_write.c - the drawn shapes as files in CIFAR-10's binary layout */
#include "libworker/data/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS_PER_FILE = 10000, REPORT_EVERY = 500 };

struct writing {
    const char *directory;
    uint64_t seed;
    int64_t done, total;
    void (*progress)(void *arg, int64_t done, int64_t total);
    void *arg;
    struct ms_err *err;
};

static int write_rows(struct writing *w, FILE *file, int is_test, int64_t first, int64_t rows)
{
    uint8_t record[CIFAR_RECORD];
    for (int64_t i = 0; i < rows; i++) {
        shapes_draw(w->seed, is_test, first + i, record);
        if (fwrite(record, sizeof(record), 1, file) != 1) {
            return MS_E_IO;
        }
        w->done++;
        if (w->progress != NULL && (w->done % REPORT_EVERY == 0 || w->done == w->total)) {
            w->progress(w->arg, w->done, w->total);
        }
    }
    return MS_OK;
}

static int write_names(FILE *file)
{
    for (int label = 0; shapes_class_name(label) != NULL; label++) {
        if (fprintf(file, "%s\n", shapes_class_name(label)) < 0) {
            return MS_E_IO;
        }
    }
    return fputc('\n', file) == EOF ? MS_E_IO : MS_OK; /* CIFAR-10's own ends in an empty line */
}

/* Under a temporary name first: a reader never sees half a file. rows < 0: the class names. */
static int write_file(struct writing *w, const char *name, int is_test, int64_t first, int64_t rows)
{
    char path[MS_PATH_MAX + 64];
    char temporary[MS_PATH_MAX + 72];
    snprintf(path, sizeof(path), "%s/%s", w->directory, name);
    snprintf(temporary, sizeof(temporary), "%s.part", path);
    FILE *file = fopen(temporary, "wbe");
    if (file == NULL) {
        return ms_fail_errno(w->err, MS_E_IO, "%.200s cannot be written", temporary);
    }
    int rc = rows < 0 ? write_names(file) : write_rows(w, file, is_test, first, rows);
    if (fclose(file) != 0 || rc < 0 || rename(temporary, path) != 0) {
        rc = ms_fail_errno(w->err, MS_E_IO, "%.200s cannot be written", path);
        unlink(temporary);
    }
    return rc;
}

int data_write_shapes(const char *directory, int64_t train, int64_t test, uint64_t seed,
                      void (*progress)(void *arg, int64_t done, int64_t total), void *arg,
                      struct ms_err *err)
{
    struct writing w = {directory, seed, 0, train + test, progress, arg, err};
    if (train < 1 || test < 1 || strlen(directory) > MS_PATH_MAX) {
        return ms_fail(err, MS_E_INVALID,
                       "shapes in %.120s: at least one image to train and one to test on",
                       directory);
    }
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        return ms_fail_errno(err, MS_E_IO, "folder %.200s cannot be made", directory);
    }
    int rc = write_file(&w, "batches.meta.txt", 0, 0, -1);
    for (int64_t first = 0; rc == MS_OK && first < train; first += ROWS_PER_FILE) {
        char name[48];
        snprintf(name, sizeof(name), "data_batch_%lld.bin", (long long)(first / ROWS_PER_FILE + 1));
        int64_t rows = train - first < ROWS_PER_FILE ? train - first : ROWS_PER_FILE;
        rc = write_file(&w, name, 0, first, rows);
    }
    if (rc == MS_OK) {
        rc = write_file(&w, "test_batch.bin", 1, 0, test);
    }
    return rc;
}
