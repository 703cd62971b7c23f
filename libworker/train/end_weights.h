/* end_weights.h - weights.safetensors in a run directory: of a job's steps the latest stays
 *
 * Ranks of one job may have one folder, as in a dynamic cluster, under `msctl run` and on a shared
 * disk; when it is stopped they may stand a step apart, and several of them may save. The file of a
 * job that was stopped says whose it is (metadata job_tag) and of which step. Two runs of one job
 * that came to their end leave the same file, which does not: whose that is the line of the end
 * says in the metrics.jsonl beside it. What another job left there is replaced, and so is what
 * cannot be read. A job that goes on from an earlier step saves here no more than its end; one that
 * is resumed is another job, with another tag. */
#ifndef END_WEIGHTS_H
#define END_WEIGHTS_H

#include "libworker/train/model_copy.h"

struct end_weights {
    const char *path;     /* borrowed for its life */
    const char *job_tag;  /* likewise; "": nobody knows whose they are, and all are replaced */
    const char *training; /* likewise; of its lines in metrics.jsonl */
    int is_plain;         /* its end, as each run of the job leaves it: without the tag */
    int lock_fd;          /* -1: not held */
};

void end_weights_init(struct end_weights *place, const char *path, const char *job_tag,
                      const char *training, int is_plain);
void end_weights_fini(struct end_weights *place); /* lets the lock go */

/* Until end_weights_fini no other process of the job saves there, so that what is said of the file
 * elsewhere can be said of the same one. Where there are no locks, or one that is asleep has it for
 * 10 s, two that come to their rename in the same moment may do it in either order.
 * ret_later: 0: path leads to these; else those of that later step of the job lie there, durable
 * too, and stay. */
int end_weights_save(struct end_weights *place, const struct model_copy *copy, uint64_t *ret_later,
                     struct ms_err *err);

#endif
