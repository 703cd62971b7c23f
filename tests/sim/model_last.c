/* model_last.c - the model's jobs behind their last step: who holds its weights, who is to save
 * them, and who is not waited for */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

static bool is_there(const struct m_rank *r)
{
    return !r->vacant && !r->lost && !r->missing;
}

/* No step follows that anybody could be lost for. */
bool m_is_at_end(const struct m_job *job)
{
    return !job->dropped && !job->round_due && !m_stops_at_step(job) &&
           (job->state == JOB_RUNNING || (job->state == JOB_RECOVERING && job->called_off));
}

/* Who has not ended, and was not passed over; -1: some are not there. */
static int n_tardy(const struct m_job *job)
{
    int n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        if (!r->vacant && (!is_there(r) || !(r->done || r->started))) {
            return -1;
        }
        n += !r->vacant && !r->done && !r->passed_over;
    }
    return n;
}

/* No step is behind the one that it holds, and that is what all held. */
static bool holds_last(const struct m_job *job, uint32_t rank)
{
    const struct m_rank *r = &job->ranks[rank];
    const bool is_ready = r->ready && !r->started && !r->done;
    return job->last_step > 0 && job->recovery && m_has_begun(job) && is_there(r) &&
           r->step >= job->last_step && r->step >= job->furthest && (r->has_state || is_ready);
}

static bool says_of_all(const struct m_job *job, uint32_t rank)
{
    return job->ranks[rank].weights[0] != '\0' || (job->called_off && holds_last(job, rank));
}

/* As far as anybody was told of it: a round makes it end anew. */
static bool has_ended(const struct model *m, const struct m_job *job, uint32_t rank)
{
    const struct m_rank *r = &job->ranks[rank];
    const struct m_node *node = m_node_find((struct model *)m, r->node);
    return is_there(r) &&
           (r->done || (r->has_said && node != NULL && node->hold.generation == job->generation));
}

bool m_says_alone(const struct m_job *job, uint32_t rank)
{
    bool says = true;
    for (uint32_t other = 0; other < job->n_ranks; other++) {
        says = says &&
               (other == rank || job->ranks[other].vacant || job->ranks[other].weights[0] == '\0');
    }
    return says;
}

static bool has_done(const struct m_job *job, bool of_all)
{
    bool has = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        has = has || (job->ranks[rank].done && (!of_all || says_of_all(job, rank)));
    }
    return has;
}

/* ... but those that are lost, or passed over. */
bool m_all_are_done(const struct m_job *job)
{
    return m_is_at_end(job) && has_done(job, false) && n_tardy(job) == 0;
}

/* Rank 0 could not, and nobody else has. */
bool m_owes_weights(const struct m_job *job)
{
    return m_all_are_done(job) && (job->unsaved || !job->ranks[0].done) && job->kept[0] == '\0';
}

void m_saver_answered(struct m_job *job, uint32_t rank)
{
    job->ranks[rank].saving = false;
    if (job->late_asked && job->late_saver == rank) {
        job->late_asked = false;
        job->save_again_at = SIM_NEVER;
    }
}

bool m_tardy_is_due(const struct model *m, const struct m_job *job)
{
    return m->event->kind == SCHED_EV_TIME && job->tardy_at != SIM_NEVER &&
           m->mono >= job->tardy_at + m->stretch - job->tardy_stretch;
}

void m_forget_savers(struct m_job *job)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct m_rank *r = &job->ranks[rank];
        r->tried = r->saving = r->passed_over = false;
        r->weights[0] = '\0';
    }
    job->late_asked = job->unsaved = job->called_off = false;
    job->save_again_at = job->tardy_at = job->round_tardy_at = SIM_NEVER;
    job->kept[0] = '\0';
    job->kept_step = 0;
}

static void offer(struct m_job *job)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        job->ranks[rank].tried = job->ranks[rank].tried && !job->ranks[rank].done;
    }
}

void m_offer_savers(struct m_job *job)
{
    job->late_asked = false;
    job->save_again_at = SIM_NEVER;
    offer(job);
}

/* The last step is made, and somebody else has what is to be saved: nobody takes its place. */
bool m_is_end_loss(const struct model *m, const struct m_job *job, uint32_t rank)
{
    if (job->called_off) {
        return m_can_do_without(m, job, rank);
    }
    bool all = m_is_at_end(job) && job->unsaved && m_is_recoverable(m, job);
    bool has_other = job->kept[0] != '\0';
    for (uint32_t other = 0; all && other < job->workers; other++) {
        const struct m_rank *r = &job->ranks[other];
        if (other != rank) {
            all = r->done || r->vacant || r->missing || r->passed_over;
            has_other = has_other || (r->done && !r->vacant && says_of_all(job, other));
        }
    }
    return all && has_other;
}

void m_lost_at_end(struct m_job *job, uint32_t rank)
{
    m_saver_answered(job, rank);
    job->ranks[rank].passed_over = false;
    job->unsaved = job->unsaved || rank == 0;
}

/* The lowest that has not tried and is not at it. */
static uint32_t next_saver(const struct m_job *job)
{
    uint32_t rank = 0;
    while (rank < job->workers &&
           (job->ranks[rank].tried || job->ranks[rank].saving || !job->ranks[rank].done)) {
        rank++;
    }
    return rank;
}

/* Some have ended, and others say nothing: they have some time. */
static bool awaits(const struct model *m, const struct m_job *job)
{
    return m_is_at_end(job) && m_is_recoverable(m, job) && n_tardy(job) > 0 &&
           (job->unsaved || (!job->ranks[0].done && !job->ranks[0].vacant)) && has_done(job, true);
}

static void pass_over(struct m_job *job)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct m_rank *r = &job->ranks[rank];
        r->passed_over = r->passed_over || (!r->done && !r->vacant);
    }
    job->unsaved = job->unsaved || job->ranks[0].passed_over;
}

void m_tardy_time(struct model *m, struct m_job *job)
{
    if (m_tardy_is_due(m, job)) {
        job->tardy_at = SIM_NEVER;
        if (awaits(m, job)) {
            pass_over(job);
        }
    }
}

void m_look_for_tardy(const struct model *m, struct m_job *job)
{
    if (job->tardy_at == SIM_NEVER && awaits(m, job)) {
        job->tardy_at = m->mono + MS_CANCEL_GRACE_MS;
        job->tardy_stretch = m->stretch;
    }
}

static void tell_to_stand(struct model *m, const struct m_job *job, uint32_t rank)
{
    struct m_rank *r = &job->ranks[rank];
    const struct m_node *node = m_node_find(m, r->node);
    if (node != NULL && node->conn != 0) {
        const struct m_stop stop = {.conn = node->conn,
                                    .job = job->id,
                                    .generation = node->hold.generation,
                                    .at_step = true,
                                    .stands = m_no_start_comes(m, job),
                                    .text = "the job ends without who is lost"};
        m_stop_expect(m, stop.conn, &stop);
        r->settled = node->hold.generation != job->generation ? node->hold.generation : 0;
    }
}

/* All that are left have made the last step, and a round would only bring them there again. */
static bool round_is_idle(const struct model *m, const struct m_job *job)
{
    bool newcomer = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        newcomer = newcomer || (is_there(r) && !r->ready && !r->done && !r->has_state);
    }
    return job->state == JOB_RECOVERING && !job->round_due && !job->called_off && !newcomer &&
           !m_stops_at_step(job) && m_can_do_without(m, job, job->workers);
}

static int64_t round_tardy_at(const struct model *m, const struct m_job *job)
{
    return job->round_tardy_at == SIM_NEVER
               ? SIM_NEVER
               : job->round_tardy_at + m->stretch - job->round_tardy_stretch;
}

/* Who hangs in it has had his time. */
static bool round_is_tardy(const struct model *m, const struct m_job *job)
{
    return round_is_idle(m, job) && m->mono >= round_tardy_at(m, job);
}

bool m_round_hangs(const struct model *m, const struct m_job *job)
{
    return m->event->kind == SCHED_EV_TIME && !m->turn_is_full && job->round_was_idle &&
           round_is_tardy(m, job);
}

void m_expect_round(const struct model *m, struct m_job *job)
{
    job->round_tardy_at = m->mono + MS_CANCEL_GRACE_MS;
    job->round_tardy_stretch = m->stretch;
}

void m_watch_round(struct model *m, struct m_job *job)
{
    if (m->event->kind == SCHED_EV_TIME && !m->turn_is_full && m->mono >= round_tardy_at(m, job)) {
        m_expect_round(m, job);
    }
    job->round_was_idle = round_is_idle(m, job);
}

void m_round_moves(const struct model *m, struct m_job *job)
{
    if (job->round_tardy_at != SIM_NEVER) {
        m_expect_round(m, job);
    }
}

static bool may_call_off(const struct model *m, const struct m_job *job)
{
    const bool is_late =
        job->round_due && m->mono >= job->without_at + m->stretch - job->without_stretch;
    return m_can_do_without(m, job, job->workers) &&
           (is_late || m_ready_is_over(m, job, 0) || round_is_tardy(m, job) || job->spent_at_end);
}

/* "job.called_off job=3 ...": one that is left holds what the last step left, and no round comes.
 */
void m_called_off(struct model *m, const char *log)
{
    ull id = 0;
    if (sscanf(log, "job.called_off job=%llu", &id) != 1) {
        return;
    }
    struct m_job *job = m_job_find(m, id);
    if (job == NULL || !may_call_off(m, job)) {
        sim_fail(m->w, "model: job %llu ends without who is lost, and could not yet", id);
        return;
    }
    bool has_one = false;
    const bool had_time = job->state == JOB_RECOVERING &&
                          m->mono >= job->without_at + m->stretch - job->without_stretch;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct m_rank *r = &job->ranks[rank];
        if (!r->done && has_ended(m, job, rank)) {
            r->done = r->started = true;
            r->code = MS_OK;
            r->tried = !r->said_well;
        }
    }
    job->called_off = true;
    job->round_due = job->spent_at_end = false;
    job->round_tardy_at = job->tardy_at = SIM_NEVER;
    m_complaints_forget(job);
    job->changed = job->changed || job->state == JOB_RUNNING;
    job->state = JOB_RECOVERING;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        has_one = has_one || (job->ranks[rank].done && says_of_all(job, rank));
    }
    const bool has_saved = job->ranks[0].done && !job->ranks[0].tried;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct m_rank *r = &job->ranks[rank];
        if (r->vacant || r->done) {
            continue;
        }
        const bool holds = holds_last(job, rank);
        const bool hangs = holds ? r->passed_over : had_time; /* who holds it is told to end now */
        const bool is_needed = !has_saved && holds && !(has_one && hangs);
        if (!is_needed && !r->started) {
            m_vacate(m, job, r, true, MS_OK);
            continue;
        }
        r->has_state = r->has_state || !r->started; /* taken in this round, perhaps */
        r->started = r->ready = true;
        r->passed_over = !is_needed && (hangs || has_saved);
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        if (!r->vacant && !r->done && holds_last(job, rank)) {
            tell_to_stand(m, job, rank);
        }
    }
    const struct m_rank *first = &job->ranks[0];
    const bool will_say = !first->vacant && !first->done && !first->passed_over;
    job->unsaved = job->unsaved || (!will_say && !has_saved);
}

/* Another rank than this one has the weights, or is about to end with them. */
bool m_can_do_without(const struct model *m, const struct m_job *job, uint32_t rank)
{
    bool has = false;
    bool missing = false;
    for (uint32_t other = 0; other < job->workers; other++) {
        missing = missing || (job->ranks[other].missing && other != rank);
        has = has || (other != rank && ((has_ended(m, job, other) && says_of_all(job, other)) ||
                                        holds_last(job, other)));
    }
    return has && !missing && m_is_recoverable(m, job) && !m_stops_at_step(job);
}

static bool saver_to_ask(const struct model *m, const struct m_job *job, uint32_t rank,
                         struct m_stop *ret)
{
    const struct m_node *node = m_node_find((struct model *)m, job->ranks[rank].node);
    if (node == NULL || node->conn == 0) {
        return false;
    }
    *ret = (struct m_stop){.conn = node->conn,
                           .job = job->id,
                           .generation = node->hold.generation,
                           .at_step = true,
                           .saves = true,
                           .stands = m_no_start_comes(m, job),
                           .text = "the weights are not saved"};
    return true;
}

static void ask_for_weights(struct model *m, const struct m_job *job, uint32_t rank)
{
    struct m_stop stop;
    if (saver_to_ask(m, job, rank, &stop)) {
        m_stop_expect(m, stop.conn, &stop);
    }
}

void m_look_for_saver(struct model *m, struct m_job *job)
{
    if (!m_owes_weights(job) || job->save_again_at != SIM_NEVER) {
        return;
    }
    const uint32_t rank = next_saver(job);
    job->late_asked = rank < job->workers;
    job->save_again_at = m->mono + (job->late_asked ? MS_CANCEL_GRACE_MS : MS_SAVE_AGAIN_MS);
    job->save_again_stretch = m->stretch;
    if (job->late_asked) {
        job->late_saver = rank;
        job->ranks[rank].saving = true;
        ask_for_weights(m, job, rank);
    }
}

static bool is_heard(const struct model *m, const struct m_stop *want)
{
    bool is = false;
    for (size_t i = 0; i < m->heard.n; i++) {
        is = is || (m->heard.at[i].conn == want->conn && m->heard.at[i].saves &&
                    m->heard.at[i].job == want->job);
    }
    return is;
}

/* A pause is no shorter for who stood still in it; who is asked may have stood still with us. */
static int64_t save_again_at(const struct model *m, const struct m_job *job)
{
    return job->save_again_at + (job->late_asked ? m->stretch - job->save_again_stretch : 0);
}

/* Whoever was asked has had his time, or all have waited. A turn that is full may leave it to the
 * next one. */
void m_save_time(struct model *m, struct m_job *job)
{
    if (m->event->kind != SCHED_EV_TIME || job->save_again_at == SIM_NEVER ||
        m->mono < save_again_at(m, job) || m_stops_at_step(job)) {
        return;
    }
    struct m_stop stop;
    if (job->late_asked) {
        job->ranks[job->late_saver].tried = true;
    } else {
        offer(job);
    }
    const uint32_t rank = next_saver(job);
    if (sched_tick_is_full(m->w->sched) && m_owes_weights(job) &&
        (rank == job->workers || !saver_to_ask(m, job, rank, &stop) || !is_heard(m, &stop))) {
        return;
    }
    job->late_asked = false;
    job->save_again_at = SIM_NEVER;
}

void m_saver_came_back(struct model *m, struct m_job *job, uint32_t rank)
{
    if (m_stops_at_step(job)) {
        job->late_asked = job->late_asked && job->late_saver != rank;
    } else if (m_is_at_end(job) && job->ranks[rank].saving) {
        ask_for_weights(m, job, rank); /* what it was asked may be lost: once more */
    } else if (job->called_off && job->ranks[rank].started && !job->ranks[rank].done &&
               holds_last(job, rank)) {
        tell_to_stand(m, job, rank);
    }
}
