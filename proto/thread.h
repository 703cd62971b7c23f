/* thread.h - threads that no signal reaches: signals are for the loop, or for who waits for them,
 * also in a program whose owner is not us. Nor do they have the locale of that program, but that of
 * who starts them: the library reads and writes numbers with a point (libworker/msw_locale.c). */
#ifndef MS_THREAD_H
#define MS_THREAD_H

#include <pthread.h>

/* Runs run(arg) in a thread with all signals blocked and the caller's locale, which is the global
 * one, or borrowed as long as the thread runs. ret NULL: it is detached. 0, or an errno: there is
 * no thread then. The caller's mask is what it was. Any thread. */
int ms_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);
/* Likewise, with attributes (NULL allowed): not detached ones. */
int ms_thread_start_as(const pthread_attr_t *attr, pthread_t *ret, void *(*run)(void *arg),
                       void *arg);

#endif
