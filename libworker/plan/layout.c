/* layout.c - how parameters lie, for a thread beside the one that runs the plan
 *
 * The same functions as the plan's own (logical.c), on an engine and layouts that nobody else uses.
 */
#include "libworker/plan/internal.h"

#include <stdlib.h>
#include <string.h>

struct plan_layout {
    struct plan plan; /* of it only what says where parameters lie, and how */
};

/* The layouts of a parameter by their names, as a spec has them. */
static int copy_param(struct plan_layout *layout, const struct plan *plan, int i,
                      struct ms_err *err)
{
    const struct plan_param *from = &plan->params[i];
    struct plan_param *to = &layout->plan.params[i];
    *to = *from;
    to->mirror = NULL;
    if (from->md == NULL) {
        return 0;
    }
    const char *name = dn_md_name(plan->dn, from->md);
    to->md = name == NULL ? NULL
                          : dn_md_named(layout->plan.dn, plan->weights_dtype, from->n_dims,
                                        from->dims, name);
    return to->md != NULL ? 0
                          : ms_fail(err, MS_E_NOMEM, "plan: no memory for the layout of %s",
                                    graph_tensor(plan->graph, from->tensor)->name);
}

int plan_layout_create(const struct plan *plan, struct plan_layout **ret, struct ms_err *err)
{
    struct plan_layout *layout = calloc(1, sizeof(*layout));
    if (layout == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for its layouts");
    }
    struct plan *own = &layout->plan;
    own->graph = plan->graph;
    own->weights_dtype = plan->weights_dtype;
    own->stats_dtype = plan->stats_dtype;
    own->param_of = plan->param_of;
    own->stats = plan->stats;
    own->stat_of = plan->stat_of;
    own->n_params = plan->n_params;
    own->params = calloc((size_t)plan->n_params + 1, sizeof(*own->params));
    int rc = own->params != NULL ? dn_create(&own->dn, err)
                                 : ms_fail(err, MS_E_NOMEM, "plan: no memory for its layouts");
    for (int i = 0; rc == 0 && i < plan->n_params; i++) {
        rc = copy_param(layout, plan, i, err);
    }
    if (rc < 0) {
        plan_layout_destroy(layout);
        return rc;
    }
    *ret = layout;
    return 0;
}

void plan_layout_destroy(struct plan_layout *layout)
{
    if (layout != NULL) {
        dn_destroy(layout->plan.dn);
        free(layout->plan.params);
        free(layout);
    }
}

/* Where rows have no padding and nothing is permuted, from where it lies to where it is wanted. */
static int get_directly(struct plan *own, const struct plan_param *p, void *from, void *logical,
                        struct ms_err *err)
{
    const struct dn_md *rows = dn_md(own->dn, own->weights_dtype, p->n_dims, p->dims, DN_PLAIN);
    return rows == NULL ? dn_md_fail(err) : plan_reorder(own, p->md, from, rows, logical, err);
}

static int is_direct(const struct plan *own, const struct plan_param *p)
{
    int64_t count = 1;
    for (int i = 0; i < p->n_dims; i++) {
        count *= p->dims[i];
    }
    return p->md != NULL && p->via == DN_ANY &&
           count == shape_count(&graph_tensor(own->graph, p->tensor)->shape);
}

int plan_layout_get(struct plan_layout *layout, int tensor, void *from, enum ms_dtype dtype,
                    void *logical, struct ms_err *err)
{
    struct plan *own = &layout->plan;
    const int i = tensor >= 0 && tensor < graph_n_tensors(own->graph) ? own->param_of[tensor] : -1;
    int rc = plan_take_team(1, err);
    if (rc == 0 && i >= 0 && dtype == own->weights_dtype && is_direct(own, &own->params[i])) {
        const size_t at = ms_dtype_size(dtype, own->params[i].offset);
        return get_directly(own, &own->params[i], (char *)from + at, logical, err);
    }
    return rc < 0 ? rc : plan_get_logical_from(own, tensor, from, dtype, logical, err);
}
