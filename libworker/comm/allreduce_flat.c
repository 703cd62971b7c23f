/* allreduce_flat.c - small ranges: everybody gets everybody's and sums by itself */
#include "libworker/comm/group.h"
#include "libworker/kernel/kernel.h"

int allreduce_flat(struct group *group, const struct sum *sum, struct ms_err *err)
{
    const void *all[MS_WORKERS_MAX];
    const float *srcs[MS_WORKERS_MAX];
    float *mine = group_floats(group) + sum->begin;
    int rc = gather_small(group, mine, sum->count * sizeof(*mine), all, err);
    if (rc < 0) {
        return rc;
    }
    for (int r = 0; r < group->n_ranks; r++) {
        srcs[r] = all[r];
    }
    kernel_sum_tree(mine, srcs, group->n_ranks, sum->count);
    return 0;
}
