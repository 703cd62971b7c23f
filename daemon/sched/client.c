/* client.c - what clients ask for: submit, cancel, lists, status */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

enum { REASON_SHOWN = 300 /* of a job, within a sentence */ };

/* ---- submit -------------------------------------------------------------------------------------
 */

/* NULL, or why the job can never be accepted as it is. */
static const char *submit_invalid(struct sched *s, const Ms__Submit *msg)
{
    if (msg->workers < 1 || msg->workers > MS_WORKERS_MAX) {
        return emit_text(s, "job %s asks for %u workers: from 1 to %d are possible", msg->name,
                         msg->workers, MS_WORKERS_MAX);
    }
    if (msg->job_json.len == 0 || msg->job_json.len > MS_SPEC_MAX) {
        return emit_text(s, "job %s is described by %zu bytes: from 1 to %u are possible",
                         msg->name, msg->job_json.len, MS_SPEC_MAX);
    }
    if (msg->priority < -MS_PRIORITY_MAX || msg->priority > MS_PRIORITY_MAX) {
        return emit_text(s, "job %s asks for priority %d: from %d to %d are possible", msg->name,
                         msg->priority, -MS_PRIORITY_MAX, MS_PRIORITY_MAX);
    }
    if (msg->run_dir[0] != '\0' && !s->mode->names_run_dir) {
        return emit_text(s, "job %s names run directory %.200s: only `msctl run` may choose one",
                         msg->name, msg->run_dir);
    }
    if (msg->run_dir[0] == '\0' && s->mode->names_run_dir) {
        return emit_text(s,
                         "job %s names no run directory, and this scheduler is the own one of a "
                         "`msctl run`: submit to a standing cluster, or start another run",
                         msg->name);
    }
    return msg->plan[0] != '\0' ? plan_refusal(s, msg->plan) : NULL;
}

/* NULL, or why the job is not this principal's to submit. */
static const char *submit_forbidden(struct sched *s, const struct conn *conn, const Ms__Submit *msg)
{
    int32_t min = s->cfg.priority_users_min;
    int32_t max = s->cfg.priority_users_max;
    if ((msg->priority >= min && msg->priority <= max) || may(&conn->peer.who, MAY_PRIORITY, "")) {
        return NULL;
    }
    return emit_text(s,
                     "job %s asks for priority %d and you are %s: users have %d to %d here "
                     "(priority_users of the scheduler), admins all",
                     msg->name, msg->priority, conn->peer.who.id, min, max);
}

/* NULL, or why no job is accepted now. */
static const char *submit_refused(struct sched *s, const Ms__Submit *msg, int *ret_code)
{
    if (s->mode->no_submit != NULL) {
        *ret_code = MS_E_REFUSED;
        return s->mode->no_submit;
    }
    if (s->draining) {
        *ret_code = MS_E_REFUSED;
        return "the scheduler is shutting down: submit again when it has restarted";
    }
    if (s->refusal[0] != '\0') {
        *ret_code = MS_E_FULL;
        return emit_text(s, "job %s cannot be stored: %.250s", msg->name, s->refusal);
    }
    if (!job_ids_left(s)) {
        *ret_code = MS_E_FULL;
        return emit_text(s,
                         "job %s cannot get an id: the database %s has given away the last, %llu; "
                         "the operator moves it away, and the scheduler begins with an empty one",
                         msg->name, s->database, (ull)s->next_job - 1);
    }
    return NULL;
}

static void reply_submitted(struct sched *s, const struct conn *conn, uint32_t frame_id,
                            const struct job *job)
{
    Ms__Submitted msg = MS__SUBMITTED__INIT;
    msg.job = job->id;
    msg.stamp = stamp_now(s);
    emit_send(s, conn->id, MS_MSG_SUBMITTED, frame_id, &msg.base);
}

/* The same key again: the same answer, unless it is another job that carries the key. */
static void submit_again(struct sched *s, const struct conn *conn, uint32_t frame_id,
                         const Ms__Submit *msg, const struct job *job)
{
    /* a plan that rank 0 chose meanwhile is not what was submitted */
    const bool same_plan = job->plan_given ? plan_is(job, msg->plan) : msg->plan[0] == '\0';
    if (job->workers == msg->workers && spec_is(job, msg->job_json.data, msg->job_json.len) &&
        same_plan) {
        reply_submitted(s, conn, frame_id, job);
        return;
    }
    emit_error(s, conn->id, frame_id, MS_E_EXISTS,
               "key %s was used for job %llu, which is another job: take a new key", msg->key,
               (ull)job->id);
}

static struct job *submit_create(struct sched *s, const struct conn *conn, const Ms__Submit *msg)
{
    struct sched_job_row *row = emit_alloc(s, sizeof(*row));
    memset(row, 0, sizeof(*row));
    row->id = s->next_job;
    row->state = JOB_QUEUED;
    ms_text_copy(row->name, sizeof(row->name), msg->name);
    ms_text_copy(row->owner, sizeof(row->owner), conn->peer.who.id);
    ms_text_copy(row->key, sizeof(row->key), msg->key);
    ms_text_copy(row->run_dir, sizeof(row->run_dir), msg->run_dir);
    row->workers = msg->workers;
    row->priority = msg->priority;
    row->recovery = msg->recovery;
    row->submitted_ms = s->now.wall_ms;
    row->spec = msg->job_json.data;
    row->spec_bytes = msg->job_json.len;
    struct job *job = job_create(s, row);
    if (job != NULL && job_index(s, job) < 0) {
        job_free(job);
        job = NULL;
    }
    return job;
}

void on_submit(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Submit *msg = (const Ms__Submit *)event->msg;
    if (stamp_refused(s, conn, event->id, &msg->stamp)) {
        return;
    }
    if (msg->key[0] != '\0') {
        const struct job *job = job_find_key(s, conn->peer.who.id, msg->key);
        if (job != NULL) {
            submit_again(s, conn, event->id, msg, job);
            return;
        }
    }
    int code = MS_E_INVALID;
    const char *text = submit_invalid(s, msg);
    if (text == NULL && (text = submit_forbidden(s, conn, msg)) != NULL) {
        code = MS_E_REFUSED;
    }
    if (text == NULL) {
        text = submit_refused(s, msg, &code);
    }
    const size_t bytes = msg->job_json.len + strlen(msg->plan);
    if (text == NULL && (text = purse_refusal(s, &conn->peer.who, bytes)) != NULL) {
        code = MS_E_FULL;
    }
    if (text != NULL) {
        emit_error(s, conn->id, event->id, code, "%s", text);
        return;
    }
    /* what is stored of it lies in tick memory; what is kept of its plan comes from the reserve */
    struct job *job = emit_reserve(s, bytes) ? submit_create(s, conn, msg) : NULL;
    if (job == NULL) {
        emit_error(s, conn->id, event->id, MS_E_NOMEM, "no memory for job %s: try again later",
                   msg->name);
        return;
    }
    s->next_job++;
    emit_put_meta(s, "next_job", s->next_job);
    if (msg->plan[0] != '\0') {
        plan_attach(s, job, msg->plan, true);
    }
    emit_put_job(s, job, true);
    queue_add(s, job);
    event_of_job(s, "job.submitted", job,
                 emit_text(s, "%s by %s: %u worker%s, priority %d", job->name, job->owner,
                           job->workers, job->workers == 1 ? "" : "s", job->priority),
                 event_number(s, "workers", job->workers));
    reply_submitted(s, conn, event->id, job);
    emit_log(s, MS_LOG_INFO, "job.submitted job=%llu name=%s owner=%s workers=%u priority=%d",
             (ull)job->id, emit_quote(s, job->name), emit_quote(s, job->owner), job->workers,
             job->priority);
}

/* ---- cancel -------------------------------------------------------------------------------------
 */

/* False: refused. */
static bool cancel_wait(struct sched *s, struct conn *conn, uint32_t frame_id, struct job *job)
{
    if (job->n_waiters >= MS_CANCEL_WAITERS_MAX) {
        emit_error(s, conn->id, frame_id, MS_E_FULL,
                   "%d clients wait for the end of job %llu already: watch it instead",
                   MS_CANCEL_WAITERS_MAX, (ull)job->id);
        return false;
    }
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    if (waiter == NULL) {
        emit_error(s, conn->id, frame_id, MS_E_NOMEM, "no memory to wait for the end of job %llu",
                   (ull)job->id);
        return false;
    }
    waiter->job = job;
    waiter->conn = conn;
    waiter->frame_id = frame_id;
    list_add_tail(&job->waiters, &waiter->by_job);
    list_add_tail(&conn->waits, &waiter->by_conn);
    job->n_waiters++;
    return true;
}

void waiter_drop(struct waiter *waiter)
{
    list_remove(&waiter->by_job);
    list_remove(&waiter->by_conn);
    waiter->job->n_waiters--;
    free(waiter);
}

void waiters_answer(struct sched *s, struct job *job)
{
    while (!list_empty(&job->waiters)) {
        struct waiter *waiter = list_item(job->waiters.next, struct waiter, by_job);
        if (job->state == JOB_CANCELLED) {
            emit_ok(s, waiter->conn->id, waiter->frame_id, job->reason);
        } else {
            emit_error(s, waiter->conn->id, waiter->frame_id, MS_E_REFUSED,
                       "job %llu %s before it could be cancelled: %s", (ull)job->id,
                       sched_job_state_name(job->state), text_fit(s, job->reason, REASON_SHOWN));
        }
        waiter_drop(waiter);
    }
}

/* True if the request was answered here. */
static bool cancel_refused(struct sched *s, const struct conn *conn, uint32_t frame_id,
                           const struct job *job, uint64_t id)
{
    if (job == NULL) {
        emit_error(s, conn->id, frame_id, MS_E_NOT_FOUND,
                   "job %llu does not exist: msctl jobs --all lists them", (ull)id);
    } else if (!may(&conn->peer.who, MAY_CANCEL, job->owner)) {
        emit_error(
            s, conn->id, frame_id, MS_E_REFUSED,
            "job %llu belongs to %s and you are %s: only its owner or an admin may cancel it",
            (ull)id, job->owner, conn->peer.who.id);
    } else if (job->state == JOB_CANCELLED) {
        emit_ok(s, conn->id, frame_id,
                emit_text(s, "CANCELLED already: nothing to cancel (%s)",
                          text_fit(s, job->reason, REASON_SHOWN)));
    } else if (job_is_ended(job)) {
        emit_error(s, conn->id, frame_id, MS_E_REFUSED, "job %llu is %s already: nothing to cancel",
                   (ull)id, sched_job_state_name(job->state));
    } else if (s->refuses_ends) {
        emit_error(s, conn->id, frame_id, MS_E_FULL, "the end of job %llu cannot be stored: %.250s",
                   (ull)id, s->refusal);
    } else {
        return false;
    }
    return true;
}

void on_cancel(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Cancel *msg = (const Ms__Cancel *)event->msg;
    struct job *job = job_find(s, msg->job);
    if (cancel_refused(s, conn, event->id, job, msg->job)) {
        return;
    }
    const char *by = ms_principal_show(conn->peer.who.id);
    const char *text = msg->reason[0] != '\0' ? emit_text(s, "cancelled by %s: %s", by, msg->reason)
                                              : emit_text(s, "cancelled by %s", by);
    if (!job_has_begun(job) || !msg->at_step) { /* before Start there is no step to finish */
        job_end(s, job, JOB_ON_CANCEL, MS_E_CANCELLED, text);
        emit_ok(s, conn->id, event->id, text);
    } else if (cancel_wait(s, conn, event->id, job) && !job->run->cancelling) {
        run_stop_at_step(s, job, text);
    }
}

/* ---- questions ----------------------------------------------------------------------------------
 */

void on_status_query(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    struct sched_counts counts;
    sched_count(s, &counts);
    Ms__StatusInfo msg = MS__STATUS_INFO__INIT;
    msg.software = s->software;
    msg.cluster = (char *)s->mode->name;
    msg.uptime_ms = (uint64_t)(s->now.mono_ms - s->started.mono_ms);
    msg.nodes_registered = counts.nodes_registered;
    msg.nodes_idle = counts.nodes_idle;
    msg.nodes_lost = counts.nodes_lost;
    msg.jobs_queued = counts.jobs_queued;
    msg.jobs_running = counts.jobs_placed;
    msg.jobs_ended = counts.jobs_ended;
    msg.generation = counts.generation;
    msg.database = s->database;
    msg.clients = s->driver.clients;
    /* in every mode: a cluster that takes no new work says so before it is given some */
    msg.waiting_for = (char *)(s->refusal[0] != '\0' ? emit_text(s, "disk space: %s", s->refusal)
                                                     : s->mode->waiting_for(s));
    msg.ticks = s->driver.ticks.n;
    msg.tick_p50_us = s->driver.ticks.p50_us;
    msg.tick_p99_us = s->driver.ticks.p99_us;
    msg.tick_p999_us = s->driver.ticks.p999_us;
    msg.tick_max_us = s->driver.ticks.max_us;
    msg.tick_cpu_p50_us = s->driver.ticks_cpu.p50_us;
    msg.tick_cpu_p99_us = s->driver.ticks_cpu.p99_us;
    msg.tick_cpu_p999_us = s->driver.ticks_cpu.p999_us;
    msg.tick_cpu_max_us = s->driver.ticks_cpu.max_us;
    msg.commits = s->driver.commits.n;
    msg.commit_last_us = s->driver.commit_last_us;
    msg.commit_p50_us = s->driver.commits.p50_us;
    msg.commit_p99_us = s->driver.commits.p99_us;
    msg.commit_p999_us = s->driver.commits.p999_us;
    msg.commit_max_us = s->driver.commits.max_us;
    msg.draining = s->draining;
    emit_send(s, conn->id, MS_MSG_STATUS_INFO, event->id, &msg.base);
}
