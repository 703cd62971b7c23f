/* graph_of_job.c - the graph of a job's network for batches of its data */
#include "libworker/train/graph_of_job.h"

#include "libworker/network/network.h"

int graph_of_job(const struct job *job, const struct loader_info *data, int64_t batch,
                 struct graph **ret, struct ms_err *err)
{
    int64_t classes = data->target_width;
    if (data->target_width == 0) {
        classes = job->classes > 0 ? job->classes : data->classes;
    }
    struct network_input input = {.batch = batch,
                                  .channels = data->channels,
                                  .height = data->height,
                                  .width = data->width,
                                  .classes = classes,
                                  .tokens = data->tokens};
    job_put_loss(job, &input);
    struct network *network = NULL;
    int rc = job_network_create(job, &network, err);
    rc = rc < 0 ? rc : network_build(network, &input, (enum network_loss)job->loss, ret, err);
    network_destroy(network);
    return rc;
}
