/* lower_transposed.c - transposed convolution, by the primitives of the convolution whose gradient
 * it is, and the bias of channels
 *
 *     forward            y of x, w      backward data of the convolution (y, w) -> x
 *     backward data      dx of dy, w    that convolution itself
 *     backward weights   dw of x, dy    its backward weights
 *
 * The weight, (in, out / g, kh, kw), is that convolution's as it stands. It is kept as the
 * convolution wants it, and so are its gradient and its user in backward: forward alone reorders.
 */
#include "libworker/plan/lowering.h"

#include <string.h>

/* The convolution (y, w) -> x of a graph op, with free layouts. */
static int conv_spec(struct plan *plan, const struct op *op, struct dn_spec *ret,
                     struct ms_err *err)
{
    const int64_t *x = graph_tensor(plan->graph, op->in[0])->shape.dim;
    const int64_t *y = graph_tensor(plan->graph, op->out[0])->shape.dim;
    const int64_t *w = graph_tensor(plan->graph, op->in[1])->shape.dim;
    const int64_t g = op->groups > 1 ? op->groups : 1;
    const int64_t grouped[DN_DIMS_MAX] = {g, w[0] / g, w[1], w[2], w[3]};
    const int n_dims = g > 1 ? DN_DIMS_MAX : DN_IMAGE_DIMS;
    *ret = (struct dn_spec){.kind = DN_CONV_FWD};
    ret->src = dn_md(plan->dn, plan->precision, DN_IMAGE_DIMS, y, DN_ANY);
    ret->weights = dn_md(plan->dn, plan->precision, n_dims, g > 1 ? grouped : w, DN_ANY);
    ret->dst = dn_md(plan->dn, plan->precision, DN_IMAGE_DIMS, x, DN_ANY);
    lower_window(op, ret);
    return ret->src != NULL && ret->weights != NULL && ret->dst != NULL ? 0 : dn_md_fail(err);
}

/* md, where it has the tensor's channels: a convolution takes padding for some. */
static const struct dn_md *given(const struct dn_md *md, const struct dn_md *any)
{
    const size_t size = DN_IMAGE_DIMS * sizeof(int64_t);
    return dn_md_n_dims(md) == DN_IMAGE_DIMS && memcmp(dn_md_dims(md), dn_md_dims(any), size) == 0
               ? md
               : any;
}

/* Candidate i: what is made in one of the layouts that our kernels know, the source as it lies or
 * free, the weights as they are kept or free. */
static struct dn_pd *try_candidate(struct plan *plan, const struct dn_spec *spec,
                                   const struct dn_spec *any, int i)
{
    static const enum dn_tag tags[] = {DN_ANY, DN_NCHW16C, DN_NHWC, DN_PLAIN};
    struct dn_spec some = *spec;
    some.src = dn_md_as(plan->dn, spec->src, tags[i / 4]);
    some.dst = i % 4 < 2 ? spec->dst : any->dst;
    some.weights = i % 2 == 0 ? spec->weights : any->weights;
    struct dn_pd *pd = some.src == NULL ? NULL : lower_try(plan, &some);
    if (pd != NULL && dn_md_tag(dn_pd_md(plan->dn, pd, DN_DIFF_SRC)) == DN_OTHER) {
        dn_pd_destroy(pd);
        return NULL;
    }
    return pd;
}
enum { CANDIDATES = 16 };

/* The first of the best class of code. */
static int choose(struct plan *plan, const struct op *op, const struct dn_spec *spec,
                  const struct dn_spec *any, struct dn_pd **ret, struct ms_err *err)
{
    struct dn_pd *best = NULL;
    for (int i = 0; i < CANDIDATES && (best == NULL || dn_pd_rank(best) < 2); i++) {
        struct dn_pd *pd = try_candidate(plan, spec, any, i);
        if (pd != NULL && (best == NULL || dn_pd_rank(pd) > dn_pd_rank(best))) {
            dn_pd_destroy(best);
            best = pd;
        } else {
            dn_pd_destroy(pd);
        }
    }
    *ret = best;
    return best != NULL ? 0
                        : ms_fail(err, MS_E_UNSUPPORTED,
                                  "oneDNN %s has no transposed convolution for weight %s; change "
                                  "its window or channels",
                                  dn_version(), graph_tensor(plan->graph, op->in[1])->name);
}

int lower_transposed(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int param = plan->param_of[op->in[1]];
    struct plan_param *p = &plan->params[param];
    struct dn_spec any;
    struct dn_pd *hint = NULL;
    struct dn_pd *pd = NULL;
    int rc = conv_spec(plan, op, &any, err);
    rc = rc < 0 ? rc : dn_pd_create(plan->dn, &any, &hint, err);
    any.kind = DN_CONV_BWD_DATA;
    any.hint = hint;
    struct dn_spec spec = any;
    if (rc == 0 && lo->spec != NULL) {
        rc = lower_obey(lo, index, &any, &pd, err);
    } else if (rc == 0) {
        spec.dst = given(lo->values[op->in[0]].md, any.dst);
        const struct dn_md *fixed = lower_weights_as(plan, param, any.weights);
        spec.weights = fixed != NULL ? fixed : any.weights;
        rc = choose(plan, op, &spec, &any, &pd, err);
    }
    lo->hints[index] = hint;
    if (rc < 0) {
        return rc;
    }
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    const struct dn_md *weights = dn_pd_md(plan->dn, pd, DN_WEIGHTS);
    const struct dn_md *kept = dn_pd_md(plan->dn, hint, DN_WEIGHTS);
    lower_fix_param(p, dn_md_name(plan->dn, kept) != NULL ? kept : weights);
    rc = lower_relayout(lo, index, op->in[0], dn_pd_md(plan->dn, pd, DN_DIFF_DST), err);
    args[DN_DIFF_DST] = lo->values[op->in[0]].at;
    lo->sources[index] = dn_pd_md(plan->dn, pd, DN_DIFF_DST);
    rc = rc < 0 ? rc : lower_weights(plan, index, param, weights, &args[DN_WEIGHTS], err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], dn_pd_md(plan->dn, pd, DN_DIFF_SRC), err);
    args[DN_DIFF_SRC] = lo->values[op->out[0]].at;
    rc = rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
    dn_pd_destroy(pd);
    return rc;
}

int lower_transposed_bwd_data(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    const int param = plan->param_of[op->in[1]];
    const struct plan_value dy = lo->values[op->in[0]];
    struct dn_spec spec;
    struct dn_pd *pd = NULL;
    int rc = conv_spec(plan, forward, &spec, err);
    if (rc == 0) {
        spec.src = given(dy.md, spec.src);
        spec.weights = lower_weights_as(plan, param, spec.weights);
        spec.dst = lo->sources[op->forward];
        rc = lower_conv_pd(lo, index, &spec, 1, &pd, err);
    }
    if (rc < 0) {
        return rc;
    }
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    rc = emit_as(plan, index, dy.at, dy.md, dn_pd_md(plan->dn, pd, DN_SRC), &args[DN_SRC], err);
    rc = rc < 0 ? rc
                : lower_weights(plan, index, param, dn_pd_md(plan->dn, pd, DN_WEIGHTS),
                                &args[DN_WEIGHTS], err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], dn_pd_md(plan->dn, pd, DN_DST), err);
    args[DN_DST] = lo->values[op->out[0]].at;
    rc = rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
    dn_pd_destroy(pd);
    return rc;
}

int lower_transposed_bwd_weights(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    const int param = plan->param_of[forward->in[1]];
    const struct plan_value x = lo->values[op->in[0]];
    const struct plan_value dy = lo->values[op->in[1]];
    struct dn_spec spec;
    struct dn_pd *pd = NULL;
    int rc = conv_spec(plan, forward, &spec, err);
    spec.kind = DN_CONV_BWD_WEIGHTS;
    spec.hint = lo->hints[op->forward];
    if (rc == 0) {
        spec.src = given(dy.md, spec.src);
        spec.weights = lower_weights_as(plan, param, spec.weights);
        spec.dst = lo->sources[op->forward];
        rc = lower_conv_pd(lo, index, &spec, 0, &pd, err);
    }
    if (rc < 0) {
        return rc;
    }
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    rc = emit_as(plan, index, dy.at, dy.md, dn_pd_md(plan->dn, pd, DN_SRC), &args[DN_SRC], err);
    rc = rc < 0 ? rc
                : emit_as(plan, index, x.at, x.md, dn_pd_md(plan->dn, pd, DN_DIFF_DST),
                          &args[DN_DIFF_DST], err);
    rc = rc < 0 ? rc : lower_weights_gradient(lo, index, &spec, pd, param, op->out[0], args, err);
    dn_pd_destroy(pd);
    return rc;
}

/* ---- bias ---------------------------------------------------------------------------------------
 */

int lower_bias(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    int rc = lower_channels(lo, index, op->in[0], err);
    const struct plan_value x = lo->values[op->in[0]];
    struct operand bias = {PLACE_NONE, 0};
    rc = rc < 0 ? rc : lower_plain_weight(plan, op->in[1], &bias, err);
    if (rc < 0) {
        return rc;
    }
    lo->sources[index] = x.md;
    const struct kernel_layout layout = lower_sample_layout(plan, op->in[0], x.md);
    return emit_by_channels(lo, index, STEP_BIAS, x.at, bias, x.md, &layout, err);
}

int lower_bias_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const int param = plan->param_of[graph_op(plan->graph, op->forward)->in[1]];
    const struct dn_md *md = lo->sources[op->forward];
    const struct plan_value *value = &lo->values[op->in[0]];
    const struct kernel_layout layout = lower_sample_layout(plan, op->in[0], md);
    struct operand dy, db;
    int rc = emit_as(plan, index, value->at, value->md, md, &dy, err);
    rc = rc < 0 ? rc : lower_param_gradient(lo, op->out[0], param, &db, err);
    const int scratch = rc < 0 ? rc : emit_buffer(plan, MS_U8, kernel_bias_scratch(&layout), err);
    struct step *step =
        scratch < 0 ? NULL : emit_step(plan, STEP_BIAS_BACKWARD, index, ELT_Y + 1, err);
    if (step == NULL) {
        return scratch < 0 ? scratch : MS_E_NOMEM;
    }
    step->src = md;
    step->operands[ELT_A] = dy;
    step->operands[ELT_B] = (struct operand){PLACE_ARENA, scratch};
    step->operands[ELT_Y] = db;
    step->layout = layout;
    step->count = dn_md_count(md);
    return 0;
}
