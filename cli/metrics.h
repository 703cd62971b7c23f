/* metrics.h - what metrics.jsonl of a run says, for the summary and the plot of losses */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include "proto/err.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_METRICS_MAX = 1000000 }; /* steps kept: 16 MB; a longer run shows its last million */

struct cli_metrics {
    size_t n; /* steps */
    double *loss;
    double *step_ms;
    /* of all steps, also of those that are not kept; no evaluations */
    size_t n_steps;
    uint64_t last_step; /* the highest; 0: none has a number */
    uint8_t *seen;      /* owned: bit n of byte m says that step 8 m + n has a line ... */
    size_t n_seen;      /* ... so many bytes; of steps behind them nothing is known */
    double samples, seconds;
    json_t *eval; /* owned: the last evaluation's line; NULL: there is none of 4 KiB at the most */
    /* what the training's end wrote as the last line; 0: it is not there */
    uint64_t done_steps;
    double done_seconds; /* of training, of a resumed one with those before */
};

/* Reads the steps of a file, its last evaluation and its last line; others (a torn one) are passed
 * over.
 * Free with cli_metrics_free. */
int cli_metrics_read(const char *path, struct cli_metrics *ret, struct ms_err *err);
/* How many steps of from (1 or more) to last_step have no line, and the first of them in *ret. */
uint64_t cli_metrics_lacks(const struct cli_metrics *metrics, uint64_t from, uint64_t *ret);
void cli_metrics_free(struct cli_metrics *metrics);

/* Median of n values (n > 0), which one slow first step does not move. Sorts a copy; NaN without
 * memory. */
double cli_median(const double *values, size_t n);

#endif
