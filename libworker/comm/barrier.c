/* barrier.c - nobody goes on before everybody has come */
#include "libworker/comm/group.h"

#include <string.h>

static void nothing(void *a, const void *b, size_t count)
{
    (void)a;
    (void)b;
    (void)count;
}

int group_barrier(struct group *group, struct ms_err *err)
{
    const void *all[MS_WORKERS_MAX];
    struct ms_err own;
    err = err != NULL ? err : &own;
    int rc = group_enter(group, MESH_BARRIER, 0, 0, err);
    uint64_t here = group->op.sequence;
    if (rc < 0 || group->n_ranks == 1) {
        return group_leave(group, rc, err);
    }
    if (group->n_remotes == 0) {
        shm_arrive(group);
        rc = shm_await(group, err);
    } else if (allreduce_tree_is_better(group)) {
        rc = allreduce_tree(group, &here, 1, sizeof(here), nothing, err);
    } else {
        rc = gather_small(group, &here, sizeof(here), all, err);
    }
    return group_leave(group, rc, err);
}
