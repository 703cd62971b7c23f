/* logical.c - parameters and states between the kernels' layout and that of files
 *
 *     logical (out, in, kh, kw) -> rows with padded input channels -> via -> kernel layout
 *
 * Either side of `via` is left out where it changes nothing; see struct plan_param. */
#include "libworker/plan/internal.h"

#include <stdlib.h>
#include <string.h>

int plan_reorder(struct plan *plan, const struct dn_md *from_md, void *from,
                 const struct dn_md *to_md, void *to, struct ms_err *err)
{
    if (from_md == to_md) {
        memcpy(to, from, dn_md_bytes(to_md));
        return 0;
    }
    struct dn_spec spec = {.kind = DN_REORDER, .src = from_md, .dst = to_md};
    struct dn_pd *pd = NULL;
    struct dn_prim *prim = NULL;
    void *scratch = NULL;
    int rc = dn_pd_create(plan->dn, &spec, &pd, err);
    rc = rc < 0 ? rc : dn_prim_create(plan->dn, pd, &prim, err);
    for (int i = 0; rc == 0 && i < dn_prim_n_args(prim); i++) {
        enum dn_role role = dn_prim_role(prim, i);
        void *data = role == DN_SRC ? from : to;
        if (role == DN_SCRATCHPAD) {
            size_t bytes = (dn_md_bytes(dn_prim_md(prim, i)) + PLAN_ALIGN) / PLAN_ALIGN;
            scratch = data = aligned_alloc(PLAN_ALIGN, bytes * PLAN_ALIGN);
        }
        rc = data == NULL ? ms_fail(err, MS_E_NOMEM, "plan: no memory to reorder a parameter")
                          : dn_prim_set(prim, i, data);
    }
    if (rc == 0 && dn_prim_run(plan->dn, prim) < 0) {
        rc = ms_fail(err, MS_E_FAILED, "plan: oneDNN failed to reorder a parameter");
    }
    dn_prim_destroy(prim);
    dn_pd_destroy(pd);
    free(scratch);
    return rc;
}

static void *alloc_zeros(size_t bytes)
{
    size_t rounded = (bytes / PLAN_ALIGN + 1) * PLAN_ALIGN;
    void *zeros = aligned_alloc(PLAN_ALIGN, rounded);
    if (zeros != NULL) {
        memset(zeros, 0, rounded);
    }
    return zeros;
}

struct stages { /* of one parameter: the layouts on the way */
    const struct dn_md *rows, *via, *flat;
    size_t n_rows, row_bytes, padded_bytes; /* of a logical and of a padded row */
    void *a, *b;
};

static int stages_init(struct stages *st, struct plan *plan, const struct plan_param *p,
                       struct ms_err *err)
{
    const struct shape *shape = &graph_tensor(plan->graph, p->tensor)->shape;
    enum ms_dtype dtype = plan->weights_dtype;
    memset(st, 0, sizeof(*st));
    st->n_rows = (size_t)shape->dim[0];
    st->row_bytes = ms_dtype_size(dtype, (size_t)shape_count(shape)) / st->n_rows;
    st->padded_bytes = st->row_bytes;
    if (p->via == DN_ANY) {
        st->rows = dn_md(plan->dn, dtype, p->n_dims, p->dims, DN_PLAIN);
        st->via = st->rows;
        st->flat = st->rows;
        st->padded_bytes = st->rows == NULL ? 0 : dn_md_bytes(st->rows) / st->n_rows;
    } else {
        st->rows = dn_md(plan->dn, dtype, DN_IMAGE_DIMS, p->via_dims, DN_PLAIN);
        st->via = dn_md(plan->dn, dtype, DN_IMAGE_DIMS, p->via_dims, p->via);
        st->flat = dn_md(plan->dn, dtype, p->n_dims, p->dims, DN_PLAIN);
    }
    if (st->rows == NULL || st->via == NULL || st->flat == NULL) {
        return dn_md_fail(err);
    }
    st->a = alloc_zeros(dn_md_bytes(st->rows));
    st->b = alloc_zeros(dn_md_bytes(st->via));
    if (st->a == NULL || st->b == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for parameter %s",
                       graph_tensor(plan->graph, p->tensor)->name);
    }
    return 0;
}

/* The first `bytes` of each row; rows begin to_row and from_row bytes apart. */
static void copy_rows(void *to, size_t to_row, const void *from, size_t from_row, size_t rows,
                      size_t bytes)
{
    for (size_t r = 0; r < rows; r++) {
        memcpy((char *)to + r * to_row, (const char *)from + r * from_row, bytes);
    }
}

static int set_param(struct plan *plan, const struct plan_param *p, const void *logical, void *to,
                     struct ms_err *err)
{
    memset(to, 0, ms_dtype_size(plan->weights_dtype, p->count));
    if (p->md == NULL) {
        memcpy(to, logical, ms_dtype_size(plan->weights_dtype, params_used(plan, p)));
        return 0;
    }
    struct stages st;
    int rc = stages_init(&st, plan, p, err);
    if (rc == 0) {
        copy_rows(st.a, st.padded_bytes, logical, st.row_bytes, st.n_rows, st.row_bytes);
        rc = plan_reorder(plan, st.rows, st.a, st.via, st.b, err);
    }
    rc = rc < 0 ? rc : plan_reorder(plan, st.flat, st.b, p->md, to, err);
    free(st.a);
    free(st.b);
    return rc;
}

static int get_param(struct plan *plan, const struct plan_param *p, const void *from, void *logical,
                     struct ms_err *err)
{
    if (p->md == NULL) {
        memcpy(logical, from, ms_dtype_size(plan->weights_dtype, params_used(plan, p)));
        return 0;
    }
    struct stages st;
    size_t bytes = ms_dtype_size(plan->weights_dtype, p->count);
    void *copy = alloc_zeros(bytes); /* oneDNN wants to be able to write to sources */
    int rc = copy == NULL ? ms_fail(err, MS_E_NOMEM, "plan: no memory for a parameter")
                          : stages_init(&st, plan, p, err);
    if (copy == NULL) {
        return rc;
    }
    if (rc == 0) {
        memcpy(copy, from, bytes);
        rc = plan_reorder(plan, p->md, copy, st.flat, st.b, err);
    }
    rc = rc < 0 ? rc : plan_reorder(plan, st.via, st.b, st.rows, st.a, err);
    if (rc == 0) {
        copy_rows(logical, st.row_bytes, st.a, st.padded_bytes, st.n_rows, st.row_bytes);
    }
    free(st.a);
    free(st.b);
    free(copy);
    return rc;
}

/* Where a parameter or state lies in a flat buffer, of what. */
struct extent {
    const struct plan_param *param; /* NULL: a state, whose values lie in a row */
    enum ms_dtype dtype;
    size_t offset, size, used; /* bytes; size: with padding to cache lines, used: without */
};

static int find_extent(const struct plan *plan, int tensor, struct extent *ret, struct ms_err *err)
{
    if (tensor < 0 || tensor >= graph_n_tensors(plan->graph) ||
        (plan->param_of[tensor] < 0 && plan->stat_of[tensor] < 0)) {
        return ms_fail(err, MS_E_INVALID, "plan: tensor %d of graph %s is no parameter or state",
                       tensor, graph_name(plan->graph));
    }
    if (plan->param_of[tensor] >= 0) {
        const struct plan_param *p = &plan->params[plan->param_of[tensor]];
        *ret = (struct extent){p, plan->weights_dtype, p->offset, p->count, params_used(plan, p)};
    } else {
        const struct plan_stat *s = &plan->stats[plan->stat_of[tensor]];
        size_t used = (size_t)shape_count(&graph_tensor(plan->graph, tensor)->shape);
        *ret = (struct extent){NULL, plan->stats_dtype, s->offset, s->count, used};
    }
    ret->offset = ms_dtype_size(ret->dtype, ret->offset);
    ret->size = ms_dtype_size(ret->dtype, ret->size);
    ret->used = ms_dtype_size(ret->dtype, ret->used);
    return 0;
}

/* ... for who has, or wants, values of this dtype. */
static int find_typed(const struct plan *plan, int tensor, enum ms_dtype dtype, struct extent *ret,
                      struct ms_err *err)
{
    int rc = find_extent(plan, tensor, ret, err);
    return rc < 0 || ret->dtype == dtype
               ? rc
               : ms_fail(err, MS_E_UNSUPPORTED,
                         "plan: tensor %s is kept as %s and not converted from or to %s",
                         graph_tensor(plan->graph, tensor)->name, ms_dtype_name(ret->dtype),
                         ms_dtype_name(dtype));
}

/* The bound buffer that holds it. */
static int find_bound(const struct plan *plan, int tensor, const struct extent *extent, char **ret,
                      struct ms_err *err)
{
    void *base = extent->param != NULL ? plan->bound.weights : plan->bound.moving;
    if (base == NULL) {
        return ms_fail(err, MS_E_INVALID, "plan: no buffer is bound that holds %s",
                       graph_tensor(plan->graph, tensor)->name);
    }
    *ret = base;
    return 0;
}

static int set_mirror(struct plan *plan, const struct plan_param *p, void *weights,
                      struct ms_err *err)
{
    return p->mirror == NULL
               ? 0
               : plan_reorder(plan, p->md, weights, p->mirror, plan_mirror(plan, p), err);
}

static int set_in(struct plan *plan, const struct extent *extent, char *base, const void *logical,
                  struct ms_err *err)
{
    if (extent->param != NULL) {
        return set_param(plan, extent->param, logical, base + extent->offset, err);
    }
    memset(base + extent->offset, 0, extent->size);
    memcpy(base + extent->offset, logical, extent->used);
    return 0;
}

int plan_set_logical(struct plan *plan, int tensor, enum ms_dtype dtype, const void *logical,
                     struct ms_err *err)
{
    struct extent extent = {0};
    char *base = NULL;
    int rc = find_typed(plan, tensor, dtype, &extent, err);
    rc = rc < 0 ? rc : find_bound(plan, tensor, &extent, &base, err);
    rc = rc < 0 ? rc : set_in(plan, &extent, base, logical, err);
    return rc < 0 || extent.param == NULL
               ? rc
               : set_mirror(plan, extent.param, base + extent.offset, err);
}

int plan_set_logical_to(struct plan *plan, int tensor, void *to, enum ms_dtype dtype,
                        const void *logical, struct ms_err *err)
{
    struct extent extent = {0};
    int rc = find_typed(plan, tensor, dtype, &extent, err);
    return rc < 0 ? rc : set_in(plan, &extent, to, logical, err);
}

int plan_get_logical_from(struct plan *plan, int tensor, const void *from, enum ms_dtype dtype,
                          void *logical, struct ms_err *err)
{
    struct extent extent = {0};
    int rc = find_typed(plan, tensor, dtype, &extent, err);
    if (rc < 0) {
        return rc;
    }
    const char *at = (const char *)from + extent.offset;
    if (extent.param != NULL) {
        return get_param(plan, extent.param, at, logical, err);
    }
    memcpy(logical, at, extent.used);
    return 0;
}

int plan_get_logical(struct plan *plan, int tensor, enum ms_dtype dtype, void *logical,
                     struct ms_err *err)
{
    struct extent extent = {0};
    char *base = NULL;
    int rc = find_extent(plan, tensor, &extent, err);
    rc = rc < 0 ? rc : find_bound(plan, tensor, &extent, &base, err);
    return rc < 0 ? rc : plan_get_logical_from(plan, tensor, base, dtype, logical, err);
}
