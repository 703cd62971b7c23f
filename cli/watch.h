/* watch.h - follow one job over a connection that may be lost and found again */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "cli/cli.h"

struct cli_watch {
    /* After each update; borrowed. Below 0: ends the watch with it, err filled in. NULL allowed. */
    int (*on_update)(const Ms__JobUpdate *update, void *arg, struct ms_err *err);
    void *arg;
    int64_t deadline_ms; /* monotonic; < 0: none. Passed after the first update: MS_E_TIMEOUT */
    /* Before it is said that the scheduler is gone. NULL allowed. */
    void (*on_lost)(void *arg);
};

/* How long a scheduler that went away may take to come back. */
enum { CLI_COMEBACK_MS = 60000 };

/* Follows job until it has ended; *ret (owned, ms_wire_free) is the last update. */
int cli_watch(struct cli *cli, uint64_t job, const struct cli_watch *watch, Ms__JobUpdate **ret,
              struct ms_err *err);

/* HUP under nohup stays ignored: who asked for that wants the command to outlive the terminal. INT
 * of a shell's background job is heard, for that is how such a job is stopped. */
int cli_hears_signal(int number);

/* Ctrl-C, TERM and HUP (unless that is ignored already) end msctl with 128 + signal, after
 * before_exit(arg) has said that the job goes on. A reader of cli->out that has gone ends it with
 * CLI_PIPE_STATUS, and not only when there is something to write. */
int cli_on_detach(struct cli *cli, void (*before_exit)(void *arg), void *arg, struct ms_err *err);

#endif
