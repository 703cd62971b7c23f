/* heap.c - a binary heap of links that live inside the objects it orders */
#include "daemon/sched/heap.h"

#include "daemon/sched/memory.h"

#include "proto/err.h"

#include <stdlib.h>

void heap_init(struct heap *heap,
               int (*before)(const struct heap_link *a, const struct heap_link *b))
{
    heap->items = NULL;
    heap->n = 0;
    heap->room = 0;
    heap->before = before;
}

void heap_fini(struct heap *heap)
{
    free(heap->items);
    heap->items = NULL;
    heap->n = 0;
    heap->room = 0;
}

static void put(struct heap *heap, size_t i, struct heap_link *link)
{
    heap->items[i] = link;
    link->at = i + 1;
}

static void sift_up(struct heap *heap, size_t i, struct heap_link *link)
{
    while (i > 0 && heap->before(link, heap->items[(i - 1) / 2])) {
        put(heap, i, heap->items[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(heap, i, link);
}

static void sift_down(struct heap *heap, size_t i, struct heap_link *link)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap->n) {
            break;
        }
        if (child + 1 < heap->n && heap->before(heap->items[child + 1], heap->items[child])) {
            child++;
        }
        if (!heap->before(heap->items[child], link)) {
            break;
        }
        put(heap, i, heap->items[child]);
        i = child;
    }
    put(heap, i, link);
}

int heap_add(struct heap *heap, struct heap_link *link)
{
    if (heap->n == heap->room) {
        size_t room = heap->room == 0 ? 16 : heap->room * 2;
        heap->items = memory_resize(heap->items, room * sizeof(struct heap_link *));
        heap->room = room;
    }
    heap->n++;
    sift_up(heap, heap->n - 1, link);
    return 0;
}

void heap_remove(struct heap *heap, struct heap_link *link)
{
    if (link->at == 0) {
        return;
    }
    size_t i = link->at - 1;
    struct heap_link *last = heap->items[--heap->n];
    link->at = 0;
    if (last == link) {
        return;
    }
    if (i > 0 && heap->before(last, heap->items[(i - 1) / 2])) {
        sift_up(heap, i, last);
    } else {
        sift_down(heap, i, last);
    }
}

struct heap_link *heap_first(const struct heap *heap)
{
    return heap->n > 0 ? heap->items[0] : NULL;
}
