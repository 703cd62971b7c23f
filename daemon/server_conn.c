/* server_conn.c - what comes over a connection: its opening, its frames, its end */
#include "daemon/server_state.h"

#include "proto/conn_recheck.h"

#include <stdio.h>
#include <string.h>

/* A connection is where its next frame is looked for: at the end of the line again. */
static void touch(struct server *server, struct client *client)
{
    client->active_ms = server_mono_ms();
    list_remove(&client->active);
    list_add_tail(&server->active, &client->active);
}

static int recheck(const struct server *server, const struct client *client,
                   const struct ms_conn *conn, struct ms_err *err)
{
    struct ms_conn_rules rules = {
        .ctx = server->tls,
        .plain_role = server->options->anyone_roles,
        .uid_name = server_mapped_name(server, ms_conn_peer(conn)->uid, client->account)};
    if (rules.uid_name == NULL && client->is_mapped) {
        rules.uid_name = ""; /* the system may know another name: it is asked at the next accept */
    }
    return ms_conn_recheck(conn, &rules, err);
}

/* A reload may have come between the handshake and this: the rules of now count, not of then. */
static int on_hello(struct ms_conn *conn, void *arg, struct ms_err *err)
{
    struct client *client = arg;
    const struct server *server = client->owner;
    if (client->is_nameless) {
        return ms_fail(err, MS_E_TIMEOUT,
                       "the name of uid %u could not be looked up in the system's user database: "
                       "try again in a moment, or name it in user_map of the scheduler",
                       ms_conn_peer(conn)->uid);
    }
    return recheck(server, client, conn, err);
}

static void on_open(struct ms_conn *conn, void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    struct ms_err err = {0, ""};
    client->is_opened = 1;
    doorway_leave(client->door, &client->guest);
    if (server->is_stopping) {
        ms_conn_refuse(conn, 0, MS_E_REFUSED, "the scheduler is stopping: try again in a moment");
        return;
    }
    if (places_take(&server->places, ms_conn_peer(conn), &client->place, &err) < 0) {
        char quoted[2 * MS_TEXT_MAX];
        server_log(server, MS_LOG_WARNING, "conn.full peer=%s text=%s", ms_conn_peer(conn)->address,
                   ms_log_quote(quoted, sizeof(quoted), err.text));
        ms_conn_refuse(conn, 0, err.code, err.text);
        return;
    }
    client->is_known = 1;
    touch(server, client);
    server_apply(server, &(struct sched_event){.kind = SCHED_EV_OPENED,
                                               .conn = client->id,
                                               .peer = ms_conn_peer(conn)});
}

/* The core has no memory left but for what nodes need: others are told, not waited for. */
static int is_starved(struct server *server, const struct client *client, struct ms_conn *conn,
                      uint32_t id)
{
    if (client->is_node || !sched_is_starved(server->sched)) {
        return 0;
    }
    Ms__Error error = MS__ERROR__INIT;
    error.code = MS_E_NOMEM;
    error.text = (char *)"the scheduler has no memory for this request: try again in a moment";
    (void)ms_conn_send(conn, MS_MSG_ERROR, id, &error.base, NULL);
    return 1;
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    if (!client->is_known || server->is_stopping || is_starved(server, client, conn, head->id)) {
        return;
    }
    ProtobufCMessage *msg = NULL;
    struct ms_err err = {0, ""};
    int rc = ms_wire_unpack(head->type, bytes, head->length, &msg, &err);
    if (rc == MS_E_NOMEM) {
        Ms__Error error = MS__ERROR__INIT;
        error.code = rc;
        error.text = err.text;
        (void)ms_conn_send(conn, MS_MSG_ERROR, head->id, &error.base, NULL);
        return;
    }
    if (rc < 0) {
        ms_conn_refuse(conn, head->id, rc, err.text);
        return;
    }
    if (head->type == MS_MSG_CANCEL) {
        server_look_at_room(server);
    } else if (head->type == MS_MSG_STATUS_QUERY) {
        server_tell_times(server);
    }
    size_t before = sched_tick_bytes(server->sched);
    server_apply(server, &(struct sched_event){.kind = SCHED_EV_MESSAGE,
                                               .conn = client->id,
                                               .type = head->type,
                                               .id = head->id,
                                               .msg = msg});
    ms_wire_free(msg);
    client->is_node = sched_conn_kind(server->sched, client->id) == SCHED_CONN_NODE;
    touch(server, client);
    server_spent(client, sched_tick_bytes(server->sched) - before);
}

/* Out of all that counts or lists it. */
static void forget(struct server *server, struct client *client)
{
    if (client->door != NULL) {
        doorway_leave(client->door, &client->guest);
    }
    places_give(&server->places, &client->place);
    server->unsent -= client->unsent;
    client->unsent = 0;
    list_remove(&client->held);
    list_remove(&client->active);
    list_remove(&client->fresh);
    list_remove(&client->writing);
}

/* In this order: the end of a connection gives its place for a large frame to one that waits, and
 * that one must still be somebody. */
void server_client_destroy(struct server *server, struct client *client)
{
    forget(server, client);
    ms_conn_destroy(client->conn);
    clients_remove(&server->clients, client);
}

/* Only remembered: the core hears of it at the end of the iteration, for this may be called while
 * its effects are carried out. */
static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    int said = server->is_stopping || client->is_known;
    if (!said || code == MS_E_PROTOCOL || code == MS_E_FULL || code == MS_E_NOMEM ||
        (code == MS_E_TIMEOUT && !server->is_stopping)) {
        char quoted[2 * MS_TEXT_MAX];
        server_log(server, MS_LOG_NOTICE, "conn.refused peer=%s code=%s reason=%s",
                   ms_conn_peer(conn)->address, ms_code_name(code),
                   ms_log_quote(quoted, sizeof(quoted), reason));
    }
    forget(server, client);
    clients_put_closed(&server->clients, client, reason);
}

const struct ms_conn_handler server_conn_handler = {
    .on_open = on_open, .on_frame = on_frame, .on_close = on_close, .on_hello = on_hello};

/* Whoever neither registered, nor watches, nor waits for an answer makes room in the end. */
void server_end_idle(struct server *server)
{
    int64_t now = server_mono_ms();
    while (!list_empty(&server->active)) {
        struct client *client = list_item(server->active.next, struct client, active);
        if (now - client->active_ms < MS_IDLE_MS) {
            return;
        }
        int is_idle = client->conn != NULL && client->unsent == 0 && list_empty(&client->held) &&
                      sched_conn_kind(server->sched, client->id) == SCHED_CONN_IDLE;
        int is_growing = client->conn != NULL && client->is_growing;
        touch(server, client);
        if (is_growing) {
            char text[MS_TEXT_MAX + 1];
            char why[MS_TEXT_MAX / 2];
            places_say_large(&server->places, &client->place, why, sizeof(why));
            snprintf(text, sizeof(text),
                     "the request waited for a minute, and nothing was done of it: %s; try again",
                     why);
            list_remove(&client->active);
            ms_conn_refuse(client->conn, 0, MS_E_FULL, text);
        } else if (is_idle) {
            list_remove(&client->active);
            ms_conn_refuse(client->conn, 0, MS_E_TIMEOUT,
                           "nothing was registered, asked or watched for a minute: connect again "
                           "when there is something to ask");
        }
    }
}

/* A network that is gone, or a certificate that is revoked, closes thousands at once: who does not
 * fit this turn is next. */
void server_reap(struct server *server)
{
    struct client *client;
    while ((server->is_stopping || !sched_tick_is_full(server->sched)) &&
           (client = clients_take_closed(&server->clients)) != NULL) {
        /* a scheduler that stops takes no node's farewell for a death */
        if (client->is_known && !server->is_stopping) {
            server_apply(server, &(struct sched_event){.kind = SCHED_EV_CLOSED,
                                                       .conn = client->id,
                                                       .reason = client->reason});
        }
        server_client_destroy(server, client);
    }
}

void server_destroy_clients(struct server *server)
{
    for (size_t i = 0; i < server->clients.size; i++) {
        if (server->clients.slots[i] != NULL) {
            server_client_destroy(server, server->clients.slots[i]);
        }
    }
}

void server_close_clients(struct server *server)
{
    for (size_t i = 0; i < server->clients.size; i++) {
        struct client *client = server->clients.slots[i];
        if (client != NULL && client->conn != NULL) {
            ms_conn_close(client->conn);
        }
    }
}

/* After a reload: who would not get in today does not stay either. */
void server_recheck(struct server *server)
{
    for (size_t i = 0; i < server->clients.size; i++) {
        struct client *client = server->clients.slots[i];
        struct ms_err err = {0, ""};
        if (client == NULL || client->conn == NULL ||
            recheck(server, client, client->conn, &err) == 0) {
            continue;
        }
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_NOTICE, "conn.revoked peer=%s text=%s", ms_conn_peer(client->conn)->address,
               ms_log_quote(quoted, sizeof(quoted), err.text));
        ms_conn_refuse(client->conn, 0, err.code, err.text);
    }
}
