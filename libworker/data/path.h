/* path.h - ${NAME} in paths: expanded where the path is used, from that machine's environment */
#ifndef DATA_PATH_H
#define DATA_PATH_H

#include "proto/err.h"

#include <stddef.h>

/* Replaces every ${NAME} of path by the environment's value in dst of size bytes. MS_E_INVALID
 * names a variable that is unset or empty, or a result that does not fit. */
int data_path_expand(const char *path, char *dst, size_t size, struct ms_err *err);

#endif
