/* op_norm.c - batch normalisation and its gradient */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

#include <math.h>
#include <stdio.h>

int graph_check_epsilon(const struct graph *graph, const struct op *op, struct ms_err *err)
{
    return op->epsilon > 0 && isfinite(op->epsilon)
               ? MS_OK
               : graph_fail_op(graph, op, err, "epsilon %g must be above 0", op->epsilon);
}

static int infer_batch_norm(const struct graph *graph, const struct op *op, struct shape *ret,
                            struct ms_err *err)
{
    const struct shape *images = &graph->tensors[op->in[0]]->shape;
    if (images->n_dims != 4) {
        return graph_fail_op(graph, op, err, "the input must be images (n, c, h, w)");
    }
    for (int i = 1; i < 5; i++) {
        const struct tensor *vector = graph->tensors[op->in[i]];
        if (vector->shape.n_dims != 1 || vector->shape.dim[0] != images->dim[1]) {
            return graph_fail_op(
                graph, op, err, "the images have %lld channels, so %s must be (%lld)",
                (long long)images->dim[1], vector->name, (long long)images->dim[1]);
        }
    }
    *ret = *images;
    return graph_check_epsilon(graph, op, err);
}

/* Batch mean (slot 1) or variance (slot 2). */
static int append_stat(struct graph *graph, int op, int slot, int state, struct ms_err *err)
{
    const struct tensor *y = graph->tensors[graph->ops[op]->out[0]];
    struct shape shape = {1, {y->shape.dim[1]}};
    char name[2 * GRAPH_NAME_MAX];
    snprintf(name, sizeof(name), "%s.%s", y->name, slot == 1 ? "batch_mean" : "batch_variance");
    int index = graph_append_output(graph, op, slot, name, TENSOR_STAT, &shape, err);
    if (index < 0) {
        return index;
    }
    struct tensor *stat = graph->tensors[index];
    stat->of = state;
    stat->is_variance = slot == 2;
    stat->stat_count = y->shape.dim[0] * y->shape.dim[2] * y->shape.dim[3];
    return MS_OK;
}

static int append_stats(struct graph *graph, int op, struct ms_err *err)
{
    const int *in = graph->ops[op]->in;
    int rc = append_stat(graph, op, 1, in[3], err);
    return rc < 0 ? rc : append_stat(graph, op, 2, in[4], err);
}

static int gradient_batch_norm(struct tape *tape, int index, const struct op *op, int dy)
{
    const int in[] = {op->in[0], dy, op->in[1], op->out[1], op->out[2], op->in[2]};
    int back = tape_append(tape, OP_BATCH_NORM_BWD, index, in);
    int rc = back;
    for (int slot = 0; slot < 3 && rc >= 0; slot++) {
        rc = tape_output(tape, back, slot, slot);
    }
    return rc;
}

static const struct op_row rows[] = {
    {.kind = OP_BATCH_NORM,
     .name = "batch_norm",
     .n_in = 5,
     .n_out = 3,
     .wants = "vppss",
     .differentiable = 7, /* x, gamma, beta; not the moving states */
     .infer = infer_batch_norm,
     .outputs = append_stats,
     .gradient = gradient_batch_norm,
     .products = graph_no_products,
     .page = "Batch normalisation with gamma, beta and moving statistics."},
    {.kind = OP_BATCH_NORM_BWD,
     .name = "batch_norm_bwd",
     .n_in = 6,
     .n_out = 3,
     .products = graph_no_products,
     .page = OP_NOT_FOR_USERS},
};
const struct op_family op_norm = {rows, MS_ARRAY_SIZE(rows)};

int graph_batch_norm(struct graph *graph, int x, int gamma, int beta, int moving_mean,
                     int moving_variance, double epsilon, struct ms_err *err)
{
    const struct op op = {.kind = OP_BATCH_NORM,
                          .in = {x, gamma, beta, moving_mean, moving_variance},
                          .epsilon = epsilon};
    return graph_apply(graph, &op, err);
}
