/* model_ranks.c - the model's ranks: what they say, and which end of a job follows from it */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

enum { SLACK_MS = 5, LATE_MS = 70 /* timers of the driver are late by 50 */ };

/* ---- what a rank says ---------------------------------------------------------------------------
 */

/* The rank that this connection speaks for, if the message is about it. */
struct m_rank *m_rank_of(struct model *m, const struct m_conn *conn, uint64_t id,
                         uint64_t generation, uint32_t rank)
{
    const struct m_node *node = m_node_of(m, conn);
    struct m_job *job = m_job_find(m, id);
    if (node == NULL || job == NULL || !m_is_placed(job) || job->generation != generation ||
        rank >= job->workers || node->hold.job != id || node->hold.generation != generation ||
        node->hold.rank != rank) {
        return NULL;
    }
    struct m_rank *r = &job->ranks[rank];
    return strcmp(r->node, node->id) == 0 && r->incarnation == node->incarnation && !r->missing
               ? r
               : NULL;
}

void m_on_ready(struct model *m, struct m_conn *conn, const Ms__RankReady *msg)
{
    struct m_rank *r = m_rank_of(m, conn, msg->job, msg->generation, msg->rank);
    if (r != NULL) {
        snprintf(r->plan, sizeof(r->plan), "%s", msg->plan_sha256);
        if (msg->log_path[0] != '\0') {
            snprintf(r->log, sizeof(r->log), "%s", msg->log_path);
        }
        r->ready = true;
    }
}

static bool is_second_hand(int32_t code)
{
    return code == MS_E_CLOSED || code == MS_E_ABORTED || code == MS_E_TIMEOUT ||
           code == MS_E_UNREACHABLE;
}

static void complain(struct model *m, struct m_job *job)
{
    if (job->blame_at == SIM_NEVER) {
        job->blame_at = m->mono;
        job->blame_stretch = m->stretch;
    }
}

static bool stops_at_step(const struct m_job *job)
{
    return job->cancelled && job->cancel_at_step && job->state == JOB_RUNNING;
}

void m_on_done(struct model *m, struct m_conn *conn, const Ms__RankDone *msg)
{
    struct m_rank *r = m_rank_of(m, conn, msg->job, msg->generation, msg->rank);
    struct m_node *node = m_node_of(m, conn);
    if (node != NULL && msg->leaving && msg->job != 0 && node->hold.job == msg->job &&
        node->hold.generation == msg->generation && node->hold.rank == msg->rank) {
        node->leaving = true;
    }
    if (r == NULL) {
        if (node != NULL && msg->job != 0 && node->hold.job == msg->job &&
            node->hold.generation == msg->generation && node->hold.rank == msg->rank) {
            if (m_rank_of(m, conn, msg->job, msg->generation, node->hold.rank) == NULL) {
                node->hold = (struct m_hold){0}; /* the answer to Stop */
            }
        }
        return;
    }
    if (r->done) {
        return; /* said again */
    }
    struct m_job *job = m_job_find(m, msg->job);
    r->done = true;
    r->code = msg->code;
    r->stopped = msg->stopped;
    r->steps = msg->steps;
    r->step = msg->steps > r->step ? msg->steps : r->step;
    snprintf(r->text, sizeof(r->text), "%s", msg->text);
    snprintf(r->weights, sizeof(r->weights), "%s", msg->weights_sha256);
    snprintf(r->plan, sizeof(r->plan), "%s", msg->plan_sha256);
    r->leaving = msg->leaving && job->state == JOB_PLACING;
    r->complains = is_second_hand(msg->code) && !stops_at_step(job) && !r->leaving;
    if (r->complains) {
        complain(m, job);
    }
}

void m_on_peer_report(struct model *m, struct m_conn *conn, const Ms__PeerReport *msg)
{
    const struct m_rank *r = m_rank_of(m, conn, msg->job, msg->generation, msg->rank);
    struct m_job *job = m_job_find(m, msg->job);
    if (r != NULL && msg->peer < job->workers && msg->peer != msg->rank && !stops_at_step(job)) {
        complain(m, job);
        job->ranks[msg->peer].accused = true;
    }
}

/* Its node is gone, or silent for so long that it is judged in this event. */
static bool is_lost(const struct model *m, const struct m_rank *r)
{
    const struct m_node *node = m_node_find((struct model *)m, r->node);
    return r->lost || (!r->missing && node != NULL && m_is_overdue(m, node));
}

/* ---- causes -------------------------------------------------------------------------------------
 */

/* A rank that ended by itself, and not well. */
static bool failed_first_hand(const struct m_job *job, const struct m_rank *r)
{
    if (!r->done || r->complains) {
        return false;
    }
    if (stops_at_step(job)) {
        return false;
    }
    return r->code != MS_OK || r->stopped || !r->started;
}

static bool differ(const struct m_job *job, bool weights)
{
    const char *first = NULL;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const char *digest = weights ? job->ranks[rank].weights : job->ranks[rank].plan;
        if (digest[0] != '\0' && first != NULL && strcmp(first, digest) != 0) {
            return true;
        }
        first = digest[0] != '\0' ? digest : first;
    }
    return false;
}

static uint32_t count_done(const struct m_job *job)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        n += job->ranks[rank].done;
    }
    return n;
}

static uint32_t count_ready(const struct m_job *job)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        n += job->ranks[rank].ready && !job->ranks[rank].done;
    }
    return n;
}

static bool names_rank(const char *reason, uint32_t rank)
{
    char want[32];
    snprintf(want, sizeof(want), "rank %u ", rank);
    return strstr(reason, want) != NULL;
}

static bool blame_is_due(const struct model *m, const struct m_job *job, int64_t late_ms)
{
    return job->blame_at != SIM_NEVER &&
           m->mono - job->blame_at >= MS_BLAME_MS + m->stretch - job->blame_stretch + late_ms;
}

/* Nodes that did not come back: a time for all, and on while others arrive, until nobody has for so
 * long that no one can be on his way. */
static int64_t missing_due_at(const struct model *m, const struct m_job *job, int64_t lease_ms,
                              int64_t came_at)
{
    int64_t stretch = m->stretch - job->missing_stretch;
    int64_t at = job->missing_since + job->missing_ms + stretch;
    int64_t last = job->missing_since + lease_ms + MS_ADOPT_MAX_MS + stretch;
    bool crowded = m->crowded_at != SIM_NEVER;
    int64_t turn = MS_RECONNECT_MAX_MS + MS_HANDSHAKE_MS; /* of one who could not get in */
    bool crowd = m->n_expected > MS_HALF_OPEN_MAX || m->n_came > MS_HALF_OPEN_MAX;
    int64_t pause = crowd ? turn : lease_ms / MS_HEARTBEATS_PER_LEASE;
    int64_t quiet = m->n_came > 0 ? came_at + pause : at;
    quiet = crowded && m->crowded_at + turn > quiet ? m->crowded_at + turn : quiet;
    quiet = quiet < last ? quiet : last;
    return quiet > at ? quiet : at;
}

static bool missing_is_due(const struct model *m, const struct m_job *job)
{
    return job->missing_since != SIM_NEVER &&
           m->mono >= missing_due_at(m, job, m->lease_least_ms, m->came_at);
}

static bool missing_is_late(const struct model *m, const struct m_job *job)
{
    return job->missing_since != SIM_NEVER && !job->missing_again &&
           m->mono > missing_due_at(m, job, m->lease_most_ms, m->came_most_at) + LATE_MS;
}

/* All ranks get ready within a time; in a dynamic cluster it is longer than the world lives. */
static bool ready_is_over(const struct model *m, const struct m_job *job, int64_t late_ms)
{
    return job->state == JOB_PLACING && m->w->mode != SCHED_DYNAMIC && m->w->topo_ms >= 0 &&
           m->mono - job->placed_at >= m->w->topo_ms + m->stretch - job->placed_stretch + late_ms;
}

/* Whoever is missing then is waited for, and looked at again with each heartbeat. */
static void unready_seen(const struct model *m, struct m_job *job)
{
    bool preparing = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        preparing = preparing || (!r->ready && !r->missing && !r->done);
    }
    if (!preparing || !ready_is_over(m, job, 0)) {
        job->unready_at = m->mono;
        job->unready_stretch = m->stretch;
    }
}

static bool unready_is_late(const struct model *m, const struct m_job *job)
{
    int64_t ms = m->lease_most_ms / MS_HEARTBEATS_PER_LEASE + m->stretch - job->unready_stretch;
    return ready_is_over(m, job, LATE_MS) && m->mono > job->unready_at + ms + LATE_MS;
}

/* Does this cause explain a job that FAILED with code and reason? */
static bool explains(const struct model *m, const struct m_job *job, uint32_t rank, int32_t code,
                     const char *reason)
{
    const struct m_rank *r = &job->ranks[rank];
    bool all_done = count_done(job) == job->workers;
    if (is_lost(m, r)) {
        return code == MS_E_CLOSED && names_rank(reason, rank) && strstr(reason, "lost") != NULL;
    }
    if (r->missing && code == (r->refused ? MS_E_REFUSED : MS_E_TIMEOUT)) {
        return names_rank(reason, rank) && missing_is_due(m, job);
    } /* else its peers knew sooner that it will not come back */
    if (code == MS_E_TIMEOUT && !r->ready && !r->done && ready_is_over(m, job, 0)) {
        bool chose = !(rank == 0 && m_awaits_plan((struct model *)m, job));
        return names_rank(reason, rank) &&
               strstr(reason, chose ? "did not get ready" : "did not choose the plan") != NULL;
    }
    if (failed_first_hand(job, r)) {
        int32_t want = r->code != MS_OK ? r->code : MS_E_FAILED;
        return code == want && names_rank(reason, rank) &&
               (r->code == MS_OK || strstr(reason, r->text) != NULL);
    }
    return (r->complains || r->accused) && (blame_is_due(m, job, 0) || all_done) &&
           is_second_hand(code) && names_rank(reason, rank);
}

/* Words about placements belong to a job that never ran. */
static void judge_tries(struct model *m, const struct m_job *job, const char *reason)
{
    const char *words = strstr(reason, "; it was placed ");
    unsigned times = 0;
    if (words != NULL &&
        (job->state != JOB_PLACING || sscanf(words, "; it was placed %u times", &times) != 1 ||
         times != job->tries + job->leaves)) {
        sim_fail(m->w, "model: job %llu, %s, was placed %u times: %s", (ull)job->id,
                 sched_job_state_name(job->state), job->tries, reason);
    }
}

/* Why the plan itself ended it. */
static bool plan_explains(struct model *m, const struct m_job *job, const struct sched_job_row *row)
{
    const struct m_said *said = &m->plan_said;
    if (said->from == M_OTHER && said->job == job->id) {
        return row->code == MS_E_FAILED && strstr(row->reason, "two plans") != NULL;
    }
    if (said->from == M_FULL && said->job == job->id) {
        return row->code == MS_E_FULL && strstr(row->reason, "its plan cannot be kept") != NULL;
    }
    bool knows = true;
    for (uint32_t rank = 0; job->plan_given && rank < job->workers; rank++) {
        const struct m_node *node = m_node_find(m, job->ranks[rank].node);
        knows = knows && node != NULL && m_knows_plans(node);
    }
    return !knows && job->state == JOB_PLACING && row->code == MS_E_UNSUPPORTED &&
           strstr(row->reason, "knows no plan") != NULL;
}

static void judge_failed(struct model *m, const struct m_job *job, const struct sched_job_row *row)
{
    judge_tries(m, job, row->reason);
    bool plans = differ(job, false) || m_plan_differs(m, job);
    bool digests = (job->state == JOB_PLACING && count_ready(job) == job->workers && plans) ||
                   (count_done(job) == job->workers && (differ(job, true) || plans));
    if (plan_explains(m, job, row)) {
        return;
    }
    if (digests && row->code == MS_E_FAILED && strstr(row->reason, "differ") != NULL) {
        return;
    }
    bool yields = stops_at_step(job); /* to the cancel: what was asked for came true */
    bool tries_again = false;
    for (uint32_t rank = 0; rank < job->workers && !yields; rank++) {
        if (explains(m, job, rank, row->code, row->reason)) {
            bool first_hand =
                failed_first_hand(job, &job->ranks[rank]) && !job->ranks[rank].leaving;
            tries_again = job->state == JOB_PLACING && m->w->mode == SCHED_STANDING &&
                          !first_hand && job->tries < MS_PLACE_TRIES_MAX;
            if (!tries_again) {
                return;
            }
        }
    }
    sim_fail(m->w, "model: job %llu FAILED (%d) without a cause: %s", (ull)job->id, row->code,
             row->reason);
}

static void judge_succeeded(struct model *m, const struct m_job *job,
                            const struct sched_job_row *row)
{
    bool well = job->state == JOB_RUNNING && count_done(job) == job->workers &&
                !differ(job, true) && !differ(job, false) && !m_plan_differs(m, job) &&
                row->code == MS_OK;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        well = well && r->code == MS_OK && !r->stopped && !r->lost && !r->missing;
    }
    if (!well || strcmp(row->weights_sha256, job->ranks[0].weights) != 0 ||
        row->steps != job->ranks[0].steps) {
        sim_fail(m->w, "model: job %llu SUCCEEDED, and not all of its ranks did", (ull)job->id);
    }
}

static bool grace_is_over(const struct model *m, const struct m_job *job, int64_t late_ms)
{
    return m->mono - job->cancel_at >=
           MS_CANCEL_GRACE_MS + m->stretch - job->cancel_stretch + late_ms;
}

static void judge_cancelled(struct model *m, const struct m_job *job,
                            const struct sched_job_row *row)
{
    bool stopped =
        false; /* ranks that all finished did what was wanted before somebody cancelled */
    for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
        stopped = stopped || job->ranks[rank].stopped || job->ranks[rank].code != MS_OK;
    }
    bool due =
        job->cancelled && (!stops_at_step(job) || (count_done(job) == job->workers && stopped) ||
                           grace_is_over(m, job, 0));
    for (uint32_t rank = 0; m_is_placed(job) && job->cancelled && rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        due = due || is_lost(m, r) || missing_is_due(m, job) ||
              ((r->complains || r->accused) &&
               (blame_is_due(m, job, 0) || count_done(job) == job->workers));
    }
    if (!due || row->code != MS_E_CANCELLED || strstr(row->reason, "cancelled by ") == NULL) {
        sim_fail(m->w, "model: job %llu is CANCELLED (%s), and should not be: asked for %d",
                 (ull)job->id, row->reason, job->cancelled);
    }
}

/* job is as it was, row is what it becomes. Its ranks will hear Stop, and those that are done are
 * free with it. */
void m_judge_end(struct model *m, struct m_job *job, const struct sched_job_row *row)
{
    if (row->state == JOB_SUCCEEDED) {
        judge_succeeded(m, job, row);
    } else if (row->state == JOB_CANCELLED) {
        judge_cancelled(m, job, row);
    } else {
        judge_failed(m, job, row);
    }
    struct m_stop stop = {.job = job->id, .generation = job->generation, .code = row->code};
    snprintf(stop.text, sizeof(stop.text), "%s", row->reason);
    m_ranks_stop(m, job, &stop);
}

/* ---- Start, Stop --------------------------------------------------------------------------------
 */

void m_judge_start(struct model *m, const struct m_conn *conn, const Ms__Start *msg)
{
    const struct m_node *node = m_node_of(m, conn);
    struct m_job *job = m_job_find(m, msg->job);
    struct m_rank *r =
        node != NULL ? m_rank_of(m, conn, msg->job, msg->generation, node->hold.rank) : NULL;
    if (r == NULL || job->state != JOB_RUNNING) {
        sim_fail(m->w, "model: Start of job %llu, generation %llu, to %s, which has no rank of it",
                 (ull)msg->job, (ull)msg->generation, node != NULL ? node->id : "a stranger");
        return;
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        if (!job->ranks[rank].ready) {
            sim_fail(m->w, "model: job %llu is started and rank %u is not ready", (ull)job->id,
                     rank);
        }
    }
    if (differ(job, false) || m_plan_differs(m, job)) {
        sim_fail(m->w, "model: job %llu is started with two different plans", (ull)job->id);
    }
    if (r->started) {
        sim_fail(m->w, "model: node %s hears Start of job %llu twice", node->id, (ull)job->id);
    }
    r->started = true;
}

void m_stop_expect(struct model *m, uint64_t conn, const struct m_stop *stop)
{
    struct m_stop *more = M_MORE(m->stops, struct m_stop);
    *more = *stop;
    more->conn = conn;
    for (size_t i = 0; i < m->nodes.n; i++) {
        if (m->nodes.at[i].conn == conn) {
            m->nodes.at[i].stop_at = m->mono;
        }
    }
}

void m_judge_stop(struct model *m, const struct m_conn *conn, const Ms__Stop *msg)
{
    struct m_stop *heard = M_MORE(m->heard, struct m_stop);
    heard->conn = conn->id;
    heard->job = msg->job;
    heard->generation = msg->generation;
    heard->code = msg->code;
    heard->at_step = msg->at_step != 0;
    snprintf(heard->text, sizeof(heard->text), "%s", msg->text);
}

static bool stop_fits(const struct m_stop *want, const struct m_stop *heard)
{
    return want->conn == heard->conn && want->job == heard->job &&
           want->at_step == heard->at_step && want->generation == heard->generation &&
           want->code == heard->code &&
           (want->any_text  ? heard->text[0] != '\0'
            : want->at_step ? strstr(heard->text, want->text) != NULL
                            : strcmp(heard->text, want->text) == 0);
}

/* Who had to hear Stop did, with the code and the words of the end; and nobody else. */
static void judge_stops(struct model *m)
{
    for (size_t i = 0; i < m->stops.n; i++) {
        struct m_stop *stop = &m->stops.at[i];
        const struct m_job *job = m_job_find(m, stop->job);
        if (stop->claim && job != NULL && m_is_ended(job)) {
            stop->code = job->code;
            stop->any_text = false;
            snprintf(stop->text, sizeof(stop->text), "%s", job->reason);
        }
    }
    for (size_t i = 0; i < m->heard.n; i++) {
        const struct m_stop *heard = &m->heard.at[i];
        size_t j = 0;
        while (j < m->stops.n && !stop_fits(&m->stops.at[j], heard)) {
            j++;
        }
        if (j < m->stops.n) {
            m->stops.at[j] = m->stops.at[--m->stops.n];
        } else if (heard->job != 0 || m->w->mode != SCHED_DYNAMIC) {
            sim_fail(m->w,
                     "model: connection %llu hears Stop of job %llu, generation %llu (at_step %d, "
                     "code %d), which is not for it: %s",
                     (ull)heard->conn, (ull)heard->job, (ull)heard->generation, heard->at_step,
                     heard->code, heard->text);
        }
    }
    for (size_t i = 0; i < m->stops.n; i++) {
        const struct m_stop *want = &m->stops.at[i];
        if (m_conn_find(m, want->conn) != NULL) {
            sim_fail(m->w,
                     "model: connection %llu did not hear Stop of job %llu, generation %llu "
                     "(at_step %d, code %d): %s",
                     (ull)want->conn, (ull)want->job, (ull)want->generation, want->at_step,
                     want->code, want->text);
        }
    }
}

/* The ranks of a job that is placed no longer, whatever became of it, hear Stop; those that are
 * done are free with it. */
void m_ranks_stop(struct model *m, struct m_job *job, const struct m_stop *stop)
{
    for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        struct m_node *node = m_node_find(m, r->node);
        if (r->missing || r->lost || node == NULL || node->conn == 0 ||
            node->incarnation != r->incarnation) {
            continue;
        }
        m_stop_expect(m, node->conn, stop);
        if (r->done) {
            node->hold = (struct m_hold){0};
        }
    }
}

/* A job that had no step yet may be placed anew, if a rank was lost. */
bool m_may_requeue(const struct model *m, const struct m_job *job)
{
    bool lost = m->fresh || ready_is_over(m, job, 0) ||
                (m->plan_said.from == M_FULL && m->plan_said.job == job->id);
    for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
        lost = lost || is_lost(m, &job->ranks[rank]) || missing_is_due(m, job) ||
               job->ranks[rank].leaving ||
               ((job->ranks[rank].complains || job->ranks[rank].accused) &&
                (blame_is_due(m, job, 0) || count_done(job) == job->workers));
    }
    return job->state == JOB_PLACING && lost &&
           (m->fresh || (m->w->mode == SCHED_STANDING && job->tries < MS_PLACE_TRIES_MAX));
}

/* ---- what had to happen -------------------------------------------------------------------------
 */

static const char *overdue(const struct model *m, const struct m_job *job)
{
    bool placing = job->state == JOB_PLACING;
    bool blamed = job->blame_at != SIM_NEVER;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        if (r->lost) {
            return "a rank is lost and it goes on";
        }
        if (failed_first_hand(job, r)) {
            return "a rank failed and it goes on";
        }
        if (!placing && !r->started && !r->missing && !r->done) {
            return "a rank was not started";
        }
    }
    if (placing && count_ready(job) == job->workers && !blamed) {
        return "all ranks are ready and it is not started";
    }
    if (stops_at_step(job) && !job->cancel_stored) {
        return "its cancel is not stored";
    }
    if (count_done(job) == job->workers) {
        return "all ranks are done and it goes on";
    }
    if (blame_is_due(m, job, LATE_MS) && m->mono > m->busy_until) {
        return "a complaint is never judged";
    }
    if (m->event->kind == SCHED_EV_TIME && !blamed && unready_is_late(m, job)) {
        return "a rank never gets ready and keeps it";
    }
    if (m->event->kind == SCHED_EV_TIME && missing_is_late(m, job)) {
        return "nodes that do not come back are waited for";
    }
    if (m->event->kind == SCHED_EV_TIME && stops_at_step(job) &&
        grace_is_over(m, job, SLACK_MS + job->cancel_late_ms)) {
        return "its cancel is never carried out";
    }
    return NULL;
}

void m_judge_ranks_after(struct model *m)
{
    judge_stops(m);
    for (size_t i = 0; i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        if (!job->dropped && m_is_placed(job)) {
            unready_seen(m, job);
        }
        const char *late = !job->dropped && m_is_placed(job) ? overdue(m, job) : NULL;
        if (late != NULL) {
            sim_fail(m->w, "model: job %llu: %s", (ull)job->id, late);
        }
    }
}
