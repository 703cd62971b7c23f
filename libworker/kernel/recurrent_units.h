/* recurrent_units.h - recurrent cells: what a token's gates make of it, and its gradients
 *
 * Of one token of one sample; kernel.h has the formulas. Private to this room. Any thread. */
#ifndef RECURRENT_UNITS_H
#define RECURRENT_UNITS_H

#include "libworker/kernel/kernel.h"

struct recurrent_cell { /* parts of what has several stand `width` behind each other */
    int64_t width;
    const float *x, *h; /* forward: what the gates get of the input, and of the token before */
    const float *last;  /* of the token before: y of a GRU; in backward c of an LSTM */
    const float *dy;    /* backward, as all that begins with d */
    float *carry;       /* ... gradient of y from the token behind; a GRU leaves there what reaches
                           that of the token before without a weight */
    float *cells; /* LSTM: c, in backward its gradient, of the token before and then of this */
    float *kept;  /* gates, then c of an LSTM, what n gets of the token before of a GRU */
    float *y;     /* in backward it is read, of a cell of one gate */
    float *dx;
    float *dh; /* GRU: gradient of what n gets of the token before */
};
void recurrent_units(const struct recurrent_cell *cell, enum kernel_cell kind);
void recurrent_units_backward(const struct recurrent_cell *cell, enum kernel_cell kind);

#endif
