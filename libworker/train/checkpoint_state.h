/* checkpoint_state.h - the state of a replica, tensor by tensor, under the names of files
 *
 * Weights and moving statistics have the names of the network, slots of the optimizer stand before
 * them: "moments.fc.weight". All in logical layout, F32, C order, sorted by name. */
#ifndef CHECKPOINT_STATE_H
#define CHECKPOINT_STATE_H

#include "libworker/data/safetensors.h"
#include "libworker/train/replica.h"

enum { CHECKPOINT_BUFFERS = 2 + OPTIMIZER_SLOTS_MAX }; /* those of replica_state */

struct checkpoint_part { /* beside its entry */
    int buffer;          /* of replica_state */
    int tensor;          /* of the replica's graph */
    size_t count;        /* elements */
};

struct checkpoint_state {
    size_t n;
    struct safetensors_entry *entries;
    struct checkpoint_part *parts;
    size_t largest; /* elements of a part */
    char network[GRAPH_NAME_MAX];
    int n_buffers;
    size_t bytes[CHECKPOINT_BUFFERS];
};

/* Of a replica with a plan. */
int checkpoint_state_init(struct checkpoint_state *state, const struct replica *replica,
                          const struct job_optimizer *optimizer, struct ms_err *err);
void checkpoint_state_fini(struct checkpoint_state *state);

/* Writes the file of the state in buffers, which are laid out as replica_state's. layout is of the
 * thread that calls; tag: of the job that began the training. ret: what is in the file; ret_fd
 * holds it (safetensors_hold), and is to close, also where it fails; -1: nothing has that name. */
int checkpoint_state_save(const struct checkpoint_state *state, struct plan_layout *layout,
                          void *const *buffers, uint64_t step, const char *tag, const char *path,
                          struct safetensors_sum *ret, int *ret_fd, struct ms_err *err);
/* Has the file the state in buffers, bit by bit? layout as above. Without memory, no. */
int checkpoint_state_is(const struct checkpoint_state *state, struct plan_layout *layout,
                        void *const *buffers, struct safetensors *file);
/* Before a file of so many bytes is read: can it be of this state? MS_E_INVALID has both sizes. */
int checkpoint_state_check_size(const struct checkpoint_state *state, uint64_t size,
                                const char *path, struct ms_err *err);
/* Into the replica, all of it or nothing: each tensor must be there with its shape, and no other.
 * MS_E_INVALID names one. */
int checkpoint_state_load(const struct checkpoint_state *state, struct replica *replica,
                          struct safetensors *file, const char *path, struct ms_err *err);

#endif
