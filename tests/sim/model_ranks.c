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
    if (node == NULL || job == NULL || !m_is_placed(job) || rank >= job->workers ||
        node->hold.job != id || node->hold.generation != generation || node->hold.rank != rank) {
        return NULL;
    }
    struct m_rank *r = &job->ranks[rank];
    if (generation != (r->settled != 0 ? r->settled : job->generation)) {
        return NULL;
    }
    return strcmp(r->node, node->id) == 0 && r->incarnation == node->incarnation && !r->missing &&
                   !r->vacant
               ? r
               : NULL;
}

void m_on_ready(struct model *m, struct m_conn *conn, const Ms__RankReady *msg)
{
    struct m_rank *r = m_rank_of(m, conn, msg->job, msg->generation, msg->rank);
    const struct m_job *job = m_job_find(m, msg->job);
    if (r != NULL && !r->ready && !r->done && job->state != JOB_RUNNING) {
        r->has_plan = true;
        r->may_lack_plan = false;
        r->ready_in = msg->generation;
        r->step = msg->step;
        r->ready_step = msg->step;
        m_job_find(m, msg->job)->last_step =
            msg->steps_total > job->last_step ? msg->steps_total : job->last_step;
        m_round_moves(m, m_job_find(m, msg->job));
        memset(r->ready_digest, 0, sizeof(r->ready_digest));
        if (msg->state_digest.len > 0) {
            memcpy(r->ready_digest, msg->state_digest.data, msg->state_digest.len);
        }
    }
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

static void complain(struct model *m, struct m_job *job, uint32_t rank, uint32_t by)
{
    if (job->blame_at == SIM_NEVER) {
        job->blamed = rank;
        job->blamed_by = by;
        job->blame_at = m->mono;
        job->blame_stretch = m->stretch;
    } else if (by == rank && job->blamed == rank && m_is_recoverable(m, job)) {
        job->blamed_by = by; /* what it says of itself is first hand */
    }
}

bool m_stops_at_step(const struct m_job *job)
{
    return job->cancelled && job->cancel_at_step && m_has_begun(job);
}

/* A newcomer that cannot serve the rank: it says nothing of the job. */
bool m_is_unfit(const struct m_job *job, const struct m_rank *r)
{
    return job->recovery && job->state == JOB_RECOVERING && r->done && !r->has_state &&
           !m_stops_at_step(job) && (r->code != MS_OK || r->stopped || !r->started) &&
           !is_second_hand(r->code);
}

/* What it shows of itself counts all the same. */
static void note_done(struct m_rank *r, const Ms__RankDone *msg)
{
    r->steps = msg->steps;
    r->step = msg->steps > r->step ? msg->steps : r->step;
    const bool is_end = msg->code == MS_OK || (msg->steps > 0 && !msg->stopped && !msg->leaving);
    snprintf(r->weights, sizeof(r->weights), "%s", is_end ? msg->weights_sha256 : "");
    snprintf(r->plan, sizeof(r->plan), "%s", msg->plan_sha256);
}

/* What it saved of which step; of an older one than is saved already it says nothing new. */
static void note_kept(struct m_job *job, const Ms__RankDone *msg)
{
    if (msg->code == MS_OK && msg->text[0] != '\0' && msg->steps >= job->kept_step) {
        job->kept_step = msg->steps;
        job->saver = msg->rank;
        snprintf(job->kept, sizeof(job->kept), "%s", msg->text);
    }
}

/* All its steps, and not what it was to save: of a job that recovers no failure. */
static bool is_unsaved(const struct model *m, const struct m_job *job, const struct m_rank *r,
                       const struct m_node *node, const Ms__RankDone *msg)
{
    return msg->code != MS_OK && msg->steps > 0 && !msg->stopped &&
           (r->started || job->round_due) && !node->leaving && m_is_recoverable(m, job);
}

/* Of one that is over: the answer to what it was asked, or what it had said before. */
static void said_again(struct m_job *job, struct m_rank *r, const Ms__RankDone *msg)
{
    const bool is_new = msg->code == MS_OK ? msg->text[0] != '\0' : r->saving;
    if (!is_new || !(m_stops_at_step(job) || job->unsaved)) {
        return;
    }
    m_saver_answered(job, msg->rank);
    r->tried = msg->code != MS_OK || (r->tried && m_stops_at_step(job));
    if (msg->weights_sha256[0] != '\0' && !m_stops_at_step(job)) { /* who stood said none before */
        snprintf(r->weights, sizeof(r->weights), "%s", msg->weights_sha256);
    }
    note_kept(job, msg);
}

static uint32_t n_over(const struct m_job *job)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        n += m_is_over(&job->ranks[rank]) || job->ranks[rank].vacant;
    }
    return n;
}

/* Over, or nobody waits for it any more. */
static uint32_t n_settled(const struct m_job *job)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        n += m_is_over(r) || r->vacant || r->passed_over;
    }
    return n;
}

static void note_last_step(struct m_job *job, const struct m_node *node, const Ms__RankDone *msg)
{
    const bool is_end = !msg->stopped && (msg->code == MS_OK || (msg->steps > 0 && !node->leaving));
    job->last_step = is_end && msg->steps > job->last_step ? msg->steps : job->last_step;
}

void m_on_done(struct model *m, struct m_conn *conn, const Ms__RankDone *msg)
{
    struct m_rank *r = m_rank_of(m, conn, msg->job, msg->generation, msg->rank);
    struct m_node *node = m_node_of(m, conn);
    if (node != NULL && msg->leaving) { /* its process, whatever rank it had */
        node->leaving = true;
    }
    struct m_former *former = r == NULL && node != NULL ? m_former_of(m, node) : NULL;
    if (former != NULL && node->hold.job == msg->job && node->hold.generation == msg->generation &&
        node->hold.rank == msg->rank) {
        note_last_step(m_job_find(m, msg->job), node, msg);
        m_former_said(m, former, msg);
        return;
    }
    if (r == NULL) {
        if (node != NULL && msg->job != 0 && node->hold.job == msg->job &&
            node->hold.generation == msg->generation && node->hold.rank == msg->rank &&
            !m_is_bound(m, node)) {
            node->hold = (struct m_hold){0}; /* the answer to Stop */
        } else if (node != NULL && m_is_bound(m, node) && node->hold.job == msg->job &&
                   node->hold.generation == msg->generation && node->hold.rank == msg->rank) {
            m_job_find(m, msg->job)->ranks[msg->rank].has_said = true;
            note_last_step(m_job_find(m, msg->job), node, msg);
        }
        return;
    }
    struct m_job *job = m_job_find(m, msg->job);
    if (r->done) {
        said_again(job, r, msg);
        return;
    }
    note_last_step(job, node, msg);
    if (node->leaving && msg->rank == 0 && msg->code == MS_E_CANCELLED && r->has_state &&
        !m_stops_at_step(job)) {
        m_home_note(m, job, m_node_find(m, r->node), r->step); /* it saves that */
    }
    const bool unsaved = is_unsaved(m, job, r, node, msg);
    if (job->round_due && (msg->code == MS_OK || unsaved) && !msg->stopped) {
        note_done(r, msg);
        r->has_said = true;
        r->said_well = msg->code == MS_OK;
        return; /* it goes on with the others */
    }
    r->done = true;
    r->code = unsaved ? MS_OK : msg->code;
    /* at a cancel it tries once more, and who was asked before a restart does */
    r->tried = unsaved && !m_stops_at_step(job) && msg->rank == 0;
    r->saving = r->passed_over = false;
    if (!m_stops_at_step(job)) {
        m_saver_answered(job, msg->rank);
    }
    job->unsaved = job->unsaved || (unsaved && msg->rank == 0);
    /* where no round comes any more it was to stand, if it holds the last step */
    const bool stands = job->called_off && !m_stops_at_step(job);
    const bool is_short = stands && msg->stopped && msg->steps < job->last_step;
    r->stopped = msg->stopped && !stands;
    r->tried = r->tried || (stands && msg->stopped);
    note_done(r, msg);
    snprintf(r->text, sizeof(r->text), "%s", msg->text);
    r->leaving = node->leaving && job->state == JOB_PLACING;
    const bool is_well = r->code == MS_OK && !r->stopped && !is_short && r->started;
    note_kept(job, msg);
    if (msg->rank == 0 && is_well && !unsaved && !r->tried) { /* as it was to, however late */
        job->unsaved = job->late_asked = false;
        job->save_again_at = SIM_NEVER;
        for (uint32_t rank = 0; job->called_off && rank < job->workers; rank++) {
            struct m_rank *other = &job->ranks[rank];
            other->passed_over = !other->vacant && !other->done;
        }
    }
    r->gives_up = m_is_recoverable(m, job) && !m_stops_at_step(job) && !is_well &&
                  (node->leaving || is_second_hand(msg->code) || is_short);
    r->leaves = r->gives_up && (node->leaving || is_short);
    r->leaving = r->leaving && !r->gives_up;
    r->complains = is_second_hand(r->code) && !m_stops_at_step(job) && !r->leaving && !r->gives_up;
    if (r->complains) {
        complain(m, job, msg->rank, msg->rank);
    }
    if (m_all_are_done(job) && !r->complains) { /* whatever was said of one of them */
        m_complaints_forget(job);
    }
    if (m_stops_at_step(job) && job->state == JOB_RECOVERING && n_over(job) == 1 &&
        job->workers > 1) {
        m_stop_at_step(m, job, false);
    }
}

void m_on_peer_report(struct model *m, struct m_conn *conn, const Ms__PeerReport *msg)
{
    const struct m_rank *r = m_rank_of(m, conn, msg->job, msg->generation, msg->rank);
    struct m_job *job = m_job_find(m, msg->job);
    if (r != NULL && msg->peer < job->workers && (msg->peer != msg->rank || job->recovery) &&
        !m_stops_at_step(job) && !job->round_due && !job->called_off &&
        !(m_is_at_end(job) && job->unsaved &&
          (job->ranks[msg->peer].done || job->ranks[msg->peer].vacant))) {
        complain(m, job, msg->peer, msg->rank);
        job->ranks[msg->peer].accused = true;
    }
}

/* Its node is gone, or silent for so long that it is judged in this event. */
static bool is_lost(const struct model *m, const struct m_rank *r)
{
    const struct m_node *node = m_node_find((struct model *)m, r->node);
    return r->lost || (!r->missing && !r->vacant && node != NULL &&
                       node->incarnation == r->incarnation && m_is_overdue(m, node));
}

bool m_is_lost(const struct model *m, const struct m_rank *r)
{
    return is_lost(m, r);
}

/* Else its lease may lie further ahead than is known here, and other causes are as good. */
bool m_is_surely_lost(const struct model *m, const struct m_rank *r)
{
    const struct m_node *node = m_node_find((struct model *)m, r->node);
    return r->lost || (is_lost(m, r) && m->event->kind == SCHED_EV_TIME && !m->turn_is_full &&
                       m_is_silent(m, node));
}

/* ---- causes -------------------------------------------------------------------------------------
 */

/* A rank that ended by itself, and not well. */
static bool failed_first_hand(const struct m_job *job, const struct m_rank *r)
{
    if (!r->done || r->complains || r->gives_up || m_is_unfit(job, r)) {
        return false;
    }
    if (m_stops_at_step(job)) {
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

/* Nothing more is waited for from it. */
bool m_is_over(const struct m_rank *r)
{
    return r->done || r->vacant;
}

/* A rank that is lost is over, too, where the job stops. */
static uint32_t count_done(const struct m_job *job)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        n += m_stops_at_step(job) ? m_is_over(&job->ranks[rank]) : job->ranks[rank].done;
    }
    return n;
}

static uint32_t count_ready(const struct m_job *job)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        n += job->ranks[rank].ready && !job->ranks[rank].started && !job->ranks[rank].done;
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
           m->mono >= missing_due_at(m, job, m->lease_least_ms, m->came_before);
}

bool m_missing_is_due(const struct model *m, const struct m_job *job)
{
    return missing_is_due(m, job);
}

bool m_blame_is_due(const struct model *m, const struct m_job *job)
{
    return blame_is_due(m, job, 0) || count_done(job) == job->workers;
}

static bool missing_is_late(const struct model *m, const struct m_job *job)
{
    return job->missing_since != SIM_NEVER && !job->missing_again &&
           m->mono > missing_due_at(m, job, m->lease_most_ms, m->came_most_at) + LATE_MS;
}

/* All ranks get ready within a time; in a dynamic cluster it is longer than the world lives. */
bool m_ready_is_over(const struct model *m, const struct m_job *job, int64_t late_ms)
{
    return (job->state == JOB_PLACING || job->state == JOB_RECOVERING) && !job->called_off &&
           m->w->mode != SCHED_DYNAMIC && m->w->topo_ms >= 0 &&
           m->mono - job->placed_at >= m->w->topo_ms + m->stretch - job->placed_stretch + late_ms;
}

/* Whoever is missing then is waited for, and looked at again with each heartbeat; so is a disk
 * without the room in which somebody could take a vacant rank. */
static void unready_seen(const struct model *m, struct m_job *job, bool blamed)
{
    const bool waits = blamed || (m->refusing && m_has_vacant(job));
    bool preparing = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        preparing = preparing || (!r->ready && !r->missing && !r->done) || r->vacant;
    }
    if (!preparing || waits || !m_ready_is_over(m, job, 0)) {
        job->unready_at = m->mono;
        job->unready_stretch = m->stretch;
    }
}

static bool unready_is_late(const struct model *m, const struct m_job *job)
{
    const int64_t ms = m->lease_most_ms / MS_HEARTBEATS_PER_LEASE + LATE_MS;
    return m_ready_is_over(m, job, ms) &&
           m->mono > job->unready_at + m->stretch - job->unready_stretch + ms;
}

/* The first that prepares, and of those before all others one that has made no plan. */
static uint32_t who_is_late(const struct m_job *job)
{
    uint32_t late = job->workers;
    for (uint32_t rank = job->workers; rank > 0; rank--) {
        const struct m_rank *r = &job->ranks[rank - 1];
        const bool prepares = !r->ready && !r->done && !r->missing && !r->vacant && !r->started;
        const bool begun = r->has_plan || r->has_state;
        if (prepares && (late == job->workers || !begun || job->ranks[late].has_plan ||
                         job->ranks[late].has_state)) {
            late = rank - 1;
        }
    }
    return late;
}

/* A newcomer that took too long is given up; whoever holds the state, and all that begin, are not.
 */
bool m_is_unready(const struct model *m, const struct m_job *job, uint32_t rank)
{
    return m->event->kind == SCHED_EV_TIME && job->state == JOB_RECOVERING &&
           !m_stops_at_step(job) && m_ready_is_over(m, job, 0) && rank == who_is_late(job) &&
           m_is_newcomer(job, &job->ranks[rank]) && !m_has_vacant(job);
}

/* The rank was lost once too often. */
static bool is_spent_by(const struct model *m, const struct m_job *job, const struct m_rank *r,
                        enum m_fault fault, const char *reason)
{
    return m_may_be_spent(m, job, r, fault) &&
           (strstr(reason, " was lost ") != NULL ||
            strstr(reason, "no process got ready for rank ") != NULL);
}

/* Does this cause explain the end of a job that goes on otherwise? */
static bool explains_recovering(const struct model *m, const struct m_job *job, uint32_t rank,
                                int32_t code, const char *reason)
{
    const struct m_rank *r = &job->ranks[rank];
    if (!names_rank(reason, rank)) {
        return false;
    }
    if (m_is_unfit(job, r)) {
        return is_spent_by(m, job, r, M_UNFIT, reason);
    }
    if (r->gives_up) {
        return is_spent_by(m, job, r, r->leaves ? M_LEAVING : M_GAVE_UP, reason);
    }
    if (is_lost(m, r)) {
        const bool leaves = m->event->kind == SCHED_EV_MESSAGE && m->event->type == MS_MSG_LEAVE;
        const bool is_it =
            code == MS_E_CLOSED && is_spent_by(m, job, r, leaves ? M_LEFT : M_LOST, reason);
        if (is_it || m_is_surely_lost(m, r)) {
            return is_it;
        }
    }
    if (job->blame_at != SIM_NEVER && m_may_be_blamed(job, rank) && blame_is_due(m, job, 0) &&
        is_spent_by(m, job, r, M_COMPLAINT, reason)) {
        return is_second_hand(code);
    }
    if (code == MS_E_TIMEOUT && !r->ready && !r->done && !r->missing &&
        m_ready_is_over(m, job, 0) && (job->state != JOB_RECOVERING || !m_is_newcomer(job, r))) {
        bool chose = !(rank == 0 && m_awaits_plan((struct model *)m, job));
        return strstr(reason, chose ? "did not get ready" : "did not choose the plan") != NULL;
    }
    if (failed_first_hand(job, r)) {
        int32_t want = r->code != MS_OK && r->code != MS_E_CANCELLED ? r->code : MS_E_FAILED;
        return code == want && (r->code == MS_OK || strstr(reason, r->text) != NULL);
    }
    return false;
}

/* Does this cause explain a job that FAILED with code and reason? */
static bool explains(const struct model *m, const struct m_job *job, uint32_t rank, int32_t code,
                     const char *reason)
{
    const struct m_rank *r = &job->ranks[rank];
    bool all_done = count_done(job) == job->workers;
    if (r->vacant) {
        return code == MS_E_TIMEOUT && m_ready_is_over(m, job, 0) &&
               strstr(reason, "no node took rank ") != NULL;
    }
    if (m_is_recoverable(m, job)) {
        return explains_recovering(m, job, rank, code, reason);
    }
    if (is_lost(m, r)) {
        const bool is_it =
            code == MS_E_CLOSED && names_rank(reason, rank) && strstr(reason, "lost") != NULL;
        if (is_it || m_is_surely_lost(m, r)) {
            return is_it;
        }
    }
    if (r->missing && code == (r->refused ? MS_E_REFUSED : MS_E_TIMEOUT)) {
        return names_rank(reason, rank) && missing_is_due(m, job);
    } /* else its peers knew sooner that it will not come back */
    if (code == MS_E_TIMEOUT && !r->ready && !r->done && m_ready_is_over(m, job, 0)) {
        bool chose = !(rank == 0 && m_awaits_plan((struct model *)m, job));
        return names_rank(reason, rank) &&
               strstr(reason, chose ? "did not get ready" : "did not choose the plan") != NULL;
    }
    if (failed_first_hand(job, r)) {
        int32_t want = r->code != MS_OK && r->code != MS_E_CANCELLED ? r->code : MS_E_FAILED;
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

/* Each cause once, whatever port its process had; and the last one leads to more. */
static void judge_causes(struct model *m, const struct m_job *job, const char *reason)
{
    const char *causes = strstr(reason, "did not get beyond step ");
    if (causes != NULL && (strstr(causes, " at 10.") != NULL || strstr(causes, "log") == NULL)) {
        sim_fail(m->w, "model: job %llu names causes by their ports, or no log: %s", (ull)job->id,
                 reason);
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
    for (uint32_t rank = 0; !m_is_for_all(job) && rank < job->workers; rank++) {
        const struct m_node *node = m_node_find(m, job->ranks[rank].node);
        knows = knows && node != NULL && m_knows_plans(node);
    }
    return !knows && job->state == JOB_PLACING && row->code == MS_E_UNSUPPORTED &&
           strstr(row->reason, job->recovery ? "cannot go on" : "knows no plan") != NULL;
}

static void judge_failed(struct model *m, const struct m_job *job, const struct sched_job_row *row)
{
    judge_tries(m, job, row->reason);
    judge_causes(m, job, row->reason);
    bool plans = differ(job, false) || m_plan_differs(m, job);
    const bool is_ready = (job->state == JOB_PLACING || job->state == JOB_RECOVERING) &&
                          count_ready(job) == job->workers;
    if (is_ready && m_states_differ(job) && row->code == MS_E_FAILED &&
        (strstr(row->reason, "would go on after step") != NULL ||
         strstr(row->reason, "have different weights") != NULL)) {
        return;
    }
    bool digests =
        (is_ready && plans) ||
        ((count_done(job) == job->workers || m_all_are_done(job) || m_tardy_is_due(m, job)) &&
         (differ(job, true) || plans));
    if (plan_explains(m, job, row)) {
        return;
    }
    if (digests && row->code == MS_E_FAILED && strstr(row->reason, "differ") != NULL) {
        return;
    }
    bool yields = m_stops_at_step(job); /* to the cancel: what was asked for came true */
    bool tries_again = false;
    for (uint32_t rank = 0; rank < job->workers && !yields; rank++) {
        if (explains(m, job, rank, row->code, row->reason)) {
            bool first_hand =
                failed_first_hand(job, &job->ranks[rank]) && !job->ranks[rank].leaving;
            tries_again = job->state == JOB_PLACING && m->w->mode == SCHED_STANDING &&
                          !first_hand && job->tries < MS_PLACE_TRIES_MAX;
            if (!first_hand && m_can_do_without(m, job, rank)) {
                sim_fail(m->w, "model: job %llu FAILED, and other ranks have its weights: %s",
                         (ull)job->id, row->reason);
            }
            if (!tries_again) {
                return;
            }
        }
    }
    sim_fail(m->w, "model: job %llu FAILED (%d) without a cause: %s", (ull)job->id, row->code,
             row->reason);
}

const struct m_rank *m_ender(const struct m_job *job)
{
    return &job->ranks[job->ranks[0].done ? 0 : job->saver];
}

static void judge_succeeded(struct model *m, struct m_job *job, const struct sched_job_row *row)
{
    m_tardy_time(m, job); /* what they waited for may be all that was lacking */
    const struct m_rank *of = m_ender(job);
    const bool has_saved = of->done || (of->vacant && job->kept[0] != '\0'); /* and was lost then */
    bool well = (job->state == JOB_RUNNING || job->called_off) && n_settled(job) == job->workers &&
                has_saved && (of == &job->ranks[0] || job->unsaved) && !differ(job, true) &&
                !differ(job, false) && !m_plan_differs(m, job) && row->code == MS_OK;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        well = well && r->code == MS_OK && !r->stopped && !r->lost && !r->missing;
    }
    if (job->unsaved && (job->kept[0] == '\0' || strstr(row->reason, job->kept) == NULL)) {
        sim_fail(m->w, "model: job %llu SUCCEEDED, and does not say who saved its weights: %s",
                 (ull)job->id, row->reason);
    }
    if (!well || strcmp(row->weights_sha256, of->weights) != 0 || row->steps != of->steps) {
        sim_fail(m->w, "model: job %llu SUCCEEDED, and not all of its ranks did", (ull)job->id);
    }
}

static bool is_any_missing(const struct m_job *job)
{
    bool missing = false;
    for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
        missing = missing || (job->ranks[rank].missing && !job->ranks[rank].vacant);
    }
    return missing;
}

/* Who is waited for has a time of his own. */
static bool grace_is_over(const struct model *m, const struct m_job *job, int64_t late_ms)
{
    return !is_any_missing(job) && m->mono - job->cancel_at >= MS_CANCEL_GRACE_MS + m->stretch -
                                                                   job->cancel_stretch + late_ms;
}

bool m_grace_is_over(const struct model *m, const struct m_job *job)
{
    return grace_is_over(m, job, 0);
}

bool m_is_silent_to_stop(const struct model *m, const struct m_job *job, uint32_t rank)
{
    const struct m_rank *r = &job->ranks[rank];
    const struct m_node *node = m_node_find((struct model *)m, r->node);
    const bool is_asked = !m_is_over(r) || (job->late_asked && rank == job->late_saver);
    return m->event->kind == SCHED_EV_TIME && job->recovery && m_stops_at_step(job) && is_asked &&
           !r->vacant && (job->lost_silent || grace_is_over(m, job, 0)) && node != NULL &&
           node->incarnation == r->incarnation && node->owes_word; /* it may be away, too */
}

bool m_holds_up_stop(const struct model *m, const struct m_job *job, uint32_t rank)
{
    const struct m_rank *r = &job->ranks[rank];
    return m->event->kind == SCHED_EV_TIME && job->recovery && m_stops_at_step(job) &&
           job->state == JOB_RECOVERING && !m_is_over(r) && !r->vacant && !r->missing &&
           !r->ready && m_is_newcomer(job, r) && (job->lost_silent || grace_is_over(m, job, 0));
}

/* The grace must not end the job before these are lost. */
static uint32_t count_silent(const struct model *m, const struct m_job *job)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
        n += m_is_silent_to_stop(m, job, rank) || m_holds_up_stop(m, job, rank);
    }
    return n;
}

/* Rank 0 is lost, or passed over, or ended in the middle: whether it has saved nobody knows. */
bool m_needs_another(const struct m_job *job)
{
    const struct m_rank *first = &job->ranks[0];
    return first->vacant || (m_is_over(first) ? first->code != MS_OK || first->tried || job->unsaved
                                              : first->passed_over);
}

static uint64_t saved_step(const struct m_job *job)
{
    const uint64_t first = m_needs_another(job) ? 0 : job->ranks[0].steps;
    return first > job->kept_step ? first : job->kept_step;
}

/* All are over, rank 0 is no help, and nobody has saved the furthest step that is left: the lowest
 * that ended well there has to. As many as its ranks: nobody. */
static uint32_t late_saver_of(const struct m_job *job)
{
    const bool all_over =
        job->recovery && m_is_placed(job) && m_stops_at_step(job) && n_settled(job) == job->workers;
    const uint64_t saved = all_over ? saved_step(job) : 0;
    const uint32_t lowest = job->unsaved ? 0 : 1; /* rank 0 itself has not, and may */
    uint32_t saver = job->workers;
    for (uint32_t rank = job->workers; all_over && rank > lowest; rank--) {
        const struct m_rank *r = &job->ranks[rank - 1];
        const uint64_t least = saver < job->workers ? job->ranks[saver].steps : saved + 1;
        if (r->done && !r->vacant && r->code == MS_OK && !r->tried && r->steps >= least) {
            saver = rank - 1;
        }
    }
    return saver;
}

static bool has_late_saver(const struct m_job *job)
{
    return late_saver_of(job) < job->workers;
}

/* It answered, and its disk hangs: the next one is asked. Of those that have not ended, too. */
static void give_up_saver(const struct model *m, struct m_job *job)
{
    if (m->event->kind != SCHED_EV_TIME || !m_is_placed(job) || !m_stops_at_step(job) ||
        count_silent(m, job) > 0 || !grace_is_over(m, job, 0)) {
        return;
    }
    if (job->late_asked) {
        job->late_asked = false;
        job->ranks[job->late_saver].tried = true;
        if (n_settled(job) == job->workers) {
            return;
        }
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        job->ranks[rank].passed_over |= !m_is_over(&job->ranks[rank]) && !job->ranks[rank].vacant;
    }
}

/* Where the newest checkpoint from before is, when nobody is left who could save a later one. */
static bool tells_home(const struct model *m, const struct m_job *job, const char *reason)
{
    char words[MS_NAME_MAX + 64];
    snprintf(words, sizeof(words), "; the checkpoint of step %llu, or a later one, is on node %s",
             (ull)job->home_step, job->home);
    return strstr(reason, "; nothing is saved: no rank ") == NULL || !m_home_is_away(m, job) ||
           strstr(reason, words) != NULL;
}

/* What the ranks that stopped have saved is told, or that nothing is. */
static bool tells_kept(const struct m_job *job, const char *reason)
{
    bool lost = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        lost = lost || job->ranks[rank].vacant;
    }
    return job->kept[0] != '\0'
               ? strstr(reason, job->kept) != NULL && strstr(reason, "; rank ") != NULL
           : (job->ranks[0].done && !job->ranks[0].stopped) || !m_needs_another(job)
               ? true
               : !lost || strstr(reason, "; nothing is saved: ") != NULL ||
                     strstr(reason, "; the weights are not saved: ") != NULL;
}

static void judge_cancelled(struct model *m, struct m_job *job, const struct sched_job_row *row)
{
    m_back_time(m, job);
    bool stopped =
        false; /* ranks that all finished did what was wanted before somebody cancelled */
    for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
        stopped = stopped || job->ranks[rank].stopped || job->ranks[rank].code != MS_OK ||
                  job->ranks[rank].vacant || !job->ranks[rank].started || job->unsaved ||
                  job->ranks[rank].passed_over;
    }
    const bool all_over =
        m_is_placed(job) && (count_done(job) == job->workers || n_settled(job) == job->workers);
    const bool over = grace_is_over(m, job, 0);
    bool due = job->cancelled &&
               (!m_stops_at_step(job) || job->cancel_due || (all_over && stopped) || over);
    for (uint32_t rank = 0; m_is_placed(job) && job->cancelled && rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        const bool is_last =
            !m_stops_at_step(job) || !job->recovery; /* else the others still stop */
        due = due || (is_last && (is_lost(m, r) || missing_is_due(m, job))) ||
              ((r->complains || r->accused) && ((is_last && blame_is_due(m, job, 0)) || all_over));
    }
    if (count_silent(m, job) > 0) {
        sim_fail(m->w, "model: job %llu is CANCELLED, and a rank of it has not said a word yet",
                 (ull)job->id);
    }
    give_up_saver(m, job);
    if (has_late_saver(job)) {
        sim_fail(m->w, "model: job %llu is CANCELLED, and rank %u could save its step",
                 (ull)job->id, late_saver_of(job));
    }
    if (!over && m_awaits_back(m, job)) {
        sim_fail(m->w, "model: job %llu is CANCELLED, and a rank may come back with its step",
                 (ull)job->id);
    }
    if (m_stops_at_step(job) && all_over && !over && !tells_home(m, job, row->reason)) {
        sim_fail(m->w, "model: job %llu is CANCELLED, and does not say where its checkpoint is: %s",
                 (ull)job->id, row->reason);
    }
    if (m_stops_at_step(job) && all_over && !over && !tells_kept(job, row->reason)) {
        sim_fail(m->w, "model: job %llu is CANCELLED, and does not say what is saved: %s",
                 (ull)job->id, row->reason);
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
        if (!job->ranks[rank].ready &&
            !job->ranks[rank].vacant) { /* nor is it replaced, at the end */
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
    struct m_node *node = m_node_of(m, (struct m_conn *)conn);
    if (node != NULL && !msg->at_step) {
        node->told_end = m->is_over;
    }
    struct m_stop *heard = M_MORE(m->heard, struct m_stop);
    heard->conn = conn->id;
    heard->job = msg->job;
    heard->generation = msg->generation;
    heard->code = msg->code;
    heard->at_step = msg->at_step != 0;
    heard->saves = msg->saves != 0;
    heard->stands = msg->stands != 0;
    snprintf(heard->text, sizeof(heard->text), "%s", msg->text);
}

static bool stop_fits(const struct m_stop *want, const struct m_stop *heard)
{
    return want->conn == heard->conn && want->job == heard->job &&
           want->at_step == heard->at_step && want->saves == heard->saves &&
           want->stands == heard->stands && want->generation == heard->generation &&
           want->code == heard->code &&
           (want->any_text  ? heard->text[0] != '\0'
            : want->at_step ? strstr(heard->text, want->text) != NULL
                            : strcmp(heard->text, want->text) == 0);
}

/* It may be about to, and two would write into one folder. */
static bool is_at_it(const struct m_job *job, uint32_t rank)
{
    const struct m_rank *r = &job->ranks[rank];
    return rank != 0 && !r->vacant && !r->passed_over &&
           (!m_is_over(r) || (job->late_asked && job->late_saver == rank));
}

static bool has_any(const struct m_rank *r)
{
    return r->has_plan || r->has_state;
}

/* Rank 0, if it is there or has, or each may train for itself; else the lowest that is left, and
 * holds something. */
static uint32_t saver_of(const struct m_job *job)
{
    uint32_t saver = job->workers;
    if (!job->recovery || (job->ranks[0].done && !m_needs_another(job))) {
        return 0;
    }
    if (job->kept[0] != '\0') {
        return job->saver;
    }
    if (is_at_it(job, job->asked)) {
        return job->asked;
    }
    for (uint32_t rank = job->workers; rank > 0; rank--) {
        const struct m_rank *r = &job->ranks[rank - 1];
        if (!m_is_over(r) &&
            (has_any(r) || saver == job->workers || !has_any(&job->ranks[saver]))) {
            saver = rank - 1;
        }
    }
    return saver < job->workers ? saver : 0;
}

/* Somebody of the last round is gone, was not told of it, or has started or stopped already. */
bool m_no_start_comes(const struct model *m, const struct m_job *job)
{
    bool lacks = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        const struct m_node *node = m_node_find((struct model *)m, r->node);
        lacks = lacks || r->vacant || r->lost || m_is_over(r) || r->started || r->settled != 0 ||
                node == NULL || node->hold.generation != job->generation;
    }
    return job->state == JOB_RECOVERING && (lacks || job->stands_for_good);
}

static void begin_grace(struct model *m, struct m_job *job)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        struct m_node *node = m_node_find(m, r->node);
        if (!r->vacant && node != NULL && node->incarnation == r->incarnation) {
            node->owes_word = true;
        }
    }
    job->stop_told = true;
    job->cancel_at = m->mono;
    job->cancel_stretch = m->stretch;
    job->cancel_late_ms = 0;
}

/* From now on each has his time again. */
static void begin_anew(struct model *m, struct m_job *job)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        job->ranks[rank].passed_over = false;
    }
    begin_grace(m, job);
}

void m_lost_in_grace(struct model *m, struct m_job *job)
{
    job->lost_silent = true;
    job->back_is_over = job->has_awaited;
    begin_anew(m, job);
}

/* Those that are left, when it is known of all who they are. */
static void stop_who_is_left(struct model *m, struct m_job *job)
{
    if (job->lost_silent && m_is_placed(job) && m_stops_at_step(job)) {
        m_formers_step_in(m, job);
        begin_anew(m, job);
    }
    if (job->lost_silent && m_is_placed(job) && m_stops_at_step(job) &&
        n_over(job) < job->workers) {
        m_stop_at_step(m, job, false);
    }
}

/* Each in the generation that it knows. Where some are missing it is not known yet who saves. */
void m_stop_at_step(struct model *m, struct m_job *job, bool over_too)
{
    m_formers_step_in(m, job);
    m_back_judge(m, job);
    if (is_any_missing(job) || job->awaits_back) {
        return;
    }
    if (!job->stop_told) {
        begin_anew(m, job);
    }
    const uint32_t saver = saver_of(job);
    job->asked = saver != 0 ? saver : job->asked;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct m_rank *r = &job->ranks[rank];
        const struct m_node *node = m_node_find(m, r->node);
        if (r->missing || r->vacant || r->lost || node == NULL || node->conn == 0 ||
            node->incarnation != r->incarnation || (m_is_over(r) && !over_too)) {
            continue;
        }
        struct m_stop stop = {.job = job->id,
                              .generation = node->hold.generation,
                              .code = MS_E_CANCELLED,
                              .at_step = true,
                              .saves = saver != 0 && rank == saver,
                              .stands = m_no_start_comes(m, job)};
        snprintf(stop.text, sizeof(stop.text), "%s", job->cancel_reason);
        m_stop_expect(m, node->conn, &stop);
        job->stands_for_good = job->stands_for_good || stop.stands;
        r->settled = node->hold.generation != job->generation ? node->hold.generation : 0;
    }
}

void m_stop_look(struct model *m, struct m_job *job)
{
    m_formers_step_in(m, job);
    if (n_over(job) < job->workers) {
        m_stop_at_step(m, job, false);
    }
}

void m_ask_late_saver(struct model *m, struct m_job *job)
{
    const uint32_t saver = late_saver_of(job);
    const bool is_at_it = job->late_asked && saver == job->late_saver;
    if (saver == job->workers || m_awaits_back(m, job) ||
        (is_at_it && (job->stop_told || is_any_missing(job)))) {
        return;
    }
    const struct m_node *node = m_node_find(m, job->ranks[saver].node);
    job->asked = saver != 0 ? saver : job->asked;
    job->late_asked = job->ranks[saver].saving = true;
    job->late_saver = saver;
    begin_grace(m, job);
    if (!is_at_it && node != NULL && node->conn != 0) {
        const uint64_t known = node->hold.generation;
        job->ranks[saver].settled = known != job->generation ? known : 0;
        struct m_stop stop = {.job = job->id,
                              .generation = node->hold.generation,
                              .code = MS_E_CANCELLED,
                              .at_step = true,
                              .saves = true,
                              .stands = m_no_start_comes(m, job)};
        snprintf(stop.text, sizeof(stop.text), "%s", job->cancel_reason);
        m_stop_expect(m, node->conn, &stop);
        job->stands_for_good = job->stands_for_good || stop.stands;
    }
}

/* A complaint that came before the cancel is judged: all are told again. */
static bool is_told_again(struct model *m, const struct m_stop *heard)
{
    struct m_job *job = m_job_find(m, heard->job);
    const bool is =
        job != NULL && m_is_placed(job) && heard->at_step && m_stops_at_step(job) &&
        (job->complaint_judged || (job->blame_at != SIM_NEVER && m_blame_is_due(m, job)));
    if (is) {
        job->complaint_judged = true;
    }
    return is;
}

/* It was to save in the place of one that was lost, and was lost in the same event itself. */
static bool was_asked_too_late(const struct model *m, const struct m_stop *heard)
{
    bool is_here = false;
    for (size_t i = 0; i < m->nodes.n; i++) {
        is_here = is_here || m->nodes.at[i].conn == heard->conn;
    }
    return heard->saves && heard->code == MS_OK && !is_here;
}

/* Before its job ended, in the same event. */
static bool was_heard(const struct model *m, const struct m_stop *stop)
{
    bool was = false;
    for (size_t i = 0; i < m->heard.n; i++) {
        was = was || stop_fits(stop, &m->heard.at[i]);
    }
    return was;
}

/* Who had to hear Stop did, with the code and the words of the end; and nobody else. */
static void judge_stops(struct model *m)
{
    for (size_t i = 0; i < m->stops.n; i++) {
        struct m_stop *stop = &m->stops.at[i];
        const struct m_job *job = m_job_find(m, stop->job);
        if (stop->claim && job != NULL && m_is_ended(job) && !was_heard(m, stop)) {
            stop->code = job->code;
            stop->any_text = false;
            snprintf(stop->text, sizeof(stop->text), "%s", job->reason);
        }
    }
    for (size_t i = 0; i < m->heard.n; i++) {
        const struct m_stop *heard = &m->heard.at[i];
        size_t j = 0;
        if (!heard->at_step) {
            train_check_stop(m->w, heard->conn, heard->job, heard->generation);
        }
        while (j < m->stops.n && !stop_fits(&m->stops.at[j], heard)) {
            j++;
        }
        if (j < m->stops.n) {
            m->stops.at[j] = m->stops.at[--m->stops.n];
        } else if (is_told_again(m, heard) || was_asked_too_late(m, heard)) {
            continue;
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
    m_formers_stop(m, job, stop);
    for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        struct m_node *node = m_node_find(m, r->node);
        if (r->missing || r->lost || r->vacant || node == NULL || node->conn == 0 ||
            node->incarnation != r->incarnation) {
            continue;
        }
        struct m_stop own = *stop;
        own.generation = node->hold.generation; /* as its process knows it */
        m_stop_expect(m, node->conn, &own);
        if (r->done || r->has_said) {
            node->hold = (struct m_hold){0};
        }
    }
}

/* A job that had no step yet may be placed anew, if a rank was lost. */
bool m_may_requeue(const struct model *m, const struct m_job *job)
{
    bool lost = m->fresh || m_ready_is_over(m, job, 0) ||
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
    bool placing = job->state != JOB_RUNNING;
    bool blamed = job->blame_at != SIM_NEVER;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        if (r->lost) {
            return "a rank is lost and it goes on";
        }
        if (r->gives_up || m_is_unfit(job, r)) {
            return "a rank gave up and it goes on";
        }
        if (failed_first_hand(job, r)) {
            return "a rank failed and it goes on";
        }
        if (!placing && !r->started && !r->missing && !r->done && !r->vacant) {
            return "a rank was not started";
        }
    }
    if (placing && !job->round_due && count_ready(job) == job->workers && !blamed &&
        !job->stands_for_good) {
        return "all ranks are ready and it is not started";
    }
    if (m_evals_are_late(m, job)) {
        return "its evaluations are not stored";
    }
    if (job->cancel_due) {
        return "its cancel cannot be carried out at a step, and it goes on";
    }
    if (m_stops_at_step(job) && !job->cancel_stored) {
        return "its cancel is not stored";
    }
    if (m_owes_weights(job)) {
        return NULL; /* whoever has to hear of it does */
    }
    if (!job->round_due && count_done(job) == job->workers && !has_late_saver(job) &&
        !m_awaits_back(m, job)) {
        return "all ranks are done and it goes on";
    }
    if (blame_is_due(m, job, LATE_MS) && m->mono > m->busy_until && !m_stops_at_step(job)) {
        return "a complaint is never judged";
    }
    if (m->event->kind == SCHED_EV_TIME && !blamed && !m_stops_at_step(job) &&
        unready_is_late(m, job)) {
        return "a rank never gets ready and keeps it";
    }
    if (!blamed && m_round_hangs(m, job)) {
        return "a rank hangs in its round, and others could end";
    }
    if (m->event->kind == SCHED_EV_TIME && missing_is_late(m, job)) {
        return "nodes that do not come back are waited for";
    }
    if (m->event->kind == SCHED_EV_TIME && m_stops_at_step(job) &&
        grace_is_over(m, job, SLACK_MS + job->cancel_late_ms) && !m_awaits_back(m, job)) {
        return "its cancel is never carried out";
    }
    return NULL;
}

/* Who waits for a rank would wait on, and take one in whatever begins there next. */
static void judge_end_is_told(struct model *m)
{
    for (size_t i = 0; m->is_over && i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        if (node->conn != 0 && node->hold.job == 0 && !node->told_end) {
            sim_fail(m->w, "model: the cluster has ended, and nobody tells node %s, which waits",
                     node->id);
        }
    }
}

void m_judge_ranks_after(struct model *m)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        m_back_time(m, &m->jobs.at[i]);
        m_back_look(m, &m->jobs.at[i]);
        stop_who_is_left(m, &m->jobs.at[i]);
        give_up_saver(m, &m->jobs.at[i]);
        m_ask_late_saver(m, &m->jobs.at[i]);
        m_tardy_time(m, &m->jobs.at[i]);
        m_save_time(m, &m->jobs.at[i]);
        m_look_for_tardy(m, &m->jobs.at[i]);
        m_look_for_saver(m, &m->jobs.at[i]);
    }
    judge_stops(m);
    judge_end_is_told(m);
    for (size_t i = 0; i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        const bool blamed = job->blame_at != SIM_NEVER;
        job->blame_at = job->complaint_judged ? SIM_NEVER : job->blame_at;
        job->complaint_judged = false;
        if (!job->dropped && m_is_placed(job)) {
            unready_seen(m, job, blamed);
        }
        const char *late = !job->dropped && m_is_placed(job) ? overdue(m, job) : NULL;
        if (late != NULL) {
            sim_fail(m->w, "model: job %llu: %s", (ull)job->id, late);
        }
        if (!job->dropped && m_is_placed(job)) {
            m_watch_round(m, job);
        }
    }
}
