/* download.h - one file that comes in pieces: beside its place until it is whole and right
 *
 *     .NAME.part  (0600, grows, survives a torn connection)  -- digest fits -->  NAME
 *
 * Names are ours, never the peer's. Links are not followed. */
#ifndef CLI_DOWNLOAD_H
#define CLI_DOWNLOAD_H

#include "proto/digest.h"
#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

enum { DOWNLOAD_NAME_MAX = MS_NAME_MAX + 48 }; /* a checkpoint's */

struct download {
    int dir_fd;  /* borrowed */
    int fd;      /* owned; -1: closed */
    int force;   /* what has the name already is replaced */
    int is_done; /* it has its name, and is only looked at */
    int is_nameless;
    char name[DOWNLOAD_NAME_MAX];
    char part[DOWNLOAD_NAME_MAX + 8];
    uint64_t have;    /* bytes in the part */
    uint64_t resumed; /* of them from an earlier time */
    struct ms_sha256 *sha;
};

/* Opens the part, and reads what is there of it. MS_E_EXISTS: the file is there already and force
 * is not given (it was not looked into), or another process is at it. MS_E_REFUSED: the part is no
 * regular file of our own.
 */
int download_open(int dir_fd, const char *name, int force, struct download *ret,
                  struct ms_err *err);
/* One without a name, in memory: read it by its descriptor, once download_is_same. MS_E_IO. */
int download_open_memory(const char *name, struct download *ret, struct ms_err *err);
/* Opens what has the name already and reads it, to be compared with what the node has: nothing can
 * be added. MS_E_NOT_FOUND; MS_E_EXISTS: it is no regular file of our own, or cannot be read, so
 * that it is not compared. */
int download_open_done(int dir_fd, const char *name, struct download *ret, struct ms_err *err);
/* Opens the part, for what has the name already (done) may be the beginning of what comes: begins
 * with a copy of it, unless an earlier time came further from there. Only bytes that fit replace
 * it. */
int download_grow(const struct download *done, struct download *ret, struct ms_err *err);
/* Begins the part anew, with a copy of what has the name already (done). MS_E_FULL, MS_E_IO. */
int download_copy(const struct download *done, struct download *part, struct ms_err *err);
/* 1 where the part begins with all that has the name already (done). MS_E_IO. */
int download_begins_with(const struct download *part, const struct download *done, int *ret,
                         struct ms_err *err);
/* 1 where that is what the digest (hex) says. Once. */
int download_is_same(struct download *download, const char *sha256);
/* It was compared and is another one, with the ways out: MS_E_EXISTS. */
int download_fail_exists(const struct download *download, struct ms_err *err);
/* Appends bytes. MS_E_FULL: the disk is. */
int download_add(struct download *download, const void *bytes, size_t n, struct ms_err *err);
/* Forgets what is there: from the start. */
int download_restart(struct download *download, struct ms_err *err);
/* All is there: MS_E_PROTOCOL where the digest is another than sha256 (hex), else the file gets its
 * name, durably. Closes on success. */
int download_finish(struct download *download, const char *sha256, struct ms_err *err);
/* Leaves the part for the next time, or takes it away where it is empty. */
void download_close(struct download *download);

#endif
