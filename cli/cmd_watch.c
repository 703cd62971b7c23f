/* cmd_watch.c - msctl watch, msctl wait */
#include "cli/cli.h"
#include "cli/display.h"
#include "cli/eval_name.h"
#include "cli/json.h"
#include "cli/self.h"
#include "cli/still.h"
#include "cli/summary.h"
#include "cli/watch.h"
#include "proto/clock.h"

#include <stdlib.h>
#include <string.h>

const struct cli_option cmd_wait_options[] = {
    {"timeout", 't', "TIME", "give up after TIME (seconds, or 5m, 2h); exit status 124", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

struct watching {
    struct cli *cli;
    struct cli_display display;
    uint64_t job;
    char *there; /* owned: what begins a command that comes to this scheduler; NULL: no memory */
    char eval_name[CLI_EVAL_NAME_MAX];
};

static int on_update(const Ms__JobUpdate *update, void *arg, struct ms_err *err)
{
    struct watching *w = (struct watching *)arg;
    w->display.width = cli_terminal_width(w->display.out); /* it may have changed */
    cli_display_update(&w->display, update->job, (double)ms_mono_ms() / 1000);
    return cli_check_output(w->display.out, err);
}

/* What is said then begins on a clean line. */
static void on_lost(void *arg)
{
    cli_display_end(&((struct watching *)arg)->display);
}

/* Where nobody said which scheduler, a shell finds the same one. */
static void on_leave(void *arg)
{
    struct watching *w = (struct watching *)arg;
    const unsigned long long job = (unsigned long long)w->job;
    const char *there = w->there != NULL ? w->there : cli_self();
    cli_display_end(&w->display);
    fprintf(w->display.out, "detached; job %llu goes on: %s watch %llu, %s cancel %llu\n", job,
            there, job, there, job);
    fflush(w->display.out);
}

/* On which data accuracies are measured stands in the job itself. */
static int ask_eval_name(struct watching *w, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    query.job = w->job;
    int rc = client_call(w->cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, &msg, err);
    if (rc != MS_OK) {
        return rc;
    }
    const Ms__JobList *list = (const Ms__JobList *)msg;
    if (list->n_jobs == 1) {
        const ProtobufCBinaryData *json = &list->jobs[0]->job_json;
        w->display.what = cli_eval_name(w->eval_name, json->data, json->len);
    }
    ms_wire_free(msg);
    return MS_OK;
}

static int watch_job(struct watching *w, const struct cli_args *args, Ms__JobUpdate **ret,
                     struct ms_err *err)
{
    struct cli_watch watch = {on_update, w, -1, on_lost};
    int rc = cli_need_words(args, 1, 1, "JOB", err);
    if (rc == MS_OK) {
        rc = cli_parse_job(args->words[0], &w->job, err);
    }
    if (rc == MS_OK) {
        rc = cli_connect(w->cli, args, err);
    }
    if (rc == MS_OK) {
        rc = cli_on_detach(w->cli, on_leave, w, err);
    }
    if (rc == MS_OK) {
        rc = ask_eval_name(w, err);
    }
    return rc == MS_OK ? cli_watch(w->cli, w->job, &watch, ret, err) : rc;
}

int cmd_watch(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct watching w = {
        .cli = cli, .there = cli_self_there(cli_value(args, "config"), cli_value(args, "server"))};
    Ms__JobUpdate *last = NULL;
    FILE *out = cli->json ? cli->err : cli->out;
    cli_display_init(&w.display, out, cli->live, cli_terminal_width(out), NULL);
    int rc = watch_job(&w, args, &last, err);
    cli_display_end(&w.display);
    free(w.there);
    w.there = NULL; /* a signal may still come */
    if (rc != MS_OK) {
        return rc;
    }
    struct cli_still still = w.display.comeback.still;
    if (!still.is_known) { /* it had ended before */
        cli_still_ask(cli, last->job, &still);
    }
    if (cli->json) {
        cli_json_print(cli->out, cli_summary_json(last->job, w.display.what, &still, NULL));
    } else {
        cli_summary_print(cli->out, cli->colour, last->job, w.display.what, &still, NULL);
    }
    int status = cli_job_status(last->job);
    ms_wire_free(&last->base);
    return status;
}

/* ---- wait ---- */

static int wait_one(struct cli *cli, uint64_t job, int64_t deadline_ms, json_t *list, int *status,
                    struct ms_err *err)
{
    struct cli_watch watch = {NULL, NULL, deadline_ms, NULL};
    Ms__JobUpdate *last = NULL;
    int rc = cli_watch(cli, job, &watch, &last, err);
    if (rc == MS_E_TIMEOUT) {
        return ms_fail(err, rc, "job %llu has not ended within the time of --timeout; it goes on",
                       (unsigned long long)job);
    }
    if (rc != MS_OK) {
        return rc;
    }
    int one = cli_job_status(last->job);
    if (one != 0 && list == NULL) {
        fprintf(cli->err, "msctl: job %llu %s: %s\n", (unsigned long long)job, last->job->state,
                last->job->reason);
    }
    /* a failure says more than a cancellation */
    if (*status != 1 && one != 0) {
        *status = one;
    }
    if (list != NULL) {
        json_array_append_new(list, cli_json_job(last->job));
    }
    ms_wire_free(&last->base);
    return MS_OK;
}

int cmd_wait(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    uint64_t ids[CLI_WORDS_MAX];
    int64_t timeout_ms = -1;
    int status = 0;
    int rc = cli_need_words(args, 1, CLI_WORDS_MAX, "JOB", err);
    for (size_t i = 0; rc == MS_OK && i < args->n_words; i++) {
        rc = cli_parse_job(args->words[i], &ids[i], err);
    }
    if (rc == MS_OK) {
        rc = cli_duration_ms(args, "timeout", &timeout_ms, err);
    }
    int64_t deadline_ms = timeout_ms >= 0 ? ms_mono_ms() + timeout_ms : -1;
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    json_t *list = cli->json ? json_array() : NULL;
    for (size_t i = 0; rc == MS_OK && i < args->n_words; i++) {
        rc = wait_one(cli, ids[i], deadline_ms, list, &status, err);
    }
    if (rc == MS_OK && list != NULL) {
        cli_json_print(cli->out, list);
    } else {
        json_decref(list);
    }
    return rc == MS_OK ? status : rc;
}
