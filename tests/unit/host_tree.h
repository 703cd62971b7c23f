/* host_tree.h - folders and files that stand for /sys and /proc of a host */
#ifndef HOST_TREE_H
#define HOST_TREE_H

#include "tests/test.h"

#include <errno.h>
#include <sys/stat.h>

/* Writes text into the file root/name; the folders on the way are made. */
static inline void tree_put(const char *root, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
