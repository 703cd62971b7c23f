/* cmd_submit.c - msctl submit, msctl cancel */
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/plan_file.h"
#include "cli/progress.h"
#include "cli/resume.h"
#include "cli/submit.h"
#include "cli/submit_resume.h"
#include "proto/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

const struct cli_option cmd_submit_options[] = {
    {"workers", 'n', "N", "workers, instead of the file's", NULL},
    {"set", 0, "KEY=VALUE", "override a key of the file; may be given again", NULL},
    {"plan", 0, "FILE", "train by this plan (msctl show --plan JOB), or not at all", NULL},
    {"resume", 0, "JOB[:WHICH]",
     "go on from a checkpoint of a job that has ended: the newest, a step, a name", NULL},
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
    return cli_load_job_with(args, path, NULL, ret, err);
}

int cli_load_job_with(const struct cli_args *args, const char *path, const char *last,
                      struct job *ret, struct ms_err *err)
{
    const char *values[CLI_GIVEN_MAX];
    struct job_override overrides[CLI_GIVEN_MAX + 1];
    int64_t workers = 0;
    size_t n = cli_values(args, "set", values, CLI_GIVEN_MAX);
    for (size_t i = 0; i < n; i++) {
        overrides[i].key_value = values[i];
    }
    if (last != NULL) {
        overrides[n++].key_value = last;
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

/* A job that was queued and cannot be what was asked for. */
static const char *call_off(struct cli *cli, uint64_t id, const char *reason)
{
    Ms__Cancel cancel = MS__CANCEL__INIT;
    ProtobufCMessage *msg = NULL;
    cancel.job = id;
    cancel.reason = (char *)reason;
    int rc = client_call(cli->client, MS_MSG_CANCEL, &cancel.base, MS_MSG_OK, &msg, NULL);
    if (rc == MS_OK) {
        ms_wire_free(msg);
    }
    return rc == MS_OK ? "is cancelled" : NULL;
}

/* A scheduler of a release before plans takes the job and leaves its plan unread. */
static int confirm_plan(struct cli *cli, uint64_t id, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
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
    const char *ended = call_off(cli, id, "its plan was left unread");
    return ms_fail(err, MS_E_UNSUPPORTED,
                   "the scheduler is of a release that knows no plan of a job: job %llu %s; update "
                   "msschedd, or submit without --plan",
                   (unsigned long long)id, ended != NULL ? ended : "trains by a plan of its own");
}

/* The job has its number: what it goes on from is lent to it. */
static int lend(struct cli *cli, const struct submit_resume *resume, uint64_t id, int workers,
                struct ms_err *err)
{
    int rc = submit_resume_lend(cli, resume, id, (uint32_t)workers, err);
    if (rc != MS_OK) {
        const char *ended = call_off(cli, id, "its checkpoint was not lent to it");
        ms_err_prefix(err, "job %llu %s, for its checkpoint cannot be had", (unsigned long long)id,
                      ended != NULL ? ended : "will fail");
    }
    return rc;
}

struct submission {
    struct job job;
    char *plan; /* owned; NULL: rank 0 chooses */
    char key[CLI_KEY_BYTES];
    struct submit_resume resume; /* of no job: it begins anew */
};

static int submit_job(struct cli *cli, struct submission *s, struct ms_err *err)
{
    Ms__Submit request = MS__SUBMIT__INIT;
    const struct job *job = &s->job;
    uint64_t id = 0;
    request.job_json.data = (uint8_t *)job_format(job, &request.job_json.len);
    if (request.job_json.data == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the job");
    }
    request.name = (char *)job->name;
    request.workers = (uint32_t)job->workers;
    request.priority = job->priority;
    request.recovery = job->recovery;
    request.key = s->key;
    request.plan = (char *)(s->plan != NULL ? s->plan : "");
    int rc = submit(cli, &request, &id, err);
    if (rc == MS_OK && s->resume.job != 0) {
        rc = lend(cli, &s->resume, id, job->workers, err);
    }
    if (rc == MS_OK && s->plan != NULL) {
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

/* A file, or with --resume alone that of the other job. */
static int load(struct cli *cli, const struct cli_args *args, struct submission *s,
                struct ms_err *err)
{
    const char *resume = cli_value(args, "resume");
    int rc = resume == NULL ? cli_need_words(args, 1, 1, "JOB.yaml", err)
                            : cli_need_words(args, 0, 1, "[JOB.yaml]", err);
    if (rc == MS_OK && args->n_words > 0) {
        rc = cli_load_job(args, args->words[0], &s->job, err);
    }
    if (rc == MS_OK && args->n_words > 0) {
        rc = cli_paths_expand(cli, &s->job, err);
    }
    if (rc == MS_OK && resume != NULL && cli_value(args, "plan") != NULL) {
        rc = ms_fail(err, MS_E_INVALID,
                     "--resume: a checkpoint brings its plan, and there is a --plan; leave one of "
                     "them out");
    }
    return rc == MS_OK && resume == NULL ? cli_load_plan(args, &s->job, &s->plan, err) : rc;
}

/* What --resume names, and the job that goes on from it. */
static int find_resume(struct cli *cli, const struct cli_args *args, struct submission *s,
                       struct ms_err *err)
{
    const char *word = cli_value(args, "resume");
    if (word == NULL) {
        return MS_OK;
    }
    int rc = submit_resume_open(cli, word, &s->resume, err);
    if (rc == MS_OK && args->n_words == 0) {
        rc = submit_resume_load(&s->resume, args, &s->job, err);
    }
    if (rc == MS_OK) {
        rc = resume_takes_place(cli, args, &s->job, err);
    }
    return rc == MS_OK ? submit_resume_set(&s->resume, &s->job, &s->plan, err) : rc;
}

int cmd_submit(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct submission *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a job");
    }
    int rc = load(cli, args, s, err);
    if (rc == MS_OK) {
        rc = cli_submit_key(s->key, err);
    }
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc == MS_OK) {
        rc = find_resume(cli, args, s, err);
    }
    if (rc == MS_OK) {
        warn_of_missing(cli, &s->job);
        rc = submit_job(cli, s, err);
    }
    submit_resume_fini(&s->resume);
    free(s->plan);
    free(s);
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
