/* test_conn.c - connections over real sockets: TCP, TLS and Unix, their life and their ends */
#include "tests/unit/conn_world.h"

#include <netdb.h>

/* ---- the good path ---- */

static void echo(struct end *end, const struct ms_wire_header *head)
{
    send_ok(end->conn, head->id, "heard");
}

static void check_echo(struct world *w)
{
    dial(w);
    run_until(w, &w->self.opened);
    run_until(w, &w->ends[0].opened);
    w->ends[0].on_frame = echo;

    send_ok(w->self.conn, 77, "hello?");
    run_until(w, &w->self.frames);

    ck_assert_uint_eq(w->self.last_type, MS_MSG_OK);
    ck_assert_uint_eq(w->self.last_id, 77);
    ck_assert_str_eq(w->self.last_text, "heard");
    ck_assert_str_eq(w->ends[0].last_text, "hello?");
}

static void check_close_by_client(struct world *w)
{
    ms_conn_close(w->self.conn);
    run_until(w, &w->self.closed);
    run_until(w, &w->ends[0].closed);

    ck_assert_int_eq(w->self.code, MS_OK);
    ck_assert_int_eq(w->ends[0].code, MS_E_CLOSED);
    ck_contains(w->self.reason, "we closed");
    ck_contains(w->ends[0].reason, "closed the connection");
}

START_TEST(plain_tcp_carries_frames_and_takes_its_role_from_the_options)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");

    check_echo(&w);

    ck_assert_uint_eq(w.ends[0].peer.who.roles, MS_ROLE_WORKER | MS_ROLE_ADMIN);
    ck_assert_str_eq(w.ends[0].peer.cert_name, "");
    ck_assert_uint_eq(w.ends[0].peer.uid, (unsigned)-1);
    ck_assert_str_eq(w.ends[0].peer.address, w.self.local);
    ck_assert_uint_eq(w.self.peer.who.roles, MS_ROLE_SCHEDULER);
    ck_assert_str_eq(w.self.peer.address, w.address);
    check_close_by_client(&w);
    world_fini(&w);
}
END_TEST

START_TEST(tls_tells_each_end_the_name_and_role_of_the_other)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);

    check_echo(&w);

    ck_assert_uint_eq(w.ends[0].peer.who.roles, MS_ROLE_WORKER);
    ck_assert_str_eq(w.ends[0].peer.who.id, "worker:w3");
    ck_assert_str_eq(w.ends[0].peer.cert_name, "w3");
    ck_assert_uint_eq(w.self.peer.who.roles, MS_ROLE_SCHEDULER);
    ck_assert_str_eq(w.self.peer.cert_name, "head");
    check_close_by_client(&w);
    ck_contains(w.ends[0].reason, "worker w3 at 127.0.0.1:");
    world_fini(&w);
}
END_TEST

START_TEST(a_unix_socket_tells_the_uid_and_speaks_no_tls)
{
    struct world w;
    char address[128];
    world_init_tls(&w, MS_ROLE_USER);
    event_free(w.listener);
    close(w.listen_fd);
    snprintf(address, sizeof(address), "unix:%s/sock", w.dir);
    w.server.owner_uid = geteuid();
    world_listen(&w, address);

    check_echo(&w);

    ck_assert_uint_eq(w.ends[0].peer.uid, geteuid());
    ck_assert_uint_eq(w.ends[0].peer.who.roles, MS_ROLE_ADMIN | MS_ROLE_WORKER);
    ck_assert_int_eq(strncmp(w.ends[0].peer.who.id, "admin:", 6), 0);
    ck_assert_str_eq(w.ends[0].peer.cert_name, "");
    ck_assert_str_eq(w.self.peer.address, address);
    check_close_by_client(&w);
    world_fini(&w);
}
END_TEST

START_TEST(on_a_unix_socket_only_the_owner_and_root_are_admins)
{
    struct world w;
    char address[128];
    world_init(&w, NULL);
    snprintf(address, sizeof(address), "unix:%s/sock", w.dir);
    world_listen(&w, address);
    ck_assert_int_eq(chmod(address + 5, 0666), 0);
    ck_assert_int_eq(chmod(w.dir, 0755), 0);
    w.server.plain_role = 0;
    unsigned want = geteuid() == 0 ? MS_ROLE_ADMIN : MS_ROLE_USER;

    dial(&w);
    run_until(&w, &w.ends[0].opened);
    ck_assert_uint_eq(w.ends[0].peer.who.roles, want);

    if (geteuid() == 0) { /* another uid can only be had by root */
        pid_t child = fork();
        if (child == 0) {
            struct sockaddr_un un = {.sun_family = AF_UNIX};
            snprintf(un.sun_path, sizeof(un.sun_path), "%s", address + 5);
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            char byte = 0;
            if (setuid(12345) != 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) != 0) {
                _exit(1);
            }
            raw_hello(fd);
            _exit(read(fd, &byte, 1) == 1 ? 0 : 1);
        }
        run_until(&w, &w.ends[1].opened);
        ck_assert_uint_eq(w.ends[1].peer.who.roles, MS_ROLE_USER);
        ck_assert_str_eq(w.ends[1].peer.who.id, "uid:12345");
        run_until(&w, &w.ends[1].closed);
        int status = 0;
        waitpid(child, &status, 0);
        ck_assert_int_eq(status, 0);
    }
    world_fini(&w);
}
END_TEST

static void send_big(struct end *end, const struct ms_wire_header *head)
{
    static uint8_t data[MS_LOG_CHUNK_MAX];
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    (void)head;
    memset(data, 'x', sizeof(data));
    chunk.data.data = data;
    chunk.data.len = sizeof(data);
    for (int i = 0; i < 40; i++) { /* 2.5 MiB: over the soft limit */
        chunk.offset = (uint64_t)i;
        ck_ms_ok(ms_conn_send(end->conn, MS_MSG_LOG_CHUNK, 5, &chunk.base, err));
    }
    ms_conn_close(end->conn);
}

static void check_big(struct world *w)
{
    w->ends[0].on_frame = send_big;
    dial(w);
    run_until(w, &w->self.opened);
    send_ok(w->self.conn, 1, "");
    run_until(w, &w->self.closed);
    run_until(w, &w->ends[0].closed);

    ck_assert_int_eq(w->self.frames, 40);
    ck_assert_uint_eq(w->self.last_type, MS_MSG_LOG_CHUNK);
    ck_assert_int_eq(w->ends[0].code, MS_OK);
    ck_assert_int_eq(w->self.code, MS_E_CLOSED);
}

START_TEST(close_sends_all_that_was_queued_before)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    check_big(&w);
    world_fini(&w);

    world_init_tls(&w, MS_ROLE_USER);
    check_big(&w);
    world_fini(&w);
}
END_TEST

START_TEST(eight_workers_shake_hands_at_once)
{
    struct world w;
    struct end self[8];
    memset(self, 0, sizeof(self));
    world_init_tls(&w, MS_ROLE_WORKER);

    for (int i = 0; i < 8; i++) {
        ck_ms_ok(
            ms_conn_connect(w.base, w.address, &w.client, &handler, &self[i], &self[i].conn, err));
    }
    for (int i = 0; i < 8; i++) {
        run_until(&w, &self[i].opened);
        run_until(&w, &w.ends[i].opened);
    }

    for (int i = 0; i < 8; i++) {
        ck_assert_str_eq(w.ends[i].peer.cert_name, "w3");
        ms_conn_destroy(self[i].conn);
    }
    world_fini(&w);
}
END_TEST

/* ---- the end comes in many ways ---- */

static void refuse(struct end *end, const struct ms_wire_header *head)
{
    ms_conn_refuse(end->conn, head->id, MS_E_FULL, "the house is full; come back later");
}

START_TEST(a_refusal_arrives_as_error_and_as_reason)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_USER);
    w.ends[0].on_frame = refuse;
    dial(&w);
    run_until(&w, &w.self.opened);

    send_ok(w.self.conn, 0, "may I?");
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.frames, 1);
    ck_assert_str_eq(w.self.last_text, "the house is full; come back later");
    ck_assert_int_eq(w.self.code, MS_E_FULL);
    ck_contains(w.self.reason, "the house is full");
    ck_assert_int_eq(w.ends[0].code, MS_E_FULL);
    ck_contains(w.ends[0].reason, "was refused");
    world_fini(&w);
}
END_TEST

static void destroy_self(struct end *end, const struct ms_wire_header *head)
{
    struct ms_conn *conn = end->conn;
    (void)head;
    end->conn = NULL;
    ms_conn_destroy(conn);
}

START_TEST(destroy_in_a_callback_is_safe_and_calls_no_on_close)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    w.ends[0].on_frame = destroy_self;
    dial(&w);
    run_until(&w, &w.self.opened);

    send_ok(w.self.conn, 1, "a");
    send_ok(w.self.conn, 2, "b"); /* lies in the input when the first is handled */
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.ends[0].frames, 1);
    ck_assert_int_eq(w.ends[0].closed, 0);
    world_fini(&w);
}
END_TEST

START_TEST(after_close_nothing_more_is_sent_or_delivered)
{
    struct world w;
    Ms__Ok ok = MS__OK__INIT;
    world_init(&w, "127.0.0.1:0");
    dial(&w);
    run_until(&w, &w.self.opened);
    run_until(&w, &w.ends[0].opened);

    ms_conn_close(w.self.conn);
    ck_ms_fails(ms_conn_send(w.self.conn, MS_MSG_OK, 0, &ok.base, err), MS_E_CLOSED, "closing");
    ms_conn_close(w.self.conn);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.closed, 1);
    world_fini(&w);
}
END_TEST

START_TEST(sending_before_the_welcome_is_an_error)
{
    struct world w;
    Ms__Ok ok = MS__OK__INIT;
    world_init(&w, "127.0.0.1:0");
    dial(&w);

    ck_ms_fails(ms_conn_send(w.self.conn, MS_MSG_OK, 0, &ok.base, err), MS_E_INVALID,
                "not open yet");
    world_fini(&w);
}
END_TEST

START_TEST(a_slow_reader_is_dropped_at_the_hard_limit)
{
    static uint8_t data[MS_LOG_CHUNK_MAX];
    struct world w;
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    struct ms_err full = {0, ""};
    int rc = MS_OK;
    chunk.data.data = data;
    chunk.data.len = sizeof(data);
    world_init(&w, "127.0.0.1:0");
    int fd = raw_connect(&w);
    raw_hello(fd);
    run_until(&w, &w.ends[0].opened);

    for (int i = 0; i < 400 && rc == MS_OK; i++) { /* up to 25 MiB, and nobody reads */
        rc = ms_conn_send(w.ends[0].conn, MS_MSG_LOG_CHUNK, 1, &chunk.base, &full);
        ck_assert_uint_le(ms_conn_unsent(w.ends[0].conn), MS_OUTPUT_HARD);
    }
    ck_assert_int_eq(rc, MS_E_FULL);
    ck_assert_int_eq(w.ends[0].closed, 0); /* not from inside of send */
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].code, MS_E_FULL);
    ck_contains(w.ends[0].reason, "does not read");
    close(fd);
    world_fini(&w);
}
END_TEST

static void answer_with_64k(struct end *end, const struct ms_wire_header *head)
{
    static uint8_t data[MS_LOG_CHUNK_MAX];
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    chunk.data.data = data;
    chunk.data.len = sizeof(data);
    ck_ms_ok(ms_conn_send(end->conn, MS_MSG_LOG_CHUNK, head->id, &chunk.base, err));
}

/* Asks 200 times without reading, then reads all 12.5 MiB of answers. */
static void check_back_pressure(struct world *w)
{
    w->ends[0].on_frame = answer_with_64k;
    dial(w);
    run_until(w, &w->self.opened);
    run_until(w, &w->ends[0].opened);

    for (uint32_t i = 1; i <= 200; i++) {
        send_ok(w->self.conn, i, "more");
    }
    size_t most = 0;
    while (w->self.frames < 200) {
        event_base_loop(w->base, EVLOOP_ONCE);
        size_t unsent = ms_conn_unsent(w->ends[0].conn);
        most = unsent > most ? unsent : most;
    }

    ck_assert_int_eq(w->ends[0].frames, 200);
    ck_assert_uint_eq(w->self.last_id, 200);
    ck_assert_uint_le(most, MS_OUTPUT_SOFT + MS_LOG_CHUNK_MAX + 4096);
}

START_TEST(above_the_soft_limit_requests_wait_until_their_answers_are_read)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    check_back_pressure(&w);
    world_fini(&w);

    world_init_tls(&w, MS_ROLE_USER);
    check_back_pressure(&w);
    world_fini(&w);
}
END_TEST

/* A process of its own that connects and is then killed. */
static pid_t spawn_client(const struct world *w)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct world c;
        memset(&c, 0, sizeof(c));
        c.base = event_base_new();
        c.client = w->client;
        memcpy(c.address, w->address, sizeof(c.address));
        c.self.world = &c;
        dial(&c);
        event_base_dispatch(c.base);
        _exit(0);
    }
    return pid;
}

START_TEST(a_killed_peer_is_noticed_at_once)
{
    for (int tls = 0; tls < 2; tls++) {
        struct world w;
        if (tls) {
            world_init_tls(&w, MS_ROLE_WORKER);
        } else {
            world_init(&w, "127.0.0.1:0");
        }
        pid_t pid = spawn_client(&w);
        run_until(&w, &w.ends[0].opened);

        kill(pid, SIGKILL);
        run_until(&w, &w.ends[0].closed);

        ck_assert_int_eq(w.ends[0].code, MS_E_CLOSED);
        ck_contains(w.ends[0].reason, tls ? "worker w3 at" : "the peer at");
        waitpid(pid, NULL, 0);
        world_fini(&w);
    }
}
END_TEST

START_TEST(a_peer_that_dies_in_the_middle_of_a_frame_delivers_none)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    int fd = raw_connect(&w);
    raw_hello(fd);
    run_until(&w, &w.ends[0].opened);

    static const uint8_t part[20] = {'M', 'S', 'C', '1', 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 90, 1};
    ck_assert_int_eq(write(fd, part, sizeof(part)), sizeof(part));
    close(fd);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].frames, 0);
    ck_assert_int_eq(w.ends[0].code, MS_E_CLOSED);
    world_fini(&w);
}
END_TEST

START_TEST(closing_before_the_welcome_is_an_end_like_any_other)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    dial(&w);

    ms_conn_close(w.self.conn);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_OK);
    world_fini(&w);
}
END_TEST

START_TEST(last_words_that_nobody_takes_are_given_up)
{
    static uint8_t data[MS_LOG_CHUNK_MAX];
    struct world w;
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    chunk.data.data = data;
    chunk.data.len = sizeof(data);
    world_init(&w, "127.0.0.1:0");
    w.server.handshake_ms = 300;
    int fd = raw_connect(&w);
    raw_hello(fd);
    run_until(&w, &w.ends[0].opened);

    for (int i = 0; i < 200; i++) { /* 12.5 MiB: more than the kernel takes */
        ck_ms_ok(ms_conn_send(w.ends[0].conn, MS_MSG_LOG_CHUNK, 1, &chunk.base, err));
    }
    ms_conn_close(w.ends[0].conn);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].closed, 1);
    ck_assert_int_eq(w.ends[0].code, MS_OK); /* we wanted it to end */
    close(fd);
    world_fini(&w);
}
END_TEST

START_TEST(one_packed_frame_can_go_to_many)
{
    struct world w;
    struct end other;
    uint8_t frame[64];
    Ms__Ok ok = MS__OK__INIT;
    ok.text = (char *)"to all";
    size_t size = ms_wire_size(&ok.base);
    world_init_tls(&w, MS_ROLE_USER);
    dial(&w);
    run_until(&w, &w.self.opened);
    run_until(&w, &w.ends[0].opened);
    ck_ms_ok(ms_wire_pack(MS_MSG_OK, 3, &ok.base, frame, size, err));

    ck_ms_ok(ms_conn_send_bytes(w.ends[0].conn, frame, size, err));
    ck_ms_ok(ms_conn_send_bytes(w.ends[0].conn, frame, size, err));
    run_until(&w, &w.self.frames);
    ck_assert_str_eq(w.self.last_text, "to all");

    other = w.self; /* from here on another object hears */
    ms_conn_set_arg(w.self.conn, &other);
    w.self.conn = NULL;
    ms_conn_close(w.ends[0].conn);
    run_until(&w, &other.closed);
    ck_assert_int_eq(other.frames, 2);
    world_fini(&w);
}
END_TEST

START_TEST(one_shared_tail_can_go_to_many)
{
    struct world w;
    uint8_t frame[64];
    uint8_t head[MS_WIRE_HEADER];
    Ms__Ok ok = MS__OK__INIT;
    const Ms__Ok nothing = MS__OK__INIT;
    ok.text = (char *)"to all";
    size_t size = ms_wire_size(&ok.base);
    ck_ms_ok(ms_wire_pack(MS_MSG_OK, 0, &ok.base, frame, size, err));
    size_t tail_bytes = size - MS_WIRE_HEADER;
    ck_ms_ok(ms_wire_pack_head(MS_MSG_OK, 3, &nothing.base, tail_bytes, head, sizeof(head), err));
    struct ms_shared *tail = ms_shared_create(frame + MS_WIRE_HEADER, tail_bytes);
    ck_assert_ptr_nonnull(tail);
    world_init_tls(&w, MS_ROLE_USER);
    dial(&w);
    run_until(&w, &w.self.opened);
    run_until(&w, &w.ends[0].opened);

    ck_ms_ok(ms_conn_send_shared(w.ends[0].conn, head, sizeof(head), tail, err));
    ck_ms_ok(ms_conn_send_shared(w.ends[0].conn, head, sizeof(head), tail, err));
    ms_shared_unref(tail); /* what is on its way holds its own references */
    ms_conn_close(w.ends[0].conn);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.frames, 2);
    ck_assert_uint_eq(w.self.last_id, 3);
    ck_assert_str_eq(w.self.last_text, "to all");
    world_fini(&w);
}
END_TEST

START_TEST(a_host_name_with_several_addresses_is_tried_to_the_end)
{
    struct world w;
    struct addrinfo *found = NULL;
    if (getaddrinfo("localhost", NULL, NULL, &found) != 0) { /* a bare chroot */
        printf("skip: this machine has no localhost\n");
        return;
    }
    freeaddrinfo(found);
    world_init(&w, "127.0.0.1:0"); /* localhost is often [::1] first, where nobody listens */
    snprintf(w.address, sizeof(w.address), "localhost:%d", w.port);

    dial(&w);
    run_until(&w, &w.self.opened);

    ck_assert_int_eq(w.self.opened, 1);
    world_fini(&w);
}
END_TEST

/* A Unix listener with connections in its queue until it takes no more. Returns how many. */
static int fill_backlog(struct world *w, int fds[8])
{
    struct ms_addr addr;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int n = 0;
    snprintf(w->address, sizeof(w->address), "unix:%s/sock", w->dir);
    ck_ms_ok(ms_addr_parse(w->address, 0, &addr, err));
    ck_ms_ok(w->listen_fd = ms_addr_listen(&addr, 1, err));
    w->listener = event_new(w->base, w->listen_fd, EV_READ | EV_PERSIST, on_accept, w);
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", addr.host);
    for (; n < 8; n++) {
        fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(fds[n], (struct sockaddr *)&un, sizeof(un)) != 0) {
            ck_assert_int_eq(errno, EAGAIN);
            close(fds[n]);
            break;
        }
    }
    ck_assert_int_lt(n, 8);
    return n;
}

START_TEST(a_full_queue_of_a_unix_socket_is_waited_for)
{
    struct world w;
    int fds[8];
    world_init(&w, NULL);
    int n = fill_backlog(&w, fds);

    dial(&w);
    for (int i = 0; i < 3; i++) {
        event_base_loop(w.base, EVLOOP_ONCE);
    }
    ck_assert_int_eq(w.self.closed + w.self.opened, 0);
    event_add(w.listener, NULL); /* the server wakes up */
    run_until(&w, &w.self.opened);

    while (n > 0) {
        close(fds[--n]);
    }
    world_fini(&w);
}
END_TEST

START_TEST(a_full_queue_is_not_waited_for_without_end)
{
    struct world w;
    int fds[8];
    world_init(&w, NULL);
    int n = fill_backlog(&w, fds);
    w.client.handshake_ms = 100;

    dial(&w);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.code, MS_E_UNREACHABLE);
    ck_contains(w.self.reason, "does not answer within 1 s");
    while (n > 0) {
        close(fds[--n]);
    }
    world_fini(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conn");
    TCase *good = tcase_create("good path");
    TCase *ends = tcase_create("ends");

    tcase_add_test(good, plain_tcp_carries_frames_and_takes_its_role_from_the_options);
    tcase_add_test(good, tls_tells_each_end_the_name_and_role_of_the_other);
    tcase_add_test(good, a_unix_socket_tells_the_uid_and_speaks_no_tls);
    tcase_add_test(good, on_a_unix_socket_only_the_owner_and_root_are_admins);
    tcase_add_test(good, close_sends_all_that_was_queued_before);
    tcase_add_test(good, eight_workers_shake_hands_at_once);
    tcase_add_test(ends, a_refusal_arrives_as_error_and_as_reason);
    tcase_add_test(ends, destroy_in_a_callback_is_safe_and_calls_no_on_close);
    tcase_add_test(ends, after_close_nothing_more_is_sent_or_delivered);
    tcase_add_test(ends, sending_before_the_welcome_is_an_error);
    tcase_add_test(ends, a_slow_reader_is_dropped_at_the_hard_limit);
    tcase_add_test(ends, above_the_soft_limit_requests_wait_until_their_answers_are_read);
    tcase_add_test(good, one_packed_frame_can_go_to_many);
    tcase_add_test(good, one_shared_tail_can_go_to_many);
    tcase_add_test(good, a_host_name_with_several_addresses_is_tried_to_the_end);
    tcase_add_test(good, a_full_queue_of_a_unix_socket_is_waited_for);
    tcase_add_test(ends, a_full_queue_is_not_waited_for_without_end);
    tcase_add_test(ends, closing_before_the_welcome_is_an_end_like_any_other);
    tcase_add_test(ends, last_words_that_nobody_takes_are_given_up);
    tcase_add_test(ends, a_killed_peer_is_noticed_at_once);
    tcase_add_test(ends, a_peer_that_dies_in_the_middle_of_a_frame_delivers_none);
    suite_add_tcase(suite, good);
    suite_add_tcase(suite, ends);
    return test_run(suite);
}
