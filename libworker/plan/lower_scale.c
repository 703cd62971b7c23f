/* lower_scale.c - products, to our kernels: of each value, or with one that is repeated
 *
 * The kernel multiplies each channel by its own factor. What a factor is repeated for is said by
 * the layout that it is told: a gate has one for each channel of each sample, which is all channels
 * of one sample; a factor of each value makes channels of values; a number alone has one channel.
 */
#include "libworker/plan/lowering.h"

static const struct shape *shape_of(const struct plan *plan, int tensor)
{
    return &graph_tensor(plan->graph, tensor)->shape;
}

static const struct dn_md *image_of(struct plan *plan, const int64_t *dims, enum dn_tag tag)
{
    return dn_md(plan->dn, plan->precision, DN_IMAGE_DIMS, dims, tag);
}

/* The gradient of what was repeated, of x and dy that lie in layout md. */
static int emit_scale_backward(struct lowering *lo, int index, const struct dn_md *md,
                               const struct kernel_layout *layout, struct operand ret,
                               struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct plan_value *of_x = &lo->values[op->in[0]];
    const struct plan_value *of_dy = &lo->values[op->in[1]];
    struct operand x, dy;
    int rc = emit_as(plan, index, of_x->at, of_x->md, md, &x, err);
    rc = rc < 0 ? rc : emit_as(plan, index, of_dy->at, of_dy->md, md, &dy, err);
    const int scratch = rc < 0 ? rc : emit_buffer(plan, MS_U8, kernel_bias_scratch(layout), err);
    struct step *step =
        scratch < 0 ? NULL : emit_step(plan, STEP_SCALE_BACKWARD, index, ELT_C + 1, err);
    if (step == NULL) {
        return scratch < 0 ? scratch : MS_E_NOMEM;
    }
    step->src = md;
    step->operands[ELT_A] = dy;
    step->operands[ELT_B] = (struct operand){PLACE_ARENA, scratch};
    step->operands[ELT_C] = x;
    step->operands[ELT_Y] = ret;
    step->layout = *layout;
    step->count = dn_md_count(md);
    return 0;
}

/* ---- gates --------------------------------------------------------------------------------------
 */

/* Images with their own channels, in a layout that our kernels know. */
static int take_image(struct lowering *lo, int index, int tensor, const struct dn_md **ret,
                      struct ms_err *err)
{
    struct plan *plan = lo->plan;
    int rc = lower_known_layout(lo, index, tensor, err);
    if (rc < 0) {
        return rc;
    }
    *ret = image_of(plan, shape_of(plan, tensor)->dim, dn_md_tag(lo->values[tensor].md));
    return *ret == NULL ? dn_md_fail(err) : lower_relayout(lo, index, tensor, *ret, err);
}

/* One value of each channel of each sample, as those of images in layout md lie. */
static const struct dn_md *gate_layout(struct plan *plan, const struct dn_md *md)
{
    const int64_t *dims = dn_md_dims(md);
    const int64_t gates[DN_IMAGE_DIMS] = {dims[0], dims[1], 1, 1};
    return image_of(plan, gates, dn_md_tag(md));
}

static struct kernel_layout one_sample(const struct dn_md *md)
{
    const struct kernel_layout of = emit_bn_layout(md);
    const int64_t n_blocks = of.n * of.n_blocks;
    return (struct kernel_layout){1, n_blocks, of.spatial, of.block, n_blocks * of.block};
}

/* A gate is an image of one pixel, or rows, which may lie as an image that was flattened. */
static int take_gate(struct lowering *lo, int index, int tensor, const struct dn_md *md,
                     struct operand *ret, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct shape *shape = shape_of(plan, tensor);
    const int64_t dims[DN_IMAGE_DIMS] = {shape->dim[0], shape->dim[1], 1, 1};
    const struct dn_md *as = lo->values[tensor].md;
    int rc = 0;
    if (dn_md_n_dims(as) == DN_IMAGE_DIMS && dn_md_dims(as)[2] * dn_md_dims(as)[3] > 1) {
        rc = lower_rows(lo, index, tensor, err);
    }
    const struct plan_value *gate = &lo->values[tensor];
    as = dn_md_n_dims(gate->md) == DN_IMAGE_DIMS ? gate->md : image_of(plan, dims, DN_PLAIN);
    const struct dn_md *to = gate_layout(plan, md);
    return rc < 0                     ? rc
           : as == NULL || to == NULL ? dn_md_fail(err)
                                      : emit_as(plan, index, gate->at, as, to, ret, err);
}

int lower_gate(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct dn_md *md = NULL;
    struct operand gate;
    int rc = take_image(lo, index, op->in[0], &md, err);
    rc = rc < 0 ? rc : take_gate(lo, index, op->in[1], md, &gate, err);
    if (rc < 0) {
        return rc;
    }
    lo->sources[index] = md;
    const struct kernel_layout layout = one_sample(md);
    return emit_by_channels(lo, index, STEP_SCALE, lo->values[op->in[0]].at, gate, md, &layout,
                            err);
}

int lower_gate_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct dn_md *md = lo->sources[op->forward];
    const struct dn_md *gates = gate_layout(plan, md);
    const struct kernel_layout layout = one_sample(md);
    int rc = gates == NULL ? dn_md_fail(err) : emit_value(lo, op->out[0], gates, err);
    return rc < 0 ? rc
                  : emit_scale_backward(lo, index, md, &layout, lo->values[op->out[0]].at, err);
}

/* ---- trained factors ----------------------------------------------------------------------------
 */

/* Brings x into a layout, which *ret is, and says how its channels are counted. */
static int take_source(struct lowering *lo, int index, int x, int gamma, const struct dn_md **ret,
                       struct kernel_layout *ret_layout, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct shape *shape = shape_of(plan, x);
    const enum scale_of of = graph_scale_of(shape, shape_of(plan, gamma));
    int rc = 0;
    if (of == SCALE_VALUES) {
        const struct dn_md *plain = image_of(plan, shape->dim, DN_PLAIN);
        const int64_t values = shape_count(shape) / shape->dim[0];
        rc = lower_known_layout(lo, index, x, err);
        rc = rc < 0          ? rc
             : plain == NULL ? dn_md_fail(err)
                             : lower_relayout(lo, index, x, plain, err);
        *ret_layout = (struct kernel_layout){shape->dim[0], 1, 1, values, values};
    } else {
        rc = lower_channels(lo, index, x, err);
        *ret_layout = lower_sample_layout(plan, x, lo->values[x].md);
    }
    *ret = lo->values[x].md;
    if (of == SCALE_ALL) {
        const int64_t size = ret_layout->n_blocks * ret_layout->spatial * ret_layout->block;
        *ret_layout = (struct kernel_layout){shape->dim[0], 1, size, 1, 1};
    }
    return rc;
}

/* Forward of x, backward of dy: both times the factor. */
int lower_scale(struct lowering *lo, int index, struct ms_err *err)
{
    const struct op *op = graph_op(lo->plan->graph, index);
    const struct dn_md *md = NULL;
    struct kernel_layout layout;
    struct operand gamma;
    int rc = take_source(lo, index, op->in[0], op->in[1], &md, &layout, err);
    rc = rc < 0 ? rc : lower_plain_weight(lo->plan, op->in[1], &gamma, err);
    lo->sources[index] = md;
    return rc < 0 ? rc
                  : emit_by_channels(lo, index, STEP_SCALE, lo->values[op->in[0]].at, gamma, md,
                                     &layout, err);
}

int lower_scale_bwd_weights(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    const struct dn_md *md = NULL;
    struct kernel_layout layout;
    struct operand gradient;
    int rc = take_source(lo, index, op->in[0], forward->in[1], &md, &layout, err);
    rc = rc < 0
             ? rc
             : lower_param_gradient(lo, op->out[0], plan->param_of[forward->in[1]], &gradient, err);
    return rc < 0 ? rc : emit_scale_backward(lo, index, md, &layout, gradient, err);
}

/* ---- numbers ------------------------------------------------------------------------------------
 */

/* Forward, and the gradient, to which what was added is nothing. */
int lower_linear(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const double offset = op->kind == OP_LINEAR ? op->beta : 0;
    int rc = lower_known_layout(lo, index, op->in[0], err);
    const struct plan_value x = lo->values[op->in[0]];
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], x.md, err);
    struct step *step = rc < 0 ? NULL : emit_step(plan, STEP_LINEAR, index, ELT_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = x.md;
    step->operands[ELT_A] = x.at;
    step->operands[ELT_Y] = lo->values[op->out[0]].at;
    step->factor = (float)op->alpha;
    step->offset = (float)offset;
    step->count = x.count;
    const struct kernel_layout layout = lower_sample_layout(plan, op->out[0], x.md);
    const int has_padding = layout.channels < layout.n_blocks * layout.block;
    return has_padding && offset != 0 ? lower_clear_padding(lo, op->out[0], err) : 0;
}
