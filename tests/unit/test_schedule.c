/* test_schedule.c - learning rates against PyTorch's documented formulas and figures of theirs */
#include "libworker/train/schedule.h"
#include "proto/rng.h"
#include "tests/test.h"
#include "tests/unit/train_case.h"

#include <math.h>

#define PI 3.14159265358979323846

/* The case's job with a schedule and a length in steps; SPE steps an epoch. */
enum { SPE = 10 };

static struct job with(const char *rate, const char *schedule, int64_t steps)
{
    static char sets[3][256];
    struct job job;
    snprintf(sets[0], sizeof(sets[0]), "optimizer={kind: sgd, learning_rate: %s, schedule: %s}",
             rate, schedule);
    snprintf(sets[1], sizeof(sets[1]), "steps=%lld", (long long)steps);
    snprintf(sets[2], sizeof(sets[2]), "epochs=1000");
    const char *const all[] = {sets[0], sets[1], sets[2]};
    train_case_job(&job, all, 3);
    return job;
}

/* ---- figures ---- */

/* Rates by the formulas in PyTorch's manual, made by hand or with 40 decimal digits: for step i + 1
 * what its scheduler has after i calls of step(). */
static const struct figures {
    const char *rate, *schedule;
    int64_t steps;
    struct {
        uint64_t step;
        double rate;
    } at[12];
} figures[] = {
    {"0.1", "{kind: constant}", 100, {{1, 0.1}, {100, 0.1}}},
    {"0.05",
     "{kind: step, by: step, step_size: 30}", /* the example of StepLR */
     100,
     {{1, 0.05}, {30, 0.05}, {31, 0.005}, {60, 0.005}, {61, 0.0005}, {91, 0.00005}}},
    {"0.05",
     "{kind: multi_step, by: step, milestones: [30, 80], gamma: 0.1}", /* that of MultiStepLR */
     100,
     {{1, 0.05}, {30, 0.05}, {31, 0.005}, {80, 0.005}, {81, 0.0005}, {100, 0.0005}}},
    {"0.1",
     "{kind: exponential, by: step, gamma: 0.9}",
     100,
     {{1, 0.1}, {2, 0.09}, {3, 0.081}, {11, 0.03486784401}}},
    {"0.1", /* T_max 10: 11 steps */
     "{kind: cosine}",
     11,
     {{1, 0.1},
      {2, 0.09755282581475769},
      {3, 0.09045084971874737},
      {4, 0.07938926261462366},
      {6, 0.05},
      {8, 0.02061073738537635},
      {10, 0.0024471741852423235},
      {11, 0},
      {12, 0}}},
    {"0.1",
     "{kind: cosine, min_learning_rate: 0.02, by: step, length: 5}",
     100,
     {{1, 0.1},
      {2, 0.088284271247461901},
      {3, 0.06},
      {4, 0.031715728752538099},
      {5, 0.02},
      {9, 0.02}}},
    {"0.1", /* total_iters 4, power 1: 0.1 0.075 0.05 0.025 0 */
     "{kind: polynomial}",
     5,
     {{1, 0.1}, {2, 0.075}, {3, 0.05}, {4, 0.025}, {5, 0}}},
    {"0.1",
     "{kind: polynomial, power: 2, min_learning_rate: 0.02}",
     5,
     {{1, 0.1}, {2, 0.065}, {3, 0.04}, {4, 0.025}, {5, 0.02}}},
    {"0.1",
     "{kind: polynomial, power: 0.9}",
     5,
     {{1, 0.1}, {2, 0.07718895067235704380}, {3, 0.05358867312681465821}, {5, 0}}},
    {"0.04", /* OneCycleLR(max_lr=1, total_steps=10): peak after 0.3 * 10 - 1 = 2 steps */
     "{kind: one_cycle, max_learning_rate: 1, min_learning_rate: 4e-6}",
     10,
     {{1, 0.04},
      {2, 0.52},
      {3, 1},
      {4, 0.9504846320134737},
      {7, 0.38874197806371075},
      {10, 4e-6},
      {11, 4e-6}}},
    {"0.1", /* LinearLR(start_factor=0.5, total_iters=4), and ConstantLR behind it */
     "{kind: constant, by: step, warmup: 4, warmup_from: 0.5}",
     100,
     {{1, 0.05}, {2, 0.0625}, {3, 0.075}, {4, 0.0875}, {5, 0.1}, {6, 0.1}}},
    {"0.1", /* the first step of a warm-up from 0 has the rate 0, as LinearLR's and MindSpore's */
     "{kind: cosine, by: step, warmup: 5}",
     16,
     {{1, 0}, {2, 0.02}, {5, 0.08}, {6, 0.1}, {7, 0.09755282581475769}, {11, 0.05}, {16, 0}}},
    {"0.1", /* an epoch has ten steps: the warm-up rises with each, the rest changes with epochs */
     "{kind: step, by: epoch, step_size: 2, gamma: 0.5, warmup: 1}",
     100,
     {{1, 0}, {2, 0.01}, {10, 0.09}, {11, 0.1}, {30, 0.1}, {31, 0.05}, {50, 0.05}, {51, 0.025}}},
    {"0.1",
     "{kind: multi_step, by: epoch, milestones: [3, 4], gamma: 0.5, warmup: 2}",
     100,
     {{1, 0}, {11, 0.05}, {21, 0.1}, {30, 0.1}, {31, 0.05}, {40, 0.05}, {41, 0.025}}},
    {"0.1", /* six epochs, the last of them short: T_max 6, as in PyTorch's examples */
     "{kind: cosine, by: epoch}",
     55,
     {{1, 0.1},
      {10, 0.1},
      {11, 0.09330127018922195},
      {50, 0.025},
      {51, 0.006698729810778065},
      {55, 0.006698729810778065},
      {61, 0}}},
    {"0.1", /* two epochs: none of them in vain */
     "{kind: cosine, by: epoch}",
     20,
     {{1, 0.1}, {10, 0.1}, {11, 0.05}, {20, 0.05}, {21, 0}}},
    {"0.01", /* it only rises, to the end */
     "{kind: one_cycle, max_learning_rate: 0.1, pct_start: 1}",
     11,
     {{1, 0.01}, {6, 0.055}, {11, 0.1}}},
    {"0.1", "{kind: cosine}", 1, {{1, 0.1}}}, /* no way from begin to end */
};

START_TEST(rates_are_those_of_the_formulas)
{
    const struct figures *f = &figures[_i];
    const struct job job = with(f->rate, f->schedule, f->steps);
    for (size_t i = 0; i < MS_ARRAY_SIZE(f->at) && f->at[i].step > 0; i++) {
        const double got = schedule_rate(&job, SPE, f->at[i].step);
        ck_assert_msg(fabs(got - f->at[i].rate) <= 1e-15, "%s: step %d: %.17g, want %.17g",
                      f->schedule, (int)f->at[i].step, got, f->at[i].rate);
    }
}
END_TEST

START_TEST(without_a_schedule_the_rate_is_that_of_the_job)
{
    struct job job;
    train_case_job(&job, NULL, 0);
    ck_assert_double_eq(schedule_rate(&job, SPE, 1), 0.05);
    ck_assert_double_eq(schedule_rate(&job, SPE, 1ULL << 40), 0.05);
    ck_ms_ok(schedule_check(&job, SPE, err));
}
END_TEST

/* ---- properties, of shapes that are drawn ---- */

static struct job draw(uint64_t seed, enum job_schedule_kind kind)
{
    struct job job;
    train_case_job(&job, NULL, 0);
    struct job_optimizer *o = &job.optimizer;
    struct job_schedule *s = &o->schedule;
    job.epochs = 2 + (int64_t)(ms_rng_mix(seed) % 60);
    o->has_schedule = 1;
    o->learning_rate = 0.01 + ms_rng_unit(seed, 1);
    s->kind = kind;
    s->by = ms_rng_mix(seed + 1) % 2 == 0 ? JOB_BY_STEP : JOB_BY_EPOCH;
    s->warmup = (int64_t)(ms_rng_mix(seed + 2) % (uint64_t)(job.epochs - 1));
    s->warmup_from = ms_rng_unit(seed, 3);
    s->step_size = 1 + (int64_t)(ms_rng_mix(seed + 4) % 9);
    s->n_milestones = 3;
    for (int i = 0; i < s->n_milestones; i++) {
        s->milestones[i] = s->warmup + 1 + 4 * i;
    }
    s->gamma = ms_rng_unit(seed, 5);
    s->power = 0.1 + 3 * ms_rng_unit(seed, 6);
    s->min_learning_rate = o->learning_rate * ms_rng_unit(seed, 7);
    s->max_learning_rate = o->learning_rate * (1 + 30 * ms_rng_unit(seed, 8));
    s->pct_start = 0.5 * ms_rng_unit(seed, 9);
    return job;
}

enum { KINDS = JOB_ONE_CYCLE + 1, SEEDS = 60 };

/* The formulas of schedule.h in another way: by units, with the C library, without their steps. */
static double other_way(const struct job *job, int64_t spe, uint64_t step)
{
    const struct job_optimizer *o = &job->optimizer;
    const struct job_schedule *s = &o->schedule;
    const double u = s->by == JOB_BY_EPOCH ? (double)spe : 1;
    const double i = (double)step - 1;
    const double w = (double)s->warmup;
    if (i < w * u) {
        const double first = o->learning_rate * s->warmup_from;
        return first + (o->learning_rate - first) * i / (w * u);
    }
    const double now = floor(i / u);
    const double all = ceil((double)job->epochs * (double)spe / u) - w;
    const double end = s->min_learning_rate;
    const double most = s->by == JOB_BY_EPOCH ? all : all - 1; /* where the end is reached */
    const double p = now > w ? fmin((now - w) / most, 1) : 0;
    const double peak = s->pct_start * (most + 1) - 1;
    double reached = 0;
    for (int m = 0; m < s->n_milestones; m++) {
        reached += (double)s->milestones[m] <= now;
    }
    switch (s->kind) {
    case JOB_STEP_DECAY:
        return o->learning_rate * pow(s->gamma, floor((now - w) / (double)s->step_size));
    case JOB_MULTI_STEP:
        return o->learning_rate * pow(s->gamma, reached);
    case JOB_EXPONENTIAL:
        return o->learning_rate * pow(s->gamma, now - w);
    case JOB_COSINE:
        return end + 0.5 * (o->learning_rate - end) * (1 + cos(PI * p));
    case JOB_POLYNOMIAL:
        return end + (o->learning_rate - end) * pow(1 - p, s->power);
    case JOB_ONE_CYCLE:
        if (now - w < peak) {
            return o->learning_rate +
                   (s->max_learning_rate - o->learning_rate) * (1 - cos(PI * (now - w) / peak)) / 2;
        }
        return s->max_learning_rate -
               (s->max_learning_rate - end) *
                   (1 - cos(PI * fmin((now - w - peak) / (most - peak), 1))) / 2;
    default:
        return o->learning_rate;
    }
}

START_TEST(rates_of_drawn_schedules_are_those_of_the_formulas)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct job job = draw(100 * seed, (enum job_schedule_kind)_i);
        const int64_t spe = 1 + (int64_t)(ms_rng_mix(seed) % 17);
        const uint64_t total = job_total_steps(&job, spe);
        for (uint64_t step = 1; step <= total + 3; step++) {
            const double got = schedule_rate(&job, spe, step);
            const double want = other_way(&job, spe, step);
            ck_assert_msg(fabs(got - want) <= 1e-12 * (want + 1e-3),
                          "kind %d, seed %d, step %d of %d: %.17g, want %.17g", _i, (int)seed,
                          (int)step, (int)total, got, want);
        }
    }
}
END_TEST

/* To the bit, and what a rate is read from is one float. */
START_TEST(a_warm_up_ends_where_the_schedule_begins)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct job job = draw(100 * seed, (enum job_schedule_kind)_i);
        const int64_t unit = job.optimizer.schedule.by == JOB_BY_EPOCH ? SPE : 1;
        const double rate = job.optimizer.learning_rate;
        job.optimizer.schedule.warmup++;
        job.optimizer.schedule.pct_start = 0.9; /* one_cycle begins with its rise */
        for (int i = 0; i < 3; i++) {
            job.optimizer.schedule.milestones[i]++;
        }
        const int64_t steps = job.optimizer.schedule.warmup * unit;
        job.epochs += SPE;

        const double first = schedule_rate(&job, SPE, 1);
        const double last = schedule_rate(&job, SPE, (uint64_t)steps);
        const double behind = schedule_rate(&job, SPE, (uint64_t)steps + 1);

        ck_assert_double_eq(behind, rate);
        ck_assert_double_eq_tol(first, rate * job.optimizer.schedule.warmup_from, 1e-15);
        ck_assert_double_eq_tol(
            behind - last, rate * (1 - job.optimizer.schedule.warmup_from) / (double)steps, 1e-14);
    }
}
END_TEST

START_TEST(the_last_step_has_the_last_rate)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct job job = draw(100 * seed, (enum job_schedule_kind)_i);
        const double end = job.optimizer.schedule.min_learning_rate;
        job.epochs += 3;
        const uint64_t total = job_total_steps(&job, SPE);
        /* by epoch it is that of the one behind the last: none is in vain */
        const int by_epoch = job.optimizer.schedule.by == JOB_BY_EPOCH;
        const uint64_t epochs = (total + SPE - 1) / SPE;
        const uint64_t last = by_epoch ? epochs * SPE + 1 : total;
        ck_assert_double_eq(schedule_rate(&job, SPE, last), end);
        ck_assert_double_eq(schedule_rate(&job, SPE, last + 100), end);
        ck_assert_double_gt(schedule_rate(&job, SPE, last - 1), end);
    }
}
END_TEST

START_TEST(rates_stay_between_their_ends)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct job job = draw(100 * seed, (enum job_schedule_kind)_i);
        const struct job_optimizer *o = &job.optimizer;
        const double most = _i == JOB_ONE_CYCLE ? o->schedule.max_learning_rate : o->learning_rate;
        for (uint64_t step = 1; step <= job_total_steps(&job, SPE); step++) {
            const double rate = schedule_rate(&job, SPE, step);
            ck_assert(rate >= 0 && rate <= most);
        }
    }
}
END_TEST

START_TEST(the_largest_numbers_overflow_nothing)
{
    struct job job = with("1000", "{kind: cosine, by: epoch, length: 1000000000000}", 0);
    job.epochs = MS_EPOCHS_MAX;
    const int64_t spe = 100000000;
    const uint64_t total = job_total_steps(&job, spe);
    ck_assert_uint_eq(total, 100000000000000ULL);
    ck_assert_double_eq(schedule_rate(&job, spe, 1), 1000);
    ck_assert_double_lt(schedule_rate(&job, spe, total), 1000);
    job.optimizer.schedule.length = 0;
    ck_assert_double_lt(schedule_rate(&job, spe, total), 1e-8);
    ck_assert_double_eq(schedule_rate(&job, spe, total + 1), 0);
    job.optimizer.schedule.warmup = 1000000000000;
    ck_assert_double_eq_tol(schedule_rate(&job, spe, total), 1e-3, 1e-12);
}
END_TEST

/* ---- what only the data show ---- */

START_TEST(a_warm_up_that_is_longer_than_the_job_is_refused_at_the_start)
{
    struct job job = with("0.1", "{kind: constant, by: step, warmup: 40}", 0);
    job.epochs = 4;
    ck_ms_ok(schedule_check(&job, 10, err));
    ck_ms_fails(schedule_check(&job, 9, err), MS_E_INVALID,
                "optimizer.schedule.warmup: 40 steps, and with this dataset the job has 36 steps, "
                "9 an epoch; give 0 to 36, or more epochs");
    job.optimizer.schedule.by = JOB_BY_EPOCH;
    job.optimizer.schedule.warmup = 2;
    job.steps = 20;
    ck_ms_ok(schedule_check(&job, 10, err));
    job.steps = 19;
    ck_ms_fails(schedule_check(&job, 10, err), MS_E_INVALID,
                "2 epochs, and with this dataset the job has 19 steps, 10 an epoch; give 0 to 1,");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tc = tcase_create("schedule");
    tcase_add_loop_test(tc, rates_are_those_of_the_formulas, 0, (int)MS_ARRAY_SIZE(figures));
    tcase_add_test(tc, without_a_schedule_the_rate_is_that_of_the_job);
    tcase_add_loop_test(tc, rates_of_drawn_schedules_are_those_of_the_formulas, 0, KINDS);
    tcase_add_loop_test(tc, a_warm_up_ends_where_the_schedule_begins, 0, KINDS);
    tcase_add_loop_test(tc, the_last_step_has_the_last_rate, JOB_COSINE, KINDS);
    tcase_add_loop_test(tc, rates_stay_between_their_ends, 0, KINDS);
    tcase_add_test(tc, the_largest_numbers_overflow_nothing);
    tcase_add_test(tc, a_warm_up_that_is_longer_than_the_job_is_refused_at_the_start);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
