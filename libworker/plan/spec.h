/* spec.h - what a job's plans are, as a value: it can be written, read, compared and digested
 *
 *     section bits     all that decides the bits of a run beside job and seed
 *     section memory   what is kept twice, or made again instead of kept: the same bits
 *
 * docs/plan.md describes the text, one fact a line; equal specs have equal texts, byte by byte. A
 * spec that plan_spec_parse returns is well formed: every name, number and order that the document
 * gives holds. That it fits a graph and a machine is for those to say who make a plan of it.
 * Any thread; nothing here knows oneDNN. */
#ifndef PLAN_SPEC_H
#define PLAN_SPEC_H

#include "libworker/graph/graph.h"
#include "libworker/plan/plan.h"
#include "proto/digest.h"

#include <stddef.h>
#include <stdint.h>

enum { PLAN_TOKEN_MAX = 40, PLAN_CACHES = 2 };

struct plan_machine {             /* facts that oneDNN's code and its blocking depend on */
    char isa[PLAN_TOKEN_MAX];     /* in effect, "avx512_core" */
    char library[PLAN_TOKEN_MAX]; /* oneDNN's version, "2.6.3" */
    int mixed_caches;             /* the ranks' machines differ in what follows, which is 0 then */
    int64_t caches[PLAN_CACHES];  /* bytes of a core's own: L1 data, L2; 0: unknown */
};

struct plan_spec_param {
    char name[GRAPH_NAME_MAX];
    int64_t offset, count;       /* floats, of the flat buffers; padded to cache lines */
    char layout[PLAN_TOKEN_MAX]; /* oneDNN's name, "ABcd16b16a"; "a": a vector */
    struct shape shape;          /* as kernels see it: input channels may be padded */
    /* A dense weight whose columns are permuted, because its source is read as it lies: that
     * layout, "" for none, of this shape. */
    char columns[PLAN_TOKEN_MAX];
    struct shape columns_shape;
    char mirror[PLAN_TOKEN_MAX]; /* section memory: kept in this layout, too; "": in none */
};

struct plan_spec_stat {
    char name[GRAPH_NAME_MAX]; /* of the moving state */
    int64_t offset, count;
};

struct plan_spec_op {          /* what runs an op, and those that are fused into it */
    int op;                    /* of the use's graph */
    char kind[PLAN_TOKEN_MAX]; /* "conv2d" */
    char name[GRAPH_NAME_MAX]; /* "layer1.a.conv1": of what the (forward) op makes */
    char impl[PLAN_TOKEN_MAX]; /* "jit:avx512_core" of oneDNN, or "kernel:batch_norm" */
    int relu;                  /* a ReLU runs inside; batch norm backward: how, see kernel.h */
    /* The tensors, in backward their gradients, by oneDNN's names; "" where there is none. Weights
     * in another layout than the parameter's and its mirror's are reordered every step. */
    char src[PLAN_TOKEN_MAX], weights[PLAN_TOKEN_MAX], dst[PLAN_TOKEN_MAX];
    int64_t channels; /* of src, where padding is taken for channels; 0: the graph's */
    int again;        /* section memory: made again for backward */
};

struct plan_spec_use {
    struct shape batch; /* n_dims 0: the job has no such plan */
    int n_ops;
    struct plan_spec_op *ops; /* in the order of the graph */
};

struct plan_spec {
    char network[GRAPH_NAME_MAX];
    int world, threads;
    struct plan_machine machine;
    enum ms_dtype precision; /* of data and values: plan.h */
    int64_t bucket_bytes;
    int n_params, n_stats, n_buckets;
    struct plan_spec_param *params;
    struct plan_spec_stat *stats;
    struct plan_bucket *buckets;
    struct plan_spec_use uses[PLAN_USES];
};

/* "train", "tail", "evaluation". */
const char *plan_use_name(enum plan_use use);

void plan_spec_destroy(struct plan_spec *spec); /* with its arrays, all malloc'ed; NULL allowed */

/* The text: malloc'ed, ends with a NUL that ret_size does not count. MS_E_FULL: more than
 * MS_PLAN_MAX bytes. */
int plan_spec_format(const struct plan_spec *spec, char **ret, size_t *ret_size,
                     struct ms_err *err);
/* Of untrusted bytes. Returns owned. MS_E_INVALID: not what plan_spec_format writes; the error
 * names the line. */
int plan_spec_parse(const char *text, size_t size, struct plan_spec **ret, struct ms_err *err);
/* SHA-256 of the section of bits, hex: equal digests, equal bits. MS_E_FULL as above. */
int plan_spec_digest(const struct plan_spec *spec, char ret_hex[MS_SHA256_HEX], struct ms_err *err);

/* How much of a well formed text decides the bits of the training: all before the evaluation. */
size_t plan_spec_training_size(const char *text);

/* Where in the text an item is, counted from 1: for errors about it. */
enum plan_spec_item {
    PLAN_ITEM_NETWORK,
    PLAN_ITEM_MACHINE,
    PLAN_ITEM_BUCKET_BYTES,
    PLAN_ITEM_PARAM,
    PLAN_ITEM_STAT,
    PLAN_ITEM_BUCKET
};
int plan_spec_line(const struct plan_spec *spec, enum plan_spec_item item, int i);
/* op: index into the use's ops; -1: the use's own line. */
int plan_spec_op_line(const struct plan_spec *spec, enum plan_use use, int op);
/* Of a parameter's second layout. */
int plan_spec_mirror_line(const struct plan_spec *spec, int param);
/* Of an op that is made again, by its index likewise. */
int plan_spec_again_line(const struct plan_spec *spec, enum plan_use use, int op);

#endif
