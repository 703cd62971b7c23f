/* run.h - a placed job: its ranks, who holds them, how they get ready, end and come back */
#ifndef SCHED_RUN_H
#define SCHED_RUN_H

#include "daemon/sched/sched.h"
#include "daemon/sched/states.h"
#include "daemon/sched/timer.h"

#include <stdbool.h>

struct claim;
struct conn;
struct hold;
struct job;
struct node;

struct member {
    char node_id[MS_NAME_MAX + 1];
    char weights_sha256[65];
    char plan_sha256[65];
    enum rank_state state;
    uint64_t incarnation;
    char *host_name;   /* owned; never NULL */
    char *principal;   /* owned; never NULL: who registered the node */
    char *log_path;    /* owned; never NULL */
    bool unstored;     /* log_path is newer than its row */
    struct hold *hold; /* while a node has the rank; also MISSING: the node that is expected */
    uint32_t pid;
    uint64_t step, steps;
    double seconds;
};

struct progress {
    Ms__Progress msg; /* phase points nowhere: it is the one below */
    char phase[MS_NAME_MAX + 1];
};

/* What a rank says about another one; it waits for a first-hand report. */
struct complaint {
    bool made;
    uint32_t rank; /* it is about */
    int32_t code;
    char text[MS_TEXT_MAX + 1];
    struct timer timer;
};

/* What befalls a rank; lost.c says what becomes of its job. */
enum fault {
    FAULT_LOST,      /* its node is gone, or holds it no more */
    FAULT_MISSING,   /* its node did not come back after the scheduler's restart */
    FAULT_FAILED,    /* it said so itself */
    FAULT_LEAVING,   /* ... and that its process leaves, or begins anew */
    FAULT_COMPLAINT, /* another rank said so, and nobody knew better */
    FAULT_UNTOLD,    /* what it has to know cannot be sent */
    FAULT_UNREADY,   /* its node beats, and it does not get ready */
    FAULT_DISAGREE,  /* its digest is not that of the others */
    FAULTS
};

struct run {
    struct job *job;
    struct member *members;     /* job->workers of them */
    uint32_t n_in[RANK_STATES]; /* ranks by state: rank_set counts, nobody else */
    struct timer ready;         /* while PLACING; not armed: for ever */
    struct timer adopt;         /* while ranks are MISSING */
    int64_t expect_ms;          /* how long it was armed for, all in all */
    const char *expected;       /* after what their nodes have to come back; a literal */
    struct timer grace;         /* of a cancel at the step */
    bool cancelling;            /* Stop{at_step} is out */
    char cancel_text[MS_TEXT_MAX + 1];
    struct complaint complaint;
    bool has_progress;
    struct progress progress;
    struct progress *evals;
    size_t n_evals;
};

/* place.c and rank.c: who gets which rank */

void place_settle(struct sched *s);
void place_job(struct sched *s, struct job *job, struct node **nodes); /* in rank order */
void run_token(const struct sched *s, const struct job *job, uint8_t ret[MS_TOKEN_LEN]);
int natural_compare(const char *a, const char *b); /* "w2" before "w10" */
/* Chooses want of n nodes (few hosts) and puts them first, in rank order. */
void rank_choose(struct sched *s, struct node **nodes, size_t n, uint32_t want);
const char *isa_least(struct node *const *nodes, uint32_t n);

/* run.c: the object, its ranks' states, its words */

struct run *run_create(struct job *job); /* ranks are MISSING until rank_begin; NULL: no memory */
void run_free(struct run *run);
void rank_begin(struct run *run, uint32_t rank, enum rank_state state); /* its first state */
void rank_set(struct run *run, uint32_t rank, enum rank_event event);
bool rank_is_over(const struct member *member);
uint32_t run_n_over(const struct run *run);
const char *rank_state_name(enum rank_state state); /* in lower case, for people */
const char *rank_words(struct sched *s, const struct job *job, uint32_t rank);
const char *log_words(struct sched *s, const struct job *job, uint32_t rank);
/* "<rank> <what>: <cause>; <log>", where the cause gives way if all does not fit. */
const char *rank_text(struct sched *s, const struct job *job, uint32_t rank, const char *what,
                      const char *cause);
void send_start(struct sched *s, const struct hold *hold);
void send_stop(struct sched *s, const struct node *node, uint64_t job, uint64_t generation,
               int code, const char *text, bool at_step);

/* report.c: what its ranks say */

void on_rank_ready(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_rank_done(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_peer_report(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_progress(struct sched *s, struct conn *conn, const struct sched_event *event);
void run_came_back(struct sched *s, struct hold *hold, const struct claim *claim);

/* The rank that this connection speaks for, if its node holds that rank of a job that is placed;
 * else NULL: crossing messages of a job that has ended are normal. */
struct hold *rank_speaker(const struct conn *conn, uint64_t job, uint64_t generation,
                          uint32_t rank);

/* agree.c: by which plan the ranks run */

void on_rank_plan(struct sched *s, struct conn *conn, const struct sched_event *event);
/* Where the ranks of a placed job have their plan from. */
enum ms_plan_from run_plan_from(const struct job *job);
bool run_awaits_plan(const struct job *job); /* PLACING: rank 0 has not said it yet */
/* Plan to all ranks; the job's own is in memory. False: it cannot be sent, and the job was lost. */
bool run_tell_plan(struct sched *s, struct job *job);
void run_tell_plan_again(struct sched *s, const struct hold *hold); /* none yet: nothing */
/* NULL, or why the digest that all ranks have is not that of the job's plan. */
const char *run_plan_differs(struct sched *s, const struct job *job, const char *digest);
bool node_knows_plans(const struct node *node); /* its release does */

/* lost.c: the policy. The job ends, or is placed anew: run may be gone afterwards. */

void run_lost(struct sched *s, struct job *job, uint32_t rank, enum fault fault, int code,
              const char *text);
/* Keeps the first complaint and gives the rank that it is about the time to speak for itself. */
void run_complain(struct sched *s, struct run *run, uint32_t rank, int code, const char *text);
void run_complaint_timeout(struct sched *s, struct run *run);

/* ready.c: how long ranks may take to get ready */

void ready_expect(struct sched *s, struct run *run); /* from now on */
bool ready_is_bounded(const struct sched *s);
void ready_timeout(struct sched *s, struct run *run);

/* adopt.c: whose nodes have to come back */

void node_arrived(struct sched *s, struct node *node); /* it registered */
void nodes_stand_outside(struct sched *s);             /* some may, and cannot get in */
/* Its MISSING ranks have so long to come back; longer if that is later, or nodes keep coming. */
void run_expect(struct sched *s, struct run *run, int64_t ms, const char *after);
void run_adopt_timeout(struct sched *s, struct run *run);
const char *awaited_words(struct sched *s); /* who is missing, for the status; "": nobody */

/* results.c: what an ended job showed, as its row keeps it */

void results_pack(struct sched *s, const struct run *run, struct sched_job_row *row);
int results_unpack(struct job *job, const struct sched_job_row *row, struct ms_err *err);
bool rank_state_parse(const char *name, enum rank_state *ret);

/* end.c: how a placed job is stopped, and how any job ends */

void run_grace_timeout(struct sched *s, struct run *run);
void run_stop_at_step(struct sched *s, struct job *job, const char *text);
void job_end(struct sched *s, struct job *job, enum job_event event, int code, const char *text);
void job_requeue(struct sched *s, struct job *job, const char *text); /* PLACING only */

#endif
