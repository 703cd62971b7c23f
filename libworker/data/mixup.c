/* mixup.c - each sample is mixed with another one: with which, and how much it counts itself */
#include "libworker/data/mixup.h"

#include "proto/exact.h"
#include "proto/rng.h"

#include <math.h>

enum {
    PURPOSE = 0x6d697875, /* keeps its streams apart from those of the transforms */
    /* Each is taken with a probability of a half or more: that none is happens to nobody. */
    TRIES_MAX = 200,
};

struct pairs { /* of numbers above 0 and below 1 */
    uint64_t stream, next;
};

static void draw_pair(struct pairs *pairs, double ret[2])
{
    for (int i = 0; i < 2; i++) {
        do {
            ret[i] = ms_rng_unit(pairs->stream, pairs->next++);
        } while (ret[i] == 0);
    }
}

/* Joehnk, 1964, for alpha up to 1: X / (X + Y) of X = U^(1 / alpha) and Y = V^(1 / alpha), where
 * their sum is at most 1. By logarithms, for they may be too small for a double. */
static double draw_steep(double alpha, struct pairs *pairs)
{
    double u[2];
    for (int i = 0; i < TRIES_MAX; i++) {
        draw_pair(pairs, u);
        const double x = ms_exact_log(u[0]) / alpha;
        const double y = ms_exact_log(u[1]) / alpha;
        if (isinf(x) && isinf(y)) { /* too small an alpha for their difference, too */
            return u[0] > u[1] ? 1 : 0;
        }
        if (ms_exact_exp(x) + ms_exact_exp(y) <= 1) {
            const double e = ms_exact_exp(-fabs(y - x));
            return y > x ? e / (1 + e) : 1 / (1 + e);
        }
    }
    return 0.5;
}

/* Cheng, 1978 (algorithm BB), for alpha above 1. */
static double draw_round(double alpha, struct pairs *pairs)
{
    const double beta = 1 / sqrt(alpha);
    const double gamma = alpha + sqrt(alpha);
    const double log_4 = 1.3862943611198906;
    double u[2];
    for (int i = 0; i < TRIES_MAX; i++) {
        draw_pair(pairs, u);
        const double v = beta * ms_exact_log(u[0] / (1 - u[0]));
        const double w = alpha * ms_exact_exp(v);
        const double r = gamma * v - log_4;
        const double t = ms_exact_log(u[0] * u[0] * u[1]);
        if (r + 2 * alpha * ms_exact_log(2 * alpha / (alpha + w)) >= t) {
            return w / (alpha + w);
        }
    }
    return 0.5;
}

struct mixup mixup_draw(double alpha, uint64_t seed, uint64_t epoch, int64_t row, int64_t rows)
{
    const uint64_t stream = ms_rng_stream(ms_rng_stream(seed, epoch, PURPOSE), (uint64_t)row, 0);
    struct pairs pairs = {stream, 1};
    const double share = alpha <= 1 ? draw_steep(alpha, &pairs) : draw_round(alpha, &pairs);
    return (struct mixup){.other = (int64_t)ms_rng_below(stream, 0, (uint64_t)rows),
                          .share = (float)share};
}

void mixup_values(float *a, const float *b, size_t n, float share)
{
    const float rest = 1 - share;
    for (size_t i = 0; i < n; i++) {
        a[i] = share * a[i] + rest * b[i];
    }
}
