/* files.h - the files beside the database: a lock against a second daemon, a reserve of disk
 *
 *     state.db   state.db-wal (SQLite)   state.db.lock   state.db.reserve   state.db.mark.N
 * (home.h)
 */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stdint.h>

/* Opens one of them, by its path and never through a link. One that is made is 0600, and where we
 * are root it belongs to whom the database belongs to: the next start is that user's. The file, or
 * -1 with errno set. */
int store_open_beside(const char *path, const char *database, int flags);

/* Takes the lock file of a database and writes our pid into it. The lock ends with the process or
 * with close(*ret_fd); the file stays, for removing it would race with the next daemon. MS_E_EXISTS
 * names the daemon that holds it. *ret_witness: the last that store_witness wrote there, 0 nothing.
 */
int store_lock(const char *database, int *ret_fd, uint64_t *ret_witness, struct ms_err *err);

/* Notes in the lock file that so many ticks are durable. It is not synced and so is never ahead of
 * the database, unless that was put back or lost what it had promised to keep. */
void store_witness(int fd, uint64_t ticks);

/* Makes sure that the reserve file exists with MS_STORE_RESERVE bytes of real disk. spare_bytes:
 * that much must be free beside it, else the next commit would take it away again. 0, or with the
 * file's name and the cause MS_E_FULL (freeing space, or a higher quota, mends it; what it held
 * before stays; errno is EDQUOT where it is a quota) or MS_E_IO (anything else: rights, a folder of
 * that name, a limit of this process).
 */
int store_reserve_make(const char *database, uint64_t spare_bytes, struct ms_err *err);
/* Makes sure that it holds so many bytes, or more as before; likewise. */
int store_reserve_hold(const char *database, uint64_t bytes, struct ms_err *err);
/* Gives MS_STORE_PIECE bytes of it back to the disk: pieces, for what one write does not need must
 * not go to whoever fills the disk. 1, and *ret_why: MS_E_FULL, in the words of the above; 0: there
 * is nothing left to give. */
int store_reserve_give(const char *database, struct ms_err *ret_why);
/* What it holds now, in words: MS_E_FULL. */
int store_reserve_left(const char *database, struct ms_err *ret);
/* Bytes of disk that it holds now. */
uint64_t store_reserve_held(const char *database);

/* Bytes that we may still write to the file system of a database. */
uint64_t store_free_bytes(const char *database);

/* "nfs" and the like where the database lies on a file system whose locks and syncs cannot be
 * trusted, else NULL. */
const char *store_bad_filesystem(const char *database);

#endif
