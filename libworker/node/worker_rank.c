/* worker_rank.c - one rank on this node: its log, training, and the scheduler's last word */
#include "libworker/node/worker_impl.h"

#include "libworker/host/memory.h"
#include "libworker/node/job_folders.h"
#include "libworker/plan/plan.h"
#include "proto/clock.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PEER_VERDICT_MS = 1000
}; /* a peer is gone: the scheduler's word on who and why comes before ours */

static int hold_folder(struct worker *worker, const char *job_tag, struct ms_err *err)
{
    char aside[MS_PATH_MAX + 16] = "";
    const char *tag =
        worker->cfg->mode == WORKER_STANDING ? job_tag : ""; /* else it is the user's */
    worker->folder_fd = job_folder_hold(worker->run_dir, tag, aside, err);
    if (aside[0] != '\0') {
        ms_log(MS_LOG_WARNING,
               "job_folder.aside job=%" PRIu64 " path=%s reason=\"another job of this number left "
               "it: a new database, or another cluster\"",
               worker->job_id, aside);
    }
    return worker->folder_fd < 0 ? worker->folder_fd : 0;
}

static int open_log(struct worker *worker, const char *job_tag, struct ms_err *err)
{
    const struct worker_config *cfg = worker->cfg;
    worker_job_folder(worker, worker->job_id, worker->run_dir, sizeof(worker->run_dir));
    worker->log_fd = STDOUT_FILENO;
    worker->log_path[0] = '\0';
    if (worker->run_dir[0] == '\0') {
        return 0;
    }
    int held = hold_folder(worker, job_tag, err);
    if (held < 0) {
        return held;
    }
    if (!cfg->log_to_file && cfg->mode != WORKER_RUN) {
        return 0; /* and no path: nobody should look for a file that is not there */
    }
    snprintf(worker->log_path, sizeof(worker->log_path), "%s/worker_%u.log", worker->run_dir,
             worker->rank);
    if (!cfg->log_to_file) {
        return 0; /* `msctl run` has made it our standard output already */
    }
    worker->log_fd = open(worker->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (worker->log_fd < 0) {
        worker->log_fd = STDOUT_FILENO;
        return ms_fail_errno(err, MS_E_IO, "cannot open the log %s", worker->log_path);
    }
    return 0;
}

static void close_log(struct worker *worker, const char *last_words)
{
    if (worker->log_fd != STDOUT_FILENO && last_words[0] != '\0') {
        dprintf(worker->log_fd, "%s\n", last_words);
    }
    if (worker->log_fd != STDOUT_FILENO) {
        close(worker->log_fd);
    }
    worker->log_fd = STDOUT_FILENO;
    if (worker->folder_fd >= 0) {
        close(worker->folder_fd);
        worker->folder_fd = -1;
    }
}

static struct mesh_member *make_members(const Ms__Assign *assign)
{
    struct mesh_member *members = calloc(assign->n_members, sizeof(*members));
    for (size_t i = 0; members != NULL && i < assign->n_members; i++) {
        const Ms__Member *from = assign->members[i];
        members[i] = (struct mesh_member){.node_id = from->node_id,
                                          .host_name = from->host_name,
                                          .host_id = from->host_id,
                                          .data_address = from->data_address,
                                          .data_unix = from->data_unix,
                                          .cert_name = from->cert_name,
                                          .uid = from->uid};
    }
    return members;
}

static void set_train(struct worker *worker, struct train *train)
{
    pthread_mutex_lock(&worker->lock);
    worker->train = train;
    worker_abort_train(worker); /* a Stop that was faster than we */
    pthread_mutex_unlock(&worker->lock);
}

/* The hard stop that interrupted us, if one did: its code (never 0) and text. */
static int stop_verdict(struct worker *worker, struct ms_err *err)
{
    pthread_mutex_lock(&worker->lock);
    int applies = worker_stop_applies(worker);
    struct agent_order stop = worker->stop;
    pthread_mutex_unlock(&worker->lock);
    if (!applies) {
        return 0;
    }
    if (stop.kind == AGENT_LEAVE) {
        return ms_fail(err, MS_E_CANCELLED, "rank %u left: its worker was asked to end",
                       worker->rank);
    }
    return ms_fail(err, stop.code != 0 ? stop.code : MS_E_ABORTED, "%s", stop.text);
}

/* Waits for Start (want START) or the final Stop (want STOP). Orders of other generations are old;
 * the next Assign, which says that this one is over, is left for who comes after us. */
static int wait_order(struct worker *worker, enum agent_order_kind want, int64_t timeout_ms,
                      struct agent_order *ret)
{
    int64_t until = ms_mono_ms() + timeout_ms;
    for (;;) {
        int64_t left = timeout_ms < 0 ? -1 : until - ms_mono_ms();
        struct agent_order order;
        if ((timeout_ms >= 0 && left <= 0) || !agent_next(worker->agent, &order, left)) {
            return 0;
        }
        if (order.kind == AGENT_ASSIGN) {
            ms_log(MS_LOG_WARNING, "rank.superseded job=%" PRIu64 " by_job=%" PRIu64 ", ignoring",
                   worker->job_id, order.job);
            agent_unget(worker->agent, &order);
            order.assign = NULL;
            *ret = order;
            return 1;
        }
        int general = order.kind == AGENT_LOST || order.kind == AGENT_LEAVE;
        int current = order.generation == worker->generation;
        int hard_stop = order.kind == AGENT_STOP && !order.at_step;
        if (general || (current && (order.kind == want || hard_stop))) {
            if (order.kind == AGENT_STOP && order.at_step) {
                continue;
            }
            *ret = order;
            return 1;
        }
    }
}

/* Turns an order that is not the wished one into an error. */
static int order_error(const struct worker *worker, const struct agent_order *order,
                       struct ms_err *err)
{
    if (order->kind == AGENT_LEAVE) {
        return ms_fail(err, MS_E_CANCELLED, "rank %u left: its worker was asked to end",
                       worker->rank);
    }
    if (order->kind == AGENT_ASSIGN) {
        return ms_fail(err, MS_E_ABORTED,
                       "the scheduler gave this node a rank of job %" PRIu64
                       " before it had let go of rank %u",
                       order->job, worker->rank);
    }
    return ms_fail(err, order->code != 0 ? order->code : MS_E_ABORTED, "%s", order->text);
}

static int run_rank(struct worker *worker, struct train *train, struct train_result *result,
                    struct ms_err *err)
{
    struct train_info info;
    struct agent_order order;
    int64_t begun = ms_mono_ms();
    int rc = train_prepare(train, &info, err);
    if (rc < 0) {
        return rc;
    }
    char peak[32];
    ms_log(MS_LOG_INFO,
           "rank.ready job=%" PRIu64 " generation=%" PRIu64 " rank=%u/%u steps=%" PRIu64
           " threads=%d peak=%s reorders=%" PRIu64 " plan=%.12s prepared_ms=%" PRId64,
           worker->job_id, worker->generation, worker->rank, worker->world, info.steps_total,
           info.threads, MS_QUOTE(memory_format(info.peak_bytes, peak, sizeof(peak))),
           info.reorders, info.plan_sha256, ms_mono_ms() - begun);
    worker_send_ready(worker, &info);
    wait_order(worker, AGENT_START, -1, &order);
    if (order.kind != AGENT_START) {
        return order_error(worker, &order, err);
    }
    rc = train_run(train, result, err);
    if (rc == 0 && worker->cfg->on_result != NULL) {
        worker->cfg->on_result(worker->cfg->arg, train, result);
    }
    return rc;
}

/* A peer is gone: report it and let the scheduler, who knows why, speak first. */
static int hear_verdict(struct worker *worker, int code, struct ms_err *err)
{
    Ms__PeerReport report = MS__PEER_REPORT__INIT;
    struct agent_order order;
    char text[MS_TEXT_MAX];
    snprintf(text, sizeof(text), "%s", ms_err_text(err));
    report.job = worker->job_id;
    report.generation = worker->generation;
    report.rank = worker->rank;
    report.text = text;
    int peer = worker->train != NULL ? train_culprit(worker->train) : -1;
    if (peer >= 0) {
        report.peer = (uint32_t)peer;
        (void)agent_send(worker->agent, MS_MSG_PEER_REPORT, &report.base, NULL); /* Done follows */
    }
    int spoke = wait_order(worker, AGENT_STOP, PEER_VERDICT_MS, &order);
    /* the next Assign in its place says nothing about why: our own reason is the best there is */
    return spoke && order.kind != AGENT_ASSIGN ? order_error(worker, &order, err) : code;
}

/* After the own end: RankDone, then the scheduler's last word. */
static int end_rank(struct worker *worker, int rc, const struct train_result *result,
                    struct ms_err *err)
{
    struct agent_order order;
    struct ms_err verdict;
    if (rc == MS_E_CLOSED || rc == MS_E_TIMEOUT) {
        rc = hear_verdict(worker, rc, err);
    }
    if (stop_verdict(worker, &verdict) < 0) {
        *err = verdict; /* stopped from outside: its reason, and an acknowledgement */
        worker_send_done(worker, verdict.code, verdict.text, result);
        return verdict.code;
    }
    worker_send_done(worker, rc, rc < 0 ? ms_err_text(err) : "", result);
    if (rc == 0) {
        ms_log(MS_LOG_INFO,
               "rank.done job=%" PRIu64 " rank=%u steps=%" PRIu64 " seconds=%.1f weights_sha256=%s",
               worker->job_id, worker->rank, result->steps, result->seconds,
               result->weights_sha256);
    } else {
        /* whoever submitted the job is told; whoever keeps the node need not act */
        ms_log(MS_LOG_WARNING, "rank.failed job=%" PRIu64 " rank=%u reason=%s", worker->job_id,
               worker->rank, MS_QUOTE(ms_err_text(err)));
    }
    wait_order(worker, AGENT_STOP, -1, &order);
    if (order.kind == AGENT_STOP && order.code == 0) {
        return rc;
    }
    /* without a scheduler, a peer that is gone is only the first who noticed */
    return rc < 0 && order.kind != AGENT_LOST ? rc : order_error(worker, &order, err);
}

/* Nothing is said about the rank: it is lost before its start, with the node, and placed anew. */
static void give_up_node(struct worker *worker, const struct ms_err *err)
{
    worker->is_unfit = 1;
    ms_log(MS_LOG_ERR, "rank.not_begun job=%" PRIu64 " rank=%u reason=%s", worker->job_id,
           worker->rank, MS_QUOTE(ms_err_text(err)));
}

/* oneDNN takes one instruction set for the life of a process. One that has another one from a job
 * before cannot serve this job: the next process can. It stays until then, for whoever waited for
 * that job's end comes for its results. */
static int fix_isa(struct worker *worker, const char *isa, struct ms_err *err)
{
    int rc = plan_set_isa(isa, err);
    pthread_mutex_lock(&worker->lock);
    worker->renews = worker->cfg->mode == WORKER_STANDING && rc == MS_E_REFUSED;
    pthread_mutex_unlock(&worker->lock);
    return rc;
}

int worker_serve(struct worker *worker, const Ms__Assign *assign, struct ms_err *err)
{
    struct train_result result = {0};
    struct job *job = malloc(sizeof(*job));
    struct mesh_member *members = make_members(assign);
    struct train *train = NULL;
    SSL_CTX *tls = worker_tls(worker); /* one set of certificates for the life of a rank */
    int rc = open_log(worker, assign->job_tag, err);
    if (rc == 0 && (job == NULL || members == NULL)) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for job %" PRIu64, assign->job);
    }
    if (rc < 0 && worker->cfg->mode == WORKER_STANDING) { /* the node's trouble, not the job's */
        give_up_node(worker, err);
    }
    if (rc == 0) {
        rc = job_parse((const char *)assign->job_json.data, assign->job_json.len, "the job", NULL,
                       NULL, 0, 0, job, err);
    }
    if (rc == 0) {
        rc = fix_isa(worker, assign->isa, err);
    }
    if (rc == 0) {
        struct train_config cfg = {.job = job,
                                   .job_id = assign->job,
                                   .generation = assign->generation,
                                   .rank = (int)assign->rank,
                                   .world = (int)assign->world_size,
                                   .members = members,
                                   .listener = worker->listener,
                                   .tls = tls,
                                   .peer_timeout_ms = (int)worker->cfg->peer_timeout_ms,
                                   .force_remote = worker->cfg->force_remote,
                                   .isa = assign->isa,
                                   .run_dir = worker->run_dir,
                                   .log_fd = worker->log_fd,
                                   .on_progress = worker_on_progress,
                                   .on_wait = worker_on_wait,
                                   .arg = worker};
        memcpy(cfg.token, assign->token.data, sizeof(cfg.token));
        comm_listener_resume(worker->listener);
        comm_listener_set_tls(worker->listener, tls);
        train = train_create(&cfg);
        set_train(worker, train);
        rc = train != NULL ? run_rank(worker, train, &result, err)
                           : ms_fail(err, MS_E_NOMEM, "no memory for job %" PRIu64, assign->job);
    }
    if (!worker->is_unfit) {
        rc = end_rank(worker, rc, &result, err);
    }
    set_train(worker, NULL);
    train_destroy(train);
    close_log(worker, rc < 0 ? ms_err_text(err) : "");
    SSL_CTX_free(tls);
    free(members);
    free(job);
    return rc;
}
