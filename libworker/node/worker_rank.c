/* worker_rank.c - what the trainer does for one rank: its log, its plan, training, the last word */
#include "libworker/node/worker_impl.h"

#include "libworker/host/memory.h"
#include "libworker/node/job_folders.h"
#include "libworker/node/node_offer.h"
#include "libworker/plan/plan.h"
#include "proto/clock.h"
#include "proto/file_write.h"
#include "proto/line_out.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
    int fd = ms_file_append(worker->log_path, O_WRONLY, 0644, err);
    if (fd < 0) {
        return ms_err_prefix(err, "the log of rank %u", worker->rank);
    }
    ms_line_drop_torn(fd);
    worker->log_fd = fd;
    return 0;
}

static void close_log(struct worker *worker, const char *last_words)
{
    if (worker->log_fd != STDOUT_FILENO && last_words[0] != '\0') {
        ms_line_say(worker->log_fd, "%s\n", last_words);
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

struct mesh_member *rank_members(const Ms__Assign *assign)
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

static struct host_offer *read_offers(const Ms__Assign *assign)
{
    struct host_offer *offers = calloc(assign->n_members, sizeof(*offers));
    for (size_t i = 0; offers != NULL && i < assign->n_members; i++) {
        offers[i] = node_offer_read(assign->members[i]->offer);
    }
    return offers;
}

void rank_set_train(struct worker *worker, struct train *train)
{
    pthread_mutex_lock(&worker->lock);
    worker->train = train;
    if (train != NULL && worker->life.at_step) {
        train_stop_at_step(train);
    }
    if (train != NULL && worker->life.state == LIFE_FINISHING) {
        train_abort(train, worker->life.verdict.text);
    }
    pthread_mutex_unlock(&worker->lock);
}

static int tell(struct worker *worker, enum life_event event)
{
    struct life_input input = {.event = event, .generation = worker->generation};
    return worker_tell(worker, &input); /* stale: an order was faster, and the duty is another */
}

/* What a peer did or suffered. It has a name, or is gone all the same; one that is at the next
 * generation already is gone from this one. */
static int is_of_a_peer(struct worker *worker, int rc)
{
    int is_gone = rc == MS_E_CLOSED || rc == MS_E_TIMEOUT;
    int is_elsewhere = rc == MS_E_ABORTED || rc == MS_E_UNREACHABLE;
    if (worker->train == NULL) {
        return is_gone;
    }
    return is_gone || (rc == MS_E_ABORTED && train_is_held(worker->train)) ||
           (is_elsewhere && train_culprit(worker->train) >= 0);
}

/* What is short here (descriptors, memory for a mesh) ends the mesh, not what the rank holds, which
 * may be the only copy: it holds like one that lost a peer, and says so. */
static int is_of_a_survivors_mesh(struct worker *worker, int rc)
{
    pthread_mutex_lock(&worker->lock);
    int survives = worker->life.recovers && worker->life.has_trained;
    pthread_mutex_unlock(&worker->lock);
    return survives && (rc == MS_E_IO || rc == MS_E_NOMEM) && worker->train != NULL &&
           train_is_of_mesh(worker->train, rc);
}

static int must_hold(struct worker *worker, int rc)
{
    return is_of_a_peer(worker, rc) || is_of_a_survivors_mesh(worker, rc);
}

/* rc: of a piece of work; a peer that is gone is told apart from what failed here. What life_apply
 * returns. */
static int tell_end(struct worker *worker, enum life_event good, int rc, const struct ms_err *err)
{
    struct life_input input = {.event = rc == 0                 ? good
                                        : must_hold(worker, rc) ? LIFE_PEER
                                                                : LIFE_FAILED,
                               .generation = worker->generation,
                               .code = rc < 0 ? rc : 0,
                               .text = rc < 0 ? ms_err_text(err) : NULL};
    return worker_tell(worker, &input);
}

/* ---- planning ---- */

void rank_begin(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock); /* of a rank that ended before it began a newer one comes */
    const Ms__Assign *assign = worker->assign;
    worker->generation = assign->generation;
    worker->has_served = 1;
    worker->job_id = assign->job;
    worker->rank = assign->rank;
    worker->world = assign->world_size;
    pthread_mutex_unlock(&worker->lock);
    worker->result = (struct train_result){0};
    worker->unsaved[0] = '\0';
    worker->log_path[0] = '\0';
    worker->begun_ms = ms_mono_ms();
    worker->progress_ms = 0;
    worker->last_phase = TRAIN_PREPARING;
    ms_log(MS_LOG_NOTICE, "rank.assigned job=%" PRIu64 " generation=%" PRIu64 " rank=%u/%u",
           worker->job_id, worker->generation, worker->rank, worker->world);
}

static int read_assign(struct worker *worker, struct ms_err *err)
{
    const Ms__Assign *assign = worker->assign;
    worker->job = malloc(sizeof(*worker->job));
    worker->members = rank_members(assign);
    worker->offers = read_offers(assign);
    if (worker->job == NULL || worker->members == NULL || worker->offers == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for job %" PRIu64, assign->job);
    }
    return 0;
}

/* With the job, or to this process. */
static int is_plan_given(const struct worker *worker, const Ms__Assign *assign)
{
    return assign->plan_from == MS_PLAN_GIVEN || worker->cfg->plan != NULL;
}

static int make_train(struct worker *worker, struct ms_err *err)
{
    const Ms__Assign *assign = worker->assign;
    struct train_config cfg = {.job = worker->job,
                               .job_id = assign->job,
                               .generation = assign->generation,
                               .job_tag = assign->job_tag,
                               .rank = (int)assign->rank,
                               .world = (int)assign->world_size,
                               .members = worker->members,
                               .offers = worker->offers,
                               .listener = worker->listener,
                               .tls = worker->rank_tls,
                               .peer_timeout_ms = (int)worker->cfg->peer_timeout_ms,
                               .is_plan_given = is_plan_given(worker, assign),
                               .stays_unbound = worker->cfg->stays_unbound,
                               .image_bytes = worker->cfg->image_bytes,
                               .force_remote = worker->cfg->force_remote,
                               .isa = assign->isa,
                               .run_dir = worker->run_dir,
                               .log_fd = worker->log_fd,
                               .log_path =
                                   worker->log_fd != STDOUT_FILENO ? worker->log_path : NULL,
                               .on_progress = worker_on_progress,
                               .on_saved = worker_on_saved,
                               .on_wait = worker_on_wait,
                               .on_note = worker_on_note,
                               .arg = worker};
    memcpy(cfg.token, assign->token.data, sizeof(cfg.token));
    comm_listener_resume(worker->listener);
    comm_listener_set_tls(worker->listener, worker->rank_tls);
    struct train *train = train_create(&cfg);
    if (train == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for job %" PRIu64, assign->job);
    }
    rank_set_train(worker, train);
    if (worker->cfg->on_rank != NULL) {
        worker->cfg->on_rank(worker->cfg->arg, train, worker->job, cfg.rank, cfg.world);
    }
    return 0;
}

/* The node's trouble, not the job's: nothing is said about the rank, which is lost before its
 * start, with the node, and placed anew. */
static void give_up_node(struct worker *worker, int rc, const struct ms_err *err)
{
    struct life_input input = {.event = LIFE_UNFIT,
                               .generation = worker->generation,
                               .code = rc,
                               .text = ms_err_text(err)};
    ms_log(MS_LOG_ERR, "rank.not_begun job=%" PRIu64 " rank=%u reason=%s", worker->job_id,
           worker->rank, MS_QUOTE(ms_err_text(err)));
    (void)worker_tell(worker, &input);
}

/* oneDNN takes one instruction set for the life of a process. One that has another one from a job
 * before cannot serve this job: the next process can. It stays until this rank is over, for whoever
 * waited for that job's end comes for its results. */
static void tell_isa(struct worker *worker, int rc, const struct ms_err *err)
{
    struct life_input input = {.event = LIFE_FAILED,
                               .generation = worker->generation,
                               .code = rc,
                               .anew = worker->cfg->mode == WORKER_STANDING && rc == MS_E_REFUSED,
                               .text = ms_err_text(err)};
    (void)worker_tell(worker, &input);
}

static int has_heard_plan(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    int has_plan = worker->plan != NULL;
    pthread_mutex_unlock(&worker->lock);
    return has_plan;
}

/* Where that is this rank's part. A plan that was quicker than we is everybody's. */
static int choose_plan(struct worker *worker, struct ms_err *err)
{
    const uint32_t from = worker->assign->plan_from;
    const int is_for_all = from == MS_PLAN_RANK_0 && worker->rank == 0 && !has_heard_plan(worker);
    if (from != MS_PLAN_OWN && !is_for_all) {
        const int is_rank_0s = from == MS_PLAN_RANK_0 && worker->rank != 0;
        worker->plan_from = is_rank_0s && worker->cfg->plan == NULL ? "from rank 0" : "given";
        return 0;
    }
    if (worker->cfg->plan != NULL) {
        worker->plan_from = "given";
        return is_for_all ? worker_send_plan(worker, worker->cfg->plan, err) : 0;
    }
    const char *text = NULL;
    worker->plan_from = "chosen here";
    int rc = train_choose(worker->train, &text, err);
    return rc == 0 && is_for_all ? worker_send_plan(worker, text, err) : rc;
}

/* A plan that is given says which instruction set. */
static int fix_isa(const struct worker *worker, struct ms_err *err)
{
    return is_plan_given(worker, worker->assign) ? 0 : plan_set_isa(worker->assign->isa, err);
}

void rank_plan(struct worker *worker)
{
    const Ms__Assign *assign = worker->assign;
    struct ms_err err = {0, ""};
    worker->rank_tls = worker_tls(worker);
    int rc = open_log(worker, assign->job_tag, &err);
    rc = rc == 0 ? read_assign(worker, &err) : rc;
    if (rc < 0 && worker->cfg->mode == WORKER_STANDING) {
        give_up_node(worker, rc, &err);
        return;
    }
    if (rc == 0) {
        rc = job_parse((const char *)assign->job_json.data, assign->job_json.len, "the job", NULL,
                       NULL, 0, 0, worker->job, &err);
    }
    int isa = rc == 0 ? fix_isa(worker, &err) : 0;
    if (isa < 0) {
        tell_isa(worker, isa, &err);
        return;
    }
    rc = rc == 0 ? make_train(worker, &err) : rc;
    rc = rc == 0 ? train_open(worker->train, &err) : rc;
    rc = rc == 0 ? choose_plan(worker, &err) : rc;
    (void)tell_end(worker, LIFE_MADE, rc, &err);
}

/* ---- with its peers ---- */

static const char *const state_words[] = {
    [MS_STATE_KEPT] = "kept", [MS_STATE_PULLED] = "pulled", [MS_STATE_CHECKPOINT] = "checkpoint"};

void rank_tell_mesh(struct worker *worker, int rc, const struct train_info *info,
                    const struct ms_err *err)
{
    char peak[32];
    if (rc == 0) {
        worker->ready_step = info->step;
        ms_log(MS_LOG_INFO,
               "rank.ready job=%" PRIu64 " generation=%" PRIu64 " rank=%u/%u steps=%" PRIu64
               " threads=%d peak=%s reorders=%" PRIu64 " plan=%.12s prepared_ms=%" PRId64
               " step=%" PRIu64 " state=%s state_rank=%d",
               worker->job_id, worker->generation, worker->rank, worker->world, info->steps_total,
               info->threads, MS_QUOTE(memory_format(info->peak_bytes, peak, sizeof(peak))),
               info->reorders, info->plan_sha256, ms_mono_ms() - worker->begun_ms, info->step,
               state_words[info->state_from], info->state_rank);
    }
    if (tell_end(worker, LIFE_MADE, rc, err) == LIFE_TAKEN && rc == 0) {
        worker_send_ready(worker, info);
    }
}

void rank_join(struct worker *worker)
{
    struct train_info info;
    struct ms_err err = {0, ""};
    const char *text = NULL;
    int rc = worker_find_plan(worker, &text, &err);
    rc = rc < 0 ? rc : train_obey(worker->train, text, &err);
    if (rc < 0) {
        tell_isa(worker, rc, &err);
        return;
    }
    if (tell(worker, LIFE_OBEYED) == LIFE_STALE) {
        return; /* ended meanwhile, or given up for another Assign */
    }
    worker_log_plan(worker);
    worker_write_plan(worker);
    rc = train_join(worker->train, &info, &err);
    rank_tell_mesh(worker, rc, &info, &err);
}

/* To the program whose process this is; of a rank that saves late once more. */
void worker_give_result(struct worker *worker, int rc)
{
    if (rc == 0 && worker->cfg->on_result != NULL) {
        worker->cfg->on_result(worker->cfg->arg, worker->train, &worker->result);
    }
}

void rank_train(struct worker *worker)
{
    struct ms_err err = {0, ""};
    int rc = train_run(worker->train, &worker->result, &err);
    worker_log_unsaved(worker, rc);
    worker_give_result(worker, rc);
    (void)tell_end(worker, LIFE_DONE, rc, &err);
}

/* ---- the end ---- */

static void log_end(const struct worker *worker, const struct life_verdict *verdict)
{
    const struct train_result *result = &worker->result;
    if (verdict->from_outside && verdict->code == 0) { /* it was away, and others made its end */
        ms_log(MS_LOG_NOTICE, "rank.over job=%" PRIu64 " rank=%u reason=%s", worker->job_id,
               worker->rank, MS_QUOTE(verdict->text));
    }
    if (verdict->from_outside || (verdict->code == 0 && result->unsaved < 0)) {
        return; /* the one is known, and the other was said */
    }
    if (verdict->code == 0) {
        ms_log(MS_LOG_INFO,
               "rank.done job=%" PRIu64 " rank=%u steps=%" PRIu64 " seconds=%.1f weights_sha256=%s",
               worker->job_id, worker->rank, result->steps, result->seconds,
               result->weights_sha256);
    } else {
        /* whoever submitted the job is told; whoever keeps the node need not act */
        ms_log(MS_LOG_WARNING, "rank.failed job=%" PRIu64 " rank=%u reason=%s", worker->job_id,
               worker->rank, MS_QUOTE(verdict->text));
    }
}

void rank_say(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    struct life_verdict verdict = worker->life.verdict;
    int leaves = worker->life.leaves || worker->life.anew;
    pthread_mutex_unlock(&worker->lock);
    worker_send_done(worker, &verdict, leaves);
    log_end(worker, &verdict);
    agent_rest(worker->agent, worker->generation);
    (void)tell(worker, LIFE_SAID);
}

/* Ranks that share a folder hold the same, and its disk may have room but once: rank 0 tries, and
 * of the others the last one that leaves it. */
static int is_last_here(struct worker *worker)
{
    const int is_last = worker->rank == 0 || worker->folder_fd < 0 ||
                        flock(worker->folder_fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (!is_last) {
        worker_on_note(worker, "another rank is in this folder still: it has to save the weights");
    }
    return is_last;
}

/* Its end is known by now: whoever goes on need not wait for this. */
static void leave_train(struct worker *worker, const struct life_verdict *verdict)
{
    pthread_mutex_lock(&worker->lock);
    const int leaves = worker->life.leaves && worker->life.leave_event != LIFE_UNFIT;
    const int is_unheard = worker->life.is_unheard;
    pthread_mutex_unlock(&worker->lock);
    if (!leaves || worker->train == NULL) {
        return;
    }
    if (verdict->code < 0 && verdict->from_outside) {
        train_leave(worker->train);
    }
    if (is_unheard && train_owes(worker->train) && is_last_here(worker)) {
        train_save_owed(worker->train);
    }
}

/* By the scheduler's last word. */
static void tell_train_end(struct worker *worker, const struct life_verdict *verdict)
{
    pthread_mutex_lock(&worker->lock);
    const int is_unheard = worker->life.is_unheard;
    pthread_mutex_unlock(&worker->lock);
    if (worker->train != NULL && verdict->code == 0 && !verdict->from_outside && !is_unheard) {
        train_tell_end(worker->train, &worker->result);
    }
}

void rank_clean(struct worker *worker)
{
    struct train *train = worker->train;
    struct life_verdict verdict = worker_verdict(worker);
    tell_train_end(worker, &verdict);
    leave_train(worker, &verdict);
    rank_set_train(worker, NULL);
    train_destroy(train);
    close_log(worker, verdict.code < 0 ? verdict.text : "");
    SSL_CTX_free(worker->rank_tls);
    worker->rank_tls = NULL;
    free(worker->members);
    worker->members = NULL;
    free(worker->offers);
    worker->offers = NULL;
    free(worker->job);
    worker->job = NULL;
    agent_release(worker->agent, worker->generation);
    (void)tell(worker, LIFE_OUT);
    worker->generation = 0; /* another database may give the same number again */
}
