/* rows.h - predictions as text: CSV (RFC 4180) or JSON, a line a sample
 *
 *     probabilities  sample,label,predicted,p0,p1,...     {"sample":0,"label":7,"predicted":7,
 *                                                          "probabilities":[...]}
 *     top            sample,label,class_1,p_1,class_2,...  ... "top":[{"class":7,"p":0.9},...]
 *     raw            sample,label,v0,v1,...                ... "raw":[...]
 *
 * Classes have their names where the data have any; the sample's file, and of sequences the token,
 * are behind the sample; targets that are numbers are no labels. Numbers read back as the same
 * floats. Pure, but for the stream. */
#ifndef INFER_ROWS_H
#define INFER_ROWS_H

#include "proto/err.h"

#include <stdint.h>
#include <stdio.h>

enum rows_kind { ROWS_PROBABILITIES, ROWS_TOP, ROWS_RAW };
enum rows_scale {
    ROWS_SOFTMAX, /* a row is of one class */
    ROWS_SIGMOID, /* each column by itself */
    ROWS_PLAIN,   /* numbers: they are their own answer */
};

struct rows_format {
    int is_json;
    enum rows_kind kind;
    int64_t top; /* of ROWS_TOP, >= 1 */
    /* of the network and the data */
    enum rows_scale scale;
    int64_t columns;
    const char *const *names;  /* of the columns' classes; NULL: they are numbers */
    const char *const *labels; /* of the data's own classes; NULL: as names */
    int has_no_labels;
    int has_files; /* each sample is one, and is named behind its number */
    int has_tokens;
};

struct rows; /* a stream of them */

/* out and names are borrowed for the life. MS_E_INVALID: there are no such rows. Returns owned. */
int rows_open(const struct rows_format *format, FILE *out, struct rows **ret, struct ms_err *err);
void rows_close(struct rows *rows); /* NULL allowed */

struct rows_one {
    int64_t sample, token;
    const char *file;
    int32_t label; /* -1: none */
    const float *values;
};
void rows_put(struct rows *rows, const struct rows_one *one);

#endif
