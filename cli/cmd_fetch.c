/* cmd_fetch.c - msctl fetch: weights, metrics, logs and checkpoints of a job into a folder here,
 * with the job itself */
#include "cli/fetch_run.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/metrics.h"
#include "cli/own_dir.h"
#include "cli/resume.h"
#include "cli/weights.h"
#include "proto/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct cli_option cmd_fetch_options[] = {
    {"output", 'o', "DIR", "folder for the files; ./job-<id> unless given", NULL},
    {"only", 0, "WHAT", "weights, metrics or logs alone; all, and the job's file, unless given",
     NULL},
    {"list", 0, NULL, "say which checkpoints the job has saved, and bring nothing", NULL},
    {"checkpoint", 0, "WHICH", "latest, best, all, or a step or name of --list, and no results",
     NULL},
    {"force", 0, NULL, "replace files that are there already", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

enum { DRAW_MS = 100 }; /* ten times a second is smooth */

/* ---- progress ---- */

static void clear_line(const struct fetch_run *run)
{
    if (run->cli->live && run->drawn_ms != 0) {
        fprintf(run->cli->err, "\r\x1b[K");
        fflush(run->cli->err);
    }
}

static void on_progress(void *arg, uint64_t have, uint64_t size)
{
    struct fetch_run *run = (struct fetch_run *)arg;
    char bar[32];
    char a[CLI_FORMAT_MAX];
    char b[CLI_FORMAT_MAX];
    int64_t now = ms_mono_ms();
    if (!run->cli->live || now - run->drawn_ms < DRAW_MS) {
        return;
    }
    run->drawn_ms = now;
    fprintf(run->cli->err, "\r%s %s %s of %s\x1b[K", run->name,
            cli_bar(bar, sizeof(bar), 24, size > 0 ? (double)have / (double)size : 1),
            cli_format_bytes(a, have), cli_format_bytes(b, size));
    fflush(run->cli->err);
}

/* ---- one file ---- */

int fetch_run_tell_good(struct fetch_run *run, const struct fetch_result *got)
{
    char bytes[CLI_FORMAT_MAX];
    char earlier[CLI_FORMAT_MAX];
    run->n_good++;
    if (run->files != NULL) {
        json_t *object = json_object();
        json_object_set_new(object, "name", json_string(run->name));
        json_object_set_new(object, "bytes", json_integer((json_int_t)got->bytes));
        json_object_set_new(object, "resumed_from", json_integer((json_int_t)got->resumed));
        json_object_set_new(object, "sha256", json_string(got->sha256));
        json_object_set_new(object, "node",
                            got->node_id[0] != '\0' ? json_string(got->node_id) : json_null());
        json_array_append_new(run->files, object);
        return MS_OK;
    }
    char how[CLI_FORMAT_MAX + 32] = "";
    if (got->was_there) {
        snprintf(how, sizeof(how), " (was there already)");
    } else if (got->resumed > 0) {
        snprintf(how, sizeof(how), " (went on at %s)", cli_format_bytes(earlier, got->resumed));
    }
    fprintf(run->cli->out, "%s/%s  %s%s  sha256 %s\n", run->dir, run->name,
            cli_format_bytes(bytes, got->bytes), how, got->sha256);
    fflush(run->cli->out);
    return cli_check_output(run->cli->out, &run->err);
}

void fetch_run_tell_bad(struct fetch_run *run, int code, const char *text, int counts)
{
    run->is_same = strcmp(run->last, text) == 0;
    snprintf(run->last, sizeof(run->last), "%s", text);
    if (run->missing != NULL) {
        json_t *object = json_object();
        json_object_set_new(object, "name", json_string(run->name));
        json_object_set_new(object, "reason", json_string(text));
        json_array_append_new(run->missing, object);
    }
    if (counts && run->rc == MS_OK) { /* main prints the first one */
        run->rc = code;
        ms_fail(&run->err, code, "%s", text);
    } else if (run->missing == NULL && !run->is_same) {
        cli_say(run->cli, "%s", text);
    }
}

/* The bytes are those of the node's file; are they still what the job wrote? */
static int check_weights(struct fetch_run *run, const struct fetch_result *got, struct ms_err *err)
{
    char path[64 + DOWNLOAD_NAME_MAX];
    char hex[MS_SHA256_HEX];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", run->dir_fd, run->name);
    int rc = cli_weights_digest(path, hex, err);
    if (rc == MS_OK && strcmp(hex, run->weights_sha256) == 0) {
        return MS_OK;
    }
    return ms_fail(
        err, MS_E_FAILED,
        "%.120s/%s holds not the weights that job %llu ended with (their digest is %.12s..., "
        "of the file %.12s...): it was changed on node %s since",
        run->dir, run->name, (unsigned long long)run->job, run->weights_sha256,
        rc == MS_OK ? hex : "unknown", got->node_id);
}

/* Those of steps that another node wrote, or for which its disk had no room, are not in the file:
 * of what came that is no failure, and a word. Of a job that runs, as far as the file goes. */
static void check_metrics(struct fetch_run *run)
{
    char path[64 + DOWNLOAD_NAME_MAX];
    char text[MS_TEXT_MAX];
    char a[CLI_FORMAT_MAX];
    char b[CLI_FORMAT_MAX];
    char c[CLI_FORMAT_MAX];
    struct cli_metrics metrics;
    uint64_t first = 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", run->dir_fd, run->name);
    if (cli_metrics_read(path, &metrics, NULL) != MS_OK) {
        return;
    }
    const uint64_t steps = run->steps > 0 ? run->steps : metrics.last_step;
    uint64_t n = run->resumes ? 0 : cli_metrics_lacks(&metrics, 1, &first);
    if (metrics.last_step > 0 && metrics.last_step < steps) {
        first = n > 0 ? first : metrics.last_step + 1;
        n += steps - metrics.last_step;
    }
    cli_metrics_free(&metrics);
    if (n > 0) {
        snprintf(text, sizeof(text),
                 "%.120s/%s has no line of %s of %s steps, the first is %s: another node wrote "
                 "them, its disk had no room, or it was ended before",
                 run->dir, run->name, cli_format_count(a, n), cli_format_count(b, steps),
                 cli_format_count(c, first));
        fetch_run_tell_bad(run, MS_OK, text, 0);
    }
}

int fetch_run_get(struct fetch_run *run, const struct fetch_wish *wish, int counts,
                  struct fetch_result *ret, int *ret_came)
{
    struct ms_err err = {0, ""};
    memset(ret, 0, sizeof(*ret));
    *ret_came = 0;
    fetch_name(wish, run->name, sizeof(run->name));
    run->drawn_ms = 0;
    int rc = fetch_one(run->cli, wish, run->dir_fd, run->force, on_progress, run, ret, &err);
    clear_line(run);
    if (rc == MS_OK) {
        *ret_came = 1;
        return fetch_run_tell_good(run, ret);
    }
    fetch_run_tell_bad(run, rc, err.text, counts || rc != MS_E_NOT_FOUND);
    int is_end =
        rc == MS_E_REFUSED || rc == MS_E_FULL || client_get_state(run->cli->client) != CLIENT_OPEN;
    return is_end ? rc : MS_OK;
}

static int fetch_file(struct fetch_run *run, unsigned what, uint32_t rank, int counts)
{
    const struct fetch_wish wish = {.job = run->job, .rank = rank, .what = what};
    struct fetch_result got;
    struct ms_err err = {0, ""};
    int came = 0;
    int rc = fetch_run_get(run, &wish, counts, &got, &came);
    if (came && what == MS_FETCH_WEIGHTS && run->weights_sha256[0] != '\0' &&
        check_weights(run, &got, &err) != MS_OK) {
        fetch_run_tell_bad(run, err.code, err.text, 1);
    }
    if (came && what == MS_FETCH_METRICS) {
        check_metrics(run);
    }
    return rc;
}

/* ---- all of them ---- */

/* Made for its owner alone; one that is there must be his alone, too: in a shared folder anybody
 * may have made ./job-7 before. */
static int open_folder(struct fetch_run *run, const char *wanted, struct ms_err *err)
{
    if (wanted != NULL) {
        snprintf(run->dir, sizeof(run->dir), "%s", wanted);
    } else {
        snprintf(run->dir, sizeof(run->dir), "job-%llu", (unsigned long long)run->job);
    }
    run->made_dir = mkdir(run->dir, 0700) == 0;
    if (!run->made_dir && errno != EEXIST) {
        return ms_fail_errno(err, MS_E_IO, "cannot make the folder %.200s", run->dir);
    }
    return own_dir_open(run->dir, wanted == NULL ? O_NOFOLLOW : 0, "the folder",
                        "could change what is fetched", &run->dir_fd, err);
}

/* One question first: of a job that never had a node each of its ranks would say the same. */
static int judge_job(struct fetch_run *run, const Ms__JobInfo *job, struct ms_err *err)
{
    char from[MS_PATH_MAX + 1];
    run->workers = job->workers;
    run->is_good = cli_job_status(job) == 0;
    run->has_ended = job->ended_ms > 0;
    run->steps = job->steps;
    run->resumes = resume_of(from, sizeof(from), job) != NULL;
    snprintf(run->state, sizeof(run->state), "%s", job->state);
    snprintf(run->weights_sha256, sizeof(run->weights_sha256), "%s", job->weights_sha256);
    if (job->generation > 0) {
        return MS_OK;
    }
    return run->has_ended
               ? ms_fail(err, MS_E_NOT_FOUND,
                         "job %llu never started: it has ended and left nothing to fetch",
                         (unsigned long long)run->job)
               : ms_fail(err, MS_E_NOT_FOUND, "job %llu has nothing to fetch yet: it %s",
                         (unsigned long long)run->job, job->reason);
}

static int ask_job(struct fetch_run *run, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    query.job = run->job;
    int rc =
        client_call(run->cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, &msg, err);
    if (rc != MS_OK) {
        return rc;
    }
    const Ms__JobList *list = (const Ms__JobList *)msg;
    rc = list->n_jobs == 1
             ? judge_job(run, list->jobs[0], err)
             : ms_fail(err, MS_E_NOT_FOUND, "there is no job %llu; see: msctl jobs --all",
                       (unsigned long long)run->job);
    if (rc != MS_OK) {
        ms_wire_free(msg);
        return rc;
    }
    run->info = msg;
    return MS_OK;
}

static int parse_only(const char *only, int ret_wanted[MS_FETCH_LOG + 1], struct ms_err *err)
{
    static const char *const words[] = {
        [MS_FETCH_WEIGHTS] = "weights", [MS_FETCH_METRICS] = "metrics", [MS_FETCH_LOG] = "logs"};
    int known = only == NULL;
    for (int what = MS_FETCH_WEIGHTS; what <= MS_FETCH_LOG; what++) {
        ret_wanted[what] = only == NULL || strcmp(only, words[what]) == 0;
        known |= ret_wanted[what];
    }
    return known
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "msctl fetch: --only %.40s is unknown; there are: weights, metrics, logs",
                         only);
}

/* Weights are what a script goes on with: without them this is no success. A job writes them when
 * it ends. */
static void promise_weights(struct fetch_run *run)
{
    char text[MS_TEXT_MAX];
    const struct fetch_wish wish = {.job = run->job, .what = MS_FETCH_WEIGHTS};
    fetch_name(&wish, run->name, sizeof(run->name));
    snprintf(text, sizeof(text),
             "job %llu is %s: its weights come with its end; the same command brings them then, "
             "and what has come to metrics and logs",
             (unsigned long long)run->job, run->state);
    fetch_run_tell_bad(run, MS_E_NOT_FOUND, text, 1);
}

static int fetch_all(struct fetch_run *run, const int *wanted)
{
    int rc = MS_OK;
    if (wanted[MS_FETCH_WEIGHTS] && run->has_ended) {
        rc = fetch_file(run, MS_FETCH_WEIGHTS, 0, 1);
    }
    if (rc == MS_OK && wanted[MS_FETCH_METRICS]) {
        rc = fetch_file(run, MS_FETCH_METRICS, 0, run->is_good);
    }
    for (uint32_t rank = 0; rc == MS_OK && wanted[MS_FETCH_LOG] && rank < run->workers; rank++) {
        run->is_same = 0;
        rc = fetch_file(run, MS_FETCH_LOG, rank, run->is_good);
        if (run->is_same) { /* of the job, then, and not of a rank: nobody will say another thing */
            break;
        }
    }
    if (rc == MS_OK && wanted[MS_FETCH_WEIGHTS] && !run->has_ended) {
        promise_weights(run); /* to who may have the rest */
    }
    return rc;
}

static void print_json(struct fetch_run *run)
{
    json_t *object = json_object();
    json_object_set_new(object, "id", json_integer((json_int_t)run->job));
    json_object_set_new(object, "directory", json_string(run->dir));
    json_object_set(object, "files", run->files);
    json_object_set(object, "missing", run->missing);
    cli_json_print(run->cli->out, object);
}

/* A job's own results, or what it has saved. */
static int fetch_job(struct fetch_run *run, const struct cli_args *args, const int *wanted,
                     struct ms_err *err)
{
    const char *which = cli_value(args, "checkpoint");
    struct cli_saved saved;
    memset(&saved, 0, sizeof(saved));
    int rc = which != NULL ? cli_saved_find(run->cli, fetch_run_info(run), &saved, err) : MS_OK;
    rc = rc == MS_OK ? fetch_saved_check(&saved, which, err) : rc;
    if (rc == MS_OK) {
        rc = open_folder(run, cli_value(args, "output"), err);
    }
    if (rc != MS_OK) {
        cli_saved_free(&saved);
        return rc;
    }
    rc = which != NULL ? fetch_saved_all(run, &saved, which) : fetch_all(run, wanted);
    cli_saved_free(&saved);
    if (rc == MS_OK && run->n_good > 0 && cli_value(args, "only") == NULL) {
        /* to who may have the rest, and not alone into a folder; checkpoints of several jobs may
         * lie in one */
        rc = fetch_job_files(run, which == NULL);
    }
    if (run->rc == MS_OK && rc == MS_OK && run->n_good == 0) {
        run->rc = ms_fail(&run->err, MS_E_NOT_FOUND, "job %llu %s", (unsigned long long)run->job,
                          run->has_ended ? "has ended and left nothing of that to fetch"
                                         : "has nothing to fetch yet");
    }
    rc = run->rc != MS_OK ? run->rc : rc;
    if (run->cli->json) {
        print_json(run);
    }
    if (rc != MS_OK) {
        *err = run->err;
    }
    if (run->n_good == 0 && run->made_dir) {
        (void)rmdir(run->dir); /* made for nothing: goes, if nothing is in it */
    }
    return rc;
}

static int check_options(const struct cli_args *args, struct ms_err *err)
{
    const int is_saved = cli_has(args, "list") || cli_value(args, "checkpoint") != NULL;
    if (cli_has(args, "list") && cli_value(args, "checkpoint") != NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "msctl fetch: --list brings nothing, and --checkpoint does: give one");
    }
    return !is_saved || cli_value(args, "only") == NULL
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "msctl fetch: --only is of weights, metrics and logs; checkpoints are "
                         "brought by --checkpoint alone");
}

int cmd_fetch(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct fetch_run run = {.cli = cli, .dir_fd = -1, .force = cli_has(args, "force")};
    int wanted[MS_FETCH_LOG + 1] = {0};
    int rc = cli_need_words(args, 1, 1, "JOB", err);
    if (rc == MS_OK) {
        rc = cli_parse_job(args->words[0], &run.job, err);
    }
    if (rc == MS_OK) {
        rc = parse_only(cli_value(args, "only"), wanted, err);
    }
    if (rc == MS_OK) {
        rc = check_options(args, err);
    }
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc == MS_OK) {
        rc = ask_job(&run, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        run.files = json_array();
        run.missing = json_array();
    }
    rc = cli_has(args, "list") ? fetch_saved_list(&run, err) : fetch_job(&run, args, wanted, err);
    json_decref(run.files);
    json_decref(run.missing);
    ms_wire_free(run.info);
    if (run.dir_fd >= 0) {
        close(run.dir_fd);
    }
    return rc;
}
