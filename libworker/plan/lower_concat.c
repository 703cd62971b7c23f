/* lower_concat.c - values one behind the other: each is reordered into its part of the whole
 *
 * Copies change no bit, so a plan has no line for them. */
#include "libworker/plan/lowering.h"

/* Channels of a layout's blocks, of which each part has to have whole ones; else its padding would
 * lie among the channels of the next part. */
static int64_t block_of(enum dn_tag tag)
{
    return tag == DN_NCHW16C ? 16 : tag == DN_NCHW8C ? 8 : 1;
}

/* A tensor's shape; of sequences, which lie so, a row for each token. */
static struct shape shape_of(const struct plan *plan, int tensor)
{
    const struct shape *shape = &graph_tensor(plan->graph, tensor)->shape;
    const struct shape tokens = {2, {shape->dim[0] * shape->dim[1], shape->dim[2]}};
    return shape_is_sequence(shape) ? tokens : *shape;
}

static int64_t channels_of(const struct plan *plan, int tensor)
{
    return shape_of(plan, tensor).dim[1];
}

/* That of `like`, where the parts of the op's forward inputs can lie in it; else the plain one. */
static enum dn_tag layout_for(const struct plan *plan, const struct op *forward,
                              const struct dn_md *like)
{
    const enum dn_tag tag = dn_md_tag(like);
    const int n_dims = shape_of(plan, forward->in[0]).n_dims;
    if (tag == DN_OTHER || dn_md_n_dims(like) != n_dims) {
        return DN_PLAIN;
    }
    for (int i = 0; i < forward->n_in; i++) {
        if (channels_of(plan, forward->in[i]) % block_of(tag) != 0) {
            return DN_PLAIN;
        }
    }
    return tag;
}

/* A tensor's own layout of that name. */
static const struct dn_md *whole_of(struct plan *plan, int tensor, enum dn_tag tag)
{
    const struct shape shape = shape_of(plan, tensor);
    return dn_md(plan->dn, plan->precision, shape.n_dims, shape.dim, tag);
}

/* Channels from `begin` on, as many as the tensor has, of the whole. */
static const struct dn_md *part_of(struct plan *plan, int tensor, const struct dn_md *whole,
                                   int64_t begin)
{
    const int64_t offsets[DN_DIMS_MAX] = {0, begin};
    const struct shape shape = shape_of(plan, tensor);
    return dn_md_part(plan->dn, whole, shape.dim, offsets);
}

/* A value with the dimensions that the graph says: rows may still lie as the image that they were.
 */
static int source_of(struct lowering *lo, int index, int tensor, struct operand *ret,
                     const struct dn_md **ret_md, struct ms_err *err)
{
    const struct plan_value *value = &lo->values[tensor];
    if (dn_md_n_dims(value->md) == shape_of(lo->plan, tensor).n_dims) {
        *ret = value->at;
        *ret_md = value->md;
        return 0;
    }
    *ret_md = whole_of(lo->plan, tensor, DN_PLAIN);
    return *ret_md == NULL ? dn_md_fail(err)
                           : emit_as(lo->plan, index, value->at, value->md, *ret_md, ret, err);
}

int lower_concat(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct dn_md *whole =
        whole_of(plan, op->out[0], layout_for(plan, op, lo->values[op->in[0]].md));
    int rc = whole == NULL ? dn_md_fail(err) : emit_value(lo, op->out[0], whole, err);
    int64_t begin = 0;
    for (int i = 0; i < op->n_in && rc == 0; i++) {
        const struct dn_md *part = part_of(plan, op->in[i], whole, begin);
        const struct dn_md *md = NULL;
        struct operand from;
        rc = part == NULL ? dn_md_fail(err) : source_of(lo, index, op->in[i], &from, &md, err);
        rc =
            rc < 0 ? rc : emit_reorder(plan, index, from, md, lo->values[op->out[0]].at, part, err);
        begin += channels_of(plan, op->in[i]);
    }
    return rc;
}

/* Each gradient lies as its part of the whole did, in a buffer of its own. */
int lower_concat_bwd(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct op *forward = graph_op(plan->graph, op->forward);
    const enum dn_tag tag = layout_for(plan, forward, lo->values[op->in[0]].md);
    const struct dn_md *whole = whole_of(plan, op->in[0], tag);
    struct operand dy = {PLACE_NONE, 0};
    int rc = whole == NULL ? dn_md_fail(err)
                           : emit_as(plan, index, lo->values[op->in[0]].at,
                                     lo->values[op->in[0]].md, whole, &dy, err);
    int64_t begin = 0;
    for (int i = 0; i < forward->n_in && rc == 0; i++) {
        const int dx = op->out[i];
        if (dx >= 0) {
            const struct dn_md *part = part_of(plan, dx, whole, begin);
            const struct dn_md *own = whole_of(plan, dx, tag);
            rc = part == NULL || own == NULL ? dn_md_fail(err) : emit_value(lo, dx, own, err);
            rc = rc < 0 ? rc : emit_reorder(plan, index, dy, part, lo->values[dx].at, own, err);
        }
        begin += channels_of(plan, forward->in[i]);
    }
    return rc;
}
