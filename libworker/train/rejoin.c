/* rejoin.c - a rank that lost a peer goes on with the ranks of another generation */
#include "libworker/host/memory.h"
#include "libworker/train/train_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a rank is; the same on all machines of a mesh, which have one byte order. */
struct place {
    uint64_t step; /* committed */
    float loss;    /* of that step, mean over ranks */
    int32_t evaluates;
    int32_t stopped; /* asked to stop with that step */
    int32_t zero;
};

void train_hold(struct train *train, const char *text)
{
    pthread_mutex_lock(&train->lock);
    if (!train->aborted) {
        atomic_store(&train->cancelled, 1);
        train->held = 1;
        snprintf(train->abort_text, sizeof(train->abort_text), "%s", text);
        if (train->cfg.listener != NULL) {
            comm_listener_abort(train->cfg.listener);
        }
        if (train->mesh != NULL) {
            mesh_abort(train->mesh, text);
        }
    }
    pthread_mutex_unlock(&train->lock);
}

int train_is_held(struct train *train)
{
    pthread_mutex_lock(&train->lock);
    int held = train->held && !train->aborted;
    pthread_mutex_unlock(&train->lock);
    return held;
}

void train_unhold(struct train *train)
{
    pthread_mutex_lock(&train->lock);
    if (!train->aborted) {
        train->held = 0;
        atomic_store(&train->cancelled, 0);
        if (train->cfg.listener != NULL) {
            comm_listener_resume(train->cfg.listener);
        }
    }
    pthread_mutex_unlock(&train->lock);
}

/* The mesh of the generation before goes, with what hangs on it. */
static int leave_mesh(struct train *train, struct ms_err *err)
{
    pthread_mutex_lock(&train->lock);
    struct mesh *mesh = train->mesh;
    train->mesh = NULL;
    pthread_mutex_unlock(&train->lock);
    reducer_destroy(train->reducer);
    train->reducer = NULL;
    mesh_destroy(mesh);
    return train_check_abort(train, err);
}

/* ---- who is behind ---- */

/* The lowest rank that made the last commit of all; whether an evaluation is owed after it, and
 * whether it was the last because somebody was asked to stop. */
static int find_source(const struct place *places, int world, int *ret_evaluates, int *ret_stopped)
{
    int source = 0;
    for (int i = 1; i < world; i++) {
        source = places[i].step > places[source].step ? i : source;
    }
    *ret_evaluates = *ret_stopped = 0;
    for (int i = 0; i < world; i++) {
        int is_furthest = places[i].step == places[source].step;
        *ret_evaluates |= is_furthest && places[i].evaluates;
        *ret_stopped |= is_furthest && places[i].stopped;
    }
    return source;
}

/* A commit needs a gradient of every rank: who had none of the last one is one step behind. */
static int check_places(const struct place *places, int world, int source, struct ms_err *err)
{
    for (int i = 0; i < world; i++) {
        if (places[source].step - places[i].step > 1) {
            return ms_fail(err, MS_E_REFUSED,
                           "rank %d is at step %" PRIu64 " and rank %d at step %" PRIu64
                           ": only a rank that was stopped in its last step can go on",
                           i, places[i].step, source, places[source].step);
        }
    }
    return 0;
}

/* ---- pulling ---- */

/* Takes part in the broadcasts of all buffers, which go to copies where this rank is behind. */
static int pass_state(struct train *train, int source, void *const *copies, struct ms_err *err)
{
    void *state = NULL;
    size_t bytes = 0;
    int rc = 0;
    for (int i = 0; rc == 0 && replica_state(train->replica, i, &state, &bytes); i++) {
        if (bytes > 0) {
            rc =
                mesh_broadcast(train->mesh, copies != NULL ? copies[i] : state, bytes, source, err);
        }
    }
    return rc;
}

enum { STATES_MAX = 2 + OPTIMIZER_SLOTS_MAX };

/* Into memory of its own first: a source that dies meanwhile leaves the old state whole. */
static int pull_state(struct train *train, int source, struct ms_err *err)
{
    void *copies[STATES_MAX] = {NULL};
    void *state = NULL;
    size_t bytes[STATES_MAX] = {0};
    int n = 0;
    int rc = 0;
    while (rc == 0 && replica_state(train->replica, n, &state, &bytes[n])) {
        rc = memory_alloc(bytes[n], "the state of another rank", &copies[n], err);
        n++;
    }
    if (rc == 0) {
        rc = pass_state(train, source, copies, err);
    }
    for (int i = 0; i < n; i++) {
        if (rc == 0 && replica_state(train->replica, i, &state, &bytes[i]) && bytes[i] > 0) {
            memcpy(state, copies[i], bytes[i]);
        }
        memory_free(copies[i], bytes[i]);
    }
    return rc;
}

/* What the rank behind has in hand is the batch of the commit that it pulled. */
static int catch_up(struct train *train, const struct place *source, struct ms_err *err)
{
    if (!train->has_batch) {
        int rc = loader_next(train->loader, &train->batch, err);
        if (rc < 0) {
            return rc;
        }
        train->has_batch = 1;
    }
    return train_step_done(train, source->loss, source->loss, 0, err);
}

static int agree(struct train *train, struct ms_err *err)
{
    int world = train->data_world;
    struct place mine = {.step = train->progress.step,
                         .loss = train->progress.loss,
                         .evaluates = train->evaluates,
                         .stopped = train->stopped};
    struct place *places = calloc((size_t)world, sizeof(*places));
    if (places == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to go on");
    }
    int evaluates = 0;
    int stopped = 0;
    int rc = mesh_all_gather(train->mesh, &mine, sizeof(mine), places, err);
    int source = find_source(places, world, &evaluates, &stopped);
    int someone_is_behind = 0;
    for (int i = 0; i < world; i++) {
        someone_is_behind |= places[i].step != places[source].step;
    }
    rc = rc == 0 ? check_places(places, world, source, err) : rc;
    if (rc == 0 && someone_is_behind) {
        int behind = mine.step != places[source].step;
        rc = behind ? pull_state(train, source, err) : pass_state(train, source, NULL, err);
        rc = rc == 0 && behind ? catch_up(train, &places[source], err) : rc;
    }
    if (rc == 0) {
        train->evaluates = evaluates;
        train->stopped = stopped;
    }
    free(places);
    return rc;
}

int train_rejoin(struct train *train, const struct train_peers *peers, struct train_info *ret,
                 struct ms_err *err)
{
    int rc = leave_mesh(train, err);
    train->cfg.members = peers->members;
    train->cfg.generation = peers->generation;
    train->cfg.tls = peers->tls;
    memcpy(train->cfg.token, peers->token, sizeof(train->cfg.token));
    rc = rc == 0 ? train_make_mesh(train, err) : rc;
    rc = rc == 0 ? replica_bind(train->replica, mesh_exchange(train->mesh), err) : rc;
    rc = rc == 0 ? agree(train, err) : rc;
    if (rc < 0) {
        return train_check_abort(train, err) < 0 ? MS_E_ABORTED : rc;
    }
    *ret = train->known;
    return 0;
}
