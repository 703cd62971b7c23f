/* resume.h - the checkpoint that a job goes on from */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "cli/cli.h"
#include "libworker/job/job.h"

struct resume_point {
    uint64_t step;
    int64_t epoch, step_in_epoch;
    double seconds;             /* of training until then */
    char path[MS_PATH_MAX + 1]; /* of its manifest, absolute */
    char *plan;                 /* owned */
};

/* The newest complete one of the job in a place (a run directory, a folder of checkpoints, one
 * manifest), its data read and found whole. What is damaged is said, and an older one taken.
 * MS_E_REFUSED: there is none, and says what there is; or the job ends before that step. */
int resume_find(const struct cli *cli, const char *place, const struct job *job,
                struct resume_point *ret, struct ms_err *err);

/* Is a checkpoint of the job's training, and within its length? MS_E_REFUSED names the first key
 * that differs, or what it ends before. path: what it is called in errors. */
struct checkpoint_manifest;
int resume_check(const struct job *job, const struct checkpoint_manifest *manifest,
                 const char *path, struct ms_err *err);

/* Does KEY=VALUE of --set set the key `resume`? */
int resume_is_key(const char *key_value);

/* For a job that --resume is given for: its key `resume` is emptied, which is said, for msctl wrote
 * that itself into the job.json of a run that was resumed. MS_E_INVALID: --set has the key. */
int resume_takes_place(const struct cli *cli, const struct cli_args *args, struct job *job,
                       struct ms_err *err);

/* The key `resume` of a job that was sent, as a line of text: the place of a checkpoint on its
 * nodes. Cut where it does not fit. NULL: the job begins anew. */
const char *resume_of(char *dst, size_t size, const Ms__JobInfo *job);

#endif
