/* sql.c - every SQL text of the store, as tables */
#include "daemon/store/sql.h"

/* The states are written out: what a database says must not change with a display name. */
const char *const store_states[JOB_STATES] = {
    [JOB_QUEUED] = "QUEUED",         [JOB_PLACING] = "PLACING",     [JOB_RUNNING] = "RUNNING",
    [JOB_RECOVERING] = "RECOVERING", [JOB_SUCCEEDED] = "SUCCEEDED", [JOB_FAILED] = "FAILED",
    [JOB_CANCELLED] = "CANCELLED",
};

/* Columns in the order in which they are bound, read and summed: a change here is a migration. */
#define JOB_COLUMNS_2                                                                              \
    "id, state, name, owner, reason, key, run_dir, workers, priority, code, generation, "          \
    "submitted_ms, started_ms, ended_ms, steps, seconds, weights_sha256, plan_sha256, "            \
    "recovery, cancel_at_step, cancel_text, results, n_tries"
#define JOB_COLUMNS JOB_COLUMNS_2 ", plan, plan_given"
#define JOB_VALUES                                                                                 \
    "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, "  \
    "?21, ?22, ?23, ?24, ?25"
#define JOB_ASSIGNMENTS                                                                            \
    "state=?2, name=?3, owner=?4, reason=?5, key=?6, run_dir=?7, workers=?8, priority=?9, "        \
    "code=?10, generation=?11, submitted_ms=?12, started_ms=?13, ended_ms=?14, steps=?15, "        \
    "seconds=?16, weights_sha256=?17, plan_sha256=?18, recovery=?19, cancel_at_step=?20, "         \
    "cancel_text=?21, results=?22, n_tries=?23, plan=?24, plan_given=?25"
#define JOB_SUMMED_2 JOB_COLUMNS_2 ", spec_sha256" /* which stands for the spec */
#define JOB_SUMMED   JOB_COLUMNS ", spec_sha256"
#define PLAN_SUMMED  "sha256" /* which stands for the text */
#define MEMBER_SUMMED                                                                              \
    "job, rank, node_id, incarnation, host_name, log_path, principal, generation, state, step, "   \
    "pid"
#define MEMBER_VALUES  "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11"
#define ASIDE_SUMMED   "key, name, until_ms, why"
#define EVENT_SUMMED_4 "seq, at_ms, kind, job, node, principal, text"
#define EVENT_SUMMED   EVENT_SUMMED_4 ", facts"
#define EVENT_VALUES   "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8"
/* Every row of the range; the last column is whether it is whole, NULL where it is not asked for:
 * the sums of those are not made. */
#define EVENTS_ASKED_FOR                                                                           \
    EVENT_SUMMED ", CASE WHEN (?3 = 0 OR job = ?3) AND (?4 = '' OR node = ?4) "                    \
                 "THEN sum = row_sum(" EVENT_SUMMED ") END "                                       \
                 "FROM event WHERE seq > ?1 AND seq <= ?2"

/* Sums have 62 bits, so that two of them add up inside SQLite's integers. */
#define LEDGER_OF(table)                                                                           \
    "CREATE TRIGGER " table "_in AFTER INSERT ON " table " BEGIN UPDATE ledger SET rows=rows+1,"   \
    " sum=(sum+new.sum)&4611686018427387903 WHERE name='" table "'; END;"                          \
    "CREATE TRIGGER " table "_up AFTER UPDATE ON " table " BEGIN UPDATE ledger SET"                \
    " sum=(sum-old.sum+new.sum)&4611686018427387903 WHERE name='" table "'; END;"                  \
    "CREATE TRIGGER " table "_out AFTER DELETE ON " table " BEGIN UPDATE ledger SET rows=rows-1,"  \
    " sum=(sum-old.sum)&4611686018427387903 WHERE name='" table "'; END;"
#define SCHEMA_SUM "coalesce(sum(row_sum(type, name, tbl_name, coalesce(sql, '')) >> 8), 0)"

const struct store_migration store_migrations[] = {
    /* 1 */
    {{"CREATE TABLE job("
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
      "  incarnation INTEGER NOT NULL," /* 64 random bits, kept as the signed number of those bits
                                         */
      "  host_name TEXT NOT NULL CHECK(length(host_name) <= 256),"
      "  log_path TEXT NOT NULL CHECK(length(log_path) <= 1024),"
      "  PRIMARY KEY(job, rank)"
      ") STRICT, WITHOUT ROWID;"
      "CREATE TABLE meta("
      "  key TEXT PRIMARY KEY CHECK(length(key) <= 64),"
      "  value INTEGER NOT NULL CHECK(value >= 0)"
      ") STRICT, WITHOUT ROWID;"
      "PRAGMA application_id = 1836278628;"
      "PRAGMA user_version = 1;"}},
    /* 2: owners are principals, which are longer, and a CHECK cannot be changed in place; every row
     * carries its checksum, and the ledger counts and adds up those of each table */
    {{"ALTER TABLE job RENAME TO job_1;"
      "ALTER TABLE member RENAME TO member_1;"
      "ALTER TABLE meta RENAME TO meta_1;"
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
      "  n_tries INTEGER NOT NULL CHECK(n_tries >= 0),"
      "  spec_sha256 TEXT NOT NULL CHECK(length(spec_sha256) = 64),"
      "  spec BLOB NOT NULL CHECK(length(spec) <= 262144),"
      "  sum INTEGER NOT NULL"
      ") STRICT;"
      "CREATE TABLE member("
      "  job INTEGER NOT NULL REFERENCES job(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,"
      "  rank INTEGER NOT NULL CHECK(rank BETWEEN 0 AND 1023),"
      "  node_id TEXT NOT NULL CHECK(length(node_id) <= 64),"
      "  incarnation INTEGER NOT NULL," /* 64 random bits, kept as the signed number of those bits
                                         */
      "  host_name TEXT NOT NULL CHECK(length(host_name) <= 256),"
      "  log_path TEXT NOT NULL CHECK(length(log_path) <= 1024),"
      "  principal TEXT NOT NULL CHECK(length(principal) <= 80),"
      "  generation INTEGER NOT NULL CHECK(generation >= 0),"
      "  state TEXT NOT NULL CHECK(length(state) <= 15),"
      "  step INTEGER NOT NULL CHECK(step >= 0),"
      "  pid INTEGER NOT NULL CHECK(pid BETWEEN 0 AND 4294967295),"
      "  sum INTEGER NOT NULL,"
      "  PRIMARY KEY(job, rank)"
      ") STRICT, WITHOUT ROWID;",
      "CREATE TABLE meta("
      "  key TEXT PRIMARY KEY CHECK(length(key) <= 64),"
      "  value INTEGER NOT NULL CHECK(value >= 0),"
      "  sum INTEGER NOT NULL"
      ") STRICT, WITHOUT ROWID;"
      "CREATE TABLE event("
      "  seq INTEGER PRIMARY KEY CHECK(seq > 0),"
      "  at_ms INTEGER NOT NULL,"
      "  kind TEXT NOT NULL CHECK(length(kind) <= 32),"
      "  job INTEGER NOT NULL CHECK(job >= 0),"
      "  node TEXT NOT NULL CHECK(length(node) <= 64),"
      "  principal TEXT NOT NULL CHECK(length(principal) <= 80),"
      "  text TEXT NOT NULL CHECK(length(text) <= 384),"
      "  sum INTEGER NOT NULL"
      ") STRICT;"
      "CREATE TABLE secret("
      "  name TEXT PRIMARY KEY CHECK(length(name) <= 64),"
      "  value BLOB NOT NULL CHECK(length(value) = 32),"
      "  sum INTEGER NOT NULL"
      ") STRICT, WITHOUT ROWID;"
      "CREATE TABLE ledger("
      "  name TEXT PRIMARY KEY,"
      "  rows INTEGER NOT NULL,"
      "  sum INTEGER NOT NULL"
      ") STRICT, WITHOUT ROWID;"
      "INSERT INTO ledger VALUES ('job', 0, 0), ('member', 0, 0), ('meta', 0, 0), ('event', 0, 0),"
      "  ('secret', 0, 0);",
      /* clang-format off */
    LEDGER_OF("job") LEDGER_OF("member") LEDGER_OF("meta") LEDGER_OF("event") LEDGER_OF("secret"),
      /* clang-format on */
      "INSERT INTO job SELECT id, state, name, principal_from_0_1(owner), reason, key, run_dir,"
      "  workers, priority, code, generation, submitted_ms, started_ms, ended_ms, steps, seconds,"
      "  weights_sha256, plan_sha256, 0, 0, '', x'', 0, sha256_hex(spec), spec, 0 FROM job_1;"
      "UPDATE job SET sum = row_sum(" JOB_SUMMED_2 ");"
      "INSERT INTO member SELECT member_1.job, rank, node_id, incarnation, host_name, log_path, '',"
      "  job_1.generation, '', 0, 0, 0 FROM member_1 JOIN job_1 ON job_1.id = member_1.job;"
      "UPDATE member SET sum = row_sum(" MEMBER_SUMMED ");"
      "INSERT INTO meta SELECT key, value, row_sum(key, value) FROM meta_1;"
      "DROP TABLE member_1;"
      "DROP TABLE job_1;"
      "DROP TABLE meta_1;"
      "INSERT INTO ledger SELECT 'schema', count(*), " SCHEMA_SUM " FROM sqlite_schema;"
      "PRAGMA user_version = 2;"}},
    /* 3: plans, each text once. What does not match its sum before does not match it after */
    {{"UPDATE ledger SET rows = -1 WHERE name = 'schema' AND"
      "  (rows, sum) IS NOT (SELECT count(*), " SCHEMA_SUM " FROM sqlite_schema);"
      "CREATE TABLE plan("
      "  sha256 TEXT PRIMARY KEY CHECK(length(sha256) = 64),"
      "  text TEXT NOT NULL CHECK(length(text) BETWEEN 1 AND 262144),"
      "  sum INTEGER NOT NULL"
      ") STRICT, WITHOUT ROWID;"
      "INSERT INTO ledger VALUES ('plan', 0, 0);"
      "ALTER TABLE job ADD COLUMN plan TEXT NOT NULL DEFAULT '' CHECK(length(plan) IN (0, 64));"
      "ALTER TABLE job ADD COLUMN plan_given INTEGER NOT NULL DEFAULT 0"
      "  CHECK(plan_given IN (0, 1));",
      /* clang-format off */
    LEDGER_OF("plan"),
      /* clang-format on */
      "UPDATE job SET sum = row_sum(" JOB_SUMMED ") WHERE sum = row_sum(" JOB_SUMMED_2 ");"
      "UPDATE ledger SET (rows, sum) = (SELECT count(*), " SCHEMA_SUM " FROM sqlite_schema)"
      "  WHERE name = 'schema' AND rows >= 0;"
      "PRAGMA user_version = 3;"}},
    /* 4: hosts that are set aside */
    {{"UPDATE ledger SET rows = -1 WHERE name = 'schema' AND"
      "  (rows, sum) IS NOT (SELECT count(*), " SCHEMA_SUM " FROM sqlite_schema);"
      "CREATE TABLE aside("
      "  key TEXT PRIMARY KEY CHECK(length(key) BETWEEN 1 AND 257),"
      "  name TEXT NOT NULL CHECK(length(name) <= 256),"
      "  until_ms INTEGER NOT NULL,"
      "  why TEXT NOT NULL CHECK(length(why) <= 384),"
      "  sum INTEGER NOT NULL"
      ") STRICT, WITHOUT ROWID;"
      "INSERT INTO ledger VALUES ('aside', 0, 0);",
      /* clang-format off */
    LEDGER_OF("aside"),
      /* clang-format on */
      "UPDATE ledger SET (rows, sum) = (SELECT count(*), " SCHEMA_SUM " FROM sqlite_schema)"
      "  WHERE name = 'schema' AND rows >= 0;"
      "PRAGMA user_version = 4;"}},
    /* 5: what events tell programs */
    {{"UPDATE ledger SET rows = -1 WHERE name = 'schema' AND"
      "  (rows, sum) IS NOT (SELECT count(*), " SCHEMA_SUM " FROM sqlite_schema);"
      "ALTER TABLE event ADD COLUMN facts TEXT NOT NULL DEFAULT '' CHECK(length(facts) <= 8192);"
      "UPDATE event SET sum = row_sum(" EVENT_SUMMED ") WHERE sum = row_sum(" EVENT_SUMMED_4 ");"
      "UPDATE ledger SET (rows, sum) = (SELECT count(*), " SCHEMA_SUM " FROM sqlite_schema)"
      "  WHERE name = 'schema' AND rows >= 0;"
      "PRAGMA user_version = 5;"}},
};
const size_t store_migrations_n = MS_ARRAY_SIZE(store_migrations);

const char *const store_statements[ST_COUNT] = {
    [ST_BEGIN] = "BEGIN IMMEDIATE",
    [ST_COMMIT] = "COMMIT",
    [ST_ROLLBACK] = "ROLLBACK",
    [ST_PUT_JOB] = "INSERT INTO job(" JOB_COLUMNS ", spec_sha256, spec, sum) VALUES (" JOB_VALUES
                   ", ?26, ?27, row_sum(" JOB_VALUES ", ?26)) ON CONFLICT(id) DO UPDATE "
                   "SET " JOB_ASSIGNMENTS ", spec_sha256=?26, spec=?27, sum=excluded.sum",
    [ST_UPDATE_JOB] =
        "UPDATE job SET " JOB_ASSIGNMENTS ", sum=row_sum(" JOB_VALUES ", spec_sha256) WHERE id=?1",
    [ST_PUT_MEMBER] = "INSERT INTO member(" MEMBER_SUMMED ", sum) VALUES (" MEMBER_VALUES
                      ", row_sum(" MEMBER_VALUES ")) ON CONFLICT(job, rank) DO UPDATE SET "
                      "node_id=?3, incarnation=?4, host_name=?5, log_path=?6, principal=?7, "
                      "generation=?8, state=?9, step=?10, pid=?11, sum=excluded.sum",
    [ST_DROP_MEMBERS] = "DELETE FROM member WHERE job=?1",
    [ST_DROP_JOB] = "DELETE FROM job WHERE id=?1",
    [ST_PUT_PLAN] = "INSERT INTO plan(sha256, text, sum) VALUES (?1, ?2, row_sum(?1)) "
                    "ON CONFLICT(sha256) DO NOTHING",
    [ST_DROP_PLAN] = "DELETE FROM plan WHERE sha256=?1",
    [ST_PUT_ASIDE] = "INSERT INTO aside(" ASIDE_SUMMED ", sum) VALUES (?1, ?2, ?3, ?4, "
                     "row_sum(?1, ?2, ?3, ?4)) ON CONFLICT(key) DO UPDATE SET name=?2, "
                     "until_ms=?3, why=?4, sum=excluded.sum",
    [ST_DROP_ASIDE] = "DELETE FROM aside WHERE key=?1",
    [ST_PUT_META] = "INSERT INTO meta(key, value, sum) VALUES (?1, ?2, row_sum(?1, ?2)) "
                    "ON CONFLICT(key) DO UPDATE SET value=?2, sum=excluded.sum",
    [ST_PUT_SECRET] = "INSERT INTO secret(name, value, sum) VALUES (?1, ?2, row_sum(?1, ?2))",
    [ST_PUT_EVENT] = "INSERT INTO event(" EVENT_SUMMED ", sum) VALUES (" EVENT_VALUES
                     ", row_sum(" EVENT_VALUES "))",
    [ST_DROP_EVENT] = "DELETE FROM event WHERE seq=?1",
    [ST_LOAD_PLANS] = "SELECT sha256, text, sum, sum = row_sum(" PLAN_SUMMED
                      ") AND sha256 = sha256_hex(text) FROM plan ORDER BY sha256",
    [ST_LOAD_ASIDES] =
        "SELECT " ASIDE_SUMMED ", sum, sum = row_sum(" ASIDE_SUMMED ") FROM aside ORDER BY key",
    [ST_LOAD_JOBS] =
        "SELECT " JOB_COLUMNS ", spec_sha256, spec, CASE WHEN state IN ('QUEUED', 'PLACING') "
        "OR (recovery = 1 AND state IN ('RUNNING', 'RECOVERING')) THEN (SELECT text FROM plan "
        "WHERE sha256 = job.plan) END, sum, sum = row_sum(" JOB_SUMMED
        ") AND spec_sha256 = sha256_hex(spec) FROM job ORDER BY id",
    [ST_LOAD_MEMBERS] = "SELECT " MEMBER_SUMMED ", sum, sum = row_sum(" MEMBER_SUMMED
                        ") FROM member ORDER BY job, rank",
    [ST_LOAD_META] = "SELECT key, value, sum, sum = row_sum(key, value) FROM meta ORDER BY key",
    [ST_LOAD_SECRETS] = "SELECT name, value, sum, sum = row_sum(name, value) FROM secret "
                        "ORDER BY name",
    [ST_LOAD_EVENTS] =
        "SELECT seq, at_ms, kind, job, principal, sum, sum = row_sum(" EVENT_SUMMED ") FROM event "
        "ORDER BY seq",
    [ST_NEWEST] = "SELECT max(at) FROM (SELECT max(at_ms) AS at FROM event UNION ALL "
                  "SELECT max(max(submitted_ms, started_ms, ended_ms)) FROM job)",
    [ST_LEDGER] = "SELECT rows, sum FROM ledger WHERE name=?1",
    [ST_SCHEMA] = "SELECT count(*), " SCHEMA_SUM " FROM sqlite_schema",
    [ST_PAGES] = "PRAGMA page_count", /* with those that are in the log of writes alone */
    [ST_READ_SPEC] = "SELECT spec, spec_sha256 = sha256_hex(spec) FROM job WHERE id=?1",
    [ST_READ_PLAN] = "SELECT plan.text, plan.sha256 = sha256_hex(plan.text) FROM job "
                     "JOIN plan ON plan.sha256 = job.plan WHERE job.id=?1",
    [ST_READ_EVENTS] = "SELECT " EVENTS_ASKED_FOR " ORDER BY seq LIMIT ?5",
    [ST_READ_EVENTS_BACKWARDS] = "SELECT " EVENTS_ASKED_FOR " ORDER BY seq DESC LIMIT ?5",
};

/* Settings of the connection, and what SQLite must say when it is asked back: it may refuse one
 * without an error. What is deleted is not overwritten where that would write more pages, as in
 * SQLite as some systems build it: an end would take twice the room of its job's text. Exclusive
 * locking comes before the first access to the WAL, so that there is no shared-memory file; one
 * connection is also the shield against the WAL-reset bug of SQLite before 3.51.3. */
const struct store_pragma store_pragmas[] = {
    {"PRAGMA journal_mode=WAL", "PRAGMA journal_mode", "wal"},
    {"PRAGMA synchronous=FULL", "PRAGMA synchronous", "2"},
    {"PRAGMA foreign_keys=ON", "PRAGMA foreign_keys", "1"},
    {"PRAGMA wal_autocheckpoint=0", "PRAGMA wal_autocheckpoint", "0"},
    {"PRAGMA journal_size_limit=67108864", "PRAGMA journal_size_limit", "67108864"},
    {"PRAGMA secure_delete=FAST", "PRAGMA secure_delete", "2"},
    {"PRAGMA temp_store=MEMORY", "PRAGMA temp_store", "2"},
};
const size_t store_pragmas_n = MS_ARRAY_SIZE(store_pragmas);
