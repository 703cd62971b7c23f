/* source.h - what the kinds of data sets share: one object with functions behind it */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "libworker/data/data.h"
#include "libworker/data/sum.h"

struct data_source { /* the first member of each kind's own struct */
    struct data_info info;
    int (*read)(struct data_source *source, int64_t row, struct data_record *ret,
                struct ms_err *err);
    int (*verify)(struct data_source *source, struct ms_err *err); /* NULL: nothing tells */
    /* What tells its records from others; NULL: some of them, where any can be had at once. */
    int (*identify)(struct data_source *source, struct sum *sum, struct ms_err *err);
    /* As data_expect and its like; NULL: they do nothing. */
    int (*expect)(struct data_source *source, int64_t row, uint64_t epoch, uint64_t seed,
                  struct ms_err *err);
    void (*forget)(struct data_source *source);
    void (*interrupt)(struct data_source *source);
    int (*hear)(struct data_source *source, char *buf, size_t size);
    void (*finish)(struct data_source *source);
    /* is_decoded: one that reads beside others. */
    int (*reader_create)(struct data_source *source, struct data_reader **ret, struct ms_err *err);
    /* Which file, and where in it, for errors about what a record holds; NULL: its number. */
    void (*name)(const struct data_source *source, int64_t row, char *buf, size_t size);
    void (*keep_decoded)(struct data_source *source, int64_t bytes_max); /* NULL: there is none */
    int64_t (*decoded_count)(const struct data_source *source);          /* likewise */
    int64_t (*in_memory)(const struct data_source *source); /* NULL: nothing is shared */
    void (*close)(
        struct data_source *source); /* frees the whole object; copes with a half-built one */
};

struct data_reader { /* the first member of each kind's own struct */
    struct data_source *source;
    int (*read)(struct data_reader *reader, int64_t row, struct data_record *ret,
                struct ms_err *err);
    void (*destroy)(struct data_reader *reader);
};

/* path is expanded already. Return owned. */
int cifar10_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                 struct ms_err *err);
int cifar100_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                  struct ms_err *err);
int mnist_open(const struct data_spec *spec, const char *path, struct data_source **ret,
               struct ms_err *err);
int nonlinear_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                   struct ms_err *err);
int shapes_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                struct ms_err *err);

int numpy_open(const struct data_spec *spec, const char *path, struct data_source **ret,
               struct ms_err *err);

/* A file of tensors, or of a folder that of the part. */
#define DATA_TENSORS_END ".safetensors"
int tensors_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                 struct ms_err *err);

int image_folder_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                      struct ms_err *err);
int csv_open(const struct data_spec *spec, const char *path, struct data_source **ret,
             struct ms_err *err);
/* What column_names of the spec's table are, by its first line alone; "": it has no header. */
int csv_find_columns(const struct data_spec *spec, const char *path,
                     char ret[DATA_COLUMN_NAMES_MAX + 1], struct ms_err *err);
/* Of what is opened beside a training: column_names, where its table has a header and does not say
 * them; an error where they are not to be had. */
int beside_take_columns(struct data_spec *of, const struct data_spec *train, struct ms_err *err);
int program_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                 struct ms_err *err);
int callback_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                  struct ms_err *err);
int text_open(const struct data_spec *spec, const char *path, struct data_source **ret,
              struct ms_err *err);

/* Of kinds that may have parts of their own: which, as data_find_parts, of path, which
 * is expanded. */
int numpy_parts(const struct data_spec *spec, const char *path, struct data_parts *ret,
                struct ms_err *err);
int image_folder_parts(const struct data_spec *spec, const char *path, struct data_parts *ret,
                       struct ms_err *err);
/* For them: one more part that is there. */
void data_parts_add(struct data_parts *parts, enum data_usage usage, const char *name);

/* data_find_parts of path, which is expanded. */
int data_parts_at(const struct data_spec *spec, const char *path, struct data_parts *ret,
                  struct ms_err *err);

/* The part that the spec says. Takes whole, also where it fails. */
int split_open(const struct data_spec *spec, const char *path, struct data_source *whole,
               struct data_source **ret, struct ms_err *err);

/* What a user's files may hold: sides, channels and targets within the limits. name: the file. */
int data_check_shape(const char *name, const struct data_info *info, struct ms_err *err);

/* plain.c: is it packed, a workbook, or UTF-16? MS_E_INVALID says how to make text of it. */
int data_check_plain(int fd, const char *path, struct ms_err *err);

/* ---- identity.c: for kinds that have an `identify` ---- */

enum { IDENTITY_RECORDS_MAX = 1024 };
/* The records that tell a set from others, rising; ret holds IDENTITY_RECORDS_MAX. Returns how
 * many.
 */
int64_t identity_rows(const struct data_info *info, int64_t *ret);
void identity_add_record(const struct data_info *info, const struct data_record *record,
                         struct sum *sum);

/* Draws record `row` of a part (train or test) as CIFAR-10 stores it: label, red, green, blue. */
enum {
    CIFAR_SIDE = 32,
    CIFAR_PIXELS = 3 * CIFAR_SIDE * CIFAR_SIDE,
    CIFAR_RECORD = 1 + CIFAR_PIXELS,
    CIFAR100_COARSE = 20 /* classes */
};
void shapes_draw(uint64_t seed, int is_test, int64_t row, uint8_t record[CIFAR_RECORD]);
const char *shapes_class_name(int label); /* NULL past the last */

/* Reads exactly size bytes at offset; name is for the error. */
int source_pread(int fd, void *dst, size_t size, int64_t offset, const char *name,
                 struct ms_err *err);

#endif
