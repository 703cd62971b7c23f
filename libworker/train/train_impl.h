/* train_impl.h - what prepare.c, planning.c, train.c, agree.c and rejoin.c share */
#ifndef TRAIN_IMPL_H
#define TRAIN_IMPL_H

#include "libworker/data/data.h"
#include "libworker/train/best.h"
#include "libworker/train/checkpoint.h"
#include "libworker/train/cpus.h"
#include "libworker/train/evaluation.h"
#include "libworker/train/judge.h"
#include "libworker/train/metrics.h"
#include "libworker/train/rank_log.h"
#include "libworker/train/replica.h"
#include "libworker/train/train.h"

#include <pthread.h>
#include <stdatomic.h>

/* Floats behind those gradients that travel, with the last bucket: [0] the rank's loss, [1] 1 where
 * the rank was asked to stop, [2] 1 where it was asked while it waited for a record, and has no
 * gradients: no rank commits the step, [3] the mean weight of the rank's rows. A whole cache line,
 * so that the bucket stays aligned. */
enum { TAIL_FLOATS = 16, TAIL_LOSS = 0, TAIL_STOP = 1, TAIL_VOID = 2, TAIL_WEIGHT = 3 };

struct train_data { /* which ones this rank has; zero where it has none */
    struct data_identity training, evaluation;
};

struct train_gap { /* steps of which a file of lines has none, for good; 0: there are none */
    uint64_t first, last;
};

struct train {
    struct train_config cfg;
    char job_tag[MS_JOB_TAG_LEN + 1];
    int data_rank, data_world; /* stand_alone: 0 of 1 */
    struct data_source *source, *eval_source;
    struct loader *loader, *eval_loader; /* NULL: none, or no evaluation goes on */
    struct loader_info info, eval_info;
    struct train_data data;
    struct replica *replica;
    char *plan_text; /* that the replica has plans of; NULL: none yet */
    struct plan_sizes sizes;
    struct mesh *mesh;
    int culprit; /* of a mesh that could not be made, -1: none */
    int mesh_rc; /* ... or in which this rank could not stand ready, and why; 0: it could */
    struct reducer *reducer;
    const void **results; /* n_buckets */
    struct metrics *metrics;
    struct scores *scores; /* what an evaluation counts; NULL: nothing more than usual */
    /* why none can be written, as was said; "": they are */
    char metrics_trouble[MS_ERR_TEXT_MAX], log_trouble[MS_ERR_TEXT_MAX];
    struct train_gap metrics_gap, log_gap;
    char training[METRICS_TRAINING_MAX + 1]; /* what lines call it, once has_lines */
    struct rank_log log;
    int has_lines;                      /* both were opened, where there are any */
    struct checkpoint *checkpoint;      /* NULL: this rank writes none */
    int has_spare;                      /* ... and there is memory for a copy of the state */
    int saves;                          /* the end of the training, in the place of rank 0 */
    int has_kept;                       /* ... or as rank 0, which it has */
    struct checkpoint_list found;       /* at the last look for them */
    int has_told_passed;                /* which others lie in their folder */
    int has_awaited_lent;               /* the word of who lends what `resume` names: lent.h */
    char resume_found[MS_ERR_TEXT_MAX]; /* why none that `resume` names can be taken; "": one can */
    struct train_info known;
    struct train_cpus cpus;
    int64_t eval_batch;
    double recent_rows, recent_s; /* of about twenty steps, for who watches */

    int is_allocated;
    char first_tag[MS_JOB_TAG_LEN + 1];  /* of the job that began it; "": this one did */
    int has_state;                       /* of the training, in the replica: not so, it is fresh */
    int is_copy;                         /* ... as it was taken, or begun: no step was made of it */
    int is_dirty;                        /* it is fresh, and its buffers are not zero any more */
    uint8_t digest[MS_STATE_DIGEST_LEN]; /* by train_digest */
    uint64_t loader_step; /* committed before the first batch that the loader gave, or gives */
    double begun_s;       /* the clock when train_open began */

    /* where training is: what train_run goes on from */
    struct train_progress progress;
    struct batch batch; /* of the step in hand; it is released after the step's commit */
    int has_batch;
    int has_scores;          /* those of the last evaluation are summed up, over all ranks */
    int is_within;           /* the loader's next batch, or that one, is a later part of a step */
    int evaluates;           /* the evaluation after the last step is due */
    int has_skipped;         /* ... and was not made: train_skip_evaluation */
    struct watch watch;      /* of early_stop; the same on all ranks of a step */
    int is_early;            /* steps_total is where that ended the training */
    struct best_list kept;   /* of best: rank 0's, of the files in its run directory */
    struct best_one unkept;  /* the best evaluation whose weights had no room; step 0: all had */
    struct record record;    /* ... and what this process knows of those that lie elsewhere */
    int stopped;             /* asked to stop at a step boundary, and all ranks agreed */
    double seconds, since_s; /* spent in train_run; the clock at the end of the last step */
    double told_s;           /* ... at the last loss line, moved on by evaluations */
    double run_begun_s;      /* ... and when this train_run began */

    atomic_int stop_asked; /* end after this step */
    atomic_int cancelled;  /* give this step up */
    /* guards loaders and mesh against train_stop_at_step, train_hold, train_abort; all below */
    pthread_mutex_t lock;
    int aborted, held;
    char abort_text[MS_TEXT_MAX + 1];
};

/* Fails with the abort's text once train_abort was called, or train_hold until train_rejoin. */
int train_check_abort(struct train *train, struct ms_err *err);
/* prepare.c: everything that a rank with a plan does to stand at the step of its peers; what was
 * done before is not done again. */
int train_stand_ready(struct train *train, struct ms_err *err);
/* prepare.c: those of step 0, by the job's seed or its file, the same on all ranks. */
int train_initial_weights(struct train *train, struct ms_err *err);
/* prepare.c: the loader's next batch is that of the step after so many; no batch is in hand. */
int train_place_loader(struct train *train, uint64_t step, struct ms_err *err);
/* agree.c: of the state that this rank holds, if any: before it waits for the others, whom it would
 * keep waiting. */
int train_digest(struct train *train, struct ms_err *err);
/* agree.c: a collective of the mesh, after which all ranks hold the state of one step. */
int train_agree(struct train *train, struct ms_err *err);
/* train_step.c: loader_next of a loader of train's whose source is that one. */
int train_next(struct train *train, struct loader *loader, struct data_source *source,
               struct batch *ret, struct ms_err *err);
/* train_step.c: no more is read: what programs say at their end is put into the rank's log, too. */
void train_finish_data(struct train *train);
/* train_step.c: rc is that of train_next, which a stop has kept from waiting any longer. */
int train_was_woken(const struct train *train, int rc);
/* train_step.c: 1: the first batch of the next step is in hand, or a stop is asked and there will
 * be none; 0: the data are at their end. */
int train_take_batch(struct train *train, struct ms_err *err);
struct train_step_numbers {
    float loss_here, loss_mean;
    float
        weight; /* of the rows of all ranks, a rank's mean each: so many as ranks where all are 1 */
    int stop;
    int is_void; /* some rank has no batch, for it was asked to stop: nobody commits the step */
    double wait_s;
};
/* train_step.c: the step of the batch in hand, with those that belong to it, until all gradients
 * are summed over ranks; the last of its batches stays in hand. Without one the others are told so.
 * Nothing is changed: it can begin anew. */
int train_run_step(struct train *train, uint64_t step, struct train_step_numbers *ret,
                   struct ms_err *err);
/* train.c: the rank's own loss is known to nobody else: its line is there before the others can
 * commit the step, and stays where they cannot, for the step that runs again has the same. */
void train_log_loss(struct train *train, uint64_t step, float loss);
/* train.c: the batch in hand was committed with that mean loss; notes it. */
void train_step_done(struct train *train, float loss_here, float loss_mean, double wait_s);
/* train.c: the last step's lines in metrics.jsonl, and its weights, where its evaluation was the
 * best: who committed it did not live to write them, or wrote them on another host. How long it
 * took went with it. Lines before it that this rank's files lack are named. is_copy: no step was
 * made of the state that was taken. */
void train_tell_missed(struct train *train, int is_copy);
/* For who watches: cfg.on_note, where there is one. */
void train_note(const struct train *train, const char *text);
/* train.c: lines of the training until here that this rank's files lack are named, where the state
 * came from a checkpoint. */
void train_note_gaps(struct train *train);
/* train.c: after the last step? */
int train_evaluation_due(const struct train *train);

struct train_checkpoint { /* from which this rank could go on */
    uint64_t step;        /* 0: there is none */
    size_t place;         /* among those that it found: several may be of one step */
    int is_own;           /* the job's, and not what it was resumed from */
    float loss;           /* of that step */
    double seconds;       /* of training until then */
    struct watch watch;
    char first_tag[MS_JOB_TAG_LEN + 1]; /* of the job that began it */
    /* Into the replica, whole or not at all; verified. */
    int (*load)(struct train *train, const struct train_checkpoint *from, struct ms_err *err);
};
/* resume.c: looks which there are. What it found stays until the next look. */
int train_find_checkpoints(struct train *train, struct ms_err *err);
/* That of a place, from 0 on: its own first, the newest before older ones; step 0: there are no
 * more. */
struct train_checkpoint train_checkpoint_at(const struct train *train, size_t place);

/* The loader of the training data, once. Its first read begins the host's copy of the files: after
 * the memory was judged. Whoever aborted before has ended what would ask it for batches. */
int train_start_loader(struct train *train, struct ms_err *err);
/* eval_loader over the evaluation data, for one pass; NULL again. */
int train_start_eval(struct train *train, struct ms_err *err);
void train_end_eval(struct train *train);

#endif
