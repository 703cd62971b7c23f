/* allreduce_tree.c - small ranges in large worlds: recursive doubling on the tree's own brackets
 *
 * T(lo, hi) = T(lo, mid) op T(mid, hi). From the leaves up, the ranks of the two halves of a
 * bracket swap their halves' values in pairs. The left half may have one rank more: it gets the
 * value from the last rank of the right half. log2(world) messages instead of world - 1, same bits.
 */
#include "libworker/comm/group.h"
#include "libworker/kernel/kernel.h"

#include <string.h>

enum {
    ALL_TO_ALL_MAX = 8, /* up to here one message to each is faster than three in a row */
    LEVELS_MAX = 11,    /* log2(MS_WORKERS_MAX) and one */
};

int allreduce_tree_is_better(const struct group *group)
{
    return group->n_ranks > ALL_TO_ALL_MAX;
}

struct bracket {
    int lo, mid, hi;
};

/* The brackets around a rank, outermost first. */
static int brackets_of(int rank, int world, struct bracket *ret)
{
    int n = 0;
    int lo = 0;
    int hi = world;
    while (hi - lo > 1) {
        int mid = lo + (hi - lo + 1) / 2;
        ret[n++] = (struct bracket){.lo = lo, .mid = mid, .hi = hi};
        lo = rank < mid ? lo : mid;
        hi = rank < mid ? mid : hi;
    }
    return n;
}

static int swap_level(struct group *group, const struct bracket *b, void *values, uint8_t *theirs,
                      size_t bytes, uint8_t level, struct ms_err *err)
{
    int right = b->hi - b->mid;
    int is_left = group->rank < b->mid;
    int i = group->rank - (is_left ? b->lo : b->mid);
    int from = is_left ? b->mid + (i < right ? i : right - 1) : b->lo + i;
    if (!is_left || i < right) {
        stream_send(&group->peers[from].stream, values, bytes, level, 0, 0);
    }
    if (!is_left && i == right - 1 && b->mid - b->lo > right) {
        stream_send(&group->peers[b->mid - 1].stream, values, bytes, level, 0, 0);
    }
    stream_receive(&group->peers[from].stream, theirs, bytes, level, 0);
    return streams_finish(group, err);
}

int allreduce_tree(struct group *group, void *values, size_t count, size_t size,
                   tree_combine_fn *combine, struct ms_err *err)
{
    struct bracket brackets[LEVELS_MAX];
    size_t bytes = count * size;
    int rc = group_scratch(group, bytes, err);
    for (int l = brackets_of(group->rank, group->n_ranks, brackets) - 1; rc == 0 && l >= 0; l--) {
        rc = swap_level(group, &brackets[l], values, group->scratch, bytes, (uint8_t)l, err);
        if (rc == 0 && group->rank < brackets[l].mid) {
            combine(values, group->scratch, count);
        } else if (rc == 0) { /* left op right, in this order on both sides */
            combine(group->scratch, values, count);
            memcpy(values, group->scratch, bytes);
        }
    }
    return rc;
}

static void add_floats(void *a, const void *b, size_t count)
{
    const float *srcs[2] = {a, b};
    kernel_sum_tree(a, srcs, 2, count);
}

int allreduce_tree_floats(struct group *group, const struct sum *sum, struct ms_err *err)
{
    return allreduce_tree(group, group_floats(group) + sum->begin, sum->count, sizeof(float),
                          add_floats, err);
}
