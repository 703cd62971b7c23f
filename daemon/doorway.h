/* doorway.h - the connections of one listener that are no peers yet: who waits in front of the
 * door, who stands in it, who gives way
 *
 *     accepted -> waits, only a descriptor -> stands in the door: handshake, Hello -> Welcome
 *
 * Connections that say nothing must not keep others out. Nobody can see into the kernel's queue,
 * which is in order of coming, so it is emptied at once: who waits does so here, by crowds. A crowd
 * is what one host or one person can be many of: an IPv4 address, an IPv6 /64, the uid behind a
 * Unix socket. Crowds take turns, so that one that came in thousands does not stand before the one
 * of another; where all places to wait are taken, the newest of the largest crowd is turned away.
 *
 * The door has few places, for a handshake costs. When all are taken, one that has said nothing for
 * DOORWAY_GRACE_MS gives way: the oldest of the crowd that holds the most. Whoever is in the middle
 * of a handshake has longer: after a restart ten thousand come at once, and are slow because all
 * are. But a crowd that holds more than half of the door gives way at once to one that holds less
 * than half as much; and all do to a guest who is let in whatever the others do (on a Unix socket:
 * root, and the daemon's own user).
 *
 * Decisions only: descriptors and connections are the caller's. Loop thread. */
#ifndef DOORWAY_H
#define DOORWAY_H

#include "daemon/sched/list.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    DOORWAY_GRACE_MS = 1000,  /* the first bytes come with the connection */
    DOORWAY_SPOKEN_MS = 3000, /* between two of its steps: 2 ms of our time, and of 256 others */
    DOORWAY_SLOTS = 256,
    DOORWAY_NAME_MAX = 64, /* "2001:db8:1:2::/64", "uid 1000" */
};

/* Which crowd somebody is of, and whether he is let in whatever the others do. */
struct doorway_who {
    uint8_t key[9]; /* kind and address, or uid */
    uint8_t is_kept;
};
struct doorway_who doorway_who_net(const struct sockaddr *addr); /* NULL: one crowd of their own */
struct doorway_who doorway_who_uid(unsigned uid, int is_kept);

struct crowd {
    struct crowd *next; /* in its slot */
    struct list turn;   /* in doorway.turns while some of it wait and it is not held */
    struct list waiting;
    struct doorway_who who;
    size_t waiting_n, standing_n;
    int is_held;
};

struct guest {
    struct list line;    /* of its crowd's waiting, or of those in the door: oldest first */
    struct crowd *crowd; /* NULL: neither waits nor stands */
    int64_t since_ms;    /* it came into the door, or last said something */
    int has_spoken;
    int is_waiting;
};

struct doorway {
    struct list line; /* in the door */
    size_t n, max;
    struct list turns; /* crowds that wait: the next one first */
    size_t waiting_n, waiting_max;
    struct crowd *slots[DOORWAY_SLOTS];
};

void doorway_init(struct doorway *door, size_t max, size_t waiting_max);
void doorway_fini(struct doorway *door); /* when nobody waits or stands any more */

/* A guest stays the caller's. Below 0: no memory, and nothing changed. */
int doorway_wait(struct doorway *door, struct guest *guest, const struct doorway_who *who);
int doorway_enter(struct doorway *door, struct guest *guest, const struct doorway_who *who,
                  int64_t now_ms);
/* Waits and stands no more. Harmless when it does neither. */
void doorway_leave(struct doorway *door, struct guest *guest);
/* It said something. Harmless when it is not in the door. */
void doorway_touch(struct doorway *door, struct guest *guest, int64_t now_ms);

/* Whose turn it is to enter, NULL: nobody's. It still has to leave and enter; the turn after that
 * is another crowd's. */
struct guest *doorway_next(struct doorway *door);
/* The guest's crowd has no turns until doorway_release: its name is asked for. */
void doorway_hold(struct doorway *door, struct guest *guest);
void doorway_release(struct doorway *door);
/* Who is turned away because more wait than may: the newest of the largest crowd; NULL: nobody. */
struct guest *doorway_surplus(const struct doorway *door);
/* The same where nobody has to: anybody who waits. */
struct guest *doorway_waiting(const struct doorway *door);
/* All places to wait are taken, and by no crowd: then the kernel's queue is as good. */
int doorway_is_packed(const struct doorway *door);

int doorway_is_full(const struct doorway *door);
/* Who may give way by now: NULL when there is room, or nobody stands there long enough. */
struct guest *doorway_victim(const struct doorway *door, int64_t now_ms);
/* Who gives way to this one that waits, however short he stands there: NULL: nobody. */
struct guest *doorway_yields(const struct doorway *door, const struct guest *waiting);
/* Milliseconds until somebody may give way; 0: now, or there is room. */
int64_t doorway_wait_ms(const struct doorway *door, int64_t now_ms);

/* For people. Returns buf. */
const char *doorway_name(const struct doorway_who *who, char buf[DOORWAY_NAME_MAX]);

#endif
