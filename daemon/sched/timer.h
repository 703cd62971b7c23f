/* timer.h - the core's deadlines: one heap of timers that live inside what they end
 *
 * A timer says only when; whether its owner waits for something is the owner's own to know. */
#ifndef SCHED_TIMER_H
#define SCHED_TIMER_H

#include "daemon/sched/heap.h"

#include <stdbool.h>
#include <stdint.h>

struct sched;

enum timer_kind {
    TIMER_TOPOLOGY,    /* dynamic cluster: workers are missing */
    TIMER_ENDING,      /* dynamic cluster: members still have to leave */
    TIMER_DOUBT,       /* struct queue: the next job needs more nodes than are there */
    TIMER_LATE,        /* struct queue: nodes that know the next job's plan may come back */
    TIMER_STOP_ANSWER, /* struct hold: it has to let go */
    TIMER_NEWS,        /* watchers of waiting jobs */
    TIMER_FORGET,      /* struct node: lost an hour ago */
    TIMER_REST,        /* struct node: it was short of memory or descriptors */
    TIMER_PROBE,       /* struct newcomer */
    TIMER_READY,       /* struct run: ranks have to get ready */
    TIMER_ADOPT,       /* struct run: nodes have to come back */
    TIMER_GRACE,       /* struct run: ranks have to finish their step */
    TIMER_BACK,        /* struct run: ranks that are lost may come back to stop */
    TIMER_ROUND,       /* struct run: the next round may begin, or others have the idle nodes */
    TIMER_UNFIT,       /* struct run: who could not serve a rank may be asked again */
    TIMER_COMPLAINT,   /* struct run: a rank complained about another */
    TIMER_SAVE,        /* struct run: who was asked to save the weights has not said that it has */
    TIMER_SAVE_AGAIN,  /* struct run: no rank could save the weights, and all try again */
    TIMER_TARDY,       /* struct run: some ranks do not end, and others have */
    TIMER_HANG,        /* struct run: some ranks do not get through their round */
    TIMER_EVALS,       /* struct run: evaluations, or ends of ranks, have to be stored */
    TIMER_ROUTE,       /* struct route */
    TIMER_PAUSE,       /* struct host: it lost a node while a job got ready */
    TIMER_ASIDE,       /* struct host: it lost two ranks within an hour */
    TIMER_ASIDE_ROW,   /* struct host: the row of that had no room */
    TIMER_KINDS
};

struct timer {
    struct heap_link link;
    int64_t at_ms;
    enum timer_kind kind;
};

void timers_init(struct sched *s);
void timer_arm(struct sched *s, struct timer *timer, enum timer_kind kind, int64_t at_ms);
void timer_stop(struct sched *s, struct timer *timer); /* one that is not armed: nothing happens */
bool timer_is_armed(const struct timer *timer);
void timers_fire(struct sched *s);
/* Whoever waits for somebody who may have stood still with us waits longer. */
void timers_stretch(struct sched *s, int64_t ms);
int64_t timers_next(const struct sched *s);                /* INT64_MAX: none */
int64_t after_ms(const struct sched *s, int64_t delay_ms); /* now + delay, INT64_MAX at the most */

#endif
