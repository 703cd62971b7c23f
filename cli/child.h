/* child.h - processes of `msctl run`: they never outlive it, and every end is known */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "cli/restart.h"
#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t pid;                  /* 0: never started */
    int is_over;                /* reaped */
    int status;                 /* of waitpid */
    int sent;                   /* last signal that we sent it, 0: none */
    char name[32];              /* "scheduler", "worker 3" */
    char log[MS_PATH_MAX + 32]; /* where its output goes, appended */
    struct restart restart;     /* how often it died, and when it comes back */
    int lost_s;                 /* how long it lives while its rank is lost: run_frozen.c */
    int is_left_alone;          /* ... and that it is not killed for it was said */
};

enum { CHILD_ENV_MAX = 8, CHILD_FDS_MAX = 2 };

struct child_spec {
    const char *program;
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* NAME=VALUE on top of the cleaned environment; NULL-terminated */
    const int *fds;          /* become 3, 4, ... with LISTEN_FDS */
    size_t n_fds;
};

/* Path of a program: variable (MSCHED_MSWORKER) > beside msctl in a build tree (../libworker) >
 * beside msctl > PATH. MS_E_NOT_FOUND names all of them. */
int child_find_program(const char *name, const char *variable, const char *build_dir, char *ret,
                       size_t size, struct ms_err *err);

/* Starts spec, or starts it again, with output to child->log (name and log are filled in by the
 * caller). It is in a session of its own, so that a terminal's Ctrl-C reaches msctl alone, and dies
 * with msctl. */
int child_start(struct child *child, const struct child_spec *spec, struct ms_err *err);

/* Reaps it if it has ended: 1 the first time, else 0. */
int child_reap(struct child *child);
int child_is_alive(const struct child *child);
void child_signal(struct child *child, int number);
/* 1 where a signal ended it that we did not send: somebody killed it, or it crashed. */
int child_was_killed(const struct child *child);

/* Who debugs it; 0: nobody, or it cannot be read. */
long child_tracer(const struct child *child);
/* 1 where a signal ends it only when a disk has answered. */
int child_waits_for_disk(const struct child *child);

/* "exited with status 1", "was killed by signal 9 (Killed)". */
const char *child_status_text(const struct child *child, char *buf, size_t size);
/* The last lines of its log, each behind "    | ", or "" where there are none. */
const char *child_log_tail(const struct child *child, char *buf, size_t size, size_t lines);

#endif
