/* lower_sequence.c - sequences: how they lie, what makes them, and attention
 *
 * A sequence (n, t, c) lies in C order as rows (n t, c), one a token: dense layers, norms of tokens
 * and losses take it as they take rows. */
#include "libworker/plan/lowering.h"

static const struct shape *shape_of(const struct plan *plan, int tensor)
{
    return &graph_tensor(plan->graph, tensor)->shape;
}

const struct dn_md *lower_sequence_md(struct plan *plan, int tensor)
{
    const int64_t *d = shape_of(plan, tensor)->dim;
    const int64_t rows[2] = {d[0] * d[1], d[2]};
    return dn_md(plan->dn, plan->precision, 2, rows, DN_PLAIN);
}

struct kernel_layout lower_sample_layout(const struct plan *plan, int tensor,
                                         const struct dn_md *md)
{
    const struct shape *shape = shape_of(plan, tensor);
    const int64_t size = shape_count(shape) / shape->dim[0];
    struct kernel_layout layout = {shape->dim[0], 1, 1, size, size};
    if (!shape_is_sequence(shape)) {
        layout = emit_bn_layout(md);
        layout.channels = size / layout.spatial;
    }
    return layout;
}

int lower_plain_weight(struct plan *plan, int tensor, struct operand *ret, struct ms_err *err)
{
    struct plan_param *param = &plan->params[plan->param_of[tensor]];
    const struct shape *shape = shape_of(plan, tensor);
    if (shape->n_dims > 1) {
        const struct dn_md *plain =
            dn_md(plan->dn, plan->weights_dtype, shape->n_dims, shape->dim, DN_PLAIN);
        if (plain == NULL) {
            return dn_md_fail(err);
        }
        lower_fix_param(param, plain);
        if (param->md != plain) {
            return ms_fail(err, MS_E_INVALID, "%s does not lie in C order",
                           graph_tensor(plan->graph, tensor)->name);
        }
    }
    *ret = (struct operand){PLACE_WEIGHTS, plan->param_of[tensor]};
    return 0;
}

/* ---- embedding ---- */

static void set_embedding(struct step *step, const struct shape *weight, int64_t tokens)
{
    step->rows = tokens;
    step->words = weight->dim[0];
    step->columns = weight->dim[1];
}

/* Its tokens are read where they came, in C order. */
int lower_embedding(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct dn_md *md = lower_sequence_md(plan, op->out[0]);
    struct operand weight = {PLACE_NONE, 0};
    int rc = md == NULL ? dn_md_fail(err) : lower_plain_weight(plan, op->in[1], &weight, err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], md, err);
    struct step *step =
        rc < 0 ? NULL : emit_step(plan, STEP_EMBEDDING, index, EMBEDDING_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = md;
    step->operands[EMBEDDING_TOKENS] = (struct operand){PLACE_DATA, 0};
    step->operands[EMBEDDING_WEIGHT] = weight;
    step->operands[EMBEDDING_Y] = lo->values[op->out[0]].at;
    set_embedding(step, shape_of(plan, op->in[1]), dn_md_dims(md)[0]);
    return 0;
}

int lower_embedding_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int weight = graph_op(plan->graph, op->forward)->in[1];
    const struct plan_value *dy = &lo->values[op->in[1]];
    struct operand dw;
    int rc = lower_param_gradient(lo, op->out[0], plan->param_of[weight], &dw, err);
    struct step *step =
        rc < 0 ? NULL : emit_step(plan, STEP_EMBEDDING_BACKWARD, index, EMBEDDING_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = dy->md;
    step->operands[EMBEDDING_TOKENS] = (struct operand){PLACE_DATA, 0};
    step->operands[EMBEDDING_WEIGHT] = dw;
    step->operands[EMBEDDING_Y] = dy->at;
    set_embedding(step, shape_of(plan, weight), dn_md_dims(dy->md)[0]);
    return 0;
}

/* ---- pixels ---- */

/* Images that are channels last are rows of pixels: the same bytes from there on. */
int lower_tokens(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int64_t *dim = shape_of(plan, op->in[0])->dim;
    const struct dn_md *pixels = dn_md(plan->dn, plan->precision, DN_IMAGE_DIMS, dim, DN_NHWC);
    const struct dn_md *rows = lower_sequence_md(plan, op->out[0]);
    const struct plan_value *x = &lo->values[op->in[0]];
    struct operand at;
    int rc = pixels == NULL || rows == NULL ? dn_md_fail(err)
                                            : emit_as(plan, index, x->at, x->md, pixels, &at, err);
    if (rc == 0) {
        lo->values[op->out[0]] = emit_at(at, rows);
    }
    return rc;
}

int lower_tokens_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int64_t *dim = shape_of(plan, op->out[0])->dim;
    const struct dn_md *pixels = dn_md(plan->dn, plan->precision, DN_IMAGE_DIMS, dim, DN_NHWC);
    if (pixels == NULL) {
        return dn_md_fail(err);
    }
    lo->values[op->out[0]] = emit_at(lo->values[op->in[0]].at, pixels);
    return 0;
}

/* ---- attention ---- */

static struct kernel_attention sizes_of(const struct plan *plan, const struct op *op)
{
    const int64_t *d = shape_of(plan, op->in[0])->dim;
    const int64_t heads = op->groups > 0 ? op->groups : 1;
    return (struct kernel_attention){.n = d[0],
                                     .tokens = d[1],
                                     .heads = heads,
                                     .width = d[2] / 3 / heads,
                                     .is_causal = op->is_causal,
                                     .rate = plan->training ? op->rate : 0};
}

static int emit_scratch(struct plan *plan, const struct kernel_attention *sizes, int is_backward,
                        struct operand *ret, struct ms_err *err)
{
    const size_t bytes = kernel_attention_scratch(sizes, is_backward, plan->threads);
    const int buffer = emit_buffer(plan, MS_U8, bytes, err);
    *ret = (struct operand){PLACE_ARENA, buffer};
    return buffer < 0 ? buffer : 0;
}

int lower_attention(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct kernel_attention sizes = sizes_of(plan, op);
    const struct dn_md *md = lower_sequence_md(plan, op->out[0]);
    struct operand scratch;
    int rc = md == NULL ? dn_md_fail(err) : emit_value(lo, op->out[0], md, err);
    rc = rc < 0 ? rc : emit_scratch(plan, &sizes, 0, &scratch, err);
    const size_t n_stats = 2 * (size_t)(sizes.n * sizes.heads * sizes.tokens);
    const int stats = rc < 0 ? rc : emit_buffer(plan, MS_F32, n_stats, err);
    struct step *step =
        stats < 0 ? NULL : emit_step(plan, STEP_ATTENTION, index, ATTENTION_Y + 1, err);
    if (step == NULL) {
        return stats < 0 ? stats : MS_E_NOMEM;
    }
    lo->workspaces[index] = stats;
    step->src = md;
    step->attention = sizes;
    step->operands[ATTENTION_X] = lo->values[op->in[0]].at;
    step->operands[ATTENTION_STATS] = (struct operand){PLACE_ARENA, stats};
    step->operands[ATTENTION_SCRATCH] = scratch;
    step->operands[ATTENTION_Y] = lo->values[op->out[0]].at;
    return 0;
}

int lower_attention_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct kernel_attention sizes = sizes_of(plan, graph_op(plan->graph, op->forward));
    const struct dn_md *md = lower_sequence_md(plan, op->in[0]);
    struct operand scratch;
    int rc = md == NULL ? dn_md_fail(err) : emit_value(lo, op->out[0], md, err);
    rc = rc < 0 ? rc : emit_scratch(plan, &sizes, 1, &scratch, err);
    struct step *step =
        rc < 0 ? NULL : emit_step(plan, STEP_ATTENTION_BACKWARD, index, ATTENTIONB_DX + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = md;
    step->attention = sizes;
    step->operands[ATTENTION_X] = lo->values[op->in[0]].at;
    step->operands[ATTENTION_STATS] = (struct operand){PLACE_ARENA, lo->workspaces[op->forward]};
    step->operands[ATTENTION_SCRATCH] = scratch;
    step->operands[ATTENTIONB_DY] = lo->values[op->in[1]].at;
    step->operands[ATTENTIONB_DX] = lo->values[op->out[0]].at;
    return 0;
}
