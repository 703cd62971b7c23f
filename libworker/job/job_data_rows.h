/* job_data_rows.h - the keys of a data set, which stand at two places of a job's schema
 * (job_schema.c)
 *
 *     DATASET_ROWS("dataset", dataset, "train"): those of struct job's member */
#ifndef JOB_DATA_ROWS_H
#define JOB_DATA_ROWS_H

#include "libworker/job/job_schema.h"
#include "proto/limits.h"

#define IN_JOB(member) offsetof(struct job, member)
#define SEED_MAX       9007199254740992.0 /* 2^53: exact in every JSON reader */
#define SAMPLES_MAX    100000000.0        /* the permutation of an epoch takes 8 bytes each */

/* The row applies where the enum of that key, a member of the job, has a value of the mask. */
#define ONLY_WITH(of, member, mask) .when_key = of, .when_offset = IN_JOB(member), .when_mask = mask

static const char *const data_kinds[] = {
    "cifar10", "mnist", "nonlinear", "shapes",      "numpy", "image_folder", "csv", "cifar100",
    "program", "text",  "callback",  "safetensors", NULL};
static const char *const separators[] = {"comma", "semicolon", "tab", NULL};
static const char *const target_kinds[] = {"auto", "class", "number", NULL};
static const char *const labels[] = {"fine", "coarse", NULL};
static const char *const colours[] = {"rgb", "grey", NULL};
static const char *const value_kinds[] = {"auto", "bytes", "numbers", NULL};
static const char *const layouts[] = {"auto", "nchw", "nhwc", NULL};
static const char *const usages[] = {"train", "test", "all", NULL};

/* Kinds of data, as masks. */
enum {
    ARRAYS = 1U << DATA_NUMPY | 1U << DATA_SAFETENSORS,
    IMAGES = 1U << DATA_IMAGE_FOLDER,
    TABLES = 1U << DATA_CSV,
    PROGRAMS = 1U << DATA_PROGRAM,
    TEXTS = 1U << DATA_TEXT,
    CALLBACKS = 1U << DATA_CALLBACK,
    PARTED = ARRAYS | IMAGES | TABLES | PROGRAMS | TEXTS, /* they may be split */
    OWN = PARTED | CALLBACKS,                             /* data_kind_is_own */
    FILES = 1U << DATA_CIFAR10 | 1U << DATA_CIFAR100 | 1U << DATA_MNIST | PARTED,
    GENERATORS = 1U << DATA_NONLINEAR | 1U << DATA_SHAPES | CALLBACKS,
    DRAWN = 1U << DATA_SHAPES,
    LABELLED = (FILES | CALLBACKS | DRAWN) & ~TEXTS, /* a record may have a class */
};

/* The name of an array. */
#define ARRAY_ROW(prefix, of, name, text)                                                          \
    {                                                                                              \
        .key = prefix "." #name, .type = FIELD_NAME, .flags = FIELD_OPTIONAL,                      \
        .offset = IN_JOB(of.name), ONLY_WITH(prefix ".kind", of.kind, ARRAYS), .help = text,       \
    }

/* The keys of a data set, which stand at two places. */
#define DATASET_ROWS(prefix, member, default_usage)                                                \
    {                                                                                              \
        .key = prefix ".kind",                                                                     \
        .type = FIELD_ENUM,                                                                        \
        .flags = FIELD_REQUIRED,                                                                   \
        .offset = IN_JOB(member.kind),                                                             \
        .choices = data_kinds,                                                                     \
        .help = "what the data are",                                                               \
    },                                                                                             \
        {                                                                                          \
            .key = prefix ".path",                                                                 \
            .type = FIELD_PATH,                                                                    \
            .flags = FIELD_REQUIRED,                                                               \
            .offset = IN_JOB(member.path),                                                         \
            ONLY_WITH(prefix ".kind", member.kind, FILES),                                         \
            .help = "folder with the files (numpy: or a .npz; program: itself), relative to the "  \
                    "job file; ${NAME} "                                                           \
                    "expands on the workers",                                                      \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".usage",                                                                \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.usage),                                                        \
            .choices = usages,                                                                     \
            .builtin = default_usage,                                                              \
            .help = "which part of it",                                                            \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".samples",                                                              \
            .type = FIELD_INT64,                                                                   \
            .offset = IN_JOB(member.samples),                                                      \
            .min = 0,                                                                              \
            .max = SAMPLES_MAX,                                                                    \
            .builtin = "0",                                                                        \
            ONLY_WITH(prefix ".kind", member.kind, GENERATORS),                                    \
            .help = "rows to make; 0: as many as usual for the kind (callback: give it)",          \
        },                                                                                         \
        ARRAY_ROW(prefix, member, inputs, "array with the records; default: the usual names"),     \
        ARRAY_ROW(prefix, member, targets, "array with their labels or targets"),                  \
        {                                                                                          \
            .key = prefix ".layout",                                                               \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.layout),                                                       \
            .choices = layouts,                                                                    \
            .builtin = "auto",                                                                     \
            ONLY_WITH(prefix ".kind", member.kind, ARRAYS),                                        \
            .help = "of four dimensions: where the channels stand",                                \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".size",                                                                 \
            .type = FIELD_SIZE,                                                                    \
            .offset = IN_JOB(member.height),                                                       \
            .min = 0,                                                                              \
            .max = MS_IMAGE_SIDE_MAX,                                                              \
            .builtin = "0",                                                                        \
            ONLY_WITH(prefix ".kind", member.kind, IMAGES),                                        \
            .help = "[height, width] to which images are resized and cut; 0: all are alike",       \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".colours",                                                              \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.colours),                                                      \
            .choices = colours,                                                                    \
            .builtin = "rgb",                                                                      \
            ONLY_WITH(prefix ".kind", member.kind, IMAGES),                                        \
            .help = "what images become",                                                          \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".tokens",                                                               \
            .type = FIELD_INT64,                                                                   \
            .offset = IN_JOB(member.tokens),                                                       \
            .min = 1,                                                                              \
            .max = MS_TOKENS_MAX,                                                                  \
            .builtin = "128",                                                                      \
            ONLY_WITH(prefix ".kind", member.kind, TEXTS),                                         \
            .help = "of a window; each has the token behind it as its label",                      \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".header",                                                               \
            .type = FIELD_BOOL,                                                                    \
            .offset = IN_JOB(member.has_header),                                                   \
            .builtin = "true",                                                                     \
            .help = "the first line has the names of columns",                                     \
            ONLY_WITH(prefix ".kind", member.kind, TABLES),                                        \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".separator",                                                            \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.separator),                                                    \
            .choices = separators,                                                                 \
            .builtin = "comma",                                                                    \
            .help = "between fields",                                                              \
            ONLY_WITH(prefix ".kind", member.kind, TABLES),                                        \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".target",                                                               \
            .type = FIELD_OWN,                                                                     \
            .own = &job_word,                                                                      \
            .flags = FIELD_OPTIONAL,                                                               \
            .offset = IN_JOB(member.target),                                                       \
            .help = "column with the label or target, by name or number; default: the last",       \
            ONLY_WITH(prefix ".kind", member.kind, TABLES),                                        \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".columns",                                                              \
            .type = FIELD_OWN,                                                                     \
            .own = &job_words,                                                                     \
            .flags = FIELD_OPTIONAL,                                                               \
            .max = DATA_COLUMNS_MAX,                                                               \
            .offset = IN_JOB(member.columns),                                                      \
            .help = "columns with the features, by name or number; default: all others",           \
            ONLY_WITH(prefix ".kind", member.kind, TABLES),                                        \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".target_kind",                                                          \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.target_kind),                                                  \
            .choices = target_kinds,                                                               \
            .builtin = "auto",                                                                     \
            .help = "auto: classes where all are words, or whole numbers from 0 on",               \
            ONLY_WITH(prefix ".kind", member.kind, TABLES),                                        \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".labels",                                                               \
            .type = FIELD_ENUM,                                                                    \
            .flags = FIELD_ADDED,                                                                  \
            .offset = IN_JOB(member.labels),                                                       \
            .choices = labels,                                                                     \
            .builtin = "fine",                                                                     \
            .help = "which of the two that each image has",                                        \
            ONLY_WITH(prefix ".kind", member.kind, 1U << DATA_CIFAR100),                           \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".arguments",                                                            \
            .type = FIELD_OWN,                                                                     \
            .own = &job_arguments,                                                                 \
            .flags = FIELD_OPTIONAL,                                                               \
            .max = DATA_ARGUMENTS_MAX,                                                             \
            .offset = IN_JOB(member.arguments),                                                    \
            .help = "of the program",                                                              \
            ONLY_WITH(prefix ".kind", member.kind, PROGRAMS),                                      \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".timeout",                                                              \
            .type = FIELD_INT64,                                                                   \
            .offset = IN_JOB(member.timeout),                                                      \
            .min = 1,                                                                              \
            .max = 86400,                                                                          \
            .builtin = "60",                                                                       \
            .help = "seconds that the program may write nothing for",                              \
            ONLY_WITH(prefix ".kind", member.kind, PROGRAMS),                                      \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".split",                                                                \
            .type = FIELD_SECTION,                                                                 \
            .flags = FIELD_OPTIONAL,                                                               \
            .offset = IN_JOB(member.has_split),                                                    \
            .help = "data that have no parts become two, as {test: 0.2}",                          \
            ONLY_WITH(prefix ".kind", member.kind, PARTED),                                        \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".split.test",                                                           \
            .type = FIELD_REAL,                                                                    \
            .flags = FIELD_REQUIRED | FIELD_ABOVE,                                                 \
            .offset = IN_JOB(member.split.test),                                                   \
            .min = 0,                                                                              \
            .max = 0.999,                                                                          \
            .help = "share of the records that is the test",                                       \
            ONLY_WITH(prefix ".kind", member.kind, PARTED),                                        \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".split.seed",                                                           \
            .type = FIELD_UINT64,                                                                  \
            .offset = IN_JOB(member.split.seed),                                                   \
            .max = SEED_MAX,                                                                       \
            .builtin = "1",                                                                        \
            .help = "which records these are",                                                     \
            ONLY_WITH(prefix ".kind", member.kind, PARTED),                                        \
        },                                                                                         \
    {                                                                                              \
        .key = prefix ".seed", .type = FIELD_UINT64, .offset = IN_JOB(member.seed), .min = 0,      \
        .max = SEED_MAX, .builtin = "1", ONLY_WITH(prefix ".kind", member.kind, DRAWN),            \
        .help = "seed of the drawing",                                                             \
    }

#endif
