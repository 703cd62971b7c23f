/* plan.h - a graph lowered to something that runs: primitives, layouts, one arena, one step
 *
 *     graphs + request  -> spec      (plan_choose, spec.h: a value that can be read and digested)
 *     graph + spec, use -> plan      (plan_create, once; creates every primitive)
 *     plan_bind       -> pointers    (weights, exchange, moving)
 *     plan_train_step -> loss, statistics and gradients in the exchange buffer, bucket by bucket
 *     plan_evaluate   -> loss and correct answers, with the moving statistics
 *
 * A plan is made for one batch size. The primary use of a spec, the job's own batch, fixes the
 * layout in which weights, optimizer slots and gradients live; the plans of the other uses (the
 * last, smaller batch; evaluation) are chosen against that layout.
 *
 * The precision of a spec is that of the batch and of what lies between ops. Parameters, slots,
 * gradients and statistics are MS_F32 at every precision, class numbers MS_I32. Only fp32 is
 * implemented.
 *
 * Flat buffers, of the types that plan_sizes names, all indexed by the same offsets:
 *
 *     exchange: | statistics (bucket 0, may be empty) | gradients in the order of backward ... |
 *     weights:                                        | parameters in the same places         |
 *     slots (momentum, ...):                          | the same places                       |
 *     mirrors:  those parameters that backward wants in another layout, in that layout
 *     moving:   | states in the places of their statistics |
 *
 * i.e. weights[i] belongs to gradient exchange[n_stats + i], and moving[i] to statistic
 * exchange[i]. Padding that a kernel layout needs is zero and stays zero. The statistics in the
 * exchange buffer are a copy: backward reads its own, so the sum over ranks may run beside it.
 *
 * One thread at a time; its OpenMP team inside: a run sets the calling thread's number of OpenMP
 * threads to the plan's. Denormal numbers are flushed to zero during a run. Results depend on the
 * number of threads (oneDNN splits its sums by it), not on timing: the same plan, weights and batch
 * give the same bits. */
#ifndef PLAN_H
#define PLAN_H

#include "libworker/graph/graph.h"
#include "proto/err.h"

#include <stdatomic.h>
#include <stdint.h>

struct plan;
struct plan_spec; /* spec.h */

enum plan_use { /* what a job needs plans for */
                PLAN_TRAIN,
                PLAN_TAIL, /* the last, smaller batch of an epoch */
                PLAN_EVALUATE,
                PLAN_USES
};

enum plan_recompute { /* batch norm + ReLU made again in backward from what is kept */
                      PLAN_RECOMPUTE_AUTO, /* only where the plan's peak is above memory_max */
                      PLAN_RECOMPUTE_OFF,
                      PLAN_RECOMPUTE_ON,
};

struct plan_request { /* what plan_choose decides about */
    /* Of one network, for each use; NULL: the job has none. Those to train are differentiated. The
     * first one is the *primary*: it fixes the layouts of parameters. */
    const struct graph *graphs[PLAN_USES];
    int world;               /* ranks that train, >= 1 */
    int threads;             /* OpenMP threads of a rank, >= 1 */
    const char *isa;         /* cap: oneDNN's name, "avx512_core_amx"; NULL or "": this machine's */
    enum ms_dtype precision; /* MS_F32; others end with MS_E_UNSUPPORTED, which names a tensor */
    int mixed_caches; /* machines of other ranks have caches of other sizes: written down as that */
    size_t bucket_bytes_max; /* 0: PLAN_BUCKET_BYTES */
    enum plan_recompute recompute;
    /* Weights that backward wants in another layout are kept in it, too: no step reorders them, but
     * the commit takes longer by more than that (bench/README.md). */
    int mirrors;
    /* Bytes for arena and mirrors, 0: no limit. Where all together is more, first mirrors go, then
     * PLAN_RECOMPUTE_AUTO makes again. */
    uint64_t memory_max;
};

/* 8 MiB: large enough that a bucket's barrier (about 10 us) is noise beside its memory traffic
 * (about 2 ms), small enough that the last bucket, which nothing hides, is short. Measured by
 * bench/step. */
#define PLAN_BUCKET_BYTES (8U << 20)

/* The most that this process says it has: plan_isa, until a plan or plan_set_isa fixes one. Fixes
 * nothing itself. MS_E_INVALID, MS_E_UNSUPPORTED as below. */
int plan_cap_isa(const char *isa, struct ms_err *err);
/* Caps oneDNN's instruction set for this process, before the first plan. MS_E_INVALID: no such
 * name; MS_E_UNSUPPORTED: this machine has less; MS_E_REFUSED: another cap holds already. NULL or
 * "": this machine's own. */
int plan_set_isa(const char *isa, struct ms_err *err);
/* Effective, e.g. "avx512_core_amx"; before the first plan or cap what this machine has. */
const char *plan_isa(void);
const char *plan_library(void); /* oneDNN's version, "2.6.3" */

/* Bytes of a core's own cache, level 1 (data) or 2, as plans are made for them; 0: not known. */
int64_t plan_cache_bytes(int level);

/* What a training graph is worth of a rank's threads: `most`, or 1 where a step is too little work
 * for a team. A function of the graph alone. Any thread. */
int plan_threads(const struct graph *graph, int most);

/* Chooses, on this machine: candidates of implementations and layouts, the fast class of code
 * first, then what spares a reorder. Equal requests on equal machines give equal specs. Returns
 * owned: plan_spec_destroy. MS_E_UNSUPPORTED: oneDNN has nothing for an op; MS_E_INVALID,
 * MS_E_REFUSED: the request, the instruction set. */
int plan_choose(const struct plan_request *request, struct plan_spec **ret, struct ms_err *err);

/* Chooses for this use alone, against all else that the spec says, and puts it in the place of what
 * the spec has for it; graph NULL: it has none then. For no use that others follow: not the primary
 * one. Errors as of plan_choose and plan_create; the spec lacks the use then. */
int plan_choose_use(const struct graph *graph, struct plan_spec *spec, enum plan_use use,
                    struct ms_err *err);

/* Has the spec make again in backward, for this use, whatever its plan can make again: changes the
 * section of memory alone. The spec has made a plan of the graph on this machine. */
int plan_recompute(const struct graph *graph, struct plan_spec *spec, enum plan_use use,
                   struct ms_err *err);

/* Makes the plan that the spec describes for this use, or none: each primitive by implementation
 * and layouts, every other line held against what comes of it. The graph is borrowed for the plan's
 * life. cancel: looked at between two primitives, non-zero ends a run with MS_E_ABORTED; NULL:
 * never; borrowed likewise. Returns owned. Nothing large is allocated yet. MS_E_UNSUPPORTED: this
 * machine cannot; MS_E_INVALID: the spec is not the graph's; both name the line. */
int plan_create(const struct graph *graph, const struct plan_spec *spec, enum plan_use use,
                const atomic_int *cancel, struct plan **ret, struct ms_err *err);
void plan_destroy(struct plan *plan); /* NULL allowed */

struct plan_bucket {     /* a range of the exchange buffer that becomes complete at once */
    size_t begin, count; /* elements */
};

struct plan_sizes {
    size_t weights;  /* elements, padding included: also slots and gradients */
    size_t stats;    /* elements: statistics, also moving; gradients begin here in exchange */
    size_t exchange; /* stats + weights */
    size_t mirrors;  /* elements: second layouts of parameters, 0 where there are none */
    enum ms_dtype weights_dtype; /* also of slots and mirrors */
    enum ms_dtype stats_dtype;   /* of moving */
    enum ms_dtype exchange_dtype;
    size_t arena_bytes; /* activations and scratch, planned by liveness */
    int n_buckets;      /* bucket 0 is the statistics if stats > 0 */
    uint64_t reorders;  /* layout changes a step: 0 is the goal */
};
void plan_get_sizes(const struct plan *plan, struct plan_sizes *ret);
struct plan_bucket plan_get_bucket(const struct plan *plan, int bucket);

struct plan_buffers { /* borrowed until the next bind; 64-byte aligned */
    void *weights;
    void *mirrors;  /* NULL where sizes.mirrors is 0; plans of a job share them with the weights */
    void *moving;   /* NULL where sizes.stats is 0 */
    void *exchange; /* NULL for evaluation */
    void *arena;    /* at least arena_bytes; plans of a job may share one: scratch between steps */
};
/* Writes zeros where no step writes (the ends of cache lines in exchange). Large arenas want
 * madvise(MADV_HUGEPAGE): half a million page faults fewer in the first step of ResNet-50.
 * MS_E_INVALID: a buffer is missing or not aligned. */
int plan_bind(struct plan *plan, const struct plan_buffers *buffers, struct ms_err *err);

/* What the random numbers of a step depend on, beside the op and the place in a row: the same give
 * the same. Of dropout alone; 0, 0, 0 until it is set. Before plan_train_step. */
struct plan_draw {
    uint64_t seed, step;
    uint64_t first_row; /* place of the batch's first row among those of all ranks */
};
void plan_set_draw(struct plan *plan, const struct plan_draw *draw);

/* Of the next plan_train_step's batch: second labels of its rows, and what the first ones count,
 * whose loss is softmax_ce of rows. Borrowed until that ends, and for no other run; NULL: each row
 * has one label. */
void plan_set_others(struct plan *plan, const int32_t *others, const float *shares);

/* Called on the training thread as soon as a bucket of the exchange buffer is complete; in index
 * order. */
typedef void plan_bucket_fn(void *arg, int bucket);

/* Forward and backward of one batch. data: (n, c, h, w) of the precision, C order (tokens:
 * numbers); labels: i32 or f32, as the graph says. Writes nothing but the arena and exchange: an
 * abort loses nothing. ret_loss: mean over the batch; of labels with weights (graph.h: softmax_ce)
 * the sum of weights times losses / rows, whose gradient is what exchange has: divided by
 * plan_weight it is the mean. */
int plan_train_step(struct plan *plan, const void *data, const void *labels,
                    plan_bucket_fn *on_bucket, void *arg, float *ret_loss, struct ms_err *err);
/* Of the batch of the last plan_train_step: the sum of its labels' weights / rows; 1 where all
 * count alike, 0 where none counts. */
double plan_weight(const struct plan *plan);

struct plan_evaluated {
    double loss_sum; /* over rows (of targets, and of tokens: of row means), by labels' weights */
    int64_t correct; /* rows, or tokens, whose largest logit is the label's; bce: whose logits are
                        all on their target's side; of others 0 */
    const float *predictions; /* what the loss reads: (rows, columns), of sequences a row a token, C
                                 order; until the arena's next step */
    int64_t columns;
    double weight_sum; /* as loss_sum: of labels' weights, or rows where all count alike */
    int64_t counted;   /* rows, or tokens, of which `correct` counts some */
};
/* Forward with moving statistics. Only the first `rows` of the batch count. */
int plan_evaluate(struct plan *plan, const void *data, const void *labels, int64_t rows,
                  struct plan_evaluated *ret, struct ms_err *err);

/* ---- parameters between kernel layout and the logical layout of files (C order) -----------------
 */

/* tensor: graph index of a PARAM or STATE; logical: shape_count elements of dtype. Reads/writes the
 * bound weights (with their mirrors) and moving buffers; `from` of get may be any buffer indexed
 * and typed like weights (a momentum, a gradient). MS_E_UNSUPPORTED: the tensor is kept in another
 * dtype. */
int plan_set_logical(struct plan *plan, int tensor, enum ms_dtype dtype, const void *logical,
                     struct ms_err *err);
int plan_get_logical(struct plan *plan, int tensor, enum ms_dtype dtype, void *logical,
                     struct ms_err *err);
int plan_get_logical_from(struct plan *plan, int tensor, const void *from, enum ms_dtype dtype,
                          void *logical, struct ms_err *err);
/* `to` of set likewise, or one indexed and typed like moving, without any mirrors. */
int plan_set_logical_to(struct plan *plan, int tensor, void *to, enum ms_dtype dtype,
                        const void *logical, struct ms_err *err);

/* What plan_get_logical_from needs of a plan, for another thread than its own: one at a time, while
 * the plan runs. To be made, and destroyed, while it does not; the plan outlives it. Computes with
 * one thread. `from` is left as it is, and is no constant, for oneDNN has no word for that. */
struct plan_layout;
int plan_layout_create(const struct plan *plan, struct plan_layout **ret, struct ms_err *err);
void plan_layout_destroy(struct plan_layout *layout); /* NULL allowed */
int plan_layout_get(struct plan_layout *layout, int tensor, void *from, enum ms_dtype dtype,
                    void *logical, struct ms_err *err);

/* The mirrors of the parameters that begin in weights[begin, begin + count): to be called by
 * whoever wrote these weights by other means than plan_set_logical, before the next run. The
 * primary plan, for all plans that share the buffers. MS_E_FAILED: oneDNN failed. */
int plan_write_mirrors(struct plan *plan, size_t begin, size_t count, struct ms_err *err);

/* The commit of statistics: for state s of statistic t, with m its momentum and n its count,
 *     moving = m moving + (1 - m) avg          avg = mean over ranks
 *     variances: avg * n / (n - 1)
 * reduced: the statistics' part of the exchange buffer after the sum over ranks; scale = 1 / ranks.
 * Statistics are MS_F32 at every precision. */
void plan_commit_stats(const struct plan *plan, const float *reduced, float scale, float *moving);

/* The same for a step of several batches, whose averages enter one after the other: since all of
 * that is linear, each rank folds its own first, and what is summed over ranks is folded already.
 *     folded = m before + (1 - m) stats, variances: stats * n / (n - 1)
 * of the batch of this plan; before NULL: it is the first one. folded may be either of the two. */
void plan_fold_stats(const struct plan *plan, float *folded, const float *before,
                     const float *stats);
/* moving = m^batches moving + avg, with avg = mean over ranks of what was folded. */
void plan_commit_folded(const struct plan *plan, const float *reduced, float scale, int64_t batches,
                        float *moving);

#endif
