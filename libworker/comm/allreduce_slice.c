/* allreduce_slice.c - large ranges on one host: rank r sums slice r of all ranks into all buffers
 *
 * One pass over memory: each float is read once and written once, by the rank whose slice it is in;
 * of the other ranks' memory a rank touches its slice only. */
#include "libworker/comm/group.h"
#include "libworker/kernel/kernel.h"

enum { CHUNK_FLOATS = 512 }; /* of eight ranks: 16 KiB, half of a first-level cache */

/* The sum goes into the own buffer and from there, still in the cache, into the others': at two
 * ranks and 1 MiB a sixth faster than kernel_sum_tree_to, which keeps it aside first. */
static void add_up(const struct group *group, const struct sum *sum, struct slice slice)
{
    const float *srcs[MS_WORKERS_MAX];
    size_t count = CHUNK_FLOATS;
    for (size_t at = slice.begin; at < slice.begin + slice.count; at += count) {
        size_t left = slice.begin + slice.count - at;
        count = left < CHUNK_FLOATS ? left : CHUNK_FLOATS;
        for (int i = 0; i < group->n_locals; i++) {
            srcs[i] = group->exchanges[i] + at;
        }
        float *own = group->exchanges[group->self] + at;
        kernel_sum_tree(own, srcs, group->n_locals, count);
        if (sum->spreads) {
            copy_to_locals(group, own, at, count);
        }
    }
}

int allreduce_slice(struct group *group, const struct sum *sum, struct ms_err *err)
{
    struct slice slice = slice_of(sum->begin, sum->count, group->rank, group->n_ranks);
    shm_arrive(group);
    int rc = shm_await(group, err);
    if (rc < 0) {
        return rc;
    }
    if (sum->adds) {
        add_up(group, sum, slice);
    } else {
        copy_to_locals(group, group_floats(group) + slice.begin, slice.begin, slice.count);
    }
    shm_arrive(group);
    return shm_await(group, err);
}
