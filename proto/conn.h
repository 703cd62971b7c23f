/* conn.h - one connection type for TCP, TLS and Unix sockets, over libevent
 *
 *        connect/accept -> (TLS handshake) -> Hello/Welcome -> frames ... -> closed
 *
 * Frames come in whole, checked against the limit of their type before memory is taken. All calls
 * and callbacks happen on the thread of the event base. A connection is never freed inside its own
 * callback: ms_conn_close marks it, it is destroyed after the callback chain. on_close is called
 * exactly once for each connection, unless ms_conn_destroy was called. */
#ifndef MS_CONN_H
#define MS_CONN_H

#include "proto/err.h"
#include "proto/tls.h"
#include "proto/wire.h"

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

struct ms_conn;

struct ms_conn_handler {
    /* The handshake (if any) and Hello/Welcome are over; peer is known. NULL allowed. */
    void (*on_open)(struct ms_conn *conn, void *arg);
    /* One frame; bytes are borrowed until return. */
    void (*on_frame)(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg);
    /* Over: reason says who closed and why, in words; code is an enum ms_code. The connection is
     * gone after this returns. */
    void (*on_close)(struct ms_conn *conn, int code, const char *reason, void *arg);
    /* Server: a Hello has come, and this is the last word on its sender before the Welcome. Below 0
     * refuses it with err's text. It may not close the connection itself. NULL: all are welcome. */
    int (*on_hello)(struct ms_conn *conn, void *arg, struct ms_err *err);
};

struct ms_conn_options {
    SSL_CTX *tls;         /* NULL: plain. Referenced, not owned */
    const char *tls_host; /* client: name or IP to verify; NULL: skip (Unix sockets) */
    const char *software; /* "msctl 0.1.0": goes into Hello or Welcome */
    const char *cluster;  /* server: goes into Welcome */
    unsigned plain_role;  /* server: roles of anyone: a peer without TLS on TCP (or-ed) */
    unsigned owner_uid;   /* server: Unix peers with this uid or 0 are admins, others users */
    /* server: whose the Unix peer is; NULL: of its uid, which has no name */
    const struct ms_account *account;
    int require_scheduler;      /* client: the server's certificate must be a scheduler's */
    const char *require_worker; /* client: ... must be this worker's; NULL: no matter */
    const char *what;           /* client: the other end for people; NULL: "the scheduler" */
    int let_guests_in; /* server: a peer without a certificate has plain_role; what it may do is
                          then the handler's business (a one-time token) */
    /* Server, NULL allowed; called with the connection's arg. may_take is asked before each frame
     * behind Hello: 0 holds the connection, which then neither reads nor hands on frames until
     * ms_conn_resume. may_grow is asked before room is made for a frame above MS_FRAME_SMALL: 0
     * holds likewise; each 1 is paid back with has_shrunk. on_work: a message of the
     * handshake was computed from what the peer said, which takes milliseconds. */
    int (*may_take)(void *arg);
    int (*may_grow)(void *arg);
    void (*has_shrunk)(void *arg);
    void (*on_work)(void *arg);
    int is_flushed;   /* what ms_conn_send_bytes and ms_conn_send_shared queue waits for
                         ms_conn_flush, or for any other frame */
    int handshake_ms; /* 0: MS_HANDSHAKE_MS; each for dialling, for TLS and Hello, for the last
                         words */
};

/* On Unix sockets tls is not used: the kernel says who the peer is (SO_PEERCRED). Frames that the
 * peer's role may not send (wire.h) are answered with an Error of the same id and not handed on.
 * Error.code carries the enum ms_code as it is. SIGPIPE is set to be ignored if it was at its
 * default. */

/* Starts to connect; on_open or on_close follows. Name look-up blocks. Returns owned by the loop:
 * alive until on_close. */
int ms_conn_connect(struct event_base *base, const char *address, const struct ms_conn_options *opt,
                    const struct ms_conn_handler *handler, void *arg, struct ms_conn **ret,
                    struct ms_err *err);

/* Takes an accepted fd. */
int ms_conn_accept(struct event_base *base, int fd, const struct ms_conn_options *opt,
                   const struct ms_conn_handler *handler, void *arg, struct ms_conn **ret,
                   struct ms_err *err);

/* Queues one frame. MS_E_FULL when more than MS_OUTPUT_HARD is unsent, MS_E_NOMEM: the connection
 * is then closing, for a frame that is missing must not go unnoticed. ms_conn_send_bytes takes a
 * frame that ms_wire_pack made. */
int ms_conn_send(struct ms_conn *conn, uint16_t type, uint32_t id, const ProtobufCMessage *msg,
                 struct ms_err *err);
int ms_conn_send_bytes(struct ms_conn *conn, const uint8_t *frame, size_t size, struct ms_err *err);

/* Bytes that many connections send: each holds a reference until they are out, none a copy. One
 * thread (the loop's). */
struct ms_shared;
struct ms_shared *ms_shared_create(const uint8_t *bytes, size_t size); /* copies; NULL: no memory */
void ms_shared_unref(struct ms_shared *shared);                        /* NULL allowed */
/* Queues a frame of ms_wire_pack_head and what follows it. */
int ms_conn_send_shared(struct ms_conn *conn, const uint8_t *head, size_t size,
                        struct ms_shared *shared, struct ms_err *err);

/* At the end of a turn, for what is_flushed kept: at_once writes it without waiting until the loop
 * hears that the socket takes it. The loop writes what that does not take, what is large, and all
 * where it is not at_once. */
void ms_conn_flush(struct ms_conn *conn, int at_once);

/* Goes on after may_take or may_grow held it: hands on what lies there, reads again. */
void ms_conn_resume(struct ms_conn *conn);

/* Refuses in words and closes after the text has gone out: an Error frame, then an orderly end. */
void ms_conn_refuse(struct ms_conn *conn, uint32_t id, int code, const char *text);
/* Orderly end after the output is flushed (bounded by handshake_ms). on_close follows. */
void ms_conn_close(struct ms_conn *conn);
/* At once: what is unsent is dropped. on_close follows with code and text. */
void ms_conn_drop(struct ms_conn *conn, int code, const char *text);
/* At once, no on_close. NULL allowed. */
void ms_conn_destroy(struct ms_conn *conn);

const struct ms_peer *ms_conn_peer(const struct ms_conn *conn); /* borrowed until on_close */
void ms_conn_set_arg(struct ms_conn *conn, void *arg);
/* Local address of the socket ("10.0.0.7:41234", "[::1]:41234", "unix"), for "the address from
 * which the scheduler is reached"; "" before the connection stands. */
const char *ms_conn_local(const struct ms_conn *conn);
size_t ms_conn_unsent(const struct ms_conn *conn);
/* 1: the peer sent something that this side has not come to yet. */
int ms_conn_has_unread(const struct ms_conn *conn);

#endif
