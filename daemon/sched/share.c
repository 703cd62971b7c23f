/* share.c - who takes the most of what all share */
#include "daemon/sched/share.h"

#include "daemon/sched/list.h"

static int loses_before(const struct heap_link *a, const struct heap_link *b)
{
    const struct share *x = list_item(a, const struct share, most);
    const struct share *y = list_item(b, const struct share, most);
    return x->n != y->n ? x->n > y->n : x->oldest < y->oldest;
}

void shares_init(struct heap *heap)
{
    heap_init(heap, loses_before);
}

void share_set(struct heap *heap, struct share *share, uint64_t n, uint64_t oldest)
{
    if (n == share->n && oldest == share->oldest) {
        return;
    }
    heap_remove(heap, &share->most);
    share->n = n;
    share->oldest = oldest;
    if (n > 0) {
        heap_add(heap, &share->most);
    }
}

struct share *share_most(const struct heap *heap)
{
    struct heap_link *first = heap_first(heap);
    return first != NULL ? list_item(first, struct share, most) : NULL;
}
