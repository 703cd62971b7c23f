/* conn.c - connections: who is at the other end, and which messages that role may send */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

/* What most answers take; those that take more ask for it themselves. */
enum { REQUEST_BYTES = 16384 };

typedef void handler_fn(struct sched *s, struct conn *conn, const struct sched_event *event);

/* Types without a handler are answers of ours: the wire table lets nobody send them. */
static const struct {
    uint16_t type;
    handler_fn *on;
} handlers[] = {
    {MS_MSG_HEARTBEAT, on_heartbeat},     {MS_MSG_PROGRESS, on_progress},
    {MS_MSG_REGISTER, on_register},       {MS_MSG_RANK_READY, on_rank_ready},
    {MS_MSG_RANK_DONE, on_rank_done},     {MS_MSG_PEER_REPORT, on_peer_report},
    {MS_MSG_LOG_CHUNK, on_log_chunk},     {MS_MSG_LEAVE, on_leave},
    {MS_MSG_SUBMIT, on_submit},           {MS_MSG_JOB_QUERY, on_job_query},
    {MS_MSG_CANCEL, on_cancel},           {MS_MSG_WATCH, on_watch},
    {MS_MSG_NODE_QUERY, on_node_query},   {MS_MSG_STATUS_QUERY, on_status_query},
    {MS_MSG_LOG_QUERY, on_log_query},     {MS_MSG_FETCH, on_fetch},
    {MS_MSG_FETCH_READY, on_fetch_ready}, {MS_MSG_FETCH_READ, on_fetch_read},
    {MS_MSG_EVENT_QUERY, on_event_query}, {MS_MSG_RANK_PLAN, on_rank_plan},
};

struct conn *conn_find(const struct sched *s, uint64_t id)
{
    struct table_link *link = table_first(&s->conns, table_hash_u64(id));
    while (link != NULL && list_item(link, struct conn, link)->id != id) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct conn, link) : NULL;
}

enum sched_conn_kind sched_conn_kind(const struct sched *s, uint64_t id)
{
    const struct conn *conn = conn_find(s, id);
    if (conn == NULL) {
        return SCHED_CONN_IDLE;
    }
    if (conn->node != NULL) {
        return SCHED_CONN_NODE;
    }
    bool waits = conn->newcomer != NULL || conn->follower != NULL;
    return waits || conn->n_watches > 0 || !list_empty(&conn->waits) ? SCHED_CONN_BUSY
                                                                     : SCHED_CONN_IDLE;
}

void conn_opened(struct sched *s, const struct sched_event *event)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        emit_close(s, event->conn);
        return;
    }
    conn->id = event->conn;
    conn->peer = *event->peer;
    list_init(&conn->watches);
    list_init(&conn->muted);
    list_init(&conn->waits);
    table_add(&s->conns, &conn->link, table_hash_u64(conn->id));
}

static void conn_forget(struct sched *s, struct conn *conn)
{
    while (!list_empty(&conn->watches)) {
        watch_drop(list_item(conn->watches.next, struct watch, by_conn));
    }
    while (!list_empty(&conn->waits)) {
        waiter_drop(list_item(conn->waits.next, struct waiter, by_conn));
    }
    if (conn->newcomer != NULL) {
        newcomer_drop(s, conn->newcomer);
    }
    follower_drop(conn);
    routes_drop_conn(s, conn->id);
    table_remove(&s->conns, &conn->link);
    free(conn);
}

void conn_drop(struct sched *s, struct conn *conn)
{
    emit_close(s, conn->id);
    conn_forget(s, conn);
}

/* A process that is killed says nothing, and its log has nothing: the service manager of its host
 * knows the signal, and whether memory was the cause. */
static const char *why_closed(struct sched *s, const struct node *node, const char *reason)
{
    const struct hold *hold = hold_first(node);
    if (s->cfg.mode != SCHED_STANDING || hold == NULL || hold->job == NULL) {
        return reason;
    }
    return emit_text(s, "%s (killed? journalctl -u 'msworker@*' on %.64s says by what)", reason,
                     node->info.host_name);
}

void conn_closed(struct sched *s, struct conn *conn, const char *reason)
{
    struct node *node = conn->node;
    conn->node = NULL;
    conn_forget(s, conn);
    if (node != NULL) {
        node->conn = NULL;
        if (node_may_be_away(s, node)) {
            node_away(s, node);
        } else {
            node_gone(s, node, NOTICE_CLOSED, why_closed(s, node, reason));
        }
    }
}

static const char *roles_text(struct sched *s, unsigned roles)
{
    static const unsigned each[] = {MS_ROLE_WORKER, MS_ROLE_USER, MS_ROLE_ADMIN, MS_ROLE_SCHEDULER};
    const char *text = "";
    for (size_t i = 0; i < MS_ARRAY_SIZE(each); i++) {
        if ((roles & each[i]) != 0) {
            text = emit_text(s, "%s%s%s", text, text[0] != '\0' ? "+" : "", ms_role_name(each[i]));
        }
    }
    return text[0] != '\0' ? text : "nobody";
}

static void refuse_role(struct sched *s, const struct conn *conn, const struct sched_event *event)
{
    const struct ms_wire_type *type = ms_wire_find(event->type);
    const char *name = type != NULL ? type->name : "this message";
    const char *roles = roles_text(s, conn->peer.who.roles);
    emit_log(s, MS_LOG_WARNING, "message.refused type=%s role=%s who=%s address=%s", name, roles,
             emit_quote(s, conn->peer.who.id), emit_quote(s, conn->peer.address));
    emit_error(s, conn->id, event->id, MS_E_REFUSED,
               "%s is not for a %s to send (this connection is %s): use a certificate that was "
               "issued for it",
               name, roles, conn->peer.who.id);
}

void conn_message(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    if (!may(&conn->peer.who, may_action_of(event->type), NULL)) {
        refuse_role(s, conn, event);
        return;
    }
    if (conn->node != NULL) {
        node_touch(s, conn->node);
    } else if (!emit_reserve(s, REQUEST_BYTES)) {
        emit_error(s, conn->id, event->id, MS_E_NOMEM, "no memory for %s: try again in a moment",
                   ms_wire_find(event->type)->name);
        return;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(handlers); i++) {
        if (handlers[i].type == event->type) {
            handlers[i].on(s, conn, event);
            return;
        }
    }
    /* Hello, Ok, Error: nothing to decide */
}
