/* places.h - who may hold how many of the daemon's connections, and of its room for large frames
 *
 *     | users, each principal a share of them | nodes, each certificate a share | admins' floor |
 *
 * Whatever users or nodes do, an admin still gets in; whatever users do, nodes still get in, and
 * whatever nodes do, users. One user holds no more than his share, and one worker's certificate no
 * more than its nodes need; where nobody vouches for a name nodes have no share, for all are one. A
 * frame above MS_FRAME_SMALL needs one of MS_BIG_FRAMES places beside that, shared likewise; those
 * of nodes are rare, ours, and not counted. Counts only, nothing else: the caller closes
 * connections and lets them wait. */
#ifndef PLACES_H
#define PLACES_H

#include "proto/conn.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum place_class { PLACE_USER, PLACE_NODE, PLACE_ADMIN, PLACE_CLASSES };

struct holder;

struct place {
    enum place_class class;
    struct holder *holder; /* users and nodes: who */
    int is_held;
    int is_large; /* it has room for a large frame */
};

enum { PLACES_SLOTS = 1024 };

struct places {
    size_t max;        /* in all */
    size_t others_max; /* ... that are no admins */
    size_t users_max, user_max;
    size_t nodes_max, node_max; /* node_max: of one certificate, 0: no share */
    size_t n[PLACE_CLASSES];
    size_t n_large;
    struct holder *slots[PLACES_SLOTS];
};

void places_init(struct places *places, size_t max);
void places_fini(struct places *places);
/* One certificate may register so many nodes, 0: any number. Who holds more keeps them. */
void places_set_nodes(struct places *places, uint32_t nodes_per_certificate);
size_t places_used(const struct places *places);

/* Worker: what registers nodes, and whoever comes where nobody vouches for a name. */
enum place_class places_class(const struct ms_peer *peer);

/* MS_E_FULL says which limit was met, and what helps; MS_E_NOMEM. */
int places_take(struct places *places, const struct ms_peer *peer, struct place *ret,
                struct ms_err *err);
void places_give(struct places *places, struct place *place); /* harmless when nothing is held */

/* Room for a large frame: is there some for who holds the place? Taking it says so, too. */
int places_may_grow(const struct places *places, const struct place *place);
int places_grow(struct places *places, struct place *place);
void places_shrink(struct places *places, struct place *place); /* harmless likewise */
size_t places_free_large(const struct places *places);
/* "56 of 64 places for requests above 64 KiB are taken, 8 by user:alice (8 are the limit of one)".
 */
void places_say_large(const struct places *places, const struct place *place, char *ret,
                      size_t size);

#endif
