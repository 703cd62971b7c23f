/* server_output.c - what peers have not read: counted, bounded, dropped where nobody reads */
#include "daemon/server_state.h"

/* After something was queued for a client. */
void server_sent(struct server *server, struct client *client)
{
    list_remove(&client->fresh);
    list_add_tail(&server->fresh, &client->fresh);
}

static void count_unsent(struct server *server, struct client *client)
{
    size_t unsent = ms_conn_unsent(client->conn);
    server->unsent += unsent - client->unsent;
    client->unsent = unsent;
    if (unsent > 0 && list_empty(&client->writing)) {
        client->moved_ms = server_mono_ms();
        list_add_tail(&server->writing, &client->writing);
    }
}

/* Into the sockets at once while the turn has time for it: more is for the loop, where others have
 * their turn in between. */
void server_flush(struct server *server)
{
    while (!list_empty(&server->fresh)) {
        struct client *client = list_item(server->fresh.next, struct client, fresh);
        list_remove(&client->fresh);
        if (client->conn == NULL) {
            continue;
        }
        ms_conn_flush(client->conn, !server_turn_is_over(server));
        count_unsent(server, client);
    }
}

/* News of jobs are held back where the last ones lie unread. */
static void tell_core(struct server *server, struct client *client)
{
    int is_clogged =
        client->is_clogged ? client->unsent > MS_OUTPUT_NEWS / 2 : client->unsent > MS_OUTPUT_NEWS;
    if (is_clogged != client->is_clogged && client->is_known) {
        client->is_clogged = is_clogged;
        server_apply(server,
                     &(struct sched_event){.kind = is_clogged ? SCHED_EV_CLOGGED : SCHED_EV_CLEARED,
                                           .conn = client->id});
    }
}

/* The one that has left most unread, of those that are no nodes. */
static struct client *worst(const struct server *server)
{
    struct client *found = NULL;
    for (struct list *at = server->writing.next; at != &server->writing; at = at->next) {
        struct client *client = list_item(at, struct client, writing);
        if (!client->is_node && client->conn != NULL &&
            (found == NULL || client->unsent > found->unsent)) {
            found = client;
        }
    }
    return found;
}

static void drop(struct server *server, struct client *client, const char *text)
{
    struct ms_conn *conn = client->conn;
    server->unsent -= client->unsent;
    client->unsent = 0;
    list_remove(&client->writing);
    ms_conn_drop(conn, MS_E_FULL, text);
}

/* Once a turn, when peers have had the chance to take what the last one sent. */
void server_look_at_output(struct server *server)
{
    int64_t now = server_mono_ms();
    for (struct list *at = server->writing.next; at != &server->writing;) {
        struct client *client = list_item(at, struct client, writing);
        at = at->next;
        size_t unsent = client->conn != NULL ? ms_conn_unsent(client->conn) : 0;
        client->moved_ms = unsent < client->unsent ? now : client->moved_ms;
        server->unsent += unsent - client->unsent;
        client->unsent = unsent;
        tell_core(server, client);
        if (unsent == 0) {
            list_remove(&client->writing);
        }
    }
    for (struct client *client = NULL;
         server->unsent > MS_OUTPUT_ALL && (client = worst(server)) != NULL;) {
        drop(server, client,
             "it does not read, and too much is unsent to all clients together: read what was "
             "asked for, or ask for less");
    }
}

void server_drop_stalled(struct server *server)
{
    int64_t now = server_mono_ms();
    for (struct list *at = server->writing.next; at != &server->writing;) {
        struct client *client = list_item(at, struct client, writing);
        at = at->next;
        if (client->conn != NULL && now - client->moved_ms > MS_STALL_MS) {
            drop(server, client, "it has read nothing of what lies there for it for 30 s");
        }
    }
}
