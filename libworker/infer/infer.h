/* infer.h - evaluation and predictions of a trained network: one process, no cluster
 *
 * job + weights (+ plan of the training) + data  ->  what an evaluation counts, or a row a sample
 *
 * The data are those that the job evaluates on, in their order and by its transforms without the
 * random ones. Each function blocks until it is done, on the calling thread and its team. */
#ifndef INFER_H
#define INFER_H

#include "libworker/infer/rows.h"
#include "libworker/job/job.h"

#include <stdio.h>

struct infer_config {
    const struct job *job; /* has_evaluate */
    const char *weights;   /* .safetensors, .ckpt or .onnx */
    const char *plan;      /* of the training, untrusted text; NULL: there is none */
    int has_no_labels;     /* nor have the data: predictions alone */
    const char *out_name;  /* of where predictions go, for errors; NULL: it has none */
    /* Rows that are done, of how many. NULL allowed. */
    void (*on_progress)(void *arg, int64_t rows, int64_t of);
    /* What is otherwise than one would expect, and what a program that delivers records says. NULL
     * allowed. */
    void (*on_note)(void *arg, const char *text);
    void *arg;
};

struct infer_evaluated {
    int64_t rows;
    double loss, accuracy; /* NaN: the loss has none */
    char *members;     /* of a JSON object, as in metrics.jsonl: "eval_loss" first; owned, free */
    int is_as_planned; /* by the plan of the training, with its bits */
};

/* What the evaluation of a training with these weights counts, to the bit where the plan is its
 * own: each rank's rows by themselves, and their sums by the tree of its ranks. Errors: of data and
 * weights MS_E_INVALID, MS_E_NOT_FOUND, MS_E_IO; MS_E_FULL: memory. */
int infer_evaluate(const struct infer_config *cfg, struct infer_evaluated *ret, struct ms_err *err);

/* A row a sample (of sequences, a token) on out, in the order of the data. wish: columns and names
 * are filled in here. MS_E_INVALID also: the job's loss has no such rows; MS_E_IO: out. */
int infer_predict(const struct infer_config *cfg, const struct rows_format *wish, FILE *out,
                  int64_t *ret_rows, struct ms_err *err);
/* MS_E_IO, by errno: out took not all of them. For who closes it. */
int infer_fail_out(const struct infer_config *cfg, struct ms_err *err);

#endif
