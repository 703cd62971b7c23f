/* cost.c - products that ops sum up, and what a run of them reads and makes */
#include "libworker/graph/cost.h"

#include "libworker/graph/graph_impl.h"

#include <assert.h>

static int64_t count_of(const struct graph *graph, int tensor)
{
    return shape_count(&graph->tensors[tensor]->shape);
}

/* ---- of an op ---- */

/* Of y (or its gradient) every element is a sum over a row of w. */
static double products(const struct graph *graph, int y, int w)
{
    const double rows = (double)graph->tensors[w]->shape.dim[0];
    return (double)count_of(graph, y) * (double)count_of(graph, w) / rows;
}

double graph_products_forward(const struct graph *graph, const struct op *op)
{
    return products(graph, op->out[0], op->in[1]);
}

double graph_products_of_data(const struct graph *graph, const struct op *op)
{
    return products(graph, op->in[0], op->in[1]);
}

double graph_products_of_weights(const struct graph *graph, const struct op *op)
{
    return products(graph, op->in[1], op->out[0]);
}

double graph_products_of_transposed(const struct graph *graph, const struct op *op)
{
    return products(graph, op->in[0], op->out[0]);
}

double graph_no_products(const struct graph *graph, const struct op *op)
{
    (void)graph;
    (void)op;
    return 0;
}

double graph_bytes(const struct graph *graph, const struct op *op)
{
    double count = 0;
    for (int i = 0; i < op->n_in; i++) {
        count += op->in[i] >= 0 ? (double)count_of(graph, op->in[i]) : 0;
    }
    for (int i = 0; i < op->n_out; i++) {
        count += op->out[i] >= 0 ? (double)count_of(graph, op->out[i]) : 0;
    }
    return count * (double)ms_dtype_bytes(MS_F32);
}

/* ---- of several ---- */

static void add_inputs(const struct graph *graph, int index, struct graph_cost *sum)
{
    const struct op *op = graph->ops[index];
    for (int i = 0; i < op->n_in; i++) {
        const struct tensor *t = graph->tensors[op->in[i]];
        const int64_t count = t->reader == index ? count_of(graph, op->in[i]) : 0;
        sum->parameters += t->role == TENSOR_PARAM ? count : 0;
        sum->states += t->role == TENSOR_STATE ? count : 0;
    }
}

static void add_values(const struct graph *graph, const struct op *op, struct graph_cost *sum)
{
    for (int i = 0; i < op->n_out && !op_row(op->kind)->is_view; i++) {
        const int is_value = graph->tensors[op->out[i]]->role == TENSOR_VALUE;
        sum->values += is_value ? count_of(graph, op->out[i]) : 0;
    }
}

void graph_cost(const struct graph *graph, int first, int n, struct graph_cost *ret)
{
    struct graph_cost sum = {0};
    assert(first >= 0 && n >= 0 && first + n <= graph_n_forward_ops(graph));
    for (int i = first; i < first + n; i++) {
        const struct op *op = graph->ops[i];
        add_inputs(graph, i, &sum);
        add_values(graph, op, &sum);
        sum.products += op_row(op->kind)->products(graph, op);
    }
    *ret = sum;
}
