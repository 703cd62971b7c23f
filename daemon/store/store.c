/* store.c - durable state in SQLite: its life, and what a tick writes */
#include "daemon/store/store_private.h"
#include "proto/digest.h"
#include "proto/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WAL_BUSY_PAGES = 16384, /* 64 MiB: folded in even so, for a WAL without end fills the disk */
};

/* ---- life ---------------------------------------------------------------------------------------
 */

const char *store_note(const struct store *store, size_t i)
{
    return i < store->notes_n ? store->notes[i] : NULL;
}

const uint8_t *store_secret(const struct store *store)
{
    return store->secret;
}

int store_is_copy(const struct store *store)
{
    return store->is_copy;
}

/* What lies beside the database, and what of its log will not be taken. */
static int open_files(struct store *store, struct ms_err *err)
{
    struct wal_loss loss = {0};
    int absent = 0;
    int rc = store_look(store->path, store->setting, &absent, err);
    if (rc == 0) {
        rc = store_lock(store->path, &store->lock_fd, &store->witness, err);
    }
    if (rc == 0) {
        rc = judge_unopened(store, absent, err);
    }
    if (rc == 0) {
        rc = wal_judge(store->path, absent, &loss, err);
    }
    if (rc == 0 && loss.frames > 0) {
        store_add_note(store,
                       "%s"
                       "-wal holds %llu pages (%llu transactions) %s: they are dropped; after "
                       "a power cut that is what was never acknowledged; copy: %.100s",
                       store->path, (unsigned long long)loss.frames,
                       (unsigned long long)loss.commits,
                       loss.absent   ? "of a database that is not there"
                       : loss.header ? "behind a damaged header"
                                     : "from a damaged one on",
                       loss.copy[0] != '\0' ? loss.copy : "could not be made");
    }
    return rc;
}

static void note_filesystem(struct store *store)
{
    const char *bad = store_bad_filesystem(store->path);
    if (bad != NULL) {
        store_add_note(store,
                       "database %s lies on %s, whose locks and syncs may lie: move it to a local "
                       "disk",
                       store->path, bad);
    }
}

/* A name in a VFS is that VFS's own affair. */
static int take_path(struct store *store, const char *path, struct ms_err *err)
{
    if (store->has_files) {
        return store_resolve(path, store->setting, store->path, err);
    }
    snprintf(store->path, sizeof(store->path), "%s", path);
    return 0;
}

int store_open_with(const struct store_setup *setup, struct store **ret, struct ms_err *err)
{
    struct store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the store");
    }
    store->lock_fd = -1;
    store->events_whole_from = 1;
    store->has_files = setup->vfs == NULL;
    store->has_reserve = 1;
    store->accepts_loss = setup->accepts_loss;
    store->setting = setup->setting != NULL ? setup->setting : STORE_SETTING;
    int rc = take_path(store, setup->path, err);
    if (rc == 0 && store->has_files) {
        rc = open_files(store, err);
    }
    if (rc == 0) {
        rc = store_open_database(store, setup->vfs, err);
    }
    if (rc < 0) {
        store_close(store);
        return rc;
    }
    if (store->has_files) {
        store_want_reserve(store, 0);
        note_filesystem(store);
    }
    *ret = store;
    return 0;
}

int store_open(const char *path, struct store **ret, struct ms_err *err)
{
    return store_open_with(&(struct store_setup){.path = path}, ret, err);
}

/* ---- writing ------------------------------------------------------------------------------------
 */

void bind_int(struct binder *binder, int64_t value)
{
    if (binder->rc == SQLITE_OK) {
        binder->rc = sqlite3_bind_int64(binder->statement, ++binder->index, value);
    }
}

/* Counts come from peers: one above the range of SQLite's integers must not stop the daemon. */
void bind_count(struct binder *binder, uint64_t value)
{
    bind_int(binder, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

void bind_text(struct binder *binder, const char *text)
{
    if (binder->rc == SQLITE_OK) {
        binder->rc = sqlite3_bind_text(binder->statement, ++binder->index, text, -1, SQLITE_STATIC);
    }
}

void bind_real(struct binder *binder, double value)
{
    if (binder->rc == SQLITE_OK) {
        binder->rc = sqlite3_bind_double(binder->statement, ++binder->index, value);
    }
}

void bind_blob(struct binder *binder, const uint8_t *bytes, size_t size)
{
    if (binder->rc == SQLITE_OK) { /* a NULL pointer would be a NULL */
        binder->rc =
            sqlite3_bind_blob64(binder->statement, ++binder->index,
                                size > 0 ? bytes : (const uint8_t *)"", size, SQLITE_STATIC);
    }
}

struct binder bind_begin(struct store *store, int which)
{
    return (struct binder){.statement = store->statements[which], .rc = SQLITE_OK};
}

/* Runs what was bound; bound memory is let go. */
int bind_run(struct binder *binder)
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

/* The core's, which has it for its own use, or our own. */
static const char *spec_digest(const struct sched_job_row *job, char buf[MS_SHA256_HEX])
{
    uint8_t digest[MS_SHA256_BYTES];
    if (job->spec_sha256[0] != '\0') {
        return job->spec_sha256;
    }
    ms_sha256(job->spec, job->spec_bytes, digest);
    ms_sha256_hex(digest, buf);
    return buf;
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
    bind_int(&binder, job->n_tries);
    bind_text(&binder, job->plan);
    bind_int(&binder, job->plan_given);
    char digest[MS_SHA256_HEX];
    if (job->spec != NULL) {
        bind_text(&binder, spec_digest(job, digest));
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

static int put_plan(struct store *store, const struct sched_plan_row *plan)
{
    struct binder binder = bind_begin(store, ST_PUT_PLAN);
    bind_text(&binder, plan->sha256);
    bind_text(&binder, plan->text);
    return bind_run(&binder);
}

static int drop_plan(struct store *store, const struct sched_plan_row *plan)
{
    struct binder binder = bind_begin(store, ST_DROP_PLAN);
    bind_text(&binder, plan->sha256);
    return bind_run(&binder);
}

static int put_aside(struct store *store, const struct sched_aside_row *aside)
{
    struct binder binder = bind_begin(store, ST_PUT_ASIDE);
    bind_text(&binder, aside->key);
    bind_text(&binder, aside->name);
    bind_int(&binder, aside->until_ms);
    bind_text(&binder, aside->why);
    return bind_run(&binder);
}

static int drop_aside(struct store *store, const struct sched_aside_row *aside)
{
    struct binder binder = bind_begin(store, ST_DROP_ASIDE);
    bind_text(&binder, aside->key);
    return bind_run(&binder);
}

static int drop(struct store *store, int which, uint64_t id)
{
    struct binder binder = bind_begin(store, which);
    bind_int(&binder, (int64_t)id);
    return bind_run(&binder);
}

int store_put_meta(struct store *store, const char *key, uint64_t value)
{
    struct binder binder = bind_begin(store, ST_PUT_META);
    bind_text(&binder, key);
    bind_count(&binder, value);
    if (strcmp(key, "ticks") == 0) {
        store->ticks_due = value;
    }
    return bind_run(&binder);
}

static int put_event(struct store *store, const struct sched_event_row *event)
{
    struct binder binder = bind_begin(store, ST_PUT_EVENT);
    bind_int(&binder, (int64_t)event->seq);
    bind_int(&binder, event->at_ms);
    bind_text(&binder, event->kind);
    bind_int(&binder, (int64_t)event->job);
    bind_text(&binder, event->node);
    bind_text(&binder, event->principal);
    bind_text(&binder, event->text);
    bind_text(&binder, event->facts);
    store_saw_event(store, event->seq);
    return bind_run(&binder);
}

static int drop_event(struct store *store, uint64_t seq)
{
    store->events_whole_from = seq >= store->events_whole_from ? seq + 1 : store->events_whole_from;
    return drop(store, ST_DROP_EVENT, seq);
}

/* The guard against copies is off meanwhile: somebody should know, once. */
static void note_no_mark(struct store *store, const struct ms_err *why)
{
    if (store->unmarked[0] == '\0') {
        ms_text_copy(store->unmarked, sizeof(store->unmarked), why->text);
        store->is_unmarked_untold = 1;
    }
}

/* Where these rows lie, from the first commit on, and that their use has begun, or ends. Without a
 * new mark the old home stays, so that a copy is found to be one the next time, too, and ret->slot
 * is 0: the next commit tries again. */
static int put_home(struct store *store, int is_open, struct home *ret)
{
    struct home home;
    struct ms_err why = {0, ""};
    int made = home_look(store->path, &home);
    if (made < 0) {
        ms_fail_errno(&why, made, "%s", store->path);
    } else {
        made = home_make_mark(store->path, &store->home, &home, &why);
    }
    *ret = (struct home){.slot = 0}; /* also what an attempt before this one made */
    int rc = store_put_meta(store, STORE_KEY_OPEN, (uint64_t)is_open);
    if (made < 0) {
        note_no_mark(store, &why);
        return rc;
    }
    for (int part = 0; rc == SQLITE_OK && part < HOME_PARTS; part++) {
        rc = store_put_meta(store, home_keys[part], home.parts[part]);
    }
    *ret = home;
    return rc;
}

/* The database knows that it is open, and its new home where it has a mark: in its own file too,
 * for that may be carried off alone. */
static void settle_home(struct store *store, const struct home *home)
{
    const int is_told = store->is_marked_open;
    store->is_marked_open = 1;
    if (home->slot != 0) {
        home_drop_mark(store->path, store->home.slot);
        store->home = *home;
        store->home_unstored = 0;
        store->unmarked[0] = '\0';
        store->is_unmarked_untold = 0;
    }
    if (home->slot != 0 || !is_told) {
        store_fold_away(store);
    }
}

/* From here on a file without a log of writes is whole, and what was copied while it was in use is
 * an older one. Where the commit failed both marks stay, for nobody knows which one is noted. */
static void put_end(struct store *store)
{
    struct home home = {.slot = 0};
    const int is_ended = run(store, ST_BEGIN) == SQLITE_OK &&
                         put_home(store, 0, &home) == SQLITE_OK &&
                         run(store, ST_COMMIT) == SQLITE_OK;
    if (is_ended && home.slot != 0) {
        home_drop_mark(store->path, store->home.slot);
    }
    if (!is_ended && !sqlite3_get_autocommit(store->db)) {
        run(store, ST_ROLLBACK);
    }
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
    case SCHED_DO_PUT_PLAN:
        return put_plan(store, effect->plan);
    case SCHED_DO_DROP_PLAN:
        return drop_plan(store, effect->plan);
    case SCHED_DO_PUT_ASIDE:
        return put_aside(store, effect->aside);
    case SCHED_DO_DROP_ASIDE:
        return drop_aside(store, effect->aside);
    case SCHED_DO_PUT_EVENT:
        return put_event(store, effect->event);
    case SCHED_DO_DROP_EVENT:
        return drop_event(store, effect->event_seq);
    case SCHED_DO_PUT_META:
        return store_put_meta(store, effect->meta_key, effect->meta_value);
    case SCHED_DO_SEND:
    case SCHED_DO_CLOSE:
    case SCHED_DO_LOG:
    case SCHED_DO_READ:
    case SCHED_DO_EXIT:
        break;
    }
    return SQLITE_OK;
}

/* One transaction. After a failure nothing of it is there, unless the failure is an I/O error. */
static int write_all(struct store *store, const struct sched_effect *effects, size_t n,
                     struct home *ret_home)
{
    int rc = run(store, ST_BEGIN);
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        rc = put_effect(store, &effects[i]);
    }
    if (rc == SQLITE_OK && store->home_unstored) {
        rc = put_home(store, 1, ret_home);
    }
    if (rc == SQLITE_OK) {
        rc = run(store, ST_COMMIT);
    }
    rc = store_judge_full(store, rc, 1);
    if (rc != SQLITE_OK && !sqlite3_get_autocommit(store->db)) {
        run(store, ST_ROLLBACK);
    }
    return rc;
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

static int fail_broken(const struct store *store, struct ms_err *err)
{
    return ms_fail(err, MS_E_IO,
                   "database %s: a checkpoint failed, so what the disk holds is unknown: %s",
                   store->path, store->broken_why);
}

int store_commit(struct store *store, const struct sched_effect *effects, size_t n,
                 struct ms_err *err)
{
    if (!is_durable(effects, n)) {
        return 0;
    }
    if (store->broken) {
        return fail_broken(store, err);
    }
    struct home home = {.slot = 0};
    const int has_home = store->home_unstored;
    int rc = write_all(store, effects, n, &home);
    while ((rc & 0xff) == SQLITE_FULL && store_make_room(store)) {
        rc = write_all(store, effects, n, &home);
    }
    if (store->broken) { /* in making room; what was to be written is rolled back */
        return fail_broken(store, err);
    }
    if ((rc & 0xff) == SQLITE_FULL) {
        return store_fail_full(store, err);
    }
    if (rc == SQLITE_NOMEM) { /* rolled back: the caller may have some to spare */
        return ms_fail(err, MS_E_NOMEM, "database %s: no memory for a commit", store->path);
    }
    if (rc != SQLITE_OK) {
        char cause[STORE_CAUSE_MAX];
        return ms_fail(err, MS_E_IO, "database %s: commit: %s (%d)%s", store->path,
                       sqlite3_errstr(rc), rc, store_cause(store, rc, cause));
    }
    store->is_believed = 1;
    if (store->ticks_due > store->ticks) {
        store->ticks = store->ticks_due;
        if (store->lock_fd >= 0) {
            store_witness(store->lock_fd, store->ticks);
        }
    }
    if (has_home) {
        settle_home(store, &home);
    }
    store_keep_foldable(store);
    if (store->wal_pages > WAL_BUSY_PAGES) {
        store_fold(store, SQLITE_CHECKPOINT_PASSIVE);
    }
    return store->has_reserve ? 0 : 1;
}

int store_take_warning(struct store *store, struct ms_err *ret)
{
    if (!store->is_unmarked_untold) {
        return 0;
    }
    store->is_unmarked_untold = 0;
    ms_fail(ret, MS_E_IO,
            "the mark %.240s; without it a copy that is written over the database may not be "
            "noticed: make way for it, the next write tries again",
            store->unmarked);
    return 1;
}

/* ---- the end ------------------------------------------------------------------------------------
 */

/* A database that was refused, or whose state is unknown, stays as it is: its log too. */
void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    if (store->is_marked_open && store->is_believed && !store->broken) {
        put_end(store);
    }
    for (size_t i = 0; i < ST_COUNT; i++) {
        sqlite3_finalize(store->statements[i]);
    }
    if (store->db != NULL) {
        if (store->is_believed && !store->broken) {
            store_fold(store, SQLITE_CHECKPOINT_TRUNCATE);
        } else {
            sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        }
    }
    sqlite3_close(store->db);
    if (store->lock_fd >= 0) {
        close(store->lock_fd);
    }
    explicit_bzero(store->secret, sizeof(store->secret));
    free(store);
}
