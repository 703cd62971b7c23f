/* server_turn.c - whose turn it is, and how long
 *
 *     connections taken, steps of handshakes, frames, in the order in which they are readable
 *        | a connection has spent its share     -> it is held: neither read nor handed on
 *        | all together have spent the turn's   -> the loop is left, the rest stays active
 *     end of the turn: commit, send
 *     the held go on, in the order in which they were held
 *
 * A share is a number of frames, and of bytes that the answers take. So what one peer asks for
 * costs the others the rest of one turn at the most. */
#include "daemon/server_state.h"

void server_turn_init(struct server *server)
{
    list_init(&server->held);
    list_init(&server->growing);
    list_init(&server->active);
    list_init(&server->fresh);
    list_init(&server->writing);
    server->turn = 1;
}

void server_turn_began(struct server *server)
{
    if (server->tick_began_us == 0) {
        server->tick_began_us = server_mono_us();
        server->tick_cpu_us = server_cpu_us();
    }
}

int server_turn_is_over(const struct server *server)
{
    return server->turn_bytes >= MS_TURN_BYTES_ALL || sched_tick_is_full(server->sched) ||
           (server->tick_began_us != 0 && server_mono_us() - server->tick_began_us >= MS_TURN_US);
}

/* What is active already stays so, and is first in the next turn. */
void server_turn_check(struct server *server)
{
    if (server_turn_is_over(server)) {
        event_base_loopbreak(server->base);
    }
}

void server_on_work(void *arg)
{
    struct client *client = arg;
    server_turn_began(client->owner);
    doorway_touch(client->door, &client->guest, server_mono_ms());
    server_turn_check(client->owner);
}

static void renew(const struct server *server, struct client *client)
{
    if (client->turn != server->turn) {
        client->turn = server->turn;
        client->frames = 0;
        client->bytes = 0;
    }
}

int server_may_take(void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    renew(server, client);
    unsigned frames_max = client->is_node ? MS_TURN_FRAMES_NODE : MS_TURN_FRAMES;
    if (server->is_stopping || (client->frames < frames_max && client->bytes < MS_TURN_BYTES &&
                                !server_turn_is_over(server))) {
        client->frames++;
        return 1;
    }
    list_remove(&client->held);
    list_add_tail(&server->held, &client->held);
    server_turn_check(server);
    return 0;
}

void server_spent(struct client *client, size_t bytes)
{
    struct server *server = client->owner;
    client->bytes += bytes;
    server->turn_bytes += bytes;
    server_turn_check(server);
}

/* Nodes send large frames rarely (a job of the dynamic cluster, a log's chunk), and are ours. */
int server_may_grow(void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    client->has_grown = places_grow(&server->places, &client->place);
    if (!client->has_grown) {
        client->is_growing = 1;
        list_remove(&client->held);
        list_add_tail(&server->growing, &client->held);
    }
    return client->has_grown;
}

/* In the order in which they came, but nobody waits for the share of another one. */
void server_let_grow(struct server *server)
{
    size_t n = places_free_large(&server->places);
    struct list *at = server->growing.next;
    while (n > 0 && at != &server->growing) {
        struct client *client = list_item(at, struct client, held);
        at = at->next;
        if (places_may_grow(&server->places, &client->place)) {
            client->is_growing = 0;
            list_remove(&client->held);
            list_add_tail(&server->held, &client->held);
            n--;
        }
    }
}

void server_has_shrunk(void *arg)
{
    struct client *client = arg;
    struct server *server = client->owner;
    if (client->has_grown) {
        client->has_grown = 0;
        places_shrink(&server->places, &client->place);
        server_let_grow(server);
    }
}

/* Every one that is held now goes on once; who is held again has had its share. */
void server_go_on(struct server *server)
{
    struct list *last = server->held.prev;
    while (!list_empty(&server->held) && !server_turn_is_over(server)) {
        struct list *at = server->held.next;
        struct client *client = list_item(at, struct client, held);
        list_remove(at);
        if (client->conn != NULL) {
            ms_conn_resume(client->conn);
        }
        if (at == last) {
            break;
        }
    }
}

void server_turn_end(struct server *server)
{
    server->turn++;
    server->turn_bytes = 0;
    server->tick_began_us = 0;
    if (!list_empty(&server->held)) {
        event_active(server->go_on, EV_TIMEOUT, 0); /* behind what is active already */
    }
}
