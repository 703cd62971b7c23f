/* job_schema.h - the rows of a job's schema: what may stand under which key
 *
 * One row a key. Reading (job_parse.c), writing (job_format.c), the errors and the manual all
 * follow from these tables; a new key is a new row. */
#ifndef JOB_SCHEMA_H
#define JOB_SCHEMA_H

#include "libworker/job/job.h"

enum job_type {
    JOB_SECTION,   /* a map; its keys have rows of their own. offset: int set to 1 where given */
    JOB_NAME,      /* char[MS_NAME_MAX + 1]: letters, digits, . _ - */
    JOB_PATH,      /* char[MS_PATH_MAX + 1]: made absolute */
    JOB_OUTPUT,    /* char[MS_PATH_MAX + 1]: a folder, absolute or below the run directory */
    JOB_NETWORK,   /* char[MS_PATH_MAX + 1]: one of choices */
    JOB_INT,       /* int, min .. max */
    JOB_INT64,     /* int64_t, min .. max */
    JOB_UINT64,    /* uint64_t, min .. max */
    JOB_REAL,      /* double, min .. max */
    JOB_BOOL,      /* int */
    JOB_ENUM,      /* int: index in choices */
    JOB_SIZE,      /* int64_t[2]: [height, width], or one number for a square */
    JOB_SIZE_PAIR, /* int64_t[2]: [height, width] only */
    JOB_PADDING,   /* int64_t[4]: [left, top, right, bottom], [left and right, top and bottom], n */
    JOB_REALS,     /* double[MS_IMAGE_CHANNEL_MAX], count in the int at count_offset */
    JOB_TRANSFORMS, /* struct transform[MS_TRANSFORMS_MAX], count in the int at count_offset */
    JOB_LATER,      /* known, and refused with `help` until its capability exists */
};

enum {
    JOB_REQUIRED = 1, /* an error where it is missing */
    JOB_OPTIONAL = 2, /* may be missing or null, which is a value of its own: none */
    JOB_ABOVE = 4,    /* JOB_REAL, JOB_REALS: min itself is not allowed */
    JOB_ADDED = 8, /* JOB_OPTIONAL: not written where there is none, for older releases refuse it */
};

struct job_field {
    const char *key; /* full: "optimizer.learning_rate" */
    enum job_type type;
    unsigned flags;
    size_t offset;
    double min, max;            /* whole numbers up to 2^53 are exact */
    const char *const *choices; /* JOB_ENUM, JOB_NETWORK: NULL ends */
    const char *const *later;   /* choices that are known and come later; NULL ends */
    const char *builtin;        /* default as YAML; NULL: none */
    const char *when_key;       /* the row applies only where this enum ... */
    unsigned when_mask;         /* ... has one of these values (1 << index); 0: always */
    size_t when_offset;
    size_t count_offset;
    const char *help; /* one line for errors and the manual */
};

struct job_table {
    const struct job_field *rows;
    size_t n;
};

/* A job's keys; a section stands before its keys, an enum before the rows that depend on it. */
extern const struct job_table job_table;

/* The kinds of an entry of `transforms`, with the keys inside; offsets into struct transform. */
struct job_transform_kind {
    const char *name;
    enum transform_kind kind;
    struct job_table table;
};
extern const struct job_transform_kind job_transform_kinds[];
extern const size_t job_n_transform_kinds;

/* Names of optimizer kinds and data kinds, for texts. */
const char *job_data_kind_name(enum data_kind kind);

/* Whether a row applies to what base holds (its when_... condition). */
int job_field_applies(const struct job_field *field, const void *base);

/* Reads one value (not a section, not transforms) into base as field says. shown is the key's full
 * name in errors; base_dir as in job_parse. */
struct tree_node;
int job_value_read(const struct job_field *field, const struct tree_node *node, const char *shown,
                   const char *base_dir, void *base, struct ms_err *err);
/* "true or false", "a whole number from 1 to 1024", "sgd | momentum | adam": what is legal. */
void job_value_describe(const struct job_field *field, char *buf, size_t size);

/* Why a job may not write to the folder of this path, as the end of "'x' ..."; NULL: it may. */
const char *job_output_refuse(const char *path);
/* The run directory itself. */
int job_output_is_root(const char *path);
/* Would a file of this name be taken for one of the scheduler's database? */
int job_output_is_database(const char *name);

/* What spans keys: loss against data, transforms against images, evaluation against training.
 * job_parse.c calls it last. tree is the document, for positions. */
int job_check(const struct job *job, const struct tree_node *tree, struct ms_err *err);

#endif
