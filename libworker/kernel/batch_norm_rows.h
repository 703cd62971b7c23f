/* batch_norm_rows.h - the loops over one chunk of a batch norm's slice: rows of lanes
 *
 * A chunk is `rows` rows of `width` <= BN_WIDTH_MAX lanes, `stride` floats apart. Lanes never mix,
 * rows are taken in a fixed order: bits do not depend on the vector length. Private to this room.
 */
#ifndef BATCH_NORM_ROWS_H
#define BATCH_NORM_ROWS_H

#include "libworker/kernel/kernel.h"

#include <stdint.h>

/* Lanes of a chunk: 1 KiB of neighbours, a few KiB of sums on the stack. */
enum { BN_WIDTH_MAX = 256 };

struct bn_rows {
    int64_t rows, width, stride;
    const float *mean, *scale, *shift; /* a lane: z = (x - mean) scale + shift */
};

/* A lane: center ~ mean of the rows, first = sum (x - center), second = sum (x - center)^2. */
void bn_rows_moments(const float *x, int64_t rows, int64_t width, int64_t stride, float *center,
                     float *first, float *second);

/* y = z [+ residual] [then ReLU]; y may be x or residual; residual NULL: none. */
void bn_rows_apply(const struct bn_rows *rows, const float *x, const float *residual, int relu,
                   float *y);

/* A lane: sum dz and sum dz (x - mean), where dz is dy masked; dz is also written to dz_out
 * unless that is NULL (it may be dy). */
void bn_rows_sums(const struct bn_rows *rows, const float *x, const float *y, const float *dy,
                  enum kernel_mask mask, float *dz_out, float *sum_dz, float *sum_dzx);

/* dx = scale (dz - mean_dz - (x - mean) slope); dx may be dy. */
void bn_rows_dx(const struct bn_rows *rows, const float *x, const float *y, const float *dy,
                enum kernel_mask mask, const float *mean_dz, const float *slope, float *dx);

#endif
