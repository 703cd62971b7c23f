/* norm_rows.h - the loops of layer and group normalisation over what lies in a row
 *
 * A line is values one behind the other, all of one group. Lanes are `rows` rows of `width`
 * channels (at most NORM_WIDTH_MAX), `stride` floats apart. Value i of a channel goes into sum i %
 * NORM_SUMS of it, whether its values are a line or a lane, and these sums are added up in one
 * order: no bit depends on the layout. Everything is summed in double.
 *
 * Private to this room. Any thread. */
#ifndef NORM_ROWS_H
#define NORM_ROWS_H

#include <stdint.h>

enum { NORM_WIDTH_MAX = 64, NORM_SUMS = 8, NORM_RANGE = 2048 };

struct norm_read { /* what is summed up: forward x, backward x and dy, perhaps times gamma */
    const float *x;
    const float *dy;    /* NULL: forward */
    const float *gamma; /* of each value; NULL: ones, or not of each value */
};

/* Forward: sums of x - center and of its square. Backward, with dz = dy gamma: of dz and of dz (x -
 * center). */
void norm_line_sums(const struct norm_read *r, int64_t n, float center, double ret[2]);
/* The same of each lane, into a[width] and b[width]. */
void norm_lanes_sums(const struct norm_read *r, int64_t rows, int64_t width, int64_t stride,
                     const float *center, double *a, double *b);
/* Sums of n channels become those of their group: gamma of each channel, or NULL. */
void norm_fold(const double *a, const double *b, const float *gamma, int64_t n, double ret[2]);

/* Of lanes, or of one line: [0]. */
struct norm_lanes {
    float mean[NORM_WIDTH_MAX], scale[NORM_WIDTH_MAX];
    float shift[NORM_WIDTH_MAX];                           /* forward */
    float constant[NORM_WIDTH_MAX], slope[NORM_WIDTH_MAX]; /* backward */
};

/* y = (x - mean) scale + shift */
void norm_line_apply(float *y, const float *x, int64_t n, const struct norm_lanes *l);
void norm_lanes_apply(float *y, const float *x, int64_t rows, int64_t width, int64_t stride,
                      const struct norm_lanes *l);
/* dx = dy scale - (constant + (x - mean) slope) */
void norm_line_dx(float *dx, const float *x, const float *dy, int64_t n,
                  const struct norm_lanes *l);
void norm_lanes_dx(float *dx, const float *x, const float *dy, int64_t rows, int64_t width,
                   int64_t stride, const struct norm_lanes *l);

/* Of a line whose values have a gamma and a beta each (NULL: ones, zeros). */
void norm_values_apply(float *y, const float *x, int64_t n, float mean, float rstd,
                       const float *gamma, const float *beta);
/* dx, and what the line adds to the sums of dy xhat and of dy. */
void norm_values_dx(float *dx, const float *x, const float *dy, int64_t n, float mean, float rstd,
                    float constant, float slope, const float *gamma, double *dgamma, double *dbeta);

#endif
