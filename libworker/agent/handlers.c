/* handlers.c - what the scheduler says to a node, one function a message */
#include "libworker/agent/agent_impl.h"

#include "libworker/agent/assign_check.h"
#include "libworker/agent/log_read.h"
#include "proto/clock.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>

enum { NOISE_MS = 10000 }; /* a line about frames that we do not want */

/* Frames that nobody asked for: one line of log in a while, with how many there were. */
static void note_noise(struct agent *agent, const char *event, const char *reason)
{
    int64_t now = ms_mono_ms();
    agent->noise++;
    if (agent->noise_log_ms == 0 || now - agent->noise_log_ms >= NOISE_MS) {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_WARNING, "%s reason=%s times=%u, ignoring", event,
               ms_log_quote(quoted, sizeof(quoted), reason), agent->noise);
        agent->noise_log_ms = now;
        agent->noise = 0;
    }
}

static void on_registered(struct agent *agent, const struct ms_wire_header *head,
                          const ProtobufCMessage *msg)
{
    (void)head;
    line_up(agent, (const Ms__Registered *)msg);
}

static void on_start(struct agent *agent, const struct ms_wire_header *head,
                     const ProtobufCMessage *msg)
{
    const Ms__Start *start = (const Ms__Start *)msg;
    struct agent_order order = {
        .kind = AGENT_START, .job = start->job, .generation = start->generation};
    (void)head;
    mailbox_started(&agent->mailbox);
    hand_started(&agent->hand, start->generation);
    agent_give(agent, &order);
}

/* Generation 0 is whatever the node holds; that is known here, where Assign arrives too, and
 * nowhere later. What stays 0 concerns no rank. */
static uint64_t stopped_generation(struct agent *agent, const Ms__Stop *stop)
{
    return stop->generation != 0 ? stop->generation : hand_look(&agent->hand).generation;
}

static void flush(struct agent *agent)
{
    if (agent->line.state == LINE_UP) {
        (void)mailbox_flush(&agent->mailbox, agent->line.conn);
    }
}

static void on_stop(struct agent *agent, const struct ms_wire_header *head,
                    const ProtobufCMessage *msg)
{
    const Ms__Stop *stop = (const Ms__Stop *)msg;
    struct agent_order order = {.kind = AGENT_STOP,
                                .job = stop->job,
                                .generation = stopped_generation(agent, stop),
                                .code = stop->code,
                                .at_step = stop->at_step,
                                .saves = stop->saves,
                                .stands = stop->stands};
    (void)head;
    snprintf(order.text, sizeof(order.text), "%s", stop->text);
    flush(agent); /* they crossed: the node is busy until it is heard */
    if (!stop->at_step) {
        mailbox_answered(&agent->mailbox);
    }
    const uint64_t number = mailbox_number(&agent->mailbox);
    const int rc = agent_give(agent, &order);
    if (stop->at_step && rc == 0) {
        mailbox_done_no_more(&agent->mailbox, number);
    } else if (stop->at_step) {
        mailbox_done_again(&agent->mailbox);
        flush(agent);
    }
    if (stop->at_step) { /* the answer: who gives none counts as lost when its grace ends */
        line_beat(agent);
    }
}

static void on_error(struct agent *agent, const struct ms_wire_header *head,
                     const ProtobufCMessage *msg)
{
    const Ms__Error *error = (const Ms__Error *)msg;
    if (head->id == LINE_REGISTER_ID && agent->line.state == LINE_REGISTERING) {
        line_refused(agent, error);
        return;
    }
    note_noise(agent, "agent.refused", error->text);
}

static void on_log_read(struct agent *agent, const struct ms_wire_header *head,
                        const ProtobufCMessage *msg)
{
    (void)head;
    log_read_answer(agent->line.conn, (const Ms__LogRead *)msg, agent->cfg.log_path,
                    agent->cfg.arg);
}

static void on_fetch_grant(struct agent *agent, const struct ms_wire_header *head,
                           const ProtobufCMessage *msg)
{
    (void)head;
    if (agent->cfg.on_fetch != NULL) {
        agent->cfg.on_fetch(agent->cfg.arg, (const Ms__FetchGrant *)msg);
    }
}

static void on_heartbeat_ack(struct agent *agent, const struct ms_wire_header *head,
                             const ProtobufCMessage *msg)
{
    const Ms__HeartbeatAck *ack = (const Ms__HeartbeatAck *)msg;
    (void)head;
    line_set_times(&agent->line, ack->lease_ms, ack->heartbeat_ms);
    line_take_stamp(&agent->line, &ack->stamp);
}

static const struct {
    uint16_t type;
    void (*handle)(struct agent *agent, const struct ms_wire_header *head,
                   const ProtobufCMessage *msg);
} handlers[] = {
    {MS_MSG_REGISTERED, on_registered},
    {MS_MSG_START, on_start},
    {MS_MSG_STOP, on_stop},
    {MS_MSG_ERROR, on_error},
    {MS_MSG_HEARTBEAT_ACK, on_heartbeat_ack},
    {MS_MSG_LOG_READ, on_log_read},
    {MS_MSG_FETCH_GRANT, on_fetch_grant},
};

/* A node that cannot take a rank says so: the scheduler would wait for it otherwise. */
static void decline(struct agent *agent, const Ms__Assign *assign, const struct ms_err *why)
{
    char text[MS_TEXT_MAX];
    char weights[] = "";
    Ms__RankDone done = MS__RANK_DONE__INIT;
    struct ms_err err;
    snprintf(text, sizeof(text), "%s", ms_err_text(why));
    done.job = assign->job;
    done.generation = assign->generation;
    done.rank = assign->rank;
    done.code = agent->has_left ? MS_E_CANCELLED : ms_err_code(why);
    done.leaving = agent->has_left;
    done.text = text;
    done.weights_sha256 = done.plan_sha256 = done.log_path = weights;
    note_noise(agent, "agent.assign_declined", text);
    if (ms_conn_send(agent->line.conn, MS_MSG_RANK_DONE, 0, &done.base, &err) < 0) {
        note_noise(agent, "agent.send_failed", err.text);
    }
}

/* The order owns the message once it is taken. */
static void take_assign(struct agent *agent, ProtobufCMessage *msg)
{
    Ms__Assign *assign = (Ms__Assign *)msg;
    struct agent_order order = {.kind = AGENT_ASSIGN,
                                .job = assign->job,
                                .generation = assign->generation,
                                .assign = assign};
    struct holding before = hand_look(&agent->hand);
    struct ms_err why;
    if (before.generation != 0 && assign->generation <= before.generation) {
        note_noise(agent, "agent.old_assign", "an Assign that is no newer than the rank in hand");
        ms_wire_free(msg);
        return;
    }
    if (assign_check(assign, &why) < 0) {
        decline(agent, assign, &why);
        ms_wire_free(msg);
        return;
    }
    /* before the trainer hears of it: what he holds and says from then on is of the new rank */
    mailbox_answered(&agent->mailbox);
    if (before.generation == 0) { /* by that one look: the trainer may let go at any moment */
        grace_end(agent);
        hand_forget(&agent->hand);
    }
    hand_take(&agent->hand, assign->job, assign->generation, assign->rank);
    const int is_same = before.job == assign->job && before.rank == assign->rank;
    int rc = agent_give(agent, &order); /* which owns assign from here on, unless it declines */
    if (rc >= 0) {
        agent->ended_by[0] = '\0';
        const int goes_on = is_same && !(rc & (AGENT_SUPERSEDES | AGENT_ANEW));
        hand_settle(&agent->hand, (rc & AGENT_RECOVERS) != 0, goes_on ? before.step : 0);
        line_beat(agent); /* the last one may be long ago, and people look now */
    }
    if (rc >= 0 && (rc & AGENT_SUPERSEDES)) {
        grace_begin_superseded(agent, &before);
    } else if (rc < 0) {
        hand_put_back(&agent->hand, &before);
        (void)ms_fail(&why, MS_E_FULL, "rank %u of job %" PRIu64 " was declined: %s%s%.200s",
                      assign->rank, assign->job,
                      agent->has_left ? "its worker was asked to end"
                                      : "this node ends, or another rank waits on it already",
                      agent->ended_by[0] != '\0' ? "; it was told to end: " : "", agent->ended_by);
        decline(agent, assign, &why);
        ms_wire_free(msg);
    }
    agent_tell_status(agent);
}

/* Likewise. One that comes once more is taken, too. */
static void take_plan(struct agent *agent, ProtobufCMessage *msg)
{
    Ms__Plan *plan = (Ms__Plan *)msg;
    struct agent_order order = {
        .kind = AGENT_PLAN, .job = plan->job, .generation = plan->generation, .plan = plan};
    if (hand_look(&agent->hand).generation == plan->generation) {
        mailbox_planned(&agent->mailbox);
    }
    if (agent_give(agent, &order) < 0) {
        char text[MS_TEXT_MAX];
        snprintf(text, sizeof(text),
                 "a Plan for generation %" PRIu64 " of job %" PRIu64
                 ": no rank of this node waits for it",
                 order.generation, order.job);
        note_noise(agent, "agent.stale_plan", text);
        ms_wire_free(msg);
    }
}

void agent_on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                    void *arg)
{
    struct agent *agent = arg;
    struct ms_err err;
    ProtobufCMessage *msg = NULL;
    (void)conn;
    if (ms_wire_unpack(head->type, bytes, head->length, &msg, &err) < 0) {
        note_noise(agent, "agent.bad_message", err.text);
        return;
    }
    line_heard(&agent->line);
    if (head->type == MS_MSG_ASSIGN) {
        take_assign(agent, msg);
        return;
    }
    if (head->type == MS_MSG_PLAN) {
        take_plan(agent, msg);
        return;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(handlers); i++) {
        if (handlers[i].type == head->type) {
            handlers[i].handle(agent, head, msg);
        }
    } /* else: Ok, and what newer schedulers say */
    ms_wire_free(msg);
}
