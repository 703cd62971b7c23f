/* sql.c - every SQL text of the store, as tables */
#include "daemon/store/sql.h"

/* The states are written out: what a database says must not change with a display name. */
const char *const store_states[JOB_STATES] = {
    [JOB_QUEUED] = "QUEUED",         [JOB_PLACING] = "PLACING",     [JOB_RUNNING] = "RUNNING",
    [JOB_RECOVERING] = "RECOVERING", [JOB_SUCCEEDED] = "SUCCEEDED", [JOB_FAILED] = "FAILED",
    [JOB_CANCELLED] = "CANCELLED",
};

const char *const store_migrations[] = {
    /* 1 */
    "BEGIN IMMEDIATE;"
    "CREATE TABLE job("
    "  id INTEGER PRIMARY KEY CHECK(id > 0),"
    "  state TEXT NOT NULL CHECK(state IN ('QUEUED','PLACING','RUNNING','RECOVERING','SUCCEEDED',"
    "    'FAILED','CANCELLED')),"
    "  name TEXT NOT NULL CHECK(length(name) <= 64),"
    "  owner TEXT NOT NULL CHECK(length(owner) <= 64),"
    "  reason TEXT NOT NULL CHECK(length(reason) <= 384),"
    "  key TEXT NOT NULL CHECK(length(key) <= 64),"
    "  run_dir TEXT NOT NULL CHECK(length(run_dir) <= 1024),"
    "  workers INTEGER NOT NULL CHECK(workers BETWEEN 1 AND 1024),"
    "  priority INTEGER NOT NULL CHECK(priority BETWEEN -2147483648 AND 2147483647),"
    "  code INTEGER NOT NULL CHECK(code BETWEEN -2147483648 AND 2147483647),"
    "  generation INTEGER NOT NULL CHECK(generation >= 0),"
    "  submitted_ms INTEGER NOT NULL CHECK(submitted_ms >= 0),"
    "  started_ms INTEGER NOT NULL CHECK(started_ms >= 0),"
    "  ended_ms INTEGER NOT NULL CHECK(ended_ms >= 0),"
    "  steps INTEGER NOT NULL CHECK(steps >= 0),"
    "  seconds REAL NOT NULL CHECK(seconds >= 0),"
    "  weights_sha256 TEXT NOT NULL CHECK(length(weights_sha256) <= 64),"
    "  plan_sha256 TEXT NOT NULL CHECK(length(plan_sha256) <= 64),"
    "  spec BLOB NOT NULL CHECK(length(spec) <= 262144)"
    ") STRICT;"
    "CREATE TABLE member("
    "  job INTEGER NOT NULL REFERENCES job(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,"
    "  rank INTEGER NOT NULL CHECK(rank BETWEEN 0 AND 1023),"
    "  node_id TEXT NOT NULL CHECK(length(node_id) <= 64),"
    "  incarnation INTEGER NOT NULL," /* 64 random bits, kept as the signed number of those bits */
    "  host_name TEXT NOT NULL CHECK(length(host_name) <= 256),"
    "  log_path TEXT NOT NULL CHECK(length(log_path) <= 1024),"
    "  PRIMARY KEY(job, rank)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE meta("
    "  key TEXT PRIMARY KEY CHECK(length(key) <= 64),"
    "  value INTEGER NOT NULL CHECK(value >= 0)"
    ") STRICT, WITHOUT ROWID;"
    "PRAGMA application_id = 1836278628;"
    "PRAGMA user_version = 1;"
    "COMMIT;",
    /* 2: owners are principals, which are longer; a CHECK cannot be changed in place */
    "BEGIN IMMEDIATE;"
    "ALTER TABLE job RENAME TO job_1;"
    "ALTER TABLE member RENAME TO member_1;"
    "CREATE TABLE job("
    "  id INTEGER PRIMARY KEY CHECK(id > 0),"
    "  state TEXT NOT NULL CHECK(state IN ('QUEUED','PLACING','RUNNING','RECOVERING','SUCCEEDED',"
    "    'FAILED','CANCELLED')),"
    "  name TEXT NOT NULL CHECK(length(name) <= 64),"
    "  owner TEXT NOT NULL CHECK(length(owner) <= 80),"
    "  reason TEXT NOT NULL CHECK(length(reason) <= 384),"
    "  key TEXT NOT NULL CHECK(length(key) <= 64),"
    "  run_dir TEXT NOT NULL CHECK(length(run_dir) <= 1024),"
    "  workers INTEGER NOT NULL CHECK(workers BETWEEN 1 AND 1024),"
    "  priority INTEGER NOT NULL CHECK(priority BETWEEN -2147483648 AND 2147483647),"
    "  code INTEGER NOT NULL CHECK(code BETWEEN -2147483648 AND 2147483647),"
    "  generation INTEGER NOT NULL CHECK(generation >= 0),"
    "  submitted_ms INTEGER NOT NULL CHECK(submitted_ms >= 0),"
    "  started_ms INTEGER NOT NULL CHECK(started_ms >= 0),"
    "  ended_ms INTEGER NOT NULL CHECK(ended_ms >= 0),"
    "  steps INTEGER NOT NULL CHECK(steps >= 0),"
    "  seconds REAL NOT NULL CHECK(seconds >= 0),"
    "  weights_sha256 TEXT NOT NULL CHECK(length(weights_sha256) <= 64),"
    "  plan_sha256 TEXT NOT NULL CHECK(length(plan_sha256) <= 64),"
    "  recovery INTEGER NOT NULL CHECK(recovery IN (0, 1)),"
    "  cancel_at_step INTEGER NOT NULL CHECK(cancel_at_step IN (0, 1)),"
    "  cancel_text TEXT NOT NULL CHECK(length(cancel_text) <= 384),"
    "  results BLOB NOT NULL CHECK(length(results) <= 65536),"
    "  spec BLOB NOT NULL CHECK(length(spec) <= 262144)"
    ") STRICT;"
    "CREATE TABLE member("
    "  job INTEGER NOT NULL REFERENCES job(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,"
    "  rank INTEGER NOT NULL CHECK(rank BETWEEN 0 AND 1023),"
    "  node_id TEXT NOT NULL CHECK(length(node_id) <= 64),"
    "  incarnation INTEGER NOT NULL," /* 64 random bits, kept as the signed number of those bits */
    "  host_name TEXT NOT NULL CHECK(length(host_name) <= 256),"
    "  log_path TEXT NOT NULL CHECK(length(log_path) <= 1024),"
    "  principal TEXT NOT NULL CHECK(length(principal) <= 80),"
    "  generation INTEGER NOT NULL CHECK(generation >= 0),"
    "  state TEXT NOT NULL CHECK(length(state) <= 15),"
    "  step INTEGER NOT NULL CHECK(step >= 0),"
    "  pid INTEGER NOT NULL CHECK(pid BETWEEN 0 AND 4294967295),"
    "  PRIMARY KEY(job, rank)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO job SELECT id, state, name, principal_from_0_1(owner), reason, key, run_dir,"
    "  workers, priority, code, generation, submitted_ms, started_ms, ended_ms, steps, seconds,"
    "  weights_sha256, plan_sha256, 0, 0, '', x'', spec FROM job_1;"
    "INSERT INTO member SELECT member_1.job, rank, node_id, incarnation, host_name, log_path, '',"
    "  job_1.generation, '', 0, 0 FROM member_1 JOIN job_1 ON job_1.id = member_1.job;"
    "DROP TABLE member_1;"
    "DROP TABLE job_1;"
    "PRAGMA user_version = 2;"
    "COMMIT;",
};
const size_t store_migrations_n = MS_ARRAY_SIZE(store_migrations);

#define JOB_COLUMNS                                                                                \
    "id, state, name, owner, reason, key, run_dir, workers, priority, code, generation, "          \
    "submitted_ms, started_ms, ended_ms, steps, seconds, weights_sha256, plan_sha256, "            \
    "recovery, cancel_at_step, cancel_text, results"
#define JOB_ASSIGNMENTS                                                                            \
    "state=?2, name=?3, owner=?4, reason=?5, key=?6, run_dir=?7, workers=?8, priority=?9, "        \
    "code=?10, generation=?11, submitted_ms=?12, started_ms=?13, ended_ms=?14, steps=?15, "        \
    "seconds=?16, weights_sha256=?17, plan_sha256=?18, recovery=?19, cancel_at_step=?20, "         \
    "cancel_text=?21, results=?22"
#define MEMBER_COLUMNS                                                                             \
    "job, rank, node_id, incarnation, host_name, log_path, principal, generation, state, step, "   \
    "pid"

const char *const store_statements[ST_COUNT] = {
    [ST_BEGIN] = "BEGIN IMMEDIATE",
    [ST_COMMIT] = "COMMIT",
    [ST_ROLLBACK] = "ROLLBACK",
    [ST_PUT_JOB] = "INSERT INTO job(" JOB_COLUMNS ", spec) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                   "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23) "
                   "ON CONFLICT(id) DO UPDATE SET " JOB_ASSIGNMENTS ", spec=?23",
    [ST_UPDATE_JOB] = "UPDATE job SET " JOB_ASSIGNMENTS " WHERE id=?1",
    [ST_PUT_MEMBER] = "INSERT INTO member(" MEMBER_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, "
                      "?7, ?8, ?9, ?10, ?11) ON CONFLICT(job, rank) DO UPDATE SET "
                      "node_id=?3, incarnation=?4, host_name=?5, log_path=?6, principal=?7, "
                      "generation=?8, state=?9, step=?10, pid=?11",
    [ST_DROP_MEMBERS] = "DELETE FROM member WHERE job=?1",
    [ST_DROP_JOB] = "DELETE FROM job WHERE id=?1",
    [ST_PUT_META] = "INSERT INTO meta(key, value) VALUES (?1, ?2) "
                    "ON CONFLICT(key) DO UPDATE SET value=?2",
    [ST_LOAD_JOBS] = "SELECT " JOB_COLUMNS ", spec FROM job ORDER BY id",
    [ST_LOAD_MEMBERS] = "SELECT " MEMBER_COLUMNS " FROM member ORDER BY job, rank",
    [ST_LOAD_META] = "SELECT key, value FROM meta ORDER BY key",
};

/* Settings of the connection, and what SQLite must say when it is asked back: it may refuse one
 * without an error. Exclusive locking comes before the first access to the WAL, so that there is no
 * shared-memory file; one connection is also the shield against the WAL-reset bug of SQLite before
 * 3.51.3. */
const struct store_pragma store_pragmas[] = {
    {"PRAGMA journal_mode=WAL", "PRAGMA journal_mode", "wal"},
    {"PRAGMA synchronous=FULL", "PRAGMA synchronous", "2"},
    {"PRAGMA foreign_keys=ON", "PRAGMA foreign_keys", "1"},
    {"PRAGMA wal_autocheckpoint=0", "PRAGMA wal_autocheckpoint", "0"},
    {"PRAGMA journal_size_limit=67108864", "PRAGMA journal_size_limit", "67108864"},
    {"PRAGMA temp_store=MEMORY", "PRAGMA temp_store", "2"},
};
const size_t store_pragmas_n = MS_ARRAY_SIZE(store_pragmas);
