/* rejoin.c - a rank that lost a peer goes on with the ranks of another generation */
#include "libworker/train/train_impl.h"
#include "proto/macros.h"

#include <stdio.h>
#include <string.h>

/* Under train->lock. Who waits for a record that takes its time comes back at once, and later goes
 * on waiting for the same. */
static void hold_loaders(struct train *train, int is_held)
{
    struct loader *const all[] = {train->loader, train->eval_loader};
    for (size_t i = 0; i < MS_ARRAY_SIZE(all); i++) {
        if (all[i] != NULL) {
            loader_hold(all[i], is_held);
        }
    }
}

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
        hold_loaders(train, 1);
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
        hold_loaders(train, 0);
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

int train_rejoin(struct train *train, const struct train_peers *peers, struct train_info *ret,
                 struct ms_err *err)
{
    int rc = leave_mesh(train, err);
    train->cfg.members = peers->members;
    train->cfg.generation = peers->generation;
    train->cfg.tls = peers->tls;
    memcpy(train->cfg.token, peers->token, sizeof(train->cfg.token));
    train->known.prepared_ms = 0;
    train->saves = 0; /* rank 0 does, which may be another process now */
    rc = rc == 0 ? train_stand_ready(train, err) : rc;
    if (rc == 0) {
        *ret = train->known;
    }
    return rc;
}
