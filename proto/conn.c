/* conn.c - one connection type for TCP, TLS and Unix sockets: its beginning, and frames out */
#include "proto/conn.h"

#include "proto/cluster.pb-c.h"
#include "proto/conn_private.h"
#include "proto/limits.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 16384,   /* one TLS record: a peer that floods gets its turn, not all turns */
    STREAM_BYTES = 65536, /* SSL with its first buffers, bufferevent, events: 40 KiB */
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_EVERY_S = 10,
    KEEPALIVE_PROBES = 3,
};
static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    ms_conn_read_frames((struct ms_conn *)arg);
}

/* No event will come for what is in the buffer already. */
static void go_on(struct ms_conn *conn)
{
    if (conn->is_paused || conn->is_held || conn->state != MS_CONN_OPEN) {
        return;
    }
    ms_conn_read_frames(conn);
    if (!conn->is_paused && !conn->is_held && conn->state == MS_CONN_OPEN) {
        bufferevent_enable(conn->bev, EV_READ);
    }
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct ms_conn *conn = (struct ms_conn *)arg;
    size_t unsent = evbuffer_get_length(bufferevent_get_output(bev));
    if (conn->state == MS_CONN_CLOSING && unsent == 0) {
        ms_conn_finish_close(conn);
    } else if (conn->is_paused && unsent <= MS_OUTPUT_SOFT / 2) {
        conn->is_paused = 0;
        go_on(conn);
    }
}

void ms_conn_resume(struct ms_conn *conn)
{
    if (conn->is_held) {
        conn->is_held = 0;
        go_on(conn);
    }
}

/* The process at the other end is gone, and our answer to its first word met nobody: what it said
 * behind that lies in the socket. */
static void read_on(struct ms_conn *conn, int error)
{
    conn->is_deaf = 1;
    conn->deaf_errno = error;
    conn->is_paused = 0;                                /* for answers to go out */
    bufferevent_disable(conn->bev, EV_READ | EV_WRITE); /* libevent has stopped to read, too */
    ms_conn_arm_deadline(conn, conn->handshake_ms);
    go_on(conn);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct ms_conn *conn = (struct ms_conn *)arg;
    int error = errno;
    (void)bev;
    if ((what & BEV_EVENT_CONNECTED) != 0) {
        ms_conn_begin(conn);
        return;
    }
    if (conn->state == MS_CONN_CLOSING) {
        ms_conn_end(conn, conn->code, "%s", conn->reason);
        return;
    }
    if (conn->state == MS_CONN_OPEN && (what & BEV_EVENT_WRITING) != 0 && !conn->is_deaf) {
        read_on(conn, error);
        return;
    }
    ms_conn_lost(conn, what, error);
    if (conn->is_server && conn->state == MS_CONN_OVER) {
        ms_conn_say_bye(conn); /* the alert or the refusal should arrive */
    }
}

/* ---- frames out ---- */

static int check_room(struct ms_conn *conn, size_t size, struct ms_err *err)
{
    if (ms_conn_unsent(conn) + size > MS_OUTPUT_HARD) {
        ms_conn_end(conn, MS_E_FULL, "%s does not read: more than %u MiB are unsent", conn->who,
                    MS_OUTPUT_HARD >> 20);
        return ms_fail(err, MS_E_FULL, "%s", conn->reason);
    }
    return MS_OK;
}

/* The peer would wait for ever for a frame that was never sent: better that it comes back. */
static int fail_nomem(struct ms_conn *conn, size_t size, struct ms_err *err)
{
    ms_conn_end(conn, MS_E_NOMEM, "no memory for a frame of %zu bytes to %s", size, conn->who);
    return ms_fail(err, MS_E_NOMEM, "%s", conn->reason);
}

int ms_conn_put(struct ms_conn *conn, uint16_t type, uint32_t id, const ProtobufCMessage *msg,
                struct ms_err *err)
{
    size_t size = ms_wire_size(msg);
    int rc = check_room(conn, size, err);
    if (rc != MS_OK || conn->is_deaf) {
        return rc;
    }
    ms_conn_spill(conn);
    /* header and message in one piece: each piece would become a TLS record of its own */
    struct evbuffer *output = bufferevent_get_output(conn->bev);
    struct evbuffer_iovec piece;
    if (evbuffer_reserve_space(output, (ev_ssize_t)size, &piece, 1) < 1) {
        return fail_nomem(conn, size, err);
    }
    rc = ms_wire_pack(type, id, msg, (uint8_t *)piece.iov_base, size, err);
    if (rc == MS_OK) {
        piece.iov_len = size;
        evbuffer_commit_space(output, &piece, 1);
    }
    return rc;
}

static int check_open(const struct ms_conn *conn, struct ms_err *err)
{
    if (conn->state < MS_CONN_OPEN) {
        return ms_fail(err, MS_E_INVALID, "the connection to %s is not open yet", conn->who);
    }
    if (conn->state > MS_CONN_OPEN) {
        return ms_fail(err, MS_E_CLOSED, "the connection to %s is closing: %s", conn->who,
                       conn->reason);
    }
    return MS_OK;
}

int ms_conn_send(struct ms_conn *conn, uint16_t type, uint32_t id, const ProtobufCMessage *msg,
                 struct ms_err *err)
{
    int rc = check_open(conn, err);
    return rc != MS_OK ? rc : ms_conn_put(conn, type, id, msg, err);
}

int ms_conn_send_bytes(struct ms_conn *conn, const uint8_t *frame, size_t size, struct ms_err *err)
{
    int rc = check_open(conn, err);
    if (rc == MS_OK) {
        rc = check_room(conn, size, err);
    }
    if (rc == MS_OK && !conn->is_deaf && evbuffer_add(ms_conn_queue(conn), frame, size) != 0) {
        rc = fail_nomem(conn, size, err);
    }
    return rc;
}

struct ms_shared {
    size_t size;
    unsigned refs;
    uint8_t bytes[];
};

struct ms_shared *ms_shared_create(const uint8_t *bytes, size_t size)
{
    struct ms_shared *shared = malloc(sizeof(*shared) + size);
    if (shared != NULL) {
        shared->size = size;
        shared->refs = 1;
        memcpy(shared->bytes, bytes, size);
    }
    return shared;
}

void ms_shared_unref(struct ms_shared *shared)
{
    if (shared != NULL && --shared->refs == 0) {
        free(shared);
    }
}

static void on_shared_sent(const void *bytes, size_t size, void *arg)
{
    (void)bytes;
    (void)size;
    ms_shared_unref(arg);
}

int ms_conn_send_shared(struct ms_conn *conn, const uint8_t *head, size_t size,
                        struct ms_shared *shared, struct ms_err *err)
{
    int rc = check_open(conn, err);
    if (rc == MS_OK) {
        rc = check_room(conn, size + shared->size, err);
    }
    if (rc != MS_OK || conn->is_deaf) {
        return rc;
    }
    struct evbuffer *frame = evbuffer_new(); /* a head without its rest must not get out */
    if (frame != NULL && evbuffer_add(frame, head, size) == 0 &&
        evbuffer_add_reference(frame, shared->bytes, shared->size, on_shared_sent, shared) == 0) {
        shared->refs++;
        if (evbuffer_add_buffer(ms_conn_queue(conn), frame) == 0) {
            evbuffer_free(frame);
            return MS_OK;
        }
    }
    if (frame != NULL) {
        evbuffer_free(frame);
    }
    return ms_fail(err, MS_E_NOMEM, "no memory for a frame of %zu bytes to %s", size + shared->size,
                   conn->who);
}

void ms_conn_refuse(struct ms_conn *conn, uint32_t id, int code, const char *text)
{
    if (conn->state == MS_CONN_HELLO || conn->state == MS_CONN_OPEN) {
        Ms__Error error = MS__ERROR__INIT;
        error.code = code;
        error.text = (char *)text;
        ms_conn_put(conn, MS_MSG_ERROR, id, &error.base, NULL);
    }
    ms_conn_end_orderly(conn, code, "%s was refused: %s", conn->who, text);
}

void ms_conn_drop(struct ms_conn *conn, int code, const char *text)
{
    ms_conn_end(conn, code, "%s was dropped: %s", conn->who, text);
}

void ms_conn_close(struct ms_conn *conn)
{
    ms_conn_end_orderly(conn, MS_OK, "we closed the connection to %s", conn->who);
}

void ms_conn_destroy(struct ms_conn *conn)
{
    if (conn == NULL) {
        return;
    }
    if (conn->depth > 0) {
        conn->is_silent = 1;
        ms_conn_end(conn, MS_OK, "destroyed");
        return;
    }
    ms_conn_free(conn);
}

/* ---- the beginning ---- */

static void set_socket_options(int fd)
{
    int on = 1;
    int idle = KEEPALIVE_IDLE_S;
    int every = KEEPALIVE_EVERY_S;
    int probes = KEEPALIVE_PROBES;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* A message of the handshake is a step, a byte of it is none: it costs its sender nothing. */
static void on_tls_step(const SSL *ssl, int where, int ret)
{
    struct ms_conn *conn = SSL_get_app_data(ssl);
    int step = (int)SSL_get_state(ssl);
    (void)ret;
    if ((where & SSL_CB_EXIT) != 0 && conn->state == MS_CONN_HANDSHAKE && step != conn->tls_step &&
        BIO_number_read(SSL_get_rbio((SSL *)(uintptr_t)ssl)) > 0) {
        conn->tls_step = step;
        conn->on_work(conn->arg);
    }
}

/* libevent 2.1.12 crashes in bufferevent_openssl_socket_new when it finds no memory: what a stream
 * takes is asked for first. */
static int has_memory(void)
{
    void *probe = malloc(STREAM_BYTES);
    free(probe);
    return probe != NULL;
}

/* Puts a bufferevent on a connected socket; takes fd only on success. */
static int open_stream(struct ms_conn *conn, int fd, struct ms_err *err)
{
    if (!has_memory()) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a connection");
    }
    ms_conn_identify_socket(conn, fd);
    if (conn->tls != NULL && !conn->is_unix) {
        SSL *ssl = ms_tls_new(conn->tls, conn->is_server, conn->host);
        if (ssl == NULL) {
            return ms_fail(err, MS_E_TLS, "cannot begin TLS with %s", conn->who);
        }
        if (conn->let_guests_in) {
            SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL); /* a certificate that is shown is judged */
        }
        if (conn->is_server && conn->on_work != NULL) {
            SSL_set_app_data(ssl, conn);
            SSL_set_info_callback(ssl, on_tls_step);
        }
        /* the socket variant: the filter loops (libevent#952). On failure it frees ssl, not fd */
        conn->bev = bufferevent_openssl_socket_new(conn->base, fd, ssl,
                                                   conn->is_server ? BUFFEREVENT_SSL_ACCEPTING
                                                                   : BUFFEREVENT_SSL_CONNECTING,
                                                   BEV_OPT_CLOSE_ON_FREE);
        conn->ssl = conn->bev != NULL ? ssl : NULL;
    } else {
        conn->bev = bufferevent_socket_new(conn->base, fd, BEV_OPT_CLOSE_ON_FREE);
    }
    if (conn->bev == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the connection to %s", conn->who);
    }
    if (!conn->is_unix) {
        set_socket_options(fd);
    }
    conn->state = conn->ssl != NULL ? MS_CONN_HANDSHAKE : MS_CONN_HELLO;
    bufferevent_setcb(conn->bev, on_read, on_write, on_event, conn);
    bufferevent_setwatermark(conn->bev, EV_WRITE, MS_OUTPUT_SOFT / 2, 0);
    bufferevent_set_max_single_read(conn->bev, READ_BYTES);
    bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
    return MS_OK;
}

static void on_dialed(int fd, int code, const char *text, void *arg)
{
    struct ms_conn *conn = (struct ms_conn *)arg;
    struct ms_err err = {0, ""};
    conn->dial = NULL;
    if (fd < 0) {
        ms_conn_end(conn, code, "%s", text);
        return;
    }
    if (open_stream(conn, fd, &err) != MS_OK) {
        close(fd);
        ms_conn_end(conn, err.code, "%s", err.text);
        return;
    }
    ms_conn_arm_deadline(conn, conn->handshake_ms);
    if (conn->ssl == NULL) {
        ms_conn_begin(conn);
    }
}

static void ignore_sigpipe(void)
{
    struct sigaction now;
    /* OpenSSL writes without MSG_NOSIGNAL: a dead peer must not end this process */
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
        signal(SIGPIPE, SIG_IGN);
    }
}

static struct ms_conn *conn_create(struct event_base *base, const struct ms_conn_options *opt,
                                   const struct ms_conn_handler *handler, void *arg)
{
    struct ms_conn *conn = (struct ms_conn *)calloc(1, sizeof(*conn));
    if (conn == NULL) {
        return NULL;
    }
    ignore_sigpipe();
    assert(handler->on_frame != NULL);
    conn->base = base;
    conn->handler = *handler;
    conn->arg = arg;
    conn->plain_role = opt->plain_role;
    conn->owner_uid = opt->owner_uid;
    conn->has_account = opt->account != NULL;
    conn->account = opt->account != NULL ? *opt->account : (struct ms_account){.uid = 0};
    conn->require_scheduler = opt->require_scheduler;
    conn->let_guests_in = opt->let_guests_in;
    snprintf(conn->require_worker, sizeof(conn->require_worker), "%s",
             opt->require_worker != NULL ? opt->require_worker : "");
    conn->handshake_ms = opt->handshake_ms > 0 ? opt->handshake_ms : MS_HANDSHAKE_MS;
    snprintf(conn->host, sizeof(conn->host), "%s", opt->tls_host != NULL ? opt->tls_host : "");
    snprintf(conn->software, sizeof(conn->software), "%s",
             opt->software != NULL ? opt->software : "");
    snprintf(conn->cluster, sizeof(conn->cluster), "%s", opt->cluster != NULL ? opt->cluster : "");
    conn->may_take = opt->may_take;
    conn->may_grow = opt->may_grow;
    conn->has_shrunk = opt->has_shrunk;
    conn->on_work = opt->on_work;
    if (opt->tls != NULL && SSL_CTX_up_ref(opt->tls) == 1) {
        conn->tls = opt->tls;
    }
    conn->deadline = event_new(base, -1, 0, ms_conn_on_deadline, conn);
    conn->end = event_new(base, -1, 0, ms_conn_on_end, conn);
    conn->fresh = opt->is_flushed ? evbuffer_new() : NULL;
    if (conn->deadline == NULL || conn->end == NULL || (opt->is_flushed && conn->fresh == NULL)) {
        ms_conn_free(conn);
        return NULL;
    }
    return conn;
}

int ms_conn_connect(struct event_base *base, const char *address, const struct ms_conn_options *opt,
                    const struct ms_conn_handler *handler, void *arg, struct ms_conn **ret,
                    struct ms_err *err)
{
    struct ms_addr addr;
    int rc = ms_addr_parse(address, MS_SCHED_PORT, &addr, err);
    if (rc != MS_OK) {
        return rc;
    }
    struct ms_conn *conn = conn_create(base, opt, handler, arg);
    if (conn == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a connection to %s", address);
    }
    conn->is_unix = addr.is_unix;
    ms_addr_format(&addr, conn->peer.address);
    snprintf(conn->who, sizeof(conn->who), "%.*s at %s", MS_NAME_MAX,
             opt->what != NULL ? opt->what : "the scheduler", conn->peer.address);
    rc = ms_dial_start(base, &addr, conn->handshake_ms, on_dialed, conn, &conn->dial, err);
    if (rc != MS_OK) {
        ms_conn_free(conn);
        return rc;
    }
    *ret = conn;
    return MS_OK;
}

int ms_conn_accept(struct event_base *base, int fd, const struct ms_conn_options *opt,
                   const struct ms_conn_handler *handler, void *arg, struct ms_conn **ret,
                   struct ms_err *err)
{
    struct ms_conn *conn = conn_create(base, opt, handler, arg);
    if (conn == NULL) {
        close(fd);
        return ms_fail(err, MS_E_NOMEM, "no memory for a connection");
    }
    conn->is_server = 1;
    evutil_make_socket_nonblocking(fd);
    evutil_make_socket_closeonexec(fd);
    int rc = open_stream(conn, fd, err);
    if (rc != MS_OK) {
        close(fd);
        ms_conn_free(conn);
        return rc;
    }
    ms_conn_arm_deadline(conn, conn->handshake_ms);
    if (conn->ssl == NULL) {
        ms_conn_begin(conn);
    }
    *ret = conn;
    return MS_OK;
}

const struct ms_peer *ms_conn_peer(const struct ms_conn *conn)
{
    return &conn->peer;
}

void ms_conn_set_arg(struct ms_conn *conn, void *arg)
{
    conn->arg = arg;
}

const char *ms_conn_local(const struct ms_conn *conn)
{
    return conn->local;
}

int ms_conn_has_unread(const struct ms_conn *conn)
{
    char byte;
    return conn->bev != NULL &&
           recv(bufferevent_getfd(conn->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}
