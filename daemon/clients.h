/* clients.h - the table of connections: number <-> connection, and those that are over
 *
 * A number is never used twice: serial << 16 | slot. Looking one up is an array access. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include "proto/conn.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

enum { CLIENTS_MAX = MS_CONNS_MAX + MS_HALF_OPEN_MAX };

struct client {
    uint64_t id;
    struct ms_conn *conn; /* NULL once closed */
    void *owner;
    int is_known;               /* the core was told that it opened */
    int is_opened;              /* Hello and Welcome are over */
    struct client *next;        /* in the list of the closed */
    char host[MS_ADDR_MAX + 1]; /* address without the port; "" on Unix sockets */
    char reason[MS_TEXT_MAX + 1];
};

struct clients {
    struct client **slots;
    size_t size;  /* allocated */
    size_t used;  /* closed ones that were not taken yet included */
    size_t first; /* no slot below this is free */
    uint64_t serial;
    struct client *closed, **closed_end;
};

void clients_init(struct clients *clients);
/* Destroys every connection that is left, without on_close. */
void clients_fini(struct clients *clients);

/* Returns borrowed until clients_remove; NULL without memory or above CLIENTS_MAX. */
struct client *clients_add(struct clients *clients, void *owner);
void clients_remove(struct clients *clients, struct client *client);
struct client *clients_find(const struct clients *clients, uint64_t id); /* NULL: gone or closed */

/* For the connection's on_close: it is over, keep it until clients_take_closed. */
void clients_put_closed(struct clients *clients, struct client *client, const char *reason);
/* The next one that is over, in the order of the closing, or NULL. Still needs clients_remove. */
struct client *clients_take_closed(struct clients *clients);

/* How many half-open connections come from a host. O(slots). */
size_t clients_half_open_of(const struct clients *clients, const char *host);

#endif
