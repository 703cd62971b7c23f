/* cmd_submit.c - msctl submit, msctl cancel */
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/plan_file.h"
#include "cli/progress.h"
#include "cli/submit.h"
#include "proto/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

const struct cli_option cmd_submit_options[] = {
    {"workers", 'n', "N", "workers, instead of the file's", NULL},
    {"set", 0, "KEY=VALUE", "override a key of the file; may be given again", NULL},
    {"plan", 0, "FILE", "train by this plan (msctl show --plan JOB), or not at all", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

const struct cli_option cmd_cancel_options[] = {
    {"now", 0, NULL, "do not finish the step first", NULL},
    {"reason", 0, "TEXT", "goes into the job's reason", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

enum {
    RESTART_MS = 10000,     /* a scheduler that its service manager starts again is there by then */
    CANCEL_SILENT_MS = 5000 /* most jobs have ended by then */
};

int cli_load_job(const struct cli_args *args, const char *path, struct job *ret, struct ms_err *err)
{
    const char *values[CLI_GIVEN_MAX];
    struct job_override overrides[CLI_GIVEN_MAX];
    int64_t workers = 0;
    size_t n = cli_values(args, "set", values, CLI_GIVEN_MAX);
    for (size_t i = 0; i < n; i++) {
        overrides[i].key_value = values[i];
    }
    int rc = cli_number(args, "workers", 1, MS_WORKERS_MAX, 0, &workers, err);
    return rc == MS_OK ? job_load(path, overrides, n, (int)workers, ret, err) : rc;
}

int cli_load_plan(const struct cli_args *args, const struct job *job, char **ret,
                  struct ms_err *err)
{
    const char *path = cli_value(args, "plan");
    return path != NULL ? plan_file_read(path, job, ret, err) : MS_OK;
}

int cli_submit_key(char *ret, struct ms_err *err)
{
    uint8_t bytes[(CLI_KEY_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return ms_fail_errno(err, MS_E_IO, "cannot get random bytes");
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
    return MS_OK;
}

/* The answer may be lost with the connection after the job was stored: the same key again gets the
 * same id. */
static int submit(struct cli *cli, const Ms__Submit *submit, uint64_t *ret_id, struct ms_err *err)
{
    int64_t give_up_ms = ms_mono_ms() + RESTART_MS;
    ProtobufCMessage *msg = NULL;
    for (;;) {
        int rc =
            client_call(cli->client, MS_MSG_SUBMIT, &submit->base, MS_MSG_SUBMITTED, &msg, err);
        if (rc == MS_OK) {
            *ret_id = ((const Ms__Submitted *)msg)->job;
            ms_wire_free(msg);
            return MS_OK;
        }
        if (cli_is_lost(rc)) {
            rc = cli_reconnect(cli, give_up_ms, err);
        }
        if (rc != MS_OK) {
            return rc;
        }
    }
}

/* On the scheduler's host there may well be a node; that it is not there proves nothing elsewhere.
 */
static void warn_of_missing(const struct cli *cli, const struct job *job)
{
    struct ms_err why = {0, ""};
    const char *host = cli->target.tls_host;
    int is_here = cli->target.is_unix || strcmp(host, "localhost") == 0 ||
                  strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
    if (is_here && job_find_inputs(job, &why) != MS_OK) {
        cli_say(cli,
                "on this host: %s; the job is queued all the same, for nodes elsewhere may "
                "have it",
                why.text);
    }
}

/* A scheduler of a release before plans takes the job and leaves its plan unread. */
static int confirm_plan(struct cli *cli, uint64_t id, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    Ms__Cancel cancel = MS__CANCEL__INIT;
    ProtobufCMessage *msg = NULL;
    query.job = id;
    int rc = client_call(cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, &msg, err);
    if (rc != MS_OK) {
        ms_err_prefix(err, "job %llu is queued, and whether with its plan is not known",
                      (unsigned long long)id);
        return rc;
    }
    const Ms__JobList *list = (const Ms__JobList *)msg;
    const int is_given = list->n_jobs == 1 && list->jobs[0]->plan_given;
    ms_wire_free(msg);
    if (is_given) {
        return MS_OK;
    }
    cancel.job = id;
    cancel.reason = (char *)"its plan was left unread";
    rc = client_call(cli->client, MS_MSG_CANCEL, &cancel.base, MS_MSG_OK, &msg, NULL);
    if (rc == MS_OK) {
        ms_wire_free(msg);
    }
    return ms_fail(err, MS_E_UNSUPPORTED,
                   "the scheduler is of a release that knows no plan of a job: job %llu %s; update "
                   "msschedd, or submit without --plan",
                   (unsigned long long)id,
                   rc == MS_OK ? "is cancelled" : "trains by a plan of its own");
}

static int submit_job(struct cli *cli, const struct job *job, const char *plan, char *key,
                      struct ms_err *err)
{
    Ms__Submit request = MS__SUBMIT__INIT;
    uint64_t id = 0;
    request.job_json.data = (uint8_t *)job_format(job, &request.job_json.len);
    if (request.job_json.data == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the job");
    }
    request.name = (char *)job->name;
    request.workers = (uint32_t)job->workers;
    request.priority = job->priority;
    request.recovery = job->recovery;
    request.key = key;
    request.plan = (char *)(plan != NULL ? plan : "");
    int rc = submit(cli, &request, &id, err);
    if (rc == MS_OK && plan != NULL) {
        rc = confirm_plan(cli, id, err);
    }
    if (rc == MS_OK && cli->json) {
        json_t *object = json_object();
        json_object_set_new(object, "id", json_integer((json_int_t)id));
        json_object_set_new(object, "name", json_string(job->name));
        cli_json_print(cli->out, object);
    } else if (rc == MS_OK) {
        fprintf(cli->out, "%llu\n", (unsigned long long)id);
    }
    free(request.job_json.data);
    return rc;
}

int cmd_submit(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct job job;
    char key[CLI_KEY_BYTES];
    char *plan = NULL;
    int rc = cli_need_words(args, 1, 1, "JOB.yaml", err);
    if (rc == MS_OK) {
        rc = cli_load_job(args, args->words[0], &job, err);
    }
    if (rc == MS_OK) {
        rc = cli_load_plan(args, &job, &plan, err);
    }
    if (rc == MS_OK) {
        rc = cli_paths_expand(cli, &job, err);
    }
    if (rc == MS_OK) {
        rc = cli_submit_key(key, err);
    }
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc == MS_OK) {
        warn_of_missing(cli, &job);
        rc = submit_job(cli, &job, plan, key, err);
    }
    free(plan);
    return rc;
}

/* ---- cancel ---- */

/* What a job that has not ended yet waits for, where that is news. */
static int tell_wait(struct cli *cli, uint64_t id, char *told, size_t size, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    query.job = id;
    int rc = client_call(cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, &msg, err);
    if (rc != MS_OK) {
        return rc;
    }
    const Ms__JobList *list = (const Ms__JobList *)msg;
    const int runs = list->n_jobs == 1 && !cli_job_is_ended(list->jobs[0]);
    const char *reason = runs ? list->jobs[0]->reason : "";
    if (reason[0] != '\0' && strcmp(reason, told) != 0) {
        snprintf(told, size, "%s", reason);
        fprintf(cli->err, "job %llu has not ended yet: it %s%s (--now ends it at once)\n",
                (unsigned long long)id, strncmp(reason, "waits ", 6) == 0 ? "" : "says: ", reason);
    }
    ms_wire_free(msg);
    return MS_OK;
}

/* The answer comes when the job has ended, which has its own time limit in the scheduler. */
static int await_end(struct cli *cli, const struct cli_args *args, uint64_t job, uint32_t id,
                     ProtobufCMessage **ret_msg, struct ms_err *err)
{
    char told[MS_TEXT_MAX + 1] = "";
    for (;;) {
        const int64_t until_ms = ms_mono_ms() + CANCEL_SILENT_MS;
        int rc = client_await(cli->client, id, MS_MSG_OK, until_ms, ret_msg, err);
        if (rc != MS_E_TIMEOUT || ms_mono_ms() < until_ms) {
            return rc;
        }
        rc = cli_has(args, "now") ? MS_OK : tell_wait(cli, job, told, sizeof(told), err);
        if (rc != MS_OK &&
            client_await(cli->client, id, MS_MSG_OK, ms_mono_ms(), ret_msg, NULL) == MS_OK) {
            return MS_OK; /* it came meanwhile, and with it the scheduler of a run ended */
        }
        if (rc != MS_OK) {
            ms_err_prefix(err, "whether job %llu ends is not known", (unsigned long long)job);
            return rc;
        }
    }
}

static int cancel_one(struct cli *cli, const struct cli_args *args, uint64_t job, json_t *list,
                      struct ms_err *err)
{
    Ms__Cancel request = MS__CANCEL__INIT;
    ProtobufCMessage *msg = NULL;
    uint32_t id = 0;
    const char *reason = cli_value(args, "reason");
    request.job = job;
    request.at_step = !cli_has(args, "now");
    request.reason = (char *)(reason != NULL ? reason : "");
    int rc = client_send(cli->client, MS_MSG_CANCEL, &request.base, &id, err);
    if (rc == MS_OK) {
        rc = await_end(cli, args, job, id, &msg, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const char *text = ((const Ms__Ok *)msg)->text;
    if (list != NULL) {
        json_t *object = json_object();
        json_object_set_new(object, "id", json_integer((json_int_t)job));
        json_object_set_new(object, "text", json_string(text));
        json_array_append_new(list, object);
    } else {
        fprintf(cli->out, "job %llu: %s\n", (unsigned long long)job,
                text[0] != '\0' ? text : "cancelled");
    }
    ms_wire_free(msg);
    return MS_OK;
}

/* All of them are tried; the first failure decides the exit status. */
int cmd_cancel(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    uint64_t ids[CLI_WORDS_MAX];
    int rc = cli_need_words(args, 1, CLI_WORDS_MAX, "JOB", err);
    for (size_t i = 0; rc == MS_OK && i < args->n_words; i++) {
        rc = cli_parse_job(args->words[i], &ids[i], err);
    }
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    json_t *list = cli->json ? json_array() : NULL;
    for (size_t i = 0; i < args->n_words; i++) {
        struct ms_err one = {0, ""};
        int one_rc = cancel_one(cli, args, ids[i], list, &one);
        if (one_rc != MS_OK && rc == MS_OK) {
            rc = one_rc;
            *err = one;
        } else if (one_rc != MS_OK) {
            fprintf(cli->err, "msctl: %s\n", one.text);
        }
        if (cli_is_lost(one_rc)) {
            break;
        }
    }
    if (list != NULL) {
        cli_json_print(cli->out, list);
    }
    return rc;
}
