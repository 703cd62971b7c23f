/* conn.c - one connection type for TCP, TLS and Unix sockets: life, frames, back-pressure */
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
#include <openssl/err.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_BYTES = 16384, /* one TLS record: a peer that floods gets its turn, not all turns */
    STALL_MS = 500,     /* a deadline that comes so much later found this process asleep */
    KEEPALIVE_IDLE_S = 30,
    KEEPALIVE_EVERY_S = 10,
    KEEPALIVE_PROBES = 3,
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the end ---- */

static void conn_free(struct ms_conn *conn)
{
    ms_dial_destroy(conn->dial);
    if (conn->bev != NULL) {
        bufferevent_free(conn->bev); /* and fd and SSL with it */
    }
    if (conn->deadline != NULL) {
        event_free(conn->deadline);
    }
    if (conn->end != NULL) {
        event_free(conn->end);
    }
    SSL_CTX_free(conn->tls);
    ERR_clear_error();
    free(conn);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct ms_conn *conn = (struct ms_conn *)arg;
    if (!conn->is_silent && conn->handler.on_close != NULL) {
        conn->depth++; /* ms_conn_destroy from on_close is harmless */
        conn->handler.on_close(conn, conn->code, conn->reason, conn->arg);
    }
    conn_free(conn);
}

static void set_reason(struct ms_conn *conn, int code, const char *fmt, va_list args)
    MS_PRINTF(3, 0);

static void set_reason(struct ms_conn *conn, int code, const char *fmt, va_list args)
{
    char text[sizeof(conn->reason)]; /* arguments may point into conn */
    vsnprintf(text, sizeof(text), fmt, args);
    memcpy(conn->reason, text, sizeof(text));
    conn->code = code;
}

/* From here on nothing but the end event touches the handler. */
static void go_over(struct ms_conn *conn)
{
    conn->state = MS_CONN_OVER;
    ms_dial_destroy(conn->dial);
    conn->dial = NULL;
    if (conn->bev != NULL) {
        bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
        bufferevent_setcb(conn->bev, NULL, NULL, NULL, NULL);
    }
    event_del(conn->deadline);
    event_active(conn->end, EV_TIMEOUT, 0);
}

void ms_conn_end(struct ms_conn *conn, int code, const char *fmt, ...)
{
    if (conn->state == MS_CONN_OVER) {
        return;
    }
    if (conn->state != MS_CONN_CLOSING) { /* the reason to close stays the reason */
        va_list args;
        va_start(args, fmt);
        set_reason(conn, code, fmt, args);
        va_end(args);
    }
    go_over(conn);
}

/* Says good-bye on the socket. Unread bytes would turn our close into a reset, which can overtake
 * the last frame or alert on its way: read them away. */
static void say_bye(struct ms_conn *conn)
{
    char scratch[4096];
    int fd = bufferevent_getfd(conn->bev);
    if (conn->ssl != NULL && SSL_is_init_finished(conn->ssl)) {
        ERR_clear_error();
        SSL_set_shutdown(conn->ssl, SSL_RECEIVED_SHUTDOWN); /* nobody waits for the peer's */
        SSL_shutdown(conn->ssl);
        ERR_clear_error();
    }
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 64 && recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT) > 0; i++) {
    }
}

static void arm_deadline(struct ms_conn *conn, int ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    conn->deadline_at_ms = now_ms() + ms;
    event_add(conn->deadline, &tv);
}

static void finish_close(struct ms_conn *conn)
{
    say_bye(conn);
    go_over(conn);
}

void ms_conn_end_orderly(struct ms_conn *conn, int code, const char *fmt, ...)
{
    if (conn->state >= MS_CONN_CLOSING) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    set_reason(conn, code, fmt, args);
    va_end(args);
    if (conn->bev == NULL || conn->state == MS_CONN_HANDSHAKE) {
        go_over(conn); /* nothing could be sent yet */
        return;
    }
    conn->state = MS_CONN_CLOSING;
    bufferevent_disable(conn->bev, EV_READ);
    if (evbuffer_get_length(bufferevent_get_output(conn->bev)) == 0) {
        finish_close(conn);
        return;
    }
    bufferevent_setwatermark(conn->bev, EV_WRITE, 0, 0);
    arm_deadline(conn, MS_HANDSHAKE_MS);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct ms_conn *conn = (struct ms_conn *)arg;
    if (now_ms() - conn->deadline_at_ms > STALL_MS) {
        /* we slept, so the answer may be here already: judge nobody by our own sleep */
        arm_deadline(conn, conn->handshake_ms);
        return;
    }
    int seconds = (conn->handshake_ms + 999) / 1000;
    switch (conn->state) {
    case MS_CONN_DIALING:
    case MS_CONN_HANDSHAKE:
        ms_conn_end(conn, conn->is_server ? MS_E_TIMEOUT : MS_E_UNREACHABLE,
                    "%s did not finish the TLS handshake within %d s", conn->who, seconds);
        break;
    case MS_CONN_HELLO:
        ms_conn_end(conn, conn->is_server ? MS_E_TIMEOUT : MS_E_UNREACHABLE,
                    conn->is_server ? "%s sent no Hello within %d s"
                                    : "%s answered no Welcome within %d s: is it a scheduler?",
                    conn->who, seconds);
        break;
    default:
        ms_conn_end(conn, MS_E_TIMEOUT, "%s did not take our last words", conn->who);
        break;
    }
}

/* ---- frames in ---- */

/* Refuses what a peer's role may not send; the connection lives on. */
static int may_send(struct ms_conn *conn, const struct ms_wire_header *head)
{
    const struct ms_wire_type *type = ms_wire_find(head->type);
    unsigned role = conn->is_server ? (unsigned)conn->peer.role & ~(unsigned)MS_ROLE_SCHEDULER
                                    : (unsigned)conn->peer.role | MS_ROLE_SCHEDULER;
    if ((type->senders & role) != 0) {
        return 1;
    }
    char text[MS_ERR_TEXT_MAX];
    snprintf(text, sizeof(text),
             "%s may not send %s: it takes the certificate of a%s (msctl certs issue)", conn->who,
             type->name,
             (type->senders & MS_ROLE_WORKER) != 0      ? " worker"
             : (type->senders & MS_ROLE_SCHEDULER) != 0 ? " scheduler"
                                                        : " user or an admin");
    Ms__Error error = MS__ERROR__INIT;
    error.code = MS_E_REFUSED;
    error.text = text;
    ms_conn_put(conn, MS_MSG_ERROR, head->id, &error.base, NULL);
    return 0;
}

static void take_frame(struct ms_conn *conn, const struct ms_wire_header *head,
                       const uint8_t *bytes)
{
    if (conn->state == MS_CONN_HELLO) {
        ms_conn_take_hello(conn, head, bytes);
        return;
    }
    conn->refusal_code = 0;
    if (head->type == MS_MSG_ERROR && head->id == 0) {
        ms_conn_note_refusal(conn, head, bytes);
    }
    if (head->type == MS_MSG_HELLO || head->type == MS_MSG_WELCOME) {
        ms_conn_refuse(conn, head->id, MS_E_PROTOCOL, "a second Hello or Welcome");
    } else if (may_send(conn, head) && conn->state == MS_CONN_OPEN) {
        conn->depth++;
        conn->handler.on_frame(conn, head, bytes, conn->arg);
        conn->depth--;
    }
}

/* The next whole frame of the input: 1, or 0 when more bytes are needed or the bytes are wrong. */
static int next_frame(struct ms_conn *conn, struct evbuffer *input, struct ms_wire_header *ret_head,
                      const uint8_t **ret_bytes)
{
    uint8_t start[MS_WIRE_HEADER];
    struct ms_err err = {0, ""};
    ev_ssize_t n = evbuffer_copyout(input, start, sizeof(start));
    int rc = n >= 4 ? ms_wire_check_magic(start, &err) : MS_OK;
    if (rc == MS_OK && n < MS_WIRE_HEADER) {
        return 0;
    }
    if (rc == MS_OK) {
        rc = ms_wire_parse_header(start, ret_head, &err);
    }
    if (rc != MS_OK) {
        ms_conn_refuse(conn, 0, rc, err.text);
        return 0;
    }
    size_t size = MS_WIRE_HEADER + (size_t)ret_head->length;
    if (evbuffer_get_length(input) < size) {
        return 0;
    }
    const uint8_t *bytes = evbuffer_pullup(input, (ev_ssize_t)size);
    if (bytes == NULL) {
        ms_conn_end(conn, MS_E_NOMEM, "no memory for a frame of %zu bytes from %s", size,
                    conn->who);
        return 0;
    }
    *ret_bytes = bytes + MS_WIRE_HEADER;
    return 1;
}

static void read_frames(struct ms_conn *conn)
{
    struct evbuffer *input = bufferevent_get_input(conn->bev);
    struct evbuffer *output = bufferevent_get_output(conn->bev);
    struct ms_wire_header head;
    const uint8_t *bytes = NULL;
    while (conn->state == MS_CONN_HELLO || conn->state == MS_CONN_OPEN) {
        if (evbuffer_get_length(output) > MS_OUTPUT_SOFT) {
            /* whoever asks without reading the answers waits until he has read them */
            conn->is_paused = 1;
            bufferevent_disable(conn->bev, EV_READ);
            return;
        }
        if (!next_frame(conn, input, &head, &bytes)) {
            return;
        }
        take_frame(conn, &head, bytes);
        if (conn->state != MS_CONN_OVER) {
            evbuffer_drain(input, MS_WIRE_HEADER + (size_t)head.length);
        }
    }
}

static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    read_frames((struct ms_conn *)arg);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct ms_conn *conn = (struct ms_conn *)arg;
    size_t unsent = evbuffer_get_length(bufferevent_get_output(bev));
    if (conn->state == MS_CONN_CLOSING && unsent == 0) {
        finish_close(conn);
    } else if (conn->is_paused && unsent <= MS_OUTPUT_SOFT / 2) {
        conn->is_paused = 0;
        bufferevent_enable(bev, EV_READ);
        read_frames(conn); /* no event will come for what is in the buffer already */
    }
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
    ms_conn_lost(conn, what, error);
    if (conn->is_server && conn->state == MS_CONN_OVER) {
        say_bye(conn); /* the alert or the refusal should arrive */
    }
}

/* ---- frames out ---- */

static int check_room(struct ms_conn *conn, size_t size, struct ms_err *err)
{
    size_t unsent = evbuffer_get_length(bufferevent_get_output(conn->bev));
    if (unsent + size > MS_OUTPUT_HARD) {
        ms_conn_end(conn, MS_E_FULL, "%s does not read: more than %u MiB are unsent", conn->who,
                    MS_OUTPUT_HARD >> 20);
        return ms_fail(err, MS_E_FULL, "%s", conn->reason);
    }
    return MS_OK;
}

int ms_conn_put(struct ms_conn *conn, uint16_t type, uint32_t id, const ProtobufCMessage *msg,
                struct ms_err *err)
{
    size_t size = ms_wire_size(msg);
    int rc = check_room(conn, size, err);
    if (rc != MS_OK) {
        return rc;
    }
    /* header and message in one piece: each piece would become a TLS record of its own */
    struct evbuffer *output = bufferevent_get_output(conn->bev);
    struct evbuffer_iovec piece;
    if (evbuffer_reserve_space(output, (ev_ssize_t)size, &piece, 1) < 1) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a frame of %zu bytes to %s", size,
                       conn->who);
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
    if (rc == MS_OK && evbuffer_add(bufferevent_get_output(conn->bev), frame, size) != 0) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for a frame of %zu bytes to %s", size, conn->who);
    }
    return rc;
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
    conn_free(conn);
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

/* Puts a bufferevent on a connected socket; takes fd only on success. */
static int open_stream(struct ms_conn *conn, int fd, struct ms_err *err)
{
    ms_conn_identify_socket(conn, fd);
    if (conn->tls != NULL && !conn->is_unix) {
        SSL *ssl = ms_tls_new(conn->tls, conn->is_server, conn->host);
        if (ssl == NULL) {
            return ms_fail(err, MS_E_TLS, "cannot begin TLS with %s", conn->who);
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
    arm_deadline(conn, conn->handshake_ms);
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
    conn->require_scheduler = opt->require_scheduler;
    conn->handshake_ms = opt->handshake_ms > 0 ? opt->handshake_ms : MS_HANDSHAKE_MS;
    snprintf(conn->host, sizeof(conn->host), "%s", opt->tls_host != NULL ? opt->tls_host : "");
    snprintf(conn->software, sizeof(conn->software), "%s",
             opt->software != NULL ? opt->software : "");
    snprintf(conn->cluster, sizeof(conn->cluster), "%s", opt->cluster != NULL ? opt->cluster : "");
    if (opt->tls != NULL && SSL_CTX_up_ref(opt->tls) == 1) {
        conn->tls = opt->tls;
    }
    conn->deadline = event_new(base, -1, 0, on_deadline, conn);
    conn->end = event_new(base, -1, 0, on_end, conn);
    if (conn->deadline == NULL || conn->end == NULL) {
        conn_free(conn);
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
    snprintf(conn->who, sizeof(conn->who), "the scheduler at %s", conn->peer.address);
    rc = ms_dial_start(base, &addr, conn->handshake_ms, on_dialed, conn, &conn->dial, err);
    if (rc != MS_OK) {
        conn_free(conn);
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
        conn_free(conn);
        return rc;
    }
    arm_deadline(conn, conn->handshake_ms);
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

size_t ms_conn_unsent(const struct ms_conn *conn)
{
    return conn->bev != NULL ? evbuffer_get_length(bufferevent_get_output(conn->bev)) : 0;
}
