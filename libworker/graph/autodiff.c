/* autodiff.c - appends the backward ops of the loss, in reverse order of the forward ops
 *
 * A tensor's gradient is complete when every op that reads it (and leads to the loss) has given its
 * share; shares are added by OP_SUM as they arrive. Because forward ops are in execution order, all
 * readers of an op's output come after it: walking back, the gradient is complete when the op is
 * met. Gradients of weights come before gradients of data: their bucket can leave earlier. */
#include "libworker/graph/graph_impl.h"
#include "libworker/graph/tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tape {
    struct graph *graph;
    int n;                 /* forward tensors */
    unsigned char *wanted; /* a parameter lies at or before the tensor */
    int *shares;           /* gradients still to come; counts only ops that lead to the loss */
    int *grad;             /* gradient so far, -1: none yet */
    struct ms_err *err;
};

int tape_wants(const struct tape *tape, const struct op *op, int slot)
{
    return (op_row(op->kind)->differentiable >> slot & 1U) != 0 && tape->wanted[op->in[slot]];
}

static void mark(struct tape *tape)
{
    const struct graph *graph = tape->graph;
    for (int i = 0; i < tape->n; i++) {
        tape->wanted[i] = graph->tensors[i]->role == TENSOR_PARAM;
        tape->grad[i] = -1;
    }
    for (int i = 0; i < graph->n_ops; i++) {
        const struct op *op = graph->ops[i];
        for (int slot = 0; slot < op->n_in; slot++) {
            tape->wanted[op->out[0]] |= (unsigned char)tape_wants(tape, op, slot);
        }
    }
    tape->shares[graph->loss] = 1;
    for (int i = graph->n_ops - 1; i >= 0; i--) {
        const struct op *op = graph->ops[i];
        for (int slot = 0; slot < op->n_in && tape->shares[op->out[0]] > 0; slot++) {
            tape->shares[op->in[slot]] += tape_wants(tape, op, slot);
        }
    }
}

int tape_append(struct tape *tape, enum op_kind kind, int forward, const int *in)
{
    return tape_append_with(tape, kind, forward, op_row(kind)->n_in, in);
}

int tape_append_with(struct tape *tape, enum op_kind kind, int forward, int n_in, const int *in)
{
    int op = graph_append_op(tape->graph, kind, n_in, in, tape->err);
    if (op >= 0 && forward >= 0) {
        tape->graph->ops[op]->forward = forward;
        graph_copy_settings(tape->graph->ops[op], tape->graph->ops[forward]);
    }
    return op;
}

/* A tensor that holds a share of (or the whole) gradient of `x`, as output `slot` of op. */
static int append_share(struct tape *tape, int op, int slot, int x, int complete)
{
    const struct tensor *of = tape->graph->tensors[x];
    char name[2 * GRAPH_NAME_MAX];
    snprintf(name, sizeof(name), "d.%s", of->name);
    int is_grad = complete && of->role == TENSOR_PARAM;
    struct shape shape = of->shape;
    int index = graph_append_output(tape->graph, op, slot, name,
                                    is_grad ? TENSOR_GRAD : TENSOR_VALUE, &shape, tape->err);
    if (index >= 0 && is_grad) {
        tape->graph->tensors[index]->of = x;
        int rc = graph_append_gradient(tape->graph, index, tape->err);
        return rc < 0 ? rc : index;
    }
    return index;
}

/* Adds a share to x's gradient. The last share of all completes it. */
int tape_give(struct tape *tape, int x, int share)
{
    tape->shares[x]--;
    if (tape->grad[x] < 0) {
        tape->grad[x] = share;
        return MS_OK;
    }
    const int in[] = {tape->grad[x], share};
    int op = tape_append(tape, OP_SUM, -1, in);
    if (op < 0) {
        return op;
    }
    int sum = append_share(tape, op, 0, x, tape->shares[x] == 0);
    if (sum < 0) {
        return sum;
    }
    tape->grad[x] = sum;
    return MS_OK;
}

int tape_output(struct tape *tape, int op, int slot, int x_slot)
{
    const struct op *forward = tape->graph->ops[tape->graph->ops[op]->forward];
    if (!tape_wants(tape, forward, x_slot)) {
        return MS_OK;
    }
    int x = forward->in[x_slot];
    int only = tape->shares[x] == 1 && tape->grad[x] < 0;
    int share = append_share(tape, op, slot, x, only);
    return share < 0 ? share : tape_give(tape, x, share);
}

int tape_simple(struct tape *tape, enum op_kind kind, int forward, const int *in, int x_slot)
{
    if (!tape_wants(tape, tape->graph->ops[forward], x_slot)) {
        return MS_OK;
    }
    int op = tape_append(tape, kind, forward, in);
    return op < 0 ? op : tape_output(tape, op, 0, x_slot);
}

static int back(struct tape *tape, int i)
{
    const struct op *op = tape->graph->ops[i];
    const struct op_row *row = op_row(op->kind);
    if (row->gradient == NULL) {
        return ms_fail(tape->err, MS_E_UNSUPPORTED, "graph %s: no backward rule for %s",
                       tape->graph->name, row->name);
    }
    return row->gradient(tape, i, op, tape->grad[op->out[0]]);
}

static int check_all_reached(const struct tape *tape, struct ms_err *err)
{
    const struct graph *graph = tape->graph;
    for (int i = 0; i < graph->n_params; i++) {
        if (tape->grad[graph->params[i]] < 0) {
            return ms_fail(
                err, MS_E_INVALID,
                "graph %s: the loss does not depend on parameter %s; remove it or use it",
                graph->name, graph->tensors[graph->params[i]]->name);
        }
    }
    return MS_OK;
}

int graph_differentiate(struct graph *graph, struct ms_err *err)
{
    if (graph->n_forward_ops >= 0) {
        return ms_fail(err, MS_E_INVALID, "graph %s is differentiated already", graph->name);
    }
    if (graph->loss < 0) {
        return ms_fail(err, MS_E_INVALID, "graph %s has no loss; call graph_set_loss first",
                       graph->name);
    }
    int n_ops = graph->n_ops;
    int n = graph->n_tensors;
    struct tape tape = {.graph = graph, .n = n, .err = err};
    tape.wanted = calloc((size_t)n, sizeof(*tape.wanted));
    tape.shares = calloc((size_t)n, sizeof(*tape.shares));
    tape.grad = calloc((size_t)n, sizeof(*tape.grad));
    int rc = MS_OK;
    if (tape.wanted == NULL || tape.shares == NULL || tape.grad == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "graph %s: no memory to differentiate", graph->name);
        goto out;
    }
    mark(&tape);
    for (int i = n_ops - 1; i >= 0 && rc >= 0; i--) {
        if (tape.shares[graph->ops[i]->out[0]] == 0 && tape.grad[graph->ops[i]->out[0]] < 0) {
            continue; /* does not lead to the loss */
        }
        rc = back(&tape, i);
    }
    rc = rc < 0 ? rc : check_all_reached(&tape, err);
    if (rc < 0) {
        graph_truncate(graph, n, n_ops, 0);
    } else {
        graph->n_forward_ops = n_ops;
        rc = MS_OK;
    }
out:
    free(tape.wanted);
    free(tape.shares);
    free(tape.grad);
    return rc;
}
