/* clients.c - the table of connections: number <-> connection, and those that are over */
#include "daemon/clients.h"

#include "proto/grow.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_BITS = 16, SLOT_MASK = (1 << SLOT_BITS) - 1 };
_Static_assert((int)CLIENTS_MAX < (int)SLOT_MASK, "a slot fits the low bits of a number");

void clients_init(struct clients *clients)
{
    *clients = (struct clients){.size = 0};
    clients->closed_end = &clients->closed;
}

void clients_fini(struct clients *clients)
{
    assert(clients->used == 0);
    free(clients->slots);
    clients_init(clients);
}

static int grow(struct clients *clients)
{
    size_t size = clients->size;
    struct client **slots = ms_grow(clients->slots, clients->size, 1, sizeof(*slots), &size);
    if (slots == NULL) {
        return -1;
    }
    memset(slots + clients->size, 0, (size - clients->size) * sizeof(*slots));
    clients->slots = slots;
    clients->size = size;
    return 0;
}

struct client *clients_add(struct clients *clients, void *owner)
{
    if (clients->used >= CLIENTS_MAX || (clients->used == clients->size && grow(clients) < 0)) {
        return NULL;
    }
    struct client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return NULL;
    }
    size_t slot = clients->first;
    while (clients->slots[slot] != NULL) {
        slot++;
    }
    clients->slots[slot] = client;
    clients->first = slot + 1;
    clients->used++;
    client->id = ++clients->serial << SLOT_BITS | slot;
    client->owner = owner;
    list_init(&client->guest.line);
    list_init(&client->held);
    list_init(&client->active);
    list_init(&client->fresh);
    list_init(&client->writing);
    return client;
}

void clients_remove(struct clients *clients, struct client *client)
{
    size_t slot = client->id & SLOT_MASK;
    assert(clients->slots[slot] == client);
    clients->slots[slot] = NULL;
    clients->first = slot < clients->first ? slot : clients->first;
    clients->used--;
    free(client);
}

struct client *clients_find(const struct clients *clients, uint64_t id)
{
    size_t slot = id & SLOT_MASK;
    struct client *client = slot < clients->size ? clients->slots[slot] : NULL;
    return client != NULL && client->id == id && client->conn != NULL ? client : NULL;
}

void clients_put_closed(struct clients *clients, struct client *client, const char *reason)
{
    client->conn = NULL;
    client->next = NULL;
    snprintf(client->reason, sizeof(client->reason), "%s", reason);
    *clients->closed_end = client;
    clients->closed_end = &client->next;
}

struct client *clients_take_closed(struct clients *clients)
{
    struct client *client = clients->closed;
    if (client != NULL) {
        clients->closed = client->next;
        if (clients->closed == NULL) {
            clients->closed_end = &clients->closed;
        }
    }
    return client;
}
