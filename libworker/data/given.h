/* given.h - records that somebody makes when they are asked for (a program, a function): which ones
 * are wanted, and whether what came is one */
#ifndef DATA_GIVEN_H
#define DATA_GIVEN_H

#include "libworker/data/data.h"

struct wanted {
    int64_t row;
    uint64_t epoch, seed;
};

struct given_queue { /* zeroes: empty */
    struct wanted *at;
    size_t begun, n; /* those from begun to n are wanted, in this order */
    size_t asked;    /* of those before it somebody has heard; its owner's */
    size_t room;
};

/* Behind all others. MS_E_NOMEM: name says whose. */
int given_expect(struct given_queue *queue, const struct wanted *wanted, const char *name,
                 struct ms_err *err);
/* Nothing is wanted any more. */
void given_forget(struct given_queue *queue);
void given_fini(struct given_queue *queue);

/* Is a label in range or ignored, is each target and value a number? name: who gave it, says: where
 * it is said how many classes there are ("its header"). MS_E_INVALID. */
int given_check(const struct data_info *info, const struct data_record *record, int64_t row,
                const char *name, const char *says, struct ms_err *err);

#endif
