/* schedule.h - the learning rate of a step: a function of the job and the step, and of nothing else
 *
 * Computed in double by proto/exact.h: whoever goes on, on whatever CPU, has the same bits. With u
 * the steps of a unit (1, or those of an epoch), W the warm-up, L the length, i = step - 1:
 *
 *     i < W u: rate (from + (1 - from) i / (W u))
 *     else by n = floor(i / u) - W, N = L - W, p = min(n / (N - 1), 1):
 *     constant     rate
 *     step         rate gamma^floor(n / step_size)
 *     multi_step   rate gamma^k, k the milestones that n + W has reached
 *     exponential  rate gamma^n
 *     cosine       min + (rate - min) (1 + cos(pi p)) / 2
 *     polynomial   min + (rate - min) (1 - p)^power
 *     one_cycle    P = pct_start N - 1, C(a, b, q) = b + (a - b) (1 + cos(pi q)) / 2:
 *                  n < P: C(rate, max, n / P), else C(max, min, min((n - P) / (N - 1 - P), 1))
 *
 * These are PyTorch's StepLR, MultiStepLR, ExponentialLR, CosineAnnealingLR (T_max = N - 1),
 * PolynomialLR (total_iters = N - 1) and OneCycleLR, and its LinearLR for the warm-up. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "libworker/job/job.h"
#include "proto/err.h"

#include <stdint.h>

/* step: 1 for the first. Without a schedule the job's own rate. */
double schedule_rate(const struct job *job, int64_t steps_per_epoch, uint64_t step);

/* What a group of parameters has where all others have this rate: its own one, scaled alike. NULL:
 * they are of no group. */
double schedule_group_rate(const struct job_optimizer *optimizer, const struct job_group *group,
                           double rate);

/* MS_E_INVALID: its warm-up is longer than the job, as is known once the data are. */
int schedule_check(const struct job *job, int64_t steps_per_epoch, struct ms_err *err);

#endif
