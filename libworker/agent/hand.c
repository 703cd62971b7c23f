/* hand.c - the rank that a node holds */
#include "libworker/agent/hand.h"

enum { PHASE_BITS = 8 };

struct holding hand_look(struct hand *hand)
{
    uint64_t held = atomic_load(&hand->held);
    if (held == 0) {
        return (struct holding){.phase = AGENT_IDLE};
    }
    struct holding holding = hand->holding;
    uint64_t before = atomic_load(&hand->told.generation);
    uint64_t where = atomic_load(&hand->told.where);
    if (before == held && atomic_load(&hand->told.generation) == held) {
        holding.phase = (enum agent_phase)(where & ((1U << PHASE_BITS) - 1));
        holding.step = where >> PHASE_BITS;
    } /* else he is with another rank still, or changes over just now */
    return holding;
}

void hand_forget(struct hand *hand)
{
    atomic_store(&hand->rested, 0);
    atomic_store(&hand->told.generation, 0);
}

void hand_take(struct hand *hand, uint64_t job, uint64_t generation, uint32_t rank)
{
    struct holding holding = {
        .job = job, .generation = generation, .rank = rank, .phase = AGENT_PREPARING};
    hand_put_back(hand, &holding);
}

void hand_settle(struct hand *hand, int recovers, uint64_t step)
{
    hand->holding.recovers = recovers;
    hand->holding.step = step;
}

void hand_put_back(struct hand *hand, const struct holding *before)
{
    hand->holding = *before;
    atomic_store(&hand->held, before->generation);
}

void hand_started(struct hand *hand, uint64_t generation)
{
    hand->holding.started |= hand->holding.generation == generation;
}

int hand_is_at_rest(struct hand *hand, uint64_t generation)
{
    return atomic_load(&hand->rested) >= generation;
}

void hand_rest(struct hand *hand, uint64_t generation)
{
    if (atomic_load(&hand->rested) < generation) {
        atomic_store(&hand->rested, generation);
    }
}

void hand_stir(struct hand *hand)
{
    atomic_store(&hand->rested, 0);
}

void hand_release(struct hand *hand, uint64_t generation)
{
    hand_rest(hand, generation); /* before the node is idle: what it takes then begins anew */
    (void)atomic_compare_exchange_strong(&hand->held, &generation, 0);
}

void hand_tell(struct hand *hand, uint64_t generation, enum agent_phase phase, uint64_t step)
{
    if (atomic_load(&hand->told.generation) != generation) {
        atomic_store(&hand->told.generation, 0);
    }
    atomic_store(&hand->told.where, step << PHASE_BITS | (uint64_t)phase);
    atomic_store(&hand->told.generation, generation);
}
