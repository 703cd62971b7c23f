/* record.c - a plan that was lowered, written down as a spec */
#include "libworker/plan/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernel_names[STEP_KINDS] = {
    [STEP_BN_TRAIN] = "kernel:batch_norm",
    [STEP_BN_APPLY] = "kernel:batch_norm",
    [STEP_BN_BACKWARD] = "kernel:batch_norm_backward",
    [STEP_NORM] = "kernel:norm",
    [STEP_NORM_BACKWARD] = "kernel:norm_backward",
    [STEP_RELU] = "kernel:relu",
    [STEP_RELU_BACKWARD] = "kernel:relu_backward",
    [STEP_RELU6] = "kernel:relu6",
    [STEP_RELU6_BACKWARD] = "kernel:relu6_backward",
    [STEP_BIAS] = "kernel:bias",
    [STEP_BIAS_BACKWARD] = "kernel:bias_backward",
    [STEP_EMBEDDING] = "kernel:embedding",
    [STEP_EMBEDDING_BACKWARD] = "kernel:embedding_backward",
    [STEP_ATTENTION] = "kernel:attention",
    [STEP_ATTENTION_BACKWARD] = "kernel:attention_backward",
    [STEP_RECURRENT] = "kernel:recurrent",
    [STEP_RECURRENT_BACKWARD] = "kernel:recurrent_backward",
    [STEP_SCALE] = "kernel:scale",
    [STEP_SCALE_BACKWARD] = "kernel:scale_backward",
    [STEP_MUL] = "kernel:mul",
    [STEP_LINEAR] = "kernel:linear",
    [STEP_SOFTMAX] = "kernel:softmax",
    [STEP_SOFTMAX_BACKWARD] = "kernel:softmax_backward",
    [STEP_DROPOUT] = "kernel:dropout",
    [STEP_ADD] = "kernel:add",
    [STEP_ADD_RELU] = "kernel:add_relu",
    [STEP_MAX_POOL] = "kernel:max_pool",
    [STEP_MAX_POOL_BACKWARD] = "kernel:max_pool_backward",
    [STEP_SOFTMAX_CE] = "kernel:softmax_ce",
    [STEP_MSE] = "kernel:mse",
    [STEP_L1] = "kernel:l1",
    [STEP_HUBER] = "kernel:huber",
    [STEP_BCE] = "kernel:bce",
};

/* ---- ops ----------------------------------------------------------------------------------------
 */

/* Layout changes, moved channels and images of another size follow from the layouts of what they
 * stand between, on which none of their bits depends. */
int record_has(const struct step *step)
{
    const int is_layout = step->kind == STEP_CHANNELS || step->kind == STEP_RESAMPLE ||
                          step->kind == STEP_RESAMPLE_BACKWARD;
    return step->op >= 0 && !step->is_copy && !is_layout &&
           !(step->kind == STEP_PRIMITIVE && step->prim_kind == DN_REORDER);
}

static void name_layout(const struct plan *plan, const struct dn_md *md, char *ret)
{
    const char *name = md == NULL ? "" : dn_md_name(plan->dn, md);
    snprintf(ret, PLAN_TOKEN_MAX, "%s", name != NULL ? name : "other");
}

/* Channels of a convolution's source where its padding is taken for channels. */
static int64_t padded_channels(const struct plan *plan, const struct op *forward,
                               const struct dn_md *src)
{
    int64_t channels = graph_tensor(plan->graph, forward->in[0])->shape.dim[1];
    return forward->kind == OP_CONV2D && dn_md_dims(src)[1] != channels ? dn_md_dims(src)[1] : 0;
}

void record_code(const struct plan *plan, const struct step *step, struct plan_spec_op *ret)
{
    const struct op *op = graph_op(plan->graph, step->op);
    const struct op *forward = op->forward >= 0 ? graph_op(plan->graph, op->forward) : op;
    int is_primitive = step->kind == STEP_PRIMITIVE;
    *ret = (struct plan_spec_op){.op = step->op, .relu = step->relu};
    snprintf(ret->kind, sizeof(ret->kind), "%s", op_row(op->kind)->name);
    snprintf(ret->name, sizeof(ret->name), "%s", graph_tensor(plan->graph, forward->out[0])->name);
    snprintf(ret->impl, sizeof(ret->impl), "%s",
             is_primitive ? step->impl : kernel_names[step->kind]);
    ret->channels = is_primitive ? padded_channels(plan, forward, step->src) : 0;
}

void record_op(const struct plan *plan, const struct step *step, struct plan_spec_op *ret)
{
    record_code(plan, step, ret);
    name_layout(plan, step->src, ret->src);
    name_layout(plan, step->weights, ret->weights);
    name_layout(plan, step->dst, ret->dst);
}

static void mark_again(struct plan_spec_use *use, int op)
{
    for (int i = 0; i < use->n_ops; i++) {
        use->ops[i].again |= use->ops[i].op == op;
    }
}

int record_use(const struct plan *plan, struct plan_spec_use *ret, struct ms_err *err)
{
    struct plan_spec_use use = {.batch =
                                    graph_tensor(plan->graph, graph_data_index(plan->graph))->shape,
                                .ops = calloc((size_t)plan->n_steps + 1, sizeof(*use.ops))};
    if (use.ops == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d ops", plan->n_steps);
    }
    for (int s = 0; s < plan->n_steps; s++) {
        if (record_has(&plan->steps[s])) {
            record_op(plan, &plan->steps[s], &use.ops[use.n_ops++]);
        } else if (plan->steps[s].is_copy) {
            mark_again(&use, plan->steps[s].op);
        }
    }
    *ret = use;
    return 0;
}

/* ---- what all plans of a job have in common -----------------------------------------------------
 */

static const char *columns_name(enum dn_tag via)
{
    static const char *const names[] = {
        [DN_ANY] = "",      [DN_PLAIN] = "abcd", [DN_NCHW8C] = "aBcd8b", [DN_NCHW16C] = "aBcd16b",
        [DN_NHWC] = "acdb", [DN_OTHER] = "",
    };
    return names[via];
}

static void record_param(const struct plan *plan, const struct plan_param *p,
                         struct plan_spec_param *ret)
{
    const struct tensor *tensor = graph_tensor(plan->graph, p->tensor);
    *ret = (struct plan_spec_param){.offset = (int64_t)p->offset,
                                    .count = (int64_t)p->count,
                                    .layout = "a",
                                    .shape = tensor->shape};
    snprintf(ret->name, sizeof(ret->name), "%s", tensor->name);
    snprintf(ret->columns, sizeof(ret->columns), "%s", columns_name(p->via));
    if (p->md != NULL) {
        name_layout(plan, p->md, ret->layout);
        ret->shape.n_dims = p->n_dims;
        memcpy(ret->shape.dim, p->dims, sizeof(p->dims));
    }
    if (p->mirror != NULL) {
        name_layout(plan, p->mirror, ret->mirror);
    }
    if (p->via != DN_ANY) {
        ret->columns_shape.n_dims = DN_IMAGE_DIMS;
        memcpy(ret->columns_shape.dim, p->via_dims, sizeof(p->via_dims));
    }
}

static void record_stat(const struct plan *plan, const struct plan_stat *stat,
                        struct plan_spec_stat *ret)
{
    *ret = (struct plan_spec_stat){.offset = (int64_t)stat->offset, .count = (int64_t)stat->count};
    snprintf(ret->name, sizeof(ret->name), "%s", graph_tensor(plan->graph, stat->state)->name);
}

void record_machine(struct plan_machine *ret)
{
    *ret = (struct plan_machine){.caches = {plan_cache_bytes(1), plan_cache_bytes(2)}};
    snprintf(ret->isa, sizeof(ret->isa), "%s", dn_isa());
    snprintf(ret->library, sizeof(ret->library), "%s", dn_version());
}

int record_common(const struct plan *plan, struct plan_spec *ret, struct ms_err *err)
{
    ret->params = calloc((size_t)plan->n_params + 1, sizeof(*ret->params));
    ret->stats = calloc((size_t)plan->n_stats + 1, sizeof(*ret->stats));
    ret->buckets = calloc((size_t)plan->n_buckets + 1, sizeof(*ret->buckets));
    if (ret->params == NULL || ret->stats == NULL || ret->buckets == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d parameters", plan->n_params);
    }
    for (; ret->n_params < plan->n_params; ret->n_params++) {
        record_param(plan, &plan->params[ret->n_params], &ret->params[ret->n_params]);
    }
    for (; ret->n_stats < plan->n_stats; ret->n_stats++) {
        record_stat(plan, &plan->stats[ret->n_stats], &ret->stats[ret->n_stats]);
    }
    for (; ret->n_buckets < plan->n_buckets; ret->n_buckets++) {
        ret->buckets[ret->n_buckets] = plan->buckets[ret->n_buckets];
    }
    return 0;
}
