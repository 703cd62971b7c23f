/* weights_file.h - named tensors in a file of any format that is read: by its ending, .ckpt is
 * MindSpore's (ckpt.h), all else safetensors. One thread at a time. */
#ifndef WEIGHTS_FILE_H
#define WEIGHTS_FILE_H

#include "libworker/data/safetensors.h"

struct weights_file; /* an open one */

/* Is a file of that name MindSpore's? */
int weights_file_is_ckpt(const char *path);

/* Safe for hostile input. Returns owned. */
int weights_file_open(const char *path, struct weights_file **ret, struct ms_err *err);
void weights_file_close(struct weights_file *file); /* NULL allowed */
size_t weights_file_count(const struct weights_file *file);
/* In the order of names. */
const struct safetensors_entry *weights_file_at(const struct weights_file *file, size_t i);
const struct safetensors_entry *weights_file_find(const struct weights_file *file,
                                                  const char *name);
/* What is in it that is no weight, whoever wrote it: of a checkpoint the optimizer's slots and the
 * moving averages, of MindSpore's numbers that are none of a network's, of torch's counters. The
 * other tensors of a file without optimizer are all weights, whatever they are called. */
int weights_file_is_aside(const struct weights_file *file, const struct safetensors_entry *entry);
/* Where the weight's values are: of a checkpoint with moving averages, in its average. */
const struct safetensors_entry *weights_file_source(const struct weights_file *file,
                                                    const struct safetensors_entry *entry);
/* Reads an F32 tensor; count must be its elements. */
int weights_file_read(struct weights_file *file, const struct safetensors_entry *entry, float *dst,
                      size_t count, struct ms_err *err);

#endif
