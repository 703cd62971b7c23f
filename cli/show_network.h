/* show_network.h - a job's network as a table: a line a layer, with what it makes and costs */
#ifndef CLI_SHOW_NETWORK_H
#define CLI_SHOW_NETWORK_H

#include "cli/cli.h"
#include "libworker/graph/roofline.h"
#include "libworker/job/job.h"

/* The table, or the same as an object with --json; rates: of a core, for the time of a step. Needs
 * neither data nor a scheduler. */
int show_network(struct cli *cli, const struct job *job, const struct roofline *rates,
                 struct ms_err *err);

/* The job as its scheduler has it. MS_E_INVALID: this release cannot read it. */
int show_network_job(const Ms__JobInfo *info, struct job *ret, struct ms_err *err);

#endif
