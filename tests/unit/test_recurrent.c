/* test_recurrent.c - recurrent cells: PyTorch's numbers, any team and anybody's products, the
 * layers' parameters and errors, whole steps and their plans */
#include "libworker/kernel/ref.h"
#include "libworker/plan/dnnl.h"
#include "libworker/plan/internal.h"
#include "tests/unit/plan_oracle.h"

/* ---- kernels ------------------------------------------------------------------------------------
 */

static float *floats(int64_t n, uint64_t seed, double width)
{
    float *p = case_floats((size_t)n);
    for (int64_t i = 0; i < n; i++) {
        p[i] = (float)(width * (2 * ms_rng_unit(seed, (uint64_t)i) - 1));
    }
    return p;
}

static int64_t gates_of(const struct kernel_recurrent *r)
{
    return r->cell == CELL_LSTM ? 4 : r->cell == CELL_GRU ? 3 : 1;
}

/* A call with all of its memory, which holds anything where it is written. */
static struct kernel_recurrent call_of(const struct kernel_recurrent *sizes, int threads)
{
    struct kernel_recurrent r = *sizes;
    const int64_t tokens = r.n * r.tokens, gates = gates_of(&r) * r.width;
    const size_t forward = kernel_recurrent_scratch(&r, 0, threads);
    const size_t backward = kernel_recurrent_scratch(&r, 1, threads);
    const size_t scratch = forward > backward ? forward : backward;
    r.x = floats(tokens * gates, 1, 2);
    r.weight = floats(gates * r.width, 2, 2 / sqrt((double)r.width));
    r.bias = floats(gates, 3, 1);
    r.dy = floats(tokens * r.width, 4, 1);
    r.kept = floats(tokens * kernel_recurrent_kept(&r), 5, 1e30);
    r.y = floats(tokens * r.width, 6, 1e30);
    r.dx = floats(tokens * gates, 7, 1e30);
    r.dweight = floats(gates * r.width, 8, 1e30);
    r.dbias = floats(gates, 9, 1e30);
    r.scratch = floats((int64_t)(scratch / sizeof(float)), 10, 1e30);
    return r;
}

static void call_fini(struct kernel_recurrent *r)
{
    free((void *)(uintptr_t)r->x);
    free((void *)(uintptr_t)r->weight);
    free((void *)(uintptr_t)r->bias);
    free((void *)(uintptr_t)r->dy);
    free(r->kept);
    free(r->y);
    free(r->dx);
    free(r->dweight);
    free(r->dbias);
    free(r->scratch);
}

/* PyTorch 2.15 in float64: LSTM(8, 2) and, from the last token to the first, GRU(6, 2) and RNN(2,
 * 2), with weight_ih the unit matrix, bias_ih 0, weight_hh = [(11 * i % 19) / 9 - 1], bias_hh = [(5
 * * i % 13) / 6 - 1], of x = [(13 * i % 17) / 8 - 1] (2, 3, 8, 6 or 2), with dy = [(7 * i % 11) / 5
 * - 1] */
enum { TORCH_Y = 12, TORCH_X = 48, TORCH_W = 16, TORCH_B = 8 };
static const struct {
    struct kernel_recurrent sizes;
    double y[TORCH_Y], dx[TORCH_X], dw[TORCH_W], db[TORCH_B];
} torch[] = {
    {{.n = 2, .tokens = 3, .width = 2},
     {-0.034760632, 0.292481267, -0.0791845479, 0.447688983, -0.128686453, 0.162060184,
      0.0061275509, 0.0745711408, 0.016477108, 0.182874076, 0.0488094427, 0.321840315},
     {0.0425056917,
      0.059581323,
      0,
      0,
      -0.0497400687,
      0.0185950361,
      0.0208330013,
      0.0623209255,
      0.0110918227,
      0.0511536561,
      0.00178000526,
      0.0287024055,
      -0.0162218709,
      0.0154071929,
      0.0166758608,
      0.162627147,
      -0.00847674973,
      0.00237868571,
      -0.00216243982,
      -0.0700448936,
      0.0190944701,
      -0.123859098,
      -0.0104077852,
      -0.0259494109,
      0.00301040333,
      0.00447952029,
      0,
      0,
      0.0928420665,
      0.0152511914,
      0.00160146707,
      0.000717746671,
      -0.0102986403,
      0.00925701016,
      -0.000480438993,
      0.00190782401,
      -0.0536901567,
      0.0182485286,
      -0.00996531898,
      0.0233814598,
      -0.00507872049,
      -0.117765738,
      -0.000979036473,
      -0.0418074475,
      -0.0148670877,
      -0.154816692,
      -0.00698321727,
      -0.0554967855},
     {0.000138880759, -0.00224754477, -0.00385020456, -0.00481959715, 9.02821081e-05,
      -0.000662349566, 0.00387158394, -0.030466641, -0.00152206028, -0.00291875059, 0.00683305038,
      -0.0778951844, 6.83460768e-05, -0.00180224846, -0.00436938548, 0.0275427874},
     {0.0327538072, 0.0090844572, -0.00184191003, -0.0812421116, -0.0225826474, -0.211173842,
      0.0117540078, 0.167601083}},
    {{.n = 2, .tokens = 3, .width = 2, .cell = CELL_GRU, .is_reversed = 1},
     {-0.0995892839, 0.649114453, 0.190011726, -0.0149013394, -0.104548501, -0.194263337,
      0.136992462, 0.483489587, -0.241332821, -0.044014794, -0.245719823, 0.637446311},
     {-0.00368606233, 0.0173575319,
      -0.194473889,   -0.0699581367,
      -0.171345712,   0.0630637628,
      -0.0241395394,  0.0885186125,
      0.130525731,    -0.107086512,
      -0.452423866,   0.382866545,
      -0.00119647663, 0.0386324641,
      -0.0217513452,  0.0199732007,
      -0.052228579,   0.182946896,
      0.0051307354,   0,
      -0.176295316,   0,
      0.186389785,    0,
      0.00136498508,  0.0413143071,
      0.000992440548, 0.080410407,
      -0.0242790958,  0.247522979,
      -0.00263123458, -0.052915298,
      -0.06357892,    0.143409231,
      -0.0631496299,  -0.217595311},
     {0.000249738854, 0.00538863117, -0.0161080979, 0.00888108117, -0.00829660524, -0.014066213,
      -0.0218555629, 0.0731027703, -0.00656285151, 0.0212395757, -0.0330141197, 0.0339505795},
     {-0.0251575924, 0.132907618, -0.324581298, 0.06674819, -0.129309257, 0.28538511}},
    {{.n = 2, .tokens = 3, .width = 2, .cell = CELL_TANH, .is_reversed = 1},
     {-0.97111391, 0.488369584, 0.19326879, 0.367973183, -0.95404526, 0.52508394, 0.256158765,
      0.503379642, -0.850632808, 0.726121146, -0.554599722, -0.283668095},
     {-0.0569377734, 0.30459806, -0.525728197, 0.999964033, 0.00530573748, -0.116822319, 0.74750615,
      0, -0.427767572, 0.362178204, -0.00947545966, -0.821923438},
     {0.0919507215, 0.367121027, -1.09600558, 0.53441057},
     {-0.267097114, 0.727994541}},
};

static void ramp(const float *to, int n, int step, int of, float by)
{
    float *x = (float *)(uintptr_t)to;
    for (int i = 0; i < n; i++) {
        x[i] = (float)(step * i % of) / by - 1;
    }
}

static void ck_near(const float *got, const double *want, int n)
{
    for (int i = 0; i < n; i++) {
        ck_assert_double_eq_tol((double)got[i], want[i], 3e-7);
    }
}

START_TEST(numbers_are_those_of_torch)
{
    struct kernel_recurrent r = call_of(&torch[_i].sizes, 1);
    const int gates = (int)gates_of(&r);
    r.product = dn_product;
    ramp(r.x, 6 * gates * 2, 13, 17, 8);
    ramp(r.weight, gates * 2 * 2, 11, 19, 9);
    ramp(r.bias, gates * 2, 5, 13, 6);
    ramp(r.dy, TORCH_Y, 7, 11, 5);

    ck_assert_int_eq(kernel_recurrent_forward(&r, 1), 0);
    ck_assert_int_eq(kernel_recurrent_backward(&r, 1), 0);

    ck_near(r.y, torch[_i].y, TORCH_Y);
    ck_near(r.dx, torch[_i].dx, 6 * gates * 2);
    ck_near(r.dweight, torch[_i].dw, gates * 2 * 2);
    ck_near(r.dbias, torch[_i].db, gates * 2);
    call_fini(&r);
}
END_TEST

/* Several blocks of samples, the last one short; pieces of units and of weights, too; a token. */
static const struct kernel_recurrent sizes[] = {
    {.n = 19, .tokens = 6, .width = 70},
    {.n = 19, .tokens = 6, .width = 70, .cell = CELL_GRU},
    {.n = 70, .tokens = 3, .width = 130, .is_reversed = 1},
    {.n = 3, .tokens = 9, .width = 5, .cell = CELL_GRU, .is_reversed = 1},
    {.n = 9, .tokens = 4, .width = 256},
    {.n = 2, .tokens = 1, .width = 16},
    {.n = 19, .tokens = 6, .width = 70, .cell = CELL_TANH},
    {.n = 70, .tokens = 3, .width = 130, .cell = CELL_TANH, .is_reversed = 1},
    {.n = 19, .tokens = 5, .width = 70, .cell = CELL_RELU, .is_reversed = 1},
    {.n = 2, .tokens = 1, .width = 5, .cell = CELL_RELU},
};
enum { N_SIZES = MS_ARRAY_SIZE(sizes) };

static double *doubles(const float *x, int64_t n)
{
    double *p = calloc((size_t)n, sizeof(*p));
    ck_assert_ptr_nonnull(p);
    for (int64_t i = 0; i < n && x != NULL; i++) {
        p[i] = (double)x[i];
    }
    return p;
}

static void ck_worst(const char *what, const float *got, const double *want, int64_t n, double most)
{
    double norm = 0;
    for (int64_t i = 0; i < n; i++) {
        norm = fmax(norm, fabs(want[i]));
    }
    for (int64_t i = 0; i < n; i++) {
        ck_assert_msg(fabs((double)got[i] - want[i]) <= most * norm, "%s [%lld]: %g, want %g", what,
                      (long long)i, (double)got[i], want[i]);
    }
}

START_TEST(results_are_those_of_the_formula)
{
    struct kernel_recurrent r = call_of(&sizes[_i], 2);
    const int64_t gates = gates_of(&r) * r.width, tokens = r.n * r.tokens;
    struct ref_recurrent ref = {r.n, r.tokens, r.width, r.cell, r.is_reversed, NULL, NULL, NULL};
    double *x = doubles(r.x, tokens * gates), *w = doubles(r.weight, gates * r.width);
    double *b = doubles(r.bias, gates), *dy = doubles(r.dy, tokens * r.width);
    double *y = doubles(NULL, tokens * r.width), *dx = doubles(NULL, tokens * gates);
    double *dw = doubles(NULL, gates * r.width), *db = doubles(NULL, gates);
    r.product = dn_product;
    ref.x = x;
    ref.w = w;
    ref.b = b;

    ck_assert_int_eq(kernel_recurrent_forward(&r, 2), 0);
    ck_assert_int_eq(kernel_recurrent_backward(&r, 2), 0);

    ck_assert_int_eq(ref_recurrent(&ref, y), 0);
    ck_assert_int_eq(ref_recurrent_bwd(&ref, dy, dx, dw, db), 0);
    ck_worst("y", r.y, y, tokens * r.width, 2e-6);
    ck_worst("dx", r.dx, dx, tokens * gates, 5e-6);
    ck_worst("dw", r.dweight, dw, gates * r.width, 5e-6);
    ck_worst("db", r.dbias, db, gates, 5e-6);
    double *const all[] = {x, w, b, dy, y, dx, dw, db};
    for (size_t i = 0; i < MS_ARRAY_SIZE(all); i++) {
        free(all[i]);
    }
    call_fini(&r);
}
END_TEST

/* No bit depends on the team, or on what is kept. */
START_TEST(teams_give_the_same_bits)
{
    struct kernel_recurrent one = call_of(&sizes[_i], 1), other = call_of(&sizes[_i], 3);
    const size_t gates = (size_t)(gates_of(&one) * one.width);
    const size_t y = (size_t)(one.n * one.tokens * one.width) * sizeof(float);
    struct kernel_recurrent evaluated = other;
    one.product = other.product = evaluated.product = dn_product;
    ck_ms_ok(plan_take_team(1, err)); /* as a plan has it: else products take a team of theirs */
    ck_assert_int_eq(kernel_recurrent_forward(&one, 1), 0);
    ck_assert_int_eq(kernel_recurrent_backward(&one, 1), 0);

    evaluated.kept = NULL;
    ck_assert_int_eq(kernel_recurrent_forward(&evaluated, 3), 0);
    ck_assert_mem_eq(one.y, other.y, y);
    ck_assert_int_eq(kernel_recurrent_forward(&other, 3), 0);
    ck_assert_int_eq(kernel_recurrent_backward(&other, 3), 0);

    ck_assert_mem_eq(one.y, other.y, y);
    ck_assert_mem_eq(one.dx, other.dx, y * gates / (size_t)one.width);
    ck_assert_mem_eq(one.dweight, other.dweight, gates * (size_t)one.width * sizeof(float));
    ck_assert_mem_eq(one.dbias, other.dbias, gates * sizeof(float));
    call_fini(&one);
    call_fini(&other);
}
END_TEST

/* The n-th product from now on. */
static atomic_int products_left;

static int failing_product(const struct kernel_product *p)
{
    return atomic_fetch_sub(&products_left, 1) <= 1 ? MS_E_FAILED : dn_product(p);
}

START_TEST(a_product_that_is_not_to_be_had_is_said)
{
    const struct kernel_recurrent size = {
        .n = 1, .tokens = 3, .width = 4, .cell = (enum kernel_cell)_i};
    struct kernel_recurrent r = call_of(&size, 2);
    r.product = failing_product;
    atomic_store(&products_left, 2);
    ck_assert_int_eq(kernel_recurrent_forward(&r, 2), MS_E_FAILED);
    r.product = dn_product;
    ck_assert_int_eq(kernel_recurrent_forward(&r, 2), 0);
    r.product = failing_product;
    /* of two tokens, then of the weight, gate by gate */
    const int products = r.cell == CELL_GRU ? 7 : r.cell == CELL_LSTM ? 6 : 3;
    for (int n = 1; n <= products; n++) {
        atomic_store(&products_left, n);
        ck_assert_int_eq(kernel_recurrent_backward(&r, 2), MS_E_FAILED);
    }
    call_fini(&r);
}
END_TEST

START_TEST(a_nan_stays_one)
{
    const struct kernel_recurrent size = {
        .n = 2, .tokens = 2, .width = 3, .cell = (enum kernel_cell)_i};
    struct kernel_recurrent r = call_of(&size, 1);
    ((float *)(uintptr_t)r.x)[0] = NAN;
    r.product = dn_product;
    ck_assert_int_eq(kernel_recurrent_forward(&r, 1), 0);
    ck_assert(isnan(r.y[0]));
    ck_assert(isnan(r.y[3])); /* of the token behind it */
    ck_assert(!isnan(r.y[6]));
    call_fini(&r);
}
END_TEST

/* ---- graphs -------------------------------------------------------------------------------------
 */

static const struct init normal = {INIT_NORMAL, 1};

START_TEST(ops_that_cannot_be_are_refused)
{
    struct graph *g = graph_create("g");
    const struct shape tokens = {2, {2, 5}}, weight = {2, {7, 12}}, square = {2, {12, 12}};
    const struct shape right = {2, {12, 3}}, three = {1, {3}};
    struct op op = {.kind = OP_EMBEDDING, .in = {graph_data(g, "data", &tokens, NULL)}};
    const int e = graph_param(g, "e.weight", &weight, normal, NULL);
    op.in[1] = e;
    const int x = graph_apply(g, &op, NULL);
    const int w = graph_param(g, "w", &square, normal, NULL);
    op = (struct op){.kind = OP_LSTM, .n_in = 2, .in = {x, w}};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "lstm: the weight must be (12, 3)");
    op.kind = OP_GRU;
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "gru: the weight must be (12, 4)");
    op = (struct op){.kind = OP_RNN_RELU, .n_in = 2, .in = {x, e}};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "rnn_relu: the weight must be (12, 12)");
    op = (struct op){.kind = OP_LSTM, .n_in = 3, .is_reversed = 1, .in = {x}};
    op.in[1] = graph_param(g, "r", &right, normal, NULL);
    op.in[2] = graph_param(g, "b", &three, normal, NULL);
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "lstm: the bias");
    op.n_in = 2;
    const int y = graph_apply(g, &op, NULL);
    char *text = graph_describe(g);
    ck_assert_ptr_nonnull(strstr(text, "-> lstm_1 (2, 5, 3) [from the last token]\n"));
    free(text);
    op = (struct op){.kind = OP_LSTM, .n_in = 2, .in = {y, w}};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID,
                "lstm: the input must be 4 gates (n, tokens, 4 h)");
    graph_destroy(g);
}
END_TEST

/* ---- layers -------------------------------------------------------------------------------------
 */

static struct graph *network_of(const char *text, int64_t batch, int64_t tokens)
{
    const struct network_input input = {
        .batch = batch, .channels = 9, .height = 1, .width = 1, .classes = 5, .tokens = tokens};
    struct network *network = NULL;
    struct graph *graph = NULL;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "recurrent", &network, err));
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    return graph;
}

static void ck_param(const struct graph *graph, int i, const char *name, const char *shape)
{
    char text[96];
    const struct tensor *t = graph_tensor(graph, graph_param_at(graph, i));
    ck_assert_str_eq(t->name, name);
    ck_assert_str_eq(shape_format(&t->shape, text, sizeof(text)), shape);
    ck_assert_int_eq(t->init.kind, INIT_UNIFORM);
    ck_assert_double_eq_tol(t->init.a, 1 / sqrt(6.0), 1e-12);
}

/* Names, shapes, order and first values are those of torch.nn.GRU(4, 6, 2, bidirectional=True). */
START_TEST(a_layer_has_the_parameters_of_torch)
{
    static const char *const want[][2] = {
        {"r.weight_ih_l0", "(18, 4)"},
        {"r.weight_hh_l0", "(18, 6)"},
        {"r.bias_ih_l0", "(18)"},
        {"r.bias_hh_l0", "(18)"},
        {"r.weight_ih_l0_reverse", "(18, 4)"},
        {"r.weight_hh_l0_reverse", "(18, 6)"},
        {"r.bias_ih_l0_reverse", "(18)"},
        {"r.bias_hh_l0_reverse", "(18)"},
        {"r.weight_ih_l1", "(18, 12)"},
        {"r.weight_hh_l1", "(18, 6)"},
        {"r.bias_ih_l1", "(18)"},
        {"r.bias_hh_l1", "(18)"},
        {"r.weight_ih_l1_reverse", "(18, 12)"},
        {"r.weight_hh_l1_reverse", "(18, 6)"},
        {"r.bias_ih_l1_reverse", "(18)"},
        {"r.bias_hh_l1_reverse", "(18)"},
    };
    struct graph *g =
        network_of("- embedding: {words: 7, size: 4}\n"
                   "- gru: {name: r, hidden: 6, layers: 2, bidirectional: true, dropout: 0.5}\n"
                   "- dense: {out: classes}\n",
                   3, 9);
    ck_assert_int_eq(graph_n_params(g), 1 + (int)MS_ARRAY_SIZE(want) + 2);
    for (size_t i = 0; i < MS_ARRAY_SIZE(want); i++) {
        ck_param(g, 1 + (int)i, want[i][0], want[i][1]);
    }
    graph_destroy(g);
}
END_TEST

/* Those of torch.nn.RNN(4, 6, nonlinearity="relu"), and the op that it says. */
START_TEST(a_plain_layer_has_the_function_that_it_says)
{
    static const char *const texts[] = {
        "- embedding: {words: 7, size: 4}\n- rnn: {name: r, hidden: 6}\n- dense: {out: classes}\n",
        "- embedding: {words: 7, size: 4}\n- rnn: {name: r, hidden: 6, nonlinearity: relu}\n"
        "- dense: {out: classes}\n"};
    static const enum op_kind kinds[] = {OP_RNN_TANH, OP_RNN_RELU};
    struct graph *g = network_of(texts[_i], 3, 9);
    int n = 0;
    for (int i = 0; i < graph_n_forward_ops(g); i++) {
        n += graph_op(g, i)->kind == kinds[_i];
    }
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(graph_n_params(g), 1 + 4 + 2);
    ck_param(g, 1, "r.weight_ih_l0", "(6, 4)");
    ck_param(g, 2, "r.weight_hh_l0", "(6, 6)");
    ck_param(g, 3, "r.bias_ih_l0", "(6)");
    ck_param(g, 4, "r.bias_hh_l0", "(6)");
    graph_destroy(g);
}
END_TEST

/* Without biases; of the last token of a direction a row. */
START_TEST(a_layer_makes_a_row_of_the_last_token)
{
    struct graph *g = network_of("- embedding: {words: 7, size: 4}\n"
                                 "- lstm: {hidden: 6, bidirectional: true, output: last, bias: "
                                 "none, weight: {normal: 0.5}}\n"
                                 "- dense: {out: classes}\n",
                                 3, 0);
    const struct tensor *w = graph_tensor(g, graph_find(g, "lstm1.weight_hh_l0_reverse"));
    ck_assert_int_eq(w->init.kind, INIT_NORMAL);
    ck_assert_int_eq(graph_find(g, "lstm1.bias_hh_l0"), -1);
    ck_assert_int_eq(graph_n_params(g), 1 + 4 + 2);
    int64_t firsts[2];
    int n = 0;
    for (int i = 0; i < graph_n_ops(g); i++) {
        if (graph_op(g, i)->kind == OP_SLICE) {
            ck_assert_int_eq(graph_op(g, i)->size, 6);
            firsts[n++] = graph_op(g, i)->first;
        }
    }
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(firsts[0], 48); /* of nine tokens the last, ... */
    ck_assert_int_eq(firsts[1], 0);  /* ... and the first */
    graph_destroy(g);
}
END_TEST

static const struct {
    const char *text, *why;
} wrong[] = {
    {"- lstm: {hidden: 4}\n", "net.yaml:1:3: layer lstm1 (lstm): it reads sequences (n, tokens, "
                              "channels), and gets (3, 9"},
    {"- embedding: {words: 7, size: 4}\n- gru\n", "layers[1].gru.hidden is missing"},
    {"- embedding: {words: 7, size: 4}\n- gru: {hidden: 4, dropout: 0.5}\n",
     "net.yaml:2:3: layers[1]: dropout is between the layers of a recurrent one, and layers is "
     "1; put a dropout layer behind it"},
    {"- embedding: {words: 7, size: 4}\n- gru: {hidden: 4, layers: 33}\n", "layers[1].gru.layers"},
    {"- embedding: {words: 7, size: 4}\n- lstm: {hidden: 4, output: all}\n",
     "layers[1].lstm.output"},
    {"- embedding: {words: 7, size: 4}\n- rnn: {hidden: 4, nonlinearity: sin}\n",
     "layers[1].rnn.nonlinearity"},
    {"- embedding: {words: 7, size: 4}\n- gru: {hidden: 4, nonlinearity: relu}\n",
     "layers[1].gru.nonlinearity"},
    {"- embedding: {words: 7, size: 4}\n- lstm: {hidden: 1048576}\n",
     "net.yaml:2:3: layer lstm1 (lstm): lstm1.weight_hh_l0 has the shape (4194304, 1048576)"},
};

START_TEST(what_cannot_be_has_its_place)
{
    const struct network_input input = {
        .batch = 3, .channels = 9, .height = 1, .width = 1, .classes = 5, .tokens = 9};
    struct network *network = NULL;
    struct graph *graph = NULL;
    struct ms_err e = {0};
    const char *text = wrong[_i].text;
    int rc = network_parse(text, strlen(text), "net.yaml", "net", &network, &e);
    rc = rc < 0 ? rc : network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, &e);
    ck_assert_int_eq(rc, MS_E_INVALID);
    ck_assert_msg(strstr(e.text, wrong[_i].why) != NULL, "%s", e.text);
    network_destroy(network);
}
END_TEST

/* ---- steps --------------------------------------------------------------------------------------
 */

static const char of_tokens[] =
    "- embedding: {words: 11, size: 10}\n"
    "- lstm: {hidden: 12, layers: 2, bidirectional: true, dropout: 0.25}\n"
    "- residual: {body: [layer_norm: {over: channels}, gru: {hidden: 24, bias: none}]}\n"
    "- rnn: {hidden: 9, layers: 2, dropout: 0.5, nonlinearity: relu}\n"
    "- dense: {out: classes}\n";
static const char of_samples[] =
    "- embedding: {words: 11, size: 7}\n"
    "- gru: {hidden: 17, bidirectional: true}\n"
    "- lstm: {name: l, hidden: 9, bias: none, output: last}\n"
    "- gru: {from: gru1, hidden: 8, bidirectional: true, output: last, name: g}\n"
    "- rnn: {from: gru1, hidden: 6, bias: none, bidirectional: true, output: last, name: p}\n"
    "- concat: {from: [l, g, p]}\n"
    "- dense: {out: classes}\n";

START_TEST(networks_give_the_gradients_of_the_oracle)
{
    const char *isa = oracle_isas[_i % ORACLE_N_ISAS];
    const int is_of_tokens = _i / ORACLE_N_ISAS;
    const char *text = is_of_tokens ? of_tokens : of_samples;
    if (!oracle_has_isa(isa)) {
        return;
    }
    for (int threads = 1; threads <= 2; threads++) {
        struct case_options options = {.training = 1, .threads = threads, .isa = isa};
        struct plan_case c;
        case_init(&c, network_of(text, 10, is_of_tokens ? 9 : 0), &options);
        oracle_check_step(&c);
        case_fini(&c);
    }
    oracle_check_evaluation(network_of(text, 3, is_of_tokens ? 9 : 0));
}
END_TEST

static struct job read_job(const char *text, int64_t tokens)
{
    return job_of_graphs(network_of(text, 4, tokens), network_of(text, 5, tokens), 1);
}

START_TEST(a_plan_is_made_of_what_was_read)
{
    oracle_check_read_plan((struct job[]){read_job(of_tokens, 9), read_job(of_tokens, 9)});
    oracle_check_read_plan((struct job[]){read_job(of_samples, 0), read_job(of_samples, 0)});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recurrent");
    TCase *tc = tcase_create("recurrent");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, numbers_are_those_of_torch, 0, (int)MS_ARRAY_SIZE(torch));
    tcase_add_loop_test(tc, results_are_those_of_the_formula, 0, N_SIZES);
    tcase_add_loop_test(tc, teams_give_the_same_bits, 0, N_SIZES);
    tcase_add_loop_test(tc, a_product_that_is_not_to_be_had_is_said, 0, 4);
    tcase_add_loop_test(tc, a_nan_stays_one, 0, 4);
    tcase_add_test(tc, ops_that_cannot_be_are_refused);
    tcase_add_test(tc, a_layer_has_the_parameters_of_torch);
    tcase_add_loop_test(tc, a_plain_layer_has_the_function_that_it_says, 0, 2);
    tcase_add_test(tc, a_layer_makes_a_row_of_the_last_token);
    tcase_add_loop_test(tc, what_cannot_be_has_its_place, 0, (int)MS_ARRAY_SIZE(wrong));
    tcase_add_loop_test(tc, networks_give_the_gradients_of_the_oracle, 0, 2 * ORACLE_N_ISAS);
    tcase_add_test(tc, a_plan_is_made_of_what_was_read);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
