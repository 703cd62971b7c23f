/* view.c - a plan's steps for somebody outside */
#include "libworker/plan/internal.h"

int plan_view_n_steps(const struct plan *plan)
{
    return plan->n_steps;
}

struct step_view plan_view_step(const struct plan *plan, int s)
{
    const struct step *step = &plan->steps[s];
    int is_primitive = step->kind == STEP_PRIMITIVE;
    return (struct step_view){.kind = step->kind,
                              .primitive = is_primitive ? dn_kind_name(step->prim_kind) : NULL,
                              .op = step->op,
                              .is_copy = step->is_copy,
                              .relu = step->relu,
                              .epsilon = step->epsilon,
                              .layout = step->layout,
                              .groups = step->groups,
                              .is_per_value = step->is_per_value,
                              .pool = step->pool,
                              .count = step->count,
                              .rows = step->rows,
                              .columns = step->columns,
                              .ptr = step->ptr};
}

int plan_view_run(struct plan *plan, int s)
{
    return dn_prim_run(plan->dn, plan->steps[s].prim);
}

void plan_view_clock(struct plan *plan, double *seconds)
{
    plan->seconds = seconds;
}
