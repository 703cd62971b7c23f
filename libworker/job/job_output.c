/* job_output.c - may a job write to this folder? By its path, and by where the run directory is */
#include "libworker/job/job_schema.h"

#include "proto/macros.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a run directory, or the folder of a standing worker's job, has by these names itself. */
static const char *const taken[] = {
    "job.json",       "metrics.jsonl",       "plan.txt",         "run.lock", "scheduler.log",
    "scheduler.sock", "weights.safetensors", "best.safetensors", "tls",      ".job_tag",
};

/* "worker_<rank>.log", "best-<step>.safetensors" */
static const struct {
    const char *head, *end;
} numbered[] = {{"worker_", ".log"}, {"best-", ".safetensors"}};

static int is_numbered(const char *name, size_t length, const char *head, const char *end)
{
    size_t at = strlen(head);
    if (strncmp(name, head, at) != 0) {
        return 0;
    }
    const size_t first = at;
    while (name[at] >= '0' && name[at] <= '9') {
        at++;
    }
    return at > first && length == at + strlen(end) && strncmp(name + at, end, strlen(end)) == 0;
}

int job_output_is_database(const char *name)
{
    static const char database[] = "scheduler.db"; /* and what SQLite makes beside it */
    const size_t n = sizeof(database) - 1;
    return strncmp(name, database, n) == 0 && strchr(".-/", name[n]) != NULL;
}

int job_output_is_root(const char *path)
{
    return path[strspn(path, "./")] == '\0' && path[0] != '/';
}

/* The first folder of a relative path is one of ours. */
static int is_taken(const char *path)
{
    if (path[0] == '/') {
        return 0;
    }
    while (path[0] == '/' || strncmp(path, "./", 2) == 0) {
        path++;
    }
    const size_t length = strcspn(path, "/");
    for (size_t i = 0; i < MS_ARRAY_SIZE(taken); i++) {
        if (strlen(taken[i]) == length && strncmp(path, taken[i], length) == 0) {
            return 1;
        }
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(numbered); i++) {
        if (is_numbered(path, length, numbered[i].head, numbered[i].end)) {
            return 1;
        }
    }
    return job_output_is_database(path);
}

/* Does a path go up on its way? */
static int goes_up(const char *path)
{
    while (path != NULL) {
        path += strspn(path, "/");
        if (strncmp(path, "..", 2) == 0 && (path[2] == '/' || path[2] == '\0')) {
            return 1;
        }
        path = strchr(path, '/');
    }
    return 0;
}

const char *job_output_refuse(const char *path)
{
    return strstr(path, "${") != NULL
               ? "has a variable in it, which is not taken where a job writes"
           : path[0] == '~' ? "begins with ~, which is not taken where a job writes"
           : goes_up(path)  ? "goes up by .., which is not taken where a job writes"
           : is_taken(path) ? "is the name of a file that the run directory has itself"
                            : NULL;
}

/* ---- seen from the run directory ---- */

/* What of an absolute path is there, without links, and behind it what is not there yet. */
static int resolve(const char *path, char ret[PATH_MAX])
{
    char above[PATH_MAX];
    char real[PATH_MAX];
    const size_t length = strlen(path);
    if (length >= sizeof(above)) {
        return 0;
    }
    memcpy(above, path, length + 1);
    size_t end = length;
    while (realpath(end > 0 ? above : "/", real) == NULL) {
        if (end == 0) {
            return 0;
        }
        while (end > 0 && above[end - 1] == '/') {
            end--;
        }
        while (end > 0 && above[end - 1] != '/') {
            end--;
        }
        above[end] = '\0';
    }
    const int n = snprintf(ret, PATH_MAX, "%s/%s", strcmp(real, "/") != 0 ? real : "", path + end);
    return n > 0 && n < PATH_MAX;
}

int job_check_output(const struct job *job, const char *run_dir, struct ms_err *err)
{
    char there[PATH_MAX];
    char own[PATH_MAX];
    const char *directory = job->checkpoint_directory;
    if (!job->has_checkpoint || directory[0] != '/' || run_dir[0] == '\0' ||
        realpath(run_dir, own) == NULL || !resolve(directory, there)) {
        return MS_OK;
    }
    const size_t n = strlen(own);
    if (strncmp(there, own, n) != 0 || there[n] != '/') {
        return MS_OK;
    }
    const char *below = there + n + strspn(there + n, "/");
    return !is_taken(below)
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "checkpoint.directory %.160s is %.60s in the run directory, which has it "
                         "for itself; give another name, or a relative path",
                         directory, below);
}
