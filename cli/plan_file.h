/* plan_file.h - a plan that a job brings (--plan FILE), and one that a run leaves behind */
#ifndef CLI_PLAN_FILE_H
#define CLI_PLAN_FILE_H

#include "libworker/job/job.h"
#include "proto/cluster.pb-c.h"
#include "proto/err.h"

/* The text in the file, judged as the workers will (docs/plan.md), and held against the job; owned,
 * ends with a NUL. MS_E_INVALID names file and line. */
int plan_file_read(const char *path, const struct job *job, char **ret, struct ms_err *err);
/* Is the job evaluated as a text of that file's kind says? */
int plan_file_evaluates(const char *text, const struct job *job);
/* Fails: why a job that was asked for its plan has none, and what to do. */
int plan_file_missing(const Ms__JobInfo *job, struct ms_err *err);

#endif
