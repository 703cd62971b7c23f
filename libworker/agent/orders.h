/* orders.h - the queue between the agent's thread and the trainer */
#ifndef ORDERS_H
#define ORDERS_H

#include "libworker/agent/agent.h"

#include <pthread.h>

/* The scheduler sends at most Assign, Start and Stop a generation, and the next Assign when the
 * trainer still cleans up after the last one. An Assign has up to 8 MiB: two of them wait, no more.
 */
enum { ORDERS_MAX = 16, ORDERS_ASSIGNS_MAX = 2 };

struct orders {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct agent_order ring[ORDERS_MAX + 1]; /* one more for what is put back */
    unsigned first, count;
};

void orders_init(struct orders *orders);
void orders_fini(struct orders *orders); /* frees the assigns that nobody took */

/* Any thread. 0, or MS_E_FULL for an Assign that finds no room: it stays the caller's, who must
 * answer it. An Assign that waits is never dropped. What is said twice is kept once, and a flood of
 * others drops the oldest of them. */
int orders_push(struct orders *orders, const struct agent_order *order);
/* Puts the order that was taken last back in front. */
void orders_unget(struct orders *orders, const struct agent_order *order);
/* Waits up to timeout_ms (< 0: for ever). 1: *ret is the oldest; 0: none came. */
int orders_take(struct orders *orders, struct agent_order *ret, int64_t timeout_ms);

#endif
