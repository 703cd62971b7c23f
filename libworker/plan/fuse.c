/* fuse.c - which ops run in one step
 *
 *     forward    conv | dense -> relu           post-op of the primitive
 *                bn -> relu                     one pass
 *                bn -> add -> relu, bn -> add   one pass, the other summand is its residual
 *                add -> relu                    one pass
 *     backward   relu_bwd -> bn_bwd             the mask is applied inside
 *     loss       loss, its gradient             one pass
 *
 * An op joins its producer only where nobody else reads the tensor between them. */
#include "libworker/plan/ops.h"

#include <stdlib.h>

struct readers { /* of one tensor */
    int count, first;
};

static void count_readers(const struct plan *plan, int n_ops, struct readers *readers)
{
    for (int i = 0; i < graph_n_tensors(plan->graph); i++) {
        readers[i] = (struct readers){0, -1};
    }
    for (int i = 0; i < n_ops; i++) {
        const struct op *op = graph_op(plan->graph, i);
        for (int k = 0; k < op->n_in; k++) {
            struct readers *r = &readers[op->in[k]];
            r->first = r->count == 0 ? i : r->first;
            r->count++;
        }
    }
}

/* The op of this kind that alone reads the tensor, or -1. */
static int only_reader(const struct plan *plan, const struct readers *readers, int tensor,
                       enum op_kind kind)
{
    const struct readers *r = &readers[tensor];
    return r->count == 1 && graph_op(plan->graph, r->first)->kind == kind ? r->first : -1;
}

void fuse_relu(struct lowering *lo, const struct readers *readers, int op)
{
    struct plan *plan = lo->plan;
    struct fusion *fusion = &lo->fusions[op];
    fusion->relu = only_reader(plan, readers, fusion->out, OP_RELU);
    if (fusion->relu >= 0) {
        lo->fusions[fusion->relu].skip = 1;
        fusion->out = graph_op(plan->graph, fusion->relu)->out[0];
    }
}

static void join_add(struct lowering *lo, const struct readers *readers, int op_index)
{
    struct plan *plan = lo->plan;
    struct fusion *fusion = &lo->fusions[op_index];
    int index = only_reader(plan, readers, fusion->out, OP_ADD);
    if (index < 0 || lo->fusions[index].skip) {
        return;
    }
    const struct op *add = graph_op(plan->graph, index);
    int other = add->in[0] == fusion->out ? add->in[1] : add->in[0];
    if (graph_tensor(plan->graph, other)->producer > op_index) {
        return; /* not there yet when this op runs: the other summand may take the add */
    }
    fusion->add = index;
    fusion->residual = other;
    fusion->out = add->out[0];
    lo->fusions[index].skip = 1;
}

void fuse_batch_norm(struct lowering *lo, const struct readers *readers, int op)
{
    join_add(lo, readers, op);
    fuse_relu(lo, readers, op);
}

void fuse_mask(struct lowering *lo, const struct readers *readers, int op_index)
{
    struct plan *plan = lo->plan;
    const struct op *relu_bwd = graph_op(plan->graph, op_index);
    const struct readers *r = &readers[relu_bwd->out[0]];
    if (r->count == 0) {
        return;
    }
    const struct op *bn_bwd = graph_op(plan->graph, r->first);
    if (bn_bwd->kind != OP_BATCH_NORM_BWD || bn_bwd->in[1] != relu_bwd->out[0]) {
        return;
    }
    const struct fusion *forward = &lo->fusions[bn_bwd->forward];
    struct fusion *fusion = &lo->fusions[r->first];
    int own = forward->relu == relu_bwd->forward && forward->add < 0;
    fusion->relu_bwd = op_index;
    fusion->mask = own && r->count == 1 ? 1 : 2;
    fusion->keep_dz = r->count > 1;
    lo->fusions[op_index].skip = 1;
}

void fuse_loss(struct lowering *lo, const struct readers *readers, int op_index)
{
    const struct op *op = graph_op(lo->plan->graph, op_index);
    (void)readers;
    lo->fusions[op->forward].gradient = op->out[0];
    lo->fusions[op_index].skip = 1;
}

int plan_fuse(struct lowering *lo, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    int n_all = graph_n_ops(plan->graph);
    int n_ops = plan->training ? n_all : plan->n_forward_ops;
    struct readers *readers = malloc(((size_t)graph_n_tensors(plan->graph) + 1) * sizeof(*readers));
    lo->fusions = calloc((size_t)n_all + 1, sizeof(*lo->fusions));
    if (readers == NULL || lo->fusions == NULL) {
        free(readers);
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d ops", n_all);
    }
    count_readers(plan, n_ops, readers);
    for (int i = 0; i < n_all; i++) {
        lo->fusions[i] = (struct fusion){.relu = -1, .add = -1, .residual = -1, .relu_bwd = -1};
        lo->fusions[i].gradient = -1;
        lo->fusions[i].out = graph_op(plan->graph, i)->out[0];
    }
    for (int i = 0; i < n_ops; i++) {
        const struct plan_op *row = plan_op(graph_op(plan->graph, i)->kind);
        if (row->fuse != NULL && !lo->fusions[i].skip) {
            row->fuse(lo, readers, i);
        }
    }
    free(readers);
    return 0;
}
