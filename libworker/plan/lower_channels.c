/* lower_channels.c - channels that are taken or moved, and a token before others: to our kernel
 *
 * A row of tokens is one of t c channels, so that a token before them is channels before them. */
#include "libworker/plan/lowering.h"

static const struct shape *shape_of(const struct plan *plan, int tensor)
{
    return &graph_tensor(plan->graph, tensor)->shape;
}

/* The tensor's own layout of that name; of a sequence its own. */
static const struct dn_md *own_layout(struct plan *plan, int tensor, enum dn_tag tag)
{
    const struct shape *shape = shape_of(plan, tensor);
    return shape_is_sequence(shape)
               ? lower_sequence_md(plan, tensor)
               : dn_md(plan->dn, plan->precision, shape->n_dims, shape->dim, tag);
}

/* As the kernel counts channels: those of the tensor, whatever the layout has; of sequences those
 * of each token. */
static struct kernel_layout layout_of(const struct plan *plan, int tensor, const struct dn_md *md)
{
    const struct shape *shape = shape_of(plan, tensor);
    struct kernel_layout layout = emit_bn_layout(md);
    layout.channels = shape->dim[shape_is_sequence(shape) ? 2 : 1];
    return layout;
}

/* The op's output, in a layout, from what it reads. fill: PLACE_NONE: zeros. */
static int emit_channels(struct lowering *lo, int index, const struct dn_md *md,
                         const struct kernel_channels *channels, struct operand fill,
                         struct operand y, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct plan_value *x = &lo->values[graph_op(plan->graph, index)->in[0]];
    struct step *step = emit_step(plan, STEP_CHANNELS, index, ELT_Y + 1, err);
    if (step == NULL) {
        return MS_E_NOMEM;
    }
    step->src = x->md;
    step->operands[ELT_A] = x->at;
    step->operands[ELT_B] = fill;
    step->operands[ELT_Y] = y;
    step->channels = *channels;
    step->count = dn_md_count(md);
    return 0;
}

/* Forward and backward: both read one value, and make one of its kind. */
int lower_moved(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int is_backward = op->forward >= 0;
    const int is_slice = op->kind == OP_SLICE || op->kind == OP_SLICE_BWD;
    const int64_t groups = !is_slice && op->groups > 0 ? op->groups : 1;
    int rc = lower_channels(lo, index, op->in[0], err);
    if (rc < 0) {
        return rc;
    }
    const struct dn_md *from = lo->values[op->in[0]].md;
    const struct dn_md *md = own_layout(plan, op->out[0], dn_md_tag(from));
    rc = md == NULL ? dn_md_fail(err) : emit_value(lo, op->out[0], md, err);
    if (rc < 0) {
        return rc;
    }
    struct kernel_channels channels = {.x = layout_of(plan, op->in[0], from),
                                       .y = layout_of(plan, op->out[0], md),
                                       .first = is_backward ? -op->first : op->first};
    channels.groups = is_backward ? channels.x.channels / groups : groups;
    channels.groups = is_slice ? 1 : channels.groups;
    const struct operand none = {PLACE_NONE, 0};
    return emit_channels(lo, index, md, &channels, none, lo->values[op->out[0]].at, err);
}

/* ---- a token before others ---- */

/* A sample as a row. */
static struct kernel_layout row_of(const struct plan *plan, int tensor)
{
    const int64_t *dim = shape_of(plan, tensor)->dim;
    const int64_t size = dim[1] * dim[2];
    return (struct kernel_layout){dim[0], 1, 1, size, size};
}

int lower_class_token(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int64_t size = shape_of(plan, op->in[0])->dim[2];
    const struct dn_md *md = own_layout(plan, op->out[0], DN_PLAIN);
    const struct kernel_channels channels = {.x = row_of(plan, op->in[0]),
                                             .y = row_of(plan, op->out[0]),
                                             .first = op->forward >= 0 ? size : -size,
                                             .groups = 1};
    struct operand token = {PLACE_NONE, 0};
    int rc = md == NULL ? dn_md_fail(err) : emit_value(lo, op->out[0], md, err);
    if (rc == 0 && op->forward < 0) {
        rc = lower_plain_weight(plan, op->in[1], &token, err);
    }
    return rc < 0 ? rc
                  : emit_channels(lo, index, md, &channels, token, lo->values[op->out[0]].at, err);
}

/* The first tokens as rows, and their sum. */
int lower_class_token_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int param = plan->param_of[graph_op(plan->graph, op->forward)->in[1]];
    const int64_t *dim = shape_of(plan, op->in[0])->dim;
    const int64_t dims[2] = {dim[0], dim[2]};
    const struct dn_md *md = dn_md(plan->dn, plan->precision, 2, dims, DN_PLAIN);
    const struct kernel_layout rows = {dim[0], 1, 1, dim[2], dim[2]};
    const struct kernel_channels channels = {
        .x = row_of(plan, op->in[0]), .y = rows, .first = 0, .groups = 1};
    const struct operand none = {PLACE_NONE, 0};
    struct operand dw;
    const int taken = md == NULL ? dn_md_fail(err) : emit_buffer_for(plan, md, err);
    const struct operand at = {PLACE_ARENA, taken};
    int rc = taken < 0 ? taken : emit_channels(lo, index, md, &channels, none, at, err);
    rc = rc < 0 ? rc : lower_param_gradient(lo, op->out[0], param, &dw, err);
    const int scratch = rc < 0 ? rc : emit_buffer(plan, MS_U8, kernel_bias_scratch(&rows), err);
    struct step *step =
        scratch < 0 ? NULL : emit_step(plan, STEP_BIAS_BACKWARD, index, ELT_Y + 1, err);
    if (step == NULL) {
        return scratch < 0 ? scratch : MS_E_NOMEM;
    }
    step->src = md;
    step->operands[ELT_A] = at;
    step->operands[ELT_B] = (struct operand){PLACE_ARENA, scratch};
    step->operands[ELT_Y] = dw;
    step->layout = rows;
    step->count = dn_md_count(md);
    return 0;
}
