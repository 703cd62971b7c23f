/* table.h - a hash table of links that live inside the objects it finds
 *
 *     slots   0 -> link -> link
 *             1
 *             2 -> link            the owner compares keys; the table only knows hashes
 *
 * It never owns an object. Growing is amortised; where memory for more slots is missing the chains
 * just get longer, so adding cannot fail. */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table_link {
    struct table_link *next;
    uint64_t hash;
};

struct table {
    struct table_link **slots;
    size_t n_slots; /* a power of two */
    size_t n;
};

int table_init(struct table *table, size_t n_slots); /* 0 or MS_E_NOMEM */
void table_fini(struct table *table);                /* objects stay */
/* link must be in no table. */
void table_add(struct table *table, struct table_link *link, uint64_t hash);
/* link must be in this table. */
void table_remove(struct table *table, struct table_link *link);
/* First link with this hash, and the next one after link; NULL at the end. */
struct table_link *table_first(const struct table *table, uint64_t hash);
struct table_link *table_next(const struct table_link *link);
/* Any link at or behind slot *slot, which is moved on; NULL at the end. Start with *slot 0 and link
 * NULL. The link returned may be removed before the next call only if next was read first. */
struct table_link *table_walk(const struct table *table, size_t *slot,
                              const struct table_link *link);

uint64_t table_hash_u64(uint64_t key);
/* seed: per process, so that nobody outside can choose names that collide. */
uint64_t table_hash_text(uint64_t seed, const char *text);

#endif
