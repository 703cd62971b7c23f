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
