/* run.h - the private cluster of one `msctl run`: what it is made of and where it stands
 *
 *     FORMING -> TRAINING -> STOPPING -> over
 *        |  a child ended, a signal came, the job failed |
 *        +-----------------------------------------------^
 *
 * Handlers of signals, timers and children only note what happened; run_turn acts on it, outside of
 * the event loop.
 *
 * Where the job recovers, a child that dies is started again until the job has ended. What the run
 * stands on outlives it: the listening sockets are ours, so that the scheduler's address stays and
 * whoever knocks meanwhile is heard by the next one; its database lies in the run directory. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli/child.h"
#include "cli/cli.h"
#include "cli/display.h"
#include "cli/eval_name.h"
#include "cli/run_dir.h"
#include "cli/submit.h"

#include <signal.h>

enum run_stage {
    RUN_FORMING,  /* until the job is RUNNING for the first time */
    RUN_TRAINING, /* until the job has ended */
    RUN_STOPPING, /* workers, then the scheduler */
    RUN_OVER,     /* all reaped */
};

enum run_timer {
    RUN_TIMER_RECONNECT, /* to the scheduler */
    RUN_TIMER_VERDICT,   /* a child died: the scheduler may say more until then */
    RUN_TIMER_STOP,      /* a polite stop took too long */
    RUN_TIMER_CANCEL,    /* the step that a signal lets finish took too long */
    RUN_TIMER_RESTART,   /* a child that died is due */
    RUN_TIMER_FROZEN,    /* a second, while a worker lives whose rank is lost */
    RUN_TIMER_SILENT,    /* a second, in which the scheduler may have been heard */
    RUN_TIMERS
};

enum {
    RUN_VERDICT_FORMING_MS = 250, /* nothing was lost yet: short */
    RUN_VERDICT_MS = 1200,        /* below the two seconds within which all is over */
    RUN_LEAVE_MS = 5000,          /* after a success workers end by themselves */
    RUN_WORDS_MS = 300,           /* after a failure survivors still write down why they end */
    RUN_TERM_MS = 500,            /* and may be in the middle of a long step */
    /* ... or save what they hold; who hangs ends himself before */
    RUN_SAVE_MS = MS_CANCEL_GRACE_MS + 2000,
    RUN_SCHEDULER_TERM_MS = 5000, /* closes its database */
    RUN_FROZEN_S = 10,            /* after the lease: who wakes up by himself has said so by then */
    RUN_UNHEARD_S = 60,           /* a process that was started has registered by then */
    RUN_SILENT_S = 10,            /* the scheduler: said, ... */
    RUN_HUNG_S = 30,              /* ... and killed; below CLIENT_ANSWER_MS */
    RUN_SIGNALS = 3,
};

struct run {
    struct cli *cli;
    struct job job;
    char *plan; /* that it brings; owned; NULL: rank 0 chooses */
    struct run_dir dir;
    char scheduler[MS_PATH_MAX + 1], worker[MS_PATH_MAX + 1]; /* the programs */
    struct child *children; /* the scheduler, then the workers; owned */
    size_t n_children;
    enum run_stage stage;

    char key[CLI_KEY_BYTES];
    uint64_t job_id; /* 0: not acknowledged yet */
    uint32_t submit_id, watch_id, cancel_id;
    uint32_t plan_id;    /* asked for the job's plan, for plan.txt; 0: there is no question */
    int plan_is_taken;   /* ... and was answered */
    uint32_t nodes_id;   /* asked for the nodes, by run_frozen.c; 0: there is no question */
    uint32_t probe_id;   /* asked whether the scheduler is there, by run_silent.c; 0: it was not */
    Ms__JobUpdate *last; /* owned; NULL: none yet */
    struct cli_display display;
    char eval_name[CLI_EVAL_NAME_MAX];
    char *again;           /* what of this run a command has that goes on with it; owned */
    int again_by_key;      /* ... with the key resume, as this one did, and not with --resume */
    uint64_t resumed_step; /* by --resume; 0: it begins with the first */
    double resumed_s;      /* of training until then */
    int64_t started_ms;
    int64_t lost_ms; /* since when there is no connection to the scheduler; 0: there is one */
    uint64_t heard;  /* client_heard, a moment ago */
    int silent_s;    /* of the scheduler, which lives */

    int first_dead; /* index of the child whose end was noticed first while needed, and that is
                       not started again; -1 */
    int n_restarts;
    int stop_step;      /* run_stop.c */
    int64_t term_ms;    /* ... that workers have between TERM and KILL */
    int stop_scheduler; /* workers are gone, its turn */
    int signal;         /* first one that came; 0: none */
    int n_signals;
    int has_dead; /* SIGCHLD came: who died is not reaped yet */
    int failed;   /* err says why: not the job's end but ours */
    struct ms_err err;
    const struct child *given_up; /* because of whom */

    struct event *timers[RUN_TIMERS];
    int fired[RUN_TIMERS];
    struct event *signals[RUN_SIGNALS + 1]; /* INT, TERM, HUP; CHLD */
};

/* From here on signals are noted, and acted on by run_loop; before there is anything to clean up.
 */
int run_watch(struct run *run, struct ms_err *err);
/* Starts scheduler and workers, begins to connect. */
int run_start(struct run *run, struct ms_err *err);
/* Until all is over. */
void run_loop(struct run *run);
/* Kills and reaps whatever is left, frees events. */
void run_end(struct run *run);

/* run_stop.c: begins to stop everything: grace_ms for workers to end by themselves (0: TERM now).
 */
void run_stop(struct run *run, int64_t grace_ms);
/* Goes on with it after a child ended or a time passed. */
void run_stop_next(struct run *run);
void run_kill(struct run *run);
size_t run_workers_alive(const struct run *run);

/* run_children.c */
/* Before there is anything to clean up. */
int run_find_programs(struct run *run, struct ms_err *err);
int run_start_children(struct run *run, struct ms_err *err);
/* The scheduler (0) or a worker, the first time or again. */
int run_start_child(struct run *run, size_t index, struct ms_err *err);
/* Reaps; has those that ended too early started again, or notes the first that is not. */
void run_reap(struct run *run);
/* Fails the run because of first_dead: its name, status and last lines. */
void run_fail_dead(struct run *run);

/* run_restart.c */
/* Child index ended too early: 1 where it is started again, which is said. */
int run_restart_plan(struct run *run, size_t index);
/* Starts those whose time has come. */
void run_restart_due(struct run *run);
/* The job was heard of: who is of use in it? */
void run_restart_look(struct run *run, const Ms__JobInfo *job);
/* The scheduler is there, or will be. */
int run_has_scheduler(const struct run *run);
/* It is started again where it dies: not a worker of a job that is about to end. */
int run_needs(const struct run *run, size_t index);

/* run_frozen.c */
/* Counts the time of those who live and are lost; asks the scheduler about them when it is over. */
void run_frozen_look(struct run *run);
/* Its answer: kills those whose process it lost. */
void run_frozen_take(struct run *run, uint16_t type, const ProtobufCMessage *msg);

/* run_silent.c: counts the time in which the scheduler is not heard; says so, and kills it. */
void run_silent_look(struct run *run);

void run_timer_set(struct run *run, enum run_timer timer, int64_t ms);
void run_fail(struct run *run, const struct ms_err *err);
/* Likewise because of a child; whoever holds the training saves it first. */
void run_give_up(struct run *run, const struct child *child, const struct ms_err *err);
/* Its job ends at the step, for a signal came or we gave up: nobody comes back to it. */
int run_is_cut(const struct run *run);
/* As far as the scheduler has said. */
int run_job_ended(const struct run *run);

#endif
