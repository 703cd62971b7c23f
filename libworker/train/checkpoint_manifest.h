/* checkpoint_manifest.h - what a checkpoint says of itself: docs/checkpoint.md
 *
 * The manifest is written last. A checkpoint is complete where its manifest is whole and its data
 * have the size and the digest that stand in it. */
#ifndef CHECKPOINT_MANIFEST_H
#define CHECKPOINT_MANIFEST_H

#include "libworker/data/data.h"
#include "libworker/data/sum.h"
#include "libworker/job/job.h"
#include "libworker/train/judge.h"
#include "proto/digest.h"
#include "proto/err.h"
#include "proto/limits.h"

#include <stdint.h>

#define CHECKPOINT_FORMAT "msched checkpoint" /* what manifest and data call themselves */
enum {
    CHECKPOINT_VERSION = 1,
    CHECKPOINT_JUDGE_MAX = 23,
    CHECKPOINT_NAME_MAX = MS_NAME_MAX + 48 /* of a file */
};

struct checkpoint_manifest {
    uint64_t step;                /* committed, over all epochs */
    int64_t epoch, step_in_epoch; /* of that step, both from 1 */
    float loss;                   /* of that step, mean over ranks */
    int evaluates;                /* the evaluation after that step is due */
    int stopped;                  /* the ranks were asked to stop with that step */
    double seconds;               /* of training until then */
    char name[MS_NAME_MAX + 1];   /* of the job */
    char tag[MS_JOB_TAG_LEN + 1]; /* tells the job from others of its number; "": it has none */
    char first_tag[MS_JOB_TAG_LEN + 1]; /* of the job with which the training began; "": this one */
    char *job; /* what of the job decides the bits (checkpoint_job_text); owned */
    char job_sha256[MS_SHA256_HEX];
    char *plan; /* its text (docs/plan.md); owned */
    char plan_sha256[MS_SHA256_HEX];
    int64_t samples;           /* of the training's data; 0: a release that did not say wrote it */
    char samples_sum[SUM_HEX]; /* data_identify's, of them */
    char
        watch_of[CHECKPOINT_JUDGE_MAX + 1]; /* by what early_stop judges; "": nothing was counted */
    struct watch watch;                     /* what it had counted */
    char data[CHECKPOINT_NAME_MAX];         /* the file beside it */
    uint64_t data_size;
    char data_sum[SUM_HEX];
};

void checkpoint_manifest_fini(struct checkpoint_manifest *manifest);

/* Tells the training from others: resumed or not. Borrowed; "": nothing does. */
const char *checkpoint_manifest_first_tag(const struct checkpoint_manifest *manifest);

/* What the job's early_stop had counted by then; of another metric, or the other way round:
 * nothing.
 */
struct watch checkpoint_manifest_watch(const struct checkpoint_manifest *manifest,
                                       const struct job *job);
/* Into the manifest, where the job has early_stop. */
void checkpoint_manifest_set_watch(struct checkpoint_manifest *manifest, const struct job *job,
                                   const struct watch *watch);

/* The text, malloc'ed; *ret_size without the NUL. NULL without memory. */
char *checkpoint_manifest_format(const struct checkpoint_manifest *manifest, size_t *ret_size);
/* Of untrusted bytes. origin names the file in errors. MS_E_INVALID: damaged, or no manifest;
 * MS_E_UNSUPPORTED: of a later version. */
int checkpoint_manifest_parse(const char *text, size_t size, const char *origin,
                              struct checkpoint_manifest *ret, struct ms_err *err);

/* What of a job decides the bits of a training that is at some step already: canonical JSON,
 * malloc'ed. NULL without memory. Not in it: names, the length of the training (unless its schedule
 * is as long), paths, what is saved, evaluated or recovered; threads are the plan's. */
char *checkpoint_job_text(const struct job *job);
/* Is the training of `there` that of `here`, both checkpoint_job_text? MS_E_REFUSED names a key in
 * which they differ, with both values; origin: whose `there` is. */
int checkpoint_job_compare(const char *there, const char *here, const char *origin,
                           struct ms_err *err);
/* May the job compute by its plan's threads, of which bits follow? As one that leaves them out.
 * MS_E_REFUSED has both numbers. */
int checkpoint_threads_compare(const struct checkpoint_manifest *manifest, const struct job *job,
                               const char *origin, struct ms_err *err);
/* Both, of a checkpoint: may the job go on from it? here: its own checkpoint_job_text. One that
 * ends with the step of a checkpoint that was named itself makes none by its schedule, which may
 * have another length then: of those of a folder it is no other training's that is as long. */
int checkpoint_compare(const struct checkpoint_manifest *manifest, const struct job *job,
                       const char *here, int is_named, const char *origin, struct ms_err *err);
/* Was it trained on these data? MS_E_REFUSED says what it had, and what is here. origin: the
 * manifest's file. steps_per_epoch: with them; 0: not known. */
int checkpoint_data_compare(const struct checkpoint_manifest *manifest,
                            const struct data_identity *here, int64_t steps_per_epoch,
                            const char *origin, struct ms_err *err);

#endif
