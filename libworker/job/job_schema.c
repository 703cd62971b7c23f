/* job_schema.c - the tables of a job's keys: type, range, choices, default, condition, help */
#include "libworker/job/job_schema.h"

#include "proto/limits.h"

#include <string.h>

#define IN_JOB(member) offsetof(struct job, member)
#define SEED_MAX       9007199254740992.0 /* 2^53: exact in every JSON reader */
#define SAMPLES_MAX    100000000.0        /* the permutation of an epoch takes 8 bytes each */

static const char *const networks[] = {"resnet50", "lenet5",      "mnist",
                                       "linear",   "cifar_small", NULL};
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
static const char *const losses[] = {"softmax_cross_entropy", "mse", "l1", "huber",
                                     "binary_cross_entropy",  NULL};
static const char *const metrics[] = {"top5", "per_class", "confusion", "perplexity", "mae", NULL};
static const char *const scores[] = {"loss", "accuracy", "top5", "perplexity", "mae", NULL};
static const char *const betters[] = {"auto", "min", "max", NULL};
static const char *const optimizers[] = {"sgd",     "momentum", "adam", "adamw",
                                         "rmsprop", "lamb",     NULL};
static const char *const schedules[] = {"constant", "step",       "multi_step", "exponential",
                                        "cosine",   "polynomial", "one_cycle",  NULL};
static const char *const schedule_units[] = {"step", "epoch", NULL};
static const char *const modes[] = {"data_parallel", "stand_alone", NULL};
static const char *const modes_later[] = {"semi_auto_parallel",
                                          "auto_parallel",
                                          "hybrid_parallel",
                                          "model_parallel",
                                          "pipeline_parallel",
                                          "tensor_parallel",
                                          NULL};
static const char *const precisions[] = {"fp32", NULL};
static const char *const precisions_later[] = {"bf16",    "bfloat16", "fp16",
                                               "float16", "mixed",    NULL};

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
    WITH_BETAS = 1U << JOB_ADAM | 1U << JOB_ADAMW | 1U << JOB_LAMB,
    RMSPROP = 1U << JOB_RMSPROP,
    WITH_GAMMA = 1U << JOB_STEP_DECAY | 1U << JOB_MULTI_STEP | 1U << JOB_EXPONENTIAL,
    WITH_END = 1U << JOB_COSINE | 1U << JOB_POLYNOMIAL | 1U << JOB_ONE_CYCLE,
};

/* By what an evaluation is judged. */
#define JUDGE_ROWS(prefix, member)                                                                 \
    {.key = prefix ".metric",                                                                      \
     .type = FIELD_ENUM,                                                                           \
     .offset = IN_JOB(member.metric),                                                              \
     .choices = scores,                                                                            \
     .builtin = "loss",                                                                            \
     .help = "number of an evaluation by which it is judged"},                                     \
    {                                                                                              \
        .key = prefix ".mode", .type = FIELD_ENUM, .offset = IN_JOB(member.mode),                  \
        .choices = betters, .builtin = "auto",                                                     \
        .help = "which value is better; auto: of loss, perplexity and mae the least",              \
    }

/* The name of an array. */
#define ARRAY_ROW(prefix, of, name, text)                                                          \
    {                                                                                              \
        .key = prefix "." #name, .type = FIELD_NAME, .flags = FIELD_OPTIONAL,                      \
        .offset = IN_JOB(of.name), .when_key = prefix ".kind", .when_offset = IN_JOB(of.kind),     \
        .when_mask = ARRAYS, .help = text,                                                         \
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
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = FILES,                                                                    \
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
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = GENERATORS,                                                               \
            .help = "rows to make; 0: as many as usual for the kind (callback: give it)",          \
        },                                                                                         \
        ARRAY_ROW(prefix, member, inputs,                                                          \
                  "array with the records; default: the usual "                                    \
                  "names"),                                                                        \
        ARRAY_ROW(prefix, member, targets, "array with their labels or targets"),                  \
        {                                                                                          \
            .key = prefix ".layout",                                                               \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.layout),                                                       \
            .choices = layouts,                                                                    \
            .builtin = "auto",                                                                     \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = ARRAYS,                                                                   \
            .help = "of four dimensions: where the channels stand",                                \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".size",                                                                 \
            .type = FIELD_SIZE,                                                                    \
            .offset = IN_JOB(member.height),                                                       \
            .min = 0,                                                                              \
            .max = MS_IMAGE_SIDE_MAX,                                                              \
            .builtin = "0",                                                                        \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = IMAGES,                                                                   \
            .help = "[height, width] to which images are resized and cut; 0: all are alike",       \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".colours",                                                              \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.colours),                                                      \
            .choices = colours,                                                                    \
            .builtin = "rgb",                                                                      \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = IMAGES,                                                                   \
            .help = "what images become",                                                          \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".tokens",                                                               \
            .type = FIELD_INT64,                                                                   \
            .offset = IN_JOB(member.tokens),                                                       \
            .min = 1,                                                                              \
            .max = MS_TOKENS_MAX,                                                                  \
            .builtin = "128",                                                                      \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = TEXTS,                                                                    \
            .help = "of a window; each has the token behind it as its label",                      \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".header",                                                               \
            .type = FIELD_BOOL,                                                                    \
            .offset = IN_JOB(member.has_header),                                                   \
            .builtin = "true",                                                                     \
            .help = "the first line has the names of columns",                                     \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = TABLES,                                                                   \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".separator",                                                            \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.separator),                                                    \
            .choices = separators,                                                                 \
            .builtin = "comma",                                                                    \
            .help = "between fields",                                                              \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = TABLES,                                                                   \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".target",                                                               \
            .type = FIELD_OWN,                                                                     \
            .own = &job_word,                                                                      \
            .flags = FIELD_OPTIONAL,                                                               \
            .offset = IN_JOB(member.target),                                                       \
            .help = "column with the label or target, by name or number; default: the last",       \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = TABLES,                                                                   \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".columns",                                                              \
            .type = FIELD_OWN,                                                                     \
            .own = &job_words,                                                                     \
            .flags = FIELD_OPTIONAL,                                                               \
            .max = DATA_COLUMNS_MAX,                                                               \
            .offset = IN_JOB(member.columns),                                                      \
            .help = "columns with the features, by name or number; default: all others",           \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = TABLES,                                                                   \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".target_kind",                                                          \
            .type = FIELD_ENUM,                                                                    \
            .offset = IN_JOB(member.target_kind),                                                  \
            .choices = target_kinds,                                                               \
            .builtin = "auto",                                                                     \
            .help = "auto: classes where all are words, or whole numbers from 0 on",               \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = TABLES,                                                                   \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".labels",                                                               \
            .type = FIELD_ENUM,                                                                    \
            .flags = FIELD_ADDED,                                                                  \
            .offset = IN_JOB(member.labels),                                                       \
            .choices = labels,                                                                     \
            .builtin = "fine",                                                                     \
            .help = "which of the two that each image has",                                        \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = 1U << DATA_CIFAR100,                                                      \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".arguments",                                                            \
            .type = FIELD_OWN,                                                                     \
            .own = &job_arguments,                                                                 \
            .flags = FIELD_OPTIONAL,                                                               \
            .max = DATA_ARGUMENTS_MAX,                                                             \
            .offset = IN_JOB(member.arguments),                                                    \
            .help = "of the program",                                                              \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = PROGRAMS,                                                                 \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".timeout",                                                              \
            .type = FIELD_INT64,                                                                   \
            .offset = IN_JOB(member.timeout),                                                      \
            .min = 1,                                                                              \
            .max = 86400,                                                                          \
            .builtin = "60",                                                                       \
            .help = "seconds that the program may write nothing for",                              \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = PROGRAMS,                                                                 \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".split",                                                                \
            .type = FIELD_SECTION,                                                                 \
            .flags = FIELD_OPTIONAL,                                                               \
            .offset = IN_JOB(member.has_split),                                                    \
            .help = "parts of what has none: usage train or test of it",                           \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = PARTED,                                                                   \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".split.test",                                                           \
            .type = FIELD_REAL,                                                                    \
            .flags = FIELD_REQUIRED | FIELD_ABOVE,                                                 \
            .offset = IN_JOB(member.split.test),                                                   \
            .min = 0,                                                                              \
            .max = 0.999,                                                                          \
            .help = "share of the records that is the test",                                       \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = PARTED,                                                                   \
        },                                                                                         \
        {                                                                                          \
            .key = prefix ".split.seed",                                                           \
            .type = FIELD_UINT64,                                                                  \
            .offset = IN_JOB(member.split.seed),                                                   \
            .max = SEED_MAX,                                                                       \
            .builtin = "1",                                                                        \
            .help = "which records these are",                                                     \
            .when_key = prefix ".kind",                                                            \
            .when_offset = IN_JOB(member.kind),                                                    \
            .when_mask = PARTED,                                                                   \
        },                                                                                         \
    {                                                                                              \
        .key = prefix ".seed", .type = FIELD_UINT64, .offset = IN_JOB(member.seed), .min = 0,      \
        .max = SEED_MAX, .builtin = "1", .when_key = prefix ".kind",                               \
        .when_offset = IN_JOB(member.kind), .when_mask = DRAWN, .help = "seed of the drawing",     \
    }

static const struct field job_rows[] = {
    {.key = "name",
     .type = FIELD_NAME,
     .flags = FIELD_OPTIONAL,
     .offset = IN_JOB(name),
     .help = "name of the job and of its run directory; default: the network's"},
    {.key = "workers",
     .type = FIELD_INT,
     .offset = IN_JOB(workers),
     .min = 1,
     .max = MS_WORKERS_MAX,
     .builtin = "1",
     .help = "ranks; -n beats it"},
    {.key = "priority",
     .type = FIELD_INT,
     .offset = IN_JOB(priority),
     .min = -MS_PRIORITY_MAX,
     .max = MS_PRIORITY_MAX,
     .builtin = "0",
     .help = "higher runs first"},
    {.key = "network",
     .type = FIELD_OWN,
     .own = &job_network,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(network),
     .choices = networks,
     .help = "what is trained"},
    {.key = "classes",
     .type = FIELD_INT,
     .offset = IN_JOB(classes),
     .min = 0,
     .max = MS_CLASSES_MAX,
     .builtin = "0",
     .help = "width of the last layer; 0: as the data say"},
    {.key = "dataset",
     .type = FIELD_SECTION,
     .flags = FIELD_REQUIRED,
     .help = "what it learns from"},
    DATASET_ROWS("dataset", dataset, "train"),
    {.key = "dataset.shuffle",
     .type = FIELD_BOOL,
     .offset = IN_JOB(dataset.shuffle),
     .builtin = "true",
     .help = "another order each epoch, from the seed"},
    {.key = "dataset.shape",
     .type = FIELD_OWN,
     .own = &job_shape,
     .flags = FIELD_OPTIONAL,
     .offset = IN_JOB(dataset.shape),
     .min = 1,
     .max = MS_FEATURES_MAX,
     .when_key = "dataset.kind",
     .when_offset = IN_JOB(dataset.kind),
     .when_mask = OWN,
     .help = "of a record, [channels, height, width] or [features]; default: what the files have"},
    {.key = "dataset.classes",
     .type = FIELD_INT64,
     .offset = IN_JOB(dataset.shape.classes),
     .min = 0,
     .max = MS_CLASSES_MAX,
     .builtin = "0",
     .when_key = "dataset.kind",
     .when_offset = IN_JOB(dataset.kind),
     .when_mask = OWN,
     .help = "labels are below it; 0: what the files have"},
    {.key = "dataset.vocabulary",
     .type = FIELD_PATH,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(dataset.vocabulary),
     .when_key = "dataset.kind",
     .when_offset = IN_JOB(dataset.kind),
     .when_mask = TEXTS,
     .help = "a file of words, one a line, which are the tokens; default: bytes"},
    {.key = "dataset.class_names",
     .type = FIELD_OWN,
     .own = &job_words,
     .flags = FIELD_OPTIONAL,
     .offset = IN_JOB(dataset.class_names),
     .max = DATA_CLASS_NAMES_MAX,
     .when_key = "dataset.kind",
     .when_offset = IN_JOB(dataset.kind),
     .when_mask = TABLES | IMAGES,
     .help = "labels that are words, or folders, in the order of their classes; default: sorted"},
    {.key = "dataset.values",
     .type = FIELD_ENUM,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(dataset.values),
     .choices = value_kinds,
     .builtin = "auto",
     .when_key = "dataset.kind",
     .when_offset = IN_JOB(dataset.kind),
     .when_mask = ARRAYS,
     .help = "of inputs: bytes of pixels, or floats; auto: what the files have"},
    {.key = "dataset.column_names",
     .type = FIELD_OWN,
     .own = &job_words,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(dataset.column_names),
     .max = DATA_COLUMN_NAMES_MAX,
     .when_key = "dataset.kind",
     .when_offset = IN_JOB(dataset.kind),
     .when_mask = TABLES,
     .help = "of what is trained on, in its header: features, then the target"},
    {.key = "dataset.target_width",
     .type = FIELD_INT64,
     .offset = IN_JOB(dataset.shape.target_width),
     .min = 0,
     .max = MS_CLASSES_MAX,
     .builtin = "0",
     .when_key = "dataset.kind",
     .when_offset = IN_JOB(dataset.kind),
     .when_mask = OWN,
     .help = "numbers a record that are its target, where it has no class; 0: what the files have"},
    {.key = "transforms",
     .type = FIELD_OWN,
     .own = &job_transforms,
     .offset = IN_JOB(transforms),
     .count_offset = IN_JOB(n_transforms),
     .builtin = "[]",
     .help = "what happens to an image, in this order"},
    {.key = "batch_size",
     .type = FIELD_INT64,
     .offset = IN_JOB(batch_size),
     .min = 1,
     .max = MS_BATCH_MAX,
     .builtin = "32",
     .help = "samples that a worker computes at once"},
    {.key = "accumulate",
     .type = FIELD_INT64,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(accumulate),
     .min = 1,
     .max = MS_ACCUMULATE_MAX,
     .builtin = "1",
     .help = "batches of a step, whose gradients are added up"},
    {.key = "drop_remainder",
     .type = FIELD_BOOL,
     .offset = IN_JOB(drop_remainder),
     .builtin = "false",
     .help = "leave out an epoch's last step where it is short"},
    {.key = "epochs",
     .type = FIELD_INT64,
     .offset = IN_JOB(epochs),
     .min = 1,
     .max = MS_EPOCHS_MAX,
     .builtin = "1",
     .help = "passes over the data"},
    {.key = "steps",
     .type = FIELD_INT64,
     .offset = IN_JOB(steps),
     .min = 0,
     .max = 1e12,
     .builtin = "0",
     .help = "cap over all epochs; 0: none"},
    {.key = "loss",
     .type = FIELD_ENUM,
     .flags = FIELD_OPTIONAL,
     .offset = IN_JOB(loss),
     .choices = losses,
     .help = "default: mse where the targets are numbers, else softmax_cross_entropy"},
    {.key = "label_smoothing",
     .type = FIELD_REAL,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(label_smoothing),
     .min = 0,
     .max = 0.999,
     .builtin = "0",
     .help = "part of a label that all classes share in training"},
    {.key = "class_weights",
     .type = FIELD_OWN,
     .own = &job_class_weights,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(class_weights),
     .count_offset = IN_JOB(n_class_weights),
     .min = 0,
     .max = 1e6,
     .help = "what a label of each class counts in the loss; default: 1"},
    {.key = "ignored_label",
     .type = FIELD_OWN,
     .own = &job_ignored,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(dataset.ignored),
     .min = INT32_MIN,
     .max = INT32_MAX,
     .help = "a label that counts neither in the loss nor in evaluations; default: none"},
    {.key = "huber_delta",
     .type = FIELD_REAL,
     .flags = FIELD_ABOVE,
     .offset = IN_JOB(huber_delta),
     .min = 0,
     .max = 1e6,
     .builtin = "1",
     .when_key = "loss",
     .when_offset = IN_JOB(loss),
     .when_mask = 1U << JOB_LOSS_HUBER,
     .help = "distance from which on the loss grows as the distance"},
    {.key = "optimizer", .type = FIELD_SECTION, .flags = FIELD_REQUIRED, .help = "how it learns"},
    {.key = "optimizer.kind",
     .type = FIELD_ENUM,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(optimizer.kind),
     .choices = optimizers,
     .help = "the update rule"},
    {.key = "optimizer.learning_rate",
     .type = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(optimizer.learning_rate),
     .min = 0,
     .max = 1000,
     .help = "length of a step along the gradient"},
    {.key = "optimizer.momentum",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.momentum),
     .min = 0,
     .max = 1,
     .builtin = "0.9",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = 1U << JOB_MOMENTUM,
     .help = "what stays of the last step"},
    {.key = "optimizer.momentum",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.momentum),
     .min = 0,
     .max = 1,
     .builtin = "0",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = RMSPROP,
     .help = "what stays of the last step"},
    {.key = "optimizer.beta1",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.beta1),
     .min = 0,
     .max = 0.999999,
     .builtin = "0.9",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = WITH_BETAS,
     .help = "decay of the mean gradient"},
    {.key = "optimizer.beta2",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.beta2),
     .min = 0,
     .max = 0.999999,
     .builtin = "0.999",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = WITH_BETAS,
     .help = "decay of the mean squared gradient"},
    {.key = "optimizer.alpha",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.alpha),
     .min = 0,
     .max = 0.999999,
     .builtin = "0.99",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = RMSPROP,
     .help = "decay of the mean squared gradient"},
    {.key = "optimizer.centered",
     .type = FIELD_BOOL,
     .offset = IN_JOB(optimizer.centered),
     .builtin = "false",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = RMSPROP,
     .help = "divide by the deviation of the gradient from its mean"},
    {.key = "optimizer.epsilon",
     .type = FIELD_REAL,
     .flags = FIELD_ABOVE,
     .offset = IN_JOB(optimizer.epsilon),
     .min = 0,
     .max = 1,
     .builtin = "1e-8",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = 1U << JOB_ADAM | 1U << JOB_ADAMW | RMSPROP,
     .help = "keeps the division defined"},
    {.key = "optimizer.epsilon",
     .type = FIELD_REAL,
     .flags = FIELD_ABOVE,
     .offset = IN_JOB(optimizer.epsilon),
     .min = 0,
     .max = 1,
     .builtin = "1e-6",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = 1U << JOB_LAMB,
     .help = "keeps the division defined"},
    {.key = "optimizer.nesterov",
     .type = FIELD_BOOL,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(optimizer.nesterov),
     .builtin = "false",
     .when_key = "optimizer.kind",
     .when_offset = IN_JOB(optimizer.kind),
     .when_mask = 1U << JOB_MOMENTUM,
     .help = "step along the gradient that the velocity leads to"},
    {.key = "optimizer.weight_decay",
     .type = FIELD_REAL,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(optimizer.weight_decay),
     .min = 0,
     .max = 1000,
     .builtin = "0",
     .help = "pulls all parameters towards zero"},
    {.key = "optimizer.clip_norm",
     .type = FIELD_REAL,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(optimizer.clip_norm),
     .min = 0,
     .max = 1e5,
     .builtin = "0",
     .help = "most of the length of all gradients together; 0: any"},
    {.key = "optimizer.clip_value",
     .type = FIELD_REAL,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(optimizer.clip_value),
     .min = 0,
     .max = 1e5,
     .builtin = "0",
     .help = "most of the size of each value of a gradient; 0: any"},
    {.key = "optimizer.groups",
     .type = FIELD_OWN,
     .own = &job_groups,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(groups),
     .count_offset = IN_JOB(n_groups),
     .help = "parameters that have something otherwise"},
    {.key = "optimizer.schedule",
     .type = FIELD_SECTION,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(optimizer.has_schedule),
     .help = "how the learning rate changes"},
    {.key = "optimizer.schedule.kind",
     .type = FIELD_ENUM,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(optimizer.schedule.kind),
     .choices = schedules,
     .help = "what the learning rate follows"},
    {.key = "optimizer.schedule.by",
     .type = FIELD_ENUM,
     .offset = IN_JOB(optimizer.schedule.by),
     .choices = schedule_units,
     .builtin = "step",
     .help = "what its whole numbers count"},
    {.key = "optimizer.schedule.warmup",
     .type = FIELD_INT64,
     .offset = IN_JOB(optimizer.schedule.warmup),
     .min = 0,
     .max = 1e12,
     .builtin = "0",
     .help = "steps or epochs in which the rate rises to learning_rate"},
    {.key = "optimizer.schedule.warmup_from",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.schedule.warmup_from),
     .min = 0,
     .max = 1,
     .builtin = "0",
     .help = "share of the rate with which that begins"},
    {.key = "optimizer.schedule.step_size",
     .type = FIELD_INT64,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(optimizer.schedule.step_size),
     .min = 1,
     .max = 1e12,
     .when_key = "optimizer.schedule.kind",
     .when_offset = IN_JOB(optimizer.schedule.kind),
     .when_mask = 1U << JOB_STEP_DECAY,
     .help = "steps or epochs after each of which the rate is multiplied by gamma"},
    {.key = "optimizer.schedule.milestones",
     .type = FIELD_OWN,
     .own = &job_milestones,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(optimizer.schedule.milestones),
     .count_offset = IN_JOB(optimizer.schedule.n_milestones),
     .min = 1,
     .max = 1e12,
     .when_key = "optimizer.schedule.kind",
     .when_offset = IN_JOB(optimizer.schedule.kind),
     .when_mask = 1U << JOB_MULTI_STEP,
     .help = "steps or epochs of the job after which the rate is multiplied by gamma"},
    {.key = "optimizer.schedule.gamma",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.schedule.gamma),
     .min = 0,
     .max = 1,
     .builtin = "0.1",
     .when_key = "optimizer.schedule.kind",
     .when_offset = IN_JOB(optimizer.schedule.kind),
     .when_mask = WITH_GAMMA,
     .help = "by what the rate is multiplied"},
    {.key = "optimizer.schedule.length",
     .type = FIELD_INT64,
     .offset = IN_JOB(optimizer.schedule.length),
     .min = 0,
     .max = 1e12,
     .builtin = "0",
     .when_key = "optimizer.schedule.kind",
     .when_offset = IN_JOB(optimizer.schedule.kind),
     .when_mask = WITH_END,
     .help = "steps or epochs until the end is reached, warm-up included; 0: the job's"},
    {.key = "optimizer.schedule.min_learning_rate",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.schedule.min_learning_rate),
     .min = 0,
     .max = 1000,
     .builtin = "0",
     .when_key = "optimizer.schedule.kind",
     .when_offset = IN_JOB(optimizer.schedule.kind),
     .when_mask = WITH_END,
     .help = "the rate at its end"},
    {.key = "optimizer.schedule.power",
     .type = FIELD_REAL,
     .flags = FIELD_ABOVE,
     .offset = IN_JOB(optimizer.schedule.power),
     .min = 0,
     .max = 100,
     .builtin = "1",
     .when_key = "optimizer.schedule.kind",
     .when_offset = IN_JOB(optimizer.schedule.kind),
     .when_mask = 1U << JOB_POLYNOMIAL,
     .help = "of the polynomial; 1: a line"},
    {.key = "optimizer.schedule.max_learning_rate",
     .type = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(optimizer.schedule.max_learning_rate),
     .min = 0,
     .max = 1000,
     .when_key = "optimizer.schedule.kind",
     .when_offset = IN_JOB(optimizer.schedule.kind),
     .when_mask = 1U << JOB_ONE_CYCLE,
     .help = "the rate at its peak"},
    {.key = "optimizer.schedule.pct_start",
     .type = FIELD_REAL,
     .offset = IN_JOB(optimizer.schedule.pct_start),
     .min = 0,
     .max = 1,
     .builtin = "0.3",
     .when_key = "optimizer.schedule.kind",
     .when_offset = IN_JOB(optimizer.schedule.kind),
     .when_mask = 1U << JOB_ONE_CYCLE,
     .help = "share of the length in which the rate rises"},
    {.key = "average",
     .type = FIELD_SECTION,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(optimizer.has_average),
     .help = "a moving average of the weights, which is evaluated and saved"},
    {.key = "average.decay",
     .type = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(optimizer.average_decay),
     .min = 0,
     .max = 0.999999,
     .help = "what stays of it in a step"},
    {.key = "parallel", .type = FIELD_SECTION, .help = "how the workers share it"},
    {.key = "parallel.mode",
     .type = FIELD_ENUM,
     .offset = IN_JOB(mode),
     .choices = modes,
     .later = modes_later,
     .builtin = "data_parallel",
     .help = "stand_alone: every worker trains by itself"},
    {.key = "parallel.gradients_mean",
     .type = FIELD_BOOL,
     .offset = IN_JOB(gradients_mean),
     .builtin = "true",
     .help = "false: the sum over workers"},
    {.key = "parallel.parameter_broadcast",
     .type = FIELD_BOOL,
     .offset = IN_JOB(parameter_broadcast),
     .builtin = "true",
     .help = "all begin with rank 0's weights"},
    {.key = "precision",
     .type = FIELD_ENUM,
     .offset = IN_JOB(precision),
     .choices = precisions,
     .later = precisions_later,
     .builtin = "fp32",
     .help = "of activations and weights"},
    {.key = "seed",
     .type = FIELD_UINT64,
     .offset = IN_JOB(seed),
     .min = 0,
     .max = SEED_MAX,
     .builtin = "1",
     .help = "of initial weights, order and augmentation"},
    {.key = "threads",
     .type = FIELD_INT,
     .offset = IN_JOB(threads),
     .min = 0,
     .max = MS_THREADS_MAX,
     .builtin = "0",
     .help = "a rank; 0: the host's cores shared by its ranks"},
    {.key = "initial_weights",
     .type = FIELD_OWN,
     .own = &job_first_weights,
     .flags = FIELD_OPTIONAL,
     .help = "a file to begin with: .safetensors, .onnx, or MindSpore's .ckpt"},
    {.key = "checkpoint",
     .type = FIELD_SECTION,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(has_checkpoint),
     .help = "what a training is resumed from"},
    {.key = "checkpoint.directory",
     .type = FIELD_OWN,
     .own = &job_output,
     .offset = IN_JOB(checkpoint_directory),
     .builtin = "checkpoints",
     .help = "where they are written: a folder below the run directory, or an absolute path"},
    {.key = "checkpoint.prefix",
     .type = FIELD_NAME,
     .flags = FIELD_OPTIONAL,
     .offset = IN_JOB(checkpoint_prefix),
     .help = "how their names begin; default: the job's name"},
    {.key = "checkpoint.every_steps",
     .type = FIELD_INT64,
     .offset = IN_JOB(checkpoint_every_steps),
     .min = 0,
     .max = 1e12,
     .builtin = "100",
     .help = "one each so many steps; 0: not by steps"},
    {.key = "checkpoint.every_seconds",
     .type = FIELD_INT64,
     .offset = IN_JOB(checkpoint_every_seconds),
     .min = 0,
     .max = 1e9,
     .builtin = "0",
     .help = "one each so many seconds, too; 0: not by seconds"},
    {.key = "checkpoint.every_epochs",
     .type = FIELD_INT64,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(checkpoint_every_epochs),
     .min = 0,
     .max = MS_EPOCHS_MAX,
     .builtin = "0",
     .help = "one at the end of each so many epochs, too; 0: not by epochs"},
    {.key = "checkpoint.keep_max",
     .type = FIELD_INT,
     .offset = IN_JOB(checkpoint_keep_max),
     .min = 1,
     .max = MS_CHECKPOINTS_MAX,
     .builtin = "5",
     .help = "the newest ones that stay"},
    {.key = "resume",
     .type = FIELD_PATH,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(resume),
     .help = "checkpoints to go on from: a run directory, their folder, or one manifest"},
    {.key = "recovery",
     .type = FIELD_BOOL,
     .offset = IN_JOB(recovery),
     .builtin = "true",
     .help = "go on when a worker is lost; false: the job fails"},
    {.key = "evaluate",
     .type = FIELD_SECTION,
     .flags = FIELD_OPTIONAL,
     .offset = IN_JOB(has_evaluate),
     .help = "loss and accuracy on other data"},
    {.key = "evaluate.dataset",
     .type = FIELD_SECTION,
     .flags = FIELD_REQUIRED,
     .help = "what it is tested on"},
    DATASET_ROWS("evaluate.dataset", evaluate_dataset, "test"),
    {.key = "evaluate.every_epochs",
     .type = FIELD_INT64,
     .offset = IN_JOB(evaluate_every_epochs),
     .min = 1,
     .max = MS_EPOCHS_MAX,
     .builtin = "1",
     .help = "after each so many epochs, and at the end"},
    {.key = "evaluate.batch_size",
     .type = FIELD_INT64,
     .flags = FIELD_OPTIONAL,
     .offset = IN_JOB(evaluate_batch_size),
     .min = 1,
     .max = MS_BATCH_MAX,
     .help = "default: the job's batch_size"},
    {.key = "evaluate.metrics",
     .type = FIELD_OWN,
     .own = &job_metrics,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(evaluate_metrics),
     .choices = metrics,
     .help = "what is counted beside loss and accuracy"},

    {.key = "early_stop",
     .type = FIELD_SECTION,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(has_early_stop),
     .help = "ends the training once evaluations are no better any more"},
    JUDGE_ROWS("early_stop", early_stop),
    {.key = "early_stop.patience",
     .type = FIELD_INT64,
     .flags = FIELD_REQUIRED,
     .offset = IN_JOB(early_stop_patience),
     .min = 1,
     .max = 1e6,
     .help = "evaluations in a row that are no better than the best before them"},
    {.key = "early_stop.min_delta",
     .type = FIELD_REAL,
     .offset = IN_JOB(early_stop_min_delta),
     .min = 0,
     .max = 1e9,
     .builtin = "0",
     .help = "by more than this one has to be better"},
    {.key = "best",
     .type = FIELD_SECTION,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(has_best),
     .help = "keeps the weights of the best evaluation, best.safetensors"},
    JUDGE_ROWS("best", best),
    {.key = "best.keep",
     .type = FIELD_INT,
     .flags = FIELD_ADDED,
     .offset = IN_JOB(best_keep),
     .min = 1,
     .max = MS_BEST_MAX,
     .builtin = "1",
     .help = "of how many evaluations; of several each has best-<step>.safetensors, too"},
    {.key = "print",
     .type = FIELD_SECTION,
     .flags = FIELD_OPTIONAL | FIELD_ADDED,
     .offset = IN_JOB(has_print),
     .help = "which lines of steps and epochs the ranks' logs have"},
    {.key = "print.loss_every",
     .type = FIELD_INT64,
     .offset = IN_JOB(print_loss_every),
     .min = 0,
     .max = 1e12,
     .builtin = "1",
     .help = "the loss of each so many-th step; 0: of none"},
    {.key = "print.epochs",
     .type = FIELD_BOOL,
     .offset = IN_JOB(print_epochs),
     .builtin = "false",
     .help = "that of each epoch's last step, too"},
    {.key = "print.time",
     .type = FIELD_BOOL,
     .offset = IN_JOB(print_time),
     .builtin = "false",
     .help = "... and how long the epoch took, behind it"},

    {.key = "graph",
     .type = FIELD_LATER,
     .help = "graphs of MindSpore; a model of PyTorch's exporters is network: model.onnx"},
    {.key = "mixed_precision", .type = FIELD_LATER, .help = "bf16"},
    {.key = "model_parallel", .type = FIELD_LATER, .help = "model parallelism"},
    {.key = "pipeline_parallel", .type = FIELD_LATER, .help = "model parallelism"},
    {.key = "tensor_parallel", .type = FIELD_LATER, .help = "model parallelism"},
    {.key = "profile", .type = FIELD_LATER, .help = "the profiler"},
    {.key = "gradient_accumulation", .type = FIELD_MOVED, .help = "accumulate"},
    {.key = "gradient_accumulation_steps", .type = FIELD_MOVED, .help = "accumulate"},
    {.key = "parallel.gradient_accumulation", .type = FIELD_MOVED, .help = "accumulate"},
    {.key = "parallel.grad_accumulation_step", .type = FIELD_MOVED, .help = "accumulate"},
    {.key = "parallel.pipeline_stages", .type = FIELD_LATER, .help = "model parallelism"},
    {.key = "parallel.strategies", .type = FIELD_LATER, .help = "parallel strategies"},
};

const struct field_table job_table = {job_rows, MS_ARRAY_SIZE(job_rows), "a job"};

const char *job_judge_metric(const struct job_judge *judge)
{
    return scores[judge->metric];
}

const char *job_loss_name(enum job_loss loss)
{
    return losses[loss];
}

const char *job_data_kind_name(enum data_kind kind)
{
    return data_kinds[kind];
}
