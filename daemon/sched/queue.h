/* queue.h - jobs that wait for nodes: who is next, and who cannot be next as the cluster stands
 *
 * Nobody overtakes within the queue (priority, then id), or a large job would never start. Only one
 * that needs more nodes than the cluster has steps aside until there are more. The queue believes
 * in more nodes at once, and in fewer only after a lease: a worker that restarts lets nobody pass.
 */
#ifndef SCHED_QUEUE_H
#define SCHED_QUEUE_H

#include "daemon/sched/heap.h"
#include "daemon/sched/timer.h"

#include <stdbool.h>
#include <stdint.h>

struct job;

struct queue {
    struct heap line;   /* the first one is next */
    struct heap aside;  /* jobs larger than n_nodes, the smallest first */
    uint32_t n_nodes;   /* that the cluster is believed to have */
    struct timer doubt; /* armed while the next job needs more than are there */
    struct timer late;  /* a lease after nodes for short_job were found to be too few */
    uint64_t short_job; /* the next one, where enough are idle and too few of them are for it */
};

void queue_init(struct sched *s);
void queue_fini(struct sched *s);
void queue_add(struct sched *s, struct job *job);
void queue_remove(struct sched *s, struct job *job);
uint32_t queue_n(const struct sched *s);
/* The job that is placed next, once enough nodes are idle; NULL: none. */
struct job *queue_next(struct sched *s);
struct job *queue_first(const struct sched *s); /* the same, without a look at the cluster's size */
void queue_nodes_changed(struct sched *s);      /* s->n_usable did */
void queue_doubt(struct sched *s, struct timer *timer);
/* May nodes for the next job, which are too few, be on their way? After a start of ours, or of
 * theirs: a lease is what it takes at the most. was_short: what short_job was until now. */
bool queue_may_grow(struct sched *s, const struct job *job, uint64_t was_short);
void queue_late(struct sched *s, struct timer *timer);
/* Why a QUEUED job waits. */
const char *queue_reason(struct sched *s, const struct job *job);

#endif
