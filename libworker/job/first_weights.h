/* first_weights.h - the file with which a training begins, held against its network: which of its
 * tensors become which parameters
 *
 * A tensor has the name that the job's renames give it, and a parameter is taken from the one that
 * has its name, or, of a norm or a scale, that which torch or MindSpore has for it
 * (data/weights_names.h), unless the job excludes it by one of these. Every
 * parameter that is not excluded must be there with its shape; moving statistics may be missing.
 * Tensors that neither network nor `exclude` knows are refused by name, but for what an optimizer
 * or a counter left there, and what no layer of an ONNX model has as its parameter. One thread. */
#ifndef FIRST_WEIGHTS_H
#define FIRST_WEIGHTS_H

#include "libworker/job/job.h"

struct first_weights; /* an open file, and what is taken of it */
struct graph;

/* Opens a .safetensors, .ckpt or .onnx file, and judges all of it but the values. take: of the job,
 * NULL: of a network that is trained, where moving statistics may not be missing either; it and
 * graph are borrowed until the close. MS_E_INVALID: tensor, shape or pattern, with what helps.
 * Returns owned. */
int first_weights_open(const char *path, const struct job_take *take, const struct graph *graph,
                       struct first_weights **ret, struct ms_err *err);
void first_weights_close(struct first_weights *weights); /* NULL allowed */

/* Is stored tensor i (of graph_stored_at) taken? */
int first_weights_has(const struct first_weights *weights, int i);
/* Values of one that is, in C order; count must be its elements. */
int first_weights_read(const struct first_weights *weights, int i, float *values, size_t count,
                       struct ms_err *err);

/* "60 of 62 parameters, 40 of 40 moving statistics; fc.weight, fc.bias begin by their init" */
void first_weights_say(const struct first_weights *weights, char *buf, size_t size);

#endif
