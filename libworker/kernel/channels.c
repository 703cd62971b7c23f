/* channels.c - channels that are taken, moved, or put behind others: copies between layouts */
#include "libworker/kernel/kernel.h"

#include <string.h>

enum { LANES = 64 }; /* channels of a pixel whose places are known at a time */

/* Which channel of x channel c of y is; not in x: none. */
static int64_t source_of(const struct kernel_channels *k, int64_t c)
{
    const int64_t moved = c % k->groups * (k->x.channels / k->groups) + c / k->groups;
    return k->groups > 1 ? moved : c + k->first;
}

struct lanes {
    int64_t n;
    int64_t at[LANES]; /* in x, of the first pixel; -1: `with` stands there */
    float with[LANES];
};

/* Channels from c on of sample i. */
static struct lanes lanes_of(const struct kernel_channels *k, int64_t i, int64_t c, int64_t n)
{
    const struct kernel_layout *x = &k->x;
    struct lanes ret = {.n = n};
    for (int64_t j = 0; j < n; j++) {
        const int64_t of = c + j < k->y.channels ? source_of(k, c + j) : -1;
        const int is_x = of >= 0 && of < x->channels && c + j < k->y.channels;
        const int64_t block = (i * x->n_blocks + of / x->block) * x->spatial * x->block;
        ret.at[j] = is_x ? block + of % x->block : -1;
        ret.with[j] = !is_x && k->fill != NULL && c + j < k->y.channels ? k->fill[c + j] : 0.0F;
    }
    return ret;
}

/* y: the first lane of the first pixel. */
static void copy_lanes(float *y, const float *x, const struct kernel_channels *k,
                       const struct lanes *lanes)
{
    for (int64_t s = 0; s < k->y.spatial; s++) {
        float *to = y + s * k->y.block;
        const float *from = x + s * k->x.block;
        for (int64_t j = 0; j < lanes->n; j++) {
            to[j] = lanes->at[j] >= 0 ? from[lanes->at[j]] : lanes->with[j];
        }
    }
}

/* Lanes that lie in a row in x as they do in y. */
static int is_row(const struct lanes *lanes)
{
    int is = lanes->at[0] >= 0;
    for (int64_t j = 1; j < lanes->n && is; j++) {
        is = lanes->at[j] == lanes->at[0] + j;
    }
    return is;
}

static void copy_rows(float *y, const float *x, const struct kernel_channels *k,
                      const struct lanes *lanes)
{
    if (k->y.block == 1 && k->x.block == 1) {
        memcpy(y, x + lanes->at[0], (size_t)k->y.spatial * sizeof(*y));
        return;
    }
    for (int64_t s = 0; s < k->y.spatial; s++) {
        memcpy(y + s * k->y.block, x + lanes->at[0] + s * k->x.block,
               (size_t)lanes->n * sizeof(*y));
    }
}

void kernel_channels(float *y, const float *x, const struct kernel_channels *channels, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const struct kernel_channels k = *channels;
    const int64_t parts = (k.y.block + LANES - 1) / LANES; /* of a block */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < k.y.n * k.y.n_blocks * parts; i++) {
        const int64_t block = i / parts, lane = i % parts * LANES;
        const int64_t left = k.y.block - lane;
        const struct lanes lanes =
            lanes_of(&k, block / k.y.n_blocks, block % k.y.n_blocks * k.y.block + lane,
                     left < LANES ? left : LANES);
        float *to = y + block * k.y.spatial * k.y.block + lane;
        if (is_row(&lanes)) {
            copy_rows(to, x, &k, &lanes);
        } else {
            copy_lanes(to, x, &k, &lanes);
        }
    }
}
