/* describe.c - what fixes the bits of a run, as text: the same text, the same bits */
#include "libworker/plan/internal.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const step_names[STEP_KINDS] = {
    [STEP_PRIMITIVE] = "primitive",
    [STEP_CLEAR_STATS] = "clear_stats",
    [STEP_PUBLISH_STATS] = "publish_stats",
    [STEP_BN_TRAIN] = "kernel:batch_norm",
    [STEP_BN_APPLY] = "kernel:batch_norm",
    [STEP_BN_BACKWARD] = "kernel:batch_norm_backward",
    [STEP_RELU] = "kernel:relu",
    [STEP_RELU_BACKWARD] = "kernel:relu_backward",
    [STEP_ADD] = "kernel:add",
    [STEP_ADD_RELU] = "kernel:add_relu",
    [STEP_MAX_POOL] = "kernel:max_pool",
    [STEP_MAX_POOL_BACKWARD] = "kernel:max_pool_backward",
    [STEP_SOFTMAX_CE] = "kernel:softmax_ce",
    [STEP_MSE] = "kernel:mse",
};

const char *step_name(const struct plan *plan, const struct step *step)
{
    (void)plan;
    return step->kind == STEP_PRIMITIVE ? step->impl : step_names[step->kind];
}

/* "conv2d jit:avx512_core": the formulation of every step, in order. A batch norm that is made
 * again gives the same bits and is left out: saving memory is not another plan. */
static json_t *formulations(const struct plan *plan)
{
    json_t *list = json_array();
    for (int s = 0; s < plan->n_steps; s++) {
        const struct step *step = &plan->steps[s];
        if (step->is_copy || step->op < 0) {
            continue;
        }
        char text[128];
        const char *op = op_traits(graph_op(plan->graph, step->op)->kind)->name;
        snprintf(text, sizeof(text), "%s %s%s", op, step_name(plan, step),
                 step->relu ? " relu" : "");
        (void)json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *layouts(const struct plan *plan)
{
    json_t *object = json_object();
    for (int i = 0; i < plan->n_params; i++) {
        const struct plan_param *p = &plan->params[i];
        char name[64] = "a";
        if (p->md != NULL) {
            (void)dn_md_name(p->md, name, sizeof(name));
        }
        static const char *const columns[] = {
            [DN_ANY] = "",
            [DN_PLAIN] = "",
            [DN_NCHW8C] = " columns of nChw8c",
            [DN_NCHW16C] = " columns of nChw16c",
            [DN_NHWC] = " columns of nhwc",
            [DN_OTHER] = "",
        };
        char text[128];
        snprintf(text, sizeof(text), "%zu+%zu %s%s", p->offset, p->count, name, columns[p->via]);
        (void)json_object_set_new(object, graph_tensor(plan->graph, p->tensor)->name,
                                  json_string(text));
    }
    return object;
}

static json_t *buckets(const struct plan *plan)
{
    json_t *list = json_array();
    for (int i = 0; i < plan->n_buckets; i++) {
        json_int_t begin = (json_int_t)plan->buckets[i].begin;
        json_int_t count = (json_int_t)plan->buckets[i].count;
        (void)json_array_append_new(list, json_pack("[I,I]", begin, count));
    }
    return list;
}

char *plan_describe(const struct plan *plan, int world)
{
    const struct shape *shape = &graph_tensor(plan->graph, graph_data_index(plan->graph))->shape;
    char data[96];
    json_t *root =
        json_pack("{s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o}", "world", world,
                  "threads", plan->options.threads, "isa", dn_isa(), "library", dn_version(),
                  "graph", graph_name(plan->graph), "data", shape_format(shape, data, sizeof(data)),
                  "denormals", "flushed to zero", "sum_tree",
                  "T(lo, hi) = T(lo, mid) + T(mid, hi), mid = lo + (hi - lo + 1) / 2", "training",
                  plan->options.training, "steps", formulations(plan), "parameters", layouts(plan),
                  "buckets", buckets(plan));
    char *text = root == NULL ? NULL : json_dumps(root, JSON_SORT_KEYS | JSON_INDENT(1));
    json_decref(root);
    return text;
}
