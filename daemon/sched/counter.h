/* counter.h - numbers that only grow: generations, job ids, ticks, events
 *
 * Each has a limit that is never reached: what would be numbered beyond it is refused in words, and
 * a database that holds the limit or more is refused at the start. So none ever begins again. */
#ifndef SCHED_COUNTER_H
#define SCHED_COUNTER_H

#include "proto/err.h"

#include <stdbool.h>
#include <stdint.h>

struct sched;

/* Writes may be missing: generations, ids and ticks go on far above what is loaded. MS_E_CONFIG
 * where that would pass a limit; none is changed then. */
int counters_skip(struct sched *s, struct ms_err *err);
bool generations_left(const struct sched *s); /* else nothing is placed any more */
bool job_ids_left(const struct sched *s);     /* else nothing is submitted any more */

#endif
