/* register.c - Register: who may, new nodes and reconnects */
#include "daemon/sched/state.h"
#include "proto/addr.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void offer_read(struct node_info *info, const Ms__Offer *offer)
{
    info->has_offer = true;
    info->offer = *offer;
    info->offer.base.n_unknown_fields = 0;
    info->offer.base.unknown_fields = NULL;
    info->offer.cpuset.data = NULL; /* a node_info is copied: place.c says where they are */
    memcpy(info->cpuset, offer->cpuset.data, offer->cpuset.len);
}

static void info_read(struct node_info *info, const struct conn *conn, const Ms__Register *msg)
{
    memset(info, 0, sizeof(*info));
    ms_text_copy(info->node_id, sizeof(info->node_id), msg->node_id);
    info->incarnation = msg->incarnation;
    ms_text_copy(info->host_name, sizeof(info->host_name), msg->host_name);
    ms_text_copy(info->host_id, sizeof(info->host_id), msg->host_id);
    ms_text_copy(info->data_address, sizeof(info->data_address), msg->data_address);
    ms_text_copy(info->data_unix, sizeof(info->data_unix), msg->data_unix);
    ms_text_copy(info->isa, sizeof(info->isa), msg->isa);
    ms_text_copy(info->onednn, sizeof(info->onednn), msg->onednn);
    ms_text_copy(info->principal, sizeof(info->principal), conn->peer.who.id);
    ms_text_copy(info->cert_name, sizeof(info->cert_name), conn->peer.cert_name);
    info->uid = msg->uid;
    info->cores = msg->cores;
    info->pid = msg->pid;
    info->level = msg->level;
    info->memory_bytes = msg->memory_bytes;
    info->jobs_folder = msg->jobs_folder;
    if (msg->offer != NULL && msg->offer->cpuset.len > 0) {
        offer_read(info, msg->offer);
    }
}

/* Other hosts dial it, with the job's token: a socket of theirs is none of ours. */
static bool is_reachable(const char *data_address)
{
    struct ms_addr addr;
    return ms_addr_parse(data_address, 0, &addr, NULL) == MS_OK && !addr.is_unix;
}

/* NULL, or why the message cannot be believed. */
static const char *message_refusal(struct sched *s, const struct conn *conn,
                                   const Ms__Register *msg, int *ret_code)
{
    if (conn->newcomer != NULL) { /* whose turn it is to take the connection is not decided yet */
        *ret_code = MS_E_EXISTS;
        return emit_text(s,
                         "node %.80s: this connection has a Register under way already (of node "
                         "%s): wait for its answer",
                         msg->node_id, conn->newcomer->info.node_id);
    }
    *ret_code = MS_E_INVALID;
    if (msg->node_id[0] == '\0') {
        return "Register without a node id: set MS_NODE_ID, or let the worker make one up";
    }
    if (strlen(msg->node_id) > MS_NAME_MAX) {
        return emit_text(s, "node id %.80s...: longer than %d bytes; set a shorter MS_NODE_ID",
                         msg->node_id, MS_NAME_MAX);
    }
    if (msg->incarnation == 0) {
        return emit_text(s, "node %s: Register without an incarnation: the worker must draw one",
                         msg->node_id);
    }
    if (!is_reachable(msg->data_address)) {
        return emit_text(s,
                         "node %s: the data address '%.80s' is none that other hosts can reach: "
                         "HOST:PORT is",
                         msg->node_id, msg->data_address);
    }
    if (conn->node != NULL && strcmp(conn->node->info.node_id, msg->node_id) != 0) {
        return emit_text(s, "node %s: this connection belongs to node %s already: open another one",
                         msg->node_id, conn->node->info.node_id);
    }
    if (conn->node != NULL && conn->node->info.incarnation != msg->incarnation) {
        return emit_text(s,
                         "node %s: this connection belongs to another process of it (pid %u): open "
                         "another connection",
                         msg->node_id, conn->node->info.pid);
    }
    return claim_refusal(s, msg);
}

/* A node id belongs to whoever registered it, as long as it is REGISTERED or holds a rank; a rank
 * that the database names counts too. "": to nobody. */
static const char *holder_of(const struct node *node)
{
    bool in_use = node != NULL && (node->state == NODE_REGISTERED || hold_first(node) != NULL);
    return in_use ? node->info.principal : "";
}

static const char *holder_refusal(struct sched *s, const struct conn *conn, const struct node *node,
                                  const struct node_info *info, int *ret_code)
{
    if (may(&conn->peer.who, MAY_REGISTER, holder_of(node))) {
        return NULL;
    }
    *ret_code = MS_E_EXISTS;
    return emit_text(s,
                     "node %s is registered already by %s, and this connection is %s: choose "
                     "another MS_NODE_ID",
                     info->node_id, node->info.principal, info->principal);
}

static const char *capacity_refusal(struct sched *s, const struct node *node,
                                    const struct node_info *info, int *ret_code)
{
    if ((node == NULL || node->state != NODE_REGISTERED) && s->n_registered >= MS_NODES_MAX) {
        *ret_code = MS_E_FULL;
        return emit_text(s, "node %s: %d nodes are registered, which is the limit", info->node_id,
                         MS_NODES_MAX);
    }
    return NULL;
}

/* How much of a node id names its certificate. A function of the id alone, so that no two
 * certificates may take the same one: up to ':' or '/', which no certificate's name holds; else up
 * to a last "-" and a number, which is the slot; else all of it. */
static size_t certificate_part(const char *node_id)
{
    static const char digits[] = "0123456789";
    size_t n = strcspn(node_id, ":/");
    const char *slot = node_id[n] == '\0' ? strrchr(node_id, '-') : NULL;
    bool is_slot = slot != NULL && slot[1] != '\0' && slot[1 + strspn(slot + 1, digits)] == '\0';
    return is_slot ? (size_t)(slot - node_id) : n;
}

static bool is_of_certificate(const char *node_id, const char *name)
{
    size_t n = certificate_part(node_id);
    return strlen(name) == n && strncmp(node_id, name, n) == 0;
}

/* What one certificate may register; who came by socket or without TLS has none. */
static const char *certificate_refusal(struct sched *s, const struct conn *conn,
                                       const struct node *node, const struct node_info *info,
                                       int *ret_code)
{
    const char *name = conn->peer.cert_name;
    if (name[0] == '\0') {
        return NULL;
    }
    *ret_code = MS_E_REFUSED;
    bool is_held = strcmp(holder_of(node), info->principal) == 0; /* whatever the rule was then */
    if (s->cfg.certificate_ids && !is_held && !is_of_certificate(info->node_id, name)) {
        return emit_text(s,
                         "node id %s is for the certificate %.*s, and this one is %s: set "
                         "MS_NODE_ID to %s-0, or %s:WORD; or issue a certificate for that node; or "
                         "allow any id (node_ids = free in msschedd.conf)",
                         info->node_id, (int)certificate_part(info->node_id), info->node_id, name,
                         name, name);
    }
    *ret_code = MS_E_FULL;
    const bool has_place = node != NULL && node->holder != NULL; /* if it is expected back, too */
    if (!has_place && s->cfg.nodes_per_certificate > 0 &&
        holder_count(s, info->principal) >= s->cfg.nodes_per_certificate) {
        return emit_text(s,
                         "node %s: %u nodes of the certificate %s are registered or expected back, "
                         "which is the limit (nodes_per_certificate): issue one for each host",
                         info->node_id, s->cfg.nodes_per_certificate, name);
    }
    return NULL;
}

void register_refuse(struct sched *s, const struct conn *conn, uint32_t frame_id, int code,
                     const char *text, const char *node_id)
{
    emit_log(s, MS_LOG_WARNING, "node.refused node=%s address=%s reason=%s", emit_quote(s, node_id),
             emit_quote(s, conn->peer.address), emit_quote(s, text));
    emit_error(s, conn->id, frame_id, code, "%s", text);
}

/* ---- accepting ----------------------------------------------------------------------------------
 */

static void send_registered(struct sched *s, const struct node *node, uint32_t frame_id)
{
    Ms__Registered msg = MS__REGISTERED__INIT;
    msg.node_id = (char *)node->info.node_id;
    msg.lease_ms = (uint64_t)s->cfg.lease_ms;
    msg.heartbeat_ms = heartbeat_ms(s);
    msg.present = s->n_registered;
    msg.expected = s->mode->expected(s);
    msg.stamp = stamp_now(s);
    emit_send(s, node->conn->id, MS_MSG_REGISTERED, frame_id, &msg.base);
    emit_log(s, MS_LOG_NOTICE,
             "node.registered node=%s host=%s address=%s pid=%u cores=%u isa=%s nodes=%u%s",
             emit_quote(s, node->info.node_id), emit_quote(s, node->info.host_name),
             emit_quote(s, node->info.data_address), node->info.pid, node->info.cores,
             emit_quote(s, node->info.isa), s->n_registered,
             s->mode->expected(s) > 0 ? emit_text(s, " expected=%u", s->mode->expected(s)) : "");
}

void register_accept(struct sched *s, struct conn *conn, uint32_t frame_id,
                     const struct node_info *info, const struct claim *claim)
{
    struct node *node = node_find(s, info->node_id);
    if (node == NULL) {
        node = node_add(s, info->node_id);
    }
    if (node->conn != NULL && node->conn != conn) { /* same process, new connection */
        struct conn *old = node->conn;
        old->node = NULL;
        node->conn = NULL;
        conn_drop(s, old);
    }
    claim_raise(s, claim, info->principal);
    bool same_process = node->info.incarnation == info->incarnation;
    node->leaving = node->leaving && same_process; /* it may have been away, not gone */
    node->told_end = false;
    node->end_rank = 0;
    if (!same_process) {
        timer_stop(s, &node->rest); /* what the one before it lacked */
    }
    struct hold *ours = claim_find(node, info, claim);
    node->info = *info;
    host_join(s, node);
    node->conn = conn;
    conn->node = node;
    node_arrived(s, node);
    formers_note(s, node);
    node_set(s, node, NODE_ON_REGISTER, emit_text(s, "on %s, pid %u", info->host_name, info->pid));
    node->before_ms = node->seen_ms != 0 ? node->seen_ms : -1;
    node_touch(s, node); /* a newcomer that waits for it is refused here */
    send_registered(s, node, frame_id);
    if (ours == NULL && claim->job != 0) {
        host_excuse(s, node, claim); /* before it loses what it does not claim */
    }
    claim_lose_others(s, node, ours, claim, same_process);
    node->before_ms = 0;
    if (ours != NULL) {
        run_came_back(s, ours, claim);
    } else if (claim->job != 0 && !recover_take_back(s, node, claim) &&
               !former_comes(s, node, claim)) {
        claim_stop(s, node, claim);
    }
    stop_note_arrival(s, node);
}

/* A rank's own process is turned away: that is why it will be missing. What a stranger is told who
 * claims to be it is none of the job's business. */
static void keep_refusal(struct node *node, const struct node_info *info, const char *text)
{
    const char *holder = holder_of(node);
    if (node != NULL && node->state == NODE_NEW && node->info.incarnation == info->incarnation &&
        (holder[0] == '\0' || strcmp(holder, info->principal) == 0)) {
        ms_text_copy(node->reason, sizeof(node->reason), text);
    }
}

void on_register(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Register *msg = (const Ms__Register *)event->msg;
    struct node_info info;
    int code = 0;
    const bool is_foreign = stamp_is_foreign(s, &msg->stamp);
    if (!is_foreign && stamp_is_ahead(s, conn, event->id, &msg->stamp)) {
        return;
    }
    const char *text = s->mode->lets_be(s, msg);
    if (text != NULL) { /* whoever has it begun another database meanwhile hears what to do */
        emit_error(s, conn->id, event->id, is_foreign ? MS_E_FOREIGN : MS_E_NOT_FOUND, "%s", text);
        return;
    }
    if (is_foreign) {
        stamp_refuse_foreign(s, conn, event->id);
        return;
    }
    text = message_refusal(s, conn, msg, &code);
    if (text != NULL) {
        register_refuse(s, conn, event->id, code, text, msg->node_id);
        return;
    }
    info_read(&info, conn, msg);
    struct claim claim = {msg->job, msg->generation, msg->step, msg->rank, msg->running != 0};
    struct node *node = node_find(s, info.node_id);
    text = holder_refusal(s, conn, node, &info, &code);
    if (text == NULL) {
        text = certificate_refusal(s, conn, node, &info, &code);
    }
    if (text == NULL) {
        text = capacity_refusal(s, node, &info, &code);
    }
    if (text == NULL) {
        text = s->mode->refusal(s, &info, msg, &code);
    }
    if (text != NULL) {
        keep_refusal(node, &info, text);
        register_refuse(s, conn, event->id, code, text, info.node_id);
        return;
    }
    if (node != NULL && twin_waits(s, conn, event, node, &info, &claim)) {
        return;
    }
    s->mode->registered(s, &info, msg);
    register_accept(s, conn, event->id, &info, &claim);
}
