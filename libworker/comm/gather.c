/* gather.c - everybody's small contribution to everybody: one sync here, one message elsewhere
 *
 * On this host a contribution is copied into one of two slots, used in turn. A rank that fills slot
 * k again has passed the sync of the use in between, at which everybody had finished reading k: so
 * one sync is enough, and the caller's own memory is free as soon as this returns. */
#include "libworker/comm/group.h"

#include <assert.h>
#include <string.h>

_Static_assert((int)MESH_SMALL_MAX <= (int)SHM_SLOT_BYTES, "a contribution fits a slot");

int gather_small(struct group *group, const void *mine, size_t bytes, const void **ret,
                 struct ms_err *err)
{
    assert(bytes > 0 && bytes <= MESH_SMALL_MAX);
    size_t stride = (bytes + 63) / 64 * 64;
    if (group->n_locals > 1) {
        memcpy(shm_slot(group, group->self), mine, bytes);
        shm_arrive(group);
    }
    int rc = group_scratch(group, (size_t)group->n_remotes * stride, err);
    for (int i = 0; rc == 0 && i < group->n_remotes; i++) {
        struct stream *stream = &group->peers[group->remotes[i]].stream;
        uint8_t *theirs = group->scratch + (size_t)i * stride;
        stream_send(stream, mine, bytes, 0, 0, 0);
        stream_receive(stream, theirs, bytes, 0, 0);
        ret[group->remotes[i]] = theirs;
    }
    if (rc == 0 && group->n_remotes > 0) {
        rc = streams_finish(group, err);
    }
    if (rc == 0 && group->n_locals > 1) {
        rc = shm_await(group, err);
        for (int i = 0; i < group->n_locals; i++) {
            ret[group->locals[i]] = shm_slot(group, i);
        }
        group->slots++;
    }
    ret[group->rank] = mine;
    return rc;
}
