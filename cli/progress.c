/* progress.c - what a job does right now, as lines for people */
#include "cli/progress.h"

#include "cli/format.h"
#include "proto/macros.h"
#include "proto/state_words.h"

#include <stdio.h>
#include <string.h>

enum { BAR_MIN = 8, BAR_MAX = 30, STATES_MAX = 8, DIGITS_MAX = 24 };

void cli_eta_update(struct cli_eta *eta, const Ms__Progress *progress, double now_s)
{
    uint64_t left =
        progress->steps_total > progress->step ? progress->steps_total - progress->step : 0;
    if (!eta->seen || progress->step < eta->first_step) {
        *eta = (struct cli_eta){1, progress->step, now_s, -1};
    }
    uint64_t done = progress->step - eta->first_step;
    if (progress->steps_total == 0) {
        eta->seconds = -1;
    } else if (done > 0 && now_s > eta->first_s) {
        eta->seconds = (double)left * (now_s - eta->first_s) / (double)done;
    } else if (progress->step_ms > 0) {
        eta->seconds = (double)left * progress->step_ms / 1000;
    }
}

int cli_has_accuracy(double accuracy)
{
    return accuracy >= 0 && accuracy <= 1;
}

int cli_progress_is_forming(const Ms__JobInfo *job)
{
    return job->progress == NULL || job->progress->step == 0 ||
           strcmp(job->state, MS_JOB_STATE_QUEUED) == 0 ||
           strcmp(job->state, MS_JOB_STATE_PLACING) == 0;
}

uint64_t cli_progress_step(const Ms__JobInfo *job)
{
    uint64_t step = job->progress != NULL ? job->progress->step : 0;
    for (size_t i = 0; i < job->n_ranks; i++) {
        step = job->ranks[i]->step > step ? job->ranks[i]->step : step;
    }
    return step;
}

int cli_job_is_ended(const Ms__JobInfo *job)
{
    return strcmp(job->state, MS_JOB_STATE_SUCCEEDED) == 0 ||
           strcmp(job->state, MS_JOB_STATE_FAILED) == 0 ||
           strcmp(job->state, MS_JOB_STATE_CANCELLED) == 0;
}

int cli_job_has_rank_in(const Ms__JobInfo *job, const char *state)
{
    int has = 0;
    for (size_t i = 0; i < job->n_ranks; i++) {
        has |= strcmp(job->ranks[i]->state, state) == 0;
    }
    return has;
}

int cli_progress_is_held(const Ms__JobInfo *job)
{
    int is_running = strcmp(job->state, MS_JOB_STATE_RUNNING) == 0;
    return !cli_progress_is_forming(job) && ((is_running && job->reason[0] != '\0') ||
                                             strcmp(job->state, MS_JOB_STATE_RECOVERING) == 0);
}

/* "QUEUED: waits for 3 of 8 workers"; a running job without a first step says what its ranks do. */
static const char *forming_line(char *dst, size_t size, const Ms__JobInfo *job)
{
    if (job->reason[0] != '\0') {
        snprintf(dst, size, "%s: %s", job->state, job->reason);
    } else if (job->progress != NULL && job->progress->phase[0] != '\0') {
        snprintf(dst, size, "%s: %s, before the first step", job->state, job->progress->phase);
    } else {
        snprintf(dst, size, "%s: before the first step", job->state);
    }
    return dst;
}

/* Numbers keep their width while they count, so that what stands behind them stays in its place. */
static void put_head(char *dst, size_t size, const Ms__Progress *p)
{
    char epochs[DIGITS_MAX];
    char steps[DIGITS_MAX];
    int epoch_width = snprintf(epochs, sizeof(epochs), "%u", p->epochs);
    int step_width = snprintf(steps, sizeof(steps), "%u", p->steps_per_epoch);
    snprintf(dst, size, "epoch %*u/%s  step %*u/%s", epoch_width, p->epoch, epochs, step_width,
             p->step_in_epoch, steps);
}

static void put_tail(char *dst, size_t size, const Ms__JobInfo *job, double eta_s, int compact)
{
    const Ms__Progress *p = job->progress;
    char loss[CLI_FORMAT_MAX];
    char rate[CLI_FORMAT_MAX];
    char step[CLI_FORMAT_MAX];
    char eta[CLI_FORMAT_MAX];
    cli_format_real(loss, p->loss);
    cli_format_rate(rate, p->samples_per_s);
    cli_format_ms(step, p->step_ms);
    int evaluates = strcmp(p->phase, MS_PHASE_EVALUATING) == 0;
    int used =
        p->step_ms > 0
            ? snprintf(dst, size, compact ? "loss %s  %s/s  %s" : "loss %s  %s samples/s  %s/step",
                       loss, rate, step)
            : snprintf(dst, size, "loss %s", loss); /* no step of this run yet */
    if (cli_job_is_ended(job)) {
        return; /* however far it came, it does not go on */
    }
    if (eta_s >= 0 && used >= 0 && (size_t)used < size) {
        used += snprintf(dst + used, size - (size_t)used, "  ETA %s", cli_format_eta(eta, eta_s));
    }
    if (evaluates && used >= 0 && (size_t)used < size) {
        snprintf(dst + used, size - (size_t)used, "  evaluating");
    }
}

/* "epoch 2/3  step  50/100  RECOVERING: waits for rank 2" */
static const char *held_line(char *dst, size_t size, const Ms__JobInfo *job)
{
    char head[128];
    put_head(head, sizeof(head), job->progress);
    snprintf(dst, size, "%s  %s%s%s", head, job->state, job->reason[0] != '\0' ? ": " : "",
             job->reason);
    return dst;
}

static double part_done(const Ms__Progress *p)
{
    return p->steps_total > 0 ? (double)p->step / (double)p->steps_total : 0;
}

const char *cli_progress_line(char *dst, size_t size, size_t width, const Ms__JobInfo *job,
                              double eta_s)
{
    char text[CLI_LINE_MAX];
    if (cli_progress_is_forming(job)) {
        return cli_text_fit(dst, size, forming_line(text, sizeof(text), job), width);
    }
    if (cli_progress_is_held(job)) {
        return cli_text_fit(dst, size, held_line(text, sizeof(text), job), width);
    }
    char head[128];
    char tail[256];
    size_t taken = 0;
    put_head(head, sizeof(head), job->progress);
    for (int compact = 0; compact <= 1; compact++) { /* shorter words before no bar */
        put_tail(tail, sizeof(tail), job, eta_s, compact);
        taken = strlen(head) + strlen(tail) + 4;
        if (width >= taken + BAR_MIN) {
            break;
        }
    }
    if (width >= taken + BAR_MIN) {
        char bar[BAR_MAX + 1];
        size_t room = width - taken;
        cli_bar(bar, sizeof(bar), room < BAR_MAX ? room : BAR_MAX, part_done(job->progress));
        snprintf(text, sizeof(text), "%s  %s  %s", head, bar, tail);
    } else {
        snprintf(text, sizeof(text), "%s  %s", head, tail);
    }
    return cli_text_fit(dst, size, text, width);
}

const char *cli_progress_workers(char *dst, size_t size, size_t width, const Ms__JobInfo *job)
{
    struct {
        const char *state;
        unsigned n;
    } count[STATES_MAX];
    size_t n_states = 0;
    for (size_t r = 0; r < job->n_ranks; r++) {
        size_t s = 0;
        while (s < n_states && strcmp(count[s].state, job->ranks[r]->state) != 0) {
            s++;
        }
        if (s == n_states && n_states < STATES_MAX) {
            count[n_states].state = job->ranks[r]->state;
            count[n_states++].n = 0;
        }
        if (s < n_states) {
            count[s].n++;
        }
    }
    char text[CLI_LINE_MAX];
    int used = snprintf(text, sizeof(text), "workers %u%s", job->workers, n_states > 0 ? ":" : "");
    for (size_t s = 0; s < n_states && used >= 0 && (size_t)used < sizeof(text); s++) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s %u %s", s > 0 ? "," : "",
                         count[s].n, count[s].state);
    }
    return cli_text_fit(dst, size, text, width);
}

const char *cli_progress_plain(char *dst, size_t size, const Ms__JobInfo *job, double eta_s)
{
    char text[CLI_LINE_MAX];
    if (cli_progress_is_forming(job)) {
        return cli_text_fit(dst, size, forming_line(text, sizeof(text), job), CLI_LINE_MAX);
    }
    if (cli_progress_is_held(job)) {
        return cli_text_fit(dst, size, held_line(text, sizeof(text), job), CLI_LINE_MAX);
    }
    char head[128];
    char tail[256];
    put_head(head, sizeof(head), job->progress);
    put_tail(tail, sizeof(tail), job, eta_s, 0);
    snprintf(dst, size, "%s  %s", head, tail);
    return dst;
}

const char *cli_progress_show(char *dst, size_t size, const Ms__JobInfo *job)
{
    if (cli_progress_is_held(job) || cli_progress_is_forming(job)) {
        put_head(dst, size, job->progress);
        return dst;
    }
    return cli_progress_plain(dst, size, job, -1);
}

const char *cli_progress_unsettled(char *dst, size_t size, const Ms__Progress *eval)
{
    if (!(eval->unsettled > 0 && eval->unsettled <= 1)) {
        return NULL;
    }
    snprintf(dst, size,
             "%.0f %% of the moving statistics are what they were at first: the net may look less "
             "trained than it is",
             eval->unsettled * 100);
    return dst;
}

const char *cli_progress_eval(char *dst, size_t size, const Ms__Progress *eval, const char *what)
{
    char loss[CLI_FORMAT_MAX];
    cli_format_real(loss, eval->eval_loss);
    const char *name = what != NULL ? what : "the evaluation data";
    if (cli_has_accuracy(eval->accuracy)) {
        snprintf(dst, size, "epoch %u: accuracy %.1f %% on %s, loss %s", eval->epoch,
                 eval->accuracy * 100, name, loss);
    } else {
        snprintf(dst, size, "epoch %u: loss %s on %s", eval->epoch, loss, name);
    }
    char why[CLI_UNSETTLED_MAX];
    const size_t used = strlen(dst);
    if (cli_progress_unsettled(why, sizeof(why), eval) != NULL) {
        snprintf(dst + used, size - used, "; %s", why);
    }
    return dst;
}
