/* plan.h - the plans of jobs: each text once, however many jobs have it
 *
 *     job -> plan     the text is in memory while a job waits, or gets ready, by it;
 *                     of jobs that run or have ended it is in the database only
 *
 * For the core a plan is opaque but for one line: what stands above "section memory" decides the
 * bits of a run, and the digest of that is what ranks report (docs/plan.md). */
#ifndef SCHED_PLAN_H
#define SCHED_PLAN_H

#include "daemon/sched/table.h"
#include "proto/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job;
struct sched;
struct sched_job_row;

struct plan {
    struct table_link link; /* in sched.plans */
    char sha256[65];        /* of the whole text */
    char bits_sha256[65];   /* of its part that decides bits: RankReady.plan_sha256 */
    size_t bytes;
    char *text;       /* owned; NULL: in the database only */
    uint32_t n_jobs;  /* that have it */
    uint32_t n_holds; /* ... and need its text */
};

/* NULL, or why this is no plan of any job. Borrowed until the next tick. */
const char *plan_refusal(struct sched *s, const char *text);
/* The job, which has none and is in its owner's purse, has this one from now on: it is stored with
 * the tick, and the caller stores the job. given: it came with the job. */
void plan_attach(struct sched *s, struct job *job, const char *text, bool given);
/* The job has none any more; the last job that had it takes it out of the database. */
void plan_detach(struct sched *s, struct job *job);
/* Is this the text of the plan that the job has? */
bool plan_is(const struct job *job, const char *text);
/* The job runs, or has ended: nobody is told its plan any more. None: nothing happens. */
void plan_settle(struct sched *s, struct job *job);
/* As the row says; its plan was loaded before. MS_E_CONFIG: it was not. */
int plan_load(struct sched *s, struct job *job, const struct sched_job_row *row,
              struct ms_err *err);
/* At the end of loading: MS_E_CONFIG where one is no job's. */
int plans_loaded(const struct sched *s, struct ms_err *err);
void plans_fini(struct sched *s);
/* Plans count the jobs that have them, and have a text where one needs it. */
int plans_check(const struct sched *s, struct ms_err *err);

#endif
