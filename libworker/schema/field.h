/* field.h - what may stand under a key of a document: one row a key
 *
 * Reading (table_read.c), writing (table_write.c), the errors and the manual all follow from such
 * tables; a new key is a new row. A job has one (job/), and each kind of transform and of layer. */
#ifndef SCHEMA_FIELD_H
#define SCHEMA_FIELD_H

#include "libworker/schema/tree.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {
    FIELD_SECTION,   /* a map; its keys have rows of their own. offset: int set to 1 where given */
    FIELD_NAME,      /* char[MS_NAME_MAX + 1]: letters, digits, . _ - */
    FIELD_PATH,      /* char[MS_PATH_MAX + 1]: made absolute */
    FIELD_INT,       /* int, min .. max */
    FIELD_INT64,     /* int64_t, min .. max */
    FIELD_UINT64,    /* uint64_t, min .. max */
    FIELD_REAL,      /* double, min .. max */
    FIELD_BOOL,      /* int */
    FIELD_ENUM,      /* int: index in choices */
    FIELD_SIZE,      /* int64_t[2]: [height, width], or one number for a square */
    FIELD_SIZE_PAIR, /* int64_t[2]: [height, width] only */
    FIELD_PADDING,   /* int64_t[4]: [left, top, right, bottom], [left and right, top and bottom], n
                      */
    FIELD_REALS,     /* double[MS_IMAGE_CHANNEL_MAX], count in the int at count_offset */
    FIELD_OWN,       /* what `own` reads and writes */
    /* no keys of today: */
    FIELD_LATER, /* known, and refused with `help` until its capability exists */
    FIELD_MOVED, /* refused with the key that it has here, `help` */
};

enum {
    FIELD_REQUIRED = 1, /* an error where it is missing */
    FIELD_OPTIONAL = 2, /* may be missing or null, which is a value of its own: none */
    FIELD_ABOVE = 4,    /* FIELD_REAL, FIELD_REALS: min itself is not allowed */
    FIELD_ADDED = 8, /* not written where there is none (FIELD_OPTIONAL), or it is its default, of
                        numbers and words alone: older releases refuse it */
};

struct field;

/* What reading one value needs to fail well. */
struct field_reader {
    const struct field *field;
    const char *shown;    /* the key's full name in errors: "transforms[2].resize.size" */
    const char *base_dir; /* relative paths start there; NULL: they must be absolute */
    struct ms_err *err;
};

/* A type that one table alone has. */
struct field_own {
    const char *legal; /* "a list of transforms": as in field_describe; NULL: the row's choices */
    int (*read)(const struct field_reader *reader, const struct tree_node *node, void *base);
    json_t *(*write)(const struct field *field, const void *base); /* owned; NULL without memory */
};

struct field {
    const char *key; /* full: "optimizer.learning_rate" */
    enum field_type type;
    unsigned flags;
    size_t offset;
    double min, max;            /* whole numbers up to 2^53 are exact */
    const char *const *choices; /* FIELD_ENUM, perhaps FIELD_OWN: NULL ends */
    const char *const *later;   /* choices that are known and come later; NULL ends */
    const char *builtin;        /* default as YAML; NULL: none */
    const char *when_key;       /* the row applies only where this enum ... */
    unsigned when_mask;         /* ... has one of these values (1 << index); 0: always */
    size_t when_offset;
    size_t count_offset;
    const struct field_own *own;
    const char *help; /* one line for errors and the manual */
};

struct field_table {
    /* a section stands before its keys, an enum before rows with it; a key may have several rows
     * that differ in when_mask: where its default does */
    const struct field *rows;
    size_t n;
    const char *of; /* "a job": what these are keys of */
};

/* Whether a row is a key that can be given. */
int field_is_key(const struct field *field);
/* Whether a row applies to what base holds (its when_... condition). */
int field_applies(const struct field *field, const void *base);

/* "true or false", "a whole number from 1 to 1024", "sgd | momentum | adam": what is legal. */
void field_describe(const struct field *field, char *buf, size_t size);

/* Reads one value (no section) into base. */
int field_read(const struct field_reader *reader, const struct tree_node *node, void *base);

/* For readers of one's own: MS_E_INVALID with the place, the key, the value as a person would quote
 * it, why ("is no path"), and what is legal. */
int field_fail(const struct field_reader *reader, const struct tree_node *node, const char *why);
/* The parts of which they are made; ret is written on success. */
int field_read_whole(const struct field_reader *reader, const struct tree_node *node, int64_t *ret);
int field_read_real(const struct field_reader *reader, const struct tree_node *node, double *ret);
int field_read_choice(const struct field_reader *reader, const struct tree_node *node, int *ret);
/* MS_PATH_MAX + 1 bytes. */
int field_read_path(const struct field_reader *reader, const struct tree_node *node, char *ret);
int field_read_size(const struct field_reader *reader, const struct tree_node *node,
                    int64_t ret[2]);
int field_read_padding(const struct field_reader *reader, const struct tree_node *node,
                       int64_t ret[4]);

/* A map by its table, row by row, with all defaults. */
struct table_reader {
    const struct field_table *table;
    const char *prefix;   /* before a row's key in errors: "" or "transforms[2].resize." */
    const char *base_dir; /* as in field_reader */
    struct ms_err *err;
};
/* Unknown keys are refused with the nearest known one. base is zeroed before. */
int table_read(const struct table_reader *reader, const struct tree_node *map, void *base);
/* Was the key given in this map (and not as null)? */
int table_has(const struct tree_node *map, const char *key);

/* An entry of a list of maps with one key each, "- name: {key: value}": its item; a missing value
 * counts as no keys. place: "transforms[2]", for errors. */
int entry_read(const struct tree_node *entry, const char *place, const struct tree_item **ret,
               struct ms_err *err);
/* The keys of such an entry, by its table, whose prefix is made of place and the item's name. */
int entry_read_table(const struct tree_item *item, const char *place,
                     const struct field_table *table, void *base, struct ms_err *err);
/* "transforms[2]: flip is no transform; did you mean ...; known: ...". */
int entry_fail_unknown(const struct tree_item *item, const char *place, const char *what,
                       const char *const *known, size_t n, struct ms_err *err);

/* An object with every key that applies; NULL without memory: half of one must not look like a
 * whole one. Owned. */
json_t *table_write(const struct field_table *table, const void *base);
/* Appends value to list, and takes both; NULL once anything failed. */
json_t *list_append(json_t *list, json_t *value);

#endif
