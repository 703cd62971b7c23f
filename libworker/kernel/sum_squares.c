/* sum_squares.c - the square of a vector's length, for clipping by it
 *
 * Squares of floats are exact in double. 16 lanes sum up a piece, a tree sums up the lanes, and the
 * pieces follow each other: no thread decides where a sum begins. */
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/lanes.h"

size_t kernel_sum_squares_room(size_t count)
{
    return (count + KERNEL_PIECE - 1) / KERNEL_PIECE;
}

KERNEL_CLONES
static double of_piece(const float *x, size_t count)
{
    double lanes[LANES] = {0};
    size_t at = 0;
    for (; at + LANES <= count; at += LANES) {
#pragma omp simd
        for (int k = 0; k < LANES; k++) {
            lanes[k] += (double)x[at + k] * (double)x[at + k];
        }
    }
    for (int k = 0; at < count; at++, k++) {
        lanes[k] += (double)x[at] * (double)x[at];
    }
    return lanes_sum(lanes);
}

struct pass {
    const float *x;
    double *partial;
};

static void sum_piece(const void *arg, size_t at, size_t count)
{
    const struct pass *pass = arg;
    pass->partial[at / KERNEL_PIECE] = of_piece(pass->x + at, count);
}

double kernel_sum_squares(const float *x, size_t count, double *partial, int threads)
{
    const struct pass pass = {x, partial};
    double sum = 0;
    kernel_in_pieces(count, sum_piece, &pass, threads);
    for (size_t i = 0; i < kernel_sum_squares_room(count); i++) {
        sum += partial[i];
    }
    return sum;
}
