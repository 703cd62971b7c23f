/* allreduce_slice.c - large ranges on one host: rank r sums slice r of all ranks into all buffers
 *
 * One pass over memory: each float is read once and written once, by the rank whose slice it is in;
 * of the other ranks' memory a rank touches its slice only. */
#include "libworker/comm/mesh.h"
#include "libworker/kernel/kernel.h"

int allreduce_slice(struct mesh *mesh, size_t begin, size_t count, struct ms_err *err)
{
    struct slice slice = slice_of(begin, count, mesh->rank, mesh->world);
    float *buffers[MS_WORKERS_MAX];
    const float *srcs[MS_WORKERS_MAX];
    for (int i = 0; i < mesh->n_locals; i++) {
        buffers[i] = mesh->exchanges[i] + slice.begin;
        srcs[i] = buffers[i];
    }
    shm_arrive(mesh);
    int rc = shm_await(mesh, err);
    if (rc < 0) {
        return rc;
    }
    kernel_sum_tree_to(buffers, mesh->n_locals, srcs, mesh->n_locals, slice.count);
    shm_arrive(mesh);
    return shm_await(mesh, err);
}
