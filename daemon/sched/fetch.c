/* fetch.c - results of a job for its owner: judge, ask the node, hand on where and how
 *
 * The bytes go from the node to the client; the scheduler only says who may, and what each needs to
 * know the other by. The token is the node's: it is worth nothing anywhere else. */
#include "daemon/sched/may.h"
#include "daemon/sched/stamp.h"
#include "daemon/sched/state.h"

/* True if the request was answered here. */
static bool fetch_refused(struct sched *s, const struct conn *conn, uint32_t frame_id,
                          const Ms__Fetch *msg)
{
    const struct job *job = job_find(s, msg->job);
    unsigned long long id = msg->job;
    if (job == NULL) {
        emit_error(s, conn->id, frame_id, MS_E_NOT_FOUND,
                   "job %llu does not exist: msctl jobs --all lists them", id);
    } else if (!may(&conn->peer.who, MAY_FETCH, job->owner)) {
        emit_log(s, MS_LOG_WARNING, "fetch.refused job=%llu name=%s address=%s", id,
                 emit_quote(s, conn->peer.who.id), emit_quote(s, conn->peer.address));
        emit_error(s, conn->id, frame_id, MS_E_REFUSED,
                   "job %llu belongs to %s and you are %s: only its owner or an admin may fetch "
                   "its results",
                   id, job->owner, conn->peer.who.id);
    } else if (msg->what < MS_FETCH_WEIGHTS || msg->what > MS_FETCH_SAVED) {
        emit_error(s, conn->id, frame_id, MS_E_INVALID,
                   "result %u of job %llu is none that this release knows: weights, metrics, logs "
                   "and checkpoints can be fetched",
                   msg->what, id);
    } else if (msg->what != MS_FETCH_LOG && msg->rank != 0) {
        emit_error(s, conn->id, frame_id, MS_E_INVALID,
                   "the %s of job %llu are rank 0's, not rank %u's", result_name(msg->what), id,
                   msg->rank);
    } else {
        return false;
    }
    return true;
}

/* Of a job that was stopped without rank 0 they lie where another one has saved them. */
static uint32_t rank_that_has(const struct sched *s, const Ms__Fetch *msg)
{
    const struct job *job = job_find(s, msg->job);
    return msg->what == MS_FETCH_WEIGHTS && job->run != NULL ? job->run->saver : msg->rank;
}

void on_fetch(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Fetch *msg = (const Ms__Fetch *)event->msg;
    int code = 0;
    const char *text = NULL;
    if (fetch_refused(s, conn, event->id, msg)) {
        return;
    }
    const uint32_t rank = rank_that_has(s, msg);
    struct node *node = result_holder(s, msg->job, rank, msg->what, &code, &text);
    if (node == NULL) {
        emit_error(s, conn->id, event->id, code, "%s", text);
        return;
    }
    if (node->info.level < ms_wire_since(MS_MSG_FETCH_GRANT)) {
        emit_error(s, conn->id, event->id, MS_E_UNSUPPORTED,
                   "%s of job %llu rank %u: node %s on host %.64s runs a release that hands no "
                   "results out (0.1): copy by hand; %s",
                   result_name(msg->what), (unsigned long long)msg->job, rank, node->info.node_id,
                   node->info.host_name, result_words(s, job_find(s, msg->job), rank, msg->what));
        return;
    }
    struct route *route = route_open(s, conn, event->id, node, msg->job, rank);
    if (route == NULL) {
        return;
    }
    route->fetch = msg->what;
    Ms__FetchGrant grant = MS__FETCH_GRANT__INIT;
    grant.route = route->number;
    grant.job = msg->job;
    grant.rank = rank;
    grant.what = msg->what == MS_FETCH_SAVED ? MS_FETCH_LOG : msg->what; /* beside which they lie */
    grant.job_tag = (char *)job_tag(s, job_find(s, msg->job));
    grant.asker = conn->peer.who.id;
    grant.admin = (conn->peer.who.roles & MS_ROLE_ADMIN) != 0;
    grant.principal = conn->peer.cert_name[0] != '\0' ? conn->peer.who.id : (char *)"";
    emit_log(s, MS_LOG_INFO, "fetch.granted job=%llu rank=%u what=%s name=%s node=%s",
             (unsigned long long)msg->job, rank, result_name(msg->what),
             emit_quote(s, conn->peer.who.id), node->info.node_id);
    emit_send(s, node->conn->id, MS_MSG_FETCH_GRANT, 0, &grant.base);
}

void on_fetch_ready(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__FetchReady *msg = (const Ms__FetchReady *)event->msg;
    struct route *route = route_find(s, msg->route);
    if (route == NULL || route->node != conn->node || route->fetch == 0) {
        return; /* the asker is gone, or had to be told that it takes too long */
    }
    if (msg->code < 0 || msg->token.len != MS_TOKEN_LEN) {
        route_fail(s, route, msg->code < 0 ? msg->code : MS_E_PROTOCOL,
                   emit_text(s, "on host %.64s says: %.200s", route->node->info.host_name,
                             msg->code < 0 ? msg->text : "nothing"));
        return;
    }
    const struct job *job = job_find(s, route->job);
    const struct run *run = job != NULL ? job->run : NULL;
    Ms__FetchTicket ticket = MS__FETCH_TICKET__INIT;
    ticket.node_id = route->node->info.node_id;
    ticket.host_name = route->node->info.host_name;
    ticket.address = msg->address;
    ticket.cert_name = route->node->info.cert_name;
    ticket.cert_sha256 = msg->cert_sha256;
    ticket.token = msg->token;
    ticket.size = msg->size;
    ticket.log_path = run != NULL ? (char *)result_log(run, route->rank, route->fetch) : (char *)"";
    emit_send(s, route->client, MS_MSG_FETCH_TICKET, route->frame_id, &ticket.base);
    route_drop(s, route);
}

/* A node's to answer: who asks us has taken the wrong address. */
void on_fetch_read(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    emit_error(s, conn->id, event->id, MS_E_REFUSED,
               "the bytes of results come from the node that a ticket names, not from the "
               "scheduler: msctl fetch asks for the ticket first");
}
