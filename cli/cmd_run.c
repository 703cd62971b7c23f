/* cmd_run.c - msctl run: a private cluster on this host, from nothing to the job's end */
#include "cli/checkpoints.h"
#include "cli/eval_name.h"
#include "cli/json.h"
#include "cli/model.h"
#include "cli/paths.h"
#include "cli/plan_file.h"
#include "cli/resume.h"
#include "cli/run.h"
#include "cli/shell_word.h"
#include "cli/summary.h"
#include "proto/clock.h"
#include "proto/state_words.h"
#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

const struct cli_option cmd_run_options[] = {
    {"workers", 'n', "N", "workers on this host, instead of the file's", NULL},
    {"run-dir", 0, "DIR", "for logs and results; ./<job name>-<date>-<time> unless given", NULL},
    {"set", 0, "KEY=VALUE", "override a key of the file; may be given again", NULL},
    {"resume", 0, "DIR",
     "go on from the newest checkpoint of a run directory or folder, or from one by its name",
     NULL},
    {"plan", 0, "FILE", "train by this plan (plan.txt of a run), or not at all", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

/* What the process ends with. */
static int status_of(const struct run *run)
{
    return run->signal != 0    ? 128 + run->signal
           : run->failed       ? ms_code_exit_status(run->err.code)
           : run->last == NULL ? ms_code_exit_status(MS_E_FAILED)
                               : cli_job_status(run->last->job);
}

/* What a run without a verdict of the scheduler leaves for programs. */
static void print_failure(struct run *run, const struct cli_run_facts *facts)
{
    json_t *object = json_object();
    json_object_set_new(
        object, "state",
        json_string(run->signal != 0 ? MS_JOB_STATE_CANCELLED : MS_JOB_STATE_FAILED));
    json_object_set_new(object, "reason", json_string(run->err.text));
    json_object_set_new(object, "run_dir", json_string(run->dir.shown));
    json_object_set_new(object, "exit_status", json_integer(status_of(run)));
    cli_checkpoints_json(object, facts);
    cli_json_print(run->cli->out, object);
}

/* The scheduler only sees that a connection ended; how the process did is known here. */
static void print_killed(struct run *run)
{
    for (size_t i = 0; i < run->n_children; i++) {
        char status[96];
        const struct child *child = &run->children[i];
        if (child_was_killed(child)) {
            fprintf(run->cli->err, "msctl: %s %s\n", child->name,
                    child_status_text(child, status, sizeof(status)));
        }
    }
}

static void print_end(struct run *run)
{
    struct cli *cli = run->cli;
    double seconds = (double)(ms_mono_ms() - run->started_ms) / 1000;
    struct cli_checkpoints saved;
    struct cli_run_facts facts = {
        .run_dir = run->dir.shown,
        .seconds = seconds,
        .job = &run->job,
        .again = run->again,
        .again_by_key = run->again_by_key,
        .resumed_step = run->resumed_step,
        .resumed_s = run->resumed_s,
        .tag = run->last != NULL ? run->last->job->tag : "",
    };
    cli_checkpoints_look(&facts, &saved);
    facts.saved = &saved;
    int has_verdict = run->last != NULL && run->last->ended;
    const struct cli_still *still = &run->display.comeback.still;
    if (cli->json && has_verdict) {
        json_t *object = cli_summary_json(run->last->job, run->eval_name, still, &facts);
        /* the job was cancelled because we gave up, or got a signal: that decides */
        json_object_set_new(object, "exit_status", json_integer(status_of(run)));
        cli_json_print(cli->out, object);
    } else if (cli->json) {
        print_failure(run, &facts);
    } else if (has_verdict) {
        cli_summary_print(cli->out, cli->colour, run->last->job, run->eval_name, still, &facts);
    } else {
        cli_summary_print_left(cli->out, run->last != NULL ? run->last->job : NULL, &facts);
    }
    if (has_verdict && !run->failed) {
        print_killed(run);
    }
}

static int exit_status(const struct run *run, struct ms_err *err)
{
    if (run->signal == 0 && run->failed) {
        return ms_fail(err, run->err.code, "%s", run->err.text);
    }
    if (run->signal == 0 && run->last == NULL) {
        return ms_fail(err, MS_E_FAILED, "the run ended without a verdict of its scheduler; see %s",
                       run->dir.shown);
    }
    return status_of(run);
}

static void greet(struct run *run)
{
    char text[MS_PATH_MAX + 160];
    const struct job *job = &run->job;
    snprintf(text, sizeof(text), "%s: %d worker%s on this host, run directory %s", job->name,
             job->workers, job->workers == 1 ? "" : "s", run->dir.shown);
    cli_display_note(&run->display, text);
}

/* The job is valid and would fail: nothing is started for that, and no folder is made. The workers
 * will run here, in our environment: what they cannot open we cannot either. */
static int check_inputs(const struct job *job, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    return job_check_inputs(job, &why) == MS_OK
               ? MS_OK
               : ms_fail(err, MS_E_FAILED, "%s; nothing was started", why.text);
}

/* Where its evaluation is another one rank 0 chooses that, and takes all else from the checkpoint.
 */
static void take_plan(struct run *run, char *plan)
{
    if (plan_file_evaluates(plan, &run->job)) {
        run->plan = plan;
    } else {
        free(plan);
    }
}

/* By its plan, whatever rank 0 would choose today. */
static int find_resume(struct run *run, const struct cli_args *args, struct ms_err *err)
{
    char text[MS_PATH_MAX + 160];
    struct resume_point point = {.step = 0};
    const char *place = cli_value(args, "resume");
    if (place == NULL) {
        return MS_OK;
    }
    if (place[0] == '\0') {
        return ms_fail(err, MS_E_INVALID,
                       "--resume: no place is named: give it a run directory, a folder of "
                       "checkpoints or one of them");
    }
    if (run->plan != NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "--resume: a checkpoint brings its plan, and there is a --plan; leave one "
                       "of them out");
    }
    int rc = resume_takes_place(run->cli, args, &run->job, err);
    rc = rc < 0 ? rc : resume_find(run->cli, place, &run->job, &point, err);
    if (rc == MS_OK) {
        take_plan(run, point.plan);
        run->resumed_step = point.step;
        run->resumed_s = point.seconds;
        snprintf(run->job.resume, sizeof(run->job.resume), "%s", point.path);
        snprintf(text, sizeof(text), "resumes from step %llu (epoch %lld, step %lld): %s",
                 (unsigned long long)point.step, (long long)point.epoch,
                 (long long)point.step_in_epoch, point.path);
        cli_display_note(&run->display, text);
    }
    return rc;
}

/* A plan it needs not: the checkpoint brings it. The key resume is said with its new place. */
static void put_options(FILE *out, const struct cli_args *args)
{
    const char *values[CLI_GIVEN_MAX];
    const size_t n = cli_values(args, "set", values, CLI_GIVEN_MAX);
    if (cli_has(args, "workers")) {
        fputs("-n ", out);
        cli_shell_word(out, cli_value(args, "workers"));
        fputc(' ', out);
    }
    for (size_t i = 0; i < n; i++) {
        if (!resume_is_key(values[i])) {
            fputs("--set ", out);
            cli_shell_word(out, values[i]);
            fputc(' ', out);
        }
    }
}

/* For who wants to go on: the file, and by what it was changed, to be copied. */
static int note_again(struct run *run, const struct cli_args *args, struct ms_err *err)
{
    size_t size = 0;
    FILE *out = open_memstream(&run->again, &size);
    if (out != NULL) {
        put_options(out, args);
        cli_shell_word(out, args->words[0]);
    }
    run->again_by_key = run->job.resume[0] != '\0' && !cli_has(args, "resume");
    return out != NULL && fclose(out) == 0
               ? MS_OK
               : ms_fail(err, MS_E_NOMEM, "no memory for the words of this run");
}

/* A checkpoint says from where, and not of what job: that lies in the folder of its run. */
static int need_job(const struct cli_args *args, struct ms_err *err)
{
    char shown[200];
    char inside[MS_PATH_MAX + 2];
    char found[MS_PATH_MAX + 32];
    const char *place = cli_value(args, "resume");
    if (args->n_words > 0 || place == NULL || place[0] == '\0') {
        return cli_need_words(args, 1, 1, "JOB.yaml", err);
    }
    const int n = snprintf(inside, sizeof(inside), "%s/", place);
    const int fits = n > 0 && (size_t)n < sizeof(inside);
    if (!(fits && cli_model_beside(inside, CLI_JOB_FILE, found, sizeof(found))) &&
        !cli_model_beside(place, CLI_JOB_FILE, found, sizeof(found))) {
        return cli_need_words(args, 1, 1, "--resume takes no job from there, and JOB.yaml", err);
    }
    return ms_fail(err, MS_E_INVALID,
                   "%s: --resume takes no job from there, and JOB.yaml is missing; that of this "
                   "run is %s",
                   args->command, ms_text_end(shown, sizeof(shown), found));
}

static int prepare(struct run *run, const struct cli_args *args, struct ms_err *err)
{
    struct cli *cli = run->cli;
    FILE *out = cli->json ? cli->err : cli->out;
    run->started_ms = ms_mono_ms();
    cli_display_init(&run->display, out, cli->live, cli_terminal_width(out), NULL);
    int rc = need_job(args, err);
    if (rc == MS_OK) {
        rc = cli_load_job(args, args->words[0], &run->job, err);
    }
    if (rc == MS_OK) {
        rc = note_again(run, args, err);
    }
    if (rc == MS_OK) {
        rc = run_dir_look(cli_value(args, "run-dir"), err);
    }
    if (rc == MS_OK) {
        rc = cli_load_plan(args, &run->job, &run->plan, err);
    }
    if (rc == MS_OK) {
        rc = find_resume(run, args, err);
    }
    if (rc == MS_OK) {
        rc = check_inputs(&run->job, err);
    }
    if (rc == MS_OK) {
        rc = cli_submit_key(run->key, err);
    }
    if (rc == MS_OK) {
        /* named with the folder itself: the workers, too, find it in this environment */
        run->display.what = cli_eval_name_here(run->eval_name, &run->job);
        rc = run_watch(run, err);
    }
    if (rc == MS_OK) {
        rc = run_find_programs(run, err);
    }
    if (rc == MS_OK) {
        rc = run_dir_make(cli_value(args, "run-dir"), run->job.name, &run->dir, err);
    }
    return rc;
}

int cmd_run(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    static struct run run; /* a job has 20 KiB */
    memset(&run, 0, sizeof(run));
    run.cli = cli;
    int rc = prepare(&run, args, err);
    if (rc != MS_OK) {
        run_end(&run);
        return rc;
    }
    rc = run_dir_make_tls(&run.dir, err);
    if (rc == MS_OK) {
        rc = run_dir_listen(&run.dir, err);
    }
    rc = rc < 0 ? rc : cli_model_keep_job(run.dir.path, &run.job, err);
    if (rc == MS_OK) {
        greet(&run);
        rc = run_start(&run, err);
    }
    if (rc == MS_OK) {
        run_loop(&run);
        cli_display_end(&run.display);
        print_end(&run);
        rc = exit_status(&run, err);
    }
    run_end(&run);
    run_dir_clean(&run.dir);
    return rc;
}
