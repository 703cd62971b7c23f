/* lower_resample.c - images of another size: to our kernel, in the layout that they have */
#include "libworker/plan/lowering.h"

static enum kernel_resample_by by_of(const struct op *op)
{
    static const enum kernel_resample_by modes[] = {
        [UPSAMPLE_NEAREST] = KERNEL_NEAREST,
        [UPSAMPLE_LINEAR] = KERNEL_LINEAR,
        [UPSAMPLE_LINEAR_CORNERS] = KERNEL_LINEAR_CORNERS,
    };
    return op->kind == OP_PAD || op->kind == OP_PAD_BWD ? KERNEL_PAD : modes[op->mode];
}

/* Forward and backward: both read one value, and make one of the other size. */
int lower_resample(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int is_backward = op->forward >= 0;
    int rc = lower_channels(lo, index, op->in[0], err);
    if (rc < 0) {
        return rc;
    }
    const struct plan_value *from = &lo->values[op->in[0]];
    const struct shape *in = &graph_tensor(plan->graph, op->in[0])->shape;
    const struct shape *out = &graph_tensor(plan->graph, op->out[0])->shape;
    const struct shape *x = is_backward ? out : in;
    const struct shape *y = is_backward ? in : out;
    const struct dn_md *md = dn_md(plan->dn, plan->precision, 4, out->dim, dn_md_tag(from->md));
    rc = md == NULL ? dn_md_fail(err) : emit_value(lo, op->out[0], md, err);
    struct step *step = rc < 0
                            ? NULL
                            : emit_step(plan, is_backward ? STEP_RESAMPLE_BACKWARD : STEP_RESAMPLE,
                                        index, ELT_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = from->md;
    step->operands[ELT_A] = from->at;
    step->operands[ELT_B] = (struct operand){PLACE_NONE, 0};
    step->operands[ELT_Y] = lo->values[op->out[0]].at;
    const struct kernel_layout of_in = emit_bn_layout(from->md);
    const struct kernel_layout of_out = emit_bn_layout(md);
    step->resample = (struct kernel_resample){.by = by_of(op),
                                              .of_x = is_backward ? of_out : of_in,
                                              .of_y = is_backward ? of_in : of_out,
                                              .h = x->dim[2],
                                              .w = x->dim[3],
                                              .y_h = y->dim[2],
                                              .y_w = y->dim[3],
                                              .top = op->window.pad_top,
                                              .left = op->window.pad_left};
    step->count = dn_md_count(is_backward ? from->md : md);
    return 0;
}
