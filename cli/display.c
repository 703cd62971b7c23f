/* display.c - a job that runs, on a terminal or in a log */
#include "cli/display.h"

#include "cli/format.h"
#include "proto/state_words.h"

#include <string.h>

static const double plain_every_s = 5;
static const double epoch_every_s = 1; /* epochs may be shorter than a line takes to read */

void cli_display_init(struct cli_display *display, FILE *out, int live, size_t width,
                      const char *what)
{
    memset(display, 0, sizeof(*display));
    display->out = out;
    display->live = live;
    display->width = width;
    display->what = what;
    display->printed_s = -1;
}

static void erase(struct cli_display *display)
{
    if (display->lines > 0) {
        fputs("\r", display->out);
        for (int i = 1; i < display->lines; i++) {
            fputs("\x1b[1A", display->out);
        }
        fputs("\x1b[J", display->out);
        display->lines = 0;
    }
}

void cli_display_note(struct cli_display *display, const char *text)
{
    erase(display);
    fprintf(display->out, "%s\n", text);
    fflush(display->out);
}

void cli_display_end(struct cli_display *display)
{
    erase(display);
    fflush(display->out);
}

/* One column stays free: a terminal that wraps there would scroll the first line away. */
static void draw(struct cli_display *display, const Ms__JobInfo *job)
{
    char first[CLI_LINE_MAX];
    char second[CLI_LINE_MAX];
    size_t width = display->width > 1 ? display->width - 1 : 79;
    double eta_s = display->eta.seen ? display->eta.seconds : -1;
    cli_progress_line(first, sizeof(first), width, job, eta_s);
    cli_progress_workers(second, sizeof(second), width, job);
    fputs("\r", display->out);
    if (display->lines == 2) {
        fputs("\x1b[1A", display->out);
    }
    fprintf(display->out, "%s\x1b[K\n%s\x1b[K", first, second);
    display->lines = 2;
    fflush(display->out);
}

static void print_evals(struct cli_display *display, const Ms__JobInfo *job)
{
    for (size_t i = 0; i < job->n_evals; i++) {
        if (job->evals[i]->epoch > display->evals_to) {
            char text[CLI_LINE_MAX];
            display->evals_to = job->evals[i]->epoch;
            cli_display_note(display,
                             cli_progress_eval(text, sizeof(text), job->evals[i], display->what));
        }
    }
}

static int is_epoch_end(const struct cli_display *display, const Ms__Progress *p)
{
    return p->steps_per_epoch > 0 && p->step_in_epoch == p->steps_per_epoch &&
           p->epoch > display->epoch;
}

/* They were said. */
static void keep_words(struct cli_display *display, const Ms__JobInfo *job, double now_s)
{
    snprintf(display->state, sizeof(display->state), "%s", job->state);
    snprintf(display->reason, sizeof(display->reason), "%s", job->reason);
    display->printed_s = now_s;
}

static int is_new_reason(const struct cli_display *display, const Ms__JobInfo *job)
{
    return strncmp(display->reason, job->reason, sizeof(display->reason) - 1) != 0;
}

/* It waits for somebody to do something, and the line that moves has no room for what. */
static void print_unsaved(struct cli_display *display, const Ms__JobInfo *job, double now_s)
{
    const int waits = strncmp(job->reason, MS_REASON_UNSAVED, sizeof(MS_REASON_UNSAVED) - 1) == 0;
    if (waits && is_new_reason(display, job)) {
        cli_display_note(display, job->reason);
        keep_words(display, job, now_s);
    }
}

/* What a log gets: reasons to print are a new state, a new reason to wait, an epoch's end, and
 * time. */
static void print_plain(struct cli_display *display, const Ms__JobInfo *job, double now_s)
{
    const Ms__Progress *p = job->progress;
    int forming = cli_progress_is_forming(job);
    int held = cli_progress_is_held(job);
    int new_state = strcmp(display->state, job->state) != 0;
    int new_reason = is_new_reason(display, job);
    /* the state that a job ends in is the summary's to tell */
    int changed = forming ? new_state || new_reason : new_state && p->step != display->step;
    int ended = !forming && is_epoch_end(display, p) &&
                (display->epoch == 0 || now_s >= display->printed_s + epoch_every_s);
    int first = !forming && display->step == 0;
    int new_words = held ? new_reason : !forming && p->step != display->step;
    int due = new_words && now_s >= display->printed_s + plain_every_s;
    if (!changed && !ended && !first && !due) {
        return;
    }
    char text[CLI_LINE_MAX];
    keep_words(display, job, now_s);
    double eta_s = display->eta.seen ? display->eta.seconds : -1;
    /* RUNNING before its first step has nothing to tell */
    if (!forming || job->reason[0] != '\0') {
        cli_display_note(display, cli_progress_plain(text, sizeof(text), job, eta_s));
    }
    if (!forming) {
        display->step = p->step;
        display->epoch = ended ? p->epoch : display->epoch;
    }
}

static void keep_progress(struct cli_display *display, const Ms__Progress *progress)
{
    ms__progress__init(&display->progress);
    display->progress.generation = progress->generation;
    display->progress.step = progress->step;
    display->progress.steps_total = progress->steps_total;
    display->progress.epoch = progress->epoch;
    display->progress.epochs = progress->epochs;
    display->progress.step_in_epoch = progress->step_in_epoch;
    display->progress.steps_per_epoch = progress->steps_per_epoch;
    display->progress.loss = progress->loss;
    display->progress.samples_per_s = progress->samples_per_s;
    display->progress.step_ms = progress->step_ms;
    snprintf(display->phase, sizeof(display->phase), "%s", progress->phase);
    display->progress.phase = display->phase;
}

static int is_on(const Ms__JobInfo *job)
{
    return strcmp(job->state, MS_JOB_STATE_RUNNING) == 0 ||
           strcmp(job->state, MS_JOB_STATE_RECOVERING) == 0;
}

/* What was reported last is of before the loss, and may be some steps off. */
static void go_to(struct cli_display *display, uint64_t step)
{
    Ms__Progress *p = &display->progress;
    p->step = step;
    if (p->steps_per_epoch > 0) {
        p->epoch = (uint32_t)((step - 1) / p->steps_per_epoch) + 1;
        p->step_in_epoch = (uint32_t)((step - 1) % p->steps_per_epoch) + 1;
    }
}

void cli_display_update(struct cli_display *display, const Ms__JobInfo *update, double now_s)
{
    char text[CLI_LINE_MAX];
    Ms__JobInfo shown = *update;
    const Ms__JobInfo *job = &shown;
    if (job->progress != NULL && job->progress->step > 0) {
        cli_eta_update(&display->eta, job->progress, now_s);
        keep_progress(display, job->progress);
    } else if (display->progress.step > 0 && is_on(job)) {
        shown.progress = &display->progress;
    }
    uint64_t from = display->progress.step > 0 ? cli_comeback_step(job) : 0;
    if (from > 0) {
        go_to(display, from);
        shown.progress = &display->progress;
    }
    if (cli_comeback_line(&display->comeback, job, now_s, text, sizeof(text)) != NULL) {
        cli_display_note(display, text);
        keep_words(display, job, now_s);
    }
    if (display->live) {
        print_evals(display, job);
        print_unsaved(display, job, now_s);
        draw(display, job);
    } else {
        /* an end without a last step is the summary's to tell */
        if (!cli_job_is_ended(job) || !cli_progress_is_forming(job)) {
            print_plain(display, job, now_s);
        }
        print_evals(display, job);
    }
}
