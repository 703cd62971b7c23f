/* throttle.c - lines that others can provoke: a burst of each event, then a trickle, and a count */
#include "daemon/throttle.h"

#include <string.h>

static int64_t burst_of(const struct throttle_slot *slot)
{
    return 1000LL * (slot->is_strangers ? THROTTLE_STRANGERS : THROTTLE_BURST);
}

static struct throttle_slot *find(struct throttle *throttle, const char *line, int64_t now_ms)
{
    size_t length = strcspn(line, " ");
    length =
        length < sizeof(throttle->slots[0].event) ? length : sizeof(throttle->slots[0].event) - 1;
    for (size_t i = 0; i < throttle->n; i++) {
        struct throttle_slot *slot = &throttle->slots[i];
        if (strncmp(slot->event, line, length) == 0 && slot->event[length] == '\0') {
            return slot;
        }
    }
    if (throttle->n == THROTTLE_SLOTS) {
        return &throttle->slots[THROTTLE_SLOTS - 1];
    }
    struct throttle_slot *slot = &throttle->slots[throttle->n++];
    memcpy(slot->event, line, length);
    slot->event[length] = '\0';
    slot->is_strangers = strncmp(slot->event, "conn.", 5) == 0;
    slot->level = burst_of(slot);
    slot->at_ms = now_ms;
    return slot;
}

int throttle_pass(struct throttle *throttle, const char *line, int64_t now_ms,
                  unsigned long *ret_hidden)
{
    struct throttle_slot *slot = find(throttle, line, now_ms);
    int64_t passed = now_ms > slot->at_ms ? now_ms - slot->at_ms : 0;
    passed = passed < 3600000 ? passed : 3600000;
    slot->at_ms = now_ms;
    slot->level += passed * (slot->is_strangers ? 1 : THROTTLE_PER_S);
    slot->level = slot->level < burst_of(slot) ? slot->level : burst_of(slot);
    if (slot->level < 1000) {
        slot->hidden_since_ms = slot->hidden == 0 ? now_ms : slot->hidden_since_ms;
        slot->hidden++;
        return 0;
    }
    slot->level -= 1000;
    *ret_hidden = 0;
    if (slot->hidden > 0 && now_ms - slot->hidden_since_ms >= THROTTLE_REPORT_MS) {
        *ret_hidden = slot->hidden;
        slot->hidden = 0;
    }
    return 1;
}

const char *throttle_next_report(struct throttle *throttle, int64_t now_ms,
                                 unsigned long *ret_hidden)
{
    for (size_t i = 0; i < throttle->n; i++) {
        struct throttle_slot *slot = &throttle->slots[i];
        if (slot->hidden > 0 && now_ms - slot->hidden_since_ms >= THROTTLE_REPORT_MS) {
            *ret_hidden = slot->hidden;
            slot->hidden = 0;
            return slot->event;
        }
    }
    return NULL;
}
