/* ckpt.h - MindSpore's checkpoints (.ckpt): named tensors, read and written
 *
 * A file is one protobuf message (mindspore/ccsrc/utils/checkpoint.proto, proto2):
 *   Checkpoint{ repeated Value value = 1 }
 *   Value{ required string tag = 1; oneof { TensorProto tensor = 2; MapTensorProto maptensor = 3 }
 * } TensorProto{ repeated int64 dims = 1; required string tensor_type = 2; required bytes
 * tensor_content = 3 } Contents are little endian, in C order. A tensor of more than CKPT_SLICE_MAX
 * bytes is several values one behind the other, each with the tag and all dims. A scalar has no
 * dims, or [0]. Behind the message may stand "crc_num" and, in ten bytes, big endian, the CRC-32 of
 * all before it.
 *
 * It is walked where it lies, for it may be larger than memory. One thread at a time. */
#ifndef CKPT_H
#define CKPT_H

#include "libworker/data/safetensors.h"

#define CKPT_SLICE_MAX (UINT64_C(512) << 20)

struct ckpt; /* an open file */

/* Opens and checks: safe for hostile input. dtypes are safetensors' names of the types; a type that
 * those have no name for is MindSpore's ("str"). begin and end of an entry say its size alone.
 * Returns owned. */
int ckpt_open(const char *path, struct ckpt **ret, struct ms_err *err);
void ckpt_close(struct ckpt *file); /* NULL allowed */
size_t ckpt_count(const struct ckpt *file);
/* In the order of names. */
const struct safetensors_entry *ckpt_at(const struct ckpt *file, size_t i);
const struct safetensors_entry *ckpt_find(const struct ckpt *file, const char *name);
/* Reads an F32 tensor; count must be its elements. */
int ckpt_read(struct ckpt *file, const struct safetensors_entry *entry, float *dst, size_t count,
              struct ms_err *err);

struct ckpt_writer;
/* Begins a file: nothing leads to it before ckpt_finish. Returns owned. */
int ckpt_create(const char *path, struct ckpt_writer **ret, struct ms_err *err);
/* entry: name and shape. */
int ckpt_put(struct ckpt_writer *writer, const struct safetensors_entry *entry, const float *data,
             struct ms_err *err);
/* Synced before path leads to it. Destroys the writer in any case. */
int ckpt_finish(struct ckpt_writer *writer, struct ms_err *err);
void ckpt_abandon(struct ckpt_writer *writer); /* NULL allowed */

#endif
