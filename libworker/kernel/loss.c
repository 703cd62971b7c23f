/* loss.c - losses with their gradients, and counting right answers */
#include "libworker/kernel/kernel.h"
#include "proto/exact.h"

#include <stddef.h>

enum { EXPS_MAX = 256 }; /* classes whose exponentials are kept between the two passes: 2 KiB */

double kernel_softmax_ce(const float *logits, const int32_t *labels, int64_t n, int64_t k,
                         float *dlogits)
{
    double exps[EXPS_MAX];
    double loss = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *row = logits + i * k;
        double max = (double)row[0];
        for (int64_t j = 1; j < k; j++) {
            max = (double)row[j] > max ? (double)row[j] : max;
        }
        double sum = 0;
        for (int64_t j = 0; j < k; j++) {
            double e = ms_exact_exp((double)row[j] - max);
            sum += e;
            if (j < EXPS_MAX) {
                exps[j] = e;
            }
        }
        loss += ms_exact_log(sum) - ((double)row[labels[i]] - max);
        for (int64_t j = 0; dlogits != NULL && j < k; j++) {
            double e = j < EXPS_MAX ? exps[j] : ms_exact_exp((double)row[j] - max);
            dlogits[i * k + j] = (float)((e / sum - (j == labels[i] ? 1.0 : 0.0)) / (double)n);
        }
    }
    return loss / (double)n;
}

double kernel_mse(const float *y, const float *target, int64_t n, int64_t k, float *dy)
{
    double sum = 0;
    double count = (double)(n * k);
    for (int64_t i = 0; i < n * k; i++) {
        double difference = (double)y[i] - (double)target[i];
        sum += difference * difference;
        if (dy != NULL) {
            dy[i] = (float)(2 * difference / count);
        }
    }
    return sum / count;
}

int64_t kernel_count_correct(const float *logits, const int32_t *labels, int64_t n, int64_t k)
{
    int64_t correct = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *row = logits + i * k;
        int64_t best = 0;
        for (int64_t j = 1; j < k; j++) {
            best = row[j] > row[best] ? j : best;
        }
        correct += best == labels[i];
    }
    return correct;
}
