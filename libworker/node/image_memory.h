/* image_memory.h - how much memory decoded images of a host may take (libworker/data/decoded.h):
 * what msworker and programs with the library are told about it */
#ifndef NODE_IMAGE_MEMORY_H
#define NODE_IMAGE_MEMORY_H

#include "proto/settings.h"

#include <stdint.h>

/* Its row in a table of settings. In MiB. */
#define IMAGE_MEMORY_SETTING                                                                       \
    {                                                                                              \
        "image_memory", "--image-memory", "MSCHED_IMAGE_MEMORY", MS_SET_INT, 0, 1048576, NULL,     \
            "1048576", 0,                                                                          \
            "MiB for the decoded images of a data set, which the ranks of this host share, at "    \
            "the most, and of what is free a quarter; 0: each decodes what it reads"               \
    }

/* In bytes, of settings whose table has that row. */
int64_t image_memory(const struct ms_settings *settings);
/* In bytes, of a process that has no other settings than its environment. */
int image_memory_of_environment(int64_t *ret, struct ms_err *err);

#endif
