/* timer.c - what each kind of deadline does, and the heap that they wait in */
#include "daemon/sched/state.h"

#include <stdlib.h>

static void forget(struct sched *s, struct timer *timer)
{
    node_forget(s, list_item(timer, struct node, forget));
}

static void rest(struct sched *s, struct timer *timer)
{
    node_rested(s, list_item(timer, struct node, rest));
}

static void probe(struct sched *s, struct timer *timer)
{
    newcomer_timeout(s, list_item(timer, struct newcomer, timer));
}

static void ready(struct sched *s, struct timer *timer)
{
    ready_timeout(s, list_item(timer, struct run, ready));
}

static void adopt(struct sched *s, struct timer *timer)
{
    run_adopt_timeout(s, list_item(timer, struct run, adopt));
}

static void grace(struct sched *s, struct timer *timer)
{
    run_grace_timeout(s, list_item(timer, struct run, grace));
}

static void back(struct sched *s, struct timer *timer)
{
    stop_back_timeout(s, list_item(timer, struct run, back));
}

static void complaint(struct sched *s, struct timer *timer)
{
    run_complaint_timeout(s, list_item(timer, struct run, complaint.timer));
}

static void unfit(struct sched *s, struct timer *timer)
{
    recover_ask_again(s, list_item(timer, struct run, unfit_timer));
}

static void next_round(struct sched *s, struct timer *timer)
{
    recover_round_timeout(s, list_item(timer, struct run, round));
}

static void save(struct sched *s, struct timer *timer)
{
    save_timeout(s, list_item(timer, struct run, save_again));
}

static void tardy(struct sched *s, struct timer *timer)
{
    save_tardy_timeout(s, list_item(timer, struct run, tardy));
}

static void hang(struct sched *s, struct timer *timer)
{
    calloff_round_timeout(s, list_item(timer, struct run, hang));
}

static void evals(struct sched *s, struct timer *timer)
{
    results_store(s, list_item(timer, struct run, evals_due));
}

static void route(struct sched *s, struct timer *timer)
{
    route_timeout(s, list_item(timer, struct route, timer));
}

static const struct {
    void (*fire)(struct sched *s, struct timer *timer);
    bool stretches; /* waits for somebody who may have stood still with us */
} kinds[TIMER_KINDS] = {
    [TIMER_TOPOLOGY] = {dynamic_timeout, false},
    [TIMER_ENDING] = {dynamic_say_who_stays, true},
    [TIMER_DOUBT] = {queue_doubt, true},
    [TIMER_LATE] = {queue_late, true},
    [TIMER_STOP_ANSWER] = {hold_overdue, true},
    [TIMER_NEWS] = {watch_tell_news, false},
    [TIMER_FORGET] = {forget, false},
    [TIMER_REST] = {rest, false},
    [TIMER_PROBE] = {probe, true},
    [TIMER_READY] = {ready, true},
    [TIMER_ADOPT] = {adopt, true},
    [TIMER_GRACE] = {grace, true},
    [TIMER_BACK] = {back, true},
    [TIMER_ROUND] = {next_round, false},
    [TIMER_UNFIT] = {unfit, false},
    [TIMER_COMPLAINT] = {complaint, true},
    [TIMER_SAVE] = {save, true},
    [TIMER_SAVE_AGAIN] = {save, false},
    [TIMER_TARDY] = {tardy, true},
    [TIMER_HANG] = {hang, true},
    [TIMER_EVALS] = {evals, false},
    [TIMER_ROUTE] = {route, true},
    [TIMER_PAUSE] = {host_timeout, false},
    [TIMER_ASIDE] = {host_aside_timeout, false},
    [TIMER_ASIDE_ROW] = {host_aside_row_timeout, false},
};

static int timer_before(const struct heap_link *a, const struct heap_link *b)
{
    return list_item(a, struct timer, link)->at_ms < list_item(b, struct timer, link)->at_ms;
}

void timers_init(struct sched *s)
{
    heap_init(&s->timers, timer_before);
}

void timer_arm(struct sched *s, struct timer *timer, enum timer_kind kind, int64_t at_ms)
{
    heap_remove(&s->timers, &timer->link);
    timer->kind = kind;
    timer->at_ms = at_ms;
    if (heap_add(&s->timers, &timer->link) < 0) {
        abort();
    }
}

void timer_stop(struct sched *s, struct timer *timer)
{
    heap_remove(&s->timers, &timer->link);
}

bool timer_is_armed(const struct timer *timer)
{
    return timer->link.at != 0;
}

int64_t timers_next(const struct sched *s)
{
    const struct heap_link *first = heap_first(&s->timers);
    return first != NULL ? list_item(first, struct timer, link)->at_ms : INT64_MAX;
}

void timers_fire(struct sched *s)
{
    while (timers_next(s) <= s->now.mono_ms && !sched_tick_is_full(s)) {
        struct timer *timer = list_item(heap_first(&s->timers), struct timer, link);
        timer_stop(s, timer);
        kinds[timer->kind].fire(s, timer);
    }
}

void timers_stretch(struct sched *s, int64_t ms)
{
    struct heap old = s->timers;
    timers_init(s);
    for (size_t i = 0; i < old.n; i++) {
        struct timer *timer = list_item(old.items[i], struct timer, link);
        bool longer = kinds[timer->kind].stretches && timer->at_ms < INT64_MAX - ms;
        timer->link.at = 0;
        timer_arm(s, timer, timer->kind, longer ? timer->at_ms + ms : timer->at_ms);
    }
    heap_fini(&old);
}

int64_t after_ms(const struct sched *s, int64_t delay_ms)
{
    return delay_ms > INT64_MAX - s->now.mono_ms ? INT64_MAX : s->now.mono_ms + delay_ms;
}
