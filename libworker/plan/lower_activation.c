/* lower_activation.c - functions of single elements, and their gradients, to oneDNN's primitives;
 * ReLU6 is ours (kernel.h), and joins them for its gradient
 *
 * They run in the layout that the value has. Channels that fill no whole block leave zeros behind
 * them, which must stay zero. oneDNN is told that they are channels, too: it has no fast code for
 * padding where the function, or its derivative, is not 0 at 0. No gradient comes in from padding,
 * so none goes out. What sigmoid writes there, 1/2, is cleared. */
#include "libworker/plan/lowering.h"

static enum dn_function function_of(enum op_kind kind)
{
    static const enum dn_function functions[OP_KINDS] = {
        [OP_LEAKY_RELU] = DN_LEAKY_RELU, [OP_ELU] = DN_ELU,   [OP_GELU] = DN_GELU,
        [OP_GELU_TANH] = DN_GELU_TANH,   [OP_SILU] = DN_SILU, [OP_SIGMOID] = DN_SIGMOID,
        [OP_HARD_SWISH] = DN_HARD_SWISH, [OP_TANH] = DN_TANH,
    };
    return functions[kind];
}

static struct dn_spec forward_spec(const struct plan *plan, int index, const struct dn_md *x)
{
    const struct op *op = graph_op(plan->graph, index);
    return (struct dn_spec){.kind = DN_ELTWISE_FWD,
                            .src = x,
                            .dst = x,
                            .function = function_of(op->kind),
                            .alpha = op->alpha,
                            .inference = !plan->training};
}

static struct dn_spec backward_spec(const struct dn_spec *forward, const struct dn_pd *hint)
{
    struct dn_spec spec = *forward;
    spec.kind = DN_ELTWISE_BWD;
    spec.inference = 0;
    spec.hint = hint;
    return spec;
}

static int create_pd(struct lowering *lo, int index, const struct dn_spec *spec, struct dn_pd **ret,
                     struct ms_err *err)
{
    return lo->spec != NULL ? lower_obey(lo, index, spec, ret, err)
                            : lower_only(lo->plan, spec, ret, err);
}

int lower_activation(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct plan_value x = lo->values[op->in[0]];
    const struct dn_md *md = emit_padded(plan, x.md);
    const struct dn_spec spec = forward_spec(plan, index, md);
    struct dn_pd *pd = NULL;
    int rc = create_pd(lo, index, &spec, &pd, err);
    if (rc < 0) {
        return rc;
    }
    lo->hints[index] = pd;
    lo->sources[index] = x.md;
    rc = emit_value(lo, op->out[0], x.md, err);
    const struct operand args[DN_ROLES] = {[DN_SRC] = x.at, [DN_DST] = lo->values[op->out[0]].at};
    rc = rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
    return rc < 0 || md == x.md || op->kind != OP_SIGMOID
               ? rc
               : lower_clear_padding(lo, op->out[0], err);
}

int lower_activation_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    if (graph_op(plan->graph, op->forward)->kind == OP_RELU6) {
        return lower_relu_bwd(lo, index, err);
    }
    const struct dn_md *md = lo->sources[op->forward];
    const struct dn_spec forward = forward_spec(plan, op->forward, emit_padded(plan, md));
    const struct dn_spec spec = backward_spec(&forward, lo->hints[op->forward]);
    struct dn_pd *pd = NULL;
    int rc = create_pd(lo, index, &spec, &pd, err);
    if (rc < 0) {
        return rc;
    }
    const struct plan_value *x = &lo->values[op->in[0]];
    const struct plan_value *dy = &lo->values[op->in[1]];
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    rc = emit_as(plan, index, x->at, x->md, md, &args[DN_SRC], err);
    rc = rc < 0 ? rc : emit_as(plan, index, dy->at, dy->md, md, &args[DN_DIFF_DST], err);
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], md, err);
    args[DN_DIFF_SRC] = lo->values[op->out[0]].at;
    rc = rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
    dn_pd_destroy(pd);
    return rc;
}
