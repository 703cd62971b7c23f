/* grace.h - the bound on a trainer that was told to end and does not
 *
 * TERM, 30 s, KILL, as everywhere: an order that ends the rank in hand starts the time, an Assign
 * in the place of a Stop too; only the trainer ends it: he has no more to do for the rank, or lets
 * go of it, which is also his word that it goes on under another generation. A stop after the step
 * becomes a hard one first, after three such times since it was last said. Then
 * agent_config.on_hang is called, once: no thread can be ended from outside, only the process.
 *
 * The time is counted in ticks and not read from a clock, so that a process that itself stood still
 * is not judged by its own sleep. It runs in a thread of its own and takes no lock of the
 * trainer's: one that hangs may hold what on_order wants, and then the agent's thread hangs too. */
#ifndef GRACE_H
#define GRACE_H

#include "libworker/agent/agent.h"
#include "libworker/agent/hand.h"

#include <pthread.h>

enum { GRACE_TICKS = 30, GRACES_SOFT = 3 };

struct grace {
    pthread_mutex_t lock; /* of the agent's thread and ours; nobody waits inside */
    pthread_cond_t changed;
    pthread_t thread;
    int runs, ending;
    int left; /* ticks; 0: no time runs */
    int is_soft;
    struct holding rank;      /* that is to be released */
    struct agent_order order; /* that began it */
};

void grace_init(struct grace *grace);
/* Ends the thread. */
void grace_fini(struct grace *grace);
/* STOP, LOST or LEAVE goes to the trainer. Agent's thread, before on_order. */
void grace_begin(struct agent *agent, const struct agent_order *order);
/* An Assign ended that rank, which was in hand. Agent's thread, after on_order. */
void grace_begin_superseded(struct agent *agent, const struct holding *rank);
/* The node is idle: no rank is to be released. Agent's thread, before it takes the next one. */
void grace_end(struct agent *agent);
/* The time to stop after the step is over: the hard order. Agent's thread, once agent->harden is
 * set. */
void grace_harden(struct agent *agent);

#endif
