/* lower_recurrent.c - recurrent cells: a kernel of ours, around oneDNN's products
 *
 * oneDNN's own primitives want tokens before samples, merge an LSTM's two biases, and have bits
 * that depend on the team. What a layer makes of its input is a dense layer before this. */
#include "libworker/plan/lowering.h"

static enum kernel_cell cell_of(const struct op *op)
{
    return op->kind == OP_LSTM       ? CELL_LSTM
           : op->kind == OP_GRU      ? CELL_GRU
           : op->kind == OP_RNN_TANH ? CELL_TANH
                                     : CELL_RELU;
}

static struct kernel_recurrent sizes_of(const struct plan *plan, const struct op *op)
{
    const int64_t *d = graph_tensor(plan->graph, op->out[0])->shape.dim;
    return (struct kernel_recurrent){.n = d[0],
                                     .tokens = d[1],
                                     .width = d[2],
                                     .cell = cell_of(op),
                                     .is_reversed = op->is_reversed};
}

static int emit_arena(struct plan *plan, enum ms_dtype dtype, size_t count, struct operand *ret,
                      struct ms_err *err)
{
    const int buffer = emit_buffer(plan, dtype, count, err);
    *ret = (struct operand){PLACE_ARENA, buffer};
    return buffer < 0 ? buffer : 0;
}

static int emit_scratch(struct plan *plan, const struct kernel_recurrent *sizes, int is_backward,
                        struct operand *ret, struct ms_err *err)
{
    const size_t bytes = kernel_recurrent_scratch(sizes, is_backward, plan->threads);
    return emit_arena(plan, MS_U8, bytes, ret, err);
}

/* What backward reads beside the result; an evaluation keeps nothing. */
static int emit_kept(struct lowering *lo, int op, const struct kernel_recurrent *sizes,
                     struct operand *ret, struct ms_err *err)
{
    *ret = (struct operand){PLACE_NONE, 0};
    const int64_t floats = sizes->n * sizes->tokens * kernel_recurrent_kept(sizes);
    if (!lo->plan->training || floats == 0) {
        return 0;
    }
    int rc = emit_arena(lo->plan, MS_F32, (size_t)floats, ret, err);
    lo->workspaces[op] = ret->index;
    return rc;
}

int lower_recurrent(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct kernel_recurrent sizes = sizes_of(plan, op);
    const struct dn_md *md = lower_sequence_md(plan, op->out[0]);
    struct operand params[2] = {{PLACE_NONE, 0}, {PLACE_NONE, 0}};
    struct operand kept, scratch;
    int rc = md == NULL ? dn_md_fail(err) : 0;
    for (int i = 1; i < op->n_in && rc == 0; i++) {
        rc = lower_plain_weight(plan, op->in[i], &params[i - 1], err);
    }
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], md, err);
    rc = rc < 0 ? rc : emit_scratch(plan, &sizes, 0, &scratch, err);
    rc = rc < 0 ? rc : emit_kept(lo, index, &sizes, &kept, err);
    struct step *step = rc < 0 ? NULL : emit_step(plan, STEP_RECURRENT, index, RNN_BIAS + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = md;
    step->recurrent = sizes;
    step->operands[RNN_X] = lo->values[op->in[0]].at;
    step->operands[RNN_Y] = lo->values[op->out[0]].at;
    step->operands[RNN_KEPT] = kept;
    step->operands[RNN_SCRATCH] = scratch;
    step->operands[RNN_WEIGHT] = params[0];
    step->operands[RNN_BIAS] = params[1];
    return 0;
}

int lower_recurrent_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    const struct kernel_recurrent sizes = sizes_of(plan, forward);
    const struct dn_md *md = lower_sequence_md(plan, forward->in[0]);
    struct operand gradients[2] = {{PLACE_NONE, 0}, {PLACE_NONE, 0}};
    struct operand dx, scratch;
    int rc = md == NULL ? dn_md_fail(err) : lower_dx(lo, op->out[0], md, &dx, err);
    for (int i = 1; i < forward->n_in && rc == 0; i++) {
        rc = lower_param_gradient(lo, op->out[i], plan->param_of[forward->in[i]], &gradients[i - 1],
                                  err);
    }
    rc = rc < 0 ? rc : emit_scratch(plan, &sizes, 1, &scratch, err);
    struct step *step =
        rc < 0 ? NULL : emit_step(plan, STEP_RECURRENT_BACKWARD, index, RNNB_DBIAS + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = md;
    step->recurrent = sizes;
    step->operands[RNN_Y] = lo->values[op->in[1]].at;
    if (kernel_recurrent_kept(&sizes) > 0) {
        step->operands[RNN_KEPT] = (struct operand){PLACE_ARENA, lo->workspaces[op->forward]};
    }
    step->operands[RNN_SCRATCH] = scratch;
    step->operands[RNN_WEIGHT] = (struct operand){PLACE_WEIGHTS, plan->param_of[op->in[3]]};
    step->operands[RNNB_DY] = lo->values[op->in[2]].at;
    step->operands[RNNB_DX] = dx;
    step->operands[RNNB_DWEIGHT] = gradients[0];
    step->operands[RNNB_DBIAS] = gradients[1];
    return 0;
}
