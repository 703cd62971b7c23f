/* fold.c - folds the log of writes into the database */
#include "daemon/store/store_private.h"

#include <errno.h>
#include <stdio.h>

int store_judge_full(struct store *store, int rc, int wrote_log)
{
    if (rc == SQLITE_IOERR_WRITE && store_errno(store, wrote_log) == EDQUOT) {
        store->is_quota = 1;
        return SQLITE_FULL;
    }
    if ((rc & 0xff) == SQLITE_FULL) {
        store->is_quota = 0;
    }
    return rc;
}

/* SQLITE_FCNTL_FILE_POINTER: the database; ..._JOURNAL_POINTER: its log of writes. */
static sqlite3_file *find_file(struct store *store, int which)
{
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(store->db, "main", which, &file);
    return rc == SQLITE_OK && file != NULL && file->pMethods != NULL ? file : NULL;
}

static uint64_t file_bytes(struct store *store, int which)
{
    sqlite3_file *file = find_file(store, which);
    sqlite3_int64 size = 0;
    return file != NULL && file->pMethods->xFileSize(file, &size) == SQLITE_OK && size > 0
               ? (uint64_t)size
               : 0;
}

uint64_t store_log_bytes(struct store *store)
{
    return file_bytes(store, SQLITE_FCNTL_JOURNAL_POINTER);
}

int store_has_unfolded(struct store *store, uint64_t bytes)
{
    sqlite3_stmt *pages = store->statements[ST_PAGES];
    uint64_t whole = 0;
    if ((uint64_t)store->wal_pages * MS_STORE_PAGE <= bytes) {
        return 0;
    }
    if (sqlite3_step(pages) == SQLITE_ROW) {
        whole = (uint64_t)sqlite3_column_int64(pages, 0) * MS_STORE_PAGE;
    }
    sqlite3_reset(pages);
    return whole > file_bytes(store, SQLITE_FCNTL_FILE_POINTER) + bytes;
}

/* At once: the connection's own words (sqlite3_errmsg) are not of what its files were told behind
 * its back, and the next success forgets them. */
static void note_why(struct store *store, int rc)
{
    char cause[STORE_CAUSE_MAX];
    snprintf(store->broken_why, sizeof(store->broken_why), "%s%s", sqlite3_errstr(rc),
             store_cause(store, rc, cause));
}

void store_fold(struct store *store, int mode)
{
    int rc = sqlite3_wal_checkpoint_v2(store->db, NULL, mode, NULL, NULL);
    rc = store_judge_full(store, rc, 0);
    if ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CORRUPT) {
        store->broken = 1; /* the next commit says so; a full disk is no such thing */
        note_why(store, rc);
    }
    if (rc == SQLITE_OK) {
        store->wal_pages = 0;
    }
}

/* SQLite empties the log without a sync. After a sync that failed the disk may hold an older log
 * than the one that was folded in: if the power went now, that one would be played over what is
 * newer. */
static void sync_log(struct store *store)
{
    sqlite3_file *log = find_file(store, SQLITE_FCNTL_JOURNAL_POINTER);
    int rc = log != NULL ? log->pMethods->xSync(log, SQLITE_SYNC_FULL) : SQLITE_OK;
    if (rc != SQLITE_OK) {
        store->broken = 1;
        note_why(store, rc);
    }
}

/* A sync that failed before a restart leaves pages of the log that this system shows and the disk
 * does not have; it takes them for written, so another sync would not help. Folding them in and
 * losing the power on the way would leave a database of two ages. Written once more, they are to be
 * written. */
static void rewrite_log(struct store *store)
{
    static uint8_t bytes[64 << 10];
    sqlite3_file *log = find_file(store, SQLITE_FCNTL_JOURNAL_POINTER);
    sqlite3_int64 size = 0;
    if (log == NULL) {
        return; /* there is none yet */
    }
    int rc = log->pMethods->xFileSize(log, &size);
    for (sqlite3_int64 at = 0; rc == SQLITE_OK && at < size; at += (int)sizeof(bytes)) {
        sqlite3_int64 left = size - at;
        int n = left < (int)sizeof(bytes) ? (int)left : (int)sizeof(bytes);
        rc = log->pMethods->xRead(log, bytes, n, at);
        rc = rc == SQLITE_OK ? log->pMethods->xWrite(log, bytes, n, at) : rc;
    }
    rc = store_judge_full(store, rc, 1);
    if (rc == SQLITE_OK && size > 0) {
        rc = log->pMethods->xSync(log, SQLITE_SYNC_FULL);
    }
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_FULL) {
        store->broken = 1;
        note_why(store, rc);
    }
}

int store_settle(struct store *store, struct ms_err *err)
{
    if (!sqlite3_get_autocommit(store->db)) { /* of a schema that was brought up to date */
        int rc = sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL);
        if (rc != SQLITE_OK) {
            return store_fail(store, rc, "bringing its schema up to date", err);
        }
    }
    store->is_believed = 1;
    store->wal_pages = (int)(store_log_bytes(store) / MS_STORE_PAGE);
    rewrite_log(store);
    if (!store->broken) {
        store_fold(store, SQLITE_CHECKPOINT_TRUNCATE);
    }
    if (!store->broken) {
        sync_log(store);
    }
    if (!store->broken) {
        store_keep_foldable(store);
    }
    return store->broken
               ? ms_fail(err, MS_E_IO, "database %s: its log of writes cannot be folded in: %s",
                         store->path, store->broken_why)
               : 0;
}
