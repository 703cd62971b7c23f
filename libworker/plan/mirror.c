/* mirror.c - parameters that are kept in a second layout, too
 *
 * Backward-data of a convolution mostly wants its weights transposed. Where a plan says so, the
 * commit writes them so, too, and no step reorders them: bench/README.md says when not to. A
 * parameter has one mirror at most; who wants a third layout reorders. */
#include "libworker/plan/internal.h"

#include <omp.h>
#include <string.h>

/* ---- who chooses --------------------------------------------------------------------------------
 */

static int is_reorder_of_weights(const struct step *step, int *ret_param, int *ret_buffer)
{
    int has_param = 0;
    int has_buffer = 0;
    for (int k = 0; k < step->n_operands; k++) {
        const struct operand *at = &step->operands[k];
        if (at->place == PLACE_WEIGHTS) {
            *ret_param = at->index;
            has_param = 1;
        } else if (at->place == PLACE_ARENA && !has_buffer) { /* scratch comes after it */
            *ret_buffer = at->index;
            has_buffer = 1;
        }
    }
    return step->kind == STEP_PRIMITIVE && step->prim_kind == DN_REORDER && has_param && has_buffer;
}

size_t mirrors_keep(struct plan *plan, int keep)
{
    size_t bytes = 0;
    if (!plan->is_primary) { /* it has those that were chosen */
        return ms_dtype_size(plan->weights_dtype, plan->mirrors_count);
    }
    for (int i = 0; i < plan->n_params; i++) {
        plan->params[i].mirror = NULL;
    }
    for (int s = 0; s < plan->n_steps; s++) {
        int param = 0;
        int buffer = 0;
        if (!is_reorder_of_weights(&plan->steps[s], &param, &buffer)) {
            continue;
        }
        struct plan_param *p = &plan->params[param];
        if (dn_md_n_dims(plan->steps[s].dst) != dn_md_n_dims(p->md)) {
            continue; /* shared: it would be a layout of other dimensions */
        }
        int is_first = p->mirror == NULL;
        p->mirror = is_first && keep ? plan->steps[s].dst : p->mirror;
        plan->buffers[buffer].is_mirror = keep && p->mirror == plan->steps[s].dst;
        bytes += is_first && keep ? dn_md_bytes(p->mirror) : 0;
    }
    return bytes;
}

/* ---- who obeys ----------------------------------------------------------------------------------
 */

static int check_mirror(struct plan *plan, const struct plan_spec *spec, int i, struct ms_err *err)
{
    const struct plan_param *p = &plan->params[i];
    const char *layout = spec->params[i].mirror;
    return p->mirror != NULL && p->mirror != p->md && dn_md_is_named(plan->dn, p->mirror, layout)
               ? 0
               : ms_fail(err, MS_E_INVALID,
                         "plan line %d: parameter %s cannot have %s for a second layout",
                         plan_spec_mirror_line(spec, i), spec->params[i].name, layout);
}

int mirrors_place(struct plan *plan, const struct plan_spec *spec, struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < plan->n_params && rc == 0; i++) {
        struct plan_param *p = &plan->params[i];
        if (spec->params[i].mirror[0] == '\0') {
            continue;
        }
        if (p->md != NULL) { /* not a vector */
            p->mirror = dn_md_as_named(plan->dn, p->md, spec->params[i].mirror);
        }
        rc = check_mirror(plan, spec, i, err);
        if (rc == 0) {
            p->mirror_offset = plan->mirrors_count;
            plan->mirrors_count += params_padded(dn_md_count(p->mirror));
        }
    }
    return rc;
}

int mirrors_emit(struct plan *plan, const struct plan_spec *spec, struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < plan->n_params && plan->training && rc == 0; i++) {
        const struct plan_param *p = &plan->params[i];
        if (p->mirror == NULL) {
            continue;
        }
        rc = emit_reorder(plan, -1, (struct operand){PLACE_WEIGHTS, i}, p->md,
                          (struct operand){PLACE_MIRROR, i}, p->mirror, err);
        rc = rc < 0 ? ms_err_prefix(err, "plan line %d: mirror of %s",
                                    plan_spec_mirror_line(spec, i), spec->params[i].name)
                    : 0;
    }
    plan->n_mirror_steps = plan->n_steps;
    plan->reorders = 0; /* those of the commit are not counted */
    return rc;
}

/* ---- the commit ---------------------------------------------------------------------------------
 */

static int param_of_step(const struct step *step)
{
    int k = 0;
    while (step->operands[k].place != PLACE_MIRROR) {
        k++;
    }
    return step->operands[k].index;
}

int plan_write_mirrors(struct plan *plan, size_t begin, size_t count, struct ms_err *err)
{
    if (!plan->is_bound) {
        return ms_fail(err, MS_E_INVALID, "plan of graph %s: call plan_bind first",
                       graph_name(plan->graph));
    }
    int rc = plan_take_team(plan->threads, err);
    if (rc < 0) {
        return rc;
    }
    unsigned mode = kernel_float_enter(plan->threads);
    for (int s = 0; s < plan->n_mirror_steps && rc == 0; s++) {
        const struct plan_param *p = &plan->params[param_of_step(&plan->steps[s])];
        if (p->offset >= begin && p->offset < begin + count) {
            rc = plan_run_step(plan, s);
        }
    }
    kernel_float_leave(mode);
    return rc < 0 ? ms_fail(err, MS_E_FAILED, "plan of graph %s: oneDNN failed to reorder weights",
                            graph_name(plan->graph))
                  : 0;
}
