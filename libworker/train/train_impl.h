/* train_impl.h - what prepare.c, planning.c, train.c and rejoin.c share */
#ifndef TRAIN_IMPL_H
#define TRAIN_IMPL_H

#include "libworker/train/cpus.h"
#include "libworker/train/metrics.h"
#include "libworker/train/replica.h"
#include "libworker/train/train.h"

#include <pthread.h>
#include <stdatomic.h>

/* Floats behind the gradients that travel with the last bucket: [0] the rank's loss, [1] 1 where
 * the rank was asked to stop. A whole cache line, so that the bucket stays aligned. */
enum { TAIL_FLOATS = 16, TAIL_LOSS = 0, TAIL_STOP = 1 };

struct train {
    struct train_config cfg;
    int data_rank, data_world; /* stand_alone: 0 of 1 */
    struct data_source *source, *eval_source;
    struct loader *loader;
    struct loader_info info, eval_info;
    struct replica *replica;
    char *plan_text; /* that the replica has plans of; NULL: none yet */
    struct plan_sizes sizes;
    struct mesh *mesh;
    int culprit; /* of a mesh that could not be made, -1: none */
    struct reducer *reducer;
    const void **results; /* n_buckets */
    struct metrics *metrics;
    struct train_info known;
    struct train_cpus cpus;
    int64_t eval_batch;
    double recent_rows, recent_s; /* of about twenty steps, for who watches */

    /* where training is: what train_run goes on from */
    struct train_progress progress;
    struct batch batch; /* of the step in hand; it is released after the step's commit */
    int has_batch;
    int evaluates;           /* the evaluation after the last step is due */
    int stopped;             /* asked to stop at a step boundary, and all ranks agreed */
    double seconds, since_s; /* spent in train_run; the clock at the end of the last step */

    atomic_int stop_asked; /* end after this step */
    atomic_int cancelled;  /* give this step up */
    pthread_mutex_t lock;  /* guards the handles below against train_abort */
    int aborted, held;
    char abort_text[MS_TEXT_MAX + 1];
};

/* Fails with the abort's text once train_abort was called, or train_hold until train_rejoin. */
int train_check_abort(struct train *train, struct ms_err *err);
/* prepare.c: the mesh of cfg.members, with its reducer. */
int train_make_mesh(struct train *train, struct ms_err *err);
/* train.c: the batch in hand was committed with that mean loss; notes it. */
int train_step_done(struct train *train, float loss_here, float loss_mean, double wait_s,
                    struct ms_err *err);
/* prepare.c: batches that wait ready, of training and of evaluation. */
enum { LOADER_DEPTH = 2 };
/* The loader of the training data, once. Its first read begins the host's copy of the files: after
 * the memory was judged. Whoever aborted before has ended what would ask it for batches. */
int train_start_loader(struct train *train, struct ms_err *err);
int64_t train_eval_batch(const struct job *job); /* by default that of the training */
/* Loader over the evaluation data, for one pass. */
int train_eval_loader(struct train *train, struct loader **ret, struct ms_err *err);

#endif
