/* test_norm.c - layer, group and instance norm in graphs and plans: shapes, whole steps in every
 * layout, plans as text */
#include "libworker/plan/internal.h"
#include "tests/unit/golden_plan.h"
#include "tests/unit/plan_oracle.h"

/* ---- graphs -------------------------------------------------------------------------------------
 */

static const struct init normal = {INIT_NORMAL, 1};

/* x with gamma (perhaps beta) of that shape. */
static int norm_of(struct graph *g, enum op_kind kind, int x, const struct shape *affine, int n_in,
                   struct ms_err *err)
{
    struct op op = {.kind = kind, .n_in = n_in, .in = {x}, .groups = 2, .epsilon = 1e-5};
    op.in[1] = n_in > 1 ? graph_param(g, "n.gamma", affine, normal, err) : -1;
    op.in[2] = n_in > 2 ? graph_param(g, "n.beta", affine, normal, err) : -1;
    return graph_apply(g, &op, err);
}

START_TEST(a_scale_of_another_shape_is_refused_with_the_right_one)
{
    struct graph *g = graph_create("g");
    const struct shape images = {4, {2, 4, 3, 3}}, channels = {1, {4}}, sample = {3, {4, 3, 3}};
    const int x = graph_data(g, "data", &images, NULL);
    ck_ms_fails(norm_of(g, OP_LAYER_NORM, x, &channels, 2, err), MS_E_INVALID,
                "graph g: layer_norm: n.gamma must be (4, 3, 3); inputs: data (2, 4, 3, 3), "
                "n.gamma (4)");
    graph_destroy(g);
    g = graph_create("g");
    ck_ms_fails(norm_of(g, OP_GROUP_NORM, graph_data(g, "data", &images, NULL), &sample, 3, err),
                MS_E_INVALID, "group_norm: n.gamma must be (4); inputs: ");
    graph_destroy(g);
}
END_TEST

START_TEST(numbers_that_cannot_be_are_refused)
{
    struct graph *g = graph_create("g");
    const struct shape images = {4, {2, 4, 3, 3}}, cubes = {3, {2, 4, 3}}, rows = {2, {2, 4}};
    const int x = graph_data(g, "data", &images, NULL);
    struct op op = {.kind = OP_GROUP_NORM, .in = {x}, .groups = 3, .epsilon = 1e-5};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "4 channels are no multiple of 3 groups");
    op.groups = 2;
    op.epsilon = 0;
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "epsilon 0 must be above 0");
    op = (struct op){.kind = OP_LAYER_NORM, .in = {x}, .epsilon = NAN};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "epsilon nan must be above 0");
    graph_destroy(g);
    g = graph_create("g");
    op = (struct op){.kind = OP_GROUP_NORM, .groups = 1, .epsilon = 1e-5};
    op.in[0] = graph_data(g, "data", &cubes, NULL);
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID,
                "the input must be images (n, c, h, w) or rows (n, c)");
    graph_destroy(g);
    g = graph_create("g");
    op = (struct op){.kind = OP_LAYER_NORM, .epsilon = 1e-5};
    op.in[0] = graph_data(g, "data", &rows, NULL);
    op.of_pixels = 1;
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID,
                "must be images (n, c, h, w) or sequences (n, tokens, c); inputs");
    graph_destroy(g);
}
END_TEST

START_TEST(graphs_are_described_with_their_groups)
{
    struct graph *g = graph_create("g");
    const struct shape images = {4, {2, 4, 3, 3}};
    int x = graph_data(g, "data", &images, NULL);
    struct op op = {.kind = OP_GROUP_NORM, .in = {x}, .groups = 2, .epsilon = 1e-5};
    x = graph_apply(g, &op, NULL);
    op = (struct op){.kind = OP_LAYER_NORM, .in = {x}, .of_pixels = 1, .epsilon = 1e-5};
    ck_assert_int_ge(graph_apply(g, &op, NULL), 0);
    char *text = graph_describe(g);
    ck_assert_ptr_nonnull(strstr(text, "-> group_norm_0 (2, 4, 3, 3) [2 groups]\n"));
    ck_assert_ptr_nonnull(strstr(text, "-> layer_norm_1 (2, 4, 3, 3) [of each pixel]\n"));
    free(text);
    graph_destroy(g);
}
END_TEST

/* ---- steps --------------------------------------------------------------------------------------
 */

/* All forms of them, behind convolutions of `width`, behind what two read, on the data, on a
 * flattened image and on rows. */
static struct graph *network_of(int width, int64_t batch)
{
    const struct network_input input = {
        .batch = batch, .channels = 3, .height = 8, .width = 8, .classes = 5};
    struct network *network = NULL;
    struct graph *graph = NULL;
    char text[4096];
    snprintf(text, sizeof(text),
             "- layer_norm: {gamma: {normal: 1}, beta: {normal: 0.5}}\n"
             "- conv2d: {out: %d, kernel: 3, padding: same, weight: {uniform: 0.5}}\n"
             "- group_norm: {groups: 3, gamma: {normal: 1}, beta: {normal: 0.5}}\n"
             "- relu\n"
             "- conv2d: {out: %d, kernel: 3, padding: same, weight: {uniform: 0.5}}\n"
             "- layer_norm: {gamma: {normal: 1}, beta: {normal: 0.5}}\n"
             "- residual:\n"
             "    body:\n"
             "    - layer_norm: {over: channels, gamma: {normal: 1}, beta: none}\n"
             "    - silu\n"
             "    - conv2d: {out: %d, kernel: 1, weight: {uniform: 0.5}}\n"
             "    shortcut: [instance_norm]\n"
             "- max_pool: {kernel: 2}\n"
             "- conv2d: {out: %d, kernel: 1, weight: {uniform: 0.5}}\n"
             "- layer_norm: {gamma: none, beta: none}\n"
             "- flatten\n"
             "- group_norm: {groups: 4, gamma: {normal: 1}, beta: {normal: 0.5}}\n"
             "- dense: {out: 12, weight: {uniform: 0.3}}\n"
             "- layer_norm: {gamma: {normal: 1}, beta: {normal: 0.5}}\n"
             "- dense: {out: classes}\n",
             width, width, width, width);
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "norms", &network, err));
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    return graph;
}

static const int widths[] = {6, 24, 48};
enum { N_WIDTHS = 3 };

START_TEST(networks_give_the_gradients_of_the_oracle)
{
    const char *isa = oracle_isas[_i % ORACLE_N_ISAS];
    if (!oracle_has_isa(isa)) {
        return;
    }
    for (int threads = 1; threads <= 2; threads++) {
        struct case_options options = {.training = 1, .threads = threads, .isa = isa};
        struct plan_case c;
        case_init(&c, network_of(widths[_i / ORACLE_N_ISAS], 4), &options);
        oracle_check_step(&c);
        case_fini(&c);
    }
    /* the same as in training: there are no moving statistics */
    oracle_check_evaluation(network_of(widths[_i / ORACLE_N_ISAS], 3));
}
END_TEST

/* Gradients are summed up over what several norms make of one gamma. */
START_TEST(two_layers_may_share_their_scale)
{
    struct graph *g = graph_create("shared");
    const struct shape images = {4, {3, 4, 5, 5}}, sample = {3, {4, 5, 5}}, labels = {1, {3}};
    const struct shape weight = {2, {5, 100}};
    struct op op = {.kind = OP_LAYER_NORM, .n_in = 3, .epsilon = 1e-5};
    op.in[0] = graph_data(g, "data", &images, NULL);
    op.in[1] = graph_param(g, "n.gamma", &sample, normal, NULL);
    op.in[2] = graph_param(g, "n.beta", &sample, normal, NULL);
    op.in[0] = graph_apply(g, &op, NULL);
    op.in[0] = graph_apply(g, &op, NULL);
    const int w = graph_param(g, "w", &weight, normal, NULL);
    const struct op dense = {
        .kind = OP_DENSE, .n_in = 2, .in = {graph_flatten(g, op.in[0], NULL), w}};
    const int logits = graph_apply(g, &dense, NULL);
    const int label = graph_label(g, "label", &labels, MS_I32, NULL);
    ck_ms_ok(graph_set_loss(g, graph_softmax_ce(g, logits, label, NULL), err));
    ck_ms_ok(graph_set_output(g, logits, err));
    struct case_options options = {.training = 1, .threads = 1};
    struct plan_case c;
    case_init(&c, g, &options);

    oracle_check_step(&c);

    case_fini(&c);
}
END_TEST

/* ---- plans --------------------------------------------------------------------------------------
 */

static struct job norms_job(int world)
{
    return job_of_graphs(network_of(6, 4), network_of(6, 5), world);
}

START_TEST(a_plan_with_norms_is_made_of_what_was_read)
{
    oracle_check_read_plan((struct job[]){norms_job(1), norms_job(1)});
}
END_TEST

/* The scale of a sample's values lies in C order, whatever a text says. */
START_TEST(a_scale_in_another_layout_is_refused_by_line)
{
    struct job job = norms_job(1);
    struct plan *plan = NULL;
    int n_found = 0;
    for (int i = 0; i < job.spec->n_params; i++) {
        struct plan_spec_param *p = &job.spec->params[i];
        if (strcmp(p->name, "layer_norm2.gamma") == 0) {
            ck_assert_str_eq(p->layout, "abc");
            snprintf(p->layout, sizeof(p->layout), "acb");
            n_found++;
        }
    }
    ck_assert_int_eq(n_found, 1);
    ck_ms_fails(plan_create(job.graphs[PLAN_TRAIN], job.spec, PLAN_TRAIN, NULL, &plan, err),
                MS_E_INVALID, "layer_norm2.gamma");
    ck_assert_ptr_null(plan);
    job_fini(&job);
}
END_TEST

START_TEST(a_plan_is_what_it_was)
{
    if (golden_plan_begin()) {
        struct job job = norms_job(8);
        ck_golden_plan(job.spec, "norms");
        job_fini(&job);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("norm");
    TCase *tc = tcase_create("norms");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_scale_of_another_shape_is_refused_with_the_right_one);
    tcase_add_test(tc, numbers_that_cannot_be_are_refused);
    tcase_add_test(tc, graphs_are_described_with_their_groups);
    tcase_add_loop_test(tc, networks_give_the_gradients_of_the_oracle, 0, N_WIDTHS * ORACLE_N_ISAS);
    tcase_add_test(tc, two_layers_may_share_their_scale);
    tcase_add_test(tc, a_plan_with_norms_is_made_of_what_was_read);
    tcase_add_test(tc, a_scale_in_another_layout_is_refused_by_line);
    tcase_add_test(tc, a_plan_is_what_it_was);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
