/* pass.h - a network and the data that it answers for, a shard at a time */
#ifndef INFER_PASS_H
#define INFER_PASS_H

#include "libworker/infer/infer.h"
#include "libworker/infer/net.h"

#include <pthread.h>
#include <stdatomic.h>

struct pass_common { /* of all passes that run side by side */
    const struct infer_config *cfg;
    int is_judged; /* labels count, else folders of images need not be the training's classes */
    pthread_mutex_t lock;
    int64_t done; /* rows; under the lock, as is every call of cfg's functions */
    atomic_int stop;
};

struct pass {
    struct pass_common *common;
    int is_first;
    struct data_source *source;
    struct loader_info info; /* of all rows; classes: those of the training */
    int64_t batch, rows;
    int threads; /* that decode, and of the network's team */
    struct net *net;
};

/* Zeroes and fills; after a failure there is nothing to close. common is borrowed for the life.
 * Notes about the plan are the first one's. */
int pass_open(struct pass *pass, struct pass_common *common, int is_first, struct ms_err *err);
void pass_close(struct pass *pass); /* of a zeroed one nothing */
/* Once nobody reads: the files were whole, and who delivers records has ended. */
int pass_verify(struct pass *pass, struct ms_err *err);

/* Each batch of a rank's rows, in their order; a negative code ends the pass. MS_E_ABORTED: stop
 * was set. */
typedef int pass_batch_fn(void *arg, const struct batch *batch, const struct plan_evaluated *made,
                          struct ms_err *err);
int pass_run(struct pass *pass, int rank, int world, pass_batch_fn *on_batch, void *arg,
             struct ms_err *err);

#endif
