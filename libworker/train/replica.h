/* replica.h - one rank's copy of the network: graphs, plans, weights, optimizer state
 *
 *     replica_create    graphs and plans: nothing large yet, so that the peak is known first
 *     replica_allocate  weights, their mirrors, slots, moving statistics, one arena for all plans
 *     replica_bind      the exchange buffer that comm owns; replica_init
 *     replica_step / replica_commit / replica_evaluate
 *
 * Everything here after step k is a function of (job, plan, seed, k). One thread. */
#ifndef REPLICA_H
#define REPLICA_H

#include "libworker/data/data.h"
#include "libworker/job/job.h"
#include "libworker/plan/plan.h"
#include "libworker/train/optimizer.h"
#include "proto/digest.h"

#include <stdatomic.h>
#include <stdint.h>

struct replica;

struct replica_config {
    const struct job *job;    /* borrowed for the replica's life */
    struct loader_info train; /* what batches look like */
    int has_evaluate;
    int64_t evaluate_batch;
    int world, threads; /* ranks that train; OpenMP threads that each may have */
    int mixed_caches;   /* ranks' machines have caches of other sizes */
    const char *isa;
    uint64_t memory_max;      /* bytes a rank may use, 0: no limit: decides recomputation */
    const atomic_int *cancel; /* non-zero gives a step up, between two primitives; borrowed */
};

int replica_create(const struct replica_config *cfg, struct replica **ret, struct ms_err *err);
void replica_destroy(struct replica *replica); /* NULL allowed */

void replica_sizes(const struct replica *replica, struct plan_sizes *ret);
/* OpenMP threads that it computes with: those of the config, or 1 where the job does not say how
 * many and its steps are too small for a team. */
int replica_threads(const struct replica *replica);
struct plan_bucket replica_bucket(const struct replica *replica, int bucket);
/* Bytes that replica_allocate takes, the exchange buffer not included. */
uint64_t replica_bytes(const struct replica *replica);
const struct graph *replica_graph(const struct replica *replica);
/* SHA-256 of what fixes the bits beside job and seed, hex. */
int replica_plan_sha256(const struct replica *replica, char ret_hex[MS_SHA256_HEX],
                        struct ms_err *err);

int replica_allocate(struct replica *replica, struct ms_err *err);
/* exchange: sizes.exchange elements, borrowed until the next bind. Parameters, slots and moving
 * statistics stay what they are. */
int replica_bind(struct replica *replica, void *exchange, struct ms_err *err);
/* Parameters and moving statistics from the seed. After replica_bind. */
int replica_init(struct replica *replica, struct ms_err *err);

/* The flat buffers, for broadcast: weights, moving statistics, the optimizer's slots; bytes as the
 * plan's types make them, borrowed until the next step or evaluation, which makes mirrors of the
 * weights that are there then. 0: there is no such buffer. */
int replica_state(struct replica *replica, int i, void **ret, size_t *ret_bytes);

/* Forward and backward of a batch of any of the planned sizes. */
int replica_step(struct replica *replica, const struct batch *batch, plan_bucket_fn *on_bucket,
                 void *arg, float *ret_loss, struct ms_err *err);
/* The commit of step (1-based): results[b] is bucket b summed over `world` ranks. Communicates
 * nothing, cannot fail. */
void replica_commit(struct replica *replica, uint64_t step, int world, const struct batch *batch,
                    const float *const *results);
int replica_evaluate(struct replica *replica, const struct batch *batch, double *ret_loss_sum,
                     int64_t *ret_correct, struct ms_err *err);

/* Logical values of a parameter or state (graph index), C order: MS_F32, as files and digests have
 * them, at every precision. */
int replica_get(struct replica *replica, int tensor, float *ret, struct ms_err *err);
int replica_set(struct replica *replica, int tensor, const float *values, struct ms_err *err);

/* weights.c: reads initial weights: every parameter must be there with its shape; moving statistics
 * may be missing; tensors that the network has not are refused by name. */
int replica_load_weights(struct replica *replica, const char *path, struct ms_err *err);

#endif
