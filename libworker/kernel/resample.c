/* resample.c - images of another size: zeros around them, or pixels between theirs
 *
 * A pixel of y is a sum of at most two rows times two columns of x. */
#include "libworker/kernel/kernel.h"

#include <string.h>

struct tap { /* of a row or a column of y: two of x, with their weights */
    int64_t at[2];
    float weight[2];
};

/* As PyTorch counts: place i of n_out in n. */
static struct tap between(int64_t i, int64_t n, int64_t n_out, int is_corners)
{
    const double scale = !is_corners ? (double)n / (double)n_out
                         : n_out > 1 ? (double)(n - 1) / (double)(n_out - 1)
                                     : 0;
    double place = is_corners ? scale * (double)i : scale * ((double)i + 0.5) - 0.5;
    place = place < 0 ? 0 : place;
    const int64_t first = (int64_t)place < n - 1 ? (int64_t)place : n - 1;
    const float behind = (float)(place - (double)first);
    return (struct tap){{first, first + (first < n - 1)}, {1 - behind, behind}};
}

static struct tap tap_of(enum kernel_resample_by by, int64_t i, int64_t n, int64_t n_out,
                         int64_t before)
{
    const int is_inside = i >= before && i < before + n;
    switch (by) {
    case KERNEL_PAD:
        return (struct tap){{is_inside ? i - before : 0, 0}, {is_inside ? 1.0F : 0.0F, 0}};
    case KERNEL_NEAREST:
        return (struct tap){{i / (n_out / n), 0}, {1, 0}};
    default:
        return between(i, n, n_out, by == KERNEL_LINEAR_CORNERS);
    }
}

struct lanes { /* channels side by side in both: the first one's first pixel, and a pixel's step */
    float *to;
    const float *from;
    int64_t to_step, from_step, n;
};

/* A weight of 0 reads and writes nothing, so that an infinite value stays where it is. */
static void add_lanes(const struct lanes *lanes, int64_t to, int64_t from, float weight)
{
    for (int64_t c = 0; c < lanes->n && weight != 0; c++) {
        lanes->to[to * lanes->to_step + c] += weight * lanes->from[from * lanes->from_step + c];
    }
}

static void resample_lanes(const struct lanes *lanes, const struct kernel_resample *of,
                           int is_backward)
{
    for (int64_t i = 0; i < of->y_h; i++) {
        const struct tap row = tap_of(of->by, i, of->h, of->y_h, of->top);
        for (int64_t j = 0; j < of->y_w; j++) {
            const struct tap column = tap_of(of->by, j, of->w, of->y_w, of->left);
            const int64_t y = i * of->y_w + j;
            for (int k = 0; k < 4; k++) {
                const float weight = row.weight[k / 2] * column.weight[k % 2];
                const int64_t x = row.at[k / 2] * of->w + column.at[k % 2];
                add_lanes(lanes, is_backward ? x : y, is_backward ? y : x, weight);
            }
        }
    }
}

/* A block of the result, from the channels of the source, wherever they lie; padding is zero. */
static void resample_block(float *to, const struct kernel_layout *of_to, const float *from,
                           const struct kernel_layout *of_from, int64_t at,
                           const struct kernel_resample *of, int is_backward)
{
    const int64_t n = at / of_to->n_blocks;
    const int64_t first = at % of_to->n_blocks * of_to->block;
    float *block = to + at * of_to->spatial * of_to->block;
    int64_t run = 0;
    memset(block, 0, (size_t)(of_to->spatial * of_to->block) * sizeof(*block));
    for (int64_t lane = 0; lane < of_to->block; lane += run) {
        const int64_t c = first + lane;
        const int64_t left = of_from->block - c % of_from->block;
        const int64_t in = n * of_from->n_blocks + c / of_from->block;
        if (c >= of_from->n_blocks * of_from->block) {
            return;
        }
        run = of_to->block - lane < left ? of_to->block - lane : left;
        const struct lanes lanes = {.to = block + lane,
                                    .from = from + in * of_from->spatial * of_from->block +
                                            c % of_from->block,
                                    .to_step = of_to->block,
                                    .from_step = of_from->block,
                                    .n = run};
        resample_lanes(&lanes, of, is_backward);
    }
}

void kernel_resample(float *y, const float *x, const struct kernel_resample *of, int threads)
{
    (void)threads; /* where OpenMP is left out */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < of->of_y.n * of->of_y.n_blocks; i++) {
        resample_block(y, &of->of_y, x, &of->of_x, i, of, 0);
    }
}

void kernel_resample_backward(float *dx, const float *dy, const struct kernel_resample *of,
                              int threads)
{
    (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < of->of_x.n * of->of_x.n_blocks; i++) {
        resample_block(dx, &of->of_x, dy, &of->of_y, i, of, 1);
    }
}
