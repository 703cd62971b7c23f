/* model_names.c - what nodes and hosts are called, each name once, and which of them has it
 *
 *     slots   hash of a name -> number of it, from 1 on -> names -> node, host
 *
 * A large cluster asks for them in each event: to compare all its names took most of the time. */
#include "tests/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t slot_of(const struct model *m, const char *text)
{
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    for (const char *at = text; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * 1099511628211U;
    }
    size_t slot = hash % m->n_slots;
    while (m->slots[slot] != 0 && strcmp(m->names.at[m->slots[slot] - 1].text, text) != 0) {
        slot = (slot + 1) % m->n_slots;
    }
    return slot;
}

static void slots_grow(struct model *m)
{
    m->n_slots = m->n_slots == 0 ? 64 : 2 * m->n_slots;
    free(m->slots);
    m->slots = calloc(m->n_slots, sizeof(*m->slots));
    if (m->slots == NULL) {
        abort();
    }
    for (size_t i = 0; i < m->names.n; i++) {
        m->slots[slot_of(m, m->names.at[i].text)] = (uint32_t)i + 1;
    }
}

uint32_t m_name(struct model *m, const char *text)
{
    if (2 * (m->names.n + 1) > m->n_slots) {
        slots_grow(m);
    }
    uint32_t *number = &m->slots[slot_of(m, text)];
    if (*number == 0) {
        struct m_name *name = M_MORE(m->names, struct m_name);
        snprintf(name->text, sizeof(name->text), "%s", text);
        *number = (uint32_t)m->names.n;
    }
    return *number;
}

struct m_name *m_name_at(const struct model *m, uint32_t number)
{
    return &m->names.at[number - 1];
}

struct m_node *m_node_find(struct model *m, const char *id)
{
    const uint32_t number = m->n_slots > 0 ? m->slots[slot_of(m, id)] : 0;
    const size_t node = number != 0 ? m_name_at(m, number)->node : 0;
    return node != 0 ? &m->nodes.at[node - 1] : NULL;
}
