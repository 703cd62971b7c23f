/* whole.h - a file that was given, read once and whole
 *
 * What asks a file several things (is it a list? whose is it? is it to be copied?) asks these
 * bytes: a pipe is there once, and a file may be another one by the second look. Any thread. */
#ifndef MS_WHOLE_H
#define MS_WHOLE_H

#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ms_whole {
    const char *path; /* borrowed: what errors name */
    uint8_t *bytes;   /* owned; a NUL behind them */
    size_t size;
    mode_t mode; /* permissions of a regular file; 0 of a pipe, which nobody else can open */
    uid_t uid;   /* whose it is */
    gid_t gid;
};

/* Reads what ms_regular_open opens, with its errors. what goes before the path in them.
 * MS_E_INVALID: more than 64 MiB, as much as a list of a million revoked ones has. Fills ret, to be
 * freed with ms_whole_fini. */
int ms_whole_read(const char *path, const char *what, struct ms_whole *ret, struct ms_err *err);
/* Wipes it: it may hold a key. */
void ms_whole_fini(struct ms_whole *file);

#endif
