/* file.h - an open ONNX file; inside of onnx.h */
#ifndef ONNX_FILE_H
#define ONNX_FILE_H

#include "libworker/onnx/onnx.h"
#include "libworker/onnx/onnx.pb-c.h"
#include "libworker/onnx/skim.h"

#define ONNX_PRODUCER "msched" /* of a file that was written here */

/* TensorProto.DataType */
enum { ONNX_FLOAT = 1, ONNX_INT32 = 6, ONNX_INT64 = 7, ONNX_BOOL = 9, ONNX_DOUBLE = 11 };
const char *onnx_type_name(int type);

struct onnx_file {
    char *path;
    int fd;
    struct onnx_raw *raw; /* one an initializer */
    MsOnnx__Model *model; /* without what skim leaves out */
    ProtobufCAllocator allocator;
    size_t budget;             /* bytes that unpacking may still take */
    int has_no_memory;         /* unpacking found none */
    struct onnx_tensor *named; /* initializers and what an Identity calls them, by name */
    size_t n_named, named_room;
    int64_t opset; /* of the ops of ONNX itself */
};

/* A tensor (an attribute, or an initializer of at most ONNX_INLINE_MAX bytes or beside the model)
 * as numbers: at most n of type FLOAT, DOUBLE, INT64, INT32 or BOOL, into reals or ints, of which
 * one is NULL. Returns how many there are, or a negative code: it is of another kind, or larger, or
 * cannot be read beside the model. */
int onnx_numbers(const struct onnx_file *file, const MsOnnx__Tensor *tensor, double *reals,
                 int64_t *ints, int n, struct ms_err *err);
/* Has a FLOAT or DOUBLE tensor inside the model one number as all of its elements? */
int onnx_is_even(const MsOnnx__Tensor *tensor, double *ret);

/* Does an initializer's name begin so? */
int onnx_has_prefix(const struct onnx_file *file, const char *prefix);

/* The names of all that layers of the graph have as their parameters, as keys; NULL: it cannot be
 * kept, or there is no memory. Owned. */
json_t *onnx_used(const struct onnx_file *file);

/* Has PyTorch's exporter made it, by its name? All others are the module's, or may be. */
int onnx_is_made(const struct onnx_file *file, const struct onnx_tensor *tensor);

#endif
