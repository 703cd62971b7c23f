/* client.h - a connection to the scheduler, or to a node, with an inbox: ask, wait for the answer
 *
 *     CONNECTING -> OPEN -> CLOSED (reason)        client_connect begins again
 *
 * Everything runs on the thread of the event base. Waiting runs the loop, so that timers, signals
 * and children of the same base are served meanwhile; their handlers must not call back in here. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "proto/conn.h"
#include "proto/err.h"

#include "proto/tls.h"
#include <event2/event.h>
#include <stdint.h>

enum client_state { CLIENT_IDLE, CLIENT_CONNECTING, CLIENT_OPEN, CLIENT_CLOSED };

enum {
    CLIENT_INBOX_MAX = 256, /* frames that nobody took; a reader at work holds two */
    CLIENT_BACK_MS = 5000,  /* a node that begins anew: some tenths of a second */
    CLIENT_BACK_EVERY_MS = 200,
    CLIENT_ANSWER_MS = 60000, /* a machine may stand still for a while; nobody waits for ever */
};

struct client;

/* base, and tls (NULL: plain) are borrowed for the client's life; tls_host and address are copied.
 * Returns owned, NULL without memory. */
struct client *client_create(struct event_base *base, const char *address, SSL_CTX *tls,
                             const char *tls_host);
/* The same to a node, for a result of a job. With TLS its certificate must be worker cert_name's
 * ("": tls knows by itself which one it is). */
struct client *client_create_node(struct event_base *base, const char *address, SSL_CTX *tls,
                                  const char *cert_name, const char *node_id);
void client_destroy(struct client *client); /* NULL allowed */

/* Begins to connect, from IDLE or CLOSED; frames of an older connection are dropped. */
int client_connect(struct client *client, struct ms_err *err);
/* Runs the loop until OPEN. MS_E_UNREACHABLE and others say what the peer or the system said. */
int client_wait_open(struct client *client, struct ms_err *err);

enum client_state client_get_state(const struct client *client);
/* Grows whenever the peer says something, the words that open a connection included. */
uint64_t client_heard(const struct client *client);
/* Why it is CLOSED. Returns its code. */
int client_reason(const struct client *client, struct ms_err *err);

/* Sends a request; *ret_id (NULL allowed) is the frame id that its answers carry. */
int client_send(struct client *client, uint16_t type, const ProtobufCMessage *msg, uint32_t *ret_id,
                struct ms_err *err);
/* Takes the oldest frame of id (0: of any) out of the inbox: 1 and *ret_type, *ret_msg (owned; free
 * with ms_wire_free; its strings are lines, see clean.h), 0 where there is none. An Error frame is
 * one too. */
int client_take(struct client *client, uint32_t id, uint16_t *ret_type, ProtobufCMessage **ret_msg);
/* Runs the loop until a frame of id is there or deadline_ms (monotonic, < 0: none) has passed:
 * MS_E_TIMEOUT. An Error frame fails with its code and text; another type than want is
 * MS_E_PROTOCOL; a connection that ends is its reason. */
int client_await(struct client *client, uint32_t id, uint16_t want, int64_t deadline_ms,
                 ProtobufCMessage **ret_msg, struct ms_err *err);
/* client_send and client_await; no answer within CLIENT_ANSWER_MS is MS_E_UNREACHABLE. */
int client_call(struct client *client, uint16_t type, const ProtobufCMessage *msg, uint16_t want,
                ProtobufCMessage **ret_msg, struct ms_err *err);
/* The same of what a node has: asks again, for CLIENT_BACK_MS at the most, while the scheduler says
 * that the node comes back in a moment. One that went while it was asked may be such a one. */
int client_call_of_node(struct client *client, uint16_t type, const ProtobufCMessage *msg,
                        uint16_t want, ProtobufCMessage **ret_msg, struct ms_err *err);

/* Turns an Error message into code and text. */
int client_error(const ProtobufCMessage *msg, struct ms_err *err);
/* The same of what a node said, which the scheduler passed on as it was: of a file there, whatever
 * its code claims. */
int client_node_error(int code, const char *text, struct ms_err *err);

#endif
