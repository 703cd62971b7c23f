/* conn_private.h - the inside of a connection, shared by the files conn*.c
 *
 *     DIALING -> HANDSHAKE -> HELLO -> OPEN -> CLOSING -> OVER
 *                (TLS only)                  (flushing)  (on_close, then gone)
 */
#ifndef MS_CONN_PRIVATE_H
#define MS_CONN_PRIVATE_H

#include "proto/conn.h"
#include "proto/dial.h"

#include <event2/bufferevent.h>

enum ms_conn_state {
    MS_CONN_DIALING,
    MS_CONN_HANDSHAKE,
    MS_CONN_HELLO,
    MS_CONN_OPEN,
    MS_CONN_CLOSING,
    MS_CONN_OVER,
};

struct ms_conn {
    struct event_base *base; /* not owned */
    struct ms_conn_handler handler;
    void *arg;
    enum ms_conn_state state;
    int is_server;
    int is_unix;

    SSL_CTX *tls; /* a reference of ours; NULL: plain */
    char host[MS_HOST_MAX + 1];
    char software[MS_NAME_MAX + 1];
    char cluster[MS_NAME_MAX + 1];
    unsigned plain_role;
    unsigned owner_uid;
    int has_account;
    struct ms_account account; /* of a Unix peer; without has_account its uid's, set with that */
    int require_scheduler;
    char require_worker[MS_NAME_MAX + 1]; /* "": no matter */
    int let_guests_in;
    int handshake_ms;
    int (*may_take)(void *arg);
    int (*may_grow)(void *arg);
    void (*has_shrunk)(void *arg);
    void (*on_work)(void *arg);

    struct ms_dial *dial;
    struct bufferevent *bev;
    struct evbuffer *fresh; /* of ms_conn_flush; NULL: the loop writes all */
    SSL *ssl;               /* lives in bev; NULL: plain */
    int tls_step;           /* OSSL_HANDSHAKE_STATE when on_work was called last */
    struct event *deadline;
    int64_t deadline_at_ms;
    struct event *end; /* runs on_close after the callback chain */

    struct ms_peer peer;
    char local[MS_ADDR_MAX + 1];
    char who[MS_ADDR_MAX + MS_NAME_MAX + 32]; /* the other end, for people */
    int depth;                                /* handler calls on the stack */
    int is_silent;                            /* destroyed: no on_close */
    int is_paused;                            /* too much unsent: not reading */
    int is_held;                              /* may_take or may_grow said no: not reading */
    int is_grown;                             /* may_grow said yes to the frame that comes in */
    int is_partial;                           /* a frame is half in, its deadline runs */
    int is_deaf; /* a write failed: nothing goes out any more, what came in is read to its end */
    int deaf_errno;
    int code; /* of on_close */
    char reason[MS_ERR_TEXT_MAX];
    int refusal_code; /* of an Error frame that was the last frame so far; 0: none */
    char refusal[MS_ERR_TEXT_MAX];
};

/* ---- conn_end.c ---- */

/* Ends at once: what is unsent is dropped, on_close follows from the loop. The first call counts.
 */
void ms_conn_end(struct ms_conn *conn, int code, const char *fmt, ...) MS_PRINTF(3, 4);
/* Ends after the output has gone out. */
void ms_conn_end_orderly(struct ms_conn *conn, int code, const char *fmt, ...) MS_PRINTF(3, 4);
/* Says good-bye on the socket: TLS close_notify, FIN. */
void ms_conn_say_bye(struct ms_conn *conn);
/* The output of a closing connection is out. */
void ms_conn_finish_close(struct ms_conn *conn);
void ms_conn_arm_deadline(struct ms_conn *conn, int ms);
/* Callbacks of the events `deadline` and `end`. */
void ms_conn_on_deadline(evutil_socket_t fd, short what, void *arg);
void ms_conn_on_end(evutil_socket_t fd, short what, void *arg);
/* Frees all, also of a half-built connection. */
void ms_conn_free(struct ms_conn *conn);

/* ---- conn_read.c ---- */

/* Hands on the whole frames of the input, until it is empty, the output too full or the turn over.
 */
void ms_conn_read_frames(struct ms_conn *conn);

/* ---- conn_flush.c ---- */

/* Where a frame is added that may wait for ms_conn_flush. */
struct evbuffer *ms_conn_queue(struct ms_conn *conn);
/* What waits for ms_conn_flush does not: the loop writes it. Before frames that do not wait. */
void ms_conn_spill(struct ms_conn *conn);

/* ---- conn.c ---- */

/* As ms_conn_send, in any state that has a stream. */
int ms_conn_put(struct ms_conn *conn, uint16_t type, uint32_t id, const ProtobufCMessage *msg,
                struct ms_err *err);

/* ---- conn_hello.c ---- */

/* Fills peer, local and who as far as the socket tells. */
void ms_conn_identify_socket(struct ms_conn *conn, int fd);
/* The stream is up (TLS: the handshake is over): judges the certificate, says Hello. */
void ms_conn_begin(struct ms_conn *conn);
/* The first frame of the other end: Hello, Welcome or Error. Opens the connection or ends it. */
void ms_conn_take_hello(struct ms_conn *conn, const struct ms_wire_header *head,
                        const uint8_t *bytes);
/* Remembers an Error frame as the likely reason of a close that follows. */
void ms_conn_note_refusal(struct ms_conn *conn, const struct ms_wire_header *head,
                          const uint8_t *bytes);
/* The stream broke or ended (error: errno or 0): finds words and ends the connection. */
void ms_conn_lost(struct ms_conn *conn, short what, int error);
/* It is closed, or broke for that errno. */
void ms_conn_broke(struct ms_conn *conn, int error);

#endif
