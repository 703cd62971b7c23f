/* lowering.c - the walk over a graph's ops, and what is known only while it lasts */
#include "libworker/plan/ops.h"

#include <stdlib.h>

static int alloc_lowering(struct lowering *lo, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    size_t n_ops = (size_t)graph_n_ops(plan->graph) + 1;
    size_t n_tensors = (size_t)graph_n_tensors(plan->graph) + 1;
    lo->values = calloc(n_tensors, sizeof(*lo->values));
    lo->hints = calloc(n_ops, sizeof(*lo->hints));
    lo->workspaces = calloc(n_ops, sizeof(*lo->workspaces));
    lo->sources = calloc(n_ops, sizeof(*lo->sources));
    lo->share_of = malloc(n_tensors * sizeof(*lo->share_of));
    lo->rows = calloc(n_ops, sizeof(*lo->rows));
    if (lo->values == NULL || lo->hints == NULL || lo->workspaces == NULL || lo->sources == NULL ||
        lo->share_of == NULL || lo->rows == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for graph %s", graph_name(plan->graph));
    }
    for (size_t i = 0; i < n_tensors; i++) {
        lo->share_of[i] = -1;
    }
    return 0;
}

static void free_lowering(struct lowering *lo)
{
    struct plan *plan = lo->plan;
    for (int i = 0; lo->hints != NULL && i < graph_n_ops(plan->graph); i++) {
        dn_pd_destroy(lo->hints[i]);
    }
    free(lo->hints);
    free(lo->values);
    free(lo->workspaces);
    free(lo->sources);
    free(lo->share_of);
    free(lo->rows);
    free(lo->fusions);
}

static int set_batch_values(struct lowering *lo, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    int data = graph_data_index(plan->graph);
    const struct shape *shape = &graph_tensor(plan->graph, data)->shape;
    const struct dn_md *md = dn_md(plan->dn, plan->precision, shape->n_dims, shape->dim, DN_PLAIN);
    if (md == NULL) {
        return ms_fail(err, MS_E_INVALID, "plan: data of graph %s has %d dimensions, must have 1-4",
                       graph_name(plan->graph), shape->n_dims);
    }
    int label = graph_label_index(plan->graph);
    const struct tensor *labels = graph_tensor(plan->graph, label);
    lo->values[data] = emit_at((struct operand){PLACE_DATA, 0}, md);
    lo->values[label] = (struct plan_value){
        {PLACE_LABEL, 0}, labels->dtype, (size_t)shape_count(&labels->shape), NULL};
    return 0;
}

static int emit_stats_step(struct plan *plan, enum step_kind kind, struct ms_err *err)
{
    if (!plan->training || plan->stats_count == 0) {
        return 0;
    }
    struct step *step = emit_step(plan, kind, -1, 1, err);
    if (step == NULL) {
        return MS_E_NOMEM;
    }
    step->operands[0] = (struct operand){PLACE_STATS, 0};
    return 0;
}

/* Which op it was that could not be lowered; where it is obeyed, its line. */
static void name_op(const struct lowering *lo, int op, struct ms_err *err)
{
    const struct plan *plan = lo->plan;
    const struct plan_spec_op *row = lo->rows[op];
    const char *kind = op_row(graph_op(plan->graph, op)->kind)->name;
    if (lo->spec == NULL) {
        (void)ms_err_prefix(err, "graph %s, op %d %s", graph_name(plan->graph), op, kind);
    } else if (row != NULL) {
        (void)ms_err_prefix(err, "plan line %d: %s %s", lower_line(lo, op), kind, row->name);
    } else {
        (void)ms_err_prefix(err, "plan line %d: before it op %d, %s", lower_line(lo, op), op, kind);
    }
}

static int lower_ops(struct lowering *lo, int begin, int end, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    int rc = 0;
    for (int i = begin; i < end && rc == 0; i++) {
        if (lo->fusions[i].skip) {
            continue;
        }
        rc = plan_op(graph_op(plan->graph, i)->kind)->lower(lo, i, err);
        if (rc < 0) {
            name_op(lo, i, err);
        }
    }
    return rc;
}

static void find_rows(struct lowering *lo)
{
    const struct plan_spec_use *use = &lo->spec->uses[lo->use];
    for (int i = 0; i < use->n_ops; i++) {
        lo->rows[use->ops[i].op] = &use->ops[i];
    }
}

static int lower_graph(struct lowering *lo, const struct plan_spec *spec, struct ms_err *err)
{
    struct plan *plan = lo->plan;
    int rc = alloc_lowering(lo, err);
    rc = rc < 0 ? rc : params_create(plan, spec, err);
    rc = rc < 0 ? rc : mirrors_emit(plan, spec, err);
    if (rc == 0 && lo->spec != NULL) {
        find_rows(lo);
    }
    rc = rc < 0 ? rc : plan_fuse(lo, err);
    rc = rc < 0 ? rc : set_batch_values(lo, err);
    if (rc == 0 && plan->training && plan->stats_count > 0) {
        plan->stats_buffer = emit_buffer(plan, plan->stats_dtype, plan->stats_count, err);
        rc = plan->stats_buffer < 0 ? plan->stats_buffer : 0;
    }
    rc = rc < 0 ? rc : emit_stats_step(plan, STEP_CLEAR_STATS, err);
    rc = rc < 0 ? rc : lower_ops(lo, 0, plan->n_forward_ops, err);
    rc = rc < 0 ? rc : emit_stats_step(plan, STEP_PUBLISH_STATS, err);
    if (rc == 0) {
        params_place(plan);
        plan->n_forward_steps = plan->n_steps;
    }
    return rc < 0 || !plan->training
               ? rc
               : lower_ops(lo, plan->n_forward_ops, graph_n_ops(plan->graph), err);
}

int plan_lower(struct plan *plan, const struct plan_spec *spec, enum plan_use use,
               struct ms_err *err)
{
    struct lowering lo = {.plan = plan, .spec = plan->is_draft ? NULL : spec, .use = use};
    int rc = lower_graph(&lo, spec, err);
    free_lowering(&lo);
    return rc;
}
