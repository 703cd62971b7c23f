/* holder.c - how many nodes each principal has: registered, or expected back
 *
 * Who has to come back with a rank finds its place kept, whoever comes first.
 * Counted, not walked: ten thousand nodes that come back after a restart ask ten thousand times. */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

struct holder {
    struct table_link link;
    uint32_t n;
    char principal[MS_PRINCIPAL_MAX + 1];
};

static struct holder *find(const struct sched *s, const char *principal)
{
    struct table_link *link = table_first(&s->holders, table_hash_text(s->seed, principal));
    while (link != NULL &&
           strcmp(list_item(link, struct holder, link)->principal, principal) != 0) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct holder, link) : NULL;
}

uint32_t holder_count(const struct sched *s, const char *principal)
{
    const struct holder *holder = find(s, principal);
    return holder != NULL ? holder->n : 0;
}

void holder_add(struct sched *s, struct node *node)
{
    const char *principal = node->info.principal;
    if (node->holder != NULL && strcmp(node->holder->principal, principal) == 0) {
        return;
    }
    holder_remove(s, node); /* an old database may not say whose it was */
    struct holder *holder = find(s, principal);
    if (holder == NULL) {
        holder = memory_take(sizeof(*holder));
        ms_text_copy(holder->principal, sizeof(holder->principal), principal);
        table_add(&s->holders, &holder->link, table_hash_text(s->seed, holder->principal));
    }
    holder->n++;
    node->holder = holder;
}

void holder_remove(struct sched *s, struct node *node)
{
    struct holder *holder = node->holder;
    node->holder = NULL;
    if (holder != NULL && --holder->n == 0) {
        table_remove(&s->holders, &holder->link);
        free(holder);
    }
}

void holders_fini(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link =
        s->holders.slots != NULL ? table_walk(&s->holders, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->holders, &slot, link);
        free(list_item(link, struct holder, link));
        link = next;
    }
    table_fini(&s->holders);
}

int holders_check(const struct sched *s, struct ms_err *err)
{
    size_t slot = 0;
    size_t n = 0;
    struct table_link *link = table_walk(&s->holders, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->holders, &slot, link)) {
        n += list_item(link, struct holder, link)->n;
    }
    const size_t here = s->nodes.n - s->n_gone;
    return n == here ? 0
                     : ms_fail(err, MS_E_FAILED,
                               "%zu nodes are counted by principal, and %zu are not gone", n, here);
}
