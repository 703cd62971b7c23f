/* allreduce_host.c - large ranges across hosts with several ranks: inside the host first
 *
 * Rank r owns slice r. A host adds up for itself what lies in its ranks' memory: of every slice
 * that another host owns, the sums of its subtrees (hosts.c), which go to the owner once. The owner
 * ends the same tree from them and from its own host's ranks, and sends the sum to each other host
 * once, where it goes into everybody's buffer.
 *
 * The ranks of a host share this: slice r is cut into as many pieces as a host has ranks, and the
 * one in seat i carries piece i. So every pair of ranks on two hosts has one piece of each other's
 * slice to trade, and all connections are used alike. Partial sums are made in place, a chunk
 * before it is sent; a sum can only come back after its partial sums have left, into the same
 * place. Nobody else of the host touches that piece between the sync at the begin and the one
 * that ends a block. */
#include "libworker/comm/group.h"
#include "libworker/kernel/kernel.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_FLOATS = 64 << 10, /* 256 KiB: summed while it is in the cache, sent while more comes */
    STRIP_FLOATS = 512,      /* of each subtree at a time: stays in the first-level cache */
    LEVELS_MAX = 11,         /* log2(MS_WORKERS_MAX) and one */
    PHASE_HERE = 0,          /* "I have come": else who waits for another rank of its host hangs */
    PHASE_PART = 1,
    PHASE_SUM = 2,
};

/* What a rank of another host and this one do for each other in a block. */
struct trade {
    struct peer *peer;
    struct slice out; /* of the peer's slice: partial sums go there, the sum comes back */
    struct slice in;  /* of the own slice: partial sums come, the sum goes back */
    float *partials;  /* of `in`: for each chunk, each subtree of the peer's host in turn */
    size_t queued;    /* floats of `out` of which the partial sums of all subtrees are on the way */
    int n_queued;     /* subtrees, of the chunk behind those */
    size_t landed;    /* floats of `out` whose sum lies in all buffers of this host */
    size_t ready;     /* floats of `in` of which all partial sums are there */
    size_t told;      /* floats of `in` whose sum is on the way */
};

/* A part of the own slice that has one carrier on each other host. */
struct stretch {
    size_t begin, count, summed;
};

struct by_host {
    struct group *group;
    const struct sum *sum;
    struct slice own;     /* of the block in hand, as all slices here */
    struct trade *trades; /* n_remotes */
    struct stretch *stretches;
    int n_stretches;         /* at most n_remotes */
    struct trade **carriers; /* world: of the stretch in hand, by the lowest rank of its host */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Floats of the chunk in which `at` lies, from there on. Chunks are cut at whole multiples of the
 * buffer, so that the pieces of different hosts are cut at the same places. */
static size_t chunk_left(const struct slice *piece, size_t at)
{
    return least(CHUNK_FLOATS - at % CHUNK_FLOATS, piece->begin + piece->count - at);
}

/* The sum of a subtree of this host. dst may be the place of one of its parts. */
static void sum_subtree(const struct group *group, const struct subtree *subtree, size_t at,
                        size_t count, float *dst)
{
    const float *srcs[MS_WORKERS_MAX];
    for (int r = subtree->lo; r < subtree->hi; r++) {
        srcs[r - subtree->lo] = group->exchanges[group->peers[r].local] + at;
    }
    kernel_sum_tree(dst, srcs, subtree->hi - subtree->lo, count);
}

/* ---- out: the sums of this host's subtrees
 * -------------------------------------------------------- */

static const struct subtree *own_subtree(const struct group *group, int nth)
{
    int lo = 0;
    while (group->subtrees[lo].host != group->peers[group->rank].host ||
           group->subtrees[lo].nth != nth) {
        lo = group->subtrees[lo].hi;
    }
    return &group->subtrees[lo];
}

/* The next ones, no more than keep the connection busy: later ones are then made while it is. */
static int send_partials(const struct group *group, struct trade *trade)
{
    struct stream *stream = &trade->peer->stream;
    const struct slice *out = &trade->out;
    int n_subtrees = group->peers[group->rank].subtrees;
    int moved = 0;
    while (trade->queued < out->count && stream->n_tx < STREAM_SPANS &&
           stream_unsent(stream) < 2 * CHUNK_FLOATS * sizeof(float)) {
        size_t at = out->begin + trade->queued;
        size_t count = chunk_left(out, at);
        size_t before = trade->queued * (size_t)n_subtrees + count * (size_t)trade->n_queued;
        const struct subtree *subtree = own_subtree(group, trade->n_queued);
        float *sum = group->exchanges[group->peers[subtree->lo].local] + at;
        sum_subtree(group, subtree, at, count, sum);
        stream_send(stream, sum, count * sizeof(float), PHASE_PART, out->begin,
                    before * sizeof(float));
        if (++trade->n_queued == n_subtrees) {
            trade->n_queued = 0;
            trade->queued += count;
        }
        moved = 1;
    }
    return moved;
}

/* A sum that has come back into the own buffer, into those of the others of this host. */
static int land(struct group *group, struct trade *trade)
{
    const struct slice *out = &trade->out;
    size_t came =
        stream_received(&trade->peer->stream, PHASE_SUM, out->begin, out->count * sizeof(float)) /
        sizeof(float);
    size_t count = came - trade->landed;
    if (count == 0 || (count < CHUNK_FLOATS && came < out->count)) {
        return 0;
    }
    size_t at = out->begin + trade->landed;
    copy_to_locals(group, group_floats(group) + at, at, count);
    trade->landed = came;
    return 1;
}

/* ---- in: the sum of the own slice
 * ----------------------------------------------------------------- */

static void count_ready(struct trade *trade)
{
    const struct slice *in = &trade->in;
    size_t n = (size_t)trade->peer->subtrees;
    size_t came = stream_received(&trade->peer->stream, PHASE_PART, in->begin,
                                  n * in->count * sizeof(float)) /
                  sizeof(float);
    while (trade->ready < in->count) {
        size_t chunk = chunk_left(in, in->begin + trade->ready);
        if (came < n * (trade->ready + chunk)) {
            return;
        }
        trade->ready += chunk;
    }
}

static int covers(const struct slice *piece, size_t at)
{
    return at >= piece->begin && at - piece->begin < piece->count;
}

/* How much of a stretch is ready; notes who carries it for each host. */
static size_t find_carriers(struct by_host *by_host, const struct stretch *stretch)
{
    size_t ready = stretch->begin + stretch->count;
    for (int i = 0; i < by_host->group->n_remotes; i++) {
        struct trade *trade = &by_host->trades[i];
        if (covers(&trade->in, stretch->begin)) {
            by_host->carriers[trade->peer->host] = trade;
            ready = least(ready, trade->in.begin + trade->ready);
        }
    }
    return ready > stretch->begin ? ready - stretch->begin : 0;
}

/* Where the partial sum of a remote subtree lies. */
static const float *partial_at(const struct trade *trade, const struct subtree *subtree, size_t at)
{
    const struct slice *in = &trade->in;
    size_t head = at - at % CHUNK_FLOATS;
    size_t chunk = head > in->begin ? head : in->begin;
    return trade->partials + (chunk - in->begin) * (size_t)trade->peer->subtrees +
           (size_t)subtree->nth * chunk_left(in, chunk) + (at - chunk);
}

/* T(lo, hi) of floats [at, at + count): in dst, or where it lies already. rooms: one a level. */
static const float *sum_bracket(const struct by_host *by_host, int lo, int hi, size_t at,
                                size_t count, float *dst, float (*rooms)[STRIP_FLOATS])
{
    const struct group *group = by_host->group;
    const struct subtree *subtree = &group->subtrees[lo];
    if (subtree->hi == hi && subtree->host != group->peers[group->rank].host) {
        return partial_at(by_host->carriers[subtree->host], subtree, at);
    }
    if (subtree->hi == hi) {
        sum_subtree(group, subtree, at, count, dst);
        return dst;
    }
    int mid = lo + (hi - lo + 1) / 2;
    const float *halves[2];
    halves[0] = sum_bracket(by_host, lo, mid, at, count, dst, rooms);
    halves[1] = sum_bracket(by_host, mid, hi, at, count, rooms[0], rooms + 1);
    kernel_sum_tree(dst, halves, 2, count);
    return dst;
}

/* The sum of what is ready of a stretch. */
static void add_up(struct by_host *by_host, struct stretch *stretch, size_t ready)
{
    struct group *group = by_host->group;
    float sum[STRIP_FLOATS];
    float rooms[LEVELS_MAX][STRIP_FLOATS];
    while (stretch->summed < ready) {
        size_t at = stretch->begin + stretch->summed;
        size_t chunk = CHUNK_FLOATS - at % CHUNK_FLOATS; /* partial sums lie together in one */
        size_t count = least(least(STRIP_FLOATS, chunk), ready - stretch->summed);
        const float *strip = sum_bracket(by_host, 0, group->n_ranks, at, count, sum, rooms);
        memcpy(group_floats(group) + at, strip, count * sizeof(float));
        if (by_host->sum->spreads) {
            copy_to_locals(group, strip, at, count);
        }
        stretch->summed += count;
    }
}

/* What is ready of a stretch goes where it is wanted on this host. */
static int sum_stretch(struct by_host *by_host, struct stretch *stretch)
{
    struct group *group = by_host->group;
    size_t ready = find_carriers(by_host, stretch);
    if (ready <= stretch->summed) {
        return 0;
    }
    if (by_host->sum->adds) {
        add_up(by_host, stretch, ready);
    } else {
        copy_to_locals(group, group_floats(group) + stretch->begin, stretch->begin, ready);
        stretch->summed = ready;
    }
    return 1;
}

/* Floats of a piece of the own slice that are summed, from its begin on without a gap. */
static size_t summed_of(const struct by_host *by_host, const struct slice *piece)
{
    size_t summed = 0;
    for (int i = 0; i < by_host->n_stretches; i++) {
        const struct stretch *stretch = &by_host->stretches[i];
        if (stretch->begin == piece->begin + summed) {
            summed += stretch->summed;
        }
    }
    return least(summed, piece->count);
}

/* The sum of the own slice's piece to the rank that carries it. Behind the partial sums, as the
 * frames of a connection have one order. */
static int tell(const struct by_host *by_host, struct trade *trade)
{
    struct stream *stream = &trade->peer->stream;
    size_t summed = summed_of(by_host, &trade->in);
    if (summed <= trade->told || trade->queued < trade->out.count || stream->n_tx == STREAM_SPANS) {
        return 0;
    }
    stream_send(stream, group_floats(by_host->group) + trade->in.begin + trade->told,
                (summed - trade->told) * sizeof(float), PHASE_SUM, trade->in.begin,
                trade->told * sizeof(float));
    trade->told = summed;
    return 1;
}

/* ---- a block
 * -------------------------------------------------------------------------------------- */

/* The part of a rank's slice that the rank in a seat of another host carries. */
static struct slice piece_of(const struct slice *slice, const struct peer *carrier)
{
    return slice_of(slice->begin, slice->count, carrier->seat, carrier->seats);
}

/* Cuts the own slice wherever the piece of some host ends. */
static void find_stretches(struct by_host *by_host)
{
    size_t end = by_host->own.begin + by_host->own.count;
    by_host->n_stretches = 0;
    for (size_t at = by_host->own.begin; at < end;) {
        size_t next = end;
        for (int i = 0; i < by_host->group->n_remotes; i++) {
            const struct slice *in = &by_host->trades[i].in;
            next = covers(in, at) ? least(next, in->begin + in->count) : next;
        }
        by_host->stretches[by_host->n_stretches++] =
            (struct stretch){.begin = at, .count = next - at};
        at = next;
    }
}

/* What a block does not ask for counts as done. */
static void skip_half(const struct sum *sum, struct trade *trade)
{
    if (!sum->adds) {
        trade->queued = trade->out.count;
        trade->ready = trade->in.count;
    }
    if (!sum->spreads) {
        trade->landed = trade->out.count;
        trade->told = trade->in.count;
    }
}

static int begin_block(struct by_host *by_host, size_t block, struct ms_err *err)
{
    const struct sum *sum = by_host->sum;
    struct group *group = by_host->group;
    size_t floats = 0;
    by_host->own = sum_slice(sum, group, block, group->rank);
    for (int i = 0; i < group->n_remotes; i++) {
        struct peer *peer = &group->peers[group->remotes[i]];
        struct slice theirs = sum_slice(sum, group, block, peer->rank);
        by_host->trades[i] = (struct trade){
            .peer = peer,
            .out = piece_of(&theirs, &group->peers[group->rank]),
            .in = piece_of(&by_host->own, peer),
        };
        skip_half(sum, &by_host->trades[i]);
        floats += by_host->trades[i].in.count * (size_t)peer->subtrees;
    }
    find_stretches(by_host);
    int rc = group_scratch(group, floats * sizeof(float), err);
    float *partials = (float *)(void *)group->scratch;
    for (int i = 0; rc == 0 && i < group->n_remotes; i++) {
        struct trade *trade = &by_host->trades[i];
        struct stream *stream = &trade->peer->stream;
        trade->partials = partials;
        if (trade->ready < trade->in.count) {
            size_t n = trade->in.count * (size_t)trade->peer->subtrees;
            stream_receive(stream, partials, n * sizeof(float), PHASE_PART, trade->in.begin);
            partials += n;
        }
        if (trade->landed < trade->out.count) {
            stream_receive(stream, group_floats(group) + trade->out.begin,
                           trade->out.count * sizeof(float), PHASE_SUM, trade->out.begin);
        }
    }
    return rc;
}

/* All that can be done without waiting: 1 if there was any. */
static int work(struct by_host *by_host)
{
    int moved = 0;
    for (int i = 0; i < by_host->group->n_remotes; i++) {
        moved |= send_partials(by_host->group, &by_host->trades[i]);
        moved |= land(by_host->group, &by_host->trades[i]);
        count_ready(&by_host->trades[i]);
    }
    for (int i = 0; i < by_host->n_stretches; i++) {
        moved |= sum_stretch(by_host, &by_host->stretches[i]);
    }
    for (int i = 0; i < by_host->group->n_remotes; i++) {
        moved |= tell(by_host, &by_host->trades[i]);
    }
    return moved;
}

static int is_block_done(const struct by_host *by_host)
{
    for (int i = 0; i < by_host->group->n_remotes; i++) {
        const struct trade *trade = &by_host->trades[i];
        if (trade->queued < trade->out.count || trade->landed < trade->out.count ||
            trade->told < trade->in.count) {
            return 0;
        }
    }
    for (int i = 0; i < by_host->n_stretches; i++) {
        if (by_host->stretches[i].summed < by_host->stretches[i].count) {
            return 0;
        }
    }
    return streams_are_done(by_host->group);
}

static int reduce_block(struct by_host *by_host, size_t block, struct ms_err *err)
{
    int rc = begin_block(by_host, block, err);
    while (rc >= 0 && !is_block_done(by_host)) {
        rc = streams_progress(by_host->group, err);
        if (rc >= 0 && !work(by_host) && rc == 0 && !is_block_done(by_host)) {
            rc = streams_wait(by_host->group, err);
        }
    }
    if (rc >= 0 && by_host->group->n_locals > 1) { /* who hangs is named by his own host first */
        shm_arrive(by_host->group);
        rc = shm_await(by_host->group, err);
    }
    return rc < 0 ? rc : 0;
}

/* Tells all that this rank has come, and waits for those of its host. They first: a rank that stops
 * in between keeps nobody else from sending. */
static int come_together(struct group *group, struct ms_err *err)
{
    if (group->n_locals > 1) {
        shm_arrive(group);
    }
    for (int i = 0; i < group->n_remotes; i++) {
        struct stream *stream = &group->peers[group->remotes[i]].stream;
        stream_send(stream, &group->op.sequence, sizeof(group->op.sequence), PHASE_HERE, 0, 0);
        stream_receive(stream, &group->heard, sizeof(group->heard), PHASE_HERE, 0);
    }
    int rc = streams_progress(group, err);
    if (rc >= 0 && group->n_locals > 1) {
        rc = shm_await(group, err);
    }
    return rc < 0 ? rc : 0;
}

static int reduce(struct by_host *by_host, struct ms_err *err)
{
    int rc = come_together(by_host->group, err);
    for (size_t block = 0; rc == 0 && block < sum_blocks(by_host->sum); block++) {
        rc = reduce_block(by_host, block, err);
    }
    return rc;
}

int allreduce_host(struct group *group, const struct sum *sum, struct ms_err *err)
{
    struct by_host by_host = {.group = group, .sum = sum};
    size_t remotes = (size_t)group->n_remotes;
    by_host.trades = calloc(remotes, sizeof(*by_host.trades));
    by_host.stretches = calloc(remotes, sizeof(*by_host.stretches));
    by_host.carriers = calloc((size_t)group->n_ranks, sizeof(struct trade *));
    int rc = 0;
    if (by_host.trades == NULL || by_host.stretches == NULL || by_host.carriers == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "out of memory for a sum over %d ranks", group->n_ranks);
    } else {
        rc = reduce(&by_host, err);
    }
    free(by_host.trades);
    free(by_host.stretches);
    free(by_host.carriers);
    return rc;
}
