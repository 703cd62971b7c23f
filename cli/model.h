/* model.h - a trained network that the user names: its weights, and the job that says what it is */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "cli/cli.h"
#include "libworker/job/job.h"

#define CLI_JOB_FILE  "job.json" /* in the folder of a run: the job with all defaults */
#define CLI_PLAN_FILE "plan.txt" /* beside it: by which plan it trained */

/* The file of weights that a word means, into ret: of a folder its weights.safetensors, of a
 * checkpoint (.json) the file beside it, else the word. verb: who asks, for errors. MS_E_REFUSED:
 * it is a checkpoint's, and not what its manifest says; all of it was read for that. */
int cli_model_weights(const char *word, const char *verb, char ret[MS_PATH_MAX + 1],
                      struct ms_err *err);

/* The job of --job, with --set and -n where the command has them; without it the one that lies
 * beside the weights, or above their folder. Weights that are an ONNX model bring their network,
 * too. MS_E_NOT_FOUND: there is none, and says what to give. */
int cli_model_job(const struct cli_args *args, const char *weights, struct job *ret,
                  struct ms_err *err);

/* The file of that name that lies beside the weights, or above their folder, as a run's do; 0:
 * none does. */
int cli_model_beside(const char *weights, const char *name, char *ret, size_t size);

/* A key of a job for job_override: before, the path as it is from anywhere, quoted, and behind;
 * malloc'ed. MS_E_NOT_FOUND: nothing is there. */
int cli_model_path_key(const char *before, const char *path, const char *behind, char **ret,
                       struct ms_err *err);

/* Puts the job into the folder of its run, under that name. */
int cli_model_keep_job(const char *folder, const struct job *job, struct ms_err *err);

#endif
