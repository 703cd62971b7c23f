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
    return &orders->ring[(orders->first + i) % (ORDERS_MAX + 1)];
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

static void remove_at(struct orders *orders, unsigned i)
{
    for (; i + 1 < orders->count; i++) {
        *at(orders, i) = *at(orders, i + 1);
    }
    orders->count--;
}

/* Drops the oldest order that carries no Assign: with two of them at the most there is one. */
static void make_room(struct orders *orders)
{
    unsigned victim = 0;
    while (at(orders, victim)->assign != NULL) {
        victim++;
    }
    remove_at(orders, victim);
}

static unsigned count_assigns(struct orders *orders)
{
    unsigned n = 0;
    for (unsigned i = 0; i < orders->count; i++) {
        n += at(orders, i)->assign != NULL;
    }
    return n;
}

/* An order of the same kind about the same thing waits already: the newer words are kept. */
static int is_repeated(struct orders *orders, const struct agent_order *order)
{
    for (unsigned i = 0; i < orders->count; i++) {
        struct agent_order *old = at(orders, i);
        if (old->kind == order->kind && old->job == order->job &&
            old->generation == order->generation && old->at_step == order->at_step) {
            *old = *order;
            return 1;
        }
    }
    return 0;
}

int orders_push(struct orders *orders, const struct agent_order *order)
{
    int rc = 0;
    pthread_mutex_lock(&orders->lock);
    if (order->assign != NULL && count_assigns(orders) >= ORDERS_ASSIGNS_MAX) {
        rc = MS_E_FULL;
    } else if (order->assign != NULL || !is_repeated(orders, order)) {
        while (orders->count >= ORDERS_MAX) { /* one above, where an order was put back */
            make_room(orders);
        }
        *at(orders, orders->count) = *order;
        orders->count++;
        pthread_cond_signal(&orders->more);
    }
    pthread_mutex_unlock(&orders->lock);
    return rc;
}

void orders_unget(struct orders *orders, const struct agent_order *order)
{
    pthread_mutex_lock(&orders->lock);
    if (orders->count > ORDERS_MAX) { /* cannot be: one is put back at a time */
        make_room(orders);
    }
    orders->first = (orders->first + ORDERS_MAX) % (ORDERS_MAX + 1);
    orders->count++;
    *at(orders, 0) = *order;
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
        orders->first = (orders->first + 1) % (ORDERS_MAX + 1);
        orders->count--;
    }
    pthread_mutex_unlock(&orders->lock);
    return found;
}
