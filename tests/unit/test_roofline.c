/* test_roofline.c - seconds of ops against what they compute and move, counted by hand */
#include "libworker/graph/op.h"
#include "libworker/graph/roofline.h"
#include "tests/test.h"

#include <math.h>

enum { N = 2, C = 3, SIDE = 4, VALUES = N * C * SIDE * SIDE };

static const struct init normal = {INIT_NORMAL, 1};
/* Of which one takes no time. */
static const struct roofline of_memory = {INFINITY, 4}; /* a value a second */
static const struct roofline of_products = {1, INFINITY};

static struct graph *with_images(int *ret_x)
{
    const struct shape images = {4, {N, C, SIDE, SIDE}};
    struct graph *g = graph_create("g");
    ck_assert_ptr_nonnull(g);
    ck_ms_ok(*ret_x = graph_data(g, "data", &images, err));
    return g;
}

static int param(struct graph *g, const char *name, struct shape shape)
{
    int index = -1;
    ck_ms_ok(index = graph_param(g, name, &shape, normal, err));
    return index;
}

/* Of one pixel, so that the shape stays: C x C. */
static int conv(struct graph *g, int x, const char *name)
{
    const struct op_window one = graph_window_valid(1, 1);
    int y = -1;
    ck_ms_ok(y = graph_conv2d(g, x, param(g, name, (struct shape){4, {C, C, 1, 1}}), &one, err));
    return y;
}

static int norm(struct graph *g, int x)
{
    const struct shape channels = {1, {C}};
    const int gamma = param(g, "gamma", channels);
    const int beta = param(g, "beta", channels);
    int of[2];
    ck_ms_ok(of[0] = graph_state(g, "mean", &channels, normal, 0.9, err));
    ck_ms_ok(of[1] = graph_state(g, "variance", &channels, normal, 0.9, err));
    ck_ms_ok(x = graph_batch_norm(g, x, gamma, beta, of[0], of[1], 1e-5, err));
    return x;
}

/* Flattens, and compares: the last two ops. */
static void finish(struct graph *g, int y)
{
    int label = -1;
    int loss = -1;
    ck_ms_ok(y = graph_flatten(g, y, err));
    ck_ms_ok(label = graph_label(g, "label", &graph_tensor(g, y)->shape, MS_F32, err));
    ck_ms_ok(loss = graph_mse(g, y, label, err));
    ck_ms_ok(graph_set_loss(g, loss, err));
    ck_ms_ok(graph_differentiate(g, err));
}

/* Borrowed until the next call. */
static const double *seconds_of(const struct graph *g, const struct roofline *rates)
{
    static double seconds[16];
    ck_assert_int_le(graph_n_forward_ops(g), (int)MS_ARRAY_SIZE(seconds));
    ck_ms_ok(graph_roofline(g, rates, seconds, err));
    return seconds;
}

START_TEST(arithmetic_is_that_of_forward_and_of_both_gradients)
{
    int x = 0;
    struct graph *g = with_images(&x);
    finish(g, conv(g, conv(g, x, "a"), "b"));

    const double *seconds = seconds_of(g, &of_products);

    ck_assert_double_eq(seconds[0], 2.0 * VALUES * C); /* nobody wants the gradient of the data */
    ck_assert_double_eq(seconds[1], 3.0 * VALUES * C);
    ck_assert_double_eq(seconds[2], 0);
    graph_destroy(g);
}
END_TEST

START_TEST(memory_is_what_each_pass_reads_and_makes)
{
    int x = 0;
    struct graph *g = with_images(&x);
    finish(g, conv(g, conv(g, x, "a"), "b"));

    const double *seconds = seconds_of(g, &of_memory);

    ck_assert_double_eq(seconds[0], 2 * (2.0 * VALUES + C * C)); /* x, w, y; x, dy, dw */
    ck_assert_double_eq(seconds[1], 3 * (2.0 * VALUES + C * C));
    ck_assert_double_eq(seconds[2], 0);                /* a view, there and back */
    ck_assert_double_eq(seconds[3], 2.0 * VALUES + 1); /* y, target, loss; its gradient inside */
    graph_destroy(g);
}
END_TEST

/* Of each op apart: one that computes does so while others wait for memory. */
START_TEST(an_op_takes_what_is_longer)
{
    int x = 0;
    struct graph *g = with_images(&x);
    finish(g, conv(g, conv(g, x, "a"), "b"));
    const struct roofline slow_to_compute = {1e-3, 4};
    const struct roofline slow_to_move = {1e3, 4};

    ck_assert_double_eq_tol(seconds_of(g, &slow_to_compute)[1], 3e3 * VALUES * C, 1e-6);
    ck_assert_double_eq_tol(seconds_of(g, &slow_to_move)[1], 3 * (2.0 * VALUES + C * C), 1e-6);
    graph_destroy(g);
}
END_TEST

START_TEST(a_relu_behind_a_convolution_has_its_gradient_alone)
{
    int x = 0;
    struct graph *g = with_images(&x);
    ck_ms_ok(x = graph_relu(g, conv(g, x, "a"), err));
    finish(g, conv(g, x, "b"));

    ck_assert_double_eq(seconds_of(g, &of_memory)[1], 3.0 * VALUES); /* y, dy, dx */
    graph_destroy(g);
}
END_TEST

START_TEST(a_relu_behind_a_batch_norm_has_nothing)
{
    int x = 0;
    struct graph *g = with_images(&x);
    ck_ms_ok(x = graph_relu(g, norm(g, conv(g, x, "a")), err));
    finish(g, conv(g, x, "b"));

    const double *seconds = seconds_of(g, &of_memory);

    /* x twice and y; x and dy twice and dx; of channels four vectors read and two made, each time
     */
    ck_assert_double_eq(seconds[1], 8.0 * VALUES + 12 * C);
    ck_assert_double_eq(seconds[2], 0);
    graph_destroy(g);
}
END_TEST

START_TEST(a_relu_behind_a_pool_runs_by_itself)
{
    int x = 0;
    struct graph *g = with_images(&x);
    const struct op_window one = graph_window_valid(1, 1);
    ck_ms_ok(x = graph_max_pool(g, conv(g, x, "a"), &one, err));
    ck_ms_ok(x = graph_relu(g, x, err));
    finish(g, conv(g, x, "b"));

    ck_assert_double_eq(seconds_of(g, &of_memory)[2], (2.0 + 3.0) * VALUES);
    graph_destroy(g);
}
END_TEST

/* Who else reads what is before the relu wants it to be there. */
START_TEST(a_relu_whose_input_others_read_runs_by_itself)
{
    int x = 0;
    int y = 0;
    struct graph *g = with_images(&x);
    x = conv(g, x, "a");
    ck_ms_ok(y = graph_relu(g, x, err));
    ck_ms_ok(x = graph_add(g, x, y, err));
    finish(g, x);

    const double *seconds = seconds_of(g, &of_memory);

    ck_assert_double_gt(seconds[1], (2.0 + 3.0) * VALUES - 1);
    graph_destroy(g);
}
END_TEST

/* conv a -> conv b -> batch norm -> + what a made -> relu. The sum of a's two gradients is b's. */
START_TEST(an_addition_behind_a_batch_norm_reads_the_other_summand)
{
    int x = 0;
    int y = 0;
    struct graph *g = with_images(&x);
    x = conv(g, x, "a");
    y = norm(g, conv(g, x, "b"));
    ck_ms_ok(y = graph_add(g, y, x, err));
    ck_ms_ok(y = graph_relu(g, y, err));
    finish(g, conv(g, y, "c"));

    const double *seconds = seconds_of(g, &of_memory);

    ck_assert_double_eq(seconds[1], 3 * (2.0 * VALUES + C * C) + 3.0 * VALUES);
    ck_assert_double_eq(seconds[3], VALUES); /* its gradients are the sum's */
    ck_assert_double_eq(seconds[4], 0);
    graph_destroy(g);
}
END_TEST

/* Whatever it is told, it is of all ops together: none is counted twice, or lost. */
START_TEST(twice_the_rates_are_half_of_the_time)
{
    int x = 0;
    struct graph *g = with_images(&x);
    finish(g, norm(g, conv(g, x, "a")));
    const struct roofline once = {5, 7};
    const struct roofline twice = {10, 14};
    double sums[2] = {0};
    for (int i = 0; i < graph_n_forward_ops(g); i++) {
        sums[0] += seconds_of(g, &once)[i];
        sums[1] += seconds_of(g, &twice)[i];
    }
    ck_assert_double_gt(sums[0], 0);
    ck_assert_double_eq_tol(sums[0], 2 * sums[1], 1e-9 * sums[0]);
    graph_destroy(g);
}
END_TEST

/* Of the weight it reads the rows of its tokens, however many words there are. */
START_TEST(an_embedding_does_not_read_all_its_words)
{
    enum { TOKENS = 5, SIZE = 6, WORDS = 1000 };
    const struct shape tokens = {2, {N, TOKENS}};
    struct graph *g = graph_create("g");
    struct op op = {.kind = OP_EMBEDDING};
    int y = -1;
    ck_ms_ok(op.in[0] = graph_data(g, "tokens", &tokens, err));
    op.in[1] = param(g, "words", (struct shape){2, {WORDS, SIZE}});
    ck_ms_ok(y = graph_apply(g, &op, err));
    finish(g, y);

    const double forward = N * TOKENS * (1 + 2 * SIZE);
    const double backward = N * TOKENS * (1 + SIZE) + WORDS * SIZE;
    ck_assert_double_eq(seconds_of(g, &of_memory)[0], forward + backward);
    graph_destroy(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roofline");
    TCase *tc = tcase_create("seconds");
    tcase_add_test(tc, arithmetic_is_that_of_forward_and_of_both_gradients);
    tcase_add_test(tc, memory_is_what_each_pass_reads_and_makes);
    tcase_add_test(tc, an_op_takes_what_is_longer);
    tcase_add_test(tc, a_relu_behind_a_convolution_has_its_gradient_alone);
    tcase_add_test(tc, a_relu_behind_a_batch_norm_has_nothing);
    tcase_add_test(tc, a_relu_behind_a_pool_runs_by_itself);
    tcase_add_test(tc, a_relu_whose_input_others_read_runs_by_itself);
    tcase_add_test(tc, an_addition_behind_a_batch_norm_reads_the_other_summand);
    tcase_add_test(tc, twice_the_rates_are_half_of_the_time);
    tcase_add_test(tc, an_embedding_does_not_read_all_its_words);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
