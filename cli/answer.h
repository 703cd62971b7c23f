/* answer.h - msworker answers by trained weights: started, fed, heard, and its end known
 *
 *     msctl: job, weights, plan -> msworker --evaluate | --predict -> result
 *
 * One process on this host; no scheduler and no folder. Ctrl-C ends both. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "cli/cli.h"
#include "libworker/job/job.h"

#include <jansson.h>

enum { ANSWER_WORDS_MAX = 10 };

struct answer_ask {
    const struct job *job; /* has_evaluate */
    const char *weights;
    const char *plan; /* a file; NULL: none */
    const char *what; /* "evaluated", "predicted": of samples, for progress; NULL: none is shown */
    const char *mode; /* "--evaluate" */
    const char *const *more; /* its words; NULL-terminated, at most ANSWER_WORDS_MAX */
    int to;                  /* descriptor for predictions, its --to; -1: none */
};

/* Progress and notes go to cli->err. *ret: what it answered; owned. Errors: those of the worker;
 * MS_E_FAILED where it died. */
int answer_run(struct cli *cli, const struct answer_ask *ask, json_t **ret, struct ms_err *err);

#endif
