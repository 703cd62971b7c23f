/* peer.h - batch norm, add, ReLU, max pooling and log softmax as plain oneDNN primitives
 *
 * What a plan's kernels are measured against. A peer is one primitive with its arguments, which it
 * borrows for its life; scratch and workspace are its own. One thread. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "libworker/kernel/kernel.h"
#include "libworker/kernel/pool.h"
#include "proto/err.h"

struct peers; /* oneDNN's engine and stream */
struct peer;

/* Both return owned, as all that follow. MS_E_NOMEM, MS_E_UNSUPPORTED: oneDNN has none. */
int peers_create(struct peers **ret, struct ms_err *err);
void peers_destroy(struct peers *peers);              /* after its peers; NULL allowed */
void peer_destroy(struct peer *peer);                 /* NULL allowed */
int peer_run(struct peers *peers, struct peer *peer); /* 0 or MS_E_FAILED */

struct peer_norm { /* floats in the layout; vectors of layout->channels */
    const struct kernel_layout *layout;
    double epsilon;
    int relu; /* oneDNN's fused one */
    void *x, *y, *dy, *dx;
    void *mean, *variance, *gamma, *beta, *dgamma, *dbeta;
};
int peer_norm(struct peers *peers, const struct peer_norm *norm, struct peer **ret,
              struct ms_err *err);
/* forward: the peer_norm whose workspace it reads. */
int peer_norm_backward(struct peers *peers, const struct peer_norm *norm,
                       const struct peer *forward, struct peer **ret, struct ms_err *err);

int peer_add(struct peers *peers, size_t count, void *a, void *b, void *y, struct peer **ret,
             struct ms_err *err);
int peer_relu(struct peers *peers, size_t count, void *x, void *y, struct peer **ret,
              struct ms_err *err);
int peer_relu_backward(struct peers *peers, size_t count, void *y, void *dy, void *dx,
                       struct peer **ret, struct ms_err *err);

int peer_max_pool(struct peers *peers, const struct pool_shape *shape, void *x, void *y,
                  struct peer **ret, struct ms_err *err);
int peer_max_pool_backward(struct peers *peers, const struct pool_shape *shape, void *dy, void *dx,
                           const struct peer *forward, struct peer **ret, struct ms_err *err);

/* Of rows of so many columns; backward: y is the forward one's. */
int peer_log_softmax(struct peers *peers, int64_t rows, int64_t columns, void *x, void *y,
                     struct peer **ret, struct ms_err *err);
int peer_log_softmax_backward(struct peers *peers, int64_t rows, int64_t columns, void *y, void *dy,
                              void *dx, const struct peer *forward, struct peer **ret,
                              struct ms_err *err);

#endif
