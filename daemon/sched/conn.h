/* conn.h - connections: who is at the other end, and whose turn a message is */
#ifndef SCHED_CONN_H
#define SCHED_CONN_H

#include "daemon/sched/list.h"
#include "daemon/sched/sched.h"
#include "daemon/sched/table.h"

#include <stdbool.h>

struct follower;
struct newcomer;
struct node;

struct conn {
    struct table_link link;
    uint64_t id;
    struct ms_peer peer;
    struct node *node;         /* registered over this connection */
    struct newcomer *newcomer; /* its Register waits for another process's sign of life */
    struct follower *follower; /* its EventQuery has no answer yet */
    struct list watches;
    struct list muted; /* watches that wait until it has read more */
    struct list waits; /* struct waiter: cancels whose end it waits for */
    uint32_t n_watches;
    bool is_clogged;
};

struct conn *conn_find(const struct sched *s, uint64_t id);
void conn_opened(struct sched *s, const struct sched_event *event);
void conn_closed(struct sched *s, struct conn *conn, const char *reason);
void conn_message(struct sched *s, struct conn *conn, const struct sched_event *event);
/* Closes from this side and forgets it; a node on it must be detached already. */
void conn_drop(struct sched *s, struct conn *conn);

#endif
