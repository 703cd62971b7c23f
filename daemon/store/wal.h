/* wal.h - judges the log of writes (state.db-wal) before SQLite recovers it
 *
 * SQLite's recovery takes the frames of the log up to the first whose checksum does not hold, and
 * overwrites the rest without a word. After a power cut a torn end is legal: nothing in it was
 * acknowledged. After a damaged byte it is not. The bytes cannot tell the two apart, so what would
 * be dropped is counted, and a copy of the log kept; the counter of ticks judges. */
#ifndef STORE_WAL_H
#define STORE_WAL_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

struct wal_loss {
    uint64_t frames;  /* that belong to this log and will not be taken; 0: nothing is dropped */
    uint64_t commits; /* ends of transactions among them */
    int header;       /* the log's own header is damaged, so that all of it is dropped */
    int absent;       /* there is no database that it belongs to */
    char copy[MS_PATH_MAX + 32]; /* where the log was copied to; "" that failed */
};

/* Looks at the log beside a database; with a loss it is kept (below). Beside no database (absent)
 * all of it is lost. Reads only. 0 (no log: no loss), or MS_E_IO, MS_E_NOMEM. */
int wal_judge(const char *database, int absent, struct wal_loss *ret, struct ms_err *err);
/* Is there a log; if only an empty one? */
int wal_is_there(const char *database, int *ret_holds_something);

/* Copies the log to state.db.wal-lost.N, MS_STORE_LOST_MAX of them. A log that was kept already is
 * not copied again; where all places are taken the second oldest gives way: the oldest shows what
 * was first, however often a start is repeated. Fills path with where it lies, "" where it could
 * not be copied; no older copy is lost then. */
void wal_keep(int wal_fd, const char *database, char *path, size_t size);

#endif
