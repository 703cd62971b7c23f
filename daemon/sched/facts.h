/* facts.h - what an event tells programs: a JSON object beside its text
 *
 *     {"generation":2,"ranks":[{"rank":1,"node":"w7"}, ...],"ranks_left_out":3}
 *
 * Keys and what they say: msctl(1), JSON. Bounded (MS_FACTS_MAX): of a list that does not fit the
 * first ones are told, and how many are not. */
#ifndef SCHED_FACTS_H
#define SCHED_FACTS_H

#include "proto/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sched;

struct facts {
    size_t used;
    bool is_over;      /* something did not fit */
    size_t item_at;    /* where the one of a list began that is written */
    uint32_t left_out; /* of that list */
    char text[MS_FACTS_MAX + 1];
};

void facts_begin(struct facts *facts);
void facts_number(struct facts *facts, const char *key, uint64_t value); /* up to INT64_MAX */
void facts_flag(struct facts *facts, const char *key, bool value);
void facts_text(struct facts *facts, const char *key, const char *value);
/* One list, after all else: its items are objects, of which those that do not fit are left out. */
void facts_list(struct facts *facts, const char *key);
void facts_item(struct facts *facts);
void facts_item_end(struct facts *facts);
void facts_list_end(struct facts *facts, const char *left_out_key);
/* In tick memory. */
const char *facts_end(struct sched *s, struct facts *facts);

#endif
