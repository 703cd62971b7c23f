/* leaves.c - what no op makes (data, labels, parameters, states), and the marks loss and output */
#include "libworker/graph/graph_impl.h"

#include <math.h>
#include <string.h>

int graph_check_open(const struct graph *graph, const char *what, struct ms_err *err)
{
    if (graph->n_forward_ops >= 0) {
        return ms_fail(err, MS_E_INVALID,
                       "graph %s: %s after graph_differentiate; add every forward op before it",
                       graph->name, what);
    }
    return MS_OK;
}

int graph_shape_bad(const struct shape *shape)
{
    if (shape->n_dims < 0 || shape->n_dims > GRAPH_DIMS_MAX) {
        return 1;
    }
    int64_t room = GRAPH_ELEMENTS_MAX;
    for (int i = 0; i < shape->n_dims; i++) {
        if (shape->dim[i] < 1 || shape->dim[i] > room) {
            return 1;
        }
        room /= shape->dim[i];
    }
    return 0;
}

static int leaf(struct graph *graph, const char *name, enum tensor_role role,
                const struct shape *shape, struct ms_err *err)
{
    int rc = graph_check_open(graph, name, err);
    if (rc < 0) {
        return rc;
    }
    if (name[0] == '\0' || strlen(name) >= GRAPH_NAME_MAX) {
        return ms_fail(err, MS_E_INVALID, "graph %s: the name '%s' must have 1 to %d characters",
                       graph->name, name, GRAPH_NAME_MAX - 1);
    }
    if (shape->n_dims < 1 || graph_shape_bad(shape)) {
        char text[96] = "";
        if (shape->n_dims >= 0 && shape->n_dims <= GRAPH_DIMS_MAX) {
            shape_format(shape, text, sizeof(text));
        }
        return ms_fail(err, MS_E_INVALID,
                       "graph %s: %s has the shape %s; wanted: 1 to %d dimensions, each at least "
                       "1, at most 2^40 elements",
                       graph->name, name, text, GRAPH_DIMS_MAX);
    }
    if ((role == TENSOR_PARAM || role == TENSOR_STATE) && graph_find(graph, name) >= 0) {
        return ms_fail(err, MS_E_EXISTS, "graph %s: there are two parameters named %s", graph->name,
                       name);
    }
    return graph_append_tensor(graph, name, role, shape, err);
}

int graph_data(struct graph *graph, const char *name, const struct shape *shape, struct ms_err *err)
{
    if (graph->data >= 0) {
        return ms_fail(err, MS_E_EXISTS, "graph %s: %s: the data is %s already", graph->name, name,
                       graph->tensors[graph->data]->name);
    }
    int index = leaf(graph, name, TENSOR_DATA, shape, err);
    if (index >= 0) {
        graph->data = index;
    }
    return index;
}

int graph_label(struct graph *graph, const char *name, const struct shape *shape,
                enum ms_dtype dtype, struct ms_err *err)
{
    if (graph->label >= 0) {
        return ms_fail(err, MS_E_EXISTS, "graph %s: %s: the label is %s already", graph->name, name,
                       graph->tensors[graph->label]->name);
    }
    int index = leaf(graph, name, TENSOR_LABEL, shape, err);
    if (index >= 0) {
        graph->tensors[index]->dtype = dtype;
        graph->label = index;
    }
    return index;
}

static int check_init(const struct graph *graph, const char *name, struct init init,
                      struct ms_err *err)
{
    if (init.kind <= INIT_NONE || init.kind > INIT_UNIFORM || !isfinite(init.a)) {
        return ms_fail(err, MS_E_INVALID, "graph %s: %s has no valid initialiser", graph->name,
                       name);
    }
    if ((init.kind == INIT_NORMAL || init.kind == INIT_UNIFORM) && init.a < 0) {
        return ms_fail(err, MS_E_INVALID, "graph %s: %s: the initialiser's width %g is negative",
                       graph->name, name, init.a);
    }
    return MS_OK;
}

int graph_param(struct graph *graph, const char *name, const struct shape *shape, struct init init,
                struct ms_err *err)
{
    int rc = check_init(graph, name, init, err);
    if (rc < 0) {
        return rc;
    }
    int index = leaf(graph, name, TENSOR_PARAM, shape, err);
    if (index >= 0) {
        graph->tensors[index]->init = init;
    }
    return index;
}

int graph_state(struct graph *graph, const char *name, const struct shape *shape, struct init init,
                double momentum, struct ms_err *err)
{
    int rc = check_init(graph, name, init, err);
    if (rc < 0) {
        return rc;
    }
    if (!(momentum >= 0 && momentum <= 1)) {
        return ms_fail(err, MS_E_INVALID, "graph %s: %s: momentum %g is outside 0 to 1",
                       graph->name, name, momentum);
    }
    int index = leaf(graph, name, TENSOR_STATE, shape, err);
    if (index >= 0) {
        graph->tensors[index]->init = init;
        graph->tensors[index]->momentum = momentum;
    }
    return index;
}

int graph_set_loss(struct graph *graph, int loss, struct ms_err *err)
{
    if (loss < 0) {
        return loss;
    }
    int rc = graph_check_open(graph, "graph_set_loss", err);
    if (rc < 0) {
        return rc;
    }
    int producer = loss < graph->n_tensors ? graph->tensors[loss]->producer : -1;
    if (producer < 0 || !op_row(graph->ops[producer]->kind)->is_loss) {
        return ms_fail(
            err, MS_E_INVALID, "graph %s: %s is no loss; the loss must come from softmax_ce or mse",
            graph->name, loss < graph->n_tensors ? graph->tensors[loss]->name : "(no tensor)");
    }
    graph->loss = loss;
    return MS_OK;
}

int graph_set_output(struct graph *graph, int logits, struct ms_err *err)
{
    if (logits < 0) {
        return logits;
    }
    int rc = graph_check_open(graph, "graph_set_output", err);
    if (rc < 0) {
        return rc;
    }
    if (logits >= graph->n_tensors || graph->tensors[logits]->role != TENSOR_VALUE) {
        return ms_fail(err, MS_E_INVALID, "graph %s: %s is no output; wanted: what an op made",
                       graph->name,
                       logits < graph->n_tensors ? graph->tensors[logits]->name : "(no tensor)");
    }
    graph->output = logits;
    return MS_OK;
}
