/* open.c - opens the database: whose it is, its schema, what can be judged without its rows */
#include "daemon/store/store_private.h"
#include "daemon/store/sum.h"
#include "proto/denied.h"
#include "proto/folder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- what goes wrong ----------------------------------------------------------------------------
 */

int store_errno(struct store *store, int of_log)
{
    sqlite3_file *file = NULL;
    const int which = of_log ? SQLITE_FCNTL_JOURNAL_POINTER : SQLITE_FCNTL_FILE_POINTER;
    int why = 0;
    if (store->db != NULL && sqlite3_file_control(store->db, "main", which, &file) == SQLITE_OK &&
        file != NULL && file->pMethods != NULL) {
        file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &why);
    }
    return why;
}

const char *store_cause(struct store *store, int rc, char buf[STORE_CAUSE_MAX])
{
    const int is_io = (rc & 0xff) == SQLITE_IOERR;
    int why = is_io ? store_errno(store, 1) : 0;
    why = is_io && why == 0 ? store_errno(store, 0) : why;
    buf[0] = '\0';
    if (why != 0) {
        char text[STORE_CAUSE_MAX];
        snprintf(buf, STORE_CAUSE_MAX, ": %.60s", strerror_r(why, text, sizeof(text)));
    }
    return buf;
}

/* A shortage of descriptors or memory is no fault of the folder, nor of its owner: it passes. */
static int fail_open(struct store *store, int rc, struct ms_err *err)
{
    const char *path = store->path;
    if ((rc & 0xff) == SQLITE_CANTOPEN && store->db != NULL) {
        errno = sqlite3_system_errno(store->db);
        if (ms_fail_errno(err, MS_E_CONFIG, "database %s cannot be opened", path) == MS_E_NOMEM) {
            return MS_E_NOMEM;
        }
    }
    rc = ms_fail(err, MS_E_CONFIG,
                 "database %s cannot be written (%s): its folder must exist and belong to the "
                 "user of msschedd",
                 path, store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc));
    return ms_denied(path, R_OK | W_OK, rc, err);
}

int store_fail(struct store *store, int rc, const char *doing, struct ms_err *err)
{
    char cause[STORE_CAUSE_MAX];
    const char *path = store->path;
    int said = 0;
    switch (rc == SQLITE_IOERR_NOMEM ? SQLITE_NOMEM : rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ms_fail(err, MS_E_EXISTS,
                       "database %s is in use by another process: only one msschedd may serve it; "
                       "find it with: fuser -v %s",
                       path, path);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* our texts are right: it is the schema in the file that is not */
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
        said = store->db != NULL && (sqlite3_errcode(store->db) & 0xff) == (rc & 0xff);
        return store_fail_damage(store, err, "%s",
                                 said ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc));
    case SQLITE_FULL:
        return ms_fail(err, MS_E_FULL, "no space for database %s while %s: free some there", path,
                       doing);
    case SQLITE_NOMEM:
        return ms_fail(err, MS_E_NOMEM, "no memory while %s of database %s", doing, path);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return fail_open(store, rc, err);
    default:
        return ms_fail(err, MS_E_IO, "database %s, %s: %s%s", path, doing,
                       store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc),
                       store_cause(store, rc, cause));
    }
}

int store_fail_damage(struct store *store, struct ms_err *err, const char *fmt, ...)
{
    char what[MS_TEXT_MAX + 1];
    char folder[MS_PATH_MAX + 1];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof(what), fmt, args) < 0) {
        what[0] = '\0';
    }
    va_end(args);
    const char *name = ms_name_of(store->path);
    ms_folder_of(store->path, folder, sizeof(folder));
    /* with all that lies beside it: the log of one file inside another is the end of both */
    return ms_fail(err, MS_E_CONFIG,
                   "database %s is damaged: %.120s. Keep it and put a copy back: sudo sh -ec "
                   "'cd %s; o=$(mktemp -d bad-XXXX); mv %s* $o; cp -a COPY %s'",
                   store->path, what, folder, name, name);
}

void store_add_note(struct store *store, const char *fmt, ...)
{
    if (store->notes_n < STORE_NOTES_MAX) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(store->notes[store->notes_n++], sizeof(store->notes[0]), fmt, args);
        va_end(args);
    }
}

/* Runs one statement and copies the first column of its first row ("" without one). */
static int query_text(struct store *store, const char *sql, char *buf, size_t size)
{
    sqlite3_stmt *statement = NULL;
    buf[0] = '\0';
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        if (rc == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL) {
            snprintf(buf, size, "%s", (const char *)sqlite3_column_text(statement, 0));
        }
        rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    int end = sqlite3_finalize(statement);
    return rc != SQLITE_OK ? rc : end;
}

/* Is it ours, and of a version that we know? Before anything is changed in it. */
static int check_identity(struct store *store, long *ret_version, struct ms_err *err)
{
    char id[32];
    char version[32];
    char tables[32];
    int rc = query_text(store, "PRAGMA application_id", id, sizeof(id));
    if (rc == SQLITE_OK) {
        rc = query_text(store, "PRAGMA user_version", version, sizeof(version));
    }
    if (rc == SQLITE_OK) {
        rc = query_text(store, "SELECT count(*) FROM sqlite_schema", tables, sizeof(tables));
    }
    if (rc != SQLITE_OK) {
        return store_fail(store, rc, "reading its header", err);
    }
    int fresh = strcmp(tables, "0") == 0 && strcmp(version, "0") == 0 && strcmp(id, "0") == 0;
    if (!fresh && strtol(id, NULL, 10) != STORE_APPLICATION_ID) {
        return ms_fail(err, MS_E_CONFIG,
                       "%s is a database of another program (application id %s): name another one "
                       "with %s",
                       store->path, id, store->setting);
    }
    *ret_version = strtol(version, NULL, 10);
    if (*ret_version < 0 || *ret_version > (long)store_migrations_n) {
        return ms_fail(err, MS_E_CONFIG,
                       "database %s has schema %ld, this msschedd knows up to %zu: a newer version "
                       "wrote it; install that one again",
                       store->path, *ret_version, store_migrations_n);
    }
    return 0;
}

static int set_pragmas(struct store *store, struct ms_err *err)
{
    for (size_t i = 0; i < store_pragmas_n; i++) {
        char got[32];
        int rc = query_text(store, store_pragmas[i].set, got, sizeof(got));
        if (rc == SQLITE_OK) {
            rc = query_text(store, store_pragmas[i].get, got, sizeof(got));
        }
        if (rc != SQLITE_OK) {
            return store_fail(store, rc, store_pragmas[i].set, err);
        }
        if (strcmp(got, store_pragmas[i].want) != 0) {
            return ms_fail(err, MS_E_CONFIG,
                           "database %s: SQLite answered \"%s\" to \"%s\"; the file system may not "
                           "support it, put the database on a local disk",
                           store->path, got, store_pragmas[i].set);
        }
    }
    return 0;
}

static int exec(struct store *store, const char *text)
{
    return sqlite3_exec(store->db, text, NULL, NULL, NULL);
}

/* All steps in one transaction. That of a database with rows in it stays open until they were
 * loaded: what is refused stays as the release that wrote it can read it. */
static int migrate(struct store *store, long version, struct ms_err *err)
{
    if (version == (long)store_migrations_n) {
        return 0;
    }
    int rc = exec(store, "BEGIN IMMEDIATE");
    for (size_t i = (size_t)version; i < store_migrations_n; i++) {
        for (const char *const *text = store_migrations[i].texts; rc == SQLITE_OK && *text != NULL;
             text++) {
            rc = exec(store, *text);
        }
    }
    if (rc == SQLITE_OK && version == 0) {
        rc = exec(store, "COMMIT");
    }
    if (rc != SQLITE_OK) {
        int failed = store_fail(store, rc, "bringing its schema up to date", err);
        exec(store, "ROLLBACK");
        return failed;
    }
    return 0;
}

/* Before a byte of it is believed. quick_check leaves out the indexes, of which there are none. */
static int check_integrity(struct store *store, struct ms_err *err)
{
    char row[160];
    int rc = query_text(store, "PRAGMA quick_check(1)", row, sizeof(row));
    if (rc == SQLITE_OK && strcmp(row, "ok") != 0) {
        rc = SQLITE_CORRUPT;
    }
    if (rc == SQLITE_OK) {
        rc = query_text(store, "PRAGMA foreign_key_check", row, sizeof(row));
        if (rc == SQLITE_OK && row[0] != '\0') {
            rc = SQLITE_CORRUPT;
        }
    }
    return rc == SQLITE_OK ? 0 : store_fail(store, rc, "checking its integrity", err);
}

static int prepare_all(struct store *store, struct ms_err *err)
{
    for (size_t i = 0; i < ST_COUNT; i++) {
        int rc = sqlite3_prepare_v3(store->db, store_statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->statements[i], NULL);
        if (rc != SQLITE_OK) {
            return store_fail(store, rc, "preparing its statements", err);
        }
    }
    return 0;
}

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct store *)arg)->wal_pages = pages;
    return SQLITE_OK;
}

/* ---- what it holds beside its rows --------------------------------------------------------------
 */

/* A trigger that counts wrongly would be found out only when it has. */
static int check_schema(struct store *store, struct ms_err *err)
{
    int64_t want[2] = {0, 0};
    int64_t got[2] = {0, 0};
    int rc = store_ledger(store, "schema", want);
    sqlite3_stmt *statement = store->statements[ST_SCHEMA];
    if (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        got[0] = sqlite3_column_int64(statement, 0);
        got[1] = sqlite3_column_int64(statement, 1);
    }
    sqlite3_reset(statement);
    if (rc != SQLITE_OK) {
        return store_fail(store, rc, "reading its ledger", err);
    }
    return memcmp(want, got, sizeof(want)) == 0
               ? 0
               : store_fail_damage(store, err, "its schema does not match its checksum");
}

static int make_secret(struct store *store, struct ms_err *err)
{
    if (getrandom(store->secret, sizeof(store->secret), 0) != (ssize_t)sizeof(store->secret)) {
        return ms_fail_errno(err, MS_E_IO, "no random numbers for database %s", store->path);
    }
    struct binder binder = bind_begin(store, ST_PUT_SECRET);
    bind_text(&binder, "stamp");
    bind_blob(&binder, store->secret, sizeof(store->secret));
    int rc = bind_run(&binder);
    return rc == SQLITE_OK ? 0 : store_fail(store, rc, "making its secret", err);
}

static int take_secret(struct store *store, struct ms_err *err)
{
    int64_t ledger[2] = {0, 0};
    int rc = store_ledger(store, "secret", ledger);
    if (rc == SQLITE_OK && ledger[0] == 0) {
        return make_secret(store, err);
    }
    sqlite3_stmt *statement = store->statements[ST_LOAD_SECRETS];
    const int good = rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW &&
                     sqlite3_column_bytes(statement, 1) == (int)sizeof(store->secret) &&
                     sqlite3_column_int64(statement, 3) == 1 &&
                     sqlite3_column_int64(statement, 2) == ledger[1];
    if (good) {
        memcpy(store->secret, sqlite3_column_blob(statement, 1), sizeof(store->secret));
    }
    sqlite3_reset(statement);
    return good ? 0 : store_fail_damage(store, err, "its secret does not match its checksum");
}

int store_open_database(struct store *store, const char *vfs, struct ms_err *err)
{
    /* what is only defence and cannot be refused; the lock mode before the first access */
    static const char first[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA trusted_schema=OFF;"
                                "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;";
    int rc = sqlite3_open_v2(store->path, &store->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                 SQLITE_OPEN_EXRESCODE,
                             vfs);
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(store->db, first, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = store_add_functions(store->db);
    }
    if (rc != SQLITE_OK) {
        return store_fail(store, rc, "opening", err);
    }
    long version = 0;
    rc = check_identity(store, &version, err);
    if (rc == 0) {
        rc = set_pragmas(store, err);
    }
    if (rc == 0) {
        /* the hook replaces autocheckpoint, so it comes after that pragma */
        sqlite3_wal_hook(store->db, on_wal, store);
        rc = migrate(store, version, err);
        store->is_believed = rc == 0 && version == 0; /* made just now */
    }
    if (rc == 0) {
        rc = check_integrity(store, err);
    }
    if (rc == 0) {
        rc = prepare_all(store, err);
    }
    if (rc == 0) {
        rc = check_schema(store, err);
    }
    if (rc == 0) {
        rc = take_secret(store, err);
    }
    return rc == 0 && store->has_files ? judge_home(store, err) : rc;
}
