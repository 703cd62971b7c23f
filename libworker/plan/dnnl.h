/* dnnl.h - oneDNN behind one small interface: the only place that knows 2.x from 3.x
 *
 *     dn (engine, stream, memory descriptors) -> dn_pd (what oneDNN would do) -> dn_prim (runs)
 *
 * Memory descriptors are interned: two descriptors of one dn are equal if and only if the pointers
 * are. They belong to the dn and live as long. One thread at a time. */
#ifndef PLAN_DNNL_H
#define PLAN_DNNL_H

#include "proto/dtype.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

struct dn;
struct dn_md;
struct dn_pd;
struct dn_prim;

enum {
    DN_DIMS_MAX = 5,    /* a convolution's weights in groups: (g, o/g, i/g, kh, kw) */
    DN_IMAGE_DIMS = 4,  /* (n, c, h, w), and weights (o, i, kh, kw) */
    DN_WINDOW_DIMS = 12 /* the length of oneDNN's own arrays */
};

enum dn_tag {             /* layouts that our own kernels understand */
              DN_ANY,     /* oneDNN may choose */
              DN_PLAIN,   /* C order: a, ab, abc, abcd, abcde */
              DN_NCHW8C,  /* channels in blocks of 8, the last one padded with zeros */
              DN_NCHW16C, /* ... of 16 */
              DN_NHWC,    /* channels last */
              DN_OTHER,   /* something else that oneDNN chose */
};

enum dn_kind {
    DN_CONV_FWD,
    DN_CONV_BWD_DATA,
    DN_CONV_BWD_WEIGHTS,
    DN_DENSE_FWD,
    DN_DENSE_BWD_DATA,
    DN_DENSE_BWD_WEIGHTS,
    DN_MAX_POOL_FWD,
    DN_MAX_POOL_BWD,
    DN_AVG_POOL_FWD,
    DN_AVG_POOL_BWD,
    DN_ELTWISE_FWD,
    DN_ELTWISE_BWD,
    DN_REORDER,
    DN_KINDS
};

enum dn_role { /* an argument of a primitive */
               DN_SRC,
               DN_WEIGHTS,
               DN_BIAS,
               DN_DST,
               DN_DIFF_SRC,
               DN_DIFF_WEIGHTS,
               DN_DIFF_BIAS,
               DN_DIFF_DST,
               DN_WORKSPACE,
               DN_SCRATCHPAD,
               DN_ROLES
};

enum dn_function {                /* of an element */
                   DN_LEAKY_RELU, /* alpha: slope of negative values */
                   DN_ELU,        /* alpha: factor of negative values */
                   DN_GELU,       /* by an error function */
                   DN_GELU_TANH,
                   DN_SILU,
                   DN_HARD_SWISH,
                   DN_SIGMOID,
                   DN_TANH,
                   DN_FUNCTIONS
};

struct dn_spec {
    enum dn_kind kind;
    /* The tensors or, in backward, the gradients in their places: BWD_DATA has src = diff_src and
     * dst = diff_dst, BWD_WEIGHTS has weights = diff_weights, ... REORDER goes from src to dst.
     * ELTWISE has one layout for all: src. */
    const struct dn_md *src, *weights, *bias, *dst; /* bias NULL: none */
    int64_t kernel[DN_WINDOW_DIMS], stride[DN_WINDOW_DIMS];
    int64_t pad_begin[DN_WINDOW_DIMS], pad_end[DN_WINDOW_DIMS];
    int64_t gap[DN_WINDOW_DIMS]; /* convolution: pixels between two taps */
    enum dn_function function;   /* eltwise */
    double alpha;                /* ... of those that have one */
    int relu;                    /* forward convolution or dense: ReLU on the way out */
    int inference;               /* forward without a backward: no workspace */
    const struct dn_pd *hint;    /* backward: the forward's */
};

/* What dn_isa says, and NULL and "" of dn_isa_set mean, from now on; oneDNN is not asked and
 * nothing is fixed. MS_E_INVALID, MS_E_UNSUPPORTED as below. */
int dn_isa_cap(const char *name, struct ms_err *err);
/* Caps the instruction set by oneDNN's name, once in a process; NULL or "" fixes the machine's own.
 * MS_E_INVALID: no such name; MS_E_UNSUPPORTED: the machine has less; MS_E_REFUSED: another cap
 * holds already. */
int dn_isa_set(const char *name, struct ms_err *err);
/* In effect; before the first plan what this machine has, without fixing it. */
const char *dn_isa(void);
const char *dn_version(void);

/* Returns owned. */
int dn_create(struct dn **ret, struct ms_err *err);
void dn_destroy(struct dn *dn); /* after its pds and prims; NULL allowed */

/* Borrowed; NULL: no memory or no such layout for these dimensions (blocks need four). */
const struct dn_md *dn_md(struct dn *dn, enum ms_dtype dtype, int n_dims, const int64_t *dims,
                          enum dn_tag tag);
/* By oneDNN's name of the layout; NULL also where it knows no such name. */
const struct dn_md *dn_md_named(struct dn *dn, enum ms_dtype dtype, int n_dims, const int64_t *dims,
                                const char *name);
/* The same tensor in another layout. */
const struct dn_md *dn_md_as(struct dn *dn, const struct dn_md *md, enum dn_tag tag);
const struct dn_md *dn_md_as_named(struct dn *dn, const struct dn_md *md, const char *name);
/* MS_E_NOMEM: what a NULL of these means where there is such a layout. */
int dn_md_fail(struct ms_err *err);
/* The same memory as one of our layouts says it: where a dimension is 1 several of them are one,
 * and an implementation may know it by one of its names alone. For dn_spec only, for it is another
 * pointer than md; NULL: it is no such layout, or no memory. */
const struct dn_md *dn_md_twin(struct dn *dn, const struct dn_md *md, enum dn_tag tag);
/* The elements of these dims from these offsets on, at their places in md, for reorders alone: it
 * has no bytes of its own. NULL: no memory, or it does not begin and end with md's blocks. */
const struct dn_md *dn_md_part(struct dn *dn, const struct dn_md *md, const int64_t *dims,
                               const int64_t *offsets);
enum ms_dtype dn_md_dtype(const struct dn_md *md); /* oneDNN's own buffers: MS_U8 */
size_t dn_md_count(const struct dn_md *md);        /* elements, padding included; DN_ANY: 0 */
size_t dn_md_bytes(const struct dn_md *md);        /* of them */
int dn_md_n_dims(const struct dn_md *md);
const int64_t *dn_md_dims(const struct dn_md *md);
enum dn_tag dn_md_tag(const struct dn_md *md);
/* oneDNN's name of the layout, "ABcd16b16a"; NULL: it has none. */
const char *dn_md_name(struct dn *dn, const struct dn_md *md);
/* Is that the name of the layout, and not another one that is the same for these dimensions? md
 * NULL: no. */
int dn_md_is_named(struct dn *dn, const struct dn_md *md, const char *name);

const char *dn_kind_name(enum dn_kind kind); /* "convolution backward data" */

/* Returns owned. MS_E_UNSUPPORTED: oneDNN has no implementation for it. */
int dn_pd_create(struct dn *dn, const struct dn_spec *spec, struct dn_pd **ret, struct ms_err *err);
/* The implementation of that name, where oneDNN would take another one first, too.
 * MS_E_UNSUPPORTED: it has none; the error says which ones it offers. */
int dn_pd_create_named(struct dn *dn, const struct dn_spec *spec, const char *impl,
                       struct dn_pd **ret, struct ms_err *err);
void dn_pd_destroy(struct dn_pd *pd); /* NULL allowed */
/* The descriptor that the implementation wants; NULL where it has no such argument. */
const struct dn_md *dn_pd_md(struct dn *dn, const struct dn_pd *pd, enum dn_role role);
/* DN_SRC, DN_WEIGHTS or DN_DST: that tensor or, in backward, its gradient. NULL: there is none. */
const struct dn_md *dn_pd_tensor(struct dn *dn, const struct dn_pd *pd, enum dn_role role);
/* The arguments that it has, scratch included; returns how many. */
struct dn_arg {
    enum dn_role role;
    const struct dn_md *md;
};
int dn_pd_args(struct dn *dn, const struct dn_pd *pd, struct dn_arg ret[DN_ROLES]);
const char *dn_pd_impl(const struct dn_pd *pd); /* "jit_1x1:avx512_core"; pd's life */
/* 0 reference code, 1 matrix product around which a convolution was built, 2 a real one. */
int dn_pd_rank(const struct dn_pd *pd);

/* Generates the code. Returns owned; independent of pd afterwards. */
int dn_prim_create(struct dn *dn, const struct dn_pd *pd, struct dn_prim **ret, struct ms_err *err);
void dn_prim_destroy(struct dn_prim *prim); /* NULL allowed */
int dn_prim_n_args(const struct dn_prim *prim);
enum dn_role dn_prim_role(const struct dn_prim *prim, int arg);
const struct dn_md *dn_prim_md(const struct dn_prim *prim, int arg);
int dn_prim_set(struct dn_prim *prim, int arg, void *data); /* 0 or MS_E_INVALID */
int dn_prim_run(struct dn *dn, struct dn_prim *prim);       /* 0 or MS_E_FAILED */

struct kernel_product; /* kernel.h */
/* A kernel_product_fn, for kernels that are products inside. 0 or MS_E_FAILED. Any thread. */
int dn_product(const struct kernel_product *product);

#endif
