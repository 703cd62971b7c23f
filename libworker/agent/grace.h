/* grace.h - the bound on a trainer that was told to end and does not
 *
 * TERM, 30 s, KILL, as everywhere: an order that ends the rank in hand starts the time; the rank's
 * release ends it. A stop after the step becomes a hard one first, with a time of its own. Then
 * agent_config.on_hang is called, once: no thread can be ended from outside, only the process.
 *
 * The time is counted in ticks and not read from a clock, so that a process that itself stood still
 * is not judged by its own sleep. The agent's thread only. */
#ifndef GRACE_H
#define GRACE_H

#include "libworker/agent/agent.h"

#include <event2/event.h>

enum { GRACE_TICKS = 30 };

struct grace {
    struct event *tick;
    int left; /* ticks; 0: no time runs */
    int is_soft;
    uint64_t generation;
    struct agent_order order; /* that began it */
};

int grace_init(struct agent *agent, struct ms_err *err);
void grace_fini(struct agent *agent);
/* STOP, LOST or LEAVE goes to the trainer. */
void grace_begin(struct agent *agent, const struct agent_order *order);

#endif
