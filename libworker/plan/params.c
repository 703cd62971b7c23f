/* params.c - where parameters, gradients and statistics lie in the flat buffers */
#include "libworker/plan/internal.h"

#include <stdlib.h>
#include <string.h>

static size_t padded(int64_t count)
{
    return ((size_t)count + PLAN_LANES - 1) / PLAN_LANES * PLAN_LANES;
}

/* Parameter i in the order of offsets: that in which backward produces the gradients. */
static int param_tensor(const struct plan *plan, int i)
{
    return graph_n_gradients(plan->graph) > 0
               ? graph_tensor(plan->graph, graph_gradient(plan->graph, i))->of
               : graph_param_at(plan->graph, i);
}

static int create_primary(struct plan *plan, struct ms_err *err)
{
    int n_gradients = graph_n_gradients(plan->graph);
    if (plan->options.training && n_gradients != plan->n_params) {
        return ms_fail(err, MS_E_INVALID,
                       "plan: graph %s has %d gradients for %d parameters; call "
                       "graph_differentiate first",
                       graph_name(plan->graph), n_gradients, plan->n_params);
    }
    for (int i = 0; i < plan->n_params; i++) {
        int tensor = param_tensor(plan, i);
        plan->params[i] = (struct plan_param){.tensor = tensor, .via = DN_ANY};
        plan->param_of[tensor] = i;
    }
    return 0;
}

static int mismatch(const struct plan *plan, const char *name, struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID,
                   "plan: graph %s and the primary plan's graph %s differ in %s; build both from "
                   "one network",
                   graph_name(plan->graph), graph_name(plan->options.primary->graph), name);
}

/* The same parameter of this plan's graph, by name and shape; -1: none. */
static int find_same(const struct plan *plan, const struct tensor *of)
{
    int tensor = graph_find(plan->graph, of->name);
    if (tensor < 0 || !shape_equal(&graph_tensor(plan->graph, tensor)->shape, &of->shape)) {
        return -1;
    }
    return tensor;
}

static int create_secondary(struct plan *plan, struct ms_err *err)
{
    const struct plan *primary = plan->options.primary;
    for (int i = 0; i < plan->n_params; i++) {
        const struct plan_param *from = &primary->params[i];
        const struct tensor *of = graph_tensor(primary->graph, from->tensor);
        int tensor = find_same(plan, of);
        if (tensor < 0) {
            return mismatch(plan, of->name, err);
        }
        plan->params[i] = *from;
        plan->params[i].tensor = tensor;
        plan->param_of[tensor] = i;
        if (from->md != NULL) {
            plan->params[i].md = dn_md_import(plan->dn, from->md);
            if (plan->params[i].md == NULL) {
                return ms_fail(err, MS_E_NOMEM, "plan: no memory for a layout");
            }
        }
    }
    return 0;
}

static int add_stat(struct plan *plan, int tensor, struct ms_err *err)
{
    const struct tensor *t = graph_tensor(plan->graph, tensor);
    struct plan_stat *stat = &plan->stats[plan->n_stats];
    *stat = (struct plan_stat){.state = t->of,
                               .stat = tensor,
                               .offset = plan->stats_count,
                               .count = padded(shape_count(&t->shape))};
    if (plan->options.primary != NULL) {
        const struct plan *primary = plan->options.primary;
        const struct tensor *state = graph_tensor(plan->graph, t->of);
        int other = graph_find(primary->graph, state->name);
        if (other < 0 || primary->stat_of[other] < 0) {
            return mismatch(plan, state->name, err);
        }
        stat->offset = primary->stats[primary->stat_of[other]].offset;
    }
    plan->stats_count += stat->count;
    plan->stat_of[tensor] = plan->n_stats;
    plan->stat_of[t->of] = plan->n_stats;
    plan->n_stats++;
    return 0;
}

static int create_stats(struct plan *plan, struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < plan->n_forward_ops && rc == 0; i++) {
        const struct op *op = graph_op(plan->graph, i);
        if (op->kind == OP_BATCH_NORM) {
            rc = add_stat(plan, op->out[1], err);
            rc = rc < 0 ? rc : add_stat(plan, op->out[2], err);
        }
    }
    if (rc == 0 && plan->options.primary != NULL &&
        plan->stats_count != plan->options.primary->stats_count) {
        return mismatch(plan, "their batch norms", err);
    }
    return rc;
}

int params_create(struct plan *plan, struct ms_err *err)
{
    size_t n_tensors = (size_t)graph_n_tensors(plan->graph);
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
    int rc = 0;
    if (plan->options.primary == NULL) {
        rc = create_primary(plan, err);
    } else if (plan->options.primary->n_params != plan->n_params) {
        rc = mismatch(plan, "the number of parameters", err);
    } else {
        rc = create_secondary(plan, err);
    }
    return rc < 0 ? rc : create_stats(plan, err);
}

void params_place(struct plan *plan)
{
    if (plan->options.primary != NULL) {
        plan->weights_count = plan->options.primary->weights_count;
        return;
    }
    for (int i = 0; i < plan->n_params; i++) {
        struct plan_param *p = &plan->params[i];
        const struct shape *shape = &graph_tensor(plan->graph, p->tensor)->shape;
        p->offset = plan->weights_count;
        p->count = padded(p->md != NULL ? emit_md_floats(p->md) : shape_count(shape));
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
    size_t max = plan->options.bucket_bytes_max / sizeof(float);
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
    if (!plan->options.training) {
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
