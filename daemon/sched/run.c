/* run.c - a placed job: ranks get ready, train, report, come back */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

void send_start(struct sched *s, const struct node *node)
{
    Ms__Start msg = MS__START__INIT;
    msg.job = node->held_job;
    msg.generation = node->held_generation;
    emit_send(s, node->conn->id, MS_MSG_START, 0, &msg.base);
}

void send_stop(struct sched *s, const struct node *node, uint64_t job, uint64_t generation,
               int code, const char *text, bool at_step)
{
    if (node->conn == NULL) {
        return;
    }
    Ms__Stop msg = MS__STOP__INIT;
    msg.job = job;
    msg.generation = generation;
    msg.code = code;
    msg.text = (char *)text;
    msg.at_step = at_step;
    emit_send(s, node->conn->id, MS_MSG_STOP, 0, &msg.base);
}

const char *rank_words(struct sched *s, const struct job *job, uint32_t rank)
{
    const struct member *member = &job->run->members[rank];
    return emit_text(s, "rank %u (node %s on host %.100s)", rank, member->node_id,
                     member->host_name);
}

const char *log_words(struct sched *s, const struct job *job, uint32_t rank)
{
    const char *path = job->run->members[rank].log_path;
    return path[0] != '\0' ? emit_text(s, "its log: %.160s", path) : "it had opened no log yet";
}

/* "<who> <what>: <cause>; <log>", where the cause gives way if all does not fit. */
static const char *rank_text(struct sched *s, const struct job *job, uint32_t rank,
                             const char *what, const char *cause)
{
    const char *who = rank_words(s, job, rank);
    const char *log = log_words(s, job, rank);
    size_t used = strlen(who) + strlen(what) + strlen(log) + 5;
    int room = used < MS_TEXT_MAX ? (int)(MS_TEXT_MAX - used) : 0;
    return emit_text(s, "%s %s: %.*s; %s", who, what, room, cause, log);
}

void run_rank_lost(struct sched *s, struct job *job, uint32_t rank, int code, const char *cause)
{
    struct run *run = job->run;
    const char *text = rank_text(s, job, rank, "was lost", cause);
    run->members[rank].state = RANK_LOST;
    if (run->cancelling) { /* the outcome that was asked for */
        job_end(s, job, JOB_ON_CANCEL, MS_E_CANCELLED,
                emit_text(s, "%.120s; meanwhile %s", run->cancel_text, text));
    } else {
        job_fail(s, job, code, text);
    }
}

/* The member that this connection speaks for, if the message is about the rank that it holds in a
 * job that is placed; else NULL. Crossing messages of a job that has ended are normal. */
static struct member *member_of(const struct conn *conn, uint64_t job, uint64_t generation,
                                uint32_t rank)
{
    const struct node *node = conn->node;
    if (node == NULL || node->job == NULL || node->job->id != job ||
        node->held_generation != generation || node->held_rank != rank) {
        return NULL;
    }
    return &node->job->run->members[rank];
}

static void member_log(struct member *member, const char *path)
{
    if (path[0] != '\0' && strcmp(path, member->log_path) != 0) {
        free(member->log_path);
        member->log_path = dup_text(path);
        member->unstored = true;
    }
}

/* ---- ready, started -----------------------------------------------------------------------------
 */

/* NULL, or the two ranks whose digests differ. Ranks without one (independent trainings) differ
 * from nobody. */
static const char *digests_differ(struct sched *s, const struct job *job, size_t offset,
                                  const char *what)
{
    const char *first = NULL;
    uint32_t first_rank = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const char *digest = (const char *)&job->run->members[rank] + offset;
        if (digest[0] == '\0') {
            continue;
        }
        if (first == NULL) {
            first = digest;
            first_rank = rank;
        } else if (strcmp(first, digest) != 0) {
            return emit_text(s,
                             "the ranks' %s differ: rank %u (node %s) has %.16s..., rank %u "
                             "(node %s) has %.16s...",
                             what, first_rank, job->run->members[first_rank].node_id, first, rank,
                             job->run->members[rank].node_id, digest);
        }
    }
    return NULL;
}

static void all_ready(struct sched *s, struct job *job)
{
    const char *differ = digests_differ(s, job, offsetof(struct member, plan_sha256), "plans");
    if (differ != NULL) {
        job_fail(s, job, MS_E_FAILED, differ);
        return;
    }
    copy_text(job->plan_sha256, sizeof(job->plan_sha256), job->run->members[0].plan_sha256);
    job->started_ms = s->now.wall_ms;
    job_set(s, job, JOB_ON_READY);
    emit_put_job(s, job, false);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct member *member = &job->run->members[rank];
        if (member->unstored) {
            emit_put_member(s, job, rank);
        }
        member->state = RANK_TRAINING;
        send_start(s, member->node);
    }
    emit_log(s, MS_LOG_NOTICE, "job.started job=%llu generation=%llu plan=%.16s",
             (unsigned long long)job->id, (unsigned long long)job->generation, job->plan_sha256);
    watch_stir(s, job);
}

void on_rank_ready(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__RankReady *msg = (const Ms__RankReady *)event->msg;
    struct member *member = member_of(conn, msg->job, msg->generation, msg->rank);
    if (member == NULL) {
        return;
    }
    struct job *job = conn->node->job;
    member_log(member, msg->log_path);
    copy_text(member->plan_sha256, sizeof(member->plan_sha256), msg->plan_sha256);
    if (job->state != JOB_PLACING || member->state != RANK_PREPARING) {
        return; /* said again after a reconnect */
    }
    member->state = RANK_READY;
    job->run->n_ready++;
    bool all = job->run->n_ready + PLANTED("start_before_all_ready") >= job->workers;
    if (all && job->run->blame.link.at == 0) { /* else one of them is failing already */
        all_ready(s, job);
    } else {
        watch_news(s);
    }
}

/* ---- progress -----------------------------------------------------------------------------------
 */

static void eval_keep(struct run *run, const struct progress *progress)
{
    if (run->n_evals > 0 && run->evals[run->n_evals - 1].msg.epoch == progress->msg.epoch) {
        run->evals[run->n_evals - 1] = *progress;
        return;
    }
    if (run->evals == NULL) {
        run->evals = must(calloc(MS_EVALS_MAX, sizeof(*run->evals)));
    }
    if (run->n_evals == MS_EVALS_MAX) {
        memmove(run->evals, run->evals + 1, (MS_EVALS_MAX - 1) * sizeof(*run->evals));
        run->n_evals--;
    }
    run->evals[run->n_evals++] = *progress;
}

void on_progress(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Progress *msg = (const Ms__Progress *)event->msg;
    struct member *member = member_of(conn, msg->job, msg->generation, msg->rank);
    if (member == NULL || conn->node->job->state != JOB_RUNNING) {
        return;
    }
    struct run *run = conn->node->job->run;
    member->step = msg->step;
    run->has_progress = true;
    run->progress.msg = *msg;
    run->progress.msg.base.n_unknown_fields = 0;
    run->progress.msg.base.unknown_fields = NULL;
    run->progress.msg.phase = NULL;
    copy_text(run->progress.phase, sizeof(run->progress.phase), msg->phase);
    if (msg->has_eval) {
        eval_keep(run, &run->progress);
    }
    watch_stir(s, run->job);
}

/* ---- done ---------------------------------------------------------------------------------------
 */

static void all_done(struct sched *s, struct job *job)
{
    const struct run *run = job->run;
    if (run->cancelling && run->n_stopped > 0) {
        job_end(s, job, JOB_ON_CANCEL, MS_E_CANCELLED, run->cancel_text);
        return;
    }
    const char *differ =
        PLANTED("digests_not_compared")
            ? NULL
            : digests_differ(s, job, offsetof(struct member, weights_sha256), "weights");
    if (differ == NULL) {
        differ = digests_differ(s, job, offsetof(struct member, plan_sha256), "plans");
    }
    if (differ != NULL) {
        job_fail(s, job, MS_E_FAILED, differ);
        return;
    }
    const struct member *first = &run->members[0];
    job->steps = first->steps;
    job->seconds = first->seconds;
    copy_text(job->weights_sha256, sizeof(job->weights_sha256), first->weights_sha256);
    copy_text(job->plan_sha256, sizeof(job->plan_sha256), first->plan_sha256);
    job_end(s, job, JOB_ON_SUCCESS, MS_OK,
            emit_text(s, "%s finished %llu steps",
                      job->workers == 1 ? "the rank" : emit_text(s, "all %u ranks", job->workers),
                      (unsigned long long)job->steps));
}

/* Codes with which a rank complains about others: they are news of somebody else's death. */
static bool is_second_hand(int code)
{
    return code == MS_E_CLOSED || code == MS_E_ABORTED || code == MS_E_TIMEOUT ||
           code == MS_E_UNREACHABLE;
}

/* Keeps the first complaint and gives the one that it is about the time to speak for itself. */
static void blame(struct sched *s, struct run *run, int code, const char *text)
{
    if (run->blame.link.at == 0) {
        run->blame_code = code;
        copy_text(run->blame_text, sizeof(run->blame_text), text);
        timer_arm(s, &run->blame, TIMER_BLAME, after_ms(s, MS_BLAME_MS));
        watch_stir(s, run->job);
    }
}

void run_blame_timeout(struct sched *s, struct run *run)
{
    job_fail(s, run->job, run->blame_code, run->blame_text);
}

static void rank_failed(struct sched *s, struct job *job, uint32_t rank, int code,
                        const char *cause)
{
    struct run *run = job->run;
    const char *text = rank_text(s, job, rank, "failed", cause);
    run->members[rank].state = RANK_FAILED;
    if (!is_second_hand(code)) {
        job_fail(s, job, code, text);
        return;
    }
    blame(s, run, code, text);
    if (run->n_done == job->workers) { /* nobody is left who could know more */
        run_blame_timeout(s, run);
    }
}

static void rank_done(struct sched *s, struct job *job, struct member *member,
                      const Ms__RankDone *msg)
{
    struct run *run = job->run;
    const bool stopped = run->cancelling && (msg->stopped || msg->code != MS_OK);
    member_log(member, msg->log_path);
    member->steps = msg->steps;
    member->step = msg->steps > member->step ? msg->steps : member->step; /* sooner than a beat */
    member->seconds = msg->seconds;
    copy_text(member->weights_sha256, sizeof(member->weights_sha256), msg->weights_sha256);
    copy_text(member->plan_sha256, sizeof(member->plan_sha256), msg->plan_sha256);
    run->n_done++;
    if (!stopped && msg->code != MS_OK) {
        rank_failed(s, job, msg->rank, msg->code, msg->text);
        return;
    }
    if (!stopped && (msg->stopped || job->state != JOB_RUNNING)) {
        rank_failed(s, job, msg->rank, MS_E_FAILED,
                    msg->stopped ? "it stopped and nobody had asked it to"
                                 : "it says that it is done and never was started");
        return;
    }
    member->state = stopped ? RANK_STOPPED : RANK_DONE;
    run->n_stopped += stopped;
    if (run->n_done < job->workers) {
        watch_stir(s, job);
    } else if (run->blame.link.at != 0) {
        run_blame_timeout(s, run);
    } else {
        all_done(s, job);
    }
}

void on_rank_done(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__RankDone *msg = (const Ms__RankDone *)event->msg;
    struct node *node = conn->node;
    struct member *member = member_of(conn, msg->job, msg->generation, msg->rank);
    if (member == NULL) {
        if (node != NULL && node->job == NULL && node->held_job != 0 &&
            node->held_job == msg->job && node->held_generation == msg->generation) {
            node_release(s, node); /* the answer to Stop */
        }
        return;
    }
    if (member->state == RANK_PREPARING || member->state == RANK_READY ||
        member->state == RANK_TRAINING) {
        rank_done(s, node->job, member, msg);
    } /* else said again after a reconnect */
}

void on_peer_report(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__PeerReport *msg = (const Ms__PeerReport *)event->msg;
    const struct member *member = member_of(conn, msg->job, msg->generation, msg->rank);
    if (member == NULL) {
        return;
    }
    struct job *job = conn->node->job;
    if (msg->peer >= job->workers || msg->peer == msg->rank) {
        emit_error(s, conn->id, event->id, MS_E_INVALID,
                   "PeerReport about rank %u of job %llu, which has ranks 0 to %u and this is %u",
                   msg->peer, (unsigned long long)job->id, job->workers - 1, msg->rank);
        return;
    }
    emit_log(s, MS_LOG_WARNING, "job.peer_reported job=%llu rank=%u peer=%u reason=%s",
             (unsigned long long)job->id, msg->rank, msg->peer, emit_quote(s, msg->text));
    if (!job->run->cancelling) { /* ranks that stop do not stop at the same moment */
        blame(s, job->run, MS_E_CLOSED,
              rank_text(s, job, msg->peer, "was lost",
                        emit_text(s, "rank %u (node %s) reports: %s", msg->rank, member->node_id,
                                  msg->text)));
    }
}

/* ---- coming back --------------------------------------------------------------------------------
 */

void run_came_back(struct sched *s, struct node *node, const struct claim *claim)
{
    struct job *job = node->job;
    struct run *run = job->run;
    struct member *member = &run->members[node->held_rank];
    member->pid = node->info.pid;
    member->step = claim->step;
    node->step = claim->step;
    if (member->state == RANK_MISSING) {
        member->state = job->state == JOB_RUNNING ? RANK_TRAINING : RANK_PREPARING;
        run->n_missing--;
        if (run->n_missing == 0) {
            timer_stop(s, &run->adopt);
            emit_log(s, MS_LOG_NOTICE, "job.adopted job=%llu generation=%llu",
                     (unsigned long long)job->id, (unsigned long long)job->generation);
        }
        watch_stir(s, job);
    }
    if (job->state == JOB_RUNNING && !claim->running) {
        send_start(s, node); /* ours was lost with the connection */
    }
    if (run->cancelling) {
        send_stop(s, node, job->id, job->generation, MS_E_CANCELLED, run->cancel_text, true);
    }
}

void run_adopt_timeout(struct sched *s, struct run *run)
{
    struct job *job = run->job;
    uint32_t first = 0;
    while (run->members[first].state != RANK_MISSING) {
        first++;
    }
    const char *who = rank_words(s, job, first);
    if (run->n_missing > 1) {
        who = emit_text(s, "%s and %u more", who, run->n_missing - 1);
    }
    job_fail(s, job, MS_E_TIMEOUT,
             emit_text(s, "%s did not come back within %lld ms after the scheduler's restart; %s",
                       who, (long long)s->cfg.lease_ms, log_words(s, job, first)));
}
