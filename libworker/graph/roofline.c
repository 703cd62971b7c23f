/* roofline.c - seconds of ops, whichever is longer: their arithmetic or their memory
 *
 * Bytes are those of tensors in fp32, each read or written once: caches are no part of it. What
 * runs inside what is known of the graph alone (plan/fuse.c decides it):
 *
 *     relu behind a convolution, a dense layer, a batch norm or an addition, which reads it alone
 *     addition behind a batch norm: it reads the other summand
 *     gradient of a relu, which is that of a batch norm's output
 *     gradient of a loss */
#include "libworker/graph/roofline.h"

#include "libworker/graph/cost.h"
#include "libworker/graph/graph_impl.h"

#include <assert.h>
#include <stdlib.h>

struct walk {
    const struct graph *graph;
    int *readers; /* ops that read each tensor */
    int *owners;  /* of each op the forward op that it counts for */
};

static enum op_kind producer_of(const struct graph *graph, int tensor)
{
    const int producer = graph->tensors[tensor]->producer;
    return producer >= 0 ? graph->ops[producer]->kind : OP_KINDS;
}

/* The summand of a batch norm that nobody else reads; the op that makes the other one is before it.
 */
static int is_joined(const struct walk *w, int norm, int other)
{
    const struct tensor *of_norm = w->graph->tensors[norm];
    return producer_of(w->graph, norm) == OP_BATCH_NORM && w->readers[norm] == 1 &&
           w->graph->tensors[other]->producer < of_norm->producer;
}

static int joins_batch_norm(const struct walk *w, const struct op *op)
{
    return op->kind == OP_ADD &&
           (is_joined(w, op->in[0], op->in[1]) || is_joined(w, op->in[1], op->in[0]));
}

static int takes_relu(enum op_kind kind)
{
    return kind == OP_CONV2D || kind == OP_DENSE || kind == OP_BATCH_NORM || kind == OP_ADD;
}

static int is_inside(const struct walk *w, const struct op *op)
{
    const struct graph *graph = w->graph;
    if (op->kind == OP_RELU) {
        return w->readers[op->in[0]] == 1 && takes_relu(producer_of(graph, op->in[0]));
    }
    if (op->kind == OP_RELU_BWD) {
        const int reader = op->out[0] >= 0 ? graph->tensors[op->out[0]]->reader : -1;
        return reader >= 0 && graph->ops[reader]->kind == OP_BATCH_NORM_BWD &&
               graph->ops[reader]->in[1] == op->out[0];
    }
    return op->forward >= 0 && op_row(graph->ops[op->forward]->kind)->is_loss;
}

static double bytes_of_tensor(const struct graph *graph, int tensor)
{
    return (double)shape_count(&graph->tensors[tensor]->shape) * (double)ms_dtype_bytes(MS_F32);
}

static double bytes_of_op(const struct walk *w, const struct op *op)
{
    const struct graph *graph = w->graph;
    const double all = graph_bytes(graph, op);
    if (op_row(op->kind)->is_view || is_inside(w, op)) {
        return 0;
    }
    if (joins_batch_norm(w, op)) {
        return bytes_of_tensor(graph, op->out[0]);
    }
    switch (op->kind) {
    case OP_BATCH_NORM: /* the statistics come first */
        return all + bytes_of_tensor(graph, op->in[0]);
    case OP_BATCH_NORM_BWD: /* dgamma and dbeta do */
        return all + bytes_of_tensor(graph, op->in[0]) + bytes_of_tensor(graph, op->in[1]);
    case OP_EMBEDDING: /* of the weight the rows of its tokens */
        return all - bytes_of_tensor(graph, op->in[1]) + bytes_of_tensor(graph, op->out[0]);
    default:
        return all;
    }
}

static void find_readers(struct walk *w)
{
    for (int i = 0; i < w->graph->n_ops; i++) {
        const struct op *op = w->graph->ops[i];
        for (int k = 0; k < op->n_in; k++) {
            w->readers[op->in[k]]++;
        }
    }
}

static void find_owners(struct walk *w)
{
    const struct graph *graph = w->graph;
    for (int i = 0; i < graph->n_ops; i++) {
        const struct op *op = graph->ops[i];
        w->owners[i] = i < graph->n_forward_ops ? i : op->forward;
        if (w->owners[i] < 0) { /* a sum of gradients: of two ops before it */
            assert(op->kind == OP_SUM && graph->tensors[op->in[1]]->producer < i);
            w->owners[i] = w->owners[graph->tensors[op->in[1]]->producer];
        }
    }
}

int graph_roofline(const struct graph *graph, const struct roofline *rates, double *ret_seconds,
                   struct ms_err *err)
{
    struct walk w = {.graph = graph};
    assert(graph->n_forward_ops >= 0 && rates->products_per_s > 0 && rates->bytes_per_s > 0);
    w.readers = calloc((size_t)graph->n_tensors + 1, sizeof(*w.readers));
    w.owners = calloc((size_t)graph->n_ops + 1, sizeof(*w.owners));
    int rc =
        w.readers != NULL && w.owners != NULL
            ? MS_OK
            : ms_fail(err, MS_E_NOMEM, "graph %s: no memory for %d ops", graph->name, graph->n_ops);
    if (rc == MS_OK) {
        find_readers(&w);
        find_owners(&w);
        for (int i = 0; i < graph->n_forward_ops; i++) {
            ret_seconds[i] = 0;
        }
        for (int i = 0; i < graph->n_ops; i++) {
            const struct op *op = graph->ops[i];
            const double compute = op_row(op->kind)->products(graph, op) / rates->products_per_s;
            const double memory = bytes_of_op(&w, op) / rates->bytes_per_s;
            ret_seconds[w.owners[i]] += compute > memory ? compute : memory;
        }
    }
    free(w.readers);
    free(w.owners);
    return rc;
}
