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
        free(m->events.at[--m->events.n].facts);
    }
}

void m_events_end(struct model *m)
{
    forget_above(m, 0);
    free(m->events.at);
}

void m_events_start(struct model *m)
{
    m->last_event = m->w->disk.last_event;
    forget_above(m, m->last_event);
    m->n_events = 0;
    for (size_t i = 0; i < m->events.n; i++) {
        m->events.at[i].gone = !disk_has_event(&m->w->disk, m->events.at[i].number);
        m->n_events += !m->events.at[i].gone;
    }
}

/* ---- whose they are, and whose go --------------------------------------------------------------
 */

/* Who registers the node, has registered it, or had when the rank was given to it. */
static bool is_of_node(const struct model *m, const char *node, const char *owner)
{
    for (size_t i = 0; i < m->conns.n; i++) {
        const struct m_conn *conn = &m->conns.at[i];
        if (conn->is_worker && strcmp(conn->peer.who.id, owner) == 0 &&
            (node[0] == '\0' || strcmp(conn->asked.id, node) == 0)) {
            return true;
        }
    }
    for (size_t i = 0; i < m->nodes.n; i++) {
        if (strcmp(m->nodes.at[i].id, node) == 0 && strcmp(m->nodes.at[i].owner, owner) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
            if (strcmp(job->ranks[rank].node, node) == 0 &&
                strcmp(job->ranks[rank].owner, owner) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void judge_owner(struct model *m, const struct sched_event_row *row)
{
    const struct m_job *job = row->job != 0 ? m_job_find(m, row->job) : NULL;
    bool fair = row->job != 0 ? job != NULL && strcmp(job->owner, row->principal) == 0
                : strncmp(row->kind, "host.", 5) == 0 ? true
                : strncmp(row->kind, "scheduler.", 10) == 0
                    ? row->principal[0] == '\0'
                    : is_of_node(m, row->node, row->principal);
    if (!fair) {
        sim_fail(m->w, "model: event %s of job %llu, node '%s' counts against '%s'", row->kind,
                 (ull)row->job, row->node, row->principal);
    }
}

static size_t count_of(const struct model *m, bool of_job, const char *owner)
{
    size_t n = 0;
    for (size_t i = 0; i < m->events.n; i++) {
        const struct m_event *event = &m->events.at[i];
        n += !event->gone && (event->job != 0) == of_job &&
             (owner == NULL || strcmp(event->owner, owner) == 0);
    }
    return n;
}

/* The larger of the two loses, jobs' only if it is; in it who has the most; of those who have as
 * much it is the oldest. */
static const struct m_event *must_go(const struct model *m)
{
    bool of_job = count_of(m, true, NULL) > count_of(m, false, NULL);
    const struct m_event *worst = NULL;
    size_t most = 0;
    for (size_t i = 0; i < m->events.n; i++) {
        const struct m_event *event = &m->events.at[i];
        if (!event->gone && (event->job != 0) == of_job &&
            count_of(m, of_job, event->owner) > most) {
            most = count_of(m, of_job, event->owner);
            worst = event;
        }
    }
    return worst;
}

void m_event_drop(struct model *m, uint64_t number)
{
    const struct m_event *event = must_go(m);
    if (m->n_events <= m->w->events_kept_max || event == NULL || event->number != number) {
        sim_fail(m->w, "model: of %zu events %llu goes, and %llu should", m->n_events, (ull)number,
                 event != NULL ? (ull)event->number : 0);
        return;
    }
    m->events.at[event - m->events.at].gone = true;
    m->n_events--;
}

void m_judge_events_kept(struct model *m)
{
    if (m->n_events > m->w->events_kept_max && !sched_tick_is_full(m->w->sched)) {
        sim_fail(m->w, "model: %zu events are kept, and %u are the limit", m->n_events,
                 m->w->events_kept_max);
    }
}

/* ---- what happens -------------------------------------------------------------------------------
 */

/* What the list tells of a job that stands still. */
struct stall {
    const struct m_event *first; /* of its losses, or its round without one; NULL: none is told */
    bool was_lost;               /* ... before the scheduler's last start */
    bool is_whole;               /* nothing of the job is gone from the list */
};

static struct stall stall_of(const struct model *m, uint64_t job)
{
    struct stall stall = {.is_whole = true};
    bool is_round = false;
    bool is_old = false; /* the scheduler was started since the last loss */
    for (size_t i = 0; i < m->events.n; i++) {
        const struct m_event *event = &m->events.at[i];
        if (strcmp(event->kind, "scheduler.started") == 0) {
            is_old = true;
            stall.was_lost = stall.first != NULL;
        }
        if (event->job != job) {
            continue;
        }
        stall.is_whole = stall.is_whole && !event->gone;
        if (strcmp(event->kind, "job.rank_lost") == 0) {
            stall.first = stall.first != NULL ? stall.first : event;
            is_old = false;
        } else if (strcmp(event->kind, "job.recovering") == 0) {
            stall.first = stall.first != NULL ? stall.first : event;
            is_round = true;
        } else if (strcmp(event->kind, "job.recovered") == 0 ||
                   strcmp(event->kind, "job.started") == 0 ||
                   strcmp(event->kind, "job.placed") == 0 ||
                   strcmp(event->kind, "job.not_saved") == 0 || /* all have ended */
                   (strcmp(event->kind, "job.adopted") == 0 && !is_round && is_old)) {
            stall.first = NULL;
            is_round = stall.was_lost = false;
        }
    }
    return stall;
}

/* How long a job stood still goes by the first loss, or round, that is stored, whichever scheduler
 * stored it; where none is it may be since that was back, and the words say so. */
static void judge_stall(struct model *m, const struct sched_event_row *row)
{
    static const char words[] = "it stood still for ";
    const char *at = strstr(row->text, words);
    const struct m_job *job = m_job_find(m, row->job);
    if (at == NULL && job != NULL && job->cancelled) {
        return; /* it goes on to its end alone */
    }
    const long long told = at != NULL ? atoll(at + strlen(words)) : -1;
    const bool is_least = strstr(row->text, " ms since the scheduler is back") != NULL;
    const struct stall stall = stall_of(m, row->job);
    const int64_t want = stall.first != NULL ? row->at_ms - stall.first->at_ms : 0;
    const int64_t lag = m->w->clock_stuck_until - m->w->clock_stuck_at; /* it slept, or 0 */
    /* only who was away was lost to the scheduler before */
    const int64_t least = stall.was_lost && job != NULL && job->went_on ? 0 : want - lag;
    /* ranks that know of another generation stand still without a loss: it may be longer */
    const int64_t most = stall.was_lost ? want : m->mono;
    const bool is_right = m->w->wall_jumps
                              ? told >= 0 && told <= MS_STALL_MAX_MS
                              : told >= least && told <= most && !(is_least && stall.was_lost);
    if (!is_right && stall.is_whole && !m->missed_events) {
        sim_fail(m->w, "model: job %llu was lost %lld ms ago, and it is told '%s'", (ull)row->job,
                 (long long)want, row->text);
    }
}

/* What programs are told is what people are told. */
static void judge_facts(struct model *m, const struct sched_event_row *row)
{
    const size_t n = strlen(row->facts);
    const char *stood = strstr(row->text, "stood still for ");
    const char *rank = strstr(row->text, ": rank ");
    unsigned long long generation = 0;
    char want[3][64] = {"", "", ""};
    if (sscanf(row->text, "generation %llu", &generation) == 1) {
        snprintf(want[0], sizeof(want[0]), "{\"generation\":%llu,", generation);
    }
    if (strncmp(row->kind, "job.rank_", strlen("job.rank_")) == 0 && rank != NULL) {
        snprintf(want[1], sizeof(want[1]), ",\"rank\":%d,", atoi(rank + strlen(": rank ")));
    }
    if (strcmp(row->kind, "job.recovered") == 0 && stood != NULL) {
        snprintf(want[2], sizeof(want[2]), ",\"stood_still_ms\":%lld,",
                 atoll(stood + strlen("stood still for ")));
    }
    bool is_same =
        n <= MS_FACTS_MAX && (n == 0 || (row->facts[0] == '{' && row->facts[n - 1] == '}'));
    for (size_t i = 0; i < 3; i++) {
        is_same = is_same && strstr(row->facts, want[i]) != NULL;
    }
    if (!is_same) {
        sim_fail(m->w, "model: event %s is '%s', and its facts are %s", row->kind, row->text,
                 row->facts);
    }
}

static ull steps_said(const struct m_job *job)
{
    ull most = m_is_placed(job) ? job->furthest : 0;
    for (uint32_t rank = 0; m_is_placed(job) && rank < job->n_ranks; rank++) {
        most = job->ranks[rank].steps > most ? job->ranks[rank].steps : most;
    }
    return most;
}

/* ... and what clients are shown: the steps of one that succeeded, else the last that ranks told
 * of, or said as they ended. */
static void judge_end_facts(struct model *m, const struct sched_event_row *row)
{
    const bool is_success = strcmp(row->kind, "job.succeeded") == 0;
    const struct m_job *job = is_success || strcmp(row->kind, "job.failed") == 0 ||
                                      strcmp(row->kind, "job.cancelled") == 0
                                  ? m_job_find(m, row->job)
                                  : NULL;
    if (job == NULL) {
        return;
    }
    const ull want = is_success ? m_ender(job)->steps : steps_said(job);
    const char *told = strstr(row->facts, ",\"steps\":");
    if (told == NULL || strtoull(told + strlen(",\"steps\":"), NULL, 10) != want) {
        sim_fail(m->w, "model: job %llu has made %llu steps, and facts of %s are %s", (ull)row->job,
                 want, row->kind, row->facts);
    }
}

void m_event_put(struct model *m, const struct sched_event_row *row)
{
    judge_facts(m, row);
    judge_end_facts(m, row);
    if (strcmp(row->kind, "job.recovered") == 0) {
        judge_stall(m, row);
    }
    if (row->seq != m->last_event + 1) {
        sim_fail(m->w, "model: event %llu is written behind event %llu", (ull)row->seq,
                 (ull)m->last_event);
    }
    if (m->refusing) {
        sim_fail(m->w, "model: %s is written down, and the disk is full", row->kind);
    }
    judge_owner(m, row);
    struct m_event *event = M_MORE(m->events, struct m_event);
    m->n_events++;
    m->last_event = row->seq;
    event->number = row->seq;
    event->job = row->job;
    event->at_ms = row->at_ms;
    snprintf(event->kind, sizeof(event->kind), "%s", row->kind);
    snprintf(event->node, sizeof(event->node), "%s", row->node);
    snprintf(event->text, sizeof(event->text), "%s", row->text);
    snprintf(event->owner, sizeof(event->owner), "%s", row->principal);
    event->facts = strdup(row->facts);
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

/* What it asks for is there. */
static bool has_happened(const struct model *m, const struct m_ask *ask)
{
    bool happened = false;
    for (size_t i = m->events.n; i > 0 && m->events.at[i - 1].number > ask->offset; i--) {
        happened = happened || fits(&m->events.at[i - 1], ask->job, ask->node);
    }
    return happened;
}

/* Only for what has not happened. Answers have a budget: the core says that it goes on at once. */
bool m_events_may_wait(const struct model *m, const struct m_ask *ask)
{
    return (ask->watching && !has_happened(m, ask)) || sched_deadline(m->w->sched) <= m->mono;
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
    if (ask->parked && !has_happened(m, ask)) {
        sim_fail(m->w, "model: connection %llu is woken, and nothing that it waits for happened",
                 (ull)effect->conn);
    }
    if (++m->event_reads > MS_EVENT_READS) {
        sim_fail(m->w, "model: the database is asked for events %u times in one tick",
                 m->event_reads);
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
    size_t bytes = 0;
    for (size_t i = 0; i < m->events.n && !list->more; i++) {
        size_t at = read->before != 0 ? m->events.n - 1 - i : i;
        const struct m_event *event = &m->events.at[at];
        if (event->gone || event->number <= read->after || event->number > read->last ||
            (read->before != 0 && event->number >= read->before)) {
            continue;
        }
        bool is_asked_for = fits(event, read->job, read->node_id);
        if (looked++ == MS_EVENTS_LOOK || (is_asked_for && list->n_events == read->limit)) {
            list->more = 1;
            break;
        }
        if (is_asked_for) {
            Ms__EventInfo *info = list->events[list->n_events] = &infos[list->n_events];
            ms__event_info__init(info);
            info->number = event->number;
            info->at_ms = event->at_ms;
            info->kind = (char *)event->kind;
            info->job = event->job;
            info->node_id = (char *)event->node;
            info->text = (char *)event->text;
            info->facts = event->facts;
            bytes += 4 + ms__event_info__get_packed_size(info);
            if (bytes > MS_EVENTS_BYTES) {
                list->more = 1;
                break;
            }
            list->n_events++;
        }
        list->at = event->number;
    }
    list->at = list->more || read->before != 0 ? list->at : read->last;
    list->last = read->last;
    list->first = 1;
    for (size_t i = 0; i < m->events.n; i++) {
        list->first = m->events.at[i].gone ? m->events.at[i].number + 1 : list->first;
    }
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
               strcmp(a->text, b->text) == 0 && strcmp(a->facts, b->facts) == 0;
    }
    if (!same) {
        sim_fail(m->w, "model: of events %llu to %llu (before %llu) %zu are told, and %zu happened",
                 (ull)read->after, (ull)read->last, (ull)read->before, msg->n_events,
                 want->n_events);
    }
    free(want);
}
