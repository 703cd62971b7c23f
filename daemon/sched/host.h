/* host.h - a machine: its nodes, what they say it has, and whether somebody drained it
 *
 * A host is known while it has a node or is drained. Nodes that report the same host id share it,
 * whatever name each of them uses; one that reports none (a member that the database names, and
 * that is not back yet) shares the host of its host name. */
#ifndef SCHED_HOST_H
#define SCHED_HOST_H

#include "daemon/sched/list.h"
#include "daemon/sched/table.h"
#include "proto/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct node;
struct sched;

struct host {
    struct table_link link;
    char key[MS_HOST_MAX + 2]; /* "#" and the id, or "@" and the name */
    char name[MS_HOST_MAX + 1];
    struct list nodes; /* struct node */
    bool drained;      /* its nodes keep their ranks and get no new ones */
    char drained_by[MS_PRINCIPAL_MAX + 1];
    char drained_why[MS_TEXT_MAX + 1];
    int64_t drained_ms; /* wall clock */
};

struct host *host_find(const struct sched *s, const char *host_id, const char *host_name);
void host_join(struct sched *s, struct node *node);  /* by what node->info says; may move it */
void host_leave(struct sched *s, struct node *node); /* the last one frees the host */
uint32_t host_cores(const struct host *host);        /* that its registered nodes may use */
void host_drain(struct sched *s, struct host *host, const char *by, const char *why);
void host_resume(struct sched *s, struct host *host);

#endif
