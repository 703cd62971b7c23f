/* spec.h - the descriptions of jobs: which are kept in memory
 *
 * A job that waits or runs has its description in memory; of one that has ended only the digest
 * stays there (a key that is used again is compared by it), the bytes are in the database. */
#ifndef SCHED_SPEC_H
#define SCHED_SPEC_H

#include "daemon/sched/sched.h"

#include <stdbool.h>

struct job;

/* Copies it and its digest into the job. MS_E_NOMEM. */
int spec_take(const struct sched *s, struct job *job, const struct sched_job_row *row);
/* Does it hold the words? In canonical JSON: no string of it can, its quotes are escaped. */
bool spec_says(const void *spec, size_t bytes, const char *words);
/* Is this the description that the job has? */
bool spec_is(const struct job *job, const uint8_t *bytes, size_t size);
/* The job has ended and is stored: in the database only. */
void spec_settle(struct sched *s, struct job *job);

#endif
