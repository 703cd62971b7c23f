/* internal.h - the inside of a plan, for the files of this room (and the tests of its memory)
 *
 *     choose.c    graphs           -> drafts, written down by record.c as a spec
 *     lowering.h  graph, spec      -> steps, with operands that name a place, not an address
 *     params.c    parameters       -> places in the flat buffers, buckets, logical layout
 *     mirror.c    parameters       -> second layouts, which the commit writes
 *     memory.c    steps            -> recompute, lifetimes, offsets in the arena
 *     check.c     steps            -> are they what the spec says?
 *     dtype.c     precision        -> what the elements of a tensor are
 *     step.c      steps + pointers -> a run
 */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include "libworker/graph/op.h"
#include "libworker/plan/dnnl.h"
#include "libworker/plan/plan.h"
#include "libworker/plan/spec.h"
#include "libworker/plan/view.h"

enum {
    PLAN_ALIGN = 64,   /* bytes: a cache line and a vector of AVX-512 */
    PLAN_LANES = 16,   /* elements of it, of 4 bytes: places in the flat buffers are multiples */
    PLAN_OPERANDS = 12 /* batch norm backward */
};

enum place { /* where the bytes of an operand are; index says which */
             PLACE_NONE,
             PLACE_DATA,     /* the caller's batch */
             PLACE_LABEL,    /* ... and its labels */
             PLACE_WEIGHTS,  /* index: parameter */
             PLACE_MIRROR,   /* index: parameter; its second layout */
             PLACE_EXCHANGE, /* index: parameter; its gradient */
             PLACE_MOVING,   /* index: statistic; its moving state */
             PLACE_STATS,    /* index: statistic; the copy that backward reads, because the exchange
                                buffer's is summed over ranks while backward runs */
             PLACE_ARENA,    /* index: buffer */
};

struct operand {
    enum place place;
    int index;
};

struct plan_param {
    int tensor; /* of this plan's graph */
    size_t offset, count;
    /* NULL until an op has fixed the layout; vectors never get one. */
    const struct dn_md *md;
    int n_dims;
    int64_t dims[DN_DIMS_MAX]; /* as the kernels see them: input channels may be padded */
    /* A dense layer reads an image's bytes as they lie, as one long row: its weight's columns are
     * permuted alike, by way of this layout of (out, c, h, w). DN_ANY: not an image. */
    enum dn_tag via;
    int64_t via_dims[DN_IMAGE_DIMS];
    /* The layout in which it is kept, too, and where; NULL: in none. */
    const struct dn_md *mirror;
    size_t mirror_offset;
};

struct plan_stat {
    int state, stat; /* tensors */
    size_t offset, count;
};

struct step {
    enum step_kind kind;
    int op;      /* graph op, -1: the plan's own */
    int is_copy; /* a batch norm that is made again for backward */
    struct operand operands[PLAN_OPERANDS];
    void *ptr[PLAN_OPERANDS]; /* after bind; the batch's are set a step */
    int n_operands;
    const struct dn_md *src, *weights, *dst; /* layouts; of our kernels src, NULL: vectors */
    /* primitives */
    struct dn_prim *prim;
    enum dn_kind prim_kind;
    char impl[PLAN_TOKEN_MAX];
    /* norms */
    struct kernel_layout layout;
    double epsilon;
    int relu;         /* batch norm; backward: enum kernel_mask */
    int64_t groups;   /* norm of samples: kernel_norm's */
    int is_per_value; /* ... */
    struct pool_shape pool;
    struct kernel_attention attention; /* its sizes */
    struct kernel_recurrent recurrent; /* ... */
    struct kernel_channels channels;   /* its layouts, and which */
    struct kernel_resample resample;
    float factor, offset; /* linear */
    /* elementwise: floats; losses, embedding: rows and columns */
    size_t count;
    int64_t rows, columns;
    int64_t words; /* embedding */
};

struct buffer {          /* a piece of the arena */
    enum ms_dtype dtype; /* MS_U8: scratch, whose inside is its kernel's */
    size_t count;
    int first, last; /* steps; last < first: unused */
    int root;        /* shares the bytes of this buffer; itself if it has its own */
    int is_mirror;   /* of a draft: not in the arena, but a parameter's second layout */
    size_t offset;
};

static inline size_t buffer_bytes(const struct buffer *buffer)
{
    return ms_dtype_size(buffer->dtype, buffer->count);
}

struct plan {
    const struct graph *graph;
    int training, threads;
    enum ms_dtype precision;                  /* of values */
    enum ms_dtype weights_dtype, stats_dtype; /* parameters; states and statistics */
    enum ms_dtype exchange_dtype;             /* gradients, and a copy of the statistics */
    size_t bucket_bytes_max;
    const atomic_int *cancel; /* NULL: never */
    int is_draft;             /* to choose by: without primitives, it cannot run */
    int is_primary;           /* a draft that fixes what all plans have in common */
    struct dn *dn;
    int n_forward_ops;

    struct plan_param *params; /* in the order of offsets */
    int n_params;
    int *param_of; /* per tensor: index into params, -1 */
    struct plan_stat *stats;
    int n_stats;
    int *stat_of; /* per tensor (stat or state) */
    size_t stats_count, weights_count, mirrors_count;

    struct step *steps;
    int n_steps, cap_steps;
    int n_mirror_steps; /* the first ones: of the commit, no part of a run */
    int n_forward_steps;
    struct buffer *buffers;
    int n_buffers, cap_buffers;
    int stats_buffer; /* -1: none */
    size_t arena_bytes;
    int n_copies;
    uint64_t reorders;

    struct plan_bucket *buckets;
    int *bucket_step; /* the bucket is complete after this step */
    int n_buckets;

    int *batch_steps; /* those that touch the caller's batch */
    int n_batch_steps;
    struct plan_buffers bound;
    int is_bound;
    struct plan_draw draw;
    const int32_t *others; /* plan_set_others */
    const float *shares;
    int64_t rows;     /* evaluation: rows that count */
    double loss;      /* of the last run: of the rows that count, as kernel_softmax_ce returns it */
    double weight;    /* ... and their weight */
    int64_t correct;  /* evaluation */
    int64_t counted;  /* ... of so many rows, of sequences tokens */
    double bad_token; /* of a run that ended with MS_E_INVALID, and what it is read by */
    int64_t words;
    const float *predictions; /* of the last run; columns of each of its rows */
    int64_t columns;
    double *seconds; /* plan_view_clock */
};

/* plan.c: a plan of the graph that has no steps yet; threads, precision and bucket bytes are the
 * spec's. */
int plan_begin(const struct graph *graph, const struct plan_spec *spec, enum plan_use use,
               struct plan **ret, struct ms_err *err);

/* lowering.c: the steps of all ops. Each op of a draft chooses; others obey the use's rows. */
int plan_lower(struct plan *plan, const struct plan_spec *spec, enum plan_use use,
               struct ms_err *err);

/* dtype.c: of a tensor of this role where values have this precision. */
enum ms_dtype plan_dtype(enum ms_dtype precision, enum tensor_role role);
/* Sets the types of the plan. MS_E_UNSUPPORTED: no code computes with that of a tensor; names it.
 */
int plan_set_dtypes(struct plan *plan, enum ms_dtype precision, struct ms_err *err);

/* emit.c. Each returns 0 (or an index) or fails. */
int emit_buffer(struct plan *plan, enum ms_dtype dtype, size_t count, struct ms_err *err);
int emit_buffer_for(struct plan *plan, const struct dn_md *md, struct ms_err *err);
struct step *emit_step(struct plan *plan, enum step_kind kind, int op, int n_operands,
                       struct ms_err *err); /* NULL: no memory; valid until the next emit */
/* Fills everything but scratch from args, by role. */
int emit_primitive(struct plan *plan, int op, const struct dn_spec *spec, const struct dn_pd *pd,
                   const struct operand args[DN_ROLES], struct ms_err *err);
/* The operand in layout `to`: itself, or a reordered copy. */
int emit_as(struct plan *plan, int op, struct operand at, const struct dn_md *md,
            const struct dn_md *to, struct operand *ret, struct ms_err *err);
int emit_reorder(struct plan *plan, int op, struct operand from, const struct dn_md *from_md,
                 struct operand to, const struct dn_md *to_md, struct ms_err *err);
struct kernel_layout emit_bn_layout(const struct dn_md *md);
/* A batch norm's scratch on the plan's threads: a buffer, or PLACE_NONE where it needs none. */
int emit_bn_scratch(struct plan *plan, const struct kernel_layout *layout, struct operand *ret,
                    struct ms_err *err);
/* md with its channels rounded up to whole blocks: the same bytes. */
const struct dn_md *emit_padded(struct plan *plan, const struct dn_md *md);
/* A dense layer's view of a tensor: (n, everything else). */
const struct dn_md *emit_rows(struct plan *plan, const struct dn_md *md);

/* logical.c. From one layout to another. */
int plan_reorder(struct plan *plan, const struct dn_md *from_md, void *from,
                 const struct dn_md *to_md, void *to, struct ms_err *err);

/* params.c. Elements up to the end of a cache line. */
size_t params_padded(size_t count);
/* Elements of a parameter without that padding. */
size_t params_used(const struct plan *plan, const struct plan_param *param);
/* Before lowering; a spec without parameters: this plan fixes them. MS_E_INVALID: they are not
 * those of the graph, with the line. */
int params_create(struct plan *plan, const struct plan_spec *spec, struct ms_err *err);
void params_place(struct plan *plan);                      /* after the forward ops */
int params_buckets(struct plan *plan, struct ms_err *err); /* after scheduling */

/* mirror.c. Of a draft: takes the buffers of reordered weights for second layouts and out of the
 * arena, or, without keep, back into it. Returns the bytes of second layouts. */
size_t mirrors_keep(struct plan *plan, int keep);
/* Takes second layouts from the spec. MS_E_INVALID: there cannot be one, with the line. */
int mirrors_place(struct plan *plan, const struct plan_spec *spec, struct ms_err *err);
/* The steps that write them, before all others. */
int mirrors_emit(struct plan *plan, const struct plan_spec *spec, struct ms_err *err);

/* plan.c: where the parameter's second layout is bound. */
void *plan_mirror(const struct plan *plan, const struct plan_param *param);
/* Has the calling thread's teams be of so many threads. MS_E_UNSUPPORTED: OpenMP is not to. */
int plan_take_team(int threads, struct ms_err *err);
/* One step, on the clock where one is read. As step_run. */
int plan_run_step(struct plan *plan, int step);

/* memory.c: plans the arena. again: for each op whether it is made again in backward, where it can
 * be; NULL: none is. */
int memory_plan(struct plan *plan, const unsigned char *again, struct ms_err *err);

/* record.c: is the step an op of its own in a spec, and which? */
int record_has(const struct step *step);
void record_op(const struct plan *plan, const struct step *step, struct plan_spec_op *ret);
/* ... all but its layouts, whose names have to be looked up. */
void record_code(const struct plan *plan, const struct step *step, struct plan_spec_op *ret);
/* All steps, as the ops of a use; ops are malloc'ed. */
int record_use(const struct plan *plan, struct plan_spec_use *ret, struct ms_err *err);
/* ... and what all plans of a job have in common with this one: parameters, statistics, buckets. */
int record_common(const struct plan *plan, struct plan_spec *ret, struct ms_err *err);
void record_machine(struct plan_machine *ret);

/* check.c: are the machine, the graph before it is lowered and the plan, which was lowered and
 * scheduled, what the spec says? MS_E_UNSUPPORTED or MS_E_INVALID, with the line and what it is
 * instead. */
int check_machine(const struct plan_spec *spec, struct ms_err *err);
int check_team(const struct plan_spec *spec, struct ms_err *err);
int check_precision(const struct graph *graph, const struct plan_spec *spec, struct ms_err *err);
int check_graph(const struct graph *graph, const struct plan_spec *spec, enum plan_use use,
                struct ms_err *err);
int check_plan(const struct plan *plan, const struct plan_spec *spec, enum plan_use use,
               struct ms_err *err);

/* step.c: one step; its operands' ptr are set. 0, MS_E_FAILED, or MS_E_INVALID: plan->bad_token. */
int step_run(struct plan *plan, struct step *step);

#endif
