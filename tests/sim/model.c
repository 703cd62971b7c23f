/* model.c - the model's border: events in, effects judged, what every connection may hear */
#include "tests/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

void *model_more(void *array, size_t size)
{
    M_ARRAY(uint8_t) *a = array;
    if (a->n == a->room) {
        a->room = a->room == 0 ? 16 : 2 * a->room;
        a->at = realloc(a->at, a->room * size);
        if (a->at == NULL) {
            abort();
        }
    }
    return memset(a->at + size * a->n++, 0, size);
}

struct m_conn *m_conn_find(struct model *m, uint64_t id)
{
    for (size_t i = 0; i < m->conns.n; i++) {
        if (m->conns.at[i].id == id) {
            return &m->conns.at[i];
        }
    }
    return NULL;
}

struct m_node *m_node_of(struct model *m, const struct m_conn *conn)
{
    for (size_t i = 0; i < m->nodes.n; i++) {
        if (m->nodes.at[i].conn == conn->id) {
            return &m->nodes.at[i];
        }
    }
    return NULL;
}

struct m_job *m_job_find(struct model *m, uint64_t id)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        if (m->jobs.at[i].id == id && !m->jobs.at[i].dropped) {
            return &m->jobs.at[i];
        }
    }
    return NULL;
}

struct m_ask *m_ask_find(struct model *m, uint64_t conn, uint32_t id)
{
    for (size_t i = 0; i < m->asks.n; i++) {
        if (m->asks.at[i].conn == conn && m->asks.at[i].id == id) {
            return &m->asks.at[i];
        }
    }
    return NULL;
}

void m_ask_drop(struct model *m, struct m_ask *ask)
{
    *ask = m->asks.at[--m->asks.n];
}

bool m_is_ended(const struct m_job *job)
{
    return job->state == JOB_SUCCEEDED || job->state == JOB_FAILED || job->state == JOB_CANCELLED;
}

bool m_is_placed(const struct m_job *job)
{
    return job->state == JOB_PLACING || job->state == JOB_RUNNING || job->state == JOB_RECOVERING;
}

bool m_has_begun(const struct m_job *job)
{
    return job->state == JOB_RUNNING || job->state == JOB_RECOVERING;
}

/* ---- life ---------------------------------------------------------------------------------------
 */

struct model *model_create(struct world *w)
{
    struct model *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        abort();
    }
    m->w = w;
    m->lease_ms = w->lease_ms;
    m->lease_most_ms = m->lease_least_ms = w->lease_ms;
    return m;
}

void model_destroy(struct model *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; i < m->jobs.n; i++) {
        free(m->jobs.at[i].spec);
        free(m->jobs.at[i].ranks);
        free(m->jobs.at[i].formers);
    }
    free(m->names.at);
    free(m->slots);
    free(m->nodes.at);
    free(m->hosts.at);
    free(m->gone.at);
    free(m->conns.at);
    free(m->jobs.at);
    free(m->plans.at);
    free(m->asks.at);
    m_events_end(m);
    free(m->stops.at);
    free(m->heard.at);
    free(m->tokens.at);
    free(m->seals.at);
    free(m->closed.at);
    free(m);
}

/* Nodes that have to come back after a start. */
static uint32_t m_expected(const struct world *w)
{
    uint32_t n = 0;
    for (size_t i = 0; i < w->disk.n_jobs; i++) {
        const struct sched_job_row *row = &w->disk.jobs[i];
        bool placed = row->state == JOB_RUNNING || row->state == JOB_RECOVERING ||
                      (row->state == JOB_PLACING && w->mode == SCHED_DYNAMIC);
        n += placed ? row->workers : 0;
    }
    return n;
}

/* Its rank was vacant, and the node that had it has one of a younger generation. */
static bool has_gone_to(const struct model *m, const struct sched_job_row *row, const char *node)
{
    bool has = false;
    for (size_t i = 0; i < m->w->disk.n_jobs; i++) {
        const struct sched_job_row *other = &m->w->disk.jobs[i];
        const bool placed = other->state == JOB_RUNNING || other->state == JOB_RECOVERING;
        for (uint32_t rank = 0;
             placed && other->generation > row->generation && rank < other->workers && !has;
             rank++) {
            const struct sched_member_row *member = disk_member(m->w, other->id, rank);
            has = member != NULL && strcmp(member->node_id, node) == 0;
        }
    }
    return has;
}

/* Of two jobs of one id the first one was lost with a commit: the row is the other one's. */
static bool has_successor(const struct model *m, const struct m_job *job)
{
    bool has = false;
    for (const struct m_job *other = job + 1; other < m->jobs.at + m->jobs.n; other++) {
        has = has || other->id == job->id;
    }
    return has;
}

/* What a start takes from the disk: a running job's ranks are all expected back. */
static void job_reload(struct model *m, struct m_job *job)
{
    const struct sched_job_row *row = has_successor(m, job) ? NULL : disk_job(m->w, job->id);
    if (row == NULL) {
        job->never_was = job->never_was || !job->dropped;
        job->dropped = true;
        return;
    }
    job->dropped = false;
    job->members_dropped = disk_member(m->w, job->id, 0) == NULL;
    job->state = row->state;
    snprintf(job->plan, sizeof(job->plan), "%s",
             row->plan[0] != '\0' ? disk_plan(&m->w->disk, row->plan) : "");
    job->plan_given = row->plan_given;
    job->generation = row->generation;
    job->code = row->code;
    snprintf(job->reason, sizeof(job->reason), "%s", row->reason);
    job->blame_at = SIM_NEVER;
    job->cancelled = job->cancel_at_step = job->cancel_stored = row->cancel_text[0] != '\0';
    job->stop_told = job->stands_for_good = false;
    m_back_begins(m, job);
    job->cancel_stretch = m->stretch;
    job->cancel_at = m->mono;
    job->cancel_late_ms = INT32_MAX;
    if (job->cancelled) {
        snprintf(job->cancel_reason, sizeof(job->cancel_reason), "%s", row->cancel_text);
    }
    job->missing_since = SIM_NEVER;
    job->furthest = job->told = 0;
    job->told_at = SIM_NEVER;
    job->went_on = false;
    job->round_due = job->stands = row->state == JOB_RECOVERING && !job->cancelled;
    job->kept[0] = '\0';
    job->cancel_due = false; /* what was due in an event that nobody heard of */
    job->kept_step = 0;
    job->late_asked = job->unsaved = false;
    job->save_again_at = job->tardy_at = SIM_NEVER;
    job->called_off = job->spent_at_end = false;
    job->round_tardy_at = SIM_NEVER;
    job->without_at = m->mono + MS_CANCEL_GRACE_MS;
    job->home_at = m->mono;
    job->without_stretch = job->home_stretch = m->stretch;
    job->n_stumbled = 0;
    job->not_before = job->stood_at = job->again_at = 0;
    job->wants_until = m->mono + m->lease_ms;
    job->wants_until_stretch = m->stretch;
    job->met_unfit = false;
    job->n_unfit = 0;
    job->placed_at = m->mono;
    job->placed_stretch = m->stretch;
    job->tries = row->n_tries;
    job->leaves = job->met_least = job->met_most = 0;
    job->cut_off = row->state == JOB_PLACING && m->w->mode != SCHED_DYNAMIC;
    job->has_members = false;
    if (!m_is_ended(job)) {
        m_results_reload(job, row);
    }
    if (!m_is_placed(job)) {
        job->n_ranks = m_is_ended(job) ? job->n_ranks : 0;
        return;
    }
    job->n_ranks = job->workers;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct m_rank *r = &job->ranks[rank];
        const struct sched_member_row *member = disk_member(m->w, job->id, rank);
        if (member == NULL) {
            sim_fail(m->w, "model: job %llu is stored as placed, without rank %u", (ull)job->id,
                     rank);
            return;
        }
        r->is_back = false;
        char owner[sizeof(r->owner)] = "";
        char log[sizeof(r->log)] = "";
        uint32_t pid = member->pid;
        if (r->incarnation == member->incarnation && strcmp(r->node, member->node_id) == 0) {
            memcpy(owner, r->owner, sizeof(owner)); /* the model forgets nothing */
            memcpy(log, r->log, sizeof(log));
            pid = r->pid;
        }
        const bool is_same = owner[0] != '\0' || !job->recovery; /* else the last commit is lost */
        if (job->state == JOB_RUNNING && is_same && strcmp(member->log_path, log) != 0) {
            sim_fail(m->w, "model: job %llu was started, and the log of rank %u is stored as '%s'",
                     (ull)job->id, rank, member->log_path);
        }
        memset(r, 0, sizeof(*r));
        snprintf(r->log, sizeof(r->log), "%.*s", (int)sizeof(r->log) - 1, member->log_path);
        snprintf(r->node, sizeof(r->node), "%s", member->node_id);
        snprintf(r->host, sizeof(r->host), "%s", member->host_name);
        r->incarnation = member->incarnation;
        r->pid = pid;
        memcpy(r->owner, owner, sizeof(owner));
        if (!is_same) { /* the rank had gone on to another process, which nobody heard of */
            snprintf(r->owner, sizeof(r->owner), "%s", member->principal);
        }
        r->missing = r->unknown = true;
        job->missing_since = m->mono;
        job->missing_stretch = m->stretch;
        job->missing_ms = m->lease_ms + (int64_t)m->n_expected * MS_ADOPT_NODE_MS;
        job->missing_again = false;
        r->ready = r->started = r->has_state = job->state == JOB_RUNNING;
        if (has_gone_to(m, row, r->node)) {
            r->missing = r->ready = r->started = r->has_state = r->unknown = false;
            r->vacant = true;
        }
    }
    m_formers_reload(m, job, row);
    job->missing_since = SIM_NEVER;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        job->missing_since = job->ranks[rank].missing ? m->mono : job->missing_since;
    }
    if (m_has_vacant(job) && !job->cancelled) {
        m_stands_still(m, job);
    } else if (m_has_vacant(job)) {
        job->state = JOB_RECOVERING; /* and stops without it */
    }
}

void model_starts(struct model *m, int64_t mono)
{
    m->mono = mono;
    m->away_until = m->busy_until = m->no_room_until = INT64_MIN;
    m->turn_is_full = false;
    m->n_expected = m_expected(m->w);
    m->n_came = 0;
    m->came_at = m->came_most_at = mono;
    m->crowded_at = SIM_NEVER;
    m->stretch = 0;
    m->ticks = m->w->disk.ticks;
    m->draining = false;
    m->believed = m->believed_low = UINT32_MAX;
    m->doubt_began = SIM_NEVER;
    m->fresh = true; /* requeues are carried out with the first events */
    m->conns.n = 0;
    m_hosts_restart(m);
    m->gone.n = 0;
    m->gone_unknown = false;
    m->asks.n = 0;
    m->lease_ms = m->w->lease_ms;
    m->lease_least_ms = m->lease_ms < m->lease_least_ms ? m->lease_ms : m->lease_least_ms;
    m->lease_most_ms = m->lease_ms > m->lease_most_ms ? m->lease_ms : m->lease_most_ms;
    m->generation = m->stored = m->w->disk.generation;
    m->next_job = m->w->disk.next_job;
    m_events_start(m);
    m_plans_start(m);
    m->is_over = false;
    m->last_job = m->w->disk.next_job > 0 ? m->w->disk.next_job - 1 : 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        m->nodes.at[i].conn = 0;
        m->nodes.at[i].came = false;
        m->nodes.at[i].hold = (struct m_hold){0};
        m->nodes.at[i].leaving = false; /* it says so again */
        m->nodes.at[i].probed = SIM_NEVER;
    }
    while (m->tokens.n > 0 && m->tokens.at[m->tokens.n - 1].generation > m->generation) {
        m->tokens.n--; /* nobody heard of it */
    }
    for (size_t i = 0; i < m->jobs.n; i++) {
        if (!m->jobs.at[i].never_was) {
            job_reload(m, &m->jobs.at[i]);
        }
    }
}

static void stretch(struct model *m, int64_t ms)
{
    m->stretch += ms;
    m->came_at += ms;
    m->came_most_at += ms;
    m->crowded_at += m->crowded_at != SIM_NEVER ? ms : 0;
    m->doubt_renewed += ms;
    for (size_t i = 0; i < m->hosts.n; i++) {
        m->hosts.at[i].until += ms; /* nobody looked at the clock */
    }
    for (size_t i = 0; i < m->nodes.n; i++) {
        m->nodes.at[i].stop_at += ms;
        m->nodes.at[i].heard += ms;
        m->nodes.at[i].probed += m->nodes.at[i].probed != SIM_NEVER ? ms : 0;
    }
}

void model_was_busy(struct model *m, int64_t ms)
{
    m->busy_until = m->mono + ms + 2 * m->lease_ms / 10;
}

void model_stood_still(struct model *m, int64_t ms)
{
    stretch(m, ms);
    if (ms >= m->lease_ms / 2) {
        m->away_until = m->mono + ms + m->lease_ms;
        for (size_t i = 0; i < m->jobs.n; i++) {
            struct m_job *job = &m->jobs.at[i];
            const int64_t left = job->missing_since == SIM_NEVER
                                     ? m->lease_ms
                                     : job->missing_since + job->missing_ms + m->stretch -
                                           job->missing_stretch - m->mono - ms;
            job->missing_ms += left < m->lease_ms ? m->lease_ms - left : 0;
        }
    }
}

void model_sets_lease(struct model *m, int64_t lease_ms)
{
    if (lease_ms < m->lease_ms) {
        stretch(m, m->lease_ms - lease_ms); /* nobody is judged before he heard of it */
    }
    m->lease_ms = lease_ms;
    m->lease_least_ms = lease_ms < m->lease_least_ms ? lease_ms : m->lease_least_ms;
    m->lease_most_ms = lease_ms > m->lease_most_ms ? lease_ms : m->lease_most_ms;
}

/* ---- in -----------------------------------------------------------------------------------------
 */

static void opened(struct model *m, const struct sched_event *event)
{
    struct m_conn *conn = M_MORE(m->conns, struct m_conn);
    conn->id = event->conn;
    conn->peer = *event->peer;
    conn->who = world_who(m->w, (uint32_t)event->conn);
    conn->is_worker = (event->peer->who.roles & MS_ROLE_WORKER) != 0;
    conn->is_admin = (event->peer->who.roles & MS_ROLE_ADMIN) != 0;
}

static void conn_forget(struct model *m, uint64_t id, bool replaced)
{
    m_probe_over(m, id);
    for (size_t i = m->asks.n; i > 0; i--) {
        if (m->asks.at[i - 1].conn == id) {
            m_ask_drop(m, &m->asks.at[i - 1]);
        }
    }
    struct m_conn *conn = m_conn_find(m, id);
    if (conn != NULL) {
        struct m_node *node = m_node_of(m, conn);
        if (node != NULL && !replaced) {
            m_node_lost(m, node);
        }
        *conn = m->conns.at[--m->conns.n];
    }
}

static void message(struct model *m, struct m_conn *conn, const struct sched_event *event)
{
    const struct ms_wire_type *type = ms_wire_find(event->type);
    if ((type->senders & conn->peer.who.roles) == 0) {
        return; /* refused by role: nothing follows from it */
    }
    struct m_node *node = m_node_of(m, conn);
    if (node != NULL) {
        node->spoke = m->mono;
        node->owes_word = false;
        node->heard = m->mono; /* at the earliest: a stretched lease may lie ahead */
    }
    switch (event->type) {
    case MS_MSG_REGISTER:
        m_on_register(m, conn, (const Ms__Register *)event->msg);
        break;
    case MS_MSG_RANK_PLAN:
        m_on_rank_plan(m, conn, (const Ms__RankPlan *)event->msg);
        break;
    case MS_MSG_RANK_READY:
        m_on_ready(m, conn, (const Ms__RankReady *)event->msg);
        break;
    case MS_MSG_RANK_DONE:
        m_on_done(m, conn, (const Ms__RankDone *)event->msg);
        break;
    case MS_MSG_PEER_REPORT:
        m_on_peer_report(m, conn, (const Ms__PeerReport *)event->msg);
        break;
    case MS_MSG_HEARTBEAT:
        m_on_beat(m, conn, (const Ms__Heartbeat *)event->msg);
        break;
    case MS_MSG_PROGRESS:
        m_on_progress(m, conn, (const Ms__Progress *)event->msg);
        break;
    case MS_MSG_LEAVE:
        if (node != NULL) {
            m_node_lost(m, node);
            node->anew = ((const Ms__Leave *)event->msg)->returns;
        }
        break;
    default:
        m_on_question(m, conn, event);
    }
}

void model_ticks(struct model *m)
{
    m->event_reads = 0;
}

/* There is space again since the last event: who may have waited for it has all the time. */
static void renew_times(struct model *m)
{
    for (size_t i = 0; m->refusing && !m->w->disk.full && i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        if (job->round_due) {
            job->placed_at = m->mono;
            job->placed_stretch = m->stretch;
        }
    }
}

void model_hears(struct model *m, const struct sched_event *event, int64_t mono)
{
    m->mono = mono > m->mono ? mono : m->mono;
    renew_times(m);
    m->refusing = m->w->disk.full; /* it may have been freed since */
    m->missed_events = m->missed_events || m->refusing;
    m->event = event;
    m->came_before = m->came_at;
    m->stops.n = 0;
    m->heard.n = 0;
    m->closed.n = 0;
    m->placing = 0;
    for (size_t i = 0; i < m->jobs.n; i++) {
        m->jobs.at[i].ended_now = false;
        m->jobs.at[i].changed = false;
        m->jobs.at[i].lost_silent = false;
        m->jobs.at[i].assigned_now = 0;
    }
    struct m_conn *conn = m_conn_find(m, event->conn);
    switch (event->kind) {
    case SCHED_EV_OPENED:
        opened(m, event);
        break;
    case SCHED_EV_CLOSED:
        conn_forget(m, event->conn, false);
        break;
    case SCHED_EV_MESSAGE:
        if (conn != NULL) {
            message(m, conn, event);
        }
        break;
    case SCHED_EV_CLOGGED:
    case SCHED_EV_CLEARED:
        if (conn != NULL) {
            conn->clogged = event->kind == SCHED_EV_CLOGGED;
        }
        break;
    case SCHED_EV_CROWDED:
        m->crowded_at = m->crowded_at > m->mono ? m->crowded_at : m->mono;
        break;
    case SCHED_EV_DRAIN:
        m->draining = true;
        break;
    case SCHED_EV_TIME:
    default:
        break;
    }
}

/* ---- out ----------------------------------------------------------------------------------------
 */

static void judge_ack(struct model *m, const struct m_conn *conn, uint32_t id,
                      const Ms__HeartbeatAck *msg)
{
    bool asked = m->event->kind == SCHED_EV_MESSAGE && m->event->conn == conn->id &&
                 m->event->type == MS_MSG_HEARTBEAT && m->event->id == id;
    bool probe = id == 0 && m->event->kind == SCHED_EV_MESSAGE &&
                 m->event->type == MS_MSG_REGISTER && m->event->conn != conn->id;
    if ((!asked && !probe) || msg->lease_ms != (uint64_t)m->lease_ms || msg->heartbeat_ms == 0 ||
        msg->heartbeat_ms > msg->lease_ms) {
        sim_fail(m->w, "model: HeartbeatAck to connection %llu with lease %llu: asked %d",
                 (ull)conn->id, (ull)msg->lease_ms, asked);
    }
    m_judge_stamp(m, conn->peer.who.id, &msg->stamp);
}

static void judge_frame(struct model *m, struct m_conn *conn, uint16_t type, uint32_t id,
                        const ProtobufCMessage *msg)
{
    switch (type) {
    case MS_MSG_ASSIGN:
        m_judge_assign(m, conn, (const Ms__Assign *)msg);
        break;
    case MS_MSG_PLAN:
        m_judge_plan(m, conn, (const Ms__Plan *)msg);
        break;
    case MS_MSG_START:
        m_judge_start(m, conn, (const Ms__Start *)msg);
        break;
    case MS_MSG_STOP:
        m_judge_stop(m, conn, (const Ms__Stop *)msg);
        break;
    case MS_MSG_LOG_READ:
        m_judge_log_read(m, conn, (const Ms__LogRead *)msg);
        break;
    case MS_MSG_FETCH_GRANT:
        m_judge_fetch_grant(m, conn, (const Ms__FetchGrant *)msg);
        break;
    case MS_MSG_REGISTERED:
        m_judge_registered(m, conn, (const Ms__Registered *)msg, id);
        break;
    case MS_MSG_HEARTBEAT_ACK:
        judge_ack(m, conn, id, (const Ms__HeartbeatAck *)msg);
        break;
    default:
        m_judge_answer(m, conn, type, id, msg);
    }
}

static void judge_send(struct model *m, const struct sched_effect *effect)
{
    struct ms_wire_header header;
    struct ms_err err = {0, ""};
    ProtobufCMessage *msg = NULL;
    size_t size = 0;
    const uint8_t *frame = driver_frame(m->w, effect, &size);
    struct m_conn *conn = m_conn_find(m, effect->conn);
    if (ms_wire_parse_header(frame, &header, &err) < 0 ||
        ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &msg, &err) < 0) {
        sim_fail(m->w, "model: a bad frame is sent: %s", err.text);
        return;
    }
    if (conn == NULL) {
        bool closed_now = m->event->kind == SCHED_EV_CLOSED && m->event->conn == effect->conn;
        for (size_t i = 0; i < m->closed.n; i++) {
            closed_now = closed_now || m->closed.at[i] == effect->conn;
        }
        if (!closed_now) {
            sim_fail(m->w, "model: %s goes to connection %llu, which is closed",
                     ms_wire_find(header.type)->name, (ull)effect->conn);
        }
    } else {
        judge_frame(m, conn, header.type, header.id, msg);
    }
    ms_wire_free(msg);
}

static void judge_meta(struct model *m, const struct sched_effect *effect)
{
    if (strcmp(effect->meta_key, "generation") == 0) {
        if (effect->meta_value < m->stored) {
            sim_fail(m->w, "model: generation %llu is stored after %llu", (ull)effect->meta_value,
                     (ull)m->stored);
        }
        m->stored = effect->meta_value;
    } else if (strcmp(effect->meta_key, "next_job") == 0) {
        if (effect->meta_value < m->next_job) {
            sim_fail(m->w, "model: the next job is %llu, and was %llu", (ull)effect->meta_value,
                     (ull)m->next_job);
        }
        m->next_job = effect->meta_value;
    } else if (strcmp(effect->meta_key, "ticks") == 0) {
        if (effect->meta_value != m->ticks + 1) {
            sim_fail(m->w, "model: tick %llu is counted after tick %llu", (ull)effect->meta_value,
                     (ull)m->ticks);
        }
        m->ticks = effect->meta_value;
    }
}

/* An answer that the database completes: all but the description is there. */
static void judge_read(struct model *m, const struct sched_effect *effect)
{
    const ProtobufCMessage *msg = &effect->read->list->base;
    size_t size = ms_wire_size(msg);
    uint8_t *frame = malloc(size);
    struct ms_err err = {0, ""};
    if (frame == NULL) {
        abort();
    }
    if (ms_wire_pack(MS_MSG_JOB_LIST, effect->read->frame_id, msg, frame, size, &err) < 0) {
        sim_fail(m->w, "an answer cannot be packed: %s", err.text);
    } else {
        struct sched_effect sent = {
            .kind = SCHED_DO_SEND, .conn = effect->conn, .frame = frame, .frame_bytes = size};
        judge_send(m, &sent);
    }
    free(frame);
}

static void judge_effect(struct model *m, const struct sched_effect *effect)
{
    if (effect->kind != SCHED_DO_SEND && effect->kind != SCHED_DO_LOG && m->placing != 0) {
        m_judge_placed(m);
    }
    switch (effect->kind) {
    case SCHED_DO_SEND:
        judge_send(m, effect);
        break;
    case SCHED_DO_READ:
        if (effect->read->kind == SCHED_READ_EVENTS) {
            m_judge_events_read(m, effect);
        } else {
            judge_read(m, effect);
        }
        break;
    case SCHED_DO_LOG:
        m_node_gone(m, effect->text);
        m_rank_lost(m, effect->text);
        m_rank_yields(m, effect->text);
        m_rank_back(m, effect->text);
        m_called_off(m, effect->text);
        m_state_let_go(m, effect->text);
        break;
    case SCHED_DO_PUT_EVENT:
        m_event_put(m, effect->event);
        m_story(m, effect->event);
        break;
    case SCHED_DO_DROP_EVENT:
        m_event_drop(m, effect->event_seq);
        break;
    case SCHED_DO_CLOSE:
        *M_MORE(m->closed, uint64_t) = effect->conn;
        conn_forget(m, effect->conn, m_judge_close(m, effect->conn));
        break;
    case SCHED_DO_PUT_JOB:
        m_judge_row(m, effect->job);
        break;
    case SCHED_DO_PUT_PLAN:
        m_plan_put(m, effect->plan);
        break;
    case SCHED_DO_DROP_PLAN:
        m_plan_drop(m, effect->plan);
        break;
    case SCHED_DO_PUT_MEMBER:
        m_judge_last_shown(m, effect->member);
        m_member_stored(m, effect->member);
        break;
    case SCHED_DO_PUT_META:
        judge_meta(m, effect);
        break;
    case SCHED_DO_PUT_ASIDE:
    case SCHED_DO_DROP_ASIDE:
        m_aside_stored(m, effect->aside->key, effect->kind == SCHED_DO_PUT_ASIDE);
        break;
    case SCHED_DO_DROP_JOB:
        m_judge_drop(m, effect->job_id, false);
        break;
    case SCHED_DO_DROP_MEMBERS:
        m_judge_drop(m, effect->job_id, true);
        break;
    default:
        break;
    }
}

/* Leases that are over at once leave other work its turn: after so many effects no other one is
 * judged. A process that is fenced off counts for itself: the lease before it may have failed a job
 * of a hundred ranks. What is stored has to be one transaction: after so much of it nothing else
 * is, either. */
static void judge_turn(struct model *m, const struct sched_effect *effects, size_t n)
{
    size_t last = 0;
    if (sched_tick_is_full(m->w->sched)) {
        m->turn_is_full = true;
        return;
    }
    if (m->event->kind != SCHED_EV_TIME) {
        return; /* the rest is judged by the next look at the clock */
    }
    m->turn_is_full = n >= MS_TURN_LOSSES;
    for (size_t i = 0; i < n && m->turn_is_full; i++) {
        if (effects[i].kind == SCHED_DO_CLOSE && m_is_lost_by_lease(m, effects[i].conn)) {
            if (last >= MS_TURN_LOSSES + 50) { /* what was due before counts elsewhere */
                sim_fail(m->w, "model: %zu effects of lost nodes, and another one is lost", last);
            }
            last = i;
        }
    }
}

void model_judges(struct model *m, const struct sched_effect *effects, size_t n)
{
    judge_turn(m, effects, n);
    m->refusing = m->w->disk.full;
    m->missed_events = m->missed_events || m->refusing;
    if (m->w->disk.spent) {
        m->no_room_until = m->mono + MS_ROOM_LOOK_MS;
    }
    for (size_t i = 0; i < n && !m->w->failed; i++) {
        judge_effect(m, &effects[i]);
    }
    m->fresh = m->fresh && sched_tick_is_full(m->w->sched); /* else all requeues are written */
    if (m->placing != 0) {
        m_judge_placed(m);
    }
    if (m->next_job <= m->last_job && m->last_job > 0) {
        sim_fail(m->w, "model: job %llu exists, and the next one that is stored is %llu",
                 (ull)m->last_job, (ull)m->next_job);
    }
    if (m->stored < m->generation) {
        sim_fail(m->w, "model: generation %llu is told and %llu is stored", (ull)m->generation,
                 (ull)m->stored);
    }
    if (!m->w->failed) {
        m_judge_plans_after(m);
        m_judge_recovery_after(m);
        m_judge_ranks_after(m);
        m_judge_clients_after(m);
        m_judge_leases(m);
        m_judge_queue(m);
        m_judge_history(m);
        m_judge_events_kept(m);
        m_judge_asides(m);
        m_hosts_forget(m);
    }
    m->event = NULL;
}
