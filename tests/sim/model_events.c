/* model_events.c - the model's list of what happened: who asks is told all of it, once, and no more
 */
#include "tests/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* What the last commit wrote may not be there: its numbers are given again. */
static void forget_above(struct model *m, uint64_t number)
{
    while (m->events.n > 0 && m->events.at[m->events.n - 1].number > number) {
        m->events.n--;
    }
}

void m_events_start(struct model *m)
{
    m->last_event = m->w->disk.last_event;
    forget_above(m, m->last_event);
}

void m_event_put(struct model *m, const struct sched_event_row *row)
{
    if (row->seq != m->last_event + 1) {
        sim_fail(m->w, "model: event %llu is written behind event %llu", (ull)row->seq,
                 (ull)m->last_event);
    }
    struct m_event *event = M_MORE(m->events, struct m_event);
    m->last_event = row->seq;
    event->number = row->seq;
    event->job = row->job;
    event->at_ms = row->at_ms;
    snprintf(event->kind, sizeof(event->kind), "%s", row->kind);
    snprintf(event->node, sizeof(event->node), "%s", row->node);
    snprintf(event->text, sizeof(event->text), "%s", row->text);
}

static bool fits(const struct m_event *event, uint64_t job, const char *node)
{
    return (job == 0 || event->job == job) && (node[0] == '\0' || strcmp(event->node, node) == 0);
}

/* ---- questions ----------------------------------------------------------------------------------
 */

void m_ask_events(struct m_ask *ask, const struct model *m, const Ms__EventQuery *msg)
{
    ask->job = msg->job;
    ask->offset = msg->after;
    ask->before = msg->before;
    ask->bytes_max = msg->limit > 0 && msg->limit < MS_EVENTS_PAGE ? msg->limit : MS_EVENTS_PAGE;
    snprintf(ask->node, sizeof(ask->node), "%s", msg->node_id);
    ask->watching = msg->wait && msg->before == 0 && msg->after == m->last_event;
}

/* Only for what has not happened. Answers have a budget: the core says that it goes on at once. */
bool m_events_may_wait(const struct model *m, const struct m_ask *ask)
{
    bool waits = ask->watching;
    for (size_t i = m->events.n; i > 0 && m->events.at[i - 1].number > ask->offset; i--) {
        waits = waits && !fits(&m->events.at[i - 1], ask->job, ask->node);
    }
    return waits || sched_deadline(m->w->sched) <= m->mono;
}

bool m_events_refusal_is_fair(const struct model *m, const struct m_ask *ask, int32_t code)
{
    bool other = false;
    for (size_t i = 0; i < m->asks.n; i++) {
        other = other || (&m->asks.at[i] != ask && m->asks.at[i].conn == ask->conn &&
                          m->asks.at[i].type == MS_MSG_EVENT_QUERY);
    }
    return (code == MS_E_FULL && other) || (code == MS_E_INVALID && ask->before != 0);
}

/* ---- answers ------------------------------------------------------------------------------------
 */

/* Without a look at the disk: there is nothing behind the number. */
void m_judge_no_events(struct model *m, const struct m_ask *ask, const Ms__EventList *msg)
{
    if (msg->n_events > 0 || msg->more || msg->at != m->last_event || msg->last != m->last_event ||
        ask->before != 0 || ask->offset < m->last_event || ask->watching) {
        sim_fail(m->w, "model: events after %llu are asked for, and %zu up to %llu are told",
                 (ull)ask->offset, msg->n_events, (ull)msg->at);
    }
}

void m_judge_events_read(struct model *m, const struct sched_effect *effect)
{
    const struct sched_read *read = effect->read;
    struct m_ask *ask = m_ask_find(m, effect->conn, read->frame_id);
    if (ask == NULL || ask->type != MS_MSG_EVENT_QUERY || ask->job != read->job ||
        ask->offset != read->after || ask->before != read->before ||
        ask->bytes_max != read->limit || strcmp(ask->node, read->node_id) != 0 ||
        read->last != m->last_event || (read->before == 0 && read->after >= read->last)) {
        sim_fail(m->w, "model: connection %llu is told of events after %llu, up to %llu of %llu",
                 (ull)effect->conn, (ull)read->after, (ull)read->last, (ull)m->last_event);
        return;
    }
    m_ask_drop(m, ask);
}

Ms__EventList *m_events_page(const struct model *m, const struct sched_read *read)
{
    Ms__EventList *list = calloc(
        1, sizeof(*list) + MS_EVENTS_PAGE * (sizeof(Ms__EventInfo *) + sizeof(Ms__EventInfo)));
    if (list == NULL) {
        abort();
    }
    ms__event_list__init(list);
    list->events = (Ms__EventInfo **)(list + 1);
    Ms__EventInfo *infos = (Ms__EventInfo *)(list->events + MS_EVENTS_PAGE);
    size_t looked = 0;
    for (size_t i = 0; i < m->events.n && !list->more; i++) {
        size_t at = read->before != 0 ? m->events.n - 1 - i : i;
        const struct m_event *event = &m->events.at[at];
        if (event->number <= read->after || event->number > read->last ||
            (read->before != 0 && event->number >= read->before)) {
            continue;
        }
        bool is_asked_for = fits(event, read->job, read->node_id);
        if (looked++ == MS_EVENTS_LOOK || (is_asked_for && list->n_events == read->limit)) {
            list->more = 1;
            break;
        }
        list->at = event->number;
        if (is_asked_for) {
            Ms__EventInfo *info = list->events[list->n_events] = &infos[list->n_events];
            list->n_events++;
            ms__event_info__init(info);
            info->number = event->number;
            info->at_ms = event->at_ms;
            info->kind = (char *)event->kind;
            info->job = event->job;
            info->node_id = (char *)event->node;
            info->text = (char *)event->text;
        }
    }
    list->at = list->more || read->before != 0 ? list->at : read->last;
    list->last = read->last;
    list->first = m->events.n > 0 ? m->events.at[0].number : 0;
    return list;
}

void m_judge_events(struct model *m, const struct sched_read *read, const Ms__EventList *msg)
{
    Ms__EventList *want = m_events_page(m, read);
    bool same = msg->n_events == want->n_events && msg->at == want->at &&
                !msg->more == !want->more && msg->last == want->last && msg->first == want->first;
    for (size_t i = 0; i < want->n_events && same; i++) {
        const Ms__EventInfo *a = msg->events[i];
        const Ms__EventInfo *b = want->events[i];
        same = a->number == b->number && a->at_ms == b->at_ms && a->job == b->job &&
               strcmp(a->kind, b->kind) == 0 && strcmp(a->node_id, b->node_id) == 0 &&
               strcmp(a->text, b->text) == 0;
    }
    if (!same) {
        sim_fail(m->w, "model: of events %llu to %llu (before %llu) %zu are told, and %zu happened",
                 (ull)read->after, (ull)read->last, (ull)read->before, msg->n_events,
                 want->n_events);
    }
    free(want);
}
