/* desk.h - a scheduler's end of a real connection on loopback, for tests of what a node says */
#ifndef DESK_H
#define DESK_H

#include "proto/cert.h"
#include "proto/cluster.pb-c.h"
#include "proto/conn.h"
#include "proto/digest.h"
#include "proto/limits.h"
#include "proto/text.h"
#include "proto/wire.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* A listener and the connection that the agent opened; the loop runs on the test's thread. */
struct desk {
    struct event_base *base;
    struct event *listen_event;
    int listen_fd;
    char address[64];
    struct ms_conn *conn;
    int n_registers, n_beats, n_ready, n_leaves, n_closed, n_progress, n_done;
    int n_saved; /* Progress of a checkpoint alone ... */
    uint64_t saved;
    int n_evals; /* Progress with an evaluation ... */
    struct {
        uint64_t job, generation, step;
        char phase[MS_NAME_MAX + 1];
    } evals[256]; /* ... the last of them, the n-th at n % 256 */
    SSL_CTX *tls;
    struct {
        uint64_t job, generation;
        int32_t code;
        int leaving;
        char text[MS_TEXT_MAX + 1];
        char weights[MS_SHA256_HEX];
    } done[8]; /* the first ends of ranks, in the order in which they came */
    uint64_t last_job, last_generation, last_step;
    uint64_t register_step;    /* of the last Register */
    uint64_t ready_generation; /* of the last RankReady; likewise: */
    uint64_t ready_step;
    uint64_t first_step; /* that a Progress of that generation tells, behind ready_step */
    char ready_plan[MS_SHA256_HEX]; /* likewise: plan_sha256 */
    int n_reports;                  /* PeerReports */
    uint64_t report_generation;     /* of the last one; likewise: */
    uint32_t report_peer;
    int n_plans; /* RankPlans */
    char *plan;  /* of the last one; malloc'ed */
    int last_running;
    uint8_t stamp[MS_STAMP_LEN];      /* that Registered and HeartbeatAck tell, where tells_stamp */
    uint8_t last_stamp[MS_STAMP_LEN]; /* that the last Register brought back */
    size_t last_stamp_bytes;
    int tells_stamp;
    const char *refuse_with; /* a text, where not now is the answer to Register */
    int refuse;              /* a code: so it answers Register */
    int mute, silent;        /* silent: heartbeats are not answered */
    char chunk[128];
    char farewell[MS_TEXT_MAX + 1]; /* of the last Leave */
    int returns;                    /* likewise */
    int refuses_stamps;             /* all are of another database: n_foreign, no registers */
    int n_foreign;
    int saves_late; /* a rank has work after it has said that it is done */
};

static inline ProtobufCBinaryData desk_stamp(struct desk *desk)
{
    return (ProtobufCBinaryData){desk->tells_stamp ? sizeof(desk->stamp) : 0, desk->stamp};
}

static uint64_t desk_heartbeat_ms = 20; /* what it asks of its agent */

static inline void send_registered(struct desk *desk, uint32_t id)
{
    Ms__Registered msg = MS__REGISTERED__INIT;
    msg.lease_ms = 25 * desk_heartbeat_ms;
    msg.heartbeat_ms = desk_heartbeat_ms;
    msg.stamp = desk_stamp(desk);
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_REGISTERED, id, &msg.base, err));
}

static inline void send_ack(struct desk *desk)
{
    Ms__HeartbeatAck ack = MS__HEARTBEAT_ACK__INIT;
    ack.lease_ms = 25 * desk_heartbeat_ms;
    ack.heartbeat_ms = desk_heartbeat_ms;
    ack.stamp = desk_stamp(desk);
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_HEARTBEAT_ACK, 0, &ack.base, err));
}

static inline void send_foreign(struct desk *desk, uint32_t id)
{
    char text[] = "another database is in its place";
    Ms__Error refusal = MS__ERROR__INIT;
    refusal.code = MS_E_FOREIGN;
    refusal.text = text;
    desk->n_foreign++;
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_ERROR, id, &refusal.base, err));
}

static inline void take_register(struct desk *desk, uint32_t id, const Ms__Register *msg)
{
    if (desk->refuses_stamps && msg->stamp.len > 0) {
        send_foreign(desk, id);
        return;
    }
    desk->n_registers++;
    desk->last_job = msg->job;
    desk->last_generation = msg->generation;
    desk->last_running = msg->running;
    desk->register_step = msg->step;
    desk->last_stamp_bytes = msg->stamp.len;
    ck_assert_uint_eq(msg->level, MS_WIRE_LEVEL); /* else it is taken for release 0.1 */
    if (msg->stamp.len > 0) {
        memcpy(desk->last_stamp, msg->stamp.data,
               msg->stamp.len <= sizeof(desk->last_stamp) ? msg->stamp.len : 0);
    }
    if (desk->mute) {
        return;
    }
    if (desk->refuse_with != NULL) {
        Ms__Error refusal = MS__ERROR__INIT;
        refusal.code = MS_E_FULL;
        refusal.text = (char *)(uintptr_t)desk->refuse_with;
        ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_ERROR, id, &refusal.base, err));
        return;
    }
    if (desk->refuse) {
        char text[] = "node w1 is registered already by pid 7";
        Ms__Error refusal = MS__ERROR__INIT;
        refusal.code = desk->refuse;
        refusal.text = text;
        ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_ERROR, id, &refusal.base, err));
        return;
    }
    send_registered(desk, id);
}

static inline void desk_done(struct desk *desk, const Ms__RankDone *msg)
{
    if (desk->n_done < (int)MS_ARRAY_SIZE(desk->done)) {
        desk->done[desk->n_done].job = msg->job;
        desk->done[desk->n_done].generation = msg->generation;
        desk->done[desk->n_done].code = msg->code;
        desk->done[desk->n_done].leaving = msg->leaving;
        snprintf(desk->done[desk->n_done].text, sizeof(desk->done[0].text), "%s", msg->text);
        snprintf(desk->done[desk->n_done].weights, sizeof(desk->done[0].weights), "%s",
                 msg->weights_sha256);
    }
    desk->n_done++;
}

static inline void desk_eval(struct desk *desk, const Ms__Progress *msg)
{
    const size_t at = (size_t)desk->n_evals++ % MS_ARRAY_SIZE(desk->evals);
    desk->evals[at].job = msg->job;
    desk->evals[at].generation = msg->generation;
    desk->evals[at].step = msg->step;
    ms_text_copy(desk->evals[at].phase, sizeof(desk->evals[at].phase), msg->phase);
}

static inline void desk_frame(struct ms_conn *conn, const struct ms_wire_header *head,
                              const uint8_t *bytes, void *arg)
{
    struct desk *desk = arg;
    ProtobufCMessage *msg = NULL;
    (void)conn;
    ck_ms_ok(ms_wire_unpack(head->type, bytes, head->length, &msg, err));
    switch (head->type) {
    case MS_MSG_REGISTER:
        take_register(desk, head->id, (Ms__Register *)msg);
        break;
    case MS_MSG_HEARTBEAT:
        desk->n_beats++;
        desk->last_job = ((Ms__Heartbeat *)msg)->job;
        desk->last_step = ((Ms__Heartbeat *)msg)->step;
        if (!desk->silent) {
            send_ack(desk);
        }
        break;
    case MS_MSG_RANK_READY:
        desk->n_ready++;
        desk->ready_generation = ((Ms__RankReady *)msg)->generation;
        desk->ready_step = ((Ms__RankReady *)msg)->step;
        desk->first_step = 0;
        snprintf(desk->ready_plan, sizeof(desk->ready_plan), "%s",
                 ((Ms__RankReady *)msg)->plan_sha256);
        break;
    case MS_MSG_RANK_PLAN:
        desk->n_plans++;
        free(desk->plan);
        desk->plan = strdup(((Ms__RankPlan *)msg)->plan);
        break;
    case MS_MSG_PEER_REPORT:
        desk->n_reports++;
        desk->report_generation = ((Ms__PeerReport *)msg)->generation;
        desk->report_peer = ((Ms__PeerReport *)msg)->peer;
        break;
    case MS_MSG_ERROR: /* why it ends the line */
        break;
    case MS_MSG_LEAVE:
        desk->n_leaves++;
        snprintf(desk->farewell, sizeof(desk->farewell), "%s", ((Ms__Leave *)msg)->reason);
        desk->returns = ((Ms__Leave *)msg)->returns;
        break;
    case MS_MSG_PROGRESS:
        desk->n_progress++;
        if (((const Ms__Progress *)msg)->step == 0 && ((const Ms__Progress *)msg)->saved > 0) {
            desk->n_saved++;
            desk->saved = ((const Ms__Progress *)msg)->saved;
        }
        if (((Ms__Progress *)msg)->has_eval) {
            desk_eval(desk, (Ms__Progress *)msg);
        }
        if (desk->first_step == 0 && ((Ms__Progress *)msg)->step > desk->ready_step &&
            ((Ms__Progress *)msg)->generation == desk->ready_generation) {
            desk->first_step = ((Ms__Progress *)msg)->step;
        }
        for (int i = 0; i < desk->n_done && !desk->saves_late;
             i++) { /* what was said first comes first */
            ck_assert_uint_lt(desk->done[i].generation, ((Ms__Progress *)msg)->generation);
        }
        break;
    case MS_MSG_RANK_DONE:
        desk_done(desk, (Ms__RankDone *)msg);
        break;
    case MS_MSG_LOG_CHUNK: {
        const Ms__LogChunk *chunk = (Ms__LogChunk *)msg;
        snprintf(desk->chunk, sizeof(desk->chunk), "%d:%.*s", chunk->code, (int)chunk->data.len,
                 (const char *)chunk->data.data);
        break;
    }
    default:
        ck_abort_msg("unexpected message %u", head->type);
    }
    ms_wire_free(msg);
}

static inline void desk_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct desk *desk = arg;
    (void)conn;
    (void)code;
    (void)reason;
    desk->conn = NULL;
    desk->n_closed++;
}

static inline void desk_accept(evutil_socket_t fd, short what, void *arg)
{
    static const struct ms_conn_handler handler = {.on_frame = desk_frame, .on_close = desk_close};
    struct desk *desk = arg;
    (void)what;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ck_assert_int_ge(peer, 0);
    struct ms_conn_options options = {
        .tls = desk->tls, .software = "test", .cluster = "standing", .plain_role = MS_ROLE_WORKER};
    ck_ms_ok(ms_conn_accept(desk->base, peer, &options, &handler, desk, &desk->conn, err));
}

static inline void desk_open(struct desk *desk)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    memset(desk, 0, sizeof(*desk));
    desk->base = event_base_new();
    desk->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(desk->listen_fd, (struct sockaddr *)&addr, len), 0);
    ck_assert_int_eq(listen(desk->listen_fd, 8), 0);
    ck_assert_int_eq(getsockname(desk->listen_fd, (struct sockaddr *)&addr, &len), 0);
    snprintf(desk->address, sizeof(desk->address), "127.0.0.1:%d", ntohs(addr.sin_port));
    desk->listen_event =
        event_new(desk->base, desk->listen_fd, EV_READ | EV_PERSIST, desk_accept, desk);
    event_add(desk->listen_event, NULL);
}

static inline void desk_shut(struct desk *desk)
{
    ms_conn_destroy(desk->conn);
    SSL_CTX_free(desk->tls);
    free(desk->plan);
    event_free(desk->listen_event);
    close(desk->listen_fd);
    event_base_free(desk->base);
}

/* Turns the loop until the condition holds; Check's time limit bounds a wait that never ends. */
#define until(desk, condition)                                                                     \
    while (!(condition)) {                                                                         \
        struct timeval turn_ = {.tv_usec = 5000};                                                  \
        event_base_loopexit((desk)->base, &turn_);                                                 \
        event_base_loop((desk)->base, EVLOOP_NO_EXIT_ON_EMPTY);                                    \
    }

/* What is not filled in: alice cancelled it. */
static inline void send_stop_as(struct desk *desk, uint64_t generation, Ms__Stop stop)
{
    char cancelled[] = "alice cancelled it";
    stop.job = 7;
    stop.generation = generation;
    if (stop.text == NULL) {
        stop.code = MS_E_CANCELLED;
        stop.text = cancelled;
    }
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_STOP, 0, &stop.base, err));
}

static inline void send_stop(struct desk *desk, uint64_t generation, int at_step)
{
    Ms__Stop stop = MS__STOP__INIT;
    stop.text = NULL;
    stop.at_step = at_step;
    send_stop_as(desk, generation, stop);
}

static inline void send_plan(struct desk *desk, uint64_t generation, const char *text)
{
    Ms__Plan plan = MS__PLAN__INIT;
    plan.job = 7;
    plan.generation = generation;
    plan.plan = (char *)(uintptr_t)text;
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_PLAN, 0, &plan.base, err));
}

/* A context with a certificate of the CA. */
static inline SSL_CTX *desk_issue(struct ms_ca *ca, const char *dir, enum ms_role role,
                                  const char *name)
{
    char p12[128];
    char pem[128];
    char host[] = "127.0.0.1";
    const char *hosts[] = {host, NULL};
    SSL_CTX *ctx = NULL;
    snprintf(p12, sizeof(p12), "%s/%s-%p.p12", dir, name, (void *)ca);
    snprintf(pem, sizeof(pem), "%s/ca-%p.crt", dir, (void *)ca);
    ck_ms_ok(ms_ca_export(ca, pem, err));
    struct ms_cert_request req = {
        .role = role, .name = name, .hosts = hosts, .days = 1, .password = ""};
    struct ms_tls_config cfg = {.p12_path = p12, .p12_password = "", .ca_path = pem};
    ck_ms_ok(ms_ca_issue(ca, &req, p12, NULL, err));
    ck_ms_ok(ms_tls_context(&cfg, &ctx, NULL, err));
    return ctx;
}

#endif
