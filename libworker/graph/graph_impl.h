/* graph_impl.h - the inside of a graph, for the files of this room only */
#ifndef GRAPH_IMPL_H
#define GRAPH_IMPL_H

#include "libworker/graph/graph.h"
#include "libworker/graph/op.h"
#include "proto/macros.h"

struct graph {
    char name[GRAPH_NAME_MAX];
    struct tensor **tensors; /* one allocation each: a borrowed tensor stays where it is */
    struct op **ops;
    int *params, *states, *gradients; /* tensor indices, in the order that graph.h promises */
    /* Parameters and states by the hash of their name, open addressing; -1: free. A size of 2^n, at
     * most half of which is taken; 0: there is none. */
    int *named;
    size_t n_named_room;
    int n_tensors, n_ops, n_params, n_states, n_gradients;
    size_t cap_tensors, cap_ops, cap_params, cap_states, cap_gradients;
    int n_forward_ops; /* -1 until differentiated */
    int data, label, loss, output;
};

struct op_family {
    const struct op_row *rows;
    int n;
};
extern const struct op_family op_conv, op_transposed, op_norm, op_sample_norm, op_pool, op_dense,
    op_product, op_loss, op_elementwise, op_activation, op_concat, op_channels, op_resample,
    op_sequence, op_recurrent;

/* "graph g: conv2d: <reason>; inputs: image (2, 3, 8, 8), conv1.weight (4, 2, 3, 3)": the reason
 * first, so that a text that is cut loses the less important part. MS_E_INVALID. */
int graph_fail_op(const struct graph *graph, const struct op *op, struct ms_err *err,
                  const char *fmt, ...) MS_PRINTF(4, 5);

/* Shape rule of a window over images: their batch and channels, another height and width. */
int graph_window_shape(const struct graph *graph, const struct op *op, struct shape *ret,
                       struct ms_err *err);

/* ... of a transposed convolution: images of which its window makes those that it reads. */
int graph_unwindow_shape(const struct graph *graph, const struct op *op, struct shape *ret,
                         struct ms_err *err);

/* FNV-1a, 64 bits (Fowler, Noll, Vo): initial values follow from it. */
uint64_t graph_hash_name(const char *name);
/* All that an op is told beside its inputs: a backward op is told the same as its forward op. */
void graph_copy_settings(struct op *to, const struct op *from);
/* epsilon must be above 0. */
int graph_check_epsilon(const struct graph *graph, const struct op *op, struct ms_err *err);
/* Input 2 must be a vector of that many values. */
int graph_check_bias(const struct graph *graph, const struct op *op, int64_t size,
                     struct ms_err *err);

/* MS_OK while forward ops may be added; what: for the message. */
int graph_check_open(const struct graph *graph, const char *what, struct ms_err *err);

/* Columns `products` of rows, where an output's element, or a gradient's, is a sum over a row of
 * the weight: (x, w) -> y, (dy, w) -> dx, (x, dy) -> dw. */
double graph_products_forward(const struct graph *graph, const struct op *op);
double graph_products_of_data(const struct graph *graph, const struct op *op);
double graph_products_of_weights(const struct graph *graph, const struct op *op);
/* ... of the transposed: (x, dy) -> dw. */
double graph_products_of_transposed(const struct graph *graph, const struct op *op);
double graph_no_products(const struct graph *graph, const struct op *op);

/* 0 if dims are positive and their product is at most GRAPH_ELEMENTS_MAX. */
int graph_shape_bad(const struct shape *shape);

/* Appends a zeroed tensor without a producer; returns its index or MS_E_NOMEM. */
int graph_append_tensor(struct graph *graph, const char *name, enum tensor_role role,
                        const struct shape *shape, struct ms_err *err);

/* Appends an op of a kind with n_in inputs; outputs -1, forward -1. Returns its index. */
int graph_append_op(struct graph *graph, enum op_kind kind, int n_in, const int *in,
                    struct ms_err *err);

/* Appends a tensor as output `slot` of op; returns the tensor's index. */
int graph_append_output(struct graph *graph, int op, int slot, const char *name,
                        enum tensor_role role, const struct shape *shape, struct ms_err *err);

int graph_append_gradient(struct graph *graph, int tensor, struct ms_err *err);

/* Forgets everything after these counts: a failed call leaves no trace. */
void graph_truncate(struct graph *graph, int n_tensors, int n_ops, int n_gradients);

#endif
