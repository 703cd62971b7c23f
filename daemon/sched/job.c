/* job.c - jobs: the object, the indexes by id and by key, and why one waits */
#include "daemon/sched/state.h"

#include "proto/grow.h"
#include "proto/state_words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the object ---------------------------------------------------------------------------------
 */

static const char *pack_text(char **at, const char *text, size_t max)
{
    size_t n = strnlen(text, max);
    char *copy = *at;
    memcpy(copy, text, n);
    copy[n] = '\0';
    *at += n + 1;
    return copy;
}

struct job *job_create(struct sched *s, const struct sched_job_row *row)
{
    size_t names =
        strlen(row->name) + strlen(row->owner) + strlen(row->key) + strlen(row->run_dir) + 4;
    struct job *job = calloc(1, sizeof(*job) + names);
    char *reason = job != NULL ? strdup(row->reason) : NULL;
    if (reason == NULL) {
        free(job);
        return NULL;
    }
    char *at = (char *)(job + 1);
    job->name = pack_text(&at, row->name, MS_NAME_MAX);
    job->owner = pack_text(&at, row->owner, MS_PRINCIPAL_MAX);
    job->key = pack_text(&at, row->key, MS_NAME_MAX);
    job->run_dir = pack_text(&at, row->run_dir, MS_PATH_MAX);
    job->reason = reason;
    job->id = row->id;
    job->state = row->state;
    if (spec_take(s, job, row) < 0) {
        free(reason);
        free(job);
        return NULL;
    }
    job->has_home = row->recovery && home_is_named(row->spec, row->spec_bytes);
    job->workers = row->workers;
    job->n_tries = row->n_tries;
    job->priority = row->priority;
    job->recovery = row->recovery;
    job->code = row->code;
    job->generation = row->generation;
    job->submitted_ms = row->submitted_ms;
    job->started_ms = row->started_ms;
    job->ended_ms = row->ended_ms;
    job->steps = row->steps;
    job->seconds = row->seconds;
    ms_text_copy(job->weights_sha256, sizeof(job->weights_sha256), row->weights_sha256);
    ms_text_copy(job->plan_sha256, sizeof(job->plan_sha256), row->plan_sha256);
    list_init(&job->lane);
    list_init(&job->watches);
    list_init(&job->waiters);
    return job;
}

void job_free(struct job *job)
{
    while (!list_empty(&job->watches)) {
        watch_drop(list_item(job->watches.next, struct watch, by_job));
    }
    while (!list_empty(&job->waiters)) {
        waiter_drop(list_item(job->waiters.next, struct waiter, by_job));
    }
    run_free(job->run);
    free(job->spec);
    free(job->reason);
    free(job);
}

bool job_is_ended(const struct job *job)
{
    return job->state == JOB_SUCCEEDED || job->state == JOB_FAILED || job->state == JOB_CANCELLED;
}

bool job_is_placed(const struct job *job)
{
    return job->state == JOB_PLACING || job->state == JOB_RUNNING || job->state == JOB_RECOVERING;
}

bool job_has_begun(const struct job *job)
{
    return job->state == JOB_RUNNING || job->state == JOB_RECOVERING;
}

void job_set_reason(struct job *job, const char *text)
{
    char *copy = dup_text(text); /* text may be the old reason */
    free(job->reason);
    job->reason = copy;
}

static const char *const event_kinds[JOB_EVENTS] = {
    [JOB_ON_PLACE] = "job.placed",
    [JOB_ON_READY] = "job.started",
    [JOB_ON_LOSS] = NULL, /* one for each rank: recover.c */
    [JOB_ON_REQUEUE] = "job.requeued",
    [JOB_ON_SUCCESS] = "job.succeeded",
    [JOB_ON_FAILURE] = "job.failed",
    [JOB_ON_CANCEL] = "job.cancelled",
};

static const char *event_kind(const struct job *job, enum job_event event)
{
    return event == JOB_ON_READY && job->state == JOB_RECOVERING ? "job.recovered"
                                                                 : event_kinds[event];
}

void job_set(struct sched *s, struct job *job, enum job_event event, const char *text,
             const char *facts)
{
    int to = ms_machine_next(&states_of_jobs, (int)job->state, (int)event);
    assert(to >= 0);
    bool was = job_is_placed(job);
    if (event_kind(job, event) != NULL) {
        event_of_job(s, event_kind(job, event), job, text, facts);
    }
    job->state = (enum sched_job_state)to;
    if (job_is_placed(job) && !was) {
        list_remove(&job->lane);
        list_add_tail(&s->placed, &job->lane);
        s->n_placed++;
    } else if (was && !job_is_placed(job)) {
        list_remove(&job->lane);
        s->n_placed--;
    }
}

/* ---- by id, by key ------------------------------------------------------------------------------
 */

size_t job_slot_after(const struct sched *s, uint64_t id)
{
    size_t low = 0;
    size_t high = s->n_jobs;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->jobs[mid].id > id) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}

static struct job_slot *slot_find(const struct sched *s, uint64_t id)
{
    size_t after = job_slot_after(s, id);
    return after > 0 && s->jobs[after - 1].id == id ? &s->jobs[after - 1] : NULL;
}

struct job *job_find(const struct sched *s, uint64_t id)
{
    const struct job_slot *slot = slot_find(s, id);
    return slot != NULL ? slot->job : NULL;
}

static uint64_t key_hash(const struct sched *s, const char *owner, const char *key)
{
    return table_hash_text(table_hash_text(s->seed, owner), key);
}

struct job *job_find_key(const struct sched *s, const char *owner, const char *key)
{
    struct table_link *link = table_first(&s->keys, key_hash(s, owner, key));
    for (; link != NULL; link = table_next(link)) {
        struct job *job = list_item(link, struct job, by_key);
        if (strcmp(job->key, key) == 0 && strcmp(job->owner, owner) == 0) {
            return job;
        }
    }
    return NULL;
}

int job_index(struct sched *s, struct job *job)
{
    struct job_slot *jobs = ms_grow(s->jobs, s->n_jobs, 1, sizeof(*jobs), &s->jobs_room);
    if (jobs == NULL) {
        return MS_E_NOMEM;
    }
    s->jobs = jobs;
    if (!job_is_ended(job)) {
        purse_add(s, job);
    }
    s->jobs[s->n_jobs++] = (struct job_slot){job->id, job, job_is_ended(job)};
    if (job->key[0] != '\0') {
        table_add(&s->keys, &job->by_key, key_hash(s, job->owner, job->key));
    }
    return 0;
}

static void jobs_compact(struct sched *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_jobs; i++) {
        if (s->jobs[i].job != NULL) {
            s->jobs[n++] = s->jobs[i];
        }
    }
    s->n_jobs = n;
    s->n_holes = 0;
}

void job_slot_ended(struct sched *s, const struct job *job)
{
    slot_find(s, job->id)->ended = true;
}

void job_drop(struct sched *s, struct job *job)
{
    struct job_slot *slot = slot_find(s, job->id);
    slot->job = NULL;
    s->n_holes++;
    if (job->key[0] != '\0') {
        table_remove(&s->keys, &job->by_key);
    }
    list_remove(&job->lane);
    job_free(job);
    if (4 * s->n_holes > s->n_jobs) {
        jobs_compact(s);
    }
}

/* ---- why it waits -------------------------------------------------------------------------------
 */

enum { RANKS_SHOWN = 8 };

static const char *ranks_in(struct sched *s, const struct job *job, enum rank_state state)
{
    const char *list = "";
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        if (job->run->members[rank].state != state) {
            continue;
        }
        if (++n > RANKS_SHOWN) {
            return emit_text(s, "ranks%s ...", list);
        }
        list = emit_text(s, "%s %u", list, rank);
    }
    return emit_text(s, "rank%s%s", n == 1 ? "" : "s", list);
}

static const char *run_reason(struct sched *s, const struct job *job)
{
    const struct run *run = job->run;
    int64_t until_ms = 0;
    if (run->complaint.made) {
        return text_behind(s, emit_text(s, "waits %d ms for a first-hand report: ", MS_BLAME_MS),
                           run->complaint.text);
    }
    if (run->n_in[RANK_MISSING] > 0 && run->cancelling && timer_is_armed(&run->adopt)) {
        const int64_t left_ms = run->adopt.at_ms - s->now.mono_ms;
        return emit_text(s,
                         "%.200s; waits up to %lld s for the nodes of %s to come back after %s%s",
                         run->cancel_text, (long long)(left_ms > 0 ? (left_ms + 999) / 1000 : 0),
                         ranks_in(s, job, RANK_MISSING), run->expected,
                         s->mode->by_hand ? ", or to be started again" : "");
    }
    if (run->n_in[RANK_MISSING] > 0) {
        return emit_text(s, "waits for the nodes of %s to come back after %s%s",
                         ranks_in(s, job, RANK_MISSING), run->expected,
                         s->mode->by_hand ? "; where one has ended: start its worker again" : "");
    }
    if (run->cancelling && run->late_asked) {
        return emit_text(s, "%.200s; waits for %s to save its step", run->cancel_text,
                         rank_words(s, job, run->late_saver));
    }
    if (timer_is_armed(&run->back)) {
        return emit_text(s,
                         "%.200s; waits up to %d s for %s, of which a connection ended, to come "
                         "back",
                         run->cancel_text, MS_UNHEARD_MS / 1000,
                         rank_words(s, job, stop_awaited(s, job, &until_ms)));
    }
    if (run->cancelling) {
        return emit_text(s, "%.200s; waits for %u of %u ranks to finish the step", run->cancel_text,
                         job->workers - run_n_over(run), job->workers);
    }
    if (save_is_owed(run)) {
        return save_words(s, job);
    }
    if (run->called_off) {
        return emit_text(
            s, MS_REASON_ALL_MADE "; waits for %s to end: no lost rank is replaced any more",
            ranks_in(s, job, RANK_TRAINING));
    }
    if (job->state == JOB_RUNNING && run->n_in[RANK_LOST] > 0) {
        return emit_text(s, "lost, and not replaced, for nothing is left for it to make: %s",
                         ranks_in(s, job, RANK_LOST));
    }
    if (recover_n_vacant(run) > 0) {
        const char *head = "";
        if (calloff_may(run, job->workers)) {
            head = emit_text(
                s, MS_REASON_ALL_MADE "; %d s after the loss the job ends without it. It ",
                MS_CANCEL_GRACE_MS / 1000);
        }
        return text_behind(s, head, recover_words(s, job));
    }
    if (run_awaits_plan(job)) {
        return emit_text(s, "waits for %s to choose the plan", rank_words(s, job, 0));
    }
    if (job->state == JOB_PLACING) {
        return emit_text(s, "waits for %s to load data and connect",
                         ranks_in(s, job, RANK_PREPARING));
    }
    return job->state == JOB_RECOVERING ? recover_words(s, job) : "";
}

const char *job_reason(struct sched *s, const struct job *job)
{
    if (job->state == JOB_QUEUED) {
        return queue_reason(s, job);
    }
    return job_is_placed(job) ? run_reason(s, job) : job->reason;
}
