/* run.h - a placed job: its ranks, who holds them, how they get ready, end and come back */
#ifndef SCHED_RUN_H
#define SCHED_RUN_H

#include "daemon/sched/sched.h"
#include "daemon/sched/states.h"
#include "daemon/sched/timer.h"

#include <stdbool.h>

struct claim;
struct conn;
struct job;
struct node;

enum rank_state {
    RANK_MISSING, /* adopted job: its node is not back yet */
    RANK_PREPARING,
    RANK_READY,
    RANK_TRAINING,
    RANK_DONE,
    RANK_STOPPED,
    RANK_FAILED,
    RANK_LOST,
    RANK_STATES
};

struct member {
    char node_id[MS_NAME_MAX + 1];
    char weights_sha256[65];
    char plan_sha256[65];
    enum rank_state state;
    uint64_t incarnation;
    char *host_name;   /* owned; never NULL */
    char *log_path;    /* owned; never NULL */
    bool unstored;     /* log_path is newer than its row */
    struct node *node; /* while the rank is held; also MISSING: the node that is expected */
    uint32_t pid;
    uint64_t step, steps;
    double seconds;
};

struct progress {
    Ms__Progress msg; /* phase points nowhere: progress_text */
    char phase[24];
};

struct run {
    struct job *job;
    struct member *members; /* job->workers of them */
    uint32_t n_missing, n_ready, n_done, n_stopped;
    struct timer adopt, grace, blame;
    bool cancelling; /* Stop{at_step} is out */
    char cancel_text[MS_TEXT_MAX + 1];
    int32_t blame_code;
    char blame_text[MS_TEXT_MAX + 1];
    bool has_progress;
    struct progress progress;
    struct progress *evals;
    size_t n_evals;
};

struct run *run_create(struct job *job);
void run_free(struct run *run);

/* place.c and rank.c: who gets which rank */

void place_settle(struct sched *s);
void place_job(struct sched *s, struct job *job, struct node **nodes); /* in rank order */
void run_token(const struct sched *s, const struct job *job, uint8_t ret[MS_TOKEN_LEN]);
int natural_compare(const char *a, const char *b); /* "w2" before "w10" */
/* Chooses want of n nodes (few hosts) and puts them first, in rank order. */
void rank_choose(struct sched *s, struct node **nodes, size_t n, uint32_t want);
const char *isa_least(struct node *const *nodes, uint32_t n);

/* run.c and end.c: its life and end */

void on_rank_ready(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_rank_done(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_peer_report(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_progress(struct sched *s, struct conn *conn, const struct sched_event *event);
void run_came_back(struct sched *s, struct node *node, const struct claim *claim);
void run_rank_lost(struct sched *s, struct job *job, uint32_t rank, int code, const char *cause);
void run_adopt_timeout(struct sched *s, struct run *run);
void run_grace_timeout(struct sched *s, struct run *run);
void run_blame_timeout(struct sched *s, struct run *run);
void run_stop_at_step(struct sched *s, struct job *job, const char *text);
void send_start(struct sched *s, const struct node *node);
void send_stop(struct sched *s, const struct node *node, uint64_t job, uint64_t generation,
               int code, const char *text, bool at_step);
const char *rank_words(struct sched *s, const struct job *job, uint32_t rank);
const char *log_words(struct sched *s, const struct job *job, uint32_t rank);
void job_end(struct sched *s, struct job *job, enum job_event event, int code, const char *text);
void job_fail(struct sched *s, struct job *job, int code, const char *text);

#endif
