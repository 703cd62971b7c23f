/* net.c - a trained network that answers: forward alone, with weights from a file */
#include "libworker/infer/net.h"

#include "libworker/host/memory.h"
#include "libworker/job/first_weights.h"
#include "libworker/plan/spec.h"
#include "libworker/train/graph_of_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct net {
    struct graph *graph;
    struct plan_spec *spec;
    struct plan *plan;
    struct plan_sizes sizes;
    struct plan_buffers buffers; /* owned */
    int is_as_planned;
};

/* ---- plans ---- */

/* Neither backward nor a commit is there that would want weights in a second layout. */
static void drop_mirrors(struct plan_spec *spec)
{
    for (int i = 0; i < spec->n_params; i++) {
        spec->params[i].mirror[0] = '\0';
    }
}

static int has_batch(const struct plan_spec *spec, int64_t batch)
{
    const struct shape *of_plan = &spec->uses[PLAN_EVALUATE].batch;
    return of_plan->n_dims > 0 && of_plan->dim[0] == batch;
}

static int check_name(const struct net *net, struct ms_err *err)
{
    const char *own = graph_name(net->graph);
    return strcmp(net->spec->network, own) == 0
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "it is of network %s, and the job has %s",
                         net->spec->network, own);
}

/* A training that evaluated nothing, or by other batches, has layouts all the same. */
static int obey(struct net *net, const struct net_config *cfg, struct ms_err *err)
{
    int rc = plan_spec_parse(cfg->plan, strlen(cfg->plan), &net->spec, err);
    rc = rc < 0 ? rc : check_name(net, err);
    if (rc < 0) {
        return rc;
    }
    net->is_as_planned = has_batch(net->spec, cfg->batch);
    drop_mirrors(net->spec);
    rc = net->is_as_planned ? MS_OK : plan_choose_use(net->graph, net->spec, PLAN_EVALUATE, err);
    return rc < 0 ? rc : plan_create(net->graph, net->spec, PLAN_EVALUATE, NULL, &net->plan, err);
}

static int choose(struct net *net, const struct net_config *cfg, struct ms_err *err)
{
    const int given = cfg->job->threads;
    struct plan_request request = {.world = 1,
                                   .threads =
                                       given > 0 ? given : plan_threads(net->graph, cfg->threads),
                                   .isa = plan_isa(), /* a plan that was tried may have fixed it */
                                   .recompute = PLAN_RECOMPUTE_OFF};
    request.graphs[PLAN_EVALUATE] = net->graph;
    int rc = plan_choose(&request, &net->spec, err);
    return rc < 0 ? rc : plan_create(net->graph, net->spec, PLAN_EVALUATE, NULL, &net->plan, err);
}

static void note_other(const struct net_config *cfg, const struct ms_err *why)
{
    char text[MS_ERR_TEXT_MAX];
    if (cfg->on_note != NULL) {
        snprintf(text, sizeof(text),
                 "the plan of the training is not taken, and last bits may be others: %.250s",
                 ms_err_text(why));
        cfg->on_note(cfg->arg, text);
    }
}

static int make_plan(struct net *net, const struct net_config *cfg, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    int rc = cfg->plan != NULL ? obey(net, cfg, &why) : MS_E_NOT_FOUND;
    if (rc == MS_E_NOMEM) {
        return ms_fail(err, rc, "%s", why.text);
    }
    if (rc < 0 && cfg->plan != NULL) {
        note_other(cfg, &why);
        plan_spec_destroy(net->spec);
        net->spec = NULL;
        net->is_as_planned = 0;
    }
    rc = rc < 0 ? choose(net, cfg, err) : rc;
    if (rc == MS_OK) {
        plan_get_sizes(net->plan, &net->sizes);
    }
    return rc;
}

/* ---- memory ---- */

static size_t weights_bytes(const struct net *net)
{
    return ms_dtype_size(net->sizes.weights_dtype, net->sizes.weights);
}

static size_t moving_bytes(const struct net *net)
{
    return ms_dtype_size(net->sizes.stats_dtype, net->sizes.stats);
}

uint64_t net_bytes(const struct net *net)
{
    return (uint64_t)net->sizes.arena_bytes + weights_bytes(net) + moving_bytes(net);
}

static int check_memory(const struct net *net, const struct net_config *cfg, struct ms_err *err)
{
    char a[32];
    char b[32];
    const uint64_t room = memory_available();
    const uint64_t bytes = net_bytes(net);
    return bytes <= room ? MS_OK
                         : ms_fail(err, MS_E_FULL,
                                   "the network needs %s of memory for batches of %" PRId64
                                   ", and %s are free; try smaller ones (evaluate.batch_size)",
                                   memory_format(bytes, a, sizeof(a)), cfg->batch,
                                   memory_format(room, b, sizeof(b)));
}

static int allocate(struct net *net, const struct net_config *cfg, struct ms_err *err)
{
    struct plan_buffers *to = &net->buffers;
    int rc = check_memory(net, cfg, err);
    rc = rc < 0 ? rc : memory_alloc(net->sizes.arena_bytes, "values", &to->arena, err);
    rc = rc < 0 ? rc : memory_alloc(weights_bytes(net), "weights", &to->weights, err);
    rc = rc < 0 ? rc : memory_alloc(moving_bytes(net), "moving statistics", &to->moving, err);
    return rc < 0 ? rc : plan_bind(net->plan, to, err);
}

/* ---- weights ---- */

static int read_one(const struct net *net, const struct first_weights *from, int i,
                    struct ms_err *err)
{
    const int index = graph_stored_at(net->graph, i);
    const struct tensor *tensor = graph_tensor(net->graph, index);
    const size_t count = (size_t)shape_count(&tensor->shape);
    float *values = malloc(count * sizeof(*values));
    if (values == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to read %s", tensor->name);
    }
    int rc = first_weights_read(from, i, values, count, err);
    rc = rc < 0 ? rc : plan_set_logical(net->plan, index, MS_F32, values, err);
    free(values);
    return rc;
}

static int read_weights(const struct net *net, const char *path, struct ms_err *err)
{
    struct first_weights *from = NULL;
    int rc = first_weights_open(path, NULL, net->graph, &from, err);
    for (int i = 0; rc == MS_OK && i < graph_n_stored(net->graph); i++) {
        rc = read_one(net, from, i, err);
    }
    first_weights_close(from);
    return rc;
}

/* ---- all of it ---- */

int net_open(const struct net_config *cfg, struct net **ret, struct ms_err *err)
{
    struct net *net = calloc(1, sizeof(*net));
    if (net == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the network");
    }
    int rc = graph_of_job(cfg->job, cfg->data, cfg->batch, &net->graph, err);
    rc = rc < 0 ? rc : make_plan(net, cfg, err);
    rc = rc < 0 ? rc : allocate(net, cfg, err);
    rc = rc < 0 ? rc : read_weights(net, cfg->weights, err);
    if (rc < 0) {
        net_close(net);
        return rc;
    }
    *ret = net;
    return MS_OK;
}

void net_close(struct net *net)
{
    if (net == NULL) {
        return;
    }
    memory_free(net->buffers.arena, net->sizes.arena_bytes);
    memory_free(net->buffers.weights, weights_bytes(net));
    memory_free(net->buffers.moving, moving_bytes(net));
    plan_destroy(net->plan);
    plan_spec_destroy(net->spec);
    graph_destroy(net->graph);
    free(net);
}

int net_run(struct net *net, const struct batch *batch, struct plan_evaluated *ret,
            struct ms_err *err)
{
    return plan_evaluate(net->plan, batch->images.values, batch->labels.values, batch->rows, ret,
                         err);
}

int net_threads(const struct net *net)
{
    return net->spec->threads;
}

int net_is_as_planned(const struct net *net)
{
    return net->is_as_planned;
}
