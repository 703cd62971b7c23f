/* ref.h - plain reference kernels: the formulas as loops over logical C order, double inside
 *
 * The oracle of the tests: slow, obvious, no layout, no thread. Every op of graph.h has one (ReLU,
 * activations, add and flatten need none); tests/ref_graph.h runs a whole graph with them, so that
 * a plan's step can be compared tensor by tensor. Built as a library of its own: no program links
 * it. */
#ifndef REF_H
#define REF_H

#include "libworker/kernel/kernel.h"

#include <stdint.h>

struct ref_window {
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, pad_bottom, pad_right;
    int64_t gap_h, gap_w; /* of a convolution: pixels between two taps */
    int64_t groups;       /* ... of channels; 0: one */
};
struct ref_image { /* sizes of an image tensor */
    int64_t n, c, h, w;
};

void ref_conv2d(const double *x, struct ref_image xs, const double *w, int64_t out_c,
                const struct ref_window *win, double *y, struct ref_image ys);
void ref_conv2d_bwd_data(const double *dy, struct ref_image ys, const double *w,
                         const struct ref_window *win, double *dx, struct ref_image xs);
void ref_conv2d_bwd_weights(const double *x, struct ref_image xs, const double *dy,
                            struct ref_image ys, const struct ref_window *win, double *dw);
/* One value a channel: added to y, and its gradient. */
void ref_add_bias(const double *bias, double *y, struct ref_image ys);
void ref_bias_bwd(const double *dy, struct ref_image ys, double *db);
void ref_batch_norm(const double *x, struct ref_image xs, const double *gamma, const double *beta,
                    double epsilon, double *y, double *mean, double *variance);
/* With given mean and variance, as in evaluation. */
void ref_batch_norm_moving(const double *x, struct ref_image xs, const double *gamma,
                           const double *beta, const double *mean, const double *variance,
                           double epsilon, double *y);
void ref_batch_norm_bwd(const double *x, struct ref_image xs, const double *dy, const double *gamma,
                        const double *mean, const double *variance, double epsilon, double *dx,
                        double *dgamma, double *dbeta);
/* Each sample (n, c, s) by groups of its channels. gamma, beta NULL: ones, zeros; else of (c, s)
 * where they are per value, of (c) where not. */
struct ref_norm {
    int64_t n, c, s, groups;
    int is_per_value;
    double epsilon;
};
void ref_norm(const struct ref_norm *norm, const double *x, const double *gamma, const double *beta,
              double *y);
/* dgamma and dbeta NULL: unwanted. */
void ref_norm_bwd(const struct ref_norm *norm, const double *x, const double *dy,
                  const double *gamma, double *dx, double *dgamma, double *dbeta);
void ref_max_pool(const double *x, struct ref_image xs, const struct ref_window *win, double *y,
                  struct ref_image ys);
void ref_max_pool_bwd(const double *x, struct ref_image xs, const double *dy, struct ref_image ys,
                      const struct ref_window *win, double *dx);
void ref_avg_pool(const double *x, struct ref_image xs, const struct ref_window *win, double *y,
                  struct ref_image ys);
void ref_avg_pool_bwd(const double *dy, struct ref_image ys, const struct ref_window *win,
                      double *dx, struct ref_image xs);
/* b, db NULL: no bias. */
void ref_dense(const double *x, const double *w, const double *b, int64_t n, int64_t in,
               int64_t out, double *y);
void ref_dense_bwd_data(const double *dy, const double *w, int64_t n, int64_t in, int64_t out,
                        double *dx);
void ref_dense_bwd_weights(const double *x, const double *dy, int64_t n, int64_t in, int64_t out,
                           double *dw, double *db);
/* Recurrent cells: struct kernel_recurrent's formulas and shapes; b NULL: there is none. Both
 * return 0, or -1 without memory. */
struct ref_recurrent {
    int64_t n, tokens, width;
    enum kernel_cell cell;
    int is_reversed;
    const double *x, *w, *b;
};
int ref_recurrent(const struct ref_recurrent *recurrent, double *y);
/* db NULL where b is. */
int ref_recurrent_bwd(const struct ref_recurrent *recurrent, const double *dy, double *dx,
                      double *dw, double *db);
/* Labels are 1 - smoothing, and smoothing / k for each class (Szegedy et al., 2016). */
double ref_softmax_ce(const double *logits, const int32_t *labels, int64_t n, int64_t k,
                      double smoothing, double *dlogits);
/* -sum t log p over rows and classes, / n, of any targets t (n, k). */
double ref_soft_ce(const double *logits, const double *targets, int64_t n, int64_t k,
                   double *dlogits);
double ref_mse(const double *y, const double *target, int64_t n, int64_t k, double *dy);
double ref_l1(const double *y, const double *target, int64_t n, int64_t k, double *dy);
double ref_huber(const double *y, const double *target, int64_t n, int64_t k, double delta,
                 double *dy);
double ref_bce(const double *y, const double *target, int64_t n, int64_t k, double *dy);

#endif
