/* test_plan_share.c - what goes in and out of a plan: layouts, other batches, evaluation, buckets
 */
#include "libworker/kernel/kernel.h"
#include "libworker/plan/internal.h"
#include "tests/unit/plan_case.h"

static const struct network {
    const char *name;
    int64_t channels, side, classes;
    enum network_loss loss;
} networks[] = {
    {"resnet50", 3, 32, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"cifar_small", 3, 32, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"lenet5", 1, 32, 10, NETWORK_LOSS_SOFTMAX_CE}, /* padded channels, permuted columns */
    {"mnist", 1, 28, 10, NETWORK_LOSS_SOFTMAX_CE},
    {"linear", 2, 1, 1, NETWORK_LOSS_MSE},
    {"layers", 3, 17, 10, NETWORK_LOSS_SOFTMAX_CE},
};
enum { N_NETWORKS = sizeof(networks) / sizeof(networks[0]) };

static struct graph *network(int i, int64_t batch)
{
    const struct network *n = &networks[i];
    return case_model(n->name, batch, n->channels, n->side, n->classes, n->loss);
}

static void init_primary(struct plan_case *c, int i, int64_t batch)
{
    struct case_options options = {.training = 1, .threads = 1};
    case_init(c, network(i, batch), &options);
}

/* Another plan of the same job: shares weights and moving statistics with the primary. */
static void init_secondary(struct plan_case *c, const struct plan_case *primary, int i,
                           int64_t batch, int training)
{
    struct case_options options = {.training = training, .threads = 1, .primary = primary->graph};
    case_init(c, network(i, batch), &options);
    ck_assert_uint_eq(c->sizes.weights, primary->sizes.weights);
    ck_assert_uint_eq(c->sizes.stats, primary->sizes.stats);
    ck_assert_uint_eq(c->sizes.mirrors, primary->sizes.mirrors);
    memcpy(c->buffers.weights, primary->buffers.weights, c->sizes.weights * sizeof(float));
    memcpy(c->buffers.mirrors, primary->buffers.mirrors, c->sizes.mirrors * sizeof(float));
    memcpy(c->buffers.moving, primary->buffers.moving, c->sizes.stats * sizeof(float));
}

static void same_buckets(const struct plan_case *a, const struct plan_case *b)
{
    ck_assert_int_eq(a->sizes.n_buckets, b->sizes.n_buckets);
    for (int i = 0; i < a->sizes.n_buckets; i++) {
        struct plan_bucket x = plan_get_bucket(a->plan, i);
        struct plan_bucket y = plan_get_bucket(b->plan, i);
        ck_assert(x.begin == y.begin && x.count == y.count);
    }
}

START_TEST(a_smaller_batch_trains_on_the_weights_of_the_primary)
{
    struct plan_case primary, tail, alone;
    init_primary(&primary, _i, 5);
    case_init_values(&primary, 9);
    init_secondary(&tail, &primary, _i, 3, 1);
    init_primary(&alone, _i, 3);
    case_init_values(&alone, 9);

    float loss = case_step(&tail);
    float want = case_step(&alone);

    ck_assert_float_eq_tol(loss, want, 1e-6F);
    same_buckets(&primary, &tail);
    for (int i = 0; i < graph_n_gradients(tail.graph); i++) {
        const struct tensor *t = graph_tensor(tail.graph, graph_gradient(tail.graph, i));
        int64_t count = shape_count(&t->shape);
        float *a = case_gradient(&tail, i);
        float *b = case_gradient(&alone, i);
        for (int64_t k = 0; k < count; k++) {
            ck_assert_msg(fabsf(a[k] - b[k]) <= 1e-6F + 1e-4F * fabsf(b[k]), "%s[%lld]: %g, %g",
                          t->name, (long long)k, (double)a[k], (double)b[k]);
        }
        free(a);
        free(b);
    }
    case_fini(&alone);
    case_fini(&tail);
    case_fini(&primary);
}
END_TEST

/* Loss sum and correct answers of the first rows from the oracle's output. */
static void reference_rows(struct plan_case *c, int64_t rows, double *loss, int64_t *correct)
{
    int output = graph_output(c->graph);
    int64_t k = shape_count(&graph_tensor(c->graph, output)->shape) / c->batch;
    int is_class = graph_tensor(c->graph, graph_label_index(c->graph))->dtype == MS_I32;
    const double *y = ref_graph_values(c->ref, output);
    *loss = 0;
    *correct = 0;
    for (int64_t r = 0; r < rows; r++, y += k) {
        int64_t best = 0;
        double sum = 0;
        double squares = 0;
        for (int64_t i = 0; i < k; i++) {
            best = y[i] > y[best] ? i : best;
            sum += exp(y[i]);
            double d = is_class ? 0 : y[i] - (double)c->targets[r * k + i];
            squares += d * d;
        }
        *loss += is_class ? log(sum) - y[c->classes[r]] : squares / (double)k;
        *correct += is_class && best == c->classes[r];
    }
}

static void check_evaluation(struct plan_case *c, int64_t rows)
{
    double want = 0;
    int64_t want_correct = 0;
    case_reference_batch(c);
    ref_graph_evaluate(c->ref);
    reference_rows(c, rows, &want, &want_correct);
    int64_t row =
        shape_count(&graph_tensor(c->graph, graph_data_index(c->graph))->shape) / c->batch;
    for (int64_t i = rows * row; i < c->batch * row; i++) {
        c->data[i] = NAN; /* what lies behind the rows may be anything */
    }
    for (int64_t i = rows; i < c->batch; i++) {
        c->classes[i] = 1 << 30;
    }
    const struct kernel_labels labels = {.labels = c->classes};
    struct plan_evaluated made = {.loss_sum = -1, .correct = -1};
    int64_t counted = 0;

    ck_ms_ok(plan_evaluate(c->plan, c->data, case_labels(c), rows, &made, err));

    ck_assert_msg(fabs(made.loss_sum - want) <= 1e-3 * (1 + fabs(want)), "loss sum %.9g, want %.9g",
                  made.loss_sum, want);
    ck_assert_int_eq(made.correct, want_correct);
    const struct tensor *output = graph_tensor(c->graph, graph_output(c->graph));
    ck_assert_int_eq(made.columns, output->shape.dim[1]);
    const float *said = made.predictions; /* the accuracy that they give is the one that is told */
    ck_assert_int_eq(case_labels(c) == (const void *)c->classes
                         ? kernel_count_correct(said, &labels, rows, made.columns, &counted)
                         : 0,
                     want_correct);
}

START_TEST(evaluation_uses_moving_statistics_and_counts_the_rows_given)
{
    struct plan_case primary;
    init_primary(&primary, _i, 2);
    case_init_values(&primary, 9);
    for (int64_t rows = 3; rows >= 1; rows -= 2) {
        struct plan_case c;
        init_secondary(&c, &primary, _i, 3, 0);
        c.ref = ref_graph_create(c.graph);
        case_init_values(&c, 9);
        check_evaluation(&c, rows);
        case_fini(&c);
    }
    case_fini(&primary);
}
END_TEST

START_TEST(evaluation_stands_alone_too)
{
    struct case_options options = {.training = 0, .threads = 1};
    struct plan_case c;
    case_init(&c, network(_i, 5), &options);
    case_reference(&c, 4);
    check_evaluation(&c, 5);
    case_fini(&c);
}
END_TEST

START_TEST(logical_values_come_back_as_they_went_in)
{
    struct plan_case c;
    init_primary(&c, _i, 2);
    for (int i = 0; i < graph_n_params(c.graph) + graph_n_states(c.graph); i++) {
        int n_params = graph_n_params(c.graph);
        int tensor =
            i < n_params ? graph_param_at(c.graph, i) : graph_state_at(c.graph, i - n_params);
        size_t count = (size_t)shape_count(&graph_tensor(c.graph, tensor)->shape);
        float *in = case_floats(count);
        float *out = case_floats(count);
        for (size_t k = 0; k < count; k++) {
            in[k] = case_random((uint64_t)tensor, k);
        }

        ck_ms_ok(plan_set_logical(c.plan, tensor, MS_F32, in, err));
        ck_ms_ok(plan_get_logical(c.plan, tensor, MS_F32, out, err));

        ck_assert_int_eq(memcmp(in, out, count * sizeof(float)), 0);
        free(in);
        free(out);
    }
    case_fini(&c);
}
END_TEST

/* Steps with an optimizer that runs over the whole flat buffer, padding included. */
static void train(struct plan_case *c, float *velocity, int steps)
{
    const struct kernel_update update = {.scale = 1, .lr = 0.001F, .momentum = 0.9F};
    for (int i = 0; i < steps; i++) {
        (void)case_step(c);
        kernel_momentum(c->buffers.weights, velocity, c->exchange + c->sizes.stats,
                        c->sizes.weights, &update);
        plan_commit_stats(c->plan, c->buffers.exchange, 1, c->buffers.moving);
    }
}

START_TEST(padding_is_zero_and_stays_zero_through_training)
{
    struct plan_case c;
    init_primary(&c, _i, 3);
    case_init_values(&c, 2);
    float *velocity = case_floats(c.sizes.weights);
    float *weights = case_floats(c.sizes.weights);
    float *moving = case_floats(c.sizes.stats);
    train(&c, velocity, 3);
    memcpy(weights, c.buffers.weights, c.sizes.weights * sizeof(float));
    memcpy(moving, c.buffers.moving, c.sizes.stats * sizeof(float));

    /* setting writes zeros into all padding: if it changes nothing, the padding was zero */
    for (int i = 0; i < graph_n_params(c.graph) + graph_n_states(c.graph); i++) {
        int n_params = graph_n_params(c.graph);
        int tensor =
            i < n_params ? graph_param_at(c.graph, i) : graph_state_at(c.graph, i - n_params);
        float *values = case_floats((size_t)shape_count(&graph_tensor(c.graph, tensor)->shape));
        ck_ms_ok(plan_get_logical(c.plan, tensor, MS_F32, values, err));
        ck_ms_ok(plan_set_logical(c.plan, tensor, MS_F32, values, err));
        free(values);
    }

    ck_assert_int_eq(memcmp(weights, c.buffers.weights, c.sizes.weights * sizeof(float)), 0);
    ck_assert_int_eq(memcmp(moving, c.buffers.moving, c.sizes.stats * sizeof(float)), 0);
    free(velocity);
    free(weights);
    free(moving);
    case_fini(&c);
}
END_TEST

START_TEST(moving_statistics_follow_the_oracle)
{
    struct plan_case c;
    init_primary(&c, _i, 4);
    case_reference(&c, 6);
    case_reference_batch(&c);
    ref_graph_run(c.ref);
    ref_graph_commit_stats(c.ref);
    (void)case_step(&c);
    /* the sum over three ranks that saw the same, and its mean */
    for (size_t i = 0; i < c.sizes.stats; i++) {
        c.exchange[i] *= 3;
    }

    plan_commit_stats(c.plan, c.buffers.exchange, 1.0F / 3, c.buffers.moving);

    for (int i = 0; i < graph_n_states(c.graph); i++) {
        int tensor = graph_state_at(c.graph, i);
        int64_t count = shape_count(&graph_tensor(c.graph, tensor)->shape);
        float *values = case_floats((size_t)count);
        ck_ms_ok(plan_get_logical(c.plan, tensor, MS_F32, values, err));
        double d = case_distance(values, ref_graph_values(c.ref, tensor), count);
        ck_assert_msg(d <= 1e-5, "%s is %.3g off", graph_tensor(c.graph, tensor)->name, d);
        free(values);
    }
    case_fini(&c);
}
END_TEST

/* ---- buckets ------------------------------------------------------------------------------------
 */

struct watch {
    struct plan_case *c;
    float *copies;
    int next, poison;
};

static void on_bucket(void *arg, int bucket)
{
    struct watch *w = arg;
    ck_assert_int_eq(bucket, w->next);
    w->next++;
    struct plan_bucket range = plan_get_bucket(w->c->plan, bucket);
    float *data = w->c->exchange + range.begin;
    memcpy(w->copies + range.begin, data, range.count * sizeof(float));
    if (w->poison) {
        memset(data, 0xff, range.count * sizeof(float));
    }
}

START_TEST(buckets_cover_the_exchange_buffer_once_and_are_complete_when_called)
{
    struct case_options options = {.training = 1, .threads = 1};
    for (size_t kib = 1; kib <= 4096; kib *= 64) {
        options.bucket_bytes_max = kib << 10;
        struct plan_case c;
        case_init(&c, network(_i, 2), &options);
        case_init_values(&c, 2);
        size_t at = 0;
        for (int b = 0; b < c.sizes.n_buckets; b++) {
            struct plan_bucket range = plan_get_bucket(c.plan, b);
            ck_assert_uint_eq(range.begin, at);
            ck_assert_uint_gt(range.count, 0);
            ck_assert_uint_eq(range.begin % PLAN_LANES, 0);
            at += range.count;
        }
        ck_assert_uint_eq(at, c.sizes.exchange);
        (void)case_step(&c);
        float *want = case_floats(c.sizes.exchange);
        memcpy(want, c.buffers.exchange, c.sizes.exchange * sizeof(float));

        /* what is reduced while backward runs is overwritten: nobody may read it any more */
        struct watch w = {&c, case_floats(c.sizes.exchange), 0, 1};
        case_poison(&c); /* the last step's gradients are the same: a bucket too early must show */
        float loss = 0;
        ck_ms_ok(plan_train_step(c.plan, c.data, case_labels(&c), on_bucket, &w, &loss, err));

        ck_assert_int_eq(w.next, c.sizes.n_buckets);
        ck_assert_int_eq(memcmp(w.copies, want, c.sizes.exchange * sizeof(float)), 0);
        free(w.copies);
        free(want);
        case_fini(&c);
    }
}
END_TEST

START_TEST(weights_lie_in_the_order_in_which_backward_makes_gradients)
{
    struct plan_case c;
    init_primary(&c, _i, 2);
    size_t at = 0;
    for (int i = 0; i < graph_n_gradients(c.graph); i++) {
        int param = graph_tensor(c.graph, graph_gradient(c.graph, i))->of;
        const struct plan_param *p = &c.plan->params[c.plan->param_of[param]];
        ck_assert_uint_eq(p->offset, at);
        ck_assert_uint_ge(p->count, (size_t)shape_count(&graph_tensor(c.graph, param)->shape));
        at += p->count;
    }
    ck_assert_uint_eq(at, c.sizes.weights);
    case_fini(&c);
}
END_TEST

/* ---- errors -------------------------------------------------------------------------------------
 */

START_TEST(a_plan_of_another_network_is_refused)
{
    struct plan_case c;
    init_primary(&c, 2, 2);
    struct case_options options = {.training = 0, .threads = 1, .primary = c.graph};
    struct graph *other = network(3, 2);
    struct graph *wider = case_model("lenet5", 2, 3, 32, 10, NETWORK_LOSS_SOFTMAX_CE);
    struct plan *plan = NULL;

    ck_ms_fails(case_create(other, &options, &plan, err), MS_E_INVALID,
                "network mnist of this job has 2 parameters");
    ck_ms_fails(case_create(wider, &options, &plan, err), MS_E_INVALID, "conv1.weight");

    ck_assert_ptr_null(plan);
    graph_destroy(other);
    graph_destroy(wider);
    case_fini(&c);
}
END_TEST

START_TEST(misuse_is_named)
{
    struct graph *graph = network(3, 2);
    struct case_options options = {.training = 1, .threads = 0};
    struct plan *plan = NULL;
    ck_ms_fails(case_create(graph, &options, &plan, err), MS_E_INVALID, "threads");
    options.threads = 1;
    ck_ms_fails(case_create(graph, &options, &plan, err), MS_E_INVALID, "graph_differentiate");
    graph_destroy(graph);

    struct plan_case c;
    init_primary(&c, 3, 2);
    float loss = 0;
    struct plan_evaluated made;
    struct plan_buffers bad = c.buffers;
    bad.weights = (char *)bad.weights + 4;
    ck_ms_fails(plan_bind(c.plan, &bad, err), MS_E_INVALID, "weights is not aligned");
    bad = c.buffers;
    bad.exchange = NULL;
    ck_ms_fails(plan_bind(c.plan, &bad, err), MS_E_INVALID, "exchange is NULL");
    ck_ms_fails(plan_evaluate(c.plan, c.data, c.classes, 1, &made, err), MS_E_INVALID,
                "made for training");
    ck_ms_fails(plan_train_step(c.plan, NULL, c.classes, NULL, NULL, &loss, err), MS_E_INVALID,
                "no data");
    int param = graph_param_at(c.graph, 0);
    char want[160];
    snprintf(want, sizeof(want), "tensor %s is kept as f32 and not converted from or to bf16",
             graph_tensor(c.graph, param)->name);
    ck_ms_fails(plan_set_logical(c.plan, param, MS_BF16, &loss, err), MS_E_UNSUPPORTED, want);
    ck_ms_fails(plan_get_logical(c.plan, param, MS_BF16, &loss, err), MS_E_UNSUPPORTED, want);
    ck_ms_fails(plan_get_logical(c.plan, graph_loss(c.graph), MS_F32, &loss, err), MS_E_INVALID,
                "no parameter or state");

    struct plan_case e;
    init_secondary(&e, &c, 3, 4, 0);
    ck_ms_fails(plan_train_step(e.plan, e.data, e.classes, NULL, NULL, &loss, err), MS_E_INVALID,
                "made for evaluation");
    ck_ms_fails(plan_evaluate(e.plan, e.data, e.classes, 5, &made, err), MS_E_INVALID,
                "5 rows in a batch of 4");
    case_fini(&e);
    struct plan *unbound = NULL;
    options.primary = c.graph;
    ck_ms_ok(case_create(c.graph, &options, &unbound, err));
    ck_ms_fails(plan_train_step(unbound, c.data, c.classes, NULL, NULL, &loss, err), MS_E_INVALID,
                "plan_bind");
    plan_destroy(unbound);
    case_fini(&c);
}
END_TEST

struct stop { /* raises the flag when a bucket is complete */
    atomic_int flag;
    int at, seen;
};

static void stop_at(void *arg, int bucket)
{
    struct stop *stop = arg;
    stop->seen = bucket;
    if (bucket == stop->at) {
        atomic_store(&stop->flag, 1);
    }
}

START_TEST(a_step_that_is_given_up_can_run_again)
{
    struct stop stop = {0};
    stop.at = 1;
    struct case_options options = {
        .training = 1, .threads = 1, .bucket_bytes_max = 1 << 16, .cancel = &stop.flag};
    struct plan_case c;
    case_init(&c, network(1, 4), &options);
    case_init_values(&c, 2);
    float want = case_step(&c);
    float *first = case_floats(c.sizes.exchange);
    memcpy(first, c.buffers.exchange, c.sizes.exchange * sizeof(float));
    float loss = -1;

    ck_ms_fails(plan_train_step(c.plan, c.data, c.classes, stop_at, &stop, &loss, err),
                MS_E_ABORTED, "given up");
    ck_assert_int_eq(stop.seen, 1);
    ck_assert_float_eq(loss, -1);
    atomic_store(&stop.flag, 0);
    loss = case_step(&c);

    ck_assert_float_eq(loss, want);
    ck_assert_int_eq(memcmp(first, c.buffers.exchange, c.sizes.exchange * sizeof(float)), 0);
    free(first);
    case_fini(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_share");
    TCase *tc = tcase_create("plans");
    tcase_add_loop_test(tc, a_smaller_batch_trains_on_the_weights_of_the_primary, 0, N_NETWORKS);
    tcase_add_loop_test(tc, evaluation_uses_moving_statistics_and_counts_the_rows_given, 0,
                        N_NETWORKS);
    tcase_add_loop_test(tc, evaluation_stands_alone_too, 1, N_NETWORKS);
    tcase_add_loop_test(tc, logical_values_come_back_as_they_went_in, 0, N_NETWORKS);
    tcase_add_loop_test(tc, padding_is_zero_and_stays_zero_through_training, 0, N_NETWORKS);
    tcase_add_loop_test(tc, moving_statistics_follow_the_oracle, 1, 2);
    tcase_add_loop_test(tc, buckets_cover_the_exchange_buffer_once_and_are_complete_when_called, 0,
                        N_NETWORKS);
    tcase_add_loop_test(tc, weights_lie_in_the_order_in_which_backward_makes_gradients, 0,
                        N_NETWORKS);
    tcase_add_test(tc, a_plan_of_another_network_is_refused);
    tcase_add_test(tc, misuse_is_named);
    tcase_add_test(tc, a_step_that_is_given_up_can_run_again);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
