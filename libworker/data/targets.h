/* targets.h - labels that users wrote: are they classes, and how many? */
#ifndef DATA_TARGETS_H
#define DATA_TARGETS_H

#include "proto/err.h"

#include <stdint.h>

struct targets_range {
    const char *name; /* of the file, for errors; borrowed */
    int64_t classes;  /* that the job has; 0: any number of them */
    int64_t largest;  /* label so far */
};

/* MS_E_INVALID names file and row of a label that is none: below 0, or not below classes. */
int targets_check_label(struct targets_range *range, int64_t row, int64_t label,
                        struct ms_err *err);
/* What the job has, or one more than the largest label. */
int64_t targets_classes(const struct targets_range *range);

#endif
