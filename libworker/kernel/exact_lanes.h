/* exact_lanes.h - proto/exact.h's exp and log over arrays, with the same bits
 *
 * The operations of ms_exact_exp and ms_exact_log in their order, without branches and calls, so
 * that lanes of a vector do them. Those are the definition, against which tests/unit holds these.
 * Private to this room. Any thread. */
#ifndef EXACT_LANES_H
#define EXACT_LANES_H

#include <stdint.h>

/* How a quotient of the series is made; the bits are those of a division in each case. */
enum exact_lanes {
    EXACT_LANES_DIVIDED,
    EXACT_LANES_FUSED_256, /* fused multiply-add, vectors of AVX2 */
    EXACT_LANES_FUSED_512, /* ... of AVX-512 */
};
/* The fastest that this CPU has: it has those before it, too. */
enum exact_lanes exact_lanes_best(void);
void exact_lanes_exp_by(enum exact_lanes how, double *x, int64_t n);

/* By the fastest: x[i] = e^x[i] for x[i] <= 0 or NaN: what is left of a row's logits less their
 * maximum. */
void exact_lanes_exp(double *x, int64_t n);
/* x[i] = ln x[i] for 1 <= x[i] < infinity or NaN: the sum of such exponentials. */
void exact_lanes_log(double *x, int64_t n);

#endif
