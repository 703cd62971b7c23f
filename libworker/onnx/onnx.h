/* onnx.h - a network and its weights from an ONNX file (https://onnx.ai), as PyTorch exports them
 *
 *     skim.c            the file without its weights: what is unpacked is small
 *     file.c            unpacked, checked, and what it holds by name
 *     weights.c         the values of a tensor, from the file or one beside it
 *     import.c          the graph as a list of layers (docs/networks.md)
 *     node.c ...        an op each: what it is as a layer, or why it is none
 *     constant.c        what is known when the file is read: shapes, numbers
 *     view.c            dimensions that an exporter moves, cuts and puts together
 *     settle.c          layers for what is left of that where something is computed
 *     activation.c      functions of one value, however an exporter takes them apart
 *     attention.c       attention, likewise
 *     parameter.c       which tensors its layers have as parameters
 *     write.c ...       the other way: write.h
 *
 * A file may be hostile: sizes and counts are checked before anything is believed, nothing in it is
 * followed but the names of its own values, and a file with weights beside it lies in its folder.
 * One thread an open file. */
#ifndef ONNX_H
#define ONNX_H

#include "proto/err.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { ONNX_DIMS_MAX = 8 };

struct onnx_file; /* opaque */

/* A tensor that a network may have as its parameter: an initializer, by its name or by that which
 * an Identity gives it. */
struct onnx_tensor {
    const char *name; /* borrowed from the file */
    const char *type; /* "FLOAT" */
    int n_dims;
    int64_t dim[ONNX_DIMS_MAX];
    size_t index; /* of the file's initializers */
};

/* Reads all but the weights. MS_E_INVALID: it is none, is damaged, or larger than such a file may
 * be; MS_E_NOT_FOUND, MS_E_IO, MS_E_REFUSED as data_file_open. Returns owned. */
int onnx_open(const char *path, struct onnx_file **ret, struct ms_err *err);
void onnx_close(struct onnx_file *file); /* NULL allowed */

/* The graph as a network's document: an object with `summary`, `input` and `layers`, whose
 * parameters have the names that the file has. MS_E_INVALID names the first node that cannot be
 * kept, its op and opset, and what would be needed. Returns owned. */
int onnx_network(const struct onnx_file *file, json_t **ret, struct ms_err *err);

/* Borrowed for the file's life; NULL: there is none of that name. */
const struct onnx_tensor *onnx_find(const struct onnx_file *file, const char *name);
/* The values of a FLOAT tensor in C order; count must be its elements. MS_E_INVALID: it has another
 * type, or other data than its shape says; errors of opening where they lie in another file. */
int onnx_read(const struct onnx_file *file, const struct onnx_tensor *tensor, float *dst,
              size_t count, struct ms_err *err);
/* Is the file there in which its values lie, where that is one beside the model, and long enough?
 * As onnx_read, but for the values. */
int onnx_look(const struct onnx_file *file, const struct onnx_tensor *tensor, size_t count,
              struct ms_err *err);

/* Calls each for every FLOAT initializer that a convolution, a dense layer (and the Add of its
 * bias) or a norm of the graph has as its parameter, in the graph's order, until it returns a
 * negative code, which is returned. MS_E_INVALID: a dense layer has its weight as (in, out), so
 * that its values are not those of a layer's (out, in), be it square or not. */
typedef int onnx_each_fn(void *arg, const struct onnx_tensor *tensor, struct ms_err *err);
int onnx_each_parameter(const struct onnx_file *file, onnx_each_fn *each, void *arg,
                        struct ms_err *err);

/* Does the path end in .onnx? */
int onnx_is_path(const char *path);

#endif
