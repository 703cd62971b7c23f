/* model_nodes.c - the model's nodes: who registers, who is lost, who is idle */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

/* A claim may be above what the scheduler knows, by a little: see protocol.md. */
enum { SLACK_MS = 5, LATE_MS = 100 };

bool m_is_idle(const struct m_node *node)
{
    return node->conn != 0 && node->hold.job == 0 && !node->leaving;
}

static bool is_letting_go(const struct model *m, const struct m_node *node)
{
    const struct m_job *job = m_job_find((struct model *)m, node->hold.job);
    return node->hold.job != 0 && m_former_of(m, node) == NULL &&
           (job == NULL || !m_is_placed(job) ||
            (job->generation != node->hold.generation && !job->recovery) ||
            node->hold.rank >= job->n_ranks || job->ranks[node->hold.rank].vacant ||
            job->ranks[node->hold.rank].incarnation != node->incarnation ||
            strcmp(job->ranks[node->hold.rank].node, node->id) != 0);
}

/* Its rank is one of a job that is placed: in another generation than it knows, perhaps. */
bool m_is_bound(struct model *m, const struct m_node *node)
{
    const struct m_job *job = m_job_find(m, node->hold.job);
    return node->hold.job != 0 && job != NULL && job->recovery && !is_letting_go(m, node);
}

bool m_has_rank_of(const struct model *m, const struct m_node *node, uint64_t job)
{
    return node->hold.job == job && !is_letting_go(m, node);
}

bool m_is_usable(const struct model *m, const struct m_node *node, bool at_most)
{
    bool is_late = m->mono > node->stop_at + MS_STOP_ANSWER_MS + LATE_MS;
    enum m_pause pause = node->conn != 0 ? m_pause_of(m, node) : M_PAUSED;
    return (pause == M_NOT_PAUSED || (at_most && pause == M_PERHAPS)) && !node->leaving &&
           (!is_letting_go(m, node) || (at_most && !is_late));
}

uint32_t m_count_usable(const struct model *m, bool at_most)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        n += m_is_usable(m, &m->nodes.at[i], at_most);
    }
    return n;
}

uint32_t m_count(const struct model *m)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        n += m->nodes.at[i].conn != 0;
    }
    return n;
}

static void copy(char *dst, size_t size, const char *src)
{
    snprintf(dst, size, "%s", src);
}

void m_on_register(struct model *m, struct m_conn *conn, const Ms__Register *msg)
{
    struct m_node *asked = &conn->asked;
    struct m_node *now = m_node_find(m, msg->node_id);
    if (conn->registering) {
        return; /* one at a time: the first one keeps its place */
    }
    memset(asked, 0, sizeof(*asked));
    copy(asked->id, sizeof(asked->id), msg->node_id);
    copy(asked->owner, sizeof(asked->owner), conn->peer.who.id);
    copy(asked->host_name, sizeof(asked->host_name), msg->host_name);
    copy(asked->host_id, sizeof(asked->host_id), msg->host_id);
    copy(asked->data_address, sizeof(asked->data_address), msg->data_address);
    copy(asked->data_unix, sizeof(asked->data_unix), msg->data_unix);
    asked->folder = msg->jobs_folder;
    asked->physical = msg->offer != NULL ? msg->offer->physical : 0;
    copy(asked->isa, sizeof(asked->isa), msg->isa);
    copy(asked->cert_name, sizeof(asked->cert_name), conn->peer.cert_name);
    asked->host = m_host_key(m, asked);
    asked->incarnation = msg->incarnation;
    conn->false_stamp = m_stamp_is_false(m, &msg->stamp);
    asked->uid = msg->uid;
    asked->level = msg->level;
    asked->pid = msg->pid;
    conn->registering = true;
    conn->succeeds = now != NULL && now->conn != 0 && strcmp(now->owner, asked->owner) == 0;
    conn->register_id = m->event->id;
    conn->claim = (struct m_hold){msg->job, msg->generation, msg->rank};
    conn->claim_runs = msg->running;
    conn->claim_step = msg->step;
    const struct m_conn *prober = now != NULL ? m_conn_find(m, now->prober) : NULL;
    const bool again = prober != NULL && prober->asked.incarnation == msg->incarnation &&
                       strcmp(prober->asked.owner, asked->owner) == 0;
    if (now != NULL && now->conn != 0 && now->conn != conn->id &&
        now->incarnation != msg->incarnation && (now->probed == SIM_NEVER || again)) {
        now->probed = m->mono;
        now->prober = conn->id;
    }
}

/* Its ranks are lost with it. */
static void ranks_lost(struct model *m, const char *node, uint64_t except_incarnation)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
            struct m_rank *r = &job->ranks[rank];
            if (strcmp(r->node, node) == 0 && r->incarnation != except_incarnation && !r->missing &&
                !r->vacant) {
                r->lost = true;
            }
        }
    }
}

/* Its connection closed soon after we stood still ourselves: its rank is expected back. */
static bool goes_away(struct model *m, const struct m_node *node)
{
    struct m_job *job = m_job_find(m, node->hold.job);
    if (m->event->kind != SCHED_EV_CLOSED || m->mono >= m->away_until ||
        node->probed != SIM_NEVER || job == NULL || !m_is_placed(job) ||
        (job->generation != node->hold.generation && !job->recovery) ||
        node->hold.rank >= job->workers) {
        return false;
    }
    struct m_rank *r = &job->ranks[node->hold.rank];
    if (strcmp(r->node, node->id) != 0 || r->incarnation != node->incarnation || r->vacant) {
        return false;
    }
    const bool is_well = r->done && r->code == MS_OK && !r->stopped && r->started;
    if (!r->done || (job->recovery && is_well)) {
        r->done = false;
        r->missing = true;
        r->ready = job->state == JOB_RUNNING;
        job->stop_told = false; /* the others have all their time once it is back, or lost */
        if (job->missing_since == SIM_NEVER) {
            job->missing_since = m->mono;
            job->missing_stretch = m->stretch;
            job->missing_ms = m->lease_ms;
        } else {
            job->missing_again = true;
        }
    }
    return true;
}

void m_node_lost(struct model *m, struct m_node *node)
{
    if (goes_away(m, node)) {
        node->conn = 0;
        node->came = false;
        node->hold = (struct m_hold){0};
        return;
    }
    ranks_lost(m, node->id, 0);
    m_former_gone(m, node);
    node->leaving = false;
    node->conn = 0;
    node->hold = (struct m_hold){0};
}

/* The claim is one that we gave: to this node, this process, in this generation, with this rank. */
static struct m_rank *claim_is_ours(struct model *m, const struct m_conn *conn)
{
    struct m_job *job = m_job_find(m, conn->claim.job);
    if (job == NULL || !m_is_placed(job) || job->generation != conn->claim.generation ||
        conn->claim.rank >= job->workers) {
        return NULL;
    }
    struct m_rank *r = &job->ranks[conn->claim.rank];
    return strcmp(r->node, conn->asked.id) == 0 && r->incarnation == conn->asked.incarnation &&
                   !r->vacant && (r->settled == 0 || job->recovery)
               ? r
               : NULL;
}

/* The last one is lost of a job that was to stop: that is its end, whoever comes in that moment. */
static bool none_is_left(const struct model *m, const struct m_job *job)
{
    bool is_lost = false;
    bool is_left = false;
    for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
        is_lost = is_lost || job->ranks[rank].lost;
        is_left = is_left || !(job->ranks[rank].lost || job->ranks[rank].vacant);
    }
    return is_lost && !is_left && m_stops_at_step(job) && !m_awaits_back(m, job);
}

/* What its scheduler gave to this node id is not what it comes with. */
static void old_ranks_lost(struct model *m, const struct m_conn *conn, const struct m_rank *ours)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
            struct m_rank *r = &job->ranks[rank];
            if (strcmp(r->node, conn->asked.id) == 0 && r != ours && !r->vacant) {
                r->lost = true;
                r->was_missing = r->missing;
                r->missing = false;
            }
        }
    }
}

static void came_back(struct model *m, const struct m_conn *conn, struct m_rank *r)
{
    struct m_job *job = m_job_find(m, conn->claim.job);
    if (conn->claim.generation == job->generation) {
        r->settled = 0; /* it knows it, whatever it was to stop in */
    } else if (r->settled != 0 && conn->claim.generation > r->settled) {
        r->settled = conn->claim.generation;
    }
    const uint64_t known = r->settled != 0 ? r->settled : job->generation;
    const bool is_older = conn->claim.generation != known;
    if (r->missing && job->state != JOB_RUNNING) {
        r->ready = r->started = job->called_off; /* else it is to get ready */
    }
    r->has_state = r->has_state || conn->claim_runs || conn->claim_step > 0;
    r->unknown = false;
    snprintf(r->machine, sizeof(r->machine), "%s", m_machine(m_node_find(m, r->node)));
    r->missing = r->refused = false;
    r->has_plan = r->has_plan && conn->claim.generation >= r->ready_in; /* else it begins anew */
    r->may_lack_plan = r->may_lack_plan || (r->has_plan && conn->claim.generation > r->ready_in);
    r->came_now =
        (!is_older || m_stops_at_step(job)) && job->state != JOB_RUNNING && !job->called_off;
    m_saw_step(job, conn->claim_step);
    if (conn->claim_step > r->step || !(r->has_plan || r->has_state)) {
        r->step = conn->claim_step;
    }
    if (!is_older || job->called_off || m_stops_at_step(job)) { /* else all begin anew */
        m_saver_came_back(m, job, conn->claim.rank);
    }
    if (r == job->ranks && !job->has_progress && job->told < r->step) {
        job->told = r->step; /* nothing of before is news to come */
    }
    r->pid = conn->asked.pid;
    bool missing = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        missing = missing || job->ranks[rank].missing;
    }
    job->missing_since = missing ? job->missing_since : SIM_NEVER;
    if (m_stops_at_step(job) && job->state == JOB_RECOVERING) {
        m_stop_at_step(m, job, false);
        return;
    }
    if (is_older && m_stops_at_step(job)) {
        job->cancel_due = true; /* the step never ends */
        return;
    }
    if (is_older && !job->called_off) {
        m_stands_still(m, job);
        return;
    }
    if (job->state == JOB_RUNNING && !conn->claim_runs) {
        r->started = false; /* our Start was lost: it is due again */
    }
    if (m_stops_at_step(job)) {
        m_stop_at_step(m, job, false);
    }
}

static void claim_is_not_ours(struct model *m, const struct m_conn *conn)
{
    const struct m_job *job = m_job_find(m, conn->claim.job);
    struct m_stop stop = {.job = conn->claim.job,
                          .generation = conn->claim.generation,
                          .code = job != NULL && m_is_placed(job) && m_stops_at_step(job)
                                      ? MS_E_CANCELLED
                                      : MS_E_ABORTED,
                          .any_text = true,
                          .claim = true};
    m_stop_expect(m, conn->id, &stop);
}

/* It has, or is expected back with, a rank that was given to somebody else. */
static bool is_taken(const struct model *m, const struct m_node *asked)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; !job->dropped && m_is_placed(job) && rank < job->workers; rank++) {
            const struct m_rank *r = &job->ranks[rank];
            bool known = r->owner[0] != '\0';
            if (!r->lost && !r->vacant && known && strcmp(r->node, asked->id) == 0 &&
                strcmp(r->owner, asked->owner) != 0) {
                return true;
            }
        }
    }
    return false;
}

/* In a standing cluster a node id is the name of its certificate alone, or with a slot ("-0") or a
 * word (":a", "/a") behind it; and few nodes have one certificate. */
static bool is_named_wrongly(const struct model *m, const struct m_node *asked)
{
    char name[sizeof(asked->id)];
    copy(name, sizeof(name), asked->id);
    if (strpbrk(name, ":/") != NULL) {
        *strpbrk(name, ":/") = '\0';
    } else {
        size_t end = strlen(name);
        while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') {
            end--;
        }
        if (name[end] != '\0' && end > 0 && name[end - 1] == '-') {
            name[end - 1] = '\0';
        }
    }
    return m->w->certificate_ids && asked->cert_name[0] != '\0' &&
           strcmp(name, asked->cert_name) != 0;
}

/* That owner's, and it has to come back with its rank; perhaps: or it may have said all. */
static bool is_expected(const struct model *m, const char *id, const char *owner, bool perhaps)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; !job->dropped && m_is_placed(job) && rank < job->workers; rank++) {
            const struct m_rank *r = &job->ranks[rank];
            if ((r->missing || (perhaps && !r->vacant && !r->lost)) && strcmp(r->node, id) == 0 &&
                strcmp(r->owner, owner) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Who is there, or has to come back, has his place. */
static bool is_one_too_many(const struct model *m, const struct m_node *asked, bool perhaps)
{
    uint32_t n = 0;
    const struct m_node *now = m_node_find((struct model *)m, asked->id);
    const bool is_here = now != NULL && now->conn != 0 && strcmp(now->owner, asked->owner) == 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        const bool counts = strcmp(node->owner, asked->owner) == 0 &&
                            (node->conn != 0 || is_expected(m, node->id, asked->owner, perhaps));
        n += counts && strcmp(node->id, asked->id) != 0;
    }
    return m->w->mode == SCHED_STANDING && asked->cert_name[0] != '\0' &&
           n >= m->w->nodes_per_certificate && !is_here &&
           !is_expected(m, asked->id, asked->owner, !perhaps);
}

/* One process has one connection, and keeps it. */
static bool is_another_process(const struct m_node *node, const struct m_conn *conn)
{
    return node != NULL && node->conn == conn->id && node->incarnation != conn->asked.incarnation;
}

/* Other hosts dial it: a path is none of theirs. */
static bool is_reachable(const struct m_node *asked)
{
    return strchr(asked->data_address, '/') == NULL && strchr(asked->data_address, ':') != NULL;
}

static void judge_takeover(struct model *m, const struct m_conn *conn, const struct m_node *node)
{
    if (node->incarnation == conn->asked.incarnation) {
        return; /* the same process over a new connection */
    }
    if (!m_is_overdue(m, node)) {
        sim_fail(m->w, "model: node %s is given to another process, and the first one lives",
                 node->id);
    }
}

/* People start processes, in a dynamic cluster: while the one that has a rank may still come back,
 * another one with its id waits. NULL, or the job whose rank it is. */
static const struct m_job *job_of_first(const struct model *m, const struct m_node *asked)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; !job->dropped && m_is_placed(job) && rank < job->workers; rank++) {
            const struct m_rank *r = &job->ranks[rank];
            if (m->w->mode == SCHED_DYNAMIC && r->missing && strcmp(r->node, asked->id) == 0 &&
                r->incarnation != asked->incarnation) {
                return job;
            }
        }
    }
    return NULL;
}

/* Its longest pause, and a knock that is in vain; before a crowded door as long as anybody. */
static int64_t first_until(const struct model *m, const struct m_job *job, int64_t lease_ms)
{
    const int64_t beat_ms = lease_ms / MS_HEARTBEATS_PER_LEASE;
    const int64_t pause_ms = beat_ms < MS_RECONNECT_LATER_MS ? beat_ms : MS_RECONNECT_LATER_MS;
    return m->crowded_at != SIM_NEVER ? SIM_FOREVER
                                      : job->missing_since + MS_HANDSHAKE_MS + pause_ms +
                                            m->stretch - job->missing_stretch;
}

bool m_waits_for_first(const struct model *m, const struct m_conn *conn)
{
    const struct m_job *job = job_of_first(m, &conn->asked);
    const bool is_judged =
        job != NULL && m->event->kind == SCHED_EV_TIME && !m->turn_is_full && !job->missing_again;
    return job != NULL &&
           (!is_judged || m->mono - LATE_MS <= first_until(m, job, m->lease_most_ms));
}

/* It was told over its last connection to let go of what it claims, and has not answered. */
static bool is_told_to_let_go(const struct model *m, const struct m_node *node,
                              const struct m_conn *conn)
{
    return node->conn != 0 && node->incarnation == conn->asked.incarnation &&
           node->hold.job == conn->claim.job && node->hold.rank == conn->claim.rank &&
           node->hold.generation >= conn->claim.generation && is_letting_go(m, node);
}

static struct m_rank *rank_awaited(struct model *m, const struct m_conn *conn)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; !job->dropped && m_is_placed(job) && rank < job->workers; rank++) {
            struct m_rank *r = &job->ranks[rank];
            if (r->missing && strcmp(r->node, conn->asked.id) == 0 &&
                r->incarnation == conn->asked.incarnation &&
                (r->owner[0] == '\0' || strcmp(r->owner, conn->asked.owner) == 0)) {
                return r;
            }
        }
    }
    return NULL;
}

void m_judge_registered(struct model *m, struct m_conn *conn, const Ms__Registered *msg,
                        uint32_t id)
{
    struct m_node *node = m_node_find(m, conn->asked.id);
    if (!conn->registering || id != conn->register_id ||
        strcmp(msg->node_id, conn->asked.id) != 0 || msg->lease_ms != (uint64_t)m->lease_ms) {
        sim_fail(m->w, "model: Registered for node %s, which nobody asked for", msg->node_id);
        return;
    }
    conn->registering = false;
    m_judge_stamp(m, conn->asked.id, &msg->stamp);
    if (conn->false_stamp || is_taken(m, &conn->asked) || is_named_wrongly(m, &conn->asked) ||
        (!conn->succeeds && is_one_too_many(m, &conn->asked, false)) ||
        conn->asked.incarnation == 0 || conn->asked.id[0] == '\0' ||
        (m_node_of(m, conn) != NULL && m_node_of(m, conn) != node) ||
        (node != NULL && node->conn != 0 && strcmp(node->owner, conn->asked.owner) != 0) ||
        is_another_process(node, conn) || !is_reachable(&conn->asked)) {
        sim_fail(m->w, "model: node %s was accepted from %s, and must not be", conn->asked.id,
                 conn->peer.who.id);
    }
    if (node == NULL) {
        node = M_MORE(m->nodes, struct m_node);
        m_name_at(m, m_name(m, conn->asked.id))->node = m->nodes.n;
    } else if (node->conn != 0 && node->conn != conn->id) {
        judge_takeover(m, conn, node);
        struct m_conn *old = m_conn_find(m, node->conn);
        if (old != NULL) {
            old->replaced = true;
        }
    }
    const struct m_job *first = job_of_first(m, &conn->asked);
    if (first != NULL && m->mono < first_until(m, first, m->lease_least_ms) &&
        !m_missing_is_due(m, first)) {
        sim_fail(m->w, "model: node %s is given to another process, and the first one may live",
                 node->id);
    }
    bool came = node->came;
    bool leaving = node->leaving && node->incarnation == conn->asked.incarnation;
    if (!came || (node->conn == 0 && m->w->lost_nodes_max > 0)) {
        m->came_most_at = m->n_came > 0 && m->came_most_at > m->mono ? m->came_most_at : m->mono;
    }
    const bool lets_go = is_told_to_let_go(m, node, conn);
    const bool was_kept = node->conn != 0 && node->incarnation == conn->asked.incarnation &&
                          m_former_of(m, node) != NULL;
    m_former_gone(m, node);
    m_formers_note(m, &conn->asked);
    *node = conn->asked;
    m_node_back(m, node->id);
    node->came = true;
    node->told_end = false;
    node->leaving = leaving;
    if (!came) {
        m->came_at = m->n_came > 0 && m->came_at > m->mono ? m->came_at : m->mono;
        m->n_came++;
    }
    node->conn = conn->id;
    struct m_job *had = m_job_find(m, conn->claim.job);
    const bool ends = had != NULL && (m_is_ended(had) || m_stops_at_step(had));
    if (m->w->mode == SCHED_DYNAMIC && m_count(m) > m->w->worker_num && !ends) {
        sim_fail(m->w, "model: node %s is accepted, and all ranks have one", node->id);
    }
    node->heard = node->spoke = m->mono;
    node->probed = SIM_NEVER;
    node->hold = conn->claim;
    struct m_rank *ours = conn->claim.job != 0 ? claim_is_ours(m, conn) : NULL;
    ours = ours == NULL && conn->claim.job != 0 ? m_claim_is_older(m, conn) : ours;
    struct m_rank *given_up =
        ours == NULL && !lets_go && !was_kept ? m_claim_is_vacant(m, conn) : NULL;
    if (ours == NULL && conn->claim.job != 0) {
        m_host_excused(m, node, &conn->claim); /* whoever has that rank by now */
    }
    old_ranks_lost(m, conn, ours);
    const bool had_its_end = had != NULL && none_is_left(m, had);
    if (conn->claim.generation > m->generation + MS_GENERATION_STEP_MAX ||
        (m->w->mode != SCHED_DYNAMIC &&
         conn->claim.job > m->last_job + MS_GENERATION_STEP_MAX + 1)) {
        sim_fail(m->w, "model: node %s was believed that it has job %llu, generation %llu",
                 node->id, (ull)conn->claim.job, (ull)conn->claim.generation);
    }
    if (m->w->mode != SCHED_DYNAMIC && conn->claim.job > m->last_job) {
        m->last_job = conn->claim.job; /* somebody knows it: it is never given again */
    }
    m->generation = conn->claim.generation > m->generation ? conn->claim.generation : m->generation;
    if (ours != NULL) {
        came_back(m, conn, ours);
    } else if (given_up != NULL) {
        m_was_away(given_up);
        given_up->vacant = false;
        given_up->has_state = conn->claim_runs || conn->claim_step > 0;
        given_up->step = conn->claim_step > given_up->step ? conn->claim_step : given_up->step;
        given_up->has_plan = m_former_forget(had, conn->asked.incarnation) && !given_up->has_state;
        given_up->may_lack_plan = given_up->has_plan && conn->claim.generation > given_up->ready_in;
        given_up->pid = conn->asked.pid;
        memcpy(given_up->host, conn->asked.host_name, sizeof(given_up->host));
        snprintf(given_up->machine, sizeof(given_up->machine), "%s", m_machine(&conn->asked));
        if (m_is_at_end(had)) { /* it says again how it ended */
            given_up->has_state = given_up->started = given_up->ready = true;
            given_up->has_plan = given_up->may_lack_plan = false;
            m_saver_came_back(m, had, conn->claim.rank);
        } else if (m_stops_at_step(had)) { /* and so does it */
            given_up->is_back = true;
            given_up->started = had->state == JOB_RUNNING; /* no Start comes any more */
            m_saver_came_back(m, had, conn->claim.rank);
            m_stop_at_step(m, had, false);
        } else {
            m_stands_still(m, had);
        }
    } else if (conn->claim.job != 0 && !lets_go && !had_its_end &&
               m_claim_is_former(m, conn) != NULL) {
        m_former_comes(m, conn, m_claim_is_former(m, conn), was_kept);
    } else if (conn->claim.job != 0) {
        claim_is_not_ours(m, conn);
    }
    m_back_note_arrival(m, node->id);
}

/* Its process came for a rank that we wait for, and there is no place for it. */
void m_rank_refused(struct model *m, const struct m_conn *conn, int32_t code)
{
    struct m_rank *r = rank_awaited(m, conn);
    if (r != NULL && code == MS_E_FULL) {
        r->refused = true;
    }
}

/* The id is somebody's who is here, or another one waits for it already. */
static bool is_one_of_two(const struct model *m, const struct m_conn *conn)
{
    const struct m_node *node = m_node_find((struct model *)m, conn->asked.id);
    bool heard = node != NULL && node->prober == conn->id && node->spoke == m->mono;
    bool other = node != NULL && node->conn != 0 &&
                 (node->incarnation != conn->asked.incarnation ||
                  strcmp(node->owner, conn->asked.owner) != 0);
    for (size_t i = 0; i < m->conns.n && !other; i++) {
        const struct m_conn *waits = &m->conns.at[i];
        other = waits->registering && strcmp(waits->asked.id, conn->asked.id) == 0 &&
                waits->asked.incarnation != conn->asked.incarnation;
    }
    return other || heard || is_taken(m, &conn->asked) || conn->false_stamp ||
           world_is_evil(m->w, (uint32_t)conn->id);
}

/* It may be the last one that holds what its job is to end with. */
static bool comes_to_stop(struct model *m, const struct m_conn *conn)
{
    const struct m_job *job = m_job_find(m, conn->claim.job);
    return job != NULL && m_stops_at_step(job) &&
           (m_claim_is_vacant(m, conn) != NULL || m_claim_is_former(m, conn) != NULL);
}

/* Why a Register may be refused; anything else is a healthy worker that is sent away. */
bool m_register_refusal_is_fair(struct model *m, const struct m_conn *conn, int32_t code)
{
    const struct m_node *asked = &conn->asked;
    const struct m_node *node = m_node_find(m, asked->id);
    const struct m_node *mine = m_node_of(m, conn);
    if (m->w->mode == SCHED_DYNAMIC) {
        return (code != MS_E_EXISTS || is_one_of_two(m, conn)) &&
               (code != MS_E_REFUSED || !comes_to_stop(m, conn));
    }
    bool heard = node != NULL && node->prober == conn->id && node->spoke == m->mono;
    bool clash =
        node != NULL && node->conn != 0 && node->conn != conn->id &&
        (node->incarnation != asked->incarnation || strcmp(node->owner, asked->owner) != 0);
    if (code == MS_E_FULL) {
        return is_one_too_many(m, asked, true);
    }
    return is_taken(m, asked) || is_named_wrongly(m, asked) || asked->id[0] == '\0' ||
           asked->incarnation == 0 || clash || heard || (mine != NULL && mine != node) ||
           conn->claim.job > m->last_job || conn->claim.generation > m->generation ||
           conn->false_stamp || is_another_process(node, conn) || !is_reachable(asked) ||
           world_is_evil(m->w, (uint32_t)conn->id);
}

void m_probe_over(struct model *m, uint64_t prober)
{
    for (size_t i = 0; i < m->nodes.n; i++) {
        if (m->nodes.at[i].prober == prober) {
            m->nodes.at[i].probed = SIM_NEVER;
            m->nodes.at[i].prober = 0;
        }
    }
}

/* ---- leases -------------------------------------------------------------------------------------
 */

/* Another process wants its id, and it has not answered for a second. */
static bool is_fenced(const struct model *m, const struct m_node *node)
{
    return node->probed != SIM_NEVER && m->mono - node->probed >= MS_PROBE_MS &&
           node->spoke <= node->probed;
}

bool m_is_lost_by_lease(struct model *m, uint64_t id)
{
    const struct m_conn *conn = m_conn_find(m, id);
    const struct m_node *node = conn != NULL ? m_node_of(m, conn) : NULL;
    return node != NULL && m->mono - node->heard >= m->lease_ms && !is_fenced(m, node);
}

/* Silent for a lease, or for a second while another process wants its id. */
bool m_is_overdue(const struct model *m, const struct m_node *node)
{
    return node->conn != 0 && (m->mono - node->heard >= m->lease_ms || is_fenced(m, node));
}

bool m_judge_close(struct model *m, uint64_t id)
{
    struct m_conn *conn = m_conn_find(m, id);
    struct m_node *node = conn != NULL ? m_node_of(m, conn) : NULL;
    const struct m_conn *speaker = m_conn_find(m, m->event->conn);
    bool replaced = node != NULL && m->event->kind == SCHED_EV_MESSAGE &&
                    m->event->type == MS_MSG_REGISTER && speaker->id != id &&
                    strcmp(speaker->asked.id, node->id) == 0 &&
                    speaker->asked.incarnation == node->incarnation &&
                    strcmp(speaker->asked.owner, node->owner) == 0;
    if (node != NULL && !replaced && !m_is_overdue(m, node)) {
        sim_fail(m->w, "model: node %s is dropped %lld ms after it was heard, the lease is %lld ms",
                 node->id, (long long)(m->mono - node->heard), (long long)m->lease_ms);
    }
    return replaced;
}

bool m_is_silent(const struct model *m, const struct m_node *node)
{
    return node->conn != 0 && m->mono - node->heard > m->lease_most_ms + m->stretch + SLACK_MS;
}

/* Judged when a deadline is: whoever is silent for longer than a lease is no longer a node. */
void m_judge_leases(struct model *m)
{
    if (m->event->kind != SCHED_EV_TIME || m->turn_is_full) {
        return;
    }
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        int64_t silent = m->mono - node->heard;
        if (m_is_silent(m, node)) {
            sim_fail(m->w, "model: node %s is silent for %lld ms and is not lost", node->id,
                     (long long)silent);
        }
        if (node->conn != 0 && node->probed != SIM_NEVER && node->spoke <= node->probed &&
            m->mono - node->probed > MS_PROBE_MS + m->stretch + SLACK_MS &&
            !world_is_evil(m->w, (uint32_t)node->conn)) {
            sim_fail(m->w, "model: node %s did not answer its probe and was not fenced off",
                     node->id);
        }
    }
}
