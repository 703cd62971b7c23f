/* embedding.c - rows of a weight by number, and their gradient
 *
 * In backward a thread has some channels of all words, so that each sum has one order. */
#include "libworker/kernel/kernel.h"

#include <string.h>

enum { LINE = 16 }; /* floats of a cache line, which no two threads write */

int64_t kernel_embedding_check(const struct kernel_embedding *e)
{
    const float words = (float)e->words;
    for (int64_t i = 0; i < e->rows; i++) {
        const float token = e->tokens[i];
        if (!(token >= 0.0F && token < words) || (float)(int64_t)token != token) {
            return i;
        }
    }
    return -1;
}

void kernel_embedding(const struct kernel_embedding *e, const float *weight, float *y, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const size_t bytes = (size_t)e->channels * sizeof(float);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < e->rows; i++) {
        memcpy(y + i * e->channels, weight + (int64_t)e->tokens[i] * e->channels, bytes);
    }
}

/* Channels [begin, begin + n) of all words. */
KERNEL_CLONES
static void sum_channels(const struct kernel_embedding *e, const float *dy, float *dw,
                         int64_t begin, int64_t n)
{
    for (int64_t w = 0; w < e->words; w++) {
        memset(dw + w * e->channels + begin, 0, (size_t)n * sizeof(float));
    }
    for (int64_t i = 0; i < e->rows; i++) {
        const float *from = dy + i * e->channels + begin;
        float *to = dw + (int64_t)e->tokens[i] * e->channels + begin;
#pragma omp simd
        for (int64_t c = 0; c < n; c++) {
            to[c] += from[c];
        }
    }
}

void kernel_embedding_backward(const struct kernel_embedding *e, const float *dy, float *dw,
                               int threads)
{
    const int64_t lines = (e->channels + LINE - 1) / LINE;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = lines * t / threads * LINE;
        const int64_t last = lines * (t + 1) / threads * LINE;
        const int64_t end = last < e->channels ? last : e->channels;
        if (begin < end) {
            sum_channels(e, dy, dw, begin, end - begin);
        }
    }
}
