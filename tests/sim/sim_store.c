/* sim_store.c - clusters over the real store: what it acknowledged is there after any fault
 *
 * sim_disk.c keeps what must be there. A commit whose outcome nobody knows leaves two disks that
 * may be there: the one before, and the one after it. */
#include "daemon/store/store.h"

#include "tests/sim/model.h"
#include "tests/sim/sim_vfs.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* ---- what is loaded, on its way into the core --------------------------------------------------
 *
 * The linker sends the store's calls here (--wrap). */

int __real_sched_load_job(struct sched *sched, const struct sched_job_row *row, struct ms_err *err);
int __real_sched_load_member(struct sched *sched, const struct sched_member_row *row,
                             struct ms_err *err);
int __real_sched_load_meta(struct sched *sched, const char *key, uint64_t value,
                           struct ms_err *err);
int __real_sched_load_event(struct sched *sched, const struct sched_event_row *row,
                            struct ms_err *err);
int __real_sched_load_plan(struct sched *sched, const struct sched_plan_row *row,
                           struct ms_err *err);
int __wrap_sched_load_plan(struct sched *sched, const struct sched_plan_row *row,
                           struct ms_err *err);
int __wrap_sched_load_event(struct sched *sched, const struct sched_event_row *row,
                            struct ms_err *err);
int __wrap_sched_load_job(struct sched *sched, const struct sched_job_row *row, struct ms_err *err);
int __wrap_sched_load_member(struct sched *sched, const struct sched_member_row *row,
                             struct ms_err *err);
int __wrap_sched_load_meta(struct sched *sched, const char *key, uint64_t value,
                           struct ms_err *err);

static struct world *recording; /* while the store loads */

int __wrap_sched_load_job(struct sched *sched, const struct sched_job_row *row, struct ms_err *err)
{
    if (recording != NULL) {
        disk_put_job(recording, &recording->disk_found, row);
    }
    return __real_sched_load_job(sched, row, err);
}

int __wrap_sched_load_plan(struct sched *sched, const struct sched_plan_row *row,
                           struct ms_err *err)
{
    if (recording != NULL) {
        disk_put_plan(recording, &recording->disk_found, row->sha256, row->text);
    }
    return __real_sched_load_plan(sched, row, err);
}

int __wrap_sched_load_member(struct sched *sched, const struct sched_member_row *row,
                             struct ms_err *err)
{
    if (recording != NULL) {
        disk_put_member(&recording->disk_found, row);
    }
    return __real_sched_load_member(sched, row, err);
}

int __wrap_sched_load_meta(struct sched *sched, const char *key, uint64_t value, struct ms_err *err)
{
    if (recording != NULL) {
        disk_put_meta(&recording->disk_found, key, value);
    }
    return __real_sched_load_meta(sched, key, value, err);
}

int __wrap_sched_load_event(struct sched *sched, const struct sched_event_row *row,
                            struct ms_err *err)
{
    if (recording != NULL) {
        disk_put_event(&recording->disk_found, row);
    }
    return __real_sched_load_event(sched, row, err);
}

/* ---- comparing ----------------------------------------------------------------------------------
 */

static const char *job_differs(const struct sched_job_row *a, const struct sched_job_row *b)
{
    return a->id != b->id                                      ? "id"
           : a->state != b->state                              ? "state"
           : a->generation != b->generation                    ? "generation"
           : a->workers != b->workers                          ? "workers"
           : a->priority != b->priority                        ? "priority"
           : a->code != b->code                                ? "code"
           : a->n_tries != b->n_tries                          ? "n_tries"
           : a->recovery != b->recovery                        ? "recovery"
           : a->cancel_at_step != b->cancel_at_step            ? "cancel_at_step"
           : a->submitted_ms != b->submitted_ms                ? "submitted_ms"
           : a->started_ms != b->started_ms                    ? "started_ms"
           : a->ended_ms != b->ended_ms                        ? "ended_ms"
           : a->steps != b->steps                              ? "steps"
           : strcmp(a->weights_sha256, b->weights_sha256) != 0 ? "weights"
           : strcmp(a->plan_sha256, b->plan_sha256) != 0       ? "plan_sha256"
           : strcmp(a->plan, b->plan) != 0                     ? "plan"
           : a->plan_given != b->plan_given                    ? "plan_given"
           : strcmp(a->spec_sha256, b->spec_sha256) != 0       ? "spec_sha256"
           : strcmp(a->owner, b->owner) != 0                   ? "owner"
           : strcmp(a->name, b->name) != 0                     ? "name"
           : strcmp(a->key, b->key) != 0                       ? "key"
           : strcmp(a->reason, b->reason) != 0                 ? "reason"
           : strcmp(a->run_dir, b->run_dir) != 0               ? "run_dir"
           : strcmp(a->cancel_text, b->cancel_text) != 0       ? "cancel_text"
           : a->results_bytes != b->results_bytes ||
                   (a->results_bytes > 0 && memcmp(a->results, b->results, a->results_bytes) != 0)
               ? "results"
           : a->spec_bytes != b->spec_bytes || memcmp(a->spec, b->spec, a->spec_bytes) != 0 ? "spec"
                                                                                            : NULL;
}

static const char *member_differs(const struct sched_member_row *a,
                                  const struct sched_member_row *b)
{
    return a->incarnation != b->incarnation          ? "incarnation"
           : a->generation != b->generation          ? "generation"
           : a->step != b->step                      ? "step"
           : a->pid != b->pid                        ? "pid"
           : strcmp(a->state, b->state) != 0         ? "state"
           : strcmp(a->node_id, b->node_id) != 0     ? "node"
           : strcmp(a->host_name, b->host_name) != 0 ? "host"
           : strcmp(a->log_path, b->log_path) != 0   ? "log path"
           : strcmp(a->principal, b->principal) != 0 ? "principal"
                                                     : NULL;
}

/* NULL, or what is not as it must be. */
static const char *disk_differs(const struct sim_disk *want, const struct sim_disk *found,
                                uint64_t *ret_job)
{
    const char *what = NULL;
    *ret_job = 0;
    if (want->n_jobs != found->n_jobs) {
        return "the number of jobs";
    }
    if (want->n_plans != found->n_plans) {
        return "the number of plans";
    }
    for (size_t i = 0; i < want->n_plans; i++) {
        const char *text = disk_plan(found, want->plans[i].sha256);
        if (text == NULL || strcmp(text, want->plans[i].text) != 0) {
            return "a plan";
        }
    }
    if (want->n_members != found->n_members) {
        return "the number of ranks";
    }
    if (want->generation != found->generation || want->next_job != found->next_job ||
        want->ticks != found->ticks || want->last_event != found->last_event) {
        return "a named number";
    }
    if (want->n_events != found->n_events) {
        return "the number of events";
    }
    for (size_t i = 0; i < want->n_events; i++) {
        const struct sim_told *a = &want->events[i];
        const struct sim_told *b = &found->events[i];
        if (a->seq != b->seq || a->job != b->job || a->at_ms != b->at_ms ||
            strcmp(a->kind, b->kind) != 0 || strcmp(a->principal, b->principal) != 0) {
            return "an event";
        }
    }
    for (size_t i = 0; i < want->n_jobs && what == NULL; i++) {
        const struct sched_job_row *row = disk_find_job(found, want->jobs[i].id);
        *ret_job = want->jobs[i].id;
        what = row == NULL ? "its row" : job_differs(&want->jobs[i], row);
    }
    for (size_t i = 0; i < want->n_members && what == NULL; i++) {
        const struct sched_member_row *row =
            disk_find_member(found, want->members[i].job, want->members[i].rank);
        *ret_job = want->members[i].job;
        what = row == NULL ? "a rank" : member_differs(&want->members[i], row);
    }
    return what;
}

/* ---- the driver's disk --------------------------------------------------------------------------
 */

static void close_store(struct world *w)
{
    store_close(w->store);
    w->store = NULL;
}

/* The process is gone; now and then the power is, too. */
void real_crash(struct world *w)
{
    if (w->store == NULL) {
        return;
    }
    if (!vfs_is_dead()) {
        vfs_die_after(1); /* closing must not write what a dead process would not */
    }
    close_store(w);
    /* after a sync that failed the system shows what the disk does not have: the power fails when
     * the next start has begun to fold that in */
    unsigned percent = w->bad_luck == SYNC_FAILED ? 20 : w->bad_luck == START_DIES ? 80 : 50;
    w->bad_luck = w->bad_luck == SYNC_FAILED ? START_DIES : NO_BAD_LUCK;
    if (sim_chance(w, percent)) {
        sim_trace(w, "the power fails");
        vfs_power_cut();
    }
    vfs_revive();
}

void real_stop(struct world *w)
{
    close_store(w);
}

static void take_found(struct world *w)
{
    uint64_t job = 0;
    uint64_t other = 0;
    const char *before = disk_differs(&w->disk, &w->disk_found, &job);
    const char *after =
        w->in_doubt ? disk_differs(&w->disk_after, &w->disk_found, &other) : "nothing";
    if (before != NULL && after != NULL) {
        sim_fail(w,
                 "the database lost what it had acknowledged: job %llu: %s (or, of the commit "
                 "that was under way, job %llu: %s)",
                 (ull)job, before, (ull)other, after);
    } else if (before != NULL) {
        struct sim_disk swap = w->disk;
        w->disk = w->disk_after;
        w->disk_after = swap;
        w->disk.full = swap.full;
        w->disk.spent = swap.spent;
    }
    disk_clear(&w->disk_after);
    if (w->in_doubt && w->crashes_left > 0 && sim_chance(w, 40)) {
        w->crashes_left--; /* what it has found must stay, also where nothing was written since */
        sim_at(w, w->now + (int64_t)sim_below(w, 30), SIM_ADMIN, ADMIN_CRASH, w->boot, 0);
    }
    w->in_doubt = false;
}

/* As driver_start loads: opens the database, checks every row against what must be there. 1: the
 * process died of it; the next one tries again. */
int real_load(struct world *w, struct ms_err *err)
{
    struct store_setup setup = {.path = "state.db", .vfs = SIM_VFS_NAME};
    if (w->boot > 1 && w->bad_luck == START_DIES) {
        vfs_die_after(1 + (uint32_t)sim_below(w, 12));
    } else if (w->boot > 1 && w->crashes_left > 0 && sim_chance(w, 15)) {
        w->crashes_left--;
        vfs_die_after(1 + (uint32_t)sim_below(w, 12));
    }
    disk_clear(&w->disk_found);
    w->checkpoint_failed = false;
    recording = w;
    int rc = store_open_with(&setup, &w->store, err);
    rc = rc == 0 ? store_load(w->store, w->sched, err) : rc;
    recording = NULL;
    if (rc < 0 && vfs_is_dead()) {
        sim_trace(w, "the scheduler dies while it starts: %s", err->text);
        real_crash(w);
        vfs_revive();
        return 1;
    }
    vfs_revive();
    w->bad_luck = NO_BAD_LUCK;
    if (rc == 0) {
        take_found(w);
    }
    return rc;
}

/* The log is folded into the database; now and then the disk forgets what it was given. */
static void idle(struct world *w)
{
    bool fails = w->crashes_left > 0 && sim_chance(w, 30);
    if (fails) {
        w->crashes_left--;
        vfs_fail_sync();
    }
    store_idle(w->store);
    w->checkpoint_failed = fails && !vfs_sync_is_failing() && !vfs_is_dead();
    if (fails) {
        sim_trace(w, "a checkpoint %s", w->checkpoint_failed ? "fails" : "had nothing to do");
        vfs_forgive_sync();
    }
}

/* True: committed. False: the process has to end, and nobody knows. */
bool real_commit(struct world *w, const struct sched_effect *effects, size_t n, bool crash)
{
    struct ms_err err = {0, ""};
    if (crash && sim_chance(w, 60)) {
        vfs_die_after(1 + (uint32_t)sim_below(w, 12));
    } else if (w->crashes_left > 0 && sim_chance(w, 8)) {
        w->crashes_left--;
        w->bad_luck = SYNC_FAILED;
        vfs_fail_sync();
    }
    int rc = store_commit(w->store, effects, n, &err);
    if (w->checkpoint_failed && rc >= 0) {
        sim_fail(w, "a checkpoint failed, and the next commit says nothing of it");
    }
    if (rc >= 0 && !vfs_is_dead()) {
        if (sim_chance(w, 5)) {
            idle(w);
        }
        return true; /* if it dies of that, the caller's crash ends it */
    }
    if (rc >= 0) {
        return true;
    }
    sim_trace(w, "the commit fails: %s", err.text);
    disk_clear(&w->disk_after);
    disk_copy(w, &w->disk_after, &w->disk);
    struct sim_disk before = w->disk;
    w->disk = w->disk_after;
    disk_write(w, effects, n);
    w->disk_after = w->disk;
    w->disk = before;
    w->in_doubt = true;
    return false;
}

void real_start(struct world *w)
{
    static bool registered;
    if (!registered) {
        registered = vfs_register() == 0;
    }
    vfs_format(w->seed);
}

void real_end(struct world *w)
{
    if (w->store != NULL) {
        vfs_die_after(1);
        close_store(w);
        vfs_revive();
    }
    disk_clear(&w->disk_after);
    disk_clear(&w->disk_found);
}
