/* plan_oracle.h - networks of new layers held against the double-precision oracle, and their plans
 * against what was read of their text: for test_activation, test_norm, test_product and
 * test_transposed */
#ifndef TESTS_PLAN_ORACLE_H
#define TESTS_PLAN_ORACLE_H

#include "tests/unit/plan_job.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const oracle_isas[] = {"", "sse41", "avx2", "avx512_core"}; /* "": the best */
enum { ORACLE_N_ISAS = 4 };

/* 0: this machine has no such instructions, or this process has chosen others; it says so. */
static inline int oracle_has_isa(const char *isa)
{
    const char *fork_mode = getenv("CK_FORK");
    struct ms_err refused = {0, ""};
    if (isa[0] != '\0' &&
        ((fork_mode != NULL && strcmp(fork_mode, "no") == 0) || plan_set_isa(isa, &refused) < 0)) {
        printf("skip: %s %s\n", isa, refused.text);
        return 0;
    }
    return 1;
}

static inline void oracle_check_loss(const struct plan_case *c, double loss, double rows)
{
    const double want = ref_graph_loss(c->ref) * rows;
    ck_assert_msg(fabs(loss - want) <= 1e-5 * (1 + fabs(want)), "loss %.9g, want %.9g", loss, want);
}

/* Loss and gradients of a step, with nothing left of what was in the buffers; returns the loss. */
static inline double oracle_check_step(struct plan_case *c)
{
    const char *which = NULL;
    case_reference(c, 5);
    case_reference_batch(c);
    ref_graph_run(c->ref);

    case_poison(c);
    const double loss = (double)case_step(c);

    ck_assert_msg(case_exchange_is_finite(c), "something of the exchange buffer was not written");
    oracle_check_loss(c, loss, 1);
    const double d = case_worst_gradient(c, &which);
    ck_assert_msg(d <= 1e-4, "gradient %s is %.3g off", which, d);
    return loss;
}

/* Takes the graph. */
static inline void oracle_check_evaluation(struct graph *graph)
{
    struct case_options options = {.threads = 1};
    struct plan_case c;
    struct plan_evaluated made;
    case_init(&c, graph, &options);
    case_reference(&c, 5);
    case_reference_batch(&c);
    ref_graph_evaluate(c.ref);
    ck_ms_ok(plan_evaluate(c.plan, c.data, case_labels(&c), c.batch, &made, err));
    oracle_check_loss(&c, made.loss_sum, (double)c.batch);
    case_fini(&c);
}

/* A plan that is made of what was read of its text has the loss of the one that was chosen. Takes
 * the graphs of both. */
static inline void oracle_check_read_plan(struct job jobs[2])
{
    double losses[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct job *job = &jobs[i];
        struct plan_case c = {.graph = job->graphs[PLAN_TRAIN]};
        char *text = NULL;
        size_t size = 0;
        struct plan_spec *read = NULL;
        ck_ms_ok(plan_spec_format(job->spec, &text, &size, err));
        ck_ms_ok(plan_spec_parse(text, size, &read, err));
        ck_ms_ok(plan_create(c.graph, i == 0 ? job->spec : read, PLAN_TRAIN, NULL, &c.plan, err));
        case_buffers(&c);
        case_init_values(&c, 3);
        losses[i] = (double)case_step(&c);
        job->graphs[PLAN_TRAIN] = NULL; /* case_fini has it */
        case_fini(&c);
        free(text);
        plan_spec_destroy(read);
        job_fini(job);
    }
    ck_assert(losses[0] == losses[1]);
}

#endif
