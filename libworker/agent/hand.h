/* hand.h - the rank that a node holds: what heartbeats and Register say of it
 *
 * The agent's thread puts it in, the trainer says where he is with it and lets go of it. No lock:
 * a trainer may be stopped for good in any line (a debugger, a page that never comes), also in the
 * one that tells his step, and neither the heartbeats nor grace.c may then wait for him. */
#ifndef HAND_H
#define HAND_H

#include "libworker/agent/agent.h"

#include <stdatomic.h>
#include <stdint.h>

struct holding { /* generation 0: idle */
    uint64_t job, generation, step;
    uint32_t rank;
    enum agent_phase phase;
    int started;
    int recovers; /* its job does: the scheduler is waited for without limit */
};

struct hand {
    _Atomic uint64_t held;   /* generation; 0: idle */
    _Atomic uint64_t rested; /* the trainer's work for all up to that is done; only grows with a
                              * rank in hand: what is held may be the next one already */
    struct holding holding;  /* the agent's thread; step and phase are in `told` */
    struct {
        _Atomic uint64_t generation; /* of what follows; 0 while that changes */
        _Atomic uint64_t where;      /* step and phase in one word */
    } told;                          /* the trainer writes */
};

/* ---- the agent's thread ---- */

struct holding hand_look(struct hand *hand);
/* What was of generations before, where none is held: another database may count from 1 again. */
void hand_forget(struct hand *hand);
/* Takes a rank: it is being prepared. Generation > 0, and above that of a rank in hand. */
void hand_take(struct hand *hand, uint64_t job, uint64_t generation, uint32_t rank);
/* What is known of it once the trainer has taken it: whether its job recovers, and where it begins,
 * which is above 0 where it goes on. */
void hand_settle(struct hand *hand, int recovers, uint64_t step);
/* As it was when hand_look returned it. */
void hand_put_back(struct hand *hand, const struct holding *before);
/* Start has come for that generation; nothing where another one is held by now. */
void hand_started(struct hand *hand, uint64_t generation);

/* ---- any thread ---- */

/* Has the trainer done its work, or let go, of the rank of that generation, which was the one in
 * hand or came before it? */
int hand_is_at_rest(struct hand *hand, uint64_t generation);

/* ---- the trainer ---- */

/* He has no more to do for that generation: it waits for the scheduler's last word. */
void hand_rest(struct hand *hand, uint64_t generation);
void hand_stir(struct hand *hand); /* ... but he has */
/* He is done with that generation, and with those before it: idle again, unless another one is held
 * by now. */
void hand_release(struct hand *hand, uint64_t generation);
/* Where he is with the rank of that generation. Steps below 2^56. */
void hand_tell(struct hand *hand, uint64_t generation, enum agent_phase phase, uint64_t step);

#endif
