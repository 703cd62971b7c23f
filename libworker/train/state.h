/* state.h - what a rank holds of the training: its digest, and the way from one rank to others
 *
 * Weights with their padding (which is zero on every rank), moving statistics, slots, and the step
 * that made them: equal digests are equal trainings from there on. The trainer's thread. */
#ifndef TRAIN_STATE_H
#define TRAIN_STATE_H

#include "libworker/comm/comm.h"
#include "libworker/train/replica.h"
#include "proto/limits.h"

uint64_t state_bytes(const struct replica *replica);
/* XXH3-128, canonical. MS_E_NOMEM. */
int state_digest(const struct replica *replica, uint64_t step, uint8_t ret[MS_STATE_DIGEST_LEN],
                 struct ms_err *err);

enum state_part {
    STATE_GIVE, /* the source */
    STATE_PASS, /* has it already, and lets it pass */
    STATE_SWAP, /* has an older one, which stays what it is until the new one is there and whole */
    STATE_FILL, /* has none: what comes halfway is there, and none */
};

struct state_offer {
    int source;
    uint64_t step;
    const uint8_t *digest;
};

/* A collective: the source's state goes to all who want it. MS_E_FAILED: what came is not what the
 * source said; and what a collective fails with. */
int state_move(struct mesh *mesh, struct replica *replica, const struct state_offer *offer,
               enum state_part part, struct ms_err *err);

#endif
