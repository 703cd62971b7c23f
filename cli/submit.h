/* submit.h - what `msctl submit` and `msctl run` share: the job file and the idempotence key */
#ifndef CLI_SUBMIT_H
#define CLI_SUBMIT_H

#include "cli/option.h"
#include "libworker/job/job.h"

enum { CLI_KEY_BYTES = 33 }; /* 128 random bits as hex, and NUL */

/* Reads the file with the options --workers and --set. */
int cli_load_job(const struct cli_args *args, const char *path, struct job *ret,
                 struct ms_err *err);

/* ... and, behind these, with a key that wins over all; NULL: none. */
int cli_load_job_with(const struct cli_args *args, const char *path, const char *last,
                      struct job *ret, struct ms_err *err);

/* The plan that --plan names, for the job; owned. Without that option *ret stays as it is. */
int cli_load_plan(const struct cli_args *args, const struct job *job, char **ret,
                  struct ms_err *err);

/* A key that nobody else has, into CLI_KEY_BYTES bytes. */
int cli_submit_key(char *ret, struct ms_err *err);

#endif
