/* light.h - many nodes in one thread: connections of the code that workers use, and no work
 *
 * Each dials, registers, takes the rank that it is given, and beats once a second. Who is refused
 * or loses its connection dials again. */
#ifndef BENCH_LIGHT_H
#define BENCH_LIGHT_H

#include "proto/conn.h"

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

struct light_node;

struct light_fleet {
    /* what light_start is given */
    struct event_base *base;
    SSL_CTX *tls;
    const char *address;
    size_t n, dialing_max; /* at the same time: one thread plays all, and each has its deadline */

    struct light_node *nodes;
    struct event *redial, *beat;
    size_t next_dial, next_beat, dialing, registered, ranked;
    unsigned long lost; /* connections that ended, or were refused */

    double began_s;
    uint64_t beats, answers; /* since light_count */
    double *waits_s;         /* of the answers */
    size_t waits_max;
};

void light_start(struct light_fleet *fleet);
/* Heartbeats and their answers are counted from now on. */
void light_count(struct light_fleet *fleet, double seconds_max);
/* How long the answer took that is later than such a part (0 to 1) of all. */
double light_wait_s(struct light_fleet *fleet, double part);
/* Ends all connections, and frees what the fleet holds. */
void light_stop(struct light_fleet *fleet);

#endif
