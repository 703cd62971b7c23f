/* doorway.h - the half-open connections of one listener: how many, from which network, who gives
 * way
 *
 * Idle connections must not keep others out: each listener has its own places, and when all are
 * taken, one that has said nothing for DOORWAY_GRACE_MS gives way to the next in the kernel's
 * queue: the oldest of the network that holds the most, else the oldest of all. Whoever is in the
 * middle of a handshake has longer: after a restart ten thousand come at once, and are slow because
 * all are. A network is an IPv4 address or an IPv6 /64, which one host may fill with addresses as
 * it likes. */
#ifndef DOORWAY_H
#define DOORWAY_H

#include "daemon/sched/list.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    DOORWAY_GRACE_MS = 1000,  /* the first bytes come with the connection */
    DOORWAY_SPOKEN_MS = 3000, /* between two of its steps: 2 ms of our time, and of 256 others */
};

struct guest {
    struct list line; /* oldest first */
    int64_t since_ms; /* it came, or last said something */
    int has_spoken;
    uint8_t net[9]; /* kind and address; all 0: a Unix socket */
    int is_in;
};

struct doorway {
    struct list line;
    size_t n, max;
};

void doorway_init(struct doorway *door, size_t max);
/* addr NULL: a Unix socket. The guest stays the caller's. */
void doorway_enter(struct doorway *door, struct guest *guest, const struct sockaddr *addr,
                   int64_t now_ms);
void doorway_leave(struct doorway *door, struct guest *guest); /* harmless when it is not in */
/* It said something. Harmless when it is not in. */
void doorway_touch(struct doorway *door, struct guest *guest, int64_t now_ms);
int doorway_is_full(const struct doorway *door);
/* Who gives way for a newcomer: NULL when there is room, or nobody stands there long enough. O(n^2)
 * comparisons when full, at most max times within the grace. */
struct guest *doorway_victim(const struct doorway *door, int64_t now_ms);
/* Milliseconds until somebody may give way; 0: now, or there is room. */
int64_t doorway_wait_ms(const struct doorway *door, int64_t now_ms);

#endif
