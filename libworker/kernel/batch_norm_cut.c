/* batch_norm_cut.c - slices and chunks of a batch norm, and the threads that reduce them */
#include "libworker/kernel/batch_norm_cut.h"

#include <assert.h>
#include <stddef.h>

enum {
    PLAIN_WIDTH = 16, /* lanes along a plane of nchw */
    /* Rows of a chunk. 128 rows of 16 lanes are 8 KiB, which the second pass finds in the nearest
     * cache, and keep sums in float short; 32 rows of many lanes (32 KiB) are worth the double
     * arithmetic after each chunk. These numbers fix the bits of every batch norm. */
    ROWS_MAX = 128,
    ROWS_WIDE = 32,
    CHUNK_FLOATS = 2048,
    /* The rest fixes no bits. Lanes that one thread merges: a cache line of floats. */
    MERGE_LANES = 16,
    /* A slice that is worth sharing: a smaller one takes a thread less time (some 3 us) than
     * everybody needs to meet twice. */
    SHARED_FLOATS = 16384,
    /* Partial results in memory at a time: a tenth of the tensor, or these 64 KiB. */
    ROUND_FLOATS = 16384,
    /* ... on the stack of a thread that has a slice of its own: 24 KiB, 8 chunks at least. */
    STACK_FLOATS = 8 * BN_PARTIALS * BN_WIDTH_MAX,
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the cut --------------------------------------------------------------------------------- */

static int64_t slices_a_block(const struct kernel_layout *layout)
{
    return (layout->block + BN_WIDTH_MAX - 1) / BN_WIDTH_MAX;
}

int64_t bn_n_slices(const struct kernel_layout *layout)
{
    return layout->n_blocks * slices_a_block(layout);
}

static int64_t chunk_rows(int64_t width)
{
    int64_t rows = CHUNK_FLOATS / width;
    return rows > ROWS_MAX ? ROWS_MAX : rows < ROWS_WIDE ? ROWS_WIDE : rows;
}

struct bn_slice bn_slice_at(const struct kernel_layout *layout, int64_t index)
{
    int64_t block = index / slices_a_block(layout);
    int64_t first = index % slices_a_block(layout) * BN_WIDTH_MAX;
    int64_t left = layout->channels - block * layout->block - first;
    struct bn_slice slice = {.index = index,
                             .channel = block * layout->block + first,
                             .offset = block * layout->spatial * layout->block + first,
                             .image = layout->n_blocks * layout->spatial * layout->block,
                             .is_plane = layout->block == 1};
    if (slice.is_plane) {
        slice.width = slice.stride = PLAIN_WIDTH;
        slice.rows = layout->spatial / PLAIN_WIDTH;
        slice.tail = layout->spatial % PLAIN_WIDTH;
        slice.n_channel = left > 0;
    } else {
        slice.width = least(layout->block - first, BN_WIDTH_MAX);
        slice.stride = layout->block;
        slice.rows = layout->spatial;
        slice.n_channel = left < 0 ? 0 : least(left, slice.width);
    }
    slice.rows_max = chunk_rows(slice.width);
    slice.chunks_a_plane = (slice.rows + slice.rows_max - 1) / slice.rows_max + (slice.tail > 0);
    slice.chunks = layout->n * slice.chunks_a_plane;
    return slice;
}

static void measure_chunk(const struct bn_slice *slice, struct bn_chunk *chunk)
{
    int is_tail = chunk->row >= slice->rows;
    chunk->offset = slice->offset + chunk->image * slice->image + chunk->row * slice->stride;
    chunk->rows = is_tail ? 1 : least(slice->rows - chunk->row, slice->rows_max);
    chunk->width = is_tail ? slice->tail : slice->width;
}

struct bn_chunk bn_chunk_at(const struct bn_slice *slice, int64_t index)
{
    struct bn_chunk chunk = {.index = index, .image = index / slice->chunks_a_plane};
    int64_t row = (index - chunk.image * slice->chunks_a_plane) * slice->rows_max;
    chunk.row = least(row, slice->rows); /* the short row follows the rows */
    measure_chunk(slice, &chunk);
    return chunk;
}

void bn_chunk_next(const struct bn_slice *slice, struct bn_chunk *chunk)
{
    chunk->index++;
    chunk->row += chunk->rows;
    if (chunk->row >= slice->rows + (slice->tail > 0)) {
        chunk->row = 0;
        chunk->image++;
    }
    measure_chunk(slice, chunk);
}

/* ---- who does what --------------------------------------------------------------------------- */

struct range { /* chunks [from, to) of slices [first, first + n) */
    int64_t first, n, from, to;
};

/* Part `part` of `parts` of a range: the order is slice by slice, so that a thread has few. */
static void part_of(const struct kernel_layout *layout, const struct range *range, int64_t part,
                    int64_t parts, bn_span_fn *fn, const void *arg)
{
    int64_t length = range->to - range->from;
    int64_t end = range->n * length * (part + 1) / parts;
    for (int64_t at = range->n * length * part / parts; at < end;) {
        int64_t into = at % length;
        int64_t count = least(length - into, end - at);
        struct bn_slice slice = bn_slice_at(layout, range->first + at / length);
        int64_t from = range->from + into;
        int64_t to = least(from + count, slice.chunks); /* a narrower slice has fewer */
        if (from < to) {
            fn(arg, &slice, from, to);
        }
        at += count;
    }
}

void bn_each_span(const struct kernel_layout *layout, bn_span_fn *fn, const void *arg, int threads)
{
    const struct range all = {0, bn_n_slices(layout), 0, bn_slice_at(layout, 0).chunks};
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int part = 0; part < threads; part++) {
        part_of(layout, &all, part, threads, fn, arg);
    }
}

/* Chunks of each slice whose partial results the scratch holds at a time. */
static int64_t round_chunks(const struct kernel_layout *layout)
{
    struct bn_slice widest = bn_slice_at(layout, 0);
    int64_t floats = layout->n * layout->n_blocks * layout->spatial * layout->block / 10;
    floats = floats > ROUND_FLOATS ? floats : ROUND_FLOATS;
    int64_t chunks = floats / (bn_n_slices(layout) * BN_PARTIALS * widest.width);
    return chunks < 1 ? 1 : least(chunks, widest.chunks);
}

/* Slices at the end that all threads share. */
static int64_t shared_slices(const struct kernel_layout *layout, int threads)
{
    int64_t floats =
        layout->n * layout->spatial * (layout->block == 1 ? 1 : bn_slice_at(layout, 0).width);
    return floats < SHARED_FLOATS ? 0 : bn_n_slices(layout) % threads;
}

static int64_t state_bytes(int64_t width)
{
    return BN_STATES * width * (int64_t)sizeof(double);
}

static int64_t partial_bytes(int64_t width)
{
    return BN_PARTIALS * width * (int64_t)sizeof(float);
}

size_t kernel_bn_scratch(const struct kernel_layout *layout, int threads)
{
    int64_t most = 0; /* with fewer threads more slices may be left */
    for (int t = 1; t <= threads; t++) {
        int64_t shared = shared_slices(layout, t);
        most = shared > most ? shared : most;
    }
    int64_t width = bn_slice_at(layout, 0).width;
    return (size_t)(most * (state_bytes(width) + round_chunks(layout) * partial_bytes(width)));
}

/* ---- the reduction --------------------------------------------------------------------------- */

static void reduce_alone(const struct kernel_layout *layout, const struct bn_reduction *reduction,
                         const void *arg, int64_t index)
{
    double state[BN_STATES * BN_WIDTH_MAX];
    float partials[STACK_FLOATS];
    struct bn_slice slice = bn_slice_at(layout, index);
    int64_t round = STACK_FLOATS / (BN_PARTIALS * slice.width);
    for (int64_t from = 0; from < slice.chunks; from += round) {
        int64_t to = least(from + round, slice.chunks);
        reduction->chunks(arg, &slice, from, to, partials);
        reduction->merge(arg, &slice, from, to, partials, 0, slice.width, state);
    }
    reduction->finish(arg, &slice, 0, slice.width, state);
    if (reduction->spread != NULL) {
        reduction->spread(arg, &slice, 0, slice.chunks, state);
    }
}

struct shared { /* the slices that all threads reduce together, round by round */
    const struct kernel_layout *layout;
    const struct bn_reduction *reduction;
    const void *arg;
    int64_t first, n; /* slices */
    int64_t width;    /* of the widest */
    int64_t chunks;   /* ... and its number */
    int64_t round;    /* chunks of a slice in a round */
    int64_t from, to; /* those of this round */
    char *scratch;    /* a state a slice, then partial results slice by slice */
};

static double *state_of(const struct shared *s, int64_t place)
{
    return (double *)(void *)(s->scratch + place * state_bytes(s->width));
}

static float *partials_of(const struct shared *s, int64_t place)
{
    char *begin = s->scratch + s->n * state_bytes(s->width);
    return (float *)(void *)(begin + place * s->round * partial_bytes(s->width));
}

static void share_chunks(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to)
{
    const struct shared *s = arg;
    float *partials = partials_of(s, slice->index - s->first);
    s->reduction->chunks(s->arg, slice, from, to,
                         partials + (from - s->from) * BN_PARTIALS * slice->width);
}

static void share_spread(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to)
{
    const struct shared *s = arg;
    s->reduction->spread(s->arg, slice, from, to, state_of(s, slice->index - s->first));
}

static void merge_lanes(const struct shared *s, int64_t place, int64_t lane)
{
    struct bn_slice slice = bn_slice_at(s->layout, s->first + place);
    int64_t n = least(slice.width - lane, MERGE_LANES);
    int64_t to = least(s->to, slice.chunks);
    if (n <= 0) {
        return;
    }
    if (s->from < to) {
        s->reduction->merge(s->arg, &slice, s->from, to, partials_of(s, place), lane, n,
                            state_of(s, place));
    }
    if (s->to == s->chunks) {
        s->reduction->finish(s->arg, &slice, lane, n, state_of(s, place));
    }
}

/* Run by every thread of the team with a copy of its own; each loop ends with all of them. */
static void reduce_together(struct shared s, int threads)
{
    const int64_t groups = (s.width + MERGE_LANES - 1) / MERGE_LANES;
    for (s.from = 0; s.from < s.chunks; s.from += s.round) {
        s.to = least(s.from + s.round, s.chunks);
        const struct range range = {s.first, s.n, s.from, s.to};
#pragma omp for schedule(static)
        for (int part = 0; part < threads; part++) {
            part_of(s.layout, &range, part, threads, share_chunks, &s);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < s.n * groups; i++) {
            merge_lanes(&s, i / groups, i % groups * MERGE_LANES);
        }
    }
    if (s.reduction->spread != NULL) {
        const struct range range = {s.first, s.n, 0, s.chunks};
#pragma omp for schedule(static)
        for (int part = 0; part < threads; part++) {
            part_of(s.layout, &range, part, threads, share_spread, &s);
        }
    }
}

void bn_reduce(const struct kernel_layout *layout, const struct bn_reduction *reduction,
               const void *arg, void *scratch, int threads)
{
    struct bn_slice widest = bn_slice_at(layout, 0);
    int64_t n_shared = shared_slices(layout, threads);
    int64_t n_alone = bn_n_slices(layout) - n_shared;
    const struct shared shared = {.layout = layout,
                                  .reduction = reduction,
                                  .arg = arg,
                                  .first = n_alone,
                                  .n = n_shared,
                                  .width = widest.width,
                                  .chunks = widest.chunks,
                                  .round = round_chunks(layout),
                                  .scratch = scratch};
    assert(n_shared == 0 || scratch != NULL);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < n_alone; i++) {
            reduce_alone(layout, reduction, arg, i);
        }
        if (n_shared > 0) {
            reduce_together(shared, threads);
        }
    }
}
