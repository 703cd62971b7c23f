/* ref_dense.c - dense layer, losses and their gradients */
#include "libworker/kernel/ref.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

void ref_dense(const double *x, const double *w, const double *b, int64_t n, int64_t in,
               int64_t out, double *y)
{
    for (int64_t r = 0; r < n; r++) {
        for (int64_t o = 0; o < out; o++) {
            double sum = b != NULL ? b[o] : 0;
            for (int64_t i = 0; i < in; i++) {
                sum += x[r * in + i] * w[o * in + i];
            }
            y[r * out + o] = sum;
        }
    }
}

void ref_dense_bwd_data(const double *dy, const double *w, int64_t n, int64_t in, int64_t out,
                        double *dx)
{
    memset(dx, 0, (size_t)(n * in) * sizeof(*dx));
    for (int64_t r = 0; r < n; r++) {
        for (int64_t o = 0; o < out; o++) {
            for (int64_t i = 0; i < in; i++) {
                dx[r * in + i] += dy[r * out + o] * w[o * in + i];
            }
        }
    }
}

void ref_dense_bwd_weights(const double *x, const double *dy, int64_t n, int64_t in, int64_t out,
                           double *dw, double *db)
{
    memset(dw, 0, (size_t)(in * out) * sizeof(*dw));
    for (int64_t r = 0; r < n; r++) {
        for (int64_t o = 0; o < out; o++) {
            for (int64_t i = 0; i < in; i++) {
                dw[o * in + i] += dy[r * out + o] * x[r * in + i];
            }
        }
    }
    if (db != NULL) {
        ref_bias_bwd(dy, (struct ref_image){n, out, 1, 1}, db);
    }
}

static double log_sum(const double *row, int64_t k)
{
    double max = row[0];
    double sum = 0;
    for (int64_t j = 1; j < k; j++) {
        max = fmax(max, row[j]);
    }
    for (int64_t j = 0; j < k; j++) {
        sum += exp(row[j] - max);
    }
    return max + log(sum);
}

double ref_softmax_ce(const double *logits, const int32_t *labels, int64_t n, int64_t k,
                      double smoothing, double *dlogits)
{
    double loss = 0;
    for (int64_t r = 0; r < n; r++) {
        const double *row = logits + r * k;
        double max = row[0];
        double sum = 0;
        for (int64_t j = 1; j < k; j++) {
            max = fmax(max, row[j]);
        }
        for (int64_t j = 0; j < k; j++) {
            sum += exp(row[j] - max);
        }
        for (int64_t j = 0; j < k; j++) {
            double p = exp(row[j] - max) / sum;
            double target = smoothing / (double)k + (j == labels[r] ? 1 - smoothing : 0);
            loss -= target > 0 ? target * (row[j] - max - log(sum)) : 0;
            if (dlogits != NULL) {
                dlogits[r * k + j] = (p - target) / (double)n;
            }
        }
    }
    return loss / (double)n;
}

double ref_soft_ce(const double *logits, const double *targets, int64_t n, int64_t k,
                   double *dlogits)
{
    double loss = 0;
    for (int64_t r = 0; r < n; r++) {
        const double *row = logits + r * k;
        const double *target = targets + r * k;
        const double norm = log_sum(row, k);
        double all = 0;
        for (int64_t j = 0; j < k; j++) {
            loss -= target[j] > 0 ? target[j] * (row[j] - norm) : 0;
            all += target[j];
        }
        for (int64_t j = 0; dlogits != NULL && j < k; j++) {
            dlogits[r * k + j] = (all * exp(row[j] - norm) - target[j]) / (double)n;
        }
    }
    return loss / (double)n;
}

double ref_mse(const double *y, const double *target, int64_t n, int64_t k, double *dy)
{
    double sum = 0;
    for (int64_t i = 0; i < n * k; i++) {
        double difference = y[i] - target[i];
        sum += difference * difference;
        if (dy != NULL) {
            dy[i] = 2 * difference / (double)(n * k);
        }
    }
    return sum / (double)(n * k);
}

double ref_l1(const double *y, const double *target, int64_t n, int64_t k, double *dy)
{
    double sum = 0;
    for (int64_t i = 0; i < n * k; i++) {
        sum += fabs(y[i] - target[i]);
        if (dy != NULL) {
            dy[i] = (double)((y[i] > target[i]) - (y[i] < target[i])) / (double)(n * k);
        }
    }
    return sum / (double)(n * k);
}

double ref_huber(const double *y, const double *target, int64_t n, int64_t k, double delta,
                 double *dy)
{
    double sum = 0;
    for (int64_t i = 0; i < n * k; i++) {
        const double far = fabs(y[i] - target[i]);
        const int is_near = far <= delta;
        sum += is_near ? far * far / 2 : delta * (far - delta / 2);
        if (dy != NULL) {
            const double slope = is_near ? far : delta;
            dy[i] = (y[i] < target[i] ? -slope : slope) / (double)(n * k);
        }
    }
    return sum / (double)(n * k);
}

double ref_bce(const double *y, const double *target, int64_t n, int64_t k, double *dy)
{
    double sum = 0;
    for (int64_t i = 0; i < n * k; i++) {
        /* -t log p - (1 - t) log(1 - p), p the sigmoid, with both logarithms by log1p */
        const double log_p = y[i] > 0 ? -log1p(exp(-y[i])) : y[i] - log1p(exp(y[i]));
        const double log_rest = y[i] > 0 ? -y[i] - log1p(exp(-y[i])) : -log1p(exp(y[i]));
        sum -= target[i] * log_p + (1 - target[i]) * log_rest;
        if (dy != NULL) {
            dy[i] = (exp(log_p) - target[i]) / (double)(n * k);
        }
    }
    return sum / (double)(n * k);
}
