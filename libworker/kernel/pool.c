/* pool.c - max pooling with windows that tile the image */
#include "libworker/kernel/pool.h"

#include "libworker/kernel/kernel.h"

#include <stddef.h>
#include <string.h>

/* Rows of windows; `row` is the distance between two rows of pixels. 2x2 windows on blocks of 16
 * channels have their own loops: a pixel is a vector. */
KERNEL_CLONES
static void max_row_2x16(const float *x, int64_t row, int64_t n, float *y, uint8_t *places)
{
    for (int64_t i = 0; i < n; i++, x += 32, y += 16, places += 16) {
        int32_t place[16]; /* as wide as a float: one vector */
#pragma omp simd
        for (int lane = 0; lane < 16; lane++) {
            float a = x[lane];
            float b = x[16 + lane];
            float c = x[row + lane];
            float d = x[row + 16 + lane];
            float ab = b > a ? b : a;
            float cd = d > c ? d : c;
            float best = cd > ab ? cd : ab;
            /* by equality, last to first: compilers make branches of places kept beside maxima */
            int32_t at = 3;
            at = c == best ? 2 : at;
            at = b == best ? 1 : at;
            at = a == best ? 0 : at;
            y[lane] = best;
            place[lane] = at;
        }
#pragma omp simd
        for (int lane = 0; lane < 16; lane++) {
            places[lane] = (uint8_t)place[lane];
        }
    }
}

KERNEL_CLONES
static void max_row_any(const float *x, int64_t row, int64_t n, int64_t block, int64_t kernel,
                        float *y, uint8_t *places)
{
    for (int64_t i = 0; i < n; i++, x += kernel * block, y += block, places += block) {
        memcpy(y, x, (size_t)block * sizeof(*y));
        memset(places, 0, (size_t)block);
        for (int64_t t = 1; t < kernel * kernel; t++) {
            const float *p = x + t / kernel * row + t % kernel * block;
#pragma omp simd
            for (int64_t lane = 0; lane < block; lane++) {
                float a = p[lane];
                float b = y[lane];
                places[lane] = a > b ? (uint8_t)t : places[lane];
                y[lane] = a > b ? a : b;
            }
        }
    }
}

KERNEL_CLONES
static void back_row_2x16(const uint8_t *places, const float *dy, int64_t row, int64_t n, float *dx)
{
    for (int64_t i = 0; i < n; i++, dx += 32, dy += 16, places += 16) {
#pragma omp simd
        for (int lane = 0; lane < 16; lane++) {
            int place = places[lane];
            float g = dy[lane];
            dx[lane] = place == 0 ? g : 0.0F;
            dx[16 + lane] = place == 1 ? g : 0.0F;
            dx[row + lane] = place == 2 ? g : 0.0F;
            dx[row + 16 + lane] = place == 3 ? g : 0.0F;
        }
    }
}

KERNEL_CLONES
static void back_row_any(const uint8_t *places, const float *dy, int64_t row, int64_t n,
                         int64_t block, int64_t kernel, float *dx)
{
    for (int64_t i = 0; i < n; i++, dx += kernel * block, dy += block, places += block) {
        for (int64_t t = 0; t < kernel * kernel; t++) {
            float *p = dx + t / kernel * row + t % kernel * block;
#pragma omp simd
            for (int64_t lane = 0; lane < block; lane++) {
                float g = dy[lane];
                p[lane] = places[lane] == t ? g : 0.0F;
            }
        }
    }
}

struct plane { /* sizes of one, in floats */
    int64_t in, out, row, out_h, out_w;
};

static struct plane plane_of(const struct pool_shape *s)
{
    int64_t out_h = s->h / s->kernel;
    int64_t out_w = s->w / s->kernel;
    return (struct plane){.in = s->h * s->w * s->block,
                          .out = out_h * out_w * s->block,
                          .row = s->w * s->block,
                          .out_h = out_h,
                          .out_w = out_w};
}

static void max_plane(const struct pool_shape *s, const struct plane *plane, const float *x,
                      float *y, uint8_t *places)
{
    for (int64_t i = 0; i < plane->out_h; i++) {
        const float *from = x + i * s->kernel * plane->row;
        int64_t to = i * plane->out_w * s->block;
        if (s->kernel == 2 && s->block == 16) {
            max_row_2x16(from, plane->row, plane->out_w, y + to, places + to);
        } else {
            max_row_any(from, plane->row, plane->out_w, s->block, s->kernel, y + to, places + to);
        }
    }
}

void pool_max(const struct pool_shape *s, const float *x, float *y, uint8_t *places, int threads)
{
    struct plane plane = plane_of(s);
    (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < s->planes; i++) {
        max_plane(s, &plane, x + i * plane.in, y + i * plane.out, places + i * plane.out);
    }
}

/* Pixels that fill no window get no gradient. */
static void clear_rest(const struct pool_shape *s, const struct plane *plane, float *dx)
{
    int64_t covered_h = plane->out_h * s->kernel;
    int64_t covered = plane->out_w * s->kernel * s->block;
    for (int64_t i = 0; i < covered_h && covered < plane->row; i++) {
        memset(dx + i * plane->row + covered, 0, (size_t)(plane->row - covered) * sizeof(*dx));
    }
    int64_t done = covered_h * plane->row;
    memset(dx + done, 0, (size_t)(plane->in - done) * sizeof(*dx));
}

static void back_plane(const struct pool_shape *s, const struct plane *plane, const uint8_t *places,
                       const float *dy, float *dx)
{
    for (int64_t i = 0; i < plane->out_h; i++) {
        int64_t from = i * plane->out_w * s->block;
        float *to = dx + i * s->kernel * plane->row;
        if (s->kernel == 2 && s->block == 16) {
            back_row_2x16(places + from, dy + from, plane->row, plane->out_w, to);
        } else {
            back_row_any(places + from, dy + from, plane->row, plane->out_w, s->block, s->kernel,
                         to);
        }
    }
    clear_rest(s, plane, dx);
}

void pool_max_backward(const struct pool_shape *s, const uint8_t *places, const float *dy,
                       float *dx, int threads)
{
    struct plane plane = plane_of(s);
    (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < s->planes; i++) {
        back_plane(s, &plane, places + i * plane.out, dy + i * plane.out, dx + i * plane.in);
    }
}
