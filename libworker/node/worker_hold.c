/* worker_hold.c - a rank whose peer is gone waits for the scheduler's word, and goes on under
 * another generation */
#include "libworker/node/worker_impl.h"

#include "proto/clock.h"
#include "proto/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PEER_VERDICT_MS = 1000, /* the scheduler's word on who and why comes before ours */
    NAME_MAX_MS = 60000     /* between two lines about the same wait, at the most */
};

/* ---- holding ---- */

/* Of itself: no other rank is to blame for the end of its mesh. */
static void report(struct worker *worker, uint32_t peer, const char *why)
{
    Ms__PeerReport report = MS__PEER_REPORT__INIT;
    char text[MS_TEXT_MAX];
    snprintf(text, sizeof(text), "%s", why); /* messages have no const */
    report.job = worker->job_id;
    report.generation = worker->generation;
    report.rank = worker->rank;
    report.peer = peer;
    report.text = text;
    struct ms_err err;
    if (agent_send(worker->agent, MS_MSG_PEER_REPORT, &report.base, &err) < 0) {
        ms_log(MS_LOG_ERR, "worker.report_not_sent reason=%s", MS_QUOTE(err.text));
    }
}

static void name_wait(struct worker *worker, uint32_t peer, const char *why)
{
    char text[MS_ERR_TEXT_MAX];
    if (agent_is_away(worker->agent)) {
        snprintf(text, sizeof(text), "rank %u waits for the scheduler at %s, which is away",
                 worker->rank, worker->cfg->scheduler);
    } else if (peer == worker->rank) {
        snprintf(text, sizeof(text),
                 "rank %u holds what it has, and waits until the scheduler lets it try again: "
                 "%.250s",
                 worker->rank, why);
    } else {
        snprintf(text, sizeof(text),
                 "rank %u holds, and waits for a node to take the rank that is gone (msctl show, "
                 "or the scheduler's log, says who may): %.200s",
                 worker->rank, why);
    }
    worker_on_wait(worker, text);
}

/* Whoever is to take the place of the peer may be a machine that is started tomorrow. */
static void wait_for_word(struct worker *worker, uint32_t peer, const char *why)
{
    int64_t ms = PEER_VERDICT_MS;
    while (!worker_await_word(worker, ms)) {
        name_wait(worker, peer, why);
        ms = ms > NAME_MAX_MS / 2 ? NAME_MAX_MS : 2 * ms;
    }
}

void rank_hold(struct worker *worker)
{
    int culprit = train_culprit(worker->train);
    uint32_t peer = culprit >= 0 ? (uint32_t)culprit : worker->rank;
    pthread_mutex_lock(&worker->lock);
    struct life_verdict verdict = worker->life.verdict;
    int recovers = worker->life.recovers;
    pthread_mutex_unlock(&worker->lock);
    struct life_input end = {.event = LIFE_QUIET,
                             .generation = worker->generation,
                             .code = verdict.code,
                             .text = verdict.text};
    if (recovers || peer != worker->rank) {
        report(worker, peer, verdict.text);
    }
    if (recovers) {
        wait_for_word(worker, peer, verdict.text);
    } else if (!worker_await_word(worker, PEER_VERDICT_MS)) {
        (void)worker_tell(worker, &end);
    }
}

/* It was asked to stop after its step, and cannot make another one: that which it holds is it. Who
 * had stopped already, and has to save after all, is at work again. */
void rank_stop(struct worker *worker)
{
    struct ms_err err = {0, ""};
    pthread_mutex_lock(&worker->lock);
    const int is_asked = worker->life.saves;
    const int saves = worker->rank == 0 || is_asked;
    const int ends = worker->life.ends;
    pthread_mutex_unlock(&worker->lock);
    agent_stir(worker->agent);
    train_unhold(worker->train);
    if (ends) {
        train_skip_evaluation(worker->train);
    }
    int rc = train_stop_here(worker->train, is_asked, &worker->result, &err);
    worker_log_unsaved(worker, rc);
    worker_give_result(worker, worker->result.stopped ? MS_E_CANCELLED : rc);
    struct life_input end = {.event = rc == 0 ? LIFE_DONE : LIFE_FAILED,
                             .generation = worker->generation,
                             .saves = saves && worker->result.unsaved == 0,
                             .code = rc,
                             .text = rc < 0 ? ms_err_text(&err) : NULL};
    (void)worker_tell(worker, &end);
}

/* ---- going on ---- */

static int rejoin(struct worker *worker, struct mesh_member *members, SSL_CTX *tls,
                  struct train_info *info, struct ms_err *err)
{
    const Ms__Assign *assign = worker->assign;
    struct train_peers peers = {.members = members, .generation = assign->generation, .tls = tls};
    memcpy(peers.token, assign->token.data, sizeof(peers.token));
    if (members == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for job %" PRIu64, assign->job);
    }
    if (assign->world_size != worker->world) {
        return ms_fail(err, MS_E_REFUSED, "job %" PRIu64 " has %u ranks, and cannot go on with %u",
                       assign->job, worker->world, assign->world_size);
    }
    comm_listener_set_tls(worker->listener, tls);
    return train_rejoin(worker->train, &peers, info, err);
}

void rank_go_on(struct worker *worker, uint64_t generation)
{
    agent_release(worker->agent, worker->generation);
    worker->generation = generation;
}

void rank_come_back(struct worker *worker, uint64_t generation)
{
    struct life_input input = {.event = LIFE_PEER, .generation = generation, .code = MS_E_ABORTED};
    (void)worker_tell(worker, &input);
}

/* The rank goes on under the generation of the Assign in hand. */
void rank_pull(struct worker *worker)
{
    struct train_info info;
    struct ms_err err = {0, ""};
    struct mesh_member *members = rank_members(worker->assign);
    SSL_CTX *tls = worker_tls(worker);
    rank_go_on(worker, worker->assign->generation);
    worker->result = (struct train_result){0}; /* of an end before */
    worker->unsaved[0] = '\0';
    worker->begun_ms = ms_mono_ms();
    ms_log(MS_LOG_NOTICE, "rank.goes_on job=%" PRIu64 " generation=%" PRIu64 " rank=%u/%u",
           worker->job_id, worker->generation, worker->rank, worker->world);
    int rc = rejoin(worker, members, tls, &info, &err);
    free(worker->members); /* the mesh that knew them is gone */
    worker->members = members;
    SSL_CTX_free(worker->rank_tls);
    worker->rank_tls = tls;
    rank_set_train(worker, worker->train); /* what was asked of it since */
    rank_tell_mesh(worker, rc, &info, &err);
}
