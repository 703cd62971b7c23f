/* dtype.c - what the elements of a graph's tensors are, by the precision of a plan
 *
 * A graph says what a number means (a real, a class), its plan how it is kept. What is summed over
 * steps or ranks stays f32 at every precision: parameters, gradients, statistics. */
#include "libworker/plan/internal.h"

#include <assert.h>

enum ms_dtype plan_dtype(enum ms_dtype precision, enum tensor_role role)
{
    switch (role) {
    case TENSOR_DATA:
    case TENSOR_VALUE:
        return precision;
    case TENSOR_LABEL: /* reals; class numbers are what the graph says */
    case TENSOR_PARAM:
    case TENSOR_STATE:
    case TENSOR_STAT:
    case TENSOR_GRAD:
        break;
    }
    return MS_F32;
}

static int check_tensor(const struct graph *graph, enum ms_dtype precision, int index,
                        struct ms_err *err)
{
    const struct tensor *tensor = graph_tensor(graph, index);
    int is_class = tensor->role == TENSOR_LABEL && tensor->dtype == MS_I32;
    enum ms_dtype dtype =
        tensor->dtype == MS_F32 ? plan_dtype(precision, tensor->role) : tensor->dtype;
    return is_class || dtype == MS_F32
               ? 0
               : ms_fail(err, MS_E_UNSUPPORTED,
                         "tensor %s of graph %s would be %s; this version computes with %s only: "
                         "take precision fp32",
                         tensor->name, graph_name(graph), ms_dtype_name(dtype),
                         ms_dtype_name(MS_F32));
}

int plan_set_dtypes(struct plan *plan, enum ms_dtype precision, struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < graph_n_tensors(plan->graph) && rc == 0; i++) {
        rc = check_tensor(plan->graph, precision, i, err);
    }
    plan->precision = precision;
    plan->weights_dtype = plan_dtype(precision, TENSOR_PARAM);
    plan->stats_dtype = plan_dtype(precision, TENSOR_STAT);
    plan->exchange_dtype = plan_dtype(precision, TENSOR_GRAD);
    assert(plan->exchange_dtype == plan->stats_dtype); /* one buffer holds both */
    return rc;
}
