/* ref_conv.c - convolution (as networks mean it: correlation) and its gradients, plain loops
 *
 *     y[n][o][p][q] = sum over c, i, j of w[o][c][i][j] x[n][g + c][p s - pad + i d][q s - pad + j
 * d]
 *
 * with dilation d; g is the first channel of the group that o is of, and c counts on in it.
 * The gradients walk the same terms and add to x or w instead of y. */
#include "libworker/kernel/ref.h"

#include <string.h>

struct conv {
    struct ref_image xs, ys;
    const struct ref_window *win;
};

static int64_t groups_of(const struct ref_window *win)
{
    return win->groups > 0 ? win->groups : 1;
}

/* One plane of x, w and y: adds every term to the first operand. The three differ in one line. */
enum target { TO_Y, TO_X, TO_W };

static void plane(const struct conv *conv, enum target target, double *x, double *w, double *y)
{
    const struct ref_window *win = conv->win;
    int64_t taps = win->kernel_h * win->kernel_w;
    for (int64_t p = 0; p < conv->ys.h; p++) {
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t row = p * win->stride_h - win->pad_top + tap / win->kernel_w * (win->gap_h + 1);
            if (row < 0 || row >= conv->xs.h) {
                continue;
            }
            double sum = 0;
            for (int64_t q = 0; q < conv->ys.w; q++) {
                int64_t column =
                    q * win->stride_w - win->pad_left + tap % win->kernel_w * (win->gap_w + 1);
                if (column < 0 || column >= conv->xs.w) {
                    continue;
                }
                double *at_x = &x[row * conv->xs.w + column];
                double *at_y = &y[p * conv->ys.w + q];
                if (target == TO_Y) {
                    *at_y += w[tap] * *at_x;
                } else if (target == TO_X) {
                    *at_x += w[tap] * *at_y;
                } else {
                    sum += *at_x * *at_y;
                }
            }
            if (target == TO_W) {
                w[tap] += sum;
            }
        }
    }
}

static void all_planes(const struct conv *conv, enum target target, double *x, double *w, double *y)
{
    int64_t x_size = conv->xs.h * conv->xs.w;
    int64_t y_size = conv->ys.h * conv->ys.w;
    int64_t w_size = conv->win->kernel_h * conv->win->kernel_w;
    int64_t groups = groups_of(conv->win);
    int64_t reads = conv->xs.c / groups; /* channels of a group */
    int64_t makes = conv->ys.c / groups;
    for (int64_t n = 0; n < conv->xs.n; n++) {
        for (int64_t o = 0; o < conv->ys.c; o++) {
            for (int64_t c = 0; c < reads; c++) {
                plane(conv, target, x + (n * conv->xs.c + o / makes * reads + c) * x_size,
                      w + (o * reads + c) * w_size, y + (n * conv->ys.c + o) * y_size);
            }
        }
    }
}

static size_t image_bytes(struct ref_image s)
{
    return (size_t)(s.n * s.c * s.h * s.w) * sizeof(double);
}

/* The casts drop a const that `target` restores: only the target is written. */
void ref_conv2d(const double *x, struct ref_image xs, const double *w, int64_t out_c,
                const struct ref_window *win, double *y, struct ref_image ys)
{
    const struct conv conv = {xs, {ys.n, out_c, ys.h, ys.w}, win};
    memset(y, 0, image_bytes(conv.ys));
    all_planes(&conv, TO_Y, (double *)x, (double *)w, y);
}

void ref_conv2d_bwd_data(const double *dy, struct ref_image ys, const double *w,
                         const struct ref_window *win, double *dx, struct ref_image xs)
{
    const struct conv conv = {xs, ys, win};
    memset(dx, 0, image_bytes(xs));
    all_planes(&conv, TO_X, dx, (double *)w, (double *)dy);
}

void ref_conv2d_bwd_weights(const double *x, struct ref_image xs, const double *dy,
                            struct ref_image ys, const struct ref_window *win, double *dw)
{
    const struct conv conv = {xs, ys, win};
    memset(dw, 0,
           (size_t)(ys.c * (xs.c / groups_of(win)) * win->kernel_h * win->kernel_w) *
               sizeof(double));
    all_planes(&conv, TO_W, (double *)x, dw, (double *)dy);
}

void ref_add_bias(const double *bias, double *y, struct ref_image ys)
{
    for (int64_t i = 0; i < ys.n * ys.c * ys.h * ys.w; i++) {
        y[i] += bias[i / (ys.h * ys.w) % ys.c];
    }
}

void ref_bias_bwd(const double *dy, struct ref_image ys, double *db)
{
    memset(db, 0, (size_t)ys.c * sizeof(double));
    for (int64_t i = 0; i < ys.n * ys.c * ys.h * ys.w; i++) {
        db[i / (ys.h * ys.w) % ys.c] += dy[i];
    }
}
