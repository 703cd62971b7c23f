/* event.h - what happened: an append-only list that the database keeps
 *
 * One call wherever a state changes; the row is written with the change, in one transaction. */
#ifndef SCHED_EVENT_H
#define SCHED_EVENT_H

#include <stdint.h>

struct sched;

/* kind: a literal such as "job.started"; job 0 and node "": none. Nothing without a database, or
 * while its disk is full: what tells of a loss must not cause one. */
void event_record(struct sched *s, const char *kind, uint64_t job, const char *node,
                  const char *text);

#endif
