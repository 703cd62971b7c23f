/* gone.c - which lost or left nodes are still named: so many, and whose go first */
#include "daemon/sched/gone.h"

#include "daemon/sched/check.h"
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

struct loser {
    struct table_link link;
    struct share share;
    struct list nodes; /* by node.gone, the oldest first */
    char principal[MS_PRINCIPAL_MAX + 1];
};

static struct loser *find(struct sched *s, const char *principal)
{
    uint64_t hash = table_hash_text(s->seed, principal);
    struct table_link *link = table_first(&s->losers, hash);
    for (; link != NULL; link = table_next(link)) {
        struct loser *loser = list_item(link, struct loser, link);
        if (strcmp(loser->principal, principal) == 0) {
            return loser;
        }
    }
    struct loser *loser = memory_take(sizeof(*loser));
    list_init(&loser->nodes);
    ms_text_copy(loser->principal, sizeof(loser->principal), principal);
    table_add(&s->losers, &loser->link, hash);
    return loser;
}

static struct node *oldest_of(const struct loser *loser)
{
    return list_item(loser->nodes.next, struct node, gone);
}

static void set(struct sched *s, struct loser *loser, uint64_t n)
{
    share_set(&s->gone_by, &loser->share, n, n > 0 ? oldest_of(loser)->gone_no : 0);
}

void gone_add(struct sched *s, struct node *node)
{
    struct loser *loser = find(s, node->info.principal);
    node->loser = loser; /* the node may come back as somebody else's */
    node->gone_no = ++s->last_gone;
    list_add_tail(&loser->nodes, &node->gone);
    s->n_gone++;
    set(s, loser, loser->share.n + 1);
    if (s->n_gone > s->cfg.lost_nodes_max) {
        node_forget(s, oldest_of(list_item(share_most(&s->gone_by), struct loser, share)));
    }
}

void gone_remove(struct sched *s, struct node *node)
{
    struct loser *loser = node->loser;
    if (loser == NULL) {
        return;
    }
    node->loser = NULL;
    list_remove(&node->gone);
    s->n_gone--;
    set(s, loser, loser->share.n - 1);
    if (loser->share.n == 0) {
        table_remove(&s->losers, &loser->link);
        free(loser);
    }
}

void gone_fini(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = s->losers.slots != NULL ? table_walk(&s->losers, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->losers, &slot, link);
        free(list_item(link, struct loser, link));
        link = next;
    }
    table_fini(&s->losers);
    heap_fini(&s->gone_by);
}

int gone_check(const struct sched *s, struct ms_err *err)
{
    size_t slot = 0;
    uint64_t n = 0;
    struct table_link *link = table_walk(&s->losers, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->losers, &slot, link)) {
        const struct loser *loser = list_item(link, struct loser, link);
        uint64_t own = 0;
        for (const struct list *at = loser->nodes.next; at != &loser->nodes; at = at->next) {
            own += list_item(at, struct node, gone)->loser == loser;
        }
        HOLDS(own > 0 && own == loser->share.n && loser->share.oldest == oldest_of(loser)->gone_no,
              "%s has lost %llu nodes, and which is not known", loser->principal,
              (unsigned long long)own);
        n += own;
    }
    HOLDS(n == s->n_gone && n <= s->cfg.lost_nodes_max,
          "%llu lost nodes are counted by principal, %u are kept", (unsigned long long)n,
          s->n_gone);
    return heap_check(&s->gone_by, "who has lost the most nodes", err);
}
