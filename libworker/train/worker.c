/* worker.c - the life of a node: register, take a rank, train, give it back */
#include "libworker/train/worker.h"

#include "libworker/agent/agent.h"
#include "libworker/comm/comm.h"
#include "libworker/plan/plan.h"
#include "libworker/train/memory.h"
#include "libworker/train/node.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PROGRESS_MS = 200, /* what people watch: five a second are enough */
    PEER_VERDICT_MS =
        1000 /* a peer is gone: the scheduler's word on who and why comes before ours */
};

struct worker {
    const struct worker_config *cfg;
    struct agent *agent;
    struct comm_listener *listener;
    struct node_identity identity;

    pthread_mutex_t lock; /* guards train against on_stop */
    struct train *train;
    uint64_t generation;
    struct agent_order stop; /* the hard stop, leave or loss that came, once stopped is set */
    int stopped;
    struct agent_order end; /* TERM, or lost, once ending is set: whatever Stop follows, this */
    int ending;             /* node ends after the job in hand */

    /* of the job in hand */
    uint64_t job_id;
    uint32_t rank, world;
    char run_dir[MS_PATH_MAX + 1];
    char log_path[MS_PATH_MAX + 32];
    int log_fd;
    int64_t progress_ms;
    enum train_phase last_phase;
};

static pthread_mutex_t leave_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next two */
static struct agent *leave_agent;                              /* of the worker_run that runs */
static int leave_asked;

void worker_leave(void)
{
    pthread_mutex_lock(&leave_lock);
    leave_asked = 1;
    if (leave_agent != NULL) {
        agent_leave(leave_agent);
    }
    pthread_mutex_unlock(&leave_lock);
}

static void heed_leave(struct agent *agent)
{
    pthread_mutex_lock(&leave_lock);
    leave_agent = agent;
    if (agent != NULL && leave_asked) { /* a TERM that was faster than we */
        agent_leave(agent);
    }
    leave_asked = leave_asked && agent != NULL;
    pthread_mutex_unlock(&leave_lock);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- orders that interrupt (agent's thread) ---- */

/* The hard stop that came concerns the generation in hand. Under the lock. */
static int stop_applies(const struct worker *worker)
{
    const struct agent_order *stop = &worker->stop;
    return worker->stopped && (stop->kind != AGENT_STOP || stop->generation == 0 ||
                               stop->generation == worker->generation);
}

static void abort_train(struct worker *worker)
{
    if (worker->train != NULL && stop_applies(worker)) {
        train_abort(worker->train, worker->stop.kind == AGENT_LEAVE
                                       ? "this worker was asked to leave"
                                       : worker->stop.text);
    }
}

static void on_stop(void *arg, const struct agent_order *order)
{
    struct worker *worker = arg;
    pthread_mutex_lock(&worker->lock);
    if (order->kind == AGENT_STOP && order->at_step) {
        if (worker->train != NULL) {
            train_stop_at_step(worker->train);
        }
    } else {
        worker->stop = *order;
        worker->stopped = 1;
        if (order->kind != AGENT_STOP && !worker->ending) {
            worker->end = *order;
            worker->ending = 1;
        }
        abort_train(worker);
    }
    pthread_mutex_unlock(&worker->lock);
}

static void job_folder(const struct worker *worker, uint64_t job, char *buf, size_t size)
{
    if (worker->cfg->mode == WORKER_STANDING) {
        snprintf(buf, size, "%s/%" PRIu64, worker->cfg->run_dir, job);
    } else {
        snprintf(buf, size, "%s", worker->cfg->run_dir);
    }
}

static int find_log(void *arg, uint64_t job, uint32_t rank, char *buf, size_t size)
{
    struct worker *worker = arg;
    char folder[MS_PATH_MAX + 1];
    job_folder(worker, job, folder, sizeof(folder));
    if (folder[0] == '\0') {
        return 0;
    }
    snprintf(buf, size, "%s/worker_%u.log", folder, rank);
    return access(buf, R_OK) == 0;
}

/* ---- what people watch (training thread) ---- */

static const char *const phase_names[] = {
    [TRAIN_PREPARING] = "preparing",
    [TRAIN_TRAINING] = "training",
    [TRAIN_EVALUATING] = "evaluating",
    [TRAIN_SAVING] = "saving",
};
static const enum agent_phase agent_phases[] = {
    [TRAIN_PREPARING] = AGENT_PREPARING,
    [TRAIN_TRAINING] = AGENT_TRAINING,
    [TRAIN_EVALUATING] = AGENT_EVALUATING,
    [TRAIN_SAVING] = AGENT_SAVING,
};

static void send_progress(struct worker *worker, const struct train_progress *progress)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    char phase[16];
    snprintf(phase, sizeof(phase), "%s", phase_names[progress->phase]);
    msg.job = worker->job_id;
    msg.generation = worker->generation;
    msg.rank = worker->rank;
    msg.step = progress->step;
    msg.steps_total = progress->steps_total;
    msg.epoch = (uint32_t)progress->epoch;
    msg.epochs = (uint32_t)progress->epochs;
    msg.step_in_epoch = (uint32_t)progress->step_in_epoch;
    msg.steps_per_epoch = (uint32_t)progress->steps_per_epoch;
    msg.loss = (double)progress->loss;
    msg.samples_per_s = progress->samples_per_s;
    msg.step_ms = progress->step_ms;
    msg.comm_wait_ms = progress->comm_wait_ms;
    msg.phase = phase;
    msg.has_eval = progress->has_eval;
    msg.eval_loss = progress->eval_loss;
    msg.accuracy = progress->accuracy;
    (void)agent_send(worker->agent, MS_MSG_PROGRESS, &msg.base, NULL); /* the next one tells more */
}

static void on_progress(void *arg, const struct train_progress *progress)
{
    struct worker *worker = arg;
    agent_set_phase(worker->agent, agent_phases[progress->phase], progress->step);
    if (worker->cfg->on_progress != NULL) {
        worker->cfg->on_progress(worker->cfg->arg, progress);
    }
    if (worker->rank != 0) {
        return;
    }
    int64_t now = now_ms();
    int must = progress->has_eval || progress->phase != worker->last_phase ||
               progress->step == progress->steps_total ||
               progress->step_in_epoch == progress->steps_per_epoch;
    if (must || now - worker->progress_ms >= PROGRESS_MS) {
        worker->progress_ms = now;
        worker->last_phase = progress->phase;
        send_progress(worker, progress);
    }
}

/* ---- one rank ---- */

static int open_log(struct worker *worker, struct ms_err *err)
{
    const struct worker_config *cfg = worker->cfg;
    job_folder(worker, worker->job_id, worker->run_dir, sizeof(worker->run_dir));
    worker->log_fd = STDOUT_FILENO;
    worker->log_path[0] = '\0';
    if (worker->run_dir[0] == '\0') {
        return 0;
    }
    if (mkdir(worker->run_dir, 0755) != 0 && errno != EEXIST) {
        return ms_fail_errno(err, MS_E_IO, "cannot make the run directory %s", worker->run_dir);
    }
    snprintf(worker->log_path, sizeof(worker->log_path), "%s/worker_%u.log", worker->run_dir,
             worker->rank);
    if (!cfg->log_to_file) {
        return 0;
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

static void send_ready(struct worker *worker, const struct train_info *info)
{
    Ms__RankReady msg = MS__RANK_READY__INIT;
    char plan[MS_SHA256_HEX];
    memcpy(plan, info->plan_sha256, sizeof(plan));
    msg.job = worker->job_id;
    msg.generation = worker->generation;
    msg.rank = worker->rank;
    msg.plan_sha256 = plan;
    msg.log_path = worker->log_path;
    msg.steps_total = info->steps_total;
    msg.peak_bytes = info->peak_bytes;
    msg.steps_per_epoch = (uint32_t)info->steps_per_epoch;
    msg.epochs = (uint32_t)info->epochs;
    struct ms_err err;
    if (agent_send(worker->agent, MS_MSG_RANK_READY, &msg.base, &err) < 0) {
        ms_log(MS_LOG_ERR, "worker.ready_not_sent reason=\"%s\"", err.text);
    }
}

static void send_done(struct worker *worker, int code, const char *text,
                      const struct train_result *result)
{
    Ms__RankDone msg = MS__RANK_DONE__INIT;
    char reason[MS_TEXT_MAX];
    char weights[MS_SHA256_HEX];
    char plan[MS_SHA256_HEX];
    snprintf(reason, sizeof(reason), "%s", text);
    memcpy(weights, result->weights_sha256, sizeof(weights));
    memcpy(plan, result->plan_sha256, sizeof(plan));
    msg.job = worker->job_id;
    msg.generation = worker->generation;
    msg.rank = worker->rank;
    msg.code = code;
    msg.text = reason;
    msg.steps = result->steps;
    msg.weights_sha256 = weights;
    msg.plan_sha256 = plan;
    msg.seconds = result->seconds;
    msg.log_path = worker->log_path;
    msg.stopped = result->stopped;
    struct ms_err err;
    if (agent_send(worker->agent, MS_MSG_RANK_DONE, &msg.base, &err) < 0) {
        ms_log(MS_LOG_ERR, "worker.done_not_sent reason=\"%s\"", err.text);
    }
}

static void set_train(struct worker *worker, struct train *train)
{
    pthread_mutex_lock(&worker->lock);
    worker->train = train;
    abort_train(worker); /* a Stop that was faster than we */
    pthread_mutex_unlock(&worker->lock);
}

/* The hard stop that interrupted us, if one did: its code (never 0) and text. */
static int stop_verdict(struct worker *worker, struct ms_err *err)
{
    pthread_mutex_lock(&worker->lock);
    int applies = stop_applies(worker);
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

/* Waits for Start (want START) or the final Stop (want STOP). Orders of other generations are old.
 */
static int wait_order(struct worker *worker, enum agent_order_kind want, int64_t timeout_ms,
                      struct agent_order *ret)
{
    int64_t until = now_ms() + timeout_ms;
    for (;;) {
        int64_t left = timeout_ms < 0 ? -1 : until - now_ms();
        struct agent_order order;
        if ((timeout_ms >= 0 && left <= 0) || !agent_next(worker->agent, &order, left)) {
            return 0;
        }
        if (order.kind == AGENT_ASSIGN) {
            ms_log(MS_LOG_WARNING, "worker.assign_while_busy job=%" PRIu64 ", ignoring", order.job);
            ms_wire_free(&order.assign->base);
            continue;
        }
        int general = order.kind == AGENT_LOST || order.kind == AGENT_LEAVE;
        int current = order.generation == 0 || order.generation == worker->generation;
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
    return ms_fail(err, order->code != 0 ? order->code : MS_E_ABORTED, "%s", order->text);
}

static int run_rank(struct worker *worker, struct train *train, struct train_result *result,
                    struct ms_err *err)
{
    struct train_info info;
    struct agent_order order;
    int64_t begun = now_ms();
    int rc = train_prepare(train, &info, err);
    if (rc < 0) {
        return rc;
    }
    char peak[32];
    ms_log(MS_LOG_INFO,
           "rank.ready job=%" PRIu64 " generation=%" PRIu64 " rank=%u/%u steps=%" PRIu64
           " threads=%d peak=\"%s\" reorders=%" PRIu64 " plan=%.12s prepared_ms=%" PRId64,
           worker->job_id, worker->generation, worker->rank, worker->world, info.steps_total,
           info.threads, memory_format(info.peak_bytes, peak, sizeof(peak)), info.reorders,
           info.plan_sha256, now_ms() - begun);
    send_ready(worker, &info);
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
    snprintf(text, sizeof(text), "%s", err->text);
    report.job = worker->job_id;
    report.generation = worker->generation;
    report.rank = worker->rank;
    report.text = text;
    int peer = worker->train != NULL ? train_culprit(worker->train) : -1;
    if (peer >= 0) {
        report.peer = (uint32_t)peer;
        (void)agent_send(worker->agent, MS_MSG_PEER_REPORT, &report.base, NULL); /* Done follows */
    }
    if (wait_order(worker, AGENT_STOP, PEER_VERDICT_MS, &order)) {
        pthread_mutex_lock(&worker->lock);
        worker->stop = order;
        worker->stopped = 1;
        pthread_mutex_unlock(&worker->lock);
        return order_error(worker, &order, err);
    }
    return code;
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
        send_done(worker, verdict.code, verdict.text, result);
        return verdict.code;
    }
    send_done(worker, rc, rc < 0 ? err->text : "", result);
    if (rc == 0) {
        ms_log(MS_LOG_INFO,
               "rank.done job=%" PRIu64 " rank=%u steps=%" PRIu64 " seconds=%.1f weights_sha256=%s",
               worker->job_id, worker->rank, result->steps, result->seconds,
               result->weights_sha256);
    } else {
        ms_log(MS_LOG_ERR, "rank.failed job=%" PRIu64 " rank=%u reason=\"%s\"", worker->job_id,
               worker->rank, err->text);
    }
    wait_order(worker, AGENT_STOP, -1, &order);
    if (order.kind == AGENT_STOP && order.code == 0) {
        return rc;
    }
    /* without a scheduler, a peer that is gone is only the first who noticed */
    return rc < 0 && order.kind != AGENT_LOST ? rc : order_error(worker, &order, err);
}

static int serve(struct worker *worker, const Ms__Assign *assign, struct ms_err *err)
{
    struct train_result result = {0};
    struct job *job = malloc(sizeof(*job));
    struct mesh_member *members = make_members(assign);
    struct train *train = NULL;
    int rc = open_log(worker, err);
    if (rc == 0 && (job == NULL || members == NULL)) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for job %" PRIu64, assign->job);
    }
    if (rc == 0) {
        rc = job_parse((const char *)assign->job_json.data, assign->job_json.len, "the job", NULL,
                       NULL, 0, 0, job, err);
    }
    if (rc == 0) {
        rc = plan_set_isa(assign->isa, err);
    }
    if (rc == 0) {
        struct train_config cfg = {.job = job,
                                   .job_id = assign->job,
                                   .generation = assign->generation,
                                   .rank = (int)assign->rank,
                                   .world = (int)assign->world_size,
                                   .members = members,
                                   .listener = worker->listener,
                                   .tls = worker->cfg->tls,
                                   .peer_timeout_ms = (int)worker->cfg->peer_timeout_ms,
                                   .force_remote = worker->cfg->force_remote,
                                   .isa = assign->isa,
                                   .run_dir = worker->run_dir,
                                   .log_fd = worker->log_fd,
                                   .on_progress = on_progress,
                                   .arg = worker};
        memcpy(cfg.token, assign->token.data, sizeof(cfg.token));
        comm_listener_resume(worker->listener);
        train = train_create(&cfg);
        set_train(worker, train);
        rc = train != NULL ? run_rank(worker, train, &result, err)
                           : ms_fail(err, MS_E_NOMEM, "no memory for job %" PRIu64, assign->job);
    }
    rc = end_rank(worker, rc, &result, err);
    set_train(worker, NULL);
    train_destroy(train);
    close_log(worker, rc < 0 ? err->text : "");
    free(members);
    free(job);
    return rc;
}

static int take_assign(struct worker *worker, struct agent_order *order, struct ms_err *err)
{
    const Ms__Assign *assign = order->assign;
    pthread_mutex_lock(&worker->lock);
    worker->generation = assign->generation;
    worker->job_id = assign->job;
    worker->rank = assign->rank;
    worker->world = assign->world_size;
    worker->progress_ms = 0;
    worker->last_phase = TRAIN_PREPARING;
    pthread_mutex_unlock(&worker->lock);
    ms_log(MS_LOG_NOTICE, "rank.assigned job=%" PRIu64 " generation=%" PRIu64 " rank=%u/%u",
           assign->job, assign->generation, assign->rank, assign->world_size);
    int rc = serve(worker, assign, err);
    ms_wire_free(&order->assign->base);
    agent_release(worker->agent, worker->generation);
    pthread_mutex_lock(&worker->lock);
    worker->stopped = 0;
    pthread_mutex_unlock(&worker->lock);
    return rc;
}

/* ---- the node ---- */

/* After a job: true when TERM, or the loss of the scheduler, ended more than the job. */
static int node_ends(struct worker *worker, int *ret_rc, struct ms_err *err)
{
    pthread_mutex_lock(&worker->lock);
    int ending = worker->ending;
    struct agent_order end = worker->end;
    pthread_mutex_unlock(&worker->lock);
    if (ending) { /* to leave when asked to is a success, whatever became of the job */
        *ret_rc = end.kind == AGENT_LEAVE ? 0 : ms_fail(err, end.code, "%s", end.text);
    }
    return ending;
}

/* True when the node is done for good; *ret_rc is then the result. */
static int handle_order(struct worker *worker, struct agent_order *order, int *ret_rc,
                        struct ms_err *err)
{
    int one_job = worker->cfg->mode != WORKER_STANDING;
    switch (order->kind) {
    case AGENT_ASSIGN:
        *ret_rc = take_assign(worker, order, err);
        return one_job || node_ends(worker, ret_rc, err);
    case AGENT_LEAVE:
        *ret_rc = 0;
        return 1;
    case AGENT_LOST:
        *ret_rc = ms_fail(err, order->code, "%s", order->text);
        return 1;
    case AGENT_STOP: /* before a rank was ours: the cluster did not come together, or the job ended
                      */
        if (!one_job) {
            return 0;
        }
        *ret_rc = order->code == 0 ? 0 : ms_fail(err, order->code, "%s", order->text);
        return 1;
    case AGENT_START:
        break;
    }
    return 0;
}

static int live(struct worker *worker, struct ms_err *err)
{
    int rc = 0;
    struct agent_order order;
    do {
        agent_next(worker->agent, &order, -1);
    } while (!handle_order(worker, &order, &rc, err));
    return rc;
}

static int start_listener(struct worker *worker, struct ms_err *err)
{
    const struct worker_config *cfg = worker->cfg;
    struct comm_listener_config listener = {.bind_ip = worker->identity.ip,
                                            .port_min = cfg->port_min,
                                            .port_max = cfg->port_max,
                                            .tls = cfg->tls};
    return comm_listener_create(&listener, &worker->listener, err);
}

static int start_agent(struct worker *worker, struct ms_err *err)
{
    const struct worker_config *cfg = worker->cfg;
    Ms__Register node = MS__REGISTER__INIT;
    char *json = NULL;
    int rc = node_describe(&worker->identity, worker->listener, &node, err);
    if (rc == 0 && cfg->mode == WORKER_DYNAMIC) {
        json = job_format(cfg->job, &node.job_json.len);
        node.job_json.data = (uint8_t *)json;
        node.worker_num = cfg->worker_num;
    }
    struct agent_config agent = {.address = cfg->scheduler,
                                 .tls = cfg->tls,
                                 .software = cfg->software,
                                 .node = &node,
                                 .connect_timeout_ms = cfg->connect_timeout_ms,
                                 .lease_ms = cfg->lease_ms,
                                 .on_stop = on_stop,
                                 .log_path = find_log,
                                 .arg = worker};
    if (rc == 0) {
        rc = agent_create(&agent, &worker->agent, err);
    }
    free(json);
    return rc;
}

int worker_run(const struct worker_config *cfg, struct ms_err *err)
{
    struct worker worker = {.cfg = cfg, .log_fd = STDOUT_FILENO};
    pthread_mutex_init(&worker.lock, NULL);
    int rc = node_identify(cfg->scheduler, cfg->node_id, cfg->worker_ip, &worker.identity, err);
    if (rc == 0) {
        rc = start_listener(&worker, err);
    }
    if (rc == 0) {
        rc = start_agent(&worker, err);
    }
    if (rc == 0) {
        heed_leave(worker.agent);
        rc = live(&worker, err);
        heed_leave(NULL);
    }
    agent_destroy(worker.agent);
    comm_listener_destroy(worker.listener);
    pthread_mutex_destroy(&worker.lock);
    return rc;
}
