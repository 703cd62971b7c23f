/* logical.c - parameters and states between the kernels' layout and that of files
 *
 *     logical (out, in, kh, kw) -> rows with padded input channels -> via -> kernel layout
 *
 * Either side of `via` is left out where it changes nothing; see struct plan_param. */
#include "libworker/plan/internal.h"

#include <stdlib.h>
#include <string.h>

static int reorder(struct plan *plan, const struct dn_md *from_md, float *from,
                   const struct dn_md *to_md, float *to, struct ms_err *err)
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

static float *alloc_floats(int64_t count)
{
    size_t bytes = ((size_t)count * sizeof(float) / PLAN_ALIGN + 1) * PLAN_ALIGN;
    float *floats = aligned_alloc(PLAN_ALIGN, bytes);
    if (floats != NULL) {
        memset(floats, 0, bytes);
    }
    return floats;
}

struct stages { /* of one parameter: the layouts on the way */
    const struct dn_md *rows, *via, *flat;
    int64_t n_rows, row_count, padded_count; /* floats of a logical and of a padded row */
    float *a, *b;
};

static int stages_init(struct stages *st, struct plan *plan, const struct plan_param *p,
                       struct ms_err *err)
{
    const struct shape *shape = &graph_tensor(plan->graph, p->tensor)->shape;
    memset(st, 0, sizeof(*st));
    st->n_rows = shape->dim[0];
    st->row_count = st->padded_count = shape_count(shape) / shape->dim[0];
    if (p->via == DN_ANY) {
        st->rows = dn_md(plan->dn, p->n_dims, p->dims, DN_PLAIN);
        st->via = st->rows;
        st->flat = st->rows;
        st->padded_count = st->rows == NULL ? 0 : emit_md_floats(st->rows) / st->n_rows;
    } else {
        st->rows = dn_md(plan->dn, DN_DIMS_MAX, p->via_dims, DN_PLAIN);
        st->via = dn_md(plan->dn, DN_DIMS_MAX, p->via_dims, p->via);
        st->flat = dn_md(plan->dn, p->n_dims, p->dims, DN_PLAIN);
    }
    if (st->rows == NULL || st->via == NULL || st->flat == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for a layout");
    }
    st->a = alloc_floats(emit_md_floats(st->rows));
    st->b = alloc_floats(emit_md_floats(st->via));
    if (st->a == NULL || st->b == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for parameter %s",
                       graph_tensor(plan->graph, p->tensor)->name);
    }
    return 0;
}

static void copy_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                      int64_t count)
{
    for (int64_t r = 0; r < rows; r++) {
        memcpy(to + r * to_row, from + r * from_row, (size_t)count * sizeof(float));
    }
}

static int set_param(struct plan *plan, const struct plan_param *p, const float *logical, float *to,
                     struct ms_err *err)
{
    memset(to, 0, p->count * sizeof(float));
    if (p->md == NULL) {
        int64_t count = shape_count(&graph_tensor(plan->graph, p->tensor)->shape);
        memcpy(to, logical, (size_t)count * sizeof(float));
        return 0;
    }
    struct stages st;
    int rc = stages_init(&st, plan, p, err);
    if (rc == 0) {
        copy_rows(st.a, st.padded_count, logical, st.row_count, st.n_rows, st.row_count);
        rc = reorder(plan, st.rows, st.a, st.via, st.b, err);
    }
    rc = rc < 0 ? rc : reorder(plan, st.flat, st.b, p->md, to, err);
    free(st.a);
    free(st.b);
    return rc;
}

static int get_param(struct plan *plan, const struct plan_param *p, const float *from,
                     float *logical, struct ms_err *err)
{
    if (p->md == NULL) {
        int64_t count = shape_count(&graph_tensor(plan->graph, p->tensor)->shape);
        memcpy(logical, from, (size_t)count * sizeof(float));
        return 0;
    }
    struct stages st;
    float *copy = alloc_floats((int64_t)p->count); /* oneDNN wants to be able to write to sources */
    int rc = copy == NULL ? ms_fail(err, MS_E_NOMEM, "plan: no memory for a parameter")
                          : stages_init(&st, plan, p, err);
    if (copy == NULL) {
        return rc;
    }
    if (rc == 0) {
        memcpy(copy, from, p->count * sizeof(float));
        rc = reorder(plan, p->md, copy, st.flat, st.b, err);
    }
    rc = rc < 0 ? rc : reorder(plan, st.via, st.b, st.rows, st.a, err);
    if (rc == 0) {
        copy_rows(logical, st.row_count, st.a, st.padded_count, st.n_rows, st.row_count);
    }
    free(st.a);
    free(st.b);
    free(copy);
    return rc;
}

static int check_tensor(const struct plan *plan, int tensor, struct ms_err *err)
{
    if (tensor < 0 || tensor >= graph_n_tensors(plan->graph) ||
        (plan->param_of[tensor] < 0 && plan->stat_of[tensor] < 0)) {
        return ms_fail(err, MS_E_INVALID, "plan: tensor %d of graph %s is no parameter or state",
                       tensor, graph_name(plan->graph));
    }
    return 0;
}

static int check_bound(const struct plan *plan, int tensor, struct ms_err *err)
{
    int rc = check_tensor(plan, tensor, err);
    const float *base = rc < 0                        ? NULL
                        : plan->param_of[tensor] >= 0 ? plan->bound.weights
                                                      : plan->bound.moving;
    return rc < 0 || base != NULL
               ? rc
               : ms_fail(err, MS_E_INVALID, "plan: no buffer is bound that holds %s",
                         graph_tensor(plan->graph, tensor)->name);
}

int plan_set_logical(struct plan *plan, int tensor, const float *logical, struct ms_err *err)
{
    int rc = check_bound(plan, tensor, err);
    if (rc < 0) {
        return rc;
    }
    if (plan->param_of[tensor] >= 0) {
        const struct plan_param *p = &plan->params[plan->param_of[tensor]];
        return set_param(plan, p, logical, plan->bound.weights + p->offset, err);
    }
    const struct plan_stat *stat = &plan->stats[plan->stat_of[tensor]];
    float *to = plan->bound.moving + stat->offset;
    size_t count = (size_t)shape_count(&graph_tensor(plan->graph, tensor)->shape);
    memset(to, 0, stat->count * sizeof(float));
    memcpy(to, logical, count * sizeof(float));
    return 0;
}

int plan_get_logical_from(struct plan *plan, int tensor, const float *from, float *logical,
                          struct ms_err *err)
{
    int rc = check_tensor(plan, tensor, err);
    if (rc < 0) {
        return rc;
    }
    if (plan->param_of[tensor] >= 0) {
        const struct plan_param *p = &plan->params[plan->param_of[tensor]];
        return get_param(plan, p, from + p->offset, logical, err);
    }
    size_t count = (size_t)shape_count(&graph_tensor(plan->graph, tensor)->shape);
    memcpy(logical, from + plan->stats[plan->stat_of[tensor]].offset, count * sizeof(float));
    return 0;
}

int plan_get_logical(struct plan *plan, int tensor, float *logical, struct ms_err *err)
{
    int rc = check_bound(plan, tensor, err);
    if (rc < 0) {
        return rc;
    }
    const float *from = plan->param_of[tensor] >= 0 ? plan->bound.weights : plan->bound.moving;
    return plan_get_logical_from(plan, tensor, from, logical, err);
}
