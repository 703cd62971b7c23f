/* test_product.c - products, gates, factors, numbers, dense layers of channels: PyTorch's numbers,
 * shapes, whole steps */
#include "libworker/graph/op.h"
#include "tests/unit/plan_oracle.h"

/* ---- PyTorch ------------------------------------------------------------------------------------
 */

/* PyTorch 2.15 in float64:
 *   def seq(n, a, m, q, s): return torch.tensor([a * i % m / q - s for i in range(n)])
 *   x = seq(48, 7, 11, 4, 1.25).reshape(2, 4, 2, 3), g = seq(4, 3, 7, 4, 0.5).reshape(4, 1, 1)
 *   w = seq(16, 5, 13, 8, 0.75).reshape(4, 4), d = seq(12, 5, 13, 8, 0.75).reshape(3, 4)
 *   b = seq(3, 3, 5, 4, 0.25), v = seq(18, 7, 11, 4, 1.25).reshape(3, 2, 3), k =
 * torch.tensor([1.5]) t = seq(36, 5, 7, 2, 1.5).reshape(2, 18) u = x * g y = u *
 * f.hardsigmoid(f.linear(u.mean((2, 3)), w))[:, :, None, None] q = (y * 0.5 + 0.25) - u * u s =
 * f.linear(q.permute(0, 2, 3, 1), d, b).permute(0, 3, 1, 2) * v * k f.mse_loss(s.flatten(1),
 * t).backward() */
static const char torch_network[] = "- scale: {name: g}\n"
                                    "- global_avg_pool\n"
                                    "- dense: {name: w, out: 4, bias: none}\n"
                                    "- hard_sigmoid\n"
                                    "- mul: {from: [hard_sigmoid1, g]}\n"
                                    "- linear: {factor: 0.5, offset: 0.25}\n"
                                    "- mul: {name: squares, from: [g, g]}\n"
                                    "- sub: {from: [linear1, squares]}\n"
                                    "- dense: {name: d, out: 3, over: channels}\n"
                                    "- scale: {name: v, shape: [3, 2, 3]}\n"
                                    "- scale: {name: k, shape: [1]}\n"
                                    "- flatten\n";
static const double torch_loss = 1.9661966276432317;
static const double torch_g[4] = {0.351044612, -0.666202492, 1.3443484, 0.0296522358};
static const double torch_w[16] = {0.000903181263,
                                   -0.000212389606,
                                   0.00369263436,
                                   0.0,
                                   0.000598928768,
                                   0.00080212299,
                                   -0.00288392652,
                                   0.0,
                                   -0.00171051296,
                                   -0.000214182066,
                                   -0.00350741992,
                                   0.0,
                                   0.0,
                                   0.0,
                                   0.0,
                                   0.0};
static const double torch_d[12] = {-0.0931906484, -0.105884136, 0.20668885,   -0.126134531,
                                   0.282845843,   0.217263682,  -0.955028532, 0.353653106,
                                   -0.0514389723, -0.102773997, 0.157864264,  -0.111416532};
static const double torch_b[3] = {-0.504538125, 1.41461243, -0.445666128};
static const double torch_v[18] = {
    -0.110270794, 0.0692271332,  -0.146522219, -0.00592117561, 0.138235276,   -0.137072276,
    0.298942761,  0.0177368588,  -0.341255185, 0.137553731,    0.123469095,   -0.451592625,
    0.0481370478, 0.00266741554, 0.121408362,  0.0116154915,   -0.0231257262, -0.0221477143};
static const double torch_k[1] = {1.21683813};

static void set_seq(struct ref_graph *run, int tensor, int n, int a, int m, float q, float s)
{
    float values[48];
    for (int i = 0; i < n; i++) {
        values[i] = (float)(a * i % m) / q - s;
    }
    ref_graph_set(run, tensor, values);
}

static void ck_gradient(struct ref_graph *run, const struct graph *g, const char *name,
                        const double *want, int n)
{
    int tensor = -1;
    for (int i = 0; i < graph_n_gradients(g); i++) {
        const int t = graph_gradient(g, i);
        tensor = strcmp(graph_tensor(g, graph_tensor(g, t)->of)->name, name) == 0 ? t : tensor;
    }
    ck_assert_msg(tensor >= 0, "no gradient of %s", name);
    ck_assert_int_eq(shape_count(&graph_tensor(g, tensor)->shape), n);
    for (int i = 0; i < n; i++) {
        const double got = ref_graph_values(run, tensor)[i];
        ck_assert_msg(fabs(got - want[i]) <= 1e-8, "%s[%d] %.9g, want %.9g", name, i, got, want[i]);
    }
}

static struct graph *built(const char *text, const struct network_input *input,
                           enum network_loss loss)
{
    struct network *network = NULL;
    struct graph *graph = NULL;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    ck_ms_ok(network_build(network, input, loss, &graph, err));
    network_destroy(network);
    return graph;
}

START_TEST(numbers_are_those_of_torch)
{
    const struct network_input input = {
        .batch = 2, .channels = 4, .height = 2, .width = 3, .classes = 18};
    struct graph *g = built(torch_network, &input, NETWORK_LOSS_MSE);
    ck_ms_ok(graph_differentiate(g, err));
    struct ref_graph *run = ref_graph_create(g);
    ck_assert_ptr_nonnull(run);
    set_seq(run, graph_data_index(g), 48, 7, 11, 4, 1.25F);
    set_seq(run, graph_find(g, "g.gamma"), 4, 3, 7, 4, 0.5F);
    set_seq(run, graph_find(g, "w.weight"), 16, 5, 13, 8, 0.75F);
    set_seq(run, graph_find(g, "d.weight"), 12, 5, 13, 8, 0.75F);
    set_seq(run, graph_find(g, "d.bias"), 3, 3, 5, 4, 0.25F);
    set_seq(run, graph_find(g, "v.gamma"), 18, 7, 11, 4, 1.25F);
    set_seq(run, graph_find(g, "k.gamma"), 1, 1, 2, 1, -1.5F);
    set_seq(run, graph_label_index(g), 36, 5, 7, 2, 1.5F);

    ref_graph_run(run);

    ck_assert_double_eq_tol(ref_graph_loss(run), torch_loss, 1e-8);
    ck_gradient(run, g, "g.gamma", torch_g, 4);
    ck_gradient(run, g, "w.weight", torch_w, 16);
    ck_gradient(run, g, "d.weight", torch_d, 12);
    ck_gradient(run, g, "d.bias", torch_b, 3);
    ck_gradient(run, g, "v.gamma", torch_v, 18);
    ck_gradient(run, g, "k.gamma", torch_k, 1);
    ref_graph_destroy(run);
    graph_destroy(g);
}
END_TEST

/* ---- graphs -------------------------------------------------------------------------------------
 */

/* Of images (2, 4, 3, 5). */
static const struct {
    struct shape shape;
    enum scale_of of;
} factors[] = {
    {{3, {4, 1, 1}}, SCALE_CHANNELS},
    {{4, {1, 4, 1, 1}}, SCALE_CHANNELS},
    {{3, {4, 3, 5}}, SCALE_VALUES},
    {{4, {1, 4, 3, 5}}, SCALE_VALUES},
    {{1, {1}}, SCALE_ALL},
    {{3, {1, 1, 1}}, SCALE_ALL},
    {{1, {4}}, SCALE_NOT},
    {{1, {5}}, SCALE_NOT},
    {{2, {4, 1}}, SCALE_NOT},
    {{3, {4, 3, 1}}, SCALE_NOT},
    {{3, {5, 1, 1}}, SCALE_NOT},
    {{4, {2, 4, 1, 1}}, SCALE_NOT},
};

START_TEST(factors_are_repeated_along_dimensions_of_one)
{
    const struct shape images = {4, {2, 4, 3, 5}};
    const struct shape rows = {2, {3, 4}};
    const struct shape vector = {1, {4}};
    ck_assert_int_eq(graph_scale_of(&images, &factors[_i].shape), factors[_i].of);
    ck_assert_int_eq(graph_scale_of(&rows, &vector), SCALE_CHANNELS);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"- scale: {shape: [3]}\n", "the factor must be (4, 1, 1), of each value of a sample, or "},
        {"- scale: {shape: []}\n", "is no list of one to four sizes; give the word channels"},
        {"- scale: {shape: [0]}\n", "is out of range"},
        {"- flatten\n- dropout: {of: channels}\n", "only images (n, c, h, w) have channels"},
        {"- conv2d: {name: a, out: 2, kernel: 1}\n- mul: {from: [a, input]}\n",
         "images (n, c, h, w) have gates (n, c) or (n, c, 1, 1)"},
        {"- conv2d: {name: a, out: 2, kernel: 1}\n- sub: {from: [a, input]}\n",
         "add: the shapes differ"},
        {"- dense: {out: 3}\n", "it reads rows (n, values)"},
        {"- linear: {factor: 1e7}\n", "layers[0].linear.factor: '1e7' is out of range"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(wrong); i++) {
        const struct network_input input = {
            .batch = 2, .channels = 4, .height = 3, .width = 5, .classes = 5};
        struct network *network = NULL;
        struct graph *graph = NULL;
        struct ms_err why = {0, ""};
        char text[256];
        snprintf(text, sizeof(text), "%s- flatten\n- dense: {out: classes}\n", wrong[i].text);
        int rc = network_parse(text, strlen(text), "net.yaml", "net", &network, &why);
        rc = rc < 0 ? rc : network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, &why);
        ck_assert_int_eq(rc, MS_E_INVALID);
        ck_assert_msg(strstr(why.text, wrong[i].words) != NULL, "%s", why.text);
        network_destroy(network);
    }
}
END_TEST

/* Defaults are in the form that jobs have. */
START_TEST(the_canonical_form_has_all_keys)
{
    static const char *const forms[][2] = {
        {"scale: {name: s}",
         "{\"scale\":{\"gamma\":\"ones\",\"name\":\"s\",\"shape\":\"channels\"}}"},
        {"scale: {name: s, shape: [3, 1, 1]}",
         "{\"scale\":{\"gamma\":\"ones\",\"name\":\"s\",\"shape\":[3,1,1]}}"},
        {"linear: {offset: 0.5}", "{\"linear\":{\"factor\":1.0,\"offset\":0.5}}"},
        {"dropout: {rate: 0.5, of: samples}", "{\"dropout\":{\"of\":\"samples\",\"rate\":0.5}}"},
        {"dropout", "{\"dropout\":{\"rate\":0.5}}"},
        {"hard_sigmoid", "{\"hard_sigmoid\":{}}"},
        {"mul: {from: [input, input]}", "{\"mul\":{\"from\":[\"input\",\"input\"]}}"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(forms); i++) {
        struct network *network = NULL;
        char text[256];
        snprintf(text, sizeof(text), "- %s\n- dense: {out: classes, over: channels}\n",
                 forms[i][0]);
        ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
        char *canonical = network_format(network, NULL);
        ck_assert_msg(strstr(canonical, forms[i][1]) != NULL, "%s", canonical);
        ck_assert_ptr_nonnull(strstr(canonical, "\"out\":\"classes\",\"over\":\"channels\""));
        free(canonical);
        network_destroy(network);
    }
}
END_TEST

/* ---- steps --------------------------------------------------------------------------------------
 */

/* MobileNetV3's and ConvNeXt's blocks: whole blocks of channels and less. */
static struct graph *network_of(int width, int64_t batch)
{
    const struct network_input input = {
        .batch = batch, .channels = 3, .height = 9, .width = 8, .classes = 5};
    char text[4096];
    snprintf(text, sizeof(text),
             "- conv2d: {out: %d, kernel: 3, padding: same, weight: {uniform: 0.5}}\n"
             "- hard_swish: {name: x}\n"
             "- avg_pool: {kernel: [9, 8]}\n"
             "- conv2d: {out: 8, kernel: 1, bias: fan_in}\n"
             "- relu\n"
             "- conv2d: {out: %d, kernel: 1, bias: fan_in}\n"
             "- hard_sigmoid: {name: gate}\n"
             "- mul: {name: gated, from: [gate, x]}\n"
             "- residual:\n"
             "    body:\n"
             "      - conv2d: {out: %d, kernel: 3, padding: same, groups: %d, weight: {uniform: "
             "0.5}, bias: fan_in}\n"
             "      - layer_norm: {over: channels, epsilon: 0.1, gamma: {normal: 1}}\n"
             "      - dense: {out: 40, over: channels}\n"
             "      - gelu\n"
             "      - dense: {out: %d, over: channels}\n"
             "      - scale: {gamma: {normal: 0.5}}\n"
             "      - dropout: {rate: 0.4, of: samples}\n"
             "- dropout: {rate: 0.3, of: channels}\n"
             "- sub: {from: [dropout2, gated, x]}\n"
             "- flatten\n"
             "- scale: {gamma: {normal: 1}}\n"
             "- dense: {out: classes}\n",
             width, width, width, width, width);
    return built(text, &input, NETWORK_LOSS_SOFTMAX_CE);
}

static const int widths[] = {6, 16, 40};
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

int main(void)
{
    Suite *suite = suite_create("product");
    TCase *tc = tcase_create("product");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, numbers_are_those_of_torch);
    tcase_add_loop_test(tc, factors_are_repeated_along_dimensions_of_one, 0,
                        (int)MS_ARRAY_SIZE(factors));
    tcase_add_test(tc, what_cannot_be_is_refused);
    tcase_add_test(tc, the_canonical_form_has_all_keys);
    tcase_add_loop_test(tc, networks_give_the_gradients_of_the_oracle, 0, N_WIDTHS * ORACLE_N_ISAS);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
