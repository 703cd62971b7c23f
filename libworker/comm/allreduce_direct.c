/* allreduce_direct.c - large ranges across hosts: direct reduce-scatter and all-gather
 *
 * Rank r owns slice r. Everybody sends its part of slice r straight to r; r sums what has come from
 * all, chunk by chunk, writes the sum into the buffers of the ranks that share its memory and sends
 * it to the others, straight into their buffers. Each rank moves 2 (n - 1) / n of the range, as a
 * ring does, in two steps of latency instead of 2 (n - 1). A sum for a chunk can only come back
 * after all of that chunk has left, so it may land where the chunk was. */
#include "libworker/comm/group.h"
#include "libworker/kernel/kernel.h"

enum {
    CHUNK_FLOATS = 64 << 10, /* 256 KiB: summed while it is in the cache, sent while more comes */
    PHASE_PART = 0,
    PHASE_SUM = 1,
};

struct direct {
    const struct sum *sum;
    struct slice own; /* of the block in hand, as all slices here */
    size_t stride;    /* floats between two ranks' parts in scratch */
    size_t summed;
    float *buffers[MS_WORKERS_MAX]; /* of the ranks on this host, at the own slice */
    const float *srcs[MS_WORKERS_MAX];
};

static void post(struct group *group, struct direct *direct, size_t block)
{
    float *exchange = group_exchange(group);
    for (int i = 0; i < group->n_locals; i++) {
        direct->buffers[i] = group->exchanges[i] + direct->own.begin;
        direct->srcs[group->locals[i]] = direct->buffers[i];
    }
    for (int i = 0; i < group->n_remotes; i++) {
        int rank = group->remotes[i];
        struct stream *stream = &group->peers[rank].stream;
        struct slice theirs = sum_slice(direct->sum, group, block, rank);
        size_t bytes = theirs.count * sizeof(float);
        float *part = (float *)(void *)group->scratch + (size_t)i * direct->stride;
        direct->srcs[rank] = part;
        if (direct->sum->adds && direct->own.count > 0) {
            stream_receive(stream, part, direct->own.count * sizeof(float), PHASE_PART,
                           direct->own.begin);
        }
        if (direct->sum->adds && theirs.count > 0) {
            stream_send(stream, exchange + theirs.begin, bytes, PHASE_PART, theirs.begin, 0);
        }
        if (direct->sum->spreads && theirs.count > 0) {
            stream_receive(stream, exchange + theirs.begin, bytes, PHASE_SUM, theirs.begin);
        }
    }
}

/* The sum of count floats more of the own slice, for all of this host who want it. */
static void add_up(const struct group *group, const struct direct *direct, size_t count)
{
    float *dsts[MS_WORKERS_MAX];
    const float *srcs[MS_WORKERS_MAX];
    int n_dsts = 0;
    for (int i = 0; i < group->n_locals; i++) {
        if (i == group->self || direct->sum->spreads) {
            dsts[n_dsts++] = direct->buffers[i] + direct->summed;
        }
    }
    for (int r = 0; r < group->n_ranks; r++) {
        srcs[r] = direct->srcs[r] + direct->summed;
    }
    kernel_sum_tree_to(dsts, n_dsts, srcs, group->n_ranks, count);
}

/* Sums what has come from all and sends it off. Returns whether there was any. */
static int sum_ready(struct group *group, struct direct *direct)
{
    const struct slice *own = &direct->own;
    size_t ready = own->count;
    for (int i = 0; direct->sum->adds && i < group->n_remotes; i++) {
        size_t bytes = stream_received(&group->peers[group->remotes[i]].stream, PHASE_PART,
                                       own->begin, own->count * sizeof(float));
        ready = bytes / sizeof(float) < ready ? bytes / sizeof(float) : ready;
    }
    size_t count = ready - direct->summed;
    if (count == 0 || (count < CHUNK_FLOATS && ready < own->count)) {
        return 0;
    }
    float *sum = direct->buffers[group->self] + direct->summed;
    if (direct->sum->adds) {
        add_up(group, direct, count);
    } else {
        copy_to_locals(group, sum, own->begin + direct->summed, count);
    }
    for (int i = 0; direct->sum->spreads && i < group->n_remotes; i++) {
        stream_send(&group->peers[group->remotes[i]].stream, sum, count * sizeof(float), PHASE_SUM,
                    own->begin, direct->summed * sizeof(float));
    }
    direct->summed = ready;
    return 1;
}

static int reduce_block(struct group *group, const struct sum *sum, size_t block,
                        struct ms_err *err)
{
    struct direct direct = {.sum = sum, .own = sum_slice(sum, group, block, group->rank)};
    direct.stride = (direct.own.count + 15) / 16 * 16;
    int rc = group_scratch(group, (size_t)group->n_remotes * direct.stride * sizeof(float), err);
    if (rc < 0) {
        return rc;
    }
    post(group, &direct, block);
    rc = streams_progress(group, err); /* let data flow while the ranks of this host come */
    if (rc >= 0 && group->n_locals > 1) {
        shm_arrive(group);
        rc = shm_await(group, err);
    }
    while (rc >= 0 && (direct.summed < direct.own.count || !streams_are_done(group))) {
        rc = streams_progress(group, err);
        if (rc >= 0 && !sum_ready(group, &direct) && rc == 0) {
            rc = streams_wait(group, err);
        }
    }
    if (rc >= 0 && group->n_locals > 1) {
        shm_arrive(group);
        rc = shm_await(group, err);
    }
    return rc < 0 ? rc : 0;
}

int allreduce_direct(struct group *group, const struct sum *sum, struct ms_err *err)
{
    int rc = 0;
    for (size_t block = 0; rc == 0 && block < sum_blocks(sum); block++) {
        rc = reduce_block(group, sum, block, err);
    }
    return rc;
}
