/* submit_resume.c - msctl submit --resume: a new job goes on from a checkpoint of one that has
 * ended
 */
#include "cli/submit_resume.h"

#include "cli/format.h"
#include "cli/pages.h"
#include "cli/plan_file.h"
#include "cli/progress.h"
#include "cli/resume.h"
#include "cli/submit.h"
#include "proto/state_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void submit_resume_fini(struct submit_resume *resume)
{
    ms_wire_free(resume->info);
    resume->info = NULL;
    cli_saved_free(&resume->saved);
    checkpoint_manifest_fini(&resume->manifest);
}

static const Ms__JobInfo *info_of(const struct submit_resume *resume)
{
    return ((const Ms__JobList *)resume->info)->jobs[0];
}

static const struct cli_saved_node *node_of(const struct submit_resume *resume)
{
    return &resume->saved.nodes[resume->saved.ones[resume->chosen].node];
}

/* ---- which ---- */

static int parse(const char *word, uint64_t *ret_job, const char **ret_which, struct ms_err *err)
{
    char number[32];
    const char *colon = strchr(word, ':');
    const size_t n = colon != NULL ? (size_t)(colon - word) : strlen(word);
    snprintf(number, sizeof(number), "%.*s", n < sizeof(number) ? (int)n : 0, word);
    *ret_which = colon != NULL ? colon + 1 : "latest";
    int rc = cli_parse_job(number, ret_job, err);
    return rc < 0 || (*ret_which)[0] != '\0'
               ? rc
               : ms_fail(err, MS_E_INVALID,
                         "--resume %s names no checkpoint behind the colon: --resume %s takes the "
                         "newest, and msctl fetch --list %s names them all",
                         word, number, number);
}

static int ask_job(struct cli *cli, struct submit_resume *resume, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    const unsigned long long id = resume->job;
    query.job = resume->job;
    int rc = client_call(cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, &resume->info,
                         err);
    if (rc != MS_OK) {
        return rc;
    }
    if (((const Ms__JobList *)resume->info)->n_jobs != 1) {
        return ms_fail(err, MS_E_NOT_FOUND, "--resume: there is no job %llu; see: msctl jobs --all",
                       id);
    }
    const Ms__JobInfo *job = info_of(resume);
    if (!cli_job_is_ended(job)) {
        return ms_fail(err, MS_E_REFUSED,
                       "--resume: job %llu is %s: a new job goes on where it ended; end it with: "
                       "msctl cancel %llu",
                       id, job->state, id);
    }
    return job->generation > 0
               ? MS_OK
               : ms_fail(err, MS_E_NOT_FOUND,
                         "--resume: job %llu never started: there is nothing to go on from", id);
}

/* The manifest's text, which the node gives, too, when it lends. */
static int get_manifest(struct cli *cli, const struct submit_resume *resume, uint64_t borrower,
                        char **ret, size_t *ret_size, struct ms_err *err)
{
    char name[CLI_SAVED_NAME_MAX];
    const struct cli_saved_node *node = node_of(resume);
    const struct fetch_saved wanted = {.what = borrower > 0 ? MS_SAVED_LEND : MS_SAVED_MANIFEST,
                                       .directory = resume->saved.directory,
                                       .prefix = resume->saved.prefix,
                                       .step = resume->saved.ones[resume->chosen].entry.step,
                                       .borrower = borrower,
                                       .name = cli_saved_name(&resume->saved, resume->chosen, name),
                                       .folder = node->folder};
    const struct fetch_wish wish = {resume->job, node->rank, node->what, &wanted};
    struct fetch_result of;
    return fetch_text(cli, &wish, ret, ret_size, &of, err);
}

/* Where the newest may lie on a node that is away nobody else chooses: what helps, the text says.
 */
static int choose(struct submit_resume *resume, const char *which, struct ms_err *err)
{
    char text[MS_ERR_TEXT_MAX];
    const int rc = cli_saved_choose(&resume->saved, which, &resume->chosen, err);
    if (rc == MS_OK || rc != resume->saved.away_code) {
        return rc;
    }
    snprintf(text, sizeof(text), "%s", ms_err_text(err));
    return ms_fail(err, rc, "%.350s; nothing is queued", text);
}

int submit_resume_open(struct cli *cli, const char *word, struct submit_resume *ret,
                       struct ms_err *err)
{
    const char *which = NULL;
    char *text = NULL;
    size_t size = 0;
    memset(ret, 0, sizeof(*ret));
    int rc = parse(word, &ret->job, &which, err);
    rc = rc == MS_OK ? ask_job(cli, ret, err) : rc;
    rc = rc == MS_OK ? cli_saved_find(cli, info_of(ret), &ret->saved, err) : rc;
    rc = rc == MS_OK ? choose(ret, which, err) : rc;
    rc = rc == MS_OK ? get_manifest(cli, ret, 0, &text, &size, err) : rc;
    if (rc == MS_OK) {
        rc = checkpoint_manifest_parse(text, size, node_of(ret)->node_id, &ret->manifest, err);
    }
    free(text);
    return rc;
}

/* ---- the new job ---- */

int submit_resume_load(const struct submit_resume *resume, const struct cli_args *args,
                       struct job *ret, struct ms_err *err)
{
    char origin[48];
    const Ms__JobInfo *job = info_of(resume);
    const char *values[CLI_GIVEN_MAX];
    /* it may have been resumed itself, from elsewhere */
    struct job_override overrides[CLI_GIVEN_MAX + 1] = {{.key_value = "resume=null"}};
    int64_t workers = 0;
    const size_t n = cli_values(args, "set", values, CLI_GIVEN_MAX);
    for (size_t i = 0; i < n; i++) {
        overrides[i + 1].key_value = values[i];
    }
    snprintf(origin, sizeof(origin), "job %llu", (unsigned long long)resume->job);
    int rc = cli_number(args, "workers", 1, MS_WORKERS_MAX, 0, &workers, err);
    return rc == MS_OK ? job_parse((const char *)job->job_json.data, job->job_json.len, origin,
                                   NULL, overrides, n + 1, (int)workers, ret, err)
                       : rc;
}

static int set_place(const struct submit_resume *resume, struct job *job, struct ms_err *err)
{
    char name[CLI_SAVED_NAME_MAX];
    const int n = snprintf(job->resume, sizeof(job->resume), "%s/%s.json", node_of(resume)->folder,
                           cli_saved_name(&resume->saved, resume->chosen, name));
    return n > 0 && (size_t)n < sizeof(job->resume)
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "--resume: the path of the checkpoint on node %s is too long",
                         node_of(resume)->node_id);
}

int submit_resume_set(struct submit_resume *resume, struct job *job, char **ret_plan,
                      struct ms_err *err)
{
    char name[CLI_SAVED_NAME_MAX + 32];
    char stem[CLI_SAVED_NAME_MAX];
    struct checkpoint_manifest *m = &resume->manifest;
    snprintf(name, sizeof(name), "checkpoint %s",
             cli_saved_name(&resume->saved, resume->chosen, stem));
    int rc = resume_check(job, m, name, err);
    rc = rc == MS_OK ? set_place(resume, job, err) : rc;
    if (rc == MS_OK && plan_file_evaluates(m->plan, job)) {
        *ret_plan = m->plan;
        m->plan = NULL;
    }
    return rc;
}

/* ---- lending ---- */

int submit_resume_may_miss(Ms__NodeInfo *const *nodes, size_t n, const char *host, uint32_t workers)
{
    size_t n_elsewhere = 0;
    for (size_t i = 0; i < n; i++) {
        n_elsewhere += strcmp(nodes[i]->state, MS_NODE_STATE_REGISTERED) == 0 &&
                       strcmp(nodes[i]->host_name, host) != 0;
    }
    return workers <= n_elsewhere;
}

/* Ranks look each on its own host: must one of them come to that one? */
static void tell_place(struct cli *cli, const struct submit_resume *resume, uint64_t job,
                       uint32_t workers)
{
    struct cli_nodes nodes = CLI_NODES_INIT;
    const struct cli_saved_node *node = node_of(resume);
    const int is_shared = resume->saved.directory[0] == '/'; /* by all nodes */
    if (!is_shared && cli_pages_nodes(cli, &nodes, NULL) == MS_OK &&
        submit_resume_may_miss(nodes.all.nodes, nodes.all.n_nodes, node->host_name, workers)) {
        cli_say(cli,
                "the checkpoint lies on host %.64s (node %s), and job %llu may get nodes of other "
                "hosts alone: then it fails, and says so; the same command again queues another "
                "one, and msctl fetch --checkpoint %llu %llu brings it for msctl run --resume",
                node->host_name, node->node_id, (unsigned long long)job,
                (unsigned long long)resume->manifest.step, (unsigned long long)resume->job);
    }
    cli_nodes_free(&nodes);
}

int submit_resume_lend(struct cli *cli, const struct submit_resume *resume, uint64_t job,
                       uint32_t workers, struct ms_err *err)
{
    char name[CLI_SAVED_NAME_MAX];
    char *text = NULL;
    size_t size = 0;
    int rc = get_manifest(cli, resume, job, &text, &size, err);
    free(text);
    if (rc != MS_OK) {
        return rc;
    }
    cli_say(cli,
            "job %llu goes on from %s of job %llu: step %llu (epoch %" PRId64 ", step %" PRId64 ")",
            (unsigned long long)job, cli_saved_name(&resume->saved, resume->chosen, name),
            (unsigned long long)resume->job, (unsigned long long)resume->manifest.step,
            resume->manifest.epoch, resume->manifest.step_in_epoch);
    tell_place(cli, resume, job, workers);
    return MS_OK;
}
