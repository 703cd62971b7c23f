/* mixup.h - each sample is mixed with another one: with which, and how much it counts itself
 *
 * Zhang et al., 2018: with a number drawn from Beta(alpha, alpha), 0 to 1, x = share x1 + (1 -
 * share) x2, and the labels likewise. All is a function of (seed, epoch, record): which rank has a
 * sample, and in which batch, decides nothing. Pure; any thread. */
#ifndef DATA_MIXUP_H
#define DATA_MIXUP_H

#include <stddef.h>
#include <stdint.h>

/* Above it shares are a half within a tenth. */
#define MIXUP_ALPHA_MAX 100

struct mixup {     /* of a record in an epoch */
    int64_t other; /* the record that it is mixed with; now and then itself */
    float share;   /* what it counts itself */
};

/* alpha above 0, to MIXUP_ALPHA_MAX; rows: of the source. The same bits on every CPU. */
struct mixup mixup_draw(double alpha, uint64_t seed, uint64_t epoch, int64_t row, int64_t rows);

/* a = share a + (1 - share) b, of n values each. */
void mixup_values(float *a, const float *b, size_t n, float share);

#endif
