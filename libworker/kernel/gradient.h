/* gradient.h - what optimizers do first with the sum of a gradient */
#ifndef KERNEL_GRADIENT_H
#define KERNEL_GRADIENT_H

#include "libworker/kernel/inline.h"
#include "libworker/kernel/kernel.h"

#include <math.h>

/* A NaN stays one: a comparison with it is false. */
INLINE float gradient(float grad, float weight, const struct kernel_update *u, int has_decay)
{
    const float most = u->clip > 0.0F ? u->clip : INFINITY;
    float g = grad * u->scale;
    g = g > most ? most : g;
    g = g < -most ? -most : g;
    return has_decay ? g + u->decay * weight : g;
}

#endif
