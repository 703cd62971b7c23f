/* job_texts.h - job files of the tests of jobs, and how they read them */
#ifndef TESTS_JOB_TEXTS_H
#define TESTS_JOB_TEXTS_H

#include "libworker/job/job.h"
#include "tests/test.h"

#define MINIMAL                                                                                    \
    "network: mnist\n"                                                                             \
    "dataset: {kind: mnist, path: /data/mnist}\n"                                                  \
    "optimizer: {kind: sgd, learning_rate: 0.01}\n"
#define WITH_IMAGES                                                                                \
    "network: resnet50\n"                                                                          \
    "dataset: {kind: cifar10, path: /data/cifar}\n"                                                \
    "optimizer: {kind: momentum, learning_rate: 0.01}\n"

static inline int parse(const char *text, struct job *ret, struct ms_err *err)
{
    return job_parse(text, strlen(text), "job.yaml", "/base", NULL, 0, 0, ret, err);
}

static inline int parse_set(const char *text, const char *key_value, struct job *ret,
                            struct ms_err *err)
{
    struct job_override override = {key_value};
    return job_parse(text, strlen(text), "job.yaml", "/base", &override, 1, 0, ret, err);
}

/* MINIMAL plus lines of one's own. */
static inline int parse_more(const char *more, struct job *ret, struct ms_err *err)
{
    char text[4096];
    snprintf(text, sizeof(text), "%s%s", MINIMAL, more);
    return parse(text, ret, err);
}

/* As canonical JSON, and back: the same, twice. */
static inline void check_round_trip(const struct job *job)
{
    struct job again;
    size_t size = 0;
    char *text = job_format(job, &size);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(size, strlen(text));
    ck_assert_ptr_null(strchr(text, '\n'));

    ck_ms_ok(job_parse(text, size, "canonical", NULL, NULL, 0, 0, &again, err));

    ck_assert_mem_eq(job, &again, sizeof(again));
    char *second = job_format(&again, NULL);
    ck_assert_str_eq(text, second);
    free(text);
    free(second);
}

#endif
