/* server_accept.c - listeners, and who comes in through them */
#include "daemon/server_state.h"

#include "proto/addr.h"
#include "proto/notify.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_PASSED_FD = 3 };

/* ---- accepting ----------------------------------------------------------------------------------
 */

static struct doorway *door_of(struct server *server, const struct listener *listener)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        if (server->listeners[i] == listener) {
            return &server->doors[i];
        }
    }
    return NULL;
}

/* 0: nobody stands in the door long enough to give way. */
static int make_room(struct server *server, struct doorway *door)
{
    struct client *client = NULL;
    struct guest *guest;
    while (client == NULL && (guest = doorway_victim(door, server_mono_ms())) != NULL) {
        client = list_item(guest, struct client, guest);
        if (ms_conn_has_unread(client->conn)) { /* it is we who are slow */
            doorway_touch(door, guest, server_mono_ms());
            client = NULL;
        }
    }
    if (client == NULL) {
        return 0;
    }
    server_log(server, MS_LOG_NOTICE,
               "conn.gave_way peer=%s text=\"no Hello yet, and all places are taken\"",
               ms_conn_peer(client->conn)->address);
    server_client_destroy(server, client);
    return 1;
}

/* "": a Unix socket. */
static socklen_t get_peer(int fd, struct sockaddr_storage *ret)
{
    socklen_t length = sizeof(*ret);
    return getpeername(fd, (struct sockaddr *)ret, &length) == 0 && ret->ss_family != AF_UNIX
               ? length
               : 0;
}

static void take(struct server *server, struct listener *listener, struct doorway *door, int fd,
                 const char *uid_name, int is_mapped)
{
    struct sockaddr_storage peer;
    socklen_t known = get_peer(fd, &peer);
    struct client *client = clients_add(&server->clients, server);
    if (client == NULL) {
        server_log(server, MS_LOG_WARNING, "conn.failed text=\"no memory or no place\", ignoring");
        close(fd);
        return;
    }
    struct ms_conn_options opt = {
        .tls = listener_is_unix(listener) ? NULL : server->tls,
        .software = server->options->sched.software,
        .cluster = options_mode_name(server->options->sched.mode),
        .plain_role = server->options->anyone_roles,
        .owner_uid = (unsigned)geteuid(),
        .uid_name = uid_name,
        .may_take = server_may_take,
        .may_grow = server_may_grow,
        .has_shrunk = server_has_shrunk,
        .on_work = server_on_work,
    };
    struct ms_err err = {0, ""};
    client->door = door;
    client->is_nameless = uid_name == NULL;
    client->is_mapped = is_mapped;
    doorway_enter(door, &client->guest, known > 0 ? (struct sockaddr *)&peer : NULL,
                  server_mono_ms());
    if (ms_conn_accept(server->base, fd, &opt, &server_conn_handler, client, &client->conn, &err) <
        0) {
        server_client_destroy(server, client);
        server_log(server, MS_LOG_WARNING, "conn.failed text=\"%s\", ignoring", err.text);
    }
}

/* All places are taken, and whoever may give way has just spoken: rare, and it comes again. On a
 * Unix socket it is told so; behind TLS there is nobody yet to be told. Nothing was sent to it
 * before, so that the frame fits and the call does not wait. */
static void turn_away(struct server *server, const struct listener *listener, int fd)
{
    uint8_t frame[MS_WIRE_HEADER + MS_TEXT_MAX];
    Ms__Error error = MS__ERROR__INIT;
    error.code = MS_E_FULL;
    error.text = (char *)"all places for newcomers are taken at the moment: try again";
    size_t size = ms_wire_size(&error.base);
    if (listener_is_unix(listener) && size <= sizeof(frame) &&
        ms_wire_pack(MS_MSG_ERROR, 0, &error.base, frame, size, NULL) == 0) {
        (void)send(fd, frame, size, MSG_DONTWAIT | MSG_NOSIGNAL); /* or it has gone already */
    }
    close(fd);
    server_log(server, MS_LOG_NOTICE, "conn.turned_away address=%s text=\"all places are taken\"",
               listener_address(listener));
}

void server_accept(struct listener *listener, int fd, void *arg)
{
    struct server *server = arg;
    struct doorway *door = door_of(server, listener);
    char uid_name[MS_NAME_MAX + 1];
    server_turn_began(server);
    int is_mapped = 0;
    enum server_name answer = server_name_of(server, listener, fd, uid_name, &is_mapped);
    if (answer == SERVER_NAME_LATER) {
        return;
    }
    if (door == NULL || (doorway_is_full(door) && !make_room(server, door))) {
        turn_away(server, listener, fd);
        server_adjust_listeners(server);
        return;
    }
    take(server, listener, door, fd, answer == SERVER_NAME_FAILED ? NULL : uid_name, is_mapped);
    server_adjust_listeners(server);
    server_turn_check(server);
}

static void on_trouble(struct listener *listener, const char *text, void *arg)
{
    char quoted[2 * MS_TEXT_MAX];
    (void)listener;
    server_log(arg, MS_LOG_WARNING, "accept.failed text=%s",
               ms_log_quote(quoted, sizeof(quoted), text));
}

/* Waiting in the kernel's queue is cheaper than being refused, and in order. A Unix listener goes
 * on when TCP has taken all places: that is where an admin comes from. */
void server_adjust_listeners(struct server *server)
{
    int64_t now = server_mono_ms();
    int64_t wait = 0;
    size_t room = server->conns_max + (SERVER_LISTENERS_MAX - 2) * MS_HALF_OPEN_MAX;
    for (size_t i = 0; i < server->listeners_n; i++) {
        int64_t full = doorway_wait_ms(&server->doors[i], now);
        int has_room = server->clients.used < room || listener_is_unix(server->listeners[i]);
        listener_set(server->listeners[i], server->listening && full == 0 && has_room &&
                                               server->clients.used < CLIENTS_MAX);
        wait = full > 0 && (wait == 0 || full < wait) ? full : wait;
    }
    if (wait > 0 && !evtimer_pending(server->doors_on, NULL)) {
        struct timeval after = {.tv_sec = (time_t)(wait / 1000),
                                .tv_usec = (suseconds_t)(wait % 1000) * 1000};
        evtimer_add(server->doors_on, &after); /* the tick behind it looks again */
    }
}

void server_close_listeners(struct server *server)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        listener_close(server->listeners[i]);
    }
    server_names_drop(server);
    server->listeners_n = 0;
    server->listening = 0;
}

/* ---- opening the listeners ----------------------------------------------------------------------
 */

static void add_door(struct server *server)
{
    size_t i = server->listeners_n++;
    doorway_init(&server->doors[i],
                 listener_is_unix(server->listeners[i]) ? MS_HALF_OPEN_UNIX : MS_HALF_OPEN_MAX);
}

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
        add_door(server);
        *(listener_is_unix(*slot) ? ret_unix : ret_tcp) += 1;
    }
    return 0;
}

static int open_one(struct server *server, const char *address, unsigned mode, gid_t group,
                    const struct listener_handler *handler, struct ms_err *err)
{
    struct listener **slot = &server->listeners[server->listeners_n];
    int rc = listener_open(server->base, address, mode, group, handler, slot, err);
    if (rc == 0) {
        add_door(server);
    }
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
    server_names_open(server);
    const struct options *options = server->options;
    const struct listener_handler handler = {server_accept, on_trouble, server};
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
