/* mode.h - what differs between a standing cluster, a dynamic one and that of `msctl run`
 *
 * The rest of the core asks the table and never which mode it is. */
#ifndef SCHED_MODE_H
#define SCHED_MODE_H

#include "daemon/sched/sched.h"

#include <stdbool.h>

struct claim;
struct job;
struct node;
struct node_info;

struct mode {
    const char *name;         /* StatusInfo */
    const char *no_submit;    /* NULL, or why clients cannot submit jobs */
    bool names_run_dir;       /* a submit does name the run directory; else none may */
    bool requeues_on_restart; /* of jobs whose ranks were getting ready; else they go on */
    bool places_anew;         /* other nodes may come for a job that lost one before it started */
    bool sees_ends;           /* of workers, as who started them does: none comes back unseen */
    bool by_hand;             /* people and scripts start processes: beside one that lives, too */
    const char *takers;       /* who may take a lost rank: "start its worker again" */
    bool ids_are_ranks;       /* numeric node ids are ranks, where they can be */
    bool orders_by_address;   /* hosts; else by name */
    uint32_t (*expected)(const struct sched *s); /* nodes; 0: no certain number */
    void (*start)(struct sched *s);
    int (*load)(struct sched *s, struct ms_err *err); /* what the loaded jobs mean for it */
    /* NULL, or why this worker is refused. */
    const char *(*refusal)(struct sched *s, const struct node_info *info, const Ms__Register *msg,
                           int *ret_code);
    /* NULL, or why a rank that it claims, of a job that nobody here knows, is not ours to end. */
    const char *(*lets_be)(struct sched *s, const Ms__Register *msg);
    void (*registered)(struct sched *s, const struct node_info *info, const Ms__Register *msg);
    void (*settle)(struct sched *s); /* at the end of each event */
    void (*job_ended)(struct sched *s,
                      const struct job *job); /* its ranks have yet to hear of it */
    /* A worker came back for a job whose end is stored already; a process has left for good. */
    void (*found_ended)(struct sched *s, const struct job *job, struct node *node,
                        const struct claim *claim);
    void (*left)(struct sched *s, const struct node *node);
    const char *(*waiting_for)(struct sched *s); /* "" nobody */
    int (*check)(const struct sched *s, struct ms_err *err);
};

extern const struct mode modes[]; /* by enum sched_mode */

#endif
