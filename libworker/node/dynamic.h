/* dynamic.h - a worker's place in MindSpore's dynamic cluster, as the MS_* environment says it */
#ifndef DYNAMIC_H
#define DYNAMIC_H

#include "libworker/node/worker.h"
#include "proto/ms_env.h"
#include "proto/tls_files.h"

struct dynamic {
    struct ms_env env;
    SSL_CTX *tls; /* NULL: plain; owned */
    char server[MS_ADDR_MAX + 1];
    char node_id[MS_NAME_MAX + 1];
    char warning[MS_TEXT_MAX]; /* about the certificate, or "" */
    int check_hours;           /* between two looks at it; 0: a day */
};

/* Reads and checks the environment and loads the certificates: MS_TLS_CONFIG, or plain where
 * MS_ENABLE_SSL=0 says so or the scheduler is on loopback. dynamic_fini in any case. */
int dynamic_load(struct dynamic *dynamic, struct ms_err *err);
void dynamic_fini(struct dynamic *dynamic);

/* Sets what the environment decides of the job that this worker brings, whatever its file says:
 * the number of workers and whether a lost one is replaced. MS_E_INVALID: it is none for both. */
int dynamic_take_job(const struct dynamic *dynamic, struct job *job, struct ms_err *err);

/* Sets everything in worker that the environment decides; job is borrowed like the rest. */
void dynamic_fill(const struct dynamic *dynamic, const struct job *job,
                  struct worker_config *worker);

#endif
