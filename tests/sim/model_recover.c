/* model_recover.c - the model's recovery: which losses a job outlives, who takes a rank, and what
 * the next generation is told
 *
 *     a rank is lost -> vacant; the job stands still    "job.rank_lost", and no row
 *     all are taken, nobody is missing -> a round       the row, then "job.recovering", then Assign
 *     all are ready, with one state -> RUNNING          "job.recovered" */
#include "tests/sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

enum { LATE_MS = 70 /* timers of the driver are late by 50 */ };

/* Before the first Start a standing cluster places it anew. */
bool m_is_recoverable(const struct model *m, const struct m_job *job)
{
    return job->recovery && (job->state == JOB_RUNNING || job->state == JOB_RECOVERING ||
                             (job->state == JOB_PLACING && m->w->mode != SCHED_STANDING));
}

bool m_has_vacant(const struct m_job *job)
{
    bool has = false;
    for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
        has = has || job->ranks[rank].vacant;
    }
    return has;
}

bool m_recovery_wants_nodes(const struct model *m, bool perhaps)
{
    bool wants = false;
    for (size_t i = 0; i < m->jobs.n; i++) {
        const struct m_job *job = &m->jobs.at[i];
        const int64_t until =
            perhaps ? job->wants_until + m->stretch - job->wants_until_stretch + LATE_MS
                    : job->wants_until;
        const bool in_time =
            m->mono < until ||
            (perhaps && (m->mono <= m->busy_until || m->event->kind != SCHED_EV_TIME));
        wants = wants || (!job->dropped && m_is_placed(job) && job->round_due && in_time &&
                          m_has_vacant(job));
    }
    return wants;
}

/* ---- the budget ---------------------------------------------------------------------------------
 */

/* Losses since the last start were at that step, and those before are made good. */
static void losses_made_good(struct m_job *job)
{
    for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
        struct m_rank *r = &job->ranks[rank];
        if (r->lost_in_round && job->furthest > r->lost_at) {
            r->losses = r->losses_now;
            r->lost_at = job->furthest;
        }
        if (r->lost_in_round && job->furthest > r->wall) {
            r->wall_losses = r->losses_now;
            r->wall = job->furthest;
        }
    }
}

/* Nobody tells of each step: the one before is as good. */
static bool is_at_wall(const struct m_job *job, const struct m_rank *r)
{
    return job->furthest == r->wall || job->furthest + 1 == r->wall;
}

/* All go on at an earlier step, from a checkpoint or from none: what they make anew counts. */
void m_note_way_back(struct m_job *job)
{
    const uint64_t step = job->ranks[0].ready_step;
    bool is_back = step < job->furthest;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        is_back = is_back && job->ranks[rank].ready_step == step;
    }
    for (uint32_t rank = 0; is_back && rank < job->workers; rank++) {
        struct m_rank *r = &job->ranks[rank];
        r->lost_at = r->lost_at < step ? r->lost_at : step;
    }
    job->furthest = is_back ? step : job->furthest;
}

void m_saw_step(struct m_job *job, uint64_t step)
{
    const bool is_late = job->stands && step > job->furthest;
    job->furthest = step > job->furthest ? step : job->furthest;
    m_pairs_made_good(job);
    if (is_late) {
        losses_made_good(job);
    }
}

/* Losses of it since the job made its last step, as far as anybody told. */
static uint32_t in_vain(const struct m_job *job, const struct m_rank *r)
{
    return r->losses > 0 && !r->lost_in_round && job->furthest > r->lost_at ? 0 : r->losses;
}

/* Its process was to take the place of a lost one, and has not trained. */
bool m_is_newcomer(const struct m_job *job, const struct m_rank *r)
{
    return job->stands && !r->has_state;
}

/* Where no other node will come, who cannot serve is as good as one that ends. */
static bool stumbles(const struct model *m, const struct m_job *job, const struct m_rank *r,
                     enum m_fault fault)
{
    return m_is_newcomer(job, r) &&
           (fault == M_LOST || fault == M_GAVE_UP || fault == M_COMPLAINT ||
            (fault == M_UNFIT && m->w->mode != SCHED_STANDING));
}

static bool counts(enum m_fault fault)
{
    return fault == M_LOST || fault == M_GAVE_UP || fault == M_COMPLAINT;
}

static bool is_spent(const struct model *m, const struct m_job *job, const struct m_rank *r,
                     enum m_fault fault, uint32_t missed)
{
    return stumbles(m, job, r, fault)
               ? r->unready - missed >= MS_STUMBLES_MAX
               : counts(fault) && (in_vain(job, r) >= MS_RESTARTS_MAX ||
                                   (is_at_wall(job, r) && r->wall_losses >= MS_RESTARTS_MAX));
}

bool m_is_spent(const struct model *m, const struct m_job *job, const struct m_rank *r,
                enum m_fault fault)
{
    return is_spent(m, job, r, fault, r->missed);
}

bool m_may_be_spent(const struct model *m, const struct m_job *job, const struct m_rank *r,
                    enum m_fault fault)
{
    return is_spent(m, job, r, fault, r->missed_least);
}

/* ---- who could not serve, and who is not reached ------------------------------------------------
 */

static void note_unfit(struct model *m, struct m_job *job, uint64_t incarnation)
{
    job->unfit_at = job->n_unfit == 0 ? m->mono : job->unfit_at;
    job->unfit[job->n_unfit++ % MS_UNFIT_MAX] = incarnation;
}

static bool unfit_are_due(const struct model *m, const struct m_job *job)
{
    return m->event->kind == SCHED_EV_TIME && job->n_unfit > 0 &&
           m->mono >= job->unfit_at + MS_UNFIT_MS;
}

bool m_was_unfit(const struct model *m, const struct m_job *job, uint64_t incarnation)
{
    bool was = false;
    for (uint32_t i = 0; i < job->n_unfit && i < MS_UNFIT_MAX; i++) {
        was = was || job->unfit[i] == incarnation;
    }
    return was && !unfit_are_due(m, job);
}

/* Of two pauses the longer one. */
static void take_pause(const struct model *m, struct m_job *job, int64_t ms)
{
    if (m->mono + ms > job->not_before) {
        job->not_before = m->mono + ms;
        job->not_before_stretch = m->stretch;
    }
    job->stood_at = m->mono;
}

static void wait_at_least(const struct model *m, struct m_job *job, int64_t ms)
{
    if (m->mono + ms > job->again_at) {
        job->again_at = m->mono + ms;
        job->again_stretch = m->stretch;
    }
}

/* Others are asked first, and with pauses. */
static void note_stumble(const struct model *m, struct m_job *job, const struct m_rank *r)
{
    static const int64_t pauses_ms[] = {0, 0, 100, 500, 2000, 5000};
    const size_t last = MS_ARRAY_SIZE(pauses_ms) - 1;
    snprintf(job->stumbled[job->n_stumbled++ % MS_UNFIT_MAX], sizeof(job->stumbled[0]), "%s",
             r->node);
    take_pause(m, job, pauses_ms[r->unready < last ? r->unready : last]);
}

static bool has_stumbled(const struct m_job *job, const struct m_node *node)
{
    bool has = false;
    for (uint32_t i = 0; i < job->n_stumbled && i < MS_UNFIT_MAX; i++) {
        has = has || strcmp(job->stumbled[i], node->id) == 0;
    }
    return has;
}

bool m_may_be_blamed(const struct m_job *job, uint32_t rank)
{
    return rank == job->blamed || rank == job->blamed_by;
}

/* ---- a rank is lost -----------------------------------------------------------------------------
 */

/* Of a rank 0 that nobody heard of since we stood still, or since our start. */
static bool may_have_saved(const struct model *m, const struct m_job *job)
{
    const struct m_rank *r = &job->ranks[0];
    const int64_t stood_until = m->away_until > 0 ? m->away_until - m->lease_ms : 0; /* ever */
    const bool has_told = job->told_at != SIM_NEVER &&
                          job->told_at >= stood_until + m->lease_ms / MS_HEARTBEATS_PER_LEASE;
    return r->unknown || ((r->missing || r->was_missing) && r->has_state && !has_told);
}

void m_vacate(struct model *m, struct m_job *job, struct m_rank *r, bool is_here, int code)
{
    struct m_node *node = m_node_find(m, r->node);
    if (is_here && node != NULL && node->conn != 0 && node->incarnation == r->incarnation) {
        struct m_stop stop = {
            .job = job->id, .generation = node->hold.generation, .code = code, .any_text = true};
        m_stop_expect(m, node->conn, &stop);
        if (r->done || r->has_said) {
            node->hold = (struct m_hold){0};
        }
    }
    if (r == job->ranks && may_have_saved(m, job)) {
        m_home_guess(m, job);
    }
    r->vacant = true;
    r->lost = r->missing = r->refused = r->ready = r->started = r->done = r->stopped = false;
    r->may_lack_plan = r->was_missing = false;
    r->has_plan = r->has_state = r->unknown = r->gives_up = r->leaves = r->complains = r->leaving =
        false;
    r->settled = 0;
    r->has_said = r->saving = r->passed_over = false;
    r->code = MS_OK;
}

void m_complaints_forget(struct m_job *job)
{
    job->blame_at = SIM_NEVER;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        job->ranks[rank].accused = false;
    }
}

static void count(struct m_job *job, struct m_rank *r)
{
    if (job->furthest > r->wall) {
        r->wall_losses = 1;
        r->wall = job->furthest;
    } else if (is_at_wall(job, r)) {
        r->wall_losses++;
    }
    r->losses = in_vain(job, r) + 1;
    r->lost_in_round = true;
    r->lost_at = job->furthest;
    r->losses_now++;
}

static void look_for_missing(struct m_job *job)
{
    bool missing = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        missing = missing || job->ranks[rank].missing;
    }
    job->missing_since = missing ? job->missing_since : SIM_NEVER;
}

void m_stands_still(struct model *m, struct m_job *job)
{
    job->changed = job->changed || job->state == JOB_RUNNING;
    job->state = job->state == JOB_RUNNING ? JOB_RECOVERING : job->state;
    job->round_due = true;
    m_complaints_forget(job);
    if (!job->stands || !job->met_unfit) { /* who cannot serve buys no time */
        job->placed_at = m->mono;
        job->placed_stretch = m->stretch;
    }
    if (!job->stands) {
        job->home_at = m->mono;
        job->home_stretch = m->stretch;
    }
    job->stands = true;
    job->called_off = false;
    job->without_at = m->mono + MS_CANCEL_GRACE_MS;
    job->without_stretch = m->stretch;
    job->wants_until = m->mono + m->lease_ms;
    job->wants_until_stretch = m->stretch;
    m_may_spare_after(m, job);
    look_for_missing(job);
}

/* What befell it, as far as anybody can see; -1: nothing. */
static int fault_of(const struct model *m, const struct m_job *job, uint32_t rank, const char *log)
{
    const bool is_told = strstr(log, ") reports: ") != NULL || /* by another rank */
                         strstr(log, "its host does not reach another one") != NULL;
    const bool is_late = strstr(log, " did not get ready within ") != NULL;
    const struct m_rank *r = &job->ranks[rank];
    const bool leaves = m->event->kind == SCHED_EV_MESSAGE && m->event->type == MS_MSG_LEAVE;
    if (r->vacant) {
        return -1;
    }
    if (is_told) {
        const bool is_blamed =
            job->blame_at != SIM_NEVER && m_may_be_blamed(job, rank) && m_blame_is_due(m, job);
        return m_moves_along(m, job, rank, log)   ? M_BESIDE
               : !is_blamed                       ? -1
               : r->missing                       ? M_MISSING
               : m_is_worn_out(m, job, rank, log) ? M_WORN
                                                  : M_COMPLAINT;
    }
    if (is_late && m_is_unready(m, job, rank) && !m_is_surely_lost(m, r)) {
        return M_UNREADY;
    }
    return m_is_lost(m, r)                          ? (leaves ? M_LEFT : M_LOST)
           : r->missing && m_missing_is_due(m, job) ? M_MISSING
           : r->gives_up                            ? (r->leaves ? M_LEAVING : M_GAVE_UP)
           : m_is_unfit(job, r)                     ? M_UNFIT
           : m_is_unready(m, job, rank)             ? M_UNREADY
           : m_is_silent_to_stop(m, job, rank)      ? M_LOST
           : m_holds_up_stop(m, job, rank)          ? M_UNREADY
                                                    : -1;
}

/* away: its end was not seen. */
static void note_holder(const struct model *m, struct m_rank *r, bool away)
{
    if (r->has_state || r->has_plan) {
        const bool is_claim =
            m->event->kind == SCHED_EV_MESSAGE && m->event->type == MS_MSG_REGISTER;
        snprintf(r->holder, sizeof(r->holder), "%s", away ? r->node : "");
        r->is_cut = m->event->kind != SCHED_EV_TIME && !is_claim;
        r->holder_lost = m->mono;
        r->holder_stretch = m->stretch;
    }
}

/* The job stops: the others do so without it. One that was silent may be there all the same. */
static void lost_while_stopping(struct model *m, struct m_job *job, struct m_rank *r,
                                enum m_fault fault, bool is_silent)
{
    r->is_final = fault == M_UNREADY;
    note_holder(m, r, fault == M_LOST);
    (void)m_former_forget(job, r->incarnation); /* from before it had the rank again */
    m_vacate(m, job, r, is_silent, MS_E_ABORTED);
    m_complaints_forget(job);
    if (job->state == JOB_RUNNING) {
        job->changed = true;
        job->state = JOB_RECOVERING;
        job->placed_at = m->mono;
        job->placed_stretch = m->stretch;
    }
    look_for_missing(job);
    if (!is_silent) {
        m_formers_step_in(m, job);
    }
    bool all_over = true;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        all_over = all_over && m_is_over(&job->ranks[rank]);
    }
    if (is_silent) {
        m_lost_in_grace(m, job);
    } else if (!all_over) {
        job->stop_told = job->stop_told && r->is_back; /* a time of their own for those left */
        m_stop_at_step(m, job, false);
    } else {
        job->stop_told = job->stop_told && r->is_back;
        m_ask_late_saver(m, job); /* who may be the next that is lost at this moment */
    }
}

static bool is_number(const char *id, unsigned long *ret)
{
    *ret = strtoul(id, NULL, 10);
    return id[0] != '\0' && strspn(id, "0123456789") == strlen(id) &&
           (id[0] != '0' || id[1] == '\0');
}

static bool is_rank(const char *id, uint32_t rank)
{
    unsigned long number = 0;
    return is_number(id, &number) && number == rank;
}

/* The node of its number keeps what it holds for the rank, and may have it again. */
static bool may_be_again(const struct m_job *job, uint32_t rank)
{
    bool may = false;
    for (uint32_t i = 0; !may && i < job->n_formers; i++) {
        const struct m_former *former = &job->formers[i];
        may = former->here && former->rank == rank && is_rank(former->node, rank);
    }
    return may;
}

/* Where all ids are ranks, or with formers would be, a number takes its own. */
static bool id_may(const struct model *m, const struct m_job *job, const char *id, uint32_t rank,
                   bool with_formers)
{
    unsigned long number = 0;
    bool are_ranks = m->w->mode != SCHED_STANDING;
    for (uint32_t i = 0; are_ranks && i < job->workers; i++) {
        are_ranks = is_rank(job->ranks[i].node, i) || (with_formers && may_be_again(job, i));
    }
    return !are_ranks || !is_number(id, &number) || number == rank;
}

static bool may_take(const struct model *m, const struct m_job *job, uint32_t rank,
                     const struct m_node *node)
{
    return m_is_idle(node) && m_knows_plans(node) && m_pause_of(m, node) != M_PAUSED &&
           !m_is_kept_for_another(m, job, node, false) && id_may(m, job, node->id, rank, false) &&
           !m_was_unfit(m, job, node->incarnation);
}

/* An idle node that others reach, as far as anybody knows; surely: and whose host is not paused. */
static bool has_untried(const struct model *m, const struct m_job *job, const struct m_rank *r,
                        bool surely)
{
    bool has = false;
    for (size_t i = 0; !has && i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        has = may_take(m, job, (uint32_t)(r - job->ranks), node) &&
              !m_is_cut_off(job, m_machine(node)) && !m_is_unreached(job, node->incarnation) &&
              !has_stumbled(job, node) &&
              (!surely ||
               (m_pause_of(m, node) == M_NOT_PAUSED && !m_is_kept_for_another(m, job, node, true)));
    }
    return has;
}

static void count_loss(struct model *m, struct m_job *job, struct m_rank *r, enum m_fault fault)
{
    r->away = fault == M_LOST;
    note_holder(m, r, r->away);
    r->away_unready = r->away && stumbles(m, job, r, fault);
    if (stumbles(m, job, r, fault)) {
        const bool is_link = fault == M_COMPLAINT;
        const bool is_few = is_link && job->n_pairs < MS_LINKS_MAX; /* more are not known */
        r->missed_before = r->missed;
        r->missed_least_before = r->missed_least;
        r->missed +=
            m_is_home_tried(m, job, r, is_link, true) || (is_few && has_untried(m, job, r, false));
        r->missed_least +=
            m_is_home_tried(m, job, r, is_link, false) || (is_few && has_untried(m, job, r, true));
        r->unready++;
        note_stumble(m, job, r);
    } else if (counts(fault) && !r->away) {
        count(job, r);
    }
}

/* Of a rank that is vacant: does its process keep what it holds? */
static bool is_kept(struct model *m, struct m_job *job, uint32_t rank, enum m_fault fault)
{
    const bool may = fault == M_LOST || fault == M_MISSING || fault == M_UNREADY ||
                     fault == M_COMPLAINT || fault == M_BESIDE;
    return may && m_former_leaves(m, job, rank, fault != M_LOST && fault != M_MISSING);
}

/* "job.rank_lost job=3 generation=7 rank=1 reason=...": it is to be replaced; "job.rank_gone ...":
 * all steps are made, and it is not. */
void m_rank_lost(struct model *m, const char *log)
{
    ull id = 0;
    ull generation = 0;
    unsigned rank = 0;
    if (sscanf(log, "job.rank_%*4[a-z] job=%llu generation=%llu rank=%u", &id, &generation,
               &rank) != 3) {
        return;
    }
    struct m_job *job = m_job_find(m, id);
    if (job == NULL || !m_is_recoverable(m, job) || rank >= job->n_ranks ||
        job->generation != generation) {
        sim_fail(m->w,
                 "model: rank %u of job %llu is given up, and the job is not one that goes on",
                 rank, id);
        return;
    }
    struct m_rank *r = &job->ranks[rank];
    const int fault = fault_of(m, job, rank, log);
    if (fault < 0) {
        sim_fail(m->w, "model: rank %u of job %llu is given up without a cause", rank, id);
        return;
    }
    if (job->lost_told != rank + 1 && !m->refusing) {
        sim_fail(m->w, "model: rank %u of job %llu is given up, and no event says so", rank, id);
    }
    job->lost_told = 0;
    if (m_stops_at_step(job)) {
        const bool is_silent = strstr(log, "it said nothing in the ") != NULL;
        const bool is_late = strstr(log, "it did not get ready in the ") != NULL;
        if ((fault != M_LOST && fault != M_LEFT && fault != M_MISSING && !is_late) ||
            (is_late && !m_holds_up_stop(m, job, rank))) {
            sim_fail(m->w, "model: rank %u of job %llu is given up, and it could stop", rank, id);
        }
        if (is_silent && !m_is_silent_to_stop(m, job, rank)) {
            sim_fail(m->w, "model: rank %u of job %llu is given up for it is silent, and is not",
                     rank, (ull)id);
        }
        lost_while_stopping(m, job, r, (enum m_fault)fault, is_silent || is_late);
        return;
    }
    const struct m_node *node = m_node_find(m, r->node);
    const bool is_gone = strncmp(log, "job.rank_gone ", strlen("job.rank_gone ")) == 0;
    const bool is_spent = m_is_spent(m, job, r, (enum m_fault)fault) ||
                          (fault == M_UNREADY && !m_is_newcomer(job, r));
    const bool is_end_loss = (fault != M_COMPLAINT && m_is_end_loss(m, job, rank)) ||
                             (is_spent && m_can_do_without(m, job, rank));
    if (is_gone != is_end_loss) {
        sim_fail(m->w, "model: rank %u of job %llu is %s, and its job %s", rank, id,
                 is_gone ? "not replaced" : "to be replaced",
                 is_gone ? "goes on" : "has made all its steps");
    }
    if (is_gone) {
        const bool stays = fault == M_COMPLAINT || !m_is_end_loss(m, job, rank);
        job->spent_at_end = job->spent_at_end || stays;
        if (fault == M_LOST && node != NULL && !r->unknown) {
            m_host_lost(m, node, job, r);
        }
        count_loss(m, job, r, (enum m_fault)fault);
        if (strstr(log, " then=again ") == NULL) {
            const bool keeps = is_kept(m, job, rank, (enum m_fault)fault);
            m_vacate(m, job, r, fault != M_MISSING && !r->lost && !keeps, MS_E_ABORTED);
        }
        r->is_final = fault == M_UNFIT || fault == M_UNREADY || fault == M_GAVE_UP ||
                      fault == M_LEAVING || fault == M_WORN;
        m_lost_at_end(job, rank);
        m_complaints_forget(job);
        look_for_missing(job);
        return;
    }
    if (m_is_spent(m, job, r, (enum m_fault)fault)) {
        sim_fail(m->w,
                 "model: rank %u of job %llu is lost for the %u. time at step %llu (%u never were "
                 "ready), and it goes on",
                 rank, id, r->losses + 1, (ull)job->furthest, r->unready);
    }
    if (fault == M_LOST && node != NULL && !r->unknown) {
        m_host_lost(m, node, job, r);
    }
    const bool was_newcomer = m_is_newcomer(job, r);
    const bool stays = strstr(log, " then=again ") != NULL;
    if (stays && fault != M_COMPLAINT) {
        sim_fail(m->w, "model: rank %u of job %llu is lost, and is to try again", rank, id);
    }
    if (fault == M_COMPLAINT || fault == M_WORN) {
        m_judge_link(m, job, rank, !stays);
    }
    count_loss(m, job, r, (enum m_fault)fault);
    if (fault == M_WORN) { /* the next process has tries of its own */
        r->unready = r->missed = r->missed_least = 0;
    }
    r->is_final = fault == M_UNFIT || fault == M_UNREADY || fault == M_GAVE_UP ||
                  fault == M_LEAVING || fault == M_WORN;
    if (fault == M_UNFIT || fault == M_UNREADY || fault == M_WORN) {
        note_unfit(m, job, r->incarnation);
        job->met_unfit = fault != M_UNREADY; /* it had taken all the time that there was */
    }
    if (job->workers >= MS_GATHER_RANKS) {
        wait_at_least(m, job, job->workers / 16);
    }
    const bool tries_on =
        m->w->mode == SCHED_DYNAMIC && (job->blamed == job->blamed_by || !r->has_state);
    if (stays && (m_is_last_copy(job, rank) || tries_on)) {
        static const int64_t pauses_ms[] = {500, 2000, 5000};
        const uint32_t n = in_vain(job, r) > 0 ? in_vain(job, r) : r->unready;
        wait_at_least(m, job, pauses_ms[n == 0 ? 0 : n < 3 ? n - 1 : 2]);
    }
    if (!stays) {
        if (fault == M_COMPLAINT && !m_holds(job, rank)) {
            note_stumble(m, job, r);
        }
        const bool keeps = is_kept(m, job, rank, (enum m_fault)fault);
        m_vacate(m, job, r, fault != M_MISSING && !r->lost && !keeps, MS_E_ABORTED);
    }
    const int64_t without_at = job->without_at;
    const int64_t without_stretch = job->without_stretch;
    m_stands_still(m, job);
    if (was_newcomer) { /* none that ends was lost */
        job->without_at = without_at;
        job->without_stretch = without_stretch;
    } else {
        job->placed_at = job->home_at = m->mono;
        job->placed_stretch = job->home_stretch = m->stretch;
    }
    if (fault == M_UNREADY) { /* its successor has all the time */
        job->placed_at = m->mono;
        job->placed_stretch = m->stretch;
    }
}

/* Told in this order: ranks are lost, the others go on in the next generation, all train again. */
void m_story(struct model *m, const struct sched_event_row *row)
{
    struct m_job *job = row->job != 0 ? m_job_find(m, row->job) : NULL;
    const char *words = strstr(row->text, ": rank ");
    unsigned rank = 0;
    if (strcmp(row->kind, "host.set_aside") == 0) {
        m_judge_set_aside(m);
    }
    if (job == NULL) {
        return;
    }
    if (strcmp(row->kind, "job.rank_lost") == 0 || strcmp(row->kind, "job.rank_gone") == 0) {
        if (words == NULL || sscanf(words, ": rank %u (node", &rank) != 1 || !job->recovery) {
            sim_fail(m->w, "model: event %s of job %llu: %s", row->kind, (ull)job->id, row->text);
        }
        job->lost_told = rank + 1;
    } else if (strcmp(row->kind, "job.recovering") == 0) {
        if (!job->round_now) {
            sim_fail(m->w, "model: job %llu is told to recover, and no round begins", (ull)job->id);
        }
        job->round_told = true;
    } else if (strcmp(row->kind, "job.recovered") == 0) {
        if (job->state != JOB_RECOVERING || job->round_due || m_has_vacant(job)) {
            sim_fail(m->w, "model: job %llu is told to go on, and does not", (ull)job->id);
        }
        job->end_told = true;
    }
}

/* ---- coming back --------------------------------------------------------------------------------
 */

static bool is_process(const struct m_rank *r, const struct m_conn *conn)
{
    return strcmp(r->node, conn->asked.id) == 0 && r->incarnation == conn->asked.incarnation;
}

/* Nobody counts what was none. */
void m_was_away(struct m_rank *r)
{
    if (r->away) {
        r->unready -= r->away_unready;
        r->missed = r->away_unready ? r->missed_before : r->missed;
        r->missed_least = r->away_unready ? r->missed_least_before : r->missed_least;
    }
    r->away = r->away_unready = false;
}

/* Of an older generation: it has not heard of this one, and is there all the same. */
struct m_rank *m_claim_is_older(struct model *m, const struct m_conn *conn)
{
    struct m_job *job = m_job_find(m, conn->claim.job);
    if (job == NULL || !m_is_placed(job) || !job->recovery ||
        conn->claim.generation >= job->generation || conn->claim.rank >= job->workers) {
        return NULL;
    }
    struct m_rank *r = &job->ranks[conn->claim.rank];
    return !r->vacant && !r->lost && is_process(r, conn) ? r : NULL;
}

/* It was given up, and nobody has taken the rank since. */
struct m_rank *m_claim_is_vacant(struct model *m, const struct m_conn *conn)
{
    struct m_job *job = m_job_find(m, conn->claim.job);
    if (job == NULL || !m_is_placed(job) || !m_is_recoverable(m, job) ||
        conn->claim.generation > job->generation || conn->claim.rank >= job->workers) {
        return NULL;
    }
    struct m_rank *r = &job->ranks[conn->claim.rank];
    const bool is_his = strcmp(r->owner, conn->asked.owner) == 0;
    const bool is_old = m_is_at_end(job) && conn->claim.generation != job->generation;
    const bool is_of_use = !m_stops_at_step(job) || ((conn->claim_runs || conn->claim_step > 0) &&
                                                     !m_is_stood_in_for(m, job, conn->claim.rank));
    return r->vacant && !r->is_final && is_process(r, conn) && is_his && is_of_use && !is_old
               ? r
               : NULL;
}

/* ---- a round ------------------------------------------------------------------------------------
 */

/* Its row: the next generation is there before anybody hears of it. */
void m_begin_round(struct model *m, struct m_job *job, const struct sched_job_row *row)
{
    job->rounds++;
    m_forget_savers(job);
    m_expect_round(m, job);
    if (!job->recovery || row->state != job->state || !job->round_due ||
        row->generation <= m->generation || m->draining || m->w->disk.spent ||
        m_formers_are_awaited(m, job, false) || m_saves_at_home(m, job, false) ||
        m_awaits_holder(m, job, false) || m->mono < job->again_at) {
        sim_fail(m->w, "model: job %llu, %s in generation %llu, is assigned anew in %llu",
                 (ull)job->id, sched_job_state_name(job->state), (ull)job->generation,
                 (ull)row->generation);
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct m_rank *r = &job->ranks[rank];
        struct m_node *node = m_node_find(m, r->node);
        if (r->missing || r->lost || (!r->vacant && (node == NULL || node->conn == 0))) {
            sim_fail(m->w, "model: job %llu is assigned anew, and rank %u is not there",
                     (ull)job->id, rank);
        } else if (!r->vacant) {
            node->hold.generation = row->generation;
        }
        r->ready = r->started = r->done = r->stopped = r->complains = r->gives_up = false;
        r->leaves = false;
        r->code = MS_OK;
        r->said_ready = r->has_said = false;
        r->stored = false;
    }
    m->placing = job->id;
    m->generation = row->generation;
    job->awaited_home = m_awaits_home(m, job, false);
    job->needs_home =
        job->home_step > 0 && m->w->mode == SCHED_STANDING && !m_state_is_held(m, job);
    job->has_pause = m->mono < job->not_before;
    for (size_t i = 0; i < m->nodes.n; i++) {
        m->nodes.at[i].cut_off = m_is_cut_off(job, m_machine(&m->nodes.at[i]));
    }
    job->again_at = 0;
    job->round_now = true;
    job->round_due = false;
    if (!job->met_unfit) {
        job->placed_at = m->mono;
        job->placed_stretch = m->stretch;
    }
}

/* Who holds it is written with the round. */
void m_member_stored(struct model *m, const struct sched_member_row *row)
{
    struct m_job *job = m_job_find(m, row->job);
    if (job == NULL || row->rank >= job->n_ranks || !job->round_now) {
        return;
    }
    struct m_rank *r = &job->ranks[row->rank];
    r->stored = row->generation == job->generation;
    snprintf(r->stored_node, sizeof(r->stored_node), "%s", row->node_id);
    r->stored_incarnation = row->incarnation;
}

/* It could have taken the rank, and takes none. */
static bool is_passed_over(const struct model *m, const struct m_job *job, uint32_t rank,
                           const struct m_node *node, const Ms__Assign *msg)
{
    bool is_free = may_take(m, job, rank, node) && !m_is_kept_for_another(m, job, node, true) &&
                   m_pause_of(m, node) == M_NOT_PAUSED && !m_is_aside(m, node, false) &&
                   !unfit_are_due(m, job) && !has_stumbled(job, node);
    for (size_t k = 0; is_free && k < msg->n_members; k++) {
        is_free = strcmp(msg->members[k]->node_id, node->id) != 0;
    }
    return is_free;
}

static bool is_unreached(const struct m_job *job, const struct m_node *node)
{
    return node->cut_off || m_is_unreached(job, node->incarnation);
}

static bool is_near_to(const struct m_rank *r, const struct m_node *node)
{
    return r->machine[0] != '\0' ? strcmp(m_machine(node), r->machine) == 0
                                 : strcmp(node->host_name, r->host) == 0;
}

/* One rank is for who is at home; or that has the rank that it had, and this one whom it was for.
 */
static bool is_for_home(const struct model *m, const struct m_job *job, uint32_t rank,
                        const Ms__Assign *msg)
{
    bool is = false;
    for (uint32_t k = 0; job->needs_home && !is && k < msg->n_members; k++) {
        const struct m_node *node = m_node_find((struct model *)m, msg->members[k]->node_id);
        is = node != NULL && m_is_at_home(job, node) &&
             (k == rank || strcmp(job->ranks[k].node, node->id) == 0);
    }
    return is;
}

/* The node that had it, in another process or not, comes before all others but the job's home. */
static void judge_choice(struct model *m, const struct m_job *job, uint32_t rank,
                         const Ms__Assign *msg)
{
    const struct m_rank *r = &job->ranks[rank];
    const struct m_node *node = m_node_find(m, msg->members[rank]->node_id);
    const struct m_node *own = m_node_find(m, r->node);
    if (job->has_pause && has_stumbled(job, node)) {
        sim_fail(m->w, "model: rank %u of job %llu goes to node %s, which stumbled just now", rank,
                 (ull)job->id, node->id);
    }
    if (!may_take(m, job, rank, node)) {
        sim_fail(m->w, "model: rank %u of job %llu goes to node %s, which may not take it", rank,
                 (ull)job->id, node->id);
    }
    const bool is_home = is_for_home(m, job, rank, msg);
    if (own != NULL && own != node && !is_home && !is_unreached(job, own) &&
        is_passed_over(m, job, rank, own, msg)) {
        sim_fail(m->w, "model: rank %u of job %llu goes to node %s, and its own node %s is idle",
                 rank, (ull)job->id, node->id, own->id);
    }
}

/* A host that is set aside is the last choice, and so is a process that others could not reach;
 * then, one of its host. */
static void judge_aside(struct model *m, const struct m_job *job, uint32_t rank,
                        const Ms__Assign *msg)
{
    const struct m_rank *r = &job->ranks[rank];
    const struct m_node *node = m_node_find(m, msg->members[rank]->node_id);
    const bool is_last =
        m_is_aside(m, node, true) || has_stumbled(job, node) || is_unreached(job, node);
    const bool is_near = m_is_unreached(job, r->incarnation) && strcmp(node->id, r->node) != 0 &&
                         is_near_to(r, node);
    const bool is_home = is_for_home(m, job, rank, msg);
    for (size_t i = 0; (is_last || is_near) && !is_home && i < m->nodes.n; i++) {
        const struct m_node *other = &m->nodes.at[i];
        if (is_passed_over(m, job, rank, other, msg) && !is_unreached(job, other) &&
            (is_last || !is_near_to(r, other))) {
            sim_fail(m->w,
                     "model: rank %u of job %llu goes to node %s, which (or whose host) others did "
                     "not reach, or whose host is set aside, and node %s is idle",
                     rank, (ull)job->id, node->id, other->id);
        }
    }
}

/* It lost the rank, and has kept what it holds: asked first where others reach it, or nobody has
 * that, else last. */
static void judge_former(struct model *m, const struct m_job *job, uint32_t rank,
                         const struct m_former *former, const Ms__Assign *msg)
{
    const bool is_first =
        m_is_missed(job, former) || !is_unreached(job, m_node_find(m, former->node));
    for (size_t i = 0; !is_first && i < m->nodes.n; i++) {
        const struct m_node *other = &m->nodes.at[i];
        if (is_passed_over(m, job, rank, other, msg) && !is_unreached(job, other)) {
            sim_fail(m->w,
                     "model: rank %u of job %llu goes to node %s again, which others do not reach, "
                     "and node %s is idle",
                     rank, (ull)job->id, former->node, other->id);
        }
    }
}

static void take(struct model *m, struct m_job *job, uint32_t rank, struct m_node *node)
{
    struct m_rank *r = &job->ranks[rank];
    const struct m_former *former = m_former_of(m, node);
    if (former != NULL ? former->rank != rank : !m_is_idle(node)) {
        sim_fail(m->w, "model: node %s gets rank %u of job %llu, and another one", node->id, rank,
                 (ull)job->id);
    }
    if (!r->stored || strcmp(r->stored_node, node->id) != 0 ||
        r->stored_incarnation != node->incarnation) {
        sim_fail(m->w, "model: rank %u of job %llu goes to node %s, and that is not stored", rank,
                 (ull)job->id, node->id);
    }
    if (r->away && !r->away_unready) { /* another process has it: now it is known what it was */
        count(job, r);
    }
    r->away = r->away_unready = false;
    if (former != NULL) {
        const struct m_former copy = *former;
        (void)m_former_forget(job, node->incarnation);
        m_former_takes(r, &copy, node);
        r->has_said = false;
        node->hold = (struct m_hold){job->id, job->generation, rank};
        return;
    }
    snprintf(r->node, sizeof(r->node), "%s", node->id);
    memcpy(r->owner, node->owner, sizeof(r->owner));
    memcpy(r->host, node->host_name, sizeof(r->host));
    r->step = r->incarnation == node->incarnation ? r->step : 0; /* of the one before it */
    r->steps = r->incarnation == node->incarnation ? r->steps : 0;
    if (r->incarnation != node->incarnation) {
        r->ready_in = 0;
        job->told_at = rank == 0 ? SIM_NEVER : job->told_at;
    }
    r->incarnation = node->incarnation;
    r->pid = node->pid;
    r->vacant = false;
    snprintf(r->machine, sizeof(r->machine), "%s", m_machine(node));
    (void)m_former_forget(job, node->incarnation);
    node->hold = (struct m_hold){job->id, job->generation, rank};
}

/* Those that had their ranks before, the first first: the others are chosen by whom they reach. */
static void take_formers(struct model *m, struct m_job *job, const Ms__Assign *msg)
{
    for (uint32_t i = 0; i < job->n_formers;) {
        const struct m_former former = job->formers[i++];
        const Ms__Member *member = msg->members[former.rank];
        struct m_node *node = m_node_find(m, former.node);
        if (former.here && job->ranks[former.rank].vacant && node != NULL &&
            strcmp(member->node_id, former.node) == 0 &&
            member->incarnation == former.incarnation) {
            judge_former(m, job, former.rank, &former, msg);
            take(m, job, former.rank, node);
            i = 0;
        }
    }
}

/* The first Assign of it: the members that all ranks hear of. */
void m_judge_round(struct model *m, struct m_job *job, const Ms__Assign *msg)
{
    take_formers(m, job, msg);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        struct m_node *node = m_node_find(m, msg->members[rank]->node_id);
        if (node == NULL || node->conn == 0) {
            sim_fail(m->w, "model: rank %u of job %llu goes to node %s, which is not there", rank,
                     (ull)job->id, msg->members[rank]->node_id);
            return;
        }
        if (m->event->kind == SCHED_EV_TIME && m_is_silent(m, node)) {
            sim_fail(m->w, "model: rank %u of job %llu goes to node %s, whose lease is over", rank,
                     (ull)job->id, node->id);
        }
        m_judge_member_told(m, job, msg->members[rank], rank);
        if (r->vacant) {
            judge_choice(m, job, rank, msg);
            m_judge_home(m, job, msg);
            judge_aside(m, job, rank, msg);
        } else if (strcmp(r->node, node->id) != 0 || r->incarnation != node->incarnation) {
            sim_fail(m->w,
                     "model: rank %u of job %llu is node %s's, and node %s's in generation %llu",
                     rank, (ull)job->id, r->node, node->id, (ull)job->generation);
        }
    }
    for (uint32_t rank = 0; rank < job->workers && !m->w->failed; rank++) {
        if (job->ranks[rank].vacant) {
            take(m, job, rank, m_node_find(m, msg->members[rank]->node_id));
        }
    }
    if (!job->round_told && !m->refusing) {
        sim_fail(m->w, "model: job %llu is assigned anew, and no event says so", (ull)job->id);
    }
}

/* ---- what had to happen -------------------------------------------------------------------------
 */

/* Who kept what he holds is as good as one, where nobody else is about to be idle. */
static bool has_former(const struct model *m, const struct m_job *job, uint32_t rank)
{
    bool has = false;
    for (uint32_t i = 0; i < job->n_formers; i++) {
        has = has || (job->formers[i].here && job->formers[i].rank == rank &&
                      !m_is_worn(m, job, &job->formers[i]));
    }
    return has && m->event->kind == SCHED_EV_TIME && m->mono > m->busy_until &&
           m->mono >= job->not_back + m->stretch - job->not_back_stretch + LATE_MS;
}

/* Whatever it could have chosen among idle nodes: one that may take any of them, for each. */
static bool can_fill(const struct model *m, const struct m_job *job, bool has_pause)
{
    uint32_t vacant = 0;
    uint32_t idle = 0;
    const bool awaits = m_awaits_home(m, job, true);
    bool is_home = false;
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        bool may_all =
            m_is_idle(node) && m_pause_of(m, node) == M_NOT_PAUSED &&
            !m_is_kept_for_another(m, job, node, true) &&
            !(has_pause && (has_stumbled(job, node) || m_is_unreached(job, node->incarnation) ||
                            m_is_cut_off(job, m_machine(node))));
        for (uint32_t rank = 0; may_all && rank < job->workers; rank++) {
            const struct m_rank *r = &job->ranks[rank];
            may_all = !r->vacant ||
                      (may_take(m, job, rank, node) && id_may(m, job, node->id, rank, true));
        }
        idle += may_all;
        is_home = is_home || (may_all && m_is_at_home(job, node));
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        vacant += job->ranks[rank].vacant && (has_pause || !has_former(m, job, rank));
    }
    return idle >= vacant && (!awaits || is_home);
}

/* A full disk may have no room for a large round, or for many in one turn, or for one in a turn
 * that has stored much. */
static bool may_lack_room(const struct model *m)
{
    return m->refusing && (m->w->disk.spent || m->nodes.n > 64 || m->event->kind != SCHED_EV_TIME ||
                           sched_tick_stored(m->w->sched) > MS_STORE_LAST / 4);
}

/* The last one that holds the state has a pause, or had one just now. */
static bool is_about_to_try(const struct model *m, const struct m_job *job)
{
    const int64_t at = job->again_at + m->stretch - job->again_stretch + LATE_MS;
    return job->again_at > 0 &&
           (m->mono < at || m->mono <= m->busy_until || m->event->kind != SCHED_EV_TIME);
}

static const char *round_is_late(const struct model *m, const struct m_job *job)
{
    const int64_t at = job->not_before + m->stretch - job->not_before_stretch + LATE_MS;
    if (m->draining || may_lack_room(m) || m->turn_is_full || !job->round_due || m->fresh ||
        m_formers_are_awaited(m, job, true) || m_saves_at_home(m, job, true) ||
        m_awaits_holder(m, job, true) || is_about_to_try(m, job)) {
        return NULL;
    }
    const bool has_pause = /* it is no pause of nothing */
        job->not_before > job->stood_at &&
        (m->mono < at || m->mono <= m->busy_until || m->event->kind != SCHED_EV_TIME);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        if (job->ranks[rank].missing || job->ranks[rank].lost) {
            return NULL;
        }
    }
    if (m_can_do_without(m, job, job->workers) && !has_pause && m->event->kind == SCHED_EV_TIME &&
        m->mono > m->busy_until && m->mono >= job->not_back + m->stretch - job->not_back_stretch &&
        m->mono > job->without_at + m->stretch - job->without_stretch + LATE_MS) {
        return "its ranks have ended, and wait for who is lost";
    }
    return can_fill(m, job, has_pause)     ? "its ranks could go on, and no round begins"
           : m_keeps_what_it_lacks(m, job) ? "a node keeps its state, and it lacks one"
                                           : NULL;
}

/* One state goes on: where and what it is, all ranks say alike. */
bool m_states_differ(const struct m_job *job)
{
    static const uint8_t none[MS_STATE_DIGEST_LEN];
    bool differ = false;
    for (uint32_t rank = 1; rank < job->workers; rank++) {
        const struct m_rank *a = &job->ranks[0];
        const struct m_rank *b = &job->ranks[rank];
        differ = differ || a->ready_step != b->ready_step ||
                 (memcmp(a->ready_digest, none, sizeof(none)) != 0 &&
                  memcmp(b->ready_digest, none, sizeof(none)) != 0 &&
                  memcmp(a->ready_digest, b->ready_digest, sizeof(none)) != 0);
    }
    return differ;
}

/* All ranks are ready, and train from now on. */
void m_goes_on(struct model *m, struct m_job *job)
{
    if (m_has_vacant(job) || job->round_due) {
        sim_fail(m->w, "model: job %llu runs, and ranks of it are lost", (ull)job->id);
    }
    if (job->stands_for_good) {
        sim_fail(m->w, "model: job %llu runs, and ranks of it were told to stand", (ull)job->id);
    }
    if (m_states_differ(job)) {
        sim_fail(m->w, "model: job %llu runs, and its ranks are at different steps", (ull)job->id);
    }
    if (job->state == JOB_RECOVERING && !job->end_told && !m->refusing) {
        sim_fail(m->w, "model: job %llu goes on, and no event says so", (ull)job->id);
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_node *node = m_node_find(m, job->ranks[rank].node);
        if (node != NULL && node->conn != 0 && !m_knows_plans(node)) {
            sim_fail(m->w, "model: job %llu recovers, and node %s of an old release has rank %u",
                     (ull)job->id, node->id, rank);
        }
    }
    train_check_goes_on(m->w, job->id, job->ranks[0].ready_step);
    m_saw_step(job, job->ranks[0].ready_step);
    losses_made_good(job);
    m_note_way_back(job);
    m_pairs_start(job);
    const struct m_stop stop = {.job = job->id, .code = MS_E_ABORTED, .any_text = true};
    m_formers_stop(m, job, &stop);
    job->stands = job->met_unfit = job->went_on = false;
    job->n_stumbled = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        job->ranks[rank].losses_now = job->ranks[rank].unready = 0;
        job->ranks[rank].missed = job->ranks[rank].missed_least = 0;
        job->ranks[rank].has_state = true;
        job->ranks[rank].lost_in_round = false;
    }
}

void m_judge_recovery_after(struct model *m)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        if (job->dropped || !m_is_placed(job)) {
            continue;
        }
        const bool is_full = sched_tick_is_full(m->w->sched);
        if (unfit_are_due(m, job) && !is_full) {
            job->n_unfit = 0; /* and asked again */
        }
        const char *late = job->recovery ? round_is_late(m, job) : NULL;
        if (late != NULL && !is_full) {
            sim_fail(m->w, "model: job %llu: %s", (ull)job->id, late);
        }
        if (job->lost_told != 0) {
            sim_fail(m->w, "model: job %llu is told to have lost rank %u, and has not",
                     (ull)job->id, job->lost_told - 1);
        }
        job->round_now = job->round_told = job->end_told = false;
    }
}
