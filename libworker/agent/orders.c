/* orders.c - the queue between the agent's thread and the trainer */
#include "libworker/agent/orders.h"

#include "proto/wire.h"

#include <errno.h>
#include <time.h>

void orders_init(struct orders *orders)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&orders->more, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&orders->lock, NULL);
    orders->first = 0;
    orders->count = 0;
}

static struct agent_order *at(struct orders *orders, unsigned i)
{
    return &orders->ring[(orders->first + i) % ORDERS_MAX];
}

void orders_fini(struct orders *orders)
{
    for (unsigned i = 0; i < orders->count; i++) {
        if (at(orders, i)->assign != NULL) {
            ms_wire_free(&at(orders, i)->assign->base);
        }
    }
    pthread_mutex_destroy(&orders->lock);
    pthread_cond_destroy(&orders->more);
}

static void make_room(struct orders *orders)
{
    unsigned victim = 0;
    while (victim + 1 < orders->count && at(orders, victim)->assign != NULL) {
        victim++;
    }
    if (at(orders, victim)->assign != NULL) {
        ms_wire_free(&at(orders, victim)->assign->base);
    }
    for (unsigned i = victim; i + 1 < orders->count; i++) {
        *at(orders, i) = *at(orders, i + 1);
    }
    orders->count--;
}

void orders_push(struct orders *orders, const struct agent_order *order)
{
    pthread_mutex_lock(&orders->lock);
    if (orders->count == ORDERS_MAX) {
        make_room(orders);
    }
    *at(orders, orders->count) = *order;
    orders->count++;
    pthread_cond_signal(&orders->more);
    pthread_mutex_unlock(&orders->lock);
}

int orders_take(struct orders *orders, struct agent_order *ret, int64_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (timeout_ms > 0) {
        until.tv_sec += (time_t)(timeout_ms / 1000);
        until.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
    }
    pthread_mutex_lock(&orders->lock);
    int rc = 0;
    while (orders->count == 0 && rc != ETIMEDOUT) {
        rc = timeout_ms < 0 ? pthread_cond_wait(&orders->more, &orders->lock)
                            : pthread_cond_timedwait(&orders->more, &orders->lock, &until);
    }
    int found = orders->count > 0;
    if (found) {
        *ret = *at(orders, 0);
        orders->first = (orders->first + 1) % ORDERS_MAX;
        orders->count--;
    }
    pthread_mutex_unlock(&orders->lock);
    return found;
}
