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
    BLOCK_FLOATS = 4 << 20,  /* 16 MiB at a time: bounds the memory for what remote ranks send */
    CHUNK_FLOATS = 64 << 10, /* 256 KiB: summed while it is in the cache, sent while more comes */
    PHASE_PART = 0,
    PHASE_SUM = 1,
};

struct direct {
    struct slice own;
    size_t stride; /* floats between two ranks' parts in scratch */
    size_t summed;
    float *buffers[MS_WORKERS_MAX]; /* of the ranks on this host, at the own slice */
    const float *srcs[MS_WORKERS_MAX];
};

static void post(struct group *group, struct direct *direct, size_t begin, size_t count)
{
    float *exchange = group_exchange(group);
    for (int i = 0; i < group->n_locals; i++) {
        direct->buffers[i] = group->exchanges[i] + direct->own.begin;
        direct->srcs[group->locals[i]] = direct->buffers[i];
    }
    for (int i = 0; i < group->n_remotes; i++) {
        int rank = group->remotes[i];
        struct stream *stream = &group->peers[rank].stream;
        struct slice theirs = slice_of(begin, count, rank, group->n_ranks);
        float *part = (float *)(void *)group->scratch + (size_t)i * direct->stride;
        direct->srcs[rank] = part;
        if (direct->own.count > 0) {
            stream_receive(stream, part, direct->own.count * sizeof(float), PHASE_PART,
                           direct->own.begin);
        }
        if (theirs.count > 0) {
            size_t bytes = theirs.count * sizeof(float);
            stream_send(stream, exchange + theirs.begin, bytes, PHASE_PART, theirs.begin, 0);
            stream_receive(stream, exchange + theirs.begin, bytes, PHASE_SUM, theirs.begin);
        }
    }
}

/* Sums what has come from all and sends it off. Returns whether there was any. */
static int sum_ready(struct group *group, struct direct *direct)
{
    const struct slice *own = &direct->own;
    size_t ready = own->count;
    for (int i = 0; i < group->n_remotes; i++) {
        size_t bytes = stream_received(&group->peers[group->remotes[i]].stream, PHASE_PART,
                                       own->begin, own->count * sizeof(float));
        ready = bytes / sizeof(float) < ready ? bytes / sizeof(float) : ready;
    }
    size_t count = ready - direct->summed;
    if (count == 0 || (count < CHUNK_FLOATS && ready < own->count)) {
        return 0;
    }
    float *dsts[MS_WORKERS_MAX];
    const float *srcs[MS_WORKERS_MAX];
    for (int i = 0; i < group->n_locals; i++) {
        dsts[i] = direct->buffers[i] + direct->summed;
    }
    for (int r = 0; r < group->n_ranks; r++) {
        srcs[r] = direct->srcs[r] + direct->summed;
    }
    kernel_sum_tree_to(dsts, group->n_locals, srcs, group->n_ranks, count);
    for (int i = 0; i < group->n_remotes; i++) {
        stream_send(&group->peers[group->remotes[i]].stream, dsts[group->self],
                    count * sizeof(float), PHASE_SUM, own->begin, direct->summed * sizeof(float));
    }
    direct->summed = ready;
    return 1;
}

static int reduce_block(struct group *group, size_t begin, size_t count, struct ms_err *err)
{
    struct direct direct = {.own = slice_of(begin, count, group->rank, group->n_ranks)};
    direct.stride = (direct.own.count + 15) / 16 * 16;
    int rc = group_scratch(group, (size_t)group->n_remotes * direct.stride * sizeof(float), err);
    if (rc < 0) {
        return rc;
    }
    post(group, &direct, begin, count);
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

int allreduce_direct(struct group *group, size_t begin, size_t count, struct ms_err *err)
{
    for (size_t done = 0; done < count; done += BLOCK_FLOATS) {
        size_t part = count - done < BLOCK_FLOATS ? count - done : BLOCK_FLOATS;
        int rc = reduce_block(group, begin + done, part, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
