/* again.c - a spec that makes activations again in backward, and keeps its bits */
#include "libworker/plan/internal.h"

#include <stdlib.h>
#include <string.h>

/* Only a plan knows which of its results can be made again where they are read. */
static void mark(const struct plan *plan, struct plan_spec_use *use)
{
    for (int s = 0; s < plan->n_steps; s++) {
        for (int i = 0; plan->steps[s].is_copy && i < use->n_ops; i++) {
            use->ops[i].again |= use->ops[i].op == plan->steps[s].op;
        }
    }
}

int plan_recompute(const struct graph *graph, struct plan_spec *spec, enum plan_use use,
                   struct ms_err *err)
{
    const size_t n_ops = (size_t)graph_n_ops(graph) + 1;
    struct plan *plan = NULL;
    unsigned char *all = malloc(n_ops);
    if (all == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for graph %s", graph_name(graph));
    }
    memset(all, 1, n_ops);
    int rc = plan_begin(graph, spec, use, &plan, err);
    rc = rc < 0 ? rc : plan_lower(plan, spec, use, err);
    rc = rc < 0 ? rc : memory_plan(plan, all, err);
    if (rc == 0) {
        mark(plan, &spec->uses[use]);
    }
    plan_destroy(plan);
    free(all);
    return rc;
}
