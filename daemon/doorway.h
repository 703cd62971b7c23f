/* doorway.h - the connections of one listener that are no peers yet: who waits in front of the
 * door, who stands in it, who gives way
 *
 *     accepted -> waits, only a descriptor -> stands in the door: handshake, Hello -> Welcome
 *
 * Connections that say nothing must not keep others out. Nobody can see into the kernel's queue,
 * which is in order of coming, so it is emptied at once: who waits does so here. Who has sent
 * something (a ClientHello, a Hello: both come with the connection) is ready and gets in by turns
 * of the crowds (crowd.h), so that one that came in thousands does not stand before the one of
 * another. Who is silent gets in only while the door is half empty. Where all places to wait are
 * taken, somebody of the largest crowd is turned away: of the silent ones, unless they are few,
 * who has been so for longest, else who became ready last.
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

#include "daemon/crowd.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DOORWAY_GRACE_MS = 1000,  /* the first bytes come with the connection */
    DOORWAY_SPOKEN_MS = 3000, /* between two of its steps: 2 ms of our time, and of 256 others */
    DOORWAY_MUTE_MS = 5000,   /* in front of the door, as long as a handshake may take in it */
};

struct guest {
    struct member member; /* while it waits */
    struct list line;     /* while it stands in the door: oldest first */
    struct crowd *crowd;  /* NULL: neither waits nor stands */
    int64_t since_ms;     /* it came, came into the door, or last said something */
    int has_spoken;
    int is_waiting;
};

struct doorway {
    struct list line; /* in the door */
    size_t n, max;
    struct crowds crowds;
    size_t waiting_max;
};

void doorway_init(struct doorway *door, size_t max, size_t waiting_max);
void doorway_fini(struct doorway *door); /* when nobody waits or stands any more */

/* A guest stays the caller's. Below 0: no memory, and nothing changed. */
int doorway_wait(struct doorway *door, struct guest *guest, const struct crowd_who *who,
                 int64_t now_ms);
int doorway_enter(struct doorway *door, struct guest *guest, const struct crowd_who *who,
                  int64_t now_ms);
/* Waits and stands no more. Harmless when it does neither. */
void doorway_leave(struct doorway *door, struct guest *guest);
/* It said something: one that waits is ready from now on. Harmless when it does neither. */
void doorway_touch(struct doorway *door, struct guest *guest, int64_t now_ms);

/* Whose turn it is to enter, NULL: nobody's. It still has to leave and enter; the turn after that
 * is another crowd's. */
struct guest *doorway_next(struct doorway *door);
/* The guest's crowd has no turns until doorway_release: its name is asked for. */
void doorway_hold(struct doorway *door, struct guest *guest);
void doorway_release(struct doorway *door);
/* Who is turned away because more wait than may: NULL: nobody. */
struct guest *doorway_surplus(const struct doorway *door);
/* Who waits and has said nothing for DOORWAY_MUTE_MS; NULL: nobody. */
struct guest *doorway_mute(const struct doorway *door, int64_t now_ms);
/* Anybody who waits; NULL: nobody. */
struct guest *doorway_waiting(const struct doorway *door);
size_t doorway_waiting_n(const struct doorway *door);

int doorway_is_full(const struct doorway *door);
/* Who may give way by now: NULL when there is room, or nobody stands there long enough. */
struct guest *doorway_victim(const struct doorway *door, int64_t now_ms);
/* Who gives way to this one that waits, however short he stands there: NULL: nobody. */
struct guest *doorway_yields(const struct doorway *door, const struct guest *waiting);
/* Milliseconds until somebody may give way; 0: now, or there is room. */
int64_t doorway_wait_ms(const struct doorway *door, int64_t now_ms);

#endif
