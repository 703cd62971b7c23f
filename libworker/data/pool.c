/* pool.c - threads that share the items of a piece of work */
#include "libworker/data/pool.h"

#include "proto/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct pool {
    pthread_mutex_t lock; /* all below; items are long beside it */
    pthread_cond_t begun, ended;
    int is_over;
    int64_t round; /* of pool_run */
    int n_busy;    /* threads that have not left this round */

    int64_t n, next;
    pool_work *work;
    void *arg;
    int64_t failed; /* the first item that did; n: none */
    struct ms_err error;

    int n_threads; /* beside the caller */
    struct helper {
        struct pool *pool;
        int number;
        pthread_t thread;
    } * helpers;
};

/* Items are taken in their order: before one that failed all were taken, and are done to the end.
 */
static void take_items(struct pool *pool, int thread)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->next < pool->n && pool->failed == pool->n) {
        struct ms_err err = {0, ""};
        const int64_t i = pool->next++;
        pthread_mutex_unlock(&pool->lock);
        const int rc = pool->work(pool->arg, thread, i, &err);
        pthread_mutex_lock(&pool->lock);
        if (rc < 0 && i < pool->failed) {
            pool->failed = i;
            pool->error = err;
            pool->error.code = rc;
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

static void *helper_main(void *arg)
{
    struct helper *helper = arg;
    struct pool *pool = helper->pool;
    int64_t round = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->is_over && pool->round == round) {
            pthread_cond_wait(&pool->begun, &pool->lock);
        }
        if (pool->is_over) {
            break;
        }
        round = pool->round;
        pthread_mutex_unlock(&pool->lock);
        take_items(pool, helper->number);
        pthread_mutex_lock(&pool->lock);
        if (--pool->n_busy == 0) {
            pthread_cond_signal(&pool->ended);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int pool_create(int threads, struct pool **ret, struct ms_err *err)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    struct helper *helpers = calloc((size_t)threads, sizeof(*helpers));
    if (pool == NULL || helpers == NULL) {
        free(pool);
        free(helpers);
        return ms_fail(err, MS_E_NOMEM, "no memory for %d threads", threads);
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->begun, NULL);
    pthread_cond_init(&pool->ended, NULL);
    pool->helpers = helpers;
    for (int i = 1; i < threads; i++) {
        struct helper *helper = &helpers[pool->n_threads];
        *helper = (struct helper){.pool = pool, .number = i};
        const int rc = ms_thread_start(&helper->thread, helper_main, helper);
        if (rc != 0) {
            pool_destroy(pool);
            return ms_fail(err, MS_E_NOMEM, "a thread cannot be started: %s", strerror(rc));
        }
        pool->n_threads++;
    }
    *ret = pool;
    return MS_OK;
}

void pool_destroy(struct pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->is_over = 1;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->n_threads; i++) {
        pthread_join(pool->helpers[i].thread, NULL);
    }
    pthread_cond_destroy(&pool->ended);
    pthread_cond_destroy(&pool->begun);
    pthread_mutex_destroy(&pool->lock);
    free(pool->helpers);
    free(pool);
}

int pool_run(struct pool *pool, int64_t n, pool_work *work, void *arg, struct ms_err *err)
{
    pthread_mutex_lock(&pool->lock);
    pool->n = n;
    pool->next = 0;
    pool->work = work;
    pool->arg = arg;
    pool->failed = n;
    pool->n_busy = pool->n_threads;
    pool->round++;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->lock);

    take_items(pool, 0);

    pthread_mutex_lock(&pool->lock);
    while (pool->n_busy > 0) {
        pthread_cond_wait(&pool->ended, &pool->lock);
    }
    const int has_failed = pool->failed < n;
    pthread_mutex_unlock(&pool->lock);
    return has_failed ? ms_fail(err, pool->error.code, "%s", pool->error.text) : MS_OK;
}
