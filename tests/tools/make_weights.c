/* make_weights.c - initial weights of the reference runs as a safetensors file
 *
 *     make-weights mnist|linear|resnet50 FILE
 *
 * The scheme is that of reference/README.md in the shared folder: uni(stream, i, bound) over each
 * tensor in C order. States (moving mean, moving variance) are left to the network. */
#include "libworker/data/safetensors.h"
#include "libworker/network/network.h"
#include "proto/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill_uniform(float *values, int64_t count, uint64_t stream, double bound)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = (float)((2.0 * ms_rng_unit(stream, (uint64_t)i) - 1.0) * bound);
    }
}

/* k: number of the parameter in definition order. */
static void fill_mnist(const struct tensor *t, int k, float *values, int64_t count)
{
    (void)k;
    fill_uniform(values, count, 1, t->shape.n_dims == 2 ? 0.03 : 0);
}

static void fill_linear(const struct tensor *t, int k, float *values, int64_t count)
{
    (void)t;
    (void)k;
    for (int64_t i = 0; i < count; i++) {
        values[i] = 0.02F;
    }
}

static void fill_resnet50(const struct tensor *t, int k, float *values, int64_t count)
{
    const int64_t *d = t->shape.dim;
    const char *dot = strrchr(t->name, '.');
    double bound = dot != NULL && strcmp(dot, ".gamma") == 0 ? 0.07 : 0;
    if (t->shape.n_dims > 1) {
        double area = t->shape.n_dims == 4 ? (double)(d[2] * d[3]) : 1;
        bound = sqrt(6.0 / ((double)(d[0] + d[1]) * area));
    }
    fill_uniform(values, count, 100 + (uint64_t)k, bound);
}

static const struct {
    const char *network;
    struct network_input input;
    enum network_loss loss;
    void (*fill)(const struct tensor *t, int k, float *values, int64_t count);
} networks[] = {
    {"mnist",
     {.batch = 1, .channels = 1, .height = 28, .width = 28, .classes = 10},
     NETWORK_LOSS_SOFTMAX_CE,
     fill_mnist},
    {"linear",
     {.batch = 1, .channels = 2, .height = 1, .width = 1, .classes = 1},
     NETWORK_LOSS_MSE,
     fill_linear},
    {"resnet50",
     {.batch = 1, .channels = 3, .height = 64, .width = 64, .classes = 10},
     NETWORK_LOSS_SOFTMAX_CE,
     fill_resnet50},
};

static int put(struct safetensors_writer *writer, size_t row, const struct graph *graph, int k,
               struct ms_err *err)
{
    const struct tensor *t = graph_tensor(graph, graph_param_at(graph, k));
    int64_t count = shape_count(&t->shape);
    float *values = malloc((size_t)count * sizeof(*values));
    if (values == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %s", t->name);
    }
    networks[row].fill(t, k, values, count);
    int rc = safetensors_put(writer, t->name, values, (size_t)count, err);
    free(values);
    return rc;
}

static int write_weights(size_t row, const struct graph *graph, const char *path,
                         struct ms_err *err)
{
    int n = graph_n_params(graph);
    struct safetensors_entry *entries = calloc((size_t)n, sizeof(*entries));
    struct safetensors_writer *writer = NULL;
    if (entries == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %d parameters", n);
    }
    for (int k = 0; k < n; k++) {
        const struct tensor *t = graph_tensor(graph, graph_param_at(graph, k));
        snprintf(entries[k].name, sizeof(entries[k].name), "%s", t->name);
        entries[k].n_dims = t->shape.n_dims;
        memcpy(entries[k].dim, t->shape.dim, (size_t)t->shape.n_dims * sizeof(int64_t));
    }
    int rc = safetensors_create(path, entries, (size_t)n, NULL, 0, &writer, err);
    for (int k = 0; k < n && rc == MS_OK; k++) {
        rc = put(writer, row, graph, k, err);
    }
    if (rc == MS_OK) {
        rc = safetensors_finish(writer, NULL, err);
    } else {
        safetensors_abandon(writer);
    }
    free(entries);
    return rc;
}

int main(int argc, char **argv)
{
    size_t row = 0;
    while (argc == 3 && row < MS_ARRAY_SIZE(networks) && strcmp(networks[row].network, argv[1])) {
        row++;
    }
    if (argc != 3 || row == MS_ARRAY_SIZE(networks)) {
        fprintf(stderr, "usage: make-weights mnist|linear|resnet50 FILE\n");
        return 2;
    }
    struct graph *graph = NULL;
    struct ms_err err = {0, ""};
    int rc = network_build_known(argv[1], &networks[row].input, networks[row].loss, &graph, &err);
    if (rc == MS_OK) {
        rc = write_weights(row, graph, argv[2], &err);
    }
    graph_destroy(graph);
    if (rc < 0) {
        fprintf(stderr, "make-weights: %s\n", err.text);
        return 1;
    }
    return 0;
}
