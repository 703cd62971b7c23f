/* batch_norm_cut.h - how a batch norm's tensor is cut, and how threads share what was cut
 *
 * A slice is a set of neighbouring channels. In memory it is a list of chunks, image by image:
 * `rows` rows of `width` lanes, `stride` floats apart (batch_norm_rows.h has the loops over one).
 *
 *     nChw8c, nChw16c   slice = channel block, lane = channel, row = spatial position
 *     nhwc              slice = up to BN_WIDTH_MAX channels, lane = channel, row = position
 *     nchw              slice = one channel, rows of 16 neighbours, and the rest of a plane as one
 *                       shorter row: its lanes hold parts of the one channel, combined at the end
 *
 * A reduction over a slice is the partial results of its chunks, merged chunk by chunk in this
 * order, lane by lane. The cut follows from the layout alone, so that no bit depends on threads:
 * they only decide who computes which partial result and who merges which lanes.
 *
 * Private to this room. Any thread. */
#ifndef BATCH_NORM_CUT_H
#define BATCH_NORM_CUT_H

#include "libworker/kernel/batch_norm_rows.h"
#include "libworker/kernel/kernel.h"

#include <stdint.h>

enum {
    BN_PARTIALS = 3, /* floats a lane that a chunk leaves, at most */
    BN_STATES = 4,   /* doubles a lane that chunks are merged into, at most */
};

struct bn_slice {
    int64_t index;
    int64_t channel, n_channel; /* the first; how many are no padding, <= width */
    int64_t width;              /* lanes */
    int64_t rows;               /* full rows of a plane */
    int64_t tail;               /* lanes of the short row at a plane's end (nchw) */
    int64_t stride;             /* floats between rows */
    int64_t offset, image;      /* its first float; floats between images */
    int64_t rows_max;           /* of a chunk */
    int64_t chunks_a_plane, chunks;
    int is_plane; /* nchw: every lane is a part of the one channel */
};

struct bn_chunk {
    int64_t index;       /* in its slice */
    int64_t image, row;  /* where it begins */
    int64_t offset;      /* ... in floats */
    int64_t rows, width; /* width < the slice's: the short row */
};

int64_t bn_n_slices(const struct kernel_layout *layout);
struct bn_slice bn_slice_at(const struct kernel_layout *layout, int64_t index);

/* Steps through the chunks of a slice; those at index >= slice->chunks are not to be touched. */
struct bn_chunk bn_chunk_at(const struct bn_slice *slice, int64_t index);
void bn_chunk_next(const struct bn_slice *slice, struct bn_chunk *chunk);

typedef void bn_span_fn(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to);
/* Calls fn for all chunks of all slices, in spans [from, to) of one slice: as many chunks a thread,
 * give or take one. What fn writes must belong to its chunks. */
void bn_each_span(const struct kernel_layout *layout, bn_span_fn *fn, const void *arg, int threads);

/* Lane l of value k of a chunk's partials is at k * slice->width + l, a chunk's partials are
 * BN_PARTIALS * slice->width floats; lane l of value k of the state at k * slice->width + l, too.
 */
struct bn_reduction {
    /* The partial results of chunks [from, to). */
    void (*chunks)(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to,
                   float *partials);
    /* Merges them, in order, into lanes [lane, lane + n) of the state; from 0: a new state. */
    void (*merge)(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to,
                  const float *partials, int64_t lane, int64_t n, double *state);
    /* All chunks are in: writes the results of these lanes. A plane comes as a whole. */
    void (*finish)(const void *arg, const struct bn_slice *slice, int64_t lane, int64_t n,
                   double *state);
    /* A pass over the chunks that needs the finished state; NULL: none. */
    void (*spread)(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to,
                   const double *state);
};

/* Reduces every slice. Slices are given to one thread each, from end to end, as long as they come
 * out even; all threads share the chunks, then the lanes, of each that is left. scratch: 64-byte
 * aligned, kernel_bn_scratch bytes. */
void bn_reduce(const struct kernel_layout *layout, const struct bn_reduction *reduction,
               const void *arg, void *scratch, int threads);

#endif
