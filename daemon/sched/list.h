/* list.h - intrusive doubly linked rings, for lists whose items know where they stand */
#ifndef LIST_H
#define LIST_H

#include <stddef.h>

struct list {
    struct list *next, *prev;
};

/* The struct of the given type whose member is the list at ptr. */
#define list_item(ptr, type, member)                                                               \
    ((type *)(void *)((char *)(void *)(ptr)-offsetof(type, member)))

/* For heads, and for items before they are first added. */
static inline void list_init(struct list *list)
{
    list->next = list;
    list->prev = list;
}

static inline int list_empty(const struct list *list)
{
    return list->next == list;
}

/* The item must be in no list. */
static inline void list_add_tail(struct list *head, struct list *item)
{
    item->next = head;
    item->prev = head->prev;
    head->prev->next = item;
    head->prev = item;
}

/* An item that is in no list may be removed again. */
static inline void list_remove(struct list *item)
{
    item->next->prev = item->prev;
    item->prev->next = item->next;
    list_init(item);
}

#endif
