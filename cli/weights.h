/* weights.h - are these the weights that a job ended with */
#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include "proto/digest.h"
#include "proto/err.h"

/* The digest by which a job's weights are known (JobInfo.weights_sha256): over the values of all
 * tensors of a safetensors file, in the order of their names. Safe for hostile files. */
int cli_weights_digest(const char *path, char ret_hex[MS_SHA256_HEX], struct ms_err *err);

#endif
