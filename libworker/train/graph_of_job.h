/* graph_of_job.h - the graph of a job's network for batches of its data */
#ifndef TRAIN_GRAPH_OF_JOB_H
#define TRAIN_GRAPH_OF_JOB_H

#include "libworker/data/data.h"
#include "libworker/job/job.h"

struct graph;

/* data: what a record is; batch: rows. Forward alone: graph_differentiate is the caller's. Returns
 * owned. MS_E_INVALID: the network does not fit the data. */
int graph_of_job(const struct job *job, const struct loader_info *data, int64_t batch,
                 struct graph **ret, struct ms_err *err);

#endif
