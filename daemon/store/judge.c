/* judge.c - does a database hold all that was acknowledged, as far as what lies beside it tells? */
#include "daemon/store/store_private.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- is it the file, and the place? -------------------------------------------------------------
 */

/* Rows of (key, value): what the database noted of where it lay, and whether it was in use. */
static void read_home(struct store *store, sqlite3_stmt *statement)
{
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(statement, 0);
        uint64_t value = (uint64_t)sqlite3_column_int64(statement, 1);
        for (unsigned part = 0; key != NULL && part < HOME_PARTS; part++) {
            if (strcmp(key, home_keys[part]) == 0) {
                store->home.parts[part] = value;
                store->home.known |= 1U << part;
            }
        }
        store->was_open |= key != NULL && strcmp(key, STORE_KEY_OPEN) == 0 && value != 0;
    }
    sqlite3_reset(statement);
}

static int take_home(struct store *store, sqlite3_stmt *statement, struct ms_err *err)
{
    struct home here;
    if (home_look(store->path, &here) < 0) {
        return ms_fail_errno(err, MS_E_IO, "database %s", store->path);
    }
    store->home = (struct home){.known = 0};
    store->was_open = 0;
    read_home(store, statement);
    store->is_copy = !home_matches(store->path, &store->home, &here);
    return 0;
}

int judge_home(struct store *store, struct ms_err *err)
{
    int rc = take_home(store, store->statements[ST_LOAD_META], err);
    store->is_marked_open = store->was_open;
    store->home_unstored = 1;
    return rc;
}

/* ---- before it is opened ------------------------------------------------------------------------
 */

/* Beside no database SQLite takes the log of writes away and begins with an empty one: then the
 * file that was only late, or aside, lacks what the log held. */
static int judge_absence(struct store *store, int log_holds, struct ms_err *err)
{
    if (store->witness == 0 && !log_holds) {
        return 0;
    }
    return ms_fail(
        err, MS_E_CONFIG,
        "there is no database %s, and %llu transactions had been written to it%s: put it "
        "back (with its -wal), or begin with an empty one: start once with " STORE_ACCEPT,
        store->path, (unsigned long long)store->witness,
        store->witness == 0 ? " or more, its log of writes is there" : "");
}

/* Opens the file as it is and makes nothing beside it. */
static int open_immutable(const char *path, sqlite3 **ret)
{
    static const char option[] = "?immutable=1";
    /* with an authority, an empty one: else that would be the beginning of "//srv/state.db". And of
     * a path that is not absolute its first folder would be one */
    char uri[3 * MS_PATH_MAX + sizeof("file://") + sizeof(option)] = "file://";
    size_t n = strlen(uri);
    assert(path[0] == '/'); /* store_resolve */
    for (const char *p = path; *p != '\0'; p++) {
        int plain = isalnum((unsigned char)*p) || strchr("/._-", *p) != NULL;
        n += (size_t)snprintf(uri + n, sizeof(uri) - n, plain ? "%c" : "%%%02x", (unsigned char)*p);
    }
    snprintf(uri + n, sizeof(uri) - n, "%s", option);
    return sqlite3_open_v2(uri, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                           NULL);
}

static int fail_look(const struct store *store, sqlite3 *db, int rc, struct ms_err *err)
{
    static const char cannot[] = "cannot be looked at before it is opened";
    errno = db != NULL ? sqlite3_system_errno(db) : 0;
    if (errno != 0) { /* of opening and reading: SQLite's own words do not say why */
        return ms_fail_errno(err, MS_E_IO, "database %s %s", store->path, cannot);
    }
    return ms_fail(err, (rc & 0xff) == SQLITE_NOMEM ? MS_E_NOMEM : MS_E_IO, "database %s %s: %s",
                   store->path, cannot, db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

/* A file that is there is one that can be opened; one that holds no such table, or is damaged, is
 * refused later, in better words. */
static int read_carried(struct store *store, struct ms_err *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int rc = open_immutable(store->path, &db);
    int is_open = rc == SQLITE_OK;
    if (is_open) {
        rc = sqlite3_prepare_v2(db, "SELECT key, value FROM meta", -1, &statement, NULL);
    }
    int is_read = rc == SQLITE_OK;
    int ret = 0;
    if (is_read) {
        ret = take_home(store, statement, err);
    } else if (!is_open || (rc & 0xff) == SQLITE_NOMEM || (rc & 0xff) == SQLITE_IOERR) {
        ret = fail_look(store, db, rc, err);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return ret;
}

/* Of a database that was carried off without its log of writes no witness tells. It is looked at
 * before SQLite makes an empty log, which a start that is refused, or killed, would leave for the
 * next one to believe in. */
static int judge_carried(struct store *store, struct ms_err *err)
{
    int rc = read_carried(store, err);
    if (rc == 0 && store->is_copy && store->was_open) {
        rc = ms_fail(err, MS_E_CONFIG,
                     "database %s was copied or moved while in use, or after a kill, and without "
                     "its log of writes: put that beside it as %s-wal, or accept that its last "
                     "transactions are lost: start once with " STORE_ACCEPT,
                     store->path, store->path);
    }
    return rc;
}

int judge_unopened(struct store *store, int absent, struct ms_err *err)
{
    int log_holds = 0;
    int has_log = wal_is_there(store->path, &log_holds);
    if (store->accepts_loss) {
        return 0;
    }
    return absent ? judge_absence(store, log_holds, err) : has_log ? 0 : judge_carried(store, err);
}

/* ---- by which clock
 * ------------------------------------------------------------------------------
 */

static const char *date_of(int64_t ms, char *buf, size_t size)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    if (gmtime_r(&at, &tm) == NULL || strftime(buf, size, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0) {
        snprintf(buf, size, "%lld ms", (long long)ms);
    }
    return buf;
}

/* When something happened last, as its rows say; 0: nothing has. */
static int find_newest(struct store *store, int64_t *ret_ms, struct ms_err *err)
{
    sqlite3_stmt *statement = store->statements[ST_NEWEST];
    int rc = sqlite3_step(statement);
    *ret_ms = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    return rc == SQLITE_ROW ? 0 : store_fail(store, rc, "looking for its newest row", err);
}

int store_judge_clock(struct store *store, int64_t wall_ms, struct ms_err *err)
{
    enum { DAY_MS = 86400000 };
    const int64_t least_ms = 1577836800000; /* 2020-01-01, from which the numbers are counted */
    char now[32];
    char then[32];
    int64_t newest_ms = 0;
    int rc = find_newest(store, &newest_ms, err);
    if (rc < 0 ||
        (wall_ms >= least_ms && (store->accepts_loss || wall_ms >= newest_ms - (int64_t)DAY_MS))) {
        return rc;
    }
    if (wall_ms < least_ms) {
        return ms_fail(err, MS_E_UNAVAILABLE,
                       "the clock of this host says %s, and database %s is a copy, or lacks "
                       "writes: its numbers would not go on above all that were given: set the "
                       "clock (timedatectl)",
                       date_of(wall_ms, now, sizeof(now)), store->path);
    }
    return ms_fail(err, MS_E_UNAVAILABLE,
                   "the clock of this host says %s, and database %s, which is a copy, holds what "
                   "happened on %s: set the clock (timedatectl); if it is right, and was wrong "
                   "then, start once with --accept-loss",
                   date_of(wall_ms, now, sizeof(now)), store->path,
                   date_of(newest_ms, then, sizeof(then)));
}

/* ---- once it is loaded --------------------------------------------------------------------------
 */

/* A clean answer from a database that has forgotten what it promised to keep. */
static int judge_ticks(struct store *store, struct ms_err *err)
{
    if (store->witness <= store->ticks) {
        return 0;
    }
    if (!store->accepts_loss) {
        return ms_fail(
            err, MS_E_CONFIG,
            "database %s is older than what was acknowledged: it holds %llu transactions "
            "and %llu had been written. Put the newest copy back (with its -wal), or "
            "accept the loss: start once with " STORE_ACCEPT,
            store->path, (unsigned long long)store->ticks, (unsigned long long)store->witness);
    }
    store_add_note(store,
                   "database %s lacks %llu of %llu transactions that were acknowledged: accepted, "
                   "ids and generations go on far above",
                   store->path, (unsigned long long)(store->witness - store->ticks),
                   (unsigned long long)store->witness);
    return 0;
}

int judge_loaded(struct store *store, struct ms_err *err)
{
    int rc = judge_ticks(store, err);
    if (rc == 0 && store->is_copy) {
        store_add_note(store,
                       "database %s was copied, moved or put back, or what lies beside it was: "
                       "what was acknowledged elsewhere since is not in it; ids and generations go "
                       "on far above",
                       store->path);
    }
    return rc;
}
