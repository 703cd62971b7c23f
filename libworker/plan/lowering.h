/* lowering.h - a graph becomes the steps of a plan: what fuse.c, lower*.c and emit.c share
 *
 *     fuse.c      graph            -> which ops run together
 *     lowering.c  ops in order     -> lower of each op's row (ops.h)
 *     lower*.c    an op            -> its layouts, its primitive or kernel, its operands
 *     obey.c      a layer's spec   -> oneDNN's descriptor: a candidate's, or that of the op's row
 *     emit.c      ...              -> steps, buffers, reorders
 *
 * All of it lives on the stack of plan_lower. */
#ifndef PLAN_LOWERING_H
#define PLAN_LOWERING_H

#include "libworker/plan/internal.h"

struct plan_value { /* a graph tensor as the plan holds it */
    struct operand at;
    enum ms_dtype dtype;
    size_t count;           /* elements, those of padding included */
    const struct dn_md *md; /* NULL: in a row, as vectors are (a gradient of beta, a label) */
};

struct fusion { /* an op's part in a fused step */
    int skip;   /* runs inside another op's step */
    int relu;   /* forward: ReLU op that runs inside this one, -1 */
    int add;    /* batch norm: the add, -1 */
    int residual;
    int out;      /* tensor that the step writes in the end */
    int relu_bwd; /* batch norm backward: the RELU_BWD inside, -1 */
    int mask;     /* ... 1: from the recomputed pre-activation, 2: from y */
    int keep_dz;  /* ... somebody else reads the masked gradient */
    int gradient; /* loss: tensor of its gradient, -1 */
};

struct lowering {
    struct plan *plan;            /* in the making */
    const struct plan_spec *spec; /* obeyed; NULL: each op chooses */
    enum plan_use use;
    /* Per op: what it is to be; NULL: nothing of its own. Of ops that the graph has: check_graph.
     */
    const struct plan_spec_op **rows;
    struct fusion *fusions;       /* per op */
    struct plan_value *values;    /* per tensor */
    struct dn_pd **hints;         /* per op: forward descriptors */
    int *workspaces;              /* per op: buffer */
    const struct dn_md **sources; /* per op: as which it reads its source, for backward */
    int *share_of;                /* per tensor: the parameter whose gradient it is a part of, -1 */
};

/* fuse.c: fills fusions, by the rules of the ops' rows. */
int plan_fuse(struct lowering *lo, struct ms_err *err);
struct readers; /* per tensor: the ops that read it */
void fuse_relu(struct lowering *lo, const struct readers *readers, int op);
void fuse_batch_norm(struct lowering *lo, const struct readers *readers, int op);
void fuse_mask(struct lowering *lo, const struct readers *readers, int op);
void fuse_loss(struct lowering *lo, const struct readers *readers, int op);

/* lower.c, lower_conv.c, lower_activation.c, lower_norm.c, lower_recurrent.c, lower_softmax.c,
 * lower_transposed.c, lower_concat.c, lower_channels.c, lower_resample.c, lower_sequence.c,
 * lower_scale.c, lower_bwd.c: the steps of an op, for its row. plan_lower puts before an error
 * which op it was, and its line where a spec is obeyed. */
int lower_conv(struct lowering *lo, int op, struct ms_err *err);
int lower_dense(struct lowering *lo, int op, struct ms_err *err);
int lower_batch_norm(struct lowering *lo, int op, struct ms_err *err);
int lower_elementwise(struct lowering *lo, int op, struct ms_err *err);
int lower_activation(struct lowering *lo, int op, struct ms_err *err);
int lower_dropout(struct lowering *lo, int op, struct ms_err *err); /* and its gradient */
int lower_pool(struct lowering *lo, int op, struct ms_err *err);
int lower_loss(struct lowering *lo, int op, struct ms_err *err);
int lower_same(struct lowering *lo, int op, struct ms_err *err); /* no step: the same bytes */
int lower_conv_bwd_data(struct lowering *lo, int op, struct ms_err *err);
int lower_conv_bwd_weights(struct lowering *lo, int op, struct ms_err *err);
int lower_dense_bwd_data(struct lowering *lo, int op, struct ms_err *err);
int lower_dense_bwd_weights(struct lowering *lo, int op, struct ms_err *err);
int lower_batch_norm_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_norm(struct lowering *lo, int op, struct ms_err *err); /* of samples */
int lower_norm_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_transposed(struct lowering *lo, int op, struct ms_err *err);
int lower_transposed_bwd_data(struct lowering *lo, int op, struct ms_err *err);
int lower_transposed_bwd_weights(struct lowering *lo, int op, struct ms_err *err);
int lower_bias(struct lowering *lo, int op, struct ms_err *err);
int lower_bias_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_embedding(struct lowering *lo, int op, struct ms_err *err);
int lower_embedding_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_tokens(struct lowering *lo, int op, struct ms_err *err); /* no step but a reorder */
int lower_tokens_bwd(struct lowering *lo, int op, struct ms_err *err);
/* Channels that are taken or moved, a token before others, and their gradients. */
int lower_moved(struct lowering *lo, int op, struct ms_err *err);
int lower_resample(struct lowering *lo, int op, struct ms_err *err); /* of images, and gradients */
int lower_class_token(struct lowering *lo, int op, struct ms_err *err);
int lower_class_token_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_attention(struct lowering *lo, int op, struct ms_err *err);
int lower_attention_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_recurrent(struct lowering *lo, int op, struct ms_err *err);
int lower_recurrent_bwd(struct lowering *lo, int op, struct ms_err *err);
/* These and their gradients with respect to x, which are the same of dy. */
int lower_gate(struct lowering *lo, int op, struct ms_err *err);
int lower_scale(struct lowering *lo, int op, struct ms_err *err);
int lower_linear(struct lowering *lo, int op, struct ms_err *err);
int lower_gate_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_scale_bwd_weights(struct lowering *lo, int op, struct ms_err *err);
int lower_softmax(struct lowering *lo, int op, struct ms_err *err);
int lower_softmax_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_relu_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_activation_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_pool_bwd(struct lowering *lo, int op, struct ms_err *err);
int lower_sum(struct lowering *lo, int op, struct ms_err *err);
int lower_concat(struct lowering *lo, int op, struct ms_err *err);
int lower_concat_bwd(struct lowering *lo, int op, struct ms_err *err);
/* 1: lowered to our own loops, 0: they do not apply. */
int lower_own_pool(struct lowering *lo, int op, struct ms_err *err);
int lower_own_pool_bwd(struct lowering *lo, int op, struct ms_err *err);
void lower_window(const struct op *op, struct dn_spec *spec);
/* A candidate: what oneDNN takes first. NULL: nothing, or in layouts that cannot be written down.
 */
struct dn_pd *lower_try(struct plan *plan, const struct dn_spec *spec);
/* The same where there is no other candidate. MS_E_UNSUPPORTED. */
int lower_only(struct plan *plan, const struct dn_spec *spec, struct dn_pd **ret,
               struct ms_err *err);
/* Of the op's row in the text that is obeyed; where it has none, of the row before which it would
 * be. */
int lower_line(const struct lowering *lo, int op);
/* What the op's row says: where the spec leaves a layout free (DN_ANY) it is the row's, elsewhere
 * it must be. MS_E_UNSUPPORTED, MS_E_INVALID. */
int lower_obey(struct lowering *lo, int op, const struct dn_spec *spec, struct dn_pd **ret,
               struct ms_err *err);
/* The layout of a parameter as an op sees it that has this one in mind: of one that lies in C order
 * the same bytes may have other dimensions. NULL: it has none yet, or there is no memory. */
const struct dn_md *lower_weights_as(struct plan *plan, int param, const struct dn_md *like);
/* The weights of a parameter in the layout that a primitive wants. */
int lower_weights(struct plan *plan, int op, int param, const struct dn_md *want,
                  struct operand *ret, struct ms_err *err);
/* Batch norm's kernels, and others, know four layouts; oneDNN may have left the value in a fifth.
 * An image becomes one, where it lies as the rows that were made of it. */
int lower_known_layout(struct lowering *lo, int op, int tensor, struct ms_err *err);
/* A flattened image becomes rows, without channels of padding; images become channels last. */
int lower_rows(struct lowering *lo, int op, int tensor, struct ms_err *err);
int lower_pixels(struct lowering *lo, int op, int tensor, struct ms_err *err);
/* A row for each pixel of images that are channels last, for each token of sequences, or for each
 * of rows. The layout may have more channels than the tensor: a convolution takes padding for some.
 */
struct kernel_layout lower_pixel_layout(const struct plan *plan, int tensor,
                                        const struct dn_md *md);
/* Where each channel has a value of its own: rows in C order, as a flattened image may lie
 * otherwise, images in a layout that our kernels know. */
int lower_channels(struct lowering *lo, int op, int tensor, struct ms_err *err);
/* Writes zeros over what a function made of the padding of a tensor's value. */
int lower_clear_padding(struct lowering *lo, int tensor, struct ms_err *err);
/* What lies in this layout, for our kernels: with the tensor's channels, of which the layout may
 * have more; of a sequence the tokens of a sample as the channels of one row. */
struct kernel_layout lower_sample_layout(const struct plan *plan, int tensor,
                                         const struct dn_md *md);
/* A weight of several dimensions that a kernel of ours reads lies in C order; vectors do. */
int lower_plain_weight(struct plan *plan, int tensor, struct operand *ret, struct ms_err *err);
/* ---- sequences (n, t, c) lie as rows (n t, c), one a token ---- */
/* NULL: no memory. */
const struct dn_md *lower_sequence_md(struct plan *plan, int tensor);
/* Where a parameter's gradient goes: the exchange buffer, or, where it is one share of several, the
 * arena until OP_SUM. tensor: the gradient; -1: nobody wants it. */
int lower_param_gradient(struct lowering *lo, int tensor, int param, struct operand *ret,
                         struct ms_err *err);
/* Where a kernel that always makes dx writes it: tensor's value, or, where that is -1, what nobody
 * reads. */
int lower_dx(struct lowering *lo, int tensor, const struct dn_md *md, struct operand *ret,
             struct ms_err *err);
/* A convolution's primitive, of given layouts or of others: the row's where there is one to obey.
 * free_weights: their layout is given up for better code. */
int lower_conv_pd(struct lowering *lo, int op, const struct dn_spec *given, int free_weights,
                  struct dn_pd **ret, struct ms_err *err);
/* Emits a primitive that makes a gradient of weights, and brings that into the parameter's layout.
 */
int lower_weights_gradient(struct lowering *lo, int op, const struct dn_spec *spec,
                           const struct dn_pd *pd, int param, int dw, struct operand args[DN_ROLES],
                           struct ms_err *err);
/* The layout of a parameter, unless another op or plan has fixed it. */
void lower_fix_param(struct plan_param *param, const struct dn_md *md);
/* Makes a tensor's value be in layout `to` from here on. */
int lower_relayout(struct lowering *lo, int op, int tensor, const struct dn_md *to,
                   struct ms_err *err);
/* emit.c: a value that lies in this layout. */
struct plan_value emit_at(struct operand at, const struct dn_md *md);
/* A tensor's value in a fresh buffer. */
int emit_value(struct lowering *lo, int tensor, const struct dn_md *md, struct ms_err *err);
/* The op's output in a fresh buffer, and the step of ours that makes it of a and b (PLACE_NONE: of
 * a alone), all in md, channel by channel of the layout. */
int emit_by_channels(struct lowering *lo, int op, enum step_kind kind, struct operand a,
                     struct operand b, const struct dn_md *md, const struct kernel_layout *layout,
                     struct ms_err *err);

#endif
