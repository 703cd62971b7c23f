/* lower_softmax.c - softmax and its gradient, to our kernel: rows, or channels last */
#include "libworker/plan/lowering.h"

/* Both kinds: of a, and in backward b, in this layout. */
static int emit_softmax(struct lowering *lo, int index, enum step_kind kind, struct operand a,
                        struct operand b, const struct dn_md *md, struct ms_err *err)
{
    const int out = graph_op(lo->plan->graph, index)->out[0];
    const struct kernel_layout layout = lower_pixel_layout(lo->plan, out, md);
    return emit_by_channels(lo, index, kind, a, b, md, &layout, err);
}

int lower_softmax(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int n_dims = graph_tensor(plan->graph, op->in[0])->shape.n_dims;
    int rc = 0;
    if (n_dims == 2 && n_dims != dn_md_n_dims(lo->values[op->in[0]].md)) {
        rc = lower_rows(lo, index, op->in[0], err);
    } else if (n_dims == DN_IMAGE_DIMS) {
        rc = lower_pixels(lo, index, op->in[0], err);
    }
    const struct plan_value *x = &lo->values[op->in[0]];
    const struct operand none = {PLACE_NONE, 0};
    lo->sources[index] = x->md;
    return rc < 0 ? rc : emit_softmax(lo, index, STEP_SOFTMAX, x->at, none, x->md, err);
}

int lower_softmax_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct dn_md *md = lo->sources[op->forward];
    const struct plan_value *y = &lo->values[op->in[0]]; /* a reader may have put it elsewhere */
    const struct plan_value *dy = &lo->values[op->in[1]];
    struct operand a, b;
    int rc = emit_as(plan, index, y->at, y->md, md, &a, err);
    rc = rc < 0 ? rc : emit_as(plan, index, dy->at, dy->md, md, &b, err);
    return rc < 0 ? rc : emit_softmax(lo, index, STEP_SOFTMAX_BACKWARD, a, b, md, err);
}
