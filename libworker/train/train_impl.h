/* train_impl.h - what prepare.c and train.c share */
#ifndef TRAIN_IMPL_H
#define TRAIN_IMPL_H

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
    struct plan_sizes sizes;
    struct mesh *mesh;
    struct reducer *reducer;
    const float **results; /* n_buckets */
    struct metrics *metrics;
    struct train_info known;
    int64_t eval_batch;
    double recent_rows, recent_s; /* of about twenty steps, for who watches */

    atomic_int stop_asked; /* end after this step */
    atomic_int cancelled;  /* give this step up */
    pthread_mutex_t lock;  /* guards the handles below against train_abort */
    int aborted;
    char abort_text[MS_TEXT_MAX + 1];
};

/* Fails with the abort's text once train_abort was called. */
int train_check_abort(struct train *train, struct ms_err *err);
/* Loader over the evaluation data, for one pass. */
int train_eval_loader(struct train *train, struct loader **ret, struct ms_err *err);

#endif
