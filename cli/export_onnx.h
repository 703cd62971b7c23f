/* export_onnx.h - the network of a job, with weights from a file, as an ONNX model */
#ifndef CLI_EXPORT_ONNX_H
#define CLI_EXPORT_ONNX_H

#include "libworker/data/data.h"
#include "libworker/job/job.h"

/* weights: a file of job/first_weights.h. MS_E_INVALID: it is of another network, or lacks a
 * parameter or a moving statistic; else as onnx_write. */
int export_onnx(const struct job *job, const char *weights, const char *to,
                struct data_exported *ret, struct ms_err *err);

#endif
