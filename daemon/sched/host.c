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

static void free_if_unused(struct sched *s, struct host *host)
{
    if (list_empty(&host->nodes) && !host->drained) {
        timer_stop(s, &host->pause);
        s->n_paused -= host->paused;
        table_remove(&s->hosts, &host->link);
        free(host);
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

void host_join(struct sched *s, struct node *node)
{
    char key[HOST_KEY_MAX];
    key_of(s, node, key);
    if (node->host != NULL && strcmp(node->host->key, key) == 0) {
        return;
    }
    host_leave(s, node);
    struct host *host = find_key(s, key);
    if (host == NULL) {
        host = memory_take(sizeof(*host));
        ms_text_copy(host->key, sizeof(host->key), key);
        ms_text_copy(host->name, sizeof(host->name), node->info.host_name);
        list_init(&host->nodes);
        table_add(&s->hosts, &host->link, table_hash_text(s->seed, host->key));
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
