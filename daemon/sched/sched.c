/* sched.c - the core's life, its timers and the way of an event */
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void copy_text(char *dst, size_t size, const char *src)
{
    size_t n = strnlen(src, size - 1);
    memcpy(dst, src, n);
    dst[n] = '\0';
}

char *dup_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(must(malloc(size)), text, size);
}

int64_t after_ms(const struct sched *s, int64_t delay_ms)
{
    return delay_ms > INT64_MAX - s->now.mono_ms ? INT64_MAX : s->now.mono_ms + delay_ms;
}

/* ---- timers -------------------------------------------------------------------------------------
 */

static int timer_before(const struct heap_link *a, const struct heap_link *b)
{
    return list_item(a, struct timer, link)->at_ms < list_item(b, struct timer, link)->at_ms;
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

static void timer_fire(struct sched *s, struct timer *timer)
{
    switch (timer->kind) {
    case TIMER_TOPOLOGY:
        dynamic_timeout(s);
        break;
    case TIMER_ENDING:
        dynamic_exit(s);
        break;
    case TIMER_NEWS:
        watch_tell_news(s);
        break;
    case TIMER_FORGET:
        node_forget(s, list_item(timer, struct node, forget));
        break;
    case TIMER_PROBE:
        newcomer_timeout(s, list_item(timer, struct newcomer, timer));
        break;
    case TIMER_ADOPT:
        run_adopt_timeout(s, list_item(timer, struct run, adopt));
        break;
    case TIMER_GRACE:
        run_grace_timeout(s, list_item(timer, struct run, grace));
        break;
    case TIMER_BLAME:
        run_blame_timeout(s, list_item(timer, struct run, blame));
        break;
    case TIMER_ROUTE:
        route_timeout(s, list_item(timer, struct route, timer));
        break;
    case TIMER_START: /* sched_apply has taken it already */
    case TIMER_KINDS:
    default:
        assert(0);
    }
}

static void timers_fire(struct sched *s)
{
    struct heap_link *first = heap_first(&s->timers);
    while (first != NULL && list_item(first, struct timer, link)->at_ms <= s->now.mono_ms) {
        heap_remove(&s->timers, first);
        timer_fire(s, list_item(first, struct timer, link));
        first = heap_first(&s->timers);
    }
}

int64_t sched_deadline(const struct sched *s)
{
    int64_t at = node_lease_deadline(s);
    const struct heap_link *first = heap_first(&s->timers);
    if (first != NULL && list_item(first, struct timer, link)->at_ms < at) {
        at = list_item(first, struct timer, link)->at_ms;
    }
    return at;
}

/* Waits for somebody who may have stood still with us. */
static bool timer_stretches(enum timer_kind kind)
{
    return kind == TIMER_PROBE || kind == TIMER_ADOPT || kind == TIMER_GRACE ||
           kind == TIMER_BLAME || kind == TIMER_ROUTE || kind == TIMER_ENDING;
}

void sched_stood_still(struct sched *s, int64_t ms)
{
    if (ms <= 0) {
        return;
    }
    for (struct list *at = s->beating.next; at != &s->beating; at = at->next) {
        list_item(at, struct node, beating)->seen_ms += ms;
    }
    struct heap old = s->timers;
    heap_init(&s->timers, timer_before);
    for (size_t i = 0; i < old.n; i++) {
        struct timer *timer = list_item(old.items[i], struct timer, link);
        timer->link.at = 0;
        timer_arm(s, timer, timer->kind,
                  timer_stretches(timer->kind) ? timer->at_ms + ms : timer->at_ms);
    }
    heap_fini(&old);
}

void sched_set_lease(struct sched *s, int64_t lease_ms)
{
    sched_stood_still(s, s->cfg.lease_ms - lease_ms); /* a longer one needs no grace */
    s->cfg.lease_ms = lease_ms;
}

static void start_timeout(struct sched *s);

/* ---- events -------------------------------------------------------------------------------------
 */

void sched_apply(struct sched *s, const struct sched_event *event, struct sched_time now)
{
    if (now.mono_ms > s->now.mono_ms) {
        s->now.mono_ms = now.mono_ms;
    }
    s->now.wall_ms = now.wall_ms;
    if (s->start_timer.link.at != 0) { /* before anything else may touch those jobs */
        timer_stop(s, &s->start_timer);
        start_timeout(s);
    }
    struct conn *conn = event->kind == SCHED_EV_OPENED ? NULL : conn_find(s, event->conn);
    switch (event->kind) {
    case SCHED_EV_OPENED:
        conn_opened(s, event);
        break;
    case SCHED_EV_MESSAGE:
        if (conn != NULL) { /* else we closed it and this was already on its way */
            conn_message(s, conn, event);
        }
        break;
    case SCHED_EV_CLOSED:
        if (conn != NULL) {
            conn_closed(s, conn, event->reason != NULL ? event->reason : "connection closed");
        }
        break;
    case SCHED_EV_TIME:
        node_judge_leases(s);
        timers_fire(s);
        break;
    case SCHED_EV_DRAIN:
        s->draining = true;
        watch_news(s);
        break;
    default:
        assert(0);
    }
    dynamic_settle(s);
    place_settle(s);
}

void sched_refuse_writes(struct sched *s, const char *text)
{
    copy_text(s->refusal, sizeof(s->refusal), text);
    s->place_due = true;
    if (text[0] == '\0') { /* what was held back may go on at the next event: make one */
        timer_arm(s, &s->start_timer, TIMER_START, s->now.mono_ms);
    }
    watch_news(s);
}

void sched_set_driver_stats(struct sched *s, uint64_t tick_max_us, uint64_t commit_last_us,
                            uint32_t clients)
{
    s->tick_max_us = tick_max_us;
    s->commit_last_us = commit_last_us;
    s->clients = clients;
}

void sched_count(const struct sched *s, struct sched_counts *ret)
{
    ret->nodes_registered = s->n_registered;
    ret->nodes_idle = s->n_idle;
    ret->nodes_lost = s->n_gone;
    ret->jobs_queued = (uint32_t)s->queue.n;
    ret->jobs_placed = s->n_placed;
    ret->jobs_ended = s->n_ended;
    ret->generation = s->generation;
}

const char *sched_job_state_name(enum sched_job_state state)
{
    return (unsigned)state < JOB_STATES ? states_of_jobs.states[state] : "?";
}

/* ---- life ---------------------------------------------------------------------------------------
 */

/* Requeues were decided by loading; this is the first event that can carry them out. */
static void start_timeout(struct sched *s)
{
    for (size_t i = 0; i < s->queue.n; i++) {
        struct job *job = list_item(s->queue.items[i], struct job, queue);
        if (job->generation != 0) {
            emit_log(s, MS_LOG_NOTICE, "job.requeued job=%llu generation=%llu",
                     (unsigned long long)job->id, (unsigned long long)job->generation);
            job->generation = 0;
            emit_put_job(s, job, false);
            emit_drop_members(s, job->id);
        }
    }
    s->place_due = true;
}

static int tables_init(struct sched *s)
{
    return table_init(&s->conns, 64) < 0 || table_init(&s->nodes, 64) < 0 ||
                   table_init(&s->keys, 64) < 0 || table_init(&s->routes, 16) < 0
               ? MS_E_NOMEM
               : 0;
}

static void history_limits(struct sched_config *cfg)
{
    cfg->jobs_kept_max = cfg->jobs_kept_max > 0 ? cfg->jobs_kept_max : MS_JOBS_KEPT_MAX;
    cfg->members_kept_max = cfg->members_kept_max > 0 ? cfg->members_kept_max : MS_MEMBERS_KEPT_MAX;
    cfg->lost_nodes_max = cfg->lost_nodes_max > 0 ? cfg->lost_nodes_max : MS_LOST_NODES_MAX;
}

struct sched *sched_create(const struct sched_config *cfg, struct sched_time now)
{
    struct sched *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->cfg = *cfg;
    history_limits(&s->cfg);
    copy_text(s->software, sizeof(s->software), cfg->software != NULL ? cfg->software : "");
    copy_text(s->database, sizeof(s->database), cfg->database != NULL ? cfg->database : "");
    s->now = now;
    s->started = now;
    s->next_job = 1;
    memcpy(&s->seed, cfg->secret, sizeof(s->seed));
    s->loading = true;
    list_init(&s->beating);
    list_init(&s->idle);
    list_init(&s->gone);
    list_init(&s->placed);
    list_init(&s->ended);
    list_init(&s->ended_bare);
    list_init(&s->watches);
    heap_init(&s->timers, timer_before);
    heap_init(&s->queue, queue_before);
    if (tables_init(s) < 0) {
        sched_destroy(s);
        return NULL;
    }
    dynamic_start(s);
    return s;
}

static void conns_free(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = s->conns.slots != NULL ? table_walk(&s->conns, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->conns, &slot, link);
        struct conn *conn = list_item(link, struct conn, link);
        free(conn->newcomer);
        free(conn);
        link = next;
    }
}

static void nodes_free(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = s->nodes.slots != NULL ? table_walk(&s->nodes, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->nodes, &slot, link);
        free(list_item(link, struct node, link));
        link = next;
    }
}

static void routes_free(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = s->routes.slots != NULL ? table_walk(&s->routes, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->routes, &slot, link);
        free(list_item(link, struct route, link));
        link = next;
    }
}

void sched_destroy(struct sched *s)
{
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < s->n_jobs; i++) {
        if (s->jobs[i].job != NULL) {
            job_free(s->jobs[i].job);
        }
    }
    conns_free(s);
    nodes_free(s);
    routes_free(s);
    table_fini(&s->conns);
    table_fini(&s->nodes);
    table_fini(&s->keys);
    table_fini(&s->routes);
    heap_fini(&s->timers);
    heap_fini(&s->queue);
    emit_fini(s);
    free(s->jobs);
    free(s->orphans);
    free(s->spec);
    free(s);
}
