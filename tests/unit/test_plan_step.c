/* test_plan_step.c - every op and every network: a step of the plan against the oracle in double */
#include "libworker/graph/op.h"
#include "tests/unit/plan_case.h"

/* ---- small graphs, one pattern each -------------------------------------------------------------
 */

struct build { /* a graph in the making */
    struct graph *graph;
    struct ms_err err;
    int n;
};

static struct shape shape4(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){4, {a, b, c, d}};
}

static int channels(const struct build *b, int x)
{
    return (int)graph_tensor(b->graph, x)->shape.dim[1];
}

static int param(struct build *b, struct shape shape, double scale)
{
    char name[32];
    snprintf(name, sizeof(name), "p%d", b->n++);
    return graph_param(b->graph, name, &shape, (struct init){INIT_UNIFORM, scale}, &b->err);
}

static int begin(struct build *b, int64_t n, int64_t c, int64_t side)
{
    memset(b, 0, sizeof(*b));
    b->graph = graph_create("pattern");
    struct shape shape = shape4(n, c, side, side);
    return graph_data(b->graph, "data", &shape, &b->err);
}

static int conv(struct build *b, int x, int64_t out, int64_t kernel, int64_t stride)
{
    int w = param(b, shape4(out, channels(b, x), kernel, kernel), 0.4);
    struct op_window window = graph_window_same(b->graph, x, kernel, stride);
    return graph_conv2d(b->graph, x, w, &window, &b->err);
}

/* In groups, with gaps between the taps, plus a bias; padding keeps the size. */
static int conv_of(struct build *b, int x, int64_t out, int64_t kernel, int64_t groups, int64_t gap,
                   int has_bias)
{
    struct op_window window = graph_window_valid(kernel, 1);
    window.gap_h = gap;
    window.gap_w = gap;
    struct op op = {.kind = OP_CONV2D,
                    .n_in = 2 + has_bias,
                    .window = graph_window_padded(b->graph, x, &window),
                    .groups = groups};
    op.in[0] = x;
    op.in[1] = param(b, shape4(out, channels(b, x) / groups, kernel, kernel), 0.4);
    op.in[2] = has_bias ? param(b, (struct shape){1, {out}}, 0.4) : 0;
    return graph_apply(b->graph, &op, &b->err);
}

static int norm(struct build *b, int x)
{
    struct shape c = {1, {channels(b, x)}};
    char mean[32], variance[32];
    snprintf(mean, sizeof(mean), "m%d", b->n);
    snprintf(variance, sizeof(variance), "v%d", b->n++);
    struct init one = {INIT_CONSTANT, 1};
    int m = graph_state(b->graph, mean, &c, one, 0.9, &b->err);
    int v = graph_state(b->graph, variance, &c, one, 0.9, &b->err);
    int gamma = param(b, c, 1);
    int beta = param(b, c, 1);
    return graph_batch_norm(b->graph, x, gamma, beta, m, v, 1e-5, &b->err);
}

static int relu(struct build *b, int x)
{
    return graph_relu(b->graph, x, &b->err);
}

static int add(struct build *b, int x, int y)
{
    return graph_add(b->graph, x, y, &b->err);
}

static int dense(struct build *b, int x, int64_t out)
{
    int64_t in = graph_tensor(b->graph, x)->shape.dim[1];
    int w = param(b, (struct shape){2, {out, in}}, 0.3);
    int bias = param(b, (struct shape){1, {out}}, 0.3);
    return graph_dense(b->graph, x, w, bias, &b->err);
}

static int flatten(struct build *b, int x)
{
    return graph_flatten(b->graph, x, &b->err);
}

static int pool(struct build *b, int x, int is_max, struct op_window window)
{
    return is_max ? graph_max_pool(b->graph, x, &window, &b->err)
                  : graph_avg_pool(b->graph, x, &window, &b->err);
}

/* kind: OP_SOFTMAX_CE, or a loss of targets. */
static struct graph *end_with(struct build *b, int logits, enum op_kind kind)
{
    const int has_targets = kind != OP_SOFTMAX_CE;
    ck_assert_msg(logits >= 0, "%s", b->err.text);
    const struct shape *out = &graph_tensor(b->graph, logits)->shape;
    struct shape rows = {1, {out->dim[0]}};
    int label = graph_label(b->graph, "label", has_targets ? out : &rows,
                            has_targets ? MS_F32 : MS_I32, &b->err);
    int loss = has_targets ? graph_target_loss(b->graph, kind, logits, label, 0.3, &b->err)
                           : graph_softmax_ce(b->graph, logits, label, &b->err);
    ck_assert_msg(loss >= 0, "%s", b->err.text);
    ck_ms_ok(graph_set_loss(b->graph, loss, err));
    ck_ms_ok(graph_set_output(b->graph, logits, err));
    return b->graph;
}

static struct graph *end(struct build *b, int logits, int is_mse)
{
    return end_with(b, logits, is_mse ? OP_MSE : OP_SOFTMAX_CE);
}

static struct graph *plain_convolutions(void)
{
    struct build b;
    int x = begin(&b, 3, 3, 9);
    x = conv(&b, x, 7, 3, 2);
    x = conv(&b, x, 20, 3, 1);
    x = conv(&b, x, 33, 1, 1);
    x = conv(&b, x, 16, 5, 1);
    return end(&b, dense(&b, flatten(&b, x), 4), 0);
}

static struct graph *few_input_channels(void) /* oneDNN has no fast code for 6 padded to 16 */
{
    struct build b;
    int x = relu(&b, conv(&b, begin(&b, 4, 1, 12), 6, 5, 1));
    x = pool(&b, x, 1, graph_window_valid(2, 2));
    x = relu(&b, conv(&b, x, 16, 5, 1));
    x = conv(&b, x, 9, 3, 1);
    x = conv(&b, x, 5, 3, 2);
    return end(&b, dense(&b, flatten(&b, x), 3), 0);
}

static struct graph *data_with_many_channels(void) /* the batch itself must be reordered */
{
    struct build b;
    int x = begin(&b, 2, 16, 8);
    x = add(&b, conv(&b, x, 32, 3, 1), conv(&b, x, 32, 1, 1));
    return end(&b, dense(&b, flatten(&b, relu(&b, x)), 5), 0);
}

static struct graph *norm_and_relu(void)
{
    struct build b;
    int x = relu(&b, norm(&b, conv(&b, begin(&b, 4, 3, 8), 32, 3, 1)));
    x = relu(&b, norm(&b, conv(&b, x, 20, 3, 1)));
    x = norm(&b, conv(&b, x, 16, 1, 2));
    return end(&b, dense(&b, flatten(&b, x), 6), 0);
}

static struct graph *residual_blocks(void) /* projection, identity, and a sum without ReLU */
{
    struct build b;
    int x = relu(&b, norm(&b, conv(&b, begin(&b, 4, 3, 8), 16, 3, 1)));
    int y = norm(&b, conv(&b, relu(&b, norm(&b, conv(&b, x, 16, 1, 2))), 32, 3, 1));
    x = relu(&b, add(&b, y, norm(&b, conv(&b, x, 32, 1, 2))));
    y = norm(&b, conv(&b, relu(&b, norm(&b, conv(&b, x, 16, 1, 1))), 32, 3, 1));
    x = relu(&b, add(&b, x, y));
    x = add(&b, norm(&b, conv(&b, x, 32, 3, 1)), x);
    x = add(&b, x, conv(&b, x, 32, 1, 1));
    x = pool(&b, x, 0, graph_window_valid(4, 4));
    return end(&b, dense(&b, flatten(&b, x), 6), 0);
}

static struct graph *norm_read_twice(void) /* nothing may be fused over a tensor with two readers */
{
    struct build b;
    int x = norm(&b, conv(&b, begin(&b, 3, 3, 6), 16, 3, 1));
    int y = relu(&b, x);
    x = add(&b, x, conv(&b, y, 16, 3, 1));
    x = relu(&b, x);
    x = add(&b, x, x);
    return end(&b, dense(&b, flatten(&b, x), 3), 0);
}

static struct graph *pools(void)
{
    struct build b;
    int x = conv(&b, begin(&b, 2, 3, 13), 16, 3, 1);
    x = pool(&b, x, 1, graph_window_same(b.graph, x, 3, 2));
    x = pool(&b, x, 0, graph_window_same(b.graph, x, 3, 2));
    x = pool(&b, conv(&b, x, 10, 3, 1), 1, graph_window_valid(2, 1));
    x = pool(&b, x, 0, graph_window_valid(3, 3));
    return end(&b, dense(&b, flatten(&b, x), 3), 0);
}

static struct graph *pools_that_tile(void) /* and do not fill the image */
{
    struct build b;
    int x = conv(&b, begin(&b, 2, 3, 27), 24, 3, 1);
    x = pool(&b, x, 1, graph_window_valid(2, 2));
    x = pool(&b, conv(&b, x, 10, 3, 1), 1, graph_window_valid(3, 3));
    x = pool(&b, relu(&b, x), 1, graph_window_valid(4, 4));
    return end(&b, dense(&b, flatten(&b, x), 3), 0);
}

static struct graph *dense_layers(void)
{
    struct build b;
    int x = relu(&b, dense(&b, flatten(&b, begin(&b, 5, 2, 3)), 37));
    x = relu(&b, dense(&b, x, 16));
    return end(&b, dense(&b, x, 2), 1);
}

static struct graph *flatten_of_padded_channels(void)
{
    struct build b;
    int x = relu(&b, flatten(&b, conv(&b, begin(&b, 4, 3, 5), 5, 3, 1)));
    return end(&b, relu(&b, dense(&b, x, 7)), 1);
}

static struct graph *norm_of_one_pixel(void)
{
    struct build b;
    int x = conv(&b, begin(&b, 8, 3, 4), 24, 3, 1);
    x = pool(&b, x, 0, graph_window_valid(4, 4));
    x = relu(&b, norm(&b, conv(&b, x, 40, 1, 1)));
    return end(&b, dense(&b, flatten(&b, x), 3), 0);
}

static struct graph *norm_of_the_data(void)
{
    struct build b;
    int x = norm(&b, begin(&b, 4, 3, 7));
    return end(&b, dense(&b, flatten(&b, conv(&b, x, 16, 3, 1)), 3), 0);
}

static struct graph *biases(void) /* with a ReLU and without, blocks that are padded and whole */
{
    struct build b;
    int x = relu(&b, conv_of(&b, begin(&b, 3, 3, 9), 6, 5, 1, 0, 1));
    x = conv_of(&b, x, 32, 3, 1, 0, 1);
    x = relu(&b, conv_of(&b, x, 20, 1, 1, 0, 1));
    x = conv_of(&b, x, 7, 3, 1, 0, 1);
    return end(&b, dense(&b, flatten(&b, x), 4), 0);
}

static struct graph *depthwise_blocks(void) /* as in MobileNetV2; 24 channels fill no block of 16 */
{
    struct build b;
    int x = relu(&b, norm(&b, conv(&b, begin(&b, 4, 3, 12), 16, 3, 2)));
    int y = relu(&b, norm(&b, conv(&b, x, 24, 1, 1)));
    y = relu(&b, norm(&b, conv_of(&b, y, 24, 3, 24, 0, 0)));
    x = add(&b, x, norm(&b, conv(&b, y, 16, 1, 1)));
    x = conv_of(&b, x, 32, 3, 16, 0, 1); /* two of each channel */
    return end(&b, dense(&b, flatten(&b, x), 3), 0);
}

static struct graph *groups(void) /* whole blocks and less, of the data itself, too */
{
    struct build b;
    int x = conv_of(&b, begin(&b, 3, 6, 8), 9, 3, 3, 0, 0);
    x = relu(&b, conv_of(&b, x, 12, 3, 3, 0, 1));
    x = conv_of(&b, x, 64, 1, 4, 0, 0);
    x = relu(&b, norm(&b, conv_of(&b, x, 64, 3, 2, 0, 0)));
    x = conv_of(&b, x, 10, 3, 2, 0, 1);
    return end(&b, dense(&b, flatten(&b, x), 3), 0);
}

static struct graph *gaps_between_taps(void)
{
    struct build b;
    int x = relu(&b, conv_of(&b, begin(&b, 3, 3, 11), 16, 3, 1, 1, 1));
    x = conv_of(&b, x, 24, 3, 1, 3, 0);
    x = relu(&b, conv_of(&b, x, 24, 3, 24, 2, 0));
    x = conv_of(&b, x, 8, 2, 4, 1, 1);
    return end(&b, dense(&b, flatten(&b, x), 3), 0);
}

static int concat(struct build *b, int n, const int *parts)
{
    struct op op = {.kind = OP_CONCAT, .n_in = n};
    memcpy(op.in, parts, (size_t)n * sizeof(*parts));
    return graph_apply(b->graph, &op, &b->err);
}

static struct graph *channels_in_a_row(void) /* whole blocks, parts of them, the data, one twice */
{
    struct build b;
    int data = begin(&b, 3, 5, 8);
    int x = relu(&b, conv(&b, data, 16, 3, 1));
    int y = conv(&b, x, 32, 1, 1);
    x = concat(&b, 3, (const int[]){x, y, relu(&b, y)});
    x = relu(&b, norm(&b, conv(&b, x, 24, 3, 1)));
    x = concat(&b, 2, (const int[]){x, data});
    y = conv(&b, x, 7, 3, 1);
    x = concat(&b, 4, (const int[]){y, x, y, conv(&b, data, 16, 1, 1)});
    x = pool(&b, x, 0, graph_window_valid(8, 8));
    x = flatten(&b, x);
    x = concat(&b, 2, (const int[]){x, relu(&b, dense(&b, x, 9))});
    return end(&b, dense(&b, x, 3), 0);
}

static int dropout(struct build *b, int x, double rate)
{
    const struct op op = {.kind = OP_DROPOUT, .in = {x}, .rate = rate};
    return graph_apply(b->graph, &op, &b->err);
}

static struct graph *dropouts(void) /* of the data, padded blocks, an image as rows, rows */
{
    struct build b;
    int x = dropout(&b, begin(&b, 3, 3, 8), 0.1);
    x = dropout(&b, relu(&b, conv(&b, x, 20, 3, 1)), 0.25);
    x = dropout(&b, flatten(&b, conv(&b, x, 7, 3, 2)), 0.5);
    x = dropout(&b, relu(&b, dense(&b, x, 30)), 0.3);
    return end(&b, dense(&b, x, 3), 0);
}

static int softmax(struct build *b, int x)
{
    const struct op op = {.kind = OP_SOFTMAX, .in = {x}};
    return graph_apply(b->graph, &op, &b->err);
}

static struct graph *softmaxes(void) /* of padded blocks that two read, an image as rows, rows */
{
    struct build b;
    int x = conv(&b, begin(&b, 3, 3, 8), 20, 3, 1);
    x = concat(&b, 2, (const int[]){softmax(&b, x), x});
    x = softmax(&b, flatten(&b, conv(&b, softmax(&b, conv(&b, x, 7, 3, 1)), 6, 3, 2)));
    x = softmax(&b, dense(&b, x, 30));
    return end(&b, dense(&b, x, 3), 0);
}

static struct graph *dense_without_a_bias(void)
{
    struct build b;
    int x = flatten(&b, conv(&b, begin(&b, 5, 3, 5), 6, 3, 1));
    for (int out = 19; out > 2; out -= 14) {
        int w = param(&b, (struct shape){2, {out, channels(&b, x)}}, 0.3);
        const struct op op = {.kind = OP_DENSE, .n_in = 2, .in = {x, w}};
        x = relu(&b, graph_apply(b.graph, &op, &b.err));
    }
    return end(&b, dense(&b, x, 2), 1);
}

static struct graph *loss_of(enum op_kind kind)
{
    struct build b;
    int x = relu(&b, dense(&b, flatten(&b, begin(&b, 5, 2, 3)), 37));
    return end_with(&b, dense(&b, x, 3), kind);
}

static struct graph *l1_loss(void)
{
    return loss_of(OP_L1);
}

static struct graph *huber_loss(void)
{
    return loss_of(OP_HUBER);
}

static struct graph *bce_loss(void)
{
    return loss_of(OP_BCE);
}

static const struct pattern {
    const char *name;
    struct graph *(*build)(void);
} patterns[] = {
    {"plain_convolutions", plain_convolutions},
    {"few_input_channels", few_input_channels},
    {"data_with_many_channels", data_with_many_channels},
    {"norm_and_relu", norm_and_relu},
    {"residual_blocks", residual_blocks},
    {"norm_read_twice", norm_read_twice},
    {"pools", pools},
    {"pools_that_tile", pools_that_tile},
    {"dense_layers", dense_layers},
    {"flatten_of_padded_channels", flatten_of_padded_channels},
    {"norm_of_one_pixel", norm_of_one_pixel},
    {"norm_of_the_data", norm_of_the_data},
    {"biases", biases},
    {"depthwise_blocks", depthwise_blocks},
    {"groups", groups},
    {"gaps_between_taps", gaps_between_taps},
    {"dense_without_a_bias", dense_without_a_bias},
    {"channels_in_a_row", channels_in_a_row},
    {"dropouts", dropouts},
    {"l1_loss", l1_loss},
    {"huber_loss", huber_loss},
    {"bce_loss", bce_loss},
    {"softmaxes", softmaxes},
};

/* fp32 against double: rounding of at most a few thousand summed terms, relative to the norm. */
static void check_step(struct plan_case *c, double loss_tol, double stat_tol, double grad_tol)
{
    const char *which = NULL;
    case_reference_batch(c);
    ref_graph_run(c->ref);

    case_poison(c);
    float loss = case_step(c);

    ck_assert_msg(case_exchange_is_finite(c), "something of the exchange buffer was not written");
    double want = ref_graph_loss(c->ref);
    ck_assert_msg(fabs((double)loss - want) <= loss_tol * (1 + fabs(want)), "loss %.9g, want %.9g",
                  (double)loss, want);
    double d = case_worst_statistic(c, &which);
    ck_assert_msg(d <= stat_tol, "statistic %s is %.3g off", which, d);
    d = case_worst_gradient(c, &which);
    ck_assert_msg(d <= grad_tol, "gradient %s is %.3g off", which, d);
}

START_TEST(pattern_gives_the_gradients_of_the_oracle)
{
    for (int recompute = PLAN_RECOMPUTE_OFF; recompute <= PLAN_RECOMPUTE_ON; recompute++) {
        struct case_options options = {.training = 1, .threads = 1};
        options.recompute = (enum plan_recompute)recompute;
        struct plan_case c;
        case_init(&c, patterns[_i].build(), &options);
        case_reference(&c, 5);

        check_step(&c, 1e-5, 1e-5, 1e-4);

        case_fini(&c);
    }
}
END_TEST

/* A process has one cap: Check forks for every case, unless a debugger's user forbids it. */
static const char *const isas[] = {"sse41", "avx2", "avx512_core", "avx512_core_amx"};
enum { N_PATTERNS = sizeof(patterns) / sizeof(patterns[0]), N_ISAS = 4 };

START_TEST(pattern_gives_the_same_on_older_machines)
{
    const char *fork_mode = getenv("CK_FORK");
    if (fork_mode != NULL && strcmp(fork_mode, "no") == 0) {
        return;
    }
    const char *isa = isas[_i % N_ISAS];
    ck_assert_str_ne(plan_isa(), ""); /* asked before it is set: must not fix it */
    struct ms_err refused = {0, ""};
    if (plan_set_isa(isa, &refused) < 0) {
        ck_assert_int_eq(refused.code, MS_E_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(refused.text, "this machine"));
        printf("skip: %s\n", refused.text);
        return;
    }
    ck_assert_str_eq(plan_isa(), isa);
    struct case_options options = {.training = 1, .threads = 1, .isa = isa};
    struct plan_case c;
    case_init(&c, patterns[_i / N_ISAS].build(), &options);
    case_reference(&c, 5);

    check_step(&c, 1e-5, 1e-5, 1e-4);

    case_fini(&c);
    struct plan *plan = NULL;
    struct graph *graph = patterns[0].build();
    ck_ms_ok(graph_differentiate(graph, err));
    options.isa = strcmp(isa, "avx2") == 0 ? "sse41" : "avx2";
    ck_ms_fails(case_create(graph, &options, &plan, err), MS_E_REFUSED,
                "oneDNN changes it only at a start");
    options.isa = "mmx";
    ck_ms_fails(case_create(graph, &options, &plan, err), MS_E_INVALID, "mmx");
    graph_destroy(graph);
}
END_TEST

/* What a process says that it has is no question to oneDNN, which answers one of them only. */
START_TEST(cap_is_said_and_fixes_nothing)
{
    const char *fork_mode = getenv("CK_FORK");
    if (fork_mode != NULL && strcmp(fork_mode, "no") == 0) {
        return;
    }
    char own[32];
    snprintf(own, sizeof(own), "%s", plan_isa());
    ck_ms_fails(plan_cap_isa("mmx", err), MS_E_INVALID, "isa 'mmx' is unknown");
    ck_assert_str_eq(plan_isa(), own);
    ck_ms_ok(plan_cap_isa("sse41", err));
    ck_assert_str_eq(plan_isa(), "sse41");
    if (strcmp(own, "sse41") != 0) { /* whoever asks, a plan from elsewhere too */
        ck_ms_fails(plan_set_isa(own, err), MS_E_UNSUPPORTED, "serves sse41 at the most");
    }

    ck_ms_ok(plan_cap_isa(own, err));
    ck_ms_ok(plan_set_isa(own, err)); /* was still free */
    ck_assert_str_eq(plan_isa(), own);
}
END_TEST

START_TEST(machines_own_set_is_the_cap_where_there_is_one)
{
    const char *fork_mode = getenv("CK_FORK");
    if (fork_mode != NULL && strcmp(fork_mode, "no") == 0) {
        return;
    }
    ck_ms_ok(plan_cap_isa("sse41", err));
    ck_ms_ok(plan_set_isa("", err));
    ck_assert_str_eq(plan_isa(), "sse41");
}
END_TEST

/* ---- networks -----------------------------------------------------------------------------------
 */

static const struct network {
    const char *name;
    int64_t batch, channels, side, classes;
    enum network_loss loss;
    double loss_tol, stat_tol, grad_tol;
} networks[] = {
    {"mnist", 32, 1, 28, 10, NETWORK_LOSS_SOFTMAX_CE, 1e-6, 0, 1e-5},
    {"linear", 16, 2, 1, 1, NETWORK_LOSS_MSE, 1e-6, 0, 1e-5},
    {"lenet5", 8, 1, 32, 10, NETWORK_LOSS_SOFTMAX_CE, 1e-6, 0, 1e-4},
    {"lenet5", 3, 3, 32, 10, NETWORK_LOSS_SOFTMAX_CE, 1e-6, 0, 1e-4},
    {"cifar_small", 8, 3, 32, 10, NETWORK_LOSS_SOFTMAX_CE, 1e-5, 1e-5, 1e-4},
    /* 53 batch norms amplify rounding: see the README of the reference run */
    {"resnet50", 2, 3, 64, 10, NETWORK_LOSS_SOFTMAX_CE, 1e-4, 1e-3, 2e-2},
};

START_TEST(network_gives_the_gradients_of_the_oracle)
{
    const struct network *n = &networks[_i];
    struct case_options options = {.training = 1, .threads = 1};
    struct plan_case c;
    case_init(&c, case_model(n->name, n->batch, n->channels, n->side, n->classes, n->loss),
              &options);
    case_reference(&c, 7);

    check_step(&c, n->loss_tol, n->stat_tol, n->grad_tol);

    case_fini(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_step");
    TCase *tc = tcase_create("oracle");
    tcase_add_loop_test(tc, pattern_gives_the_gradients_of_the_oracle, 0, N_PATTERNS);
    tcase_add_loop_test(tc, pattern_gives_the_same_on_older_machines, 0, N_PATTERNS * N_ISAS);
    tcase_add_test(tc, cap_is_said_and_fixes_nothing);
    tcase_add_test(tc, machines_own_set_is_the_cap_where_there_is_one);
    tcase_add_loop_test(tc, network_gives_the_gradients_of_the_oracle, 0,
                        sizeof(networks) / sizeof(networks[0]));
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
