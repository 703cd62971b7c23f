/* model_home.c - the node with the checkpoints of a job of which no process holds the state: which
 * one it is, how long it is waited for, and what others may not take meanwhile */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

enum { LATE_MS = 70 /* timers of the driver are late by 50 */ };

void m_home_note(const struct model *m, struct m_job *job, const struct m_node *node, uint64_t step)
{
    const uint64_t known = job->home_guess ? 0 : job->home_step;
    if (job->has_home && m->w->mode == SCHED_STANDING && step > 0 && step >= known &&
        node != NULL) {
        memcpy(job->home, node->id, sizeof(job->home));
        memcpy(job->home_owner, node->owner, sizeof(job->home_owner));
        job->home_folder = node->folder;
        job->home_step = step;
        job->home_guess = false;
    }
}

/* Rank 0 did not come back after a restart: where it was it may have saved. */
void m_home_guess(const struct model *m, struct m_job *job)
{
    const struct m_rank *first = &job->ranks[0];
    if (job->has_home && m->w->mode == SCHED_STANDING && job->home_step == 0) {
        memcpy(job->home, first->node, sizeof(job->home));
        memcpy(job->home_owner, first->owner, sizeof(job->home_owner));
        job->home_folder = 0;
        job->home_step = 1;
        job->home_guess = true;
    }
}

bool m_is_at_home(const struct m_job *job, const struct m_node *node)
{
    const bool is_known = job->home_folder != 0 && node->folder != 0;
    return (is_known ? node->folder == job->home_folder : strcmp(node->id, job->home) == 0) &&
           (strcmp(job->home_owner, "anyone") == 0 || strcmp(job->home_owner, node->owner) == 0);
}

/* Where the newest checkpoint is that is known, another node than that of rank 0: none of its
 * folder. */
bool m_home_is_away(const struct model *m, const struct m_job *job)
{
    const struct m_node *first =
        job->n_ranks > 0 ? m_node_find((struct model *)m, job->ranks[0].node) : NULL;
    return job->home_step > 0 && !job->home_guess && job->n_ranks > 0 &&
           strcmp(job->ranks[0].node, job->home) != 0 &&
           (first == NULL || !m_is_at_home(job, first));
}

/* A process holds the state, or one is where the checkpoints are. */
bool m_state_is_held(const struct model *m, const struct m_job *job)
{
    bool is = false;
    for (uint32_t rank = 0; !is && rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        const struct m_node *node = m_node_find((struct model *)m, r->node);
        is = m_holds(job, rank) || (!r->vacant && node != NULL && m_is_at_home(job, node));
    }
    for (uint32_t i = 0; !is && i < job->n_formers; i++) {
        is = job->formers[i].here;
    }
    return is;
}

/* perhaps: its timer may not have been heard yet. */
static bool is_past(const struct model *m, int64_t at, bool perhaps)
{
    return m->mono >= at + (perhaps ? LATE_MS : 0) &&
           (!perhaps || (m->event->kind == SCHED_EV_TIME && m->mono > m->busy_until));
}

/* Half of the time that a rank may be vacant. */
static bool is_over(const struct model *m, const struct m_job *job, bool perhaps)
{
    const int64_t most_ms = m->w->topo_ms >= 0 ? m->w->topo_ms : MS_TOPO_TIMEOUT_S * INT64_C(1000);
    const int64_t since =
        perhaps && job->home_late_at > job->home_at ? job->home_late_at : job->home_at;
    return is_past(m, since + most_ms / 2 + m->stretch - job->home_stretch, perhaps);
}

/* Nobody else holds the state, and one that did, and was lost a lease ago at the most, may live:
 * its end was not seen. */
bool m_awaits_holder(const struct model *m, const struct m_job *job, bool perhaps)
{
    const int64_t half_ms = m->w->topo_ms >= 0 ? m->w->topo_ms / 2 : INT64_MAX;
    const int64_t wait_ms = half_ms < m->lease_ms ? half_ms : m->lease_ms;
    bool may_live = false;
    bool is_held = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        const struct m_node *node = m_node_find((struct model *)m, r->holder);
        const bool is_due =
            is_past(m, r->holder_lost + wait_ms + m->stretch - r->holder_stretch, perhaps);
        may_live =
            may_live || (r->holder[0] != '\0' && !is_due && (node == NULL || node->conn == 0));
        is_held = is_held || m_holds(job, rank);
    }
    for (uint32_t i = 0; i < job->n_formers; i++) {
        is_held = is_held || job->formers[i].here;
    }
    return m->w->mode == SCHED_STANDING && may_live && !is_held;
}

/* Where no process holds the state one rank is for the node with its checkpoints. */
bool m_awaits_home(const struct model *m, const struct m_job *job, bool perhaps)
{
    return job->home_step > 0 && m->w->mode == SCHED_STANDING && !is_over(m, job, perhaps) &&
           !m_state_is_held(m, job);
}

/* It is the one of those at home that is kept, if the job can use it: release 0.1 takes no state.
 * Perhaps: or another one is in its place. */
static bool is_kept_at_home(const struct model *m, const struct m_job *job,
                            const struct m_node *node, bool perhaps)
{
    const bool can_serve = m_knows_plans(node) && !m_was_unfit(m, job, node->incarnation);
    bool is = m_is_at_home(job, node) && (perhaps || can_serve);
    for (size_t i = 0; is && !perhaps && i < m->nodes.n; i++) {
        const struct m_node *other = &m->nodes.at[i];
        is = strcmp(node->id, job->home) == 0 || other == node || !m_is_idle(other) ||
             !m_is_at_home(job, other);
    }
    return is;
}

/* Another job, which lost its state, waits for that node; of two such jobs one has it, and the
 * first of both all of that folder. */
bool m_is_kept_for_another(const struct model *m, const struct m_job *job,
                           const struct m_node *node, bool perhaps)
{
    const bool is_its_own = job != NULL && job->home_step > 0 && m_is_at_home(job, node);
    const bool goes_first = is_its_own && m_awaits_home(m, job, false);
    bool is = false;
    for (size_t i = 0; !is && (perhaps || !is_its_own) && i < m->jobs.n; i++) {
        const struct m_job *other = &m->jobs.at[i];
        is = other != job && !(goes_first && job->id < other->id) && !other->dropped &&
             (perhaps ? other->state == JOB_RECOVERING
                      : m_is_placed(other) && other->round_due && m_has_vacant(other)) &&
             is_kept_at_home(m, other, node, perhaps) && m_awaits_home(m, other, perhaps);
    }
    return is;
}

bool m_is_home_tried(const struct model *m, const struct m_job *job, const struct m_rank *r,
                     bool is_link, bool perhaps)
{
    bool is = job->home_step > 0 && m->w->mode == SCHED_STANDING && !is_over(m, job, perhaps);
    bool is_there = false;
    for (uint32_t rank = 0; is && rank < job->workers; rank++) {
        const struct m_rank *other = &job->ranks[rank];
        const struct m_node *node = m_node_find((struct model *)m, other->node);
        is = other == r || !m_holds(job, rank);
        is_there = is_there || ((other == r || (is_link && !other->vacant)) && node != NULL &&
                                m_is_at_home(job, node));
    }
    is = is && is_there;
    for (uint32_t i = 0; is && i < job->n_formers; i++) {
        is = !job->formers[i].here;
    }
    return is;
}

/* Its process was told to leave, and is there: it may not have saved yet. */
bool m_saves_at_home(const struct model *m, const struct m_job *job, bool perhaps)
{
    const struct m_node *node = m_node_find((struct model *)m, job->home);
    return node != NULL && node->conn != 0 && node->leaving && m_is_at_home(job, node) &&
           m_awaits_home(m, job, perhaps);
}

uint32_t m_count_kept(const struct model *m)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        n += m_is_idle(&m->nodes.at[i]) && m_is_kept_for_another(m, NULL, &m->nodes.at[i], true);
    }
    return n;
}

/* Of the members one is there, or the training would begin anew for nothing. */
void m_judge_home(struct model *m, const struct m_job *job, const Ms__Assign *msg)
{
    bool is = false;
    for (size_t k = 0; !is && k < msg->n_members; k++) {
        const struct m_node *node = m_node_find(m, msg->members[k]->node_id);
        is = node != NULL && m_is_at_home(job, node);
    }
    if (!is && job->awaited_home) {
        sim_fail(m->w, "model: job %llu has lost its state, and no rank of it is on node %s",
                 (ull)job->id, job->home);
    }
}
