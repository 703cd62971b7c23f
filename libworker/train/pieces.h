/* pieces.h - the flat buffers of a plan, cut where another bucket or another group of parameters
 * begins
 *
 * A piece is what the optimizer goes over at once: parameters that lie one behind the other, in one
 * bucket, for which the job says the same. Frozen ones are in none. */
#ifndef PIECES_H
#define PIECES_H

#include "libworker/job/job.h"
#include "libworker/plan/plan.h"

struct piece {
    int bucket;
    size_t begin, count;           /* elements of the weights */
    size_t in_bucket;              /* ... before it in what pieces_bucket says */
    const struct job_group *group; /* of the job; NULL: none */
};

struct pieces {
    int n;
    struct piece *items; /* in the order of the buffers */
};

/* Of a job, borrowed, with the plans of that spec. stats: elements before the gradients in the
 * exchange buffer. is_single: each parameter is a piece of its own. MS_E_NOMEM. */
int pieces_create(const struct job *job, const struct plan_spec *spec, size_t stats, int is_single,
                  struct pieces *ret, struct ms_err *err);
void pieces_fini(struct pieces *pieces);

/* The part of a bucket of gradients that has to be summed over ranks: from its first piece to its
 * last one. Without a piece it is empty, and begins where the bucket ends. */
struct plan_bucket pieces_bucket(const struct pieces *pieces, int bucket, struct plan_bucket whole,
                                 size_t stats);

/* Pieces from i on that follow each other without a gap in one bucket: as one, whose group is that
 * of the first. Returns the one behind them. */
int pieces_run(const struct pieces *pieces, int i, struct piece *ret);

#endif
