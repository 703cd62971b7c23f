/* kept.h - which events are kept: so many, and whose go first
 *
 *     of jobs:  author -> numbers of his events, the oldest first     the owner of the job
 *     others:   author -> ...                                         who registered the node
 *
 * Where there are too many, first the larger of the two loses, in it the author who has the most,
 * and he his oldest: users cannot push out what happened to nodes, nor workers what happened to
 * jobs, and neither what happened to somebody who has less than they. */
#ifndef SCHED_KEPT_H
#define SCHED_KEPT_H

#include "proto/err.h"

#include <stdbool.h>
#include <stdint.h>

struct sched;

void kept_init(struct sched *s);
/* seq: above all numbers before. */
void kept_add(struct sched *s, uint64_t seq, bool of_job, const char *author);
void kept_loaded(struct sched *s); /* at the end of loading */
void kept_trim(struct sched *s);   /* drops what is too much, the rest in the next turn */
void kept_fini(struct sched *s);
/* What authors have adds up to what is kept. */
int kept_check(const struct sched *s, struct ms_err *err);

#endif
