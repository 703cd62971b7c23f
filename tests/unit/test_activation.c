/* test_activation.c - activations: their formulas, oneDNN's functions by element and layout, and
 * whole steps of networks with them */
#include "libworker/plan/internal.h"
#include "tests/unit/golden_plan.h"
#include "tests/unit/plan_oracle.h"

/* ---- formulas -----------------------------------------------------------------------------------
 */

/* torch.nn of PyTorch 2.15 in float64: y and dy / dx at these x. */
static const double torch_x[] = {-9.5, -3.25, -0.75, -0.0625, 0.375, 2.5, 5.75, 7.0};
static const struct {
    enum op_kind kind;
    double alpha;
    double y[8], slope[8];
} torch[] = {
    {OP_RELU6, 0, {0, 0, 0, 0, 0.375, 2.5, 5.75, 6}, {0, 0, 0, 0, 1, 1, 1, 0}},
    {OP_LEAKY_RELU,
     0.25,
     {-2.375, -0.8125, -0.1875, -0.015625, 0.375, 2.5, 5.75, 7},
     {0.25, 0.25, 0.25, 0.25, 1, 1, 1, 1}},
    {OP_ELU,
     1.5,
     {-1.499887722, -1.441838688, -0.7914501709, -0.09088040578, 0.375, 2.5, 5.75, 7},
     {0.0001122777448, 0.05816131175, 0.7085498291, 1.409119594, 1, 1, 1, 1}},
    {OP_GELU,
     0,
     {0, -0.001875331388, -0.1699705143, -0.02969264569, 0.2423136625, 2.484475837, 5.749999974, 7},
     {-9.574038625e-20, -0.006017381144, 0.0007742782608, 0.4501970899, 0.7856154269, 1.037611086,
      1.000000147, 1}},
    {OP_GELU_TANH,
     0,
     {0, -0.001568627145, -0.1700394448, -0.02969265069, 0.2423077669, 2.484915734, 5.749999999, 7},
     {0, -0.005564345644, 0.001061743863, 0.45019741, 0.785555692, 1.037951576, 1.000000006, 1}},
    {OP_SILU,
     0,
     {-0.0007110391614, -0.1213123839, -0.2406159756, -0.03027375527, 0.222249975, 2.31035455,
      5.731757074, 6.993622642},
     {-0.0006361397152, -0.07945728284, 0.1574000555, 0.4687703331, 0.6831964379, 1.099401111,
      1.015012364, 1.005460497}},
    {OP_HARD_SWISH,
     0,
     {0, 0, -0.28125, -0.03059895833, 0.2109375, 2.291666667, 5.75, 7},
     {0, 0, 0.25, 0.4791666667, 0.625, 1.333333333, 1, 1}},
    {OP_SIGMOID,
     0,
     {7.484622751e-05, 0.03732688734, 0.3208213008, 0.4843800843, 0.5926666, 0.92414182,
      0.9968273172, 0.9990889488},
     {7.484062555e-05, 0.03593359083, 0.2178949938, 0.2497560182, 0.2414129013, 0.07010371655,
      0.003162616926, 0.0009102211801}},
    {OP_TANH,
     0,
     {-0.9999999888, -0.9969976355, -0.6351489524, -0.06241874675, 0.3583573984, 0.9866142982,
      0.99997974, 0.9999983369},
     {2.241118545e-08, 0.005995714834, 0.5965858083, 0.9961039001, 0.871579975, 0.02659222668,
      4.051955346e-05, 3.326109345e-06}},
};
enum { KINDS = sizeof(torch) / sizeof(torch[0]), POINTS = 8 };

START_TEST(formulas_are_those_of_torch)
{
    enum op_kind kind = torch[_i].kind;
    for (int p = 0; p < POINTS; p++) {
        double y = ref_activation(kind, torch_x[p], torch[_i].alpha);
        double slope = ref_activation_slope(kind, torch_x[p], torch[_i].alpha);
        ck_assert_double_eq_tol(y, torch[_i].y[p], 1e-9 * (1 + fabs(y)));
        ck_assert_double_eq_tol(slope, torch[_i].slope[p], 1e-9);
    }
}
END_TEST

/* ---- oneDNN's functions -------------------------------------------------------------------------
 */

static const struct function {
    enum dn_function function;
    enum op_kind kind;
    double alpha;
    /* oneDNN's approximations in fp32 against double, for |x| <= 20 */
    double y_tol, slope_tol;
    float at_inf, at_minus_inf; /* NAN: 0 times infinity, as in PyTorch */
} functions[] = {
    {DN_LEAKY_RELU, OP_LEAKY_RELU, 0.01, 1e-8, 1e-9, INFINITY, -INFINITY},
    {DN_LEAKY_RELU, OP_LEAKY_RELU, -0.5, 0, 0, INFINITY, INFINITY},
    {DN_ELU, OP_ELU, 1, 3e-7, 3e-7, INFINITY, -1},
    {DN_ELU, OP_ELU, 2.5, 1e-6, 1e-6, INFINITY, -2.5F},
    {DN_GELU, OP_GELU, 0, 2e-6, 5e-7, INFINITY, NAN},
    {DN_GELU_TANH, OP_GELU_TANH, 0, 2e-6, 2e-6, INFINITY, NAN},
    {DN_SILU, OP_SILU, 0, 2e-6, 1e-6, INFINITY, NAN},
    {DN_HARD_SWISH, OP_HARD_SWISH, 0, 2e-6, 3e-7, INFINITY, NAN},
    {DN_SIGMOID, OP_SIGMOID, 0, 2e-7, 2e-7, 1, 0},
    {DN_TANH, OP_TANH, 0, 2e-7, 3e-7, 1, -1},
};
enum { N_FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

struct elements { /* through a function and back, as they lie */
    size_t count;
    float *x, *y, *dy, *dx;
};

static struct elements elements_of(size_t count)
{
    struct elements e = {count, case_floats(count), case_floats(count), case_floats(count),
                         case_floats(count)};
    return e;
}

static void elements_free(struct elements *e)
{
    free(e->x);
    free(e->y);
    free(e->dy);
    free(e->dx);
}

static void run_one(struct dn *dn, const struct dn_pd *pd, const struct elements *e)
{
    float *const places[DN_ROLES] = {
        [DN_SRC] = e->x, [DN_DST] = e->y, [DN_DIFF_DST] = e->dy, [DN_DIFF_SRC] = e->dx};
    struct dn_prim *prim = NULL;
    ck_ms_ok(dn_prim_create(dn, pd, &prim, err));
    for (int i = 0; i < dn_prim_n_args(prim); i++) {
        float *place = places[dn_prim_role(prim, i)];
        ck_assert_ptr_nonnull(place);
        ck_assert_uint_eq(dn_md_count(dn_prim_md(prim, i)), e->count);
        ck_assert_int_eq(dn_prim_set(prim, i, place), 0);
    }
    ck_assert_int_eq(dn_prim_run(dn, prim), 0);
    dn_prim_destroy(prim);
}

static void run(struct dn *dn, const struct function *f, const struct dn_md *md,
                const struct elements *e)
{
    struct dn_spec spec = {
        .kind = DN_ELTWISE_FWD, .src = md, .dst = md, .function = f->function, .alpha = f->alpha};
    struct dn_pd *forward = NULL;
    struct dn_pd *backward = NULL;
    ck_ms_ok(dn_pd_create(dn, &spec, &forward, err));
    run_one(dn, forward, e);
    spec.kind = DN_ELTWISE_BWD;
    spec.hint = forward;
    ck_ms_ok(dn_pd_create(dn, &spec, &backward, err));
    run_one(dn, backward, e);
    dn_pd_destroy(backward);
    dn_pd_destroy(forward);
}

static void check_element(const struct function *f, const struct elements *e, size_t i)
{
    double x = (double)e->x[i];
    double y = ref_activation(f->kind, x, f->alpha);
    double dx = (double)e->dy[i] * ref_activation_slope(f->kind, x, f->alpha);
    ck_assert_msg(fabs((double)e->y[i] - y) <= f->y_tol + 2e-7 * fabs(y),
                  "%s of %.9g is %.9g, want %.9g", op_row(f->kind)->name, x, (double)e->y[i], y);
    ck_assert_msg(fabs((double)e->dx[i] - dx) <= f->slope_tol * fabs((double)e->dy[i]),
                  "gradient of %s at %.9g is %.9g, want %.9g", op_row(f->kind)->name, x,
                  (double)e->dx[i], dx);
}

/* Images of c channels in blocks, those of padding zero; rows of any length. */
START_TEST(functions_and_gradients_are_right_in_every_layout)
{
    static const struct {
        enum dn_tag tag;
        int64_t block; /* 0: channels are not in blocks */
    } layouts[] = {{DN_PLAIN, 0}, {DN_NHWC, 0}, {DN_NCHW8C, 8}, {DN_NCHW16C, 16}};
    static const int64_t channels[] = {3, 6, 16, 37};
    const struct function *f = &functions[_i];
    struct dn *dn = NULL;
    ck_ms_ok(dn_create(&dn, err));
    for (size_t l = 0; l < MS_ARRAY_SIZE(layouts) * MS_ARRAY_SIZE(channels); l++) {
        const int64_t c = channels[l / MS_ARRAY_SIZE(layouts)];
        const int64_t block = layouts[l % MS_ARRAY_SIZE(layouts)].block;
        const int64_t dims[] = {2, c, 3, 5};
        const int64_t n_blocks = block == 0 ? 1 : (c + block - 1) / block;
        const struct dn_md *md =
            dn_md(dn, MS_F32, 4, dims, layouts[l % MS_ARRAY_SIZE(layouts)].tag);
        struct elements e = elements_of(dn_md_count(md));
        for (size_t i = 0; i < e.count; i++) {
            int64_t lane = block == 0 ? 0 : (int64_t)i % block;
            int64_t of = block == 0 ? 0 : (int64_t)i / (block * 15) % n_blocks * block;
            int is_padding = of + lane >= c;
            e.x[i] = is_padding ? 0 : 20 * case_random(l, i);
            e.dy[i] = is_padding ? 0 : case_random(l + 100, i);
            e.y[i] = e.dx[i] = NAN;
        }

        run(dn, f, md, &e);

        for (size_t i = 0; i < e.count; i++) {
            int is_padding = e.dy[i] == 0.0F;
            if (is_padding) {
                ck_assert_msg(e.y[i] == 0.0F && e.dx[i] == 0.0F, "padding is no longer zero");
            } else {
                check_element(f, &e, i);
            }
        }
        elements_free(&e);
    }
    dn_destroy(dn);
}
END_TEST

START_TEST(large_values_and_limits_are_those_of_the_function)
{
    static const float edges[] = {0.0F,   -0.0F, 1e-30F, -1e-30F,  1e-6F,     -1e-6F, 3,
                                  -3,     6,     88.8F,  -88.8F,   120,       -120,   1e10F,
                                  -1e10F, 1e30F, -1e30F, INFINITY, -INFINITY, NAN};
    enum { N = sizeof(edges) / sizeof(edges[0]), LARGE = N - 5 };
    const struct function *f = &functions[_i];
    const int64_t dims[] = {1, N};
    struct dn *dn = NULL;
    ck_ms_ok(dn_create(&dn, err));
    struct elements e = elements_of(N);
    for (int i = 0; i < N; i++) {
        e.x[i] = edges[i];
        e.dy[i] = 1;
    }

    run(dn, f, dn_md(dn, MS_F32, 2, dims, DN_PLAIN), &e);

    for (size_t i = 0; i < N - 3; i++) {
        if (f->kind == OP_GELU_TANH && i >= LARGE) {
            /* its square overflows, in PyTorch's formula too */
            ck_assert_float_eq(e.y[i], e.x[i] > 0 ? e.x[i] : 0);
        } else if (f->kind == OP_ELU && e.x[i] > 0 && e.x[i] < 0x1p-24F) {
            /* 2.x looks at e^x for the side of the kink, which is 1 already; 3.x at x */
            ck_assert_float_eq(e.y[i], e.x[i]);
            ck_assert(e.dx[i] == 1.0F || e.dx[i] == (float)f->alpha);
        } else {
            check_element(f, &e, i);
        }
    }
    ck_assert(e.y[N - 3] == f->at_inf);
    ck_assert(isnan(f->at_minus_inf) ? isnan(e.y[N - 2]) : e.y[N - 2] == f->at_minus_inf);
    ck_assert_float_nan(e.y[N - 1]); /* it shows in the loss */
    elements_free(&e);
    dn_destroy(dn);
}
END_TEST

/* Where an element lies, and in whose part, does not count. */
START_TEST(bits_depend_on_no_place_and_no_thread)
{
    enum { COUNT = 70001, PERIOD = 997 };
    const int64_t dims[] = {1, COUNT};
    struct elements e[2] = {elements_of(COUNT), elements_of(COUNT)};
    for (int threads = 1; threads <= 2; threads++) {
        struct dn *dn = NULL;
        struct elements *own = &e[threads - 1];
        ck_ms_ok(plan_take_team(threads == 1 ? 1 : 3, err));
        ck_ms_ok(dn_create(&dn, err));
        for (size_t i = 0; i < COUNT; i++) {
            own->x[i] = 20 * case_random(1, i % PERIOD);
            own->dy[i] = case_random(2, i % PERIOD);
        }
        run(dn, &functions[_i], dn_md(dn, MS_F32, 2, dims, DN_PLAIN), own);
        dn_destroy(dn);
    }

    ck_assert_mem_eq(e[0].y, e[1].y, COUNT * sizeof(float));
    ck_assert_mem_eq(e[0].dx, e[1].dx, COUNT * sizeof(float));
    for (size_t i = PERIOD; i < COUNT; i++) {
        ck_assert_mem_eq(&e[0].y[i], &e[0].y[i % PERIOD], sizeof(float));
        ck_assert_mem_eq(&e[0].dx[i], &e[0].dx[i % PERIOD], sizeof(float));
    }
    elements_free(&e[0]);
    elements_free(&e[1]);
}
END_TEST

/* ---- networks -----------------------------------------------------------------------------------
 */

static const struct {
    const char *layer; /* of a list */
    enum op_kind kind;
} layers[] = {
    {"relu6", OP_RELU6},
    {"leaky_relu: {slope: 0.2}", OP_LEAKY_RELU},
    {"elu: {alpha: 0.7}", OP_ELU},
    {"gelu", OP_GELU},
    {"gelu: {approximate: tanh}", OP_GELU_TANH},
    {"silu", OP_SILU},
    {"hard_swish", OP_HARD_SWISH},
    {"sigmoid", OP_SIGMOID},
    {"tanh", OP_TANH},
};

/* It stands behind convolutions of `channels`, behind what two read, behind a batch norm, before a
 * pooling, on a flattened image and on rows. */
static struct graph *network_with(const char *layer, int channels, int64_t batch)
{
    static const struct network_input input = {
        .batch = 0, .channels = 3, .height = 8, .width = 8, .classes = 5};
    struct network_input own = input;
    struct network *network = NULL;
    struct graph *graph = NULL;
    char text[2048];
    own.batch = batch;
    snprintf(text, sizeof(text),
             "- %s\n"
             "- conv2d: {out: %d, kernel: 3, padding: same, weight: {uniform: 0.5}}\n"
             "- %s\n"
             "- conv2d: {out: %d, kernel: 3, padding: same, weight: {uniform: 0.5}}\n"
             "- residual: {body: [%s], shortcut: [batch_norm, %s]}\n"
             "- max_pool: {kernel: 2}\n"
             "- conv2d: {out: %d, kernel: 1, weight: {uniform: 0.5}}\n"
             "- flatten\n"
             "- %s\n"
             "- dense: {out: 9, weight: {uniform: 0.3}}\n"
             "- %s\n"
             "- dense: {out: classes}\n",
             layer, channels, layer, channels, layer, layer, channels, layer, layer);
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "net", &network, err));
    ck_ms_ok(network_build(network, &own, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    return graph;
}

static int count_kind(const struct graph *graph, enum op_kind kind)
{
    int n = 0;
    for (int i = 0; i < graph_n_ops(graph); i++) {
        n += graph_op(graph, i)->kind == kind;
    }
    return n;
}

static double squares(const float *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    return sum;
}

/* Weights of padding have no gradient, or they would no longer be zero after a step. */
static void check_padding(struct plan_case *c)
{
    double all = squares(c->exchange + c->sizes.stats, c->sizes.exchange - c->sizes.stats);
    double used = 0;
    for (int i = 0; i < graph_n_gradients(c->graph); i++) {
        const struct tensor *t = graph_tensor(c->graph, graph_gradient(c->graph, i));
        float *values = case_gradient(c, i);
        used += squares(values, (size_t)shape_count(&t->shape));
        free(values);
    }
    ck_assert_double_eq_tol(all, used, 1e-12 * used);
}

static void check_step(struct plan_case *c)
{
    oracle_check_step(c);
    check_padding(c);
}

static const int widths[] = {3, 6, 16};
enum { N_WIDTHS = 3, N_LAYERS = sizeof(layers) / sizeof(layers[0]) };

START_TEST(networks_give_the_gradients_of_the_oracle)
{
    const char *isa = oracle_isas[_i % ORACLE_N_ISAS];
    const int width = widths[_i / ORACLE_N_ISAS % N_WIDTHS];
    const char *layer = layers[_i / ORACLE_N_ISAS / N_WIDTHS].layer;
    if (!oracle_has_isa(isa)) {
        return;
    }
    struct case_options options = {.training = 1, .threads = 1, .isa = isa};
    struct plan_case c;
    case_init(&c, network_with(layer, width, 4), &options);
    ck_assert_int_eq(count_kind(c.graph, layers[_i / ORACLE_N_ISAS / N_WIDTHS].kind), 6);
    ck_assert_int_eq(count_kind(c.graph, OP_ACTIVATION_BWD), 5); /* nobody wants that of the data */

    check_step(&c);

    case_fini(&c);
    oracle_check_evaluation(network_with(layer, width, 3));
}
END_TEST

/* ---- plans --------------------------------------------------------------------------------------
 */

static struct graph *all_of_them(int64_t batch)
{
    static const char text[] = "- conv2d: {out: 6, kernel: 3}\n"
                               "- relu6\n"
                               "- conv2d: {out: 6, kernel: 3}\n"
                               "- sigmoid\n"
                               "- conv2d: {out: 6, kernel: 3}\n"
                               "- hard_swish\n"
                               "- leaky_relu\n"
                               "- elu\n"
                               "- flatten\n"
                               "- dense: {out: 7}\n"
                               "- gelu\n"
                               "- gelu: {approximate: tanh}\n"
                               "- silu\n"
                               "- tanh\n"
                               "- dense: {out: classes}\n";
    const struct network_input input = {
        .batch = batch, .channels = 3, .height = 9, .width = 9, .classes = 5};
    struct network *network = NULL;
    struct graph *graph = NULL;
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "activations", &network, err));
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    return graph;
}

/* Of a network with every activation, for training and evaluation. */
static struct job activations_job(int world)
{
    return job_of_graphs(all_of_them(4), all_of_them(5), world);
}

static struct plan_spec_op *row_of(const struct job *job, const char *kind, const char *name)
{
    const struct plan_spec_use *use = &job->spec->uses[PLAN_TRAIN];
    for (int i = 0; i < use->n_ops; i++) {
        if (strcmp(use->ops[i].kind, kind) == 0 &&
            strncmp(use->ops[i].name, name, strlen(name)) == 0) {
            return &use->ops[i];
        }
    }
    ck_abort_msg("the plan has no %s %s", kind, name);
    return NULL;
}

/* Behind six channels, too, which some machines pad. */
START_TEST(no_activation_runs_in_reference_code)
{
    struct job job = activations_job(1);
    for (int use = PLAN_TRAIN; use < PLAN_USES; use++) {
        for (int i = 0; i < job.spec->uses[use].n_ops; i++) {
            const struct plan_spec_op *op = &job.spec->uses[use].ops[i];
            ck_assert_msg(strncmp(op->impl, "ref", 3) != 0, "%s %s runs in %s", op->kind, op->name,
                          op->impl);
        }
    }
    job_fini(&job);
}
END_TEST

START_TEST(a_plan_with_activations_is_made_of_what_was_read)
{
    oracle_check_read_plan((struct job[]){activations_job(1), activations_job(1)});
}
END_TEST

/* Each layout follows from the neighbours, and a text that says another is refused. */
START_TEST(another_layout_is_refused_by_line)
{
    static const char *const kinds[] = {"activation_bwd", "elu"};
    for (int i = 0; i < 2; i++) {
        struct job job = activations_job(1);
        struct plan *plan = NULL;
        struct plan_spec_op *row = row_of(&job, kinds[i], "elu");
        char want[96];
        snprintf(row->src, sizeof(row->src), "%s", strcmp(row->src, "abcd") == 0 ? "acdb" : "abcd");
        snprintf(want, sizeof(want), "%s %s: cannot have src=%s here", kinds[i], row->name,
                 row->src);
        ck_ms_fails(plan_create(job.graphs[PLAN_TRAIN], job.spec, PLAN_TRAIN, NULL, &plan, err),
                    MS_E_INVALID, want);
        ck_assert_ptr_null(plan);
        job_fini(&job);
    }
}
END_TEST

START_TEST(a_plan_is_what_it_was)
{
    if (golden_plan_begin()) {
        struct job job = activations_job(8);
        ck_golden_plan(job.spec, "activations");
        job_fini(&job);
    }
}
END_TEST

/* ---- graphs -------------------------------------------------------------------------------------
 */

START_TEST(a_factor_that_is_no_number_is_refused_by_its_name)
{
    struct graph *graph = graph_create("g");
    struct shape shape = {2, {3, 4}};
    int x = graph_data(graph, "data", &shape, NULL);
    ck_ms_fails(graph_activation(graph, OP_LEAKY_RELU, x, NAN, err), MS_E_INVALID,
                "graph g: leaky_relu: slope is no finite number; inputs: data (3, 4)");
    ck_ms_fails(graph_activation(graph, OP_ELU, x, INFINITY, err), MS_E_INVALID,
                "elu: alpha is no finite number");
    ck_assert_int_ge(graph_activation(graph, OP_TANH, x, NAN, NULL), 0); /* it has none */
    graph_destroy(graph);
}
END_TEST

START_TEST(graphs_are_described_with_their_factors)
{
    struct graph *graph = graph_create("g");
    struct shape shape = {2, {3, 4}};
    int x = graph_data(graph, "data", &shape, NULL);
    x = graph_activation(graph, OP_LEAKY_RELU, x, 0.125, NULL);
    x = graph_activation(graph, OP_ELU, x, -3, NULL);
    ck_assert_int_ge(graph_activation(graph, OP_SILU, x, 0, NULL), 0);
    char *text = graph_describe(graph);
    ck_assert_ptr_nonnull(
        strstr(text, "leaky_relu: data (3, 4) -> leaky_relu_0 (3, 4) [slope 0.125]\n"));
    ck_assert_ptr_nonnull(strstr(text, "-> elu_1 (3, 4) [alpha -3]\n"));
    ck_assert_ptr_nonnull(strstr(text, "-> silu_2 (3, 4)\n"));
    free(text);
    graph_destroy(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("activation");
    TCase *tc = tcase_create("activations");
    tcase_add_loop_test(tc, formulas_are_those_of_torch, 0, KINDS);
    tcase_add_loop_test(tc, functions_and_gradients_are_right_in_every_layout, 0, N_FUNCTIONS);
    tcase_add_loop_test(tc, large_values_and_limits_are_those_of_the_function, 0, N_FUNCTIONS);
    tcase_add_loop_test(tc, bits_depend_on_no_place_and_no_thread, 0, N_FUNCTIONS);
    tcase_add_loop_test(tc, networks_give_the_gradients_of_the_oracle, 0,
                        N_LAYERS * N_WIDTHS * ORACLE_N_ISAS);
    tcase_add_test(tc, no_activation_runs_in_reference_code);
    tcase_add_test(tc, a_plan_with_activations_is_made_of_what_was_read);
    tcase_add_test(tc, another_layout_is_refused_by_line);
    tcase_add_test(tc, a_plan_is_what_it_was);
    tcase_add_test(tc, a_factor_that_is_no_number_is_refused_by_its_name);
    tcase_add_test(tc, graphs_are_described_with_their_factors);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
