/* thread.c - how a thread begins */
#include "proto/thread.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>

struct beginning {
    void *(*run)(void *arg);
    void *arg;
    locale_t locale;
};

/* A thread inherits the mask of signals from who starts it, but begins with the global locale. */
static void *begin(void *arg)
{
    const struct beginning b = *(struct beginning *)arg;
    free(arg);
    uselocale(b.locale);
    return b.run(b.arg);
}

int ms_thread_start_as(const pthread_attr_t *attr, pthread_t *ret, void *(*run)(void *arg),
                       void *arg)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    struct beginning *b = malloc(sizeof(*b));
    if (b == NULL) {
        return ENOMEM;
    }
    *b = (struct beginning){.run = run, .arg = arg, .locale = uselocale((locale_t)0)};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(ret != NULL ? ret : &thread, attr, begin, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        free(b);
    } else if (ret == NULL) {
        pthread_detach(thread);
    }
    return rc;
}

int ms_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    return ms_thread_start_as(NULL, ret, run, arg);
}
