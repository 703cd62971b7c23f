/* summary.c - how a job ended, for people and for programs */
#include "cli/summary.h"

#include "cli/checkpoints.h"
#include "cli/comeback.h"
#include "cli/eval_table.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/metrics.h"
#include "cli/progress.h"
#include "cli/rank_notes.h"
#include "cli/still.h"
#include "cli/table.h"
#include "cli/weights.h"
#include "proto/state_words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* The metrics of a run lie in its folder; other jobs' are on their nodes. */
static void read_metrics(const struct cli_run_facts *facts, struct cli_metrics *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (facts != NULL) {
        char path[MS_PATH_MAX + 32];
        snprintf(path, sizeof(path), "%s/metrics.jsonl", facts->run_dir);
        (void)cli_metrics_read(path, ret, NULL); /* a job that never stepped has none */
    }
}

static int is_resumed(const struct cli_run_facts *facts)
{
    return facts != NULL && facts->resumed_step > 0;
}

static const Ms__Progress *last_eval(const Ms__JobInfo *job)
{
    return job->n_evals > 0 ? job->evals[job->n_evals - 1] : NULL;
}

static void print_eval(FILE *out, const Ms__Progress *eval, const char *data)
{
    char why[CLI_UNSETTLED_MAX];
    eval_table_print_loss(out, eval->eval_loss, eval->accuracy, data);
    if (cli_progress_unsettled(why, sizeof(why), eval) != NULL) {
        fprintf(out, "              %s\n", why);
    }
}

/* ---- how far it came ---- */

/* Lines of a job that went back to a checkpoint may be ahead of it. */
static uint64_t told_step(const Ms__JobInfo *job, const struct cli_metrics *metrics)
{
    const uint64_t again = job != NULL ? job->again_to : 0;
    return metrics->last_step > again ? metrics->last_step : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A job that did not end by itself has told no result: what was reported, saved, or written to its
 * metrics is known. What another run of the training saved in the same folder is not this one's,
 * nor is the step that it goes on from, which rank 0 may have told before it trained. 0: none. */
static uint64_t last_step(const Ms__JobInfo *job, const struct cli_metrics *metrics,
                          const struct cli_run_facts *facts)
{
    const uint64_t saved = facts != NULL && facts->saved != NULL ? facts->saved->own_step : 0;
    const uint64_t told = job != NULL ? later(job->steps, cli_progress_step(job)) : 0;
    const uint64_t last = later(later(told, saved), told_step(job, metrics));
    return facts == NULL || last > facts->resumed_step ? last : 0;
}

static int has_trained(const Ms__JobInfo *job, const struct cli_metrics *metrics,
                       const struct cli_run_facts *facts)
{
    return last_step(job, metrics, facts) > 0;
}

/* Would it come to another end where it goes on? Not to that of a loss that is not finite, nor of
 * what kept it from its first step. */
static int can_go_on(const Ms__JobInfo *job, const struct cli_metrics *metrics,
                     const struct cli_run_facts *facts)
{
    if (job == NULL || strcmp(job->state, MS_JOB_STATE_FAILED) != 0) {
        return 1;
    }
    return has_trained(job, metrics, facts) && strstr(job->reason, MS_TEXT_NOT_FINITE) == NULL;
}

static int has_succeeded(const Ms__JobInfo *job)
{
    return strcmp(job->state, MS_JOB_STATE_SUCCEEDED) == 0;
}

static void print_steps(FILE *out, const Ms__JobInfo *job, const struct cli_metrics *metrics,
                        const struct cli_run_facts *facts)
{
    char step[CLI_FORMAT_MAX];
    char total[CLI_FORMAT_MAX];
    if (job->steps > 0 && has_succeeded(job)) {
        const char *early = strstr(job->reason, MS_TEXT_ENDED_EARLY);
        fprintf(out, "  steps       %s%s%s\n", cli_format_count(step, job->steps),
                early != NULL ? "; " : "", early != NULL ? early : "");
        return;
    }
    const uint64_t last = last_step(job, metrics, facts);
    if (last > 0 && (job->progress == NULL || job->progress->steps_total == 0)) {
        /* a scheduler that was started again has heard of no progress */
        fprintf(out, "  steps       %s\n", cli_format_count(step, last));
    } else if (last > 0) {
        fprintf(out, "  steps       %s of %s\n", cli_format_count(step, last),
                cli_format_count(total, job->progress->steps_total));
    }
}

/* ---- numbers ---- */

/* Of training: as the job says, or its ranks said at its end, to which one comes early that was
 * stopped. Else the time from its start to its end, with what a resumed one was trained before. */
struct span {
    double seconds; /* 0: not known */
    int is_training;
};

static struct span span_of(const Ms__JobInfo *job, const struct cli_metrics *metrics,
                           const struct cli_run_facts *facts)
{
    struct span span = {job->seconds, 1};
    if (!(span.seconds > 0) && metrics->done_steps > 0) {
        span.seconds = metrics->done_seconds;
    } else if (!(span.seconds > 0)) {
        const double before = is_resumed(facts) ? facts->resumed_s : 0;
        span.seconds = before + fmax(cli_job_seconds(job), 0);
        span.is_training = 0;
    }
    return span;
}

/* A job that was resumed was trained for longer than this run took. */
static void print_result(FILE *out, int colour, const Ms__JobInfo *job,
                         const struct cli_metrics *metrics, const struct cli_run_facts *facts)
{
    char buf[CLI_FORMAT_MAX];
    char step[CLI_FORMAT_MAX];
    const char *on = colour ? cli_state_colour(job->state) : "";
    const struct span span = span_of(job, metrics, facts);
    fprintf(out, "job %llu (%s) %s%s%s", (unsigned long long)job->id, job->name, on, job->state,
            on[0] != '\0' ? CLI_COLOUR_OFF : "");
    if (span.seconds > 0) {
        fprintf(out, " after %s%s", cli_format_duration(buf, span.seconds),
                span.is_training ? " of training" : "");
    }
    if (span.seconds > 0 && is_resumed(facts)) {
        fprintf(out, ", %s since step %s",
                cli_format_duration(buf, fmax(span.seconds - facts->resumed_s, 0)),
                cli_format_count(step, facts->resumed_step));
    }
    fputc('\n', out);
    if (cli_job_status(job) != 0 && job->reason[0] != '\0') {
        fprintf(out, "  reason      %s\n", job->reason);
    }
}

/* The step with which metrics end that lack later ones, for which there was no room or nobody who
 * wrote them; 0: they have all, or their lines are of no step. */
static uint64_t cut_off_at(const Ms__JobInfo *job, const struct cli_metrics *metrics,
                           const struct cli_run_facts *facts)
{
    return metrics->last_step < last_step(job, metrics, facts) ? metrics->last_step : 0;
}

/* How many steps have no line in front of the last one that has, and the first of them. */
static uint64_t lacks(const struct cli_metrics *metrics, const struct cli_run_facts *facts,
                      uint64_t *ret)
{
    return cli_metrics_lacks(metrics, is_resumed(facts) ? facts->resumed_step + 1 : 1, ret);
}

/* Samples of a step by the metrics, or from what rank 0 said last. */
static double samples_of_step(const Ms__JobInfo *job, const struct cli_metrics *metrics)
{
    const Ms__Progress *p = job->progress;
    return metrics->n_steps > 0          ? metrics->samples / (double)metrics->n_steps
           : p != NULL && p->step_ms > 0 ? p->samples_per_s * p->step_ms / 1000
                                         : NAN;
}

struct cli_speed cli_summary_speed(const Ms__JobInfo *job, const struct cli_metrics *metrics,
                                   const struct cli_run_facts *facts)
{
    const uint64_t to_step = cut_off_at(job, metrics, facts);
    const int is_counted = job->steps > 0 && job->seconds > 0;
    uint64_t first = 0;
    const int has_all = to_step == 0 && lacks(metrics, facts, &first) == 0;
    struct cli_speed speed = {NAN, NAN, NAN, 0, 0, 0};
    if (metrics->seconds > 0 && (has_all || !is_counted)) {
        speed.of_run = 1;
        speed.to_step = to_step;
        speed.samples_per_s = metrics->samples / metrics->seconds;
        speed.step_ms = metrics->seconds * 1000 / (double)metrics->n_steps;
        speed.median_ms = cli_median(metrics->step_ms, metrics->n);
    } else if (is_counted) {
        speed.with_evaluations = job->n_evals > 0;
        speed.step_ms = job->seconds * 1000 / (double)job->steps;
        speed.samples_per_s = samples_of_step(job, metrics) * 1000 / speed.step_ms;
    }
    return speed;
}

static const char *average_of(char *dst, size_t size, const struct cli_speed *speed,
                              const struct cli_run_facts *facts)
{
    char from[CLI_FORMAT_MAX];
    char to[CLI_FORMAT_MAX];
    if (speed->to_step > 0) {
        snprintf(dst, size, "steps %s to %s",
                 cli_format_count(from, is_resumed(facts) ? facts->resumed_step + 1 : 1),
                 cli_format_count(to, speed->to_step));
    } else {
        snprintf(dst, size, "%s%s", speed->of_run && is_resumed(facts) ? "this run" : "the job",
                 speed->with_evaluations ? " with its evaluations" : "");
    }
    return dst;
}

static void print_speed(FILE *out, const struct cli_speed *speed, const struct cli_run_facts *facts)
{
    char rate[CLI_FORMAT_MAX];
    char step[CLI_FORMAT_MAX];
    char median[CLI_FORMAT_MAX];
    char of[3 * CLI_FORMAT_MAX];
    if (!isfinite(speed->samples_per_s) || !isfinite(speed->step_ms)) {
        return;
    }
    fprintf(out, "  throughput  %s samples/s, %s a step (average of %s",
            cli_format_rate(rate, speed->samples_per_s), cli_format_ms(step, speed->step_ms),
            average_of(of, sizeof(of), speed, facts));
    if (isfinite(speed->median_ms)) {
        fprintf(out, "; median %s", cli_format_ms(median, speed->median_ms));
    }
    fputs(")\n", out);
}

/* Where its metrics end before the job: at which step, and the loss that was told last. */
static void print_losses(FILE *out, const Ms__JobInfo *job, const struct cli_metrics *metrics,
                         const struct cli_run_facts *facts)
{
    char plot[512];
    char a[CLI_FORMAT_MAX];
    char b[CLI_FORMAT_MAX];
    const uint64_t to_step = cut_off_at(job, metrics, facts);
    const Ms__Progress *p = job->progress;
    if (metrics->n < 2) {
        return;
    }
    cli_sparkline(plot, sizeof(plot), metrics->loss, metrics->n, 50, cli_is_utf8());
    fprintf(out, "  loss        %s %s %s", cli_format_real(a, metrics->loss[0]), plot,
            cli_format_real(b, metrics->loss[metrics->n - 1]));
    if (to_step > 0) {
        fprintf(out, " (step %s)", cli_format_count(a, to_step));
    }
    if (to_step > 0 && p != NULL && p->step > to_step) {
        fprintf(out, ", then %s (step %s)", cli_format_real(a, p->loss),
                cli_format_count(b, p->step));
    }
    fputc('\n', out);
}

/* The file may have those of a run before, or lack this one. */
static int is_line_of(const json_t *line, const Ms__Progress *eval)
{
    const double loss = json_number_value(json_object_get(line, "eval_loss"));
    return json_integer_value(json_object_get(line, "epoch")) == (json_int_t)eval->epoch &&
           fabs(loss - eval->eval_loss) <= 1e-5 * fabs(loss); /* which has fewer digits there */
}

static void print_numbers(FILE *out, const Ms__JobInfo *job, const char *eval_name,
                          const struct cli_still *still, const struct cli_metrics *metrics,
                          const struct cli_run_facts *facts)
{
    char recovered[CLI_LINE_MAX];
    const Ms__Progress *eval = last_eval(job);
    const char *data = eval_name != NULL ? eval_name : "the evaluation data";
    struct cli_speed speed = cli_summary_speed(job, metrics, facts);
    if (eval != NULL) {
        print_eval(out, eval, data);
        const int has_job = facts != NULL && facts->job != NULL;
        eval_table_print(out, is_line_of(metrics->eval, eval) ? metrics->eval : NULL,
                         has_job ? facts->job->dataset.class_names : "");
    }
    print_speed(out, &speed, facts);
    print_steps(out, job, metrics, facts);
    if (cli_comeback_sum(recovered, sizeof(recovered), job, still) != NULL) {
        fprintf(out, "  recovered   %s\n", recovered);
    }
    if (cli_comeback_again(recovered, sizeof(recovered), job) != NULL) {
        fprintf(out, "  again       %s\n", recovered);
    }
    print_losses(out, job, metrics, facts);
}

/* ---- where things lie ---- */

static int is_there(char *path, size_t size, const char *dir, const char *file)
{
    struct stat st;
    snprintf(path, size, "%s/%s", dir, file);
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode); /* a folder is nothing that was saved */
}

/* A job that was stopped has told none: that of what its run has saved is known all the same. */
static const char *digest_of_weights(char hex[MS_SHA256_HEX], const Ms__JobInfo *job,
                                     const struct cli_run_facts *facts)
{
    char path[MS_PATH_MAX + 32];
    if (job->weights_sha256[0] != '\0' || facts == NULL || cli_job_status(job) == 0 ||
        !is_there(path, sizeof(path), facts->run_dir, "weights.safetensors") ||
        cli_weights_digest(path, hex, NULL) != MS_OK) {
        return job->weights_sha256;
    }
    return hex;
}

static void print_digest(FILE *out, const char *name, const char *digest, const char *meaning)
{
    if (digest[0] != '\0') {
        fprintf(out, "  %-11s digest %s\n              (%s)\n", name, digest, meaning);
    }
}

/* With the sum that sha256sum(1) prints: the digest of the weights is another thing. */
static void print_saved(FILE *out, const char *path)
{
    char hex[MS_SHA256_HEX];
    fprintf(out, "  saved       %s\n", path);
    if (cli_file_sha256(path, hex, NULL) == MS_OK) {
        fprintf(out, "              sha256 %s\n", hex);
    }
}

/* Who stopped a run, or lost it, need not look for what there is not. */
static void print_unsaved(FILE *out, const Ms__JobInfo *job, const struct cli_metrics *metrics,
                          const struct cli_run_facts *facts)
{
    const uint64_t saved = facts->saved != NULL ? facts->saved->step : 0;
    const char *lost = saved == 0 ? "what was trained is lost"
                       : saved >= last_step(job, metrics, facts)
                           ? "the newest checkpoint has them"
                           : "what was trained after the newest checkpoint is lost";
    fprintf(out, "  not saved   the weights: %s\n", lost);
}

static int is_disk_full(const char *dir)
{
    struct statvfs fs;
    return statvfs(dir, &fs) == 0 && (fs.f_bavail == 0 || (fs.f_files > 0 && fs.f_favail == 0));
}

static int is_lost(const Ms__JobInfo *job, uint32_t rank)
{
    for (size_t i = 0; job != NULL && i < job->n_ranks; i++) {
        if (job->ranks[i]->rank == rank) {
            return strcmp(job->ranks[i]->state, MS_RANK_STATE_LOST) == 0;
        }
    }
    return 0;
}

/* "no metrics from step 88 on: why", as rank 0 said it, but of the step that they lack: room may
 * have come for some of those that waited, and gone again. */
static void find_trouble(const char *run_dir, uint64_t told, char *dst, size_t size)
{
    static const char begin[] = "no metrics from step ";
    char said[MS_ERR_TEXT_MAX];
    dst[0] = '\0';
    if (cli_rank_trouble(run_dir, begin, "metrics are written again", said, sizeof(said))[0] !=
        '\0') {
        const char *on = said + sizeof(begin) - 1;
        snprintf(dst, size, "%s%" PRIu64 "%s", begin, told + 1, on + strspn(on, "0123456789"));
    }
}

/* ": why" its metrics, which end with the step told, do so before the job; "": nobody knows. */
static const char *why_cut_off(const Ms__JobInfo *job, const struct cli_run_facts *facts,
                               uint64_t told, uint64_t missing, char *dst, size_t size)
{
    char trouble[MS_ERR_TEXT_MAX];
    find_trouble(facts->run_dir, told, trouble, sizeof(trouble));
    const char *why = trouble[0] != '\0'             ? trouble
                      : is_disk_full(facts->run_dir) ? "no space is left on the disk of the run "
                                                       "directory"
                      : is_lost(job, 0)              ? "rank 0 was lost, and no other writes it"
                      : missing == 1                 ? "rank 0 ended before it wrote that line"
                                                     : "";
    snprintf(dst, size, "%s%s%s", why[0] != '\0' ? ": " : "", why,
             trouble[0] != '\0' ? " (rank 0's log)" : "");
    return dst;
}

static void print_metrics(FILE *out, const Ms__JobInfo *job, const struct cli_metrics *metrics,
                          const struct cli_run_facts *facts, const char *path)
{
    char why[MS_ERR_TEXT_MAX + 32];
    char a[CLI_FORMAT_MAX];
    char b[CLI_FORMAT_MAX];
    const uint64_t told = later(metrics->last_step, facts->resumed_step);
    const uint64_t last = last_step(job, metrics, facts);
    fprintf(out, "  metrics     %s\n", path);
    if (last > told) {
        fprintf(out, "              its last step is %s of %s%s\n",
                cli_format_count(a, metrics->last_step), cli_format_count(b, last),
                why_cut_off(job, facts, told, last - told, why, sizeof(why)));
    }
    uint64_t first = 0;
    const uint64_t n = lacks(metrics, facts, &first);
    if (n > 0) {
        fprintf(out, "              %s step%s in front of it ha%s no line, the first is %s\n",
                cli_format_count(a, n), n == 1 ? "" : "s", n == 1 ? "s" : "ve",
                cli_format_count(b, first));
    }
}

static void print_files(FILE *out, const Ms__JobInfo *job, const struct cli_metrics *metrics,
                        const struct cli_run_facts *facts, int is_good)
{
    char weights[MS_PATH_MAX + 32];
    char path[MS_PATH_MAX + 32];
    if (is_there(weights, sizeof(weights), facts->run_dir, "weights.safetensors")) {
        print_saved(out, weights);
    } else if (!is_good && has_trained(job, metrics, facts)) {
        print_unsaved(out, job, metrics, facts);
    }
    if (is_there(path, sizeof(path), facts->run_dir, "best.safetensors")) {
        fprintf(out, "  best        %s\n", path);
    }
    cli_checkpoints_print(out, facts, !is_good && can_go_on(job, metrics, facts));
    if (is_there(path, sizeof(path), facts->run_dir, "metrics.jsonl")) {
        print_metrics(out, job, metrics, facts, path);
    }
    fprintf(out, "  logs        %s/worker_<rank>.log and scheduler.log\n", facts->run_dir);
}

void cli_summary_print(FILE *out, int colour, const Ms__JobInfo *job, const char *eval_name,
                       const struct cli_still *still, const struct cli_run_facts *facts)
{
    struct cli_metrics metrics;
    char digest[MS_SHA256_HEX];
    read_metrics(facts, &metrics);
    print_result(out, colour, job, &metrics, facts);
    print_numbers(out, job, eval_name, still, &metrics, facts);
    print_digest(out, "weights", digest_of_weights(digest, job, facts),
                 "of all values in the order of their names, not of the file");
    print_digest(out, "plan", job->plan_sha256, "equal plans of a job give equal bits");
    if (facts != NULL) {
        print_files(out, job, &metrics, facts, cli_job_status(job) == 0);
    }
    cli_metrics_free(&metrics);
}

void cli_summary_print_left(FILE *out, const Ms__JobInfo *job, const struct cli_run_facts *facts)
{
    struct cli_metrics metrics;
    read_metrics(facts, &metrics);
    if (job != NULL) {
        print_steps(out, job, &metrics, facts);
    }
    print_files(out, job, &metrics, facts, 0);
    cli_metrics_free(&metrics);
}

static void put_count(json_t *object, const char *key, uint64_t count)
{
    json_object_set_new(object, key, json_integer((json_int_t)count));
}

static void put_path(json_t *object, const char *key, const char *dir, const char *file)
{
    char path[MS_PATH_MAX + 32];
    json_object_set_new(object, key,
                        is_there(path, sizeof(path), dir, file) ? json_string(path) : json_null());
}

/* `seconds` and `steps` are the job's; what this run did is the rest. */
static void put_resumed(json_t *object, const struct cli_run_facts *facts)
{
    const int is_known = is_resumed(facts);
    json_object_set_new(object, "resumed_step",
                        is_known ? json_integer((json_int_t)facts->resumed_step) : json_null());
    json_object_set_new(object, "resumed_seconds",
                        is_known ? cli_json_real(facts->resumed_s) : json_null());
}

json_t *cli_summary_json(const Ms__JobInfo *job, const char *eval_name,
                         const struct cli_still *still, const struct cli_run_facts *facts)
{
    struct cli_metrics metrics;
    char digest[MS_SHA256_HEX];
    json_t *object = cli_json_still(cli_json_job(job), job, still);
    const Ms__Progress *eval = last_eval(job);
    read_metrics(facts, &metrics);
    struct cli_speed speed = cli_summary_speed(job, &metrics, facts);
    json_object_set_new(object, "exit_status", json_integer(cli_job_status(job)));
    json_object_set_new(object, "samples_per_s", cli_json_real(speed.samples_per_s));
    json_object_set_new(object, "step_ms", cli_json_real(speed.step_ms));
    json_object_set_new(object, "accuracy",
                        eval != NULL && cli_has_accuracy(eval->accuracy)
                            ? cli_json_real(eval->accuracy)
                            : json_null());
    json_object_set_new(object, "eval_data",
                        eval != NULL && eval_name != NULL ? json_string(eval_name) : json_null());
    json_object_set_new(object, "eval_loss",
                        eval != NULL ? cli_json_real(eval->eval_loss) : json_null());
    if (facts != NULL) {
        if (!has_succeeded(job)) {
            put_count(object, "steps", last_step(job, &metrics, facts));
        }
        json_object_set_new(object, "seconds",
                            cli_json_real(span_of(job, &metrics, facts).seconds));
        json_object_set_new(object, "weights_sha256",
                            json_string(digest_of_weights(digest, job, facts)));
        json_object_set_new(object, "run_dir", json_string(facts->run_dir));
        json_object_set_new(object, "wall_seconds", cli_json_real(facts->seconds));
        put_path(object, "weights", facts->run_dir, "weights.safetensors");
        put_path(object, "best", facts->run_dir, "best.safetensors");
        put_path(object, "metrics", facts->run_dir, "metrics.jsonl");
        put_count(object, "metrics_step", metrics.last_step);
        uint64_t first = 0;
        put_count(object, "metrics_lacking", lacks(&metrics, facts, &first));
        cli_checkpoints_json(object, facts);
        put_resumed(object, facts);
    }
    cli_metrics_free(&metrics);
    return object;
}
