/* display.h - a job that runs, on a terminal (lines drawn again) or in a log (lines now and then)
 *
 * On a terminal two lines are kept at the bottom: progress, and the workers' states. Whatever stays
 * (evaluations, ranks that were lost, notes) is printed above them. Elsewhere never a carriage
 * return: one line at a change of state, at the end of an epoch (once a second) and every five
 * seconds. A scheduler that was started again knows no progress until a rank tells it: what was
 * shown last stays. The clock is an argument. */
#ifndef CLI_DISPLAY_H
#define CLI_DISPLAY_H

#include "cli/comeback.h"
#include "cli/progress.h"

#include <stdint.h>
#include <stdio.h>

struct cli_display {
    FILE *out;        /* borrowed */
    int live;         /* a terminal */
    size_t width;     /* of the terminal */
    const char *what; /* name of the evaluation's data (cli_eval_name), or NULL; borrowed */
    int lines;        /* drawn and to be erased */
    struct cli_eta eta;
    struct cli_comeback comeback;
    Ms__Progress progress; /* the last one; step 0: none yet */
    char phase[32];        /* its text */
    uint32_t evals_to;     /* epoch of the last evaluation printed */
    uint32_t epoch;        /* whose end was printed last */
    uint64_t step;         /* last one printed */
    double printed_s;
    char state[32];
    char reason[160];
};

void cli_display_init(struct cli_display *display, FILE *out, int live, size_t width,
                      const char *what);
void cli_display_update(struct cli_display *display, const Ms__JobInfo *job, double now_s);
/* A line that stays, without a newline in text. */
void cli_display_note(struct cli_display *display, const char *text);
/* Takes the drawn lines away: the next output starts on a clean line. */
void cli_display_end(struct cli_display *display);

#endif
