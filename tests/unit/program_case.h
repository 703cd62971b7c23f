/* program_case.h - programs in sh that deliver records, for the tests of rooms data and train */
#ifndef PROGRAM_CASE_H
#define PROGRAM_CASE_H

#include "tests/unit/data_files.h"

#include <sys/stat.h>

/* Functions of a program in sh: 12 records of two bytes, row x 2 and the epoch; label row % 10. */
#define SH                                                                                         \
    "#!/bin/sh\n"                                                                                  \
    "byte() { printf \"\\\\$(printf %03o $1)\"; }\n"                                               \
    "header() {\n"                                                                                 \
    "printf 'MSDATA\\r\\n\\1\\0\\0\\0\\0\\0\\0\\0\\14\\0\\0\\0\\0\\0\\0\\0'\n"                     \
    "printf '\\2\\0\\0\\0\\1\\0\\0\\0\\1\\0\\0\\0\\12\\0\\0\\0\\0\\0\\0\\0'\n"                     \
    "printf '\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0'; }\n"                   \
    "record() { byte $1; printf '\\0\\0\\0\\0\\0\\0\\0'; byte $(($1 % 10)); printf '\\0\\0\\0'\n"  \
    "byte $(($1 * 2)); byte $2; }\n"

#define SERVE SH "header; while read row epoch seed; do record $row $epoch; done\n"

/* Into the file name of dir, executable; its path into ret. */
static inline void program_case_write(const char *dir, const char *name, const char *text,
                                      char *ret, size_t size)
{
    snprintf(ret, size, "%s/%s", dir, name);
    file_write(dir, name, text, strlen(text));
    ck_assert_int_eq(chmod(ret, 0700), 0);
}

#endif
