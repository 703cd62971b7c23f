/* elementwise.c - ReLU, ReLU6, their gradients, sums and products of two tensors, and with numbers
 *
 * ReLU is written as x < 0 ? 0 : x, so that a NaN stays one and shows in the loss. ReLU6 is here
 * for that reason: oneDNN's clip makes 0 of a NaN. */
#include "libworker/kernel/kernel.h"

#include <string.h>

struct sum_pass {
    float *y;
    const float *sums, *x;
    float share;
};

KERNEL_CLONES
static void add_share(const struct sum_pass *pass, size_t at, size_t count)
{
    float *y = pass->y + at;
    const float *x = pass->x + at;
    const float *sums = pass->sums != NULL ? pass->sums + at : NULL;
    const float share = pass->share;
    if (sums == NULL) {
#pragma omp simd
        for (size_t i = 0; i < count; i++) {
            y[i] = share * x[i];
        }
        return;
    }
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        y[i] = sums[i] + share * x[i];
    }
}

static void add_share_piece(const void *arg, size_t at, size_t count)
{
    add_share(arg, at, count);
}

void kernel_add_share(float *y, const float *sums, const float *x, float share, size_t count,
                      int threads)
{
    const struct sum_pass pass = {y, sums, x, share};
    kernel_in_pieces(count, add_share_piece, &pass, threads);
}

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
void kernel_relu6(float *y, const float *x, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float low = x[i] < 0.0F ? 0.0F : x[i];
        y[i] = low > 6.0F ? 6.0F : low;
    }
}

KERNEL_CLONES
void kernel_relu6_backward(float *dx, const float *x, const float *dy, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = dy[i];
        float low = x[i] <= 0.0F ? 0.0F : g;
        dx[i] = x[i] >= 6.0F ? 0.0F : low;
    }
}

void kernel_clear_padding(const struct kernel_layout *layout, float *y, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const struct kernel_layout l = *layout;
    const int64_t last = l.channels - (l.n_blocks - 1) * l.block; /* channels in the last block */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < l.n; n++) {
        float *block = y + ((n + 1) * l.n_blocks - 1) * l.spatial * l.block;
        for (int64_t i = 0; i < l.spatial * l.block; i += l.block) {
            memset(block + i + last, 0, (size_t)(l.block - last) * sizeof(*y));
        }
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

KERNEL_CLONES
void kernel_mul(float *y, const float *a, const float *b, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        y[i] = a[i] * b[i];
    }
}

KERNEL_CLONES
void kernel_linear(float *y, const float *x, float factor, float offset, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        y[i] = factor * x[i] + offset;
    }
}
