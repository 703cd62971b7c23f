/* event.h - what happened: an append-only list that the database keeps, and who asks for it
 *
 * One call wherever a state changes; the row is written with the change, in one transaction.
 *
 *     EventQuery -> follower -> askers ----------------------> answered, forgotten
 *                                 |  nothing newer: it waits   ^
 *                                 +-> followers -- event_record + event_settle
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

/* kind: a literal such as "job.started"; job 0 and node "": none. Nothing without a database, or
 * while its disk is full: what tells of a loss must not cause one. */
void event_record(struct sched *s, const char *kind, uint64_t job, const char *node,
                  const char *text);

void on_event_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void event_settle(struct sched *s); /* answers as many as a tick may */
void follower_drop(struct conn *conn);

#endif
