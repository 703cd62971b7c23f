/* progress.h - what a job does right now, as lines for people; pure */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "proto/cluster.pb-c.h"

#include <stddef.h>
#include <stdint.h>

enum { CLI_LINE_MAX = 1024 };

/* How long it still takes, from the steps since the first sight of the job (evaluations and pauses
 * included), and from the worker's own step time before there is a second sight. Zeroed to begin.
 */
struct cli_eta {
    int seen;
    uint64_t first_step;
    double first_s;
    double seconds; /* the answer; negative: unknown */
};
void cli_eta_update(struct cli_eta *eta, const Ms__Progress *progress, double now_s);

/* The last committed step that its progress or one of its ranks tells of; 0: none. */
uint64_t cli_progress_step(const Ms__JobInfo *job);

/* Nothing is known but that the job waits: QUEUED, PLACING or RUNNING without a first step. */
int cli_progress_is_forming(const Ms__JobInfo *job);

/* It trained and has to wait: RECOVERING, or RUNNING with a reason, as after a restart of the
 * scheduler. */
int cli_progress_is_held(const Ms__JobInfo *job);

int cli_job_is_ended(const Ms__JobInfo *job);
int cli_job_has_rank_in(const Ms__JobInfo *job, const char *state); /* MS_RANK_STATE_... */

/* One line of at most width columns: epoch, step, bar, loss, samples/s, step time, ETA; while the
 * cluster forms its reason; while it has to wait how far it is, and for what. Where it is narrow,
 * first words get shorter, then the bar goes, then the end is cut. */
const char *cli_progress_line(char *dst, size_t size, size_t width, const Ms__JobInfo *job,
                              double eta_s);
/* "workers 8: 6 training, 2 preparing" */
const char *cli_progress_workers(char *dst, size_t size, size_t width, const Ms__JobInfo *job);
/* The same facts without a bar and without a limit, for logs. */
const char *cli_progress_plain(char *dst, size_t size, const Ms__JobInfo *job, double eta_s);
/* Likewise, where state and reason stand in lines of their own: no ETA. Of a job with progress. */
const char *cli_progress_show(char *dst, size_t size, const Ms__JobInfo *job);
/* "epoch 1: accuracy 88.8 % on the test set of shapes (cifar10 files), loss 0.41". what: of
 * cli_eval_name. */
const char *cli_progress_eval(char *dst, size_t size, const Ms__Progress *eval, const char *what);

/* What makes that evaluation look bad; it is at the end of the line above, too. NULL: nothing. */
enum { CLI_UNSETTLED_MAX = 160 };
const char *cli_progress_unsettled(char *dst, size_t size, const Ms__Progress *eval);

/* Accuracies are 0 to 1; a regression has none and says so with a negative number or NaN. */
int cli_has_accuracy(double accuracy);

#endif
