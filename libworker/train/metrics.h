/* metrics.h - metrics.jsonl and the loss lines of a rank's log
 *
 * metrics.jsonl: one JSON object a line. A step:
 *   {"t":1.5,"generation":1,"epoch":1,"step":1,"loss":2.3,"loss_hex":"0x1.2p+1","samples_per_s":10.0,
 *    "step_ms":3.1,"comm_wait_ms":0.2}
 * t: Unix seconds; epoch from 1; step: committed steps of the whole job, from 1; loss: mean over
 * ranks. An evaluation: {"epoch":1,"eval_loss":0.4,"accuracy":0.88}. The end: {"done":true,...}. A
 * line is one write(2); a torn last line of an earlier life is cut off when the file is opened. */
#ifndef METRICS_H
#define METRICS_H

#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

struct metrics; /* one open file */

struct metrics_step {
    uint64_t generation;
    int64_t epoch; /* 1-based */
    uint64_t step; /* 1-based, over all epochs */
    float loss;
    double samples_per_s, step_ms, comm_wait_ms;
};

struct metrics_done {
    uint64_t steps;
    const char *weights_sha256, *plan_sha256;
    double seconds;
};

/* Opens for appending and mends. Returns owned. */
int metrics_open(const char *path, struct metrics **ret, struct ms_err *err);
void metrics_close(struct metrics *metrics); /* NULL allowed */
int metrics_put_step(struct metrics *metrics, const struct metrics_step *step, struct ms_err *err);
int metrics_put_eval(struct metrics *metrics, int64_t epoch, double loss, double accuracy,
                     struct ms_err *err);
int metrics_put_done(struct metrics *metrics, const struct metrics_done *done, struct ms_err *err);

/* The shortest decimal text that reads back as the same float, as numpy (and so MindSpore) prints
 * it: "2.4686084", "1.0", "1e-05". buf of 32 bytes; returns buf. */
const char *metrics_format_loss(float loss, char *buf, size_t size);

#endif
