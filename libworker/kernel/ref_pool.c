/* ref_pool.c - maximum and average pooling and their gradients */
#include "libworker/kernel/ref.h"

#include <math.h>
#include <string.h>

/* Rows [top, bottom) and columns [left, right) of the image under the window at (p, q). */
struct region {
    int64_t top, bottom, left, right;
};

static struct region region_at(const struct ref_window *win, struct ref_image xs, int64_t p,
                               int64_t q)
{
    int64_t top = p * win->stride_h - win->pad_top;
    int64_t left = q * win->stride_w - win->pad_left;
    int64_t bottom = top + win->kernel_h;
    int64_t right = left + win->kernel_w;
    return (struct region){top > 0 ? top : 0, bottom < xs.h ? bottom : xs.h, left > 0 ? left : 0,
                           right < xs.w ? right : xs.w};
}

/* Offset of the first maximum in row order. A NaN never wins against a number before it. */
static int64_t first_maximum(const double *x, struct ref_image xs, struct region r)
{
    int64_t best = r.top * xs.w + r.left;
    for (int64_t i = r.top; i < r.bottom; i++) {
        for (int64_t j = r.left; j < r.right; j++) {
            best = x[i * xs.w + j] > x[best] ? i * xs.w + j : best;
        }
    }
    return best;
}

static void image_zero(double *x, struct ref_image s)
{
    memset(x, 0, (size_t)(s.n * s.c * s.h * s.w) * sizeof(*x));
}

void ref_max_pool(const double *x, struct ref_image xs, const struct ref_window *win, double *y,
                  struct ref_image ys)
{
    for (int64_t k = 0; k < ys.n * ys.c; k++) {
        const double *plane = x + k * xs.h * xs.w;
        for (int64_t i = 0; i < ys.h * ys.w; i++) {
            struct region r = region_at(win, xs, i / ys.w, i % ys.w);
            y[k * ys.h * ys.w + i] = plane[first_maximum(plane, xs, r)];
        }
    }
}

void ref_max_pool_bwd(const double *x, struct ref_image xs, const double *dy, struct ref_image ys,
                      const struct ref_window *win, double *dx)
{
    image_zero(dx, xs);
    for (int64_t k = 0; k < ys.n * ys.c; k++) {
        const double *plane = x + k * xs.h * xs.w;
        for (int64_t i = 0; i < ys.h * ys.w; i++) {
            struct region r = region_at(win, xs, i / ys.w, i % ys.w);
            dx[k * xs.h * xs.w + first_maximum(plane, xs, r)] += dy[k * ys.h * ys.w + i];
        }
    }
}

static double region_count(struct region r)
{
    return (double)((r.bottom - r.top) * (r.right - r.left));
}

void ref_avg_pool(const double *x, struct ref_image xs, const struct ref_window *win, double *y,
                  struct ref_image ys)
{
    for (int64_t k = 0; k < ys.n * ys.c; k++) {
        const double *plane = x + k * xs.h * xs.w;
        for (int64_t p = 0; p < ys.h * ys.w; p++) {
            struct region r = region_at(win, xs, p / ys.w, p % ys.w);
            double sum = 0;
            for (int64_t i = r.top; i < r.bottom; i++) {
                for (int64_t j = r.left; j < r.right; j++) {
                    sum += plane[i * xs.w + j];
                }
            }
            y[k * ys.h * ys.w + p] = sum / region_count(r);
        }
    }
}

void ref_avg_pool_bwd(const double *dy, struct ref_image ys, const struct ref_window *win,
                      double *dx, struct ref_image xs)
{
    image_zero(dx, xs);
    for (int64_t k = 0; k < ys.n * ys.c; k++) {
        double *plane = dx + k * xs.h * xs.w;
        for (int64_t p = 0; p < ys.h * ys.w; p++) {
            struct region r = region_at(win, xs, p / ys.w, p % ys.w);
            double share = dy[k * ys.h * ys.w + p] / region_count(r);
            for (int64_t i = r.top; i < r.bottom; i++) {
                for (int64_t j = r.left; j < r.right; j++) {
                    plane[i * xs.w + j] += share;
                }
            }
        }
    }
}
