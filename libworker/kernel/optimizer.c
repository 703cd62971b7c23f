/* optimizer.c - SGD, momentum and Adam: one pass over flat buffers */
#include "libworker/kernel/kernel.h"

#include <math.h>

KERNEL_CLONES
void kernel_sgd(float *weights, const float *grads, size_t count, float scale, float lr)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        weights[i] -= lr * (grads[i] * scale);
    }
}

KERNEL_CLONES
void kernel_momentum(float *weights, float *velocity, const float *grads, size_t count, float scale,
                     float lr, float momentum)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float v = momentum * velocity[i] + grads[i] * scale;
        velocity[i] = v;
        weights[i] -= lr * v;
    }
}

KERNEL_CLONES
void kernel_adam(float *weights, float *m, float *v, const float *grads, size_t count, float scale,
                 float lr_t, float beta1, float beta2, float epsilon)
{
    const float rest1 = 1.0F - beta1;
    const float rest2 = 1.0F - beta2;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = grads[i] * scale;
        float mi = beta1 * m[i] + rest1 * g;
        float vi = beta2 * v[i] + rest2 * (g * g);
        m[i] = mi;
        v[i] = vi;
        weights[i] -= lr_t * mi / (sqrtf(vi) + epsilon);
    }
}
