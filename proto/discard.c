/* discard.c - closes what a stranger had a hand in, without waiting for him */
#include "proto/discard.h"

#include "proto/thread.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct discard { /* freed by the caller; by the thread where that closes */
    sem_t taken, closed;
    int unshared;
    size_t n;
    int fds[];
};

static void close_all(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        close(fds[i]);
    }
}

static void discard_free(struct discard *discard)
{
    sem_destroy(&discard->taken);
    sem_destroy(&discard->closed);
    free(discard);
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0) { /* EINTR */
    }
}

static void *hold_and_end(void *arg)
{
    struct discard *discard = arg;
    int unshared = unshare(CLONE_FILES) == 0;
    discard->unshared = unshared;
    sem_post(&discard->taken);
    if (unshared) {
        wait_for(&discard->closed);
        return NULL;
    }
    wait_for(&discard->closed); /* the caller has detached us */
    close_all(discard->fds, discard->n);
    discard_free(discard);
    return NULL;
}

void ms_discard_fds(const int *fds, size_t n)
{
    pthread_t thread;
    if (n == 0) {
        return;
    }
    struct discard *discard = malloc(sizeof(*discard) + n * sizeof(*fds));
    if (discard == NULL) {
        close_all(fds, n);
        return;
    }
    sem_init(&discard->taken, 0, 0);
    sem_init(&discard->closed, 0, 0);
    discard->n = n;
    memcpy(discard->fds, fds, n * sizeof(*fds));
    if (ms_thread_start(&thread, hold_and_end, discard) != 0) {
        close_all(fds, n);
        discard_free(discard);
        return;
    }
    wait_for(&discard->taken);
    if (!discard->unshared) {
        pthread_detach(thread);
        sem_post(&discard->closed);
        return;
    }
    close_all(fds, n);
    sem_post(&discard->closed);
    pthread_join(thread, NULL); /* it ends before its table goes */
    discard_free(discard);
}
