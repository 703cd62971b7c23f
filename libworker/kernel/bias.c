/* bias.c - a value of each channel that is added, and its gradient
 *
 * The gradient is summed up as the sums of a norm are (norm_rows.h): of each channel of a sample in
 * one order, then over samples, in double. */
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/norm_rows.h"

#include <stddef.h>

/* A block of channels of one sample: y = x + bias; what pads the last block stays zero. */
KERNEL_CLONES
static void add_block(float *y, const float *x, const float *bias, const struct kernel_layout *l,
                      int64_t channel)
{
    const int64_t left = l->channels - channel;
    const int64_t lanes = left < l->block ? left : l->block;
    if (l->block == 1) {
        const float b = bias[channel];
#pragma omp simd
        for (int64_t s = 0; s < l->spatial; s++) {
            y[s] = x[s] + b;
        }
        return;
    }
    for (int64_t s = 0; s < l->spatial; s++) {
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) {
            y[s * l->block + i] = x[s * l->block + i] + bias[channel + i];
        }
        for (int64_t i = lanes; i < l->block; i++) {
            y[s * l->block + i] = 0.0F;
        }
    }
}

void kernel_bias(float *y, const float *x, const float *bias, const struct kernel_layout *layout,
                 int threads)
{
    const struct kernel_layout l = *layout;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < l.n * l.n_blocks; i++) {
        const int64_t at = i * l.spatial * l.block;
        add_block(y + at, x + at, bias, &l, i % l.n_blocks * l.block);
    }
}

size_t kernel_bias_scratch(const struct kernel_layout *l)
{
    return (size_t)(2 * l->n * l->n_blocks * l->block) * sizeof(double);
}

/* Sums of a block of channels of one sample; those of squares come with them. */
static void sum_block(const float *dy, const struct kernel_layout *l, double *sums, double *squares)
{
    static const float center[NORM_WIDTH_MAX] = {0};
    for (int64_t i = 0; i < l->block; i += NORM_WIDTH_MAX) {
        const struct norm_read read = {dy + i, NULL, NULL};
        const int64_t width = l->block - i < NORM_WIDTH_MAX ? l->block - i : NORM_WIDTH_MAX;
        if (l->block == 1) {
            double both[2];
            norm_line_sums(&read, l->spatial, 0, both);
            *sums = both[0];
        } else {
            norm_lanes_sums(&read, l->spatial, width, l->block, center, sums + i, squares + i);
        }
    }
}

void kernel_bias_backward(float *db, const float *dy, const struct kernel_layout *layout,
                          void *scratch, int threads)
{
    const struct kernel_layout l = *layout;
    const int64_t padded = l.n_blocks * l.block;
    double *sums = scratch;
    double *squares = sums + l.n * padded;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < l.n * l.n_blocks; i++) {
            sum_block(dy + i * l.spatial * l.block, &l, sums + i * l.block, squares + i * l.block);
        }
#pragma omp for schedule(static)
        for (int64_t c = 0; c < l.channels; c++) {
            double sum = 0;
            for (int64_t n = 0; n < l.n; n++) {
                sum += sums[n * padded + c];
            }
            db[c] = (float)sum;
        }
    }
}
