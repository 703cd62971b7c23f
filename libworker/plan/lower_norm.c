/* lower_norm.c - layer and group normalisation, and their gradient, to our kernel
 *
 * It runs in the layout that the value has, but for two: pixels are normalised channels last, where
 * the values of each are a row; and groups of a flattened image's values are cut from rows. */
#include "libworker/plan/lowering.h"

/* What kernel_norm is told beside its operands. */
struct norm {
    const struct op *op; /* forward */
    struct kernel_norm sizes;
};

/* The layout may have more channels than the tensor: a convolution takes padding for some. */
static int64_t channels_of(const struct plan *plan, int tensor, int64_t spatial)
{
    const struct shape *shape = &graph_tensor(plan->graph, tensor)->shape;
    return shape_is_sequence(shape) ? shape->dim[2] : shape_count(shape) / shape->dim[0] / spatial;
}

struct kernel_layout lower_pixel_layout(const struct plan *plan, int tensor, const struct dn_md *md)
{
    const int64_t spatial = emit_bn_layout(md).spatial;
    const int64_t *dims = dn_md_dims(md);
    return (struct kernel_layout){dims[0] * spatial, 1, 1, dims[1],
                                  channels_of(plan, tensor, spatial)};
}

static struct norm norm_of(const struct plan *plan, int forward, const struct dn_md *md)
{
    struct norm norm = {.op = graph_op(plan->graph, forward)};
    const int x = norm.op->in[0];
    const struct kernel_layout layout =
        norm.op->of_pixels ? lower_pixel_layout(plan, x, md) : lower_sample_layout(plan, x, md);
    norm.sizes = (struct kernel_norm){.layout = layout,
                                      .groups = norm.op->groups > 0 ? norm.op->groups : 1,
                                      .is_per_value = norm.op->kind == OP_LAYER_NORM &&
                                                      !norm.op->of_pixels && norm.op->n_in > 1,
                                      .epsilon = norm.op->epsilon};
    return norm;
}

int lower_rows(struct lowering *lo, int index, int x, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct dn_md *md = lo->values[x].md;
    const int64_t *from = dn_md_dims(md);
    const int64_t channels = channels_of(plan, x, from[2] * from[3]);
    const int64_t dims[DN_IMAGE_DIMS] = {from[0], channels, from[2], from[3]};
    const struct dn_md *image = dn_md(plan->dn, plan->precision, DN_IMAGE_DIMS, dims, DN_PLAIN);
    const struct dn_md *rows = image == NULL ? NULL : emit_rows(plan, image);
    int rc = rows == NULL ? dn_md_fail(err) : lower_relayout(lo, index, x, image, err);
    if (rc == 0) {
        lo->values[x] = emit_at(lo->values[x].at, rows);
    }
    return rc;
}

int lower_pixels(struct lowering *lo, int index, int x, struct ms_err *err)
{
    const struct dn_md *to = dn_md_as(lo->plan->dn, lo->values[x].md, DN_NHWC);
    return to == NULL ? dn_md_fail(err) : lower_relayout(lo, index, x, to, err);
}

/* The layout that the kernel reads. */
static int take_layout(struct lowering *lo, int index, const struct op *op, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct dn_md *md = lo->values[op->in[0]].md;
    if (op->kind == OP_GROUP_NORM &&
        graph_tensor(plan->graph, op->in[0])->shape.n_dims != dn_md_n_dims(md)) {
        return lower_rows(lo, index, op->in[0], err);
    }
    return op->of_pixels && dn_md_n_dims(md) == DN_IMAGE_DIMS
               ? lower_pixels(lo, index, op->in[0], err)
               : lower_known_layout(lo, index, op->in[0], err);
}

static int emit_norm_scratch(struct plan *plan, const struct norm *norm, int is_backward,
                             struct operand *ret, struct ms_err *err)
{
    const size_t bytes = kernel_norm_scratch(&norm->sizes, is_backward, plan->threads);
    const int buffer = bytes == 0 ? 0 : emit_buffer(plan, MS_U8, bytes, err);
    *ret = (struct operand){bytes == 0 ? PLACE_NONE : PLACE_ARENA, buffer};
    return buffer < 0 ? buffer : 0;
}

static void set_norm(struct step *step, const struct norm *norm, const struct dn_md *md)
{
    step->src = md;
    step->layout = norm->sizes.layout;
    step->groups = norm->sizes.groups;
    step->is_per_value = norm->sizes.is_per_value;
    step->epsilon = norm->sizes.epsilon;
}

int lower_norm(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    int rc = take_layout(lo, index, op, err);
    const struct plan_value x = lo->values[op->in[0]];
    const struct norm norm = norm_of(plan, index, x.md);
    struct operand affine[2] = {{PLACE_NONE, 0}, {PLACE_NONE, 0}};
    struct operand scratch;
    for (int i = 1; i < op->n_in && rc == 0; i++) {
        rc = lower_plain_weight(plan, op->in[i], &affine[i - 1], err);
    }
    rc = rc < 0 ? rc : emit_value(lo, op->out[0], x.md, err);
    rc = rc < 0 ? rc : emit_norm_scratch(plan, &norm, 0, &scratch, err);
    const size_t n_stats = 2 * (size_t)(norm.sizes.layout.n * norm.sizes.groups);
    const int stats = rc < 0 ? rc : emit_buffer(plan, MS_F32, n_stats, err);
    struct step *step = stats < 0 ? NULL : emit_step(plan, STEP_NORM, index, NORM_SCRATCH + 1, err);
    if (step == NULL) {
        return stats < 0 ? stats : MS_E_NOMEM;
    }
    lo->sources[index] = x.md;
    lo->workspaces[index] = stats;
    set_norm(step, &norm, x.md);
    step->operands[NORM_X] = x.at;
    step->operands[NORM_GAMMA] = affine[0];
    step->operands[NORM_BETA] = affine[1];
    step->operands[NORM_STATS] = (struct operand){PLACE_ARENA, stats};
    step->operands[NORM_Y] = lo->values[op->out[0]].at;
    step->operands[NORM_SCRATCH] = scratch;
    return 0;
}

int lower_dx(struct lowering *lo, int tensor, const struct dn_md *md, struct operand *ret,
             struct ms_err *err)
{
    if (tensor >= 0) {
        int rc = emit_value(lo, tensor, md, err);
        *ret = lo->values[tensor].at;
        return rc;
    }
    const int buffer = emit_buffer_for(lo->plan, md, err);
    *ret = (struct operand){PLACE_ARENA, buffer};
    return buffer < 0 ? buffer : 0;
}

int lower_norm_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct dn_md *md = lo->sources[op->forward];
    const struct norm norm = norm_of(plan, op->forward, md);
    const struct plan_value *value = &lo->values[op->in[0]];
    const struct plan_value *gradient = &lo->values[op->in[1]];
    struct operand x, dy, dx, scratch;
    struct operand affine[2] = {{PLACE_NONE, 0}, {PLACE_NONE, 0}}; /* their gradients */
    int rc = emit_as(plan, index, value->at, value->md, md, &x, err);
    rc = rc < 0 ? rc : emit_as(plan, index, gradient->at, gradient->md, md, &dy, err);
    rc = rc < 0 ? rc : lower_dx(lo, op->out[0], md, &dx, err);
    for (int i = 1; i < norm.op->n_in && rc == 0; i++) {
        rc = lower_param_gradient(lo, op->out[i], plan->param_of[norm.op->in[i]], &affine[i - 1],
                                  err);
    }
    rc = rc < 0 ? rc : emit_norm_scratch(plan, &norm, 1, &scratch, err);
    struct step *step =
        rc < 0 ? NULL : emit_step(plan, STEP_NORM_BACKWARD, index, NORMB_SCRATCH + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    set_norm(step, &norm, md);
    step->operands[NORM_X] = x;
    if (op->n_in > 2) {
        step->operands[NORM_GAMMA] = (struct operand){PLACE_WEIGHTS, plan->param_of[op->in[2]]};
    }
    step->operands[NORM_STATS] = (struct operand){PLACE_ARENA, lo->workspaces[op->forward]};
    step->operands[NORMB_DY] = dy;
    step->operands[NORMB_DX] = dx;
    step->operands[NORMB_DGAMMA] = affine[0];
    step->operands[NORMB_DBETA] = affine[1];
    step->operands[NORMB_SCRATCH] = scratch;
    return 0;
}
