/* step_time.c - how long a training step of a job may take on a core, and of which layers; pure */
#include "cli/step_time.h"

#include "proto/dtype.h"

#include <stdlib.h>

/* ---- the optimizer ---- */

/* Values that it keeps of each parameter (train/optimizer.c). */
static int slots_of(const struct job_optimizer *o)
{
    switch (o->kind) {
    case JOB_SGD:
        return 0;
    case JOB_MOMENTUM:
        return 1;
    case JOB_RMSPROP:
        return 1 + (o->centered != 0) + (o->momentum > 0);
    default:
        return 2;
    }
}

/* Read and written of each parameter that is trained. */
static double optimizer_values(const struct job *job)
{
    const struct job_optimizer *o = &job->optimizer;
    double values = 3 + 2 * slots_of(o);      /* the gradient, the weight and slots twice */
    values += o->kind == JOB_LAMB ? 3 : 0;    /* lengths before the step: weight and slots again */
    values += o->clip_norm > 0 ? 1 : 0;       /* the gradient's length before it */
    values += o->has_average ? 3 : 0;         /* the average twice, the weight */
    const int64_t sums = job->accumulate - 1; /* a gradient added to that of batches before */
    return values + 3 * (double)(sums > 0 ? sums : 0);
}

static size_t layer_of(const struct network_layers *layers, int op)
{
    size_t i = 0;
    while (i + 1 < layers->n && op >= layers->at[i + 1].first_op) {
        i++;
    }
    return i;
}

static void add_optimizer(const struct job *job, const struct network_layers *layers,
                          const struct graph *graph, const struct roofline *rates,
                          double *ret_seconds)
{
    const double bytes = optimizer_values(job) * (double)ms_dtype_bytes(MS_F32);
    for (int i = 0; i < graph_n_params(graph); i++) {
        const struct tensor *param = graph_tensor(graph, graph_param_at(graph, i));
        const struct job_group *group = job_group_of(job, param->name);
        if (group == NULL || !group->frozen) {
            ret_seconds[layer_of(layers, param->reader)] +=
                bytes * (double)shape_count(&param->shape) / rates->bytes_per_s;
        }
    }
}

/* ---- all of it ---- */

int cli_step_time(const struct job *job, const struct network_layers *layers,
                  const struct graph *graph, const struct roofline *rates, double *ret_seconds,
                  struct ms_err *err)
{
    const int n = graph_n_forward_ops(graph);
    double *of_ops = calloc((size_t)n + 1, sizeof(*of_ops));
    int rc = of_ops != NULL ? graph_roofline(graph, rates, of_ops, err)
                            : ms_fail(err, MS_E_NOMEM, "no memory for the time of %d ops", n);
    if (rc == MS_OK) {
        for (size_t i = 0; i < layers->n; i++) {
            ret_seconds[i] = 0;
        }
        for (int op = 0; op < n; op++) { /* those of the loss are behind all layers */
            ret_seconds[layer_of(layers, op)] += (double)job->accumulate * of_ops[op];
        }
        add_optimizer(job, layers, graph, rates, ret_seconds);
    }
    free(of_ops);
    return rc;
}
