/* loader_impl.h - what the files of the loader share: the ring of batches, and filling one */
#ifndef DATA_LOADER_IMPL_H
#define DATA_LOADER_IMPL_H

#include "libworker/data/data.h"
#include "libworker/data/pool.h"

#include <pthread.h>
#include <stdatomic.h>

struct row { /* of a tensor of the batch: what one record gives */
    enum ms_dtype dtype;
    size_t count, bytes; /* elements, and their size */
};

struct slot {
    char *images, *labels; /* batch rows of each */
    int32_t *others;       /* of mixed samples with classes; NULL: there are none */
    float *shares;
    struct batch batch;
};

struct loader {
    struct loader_config cfg; /* transforms: ours */
    struct transform transforms[MS_TRANSFORMS_MAX];
    int n_single; /* transforms of one sample: the first ones */
    double alpha; /* of mixup; 0: samples are not mixed */
    struct data_info data;
    struct data_shard shard;
    struct loader_info info;
    int64_t batches_per_epoch;
    struct row images, labels;

    int64_t *perm; /* of the epoch, where it shuffles */
    char *scratch; /* of the transforms, scratch_bytes a thread */
    size_t scratch_bytes;
    char *mixing; /* a sample and its targets that another one is mixed with, likewise */
    size_t mixing_bytes;

    int n_threads;
    struct data_reader **readers; /* a thread; NULL: records are read from the source, by one */
    struct pool *pool;            /* NULL: one thread */

    struct slot *slots;
    int n_slots;

    pthread_t thread;
    int has_thread;
    atomic_int stop; /* looked at between records, so that a join is quick */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t filled, freed;
    int64_t n_filled, n_taken, n_released; /* batches so far; slot = number % n_slots */
    int is_done, is_aborted, is_held;
    struct ms_err error; /* code 0: none */
};

/* loader_fill.c, the loader's thread: batch `index` of the epoch, whose permutation is there. Fails
 * as data_read; MS_E_ABORTED: the loader was stopped. */
int loader_fill(struct loader *l, struct slot *slot, int64_t epoch, int64_t index,
                struct ms_err *err);
/* What will be read, up to the batch behind number `index` of the epoch: a source that is asked for
 * it has one batch more under way than the one that is filled. */
int loader_expect(struct loader *l, int64_t epoch, int64_t index, int64_t *expected,
                  struct ms_err *err);

#endif
