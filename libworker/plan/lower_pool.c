/* lower_pool.c - max pooling that our own loops do faster than oneDNN (kernel/pool.h) */
#include "libworker/plan/lowering.h"

/* Channels innermost, square windows side by side, no padding. */
static int applies(const struct op *op, const struct dn_md *md)
{
    const struct op_window *w = &op->window;
    enum dn_tag tag = dn_md_tag(md);
    int is_known = tag == DN_NCHW16C || tag == DN_NCHW8C || tag == DN_NHWC;
    int is_tiled = w->kernel_h == w->kernel_w && w->stride_h == w->kernel_h &&
                   w->stride_w == w->kernel_h && w->kernel_h <= POOL_KERNEL_MAX;
    return is_known && is_tiled && op->kind == OP_MAX_POOL && w->pad_top == 0 && w->pad_left == 0 &&
           w->pad_bottom == 0 && w->pad_right == 0;
}

static struct pool_shape shape_of(const struct op *op, const struct dn_md *md)
{
    struct kernel_layout layout = emit_bn_layout(md);
    return (struct pool_shape){.planes = layout.n * layout.n_blocks,
                               .h = dn_md_dims(md)[2],
                               .w = dn_md_dims(md)[3],
                               .block = layout.block,
                               .kernel = op->window.kernel_h};
}

static const struct dn_md *output_md(struct plan *plan, const struct op *op, const struct dn_md *md)
{
    const struct shape *y = &graph_tensor(plan->graph, op->out[0])->shape;
    return dn_md(plan->dn, dn_md_dtype(md), y->n_dims, y->dim, dn_md_tag(md));
}

static int emit_pool(struct plan *plan, enum step_kind kind, int index, const struct dn_md *x,
                     const struct operand *operands, struct ms_err *err)
{
    struct step *step = emit_step(plan, kind, index, POOL_OUT + 1, err);
    if (step == NULL) {
        return MS_E_NOMEM;
    }
    for (int k = 0; k <= POOL_OUT; k++) {
        step->operands[k] = operands[k];
    }
    const struct op *op = graph_op(plan->graph, index);
    step->src = x;
    step->pool = shape_of(op->forward < 0 ? op : graph_op(plan->graph, op->forward), x);
    return 1;
}

int lower_own_pool(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct plan_value x = lo->values[op->in[0]];
    if (!applies(op, x.md)) {
        return 0;
    }
    const struct dn_md *y = output_md(plan, op, x.md);
    int rc = y == NULL ? dn_md_fail(err) : emit_value(lo, op->out[0], y, err);
    int places = rc < 0 ? rc : emit_buffer(plan, MS_U8, dn_md_count(y), err);
    if (places < 0) {
        return places;
    }
    lo->workspaces[index] = places;
    lo->sources[index] = x.md;
    struct operand operands[] = {{PLACE_ARENA, places}, x.at, lo->values[op->out[0]].at};
    return emit_pool(plan, STEP_MAX_POOL, index, x.md, operands, err);
}

int lower_own_pool_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    const struct dn_md *x = lo->sources[op->forward];
    if (op->kind != OP_MAX_POOL_BWD || x == NULL) {
        return 0;
    }
    const struct plan_value *dy = &lo->values[op->in[2]];
    struct operand operands[POOL_OUT + 1] = {{PLACE_ARENA, lo->workspaces[op->forward]}};
    int rc =
        emit_as(plan, index, dy->at, dy->md, output_md(plan, forward, x), &operands[POOL_IN], err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], x, err);
    operands[POOL_OUT] = lo->values[op->out[0]].at;
    return rc < 0 ? rc : emit_pool(plan, STEP_MAX_POOL_BACKWARD, index, x, operands, err);
}
