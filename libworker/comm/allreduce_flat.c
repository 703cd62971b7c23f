/* allreduce_flat.c - small ranges: everybody gets everybody's and sums by itself */
#include "libworker/comm/mesh.h"
#include "libworker/kernel/kernel.h"

int allreduce_flat(struct mesh *mesh, size_t begin, size_t count, struct ms_err *err)
{
    const void *all[MS_WORKERS_MAX];
    const float *srcs[MS_WORKERS_MAX];
    float *mine = mesh_exchange(mesh) + begin;
    int rc = gather_small(mesh, mine, count * sizeof(*mine), all, err);
    if (rc < 0) {
        return rc;
    }
    for (int r = 0; r < mesh->world; r++) {
        srcs[r] = all[r];
    }
    kernel_sum_tree(mine, srcs, mesh->world, count);
    return 0;
}
