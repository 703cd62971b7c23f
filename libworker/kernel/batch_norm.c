/* batch_norm.c - batch normalisation on blocked layouts: statistics, forward, backward
 *
 * batch_norm_cut.h says how a tensor is cut and how threads share it; here is what they compute. */
#include "libworker/kernel/batch_norm_cut.h"
#include "libworker/kernel/batch_norm_rows.h"
#include "libworker/kernel/kernel.h"

#include <stddef.h>
#include <string.h>

static const float *at_offset(const float *base, int64_t offset)
{
    return base != NULL ? base + offset : NULL;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* A chunk leaves center, first and second moment; the state holds mean and sum of squared distances
 * of the full rows, then of a plane's short rows. */
enum { ROWS_MEAN, ROWS_M2, SHORT_MEAN, SHORT_M2 };

static void stats_chunks(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to,
                         float *partials)
{
    const struct kernel_bn *bn = arg;
    int64_t width = slice->width;
    struct bn_chunk chunk = bn_chunk_at(slice, from);
    for (float *p = partials; chunk.index < to; p += BN_PARTIALS * width) {
        bn_rows_moments(bn->x + chunk.offset, chunk.rows, chunk.width, slice->stride, p, p + width,
                        p + 2 * width);
        bn_chunk_next(slice, &chunk);
    }
}

static void clear_lanes(const struct bn_slice *slice, int64_t lane, int64_t n, double *state)
{
    for (int64_t k = 0; k < BN_STATES; k++) {
        memset(state + k * slice->width + lane, 0, (size_t)n * sizeof(*state));
    }
}

static void stats_merge(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to,
                        const float *partials, int64_t lane, int64_t n, double *state)
{
    (void)arg;
    int64_t width = slice->width;
    if (from == 0) {
        clear_lanes(slice, lane, n, state);
    }
    struct bn_chunk chunk = bn_chunk_at(slice, from);
    for (const float *p = partials + lane; chunk.index < to; p += BN_PARTIALS * width) {
        int is_short = chunk.row >= slice->rows;
        int64_t before = is_short ? chunk.image : chunk.image * slice->rows + chunk.row;
        double *mean = state + (is_short ? SHORT_MEAN : ROWS_MEAN) * width + lane;
        double *m2 = state + (is_short ? SHORT_M2 : ROWS_M2) * width + lane;
        bn_lanes_moments(is_short ? chunk.width : n, (double)before, (double)chunk.rows, p,
                         p + width, p + 2 * width, mean, m2);
        bn_chunk_next(slice, &chunk);
    }
}

/* All lanes of a plane hold parts of one channel: into lane 0 of the full rows. */
static void fold_moments(const struct bn_slice *slice, int64_t n, double *state)
{
    int64_t width = slice->width;
    double count = (double)(n * slice->rows);
    double mean = state[0];
    double m2 = state[ROWS_M2 * width];
    for (int64_t i = 1; i < width + slice->tail; i++) {
        int is_short = i >= width;
        const double *lane = state + (is_short ? SHORT_MEAN * width + i - width : i);
        double rows = (double)(is_short ? n : n * slice->rows);
        double total = count + rows;
        double delta = lane[0] - mean;
        if (total > 0) {
            mean += delta * (rows / total);
            m2 += lane[width] + delta * delta * (count * rows / total);
        }
        count = total;
    }
    state[0] = mean;
    state[ROWS_M2 * width] = m2;
}

static void stats_finish(const void *arg, const struct bn_slice *slice, int64_t lane, int64_t n,
                         double *state)
{
    const struct kernel_bn *bn = arg;
    double count = (double)(bn->layout.n * bn->layout.spatial);
    if (slice->is_plane) {
        fold_moments(slice, bn->layout.n, state);
        n = 1;
    }
    for (int64_t i = lane; i < lane + n; i++) {
        double variance = state[ROWS_M2 * slice->width + i] / count;
        bn->mean[slice->channel + i] = (float)state[i];
        bn->variance[slice->channel + i] = (float)(variance < 0 ? 0.0 : variance);
    }
}

void kernel_bn_stats(const struct kernel_bn *bn, int threads)
{
    static const struct bn_reduction reduction = {stats_chunks, stats_merge, stats_finish, NULL};
    bn_reduce(&bn->layout, &reduction, bn, bn->scratch, threads);
}

/* ---- forward --------------------------------------------------------------------------------- */

struct affine { /* what a slice's constants are made from, a channel */
    const float *mean, *variance, *gamma, *beta;
    double epsilon;
};

/* Zero in padding, so that zero stays zero there; a plane's lanes are all its channel's. */
static void set_lanes(struct bn_lanes *lanes, const struct bn_slice *slice, const struct affine *a)
{
    int64_t c = slice->channel;
    bn_lanes_set(lanes, slice->n_channel, a->mean + c, a->variance + c, a->gamma + c, a->beta + c,
                 a->epsilon);
    int repeats = slice->is_plane && slice->n_channel == 1;
    for (int64_t i = slice->n_channel; i < slice->width; i++) {
        lanes->mean[i] = repeats ? lanes->mean[0] : 0.0F;
        lanes->scale[i] = repeats ? lanes->scale[0] : 0.0F;
        lanes->shift[i] = repeats ? lanes->shift[0] : 0.0F;
        lanes->rstd[i] = repeats ? lanes->rstd[0] : 0.0;
    }
}

static void apply_span(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to)
{
    const struct kernel_bn *bn = arg;
    const struct affine affine = {bn->mean, bn->variance, bn->gamma, bn->beta, bn->epsilon};
    struct bn_lanes lanes;
    set_lanes(&lanes, slice, &affine);
    struct bn_chunk chunk = bn_chunk_at(slice, from);
    while (chunk.index < to) {
        const struct bn_rows rows = {chunk.rows, chunk.width, slice->stride, &lanes};
        bn_rows_apply(&rows, bn->x + chunk.offset, at_offset(bn->residual, chunk.offset), bn->relu,
                      bn->y + chunk.offset);
        bn_chunk_next(slice, &chunk);
    }
}

void kernel_bn_apply(const struct kernel_bn *bn, int threads)
{
    bn_each_span(&bn->layout, apply_span, bn, threads);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* A chunk leaves sum dz and sum dz (x - mean); the state holds the sums of both. */
enum { SUM_DZ, SUM_DZX };

static void set_back_lanes(struct bn_lanes *lanes, const struct bn_slice *slice,
                           const struct kernel_bn_back *b)
{
    const struct affine affine = {b->mean, b->variance, b->gamma, b->beta, b->epsilon};
    set_lanes(lanes, slice, &affine);
}

static void back_chunks(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to,
                        float *partials)
{
    const struct kernel_bn_back *b = arg;
    struct bn_lanes lanes;
    set_back_lanes(&lanes, slice, b);
    struct bn_chunk chunk = bn_chunk_at(slice, from);
    for (float *p = partials; chunk.index < to; p += BN_PARTIALS * slice->width) {
        const struct bn_rows rows = {chunk.rows, chunk.width, slice->stride, &lanes};
        bn_rows_sums(&rows, b->x + chunk.offset, at_offset(b->y, chunk.offset),
                     b->dy + chunk.offset, b->mask, b->dz != NULL ? b->dz + chunk.offset : NULL, p,
                     p + slice->width);
        bn_chunk_next(slice, &chunk);
    }
}

static void back_merge(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to,
                       const float *partials, int64_t lane, int64_t n, double *state)
{
    (void)arg;
    if (from == 0) {
        clear_lanes(slice, lane, n, state);
    }
    struct bn_chunk chunk = bn_chunk_at(slice, from);
    for (const float *p = partials + lane; chunk.index < to; p += BN_PARTIALS * slice->width) {
        bn_lanes_sums(chunk.width < slice->width ? chunk.width : n, p, p + slice->width,
                      state + lane, state + slice->width + lane);
        bn_chunk_next(slice, &chunk);
    }
}

/* All lanes of a plane hold parts of one channel: every lane gets the whole. */
static void fold_sums(const struct bn_slice *slice, double *state)
{
    for (int64_t k = SUM_DZ; k <= SUM_DZX; k++) {
        double *sum = state + k * slice->width;
        for (int64_t i = 1; i < slice->width; i++) { /* lane 0 is part of every row */
            sum[0] += sum[i];
        }
        for (int64_t i = 1; i < slice->width; i++) {
            sum[i] = sum[0];
        }
    }
}

static void back_finish(const void *arg, const struct bn_slice *slice, int64_t lane, int64_t n,
                        double *state)
{
    const struct kernel_bn_back *b = arg;
    struct bn_lanes lanes;
    set_back_lanes(&lanes, slice, b);
    if (slice->is_plane) {
        fold_sums(slice, state);
    }
    for (int64_t i = lane; i < lane + n && i < slice->n_channel; i++) {
        b->dbeta[slice->channel + i] = (float)state[i];
        b->dgamma[slice->channel + i] = (float)(state[slice->width + i] * lanes.rstd[i]);
    }
}

static void back_spread(const void *arg, const struct bn_slice *slice, int64_t from, int64_t to,
                        const double *state)
{
    const struct kernel_bn_back *b = arg;
    struct bn_lanes lanes;
    float mean_dz[BN_WIDTH_MAX], slope[BN_WIDTH_MAX];
    set_back_lanes(&lanes, slice, b);
    bn_lanes_slopes(&lanes, slice->width, (double)(b->layout.n * b->layout.spatial), state,
                    state + slice->width, mean_dz, slope);
    struct bn_chunk chunk = bn_chunk_at(slice, from);
    while (chunk.index < to) {
        const struct bn_rows rows = {chunk.rows, chunk.width, slice->stride, &lanes};
        const float *dz = at_offset(b->dz, chunk.offset); /* masked already */
        bn_rows_dx(&rows, b->x + chunk.offset, at_offset(b->y, chunk.offset),
                   dz != NULL ? dz : b->dy + chunk.offset, dz != NULL ? KERNEL_MASK_NONE : b->mask,
                   mean_dz, slope, b->dx + chunk.offset);
        bn_chunk_next(slice, &chunk);
    }
}

void kernel_bn_backward(const struct kernel_bn_back *bn, int threads)
{
    static const struct bn_reduction reduction = {back_chunks, back_merge, back_finish,
                                                  back_spread};
    bn_reduce(&bn->layout, &reduction, bn, bn->scratch, threads);
}
