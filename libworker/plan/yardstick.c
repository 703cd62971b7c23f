/* yardstick.c - the peers of a plan's steps */
#include "libworker/plan/yardstick.h"

#include "libworker/plan/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PEERS = 3 }; /* batch norm, add, ReLU; a loss has two */

struct peer {
    struct dn_prim *prims[PEERS];
    int n_prims;
    void *workspace;  /* forward: what its backward reads */
    struct dn_pd *pd; /* ... and its descriptor */
};

struct yardstick {
    struct plan *plan;
    struct peer *peers; /* a step */
    void *temporary;    /* as large as the largest tensor */
    void *scratch;      /* of whatever primitive runs */
    size_t scratch_bytes;
};

static void *allocate(size_t bytes)
{
    size_t rounded = (bytes / PLAN_ALIGN + 1) * PLAN_ALIGN;
    void *p = aligned_alloc(PLAN_ALIGN, rounded);
    if (p != NULL) {
        memset(p, 0, rounded); /* pages are there before anything is measured */
    }
    return p;
}

/* Adds a primitive to a peer; args by role, scratch is made. */
static int add(struct yardstick *y, struct peer *peer, const struct dn_pd *pd,
               void *const args[DN_ROLES], struct ms_err *err)
{
    struct dn_prim *prim = NULL;
    int rc = dn_prim_create(y->plan->dn, pd, &prim, err);
    if (rc < 0) {
        return rc;
    }
    peer->prims[peer->n_prims++] = prim;
    for (int i = 0; i < dn_prim_n_args(prim) && rc == 0; i++) {
        enum dn_role role = dn_prim_role(prim, i);
        size_t bytes = dn_md_bytes(dn_prim_md(prim, i));
        if (role == DN_SCRATCHPAD && bytes > y->scratch_bytes) {
            rc = ms_fail(err, MS_E_UNSUPPORTED, "yardstick: %zu bytes of scratch", bytes);
        } else {
            rc = dn_prim_set(prim, i, role == DN_SCRATCHPAD ? y->scratch : args[role]);
        }
    }
    return rc;
}

static const struct dn_md *bn_md(struct plan *plan, const struct kernel_layout *l)
{
    int64_t dims[4] = {l->n, l->channels, l->spatial, 1};
    enum dn_tag tag = l->block == 16  ? DN_NCHW16C
                      : l->block == 8 ? DN_NCHW8C
                      : l->block == 1 ? DN_PLAIN
                                      : DN_NHWC;
    return dn_md(plan->dn, 4, dims, tag);
}

static const struct dn_md *flat_md(struct plan *plan, const struct kernel_layout *l)
{
    int64_t count = l->n * l->n_blocks * l->spatial * l->block;
    return dn_md(plan->dn, 1, &count, DN_PLAIN);
}

static int add_simple(struct yardstick *y, struct peer *peer, enum dn_kind kind,
                      const struct dn_md *md, void *const args[DN_ROLES], struct ms_err *err)
{
    struct dn_spec spec = {.kind = kind, .src = md, .dst = md};
    struct dn_pd *hint = NULL;
    struct dn_pd *pd = NULL;
    int rc = 0;
    if (kind == DN_RELU_BWD) {
        struct dn_spec forward = {.kind = DN_RELU_FWD, .src = md, .dst = md};
        rc = dn_pd_create(y->plan->dn, &forward, &hint, err);
        spec.hint = hint;
    }
    rc = rc < 0 ? rc : dn_pd_create(y->plan->dn, &spec, &pd, err);
    rc = rc < 0 ? rc : add(y, peer, pd, args, err);
    dn_pd_destroy(pd);
    dn_pd_destroy(hint);
    return rc;
}

static int peer_bn(struct yardstick *y, const struct step *step, struct peer *peer,
                   struct ms_err *err)
{
    struct plan *plan = y->plan;
    const struct dn_md *md = bn_md(plan, &step->layout);
    int has_residual = step->ptr[BN_RESIDUAL] != NULL;
    struct dn_spec spec = {.kind = DN_BATCH_NORM_FWD,
                           .src = md,
                           .dst = md,
                           .epsilon = (float)step->epsilon,
                           .relu = step->relu && !has_residual};
    int rc = dn_pd_create(plan->dn, &spec, &peer->pd, err);
    if (rc < 0) {
        return rc;
    }
    const struct dn_md *workspace = dn_pd_md(plan->dn, peer->pd, DN_WORKSPACE);
    peer->workspace = workspace == NULL ? NULL : allocate(dn_md_bytes(workspace));
    void *norm = has_residual ? y->temporary : step->ptr[BN_Y];
    void *const args[DN_ROLES] = {
        [DN_SRC] = step->ptr[BN_X],       [DN_DST] = norm,
        [DN_MEAN] = step->ptr[BN_MEAN],   [DN_VARIANCE] = step->ptr[BN_VARIANCE],
        [DN_SCALE] = step->ptr[BN_GAMMA], [DN_SHIFT] = step->ptr[BN_BETA],
        [DN_WORKSPACE] = peer->workspace};
    rc = add(y, peer, peer->pd, args, err);
    if (rc < 0 || !has_residual) {
        return rc;
    }
    const struct dn_md *flat = flat_md(plan, &step->layout);
    void *const sum[DN_ROLES] = {
        [DN_SRC] = norm, [DN_SRC1] = step->ptr[BN_RESIDUAL], [DN_DST] = step->ptr[BN_Y]};
    rc = add_simple(y, peer, DN_ADD, flat, sum, err);
    void *const relu[DN_ROLES] = {[DN_SRC] = step->ptr[BN_Y], [DN_DST] = step->ptr[BN_Y]};
    return rc < 0 || !step->relu ? rc : add_simple(y, peer, DN_RELU_FWD, flat, relu, err);
}

/* The peer of the forward op that a backward step belongs to. */
static const struct peer *forward_peer(const struct yardstick *y, const struct step *step)
{
    int forward = graph_op(y->plan->graph, step->op)->forward;
    for (int s = 0; s < y->plan->n_forward_steps; s++) {
        if (y->peers[s].pd != NULL && y->plan->steps[s].op == forward) {
            return &y->peers[s];
        }
    }
    return NULL;
}

static int peer_bn_backward(struct yardstick *y, const struct step *step, struct peer *peer,
                            struct ms_err *err)
{
    const struct peer *forward = forward_peer(y, step);
    void *dz = step->ptr[BNB_DY];
    int rc = 0;
    if (step->relu == 2) {
        dz = step->ptr[BNB_DZ] != NULL ? step->ptr[BNB_DZ] : y->temporary;
        void *const args[DN_ROLES] = {
            [DN_SRC] = step->ptr[BNB_Y], [DN_DIFF_DST] = step->ptr[BNB_DY], [DN_DIFF_SRC] = dz};
        rc = add_simple(y, peer, DN_RELU_BWD, flat_md(y->plan, &step->layout), args, err);
    }
    const struct dn_md *md = bn_md(y->plan, &step->layout);
    struct dn_spec spec = {.kind = DN_BATCH_NORM_BWD,
                           .src = md,
                           .dst = md,
                           .epsilon = (float)step->epsilon,
                           .relu = step->relu == 1,
                           .hint = forward->pd};
    struct dn_pd *pd = NULL;
    rc = rc < 0 ? rc : dn_pd_create(y->plan->dn, &spec, &pd, err);
    void *const args[DN_ROLES] = {[DN_SRC] = step->ptr[BN_X],
                                  [DN_DIFF_DST] = dz,
                                  [DN_DIFF_SRC] = step->ptr[BNB_DX],
                                  [DN_MEAN] = step->ptr[BN_MEAN],
                                  [DN_VARIANCE] = step->ptr[BN_VARIANCE],
                                  [DN_SCALE] = step->ptr[BN_GAMMA],
                                  [DN_SHIFT] = step->ptr[BN_BETA],
                                  [DN_DIFF_SCALE] = step->ptr[BNB_DGAMMA],
                                  [DN_DIFF_SHIFT] = step->ptr[BNB_DBETA],
                                  [DN_WORKSPACE] = forward->workspace};
    rc = rc < 0 ? rc : add(y, peer, pd, args, err);
    dn_pd_destroy(pd);
    return rc;
}

static struct dn_spec pool_spec(struct plan *plan, const struct step *step, enum dn_kind kind)
{
    const struct pool_shape *p = &step->pool;
    int64_t in[4] = {1, p->planes * p->block, p->h, p->w};
    int64_t out[4] = {1, in[1], p->h / p->kernel, p->w / p->kernel};
    enum dn_tag tag = p->block == 16 ? DN_NCHW16C : p->block == 8 ? DN_NCHW8C : DN_NHWC;
    if (tag == DN_NHWC) { /* planes are images */
        in[0] = out[0] = p->planes;
        in[1] = out[1] = p->block;
    }
    return (struct dn_spec){.kind = kind,
                            .src = dn_md(plan->dn, 4, in, tag),
                            .dst = dn_md(plan->dn, 4, out, tag),
                            .kernel = {p->kernel, p->kernel},
                            .stride = {p->kernel, p->kernel}};
}

static int peer_pool(struct yardstick *y, const struct step *step, struct peer *peer,
                     struct ms_err *err)
{
    struct dn_spec spec = pool_spec(y->plan, step, DN_MAX_POOL_FWD);
    int rc = dn_pd_create(y->plan->dn, &spec, &peer->pd, err);
    if (rc < 0) {
        return rc;
    }
    const struct dn_md *workspace = dn_pd_md(y->plan->dn, peer->pd, DN_WORKSPACE);
    peer->workspace = workspace == NULL ? NULL : allocate(dn_md_bytes(workspace));
    void *const args[DN_ROLES] = {[DN_SRC] = step->ptr[POOL_IN],
                                  [DN_DST] = step->ptr[POOL_OUT],
                                  [DN_WORKSPACE] = peer->workspace};
    return add(y, peer, peer->pd, args, err);
}

static int peer_pool_backward(struct yardstick *y, const struct step *step, struct peer *peer,
                              struct ms_err *err)
{
    const struct peer *forward = forward_peer(y, step);
    struct dn_spec spec = pool_spec(y->plan, step, DN_MAX_POOL_BWD);
    spec.hint = forward->pd;
    struct dn_pd *pd = NULL;
    int rc = dn_pd_create(y->plan->dn, &spec, &pd, err);
    void *const args[DN_ROLES] = {[DN_DIFF_DST] = step->ptr[POOL_IN],
                                  [DN_DIFF_SRC] = step->ptr[POOL_OUT],
                                  [DN_WORKSPACE] = forward->workspace};
    rc = rc < 0 ? rc : add(y, peer, pd, args, err);
    dn_pd_destroy(pd);
    return rc;
}

static int peer_elementwise(struct yardstick *y, const struct step *step, struct peer *peer,
                            struct ms_err *err)
{
    int64_t count = (int64_t)step->count;
    const struct dn_md *flat = dn_md(y->plan->dn, 1, &count, DN_PLAIN);
    void *a = step->ptr[ELT_A];
    void *b = step->ptr[ELT_B];
    void *out = step->ptr[ELT_Y];
    if (step->kind == STEP_RELU_BACKWARD) {
        void *const args[DN_ROLES] = {[DN_SRC] = a, [DN_DIFF_DST] = b, [DN_DIFF_SRC] = out};
        return add_simple(y, peer, DN_RELU_BWD, flat, args, err);
    }
    int rc = 0;
    if (step->kind != STEP_RELU) {
        void *const args[DN_ROLES] = {[DN_SRC] = a, [DN_SRC1] = b, [DN_DST] = out};
        rc = add_simple(y, peer, DN_ADD, flat, args, err);
        a = out;
    }
    void *const args[DN_ROLES] = {[DN_SRC] = a, [DN_DST] = out};
    return rc < 0 || step->kind == STEP_ADD ? rc
                                            : add_simple(y, peer, DN_RELU_FWD, flat, args, err);
}

/* The loss as its primitives: log softmax, and its gradient where the loss has one. What comes in
 * from behind is whatever the gradient held: time does not depend on it. */
static int peer_loss(struct yardstick *y, const struct step *step, struct peer *peer,
                     struct ms_err *err)
{
    int64_t dims[2] = {step->rows, step->columns};
    const struct dn_md *md = dn_md(y->plan->dn, 2, dims, DN_PLAIN);
    struct dn_spec spec = {.kind = DN_LOG_SOFTMAX_FWD, .src = md, .dst = md};
    int rc = dn_pd_create(y->plan->dn, &spec, &peer->pd, err);
    void *const forward[DN_ROLES] = {[DN_SRC] = step->ptr[LOSS_LOGITS], [DN_DST] = y->temporary};
    rc = rc < 0 ? rc : add(y, peer, peer->pd, forward, err);
    if (rc < 0 || step->ptr[LOSS_GRADIENT] == NULL) {
        return rc;
    }
    struct dn_pd *pd = NULL;
    spec.kind = DN_LOG_SOFTMAX_BWD;
    spec.hint = peer->pd;
    void *const backward[DN_ROLES] = {[DN_DST] = y->temporary,
                                      [DN_DIFF_DST] = step->ptr[LOSS_GRADIENT],
                                      [DN_DIFF_SRC] = step->ptr[LOSS_GRADIENT]};
    rc = dn_pd_create(y->plan->dn, &spec, &pd, err);
    rc = rc < 0 ? rc : add(y, peer, pd, backward, err);
    dn_pd_destroy(pd);
    return rc;
}

static int make_peer(struct yardstick *y, const struct step *step, struct peer *peer,
                     struct ms_err *err)
{
    if (step->is_copy) {
        return 0;
    }
    switch (step->kind) {
    case STEP_BN_TRAIN:
        return peer_bn(y, step, peer, err);
    case STEP_BN_BACKWARD:
        return peer_bn_backward(y, step, peer, err);
    case STEP_RELU:
    case STEP_RELU_BACKWARD:
    case STEP_ADD:
    case STEP_ADD_RELU:
        return peer_elementwise(y, step, peer, err);
    case STEP_MAX_POOL:
        return peer_pool(y, step, peer, err);
    case STEP_MAX_POOL_BACKWARD:
        return peer_pool_backward(y, step, peer, err);
    case STEP_SOFTMAX_CE:
        return peer_loss(y, step, peer, err);
    default:
        return 0;
    }
}

static size_t largest_buffer(const struct plan *plan)
{
    size_t bytes = 0;
    for (int b = 0; b < plan->n_buffers; b++) {
        bytes = plan->buffers[b].bytes > bytes ? plan->buffers[b].bytes : bytes;
    }
    return bytes;
}

int yardstick_create(struct plan *plan, struct yardstick **ret, struct ms_err *err)
{
    if (!plan->options.training || !plan->is_bound) {
        return ms_fail(err, MS_E_INVALID, "yardstick: needs a bound plan for training");
    }
    struct yardstick *y = calloc(1, sizeof(*y));
    if (y == NULL) {
        return ms_fail(err, MS_E_NOMEM, "yardstick: no memory");
    }
    y->plan = plan;
    y->peers = calloc((size_t)plan->n_steps, sizeof(*y->peers));
    y->scratch_bytes = largest_buffer(plan);
    y->temporary = allocate(y->scratch_bytes);
    y->scratch = allocate(y->scratch_bytes);
    int rc = y->peers == NULL || y->temporary == NULL || y->scratch == NULL
                 ? ms_fail(err, MS_E_NOMEM, "yardstick: no memory")
                 : 0;
    for (int s = 0; s < plan->n_steps && rc == 0; s++) {
        rc = make_peer(y, &plan->steps[s], &y->peers[s], err);
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
    for (int s = 0; y->peers != NULL && s < y->plan->n_steps; s++) {
        for (int i = 0; i < y->peers[s].n_prims; i++) {
            dn_prim_destroy(y->peers[s].prims[i]);
        }
        dn_pd_destroy(y->peers[s].pd);
        free(y->peers[s].workspace);
    }
    free(y->peers);
    free(y->temporary);
    free(y->scratch);
    free(y);
}

int yardstick_n_steps(const struct yardstick *y)
{
    return y->plan->n_steps;
}

const char *yardstick_group(const struct yardstick *y, int s)
{
    static const char *const kernels[STEP_KINDS] = {
        [STEP_CLEAR_STATS] = "statistics",
        [STEP_PUBLISH_STATS] = "statistics",
        [STEP_BN_TRAIN] = "batch norm",
        [STEP_BN_APPLY] = "batch norm made again",
        [STEP_BN_BACKWARD] = "batch norm backward",
        [STEP_RELU] = "elementwise",
        [STEP_RELU_BACKWARD] = "elementwise",
        [STEP_ADD] = "elementwise",
        [STEP_ADD_RELU] = "elementwise",
        [STEP_MAX_POOL] = "max pooling",
        [STEP_MAX_POOL_BACKWARD] = "max pooling backward",
        [STEP_SOFTMAX_CE] = "loss",
        [STEP_MSE] = "loss",
    };
    const struct step *step = &y->plan->steps[s];
    return step->kind == STEP_PRIMITIVE ? dn_kind_name(step->prim_kind) : kernels[step->kind];
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int yardstick_run_plan(struct yardstick *y, const float *data, const void *labels, double *seconds,
                       struct ms_err *err)
{
    float loss = 0;
    y->plan->seconds = seconds;
    int rc = plan_train_step(y->plan, data, labels, NULL, NULL, &loss, err);
    y->plan->seconds = NULL;
    return rc;
}

static int run_peer(struct yardstick *y, int s)
{
    struct step *step = &y->plan->steps[s];
    int rc = step->kind == STEP_PRIMITIVE ? dn_prim_run(y->plan->dn, step->prim) : 0;
    for (int i = 0; i < y->peers[s].n_prims && rc == 0; i++) {
        rc = dn_prim_run(y->plan->dn, y->peers[s].prims[i]);
    }
    return rc;
}

int yardstick_run_peers(struct yardstick *y, double *seconds, struct ms_err *err)
{
    int rc = 0;
    for (int s = 0; s < y->plan->n_steps && rc == 0; s++) {
        double begin = seconds != NULL ? now() : 0;
        rc = run_peer(y, s);
        if (seconds != NULL) {
            seconds[s] += now() - begin;
        }
    }
    return rc < 0 ? ms_fail(err, MS_E_FAILED, "yardstick: a oneDNN primitive failed") : 0;
}
