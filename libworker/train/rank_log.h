/* rank_log.h - the loss lines of a rank's log, each once, whatever was killed
 *
 *     training 3f2a9c0d1b22: rank 1 of 4
 *     epoch: 1 step: 1, loss is 2.4686084
 *     Train epoch time: 1893.120 ms, per step time: 1.010 ms
 *
 * The second is MindSpore's LossMonitor's, the third its TimeMonitor's, where the job wants that:
 * it stands behind the line of its epoch's last step and comes with it, so that it is there once,
 * too. The first stands before those of one training, which is a job with its plan: behind the last
 * such line that names this training its steps are known, and are not printed again. Where none
 * does (another job, another plan, no log yet) all are, behind a line of ours. So it is where the
 * log is a regular file that this process may read; else, and without a training's name, all is
 * printed and no first line.
 *
 * A log that is the rank's own file, with lines of this training, was another process's: it is made
 * anew of them, as metrics.jsonl is, so that one that was only asleep writes into nothing.
 *
 * What cannot be written, as on a full disk, waits, MS_RANK_LOG_WAITING bytes of it, and goes
 * before the next line that can; no line is torn. */
#ifndef TRAIN_RANK_LOG_H
#define TRAIN_RANK_LOG_H

#include "libworker/train/metrics.h"
#include "proto/line_out.h"

#include <stdint.h>

/* Which lines of steps there are: the job's key print. */
struct rank_log_rule {
    int64_t loss_every; /* the loss of each so many-th step; 0: of none */
    int epochs;         /* ... and of the last one of each epoch */
    int time;           /* ... with how long the epoch took behind it */
};

enum { RANK_LOG_LINE_MAX = 512 }; /* a line of a program: its name and 320 bytes */

struct rank_log {
    struct ms_line_out out; /* its file is borrowed; -1: none */
    const char *path;       /* of it, borrowed; NULL: somebody else's */
    int rank;
    int64_t steps_per_epoch;
    uint64_t last; /* step of the last line, or one behind it that has none */
    struct rank_log_rule rule;
    uint64_t timed;  /* step of the last rank_log_took */
    double epoch_ms; /* of the steps of its epoch that this process made */
    int64_t n_timed; /* ... how many */
};

/* Looks at what is there; drops a torn last line. path: of the rank's own file, which fd is from
 * now on wherever it is used, borrowed until the close; NULL: fd is somebody else's, too. */
void rank_log_open(struct rank_log *log, int fd, const char *path, const char *training, int rank,
                   int world, int64_t steps_per_epoch);
void rank_log_close(struct rank_log *log); /* fd stays open */
/* From now on; until then each step has a line. */
void rank_log_set_rule(struct rank_log *log, const struct rank_log_rule *rule);
/* Does each step have a line? */
int rank_log_is_full(const struct rank_log *log);
/* Before rank_log_step: how long the step took. */
void rank_log_took(struct rank_log *log, uint64_t step, double ms);
/* One step, from 1, unless it is there; loss: the rank's own. Before the step can be committed: who
 * takes the place of a rank that died cannot know it. MS_E_IO: it waits, with those before it,
 * which does not stop the training. */
int rank_log_step(struct rank_log *log, uint64_t step, float loss, struct ms_err *err);
/* Another line, with its newline, likewise: of RANK_LOG_LINE_MAX bytes at most, the rest is left
 * out.
 */
void rank_log_say(struct rank_log *log, const char *fmt, ...) MS_PRINTF(2, 3);
/* MS_E_IO: some wait still. */
int rank_log_flush(struct rank_log *log, struct ms_err *err);
/* Lines for which there was no room even in memory. */
uint64_t rank_log_lost(const struct rank_log *log);

#endif
