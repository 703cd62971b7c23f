/* ref_norm.c - normalisation of batches and of samples, and their gradients, straight from the
 * formulas (Ioffe and Szegedy, 2015; Ba, Kiros and Hinton, 2016; Wu and He, 2018) */
#include "libworker/kernel/ref.h"

#include <math.h>
#include <stddef.h>

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

struct group { /* of a sample: values [from, from + count) of all, with this mean and deviation */
    int64_t from, count;
    double mean, rstd;
};

static struct group group_of(const struct ref_norm *norm, const double *x, int64_t index)
{
    struct group g = {.count = norm->c / norm->groups * norm->s};
    double squares = 0;
    g.from = index * g.count;
    for (int64_t i = 0; i < g.count; i++) {
        g.mean += x[g.from + i] / (double)g.count;
    }
    for (int64_t i = 0; i < g.count; i++) {
        double distance = x[g.from + i] - g.mean;
        squares += distance * distance;
    }
    g.rstd = 1 / sqrt(squares / (double)g.count + norm->epsilon);
    return g;
}

/* Which gamma and beta value k of all has. */
static int64_t affine_at(const struct ref_norm *norm, int64_t k)
{
    int64_t in_sample = k % (norm->c * norm->s);
    return norm->is_per_value ? in_sample : in_sample / norm->s;
}

void ref_norm(const struct ref_norm *norm, const double *x, const double *gamma, const double *beta,
              double *y)
{
    for (int64_t index = 0; index < norm->n * norm->groups; index++) {
        struct group g = group_of(norm, x, index);
        for (int64_t k = g.from; k < g.from + g.count; k++) {
            int64_t at = affine_at(norm, k);
            y[k] = (x[k] - g.mean) * g.rstd * (gamma != NULL ? gamma[at] : 1) +
                   (beta != NULL ? beta[at] : 0);
        }
    }
}

static void clear(const struct ref_norm *norm, double *sums)
{
    int64_t n = norm->c * (norm->is_per_value ? norm->s : 1);
    for (int64_t i = 0; sums != NULL && i < n; i++) {
        sums[i] = 0;
    }
}

static void add(double *sums, int64_t at, double value)
{
    if (sums != NULL) {
        sums[at] += value;
    }
}

void ref_norm_bwd(const struct ref_norm *norm, const double *x, const double *dy,
                  const double *gamma, double *dx, double *dgamma, double *dbeta)
{
    clear(norm, dgamma);
    clear(norm, dbeta);
    for (int64_t index = 0; index < norm->n * norm->groups; index++) {
        struct group g = group_of(norm, x, index);
        double sum_dz = 0;
        double sum_dz_xhat = 0;
        for (int64_t k = g.from; k < g.from + g.count; k++) {
            int64_t at = affine_at(norm, k);
            double xhat = (x[k] - g.mean) * g.rstd;
            double dz = dy[k] * (gamma != NULL ? gamma[at] : 1);
            sum_dz += dz;
            sum_dz_xhat += dz * xhat;
            add(dgamma, at, dy[k] * xhat);
            add(dbeta, at, dy[k]);
        }
        for (int64_t k = g.from; k < g.from + g.count; k++) {
            double xhat = (x[k] - g.mean) * g.rstd;
            double dz = dy[k] * (gamma != NULL ? gamma[affine_at(norm, k)] : 1);
            dx[k] = g.rstd * (dz - (sum_dz + xhat * sum_dz_xhat) / (double)g.count);
        }
    }
}
