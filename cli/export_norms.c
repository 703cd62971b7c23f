/* export_norms.c - which weights of a run are parts of norms, which torch calls otherwise */
#include "cli/export_norms.h"
#include "cli/model.h"

#include "libworker/network/network.h"
#include "proto/macros.h"

#include <stdlib.h>
#include <string.h>

struct export_norms {
    struct network_layers *layers;
};

struct export_norms *export_norms_open(const char *weights)
{
    static struct job job; /* it has 90 KiB */
    char path[MS_PATH_MAX + 32];
    struct network *network = NULL;
    struct graph *graph = NULL;
    struct export_norms *ret = calloc(1, sizeof(*ret));
    int rc = ret != NULL && cli_model_beside(weights, CLI_JOB_FILE, path, sizeof(path))
                 ? job_load_kept(path, &job, NULL)
                 : MS_E_NOT_FOUND;
    rc = rc < 0 ? rc : job_network_create(&job, &network, NULL);
    rc = rc < 0 ? rc : job_network_build(&job, network, &ret->layers, &graph, NULL);
    graph_destroy(graph);
    network_destroy(network);
    if (rc < 0) {
        export_norms_close(ret);
        return NULL;
    }
    return ret;
}

void export_norms_close(struct export_norms *norms)
{
    if (norms != NULL) {
        network_layers_destroy(norms->layers);
        free(norms);
    }
}

static int is_norm(const char *kind)
{
    static const char *const kinds[] = {"batch_norm", "layer_norm", "group_norm", "instance_norm"};
    int is = 0;
    for (size_t i = 0; i < MS_ARRAY_SIZE(kinds); i++) {
        is |= strcmp(kind, kinds[i]) == 0;
    }
    return is;
}

int export_norms_has(void *arg, const char *name)
{
    const struct export_norms *norms = arg;
    const char *dot = strrchr(name, '.');
    const size_t n = dot != NULL ? (size_t)(dot - name) : 0;
    int has = 0;
    for (size_t i = 0; i < norms->layers->n && n > 0 && !has; i++) {
        const struct network_layer *layer = &norms->layers->at[i];
        has = is_norm(layer->kind) && strncmp(layer->name, name, n) == 0 && layer->name[n] == '\0';
    }
    return has;
}
