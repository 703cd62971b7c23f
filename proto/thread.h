/* thread.h - threads that no signal reaches: signals are for the loop, or for who waits for them,
 * also in a program whose owner is not us */
#ifndef MS_THREAD_H
#define MS_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* As ms_thread_start, with attributes (NULL allowed): not detached ones. */
static inline int ms_thread_start_as(const pthread_attr_t *attr, pthread_t *ret,
                                     void *(*run)(void *arg), void *arg)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(ret != NULL ? ret : &thread, attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0 && ret == NULL) {
        pthread_detach(thread);
    }
    return rc;
}

/* Runs run(arg) in a thread with all signals blocked. ret NULL: it is detached. 0, or an errno:
 * there is no thread then. The caller's mask is what it was. Any thread. */
static inline int ms_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    return ms_thread_start_as(NULL, ret, run, arg);
}

#endif
