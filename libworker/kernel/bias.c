/* bias.c - a value of each channel that is added, or multiplied, and its gradient
 *
 * The gradient is summed up as the sums of a norm are (norm_rows.h): of each channel of a sample in
 * one order, then over samples, in double. */
#include "libworker/kernel/inline.h"
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/norm_rows.h"

#include <stddef.h>

INLINE float joined(float x, float by, int is_product)
{
    return is_product ? x * by : x + by;
}

/* A block of channels of one sample: y = x + by, or x by; what pads the last block stays zero. */
INLINE void join_block(float *y, const float *x, const float *by, const struct kernel_layout *l,
                       int64_t channel, int is_product)
{
    const int64_t left = l->channels - channel;
    const int64_t lanes = left < l->block ? left : l->block;
    if (l->block == 1) {
        const float b = by[channel];
#pragma omp simd
        for (int64_t s = 0; s < l->spatial; s++) {
            y[s] = joined(x[s], b, is_product);
        }
        return;
    }
    for (int64_t s = 0; s < l->spatial; s++) {
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) {
            y[s * l->block + i] = joined(x[s * l->block + i], by[channel + i], is_product);
        }
        for (int64_t i = lanes; i < l->block; i++) {
            y[s * l->block + i] = 0.0F;
        }
    }
}

KERNEL_CLONES
static void add_block(float *y, const float *x, const float *by, const struct kernel_layout *l,
                      int64_t channel)
{
    join_block(y, x, by, l, channel, 0);
}

KERNEL_CLONES
static void scale_block(float *y, const float *x, const float *by, const struct kernel_layout *l,
                        int64_t channel)
{
    join_block(y, x, by, l, channel, 1);
}

static void join(float *y, const float *x, const float *by, const struct kernel_layout *layout,
                 int is_product, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const struct kernel_layout l = *layout;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < l.n * l.n_blocks; i++) {
        const int64_t at = i * l.spatial * l.block;
        const int64_t channel = i % l.n_blocks * l.block;
        if (is_product) {
            scale_block(y + at, x + at, by, &l, channel);
        } else {
            add_block(y + at, x + at, by, &l, channel);
        }
    }
}

void kernel_bias(float *y, const float *x, const float *bias, const struct kernel_layout *layout,
                 int threads)
{
    join(y, x, bias, layout, 0, threads);
}

void kernel_scale(float *y, const float *x, const float *factor, const struct kernel_layout *layout,
                  int threads)
{
    join(y, x, factor, layout, 1, threads);
}

size_t kernel_bias_scratch(const struct kernel_layout *l)
{
    return (size_t)(2 * l->n * l->n_blocks * l->block) * sizeof(double);
}

/* Sums of a block of channels of one sample: sums[0][i] of dy alone (x NULL), or sums[1][i] of x
 * dy; the other ones come with them. */
static void sum_block(const float *x, const float *dy, const struct kernel_layout *l,
                      double *const sums[2])
{
    static const float center[NORM_WIDTH_MAX] = {0};
    for (int64_t i = 0; i < l->block; i += NORM_WIDTH_MAX) {
        const struct norm_read read = {x != NULL ? x + i : dy + i, x != NULL ? dy + i : NULL, NULL};
        const int64_t width = l->block - i < NORM_WIDTH_MAX ? l->block - i : NORM_WIDTH_MAX;
        if (l->block == 1) {
            double both[2];
            norm_line_sums(&read, l->spatial, 0, both);
            *sums[0] = both[0];
            *sums[1] = both[1];
        } else {
            norm_lanes_sums(&read, l->spatial, width, l->block, center, sums[0] + i, sums[1] + i);
        }
    }
}

/* Of x dy; x NULL: of dy. */
static void sum_channels(float *ret, const float *x, const float *dy,
                         const struct kernel_layout *layout, void *scratch, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const struct kernel_layout l = *layout;
    const int64_t padded = l.n_blocks * l.block;
    double *both[2] = {scratch, (double *)scratch + l.n * padded};
    const double *sums = both[x != NULL];
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < l.n * l.n_blocks; i++) {
            const int64_t at = i * l.spatial * l.block;
            double *const own[2] = {both[0] + i * l.block, both[1] + i * l.block};
            sum_block(x != NULL ? x + at : NULL, dy + at, &l, own);
        }
#pragma omp for schedule(static)
        for (int64_t c = 0; c < l.channels; c++) {
            double sum = 0;
            for (int64_t n = 0; n < l.n; n++) {
                sum += sums[n * padded + c];
            }
            ret[c] = (float)sum;
        }
    }
}

void kernel_bias_backward(float *db, const float *dy, const struct kernel_layout *layout,
                          void *scratch, int threads)
{
    sum_channels(db, NULL, dy, layout, scratch, threads);
}

void kernel_scale_backward(float *dfactor, const float *x, const float *dy,
                           const struct kernel_layout *layout, void *scratch, int threads)
{
    sum_channels(dfactor, x, dy, layout, scratch, threads);
}
