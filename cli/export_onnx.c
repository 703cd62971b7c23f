/* export_onnx.c - the network of a job, with weights from a file, as an ONNX model */
#include "cli/export_onnx.h"

#include "libworker/job/first_weights.h"
#include "libworker/network/network.h"
#include "libworker/onnx/write.h"

struct source {
    const struct graph *graph;
    struct first_weights *weights;
};

static int place_of(const struct graph *graph, const struct tensor *tensor)
{
    int i = 0;
    while (graph_tensor(graph, graph_stored_at(graph, i)) != tensor) {
        i++; /* it is one of them */
    }
    return i;
}

static int get(void *arg, const struct tensor *tensor, float *dst, size_t count, struct ms_err *err)
{
    const struct source *source = arg;
    return first_weights_read(source->weights, place_of(source->graph, tensor), dst, count, err);
}

int export_onnx(const struct job *job, const char *weights, const char *to,
                struct data_exported *ret, struct ms_err *err)
{
    struct network *network = NULL;
    struct graph *graph = NULL;
    struct source source = {NULL, NULL};
    struct onnx_written written;
    int rc = job_network_create(job, &network, err);
    rc = rc < 0 ? rc : job_network_build(job, network, NULL, &graph, err);
    rc = rc < 0 ? rc : first_weights_open(weights, NULL, graph, &source.weights, err);
    if (rc == MS_OK) {
        const struct onnx_weights values = {get, &source};
        source.graph = graph;
        rc = onnx_write(to, graph, &values, &written, err);
    }
    if (rc == MS_OK) {
        *ret = (struct data_exported){written.tensors, written.bytes};
    }
    first_weights_close(source.weights);
    graph_destroy(graph);
    network_destroy(network);
    return rc;
}
