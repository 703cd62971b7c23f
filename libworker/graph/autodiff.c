/* autodiff.c - appends the backward ops of the loss, in reverse order of the forward ops
 *
 * A tensor's gradient is complete when every op that reads it (and leads to the loss) has given its
 * share; shares are added by OP_SUM as they arrive. Because forward ops are in execution order, all
 * readers of an op's output come after it: walking back, the gradient is complete when the op is
 * met. Gradients of weights come before gradients of data: their bucket can leave earlier. */
#include "libworker/graph/graph_impl.h"

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

/* Which inputs of a forward op a gradient can flow into: a bit an input. */
static unsigned differentiable(enum op_kind kind)
{
    switch (kind) {
    case OP_BATCH_NORM: /* x, gamma, beta; not the moving states */
    case OP_DENSE:
        return 7;
    case OP_CONV2D:
    case OP_ADD:
        return 3;
    default: /* the losses' labels get none */
        return 1;
    }
}

static int wants(const struct tape *tape, const struct op *op, int slot)
{
    return (differentiable(op->kind) >> slot & 1U) != 0 && tape->wanted[op->in[slot]];
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
            tape->wanted[op->out[0]] |= (unsigned char)wants(tape, op, slot);
        }
    }
    tape->shares[graph->loss] = 1;
    for (int i = graph->n_ops - 1; i >= 0; i--) {
        const struct op *op = graph->ops[i];
        for (int slot = 0; slot < op->n_in && tape->shares[op->out[0]] > 0; slot++) {
            tape->shares[op->in[slot]] += wants(tape, op, slot);
        }
    }
}

static int append(struct tape *tape, enum op_kind kind, int forward, const int *in)
{
    int op = graph_append_op(tape->graph, kind, in, tape->err);
    if (op >= 0 && forward >= 0) {
        const struct op *source = tape->graph->ops[forward];
        tape->graph->ops[op]->forward = forward;
        tape->graph->ops[op]->window = source->window;
        tape->graph->ops[op]->epsilon = source->epsilon;
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
static int give(struct tape *tape, int x, int share)
{
    tape->shares[x]--;
    if (tape->grad[x] < 0) {
        tape->grad[x] = share;
        return MS_OK;
    }
    const int in[] = {tape->grad[x], share};
    int op = append(tape, OP_SUM, -1, in);
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

/* Output `slot` of backward op is the share for the forward op's input `x_slot`, if it is wanted.
 */
static int output(struct tape *tape, int op, int slot, int x_slot)
{
    const struct op *forward = tape->graph->ops[tape->graph->ops[op]->forward];
    if (!wants(tape, forward, x_slot)) {
        return MS_OK;
    }
    int x = forward->in[x_slot];
    int only = tape->shares[x] == 1 && tape->grad[x] < 0;
    int share = append_share(tape, op, slot, x, only);
    return share < 0 ? share : give(tape, x, share);
}

/* One backward op with one output, for input x_slot; nothing if nobody wants it. */
static int simple(struct tape *tape, enum op_kind kind, int forward, const int *in, int x_slot)
{
    if (!wants(tape, tape->graph->ops[forward], x_slot)) {
        return MS_OK;
    }
    int op = append(tape, kind, forward, in);
    return op < 0 ? op : output(tape, op, 0, x_slot);
}

static int back_conv2d(struct tape *tape, int i, const struct op *op, int dy)
{
    const int for_weights[] = {op->in[0], dy};
    const int for_data[] = {dy, op->in[1]};
    int rc = simple(tape, OP_CONV2D_BWD_WEIGHTS, i, for_weights, 1);
    return rc < 0 ? rc : simple(tape, OP_CONV2D_BWD_DATA, i, for_data, 0);
}

static int back_batch_norm(struct tape *tape, int i, const struct op *op, int dy)
{
    const int in[] = {op->in[0], dy, op->in[1], op->out[1], op->out[2], op->in[2]};
    int back = append(tape, OP_BATCH_NORM_BWD, i, in);
    int rc = back;
    for (int slot = 0; slot < 3 && rc >= 0; slot++) {
        rc = output(tape, back, slot, slot);
    }
    return rc;
}

static int back_dense(struct tape *tape, int i, const struct op *op, int dy)
{
    const int for_weights[] = {op->in[0], dy};
    const int for_data[] = {dy, op->in[1]};
    int back = append(tape, OP_DENSE_BWD_WEIGHTS, i, for_weights);
    int rc = back;
    for (int slot = 0; slot < 2 && rc >= 0; slot++) {
        rc = output(tape, back, slot, slot + 1);
    }
    return rc < 0 ? rc : simple(tape, OP_DENSE_BWD_DATA, i, for_data, 0);
}

static int back_add(struct tape *tape, const struct op *op, int dy)
{
    int rc = MS_OK;
    for (int slot = 0; slot < 2 && rc >= 0; slot++) {
        if (wants(tape, op, slot)) {
            rc = give(tape, op->in[slot], dy); /* both inputs read the same tensor: no copy */
        }
    }
    return rc;
}

static int back(struct tape *tape, int i)
{
    const struct op *op = tape->graph->ops[i];
    int x = op->in[0];
    int y = op->out[0];
    int dy = tape->grad[y]; /* -1 for the losses: their gradient with respect to themselves is 1 */
    switch (op->kind) {
    case OP_CONV2D:
        return back_conv2d(tape, i, op, dy);
    case OP_BATCH_NORM:
        return back_batch_norm(tape, i, op, dy);
    case OP_RELU:
        return simple(tape, OP_RELU_BWD, i, (const int[]){y, dy}, 0);
    case OP_ADD:
        return back_add(tape, op, dy);
    case OP_MAX_POOL:
        return simple(tape, OP_MAX_POOL_BWD, i, (const int[]){x, y, dy}, 0);
    case OP_AVG_POOL:
        return simple(tape, OP_AVG_POOL_BWD, i, (const int[]){dy}, 0);
    case OP_FLATTEN:
        return simple(tape, OP_FLATTEN_BWD, i, (const int[]){dy}, 0);
    case OP_DENSE:
        return back_dense(tape, i, op, dy);
    case OP_SOFTMAX_CE:
        return simple(tape, OP_SOFTMAX_CE_BWD, i, op->in, 0);
    case OP_MSE:
        return simple(tape, OP_MSE_BWD, i, op->in, 0);
    default:
        return ms_fail(tape->err, MS_E_UNSUPPORTED, "graph %s: no backward rule for %s",
                       tape->graph->name, op_traits(op->kind)->name);
    }
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
