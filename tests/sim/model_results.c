/* model_results.c - the model's progress: what a job shows of its training, also after a restart */
#include "tests/sim/model.h"

#include <string.h>

typedef unsigned long long ull;

enum { LATE_MS = 70 /* timers of the driver are late by 50 */ };

void m_results_reload(struct m_job *job, const struct sched_job_row *row)
{
    job->has_progress = false;
    job->n_evals = 0;
    job->saver = 0;
    job->unstored_at = SIM_NEVER;
    Ms__JobResults *msg = row->state != JOB_QUEUED
                              ? ms__job_results__unpack(NULL, row->results_bytes, row->results)
                              : NULL;
    for (size_t i = 0; msg != NULL && i < msg->n_evals; i++) {
        const Ms__Progress *from = msg->evals[i];
        job->evals[job->n_evals++] =
            (struct m_progress){from->step, from->epoch, from->loss, from->accuracy};
    }
    job->saver = msg != NULL ? msg->saver : 0;
    job->last_step = msg != NULL ? msg->last_step : 0;
    const Ms__Home *home = msg != NULL ? msg->home : NULL;
    snprintf(job->home, sizeof(job->home), "%s", home != NULL ? home->node_id : "");
    snprintf(job->home_owner, sizeof(job->home_owner), "%s", home != NULL ? home->principal : "");
    job->home_folder = home != NULL ? home->folder : 0;
    job->home_step = home != NULL ? home->step : 0;
    job->home_guess = false;
    ms__job_results__free_unpacked(msg, NULL);
}

/* What rank 0 has told of already: an evaluation that is not known yet takes its place. */
static void told_again(struct model *m, struct m_job *job, const Ms__Progress *msg)
{
    uint32_t before = 0;
    bool is_known = !msg->has_eval;
    for (uint32_t i = 0; i < job->n_evals; i++) {
        before += job->evals[i].epoch < msg->epoch;
        is_known = is_known || job->evals[i].epoch == msg->epoch;
    }
    if (is_known || (before == 0 && job->n_evals == MS_EVALS_MAX)) {
        return; /* or it is one too many */
    }
    struct m_progress all[MS_EVALS_MAX + 1];
    memcpy(all, job->evals, before * sizeof(all[0]));
    all[before] = (struct m_progress){msg->step, msg->epoch, msg->loss, msg->accuracy};
    memcpy(all + before + 1, job->evals + before, (job->n_evals - before) * sizeof(all[0]));
    const uint32_t too_many = job->n_evals == MS_EVALS_MAX;
    job->n_evals += 1 - too_many;
    memcpy(job->evals, all + too_many, job->n_evals * sizeof(all[0]));
    job->unstored_at = job->unstored_at == SIM_NEVER ? m->mono : job->unstored_at;
}

/* Of a checkpoint: in a round, in whatever generation, and by who keeps the state of rank 0. */
static void note_saved(struct model *m, const struct m_conn *conn, const Ms__Progress *msg)
{
    const struct m_node *node = m_node_of(m, conn);
    struct m_job *job = m_job_find(m, msg->job);
    const bool has_begun =
        job != NULL && (job->state == JOB_RUNNING || job->state == JOB_RECOVERING);
    const struct m_rank *first = has_begun ? &job->ranks[0] : NULL;
    bool is = node != NULL && has_begun && strcmp(first->node, node->id) == 0 &&
              first->incarnation == node->incarnation && !first->missing && !first->vacant;
    for (uint32_t i = 0; node != NULL && has_begun && i < job->n_formers; i++) {
        const struct m_former *former = &job->formers[i];
        is = is || (former->here && former->rank == 0 && strcmp(former->node, node->id) == 0 &&
                    former->incarnation == node->incarnation);
    }
    if (is) {
        m_home_note(m, job, node, msg->saved);
    }
}

/* The last one counts, and of those with an evaluation the last of each epoch. */
void m_on_progress(struct model *m, struct m_conn *conn, const Ms__Progress *msg)
{
    struct m_rank *r = m_rank_of(m, conn, msg->job, msg->generation, msg->rank);
    struct m_job *job = m_job_find(m, msg->job);
    if (msg->saved > 0) {
        note_saved(m, conn, msg);
    }
    if (msg->step == 0 && msg->saved > 0) {
        return;
    }
    if (r == NULL || job->state != JOB_RUNNING) {
        return;
    }
    job->told_at = r == job->ranks ? m->mono : job->told_at;
    if (msg->step < job->told) {
        told_again(m, job, msg);
        return;
    }
    job->told = msg->step;
    r->step = msg->step;
    job->went_on = job->went_on || (!job->stands && msg->step > job->furthest);
    m_saw_step(job, msg->step);
    job->has_progress = true;
    job->progress = (struct m_progress){msg->step, msg->epoch, msg->loss, msg->accuracy};
    if (!msg->has_eval) {
        return;
    }
    job->unstored_at = job->unstored_at == SIM_NEVER ? m->mono : job->unstored_at;
    while (job->n_evals > 0 && job->evals[job->n_evals - 1].epoch >= msg->epoch) {
        job->n_evals--; /* it went back, and makes them again */
    }
    if (job->n_evals == MS_EVALS_MAX) {
        memmove(job->evals, job->evals + 1, (MS_EVALS_MAX - 1) * sizeof(job->evals[0]));
        job->n_evals--;
    }
    job->evals[job->n_evals++] = job->progress;
}

void m_on_beat(struct model *m, struct m_conn *conn, const Ms__Heartbeat *msg)
{
    const struct m_node *node = m_node_of(m, conn);
    struct m_rank *r =
        node != NULL ? m_rank_of(m, conn, msg->job, msg->generation, node->hold.rank) : NULL;
    if (r != NULL) {
        r->step = msg->step > r->step ? msg->step : r->step;
        m_saw_step(m_job_find(m, msg->job), msg->step);
    } else if (node != NULL && m_former_of(m, node) != NULL && node->hold.job == msg->job &&
               node->hold.generation == msg->generation) {
        m_saw_step(m_job_find(m, msg->job), msg->step);
    }
}

static bool is_same(const struct m_progress *want, const Ms__Progress *msg)
{
    return want->step == msg->step && want->epoch == msg->epoch && want->loss <= msg->loss &&
           want->loss >= msg->loss && want->accuracy <= msg->accuracy &&
           want->accuracy >= msg->accuracy;
}

static bool are_same(const struct m_job *job, Ms__Progress *const *evals, size_t n)
{
    bool same = n == job->n_evals;
    for (size_t i = 0; same && i < n; i++) {
        same = is_same(&job->evals[i], evals[i]);
    }
    return same;
}

/* Where its newest checkpoint is, also of one that has ended: who goes on from it asks there. */
static void judge_home(struct model *m, const struct m_job *job, const Ms__JobResults *msg)
{
    const Ms__Home *home = msg != NULL ? msg->home : NULL;
    if ((home != NULL) != (job->home_step > 0 && !job->home_guess)) {
        sim_fail(m->w, "model: job %llu has its checkpoint of step %llu %sstored", (ull)job->id,
                 (ull)job->home_step, home != NULL ? "" : "not ");
    } else if (home != NULL && (strcmp(home->node_id, job->home) != 0 ||
                                strcmp(home->principal, job->home_owner) != 0 ||
                                home->folder != job->home_folder || home->step != job->home_step)) {
        sim_fail(m->w,
                 "model: job %llu has its checkpoint of step %llu on node %s, and node %s is "
                 "stored",
                 (ull)job->id, (ull)job->home_step, job->home, home->node_id);
    }
}

/* What an ended job last showed is stored with its end. */
void m_judge_results(struct model *m, const struct m_job *job, const struct sched_job_row *row)
{
    Ms__JobResults *msg = ms__job_results__unpack(NULL, row->results_bytes, row->results);
    if (msg == NULL || job->has_progress != (msg->progress != NULL) ||
        (job->has_progress && !is_same(&job->progress, msg->progress)) ||
        !are_same(job, msg->evals, msg->n_evals)) {
        sim_fail(m->w,
                 "model: job %llu ends after step %llu with %u evaluations, and %zu of them "
                 "are stored",
                 (ull)job->id, (ull)job->progress.step, job->n_evals,
                 msg != NULL ? msg->n_evals : 0);
    }
    judge_home(m, job, msg);
    ms__job_results__free_unpacked(msg, NULL);
}

void m_judge_evals(struct model *m, struct m_job *job, const struct sched_job_row *row)
{
    Ms__JobResults *msg = ms__job_results__unpack(NULL, row->results_bytes, row->results);
    if (msg == NULL || !are_same(job, msg->evals, msg->n_evals)) {
        sim_fail(m->w, "model: job %llu has %u evaluations, and %zu of them are stored",
                 (ull)job->id, job->n_evals, msg != NULL ? msg->n_evals : 0);
    }
    ms__job_results__free_unpacked(msg, NULL);
    job->unstored_at = SIM_NEVER;
}

/* After a restart nothing else tells it. */
void m_judge_end_known(struct model *m, const struct m_job *job, const struct sched_job_row *row)
{
    Ms__JobResults *msg = ms__job_results__unpack(NULL, row->results_bytes, row->results);
    const bool has_begun = row->state == JOB_RUNNING || row->state == JOB_RECOVERING;
    if (msg == NULL || (job->recovery && has_begun && msg->last_step != job->last_step)) {
        sim_fail(m->w, "model: job %llu has its last step at %llu, and step %llu is stored",
                 (ull)job->id, (ull)job->last_step, msg != NULL ? (ull)msg->last_step : 0);
    }
    if (job->state == row->state) {
        judge_home(m, job, msg);
    }
    ms__job_results__free_unpacked(msg, NULL);
}

bool m_evals_are_late(const struct model *m, const struct m_job *job)
{
    return job->unstored_at != SIM_NEVER && m->event->kind == SCHED_EV_TIME &&
           m->mono > m->busy_until && m->mono >= m->no_room_until + LATE_MS &&
           m->mono >= job->unstored_at + MS_EVALS_STORE_MS + LATE_MS;
}

/* ... and shown as long as its ranks are. */
void m_judge_shown(struct model *m, const struct m_job *job, const Ms__JobInfo *info,
                   bool with_evals)
{
    bool shown = job->has_progress && !job->members_dropped;
    if (shown != (info->progress != NULL) || (shown && !is_same(&job->progress, info->progress)) ||
        (shown && with_evals && !are_same(job, info->evals, info->n_evals))) {
        sim_fail(m->w,
                 "model: job %llu, %s after step %llu with %u evaluations, is told with step %llu "
                 "and %zu",
                 (ull)job->id, sched_job_state_name(job->state), (ull)job->progress.step,
                 job->n_evals, info->progress != NULL ? (ull)info->progress->step : 0,
                 info->n_evals);
    }
}

/* What a rank shows while its job is placed, and what it last showed. */
void m_judge_rank_shown(struct model *m, const struct m_job *job, const Ms__RankInfo *info)
{
    const struct m_rank *r = &job->ranks[info->rank];
    if (info->step != r->step || info->pid != r->pid) {
        sim_fail(m->w,
                 "model: rank %u of job %llu is at step %llu in process %u, and is told at step "
                 "%llu in process %u",
                 info->rank, (ull)job->id, (ull)r->step, r->pid, (ull)info->step, info->pid);
    }
}

/* ... which is stored with the end. */
void m_judge_last_shown(struct model *m, const struct sched_member_row *row)
{
    const struct m_job *job = m_job_find(m, row->job);
    if (job == NULL || !job->ended_now || row->rank >= job->n_ranks) {
        return;
    }
    const struct m_rank *r = &job->ranks[row->rank];
    if (row->step != r->step || row->pid != r->pid || row->generation != job->generation) {
        sim_fail(
            m->w,
            "model: rank %u of job %llu ends at step %llu in process %u, and is stored at step "
            "%llu in process %u, generation %llu",
            row->rank, (ull)job->id, (ull)r->step, r->pid, (ull)row->step, row->pid,
            (ull)row->generation);
    }
}
