/* test_graph.c - the builder: shapes, roles, names, and what it refuses */
#include "libworker/graph/graph.h"
#include "tests/test.h"

#include <math.h>

static const struct init zero = {INIT_CONSTANT, 0};
static const struct init one = {INIT_CONSTANT, 1};
static const struct init drawn = {INIT_UNIFORM, 0.5};

static struct graph *g;
static int x, label; /* images (2, 3, 8, 6), labels (2) */

static struct shape shape_of(int n_dims, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct shape){n_dims, {a, b, c, d}};
}

static int param(const char *name, struct shape shape, struct ms_err *err)
{
    return graph_param(g, name, &shape, shape.n_dims >= 2 ? drawn : zero, err);
}

static void setup(void)
{
    struct shape images = shape_of(4, 2, 3, 8, 6);
    struct shape classes = shape_of(1, 2, 0, 0, 0);
    g = graph_create("net");
    ck_assert_ptr_nonnull(g);
    ck_ms_ok(x = graph_data(g, "image", &images, err));
    ck_ms_ok(label = graph_label(g, "label", &classes, MS_I32, err));
}

static void teardown(void)
{
    graph_destroy(g);
}

static void ck_shape(int tensor, const char *want)
{
    char buf[96];
    ck_assert_int_ge(tensor, 0);
    ck_assert_str_eq(shape_format(&graph_tensor(g, tensor)->shape, buf, sizeof(buf)), want);
}

/* A batch norm over `input` with everything it needs. */
static int batch_norm(int input, const char *layer, struct ms_err *err)
{
    char name[128];
    struct shape c = shape_of(1, graph_tensor(g, input)->shape.dim[1], 0, 0, 0);
    int at[4];
    static const char *const parts[] = {"gamma", "beta", "moving_mean", "moving_variance"};
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "%s.%s", layer, parts[i]);
        at[i] = i < 2 ? graph_param(g, name, &c, one, err)
                      : graph_state(g, name, &c, i == 2 ? zero : one, 0.9, err);
    }
    return graph_batch_norm(g, input, at[0], at[1], at[2], at[3], 1e-5, err);
}

START_TEST(shapes_count_compare_and_print)
{
    struct shape a = shape_of(4, 32, 3, 224, 224);
    struct shape b = shape_of(3, 32, 3, 224, 0);
    struct shape scalar = {GRAPH_SCALAR_DIMS, {0}};
    char buf[64];

    ck_assert_int_eq(shape_count(&a), 32 * 3 * 224 * 224);
    ck_assert_int_eq(shape_count(&scalar), 1);
    ck_assert(shape_equal(&a, &a));
    ck_assert(!shape_equal(&a, &b));
    ck_assert_str_eq(shape_format(&a, buf, sizeof(buf)), "(32, 3, 224, 224)");
    ck_assert_str_eq(shape_format(&scalar, buf, sizeof(buf)), "()");
    ck_assert_str_eq(shape_format(&a, buf, 8), "(32, 3,");
}
END_TEST

START_TEST(a_convolution_infers_its_shape)
{
    struct op_window same = graph_window_same(g, x, 3, 2);
    struct op_window valid = graph_window_valid(3, 1);
    int y = -1;
    int z = -1;

    ck_ms_ok(y = graph_conv2d(g, x, param("a.weight", shape_of(4, 5, 3, 3, 3), err), &same, err));
    ck_ms_ok(z = graph_conv2d(g, x, param("b.weight", shape_of(4, 4, 3, 3, 3), err), &valid, err));

    ck_shape(y, "(2, 5, 4, 3)");
    ck_shape(z, "(2, 4, 6, 4)");
    ck_assert_str_eq(graph_tensor(g, y)->name, "a");
    ck_assert_int_eq(graph_op(g, graph_tensor(g, y)->producer)->kind, OP_CONV2D);
}
END_TEST

/* The cases of the samples: 7x7/2 on 224 pads 2 and 3, the pool 3x3/2 on 112 pads 0 and 1. */
START_TEST(same_padding_puts_the_odd_pixel_right_and_bottom)
{
    static const struct {
        int64_t size, kernel, stride, before, after, out;
    } cases[] = {
        {224, 7, 2, 2, 3, 112}, {112, 3, 2, 0, 1, 56}, {56, 3, 1, 1, 1, 56},
        {56, 1, 2, 0, 0, 28},   {7, 3, 2, 1, 1, 4},    {5, 2, 2, 0, 1, 3},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        struct graph *other = graph_create("other");
        struct shape images = shape_of(4, 1, 1, cases[i].size, cases[i].size);
        int image = graph_data(other, "image", &images, NULL);

        struct op_window w = graph_window_same(other, image, cases[i].kernel, cases[i].stride);
        int y = graph_max_pool(other, image, &w, NULL);

        ck_assert_int_eq(w.pad_top, cases[i].before);
        ck_assert_int_eq(w.pad_left, cases[i].before);
        ck_assert_int_eq(w.pad_bottom, cases[i].after);
        ck_assert_int_eq(w.pad_right, cases[i].after);
        ck_assert_int_eq(graph_tensor(other, y)->shape.dim[2], cases[i].out);
        graph_destroy(other);
    }
}
END_TEST

START_TEST(batch_norm_makes_statistics_that_know_their_states)
{
    int y = -1;
    ck_ms_ok(y = batch_norm(x, "head.bn1", err));

    const struct op *op = graph_op(g, graph_tensor(g, y)->producer);
    const struct tensor *mean = graph_tensor(g, op->out[1]);
    const struct tensor *variance = graph_tensor(g, op->out[2]);
    ck_shape(y, "(2, 3, 8, 6)");
    ck_shape(op->out[1], "(3)");
    ck_assert_int_eq(mean->role, TENSOR_STAT);
    ck_assert_int_eq(variance->role, TENSOR_STAT);
    ck_assert_int_eq(mean->is_variance, 0);
    ck_assert_int_eq(variance->is_variance, 1);
    ck_assert_int_eq(mean->of, graph_find(g, "head.bn1.moving_mean"));
    ck_assert_int_eq(variance->of, graph_find(g, "head.bn1.moving_variance"));
    ck_assert_int_eq(mean->stat_count, 2 * 8 * 6);
    ck_assert_double_eq(op->epsilon, 1e-5);
    ck_assert_double_eq(graph_tensor(g, mean->of)->momentum, 0.9);
    ck_assert_str_eq(mean->name, "head.bn1.batch_mean");
}
END_TEST

START_TEST(the_rest_of_the_ops_infer_their_shapes)
{
    struct op_window whole = {.kernel_h = 8, .kernel_w = 6, .stride_h = 1, .stride_w = 1};
    int relu = -1, sum = -1, mean = -1, flat = -1, dense = -1, loss = -1;

    ck_ms_ok(relu = graph_relu(g, x, err));
    ck_ms_ok(sum = graph_add(g, relu, x, err));
    ck_ms_ok(mean = graph_avg_pool(g, sum, &whole, err));
    ck_ms_ok(flat = graph_flatten(g, mean, err));
    ck_ms_ok(dense = graph_dense(g, flat, param("fc.weight", shape_of(2, 10, 3, 0, 0), err),
                                 param("fc.bias", shape_of(1, 10, 0, 0, 0), err), err));
    ck_ms_ok(loss = graph_softmax_ce(g, dense, label, err));

    ck_shape(relu, "(2, 3, 8, 6)");
    ck_shape(sum, "(2, 3, 8, 6)");
    ck_shape(mean, "(2, 3, 1, 1)");
    ck_shape(flat, "(2, 3)");
    ck_shape(dense, "(2, 10)");
    ck_shape(loss, "()");
    ck_assert_str_eq(graph_tensor(g, dense)->name, "fc");
}
END_TEST

START_TEST(lists_and_lookups_follow_definition_order)
{
    ck_ms_ok(param("b.weight", shape_of(2, 4, 4, 0, 0), err));
    ck_ms_ok(batch_norm(x, "a", err));

    ck_assert_int_eq(graph_n_params(g), 3);
    ck_assert_int_eq(graph_n_states(g), 2);
    ck_assert_str_eq(graph_tensor(g, graph_param_at(g, 0))->name, "b.weight");
    ck_assert_str_eq(graph_tensor(g, graph_param_at(g, 1))->name, "a.gamma");
    ck_assert_str_eq(graph_tensor(g, graph_param_at(g, 2))->name, "a.beta");
    ck_assert_str_eq(graph_tensor(g, graph_state_at(g, 1))->name, "a.moving_variance");
    ck_assert_int_eq(graph_n_stored(g), graph_n_params(g) + graph_n_states(g));
    ck_assert_int_eq(graph_stored_at(g, 0), graph_param_at(g, 0));
    ck_assert_int_eq(graph_stored_at(g, graph_n_stored(g) - 1),
                     graph_state_at(g, graph_n_states(g) - 1));
    ck_assert_int_eq(graph_find(g, "a.gamma"), graph_param_at(g, 1));
    ck_assert_int_eq(graph_find(g, "a"), -1);
    ck_assert_int_eq(graph_find(g, "image"), -1);
    ck_assert_int_eq(graph_data_index(g), x);
    ck_assert_int_eq(graph_label_index(g), label);
}
END_TEST

START_TEST(a_borrowed_tensor_stays_where_it_is)
{
    const struct tensor *first = graph_tensor(g, x);
    int y = x;
    for (int i = 0; i < 1000; i++) {
        y = graph_relu(g, y, NULL);
    }

    ck_assert_ptr_eq(first, graph_tensor(g, x));
    ck_assert_int_eq(graph_n_ops(g), 1000);
    ck_assert_int_eq(graph_n_forward_ops(g), 1000);
}
END_TEST

START_TEST(an_error_passes_through_a_chain_with_its_first_text)
{
    struct ms_err err = {0, ""};
    struct op_window window = graph_window_valid(9, 1);

    int pooled = graph_max_pool(g, x, &window, &err);
    int rc = graph_set_loss(
        g, graph_softmax_ce(g, graph_flatten(g, graph_relu(g, pooled, &err), &err), label, &err),
        &err);

    ck_assert_int_eq(rc, MS_E_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "max_pool"));
    ck_assert_int_eq(graph_n_ops(g), 0);
}
END_TEST

START_TEST(convolution_errors_name_op_tensors_and_shapes)
{
    struct op_window w3 = graph_window_valid(3, 1);
    struct op_window w5 = graph_window_valid(5, 1);
    struct op_window stride0 = graph_window_valid(3, 0);
    struct op_window padded = w3;
    int channels = param("a.weight", shape_of(4, 5, 4, 3, 3), NULL);
    int good = param("b.weight", shape_of(4, 5, 3, 3, 3), NULL);
    int flat = param("c.weight", shape_of(2, 5, 3, 0, 0), NULL);
    padded.pad_left = 3;

    ck_ms_fails(graph_conv2d(g, x, channels, &w3, err), MS_E_INVALID,
                "graph net: conv2d: the images have 3 channels and the weight reads 4; inputs: "
                "image (2, 3, 8, 6), a.weight (5, 4, 3, 3)");
    ck_ms_fails(graph_conv2d(g, x, good, &w5, err), MS_E_INVALID, "window is 5x5");
    ck_ms_fails(graph_conv2d(g, x, good, &stride0, err), MS_E_INVALID, "stride");
    ck_ms_fails(graph_conv2d(g, x, good, &padded, err), MS_E_INVALID, "less than the kernel");
    ck_ms_fails(graph_conv2d(g, x, flat, &w3, err), MS_E_INVALID, "(out, in, kh, kw)");
    ck_ms_fails(graph_conv2d(g, x, label, &w3, err), MS_E_INVALID, "label) must be a parameter");
    ck_ms_fails(graph_conv2d(g, good, good, &w3, err), MS_E_INVALID, "must be the data");
    ck_ms_fails(graph_conv2d(g, 99, good, &w3, err), MS_E_INVALID, "tensor 99");
    ck_assert_int_eq(graph_n_ops(g), 0);
}
END_TEST

START_TEST(shape_errors_of_the_other_ops)
{
    int w = param("fc.weight", shape_of(2, 10, 4, 0, 0), NULL);
    int w3 = param("fc3.weight", shape_of(2, 10, 144, 0, 0), NULL);
    int b = param("fc.bias", shape_of(1, 9, 0, 0, 0), NULL);
    int flat = graph_flatten(g, x, NULL);
    int c4 = param("c4", shape_of(1, 4, 0, 0, 0), NULL);

    ck_ms_fails(graph_dense(g, flat, w, b, err), MS_E_INVALID, "fc.weight (10, 4)");
    ck_ms_fails(graph_dense(g, x, w3, b, err), MS_E_INVALID, "flatten images first");
    ck_ms_fails(graph_dense(g, flat, w3, b, err), MS_E_INVALID, "bias must be (10)");
    ck_ms_fails(graph_add(g, flat, x, err), MS_E_INVALID, "the shapes differ");
    ck_ms_fails(graph_mse(g, flat, label, err), MS_E_INVALID, "float target");
    ck_ms_fails(graph_softmax_ce(g, x, label, err), MS_E_INVALID, "logits (n, k)");
    ck_ms_fails(graph_batch_norm(g, x, c4, c4, c4, c4, 1e-5, err), MS_E_INVALID,
                "must be a moving state");
    ck_ms_fails(graph_batch_norm(g, flat, 0, 0, 0, 0, 1e-5, err), MS_E_INVALID, "parameter");
    ck_ms_fails(graph_set_loss(g, flat, err), MS_E_INVALID, "is no loss");
    ck_ms_fails(graph_set_output(g, w, err), MS_E_INVALID, "is no output");
}
END_TEST

START_TEST(batch_norm_wants_vectors_of_the_channels_and_a_positive_epsilon)
{
    struct shape c4 = shape_of(1, 4, 0, 0, 0);
    struct shape c3 = shape_of(1, 3, 0, 0, 0);
    int g4 = graph_param(g, "g4", &c4, one, NULL);
    int g3 = graph_param(g, "g3", &c3, one, NULL);
    int m = graph_state(g, "m", &c3, zero, 0.9, NULL);
    int v = graph_state(g, "v", &c3, one, 0.9, NULL);
    int n = graph_n_tensors(g);

    ck_ms_fails(graph_batch_norm(g, x, g4, g3, m, v, 1e-5, err), MS_E_INVALID, "g4 must be (3)");
    ck_ms_fails(graph_batch_norm(g, x, g3, g3, m, v, 0, err), MS_E_INVALID, "epsilon 0");
    ck_ms_fails(graph_batch_norm(g, x, g3, g3, m, v, (double)NAN, err), MS_E_INVALID, "epsilon");
    ck_assert_int_eq(graph_n_tensors(g), n);
}
END_TEST

START_TEST(statistics_and_losses_are_no_inputs)
{
    int y = batch_norm(x, "bn", NULL);
    int stat = graph_op(g, graph_tensor(g, y)->producer)->out[1];

    ck_ms_fails(graph_relu(g, stat, err), MS_E_INVALID, "bn.batch_mean) must be the data");
}
END_TEST

START_TEST(leaves_are_checked)
{
    char long_name[GRAPH_NAME_MAX + 1];
    memset(long_name, 'a', GRAPH_NAME_MAX);
    long_name[GRAPH_NAME_MAX] = '\0';
    struct shape ok = shape_of(1, 4, 0, 0, 0);
    struct shape none = shape_of(1, 0, 0, 0, 0);
    struct shape huge = shape_of(4, 1 << 20, 1 << 20, 1 << 20, 1 << 20);
    struct shape overflow = shape_of(2, INT64_MAX, INT64_MAX, 0, 0);
    const struct init no_init = {INIT_NONE, 0};
    const struct init negative = {INIT_NORMAL, -1};
    const struct init nan = {INIT_CONSTANT, (double)NAN};

    ck_ms_ok(graph_param(g, "w", &ok, one, err));
    ck_ms_fails(graph_param(g, "w", &ok, one, err), MS_E_EXISTS, "two parameters named w");
    ck_ms_fails(graph_state(g, "w", &ok, one, 0.9, err), MS_E_EXISTS, "w");
    ck_ms_fails(graph_param(g, "", &ok, one, err), MS_E_INVALID, "characters");
    ck_ms_fails(graph_param(g, long_name, &ok, one, err), MS_E_INVALID, "63 characters");
    ck_ms_fails(graph_param(g, "v", &none, one, err), MS_E_INVALID, "(0)");
    ck_ms_fails(graph_param(g, "v", &huge, one, err), MS_E_INVALID, "2^40");
    ck_ms_fails(graph_param(g, "v", &overflow, one, err), MS_E_INVALID, "2^40");
    ck_ms_fails(graph_param(g, "v", &ok, no_init, err), MS_E_INVALID, "initialiser");
    ck_ms_fails(graph_param(g, "v", &ok, negative, err), MS_E_INVALID, "negative");
    ck_ms_fails(graph_param(g, "v", &ok, nan, err), MS_E_INVALID, "initialiser");
    ck_ms_fails(graph_state(g, "v", &ok, one, 1.5, err), MS_E_INVALID, "momentum 1.5");
    ck_ms_fails(graph_data(g, "again", &ok, err), MS_E_EXISTS, "image already");
    ck_ms_fails(graph_label(g, "again", &ok, MS_F32, err), MS_E_EXISTS, "label already");
}
END_TEST

START_TEST(describe_prints_one_line_an_op)
{
    struct op_window w = graph_window_same(g, x, 3, 2);
    graph_relu(g, graph_max_pool(g, x, &w, NULL), NULL);

    char *text = graph_describe(g);

    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(strstr(text, "net: 2 ops, 0 parameters"));
    ck_assert_ptr_nonnull(strstr(
        text,
        "0 max_pool: image (2, 3, 8, 6) -> max_pool_0 (2, 3, 4, 3) [3x3 / 2x2, pad 0 0 1 1]"));
    ck_assert_ptr_nonnull(strstr(text, "1 relu: max_pool_0"));
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tc = tcase_create("builder");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, shapes_count_compare_and_print);
    tcase_add_test(tc, a_convolution_infers_its_shape);
    tcase_add_test(tc, same_padding_puts_the_odd_pixel_right_and_bottom);
    tcase_add_test(tc, batch_norm_makes_statistics_that_know_their_states);
    tcase_add_test(tc, the_rest_of_the_ops_infer_their_shapes);
    tcase_add_test(tc, lists_and_lookups_follow_definition_order);
    tcase_add_test(tc, a_borrowed_tensor_stays_where_it_is);
    tcase_add_test(tc, an_error_passes_through_a_chain_with_its_first_text);
    tcase_add_test(tc, convolution_errors_name_op_tensors_and_shapes);
    tcase_add_test(tc, shape_errors_of_the_other_ops);
    tcase_add_test(tc, batch_norm_wants_vectors_of_the_channels_and_a_positive_epsilon);
    tcase_add_test(tc, statistics_and_losses_are_no_inputs);
    tcase_add_test(tc, leaves_are_checked);
    tcase_add_test(tc, describe_prints_one_line_an_op);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
