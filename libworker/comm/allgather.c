/* allgather.c - bytes of each rank, in rank order, to all
 *
 * What fits a slot is one small exchange. More of it goes to ranks elsewhere in one stream,
 * straight into their memory, and through the slots to those of this host, a slot at a time. */
#include "libworker/comm/group.h"

#include <string.h>

static int gather_on_host(struct group *group, const uint8_t *mine, size_t bytes, uint8_t *all,
                          struct ms_err *err)
{
    int rc = 0;
    for (size_t at = 0; rc >= 0 && at < bytes; at += SHM_SLOT_BYTES) {
        size_t size = bytes - at < SHM_SLOT_BYTES ? bytes - at : SHM_SLOT_BYTES;
        memcpy(shm_slot(group, group->self), mine + at, size);
        shm_arrive(group);
        rc = streams_progress(group, err);
        rc = rc < 0 ? rc : shm_await(group, err);
        for (int i = 0; rc == 0 && i < group->n_locals; i++) {
            if (i != group->self) {
                memcpy(all + (size_t)group->locals[i] * bytes + at, shm_slot(group, i), size);
            }
        }
        group->slots++;
    }
    return rc;
}

static int gather_large(struct group *group, const uint8_t *mine, size_t bytes, uint8_t *all,
                        struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < group->n_remotes; i++) {
        struct stream *stream = &group->peers[group->remotes[i]].stream;
        stream_send(stream, mine, bytes, 0, 0, 0);
        stream_receive(stream, all + (size_t)group->remotes[i] * bytes, bytes, 0, 0);
    }
    if (group->n_locals > 1) {
        rc = gather_on_host(group, mine, bytes, all, err);
    }
    rc = rc == 0 ? streams_finish(group, err) : rc;
    if (rc == 0) {
        memmove(all + (size_t)group->rank * bytes, mine, bytes);
    }
    return rc;
}

static int gather_in_one(struct group *group, const void *mine, size_t bytes, uint8_t *all,
                         struct ms_err *err)
{
    const void *parts[MS_WORKERS_MAX];
    int rc = gather_small(group, mine, bytes, parts, err);
    for (int r = 0; rc == 0 && r < group->n_ranks; r++) {
        memmove(all + (size_t)r * bytes, parts[r], bytes); /* mine may lie within all */
    }
    return rc;
}

int group_all_gather(struct group *group, const void *mine, size_t bytes, void *all,
                     struct ms_err *err)
{
    struct ms_err own;
    err = err != NULL ? err : &own;
    int rc = group_enter(group, MESH_ALL_GATHER, 0, bytes, err);
    if (rc == 0 && bytes > 0) {
        rc = bytes <= MESH_SMALL_MAX ? gather_in_one(group, mine, bytes, all, err)
                                     : gather_large(group, mine, bytes, all, err);
    }
    return group_leave(group, rc, err);
}
