/* timer.h - the core's deadlines: one heap of timers that live inside what they end */
#ifndef SCHED_TIMER_H
#define SCHED_TIMER_H

#include "daemon/sched/heap.h"

#include <stdbool.h>
#include <stdint.h>

struct sched;

enum timer_kind {
    TIMER_TOPOLOGY, /* dynamic cluster: workers are missing */
    TIMER_ENDING,   /* dynamic cluster: members still have to leave */
    TIMER_START,    /* what loading left to write */
    TIMER_NEWS,     /* watchers of waiting jobs */
    TIMER_FORGET,   /* struct node: lost an hour ago */
    TIMER_PROBE,    /* struct newcomer */
    TIMER_ADOPT,    /* struct run: nodes have to come back */
    TIMER_GRACE,    /* struct run: ranks have to finish their step */
    TIMER_BLAME,    /* struct run: a rank complained about another */
    TIMER_ROUTE,    /* struct route */
    TIMER_KINDS
};

struct timer {
    struct heap_link link;
    int64_t at_ms;
    enum timer_kind kind;
};

void timer_arm(struct sched *s, struct timer *timer, enum timer_kind kind, int64_t at_ms);
void timer_stop(struct sched *s, struct timer *timer);
int64_t after_ms(const struct sched *s, int64_t delay_ms); /* now + delay, INT64_MAX at the most */

#endif
