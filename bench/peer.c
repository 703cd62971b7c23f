/* peer.c - plain oneDNN primitives of 2.x and 3.x, with arguments given as pointers */
#include "bench/peer.h"
#include "proto/macros.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 12 };

struct peers {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

struct peer {
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t prim;
    int n_args, n_own; /* the first n_own are this peer's; the rest is its forward peer's */
    dnnl_exec_arg_t args[ARGS_MAX];
    dnnl_memory_t workspace; /* one of args; NULL: none */
};

/* ---- what differs between the versions ----------------------------------------------------------
 */

enum peer_kind {
    NORM,
    NORM_BACKWARD,
    ADD,
    RELU,
    RELU_BACKWARD,
    POOL,
    POOL_BACKWARD,
    SOFTMAX,
    SOFTMAX_BACKWARD
};

struct request { /* one layout for all tensors of a kind but pooling's */
    enum peer_kind kind;
    dnnl_memory_desc_t *from, *to;
    float epsilon;
    int relu;
    dnnl_dims_t window;
    const_dnnl_primitive_desc_t forward;
};

static unsigned norm_flags(const struct request *r)
{
    unsigned flags = (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift;
    return r->relu ? flags | (unsigned)dnnl_fuse_norm_relu : flags;
}

static const dnnl_dims_t none = {0};

#if DNNL_VERSION_MAJOR >= 3

#define VIEW(desc) (*(desc))
#define DESC_VIEW  const_dnnl_memory_desc_t
/* Batch norm backward runs with exactly its arguments: of norm_peer's without the shift. */
enum { NORM_BACKWARD_FIRST = 2 };

static dnnl_status_t desc_init(dnnl_memory_desc_t *ret, int n, const dnnl_dims_t dims,
                               dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(ret, n, dims, dnnl_f32, tag);
}

static void desc_free(dnnl_memory_desc_t *desc)
{
    (void)dnnl_memory_desc_destroy(*desc);
}

static dnnl_status_t make_pd(dnnl_primitive_desc_t *ret, dnnl_engine_t e, const struct request *r)
{
    const_dnnl_memory_desc_t x = VIEW(r->from);
    const_dnnl_memory_desc_t y = VIEW(r->to);
    switch (r->kind) {
    case NORM:
        return dnnl_batch_normalization_forward_primitive_desc_create(
            ret, e, dnnl_forward_training, x, y, r->epsilon, norm_flags(r), NULL);
    case NORM_BACKWARD:
        return dnnl_batch_normalization_backward_primitive_desc_create(
            ret, e, dnnl_backward, x, y, x, r->epsilon, norm_flags(r), r->forward, NULL);
    case ADD:
        return dnnl_binary_primitive_desc_create(ret, e, dnnl_binary_add, x, x, y, NULL);
    case RELU:
        return dnnl_eltwise_forward_primitive_desc_create(
            ret, e, dnnl_forward_training, dnnl_eltwise_relu, x, y, 0.0F, 0.0F, NULL);
    case RELU_BACKWARD:
        return dnnl_eltwise_backward_primitive_desc_create(ret, e, dnnl_eltwise_relu, x, y, x, 0.0F,
                                                           0.0F, r->forward, NULL);
    case POOL:
        return dnnl_pooling_forward_primitive_desc_create(ret, e, dnnl_forward_training,
                                                          dnnl_pooling_max, x, y, r->window,
                                                          r->window, none, none, none, NULL);
    case POOL_BACKWARD:
        return dnnl_pooling_backward_primitive_desc_create(ret, e, dnnl_pooling_max, x, y,
                                                           r->window, r->window, none, none, none,
                                                           r->forward, NULL);
    case SOFTMAX:
        return dnnl_softmax_forward_primitive_desc_create(ret, e, dnnl_forward_training,
                                                          dnnl_softmax_log, x, y, 1, NULL);
    case SOFTMAX_BACKWARD:
        return dnnl_softmax_backward_primitive_desc_create(ret, e, dnnl_softmax_log, x, y, y, 1,
                                                           r->forward, NULL);
    }
    return dnnl_invalid_arguments;
}

#else /* 2.x */

#define VIEW(desc) (desc)
#define DESC_VIEW  const dnnl_memory_desc_t *
/* ... with the shift. */
enum { NORM_BACKWARD_FIRST = 1 };

static dnnl_status_t desc_init(dnnl_memory_desc_t *ret, int n, const dnnl_dims_t dims,
                               dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(ret, n, dims, dnnl_f32, tag);
}

static void desc_free(dnnl_memory_desc_t *desc)
{
    (void)desc;
}

union operation {
    dnnl_pooling_desc_t pool;
    dnnl_batch_normalization_desc_t norm;
    dnnl_eltwise_desc_t eltwise;
    dnnl_binary_desc_t binary;
    dnnl_logsoftmax_desc_t softmax;
};

static dnnl_status_t init_operation(union operation *op, const struct request *r)
{
    const dnnl_memory_desc_t *x = r->from;
    const dnnl_memory_desc_t *y = r->to;
    switch (r->kind) {
    case NORM:
        return dnnl_batch_normalization_forward_desc_init(&op->norm, dnnl_forward_training, x,
                                                          r->epsilon, norm_flags(r));
    case NORM_BACKWARD:
        return dnnl_batch_normalization_backward_desc_init(&op->norm, dnnl_backward, y, x,
                                                           r->epsilon, norm_flags(r));
    case ADD:
        return dnnl_binary_desc_init(&op->binary, dnnl_binary_add, x, x, y);
    case RELU:
        return dnnl_eltwise_forward_desc_init(&op->eltwise, dnnl_forward_training,
                                              dnnl_eltwise_relu, x, 0.0F, 0.0F);
    case RELU_BACKWARD:
        return dnnl_eltwise_backward_desc_init(&op->eltwise, dnnl_eltwise_relu, y, x, 0.0F, 0.0F);
    case POOL:
        return dnnl_pooling_forward_desc_init(&op->pool, dnnl_forward_training, dnnl_pooling_max, x,
                                              y, r->window, r->window, none, none);
    case POOL_BACKWARD:
        return dnnl_pooling_backward_desc_init(&op->pool, dnnl_pooling_max, x, y, r->window,
                                               r->window, none, none);
    case SOFTMAX:
        return dnnl_logsoftmax_forward_desc_init(&op->softmax, dnnl_forward_training, x, 1);
    case SOFTMAX_BACKWARD:
        return dnnl_logsoftmax_backward_desc_init(&op->softmax, x, y, 1);
    }
    return dnnl_invalid_arguments;
}

static dnnl_status_t make_pd(dnnl_primitive_desc_t *ret, dnnl_engine_t e, const struct request *r)
{
    union operation op;
    dnnl_status_t status = init_operation(&op, r);
    return status != dnnl_success ? status
                                  : dnnl_primitive_desc_create(ret, &op, NULL, e, r->forward);
}

#endif

/* ---- peers --------------------------------------------------------------------------------------
 */

int peers_create(struct peers **ret, struct ms_err *err)
{
    struct peers *peers = calloc(1, sizeof(*peers));
    if (peers == NULL || dnnl_engine_create(&peers->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&peers->stream, peers->engine, dnnl_stream_default_flags) !=
            dnnl_success) {
        peers_destroy(peers);
        return ms_fail(err, MS_E_NOMEM, "yardstick: no memory for oneDNN's engine");
    }
    *ret = peers;
    return 0;
}

void peers_destroy(struct peers *peers)
{
    if (peers == NULL) {
        return;
    }
    if (peers->stream != NULL) {
        (void)dnnl_stream_destroy(peers->stream);
    }
    if (peers->engine != NULL) {
        (void)dnnl_engine_destroy(peers->engine);
    }
    free(peers);
}

void peer_destroy(struct peer *peer)
{
    if (peer == NULL) {
        return;
    }
    for (int i = 0; i < peer->n_own; i++) {
        (void)dnnl_memory_destroy(peer->args[i].memory);
    }
    if (peer->prim != NULL) {
        (void)dnnl_primitive_destroy(peer->prim);
    }
    if (peer->pd != NULL) {
        (void)dnnl_primitive_desc_destroy(peer->pd);
    }
    free(peer);
}

int peer_run(struct peers *peers, struct peer *peer)
{
    dnnl_status_t status =
        dnnl_primitive_execute(peer->prim, peers->stream, peer->n_args, peer->args);
    return status == dnnl_success ? 0 : MS_E_FAILED;
}

struct argument {
    int arg;
    dnnl_memory_desc_t *desc;
    void *data;
};

static dnnl_status_t add_argument(struct peers *peers, struct peer *peer,
                                  const struct argument *from)
{
    dnnl_exec_arg_t *to = &peer->args[peer->n_args];
    to->arg = from->arg;
    dnnl_status_t status =
        dnnl_memory_create(&to->memory, VIEW(from->desc), peers->engine, from->data);
    peer->n_args += status == dnnl_success;
    peer->n_own = peer->n_args;
    return status;
}

/* Forward: a workspace of its own, where the primitive wants one. */
static dnnl_status_t add_workspace(struct peers *peers, struct peer *peer)
{
    dnnl_exec_arg_t *to = &peer->args[peer->n_args];
    DESC_VIEW desc = dnnl_primitive_desc_query_md(peer->pd, dnnl_query_workspace_md, 0);
    if (desc == NULL || dnnl_memory_desc_get_size(desc) == 0) {
        return dnnl_success;
    }
    to->arg = DNNL_ARG_WORKSPACE;
    dnnl_status_t status =
        dnnl_memory_create(&to->memory, desc, peers->engine, DNNL_MEMORY_ALLOCATE);
    if (status == dnnl_success) {
        peer->workspace = to->memory;
        peer->n_own = ++peer->n_args;
    }
    return status;
}

static dnnl_status_t fill(struct peers *peers, struct peer *peer, const struct request *request,
                          const struct argument *args, int n)
{
    dnnl_status_t status = make_pd(&peer->pd, peers->engine, request);
    for (int i = 0; i < n && status == dnnl_success; i++) {
        status = add_argument(peers, peer, &args[i]);
    }
    if (status == dnnl_success && request->forward == NULL) {
        status = add_workspace(peers, peer);
    }
    return status == dnnl_success ? dnnl_primitive_create(&peer->prim, peer->pd) : status;
}

static int make(struct peers *peers, const struct request *request, const struct argument *args,
                int n, struct peer **ret, struct ms_err *err)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    dnnl_status_t status = peer == NULL ? dnnl_out_of_memory : fill(peers, peer, request, args, n);
    if (status != dnnl_success) {
        peer_destroy(peer);
        return ms_fail(err, status == dnnl_out_of_memory ? MS_E_NOMEM : MS_E_UNSUPPORTED,
                       "yardstick: oneDNN makes no such peer: %s", dnnl_status2str(status));
    }
    *ret = peer;
    return 0;
}

static void lend_workspace(const struct peer *forward, struct peer *backward)
{
    if (forward->workspace != NULL) {
        backward->args[backward->n_args++] =
            (dnnl_exec_arg_t){DNNL_ARG_WORKSPACE, forward->workspace};
    }
}

static dnnl_status_t desc_make(dnnl_memory_desc_t *ret, int n, const int64_t *dims,
                               dnnl_format_tag_t tag)
{
    dnnl_dims_t all = {0}; /* oneDNN's prototypes say that they read as many */
    memcpy(all, dims, (size_t)n * sizeof(*dims));
    return desc_init(ret, n, all, tag);
}

static int no_layout(struct ms_err *err)
{
    return ms_fail(err, MS_E_UNSUPPORTED, "yardstick: oneDNN has no such layout");
}

/* ---- kinds --------------------------------------------------------------------------------------
 */

static dnnl_format_tag_t tag_of(int64_t block)
{
    return block == 16  ? dnnl_nChw16c
           : block == 8 ? dnnl_nChw8c
           : block == 1 ? dnnl_nchw
                        : dnnl_nhwc;
}

static int norm_peer(struct peers *peers, const struct peer_norm *norm, struct request *request,
                     struct peer **ret, struct ms_err *err)
{
    const struct kernel_layout *l = norm->layout;
    const int64_t dims[4] = {l->n, l->channels, l->spatial, 1};
    dnnl_memory_desc_t image;
    dnnl_memory_desc_t vector;
    if (desc_make(&image, 4, dims, tag_of(l->block)) != dnnl_success) {
        return no_layout(err);
    }
    if (desc_make(&vector, 1, &dims[1], dnnl_a) != dnnl_success) {
        desc_free(&image);
        return no_layout(err);
    }
    request->from = request->to = &image;
    request->epsilon = (float)norm->epsilon;
    request->relu = norm->relu;
    const struct argument args[] = {
        {DNNL_ARG_DST, &image, norm->y}, /* forward alone */
        {DNNL_ARG_SHIFT, &vector, norm->beta},
        {DNNL_ARG_SRC, &image, norm->x},
        {DNNL_ARG_MEAN, &vector, norm->mean},
        {DNNL_ARG_VARIANCE, &vector, norm->variance},
        {DNNL_ARG_SCALE, &vector, norm->gamma},
        {DNNL_ARG_DIFF_DST, &image, norm->dy}, /* backward alone, as what follows */
        {DNNL_ARG_DIFF_SRC, &image, norm->dx},
        {DNNL_ARG_DIFF_SCALE, &vector, norm->dgamma},
        {DNNL_ARG_DIFF_SHIFT, &vector, norm->dbeta},
    };
    const int first = request->kind == NORM ? 0 : NORM_BACKWARD_FIRST;
    const int end = request->kind == NORM ? 6 : (int)MS_ARRAY_SIZE(args);
    int rc = make(peers, request, args + first, end - first, ret, err);
    desc_free(&vector);
    desc_free(&image);
    return rc;
}

int peer_norm(struct peers *peers, const struct peer_norm *norm, struct peer **ret,
              struct ms_err *err)
{
    struct request request = {.kind = NORM};
    return norm_peer(peers, norm, &request, ret, err);
}

int peer_norm_backward(struct peers *peers, const struct peer_norm *norm,
                       const struct peer *forward, struct peer **ret, struct ms_err *err)
{
    struct request request = {.kind = NORM_BACKWARD, .forward = forward->pd};
    int rc = norm_peer(peers, norm, &request, ret, err);
    if (rc == 0) {
        lend_workspace(forward, *ret);
    }
    return rc;
}

/* One plain layout for all arguments, of one dimension or two. */
static int plain_peer(struct peers *peers, int n_dims, const int64_t *dims, struct request *request,
                      struct argument args[3], int n, struct peer **ret, struct ms_err *err)
{
    dnnl_memory_desc_t plain;
    if (desc_make(&plain, n_dims, dims, n_dims == 1 ? dnnl_a : dnnl_ab) != dnnl_success) {
        return no_layout(err);
    }
    request->from = request->to = &plain;
    for (int i = 0; i < n; i++) {
        args[i].desc = &plain;
    }
    int rc = make(peers, request, args, n, ret, err);
    desc_free(&plain);
    return rc;
}

/* Elementwise: floats in a row. */
static int flat_peer(struct peers *peers, size_t count, struct request *request,
                     struct argument args[3], int n, struct peer **ret, struct ms_err *err)
{
    const int64_t dims[1] = {(int64_t)count};
    return plain_peer(peers, 1, dims, request, args, n, ret, err);
}

int peer_add(struct peers *peers, size_t count, void *a, void *b, void *y, struct peer **ret,
             struct ms_err *err)
{
    struct request request = {.kind = ADD};
    struct argument args[3] = {
        {DNNL_ARG_SRC_0, NULL, a}, {DNNL_ARG_SRC_1, NULL, b}, {DNNL_ARG_DST, NULL, y}};
    return flat_peer(peers, count, &request, args, 3, ret, err);
}

int peer_relu(struct peers *peers, size_t count, void *x, void *y, struct peer **ret,
              struct ms_err *err)
{
    struct request request = {.kind = RELU};
    struct argument args[3] = {{DNNL_ARG_SRC, NULL, x}, {DNNL_ARG_DST, NULL, y}};
    return flat_peer(peers, count, &request, args, 2, ret, err);
}

int peer_relu_backward(struct peers *peers, size_t count, void *y, void *dy, void *dx,
                       struct peer **ret, struct ms_err *err)
{
    struct peer *forward = NULL; /* for its descriptor: oneDNN makes no backward without one */
    int rc = peer_relu(peers, count, y, dx, &forward, err);
    if (rc < 0) {
        return rc;
    }
    struct request request = {.kind = RELU_BACKWARD, .forward = forward->pd};
    struct argument args[3] = {
        {DNNL_ARG_SRC, NULL, y}, {DNNL_ARG_DIFF_DST, NULL, dy}, {DNNL_ARG_DIFF_SRC, NULL, dx}};
    rc = flat_peer(peers, count, &request, args, 3, ret, err);
    peer_destroy(forward);
    return rc;
}

/* Of channels last a plane is an image; of blocks it is a block of one image's channels. */
static int pool_peer(struct peers *peers, const struct pool_shape *s, struct request *request,
                     struct argument args[2], struct peer **ret, struct ms_err *err)
{
    int is_blocked = s->block == 16 || s->block == 8;
    const int64_t in[4] = {is_blocked ? 1 : s->planes, is_blocked ? s->planes * s->block : s->block,
                           s->h, s->w};
    const int64_t out[4] = {in[0], in[1], s->h / s->kernel, s->w / s->kernel};
    dnnl_format_tag_t tag = is_blocked ? tag_of(s->block) : dnnl_nhwc;
    dnnl_memory_desc_t from;
    dnnl_memory_desc_t to;
    if (desc_make(&from, 4, in, tag) != dnnl_success) {
        return no_layout(err);
    }
    if (desc_make(&to, 4, out, tag) != dnnl_success) {
        desc_free(&from);
        return no_layout(err);
    }
    request->from = &from;
    request->to = &to;
    request->window[0] = request->window[1] = s->kernel;
    args[0].desc = &from;
    args[1].desc = &to;
    int rc = make(peers, request, args, 2, ret, err);
    desc_free(&to);
    desc_free(&from);
    return rc;
}

int peer_max_pool(struct peers *peers, const struct pool_shape *shape, void *x, void *y,
                  struct peer **ret, struct ms_err *err)
{
    struct request request = {.kind = POOL};
    struct argument args[2] = {{DNNL_ARG_SRC, NULL, x}, {DNNL_ARG_DST, NULL, y}};
    return pool_peer(peers, shape, &request, args, ret, err);
}

int peer_max_pool_backward(struct peers *peers, const struct pool_shape *shape, void *dy, void *dx,
                           const struct peer *forward, struct peer **ret, struct ms_err *err)
{
    struct request request = {.kind = POOL_BACKWARD, .forward = forward->pd};
    struct argument args[2] = {{DNNL_ARG_DIFF_SRC, NULL, dx}, {DNNL_ARG_DIFF_DST, NULL, dy}};
    int rc = pool_peer(peers, shape, &request, args, ret, err);
    if (rc == 0) {
        lend_workspace(forward, *ret);
    }
    return rc;
}

int peer_log_softmax(struct peers *peers, int64_t rows, int64_t columns, void *x, void *y,
                     struct peer **ret, struct ms_err *err)
{
    const int64_t dims[2] = {rows, columns};
    struct request request = {.kind = SOFTMAX};
    struct argument args[3] = {{DNNL_ARG_SRC, NULL, x}, {DNNL_ARG_DST, NULL, y}};
    return plain_peer(peers, 2, dims, &request, args, 2, ret, err);
}

int peer_log_softmax_backward(struct peers *peers, int64_t rows, int64_t columns, void *y, void *dy,
                              void *dx, const struct peer *forward, struct peer **ret,
                              struct ms_err *err)
{
    const int64_t dims[2] = {rows, columns};
    struct request request = {.kind = SOFTMAX_BACKWARD, .forward = forward->pd};
    struct argument args[3] = {
        {DNNL_ARG_DST, NULL, y}, {DNNL_ARG_DIFF_DST, NULL, dy}, {DNNL_ARG_DIFF_SRC, NULL, dx}};
    return plain_peer(peers, 2, dims, &request, args, 3, ret, err);
}
