/* schedule.c - the learning rate of a step */
#include "libworker/train/schedule.h"

#include "proto/exact.h"

#include <inttypes.h>

struct place { /* of a step behind the warm-up, in units */
    double rate;
    int64_t now; /* since the job's beginning */
    int64_t n;   /* since the end of the warm-up */
    double last; /* the n at which the end is reached */
};

typedef double rate_fn(const struct job_schedule *schedule, const struct place *place);

static double constant(const struct job_schedule *schedule, const struct place *place)
{
    (void)schedule;
    return place->rate;
}

static double step_decay(const struct job_schedule *schedule, const struct place *place)
{
    const uint64_t decays = (uint64_t)(place->n / schedule->step_size);
    return place->rate * ms_exact_power(schedule->gamma, decays);
}

static double multi_step(const struct job_schedule *schedule, const struct place *place)
{
    uint64_t reached = 0;
    for (int i = 0; i < schedule->n_milestones; i++) {
        reached += place->now >= schedule->milestones[i];
    }
    return place->rate * ms_exact_power(schedule->gamma, reached);
}

static double exponential(const struct job_schedule *schedule, const struct place *place)
{
    return place->rate * ms_exact_power(schedule->gamma, (uint64_t)place->n);
}

/* How far n is from begin to end, at most 1; where there is no way between them it is at its end.
 */
static double share(double n, double begin, double end)
{
    return n < end ? (n - begin) / (end - begin) : 1;
}

/* One that ends where it begins has its first rate there, as where it is longer. */
static double progress(const struct place *place)
{
    return place->n == 0 ? 0 : share((double)place->n, 0, place->last);
}

/* Exact at both ends, so that a warm-up meets what follows. */
static double between(double from, double to, double share_of_from)
{
    return share_of_from >= 1 ? from : to + (from - to) * share_of_from;
}

static double anneal(double from, double to, double progress)
{
    return between(from, to, (1.0 + ms_exact_cos_pi(progress)) / 2.0);
}

static double cosine(const struct job_schedule *schedule, const struct place *place)
{
    return anneal(place->rate, schedule->min_learning_rate, progress(place));
}

static double polynomial(const struct job_schedule *schedule, const struct place *place)
{
    return between(place->rate, schedule->min_learning_rate,
                   ms_exact_share_power(1.0 - progress(place), schedule->power));
}

static double one_cycle(const struct job_schedule *schedule, const struct place *place)
{
    const double n = (double)place->n;
    const double peak = schedule->pct_start * (place->last + 1.0) - 1.0;
    if (peak >= place->last) { /* it only rises */
        return anneal(place->rate, schedule->max_learning_rate, n < peak ? n / peak : 1);
    }
    return n < peak ? anneal(place->rate, schedule->max_learning_rate, n / peak)
                    : anneal(schedule->max_learning_rate, schedule->min_learning_rate,
                             share(n, peak, place->last));
}

static rate_fn *const kinds[] = {
    [JOB_CONSTANT] = constant,       [JOB_STEP_DECAY] = step_decay, [JOB_MULTI_STEP] = multi_step,
    [JOB_EXPONENTIAL] = exponential, [JOB_COSINE] = cosine,         [JOB_POLYNOMIAL] = polynomial,
    [JOB_ONE_CYCLE] = one_cycle,
};

/* An epoch that `steps` cuts off is one, too. */
static int64_t length_of(const struct job *job, int64_t steps_per_epoch, int64_t unit)
{
    const int64_t length = job->optimizer.schedule.length;
    const int64_t total = (int64_t)job_total_steps(job, steps_per_epoch);
    return length > 0 ? length : (total + unit - 1) / unit;
}

double schedule_rate(const struct job *job, int64_t steps_per_epoch, uint64_t step)
{
    const struct job_optimizer *optimizer = &job->optimizer;
    const struct job_schedule *schedule = &optimizer->schedule;
    if (!optimizer->has_schedule) {
        return optimizer->learning_rate;
    }
    const int64_t unit = schedule->by == JOB_BY_EPOCH ? steps_per_epoch : 1;
    const int64_t before = (int64_t)(step - 1);
    const int64_t now = before / unit;
    if (now < schedule->warmup) {
        const double risen = (double)before / ((double)schedule->warmup * (double)unit);
        return optimizer->learning_rate *
               (schedule->warmup_from + (1.0 - schedule->warmup_from) * risen);
    }
    const int64_t length = length_of(job, steps_per_epoch, unit);
    /* the last step has the last rate; an epoch of it would be one in vain, so it is behind it */
    const int64_t behind = schedule->by == JOB_BY_EPOCH ? 0 : 1;
    const struct place place = {.rate = optimizer->learning_rate,
                                .now = now,
                                .n = now - schedule->warmup,
                                .last = (double)(length - schedule->warmup - behind)};
    return kinds[schedule->kind](schedule, &place);
}

double schedule_group_rate(const struct job_optimizer *optimizer, const struct job_group *group,
                           double rate)
{
    if (group == NULL || !group->has_learning_rate) {
        return rate;
    }
    return optimizer->has_schedule ? group->learning_rate * (rate / optimizer->learning_rate)
                                   : group->learning_rate;
}

int schedule_check(const struct job *job, int64_t steps_per_epoch, struct ms_err *err)
{
    const struct job_schedule *schedule = &job->optimizer.schedule;
    const int64_t unit = schedule->by == JOB_BY_EPOCH ? steps_per_epoch : 1;
    const int64_t total = (int64_t)job_total_steps(job, steps_per_epoch);
    const int64_t longest = total / unit;
    return schedule->warmup <= longest
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "optimizer.schedule.warmup: %" PRId64 " %s, and with this dataset the job "
                         "has %" PRId64 " steps, %" PRId64 " an epoch; give 0 to %" PRId64
                         ", or more epochs",
                         schedule->warmup, unit == 1 ? "steps" : "epochs", total, steps_per_epoch,
                         longest);
}
