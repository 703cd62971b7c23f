/* crowd.h - who comes together: the connections before Welcome, counted by where they come from
 *
 *     all -> 10.0.0.0/16 -> 10.0.7.0/24 -> 10.0.7.3          IPv4
 *         -> 2001:db8::/32 -> 2001:db8:1::/48 -> .../64      IPv6: a /64 is what one host has
 *         -> this host -> uid 1000 -> 127.0.0.1              every account has all of 127.0.0.0/8
 *         -> uid                                             a Unix socket
 *
 * A crowd is what one host or one person can be many of; crowds of one network are a crowd, too.
 * So one who has many addresses stands against others as one: shares are given from above, to each
 * network the same, in it to each of its parts.
 *
 * A tree without decisions but these two: whose turn it is, and which crowd is too large. */
#ifndef CROWD_H
#define CROWD_H

#include "daemon/sched/list.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    CROWD_LEVELS = 3, /* below the one of all */
    CROWD_SLOTS = 256,
    CROWD_NAME_MAX = 64, /* "2001:db8:1:2::/64", "uid 1000" */
};

/* Where somebody comes from, and whether he is let in whatever the others do. */
struct crowd_who {
    uint8_t kind;
    uint8_t is_kept;
    uint8_t at[8]; /* the first bytes of the address, or the uid */
};
enum { CROWD_UID_UNKNOWN = -1 };
struct crowd_who crowd_who_net(const struct sockaddr *addr); /* NULL: one crowd of their own */
/* Of somebody on this host; crowd_who_net does the same for loopback, with an unknown uid. */
struct crowd_who crowd_who_here(const struct sockaddr *addr, unsigned uid);
struct crowd_who crowd_who_uid(unsigned uid, int is_kept);

/* What they do in front of the door. */
enum crowd_state {
    CROWD_SILENT, /* nothing has come from them yet */
    CROWD_READY,  /* something has */
    CROWD_STATES
};

struct crowd {
    struct crowd *next; /* in its slot */
    struct crowd *above;
    unsigned level;
    struct crowd_who who; /* cut to the level */
    struct list siblings; /* in above.parts */
    struct list parts;    /* of which it consists; none of CROWD_LEVELS */
    struct list turn;     /* in above.turns while some of it are ready and it is not held */
    struct list turns;    /* the next part first */
    struct list members[CROWD_STATES]; /* struct member, in the order of coming */
    size_t waiting[CROWD_STATES], standing;
    int is_held;
};

/* Somebody who waits: in the crowds of all levels at once. */
struct member {
    struct list line[CROWD_LEVELS + 1];
    struct crowd *crowd; /* of the last level; NULL: it does not wait */
    enum crowd_state state;
};

struct crowds {
    struct crowd all;
    struct crowd *slots[CROWD_SLOTS];
};

void crowds_init(struct crowds *crowds);
void crowds_fini(struct crowds *crowds); /* when nobody waits or stands any more */

/* The crowd of the last level: borrowed until crowd_drop. NULL: no memory. */
struct crowd *crowds_get(struct crowds *crowds, const struct crowd_who *who);
/* Forgets it, and those above, where nobody is left. */
void crowd_drop(struct crowds *crowds, struct crowd *crowd);

void crowd_add(struct crowd *crowd, struct member *member, enum crowd_state state);
void crowd_remove(struct member *member); /* its crowds have had their turn if it was the next */
void crowd_stand(struct crowd *crowd, int n); /* so many more (or fewer) of it stand in the door */
/* The first of a list of members at this level; NULL: there is none. */
struct member *crowd_first(const struct crowd *crowd, enum crowd_state state);

/* Whose turn it is: NULL: nobody's who is ready. */
struct member *crowds_next(const struct crowds *crowds);
void crowd_hold(struct crowd *crowd); /* it has no turns */
void crowds_release(struct crowds *crowds);

/* From the largest crowd above so many, from the largest part of that, and so on: who has been
 * silent for longest, or who became ready last. Those that are let in whatever the others do only
 * where nobody else is. NULL: nobody is in that state. */
struct member *crowds_surplus(const struct crowds *crowds, enum crowd_state state, size_t above);

/* The first level at which two crowds part; above CROWD_LEVELS: they are the same. */
unsigned crowd_parting(const struct crowd *one, const struct crowd *two);
const struct crowd *crowd_at(const struct crowd *crowd, unsigned level);

/* For people. Returns buf. */
const char *crowd_name(const struct crowd *crowd, char buf[CROWD_NAME_MAX]);

#endif
