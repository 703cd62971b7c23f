/* summary.h - how a job ended, for people and for programs */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include "cli/cli.h"
#include "cli/metrics.h"
#include "libworker/job/job.h"

#include <jansson.h>

struct cli_checkpoints;
struct cli_still;

/* What msctl run knows beyond the JobInfo; NULL for jobs of others. */
struct cli_run_facts {
    const char *run_dir;   /* as the user sees it */
    double seconds;        /* from the start of msctl */
    const struct job *job; /* NULL: unknown */
    const char *again; /* what of this run stands behind `msctl run --resume DIR`, for a shell */
    int again_by_key;  /* ... or before `--set resume=DIR`, for the job has that key */
    uint64_t resumed_step; /* from which --resume went on; 0: from nothing */
    double resumed_s;      /* of training until then */
    const char *tag;       /* of the job, as its checkpoints have it; "", NULL: it has none yet */
    const struct cli_checkpoints *saved; /* NULL: none */
};

/* Speed over the whole job: its samples by the time in which its steps ran, where metrics can be
 * read and have them all, else by its time of training, in which evaluations are; by the metrics
 * that there are where that is not known; NaN where it ended without either.
 * A median is no speed: most steps of a short job are quick, and few take most of its time. */
struct cli_speed {
    double samples_per_s, step_ms;
    double median_ms;     /* of a step; NaN: not known */
    int with_evaluations; /* they are in the time */
    int of_run;           /* by metrics: of what this run trained, of a resumed job not all */
    uint64_t to_step;     /* by metrics that end with it, before the job's last; 0: by all */
};
struct cli_speed cli_summary_speed(const Ms__JobInfo *job, const struct cli_metrics *metrics,
                                   const struct cli_run_facts *facts);

/* A block of lines: result, accuracy (on eval_name, see eval_name.h), throughput, time, digests,
 * and where things lie. still: of its end (still.h); NULL: not known. */
void cli_summary_print(FILE *out, int colour, const Ms__JobInfo *job, const char *eval_name,
                       const struct cli_still *still, const struct cli_run_facts *facts);
/* The part of it that a run without its scheduler's verdict can tell: how far it came, and where
 * things lie. job NULL: never heard of. */
void cli_summary_print_left(FILE *out, const Ms__JobInfo *job, const struct cli_run_facts *facts);
/* The same as one object; returns owned. */
json_t *cli_summary_json(const Ms__JobInfo *job, const char *eval_name,
                         const struct cli_still *still, const struct cli_run_facts *facts);

#endif
