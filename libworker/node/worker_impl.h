/* worker_impl.h - what worker.c and worker_*.c share: a node and the rank it holds */
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
    char unsaved[MS_ERR_TEXT_MAX]; /* why it did not save all, as was said last; "": it did */
    char run_dir[MS_PATH_MAX + 1];
    int folder_fd; /* held: nobody takes the folder away meanwhile; -1: none */
    char log_path[MS_PATH_MAX + 32];
    int log_fd;
    uint64_t ready_step; /* from which it goes on */
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
/* Until the rank that is at work here holds no more, is asked to stop, or ms are over. False:
 * they are. The trainer's thread. */
int worker_await_word(struct worker *worker, int64_t ms);
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
 * is it. */
void worker_leave_plan(struct worker *worker);
void worker_next_plan(struct worker *worker);
void worker_drop_kept_plan(struct worker *worker); /* of a next one that never will be */
void worker_drop_plans(struct worker *worker);     /* at the end of the worker */

/* ---- worker_rank.c: the trainer's duties for one rank, from Assign to the last word ---- */

/* worker->assign is a new one; it has passed assign_check. */
void rank_begin(struct worker *worker);
/* One for each enum life_duty between LIFE_WAIT and LIFE_DO_END, with three in worker_hold.c; each
 * tells what became of it. */
void rank_plan(struct worker *worker);
void rank_join(struct worker *worker);
void rank_train(struct worker *worker);
void rank_say(struct worker *worker);
void rank_clean(struct worker *worker);
/* Those of an Assign. Returns owned; NULL without memory. */
struct mesh_member *rank_members(const Ms__Assign *assign);
/* Interrupts that came before it existed are made up for. NULL: none any more. */
void rank_set_train(struct worker *worker, struct train *train);
/* rc: of the mesh. Start may come the moment RankReady is out: the life has to know before that the
 * mesh stands. */
void rank_tell_mesh(struct worker *worker, int rc, const struct train_info *info,
                    const struct ms_err *err);

/* ---- worker_hold.c: a rank whose peer is gone, or that goes on under another generation ---- */

/* Reports the peer and lets the scheduler, who knows why, speak first. */
void rank_hold(struct worker *worker);
void rank_stop(struct worker *worker); /* ... or ends where it holds, if it was asked to stop */
void rank_pull(struct worker *worker);
/* Says to the life, for a generation of which nothing had begun, that the trainer is back. */
void rank_come_back(struct worker *worker, uint64_t generation);
/* The rank in hand is of that generation from now on: a grace for what it was is over. */
void rank_go_on(struct worker *worker, uint64_t generation);

/* ---- worker_report.c: what the scheduler hears of the rank ---- */

/* For train_config.on_progress; arg is the worker. */
void worker_on_progress(void *arg, const struct train_progress *progress);
void worker_on_saved(void *arg, uint64_t step); /* on_saved: any thread */
/* For train_config.on_wait and on_note: into the node's log and the rank's own. */
void worker_on_wait(void *arg, const char *text);
void worker_on_note(void *arg, const char *text);
/* Whose plan the rank obeys, and which: likewise. */
void worker_log_plan(struct worker *worker);
/* rc: what the work in hand ended with. Once for each cause, and that it is saved after all. */
void worker_log_unsaved(struct worker *worker, int rc);
void worker_give_result(struct worker *worker, int rc); /* of a job that went well */
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
