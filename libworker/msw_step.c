/* msw_step.c - a training that a program drives step by step
 *
 * The training has a thread of its own, which waits behind each step until the program wants the
 * next one: the two take turns, and never run at the same time.
 *
 *     program    msw_step ------ waits ------ returns ... msw_step ---- waits ---
 *     training   (parked)  step 1, recovery, ... (parked)           step 2 ...
 */
#include "libworker/msw_impl.h"

#include "proto/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum order { ORDER_NONE, ORDER_STEP, ORDER_COPY, ORDER_END };

struct msw_training {
    struct session session;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock; /* guards the next four */
    pthread_cond_t changed;
    enum order order; /* of the program, for the training */
    int is_parked;    /* the training waits for one */
    int has_ended;
    /* of whoever's turn it is */
    int must_end;
    struct msw_progress progress;
    struct model_copy *copy;
    int copy_rc;
    struct ms_err copy_err;
    int rc; /* of the training */
    struct ms_err err;
};

/* ---- the training's side ---- */

static enum order next_order(struct msw_training *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_parked = 1;
    pthread_cond_broadcast(&t->changed);
    while (t->order == ORDER_NONE) {
        pthread_cond_wait(&t->changed, &t->lock);
    }
    const enum order order = t->order;
    t->order = ORDER_NONE;
    pthread_mutex_unlock(&t->lock);
    return order;
}

/* Here, where the team is that has the weights in its caches, and nobody else's OpenMP. */
static void make_copy(struct msw_training *t)
{
    t->copy_rc =
        model_copy_make(train_replica(t->session.train), t->progress.step, &t->copy, &t->copy_err);
}

static int on_step(void *arg, const struct msw_progress *progress)
{
    struct msw_training *t = arg;
    if (t->must_end) { /* the step that the wish to end came with */
        return 1;
    }
    t->progress = *progress;
    enum order order = next_order(t);
    while (order == ORDER_COPY) {
        make_copy(t);
        order = next_order(t);
    }
    t->must_end = order == ORDER_END;
    return t->must_end;
}

static void *training_main(void *arg)
{
    struct msw_training *t = arg;
    t->rc = session_run(&t->session, &t->err);
    pthread_mutex_lock(&t->lock);
    t->has_ended = 1;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---- the program's side ---- */

static void wait_for_turn(struct msw_training *t)
{
    pthread_mutex_lock(&t->lock);
    while (!t->has_ended && !(t->is_parked && t->order == ORDER_NONE)) {
        pthread_cond_wait(&t->changed, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
}

/* To a training that is parked. */
static void give_order(struct msw_training *t, enum order order)
{
    pthread_mutex_lock(&t->lock);
    t->order = order;
    t->is_parked = 0;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    wait_for_turn(t);
}

static void start(struct msw_training *t)
{
    const locale_t locale = locale_enter(); /* the thread borrows it for longer */
    const int rc = ms_thread_start(&t->thread, training_main, t);
    if (rc != 0) { /* that was its end: whoever asks later hears why */
        t->rc = ms_fail(&t->err, MS_E_NOMEM, "the training's thread cannot be started: %s",
                        strerror(rc));
        t->has_ended = 1;
    }
    locale_leave(locale);
    t->has_thread = rc == 0;
    if (t->has_thread) {
        wait_for_turn(t);
    }
}

int msw_begin(const struct msw_job *job, const struct msw_options *options,
              struct msw_training **ret, struct msw_error *error)
{
    struct ms_err err = {0, ""};
    struct msw_training *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return api_give_error(&err, ms_fail(&err, MS_E_NOMEM, "no memory to train"), error);
    }
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    t->session = (struct session){.job = job,
                                  .is_alone = getenv("MS_ROLE") == NULL,
                                  .on_step = on_step,
                                  .arg = t,
                                  .want_model = 1};
    if (options != NULL) {
        t->session.options = *options;
    }
    *ret = t;
    return 0;
}

int msw_step(struct msw_training *t, struct msw_progress *progress, struct msw_error *error)
{
    if (!t->has_thread && !t->has_ended) {
        start(t);
    } else if (!t->has_ended) {
        give_order(t, ORDER_STEP);
    }
    if (t->has_ended) {
        return api_give_error(&t->err, t->rc, error);
    }
    if (progress != NULL) {
        *progress = t->progress;
    }
    return 1;
}

int msw_copy(struct msw_training *t, struct msw_model **ret_model, struct msw_error *error)
{
    struct ms_err err = {0, ""};
    if (!t->has_thread || t->has_ended) {
        ms_fail(&err, MS_E_INVALID, "the training %s; a copy is made behind a step of msw_step%s",
                t->has_ended ? "has ended" : "has not begun",
                t->has_ended ? ", and msw_end gives the last one" : "");
        return api_give_error(&err, err.code, error);
    }
    give_order(t, ORDER_COPY);
    if (t->copy_rc < 0) {
        return api_give_error(&t->copy_err, t->copy_rc, error);
    }
    *ret_model = (struct msw_model *)t->copy;
    t->copy = NULL;
    return 0;
}

int msw_end(struct msw_training *t, struct msw_model **ret_model, struct msw_error *error)
{
    struct ms_err err = {0, ""};
    if (t == NULL) {
        return 0;
    }
    int rc = MS_OK;
    if (!t->has_thread && !t->has_ended) {
        rc = ret_model == NULL
                 ? MS_OK
                 : ms_fail(&err, MS_E_INVALID, "the training has no step; msw_step makes one");
    } else {
        if (!t->has_ended) {
            give_order(t, ORDER_END);
        }
        if (t->has_thread) {
            pthread_join(t->thread, NULL);
        }
        rc = t->rc;
        err = t->err;
    }
    if (ret_model == NULL) {
        model_copy_destroy(t->session.model);
        t->session.model = NULL;
    }
    rc = session_finish(&t->session, rc, ret_model, &err, error);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return rc;
}
