/* allgather.c - bytes of each rank, in rank order, to all */
#include "libworker/comm/group.h"

#include <string.h>

int group_all_gather(struct group *group, const void *mine, size_t bytes, void *all,
                     struct ms_err *err)
{
    const void *parts[MS_WORKERS_MAX];
    struct ms_err own;
    err = err != NULL ? err : &own;
    if (bytes > MESH_SMALL_MAX) {
        return ms_fail(err, MS_E_INVALID, "all_gather of %zu bytes a rank: at most %d", bytes,
                       MESH_SMALL_MAX);
    }
    int rc = group_enter(group, MESH_ALL_GATHER, 0, bytes, err);
    parts[group->rank] = mine;
    if (rc == 0 && group->n_ranks > 1 && bytes > 0) {
        rc = gather_small(group, mine, bytes, parts, err);
    }
    for (int r = 0; rc == 0 && bytes > 0 && r < group->n_ranks; r++) {
        memmove((uint8_t *)all + (size_t)r * bytes, parts[r], bytes); /* mine may lie within all */
    }
    return group_leave(group, rc, err);
}
