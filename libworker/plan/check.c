/* check.c - a plan, or this machine, against the lines of its spec */
#include "libworker/plan/internal.h"
#include "libworker/plan/spec_text.h"

#include <inttypes.h>
#include <string.h>

/* ---- machine ------------------------------------------------------------------------------------
 */

static int fix_isa(const char *isa, struct ms_err *err)
{
    return dn_isa_set(strcmp(isa, "other") == 0 ? NULL : isa, err);
}

int check_machine(const struct plan_spec *spec, struct ms_err *err)
{
    struct plan_machine here;
    const struct plan_machine *want = &spec->machine;
    int line = plan_spec_line(spec, PLAN_ITEM_MACHINE, 0);
    int rc = fix_isa(want->isa, err);
    if (rc < 0) {
        return ms_err_prefix(err, "plan line %d", line);
    }
    record_machine(&here);
    if (strcmp(here.isa, want->isa) != 0) {
        return ms_fail(err, MS_E_UNSUPPORTED, "plan line %d: isa %s: this process runs with %s",
                       line, want->isa, here.isa);
    }
    if (strcmp(here.library, want->library) != 0) {
        return ms_fail(err, MS_E_UNSUPPORTED, "plan line %d: onednn %s: this machine has %s",
                       line + 1, want->library, here.library);
    }
    if (!want->mixed_caches && memcmp(here.caches, want->caches, sizeof(here.caches)) != 0) {
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "plan line %d: caches %" PRId64 " %" PRId64 ": this machine has %" PRId64
                       " and %" PRId64 "; choose the plan on a machine like it",
                       line + 2, want->caches[0], want->caches[1], here.caches[0], here.caches[1]);
    }
    return 0;
}

int check_team(const struct plan_spec *spec, struct ms_err *err)
{
    int rc = plan_take_team(spec->threads, err);
    return rc < 0 ? ms_err_prefix(err, "plan line %d: threads %d",
                                  plan_spec_line(spec, PLAN_ITEM_NETWORK, 2), spec->threads)
                  : 0;
}

int check_precision(const struct graph *graph, const struct plan_spec *spec, struct ms_err *err)
{
    struct plan plan = {.graph = graph};
    int rc = plan_set_dtypes(&plan, spec->precision, err);
    return rc < 0 ? ms_err_prefix(err, "plan line %d: precision %s",
                                  plan_spec_line(spec, PLAN_ITEM_MACHINE, 3),
                                  spec_precision_name(spec->precision))
                  : 0;
}

/* ---- ops ----------------------------------------------------------------------------------------
 */

/* The row's op is in the graph, and called so: what else it says can be held against that op. */
static int check_row(const struct graph *graph, const struct plan_spec_op *row, int line,
                     struct ms_err *err)
{
    if (row->op >= graph_n_ops(graph)) {
        return ms_fail(err, MS_E_INVALID, "plan line %d: graph %s has only %d ops", line,
                       graph_name(graph), graph_n_ops(graph));
    }
    const struct op *op = graph_op(graph, row->op);
    const struct op *forward = op->forward >= 0 ? graph_op(graph, op->forward) : op;
    const char *kind = op_row(op->kind)->name;
    const char *name = graph_tensor(graph, forward->out[0])->name;
    return strcmp(row->kind, kind) == 0 && strcmp(row->name, name) == 0
               ? 0
               : ms_fail(err, MS_E_INVALID, "plan line %d: op %d of graph %s is %s %s", line,
                         row->op, graph_name(graph), kind, name);
}

static int has_layout(const struct plan *plan, const struct dn_md *md, const char *name)
{
    return md == NULL ? name[0] == '\0' : dn_md_is_named(plan->dn, md, name);
}

static int is_row(const struct plan *plan, const struct step *step, const struct plan_spec_op *is,
                  const struct plan_spec_op *row)
{
    return is->op == row->op && strcmp(is->impl, row->impl) == 0 && is->relu == row->relu &&
           is->channels == row->channels && has_layout(plan, step->src, row->src) &&
           has_layout(plan, step->weights, row->weights) && has_layout(plan, step->dst, row->dst);
}

static int check_ops(const struct plan *plan, const struct plan_spec *spec, enum plan_use which,
                     struct ms_err *err)
{
    const struct plan_spec_use *use = &spec->uses[which];
    int n = 0;
    for (int s = 0; s < plan->n_steps; s++) {
        const struct step *step = &plan->steps[s];
        struct plan_spec_op is;
        if (!record_has(step)) {
            continue;
        }
        record_code(plan, step, &is);
        if (n == use->n_ops || !is_row(plan, step, &is, &use->ops[n])) {
            record_op(plan, step, &is);
            return ms_fail(err, MS_E_INVALID,
                           "plan line %d: graph %s has op %d %s %s %s relu=%d src=%s weights=%s "
                           "dst=%s channels=%" PRId64 " there",
                           plan_spec_op_line(spec, which, n), graph_name(plan->graph), is.op,
                           is.kind, is.name, is.impl, is.relu, is.src, is.weights, is.dst,
                           is.channels);
        }
        n++;
    }
    return n == use->n_ops ? 0
                           : ms_fail(err, MS_E_INVALID, "plan line %d: graph %s has only %d ops",
                                     plan_spec_op_line(spec, which, n), graph_name(plan->graph), n);
}

static int has_copy(const struct plan *plan, int op)
{
    int s = 0;
    while (s < plan->n_steps && (!plan->steps[s].is_copy || plan->steps[s].op != op)) {
        s++;
    }
    return s < plan->n_steps;
}

static int check_copies(const struct plan *plan, const struct plan_spec *spec, enum plan_use which,
                        struct ms_err *err)
{
    const struct plan_spec_use *use = &spec->uses[which];
    for (int i = 0; i < use->n_ops; i++) {
        if (use->ops[i].again && !has_copy(plan, use->ops[i].op)) {
            return ms_fail(err, MS_E_INVALID,
                           "plan line %d: op %d %s cannot be made again: it is no batch norm with "
                           "a ReLU, or backward does not read its result, or not without making "
                           "or keeping another one for it",
                           plan_spec_again_line(spec, which, i), use->ops[i].op, use->ops[i].name);
        }
    }
    return 0;
}

/* ---- the rest -----------------------------------------------------------------------------------
 */

static int check_batch(const struct graph *graph, const struct plan_spec *spec, enum plan_use use,
                       struct ms_err *err)
{
    const struct shape *batch = &graph_tensor(graph, graph_data_index(graph))->shape;
    char text[96];
    return shape_equal(batch, &spec->uses[use].batch)
               ? 0
               : ms_fail(err, MS_E_INVALID, "plan line %d: the batch of graph %s for %s is %s",
                         plan_spec_op_line(spec, use, -1), graph_name(graph), plan_use_name(use),
                         shape_format(batch, text, sizeof(text)));
}

static int check_buckets(const struct plan *plan, const struct plan_spec *spec, struct ms_err *err)
{
    for (int i = 0; plan->training && i < plan->n_buckets; i++) {
        const struct plan_bucket *is = &plan->buckets[i];
        const struct plan_bucket *row = &spec->buckets[i];
        if (spec->n_buckets != plan->n_buckets || is->begin != row->begin ||
            is->count != row->count) {
            return ms_fail(err, MS_E_INVALID,
                           "plan line %d: bucket %d of %d is %zu+%zu by bucket_bytes in line %d",
                           plan_spec_line(spec, PLAN_ITEM_BUCKET, i), i, plan->n_buckets, is->begin,
                           is->count, plan_spec_line(spec, PLAN_ITEM_BUCKET_BYTES, 0));
        }
    }
    return 0;
}

int check_graph(const struct graph *graph, const struct plan_spec *spec, enum plan_use use,
                struct ms_err *err)
{
    if (strcmp(spec->network, graph_name(graph)) != 0) {
        return ms_fail(err, MS_E_INVALID, "plan line %d: network %s: the job's is %s",
                       plan_spec_line(spec, PLAN_ITEM_NETWORK, 0), spec->network,
                       graph_name(graph));
    }
    const struct plan_spec_use *row = &spec->uses[use];
    if (row->batch.n_dims == 0) {
        return ms_fail(err, MS_E_INVALID, "plan line %d: before it a use %s is missing",
                       plan_spec_op_line(spec, use, -1), plan_use_name(use));
    }
    int rc = check_batch(graph, spec, use, err);
    for (int i = 0; i < row->n_ops && rc == 0; i++) {
        rc = check_row(graph, &row->ops[i], plan_spec_op_line(spec, use, i), err);
    }
    return rc;
}

int check_plan(const struct plan *plan, const struct plan_spec *spec, enum plan_use use,
               struct ms_err *err)
{
    int rc = check_ops(plan, spec, use, err);
    rc = rc < 0 ? rc : check_copies(plan, spec, use, err);
    return rc < 0 ? rc : check_buckets(plan, spec, err);
}
