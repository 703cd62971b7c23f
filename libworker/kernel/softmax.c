/* softmax.c - softmax of rows and of attention's scores, and its gradient
 *
 * Sums are in double, value i of a row in sum i % SUMS, and these in one order: no bit depends on
 * how many rows a thread takes at a time, or how long the pieces of a long one are. */
#include "libworker/kernel/exact_lanes.h"
#include "libworker/kernel/inline.h"
#include "libworker/kernel/kernel.h"

#include <string.h>

enum {
    TILE = 1024, /* exponentials on a thread's stack: whole rows, or a piece of a long one */
    SUMS = 8,    /* TILE is a multiple of it */
};

INLINE double total(const double s[SUMS])
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* A NaN may be passed over: it makes the row's sum one. */
INLINE double row_max(const float *x, int64_t k)
{
    float max[SUMS];
    int64_t i = 0;
    for (int l = 0; l < SUMS; l++) {
        max[l] = x[0];
    }
    for (; i + SUMS <= k; i += SUMS) {
#pragma omp simd
        for (int l = 0; l < SUMS; l++) {
            max[l] = x[i + l] > max[l] ? x[i + l] : max[l];
        }
    }
    for (; i < k; i++) {
        max[0] = x[i] > max[0] ? x[i] : max[0];
    }
    for (int l = 1; l < SUMS; l++) {
        max[0] = max[l] > max[0] ? max[l] : max[0];
    }
    return (double)max[0];
}

INLINE void less_max(double *exps, const float *x, int64_t n, double max)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        exps[i] = (double)x[i] - max;
    }
}

INLINE void add_up(const double *values, int64_t n, double sums[SUMS])
{
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS) {
#pragma omp simd
        for (int l = 0; l < SUMS; l++) {
            sums[l] += values[i + l];
        }
    }
    for (int l = 0; i + l < n; l++) {
        sums[l] += values[i + l];
    }
}

INLINE void divide(float *y, const double *exps, int64_t n, double sum)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        y[i] = (float)(exps[i] / sum);
    }
}

struct rows {
    const float *x; /* backward: y */
    const float *dy;
    float *y; /* backward: dx */
    int64_t k, stride;
};

static void clear_rest(const struct rows *r, int64_t row)
{
    memset(r->y + row * r->stride + r->k, 0, (size_t)(r->stride - r->k) * sizeof(float));
}

/* Rows [first, first + n), whose exponentials fit on the stack together. */
KERNEL_CLONES
static void short_rows(const struct rows *r, int64_t first, int64_t n)
{
    double exps[TILE];
    for (int64_t i = 0; i < n; i++) {
        const float *x = r->x + (first + i) * r->stride;
        less_max(exps + i * r->k, x, r->k, row_max(x, r->k));
    }
    exact_lanes_exp(exps, n * r->k);
    for (int64_t i = 0; i < n; i++) {
        double sums[SUMS] = {0};
        add_up(exps + i * r->k, r->k, sums);
        divide(r->y + (first + i) * r->stride, exps + i * r->k, r->k, total(sums));
        clear_rest(r, first + i);
    }
}

/* A row in pieces, whose exponentials are computed once for the sum and once for the result. */
KERNEL_CLONES
static void long_row(const struct rows *r, int64_t row)
{
    double exps[TILE];
    double sums[SUMS] = {0};
    const float *x = r->x + row * r->stride;
    float *y = r->y + row * r->stride;
    const double max = row_max(x, r->k);
    for (int64_t at = 0; at < r->k; at += TILE) {
        const int64_t n = r->k - at < TILE ? r->k - at : TILE;
        less_max(exps, x + at, n, max);
        exact_lanes_exp(exps, n);
        add_up(exps, n, sums);
    }
    const double sum = total(sums);
    for (int64_t at = 0; at < r->k; at += TILE) {
        const int64_t n = r->k - at < TILE ? r->k - at : TILE;
        less_max(exps, x + at, n, max);
        exact_lanes_exp(exps, n);
        divide(y + at, exps, n, sum);
    }
    clear_rest(r, row);
}

void kernel_softmax(const struct kernel_layout *layout, const float *x, float *y, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const struct rows r = {x, NULL, y, layout->channels, layout->block};
    const int64_t rows = layout->n;
    const int64_t tile = r.k <= TILE ? TILE / r.k : 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < rows; first += tile) {
        if (r.k > TILE) {
            long_row(&r, first);
        } else {
            short_rows(&r, first, rows - first < tile ? rows - first : tile);
        }
    }
}

KERNEL_CLONES
static void row_backward(const struct rows *r, int64_t row)
{
    const float *y = r->x + row * r->stride;
    const float *dy = r->dy + row * r->stride;
    float *dx = r->y + row * r->stride;
    double sums[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= r->k; i += SUMS) {
#pragma omp simd
        for (int l = 0; l < SUMS; l++) {
            sums[l] += (double)y[i + l] * (double)dy[i + l];
        }
    }
    for (int l = 0; i + l < r->k; l++) {
        sums[l] += (double)y[i + l] * (double)dy[i + l];
    }
    const double sum = total(sums);
#pragma omp simd
    for (int64_t j = 0; j < r->k; j++) {
        dx[j] = (float)((double)y[j] * ((double)dy[j] - sum));
    }
    clear_rest(r, row);
}

void kernel_softmax_backward(const struct kernel_layout *layout, const float *y, const float *dy,
                             float *dx, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const struct rows r = {y, dy, dx, layout->channels, layout->block};
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t row = 0; row < layout->n; row++) {
        row_backward(&r, row);
    }
}

/* ---- scores of attention: rows that do not see all of their values ---- */

static struct rows row_of(const struct kernel_scores *s, const float *p, float *x, int64_t row)
{
    const int64_t at = row * s->stride;
    return (struct rows){p + at, x + at, x + at, s->seen + row * s->more, s->width};
}

/* e^(x - max) / sum, in pieces. */
KERNEL_CLONES
static void apply(const struct rows *r, double max, double sum)
{
    double exps[TILE];
    for (int64_t at = 0; at < r->k; at += TILE) {
        const int64_t n = r->k - at < TILE ? r->k - at : TILE;
        less_max(exps, r->x + at, n, max);
        exact_lanes_exp(exps, n);
        divide(r->y + at, exps, n, sum);
    }
    clear_rest(r, 0);
}

/* The sum of e^(x - max); of a row of one piece they stay in exps. */
KERNEL_CLONES
static double sum_of(const struct rows *r, double max, double exps[TILE])
{
    double sums[SUMS] = {0};
    for (int64_t at = 0; at < r->k; at += TILE) {
        const int64_t n = r->k - at < TILE ? r->k - at : TILE;
        less_max(exps, r->x + at, n, max);
        exact_lanes_exp(exps, n);
        add_up(exps, n, sums);
    }
    return total(sums);
}

KERNEL_CLONES
static void softmax_row(const struct rows *r, float stats[2])
{
    double exps[TILE];
    const double max = row_max(r->x, r->k);
    stats[0] = (float)max;
    stats[1] = (float)sum_of(r, max, exps); /* rounded here: again gives the same */
    if (r->k <= TILE) {
        divide(r->y, exps, r->k, (double)stats[1]);
        clear_rest(r, 0);
    } else {
        apply(r, max, (double)stats[1]);
    }
}

void kernel_scores_softmax(const struct kernel_scores *scores, float *x)
{
    for (int64_t i = 0; i < scores->rows; i++) {
        const struct rows r = row_of(scores, x, x, i);
        softmax_row(&r, &scores->stats[2 * i]);
    }
}

void kernel_scores_again(const struct kernel_scores *scores, float *x)
{
    for (int64_t i = 0; i < scores->rows; i++) {
        const struct rows r = row_of(scores, x, x, i);
        apply(&r, (double)scores->stats[2 * i], (double)scores->stats[2 * i + 1]);
    }
}

void kernel_scores_backward(const struct kernel_scores *scores, const float *p, float *dp)
{
    for (int64_t i = 0; i < scores->rows; i++) {
        const struct rows r = row_of(scores, p, dp, i);
        row_backward(&r, 0);
    }
}
