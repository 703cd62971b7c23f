/* plan_file.c - a plan that a job brings (--plan FILE), and one that a run leaves behind */
#include "cli/plan_file.h"

#include "libworker/plan/spec.h"
#include "proto/limits.h"
#include "proto/state_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_NETWORK = 3, LINE_WORLD = 4 }; /* of docs/plan.md */

/* Pipes, too: `--plan <(msctl show --plan 7)`. */
static int read_all(const char *path, char **ret, size_t *ret_size, struct ms_err *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return ms_fail_errno(err, MS_E_INVALID, "cannot read the plan %s", path);
    }
    char *text = malloc(MS_PLAN_MAX + 2);
    size_t size = text != NULL ? fread(text, 1, MS_PLAN_MAX + 1, file) : 0;
    int rc = text == NULL   ? ms_fail(err, MS_E_NOMEM, "no memory for the plan %s", path)
             : ferror(file) ? ms_fail_errno(err, MS_E_INVALID, "cannot read the plan %s", path)
             : size > MS_PLAN_MAX
                 ? ms_fail(err, MS_E_INVALID, "%s is no plan: it has more than %u KiB", path,
                           MS_PLAN_MAX / 1024)
                 : MS_OK;
    fclose(file);
    if (rc != MS_OK) {
        free(text);
        return rc;
    }
    text[size] = '\0';
    *ret = text;
    *ret_size = size;
    return MS_OK;
}

/* It is for this job, as far as can be told before there are ranks. */
static int judge(const struct plan_spec *spec, const struct job *job, struct ms_err *err)
{
    if (strcmp(spec->network, job->network) != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "plan line %d: network %s, and the job has network: %.80s; "
                       "without --plan rank 0 chooses one",
                       LINE_NETWORK, spec->network, job->network);
    }
    if (job->mode == JOB_STAND_ALONE) { /* each of its ranks trains alone */
        return spec->world == 1
                   ? MS_OK
                   : ms_fail(err, MS_E_INVALID,
                             "plan line %d: world %d, and each worker of a job in mode stand_alone "
                             "trains alone, by a plan of world 1",
                             LINE_WORLD, spec->world);
    }
    if (spec->world != job->workers) {
        return ms_fail(
            err, MS_E_INVALID,
            "plan line %d: world %d, and the job has workers: %d; -n %d runs it as planned",
            LINE_WORLD, spec->world, job->workers, spec->world);
    }
    return MS_OK;
}

/* "plan line 4: ..." is of this file. Returns the code. */
static int name_file(const char *path, const char *next, struct ms_err *err)
{
    static const char any[] = "plan";
    char text[MS_ERR_TEXT_MAX];
    snprintf(text, sizeof(text), "%s", ms_err_text(err));
    return ms_fail(err, ms_err_code(err), "%.180s%.200s%s", path, text + strlen(any), next);
}

static int take_text(const char *path, const char *text, size_t size, const struct job *job,
                     struct ms_err *err)
{
    struct plan_spec *spec = NULL;
    int rc = plan_spec_parse(text, size, &spec, err);
    if (rc != MS_OK) {
        return name_file(path, "; `msctl show --plan JOB` prints a plan as it is read", err);
    }
    rc = judge(spec, job, err);
    plan_spec_destroy(spec);
    return rc != MS_OK ? name_file(path, "", err) : MS_OK;
}

int plan_file_read(const char *path, const struct job *job, char **ret, struct ms_err *err)
{
    char *text = NULL;
    size_t size = 0;
    int rc = read_all(path, &text, &size, err);
    if (rc != MS_OK) {
        return rc;
    }
    rc = take_text(path, text, size, job, err);
    if (rc != MS_OK) {
        free(text);
        return rc;
    }
    *ret = text;
    return MS_OK;
}

int plan_file_evaluates(const char *text, const struct job *job)
{
    struct plan_spec *spec = NULL;
    if (plan_spec_parse(text, strlen(text), &spec, NULL) != MS_OK) {
        return 1; /* the ranks say what is wrong with it */
    }
    const struct shape *batch = &spec->uses[PLAN_EVALUATE].batch;
    const int64_t there = batch->n_dims > 0 ? batch->dim[0] : 0;
    const int64_t given = job->evaluate_batch_size > 0 ? job->evaluate_batch_size : job->batch_size;
    plan_spec_destroy(spec);
    return there == (job->has_evaluate ? given : 0);
}

int plan_file_missing(const Ms__JobInfo *job, struct ms_err *err)
{
    const unsigned long long id = job->id;
    if (strcmp(job->state, MS_JOB_STATE_QUEUED) == 0) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "job %llu has no plan yet: rank 0 chooses one once the job is placed; it "
                       "%.200s",
                       id, job->reason);
    }
    if (strcmp(job->state, MS_JOB_STATE_PLACING) == 0) {
        return ms_fail(err, MS_E_NOT_FOUND, "job %llu has no plan yet: it %.200s", id, job->reason);
    }
    if (job->started_ms == 0) {
        return ms_fail(err, MS_E_NOT_FOUND, "job %llu has no plan: it ended before it started", id);
    }
    return ms_fail(err, MS_E_NOT_FOUND,
                   "job %llu has no plan that is kept: release 0.1 was among its ranks, or is the "
                   "scheduler; run it again where all are newer",
                   id);
}
