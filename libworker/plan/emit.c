/* emit.c - steps, buffers and layout changes: what lowering writes down */
#include "libworker/plan/lowering.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more in a growing array; NULL: no memory (the array is as it was). */
static void *grow(void *items, int count, int *cap, size_t size)
{
    if (count < *cap) {
        return items;
    }
    int wanted = *cap == 0 ? 64 : *cap * 2;
    void *more = realloc(items, (size_t)wanted * size);
    *cap = more == NULL ? *cap : wanted;
    return more;
}

int emit_buffer(struct plan *plan, enum ms_dtype dtype, size_t count, struct ms_err *err)
{
    void *more = grow(plan->buffers, plan->n_buffers, &plan->cap_buffers, sizeof(*plan->buffers));
    if (more == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for buffer %d", plan->n_buffers);
    }
    plan->buffers = more;
    plan->buffers[plan->n_buffers] = (struct buffer){.dtype = dtype, .count = count};
    return plan->n_buffers++;
}

int emit_buffer_for(struct plan *plan, const struct dn_md *md, struct ms_err *err)
{
    return emit_buffer(plan, dn_md_dtype(md), dn_md_count(md), err);
}

struct step *emit_step(struct plan *plan, enum step_kind kind, int op, int n_operands,
                       struct ms_err *err)
{
    void *more = grow(plan->steps, plan->n_steps, &plan->cap_steps, sizeof(*plan->steps));
    if (more == NULL) {
        (void)ms_fail(err, MS_E_NOMEM, "plan: no memory for step %d", plan->n_steps);
        return NULL;
    }
    plan->steps = more;
    struct step *step = &plan->steps[plan->n_steps++];
    *step = (struct step){.kind = kind, .op = op, .n_operands = n_operands};
    return step;
}

/* The buffer that a primitive wants for itself alone; -1: none. */
static int emit_scratch(struct plan *plan, const struct dn_arg *args, int n, int *ret,
                        struct ms_err *err)
{
    *ret = -1;
    for (int i = 0; i < n; i++) {
        if (args[i].role == DN_SCRATCHPAD) {
            *ret = emit_buffer_for(plan, args[i].md, err);
            return *ret < 0 ? *ret : 0;
        }
    }
    return 0;
}

int emit_primitive(struct plan *plan, int op, const struct dn_spec *spec, const struct dn_pd *pd,
                   const struct operand args[DN_ROLES], struct ms_err *err)
{
    struct dn_arg all[DN_ROLES];
    int n_args = dn_pd_args(plan->dn, pd, all);
    int scratch = -1;
    struct dn_prim *prim = NULL;
    int rc = plan->is_draft ? 0 : dn_prim_create(plan->dn, pd, &prim, err);
    rc = rc < 0 ? rc : emit_scratch(plan, all, n_args, &scratch, err);
    struct step *step = rc < 0 ? NULL : emit_step(plan, STEP_PRIMITIVE, op, n_args, err);
    if (step == NULL) {
        dn_prim_destroy(prim);
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    for (int i = 0; i < n_args; i++) {
        step->operands[i] = all[i].role == DN_SCRATCHPAD ? (struct operand){PLACE_ARENA, scratch}
                                                         : args[all[i].role];
    }
    step->prim = prim;
    step->src = dn_pd_tensor(plan->dn, pd, DN_SRC);
    step->weights = dn_pd_tensor(plan->dn, pd, DN_WEIGHTS);
    step->dst = dn_pd_tensor(plan->dn, pd, DN_DST);
    step->prim_kind = spec->kind;
    step->relu = spec->relu;
    snprintf(step->impl, sizeof(step->impl), "%s", dn_pd_impl(pd));
    return 0;
}

int emit_reorder(struct plan *plan, int op, struct operand from, const struct dn_md *from_md,
                 struct operand to, const struct dn_md *to_md, struct ms_err *err)
{
    struct dn_spec spec = {.kind = DN_REORDER, .src = from_md, .dst = to_md};
    struct dn_pd *pd = NULL;
    int rc = dn_pd_create(plan->dn, &spec, &pd, err);
    if (rc < 0) {
        return rc;
    }
    struct operand args[DN_ROLES] = {[DN_SRC] = from, [DN_DST] = to};
    rc = emit_primitive(plan, op, &spec, pd, args, err);
    dn_pd_destroy(pd);
    plan->reorders += rc == 0;
    return rc;
}

/* A flattened image is held as an image still; a layer of rows holds rows. Where the two meet, both
 * are taken in C order, in which they are the same bytes. */
static int as_rows(struct plan *plan, int op, struct operand *at, const struct dn_md **md,
                   struct ms_err *err)
{
    const struct dn_md *plain = dn_md_as(plan->dn, *md, DN_PLAIN);
    int rc = plain == NULL ? dn_md_fail(err) : emit_as(plan, op, *at, *md, plain, at, err);
    *md = rc == 0 ? plain : *md;
    return rc;
}

/* The image's channels become as many as `to` has: a convolution may have taken the padding of its
 * source for channels, and its gradient has them, too. Those that are more are zeros. */
static int as_channels(struct plan *plan, int op, struct operand *at, const struct dn_md **md,
                       const struct dn_md *to, struct ms_err *err)
{
    static const int64_t none[DN_DIMS_MAX] = {0};
    static const enum dn_tag blocks[] = {DN_NCHW16C, DN_NCHW8C};
    const int64_t want = dn_md_dims(to)[1];
    if (emit_padded(plan, *md) == *md && want < dn_md_dims(*md)[1]) { /* without the last ones */
        const struct dn_md *same = dn_md_as(plan->dn, to, dn_md_tag(*md));
        const int is_same = same != NULL && emit_padded(plan, same) == *md;
        const struct dn_md *part = is_same ? same : dn_md_part(plan->dn, *md, dn_md_dims(to), none);
        *md = part != NULL ? part : *md;
    }
    for (int i = 0; i < 2 && dn_md_dims(emit_padded(plan, *md))[1] < want; i++) {
        const struct dn_md *block = dn_md_as(plan->dn, *md, blocks[i]);
        if (block != NULL && dn_md_dims(emit_padded(plan, block))[1] == want) {
            int rc = emit_as(plan, op, *at, *md, block, at, err);
            if (rc < 0) {
                return rc;
            }
            *md = block;
        }
    }
    *md = dn_md_dims(*md)[1] < want ? emit_padded(plan, *md) : *md;
    return dn_md_dims(*md)[1] == want
               ? 0
               : ms_fail(err, MS_E_UNSUPPORTED,
                         "%" PRId64 " channels are not to be had from a layout of %" PRId64, want,
                         dn_md_dims(*md)[1]);
}

int emit_as(struct plan *plan, int op, struct operand at, const struct dn_md *md,
            const struct dn_md *to, struct operand *ret, struct ms_err *err)
{
    int rc = 0;
    if (dn_md_n_dims(md) != dn_md_n_dims(to)) {
        rc = as_rows(plan, op, &at, &md, err);
        md = dn_md_as(plan->dn, to, DN_PLAIN);
        if (rc < 0 || md == NULL) {
            return rc < 0 ? rc : dn_md_fail(err);
        }
    }
    if (md == to || emit_padded(plan, md) == emit_padded(plan, to)) {
        *ret = at;
        return 0;
    }
    if (dn_md_n_dims(md) == DN_IMAGE_DIMS && dn_md_dims(md)[1] != dn_md_dims(to)[1]) {
        rc = as_channels(plan, op, &at, &md, to, err);
        if (rc < 0) {
            return rc;
        }
        if (md == to || emit_padded(plan, md) == emit_padded(plan, to)) {
            *ret = at;
            return 0;
        }
    }
    int buffer = emit_buffer_for(plan, to, err);
    if (buffer < 0) {
        return buffer;
    }
    struct operand copy = {PLACE_ARENA, buffer};
    rc = emit_reorder(plan, op, at, md, copy, to, err);
    if (rc == 0) {
        *ret = copy;
    }
    return rc;
}

struct plan_value emit_at(struct operand at, const struct dn_md *md)
{
    return (struct plan_value){at, dn_md_dtype(md), dn_md_count(md), md};
}

int emit_value(struct lowering *lo, int tensor, const struct dn_md *md, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    int buffer = emit_buffer_for(plan, md, err);
    if (buffer < 0) {
        return buffer;
    }
    lo->values[tensor] = emit_at((struct operand){PLACE_ARENA, buffer}, md);
    return 0;
}

int emit_by_channels(struct lowering *lo, int op, enum step_kind kind, struct operand a,
                     struct operand b, const struct dn_md *md, const struct kernel_layout *layout,
                     struct ms_err *err)
{
    const int out = graph_op(lo->plan->graph, op)->out[0];
    int rc = emit_value(lo, out, md, err);
    struct step *step = rc < 0 ? NULL : emit_step(lo->plan, kind, op, ELT_Y + 1, err);
    if (step == NULL) {
        return rc < 0 ? rc : MS_E_NOMEM;
    }
    step->src = md;
    step->operands[ELT_A] = a;
    step->operands[ELT_B] = b;
    step->operands[ELT_Y] = lo->values[out].at;
    step->layout = *layout;
    step->count = lo->values[out].count;
    return 0;
}

static int64_t block_of(enum dn_tag tag)
{
    return tag == DN_NCHW16C ? 16 : tag == DN_NCHW8C ? 8 : 1;
}

const struct dn_md *emit_padded(struct plan *plan, const struct dn_md *md)
{
    int64_t block = block_of(dn_md_tag(md));
    const int64_t *from = dn_md_dims(md);
    if (block == 1 || from[1] % block == 0) {
        return md;
    }
    int64_t dims[DN_IMAGE_DIMS] = {from[0], (from[1] + block - 1) / block * block, from[2],
                                   from[3]};
    const struct dn_md *padded = dn_md(plan->dn, dn_md_dtype(md), 4, dims, dn_md_tag(md));
    return padded != NULL && dn_md_bytes(padded) == dn_md_bytes(md) ? padded : md;
}

const struct dn_md *emit_rows(struct plan *plan, const struct dn_md *md)
{
    const int64_t *dims = dn_md_dims(md);
    int64_t rows[2] = {dims[0], (int64_t)dn_md_count(md) / dims[0]};
    return dn_md(plan->dn, dn_md_dtype(md), 2, rows, DN_PLAIN);
}

struct kernel_layout emit_bn_layout(const struct dn_md *md)
{
    const int64_t *dims = dn_md_dims(md);
    struct kernel_layout layout = {.n = dims[0], .spatial = 1, .channels = dims[1]};
    for (int d = 2; d < dn_md_n_dims(md); d++) {
        layout.spatial *= dims[d];
    }
    int64_t block = block_of(dn_md_tag(md));
    /* With one position a channel, nchw is nhwc, whose rows are long. */
    int channels_last = dn_md_tag(md) == DN_NHWC || (block == 1 && layout.spatial == 1);
    layout.block = channels_last ? dims[1] : block;
    layout.n_blocks = channels_last ? 1 : (dims[1] + block - 1) / block;
    return layout;
}

int emit_bn_scratch(struct plan *plan, const struct kernel_layout *layout, struct operand *ret,
                    struct ms_err *err)
{
    size_t bytes = kernel_bn_scratch(layout, plan->threads);
    int buffer = bytes == 0 ? 0 : emit_buffer(plan, MS_U8, bytes, err);
    if (buffer < 0) {
        return buffer;
    }
    *ret = (struct operand){bytes == 0 ? PLACE_NONE : PLACE_ARENA, buffer};
    return 0;
}
