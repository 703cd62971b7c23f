/* yardstick.c - the peers of a plan's steps */
#include "bench/yardstick.h"

#include "bench/peer.h"
#include "libworker/graph/graph.h"
#include "libworker/plan/view.h"
#include "proto/clock.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 3, ALIGN = 64 }; /* batch norm, add, ReLU; a loss has two */

struct group { /* the peer of one step: primitives one after the other */
    struct peer *parts[PARTS];
    int n_parts;
    struct peer *norm; /* the part that backward wants to hear of: batch norm or pooling */
};

struct yardstick {
    struct plan *plan;
    const struct graph *graph;
    struct peers *peers;
    struct group *groups; /* a step */
    int n_steps;
    void *temporary; /* as large as the largest tensor of a batch norm or a loss */
};

/* Takes in what a peer_...() returned and made: the group's next part. */
static int add(struct group *group, int rc, struct peer *const *made)
{
    if (rc == 0) {
        group->parts[group->n_parts++] = *made;
    }
    return rc;
}

static size_t layout_floats(const struct kernel_layout *l)
{
    return (size_t)(l->n * l->n_blocks * l->spatial * l->block);
}

static int group_norm(struct yardstick *y, const struct step_view *step, struct group *group,
                      struct ms_err *err)
{
    int has_residual = step->ptr[BN_RESIDUAL] != NULL;
    void *out = has_residual ? y->temporary : step->ptr[BN_Y];
    struct peer_norm norm = {.layout = &step->layout,
                             .epsilon = step->epsilon,
                             .relu = step->relu && !has_residual,
                             .x = step->ptr[BN_X],
                             .y = out,
                             .mean = step->ptr[BN_MEAN],
                             .variance = step->ptr[BN_VARIANCE],
                             .gamma = step->ptr[BN_GAMMA],
                             .beta = step->ptr[BN_BETA]};
    struct peer *made = NULL;
    int rc = add(group, peer_norm(y->peers, &norm, &made, err), &made);
    group->norm = made;
    if (rc < 0 || !has_residual) {
        return rc;
    }
    size_t count = layout_floats(&step->layout);
    void *sum = step->ptr[BN_Y];
    rc = add(group, peer_add(y->peers, count, out, step->ptr[BN_RESIDUAL], sum, &made, err), &made);
    return rc < 0 || !step->relu
               ? rc
               : add(group, peer_relu(y->peers, count, sum, sum, &made, err), &made);
}

/* The peer of the forward op that a backward step belongs to. */
static const struct peer *forward_peer(const struct yardstick *y, const struct step_view *step)
{
    int forward = graph_op(y->graph, step->op)->forward;
    for (int s = 0; s < y->n_steps; s++) {
        if (y->groups[s].norm != NULL && plan_view_step(y->plan, s).op == forward) {
            return y->groups[s].norm;
        }
    }
    return NULL;
}

static int group_norm_backward(struct yardstick *y, const struct step_view *step,
                               struct group *group, struct ms_err *err)
{
    void *dz = step->ptr[BNB_DY];
    struct peer *made = NULL;
    int rc = 0;
    if (step->relu == 2) {
        dz = step->ptr[BNB_DZ] != NULL ? step->ptr[BNB_DZ] : y->temporary;
        rc = add(group,
                 peer_relu_backward(y->peers, layout_floats(&step->layout), step->ptr[BNB_Y],
                                    step->ptr[BNB_DY], dz, &made, err),
                 &made);
    }
    struct peer_norm norm = {.layout = &step->layout,
                             .epsilon = step->epsilon,
                             .relu = step->relu == 1,
                             .x = step->ptr[BN_X],
                             .dy = dz,
                             .dx = step->ptr[BNB_DX],
                             .mean = step->ptr[BN_MEAN],
                             .variance = step->ptr[BN_VARIANCE],
                             .gamma = step->ptr[BN_GAMMA],
                             .beta = step->ptr[BN_BETA],
                             .dgamma = step->ptr[BNB_DGAMMA],
                             .dbeta = step->ptr[BNB_DBETA]};
    return rc < 0
               ? rc
               : add(group, peer_norm_backward(y->peers, &norm, forward_peer(y, step), &made, err),
                     &made);
}

static int group_pool(struct yardstick *y, const struct step_view *step, struct group *group,
                      struct ms_err *err)
{
    struct peer *made = NULL;
    void *in = step->ptr[POOL_IN];
    void *out = step->ptr[POOL_OUT];
    if (step->kind == STEP_MAX_POOL) {
        int rc = add(group, peer_max_pool(y->peers, &step->pool, in, out, &made, err), &made);
        group->norm = made;
        return rc;
    }
    const struct peer *forward = forward_peer(y, step);
    return add(group, peer_max_pool_backward(y->peers, &step->pool, in, out, forward, &made, err),
               &made);
}

static int group_elementwise(struct yardstick *y, const struct step_view *step, struct group *group,
                             struct ms_err *err)
{
    void *a = step->ptr[ELT_A];
    void *b = step->ptr[ELT_B];
    void *out = step->ptr[ELT_Y];
    struct peer *made = NULL;
    if (step->kind == STEP_RELU_BACKWARD || step->kind == STEP_RELU6_BACKWARD) {
        return add(group, peer_relu_backward(y->peers, step->count, a, b, out, &made, err), &made);
    }
    int rc = 0;
    if (step->kind != STEP_RELU && step->kind != STEP_RELU6) {
        rc = add(group, peer_add(y->peers, step->count, a, b, out, &made, err), &made);
        a = out;
    }
    return rc < 0 || step->kind == STEP_ADD
               ? rc
               : add(group, peer_relu(y->peers, step->count, a, out, &made, err), &made);
}

/* The loss as log softmax, and its gradient where the loss has one. What comes in from behind is
 * whatever the gradient held: time does not depend on it. */
static int group_loss(struct yardstick *y, const struct step_view *step, struct group *group,
                      struct ms_err *err)
{
    struct peer *forward = NULL;
    struct peer *made = NULL;
    void *gradient = step->ptr[LOSS_GRADIENT];
    int rc = peer_log_softmax(y->peers, step->rows, step->columns, step->ptr[LOSS_LOGITS],
                              y->temporary, &forward, err);
    rc = add(group, rc, &forward);
    return rc < 0 || gradient == NULL
               ? rc
               : add(group,
                     peer_log_softmax_backward(y->peers, step->rows, step->columns, y->temporary,
                                               gradient, gradient, forward, &made, err),
                     &made);
}

static int make_group(struct yardstick *y, const struct step_view *step, struct group *group,
                      struct ms_err *err)
{
    if (step->is_copy) {
        return 0;
    }
    switch (step->kind) {
    case STEP_BN_TRAIN:
        return group_norm(y, step, group, err);
    case STEP_BN_BACKWARD:
        return group_norm_backward(y, step, group, err);
    case STEP_RELU:
    case STEP_RELU_BACKWARD:
    case STEP_RELU6:
    case STEP_RELU6_BACKWARD:
    case STEP_ADD:
    case STEP_ADD_RELU:
        return group_elementwise(y, step, group, err);
    case STEP_MAX_POOL:
    case STEP_MAX_POOL_BACKWARD:
        return group_pool(y, step, group, err);
    case STEP_SOFTMAX_CE:
        return group_loss(y, step, group, err);
    default:
        return 0;
    }
}

/* Pages are there before anything is measured. */
static void *allocate_temporary(const struct plan *plan)
{
    size_t floats = 0;
    for (int s = 0; s < plan_view_n_steps(plan); s++) {
        struct step_view step = plan_view_step(plan, s);
        size_t wanted = layout_floats(&step.layout);
        size_t loss = (size_t)(step.rows * step.columns);
        wanted = loss > wanted ? loss : wanted;
        floats = wanted > floats ? wanted : floats;
    }
    size_t bytes = (floats * sizeof(float) / ALIGN + 1) * ALIGN;
    void *memory = aligned_alloc(ALIGN, bytes);
    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

int yardstick_create(struct plan *plan, const struct graph *graph, struct yardstick **ret,
                     struct ms_err *err)
{
    struct yardstick *y = calloc(1, sizeof(*y));
    if (y == NULL) {
        return ms_fail(err, MS_E_NOMEM, "yardstick: no memory");
    }
    y->plan = plan;
    y->graph = graph;
    y->n_steps = plan_view_n_steps(plan);
    y->groups = calloc((size_t)y->n_steps, sizeof(*y->groups));
    y->temporary = allocate_temporary(plan);
    int rc = y->groups == NULL || y->temporary == NULL
                 ? ms_fail(err, MS_E_NOMEM, "yardstick: no memory")
                 : peers_create(&y->peers, err);
    for (int s = 0; s < y->n_steps && rc == 0; s++) {
        struct step_view step = plan_view_step(plan, s);
        rc = make_group(y, &step, &y->groups[s], err);
    }
    if (rc < 0) {
        yardstick_destroy(y);
        return rc;
    }
    *ret = y;
    return 0;
}

void yardstick_destroy(struct yardstick *y)
{
    if (y == NULL) {
        return;
    }
    for (int s = 0; y->groups != NULL && s < y->n_steps; s++) {
        for (int i = 0; i < y->groups[s].n_parts; i++) {
            peer_destroy(y->groups[s].parts[i]);
        }
    }
    peers_destroy(y->peers);
    free(y->groups);
    free(y->temporary);
    free(y);
}

int yardstick_n_steps(const struct yardstick *y)
{
    return y->n_steps;
}

const char *yardstick_group(const struct yardstick *y, int s)
{
    static const char *const kernels[STEP_KINDS] = {
        [STEP_CLEAR_STATS] = "statistics",
        [STEP_PUBLISH_STATS] = "statistics",
        [STEP_CLEAR_PADDING] = "padding",
        [STEP_BN_TRAIN] = "batch norm",
        [STEP_BN_APPLY] = "batch norm made again",
        [STEP_BN_BACKWARD] = "batch norm backward",
        [STEP_NORM] = "norm of samples",
        [STEP_NORM_BACKWARD] = "norm of samples backward",
        [STEP_BIAS] = "bias",
        [STEP_BIAS_BACKWARD] = "bias",
        [STEP_EMBEDDING] = "embedding",
        [STEP_EMBEDDING_BACKWARD] = "embedding",
        [STEP_ATTENTION] = "attention",
        [STEP_ATTENTION_BACKWARD] = "attention backward",
        [STEP_RECURRENT] = "recurrent",
        [STEP_RECURRENT_BACKWARD] = "recurrent backward",
        [STEP_CHANNELS] = "channels",
        [STEP_RESAMPLE] = "resample",
        [STEP_RESAMPLE_BACKWARD] = "resample",
        [STEP_SCALE] = "scale",
        [STEP_SCALE_BACKWARD] = "scale",
        [STEP_MUL] = "elementwise",
        [STEP_LINEAR] = "elementwise",
        [STEP_SOFTMAX] = "softmax",
        [STEP_SOFTMAX_BACKWARD] = "softmax",
        [STEP_DROPOUT] = "dropout",
        [STEP_RELU] = "elementwise",
        [STEP_RELU_BACKWARD] = "elementwise",
        [STEP_RELU6] = "elementwise",
        [STEP_RELU6_BACKWARD] = "elementwise",
        [STEP_ADD] = "elementwise",
        [STEP_ADD_RELU] = "elementwise",
        [STEP_MAX_POOL] = "max pooling",
        [STEP_MAX_POOL_BACKWARD] = "max pooling backward",
        [STEP_SOFTMAX_CE] = "loss",
        [STEP_MSE] = "loss",
        [STEP_L1] = "loss",
        [STEP_HUBER] = "loss",
        [STEP_BCE] = "loss",
    };
    struct step_view step = plan_view_step(y->plan, s);
    return step.primitive != NULL ? step.primitive : kernels[step.kind];
}

int yardstick_run_plan(struct yardstick *y, const float *data, const void *labels, double *seconds,
                       struct ms_err *err)
{
    float loss = 0;
    struct plan_sizes sizes;
    plan_get_sizes(y->plan, &sizes);
    plan_view_clock(y->plan, seconds);
    int rc = plan_write_mirrors(y->plan, 0, sizes.weights, err);
    rc = rc < 0 ? rc : plan_train_step(y->plan, data, labels, NULL, NULL, &loss, err);
    plan_view_clock(y->plan, NULL);
    return rc;
}

static int run_peer(struct yardstick *y, int s)
{
    const struct group *group = &y->groups[s];
    int is_primitive = plan_view_step(y->plan, s).kind == STEP_PRIMITIVE;
    int rc = is_primitive ? plan_view_run(y->plan, s) : 0;
    for (int i = 0; i < group->n_parts && rc == 0; i++) {
        rc = peer_run(y->peers, group->parts[i]);
    }
    return rc;
}

int yardstick_run_peers(struct yardstick *y, double *seconds, struct ms_err *err)
{
    int rc = 0;
    for (int s = 0; s < y->n_steps && rc == 0; s++) {
        double begin = seconds != NULL ? ms_mono_s() : 0;
        rc = run_peer(y, s);
        if (seconds != NULL) {
            seconds[s] += ms_mono_s() - begin;
        }
    }
    return rc < 0 ? ms_fail(err, MS_E_FAILED, "yardstick: a oneDNN primitive failed") : 0;
}
