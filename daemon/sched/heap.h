/* heap.h - a binary heap of links that live inside the objects it orders; removal from the middle
 */
#ifndef HEAP_H
#define HEAP_H

#include <stddef.h>

struct heap_link {
    size_t at; /* index + 1; 0: in no heap */
};

struct heap {
    struct heap_link **items;
    size_t n;
    size_t room;
    int (*before)(const struct heap_link *a, const struct heap_link *b);
};

void heap_init(struct heap *heap,
               int (*before)(const struct heap_link *a, const struct heap_link *b));
void heap_fini(struct heap *heap);                           /* objects stay */
int heap_add(struct heap *heap, struct heap_link *link);     /* 0 or MS_E_NOMEM */
void heap_remove(struct heap *heap, struct heap_link *link); /* one in no heap: nothing happens */
struct heap_link *heap_first(const struct heap *heap);       /* NULL: empty */

#endif
