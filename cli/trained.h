/* trained.h - what `msctl eval` and `msctl predict` are asked about: weights, their job, their plan
 *
 *     the folder of a run       job.json, weights.safetensors (or --weights) and plan.txt of it
 *     a job file                with --weights
 *     a file of weights         or the manifest of a checkpoint: with the job.json beside it, or
 *                               above */
#ifndef CLI_TRAINED_H
#define CLI_TRAINED_H

#include "cli/cli.h"
#include "libworker/job/job.h"

/* Options of both commands. */
#define TRAINED_OPTIONS                                                                            \
    {"weights", 'w', "FILE",                                                                       \
     "weights, or a checkpoint by its name; of a run also below its folder", NULL},                \
        {"data", 'd', "PATH", "other data of the same kind, instead of the job's evaluation data", \
         NULL},                                                                                    \
        {"set", 0, "KEY=VALUE", "override a key of the job; may be given again", NULL},            \
    {                                                                                              \
        "plan", 0, "FILE", "the plan of the training, instead of the plan.txt that lies there",    \
            NULL                                                                                   \
    }

struct trained {
    char weights[MS_PATH_MAX + 1];
    char plan[MS_PATH_MAX + 32]; /* "": none */
    struct job job;              /* has_evaluate: the data that are meant */
};

/* Of the first word. MS_E_NOT_FOUND, MS_E_INVALID, MS_E_REFUSED say what to give instead. */
int trained_find(const struct cli_args *args, struct trained *ret, struct ms_err *err);

#endif
