/* test_transposed.c - transposed convolution and the bias of channels: PyTorch's numbers, shapes,
 * whole steps, plans */
#include "libworker/plan/internal.h"
#include "tests/unit/golden_plan.h"
#include "tests/unit/plan_oracle.h"

/* ---- PyTorch ------------------------------------------------------------------------------------
 */

/* PyTorch 2.15 in float64:
 *   def seq(n, a, m, q, s): return torch.tensor([a * i % m / q - s for i in range(n)])
 *   x = seq(32, 7, 11, 4, 1.25).reshape(2, 4, 2, 2), w = seq(24, 5, 13, 8, 0.75).reshape(4, 1, 2,
 * 3) b = seq(2, 3, 5, 4, 0.25), c = seq(4, 3, 7, 4, 0.5), t = seq(80, 5, 7, 2, 1.5).reshape(2, 40)
 *   y = f.conv_transpose2d(x + c.reshape(1, 4, 1, 1), w, b, stride=(2, 1), padding=(0, 1),
 *                          output_padding=(1, 0), groups=2, dilation=(1, 2))
 *   loss = f.mse_loss(y.flatten(1), t); loss.backward() */
static const double torch_loss = 1.6404541;
static const double torch_y[40] = {
    -0.125,  0.15625, -0.4375, -1.4375,  -0.25,  -0.15625, -0.5625, -1.75,
    -0.875,  0.34375, -0.25,   -1.53125, -0.625, 0.40625,  0,       -1.46875,
    -0.25,   -0.25,   -0.25,   -0.25,    0.5625, 0.375,    -0.6875, 0.6875,
    1.6875,  0.5,     -0.375,  0.8125,   0.625,  -0.375,   0.625,   0.875,
    0.21875, 0.125,   0.625,   1.375,    0.5,    0.5,      0.5,     0.5}; /* of the first sample */
static const double torch_dw[24] = {
    -0.09375,     0.050390625,  0.171484375,  -0.08359375,  0.023046875, 0.133984375,
    -0.006640625, -0.008203125, -0.165820313, 0.04296875,   0.112890625, -0.138085938,
    0.0125,       -0.130078125, 0.0318359375, 0.16171875,   -0.0078125,  0.0353515625,
    0.01171875,   0.0125,       0.15078125,   -0.038671875, -0.04296875, 0.11015625};
static const double torch_db[2] = {-0.3484375, 0.390625};
static const double torch_dc[4] = {-0.137695312, 0.128320313, 0.0552734375, 0.11796875};

static void set_seq(struct ref_graph *run, int tensor, int n, int a, int m, float q, float s)
{
    float values[80];
    for (int i = 0; i < n; i++) {
        values[i] = (float)(a * i % m) / q - s;
    }
    ref_graph_set(run, tensor, values);
}

static void ck_all(struct ref_graph *run, int tensor, const double *want, int n)
{
    const double *got = ref_graph_values(run, tensor);
    for (int i = 0; i < n; i++) {
        ck_assert_double_eq_tol(got[i], want[i], 1e-8);
    }
}

static int bias_of(struct graph *g, int x, const char *name)
{
    const struct shape shape = {1, {graph_tensor(g, x)->shape.dim[1]}};
    struct op op = {.kind = OP_BIAS, .in = {x}};
    op.in[1] = graph_param(g, name, &shape, (struct init){INIT_NORMAL, 0.5}, NULL);
    return graph_apply(g, &op, NULL);
}

static int gradient_of(const struct graph *g, const char *name)
{
    for (int i = 0; i < graph_n_gradients(g); i++) {
        const int t = graph_gradient(g, i);
        if (strcmp(graph_tensor(g, graph_tensor(g, t)->of)->name, name) == 0) {
            return t;
        }
    }
    ck_abort_msg("no gradient of %s", name);
    return -1;
}

START_TEST(numbers_are_those_of_torch)
{
    const struct shape images = {4, {2, 4, 2, 2}}, weight = {4, {4, 1, 2, 3}}, rows = {2, {2, 40}};
    struct graph *g = graph_create("torch");
    struct op op = {.kind = OP_CONV_TRANSPOSE2D, .groups = 2};
    op.window = (struct op_window){.kernel_h = 2,
                                   .kernel_w = 3,
                                   .stride_h = 2,
                                   .stride_w = 1,
                                   .pad_left = 1,
                                   .pad_right = 1,
                                   .gap_w = 1,
                                   .more_h = 1};
    const int data = graph_data(g, "data", &images, NULL);
    op.in[0] = bias_of(g, data, "c");
    op.in[1] = graph_param(g, "w", &weight, (struct init){INIT_NORMAL, 0.5}, NULL);
    const int y = bias_of(g, graph_apply(g, &op, NULL), "b");
    const int flat = graph_flatten(g, y, NULL);
    const int target = graph_label(g, "label", &rows, MS_F32, NULL);
    ck_ms_ok(graph_set_loss(g, graph_mse(g, flat, target, NULL), err));
    ck_ms_ok(graph_set_output(g, flat, err));
    ck_ms_ok(graph_differentiate(g, err));
    char *text = graph_describe(g);
    ck_assert_ptr_nonnull(strstr(text, "[2x3 / 2x1, pad 0 1 0 1, dilation 1x2, output padding 1x0, "
                                       "2 groups]\n"));
    free(text);
    struct ref_graph *run = ref_graph_create(g);
    ck_assert_ptr_nonnull(run);
    set_seq(run, data, 32, 7, 11, 4, 1.25F);
    set_seq(run, graph_find(g, "w"), 24, 5, 13, 8, 0.75F);
    set_seq(run, graph_find(g, "b"), 2, 3, 5, 4, 0.25F);
    set_seq(run, graph_find(g, "c"), 4, 3, 7, 4, 0.5F);
    set_seq(run, target, 80, 5, 7, 2, 1.5F);

    ref_graph_run(run);

    ck_assert_double_eq_tol(ref_graph_loss(run), torch_loss, 1e-8);
    ck_all(run, y, torch_y, 40);
    ck_all(run, gradient_of(g, "w"), torch_dw, 24);
    ck_all(run, gradient_of(g, "b"), torch_db, 2);
    ck_all(run, gradient_of(g, "c"), torch_dc, 4);
    ref_graph_destroy(run);
    graph_destroy(g);
}
END_TEST

/* ---- graphs -------------------------------------------------------------------------------------
 */

START_TEST(what_cannot_be_is_refused)
{
    const struct shape images = {4, {2, 4, 3, 3}}, weight = {4, {4, 2, 3, 3}}, b = {1, {3}};
    const struct init normal = {INIT_NORMAL, 0.5};
    struct graph *g = graph_create("g");
    const int x = graph_data(g, "data", &images, NULL);
    const int w = graph_param(g, "w", &weight, normal, NULL);
    struct op op = {.kind = OP_CONV_TRANSPOSE2D, .in = {x, w}, .window = graph_window_valid(3, 2)};
    op.window.more_h = 2;
    ck_ms_fails(
        graph_apply(g, &op, err), MS_E_INVALID,
        "output padding must be at least 0 and less than the stride: window 3x3, stride 2x2");
    op.window = graph_window_valid(3, 1);
    op.window.pad_top = op.window.pad_bottom = 3;
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "padding must be at least 0 and less than");
    op.window.pad_top = op.window.pad_bottom = 2;
    op.window.pad_left = 1;
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "padding must be the same on both sides");
    op.window = graph_window_valid(2, 1);
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "the window is 2x2, not the weight's");
    op.window = graph_window_valid(3, 1);
    op.groups = 3;
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "4 channels are no multiple of 3 groups");
    op = (struct op){.kind = OP_BIAS, .in = {x, graph_param(g, "b", &b, normal, NULL)}};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "bias: the bias must be (4); inputs: ");
    graph_destroy(g);
}
END_TEST

/* ---- steps and plans ----------------------------------------------------------------------------
 */

/* An autoencoder's second half: whole blocks and less, groups, holes, odd windows, rows. */
static struct graph *network_of(int width, int64_t batch)
{
    const struct network_input input = {
        .batch = batch, .channels = 3, .height = 8, .width = 8, .classes = 5};
    struct network *network = NULL;
    struct graph *graph = NULL;
    char text[4096];
    snprintf(text, sizeof(text),
             "- conv_transpose2d: {out: 6, kernel: 2, weight: {uniform: 0.5}, bias: fan_in}\n"
             "- relu\n"
             "- conv2d: {out: %d, kernel: 3, stride: 2, weight: {uniform: 0.5}}\n"
             "- conv_transpose2d: {out: %d, kernel: 4, stride: 2, padding: 1, bias: fan_in}\n"
             "- batch_norm\n"
             "- relu\n"
             "- conv_transpose2d: {out: %d, kernel: [3, 2], stride: [2, 1], padding: [1, 0],\n"
             "    output_padding: [1, 0], groups: 2, weight: {uniform: 0.5}}\n"
             "- residual: {body: [{conv_transpose2d: {out: %d, kernel: 3, padding: 2, dilation: 2, "
             "groups: %d, bias: fan_in}}]}\n"
             "- global_avg_pool\n"
             "- dense: {out: classes}\n",
             width, width, width, width, width);
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "transposed", &network, err));
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    return graph;
}

static const int widths[] = {6, 16, 32};
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
        const double loss = oracle_check_step(&c);
        ck_assert_double_eq_tol(loss, ref_graph_loss(c.ref), 1e-5);
        case_fini(&c);
    }
}
END_TEST

START_TEST(a_plan_is_what_it_was)
{
    if (golden_plan_begin()) {
        struct plan_request request = {.world = 8, .threads = 1};
        struct plan_spec *spec = NULL;
        request.graphs[PLAN_TRAIN] = network_of(16, 4);
        ck_ms_ok(graph_differentiate((struct graph *)request.graphs[PLAN_TRAIN], err));
        ck_ms_ok(plan_choose(&request, &spec, err));
        ck_golden_plan(spec, "transposed");
        plan_spec_destroy(spec);
        graph_destroy((struct graph *)request.graphs[PLAN_TRAIN]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transposed");
    TCase *tc = tcase_create("transposed");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, numbers_are_those_of_torch);
    tcase_add_test(tc, what_cannot_be_is_refused);
    tcase_add_loop_test(tc, networks_give_the_gradients_of_the_oracle, 0, N_WIDTHS * ORACLE_N_ISAS);
    tcase_add_test(tc, a_plan_is_what_it_was);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
