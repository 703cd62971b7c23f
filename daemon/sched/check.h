/* check.h - one line for an invariant: the check ends with the first one that does not hold */
#ifndef SCHED_CHECK_H
#define SCHED_CHECK_H

#include "proto/err.h"

#define HOLDS(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            return ms_fail(err, MS_E_FAILED, __VA_ARGS__);                                         \
        }                                                                                          \
    } while (0)

#endif
