/* checkpoint.h - a training's checkpoints: when one is due, which there are, going on from one
 *
 * Rank 0 writes (checkpoint_writer.h); every rank looks. A checkpoint is of this job where the
 * job's tag stands in it, or where the job names it (`resume`), and in either case only if the
 * job's training would have the same bits. docs/checkpoint.md has the files. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "libworker/train/checkpoint_folder.h"
#include "libworker/train/train.h"

struct checkpoint_info {
    uint64_t step; /* committed */
    char path[CHECKPOINT_PATH_MAX];
    enum checkpoint_owner owner;
    int is_lent;                         /* named, and in the folder of a job that lends it */
    struct checkpoint_manifest manifest; /* without texts */
};

struct checkpoint_list {
    struct checkpoint_info *infos;
    size_t n;
    int has_own; /* some of them are the job's own */
    /* What lies in the place that `resume` names, with which no job may begin: it is another
     * training's, ends behind this job, or cannot be looked at. Says in which key. Code 0: nothing.
     * Where a rank has checkpoints of the job's own it goes on from these, whatever lies there. */
    struct ms_err refusal;
};

/* After train_obey. The complete ones, each file once: first the job's own, then such as `resume`
 * names, of both the highest step first; by their manifests alone: cheap.
 * None is no error. What is damaged, or merely lies there and is another training's, is said
 * (on_note). */
int checkpoint_find(struct train *train, struct checkpoint_list *ret, struct ms_err *err);
void checkpoint_list_fini(struct checkpoint_list *list);
/* Of a job with the key `resume`, before its plan is known: the newest one's manifest, with texts.
 * 1; 0: there is none here. Says nothing. */
int checkpoint_find_manifest(struct train *train, struct checkpoint_manifest *ret);

/* Weights, moving statistics and slots into the replica (after train_join has made them), verified
 * by digest: all of it or nothing. MS_E_INVALID: damaged. Position and flags of the training are
 * the caller's: see the manifest. */
int checkpoint_load(struct train *train, const struct checkpoint_info *info, struct ms_err *err);

/* ---- for train.c and prepare.c: those of this training; nothing where the job has none ---- */

struct checkpoint;

/* Bytes of the spare copy that the job's checkpoints want of this rank; 0: none. */
uint64_t checkpoint_spare_bytes(const struct train *train);
/* From what step on they count. By the thread of the steps, before it is bound to CPUs. */
int checkpoint_open(struct train *train, struct ms_err *err);
void checkpoint_close(struct checkpoint *checkpoint); /* NULL allowed; after the write under way */
/* After each agreement: takes away what a rank 0 that was killed left in the folder, and saves the
 * step where it is due and has none: it was taken over from another rank. MS_E_IO: nothing can ever
 * be written to the folder; MS_E_REFUSED: it has another training's under those names; and nothing
 * is lost yet by saying so. */
int checkpoint_settle(struct train *train, struct ms_err *err);
/* After each commit: saves it where one is due and the writer is free. */
void checkpoint_offer(struct train *train);
/* The training ends here: saves the step where it was stopped, or one is due still, and waits for
 * what is under way. */
void checkpoint_finish(struct train *train);
/* This rank goes without the others: saves the step that it holds, likewise. */
void checkpoint_leave(struct train *train);
/* Of that step, after checkpoint_finish, for people. 1: it is saved; 0: the job has no checkpoints;
 * MS_E_IO: it could not be saved. */
int checkpoint_kept(const struct train *train, char *ret, size_t size);
/* After checkpoint_finish: why none can be where this rank writes, whenever it tries. 0: one might
 * be. */
int checkpoint_look(const struct train *train, struct ms_err *err);
/* Step of the newest one that this process has written; 0: none, or it writes none. */
uint64_t checkpoint_saved(const struct train *train);

#endif
