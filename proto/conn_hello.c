/* conn_hello.c - who the other end is, Hello and Welcome, and words for a broken stream */
#include "proto/cluster.pb-c.h"
#include "proto/conn_private.h"
#include "proto/limits.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* ---- who is it ---- */

static void identify_unix(struct ms_conn *conn, int fd)
{
    struct ucred cred;
    socklen_t size = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0) {
        return; /* nobody: no role, no name */
    }
    conn->peer.uid = cred.uid;
    conn->account.uid = conn->has_account ? conn->account.uid : cred.uid;
    if (conn->is_server) {
        ms_principal_from_account(cred.uid, &conn->account, conn->owner_uid,
                                  conn->plain_role & MS_ROLE_WORKER, &conn->peer.who);
    }
}

void ms_conn_identify_socket(struct ms_conn *conn, int fd)
{
    struct sockaddr_storage sa;
    socklen_t size = sizeof(sa);
    memset(&sa, 0, sizeof(sa));
    if (getsockname(fd, (struct sockaddr *)&sa, &size) == 0) {
        ms_addr_print((const struct sockaddr *)&sa, size, conn->local);
    }
    conn->is_unix = sa.ss_family == AF_UNIX;
    conn->peer.uid = (unsigned)-1;
    if (conn->is_server) {
        size = sizeof(sa);
        if (getpeername(fd, (struct sockaddr *)&sa, &size) == 0) {
            ms_addr_print((const struct sockaddr *)&sa, size, conn->peer.address);
        }
        snprintf(conn->who, sizeof(conn->who), "the peer at %s", conn->peer.address);
    }
    if (conn->is_unix) {
        identify_unix(conn, fd);
        if (conn->is_server) {
            snprintf(conn->who, sizeof(conn->who), "%s (uid %u)", conn->peer.who.id,
                     conn->peer.uid);
        }
    } else if (conn->is_server && conn->tls == NULL) {
        ms_principal_anyone(conn->plain_role, &conn->peer.who);
    }
    if (!conn->is_server && (conn->is_unix || conn->tls == NULL)) {
        conn->peer.who.roles = MS_ROLE_SCHEDULER; /* nobody vouches; plain is what was asked for */
    }
}

/* The certificate's word on the peer; 0 when the connection is over because of it. */
static int identify_tls(struct ms_conn *conn)
{
    struct ms_err err = {0, ""};
    if (conn->let_guests_in && SSL_get0_peer_certificate(conn->ssl) == NULL) {
        ms_principal_anyone(conn->plain_role, &conn->peer.who);
        return 1;
    }
    if (ms_tls_peer(conn->ssl, &conn->peer, &err) != MS_OK) {
        ms_conn_refuse(conn, 0, err.code, err.text);
        return 0;
    }
    const char *role = ms_role_name(conn->peer.who.roles);
    if (!conn->is_server && conn->require_scheduler &&
        (conn->peer.who.roles & MS_ROLE_SCHEDULER) == 0) {
        ms_conn_end_orderly(conn, MS_E_REFUSED,
                            "%s shows the certificate of a %s (%s), not of a scheduler: check the "
                            "address",
                            conn->who, role, conn->peer.cert_name);
        return 0;
    }
    if (conn->require_worker[0] != '\0' &&
        ((conn->peer.who.roles & MS_ROLE_WORKER) == 0 ||
         strcmp(conn->peer.cert_name, conn->require_worker) != 0)) {
        ms_conn_end_orderly(conn, MS_E_REFUSED,
                            "%s shows the certificate of %s %s, not of worker %s: is the address "
                            "still the node's?",
                            conn->who, role, conn->peer.cert_name, conn->require_worker);
        return 0;
    }
    if (conn->is_server) {
        const char *name = conn->peer.cert_name;
        const int is_named_so = strcmp(role, name) == 0; /* all those of `msctl run` */
        snprintf(conn->who, sizeof(conn->who), "%s%s%s at %s", role, is_named_so ? "" : " ",
                 is_named_so ? "" : name, conn->peer.address);
    }
    return 1;
}

/* ---- Hello and Welcome ---- */

void ms_conn_begin(struct ms_conn *conn)
{
    if (conn->ssl != NULL) {
        conn->state = MS_CONN_HELLO;
        if (!identify_tls(conn)) {
            return;
        }
    }
    if (!conn->is_server) {
        Ms__Hello hello = MS__HELLO__INIT;
        struct ms_err err = {0, ""};
        hello.protocol_min = MS_PROTOCOL_VERSION;
        hello.protocol_max = MS_PROTOCOL_VERSION;
        hello.software = conn->software;
        if (ms_conn_put(conn, MS_MSG_HELLO, 0, &hello.base, &err) != MS_OK) {
            ms_conn_end(conn, err.code, "%s", err.text);
        }
    }
}

static void open_up(struct ms_conn *conn)
{
    conn->state = MS_CONN_OPEN;
    event_del(conn->deadline);
    if (conn->handler.on_open != NULL) {
        conn->depth++;
        conn->handler.on_open(conn, conn->arg);
        conn->depth--;
    }
}

static void take_client_hello(struct ms_conn *conn, const Ms__Hello *hello)
{
    if (hello->protocol_min > MS_PROTOCOL_VERSION || hello->protocol_max < MS_PROTOCOL_VERSION) {
        char text[MS_ERR_TEXT_MAX];
        snprintf(
            text, sizeof(text),
            "'%s' speaks the protocol versions %u to %u, this scheduler (%s) %u to %u: install "
            "the same release on both",
            hello->software, hello->protocol_min, hello->protocol_max, conn->software,
            MS_PROTOCOL_VERSION, MS_PROTOCOL_VERSION);
        ms_conn_refuse(conn, 0, MS_E_REFUSED, text);
        return;
    }
    Ms__Welcome welcome = MS__WELCOME__INIT;
    struct ms_err err = {0, ""};
    if (conn->handler.on_hello != NULL && conn->handler.on_hello(conn, conn->arg, &err) < 0) {
        ms_conn_refuse(conn, 0, err.code, err.text);
        return;
    }
    welcome.protocol = MS_PROTOCOL_VERSION;
    welcome.software = conn->software;
    welcome.cluster = conn->cluster;
    if (ms_conn_put(conn, MS_MSG_WELCOME, 0, &welcome.base, &err) != MS_OK) {
        ms_conn_end(conn, err.code, "%s", err.text);
        return;
    }
    open_up(conn);
}

static void take_welcome(struct ms_conn *conn, const Ms__Welcome *welcome)
{
    if (welcome->protocol != MS_PROTOCOL_VERSION) {
        ms_conn_end_orderly(
            conn, MS_E_REFUSED,
            "%s ('%s') chose the protocol version %u, we (%s) speak %u: install the "
            "same release on both",
            conn->who, welcome->software, welcome->protocol, conn->software, MS_PROTOCOL_VERSION);
        return;
    }
    open_up(conn);
}

void ms_conn_note_refusal(struct ms_conn *conn, const struct ms_wire_header *head,
                          const uint8_t *bytes)
{
    ProtobufCMessage *msg = NULL;
    if (ms_wire_unpack(head->type, bytes, head->length, &msg, NULL) == MS_OK) {
        const Ms__Error *error = (const Ms__Error *)msg;
        /* enum ms_code; negated or not, it is below 0 here */
        conn->refusal_code = error->code > 0 ? -error->code : error->code;
        conn->refusal_code = conn->refusal_code == 0 ? MS_E_REFUSED : conn->refusal_code;
        snprintf(conn->refusal, sizeof(conn->refusal), "%s", error->text);
        ms_wire_free(msg);
    }
}

void ms_conn_take_hello(struct ms_conn *conn, const struct ms_wire_header *head,
                        const uint8_t *bytes)
{
    if (!conn->is_server && head->type == MS_MSG_ERROR) {
        ms_conn_note_refusal(conn, head, bytes);
        ms_conn_end(conn, conn->refusal_code != 0 ? conn->refusal_code : MS_E_REFUSED,
                    "%s refused: %s", conn->who, conn->refusal);
        return;
    }
    ProtobufCMessage *msg = NULL;
    struct ms_err err = {0, ""};
    if (ms_wire_unpack(head->type, bytes, head->length, &msg, &err) != MS_OK) {
        ms_conn_refuse(conn, head->id, err.code, err.text);
        return;
    }
    if (conn->is_server) {
        take_client_hello(conn, (const Ms__Hello *)msg);
    } else {
        take_welcome(conn, (const Ms__Welcome *)msg);
    }
    ms_wire_free(msg);
}

/* ---- a broken stream ---- */

/* The oldest error that libevent took out of OpenSSL's queue; its list also holds SSL_ERROR_x. */
static unsigned long take_tls_error(struct ms_conn *conn)
{
    unsigned long found = 0;
    unsigned long one = 0;
    while (conn->ssl != NULL && (one = bufferevent_get_openssl_error(conn->bev)) != 0) {
        found = one > 255 ? one : found;
    }
    return found;
}

/* Our write failed, but the peer's verdict (an alert, or an Error frame) may lie in the socket
 * unread. Returns OpenSSL's error for an alert; a frame is noted as refusal. */
static unsigned long find_last_words(struct ms_conn *conn)
{
    uint8_t bytes[MS_WIRE_HEADER + 4096];
    unsigned long error = 0;
    int n = 0;
    if (conn->ssl != NULL) {
        ERR_clear_error();
        n = SSL_is_init_finished(conn->ssl) ? SSL_read(conn->ssl, bytes, (int)sizeof(bytes)) : 0;
        error = ERR_get_error();
        ERR_clear_error();
    } else {
        n = (int)recv(bufferevent_getfd(conn->bev), bytes, sizeof(bytes), MSG_DONTWAIT);
    }
    struct ms_wire_header head;
    if (n >= MS_WIRE_HEADER && ms_wire_parse_header(bytes, &head, NULL) == MS_OK &&
        head.type == MS_MSG_ERROR && (size_t)n >= MS_WIRE_HEADER + (size_t)head.length) {
        ms_conn_note_refusal(conn, &head, bytes + MS_WIRE_HEADER);
    }
    return error;
}

/* A peer that speaks plain on a TLS port gets its answer in plain. */
static void answer_plain(struct ms_conn *conn)
{
    uint8_t frame[256];
    Ms__Error error = MS__ERROR__INIT;
    error.code = MS_E_REFUSED;
    error.text = (char *)"this port speaks TLS only, and you came without: take back tls = off or "
                         "MS_ENABLE_SSL=0 on your side (msctl certs issue makes a certificate), "
                         "or say the same on this one";
    size_t size = ms_wire_size(&error.base);
    if (size <= sizeof(frame) &&
        ms_wire_pack(MS_MSG_ERROR, 0, &error.base, frame, size, NULL) == MS_OK) {
        ssize_t sent = send(bufferevent_getfd(conn->bev), frame, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent;
    }
}

static void lost_with_tls_error(struct ms_conn *conn, unsigned long tls_error)
{
    char text[MS_ERR_TEXT_MAX];
    int code = ms_tls_describe(conn->ssl, tls_error, conn->who, text, sizeof(text));
    int reason = ERR_GET_REASON(tls_error);
    if (conn->is_server && conn->state == MS_CONN_HANDSHAKE &&
        ERR_GET_LIB(tls_error) == ERR_LIB_SSL && reason == SSL_R_WRONG_VERSION_NUMBER) {
        answer_plain(conn);
    }
    ms_conn_end(conn, code, "%s", text);
}

void ms_conn_broke(struct ms_conn *conn, int error)
{
    if (error == 0 || error == EAGAIN) {
        ms_conn_end(conn, MS_E_CLOSED, "%s closed the connection", conn->who);
    } else {
        ms_conn_end(conn, MS_E_CLOSED, "the connection to %s broke: %s", conn->who,
                    strerror(error));
    }
}

void ms_conn_lost(struct ms_conn *conn, short what, int error)
{
    unsigned long tls_error = take_tls_error(conn);
    if (ERR_GET_LIB(tls_error) != ERR_LIB_SSL && conn->refusal_code == 0) {
        unsigned long more = find_last_words(conn);
        tls_error = ERR_GET_LIB(more) == ERR_LIB_SSL ? more : tls_error;
    }
    if (conn->refusal_code != 0) {
        ms_conn_end(conn, conn->refusal_code, "%s closed the connection: %s", conn->who,
                    conn->refusal);
    } else if (ERR_GET_LIB(tls_error) == ERR_LIB_SSL) {
        lost_with_tls_error(conn, tls_error);
    } else if (conn->state == MS_CONN_HANDSHAKE) {
        ms_conn_end(conn, MS_E_CLOSED,
                    conn->is_server ? "%s closed the connection in the TLS handshake"
                                    : "%s closed the connection in the TLS handshake: it may be "
                                      "shutting down, or TLS must be on, or off, on both ends",
                    conn->who);
    } else if (conn->state == MS_CONN_HELLO && !conn->is_server) {
        ms_conn_end(conn, MS_E_CLOSED,
                    conn->ssl != NULL
                        ? "%s closed the connection before its Welcome: it may be shutting down"
                        : "%s closed the connection before its Welcome: it may want TLS (a "
                          "certificate), or be shutting down",
                    conn->who);
    } else {
        ms_conn_broke(conn, (what & BEV_EVENT_EOF) != 0 ? 0 : error);
    }
}
