/* twin.c - two processes with one node id: the first is asked whether it lives, or waited for */
#include "daemon/sched/state.h"

#include <stdlib.h>

/* The first one is not here, and may be on its way: until then it has knocked, if it lives. From
 * when on it could, it fails once more at the worst, pauses, and knocks. Where that is later, or
 * the door is crowded, adopt.c says first how long it is waited for at all. */
static int64_t awaited_until(const struct sched *s, const struct node *node)
{
    const struct run *run = hold_first(node)->job->run;
    const int64_t beat_ms = (int64_t)heartbeat_ms(s);
    const int64_t pause_ms = beat_ms < MS_RECONNECT_LATER_MS ? beat_ms : MS_RECONNECT_LATER_MS;
    const int64_t until_ms = run->adopt.at_ms - run->expect_ms + MS_HANDSHAKE_MS + pause_ms;
    /* that may be over, and not said yet: where others arrived meanwhile it is longer */
    const int64_t judged_ms = run->adopt.at_ms > s->now.mono_ms ? run->adopt.at_ms : s->now.mono_ms;
    return s->crowded || until_ms >= run->adopt.at_ms ? judged_ms + 1 : until_ms;
}

/* Nobody says that it is dead, where people and scripts start processes. */
static bool is_awaited(const struct sched *s, const struct node *node)
{
    const struct hold *hold = hold_first(node);
    return s->mode->by_hand && node->state == NODE_NEW &&
           hold->job->run->members[hold->rank].state == RANK_MISSING &&
           awaited_until(s, node) > s->now.mono_ms;
}

static void probe(struct sched *s, struct newcomer *newcomer)
{
    const struct node *node = newcomer->node;
    timer_arm(s, &newcomer->timer, TIMER_PROBE, after_ms(s, MS_PROBE_MS));
    send_heartbeat_ack(s, node->conn, 0);
    Ms__LogRead ping = MS__LOG_READ__INIT; /* of no job: a living process answers it at once */
    ping.bytes_max = 1;
    emit_send(s, node->conn->id, MS_MSG_LOG_READ, 0, &ping.base);
    emit_log(s, MS_LOG_NOTICE, "node.probed node=%s old_pid=%u new_pid=%u",
             emit_quote(s, node->info.node_id), node->info.pid, newcomer->info.pid);
}

static void wait_for_first(struct sched *s, struct newcomer *newcomer)
{
    const struct node *node = newcomer->node;
    const int64_t until_ms = awaited_until(s, node);
    timer_arm(s, &newcomer->timer, TIMER_PROBE, until_ms);
    emit_log(s, MS_LOG_NOTICE,
             "node.held node=%s new_pid=%u wait_ms=%lld: the process that has its rank may still "
             "come back after %s",
             emit_quote(s, node->info.node_id), newcomer->info.pid,
             (long long)(until_ms - s->now.mono_ms), node->expected);
}

bool twin_waits(struct sched *s, struct conn *conn, const struct sched_event *event,
                struct node *node, const struct node_info *info, const struct claim *claim)
{
    const bool is_here = node->conn != NULL;
    if (node->conn == conn || node->info.incarnation == info->incarnation ||
        (!is_here && !is_awaited(s, node))) {
        return false;
    }
    if (node->newcomer != NULL && node->newcomer->info.incarnation == info->incarnation) {
        conn_drop(s, node->newcomer->conn); /* it has given that one up, and knocks again */
    }
    if (node->newcomer != NULL) {
        register_refuse(
            s, conn, event->id, MS_E_EXISTS,
            emit_text(s,
                      "node %s: two more processes want this id at once (pids %u and %u): give "
                      "each its own MS_NODE_ID",
                      info->node_id, node->newcomer->info.pid, info->pid),
            info->node_id);
        return true;
    }
    struct newcomer *newcomer = memory_take(sizeof(*newcomer));
    newcomer->node = node;
    newcomer->conn = conn;
    newcomer->frame_id = event->id;
    newcomer->info = *info;
    newcomer->claim = *claim;
    node->newcomer = newcomer;
    conn->newcomer = newcomer;
    if (is_here) {
        probe(s, newcomer);
    } else {
        wait_for_first(s, newcomer);
    }
    return true;
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
    const struct hold *hold = hold_first(node);
    const char *with = hold != NULL && hold->job != NULL
                           ? emit_text(s, ", with rank %u of job %llu", hold->rank,
                                       (unsigned long long)hold->job_id)
                           : "";
    register_refuse(
        s, newcomer->conn, newcomer->frame_id, MS_E_EXISTS,
        emit_text(s,
                  "node %s is registered already: by pid %u on host %.80s, and that process "
                  "lives%s; this one is pid %u on host %.80s: end one of the two or set "
                  "another MS_NODE_ID",
                  info->node_id, node->info.pid, node->info.host_name, with, info->pid,
                  info->host_name),
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
    if (old == NULL && is_awaited(s, node)) {
        wait_for_first(s, newcomer);
        return;
    }
    if (old == NULL) { /* claim.c says in which words the first one has lost its rank */
        newcomer_accept(s, node);
        return;
    }
    node_gone(s, node, NOTICE_REPLACED,
              emit_text(s,
                        "pid %u did not answer within %d ms when pid %u registered the same node "
                        "id, and was fenced off",
                        node->info.pid, MS_PROBE_MS, newcomer->info.pid));
    conn_drop(s, old);
}
