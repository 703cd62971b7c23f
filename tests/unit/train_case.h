/* train_case.h - a small job and one rank that trains it alone, for the tests of room train */
#ifndef TRAIN_CASE_H
#define TRAIN_CASE_H

#include "libworker/job/job.h"
#include "libworker/train/train.h"
#include "tests/test.h"

/* Linear regression on 160 drawn samples, 10 steps an epoch, two epochs. */
#define TRAIN_CASE_JOB                                                                             \
    "network: linear\nworkers: 1\n"                                                                \
    "dataset: {kind: nonlinear, shuffle: false, samples: 160}\nbatch_size: 16\nepochs: 2\n"        \
    "loss: mse\noptimizer: {kind: sgd, learning_rate: 0.05}\n"

/* The job above, with overrides "key=value". */
static inline void train_case_job(struct job *ret, const char *const *sets, size_t n)
{
    struct job_override overrides[12] = {{NULL}};
    ck_assert_uint_le(n, MS_ARRAY_SIZE(overrides));
    for (size_t i = 0; i < n; i++) {
        overrides[i].key_value = sets[i];
    }
    ck_ms_ok(job_parse(TRAIN_CASE_JOB, strlen(TRAIN_CASE_JOB), "the case", "/", overrides, n, 0,
                       ret, err));
}

static inline struct train_config train_case_config(const struct job *job, const char *run_dir)
{
    return (struct train_config){.job = job,
                                 .generation = 1,
                                 .world = 1,
                                 .peer_timeout_ms = 60000,
                                 .cores = 1,
                                 .isa = "",
                                 .run_dir = run_dir,
                                 .log_fd = -1};
}

#endif
