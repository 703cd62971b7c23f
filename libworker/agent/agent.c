/* agent.c - a node's line to the scheduler: registration, heartbeats, orders, in a thread of its
 * own */
#include "libworker/agent/agent.h"

#include "libworker/agent/log_read.h"
#include "libworker/agent/orders.h"
#include "proto/addr.h"
#include "proto/clock.h"
#include "proto/conn.h"
#include "proto/log.h"
#include "proto/rng.h"
#include "proto/wire.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { REGISTER_ID = 1 }; /* frame id of the only request that the agent makes */

struct parcel { /* a packed frame that waits for the connection */
    struct parcel *next;
    uint16_t type;
    size_t size;
    uint8_t bytes[];
};

enum line_state { LINE_DOWN, LINE_CONNECTING, LINE_REGISTERING, LINE_UP };

struct agent {
    struct agent_config cfg;
    char address[MS_ADDR_MAX + 1];
    char host[MS_HOST_MAX + 1];
    char software[MS_NAME_MAX + 1];
    uint8_t *node_bytes; /* the Register message, packed */
    Ms__Register *node;
    pthread_t thread;
    int thread_runs;
    struct event_base *base;
    int wake_fd;
    struct event *wake, *beat, *retry;
    struct orders orders;
    atomic_int leaving, ending;

    /* shared with the trainer under lock */
    pthread_mutex_t lock;
    struct parcel *outbox, **outbox_tail;
    struct parcel *sticky; /* the last RankReady or RankDone, until an order answers it */
    uint64_t job, generation;
    uint32_t rank;
    uint64_t step;
    enum agent_phase phase;
    int started;

    /* the agent's thread only */
    enum line_state state;
    struct ms_conn *conn;
    int64_t born_ms, contact_ms, down_since_ms, waited_log_ms;
    int64_t lease_ms, beat_ms;
    int ever_registered, lost_told;
    uint32_t attempts;
    uint64_t jitter;
};

static struct timeval to_timeval(int64_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

static void arm(struct event *timer, int64_t ms)
{
    struct timeval tv = to_timeval(ms < 0 ? 0 : ms);
    evtimer_add(timer, &tv);
}

/* ---- orders ---- */

static void give_order(struct agent *agent, struct agent_order *order)
{
    if (order->kind == AGENT_STOP || order->kind == AGENT_LOST || order->kind == AGENT_LEAVE) {
        if (agent->cfg.on_stop != NULL) {
            agent->cfg.on_stop(agent->cfg.arg, order);
        }
    }
    orders_push(&agent->orders, order);
}

static void give_lost(struct agent *agent, int code, const char *text)
{
    if (agent->lost_told) {
        return;
    }
    agent->lost_told = 1;
    struct agent_order order = {.kind = AGENT_LOST, .code = code};
    snprintf(order.text, sizeof(order.text), "%s", text);
    give_order(agent, &order);
}

static void drop_sticky(struct agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    free(agent->sticky);
    agent->sticky = NULL;
    pthread_mutex_unlock(&agent->lock);
}

/* ---- sending ---- */

static void send_parcel(struct agent *agent, const struct parcel *parcel)
{
    struct ms_err err;
    if (agent->conn != NULL &&
        ms_conn_send_bytes(agent->conn, parcel->bytes, parcel->size, &err) < 0) {
        ms_log(MS_LOG_WARNING, "agent.send_failed reason=\"%s\", retrying", err.text);
    }
}

static void flush_outbox(struct agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    struct parcel *list = agent->outbox;
    agent->outbox = NULL;
    agent->outbox_tail = &agent->outbox;
    pthread_mutex_unlock(&agent->lock);
    while (list != NULL) {
        struct parcel *next = list->next;
        if (agent->state == LINE_UP) {
            send_parcel(agent, list);
        } /* else: what must not be lost is sticky too */
        free(list);
        list = next;
    }
}

static void send_register(struct agent *agent)
{
    Ms__Register *node = agent->node;
    pthread_mutex_lock(&agent->lock);
    node->job = agent->job;
    node->generation = agent->generation;
    node->rank = agent->rank;
    node->step = agent->step;
    node->running = agent->started;
    pthread_mutex_unlock(&agent->lock);
    struct ms_err err;
    if (ms_conn_send(agent->conn, MS_MSG_REGISTER, REGISTER_ID, &node->base, &err) < 0) {
        ms_log(MS_LOG_WARNING, "agent.register_failed reason=\"%s\", retrying", err.text);
    }
}

static void send_heartbeat(struct agent *agent)
{
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    pthread_mutex_lock(&agent->lock);
    beat.job = agent->job;
    beat.generation = agent->generation;
    beat.step = agent->step;
    beat.phase = agent->phase;
    pthread_mutex_unlock(&agent->lock);
    struct ms_err err;
    if (ms_conn_send(agent->conn, MS_MSG_HEARTBEAT, 0, &beat.base, &err) < 0) {
        ms_log(MS_LOG_WARNING, "agent.heartbeat_failed reason=\"%s\", retrying", err.text);
    }
}

/* ---- the line ---- */

static void connect_now(struct agent *agent);

static int holds_rank(struct agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    int holds = agent->job != 0;
    pthread_mutex_unlock(&agent->lock);
    return holds;
}

static void schedule_retry(struct agent *agent)
{
    /* full jitter: a restarted scheduler is not met by everybody at once */
    int64_t ceiling = MS_RECONNECT_MIN_MS;
    for (uint32_t i = 0; i < agent->attempts && ceiling < MS_RECONNECT_MAX_MS; i++) {
        ceiling *= 2;
    }
    int64_t most = MS_RECONNECT_MAX_MS;
    if (holds_rank(agent) && agent->lease_ms / MS_HEARTBEATS_PER_LEASE < most) {
        /* a restarted scheduler waits for us one lease; and the end of ours must be noticed */
        most = agent->lease_ms / MS_HEARTBEATS_PER_LEASE;
    }
    ceiling = ceiling < most ? ceiling : most;
    agent->attempts++;
    uint64_t wait = ms_rng_below(agent->jitter & 0xffffffffU, agent->attempts, (uint64_t)ceiling);
    arm(agent->retry, (int64_t)wait + MS_RECONNECT_MIN_MS / 2);
}

static int fatal_code(int code)
{
    return code == MS_E_TLS || code == MS_E_REFUSED || code == MS_E_EXISTS ||
           code == MS_E_INVALID || code == MS_E_CONFIG || code == MS_E_UNSUPPORTED;
}

static void line_down(struct agent *agent, int code, const char *reason)
{
    int64_t now = ms_mono_ms();
    agent->conn = NULL;
    if (agent->state == LINE_UP) {
        agent->down_since_ms = now;
        ms_log(MS_LOG_NOTICE, "agent.disconnected scheduler=%s reason=\"%s\"", agent->address,
               reason);
    } else if (now - agent->waited_log_ms >= 10000) {
        agent->waited_log_ms = now;
        ms_log(MS_LOG_INFO,
               "agent.waiting for=\"the scheduler at %s\" since_ms=%" PRId64 " last=\"%s\"",
               agent->address, now - agent->down_since_ms, reason);
    }
    agent->state = LINE_DOWN;
    evtimer_del(agent->beat);
    if (atomic_load(&agent->ending)) {
        event_base_loopbreak(agent->base);
        return;
    }
    char text[MS_TEXT_MAX + 1];
    if (fatal_code(code)) {
        give_lost(agent, code, reason);
        return;
    }
    if (!agent->ever_registered && agent->cfg.connect_timeout_ms >= 0 &&
        now - agent->born_ms >= agent->cfg.connect_timeout_ms) {
        snprintf(text, sizeof(text), "no scheduler at %s after %" PRId64 " s: %s", agent->address,
                 (now - agent->born_ms) / 1000, reason);
        give_lost(agent, MS_E_UNREACHABLE, text);
        return;
    }
    if (holds_rank(agent) && now - agent->contact_ms >= agent->lease_ms) {
        snprintf(text, sizeof(text),
                 "the scheduler at %s has been gone for %" PRId64
                 " ms, longer than the lease of %" PRId64 " ms; with recovery off the job ends: %s",
                 agent->address, now - agent->contact_ms, agent->lease_ms, reason);
        give_lost(agent, MS_E_UNREACHABLE, text);
        return;
    }
    schedule_retry(agent);
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    (void)conn;
    line_down(arg, code, reason);
}

static void on_open(struct ms_conn *conn, void *arg)
{
    struct agent *agent = arg;
    agent->conn = conn;
    agent->state = LINE_REGISTERING;
    send_register(agent);
    arm(agent->beat, agent->cfg.register_ms > 0 ? agent->cfg.register_ms : MS_REGISTER_MS);
}

static void line_up(struct agent *agent, const Ms__Registered *msg)
{
    agent->state = LINE_UP;
    agent->attempts = 0;
    agent->ever_registered = 1;
    agent->contact_ms = ms_mono_ms();
    agent->lease_ms = (int64_t)msg->lease_ms;
    agent->beat_ms = (int64_t)msg->heartbeat_ms;
    arm(agent->beat, agent->beat_ms);
    ms_log(MS_LOG_INFO, "agent.registered node=%s scheduler=%s lease_ms=%" PRIu64 " present=%u/%u",
           msg->node_id, agent->address, msg->lease_ms, msg->present, msg->expected);
    flush_outbox(agent);
    pthread_mutex_lock(&agent->lock);
    struct parcel *sticky = agent->sticky;
    agent->sticky = NULL; /* ours while we send it */
    pthread_mutex_unlock(&agent->lock);
    if (sticky != NULL) {
        send_parcel(agent, sticky);
        pthread_mutex_lock(&agent->lock);
        if (agent->sticky == NULL) {
            agent->sticky = sticky;
            sticky = NULL;
        }
        pthread_mutex_unlock(&agent->lock);
        free(sticky);
    }
}

/* ---- messages ---- */

static void take_assign(struct agent *agent, ProtobufCMessage *msg)
{
    Ms__Assign *assign = (Ms__Assign *)msg;
    struct agent_order order = {.kind = AGENT_ASSIGN,
                                .job = assign->job,
                                .generation = assign->generation,
                                .assign = assign};
    drop_sticky(agent);
    agent_hold(agent, assign->job, assign->generation, assign->rank);
    give_order(agent, &order);
}

static void take_start(struct agent *agent, const Ms__Start *start)
{
    struct agent_order order = {
        .kind = AGENT_START, .job = start->job, .generation = start->generation};
    drop_sticky(agent);
    pthread_mutex_lock(&agent->lock);
    agent->started = 1;
    pthread_mutex_unlock(&agent->lock);
    give_order(agent, &order);
}

static void take_stop(struct agent *agent, const Ms__Stop *stop)
{
    struct agent_order order = {.kind = AGENT_STOP,
                                .job = stop->job,
                                .generation = stop->generation,
                                .code = stop->code,
                                .at_step = stop->at_step};
    snprintf(order.text, sizeof(order.text), "%s", stop->text);
    if (!stop->at_step) {
        drop_sticky(agent);
    }
    give_order(agent, &order);
}

static void take_error(struct agent *agent, uint32_t id, const Ms__Error *msg)
{
    if (id == REGISTER_ID && agent->state == LINE_REGISTERING) {
        if (fatal_code(msg->code)) {
            give_lost(agent, msg->code, msg->text);
        } else {
            ms_log(MS_LOG_INFO, "agent.not_registered reason=\"%s\", retrying", msg->text);
        }
        ms_conn_close(agent->conn);
        return;
    }
    ms_log(MS_LOG_WARNING, "agent.refused reason=\"%s\", ignoring", msg->text);
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct agent *agent = arg;
    struct ms_err err;
    ProtobufCMessage *msg = NULL;
    if (ms_wire_unpack(head->type, bytes, head->length, &msg, &err) < 0) {
        ms_log(MS_LOG_WARNING, "agent.bad_message reason=\"%s\", ignoring", err.text);
        return;
    }
    agent->contact_ms = ms_mono_ms();
    switch (head->type) {
    case MS_MSG_REGISTERED:
        line_up(agent, (Ms__Registered *)msg);
        break;
    case MS_MSG_ASSIGN:
        take_assign(agent, msg);
        return; /* the order owns it now */
    case MS_MSG_START:
        take_start(agent, (Ms__Start *)msg);
        break;
    case MS_MSG_STOP:
        take_stop(agent, (Ms__Stop *)msg);
        break;
    case MS_MSG_ERROR:
        take_error(agent, head->id, (Ms__Error *)msg);
        break;
    case MS_MSG_LOG_READ:
        log_read_answer(conn, (Ms__LogRead *)msg, agent->cfg.log_path, agent->cfg.arg);
        break;
    case MS_MSG_FETCH_GRANT:
        if (agent->cfg.on_fetch != NULL) {
            agent->cfg.on_fetch(agent->cfg.arg, (const Ms__FetchGrant *)msg);
        }
        break;
    case MS_MSG_HEARTBEAT_ACK: {
        const Ms__HeartbeatAck *ack = (Ms__HeartbeatAck *)msg;
        agent->lease_ms = (int64_t)ack->lease_ms;
        agent->beat_ms = (int64_t)ack->heartbeat_ms;
        break;
    }
    default: /* Ok, and what newer schedulers say */
        break;
    }
    ms_wire_free(msg);
}

static void connect_now(struct agent *agent)
{
    static const struct ms_conn_handler handler = {
        .on_open = on_open, .on_frame = on_frame, .on_close = on_close};
    struct ms_conn_options options = {.tls = agent->cfg.tls,
                                      .tls_host = agent->host,
                                      .software = agent->software,
                                      .require_scheduler = agent->cfg.tls != NULL};
    struct ms_err err;
    agent->state = LINE_CONNECTING;
    int rc =
        ms_conn_connect(agent->base, agent->address, &options, &handler, agent, &agent->conn, &err);
    if (rc < 0) {
        line_down(agent, rc == MS_E_INVALID ? MS_E_INVALID : MS_E_UNREACHABLE, err.text);
    }
}

/* ---- timers and wake-ups ---- */

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    connect_now(arg);
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct agent *agent = arg;
    if (agent->state == LINE_REGISTERING) {
        ms_conn_destroy(agent->conn);
        line_down(agent, MS_E_TIMEOUT, "the scheduler does not answer the registration");
        return;
    }
    if (agent->state != LINE_UP) {
        return;
    }
    if (ms_mono_ms() - agent->contact_ms > agent->lease_ms) {
        /* the connection is open but nobody answers: begin anew, perhaps on a new scheduler */
        ms_conn_destroy(agent->conn);
        line_down(agent, MS_E_TIMEOUT, "the scheduler has not answered for a whole lease");
        return;
    }
    send_heartbeat(agent);
    arm(agent->beat, agent->beat_ms);
}

static void say_leave(struct agent *agent)
{
    Ms__Leave leave = MS__LEAVE__INIT;
    char reason[] = "the worker process ends";
    leave.reason = reason;
    struct ms_err err;
    if (agent->state == LINE_UP &&
        ms_conn_send(agent->conn, MS_MSG_LEAVE, 0, &leave.base, &err) == 0) {
        ms_conn_close(agent->conn); /* on_close ends the loop once the frame is out */
        return;
    }
    event_base_loopbreak(agent->base);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct agent *agent = arg;
    uint64_t count = 0;
    ssize_t n = read(fd, &count, sizeof(count));
    (void)n;
    if (atomic_exchange(&agent->leaving, 0)) {
        struct agent_order order = {.kind = AGENT_LEAVE};
        give_order(agent, &order);
    }
    if (agent->state == LINE_UP) {
        flush_outbox(agent);
    }
    if (atomic_load(&agent->ending)) {
        say_leave(agent);
    }
}

static void *agent_main(void *arg)
{
    struct agent *agent = arg;
    connect_now(agent);
    event_base_loop(agent->base, EVLOOP_NO_EXIT_ON_EMPTY);
    if (agent->conn != NULL) {
        ms_conn_destroy(agent->conn);
    }
    return NULL;
}

/* ---- what the trainer calls ---- */

static void wake(struct agent *agent)
{
    uint64_t one = 1;
    ssize_t n = write(agent->wake_fd, &one, sizeof(one));
    (void)n; /* a full counter wakes as well */
}

int agent_next(struct agent *agent, struct agent_order *ret, int64_t timeout_ms)
{
    return orders_take(&agent->orders, ret, timeout_ms);
}

void agent_hold(struct agent *agent, uint64_t job, uint64_t generation, uint32_t rank)
{
    pthread_mutex_lock(&agent->lock);
    agent->job = job;
    agent->generation = generation;
    agent->rank = rank;
    agent->step = 0;
    agent->started = 0;
    agent->phase = AGENT_PREPARING;
    pthread_mutex_unlock(&agent->lock);
}

void agent_set_phase(struct agent *agent, enum agent_phase phase, uint64_t step)
{
    pthread_mutex_lock(&agent->lock);
    agent->phase = phase;
    agent->step = step;
    pthread_mutex_unlock(&agent->lock);
}

void agent_release(struct agent *agent, uint64_t generation)
{
    pthread_mutex_lock(&agent->lock);
    if (agent->generation == generation) {
        agent->job = 0;
        agent->generation = 0;
        agent->rank = 0;
        agent->step = 0;
        agent->started = 0;
        agent->phase = AGENT_IDLE;
    }
    pthread_mutex_unlock(&agent->lock);
}

static struct parcel *pack(uint16_t type, const ProtobufCMessage *msg, struct ms_err *err)
{
    size_t size = ms_wire_size(msg);
    struct parcel *parcel = malloc(sizeof(*parcel) + size);
    if (parcel == NULL) {
        ms_fail(err, MS_E_NOMEM, "no memory for a message of %zu bytes", size);
        return NULL;
    }
    parcel->next = NULL;
    parcel->type = type;
    parcel->size = size;
    if (ms_wire_pack(type, 0, msg, parcel->bytes, size, err) < 0) {
        free(parcel);
        return NULL;
    }
    return parcel;
}

int agent_send(struct agent *agent, uint16_t type, const ProtobufCMessage *msg, struct ms_err *err)
{
    struct parcel *parcel = pack(type, msg, err);
    if (parcel == NULL) {
        return err != NULL ? err->code : MS_E_NOMEM;
    }
    struct parcel *copy = NULL;
    if (type == MS_MSG_RANK_READY || type == MS_MSG_RANK_DONE) {
        copy = pack(type, msg, err);
        if (copy == NULL) {
            free(parcel);
            return err != NULL ? err->code : MS_E_NOMEM;
        }
    }
    pthread_mutex_lock(&agent->lock);
    *agent->outbox_tail = parcel;
    agent->outbox_tail = &parcel->next;
    if (copy != NULL) {
        free(agent->sticky);
        agent->sticky = copy;
    }
    pthread_mutex_unlock(&agent->lock);
    wake(agent);
    return 0;
}

void agent_leave(struct agent *agent)
{
    atomic_store(&agent->leaving, 1);
    wake(agent);
}

static int copy_node(struct agent *agent, const Ms__Register *node, struct ms_err *err)
{
    size_t size = protobuf_c_message_get_packed_size(&node->base);
    agent->node_bytes = malloc(size + 1);
    if (agent->node_bytes == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the agent");
    }
    protobuf_c_message_pack(&node->base, agent->node_bytes);
    agent->node = ms__register__unpack(NULL, size, agent->node_bytes);
    return agent->node != NULL ? 0 : ms_fail(err, MS_E_NOMEM, "no memory for the agent");
}

static void agent_free(struct agent *agent)
{
    struct event *events[] = {agent->wake, agent->beat, agent->retry};
    for (size_t i = 0; i < MS_ARRAY_SIZE(events); i++) {
        if (events[i] != NULL) {
            event_free(events[i]);
        }
    }
    if (agent->base != NULL) {
        event_base_free(agent->base);
    }
    if (agent->wake_fd >= 0) {
        close(agent->wake_fd);
    }
    while (agent->outbox != NULL) {
        struct parcel *next = agent->outbox->next;
        free(agent->outbox);
        agent->outbox = next;
    }
    free(agent->sticky);
    if (agent->node != NULL) {
        ms__register__free_unpacked(agent->node, NULL);
    }
    free(agent->node_bytes);
    orders_fini(&agent->orders);
    pthread_mutex_destroy(&agent->lock);
    free(agent);
}

static int make_loop(struct agent *agent, struct ms_err *err)
{
    agent->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    agent->base = event_base_new();
    if (agent->wake_fd < 0 || agent->base == NULL) {
        return ms_fail_errno(err, MS_E_IO, "cannot make the agent's event loop");
    }
    agent->wake = event_new(agent->base, agent->wake_fd, EV_READ | EV_PERSIST, on_wake, agent);
    agent->beat = evtimer_new(agent->base, on_beat, agent);
    agent->retry = evtimer_new(agent->base, on_retry, agent);
    if (agent->wake == NULL || agent->beat == NULL || agent->retry == NULL ||
        event_add(agent->wake, NULL) != 0) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the agent's timers");
    }
    return 0;
}

int agent_create(const struct agent_config *cfg, struct agent **ret, struct ms_err *err)
{
    struct ms_addr addr;
    int rc = ms_addr_parse(cfg->address, 0, &addr, err);
    if (rc < 0) {
        return rc;
    }
    struct agent *agent = calloc(1, sizeof(*agent));
    if (agent == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the agent");
    }
    agent->cfg = *cfg;
    agent->wake_fd = -1;
    agent->outbox_tail = &agent->outbox;
    pthread_mutex_init(&agent->lock, NULL);
    orders_init(&agent->orders);
    snprintf(agent->address, sizeof(agent->address), "%s", cfg->address);
    snprintf(agent->host, sizeof(agent->host), "%s", addr.host);
    snprintf(agent->software, sizeof(agent->software), "%s", cfg->software);
    agent->lease_ms = cfg->lease_ms;
    agent->beat_ms = cfg->lease_ms / MS_HEARTBEATS_PER_LEASE;
    agent->born_ms = agent->contact_ms = agent->down_since_ms = agent->waited_log_ms = ms_mono_ms();
    if (getrandom(&agent->jitter, sizeof(agent->jitter), 0) != sizeof(agent->jitter)) {
        agent->jitter = (uint64_t)agent->born_ms;
    }
    rc = copy_node(agent, cfg->node, err);
    if (rc == 0) {
        rc = make_loop(agent, err);
    }
    if (rc == 0 && pthread_create(&agent->thread, NULL, agent_main, agent) != 0) {
        rc = ms_fail(err, MS_E_NOMEM, "cannot start the agent's thread");
    }
    if (rc < 0) {
        agent_free(agent);
        return rc;
    }
    agent->thread_runs = 1;
    *ret = agent;
    return 0;
}

void agent_destroy(struct agent *agent)
{
    if (agent == NULL) {
        return;
    }
    if (agent->thread_runs) {
        atomic_store(&agent->ending, 1);
        wake(agent);
        pthread_join(agent->thread, NULL);
    }
    agent_free(agent);
}
