/* norm_rows.c - the loops of layer and group normalisation */
#include "libworker/kernel/norm_rows.h"

#include "libworker/kernel/inline.h"
#include "libworker/kernel/kernel.h"

#include <stddef.h>
#include <string.h>

enum reading { READ_X, READ_DY, READ_DZ };

/* Adds value i's two terms. */
INLINE void add_terms(const struct norm_read *r, int64_t i, float center, enum reading reading,
                      double *a, double *b)
{
    const double distance = (double)r->x[i] - (double)center;
    if (reading == READ_X) {
        *a += distance;
        *b += distance * distance;
        return;
    }
    const double dy = (double)r->dy[i];
    const double dz = reading == READ_DZ ? dy * (double)r->gamma[i] : dy;
    *a += dz;
    *b += dz * distance;
}

/* The one order in which the sums of a channel, or of the channels of a group, are added up. */
INLINE double total(const double s[NORM_SUMS])
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* ---- lines ---- */

INLINE void line_sums(const struct norm_read *r, int64_t n, float center, enum reading reading,
                      double ret[2])
{
    double a[NORM_SUMS] = {0};
    double b[NORM_SUMS] = {0};
    int64_t i = 0;
    for (; i + NORM_SUMS <= n; i += NORM_SUMS) {
#pragma omp simd
        for (int l = 0; l < NORM_SUMS; l++) {
            add_terms(r, i + l, center, reading, &a[l], &b[l]);
        }
    }
    for (int l = 0; i + l < n; l++) {
        add_terms(r, i + l, center, reading, &a[l], &b[l]);
    }
    ret[0] = total(a);
    ret[1] = total(b);
}

KERNEL_CLONES
void norm_line_sums(const struct norm_read *r, int64_t n, float center, double ret[2])
{
    if (r->dy == NULL) {
        line_sums(r, n, center, READ_X, ret);
    } else if (r->gamma == NULL) {
        line_sums(r, n, center, READ_DY, ret);
    } else {
        line_sums(r, n, center, READ_DZ, ret);
    }
}

KERNEL_CLONES
void norm_line_apply(float *y, const float *x, int64_t n, const struct norm_lanes *l)
{
    const float mean = l->mean[0], scale = l->scale[0], shift = l->shift[0];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        y[i] = (x[i] - mean) * scale + shift;
    }
}

KERNEL_CLONES
void norm_line_dx(float *dx, const float *x, const float *dy, int64_t n, const struct norm_lanes *l)
{
    const float mean = l->mean[0], scale = l->scale[0];
    const float constant = l->constant[0], slope = l->slope[0];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        dx[i] = dy[i] * scale - (constant + (x[i] - mean) * slope);
    }
}

/* ---- lanes ---- */

/* One row after the other, as memory is read best: the sums are in the nearest cache. */
INLINE void lanes_sums(const struct norm_read *r, int64_t rows, int64_t width, int64_t stride,
                       const float *center, enum reading reading, double *ret_a, double *ret_b)
{
    double a[NORM_SUMS][NORM_WIDTH_MAX], b[NORM_SUMS][NORM_WIDTH_MAX], c[NORM_WIDTH_MAX];
    for (int64_t i = 0; i < width; i++) {
        c[i] = (double)center[i];
        for (int p = 0; p < NORM_SUMS; p++) {
            a[p][i] = b[p][i] = 0;
        }
    }
    for (int64_t s = 0; s < rows; s++) {
        const float *x = r->x + s * stride;
        const float *dy = reading == READ_X ? x : r->dy + s * stride;
        const float *gamma = reading == READ_DZ ? r->gamma + s * stride : x;
        double *restrict sum_a = a[s % NORM_SUMS];
        double *restrict sum_b = b[s % NORM_SUMS];
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            const double distance = (double)x[i] - c[i];
            const double dz = reading == READ_X    ? distance
                              : reading == READ_DZ ? (double)dy[i] * (double)gamma[i]
                                                   : (double)dy[i];
            sum_a[i] += dz;
            sum_b[i] += dz * distance;
        }
    }
    for (int64_t i = 0; i < width; i++) {
        ret_a[i] = ((a[0][i] + a[4][i]) + (a[2][i] + a[6][i])) +
                   ((a[1][i] + a[5][i]) + (a[3][i] + a[7][i]));
        ret_b[i] = ((b[0][i] + b[4][i]) + (b[2][i] + b[6][i])) +
                   ((b[1][i] + b[5][i]) + (b[3][i] + b[7][i]));
    }
}

/* Blocks of 16 and 8 channels get loops of that length. */
INLINE void lanes_sums_of(const struct norm_read *r, int64_t rows, int64_t width, int64_t stride,
                          const float *center, enum reading reading, double *a, double *b)
{
    if (width == 16) {
        lanes_sums(r, rows, 16, stride, center, reading, a, b);
    } else if (width == 8) {
        lanes_sums(r, rows, 8, stride, center, reading, a, b);
    } else {
        lanes_sums(r, rows, width, stride, center, reading, a, b);
    }
}

KERNEL_CLONES
void norm_lanes_sums(const struct norm_read *r, int64_t rows, int64_t width, int64_t stride,
                     const float *center, double *a, double *b)
{
    if (r->dy == NULL) {
        lanes_sums_of(r, rows, width, stride, center, READ_X, a, b);
    } else if (r->gamma == NULL) {
        lanes_sums_of(r, rows, width, stride, center, READ_DY, a, b);
    } else {
        lanes_sums_of(r, rows, width, stride, center, READ_DZ, a, b);
    }
}

KERNEL_CLONES
void norm_fold(const double *a, const double *b, const float *gamma, int64_t n, double ret[2])
{
    double x[NORM_SUMS] = {0};
    double y[NORM_SUMS] = {0};
    for (int64_t i = 0; i < n; i++) {
        const double g = gamma != NULL ? (double)gamma[i] : 1.0;
        x[i % NORM_SUMS] += g * a[i];
        y[i % NORM_SUMS] += g * b[i];
    }
    ret[0] = total(x);
    ret[1] = total(y);
}

KERNEL_CLONES
void norm_lanes_apply(float *y, const float *x, int64_t rows, int64_t width, int64_t stride,
                      const struct norm_lanes *l)
{
    for (int64_t s = 0; s < rows; s++) {
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            y[s * stride + i] = (x[s * stride + i] - l->mean[i]) * l->scale[i] + l->shift[i];
        }
    }
}

KERNEL_CLONES
void norm_lanes_dx(float *dx, const float *x, const float *dy, int64_t rows, int64_t width,
                   int64_t stride, const struct norm_lanes *l)
{
    for (int64_t s = 0; s < rows; s++) {
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            const int64_t at = s * stride + i;
            const float off = l->constant[i] + (x[at] - l->mean[i]) * l->slope[i];
            dx[at] = dy[at] * l->scale[i] - off;
        }
    }
}

/* ---- values with a gamma and a beta each ---- */

KERNEL_CLONES
void norm_values_apply(float *y, const float *x, int64_t n, float mean, float rstd,
                       const float *gamma, const float *beta)
{
    if (gamma == NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            y[i] = (x[i] - mean) * rstd;
        }
    } else if (beta == NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            y[i] = (x[i] - mean) * rstd * gamma[i];
        }
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
        }
    }
}

KERNEL_CLONES
void norm_values_dx(float *dx, const float *x, const float *dy, int64_t n, float mean, float rstd,
                    float constant, float slope, const float *gamma, double *dgamma, double *dbeta)
{
    if (gamma == NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            dx[i] = dy[i] * rstd - (constant + (x[i] - mean) * slope);
        }
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float g = dy[i];
        const float distance = x[i] - mean;
        dgamma[i] += (double)(g * (distance * rstd));
        dbeta[i] += (double)g;
        dx[i] = g * (gamma[i] * rstd) - (constant + distance * slope);
    }
}
