/* mnist.c - MNIST: pairs of IDX files with images (28 x 28) and labels, plain or .gz */
#include "libworker/data/idx.h"
#include "libworker/data/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MNIST_SIDE = 28, MNIST_PIXELS = MNIST_SIDE * MNIST_SIDE, MNIST_CLASSES = 10, PARTS_MAX = 2 };

struct mnist_part {
    struct idx *images;
    uint8_t *labels;
    int64_t first, rows;
};

struct mnist {
    struct data_source base;
    struct mnist_part part[PARTS_MAX];
    int n_parts;
    uint8_t pixels[MNIST_PIXELS]; /* of the record that was read last */
};

static void mnist_close(struct data_source *source)
{
    struct mnist *set = (struct mnist *)source;
    for (int i = 0; i < PARTS_MAX; i++) {
        idx_close(set->part[i].images);
        free(set->part[i].labels);
    }
    free(set);
}

static int mnist_read(struct data_source *source, int64_t row, struct data_record *ret,
                      struct ms_err *err)
{
    struct mnist *set = (struct mnist *)source;
    struct mnist_part *part = &set->part[0];
    if (row >= part->first + part->rows) {
        part = &set->part[1];
    }
    int rc = idx_read(part->images, row - part->first, set->pixels, err);
    if (rc < 0) {
        return rc;
    }
    *ret = (struct data_record){.values = set->pixels, .label = part->labels[row - part->first]};
    return MS_OK;
}

static int mnist_verify(struct data_source *source, struct ms_err *err)
{
    struct mnist *set = (struct mnist *)source;
    int rc = MS_OK;
    for (int i = 0; rc == MS_OK && i < set->n_parts; i++) {
        rc = idx_verify(set->part[i].images, err);
    }
    return rc;
}

/* Images as far as a packed file gives them at once; labels are there already, and few sets have
 * more of them than count. */
static int mnist_identify(struct data_source *source, struct sum *sum, struct ms_err *err)
{
    struct mnist *set = (struct mnist *)source;
    int rc = MS_OK;
    for (int i = 0; rc == MS_OK && i < set->n_parts; i++) {
        const struct mnist_part *part = &set->part[i];
        sum_add(sum, &part->rows, sizeof(part->rows));
        sum_add(sum, part->labels, (size_t)(part->rows < IDX_FRONT ? part->rows : IDX_FRONT));
        rc = idx_add_front(part->images, sum, err);
    }
    return rc;
}

static int64_t mnist_in_memory(const struct data_source *source)
{
    const struct mnist *set = (const struct mnist *)source;
    int64_t bytes = 0;
    for (int i = 0; i < set->n_parts; i++) {
        bytes += idx_in_memory(set->part[i].images);
    }
    return bytes;
}

struct part_name {
    enum data_usage usage;
    const char *prefix; /* of its files */
    const char *folder; /* in MindSpore's MNIST_Data.zip, which keeps the parts apart */
};

/* The file's path in buf; 0 where there is none. Names as published, and as some archives spell
 * them; in the folder itself, below it, or beside it. */
static int find_path(const char *directory, const struct part_name *name, const char *what,
                     int n_dims, char *buf, size_t size)
{
    const char *const between[] = {"", "/", "/../"};
    for (size_t place = 0; place < MS_ARRAY_SIZE(between); place++) {
        for (int i = 0; i < 4; i++) {
            snprintf(buf, size, "%s%s%s/%s-%s%cidx%d-ubyte%s", directory, between[place],
                     place > 0 ? name->folder : "", name->prefix, what, i < 2 ? '-' : '.', n_dims,
                     i % 2 == 1 ? ".gz" : "");
            if (access(buf, F_OK) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

static int find_file(const char *directory, const struct part_name *name, const char *what,
                     int n_dims, struct idx **ret, struct ms_err *err)
{
    char path[MS_PATH_MAX + 64];
    const char *prefix = name->prefix;
    if (find_path(directory, name, what, n_dims, path, sizeof(path))) {
        return idx_open(path, n_dims, ret, err);
    }
    return ms_fail(
        err, MS_E_NOT_FOUND,
        "data set %.160s has no %s-%s-idx%d-ubyte, neither plain nor .gz; put MNIST's four "
        "files there or give their folder as dataset.path",
        directory, prefix, what, n_dims);
}

static int is_there(const char *directory, const struct part_name *name)
{
    char path[MS_PATH_MAX + 64];
    return find_path(directory, name, "images", 3, path, sizeof(path));
}

static int read_labels(struct mnist_part *part, struct idx *labels, struct ms_err *err)
{
    part->labels = malloc((size_t)part->rows);
    if (part->labels == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory for its labels", idx_path(labels));
    }
    for (int64_t i = 0; i < part->rows; i++) {
        int rc = idx_read(labels, i, &part->labels[i], err);
        if (rc < 0) {
            return rc;
        }
        if (part->labels[i] >= MNIST_CLASSES) {
            return ms_fail(
                err, MS_E_INVALID,
                "%.200s: record %lld has label %d, MNIST has 0 to 9: the file is damaged "
                "or of another data set; get it again",
                idx_path(labels), (long long)i, part->labels[i]);
        }
    }
    return MS_OK;
}

static int open_part(struct mnist_part *part, const char *directory, const struct part_name *name,
                     struct ms_err *err)
{
    struct idx *labels = NULL;
    int rc = find_file(directory, name, "images", 3, &part->images, err);
    if (rc == MS_OK) {
        rc = find_file(directory, name, "labels", 1, &labels, err);
    }
    if (rc < 0) {
        goto out;
    }
    part->rows = idx_dim(part->images, 0);
    if (idx_dim(part->images, 1) != MNIST_SIDE || idx_dim(part->images, 2) != MNIST_SIDE) {
        rc = ms_fail(err, MS_E_INVALID, "%.200s has images of %lldx%lld; MNIST has 28x28",
                     idx_path(part->images), (long long)idx_dim(part->images, 1),
                     (long long)idx_dim(part->images, 2));
    } else if (idx_dim(labels, 0) != part->rows) {
        rc =
            ms_fail(err, MS_E_INVALID,
                    "%.160s has %lld labels for the %lld images beside it: the files do not belong "
                    "together",
                    idx_path(labels), (long long)idx_dim(labels, 0), (long long)part->rows);
    } else {
        rc = read_labels(part, labels, err);
    }
out:
    idx_close(labels);
    return rc;
}

int mnist_open(const struct data_spec *spec, const char *path, struct data_source **ret,
               struct ms_err *err)
{
    struct mnist *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    set->base = (struct data_source){
        .info = {.channels = 1,
                 .height = MNIST_SIDE,
                 .width = MNIST_SIDE,
                 .dtype = MS_U8,
                 .classes = MNIST_CLASSES},
        .read = mnist_read,
        .verify = mnist_verify,
        .identify = mnist_identify,
        .in_memory = mnist_in_memory,
        .close = mnist_close,
    };
    static const struct part_name parts[] = {
        {DATA_TEST, "t10k", "test"},
        {DATA_TRAIN, "train", "train"}}; /* sorted, as MindSpore does */
    int rc = MS_OK;
    for (size_t i = 0; i < MS_ARRAY_SIZE(parts) && rc == MS_OK; i++) {
        if (spec->usage != DATA_ALL && spec->usage != parts[i].usage) {
            continue;
        }
        if (spec->usage == DATA_ALL && !is_there(path, &parts[i]) &&
            is_there(path, &parts[1 - i])) {
            continue; /* all that there is: a folder of one part has one */
        }
        struct mnist_part *part = &set->part[set->n_parts];
        rc = open_part(part, path, &parts[i], err);
        part->first = set->base.info.rows;
        set->base.info.rows += part->rows;
        set->base.info.copied_bytes += rc == MS_OK ? idx_copied(part->images) : 0;
        set->n_parts++;
    }
    if (rc < 0) {
        mnist_close(&set->base);
        return rc;
    }
    *ret = &set->base;
    return MS_OK;
}
