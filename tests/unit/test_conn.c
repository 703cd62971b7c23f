/* test_conn.c - connections over real sockets: TCP, TLS and Unix, and every way to fail */
#include "proto/addr.h"
#include "proto/cert.h"
#include "proto/certfile.h"
#include "proto/cluster.pb-c.h"
#include "proto/conn.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { GUARD_S = 60, ENDS_MAX = 16 };

/* ---- one end of a connection, and what happened to it ---- */

struct world;

struct end {
    struct world *world;
    struct ms_conn *conn;
    int opened;
    int frames;
    int closed;
    int code;
    uint16_t last_type;
    uint32_t last_id;
    char last_text[MS_ERR_TEXT_MAX];
    char reason[MS_ERR_TEXT_MAX];
    struct ms_peer peer;
    char local[MS_ADDR_MAX + 1];
    void (*on_frame)(struct end *end, const struct ms_wire_header *head);
};

struct world {
    struct event_base *base;
    const char *dir;
    int listen_fd;
    struct event *listener;
    struct ms_conn_options server;
    struct ms_conn_options client;
    char address[MS_ADDR_MAX + 1];
    int port;
    struct end ends[ENDS_MAX]; /* server ends, in the order of their arrival */
    int n_ends;
    struct end self; /* the client end */
    int guard;
};

static void on_open(struct ms_conn *conn, void *arg)
{
    struct end *end = arg;
    end->opened++;
    end->peer = *ms_conn_peer(conn);
    snprintf(end->local, sizeof(end->local), "%s", ms_conn_local(conn));
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct end *end = arg;
    ck_assert_ptr_eq(conn, end->conn);
    ck_assert_int_eq(end->opened, 1);
    end->frames++;
    end->last_type = head->type;
    end->last_id = head->id;
    if (head->type == MS_MSG_ERROR || head->type == MS_MSG_OK) {
        ProtobufCMessage *msg = NULL;
        ck_ms_ok(ms_wire_unpack(head->type, bytes, head->length, &msg, err));
        snprintf(end->last_text, sizeof(end->last_text), "%s",
                 head->type == MS_MSG_ERROR ? ((Ms__Error *)msg)->text : ((Ms__Ok *)msg)->text);
        ms_wire_free(msg);
    }
    if (end->on_frame != NULL) {
        end->on_frame(end, head);
    }
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct end *end = arg;
    ck_assert_ptr_eq(conn, end->conn);
    end->closed++;
    end->code = code;
    end->conn = NULL;
    snprintf(end->reason, sizeof(end->reason), "%s", reason);
}

static const struct ms_conn_handler handler = {on_open, on_frame, on_close};

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    struct world *w = arg;
    (void)what;
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(got, 0);
    ck_assert_int_lt(w->n_ends, ENDS_MAX);
    struct end *end = &w->ends[w->n_ends++];
    end->world = w;
    ck_ms_ok(ms_conn_accept(w->base, got, &w->server, &handler, end, &end->conn, err));
}

static void on_guard(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    ((struct world *)arg)->guard = 1;
}

/* Runs the loop until *flag is true; a minute without that is a failure. */
static void run_until(struct world *w, const int *flag)
{
    struct timeval tv = {GUARD_S, 0};
    struct event *guard = event_new(w->base, -1, 0, on_guard, w);
    w->guard = 0;
    event_add(guard, &tv);
    while (!*flag && !w->guard) {
        event_base_loop(w->base, EVLOOP_ONCE);
    }
    event_free(guard);
    ck_assert_msg(*flag, "nothing happened for a minute; client: %s; server: %s", w->self.reason,
                  w->ends[0].reason);
}

static void world_listen(struct world *w, const char *address)
{
    struct ms_addr addr;
    ck_ms_ok(ms_addr_parse(address, 0, &addr, err));
    ck_ms_ok(w->listen_fd = ms_addr_listen(&addr, 16, err));
    snprintf(w->address, sizeof(w->address), "%s", address);
    if (!addr.is_unix) {
        struct sockaddr_in in;
        socklen_t size = sizeof(in);
        ck_assert_int_eq(getsockname(w->listen_fd, (struct sockaddr *)&in, &size), 0);
        w->port = ntohs(in.sin_port);
        snprintf(w->address, sizeof(w->address), "127.0.0.1:%d", w->port);
    }
    w->listener = event_new(w->base, w->listen_fd, EV_READ | EV_PERSIST, on_accept, w);
    event_add(w->listener, NULL);
}

static void world_init(struct world *w, const char *address)
{
    memset(w, 0, sizeof(*w));
    w->dir = test_dir_make();
    w->base = event_base_new();
    w->server.software = "msschedd test";
    w->server.cluster = "standing";
    w->server.plain_role = MS_ROLE_WORKER | MS_ROLE_ADMIN;
    w->server.owner_uid = (unsigned)-2;
    w->client.software = "msctl test";
    w->self.world = w;
    if (address != NULL) {
        world_listen(w, address);
    }
}

static void world_fini(struct world *w)
{
    ms_conn_destroy(w->self.conn);
    for (int i = 0; i < w->n_ends; i++) {
        ms_conn_destroy(w->ends[i].conn);
    }
    if (w->listener != NULL) {
        event_free(w->listener);
        close(w->listen_fd);
    }
    SSL_CTX_free(w->server.tls);
    SSL_CTX_free(w->client.tls);
    event_base_free(w->base);
    test_dir_remove(w->dir);
}

static void dial(struct world *w)
{
    ck_ms_ok(
        ms_conn_connect(w->base, w->address, &w->client, &handler, &w->self, &w->self.conn, err));
}

/* ---- certificates ---- */

static void make_ca(const struct world *w, const char *name)
{
    char path[256];
    struct ms_ca *ca = NULL;
    ck_ms_ok(ms_ca_create(name, 10, &ca, err));
    snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    ck_ms_ok(ms_ca_save(ca, path, err));
    ms_ca_destroy(ca);
}

static void issue(const struct world *w, const char *ca_name, enum ms_role role, const char *name,
                  int days)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", NULL};
    struct ms_cert_request req = {role, name, hosts, days, ""};
    char path[256];
    struct ms_ca *ca = NULL;
    snprintf(path, sizeof(path), "%s/%s", w->dir, ca_name);
    ck_ms_ok(ms_ca_load(path, &ca, err));
    snprintf(path, sizeof(path), "%s/%s.p12", w->dir, name);
    ck_ms_ok(ms_ca_issue(ca, &req, path, NULL, err));
    ms_ca_destroy(ca);
}

static SSL_CTX *context(const struct world *w, const char *ca_name, const char *name)
{
    char p12[256];
    char ca[256];
    struct ms_tls_config cfg = {.p12_path = p12, .p12_password = "", .ca_path = ca};
    SSL_CTX *ctx = NULL;
    snprintf(p12, sizeof(p12), "%s/%s.p12", w->dir, name);
    snprintf(ca, sizeof(ca), "%s/%s/ca.crt", w->dir, ca_name);
    ck_ms_ok(ms_tls_context(&cfg, &ctx, NULL, err));
    return ctx;
}

static void world_init_tls(struct world *w, enum ms_role client_role)
{
    world_init(w, "127.0.0.1:0");
    make_ca(w, "ca");
    issue(w, "ca", MS_ROLE_SCHEDULER, "head", 10);
    issue(w, "ca", client_role, "w3", 10);
    w->server.tls = context(w, "ca", "head");
    w->client.tls = context(w, "ca", "w3");
    w->client.tls_host = "127.0.0.1";
    w->client.require_scheduler = 1;
}

/* ---- frames for tests ---- */

static void send_ok(struct ms_conn *conn, uint32_t id, const char *text)
{
    Ms__Ok ok = MS__OK__INIT;
    ok.text = (char *)text;
    ck_ms_ok(ms_conn_send(conn, MS_MSG_OK, id, &ok.base, err));
}

static int raw_connect(const struct world *w)
{
    struct sockaddr_in in;
    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_port = htons((uint16_t)w->port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    return fd;
}

static void raw_hello(int fd)
{
    uint8_t frame[128];
    Ms__Hello hello = MS__HELLO__INIT;
    hello.protocol_min = 1;
    hello.protocol_max = 1;
    size_t size = ms_wire_size(&hello.base);
    ck_ms_ok(ms_wire_pack(MS_MSG_HELLO, 0, &hello.base, frame, size, err));
    ck_assert_int_eq(write(fd, frame, size), (ssize_t)size);
}

static void ck_contains(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' lacks '%s'", text, part);
}

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

    ck_assert_uint_eq(w.ends[0].peer.role, MS_ROLE_WORKER | MS_ROLE_ADMIN);
    ck_assert_str_eq(w.ends[0].peer.cert_name, "");
    ck_assert_uint_eq(w.ends[0].peer.uid, (unsigned)-1);
    ck_assert_str_eq(w.ends[0].peer.address, w.self.local);
    ck_assert_uint_eq(w.self.peer.role, MS_ROLE_SCHEDULER);
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

    ck_assert_uint_eq(w.ends[0].peer.role, MS_ROLE_WORKER);
    ck_assert_str_eq(w.ends[0].peer.name, "w3");
    ck_assert_str_eq(w.ends[0].peer.cert_name, "w3");
    ck_assert_uint_eq(w.self.peer.role, MS_ROLE_SCHEDULER);
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
    ck_assert_uint_eq(w.ends[0].peer.role, MS_ROLE_ADMIN | MS_ROLE_WORKER);
    ck_assert_int_eq(strncmp(w.ends[0].peer.name, "uid ", 4), 0);
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
    ck_assert_uint_eq(w.ends[0].peer.role, want);

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
        ck_assert_uint_eq(w.ends[1].peer.role, MS_ROLE_USER);
        ck_assert_str_eq(w.ends[1].peer.name, "uid 12345");
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

/* ---- nobody there ---- */

static void check_dial_fails(struct world *w, int code, const char *part)
{
    dial(w);
    ck_assert_int_eq(w->self.closed, 0); /* never from inside the call */
    run_until(w, &w->self.closed);
    ck_assert_int_eq(w->self.opened, 0);
    ck_assert_msg(w->self.code == code, "%s: %s", ms_code_name(w->self.code), w->self.reason);
    ck_contains(w->self.reason, part);
    ck_contains(w->self.reason, w->address);
}

START_TEST(a_refused_connection_names_the_address_and_the_next_step)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    event_free(w.listener);
    close(w.listen_fd);
    w.listener = NULL;

    check_dial_fails(&w, MS_E_UNREACHABLE, "connection refused");
    ck_contains(w.self.reason, "start msschedd");
    world_fini(&w);
}
END_TEST

START_TEST(a_missing_unix_socket_is_named)
{
    struct world w;
    world_init(&w, NULL);
    snprintf(w.address, sizeof(w.address), "unix:%s/none", w.dir);

    check_dial_fails(&w, MS_E_UNREACHABLE, "no such socket");
    world_fini(&w);
}
END_TEST

START_TEST(a_host_that_does_not_exist_is_refused_at_once)
{
    struct world w;
    world_init(&w, NULL);

    ck_ms_fails(
        ms_conn_connect(w.base, "no such host", &w.client, &handler, &w.self, &w.self.conn, err),
        MS_E_INVALID, "no such host");
    ck_ms_fails(
        ms_conn_connect(w.base, "unix:relative", &w.client, &handler, &w.self, &w.self.conn, err),
        MS_E_INVALID, "begins with /");
    world_fini(&w);
}
END_TEST

START_TEST(a_listener_that_never_answers_ends_with_a_timeout)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    event_del(w.listener); /* the kernel accepts, nobody reads */
    w.client.handshake_ms = 100;

    check_dial_fails(&w, MS_E_UNREACHABLE, "no Welcome");
    world_fini(&w);
}
END_TEST

/* ---- certificates that do not fit ---- */

START_TEST(a_client_of_another_ca_learns_in_words_that_it_was_refused)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    /* the client trusts the server's CA, but its own certificate comes from another */
    make_ca(&w, "other");
    issue(&w, "other", MS_ROLE_WORKER, "stranger", 10);
    SSL_CTX_free(w.client.tls);
    w.client.tls = context(&w, "other", "stranger");
    char ca[256];
    snprintf(ca, sizeof(ca), "%s/ca/ca.crt", w.dir);
    ck_assert_int_eq(SSL_CTX_load_verify_file(w.client.tls, ca), 1);

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "the scheduler at 127.0.0.1:");
    ck_contains(w.self.reason, "refused our certificate (unknown ca)");
    ck_contains(w.self.reason, "msctl certs issue");
    ck_assert_int_eq(w.ends[0].code, MS_E_REFUSED);
    ck_contains(w.ends[0].reason, "issued by a CA that we do not know");
    world_fini(&w);
}
END_TEST

START_TEST(a_server_of_another_ca_is_refused_and_learns_it)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    make_ca(&w, "other");
    issue(&w, "other", MS_ROLE_SCHEDULER, "impostor", 10);
    SSL_CTX_free(w.server.tls);
    w.server.tls = context(&w, "other", "impostor");

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "refused the certificate of the scheduler at 127.0.0.1:");
    ck_contains(w.self.reason, "a CA that we do not know");
    ck_assert_int_eq(w.ends[0].code, MS_E_REFUSED);
    ck_contains(w.ends[0].reason, "refused our certificate (unknown ca)");
    world_fini(&w);
}
END_TEST

/* A TLS client context that shows no certificate at all. */
static SSL_CTX *bare_context(const struct world *w)
{
    char ca[256];
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    snprintf(ca, sizeof(ca), "%s/ca/ca.crt", w->dir);
    ck_assert_int_eq(SSL_CTX_load_verify_file(ctx, ca), 1);
    return ctx;
}

START_TEST(a_client_without_a_certificate_is_refused_in_words)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.client.tls);
    w.client.tls = bare_context(&w);

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "refused our certificate (none was shown)");
    ck_contains(w.ends[0].reason, "showed no certificate");
    world_fini(&w);
}
END_TEST

/* Loads a certificate that ms_tls_context would refuse. */
static SSL_CTX *unchecked_context(const struct world *w, const char *name)
{
    char path[256];
    struct ms_p12 p12;
    SSL_CTX *ctx = bare_context(w);
    snprintf(path, sizeof(path), "%s/%s.p12", w->dir, name);
    ck_ms_ok(ms_p12_read(path, "", &p12, err));
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, p12.cert), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, p12.key), 1);
    ms_p12_fini(&p12);
    return ctx;
}

START_TEST(an_expired_client_certificate_is_named_at_both_ends)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    issue(&w, "ca", MS_ROLE_WORKER, "old", -2);
    SSL_CTX_free(w.client.tls);
    w.client.tls = unchecked_context(&w, "old");

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "refused our certificate (expired)");
    ck_contains(w.ends[0].reason, "it has expired");
    world_fini(&w);
}
END_TEST

START_TEST(a_certificate_for_another_host_is_refused_with_the_name_that_was_asked_for)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    w.client.tls_host = "head.example";

    dial(&w);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "is not made for 'head.example'");
    world_fini(&w);
}
END_TEST

START_TEST(a_worker_that_poses_as_scheduler_is_refused)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.server.tls);
    w.server.tls = context(&w, "ca", "w3");

    dial(&w);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "certificate of a worker (w3), not of a scheduler");
    world_fini(&w);
}
END_TEST

/* ---- the wrong kind of peer ---- */

START_TEST(a_plain_client_on_a_tls_port_is_told_so)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.client.tls);
    w.client.tls = NULL;

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_contains(w.self.reason, "TLS only");
    ck_contains(w.self.reason, w.address);
    ck_contains(w.ends[0].reason, "does not speak TLS");
    world_fini(&w);
}
END_TEST

START_TEST(a_tls_client_on_a_plain_port_is_told_so)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.server.tls);
    w.server.tls = NULL;

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_contains(w.self.reason, "does not speak TLS");
    ck_contains(w.ends[0].reason, "TLS handshake");
    ck_assert_int_eq(w.ends[0].code, MS_E_PROTOCOL);
    world_fini(&w);
}
END_TEST

/* Sends bytes from a raw socket; the server must close with a reason that contains part. */
static void check_raw(const void *bytes, size_t size, int tls, int code, const char *part)
{
    struct world w;
    char answer[1024];
    if (tls) {
        world_init_tls(&w, MS_ROLE_WORKER);
    } else {
        world_init(&w, "127.0.0.1:0");
    }
    int fd = raw_connect(&w);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);

    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].opened, 0);
    ck_assert_msg(w.ends[0].code == code, "%s: %s", ms_code_name(w.ends[0].code), w.ends[0].reason);
    ck_contains(w.ends[0].reason, part);
    ck_contains(w.ends[0].reason, "127.0.0.1:");
    while (read(fd, answer, sizeof(answer)) > 0) { /* ends: the server has closed */
    }
    close(fd);
    world_fini(&w);
}

START_TEST(garbage_on_the_port_is_described)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char rpc[] = "RPC0aaaaaaaaaaaaaaaa";
    static const char noise[] = "\xde\xad\xbe\xef\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c";

    check_raw(http, sizeof(http) - 1, 0, MS_E_PROTOCOL, "HTTP request");
    check_raw(rpc, sizeof(rpc) - 1, 0, MS_E_PROTOCOL, "MindSpore");
    check_raw(noise, sizeof(noise) - 1, 0, MS_E_PROTOCOL, "de ad be ef");
    check_raw("\x15\x03\x03\x00\x02\x02\x30", 7, 0, MS_E_PROTOCOL, "TLS alert");
    check_raw(http, sizeof(http) - 1, 1, MS_E_TLS, "HTTP request");
    check_raw(noise, sizeof(noise) - 1, 1, MS_E_TLS, "does not speak TLS");
}
END_TEST

START_TEST(a_frame_above_its_limit_is_refused_before_its_bytes_come)
{
    static const uint8_t huge[16] = {'M', 'S', 'C', '1', 0, 1, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0};

    check_raw(huge, sizeof(huge), 0, MS_E_PROTOCOL, "Hello frame of 2147418112 bytes, the limit");
}
END_TEST

START_TEST(a_first_frame_that_is_no_hello_is_refused)
{
    static const uint8_t beat[16] = {'M', 'S', 'C', '1', 0, 11};

    check_raw(beat, sizeof(beat), 0, MS_E_PROTOCOL, "Heartbeat, not Hello");
}
END_TEST

START_TEST(a_peer_that_says_nothing_is_cut_off)
{
    struct world w;
    for (int tls = 0; tls < 2; tls++) {
        if (tls) {
            world_init_tls(&w, MS_ROLE_WORKER);
        } else {
            world_init(&w, "127.0.0.1:0");
        }
        w.server.handshake_ms = 100;
        int fd = raw_connect(&w);

        run_until(&w, &w.ends[0].closed);

        ck_assert_int_eq(w.ends[0].code, MS_E_TIMEOUT);
        ck_contains(w.ends[0].reason, tls ? "TLS handshake" : "no Hello");
        close(fd);
        world_fini(&w);
    }
}
END_TEST

START_TEST(another_protocol_version_is_refused_with_both_ranges)
{
    struct world w;
    uint8_t frame[128];
    uint8_t answer[1024];
    Ms__Hello hello = MS__HELLO__INIT;
    hello.protocol_min = 7;
    hello.protocol_max = 9;
    hello.software = (char *)"msctl 9.0";
    world_init(&w, "127.0.0.1:0");
    int fd = raw_connect(&w);
    size_t size = ms_wire_size(&hello.base);
    ck_ms_ok(ms_wire_pack(MS_MSG_HELLO, 0, &hello.base, frame, size, err));
    ck_assert_int_eq(write(fd, frame, size), (ssize_t)size);

    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].code, MS_E_REFUSED);
    ck_contains(w.ends[0].reason, "'msctl 9.0' speaks the protocol versions 7 to 9");
    ck_contains(w.ends[0].reason, "1 to 1");
    ssize_t n = read(fd, answer, sizeof(answer));
    ck_assert_int_gt(n, MS_WIRE_HEADER);
    ck_assert_int_eq(answer[5], MS_MSG_ERROR);
    close(fd);
    world_fini(&w);
}
END_TEST

START_TEST(a_type_that_the_role_may_not_send_is_answered_and_not_handed_on)
{
    struct world w;
    Ms__Submit submit = MS__SUBMIT__INIT;
    world_init_tls(&w, MS_ROLE_WORKER);
    dial(&w);
    run_until(&w, &w.self.opened);

    ck_ms_ok(ms_conn_send(w.self.conn, MS_MSG_SUBMIT, 42, &submit.base, err));
    run_until(&w, &w.self.frames);

    ck_assert_uint_eq(w.self.last_type, MS_MSG_ERROR);
    ck_assert_uint_eq(w.self.last_id, 42);
    ck_contains(w.self.last_text, "worker w3 at");
    ck_contains(w.self.last_text, "may not send Submit");
    ck_assert_int_eq(w.ends[0].frames, 0);
    ck_assert_int_eq(w.ends[0].closed, 0);
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

int main(void)
{
    Suite *suite = suite_create("conn");
    TCase *good = tcase_create("good path");
    TCase *dead = tcase_create("nobody there");
    TCase *cert = tcase_create("certificates");
    TCase *wrong = tcase_create("wrong kind of peer");
    TCase *ends = tcase_create("ends");

    tcase_add_test(good, plain_tcp_carries_frames_and_takes_its_role_from_the_options);
    tcase_add_test(good, tls_tells_each_end_the_name_and_role_of_the_other);
    tcase_add_test(good, a_unix_socket_tells_the_uid_and_speaks_no_tls);
    tcase_add_test(good, on_a_unix_socket_only_the_owner_and_root_are_admins);
    tcase_add_test(good, close_sends_all_that_was_queued_before);
    tcase_add_test(good, eight_workers_shake_hands_at_once);
    tcase_add_test(dead, a_refused_connection_names_the_address_and_the_next_step);
    tcase_add_test(dead, a_missing_unix_socket_is_named);
    tcase_add_test(dead, a_host_that_does_not_exist_is_refused_at_once);
    tcase_add_test(dead, a_listener_that_never_answers_ends_with_a_timeout);
    tcase_add_test(cert, a_client_of_another_ca_learns_in_words_that_it_was_refused);
    tcase_add_test(cert, a_server_of_another_ca_is_refused_and_learns_it);
    tcase_add_test(cert, a_client_without_a_certificate_is_refused_in_words);
    tcase_add_test(cert, an_expired_client_certificate_is_named_at_both_ends);
    tcase_add_test(cert,
                   a_certificate_for_another_host_is_refused_with_the_name_that_was_asked_for);
    tcase_add_test(cert, a_worker_that_poses_as_scheduler_is_refused);
    tcase_add_test(wrong, a_plain_client_on_a_tls_port_is_told_so);
    tcase_add_test(wrong, a_tls_client_on_a_plain_port_is_told_so);
    tcase_add_test(wrong, garbage_on_the_port_is_described);
    tcase_add_test(wrong, a_frame_above_its_limit_is_refused_before_its_bytes_come);
    tcase_add_test(wrong, a_first_frame_that_is_no_hello_is_refused);
    tcase_add_test(wrong, a_peer_that_says_nothing_is_cut_off);
    tcase_add_test(wrong, another_protocol_version_is_refused_with_both_ranges);
    tcase_add_test(wrong, a_type_that_the_role_may_not_send_is_answered_and_not_handed_on);
    tcase_add_test(ends, a_refusal_arrives_as_error_and_as_reason);
    tcase_add_test(ends, destroy_in_a_callback_is_safe_and_calls_no_on_close);
    tcase_add_test(ends, after_close_nothing_more_is_sent_or_delivered);
    tcase_add_test(ends, sending_before_the_welcome_is_an_error);
    tcase_add_test(ends, a_slow_reader_is_dropped_at_the_hard_limit);
    tcase_add_test(ends, above_the_soft_limit_requests_wait_until_their_answers_are_read);
    tcase_add_test(ends, a_killed_peer_is_noticed_at_once);
    tcase_add_test(ends, a_peer_that_dies_in_the_middle_of_a_frame_delivers_none);
    suite_add_tcase(suite, good);
    suite_add_tcase(suite, dead);
    suite_add_tcase(suite, cert);
    suite_add_tcase(suite, wrong);
    suite_add_tcase(suite, ends);
    return test_run(suite);
}
