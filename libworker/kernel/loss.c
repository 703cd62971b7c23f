/* loss.c - losses with their gradients, and counting right answers */
#include "libworker/kernel/exact_lanes.h"
#include "libworker/kernel/inline.h"
#include "libworker/kernel/kernel.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- softmax cross entropy --------------------------------------------------------------------
 */

enum {
    /* Exponentials on a thread's stack: whole rows of them, or a piece of a row of many classes. */
    TILE = 1024,
    TILE_ROWS = 128,
    LANES = 16, /* floats of the longest vector */
    /* Rows whose losses wait to be summed in the order of rows. */
    ROUND_ROWS = 1024,
};

struct entropy {
    const float *logits;
    const int32_t *labels;
    int64_t n, k;
    float *dlogits;   /* NULL: not wanted */
    double smoothing; /* of a label, which each class has a part of */
    double less;      /* that part, in a gradient */
    const struct kernel_labels *of;
    double weight_sum; /* of all classes */
};

/* A NaN may be passed over: it makes the row's sum one. */
INLINE float max_of(float max, const float *values, int64_t count)
{
    for (int64_t j = 0; j < count; j++) {
        max = values[j] > max ? values[j] : max;
    }
    return max;
}

INLINE double row_max(const float *row, int64_t k)
{
    if (k < 4 * LANES) {
        return (double)max_of(row[0], row, k);
    }
    float max[LANES];
    int64_t j = LANES;
    memcpy(max, row, sizeof(max));
    for (; j + LANES <= k; j += LANES) {
#pragma omp simd
        for (int64_t l = 0; l < LANES; l++) {
            max[l] = row[j + l] > max[l] ? row[j + l] : max[l];
        }
    }
    return (double)max_of(max_of(max[0], max, LANES), row + j, k - j);
}

/* What exact_lanes_exp takes. */
INLINE void less_max(double *exps, const float *row, int64_t count, double max)
{
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        exps[j] = (double)row[j] - max;
    }
}

INLINE double add_up(double sum, const double *values, int64_t count)
{
    for (int64_t j = 0; j < count; j++) {
        sum += values[j];
    }
    return sum;
}

/* d = e / sum / n - less, but for the label's own. Most batches are powers of two: to divide by one
 * is to multiply by its inverse, to the bit, and takes half of the time. */
INLINE void gradient(float *d, const double *exps, int64_t count, double sum,
                     const struct entropy *ce)
{
    const double less = ce->less;
    if ((ce->n & (ce->n - 1)) == 0) {
        const double inverse = 1.0 / (double)ce->n;
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            d[j] = (float)(exps[j] / sum * inverse - less);
        }
        return;
    }
    const double divisor = (double)ce->n;
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        d[j] = (float)(exps[j] / sum / divisor - less);
    }
}

INLINE float label_gradient(double e, double sum, const struct entropy *ce)
{
    return (float)((e / sum - (1.0 - ce->smoothing)) / (double)ce->n - ce->less);
}

/* What the parts of the other classes add to the loss: (x - mean of the row) smoothing. */
INLINE double smoothed(const float *row, float own, const struct entropy *ce)
{
    double sum = 0;
    for (int64_t j = 0; j < ce->k; j++) {
        sum += (double)row[j];
    }
    return ce->smoothing * ((double)own - sum / (double)ce->k);
}

/* Rows that fit on the stack together: one call of exp and log for all of them. */
KERNEL_CLONES
static void short_rows(const struct entropy *ce, int64_t first, int64_t rows, double *losses)
{
    double exps[TILE], max[TILE_ROWS], sums[TILE_ROWS], logs[TILE_ROWS];
    const float *logits = ce->logits + first * ce->k;
    const int32_t *labels = ce->labels + first;
    for (int64_t i = 0; i < rows; i++) {
        max[i] = row_max(logits + i * ce->k, ce->k);
        less_max(exps + i * ce->k, logits + i * ce->k, ce->k, max[i]);
    }
    exact_lanes_exp(exps, rows * ce->k);
    for (int64_t i = 0; i < rows; i++) {
        sums[i] = logs[i] = add_up(0, exps + i * ce->k, ce->k);
    }
    exact_lanes_log(logs, rows);
    for (int64_t i = 0; i < rows; i++) {
        losses[i] = logs[i] - ((double)logits[i * ce->k + labels[i]] - max[i]);
    }
    for (int64_t i = 0; ce->smoothing > 0 && i < rows; i++) {
        losses[i] += smoothed(logits + i * ce->k, logits[i * ce->k + labels[i]], ce);
    }
    for (int64_t i = 0; ce->dlogits != NULL && i < rows; i++) {
        float *d = ce->dlogits + (first + i) * ce->k;
        gradient(d, exps + i * ce->k, ce->k, sums[i], ce);
        d[labels[i]] = label_gradient(exps[i * ce->k + labels[i]], sums[i], ce);
    }
}

/* A row in pieces, whose exponentials are computed once for the sum and once for the gradient. */
KERNEL_CLONES
static double long_row(const struct entropy *ce, int64_t index)
{
    double exps[TILE];
    const float *row = ce->logits + index * ce->k;
    int32_t label = ce->labels[index];
    double max = row_max(row, ce->k);
    double sum = 0;
    for (int64_t at = 0; at < ce->k; at += TILE) {
        int64_t count = ce->k - at < TILE ? ce->k - at : TILE;
        less_max(exps, row + at, count, max);
        exact_lanes_exp(exps, count);
        sum = add_up(sum, exps, count);
    }
    for (int64_t at = 0; ce->dlogits != NULL && at < ce->k; at += TILE) {
        int64_t count = ce->k - at < TILE ? ce->k - at : TILE;
        float *d = ce->dlogits + index * ce->k;
        less_max(exps, row + at, count, max);
        exact_lanes_exp(exps, count);
        gradient(d + at, exps, count, sum, ce);
        if (label >= at && label < at + count) {
            d[label] = label_gradient(exps[label - at], sum, ce);
        }
    }
    double log = sum;
    exact_lanes_log(&log, 1);
    const double loss = log - ((double)row[label] - max);
    return ce->smoothing > 0 ? loss + smoothed(row, row[label], ce) : loss;
}

/* ---- labels that do not count alike ---- */

/* What a row is compared with: its labels' own parts, and one that all classes share by weight. */
struct wanted {
    int32_t label[2];
    double own[2], each;
    double all;        /* of these */
    double weight;     /* of the row */
    const float *soft; /* own parts by class, by the weights of these; NULL: there are labels */
};

INLINE double weight_of(const struct entropy *ce, int64_t class)
{
    return ce->of->weights != NULL ? ce->of->weights[class] : 1;
}

/* Of a class, but for what all share. */
INLINE double soft_part(const struct entropy *ce, const struct wanted *wanted, int64_t class)
{
    return (1 - ce->of->smoothing) * weight_of(ce, class) * (double)wanted->soft[class];
}

INLINE struct wanted wanted_soft(const struct entropy *ce, int64_t index)
{
    struct wanted wanted = {.weight = 1, .soft = ce->of->soft + index * ce->k};
    double counted = 0;
    for (int64_t j = 0; j < ce->k; j++) {
        counted += (double)wanted.soft[j];
        wanted.all += soft_part(ce, &wanted, j);
    }
    wanted.each = counted * ce->of->smoothing / (double)ce->k;
    wanted.all += wanted.each * ce->weight_sum;
    return wanted;
}

INLINE struct wanted wanted_of(const struct entropy *ce, int64_t index)
{
    const struct kernel_labels *of = ce->of;
    if (of->soft != NULL) {
        return wanted_soft(ce, index);
    }
    const double share = of->others != NULL ? (double)of->shares[index] : 1;
    const double shares[2] = {share, 1 - share};
    struct wanted wanted = {.all = 0};
    double counted = 0;
    for (int i = 0; i < (of->others != NULL ? 2 : 1); i++) {
        const int32_t label = (i == 0 ? of->labels : of->others)[index];
        if (of->has_ignored && label == of->ignored) {
            continue;
        }
        const double weight = shares[i] * weight_of(ce, label);
        wanted.label[i] = label;
        wanted.own[i] = (1 - of->smoothing) * weight;
        wanted.all += wanted.own[i];
        wanted.weight += weight;
        counted += shares[i];
    }
    wanted.each = counted * of->smoothing / (double)ce->k;
    wanted.all += wanted.each * ce->weight_sum;
    return wanted;
}

/* Of classes from `first` on: their own parts times their logits, which are less max. */
INLINE double soft_logits(const struct entropy *ce, const struct wanted *wanted, int64_t first,
                          const float *row, int64_t count, double max)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++) {
        sum += soft_part(ce, wanted, first + j) * ((double)row[j] - max);
    }
    return sum;
}

/* Sum of the weights of classes from `first` on times their logits, which are less max. */
INLINE double weighed_logits(const struct entropy *ce, int64_t first, const float *row,
                             int64_t count, double max)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++) {
        sum += weight_of(ce, first + j) * ((double)row[j] - max);
    }
    return sum;
}

/* d = (all e / sum - w each) / n, and of a label less its own part. */
INLINE void wanted_gradient(const struct entropy *ce, const struct wanted *wanted, double max,
                            double sum, const float *row, float *d)
{
    double exps[TILE];
    for (int64_t at = 0; at < ce->k; at += TILE) {
        const int64_t count = ce->k - at < TILE ? ce->k - at : TILE;
        less_max(exps, row + at, count, max);
        exact_lanes_exp(exps, count);
        for (int64_t j = 0; j < count; j++) {
            double part = wanted->each * weight_of(ce, at + j);
            for (int i = 0; i < 2; i++) {
                part += wanted->label[i] == at + j ? wanted->own[i] : 0;
            }
            part += wanted->soft != NULL ? soft_part(ce, wanted, at + j) : 0;
            d[at + j] = (float)((wanted->all * (exps[j] / sum) - part) / (double)ce->n);
        }
    }
}

/* What does not count at all has no loss, whatever its logits are. */
KERNEL_CLONES
static double wanted_row(const struct entropy *ce, int64_t index, double *ret_weight)
{
    const struct wanted wanted = wanted_of(ce, index);
    const float *row = ce->logits + index * ce->k;
    float *d = ce->dlogits != NULL ? ce->dlogits + index * ce->k : NULL;
    *ret_weight = wanted.weight;
    if (wanted.all == 0) {
        if (d != NULL) {
            memset(d, 0, (size_t)ce->k * sizeof(*d));
        }
        return 0;
    }
    double exps[TILE];
    const double max = row_max(row, ce->k);
    double sum = 0;
    double shared = 0;
    double own = 0;
    for (int64_t at = 0; at < ce->k; at += TILE) {
        const int64_t count = ce->k - at < TILE ? ce->k - at : TILE;
        less_max(exps, row + at, count, max);
        exact_lanes_exp(exps, count);
        sum = add_up(sum, exps, count);
        shared += wanted.each > 0 ? weighed_logits(ce, at, row + at, count, max) : 0;
        own += wanted.soft != NULL ? soft_logits(ce, &wanted, at, row + at, count, max) : 0;
    }
    if (d != NULL) {
        wanted_gradient(ce, &wanted, max, sum, row, d);
    }
    double log = sum;
    exact_lanes_log(&log, 1);
    double loss = wanted.all * log - wanted.each * shared - own;
    for (int i = 0; i < 2; i++) {
        loss -= wanted.own[i] > 0 ? wanted.own[i] * ((double)row[wanted.label[i]] - max) : 0;
    }
    return loss;
}

static double wanted_rows(const struct entropy *ce, int threads, double *ret_weight)
{
    double losses[ROUND_ROWS], weights[ROUND_ROWS];
    double loss = 0;
    (void)threads; /* where OpenMP is left out */
    double weight = 0;
    for (int64_t first = 0; first < ce->n; first += ROUND_ROWS) {
        const int64_t rows = ce->n - first < ROUND_ROWS ? ce->n - first : ROUND_ROWS;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (int64_t i = 0; i < rows; i++) {
            losses[i] = wanted_row(ce, first + i, &weights[i]);
        }
        loss = add_up(loss, losses, rows);
        weight = add_up(weight, weights, rows);
    }
    *ret_weight = weight / (double)ce->n;
    return loss / (double)ce->n;
}

/* ---- all rows ---- */

static double all_rows(const struct entropy *ce, int threads)
{
    const int64_t n = ce->n;
    const int64_t k = ce->k;
    const int64_t fitting = k < TILE / TILE_ROWS ? TILE_ROWS : k <= TILE ? TILE / k : 1;
    double losses[ROUND_ROWS];
    double loss = 0;
    for (int64_t first = 0; first < n; first += ROUND_ROWS) {
        const int64_t rows = n - first < ROUND_ROWS ? n - first : ROUND_ROWS;
        /* as many rows for each thread, but no more than fit */
        const int64_t share = (rows + threads - 1) / threads;
        const int64_t tile = share < fitting ? share : fitting;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (int64_t at = 0; at < rows; at += tile) {
            if (k > TILE) {
                losses[at] = long_row(ce, first + at);
            } else {
                short_rows(ce, first + at, rows - at < tile ? rows - at : tile, losses + at);
            }
        }
        loss = add_up(loss, losses, rows);
    }
    return loss / (double)n;
}

double kernel_softmax_ce(const float *logits, const struct kernel_labels *labels, int64_t n,
                         int64_t k, float *dlogits, int threads, double *ret_weight)
{
    const double smoothing = labels->smoothing;
    struct entropy ce = {.logits = logits,
                         .labels = labels->labels,
                         .n = n,
                         .k = k,
                         .dlogits = dlogits,
                         .smoothing = smoothing,
                         .less = smoothing / (double)k / (double)n,
                         .of = labels,
                         .weight_sum = (double)k};
    *ret_weight = 1;
    if (labels->weights == NULL && labels->others == NULL && labels->soft == NULL &&
        !labels->has_ignored) {
        return all_rows(&ce, threads);
    }
    ce.weight_sum = labels->weights != NULL ? add_up(0, labels->weights, k) : ce.weight_sum;
    return wanted_rows(&ce, threads, ret_weight);
}

/* ---- the others -------------------------------------------------------------------------------
 */

double kernel_mse(const float *y, const float *target, int64_t n, int64_t k, float *dy)
{
    double sum = 0;
    double count = (double)(n * k);
    for (int64_t i = 0; i < n * k; i++) {
        double difference = (double)y[i] - (double)target[i];
        sum += difference * difference;
        if (dy != NULL) {
            dy[i] = (float)(2 * difference / count);
        }
    }
    return sum / count;
}

double kernel_l1(const float *y, const float *target, int64_t n, int64_t k, float *dy)
{
    double sum = 0;
    double count = (double)(n * k);
    for (int64_t i = 0; i < n * k; i++) {
        const double d = (double)y[i] - (double)target[i];
        sum += fabs(d);
        if (dy != NULL) {
            dy[i] = (float)((d > 0 ? 1 : d < 0 ? -1 : d) / count); /* a NaN stays one */
        }
    }
    return sum / count;
}

double kernel_huber(const float *y, const float *target, int64_t n, int64_t k, double delta,
                    float *dy)
{
    double sum = 0;
    double count = (double)(n * k);
    for (int64_t i = 0; i < n * k; i++) {
        const double d = (double)y[i] - (double)target[i];
        const double inside = d > delta ? delta : d < -delta ? -delta : d;
        sum += inside * (d - 0.5 * inside); /* of both branches */
        if (dy != NULL) {
            dy[i] = (float)(inside / count);
        }
    }
    return sum / count;
}

/* With e = e^-|y|: the loss is max(y, 0) - t y + log(1 + e), the sigmoid 1 / (1 + e), or e / (1 +
 * e) where y is negative. */
double kernel_bce(const float *y, const float *target, int64_t n, int64_t k, float *dy)
{
    double exps[TILE], logs[TILE];
    double sum = 0;
    double count = (double)(n * k);
    for (int64_t at = 0; at < n * k; at += TILE) {
        const int64_t rest = n * k - at < TILE ? n * k - at : TILE;
        for (int64_t i = 0; i < rest; i++) {
            exps[i] = -fabs((double)y[at + i]);
        }
        exact_lanes_exp(exps, rest);
        for (int64_t i = 0; i < rest; i++) {
            logs[i] = 1 + exps[i];
        }
        exact_lanes_log(logs, rest);
        for (int64_t i = 0; i < rest; i++) {
            const double x = (double)y[at + i];
            const double t = (double)target[at + i];
            sum += (x > 0 ? x : 0) - t * x + logs[i];
            if (dy != NULL) {
                const double sigmoid = (x > 0 ? 1 : exps[i]) / (1 + exps[i]);
                dy[at + i] = (float)((sigmoid - t) / count);
            }
        }
    }
    return sum / count;
}

int64_t kernel_count_sides(const float *logits, const float *target, int64_t n, int64_t k)
{
    int64_t correct = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t wrong = 0;
        for (int64_t j = i * k; j < (i + 1) * k; j++) {
            wrong += (logits[j] > 0) != (target[j] > 0.5F);
        }
        correct += wrong == 0;
    }
    return correct;
}

int64_t kernel_largest(const float *row, int64_t k)
{
    int64_t best = 0;
    for (int64_t j = 1; j < k; j++) {
        best = row[j] > row[best] ? j : best;
    }
    return best;
}

int64_t kernel_count_correct(const float *logits, const struct kernel_labels *labels, int64_t n,
                             int64_t k, int64_t *ret_counted)
{
    int64_t correct = 0;
    int64_t counted = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t label =
            labels->soft != NULL ? kernel_largest(labels->soft + i * k, k) : labels->labels[i];
        const int counts = labels->soft != NULL || !labels->has_ignored || label != labels->ignored;
        correct += counts && kernel_largest(logits + i * k, k) == label;
        counted += counts;
    }
    *ret_counted = counted;
    return correct;
}
