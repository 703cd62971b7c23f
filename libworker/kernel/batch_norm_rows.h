/* batch_norm_rows.h - the loops over one chunk of a batch norm's slice: rows of lanes, and lanes
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

/* Constants a lane: z = (x - mean) scale + shift. */
struct bn_lanes {
    float mean[BN_WIDTH_MAX], scale[BN_WIDTH_MAX], shift[BN_WIDTH_MAX];
    double rstd[BN_WIDTH_MAX]; /* 1 / sqrt(variance + epsilon) */
};

struct bn_rows {
    int64_t rows, width, stride;
    const struct bn_lanes *lanes;
};

/* Lanes [0, n) from n channels' values: scale = gamma rstd, shift = beta. */
void bn_lanes_set(struct bn_lanes *lanes, int64_t n, const float *mean, const float *variance,
                  const float *gamma, const float *beta, double epsilon);

/* Chan, Golub, LeVeque 1979: what bn_rows_moments found in `rows` rows joins the mean and the sum
 * of squared distances m2 of `before` rows. */
void bn_lanes_moments(int64_t n, double before, double rows, const float *center,
                      const float *first, const float *second, double *mean, double *m2);

/* What bn_rows_sums found joins the sums. */
void bn_lanes_sums(int64_t n, const float *dz, const float *dzx, double *sum_dz, double *sum_dzx);

/* What bn_rows_dx needs of the sums over `count` elements a channel. */
void bn_lanes_slopes(const struct bn_lanes *lanes, int64_t n, double count, const double *sum_dz,
                     const double *sum_dzx, float *mean_dz, float *slope);

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
