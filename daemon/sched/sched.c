/* sched.c - the core's life and the way of an event */
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

char *dup_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(memory_take(size), text, size);
}

int64_t sched_deadline(const struct sched *s)
{
    int64_t lease = node_lease_deadline(s);
    int64_t timer = timers_next(s);
    return s->due != 0 ? s->now.mono_ms : lease < timer ? lease : timer;
}

int64_t sched_clock_ms(const struct sched *s)
{
    return s->now.mono_ms;
}

static void leases_stretch(struct sched *s, int64_t ms)
{
    for (struct list *at = s->beating.next; at != &s->beating; at = at->next) {
        list_item(at, struct node, beating)->seen_ms += ms;
    }
    s->came_ms += ms;
    s->crowded_ms += ms;
    formers_stretch(s, ms);
    dynamic_stretch(s, ms);
    timers_stretch(s, ms);
}

void sched_stood_still(struct sched *s, int64_t ms)
{
    if (ms <= 0) {
        return;
    }
    leases_stretch(s, ms);
    if (ms >= s->cfg.lease_ms / 2) { /* now is when it began */
        s->stood_still_ms = ms;
        s->stood_still_until_ms = after_ms(s, ms + s->cfg.lease_ms);
        runs_expect_whole_lease(s, ms);
    }
}

void sched_set_policy(struct sched *s, const struct sched_config *cfg)
{
    s->cfg.certificate_ids = cfg->certificate_ids;
    s->cfg.nodes_per_certificate = cfg->nodes_per_certificate;
    s->cfg.specs_mib = cfg->specs_mib;
    s->cfg.specs_owner_mib = cfg->specs_owner_mib;
    s->cfg.priority_users_min = cfg->priority_users_min;
    s->cfg.priority_users_max = cfg->priority_users_max;
}

void sched_set_lease(struct sched *s, int64_t lease_ms)
{
    if (lease_ms < s->cfg.lease_ms) { /* a longer one needs no grace */
        leases_stretch(s, s->cfg.lease_ms - lease_ms);
    }
    s->cfg.lease_ms = lease_ms;
}

/* ---- events -------------------------------------------------------------------------------------
 */

void sched_apply(struct sched *s, const struct sched_event *event, struct sched_time now)
{
    if (now.mono_ms > s->now.mono_ms) {
        s->now.mono_ms = now.mono_ms;
    }
    s->now.wall_ms = now.wall_ms;
    if ((s->due & DUE_STARTED) != 0) {
        load_started(s);
    }
    if ((s->due & DUE_SKIP) != 0) {
        load_skip(s);
    }
    if ((s->due & DUE_REQUEUES) != 0) { /* before anything else may touch those jobs */
        load_settle(s);
    }
    if ((s->due & DUE_ROOM) != 0) {
        s->due &= ~(unsigned)DUE_ROOM;
        recover_expect(s);
    }
    if ((s->due & DUE_HISTORY) != 0) {
        s->due &= ~(unsigned)DUE_HISTORY;
        past_trim(s);
        kept_trim(s);
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
    case SCHED_EV_CLOGGED:
    case SCHED_EV_CLEARED:
        if (conn != NULL) {
            watch_mute(s, conn, event->kind == SCHED_EV_CLOGGED);
        }
        break;
    case SCHED_EV_CROWDED:
        nodes_stand_outside(s);
        break;
    case SCHED_EV_DRAIN:
        s->draining = true;
        watch_news(s);
        break;
    default:
        assert(0);
    }
    s->mode->settle(s);
    place_settle(s);
    watch_settle(s);
    event_settle(s);
}

void sched_refuse_writes(struct sched *s, const char *text, int has_room)
{
    if (s->refusal[0] != '\0' && text[0] == '\0') {
        s->due |= DUE_ROOM; /* we may have stood still meanwhile, and do not know the time */
    }
    ms_text_copy(s->refusal, sizeof(s->refusal), text);
    s->refuses_ends = s->refusal[0] != '\0' && !has_room;
    s->due |= DUE_PLACE;
    watch_news(s);
}

int sched_is_ending(const struct sched *s, int *ret_status)
{
    if (s->ending) {
        *ret_status = s->exit_status;
    }
    return s->ending;
}

void sched_set_driver_stats(struct sched *s, const struct sched_driver_stats *stats)
{
    s->driver = *stats;
}

void sched_count(const struct sched *s, struct sched_counts *ret)
{
    ret->nodes_registered = s->n_registered;
    ret->nodes_idle = s->n_idle;
    ret->nodes_lost = s->n_gone;
    ret->jobs_queued = queue_n(s);
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

static int tables_init(struct sched *s)
{
    return table_init(&s->conns, 64) < 0 || table_init(&s->nodes, 64) < 0 ||
                   table_init(&s->hosts, 64) < 0 || table_init(&s->holders, 64) < 0 ||
                   table_init(&s->purses, 64) < 0 || table_init(&s->pasts, 64) < 0 ||
                   table_init(&s->plans, 64) < 0 || table_init(&s->authors, 64) < 0 ||
                   table_init(&s->keys, 64) < 0 || table_init(&s->losers, 16) < 0 ||
                   table_init(&s->routes, 16) < 0 || table_init(&s->folders, 64) < 0
               ? MS_E_NOMEM
               : 0;
}

static void history_limits(struct sched_config *cfg)
{
    cfg->jobs_kept_max = cfg->jobs_kept_max > 0 ? cfg->jobs_kept_max : MS_JOBS_KEPT_MAX;
    cfg->members_kept_max = cfg->members_kept_max > 0 ? cfg->members_kept_max : MS_MEMBERS_KEPT_MAX;
    cfg->events_kept_max = cfg->events_kept_max > 0 ? cfg->events_kept_max : MS_EVENTS_KEPT;
    cfg->lost_nodes_max = cfg->lost_nodes_max > 0 ? cfg->lost_nodes_max : MS_LOST_NODES_MAX;
}

struct sched *sched_create(const struct sched_config *cfg, struct sched_time now)
{
    struct sched *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->cfg = *cfg;
    s->mode = &modes[cfg->mode];
    history_limits(&s->cfg);
    ms_text_copy(s->software, sizeof(s->software), cfg->software != NULL ? cfg->software : "");
    ms_text_copy(s->database, sizeof(s->database), cfg->database != NULL ? cfg->database : "");
    s->now = now;
    s->started = now;
    s->stood_still_until_ms = INT64_MIN;
    s->next_job = 1;
    memcpy(&s->seed, cfg->secret, sizeof(s->seed));
    s->loading = true;
    list_init(&s->beating);
    list_init(&s->idle);
    list_init(&s->placed);
    list_init(&s->recovering);
    list_init(&s->askers);
    list_init(&s->followers);
    list_init(&s->watches);
    list_init(&s->stirred);
    timers_init(s);
    queue_init(s);
    pasts_init(s);
    kept_init(s);
    shares_init(&s->gone_by);
    if (tables_init(s) < 0 || !memory_reserve()) {
        sched_destroy(s);
        return NULL;
    }
    s->mode->start(s);
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
        free(conn->follower);
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
        struct node *node = list_item(link, struct node, link);
        while (!list_empty(&node->holds)) {
            struct list *hold = node->holds.next;
            list_remove(hold);
            free(list_item(hold, struct hold, by_node));
        }
        free(node);
        link = next;
    }
}

static void hosts_free(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = s->hosts.slots != NULL ? table_walk(&s->hosts, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->hosts, &slot, link);
        host_free(list_item(link, struct host, link));
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
    hosts_free(s);
    holders_fini(s);
    purses_fini(s);
    pasts_fini(s);
    plans_fini(s);
    kept_fini(s);
    gone_fini(s);
    routes_free(s);
    table_fini(&s->conns);
    table_fini(&s->nodes);
    table_fini(&s->hosts);
    table_fini(&s->keys);
    table_fini(&s->routes);
    table_fini(&s->folders);
    heap_fini(&s->timers);
    queue_fini(s);
    emit_fini(s);
    memory_release();
    free(s->jobs);
    free(s->orphans);
    free(s->stalls);
    free(s->spec);
    free(s->ends);
    free(s);
}
