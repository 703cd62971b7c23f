/* allreduce_slice.c - large ranges on one host: rank r sums slice r of all ranks into all buffers
 *
 * One pass over memory: each float is read once and written once, by the rank whose slice it is in;
 * of the other ranks' memory a rank touches its slice only. */
#include "libworker/comm/mesh.h"
#include "libworker/kernel/kernel.h"

#include <string.h>

enum { CHUNK_FLOATS = 512 }; /* of eight ranks: 16 KiB, half of a first-level cache */

/* The sum goes into the own buffer and from there, still in the cache, into the others': at two
 * ranks and 1 MiB a sixth faster than kernel_sum_tree_to, which keeps it aside first. */
static void sum_slice(const struct mesh *mesh, struct slice slice)
{
    const float *srcs[MS_WORKERS_MAX];
    size_t count = CHUNK_FLOATS;
    for (size_t at = slice.begin; at < slice.begin + slice.count; at += count) {
        size_t left = slice.begin + slice.count - at;
        count = left < CHUNK_FLOATS ? left : CHUNK_FLOATS;
        for (int i = 0; i < mesh->n_locals; i++) {
            srcs[i] = mesh->exchanges[i] + at;
        }
        float *own = mesh->exchanges[mesh->self] + at;
        kernel_sum_tree(own, srcs, mesh->n_locals, count);
        for (int i = 0; i < mesh->n_locals; i++) {
            if (i != mesh->self) {
                memcpy(mesh->exchanges[i] + at, own, count * sizeof(*own));
            }
        }
    }
}

int allreduce_slice(struct mesh *mesh, size_t begin, size_t count, struct ms_err *err)
{
    struct slice slice = slice_of(begin, count, mesh->rank, mesh->world);
    shm_arrive(mesh);
    int rc = shm_await(mesh, err);
    if (rc < 0) {
        return rc;
    }
    sum_slice(mesh, slice);
    shm_arrive(mesh);
    return shm_await(mesh, err);
}
