/* test_plan_mirror.c - parameters in a second layout: the same bits, in memory that is counted */
#include "libworker/plan/internal.h"
#include "tests/unit/plan_job.h"

static void init(struct plan_case *c, int i, enum plan_recompute recompute, int mirrors)
{
    struct case_options options = {
        .training = 1, .threads = 1, .recompute = recompute, .mirrors = mirrors};
    case_init(c, network(i, 4, 0), &options);
    case_init_values(c, 3);
    case_poison(c);
}

START_TEST(a_step_with_mirrors_has_the_bits_of_one_that_reorders)
{
    struct plan_case with, without;
    init(&with, _i, PLAN_RECOMPUTE_OFF, 1);
    init(&without, _i, PLAN_RECOMPUTE_OFF, 0);

    float a = case_step(&with);
    float b = case_step(&without);

    ck_assert_uint_eq(without.sizes.mirrors, 0);
    ck_assert(with.sizes.mirrors > 0 ? with.sizes.reorders < without.sizes.reorders
                                     : with.sizes.reorders == without.sizes.reorders);
    ck_assert_msg(a == b, "%.9g, %.9g", (double)a, (double)b);
    ck_assert_int_eq(memcmp(with.buffers.exchange, without.buffers.exchange,
                            with.sizes.exchange * sizeof(float)),
                     0);
    case_fini(&without);
    case_fini(&with);
}
END_TEST

START_TEST(a_step_of_resnet50_reorders_no_weights)
{
    struct plan_case c;
    init(&c, RESNET50, PLAN_RECOMPUTE_OFF, 1);

    for (int s = c.plan->n_mirror_steps; s < c.plan->n_steps; s++) {
        const struct step *step = &c.plan->steps[s];
        for (int k = 0; k < step->n_operands; k++) {
            ck_assert_msg(step->operands[k].place != PLACE_WEIGHTS ||
                              step->kind != STEP_PRIMITIVE || step->prim_kind != DN_REORDER,
                          "step %d reorders parameter %d", s, step->operands[k].index);
        }
    }
    case_fini(&c);
}
END_TEST

START_TEST(mirrors_follow_the_weights_that_others_write)
{
    struct plan_case c, other;
    init(&c, LENET5, PLAN_RECOMPUTE_OFF, 1);
    init(&other, LENET5, PLAN_RECOMPUTE_OFF, 0);
    float *weights[] = {c.buffers.weights, other.buffers.weights};
    for (size_t i = 0; i < c.sizes.weights; i++) {
        weights[0][i] *= 0.5F;
        weights[1][i] *= 0.5F;
    }

    for (int i = 0; i < c.plan->n_params; i++) { /* each alone: only its own is written */
        const struct plan_param *p = &c.plan->params[i];
        ck_ms_ok(plan_write_mirrors(c.plan, p->offset, p->count, err));
    }

    ck_assert(case_step(&c) == case_step(&other));
    ck_assert_int_eq(
        memcmp(c.buffers.exchange, other.buffers.exchange, c.sizes.exchange * sizeof(float)), 0);
    case_fini(&other);
    case_fini(&c);
}
END_TEST

static struct plan *within(struct graph *graph, uint64_t memory_max, struct plan_sizes *ret)
{
    struct case_options options = {.training = 1,
                                   .threads = 1,
                                   .recompute = PLAN_RECOMPUTE_AUTO,
                                   .memory_max = memory_max,
                                   .mirrors = 1};
    struct plan *plan = NULL;
    ck_ms_ok(case_create(graph, &options, &plan, err));
    plan_get_sizes(plan, ret);
    ck_assert(memory_max == 0 || ret->arena_bytes + ret->mirrors * sizeof(float) <= memory_max);
    return plan;
}

/* They are wanted, what is made again is needed. */
START_TEST(where_memory_lacks_mirrors_go_first)
{
    struct graph *graph = network(RESNET50, 16, 1);
    struct plan_sizes all, none, some;
    struct plan *plan = within(graph, 0, &all);
    plan_destroy(plan);
    if (all.mirrors == 0) {
        printf("skip: with %s no weights are wanted in two layouts\n", plan_isa());
        graph_destroy(graph);
        return;
    }
    uint64_t bytes = all.arena_bytes + all.mirrors * sizeof(float);

    plan = within(graph, bytes, &some);
    ck_assert_uint_eq(some.mirrors, all.mirrors);
    plan_destroy(plan);
    plan = within(graph, bytes - 1, &none);
    ck_assert_uint_eq(none.mirrors, 0);
    ck_assert_int_eq(plan->n_copies, 0);
    plan_destroy(plan);
    plan = within(graph, none.arena_bytes - 1, &some);
    ck_assert_uint_eq(some.mirrors, 0);
    ck_assert_int_gt(plan->n_copies, 0);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

START_TEST(a_mirror_that_cannot_be_is_refused_by_its_line)
{
    struct job job = job_of(LENET5, 1, PLAN_RECOMPUTE_OFF, 8);
    struct plan_spec_param *first = &job.spec->params[0]; /* fc3.weight */
    struct plan_spec_param *bias = &job.spec->params[1];
    struct plan *plan = NULL;
    char *text = format(job.spec);
    char line[96];
    int memory = plan_spec_mirror_line(job.spec, 0);
    ck_assert_int_eq(strncmp(line_at(text, memory - 1), "section memory\n", 15), 0);

    snprintf(first->mirror, sizeof(first->mirror), "%s", first->layout);
    snprintf(line, sizeof(line), "plan line %d: parameter fc3.weight cannot have %s", memory,
             first->layout);
    ck_ms_fails(plan_create(job.graphs[PLAN_TRAIN], job.spec, PLAN_TRAIN, NULL, &plan, err),
                MS_E_INVALID, line);
    first->mirror[0] = '\0';
    snprintf(bias->mirror, sizeof(bias->mirror), "a");
    snprintf(line, sizeof(line), "plan line %d: parameter fc3.bias cannot have a", memory);
    ck_ms_fails(plan_create(job.graphs[PLAN_TRAIN], job.spec, PLAN_TRAIN, NULL, &plan, err),
                MS_E_INVALID, line);
    free(text);
    job_fini(&job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_mirror");
    TCase *tc = tcase_create("mirrors");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, a_step_with_mirrors_has_the_bits_of_one_that_reorders, 0, N_NETWORKS);
    tcase_add_test(tc, a_step_of_resnet50_reorders_no_weights);
    tcase_add_test(tc, mirrors_follow_the_weights_that_others_write);
    tcase_add_test(tc, where_memory_lacks_mirrors_go_first);
    tcase_add_test(tc, a_mirror_that_cannot_be_is_refused_by_its_line);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
