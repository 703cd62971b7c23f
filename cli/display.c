/* display.c - a job that runs, on a terminal or in a log */
#include "cli/display.h"

#include "cli/format.h"

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

/* What a log gets: reasons to print are a new state, a new reason to wait, an epoch's end, and
 * time. */
static void print_plain(struct cli_display *display, const Ms__JobInfo *job, double now_s)
{
    const Ms__Progress *p = job->progress;
    int forming = cli_progress_is_forming(job);
    int new_state = strcmp(display->state, job->state) != 0;
    int new_reason = strncmp(display->reason, job->reason, sizeof(display->reason) - 1) != 0;
    /* the state that a job ends in is the summary's to tell */
    int changed = forming ? new_state || new_reason : new_state && p->step != display->step;
    int ended = !forming && is_epoch_end(display, p) &&
                (display->epoch == 0 || now_s >= display->printed_s + epoch_every_s);
    int first = !forming && display->step == 0;
    int due = !forming && p->step != display->step && now_s >= display->printed_s + plain_every_s;
    if (!changed && !ended && !first && !due) {
        return;
    }
    char text[CLI_LINE_MAX];
    snprintf(display->state, sizeof(display->state), "%s", job->state);
    snprintf(display->reason, sizeof(display->reason), "%s", job->reason);
    double eta_s = display->eta.seen ? display->eta.seconds : -1;
    /* RUNNING before its first step has nothing to tell */
    if (!forming || job->reason[0] != '\0') {
        cli_display_note(display, cli_progress_plain(text, sizeof(text), job, eta_s));
    }
    display->printed_s = now_s;
    if (!forming) {
        display->step = p->step;
        display->epoch = ended ? p->epoch : display->epoch;
    }
}

static int is_ended(const Ms__JobInfo *job)
{
    return strcmp(job->state, "SUCCEEDED") == 0 || strcmp(job->state, "FAILED") == 0 ||
           strcmp(job->state, "CANCELLED") == 0;
}

void cli_display_update(struct cli_display *display, const Ms__JobInfo *job, double now_s)
{
    if (job->progress != NULL && job->progress->step > 0) {
        cli_eta_update(&display->eta, job->progress, now_s);
    }
    if (display->live) {
        print_evals(display, job);
        draw(display, job);
    } else {
        /* an end without a last step is the summary's to tell */
        if (!is_ended(job) || !cli_progress_is_forming(job)) {
            print_plain(display, job, now_s);
        }
        print_evals(display, job);
    }
}
