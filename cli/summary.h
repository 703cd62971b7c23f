/* summary.h - how a job ended, for people and for programs */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include "cli/cli.h"
#include "libworker/train/job.h"

#include <jansson.h>

/* What msctl run knows beyond the JobInfo; NULL for jobs of others. */
struct cli_run_facts {
    const struct job *job;
    const char *run_dir; /* as the user sees it */
    double seconds;      /* from the start of msctl */
};

/* A block of lines: result, accuracy, throughput, time, digests, and where things lie. */
void cli_summary_print(FILE *out, int colour, const Ms__JobInfo *job,
                       const struct cli_run_facts *facts);
/* The same as one object; returns owned. */
json_t *cli_summary_json(const Ms__JobInfo *job, const struct cli_run_facts *facts);

#endif
