/* worker.h - the life of a node: register, take a rank, train, give it back
 *
 *     idle -> Assign -> prepare -> RankReady -> Start -> train -> RankDone -> Stop -> idle or exit
 */
#ifndef WORKER_H
#define WORKER_H

#include "libworker/job/job.h"
#include "libworker/train/train.h"
#include "proto/err.h"

#include "proto/tls.h"
#include <stdint.h>

enum worker_mode {
    WORKER_STANDING, /* a service: idle between jobs */
    WORKER_RUN,      /* of `msctl run`: one job, which the scheduler sends */
    WORKER_DYNAMIC,  /* MindSpore's dynamic cluster: one job, which every worker brings */
};

struct worker_config { /* strings are borrowed for the call of worker_run */
    enum worker_mode mode;
    const char *software;
    const char *scheduler; /* "host:port" */
    const char *node_id;   /* "": made up */
    const char
        *worker_ip; /* of the data plane; "": the address from which the scheduler is reached */
    int port_min, port_max; /* of the data plane; 0, 0: any */
    SSL_CTX *tls;           /* NULL: plain; the worker takes a reference */
    const char *plain_by;   /* why, where nobody said so; NULL, "": somebody did */
    const char *run_dir; /* RUN, DYNAMIC: of the job; "": none. STANDING: parent of job folders */
    int64_t keep_days, keep_count; /* STANDING: job folders are kept so long, so many; 0: all */
    int log_to_file; /* loss lines go to <run dir>/worker_<rank>.log instead of stdout */
    int64_t connect_timeout_ms, word_ms; /* see agent.h */
    const char *connect_by, *word_by;    /* likewise */
    int64_t lease_ms;
    int64_t patience_ms; /* with a silent scheduler, with a rank in hand: see agent.h; 0: a lease */
    int64_t peer_timeout_ms;
    const struct job *job; /* DYNAMIC */
    const char *plan;      /* DYNAMIC: that the ranks obey; NULL: rank 0 chooses one */
    uint32_t worker_num;   /* DYNAMIC: MS_WORKER_NUM */
    int stays_unbound;     /* ranks are not bound to CPUs of their own */
    int64_t image_bytes;   /* of memory for decoded images of this host, at the most; 0: none */
    int force_remote;      /* tests: same-host peers over TLS */
    /* For programs that train in place: a rank before its data are opened, with its job, which may
     * get what no text says; after every step; result of a job that went well. NULL: none. */
    void (*on_rank)(void *arg, struct train *train, struct job *job, int rank, int world);
    void (*on_progress)(void *arg, const struct train_progress *progress);
    void (*on_result)(void *arg, struct train *train, const struct train_result *result);
    int64_t grace_ms; /* tests: for a trainer that was told to end; 0: MS_CANCEL_GRACE_MS */
    /* A trainer that was told to end and has not for grace_ms; on the agent's thread:
     * only the end of the process helps. NULL: nothing happens. */
    void (*on_hang)(const char *text);
    void *arg;
};

enum { WORKER_ANEW = 1 };

/* Until the job ended (RUN, DYNAMIC), TERM (worker_leave), or the scheduler refused for good. 0:
 * the job succeeded or a standing worker was asked to leave; < 0: why, naming who failed.
 * WORKER_ANEW (STANDING): a job needs another instruction set than the one before, and oneDNN takes
 * one for the life of a process: the program has to run again from its beginning, and register. */
int worker_run(const struct worker_config *cfg, struct ms_err *err);

/* Makes the worker_run that runs, or the next one, return soon: the step in hand is given up.
 * signal: that asked for it, which the scheduler is told; 0: the program does. Any thread; takes a
 * lock, so not from a signal handler. */
void worker_leave(int signal);
/* Was that asked of the worker_run that ended last, or of the next one? Any thread. */
int worker_must_leave(void);

/* New certificates for the worker_run that runs, or the next one: the connection to the scheduler
 * takes them when it is made again, at once where it waits; meshes take them from the next rank on.
 * What stands goes on. tls is borrowed for the call. Any thread; takes a lock. */
void worker_set_tls(SSL_CTX *tls);

#endif
