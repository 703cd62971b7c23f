/* store_private.h - what the files of the store share; nothing outside includes it */
#ifndef STORE_PRIVATE_H
#define STORE_PRIVATE_H

#include "daemon/store/files.h"
#include "daemon/store/home.h"
#include "daemon/store/place.h"
#include "daemon/store/sql.h"
#include "daemon/store/store.h"
#include "daemon/store/wal.h"

#include <sqlite3.h>

enum { STORE_NOTES_MAX = 4, STORE_CAUSE_MAX = 64 };

/* In meta: 1 while a daemon serves the database, and after one that was killed. */
#define STORE_KEY_OPEN "home_open"

/* Typed alone, it finds no folder for its socket while the service is stopped. */
#define STORE_ACCEPT "--accept-loss (msschedd(8) has the line)"

struct store {
    sqlite3 *db;
    sqlite3_stmt *statements[ST_COUNT];
    int lock_fd;
    int has_files; /* on a real file system: lock, reserve and the judging of the WAL */
    int has_reserve;
    struct ms_err no_reserve; /* why not, where there is none */
    int is_quota;             /* what was full the last time: a quota, not the disk */
    int wal_pages;
    int broken;                            /* a checkpoint failed: what the disk holds is unknown */
    char broken_why[STORE_CAUSE_MAX + 64]; /* the system's words for it */
    int is_believed; /* loaded whole, or written to: from now on its log may be folded in */
    int accepts_loss;
    int is_copy;        /* not the file that the rows were written to, or not where they were */
    int home_unstored;  /* goes with the next commit, and a new mark */
    int is_marked_open; /* what the file says now */
    char unmarked[MS_TEXT_MAX + 1]; /* why no new mark can be made; "": none was missed */
    int is_unmarked_untold;
    int was_open;       /* as the file said: nobody ended its use in order */
    uint64_t ticks;     /* of the last commit, or as loaded */
    uint64_t ticks_due; /* of the transaction that is being written */
    uint64_t witness;   /* ticks that the lock file has seen committed; 0 none */
    uint64_t last_event, events_whole_from; /* from that number on every event is there */
    struct home home; /* as the database has it; from the first commit on, where it lies */
    uint8_t secret[MS_TOKEN_LEN];
    char path[MS_PATH_MAX + 1];
    const char *setting; /* what names it */
    char notes[STORE_NOTES_MAX][MS_TEXT_MAX + 1];
    size_t notes_n;
};

/* Maps a result of SQLite that stops the opening; doing says during what. Returns the code. */
int store_fail(struct store *store, int rc, const char *doing, struct ms_err *err);
/* Why the last input or output of the log of writes, or of the database itself, failed; 0: none
 * did, or nobody knows. */
int store_errno(struct store *store, int of_log);
/* ": File too large" into buf, where the system said why an input or output failed; returns buf. */
const char *store_cause(struct store *store, int rc, char buf[STORE_CAUSE_MAX]);
/* A row, or the lack of one, that was not written by us: the text ends with what restores. */
int store_fail_damage(struct store *store, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
/* Keeps a text for store_note; the oldest ones stay. */
void store_add_note(struct store *store, const char *fmt, ...) MS_PRINTF(2, 3);

/* open.c: the connection, the schema, the checks that need no row. */
int store_open_database(struct store *store, const char *vfs, struct ms_err *err);

/* judge.c: does it hold all that was acknowledged? Each MS_E_CONFIG in words, with the next step.
 * Before SQLite opens it, makes or takes a log of writes; absent: there is no database. */
int judge_unopened(struct store *store, int absent, struct ms_err *err);
/* Is it the file that the rows were written to, where they were written? Fills home, is_copy. */
int judge_home(struct store *store, struct ms_err *err);
int judge_loaded(struct store *store, struct ms_err *err);

/* store.c: a named number of the store's own; in a transaction. A result of SQLite. */
int store_put_meta(struct store *store, const char *key, uint64_t value);

/* fold.c: the result of a write. A quota that is reached is a full disk; SQLite knows ENOSPC alone
 * and calls it an I/O error of the file that it wrote: the log, or at a checkpoint the database. */
int store_judge_full(struct store *store, int rc, int wrote_log);
/* fold.c: folds the log of writes into the database, by a mode of SQLite's checkpoints. Sets
 * wal_pages to 0 if all went, broken if nobody knows what the disk holds; neither: it is full. */
void store_fold(struct store *store, int mode);
uint64_t store_log_bytes(struct store *store); /* of disk that the log's file takes */
/* fold.c: does the database have to grow by more than that when its log is folded in? */
int store_has_unfolded(struct store *store, uint64_t bytes);

/* full.c: after a commit that found the disk full. Folds the log in, so that the next one begins it
 * anew in the room that it has; where that does not help, a piece of the reserve is given. 1: try
 * again; 0: there is no more, or the store is broken. */
int store_make_room(struct store *store);
/* full.c: after a commit. What the log holds goes into the database while the reserve has room for
 * it: a log that may grow as long as the disk lets it could be too large to be folded in ever. */
void store_keep_foldable(struct store *store);
/* full.c: store_reserve_make; fills has_reserve, or no_reserve and is_quota. */
void store_want_reserve(struct store *store, uint64_t spare_bytes);
/* full.c: folds the log in; its file goes, or where the disk is full it keeps its room. */
void store_fold_away(struct store *store);
int store_fail_full(const struct store *store, struct ms_err *err); /* MS_E_FULL, in words */

/* fold.c: what was loaded is whole. Folds the log of writes in, so that what a failed sync left in
 * doubt is on the disk before anybody is served: MS_E_IO if that fails; a full disk is no failure.
 */
int store_settle(struct store *store, struct ms_err *err);

/* load.c: an event that is in its table, in the order of their numbers. */
void store_saw_event(struct store *store, uint64_t seq);

/* Binds parameters from left to right; the first failure sticks. */
struct binder {
    sqlite3_stmt *statement;
    int index;
    int rc;
};

/* Rows and sum of a table as the ledger has them. A result of SQLite; SQLITE_CORRUPT: no entry. */
int store_ledger(struct store *store, const char *table, int64_t ret[2]);

struct binder bind_begin(struct store *store, int which);
void bind_int(struct binder *binder, int64_t value);
void bind_count(struct binder *binder, uint64_t value); /* above SQLite's range: the largest */
void bind_text(struct binder *binder, const char *text);
void bind_real(struct binder *binder, double value);
void bind_blob(struct binder *binder, const uint8_t *bytes, size_t size);
int bind_run(struct binder *binder); /* one step; bound memory is let go */

/* Reads columns from left to right; the first that does not fit sticks. */
struct reader {
    sqlite3_stmt *statement;
    int index;
    int bad;
};

void read_text(struct reader *reader, char *buf, size_t size);
int64_t read_int(struct reader *reader);
const uint8_t *read_blob(struct reader *reader,
                         size_t *ret_size); /* borrowed until the next step */

#endif
