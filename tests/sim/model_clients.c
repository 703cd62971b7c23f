/* model_clients.c - the model's clients: every question has one answer, to who asked, and true */
#include "tests/sim/model.h"

#include "daemon/sched/run.h" /* the order of names, as people read them */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

enum { LATE_MS = 70 /* timers of the driver are late by 50 */ };

/* ---- questions ----------------------------------------------------------------------------------
 */

static bool may_cancel(const struct m_conn *conn, const struct m_job *job)
{
    return conn->is_admin || conn->who == job->who;
}

static void on_cancel(struct model *m, const struct m_conn *conn, const Ms__Cancel *msg)
{
    struct m_job *job = m_job_find(m, msg->job);
    if (job == NULL || !may_cancel(conn, job) || m_is_ended(job) || m->w->disk.spent) {
        return;
    }
    bool first = !job->cancelled;
    bool at_step = msg->at_step && m_has_begun(job);
    job->cancelled = true;
    if (first || !at_step) {
        job->cancel_at_step = at_step;
        job->cancel_at = m->mono;
        job->cancel_stretch = m->stretch;
        job->cancel_late_ms = 0;
        snprintf(job->cancel_reason, sizeof(job->cancel_reason), "%s", msg->reason);
        if (at_step) {
            job->round_due = false; /* and none begins any more */
            m_offer_savers(job);
            job->stop_told = false;
            m_back_begins(m, job);
            m_stop_at_step(m, job, !job->unsaved);
        }
    }
}

void m_on_question(struct model *m, struct m_conn *conn, const struct sched_event *event)
{
    struct m_ask ask = {.conn = conn->id, .id = event->id, .type = event->type};
    switch (event->type) {
    case MS_MSG_CANCEL:
        ask.job = ((const Ms__Cancel *)event->msg)->job;
        on_cancel(m, conn, (const Ms__Cancel *)event->msg);
        break;
    case MS_MSG_WATCH:
        ask.job = ((const Ms__Watch *)event->msg)->job;
        break;
    case MS_MSG_LOG_QUERY:
        ask.job = ((const Ms__LogQuery *)event->msg)->job;
        ask.rank = ((const Ms__LogQuery *)event->msg)->rank;
        ask.offset = ((const Ms__LogQuery *)event->msg)->offset;
        ask.bytes_max = ((const Ms__LogQuery *)event->msg)->bytes_max;
        break;
    case MS_MSG_FETCH:
        m_ask_fetch(m, &ask, (const Ms__Fetch *)event->msg);
        break;
    case MS_MSG_EVENT_QUERY:
        m_ask_events(&ask, m, (const Ms__EventQuery *)event->msg);
        break;
    case MS_MSG_SUBMIT:
    case MS_MSG_JOB_QUERY:
    case MS_MSG_NODE_QUERY:
    case MS_MSG_STATUS_QUERY:
        break;
    default:
        return;
    }
    ask.route = 0;
    ask.asked_at = m->mono;
    ask.asked_stretch = m->stretch;
    *M_MORE(m->asks, struct m_ask) = ask;
}

/* ---- what an answer says about a job ------------------------------------------------------------
 */

static void judge_reason(struct model *m, const struct m_job *job, const char *reason)
{
    const char *numbers = strstr(reason, "idle node");
    const char *colon = numbers != NULL ? strchr(numbers, ':') : NULL;
    unsigned registered = 0;
    unsigned idle = 0;
    /* lost in this event and not closed yet, or between two claims */
    uint32_t overdue = m->event->type == MS_MSG_REGISTER;
    for (size_t i = 0; i < m->nodes.n; i++) {
        overdue += m_is_overdue(m, &m->nodes.at[i]);
    }
    if (m_is_ended(job) ? strcmp(reason, job->reason) != 0
                        : reason[0] == '\0' && job->state != JOB_RUNNING) {
        sim_fail(m->w, "model: job %llu is %s, and the reason that is told is '%s'", (ull)job->id,
                 sched_job_state_name(job->state), reason);
    }
    if (job->state == JOB_QUEUED && colon != NULL &&
        sscanf(colon, ": %u registered, %u idle", &registered, &idle) == 2 &&
        (registered > m_count(m) ||
         idle > m_count_idle(m, true) + (m->event->type == MS_MSG_REGISTER) ||
         registered + overdue < m_count(m) || idle + overdue < m_count_idle(m, false))) {
        sim_fail(m->w, "model: job %llu '%s', and %u nodes are registered, %u are idle",
                 (ull)job->id, reason, m_count(m), m_count_idle(m, true));
    }
}

static void judge_info(struct model *m, const struct m_job *job, const Ms__JobInfo *info,
                       bool with_ranks)
{
    if (strcmp(info->owner, job->owner) != 0 || strcmp(info->name, job->name) != 0 ||
        info->workers != job->workers || info->priority != job->priority ||
        strcmp(info->state, sched_job_state_name(job->state)) != 0 ||
        info->generation != job->generation || (m_is_ended(job) && info->code != job->code)) {
        sim_fail(m->w, "model: job %llu of %s, %s in generation %llu, is told as %s of %s, %llu",
                 (ull)job->id, job->owner, sched_job_state_name(job->state), (ull)job->generation,
                 info->state, info->owner, (ull)info->generation);
    }
    if (info->plan_given != job->plan_given ||
        (info->plan[0] != '\0' && strcmp(info->plan, job->plan) != 0)) {
        sim_fail(m->w, "model: job %llu is told with another plan", (ull)job->id);
    }
    judge_reason(m, job, info->reason);
    m_judge_shown(m, job, info, with_ranks);
    if (info->job_json.len > 0 && (info->job_json.len != job->spec_bytes ||
                                   memcmp(info->job_json.data, job->spec, job->spec_bytes) != 0)) {
        sim_fail(m->w, "model: job %llu is told with another spec", (ull)job->id);
    }
    for (size_t rank = 0; rank < info->n_ranks && info->n_ranks == job->n_ranks; rank++) {
        m_judge_rank_shown(m, job, info->ranks[rank]);
    }
    if (!with_ranks || !m_is_placed(job)) {
        return;
    }
    if (info->n_ranks != job->workers) {
        sim_fail(m->w, "model: job %llu is told with %zu ranks", (ull)job->id, info->n_ranks);
    }
    for (size_t rank = 0; rank < info->n_ranks && rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        const char *state = info->ranks[rank]->state;
        if (strcmp(info->ranks[rank]->node_id, r->node) != 0 || info->ranks[rank]->rank != rank ||
            (r->missing != (strcmp(state, "missing") == 0)) ||
            (strcmp(state, "ready") == 0 && !r->ready) ||
            (strcmp(state, "done") == 0 && !r->done) ||
            strcmp(info->ranks[rank]->log_path, r->log) != 0) {
            sim_fail(m->w, "model: rank %zu of job %llu is told as %s on node %s", rank,
                     (ull)job->id, state, info->ranks[rank]->node_id);
        }
    }
}

/* ---- answers ------------------------------------------------------------------------------------
 */

static const struct m_job *job_of_key(const struct model *m, uint32_t who, const char *key,
                                      uint64_t except)
{
    for (size_t i = 0; i < m->jobs.n && key[0] != '\0'; i++) {
        const struct m_job *job = &m->jobs.at[i];
        if (!job->dropped && job->who == who && strcmp(job->key, key) == 0 && job->id != except) {
            return job;
        }
    }
    return NULL;
}

static bool is_same(const struct m_job *job, const Ms__Submit *msg)
{
    return job->workers == msg->workers && job->spec_bytes == msg->job_json.len &&
           strcmp(job->plan_given ? job->plan : "", msg->plan) == 0 &&
           memcmp(job->spec, msg->job_json.data, job->spec_bytes) == 0;
}

static void judge_submitted(struct model *m, const struct m_conn *conn, const Ms__Submitted *msg)
{
    const Ms__Submit *asked = (const Ms__Submit *)m->event->msg;
    const struct m_job *job = m_job_find(m, msg->job);
    m_judge_stamp(m, conn->peer.who.id, &msg->stamp);
    if (job == NULL || job->who != conn->who || m_stamp_is_false(m, &asked->stamp) ||
        strcmp(job->key, asked->key) != 0 || !is_same(job, asked) ||
        job_of_key(m, conn->who, asked->key, msg->job) != NULL) {
        sim_fail(m->w, "model: %s submits with key %s and hears of job %llu of %s",
                 conn->peer.who.id, asked->key, (ull)msg->job, job != NULL ? job->owner : "nobody");
    }
}

static bool submit_refusal_is_fair(const struct model *m, const struct m_conn *conn, int32_t code)
{
    const Ms__Submit *msg = (const Ms__Submit *)m->event->msg;
    const struct m_job *same = job_of_key(m, conn->who, msg->key, 0);
    if (m_stamp_is_false(m, &msg->stamp)) {
        return code == MS_E_FOREIGN;
    }
    switch (code) {
    case MS_E_EXISTS:
        return same != NULL && !is_same(same, msg);
    case MS_E_REFUSED:
        return same == NULL && (m->draining || m->w->mode == SCHED_DYNAMIC ||
                                person_is_refused(conn->is_admin, msg->priority));
    case MS_E_INVALID:
        return msg->workers < 1 || msg->workers > MS_WORKERS_MAX || msg->job_json.len == 0 ||
               ((msg->run_dir[0] != '\0') != (m->w->mode == SCHED_RUN)) ||
               person_is_refused(conn->is_admin, msg->priority);
    default:
        return code == MS_E_FULL &&
               (m->w->disk.full || m_has_no_place(m, conn, msg->job_json.len + strlen(msg->plan)));
    }
}

/* A node id that somebody else has taken since: he has not run the job. */
bool m_is_anothers(const struct m_rank *r, const struct m_node *node)
{
    return strcmp(r->owner, "anyone") != 0 && strcmp(r->owner, node->owner) != 0;
}

bool m_log_refusal_is_fair(struct model *m, const struct m_ask *ask, int32_t code)
{
    const struct m_job *job = m_job_find(m, ask->job);
    const struct m_rank *r =
        job != NULL && ask->rank < job->n_ranks ? &job->ranks[ask->rank] : NULL;
    const struct m_node *node = r != NULL ? m_node_find(m, r->node) : NULL;
    switch (code) {
    case MS_E_NOT_FOUND:
        return job == NULL || r == NULL || job->members_dropped || job->state == JOB_QUEUED;
    case MS_E_INVALID:
        return job != NULL && ask->rank >= job->workers;
    case MS_E_UNAVAILABLE:
        return node != NULL && node->conn == 0 && node->anew;
    case MS_E_UNREACHABLE:
    case MS_E_CLOSED:
        return node == NULL || node->conn == 0 || ask->route != 0 || m_is_anothers(r, node);
    case MS_E_TIMEOUT:
        return m->mono - ask->asked_at >= MS_LOG_READ_MS + m->stretch - ask->asked_stretch;
    default:
        return code == MS_E_FULL;
    }
}

/* Who else waits for the end of that job. */
static uint32_t count_waiters(const struct model *m, const struct m_ask *ask)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->asks.n; i++) {
        const struct m_ask *other = &m->asks.at[i];
        n += other != ask && other->type == MS_MSG_CANCEL && other->job == ask->job;
    }
    return n;
}

static bool refusal_is_fair(struct model *m, const struct m_conn *conn, const struct m_ask *ask,
                            int32_t code)
{
    const struct m_job *job = m_job_find(m, ask->job);
    switch (ask->type) {
    case MS_MSG_SUBMIT:
        return submit_refusal_is_fair(m, conn, code);
    case MS_MSG_LOG_QUERY:
        return m_log_refusal_is_fair(m, ask, code);
    case MS_MSG_FETCH:
        return m_fetch_refusal_is_fair(m, conn, ask, code);
    case MS_MSG_CANCEL:
        return code == MS_E_NOT_FOUND ? job == NULL
               : code == MS_E_REFUSED
                   ? job != NULL && (!may_cancel(conn, job) ||
                                     (m_is_ended(job) && job->state != JOB_CANCELLED))
                   : code == MS_E_FULL &&
                         (m->w->disk.spent || count_waiters(m, ask) >= MS_CANCEL_WAITERS_MAX);
    case MS_MSG_EVENT_QUERY:
        return m_events_refusal_is_fair(m, ask, code);
    case MS_MSG_WATCH:
        return code == MS_E_NOT_FOUND ? job == NULL : code == MS_E_FULL;
    case MS_MSG_JOB_QUERY:
    case MS_MSG_NODE_QUERY:
        return code == MS_E_NOT_FOUND || code == MS_E_FULL; /* the asker's own judge knows more */
    default:
        return false;
    }
}

static void judge_error(struct model *m, struct m_conn *conn, uint32_t id, const Ms__Error *msg)
{
    const struct sched_event *event = m->event;
    struct m_ask *ask = m_ask_find(m, conn->id, id);
    bool answers_now =
        event->kind == SCHED_EV_MESSAGE && event->conn == conn->id && event->id == id;
    if (msg->text[0] == '\0' || msg->code >= 0) {
        sim_fail(m->w, "model: an Error without words, code %d", msg->code);
    } else if (ask != NULL) {
        if (!refusal_is_fair(m, conn, ask, msg->code)) {
            sim_fail(m->w, "model: %s asks with %s and is refused (%d): %s", conn->peer.who.id,
                     ms_wire_find(ask->type)->name, msg->code, msg->text);
        }
        m_ask_drop(m, ask);
    } else if (conn->registering && id == conn->register_id) {
        if (!m_register_refusal_is_fair(m, conn, msg->code)) {
            sim_fail(m->w, "model: node %s is refused (%d): %s", conn->asked.id, msg->code,
                     msg->text);
        }
        m_rank_refused(m, conn, msg->code);
        conn->registering = false;
        m_probe_over(m, conn->id);
    } else if (!answers_now) {
        sim_fail(m->w, "model: connection %llu hears an Error that it did not ask for: %s",
                 (ull)conn->id, msg->text);
    }
}

/* The job of the next id, or NULL. */
static const struct m_job *job_after(const struct model *m, uint64_t id)
{
    const struct m_job *next = NULL;
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        if (!job->dropped && job->id > id && (next == NULL || job->id < next->id)) {
            next = job;
        }
    }
    return next;
}

static void judge_list(struct model *m, const Ms__JobList *msg)
{
    const Ms__JobQuery *asked = (const Ms__JobQuery *)m->event->msg;
    uint32_t limit =
        asked->limit > 0 && asked->limit < MS_LIST_PAGE_MAX ? asked->limit : MS_LIST_PAGE_MAX;
    uint64_t after = asked->job != 0 ? asked->job - 1 : asked->after;
    size_t n = 0;
    bool more = false;
    limit = asked->job != 0 ? 1 : limit;
    const struct m_job *job = job_after(m, after);
    for (; job != NULL && n <= limit; job = job_after(m, job->id)) {
        uint64_t id = job->id;
        if (asked->job != 0 ? id != asked->job : !asked->all && m_is_ended(job)) {
            continue;
        }
        if (n == limit) {
            more = asked->job == 0;
            break;
        }
        if (n >= msg->n_jobs || msg->jobs[n]->id != id) {
            sim_fail(m->w, "model: a list lacks job %llu", (ull)id);
            return;
        }
        judge_info(m, job, msg->jobs[n], asked->job != 0);
        bool waits =
            job->state == JOB_QUEUED || job->state == JOB_PLACING; /* else the disk has it */
        bool lacks = asked->plan ? waits && strcmp(msg->jobs[n]->plan, job->plan) != 0
                                 : !m_is_ended(job) && msg->jobs[n]->job_json.len == 0;
        if (asked->job != 0 && lacks) {
            sim_fail(m->w, "model: job %llu is told without its %s", (ull)id,
                     asked->plan ? "plan" : "spec");
        }
        if (m_is_ended(job) && msg->jobs[n]->job_json.len > 0 && m->w->mode != SCHED_DYNAMIC) {
            sim_fail(m->w, "model: job %llu has ended, and its spec is kept in memory", (ull)id);
        }
        n++;
    }
    if (msg->n_jobs != n || (msg->more != 0) != more) {
        sim_fail(m->w, "model: a list has %zu jobs (more: %d), and should have %zu (%d)",
                 msg->n_jobs, msg->more, n, more);
    }
}

static void judge_update(struct model *m, struct m_ask *ask, const Ms__JobUpdate *msg)
{
    const struct m_job *job = m_job_find(m, ask->job);
    if (job == NULL || msg->job->id != ask->job || (msg->ended != 0) != m_is_ended(job)) {
        sim_fail(m->w, "model: a watcher of job %llu hears of job %llu (ended: %d)", (ull)ask->job,
                 (ull)msg->job->id, msg->ended);
        return;
    }
    bool asked_now = m->event->kind == SCHED_EV_MESSAGE && m->event->conn == ask->conn;
    if (m_conn_find(m, ask->conn)->clogged && !asked_now && !msg->ended) {
        sim_fail(m->w,
                 "model: connection %llu has not read the last news of job %llu, and more come",
                 (ull)ask->conn, (ull)ask->job);
    }
    judge_info(m, job, msg->job, true);
    ask->watching = true;
    ask->told = job->state;
    if (msg->ended) {
        m_ask_drop(m, ask);
    }
}

static int compare(const char *host, const char *id, const char *other_host, const char *other_id)
{
    int order = natural_compare(host, other_host);
    return order != 0 ? order : natural_compare(id, other_id);
}

/* "LENGTH:hostid" says where the page before has ended. */
static void read_cursor(const char *cursor, char host[MS_HOST_MAX + 1], const char **ret_id)
{
    char *end = NULL;
    size_t length = strtoul(cursor, &end, 10);
    snprintf(host, MS_HOST_MAX + 1, "%.*s", (int)length, end + 1);
    *ret_id = end + 1 + length;
}

/* A page goes on where the one before has ended: each node is in one of them, once. */
static void judge_page(struct model *m, const Ms__NodeQuery *asked, const Ms__NodeList *msg)
{
    char host[MS_HOST_MAX + 1] = "";
    char next[MS_CURSOR_MAX + 1] = "";
    const char *id = "";
    uint32_t limit =
        asked->limit > 0 && asked->limit < MS_LIST_PAGE_MAX ? asked->limit : MS_LIST_PAGE_MAX;
    if (asked->after[0] != '\0') {
        read_cursor(asked->after, host, &id);
    }
    const char *last_host = host;
    const char *last_id = id;
    bool in_order = true;
    for (size_t i = 0; i < msg->n_nodes; i++) {
        const Ms__NodeInfo *info = msg->nodes[i];
        in_order = in_order && compare(info->host_name, info->node_id, last_host, last_id) > 0;
        last_host = info->host_name;
        last_id = info->node_id;
    }
    if (msg->more) {
        snprintf(next, sizeof(next), "%zu:%s%s", strlen(last_host), last_host, last_id);
    }
    if (!in_order || msg->n_nodes > limit || (msg->more && msg->n_nodes < limit) ||
        strcmp(msg->next, next) != 0) {
        sim_fail(m->w, "model: a page of %zu nodes after '%s' is out of order, or leads to '%s'",
                 msg->n_nodes, asked->after, msg->next);
    }
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        bool told = node->conn == 0 || compare(node->host_name, node->id, host, id) <= 0 ||
                    (msg->more && compare(node->host_name, node->id, last_host, last_id) > 0);
        for (size_t k = 0; k < msg->n_nodes && !told; k++) {
            told = strcmp(msg->nodes[k]->node_id, node->id) == 0;
        }
        if (!told) {
            sim_fail(m->w, "model: a page of nodes lacks node %s", node->id);
        }
    }
}

/* Also of one that nobody has heard since the restart: the process that has to come back. */
static bool has_its_pid(const struct model *m, const Ms__NodeInfo *info, const struct m_node *node)
{
    bool has = node == NULL || node->conn == 0 || info->pid == node->pid;
    for (size_t i = 0; strcmp(info->state, "NEW") == 0 && i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; !job->dropped && m_is_placed(job) && rank < job->n_ranks; rank++) {
            const struct m_rank *r = &job->ranks[rank];
            has =
                has && (!r->missing || strcmp(r->node, info->node_id) != 0 || info->pid == r->pid);
        }
    }
    return has;
}

static void judge_nodes(struct model *m, const Ms__NodeList *msg)
{
    const Ms__NodeQuery *asked = (const Ms__NodeQuery *)m->event->msg;
    for (size_t i = 0; i < msg->n_nodes; i++) {
        const Ms__NodeInfo *info = msg->nodes[i];
        const struct m_node *node = m_node_find(m, info->node_id);
        bool registered = node != NULL && node->conn != 0;
        bool idle = strcmp(info->activity, "idle") == 0;
        bool paused = strncmp(info->activity, "paused: ", 8) == 0;
        enum m_pause pause = node != NULL ? m_pause_of(m, node) : M_PERHAPS;
        if (registered != (strcmp(info->state, "REGISTERED") == 0) ||
            (registered && m_is_idle(node) != (idle || paused)) || (idle && pause == M_PAUSED) ||
            (paused && pause == M_NOT_PAUSED) || !has_its_pid(m, info, node)) {
            sim_fail(m->w, "model: node %s is told as %s, %s, process %u", info->node_id,
                     info->state, info->activity, info->pid);
        }
    }
    if (asked->node_id[0] == '\0') {
        judge_page(m, asked, msg);
        if (asked->after[0] == '\0' && !msg->more) {
            m_judge_gone(m, msg);
        }
    }
}

static void judge_status(struct model *m, const Ms__StatusInfo *msg)
{
    uint32_t queued = 0;
    uint32_t placed = 0;
    for (size_t i = 0; i < m->jobs.n; i++) {
        queued += !m->jobs.at[i].dropped && m->jobs.at[i].state == JOB_QUEUED;
        placed += !m->jobs.at[i].dropped && m_is_placed(&m->jobs.at[i]);
    }
    if (msg->nodes_registered != m_count(m) || msg->nodes_idle < m_count_idle(m, false) ||
        msg->nodes_idle > m_count_idle(m, true) || msg->jobs_queued != queued ||
        msg->jobs_running != placed || (msg->draining != 0) != m->draining) {
        sim_fail(m->w,
                 "model: status says %u nodes, %u idle, %u jobs queued, %u placed; and it is %u, "
                 "%u to %u, %u, %u",
                 msg->nodes_registered, msg->nodes_idle, msg->jobs_queued, msg->jobs_running,
                 m_count(m), m_count_idle(m, false), m_count_idle(m, true), queued, placed);
    }
}

/* ---- logs ---------------------------------------------------------------------------------------
 */

void m_judge_log_read(struct model *m, const struct m_conn *conn, const Ms__LogRead *msg)
{
    const struct m_node *node = m_node_of(m, conn);
    if (msg->job == 0 && msg->route == 0 && node != NULL && node->probed == m->mono) {
        return; /* a ping */
    }
    for (size_t i = 0; i < m->asks.n && node != NULL; i++) {
        struct m_ask *ask = &m->asks.at[i];
        const struct m_job *job = m_job_find(m, ask->job);
        uint32_t bytes = ask->bytes_max > 0 && ask->bytes_max < MS_LOG_CHUNK_MAX ? ask->bytes_max
                                                                                 : MS_LOG_CHUNK_MAX;
        if (ask->type == MS_MSG_LOG_QUERY && ask->route == 0 && ask->conn == m->event->conn &&
            ask->id == m->event->id && job != NULL && ask->rank < job->n_ranks &&
            msg->job == ask->job && msg->rank == ask->rank && msg->offset == ask->offset &&
            msg->bytes_max == bytes && strcmp(job->ranks[ask->rank].node, node->id) == 0 &&
            !m_is_anothers(&job->ranks[ask->rank], node)) {
            ask->route = msg->route;
            memcpy(ask->node, node->id, sizeof(ask->node));
            return;
        }
    }
    sim_fail(m->w, "model: node %s has to read the log of job %llu rank %u, and nobody asked it",
             node != NULL ? node->id : "?", (ull)msg->job, msg->rank);
}

static void judge_chunk(struct model *m, struct m_ask *ask, const Ms__LogChunk *msg)
{
    const Ms__LogChunk *from = (const Ms__LogChunk *)m->event->msg;
    const struct m_conn *sender = m_conn_find(m, m->event->conn);
    const struct m_node *node = sender != NULL ? m_node_of(m, sender) : NULL;
    if (m->event->kind != SCHED_EV_MESSAGE || m->event->type != MS_MSG_LOG_CHUNK || node == NULL ||
        from->route != ask->route || strcmp(ask->node, node->id) != 0 ||
        from->offset != msg->offset || from->at_end != msg->at_end || from->code != msg->code ||
        from->data.len != msg->data.len ||
        memcmp(from->data.data, msg->data.data, from->data.len) != 0) {
        sim_fail(m->w, "model: a reader of job %llu rank %u hears what that rank did not write",
                 (ull)ask->job, ask->rank);
    }
}

void m_judge_answer(struct model *m, struct m_conn *conn, uint16_t type, uint32_t id,
                    const ProtobufCMessage *msg)
{
    static const struct {
        uint16_t answer, question;
    } pairs[] = {{MS_MSG_SUBMITTED, MS_MSG_SUBMIT},
                 {MS_MSG_JOB_LIST, MS_MSG_JOB_QUERY},
                 {MS_MSG_OK, MS_MSG_CANCEL},
                 {MS_MSG_JOB_UPDATE, MS_MSG_WATCH},
                 {MS_MSG_NODE_LIST, MS_MSG_NODE_QUERY},
                 {MS_MSG_STATUS_INFO, MS_MSG_STATUS_QUERY},
                 {MS_MSG_LOG_CHUNK, MS_MSG_LOG_QUERY},
                 {MS_MSG_FETCH_TICKET, MS_MSG_FETCH},
                 {MS_MSG_EVENT_LIST, MS_MSG_EVENT_QUERY}};
    struct m_ask *ask = m_ask_find(m, conn->id, id);
    const struct m_job *job = ask != NULL ? m_job_find(m, ask->job) : NULL;
    bool fits = false;
    if (type == MS_MSG_ERROR) {
        judge_error(m, conn, id, (const Ms__Error *)msg);
        return;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(pairs) && ask != NULL; i++) {
        fits = fits || (pairs[i].answer == type && pairs[i].question == ask->type);
    }
    if (!fits) {
        sim_fail(m->w, "model: connection %llu hears %s, which it did not ask for", (ull)conn->id,
                 ms_wire_find(type)->name);
        return;
    }
    switch (type) {
    case MS_MSG_SUBMITTED:
        judge_submitted(m, conn, (const Ms__Submitted *)msg);
        break;
    case MS_MSG_OK:
        if (job == NULL || job->state != JOB_CANCELLED || !may_cancel(conn, job)) {
            sim_fail(m->w, "model: %s hears that job %llu is cancelled, and it is %s",
                     conn->peer.who.id, (ull)ask->job,
                     job != NULL ? sched_job_state_name(job->state) : "unknown");
        }
        break;
    case MS_MSG_JOB_LIST:
        judge_list(m, (const Ms__JobList *)msg);
        break;
    case MS_MSG_NODE_LIST:
        judge_nodes(m, (const Ms__NodeList *)msg);
        break;
    case MS_MSG_STATUS_INFO:
        judge_status(m, (const Ms__StatusInfo *)msg);
        break;
    case MS_MSG_LOG_CHUNK:
        judge_chunk(m, ask, (const Ms__LogChunk *)msg);
        break;
    case MS_MSG_FETCH_TICKET:
        m_judge_ticket(m, ask, (const Ms__FetchTicket *)msg);
        break;
    case MS_MSG_EVENT_LIST:
        m_judge_no_events(m, ask, (const Ms__EventList *)msg);
        break;
    default:
        judge_update(m, ask, (const Ms__JobUpdate *)msg);
        return; /* a watch goes on */
    }
    m_ask_drop(m, ask);
}

/* ---- what had to be answered --------------------------------------------------------------------
 */

static bool may_wait(const struct model *m, const struct m_ask *ask, const struct m_job *job)
{
    switch (ask->type) {
    case MS_MSG_WATCH:
        return ask->watching;
    case MS_MSG_EVENT_QUERY:
        return m_events_may_wait(m, ask);
    case MS_MSG_CANCEL:
        return job != NULL && m_stops_at_step(job) && count_waiters(m, ask) < MS_CANCEL_WAITERS_MAX;
    case MS_MSG_LOG_QUERY:
    case MS_MSG_FETCH:
        return ask->route != 0 && (m->event->kind != SCHED_EV_TIME ||
                                   m->mono - ask->asked_at <=
                                       MS_LOG_READ_MS + m->stretch - ask->asked_stretch + LATE_MS);
    default:
        return false;
    }
}

void m_judge_clients_after(struct model *m)
{
    /* news have a budget: the core says that it goes on at once, and the next tick is judged */
    bool goes_on = sched_deadline(m->w->sched) <= m->mono;
    for (size_t i = 0; i < m->asks.n; i++) {
        struct m_ask *ask = &m->asks.at[i];
        const struct m_job *job = m_job_find(m, ask->job);
        ask->parked = ask->watching && !goes_on && ask->type == MS_MSG_EVENT_QUERY;
        if (!may_wait(m, ask, job)) {
            sim_fail(m->w, "model: connection %llu asks with %s about job %llu and hears nothing",
                     (ull)ask->conn, ms_wire_find(ask->type)->name, (ull)ask->job);
        } else if (ask->type == MS_MSG_WATCH && !goes_on && !m_conn_find(m, ask->conn)->clogged &&
                   (job == NULL || job->state != ask->told)) {
            sim_fail(m->w, "model: a watcher of job %llu last heard %s, and it is %s",
                     (ull)ask->job, sched_job_state_name(ask->told),
                     job != NULL ? sched_job_state_name(job->state) : "forgotten");
        }
    }
    for (size_t i = 0; i < m->conns.n; i++) {
        const struct m_conn *conn = &m->conns.at[i];
        const struct m_node *node = conn->registering ? m_node_find(m, conn->asked.id) : NULL;
        if (conn->registering && (node == NULL || node->prober != conn->id) &&
            !m_waits_for_first(m, conn)) {
            sim_fail(m->w, "model: node %s registers and hears nothing", conn->asked.id);
        }
        if (conn->replaced) {
            sim_fail(m->w, "model: connection %llu stays open, and its process has another one",
                     (ull)conn->id);
        }
    }
}
