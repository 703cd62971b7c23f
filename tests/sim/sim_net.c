/* sim_net.c - links in memory: delays, order within a link, closes, and silence */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* When a frame sent now arrives, not before the last one; SIM_FOREVER: never. */
static int64_t arrival(struct world *w, const struct sim_link *link, int64_t *last)
{
    int64_t at = w->now + 1 + (int64_t)sim_below(w, sim_chance(w, 5) ? 200 : 10);
    if (w->now >= link->stalled_from && w->now < link->stalled_until) {
        if (link->stalled_until == SIM_FOREVER) {
            return SIM_FOREVER;
        }
        at += link->stalled_until - w->now;
    }
    *last = at > *last ? at : *last;
    return *last;
}

uint32_t net_open(struct world *w, bool is_node, uint32_t actor, uint64_t epoch)
{
    if (w->sched == NULL) {
        return 0;
    }
    if (w->n_links == SIM_LINKS_MAX) {
        sim_fail(w, "too many connections: somebody reconnects without end");
        return 0;
    }
    if (w->n_links == w->links_room) {
        w->links_room = w->links_room == 0 ? 256 : 2 * w->links_room;
        w->links = realloc(w->links, w->links_room * sizeof(*w->links));
    }
    struct sim_link *link = &w->links[w->n_links++];
    memset(link, 0, sizeof(*link));
    link->is_node = is_node;
    link->is_evil = (actor & SIM_IS_EVIL) != 0;
    link->actor = actor & ~SIM_IS_EVIL;
    link->epoch = epoch;
    link->open_here = true;
    link->open_there = true;
    link->stalled_from = SIM_FOREVER;
    link->stalled_until = SIM_FOREVER;
    link->last_up = arrival(w, link, &link->last_up);
    sim_at(w, link->last_up, SIM_OPENED, w->n_links, w->boot, 0);
    return w->n_links;
}

void net_up(struct world *w, uint32_t number, uint16_t type, uint32_t id,
            const ProtobufCMessage *msg)
{
    struct sim_link *link = &w->links[number - 1];
    struct ms_err err = {0, ""};
    int64_t at = arrival(w, link, &link->last_up);
    if (at == SIM_FOREVER || !link->open_there) {
        return;
    }
    size_t size = ms_wire_size(msg);
    struct sim_event *event = sim_at(w, at, SIM_TO_SCHED, number, w->boot, size);
    if (ms_wire_pack(type, id, msg, sim_event_bytes(event), size, &err) < 0) {
        sim_fail(w, "an actor made a bad frame: %s", err.text);
    }
}

void net_down(struct world *w, uint32_t number, const uint8_t *frame, size_t size)
{
    struct sim_link *link = &w->links[number - 1];
    int64_t at = arrival(w, link, &link->last_down);
    if (at == SIM_FOREVER || !link->open_here) {
        return;
    }
    struct sim_event *event = sim_at(w, at, SIM_TO_ACTOR, number, link->epoch, size);
    memcpy(sim_event_bytes(event), frame, size);
}

void net_close_here(struct world *w, uint32_t number)
{
    struct sim_link *link = &w->links[number - 1];
    if (link->open_here) {
        link->open_here = false;
        int64_t at = arrival(w, link, &link->last_up);
        if (at != SIM_FOREVER && link->open_there) {
            sim_at(w, at, SIM_CLOSED, number, w->boot, 0);
        }
    }
}

void net_close_there(struct world *w, uint32_t number)
{
    struct sim_link *link = &w->links[number - 1];
    if (link->open_there) {
        link->open_there = false;
        int64_t at = arrival(w, link, &link->last_down);
        if (at != SIM_FOREVER && link->open_here) {
            sim_at(w, at, SIM_HUNG_UP, number, link->epoch, 0);
        }
    }
}

void net_scheduler_died(struct world *w)
{
    bool power = sim_chance(w, 20); /* its kernel died too: nobody is told */
    for (uint32_t number = 1; number <= w->n_links; number++) {
        struct sim_link *link = &w->links[number - 1];
        if (link->open_there && power) {
            link->open_there = false;
            link->stalled_from = w->now;
            link->stalled_until = SIM_FOREVER;
        } else {
            net_close_there(w, number);
        }
    }
}

bool net_is_healthy(const struct world *w, uint32_t number, int64_t since)
{
    const struct sim_link *link = &w->links[number - 1];
    return link->open_here && (link->stalled_from > w->now || link->stalled_until < since);
}
