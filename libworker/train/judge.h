/* judge.h - evaluations judge a training: it may end early, and the best weights are kept
 *
 * What was counted is a function of the evaluations' values, which all ranks have alike: it is part
 * of the state that ranks agree on, and of checkpoints. */
#ifndef TRAIN_JUDGE_H
#define TRAIN_JUDGE_H

#include "proto/err.h"

#include <stdint.h>

struct watch {     /* zero: nothing was counted */
    uint64_t seen; /* the step of the last evaluation that was counted */
    uint64_t step; /* ... of the best one; 0: there is none */
    double best;   /* its value */
    int64_t bad;   /* evaluations since then */
};

/* Counts the evaluation after that step, once, however often it is made. A value that is no number
 * is no better than any. */
void watch_count(struct watch *watch, int wants_more, double min_delta, uint64_t step,
                 double value);

struct record {         /* of best: what a process saw itself, however others judge */
    uint64_t since;     /* it counted all evaluations since it stood at that step */
    struct watch watch; /* them */
};

struct train;
/* Behind an evaluation: rank 0 keeps its weights where they are the best so far. Once more is as
 * good as once: so does who ends the training in its place, where these are the best of all for
 * certain, for who looks for them may find that rank's first. Fails with what keeps it from that,
 * after on_note has said it. */
int train_keep_best(struct train *train, struct ms_err *err);
/* After an evaluation, by all ranks: it is counted, and the above, but behind the last step: its
 * weights are to be saved first, and there may be room for one file. */
void train_judge(struct train *train);
/* Likewise of one that came with the state: early_stop has counted it. */
void train_judge_missed(struct train *train);
/* Where the last evaluation was the last that the job's patience allows, also while it is made
 * again for somebody: its step is the training's last. By all ranks once each stands where they
 * agreed to: what it goes by is part of that. */
void train_end_early(struct train *train);
/* Why it ended early, for people; "": it did not. */
void train_say_early(const struct train *train, char *buf, unsigned long size);

#endif
