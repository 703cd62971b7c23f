/* batch_norm_rows.c - the loops over one chunk of a batch norm's slice
 *
 * Each loop is written once as an inline function and expanded for 16 lanes (nChw16c, nchw), 8
 * lanes (nChw8c) and any number (nhwc), so that the compiler knows the width where it matters. */
#include "libworker/kernel/batch_norm_rows.h"
#include "libworker/kernel/inline.h"
#include "libworker/kernel/kernel.h"

#include <math.h>
#include <stddef.h>

/* Expands call(width) for the widths worth an own copy. */
#define BY_WIDTH(width, call)                                                                      \
    do {                                                                                           \
        if ((width) == 16) {                                                                       \
            call(16);                                                                              \
        } else if ((width) == 8) {                                                                 \
            call(8);                                                                               \
        } else {                                                                                   \
            call(width);                                                                           \
        }                                                                                          \
    } while (0)

/* ---- lanes ----------------------------------------------------------------------------------- */

KERNEL_CLONES
void bn_lanes_set(struct bn_lanes *lanes, int64_t n, const float *mean, const float *variance,
                  const float *gamma, const float *beta, double epsilon)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double rstd = 1.0 / sqrt((double)variance[i] + epsilon);
        lanes->rstd[i] = rstd;
        lanes->mean[i] = mean[i];
        lanes->scale[i] = (float)((double)gamma[i] * rstd);
        lanes->shift[i] = beta[i];
    }
}

KERNEL_CLONES
void bn_lanes_moments(int64_t n, double before, double rows, const float *center,
                      const float *first, const float *second, double *mean, double *m2)
{
    double weight = rows / (before + rows);
    double product = before * weight;
    double inverse = 1.0 / rows;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double shift = (double)first[i] * inverse;
        double own = (double)second[i] - (double)first[i] * shift;
        double delta = (double)center[i] + shift - mean[i];
        mean[i] += delta * weight;
        m2[i] += own + delta * delta * product;
    }
}

KERNEL_CLONES
void bn_lanes_sums(int64_t n, const float *dz, const float *dzx, double *sum_dz, double *sum_dzx)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        sum_dz[i] += (double)dz[i];
        sum_dzx[i] += (double)dzx[i];
    }
}

KERNEL_CLONES
void bn_lanes_slopes(const struct bn_lanes *lanes, int64_t n, double count, const double *sum_dz,
                     const double *sum_dzx, float *mean_dz, float *slope)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        mean_dz[i] = (float)(sum_dz[i] / count);
        slope[i] = (float)(sum_dzx[i] * lanes->rstd[i] * lanes->rstd[i] / count);
    }
}

/* ---- moments --------------------------------------------------------------------------------- */

/* Four sums a lane: an addition need not wait for the one before. */
INLINE void centers(const float *x, int64_t rows, int64_t width, int64_t stride,
                    float *restrict center)
{
    float s0[BN_WIDTH_MAX], s1[BN_WIDTH_MAX], s2[BN_WIDTH_MAX], s3[BN_WIDTH_MAX];
    float inverse = 1.0F / (float)rows;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        s0[i] = s1[i] = s2[i] = s3[i] = 0.0F;
    }
    int64_t r = 0;
    for (; r + 3 < rows; r += 4) {
        const float *p = x + r * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            s0[i] += p[i];
            s1[i] += p[stride + i];
            s2[i] += p[2 * stride + i];
            s3[i] += p[3 * stride + i];
        }
    }
    for (; r < rows; r++) {
        const float *p = x + r * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            s0[i] += p[i];
        }
    }
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        center[i] = ((s0[i] + s1[i]) + (s2[i] + s3[i])) * inverse;
    }
}

INLINE void distances(const float *x, int64_t rows, int64_t width, int64_t stride,
                      const float *restrict center, float *restrict first, float *restrict second)
{
    float m[BN_WIDTH_MAX], f0[BN_WIDTH_MAX], f1[BN_WIDTH_MAX], q0[BN_WIDTH_MAX], q1[BN_WIDTH_MAX];
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        m[i] = center[i];
        f0[i] = f1[i] = q0[i] = q1[i] = 0.0F;
    }
    int64_t r = 0;
    for (; r + 1 < rows; r += 2) {
        const float *p = x + r * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float d0 = p[i] - m[i];
            float d1 = p[stride + i] - m[i];
            f0[i] += d0;
            f1[i] += d1;
            q0[i] += d0 * d0;
            q1[i] += d1 * d1;
        }
    }
    for (; r < rows; r++) {
        const float *p = x + r * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float d = p[i] - m[i];
            f0[i] += d;
            q0[i] += d * d;
        }
    }
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        first[i] = f0[i] + f1[i];
        second[i] = q0[i] + q1[i];
    }
}

KERNEL_CLONES
void bn_rows_moments(const float *x, int64_t rows, int64_t width, int64_t stride, float *center,
                     float *first, float *second)
{
#define MOMENTS(w)                                                                                 \
    centers(x, rows, w, stride, center);                                                           \
    distances(x, rows, w, stride, center, first, second)
    BY_WIDTH(width, MOMENTS);
#undef MOMENTS
}

/* ---- forward --------------------------------------------------------------------------------- */

INLINE void apply(const struct bn_rows *rows, int64_t width, const float *x, const float *residual,
                  int relu, float *y)
{
    const float *restrict mean = rows->lanes->mean;
    const float *restrict scale = rows->lanes->scale;
    const float *restrict shift = rows->lanes->shift;
    int64_t n = rows->rows;
    int64_t stride = rows->stride;
    for (int64_t r = 0; r < n; r++) {
        int64_t at = r * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float z = (x[at + i] - mean[i]) * scale[i] + shift[i];
            z = residual != NULL ? z + residual[at + i] : z;
            y[at + i] = relu && z < 0.0F ? 0.0F : z; /* a NaN stays one and shows in the loss */
        }
    }
}

KERNEL_CLONES
void bn_rows_apply(const struct bn_rows *rows, const float *x, const float *residual, int relu,
                   float *y)
{
#define APPLY(w)                                                                                   \
    if (residual == NULL) {                                                                        \
        if (relu) {                                                                                \
            apply(rows, w, x, NULL, 1, y);                                                         \
        } else {                                                                                   \
            apply(rows, w, x, NULL, 0, y);                                                         \
        }                                                                                          \
    } else if (relu) {                                                                             \
        apply(rows, w, x, residual, 1, y);                                                         \
    } else {                                                                                       \
        apply(rows, w, x, residual, 0, y);                                                         \
    }
    BY_WIDTH(rows->width, APPLY);
#undef APPLY
}

/* ---- backward -------------------------------------------------------------------------------- */

INLINE float masked(float dy, float x, float y, float mean, float scale, float shift,
                    enum kernel_mask mask)
{
    if (mask == KERNEL_MASK_NONE) {
        return dy;
    }
    float z = mask == KERNEL_MASK_X ? (x - mean) * scale + shift : y;
    return z > 0.0F ? dy : 0.0F;
}

struct sums { /* even and odd rows apart: shorter chains of additions, and less rounding */
    float dz[2][BN_WIDTH_MAX], dzx[2][BN_WIDTH_MAX];
};

INLINE void sums_row(const struct bn_rows *rows, int64_t width, int64_t at, const float *x,
                     const float *y, const float *dy, enum kernel_mask mask, float *dz_out,
                     float *restrict s, float *restrict t)
{
    const float *restrict mean = rows->lanes->mean;
    const float *restrict scale = rows->lanes->scale;
    const float *restrict shift = rows->lanes->shift;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        float xi = x[at + i];
        float dz = masked(dy[at + i], xi, mask == KERNEL_MASK_Y ? y[at + i] : 0.0F, mean[i],
                          scale[i], shift[i], mask);
        if (dz_out != NULL) {
            dz_out[at + i] = dz;
        }
        s[i] += dz;
        t[i] += dz * (xi - mean[i]);
    }
}

INLINE void sums(const struct bn_rows *rows, int64_t width, const float *x, const float *y,
                 const float *dy, enum kernel_mask mask, float *dz_out, float *restrict sum_dz,
                 float *restrict sum_dzx)
{
    struct sums sum;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        sum.dz[0][i] = sum.dz[1][i] = sum.dzx[0][i] = sum.dzx[1][i] = 0.0F;
    }
    int64_t n = rows->rows;
    int64_t stride = rows->stride;
    int64_t r = 0;
    for (; r + 1 < n; r += 2) {
        sums_row(rows, width, r * stride, x, y, dy, mask, dz_out, sum.dz[0], sum.dzx[0]);
        sums_row(rows, width, (r + 1) * stride, x, y, dy, mask, dz_out, sum.dz[1], sum.dzx[1]);
    }
    if (r < n) {
        sums_row(rows, width, r * stride, x, y, dy, mask, dz_out, sum.dz[0], sum.dzx[0]);
    }
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        sum_dz[i] = sum.dz[0][i] + sum.dz[1][i];
        sum_dzx[i] = sum.dzx[0][i] + sum.dzx[1][i];
    }
}

KERNEL_CLONES
void bn_rows_sums(const struct bn_rows *rows, const float *x, const float *y, const float *dy,
                  enum kernel_mask mask, float *dz_out, float *sum_dz, float *sum_dzx)
{
#define SUMS_MASK(w, m)                                                                            \
    if (dz_out == NULL) {                                                                          \
        sums(rows, w, x, y, dy, m, NULL, sum_dz, sum_dzx);                                         \
    } else {                                                                                       \
        sums(rows, w, x, y, dy, m, dz_out, sum_dz, sum_dzx);                                       \
    }
#define SUMS(w)                                                                                    \
    if (mask == KERNEL_MASK_NONE) {                                                                \
        SUMS_MASK(w, KERNEL_MASK_NONE)                                                             \
    } else if (mask == KERNEL_MASK_X) {                                                            \
        SUMS_MASK(w, KERNEL_MASK_X)                                                                \
    } else {                                                                                       \
        SUMS_MASK(w, KERNEL_MASK_Y)                                                                \
    }
    BY_WIDTH(rows->width, SUMS);
#undef SUMS
#undef SUMS_MASK
}

INLINE void input_gradient(const struct bn_rows *rows, int64_t width, const float *x,
                           const float *y, const float *dy, enum kernel_mask mask,
                           const float *restrict mean_dz, const float *restrict slope, float *dx)
{
    const float *restrict mean = rows->lanes->mean;
    const float *restrict scale = rows->lanes->scale;
    const float *restrict shift = rows->lanes->shift;
    int64_t n = rows->rows;
    int64_t stride = rows->stride;
    for (int64_t r = 0; r < n; r++) {
        int64_t at = r * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float xi = x[at + i];
            float dz = masked(dy[at + i], xi, mask == KERNEL_MASK_Y ? y[at + i] : 0.0F, mean[i],
                              scale[i], shift[i], mask);
            dx[at + i] = scale[i] * (dz - mean_dz[i] - (xi - mean[i]) * slope[i]);
        }
    }
}

KERNEL_CLONES
void bn_rows_dx(const struct bn_rows *rows, const float *x, const float *y, const float *dy,
                enum kernel_mask mask, const float *mean_dz, const float *slope, float *dx)
{
#define DX(w)                                                                                      \
    if (mask == KERNEL_MASK_NONE) {                                                                \
        input_gradient(rows, w, x, y, dy, KERNEL_MASK_NONE, mean_dz, slope, dx);                   \
    } else if (mask == KERNEL_MASK_X) {                                                            \
        input_gradient(rows, w, x, y, dy, KERNEL_MASK_X, mean_dz, slope, dx);                      \
    } else {                                                                                       \
        input_gradient(rows, w, x, y, dy, KERNEL_MASK_Y, mean_dz, slope, dx);                      \
    }
    BY_WIDTH(rows->width, DX);
#undef DX
}
