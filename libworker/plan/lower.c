/* lower.c - forward ops to steps, except those with weights
 *
 * Layouts travel with the values: nothing is reordered unless an op cannot read what is there. */
#include "libworker/plan/lowering.h"

#include <stdlib.h>

void lower_window(const struct op *op, struct dn_spec *spec)
{
    const struct op_window *w = &op->window;
    spec->kernel[0] = w->kernel_h;
    spec->kernel[1] = w->kernel_w;
    spec->stride[0] = w->stride_h;
    spec->stride[1] = w->stride_w;
    spec->pad_begin[0] = w->pad_top;
    spec->pad_begin[1] = w->pad_left;
    spec->pad_end[0] = w->pad_bottom;
    spec->pad_end[1] = w->pad_right;
    spec->gap[0] = w->gap_h;
    spec->gap[1] = w->gap_w;
}

int lower_relayout(struct lowering *lo, int op, int tensor, const struct dn_md *to,
                   struct ms_err *err)
{
    struct plan *plan = lo->plan;
    struct plan_value *value = &lo->values[tensor];
    struct operand at;
    int rc = emit_as(plan, op, value->at, value->md, to, &at, err);
    if (rc == 0 && emit_padded(plan, value->md) != emit_padded(plan, to)) {
        *value = emit_at(at, to);
    }
    return rc;
}

/* The gradient of what was flattened may be rows still, whose bytes are the image's in C order. */
static int take_image(struct lowering *lo, int tensor, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    struct plan_value *value = &lo->values[tensor];
    const struct shape *shape = &graph_tensor(plan->graph, tensor)->shape;
    if (shape->n_dims != DN_IMAGE_DIMS || dn_md_n_dims(value->md) == DN_IMAGE_DIMS) {
        return 0;
    }
    const struct dn_md *image =
        dn_md(plan->dn, dn_md_dtype(value->md), DN_IMAGE_DIMS, shape->dim, DN_PLAIN);
    if (image == NULL) {
        return dn_md_fail(err);
    }
    *value = emit_at(value->at, image);
    return 0;
}

int lower_known_layout(struct lowering *lo, int op, int tensor, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    int rc = take_image(lo, tensor, err);
    const struct dn_md *md = lo->values[tensor].md;
    if (rc < 0 || dn_md_tag(md) != DN_OTHER) {
        return rc;
    }
    const struct dn_md *to = dn_md_as(plan->dn, md, DN_NCHW16C);
    to = to != NULL ? to : dn_md_as(plan->dn, md, DN_PLAIN);
    return to == NULL ? dn_md_fail(err) : lower_relayout(lo, op, tensor, to, err);
}

int lower_channels(struct lowering *lo, int index, int tensor, struct ms_err *err)
{
    const int n_dims = graph_tensor(lo->plan->graph, tensor)->shape.n_dims;
    return n_dims == 2 && n_dims < dn_md_n_dims(lo->values[tensor].md)
               ? lower_rows(lo, index, tensor, err)
               : lower_known_layout(lo, index, tensor, err);
}

int lower_clear_padding(struct lowering *lo, int tensor, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct plan_value *y = &lo->values[tensor];
    struct step *step = emit_step(plan, STEP_CLEAR_PADDING, -1, 1, err);
    if (step == NULL) {
        return MS_E_NOMEM;
    }
    step->operands[0] = y->at;
    step->layout = lower_sample_layout(plan, tensor, y->md);
    return 0;
}

static struct operand vector_of(const struct plan *plan, enum place place, int tensor)
{
    return (struct operand){place, plan->param_of[tensor]};
}

int lower_batch_norm(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct fusion *fusion = &lo->fusions[index];
    int rc = lower_known_layout(lo, index, op->in[0], err);
    if (rc < 0) {
        return rc;
    }
    const struct dn_md *md = lo->values[op->in[0]].md;
    struct operand residual = {PLACE_NONE, 0};
    if (fusion->residual >= 0) {
        const struct plan_value *other = &lo->values[fusion->residual];
        rc = emit_as(plan, index, other->at, other->md, md, &residual, err);
    }
    rc = rc < 0 ? rc : emit_value(lo, fusion->out, md, err);
    const struct kernel_layout layout = emit_bn_layout(md);
    struct operand scratch = {PLACE_NONE, 0};
    int training = plan->training;
    rc = rc < 0 || !training ? rc : emit_bn_scratch(plan, &layout, &scratch, err);
    struct step *step = rc < 0 ? NULL
                               : emit_step(plan, training ? STEP_BN_TRAIN : STEP_BN_APPLY, index,
                                           BN_SCRATCH + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    enum place stats = training ? PLACE_STATS : PLACE_MOVING;
    step->src = md;
    step->operands[BN_X] = lo->values[op->in[0]].at;
    step->operands[BN_GAMMA] = vector_of(plan, PLACE_WEIGHTS, op->in[1]);
    step->operands[BN_BETA] = vector_of(plan, PLACE_WEIGHTS, op->in[2]);
    step->operands[BN_MEAN] = (struct operand){stats, plan->stat_of[op->out[1]]};
    step->operands[BN_VARIANCE] = (struct operand){stats, plan->stat_of[op->out[2]]};
    step->operands[BN_RESIDUAL] = residual;
    step->operands[BN_Y] = lo->values[fusion->out].at;
    step->operands[BN_SCRATCH] = scratch;
    step->layout = layout;
    step->epsilon = op->epsilon;
    step->relu = fusion->relu >= 0;
    return 0;
}

int lower_elementwise(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct fusion *fusion = &lo->fusions[index];
    const struct plan_value a = lo->values[op->in[0]];
    struct operand b = {PLACE_NONE, 0};
    int rc = 0;
    if (op->n_in == 2) {
        const struct plan_value *other = &lo->values[op->in[1]];
        rc = emit_as(plan, index, other->at, other->md, a.md, &b, err);
    }
    rc = rc < 0 ? rc : emit_value(lo, fusion->out, a.md, err);
    enum step_kind kind = op->kind == OP_RELU    ? STEP_RELU
                          : op->kind == OP_RELU6 ? STEP_RELU6
                          : op->kind != OP_ADD   ? STEP_MUL
                          : fusion->relu >= 0    ? STEP_ADD_RELU
                                                 : STEP_ADD;
    struct step *step = rc < 0 ? NULL : emit_step(plan, kind, index, ELT_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = a.md;
    step->operands[ELT_A] = a.at;
    step->operands[ELT_B] = b;
    step->operands[ELT_Y] = lo->values[fusion->out].at;
    step->count = a.count;
    return 0;
}

/* Forward and backward are one kernel; in evaluation it is no step at all. */
int lower_dropout(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    if (!plan->training) {
        return lower_same(lo, index, err);
    }
    int rc = lower_known_layout(lo, index, op->in[0], err);
    if (rc < 0) {
        return rc;
    }
    const struct plan_value x = lo->values[op->in[0]];
    const struct operand none = {PLACE_NONE, 0};
    const struct kernel_layout layout = lower_sample_layout(plan, op->out[0], x.md);
    return emit_by_channels(lo, index, STEP_DROPOUT, x.at, none, x.md, &layout, err);
}

int lower_pool(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct plan_value x = lo->values[op->in[0]];
    int own = lower_own_pool(lo, index, err);
    if (own != 0) {
        return own < 0 ? own : 0;
    }
    const struct shape *shape = &graph_tensor(plan->graph, op->out[0])->shape;
    struct dn_spec spec = {.kind = op->kind == OP_MAX_POOL ? DN_MAX_POOL_FWD : DN_AVG_POOL_FWD,
                           .src = x.md,
                           .dst =
                               dn_md(plan->dn, plan->precision, shape->n_dims, shape->dim, DN_ANY),
                           .inference = !plan->training};
    lower_window(op, &spec);
    struct dn_pd *pd = NULL;
    int rc = spec.dst == NULL   ? dn_md_fail(err)
             : lo->spec != NULL ? lower_obey(lo, index, &spec, &pd, err)
                                : lower_only(plan, &spec, &pd, err);
    if (rc < 0) {
        return rc;
    }
    lo->hints[index] = pd;
    struct operand args[DN_ROLES] = {[DN_SRC] = x.at};
    const struct dn_md *workspace = dn_pd_md(plan->dn, pd, DN_WORKSPACE);
    if (workspace != NULL) {
        int buffer = emit_buffer_for(plan, workspace, err);
        args[DN_WORKSPACE] = (struct operand){PLACE_ARENA, buffer};
        lo->workspaces[index] = buffer;
        rc = buffer < 0 ? buffer : 0;
    }
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], dn_pd_md(plan->dn, pd, DN_DST), err);
    args[DN_DST] = lo->values[op->out[0]].at;
    return rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
}

int lower_loss(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    int gradient = lo->fusions[index].gradient;
    const struct shape *shape = &graph_tensor(plan->graph, op->in[0])->shape;
    const struct plan_value *logits = &lo->values[op->in[0]];
    const int64_t columns = shape->dim[shape->n_dims - 1];
    int64_t dims[2] = {shape_count(shape) / columns, columns}; /* of sequences a row a token */
    const struct dn_md *rows = dn_md(plan->dn, plan->precision, 2, dims, DN_PLAIN);
    if (rows == NULL) {
        return dn_md_fail(err);
    }
    struct operand at;
    int rc = emit_as(plan, index, logits->at, logits->md, rows, &at, err);
    if (rc == 0 && gradient >= 0) {
        rc = emit_value(lo, gradient, rows, err);
    }
    const enum step_kind kind = op->kind == OP_MSE     ? STEP_MSE
                                : op->kind == OP_L1    ? STEP_L1
                                : op->kind == OP_HUBER ? STEP_HUBER
                                : op->kind == OP_BCE   ? STEP_BCE
                                                       : STEP_SOFTMAX_CE;
    struct step *step = rc < 0 ? NULL : emit_step(plan, kind, index, LOSS_GRADIENT + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = rows;
    step->operands[LOSS_LOGITS] = at;
    step->operands[LOSS_LABELS] = lo->values[op->in[1]].at;
    if (gradient >= 0) {
        step->operands[LOSS_GRADIENT] = lo->values[gradient].at;
    }
    step->rows = dims[0];
    step->columns = dims[1];
    return 0;
}

/* The same bytes under another shape: see lower_dense. A sequence and what it was flattened to are
 * rows of other lengths. */
int lower_same(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct shape *to = &graph_tensor(plan->graph, op->out[0])->shape;
    const int is_from = shape_is_sequence(&graph_tensor(plan->graph, op->in[0])->shape);
    lo->values[op->out[0]] = lo->values[op->in[0]];
    if (is_from == shape_is_sequence(to)) {
        return 0;
    }
    const struct dn_md *md = is_from ? dn_md(plan->dn, plan->precision, 2, to->dim, DN_PLAIN)
                                     : lower_sequence_md(plan, op->out[0]);
    if (md == NULL) {
        return dn_md_fail(err);
    }
    lo->values[op->out[0]] = emit_at(lo->values[op->in[0]].at, md);
    return 0;
}
