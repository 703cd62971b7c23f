/* plan.c - the life of a plan: create, bind, run */
#include "libworker/host/team_room.h"
#include "libworker/plan/internal.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int plan_cap_isa(const char *isa, struct ms_err *err)
{
    return dn_isa_cap(isa, err);
}

int plan_set_isa(const char *isa, struct ms_err *err)
{
    return dn_isa_set(isa, err);
}

const char *plan_isa(void)
{
    return dn_isa();
}

const char *plan_library(void)
{
    return dn_version();
}

/* ---- create -------------------------------------------------------------------------------------
 */

static int touches_batch(const struct step *step)
{
    for (int k = 0; k < step->n_operands; k++) {
        enum place place = step->operands[k].place;
        if (place == PLACE_DATA || place == PLACE_LABEL) {
            return 1;
        }
    }
    return 0;
}

static int list_batch_steps(struct plan *plan, struct ms_err *err)
{
    plan->batch_steps = malloc(((size_t)plan->n_steps + 1) * sizeof(int));
    if (plan->batch_steps == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d steps", plan->n_steps);
    }
    for (int s = 0; s < plan->n_steps; s++) {
        if (touches_batch(&plan->steps[s])) {
            plan->batch_steps[plan->n_batch_steps++] = s;
        }
    }
    return 0;
}

static int check_leaves(const struct graph *graph, struct ms_err *err)
{
    return graph_loss(graph) >= 0 && graph_data_index(graph) >= 0 && graph_label_index(graph) >= 0
               ? 0
               : ms_fail(err, MS_E_INVALID, "plan: graph %s lacks data, labels or a loss",
                         graph_name(graph));
}

/* Of the calling thread: settings of OpenMP are its own. A team with fewer threads than the code
 * was made for would wait in oneDNN's barriers for ever, and where one of them cannot be made
 * OpenMP ends the process. */
int plan_take_team(int threads, struct ms_err *err)
{
    omp_set_dynamic(0);
    if (omp_get_max_active_levels() < 1) {
        omp_set_max_active_levels(1);
    }
    if (omp_get_max_threads() != threads) {
        omp_set_num_threads(threads);
    }
    return omp_get_thread_limit() >= threads
               ? team_room_take(threads, err)
               : ms_fail(err, MS_E_UNSUPPORTED,
                         "OpenMP gives this process %d thread%s, and a rank has %d: raise "
                         "OMP_THREAD_LIMIT, or lower `threads`",
                         omp_get_thread_limit(), omp_get_thread_limit() == 1 ? "" : "s", threads);
}

int plan_begin(const struct graph *graph, const struct plan_spec *spec, enum plan_use use,
               struct plan **ret, struct ms_err *err)
{
    int rc = check_leaves(graph, err);
    struct plan *plan = rc < 0 ? NULL : calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return rc < 0 ? rc
                      : ms_fail(err, MS_E_NOMEM, "plan: no memory for graph %s", graph_name(graph));
    }
    plan->graph = graph;
    plan->training = use != PLAN_EVALUATE;
    plan->threads = spec->threads;
    plan->bucket_bytes_max = (size_t)spec->bucket_bytes;
    plan->stats_buffer = -1;
    plan->n_forward_ops = graph_n_forward_ops(graph);
    rc = plan_take_team(spec->threads, err);
    rc = rc < 0 ? rc : plan_set_dtypes(plan, spec->precision, err);
    rc = rc < 0 ? rc : dn_create(&plan->dn, err);
    if (rc < 0) {
        plan_destroy(plan);
        return rc;
    }
    *ret = plan;
    return 0;
}

/* What the spec has made again in backward, and lifetimes. */
static int schedule(struct plan *plan, const struct plan_spec_use *use, struct ms_err *err)
{
    unsigned char *again = calloc((size_t)graph_n_ops(plan->graph) + 1, 1);
    if (again == NULL) {
        return ms_fail(err, MS_E_NOMEM, "plan: no memory for %d ops", use->n_ops);
    }
    int n_again = 0;
    for (int i = 0; i < use->n_ops; i++) {
        n_again += use->ops[i].again;
        again[use->ops[i].op] = (unsigned char)use->ops[i].again;
    }
    int rc = memory_plan(plan, n_again > 0 ? again : NULL, err);
    free(again);
    return rc < 0 ? rc : params_buckets(plan, err);
}

static int fill(struct plan *plan, const struct plan_spec *spec, enum plan_use use,
                struct ms_err *err)
{
    int rc = check_graph(plan->graph, spec, use, err);
    rc = rc < 0 ? rc : plan_lower(plan, spec, use, err);
    rc = rc < 0 ? rc : schedule(plan, &spec->uses[use], err);
    rc = rc < 0 ? rc : check_plan(plan, spec, use, err);
    return rc < 0 ? rc : list_batch_steps(plan, err);
}

int plan_create(const struct graph *graph, const struct plan_spec *spec, enum plan_use use,
                const atomic_int *cancel, struct plan **ret, struct ms_err *err)
{
    struct plan *plan = NULL;
    int rc = check_machine(spec, err);
    rc = rc < 0 ? rc : check_team(spec, err);
    rc = rc < 0 ? rc : check_precision(graph, spec, err);
    rc = rc < 0 ? rc : plan_begin(graph, spec, use, &plan, err);
    if (rc < 0) {
        return rc;
    }
    plan->cancel = cancel;
    rc = fill(plan, spec, use, err);
    if (rc < 0) {
        plan_destroy(plan);
        return rc;
    }
    *ret = plan;
    return 0;
}

void plan_destroy(struct plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (int s = 0; s < plan->n_steps; s++) {
        dn_prim_destroy(plan->steps[s].prim);
    }
    free(plan->steps);
    free(plan->buffers);
    free(plan->params);
    free(plan->stats);
    free(plan->param_of);
    free(plan->stat_of);
    free(plan->buckets);
    free(plan->bucket_step);
    free(plan->batch_steps);
    dn_destroy(plan->dn);
    free(plan);
}

void plan_get_sizes(const struct plan *plan, struct plan_sizes *ret)
{
    *ret = (struct plan_sizes){.weights = plan->weights_count,
                               .stats = plan->stats_count,
                               .exchange = plan->stats_count + plan->weights_count,
                               .weights_dtype = plan->weights_dtype,
                               .stats_dtype = plan->stats_dtype,
                               .exchange_dtype = plan->exchange_dtype,
                               .mirrors = plan->mirrors_count,
                               .arena_bytes = plan->arena_bytes,
                               .n_buckets = plan->n_buckets,
                               .reorders = plan->reorders};
}

struct plan_bucket plan_get_bucket(const struct plan *plan, int bucket)
{
    return plan->buckets[bucket];
}

/* ---- bind ---------------------------------------------------------------------------------------
 */

static void *element(void *base, enum ms_dtype dtype, size_t index)
{
    return (char *)base + ms_dtype_size(dtype, index);
}

void *plan_mirror(const struct plan *plan, const struct plan_param *param)
{
    return element(plan->bound.mirrors, plan->weights_dtype, param->mirror_offset);
}

static void *gradient(const struct plan *plan, const struct plan_param *param)
{
    return element(plan->bound.exchange, plan->exchange_dtype, plan->stats_count + param->offset);
}

static void *address(const struct plan *plan, struct operand at)
{
    const struct plan_buffers *b = &plan->bound;
    char *arena = b->arena;
    switch (at.place) {
    case PLACE_WEIGHTS:
        return element(b->weights, plan->weights_dtype, plan->params[at.index].offset);
    case PLACE_MIRROR:
        return plan_mirror(plan, &plan->params[at.index]);
    case PLACE_EXCHANGE:
        return gradient(plan, &plan->params[at.index]);
    case PLACE_MOVING:
        return element(b->moving, plan->stats_dtype, plan->stats[at.index].offset);
    case PLACE_STATS:
        return element(arena + plan->buffers[plan->stats_buffer].offset, plan->stats_dtype,
                       plan->stats[at.index].offset);
    case PLACE_ARENA:
        return arena + plan->buffers[at.index].offset;
    case PLACE_NONE:
    case PLACE_DATA:
    case PLACE_LABEL:
        break;
    }
    return NULL;
}

static int check_buffers(const struct plan *plan, const struct plan_buffers *buffers,
                         struct ms_err *err)
{
    const struct {
        const char *name;
        const void *data;
        int is_needed;
    } rows[] = {
        {"weights", buffers->weights, plan->weights_count > 0},
        {"mirrors", buffers->mirrors, plan->mirrors_count > 0},
        {"moving", buffers->moving, plan->stats_count > 0 && !plan->training},
        {"exchange", buffers->exchange, plan->training},
        {"arena", buffers->arena, plan->arena_bytes > 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].data == NULL && rows[i].is_needed) {
            return ms_fail(err, MS_E_INVALID, "plan_bind: %s is NULL", rows[i].name);
        }
        if ((uintptr_t)rows[i].data % PLAN_ALIGN != 0) {
            return ms_fail(err, MS_E_INVALID, "plan_bind: %s is not aligned to %d bytes",
                           rows[i].name, PLAN_ALIGN);
        }
    }
    return 0;
}

static int bind_step(const struct plan *plan, struct step *step)
{
    int rc = 0;
    for (int k = 0; k < step->n_operands && rc == 0; k++) {
        step->ptr[k] = address(plan, step->operands[k]);
        if (step->prim != NULL && step->ptr[k] != NULL) {
            rc = dn_prim_set(step->prim, k, step->ptr[k]);
        }
    }
    return rc;
}

/* What no primitive writes: the rest of a gradient's last cache line. Optimizers run over it. */
static void clear_gaps(const struct plan *plan)
{
    for (int i = 0; i < plan->n_params; i++) {
        const struct plan_param *p = &plan->params[i];
        size_t used = params_used(plan, p);
        memset(element(gradient(plan, p), plan->exchange_dtype, used), 0,
               ms_dtype_size(plan->exchange_dtype, p->count - used));
    }
}

int plan_bind(struct plan *plan, const struct plan_buffers *buffers, struct ms_err *err)
{
    int rc = check_buffers(plan, buffers, err);
    if (rc < 0) {
        return rc;
    }
    plan->bound = *buffers;
    for (int s = 0; s < plan->n_steps && rc == 0; s++) {
        rc = bind_step(plan, &plan->steps[s]);
    }
    if (rc < 0) {
        return ms_fail(err, rc, "plan_bind: oneDNN refuses an address");
    }
    if (buffers->exchange != NULL) {
        clear_gaps(plan);
    }
    plan->is_bound = 1;
    return 0;
}

/* ---- run ----------------------------------------------------------------------------------------
 */

static int set_batch(struct plan *plan, const void *data, const void *labels)
{
    union { /* steps hold operands that are read and operands that are written alike */
        const void *in;
        void *out;
    } batch[2] = {{data}, {labels}};
    int rc = 0;
    for (int i = 0; i < plan->n_batch_steps && rc == 0; i++) {
        struct step *step = &plan->steps[plan->batch_steps[i]];
        for (int k = 0; k < step->n_operands && rc == 0; k++) {
            enum place place = step->operands[k].place;
            void *ptr = batch[place == PLACE_LABEL].out;
            if ((place == PLACE_DATA || place == PLACE_LABEL) && step->ptr[k] != ptr) {
                step->ptr[k] = ptr;
                rc = step->prim != NULL ? dn_prim_set(step->prim, k, ptr) : 0;
            }
        }
    }
    return rc;
}

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int plan_run_step(struct plan *plan, int s)
{
    if (plan->seconds == NULL) {
        return step_run(plan, &plan->steps[s]);
    }
    double begin = seconds_now();
    int rc = step_run(plan, &plan->steps[s]);
    plan->seconds[s] += seconds_now() - begin;
    return rc;
}

static int run_steps(struct plan *plan, plan_bucket_fn *on_bucket, void *arg)
{
    const atomic_int *cancel = plan->cancel;
    int bucket = 0;
    int rc = 0;
    for (int s = plan->n_mirror_steps; s < plan->n_steps && rc == 0; s++) {
        if (cancel != NULL && atomic_load_explicit(cancel, memory_order_relaxed) != 0) {
            return MS_E_ABORTED;
        }
        rc = plan_run_step(plan, s);
        while (rc == 0 && bucket < plan->n_buckets && plan->bucket_step[bucket] <= s) {
            if (on_bucket != NULL) {
                on_bucket(arg, bucket);
            }
            bucket++;
        }
    }
    return rc;
}

static int run(struct plan *plan, const void *data, const void *labels, plan_bucket_fn *on_bucket,
               void *arg, struct ms_err *err)
{
    if (!plan->is_bound) {
        return ms_fail(err, MS_E_INVALID, "plan of graph %s: call plan_bind first",
                       graph_name(plan->graph));
    }
    if (data == NULL || labels == NULL) {
        return ms_fail(err, MS_E_INVALID, "plan of graph %s: no data or no labels",
                       graph_name(plan->graph));
    }
    int rc = plan_take_team(plan->threads, err);
    if (rc < 0) {
        return rc;
    }
    unsigned mode = kernel_float_enter(plan->threads);
    rc = set_batch(plan, data, labels);
    rc = rc < 0 ? rc : run_steps(plan, on_bucket, arg);
    kernel_float_leave(mode);
    if (rc == MS_E_ABORTED) {
        return ms_fail(err, rc, "plan of graph %s: the step was given up", graph_name(plan->graph));
    }
    if (rc == MS_E_INVALID) {
        return ms_fail(err, rc,
                       "plan of graph %s: the batch has a token %g, and the embedding %lld words: "
                       "tokens are whole numbers from 0 to %lld",
                       graph_name(plan->graph), plan->bad_token, (long long)plan->words,
                       (long long)plan->words - 1);
    }
    return rc < 0 ? ms_fail(err, MS_E_FAILED, "plan of graph %s: a oneDNN primitive failed",
                            graph_name(plan->graph))
                  : 0;
}

void plan_set_draw(struct plan *plan, const struct plan_draw *draw)
{
    plan->draw = *draw;
}

void plan_set_others(struct plan *plan, const int32_t *others, const float *shares)
{
    plan->others = others;
    plan->shares = shares;
}

int plan_train_step(struct plan *plan, const void *data, const void *labels,
                    plan_bucket_fn *on_bucket, void *arg, float *ret_loss, struct ms_err *err)
{
    if (!plan->training) {
        return ms_fail(err, MS_E_INVALID, "plan of graph %s was made for evaluation",
                       graph_name(plan->graph));
    }
    int rc = run(plan, data, labels, on_bucket, arg, err);
    plan_set_others(plan, NULL, NULL);
    if (rc == 0) {
        *ret_loss = (float)plan->loss;
    }
    return rc;
}

double plan_weight(const struct plan *plan)
{
    return plan->weight;
}

int plan_evaluate(struct plan *plan, const void *data, const void *labels, int64_t rows,
                  struct plan_evaluated *ret, struct ms_err *err)
{
    int64_t batch = graph_tensor(plan->graph, graph_data_index(plan->graph))->shape.dim[0];
    if (plan->training) {
        return ms_fail(err, MS_E_INVALID, "plan of graph %s was made for training",
                       graph_name(plan->graph));
    }
    if (rows < 1 || rows > batch) {
        return ms_fail(err, MS_E_INVALID, "plan of graph %s: %lld rows in a batch of %lld",
                       graph_name(plan->graph), (long long)rows, (long long)batch);
    }
    plan->rows = rows;
    int rc = run(plan, data, labels, NULL, NULL, err);
    if (rc == 0) {
        *ret = (struct plan_evaluated){.loss_sum = plan->loss * (double)rows,
                                       .correct = plan->correct,
                                       .predictions = plan->predictions,
                                       .columns = plan->columns,
                                       .weight_sum = plan->weight * (double)rows,
                                       .counted = plan->counted};
    }
    return rc;
}
