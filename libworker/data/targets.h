/* targets.h - labels that users wrote: are they classes, and how many? */
#ifndef DATA_TARGETS_H
#define DATA_TARGETS_H

#include "libworker/data/data.h"
#include "proto/err.h"

#include <stdint.h>

/* What an error of missing labels says behind its cause where predictions could do without
 * (data_spec.may_lack_labels). */
#define TARGETS_MAY_LACK "; data without labels are predicted with --no-labels"

struct targets_range {
    const char *name; /* of the file, for errors; borrowed */
    int64_t classes;  /* that the job has; 0: any number of them */
    int64_t largest;  /* label so far */
    struct data_ignored ignored;
};

/* MS_E_INVALID names file and row of a label that is none: below 0, or not below classes, and not
 * ignored. */
int targets_check_label(struct targets_range *range, int64_t row, int64_t label,
                        struct ms_err *err);
/* What the job has, or one more than the largest label that counts. */
int64_t targets_classes(const struct targets_range *range);

/* ---- labels of many rows, in as few bytes each as the largest one needs ---- */

struct label_list {
    void *bytes; /* NULL: none are kept */
    int64_t rows;
    int item; /* bytes of one: 1, 2 or 4 */
};

/* For labels below `classes`; 0: not known yet, it grows with what comes. -1: no memory. */
int label_list_make(struct label_list *ret, int64_t rows, int64_t classes);
void label_list_free(struct label_list *list);
/* Of row `row`, after those of all rows before it. -1: no memory. */
int label_list_put(struct label_list *list, int64_t row, int32_t label);
int32_t label_list_get(const struct label_list *list, int64_t row);
int64_t label_list_bytes(const struct label_list *list);

#endif
