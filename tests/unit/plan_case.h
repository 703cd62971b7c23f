/* plan_case.h - a graph, its plan with buffers and the double-precision oracle, for test_plan_* */
#ifndef TESTS_PLAN_CASE_H
#define TESTS_PLAN_CASE_H

#include "libworker/kernel/kernel.h"
#include "libworker/network/network.h"
#include "libworker/plan/plan.h"
#include "libworker/plan/spec.h"
#include "proto/rng.h"
#include "tests/ref_graph.h"
#include "tests/test.h"

#include <math.h>

struct case_options { /* of one plan: what it is for, and the rest of its request */
    int training, threads;
    const char *isa;
    size_t bucket_bytes_max;
    enum plan_recompute recompute;
    uint64_t memory_max;
    int mirrors;
    const struct graph *primary; /* NULL: the plan's own graph fixes the layouts */
    const atomic_int *cancel;
};

struct plan_case {
    struct graph *graph;
    struct plan *plan;
    struct plan_sizes sizes;
    struct plan_buffers buffers;
    float *exchange;       /* buffers.exchange */
    struct ref_graph *ref; /* NULL until case_reference */
    float *data;
    float *targets; /* labels as floats or ... */
    int32_t *classes;
    int64_t batch;
};

static inline float *case_floats(size_t count)
{
    size_t bytes = (count * sizeof(float) / 64 + 1) * 64;
    float *p = aligned_alloc(64, bytes);
    ck_assert_ptr_nonnull(p);
    memset(p, 0, bytes);
    return p;
}

static inline float case_random(uint64_t stream, uint64_t i)
{
    return (float)(2.0 * ms_rng_unit(stream, i) - 1.0);
}

static inline const void *case_labels(const struct plan_case *c)
{
    const struct tensor *label = graph_tensor(c->graph, graph_label_index(c->graph));
    return label->dtype == MS_I32 ? (const void *)c->classes : (const void *)c->targets;
}

/* A batch that depends on seed alone. */
static inline void case_fill_batch(struct plan_case *c, uint64_t seed)
{
    const struct tensor *data = graph_tensor(c->graph, graph_data_index(c->graph));
    const struct tensor *label = graph_tensor(c->graph, graph_label_index(c->graph));
    const struct tensor *output = graph_tensor(c->graph, graph_output(c->graph));
    const uint64_t words = (uint64_t)ref_graph_words(c->graph);
    for (int64_t i = 0; i < shape_count(&data->shape); i++) {
        c->data[i] = words > 0 ? (float)ms_rng_below(seed, (uint64_t)i, words)
                               : case_random(seed, (uint64_t)i);
    }
    const uint64_t k = (uint64_t)output->shape.dim[output->shape.n_dims - 1];
    for (int64_t i = 0; i < shape_count(&label->shape); i++) {
        c->targets[i] = case_random(seed + 1, (uint64_t)i);
        c->classes[i] = (int32_t)ms_rng_below(seed + 2, (uint64_t)i, k);
    }
}

static inline void case_bind(struct plan_case *c)
{
    ck_ms_ok(plan_bind(c->plan, &c->buffers, err));
}

/* Chooses and makes the plan of one graph; beside a primary it is the last batch's, or evaluation.
 */
static inline int case_create(const struct graph *graph, const struct case_options *options,
                              struct plan **ret, struct ms_err *err)
{
    struct plan_request request = {.world = 1,
                                   .threads = options->threads,
                                   .isa = options->isa,
                                   .bucket_bytes_max = options->bucket_bytes_max,
                                   .recompute = options->recompute,
                                   .memory_max = options->memory_max,
                                   .mirrors = options->mirrors};
    enum plan_use use = !options->training         ? PLAN_EVALUATE
                        : options->primary != NULL ? PLAN_TAIL
                                                   : PLAN_TRAIN;
    struct plan_spec *spec = NULL;
    request.graphs[PLAN_TRAIN] = options->primary;
    request.graphs[use] = graph;
    int rc = plan_choose(&request, &spec, err);
    rc = rc < 0 ? rc : plan_create(graph, spec, use, options->cancel, ret, err);
    plan_spec_destroy(spec);
    return rc;
}

/* A batch and bound buffers for the plan and graph that the case has. */
static inline void case_buffers(struct plan_case *c)
{
    plan_get_sizes(c->plan, &c->sizes);
    const struct tensor *data = graph_tensor(c->graph, graph_data_index(c->graph));
    const struct tensor *label = graph_tensor(c->graph, graph_label_index(c->graph));
    c->batch = data->shape.dim[0];
    c->data = case_floats((size_t)shape_count(&data->shape));
    c->targets = case_floats((size_t)shape_count(&label->shape));
    c->classes = (int32_t *)(void *)case_floats((size_t)shape_count(&label->shape));
    c->buffers.weights = case_floats(c->sizes.weights);
    c->buffers.mirrors = case_floats(c->sizes.mirrors);
    c->buffers.moving = case_floats(c->sizes.stats);
    c->exchange = case_floats(c->sizes.exchange);
    c->buffers.exchange = c->exchange;
    c->buffers.arena = case_floats(c->sizes.arena_bytes / sizeof(float));
    case_bind(c);
    case_fill_batch(c, 11);
}

/* Takes graph. training: differentiates it. */
static inline void case_init(struct plan_case *c, struct graph *graph,
                             const struct case_options *options)
{
    memset(c, 0, sizeof(*c));
    c->graph = graph;
    if (options->training) {
        ck_ms_ok(graph_differentiate(graph, err));
    }
    ck_ms_ok(case_create(graph, options, &c->plan, err));
    case_buffers(c);
}

static inline void case_fini(struct plan_case *c)
{
    plan_destroy(c->plan);
    ref_graph_destroy(c->ref);
    graph_destroy(c->graph);
    free(c->data);
    free(c->targets);
    free(c->classes);
    free(c->buffers.weights);
    free(c->buffers.mirrors);
    free(c->buffers.moving);
    free(c->buffers.exchange);
    free(c->buffers.arena);
}

/* Values that leave nothing at a special point: gammas and betas of both signs, biases not zero. */
static inline void case_values(const struct tensor *tensor, uint64_t seed, float *values)
{
    int64_t count = shape_count(&tensor->shape);
    graph_init_values(tensor, seed, values);
    for (int64_t i = 0; i < count && tensor->shape.n_dims == 1; i++) {
        uint64_t stream = ms_rng_stream(seed, (uint64_t)count, (uint64_t)tensor->role);
        values[i] = tensor->role == TENSOR_STATE ? 1.0F + 0.5F * case_random(stream, (uint64_t)i)
                                                 : case_random(stream, (uint64_t)i);
    }
}

static inline void case_set(struct plan_case *c, int tensor, uint64_t seed)
{
    const struct tensor *t = graph_tensor(c->graph, tensor);
    float *values = case_floats((size_t)shape_count(&t->shape));
    case_values(t, seed + (uint64_t)tensor, values);
    ck_ms_ok(plan_set_logical(c->plan, tensor, MS_F32, values, err));
    if (c->ref != NULL) {
        ref_graph_set(c->ref, tensor, values);
    }
    free(values);
}

/* Parameters and states of the plan and, if there is one, of the oracle. */
static inline void case_init_values(struct plan_case *c, uint64_t seed)
{
    for (int i = 0; i < graph_n_params(c->graph); i++) {
        case_set(c, graph_param_at(c->graph, i), seed);
    }
    for (int i = 0; i < graph_n_states(c->graph); i++) {
        case_set(c, graph_state_at(c->graph, i), seed);
    }
}

static inline void case_reference(struct plan_case *c, uint64_t seed)
{
    c->ref = ref_graph_create(c->graph);
    ck_assert_ptr_nonnull(c->ref);
    case_init_values(c, seed);
}

static inline void case_reference_batch(struct plan_case *c)
{
    int label = graph_label_index(c->graph);
    ref_graph_set(c->ref, graph_data_index(c->graph), c->data);
    if (graph_tensor(c->graph, label)->dtype == MS_I32) {
        ref_graph_set_labels(c->ref, c->classes);
    } else {
        ref_graph_set(c->ref, label, c->targets);
    }
}

/* NaN into everything that is scratch: whoever reads what he did not write will show it. */
static inline void case_poison(struct plan_case *c)
{
    memset(c->buffers.arena, 0xff, c->sizes.arena_bytes);
    memset(c->buffers.exchange, 0xff, c->sizes.exchange * sizeof(float));
    case_bind(c);
}

/* Gradients and statistics, padding included. */
static inline int case_exchange_is_finite(const struct plan_case *c)
{
    for (size_t i = 0; i < c->sizes.exchange; i++) {
        if (!isfinite(c->exchange[i])) {
            return 0;
        }
    }
    return 1;
}

static inline float case_step(struct plan_case *c)
{
    float loss = NAN;
    ck_ms_ok(plan_train_step(c->plan, c->data, case_labels(c), NULL, NULL, &loss, err));
    return loss;
}

/* |a - b| / |b| over all elements, or the absolute norm where the reference is zero. */
static inline double case_distance(const float *a, const double *b, int64_t count)
{
    double difference = 0;
    double norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)a[i] - b[i];
        difference += d * d;
        norm += b[i] * b[i];
    }
    return sqrt(difference / (norm > 1e-20 ? norm : 1.0));
}

/* The gradient of the i-th entry of graph_gradient, logical; free it. */
static inline float *case_gradient(struct plan_case *c, int i)
{
    const struct tensor *t = graph_tensor(c->graph, graph_gradient(c->graph, i));
    float *values = case_floats((size_t)shape_count(&t->shape));
    const float *gradients = c->exchange + c->sizes.stats;
    ck_ms_ok(plan_get_logical_from(c->plan, t->of, gradients, MS_F32, values, err));
    return values;
}

/* Largest distance of a gradient from the oracle's; which: its name. */
static inline double case_worst_gradient(struct plan_case *c, const char **which)
{
    double worst = 0;
    *which = "none";
    for (int i = 0; i < graph_n_gradients(c->graph); i++) {
        int tensor = graph_gradient(c->graph, i);
        const struct tensor *t = graph_tensor(c->graph, tensor);
        float *values = case_gradient(c, i);
        double d = case_distance(values, ref_graph_values(c->ref, tensor), shape_count(&t->shape));
        if (!(d <= worst)) {
            worst = d;
            *which = t->name;
        }
        free(values);
    }
    return worst;
}

/* Largest distance of a batch mean or variance from the oracle's. */
static inline double case_worst_statistic(struct plan_case *c, const char **which)
{
    double worst = 0;
    *which = "none";
    for (int i = 0; i < graph_n_tensors(c->graph); i++) {
        const struct tensor *t = graph_tensor(c->graph, i);
        if (t->role != TENSOR_STAT) {
            continue;
        }
        float *values = case_floats((size_t)shape_count(&t->shape));
        ck_ms_ok(plan_get_logical_from(c->plan, t->of, c->exchange, MS_F32, values, err));
        double d = case_distance(values, ref_graph_values(c->ref, i), shape_count(&t->shape));
        if (!(d <= worst)) {
            worst = d;
            *which = t->name;
        }
        free(values);
    }
    return worst;
}

/* What those with a name have not: biases, groups, gaps, branches, dropout, a dense layer without a
 * bias. */
static const char case_layers[] =
    "- conv2d: {out: 24, kernel: 3, stride: 2, bias: fan_in}\n"
    "- relu\n"
    "- conv2d: {out: 24, kernel: 3, groups: 24, padding: same}\n"
    "- batch_norm\n"
    "- concat: {branches: [[], [conv2d: {out: 8, kernel: 1}], [conv2d: {out: 3, kernel: 1}]]}\n"
    "- dropout: {rate: 0.25}\n"
    "- conv2d: {out: 32, kernel: 3, bias: fan_in}\n"
    "- relu\n"
    "- conv2d: {out: 12, kernel: 3, groups: 4, bias: fan_in}\n"
    "- conv2d: {out: 7, kernel: 3, dilation: 2, padding: same}\n"
    "- flatten\n"
    "- dropout\n"
    "- dense: {out: 12, bias: none}\n"
    "- relu\n"
    "- dense: {out: classes}\n";

/* That network, or "layers": the list above. */
static inline struct graph *case_model(const char *name, int64_t batch, int64_t channels,
                                       int64_t side, int64_t classes, enum network_loss loss)
{
    struct network_input input = {
        .batch = batch, .channels = channels, .height = side, .width = side, .classes = classes};
    struct network *network = NULL;
    struct graph *graph = NULL;
    ck_ms_ok(strcmp(name, "layers") == 0
                 ? network_parse(case_layers, strlen(case_layers), name, name, &network, err)
                 : network_by_name(name, &network, err));
    ck_ms_ok(network_build(network, &input, loss, &graph, err));
    network_destroy(network);
    return graph;
}

#endif
