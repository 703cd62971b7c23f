/* signals.c - the thread that hears TERM, INT and HUP, and looks at the certificates once a day */
#include "libworker/program/program.h"

#include "proto/log.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

enum { END_OF_WAITING = SIGUSR1 };

static void reload(struct program *program)
{
    struct ms_err err = {0, ""};
    SSL_CTX *tls = NULL;
    if (certs_load(&program->certs, &tls, &err) < 0) {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_ERR, "worker.reload_failed reason=%s text=\"the old certificates stay\"",
               ms_log_quote(quoted, sizeof(quoted), err.text));
        return;
    }
    if (tls != NULL) {
        worker_set_tls(tls);
    }
    SSL_CTX_free(tls);
    ms_log(MS_LOG_NOTICE, "worker.reload certificates=%s", tls != NULL ? "read again" : "none");
}

/* HUP is the end of a terminal, unless a service hears it. */
static void on_signal(struct program *program, int number)
{
    if (number == SIGHUP && program->worker.mode == WORKER_STANDING) {
        reload(program);
    } else {
        worker_leave(number);
    }
}

static void *wait_for_signals(void *arg)
{
    struct program *program = arg;
    for (;;) {
        int64_t ms = certs_check_ms(&program->certs);
        ms_log(MS_LOG_DEBUG, "tls.next_look in_s=%" PRId64, ms / 1000);
        struct timespec wait = {.tv_sec = (time_t)(ms / 1000)};
        int number = sigtimedwait(&program->signals, NULL, &wait);
        if (number == END_OF_WAITING && atomic_load(&program->ends)) {
            return NULL;
        }
        if (number > 0 && number != END_OF_WAITING) {
            on_signal(program, number);
        } else if (errno == EAGAIN) {
            certs_check(&program->certs);
        }
    }
}

void signals_block(struct program *program)
{
    struct sigaction hup;
    sigemptyset(&program->signals);
    sigaddset(&program->signals, SIGTERM);
    sigaddset(&program->signals, SIGINT);
    sigaddset(&program->signals, END_OF_WAITING);
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN) { /* nohup stays nohup */
        sigaddset(&program->signals, SIGHUP);
    }
    pthread_sigmask(SIG_BLOCK, &program->signals, NULL);
}

int signals_take(struct program *program, struct ms_err *err)
{
    if (pthread_create(&program->waiter, NULL, wait_for_signals, program) != 0) {
        return ms_fail(err, MS_E_NOMEM, "cannot start the thread that waits for signals");
    }
    return 0;
}

void signals_leave(struct program *program)
{
    atomic_store(&program->ends, 1);
    pthread_kill(program->waiter, END_OF_WAITING);
    pthread_join(program->waiter, NULL);
}
