/* purse.h - what the jobs of each principal take while they wait or run, and how much they may
 *
 *     | places in the queue, bytes of descriptions: each owner a share of them | admins' floor |
 *
 * A plan that came with a job, or that rank 0 chose, is part of its description while its text is
 * in memory: until the job runs.
 *
 * Four can fill what is there, one cannot, and whatever users do, an admin's job still gets in. */
#ifndef SCHED_PURSE_H
#define SCHED_PURSE_H

#include "proto/err.h"
#include "proto/principal.h"

#include <stddef.h>

struct job;
struct sched;

/* NULL, or why one more job with so many bytes of description is one too many. */
const char *purse_refusal(struct sched *s, const struct ms_principal *who, size_t size);
/* The job counts against its owner's purse: from the day it is known to its end. */
void purse_add(struct sched *s, const struct job *job);
void purse_remove(struct sched *s, const struct job *job);
/* The text of its plan, too: from now on, or no longer. */
void purse_add_plan(struct sched *s, const struct job *job, size_t bytes);
void purse_remove_plan(struct sched *s, const struct job *job, size_t bytes);
void purses_fini(struct sched *s);
/* The purses add up to the jobs that wait or run. */
int purses_check(const struct sched *s, struct ms_err *err);

#endif
