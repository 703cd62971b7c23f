/* state.c - what a rank holds of the training: its digest, and the way from one rank to others */
#include "libworker/train/state.h"

#include "libworker/data/sum.h"
#include "libworker/host/memory.h"

#include <string.h>

_Static_assert((int)MS_STATE_DIGEST_LEN == (int)SUM_BYTES, "a state's digest is a sum");

enum {
    BUFFERS_MAX = 2 + OPTIMIZER_SLOTS_MAX,
    PIECE_BYTES = 16 << 20, /* what a rank that lets it pass needs room for */
};

/* ---- the digest ---- */

struct buffers {
    int n;
    const void *at[BUFFERS_MAX];
    size_t bytes[BUFFERS_MAX];
};

static struct buffers buffers_of(const struct replica *replica)
{
    struct buffers all = {.n = 0};
    while (all.n < BUFFERS_MAX &&
           replica_view_state(replica, all.n, &all.at[all.n], &all.bytes[all.n])) {
        all.n++;
    }
    return all;
}

static size_t bytes_of(const struct buffers *all)
{
    size_t sum = 0;
    for (int i = 0; i < all->n; i++) {
        sum += all->bytes[i];
    }
    return sum;
}

uint64_t state_bytes(const struct replica *replica)
{
    const struct buffers all = buffers_of(replica);
    return bytes_of(&all);
}

static int digest(const struct buffers *all, uint64_t step, uint8_t ret[MS_STATE_DIGEST_LEN],
                  struct ms_err *err)
{
    struct sum *sum = sum_create();
    if (sum == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the digest of a state");
    }
    sum_add(sum, &step, sizeof(step));
    for (int i = 0; i < all->n; i++) {
        sum_add(sum, all->at[i], all->bytes[i]);
    }
    sum_bytes(sum, ret);
    sum_destroy(sum);
    return 0;
}

int state_digest(const struct replica *replica, uint64_t step, uint8_t ret[MS_STATE_DIGEST_LEN],
                 struct ms_err *err)
{
    const struct buffers all = buffers_of(replica);
    return digest(&all, step, ret, err);
}

/* ---- from one rank to others ---- */

struct room { /* that nothing else needs now */
    uint8_t *at;
    size_t bytes;
    int is_own;
};

static int find_room(struct replica *replica, size_t bytes, struct room *ret, struct ms_err *err)
{
    size_t scratch = 0;
    void *at = replica_scratch(replica, &scratch);
    int is_own = scratch < bytes;
    int rc = is_own ? memory_alloc(bytes, "the state of another rank", &at, err) : 0;
    if (rc == 0) {
        *ret = (struct room){at, bytes, is_own};
    }
    return rc;
}

static void leave_room(const struct room *room)
{
    if (room->is_own) {
        memory_free(room->at, room->bytes);
    }
}

/* to: where the state comes to lie, one buffer behind the other; NULL: in the buffers themselves.
 * passes: it does not stay there. */
static int move(struct mesh *mesh, struct replica *replica, int source, uint8_t *to, int passes,
                struct ms_err *err)
{
    void *own = NULL;
    size_t bytes = 0;
    int rc = 0;
    for (int i = 0; rc == 0 && replica_state(replica, i, &own, &bytes); i++) {
        for (size_t at = 0; rc == 0 && at < bytes; at += PIECE_BYTES) {
            const size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
            uint8_t *here = to == NULL ? (uint8_t *)own + at : passes ? to : to + at;
            rc = mesh_broadcast(mesh, here, piece, source, err);
        }
        to = to == NULL || passes ? to : to + bytes;
    }
    return rc;
}

static int check(const struct buffers *all, const struct state_offer *offer, struct ms_err *err)
{
    uint8_t have[MS_STATE_DIGEST_LEN];
    int rc = digest(all, offer->step, have, err);
    if (rc == 0 && memcmp(have, offer->digest, sizeof(have)) != 0) {
        rc = ms_fail(err, MS_E_FAILED,
                     "the state that came from rank %d is not the one whose digest it said: the "
                     "memory of one of the two hosts, or the network between them, is not sound",
                     offer->source);
    }
    return rc;
}

static int fill(struct mesh *mesh, struct replica *replica, const struct state_offer *offer,
                struct ms_err *err)
{
    int rc = move(mesh, replica, offer->source, NULL, 0, err);
    const struct buffers all = buffers_of(replica);
    return rc < 0 ? rc : check(&all, offer, err);
}

/* A copy of the buffers, one behind the other. */
static struct buffers buffers_in(const struct buffers *like, const uint8_t *at)
{
    struct buffers all = *like;
    for (int i = 0; i < all.n; i++) {
        all.at[i] = at;
        at += all.bytes[i];
    }
    return all;
}

static int swap(struct mesh *mesh, struct replica *replica, const struct state_offer *offer,
                struct ms_err *err)
{
    const struct buffers old = buffers_of(replica);
    struct room room = {NULL, 0, 0};
    int rc = find_room(replica, bytes_of(&old), &room, err);
    if (rc < 0) {
        return rc;
    }
    const struct buffers new = buffers_in(&old, room.at);
    rc = move(mesh, replica, offer->source, room.at, 0, err);
    rc = rc == 0 ? check(&new, offer, err) : rc;
    void *state = NULL;
    size_t bytes = 0;
    for (int i = 0; rc == 0 && replica_state(replica, i, &state, &bytes); i++) {
        memcpy(state, new.at[i], bytes);
    }
    leave_room(&room);
    return rc;
}

static int pass(struct mesh *mesh, struct replica *replica, int source, struct ms_err *err)
{
    const struct buffers all = buffers_of(replica);
    size_t largest = 1;
    for (int i = 0; i < all.n; i++) {
        largest = all.bytes[i] > largest ? all.bytes[i] : largest;
    }
    struct room room = {NULL, 0, 0};
    int rc = find_room(replica, largest < PIECE_BYTES ? largest : PIECE_BYTES, &room, err);
    if (rc == 0) {
        rc = move(mesh, replica, source, room.at, 1, err);
        leave_room(&room);
    }
    return rc;
}

int state_move(struct mesh *mesh, struct replica *replica, const struct state_offer *offer,
               enum state_part part, struct ms_err *err)
{
    switch (part) {
    case STATE_GIVE:
        return move(mesh, replica, offer->source, NULL, 0, err);
    case STATE_PASS:
        return pass(mesh, replica, offer->source, err);
    case STATE_SWAP:
        return swap(mesh, replica, offer, err);
    case STATE_FILL:
        return fill(mesh, replica, offer, err);
    }
    return 0;
}
