/* weights.h - are these the weights that a job ended with */
#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include "proto/digest.h"
#include "proto/err.h"

/* The digest by which a job's weights are known (JobInfo.weights_sha256): over the values of all
 * tensors of a safetensors file, in the order of their names. Safe for hostile files. */
int cli_weights_digest(const char *path, char ret_hex[MS_SHA256_HEX], struct ms_err *err);

/* The SHA-256 of the file itself, as sha256sum(1) prints it. Only of a plain file. */
int cli_file_sha256(const char *path, char ret_hex[MS_SHA256_HEX], struct ms_err *err);

#endif
