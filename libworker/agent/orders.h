/* orders.h - the queue between the agent's thread and the trainer */
#ifndef ORDERS_H
#define ORDERS_H

#include "libworker/agent/agent.h"

#include <pthread.h>

enum { ORDERS_MAX = 16 }; /* the scheduler sends at most Assign, Start, Stop a generation */

struct orders {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct agent_order ring[ORDERS_MAX];
    unsigned first, count;
};

void orders_init(struct orders *orders);
void orders_fini(struct orders *orders); /* frees the assigns that nobody took */

/* Any thread. A full queue drops the oldest order that carries no Assign. */
void orders_push(struct orders *orders, const struct agent_order *order);
/* Waits up to timeout_ms (< 0: for ever). 1: *ret is the oldest; 0: none came. */
int orders_take(struct orders *orders, struct agent_order *ret, int64_t timeout_ms);

#endif
