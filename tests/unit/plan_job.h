/* plan_job.h - the plans of small jobs as text, for test_plan_* and plan_oracle.h */
#ifndef TESTS_PLAN_JOB_H
#define TESTS_PLAN_JOB_H

#include "libworker/plan/spec.h"
#include "proto/limits.h"
#include "tests/unit/plan_case.h"

static const struct network {
    const char *name;
    int64_t channels, side, classes;
    enum network_loss loss;
} networks[] = {
    {"linear", 2, 1, 1, NETWORK_LOSS_MSE},
    {"lenet5", 1, 32, 10, NETWORK_LOSS_SOFTMAX_CE}, /* padded channels, permuted columns */
    {"mnist", 1, 28, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"cifar_small", 3, 32, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"resnet50", 3, 32, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"layers", 3, 17, 10, NETWORK_LOSS_SOFTMAX_CE},
};
enum { LINEAR, LENET5, MNIST, CIFAR_SMALL, RESNET50, LAYERS, N_NETWORKS };

static inline struct graph *network(int i, int64_t batch, int training)
{
    const struct network *n = &networks[i];
    struct graph *graph = case_model(n->name, batch, n->channels, n->side, n->classes, n->loss);
    if (training) {
        ck_ms_ok(graph_differentiate(graph, err));
    }
    return graph;
}

struct job {
    struct graph *graphs[PLAN_USES];
    struct plan_spec *spec;
};

/* The plans of a job: batches of 4, a last one of 3, evaluation of 5. */
static inline struct job job_of(int i, int threads, enum plan_recompute recompute, int world)
{
    static const int64_t batches[PLAN_USES] = {4, 3, 5};
    struct plan_request request = {
        .world = world, .threads = threads, .recompute = recompute, .mirrors = 1};
    struct job job = {.spec = NULL};
    for (int use = 0; use < PLAN_USES; use++) {
        job.graphs[use] = network(i, batches[use], use != PLAN_EVALUATE);
        request.graphs[use] = job.graphs[use];
    }
    ck_ms_ok(plan_choose(&request, &job.spec, err));
    return job;
}

/* Takes a graph to train, which it differentiates, and one to evaluate. */
static inline struct job job_of_graphs(struct graph *train, struct graph *evaluate, int world)
{
    struct plan_request request = {.world = world, .threads = 1};
    struct job job = {.graphs = {[PLAN_TRAIN] = train, [PLAN_EVALUATE] = evaluate}};
    ck_ms_ok(graph_differentiate(train, err));
    request.graphs[PLAN_TRAIN] = train;
    request.graphs[PLAN_EVALUATE] = evaluate;
    ck_ms_ok(plan_choose(&request, &job.spec, err));
    return job;
}

static inline void job_fini(struct job *job)
{
    for (int use = 0; use < PLAN_USES; use++) {
        graph_destroy(job->graphs[use]);
    }
    plan_spec_destroy(job->spec);
}

static inline char *format(const struct plan_spec *spec)
{
    char *text = NULL;
    size_t size = 0;
    ck_ms_ok(plan_spec_format(spec, &text, &size, err));
    ck_assert_uint_eq(strlen(text), size);
    return text;
}

static inline const char *line_at(const char *text, int line)
{
    for (int i = 1; i < line; i++) {
        text = strchr(text, '\n') + 1;
    }
    return text;
}

static inline int count_lines(const char *text)
{
    int n = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        n++;
    }
    return n;
}

/* The text with a line replaced; free it. */
static inline char *with_line(const char *text, int line, const char *words)
{
    const char *at = line_at(text, line);
    size_t size = strlen(text) + strlen(words) + 1;
    char *other = malloc(size);
    ck_assert_ptr_nonnull(other);
    snprintf(other, size, "%.*s%s%s", (int)(at - text), text, words, strchr(at, '\n'));
    return other;
}

#endif
