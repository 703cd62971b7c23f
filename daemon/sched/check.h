/* check.h - one line for an invariant: the check ends with the first one that does not hold */
#ifndef SCHED_CHECK_H
#define SCHED_CHECK_H

#include "proto/err.h"

struct heap;

#define HOLDS(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            return ms_fail(err, MS_E_FAILED, __VA_ARGS__);                                         \
        }                                                                                          \
    } while (0)

int heap_check(const struct heap *heap, const char *what, struct ms_err *err);

#endif
