/* facts.c - what an event tells programs: a JSON object beside its text */
#include "daemon/sched/facts.h"

#include "daemon/sched/emit.h"
#include "proto/macros.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TAIL = 96 }; /* what closes it, and the number of what was left out */

MS_PRINTF(3, 4)
static void put(struct facts *facts, size_t room, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const size_t left = room > facts->used ? room - facts->used : 0;
    const int n = vsnprintf(facts->text + facts->used, left, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= left) {
        facts->is_over = true;
        facts->text[facts->used] = '\0';
        return;
    }
    facts->used += (size_t)n;
}

#define put_in(facts, ...) put((facts), MS_FACTS_MAX - TAIL, __VA_ARGS__)

static bool is_first(const struct facts *facts)
{
    const char last = facts->text[facts->used - 1];
    return last == '{' || last == '[';
}

static void put_key(struct facts *facts, const char *key)
{
    put_in(facts, "%s\"%s\":", is_first(facts) ? "" : ",", key);
}

void facts_begin(struct facts *facts)
{
    facts->used = 1;
    facts->is_over = false;
    facts->left_out = 0;
    facts->text[0] = '{';
    facts->text[1] = '\0';
}

/* JSON has no larger one that all who read it can take. */
void facts_number(struct facts *facts, const char *key, uint64_t value)
{
    put_key(facts, key);
    put_in(facts, "%lld", value > INT64_MAX ? (long long)INT64_MAX : (long long)value);
}

void facts_flag(struct facts *facts, const char *key, bool value)
{
    put_key(facts, key);
    put_in(facts, value ? "true" : "false");
}

void facts_text(struct facts *facts, const char *key, const char *value)
{
    put_key(facts, key);
    put_in(facts, "\"");
    for (const char *at = value; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\') {
            put_in(facts, "\\%c", c);
        } else if (c < 0x20) {
            put_in(facts, "\\u%04x", c);
        } else {
            put_in(facts, "%c", c);
        }
    }
    put_in(facts, "\"");
}

void facts_list(struct facts *facts, const char *key)
{
    put_key(facts, key);
    put_in(facts, "[");
}

void facts_item(struct facts *facts)
{
    facts->item_at = facts->used;
    put_in(facts, is_first(facts) ? "{" : ",{");
}

/* From the first that does not fit on none is told: they are in their order. */
void facts_item_end(struct facts *facts)
{
    put_in(facts, "}");
    if (facts->is_over || facts->left_out > 0) {
        facts->used = facts->item_at;
        facts->text[facts->used] = '\0';
        facts->is_over = false;
        facts->left_out++;
    }
}

void facts_list_end(struct facts *facts, const char *left_out_key)
{
    put(facts, MS_FACTS_MAX, "]");
    if (facts->left_out > 0) {
        put(facts, MS_FACTS_MAX, ",\"%s\":%u", left_out_key, facts->left_out);
    }
}

const char *facts_end(struct sched *s, struct facts *facts)
{
    put(facts, sizeof(facts->text), "}");
    if (facts->is_over) { /* none are better than some that nobody can read */
        return "";
    }
    char *text = emit_alloc(s, facts->used + 1);
    memcpy(text, facts->text, facts->used + 1);
    return text;
}
