/* elementwise.c - ReLU, its gradient, and sums of two tensors
 *
 * ReLU is written as x < 0 ? 0 : x, so that a NaN stays one and shows in the loss. */
#include "libworker/kernel/kernel.h"

KERNEL_CLONES
void kernel_relu(float *y, const float *x, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        y[i] = x[i] < 0.0F ? 0.0F : x[i];
    }
}

KERNEL_CLONES
void kernel_relu_backward(float *dx, const float *y, const float *dy, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = dy[i]; /* loaded whether used or not: no branch */
        dx[i] = y[i] > 0.0F ? g : 0.0F;
    }
}

KERNEL_CLONES
void kernel_add(float *y, const float *a, const float *b, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        y[i] = a[i] + b[i];
    }
}

KERNEL_CLONES
void kernel_add_relu(float *y, const float *a, const float *b, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float sum = a[i] + b[i];
        y[i] = sum < 0.0F ? 0.0F : sum;
    }
}
