/* gradients.h - gradients of a graph against central differences of its loss, in double
 *
 * With a step of 1e-6 the error of the difference is about 1e-9, so a wrong factor anywhere shows.
 */
#ifndef TESTS_GRADIENTS_H
#define TESTS_GRADIENTS_H

#include "proto/rng.h"
#include "tests/ref_graph.h"
#include "tests/test.h"

#include <math.h>

/* Fills data and labels (or targets) with numbers of a stream. */
static inline void gradients_fill_batch(struct ref_graph *run, const struct graph *graph)
{
    int data = graph_data_index(graph);
    const int64_t words = ref_graph_words(graph);
    const struct tensor *target = graph_tensor(graph, graph_label_index(graph));
    for (int64_t i = 0; i < shape_count(&graph_tensor(graph, data)->shape); i++) {
        ref_graph_values(run, data)[i] = words > 0
                                             ? (double)ms_rng_below(3, (uint64_t)i, (uint64_t)words)
                                             : 2 * ms_rng_unit(3, (uint64_t)i) - 1;
    }
    const struct shape *output = &graph_tensor(graph, graph_output(graph))->shape;
    const int64_t classes = output->dim[output->n_dims - 1];
    int32_t labels[64];
    for (int64_t i = 0; i < shape_count(&target->shape); i++) {
        if (target->dtype == MS_F32) {
            ref_graph_values(run, graph_label_index(graph))[i] = ms_rng_unit(4, (uint64_t)i);
        } else {
            labels[i] = (int32_t)ms_rng_below(4, (uint64_t)i, (uint64_t)classes);
        }
    }
    if (target->dtype == MS_I32) {
        ref_graph_set_labels(run, labels);
    }
}

static inline double gradients_loss_with(struct ref_graph *run, double *value, double changed)
{
    double kept = *value;
    *value = changed;
    ref_graph_run_forward(run);
    *value = kept;
    return ref_graph_loss(run);
}

/* Every gradient of a differentiated graph at up to `samples` elements each. */
static inline void ck_gradients(const struct graph *graph, int samples)
{
    struct ref_graph *run = ref_graph_create(graph);
    ck_assert_ptr_nonnull(run);
    ck_assert_int_eq(ref_graph_init(run, 5), MS_OK);
    gradients_fill_batch(run, graph);
    ref_graph_run(run);
    ck_assert_int_eq(graph_n_gradients(graph), graph_n_params(graph));

    for (int i = 0; i < graph_n_gradients(graph); i++) {
        const struct tensor *grad = graph_tensor(graph, graph_gradient(graph, i));
        ck_assert_int_eq(grad->role, TENSOR_GRAD);
        ck_assert(shape_equal(&grad->shape, &graph_tensor(graph, grad->of)->shape));
        int64_t count = shape_count(&grad->shape);
        for (int64_t s = 0; s < samples && s < count; s++) {
            int64_t at =
                count <= samples ? s : (int64_t)ms_rng_below(9, (uint64_t)s, (uint64_t)count);
            double *value = &ref_graph_values(run, grad->of)[at];
            double got = ref_graph_values(run, graph_gradient(graph, i))[at];
            double step = 1e-6;
            double want = (gradients_loss_with(run, value, *value + step) -
                           gradients_loss_with(run, value, *value - step)) /
                          (2 * step);
            ck_assert_msg(fabs(got - want) < 1e-7 + 1e-5 * fabs(want),
                          "%s [%lld]: %.12g, want %.12g", grad->name, (long long)at, got, want);
        }
    }
    ref_graph_destroy(run);
}

#endif
