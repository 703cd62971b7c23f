/* dropout.c - sets values to zero at random, and scales the others (Srivastava et al., 2014), or
 * whole channels (Tompson et al., 2015), or samples (Huang et al., 2016) */
#include "libworker/kernel/inline.h"
#include "libworker/kernel/kernel.h"
#include "proto/rng.h"

#include <math.h>

struct row {               /* what the loop over one block of a row needs */
    uint64_t stream, most; /* below `most` of 2^53 a value is dropped */
    float scale;
};

/* Values at y[i], of which the logical place in the row is first + i * stride; one place for all
 * where the stride is 0. */
INLINE void drop(float *y, const float *x, int64_t n, uint64_t first, uint64_t stride,
                 const struct row *row)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t u = ms_rng_u64(row->stream, first + (uint64_t)i * stride) >> 11;
        const float kept = x[i] * row->scale;
        y[i] = u < row->most ? 0.0F : kept;
    }
}

/* One block of channels of one row: its lanes are `spatial` places apart, as (c, h, w) has them.
 * What pads the last block is zero, and stays it. */
KERNEL_CLONES
static void drop_block(float *y, const float *x, const struct kernel_dropout *d, int64_t block,
                       const struct row *row)
{
    const struct kernel_layout *l = &d->layout;
    const uint64_t position = d->of == KERNEL_DROP_VALUES; /* places from one to the next */
    const uint64_t channel = d->of == KERNEL_DROP_VALUES     ? (uint64_t)l->spatial
                             : d->of == KERNEL_DROP_CHANNELS ? 1
                                                             : 0;
    const uint64_t first = (uint64_t)(block * l->block) * channel;
    if (l->block == 1) {
        drop(y, x, l->spatial, first, position, row);
        return;
    }
    for (int64_t s = 0; s < l->spatial; s++) {
        drop(y + s * l->block, x + s * l->block, l->block, first + (uint64_t)s * position, channel,
             row);
    }
}

void kernel_dropout(float *y, const float *x, const struct kernel_dropout *d, int threads)
{
    (void)threads; /* where OpenMP is left out */
    const struct kernel_layout *l = &d->layout;
    const int64_t n_blocks = l->n * l->n_blocks;
    const int64_t size = l->spatial * l->block;
    const uint64_t most = (uint64_t)ceil(d->rate * 0x1.0p53);
    const float scale = (float)(1.0 / (1.0 - d->rate));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < n_blocks; i++) {
        const struct row row = {
            ms_rng_stream(d->draw, d->first_row + (uint64_t)(i / l->n_blocks), 0), most, scale};
        drop_block(y + i * size, x + i * size, d, i % l->n_blocks, &row);
    }
}
