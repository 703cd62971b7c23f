/* lower_bwd.c - backward ops to steps */
#include "libworker/plan/lowering.h"

#include <string.h>

/* A gradient in the layout of the forward tensor that it belongs to. */
static int gradient_as(struct lowering *lo, int index, int dy, const struct dn_md *md,
                       struct operand *ret, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct plan_value *value = &lo->values[dy];
    return emit_as(plan, index, value->at, value->md, md, ret, err);
}

int lower_param_gradient(struct lowering *lo, int tensor, int param, struct operand *ret,
                         struct ms_err *err)
{
    struct plan *plan = lo->plan;
    if (tensor >= 0 && graph_tensor(plan->graph, tensor)->role == TENSOR_GRAD) {
        *ret = (struct operand){PLACE_EXCHANGE, param};
        return 0;
    }
    const struct plan_param *p = &plan->params[param];
    int buffer = emit_buffer(plan, plan->exchange_dtype, p->count, err);
    if (buffer < 0) {
        return buffer;
    }
    *ret = (struct operand){PLACE_ARENA, buffer};
    if (tensor >= 0) {
        lo->values[tensor] =
            (struct plan_value){*ret, plan->exchange_dtype, params_used(plan, p), p->md};
        lo->share_of[tensor] = param;
    }
    return 0;
}

/* That of the bias, where the layer has one. */
static int bias_gradient(struct lowering *lo, const struct op *forward, int db, struct operand *ret,
                         struct ms_err *err)
{
    return forward->n_in < 3
               ? 0
               : lower_param_gradient(lo, db, lo->plan->param_of[forward->in[2]], ret, err);
}

/* ---- convolution -------------------------------------------------------------------------------
 */

static int all_any(struct plan *plan, struct dn_spec *spec, struct ms_err *err)
{
    const struct dn_md **mds[] = {&spec->src, &spec->weights, &spec->dst};
    for (int i = 0; i < 3; i++) {
        *mds[i] = dn_md_as(plan->dn, *mds[i], DN_ANY);
        if (*mds[i] == NULL) {
            return dn_md_fail(err);
        }
    }
    return 0;
}

/* The first of given layouts, given with free weights, and all free that is as fast as all free.
 * weights_too: a layout of the weights is kept only for the very implementation of the free choice.
 */
static int pick(struct plan *plan, const struct dn_spec *given, const struct dn_spec *any,
                int free_weights, struct dn_pd **ret, struct ms_err *err)
{
    struct dn_spec half = *given;
    half.weights = any->weights;
    struct dn_pd *free_choice = lower_try(plan, any);
    const struct dn_spec *kept[2] = {given, &half};
    for (int i = 0; i < (free_weights ? 2 : 1); i++) {
        struct dn_pd *pd = lower_try(plan, kept[i]);
        int same = pd != NULL && free_choice != NULL &&
                   strcmp(dn_pd_impl(pd), dn_pd_impl(free_choice)) == 0;
        int better = pd != NULL &&
                     (free_choice == NULL || dn_pd_rank(pd) > dn_pd_rank(free_choice) ||
                      (dn_pd_rank(pd) == dn_pd_rank(free_choice) && (i == 1 || !free_weights)));
        if (same || better) {
            dn_pd_destroy(free_choice);
            *ret = pd;
            return 0;
        }
        dn_pd_destroy(pd);
    }
    *ret = free_choice;
    return free_choice != NULL ? 0 : lower_only(plan, any, ret, err);
}

int lower_conv_pd(struct lowering *lo, int index, const struct dn_spec *given, int free_weights,
                  struct dn_pd **ret, struct ms_err *err)
{
    struct dn_spec any = *given;
    int rc = given->weights == NULL ? dn_md_fail(err) : all_any(lo->plan, &any, err);
    if (rc < 0) {
        return rc;
    }
    return lo->spec != NULL ? lower_obey(lo, index, &any, ret, err)
                            : pick(lo->plan, given, &any, free_weights, ret, err);
}

int lower_conv_bwd_data(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    struct dn_pd *hint = lo->hints[op->forward];
    int param = plan->param_of[op->in[1]];
    struct dn_spec spec = {.kind = DN_CONV_BWD_DATA,
                           .src = dn_pd_md(plan->dn, hint, DN_SRC),
                           .weights =
                               lower_weights_as(plan, param, dn_pd_md(plan->dn, hint, DN_WEIGHTS)),
                           .dst = dn_pd_md(plan->dn, hint, DN_DST),
                           .hint = hint};
    lower_window(forward, &spec);
    struct dn_pd *pd = NULL;
    int rc = lower_conv_pd(lo, index, &spec, 1, &pd, err);
    if (rc < 0) {
        return rc;
    }
    const struct dn_md *dx = dn_pd_md(plan->dn, pd, DN_DIFF_SRC);
    const struct dn_md *x = lo->values[forward->in[0]].md;
    dx = emit_padded(plan, x) == dx ? x : dx; /* the name without padding of the same bytes */
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    rc = gradient_as(lo, index, op->in[0], dn_pd_md(plan->dn, pd, DN_DIFF_DST), &args[DN_DIFF_DST],
                     err);
    rc = rc < 0 ? rc
                : lower_weights(plan, index, param, dn_pd_md(plan->dn, pd, DN_WEIGHTS),
                                &args[DN_WEIGHTS], err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], dx, err);
    args[DN_DIFF_SRC] = lo->values[op->out[0]].at;
    rc = rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
    dn_pd_destroy(pd);
    return rc;
}

int lower_weights_gradient(struct lowering *lo, int index, const struct dn_spec *spec,
                           const struct dn_pd *pd, int param, int dw, struct operand args[DN_ROLES],
                           struct ms_err *err)
{
    struct plan *plan = lo->plan;
    struct operand target;
    const struct dn_md *made = dn_pd_md(plan->dn, pd, DN_DIFF_WEIGHTS);
    const struct dn_md *want = lower_weights_as(plan, param, made);
    int rc = want == NULL ? dn_md_fail(err) : lower_param_gradient(lo, dw, param, &target, err);
    if (rc < 0) {
        return rc;
    }
    args[DN_DIFF_WEIGHTS] = target;
    if (made != want) {
        int buffer = emit_buffer_for(plan, made, err);
        args[DN_DIFF_WEIGHTS] = (struct operand){PLACE_ARENA, buffer};
        rc = buffer < 0 ? buffer : 0;
    }
    rc = rc < 0 ? rc : emit_primitive(plan, index, spec, pd, args, err);
    return rc < 0 || made == want
               ? rc
               : emit_reorder(plan, index, args[DN_DIFF_WEIGHTS], made, target, want, err);
}

int lower_conv_bwd_weights(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    struct dn_pd *hint = lo->hints[op->forward];
    int param = plan->param_of[forward->in[1]];
    struct dn_spec spec = {.kind = DN_CONV_BWD_WEIGHTS,
                           .src = dn_pd_md(plan->dn, hint, DN_SRC),
                           .weights =
                               lower_weights_as(plan, param, dn_pd_md(plan->dn, hint, DN_WEIGHTS)),
                           .bias = dn_pd_md(plan->dn, hint, DN_BIAS),
                           .dst = dn_pd_md(plan->dn, hint, DN_DST),
                           .hint = hint};
    lower_window(forward, &spec);
    struct dn_pd *pd = NULL;
    int rc = lower_conv_pd(lo, index, &spec, 0, &pd, err);
    if (rc < 0) {
        return rc;
    }
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    const struct plan_value *x = &lo->values[op->in[0]];
    rc = emit_as(plan, index, x->at, x->md, dn_pd_md(plan->dn, pd, DN_SRC), &args[DN_SRC], err);
    rc = rc < 0 ? rc
                : gradient_as(lo, index, op->in[1], dn_pd_md(plan->dn, pd, DN_DIFF_DST),
                              &args[DN_DIFF_DST], err);
    rc = rc < 0 ? rc : bias_gradient(lo, forward, op->out[1], &args[DN_DIFF_BIAS], err);
    rc = rc < 0 ? rc : lower_weights_gradient(lo, index, &spec, pd, param, op->out[0], args, err);
    dn_pd_destroy(pd);
    return rc;
}

/* ---- dense --------------------------------------------------------------------------------------
 */

static int dense_pd(struct lowering *lo, int index, struct dn_spec *spec, int param,
                    struct dn_pd **ret, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct dn_md *any = dn_md(plan->dn, plan->precision, 2, plan->params[param].dims, DN_ANY);
    if (any != NULL && lo->spec != NULL) {
        spec->weights = any;
        return lower_obey(lo, index, spec, ret, err);
    }
    spec->weights = plan->params[param].md;
    struct dn_pd *pd = lower_try(plan, spec);
    if (pd != NULL && dn_pd_rank(pd) == 2) {
        *ret = pd;
        return 0;
    }
    dn_pd_destroy(pd);
    spec->weights = any;
    return any == NULL ? dn_md_fail(err) : lower_only(plan, spec, ret, err);
}

int lower_dense_bwd_data(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    struct dn_pd *hint = lo->hints[op->forward];
    int param = plan->param_of[op->in[1]];
    struct dn_spec spec = {.kind = DN_DENSE_BWD_DATA,
                           .src = dn_pd_md(plan->dn, hint, DN_SRC),
                           .dst = dn_pd_md(plan->dn, hint, DN_DST),
                           .hint = hint};
    struct dn_pd *pd = NULL;
    int rc = dense_pd(lo, index, &spec, param, &pd, err);
    if (rc < 0) {
        return rc;
    }
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    rc = gradient_as(lo, index, op->in[0], spec.dst, &args[DN_DIFF_DST], err);
    rc = rc < 0 ? rc
                : lower_weights(plan, index, param, dn_pd_md(plan->dn, pd, DN_WEIGHTS),
                                &args[DN_WEIGHTS], err);
    /* rows of bytes in the layout of the source: an image stays one */
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], lo->sources[op->forward], err);
    args[DN_DIFF_SRC] = lo->values[op->out[0]].at;
    rc = rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
    dn_pd_destroy(pd);
    return rc;
}

int lower_dense_bwd_weights(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    struct dn_pd *hint = lo->hints[op->forward];
    int param = plan->param_of[forward->in[1]];
    struct dn_spec spec = {.kind = DN_DENSE_BWD_WEIGHTS,
                           .src = dn_pd_md(plan->dn, hint, DN_SRC),
                           .bias = dn_pd_md(plan->dn, hint, DN_BIAS),
                           .dst = dn_pd_md(plan->dn, hint, DN_DST),
                           .hint = hint};
    struct dn_pd *pd = NULL;
    int rc = dense_pd(lo, index, &spec, param, &pd, err);
    if (rc < 0) {
        return rc;
    }
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    const struct plan_value *x = &lo->values[op->in[0]];
    rc = emit_as(plan, index, x->at, x->md, lo->sources[op->forward], &args[DN_SRC], err);
    rc = rc < 0 ? rc : gradient_as(lo, index, op->in[1], spec.dst, &args[DN_DIFF_DST], err);
    rc = rc < 0 ? rc : bias_gradient(lo, forward, op->out[1], &args[DN_DIFF_BIAS], err);
    rc = rc < 0 ? rc : lower_weights_gradient(lo, index, &spec, pd, param, op->out[0], args, err);
    dn_pd_destroy(pd);
    return rc;
}

/* ---- the rest -----------------------------------------------------------------------------------
 */

int lower_pool_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    int own = lower_own_pool_bwd(lo, index, err);
    if (own != 0) {
        return own < 0 ? own : 0;
    }
    struct dn_pd *hint = lo->hints[op->forward];
    int is_max = op->kind == OP_MAX_POOL_BWD;
    struct dn_spec spec = {.kind = is_max ? DN_MAX_POOL_BWD : DN_AVG_POOL_BWD,
                           .src = dn_pd_md(plan->dn, hint, DN_SRC),
                           .dst = dn_pd_md(plan->dn, hint, DN_DST),
                           .hint = hint};
    lower_window(forward, &spec);
    struct dn_pd *pd = NULL;
    int rc = lo->spec != NULL ? lower_obey(lo, index, &spec, &pd, err)
                              : lower_only(plan, &spec, &pd, err);
    if (rc < 0) {
        return rc;
    }
    struct operand args[DN_ROLES] = {[DN_WORKSPACE] = {PLACE_ARENA, lo->workspaces[op->forward]}};
    rc = gradient_as(lo, index, op->in[is_max ? 2 : 0], spec.dst, &args[DN_DIFF_DST], err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], spec.src, err);
    args[DN_DIFF_SRC] = lo->values[op->out[0]].at;
    rc = rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
    dn_pd_destroy(pd);
    return rc;
}

/* dx and, where somebody else reads it, the masked gradient. */
static int bn_outputs(struct lowering *lo, int index, const struct dn_md *md, struct operand *dx,
                      struct operand *dz, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct fusion *fusion = &lo->fusions[index];
    int rc = 0;
    if (op->out[0] >= 0) {
        rc = emit_value(lo, op->out[0], md, err);
        *dx = lo->values[op->out[0]].at;
    } else {
        rc = emit_buffer_for(plan, md, err);
        *dx = (struct operand){PLACE_ARENA, rc};
    }
    if (rc >= 0 && fusion->keep_dz) {
        int masked = graph_op(plan->graph, fusion->relu_bwd)->out[0];
        rc = emit_value(lo, masked, md, err);
        *dz = lo->values[masked].at;
    }
    return rc < 0 ? rc : 0;
}

int lower_batch_norm_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct fusion *fusion = &lo->fusions[index];
    const struct op *mask = fusion->relu_bwd >= 0 ? graph_op(plan->graph, fusion->relu_bwd) : NULL;
    const struct dn_md *md = lo->values[op->in[0]].md;
    struct operand dy, dx, dgamma, dbeta, scratch;
    struct operand y = {PLACE_NONE, 0};
    struct operand dz = {PLACE_NONE, 0};
    int rc = gradient_as(lo, index, mask != NULL ? mask->in[1] : op->in[1], md, &dy, err);
    if (rc == 0 && fusion->mask == 2) {
        const struct plan_value *kept = &lo->values[mask->in[0]];
        rc = emit_as(plan, index, kept->at, kept->md, md, &y, err);
    }
    int gamma = plan->param_of[op->in[2]];
    int beta = plan->param_of[op->in[5]];
    rc = rc < 0 ? rc : bn_outputs(lo, index, md, &dx, &dz, err);
    rc = rc < 0 ? rc : lower_param_gradient(lo, op->out[1], gamma, &dgamma, err);
    rc = rc < 0 ? rc : lower_param_gradient(lo, op->out[2], beta, &dbeta, err);
    const struct kernel_layout layout = emit_bn_layout(md);
    rc = rc < 0 ? rc : emit_bn_scratch(plan, &layout, &scratch, err);
    struct step *step =
        rc < 0 ? NULL : emit_step(plan, STEP_BN_BACKWARD, index, BNB_SCRATCH + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = md;
    step->operands[BN_X] = lo->values[op->in[0]].at;
    step->operands[BN_GAMMA] = (struct operand){PLACE_WEIGHTS, gamma};
    step->operands[BN_BETA] = (struct operand){PLACE_WEIGHTS, beta};
    step->operands[BN_MEAN] = (struct operand){PLACE_STATS, plan->stat_of[op->in[3]]};
    step->operands[BN_VARIANCE] = (struct operand){PLACE_STATS, plan->stat_of[op->in[4]]};
    step->operands[BNB_Y] = y;
    step->operands[BNB_DY] = dy;
    step->operands[BNB_DX] = dx;
    step->operands[BNB_DZ] = dz;
    step->operands[BNB_DGAMMA] = dgamma;
    step->operands[BNB_DBETA] = dbeta;
    step->operands[BNB_SCRATCH] = scratch;
    step->layout = layout;
    step->epsilon = op->epsilon;
    step->relu = fusion->mask;
    return 0;
}

/* Of ReLU, by its result, and of ReLU6, by its source. */
int lower_relu_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct plan_value by = lo->values[op->in[0]];
    struct operand dy;
    int rc = gradient_as(lo, index, op->in[1], by.md, &dy, err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], by.md, err);
    enum step_kind kind = op->kind == OP_RELU_BWD ? STEP_RELU_BACKWARD : STEP_RELU6_BACKWARD;
    struct step *step = rc < 0 ? NULL : emit_step(plan, kind, index, ELT_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = by.md;
    step->operands[ELT_A] = by.at;
    step->operands[ELT_B] = dy;
    step->operands[ELT_Y] = lo->values[op->out[0]].at;
    step->count = by.count;
    return 0;
}

/* Shares of a parameter's gradient lie in its own layout, vectors have none. */
static int sum_shares(struct lowering *lo, int index, int param, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    struct operand target;
    int rc = lower_param_gradient(lo, op->out[0], param, &target, err);
    struct step *step = rc < 0 ? NULL : emit_step(plan, STEP_ADD, index, ELT_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = plan->params[param].md;
    step->operands[ELT_A] = lo->values[op->in[0]].at;
    step->operands[ELT_B] = lo->values[op->in[1]].at;
    step->operands[ELT_Y] = target;
    step->count = lo->values[op->in[0]].count;
    return 0;
}

int lower_sum(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    if (lo->share_of[op->in[0]] >= 0) {
        return sum_shares(lo, index, lo->share_of[op->in[0]], err);
    }
    const struct plan_value a = lo->values[op->in[0]];
    struct operand b;
    int rc = gradient_as(lo, index, op->in[1], a.md, &b, err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], a.md, err);
    struct step *step = rc < 0 ? NULL : emit_step(plan, STEP_ADD, index, ELT_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = a.md;
    step->operands[ELT_A] = a.at;
    step->operands[ELT_B] = b;
    step->operands[ELT_Y] = lo->values[op->out[0]].at;
    step->count = a.count;
    return 0;
}
