/* view.h - the steps of a plan as somebody outside may look at them: bench/step measures with it
 *
 * A plan runs its steps one after the other. A view says what a step is and where its operands lie;
 * it cannot change the plan. Same thread as the plan's other functions. */
#ifndef PLAN_VIEW_H
#define PLAN_VIEW_H

#include "libworker/kernel/kernel.h"
#include "libworker/kernel/pool.h"
#include "libworker/plan/plan.h"

enum step_kind {
    STEP_PRIMITIVE, /* oneDNN's: its operands are its arguments, in no order that is known here */
    STEP_CLEAR_STATS,
    STEP_PUBLISH_STATS,
    STEP_CLEAR_PADDING, /* of what a primitive wrote that took padding for channels */
    STEP_BN_TRAIN,
    STEP_BN_APPLY,
    STEP_BN_BACKWARD,
    STEP_NORM, /* of samples: layer or group norm */
    STEP_NORM_BACKWARD,
    STEP_RELU,
    STEP_RELU_BACKWARD,
    STEP_RELU6,
    STEP_RELU6_BACKWARD,
    STEP_BIAS,
    STEP_BIAS_BACKWARD,
    STEP_EMBEDDING,
    STEP_EMBEDDING_BACKWARD,
    STEP_ATTENTION,
    STEP_ATTENTION_BACKWARD,
    STEP_RECURRENT,
    STEP_RECURRENT_BACKWARD,
    STEP_CHANNELS, /* taken, moved, or put behind others */
    STEP_RESAMPLE, /* images of another size */
    STEP_RESAMPLE_BACKWARD,
    STEP_SCALE,
    STEP_SCALE_BACKWARD,
    STEP_MUL,
    STEP_LINEAR,
    STEP_SOFTMAX,
    STEP_SOFTMAX_BACKWARD,
    STEP_DROPOUT,
    STEP_ADD,
    STEP_ADD_RELU,
    STEP_MAX_POOL,
    STEP_MAX_POOL_BACKWARD,
    STEP_SOFTMAX_CE,
    STEP_MSE,
    STEP_L1,
    STEP_HUBER,
    STEP_BCE,
    STEP_KINDS
};

/* Operands by position. */
enum { BN_X, BN_GAMMA, BN_BETA, BN_MEAN, BN_VARIANCE, BN_RESIDUAL, BN_Y, BN_SCRATCH };
enum { /* BN_X .. BN_VARIANCE as above */
       BNB_Y = 5,
       BNB_DY,
       BNB_DX,
       BNB_DZ,
       BNB_DGAMMA,
       BNB_DBETA,
       BNB_SCRATCH,
};
enum { NORM_X, NORM_GAMMA, NORM_STATS, NORM_BETA, NORM_Y, NORM_SCRATCH };
enum { /* NORM_X .. NORM_STATS as above */
       NORMB_DY = 3,
       NORMB_DX,
       NORMB_DGAMMA,
       NORMB_DBETA,
       NORMB_SCRATCH,
};
enum {
    ELT_A,
    ELT_B,
    ELT_Y
}; /* relu: A, Y; relu backward: A = y (relu6: x), B = dy, Y = dx; so softmax */
/* channels: A = x, B = what fills, perhaps none, Y = y; resample: A = x, Y = y, backward dy, dx */
/* bias: A = x, B = bias, Y = y; backward: A = dy, B = scratch, Y = db; so scale, with C = x */
enum { ELT_C = ELT_Y + 1 };
enum { EMBEDDING_TOKENS, EMBEDDING_WEIGHT, EMBEDDING_Y };              /* backward: dw, dy */
enum { ATTENTION_X, ATTENTION_STATS, ATTENTION_SCRATCH, ATTENTION_Y }; /* forward */
enum { ATTENTIONB_DY = 3, ATTENTIONB_DX };                             /* X to SCRATCH as above */
enum { RNN_Y, RNN_KEPT, RNN_SCRATCH, RNN_WEIGHT, RNN_X, RNN_BIAS };    /* forward */
enum { RNNB_DY = 4, RNNB_DX, RNNB_DWEIGHT, RNNB_DBIAS };               /* Y to WEIGHT as above */
enum { POOL_PLACES, POOL_IN, POOL_OUT }; /* forward: x, y; backward: dy, dx */
enum { LOSS_LOGITS, LOSS_LABELS, LOSS_GRADIENT };

struct step_view {
    enum step_kind kind;
    const char *primitive; /* "convolution backward data"; NULL: one of our kernels */
    int op;                /* of the graph; -1: the plan's own */
    int is_copy;           /* a batch norm that is made again for backward */
    int relu;              /* batch norm: kernel_bn_apply's and kernel_bn_backward's */
    double epsilon;
    struct kernel_layout layout; /* norms, dropout, softmax */
    int64_t groups;              /* norm of samples: kernel_norm's */
    int is_per_value;            /* ... */
    struct pool_shape pool;      /* pooling */
    size_t count;                /* elementwise: floats */
    int64_t rows, columns;       /* loss */
    void *const *ptr;            /* operands by position; borrowed until the next plan_bind */
};

int plan_view_n_steps(const struct plan *plan);
struct step_view plan_view_step(const struct plan *plan, int step); /* of a bound plan */
/* Runs one primitive again, on what its operands hold. 0, or MS_E_FAILED: oneDNN failed. */
int plan_view_run(struct plan *plan, int step);
/* From now on the time of each step is added to seconds[step]; NULL: no clock is read. Borrowed. */
void plan_view_clock(struct plan *plan, double *seconds);

#endif
