/* lower_conv.c - forward convolution and dense layers: where the layouts are decided
 *
 * The primary plan's forward primitive fixes the layout of its weight; backward-weights is made to
 * write the gradient in the same one. Other plans are given that layout. */
#include "libworker/plan/lowering.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct dn_md *lower_weights_as(struct plan *plan, int param, const struct dn_md *like)
{
    const struct dn_md *md = plan->params[param].md;
    return md == NULL || dn_md_n_dims(md) == dn_md_n_dims(like)
               ? md
               : dn_md_as(plan->dn, like, DN_PLAIN);
}

int lower_weights(struct plan *plan, int op, int param, const struct dn_md *want,
                  struct operand *ret, struct ms_err *err)
{
    const struct plan_param *p = &plan->params[param];
    if (want == p->mirror && plan->training) { /* evaluation may have other weights */
        *ret = (struct operand){PLACE_MIRROR, param};
        return 0;
    }
    return emit_as(plan, op, (struct operand){PLACE_WEIGHTS, param}, p->md, want, ret, err);
}

/* `keep` spares a reorder: it wins unless the free choice has a better class of code. */
static int is_as_good(const struct dn_pd *keep, const struct dn_pd *any)
{
    return keep != NULL && (any == NULL || dn_pd_rank(keep) >= dn_pd_rank(any) ||
                            strcmp(dn_pd_impl(keep), dn_pd_impl(any)) == 0);
}

/* The bias of an op that has one. */
static int bias_layout(struct plan *plan, const struct op *op, struct dn_spec *spec,
                       struct ms_err *err)
{
    if (op->n_in < 3) {
        return 0;
    }
    const struct shape *bias = &graph_tensor(plan->graph, op->in[2])->shape;
    spec->bias = dn_md(plan->dn, plan->weights_dtype, 1, bias->dim, DN_PLAIN);
    return spec->bias != NULL ? 0 : dn_md_fail(err);
}

static struct operand bias_of(const struct plan *plan, const struct op *op)
{
    return op->n_in < 3 ? (struct operand){PLACE_NONE, 0}
                        : (struct operand){PLACE_WEIGHTS, plan->param_of[op->in[2]]};
}

struct conv {
    const struct op *op;
    const struct plan_param *param; /* as the op sees it */
    const struct dn_md *x;          /* the source as it lies */
    int64_t groups;
    int64_t out_dims[DN_IMAGE_DIMS];
    struct dn_spec spec;
};

/* The weights of a source with so many channels, in any layout; NULL: no memory. */
static const struct dn_md *weights_of(struct plan *plan, const struct conv *conv, int64_t channels)
{
    const int64_t out = conv->out_dims[1];
    const int64_t g = conv->groups;
    const int64_t *kernel = conv->spec.kernel;
    const int64_t whole[DN_IMAGE_DIMS] = {out, channels, kernel[0], kernel[1]};
    const int64_t grouped[DN_DIMS_MAX] = {g, out / g, channels / g, kernel[0], kernel[1]};
    return g > 1 ? dn_md(plan->dn, plan->precision, DN_DIMS_MAX, grouped, DN_ANY)
                 : dn_md(plan->dn, plan->precision, DN_IMAGE_DIMS, whole, DN_ANY);
}

/* Sets source and weights of the spec: channels as the source has them. 0: cannot be. */
static int set_source(struct plan *plan, struct conv *conv, const struct dn_md *src)
{
    const struct dn_md *any = weights_of(plan, conv, dn_md_dims(src)[1]);
    const struct dn_md *fixed = conv->param->md;
    conv->spec.src = src;
    conv->spec.weights = fixed != NULL ? fixed : any;
    return any != NULL &&
           (fixed == NULL || (dn_md_n_dims(fixed) == dn_md_n_dims(any) &&
                              memcmp(dn_md_dims(fixed), dn_md_dims(any),
                                     (size_t)dn_md_n_dims(any) * sizeof(int64_t)) == 0));
}

/* Padding is taken for channels only where they are not in groups: it would be in the last one. */
static int64_t padded_channels(struct plan *plan, const struct conv *conv)
{
    return dn_md_dims(conv->groups > 1 ? conv->x : emit_padded(plan, conv->x))[1];
}

/* In the order of preference: the source as it lies; the same bytes with the padding taken for
 * channels (oneDNN has fast code for 16 channels and none for 6 padded to 16: the additional
 * weights are zero and stay zero); whatever oneDNN likes best. */
static struct dn_pd *pick(struct plan *plan, struct conv *conv)
{
    int64_t any_dims[DN_IMAGE_DIMS];
    memcpy(any_dims, dn_md_dims(conv->x), sizeof(any_dims));
    if (conv->param->md != NULL && conv->groups == 1) {
        any_dims[1] = conv->param->dims[1];
    }
    const struct dn_md *any_src = dn_md(plan->dn, plan->precision, 4, any_dims, DN_ANY);
    const struct dn_md *padded = conv->groups > 1 ? conv->x : emit_padded(plan, conv->x);
    struct dn_pd *any = NULL;
    if (any_src != NULL && set_source(plan, conv, any_src)) {
        any = lower_try(plan, &conv->spec);
    }
    const struct dn_md *kept[2] = {conv->x, padded};
    for (int i = 0; i < 2; i++) {
        if ((i == 1 && padded == conv->x) || !set_source(plan, conv, kept[i])) {
            continue;
        }
        struct dn_pd *pd = lower_try(plan, &conv->spec);
        if (is_as_good(pd, any)) {
            dn_pd_destroy(any);
            return pd;
        }
        dn_pd_destroy(pd);
    }
    if (any != NULL) {
        (void)set_source(plan, conv, any_src);
    }
    return any;
}

/* The result must be in a layout that our kernels know. oneDNN's reference code is fifty times
 * slower than a matrix product: it is taken where no other layout has anything else. */
static struct dn_pd *pick_known(struct plan *plan, struct conv *conv)
{
    static const enum dn_tag tags[] = {DN_ANY, DN_NCHW16C, DN_NHWC, DN_PLAIN};
    struct dn_pd *slow = NULL;
    struct dn_spec spec_of_slow = conv->spec;
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        conv->spec.dst = dn_md(plan->dn, plan->precision, 4, conv->out_dims, tags[i]);
        struct dn_pd *pd = conv->spec.dst == NULL ? NULL : pick(plan, conv);
        const int is_known = pd != NULL && dn_md_tag(dn_pd_md(plan->dn, pd, DN_DST)) != DN_OTHER;
        if (is_known && dn_pd_rank(pd) > 0) {
            dn_pd_destroy(slow);
            return pd;
        }
        if (is_known && slow == NULL) {
            slow = pd;
            spec_of_slow = conv->spec;
        } else {
            dn_pd_destroy(pd);
        }
    }
    conv->spec = spec_of_slow;
    return slow;
}

/* A layout that another plan fixed may be one for which this batch has only reference code: then
 * the weights are reordered. */
static struct dn_pd *pick_weights(struct plan *plan, struct conv *conv)
{
    struct dn_pd *pd = pick_known(plan, conv);
    if (conv->param->md == NULL || (pd != NULL && dn_pd_rank(pd) == 2)) {
        return pd;
    }
    const struct plan_param *fixed = conv->param;
    struct plan_param free_choice = *fixed;
    free_choice.md = NULL;
    conv->param = &free_choice;
    struct dn_pd *other = pick_known(plan, conv);
    conv->param = fixed;
    int fits =
        other != NULL && dn_md_dims(dn_pd_md(plan->dn, other, DN_WEIGHTS))[1] == fixed->dims[1];
    if (fits && !is_as_good(pd, other)) {
        dn_pd_destroy(pd);
        return other;
    }
    dn_pd_destroy(other);
    return pd;
}

static int choose(struct plan *plan, struct conv *conv, struct dn_pd **ret, struct ms_err *err)
{
    *ret = pick_weights(plan, conv);
    return *ret != NULL ? 0
                        : ms_fail(err, MS_E_UNSUPPORTED,
                                  "oneDNN %s has no convolution for weight %s; change its window "
                                  "or channels",
                                  dn_version(), graph_tensor(plan->graph, conv->op->in[1])->name);
}

/* The row's, or the graph's: no more than lie there, with the padding of the layout. */
static int find_channels(struct plan *plan, const struct conv *conv, const struct plan_spec_op *row,
                         int64_t graphs, int64_t *ret, struct ms_err *err)
{
    const int64_t padded = padded_channels(plan, conv);
    *ret = row != NULL && row->channels != 0 ? row->channels : graphs;
    return *ret == graphs || *ret == padded
               ? 0
               : ms_fail(err, MS_E_INVALID,
                         "channels=%" PRId64 ", and its source has %" PRId64
                         ", with padding %" PRId64,
                         *ret, graphs, padded);
}

/* As many input channels as the row says, all layouts free. */
static int obey(struct lowering *lo, int index, struct conv *conv, struct dn_pd **ret,
                struct ms_err *err)
{
    struct dn *dn = lo->plan->dn;
    enum ms_dtype precision = lo->plan->precision;
    const struct shape *w = &graph_tensor(lo->plan->graph, conv->op->in[1])->shape;
    const struct plan_spec_op *row = lo->rows[index];
    int64_t src[DN_IMAGE_DIMS];
    memcpy(src, dn_md_dims(conv->x), sizeof(src));
    int rc = find_channels(lo->plan, conv, row, w->dim[1] * conv->groups, &src[1], err);
    if (rc < 0) {
        return rc;
    }
    conv->spec.src = dn_md(dn, precision, DN_IMAGE_DIMS, src, DN_ANY);
    conv->spec.weights = weights_of(lo->plan, conv, src[1]);
    conv->spec.dst = dn_md(dn, precision, DN_IMAGE_DIMS, conv->out_dims, DN_ANY);
    return lower_obey(lo, index, &conv->spec, ret, err);
}

static void set_layout(struct plan_param *param, const struct dn_md *md)
{
    param->md = md;
    param->n_dims = dn_md_n_dims(md);
    memcpy(param->dims, dn_md_dims(md), (size_t)param->n_dims * sizeof(int64_t));
}

void lower_fix_param(struct plan_param *param, const struct dn_md *md)
{
    if (param->md == NULL) {
        set_layout(param, md);
    }
}

/* The parameter as the convolution sees it. */
static int see_param(struct plan *plan, const struct conv *conv, struct plan_param *ret,
                     struct ms_err *err)
{
    const int64_t *w = graph_tensor(plan->graph, conv->op->in[1])->shape.dim;
    const int param = plan->param_of[conv->op->in[1]];
    *ret = plan->params[param];
    if (ret->md == NULL) {
        return 0;
    }
    const struct dn_md *any = weights_of(plan, conv, w[1] * conv->groups);
    const struct dn_md *md = any == NULL ? NULL : lower_weights_as(plan, param, any);
    if (md == NULL) {
        return dn_md_fail(err);
    }
    set_layout(ret, md);
    return 0;
}

/* Padded input channels that another plan fixed: the source must have them too. */
static int match_padding(struct lowering *lo, int index, const struct plan_param *param, int x,
                         struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct dn_md *md = lo->values[x].md;
    if (param->md == NULL || param->n_dims != DN_IMAGE_DIMS ||
        dn_md_dims(emit_padded(plan, md))[1] == param->dims[1] ||
        dn_md_dims(md)[1] == param->dims[1]) {
        return 0;
    }
    enum dn_tag tag = param->dims[1] % 16 == 0 ? DN_NCHW16C : DN_NCHW8C;
    const struct dn_md *to = dn_md_as(plan->dn, md, tag);
    return to == NULL ? dn_md_fail(err) : lower_relayout(lo, index, x, to, err);
}

int lower_conv(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct fusion *fusion = &lo->fusions[index];
    int param = plan->param_of[op->in[1]];
    struct plan_param seen;
    struct conv conv = {.op = op, .param = &seen};
    conv.spec.kind = DN_CONV_FWD;
    conv.spec.inference = !plan->training;
    conv.spec.relu = fusion->relu >= 0;
    conv.groups = op->groups > 0 ? op->groups : 1;
    lower_window(op, &conv.spec);
    const struct shape *y = &graph_tensor(plan->graph, op->out[0])->shape;
    memcpy(conv.out_dims, y->dim, sizeof(conv.out_dims));
    int rc = see_param(plan, &conv, &seen, err);
    rc = rc < 0 ? rc : match_padding(lo, index, &seen, op->in[0], err);
    rc = rc < 0 ? rc : bias_layout(plan, op, &conv.spec, err);
    if (rc < 0) {
        return rc;
    }
    conv.x = lo->values[op->in[0]].md;
    struct dn_pd *pd = NULL;
    rc = lo->spec != NULL ? obey(lo, index, &conv, &pd, err) : choose(plan, &conv, &pd, err);
    if (rc < 0) {
        return rc;
    }
    lo->hints[index] = pd;
    const struct dn_md *weights = dn_pd_md(plan->dn, pd, DN_WEIGHTS);
    lower_fix_param(&plan->params[param], weights);
    struct operand args[DN_ROLES] = {{PLACE_NONE, 0}};
    rc = lower_relayout(lo, index, op->in[0], dn_pd_md(plan->dn, pd, DN_SRC), err);
    args[DN_SRC] = lo->values[op->in[0]].at;
    args[DN_BIAS] = bias_of(plan, op);
    rc = rc < 0 ? rc : lower_weights(plan, index, param, weights, &args[DN_WEIGHTS], err);
    rc = rc < 0 ? rc : emit_value(lo, fusion->out, dn_pd_md(plan->dn, pd, DN_DST), err);
    args[DN_DST] = lo->values[fusion->out].at;
    return rc < 0 ? rc : emit_primitive(plan, index, &conv.spec, pd, args, err);
}

/* The permutation of a dense weight's columns that goes with a source: DN_ANY for none. */
static enum dn_tag columns_of(struct plan *plan, const struct dn_md *md)
{
    const int64_t *dims = dn_md_dims(md);
    enum dn_tag tag = dn_md_tag(md);
    if (dn_md_n_dims(md) < 4 || tag == DN_PLAIN) {
        return DN_ANY;
    }
    /* of one pixel the columns lie as in a matrix; in a layout that we do not know nobody says so
     */
    int one_pixel = dims[2] * dims[3] == 1 && tag != DN_OTHER && emit_padded(plan, md) == md;
    return one_pixel ? DN_ANY : tag;
}

/* Columns that were fixed before are those of this very source, not of another one of that size. */
static int check_columns(struct lowering *lo, int param, const struct dn_md *md, struct ms_err *err)
{
    const struct plan_param *p = &lo->plan->params[param];
    size_t dims = (DN_IMAGE_DIMS - 1) * sizeof(int64_t);
    if (p->md == NULL || p->via == DN_ANY ||
        (dn_md_n_dims(md) == DN_IMAGE_DIMS &&
         memcmp(&dn_md_dims(md)[1], &p->via_dims[1], dims) == 0)) {
        return 0;
    }
    const char *name = graph_tensor(lo->plan->graph, p->tensor)->name;
    return lo->spec == NULL
               ? ms_fail(err, MS_E_INVALID, "the columns of %s are not those of its source", name)
               : ms_fail(err, MS_E_INVALID,
                         "the columns of %s in line %d are not those of its source", name,
                         plan_spec_line(lo->spec, PLAN_ITEM_PARAM, param));
}

/* Brings the source into a layout whose bytes can be read as rows, the one that the weight has. */
static int dense_source(struct lowering *lo, int index, struct plan_param *param, int x,
                        struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct dn_md *md = lo->values[x].md;
    enum dn_tag tag = columns_of(plan, md);
    enum dn_tag want = param->md != NULL ? param->via : tag == DN_OTHER ? DN_ANY : tag;
    if (tag != want) {
        const struct dn_md *to = dn_md_as(plan->dn, md, want == DN_ANY ? DN_PLAIN : want);
        int rc = to == NULL ? dn_md_fail(err) : lower_relayout(lo, index, x, to, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (param->md == NULL) {
        param->via = want;
        memcpy(param->via_dims, dn_md_dims(md), sizeof(param->via_dims));
        param->via_dims[0] = graph_tensor(plan->graph, param->tensor)->shape.dim[0];
    }
    return 0;
}

/* Weights in the layout that another plan fixed, unless there is only slow code for it. */
static int choose_dense(struct plan *plan, const struct dn_spec *spec, const struct dn_md *fixed,
                        struct dn_pd **ret, struct ms_err *err)
{
    struct dn_spec given = *spec;
    given.weights = fixed;
    struct dn_pd *keep = fixed == NULL ? NULL : lower_try(plan, &given);
    if (keep != NULL && dn_pd_rank(keep) == 2) {
        *ret = keep;
        return 0;
    }
    dn_pd_destroy(keep);
    return lower_only(plan, spec, ret, err);
}

int lower_dense(struct lowering *lo, int index, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    const struct op *op = graph_op(plan->graph, index);
    const struct fusion *fusion = &lo->fusions[index];
    int param = plan->param_of[op->in[1]];
    struct plan_param *p = &plan->params[param];
    int rc = check_columns(lo, param, lo->values[op->in[0]].md, err);
    rc = rc < 0 ? rc : dense_source(lo, index, p, op->in[0], err);
    if (rc < 0) {
        return rc;
    }
    lo->sources[index] = lo->values[op->in[0]].md;
    const struct dn_md *src = emit_rows(plan, lo->sources[index]);
    const int64_t out = graph_tensor(plan->graph, op->in[1])->shape.dim[0];
    int64_t dims[2] = {out, src == NULL ? 0 : dn_md_dims(src)[1]};
    int64_t made[2] = {src == NULL ? 0 : dn_md_dims(src)[0], out}; /* tokens are rows, too */
    struct dn_spec spec = {.kind = DN_DENSE_FWD,
                           .src = src,
                           .weights = dn_md(plan->dn, plan->precision, 2, dims, DN_ANY),
                           .dst = dn_md(plan->dn, plan->precision, 2, made, DN_PLAIN),
                           .relu = fusion->relu >= 0,
                           .inference = !plan->training};
    if (src == NULL || spec.weights == NULL || spec.dst == NULL) {
        return dn_md_fail(err);
    }
    rc = bias_layout(plan, op, &spec, err);
    if (rc < 0) {
        return rc;
    }
    struct dn_pd *pd = NULL;
    rc = lo->spec != NULL ? lower_obey(lo, index, &spec, &pd, err)
                          : choose_dense(plan, &spec, p->md, &pd, err);
    if (rc < 0) {
        return rc;
    }
    lo->hints[index] = pd;
    const struct dn_md *weights = dn_pd_md(plan->dn, pd, DN_WEIGHTS);
    lower_fix_param(p, weights);
    struct operand args[DN_ROLES] = {
        [DN_SRC] = lo->values[op->in[0]].at, [DN_BIAS] = bias_of(plan, op)};
    rc = lower_weights(plan, index, param, weights, &args[DN_WEIGHTS], err);
    rc = rc < 0 ? rc : emit_value(lo, fusion->out, spec.dst, err);
    args[DN_DST] = lo->values[fusion->out].at;
    return rc < 0 ? rc : emit_primitive(plan, index, &spec, pd, args, err);
}
