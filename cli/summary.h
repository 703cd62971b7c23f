/* summary.h - how a job ended, for people and for programs */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include "cli/cli.h"
#include "cli/metrics.h"

#include <jansson.h>

/* What msctl run knows beyond the JobInfo; NULL for jobs of others. */
struct cli_run_facts {
    const char *run_dir; /* as the user sees it */
    double seconds;      /* from the start of msctl */
};

/* Speed over the whole job: its samples by the time in which its steps ran, where metrics can be
 * read, else by its time of training, in which evaluations are; NaN where it ended without either.
 * A median is no speed: most steps of a short job are quick, and few take most of its time. */
struct cli_speed {
    double samples_per_s, step_ms;
    double median_ms;     /* of a step; NaN: not known */
    int with_evaluations; /* they are in the time */
};
struct cli_speed cli_summary_speed(const Ms__JobInfo *job, const struct cli_metrics *metrics);

/* A block of lines: result, accuracy (on eval_name, see eval_name.h), throughput, time, digests,
 * and where things lie. */
void cli_summary_print(FILE *out, int colour, const Ms__JobInfo *job, const char *eval_name,
                       const struct cli_run_facts *facts);
/* The same as one object; returns owned. */
json_t *cli_summary_json(const Ms__JobInfo *job, const char *eval_name,
                         const struct cli_run_facts *facts);

#endif
