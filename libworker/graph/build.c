/* build.c - appends a forward op by its row: roles of its inputs, its shape rule, its name */
#include "libworker/graph/graph_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *role_name(char want)
{
    switch (want) {
    case 'd':
        return "the data";
    case 'p':
        return "a parameter";
    case 's':
        return "a moving state";
    case 'i':
        return "an integer label";
    case 'f':
        return "a float target";
    case 'l':
        return "a label";
    default:
        return "the data or the output of an op";
    }
}

static int role_fits(const struct tensor *tensor, char want)
{
    switch (want) {
    case 'd':
        return tensor->role == TENSOR_DATA;
    case 'p':
        return tensor->role == TENSOR_PARAM;
    case 's':
        return tensor->role == TENSOR_STATE;
    case 'l':
        return tensor->role == TENSOR_LABEL;
    case 'i':
        return tensor->role == TENSOR_LABEL && tensor->dtype == MS_I32;
    case 'f':
        return tensor->role == TENSOR_LABEL && tensor->dtype == MS_F32;
    default:
        return tensor->role == TENSOR_DATA || tensor->role == TENSOR_VALUE;
    }
}

int graph_fail_op(const struct graph *graph, const struct op *op, struct ms_err *err,
                  const char *fmt, ...)
{
    char reason[MS_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);

    char inputs[MS_ERR_TEXT_MAX] = "";
    size_t used = 0;
    for (int i = 0; i < op->n_in && used < sizeof(inputs); i++) {
        const struct tensor *tensor = graph->tensors[op->in[i]];
        char shape[96];
        int n = snprintf(inputs + used, sizeof(inputs) - used, "%s%s %s", i > 0 ? ", " : "",
                         tensor->name, shape_format(&tensor->shape, shape, sizeof(shape)));
        used += n > 0 ? (size_t)n : 0;
    }
    return ms_fail(err, MS_E_INVALID, "graph %s: %s: %s; inputs: %s", graph->name,
                   op_row(op->kind)->name, reason, inputs);
}

int graph_check_bias(const struct graph *graph, const struct op *op, int64_t size,
                     struct ms_err *err)
{
    const struct shape *bias = &graph->tensors[op->in[2]]->shape;
    return bias->n_dims == 1 && bias->dim[0] == size
               ? MS_OK
               : graph_fail_op(graph, op, err, "the bias must be (%lld)", (long long)size);
}

static int check_inputs(const struct graph *graph, const struct op_row *row, const struct op *op,
                        struct ms_err *err)
{
    const int n = op->n_in;
    if (n > row->n_in || n < row->n_in - row->n_optional) {
        return ms_fail(err, MS_E_INVALID, "graph %s: %s: %d inputs; it reads %d to %d", graph->name,
                       row->name, n, row->n_in - row->n_optional, row->n_in);
    }
    for (int i = 0; i < n; i++) {
        if (op->in[i] < 0) {
            return op->in[i]; /* err holds the text of the call that failed */
        }
        if (op->in[i] >= graph->n_tensors) {
            return ms_fail(err, MS_E_INVALID, "graph %s: %s: input %d is tensor %d of %d",
                           graph->name, row->name, i, op->in[i], graph->n_tensors);
        }
    }
    int rc = graph_check_open(graph, row->name, err);
    for (int i = 0; i < n && rc == MS_OK; i++) {
        const struct tensor *tensor = graph->tensors[op->in[i]];
        if (!role_fits(tensor, row->wants[i])) {
            rc = graph_fail_op(graph, op, err, "input %d (%s) must be %s", i, tensor->name,
                               role_name(row->wants[i]));
        }
    }
    return rc;
}

/* Name of what an op makes: "head.conv1" from head.conv1.weight, else "relu_12". */
static void value_name(const struct graph *graph, const struct op_row *row, const struct op *op,
                       char *buf, size_t size)
{
    int has_weight = row->wants[1] == 'p';
    const char *owner = has_weight ? graph->tensors[op->in[1]]->name : "";
    const char *dot = strrchr(owner, '.');
    if (dot != NULL && dot > owner) {
        snprintf(buf, size, "%.*s", (int)(dot - owner), owner);
    } else {
        snprintf(buf, size, "%s_%d", row->name, graph->n_ops);
    }
}

/* Appends the op with its outputs, output 0 of that shape; returns that tensor. */
static int append(struct graph *graph, const struct op_row *row, const struct op *want,
                  const struct shape *shape, struct ms_err *err)
{
    char name[GRAPH_NAME_MAX];
    value_name(graph, row, want, name, sizeof(name));
    int n_tensors = graph->n_tensors;
    int n_ops = graph->n_ops;
    int op = graph_append_op(graph, want->kind, want->n_in, want->in, err);
    if (op < 0) {
        return op;
    }
    graph_copy_settings(graph->ops[op], want);
    int out = graph_append_output(graph, op, 0, name, TENSOR_VALUE, shape, err);
    int rc = out < 0 || row->outputs == NULL ? out : row->outputs(graph, op, err);
    if (rc < 0) {
        graph_truncate(graph, n_tensors, n_ops, graph->n_gradients);
    }
    return rc < 0 ? rc : out;
}

int graph_apply(struct graph *graph, const struct op *wanted, struct ms_err *err)
{
    const struct op_row *row = op_row(wanted->kind);
    struct op op = *wanted;
    struct shape shape;
    op.n_in = op.n_in > 0 ? op.n_in : row->n_in - row->n_optional;
    if (op_is_backward(row)) {
        return ms_fail(err, MS_E_INVALID, "graph %s: %s is for graph_differentiate to append",
                       graph->name, row->name);
    }
    int rc = check_inputs(graph, row, &op, err);
    rc = rc < 0 ? rc : row->infer(graph, &op, &shape, err);
    if (rc == MS_OK && graph_shape_bad(&shape)) {
        rc = graph_fail_op(graph, &op, err, "the result has more than 2^40 elements");
    }
    return rc < 0 ? rc : append(graph, row, &op, &shape, err);
}
