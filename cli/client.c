/* client.c - a connection to the scheduler, or to a node, with an inbox */
#include "cli/client.h"

#include "cli/clean.h"
#include "cli/finder.h"
#include "config.h"
#include "proto/clock.h"
#include "proto/cluster.pb-c.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct frame {
    struct frame *next;
    uint16_t type;
    uint32_t id;
    ProtobufCMessage *msg; /* owned */
};

struct client {
    struct event_base *base;
    SSL_CTX *tls;
    char *address;
    char *tls_host;                  /* NULL: none */
    int is_node;                     /* not a scheduler */
    char cert_name[MS_NAME_MAX + 1]; /* that a node must show */
    char what[MS_NAME_MAX + 8];      /* "the scheduler", "node n3": for people */
    struct ms_conn *conn;
    int is_for_a_moment; /* whom the last Error is about is away, or was gone while it was asked */
    int dir_fd;          /* of a Unix socket with a long path, until connected; -1: none */
    enum client_state state;
    struct ms_err reason;
    uint32_t last_id;
    struct frame *first, **last;
    size_t n_frames;
    uint64_t heard;
};

struct client *client_create(struct event_base *base, const char *address, SSL_CTX *tls,
                             const char *tls_host)
{
    struct client *client = (struct client *)calloc(1, sizeof(*client));
    if (client == NULL) {
        return NULL;
    }
    client->base = base;
    client->tls = tls;
    client->dir_fd = -1;
    snprintf(client->what, sizeof(client->what), "the scheduler");
    client->last = &client->first;
    client->address = strdup(address);
    client->tls_host = tls_host != NULL && tls_host[0] != '\0' ? strdup(tls_host) : NULL;
    if (client->address == NULL) {
        client_destroy(client);
        return NULL;
    }
    return client;
}

struct client *client_create_node(struct event_base *base, const char *address, SSL_CTX *tls,
                                  const char *cert_name, const char *node_id)
{
    struct client *client = client_create(base, address, tls, NULL);
    if (client != NULL) {
        client->is_node = 1;
        snprintf(client->cert_name, sizeof(client->cert_name), "%s", cert_name);
        snprintf(client->what, sizeof(client->what), "node %s", node_id);
    }
    return client;
}

static void drop_frames(struct client *client)
{
    while (client->first != NULL) {
        struct frame *frame = client->first;
        client->first = frame->next;
        ms_wire_free(frame->msg);
        free(frame);
    }
    client->last = &client->first;
    client->n_frames = 0;
}

static void close_dir(struct client *client)
{
    if (client->dir_fd >= 0) {
        close(client->dir_fd);
        client->dir_fd = -1;
    }
}

void client_destroy(struct client *client)
{
    if (client == NULL) {
        return;
    }
    ms_conn_destroy(client->conn);
    close_dir(client);
    drop_frames(client);
    free(client->address);
    free(client->tls_host);
    free(client);
}

/* ---- what the connection tells ---- */

static void on_open(struct ms_conn *conn, void *arg)
{
    struct client *client = (struct client *)arg;
    (void)conn;
    close_dir(client);
    client->heard++;
    client->state = CLIENT_OPEN;
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct client *client = (struct client *)arg;
    (void)conn;
    client->conn = NULL;
    if (client->state != CLIENT_CLOSED) { /* else close_with knew more */
        client->state = CLIENT_CLOSED;
        ms_fail(&client->reason, code < 0 ? code : MS_E_CLOSED, "%s", reason);
    }
}

static void close_with(struct client *client, const struct ms_err *why)
{
    ms_conn_close(client->conn);
    client->state = CLIENT_CLOSED;
    client->reason = *why;
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct client *client = (struct client *)arg;
    struct ms_err err = {0, ""};
    struct frame *frame = (struct frame *)calloc(1, sizeof(*frame));
    (void)conn;
    client->heard++;
    int rc = frame != NULL ? ms_wire_unpack(head->type, bytes, head->length, &frame->msg, &err)
                           : ms_fail(&err, MS_E_NOMEM, "no memory for an answer");
    if (rc == MS_OK && client->n_frames >= CLIENT_INBOX_MAX) {
        ms_wire_free(frame->msg);
        rc = ms_fail(&err, MS_E_PROTOCOL, "%s sent %d frames that nobody asked for", client->what,
                     CLIENT_INBOX_MAX);
    }
    if (rc != MS_OK) {
        free(frame);
        close_with(client, &err);
        return;
    }
    cli_clean_message(frame->msg);
    frame->type = head->type;
    frame->id = head->id;
    *client->last = frame;
    client->last = &frame->next;
    client->n_frames++;
}

static const struct ms_conn_handler handler = {
    .on_open = on_open, .on_frame = on_frame, .on_close = on_close};

/* ---- connecting ---- */

int client_connect(struct client *client, struct ms_err *err)
{
    char address[MS_PATH_MAX + 8];
    close_dir(client);
    int rc = finder_short_path(client->address, address, sizeof(address), &client->dir_fd, err);
    if (rc != MS_OK) {
        return rc;
    }
    struct ms_conn_options options;
    memset(&options, 0, sizeof(options));
    options.tls = client->tls;
    options.tls_host = client->tls_host;
    options.software = "msctl " MSCHED_VERSION;
    options.require_scheduler = !client->is_node;
    options.require_worker = client->cert_name;
    options.what = client->what;
    ms_conn_destroy(client->conn);
    client->conn = NULL;
    drop_frames(client);
    client->state = CLIENT_CONNECTING;
    rc = ms_conn_connect(client->base, address, &options, &handler, client, &client->conn, err);
    if (rc != MS_OK) {
        client->state = CLIENT_CLOSED;
        client->conn = NULL;
        if (err != NULL) {
            client->reason = *err;
        }
    }
    return rc;
}

int client_wait_open(struct client *client, struct ms_err *err)
{
    while (client->state == CLIENT_CONNECTING) {
        if (event_base_loop(client->base, EVLOOP_ONCE) != 0) {
            return ms_fail(err, MS_E_IO, "the event loop has nothing to wait for");
        }
    }
    return client->state == CLIENT_OPEN ? MS_OK : client_reason(client, err);
}

enum client_state client_get_state(const struct client *client)
{
    return client->state;
}

uint64_t client_heard(const struct client *client)
{
    return client->heard;
}

int client_reason(const struct client *client, struct ms_err *err)
{
    return ms_fail(err, client->reason.code < 0 ? client->reason.code : MS_E_CLOSED, "%s",
                   client->reason.text);
}

/* ---- asking ---- */

int client_send(struct client *client, uint16_t type, const ProtobufCMessage *msg, uint32_t *ret_id,
                struct ms_err *err)
{
    if (client->state != CLIENT_OPEN) {
        return client_reason(client, err);
    }
    uint32_t id = ++client->last_id;
    int rc = ms_conn_send(client->conn, type, id, msg, err);
    if (rc == MS_OK && ret_id != NULL) {
        *ret_id = id;
    }
    return rc;
}

int client_take(struct client *client, uint32_t id, uint16_t *ret_type, ProtobufCMessage **ret_msg)
{
    struct frame **link = &client->first;
    while (*link != NULL && id != 0 && (*link)->id != id) {
        link = &(*link)->next;
    }
    struct frame *frame = *link;
    if (frame == NULL) {
        return 0;
    }
    *link = frame->next;
    if (client->last == &frame->next) {
        client->last = link;
    }
    client->n_frames--;
    *ret_type = frame->type;
    *ret_msg = frame->msg;
    free(frame);
    return 1;
}

int client_error(const ProtobufCMessage *msg, struct ms_err *err)
{
    const Ms__Error *error = (const Ms__Error *)msg;
    int code = error->code < 0 ? error->code : MS_E_PROTOCOL;
    /* ours are about the one whom we asked, and he has answered: they are about somebody else */
    if (code == MS_E_TIMEOUT || code == MS_E_CLOSED || code == MS_E_UNREACHABLE) {
        code = MS_E_UNAVAILABLE;
    }
    return ms_fail(err, code, "%s", error->text);
}

int client_node_error(int code, const char *text, struct ms_err *err)
{
    int is_of_a_file = code == MS_E_NOT_FOUND || code == MS_E_IO || code == MS_E_NOMEM;
    return ms_fail(err, is_of_a_file ? code : MS_E_UNAVAILABLE, "%s", text);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    *(int *)arg = 1;
}

/* One turn of the loop, at most until the deadline. 0 or MS_E_TIMEOUT. */
static int turn(struct client *client, int64_t deadline_ms, struct ms_err *err)
{
    int passed = 0;
    struct event *timer = NULL;
    int64_t left_ms = deadline_ms - ms_mono_ms();
    if (deadline_ms >= 0) {
        if (left_ms <= 0) {
            return ms_fail(err, MS_E_TIMEOUT, "the time is over");
        }
        timer = evtimer_new(client->base, on_deadline, &passed);
        struct timeval tv = {left_ms / 1000, left_ms % 1000 * 1000};
        if (timer == NULL || evtimer_add(timer, &tv) != 0) {
            return ms_fail(err, MS_E_NOMEM, "no memory for a timer");
        }
    }
    int rc = event_base_loop(client->base, EVLOOP_ONCE) == 0
                 ? MS_OK
                 : ms_fail(err, MS_E_IO, "the event loop has nothing to wait for");
    if (timer != NULL) {
        event_free(timer);
    }
    return rc;
}

int client_await(struct client *client, uint32_t id, uint16_t want, int64_t deadline_ms,
                 ProtobufCMessage **ret_msg, struct ms_err *err)
{
    uint16_t type = 0;
    ProtobufCMessage *msg = NULL;
    while (!client_take(client, id, &type, &msg)) {
        int rc = client->state == CLIENT_OPEN ? turn(client, deadline_ms, err)
                                              : client_reason(client, err);
        if (rc != MS_OK) {
            return rc;
        }
    }
    if (type == want) {
        *ret_msg = msg;
        return MS_OK;
    }
    const struct ms_wire_type *row = ms_wire_find(type);
    int code = type == MS_MSG_ERROR ? ((const Ms__Error *)msg)->code : MS_OK;
    client->is_for_a_moment = code == MS_E_UNAVAILABLE || code == MS_E_CLOSED;
    int rc = type == MS_MSG_ERROR ? client_error(msg, err)
                                  : ms_fail(err, MS_E_PROTOCOL, "%s answered with a %s frame",
                                            client->what, row != NULL ? row->name : "strange");
    ms_wire_free(msg);
    return rc;
}

int client_call(struct client *client, uint16_t type, const ProtobufCMessage *msg, uint16_t want,
                ProtobufCMessage **ret_msg, struct ms_err *err)
{
    uint32_t id = 0;
    int rc = client_send(client, type, msg, &id, err);
    if (rc == MS_OK) {
        rc = client_await(client, id, want, ms_mono_ms() + CLIENT_ANSWER_MS, ret_msg, err);
    }
    if (rc == MS_E_TIMEOUT) { /* 124 is for waits that the user bounded */
        return ms_fail(err, MS_E_UNREACHABLE, "the scheduler at %.200s did not answer within %d s",
                       client->address, CLIENT_ANSWER_MS / 1000);
    }
    return rc;
}

static int rest(struct client *client, int64_t until_ms)
{
    int rc = MS_OK;
    while (rc == MS_OK && client->state == CLIENT_OPEN) {
        rc = turn(client, until_ms, NULL);
    }
    return rc == MS_E_TIMEOUT;
}

int client_call_of_node(struct client *client, uint16_t type, const ProtobufCMessage *msg,
                        uint16_t want, ProtobufCMessage **ret_msg, struct ms_err *err)
{
    int64_t give_up_ms = ms_mono_ms() + CLIENT_BACK_MS;
    for (;;) {
        client->is_for_a_moment = 0;
        int rc = client_call(client, type, msg, want, ret_msg, err);
        int64_t now = ms_mono_ms();
        if (rc == MS_OK || !client->is_for_a_moment || now >= give_up_ms ||
            !rest(client, now + CLIENT_BACK_EVERY_MS)) {
            return rc;
        }
    }
}
