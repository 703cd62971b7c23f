/* event.h - what happened: an append-only list that the database keeps, and who asks for it
 *
 * One call wherever a state changes; the row is written with the change, in one transaction.
 *
 *     EventQuery -> follower -> askers ----------------------> answered, forgotten
 *                                 |  nothing newer: it waits   ^
 *                                 +-> followers -- event_of_... + event_settle
 *
 * An answer is a READ: the rows come from the database after the commit, so nobody hears of an
 * event that a power cut can undo. */
#ifndef SCHED_EVENT_H
#define SCHED_EVENT_H

#include "daemon/sched/list.h"
#include "proto/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct job;
struct node;
struct sched;
struct sched_event;

/* A question without an answer yet; one a connection. Owned by it. */
struct follower {
    struct list link; /* in sched.askers or sched.followers */
    struct conn *conn;
    uint32_t frame_id;
    uint64_t after, before, job;
    char node_id[MS_NAME_MAX + 1];
    uint32_t limit;
    bool wait;
};

/* kind: a literal such as "job.started"; facts: from facts_end, or "". Nothing without a database,
 * or while its disk is full: what tells of a loss must not cause one. An event counts against who
 * provoked it (kept.h): a job's against its owner, a node's against who registered it. */
void event_of_job(struct sched *s, const char *kind, const struct job *job, const char *text,
                  const char *facts);
void event_of_node(struct sched *s, const char *kind, const struct node *node, const char *text,
                   const char *facts);
/* Of no job and no node. author: the principal who provoked it; "" the scheduler. */
void event_of_all(struct sched *s, const char *kind, const char *author, const char *text,
                  const char *facts);
/* {"<key>":<value>} */
const char *event_number(struct sched *s, const char *key, uint64_t value);

void on_event_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void event_settle(struct sched *s); /* answers as many as a tick may */
void follower_drop(struct conn *conn);

#endif
