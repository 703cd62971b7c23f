/* program.h - the worker program: its settings, and what they make of a process
 *
 *     msworker.c  the words of the command line, the exit status
 *     setup.c     settings, files and environment -> struct worker_config
 *     signals.c   TERM, INT and HUP, on a thread of their own
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "config.h"
#include "libworker/node/dynamic.h"
#include "libworker/node/worker.h"
#include "libworker/program/certs.h"
#include "proto/settings.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define SOFTWARE "msworker " MSCHED_VERSION

struct program {
    struct ms_settings *settings;
    struct dynamic dynamic;
    struct certs certs;
    SSL_CTX *tls;
    struct job job;
    char *plan; /* --plan; malloc'ed, NULL: none */
    char server[MS_ADDR_MAX + 1];
    char plain_by[MS_NAME_MAX + 128]; /* why without TLS, where nobody said so; "" */
    char node_id[MS_NAME_MAX + 1];
    struct worker_config worker;
    int checks;       /* --check-config */
    sigset_t signals; /* that the thread of the signals waits for */
    pthread_t waiter; /* that thread */
    atomic_int ends;  /* ... and it has to end: END_OF_WAITING is ours */
};

/* ---- setup.c ---- */

extern const struct ms_setting program_settings[];

/* Fills program->worker and all that it borrows, from the settings, the words that are left of the
 * command line and the environment; reads certificates and the job. program->checks: makes nothing,
 * and says what a start would say. */
int program_setup(struct program *program, int argc, char **argv, struct ms_err *err);

/* ---- signals.c ---- */

/* In this thread and all that follow: what comes while we start waits for the one that takes it. */
void signals_block(struct program *program);
/* Starts the thread that takes them: no handler can meet a lock or an agent that ends. When all is
 * set up, for it reads the certificates, and how often to look at them. MS_E_NOMEM. */
int signals_take(struct program *program, struct ms_err *err);
/* Ends that thread; what comes from then on stays pending. */
void signals_leave(struct program *program);

#endif
