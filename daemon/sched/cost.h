/* cost.h - what a change of the database takes of the disk, known before it is written
 *
 * The scheduler counts what a turn decides, so that one transaction never takes more than the
 * reserve of the database has room for (limits.h, "Disk"). */
#ifndef SCHED_COST_H
#define SCHED_COST_H

#include "daemon/sched/sched.h"

/* Bytes of the log of writes that a durable effect takes at most, and of the database at most as
 * many again once the log is folded in; 0 for others. Of members it is what one takes among others
 * of its job: the first of them takes MS_STORE_PAGE more. */
size_t sched_effect_cost(const struct sched_effect *effect);

#endif
