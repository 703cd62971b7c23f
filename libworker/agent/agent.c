/* agent.c - a node's line to the scheduler, in a thread of its own: its life and its orders */
#include "libworker/agent/agent_impl.h"

#include "proto/addr.h"
#include "proto/clock.h"
#include "proto/notify.h"
#include "proto/thread.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void agent_arm(struct event *timer, int64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)((ms < 0 ? 0 : ms) / 1000),
                         .tv_usec = (suseconds_t)((ms < 0 ? 0 : ms) % 1000) * 1000};
    evtimer_add(timer, &tv);
}

void agent_wake(struct agent *agent)
{
    uint64_t one = 1;
    ssize_t n = write(agent->wake_fd, &one, sizeof(one));
    (void)n; /* a full counter wakes as well */
}

/* ---- orders ---- */

int agent_give(struct agent *agent, struct agent_order *order)
{
    if (order->kind == AGENT_STOP || order->kind == AGENT_LOST || order->kind == AGENT_LEAVE) {
        if (!order->at_step || order->code != 0) { /* else no step is waited for, but its disk */
            grace_begin(agent, order);
        }
        snprintf(agent->ended_by, sizeof(agent->ended_by), "%s", order->at_step ? "" : order->text);
    }
    return agent->cfg.on_order(agent->cfg.arg, order);
}

void agent_give_lost(struct agent *agent, int code, const char *text)
{
    struct line *line = &agent->line;
    if (line->lost_told) {
        return;
    }
    line->lost_told = 1;
    evtimer_del(line->deadline);
    struct agent_order order = {.kind = AGENT_LOST, .code = code};
    snprintf(order.text, sizeof(order.text), "%s", text);
    agent_give(agent, &order);
}

/* What the service manager shows of this process: told where it has changed. */
void agent_tell_status(struct agent *agent)
{
    char status[sizeof(agent->status)];
    struct holding holding = hand_look(&agent->hand);
    const struct line *line = &agent->line;
    atomic_store(&agent->is_up, line->state == LINE_UP);
    if (line->state != LINE_UP) {
        snprintf(status, sizeof(status), "STATUS=waits for the scheduler at %s%s%.300s",
                 agent->address, line->last[0] != '\0' ? ": " : "", line->last);
    } else if (holding.job != 0) {
        snprintf(status, sizeof(status), "STATUS=rank %u of job %" PRIu64 "; registered as %s",
                 holding.rank, holding.job, agent->node->node_id);
    } else {
        snprintf(status, sizeof(status), "STATUS=idle; registered as %s with %s",
                 agent->node->node_id, agent->address);
    }
    for (char *at = status; *at != '\0'; at++) {
        *at = (unsigned char)*at < ' ' ? ' ' : *at; /* a line each would be an order of its own */
    }
    if (strcmp(status, agent->status) != 0) {
        memcpy(agent->status, status, sizeof(status));
        ms_notify(status);
    }
}

/* ---- the thread ---- */

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    uint64_t count = 0;
    (void)what;
    ssize_t n = read(fd, &count, sizeof(count));
    (void)n;
    if (atomic_exchange(&agent->leaving, 0)) {
        struct agent_order order = {.kind = AGENT_LEAVE};
        agent->has_left = 1;
        agent_give(agent, &order);
    }
    if (atomic_exchange(&agent->holds, 0)) {
        line_beat(agent); /* the last one may be long ago, and people look now */
    }
    if (agent->line.state == LINE_UP) {
        mailbox_flush(&agent->mailbox, agent->line.conn);
    }
    if (atomic_exchange(&agent->harden, 0)) {
        grace_harden(agent);
    }
    if (atomic_exchange(&agent->hurry, 0)) {
        line_hurry(agent);
    }
    if (atomic_load(&agent->ending)) {
        line_leave(agent);
    } else {
        agent_tell_status(agent);
    }
}

static void *agent_main(void *arg)
{
    struct agent *agent = arg;
    line_connect(agent);
    event_base_loop(agent->base, EVLOOP_NO_EXIT_ON_EMPTY);
    ms_conn_destroy(agent->line.conn);
    return NULL;
}

/* ---- what the trainer calls ---- */

void agent_set_phase(struct agent *agent, uint64_t generation, enum agent_phase phase,
                     uint64_t step)
{
    hand_tell(&agent->hand, generation, phase, step);
}

void agent_await_word(struct agent *agent, int waits)
{
    atomic_store(&agent->awaits_since_ms, waits ? ms_mono_ms() : 0);
}

void agent_rest(struct agent *agent, uint64_t generation)
{
    hand_rest(&agent->hand, generation);
}

void agent_stir(struct agent *agent)
{
    hand_stir(&agent->hand);
}

void agent_release(struct agent *agent, uint64_t generation)
{
    hand_release(&agent->hand, generation);
    agent_wake(agent); /* it is idle now */
}

int agent_is_away(struct agent *agent)
{
    return !atomic_load(&agent->is_up);
}

int agent_send(struct agent *agent, uint16_t type, const ProtobufCMessage *msg, struct ms_err *err)
{
    int rc = mailbox_put(&agent->mailbox, type, msg, err);
    if (rc == 0) {
        atomic_fetch_or(&agent->holds, type == MS_MSG_PEER_REPORT);
        agent_wake(agent);
    }
    return rc;
}

void agent_farewell(struct agent *agent, const char *reason, int returns)
{
    agent->returns = returns;
    snprintf(agent->farewell, sizeof(agent->farewell), "%s", reason);
}

void agent_leave(struct agent *agent)
{
    atomic_store(&agent->leaving, 1);
    agent_wake(agent);
}

void agent_set_tls(struct agent *agent, SSL_CTX *tls)
{
    SSL_CTX_up_ref(tls);
    pthread_mutex_lock(&agent->tls_lock);
    SSL_CTX *old = agent->cfg.tls;
    agent->cfg.tls = tls;
    pthread_mutex_unlock(&agent->tls_lock);
    SSL_CTX_free(old); /* a connection that stands holds it by a reference of its own */
    atomic_store(&agent->hurry, 1);
    agent_wake(agent);
}

/* ---- its life ---- */

static int copy_node(struct agent *agent, const Ms__Register *node, struct ms_err *err)
{
    size_t size = protobuf_c_message_get_packed_size(&node->base);
    uint8_t *bytes = malloc(size + 1);
    if (bytes != NULL) {
        protobuf_c_message_pack(&node->base, bytes);
        agent->node = ms__register__unpack(NULL, size, bytes);
    }
    free(bytes);
    return agent->node != NULL ? 0 : ms_fail(err, MS_E_NOMEM, "no memory for the agent");
}

static void agent_free(struct agent *agent)
{
    grace_fini(&agent->grace);
    line_fini(&agent->line);
    if (agent->wake != NULL) {
        event_free(agent->wake);
    }
    if (agent->base != NULL) {
        event_base_free(agent->base);
    }
    if (agent->wake_fd >= 0) {
        close(agent->wake_fd);
    }
    if (agent->node != NULL) {
        ms__register__free_unpacked(agent->node, NULL);
    }
    SSL_CTX_free(agent->cfg.tls);
    mailbox_fini(&agent->mailbox);
    pthread_mutex_destroy(&agent->tls_lock);
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
    if (agent->wake == NULL || event_add(agent->wake, NULL) != 0) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the agent's timers");
    }
    return line_init(&agent->line, agent, err);
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
    if (cfg->tls != NULL) {
        SSL_CTX_up_ref(cfg->tls);
    }
    agent->wake_fd = -1;
    pthread_mutex_init(&agent->tls_lock, NULL);
    mailbox_init(&agent->mailbox);
    grace_init(&agent->grace);
    agent_farewell(agent, "the worker process ends", 0);
    snprintf(agent->address, sizeof(agent->address), "%s", cfg->address);
    snprintf(agent->host, sizeof(agent->host), "%s", addr.host);
    snprintf(agent->software, sizeof(agent->software), "%s", cfg->software);
    snprintf(agent->plain_by, sizeof(agent->plain_by), "%s",
             cfg->plain_by != NULL ? cfg->plain_by : "");
    rc = copy_node(agent, cfg->node, err);
    if (rc == 0) {
        rc = make_loop(agent, err);
    }
    if (rc == 0 && ms_thread_start(&agent->thread, agent_main, agent) != 0) {
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
        agent_wake(agent);
        pthread_join(agent->thread, NULL);
    }
    agent_free(agent);
}
