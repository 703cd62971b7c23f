/* model_fetch.c - the model's results: who may have them, which node gives them, to whom */
#include "tests/sim/model.h"

#include <string.h>

typedef unsigned long long ull;

static bool may_fetch(const struct m_conn *conn, const struct m_job *job)
{
    return conn->is_admin || conn->who == job->who;
}

/* Weights are those of whoever saved them. */
void m_ask_fetch(struct model *m, struct m_ask *ask, const Ms__Fetch *msg)
{
    const struct m_job *job = m_job_find(m, msg->job);
    const bool is_savers = msg->what == MS_FETCH_WEIGHTS && msg->rank == 0 && job != NULL;
    ask->job = msg->job;
    ask->asked_rank = msg->rank;
    ask->rank = is_savers ? job->saver : msg->rank;
    ask->what = msg->what;
}

/* This node is to give it. */
static bool has_it(const struct model *m, const struct m_ask *ask, const struct m_job *job,
                   const struct m_node *node)
{
    return ask->what == MS_FETCH_SAVED
               ? m_home_is_away(m, job) && strcmp(job->home, node->id) == 0 &&
                     m_is_at_home(job, node)
               : strcmp(job->ranks[ask->rank].node, node->id) == 0 &&
                     !m_is_anothers(&job->ranks[ask->rank], node);
}

static bool is_nonsense(const struct m_ask *ask, const struct m_job *job)
{
    return ask->what < MS_FETCH_WEIGHTS || ask->what > MS_FETCH_SAVED ||
           (ask->what != MS_FETCH_LOG && ask->asked_rank != 0) || ask->rank >= job->workers;
}

/* Its release has an answer to a grant. */
static bool knows_fetch(const struct m_node *node)
{
    return node->level >= ms_wire_since(MS_MSG_FETCH_GRANT);
}

/* Asked now, by somebody who may, about a rank that this node had. */
static bool is_asked(struct model *m, const struct m_ask *ask, const struct m_node *node)
{
    const struct m_conn *asker = m_conn_find(m, ask->conn);
    const struct m_job *job = m_job_find(m, ask->job);
    return ask->type == MS_MSG_FETCH && ask->route == 0 && ask->conn == m->event->conn &&
           ask->id == m->event->id && asker != NULL && job != NULL && may_fetch(asker, job) &&
           !is_nonsense(ask, job) && ask->rank < job->n_ranks && has_it(m, ask, job, node) &&
           knows_fetch(node);
}

/* Whose certificate opens the file; "": he has none. */
static const char *asker_of(struct model *m, const struct m_ask *ask)
{
    const struct ms_peer *peer = &m_conn_find(m, ask->conn)->peer;
    return peer->cert_name[0] != '\0' ? peer->who.id : "";
}

void m_judge_fetch_grant(struct model *m, const struct m_conn *conn, const Ms__FetchGrant *msg)
{
    const struct m_node *node = m_node_of(m, conn);
    for (size_t i = 0; i < m->asks.n && node != NULL; i++) {
        struct m_ask *ask = &m->asks.at[i];
        if (is_asked(m, ask, node) && msg->job == ask->job && msg->rank == ask->rank &&
            msg->what == (ask->what == MS_FETCH_SAVED ? MS_FETCH_LOG : ask->what) &&
            strcmp(msg->principal, asker_of(m, ask)) == 0) {
            ask->route = msg->route;
            memcpy(ask->node, node->id, sizeof(ask->node));
            return;
        }
    }
    sim_fail(m->w,
             "model: node %s is to give result %u of job %llu rank %u to '%s', and nobody who may "
             "asked it for that",
             node != NULL ? node->id : "?", msg->what, (ull)msg->job, msg->rank, msg->principal);
}

/* The node that was asked answers now; NULL: it does not. */
static const Ms__FetchReady *ready_of(struct model *m, const struct m_ask *ask,
                                      const struct m_node **ret_node)
{
    const Ms__FetchReady *from = (const Ms__FetchReady *)m->event->msg;
    const struct m_conn *sender = m_conn_find(m, m->event->conn);
    *ret_node = sender != NULL ? m_node_of(m, sender) : NULL;
    return m->event->kind == SCHED_EV_MESSAGE && m->event->type == MS_MSG_FETCH_READY &&
                   *ret_node != NULL && ask->route != 0 && from->route == ask->route &&
                   strcmp((*ret_node)->id, ask->node) == 0
               ? from
               : NULL;
}

static bool is_alike(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

void m_judge_ticket(struct model *m, const struct m_ask *ask, const Ms__FetchTicket *msg)
{
    const struct m_node *node = NULL;
    const Ms__FetchReady *from = ready_of(m, ask, &node);
    const struct m_job *job = m_job_find(m, ask->job);
    bool has_ranks = job != NULL && !job->members_dropped && ask->rank < job->n_ranks;
    if (from == NULL || from->code < 0 || !is_alike(&from->token, &msg->token) ||
        strcmp(from->address, msg->address) != 0 || from->size != msg->size ||
        strcmp(from->cert_sha256, msg->cert_sha256) != 0 || strcmp(node->id, msg->node_id) != 0 ||
        strcmp(node->host_name, msg->host_name) != 0 ||
        strcmp(node->cert_name, msg->cert_name) != 0 ||
        (ask->what == MS_FETCH_SAVED
             ? !has_ranks && msg->log_path[0] != '\0'
             : strcmp(has_ranks ? job->ranks[ask->rank].log : "", msg->log_path) != 0)) {
        sim_fail(m->w,
                 "model: for result %u of job %llu rank %u a ticket names node %s (%s) and %s, "
                 "and node %s was asked",
                 ask->what, (ull)ask->job, ask->rank, msg->node_id, msg->cert_name, msg->log_path,
                 ask->node);
    }
}

/* Of what it was asked for, there, and before the node was. */
static bool saved_refusal_is_fair(struct model *m, const struct m_ask *ask, int32_t code)
{
    const struct m_job *job = m_job_find(m, ask->job);
    const struct m_node *node = m_node_find(m, job->home);
    const bool has_ranks = job->n_ranks > 0 && !job->members_dropped && job->state != JOB_QUEUED;
    const bool is_known = has_ranks && m_home_is_away(m, job);
    switch (code) {
    case MS_E_NOT_FOUND:
        return !is_known;
    case MS_E_UNSUPPORTED:
        return is_known && node != NULL && !knows_fetch(node);
    case MS_E_UNAVAILABLE:
        return is_known && node != NULL && node->conn == 0 && node->anew;
    case MS_E_UNREACHABLE:
        return is_known && (node == NULL || node->conn == 0 || !m_is_at_home(job, node));
    default:
        return code == MS_E_FULL;
    }
}

bool m_fetch_refusal_is_fair(struct model *m, const struct m_conn *conn, const struct m_ask *ask,
                             int32_t code)
{
    const struct m_job *job = m_job_find(m, ask->job);
    const struct m_node *node = NULL;
    const Ms__FetchReady *from = ready_of(m, ask, &node);
    if (from != NULL && (from->code < 0 || from->token.len != MS_TOKEN_LEN)) {
        return code == (from->code < 0 ? from->code : MS_E_PROTOCOL);
    }
    if (ask->route != 0) { /* the node was asked, and the job may be forgotten since */
        return m_log_refusal_is_fair(m, ask, code);
    }
    if (job == NULL) {
        return code == MS_E_NOT_FOUND;
    }
    if (!may_fetch(conn, job)) {
        return code == MS_E_REFUSED;
    }
    if (ask->what == MS_FETCH_SAVED && !is_nonsense(ask, job)) {
        return saved_refusal_is_fair(m, ask, code);
    }
    if (code == MS_E_UNSUPPORTED) {
        const struct m_node *old =
            ask->rank < job->n_ranks ? m_node_find(m, job->ranks[ask->rank].node) : NULL;
        return !is_nonsense(ask, job) && old != NULL && !knows_fetch(old);
    }
    return is_nonsense(ask, job) ? code == MS_E_INVALID : m_log_refusal_is_fair(m, ask, code);
}
