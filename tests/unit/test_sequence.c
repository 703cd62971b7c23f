/* test_sequence.c - embedding, attention and layers of tokens: PyTorch's numbers, the formula,
 * whole steps and their plans
 */
#include "libworker/plan/dnnl.h"
#include "libworker/plan/internal.h"
#include "tests/unit/golden_plan.h"
#include "tests/unit/plan_oracle.h"

/* ---- kernels ------------------------------------------------------------------------------------
 */

static float *floats(size_t n, uint64_t seed, double width)
{
    float *p = case_floats(n);
    for (size_t i = 0; i < n; i++) {
        p[i] = (float)(width * (2 * ms_rng_unit(seed, (uint64_t)i) - 1));
    }
    return p;
}

/* The product by its definition. */
static int plain_product(const struct kernel_product *p)
{
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p->k; k++) {
                const float a = p->is_a_turned ? p->a[k * p->lda + i] : p->a[i * p->lda + k];
                const float b = p->is_b_turned ? p->b[j * p->ldb + k] : p->b[k * p->ldb + j];
                sum += (double)a * (double)b;
            }
            float *c = &p->c[i * p->ldc + j]; /* with beta 0 it may hold anything */
            *c = (float)((double)p->alpha * sum + (p->beta != 0 ? (double)(p->beta * *c) : 0));
        }
    }
    return 0;
}

static int failing_product(const struct kernel_product *p)
{
    (void)p;
    return MS_E_FAILED;
}

/* PyTorch 2.15 in float64: q, k, v of x = [(13 * i % 17) / 8 - 1 for i in range(1 * 3 * 12)] as (1,
 * 3, 3, 2, 2): (sample, token, part, head, width), scaled_dot_product_attention(q, k, v,
 * is_causal); dy = [(7 * i % 11) / 5 - 1 for i in range(12)] */
enum { TORCH_TOKENS = 3, TORCH_HEADS = 2, TORCH_WIDTH = 2, TORCH_X = 36, TORCH_Y = 12 };
static const double torch_y[2][TORCH_Y] = {
    {-0.527188471, 0.241905997, 0.0715096994, 0.233439312, -0.555039882, 0.345441546, -0.0209890825,
     0.283048892, -0.315966883, -0.406001057, -0.120156377, 0.331382034},
    {-0.75, 0.875, 0.375, -0.125, -0.676007118, 0.529699886, 0.574911436, 0.0749114359,
     -0.315966883, -0.406001057, -0.120156377, 0.331382034}};
static const double torch_dx[2][TORCH_X] = {
    {-0.11720251,   0.309996984,   0.112996262,   0.112996262,   -0.135189007, -0.154759334,
     0.0684453783,  0.067118859,   -0.619750985,  -0.0407866235, 0.0437762913, 0.1248941,
     0.0916773884,  -0.261585857,  -0.102960658,  -0.102960658,  0.0534306833, 0.0887742924,
     0.0463414053,  0.0145942742,  -0.544375366,  0.261390817,   0.0676821309, 0.0113923933,
     -0.0858044279, 0.237662269,   -0.0358357306, -0.0358357306, 0.0817583236, 0.0659850414,
     -0.114786784,  -0.0817131332, -0.43587365,   0.179395807,   0.0885415778, -0.136286494},
    {0,
     0,
     0,
     0,
     0.0406898636,
     -0.240156347,
     0.0246214934,
     0.0218664903,
     -0.993802946,
     0.0341436673,
     -0.0726305346,
     0.769235976,
     0.0472468615,
     -0.220485353,
     0.0198002379,
     0.0198002379,
     -0.05983791,
     0.182712208,
     0.00797340074,
     -0.00789724992,
     -0.325919663,
     0.155648289,
     0.362187091,
     -0.321453195,
     -0.0858044279,
     0.237662269,
     -0.0358357306,
     -0.0358357306,
     0.0191480464,
     0.0574441392,
     -0.0325948942,
     -0.0139692404,
     -0.280277392,
     0.210208044,
     -0.0895565563,
     -0.447782782}};

START_TEST(numbers_are_those_of_torch)
{
    float x[TORCH_X], dy[TORCH_Y], y[TORCH_Y], dx[TORCH_X], stats[2 * 6];
    struct kernel_attention a = {.n = 1,
                                 .tokens = TORCH_TOKENS,
                                 .heads = TORCH_HEADS,
                                 .width = TORCH_WIDTH,
                                 .is_causal = _i,
                                 .product = plain_product,
                                 .qkv = x,
                                 .stats = stats,
                                 .y = y};
    for (int i = 0; i < TORCH_X; i++) {
        x[i] = (float)(13 * i % 17) / 8 - 1;
    }
    for (int i = 0; i < TORCH_Y; i++) {
        dy[i] = (float)(7 * i % 11) / 5 - 1;
    }
    a.scratch = case_floats(kernel_attention_scratch(&a, 1, 1) / sizeof(float));

    ck_assert_int_eq(kernel_attention_forward(&a, 1), 0);
    a.dy = dy;
    a.dqkv = dx;
    ck_assert_int_eq(kernel_attention_backward(&a, 1), 0);

    for (int i = 0; i < TORCH_Y; i++) {
        ck_assert_double_eq_tol((double)y[i], torch_y[_i][i], 2e-7);
    }
    for (int i = 0; i < TORCH_X; i++) {
        ck_assert_double_eq_tol((double)dx[i], torch_dx[_i][i], 3e-7);
    }
    free(a.scratch);
}
END_TEST

/* Several blocks of queries, the last one short; one; a row of scores of more than one tile. */
static const struct {
    int64_t n, tokens, heads, width;
    double rate;
} sizes[] = {{2, 150, 3, 8, 0}, {3, 64, 2, 5, 0.25}, {1, 1100, 1, 4, 0}, {5, 1, 2, 16, 0}};
enum { N_SIZES = 4 };

struct attended {
    float *y, *dx;
    size_t n_y, n_x;
};

static struct attended attend(int i, int is_causal, kernel_product_fn *product, int threads)
{
    struct kernel_attention a = {.n = sizes[i].n,
                                 .tokens = sizes[i].tokens,
                                 .heads = sizes[i].heads,
                                 .width = sizes[i].width,
                                 .is_causal = is_causal,
                                 .rate = sizes[i].rate,
                                 .draw = 77,
                                 .product = product};
    struct attended ret;
    ret.n_y = (size_t)(a.n * a.tokens * a.heads * a.width);
    ret.n_x = 3 * ret.n_y;
    float *x = floats(ret.n_x, 5, 2), *dy = floats(ret.n_y, 6, 1);
    float *stats = case_floats((size_t)(2 * a.n * a.heads * a.tokens));
    a.scratch = floats(kernel_attention_scratch(&a, 1, threads) / sizeof(float), 7, 1e30);
    ret.y = floats(ret.n_y, 8, 1e30);
    ret.dx = floats(ret.n_x, 9, 1e30); /* all is written */
    a.qkv = x;
    a.stats = stats;
    a.y = ret.y;
    a.dqkv = ret.dx;
    ck_assert_int_eq(kernel_attention_forward(&a, threads), 0);
    a.dy = dy;
    ck_assert_int_eq(kernel_attention_backward(&a, threads), 0);
    free(x);
    free(dy);
    free(stats);
    free(a.scratch);
    return ret;
}

static double worst(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        most = d > most || isnan(d) ? d : most;
    }
    return most;
}

static void attended_fini(struct attended *a)
{
    free(a->y);
    free(a->dx);
}

/* oneDNN's products give what the definition does, and no bit depends on the team. */
START_TEST(products_may_be_anybodys)
{
    const int i = _i / 2, is_causal = _i % 2;
    struct attended plain = attend(i, is_causal, plain_product, 1);
    struct attended one = attend(i, is_causal, plain_product, 3);
    struct attended own = attend(i, is_causal, dn_product, 1);

    ck_assert_mem_eq(plain.y, one.y, plain.n_y * sizeof(float));
    ck_assert_mem_eq(plain.dx, one.dx, plain.n_x * sizeof(float));
    ck_assert_double_le(worst(plain.y, own.y, plain.n_y), 2e-5);
    ck_assert_double_le(worst(plain.dx, own.dx, plain.n_x), 1e-4);

    attended_fini(&plain);
    attended_fini(&one);
    attended_fini(&own);
}
END_TEST

START_TEST(a_product_that_is_not_to_be_had_is_said)
{
    float x[12] = {0}, y[4], stats[4];
    struct kernel_attention a = {.n = 1, .tokens = 2, .heads = 1, .width = 2, .qkv = x, .y = y};
    a.stats = stats;
    a.product = failing_product;
    a.scratch = case_floats(kernel_attention_scratch(&a, 1, 2) / sizeof(float));
    ck_assert_int_eq(kernel_attention_forward(&a, 2), MS_E_FAILED);
    a.dy = y;
    a.dqkv = x;
    ck_assert_int_eq(kernel_attention_backward(&a, 2), MS_E_FAILED);
    free(a.scratch);
}
END_TEST

START_TEST(a_token_is_a_whole_number_of_a_word)
{
    static const float bad[] = {-1, 5, 4.5F, NAN, INFINITY, 1e30F};
    float tokens[] = {0, 4, 2};
    const struct kernel_embedding e = {3, 5, 1, tokens};
    ck_assert_int_eq(kernel_embedding_check(&e), -1);
    for (size_t i = 0; i < MS_ARRAY_SIZE(bad); i++) {
        tokens[1] = bad[i];
        ck_assert_int_eq(kernel_embedding_check(&e), 1);
    }
}
END_TEST

/* A word's gradient is the sum over its tokens in their order; of a word that is not there 0. */
START_TEST(gradients_of_words_are_sums_over_tokens)
{
    enum { ROWS = 400, WORDS = 37, CHANNELS = 43 };
    float tokens[ROWS], want[WORDS * CHANNELS] = {0};
    float *dy = floats((size_t)ROWS * CHANNELS, 3, 1);
    float *dw = floats((size_t)WORDS * CHANNELS, 4, 1);
    const struct kernel_embedding e = {ROWS, WORDS, CHANNELS, tokens};
    for (int i = 0; i < ROWS; i++) {
        tokens[i] = (float)ms_rng_below(9, (uint64_t)i, WORDS - 1);
        for (int c = 0; c < CHANNELS; c++) {
            want[(int)tokens[i] * CHANNELS + c] += dy[i * CHANNELS + c];
        }
    }
    for (int threads = 1; threads <= 4; threads++) {
        kernel_embedding_backward(&e, dy, dw, threads);
        ck_assert_mem_eq(dw, want, sizeof(want));
    }
    free(dy);
    free(dw);
}
END_TEST

/* ---- graphs -------------------------------------------------------------------------------------
 */

static const struct init normal = {INIT_NORMAL, 1};

static int embedded(struct graph *g, int64_t channels)
{
    const struct shape tokens = {2, {2, 5}}, weight = {2, {7, channels}};
    struct op op = {.kind = OP_EMBEDDING, .in = {graph_data(g, "data", &tokens, NULL)}};
    op.in[1] = graph_param(g, "e.weight", &weight, normal, NULL);
    return graph_apply(g, &op, NULL);
}

START_TEST(sequences_that_cannot_be_are_refused)
{
    struct graph *g = graph_create("g");
    const struct shape channels = {1, {12}}, labels = {1, {2}}, weight = {2, {7, 3}};
    const int x = embedded(g, 12);
    struct op op = {.kind = OP_ATTENTION, .in = {x}, .groups = 3};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "4 channels are no multiple of 3 heads");
    op.groups = 2;
    op.rate = 1;
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "the rate 1 is not from 0 to less than 1");
    op = (struct op){.kind = OP_BIAS, .in = {x, graph_param(g, "p", &channels, normal, NULL)}};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "the bias of a sequence must be (5, 12)");
    op = (struct op){.kind = OP_EMBEDDING, .in = {x, graph_param(g, "w", &weight, normal, NULL)}};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "must be the data");
    op = (struct op){.kind = OP_CLASS_TOKEN, .in = {x, graph_param(g, "t", &weight, normal, NULL)}};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "the token must be (12)");
    const int label = graph_label(g, "label", &labels, MS_I32, NULL);
    ck_ms_fails(graph_softmax_ce(g, x, label, err), MS_E_INVALID,
                "(n, tokens, k) want (n, tokens)");
    graph_destroy(g);
    g = graph_create("g");
    op = (struct op){.kind = OP_ATTENTION, .in = {embedded(g, 10)}};
    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID,
                "queries, keys and values (n, tokens, 3 c)");
    graph_destroy(g);
}
END_TEST

START_TEST(attention_is_described)
{
    struct graph *g = graph_create("g");
    const struct op op = {
        .kind = OP_ATTENTION, .in = {embedded(g, 12)}, .groups = 2, .is_causal = 1, .rate = 0.5};
    ck_assert_int_ge(graph_apply(g, &op, NULL), 0);
    char *text = graph_describe(g);
    ck_assert_ptr_nonnull(strstr(text, "-> e (2, 5, 12)\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "-> attention_1 (2, 5, 4) [2 groups] [causal] [rate 0.5]\n"));
    free(text);
    graph_destroy(g);
}
END_TEST

/* ---- steps --------------------------------------------------------------------------------------
 */

static const char of_tokens[] =
    "- embedding: {words: 11, size: 24}\n"
    "- positional_embedding: {weight: {normal: 0.5}}\n"
    "- dropout: {rate: 0.2}\n"
    "- repeat:\n"
    "    times: 2\n"
    "    layers:\n"
    "    - residual: {body: [layer_norm: {over: channels, gamma: {normal: 1}, beta: {normal: 1}},\n"
    "        attention: {heads: 4, causal: true, dropout: 0.25, bias: {normal: 0.5}}]}\n"
    "    - residual: {body: [layer_norm: {over: channels}, dense: {out: 40}, gelu,\n"
    "        dense: {out: 24, bias: none}, dropout: {rate: 0.1}]}\n"
    "- layer_norm: {gamma: {normal: 1}, beta: {normal: 0.5}}\n"
    "- dense: {out: classes}\n";
static const char of_samples[] = "- embedding: {words: 11, size: 15}\n"
                                 "- attention: {heads: 3, bias: none, parameters: torch}\n"
                                 "- dense: {out: 20}\n"
                                 "- relu\n"
                                 "- softmax\n"
                                 "- flatten\n"
                                 "- dense: {out: classes}\n";

/* Patches of images; 10 channels fill no block of a layout. */
static const char of_patches[] =
    "- conv2d: {out: 10, kernel: 3, stride: 2, padding: same, bias: fan_in}\n"
    "- relu\n"
    "- tokens\n"
    "- class_token: {weight: {normal: 0.5}, leading: 2}\n"
    "- positional_embedding: {weight: {normal: 0.5}, leading: 1}\n"
    "- residual: {body: [layer_norm: {over: channels}, attention: {heads: 2}]}\n"
    "- dense: {name: q, out: 8}\n"
    "- dense: {name: k, from: residual1, out: 8}\n"
    "- concat: {from: [q, k, q]}\n"
    "- dot_product_attention: {heads: 4, causal: true}\n"
    "- channel_shuffle: {groups: 4}\n"
    "- slice: {first: 1, size: 6}\n"
    "- token: {at: 3}\n"
    "- dense: {out: classes}\n";

static struct graph *patches_of(int64_t batch)
{
    const struct network_input input = {
        .batch = batch, .channels = 3, .height = 11, .width = 9, .classes = 5};
    struct network *network = NULL;
    struct graph *graph = NULL;
    ck_ms_ok(network_parse(of_patches, strlen(of_patches), "net.yaml", "patches", &network, err));
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    return graph;
}

/* A layer three times, biases among what they share; the last one has the embedding's weight. */
static const char of_shared[] =
    "- embedding: {name: w, words: classes, size: 24, weight: {normal: 0.5}}\n"
    "- dense: {name: t, out: 24}\n"
    "- tanh\n"
    "- residual: {body: [layer_norm: {over: channels},\n"
    "    dense: {out: 24, parameters: {weight: t.weight, bias: t.bias}}]}\n"
    "- dense: {out: 24, parameters: {weight: t.weight, bias: t.bias}}\n"
    "- dense: {out: classes, bias: none, parameters: {weight: w.weight}}\n";

enum of { OF_SAMPLES, OF_TOKENS, OF_SHARED };

static struct graph *network_of(enum of of, int64_t batch)
{
    static const char *const texts[] = {of_samples, of_tokens, of_shared};
    const struct network_input input = {.batch = batch,
                                        .channels = 70,
                                        .height = 1,
                                        .width = 1,
                                        .classes = 5,
                                        .label_smoothing = 0.1,
                                        .tokens = of != OF_SAMPLES ? 70 : 0};
    struct network *network = NULL;
    struct graph *graph = NULL;
    const char *text = texts[of];
    ck_ms_ok(network_parse(text, strlen(text), "net.yaml", "sequences", &network, err));
    ck_ms_ok(network_build(network, &input, NETWORK_LOSS_SOFTMAX_CE, &graph, err));
    network_destroy(network);
    return graph;
}

START_TEST(networks_give_the_gradients_of_the_oracle)
{
    const char *isa = oracle_isas[_i % ORACLE_N_ISAS];
    const enum of of = _i / ORACLE_N_ISAS;
    if (!oracle_has_isa(isa)) {
        return;
    }
    for (int threads = 1; threads <= 2; threads++) {
        struct case_options options = {.training = 1, .threads = threads, .isa = isa};
        struct plan_case c;
        case_init(&c, network_of(of, 4), &options);
        oracle_check_step(&c);
        case_fini(&c);
    }
    oracle_check_evaluation(network_of(of, 3));
}
END_TEST

START_TEST(patches_of_images_give_the_gradients_of_the_oracle)
{
    if (!oracle_has_isa(oracle_isas[_i])) {
        return;
    }
    struct case_options options = {.training = 1, .threads = 2, .isa = oracle_isas[_i]};
    struct plan_case c;
    case_init(&c, patches_of(4), &options);
    oracle_check_step(&c);
    case_fini(&c);
    oracle_check_evaluation(patches_of(3));
    oracle_check_read_plan((struct job[]){job_of_graphs(patches_of(4), patches_of(5), 1),
                                          job_of_graphs(patches_of(4), patches_of(5), 1)});
}
END_TEST

/* Of a batch in which fewer samples count, the tokens of those. */
START_TEST(evaluation_counts_tokens)
{
    struct case_options options = {.threads = 1};
    struct plan_case c;
    struct plan_evaluated whole, one[3];
    case_init(&c, network_of(OF_TOKENS, 3), &options);
    case_init_values(&c, 5);
    int64_t correct = 0;
    double loss = 0;
    ck_ms_ok(plan_evaluate(c.plan, c.data, c.classes, 3, &whole, err));
    const int64_t whole_correct = whole.correct;
    for (int i = 0; i < 3; i++) {
        ck_ms_ok(plan_evaluate(c.plan, c.data, c.classes, 1, &one[i], err));
        ck_assert_int_eq(one[i].columns, 5);
        correct += one[i].correct;
        loss += one[i].loss_sum;
        memmove(c.data, c.data + 70, 140 * sizeof(float));
        memmove(c.classes, c.classes + 70, 140 * sizeof(int32_t));
    }
    ck_assert_int_eq(correct, whole_correct);
    ck_assert_int_gt(correct, 3); /* tokens, then: there are three samples */
    ck_assert_double_eq_tol(loss, whole.loss_sum, 1e-5);
    case_fini(&c);
}
END_TEST

START_TEST(a_token_that_is_no_word_ends_the_step)
{
    struct case_options options = {.training = 1, .threads = 1};
    struct plan_case c;
    float loss = 0;
    case_init(&c, network_of(OF_SAMPLES, 2), &options);
    c.data[99] = 11;
    ck_ms_fails(plan_train_step(c.plan, c.data, c.classes, NULL, NULL, &loss, err), MS_E_INVALID,
                "the batch has a token 11, and the embedding 11 words: tokens are whole numbers "
                "from 0 to 10");
    case_fini(&c);
}
END_TEST

/* ---- plans --------------------------------------------------------------------------------------
 */

static struct job sequences_job(int world)
{
    return job_of_graphs(network_of(OF_TOKENS, 4), network_of(OF_TOKENS, 5), world);
}

static struct job shared_job(void)
{
    return job_of_graphs(network_of(OF_SHARED, 4), network_of(OF_SHARED, 5), 1);
}

START_TEST(a_plan_with_sequences_is_made_of_what_was_read)
{
    oracle_check_read_plan((struct job[]){sequences_job(1), sequences_job(1)});
    oracle_check_read_plan((struct job[]){shared_job(), shared_job()});
}
END_TEST

START_TEST(a_plan_is_what_it_was)
{
    if (golden_plan_begin()) {
        struct job job = sequences_job(8);
        ck_golden_plan(job.spec, "sequences");
        job_fini(&job);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sequence");
    TCase *tc = tcase_create("sequences");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, numbers_are_those_of_torch, 0, 2);
    tcase_add_loop_test(tc, products_may_be_anybodys, 0, 2 * N_SIZES);
    tcase_add_test(tc, a_product_that_is_not_to_be_had_is_said);
    tcase_add_test(tc, a_token_is_a_whole_number_of_a_word);
    tcase_add_test(tc, gradients_of_words_are_sums_over_tokens);
    tcase_add_test(tc, sequences_that_cannot_be_are_refused);
    tcase_add_test(tc, attention_is_described);
    tcase_add_loop_test(tc, networks_give_the_gradients_of_the_oracle, 0, 3 * ORACLE_N_ISAS);
    tcase_add_loop_test(tc, patches_of_images_give_the_gradients_of_the_oracle, 0, ORACLE_N_ISAS);
    tcase_add_test(tc, evaluation_counts_tokens);
    tcase_add_test(tc, a_token_that_is_no_word_ends_the_step);
    tcase_add_test(tc, a_plan_with_sequences_is_made_of_what_was_read);
    tcase_add_test(tc, a_plan_is_what_it_was);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
