/* kept.c - which events are kept: so many, and whose go first */
#include "daemon/sched/kept.h"

#include "daemon/sched/check.h"
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

enum { BLOCK_NUMBERS = 15 };

struct block {
    struct block *next;
    uint64_t numbers[BLOCK_NUMBERS];
};

struct author {
    struct table_link link;
    struct share share;
    bool of_job;
    struct block *first, *last; /* share.n numbers from first's at on; free beyond last's end */
    uint32_t at, end;
    char name[MS_PRINCIPAL_MAX + 1];
};

static struct author *find(struct sched *s, bool of_job, const char *name)
{
    uint64_t hash = table_hash_text(of_job ? s->seed : ~s->seed, name);
    struct table_link *link = table_first(&s->authors, hash);
    for (; link != NULL; link = table_next(link)) {
        struct author *author = list_item(link, struct author, link);
        if (author->of_job == of_job && strcmp(author->name, name) == 0) {
            return author;
        }
    }
    struct author *author = memory_take(sizeof(*author));
    author->of_job = of_job;
    ms_text_copy(author->name, sizeof(author->name), name);
    table_add(&s->authors, &author->link, hash);
    return author;
}

/* While loading only counted: who has the most is asked for later, and costs more. */
static void set(struct sched *s, struct author *author, uint64_t n)
{
    if (s->loading) {
        author->share.n = n;
        return;
    }
    share_set(&s->kept_by[author->of_job], &author->share, n,
              n > 0 ? author->first->numbers[author->at] : 0);
}

void kept_add(struct sched *s, uint64_t seq, bool of_job, const char *name)
{
    struct author *author = find(s, of_job, name);
    if (author->last == NULL || author->end == BLOCK_NUMBERS) {
        struct block *block = memory_take(sizeof(*block));
        *(author->last != NULL ? &author->last->next : &author->first) = block;
        author->last = block;
        author->end = 0;
    }
    author->last->numbers[author->end++] = seq;
    set(s, author, author->share.n + 1);
    s->n_kept[of_job]++;
}

static void drop_oldest(struct sched *s, struct author *author)
{
    uint64_t n = author->share.n - 1;
    emit_drop_event(s, author->first->numbers[author->at++]);
    if (n == 0 || author->at == BLOCK_NUMBERS) {
        struct block *block = author->first;
        author->first = block->next;
        author->at = 0;
        free(block);
    }
    set(s, author, n);
    s->n_kept[author->of_job]--;
    if (n == 0) {
        table_remove(&s->authors, &author->link);
        free(author);
    }
}

static bool is_over(const struct sched *s)
{
    return s->n_kept[false] + s->n_kept[true] > s->cfg.events_kept_max;
}

void kept_trim(struct sched *s)
{
    while (is_over(s) && !sched_tick_is_full(s)) {
        bool of_job = s->n_kept[true] > s->n_kept[false];
        drop_oldest(s, list_item(share_most(&s->kept_by[of_job]), struct author, share));
    }
    s->due |= is_over(s) ? DUE_HISTORY : 0;
}

void kept_loaded(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = table_walk(&s->authors, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->authors, &slot, link)) {
        struct author *author = list_item(link, struct author, link);
        uint64_t n = author->share.n;
        author->share.n = 0;
        set(s, author, n);
    }
    s->due |= is_over(s) ? DUE_HISTORY : 0;
}

/* ---- life ---------------------------------------------------------------------------------------
 */

void kept_init(struct sched *s)
{
    shares_init(&s->kept_by[false]);
    shares_init(&s->kept_by[true]);
}

static void author_free(struct author *author)
{
    while (author->first != NULL) {
        struct block *next = author->first->next;
        free(author->first);
        author->first = next;
    }
    free(author);
}

void kept_fini(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link =
        s->authors.slots != NULL ? table_walk(&s->authors, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->authors, &slot, link);
        author_free(list_item(link, struct author, link));
        link = next;
    }
    table_fini(&s->authors);
    heap_fini(&s->kept_by[false]);
    heap_fini(&s->kept_by[true]);
}

int kept_check(const struct sched *s, struct ms_err *err)
{
    size_t slot = 0;
    uint64_t n[2] = {0, 0};
    struct table_link *link = table_walk(&s->authors, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->authors, &slot, link)) {
        const struct author *author = list_item(link, struct author, link);
        const struct share *share = &author->share;
        HOLDS(share->n > 0 && share->oldest == author->first->numbers[author->at] &&
                  author->last->next == NULL &&
                  author->last->numbers[author->end - 1] <= s->last_event,
              "%s has %llu events, and which is not known", author->name, (ull)share->n);
        n[author->of_job] += share->n;
    }
    HOLDS(n[false] == s->n_kept[false] && n[true] == s->n_kept[true] &&
              (s->loading || !is_over(s) || (s->due & DUE_HISTORY) != 0),
          "%llu events of jobs and %llu others are counted by author, %llu and %llu are kept",
          (ull)n[true], (ull)n[false], (ull)s->n_kept[true], (ull)s->n_kept[false]);
    int rc = heap_check(&s->kept_by[false], "authors of what happened to nodes", err);
    return rc == 0 ? heap_check(&s->kept_by[true], "authors of what happened to jobs", err) : rc;
}
