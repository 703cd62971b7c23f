/* cmd_jobs.c - msctl jobs, msctl show */
#include "cli/cli.h"
#include "cli/comeback.h"
#include "cli/eval_name.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/metrics.h"
#include "cli/pages.h"
#include "cli/plan_file.h"
#include "cli/progress.h"
#include "cli/rates.h"
#include "cli/resume.h"
#include "cli/show_network.h"
#include "cli/still.h"
#include "cli/submit.h"
#include "cli/table.h"
#include "proto/principal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct cli_option cmd_jobs_options[] = {
    {"all", 'a', NULL, "jobs that have ended too", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static const struct cli_column job_columns[] = {
    {"JOB", CLI_RIGHT, 0, 0},  {"NAME", CLI_LEFT, 2, 12},   {"OWNER", CLI_LEFT, 4, 8},
    {"PRIO", CLI_RIGHT, 5, 0}, {"STATE", CLI_STATE, 0, 0},  {"WORKERS", CLI_RIGHT, 6, 0},
    {"STEP", CLI_DEAR, 9, 0},  {"LOSS", CLI_DEAR, 7, 0},    {"SUBMITTED", CLI_LEFT, 1, 0},
    {"TIME", CLI_DEAR, 8, 0},  {"REASON", CLI_TEXT, 3, 20},
};

static int add_job_row(struct cli_table *table, const Ms__JobInfo *job, struct ms_err *err)
{
    char id[24];
    char workers[16];
    char priority[16];
    char step[64] = "";
    char loss[CLI_FORMAT_MAX] = "";
    char submitted[CLI_FORMAT_MAX];
    char seconds[CLI_FORMAT_MAX];
    const Ms__Progress *p = job->progress;
    snprintf(id, sizeof(id), "%llu", (unsigned long long)job->id);
    snprintf(workers, sizeof(workers), "%u", job->workers);
    snprintf(priority, sizeof(priority), "%d", job->priority);
    if (p != NULL && p->step > 0) {
        const uint64_t last = job->steps > p->step ? job->steps : p->step;
        snprintf(step, sizeof(step), "%llu/%llu", (unsigned long long)last,
                 (unsigned long long)p->steps_total);
        cli_format_real(loss, p->loss);
    } else if (job->steps > 0) {
        snprintf(step, sizeof(step), "%llu", (unsigned long long)job->steps);
    }
    const char *const cells[MS_ARRAY_SIZE(job_columns)] = {
        id,
        job->name,
        ms_principal_show(job->owner),
        priority,
        job->state,
        workers,
        step,
        loss,
        cli_format_time(submitted, job->submitted_ms),
        job->started_ms > 0 ? cli_format_duration(seconds, cli_job_seconds(job)) : "",
        job->reason,
    };
    return cli_table_add(table, cells, err);
}

/* Where the jobs of a list go: to one of the two. */
struct job_rows {
    struct cli_table *table;
    json_t *list;
};

static int put_job(void *arg, const Ms__JobInfo *job, struct ms_err *err)
{
    struct job_rows *rows = (struct job_rows *)arg;
    if (rows->list != NULL) {
        json_array_append_new(rows->list, cli_json_job(job));
        return MS_OK;
    }
    return add_job_row(rows->table, job, err);
}

int cmd_jobs(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    int rc = cli_need_words(args, 0, 0, "", err);
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    struct job_rows rows = {NULL, NULL};
    if (cli->json) {
        rows.list = json_array();
    } else {
        rows.table = cli_table_create(job_columns, MS_ARRAY_SIZE(job_columns));
    }
    if (rows.list == NULL && rows.table == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the list of jobs");
    }
    rc = cli_pages_jobs(cli, cli_has(args, "all"), put_job, &rows, err);
    if (rc == MS_OK && cli->json) {
        cli_json_print(cli->out, json_incref(rows.list));
    } else if (rc == MS_OK) {
        cli_table_print(rows.table, cli->out, cli->width, cli->colour);
    }
    json_decref(rows.list);
    cli_table_destroy(rows.table);
    return rc;
}

/* ---- show ---- */

const struct cli_option cmd_show_options[] = {
    {"plan", 0, NULL, "its plan alone, as run and submit --plan take it", NULL},
    {"network", 0, NULL, "its network alone, a line a layer; JOB may be a job file, too", NULL},
    {"set", 0, "KEY=VALUE", "override a key of that file; may be given again", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static void digest_line(const struct cli *cli, const char *name, const char *digest, const char *of)
{
    char text[CLI_LINE_MAX];
    snprintf(text, sizeof(text), "digest %s (%s)", digest, of);
    cli_fact(cli, name, digest[0] != '\0' ? text : "");
}

static void show_progress(struct cli *cli, const Ms__JobInfo *job)
{
    char text[CLI_LINE_MAX];
    char name[CLI_EVAL_NAME_MAX];
    cli_eval_name(name, job->job_json.data, job->job_json.len);
    if (job->progress != NULL && job->progress->step > 0) {
        cli_fact(cli, "progress", cli_progress_show(text, sizeof(text), job));
    }
    for (size_t i = 0; i < job->n_evals; i++) {
        cli_fact(cli, i == 0 ? "evaluations" : "",
                 cli_progress_eval(text, sizeof(text), job->evals[i], name));
    }
}

static int show_ranks(struct cli *cli, const Ms__JobInfo *job, struct ms_err *err)
{
    static const struct cli_column columns[] = {
        {"RANK", CLI_RIGHT, 0, 0},  {"NODE", CLI_LEFT, 3, 12}, {"HOST", CLI_LEFT, 2, 12},
        {"STATE", CLI_STATE, 0, 0}, {"STEP", CLI_RIGHT, 0, 0}, {"PID", CLI_RIGHT, 4, 0},
        {"LOG", CLI_LEFT, 1, 16},
    };
    struct cli_table *table = cli_table_create(columns, MS_ARRAY_SIZE(columns));
    int rc = table != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for the list of ranks");
    for (size_t i = 0; rc == MS_OK && i < job->n_ranks; i++) {
        const Ms__RankInfo *r = job->ranks[i];
        char rank[16];
        char step[24];
        char pid[16];
        snprintf(rank, sizeof(rank), "%u", r->rank);
        snprintf(step, sizeof(step), "%llu", (unsigned long long)r->step);
        snprintf(pid, sizeof(pid), "%.0u", r->pid); /* nought: an old job, of which it is unknown */
        const char *const cells[MS_ARRAY_SIZE(columns)] = {rank, r->node_id, r->host_name, r->state,
                                                           step, pid,        r->log_path};
        rc = cli_table_add(table, cells, err);
    }
    if (rc == MS_OK && job->n_ranks > 0) {
        fputc('\n', cli->out);
        cli_table_print(table, cli->out, cli->width, cli->colour);
    }
    cli_table_destroy(table);
    return rc;
}

/* " (step 261)" behind the last loss, where lines of later steps found no room; "" */
static const char *cut_off_words(char *dst, size_t size, const Ms__JobInfo *job,
                                 const struct cli_metrics *metrics)
{
    char step[CLI_FORMAT_MAX];
    const uint64_t last = job->steps > 0 ? job->steps : cli_progress_step(job);
    dst[0] = '\0';
    if (cli_job_is_ended(job) && metrics->last_step > 0 && metrics->last_step < last) {
        snprintf(dst, size, " (step %s)", cli_format_count(step, metrics->last_step));
    }
    return dst;
}

/* The losses of a run lie beside the log of rank 0, where that ran on this host. The path is a
 * worker's word: what it names is read only if it is a plain file. */
static void show_losses(struct cli *cli, const Ms__JobInfo *job)
{
    enum { BESIDE = 32 }; /* the name, and a loss on each side */
    char path[MS_PATH_MAX + 32];
    char host[MS_HOST_MAX + 1] = "";
    struct cli_metrics metrics;
    const char *log = job->n_ranks > 0 ? job->ranks[0]->log_path : "";
    const char *slash = strrchr(log, '/');
    if (slash == NULL || log[0] != '/' || gethostname(host, sizeof(host) - 1) != 0 ||
        strcmp(host, job->ranks[0]->host_name) != 0) {
        return;
    }
    snprintf(path, sizeof(path), "%.*s/metrics.jsonl", (int)(slash - log), log);
    if (cli_metrics_read(path, &metrics, NULL) != MS_OK) {
        return;
    }
    if (metrics.n > 1) {
        char plot[512];
        char first[CLI_FORMAT_MAX];
        char last[CLI_FORMAT_MAX];
        char cut[CLI_FORMAT_MAX + 16];
        const size_t width = cli->width;
        const size_t beside = BESIDE + strlen(cut_off_words(cut, sizeof(cut), job, &metrics));
        const size_t columns = width == 0 || width >= 60 + beside ? 60
                               : width > 10 + beside              ? width - beside
                                                                  : 10;
        cli_sparkline(plot, sizeof(plot), metrics.loss, metrics.n, columns, cli_is_utf8());
        fprintf(cli->out, "%-12s %s %s %s%s\n", "losses", cli_format_real(first, metrics.loss[0]),
                plot, cli_format_real(last, metrics.loss[metrics.n - 1]), cut);
    }
    cli_metrics_free(&metrics);
}

static int show_job(struct cli *cli, const Ms__JobInfo *job, const struct cli_still *still,
                    struct ms_err *err)
{
    char text[256];
    char from[MS_PATH_MAX + 1];
    char buf[CLI_FORMAT_MAX];
    FILE *out = cli->out;
    const char *colour = cli->colour ? cli_state_colour(job->state) : "";
    fprintf(out, "%-12s %llu\n", "job", (unsigned long long)job->id);
    cli_fact(cli, "name", job->name);
    cli_fact(cli, "owner", ms_principal_show(job->owner));
    fprintf(out, "%-12s %s%s%s\n", "state", colour, job->state,
            colour[0] != '\0' ? CLI_COLOUR_OFF : "");
    cli_fact(cli, "reason", job->reason);
    snprintf(text, sizeof(text), "%u", job->workers);
    cli_fact(cli, "workers", text);
    snprintf(text, sizeof(text), "%d", job->priority);
    cli_fact(cli, "priority", text);
    cli_fact(cli, "submitted", cli_format_time(buf, job->submitted_ms));
    cli_fact(cli, "started", job->started_ms > 0 ? cli_format_time(buf, job->started_ms) : "");
    cli_fact(cli, "ended", job->ended_ms > 0 ? cli_format_time(buf, job->ended_ms) : "");
    cli_fact(cli, "time",
             job->started_ms > 0 ? cli_format_duration(buf, cli_job_seconds(job)) : "");
    cli_fact(cli, "goes on from", resume_of(from, sizeof(from), job) != NULL ? from : "");
    snprintf(text, sizeof(text), "%llu", (unsigned long long)job->steps);
    cli_fact(cli, "steps", job->steps > 0 ? text : "");
    cli_fact(cli, "recovered",
             cli_comeback_sum(text, sizeof(text), job, still) != NULL ? text : "");
    cli_fact(cli, "again", cli_comeback_again(text, sizeof(text), job) != NULL ? text : "");
    show_progress(cli, job);
    show_losses(cli, job);
    digest_line(cli, "weights", job->weights_sha256, "values, not file");
    if (job->plan_sha256[0] == '\0' && job->plan_given) {
        cli_fact(cli, "plan", "came with the job: msctl show --plan prints it");
    }
    digest_line(cli, "plan", job->plan_sha256,
                job->plan_given ? "it came with the job" : "msctl show --plan prints it");
    return show_ranks(cli, job, err);
}

/* As it is, for a file that --plan takes. */
static int show_plan(struct cli *cli, const Ms__JobInfo *job, struct ms_err *err)
{
    if (job->plan[0] == '\0') {
        return plan_file_missing(job, err);
    }
    if (cli->json) {
        cli_json_print(cli->out, cli_json_job(job));
    } else {
        fputs(job->plan, cli->out);
    }
    return MS_OK;
}

static int show_all(struct cli *cli, const Ms__JobInfo *job, struct ms_err *err)
{
    struct cli_still still;
    cli_still_ask(cli, job, &still);
    if (cli->json) {
        cli_json_print(cli->out, cli_json_still(cli_json_job(job), job, &still));
        return MS_OK;
    }
    return show_job(cli, job, &still, err);
}

static int show_layers(struct cli *cli, const struct job *job, struct ms_err *err)
{
    struct roofline rates;
    int rc = cli_rates_measure(&rates, err);
    return rc < 0 ? rc : show_network(cli, job, &rates, err);
}

static int show_sent(struct cli *cli, const Ms__JobInfo *job, struct ms_err *err)
{
    struct job read;
    int rc = show_network_job(job, &read, err);
    return rc < 0 ? rc : show_layers(cli, &read, err);
}

static int show_file(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct job job;
    int rc = cli_load_job(args, args->words[0], &job, err);
    return rc < 0 ? rc : show_layers(cli, &job, err);
}

static int is_number(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0';
}

/* A file only where its network is asked for: all else is the scheduler's to tell. */
static int check_show(const struct cli_args *args, int *ret_is_file, struct ms_err *err)
{
    const int has_network = cli_has(args, "network");
    int rc = cli_need_words(args, 1, 1, "JOB", err);
    if (rc < 0) {
        return rc;
    }
    const int is_file = has_network && !is_number(args->words[0]);
    if (has_network && cli_has(args, "plan")) {
        return ms_fail(err, MS_E_INVALID,
                       "--plan and --network are each shown alone: give one of them");
    }
    if (!is_file && cli_has(args, "set")) {
        return ms_fail(err, MS_E_INVALID,
                       "--set changes what a job file says: msctl show --network --set KEY=VALUE "
                       "JOB.yaml");
    }
    *ret_is_file = is_file;
    return MS_OK;
}

static int show_asked(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    query.plan = cli_has(args, "plan");
    int rc = cli_parse_job(args->words[0], &query.job, err);
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc == MS_OK) {
        rc = client_call(cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, &msg, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const Ms__JobList *list = (const Ms__JobList *)msg;
    if (list->n_jobs != 1) {
        rc = ms_fail(err, MS_E_NOT_FOUND, "there is no job %llu; see: msctl jobs --all",
                     (unsigned long long)query.job);
    } else if (query.plan) {
        rc = show_plan(cli, list->jobs[0], err);
    } else if (cli_has(args, "network")) {
        rc = show_sent(cli, list->jobs[0], err);
    } else {
        rc = show_all(cli, list->jobs[0], err);
    }
    ms_wire_free(msg);
    return rc;
}

int cmd_show(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    int is_file = 0;
    int rc = check_show(args, &is_file, err);
    if (rc < 0) {
        return rc;
    }
    return is_file ? show_file(cli, args, err) : show_asked(cli, args, err);
}
