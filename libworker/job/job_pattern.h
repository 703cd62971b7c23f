/* job_pattern.h - patterns of names: read, written, and which names are nearest to one */
#ifndef JOB_PATTERN_H
#define JOB_PATTERN_H

#include "libworker/schema/field.h"
#include "proto/limits.h"

enum {
    JOB_NEAREST = 3,
    JOB_NEAREST_NAME = 256, /* of a longer name so much counts */
    JOB_NEAREST_TEXT = JOB_NEAREST * 80
};

/* One pattern: a line of at most MS_PATTERN_MAX bytes. dst is written on success. */
int job_pattern_read(const struct field_reader *reader, const struct tree_node *node,
                     char dst[MS_PATTERN_MAX + 1]);
/* One, or a list of 1 to max of them. */
int job_patterns_read(const struct field_reader *reader, const struct tree_node *node,
                      char (*dst)[MS_PATTERN_MAX + 1], int max, int *ret_n);
/* A list, also of one. Owned; NULL without memory. */
json_t *job_patterns_write(const char (*patterns)[MS_PATTERN_MAX + 1], int n);

struct job_nearest { /* to begin with: {.pattern = ...} */
    const char *pattern;
    int n;
    const char *names[JOB_NEAREST]; /* borrowed */
    size_t edits[JOB_NEAREST];
};
/* By the edits that make the name one which the pattern matches; what a star stands for costs none.
 * Of equal ones the first that is offered counts. */
void job_nearest_offer(struct job_nearest *near, const char *name);
/* "fc.weight, fc.bias", the nearest first. */
void job_nearest_say(const struct job_nearest *near, char *buf, size_t size);

#endif
