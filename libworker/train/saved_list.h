/* saved_list.h - what a job has saved on a node, as that tells it to who may fetch it
 *
 * One JSON object: a node writes it (saved.h), msctl reads it. It says what there is, never where
 * something may be opened: names of files are made of the job's prefix and a step on both sides. */
#ifndef SAVED_LIST_H
#define SAVED_LIST_H

#include "libworker/data/sum.h"
#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

enum { SAVED_METRIC_MAX = 23 };

struct saved_entry { /* a checkpoint that is complete, as far as its manifest and a size tell */
    uint64_t step;
    int64_t epoch, step_in_epoch;   /* of that step, both from 1 */
    float loss;                     /* of that step */
    uint64_t bytes, manifest_bytes; /* of its two files */
    int64_t age_s;                  /* since it was written, by the node's clock */
    char sum[SUM_HEX];              /* XXH3-128 of its data: tells copies of one from another */
};

struct saved_best {
    uint64_t step;                     /* 0: there are none */
    char metric[SAVED_METRIC_MAX + 1]; /* of the job's key best */
    double value;
    uint64_t bytes;
    int64_t age_s;
};

struct saved_list {
    char folder[MS_PATH_MAX + 1]; /* of the checkpoints there, for people */
    struct saved_entry *entries;  /* the highest step first; owned */
    size_t n;
    size_t n_damaged; /* of this job or not: nobody can tell */
    struct saved_best best;
    struct saved_best *bests; /* where the job keeps several, all of them, in their order; owned */
    size_t n_bests;
};

void saved_list_fini(struct saved_list *list);
/* malloc'ed; *ret_size without the NUL. NULL without memory. */
char *saved_list_format(const struct saved_list *list, size_t *ret_size);
/* Of untrusted bytes; origin names the node in errors. MS_E_INVALID: it is no such list. */
int saved_list_parse(const char *text, size_t size, const char *origin, struct saved_list *ret,
                     struct ms_err *err);

#endif
