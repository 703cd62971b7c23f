/* worker.c - the life of a node: register, take a rank, give it back, leave */
#include "libworker/node/worker_impl.h"

#include "libworker/comm/comm.h"
#include "libworker/node/job_folders.h"
#include "libworker/plan/plan.h"
#include "proto/clock.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLEAN_EVERY_MS = 24 * 3600 * 1000, CLEAN_SOON_MS = 5000 };

static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next three */
static struct worker *living;                                 /* of the worker_run that runs */
static int leave_asked;                                       /* of it, or of the next one */
static SSL_CTX *next_tls; /* came while nobody lived: of the next worker_run */

void worker_leave(void)
{
    pthread_mutex_lock(&life_lock);
    leave_asked = 1;
    if (living != NULL) {
        agent_leave(living->agent);
    }
    pthread_mutex_unlock(&life_lock);
}

int worker_must_leave(void)
{
    pthread_mutex_lock(&life_lock);
    int asked = leave_asked;
    pthread_mutex_unlock(&life_lock);
    return asked;
}

/* What was kept for it, if something was. Under life_lock. */
static void renew(struct worker *worker)
{
    SSL_CTX *tls = next_tls;
    next_tls = NULL;
    if (tls == NULL || worker->tls == NULL) { /* nothing new, or a plain worker */
        SSL_CTX_free(tls);
        return;
    }
    pthread_mutex_lock(&worker->lock);
    SSL_CTX_free(worker->tls);
    worker->tls = tls;
    pthread_mutex_unlock(&worker->lock);
    if (worker->agent != NULL) {
        agent_set_tls(worker->agent, tls);
    }
}

void worker_set_tls(SSL_CTX *tls)
{
    SSL_CTX_up_ref(tls);
    pthread_mutex_lock(&life_lock);
    SSL_CTX_free(next_tls);
    next_tls = tls;
    if (living != NULL) {
        renew(living);
    }
    pthread_mutex_unlock(&life_lock);
}

/* From here on TERM and new certificates reach the worker. */
static void live_as(struct worker *worker)
{
    pthread_mutex_lock(&life_lock);
    living = worker;
    renew(worker); /* what was faster than we */
    if (leave_asked) {
        agent_leave(worker->agent);
    }
    pthread_mutex_unlock(&life_lock);
}

/* Whoever asked it to leave got what he wanted, unless it lives on as another process. */
static void live_no_more(int is_anew)
{
    pthread_mutex_lock(&life_lock);
    living = NULL;
    leave_asked = leave_asked && is_anew;
    pthread_mutex_unlock(&life_lock);
}

/* Its certificates before it has an agent: those of its configuration, or newer ones. */
static void take_tls(struct worker *worker)
{
    worker->tls = worker->cfg->tls;
    if (worker->tls != NULL) {
        SSL_CTX_up_ref(worker->tls);
    }
    pthread_mutex_lock(&life_lock);
    renew(worker);
    pthread_mutex_unlock(&life_lock);
}

SSL_CTX *worker_tls(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    SSL_CTX *tls = worker->tls;
    if (tls != NULL) {
        SSL_CTX_up_ref(tls);
    }
    pthread_mutex_unlock(&worker->lock);
    return tls;
}

/* ---- orders that interrupt (agent's thread) ---- */

int worker_stop_applies(const struct worker *worker)
{
    const struct agent_order *stop = &worker->stop;
    return worker->stopped && (stop->kind != AGENT_STOP || stop->generation == worker->generation);
}

void worker_abort_train(struct worker *worker)
{
    if (worker->train != NULL && worker_stop_applies(worker)) {
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
        worker_abort_train(worker);
    }
    pthread_mutex_unlock(&worker->lock);
}

static void on_hang(void *arg, const char *text)
{
    const struct worker *worker = arg;
    if (worker->cfg->on_hang != NULL) {
        worker->cfg->on_hang(text);
    }
}

void worker_job_folder(const struct worker *worker, uint64_t job, char *buf, size_t size)
{
    if (worker->cfg->mode == WORKER_STANDING) {
        snprintf(buf, size, "%s/%" PRIu64, worker->cfg->run_dir, job);
    } else {
        snprintf(buf, size, "%s", worker->cfg->run_dir);
    }
}

int worker_folder_is_of(const struct worker *worker, const char *folder, const char *job_tag)
{
    return worker->cfg->mode != WORKER_STANDING || job_folder_is_of(folder, job_tag);
}

static int find_log(void *arg, const Ms__LogRead *request, char *buf, size_t size)
{
    struct worker *worker = arg;
    char folder[MS_PATH_MAX + 1];
    worker_job_folder(worker, request->job, folder, sizeof(folder));
    if (folder[0] == '\0' || !worker_folder_is_of(worker, folder, request->job_tag)) {
        return 0;
    }
    snprintf(buf, size, "%s/worker_%u.log", folder, request->rank);
    return access(buf, R_OK) == 0;
}

/* ---- the node ---- */

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
    int rc = worker_serve(worker, assign, err);
    ms_wire_free(&order->assign->base);
    agent_release(worker->agent, worker->generation);
    pthread_mutex_lock(&worker->lock);
    int is_next = worker->stop.kind == AGENT_STOP && worker->stop.generation > worker->generation;
    worker->stopped = worker->stopped && is_next; /* that rank waits, and is stopped already */
    pthread_mutex_unlock(&worker->lock);
    return rc;
}

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

/* After a job that needs another process. */
static int node_renews(struct worker *worker, int *ret_rc)
{
    char text[MS_TEXT_MAX];
    if (worker->renews) {
        snprintf(text, sizeof(text),
                 "begins anew: it has served with the instruction set %s, and job %" PRIu64
                 " needs another one",
                 plan_isa(), worker->job_id);
        ms_log(MS_LOG_NOTICE, "worker.renews reason=%s", MS_QUOTE(text));
        agent_farewell(worker->agent, text, 1);
        *ret_rc = WORKER_ANEW;
    }
    return worker->renews;
}

/* The result of a worker of one job: who lost a peer, or was left alone by one, has a job that
 * failed. A scheduler that is gone is told apart. */
static int one_job_result(struct worker *worker, int rc, struct ms_err *err)
{
    static const int echoes[] = {MS_E_CLOSED,      MS_E_TIMEOUT,  MS_E_ABORTED,
                                 MS_E_UNREACHABLE, MS_E_PROTOCOL, MS_E_TLS};
    pthread_mutex_lock(&worker->lock);
    int is_scheduler_gone = worker->ending && worker->end.kind == AGENT_LOST;
    pthread_mutex_unlock(&worker->lock);
    for (size_t i = 0; i < MS_ARRAY_SIZE(echoes) && !is_scheduler_gone; i++) {
        if (rc == echoes[i]) {
            rc = ms_err_recode(err, MS_E_FAILED);
        }
    }
    return rc;
}

/* True when the node is done for good; *ret_rc is then the result. */
static int handle_order(struct worker *worker, struct agent_order *order, int *ret_rc,
                        struct ms_err *err)
{
    int one_job = worker->cfg->mode != WORKER_STANDING;
    switch (order->kind) {
    case AGENT_ASSIGN:
        *ret_rc = take_assign(worker, order, err);
        if (worker->is_unfit) { /* else it would take job after job, and fail each */
            agent_farewell(worker->agent, ms_err_text(err), 0);
            return 1;
        }
        if (!one_job) {
            return node_ends(worker, ret_rc, err) || node_renews(worker, ret_rc);
        }
        *ret_rc = one_job_result(worker, *ret_rc, err);
        return 1;
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
        *ret_rc = one_job_result(worker, *ret_rc, err);
        return 1;
    case AGENT_START:
        break;
    }
    return 0;
}

static void on_folder(void *arg, uint64_t job, const char *text)
{
    (void)arg;
    ms_log(MS_LOG_NOTICE, "job_folder.old job=%" PRIu64 " reason=%s", job, MS_QUOTE(text));
}

static void clean_folders(const struct worker *worker)
{
    const struct job_folders_rule rule = {worker->cfg->keep_days, worker->cfg->keep_count};
    if (worker->cfg->mode == WORKER_STANDING) {
        job_folders_clean(worker->cfg->run_dir, &rule, (int64_t)time(NULL), on_folder, NULL);
    }
}

/* Folders are looked through when no job has come for a moment, for the next one must not wait for
 * that; where job follows job between two of them; and once a day. */
static int live(struct worker *worker, struct ms_err *err)
{
    int rc = 0;
    int over = 0;
    struct agent_order order;
    int64_t clean_ms = ms_mono_ms() + CLEAN_SOON_MS;
    while (!over) {
        int64_t now = ms_mono_ms();
        if (now >= clean_ms) {
            clean_folders(worker);
            clean_ms = now + CLEAN_EVERY_MS;
        }
        if (agent_next(worker->agent, &order, clean_ms - now)) {
            over = handle_order(worker, &order, &rc, err);
            now = ms_mono_ms();
            clean_ms = clean_ms < now + CLEAN_SOON_MS ? clean_ms : now + CLEAN_SOON_MS;
        }
    }
    return rc;
}

static int start_listener(struct worker *worker, struct ms_err *err)
{
    const struct worker_config *cfg = worker->cfg;
    struct comm_listener_config listener = {.bind_ip = worker->identity.ip,
                                            .port_min = cfg->port_min,
                                            .port_max = cfg->port_max,
                                            .tls = worker->tls};
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
                                 .tls = worker->tls,
                                 .software = cfg->software,
                                 .node = &node,
                                 .connect_timeout_ms = cfg->connect_timeout_ms,
                                 .lease_ms = cfg->lease_ms,
                                 .patience_ms = cfg->patience_ms,
                                 .is_standing = cfg->mode == WORKER_STANDING,
                                 .on_stop = on_stop,
                                 .on_hang = on_hang,
                                 .log_path = find_log,
                                 .on_fetch = worker_on_fetch,
                                 .arg = worker};
    if (rc == 0) {
        rc = agent_create(&agent, &worker->agent, err);
    }
    free(json);
    return rc;
}

int worker_run(const struct worker_config *cfg, struct ms_err *err)
{
    struct worker worker = {.cfg = cfg, .log_fd = STDOUT_FILENO, .folder_fd = -1};
    pthread_mutex_init(&worker.lock, NULL);
    take_tls(&worker);
    int rc = node_identify(cfg->scheduler, cfg->node_id, cfg->worker_ip, &worker.identity, err);
    if (rc == 0) {
        rc = start_listener(&worker, err);
    }
    if (rc == 0) {
        rc = start_agent(&worker, err);
    }
    if (rc == 0) {
        rc = worker_start_serving(&worker, err);
    }
    if (rc == 0) {
        live_as(&worker);
        rc = live(&worker, err);
        live_no_more(rc == WORKER_ANEW);
    }
    worker_stop_serving(&worker);
    agent_destroy(worker.agent);
    comm_listener_destroy(worker.listener);
    SSL_CTX_free(worker.tls);
    pthread_mutex_destroy(&worker.lock);
    return rc;
}
