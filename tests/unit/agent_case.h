/* agent_case.h - an agent with a trainer's end that remembers, for the tests of test_agent*.c */
#ifndef AGENT_CASE_H
#define AGENT_CASE_H

#include "libworker/agent/agent.h"
#include "tests/unit/desk.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_int stops, hangs, supersedes;
static atomic_int has_ended; /* its rank has: a stop after the step changes nothing */
static char hang_text[MS_TEXT_MAX + 1];

/* The trainer's end: what the agent told, until the case looks. */
enum { INBOX_MAX = 1024, ASSIGNS_MAX = 2 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct agent_order orders[INBOX_MAX];
    unsigned first, count, assigns;
} inbox = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* Two Assigns wait at the most, and ranks wait for the plan of generation 3, as on a node. */
static inline int on_order(void *arg, const struct agent_order *order)
{
    (void)arg;
    pthread_mutex_lock(&inbox.lock);
    int has_room = (order->assign == NULL || inbox.assigns < ASSIGNS_MAX) &&
                   (order->plan == NULL || order->generation == 3) &&
                   !(order->at_step && atomic_load(&has_ended));
    if (has_room && inbox.count < INBOX_MAX) {
        inbox.orders[(inbox.first + inbox.count++) % INBOX_MAX] = *order;
        inbox.assigns += order->assign != NULL;
        pthread_cond_signal(&inbox.more);
    }
    pthread_mutex_unlock(&inbox.lock);
    atomic_fetch_add(&stops, order->kind != AGENT_ASSIGN && order->kind != AGENT_START &&
                                 order->kind != AGENT_PLAN);
    return !has_room ? MS_E_FULL : order->assign != NULL ? atomic_load(&supersedes) : 0;
}

/* The oldest order. 0: there is none; waits: until there is one. */
static inline int take_order(struct agent_order *ret, int waits)
{
    pthread_mutex_lock(&inbox.lock);
    while (waits && inbox.count == 0) {
        pthread_cond_wait(&inbox.more, &inbox.lock);
    }
    int found = inbox.count > 0;
    if (found) {
        *ret = inbox.orders[inbox.first];
        inbox.first = (inbox.first + 1) % INBOX_MAX;
        inbox.count--;
        inbox.assigns -= ret->assign != NULL;
    }
    pthread_mutex_unlock(&inbox.lock);
    return found;
}

static inline void on_hang(void *arg, const char *text)
{
    (void)arg;
    snprintf(hang_text, sizeof(hang_text), "%s", text);
    atomic_fetch_add(&hangs, 1);
}

static char log_file[128];

static inline int find_log(void *arg, const Ms__LogRead *request, char *buf, size_t size)
{
    (void)arg;
    snprintf(buf, size, "%s", log_file);
    return request->job == 7 && request->rank == 0;
}

/* What most cases want; the case changes the rest. */
static inline struct agent_config config_for(const char *address)
{
    return (struct agent_config){.address = address,
                                 .software = "msworker test",
                                 .connect_timeout_ms = -1,
                                 .lease_ms = 500,
                                 .register_ms = 200,
                                 .on_order = on_order,
                                 .on_hang = on_hang,
                                 .log_path = find_log};
}

static inline struct agent *start_with(const struct agent_config *cfg)
{
    static char id[] = "w1";
    Ms__Register node = MS__REGISTER__INIT;
    struct agent_config with = *cfg;
    struct agent *agent = NULL;
    node.node_id = id;
    node.incarnation = 5;
    with.node = &node;
    atomic_store(&stops, 0);
    atomic_store(&hangs, 0);
    atomic_store(&supersedes, 0);
    ck_ms_ok(agent_create(&with, &agent, err));
    return agent;
}

static inline struct agent *start_tls(const char *address, int64_t connect_timeout_ms, SSL_CTX *tls)
{
    struct agent_config cfg = config_for(address);
    cfg.connect_timeout_ms = connect_timeout_ms;
    cfg.tls = tls;
    return start_with(&cfg);
}

static inline struct agent *start(const char *address, int64_t connect_timeout_ms)
{
    return start_tls(address, connect_timeout_ms, NULL);
}

static inline void send_assign_of(struct desk *desk, uint64_t generation)
{
    static uint8_t token[MS_TOKEN_LEN] = {1}, json[] = "{}";
    Ms__Member member = MS__MEMBER__INIT;
    Ms__Member *list[] = {&member};
    Ms__Assign assign = MS__ASSIGN__INIT;
    assign.job = 7;
    assign.generation = generation;
    assign.world_size = 1;
    assign.members = list;
    assign.n_members = 1;
    assign.token = (ProtobufCBinaryData){sizeof(token), token};
    assign.job_json = (ProtobufCBinaryData){2, json};
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_ASSIGN, 0, &assign.base, err));
}

static inline void send_assign(struct desk *desk)
{
    send_assign_of(desk, 3);
}

/* Runs the desk's loop until the agent has an order. */
static inline struct agent_order next(struct desk *desk)
{
    struct agent_order order;
    until(desk, take_order(&order, 0));
    return order;
}

/* A desk with an agent that holds rank 0 of generation 3. */
static inline struct agent *hold(struct desk *desk, struct agent_config *cfg)
{
    desk_open(desk);
    cfg->address = desk->address;
    struct agent *agent = start_with(cfg);
    until(desk, desk->n_registers == 1);
    send_assign(desk);
    struct agent_order order = next(desk);
    ck_assert_int_eq(order.kind, AGENT_ASSIGN);
    ms_wire_free(&order.assign->base);
    return agent;
}

static inline void let_go(struct desk *desk, struct agent *agent)
{
    ms_conn_destroy(desk->conn);
    desk->conn = NULL;
    agent_destroy(agent);
    desk_shut(desk);
}

#endif
