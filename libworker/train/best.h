/* best.h - the weights of the best evaluations of a training are kept, by rank 0 in its run
 * directory (best_files.h)
 *
 *     evaluation -> its place among those that are kept -> best-<step>.safetensors, durable
 *                -> best.safetensors leads to the best one -> what has no place any more goes
 *
 * What is kept, and how good it is, stands in the files alone: a kill at any moment leaves those
 * that were there, and at most one more; who is rank 0 after it looks at them, and takes away what
 * is beyond best.keep.
 *
 * A process that slept at any moment of this may wake up when another one has been rank 0 since, or
 * the job is over. Nobody can wait for it, so there is no lock. Each file has a name for the moment
 * first; whoever has named one so takes away those of all others, then looks at what lies there,
 * and only then renames its own, where it still has its place. Of two at once either the one sees
 * what the other has put there, or the rename finds nothing to rename, and is tried anew from the
 * beginning: the same holds for who slept. */
#ifndef TRAIN_BEST_H
#define TRAIN_BEST_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>

struct best_one {
    uint64_t step;
    double value;
};

struct best_list {
    int is_found;  /* what lay there was looked at */
    uint64_t seen; /* the step of the last evaluation that was judged */
    size_t n;      /* the best one first; of equal ones the one of the lower step */
    struct best_one
        ones[2 * MS_BEST_MAX + 2]; /* with those that lay there for a higher best.keep */
};

/* Takes it in at its place, which is returned; one of the same step goes for it. keep, or more: it
 * is none of so many, and is not taken in. */
size_t best_take(struct best_list *list, size_t keep, int wants_more, uint64_t step, double value);

struct train;
/* After an evaluation with that value, which is a number. What cannot be written is said (on_note),
 * and tried anew the next time. */
int best_keep(struct train *train, double value, struct ms_err *err);
/* Of an evaluation before this step whose weights could not be written, and that no kept one is as
 * good as: which, for people. 0: there is none. */
int best_say_unkept(const struct train *train, char *buf, size_t size);
/* Those of that step and value lie there as the best ones. */
int best_is_here(const struct train *train, uint64_t step, double value);

#endif
