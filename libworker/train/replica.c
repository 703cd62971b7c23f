/* replica.c - one rank's copy of the network: graphs, plans, weights, optimizer state */
#include "libworker/train/replica_impl.h"

#include "libworker/host/memory.h"
#include "libworker/kernel/kernel.h"
#include "libworker/plan/spec.h"
#include "libworker/train/graph_of_job.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t weights_bytes(const struct replica *replica)
{
    return ms_dtype_size(replica->sizes.weights_dtype, replica->sizes.weights);
}

static size_t mirrors_bytes(const struct replica *replica)
{
    return ms_dtype_size(replica->sizes.weights_dtype, replica->sizes.mirrors);
}

static size_t partial_bytes(const struct replica *replica)
{
    const struct job_optimizer *optimizer = &replica->job->optimizer;
    const size_t count = replica->sizes.weights;
    const size_t own = optimizer_scratch(optimizer, count);
    const size_t clip = optimizer->clip_norm > 0 ? kernel_sum_squares_room(count) : 0;
    return (own > clip ? own : clip) * sizeof(double);
}

/* Of gradients and statistics that wait for the next batch of their step. */
static size_t sums_bytes(const struct replica *replica)
{
    return replica->job->accumulate > 1
               ? ms_dtype_size(replica->sizes.exchange_dtype, replica->sizes.exchange)
               : 0;
}

static size_t moving_bytes(const struct replica *replica)
{
    return ms_dtype_size(replica->sizes.stats_dtype, replica->sizes.stats);
}

static int make_graph(const struct replica_config *cfg, int64_t batch, int training,
                      struct graph **ret, struct ms_err *err)
{
    struct graph *graph = NULL;
    int rc = graph_of_job(cfg->job, &cfg->train, batch, &graph, err);
    if (rc == 0 && training) {
        rc = graph_differentiate(graph, err);
    }
    if (rc < 0) {
        graph_destroy(graph);
        return rc;
    }
    *ret = graph;
    return 0;
}

/* A checkpoint has tensors called `moments.fc.weight`, and a network may, too. */
static int check_slot_names(const struct job *job, const struct graph *graph, struct ms_err *err)
{
    const int n = job->has_checkpoint ? graph_n_params(graph) : 0;
    for (int i = 0; i < n; i++) {
        const char *name = graph_tensor(graph, graph_param_at(graph, i))->name;
        for (int s = 0; s < optimizer_slots(&job->optimizer); s++) {
            const char *slot = optimizer_slot_name(&job->optimizer, s);
            char both[2 * GRAPH_NAME_MAX];
            snprintf(both, sizeof(both), "%s.%s", slot, name);
            if (graph_find(graph, both) >= 0) {
                return ms_fail(err, MS_E_INVALID,
                               "network: its parameter %s is called as the %s of %s, which the "
                               "optimizer keeps, is in a checkpoint; give that layer another name",
                               both, slot, name);
            }
        }
    }
    return MS_OK;
}

static int make_graphs(struct replica *replica, const struct replica_config *cfg,
                       struct ms_err *err)
{
    const int64_t batch = cfg->job->batch_size;
    const int64_t batches[PLAN_USES] = {
        [PLAN_TRAIN] = batch,
        [PLAN_TAIL] = cfg->train.last_rows != batch ? cfg->train.last_rows : 0,
        [PLAN_EVALUATE] = cfg->has_evaluate ? cfg->evaluate_batch : 0};
    int rc = 0;
    for (int i = 0; i < PLAN_USES && rc == 0; i++) {
        replica->uses[i].batch = batches[i];
        if (batches[i] > 0) {
            rc = make_graph(cfg, batches[i], i != PLAN_EVALUATE, &replica->uses[i].graph, err);
        }
    }
    return rc < 0 ? rc : check_slot_names(cfg->job, replica->uses[PLAN_TRAIN].graph, err);
}

int replica_create(const struct replica_config *cfg, struct replica **ret, struct ms_err *err)
{
    struct replica *replica = calloc(1, sizeof(*replica));
    if (replica == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the network");
    }
    replica->cfg = *cfg;
    replica->job = cfg->job;
    replica->n_slots = optimizer_slots(&cfg->job->optimizer);
    int rc = make_graphs(replica, cfg, err);
    if (rc < 0) {
        replica_destroy(replica);
        return rc;
    }
    *ret = replica;
    return 0;
}

/* ---- plans ---- */

static void drop_plans(struct replica *replica)
{
    for (int i = 0; i < PLAN_USES; i++) {
        plan_destroy(replica->uses[i].plan);
        replica->uses[i].plan = NULL;
    }
    replica->arena_bytes = 0;
}

static void drop_spec(struct replica *replica)
{
    drop_plans(replica);
    pieces_fini(&replica->pieces);
    plan_spec_destroy(replica->spec);
    replica->spec = NULL;
}

static int make_plan(struct replica *replica, enum plan_use which, struct ms_err *err)
{
    struct use *use = &replica->uses[which];
    int rc = plan_create(use->graph, replica->spec, which, replica->cfg.cancel, &use->plan, err);
    if (rc < 0) {
        return rc;
    }
    struct plan_sizes sizes;
    plan_get_sizes(use->plan, &sizes);
    if (sizes.arena_bytes > replica->arena_bytes) {
        replica->arena_bytes = sizes.arena_bytes;
    }
    if (which == PLAN_TRAIN) {
        replica->sizes = sizes;
    } else if (which == PLAN_TAIL) {
        assert(sizes.exchange == replica->sizes.exchange &&
               sizes.n_buckets == replica->sizes.n_buckets);
    }
    return 0;
}

/* Of the spec. */
static int make_plans(struct replica *replica, struct ms_err *err)
{
    int rc = 0;
    pieces_fini(&replica->pieces);
    for (int i = 0; i < PLAN_USES && rc == 0; i++) {
        rc = replica->uses[i].graph != NULL ? make_plan(replica, (enum plan_use)i, err) : 0;
    }
    rc = rc < 0
             ? rc
             : pieces_create(replica->job, replica->spec, replica->sizes.stats,
                             optimizer_is_single(&replica->job->optimizer), &replica->pieces, err);
    rc = rc < 0 ? rc
                : optimizer_check(&replica->job->optimizer, replica->sizes.weights_dtype,
                                  replica->sizes.exchange_dtype, err);
    if (rc < 0) {
        drop_spec(replica);
    }
    return rc;
}

int replica_choose(struct replica *replica, const struct replica_wish *wish, struct ms_err *err)
{
    const struct graph *train = replica->uses[PLAN_TRAIN].graph;
    int is_fixed = replica->job->threads > 0;
    struct plan_request request = {.world = replica->cfg.world,
                                   .threads = is_fixed ? wish->threads
                                                       : plan_threads(train, wish->threads),
                                   .mixed_caches = wish->mixed_caches,
                                   .isa = wish->isa,
                                   .recompute = PLAN_RECOMPUTE_AUTO,
                                   .mirrors = wish->mirrors,
                                   .memory_max = wish->memory_max};
    for (int i = 0; i < PLAN_USES; i++) {
        request.graphs[i] = replica->uses[i].graph;
    }
    drop_spec(replica);
    int rc = plan_choose(&request, &replica->spec, err);
    return rc < 0 ? rc : make_plans(replica, err);
}

/* What the job says in other words than the graphs, which plan_create holds against the spec. */
static int check_job(const struct replica *replica, const struct plan_spec *spec,
                     struct ms_err *err)
{
    const char *network = graph_name(replica_graph(replica));
    const int threads = replica->job->threads;
    if (strcmp(spec->network, network) != 0) {
        return ms_fail(err, MS_E_INVALID, "plan line %d: network %s: the job trains %s",
                       plan_spec_line(spec, PLAN_ITEM_NETWORK, 0), spec->network, network);
    }
    if (spec->world != replica->cfg.world) {
        return ms_fail(err, MS_E_INVALID, "plan line %d: world %d: the job trains with %d rank%s",
                       plan_spec_line(spec, PLAN_ITEM_NETWORK, 1), spec->world, replica->cfg.world,
                       replica->cfg.world == 1 ? "" : "s");
    }
    if (threads > 0 && spec->threads != threads) {
        return ms_fail(err, MS_E_INVALID, "plan line %d: threads %d: the job says %d",
                       plan_spec_line(spec, PLAN_ITEM_NETWORK, 2), spec->threads, threads);
    }
    return 0;
}

static int64_t batch_of(const struct replica *replica, enum plan_use use)
{
    const struct graph *graph = replica->uses[use].graph;
    return graph != NULL ? graph_tensor(graph, graph_data_index(graph))->shape.dim[0] : 0;
}

/* Before plan_create holds whole shapes against them: what a person would set otherwise. */
static int check_batch(const struct replica *replica, const struct plan_spec *spec,
                       enum plan_use use, struct ms_err *err)
{
    const int64_t job = batch_of(replica, use);
    const int64_t plan = spec->uses[use].batch.n_dims > 0 ? spec->uses[use].batch.dim[0] : 0;
    return plan == job ? 0
                       : ms_fail(err, MS_E_INVALID,
                                 "plan line %d: use %s has batches of %" PRId64
                                 ", and the job %" PRId64 ": its batch_size is another one",
                                 plan_spec_op_line(spec, use, -1), plan_use_name(use), plan, job);
}

static int check_uses(const struct replica *replica, const struct plan_spec *spec,
                      struct ms_err *err)
{
    int rc = check_batch(replica, spec, PLAN_TRAIN, err);
    if (rc < 0) {
        return rc;
    }
    for (int i = 0; i < PLAN_USES; i++) {
        const enum plan_use use = (enum plan_use)i;
        const int is_needed = replica->uses[i].graph != NULL;
        if (is_needed != (spec->uses[i].batch.n_dims > 0)) {
            return ms_fail(err, MS_E_INVALID, "plan line %d: use %s %s",
                           plan_spec_op_line(spec, use, -1), plan_use_name(use),
                           is_needed ? "is missing before it, and the job needs it: another "
                                       "data set, drop_remainder or evaluate"
                                     : "is none that the job has: another data set, "
                                       "drop_remainder or evaluate");
        }
    }
    return 0;
}

int replica_obey(struct replica *replica, const char *text, struct ms_err *err)
{
    drop_spec(replica);
    int rc = plan_spec_parse(text, strlen(text), &replica->spec, err);
    rc = rc < 0 ? rc : check_job(replica, replica->spec, err);
    rc = rc < 0 ? rc : check_uses(replica, replica->spec, err);
    if (rc < 0) {
        drop_spec(replica);
        return rc;
    }
    return make_plans(replica, err);
}

int replica_recomputes(const struct replica *replica)
{
    const struct plan_spec_use *use = &replica->spec->uses[PLAN_TRAIN];
    int again = 0;
    for (int i = 0; i < use->n_ops; i++) {
        again |= use->ops[i].again;
    }
    return again;
}

int replica_recompute(struct replica *replica, struct ms_err *err)
{
    if (replica_recomputes(replica)) {
        return 0;
    }
    drop_plans(replica);
    int rc = 0;
    for (int i = PLAN_TRAIN; i <= PLAN_TAIL && rc == 0; i++) {
        const struct graph *graph = replica->uses[i].graph;
        rc = graph != NULL ? plan_recompute(graph, replica->spec, (enum plan_use)i, err) : 0;
    }
    if (rc < 0) {
        drop_spec(replica);
        return rc;
    }
    return make_plans(replica, err);
}

int replica_drop_mirrors(struct replica *replica, struct ms_err *err)
{
    if (replica->sizes.mirrors == 0) {
        return 0;
    }
    drop_plans(replica);
    for (int i = 0; i < replica->spec->n_params; i++) {
        replica->spec->params[i].mirror[0] = '\0';
    }
    return make_plans(replica, err);
}

int replica_plan_text(const struct replica *replica, char **ret, struct ms_err *err)
{
    size_t size = 0;
    return plan_spec_format(replica->spec, ret, &size, err);
}

void replica_destroy(struct replica *replica)
{
    if (replica == NULL) {
        return;
    }
    const size_t arena_bytes = replica->arena_bytes;
    drop_spec(replica);
    for (int i = 0; i < PLAN_USES; i++) {
        graph_destroy(replica->uses[i].graph);
    }
    memory_free(replica->arena, arena_bytes);
    memory_free(replica->weights, weights_bytes(replica));
    memory_free(replica->mirrors, mirrors_bytes(replica));
    memory_free(replica->moving, moving_bytes(replica));
    memory_free(replica->partial, partial_bytes(replica));
    memory_free(replica->sums, sums_bytes(replica));
    for (int i = 0; i < replica->n_slots; i++) {
        memory_free(replica->slots[i], weights_bytes(replica));
    }
    free(replica);
}

void replica_sizes(const struct replica *replica, struct plan_sizes *ret)
{
    *ret = replica->sizes;
}

int replica_threads(const struct replica *replica)
{
    return replica->spec->threads;
}

struct plan_bucket replica_bucket(const struct replica *replica, int bucket)
{
    const struct plan_bucket whole = plan_get_bucket(replica->uses[PLAN_TRAIN].plan, bucket);
    const int is_stats = bucket == 0 && replica->sizes.stats > 0;
    return is_stats ? whole : pieces_bucket(&replica->pieces, bucket, whole, replica->sizes.stats);
}

uint64_t replica_bytes(const struct replica *replica)
{
    return (uint64_t)replica->arena_bytes +
           (uint64_t)weights_bytes(replica) * (uint64_t)(1 + replica->n_slots) +
           (uint64_t)mirrors_bytes(replica) + (uint64_t)moving_bytes(replica) +
           (uint64_t)sums_bytes(replica);
}

const struct graph *replica_graph_of(const struct replica *replica, enum plan_use use)
{
    return replica->uses[use].graph;
}

const struct graph *replica_graph(const struct replica *replica)
{
    return replica->uses[PLAN_TRAIN].graph;
}

int replica_plan_sha256(const struct replica *replica, char ret_hex[MS_SHA256_HEX],
                        struct ms_err *err)
{
    return plan_spec_digest(replica->spec, ret_hex, err);
}

int replica_allocate(struct replica *replica, struct ms_err *err)
{
    int rc = memory_alloc(replica->arena_bytes, "activations", &replica->arena, err);
    if (rc == 0) {
        rc = memory_alloc(weights_bytes(replica), "weights", &replica->weights, err);
    }
    if (rc == 0) {
        rc = memory_alloc(mirrors_bytes(replica), "weights in a second layout", &replica->mirrors,
                          err);
    }
    if (rc == 0) {
        rc = memory_alloc(moving_bytes(replica), "moving statistics", &replica->moving, err);
    }
    for (int i = 0; rc == 0 && i < replica->n_slots; i++) {
        rc = memory_alloc(weights_bytes(replica), optimizer_slot_name(&replica->job->optimizer, i),
                          &replica->slots[i], err);
    }
    if (rc == 0 && partial_bytes(replica) > 0) {
        rc = memory_alloc(partial_bytes(replica), "sums of gradients", &replica->partial, err);
    }
    if (rc == 0 && sums_bytes(replica) > 0) {
        rc = memory_alloc(sums_bytes(replica), "gradients that are added up", &replica->sums, err);
    }
    return rc;
}

static int init_tensor(struct replica *replica, int index, float *scratch, struct ms_err *err)
{
    const struct tensor *tensor = graph_tensor(replica_graph(replica), index);
    graph_init_values(tensor, replica->job->seed, scratch);
    return replica_set(replica, index, scratch, err);
}

int replica_init(struct replica *replica, struct ms_err *err)
{
    const struct graph *graph = replica_graph(replica);
    int n = graph_n_stored(graph);
    size_t largest = 1;
    for (int i = 0; i < n; i++) {
        int index = graph_stored_at(graph, i);
        size_t count = (size_t)shape_count(&graph_tensor(graph, index)->shape);
        largest = count > largest ? count : largest;
    }
    float *scratch = malloc(largest * sizeof(*scratch));
    if (scratch == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for initial values");
    }
    int rc = 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        int index = graph_stored_at(graph, i);
        rc = init_tensor(replica, index, scratch, err);
    }
    free(scratch);
    return rc;
}

/* What the training is for: the weights, or their average. */
static void *result_weights(const struct replica *replica)
{
    const int slot = optimizer_average_slot(&replica->job->optimizer);
    return slot >= 0 ? replica->slots[slot] : replica->weights;
}

void replica_start_average(struct replica *replica)
{
    if (result_weights(replica) != replica->weights) {
        memcpy(result_weights(replica), replica->weights, weights_bytes(replica));
    }
}

int replica_bind(struct replica *replica, void *exchange, struct ms_err *err)
{
    replica->exchange = exchange;
    for (int i = 0; i < PLAN_USES; i++) {
        if (replica->uses[i].plan == NULL) {
            continue;
        }
        struct plan_buffers buffers = {.weights = i == PLAN_EVALUATE ? result_weights(replica)
                                                                     : replica->weights,
                                       .mirrors = replica->mirrors,
                                       .moving = replica->sizes.stats > 0 ? replica->moving : NULL,
                                       .exchange = i == PLAN_EVALUATE ? NULL : exchange,
                                       .arena = replica->arena};
        int rc = plan_bind(replica->uses[i].plan, &buffers, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

void *replica_weights_to_write(struct replica *replica)
{
    replica->has_mirrors = 0;
    return replica->weights;
}

/* NULL: there is no such buffer. */
static void *const *state_buffer(const struct replica *replica, int i, size_t *ret_bytes)
{
    *ret_bytes = i == 1 ? moving_bytes(replica) : weights_bytes(replica);
    if (i < 2) {
        return i == 0 ? &replica->weights : &replica->moving;
    }
    return i - 2 < replica->n_slots ? &replica->slots[i - 2] : NULL;
}

int replica_state(struct replica *replica, int i, void **ret, size_t *ret_bytes)
{
    void *const *buffer = state_buffer(replica, i, ret_bytes);
    if (buffer != NULL) {
        *ret = i == 0 ? replica_weights_to_write(replica) : *buffer;
    }
    return buffer != NULL;
}

int replica_view_state(const struct replica *replica, int i, const void **ret, size_t *ret_bytes)
{
    void *const *buffer = state_buffer(replica, i, ret_bytes);
    if (buffer != NULL) {
        *ret = *buffer;
    }
    return buffer != NULL;
}

void replica_clear_state(struct replica *replica)
{
    void *state = NULL;
    size_t bytes = 0;
    for (int i = 0; replica_state(replica, i, &state, &bytes); i++) {
        memset(state, 0, bytes);
    }
}

void *replica_scratch(struct replica *replica, size_t *ret_bytes)
{
    *ret_bytes = replica->arena_bytes;
    return replica->arena;
}

int replica_get(struct replica *replica, int tensor, float *ret, struct ms_err *err)
{
    struct plan *plan = replica->uses[PLAN_TRAIN].plan;
    return graph_tensor(replica_graph(replica), tensor)->role == TENSOR_STATE
               ? plan_get_logical(plan, tensor, MS_F32, ret, err)
               : plan_get_logical_from(plan, tensor, result_weights(replica), MS_F32, ret, err);
}

int replica_set(struct replica *replica, int tensor, const float *values, struct ms_err *err)
{
    return plan_set_logical(replica->uses[PLAN_TRAIN].plan, tensor, MS_F32, values, err);
}

int replica_set_in(struct replica *replica, int tensor, void *buffer, const float *values,
                   struct ms_err *err)
{
    return plan_set_logical_to(replica->uses[PLAN_TRAIN].plan, tensor, buffer, MS_F32, values, err);
}

int replica_layout(const struct replica *replica, struct plan_layout **ret, struct ms_err *err)
{
    return plan_layout_create(replica->uses[PLAN_TRAIN].plan, ret, err);
}
