/* write_impl.h - a graph on its way into an ONNX file; inside of write.h */
#ifndef ONNX_WRITE_IMPL_H
#define ONNX_WRITE_IMPL_H

#include "libworker/onnx/write.h"
#include "proto/message.h"

/* The numbers of onnx.proto's fields. */
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TYPE = 20,
    DIM_VALUE = 1,
    DIM_PARAM = 2,
    ENTRY_SHAPE_DIM = 1,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    TENSOR_DIMS = 1,
    TENSOR_DATA_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW_DATA = 9,
    TENSOR_TYPE_ELEM = 1,
    TENSOR_TYPE_SHAPE = 2,
    TYPE_TENSOR = 1,
    VALUE_INFO_NAME = 1,
    VALUE_INFO_TYPE = 2
};

enum { WRITE_NAME_MAX = GRAPH_NAME_MAX + 32 };

struct write {
    const struct graph *graph;
    struct ms_message nodes;     /* fields of a graph, a node each */
    struct ms_message constants; /* likewise initializers that nobody trains */
    struct ms_message node;      /* that is being made */
    char input[WRITE_NAME_MAX], output[WRITE_NAME_MAX]; /* what data and output are called */
    int is_words;                                       /* the data are: an embedding reads them */
};

/* The op as nodes of w, of which the last one makes what the op makes; returns the index of the op
 * behind it, for a node may be two ops. MS_E_UNSUPPORTED: there is no such node. */
int write_op(struct write *w, int index, struct ms_err *err);

/* What a tensor is called in the file, into buf; returns buf. */
const char *write_name(const struct write *w, int tensor, char buf[WRITE_NAME_MAX]);

/* ---- write_node.c ---- */

/* A node of that type: what it reads and says, one after the other, up to write_end, which calls it
 * as what it makes; write_end_op: as what the op makes. */
void write_begin(struct write *w, const char *type);
void write_in(struct write *w, const char *name);
void write_in_tensor(struct write *w, int tensor);
void write_put_ints(struct write *w, const char *name, const int64_t *values, int n);
void write_put_int(struct write *w, const char *name, int64_t value);
void write_put_real(struct write *w, const char *name, double value);
void write_put_text(struct write *w, const char *name, const char *value);
void write_put_texts(struct write *w, const char *name, const char *value, int n); /* n times */
void write_end(struct write *w, const char *makes);
void write_end_op(struct write *w, const struct op *op);

/* What a node on the way to the op's result makes, "/group_norm_7/scaled"; into buf, which is
 * returned. */
const char *write_part_of(const struct op *op, const char *part, char buf[WRITE_NAME_MAX]);

/* Numbers that nodes read, by that name; n < 0: one, without a dimension. */
void write_constant_ints(struct write *w, const char *name, const int64_t *values, int n);
void write_constant_reals(struct write *w, const char *name, const float *values, int n);
void write_constant_real(struct write *w, const char *name, double value);
/* A part of the op of that shape, all of which is value; its name into buf, which is returned. */
const char *write_filled(struct write *w, const struct op *op, const char *part,
                         const struct shape *shape, double value, char buf[WRITE_NAME_MAX]);

/* Whole nodes: x with its axes in another order, or in other sizes, which are the op's constant
 * `part`. */
void write_transpose(struct write *w, const char *x, const int64_t *perm, int n, const char *makes);
void write_reshape(struct write *w, const struct op *op, const char *x, const char *part,
                   const int64_t *sizes, int n, const char *makes);

/* ---- write_resample.c: as write_op ---- */

int write_pad(struct write *w, int index);
int write_upsample(struct write *w, int index);

/* ---- write_sequence.c: as write_op, of ops that make sequences, or read them otherwise ---- */

int write_embedding(struct write *w, int index);
int write_places(struct write *w, int index);
int write_tokens(struct write *w, int index);
int write_class_token(struct write *w, int index);
int write_dense_of_tokens(struct write *w, int index);
int write_attention(struct write *w, int index);

/* ---- write_recurrent.c ---- */

/* Is the dense layer that of a recurrent op, which comes next? Both are one node then, perhaps with
 * those of the other direction. */
int write_is_recurrent(const struct write *w, int index);
int write_recurrent(struct write *w, int index);

#endif
