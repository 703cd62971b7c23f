/* twin.c - two processes with one node id: the first is asked whether it lives */
#include "daemon/sched/state.h"

#include <stdlib.h>

void twin_probe(struct sched *s, struct conn *conn, const struct sched_event *event,
                struct node *node, const struct node_info *info, const struct claim *claim)
{
    if (node->newcomer != NULL) {
        register_refuse(
            s, conn, event->id, MS_E_EXISTS,
            emit_text(s,
                      "node %s: two more processes want this id at once (pids %u and %u): give "
                      "each its own MS_NODE_ID",
                      info->node_id, node->newcomer->info.pid, info->pid),
            info->node_id);
        return;
    }
    struct newcomer *newcomer = memory_take(sizeof(*newcomer));
    newcomer->node = node;
    newcomer->conn = conn;
    newcomer->frame_id = event->id;
    newcomer->info = *info;
    newcomer->claim = *claim;
    node->newcomer = newcomer;
    conn->newcomer = newcomer;
    timer_arm(s, &newcomer->timer, TIMER_PROBE, after_ms(s, MS_PROBE_MS));
    send_heartbeat_ack(s, node->conn, 0);
    Ms__LogRead ping = MS__LOG_READ__INIT; /* of no job: a living process answers it at once */
    ping.bytes_max = 1;
    emit_send(s, node->conn->id, MS_MSG_LOG_READ, 0, &ping.base);
    emit_log(s, MS_LOG_NOTICE, "node.probed node=%s old_pid=%u new_pid=%u",
             emit_quote(s, info->node_id), node->info.pid, info->pid);
}

void newcomer_drop(struct sched *s, struct newcomer *newcomer)
{
    timer_stop(s, &newcomer->timer);
    newcomer->node->newcomer = NULL;
    newcomer->conn->newcomer = NULL;
    free(newcomer);
}

void newcomer_refuse(struct sched *s, struct node *node)
{
    struct newcomer *newcomer = node->newcomer;
    const struct node_info *info = &newcomer->info;
    register_refuse(
        s, newcomer->conn, newcomer->frame_id, MS_E_EXISTS,
        emit_text(s,
                  "node %s is registered already: by pid %u on host %.100s, and that process "
                  "answers; this one is pid %u on host %.100s: end one of the two or set "
                  "another MS_NODE_ID",
                  info->node_id, node->info.pid, node->info.host_name, info->pid, info->host_name),
        info->node_id);
    newcomer_drop(s, newcomer);
}

void newcomer_accept(struct sched *s, struct node *node)
{
    struct newcomer copy = *node->newcomer;
    newcomer_drop(s, node->newcomer);
    register_accept(s, copy.conn, copy.frame_id, &copy.info, &copy.claim);
}

void newcomer_timeout(struct sched *s, struct newcomer *newcomer)
{
    struct node *node = newcomer->node;
    struct conn *old = node->conn;
    node_gone(s, node, NODE_ON_LOSS,
              emit_text(s,
                        "pid %u did not answer within %d ms when pid %u registered the same node "
                        "id, and was fenced off",
                        node->info.pid, MS_PROBE_MS, newcomer->info.pid));
    if (old != NULL) {
        conn_drop(s, old);
    }
}
