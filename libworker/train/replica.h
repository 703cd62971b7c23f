/* replica.h - one rank's copy of the network: graphs, plans, weights, optimizer state
 *
 *     replica_create    graphs
 *     replica_choose    plans, or replica_obey: nothing large yet, so that the peak is known first
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
    int rank, world;          /* of the ranks that train */
    const atomic_int *cancel; /* non-zero gives a step up, between two primitives; borrowed */
};

struct replica_wish { /* what a plan is chosen by */
    int threads;      /* OpenMP threads that each rank may have */
    int mixed_caches; /* ranks' machines have caches of other sizes */
    const char *isa;
    int mirrors; /* as in struct plan_request */
    /* bytes of activations and mirrors of weights, 0: no limit: decides recomputation */
    uint64_t memory_max;
};

int replica_create(const struct replica_config *cfg, struct replica **ret, struct ms_err *err);
void replica_destroy(struct replica *replica); /* NULL allowed */

/* Each makes the plans anew, and replaces those of before; after a failure there are none.
 * Chooses: see plan_choose. Where the job does not say how many threads, and its steps are too
 * small for a team, it is one thread. */
int replica_choose(struct replica *replica, const struct replica_wish *wish, struct ms_err *err);
/* Obeys a text of docs/plan.md, of untrusted bytes. MS_E_INVALID, MS_E_UNSUPPORTED: neither the
 * text's, the job's nor this machine's fault goes without the number of the line. MS_E_REFUSED:
 * another instruction set holds in this process. */
int replica_obey(struct replica *replica, const char *text, struct ms_err *err);
/* Reorders weights in each step instead of keeping them in a second layout, too: less memory, the
 * same bits. Nothing where the plan does it already. */
int replica_drop_mirrors(struct replica *replica, struct ms_err *err);
/* Makes activations again instead of keeping them, wherever that can be: less memory, the same
 * bits. Nothing where the plan does it already. */
int replica_recompute(struct replica *replica, struct ms_err *err);
int replica_recomputes(const struct replica *replica);

/* The plan's text: malloc'ed. */
int replica_plan_text(const struct replica *replica, char **ret, struct ms_err *err);

/* What follows needs plans. */
void replica_sizes(const struct replica *replica, struct plan_sizes *ret);
int replica_threads(const struct replica *replica); /* OpenMP threads that it computes with */
/* What of a bucket is to be summed over ranks: gradients of frozen parameters at its ends are left
 * out, and it may be empty. */
struct plan_bucket replica_bucket(const struct replica *replica, int bucket);
/* Bytes that replica_allocate takes, the exchange buffer not included. */
uint64_t replica_bytes(const struct replica *replica);
const struct graph *replica_graph(const struct replica *replica);
/* NULL: the job has no such use. Needs no plans. */
const struct graph *replica_graph_of(const struct replica *replica, enum plan_use use);
/* SHA-256 of what fixes the bits beside job and seed, hex. */
int replica_plan_sha256(const struct replica *replica, char ret_hex[MS_SHA256_HEX],
                        struct ms_err *err);

int replica_allocate(struct replica *replica, struct ms_err *err);
/* exchange: sizes.exchange elements, borrowed until the next bind. Parameters, slots and moving
 * statistics stay what they are. */
int replica_bind(struct replica *replica, void *exchange, struct ms_err *err);
/* Parameters and moving statistics from the seed. After replica_bind. */
int replica_init(struct replica *replica, struct ms_err *err);

/* The moving average is that of these weights alone, where there is one: what no step changes has
 * them for good. To be called once the weights of step 0 are there. */
void replica_start_average(struct replica *replica);

/* The flat buffers, for broadcast: weights, moving statistics, the optimizer's slots; bytes as the
 * plan's types make them, borrowed until the next step or evaluation, which makes mirrors of the
 * weights that are there then. 0: there is no such buffer. */
int replica_state(struct replica *replica, int i, void **ret, size_t *ret_bytes);
/* The same to read: mirrors stay. */
int replica_view_state(const struct replica *replica, int i, const void **ret, size_t *ret_bytes);
/* All of it zero, as replica_allocate made it. */
void replica_clear_state(struct replica *replica);
/* The activations' memory: anybody's between steps and evaluations. */
void *replica_scratch(struct replica *replica, size_t *ret_bytes);

/* Forward and backward of a batch of any of the planned sizes, in step (1-based). Of a step of
 * several batches each is given in turn, and buckets are complete with the last one alone. */
int replica_step(struct replica *replica, uint64_t step, const struct batch *batch,
                 plan_bucket_fn *on_bucket, void *arg, float *ret_loss, struct ms_err *err);
/* plan_weight of a batch that replica_step has just got. */
double replica_weight(const struct replica *replica, const struct batch *batch);
/* With which that step (1-based) is committed. */
double replica_learning_rate(const struct replica *replica, uint64_t step);
/* The commit of step (1-based), whose last batch that is: results[b] is replica_bucket b summed
 * over `world` ranks, and weight likewise the weights of their rows, each rank's a mean over those
 * of its step: so many ranks where all count alike. By it gradients become means over all that
 * count, on however many ranks; of weight 0 they are 0. Communicates nothing, cannot fail. */
void replica_commit(struct replica *replica, uint64_t step, int world, float weight,
                    const struct batch *batch, const void *const *results);
/* By the moving averages of the parameters, where there are any. Its predictions: until the replica
 * runs again. */
int replica_evaluate(struct replica *replica, const struct batch *batch, struct plan_evaluated *ret,
                     struct ms_err *err);

/* Logical values of a parameter or state (graph index), C order: MS_F32, as files and digests have
 * them, at every precision. What is evaluated: of a parameter that has a moving average, that. */
int replica_get(struct replica *replica, int tensor, float *ret, struct ms_err *err);
int replica_set(struct replica *replica, int tensor, const float *values, struct ms_err *err);

/* The same in a buffer that is laid out like one of replica_state; no mirrors. */
int replica_set_in(struct replica *replica, int tensor, void *buffer, const float *values,
                   struct ms_err *err);
/* How they lie there, for another thread (plan.h). The replica's plans outlive it. */
int replica_layout(const struct replica *replica, struct plan_layout **ret, struct ms_err *err);

/* weights.c: from a file those tensors that the job takes of it (job/first_weights.h), all others
 * stay. ret_words: how many that were, for people. */
int replica_load_weights(struct replica *replica, const char *path, const struct job_take *take,
                         char *ret_words, size_t size, struct ms_err *err);

#endif
