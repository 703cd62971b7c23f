/* lanes.h - sums in so many lanes, which a tree adds up: the same bits on every instruction set */
#ifndef KERNEL_LANES_H
#define KERNEL_LANES_H

#include "libworker/kernel/inline.h"

enum { LANES = 16 };

INLINE double lanes_sum(double lanes[LANES])
{
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; k++) {
            lanes[k] += lanes[k + half];
        }
    }
    return lanes[0];
}

#endif
