/* optimizer.c - SGD, momentum, Adam, AdamW and RMSprop: one pass over flat buffers
 *
 * Without weight decay its product is left out: 0 * w is no 0 where w is infinite, and a sum with
 * it may turn the sign of a zero. */
#include "libworker/kernel/gradient.h"

#include <string.h>

INLINE void sgd(float *weights, const float *grads, size_t count, const struct kernel_update update,
                int has_decay)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        weights[i] -= update.lr * gradient(grads[i], weights[i], &update, has_decay);
    }
}

KERNEL_CLONES
void kernel_sgd(float *weights, const float *grads, size_t count, const struct kernel_update *u)
{
    if (u->decay == 0.0F) {
        sgd(weights, grads, count, *u, 0);
    } else {
        sgd(weights, grads, count, *u, 1);
    }
}

INLINE void momentum(float *weights, float *velocity, const float *grads, size_t count,
                     const struct kernel_update update, int has_decay, int is_nesterov)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = gradient(grads[i], weights[i], &update, has_decay);
        float v = update.momentum * velocity[i] + g;
        velocity[i] = v;
        weights[i] -= update.lr * (is_nesterov ? g + update.momentum * v : v);
    }
}

KERNEL_CLONES
void kernel_momentum(float *weights, float *velocity, const float *grads, size_t count,
                     const struct kernel_update *u)
{
    const int has_decay = u->decay != 0.0F;
    if (u->nesterov) {
        momentum(weights, velocity, grads, count, *u, has_decay, 1);
    } else if (has_decay) {
        momentum(weights, velocity, grads, count, *u, 1, 0);
    } else {
        momentum(weights, velocity, grads, count, *u, 0, 0);
    }
}

INLINE void adam(float *weights, float *m, float *v, const float *grads, size_t count,
                 const struct kernel_update update, int has_decay, int is_decoupled)
{
    const float rest1 = 1.0F - update.beta1;
    const float rest2 = 1.0F - update.beta2;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = gradient(grads[i], weights[i], &update, has_decay && !is_decoupled);
        float mi = update.beta1 * m[i] + rest1 * g;
        float vi = update.beta2 * v[i] + rest2 * (g * g);
        m[i] = mi;
        v[i] = vi;
        float change = update.lr * mi / (sqrtf(vi) + update.epsilon);
        weights[i] -= has_decay && is_decoupled ? update.decay * weights[i] + change : change;
    }
}

KERNEL_CLONES
void kernel_adam(float *weights, float *m, float *v, const float *grads, size_t count,
                 const struct kernel_update *u)
{
    if (u->decay == 0.0F) {
        adam(weights, m, v, grads, count, *u, 0, 0);
    } else {
        adam(weights, m, v, grads, count, *u, 1, 0);
    }
}

KERNEL_CLONES
void kernel_adamw(float *weights, float *m, float *v, const float *grads, size_t count,
                  const struct kernel_update *u)
{
    if (u->decay == 0.0F) {
        adam(weights, m, v, grads, count, *u, 0, 1);
    } else {
        adam(weights, m, v, grads, count, *u, 1, 1);
    }
}

INLINE void rmsprop(float *weights, float *squares, float *means, float *velocities,
                    const float *grads, size_t count, const struct kernel_update update,
                    int has_decay, int is_centered, int has_momentum)
{
    const float rest = 1.0F - update.alpha;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float g = gradient(grads[i], weights[i], &update, has_decay);
        float s = update.alpha * squares[i] + rest * (g * g);
        float around = s;
        squares[i] = s;
        if (is_centered) {
            float a = update.alpha * means[i] + rest * g;
            means[i] = a;
            around = s - a * a;
            around = around < 0.0F ? 0.0F : around;
        }
        float change = g / (sqrtf(around) + update.epsilon);
        if (has_momentum) {
            change = update.momentum * velocities[i] + change;
            velocities[i] = change;
        }
        weights[i] -= update.lr * change;
    }
}

INLINE void rmsprop_decayed(float *weights, float *squares, float *means, float *velocities,
                            const float *grads, size_t count, const struct kernel_update *u,
                            int is_centered, int has_momentum)
{
    if (u->decay == 0.0F) {
        rmsprop(weights, squares, means, velocities, grads, count, *u, 0, is_centered,
                has_momentum);
    } else {
        rmsprop(weights, squares, means, velocities, grads, count, *u, 1, is_centered,
                has_momentum);
    }
}

KERNEL_CLONES
void kernel_rmsprop(float *weights, float *squares, float *means, float *velocities,
                    const float *grads, size_t count, const struct kernel_update *u)
{
    if (means != NULL && velocities != NULL) {
        rmsprop_decayed(weights, squares, means, velocities, grads, count, u, 1, 1);
    } else if (means != NULL) {
        rmsprop_decayed(weights, squares, means, NULL, grads, count, u, 1, 0);
    } else if (velocities != NULL) {
        rmsprop_decayed(weights, squares, NULL, velocities, grads, count, u, 0, 1);
    } else {
        rmsprop_decayed(weights, squares, NULL, NULL, grads, count, u, 0, 0);
    }
}

KERNEL_CLONES
void kernel_average(float *average, const float *weights, float share, size_t count)
{
    if (share >= 1.0F) {
        memcpy(average, weights, count * sizeof(*average));
        return;
    }
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        average[i] += share * (weights[i] - average[i]);
    }
}
