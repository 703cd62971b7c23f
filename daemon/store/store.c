/* store.c - durable state in SQLite; the only file that knows SQL */
#include "daemon/store/store.h"

#include "daemon/store/files.h"
#include "daemon/store/sql.h"
#include "proto/principal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAL_IDLE_PAGES = 256,   /* 1 MiB: a checkpoint when nobody waits for us */
    WAL_BUSY_PAGES = 16384, /* 64 MiB: a checkpoint even so, for a WAL without end fills the disk */
    RESERVE_SPARE = 512 << 10, /* free beside a reserve that is made again */
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *statements[ST_COUNT];
    int lock_fd;
    int has_reserve;
    int wal_pages;
    int broken; /* a checkpoint failed: what the disk holds is unknown */
    char path[MS_PATH_MAX + 1];
    char warning[MS_TEXT_MAX + 1];
};

/* ---- opening ------------------------------------------------------------------------------------
 */

/* Maps a result of SQLite that stops the opening; text says what to do. */
static int fail_open(struct store *store, int rc, const char *doing, struct ms_err *err)
{
    const char *path = store->path;
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ms_fail(err, MS_E_EXISTS,
                       "database %s is in use by another process: only one msschedd may serve it; "
                       "find it with: fuser -v %s",
                       path, path);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return ms_fail(err, MS_E_CONFIG,
                       "database %s is damaged (%s): keep it, put a copy back (mv %s %s.bad; cp "
                       "COPY %s), or salvage it: sqlite3 %s.bad .recover | sqlite3 %s",
                       path, sqlite3_errstr(rc), path, path, path, path, path);
    case SQLITE_FULL:
        return ms_fail(err, MS_E_FULL, "no space for database %s while %s: free some there", path,
                       doing);
    case SQLITE_NOMEM:
        return ms_fail(err, MS_E_NOMEM, "no memory while %s of database %s", doing, path);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return ms_fail(
            err, MS_E_CONFIG,
            "database %s cannot be written (%s): its folder must exist and belong to the "
            "user of msschedd",
            path, store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc));
    default:
        return ms_fail(err, MS_E_IO, "database %s, %s: %s", path, doing,
                       store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc));
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
        return fail_open(store, rc, "reading its header", err);
    }
    int fresh = strcmp(tables, "0") == 0 && strcmp(version, "0") == 0 && strcmp(id, "0") == 0;
    if (!fresh && strtol(id, NULL, 10) != STORE_APPLICATION_ID) {
        return ms_fail(err, MS_E_CONFIG,
                       "%s is a database of another program (application id %s): name another file "
                       "with `database`",
                       store->path, id);
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
            return fail_open(store, rc, store_pragmas[i].set, err);
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

static int migrate(struct store *store, long version, struct ms_err *err)
{
    for (size_t i = (size_t)version; i < store_migrations_n; i++) {
        int rc = sqlite3_exec(store->db, store_migrations[i], NULL, NULL, NULL);
        if (rc != SQLITE_OK) {
            int failed = fail_open(store, rc, "bringing its schema up to date", err);
            sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
            return failed;
        }
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
    return rc == SQLITE_OK ? 0 : fail_open(store, rc, "checking its integrity", err);
}

static int prepare_all(struct store *store, struct ms_err *err)
{
    for (size_t i = 0; i < ST_COUNT; i++) {
        int rc = sqlite3_prepare_v3(store->db, store_statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->statements[i], NULL);
        if (rc != SQLITE_OK) {
            return fail_open(store, rc, "preparing its statements", err);
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

/* principal_from_0_1(owner), for migration 2 alone. */
static void sql_principal(sqlite3_context *context, int n, sqlite3_value **values)
{
    char out[MS_PRINCIPAL_MAX + 1] = "";
    const char *owner = (const char *)sqlite3_value_text(values[0]);
    (void)n;
    ms_principal_from_0_1(owner != NULL ? owner : "", out);
    sqlite3_result_text(context, out, -1, SQLITE_TRANSIENT);
}

static int open_database(struct store *store, struct ms_err *err)
{
    /* what is only defence and cannot be refused; the lock mode before the first access */
    static const char first[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA trusted_schema=OFF;"
                                "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;";
    int rc = sqlite3_open_v2(store->path, &store->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                 SQLITE_OPEN_EXRESCODE,
                             NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(store->db, first, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function(store->db, "principal_from_0_1", 1, SQLITE_UTF8, NULL,
                                     sql_principal, NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        return fail_open(store, rc, "opening", err);
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
    }
    if (rc == 0) {
        rc = check_integrity(store, err);
    }
    return rc == 0 ? prepare_all(store, err) : rc;
}

int store_open(const char *path, struct store **ret, struct ms_err *err)
{
    if (strlen(path) > MS_PATH_MAX) {
        return ms_fail(err, MS_E_CONFIG, "the path of the database is longer than %d bytes",
                       MS_PATH_MAX);
    }
    struct store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the store");
    }
    snprintf(store->path, sizeof(store->path), "%s", path);
    store->lock_fd = -1;
    int rc = store_lock(path, &store->lock_fd, err);
    if (rc == 0) {
        rc = open_database(store, err);
    }
    if (rc < 0) {
        store_close(store);
        return rc;
    }
    store->has_reserve = store_reserve_make(path, 0, NULL) == 0;
    const char *bad = store_bad_filesystem(path);
    if (bad != NULL) {
        snprintf(store->warning, sizeof(store->warning),
                 "database %s lies on %s, whose locks and syncs may lie: move it to a local disk",
                 path, bad);
    }
    *ret = store;
    return 0;
}

const char *store_warning(const struct store *store)
{
    return store->warning;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    for (size_t i = 0; i < ST_COUNT; i++) {
        sqlite3_finalize(store->statements[i]);
    }
    if (store->db != NULL && !store->broken) {
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    sqlite3_close(store->db);
    if (store->lock_fd >= 0) {
        close(store->lock_fd);
    }
    free(store);
}

/* ---- writing ------------------------------------------------------------------------------------
 */

/* Binds parameters from left to right; the first failure sticks. */
struct binder {
    sqlite3_stmt *statement;
    int index;
    int rc;
};

static void bind_int(struct binder *binder, int64_t value)
{
    if (binder->rc == SQLITE_OK) {
        binder->rc = sqlite3_bind_int64(binder->statement, ++binder->index, value);
    }
}

/* Counts come from peers: one above the range of SQLite's integers must not stop the daemon. */
static void bind_count(struct binder *binder, uint64_t value)
{
    bind_int(binder, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void bind_text(struct binder *binder, const char *text)
{
    if (binder->rc == SQLITE_OK) {
        binder->rc = sqlite3_bind_text(binder->statement, ++binder->index, text, -1, SQLITE_STATIC);
    }
}

static void bind_real(struct binder *binder, double value)
{
    if (binder->rc == SQLITE_OK) {
        binder->rc = sqlite3_bind_double(binder->statement, ++binder->index, value);
    }
}

static void bind_blob(struct binder *binder, const uint8_t *bytes, size_t size)
{
    if (binder->rc == SQLITE_OK) { /* a NULL pointer would be a NULL */
        binder->rc =
            sqlite3_bind_blob64(binder->statement, ++binder->index,
                                size > 0 ? bytes : (const uint8_t *)"", size, SQLITE_STATIC);
    }
}

static struct binder bind_begin(struct store *store, int which)
{
    return (struct binder){.statement = store->statements[which], .rc = SQLITE_OK};
}

/* Runs what was bound; bound memory is let go. */
static int bind_run(struct binder *binder)
{
    int rc = binder->rc;
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(binder->statement);
        rc = rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
    }
    sqlite3_reset(binder->statement);
    sqlite3_clear_bindings(binder->statement);
    return rc;
}

static int run(struct store *store, int which)
{
    struct binder binder = bind_begin(store, which);
    return bind_run(&binder);
}

static int put_job(struct store *store, const struct sched_job_row *job)
{
    struct binder binder = bind_begin(store, job->spec != NULL ? ST_PUT_JOB : ST_UPDATE_JOB);
    bind_int(&binder, (int64_t)job->id);
    bind_text(&binder, store_states[job->state]);
    bind_text(&binder, job->name);
    bind_text(&binder, job->owner);
    bind_text(&binder, job->reason);
    bind_text(&binder, job->key);
    bind_text(&binder, job->run_dir);
    bind_int(&binder, job->workers);
    bind_int(&binder, job->priority);
    bind_int(&binder, job->code);
    bind_count(&binder, job->generation);
    bind_int(&binder, job->submitted_ms > 0 ? job->submitted_ms : 0);
    bind_int(&binder, job->started_ms > 0 ? job->started_ms : 0);
    bind_int(&binder, job->ended_ms > 0 ? job->ended_ms : 0);
    bind_count(&binder, job->steps);
    bind_real(&binder, job->seconds > 0 ? job->seconds : 0); /* a NaN would be NULL */
    bind_text(&binder, job->weights_sha256);
    bind_text(&binder, job->plan_sha256);
    bind_int(&binder, job->recovery);
    bind_int(&binder, job->cancel_at_step);
    bind_text(&binder, job->cancel_text);
    bind_blob(&binder, job->results, job->results_bytes);
    if (job->spec != NULL) {
        bind_blob(&binder, job->spec, job->spec_bytes);
    }
    int rc = bind_run(&binder);
    if (rc == SQLITE_OK && sqlite3_changes(store->db) != 1) {
        return SQLITE_NOTFOUND; /* an update of a job that was never put */
    }
    return rc;
}

static int put_member(struct store *store, const struct sched_member_row *member)
{
    struct binder binder = bind_begin(store, ST_PUT_MEMBER);
    bind_int(&binder, (int64_t)member->job);
    bind_int(&binder, member->rank);
    bind_text(&binder, member->node_id);
    bind_int(&binder, (int64_t)member->incarnation);
    bind_text(&binder, member->host_name);
    bind_text(&binder, member->log_path);
    bind_text(&binder, member->principal);
    bind_count(&binder, member->generation);
    bind_text(&binder, member->state);
    bind_count(&binder, member->step);
    bind_int(&binder, member->pid);
    return bind_run(&binder);
}

static int drop(struct store *store, int which, uint64_t job)
{
    struct binder binder = bind_begin(store, which);
    bind_int(&binder, (int64_t)job);
    return bind_run(&binder);
}

static int put_meta(struct store *store, const char *key, uint64_t value)
{
    struct binder binder = bind_begin(store, ST_PUT_META);
    bind_text(&binder, key);
    bind_count(&binder, value);
    return bind_run(&binder);
}

static int put_effect(struct store *store, const struct sched_effect *effect)
{
    switch (effect->kind) {
    case SCHED_DO_PUT_JOB:
        return put_job(store, effect->job);
    case SCHED_DO_PUT_MEMBER:
        return put_member(store, effect->member);
    case SCHED_DO_DROP_MEMBERS:
        return drop(store, ST_DROP_MEMBERS, effect->job_id);
    case SCHED_DO_DROP_JOB:
        return drop(store, ST_DROP_JOB, effect->job_id);
    case SCHED_DO_PUT_META:
        return put_meta(store, effect->meta_key, effect->meta_value);
    case SCHED_DO_SEND:
    case SCHED_DO_CLOSE:
    case SCHED_DO_LOG:
    case SCHED_DO_EXIT:
        break;
    }
    return SQLITE_OK;
}

/* One transaction. After a failure nothing of it is there, unless the failure is an I/O error. */
static int write_all(struct store *store, const struct sched_effect *effects, size_t n)
{
    int rc = run(store, ST_BEGIN);
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        rc = put_effect(store, &effects[i]);
    }
    if (rc == SQLITE_OK) {
        rc = run(store, ST_COMMIT);
    }
    if (rc != SQLITE_OK && !sqlite3_get_autocommit(store->db)) {
        run(store, ST_ROLLBACK);
    }
    return rc;
}

static void checkpoint(struct store *store)
{
    int rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CORRUPT) {
        store->broken = 1; /* the next commit says so; a full disk is no such thing */
    }
    if (rc == SQLITE_OK) {
        store->wal_pages = 0;
    }
}

static int is_durable(const struct sched_effect *effects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sched_effect_is_durable(effects[i].kind)) {
            return 1;
        }
    }
    return 0;
}

int store_commit(struct store *store, const struct sched_effect *effects, size_t n,
                 struct ms_err *err)
{
    if (!is_durable(effects, n)) {
        return 0;
    }
    if (store->broken) {
        return ms_fail(err, MS_E_IO,
                       "database %s: a checkpoint failed, so what the disk holds is "
                       "unknown",
                       store->path);
    }
    int rc = write_all(store, effects, n);
    if ((rc & 0xff) == SQLITE_FULL && store->has_reserve) {
        store_reserve_drop(store->path);
        store->has_reserve = 0;
        rc = write_all(store, effects, n);
    }
    if ((rc & 0xff) == SQLITE_FULL) {
        return ms_fail(err, MS_E_FULL,
                       "database %s: the disk is full, the reserve is used up (%llu KiB free)",
                       store->path, (unsigned long long)store_free_bytes(store->path) / 1024);
    }
    if (rc != SQLITE_OK) {
        return ms_fail(err, MS_E_IO, "database %s: commit: %s (%d)", store->path,
                       sqlite3_errstr(rc), rc);
    }
    if (store->wal_pages > WAL_BUSY_PAGES) {
        checkpoint(store);
    }
    return store->has_reserve ? 0 : 1;
}

int store_idle(struct store *store)
{
    if (store->wal_pages > WAL_IDLE_PAGES && !store->broken) {
        checkpoint(store);
    }
    if (!store->has_reserve) {
        store->has_reserve = store_reserve_make(store->path, RESERVE_SPARE, NULL) == 0;
    }
    return store->has_reserve ? 0 : 1;
}

/* ---- loading ------------------------------------------------------------------------------------
 */

/* Reads columns from left to right; the first that does not fit sticks. */
struct reader {
    sqlite3_stmt *statement;
    int index;
    int bad;
};

static void read_text(struct reader *reader, char *buf, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(reader->statement, reader->index);
    int n = sqlite3_column_bytes(reader->statement, reader->index++);
    if (text == NULL || n < 0 || (size_t)n >= size || strlen(text) != (size_t)n) {
        reader->bad = 1;
        return;
    }
    memcpy(buf, text, (size_t)n + 1);
}

static int64_t read_int(struct reader *reader)
{
    return sqlite3_column_int64(reader->statement, reader->index++);
}

/* Borrowed until the next step; NULL where it is empty. */
static const uint8_t *read_blob(struct reader *reader, size_t *ret_size)
{
    const uint8_t *bytes = sqlite3_column_blob(reader->statement, reader->index);
    *ret_size = (size_t)sqlite3_column_bytes(reader->statement, reader->index++);
    return bytes;
}

static enum sched_job_state read_state(struct reader *reader)
{
    char name[16] = "";
    read_text(reader, name, sizeof(name));
    for (size_t i = 0; i < JOB_STATES; i++) {
        if (strcmp(name, store_states[i]) == 0) {
            return (enum sched_job_state)i;
        }
    }
    reader->bad = 1;
    return JOB_STATES;
}

static int load_job(sqlite3_stmt *statement, struct sched *sched, struct ms_err *err)
{
    struct reader reader = {.statement = statement};
    struct sched_job_row row = {.id = (uint64_t)read_int(&reader)};
    row.state = read_state(&reader);
    read_text(&reader, row.name, sizeof(row.name));
    read_text(&reader, row.owner, sizeof(row.owner));
    read_text(&reader, row.reason, sizeof(row.reason));
    read_text(&reader, row.key, sizeof(row.key));
    read_text(&reader, row.run_dir, sizeof(row.run_dir));
    row.workers = (uint32_t)read_int(&reader);
    row.priority = (int32_t)read_int(&reader);
    row.code = (int32_t)read_int(&reader);
    row.generation = (uint64_t)read_int(&reader);
    row.submitted_ms = read_int(&reader);
    row.started_ms = read_int(&reader);
    row.ended_ms = read_int(&reader);
    row.steps = (uint64_t)read_int(&reader);
    row.seconds = sqlite3_column_double(statement, reader.index++);
    read_text(&reader, row.weights_sha256, sizeof(row.weights_sha256));
    read_text(&reader, row.plan_sha256, sizeof(row.plan_sha256));
    row.recovery = read_int(&reader) != 0;
    row.cancel_at_step = read_int(&reader) != 0;
    read_text(&reader, row.cancel_text, sizeof(row.cancel_text));
    row.results = read_blob(&reader, &row.results_bytes);
    row.spec = read_blob(&reader, &row.spec_bytes);
    if (reader.bad) {
        return ms_fail(err, MS_E_CONFIG, "job %llu has a column that is no legal text",
                       (unsigned long long)row.id);
    }
    return sched_load_job(sched, &row, err);
}

static int load_member(sqlite3_stmt *statement, struct sched *sched, struct ms_err *err)
{
    struct reader reader = {.statement = statement};
    struct sched_member_row row = {.job = (uint64_t)read_int(&reader)};
    row.rank = (uint32_t)read_int(&reader);
    read_text(&reader, row.node_id, sizeof(row.node_id));
    row.incarnation = (uint64_t)read_int(&reader);
    read_text(&reader, row.host_name, sizeof(row.host_name));
    read_text(&reader, row.log_path, sizeof(row.log_path));
    read_text(&reader, row.principal, sizeof(row.principal));
    row.generation = (uint64_t)read_int(&reader);
    read_text(&reader, row.state, sizeof(row.state));
    row.step = (uint64_t)read_int(&reader);
    row.pid = (uint32_t)read_int(&reader);
    if (reader.bad) {
        return ms_fail(err, MS_E_CONFIG, "rank %u of job %llu has a column that is no legal text",
                       row.rank, (unsigned long long)row.job);
    }
    return sched_load_member(sched, &row, err);
}

static int load_meta(sqlite3_stmt *statement, struct sched *sched, struct ms_err *err)
{
    struct reader reader = {.statement = statement};
    char key[MS_NAME_MAX + 1] = "";
    read_text(&reader, key, sizeof(key));
    if (reader.bad) {
        return ms_fail(err, MS_E_CONFIG, "a named number has no legal name");
    }
    return sched_load_meta(sched, key, (uint64_t)read_int(&reader), err);
}

int store_load(struct store *store, struct sched *sched, struct ms_err *err)
{
    static const struct {
        int statement;
        int (*load)(sqlite3_stmt *statement, struct sched *sched, struct ms_err *err);
    } parts[] = {
        {ST_LOAD_JOBS, load_job}, {ST_LOAD_MEMBERS, load_member}, {ST_LOAD_META, load_meta}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(parts); i++) {
        sqlite3_stmt *statement = store->statements[parts[i].statement];
        int rc = 0;
        int step;
        while ((step = sqlite3_step(statement)) == SQLITE_ROW && rc == 0) {
            rc = parts[i].load(statement, sched, err);
        }
        sqlite3_reset(statement);
        if (rc < 0) {
            return ms_err_prefix(err, "database %s", store->path);
        }
        if (step != SQLITE_DONE) {
            return fail_open(store, step, "loading", err);
        }
    }
    return 0;
}
