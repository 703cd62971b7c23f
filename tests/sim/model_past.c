/* model_past.c - the model's history: what of it may go, and what must */
#include "tests/sim/model.h"

#include <string.h>

typedef unsigned long long ull;

/* What all keep of the past, and the owner of one job of it. */
struct past {
    uint32_t jobs, ranks, own_jobs, own_ranks;
};

static bool is_kept(const struct m_job *job)
{
    return !job->dropped && m_is_ended(job);
}

static uint32_t ranks_kept(const struct m_job *job)
{
    return is_kept(job) && !job->members_dropped && job->n_ranks > 0 ? job->workers : 0;
}

static struct past past_of(const struct model *m, const char *owner)
{
    struct past past = {0, 0, 0, 0};
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        bool own = strcmp(job->owner, owner) == 0;
        past.jobs += is_kept(job);
        past.ranks += ranks_kept(job);
        past.own_jobs += own && is_kept(job);
        past.own_ranks += own ? ranks_kept(job) : 0;
    }
    return past;
}

/* Nobody else has more, and of his own, as of those of others who have as much, it is the oldest.
 */
static void judge_whose_past(struct model *m, const struct m_job *job, bool ranks_only)
{
    struct past past = past_of(m, job->owner);
    uint32_t mine = ranks_only ? past.own_ranks : past.own_jobs;
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *other = &m->jobs.at[i];
        struct past others = past_of(m, other->owner);
        uint32_t theirs = ranks_only ? others.own_ranks : others.own_jobs;
        if (!is_kept(other) || (ranks_only && ranks_kept(other) == 0)) {
            continue;
        }
        if (theirs > mine) {
            sim_fail(m->w,
                     "model: job %llu of %s, who has %u of the past, goes before those of %s, "
                     "who has %u",
                     (ull)job->id, job->owner, mine, other->owner, theirs);
        } else if (theirs == mine && other->ended_ms < job->ended_ms && !m->w->wall_jumps) {
            sim_fail(m->w, "model: job %llu is forgotten before job %llu, which ended first",
                     (ull)job->id, (ull)other->id);
        }
    }
}

/* History may go, of who has the most the oldest, and only what is too much. */
void m_judge_drop(struct model *m, uint64_t id, bool members_only)
{
    struct m_job *job = m_job_find(m, id);
    if (job == NULL) {
        sim_fail(m->w, "model: job %llu is dropped and was not there", (ull)id);
        return;
    }
    if (members_only && job->state == JOB_QUEUED) {
        job->has_members = false;
        return; /* it was placed, and is no longer */
    }
    struct past past = past_of(m, job->owner);
    bool too_many_ranks = members_only && past.ranks > m->w->members_kept_max;
    if (!m_is_ended(job) || (!too_many_ranks && past.jobs <= m->w->jobs_kept_max)) {
        sim_fail(m->w, "model: job %llu is forgotten, with %u jobs and %u ranks of history",
                 (ull)id, past.jobs, past.ranks);
        return;
    }
    if (past.ranks <= m->w->members_kept_max || !members_only) { /* ranks of a job that goes */
        judge_whose_past(m, job, false);
    } else {
        judge_whose_past(m, job, true);
    }
    job->members_dropped = true;
    job->dropped = !members_only;
}

/* ... and must, where the turn has room for it. */
void m_judge_history(struct model *m)
{
    bool ended = false;
    for (size_t i = 0; i < m->jobs.n; i++) {
        ended = ended || m->jobs.at[i].ended_now;
    }
    struct past past = past_of(m, "");
    if (ended && !sched_tick_is_full(m->w->sched) &&
        (past.jobs > m->w->jobs_kept_max || past.ranks > m->w->members_kept_max)) {
        sim_fail(m->w, "model: %u ended jobs and %u of their ranks are kept", past.jobs,
                 past.ranks);
    }
}
