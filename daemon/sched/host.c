/* host.c - machines, made of what their nodes report */
#include "daemon/sched/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *key_of(const struct sched *s, const struct node *node, char ret[HOST_KEY_MAX])
{
    const struct node_info *info = &node->info;
    const bool is_proven =
        s->cfg.certificate_ids && strncmp(info->principal, "worker:", strlen("worker:")) == 0;
    const char *id = is_proven ? info->principal : info->host_id;
    snprintf(ret, HOST_KEY_MAX, "%c%s",
             is_proven       ? '='
             : id[0] != '\0' ? '#'
                             : '@',
             id[0] != '\0' ? id : info->host_name);
    return ret;
}

static struct host *find_key(const struct sched *s, const char *key)
{
    struct table_link *link = table_first(&s->hosts, table_hash_text(s->seed, key));
    while (link != NULL && strcmp(list_item(link, struct host, link)->key, key) != 0) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct host, link) : NULL;
}

struct host *host_find(const struct sched *s, const struct node *node)
{
    char key[HOST_KEY_MAX];
    return find_key(s, key_of(s, node, key));
}

/* So many from that one on. */
static void losses_forget(struct host *host, uint32_t at, uint32_t n)
{
    for (uint32_t i = at; i < at + n; i++) {
        free(host->losses[i].why);
    }
    host->n_losses -= n;
    memmove(&host->losses[at], &host->losses[at + n],
            (host->n_losses - at) * sizeof(host->losses[0]));
}

void host_free(struct host *host)
{
    losses_forget(host, 0, host->n_losses);
    free(host);
}

static void free_if_unused(struct sched *s, struct host *host)
{
    if (list_empty(&host->nodes) && !host->drained && !host->is_aside &&
        !timer_is_armed(&host->unstored)) {
        timer_stop(s, &host->pause);
        s->n_paused -= host->paused;
        table_remove(&s->hosts, &host->link);
        host_free(host);
    }
}

const char *host_principal(const struct host *host)
{
    return host->key[0] == '=' ? host->key + 1 : "";
}

void host_leave(struct sched *s, struct node *node)
{
    struct host *host = node->host;
    if (host != NULL) {
        node->host = NULL;
        list_remove(&node->on_host);
        free_if_unused(s, host);
    }
}

static struct host *add(struct sched *s, const char *key, const char *name)
{
    struct host *host = memory_take(sizeof(*host));
    ms_text_copy(host->key, sizeof(host->key), key);
    ms_text_copy(host->name, sizeof(host->name), name);
    list_init(&host->nodes);
    table_add(&s->hosts, &host->link, table_hash_text(s->seed, host->key));
    return host;
}

void host_join(struct sched *s, struct node *node)
{
    char key[HOST_KEY_MAX];
    const char *id = node->info.host_id;
    node->machine = table_hash_text(s->seed, id[0] != '\0' ? id : node->info.host_name);
    key_of(s, node, key);
    if (node->host != NULL && strcmp(node->host->key, key) == 0) {
        return;
    }
    host_leave(s, node);
    struct host *host = find_key(s, key);
    if (host == NULL) {
        host = add(s, key, node->info.host_name);
    }
    node->host = host;
    list_add_tail(&host->nodes, &node->on_host);
    node_idle_update(s, node);
}

uint32_t host_cores(const struct host *host)
{
    uint32_t cores = 0; /* processes of one machine may each use all: the most, not the sum */
    for (const struct list *at = host->nodes.next; at != &host->nodes; at = at->next) {
        const struct node *node = list_item(at, struct node, on_host);
        if (node->state == NODE_REGISTERED && node->info.cores > cores) {
            cores = node->info.cores;
        }
    }
    return cores;
}

/* Looks no further than it must: every lease that ends on the host asks. */
bool host_is_crowded(const struct host *host, uint32_t cores)
{
    const uint64_t most = (uint64_t)cores * MS_HOST_CROWD;
    uint64_t seen = 0;
    uint64_t n = 0;
    const struct list *at = host->nodes.next;
    for (; at != &host->nodes && n <= most && seen <= 2 * most; at = at->next, seen++) {
        n += list_item(at, struct node, on_host)->state == NODE_REGISTERED;
    }
    return cores > 0 && n > most;
}

static void nodes_update(struct sched *s, struct host *host)
{
    for (struct list *at = host->nodes.next; at != &host->nodes; at = at->next) {
        node_idle_update(s, list_item(at, struct node, on_host));
    }
    watch_news(s);
}

void host_drain(struct sched *s, struct host *host, const char *by, const char *why)
{
    host->drained = true;
    host->drained_ms = s->now.wall_ms;
    ms_text_copy(host->drained_by, sizeof(host->drained_by), by);
    ms_text_copy(host->drained_why, sizeof(host->drained_why), why);
    nodes_update(s, host);
}

void host_resume(struct sched *s, struct host *host)
{
    host->drained = false;
    nodes_update(s, host);
    free_if_unused(s, host);
}

/* ---- pauses -------------------------------------------------------------------------------------
 */

void host_pause(struct sched *s, struct host *host, const char *text)
{
    if (host->paused) {
        return; /* one of several that got ready there: they are lost together */
    }
    int64_t ms = MS_HOST_PAUSE_MS;
    for (uint32_t i = 0; i < host->n_vain && ms < MS_HOST_PAUSE_MAX_MS; i++) {
        ms *= 2;
    }
    host->n_vain++;
    host->paused = true;
    s->n_paused++;
    timer_arm(s, &host->pause, TIMER_PAUSE, after_ms(s, ms));
    emit_log(s, MS_LOG_WARNING, "host.paused host=%s principal=%s ms=%lld times=%u reason=%s",
             emit_quote(s, host->name), emit_quote(s, host_principal(host)), (long long)ms,
             host->n_vain, emit_quote(s, text));
    nodes_update(s, host);
}

void host_timeout(struct sched *s, struct timer *timer)
{
    struct host *host = list_item(timer, struct host, pause);
    host->paused = false;
    s->n_paused--;
    nodes_update(s, host);
}

/* ---- set aside ----------------------------------------------------------------------------------
 */

bool host_is_aside(const struct host *host)
{
    return host != NULL && host->is_aside;
}

const char *host_aside_why(const struct host *host)
{
    return host->n_losses > 0 ? host->losses[host->n_losses - 1].why : "";
}

int64_t host_aside_end_ms(const struct host *host)
{
    return host->aside.at_ms;
}

static void add_loss(struct host *host, uint64_t whose, int64_t ms, const char *why)
{
    if (host->n_losses == MS_HOST_LOSSES) {
        losses_forget(host, 0, 1);
    }
    host->losses[host->n_losses++] = (struct host_loss){whose, ms, dup_text(why)};
}

/* An hour after the last of two within an hour. INT64_MIN: there are none. */
static int64_t aside_until_ms(const struct host *host)
{
    const struct host_loss *end = &host->losses[host->n_losses];
    return host->n_losses > 1 && end[-1].ms - end[-2].ms < MS_HOST_ASIDE_MS
               ? end[-1].ms + MS_HOST_ASIDE_MS
               : INT64_MIN;
}

static void put_aside(struct sched *s, struct host *host, int64_t until_ms)
{
    s->n_aside += !host->is_aside;
    host->is_aside = true;
    timer_arm(s, &host->aside, TIMER_ASIDE, until_ms);
}

static void put_aside_row(struct sched *s, const struct host *host)
{
    const int64_t left_ms = host_aside_end_ms(host) - s->now.mono_ms;
    struct sched_aside_row row = {.until_ms = s->now.wall_ms + left_ms};
    ms_text_copy(row.key, sizeof(row.key), host->key);
    ms_text_copy(row.name, sizeof(row.name), host->name);
    ms_text_copy(row.why, sizeof(row.why), host_aside_why(host));
    emit_put_aside(s, &row);
}

/* Whether it is. Without the room that ends need the row waits: a restart meanwhile knows the host
 * as it was. */
static void store_aside(struct sched *s, struct host *host)
{
    if (s->refuses_ends) {
        timer_arm(s, &host->unstored, TIMER_ASIDE_ROW, after_ms(s, MS_ROOM_LOOK_MS));
        return;
    }
    timer_stop(s, &host->unstored);
    if (host->is_aside) {
        put_aside_row(s, host);
    } else {
        emit_drop_aside(s, host->key);
    }
}

void host_aside_row_timeout(struct sched *s, struct timer *timer)
{
    struct host *host = list_item(timer, struct host, unstored);
    store_aside(s, host);
    free_if_unused(s, host);
}

static void end_aside(struct sched *s, struct host *host)
{
    timer_stop(s, &host->aside);
    host->is_aside = false;
    s->n_aside--;
    store_aside(s, host);
    watch_news(s);
    free_if_unused(s, host);
}

void host_aside_timeout(struct sched *s, struct timer *timer)
{
    end_aside(s, list_item(timer, struct host, aside));
}

static const char *aside_facts(struct sched *s, const struct host *host)
{
    const int64_t until_ms = aside_until_ms(host);
    struct facts facts;
    facts_begin(&facts);
    facts_text(&facts, "host", host->name);
    facts_text(&facts, "principal", host_principal(host));
    if (until_ms > s->now.mono_ms) {
        facts_number(&facts, "until_ms", (uint64_t)(s->now.wall_ms + until_ms - s->now.mono_ms));
    }
    return facts_end(s, &facts);
}

/* A process with a rank. Its incarnation alone others know, too. */
static uint64_t hash_of(struct sched *s, const char *node_id, const char *principal,
                        uint64_t incarnation, uint64_t job, uint32_t rank)
{
    const char *text = emit_text(s, "%llu %llu %u %s\n%s", (unsigned long long)incarnation,
                                 (unsigned long long)job, rank, node_id, principal);
    return table_hash_text(s->seed, text);
}

void host_blame(struct sched *s, struct host *host, const struct job *job, uint32_t rank,
                const char *text)
{
    const struct member *member = &job->run->members[rank];
    const bool was_aside = host->is_aside;
    add_loss(host,
             hash_of(s, member->node_id, member->principal, member->incarnation, job->id, rank),
             s->now.mono_ms, text);
    const int64_t until_ms = aside_until_ms(host);
    if (until_ms == INT64_MIN || !s->mode->places_anew || /* else there are no other hosts */
        (!was_aside && s->n_aside >= MS_HOSTS_ASIDE_MAX)) {
        return;
    }
    put_aside(s, host, until_ms);
    store_aside(s, host);
    if (!was_aside) {
        emit_log(s, MS_LOG_WARNING, "host.set_aside host=%s principal=%s reason=%s",
                 emit_quote(s, host->name), emit_quote(s, host_principal(host)),
                 emit_quote(s, text));
        event_of_all(s, "host.set_aside", host_principal(host),
                     text_behind(s,
                                 emit_text(s, "%.100s lost two ranks within an hour: ", host->name),
                                 text),
                     aside_facts(s, host));
        watch_news(s);
    }
}

static void end_aside_early(struct sched *s, struct host *host, const char *text)
{
    emit_log(s, MS_LOG_NOTICE, "host.taken_back host=%s principal=%s reason=%s",
             emit_quote(s, host->name), emit_quote(s, host_principal(host)), emit_quote(s, text));
    event_of_all(
        s, "host.taken_back", host_principal(host),
        text_behind(s, emit_text(s, "%.100s is not set aside any more: ", host->name), text),
        aside_facts(s, host));
    end_aside(s, host);
}

void host_excuse(struct sched *s, const struct node *node, const struct claim *claim)
{
    struct host *host = node->host;
    const struct node_info *info = &node->info;
    const uint64_t whose =
        hash_of(s, info->node_id, info->principal, info->incarnation, claim->job, claim->rank);
    uint32_t n = host->n_losses; /* the last one */
    while (n > 0 && host->losses[n - 1].whose != whose) {
        n--;
    }
    if (n == 0) {
        return;
    }
    const uint32_t i = n - 1;
    losses_forget(host, i, 1);
    const int64_t until_ms = aside_until_ms(host);
    if (host->is_aside && until_ms <= s->now.mono_ms) {
        end_aside_early(s, host,
                        emit_text(s, "rank %u (node %s on host %.100s) was away, and is back",
                                  claim->rank, info->node_id, info->host_name));
    } else if (host->is_aside &&
               i == host->n_losses) { /* it was the last: less time, other words */
        put_aside(s, host, until_ms);
        store_aside(s, host);
        watch_news(s);
    }
}

/* By the wall clock, which may have jumped meanwhile: never longer than when it was set aside. */
int sched_load_aside(struct sched *s, const struct sched_aside_row *row, struct ms_err *err)
{
    if (row->key[0] == '\0' || strchr("=#@", row->key[0]) == NULL ||
        find_key(s, row->key) != NULL) {
        return ms_fail(err, MS_E_CONFIG,
                       "the database sets the host '%.80s' aside twice, or names none: restore it "
                       "from a copy",
                       row->key);
    }
    const int64_t now_ms = s->now.wall_ms;
    const int64_t left_ms = row->until_ms > now_ms ? row->until_ms - now_ms : 0;
    struct host *host = add(s, row->key, row->name);
    put_aside(s, host, after_ms(s, left_ms < MS_HOST_ASIDE_MS ? left_ms : MS_HOST_ASIDE_MS));
    for (int n = 0; n < 2; n++) { /* whoever comes back now may not be who was lost */
        add_loss(host, 0, host->aside.at_ms - MS_HOST_ASIDE_MS, row->why);
    }
    return 0;
}

void host_works(struct host *host)
{
    host->n_vain = 0;
}

bool host_others_work(const struct sched *s, const struct host *host, uint32_t workers)
{
    uint32_t n = 0;
    for (const struct list *at = s->beating.next; at != &s->beating && n < workers; at = at->next) {
        const struct node *node = list_item(at, struct node, beating);
        n += node_is_usable(node) && node->host != host && node->host->n_vain == 0;
    }
    return n >= workers;
}
