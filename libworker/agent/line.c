/* line.c - the connection to the scheduler: connect, register, beat, knock again */
#include "libworker/agent/agent_impl.h"

#include "proto/clock.h"
#include "proto/log.h"
#include "proto/rng.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
    STALL_MS = 500,      /* a timer that comes so much later found this process asleep */
    WAITING_MS = 10000,  /* a line of log about the same wait */
    REFUSED_MS = 60000,  /* ... about a certificate, which only people mend */
    BEAT_MIN_MS = 10,    /* no scheduler of ours asks for more */
    LAST_WORDS_MS = 2000 /* who is asked to leave waits so long for the answer to Register */
};

static int64_t patience_ms(const struct agent *agent)
{
    int64_t lease = agent->line.lease_ms;
    int64_t least = agent->cfg.patience_ms;
    if (least == 0) {
        return lease;
    }
    return lease * MS_PATIENCE_LEASES > least ? lease * MS_PATIENCE_LEASES : least;
}

static int holds_rank(struct agent *agent)
{
    return hand_look(&agent->hand).generation != 0;
}

/* Who has a rank of a job that recovers trains on, or holds, until there is a scheduler again. */
static int is_out_of_patience(struct agent *agent, int64_t silent_ms)
{
    struct holding holding = hand_look(&agent->hand);
    return holding.generation != 0 && !holding.recovers && silent_ms >= patience_ms(agent);
}

/* A rank that does nothing more without its scheduler's word, and nobody brings that one back. */
static int has_waited_enough(struct agent *agent)
{
    const int64_t said_ms = mailbox_waits_since(&agent->mailbox);
    const int64_t since_ms = said_ms > 0 ? said_ms : atomic_load(&agent->awaits_since_ms);
    const int64_t down_ms = agent->line.down_since_ms;
    return agent->cfg.word_ms > 0 && since_ms > 0 && hand_look(&agent->hand).recovers &&
           ms_mono_ms() - (since_ms > down_ms ? since_ms : down_ms) >= agent->cfg.word_ms;
}

/* Another scheduler than that of the rank in hand, whose job outlives that one. */
static int is_others(struct agent *agent, int code)
{
    return (code == MS_E_NOT_FOUND || code == MS_E_FOREIGN) && !agent->cfg.is_standing &&
           hand_look(&agent->hand).recovers && holds_rank(agent);
}

/* Codes that no waiting mends; while the line is made, TLS is the other side's trouble as well. */
static int is_final(const struct agent *agent, enum line_state state, int code)
{
    static const int final[] = {MS_E_TLS,    MS_E_REFUSED,     MS_E_EXISTS, MS_E_INVALID,
                                MS_E_CONFIG, MS_E_UNSUPPORTED, MS_E_FOREIGN};
    if (agent->cfg.is_standing && agent->plain_by[0] == '\0' && state == LINE_CONNECTING &&
        (code == MS_E_TLS || code == MS_E_REFUSED)) {
        return 0;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(final); i++) {
        if (final[i] == code) {
            return 1;
        }
    }
    return 0;
}

/* A stamp proves something only to the database that sealed it. A node that holds nothing but the
 * stamp is a node like any other to a database that is new; a rank belongs to the old one. */
static int may_forget_stamp(struct agent *agent, int code)
{
    return code == MS_E_FOREIGN && agent->cfg.is_standing && agent->line.stamp_bytes > 0 &&
           !holds_rank(agent);
}

static void schedule_retry(struct agent *agent, int code)
{
    struct line *line = &agent->line;
    int64_t most = retry_most_ms(holds_rank(agent), !agent->cfg.is_standing, line->lease_ms);
    uint64_t random = ms_rng_u64(line->jitter & 0xffffffffU, ++line->draws);
    agent_arm(line->retry, retry_wait_ms(&line->tries, retry_cause_of(code),
                                         ms_mono_ms() - line->down_since_ms, most, random));
}

static void log_wait(struct agent *agent, int code)
{
    struct line *line = &agent->line;
    int64_t now = ms_mono_ms();
    int is_trust = code == MS_E_TLS || code == MS_E_REFUSED;
    int64_t since_log = now - line->waited_log_ms;
    if (is_trust && (since_log >= REFUSED_MS || line->tries.attempts == 0)) {
        line->waited_log_ms = now;
        ms_log(MS_LOG_WARNING, "agent.no_trust scheduler=%s reason=%s, retrying", agent->address,
               MS_QUOTE(line->last));
    } else if (!is_trust && since_log >= WAITING_MS) {
        line->waited_log_ms = now;
        ms_log(MS_LOG_INFO,
               "agent.waiting for=\"the scheduler at %s\" since_ms=%" PRId64 " last=%s",
               agent->address, now - line->down_since_ms, MS_QUOTE(line->last));
    }
}

static void arm_deadline(struct agent *agent)
{
    agent->line.is_late = 0;
    if (agent->cfg.connect_timeout_ms >= 0) {
        agent_arm(agent->line.deadline, agent->cfg.connect_timeout_ms);
    }
}

/* " (raise X to wait longer)", or "" where no variable decided. Returns buf. */
static const char *advice(const char *by, char *buf, size_t size)
{
    buf[0] = '\0';
    if (by != NULL && by[0] != '\0') {
        snprintf(buf, size, " (raise %s to wait longer)", by);
    }
    return buf;
}

/* A timer may be early by less than half of one. */
static int64_t whole_seconds(int64_t ms)
{
    return (ms + 500) / 1000;
}

static void give_up_waiting(struct agent *agent)
{
    char text[MS_TEXT_MAX + 1];
    char hint[MS_NAME_MAX];
    snprintf(text, sizeof(text), "no scheduler at %s after %" PRId64 " s%s: %.250s", agent->address,
             whole_seconds(ms_mono_ms() - agent->line.down_since_ms),
             advice(agent->cfg.connect_by, hint, sizeof(hint)), agent->line.last);
    agent_give_lost(agent, MS_E_UNREACHABLE, text);
}

static void give_up_rank(struct agent *agent)
{
    char text[MS_TEXT_MAX + 1];
    snprintf(text, sizeof(text),
             "the scheduler at %s has been gone for %" PRId64
             " ms, longer than a worker with a rank waits (%" PRId64 " ms; the lease is %" PRId64
             " ms); with recovery off the job ends: %.150s",
             agent->address, ms_mono_ms() - agent->line.contact_ms, patience_ms(agent),
             agent->line.lease_ms, agent->line.last);
    agent_give_lost(agent, MS_E_UNREACHABLE, text);
}

static void give_up_trust(struct agent *agent, enum line_state before, int code, const char *reason)
{
    char text[MS_TEXT_MAX + 1];
    const int is_trust = before == LINE_CONNECTING && (code == MS_E_TLS || code == MS_E_REFUSED);
    snprintf(text, sizeof(text), "%.300s", reason);
    if (is_trust && agent->plain_by[0] != '\0') {
        snprintf(text, sizeof(text), "%.300s; here is %s", reason, agent->plain_by);
    }
    agent_give_lost(agent, code, text);
}

static void give_up_word(struct agent *agent)
{
    char text[MS_TEXT_MAX + 1];
    char hint[MS_NAME_MAX];
    struct holding holding = hand_look(&agent->hand);
    snprintf(text, sizeof(text),
             "rank %u of job %" PRIu64
             " does nothing more without its scheduler, which has not been "
             "at %s for %" PRId64 " s: the job ended meanwhile, or nobody started the scheduler "
             "again%s: %.120s",
             holding.rank, holding.job, agent->address,
             whole_seconds(ms_mono_ms() - agent->line.down_since_ms),
             advice(agent->cfg.word_by, hint, sizeof(hint)), agent->line.last);
    agent_give_lost(agent, MS_E_UNREACHABLE, text);
}

static void line_down(struct agent *agent, int code, const char *reason)
{
    struct line *line = &agent->line;
    enum line_state before = line->state;
    int64_t now = ms_mono_ms();
    snprintf(line->last, sizeof(line->last), "%s", reason);
    line->conn = NULL;
    line->state = LINE_DOWN;
    evtimer_del(line->beat);
    if (before == LINE_LEAVING || atomic_load(&agent->ending)) {
        event_base_loopbreak(agent->base);
        return;
    }
    agent_tell_status(agent);
    if (before == LINE_UP) {
        line->down_since_ms = now;
        arm_deadline(agent);
        ms_log(MS_LOG_NOTICE, "agent.disconnected scheduler=%s reason=%s", agent->address,
               MS_QUOTE(reason));
        code = MS_E_UNREACHABLE; /* whatever ended it: it was good, and may be again at once */
    } else if (is_final(agent, before, code)) {
        give_up_trust(agent, before, code, reason);
        return;
    } else {
        log_wait(agent, code);
    }
    if (is_out_of_patience(agent, now - line->contact_ms)) {
        give_up_rank(agent);
        return;
    }
    if (has_waited_enough(agent)) {
        give_up_word(agent);
        return;
    }
    schedule_retry(agent, code);
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    (void)conn;
    line_down(arg, code, reason);
}

/* ---- what we say ---- */

static void send_register(struct agent *agent)
{
    Ms__Register *node = agent->node;
    struct holding holding = hand_look(&agent->hand);
    node->job = holding.job;
    node->generation = holding.generation;
    node->rank = holding.rank;
    node->step = holding.step;
    node->running = holding.started;
    node->level = MS_WIRE_LEVEL; /* what handlers.c has an answer to */
    node->stamp = (ProtobufCBinaryData){agent->line.stamp_bytes, agent->line.stamp};
    struct ms_err err;
    if (ms_conn_send(agent->line.conn, MS_MSG_REGISTER, LINE_REGISTER_ID, &node->base, &err) < 0) {
        ms_log(MS_LOG_WARNING, "agent.register_failed reason=%s, retrying", MS_QUOTE(err.text));
    }
    node->stamp = (ProtobufCBinaryData){0, NULL}; /* borrowed for the call */
}

static void send_heartbeat(struct agent *agent)
{
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    struct holding holding = hand_look(&agent->hand);
    beat.job = holding.job;
    beat.generation = holding.generation;
    beat.step = holding.step;
    beat.phase = holding.phase;
    struct ms_err err;
    if (ms_conn_send(agent->line.conn, MS_MSG_HEARTBEAT, 0, &beat.base, &err) < 0) {
        ms_log(MS_LOG_WARNING, "agent.heartbeat_failed reason=%s, retrying", MS_QUOTE(err.text));
    }
}

void line_beat(struct agent *agent)
{
    if (agent->line.state == LINE_UP) {
        send_heartbeat(agent);
    }
}

/* ---- the line comes up ---- */

static void arm_beat(struct line *line, int64_t ms)
{
    line->beat_due_ms = ms_mono_ms() + ms;
    agent_arm(line->beat, ms);
}

static void on_open(struct ms_conn *conn, void *arg)
{
    struct agent *agent = arg;
    struct line *line = &agent->line;
    int64_t wait = agent->cfg.register_ms > 0 ? agent->cfg.register_ms : MS_REGISTER_MS;
    if (holds_rank(agent) && patience_ms(agent) > wait) {
        wait = patience_ms(agent); /* an end between Register and its answer would look like ours */
    }
    line->conn = conn;
    line->state = LINE_REGISTERING;
    send_register(agent);
    line->register_due_ms = ms_mono_ms() + wait;
    arm_beat(line, wait < MS_HELD_SAY_MS ? wait : MS_HELD_SAY_MS);
}

void line_heard(struct line *line)
{
    line->contact_ms = ms_mono_ms();
    line->silence_told = 0;
}

void line_set_times(struct line *line, uint64_t lease_ms, uint64_t beat_ms)
{
    if (lease_ms >= 1 && lease_ms <= MS_LEASE_MAX_MS && beat_ms >= BEAT_MIN_MS &&
        beat_ms <= lease_ms) {
        line->lease_ms = (int64_t)lease_ms;
        line->beat_ms = (int64_t)beat_ms;
    }
}

void line_take_stamp(struct line *line, const ProtobufCBinaryData *stamp)
{
    if (stamp->len == sizeof(line->stamp)) {
        memcpy(line->stamp, stamp->data, stamp->len);
        line->stamp_bytes = stamp->len;
    }
}

void line_up(struct agent *agent, const Ms__Registered *msg)
{
    struct line *line = &agent->line;
    if (line->state != LINE_REGISTERING) {
        return; /* said twice */
    }
    line->state = LINE_UP;
    line->tries = (struct retry){0};
    line->ever_registered = 1;
    evtimer_del(line->deadline);
    line_set_times(line, msg->lease_ms, msg->heartbeat_ms);
    line_take_stamp(line, &msg->stamp);
    arm_beat(line, line->beat_ms);
    char expected[16] = ""; /* a standing cluster expects no number */
    if (msg->expected > 0) {
        snprintf(expected, sizeof(expected), "/%u", msg->expected);
    }
    ms_log(MS_LOG_INFO, "agent.registered node=%s scheduler=%s lease_ms=%" PRId64 " present=%u%s",
           msg->node_id, agent->address, line->lease_ms, msg->present, expected);
    mailbox_reconnected(&agent->mailbox);
    unsigned dropped = mailbox_flush(&agent->mailbox, line->conn);
    if (dropped > 0) {
        ms_log(MS_LOG_WARNING, "agent.progress_dropped messages=%u, ignoring", dropped);
    }
    agent_tell_status(agent);
    if (atomic_load(&agent->ending)) {
        line_leave(agent);
    }
}

static void note_other(struct agent *agent, const char *reason)
{
    struct line *line = &agent->line;
    int64_t now = ms_mono_ms();
    if (line->other_log_ms == 0 || now - line->other_log_ms >= REFUSED_MS) {
        char quoted[2 * MS_TEXT_MAX];
        line->other_log_ms = now;
        ms_log(MS_LOG_WARNING,
               "agent.other_scheduler scheduler=%s text=\"it is a new one, which does not know the "
               "job of this worker; the job goes on without it, and knocks until the scheduler is "
               "started as it was, with its MS_ENABLE_RECOVERY and MS_RECOVERY_PATH\" reason=%s, "
               "retrying",
               agent->address, ms_log_quote(quoted, sizeof(quoted), reason));
    }
}

void line_refused(struct agent *agent, const Ms__Error *msg)
{
    struct line *line = &agent->line;
    if (may_forget_stamp(agent, msg->code)) {
        char quoted[2 * MS_TEXT_MAX];
        line->stamp_bytes = 0;
        ms_log(MS_LOG_WARNING,
               "agent.other_database scheduler=%s reason=%s, registering as with a new one",
               agent->address, ms_log_quote(quoted, sizeof(quoted), msg->text));
    } else if (is_others(agent, msg->code)) {
        note_other(agent, msg->text);
    } else if (is_final(agent, line->state, msg->code)) {
        agent_give_lost(agent, msg->code, msg->text);
    } else {
        ms_log(MS_LOG_INFO, "agent.not_registered reason=%s, retrying", MS_QUOTE(msg->text));
    }
    ms_conn_close(line->conn);
}

void line_connect(struct agent *agent)
{
    static const struct ms_conn_handler handler = {
        .on_open = on_open, .on_frame = agent_on_frame, .on_close = on_close};
    struct line *line = &agent->line;
    struct ms_err err;
    pthread_mutex_lock(&agent->tls_lock);
    struct ms_conn_options options = {.tls = agent->cfg.tls,
                                      .tls_host = agent->host,
                                      .software = agent->software,
                                      .require_scheduler = agent->cfg.tls != NULL};
    line->state = LINE_CONNECTING;
    int rc = ms_conn_connect(agent->base, agent->address, &options, &handler, agent, &line->conn,
                             &err); /* which takes a reference of its own to tls */
    pthread_mutex_unlock(&agent->tls_lock);
    if (rc < 0) {
        line_down(agent, rc == MS_E_INVALID ? MS_E_INVALID : MS_E_UNREACHABLE, err.text);
    }
}

void line_hurry(struct agent *agent)
{
    if (agent->line.state == LINE_DOWN && !agent->line.lost_told) {
        agent->line.tries = (struct retry){0};
        agent_arm(agent->line.retry, 0);
    }
}

/* ---- timers ---- */

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    line_connect(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct agent *agent = arg;
    struct line *line = &agent->line;
    const int64_t left_ms =
        line->state == LINE_REGISTERING ? line->register_due_ms - ms_mono_ms() : 0;
    if (holds_rank(agent)) { /* it has limits of its own */
        return;
    }
    if (left_ms > 0 && !line->is_late) { /* it is there, and this answer has the time that it has */
        line->is_late = 1;
        agent_arm(line->deadline, left_ms);
    } else {
        give_up_waiting(agent);
    }
}

static void drop(struct agent *agent, const char *reason)
{
    ms_conn_destroy(agent->line.conn);
    line_down(agent, MS_E_TIMEOUT, reason);
}

/* The connection stands, and nobody answers. An idle node begins anew, perhaps on a new scheduler.
 * With a rank in hand it stays, as long as the patience lasts: a scheduler that only stood still
 * would take the end of the connection for the end of the rank. */
static void bear_silence(struct agent *agent, int64_t silent_ms)
{
    struct line *line = &agent->line;
    if (!holds_rank(agent)) {
        drop(agent, "the scheduler has not answered for a whole lease");
        return;
    }
    if (is_out_of_patience(agent, silent_ms)) {
        snprintf(line->last, sizeof(line->last), "the connection stands, but nobody answers");
        give_up_rank(agent);
        return;
    }
    if (silent_ms >= patience_ms(agent)) { /* its machine may be gone, and another one there */
        drop(agent, "the scheduler has not answered for long: the connection is made anew");
        return;
    }
    if (!line->silence_told) {
        line->silence_told = 1;
        ms_log(MS_LOG_WARNING,
               "agent.scheduler_silent scheduler=%s silent_ms=%" PRId64 " patience_ms=%" PRId64
               ", retrying",
               agent->address, silent_ms, patience_ms(agent));
    }
    send_heartbeat(agent);
    arm_beat(line, line->beat_ms);
}

/* What is refused, or taken, is answered at once: it is held, or the scheduler is slow. */
static void bear_hold(struct agent *agent, int64_t left_ms)
{
    struct line *line = &agent->line;
    if (!line->held_told) {
        line->held_told = 1;
        ms_log(MS_LOG_NOTICE,
               "agent.held node=%s scheduler=%s text=\"the scheduler has not answered the "
               "registration yet: it waits for the process that had this node id before, which may "
               "still live or come back, or it is busy\", waiting",
               agent->node->node_id, agent->address);
    }
    arm_beat(line, left_ms);
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct agent *agent = arg;
    struct line *line = &agent->line;
    int64_t now = ms_mono_ms();
    int64_t late_ms = now - line->beat_due_ms;
    if (late_ms > STALL_MS) {
        line->contact_ms += late_ms; /* we slept; what was said meanwhile is not read yet */
        arm_beat(line, line->beat_ms);
        return;
    }
    if (line->state == LINE_REGISTERING && now < line->register_due_ms) {
        bear_hold(agent, line->register_due_ms - now);
        return;
    }
    if (line->state == LINE_REGISTERING) {
        drop(agent, "the scheduler does not answer the registration");
        return;
    }
    if (line->state != LINE_UP) {
        return;
    }
    if (now - line->contact_ms > line->lease_ms) {
        bear_silence(agent, now - line->contact_ms);
        return;
    }
    send_heartbeat(agent);
    arm_beat(line, line->beat_ms);
}

/* ---- the end ---- */

void line_leave(struct agent *agent)
{
    struct line *line = &agent->line;
    Ms__Leave leave = MS__LEAVE__INIT;
    leave.reason = agent->farewell;
    leave.returns = agent->returns;
    switch (line->state) {
    case LINE_UP:
        if (ms_conn_send(line->conn, MS_MSG_LEAVE, 0, &leave.base, NULL) == 0) {
            line->state = LINE_LEAVING;
            ms_conn_close(line->conn); /* on_close ends the loop once the frame is out */
            return;
        }
        break;
    case LINE_REGISTERING: /* the answer first: a node that is not registered cannot leave */
        line->register_due_ms = 0;
        arm_beat(line, LAST_WORDS_MS);
        return;
    case LINE_LEAVING:
        return; /* it is on its way */
    case LINE_DOWN:
    case LINE_CONNECTING:
        break;
    }
    event_base_loopbreak(agent->base);
}

int line_init(struct line *line, struct agent *agent, struct ms_err *err)
{
    line->lease_ms = agent->cfg.lease_ms;
    line->beat_ms = agent->cfg.lease_ms / MS_HEARTBEATS_PER_LEASE;
    line->contact_ms = line->down_since_ms = line->waited_log_ms = ms_mono_ms();
    snprintf(line->last, sizeof(line->last), "still connecting");
    if (getrandom(&line->jitter, sizeof(line->jitter), 0) != sizeof(line->jitter)) {
        line->jitter = (uint64_t)line->contact_ms;
    }
    line->beat = evtimer_new(agent->base, on_beat, agent);
    line->retry = evtimer_new(agent->base, on_retry, agent);
    line->deadline = evtimer_new(agent->base, on_deadline, agent);
    if (line->beat == NULL || line->retry == NULL || line->deadline == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the agent's timers");
    }
    arm_deadline(agent);
    return 0;
}

void line_fini(struct line *line)
{
    struct event *events[] = {line->beat, line->retry, line->deadline};
    for (size_t i = 0; i < MS_ARRAY_SIZE(events); i++) {
        if (events[i] != NULL) {
            event_free(events[i]);
        }
    }
}
