/* test_agent.c - the agent against a scheduler's end of a real connection on loopback */
#include "libworker/agent/agent.h"
#include "proto/conn.h"
#include "proto/wire.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

/* A listener and the connection that the agent opened; the loop runs on the test's thread. */
struct desk {
    struct event_base *base;
    struct event *listen_event;
    int listen_fd;
    char address[64];
    struct ms_conn *conn;
    int n_registers, n_beats, n_ready, n_leaves, n_closed;
    uint64_t last_job, last_generation, last_step;
    int last_running;
    int refuse, mute;
    char chunk[128];
};

static void send_registered(struct desk *desk, uint32_t id)
{
    Ms__Registered msg = MS__REGISTERED__INIT;
    msg.lease_ms = 500;
    msg.heartbeat_ms = 20;
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_REGISTERED, id, &msg.base, err));
}

static void take_register(struct desk *desk, uint32_t id, const Ms__Register *msg)
{
    desk->n_registers++;
    desk->last_job = msg->job;
    desk->last_generation = msg->generation;
    desk->last_running = msg->running;
    if (desk->mute) {
        return;
    }
    if (desk->refuse) {
        char text[] = "node w1 is registered already by pid 7";
        Ms__Error refusal = MS__ERROR__INIT;
        refusal.code = MS_E_EXISTS;
        refusal.text = text;
        ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_ERROR, id, &refusal.base, err));
        return;
    }
    send_registered(desk, id);
}

static void desk_frame(struct ms_conn *conn, const struct ms_wire_header *head,
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
        break;
    case MS_MSG_RANK_READY:
        desk->n_ready++;
        break;
    case MS_MSG_LEAVE:
        desk->n_leaves++;
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

static void desk_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct desk *desk = arg;
    (void)conn;
    (void)code;
    (void)reason;
    desk->conn = NULL;
    desk->n_closed++;
}

static void desk_accept(evutil_socket_t fd, short what, void *arg)
{
    static const struct ms_conn_handler handler = {.on_frame = desk_frame, .on_close = desk_close};
    struct desk *desk = arg;
    (void)what;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ck_assert_int_ge(peer, 0);
    struct ms_conn_options options = {
        .software = "test", .cluster = "standing", .plain_role = MS_ROLE_WORKER};
    ck_ms_ok(ms_conn_accept(desk->base, peer, &options, &handler, desk, &desk->conn, err));
}

static void desk_open(struct desk *desk)
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

static void desk_shut(struct desk *desk)
{
    ms_conn_destroy(desk->conn);
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

static atomic_int stops;

static void on_stop(void *arg, const struct agent_order *order)
{
    (void)arg;
    (void)order;
    atomic_fetch_add(&stops, 1);
}

static char log_file[128];

static int find_log(void *arg, uint64_t job, uint32_t rank, char *buf, size_t size)
{
    (void)arg;
    snprintf(buf, size, "%s", log_file);
    return job == 7 && rank == 0;
}

static struct agent *start_tls(const char *address, int64_t connect_timeout_ms, SSL_CTX *tls)
{
    static char id[] = "w1";
    Ms__Register node = MS__REGISTER__INIT;
    node.node_id = id;
    node.incarnation = 5;
    struct agent_config cfg = {.address = address,
                               .tls = tls,
                               .software = "msworker test",
                               .node = &node,
                               .connect_timeout_ms = connect_timeout_ms,
                               .lease_ms = 500,
                               .register_ms = 200,
                               .on_stop = on_stop,
                               .log_path = find_log};
    struct agent *agent = NULL;
    atomic_store(&stops, 0);
    ck_ms_ok(agent_create(&cfg, &agent, err));
    return agent;
}

static struct agent *start(const char *address, int64_t connect_timeout_ms)
{
    return start_tls(address, connect_timeout_ms, NULL);
}

static void send_assign(struct desk *desk)
{
    Ms__Assign assign = MS__ASSIGN__INIT;
    assign.job = 7;
    assign.generation = 3;
    assign.world_size = 1;
    ck_ms_ok(ms_conn_send(desk->conn, MS_MSG_ASSIGN, 0, &assign.base, err));
}

/* Runs the desk's loop until the agent has an order. */
static struct agent_order next(struct desk *desk, struct agent *agent)
{
    struct agent_order order;
    until(desk, agent_next(agent, &order, 0));
    return order;
}

START_TEST(registers_beats_and_leaves)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_beats >= 3);
    ck_assert_int_eq(desk.n_registers, 1);

    pthread_t thread;
    ck_assert_int_eq(
        pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))agent_destroy, agent), 0);
    until(&desk, desk.n_closed == 1);
    pthread_join(thread, NULL);

    ck_assert_int_eq(desk.n_leaves, 1);
    desk_shut(&desk);
}
END_TEST

START_TEST(an_assign_becomes_an_order_and_heartbeats_carry_the_step)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    send_assign(&desk);
    struct agent_order order = next(&desk, agent);
    ck_assert_int_eq(order.kind, AGENT_ASSIGN);
    ck_assert_uint_eq(order.assign->job, 7);
    ms_wire_free(&order.assign->base);
    agent_set_phase(agent, AGENT_TRAINING, 41);

    until(&desk, desk.last_step == 41);
    ck_assert_uint_eq(desk.last_job, 7);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(after_a_cut_it_registers_again_with_the_rank_it_holds_and_repeats_ready)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk);
    struct agent_order order = next(&desk, agent);
    ms_wire_free(&order.assign->base);
    Ms__RankReady ready = MS__RANK_READY__INIT;
    ready.job = 7;
    ready.generation = 3;
    ck_ms_ok(agent_send(agent, MS_MSG_RANK_READY, &ready.base, err));
    until(&desk, desk.n_ready == 1);

    ms_conn_destroy(desk.conn);
    desk.conn = NULL;

    until(&desk, desk.n_ready == 2);
    ck_assert_int_eq(desk.n_registers, 2);
    ck_assert_uint_eq(desk.last_generation, 3);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(the_end_of_a_job_does_not_release_the_rank_of_the_next_one)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk); /* generation 3, while the trainer still cleans up after generation 2 */
    struct agent_order order = next(&desk, agent);
    ms_wire_free(&order.assign->base);

    agent_release(agent, 2);
    until(&desk, desk.n_beats >= 3);
    ck_assert_uint_eq(desk.last_job, 7);
    agent_release(agent, 3);

    until(&desk, desk.last_job == 0);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_scheduler_that_does_not_answer_register_is_tried_again)
{
    struct desk desk;
    desk_open(&desk);
    desk.mute = 1;
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    until(&desk, desk.n_closed == 1);
    desk.mute = 0;

    until(&desk, desk.n_beats >= 1);
    ck_assert_int_ge(desk.n_registers, 2);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_scheduler_that_dies_in_the_handshake_is_tried_again)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event);
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    struct agent *agent = start_tls(desk.address, -1, tls);
    for (int i = 0; i < 3; i++) { /* each attempt meets a process that ends at once */
        int peer = -1;
        while ((peer = accept4(desk.listen_fd, NULL, NULL, SOCK_CLOEXEC)) < 0) {
            ck_assert_int_eq(errno, EAGAIN);
            struct pollfd wait = {.fd = desk.listen_fd, .events = POLLIN};
            ck_assert_int_ge(poll(&wait, 1, -1), 0);
        }
        close(peer);
    }
    struct agent_order order;

    ck_assert_int_eq(agent_next(agent, &order, 0), 0);

    agent_destroy(agent);
    SSL_CTX_free(tls);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_refusal_is_final_and_its_text_arrives)
{
    struct desk desk;
    desk_open(&desk);
    desk.refuse = 1;
    struct agent *agent = start(desk.address, -1);

    struct agent_order order = next(&desk, agent);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_EXISTS);
    ck_assert_ptr_nonnull(strstr(order.text, "registered already"));
    ck_assert_int_eq(atomic_load(&stops), 1);
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_scheduler_that_never_comes_is_named)
{
    struct desk desk;
    desk_open(&desk);
    event_del(desk.listen_event);
    close(desk.listen_fd);
    desk.listen_fd = -1;
    struct agent *agent = start(desk.address, 0);
    struct agent_order order;

    ck_assert_int_eq(agent_next(agent, &order, -1), 1);

    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_int_eq(order.code, MS_E_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(order.text, desk.address));
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_scheduler_gone_longer_than_the_lease_ends_the_job)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    send_assign(&desk);
    struct agent_order order = next(&desk, agent);
    ms_wire_free(&order.assign->base);

    event_del(desk.listen_event);
    close(desk.listen_fd);
    desk.listen_fd = -1;
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;

    ck_assert_int_eq(agent_next(agent, &order, -1), 1);
    ck_assert_int_eq(order.kind, AGENT_LOST);
    ck_assert_ptr_nonnull(strstr(order.text, "lease"));
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(leave_is_an_order_too)
{
    struct desk desk;
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);

    agent_leave(agent);

    struct agent_order order = next(&desk, agent);
    ck_assert_int_eq(order.kind, AGENT_LEAVE);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
}
END_TEST

START_TEST(a_piece_of_a_log_is_read_and_a_missing_log_is_said)
{
    struct desk desk;
    const char *dir = test_dir_make();
    snprintf(log_file, sizeof(log_file), "%s/worker_0.log", dir);
    FILE *file = fopen(log_file, "w");
    fputs("hello world", file);
    fclose(file);
    desk_open(&desk);
    struct agent *agent = start(desk.address, -1);
    until(&desk, desk.n_registers == 1);
    Ms__LogRead request = MS__LOG_READ__INIT;
    request.job = 7;
    request.offset = 6;

    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_LOG_READ, 0, &request.base, err));
    until(&desk, desk.chunk[0] != '\0');
    ck_assert_str_eq(desk.chunk, "0:world");
    desk.chunk[0] = '\0';
    request.job = 8;
    ck_ms_ok(ms_conn_send(desk.conn, MS_MSG_LOG_READ, 0, &request.base, err));
    until(&desk, desk.chunk[0] != '\0');

    ck_assert_str_eq(desk.chunk, "-2:");
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    agent_destroy(agent);
    desk_shut(&desk);
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agent");
    TCase *tc = tcase_create("agent");
    tcase_add_test(tc, registers_beats_and_leaves);
    tcase_add_test(tc, an_assign_becomes_an_order_and_heartbeats_carry_the_step);
    tcase_add_test(tc, after_a_cut_it_registers_again_with_the_rank_it_holds_and_repeats_ready);
    tcase_add_test(tc, the_end_of_a_job_does_not_release_the_rank_of_the_next_one);
    tcase_add_test(tc, a_scheduler_that_does_not_answer_register_is_tried_again);
    tcase_add_test(tc, a_scheduler_that_dies_in_the_handshake_is_tried_again);
    tcase_add_test(tc, a_refusal_is_final_and_its_text_arrives);
    tcase_add_test(tc, a_scheduler_that_never_comes_is_named);
    tcase_add_test(tc, a_scheduler_gone_longer_than_the_lease_ends_the_job);
    tcase_add_test(tc, leave_is_an_order_too);
    tcase_add_test(tc, a_piece_of_a_log_is_read_and_a_missing_log_is_said);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
