/* test_rewrite.c - graphs made of graphs: kept, replaced and inserted ops, and what is refused */
#include "libworker/graph/op.h"
#include "libworker/graph/rewrite.h"
#include "tests/unit/gradients.h"
#include "tests/unit/plan_case.h"

#include <stdio.h>

static const struct network {
    const char *name;
    int64_t batch, channels, side, classes;
    enum network_loss loss;
} networks[] = {
    {"linear", 4, 1, 1, 1, NETWORK_LOSS_MSE},
    {"mnist", 8, 1, 28, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"lenet5", 4, 1, 32, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"cifar_small", 4, 3, 16, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"resnet50", 2, 3, 64, 10, NETWORK_LOSS_SOFTMAX_CE},
};
enum { LENET5 = 2, NETWORKS = 5 };

static struct graph *network(int i, int64_t batch)
{
    const struct network *n = &networks[i];
    return case_model(n->name, batch, n->channels, n->side, n->classes, n->loss);
}

/* Text of the plan to train, which differentiates the graph; destroys it. */
static char *plan_of(struct graph *graph)
{
    struct plan_request request = {.world = 1, .threads = 1, .graphs = {graph}};
    struct plan_spec *spec = NULL;
    char *text = NULL;
    size_t size = 0;
    ck_ms_ok(graph_differentiate(graph, err));
    ck_ms_ok(plan_choose(&request, &spec, err));
    ck_ms_ok(plan_spec_format(spec, &text, &size, err));
    plan_spec_destroy(spec);
    graph_destroy(graph);
    return text;
}

static struct graph *rewritten(struct graph *graph, const struct rewrite *rewrite)
{
    struct graph *copy = NULL;
    ck_ms_ok(graph_copy_with(graph, rewrite, &copy, err));
    graph_destroy(graph);
    return copy;
}

static int count_ops(const struct graph *graph, enum op_kind kind)
{
    int n = 0;
    for (int i = 0; i < graph_n_ops(graph); i++) {
        n += graph_op(graph, i)->kind == kind;
    }
    return n;
}

static void ck_same_plan(struct graph *got, struct graph *want)
{
    char *got_text = plan_of(got);
    char *want_text = plan_of(want);
    ck_assert_str_eq(got_text, want_text);
    free(got_text);
    free(want_text);
}

/* ---- rewrites -----------------------------------------------------------------------------------
 */

static const struct rewrite identity = {.name = "identity"};

static int relu_again(const void *arg, const struct rewrite_op *site, struct graph *to,
                      struct ms_err *err)
{
    (void)arg;
    return site->op->kind == OP_RELU ? graph_relu(to, site->in[0], err)
                                     : rewrite_keep(site, to, err);
}

static int no_relu(const void *arg, const struct rewrite_op *site, struct graph *to,
                   struct ms_err *err)
{
    (void)arg;
    return site->op->kind == OP_RELU ? site->in[0] : rewrite_keep(site, to, err);
}

static int add_vector(struct graph *to, const char *layer, const char *what, int64_t channels,
                      int is_state, struct ms_err *err)
{
    struct shape shape = {1, {channels}};
    struct init one = {INIT_CONSTANT, 1};
    char name[2 * GRAPH_NAME_MAX];
    snprintf(name, sizeof(name), "%s.%s", layer, what);
    return is_state ? graph_state(to, name, &shape, one, 0.9, err)
                    : graph_param(to, name, &shape, one, err);
}

/* A batch norm behind each convolution. */
static int norm_behind(const void *arg, const struct rewrite_op *site, struct graph *to,
                       struct ms_err *err)
{
    (void)arg;
    int y = rewrite_keep(site, to, err);
    if (y < 0 || site->op->kind != OP_CONV2D) {
        return y;
    }
    const struct tensor *t = graph_tensor(to, y);
    int64_t channels = t->shape.dim[1];
    int gamma = add_vector(to, t->name, "gamma", channels, 0, err);
    int beta = add_vector(to, t->name, "beta", channels, 0, err);
    int mean = add_vector(to, t->name, "mean", channels, 1, err);
    int variance = add_vector(to, t->name, "variance", channels, 1, err);
    return graph_batch_norm(to, y, gamma, beta, mean, variance, 1e-5, err);
}

/* Data and labels of another batch. */
static int with_batch(const void *arg, const struct graph *from, int tensor, struct graph *to,
                      struct ms_err *err)
{
    const struct tensor *t = graph_tensor(from, tensor);
    struct shape shape = t->shape;
    shape.dim[0] = *(const int64_t *)arg;
    switch (t->role) {
    case TENSOR_DATA:
        return graph_data(to, t->name, &shape, err);
    case TENSOR_LABEL:
        return graph_label(to, t->name, &shape, t->dtype, err);
    default:
        return rewrite_keep_leaf(from, tensor, to, err);
    }
}

/* ---- what is made -------------------------------------------------------------------------------
 */

START_TEST(the_identity_gives_the_same_plan)
{
    int64_t batch = networks[_i].batch;
    ck_same_plan(rewritten(network(_i, batch), &identity), network(_i, batch));
}
END_TEST

static void ck_same_tensor(const struct tensor *got, const struct tensor *want)
{
    ck_assert_str_eq(got->name, want->name);
    ck_assert_int_eq(got->role, want->role);
    ck_assert_int_eq(got->dtype, want->dtype);
    ck_assert(shape_equal(&got->shape, &want->shape));
    ck_assert_int_eq(got->producer, want->producer);
    ck_assert_int_eq(got->of, want->of);
    ck_assert_int_eq(got->is_variance, want->is_variance);
    ck_assert_int_eq(got->stat_count, want->stat_count);
    ck_assert_double_eq(got->momentum, want->momentum);
    ck_assert_int_eq(got->init.kind, want->init.kind);
    ck_assert_double_eq(got->init.a, want->init.a);
}

static void ck_same_op(const struct op *got, const struct op *want)
{
    ck_assert_int_eq(got->kind, want->kind);
    ck_assert_int_eq(memcmp(got->in, want->in, sizeof(got->in)), 0);
    ck_assert_int_eq(memcmp(got->out, want->out, sizeof(got->out)), 0);
    ck_assert_int_eq(memcmp(&got->window, &want->window, sizeof(got->window)), 0);
    ck_assert_double_eq(got->epsilon, want->epsilon);
}

START_TEST(the_identity_keeps_every_tensor)
{
    struct graph *old = network(_i, 2);
    struct graph *new = NULL;
    ck_ms_ok(graph_copy_with(old, &identity, &new, err));

    ck_assert_int_eq(graph_n_tensors(new), graph_n_tensors(old));
    for (int i = 0; i < graph_n_tensors(old); i++) {
        ck_same_tensor(graph_tensor(new, i), graph_tensor(old, i));
    }
    ck_assert_int_eq(graph_n_ops(new), graph_n_ops(old));
    for (int i = 0; i < graph_n_ops(old); i++) {
        ck_same_op(graph_op(new, i), graph_op(old, i));
    }
    ck_assert_int_eq(graph_loss(new), graph_loss(old));
    ck_assert_int_eq(graph_output(new), graph_output(old));

    graph_destroy(new);
    graph_destroy(old);
}
END_TEST

START_TEST(relu_replaced_by_itself_gives_the_same_plan)
{
    static const struct rewrite rewrite = {.name = "relu", .op = relu_again};
    int64_t batch = networks[_i].batch;
    ck_same_plan(rewritten(network(_i, batch), &rewrite), network(_i, batch));
}
END_TEST

START_TEST(another_batch_gives_the_plan_of_a_network_of_that_batch)
{
    int64_t batch = 3;
    const struct rewrite rewrite = {.name = "batch", .leaf = with_batch, .arg = &batch};
    ck_same_plan(rewritten(network(_i, networks[_i].batch), &rewrite), network(_i, batch));
}
END_TEST

START_TEST(an_op_is_left_out)
{
    static const struct rewrite rewrite = {.name = "no relu", .op = no_relu};
    struct graph *old = network(LENET5, 2);
    int n_relu = count_ops(old, OP_RELU);
    int n_ops = graph_n_ops(old);
    ck_assert_int_gt(n_relu, 0);

    struct graph *new = rewritten(old, &rewrite);

    ck_assert_int_eq(count_ops(new, OP_RELU), 0);
    ck_assert_int_eq(graph_n_ops(new), n_ops - n_relu);
    ck_ms_ok(graph_differentiate(new, err));
    ck_gradients(new, 6);
    graph_destroy(new);
}
END_TEST

START_TEST(inserted_ops_train)
{
    static const struct rewrite rewrite = {.name = "norm", .op = norm_behind};
    struct graph *old = network(LENET5, 2);
    int n_conv = count_ops(old, OP_CONV2D);
    int n_params = graph_n_params(old);
    ck_assert_int_gt(n_conv, 0);
    struct graph *new = rewritten(old, &rewrite);

    ck_assert_int_eq(count_ops(new, OP_BATCH_NORM), n_conv);
    ck_assert_int_eq(graph_n_params(new), n_params + 2 * n_conv);
    struct plan_case c;
    struct case_options options = {.training = 1, .threads = 1};
    case_init(&c, new, &options);
    ck_gradients(c.graph, 6);
    case_reference(&c, 3);
    case_reference_batch(&c);
    ref_graph_run(c.ref);
    (void)case_step(&c);
    const char *which = NULL;
    double worst = case_worst_gradient(&c, &which);
    ck_assert_msg(worst <= 1e-4, "%s is %.3g off", which, worst);
    case_fini(&c);
}
END_TEST

START_TEST(a_graph_without_marks_is_copied_without)
{
    struct graph *old = graph_create("half");
    struct shape images = {4, {2, 3, 8, 8}};
    ck_ms_ok(graph_relu(old, graph_data(old, "image", &images, err), err));

    struct graph *new = rewritten(old, &identity);

    ck_assert_int_eq(graph_n_ops(new), 1);
    ck_assert_int_eq(graph_loss(new), -1);
    ck_assert_int_eq(graph_output(new), -1);
    graph_destroy(new);
}
END_TEST

/* ---- what is refused ----------------------------------------------------------------------------
 */

static int wild(const void *arg, const struct rewrite_op *site, struct graph *to,
                struct ms_err *err)
{
    (void)arg;
    return site->op->kind == OP_RELU ? graph_n_tensors(to) : rewrite_keep(site, to, err);
}

static int weight_for_value(const void *arg, const struct rewrite_op *site, struct graph *to,
                            struct ms_err *err)
{
    (void)arg;
    return site->op->kind == OP_CONV2D ? site->in[1] : rewrite_keep(site, to, err);
}

static int flat_for_pool(const void *arg, const struct rewrite_op *site, struct graph *to,
                         struct ms_err *err)
{
    (void)arg;
    return site->op->kind == OP_RELU ? graph_flatten(to, site->in[0], err)
                                     : rewrite_keep(site, to, err);
}

static int no_loss(const void *arg, const struct rewrite_op *site, struct graph *to,
                   struct ms_err *err)
{
    (void)arg;
    return op_row(site->op->kind)->is_loss ? site->in[0] : rewrite_keep(site, to, err);
}

static int twice(const void *arg, const struct graph *from, int tensor, struct graph *to,
                 struct ms_err *err)
{
    (void)arg;
    int first = rewrite_keep_leaf(from, tensor, to, err);
    return first < 0 ? first : rewrite_keep_leaf(from, tensor, to, err);
}

static int of_its_own(const void *arg, const struct rewrite_op *site, struct graph *to,
                      struct ms_err *err)
{
    (void)arg;
    (void)to;
    return ms_fail(err, MS_E_UNSUPPORTED, "%s cannot be cut in 3", op_row(site->op->kind)->name);
}

static const struct refused {
    struct rewrite rewrite;
    int code;
    const char *text;
} refusals[] = {
    {{.name = "wild", .op = wild}, MS_E_INVALID, "rewrite wild of op 1 relu: it became tensor "},
    {{.name = "w", .op = weight_for_value},
     MS_E_INVALID,
     "graph lenet5: rewrite w of op 0 conv2d: it became conv1.weight, which is no value"},
    {{.name = "flat", .op = flat_for_pool},
     MS_E_INVALID,
     "rewrite flat of op 2 max_pool: graph lenet5: max_pool: the input must be images"},
    {{.name = "none", .op = no_loss}, MS_E_INVALID, "rewrite none: graph lenet5: "},
    {{.name = "twice", .leaf = twice}, MS_E_EXISTS, "rewrite twice of "},
    {{.name = "cut", .op = of_its_own},
     MS_E_UNSUPPORTED,
     "rewrite cut of op 0 conv2d: conv2d cannot be cut in 3"},
};

START_TEST(a_bad_rewrite_is_refused_with_names)
{
    const struct refused *row = &refusals[_i];
    struct graph *old = network(LENET5, 2);
    struct graph *new = NULL;

    ck_ms_fails(graph_copy_with(old, &row->rewrite, &new, err), row->code, row->text);

    ck_assert_ptr_null(new);
    graph_destroy(old);
}
END_TEST

START_TEST(a_differentiated_graph_is_refused)
{
    struct graph *old = network(LENET5, 2);
    struct graph *new = NULL;
    ck_ms_ok(graph_differentiate(old, err));

    ck_ms_fails(graph_copy_with(old, &identity, &new, err), MS_E_INVALID,
                "graph lenet5: rewrite identity after graph_differentiate");
    graph_destroy(old);
}
END_TEST

START_TEST(what_an_op_makes_is_no_leaf_to_keep)
{
    struct graph *old = network(LENET5, 2);
    struct graph *to = graph_create("to");

    ck_ms_fails(rewrite_keep_leaf(old, graph_loss(old), to, err), MS_E_INVALID, "is no leaf");

    graph_destroy(to);
    graph_destroy(old);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rewrite");
    TCase *made = tcase_create("made");
    tcase_add_loop_test(made, the_identity_gives_the_same_plan, 0, NETWORKS);
    tcase_add_loop_test(made, the_identity_keeps_every_tensor, 0, NETWORKS);
    tcase_add_loop_test(made, relu_replaced_by_itself_gives_the_same_plan, 0, NETWORKS);
    tcase_add_loop_test(made, another_batch_gives_the_plan_of_a_network_of_that_batch, 0, NETWORKS);
    tcase_add_test(made, an_op_is_left_out);
    tcase_add_test(made, inserted_ops_train);
    tcase_add_test(made, a_graph_without_marks_is_copied_without);
    suite_add_tcase(suite, made);
    TCase *refused = tcase_create("refused");
    tcase_add_loop_test(refused, a_bad_rewrite_is_refused_with_names, 0,
                        (int)MS_ARRAY_SIZE(refusals));
    tcase_add_test(refused, a_differentiated_graph_is_refused);
    tcase_add_test(refused, what_an_op_makes_is_no_leaf_to_keep);
    suite_add_tcase(suite, refused);
    return test_run(suite);
}
