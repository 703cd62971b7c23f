/* test_graph_cost.c - what ops cost, against loops that count */
#include "libworker/graph/cost.h"
#include "libworker/graph/op.h"
#include "proto/rng.h"
#include "tests/test.h"

static const struct init normal = {INIT_NORMAL, 1};

static int64_t draw(uint64_t i, int64_t least, int64_t most)
{
    return least + (int64_t)(ms_rng_unit(20, i) * (double)(most - least + 1));
}

static struct shape shape_of(int n_dims, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){n_dims, {a, b, c, d}};
}

static struct graph *with_data(const struct shape *shape, int *ret_x)
{
    struct graph *g = graph_create("g");
    ck_assert_ptr_nonnull(g);
    ck_ms_ok(*ret_x = graph_data(g, "data", shape, err));
    return g;
}

/* Of all ops of a kind. */
static double products_of(const struct graph *g, enum op_kind kind)
{
    double sum = 0;
    for (int i = 0; i < graph_n_ops(g); i++) {
        const struct op *op = graph_op(g, i);
        sum += op->kind == kind ? op_row(kind)->products(g, op) : 0;
    }
    return sum;
}

static void finish(struct graph *g, int y)
{
    const struct shape *shape = &graph_tensor(g, y)->shape;
    int label = -1;
    int loss = -1;
    ck_ms_ok(y = shape->n_dims == 2 ? y : graph_flatten(g, y, err));
    ck_ms_ok(label = graph_label(g, "label", &graph_tensor(g, y)->shape, MS_F32, err));
    ck_ms_ok(loss = graph_mse(g, y, label, err));
    ck_ms_ok(graph_set_loss(g, loss, err));
    ck_ms_ok(graph_differentiate(g, err));
}

/* A product for each output element, each input channel and each place of the window, whether an
 * image or its padding is there. */
START_TEST(a_convolution_sums_a_window_of_all_channels_for_each_element)
{
    const uint64_t at = (uint64_t)_i * 16;
    const int64_t n = draw(at, 1, 4);
    const int64_t c = draw(at + 1, 1, 5);
    const int64_t h = draw(at + 2, 5, 12);
    const int64_t w = draw(at + 3, 5, 12);
    const int64_t out = draw(at + 4, 1, 7);
    const int64_t kernel = draw(at + 5, 1, 5);
    const int64_t stride = draw(at + 6, 1, 3);
    const struct shape images = shape_of(4, n, c, h, w);
    const struct shape weights[] = {shape_of(4, c, c, 1, 1), shape_of(4, out, c, kernel, kernel)};
    const struct op_window one = graph_window_valid(1, 1);
    int x = 0;
    int first = 0;
    int second = 0;
    struct graph *g = with_data(&images, &x);
    const struct op_window window = graph_window_same(g, x, kernel, stride);
    ck_ms_ok(first = graph_param(g, "a.weight", &weights[0], normal, err));
    ck_ms_ok(second = graph_param(g, "b.weight", &weights[1], normal, err));
    ck_ms_ok(x = graph_conv2d(g, x, first, &one, err)); /* so that the other has a dx */
    ck_ms_ok(x = graph_conv2d(g, x, second, &window, err));
    finish(g, x);

    double want = 0;
    for (int64_t top = 0; top < h; top += stride) {
        for (int64_t left = 0; left < w; left += stride) {
            for (int64_t place = 0; place < kernel * kernel; place++) {
                want += (double)(n * out * c);
            }
        }
    }
    const double of_first = (double)(n * h * w * c * c);

    ck_assert_double_eq(products_of(g, OP_CONV2D), want + of_first);
    ck_assert_double_eq(products_of(g, OP_CONV2D_BWD_DATA), want);
    ck_assert_double_eq(products_of(g, OP_CONV2D_BWD_WEIGHTS), want + of_first);
    graph_destroy(g);
}
END_TEST

START_TEST(a_dense_layer_sums_a_row_for_each_value)
{
    const uint64_t at = 1000 + (uint64_t)_i * 16;
    const int64_t n = draw(at, 1, 6);
    const int64_t in = draw(at + 1, 1, 40);
    const int64_t out = draw(at + 2, 1, 40);
    const struct shape rows = shape_of(2, n, in, 0, 0);
    const struct shape weight = shape_of(2, out, in, 0, 0);
    const struct shape bias = shape_of(1, out, 0, 0, 0);
    int x = 0;
    int w = 0;
    int b = 0;
    struct graph *g = with_data(&rows, &x);
    ck_ms_ok(w = graph_param(g, "fc.weight", &weight, normal, err));
    ck_ms_ok(b = graph_param(g, "fc.bias", &bias, normal, err));
    ck_ms_ok(x = graph_dense(g, x, w, b, err));
    struct graph_cost cost;
    graph_cost(g, 0, 1, &cost);
    finish(g, x);

    double want = 0;
    for (int64_t i = 0; i < n * out; i++) {
        want += (double)in;
    }

    ck_assert_double_eq(cost.products, want);
    ck_assert_double_eq(products_of(g, OP_DENSE_BWD_WEIGHTS), want);
    ck_assert_int_eq(cost.parameters, out * in + out);
    ck_assert_int_eq(cost.states, 0);
    ck_assert_int_eq(cost.values, n * out);
    graph_destroy(g);
}
END_TEST

/* (2, 3, 4, 4) -> batch norm -> ReLU -> a row. */
static struct graph *normalised(void)
{
    static const char *const parts[] = {"gamma", "beta", "mean", "variance"};
    const struct shape images = shape_of(4, 2, 3, 4, 4);
    const struct shape channels = shape_of(1, 3, 0, 0, 0);
    int x = 0;
    int of[4];
    struct graph *g = with_data(&images, &x);
    for (int i = 0; i < 4; i++) {
        ck_ms_ok(of[i] = i < 2 ? graph_param(g, parts[i], &channels, normal, err)
                               : graph_state(g, parts[i], &channels, normal, 0.9, err));
    }
    ck_ms_ok(x = graph_batch_norm(g, x, of[0], of[1], of[2], of[3], 1e-5, err));
    ck_ms_ok(x = graph_relu(g, x, err));
    ck_ms_ok(graph_flatten(g, x, err));
    return g;
}

START_TEST(statistics_are_no_parameters_and_no_values)
{
    struct graph *g = normalised();
    struct graph_cost cost;

    graph_cost(g, 0, 1, &cost);

    ck_assert_int_eq(cost.parameters, 6);
    ck_assert_int_eq(cost.states, 6);
    ck_assert_int_eq(cost.values, 2 * 3 * 4 * 4); /* not the batch's mean and variance */
    ck_assert_double_eq(cost.products, 0);
    graph_destroy(g);
}
END_TEST

START_TEST(a_view_makes_no_values)
{
    struct graph *g = normalised();
    struct graph_cost cost;

    graph_cost(g, 2, 1, &cost);

    ck_assert_int_eq(graph_op(g, 2)->kind, OP_FLATTEN);
    ck_assert_int_eq(cost.values, 0);
    graph_destroy(g);
}
END_TEST

START_TEST(costs_of_parts_add_up)
{
    struct graph *g = normalised();
    struct graph_cost whole;
    graph_cost(g, 0, 3, &whole);
    for (int cut = 0; cut <= 3; cut++) {
        struct graph_cost head;
        struct graph_cost tail;
        graph_cost(g, 0, cut, &head);
        graph_cost(g, cut, 3 - cut, &tail);
        ck_assert_int_eq(head.parameters + tail.parameters, whole.parameters);
        ck_assert_int_eq(head.states + tail.states, whole.states);
        ck_assert_int_eq(head.values + tail.values, whole.values);
    }
    ck_assert_int_eq(whole.values, 2 * 2 * 3 * 4 * 4);
    graph_destroy(g);
}
END_TEST

/* More than an int64_t holds: no trap, no wrap. */
START_TEST(products_may_be_more_than_any_whole_number)
{
    const int64_t side = (int64_t)1 << 14;
    const struct shape images = shape_of(4, 1, 1 << 10, side, side);
    const struct shape weight = shape_of(4, 1, 1 << 10, side / 2, side / 2);
    struct op_window window = graph_window_valid(side / 2, 1);
    window.pad_top = window.pad_bottom = window.pad_left = window.pad_right = side / 4;
    int x = 0;
    int w = 0;
    struct graph *g = with_data(&images, &x);
    ck_ms_ok(w = graph_param(g, "weight", &weight, normal, err));
    ck_ms_ok(graph_conv2d(g, x, w, &window, err));
    struct graph_cost cost;

    graph_cost(g, 0, 1, &cost);

    const double want = 16385.0 * 16385 * 1024 * 8192 * 8192;
    ck_assert_double_eq_tol(cost.products, want, 1e-15 * want);
    ck_assert_double_gt(cost.products, 9.3e18);
    graph_destroy(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_cost");
    TCase *tc = tcase_create("cost");
    tcase_add_loop_test(tc, a_convolution_sums_a_window_of_all_channels_for_each_element, 0, 20);
    tcase_add_loop_test(tc, a_dense_layer_sums_a_row_for_each_value, 0, 20);
    tcase_add_test(tc, statistics_are_no_parameters_and_no_values);
    tcase_add_test(tc, a_view_makes_no_values);
    tcase_add_test(tc, costs_of_parts_add_up);
    tcase_add_test(tc, products_may_be_more_than_any_whole_number);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
