/* load.c - gives the rows back, each held against its checksum and the ledger of its table */
#include "daemon/store/store_private.h"

#include <stdio.h>
#include <string.h>

void read_text(struct reader *reader, char *buf, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(reader->statement, reader->index);
    int n = sqlite3_column_bytes(reader->statement, reader->index++);
    if (text == NULL || n < 0 || (size_t)n >= size || strlen(text) != (size_t)n) {
        reader->bad = 1;
        return;
    }
    memcpy(buf, text, (size_t)n + 1);
}

int64_t read_int(struct reader *reader)
{
    return sqlite3_column_int64(reader->statement, reader->index++);
}

/* Borrowed until the next step; NULL where it is empty. */
const uint8_t *read_blob(struct reader *reader, size_t *ret_size)
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

/* ---- one row ------------------------------------------------------------------------------------
 */

static int load_plan(struct store *store, struct sched *sched, struct reader *reader,
                     struct ms_err *err)
{
    (void)store;
    struct sched_plan_row row = {.text = NULL};
    read_text(reader, row.sha256, sizeof(row.sha256));
    row.text = (const char *)sqlite3_column_text(reader->statement, reader->index);
    row.bytes = (size_t)sqlite3_column_bytes(reader->statement, reader->index++);
    if (reader->bad || row.text == NULL) {
        return ms_fail(err, MS_E_CONFIG, "plan %.16s... has a column that is no legal text",
                       row.sha256);
    }
    return sched_load_plan(sched, &row, err);
}

static int load_aside(struct store *store, struct sched *sched, struct reader *reader,
                      struct ms_err *err)
{
    (void)store;
    struct sched_aside_row row = {.until_ms = 0};
    read_text(reader, row.key, sizeof(row.key));
    read_text(reader, row.name, sizeof(row.name));
    row.until_ms = read_int(reader);
    read_text(reader, row.why, sizeof(row.why));
    if (reader->bad) {
        return ms_fail(err, MS_E_CONFIG,
                       "the host %.80s, which is set aside, has a column that is "
                       "no legal text",
                       row.key);
    }
    return sched_load_aside(sched, &row, err);
}

static int load_job(struct store *store, struct sched *sched, struct reader *reader,
                    struct ms_err *err)
{
    (void)store;
    struct sched_job_row row = {.id = (uint64_t)read_int(reader)};
    row.state = read_state(reader);
    read_text(reader, row.name, sizeof(row.name));
    read_text(reader, row.owner, sizeof(row.owner));
    read_text(reader, row.reason, sizeof(row.reason));
    read_text(reader, row.key, sizeof(row.key));
    read_text(reader, row.run_dir, sizeof(row.run_dir));
    row.workers = (uint32_t)read_int(reader);
    row.priority = (int32_t)read_int(reader);
    row.code = (int32_t)read_int(reader);
    row.generation = (uint64_t)read_int(reader);
    row.submitted_ms = read_int(reader);
    row.started_ms = read_int(reader);
    row.ended_ms = read_int(reader);
    row.steps = (uint64_t)read_int(reader);
    row.seconds = sqlite3_column_double(reader->statement, reader->index++);
    read_text(reader, row.weights_sha256, sizeof(row.weights_sha256));
    read_text(reader, row.plan_sha256, sizeof(row.plan_sha256));
    row.recovery = read_int(reader) != 0;
    row.cancel_at_step = read_int(reader) != 0;
    read_text(reader, row.cancel_text, sizeof(row.cancel_text));
    row.results = read_blob(reader, &row.results_bytes);
    row.n_tries = (uint32_t)read_int(reader);
    read_text(reader, row.plan, sizeof(row.plan));
    row.plan_given = read_int(reader) != 0;
    read_text(reader, row.spec_sha256, sizeof(row.spec_sha256));
    row.spec = read_blob(reader, &row.spec_bytes);
    row.plan_text = (const char *)sqlite3_column_text(reader->statement, reader->index++);
    if (reader->bad) {
        return ms_fail(err, MS_E_CONFIG, "job %llu has a column that is no legal text",
                       (unsigned long long)row.id);
    }
    return sched_load_job(sched, &row, err);
}

static int load_member(struct store *store, struct sched *sched, struct reader *reader,
                       struct ms_err *err)
{
    (void)store;
    struct sched_member_row row = {.job = (uint64_t)read_int(reader)};
    row.rank = (uint32_t)read_int(reader);
    read_text(reader, row.node_id, sizeof(row.node_id));
    row.incarnation = (uint64_t)read_int(reader);
    read_text(reader, row.host_name, sizeof(row.host_name));
    read_text(reader, row.log_path, sizeof(row.log_path));
    read_text(reader, row.principal, sizeof(row.principal));
    row.generation = (uint64_t)read_int(reader);
    read_text(reader, row.state, sizeof(row.state));
    row.step = (uint64_t)read_int(reader);
    row.pid = (uint32_t)read_int(reader);
    if (reader->bad) {
        return ms_fail(err, MS_E_CONFIG, "rank %u of job %llu has a column that is no legal text",
                       row.rank, (unsigned long long)row.job);
    }
    return sched_load_member(sched, &row, err);
}

static int load_meta(struct store *store, struct sched *sched, struct reader *reader,
                     struct ms_err *err)
{
    char key[MS_NAME_MAX + 1] = "";
    read_text(reader, key, sizeof(key));
    if (reader->bad) {
        return ms_fail(err, MS_E_CONFIG, "a named number has no legal name");
    }
    uint64_t value = (uint64_t)read_int(reader);
    if (strcmp(key, "ticks") == 0) {
        store->ticks = value;
    }
    return sched_load_meta(sched, key, value, err);
}

/* What is missing was dropped, or lost: a number is left out where a copy was put back. */
void store_saw_event(struct store *store, uint64_t seq)
{
    store->events_whole_from = seq > store->last_event + 1 ? seq : store->events_whole_from;
    store->last_event = seq > store->last_event ? seq : store->last_event;
}

static int load_event(struct store *store, struct sched *sched, struct reader *reader,
                      struct ms_err *err)
{
    char principal[MS_PRINCIPAL_MAX + 1] = "";
    char kind[MS_NAME_MAX + 1] = "";
    struct sched_event_row row = {.seq = (uint64_t)read_int(reader)};
    row.at_ms = read_int(reader);
    read_text(reader, kind, sizeof(kind));
    row.job = (uint64_t)read_int(reader);
    read_text(reader, principal, sizeof(principal));
    if (reader->bad) {
        return ms_fail(err, MS_E_CONFIG, "event %llu is of nobody that can be, or of no kind",
                       (unsigned long long)row.seq);
    }
    row.kind = kind;
    row.principal = principal;
    store_saw_event(store, row.seq);
    return sched_load_event(sched, &row, err);
}

/* ---- a table ------------------------------------------------------------------------------------
 */

struct part {
    const char *table;
    int statement; /* its last two columns: the sum, and whether it holds */
    int (*load)(struct store *store, struct sched *sched, struct reader *reader,
                struct ms_err *err);
};

int store_ledger(struct store *store, const char *table, int64_t ret[2])
{
    sqlite3_stmt *statement = store->statements[ST_LEDGER];
    sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        ret[0] = sqlite3_column_int64(statement, 0);
        ret[1] = sqlite3_column_int64(statement, 1);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

/* What the core cannot take was not written by us (MS_E_CONFIG), or is nobody's fault. */
static int name_database(struct store *store, int rc, struct ms_err *err)
{
    char why[MS_ERR_TEXT_MAX];
    snprintf(why, sizeof(why), "%s", ms_err_text(err));
    return rc == MS_E_CONFIG ? store_fail_damage(store, err, "%s", why)
                             : ms_err_prefix(err, "database %s", store->path);
}

static int load_row(struct store *store, struct sched *sched, const struct part *part,
                    int64_t tally[2], struct ms_err *err)
{
    static const int64_t mask = 0x3fffffffffffffff;
    struct reader reader = {.statement = store->statements[part->statement]};
    int columns = sqlite3_column_count(reader.statement);
    if (sqlite3_column_int64(reader.statement, columns - 1) != 1) {
        const char *id = (const char *)sqlite3_column_text(reader.statement, 0);
        return store_fail_damage(store, err,
                                 "row %.20s of its table %s does not match its checksum",
                                 id != NULL ? id : "?", part->table);
    }
    tally[0]++;
    tally[1] = (tally[1] + sqlite3_column_int64(reader.statement, columns - 2)) & mask;
    int rc = part->load(store, sched, &reader, err);
    return rc < 0 ? name_database(store, rc, err) : 0;
}

static int load_part(struct store *store, struct sched *sched, const struct part *part,
                     struct ms_err *err)
{
    sqlite3_stmt *statement = store->statements[part->statement];
    int64_t tally[2] = {0, 0};
    int64_t ledger[2] = {0, 0};
    int rc = 0;
    int step = SQLITE_OK;
    while (rc == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = load_row(store, sched, part, tally, err);
    }
    sqlite3_reset(statement);
    if (rc < 0) {
        return rc;
    }
    step = step == SQLITE_DONE ? store_ledger(store, part->table, ledger) : step;
    if (step != SQLITE_OK) {
        return store_fail(store, step, "loading", err);
    }
    if (memcmp(tally, ledger, sizeof(tally)) != 0) {
        return store_fail_damage(store, err,
                                 "its table %s holds %lld rows and its ledger says %lld%s",
                                 part->table, (long long)tally[0], (long long)ledger[0],
                                 tally[0] == ledger[0] ? ", of another sum" : "");
    }
    return 0;
}

/* ---- all of it ----------------------------------------------------------------------------------
 */

int store_load(struct store *store, struct sched *sched, struct ms_err *err)
{
    static const struct part parts[] = {
        {"plan", ST_LOAD_PLANS, load_plan},    {"aside", ST_LOAD_ASIDES, load_aside},
        {"job", ST_LOAD_JOBS, load_job},       {"member", ST_LOAD_MEMBERS, load_member},
        {"event", ST_LOAD_EVENTS, load_event}, {"meta", ST_LOAD_META, load_meta}};
    int rc = 0;
    for (size_t i = 0; i < MS_ARRAY_SIZE(parts) && rc == 0; i++) {
        rc = load_part(store, sched, &parts[i], err);
    }
    if (rc == 0) {
        rc = judge_loaded(store, err);
    }
    return rc == 0 ? store_settle(store, err) : rc;
}
