/* metrics.h - metrics.jsonl: what a job's rank 0 measured, each step once, whatever was killed
 *
 * One JSON object a line. A step:
 *   {"t":1.5,"training":"3f2a9c0d1b22","generation":1,"epoch":1,"step":1,"loss":2.3,
 *    "loss_hex":"0x1.2p+1","learning_rate":0.1,"samples_per_s":10.0,"step_ms":3.1,"comm_wait_ms":0.2}
 * t: Unix seconds; training: a name of the job with its plan, not there where it has none; epoch
 * from 1; step: committed steps of the whole job, from 1; loss: mean over ranks; learning_rate:
 * that of the step, of jobs with a schedule; the last three are 0 where the process that took the
 * step did not live to tell. An evaluation:
 * {"epoch":1,"eval_loss":0.4,"accuracy":0.88}, and what scores.h adds. The end: {"done":true,...}.
 * A line is one write(2); a torn last line of an earlier life is dropped when the file is opened.
 * What cannot be written, as on a full disk, waits, MS_METRICS_PENDING bytes of it, and goes before
 * the next line that can.
 *
 * Lines at the end of the file that are of the same training were written by a process before this
 * one: the file is made anew of them, so that a process that was only asleep writes into nothing,
 * and what they tell is not told again. What else is there stays: another training's lines come
 * behind it. */
#ifndef METRICS_H
#define METRICS_H

#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

struct metrics; /* one open file */

#define METRICS_FILE "metrics.jsonl" /* in a run directory */

enum { METRICS_TRAINING_MAX = 12 }; /* bytes of a training's name */

struct metrics_step {
    uint64_t generation;
    int64_t epoch; /* 1-based */
    uint64_t step; /* 1-based, over all epochs */
    float loss;
    int has_learning_rate;
    float learning_rate;
    double samples_per_s, step_ms, comm_wait_ms;
};

struct metrics_eval {
    int64_t epoch;
    uint64_t step; /* after which it was made */
    double loss, accuracy;
    const char *more; /* members behind these, each with a comma before it; NULL: none */
};

struct metrics_done {
    uint64_t steps;
    int has_eval; /* of the last one */
    const char *weights_sha256, *plan_sha256;
    double seconds;
};

/* Opens for appending and mends. training: hexadecimal, "": none. Returns owned. */
int metrics_open(const char *path, const char *training, struct metrics **ret, struct ms_err *err);
void metrics_close(struct metrics *metrics); /* NULL allowed */
/* Of the last line of a step, one that waits too; 0: none is this training's. */
uint64_t metrics_last_step(const struct metrics *metrics);
/* Lines for which there was no room even in memory. */
uint64_t metrics_lost(const struct metrics *metrics);
/* The first step whose line waits; 0: none does. */
uint64_t metrics_missing(const struct metrics *metrics);
/* MS_E_IO: some wait still. */
int metrics_flush(struct metrics *metrics, struct ms_err *err);
/* MS_E_IO of these three: it waits, with those before it. */
int metrics_put_step(struct metrics *metrics, const struct metrics_step *step, struct ms_err *err);
int metrics_put_eval(struct metrics *metrics, const struct metrics_eval *eval, struct ms_err *err);
/* Once, also where another process has added it: metrics_add_done. In the place of one of an
 * earlier step that the file ends with, and not behind one of a later step: the weights of the
 * latest step stay. */
int metrics_put_done(struct metrics *metrics, const struct metrics_done *done, struct ms_err *err);

/* Members of such a line, "eval_loss" first; owned, NULL without memory. */
char *metrics_format_eval(const struct metrics_eval *eval);

/* Of who ends the training in the place of rank 0, and in its folder: that line into its file,
 * which is left as it is where it is not there, does not come to that step or to its evaluation, so
 * that lines may come behind this one, or has the line already. One that ends with a step before it
 * has been told to its end: the line takes that one's place. */
int metrics_add_done(const char *path, const char *training, const struct metrics_done *done,
                     struct ms_err *err);

/* Of how many steps the end is with which the file ends, if that is this training's; else 0. */
uint64_t metrics_end_at(const char *path, const char *training);

/* The shortest decimal text that reads back as the same float, as numpy (and so MindSpore) prints
 * it: "2.4686084", "1.0", "1e-05". buf of 32 bytes; returns buf. */
const char *metrics_format_loss(float loss, char *buf, size_t size);

#endif
