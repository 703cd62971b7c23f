/* store.h - durable state in SQLite; the only file that knows SQL
 *
 * One connection, one thread, WAL, synchronous=FULL: a commit that returned survives a power cut.
 */
#ifndef STORE_H
#define STORE_H

#include "daemon/sched/sched.h"

struct store;

/* Opens or creates the database; checks application id, schema version and integrity; takes a lock
 * file against a second daemon. Never deletes or recreates: what is unreadable is MS_E_CONFIG with
 * the command that restores it. Returns owned. */
int store_open(const char *path, struct store **ret, struct ms_err *err);
/* What an operator should know about a database that opened (a file system that cannot be trusted),
 * or "". Borrowed until store_close. */
const char *store_warning(const struct store *store);
void store_close(struct store *store); /* checkpoints the WAL; NULL allowed */

/* Gives every row to the core (sched_load_*), jobs in id order, then members, then meta. */
int store_load(struct store *store, struct sched *sched, struct ms_err *err);

/* Writes the durable ones of n effects in one transaction; nothing to write costs nothing.
 * A reserve file beside the database holds MS_STORE_RESERVE bytes. When the disk is full the
 * reserve is given up, the transaction written in its place, and 1 returned: the caller refuses new
 * work (sched_refuse_writes). MS_E_FULL: full even so, rolled back. MS_E_IO: the outcome is
 * unknown. After both the caller must exit. */
int store_commit(struct store *store, const struct sched_effect *effects, size_t n,
                 struct ms_err *err);

/* Call when idle: PASSIVE checkpoint once the WAL is large, and the reserve made again if it was
 * given up. Returns 1 while the reserve is missing, else 0. */
int store_idle(struct store *store);

#endif
