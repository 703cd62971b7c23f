/* params.c - where parameters, gradients and statistics lie in the flat buffers */
#include "libworker/plan/internal.h"
#include "proto/exact.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

size_t params_padded(size_t count)
{
    return (count + PLAN_LANES - 1) / PLAN_LANES * PLAN_LANES;
}

size_t params_used(const struct plan *plan, const struct plan_param *p)
{
    return p->md != NULL ? dn_md_count(p->md)
                         : (size_t)shape_count(&graph_tensor(plan->graph, p->tensor)->shape);
}

/* Parameter i in the order of offsets: that in which backward produces the gradients. */
static int param_tensor(const struct plan *plan, int i)
{
    return graph_n_gradients(plan->graph) > 0
               ? graph_tensor(plan->graph, graph_gradient(plan->graph, i))->of
               : graph_param_at(plan->graph, i);
}

/* ---- parameters that this plan fixes ------------------------------------------------------------
 */

/* The image whose pixels are the columns of what an op reads as rows; NULL: there is none. */
static const struct shape *image_behind(const struct graph *graph, int tensor)
{
    const struct tensor *t = graph_tensor(graph, tensor);
    int is_there = 0;
    while (!is_there && t->shape.n_dims == 2 && t->producer >= 0) {
        const struct op *op = graph_op(graph, t->producer);
        is_there = op->kind == OP_DENSE;
        t = is_there ? t : graph_tensor(graph, op->in[0]);
    }
    return t->shape.n_dims == DN_IMAGE_DIMS ? &t->shape : NULL;
}

static int64_t groups_of(const struct op *op)
{
    return op->groups > 1 ? op->groups : 1;
}

/* Do they see their weights alike? A convolution does so by its groups, a dense layer by the pixels
 * whose values it reads as they lie. */
static int sees_alike(const struct graph *graph, const struct op *a, const struct op *b)
{
    if (a->kind != b->kind || groups_of(a) != groups_of(b)) {
        return 0;
    }
    const struct shape *of_a = a->kind == OP_DENSE ? image_behind(graph, a->in[0]) : NULL;
    const struct shape *of_b = a->kind == OP_DENSE ? image_behind(graph, b->in[0]) : NULL;
    return of_a == NULL || of_b == NULL
               ? of_a == of_b
               : of_a->dim[2] == of_b->dim[2] && of_a->dim[3] == of_b->dim[3];
}

/* Layers of different kinds may share a weight. Then it lies as each of them can take it. */
static int is_seen_variously(const struct plan *plan, int tensor)
{
    const struct op *first = NULL;
    for (int i = 0; i < plan->n_forward_ops; i++) {
        const struct op *op = graph_op(plan->graph, i);
        for (int k = 0; k < op->n_in; k++) {
            if (op->in[k] == tensor && first != NULL && !sees_alike(plan->graph, first, op)) {
                return 1;
            }
            first = op->in[k] == tensor ? op : first;
        }
    }
    return 0;
}

static int fix_shared(struct plan *plan, struct plan_param *p, struct ms_err *err)
{
    const struct shape *shape = &graph_tensor(plan->graph, p->tensor)->shape;
    if (shape->n_dims < 2 || !is_seen_variously(plan, p->tensor)) {
        return 0;
    }
    p->md = dn_md(plan->dn, plan->weights_dtype, shape->n_dims, shape->dim, DN_PLAIN);
    p->n_dims = shape->n_dims;
    memcpy(p->dims, shape->dim, (size_t)shape->n_dims * sizeof(p->dims[0]));
    return p->md != NULL ? 0 : dn_md_fail(err);
}

static int create_primary(struct plan *plan, struct ms_err *err)
{
    int n_gradients = graph_n_gradients(plan->graph);
    if (plan->training && n_gradients != plan->n_params) {
        return ms_fail(err, MS_E_INVALID,
                       "plan: graph %s has %d gradients for %d parameters; call "
                       "graph_differentiate first",
                       graph_name(plan->graph), n_gradients, plan->n_params);
    }
    int rc = 0;
    for (int i = 0; i < plan->n_params && rc == 0; i++) {
        int tensor = param_tensor(plan, i);
        plan->params[i] = (struct plan_param){.tensor = tensor, .via = DN_ANY};
        plan->param_of[tensor] = i;
        rc = fix_shared(plan, &plan->params[i], err);
    }
    return rc;
}

/* ---- parameters that a spec gives ---------------------------------------------------------------
 */

static enum dn_tag columns_tag(const char *name)
{
    static const struct {
        const char *name;
        enum dn_tag tag;
    } rows[] = {{"aBcd8b", DN_NCHW8C}, {"aBcd16b", DN_NCHW16C}, {"acdb", DN_NHWC}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].tag;
        }
    }
    return DN_OTHER;
}

/* A dense weight whose columns are those of an image, padding included. 0: it is not. */
static int has_columns(struct plan *plan, const struct plan_spec_param *from,
                       const struct shape *logical)
{
    const struct shape *image = &from->columns_shape;
    const struct dn_md *md =
        dn_md(plan->dn, plan->weights_dtype, DN_IMAGE_DIMS, image->dim, columns_tag(from->columns));
    return logical->n_dims == 2 && image->n_dims == DN_IMAGE_DIMS && md != NULL &&
           image->dim[0] == logical->dim[0] && shape_count(image) == shape_count(logical) &&
           from->shape.n_dims == 2 && from->shape.dim[0] == logical->dim[0] &&
           shape_count(&from->shape) == (int64_t)dn_md_count(md);
}

/* Of one pixel a convolution's weight may be a matrix, (o, i), which kernels see as (o, i, 1, 1).
 */
static struct shape as_image(const struct shape *logical, int n_dims)
{
    struct shape image = *logical;
    while (n_dims >= DN_IMAGE_DIMS && logical->n_dims == 2 && image.n_dims < DN_IMAGE_DIMS) {
        image.dim[image.n_dims++] = 1;
    }
    return image;
}

/* (g, o/g, i/g, kh, kw) of the graph's (o, i/g, kh, kw). */
static int is_grouped(const struct shape *shape, const struct shape *logical)
{
    const size_t rest = (DN_IMAGE_DIMS - 1) * sizeof(int64_t);
    return shape->n_dims == DN_DIMS_MAX && logical->n_dims == DN_IMAGE_DIMS &&
           logical->dim[0] % shape->dim[0] == 0 &&
           shape->dim[1] == logical->dim[0] / shape->dim[0] &&
           memcmp(&shape->dim[2], &logical->dim[1], rest) == 0;
}

/* The shape is the graph's; a convolution's may be in groups, or have a few input channels more. */
static int has_shape(const struct shape *shape, const struct shape *logical)
{
    const struct shape want = as_image(logical, shape->n_dims);
    struct shape same = *shape;
    if (is_grouped(shape, &want)) {
        return 1;
    }
    if (same.n_dims == DN_IMAGE_DIMS && want.n_dims == DN_IMAGE_DIMS && same.dim[1] > want.dim[1] &&
        same.dim[1] < want.dim[1] + PLAN_LANES) {
        same.dim[1] = want.dim[1];
    }
    return shape_equal(&same, &want);
}

static int is_of_shape(struct plan *plan, const struct plan_spec_param *from,
                       const struct shape *logical)
{
    return from->columns[0] != '\0' ? has_columns(plan, from, logical)
                                    : has_shape(&from->shape, logical);
}

/* 0: it cannot be. */
static int take_param(struct plan *plan, const struct plan_spec_param *from, struct plan_param *ret)
{
    const struct shape *logical = &graph_tensor(plan->graph, ret->tensor)->shape;
    int is_vector = logical->n_dims == 1;
    int is_permuted = from->columns[0] != '\0';
    if (!is_of_shape(plan, from, logical)) {
        return 0;
    }
    ret->offset = (size_t)from->offset;
    ret->count = (size_t)from->count;
    ret->n_dims = from->shape.n_dims;
    memcpy(ret->dims, from->shape.dim, (size_t)ret->n_dims * sizeof(ret->dims[0]));
    if (is_permuted) {
        ret->via = columns_tag(from->columns);
        memcpy(ret->via_dims, from->columns_shape.dim, sizeof(ret->via_dims));
    }
    ret->md = is_vector ? NULL
                        : dn_md_named(plan->dn, plan->weights_dtype, ret->n_dims, ret->dims,
                                      from->layout);
    if (is_vector ? strcmp(from->layout, "a") != 0
                  : !dn_md_is_named(plan->dn, ret->md, from->layout)) {
        return 0;
    }
    return ret->count == params_padded(params_used(plan, ret));
}

/* In the order of the gradients where there are any: buckets fill in it. */
static int is_in_place(const struct plan *plan, int tensor, int i)
{
    return plan->training ? param_tensor(plan, i) == tensor : plan->param_of[tensor] < 0;
}

/* Why a parameter cannot be as its line says. */
static int refuse_param(struct plan *plan, int line, const struct plan_spec_param *from, int tensor,
                        struct ms_err *err)
{
    char there[96];
    char here[96];
    const char *network = graph_name(plan->graph);
    if (tensor < 0 || graph_tensor(plan->graph, tensor)->role != TENSOR_PARAM) {
        return ms_fail(err, MS_E_INVALID,
                       "plan line %d: network %s of this job has no parameter %s", line, network,
                       from->name);
    }
    const struct shape *logical = &graph_tensor(plan->graph, tensor)->shape;
    if (!is_of_shape(plan, from, logical)) {
        return ms_fail(
            err, MS_E_INVALID,
            "plan line %d: parameter %s is %s there, and %s in this job: classes or images "
            "are not those of the plan's job",
            line, from->name, shape_format(&from->shape, there, sizeof(there)),
            shape_format(logical, here, sizeof(here)));
    }
    return ms_fail(err, MS_E_INVALID,
                   "plan line %d: parameter %s cannot lie as this line says: its place, size or "
                   "layout is none of network %s's",
                   line, from->name, network);
}

static int create_given(struct plan *plan, const struct plan_spec *spec, struct ms_err *err)
{
    for (int i = 0; i < plan->n_params; i++) {
        const struct plan_spec_param *from = &spec->params[i];
        int tensor = graph_find(plan->graph, from->name);
        plan->params[i] = (struct plan_param){.tensor = tensor, .via = DN_ANY};
        if (tensor < 0 || graph_tensor(plan->graph, tensor)->role != TENSOR_PARAM ||
            !is_in_place(plan, tensor, i) || !take_param(plan, from, &plan->params[i])) {
            return refuse_param(plan, plan_spec_line(spec, PLAN_ITEM_PARAM, i), from, tensor, err);
        }
        plan->param_of[tensor] = i;
        plan->weights_count = plan->params[i].offset + plan->params[i].count;
    }
    return mirrors_place(plan, spec, err);
}

/* ---- statistics ---------------------------------------------------------------------------------
 */

/* Statistics lie in the order of the graph, one behind the other: a row must say the same. */
static int check_stat(const struct plan *plan, const struct plan_spec *spec, int i,
                      struct ms_err *err)
{
    const struct plan_stat *stat = &plan->stats[i];
    const char *name = graph_tensor(plan->graph, stat->state)->name;
    if (i >= spec->n_stats) {
        return ms_fail(
            err, MS_E_INVALID, "plan line %d: behind it statistic %s of graph %s is missing",
            plan_spec_line(spec, PLAN_ITEM_STAT, spec->n_stats - 1), name, graph_name(plan->graph));
    }
    const struct plan_spec_stat *row = &spec->stats[i];
    return strcmp(row->name, name) == 0 && (size_t)row->offset == stat->offset &&
                   (size_t)row->count == stat->count
               ? 0
               : ms_fail(err, MS_E_INVALID,
                         "plan line %d: statistic %s at %" PRId64 " of %" PRId64
                         " elements: network %s has %s at %zu of %zu there",
                         plan_spec_line(spec, PLAN_ITEM_STAT, i), row->name, row->offset,
                         row->count, graph_name(plan->graph), name, stat->offset, stat->count);
}

static int add_stat(struct plan *plan, const struct plan_spec *spec, int tensor, struct ms_err *err)
{
    const struct tensor *t = graph_tensor(plan->graph, tensor);
    struct plan_stat *stat = &plan->stats[plan->n_stats];
    *stat = (struct plan_stat){.state = t->of,
                               .stat = tensor,
                               .offset = plan->stats_count,
                               .count = params_padded((size_t)shape_count(&t->shape))};
    int rc = plan->is_primary ? 0 : check_stat(plan, spec, plan->n_stats, err);
    plan->stats_count += stat->count;
    plan->stat_of[tensor] = plan->n_stats;
    plan->stat_of[t->of] = plan->n_stats;
    plan->n_stats++;
    return rc;
}

static int create_stats(struct plan *plan, const struct plan_spec *spec, struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < plan->n_forward_ops && rc == 0; i++) {
        const struct op *op = graph_op(plan->graph, i);
        for (int k = 0; k < op->n_out && rc == 0; k++) {
            int is_stat = graph_tensor(plan->graph, op->out[k])->role == TENSOR_STAT;
            rc = is_stat ? add_stat(plan, spec, op->out[k], err) : 0;
        }
    }
    return rc < 0 || plan->is_primary || plan->n_stats == spec->n_stats
               ? rc
               : ms_fail(err, MS_E_INVALID,
                         "plan line %d: network %s of this job has %d statistics",
                         plan_spec_line(spec, PLAN_ITEM_STAT, -1), graph_name(plan->graph),
                         plan->n_stats);
}

int params_create(struct plan *plan, const struct plan_spec *spec, struct ms_err *err)
{
    size_t n_tensors = (size_t)graph_n_tensors(plan->graph);
    plan->is_primary = plan->is_draft && spec->n_params == 0;
    plan->n_params = graph_n_params(plan->graph);
    plan->params = calloc((size_t)plan->n_params + 1, sizeof(*plan->params));
    plan->stats = calloc(n_tensors + 1, sizeof(*plan->stats));
    plan->param_of = malloc((n_tensors + 1) * sizeof(int));
    plan->stat_of = malloc((n_tensors + 1) * sizeof(int));
    if (plan->params == NULL || plan->stats == NULL || plan->param_of == NULL ||
        plan->stat_of == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d parameters", plan->n_params);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        plan->param_of[i] = -1;
        plan->stat_of[i] = -1;
    }
    if (!plan->is_primary && spec->n_params != plan->n_params) {
        return ms_fail(err, MS_E_INVALID, "plan line %d: network %s of this job has %d parameters",
                       plan_spec_line(spec, PLAN_ITEM_PARAM, -1), graph_name(plan->graph),
                       plan->n_params);
    }
    int rc = plan->is_primary ? create_primary(plan, err) : create_given(plan, spec, err);
    return rc < 0 ? rc : create_stats(plan, spec, err);
}

void params_place(struct plan *plan)
{
    if (!plan->is_primary) { /* given */
        return;
    }
    for (int i = 0; i < plan->n_params; i++) {
        struct plan_param *p = &plan->params[i];
        p->offset = plan->weights_count;
        p->count = params_padded(params_used(plan, p));
        plan->weights_count += p->count;
    }
}

/* ---- buckets ------------------------------------------------------------------------------------
 */

static void find_last_writers(const struct plan *plan, int *last)
{
    for (int i = 0; i < plan->n_params; i++) {
        last[i] = -1;
    }
    for (int s = 0; s < plan->n_steps; s++) {
        const struct step *step = &plan->steps[s];
        for (int k = 0; k < step->n_operands; k++) {
            if (step->operands[k].place == PLACE_EXCHANGE) {
                last[step->operands[k].index] = s;
            }
        }
    }
}

static void cut_buckets(struct plan *plan, const int *last)
{
    size_t max = plan->bucket_bytes_max / ms_dtype_bytes(plan->exchange_dtype);
    int complete = plan->n_forward_steps - 1;
    if (plan->stats_count > 0) {
        plan->buckets[0] = (struct plan_bucket){0, plan->stats_count};
        plan->bucket_step[0] = complete;
        plan->n_buckets = 1;
    }
    int current = -1;
    for (int i = 0; i < plan->n_params; i++) {
        const struct plan_param *p = &plan->params[i];
        if (current < 0 || plan->buckets[current].count + p->count > max) {
            current = plan->n_buckets++;
            plan->buckets[current] = (struct plan_bucket){plan->stats_count + p->offset, 0};
        }
        plan->buckets[current].count += p->count;
        complete = last[i] > complete ? last[i] : complete;
        plan->bucket_step[current] = complete;
    }
}

int params_buckets(struct plan *plan, struct ms_err *err)
{
    if (!plan->training) {
        return 0;
    }
    size_t n_max = (size_t)plan->n_params + 1;
    plan->buckets = calloc(n_max, sizeof(*plan->buckets));
    plan->bucket_step = calloc(n_max, sizeof(int));
    int *last = malloc(n_max * sizeof(int));
    if (plan->buckets == NULL || plan->bucket_step == NULL || last == NULL) {
        free(last);
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d buckets", plan->n_params);
    }
    find_last_writers(plan, last);
    cut_buckets(plan, last);
    free(last);
    return 0;
}

/* What a batch's statistic enters its moving state with. */
static double share_of(const struct plan *plan, const struct plan_stat *stat)
{
    const struct tensor *t = graph_tensor(plan->graph, stat->stat);
    const double n = (double)t->stat_count;
    const double take = 1.0 - graph_tensor(plan->graph, stat->state)->momentum;
    return t->is_variance && t->stat_count > 1 ? take * (n / (n - 1.0)) : take;
}

void plan_fold_stats(const struct plan *plan, float *folded, const float *before,
                     const float *stats)
{
    for (int i = 0; i < plan->n_stats; i++) {
        const struct plan_stat *stat = &plan->stats[i];
        const double keep = graph_tensor(plan->graph, stat->state)->momentum;
        const double take = share_of(plan, stat);
        for (size_t k = stat->offset; k < stat->offset + stat->count; k++) {
            const double kept = before != NULL ? keep * (double)before[k] : 0;
            folded[k] = (float)(kept + take * (double)stats[k]);
        }
    }
}

void plan_commit_folded(const struct plan *plan, const float *reduced, float scale, int64_t batches,
                        float *moving)
{
    for (int i = 0; i < plan->n_stats; i++) {
        const struct plan_stat *stat = &plan->stats[i];
        const double keep =
            ms_exact_power(graph_tensor(plan->graph, stat->state)->momentum, (uint64_t)batches);
        for (size_t k = stat->offset; k < stat->offset + stat->count; k++) {
            moving[k] = (float)(keep * (double)moving[k] + (double)scale * (double)reduced[k]);
        }
    }
}

void plan_commit_stats(const struct plan *plan, const float *reduced, float scale, float *moving)
{
    for (int i = 0; i < plan->n_stats; i++) {
        const struct plan_stat *stat = &plan->stats[i];
        const struct tensor *t = graph_tensor(plan->graph, stat->stat);
        double keep = graph_tensor(plan->graph, stat->state)->momentum;
        double n = (double)t->stat_count;
        double take = (1.0 - keep) * (double)scale;
        if (t->is_variance && t->stat_count > 1) {
            take *= n / (n - 1.0);
        }
        for (size_t k = stat->offset; k < stat->offset + stat->count; k++) {
            moving[k] = (float)(keep * (double)moving[k] + take * (double)reduced[k]);
        }
    }
}
