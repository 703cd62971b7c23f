/* sum.c - sums and maxima of several buffers in one bracketed tree, for the collectives
 *
 * Every element is T(0, n) as kernel.h defines it, whatever the path through this file: the leaves
 * of up to four buffers (and eight, the common rank count) are written out, larger n recurse over a
 * chunk that stays in the first-level cache. The simd pragmas promise no more than that element i
 * depends on element i alone, so a destination may be a source. */
#include "libworker/kernel/kernel.h"

#include <assert.h>
#include <string.h>

enum {
    CHUNK = 512, /* floats: with one buffer a level of the tree, 2 KiB each */
};

KERNEL_CLONES
static void sum_2(float *d, const float *a, const float *b, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        d[i] = a[i] + b[i];
    }
}

KERNEL_CLONES
static void sum_3(float *d, const float *const *s, size_t at, size_t count)
{
    const float *a = s[0] + at, *b = s[1] + at, *c = s[2] + at;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        d[i] = (a[i] + b[i]) + c[i];
    }
}

KERNEL_CLONES
static void sum_4(float *d, const float *const *s, size_t at, size_t count)
{
    const float *a = s[0] + at, *b = s[1] + at, *c = s[2] + at, *e = s[3] + at;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        d[i] = (a[i] + b[i]) + (c[i] + e[i]);
    }
}

KERNEL_CLONES
static void sum_8(float *d, const float *const *s, size_t at, size_t count)
{
    const float *a = s[0] + at, *b = s[1] + at, *c = s[2] + at, *e = s[3] + at;
    const float *f = s[4] + at, *g = s[5] + at, *h = s[6] + at, *k = s[7] + at;
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        d[i] = ((a[i] + b[i]) + (c[i] + e[i])) + ((f[i] + g[i]) + (h[i] + k[i]));
    }
}

KERNEL_CLONES
static void max_2(float *d, const float *a, const float *b, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        d[i] = a[i] > b[i] ? a[i] : b[i];
    }
}

/* Up to four or exactly eight sources. d may be a source. */
static int sum_leaf(float *d, const float *const *srcs, int n, size_t at, size_t count)
{
    switch (n) {
    case 1:
        if (d != srcs[0] + at) {
            memcpy(d, srcs[0] + at, count * sizeof(*d));
        }
        return 1;
    case 2:
        sum_2(d, srcs[0] + at, srcs[1] + at, count);
        return 1;
    case 3:
        sum_3(d, srcs, at, count);
        return 1;
    case 4:
        sum_4(d, srcs, at, count);
        return 1;
    case 8:
        sum_8(d, srcs, at, count);
        return 1;
    default:
        return 0;
    }
}

/* One chunk of the tree over srcs[0 .. n): d must not be a source unless n is a leaf's. */
static void sum_chunk(float *d, const float *const *srcs, int n, size_t at, size_t count)
{
    if (sum_leaf(d, srcs, n, at, count)) {
        return;
    }
    float right[CHUNK];
    int left = n - n / 2; /* lo + (hi - lo + 1) / 2 with lo = 0 */
    sum_chunk(d, srcs, left, at, count);
    sum_chunk(right, srcs + left, n - left, at, count);
    sum_2(d, d, right, count);
}

void kernel_sum_tree(float *dst, const float *const *srcs, int n, size_t count)
{
    assert(n >= 1);
    if (sum_leaf(dst, srcs, n, 0, count)) {
        return;
    }
    float sum[CHUNK]; /* dst may be a source that a later leaf still reads */
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t part = count - at < CHUNK ? count - at : CHUNK;
        sum_chunk(sum, srcs, n, at, part);
        memcpy(dst + at, sum, part * sizeof(*sum));
    }
}

void kernel_sum_tree_to(float *const *dsts, int n_dst, const float *const *srcs, int n,
                        size_t count)
{
    assert(n >= 1 && n_dst >= 1);
    if (n_dst == 1) {
        kernel_sum_tree(dsts[0], srcs, n, count);
        return;
    }
    float sum[CHUNK];
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t part = count - at < CHUNK ? count - at : CHUNK;
        sum_chunk(sum, srcs, n, at, part);
        for (int d = 0; d < n_dst; d++) {
            memcpy(dsts[d] + at, sum, part * sizeof(*sum));
        }
    }
}

static void max_chunk(float *d, const float *const *srcs, int n, size_t at, size_t count)
{
    memcpy(d, srcs[0] + at, count * sizeof(*d));
    for (int i = 1; i < n; i++) { /* a maximum has no rounding: any order is the tree's */
        max_2(d, d, srcs[i] + at, count);
    }
}

void kernel_max_tree(float *dst, const float *const *srcs, int n, size_t count)
{
    assert(n >= 1);
    float max[CHUNK];
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t part = count - at < CHUNK ? count - at : CHUNK;
        max_chunk(max, srcs, n, at, part);
        memcpy(dst + at, max, part * sizeof(*max));
    }
}
