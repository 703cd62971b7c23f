/* layer.h - a layer as a document says it, and the kinds that there are; private to this room
 *
 * A new kind of layer is: its keys in layer_kinds.c; the function that makes its ops in the file of
 * its like; a row of docs/networks.md; cases of tests/unit/test_layers. */
#ifndef NETWORK_LAYER_H
#define NETWORK_LAYER_H

#include "libworker/graph/op.h"
#include "libworker/network/network.h"
#include "libworker/schema/field.h"
#include "proto/limits.h"

enum padding_kind { PADDING_NUMBERS, PADDING_SAME };

struct padding {
    enum padding_kind kind;
    int64_t pixels[2]; /* at each side: [top and bottom, left and right] */
};

/* How a parameter begins; fan_in: values that one output sums over. */
enum rule_kind {
    RULE_ZEROS,
    RULE_ONES,
    RULE_FAN_IN,         /* U(-b, b), b = 1 / sqrt(fan_in): PyTorch's and MindSpore's layers */
    RULE_HE_NORMAL,      /* N(0, sqrt(2 / fan_in)) (He et al., 2015) */
    RULE_HE_UNIFORM,     /* U(-b, b), b = sqrt(6 / fan_in) */
    RULE_XAVIER_NORMAL,  /* N(0, sqrt(2 / (fan_in + fan_out))) (Glorot and Bengio, 2010) */
    RULE_XAVIER_UNIFORM, /* U(-b, b), b = sqrt(6 / (fan_in + fan_out)) */
    RULE_CONSTANT,       /* a */
    RULE_NORMAL,         /* N(0, a) */
    RULE_UNIFORM,        /* U(-a, a) */
    RULE_NONE,           /* there is no such parameter */
};

struct rule {
    enum rule_kind kind;
    double a;
};

enum norm_over { OVER_SAMPLE, OVER_CHANNELS };

enum recurrent_output { OUTPUT_SEQUENCE, OUTPUT_LAST };

enum nonlinearity { NONLINEARITY_TANH, NONLINEARITY_RELU };

enum mode { MODE_NEAREST, MODE_LINEAR };

enum approximation { APPROXIMATE_NONE, APPROXIMATE_TANH };

struct layer {                    /* each kind has some of these */
    char name[MS_NAME_MAX + 1];   /* "" none: its kind and a number */
    const struct tree_node *from; /* a name, or a list of names; NULL: the layer before */
    int in[GRAPH_OP_TENSORS_MAX]; /* the tensors of a list of names, when it is built */
    int n_in;
    const struct tree_node *parameters; /* names of parts: the word torch, or a map; NULL: ours */
    int64_t out;                        /* 0: as many as there are classes */
    int64_t kernel[2], stride[2], dilation[2], output_padding[2];
    int64_t groups;
    int64_t sides[4];           /* pad: top, bottom, left, right */
    int mode;                   /* upsample: enum mode */
    int is_by_corners;          /* ... */
    int64_t words, size, heads; /* embedding; attention; size: slice, too */
    int64_t begin;              /* slice: first channel; token: which */
    int64_t leading;            /* positional_embedding, class_token: dimensions of 1 in front */
    int is_causal;              /* attention */
    int64_t hidden, depth;      /* lstm, gru, rnn */
    int is_bidirectional;       /* ... */
    int output;                 /* ... enum recurrent_output */
    int nonlinearity;           /* rnn: enum nonlinearity */
    struct padding padding;
    int ceil; /* of a pool: a window more for pixels that are left */
    struct rule weight, bias, gamma, beta, out_weight;
    double momentum, epsilon, rate;
    double alpha;        /* leaky_relu: slope; elu; linear: factor */
    double offset;       /* linear */
    int of;              /* dropout: enum drop_of */
    struct shape factor; /* scale; n_dims below 0: as its input has channels */
    int approximate;     /* gelu: enum approximation */
    int over;            /* layer_norm, dense: enum norm_over */
    int64_t times;
    char first[MS_NAME_MAX + 1];
    const struct tree_node *layers, *body, *shortcut; /* lists; NULL none */
    const struct tree_node *branches;                 /* a list of lists, which may be empty */
};

struct building;

struct layer_kind {
    const char *name; /* "conv2d" */
    struct field_table table;
    /* Its ops, with x as what it reads; name "" for what has no parameters, or nests. Returns what
     * it makes, or a negative code with `at` in b->err. */
    int (*build)(struct building *b, const struct layer *layer, const struct tree_node *at, int x);
    int has_params; /* `name` is the first part of their names */
    /* Of keys that do not go together: MS_E_INVALID with the place. NULL: all do. */
    int (*check)(const struct layer *layer, const struct tree_node *at, const char *place,
                 struct ms_err *err);
};

extern const struct layer_kind layer_kinds[];
extern const size_t n_layer_kinds;

/* An entry of a list: its kind and keys. place: "layers[2]". */
int layer_read(const struct tree_node *entry, const char *place, const struct layer_kind **ret_kind,
               struct layer *ret, struct ms_err *err);

/* layer_own.c: types of keys */
extern const struct field_own layer_out, layer_shape, layer_padding, layer_rule, layer_rule_or_none,
    layer_list, layer_branches, layer_parameters, layer_from, layer_from_list, layer_from_any;

/* Reads each layer of a list, and of the lists inside, for its errors: a list that was read is
 * legal, whatever its shapes are. place: "layers". */
int layers_read(const struct tree_node *list, const char *place, struct ms_err *err);
/* A list of layers, or of none, as JSON; NULL without memory. Owned. */
json_t *layers_write(const struct tree_node *list);

/* ---- build.c ---- */

enum { KINDS_MAX = 64 };

struct building {
    struct graph *graph;
    const struct network_input *input;
    struct ms_err *err;            /* never NULL */
    const char *prefix;            /* of names here: "layer1.a." */
    int *counts;                   /* of layers of each kind without a name, under this prefix */
    const struct layer_kind *kind; /* of the layer that is built */
    int n_layers;                  /* so far, repeated ones each time */
    struct network_layers *layers; /* those that have made something; NULL: nobody asks */
    struct inputs *inputs;         /* layers by name, of the whole network */
};

struct scope {
    char prefix[4 * GRAPH_NAME_MAX]; /* too long for a name: the graph refuses it */
    int counts[KINDS_MAX];
};

/* The layers of a list one behind the other; what the last one makes, or a negative code. */
int build_list(struct building *b, const struct tree_node *list, const char *place, int x);
/* For lists inside, with "name." before all names there; name "": as outside. scope is their own,
 * and n_layers goes back to b behind them. */
struct building build_within(const struct building *b, const char *name, struct scope *scope);
/* ---- inputs.c ---- */

/* layers: the network's list, borrowed; images: the tensor that `input` is. Owned; NULL without
 * memory. */
struct inputs *inputs_create(const struct tree_node *layers, int images);
void inputs_destroy(struct inputs *inputs); /* NULL allowed */
/* A layer that is built: its full name, entry, and what it makes. Returns output, or MS_E_NOMEM. */
int inputs_keep(struct building *b, const char *name, const struct layer_kind *kind,
                const struct tree_node *at, int output);
/* What a layer reads, which is x where it does not say it; of a list of names the first, and all in
 * layer->in. MS_E_INVALID: there is no such layer before it, or there are several. */
int inputs_find(struct building *b, struct layer *layer, int x);
/* Does somebody read what each layer makes? output is what the loss reads. */
int inputs_check_read(struct building *b, int output);

/* b->err's text with the place and the layer before it. */
int build_fail(struct building *b, const struct tree_node *at, const struct layer *layer);
/* ---- layer_part.c: of what layers are built ---- */

struct fans { /* values that one output sums over, and outputs that one value goes into */
    int64_t in, out;
};
struct init build_init(const struct rule *rule, struct fans fans);
/* A parameter of the layer, by the name that `part` of it has; where `parameters` gives it that of
 * one that is there and has this shape, that one. A tensor, or a negative code. */
int build_param(const struct building *b, const struct layer *layer, const char *part,
                const struct shape *shape, struct init init);
/* The same of a moving statistic, which begins with value. */
int build_state(const struct building *b, const struct layer *layer, const char *part,
                const struct shape *shape, double value);
/* The bias of the op, where the layer has one and the op's weight is there. */
void build_bias(const struct building *b, const struct layer *layer, struct op *op, int64_t out,
                struct fans fans);
/* 4: images, 3: sequences, 2: rows. MS_E_INVALID with what it gets instead. */
int build_want_dims(struct building *b, const struct layer *layer, const struct tree_node *at,
                    int x, int n_dims);
/* y; a negative one is an error of the graph, which gets its place. */
int build_made(struct building *b, const struct layer *layer, const struct tree_node *at, int y);
/* Channels, or values of rows, from first on. */
int build_slice_of(struct building *b, const struct layer *layer, const struct tree_node *at, int x,
                   int64_t first, int64_t size);
/* Of a tensor. */
const struct shape *build_shape(const struct building *b, int x);

/* ---- build of struct layer_kind, by the files that have them ---- */

typedef int layer_build(struct building *b, const struct layer *layer, const struct tree_node *at,
                        int x);
typedef int layer_check(const struct layer *layer, const struct tree_node *at, const char *place,
                        struct ms_err *err);

/* layer_image.c */
layer_build build_conv2d, build_transposed, build_max_pool, build_avg_pool, build_global_avg_pool,
    build_pad, build_upsample;
layer_check layer_check_upsample; /* align_corners is of linear ones */
/* layer_norm.c */
layer_build build_batch_norm, build_layer_norm, build_group_norm, build_instance_norm, build_scale;
/* layer_value.c */
layer_build build_dense, build_slice, build_shuffle, build_relu, build_softmax, build_dropout,
    build_activation, build_gelu, build_flatten, build_add, build_mul, build_linear, build_sub,
    build_hard_sigmoid;
/* layer_token.c */
layer_build build_embedding, build_positional, build_tokens, build_class_token, build_token,
    build_dot_product, build_attention;
/* layer_recurrent.c: lstm, gru and rnn */
layer_build build_recurrent;
layer_check layer_check_recurrent;
/* layer_lists.c: those that are lists */
layer_build build_sequential, build_residual, build_concat, build_repeat;
layer_check layer_check_concat; /* branches, or a list of names */

#endif
