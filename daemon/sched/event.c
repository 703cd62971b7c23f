/* event.c - what happened: an append-only list that the database keeps */
#include "daemon/sched/event.h"

#include "daemon/sched/state.h"

void event_record(struct sched *s, const char *kind, uint64_t job, const char *node,
                  const char *text)
{
    if (!s->cfg.has_database || s->refusal[0] != '\0') {
        return;
    }
    struct sched_event_row *row = emit_alloc(s, sizeof(*row));
    *row = (struct sched_event_row){.seq = ++s->last_event,
                                    .at_ms = s->now.wall_ms,
                                    .kind = kind,
                                    .job = job,
                                    .node = emit_text(s, "%.*s", MS_NAME_MAX, node),
                                    .text = emit_text(s, "%s", text)};
    emit_put_event(s, row);
}
