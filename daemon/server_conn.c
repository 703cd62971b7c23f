/* server_conn.c - who may come in, and what came: listeners and connections of the daemon */
#include "daemon/server_state.h"

#include "proto/addr.h"
#include "proto/conn_recheck.h"
#include "proto/notify.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THROTTLE_MS = 5000, FIRST_PASSED_FD = 3 };

/* True when a line may be written now; *ret_hidden: how many were not since the last one. */
static int may_log(struct throttle *throttle, unsigned long *ret_hidden)
{
    int64_t now = server_mono_ms();
    if (now < throttle->next_ms) {
        throttle->hidden++;
        return 0;
    }
    *ret_hidden = throttle->hidden;
    throttle->hidden = 0;
    throttle->next_ms = now + THROTTLE_MS;
    return 1;
}

/* ---- connections --------------------------------------------------------------------------------
 */

static void on_open(struct ms_conn *conn, void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    client->is_opened = 1;
    server->half_open--;
    server->opened++;
    if (server->is_stopping) {
        ms_conn_refuse(conn, 0, MS_E_REFUSED, "the scheduler is stopping: try again in a moment");
        return;
    }
    if (server->opened > server->conns_max) {
        char text[MS_TEXT_MAX];
        snprintf(
            text, sizeof(text),
            "the scheduler holds %zu connections already, which is its limit (MS_CONNS_MAX, or "
            "LimitNOFILE of its service)",
            server->conns_max);
        ms_conn_refuse(conn, 0, MS_E_FULL, text);
        return;
    }
    client->is_known = 1;
    server_apply(server, &(struct sched_event){.kind = SCHED_EV_OPENED,
                                               .conn = client->id,
                                               .peer = ms_conn_peer(conn)});
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    if (!client->is_known || server->is_stopping) {
        return;
    }
    ProtobufCMessage *msg = NULL;
    struct ms_err err = {0, ""};
    int rc = ms_wire_unpack(head->type, bytes, head->length, &msg, &err);
    if (rc < 0) {
        ms_conn_refuse(conn, head->id, rc, err.text);
        return;
    }
    server_apply(server, &(struct sched_event){.kind = SCHED_EV_MESSAGE,
                                               .conn = client->id,
                                               .type = head->type,
                                               .id = head->id,
                                               .msg = msg});
    ms_wire_free(msg);
}

/* Only remembered: the core hears of it at the end of the iteration, for this may be called while
 * its effects are carried out. */
static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    unsigned long hidden = 0;
    if (client->is_opened) {
        server->opened--;
    } else {
        server->half_open--;
        if (!server->is_stopping && may_log(&server->refused, &hidden)) {
            char quoted[2 * MS_TEXT_MAX];
            ms_log(MS_LOG_NOTICE, "conn.refused peer=%s code=%s reason=%s like_this_before=%lu",
                   ms_conn_peer(conn)->address, ms_code_name(code),
                   ms_log_quote(quoted, sizeof(quoted), reason), hidden);
        }
    }
    clients_put_closed(&server->clients, client, reason);
}

void server_reap(struct server *server)
{
    struct client *client;
    while ((client = clients_take_closed(&server->clients)) != NULL) {
        /* a scheduler that stops takes no node's farewell for a death */
        if (client->is_known && !server->is_stopping) {
            server_apply(server, &(struct sched_event){.kind = SCHED_EV_CLOSED,
                                                       .conn = client->id,
                                                       .reason = client->reason});
        }
        clients_remove(&server->clients, client);
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
            ms_conn_recheck(client->conn, server->tls, &err) == 0) {
            continue;
        }
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_NOTICE, "conn.revoked peer=%s text=%s", ms_conn_peer(client->conn)->address,
               ms_log_quote(quoted, sizeof(quoted), err.text));
        ms_conn_refuse(client->conn, 0, err.code, err.text);
    }
}

/* ---- accepting ----------------------------------------------------------------------------------
 */

static void get_host(int fd, char host[MS_ADDR_MAX + 1])
{
    struct sockaddr_storage name;
    socklen_t length = sizeof(name);
    host[0] = '\0';
    if (getpeername(fd, (struct sockaddr *)&name, &length) == 0 && name.ss_family != AF_UNIX &&
        !ms_addr_is_loopback((struct sockaddr *)&name)) {
        ms_addr_print((struct sockaddr *)&name, length, host);
        char *colon = strrchr(host, ':');
        if (colon != NULL) {
            *colon = '\0';
        }
    }
}

/* One host may not hold all places of the handshake. */
static int is_crowding(struct server *server, const char *host)
{
    unsigned long hidden = 0;
    if (host[0] == '\0' || server->half_open < MS_HALF_OPEN_MAX / 2 ||
        clients_half_open_of(&server->clients, host) < MS_HALF_OPEN_MAX / 2) {
        return 0;
    }
    if (may_log(&server->crowded, &hidden)) {
        ms_log(MS_LOG_WARNING,
               "conn.crowded host=%s half_open=%d like_this_before=%lu text=\"too many unfinished "
               "handshakes from one host, dropping\"",
               host, MS_HALF_OPEN_MAX / 2, hidden);
    }
    return 1;
}

static void on_accept(struct listener *listener, int fd, void *arg)
{
    static const struct ms_conn_handler handler = {on_open, on_frame, on_close};
    struct server *server = arg;
    char host[MS_ADDR_MAX + 1];
    get_host(fd, host);
    struct client *client =
        is_crowding(server, host) ? NULL : clients_add(&server->clients, server);
    if (client == NULL) {
        close(fd);
        return;
    }
    memcpy(client->host, host, sizeof(host));
    struct ms_conn_options opt = {
        .tls = listener_is_unix(listener) ? NULL : server->tls,
        .software = server->options->sched.software,
        .cluster = options_mode_name(server->options->sched.mode),
        .plain_role = server->options->anyone_roles,
        .owner_uid = (unsigned)geteuid(),
    };
    struct ms_err err = {0, ""};
    server->half_open++;
    if (ms_conn_accept(server->base, fd, &opt, &handler, client, &client->conn, &err) < 0) {
        server->half_open--;
        clients_remove(&server->clients, client);
        ms_log(MS_LOG_WARNING, "conn.failed text=\"%s\", ignoring", err.text);
    }
    server_adjust_listeners(server);
}

static void on_trouble(struct listener *listener, const char *text, void *arg)
{
    char quoted[2 * MS_TEXT_MAX];
    (void)listener;
    (void)arg;
    ms_log(MS_LOG_WARNING, "accept.failed text=%s", ms_log_quote(quoted, sizeof(quoted), text));
}

/* Waiting in the kernel's queue is cheaper than being refused: the places become free within the
 * time limit of a handshake. */
void server_adjust_listeners(struct server *server)
{
    int on = server->listening && server->half_open < MS_HALF_OPEN_MAX &&
             server->clients.used < server->conns_max + MS_HALF_OPEN_MAX;
    for (size_t i = 0; i < server->listeners_n; i++) {
        listener_set(server->listeners[i], on);
    }
}

void server_close_listeners(struct server *server)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        listener_close(server->listeners[i]);
    }
    server->listeners_n = 0;
    server->listening = 0;
}

/* ---- opening the listeners ----------------------------------------------------------------------
 */

static int adopt_passed(struct server *server, const struct listener_handler *handler, int *ret_tcp,
                        int *ret_unix, struct ms_err *err)
{
    int n = ms_notify_listen_fds();
    if (n > SERVER_LISTENERS_MAX) {
        return ms_fail(err, MS_E_CONFIG, "%d sockets were passed, at most %d are served", n,
                       SERVER_LISTENERS_MAX);
    }
    for (int i = 0; i < n; i++) {
        struct listener **slot = &server->listeners[server->listeners_n];
        int rc = listener_adopt(server->base, FIRST_PASSED_FD + i, handler, slot, err);
        if (rc < 0) {
            return rc;
        }
        server->listeners_n++;
        *(listener_is_unix(*slot) ? ret_unix : ret_tcp) += 1;
    }
    return 0;
}

static int open_one(struct server *server, const char *address, unsigned mode, gid_t group,
                    const struct listener_handler *handler, struct ms_err *err)
{
    struct listener **slot = &server->listeners[server->listeners_n];
    int rc = listener_open(server->base, address, mode, group, handler, slot, err);
    server->listeners_n += rc == 0;
    return rc;
}

/* Certificates are read where a TCP listener needs them, and judged before anybody is let in. */
static int settle_tls(struct server *server, struct ms_err *err)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        const struct listener *listener = server->listeners[i];
        if (listener_is_unix(listener)) {
            continue;
        }
        int use = options_use_tls(server->options, listener_address(listener),
                                  listener_is_loopback(listener), err);
        if (use < 0) {
            return use;
        }
        server->needs_tls |= use;
    }
    return server->needs_tls ? server_load_tls(server->options, &server->tls, err) : 0;
}

int server_listen(struct server *server, struct ms_err *err)
{
    const struct options *options = server->options;
    const struct listener_handler handler = {on_accept, on_trouble, server};
    int passed_tcp = 0;
    int passed_unix = 0;
    int rc = adopt_passed(server, &handler, &passed_tcp, &passed_unix, err);
    if (rc == 0 && passed_tcp == 0 && options->listen[0] != '\0') {
        rc = open_one(server, options->listen, 0, (gid_t)-1, &handler, err);
    }
    if (rc == 0 && passed_unix == 0 && options->socket[0] != '\0') {
        char address[MS_PATH_MAX + 8];
        snprintf(address, sizeof(address), "unix:%s", options->socket);
        rc = open_one(server, address, options->socket_mode, options->socket_gid, &handler, err);
    }
    return rc == 0 ? settle_tls(server, err) : rc;
}
