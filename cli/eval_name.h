/* eval_name.h - on which data an accuracy was measured: a number without it says little */
#ifndef CLI_EVAL_NAME_H
#define CLI_EVAL_NAME_H

#include <stddef.h>

enum { CLI_EVAL_NAME_MAX = 160 };

/* "the test set of shapes (cifar10 files)" of a job as canonical JSON, into CLI_EVAL_NAME_MAX
 * bytes: the folder's name, for the kind of a data set is only the layout of its files; made data
 * are named by their kind. Where it cannot be known "the evaluation data". Returns buf. */
const char *cli_eval_name(char *buf, const void *job_json, size_t n);

/* Likewise, of a job whose ${NAME} stand for what this environment has. One thread. */
struct job;
const char *cli_eval_name_here(char *buf, const struct job *job);

#endif
