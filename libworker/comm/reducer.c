/* reducer.c - sums buckets while backward goes on
 *
 * Buckets are summed in index order by whoever has the turn: the communication thread while
 * backward computes, or the training thread itself once it waits and the other is idle, which saves
 * two switches for the last bucket. Only one of the two is inside the group at a time. */
#include "libworker/comm/comm.h"
#include "proto/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct reducer {
    struct group *group;
    struct reducer_bucket *buckets;
    const void **results;
    int n;
    int has_thread;
    pthread_t thread;
    pthread_mutex_t lock; /* everything below */
    pthread_cond_t changed;
    int posted;  /* buckets that this rank has completed */
    int summed;  /* buckets that are summed */
    int running; /* somebody is inside the group */
    int stop;
    int code; /* of the step */
    struct ms_err err;
};

/* Sums what is posted, with the lock held on entry and exit. */
static void run(struct reducer *reducer)
{
    reducer->running = 1;
    while (reducer->code == 0 && !reducer->stop && reducer->summed < reducer->posted) {
        int i = reducer->summed;
        const void *result = NULL;
        struct ms_err err;
        pthread_mutex_unlock(&reducer->lock);
        int rc = reducer->buckets[i].count == 0
                     ? 0
                     : group_all_reduce_sum(reducer->group, reducer->buckets[i].begin,
                                            reducer->buckets[i].count, &result, &err);
        pthread_mutex_lock(&reducer->lock);
        if (rc < 0) {
            reducer->code = rc;
            reducer->err = err;
        } else {
            reducer->results[i] = result;
            reducer->summed++;
        }
    }
    reducer->running = 0;
    pthread_cond_broadcast(&reducer->changed);
}

static int has_work(const struct reducer *reducer)
{
    return !reducer->running && reducer->code == 0 && reducer->summed < reducer->posted;
}

static void *thread_main(void *arg)
{
    struct reducer *reducer = arg;
    pthread_mutex_lock(&reducer->lock);
    while (!reducer->stop) {
        if (has_work(reducer)) {
            run(reducer);
        } else {
            pthread_cond_wait(&reducer->changed, &reducer->lock);
        }
    }
    pthread_mutex_unlock(&reducer->lock);
    return NULL;
}

static int start_thread(struct reducer *reducer, struct ms_err *err)
{
    int rc = ms_thread_start(&reducer->thread, thread_main, reducer);
    if (rc != 0) {
        errno = rc;
        return ms_fail_errno(err, MS_E_NOMEM, "cannot start the communication thread");
    }
    reducer->has_thread = 1;
    return 0;
}

int reducer_create(struct group *group, const struct reducer_bucket *buckets, int n,
                   struct reducer **ret, struct ms_err *err)
{
    struct reducer *reducer = calloc(1, sizeof(*reducer));
    if (reducer == NULL || n < 1) {
        free(reducer);
        return n < 1 ? ms_fail(err, MS_E_INVALID, "a reducer without buckets")
                     : ms_fail(err, MS_E_NOMEM, "out of memory for a reducer");
    }
    reducer->group = group;
    reducer->n = n;
    pthread_mutex_init(&reducer->lock, NULL);
    pthread_cond_init(&reducer->changed, NULL);
    reducer->buckets = calloc((size_t)n, sizeof(*reducer->buckets));
    reducer->results = calloc((size_t)n, sizeof(*reducer->results));
    int rc = 0;
    if (reducer->buckets == NULL || reducer->results == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "out of memory for %d buckets", n);
    } else {
        memcpy(reducer->buckets, buckets, (size_t)n * sizeof(*buckets));
        if (n > 1 && group_ranks(group) > 1) {
            rc = start_thread(reducer, err);
        }
    }
    if (rc < 0) {
        reducer_destroy(reducer);
        return rc;
    }
    *ret = reducer;
    return 0;
}

void reducer_destroy(struct reducer *reducer)
{
    if (reducer == NULL) {
        return;
    }
    if (reducer->has_thread) {
        pthread_mutex_lock(&reducer->lock);
        reducer->stop = 1;
        int inside = reducer->running;
        pthread_cond_broadcast(&reducer->changed);
        pthread_mutex_unlock(&reducer->lock);
        if (inside) { /* within a step that nobody waits for any more */
            mesh_abort(group_mesh(reducer->group), "the step was given up");
        }
        pthread_join(reducer->thread, NULL);
    }
    pthread_cond_destroy(&reducer->changed);
    pthread_mutex_destroy(&reducer->lock);
    free(reducer->buckets);
    free(reducer->results);
    free(reducer);
}

int reducer_begin(struct reducer *reducer, uint64_t step, struct ms_err *err)
{
    pthread_mutex_lock(&reducer->lock);
    assert(!reducer->running);
    reducer->posted = 0;
    reducer->summed = 0;
    reducer->code = 0;
    pthread_mutex_unlock(&reducer->lock);
    return group_step_begin(reducer->group, step, err);
}

void reducer_post(struct reducer *reducer, int bucket)
{
    pthread_mutex_lock(&reducer->lock);
    assert(bucket == reducer->posted && bucket < reducer->n);
    reducer->posted = bucket + 1;
    /* The last one is left to the training thread, which is about to wait. */
    if (reducer->has_thread && !reducer->running && reducer->posted < reducer->n) {
        pthread_cond_signal(&reducer->changed);
    }
    pthread_mutex_unlock(&reducer->lock);
}

int reducer_wait(struct reducer *reducer, const void **ret_results, struct ms_err *err)
{
    pthread_mutex_lock(&reducer->lock);
    assert(reducer->posted == reducer->n);
    while (reducer->running || has_work(reducer)) {
        if (has_work(reducer)) {
            run(reducer);
        } else {
            pthread_cond_wait(&reducer->changed, &reducer->lock);
        }
    }
    int rc = reducer->code;
    if (rc < 0) {
        (void)ms_fail(err, rc, "%s", reducer->err.text);
    } else {
        memcpy(ret_results, reducer->results, (size_t)reducer->n * sizeof(*ret_results));
    }
    pthread_mutex_unlock(&reducer->lock);
    return rc;
}
