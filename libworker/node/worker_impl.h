/* worker_impl.h - what worker.c, worker_rank.c and worker_report.c share: a node and the rank it
 * holds */
#ifndef WORKER_IMPL_H
#define WORKER_IMPL_H

#include "libworker/agent/agent.h"
#include "libworker/agent/fetch_serve.h"
#include "libworker/node/node.h"
#include "libworker/node/worker.h"

#include <pthread.h>

struct worker {
    const struct worker_config *cfg;
    struct agent *agent;
    struct comm_listener *listener;
    struct fetch_serve *serve; /* under lock */
    struct node_identity identity;

    pthread_mutex_t lock; /* guards train against on_stop */
    struct train *train;
    SSL_CTX *tls; /* of the next rank; a reference; NULL: plain */
    uint64_t generation;
    struct agent_order stop; /* the hard stop, leave or loss that came, once stopped is set */
    int stopped;
    struct agent_order end; /* TERM, or lost, once ending is set: whatever Stop follows, this */
    int ending;             /* node ends after the job in hand */
    int is_unfit;           /* of the trainer's thread: it cannot serve a rank, whoever's it is */
    int renews;             /* the process begins anew after this rank */

    /* of the job in hand */
    uint64_t job_id;
    uint32_t rank, world;
    char run_dir[MS_PATH_MAX + 1];
    int folder_fd; /* held: nobody takes the folder away meanwhile; -1: none */
    char log_path[MS_PATH_MAX + 32];
    int log_fd;
    int64_t progress_ms;
    enum train_phase last_phase;
};

/* ---- worker.c ---- */

/* The hard stop that came concerns the generation in hand. Under the lock. */
int worker_stop_applies(const struct worker *worker);
/* Aborts the training in hand if a hard stop came for it. Under the lock. */
void worker_abort_train(struct worker *worker);
/* The certificates of today, as a reference that the caller frees; NULL: plain. */
SSL_CTX *worker_tls(struct worker *worker);
/* Folder of a job on this node; "" where the node keeps none. */
void worker_job_folder(const struct worker *worker, uint64_t job, char *buf, size_t size);

/* Is what lies there of the job with this tag, and not of another one that had its number? */
int worker_folder_is_of(const struct worker *worker, const char *folder, const char *job_tag);

/* ---- worker_rank.c: one rank, from Assign to the scheduler's last word ---- */
/* assign has passed assign_check. */
int worker_serve(struct worker *worker, const Ms__Assign *assign, struct ms_err *err);

/* ---- worker_report.c: what the scheduler hears of the rank ---- */

/* For train_config.on_progress; arg is the worker. */
void worker_on_progress(void *arg, const struct train_progress *progress);
/* For train_config.on_wait: into the node's log and the rank's own. */
void worker_on_wait(void *arg, const char *text);
void worker_send_ready(struct worker *worker, const struct train_info *info);
void worker_send_done(struct worker *worker, int code, const char *text,
                      const struct train_result *result);

/* ---- worker_fetch.c: results of jobs, for those whom the scheduler sends ---- */

int worker_start_serving(struct worker *worker, struct ms_err *err); /* the agent stands */
void worker_stop_serving(struct worker *worker);                     /* before the agent goes */
/* For agent_config.on_fetch; arg is the worker. */
void worker_on_fetch(void *arg, const Ms__FetchGrant *grant);

#endif
