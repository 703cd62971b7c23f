/* test_autodiff.c - backward ops: their order, their sharing, and their numbers
 *
 * Numbers are checked by central differences of the loss in double: with a step of 1e-5 the error
 * of the difference is about 1e-9, so a wrong factor anywhere shows. */
#include "libworker/graph/op.h"
#include "libworker/network/network.h"
#include "tests/unit/gradients.h"

static const struct init zero = {INIT_CONSTANT, 0};
static const struct init one = {INIT_CONSTANT, 1};
static const struct init normal = {INIT_NORMAL, 0.5};

static struct graph *g;
static int x, label; /* images (3, 2, 6, 6), labels (3) */

static void setup(void)
{
    struct shape images = {4, {3, 2, 6, 6}};
    struct shape classes = {1, {3}};
    g = graph_create("net");
    x = graph_data(g, "image", &images, NULL);
    label = graph_label(g, "label", &classes, MS_I32, NULL);
}

static void teardown(void)
{
    graph_destroy(g);
}

static int64_t dim(int tensor, int i)
{
    return graph_tensor(g, tensor)->shape.dim[i];
}

static int param(const char *name, int n_dims, int64_t a, int64_t b, int64_t kernel)
{
    struct shape shape = {n_dims, {a, b, kernel, kernel}};
    return graph_param(g, name, &shape, normal, NULL);
}

static int conv(int in, const char *name, int64_t out_c, int64_t kernel, int64_t stride)
{
    struct op_window w = graph_window_same(g, in, kernel, stride);
    return graph_conv2d(g, in, param(name, 4, out_c, dim(in, 1), kernel), &w, NULL);
}

static int norm(int in, const char *layer)
{
    char name[64];
    struct shape c = {1, {dim(in, 1)}};
    snprintf(name, sizeof(name), "%s.gamma", layer);
    int gamma = graph_param(g, name, &c, normal, NULL);
    snprintf(name, sizeof(name), "%s.beta", layer);
    int beta = graph_param(g, name, &c, normal, NULL);
    snprintf(name, sizeof(name), "%s.mean", layer);
    int mean = graph_state(g, name, &c, zero, 0.9, NULL);
    snprintf(name, sizeof(name), "%s.variance", layer);
    int variance = graph_state(g, name, &c, one, 0.9, NULL);
    return graph_batch_norm(g, in, gamma, beta, mean, variance, 1e-5, NULL);
}

static int dense(int in, const char *w, const char *b, int64_t out)
{
    return graph_dense(g, in, param(w, 2, out, dim(in, 1), 0), param(b, 1, out, 0, 0), NULL);
}

static void finish(int logits)
{
    ck_ms_ok(graph_set_loss(g, graph_softmax_ce(g, logits, label, err), err));
    ck_ms_ok(graph_differentiate(g, err));
}

static int count_ops(enum op_kind kind)
{
    int n = 0;
    for (int i = 0; i < graph_n_ops(g); i++) {
        n += graph_op(g, i)->kind == kind;
    }
    return n;
}

static void finish_and_check(int logits)
{
    ck_ms_ok(graph_set_output(g, logits, err));
    finish(logits);
    ck_gradients(g, 40);
}

START_TEST(gradients_of_dense_and_flatten_are_right)
{
    int h = dense(graph_flatten(g, x, NULL), "fc1.w", "fc1.b", 7);
    finish_and_check(dense(graph_relu(g, h, NULL), "fc2.w", "fc2.b", 4));
}
END_TEST

START_TEST(gradients_of_strided_and_padded_convolutions_are_right)
{
    int h = conv(x, "c1.w", 3, 3, 2);
    h = conv(h, "c2.w", 4, 2, 1);
    h = conv(h, "c3.w", 3, 1, 2);
    finish_and_check(graph_flatten(g, h, NULL));
}
END_TEST

START_TEST(gradients_of_batch_norm_are_right)
{
    int h = norm(conv(x, "c1.w", 3, 3, 1), "bn1");
    h = norm(conv(graph_relu(g, h, NULL), "c2.w", 2, 3, 3), "bn2");
    finish_and_check(graph_flatten(g, h, NULL));
}
END_TEST

START_TEST(gradients_of_pools_with_overlap_and_padding_are_right)
{
    int h = conv(x, "c1.w", 3, 3, 1);
    struct op_window max = graph_window_same(g, h, 3, 2);
    h = conv(graph_max_pool(g, h, &max, NULL), "c2.w", 3, 1, 1);
    struct op_window mean = graph_window_same(g, h, 2, 1);
    finish_and_check(graph_flatten(g, graph_avg_pool(g, h, &mean, NULL), NULL));
}
END_TEST

START_TEST(gradients_of_a_residual_block_are_right)
{
    int in = graph_relu(g, norm(conv(x, "c0.w", 3, 3, 1), "bn0"), NULL);
    int h = norm(conv(graph_relu(g, norm(conv(in, "c1.w", 2, 1, 1), "bn1"), NULL), "c2.w", 3, 3, 1),
                 "bn2");
    int out = graph_relu(g, graph_add(g, h, in, NULL), NULL);
    struct op_window whole = graph_window_valid(6, 1);
    int flat = graph_flatten(g, graph_avg_pool(g, out, &whole, NULL), NULL);

    finish_and_check(dense(flat, "fc.w", "fc.b", 5));

    ck_assert_int_eq(count_ops(OP_SUM), 1);
}
END_TEST

START_TEST(gradients_of_shared_parameters_are_summed)
{
    int w = param("w", 4, 2, 2, 3);
    struct op_window same = graph_window_same(g, x, 3, 1);
    int h = graph_conv2d(g, x, w, &same, NULL);
    h = graph_conv2d(g, graph_relu(g, h, NULL), w, &same, NULL);
    h = graph_conv2d(g, h, w, &same, NULL);

    finish_and_check(graph_flatten(g, h, NULL));

    ck_assert_int_eq(graph_n_gradients(g), 1);
    ck_assert_int_eq(count_ops(OP_SUM), 2);
}
END_TEST

START_TEST(gradients_of_a_tensor_added_to_itself_are_summed)
{
    int h = conv(x, "c.w", 2, 3, 1);
    h = graph_add(g, h, h, NULL);
    finish_and_check(graph_flatten(g, graph_add(g, h, h, NULL), NULL));
}
END_TEST

START_TEST(a_tensor_that_four_ops_read_gets_three_sums)
{
    int h = conv(x, "c.w", 2, 3, 1);
    int a = conv(h, "a.w", 2, 3, 1);
    int b = conv(h, "b.w", 2, 1, 1);
    int c = conv(h, "d.w", 2, 1, 1);
    int sum = graph_add(g, graph_add(g, a, b, NULL), graph_add(g, c, h, NULL), NULL);

    finish_and_check(graph_flatten(g, sum, NULL));

    ck_assert_int_eq(count_ops(OP_SUM), 3);
}
END_TEST

/* Whole networks, as jobs use them. */
START_TEST(gradients_of_the_named_networks_are_right)
{
    static const struct {
        const char *name;
        struct network_input input;
        enum network_loss loss;
    } nets[] = {
        {"lenet5",
         {.batch = 2, .channels = 1, .height = 32, .width = 32, .classes = 10},
         NETWORK_LOSS_SOFTMAX_CE},
        {"mnist",
         {.batch = 4, .channels = 1, .height = 28, .width = 28, .classes = 10},
         NETWORK_LOSS_SOFTMAX_CE},
        {"linear",
         {.batch = 8, .channels = 2, .height = 1, .width = 1, .classes = 1},
         NETWORK_LOSS_MSE},
        {"linear",
         {.batch = 4, .channels = 3, .height = 2, .width = 2, .classes = 5},
         NETWORK_LOSS_MSE},
        {"cifar_small",
         {.batch = 2, .channels = 3, .height = 16, .width = 8, .classes = 10},
         NETWORK_LOSS_SOFTMAX_CE},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(nets); i++) {
        struct graph *net = NULL;
        ck_ms_ok(network_build_known(nets[i].name, &nets[i].input, nets[i].loss, &net, err));
        ck_ms_ok(graph_differentiate(net, err));
        ck_gradients(net, 6);
        graph_destroy(net);
    }
}
END_TEST

START_TEST(no_gradient_is_computed_where_no_parameter_needs_it)
{
    int h = graph_relu(g, x, NULL); /* before the first parameter */
    h = norm(h, "bn");
    finish_and_check(graph_flatten(g, h, NULL));

    ck_assert_int_eq(count_ops(OP_RELU_BWD), 0);
    for (int i = 0; i < graph_n_ops(g); i++) {
        const struct op *op = graph_op(g, i);
        if (op->kind == OP_BATCH_NORM_BWD) {
            ck_assert_int_eq(op->out[0], -1);
            ck_assert_int_ge(op->out[1], 0);
        }
    }
}
END_TEST

START_TEST(the_data_of_a_convolution_or_dense_layer_gets_no_gradient)
{
    int h = conv(x, "c.w", 2, 3, 1);
    finish(dense(graph_flatten(g, h, NULL), "fc.w", "fc.b", 4));

    ck_assert_int_eq(count_ops(OP_CONV2D_BWD_DATA), 0);
    ck_assert_int_eq(count_ops(OP_CONV2D_BWD_WEIGHTS), 1);
    ck_assert_int_eq(count_ops(OP_DENSE_BWD_DATA), 1);
}
END_TEST

START_TEST(ops_off_the_path_to_the_loss_have_no_backward)
{
    int h = conv(x, "c.w", 2, 3, 1);
    graph_relu(g, h, NULL); /* nobody reads it */
    finish(graph_flatten(g, h, NULL));

    ck_assert_int_eq(count_ops(OP_RELU_BWD), 0);
}
END_TEST

START_TEST(addition_hands_both_inputs_the_same_gradient)
{
    int a = conv(x, "a.w", 2, 3, 1);
    int b = conv(x, "b.w", 2, 1, 1);
    finish(graph_flatten(g, graph_add(g, a, b, NULL), NULL));

    int dy[2], n = 0;
    for (int i = 0; i < graph_n_ops(g); i++) {
        if (graph_op(g, i)->kind == OP_CONV2D_BWD_WEIGHTS) {
            ck_assert_int_lt(n, 2);
            dy[n++] = graph_op(g, i)->in[1];
        }
    }
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(dy[0], dy[1]);
}
END_TEST

START_TEST(gradients_are_listed_in_the_order_of_production)
{
    int h = graph_relu(g, norm(conv(x, "c.w", 2, 3, 1), "bn"), NULL);
    finish(dense(graph_flatten(g, h, NULL), "fc.w", "fc.b", 4));
    static const char *const want[] = {"fc.w", "fc.b", "bn.gamma", "bn.beta", "c.w"};

    ck_assert_int_eq(graph_n_gradients(g), 5);
    int last = -1;
    for (int i = 0; i < 5; i++) {
        const struct tensor *grad = graph_tensor(g, graph_gradient(g, i));
        ck_assert_str_eq(graph_tensor(g, grad->of)->name, want[i]);
        ck_assert_int_ge(grad->producer, last);
        last = grad->producer;
    }
}
END_TEST

START_TEST(the_list_of_ops_is_a_valid_schedule)
{
    struct graph *net = NULL;
    struct network_input input = {
        .batch = 2, .channels = 3, .height = 64, .width = 64, .classes = 10};
    ck_ms_ok(network_build_known("resnet50", &input, NETWORK_LOSS_SOFTMAX_CE, &net, err));
    int n_forward = graph_n_ops(net);
    ck_ms_ok(graph_differentiate(net, err));

    ck_assert_int_eq(graph_n_forward_ops(net), n_forward);
    for (int i = 0; i < graph_n_ops(net); i++) {
        const struct op *op = graph_op(net, i);
        ck_assert_int_le(op->n_in, op_row(op->kind)->n_in);
        ck_assert_int_ge(op->n_in, op_row(op->kind)->n_in - op_row(op->kind)->n_optional);
        ck_assert_int_eq(op_is_backward(op_row(op->kind)), i >= n_forward);
        for (int slot = 0; slot < op->n_in; slot++) {
            ck_assert_int_ge(op->in[slot], 0);
            ck_assert_int_lt(graph_tensor(net, op->in[slot])->producer, i);
        }
        for (int slot = 0; slot < op->n_out; slot++) {
            ck_assert(op->out[slot] < 0 || graph_tensor(net, op->out[slot])->producer == i);
        }
        if (i >= n_forward && op->kind != OP_SUM) {
            ck_assert_int_ge(op->forward, 0);
            ck_assert_int_lt(op->forward, n_forward);
            ck_assert_int_eq(op->window.kernel_h, graph_op(net, op->forward)->window.kernel_h);
            ck_assert_double_eq(op->epsilon, graph_op(net, op->forward)->epsilon);
        }
    }
    graph_destroy(net);
}
END_TEST

START_TEST(backward_of_relu_reads_the_output_and_batch_norm_gets_beta_last)
{
    int n = norm(conv(x, "c.w", 2, 3, 1), "bn");
    int r = graph_relu(g, n, NULL);
    finish(graph_flatten(g, r, NULL));

    for (int i = graph_n_forward_ops(g); i < graph_n_ops(g); i++) {
        const struct op *op = graph_op(g, i);
        if (op->kind == OP_RELU_BWD) {
            ck_assert_int_eq(op->in[0], r);
        } else if (op->kind == OP_BATCH_NORM_BWD) {
            ck_assert_int_eq(op->in[2], graph_find(g, "bn.gamma"));
            ck_assert_int_eq(op->in[5], graph_find(g, "bn.beta"));
        }
    }
}
END_TEST

START_TEST(a_graph_is_closed_once_differentiated)
{
    finish(graph_flatten(g, conv(x, "c.w", 2, 3, 1), NULL));
    struct shape shape = {1, {4}};

    ck_ms_fails(graph_differentiate(g, err), MS_E_INVALID, "already");
    ck_ms_fails(graph_relu(g, x, err), MS_E_INVALID, "relu after graph_differentiate");
    ck_ms_fails(graph_param(g, "late", &shape, one, err), MS_E_INVALID, "late after");
    ck_ms_fails(graph_set_loss(g, graph_loss(g), err), MS_E_INVALID, "graph_set_loss after");
}
END_TEST

START_TEST(differentiation_without_a_loss_is_refused)
{
    ck_ms_fails(graph_differentiate(g, err), MS_E_INVALID, "has no loss");
}
END_TEST

START_TEST(a_parameter_that_the_loss_ignores_is_named_and_nothing_is_left_behind)
{
    int h = conv(x, "c.w", 2, 3, 1);
    conv(x, "unused.w", 2, 3, 1);
    ck_ms_ok(graph_set_loss(g, graph_softmax_ce(g, graph_flatten(g, h, err), label, err), err));
    int n_ops = graph_n_ops(g);
    int n_tensors = graph_n_tensors(g);

    ck_ms_fails(graph_differentiate(g, err), MS_E_INVALID, "unused.w");

    ck_assert_int_eq(graph_n_ops(g), n_ops);
    ck_assert_int_eq(graph_n_tensors(g), n_tensors);
    ck_assert_int_eq(graph_n_gradients(g), 0);
    ck_assert_int_eq(graph_n_params(g), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("autodiff");
    TCase *tc = tcase_create("backward");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, gradients_of_dense_and_flatten_are_right);
    tcase_add_test(tc, gradients_of_strided_and_padded_convolutions_are_right);
    tcase_add_test(tc, gradients_of_batch_norm_are_right);
    tcase_add_test(tc, gradients_of_pools_with_overlap_and_padding_are_right);
    tcase_add_test(tc, gradients_of_a_residual_block_are_right);
    tcase_add_test(tc, gradients_of_shared_parameters_are_summed);
    tcase_add_test(tc, gradients_of_a_tensor_added_to_itself_are_summed);
    tcase_add_test(tc, a_tensor_that_four_ops_read_gets_three_sums);
    tcase_add_test(tc, gradients_of_the_named_networks_are_right);
    tcase_add_test(tc, no_gradient_is_computed_where_no_parameter_needs_it);
    tcase_add_test(tc, the_data_of_a_convolution_or_dense_layer_gets_no_gradient);
    tcase_add_test(tc, ops_off_the_path_to_the_loss_have_no_backward);
    tcase_add_test(tc, addition_hands_both_inputs_the_same_gradient);
    tcase_add_test(tc, gradients_are_listed_in_the_order_of_production);
    tcase_add_test(tc, the_list_of_ops_is_a_valid_schedule);
    tcase_add_test(tc, backward_of_relu_reads_the_output_and_batch_norm_gets_beta_last);
    tcase_add_test(tc, a_graph_is_closed_once_differentiated);
    tcase_add_test(tc, differentiation_without_a_loss_is_refused);
    tcase_add_test(tc, a_parameter_that_the_loss_ignores_is_named_and_nothing_is_left_behind);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
