/* kernel.h - our own loops: what oneDNN has not, or not fused
 *
 * All loops are elementwise or reduce in a fixed order that depends neither on the instruction set
 * nor on timing: 16 lanes, chunks of fixed size, double accumulators between chunks. Built with
 * -ffp-contract=off and function multi-versioning (KERNEL_CLONES): every version gives the same
 * bits. Pointers must not overlap unless said. Any thread; `threads` uses OpenMP with a static
 * split whose result does not depend on the number of threads, unless said. */
#ifndef KERNEL_H
#define KERNEL_H

#include "libworker/kernel/clones.h"

#include <stddef.h>
#include <stdint.h>

/* Denormal numbers cost a hundred cycles each: they are flushed to zero on the calling thread,
 * until kernel_float_leave with what this returns, and on the team of so many threads, for its
 * life. */
unsigned kernel_float_enter(int threads);
void kernel_float_leave(unsigned old);
/* Others have used this thread's team, or were part of it: OpenMP ends threads that a smaller team
 * leaves over, and those that it makes for the next one compute as the thread that asked for them.
 * The next kernel_float_enter looks after all of them again. */
void kernel_float_forget(void);

enum { KERNEL_PIECE = 16384 }; /* elements worth waking a thread for: some microseconds */

/* Calls fn for pieces [at, at + n) of [0, count), of KERNEL_PIECE but for the last one, on the team
 * of threads, denormals flushed. */
void kernel_in_pieces(size_t count, void (*fn)(const void *arg, size_t at, size_t n),
                      const void *arg, int threads);

/* Calls fn once on each thread of the calling thread's team of so many, the caller included; they
 * run at the same time. */
void kernel_team_each(int threads, void (*fn)(const void *arg), const void *arg);

/* ---- reductions for collectives -----------------------------------------------------------------
 */

/* The tree over n ranks that every transport evaluates: T(lo, hi) = T(lo, mid) + T(mid, hi) with
 * mid = lo + (hi - lo + 1) / 2 (left half larger). dst may be one of the srcs. n >= 1. */
void kernel_sum_tree(float *dst, const float *const *srcs, int n, size_t count);
/* The same result written to several places: every dsts[d], d < n_dst, gets it. dsts may be srcs.
 */
void kernel_sum_tree_to(float *const *dsts, int n_dst, const float *const *srcs, int n,
                        size_t count);
void kernel_max_tree(float *dst, const float *const *srcs, int n, size_t count);

/* y = share x, or sums + share x; sums NULL: there are none. y may be x or sums. */
void kernel_add_share(float *y, const float *sums, const float *x, float share, size_t count,
                      int threads);

/* ---- optimizers: one pass over flat buffers ---- */

/* Sum of squares in double, in an order that count alone decides: lanes, then pieces. partial:
 * kernel_sum_squares_room(count) doubles; overwritten. */
double kernel_sum_squares(const float *x, size_t count, double *partial, int threads);
size_t kernel_sum_squares_room(size_t count);

/* How gradients change weights. Each kernel reads what its formula names. */
struct kernel_update {
    float scale; /* what turns a sum of gradients into the gradient */
    float clip;  /* values of it lie in [-clip, clip]; 0: all may be */
    float lr;
    float decay;    /* of weights; 0: none, and none of its arithmetic */
    float momentum; /* kernel_momentum */
    int nesterov;
    float beta1, beta2, epsilon; /* kernel_adam, kernel_adamw, kernel_lamb */
    float alpha;                 /* kernel_rmsprop, which reads momentum and epsilon, too */
    float m_scale, root_scale;   /* kernel_lamb: what takes the bias of m, and of the root of v */
};

/* g = grads[i] * scale, clipped, + decay * w. Formulas: MindSpore's SGD, Momentum and Adam, whose
 * weight decay is a part of the gradient. A weight of zero with a gradient of zero stays zero. */

/* w -= lr g */
void kernel_sgd(float *weights, const float *grads, size_t count, const struct kernel_update *u);
/* v = momentum v + g; w -= lr v; nesterov: w -= lr (g + momentum v), as PyTorch and MindSpore */
void kernel_momentum(float *weights, float *velocity, const float *grads, size_t count,
                     const struct kernel_update *u);
/* m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr m / (sqrt(v) + epsilon).
 * The caller has put sqrt(1 - beta2^t) / (1 - beta1^t) into lr (Kingma and Ba, 2015, as MindSpore).
 */
void kernel_adam(float *weights, float *m, float *v, const float *grads, size_t count,
                 const struct kernel_update *u);
/* g = grads[i] * scale, clipped; m and v as kernel_adam; w -= decay w + lr m / (sqrt(v) + epsilon).
 * decay is what goes in this step, the learning rate times the weight decay: that is decoupled from
 * the gradient (Loshchilov and Hutter, 2019). Sums it up before it subtracts: of a large weight a
 * small part would be rounded away. */
void kernel_adamw(float *weights, float *m, float *v, const float *grads, size_t count,
                  const struct kernel_update *u);

/* s = alpha s + (1 - alpha) g^2; d = sqrt(s) + epsilon, or with means a = alpha a + (1 - alpha) g
 * sqrt(max(s - a^2, 0)) + epsilon (Graves, 2013); w -= lr g / d, or with velocities
 * v = momentum v + g / d; w -= lr v. PyTorch's RMSprop; that has no max, and where all gradients
 * are alike the root of what rounding left. means, velocities NULL: without. */
void kernel_rmsprop(float *weights, float *squares, float *means, float *velocities,
                    const float *grads, size_t count, const struct kernel_update *u);

/* LAMB (You et al., Large Batch Optimization for Deep Learning, ICLR 2020, algorithm 2), of one
 * parameter: g = grads[i] * scale, clipped; m and v as kernel_adam;
 *     r = m m_scale / (sqrt(v) root_scale + epsilon) + decay w; w -= lr |w| / |r| r
 * with the factor 1 where |w| or |r| is 0. Norms are sums of squares in the order of
 * kernel_sum_squares. partial: kernel_lamb_room(count) doubles; overwritten. */
void kernel_lamb(float *weights, float *m, float *v, const float *grads, size_t count,
                 const struct kernel_update *u, double *partial, int threads);
size_t kernel_lamb_room(size_t count);

/* average += share (weights - average); share 1: it is the weights. Once they are alike they stay
 * so. */
void kernel_average(float *average, const float *weights, float share, size_t count);

/* ---- batch normalisation on blocked layouts ---- */

/* A tensor (n, c, h, w) in one of the layouts nchw (block 1), nChw8c/nChw16c (block 8/16), nhwc
 * (n_blocks 1, block c): element (n, c, s) is at ((n * n_blocks + c / block) * spatial + s) * block
 * + c % block. c <= n_blocks * block; the rest is padding, zero, and stays zero. */
struct kernel_layout {
    int64_t n, n_blocks, spatial, block;
    int64_t channels;
};

/* One batch norm forward. Tensors have the layout's n * n_blocks * spatial * block floats, mean and
 * variance n_blocks * block, gamma and beta `channels`: of padding nothing is read, and only
 * kernel_bn_stats writes it (zeros). All memory is borrowed for the call. */
struct kernel_bn {
    struct kernel_layout layout;
    const float *x;
    float *mean, *variance; /* kernel_bn_stats writes them, kernel_bn_apply reads them */
    const float *gamma, *beta;
    double epsilon;
    const float *residual; /* added before ReLU; NULL: none */
    int relu;
    float *y;      /* may be x or residual */
    void *scratch; /* kernel_bn_stats: kernel_bn_scratch bytes, aligned to 64; overwritten */
};

/* Bytes of scratch for a call on up to so many threads; 0: none is read, the pointer may be NULL.
 * Partial results of channels that several threads share: at most a tenth of the tensor or 64 KiB,
 * whichever is more, and 64 bytes a channel (nchw: 512). Where chunks are short (planes of a few
 * positions), the threads meet as often as it takes to keep to that. */
size_t kernel_bn_scratch(const struct kernel_layout *layout, int threads);

/* Population mean and variance a channel over (n, spatial): chunks with two cached passes, combined
 * by Chan's formula in double (Chan, Golub, LeVeque 1979), in an order that the layout fixes. Uses
 * layout, x, mean, variance, scratch. */
void kernel_bn_stats(const struct kernel_bn *bn, int threads);

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta [+ residual] [then ReLU]. */
void kernel_bn_apply(const struct kernel_bn *bn, int threads);

enum kernel_mask {                   /* what of dy goes through the ReLU behind a batch norm */
                   KERNEL_MASK_NONE, /* all of it: there is no ReLU */
                   KERNEL_MASK_X,    /* where the pre-activation, made again from x, is > 0 */
                   KERNEL_MASK_Y,    /* where y is > 0: a residual was added, or y is kept anyway */
};

/* One batch norm backward; sizes as in struct kernel_bn, dgamma and dbeta have `channels`. */
struct kernel_bn_back {
    struct kernel_layout layout;
    const float *x, *dy;
    const float *y; /* read by KERNEL_MASK_Y only */
    const float *mean, *variance, *gamma, *beta;
    double epsilon;
    enum kernel_mask mask;
    float *dx; /* may be dy */
    float *dz; /* the masked dy, the residual's gradient; may be dy if dx is not; NULL: unwanted */
    float *dgamma, *dbeta;
    void *scratch; /* kernel_bn_scratch bytes, aligned to 64; overwritten */
};

/* Gradient through [ReLU of] batch norm, with M = n spatial and dz = dy masked:
 *   dbeta = sum dz, dgamma = sum dz xhat, dx = gamma rstd (dz - dbeta / M - xhat dgamma / M). */
void kernel_bn_backward(const struct kernel_bn_back *bn, int threads);

/* ---- layer and group normalisation ---- */

/* Each sample's values, in groups of neighbouring channels, by the mean and variance of their group
 * (Ba, Kiros and Hinton, 2016; Wu and He, 2018): y = gamma (x - mean) rstd + beta with rstd = 1 /
 * sqrt(variance + epsilon), of a population. Tensors are as batch norm's; padding stays zero. All
 * sums are in double, in an order that depends neither on threads nor on the layout. All memory is
 * borrowed for the call. */
struct kernel_norm {
    struct kernel_layout layout;
    int64_t groups;   /* of channels, which they divide */
    int is_per_value; /* gamma and beta have a value for each (channel, position), C order, and
                         there is one group; else they have one for each channel */
    double epsilon;
    const float *x;
    const float *gamma, *beta; /* NULL: ones, zeros; beta only beside gamma */
    float *stats;              /* (n, groups, 2): mean and rstd; forward writes, backward reads */
    float *y;                  /* forward: may be x */
    const float *dy;           /* backward */
    float *dx;                 /* ... may be dy */
    float *dgamma, *dbeta;     /* ... NULL: unwanted */
    void *scratch;             /* kernel_norm_scratch bytes, aligned to 64; overwritten */
};

/* Bytes for a call on up to so many threads; of norm only layout, groups and is_per_value are read.
 * Backward: two doubles a channel of each sample; of rows and where each value has its gamma, two
 * a value of some 16,384. 0: none. */
size_t kernel_norm_scratch(const struct kernel_norm *norm, int is_backward, int threads);
void kernel_norm_forward(const struct kernel_norm *norm, int threads);
/* With dz = dy gamma and M values in a group: dbeta = sum dy, dgamma = sum dy xhat over samples
 * (and positions), dx = rstd (dz - sum dz / M - xhat sum (dz xhat) / M). */
void kernel_norm_backward(const struct kernel_norm *norm, int threads);

/* ---- elementwise ---- */
void kernel_relu(float *y, const float *x, size_t count); /* y may be x */
void kernel_relu_backward(float *dx, const float *y, const float *dy,
                          size_t count); /* dx may be dy */
/* Zeros over the padding behind the channels of y, a tensor of that layout. */
void kernel_clear_padding(const struct kernel_layout *layout, float *y, int threads);
/* Between 0 and 6; the gradient, by x, is 0 at both. */
void kernel_relu6(float *y, const float *x, size_t count); /* y may be x */
void kernel_relu6_backward(float *dx, const float *x, const float *dy,
                           size_t count);                                /* dx may be dy */
void kernel_add(float *y, const float *a, const float *b, size_t count); /* y may be a or b */
void kernel_add_relu(float *y, const float *a, const float *b, size_t count);
void kernel_mul(float *y, const float *a, const float *b, size_t count); /* y may be a or b */
void kernel_linear(float *y, const float *x, float factor, float offset,
                   size_t count); /* y = factor x + offset; y may be x */

/* ---- dropout ---- */

enum kernel_drop { KERNEL_DROP_VALUES, KERNEL_DROP_CHANNELS, KERNEL_DROP_ROWS };

struct kernel_dropout {
    struct kernel_layout layout; /* spatial 1: rows of channels */
    uint64_t draw;               /* another one for each op and step: below 2^32 */
    uint64_t first_row;          /* which row of all rows the first one is */
    double rate;                 /* of what is dropped, 0 <= rate < 1 */
    enum kernel_drop of;
};

/* y = 0 where ms_rng_unit(ms_rng_stream(draw, row, 0), place) < rate, else x / (1 - rate); place is
 * that in (c, h, w), the channel, or 0, whatever the layout. Its own gradient: dx of dy. y may be
 * x. */
void kernel_dropout(float *y, const float *x, const struct kernel_dropout *d, int threads);

/* ---- a value of each channel, added or multiplied ---- */
void kernel_bias(float *y, const float *x, const float *bias, const struct kernel_layout *layout,
                 int threads); /* y may be x; bias: of `channels` */
void kernel_scale(float *y, const float *x, const float *factor, const struct kernel_layout *layout,
                  int threads);                                 /* likewise */
size_t kernel_bias_scratch(const struct kernel_layout *layout); /* two doubles a channel of each */
/* db = sum of dy, dfactor = sum of x dy, over samples and positions, in double, in an order that
 * neither threads nor the layout change. scratch: kernel_bias_scratch bytes, aligned to 64;
 * overwritten. */
void kernel_bias_backward(float *db, const float *dy, const struct kernel_layout *layout,
                          void *scratch, int threads);
void kernel_scale_backward(float *dfactor, const float *x, const float *dy,
                           const struct kernel_layout *layout, void *scratch, int threads);

/* ---- channels that are taken or moved ---- */

/* Channel c of y is channel c + first of x, or with groups (more than 1, which divide the channels
 * of both) channel c % groups * (channels / groups) + c / groups of it; where x has none it is
 * fill[c], or 0 without fill. n and spatial of both layouts are the same; padding becomes zero. */
struct kernel_channels {
    struct kernel_layout x, y;
    int64_t first, groups;
    const float *fill; /* of y's channels; NULL: zeros */
};
void kernel_channels(float *y, const float *x, const struct kernel_channels *channels, int threads);

/* ---- images of another size ---- */

enum kernel_resample_by {
    KERNEL_PAD,            /* zeros around x, which begins at top, left */
    KERNEL_NEAREST,        /* each pixel as often as y is larger */
    KERNEL_LINEAR,         /* between the next two, corners of the images alike */
    KERNEL_LINEAR_CORNERS, /* ..., centres of the pixels at the corners alike */
};
/* Images of h x w pixels, and y_h x y_w ones, each in its layout. Backward each plane is one
 * thread's, its sums in the order of y: no bit depends on layouts or threads. */
struct kernel_resample {
    enum kernel_resample_by by;
    struct kernel_layout of_x, of_y;
    int64_t h, w, y_h, y_w;
    int64_t top, left;
};
void kernel_resample(float *y, const float *x, const struct kernel_resample *of, int threads);
void kernel_resample_backward(float *dx, const float *dy, const struct kernel_resample *of,
                              int threads);

/* ---- softmax of rows ---- */

/* Of each row of a layout of rows (n_blocks 1, spatial 1): y = e^(x - max) / sum, over `channels`
 * of `block` values; the rest of a row becomes zero. All in double. y may be x. */
void kernel_softmax(const struct kernel_layout *layout, const float *x, float *y, int threads);
/* dx = y (dy - sum y dy); dx may be dy. */
void kernel_softmax_backward(const struct kernel_layout *layout, const float *y, const float *dy,
                             float *dx, int threads);

/* Scores of attention, a row a query: row i counts seen + i more values, and what it does not see
 * of `width` becomes zero. Values, sums and orders are those of kernel_softmax. */
struct kernel_scores {
    int64_t rows, width, stride; /* stride: floats from a row to the next one */
    int64_t seen, more;          /* more: 0, or 1 */
    float *stats;                /* (rows, 2): maximum and sum, by which the same comes again */
};
/* x becomes its softmax; stats are written. */
void kernel_scores_softmax(const struct kernel_scores *scores, float *x);
/* ... stats are read. */
void kernel_scores_again(const struct kernel_scores *scores, float *x);
/* dp, the gradient of p, becomes that of the scores. */
void kernel_scores_backward(const struct kernel_scores *scores, const float *p, float *dp);

/* ---- attention ---- */

/* c = alpha op(a) op(b) + beta c, rows one behind the other: op(a) is (m, k), op(b) (k, n). lda:
 * from a row of a, as it lies, to the next one. */
struct kernel_product {
    int is_a_turned, is_b_turned; /* op is the transpose */
    int64_t m, n, k;
    float alpha, beta;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc;
};
/* 0, or negative: it could not be had. On the calling thread alone, if that is in a team. */
typedef int kernel_product_fn(const struct kernel_product *product);

/* Scaled dot-product attention (Vaswani et al., 2017). Of each sample and head, with q, k and v of
 * (tokens, width): p = softmax(q k' / sqrt(width)) of each query, causal: over keys up to its own;
 * y = p v, with dropout of p between the two. In blocks of queries: p is not kept, but made again
 * in backward from what its softmax left in stats. Each sample's head is computed by one thread. */
struct kernel_attention {
    int64_t n, tokens, heads, width; /* width: channels of a head */
    int is_causal;
    double rate; /* dropout, as kernel_dropout's: a row is a query of a head of a sample */
    uint64_t draw, first_row; /* first_row: the place of the first sample among all */
    kernel_product_fn *product;
    const float *qkv; /* (n, tokens, 3, heads, width) */
    float *stats;     /* (n, heads, tokens, 2): forward writes, backward reads */
    float *y;         /* forward: (n, tokens, heads, width) */
    const float *dy;  /* backward: as y */
    float *dqkv;      /* ... as qkv */
    void *scratch;    /* kernel_attention_scratch bytes, aligned to 64; overwritten */
};
/* Bytes for a call on up to so many threads; reads sizes and rate. */
size_t kernel_attention_scratch(const struct kernel_attention *attention, int is_backward,
                                int threads);
/* 0, or what the product returned. */
int kernel_attention_forward(const struct kernel_attention *attention, int threads);
int kernel_attention_backward(const struct kernel_attention *attention, int threads);

/* ---- recurrent cells ---- */

/* Recurrent layers over the tokens of each sample, with PyTorch's gates (Hochreiter and
 * Schmidhuber, 1997, with Gers' forget gate; Cho et al., 2014). x is what the gates get of the
 * input, a = x + weight h + bias of the token before, whose h and c are 0 before the first one:
 *   LSTM  i, f, g, o = sigmoid(a_i), sigmoid(a_f), tanh(a_g), sigmoid(a_o); c = f c + i g;
 *         h = o tanh(c)
 *   GRU   r, z = sigmoid(a_r), sigmoid(a_z); n = tanh(x_n + r (weight_n h + bias_n));
 *         h = (1 - z) n + z h
 *   TANH, RELU (Elman, 1990)  h = tanh(a), or the larger one of a and 0
 * Samples go in blocks, each on one thread through all tokens: threads change no bit. All memory is
 * borrowed for the call. */
enum kernel_cell { CELL_LSTM, CELL_GRU, CELL_TANH, CELL_RELU };
struct kernel_recurrent {
    int64_t n, tokens, width; /* width: of h */
    enum kernel_cell cell;
    int is_reversed; /* from the last token to the first one */
    kernel_product_fn *product;
    const float *x;      /* (n, tokens, gates, width): 4 gates, of a GRU 3, else 1 */
    const float *weight; /* (gates, width, width) */
    const float *bias;   /* (gates, width); NULL: there is none */
    float *kept;         /* (n, tokens, kernel_recurrent_kept): forward writes, backward reads; NULL
                            in forward: not wanted; and where there are none */
    float *y;            /* (n, tokens, width): h; forward writes, backward reads */
    const float *dy;     /* backward: as y */
    float *dx;           /* ... as x */
    float *dweight;      /* ... as weight */
    float *dbias;        /* ... NULL: unwanted */
    void *scratch;       /* kernel_recurrent_scratch bytes, aligned to 64; overwritten */
};
/* Floats that are kept of a token of a sample, 0: y is enough; reads cell and width. */
int64_t kernel_recurrent_kept(const struct kernel_recurrent *recurrent);
/* Bytes for a call on up to so many threads; reads sizes and cell. */
size_t kernel_recurrent_scratch(const struct kernel_recurrent *recurrent, int is_backward,
                                int threads);
/* 0, or what the product returned. */
int kernel_recurrent_forward(const struct kernel_recurrent *recurrent, int threads);
int kernel_recurrent_backward(const struct kernel_recurrent *recurrent, int threads);

/* ---- embedding ---- */

struct kernel_embedding {
    int64_t rows, words, channels;
    const float *tokens; /* numbers from 0 to words - 1, one a row */
};
/* The first row whose token is no such number, or -1. */
int64_t kernel_embedding_check(const struct kernel_embedding *embedding);
/* Of tokens that were checked: y (rows, channels), of rows of weight (words, channels). */
void kernel_embedding(const struct kernel_embedding *embedding, const float *weight, float *y,
                      int threads);
/* dw = sum of the rows of dy of each word, one after the other in fp32. */
void kernel_embedding_backward(const struct kernel_embedding *embedding, const float *dy, float *dw,
                               int threads);

/* ---- losses: rows of n x k, C order ---- */
/* What rows are compared with; all but labels may be zero. Each that counts is in [0, k), which is
 * the caller's duty. */
struct kernel_labels {
    const int32_t *labels; /* (n) */
    const float *soft;     /* (n, k), in their place: what each class counts; NULL: labels */
    const int32_t *others; /* (n): a second one of each row; NULL: there are none */
    const float *shares;   /* (n): what the first one counts, 0 to 1; the second the rest */
    const double *weights; /* (k), of the classes, 0 and more; NULL: 1 each */
    int has_ignored;
    int32_t ignored;  /* a label that does not count, whatever number it is */
    double smoothing; /* a label is 1 - that, and each class, its own too, that / k */
};
/* Cross entropy and (dlogits not NULL) its gradient, (p - onehot) / n where all labels count alike.
 * log-sum-exp with the row's maximum subtracted; all in double, sums in the order of classes and of
 * rows. Of class j with target t and weight w a row has -w t log p. Returned is the sum over rows,
 * / n, and in *ret_weight the sum of the weights of their labels, / n (1 where all count alike, and
 * of soft ones): one by the other is the mean, as torch.nn.CrossEntropyLoss has it. Threads share
 * the rows: no bit depends on them. */
double kernel_softmax_ce(const float *logits, const struct kernel_labels *labels, int64_t n,
                         int64_t k, float *dlogits, int threads, double *ret_weight);
/* Means over n k elements, and (dy not NULL) their gradients with respect to y, in double, summed
 * in the order of elements; with d = y - t: mse    d^2, gradient 2 d / (n k) l1     |d|, its sign /
 * (n k), 0 where d is 0 huber  d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2); d brought
 * into [-delta, delta], / (n k): torch.nn.HuberLoss bce    log(1 + e^y) - t y, y a logit and t the
 * probability of 1: (sigmoid(y) - t) / (n k): torch.nn.BCEWithLogitsLoss */
double kernel_mse(const float *y, const float *target, int64_t n, int64_t k, float *dy);
double kernel_l1(const float *y, const float *target, int64_t n, int64_t k, float *dy);
double kernel_huber(const float *y, const float *target, int64_t n, int64_t k, double delta,
                    float *dy);
double kernel_bce(const float *y, const float *target, int64_t n, int64_t k, float *dy);
/* Place of the first of a row's largest values; of those behind a NaN at its beginning none is. */
int64_t kernel_largest(const float *row, int64_t k);
/* Rows where that is the label, of soft ones the largest, of those whose label is not ignored;
 * *ret_counted: these. */
int64_t kernel_count_correct(const float *logits, const struct kernel_labels *labels, int64_t n,
                             int64_t k, int64_t *ret_counted);
/* Rows of logits that are all on their target's side: positive where that is above a half. */
int64_t kernel_count_sides(const float *logits, const float *target, int64_t n, int64_t k);

#endif
