/* rewrite.c - a copying pass over a graph before it is differentiated */
#include "libworker/graph/rewrite.h"

#include "libworker/graph/graph_impl.h"

#include <stdlib.h>
#include <string.h>

struct pass {
    const struct graph *from;
    const struct rewrite *rewrite;
    struct graph *to;
    int *map; /* per tensor of `from`: what it has become; -1: a statistic, which nobody reads */
};

int rewrite_keep_leaf(const struct graph *from, int tensor, struct graph *to, struct ms_err *err)
{
    const struct tensor *t = graph_tensor(from, tensor);
    switch (t->role) {
    case TENSOR_DATA:
        return graph_data(to, t->name, &t->shape, err);
    case TENSOR_LABEL:
        return graph_label(to, t->name, &t->shape, t->dtype, err);
    case TENSOR_PARAM:
        return graph_param(to, t->name, &t->shape, t->init, err);
    case TENSOR_STATE:
        return graph_state(to, t->name, &t->shape, t->init, t->momentum, err);
    case TENSOR_VALUE:
    case TENSOR_STAT:
    case TENSOR_GRAD:
        break;
    }
    return ms_fail(err, MS_E_INVALID, "graph %s: %s is no leaf, an op makes it", from->name,
                   t->name);
}

int rewrite_keep(const struct rewrite_op *site, struct graph *to, struct ms_err *err)
{
    struct op op = *site->op;
    memcpy(op.in, site->in, sizeof(op.in));
    return graph_apply(to, &op, err);
}

/* Is it a tensor of the new graph that may stand for one of these roles? */
static int check_tensor(const struct pass *pass, int tensor, int is_leaf, struct ms_err *err)
{
    if (tensor >= pass->to->n_tensors) {
        return ms_fail(err, MS_E_INVALID, "it became tensor %d of %d", tensor, pass->to->n_tensors);
    }
    const struct tensor *t = pass->to->tensors[tensor];
    int is_value = t->role == TENSOR_VALUE || t->role == TENSOR_DATA;
    return is_leaf || is_value
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "it became %s, which is no value", t->name);
}

static int copy_leaf(struct pass *pass, int tensor, struct ms_err *err)
{
    const struct rewrite *rewrite = pass->rewrite;
    int made = rewrite->leaf == NULL
                   ? rewrite_keep_leaf(pass->from, tensor, pass->to, err)
                   : rewrite->leaf(rewrite->arg, pass->from, tensor, pass->to, err);
    int rc = made < 0 ? made : check_tensor(pass, made, 1, err);
    pass->map[tensor] = made;
    return rc < 0 ? ms_err_prefix(err, "graph %s: rewrite %s of %s", pass->from->name,
                                  rewrite->name, pass->from->tensors[tensor]->name)
                  : MS_OK;
}

static int copy_op(struct pass *pass, int index, struct ms_err *err)
{
    const struct rewrite *rewrite = pass->rewrite;
    const struct op *op = pass->from->ops[index];
    struct rewrite_op site = {.from = pass->from, .index = index, .op = op};
    for (int i = 0; i < GRAPH_OP_TENSORS_MAX; i++) {
        site.in[i] = i < op->n_in ? pass->map[op->in[i]] : -1;
    }
    int made = rewrite->op == NULL ? rewrite_keep(&site, pass->to, err)
                                   : rewrite->op(rewrite->arg, &site, pass->to, err);
    int rc = made < 0 ? made : check_tensor(pass, made, 0, err);
    pass->map[op->out[0]] = made;
    return rc < 0 ? ms_err_prefix(err, "graph %s: rewrite %s of op %d %s", pass->from->name,
                                  rewrite->name, index, op_row(op->kind)->name)
                  : MS_OK;
}

/* Tensors are in the order in which leaves and ops were added. */
static int copy_all(struct pass *pass, struct ms_err *err)
{
    const struct graph *from = pass->from;
    int rc = MS_OK;
    for (int t = 0; t < from->n_tensors && rc == MS_OK; t++) {
        int producer = from->tensors[t]->producer;
        pass->map[t] = -1;
        if (producer < 0) {
            rc = copy_leaf(pass, t, err);
        } else if (from->ops[producer]->out[0] == t) {
            rc = copy_op(pass, producer, err);
        }
    }
    return rc;
}

static int copy_marks(const struct pass *pass, struct ms_err *err)
{
    const struct graph *from = pass->from;
    int rc = from->loss < 0 ? MS_OK : graph_set_loss(pass->to, pass->map[from->loss], err);
    if (rc == MS_OK && from->output >= 0) {
        rc = graph_set_output(pass->to, pass->map[from->output], err);
    }
    return rc < 0 ? ms_err_prefix(err, "rewrite %s", pass->rewrite->name) : MS_OK;
}

int graph_copy_with(const struct graph *graph, const struct rewrite *rewrite, struct graph **ret,
                    struct ms_err *err)
{
    if (graph->n_forward_ops >= 0) {
        return ms_fail(err, MS_E_INVALID,
                       "graph %s: rewrite %s after graph_differentiate; rewrite before it",
                       graph->name, rewrite->name);
    }
    struct pass pass = {.from = graph,
                        .rewrite = rewrite,
                        .to = graph_create(graph->name),
                        .map = malloc(((size_t)graph->n_tensors + 1) * sizeof(*pass.map))};
    int rc = pass.to != NULL && pass.map != NULL
                 ? copy_all(&pass, err)
                 : ms_fail(err, MS_E_NOMEM, "graph %s: no memory to rewrite it", graph->name);
    rc = rc < 0 ? rc : copy_marks(&pass, err);
    free(pass.map);
    if (rc < 0) {
        graph_destroy(pass.to);
        return rc;
    }
    *ret = pass.to;
    return MS_OK;
}
