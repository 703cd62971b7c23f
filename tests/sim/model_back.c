/* model_back.c - a job that is to stop waits for ranks that are lost, and may be on their way
 *
 * What was seen of them is the end of a connection, and each has the time in which it knocks again.
 * Not under `msctl run`, which sees the ends of its workers. */
#include "tests/sim/model.h"

#include <string.h>

/* Until when; SIM_NEVER, negative: it is not on its way. */
static int64_t cut_until(const struct model *m, const struct m_job *job, uint32_t rank)
{
    const struct m_rank *r = &job->ranks[rank];
    const struct m_node *node = m_node_find((struct model *)m, r->node);
    const bool may = m->w->mode != SCHED_RUN && r->vacant && !r->is_final && r->is_cut &&
                     strcmp(r->holder, r->node) == 0 && (node == NULL || node->conn == 0);
    return may ? r->holder_lost + MS_UNHEARD_MS + m->stretch - r->holder_stretch : INT64_MIN;
}

/* Who was lost before then had its time. */
static int64_t past(const struct model *m, const struct m_job *job)
{
    return job->back_at + m->stretch - job->back_stretch;
}

bool m_is_stood_in_for(const struct model *m, const struct m_job *job, uint32_t rank)
{
    bool is = false;
    for (uint32_t other = 1; rank == 0 && job->asked != 0 && other < job->workers; other++) {
        is = is || !job->ranks[other].vacant ||
             (!job->back_is_over && cut_until(m, job, other) > past(m, job));
    }
    return is;
}

static int64_t back_until(const struct model *m, const struct m_job *job)
{
    int64_t until = INT64_MIN;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const int64_t at = m_is_stood_in_for(m, job, rank) ? INT64_MIN : cut_until(m, job, rank);
        until = at > until ? at : until;
    }
    return until;
}

bool m_awaits_back(const struct model *m, const struct m_job *job)
{
    if (!job->recovery || !m_is_placed(job) || !m_stops_at_step(job) || job->back_is_over) {
        return false;
    }
    const bool has_last = job->ranks[0].done && !job->ranks[0].stopped && !m_needs_another(job);
    return !has_last && back_until(m, job) > past(m, job);
}

void m_back_begins(const struct model *m, struct m_job *job)
{
    job->back_at = m->mono;
    job->back_stretch = m->stretch;
    job->back_is_over = job->awaits_back = job->has_awaited = false;
    job->asked = 0;
}

/* The first time in a cancel costs nobody anything: the grace begins anew. */
void m_back_judge(const struct model *m, struct m_job *job)
{
    job->awaits_back = m_awaits_back(m, job);
    if (job->awaits_back && !job->has_awaited) {
        job->has_awaited = true;
        job->cancel_at = m->mono;
        job->cancel_stretch = m->stretch;
    }
}

void m_back_time(struct model *m, struct m_job *job)
{
    if (m->event->kind != SCHED_EV_TIME || !m_is_placed(job) || !m_stops_at_step(job)) {
        return;
    }
    if (m_grace_is_over(m, job)) { /* whoever is lost again and again had all the time, too */
        job->back_is_over = job->has_awaited;
        if (job->awaits_back) { /* those that are left have theirs now */
            job->stop_told = false;
            job->cancel_at = m->mono;
            job->cancel_stretch = m->stretch;
        }
    } else if (job->awaits_back && m->mono >= back_until(m, job)) {
        job->back_at = m->mono;
        job->back_stretch = m->stretch;
    }
}

void m_back_note_arrival(struct model *m, const char *node)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        for (uint32_t rank = 0; m_is_placed(job) && rank < job->workers; rank++) {
            struct m_rank *r = &job->ranks[rank];
            r->is_cut = r->is_cut && (!r->vacant || strcmp(r->holder, node) != 0);
        }
    }
}

void m_back_look(struct model *m, struct m_job *job)
{
    if (job->awaits_back && !m_awaits_back(m, job) && m_is_placed(job)) {
        m_stop_look(m, job);
    }
    m_back_judge(m, job);
}
