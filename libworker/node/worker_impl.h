/* worker_impl.h - what worker.c, worker_rank.c and worker_report.c share: a node and the rank it
 * holds */
#ifndef WORKER_IMPL_H
#define WORKER_IMPL_H

#include "libworker/agent/agent.h"
#include "libworker/agent/fetch_serve.h"
#include "libworker/node/life.h"
#include "libworker/node/node.h"
#include "libworker/node/worker.h"

#include <pthread.h>

struct worker {
    const struct worker_config *cfg;
    struct agent *agent;
    struct comm_listener *listener;
    struct node_identity identity;

    pthread_mutex_t lock;   /* guards these */
    pthread_cond_t changed; /* life */
    struct life life;
    Ms__Assign *assign; /* of the rank in hand: set while the trainer waits, freed by him */
    Ms__Plan *plan;     /* heard for it; likewise. NULL: none is, or comes */
    Ms__Assign *kept;   /* of the next one */
    Ms__Plan *kept_plan;
    struct train *train; /* of the rank in hand: for who interrupts it */
    SSL_CTX *tls;        /* of the next rank; a reference; NULL: plain */
    struct fetch_serve *serve;

    /* the rank in hand, or the last one; the trainer's thread */
    uint64_t job_id, generation; /* generation 0: none is */
    int has_served;              /* there was one */
    uint32_t rank, world;
    struct job *job;
    struct mesh_member *members;
    struct host_offer *offers; /* of the same */
    const char *plan_from;     /* for logs: "chosen here" */
    SSL_CTX *rank_tls;         /* one set of certificates for the life of a rank */
    struct train_result result;
    char run_dir[MS_PATH_MAX + 1];
    int folder_fd; /* held: nobody takes the folder away meanwhile; -1: none */
    char log_path[MS_PATH_MAX + 32];
    int log_fd;
    int64_t begun_ms, progress_ms;
    enum train_phase last_phase;
};

/* ---- worker.c ---- */

/* Under the lock: applies to the life, interrupts the trainer where that follows, and wakes him.
 * assign: of ASSIGN; ours if it is taken. */
int worker_apply(struct worker *worker, const struct life_input *input, Ms__Assign *assign);
/* Applies to the life, interrupts the trainer where that follows, and wakes him. What
 * life_apply returns. Any thread. */
int worker_tell(struct worker *worker, const struct life_input *input);
/* Until the life is in another state, or ms are over. The trainer's thread. */
void worker_await_change(struct worker *worker, enum life_state from, int64_t ms);
struct life_verdict worker_verdict(struct worker *worker);
/* The certificates of today, as a reference that the caller frees; NULL: plain. */
SSL_CTX *worker_tls(struct worker *worker);
/* Folder of a job on this node; "" where the node keeps none. */
void worker_job_folder(const struct worker *worker, uint64_t job, char *buf, size_t size);

/* Is what lies there of the job with this tag, and not of another one that had its number? */
int worker_folder_is_of(const struct worker *worker, const char *folder, const char *job_tag);

/* ---- worker_plan.c: the plan that a rank is told to obey ---- */

/* Agent's thread. Ours, or freed if it is the one that the rank has; MS_E_FULL: no rank waits for
 * it, and it stays the caller's. Another one than that fails the rank. */
int worker_take_plan(struct worker *worker, Ms__Plan *plan);
/* The text for train_obey, NULL: the one that was chosen here. Borrowed until the rank is over.
 * MS_E_INVALID: the one that was heard is not the one that this worker was given. */
int worker_find_plan(const struct worker *worker, const char **ret, struct ms_err *err);
/* plan.txt in the folder of the job, where it is this rank's to leave. */
void worker_write_plan(struct worker *worker);
/* Under the lock: the rank in hand is another one, or goes on; and where there is a next one, that
 * is it. At the end of the worker: */
void worker_leave_plan(struct worker *worker);
void worker_next_plan(struct worker *worker);
void worker_drop_plans(struct worker *worker);

/* ---- worker_rank.c: the trainer's duties for one rank, from Assign to the last word ---- */

/* worker->assign is a new one; it has passed assign_check. */
void rank_begin(struct worker *worker);
/* Says to the life, for a generation of which nothing had begun, that the trainer is back. */
void rank_come_back(struct worker *worker, uint64_t generation);
/* The rank in hand is of that generation from now on: a grace for what it was is over. */
void rank_go_on(struct worker *worker, uint64_t generation);
/* One for each enum life_duty between LIFE_WAIT and LIFE_DO_END; each tells what became of it. */
void rank_plan(struct worker *worker);
void rank_join(struct worker *worker);
void rank_train(struct worker *worker);
void rank_hold(struct worker *worker);
void rank_pull(struct worker *worker);
void rank_say(struct worker *worker);
void rank_clean(struct worker *worker);

/* ---- worker_report.c: what the scheduler hears of the rank ---- */

/* For train_config.on_progress; arg is the worker. */
void worker_on_progress(void *arg, const struct train_progress *progress);
/* For train_config.on_wait and on_note: into the node's log and the rank's own. */
void worker_on_wait(void *arg, const char *text);
void worker_on_note(void *arg, const char *text);
/* Whose plan the rank obeys, and which: likewise. */
void worker_log_plan(struct worker *worker);
int worker_send_plan(struct worker *worker, const char *text, struct ms_err *err);
void worker_send_ready(struct worker *worker, const struct train_info *info);
/* leaves: the process ends after it. */
void worker_send_done(struct worker *worker, const struct life_verdict *verdict, int leaves);

/* ---- worker_fetch.c: results of jobs, for those whom the scheduler sends ---- */

int worker_start_serving(struct worker *worker, struct ms_err *err); /* the agent stands */
void worker_stop_serving(struct worker *worker);                     /* before the agent goes */
/* For agent_config.on_fetch; arg is the worker. */
void worker_on_fetch(void *arg, const Ms__FetchGrant *grant);

#endif
