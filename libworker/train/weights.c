/* weights.c - initial weights of a replica: those of a file that the job takes */
#include "libworker/job/first_weights.h"
#include "libworker/train/replica.h"

#include <stdlib.h>

static int load_one(struct replica *replica, const struct first_weights *weights, const char *path,
                    int i, struct ms_err *err)
{
    const struct graph *graph = replica_graph(replica);
    const int index = graph_stored_at(graph, i);
    const struct tensor *tensor = graph_tensor(graph, index);
    const size_t count = (size_t)shape_count(&tensor->shape);
    float *values = malloc(count * sizeof(*values));
    if (values == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to read %s of %s", tensor->name, path);
    }
    int rc = first_weights_read(weights, i, values, count, err);
    rc = rc < 0 ? rc : replica_set(replica, index, values, err);
    free(values);
    return rc;
}

int replica_load_weights(struct replica *replica, const char *path, const struct job_take *take,
                         char *ret_words, size_t size, struct ms_err *err)
{
    const struct graph *graph = replica_graph(replica);
    struct first_weights *weights = NULL;
    int rc = first_weights_open(path, take, graph, &weights, err);
    for (int i = 0; rc == MS_OK && i < graph_n_stored(graph); i++) {
        rc = first_weights_has(weights, i) ? load_one(replica, weights, path, i, err) : MS_OK;
    }
    if (rc == MS_OK) {
        first_weights_say(weights, ret_words, size);
    }
    first_weights_close(weights);
    return rc;
}
