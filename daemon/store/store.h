/* store.h - durable state in SQLite; the only file that knows SQL
 *
 * One connection, one thread, WAL, synchronous=FULL: a commit that returned survives a power cut.
 */
#ifndef STORE_H
#define STORE_H

#include "daemon/sched/sched.h"

struct store;

struct store_setup {
    const char *path;
    const char *vfs; /* NULL: the system's files. Else a VFS of SQLite by name, which then holds all
                      * that there is: no lock, no reserve, no witness beside the database */
    int accepts_loss;    /* the operator knows that acknowledged transactions are missing */
    const char *setting; /* what names the path, for words; lives as long as the store. NULL:
                          * `database` */
};

/* Opens or creates the database; looks at what lies there before it makes anything; checks
 * application id, schema version and integrity; takes a lock file against a second daemon; keeps a
 * copy of a log of writes that SQLite cannot take whole. Never deletes or recreates: what is
 * unreadable is MS_E_CONFIG with the commands that restore it. Returns owned. */
int store_open_with(const struct store_setup *setup, struct store **ret, struct ms_err *err);
int store_open(const char *path, struct store **ret, struct ms_err *err);
/* What an operator should know about a database that opened: text i, NULL behind the last one (a
 * file system that cannot be trusted, writes that were dropped). Borrowed until store_close. */
const char *store_note(const struct store *store, size_t i);
/* MS_TOKEN_LEN bytes, drawn when the database was made. Borrowed until store_close. */
const uint8_t *store_secret(const struct store *store);
/* The file is not the one that the last commit went to, or what lay beside it is not (home.h): a
 * backup that was put back, a database that moved. Ids and generations must go on far above what it
 * holds. */
int store_is_copy(const struct store *store);
/* May ids and generations go on by this clock (Unix milliseconds), so that none is given twice?
 * Once loaded. MS_E_UNAVAILABLE, with the next step: it is before 2020, or a day before what the
 * database holds (unless a loss is accepted: then that may have been the wrong one). */
int store_judge_clock(struct store *store, int64_t wall_ms, struct ms_err *err);
void store_close(struct store *store); /* checkpoints the WAL; NULL allowed */

/* Gives every row to the core (sched_load_*), jobs in id order, then members, then meta; then folds
 * the log of writes into the database. MS_E_CONFIG: a row does not match its checksum, rows are
 * missing, or fewer ticks are there than were acknowledged (unless that is accepted); nothing was
 * written then. */
int store_load(struct store *store, struct sched *sched, struct ms_err *err);

/* Writes the durable ones of n effects in one transaction; nothing to write costs nothing.
 * A reserve file beside the database holds MS_STORE_RESERVE bytes. When the disk is full the log of
 * writes is folded in and begun anew in the room that it has; where that does not help the reserve
 * gives up as much as the transaction needs, and 1 is returned until it is whole again: the caller
 * refuses new work (sched_refuse_writes). A whole reserve has room for MS_STORE_BATCH, counted by
 * sched_effect_cost. MS_E_FULL: full even so, rolled back. MS_E_IO: the
 * outcome is unknown. After both the caller must exit. */
int store_commit(struct store *store, const struct sched_effect *effects, size_t n,
                 struct ms_err *err);

/* The frame that a READ asks for, or an Error frame with why there is none. Returns owned (free);
 * NULL without memory. */
uint8_t *store_answer(struct store *store, const struct sched_read *read, size_t *ret_bytes);

/* After a 1 of the two calls around this one: why new work must be refused, what to do, and which
 * file it is about. Returns MS_E_FULL, or another code where the disk is not full and the reserve
 * cannot be made all the same; 0: there is nothing to refuse. */
int store_refusal(const struct store *store, struct ms_err *err);
/* Is there room for an end that somebody asks for, and for those that come unasked after it? The
 * reserve holds MS_STORE_LAST bytes, or can be brought to hold them now: free space that the system
 * shows may lie beyond a quota. Ask before store_refusal, whose words say what is left. */
int store_has_room(struct store *store);

/* 1, with text, once for each thing that an operator should know of the commits so far: the mark
 * beside the database cannot be made (home.h). 0: there is nothing new. */
int store_take_warning(struct store *store, struct ms_err *ret);

/* Call when idle, and now and then while the reserve is missing: folds the WAL into the database
 * and empties it (what is not there cannot be damaged; while the reserve is missing a small one
 * keeps its room), and makes the reserve again if it was given up. Returns 1 while that is missing,
 * else 0. */
int store_idle(struct store *store);

#endif
