/* job_folders.h - the folders of a standing node's jobs: held while a rank uses them, taken away
 * when they are old or too many
 *
 *     JOBS_DIR/17/{.job_tag, worker_0.log, metrics.jsonl, weights.safetensors}
 *     JOBS_DIR/17.1/                                     of another job that had the number 17 once
 *
 * A rank holds a shared lock on its job's folder; whoever cleans wants it alone, so that several
 * workers of one host share a JOBS_DIR, and a folder in use is never touched. Any thread. */
#ifndef JOB_FOLDERS_H
#define JOB_FOLDERS_H

#include "proto/err.h"

#include <stdint.h>

enum {
    JOB_FOLDERS_DAYS = 30,    /* somebody who was on holiday still finds his results */
    JOB_FOLDERS_COUNT = 1000, /* a resnet50 leaves 100 MB: 100 GB at the worst */
};

/* Makes the folder if need be and holds it: a descriptor to be closed, or a negative ms_code. A
 * link is not followed. Waits for one who cleans it away just now, and makes it anew.
 *
 * tag: what the scheduler tells the job by, for a number comes again with another database or
 * cluster; "": nothing is judged. A folder with something in it that is not of this job is renamed
 * to NUMBER.1 and so on first; aside (MS_PATH_MAX + 16 bytes) is filled then. MS_E_EXISTS: a rank
 * of another job is in it. */
int job_folder_hold(const char *path, const char *tag, char *aside, struct ms_err *err);
/* May results of the job with this tag be read there? One without a tag (of an older release), and
 * a question without one, are let pass. */
int job_folder_is_of(const char *path, const char *tag);

/* Can folders of jobs be made there? Makes the last part of the path if need be. MS_E_CONFIG with
 * the next step: a node that cannot would take job after job and fail each. MS_E_FULL: there is no
 * room for a file of 4 KiB, which may change. */
int job_folders_try(const char *jobs_dir, struct ms_err *err);

/* What job_folders_try would say, as far as modes tell; makes nothing. */
int job_folders_judge(const char *jobs_dir, struct ms_err *err);

struct job_folders_rule {
    int64_t days;  /* since something in it was written last; 0: no matter */
    int64_t count; /* the newest of them stay; 0: no matter */
};

/* Takes away what the rule does not keep; now_s is Unix time. What is no job's folder (a name that
 * is no number, a link) stays. By age nothing goes until a day of looks has seen one clock that did
 * not jump. on_gone (NULL allowed) hears of each, with why, or with what kept it
 * from going. */
void job_folders_clean(const char *jobs_dir, const struct job_folders_rule *rule, int64_t now_s,
                       void (*on_gone)(void *arg, uint64_t job, const char *text), void *arg);

#endif
