/* step_time.h - how long a training step of a job may take on a core, and of which layers; pure */
#ifndef CLI_STEP_TIME_H
#define CLI_STEP_TIME_H

#include "libworker/graph/roofline.h"
#include "libworker/job/job.h"
#include "libworker/network/network.h"

/* Seconds of each layer into ret_seconds, of layers->n: its ops forward and backward, in all
 * batches of a step, and the optimizer's pass over its parameters; the last layer has the loss,
 * too. graph is differentiated. Neither data nor other ranks take time. */
int cli_step_time(const struct job *job, const struct network_layers *layers,
                  const struct graph *graph, const struct roofline *rates, double *ret_seconds,
                  struct ms_err *err);

#endif
