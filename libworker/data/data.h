/* data.h - from files to batches: sources, transforms, sharding, order, prefetch
 *
 *     source (record i) -> transforms (seed, epoch, record) -> batch (n, c, h, w) floats, C order
 *
 * Pixels are bytes until a transform computes with them: they become floats once, on the way into
 * the batch.
 *
 * Order and augmentation are functions of (seed, epoch, record), never of a generator's hidden
 * state: a restarted rank sees what the dead one would have seen. Geometry and sharding are
 * MindSpore's (docs/design.md, "data"): every shard has ceil(rows / shards) samples, the last ones
 * wrap round; position `shards * i + shard` of one permutation that all ranks share. */
#ifndef DATA_H
#define DATA_H

#include "libworker/data/image.h"
#include "libworker/data/sum.h"
#include "proto/dtype.h"
#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

enum { DATA_SUM_BYTES = 16 };
enum data_kind {
    DATA_CIFAR10,
    DATA_MNIST,
    DATA_NONLINEAR,
    DATA_SHAPES,
    DATA_NUMPY,
    DATA_IMAGE_FOLDER,
    DATA_CSV,
    DATA_CIFAR100,
    DATA_PROGRAM,
    DATA_TEXT,
    DATA_CALLBACK,
    DATA_SAFETENSORS
};
enum data_usage { DATA_TRAIN, DATA_TEST, DATA_ALL };

/* Rows of the generators. Nonlinear: what 200 steps of two workers with batch 16 read once
 * (the reference runs); shapes: CIFAR-10's file. */
enum { DATA_NONLINEAR_ROWS = 6400, DATA_SHAPES_ROWS = 10000, DATA_SHAPES_TEST_ROWS = 2000 };

enum data_separator { DATA_COMMA, DATA_SEMICOLON, DATA_TAB };
enum data_target_kind { DATA_TARGET_AUTO, DATA_TARGET_CLASS, DATA_TARGET_NUMBER };
enum { /* bytes of lists of names */
       DATA_COLUMNS_MAX = 1023,
       DATA_CLASS_NAMES_MAX = 4095,
       DATA_COLUMN_NAMES_MAX = 8191, /* 784 of pixels have 7 KiB */
       DATA_ARGUMENTS_MAX = 1023
};
enum data_labels { DATA_FINE, DATA_COARSE };
enum data_colours { DATA_RGB, DATA_GREY };
enum data_values { DATA_VALUES_AUTO, DATA_BYTES, DATA_NUMBERS }; /* pixels are bytes */
enum data_layout { DATA_LAYOUT_AUTO, DATA_LAYOUT_NCHW, DATA_LAYOUT_NHWC };

/* What a record is. channels 0: not known; features: channels = features, 1 x 1. Either classes or
 * target_width is 0; both are: not known. */
struct data_shape {
    int64_t channels, height, width;
    int64_t classes;
    int64_t target_width;
};

/* Of what has no parts of its own: usage train is what a test of that share leaves. */
struct data_spec_split {
    double test; /* above 0 and below 1 */
    uint64_t seed;
};

/* Of kind callback: a function of this process makes the records. */
struct data_callback_record {
    int64_t row;          /* that is wanted */
    uint64_t epoch, seed; /* epoch from 0 */
    void *values;         /* to be filled: (c, h, w), of the callback's dtype */
    float *targets;       /* to be filled: target_width of them; NULL where there are classes */
    int32_t label;        /* to be filled where there are */
};
struct data_callback {
    /* 0, or why not. By one thread at a time, that of data_read. */
    int (*read)(void *arg, struct data_callback_record *record);
    void *arg;
    enum ms_dtype dtype;
};

/* A label that does not count, in losses as in what evaluations count. It need not be the number of
 * a class. */
struct data_ignored {
    int is_there;
    int32_t label;
};
int data_is_ignored(const struct data_ignored *ignored, int64_t label);

struct data_spec {
    enum data_kind kind;
    char path[MS_PATH_MAX + 1]; /* directory, of some kinds a file; ${NAME} expanded by data_open;
                                   "" for generators */
    enum data_usage usage;
    int shuffle;
    int64_t samples; /* generators: rows; 0: the kind's default, DATA_..._ROWS; callback: rows */
    uint64_t seed;   /* shapes: of the drawing; nonlinear: streams are fixed by the reference */
    struct data_shape shape; /* kinds whose files say it (data_kind_is_own): what they must hold;
                                others ignore it */
    int has_split;           /* of such kinds: all files are one set, in two parts */
    struct data_spec_split split;
    char inputs[MS_NAME_MAX + 1],
        targets[MS_NAME_MAX + 1]; /* numpy, safetensors: names of arrays; "": usual */
    enum data_layout layout;      /* ... of four dimensions */
    enum data_values values;      /* ... which they must hold; auto: either */
    int64_t height, width; /* image_folder: to which images are resized and cut; 0: all are alike */
    enum data_colours colours;            /* image_folder */
    int64_t tokens;                       /* text: of a window */
    char vocabulary[MS_PATH_MAX + 1];     /* text: a file of words, as path; "": tokens are bytes */
    char vocabulary_sum[MS_NAME_MAX + 1]; /* of the words that it must have; "": it may be any */
    /* csv, numpy, safetensors; no key of a job's: the records have no labels, and each gets the
     * first class, or zeros. For predictions: data_identify is not for such a source. */
    int has_no_labels;
    /* ... they may have none: errors of labels that are missing say so (--no-labels). */
    int may_lack_labels;
    /* No key of a data set, but the job's: such a label is none of the classes, and no error. */
    struct data_ignored ignored;
    /* csv */
    int has_header;
    enum data_separator separator;
    enum data_target_kind target_kind;
    char target[MS_NAME_MAX + 1];               /* a column; "": the last one */
    char columns[DATA_COLUMNS_MAX + 1];         /* features, LF between; "": all but the target */
    char class_names[DATA_CLASS_NAMES_MAX + 1]; /* of labels that are words, LF between; of
                                                   image_folder its folders, "": what is there; of
                                                   what is tested on, the trained classes' */
    /* Of the training's columns, LF between: features in their order, then the target; or a
     * checksum (csv_columns.h). Features are found by them. "": by columns. */
    char column_names[DATA_COLUMN_NAMES_MAX + 1];
    enum data_labels labels; /* cifar100: which of its two */
    /* program */
    char arguments[DATA_ARGUMENTS_MAX + 1]; /* LF between */
    int64_t timeout;                        /* seconds that it may be silent for, 1 and more */
    /* image_folder, no key: the folders of the classes that are trained, borrowed; no others may be
     * in what is tested on, and each may be missing there; NULL: its own (data_open_beside). */
    const char *const *trained;
    int64_t n_trained;
    /* callback: of this process, and in no job's text; borrowed; NULL: there is none here */
    const struct data_callback *callback;
};

/* Does what a record of the kind is stand in the files, not in the name of the kind? */
int data_kind_is_own(enum data_kind kind);
/* What records of the spec are, by the spec alone; of a kind that is its own, what it says. */
struct data_shape data_shape_of(const struct data_spec *spec);

/* What its values are, by the spec alone: those that it says, or its kind has. */
enum data_values data_values_of(const struct data_spec *spec);
/* The same, of arrays by their files where the spec does not say it and they are here. Starts no
 * program. */
enum data_values data_find_values(const struct data_spec *spec);

/* Which parts the files of the spec's place have by themselves, whatever its usage; none: all
 * usages read the same records. Kinds that are not own have none here. */
struct data_parts {
    unsigned usages;                /* bits 1 << DATA_TRAIN, 1 << DATA_TEST */
    char names[4 * MS_NAME_MAX];    /* for people: "x_train, x_test" */
    char of_train[MS_NAME_MAX + 1]; /* of folders: below the path, "train.csv"; "": path itself */
    char of_test[MS_NAME_MAX + 1];
};
/* Looks at names alone. Fails where the place is not to be had. */
int data_find_parts(const struct data_spec *spec, struct data_parts *ret, struct ms_err *err);

/* Do both read from one place, however it is written: through links, .. or ${NAME}? Of a folder
 * with a file or folder a part, that is the part. What is not to be had here is compared as text.
 */
enum data_place { DATA_OTHER_PLACE, DATA_SAME_PART, DATA_SAME_PATH };
enum data_place data_compare_places(const struct data_spec *a, const struct data_spec *b);

/* What is evaluated on is read by the columns that are trained on, names, where both files have a
 * header; its target, too, where it is the training's. */
void data_take_column_names(struct data_spec *data, const struct data_spec *train,
                            const char *names);

enum transform_kind {
    TRANSFORM_RANDOM_CROP,
    TRANSFORM_RANDOM_HORIZONTAL_FLIP,
    TRANSFORM_RESIZE,
    TRANSFORM_RESCALE,
    TRANSFORM_NORMALIZE,
    TRANSFORM_RANDOM_RESIZED_CROP,
    TRANSFORM_CENTRE_CROP,
    TRANSFORM_RANDOM_ERASING,
    TRANSFORM_COLOUR_JITTER,
    TRANSFORM_TO_GREY,
    TRANSFORM_MIXUP, /* of ready samples: the last one; the loader does it */
};

enum interpolation { INTERPOLATION_BILINEAR, INTERPOLATION_NEAREST };

struct transform {
    enum transform_kind kind;
    int64_t height, width;                            /* crops, resize */
    int64_t pad_left, pad_top, pad_right, pad_bottom; /* crop: MindSpore's order */
    double probability;                               /* flip, erasing */
    int n_area, n_ratio;                              /* resized crop, erasing: 2 each */
    double area[MS_IMAGE_CHANNEL_MAX], ratio[MS_IMAGE_CHANNEL_MAX]; /* share; width / height: from
                                                                       the first to the second */
    enum interpolation interpolation;             /* resize: half-pixel centres, not rounded */
    double scale, shift;                          /* rescale: x scale + shift */
    double brightness, contrast, saturation, hue; /* colour_jitter: 0: as it is */
    int64_t channels;                             /* to_grey: 1 or 3, all alike */
    int n_channels;                               /* normalize: length of mean and std */
    double mean[MS_IMAGE_CHANNEL_MAX], std[MS_IMAGE_CHANNEL_MAX];
    double alpha; /* mixup: of Beta(alpha, alpha) */
};

/* ---- a source: random access to records ---- */

struct data_source;

struct data_info {
    int64_t rows;
    int64_t channels, height, width; /* of a record; features: channels = features, 1 x 1 */
    enum ms_dtype dtype;             /* of its values: u8 pixels, f32 features */
    int64_t classes;                 /* 0: the label is a float target */
    int64_t target_width;            /* float targets a row, else 0 */
    int64_t tokens;                  /* of a record, each with a class; 0: a record has one */
    struct data_ignored ignored; /* a label that those who are asked for records may give, too */
    const char *class_names;    /* of labels that are words, as in data_spec; NULL: they are none */
    const char *column_names;   /* as in data_spec; NULL: columns have none */
    const char *vocabulary_sum; /* as in data_spec; NULL: there are no words */
    /* Of classes that are folders, as many as there are, and record i is the file that
     * data_name_record names, at any time; NULL: they are none. */
    const char *const *folders;
    int is_decoded;       /* reading is work, which readers share (data_reader_create) */
    int64_t copied_bytes; /* that reading, from the first record on, brings into memory, once
                             for all ranks and jobs of a host (host_copy.h) */
    int64_t held_bytes;   /* that the open source has for itself: labels, where records are */
};

/* Opens and checks the whole source: files present, sizes, magic numbers, counts that match, every
 * label in range where the format allows to see it cheaply (CIFAR: when read), records as the
 * spec's shape says, where it says one. Errors name the file, what was found and expected, and the
 * next step. .gz files are read through zlib, lazily from the front, so that the first batch does
 * not wait for the last. Returns owned. */
int data_open(const struct data_spec *spec, struct data_source **ret, struct ms_err *err);
/* Is what is tested on of the values that are trained on? The same transforms make numbers of
 * both. */
int data_check_values(const char *path, const struct data_info *info, enum data_values want,
                      struct ms_err *err);
/* What column_names of the spec's table are, by the first line of its file alone; "": there are
 * none, or it is no table. */
int data_find_columns(const struct data_spec *spec, char ret[DATA_COLUMN_NAMES_MAX + 1],
                      struct ms_err *err);
/* What a network is tested on, that was trained on `train`: classes that have names
 * are by these those of the training, which are in train->class_names or in its place. A class that
 * is not among them: MS_E_INVALID; so are names beside numbers, but for names that are the numbers
 * 0, 1, 2 ..., and where spec->class_names says which is which. Columns of tables that have a
 * header are by their names those of the training, likewise; where nothing says them it is an
 * error. */
int data_open_beside(const struct data_spec *spec, const struct data_spec *train,
                     struct data_source **ret, struct ms_err *err);
/* What it is only asked about, whose labels may be any: columns as above. */
int data_open_asked(const struct data_spec *spec, const struct data_spec *train,
                    struct data_source **ret, struct ms_err *err);
/* Do names stand beside numbers there, and nothing says which is which? MS_E_INVALID. Of a source
 * that data_open_beside has opened it is known. */
int data_check_classes(const struct data_source *source, const struct data_spec *spec,
                       const struct data_spec *train, struct ms_err *err);
void data_close(struct data_source *source); /* NULL allowed */
const struct data_info *data_get_info(const struct data_source *source);

/* Of copied_bytes, what is in this host's memory now: another rank's or job's reading brought it
 * there, and no free memory is needed for it any more. Reads no record; asks the process that has
 * it, which answers at once or is not waited for beyond a second. Any thread. */
int64_t data_in_memory(const struct data_source *source);

struct data_record {
    const void *values;    /* (c, h, w), of the source's dtype */
    const float *targets;  /* target_width of them; NULL where the data have classes */
    const int32_t *labels; /* classes of its tokens; NULL where they have none */
    int32_t label;         /* class; -1 where they have none, or each token has one */
};

/* Record `row`: what ret points to is the source's until the next read. One thread at a time. A
 * label out of range: MS_E_INVALID with file and record; a file that became shorter: MS_E_IO. */
int data_read(struct data_source *source, int64_t row, struct data_record *ret, struct ms_err *err);

/* ---- of a source that asks somebody else for its records (a program, a callback) ----
 *
 * It hears what will be read before that is read, so that records are under way meanwhile. Of other
 * sources these do nothing. */

/* Record `row` will be read, after those that were expected before: by data_read, in this order.
 * One thread at a time, that of data_read. MS_E_NOMEM. */
int data_expect(struct data_source *source, int64_t row, uint64_t epoch, uint64_t seed,
                struct ms_err *err);
/* Nothing of that is wanted any more, and no interrupt holds. While nobody reads. */
void data_forget(struct data_source *source);
/* A data_read that waits, or the next one, ends with MS_E_ABORTED, until data_forget. Any thread.
 */
void data_interrupt(struct data_source *source);
/* The oldest line that it has said, with its name before it, and that nobody heard yet; 0: none.
 * Any thread. */
int data_hear(struct data_source *source, char *buf, size_t size);

/* Nothing is read any more: who was asked ends by itself, within a second, and what it says at its
 * end can be heard. While nobody reads. */
void data_finish(struct data_source *source);

/* Where the targets of a record stand, for errors: "t.csv:7", "y.npy: row 5". Not while a loader
 * reads, but by its own thread. */
void data_name_record(const struct data_source *source, int64_t row, char *buf, size_t size);

/* Of a source with is_decoded: one that reads beside others, and beside data_read, each in one
 * thread at a time. What it returns is its own until its next read. Lives no longer than the
 * source. */
struct data_reader;
int data_reader_create(struct data_source *source, struct data_reader **ret, struct ms_err *err);
void data_reader_destroy(struct data_reader *reader); /* NULL allowed */
int data_reader_read(struct data_reader *reader, int64_t row, struct data_record *ret,
                     struct ms_err *err);

/* From now on what is decoded is kept in this host's memory, for the next epoch and for all who
 * read the same files as the same user (decoded.h): up to so many bytes, where it is the first who
 * does. Of sources that decode nothing, or nothing of one size, it does nothing. Bits, and errors
 * of files that are gone or changed, are as without it. Before the first reader; once. */
void data_keep_decoded(struct data_source *source, int64_t bytes_max);
/* Records that are there; 0: none, or it keeps none. Any thread. */
int64_t data_decoded_count(const struct data_source *source);

/* Which data these are: the same for the same records, packed or not, whatever their files are
 * called. */
struct data_identity {
    int64_t rows;
    uint8_t sum[DATA_SUM_BYTES]; /* XXH3-128: finds what was mixed up, and is no seal */
};

/* Goes over the shape, and of a large set over a part: of MNIST the first MiB of labels and images
 * each, for what is packed can be had from its front alone; of others 1,024 records in 64 places,
 * evenly, or as few as 64 where they are large, 64 where they are decoded. Takes milliseconds (a
 * packed NumPy archive: as long as unpacking it takes; images: as decoding 64 of them), and makes
 * no copy of files in memory. Fails as data_read does. Not while a loader reads. */
int data_identify(struct data_source *source, struct data_identity *ret, struct ms_err *err);
int data_identity_is_same(const struct data_identity *a, const struct data_identity *b);

/* Were the files whole that records were read from? What is packed has a checksum behind its last
 * byte: who has not come to it reads on to there now (47 MB: 0.2 s, on a thread of this host in
 * most cases while others trained). A NumPy archive has checksums also of what is not packed, which
 * is read once more. MS_E_INVALID names the file. Not while a loader reads. */
int data_verify(struct data_source *source, struct ms_err *err);

/* Writes a drawn-shapes data set in CIFAR-10's binary layout: data_batch_1.bin .. (10,000 a file),
 * test_batch.bin, batches.meta.txt. Ten classes of shapes with noise, position, scale and colour
 * varying; deterministic in seed. progress (NULL: none) is called now and then with done and total.
 */
int data_write_shapes(const char *directory, int64_t train, int64_t test, uint64_t seed,
                      void (*progress)(void *arg, int64_t done, int64_t total), void *arg,
                      struct ms_err *err);

/* Hands the values of a file of weights (safetensors, F32) over tensor by tensor, in the order of
 * names: what the digest of a job's weights goes over. Safe for hostile files. */
int data_walk_weights(const char *path, void (*take)(void *arg, const void *bytes, size_t size),
                      void *arg, struct ms_err *err);

/* Writes the weights of a file (weights_file.h says of which formats) in the format that the ending
 * of `to` says; what optimizers and counters left among them is left out. MS_E_UNSUPPORTED: a
 * tensor that is not F32; MS_E_INVALID: none is left, or two come to have one name. `to` is whole,
 * or what it was before. */
enum data_names { DATA_NAMES_OWN, DATA_NAMES_TORCH, DATA_NAMES_MINDSPORE }; /* weights_names.h */
struct data_export {
    const char *from, *to;
    enum data_names names;
    /* For torch's names: is it a part of a norm? NULL: all that are called as one are. */
    int (*is_of_norm)(void *arg, const char *name);
    void *arg;
};
struct data_exported {
    size_t tensors;
    uint64_t bytes; /* of values */
};
int data_export_weights(const struct data_export *asked, struct data_exported *ret,
                        struct ms_err *err);

/* ---- transforms ---- */

/* Evaluation leaves it out. */
int transform_is_random(const struct transform *t);

/* Shape after the transforms; errors name the transform and why it cannot apply. */
int transform_check(const struct transform *list, int n, int64_t *channels, int64_t *height,
                    int64_t *width, struct ms_err *err);

/* Applies the list, but for a mixup, which is of two, to one image, u8 (values 0 to 255) or f32,
 * with the same bits for the same values; random ones draw from (seed, epoch, row) through
 * ms_rng_*. scratch: transform_scratch bytes, aligned for floats. dst: the final shape. Any thread.
 */
size_t transform_scratch(const struct transform *list, int n, int64_t channels, int64_t height,
                         int64_t width);
void transform_apply(const struct transform *list, int n, const struct image *src, uint64_t seed,
                     uint64_t epoch, int64_t row, void *scratch, float *dst);

/* ---- order ---- */

struct data_shard {
    int64_t rows; /* of the source */
    int rank, world;
    int shuffle;
    uint64_t seed;
    int wrap; /* training: ceil(rows / world) each, wrapping; evaluation: 0, every row once */
};
int64_t data_shard_rows(const struct data_shard *shard);
/* Row of the source for position i of this shard in an epoch: pure; perm is scratch of `rows`
 * entries filled by data_permute (NULL where shuffle is 0). */
void data_permute(const struct data_shard *shard, uint64_t epoch, int64_t *perm);
int64_t data_shard_row(const struct data_shard *shard, const int64_t *perm, int64_t i);

/* ---- the loader: a thread that stays ahead ---- */

struct loader;

struct loader_config {
    struct data_source *source; /* borrowed for the loader's life; only the loader reads it then */
    const struct transform *transforms; /* copied */
    int n_transforms;
    int64_t batch;
    int64_t accumulate; /* batches of a step, 0: 1; together they have the rows that one batch of so
                           many times the size would have, in its order */
    int drop_remainder; /* a last step that is short is left out */
    int rank, world;
    int shuffle;
    int has_probabilities; /* float targets are from 0 to 1, or its batch is an error */
    int evaluation;        /* order of the file, every row once, last batch short, one epoch */
    uint64_t seed;
    int64_t epochs;      /* training */
    int64_t first_epoch; /* 0-based; with first_step: where to begin (recovery) */
    int64_t first_step;  /* within first_epoch */
    int depth;           /* batches ahead, >= 1; 0: 2 */
    int threads;         /* that decode (is_decoded), >= 1; 0: 1. No bit depends on them */
};

struct batch_tensor {
    enum ms_dtype dtype;
    size_t count; /* elements */
    const void *values;
};

struct batch {                  /* rows of the tensors beyond `rows` are zero */
    struct batch_tensor images; /* f32 (batch, c, h, w) */
    struct batch_tensor labels; /* i32 (batch) or (batch, tokens): classes; or f32 (batch,
                                   target_width): targets */
    /* Of classes, where samples are mixed: (batch) second labels, and what the first ones count, 0
     * to 1; the second count the rest. NULL: each row has one. Targets are mixed already. */
    const int32_t *others;
    const float *shares;
    int64_t rows;
    int64_t epoch;         /* 0-based */
    int64_t step;          /* 0-based within the epoch */
    int64_t part, n_parts; /* which batch of the step's, from 0 */
    int64_t step_rows;     /* of all of them */
    int last_of_epoch;
};

struct loader_info {
    int64_t channels, height, width, classes, target_width, tokens;
    int64_t rows;            /* of this shard */
    int64_t steps_per_epoch; /* the same on every rank (training) */
    int64_t last_rows;       /* rows of an epoch's last batch: == batch, or fewer */
};

/* Checks everything (shapes, batch against rows) and says what a loader would give; reads no
 * record. */
int loader_measure(const struct loader_config *cfg, struct loader_info *ret, struct ms_err *err);
/* The same checks, then starts the thread. Returns owned. */
int loader_create(const struct loader_config *cfg, struct loader **ret, struct ms_err *err);
void loader_destroy(struct loader *loader); /* joins the thread; NULL allowed */
void loader_get_info(const struct loader *loader, struct loader_info *ret);

/* 1: *ret is the next batch, borrowed until loader_release; 0: the end; < 0: what went wrong in the
 * thread. Blocks; loader_abort wakes it with MS_E_ABORTED. */
int loader_next(struct loader *loader, struct batch *ret, struct ms_err *err);
void loader_release(struct loader *loader);
void loader_abort(struct loader *loader); /* any thread */
/* While it is held a loader_next that would wait gives MS_E_ABORTED; reading goes on. Any thread.
 */
void loader_hold(struct loader *loader, int is_held);
/* data_interrupt of its source: loader_next gives what was read, then MS_E_ABORTED. A source that
 * cannot be interrupted gives all. Any thread. */
void loader_interrupt(struct loader *loader);
/* No batch is wanted any more: joins the thread, then data_verify of the source. Instead of
 * loader_next, from its thread; more than once is allowed. */
int loader_finish(struct loader *loader, struct ms_err *err);

#endif
