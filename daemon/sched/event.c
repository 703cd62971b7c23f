/* event.c - what happened: an append-only list that the database keeps, and who asks for it */
#include "daemon/sched/event.h"

#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWER_BYTES = 1024 }; /* what an answer takes here; its rows are the store's */

/* Whoever waits for such an event is answered when this one is over. */
static void wake_followers(struct sched *s, uint64_t job, const char *node)
{
    for (struct list *at = s->followers.next; at != &s->followers;) {
        struct follower *follower = list_item(at, struct follower, link);
        at = at->next;
        if ((follower->job == 0 || follower->job == job) &&
            (follower->node_id[0] == '\0' || strcmp(follower->node_id, node) == 0)) {
            list_remove(&follower->link);
            list_add_tail(&s->askers, &follower->link);
        }
    }
}

static void record(struct sched *s, const char *kind, uint64_t job, const char *node,
                   const char *author, const char *text, const char *facts)
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
                                    .principal = emit_text(s, "%.*s", MS_PRINCIPAL_MAX, author),
                                    .text = emit_text(s, "%s", text),
                                    .facts = facts};
    emit_put_event(s, row);
    kept_add(s, row->seq, job != 0, row->principal);
    kept_trim(s);
    wake_followers(s, job, row->node);
}

void event_of_job(struct sched *s, const char *kind, const struct job *job, const char *text,
                  const char *facts)
{
    record(s, kind, job->id, "", job->owner, text, facts);
}

void event_of_node(struct sched *s, const char *kind, const struct node *node, const char *text,
                   const char *facts)
{
    record(s, kind, 0, node->info.node_id, node->info.principal, text, facts);
}

void event_of_all(struct sched *s, const char *kind, const char *author, const char *text,
                  const char *facts)
{
    record(s, kind, 0, "", author, text, facts);
}

const char *event_number(struct sched *s, const char *key, uint64_t value)
{
    struct facts facts;
    facts_begin(&facts);
    facts_number(&facts, key, value);
    return facts_end(s, &facts);
}

int sched_load_event(struct sched *s, const struct sched_event_row *row, struct ms_err *err)
{
    int rc = sched_load_meta(s, "next_event", row->seq + 1, err);
    if (rc == 0) {
        kept_add(s, row->seq, row->job != 0, row->principal);
        rc = stall_load(s, row, err);
    }
    return rc;
}

/* ---- questions ----------------------------------------------------------------------------------
 */

/* True if the request was answered here. */
static bool query_refused(struct sched *s, const struct conn *conn, uint32_t frame_id,
                          const Ms__EventQuery *msg)
{
    if (!s->cfg.has_database) {
        emit_error(s, conn->id, frame_id, MS_E_UNSUPPORTED,
                   "this scheduler has no database, and so keeps no events: its log has them");
    } else if (msg->before != 0 && msg->wait) {
        emit_error(s, conn->id, frame_id, MS_E_INVALID,
                   "events before %llu are there or will never be: only newer ones can be waited "
                   "for",
                   (unsigned long long)msg->before);
    } else if (conn->follower != NULL) {
        emit_error(s, conn->id, frame_id, MS_E_FULL,
                   "this connection waits for events already, which is the limit: open another "
                   "one");
    } else {
        return false;
    }
    return true;
}

void on_event_query(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__EventQuery *msg = (const Ms__EventQuery *)event->msg;
    if (query_refused(s, conn, event->id, msg)) {
        return;
    }
    struct follower *follower = calloc(1, sizeof(*follower));
    if (follower == NULL) {
        emit_error(s, conn->id, event->id, MS_E_NOMEM, "no memory for a list of events: try again");
        return;
    }
    follower->conn = conn;
    follower->frame_id = event->id;
    follower->after = msg->after;
    follower->before = msg->before;
    follower->job = msg->job;
    ms_text_copy(follower->node_id, sizeof(follower->node_id), msg->node_id);
    follower->limit = msg->limit > 0 && msg->limit < MS_EVENTS_PAGE ? msg->limit : MS_EVENTS_PAGE;
    follower->wait = msg->wait;
    conn->follower = follower;
    list_add_tail(&s->askers, &follower->link);
}

void follower_drop(struct conn *conn)
{
    if (conn->follower != NULL) {
        list_remove(&conn->follower->link);
        free(conn->follower);
        conn->follower = NULL;
    }
}

/* The database is not asked for what is not there: an asker at the end, or one who knows more than
 * we do, because his scheduler had another database. */
static void answer_nothing(struct sched *s, const struct follower *follower)
{
    Ms__EventList msg = MS__EVENT_LIST__INIT;
    msg.at = s->last_event;
    msg.last = s->last_event;
    emit_send(s, follower->conn->id, MS_MSG_EVENT_LIST, follower->frame_id, &msg.base);
}

static void answer(struct sched *s, struct follower *follower)
{
    if (follower->before == 0 && follower->after == s->last_event && follower->wait) {
        list_remove(&follower->link);
        list_add_tail(&s->followers, &follower->link);
        return;
    }
    if (follower->before == 0 && follower->after >= s->last_event) {
        answer_nothing(s, follower);
    } else {
        s->event_reads++;
        emit_read_events(s, follower->conn->id,
                         &(struct sched_read){.kind = SCHED_READ_EVENTS,
                                              .frame_id = follower->frame_id,
                                              .job = follower->job,
                                              .after = follower->after,
                                              .before = follower->before,
                                              .last = s->last_event,
                                              .node_id = follower->node_id,
                                              .limit = follower->limit});
    }
    follower_drop(follower->conn);
}

void event_settle(struct sched *s)
{
    s->due &= ~(unsigned)DUE_EVENTS;
    while (!list_empty(&s->askers)) {
        if (s->event_reads >= MS_EVENT_READS || !emit_reserve(s, ANSWER_BYTES)) {
            s->due |= DUE_EVENTS; /* in their order, in the next tick */
            return;
        }
        answer(s, list_item(s->askers.next, struct follower, link));
    }
}
