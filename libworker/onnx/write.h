/* write.h - a graph and its weights as an ONNX file (https://onnx.ai), for runtimes that read those
 *
 *     write.c           the file: nodes, the tensors of weights, input and output
 *     write_node.c      a node, its attributes, the numbers that it reads
 *     write_ops.c       an op each: the nodes that it is
 *     write_sequence.c  ... of sequences
 *     write_recurrent.c ... of recurrent ones
 *     write_resample.c  ... of images of another size
 *
 * Opset 21 (IR 10, of ONNX 1.16). The ops are those of evaluation, dropout among them, which
 * evaluation passes through; the loss is not. Parameters and moving statistics are initializers by
 * their own names, the data is `input`, the output `output` (with a `_` behind it where a parameter
 * is called so), both of any batch size. Words are INT64 (n, tokens). One thread a file. */
#ifndef ONNX_WRITE_H
#define ONNX_WRITE_H

#include "libworker/graph/graph.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

struct onnx_weights { /* where the values come from */
    /* Fills dst, count elements in C order, with those of a parameter or state of the graph. */
    int (*get)(void *arg, const struct tensor *tensor, float *dst, size_t count,
               struct ms_err *err);
    void *arg;
};

struct onnx_written {
    size_t tensors; /* parameters and states */
    uint64_t bytes; /* of the file */
};

/* graph has an output. The path leads to the file when it is whole. MS_E_UNSUPPORTED: names an op
 * that no node of ONNX is; MS_E_FULL: more than the 2 GiB that such a file may have; MS_E_IO;
 * errors of weights->get. */
int onnx_write(const char *path, const struct graph *graph, const struct onnx_weights *weights,
               struct onnx_written *ret, struct ms_err *err);

#endif
