/* import.h - what the ops of a graph are turned into layers with; inside of onnx.h
 *
 * Nodes are taken in the file's order, which is that of execution. Each value is one of three: the
 * output of a layer or a function of it (VALUE_LAYER), a tensor that is trained (VALUE_PARAM), or
 * something that is known already (VALUE_INTS, VALUE_REAL). Functions of one value, as x / (1 +
 * exp(-x)), are kept as such until something else reads them: then they are one layer
 * (activation.c). */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include "libworker/onnx/file.h"
#include "proto/limits.h"

enum { INTS_MAX = 64, EXPR_SIZE_MAX = 64, NO_VALUE = -1 };

/* Sizes that are not numbers: of the batch, and what only the data will say. */
#define SIZE_BATCH   INT64_MIN
#define SIZE_UNKNOWN (INT64_MIN + 1)

enum value_kind { VALUE_LAYER, VALUE_PARAM, VALUE_INTS, VALUE_REAL };

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
    int is_rows;                 /* the layer makes (n, c) of what has dims of one behind that */
    int expr;
    json_t *dense; /* borrowed: its keys, where it may still get a bias */
    /* VALUE_PARAM, and numbers that are initializers; NULL: others */
    const struct onnx_tensor *tensor;
    int is_transposed;
    /* VALUE_INTS: of n_dims 0 or 1; VALUE_REAL: all elements are real */
    int n;
    int64_t ints[INTS_MAX];
    double real;
};

struct row_before { /* a concat, for those that begin with what it reads */
    int value, n;
    int of[INTS_MAX];
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
    json_t *by_name; /* of a value: its index */
    json_t *readers; /* values that something reads which does not only make rows of them */
    json_t *reads;   /* of a value: how often it is read */
    json_t *used;    /* initializers that a layer has */
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
extern const struct node_op layer_ops[], norm_ops[], shape_ops[], function_ops[]; /* NULL ends */

/* ---- import.c ---- */

/* "model.onnx: node /conv1/Conv (Conv, opset 17): ..." */
int import_fail(struct importer *m, const char *fmt, ...) MS_PRINTF(2, 3);
int import_fail_memory(struct importer *m);
const struct node_op *import_op(const char *name);

/* Input i as a value; NO_VALUE: it is left out. */
int import_input(struct importer *m, const MsOnnx__Node *node, size_t i);
struct value *import_value(const struct importer *m, int index);
/* The same, which must be there, an output of a layer, an image or rows; makes a layer of it. Or a
 * negative code. */
int import_image(struct importer *m, const MsOnnx__Node *node, size_t i);
int import_rows(struct importer *m, const MsOnnx__Node *node, size_t i);
/* A parameter of so many dimensions, which no other layer has. */
int import_param(struct importer *m, const MsOnnx__Node *node, size_t i, int n_dims,
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
 * and number. Fills ret, an image or rows as x is, with that layer; its dims are x's. */
int import_layer(struct importer *m, const char *kind, const char *name, json_t *keys, int x,
                 struct value *ret);
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
/* A tensor inside the model as a value. */
int import_tensor(struct importer *m, const MsOnnx__Tensor *tensor, struct value *ret);

/* ---- node_shape.c ---- */

int import_concat_ints(struct importer *m, const MsOnnx__Node *node);
int import_binary_ints(struct importer *m, const MsOnnx__Node *node, int a, int b);

/* ---- activation.c ---- */

/* The layer of a value, made of it where there is none yet. */
int import_make(struct importer *m, int value);
/* An expression that is the value itself; its index, or a negative code. */
int import_base(struct importer *m, int value);

#endif
