/* clients.h - the table of connections: number <-> connection, and those that are over
 *
 * A number is never used twice: serial << 16 | slot. Looking one up is an array access. Only
 * numbers are kept here: connections are never touched, and the lists that a client hangs in are
 * the server's (server_client_destroy). */
#ifndef CLIENTS_H
#define CLIENTS_H

#include "daemon/doorway.h"
#include "daemon/places.h"
#include "daemon/sched/list.h"
#include "proto/conn.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

enum { CLIENTS_MAX = MS_CONNS_MAX + 8 * MS_HALF_OPEN_MAX }; /* eight listeners */

struct client {
    uint64_t id;
    struct ms_conn *conn; /* NULL once closed */
    void *owner;
    int is_known;        /* the core was told that it opened */
    int is_opened;       /* Hello and Welcome are over */
    int is_mapped;       /* user_map named its account */
    unsigned account;    /* uid of that, of a Unix peer */
    int is_nameless;     /* nobody could tell the name of its uid: refused at Hello */
    struct client *next; /* in the list of the closed */

    struct doorway *door; /* before Welcome */
    struct guest guest;
    struct place place; /* after it */

    struct list held;   /* in server.held, or in server.growing, while it waits for its turn */
    struct list active; /* in server.active: least recently heard of first */
    int64_t active_ms;
    uint64_t turn; /* of the next two */
    unsigned frames;
    size_t bytes;
    int is_node;    /* the core knows a node behind it */
    int is_growing; /* held until there is a place for its large frame */
    int has_grown;  /* ... and it was told that there is */

    struct list fresh;   /* in server.fresh while it has frames of this turn */
    struct list writing; /* in server.writing while something is unsent */
    size_t unsent;       /* as counted in server.unsent */
    int64_t moved_ms;    /* the peer took something */
    int is_clogged;      /* the core was told */
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
/* Each client was removed before: only its owner knows what else it hangs in. */
void clients_fini(struct clients *clients);

/* Returns borrowed until clients_remove; NULL without memory or above CLIENTS_MAX. */
struct client *clients_add(struct clients *clients, void *owner);
void clients_remove(struct clients *clients, struct client *client);
struct client *clients_find(const struct clients *clients, uint64_t id); /* NULL: gone or closed */

/* For the connection's on_close: it is over, keep it until clients_take_closed. */
void clients_put_closed(struct clients *clients, struct client *client, const char *reason);
/* The next one that is over, in the order of the closing, or NULL. Still needs clients_remove. */
struct client *clients_take_closed(struct clients *clients);

#endif
