/* lower_softmax.c - softmax and its gradient, to our kernel: rows, or channels last */
#include "libworker/plan/lowering.h"

/* Both kinds: of a, and in backward b, in this layout. */
static int emit_softmax(struct lowering *lo, int index, enum step_kind kind, struct operand a,
                        struct operand b, const struct dn_md *md, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    int rc = emit_value(lo, op->out[0], md, err);
    struct step *step = rc < 0 ? NULL : emit_step(plan, kind, index, ELT_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = md;
    step->operands[ELT_A] = a;
    step->operands[ELT_B] = b;
    step->operands[ELT_Y] = lo->values[op->out[0]].at;
    step->layout = lower_pixel_layout(plan, op->out[0], md);
    step->count = lo->values[op->out[0]].count;
    return 0;
}

int lower_softmax(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int n_dims = graph_tensor(plan->graph, op->in[0])->shape.n_dims;
    int rc = 0;
    if (n_dims != dn_md_n_dims(lo->values[op->in[0]].md)) {
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
