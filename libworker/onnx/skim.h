/* skim.h - an ONNX model without what its weights hold; inside of onnx.h */
#ifndef ONNX_SKIM_H
#define ONNX_SKIM_H

#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum { ONNX_INLINE_MAX = 1024 /* bytes of a tensor that stay in the model: shapes, numbers */ };

struct onnx_raw { /* of an initializer: where its raw_data lie in the file */
    uint64_t offset, size;
    int is_out; /* left out of the bytes below; else they are in them, if there are any */
};

struct onnx_skim {
    uint8_t *bytes; /* a Model, with the same initializers in the same order */
    size_t size;
    struct onnx_raw *raw; /* one an initializer */
    size_t n_raw, raw_room;
};

/* Reads the file once, and keeps what is read of it: at most ONNX_SKIM_MAX bytes. path for errors.
 * MS_E_INVALID: it is no protobuf of that kind. */
int onnx_skim(int fd, const char *path, struct onnx_skim *ret, struct ms_err *err);
void onnx_skim_fini(struct onnx_skim *skim);

#endif
