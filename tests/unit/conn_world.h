/* conn_world.h - a loop, a listener, certificates and two ends: what tests of connections share */
#ifndef TESTS_CONN_WORLD_H
#define TESTS_CONN_WORLD_H

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

static inline void on_open(struct ms_conn *conn, void *arg)
{
    struct end *end = arg;
    end->opened++;
    end->peer = *ms_conn_peer(conn);
    snprintf(end->local, sizeof(end->local), "%s", ms_conn_local(conn));
}

static inline void on_frame(struct ms_conn *conn, const struct ms_wire_header *head,
                            const uint8_t *bytes, void *arg)
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

static inline void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct end *end = arg;
    ck_assert_ptr_eq(conn, end->conn);
    end->closed++;
    end->code = code;
    end->conn = NULL;
    snprintf(end->reason, sizeof(end->reason), "%s", reason);
}

static const struct ms_conn_handler handler = {
    .on_open = on_open, .on_frame = on_frame, .on_close = on_close};

static inline void on_accept(evutil_socket_t fd, short what, void *arg)
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

static inline void on_guard(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    ((struct world *)arg)->guard = 1;
}

/* Runs the loop until *flag is true; a minute without that is a failure. */
static inline void run_until(struct world *w, const int *flag)
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

static inline void world_listen(struct world *w, const char *address)
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

static inline void world_init(struct world *w, const char *address)
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

static inline void world_fini(struct world *w)
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

static inline void dial(struct world *w)
{
    ck_ms_ok(
        ms_conn_connect(w->base, w->address, &w->client, &handler, &w->self, &w->self.conn, err));
}

/* ---- certificates ---- */

static inline void make_ca(const struct world *w, const char *name)
{
    char path[256];
    struct ms_ca *ca = NULL;
    ck_ms_ok(ms_ca_create(name, 10, &ca, err));
    snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    ck_ms_ok(ms_ca_save(ca, path, err));
    ms_ca_destroy(ca);
}

static inline void issue(const struct world *w, const char *ca_name, enum ms_role role,
                         const char *name, int days)
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

static inline SSL_CTX *context(const struct world *w, const char *ca_name, const char *name)
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

static inline void world_init_tls(struct world *w, enum ms_role client_role)
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

static inline void send_ok(struct ms_conn *conn, uint32_t id, const char *text)
{
    Ms__Ok ok = MS__OK__INIT;
    ok.text = (char *)text;
    ck_ms_ok(ms_conn_send(conn, MS_MSG_OK, id, &ok.base, err));
}

static inline int raw_connect(const struct world *w)
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

static inline void raw_hello(int fd)
{
    uint8_t frame[128];
    Ms__Hello hello = MS__HELLO__INIT;
    hello.protocol_min = 1;
    hello.protocol_max = 1;
    size_t size = ms_wire_size(&hello.base);
    ck_ms_ok(ms_wire_pack(MS_MSG_HELLO, 0, &hello.base, frame, size, err));
    ck_assert_int_eq(write(fd, frame, size), (ssize_t)size);
}

static inline void ck_contains(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' lacks '%s'", text, part);
}

#endif
