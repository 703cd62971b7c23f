/* train.h - one rank of a job: prepare, the step loop, evaluation, the end
 *
 *     train_create -> train_open (data) -> [train_choose] -> train_obey (plan, memory) ->
 *     train_join (mesh, state) -> train_run -> train_destroy
 *
 * A rank whose peer is gone, or that is held, may go on in a mesh of another generation, once it
 * has obeyed its plan:
 *
 *     train_join or train_run fails -> train_unhold -> train_rejoin -> train_run
 *
 * Where a mesh stands, its ranks agree: who holds nothing of the training takes weights,
 * statistics, slots and position from the lowest rank at the highest step. Where nobody holds any
 * it begins, or goes on from the newest checkpoint that a rank can read.
 *
 * A step: load batch, forward, backward with bucketed all-reduce, then the commit, which begins
 * only when every bucket is complete on this rank. An abort throws the step away; nothing was
 * changed. */
#ifndef TRAIN_H
#define TRAIN_H

#include "libworker/comm/comm.h"
#include "libworker/job/job.h"
#include "proto/digest.h"
#include "proto/err.h"
#include "proto/wire.h"

#include <stdint.h>

struct host_offer;
struct train;

enum train_phase { TRAIN_PREPARING, TRAIN_TRAINING, TRAIN_EVALUATING, TRAIN_SAVING };

struct train_progress { /* what people watch */
    enum train_phase phase;
    uint64_t step, steps_total; /* committed, over all epochs */
    int64_t epoch, epochs;      /* 1-based */
    int64_t step_in_epoch, steps_per_epoch;
    int has_step;                  /* the step was committed just now, and was not told before */
    float loss;                    /* mean over ranks */
    float loss_here;               /* this rank's own */
    double samples_per_s, step_ms; /* of about the last twenty steps; samples of all ranks */
    double comm_wait_ms;           /* of the last step */
    int has_eval;
    double eval_loss, accuracy;
    double unsettled; /* of the moving statistics at an evaluation: the share that is what they were
                         at first, where that makes it look bad; else 0 */
    uint64_t saved;   /* step of the newest checkpoint that this rank has written; 0: none */
};

struct train_config {
    const struct job *job; /* borrowed for the life */
    uint64_t job_id, generation;
    const char *job_tag; /* copied; by it (and the plan) lines of an earlier life are known as this
                            training's; NULL or "": none are */
    int rank, world;
    const struct mesh_member *members; /* world of them; borrowed during train_join */
    uint8_t token[MS_TOKEN_LEN];
    struct comm_listener *listener; /* NULL where world is 1 */
    SSL_CTX *tls;
    int peer_timeout_ms;
    int force_remote;                /* same-host peers over TLS: tests and benchmarks */
    const struct host_offer *offers; /* of the members, .cores 0: not known; NULL: none is known,
                                        but this process's own. Borrowed until train_obey is over */
    int cores; /* without offers: that the ranks of this host share; 0: what this process may use */
    int is_plan_given;   /* it came with the job: words about memory know it */
    int stays_unbound;   /* the trainer's threads are not bound to the rank's share of CPUs */
    int64_t image_bytes; /* of memory for decoded images of this host, at the most; 0: none */
    const char *isa; /* cap; "" none. Borrowed until train_choose is over: the plan has it then */
    const char *run_dir;  /* metrics.jsonl and weights.safetensors of rank 0; "" : neither */
    int log_fd;           /* rank_log.h, and what makes an evaluation look bad; -1: none */
    const char *log_path; /* where it is the rank's own file; NULL: it is not */
    /* Called on the training thread after every committed step and evaluation. NULL allowed. */
    void (*on_progress)(void *arg, const struct train_progress *progress);
    /* A checkpoint of that step is durable: the newest that its folder had, or one that was
     * written. On whatever thread found that, between train_obey and train_destroy. NULL allowed.
     */
    void (*on_saved)(void *arg, uint64_t step);
    /* While peers have not come, or do not go on, for long: for whom this rank waits, and why. From
     * train_join to train_destroy, also on the communication thread. NULL allowed. */
    void (*on_wait)(void *arg, const char *text);
    /* From train_obey: what this rank does otherwise than the plan would have it, or worse than it
     * could be. NULL allowed. */
    void (*on_note)(void *arg, const char *text);
    void *arg;
};

#define TRAIN_WEIGHTS_FILE "weights.safetensors" /* in run_dir */

struct train_result {
    uint64_t steps;
    double seconds;
    char weights_sha256[MS_SHA256_HEX];
    char plan_sha256[MS_SHA256_HEX];
    int stopped;                /* ended early at a step boundary because it was asked to: */
    char kept[MS_ERR_TEXT_MAX]; /* what this rank saved of it, for people; "": nothing to say */
    float loss;                 /* of the last step, mean over ranks */
    int has_eval;
    double eval_loss, accuracy;
    char lacks[MS_ERR_TEXT_MAX]; /* what its metrics.jsonl lacks, of a job that recovers, and that
                                    the best weights are not kept; "": nothing */
    uint64_t later; /* weights of that later step of the job lay in the run directory, and stay:
                     * none of this one were saved, and there is no digest; 0: none did */
    int unsaved; /* why what is to be saved is not, with all steps made: enum ms_code; kept has it
                  * in words */
};

struct train_info { /* known after train_join and train_rejoin */
    uint64_t steps_total;
    int64_t steps_per_epoch, epochs;
    uint64_t peak_bytes; /* of this rank */
    char plan_sha256[MS_SHA256_HEX];
    int threads;
    uint64_t reorders;

    uint64_t step;                 /* committed: where it stands */
    uint64_t told;                 /* the last step of which metrics.jsonl has a line; 0: none */
    enum ms_state_from state_from; /* by this train_join or train_rejoin */
    int state_rank;                /* PULLED, CHECKPOINT: the rank that had it */
    uint64_t state_bytes;          /* ... how many */
    uint32_t state_ms;             /* ... that took */
    uint32_t prepared_ms;          /* from train_open to the mesh; 0 for one that goes on */
    uint32_t joined_ms;            /* until the mesh stood */
    int has_digest;                /* not where each rank trains for itself: */
    uint8_t state_digest[MS_STATE_DIGEST_LEN]; /* state.h; the same on all ranks */
};

/* cfg is copied (not what it points to). Returns owned; NULL without memory. */
struct train *train_create(const struct train_config *cfg);
/* NULL allowed. By the thread of train_join, which may be bound to CPUs until then. */
void train_destroy(struct train *train);

/* What this rank can do before there is a plan: its data, and the shapes of its batches. Reads no
 * record: nothing that takes memory has begun before train_obey has found that there is enough. */
int train_open(struct train *train, struct ms_err *err);
/* The plan of all ranks (docs/plan.md) by what their hosts offer: threads, caches, and the least
 * memory of all, which decides whether activations are made again. After train_open; the text is
 * borrowed until train_destroy or train_obey. */
int train_choose(struct train *train, const char **ret_text, struct ms_err *err);
/* Makes the plan of the text, of untrusted bytes; one that this rank chose itself is there already
 * (NULL: it). Threads are the plan's. Where there is too little memory here, and that helps,
 * activations are made again. Then the loader starts, and with it the host's copy of the files,
 * of which what another rank or job has made already needs no free memory. MS_E_INVALID,
 * MS_E_UNSUPPORTED: this job or this machine cannot, with the number of the line; MS_E_REFUSED:
 * another instruction set holds in this process; MS_E_FULL: no memory for it. */
int train_obey(struct train *train, const char *text, struct ms_err *err);
/* That it obeys, as it was given or chosen; borrowed likewise. NULL before train_obey. */
const char *train_plan_text(const struct train *train);
/* Of the plan that it obeys: what all ranks must have alike. Borrowed until train_destroy. */
const char *train_plan_sha256(const struct train *train);
/* What it does with its peers: blocks until all are there, and hold the same state. Fails as
 * train_rejoin does; MS_E_INVALID: this host has other data than those of the training. None of
 * these changes anything outside the process but the files of lines. */
int train_join(struct train *train, struct train_info *ret, struct ms_err *err);
/* All of them, with a plan that this rank chooses for itself. */
int train_prepare(struct train *train, struct train_info *ret, struct ms_err *err);
/* Trains to the end, saves, digests. Where the job recovers, weights or metrics that cannot be
 * saved are no failure: `unsaved` of the result, and train_stop_here tries again. */
int train_run(struct train *train, struct train_result *ret, struct ms_err *err);

/* All ranks stop after the same step, soon: rank-wide agreement travels with the gradients. A rank
 * that waits for a program's record waits no longer: all stop after the step before. Any thread. */
void train_stop_at_step(struct train *train);
/* Wakes whatever waits; train_open, train_choose, train_obey, train_join or train_run ends with
 * MS_E_ABORTED and text. Any thread. */
void train_abort(struct train *train, const char *text);

/* Gives the step in hand up as an abort does, but not for good: what runs ends with MS_E_ABORTED
 * and text, and train_rejoin may follow. Any thread. */
void train_hold(struct train *train, const char *text);

/* Ends the hold, where there is one: before train_rejoin, which a hold that comes later ends. */
void train_unhold(struct train *train);
/* Any thread. */
int train_is_held(struct train *train);

struct train_peers { /* of another generation: as many ranks, and this one has its number */
    const struct mesh_member *members; /* borrowed until the next train_rejoin */
    uint64_t generation;
    uint8_t token[MS_TOKEN_LEN];
    SSL_CTX *tls; /* borrowed for the mesh's life */
};

/* After a train_join, train_rejoin or train_run that a hold or the loss of a peer (MS_E_CLOSED,
 * MS_E_TIMEOUT) ended, or after the end: a new mesh. Plan, data and what it holds of the training
 * stay. Whoever was stopped before the last commit that some rank made takes the state from one
 * that made it, whole or not at all. Blocks until all peers are there. MS_E_REFUSED: a rank is
 * further behind; MS_E_FAILED: two ranks of one step hold other weights. Both name the ranks.
 * train_run comes next; its result is that of the whole training. */
int train_rejoin(struct train *train, const struct train_peers *peers, struct train_info *ret,
                 struct ms_err *err);

/* Instead of train_rejoin, of a rank that was asked to stop after its step: that which it holds is
 * the last. What rank 0 holds is kept as any stop keeps it; of one that has made all its steps the
 * weights. is_asked: so is that of this rank, whichever it is, and without a run directory that is
 * MS_E_UNSUPPORTED. Needs no peer. */
int train_stop_here(struct train *train, int is_asked, struct train_result *ret,
                    struct ms_err *err);
/* Before it: behind the last step, where one is due that needs the peers. Its numbers are lacking,
 * and `kept` of the result says so. */
void train_skip_evaluation(struct train *train);
/* After train_abort, by the thread of the steps: the process of this rank leaves its job. Where it
 * is rank 0 and has checkpoints, the step that it holds is saved, for the others may be told to
 * leave, too, and then nobody holds it. What cannot be saved is said by on_note. */
void train_leave(struct train *train);

/* All steps are made, and the weights, which are this rank's to save, it has not saved. */
int train_owes(const struct train *train);
/* ... once more, for no one will ask it to: after train_leave. on_note says what became of it. */
void train_save_owed(struct train *train);

/* The job has ended well by what another rank saved: rank 0, which could not, writes the line of
 * the end all the same, for it has the others. What fails is said by on_note. */
void train_tell_end(struct train *train, const struct train_result *result);

/* The rank that a failed collective blamed, or the making of a mesh that failed, -1: none. After
 * train_join, train_rejoin or train_run has failed. */
int train_culprit(const struct train *train);
/* Did rc come from the mesh (it could not be made, a collective failed, or there was no memory to
 * stand ready in it), so that it says nothing against what this rank holds? Likewise. */
int train_is_of_mesh(struct train *train, int rc);

/* The network, after train_run: for model_copy.h. Borrowed until train_destroy. */
struct replica *train_replica(struct train *train);

#endif
