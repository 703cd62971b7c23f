/* node.c - nodes: found by id, judged by their lease, gone in words */
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct node *node_find(const struct sched *s, const char *node_id)
{
    struct table_link *link = table_first(&s->nodes, table_hash_text(s->seed, node_id));
    while (link != NULL && strcmp(list_item(link, struct node, link)->info.node_id, node_id) != 0) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct node, link) : NULL;
}

struct node *node_add(struct sched *s, const char *node_id)
{
    struct node *node = memory_take(sizeof(*node));
    ms_text_copy(node->info.node_id, sizeof(node->info.node_id), node_id);
    node->state = NODE_NEW;
    list_init(&node->beating);
    list_init(&node->idle);
    list_init(&node->gone);
    list_init(&node->holds);
    list_init(&node->on_host);
    table_add(&s->nodes, &node->link, table_hash_text(s->seed, node->info.node_id));
    return node;
}

void node_forget(struct sched *s, struct node *node)
{
    assert(node->state != NODE_REGISTERED && list_empty(&node->holds) && node->newcomer == NULL);
    routes_drop_node(s, node, "it is gone");
    timer_stop(s, &node->forget);
    timer_stop(s, &node->rest);
    gone_remove(s, node);
    host_leave(s, node);
    table_remove(&s->nodes, &node->link);
    free(node);
}

bool node_is_usable(const struct node *node)
{
    const struct hold *hold = hold_first(node);
    bool stuck = hold != NULL && hold->overdue;
    return node->state == NODE_REGISTERED && !node->host->drained && !node->host->paused &&
           !node->leaving && !stuck && !timer_is_armed(&node->rest);
}

bool node_is_idle(const struct node *node)
{
    return node_is_usable(node) && list_empty(&node->holds);
}

static void folder_update(struct sched *s, struct node *node, bool idle)
{
    const uint64_t folder = idle ? node->info.jobs_folder : 0;
    if (folder == node->folder) {
        return;
    }
    if (node->folder != 0) {
        table_remove(&s->folders, &node->by_folder);
    }
    if (folder != 0) {
        table_add(&s->folders, &node->by_folder, table_hash_u64(folder));
    }
    node->folder = folder;
}

void node_idle_update(struct sched *s, struct node *node)
{
    bool usable = node_is_usable(node);
    if (usable != node->counted) {
        node->counted = usable;
        s->n_usable += usable ? 1 : (uint32_t)-1;
        queue_nodes_changed(s);
    }
    bool listed = !list_empty(&node->idle);
    bool idle = node_is_idle(node);
    if (idle != listed) {
        if (idle) {
            list_add_tail(&s->idle, &node->idle);
            s->n_idle++;
            s->due |= DUE_PLACE;
        } else {
            list_remove(&node->idle);
            s->n_idle--;
        }
        watch_news(s);
    }
    folder_update(s, node, idle);
}

void node_rest(struct sched *s, struct node *node)
{
    timer_arm(s, &node->rest, TIMER_REST, after_ms(s, MS_UNFIT_MS));
    emit_log(s, MS_LOG_WARNING, "node.rests node=%s ms=%d", emit_quote(s, node->info.node_id),
             MS_UNFIT_MS);
    node_idle_update(s, node);
}

void node_rested(struct sched *s, struct node *node)
{
    node_idle_update(s, node);
}

static const char *const event_kinds[NODE_STATES] = {[NODE_NEW] = "node.away",
                                                     [NODE_REGISTERED] = "node.registered",
                                                     [NODE_LOST] = "node.lost",
                                                     [NODE_LEFT] = "node.left"};

static const char *node_facts(struct sched *s, const struct node *node, int state)
{
    const int64_t silent_ms = node_silent_ms(s, node);
    struct facts facts;
    facts_begin(&facts);
    if (state == NODE_REGISTERED) {
        facts_text(&facts, "host", node->info.host_name);
        facts_number(&facts, "pid", node->info.pid);
        return facts_end(s, &facts);
    }
    facts_text(&facts, "how", notice_name(node->notice));
    if (silent_ms >= 0) {
        facts_number(&facts, "silent_ms", (uint64_t)silent_ms);
    }
    return facts_end(s, &facts);
}

void node_set(struct sched *s, struct node *node, enum node_event event, const char *text)
{
    int to = ms_machine_next(&states_of_nodes, (int)node->state, (int)event);
    assert(to >= 0);
    bool was = node->state == NODE_REGISTERED;
    bool is = to == NODE_REGISTERED;
    if (to != (int)node->state) { /* not for a new connection of the same process */
        event_of_node(s, event_kinds[to], node, text, node_facts(s, node, to));
    }
    node->state = (enum node_state)to;
    if (is && !was) {
        s->n_registered++;
        holder_add(s, node);
        timer_stop(s, &node->forget);
        gone_remove(s, node);
        node->reason[0] = '\0';
        /* a job may have waited for the process that it had before, on a host with a pause, too */
        s->due |= list_empty(&s->recovering) ? 0 : DUE_PLACE;
        watch_news(s);
    } else if (was && !is) {
        s->n_registered--;
        list_remove(&node->beating);
        watch_news(s);
    }
    if (to == NODE_LOST || to == NODE_LEFT) {
        holder_remove(s, node);
    }
    node_idle_update(s, node);
}

void node_touch(struct sched *s, struct node *node)
{
    /* a stretched lease may lie ahead of now: what a node says takes nothing of it away, for a node
     * that knows only the longer lease beats as seldom as before, and the list stays in order */
    int64_t seen = node->seen_ms > s->now.mono_ms ? node->seen_ms : s->now.mono_ms;
    list_remove(&node->beating);
    if (!list_empty(&s->beating)) {
        int64_t last = list_item(s->beating.prev, struct node, beating)->seen_ms;
        seen = last > seen ? last : seen;
    }
    node->seen_ms = seen;
    node->spoke = true;
    list_add_tail(&s->beating, &node->beating);
    if (node->newcomer != NULL) {
        newcomer_refuse(s, node);
    }
}

int64_t node_silent_ms(const struct sched *s, const struct node *node)
{
    const int64_t seen_ms = node->before_ms != 0 ? node->before_ms : node->seen_ms;
    return seen_ms <= 0 ? -1 : s->now.mono_ms > seen_ms ? s->now.mono_ms - seen_ms : 0;
}

/* For people who look at events: by then its end may have been there to be seen. */
static const char *last_words(struct sched *s, const struct node *node, const char *reason)
{
    const int64_t silent_ms = node_silent_ms(s, node);
    return silent_ms < 0 ? reason
                         : emit_text(s, "%s; last heard of %lld ms before",
                                     text_fit(s, reason, 330), (long long)silent_ms);
}

static void gone_keep(struct sched *s, struct node *node, const char *reason)
{
    ms_text_copy(node->reason, sizeof(node->reason), reason);
    timer_arm(s, &node->forget, TIMER_FORGET, after_ms(s, MS_LOST_KEEP_MS));
    gone_add(s, node);
}

/* Ranks that the node had are lost with it. */
static void holds_lose(struct sched *s, struct node *node, enum fault fault, const char *reason)
{
    struct hold *hold = hold_first(node);
    for (; hold != NULL; hold = hold_first(node)) {
        struct job *job = hold->job;
        uint32_t rank = hold->rank;
        hold_drop(s, hold);
        if (job != NULL) {
            run_lost(s, job, rank, fault, MS_E_CLOSED, rank_text(s, job, rank, "was lost", reason));
        }
    }
}

void node_away(struct sched *s, struct node *node)
{
    assert(node->conn == NULL && node->newcomer == NULL);
    node->expected = "the scheduler stood still";
    node->notice = NOTICE_CLOSED;
    node->came = false;
    emit_log(s, MS_LOG_WARNING,
             "node.away node=%s host=%s: its connection closed, and the scheduler had stood still; "
             "waiting for it to come back",
             emit_quote(s, node->info.node_id), emit_quote(s, node->info.host_name));
    node_set(s, node, NODE_ON_AWAY, "its connection closed, and the scheduler had stood still");
    routes_drop_node(s, node, "its connection closed");
    struct list *at = node->holds.next;
    while (at != &node->holds) {
        struct hold *hold = list_item(at, struct hold, by_node);
        at = at->next;
        if (hold->job == NULL) {
            hold_drop(s, hold);
            continue;
        }
        struct run *run = hold->job->run;
        if (!rank_is_over(&run->members[hold->rank]) ||
            (hold->job->recovery && run->members[hold->rank].state == RANK_DONE)) {
            rank_set(run, hold->rank, RANK_ON_AWAY);
            run_expect(s, run, s->cfg.lease_ms, node->expected);
            run->stop_is_out = false; /* that wait costs the others nothing of theirs */
            watch_stir(s, hold->job);
        }
    }
}

/* It waits for its rank's job, and its silence may be ours. */
bool node_may_be_away(const struct sched *s, const struct node *node)
{
    const struct hold *hold = hold_first(node);
    return s->now.mono_ms < s->stood_still_until_ms && hold != NULL && hold->job != NULL &&
           node->newcomer == NULL;
}

const char *notice_name(enum notice notice)
{
    static const char *const names[NOTICES] = {
        [NOTICE_CLOSED] = "closed",     [NOTICE_SILENT] = "silent",
        [NOTICE_REPLACED] = "replaced", [NOTICE_RETURNED] = "returned",
        [NOTICE_MISSING] = "missing",   [NOTICE_LEFT] = "left"};
    return names[notice];
}

void node_gone(struct sched *s, struct node *node, enum notice notice, const char *reason)
{
    const struct hold *hold = hold_first(node);
    const enum node_event event = notice == NOTICE_LEFT ? NODE_ON_LEAVE : NODE_ON_LOSS;
    const bool is_told = notice != NOTICE_CLOSED && notice != NOTICE_REPLACED; /* by the reason */
    node->notice = notice;
    if (node->conn != NULL) {
        node->conn->node = NULL;
        node->conn = NULL;
    }
    reason = emit_text(s, "%s", reason);     /* it may live in the node */
    s->due |= node->leaving ? DUE_PLACE : 0; /* a job may have waited for what it saved */
    node->leaving = false;                   /* it did, or comes back and will say so again */
    node_set(s, node, event, is_told ? reason : last_words(s, node, reason));
    emit_log(s, hold != NULL && hold->job != NULL ? MS_LOG_WARNING : MS_LOG_NOTICE,
             "node.%s node=%s host=%s reason=%s", node->state == NODE_LEFT ? "left" : "lost",
             emit_quote(s, node->info.node_id), emit_quote(s, node->info.host_name),
             emit_quote(s, reason));
    routes_drop_node(s, node, reason);
    holds_lose(s, node, event == NODE_ON_LEAVE ? FAULT_LEFT : FAULT_LOST, reason);
    if (node->newcomer != NULL) {
        newcomer_accept(s, node);
    } else {
        gone_keep(s, node, reason); /* last: it is younger than the nodes that the job's end lost */
    }
}

/* ---- leases and heartbeats ----------------------------------------------------------------------
 */

int64_t node_lease_deadline(const struct sched *s)
{
    if (s->cfg.disable_heartbeat || list_empty(&s->beating)) {
        return INT64_MAX;
    }
    int64_t seen = list_item(s->beating.next, struct node, beating)->seen_ms;
    return seen > INT64_MAX - s->cfg.lease_ms ? INT64_MAX : seen + s->cfg.lease_ms;
}

/* Who is silent on a host where many share a core may just not have had its turn. */
static const char *silence_text(struct sched *s, const struct node *node, long long silent_ms)
{
    const uint32_t cores = node->info.cores;
    const char *why =
        node->host != NULL && host_is_crowded(node->host, cores)
            ? emit_text(s, "; its host has %u cores for more than %u nodes: run fewer", cores,
                        cores * MS_HOST_CROWD)
            : " (is its host down, cut off, or too busy?)";
    return emit_text(s, "it was silent for %lld ms, the lease is %lld ms%s", silent_ms,
                     (long long)s->cfg.lease_ms, why);
}

/* A network that is gone takes ten thousand leases at once; what they leave to write and to say is
 * bounded in one tick. The deadline stays over, so that the next tick comes at once. */
void node_judge_leases(struct sched *s)
{
    const size_t before = s->n_effects;
    while (node_lease_deadline(s) <= s->now.mono_ms && s->n_effects - before < MS_TURN_LOSSES &&
           !sched_tick_is_full(s)) {
        struct node *node = list_item(s->beating.next, struct node, beating);
        struct conn *conn = node->conn;
        long long silent_ms = (long long)(s->now.mono_ms - node->seen_ms);
        node_gone(s, node, NOTICE_SILENT, silence_text(s, node, silent_ms));
        if (conn != NULL) {
            conn_drop(s, conn);
        }
    }
    s->leases_behind = node_lease_deadline(s) <= s->now.mono_ms;
}

uint64_t heartbeat_ms(const struct sched *s)
{
    uint64_t ms = (uint64_t)s->cfg.lease_ms / MS_HEARTBEATS_PER_LEASE;
    return ms > 0 ? ms : 1;
}

void send_heartbeat_ack(struct sched *s, const struct conn *conn, uint32_t id)
{
    Ms__HeartbeatAck msg = MS__HEARTBEAT_ACK__INIT;
    msg.lease_ms = (uint64_t)s->cfg.lease_ms;
    msg.heartbeat_ms = heartbeat_ms(s);
    msg.present = s->n_registered;
    msg.expected = s->mode->expected(s);
    msg.stamp = stamp_now(s);
    emit_send(s, conn->id, MS_MSG_HEARTBEAT_ACK, id, &msg.base);
}

void on_heartbeat(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Heartbeat *msg = (const Ms__Heartbeat *)event->msg;
    struct node *node = conn->node;
    if (node == NULL) {
        emit_error(s, conn->id, event->id, MS_E_NOT_FOUND,
                   "Heartbeat of a process that is not registered here: send Register first");
        return;
    }
    for (struct list *at = node->holds.next; at != &node->holds; at = at->next) {
        struct hold *hold = list_item(at, struct hold, by_node);
        if (hold->job_id == msg->job && hold->generation == msg->generation) {
            hold->step = msg->step;
            if (hold->keeps != NULL) {
                recover_saw_step(s, hold->keeps, msg->step);
            }
            if (hold->job != NULL) {
                struct member *member = &hold->job->run->members[hold->rank];
                /* of a copy it says 0 until it is started */
                member->step = msg->step > member->step ? msg->step : member->step;
                recover_saw_step(s, hold->job->run, msg->step);
            }
        }
    }
    send_heartbeat_ack(s, conn, event->id);
}

void on_leave(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Leave *msg = (const Ms__Leave *)event->msg;
    if (conn->node != NULL) {
        conn->node->returns = msg->returns;
        if (!msg->returns) {
            s->mode->left(s, conn->node);
        }
        node_gone(s, conn->node, NOTICE_LEFT,
                  msg->reason[0] != '\0' ? emit_text(s, "it left: %s", msg->reason) : "it left");
    }
}
