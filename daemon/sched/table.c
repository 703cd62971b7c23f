/* table.c - a hash table of links that live inside the objects it finds */
#include "daemon/sched/table.h"

#include "proto/err.h"
#include "proto/rng.h"

#include <stdlib.h>
#include <string.h>

int table_init(struct table *table, size_t n_slots)
{
    table->slots = calloc(n_slots, sizeof(struct table_link *));
    table->n_slots = table->slots != NULL ? n_slots : 0;
    table->n = 0;
    return table->slots != NULL ? 0 : MS_E_NOMEM;
}

void table_fini(struct table *table)
{
    free(table->slots);
    table->slots = NULL;
    table->n_slots = 0;
    table->n = 0;
}

static void table_grow(struct table *table)
{
    size_t n_slots = table->n_slots * 2;
    struct table_link **slots = calloc(n_slots, sizeof(struct table_link *));
    if (slots == NULL) {
        return; /* longer chains still find everything */
    }
    for (size_t i = 0; i < table->n_slots; i++) {
        struct table_link *link = table->slots[i];
        while (link != NULL) {
            struct table_link *next = link->next;
            struct table_link **slot = &slots[link->hash & (n_slots - 1)];
            link->next = *slot;
            *slot = link;
            link = next;
        }
    }
    free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
}

void table_add(struct table *table, struct table_link *link, uint64_t hash)
{
    if (table->n >= table->n_slots) {
        table_grow(table);
    }
    struct table_link **slot = &table->slots[hash & (table->n_slots - 1)];
    link->hash = hash;
    link->next = *slot;
    *slot = link;
    table->n++;
}

void table_remove(struct table *table, struct table_link *link)
{
    struct table_link **at = &table->slots[link->hash & (table->n_slots - 1)];
    while (*at != NULL && *at != link) {
        at = &(*at)->next;
    }
    if (*at == link) {
        *at = link->next;
        link->next = NULL;
        table->n--;
    }
}

static struct table_link *skip_to(struct table_link *link, uint64_t hash)
{
    while (link != NULL && link->hash != hash) {
        link = link->next;
    }
    return link;
}

struct table_link *table_first(const struct table *table, uint64_t hash)
{
    return skip_to(table->slots[hash & (table->n_slots - 1)], hash);
}

struct table_link *table_next(const struct table_link *link)
{
    return skip_to(link->next, link->hash);
}

struct table_link *table_walk(const struct table *table, size_t *slot,
                              const struct table_link *link)
{
    struct table_link *next = link != NULL ? link->next : NULL;
    while (next == NULL && *slot < table->n_slots) {
        next = table->slots[(*slot)++];
    }
    return next;
}

uint64_t table_hash_u64(uint64_t key)
{
    return ms_rng_mix(key);
}

uint64_t table_hash_text(uint64_t seed, const char *text)
{
    uint64_t hash = seed;
    size_t left = strlen(text);
    while (left >= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = ms_rng_mix(hash ^ word);
        text += 8;
        left -= 8;
    }
    uint64_t tail = (uint64_t)left << 56;
    memcpy(&tail, text, left);
    return ms_rng_mix(hash ^ tail ^ ((uint64_t)left << 56));
}
