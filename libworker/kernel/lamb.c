/* lamb.c - LAMB: a step whose length goes by that of the parameter
 *
 * Two passes: the first one makes the moments, and the lengths of the weights and of what is to be
 * taken from them; the second one makes that again, from moments and weights, and takes it. */
#include "libworker/kernel/gradient.h"
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/lanes.h"

struct pass {
    float *weights, *m, *v;
    const float *grads;
    const struct kernel_update *u;
    double *partial; /* two a piece: of weights, of changes */
    float rate;      /* of the second pass */
};

INLINE float change_of(float m, float v, float weight, const struct kernel_update *u)
{
    const float step = m * u->m_scale / (sqrtf(v) * u->root_scale + u->epsilon);
    return u->decay == 0.0F ? step : step + u->decay * weight;
}

INLINE float moments(const struct pass *pass, size_t i)
{
    const struct kernel_update *u = pass->u;
    const float g = gradient(pass->grads[i], 0.0F, u, 0);
    const float m = u->beta1 * pass->m[i] + (1.0F - u->beta1) * g;
    const float v = u->beta2 * pass->v[i] + (1.0F - u->beta2) * (g * g);
    pass->m[i] = m;
    pass->v[i] = v;
    return change_of(m, v, pass->weights[i], u);
}

KERNEL_CLONES
static void measure(const struct pass *pass, size_t begin, size_t count)
{
    double weights[LANES] = {0};
    double changes[LANES] = {0};
    const size_t end = begin + count;
    size_t at = begin;
    for (; at + LANES <= end; at += LANES) {
#pragma omp simd
        for (int k = 0; k < LANES; k++) {
            const double change = (double)moments(pass, at + k);
            const double weight = (double)pass->weights[at + k];
            weights[k] += weight * weight;
            changes[k] += change * change;
        }
    }
    for (int k = 0; at < end; at++, k++) {
        const double change = (double)moments(pass, at);
        const double weight = (double)pass->weights[at];
        weights[k] += weight * weight;
        changes[k] += change * change;
    }
    pass->partial[begin / KERNEL_PIECE * 2] = lanes_sum(weights);
    pass->partial[begin / KERNEL_PIECE * 2 + 1] = lanes_sum(changes);
}

KERNEL_CLONES
static void take(const struct pass *pass, size_t begin, size_t count)
{
    const float rate = pass->rate;
#pragma omp simd
    for (size_t i = begin; i < begin + count; i++) {
        const float weight = pass->weights[i];
        pass->weights[i] = weight - rate * change_of(pass->m[i], pass->v[i], weight, pass->u);
    }
}

static void measure_piece(const void *arg, size_t at, size_t count)
{
    measure(arg, at, count);
}

static void take_piece(const void *arg, size_t at, size_t count)
{
    take(arg, at, count);
}

size_t kernel_lamb_room(size_t count)
{
    return 2 * kernel_sum_squares_room(count);
}

void kernel_lamb(float *weights, float *m, float *v, const float *grads, size_t count,
                 const struct kernel_update *u, double *partial, int threads)
{
    struct pass pass = {weights, m, v, grads, u, partial, u->lr};
    double length = 0; /* squared */
    double way = 0;
    kernel_in_pieces(count, measure_piece, &pass, threads);
    for (size_t i = 0; i < kernel_lamb_room(count); i += 2) {
        length += partial[i];
        way += partial[i + 1];
    }
    if (length > 0 && way > 0) {
        pass.rate = (float)((double)u->lr * (sqrt(length) / sqrt(way)));
    }
    kernel_in_pieces(count, take_piece, &pass, threads);
}
