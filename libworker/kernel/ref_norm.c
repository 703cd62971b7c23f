/* ref_norm.c - batch normalisation and its gradient, straight from the formulas
 * (Ioffe and Szegedy, 2015) */
#include "libworker/kernel/ref.h"

#include <math.h>

static int64_t at(struct ref_image s, int64_t n, int64_t c, int64_t i)
{
    return (n * s.c + c) * s.h * s.w + i;
}

void ref_batch_norm_moving(const double *x, struct ref_image xs, const double *gamma,
                           const double *beta, const double *mean, const double *variance,
                           double epsilon, double *y)
{
    for (int64_t c = 0; c < xs.c; c++) {
        double rstd = 1 / sqrt(variance[c] + epsilon);
        for (int64_t n = 0; n < xs.n; n++) {
            for (int64_t i = 0; i < xs.h * xs.w; i++) {
                int64_t k = at(xs, n, c, i);
                y[k] = gamma[c] * (x[k] - mean[c]) * rstd + beta[c];
            }
        }
    }
}

void ref_batch_norm(const double *x, struct ref_image xs, const double *gamma, const double *beta,
                    double epsilon, double *y, double *mean, double *variance)
{
    double count = (double)(xs.n * xs.h * xs.w);
    for (int64_t c = 0; c < xs.c; c++) {
        double sum = 0;
        double squares = 0;
        for (int64_t n = 0; n < xs.n; n++) {
            for (int64_t i = 0; i < xs.h * xs.w; i++) {
                sum += x[at(xs, n, c, i)];
            }
        }
        mean[c] = sum / count;
        for (int64_t n = 0; n < xs.n; n++) {
            for (int64_t i = 0; i < xs.h * xs.w; i++) {
                double distance = x[at(xs, n, c, i)] - mean[c];
                squares += distance * distance;
            }
        }
        variance[c] = squares / count;
    }
    ref_batch_norm_moving(x, xs, gamma, beta, mean, variance, epsilon, y);
}

void ref_batch_norm_bwd(const double *x, struct ref_image xs, const double *dy, const double *gamma,
                        const double *mean, const double *variance, double epsilon, double *dx,
                        double *dgamma, double *dbeta)
{
    double count = (double)(xs.n * xs.h * xs.w);
    for (int64_t c = 0; c < xs.c; c++) {
        double rstd = 1 / sqrt(variance[c] + epsilon);
        double sum_dy = 0;
        double sum_dy_xhat = 0;
        for (int64_t n = 0; n < xs.n; n++) {
            for (int64_t i = 0; i < xs.h * xs.w; i++) {
                int64_t k = at(xs, n, c, i);
                sum_dy += dy[k];
                sum_dy_xhat += dy[k] * (x[k] - mean[c]) * rstd;
            }
        }
        for (int64_t n = 0; n < xs.n; n++) {
            for (int64_t i = 0; i < xs.h * xs.w; i++) {
                int64_t k = at(xs, n, c, i);
                double xhat = (x[k] - mean[c]) * rstd;
                dx[k] = gamma[c] * rstd * (dy[k] - sum_dy / count - xhat * sum_dy_xhat / count);
            }
        }
        dgamma[c] = sum_dy_xhat;
        dbeta[c] = sum_dy;
    }
}
