/* choose.c - which implementations and layouts: a draft of each plan, written down as a spec */
#include "libworker/plan/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_request(const struct plan_request *request, struct ms_err *err)
{
    int n_graphs = 0;
    for (int use = 0; use < PLAN_USES; use++) {
        n_graphs += request->graphs[use] != NULL;
    }
    if (request->threads < 1) {
        return ms_fail(err, MS_E_INVALID, "plan: threads is %d, must be at least 1",
                       request->threads);
    }
    return n_graphs > 0 && request->world >= 1
               ? 0
               : ms_fail(err, MS_E_INVALID, "plan: %d graphs for %d ranks; needs one of each",
                         n_graphs, request->world);
}

/* Do arena and mirrors fit into what there is? again: as in memory_plan. */
static int fits(struct plan *plan, int mirrors, const unsigned char *again,
                const struct plan_request *request, int *ret, struct ms_err *err)
{
    size_t bytes = mirrors_keep(plan, mirrors && request->mirrors);
    int is_asked = request->memory_max > 0;
    int rc = is_asked || again != NULL ? memory_plan(plan, again, err) : 0;
    *ret = !is_asked || plan->arena_bytes + bytes <= request->memory_max;
    return rc;
}

/* Mirrors, which were asked for but are no need, go before anything is made again, which costs 2 %
 * of a step. A draft's arena is of interest only where it decides. */
static int set_memory(struct plan *plan, const unsigned char *all,
                      const struct plan_request *request, struct ms_err *err)
{
    int is_enough = 0;
    int rc = 0;
    if (request->recompute != PLAN_RECOMPUTE_ON) {
        rc = fits(plan, 1, NULL, request, &is_enough, err);
        rc = rc < 0 || is_enough ? rc : fits(plan, 0, NULL, request, &is_enough, err);
    }
    if (rc < 0 || is_enough || request->recompute == PLAN_RECOMPUTE_OFF) {
        return rc;
    }
    rc = fits(plan, 1, all, request, &is_enough, err); /* copies are there from here on */
    return rc < 0 || is_enough ? rc : fits(plan, 0, NULL, request, &is_enough, err);
}

/* Decides what is kept twice and what is made again, and cuts the buckets. */
static int schedule(struct plan *plan, const struct plan_request *request, struct ms_err *err)
{
    size_t n_ops = (size_t)graph_n_ops(plan->graph) + 1;
    unsigned char *all = malloc(n_ops);
    if (all == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for graph %s", graph_name(plan->graph));
    }
    memset(all, 1, n_ops);
    int rc = set_memory(plan, all, request, err);
    free(all);
    return rc < 0 ? rc : params_buckets(plan, err);
}

/* The first use that is chosen fixes what all have in common. */
static int choose_use(const struct plan_request *request, enum plan_use use, struct plan_spec *spec,
                      struct ms_err *err)
{
    struct plan *draft = NULL;
    int is_primary = spec->n_params == 0;
    int rc = plan_begin(request->graphs[use], spec, use, &draft, err);
    if (rc < 0) {
        return rc;
    }
    draft->is_draft = 1;
    rc = plan_lower(draft, spec, use, err);
    rc = rc < 0 ? rc : schedule(draft, request, err);
    rc = rc < 0 || !is_primary ? rc : record_common(draft, spec, err);
    rc = rc < 0 ? rc : record_use(draft, &spec->uses[use], err);
    plan_destroy(draft);
    return rc;
}

int plan_choose_use(const struct graph *graph, struct plan_spec *spec, enum plan_use use,
                    struct ms_err *err)
{
    struct plan_request request = {.recompute = PLAN_RECOMPUTE_OFF};
    free(spec->uses[use].ops);
    memset(&spec->uses[use], 0, sizeof(spec->uses[use]));
    if (graph == NULL) {
        return 0;
    }
    request.graphs[use] = graph;
    int rc = check_machine(spec, err);
    rc = rc < 0 ? rc : check_team(spec, err);
    rc = rc < 0 ? rc : check_precision(graph, spec, err);
    return rc < 0 ? rc : choose_use(&request, use, spec, err);
}

static int choose_uses(const struct plan_request *request, struct plan_spec *spec,
                       struct ms_err *err)
{
    int rc = 0;
    for (int use = 0; use < PLAN_USES && rc == 0; use++) {
        const struct graph *graph = request->graphs[use];
        if (graph != NULL) {
            snprintf(spec->network, sizeof(spec->network), "%s", graph_name(graph));
            rc = choose_use(request, (enum plan_use)use, spec, err);
        }
    }
    return rc;
}

int plan_choose(const struct plan_request *request, struct plan_spec **ret, struct ms_err *err)
{
    int rc = check_request(request, err);
    rc = rc < 0 ? rc : dn_isa_set(request->isa, err);
    struct plan_spec *spec = rc < 0 ? NULL : calloc(1, sizeof(*spec));
    if (spec == NULL) {
        return rc < 0 ? rc : ms_fail(err, MS_E_NOMEM, "plan: no memory for a spec");
    }
    size_t bucket_bytes = request->bucket_bytes_max;
    spec->world = request->world;
    spec->threads = request->threads;
    spec->precision = request->precision;
    spec->bucket_bytes = (int64_t)(bucket_bytes > 0 ? bucket_bytes : PLAN_BUCKET_BYTES);
    record_machine(&spec->machine);
    if (request->mixed_caches) {
        memset(spec->machine.caches, 0, sizeof(spec->machine.caches));
        spec->machine.mixed_caches = 1;
    }
    rc = choose_uses(request, spec, err);
    if (rc < 0) {
        plan_spec_destroy(spec);
        return rc;
    }
    *ret = spec;
    return 0;
}
