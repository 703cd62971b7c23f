/* throttle.h - lines that others can provoke: a burst of each event, then a trickle, and a count
 *
 * The event is the first word of a line. What was left out is told with the next line of that event
 * that passes, or by throttle_next_report a while after the flood. Pure: time is an argument. */
#ifndef THROTTLE_H
#define THROTTLE_H

#include <stddef.h>
#include <stdint.h>

enum {
    THROTTLE_SLOTS = 64,  /* events: about forty exist; beyond, they share the last slot */
    THROTTLE_BURST = 500, /* a cluster of 500 nodes that starts is told line by line */
    THROTTLE_PER_S = 20,  /* 20 lines of 300 bytes: 6 KiB/s for an event */
    THROTTLE_STRANGERS =
        20, /* burst of what anybody can provoke: conn.*, a line each second then */
    THROTTLE_REPORT_MS = 5000,
};

struct throttle_slot {
    char event[40];
    int is_strangers;
    int64_t at_ms; /* when level was computed */
    int64_t level; /* thousandths of a line */
    int64_t hidden_since_ms;
    unsigned long hidden;
};

struct throttle {
    struct throttle_slot slots[THROTTLE_SLOTS];
    size_t n;
};

/* 1: write it, and first that *ret_hidden lines of this event were left out (0: none). */
int throttle_pass(struct throttle *throttle, const char *line, int64_t now_ms,
                  unsigned long *ret_hidden);
/* An event of which lines were left out long enough ago to say so; NULL: none. Resets its count. */
const char *throttle_next_report(struct throttle *throttle, int64_t now_ms,
                                 unsigned long *ret_hidden);

#endif
