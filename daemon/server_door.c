/* server_door.c - who comes in through the listeners: accepted at once, let in when it is his turn
 */
#include "daemon/server_state.h"

#include "daemon/peer_uid.h"
#include "daemon/subuid.h"

#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LET_IN_BATCH = 16,  /* 2 ms of beginning TLS: then others get their turn */
    CROWDED_MS = 10000, /* one line in ten seconds */
    TELL_MS = 1000,     /* the core, which counts in seconds */
};

/* In front of the door: nothing was read from it, nothing of TLS was made for it. */
struct waiter {
    struct guest guest;
    struct doorway *door;
    struct event readable; /* while it is silent */
    int fd;                /* owned */
};

/* At a door. */
struct entrance {
    struct listener *listener;
    struct doorway *door;
};

/* All subordinate uids of an account are one crowd. */
static unsigned account_of(unsigned uid)
{
    char owner[MS_NAME_MAX + 1];
    unsigned first = 0;
    return subuid_find(SUBUID_FILE, uid, &first, owner) ? first : uid;
}

static struct crowd_who who_is(const struct server *server, const struct listener *listener, int fd)
{
    struct sockaddr_storage peer;
    struct ucred cred;
    socklen_t length = sizeof(cred);
    if (listener_is_unix(listener)) { /* the kernel knows before the first byte */
        int is_known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) == 0;
        return crowd_who_uid(is_known ? account_of(cred.uid) : (unsigned)-1,
                             is_known && (cred.uid == 0 || cred.uid == geteuid()));
    }
    length = sizeof(peer);
    unsigned uid = 0;
    if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0) {
        return crowd_who_net(NULL);
    }
    return peer_uid_find(server->uid_asker, fd, &uid) == 0
               ? crowd_who_here((struct sockaddr *)&peer, account_of(uid))
               : crowd_who_net((struct sockaddr *)&peer);
}

/* ---- in front of the door -----------------------------------------------------------------------
 */

/* Its descriptor is the caller's from now on. */
static int release(struct doorway *door, struct waiter *waiter)
{
    int fd = waiter->fd;
    doorway_leave(door, &waiter->guest);
    event_del(&waiter->readable);
    free(waiter);
    return fd;
}

static void send_away(struct doorway *door, struct guest *guest)
{
    close(release(door, list_item(guest, struct waiter, guest)));
}

/* The tick behind it lets in whose turn it is. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct waiter *waiter = arg;
    uint8_t byte;
    (void)what;
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
        doorway_touch(waiter->door, &waiter->guest, server_mono_ms());
    } else {
        send_away(waiter->door, &waiter->guest); /* gone */
    }
}

/* Takes fd. */
static void wait_outside(struct server *server, struct doorway *door, int fd,
                         const struct crowd_who *who)
{
    uint8_t byte;
    int64_t now = server_mono_ms();
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    if (waiter == NULL ||
        event_assign(&waiter->readable, server->base, fd, EV_READ, on_readable, waiter) != 0 ||
        doorway_wait(door, &waiter->guest, who, now) < 0) {
        server_log(server, MS_LOG_WARNING, "conn.failed text=\"no memory or no place\", ignoring");
        free(waiter);
        close(fd);
        return;
    }
    waiter->door = door;
    waiter->fd = fd;
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
        doorway_touch(door, &waiter->guest, now);
    } else {
        event_add(&waiter->readable, NULL);
    }
}

/* On a Unix socket it is told so; behind TLS there is nobody yet to be told. Nothing was sent to it
 * before, so that the frame fits and the call does not wait. */
static void turn_away(const struct entrance *at, struct guest *guest)
{
    uint8_t frame[MS_WIRE_HEADER + MS_TEXT_MAX];
    Ms__Error error = MS__ERROR__INIT;
    error.code = MS_E_FULL;
    error.text = (char *)"all places for newcomers are taken at the moment: try again";
    size_t size = ms_wire_size(&error.base);
    if (listener_is_unix(at->listener) && size <= sizeof(frame) &&
        ms_wire_pack(MS_MSG_ERROR, 0, &error.base, frame, size, NULL) == 0) {
        int fd = list_item(guest, struct waiter, guest)->fd;
        (void)send(fd, frame, size, MSG_DONTWAIT | MSG_NOSIGNAL); /* or it has gone already */
    }
    send_away(at->door, guest);
}

static void say_crowded(struct server *server, const struct entrance *at, const struct guest *guest)
{
    int64_t now = server_mono_ms();
    char name[CROWD_NAME_MAX];
    const struct crowd *network = crowd_at(guest->crowd, 1);
    const size_t *of_it = network->waiting;
    server->turned_away++;
    server->is_crowded = 1;
    if (server->turned_away_said_ms != 0 && now - server->turned_away_said_ms < CROWDED_MS) {
        return;
    }
    ms_log(MS_LOG_WARNING,
           "door.crowded address=%s waiting=%zu silent=%zu most_of=%s of_it=%zu turned_away=%lu "
           "text=\"who says nothing, and who came last of the largest crowd, is turned away; "
           "others get in\"",
           listener_address(at->listener), doorway_waiting_n(at->door),
           at->door->crowds.all.waiting[CROWD_SILENT], MS_QUOTE(crowd_name(network, name)),
           of_it[CROWD_SILENT] + of_it[CROWD_READY], server->turned_away);
    server->turned_away_said_ms = now;
    server->turned_away = 0;
}

void server_send_away(struct server *server)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        struct guest *guest;
        while ((guest = doorway_waiting(&server->doors[i])) != NULL) {
            send_away(&server->doors[i], guest);
        }
    }
}

/* ---- into the door ------------------------------------------------------------------------------
 */

static void give_way(struct server *server, struct client *client)
{
    server_log(server, MS_LOG_NOTICE,
               "conn.gave_way peer=%s text=\"no Hello yet, and all places are taken\"",
               ms_conn_peer(client->conn)->address);
    server_client_destroy(server, client);
}

static int make_room(struct server *server, struct doorway *door, const struct guest *waiting)
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
    if (client == NULL && (guest = doorway_yields(door, waiting)) != NULL) {
        client = list_item(guest, struct client, guest);
    }
    if (client == NULL) {
        return 0;
    }
    give_way(server, client);
    return 1;
}

/* from NULL: nobody could tell. */
static void take(struct server *server, const struct entrance *at, int fd,
                 const struct crowd_who *who, const struct server_who *from)
{
    struct client *client = clients_add(&server->clients, server);
    if (client == NULL || doorway_enter(at->door, &client->guest, who, server_mono_ms()) < 0) {
        if (client != NULL) {
            server_client_destroy(server, client);
        }
        server_log(server, MS_LOG_WARNING, "conn.failed text=\"no memory or no place\", ignoring");
        close(fd);
        return;
    }
    struct ms_conn_options opt = {
        .tls = listener_is_unix(at->listener) ? NULL : server->tls,
        .software = server->options->sched.software,
        .cluster = options_mode_name(server->options->sched.mode),
        .plain_role = server->options->anyone_roles,
        .owner_uid = (unsigned)geteuid(),
        .account = from != NULL ? &from->account : NULL,
        .may_take = server_may_take,
        .may_grow = server_may_grow,
        .has_shrunk = server_has_shrunk,
        .on_work = server_on_work,
        .is_flushed = 1,
    };
    struct ms_err err = {0, ""};
    client->door = at->door;
    client->is_nameless = from == NULL;
    client->is_mapped = from != NULL && from->is_mapped;
    client->account = from != NULL ? from->account.uid : (unsigned)-1;
    if (ms_conn_accept(server->base, fd, &opt, &server_conn_handler, client, &client->conn, &err) <
        0) {
        server_client_destroy(server, client);
        server_log(server, MS_LOG_WARNING, "conn.failed text=%s, ignoring", MS_QUOTE(err.text));
    }
}

/* A Unix listener goes on when TCP has taken all connections: that is where an admin comes from. */
static int has_room(const struct server *server, const struct listener *listener)
{
    size_t room = server->conns_max + (SERVER_LISTENERS_MAX - 2) * MS_HALF_OPEN_MAX;
    return server->listening && server->clients.used < CLIENTS_MAX &&
           (server->clients.used < room || listener_is_unix(listener));
}

static void let_in(struct server *server, const struct entrance *at)
{
    struct guest *guest;
    for (int i = 0; i < LET_IN_BATCH && has_room(server, at->listener) &&
                    (guest = doorway_next(at->door)) != NULL;
         i++) {
        struct waiter *waiter = list_item(guest, struct waiter, guest);
        struct server_who from;
        int fd = waiter->fd;
        enum server_name answer = server_name_of(server, at->listener, fd, &from);
        if (answer == SERVER_NAME_LATER) {
            doorway_hold(at->door, guest);
            continue;
        }
        if (doorway_is_full(at->door) && !make_room(server, at->door, guest)) {
            server->is_crowded = 1;
            return;
        }
        struct crowd_who who = guest->crowd->who;
        release(at->door, waiter);
        take(server, at, fd, &who, answer == SERVER_NAME_FAILED ? NULL : &from);
    }
}

/* Nobody waits in the kernel's queue who could wait here, where it is seen who he is. */
void server_accept(struct listener *listener, int fd, void *arg)
{
    struct server *server = arg;
    struct entrance at = {.listener = listener};
    for (size_t i = 0; i < server->listeners_n; i++) {
        at.door = server->listeners[i] == listener ? &server->doors[i] : at.door;
    }
    server_turn_began(server);
    if (at.door == NULL) {
        close(fd);
        return;
    }
    struct crowd_who who = who_is(server, listener, fd);
    wait_outside(server, at.door, fd, &who);
    let_in(server, &at);
    struct guest *guest;
    while ((guest = doorway_surplus(at.door)) != NULL) {
        say_crowded(server, &at, guest);
        turn_away(&at, guest);
    }
    server_adjust_listeners(server);
    server_turn_check(server);
}

/* Milliseconds until it is worth to look again who may come in; below 0: until something happens.
 */
static int64_t next_look_ms(struct server *server, const struct entrance *at)
{
    return doorway_next(at->door) == NULL || !has_room(server, at->listener)
               ? -1
               : doorway_wait_ms(at->door, server_mono_ms());
}

void server_adjust_listeners(struct server *server)
{
    int64_t wait = -1;
    for (size_t i = 0; i < server->listeners_n; i++) {
        struct entrance at = {server->listeners[i], &server->doors[i]};
        let_in(server, &at);
        listener_set(at.listener, server->listening);
        int64_t next = next_look_ms(server, &at);
        wait = next >= 0 && (wait < 0 || next < wait) ? next : wait;
    }
    if (wait >= 0) {
        server_arm(server->doors_on, wait); /* the tick behind it looks again */
    }
}

/* Nodes that come back may be among them: their jobs wait. */
void server_tell_crowd(struct server *server)
{
    int64_t now = server_mono_ms();
    if (server->is_crowded && !server->is_stopping && now - server->crowded_ms >= TELL_MS) {
        server->is_crowded = 0;
        server->crowded_ms = now;
        server_apply(server, &(struct sched_event){.kind = SCHED_EV_CROWDED});
    }
}

void server_end_mute(struct server *server)
{
    int64_t now = server_mono_ms();
    for (size_t i = 0; i < server->listeners_n; i++) {
        struct guest *guest;
        while ((guest = doorway_mute(&server->doors[i], now)) != NULL) {
            send_away(&server->doors[i], guest);
        }
    }
}

void server_names_came(struct server *server)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        doorway_release(&server->doors[i]);
    }
    server_adjust_listeners(server);
}
