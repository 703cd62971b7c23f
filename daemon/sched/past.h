/* past.h - jobs that ended: how many are kept, whose go first
 *
 *     owner -> past -> bare:  oldest ... newer     their ranks are forgotten, or they had none
 *                      ended:        ... newest    begins with one whose ranks are kept
 *
 * There is room for so many jobs and so many ranks. Where it is used up, the owner who has the most
 * loses his oldest: nobody can submit and cancel the jobs of others out of it. */
#ifndef SCHED_PAST_H
#define SCHED_PAST_H

#include "proto/err.h"

struct job;
struct sched;

void pasts_init(struct sched *s);
/* It ended: it is history, and history has its limits. It may be gone afterwards. */
void job_keep(struct sched *s, struct job *job);
void past_trim(
    struct sched *s); /* drops what is too much, the rest in the next turn: DUE_HISTORY */
void pasts_fini(struct sched *s); /* jobs stay */
/* What owners have adds up to what is kept, oldest first. */
int pasts_check(const struct sched *s, struct ms_err *err);

#endif
