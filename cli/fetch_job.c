/* fetch_job.c - of a job that is fetched the job itself and its plan, as the scheduler has them */
#include "cli/fetch_run.h"
#include "cli/model.h"

#include <string.h>

/* An earlier time may have left the beginning of another text. */
static int write_text(struct download *download, const void *text, size_t size, const char *sha256,
                      struct ms_err *err)
{
    int rc = download_restart(download, err);
    rc = rc == MS_OK ? download_add(download, text, size, err) : rc;
    return rc == MS_OK ? download_finish(download, sha256, err) : rc;
}

static int put_text(const struct fetch_run *run, const void *text, size_t size,
                    struct fetch_result *ret, struct ms_err *err)
{
    struct download download;
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(text, size, digest);
    ms_sha256_hex(digest, ret->sha256);
    ret->bytes = size;
    int rc =
        run->force ? MS_E_NOT_FOUND : download_open_done(run->dir_fd, run->name, &download, err);
    if (rc == MS_OK) {
        ret->was_there = 1;
        rc =
            download_is_same(&download, ret->sha256) ? MS_OK : download_fail_exists(&download, err);
    } else if (rc == MS_E_NOT_FOUND) {
        rc = download_open(run->dir_fd, run->name, run->force, &download, err);
        if (rc != MS_OK) {
            return rc;
        }
        rc = write_text(&download, text, size, ret->sha256, err);
    } else {
        return rc;
    }
    download_close(&download);
    return rc;
}

static int put(struct fetch_run *run, int counts, const char *name, const void *text, size_t size)
{
    struct ms_err err = {0, ""};
    struct fetch_result got;
    memset(&got, 0, sizeof(got));
    if (size == 0) { /* it has no plan yet, or a release that kept none had it */
        return MS_OK;
    }
    snprintf(run->name, sizeof(run->name), "%s", name);
    const int rc = put_text(run, text, size, &got, &err);
    if (rc == MS_OK) {
        return fetch_run_tell_good(run, &got);
    }
    fetch_run_tell_bad(run, rc, err.text, counts);
    return MS_OK;
}

/* It comes by itself, for it may be long, and few ask. */
static int ask_plan(const struct fetch_run *run, ProtobufCMessage **ret, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    query.job = run->job;
    query.plan = 1;
    return client_call(run->cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, ret, err);
}

static int put_plan(struct fetch_run *run, int counts)
{
    struct ms_err err = {0, ""};
    ProtobufCMessage *msg = NULL;
    int rc = ask_plan(run, &msg, &err);
    if (rc != MS_OK) {
        snprintf(run->name, sizeof(run->name), "%s", CLI_PLAN_FILE);
        fetch_run_tell_bad(run, rc, err.text, counts);
        return MS_OK;
    }
    const Ms__JobList *list = (const Ms__JobList *)msg;
    if (list->n_jobs == 1) {
        rc = put(run, counts, CLI_PLAN_FILE, list->jobs[0]->plan, strlen(list->jobs[0]->plan));
    }
    ms_wire_free(msg);
    return rc;
}

int fetch_job_files(struct fetch_run *run, int counts)
{
    const Ms__JobInfo *job = fetch_run_info(run);
    int rc = put(run, counts, CLI_JOB_FILE, job->job_json.data, job->job_json.len);
    return rc == MS_OK ? put_plan(run, counts) : rc;
}
