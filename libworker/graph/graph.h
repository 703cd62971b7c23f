/* graph.h - a network as tensors and ops, single assignment; knows no kernel and no socket
 *
 *     network/ builds the forward ops        image -> conv -> bn -> relu -> ... -> loss
 *     graph_differentiate appends backward   dloss -> ... -> dw        (autodiff.c)
 *     plan/ lowers the whole list            ops[] in order is already a valid schedule
 *
 * A tensor is written by exactly one op (or by nobody: data, labels, parameters, states). Ops are
 * stored in execution order; an op reads only tensors with smaller producers. Shapes are logical:
 * images (n, c, h, w), sequences (n, tokens, c), rows (n, c), convolution weights (out, in, kh,
 * kw), dense weights (out, in), vectors (c). How bytes lie in memory is plan's business. A graph is
 * built by one thread and then only read. */
#ifndef GRAPH_H
#define GRAPH_H

#include "proto/dtype.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum { GRAPH_DIMS_MAX = 5, GRAPH_NAME_MAX = 64, GRAPH_OP_TENSORS_MAX = 8, GRAPH_SCALAR_DIMS = 0 };

/* Elements of one tensor: 4 TiB of floats, and every product of sizes still fits an int64_t. */
#define GRAPH_ELEMENTS_MAX ((int64_t)1 << 40)

struct shape {
    int n_dims; /* 0: a scalar */
    int64_t dim[GRAPH_DIMS_MAX];
};

int64_t shape_count(const struct shape *shape); /* elements */
/* (n, tokens, channels)? */
static inline int shape_is_sequence(const struct shape *shape)
{
    return shape->n_dims == 3;
}
int shape_equal(const struct shape *a, const struct shape *b);
/* "(32, 3, 224, 224)" into buf; returns buf. */
const char *shape_format(const struct shape *shape, char *buf, size_t size);

enum tensor_role {
    TENSOR_DATA,  /* the batch: images or features */
    TENSOR_LABEL, /* the batch: class numbers (i32) or targets (f32) */
    TENSOR_PARAM, /* trainable */
    TENSOR_STATE, /* moving mean or variance: enters only at the commit and in evaluation */
    TENSOR_VALUE, /* between ops */
    TENSOR_STAT,  /* batch mean or variance: leaves the step and is averaged over ranks */
    TENSOR_GRAD,  /* gradient of a parameter: leaves the step and is summed over ranks */
};

enum init_kind {
    INIT_NONE,     /* not a parameter */
    INIT_CONSTANT, /* a */
    INIT_NORMAL,   /* N(0, a) , a is the standard deviation */
    INIT_UNIFORM,  /* U(-a, a) */
};

struct init {
    enum init_kind kind;
    double a;
};

struct tensor {
    char name[GRAPH_NAME_MAX]; /* parameters and states: the name that users and files see */
    enum tensor_role role;
    enum ms_dtype dtype; /* MS_I32: class numbers; MS_F32: reals, in the precision of the plan */
    struct shape shape;
    int producer;       /* op index, -1: nobody */
    int reader;         /* index of the first op that reads it, -1: nobody */
    int of;             /* GRAD: the parameter; STAT: the moving state it enters; else -1 */
    int is_variance;    /* STAT: a batch variance (enters unbiased), else a mean */
    int64_t stat_count; /* STAT: n elements a channel; unbiased: biased n / (n - 1), n > 1 */
    double momentum;    /* STATE: moving = momentum * moving + (1 - momentum) * batch */
    struct init init;
};

enum op_kind { /* op.h: a row each */
               /* forward               inputs -> outputs */
               OP_CONV2D, /* x (n,c,h,w), w (o,c/g,kh,kw), perhaps b (o) -> y (n,o,h',w'): g
                             groups, each of c/g channels makes o/g; of one pixel w may be (o,c/g)
                             */
               OP_CONV_TRANSPOSE2D, /* x (n,c,h,w), w (c,o/g,kh,kw) -> y (n,o,h',w'): what has the
                                 gradient of a convolution of y by w whose result is x */
               OP_BIAS, /* x, b (c) -> y: a value of each channel is added; of sequences b (tokens,
                           c) or (1, tokens, c): a value of each place */
               OP_EMBEDDING, /* tokens (n, t) or (n, t, 1, 1): numbers of words, w (words, c)
                                -> y (n, t, c): their rows of w */
               OP_TOKENS,    /* x (n, c, h, w) -> y (n, h w, c): a token a pixel, row by row */
               OP_ATTENTION, /* x (n, t, 3 c): queries, keys, values -> y (n, t, c): of each of
                                `groups` heads softmax(q k' / sqrt(c / heads)) v */
               OP_LSTM, /* x (n, t, 4 h): what a dense layer of the input gives to the gates, w (4
                           h, h), perhaps b (4 h) -> y (n, t, h): h of each token */
               OP_GRU,  /* x (n, t, 3 h), w (3 h, h), perhaps b (3 h) -> y (n, t, h) */
               OP_RNN_TANH,   /* x (n, t, h), w (h, h), perhaps b (h) -> y (n, t, h) */
               OP_RNN_RELU,   /* as OP_RNN_TANH */
               OP_BATCH_NORM, /* x, gamma (c), beta (c), moving mean (c), moving variance (c)
                                 -> y, batch mean (c), batch variance (c, population) */
               OP_LAYER_NORM, /* x, perhaps gamma, perhaps beta -> y: of each sample's values, with
                                 gamma and beta of the shape of a sample, or over the channels of
                                 each pixel or token, with gamma and beta (c) */
               OP_GROUP_NORM, /* x, perhaps gamma (c), perhaps beta (c) -> y: of each group of a
                                 sample's channels */
               OP_RELU,       /* x -> y */
               OP_RELU6,      /* x -> y: min(max(x, 0), 6) */
               OP_LEAKY_RELU, /* x -> y: x > 0 ? x : alpha x */
               OP_ELU,        /* x -> y: x > 0 ? x : alpha (e^x - 1) */
               OP_GELU,       /* x -> y: x Phi(x), Phi the normal distribution function */
               OP_GELU_TANH,  /* x -> y: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
               OP_SILU,       /* x -> y: x sigmoid(x) */
               OP_HARD_SWISH, /* x -> y: x relu6(x + 3) / 6 */
               OP_SIGMOID,    /* x -> y: 1 / (1 + e^-x) */
               OP_TANH,       /* x -> y */
               OP_SOFTMAX,    /* x -> y: e^x / sum over the values of a row, the channels of a pixel
                                 or of a token */
               OP_DROPOUT,  /* x -> y: values, or whole channels or samples, are 0 with probability
                               `rate`, the others divided by 1 - rate; in evaluation x */
               OP_ADD,      /* a, b -> y */
               OP_MUL,      /* a, b -> y: of one shape */
               OP_GATE,     /* x (n,c,h,w), g (n,c) or (n,c,1,1) -> y: each channel of each sample
                               times its gate */
               OP_SCALE,    /* x, gamma -> y = x gamma: gamma is repeated over samples, and where it
                               has a dimension of 1: of each channel (c,1,1), value, or alone */
               OP_LINEAR,   /* x -> y = alpha x + beta, which are numbers */
               OP_MAX_POOL, /* x -> y; padding counts as -inf */
               OP_AVG_POOL, /* x -> y; window = whole image for the mean over h and w; padding not
                               counted */
               OP_PAD,      /* x (n,c,h,w) -> y: zeros around it, as many as window's pads say */
               OP_UPSAMPLE, /* x (n,c,h,w) -> y (n,c,h fh,w fw), as `mode` says: factors fh and fw
                               are window's strides */
               OP_CONCAT,   /* two to eight values -> y: their channels, one behind the other; of
                               sequences those of each token */
               OP_SLICE,    /* x -> y: `size` channels from `first` on; size 0: all behind it */
               OP_SHUFFLE,  /* x -> y: channel i of group j becomes channel j of group i, which are
                               as many as a group had channels: (groups, c / groups) turned */
               OP_CLASS_TOKEN, /* x (n,t,c), w (c) or (1,c) or (1,1,c) -> y (n,t+1,c): w before the
                                  tokens of each sample */
               OP_FLATTEN,     /* (n, c, h, w) -> (n, c h w), (n, t, c) -> (n, t c) */
               OP_DENSE,       /* x (n, i), w (o, i), perhaps b (o) -> y (n, o); of each token */
               OP_SOFTMAX_CE,  /* logits (n, k), labels (n) i32, or (n, k) f32: what each class
                                  counts -> loss (), mean over the batch, by
                                  the weights of the labels; of sequences labels (n, t), mean
                                  over all tokens */
               OP_MSE,         /* y (n, k), target (n, k) -> loss (), mean over all elements */
               OP_L1,          /* likewise */
               OP_HUBER,       /* likewise; alpha: where the square ends */
               OP_BCE,         /* likewise, of logits and probabilities */
               /* backward: gradients with respect to what the forward op read */
               OP_CONV2D_BWD_DATA,              /* dy, w -> dx */
               OP_CONV_TRANSPOSE2D_BWD_DATA,    /* dy, w -> dx */
               OP_CONV_TRANSPOSE2D_BWD_WEIGHTS, /* x, dy -> dw */
               OP_BIAS_BWD,                     /* dy -> db */
               OP_EMBEDDING_BWD,                /* tokens, dy -> dw */
               OP_TOKENS_BWD,                   /* dy -> dx */
               OP_ATTENTION_BWD,                /* x, dy -> dx */
               OP_RECURRENT_BWD,                /* x, y, dy, w, perhaps b -> dx, dw, db */
               OP_CONV2D_BWD_WEIGHTS,           /* x, dy -> dw, db */
               OP_BATCH_NORM_BWD, /* x, dy, gamma, batch mean, batch variance, beta -> dx, dgamma,
                                     dbeta */
               OP_NORM_BWD, /* x, dy, perhaps gamma -> dx, dgamma, dbeta, of layer and group norm */
               OP_RELU_BWD, /* y, dy -> dx */
               OP_ACTIVATION_BWD,       /* x, dy -> dx, of relu6 to tanh */
               OP_SOFTMAX_BWD,          /* y, dy -> dx */
               OP_DROPOUT_BWD,          /* dy -> dx: the same values are 0 */
               OP_MUL_BWD,              /* dy, b -> da; dy, a -> db */
               OP_GATE_BWD_DATA,        /* dy, g -> dx */
               OP_GATE_BWD,             /* x, dy -> dg */
               OP_SCALE_BWD_DATA,       /* dy, gamma -> dx */
               OP_SCALE_BWD_WEIGHTS,    /* x, dy -> dgamma */
               OP_LINEAR_BWD,           /* dy -> dx */
               OP_MAX_POOL_BWD,         /* x, y, dy -> dx; the first maximum of a window gets it */
               OP_AVG_POOL_BWD,         /* dy -> dx */
               OP_PAD_BWD,              /* dy -> dx: what is not around it */
               OP_UPSAMPLE_BWD,         /* dy -> dx */
               OP_CONCAT_BWD,           /* dy -> dx of each, its channels */
               OP_SLICE_BWD,            /* dy -> dx: 0 where nothing was taken */
               OP_SHUFFLE_BWD,          /* dy -> dx */
               OP_CLASS_TOKEN_BWD_DATA, /* dy -> dx: without the first token */
               OP_CLASS_TOKEN_BWD_WEIGHTS, /* dy -> dw: sum of the first tokens */
               OP_FLATTEN_BWD,             /* dy (n, c h w) -> dx (n, c, h, w) */
               OP_DENSE_BWD_DATA,          /* dy, w -> dx */
               OP_DENSE_BWD_WEIGHTS,       /* x, dy -> dw, db */
               OP_SOFTMAX_CE_BWD,          /* logits, labels -> dlogits */
               OP_TARGET_BWD,              /* y, target -> dy, of mse to bce */
               OP_SUM, /* a, b -> a + b: gradients of a tensor that several ops read */
               OP_KINDS
};

struct op_window { /* convolution and pooling */
    int64_t kernel_h, kernel_w;
    int64_t stride_h, stride_w;
    int64_t pad_top, pad_left, pad_bottom, pad_right;
    int64_t gap_h, gap_w;   /* of a convolution: pixels between two taps, its dilation less 1 */
    int64_t more_h, more_w; /* transposed: rows and columns of the result that the last window of
                               a step would not reach: its output padding, less than the stride */
};

/* Pixels of a larger image: the one that lies there, or between the next ones, where the corners of
 * both images lie alike, or the centres of their pixels at the corners. */
enum upsample_mode { UPSAMPLE_NEAREST, UPSAMPLE_LINEAR, UPSAMPLE_LINEAR_CORNERS };

enum drop_of { DROP_VALUES, DROP_CHANNELS, DROP_SAMPLES };

struct op {
    enum op_kind kind;
    int n_in, n_out;
    int in[GRAPH_OP_TENSORS_MAX];
    int out[GRAPH_OP_TENSORS_MAX]; /* -1: an output that nobody wants (dx of the first layer) */
    struct op_window window;
    int64_t groups;      /* of a convolution's, or a group norm's, channels; heads; 0: one */
    int64_t first, size; /* slice: channels */
    enum upsample_mode mode;
    int of_pixels;    /* layer norm: over the channels of each pixel, not all values of a sample */
    int is_causal;    /* attention: a token sees itself and those before it alone */
    int is_reversed;  /* lstm, gru: from the last token to the first one */
    double epsilon;   /* norms */
    double alpha;     /* leaky_relu, elu: of negative values; huber: its delta; linear: factor */
    double beta;      /* linear: what is added */
    double rate;      /* dropout, and attention's of its weights: 0 <= rate < 1 */
    enum drop_of of;  /* dropout: what is dropped as one */
    double smoothing; /* softmax_ce: of labels, 0 <= smoothing < 1 */
    /* softmax_ce: of its classes, 0 and more; borrowed for the graph's life; NULL: 1 each */
    const double *class_weights;
    int64_t n_class_weights;
    int has_ignored; /* softmax_ce: a label that does not count */
    int32_t ignored;
    int forward; /* backward ops: index of the forward op, else -1 */
};

struct graph; /* opaque: read it through the functions below */

/* Returns owned; NULL without memory. name for messages. */
struct graph *graph_create(const char *name);
void graph_destroy(struct graph *graph); /* NULL allowed */

int graph_n_tensors(const struct graph *graph);
int graph_n_ops(const struct graph *graph);
int graph_n_forward_ops(const struct graph *graph); /* ops before the first backward op */
const struct tensor *graph_tensor(const struct graph *graph,
                                  int index); /* borrowed, graph's life */
const struct op *graph_op(const struct graph *graph, int index);
const char *graph_name(const struct graph *graph);

/* ---- builder: each returns a tensor index (>= 0) or a negative ms_code with the op, its inputs'
 * names and shapes in the text. A negative input index is passed through, so that a chain needs one
 * check. */
int graph_data(struct graph *graph, const char *name, const struct shape *shape,
               struct ms_err *err);
int graph_label(struct graph *graph, const char *name, const struct shape *shape,
                enum ms_dtype dtype, struct ms_err *err);
int graph_param(struct graph *graph, const char *name, const struct shape *shape, struct init init,
                struct ms_err *err);
int graph_state(struct graph *graph, const char *name, const struct shape *shape, struct init init,
                double momentum, struct ms_err *err);

int graph_conv2d(struct graph *graph, int x, int weight, const struct op_window *window,
                 struct ms_err *err); /* window->kernel_* must be the weight's */
int graph_batch_norm(struct graph *graph, int x, int gamma, int beta, int moving_mean,
                     int moving_variance, double epsilon, struct ms_err *err);
int graph_relu(struct graph *graph, int x, struct ms_err *err);
/* kind: OP_RELU6 to OP_TANH; alpha: of those that have one. */
int graph_activation(struct graph *graph, enum op_kind kind, int x, double alpha,
                     struct ms_err *err);
int graph_add(struct graph *graph, int a, int b, struct ms_err *err);
int graph_max_pool(struct graph *graph, int x, const struct op_window *window, struct ms_err *err);
int graph_avg_pool(struct graph *graph, int x, const struct op_window *window, struct ms_err *err);
int graph_flatten(struct graph *graph, int x, struct ms_err *err);
int graph_dense(struct graph *graph, int x, int weight, int bias, struct ms_err *err);
int graph_softmax_ce(struct graph *graph, int logits, int labels, struct ms_err *err);
int graph_mse(struct graph *graph, int y, int target, struct ms_err *err);
/* kind: OP_MSE to OP_BCE; delta: of huber, above 0. */
int graph_target_loss(struct graph *graph, enum op_kind kind, int y, int target, double delta,
                      struct ms_err *err);

/* The window with 'same' padding, with the odd pixel right and bottom:
 * total = max((ceil(h / s) - 1) s + k - h, 0). x gives h and w. */
struct op_window graph_window_padded(const struct graph *graph, int x,
                                     const struct op_window *unpadded);
/* ... of a square. */
struct op_window graph_window_same(const struct graph *graph, int x, int64_t kernel,
                                   int64_t stride);
struct op_window graph_window_valid(int64_t kernel, int64_t stride);

/* Marks the tensors that a caller wants after a forward run. */
int graph_set_loss(struct graph *graph, int loss, struct ms_err *err);
int graph_set_output(struct graph *graph, int logits, struct ms_err *err);
int graph_loss(const struct graph *graph);   /* -1: none yet */
int graph_output(const struct graph *graph); /* what evaluation looks at: logits or prediction */
int graph_data_index(const struct graph *graph);
int graph_label_index(const struct graph *graph);

/* Appends the backward ops of the loss. Gradients appear in the order in which backward produces
 * them: graph_gradient(i), i = 0 .. n - 1. No dx is computed where no parameter needs it. */
int graph_differentiate(struct graph *graph, struct ms_err *err);
int graph_n_gradients(const struct graph *graph);
int graph_gradient(const struct graph *graph,
                   int i); /* TENSOR_GRAD index; its .of is the parameter */

/* Parameters and states in definition order, for files, digests and initialisers. */
int graph_n_params(const struct graph *graph);
int graph_param_at(const struct graph *graph, int i);
int graph_n_states(const struct graph *graph);
int graph_state_at(const struct graph *graph, int i);
/* Both, parameters first: all that a file of weights holds. */
int graph_n_stored(const struct graph *graph);
int graph_stored_at(const struct graph *graph, int i);
/* Index of the parameter or state with this name, -1: none. */
int graph_find(const struct graph *graph, const char *name);

/* Initial value of a parameter or state in logical C order: dst has shape_count floats. A function
 * of (seed, name) alone through ms_rng_*: no order, no rank. */
void graph_init_values(const struct tensor *tensor, uint64_t seed, float *dst);

/* Prints the graph for people: one line an op with names and shapes, into a malloc'ed string. */
char *graph_describe(const struct graph *graph);

#endif
