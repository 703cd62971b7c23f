/* batch_norm.c - batch normalisation on blocked layouts: slices, threads, constants a channel
 *
 * A slice is a set of channels that one thread handles from end to end, so that no result depends
 * on the number of threads. In memory a slice is a list of chunks: `rows` rows of `width` lanes,
 * `stride` floats apart (batch_norm_rows.c has the loops over a chunk).
 *
 *     nChw8c, nChw16c   slice = channel block, lane = channel, row = spatial position
 *     nhwc              slice = up to WIDTH_MAX channels, lane = channel, row = spatial position
 *     nchw              slice = one channel, rows of 16 neighbours, and the rest of a plane as one
 *                       shorter row: its lanes hold parts of the one channel, combined at the end
 */
#include "libworker/kernel/batch_norm_rows.h"
#include "libworker/kernel/kernel.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    WIDTH_MAX = BN_WIDTH_MAX, /* lanes of a slice */
    PLAIN_WIDTH = 16,         /* lanes along a plane of nchw */
    /* Rows of a chunk. 128 rows of 16 lanes are 8 KiB, which the second pass finds in the nearest
     * cache, and keep sums in float short; 32 rows of many lanes (32 KiB) are worth the double
     * arithmetic after each chunk. */
    ROWS_MAX = 128,
    ROWS_WIDE = 32,
    CHUNK_FLOATS = 2048,
};

struct slice {
    const struct kernel_layout *layout;
    int64_t block;     /* channel block */
    int64_t first;     /* first channel inside the block */
    int64_t width;     /* lanes */
    int64_t rows;      /* full rows of a plane */
    int64_t tail;      /* lanes of the short row at a plane's end (nchw) */
    int64_t stride;    /* floats between rows */
    int64_t channel;   /* first channel */
    int64_t n_channel; /* channels that are no padding, <= width */
    int64_t n_end;     /* images before this one */
};

static int64_t slices_a_block(const struct kernel_layout *layout)
{
    return (layout->block + WIDTH_MAX - 1) / WIDTH_MAX;
}

static int64_t n_slices(const struct kernel_layout *layout)
{
    return layout->n_blocks * slices_a_block(layout);
}

static struct slice slice_at(const struct kernel_layout *layout, int64_t index)
{
    struct slice slice = {.layout = layout, .n_end = layout->n};
    slice.block = index / slices_a_block(layout);
    slice.first = index % slices_a_block(layout) * WIDTH_MAX;
    slice.channel = slice.block * layout->block + slice.first;
    if (layout->block == 1) {
        slice.width = slice.stride = PLAIN_WIDTH;
        slice.rows = layout->spatial / PLAIN_WIDTH;
        slice.tail = layout->spatial % PLAIN_WIDTH;
        slice.n_channel = slice.channel < layout->channels;
        return slice;
    }
    int64_t left = layout->block - slice.first;
    slice.width = left < WIDTH_MAX ? left : WIDTH_MAX;
    slice.stride = layout->block;
    slice.rows = layout->spatial;
    left = layout->channels - slice.channel;
    slice.n_channel = left < 0 ? 0 : left < slice.width ? left : slice.width;
    return slice;
}

/* Channel of a lane, relative to the slice's first. */
static int64_t lane_channel(const struct slice *slice, int64_t lane)
{
    return slice->layout->block == 1 ? 0 : lane;
}

static int64_t chunk_rows(int64_t width)
{
    int64_t rows = CHUNK_FLOATS / width;
    return rows > ROWS_MAX ? ROWS_MAX : rows < ROWS_WIDE ? ROWS_WIDE : rows;
}

struct chunk {
    int64_t offset, rows, width;
    int is_tail;
};

static const float *at_offset(const float *base, int64_t offset)
{
    return base != NULL ? base + offset : NULL;
}

/* Steps through the chunks of a slice; 0 at the end. Starts with *at = 0, *n = 0. */
static int next_chunk(const struct slice *slice, int64_t *n, int64_t *at, struct chunk *ret)
{
    const struct kernel_layout *layout = slice->layout;
    int64_t rows_max = chunk_rows(slice->width);
    if (*at >= slice->rows + (slice->tail > 0)) {
        *at = 0;
        (*n)++;
    }
    if (*n >= slice->n_end) {
        return 0;
    }
    int64_t plane = (*n * layout->n_blocks + slice->block) * layout->spatial * layout->block;
    ret->offset = plane + slice->first + *at * slice->stride;
    ret->is_tail = *at >= slice->rows;
    if (ret->is_tail) {
        ret->rows = 1;
        ret->width = slice->tail;
    } else {
        ret->rows = slice->rows - *at < rows_max ? slice->rows - *at : rows_max;
        ret->width = slice->width;
    }
    *at += ret->rows;
    return 1;
}

/* ---- statistics ------------------------------------------------------------------------------ */

struct moments { /* a lane: elements, mean, sum of squared distances from the mean */
    double count;
    double mean[WIDTH_MAX], m2[WIDTH_MAX];
};

/* Chan, Golub, LeVeque 1979. The chunk's sums are taken around its approximate mean `center`:
 * first = sum (x - center), second = sum (x - center)^2. */
static void moments_add(struct moments *moments, int64_t width, double rows, const float *center,
                        const float *first, const float *second)
{
    double count = moments->count + rows;
    double weight = rows / count;
    double product = moments->count * weight;
    double inverse = 1.0 / rows;
    for (int64_t i = 0; i < width; i++) {
        double shift = (double)first[i] * inverse;
        double mean = (double)center[i] + shift;
        double m2 = (double)second[i] - (double)first[i] * shift;
        double delta = mean - moments->mean[i];
        moments->mean[i] += delta * weight;
        moments->m2[i] += m2 + delta * delta * product;
    }
    moments->count = count;
}

/* All lanes of main and tail hold parts of one channel: into lane 0 of main. */
static void moments_fold(struct moments *main, int64_t width, const struct moments *tail,
                         int64_t tail_width)
{
    double count = main->count;
    double mean = main->mean[0];
    double m2 = main->m2[0];
    for (int64_t i = 1; i < width + tail_width; i++) {
        const struct moments *from = i < width ? main : tail;
        int64_t lane = i < width ? i : i - width;
        double total = count + from->count;
        double delta = from->mean[lane] - mean;
        if (total > 0) {
            mean += delta * (from->count / total);
            m2 += from->m2[lane] + delta * delta * (count * from->count / total);
        }
        count = total;
    }
    main->mean[0] = mean;
    main->m2[0] = m2;
    main->count = count;
}

static void stats_slice(const struct slice *slice, const float *x, float *mean, float *variance)
{
    struct moments main = {0};
    struct moments tail = {0};
    struct chunk chunk;
    for (int64_t n = 0, at = 0; next_chunk(slice, &n, &at, &chunk);) {
        float center[WIDTH_MAX], first[WIDTH_MAX], second[WIDTH_MAX];
        bn_rows_moments(x + chunk.offset, chunk.rows, chunk.width, slice->stride, center, first,
                        second);
        moments_add(chunk.is_tail ? &tail : &main, chunk.width, (double)chunk.rows, center, first,
                    second);
    }
    int64_t n_out = slice->width;
    if (slice->layout->block == 1) {
        moments_fold(&main, slice->width, &tail, slice->tail);
        n_out = 1;
    }
    for (int64_t i = 0; i < n_out; i++) {
        double value = main.m2[i] / main.count;
        mean[slice->channel + i] = (float)main.mean[i];
        variance[slice->channel + i] = (float)(value < 0 ? 0.0 : value);
    }
}

void kernel_bn_stats(const struct kernel_bn *bn, int threads)
{
    int64_t n = n_slices(&bn->layout);
    (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i++) {
        struct slice slice = slice_at(&bn->layout, i);
        stats_slice(&slice, bn->x, bn->mean, bn->variance);
    }
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Lane constants; zero in padding, so that zero stays zero there. */
struct constants {
    float mean[WIDTH_MAX], scale[WIDTH_MAX], shift[WIDTH_MAX];
    double rstd[WIDTH_MAX]; /* 1 / sqrt(variance + epsilon) */
};

static void constants_set(const struct slice *slice, struct constants *c, const float *mean,
                          const float *variance, const float *gamma, const float *beta,
                          double epsilon)
{
    for (int64_t i = 0; i < slice->width; i++) {
        int64_t channel = lane_channel(slice, i);
        int used = channel < slice->n_channel;
        channel += slice->channel;
        c->rstd[i] = used ? 1.0 / sqrt((double)variance[channel] + epsilon) : 0.0;
        c->mean[i] = used ? mean[channel] : 0.0F;
        c->scale[i] = used ? (float)((double)gamma[channel] * c->rstd[i]) : 0.0F;
        c->shift[i] = used ? beta[channel] : 0.0F;
    }
}

void kernel_bn_apply(const struct kernel_bn *bn, int threads)
{
    const struct kernel_layout *layout = &bn->layout;
    int64_t units = n_slices(layout) * layout->n; /* elementwise: images can be split, too */
    (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < units; i++) {
        struct slice slice = slice_at(layout, i / layout->n);
        struct constants c;
        struct chunk chunk;
        int64_t first = i % layout->n;
        slice.n_end = first + 1;
        constants_set(&slice, &c, bn->mean, bn->variance, bn->gamma, bn->beta, bn->epsilon);
        for (int64_t n = first, at = 0; next_chunk(&slice, &n, &at, &chunk);) {
            const struct bn_rows rows = {chunk.rows, chunk.width, slice.stride,
                                         c.mean,     c.scale,     c.shift};
            bn_rows_apply(&rows, bn->x + chunk.offset, at_offset(bn->residual, chunk.offset),
                          bn->relu, bn->y + chunk.offset);
        }
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* First pass: sum dz and sum dz (x - mean) a lane; writes dz where it is wanted. */
static void backward_sums(const struct slice *slice, const struct kernel_bn_back *b,
                          const struct constants *c, double *sum_dz, double *sum_dzx)
{
    struct chunk chunk;
    for (int64_t n = 0, at = 0; next_chunk(slice, &n, &at, &chunk);) {
        const struct bn_rows rows = {chunk.rows, chunk.width, slice->stride,
                                     c->mean,    c->scale,    c->shift};
        float dz[WIDTH_MAX], dzx[WIDTH_MAX];
        bn_rows_sums(&rows, b->x + chunk.offset, at_offset(b->y, chunk.offset),
                     b->dy + chunk.offset, b->mask, b->dz != NULL ? b->dz + chunk.offset : NULL, dz,
                     dzx);
        for (int64_t i = 0; i < chunk.width; i++) {
            sum_dz[i] += (double)dz[i];
            sum_dzx[i] += (double)dzx[i];
        }
    }
    if (slice->layout->block == 1) {
        for (int64_t i = 1; i < slice->width; i++) { /* lane 0 is part of every row, tails too */
            sum_dz[0] += sum_dz[i];
            sum_dzx[0] += sum_dzx[i];
        }
        for (int64_t i = 1; i < slice->width; i++) {
            sum_dz[i] = sum_dz[0];
            sum_dzx[i] = sum_dzx[0];
        }
    }
}

static void backward_slice(const struct slice *slice, const struct kernel_bn_back *b)
{
    struct constants c;
    double sum_dz[WIDTH_MAX] = {0};
    double sum_dzx[WIDTH_MAX] = {0};
    float mean_dz[WIDTH_MAX], slope[WIDTH_MAX];
    constants_set(slice, &c, b->mean, b->variance, b->gamma, b->beta, b->epsilon);
    backward_sums(slice, b, &c, sum_dz, sum_dzx);

    double count = (double)(slice->layout->n * slice->layout->spatial);
    for (int64_t i = 0; i < slice->width; i++) {
        mean_dz[i] = (float)(sum_dz[i] / count);
        slope[i] = (float)(sum_dzx[i] * c.rstd[i] * c.rstd[i] / count);
    }
    for (int64_t i = 0; i < slice->n_channel; i++) {
        b->dbeta[slice->channel + i] = (float)sum_dz[i];
        b->dgamma[slice->channel + i] = (float)(sum_dzx[i] * c.rstd[i]);
    }
    if (b->dx == NULL) {
        return;
    }
    struct chunk chunk;
    for (int64_t n = 0, at = 0; next_chunk(slice, &n, &at, &chunk);) {
        const struct bn_rows rows = {chunk.rows, chunk.width, slice->stride,
                                     c.mean,     c.scale,     c.shift};
        const float *dz = at_offset(b->dz, chunk.offset);
        bn_rows_dx(&rows, b->x + chunk.offset, at_offset(b->y, chunk.offset),
                   dz != NULL ? dz : b->dy + chunk.offset, dz != NULL ? KERNEL_MASK_NONE : b->mask,
                   mean_dz, slope, b->dx + chunk.offset);
    }
}

void kernel_bn_backward(const struct kernel_bn_back *bn, int threads)
{
    int64_t n = n_slices(&bn->layout);
    (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i++) {
        struct slice slice = slice_at(&bn->layout, i);
        backward_slice(&slice, bn);
    }
}
