/* host.h - a machine: its nodes, what they say it has, and whether somebody drained it
 *
 * A host is known while it has a node, is drained or set aside. Where a node id has to begin with
 * the name of its certificate, a host is what one certificate registers: that is proven, and what a
 * node says of its host is not, so that nobody gets another's host paused. Else nodes that report
 * the same host id share it, whatever name each of them uses; one that reports none (a member that
 * the database names, and that is not back yet) shares the host of its host name.
 *
 * A host that loses a node with a rank that gets ready is paused: when a machine dies its nodes are
 * lost one by one, and the next one of them would cost the job its next try. */
#ifndef SCHED_HOST_H
#define SCHED_HOST_H

#include "daemon/sched/list.h"
#include "daemon/sched/table.h"
#include "daemon/sched/timer.h"
#include "proto/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { MS_HOST_CROWD = 8 }; /* nodes a core: with more, one may wait a lease for its turn */

struct claim;
struct job;
struct node;
struct sched;

enum { HOST_KEY_MAX = MS_HOST_KEY_MAX + 1 };

struct host_loss {  /* of a process with a rank that trained */
    uint64_t whose; /* its process, with that rank; 0: before the scheduler's restart */
    int64_t ms;
    char *why; /* owned */
};

struct host {
    struct table_link link;
    char key[HOST_KEY_MAX]; /* "=" and the principal, "#" and the id, or "@" and the name */
    char name[MS_HOST_MAX + 1];
    struct list nodes; /* struct node */
    bool drained;      /* its nodes keep their ranks and get no new ones */
    char drained_by[MS_PRINCIPAL_MAX + 1];
    char drained_why[MS_TEXT_MAX + 1];
    int64_t drained_ms; /* wall clock */
    bool paused;        /* its nodes get no rank for a while */
    uint32_t n_vain;    /* pauses since a job last started on it */
    struct timer pause;
    /* set aside: others take lost ranks and new jobs as long as there are others */
    struct host_loss losses[MS_HOST_LOSSES]; /* the oldest first */
    uint32_t n_losses;
    bool is_aside; /* until the timer says otherwise; durable */
    struct timer aside;
    struct timer unstored; /* the database says otherwise: it had no room */
};

struct host *host_find(const struct sched *s, const struct node *node); /* by what its info says */
/* Whose certificate registers it; "": it is what its nodes say. */
const char *host_principal(const struct host *host);
void host_join(struct sched *s, struct node *node);  /* by what node->info says; may move it */
void host_leave(struct sched *s, struct node *node); /* the last one frees the host */
void host_free(struct host *host);
uint32_t host_cores(const struct host *host); /* that its registered nodes may use */
bool host_is_crowded(const struct host *host, uint32_t cores); /* MS_HOST_CROWD nodes a core */
void host_drain(struct sched *s, struct host *host, const char *by, const char *why);
void host_resume(struct sched *s, struct host *host);
void host_pause(struct sched *s, struct host *host, const char *text); /* twice as long each time */
/* The process of that rank was lost there; the second time within an hour it is set aside. */
void host_blame(struct sched *s, struct host *host, const struct job *job, uint32_t rank,
                const char *text);
/* The node's process is there and claims the rank with which it was lost: it was only away, whoever
 * has the rank by now. Lost on another host, or forgotten since: nothing. */
void host_excuse(struct sched *s, const struct node *node, const struct claim *claim);
bool host_is_aside(const struct host *host); /* NULL: no */
const char *host_aside_why(const struct host *host);
int64_t host_aside_end_ms(const struct host *host);                /* mono; of one that is */
void host_aside_timeout(struct sched *s, struct timer *timer);     /* TIMER_ASIDE */
void host_aside_row_timeout(struct sched *s, struct timer *timer); /* TIMER_ASIDE_ROW */
void host_works(struct host *host);                                /* a job started on it */
/* Could a job of so many ranks be placed on others, which have lost nothing in vain? */
bool host_others_work(const struct sched *s, const struct host *host, uint32_t workers);
void host_timeout(struct sched *s, struct timer *timer); /* TIMER_PAUSE */

#endif
