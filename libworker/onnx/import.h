/* import.h - what the ops of a graph are turned into layers with; inside of onnx.h
 *
 * Nodes are taken in the file's order, which is that of execution. A value is the output of a layer
 * or a function of it (VALUE_LAYER), seen in some way (view.h), a tensor that is trained
 * (VALUE_PARAM), something that is known already (VALUE_INTS, VALUE_REAL, VALUE_RANGE, VALUE_MASK),
 * drawn at random (VALUE_NOISE), or on its way to attention (VALUE_SCORES).
 * Functions of one value, as x / (1 + exp(-x)), are kept as such until something else reads them:
 * then they are one layer (activation.c). */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include "libworker/onnx/file.h"
#include "libworker/onnx/view.h"
#include "proto/limits.h"

#include <limits.h>

/* NO_VALUE: neither an index nor a code of proto/err.h */
enum { INTS_MAX = 64, EXPR_SIZE_MAX = 64, PIECES_MAX = 64, NO_VALUE = INT_MIN };

enum value_kind {
    VALUE_LAYER,
    VALUE_PARAM,
    VALUE_INTS,
    VALUE_REAL,
    VALUE_NOISE,
    VALUE_TOKENS, /* the data, which are numbers of words */
    VALUE_RANGE,  /* places: whole numbers from 0 on, or sums of such (node_places.c) */
    VALUE_MASK,   /* a matrix: one number up to its diagonal, another one behind it */
    VALUE_SCORES, /* queries times keys (attention.c) */
    VALUE_PARTS,  /* of a value along an axis, one of which is taken */
    VALUE_PIECES, /* rows of parameters, one behind the other (recurrent.c) */
    VALUE_STATES, /* what recurrent layers make of the last token */
};

enum noise { NOISE_UNIFORM, NOISE_KEPT, NOISE_SCALED }; /* product.c */

enum fn {       /* of operands a and b, with numbers c and d */
          FN_X, /* the base itself */
          FN_NUMBER,
          FN_ADD,
          FN_SUB,
          FN_MUL,
          FN_DIV,
          FN_POW,
          FN_RELU,
          FN_CLIP,
          FN_LEAKY_RELU,
          FN_ELU,
          FN_SIGMOID,
          FN_TANH,
          FN_ERF,
          FN_HARD_SIGMOID,
          FN_HARD_SWISH,
          FN_GELU,
          FN_GELU_TANH,
          FN_NEG,
          FN_EXP,
          FN_LINEAR, /* c a + d */
          FN_MOD,    /* of sizes */
};

struct expr {
    enum fn fn;
    int a, b; /* exprs; NO_VALUE: none */
    double c, d;
    int base;       /* the value that FN_X is; NO_VALUE: a number alone */
    int size;       /* parts that it has */
    int of_a, of_b; /* the values that the operands are of; NO_VALUE: a number */
};

struct value {
    enum value_kind kind;
    int n_dims; /* as ONNX has it */
    int64_t dim[ONNX_DIMS_MAX];
    /* VALUE_LAYER */
    char layer[MS_NAME_MAX + 1]; /* "": not a layer yet */
    size_t at;                   /* its place in the list, from 1; 0: the data */
    struct view view;            /* of what the layer makes; of a function as its base */
    int expr;
    json_t *dense; /* borrowed: its keys, where it may still get a bias */
    json_t *norm;  /* borrowed: those of a group norm that may still get a scale, or then a shift */
    const char *gamma; /* of such: the scale that it has; NULL: none yet */
    /* VALUE_PARAM, and numbers that are initializers; NULL: others */
    const struct onnx_tensor *tensor;
    int is_transposed;
    int is_repeated; /* for each sample */
    /* VALUE_INTS: of n_dims 0 or 1; VALUE_REAL: all elements are real; VALUE_RANGE: of each
     * dimension its step */
    int n;
    int64_t ints[INTS_MAX];
    double real;
    /* VALUE_NOISE: of these dims, where they are not drawn by 1 as one; real: how much is kept */
    enum noise noise;
    /* VALUE_SCORES: values q and k, real: times that. VALUE_PARTS: value q along axis k, in parts
     * of ints. VALUE_PIECES: n of the importer's from q on. VALUE_STATES: ints say which; real: of
     * cells. VALUE_MASK: real, and behind the diagonal: */
    double behind;
    int q, k;
    int is_causal, is_soft;
    double rate;
};

struct row_before { /* a concat, for those that begin with what it reads */
    int value, n;
    int of[INTS_MAX];
};

struct piece { /* rows of an initializer */
    const struct onnx_tensor *tensor;
    int64_t first, rows;
};

struct importer {
    const struct onnx_file *file;
    struct ms_err *err; /* never NULL */
    struct value *values;
    size_t n_values, values_room;
    struct expr *exprs;
    size_t n_exprs, exprs_room;
    struct row_before *rows;
    size_t n_rows, rows_room;
    struct piece *pieces;
    size_t n_pieces, pieces_room;
    json_t *by_name; /* of a value: its index */
    json_t *readers; /* values that something reads which does not only make rows of them */
    json_t *reads;   /* of a value: how often it is read */
    json_t *pads;    /* of the input of a convolution: zeros around it before its own */
    json_t *used;    /* initializers that layers have: how many of them */
    json_t *counts;  /* of layers of a kind without a name */
    json_t *named;   /* kinds whose layers are numbered here: a module has the list's number */
    json_t *layers;
    const MsOnnx__Node *node; /* at which we are */
};

/* An op of ONNX; MS_OK, or a negative code with the node in m->err. */
struct node_op {
    const char *name;
    int n_in; /* that it needs at least */
    int (*import)(struct importer *m, const MsOnnx__Node *node);
    int arg; /* enum fn of those that are functions */
};
extern const struct node_op layer_ops[], norm_ops[], shape_ops[], constant_ops[], part_ops[],
    place_ops[], join_ops[], function_ops[], product_ops[], attention_ops[], recurrent_ops[],
    resample_ops[]; /* NULL ends */

/* ---- import.c ---- */

/* "model.onnx: node /conv1/Conv (Conv, opset 17): ..." */
int import_fail(struct importer *m, const char *fmt, ...) MS_PRINTF(2, 3);
int import_fail_memory(struct importer *m);
const struct node_op *import_op(const char *name);

/* Input i as a value; NO_VALUE: it is left out; another negative number: the code of what is wrong
 * with it (import_failed). */
int import_input(struct importer *m, const MsOnnx__Node *node, size_t i);
int import_failed(int index);
/* The same, which must be there; or a negative code. */
int import_need(struct importer *m, const MsOnnx__Node *node, size_t i);
struct value *import_value(const struct importer *m, int index);
/* The same, which must be there, an output of a layer, an image or rows; makes a layer of it. Or a
 * negative code. */
int import_image(struct importer *m, const MsOnnx__Node *node, size_t i);
int import_rows(struct importer *m, const MsOnnx__Node *node, size_t i);
/* What has all channels last: rows, images (channels last), or a sequence, whose samples and tokens
 * stand in any order before them. */
int import_tokens(struct importer *m, const MsOnnx__Node *node, size_t i);
/* A sequence in its order. */
int import_sequence(struct importer *m, const MsOnnx__Node *node, size_t i);
/* Value x, which is a layer's from now on, without channels that are cut or shuffled. */
int import_settle(struct importer *m, int x);
/* ... seen as rows (n, values), of which something may have to be made. */
int import_as_rows(struct importer *m, int x);
/* Images of which a view makes tokens become a sequence. */
int import_as_sequence(struct importer *m, int x);
/* Sets its view and dims. */
void import_set_view(struct value *value, const struct view *view);
/* A parameter of so many dimensions. */
int import_param(struct importer *m, const MsOnnx__Node *node, size_t i, int n_dims,
                 struct value *ret);
/* A layer has it from now on. Shared: one before has it, too. */
int import_use(struct importer *m, const struct onnx_tensor *tensor);
int import_is_shared(const struct importer *m, const char *parameter);
/* A parameter of each channel, which an Unsqueeze may have given as many dimensions. */
int import_of_channels(struct importer *m, const MsOnnx__Node *node, size_t i, int n_dims,
                       struct value *ret);
/* A parameter (out, channels) that an Unsqueeze made (out, channels, 1, 1). */
int import_is_kernel_of_matrix(const struct importer *m, int value);
int import_kernel_of_matrix(struct importer *m, const MsOnnx__Node *node, size_t i,
                            struct value *ret);
/* One that is repeated for each sample, as so many dimensions. */
int import_repeated(struct importer *m, const MsOnnx__Node *node, size_t i, int n_dims,
                    struct value *ret);
/* Output i is that value from now on; a copy of it under a name of its own, which gets no bias. */
int import_bind(struct importer *m, const MsOnnx__Node *node, size_t i, const struct value *value);

/* A value by a name that is free; its index. */
int import_keep(struct importer *m, const char *name, const struct value *value);

/* Attributes, with the defaults of ONNX. MS_E_INVALID: another type, or another number of ints. */
int attribute_int(struct importer *m, const MsOnnx__Node *node, const char *name, int64_t none,
                  int64_t *ret);
int attribute_real(struct importer *m, const MsOnnx__Node *node, const char *name, double none,
                   double *ret);
int attribute_ints(struct importer *m, const MsOnnx__Node *node, const char *name, int n,
                   int64_t none, int64_t *ret);
const MsOnnx__Attribute *attribute_find(const MsOnnx__Node *node, const char *name);

/* A layer of that kind which reads value x: keys is taken; NULL: without memory. name: "" its kind
 * and number. Fills ret, seen as x is, with that layer. */
int import_layer(struct importer *m, const char *kind, const char *name, json_t *keys, int x,
                 struct value *ret);
/* The last layer of the list, which has a number: it has that name instead. */
int import_rename(struct importer *m, const char *kind, const char *name, json_t *keys,
                  struct value *value);
/* ... that reads several. */
int import_join(struct importer *m, const char *kind, const int *values, int n, struct value *ret);

/* The decimal number with the fewest digits that is this float: 1e-5 of 9.99999974737875e-06f. */
double import_real(float f);

/* ---- node.c ---- */

/* A part of a layer, as PyTorch's modules and the layers here call it. */
struct part {
    const char *theirs, *ours;
    const char *name; /* that the file gives it; NULL: the layer is without it */
};

/* The layer's name, and `parameters` where theirs do not follow from it; that of the data is no
 * layer's. The first part has a name. is_norm: the word torch says all of them. */
int import_name_parts(struct importer *m, const struct part *parts, int n, int is_norm,
                      json_t *keys, char ret[MS_NAME_MAX + 1]);
/* Input i as a bias of so many values that is trained, or NULL: zeros that the exporter made are
 * none. */
int import_bias(struct importer *m, const MsOnnx__Node *node, size_t i, int64_t size,
                const char **ret_name);
/* A bias for a dense layer that has none yet: its keys, and the parameter's name. */
int import_name_bias(struct importer *m, json_t *keys, const char *bias);

/* ---- constant.c ---- */

/* Value i as whole numbers, or one real number; MS_E_INVALID: it is none, or one that is trained.
 */
int import_ints(struct importer *m, int value, const struct value **ret);
int import_number(struct importer *m, int value, double *ret);
/* Is it a number, whatever its shape? */
int import_is_number(const struct importer *m, int value);
/* MS_E_INVALID: it is a number that the module has as its own, by the name of its initializer. */
int import_check_constant(struct importer *m, const struct value *value);
/* onnx_numbers; an error names the node. */
int import_numbers(struct importer *m, const MsOnnx__Tensor *tensor, double *reals, int64_t *ints,
                   int n);
/* A small tensor as a value. */
int import_tensor(struct importer *m, const MsOnnx__Tensor *tensor, struct value *ret);

/* ---- node_shape.c ---- */

int import_concat_ints(struct importer *m, const MsOnnx__Node *node);
int import_binary_ints(struct importer *m, const MsOnnx__Node *node, int a, int b);
int import_bind_ints(struct importer *m, const MsOnnx__Node *node, const int64_t *ints, int n,
                     int is_scalar);
/* One number of all elements, in a shape. */
int import_bind_filled(struct importer *m, const MsOnnx__Node *node, const struct value *with,
                       const struct value *shape);
/* Axis of n_dims, counted from the end where it is negative; -1: there is none. */
int import_axis(int64_t axis, int n_dims);
/* Gather, Slice and Split of what a layer makes (node_part.c). */
int import_take_part(struct importer *m, const MsOnnx__Node *node, int x);
int import_cut(struct importer *m, const MsOnnx__Node *node, int x);

/* ---- node_places.c ---- */

/* Places times a number, or plus others of another dimension. */
int import_binary_places(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b);
/* ... with dimensions of 1 more, n_dims in all. */
int import_unsqueeze_places(struct importer *m, const MsOnnx__Node *node, int x, unsigned axes,
                            int n_dims);
/* All values of x, one behind the other, by places that leave none out. */
int import_see_places(struct importer *m, const MsOnnx__Node *node, int x, int at);

/* ---- node_resample.c ---- */

/* Adds those zeros around input 0 that the convolution takes for its own: top, left, bottom, right.
 */
void import_folded_pads(const struct importer *m, const MsOnnx__Node *node, int64_t pads[4]);
/* A layer that puts them around value x. */
int import_zeros_around(struct importer *m, int x, const int64_t pads[4], struct value *ret);

/* ---- node_token.c ---- */

/* Parameter x by words, which are the data's, or all its rows by their places. */
int import_rows_of(struct importer *m, const MsOnnx__Node *node, int x, int words);
/* A sum of a sequence and a parameter of its places. 1: it was one. */
int import_places(struct importer *m, const MsOnnx__Node *node, int a, int b);

/* ---- attention.c ---- */

/* A product of two values that layers made, or of scores and values. */
int import_attend(struct importer *m, const MsOnnx__Node *node, int a, int b);
/* Scores times or by a number, or plus a mask; a mask and a number. */
int import_scored(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b);
int import_masked(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b);
/* 1: it is a mask; a square of numbers in the file becomes one where it is. Negative: no memory, or
 * it could not be read. */
int import_is_mask(struct importer *m, int value);
int import_chosen(struct importer *m, const MsOnnx__Node *node); /* Where */

/* ---- recurrent.c ---- */

int import_is_recurrent(const char *op_type);
/* So many rows of a parameter, for the gates of an LSTM or GRU. */
int import_piece(struct importer *m, const MsOnnx__Node *node, const struct value *param,
                 int64_t first, int64_t rows);
/* Pieces (or whole parameters), or states, one behind the other: a Concat whose first input is one.
 */
int import_join_pieces(struct importer *m, const MsOnnx__Node *node);
int import_join_states(struct importer *m, const MsOnnx__Node *node);
/* Pieces x, or a whole parameter, with dimensions of 1 in these places. */
int import_widen_pieces(struct importer *m, const MsOnnx__Node *node, int x, unsigned axes);
/* One of states x: a token of what their layer makes. */
int import_take_state(struct importer *m, const MsOnnx__Node *node, int x, int64_t place);

/* ---- node_norm.c ---- */

/* The value bound last, as output 0, may still get parts of a group norm: where it is read once. */
void import_keep_norm(struct importer *m, const MsOnnx__Node *node, json_t *norm,
                      const char *gamma);
/* A product or a sum that is the scale or the shift of a group norm. 1: it was one. */
int import_take_affine(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b);

/* ---- product.c ---- */

/* Is it a tensor that is trained, for a product? One number that an exporter made is none. */
int import_is_factor(const struct importer *m, int value);
/* x times input i, which is a factor, as a layer. */
int import_factor(struct importer *m, const MsOnnx__Node *node, int x, size_t i);
/* Has it a value for each channel of each sample of images x? */
int import_is_gate(const struct value *gate, const struct value *x);
/* A quotient or a product of two values, one of which is VALUE_NOISE. */
int import_noise(struct importer *m, const MsOnnx__Node *node, enum fn fn, int a, int b);

/* ---- activation.c ---- */

/* The layer of a value, made of it where there is none yet. MS_E_INVALID: the value is a parameter,
 * known or drawn at random, or what it is made of is no layer's function. */
int import_make(struct importer *m, int value);
/* An expression that is the value itself; its index, or a negative code. */
int import_base(struct importer *m, int value);
/* The value that it is some number times of; itself: 1. */
int import_multiple_of(struct importer *m, int value, double *ret_factor);

#endif
