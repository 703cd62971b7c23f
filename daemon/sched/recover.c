/* recover.c - a rank was lost, and its job goes on
 *
 *     a rank is lost     -> it is vacant: LOST, on no node. Nothing is stored or sent: a restart
 *                           finds out the same way, and the others notice by themselves
 *     all are taken,     -> a round: the next generation is durable with its members, and every
 *     nobody is missing     rank is assigned anew
 *     all are ready      -> RUNNING, Start (report.c)
 *
 * All vacant ranks of a job are filled together (vacant.c), so that two jobs do not wait for each
 * other's nodes. A loss within a round makes the next one. */
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- may it? ------------------------------------------------------------------------------------
 */

static const struct {
    bool recovers;
    bool counts;      /* against the rank: it may be what it computes that ends its process */
    bool blames_host; /* which lost its process, unless that comes back with the rank */
    bool keeps_node;  /* the first time: that the others reach it is tried once more */
    bool is_final;    /* its process has ended the rank, or cannot serve it: others do */
    bool is_own;      /* word of the process about itself */
} faults[FAULTS] = {
    [FAULT_LOST] = {true, true, true, false, false, false},
    [FAULT_LEFT] = {true, false, false, false, false, true},
    [FAULT_MISSING] = {true, false, false, false, false, false},
    [FAULT_LEAVING] = {true, false, false, false, true, true},
    [FAULT_GAVE_UP] = {true, true, false, false, true, true},
    [FAULT_UNFIT] = {true, false, false, false, true, true},
    [FAULT_UNREADY] = {true, false, false, false, true, false},
    [FAULT_COMPLAINT] = {true, true, false, true, false, false},
    [FAULT_MESH] = {true, true, false, true, false, true},
};

bool recover_is_on(const struct sched *s, const struct job *job)
{
    /* a standing cluster places a job anew that has not begun, perhaps on other nodes */
    const bool has_begun = job->state == JOB_RUNNING || job->state == JOB_RECOVERING;
    return job->recovery && (has_begun || (job->state == JOB_PLACING && !s->mode->places_anew));
}

bool recover_is_loss(enum fault fault)
{
    return faults[fault].recovers;
}

/* Its process was to take the place of a lost one, and never came so far. */
static bool is_newcomer(const struct job *job, uint32_t rank)
{
    const struct member *member = &job->run->members[rank];
    return job->run->stands_still && !member->has_state &&
           (member->state == RANK_PREPARING || member->state == RANK_READY ||
            member->state == RANK_LOST || member->state == RANK_FAILED);
}

/* What of it is spent by this loss: a process more that ended before it was ready ... */
static bool stumbles(const struct sched *s, const struct job *job, uint32_t rank, enum fault fault)
{
    return is_newcomer(job, rank) && (fault == FAULT_LOST || fault == FAULT_GAVE_UP ||
                                      (fault == FAULT_UNFIT && !s->mode->places_anew));
}

static uint32_t n_unready(const struct run *run, uint32_t rank)
{
    return run->mends != NULL ? run->mends[rank].n_unready : 0;
}

bool recover_may(struct sched *s, const struct job *job, uint32_t rank, enum fault fault)
{
    if (!faults[fault].recovers || !recover_is_on(s, job)) {
        return false;
    }
    if (fault == FAULT_UNREADY) { /* who holds the state and does not get on is no newcomer */
        return job->state == JOB_RECOVERING && is_newcomer(job, rank) &&
               job->run->members[rank].state == RANK_PREPARING;
    }
    if (stumbles(s, job, rank, fault)) {
        return n_unready(job->run, rank) < MS_STUMBLES_MAX;
    }
    return !faults[fault].counts || budget_spent(job->run, rank) == NULL;
}

/* ---- a rank is lost -----------------------------------------------------------------------------
 */

static void count_loss(struct sched *s, struct run *run, uint32_t rank, enum fault fault,
                       const char *text)
{
    struct mend *mend = run_mend(run, rank);
    budget_keep(run, rank);
    mend->before.may_be_away = faults[fault].blames_host;
    mend->before.blame = 0;
    mend->is_over = faults[fault].is_final;
    free(mend->last);
    mend->last = dup_text(text);
    run->n_ranks_lost++;
    if (stumbles(s, run->job, rank, fault)) {
        mend->n_unready++;
        vacant_note_stumble(s, run, rank);
        return;
    }
    if (!faults[fault].counts) {
        return;
    }
    budget_count(run, rank, fault, text);
}

static void forget_complaint(struct sched *s, struct run *run)
{
    timer_stop(s, &run->complaint.timer);
    run->complaint.made = false;
}

static void arm_round(struct sched *s, struct run *run)
{
    const int64_t pause_ms = run->not_before_ms;
    const int64_t wants_ms = run->wants_until_ms;
    const bool is_pause = pause_ms > s->now.mono_ms && /* it may outlast the lease */
                          (wants_ms <= s->now.mono_ms || pause_ms < wants_ms);
    const int64_t next_ms = is_pause ? pause_ms : wants_ms;
    if (next_ms > s->now.mono_ms) {
        timer_arm(s, &run->round, TIMER_ROUND, next_ms);
    }
}

void recover_pause(struct sched *s, struct run *run, int64_t ms)
{
    const int64_t until_ms = after_ms(s, ms);
    run->not_before_ms = until_ms > run->not_before_ms ? until_ms : run->not_before_ms;
}

void recover_round_timeout(struct sched *s, struct run *run)
{
    s->due |= DUE_PLACE;
    if (!list_empty(&run->recovering)) {
        arm_round(s, run);
    }
}

/* The job stands still from now on, if it did not before. */
static void stand_still(struct sched *s, struct job *job, bool was_there, const char *text)
{
    struct run *run = job->run;
    const int64_t since_ms = stall_since_ms(s, run, was_there);
    const bool is_timed = run->stands_still && run->met_unfit; /* who cannot serve buys no time */
    forget_complaint(s, run);
    if (job->state == JOB_RUNNING) {
        job_set(s, job, JOB_ON_LOSS, text, "");
    }
    if (!run->stands_still || since_ms < run->still_ms) {
        run->still_ms = since_ms;
    }
    run->stands_still = true;
    if (list_empty(&run->recovering)) {
        list_add_tail(&s->recovering, &run->recovering);
    }
    if (run->n_in[RANK_MISSING] == 0) {
        timer_stop(s, &run->adopt);
    }
    if (!is_timed || !timer_is_armed(&run->ready)) {
        ready_expect(s, run);
    }
    run->wants_until_ms = after_ms(s, s->cfg.lease_ms);
    arm_round(s, run);
    s->due |= DUE_PLACE;
    watch_stir(s, job);
    watch_news(s);
}

/* It and another rank do not reach each other, and its process lives. */
static bool is_of_its_mesh(enum fault fault)
{
    return fault == FAULT_COMPLAINT || fault == FAULT_MESH;
}

/* Nobody has it any more. */
static void vacate(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                   const char *text)
{
    struct member *member = &job->run->members[rank];
    const bool said_done = rank_is_over(member) && member->state != RANK_LOST;
    if (fault == FAULT_UNFIT || fault == FAULT_UNREADY) {
        vacant_note_unfit(s, job->run, member->incarnation);
    }
    if (is_of_its_mesh(fault) && !member->has_state) {
        vacant_note_stumble(s, job->run, rank);
    }
    if (is_of_its_mesh(fault)) {
        run_mend(job->run, rank)->unreached = member->incarnation;
    }
    if (member->state != RANK_LOST) {
        rank_set(job->run, rank, RANK_ON_LOSS);
    }
    member->has_plan = member->has_state = false;
    rank_release(s, job, rank, said_done, MS_E_ABORTED, text, text);
}

/* How long its end may have been there to be seen; -1: not known, or it said it itself. */
static int64_t silence_before(const struct sched *s, const struct job *job, uint32_t rank,
                              enum fault fault)
{
    const struct node *node = node_find(s, job->run->members[rank].node_id);
    return faults[fault].is_own || node == NULL ? -1 : node_silent_ms(s, node);
}

static void tell_loss(struct sched *s, const struct job *job, uint32_t rank, enum fault fault,
                      const char *text)
{
    const unsigned long long step = job->run->furthest;
    const int64_t silent_ms = silence_before(s, job, rank, fault);
    char told[64] = "no step was told since the scheduler started";
    char silence[64] = "";
    if (step > 0) {
        snprintf(told, sizeof(told), "step %llu was told last", step);
    }
    if (silent_ms >= 0) {
        snprintf(silence, sizeof(silence), ", its node was last heard of %lld ms before",
                 (long long)silent_ms);
    }
    event_of_job(s, "job.rank_lost", job,
                 emit_text(s, "generation %llu, %s%s: %.300s", (unsigned long long)job->generation,
                           told, silence, text),
                 recover_loss_facts(s, job, rank, fault, silent_ms));
    emit_log(s, MS_LOG_WARNING, "job.rank_lost job=%llu generation=%llu rank=%u reason=%s",
             (unsigned long long)job->id, (unsigned long long)job->generation, rank,
             emit_quote(s, text));
}

/* No other process holds the state: it is not let go of while there are tries left. */
static bool is_last_copy(const struct run *run, uint32_t rank)
{
    bool is_last = run->members[rank].has_state;
    for (uint32_t i = 0; is_last && i < run->job->workers; i++) {
        is_last = i == rank || !run->members[i].has_state;
    }
    return is_last;
}

/* What it is short of may be there again soon, and its tries are few. */
static void pause_last_copy(struct sched *s, struct run *run, uint32_t rank)
{
    static const int64_t pauses_ms[MS_RESTARTS_MAX] = {500, 2000, 5000};
    const uint32_t n = budget_in_vain(run, rank);
    recover_pause(s, run, pauses_ms[(n > 0 && n <= MS_RESTARTS_MAX ? n : MS_RESTARTS_MAX) - 1]);
}

void recover_lose(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                  const char *text)
{
    struct run *run = job->run;
    const bool tries_again = faults[fault].keeps_node &&
                             (budget_in_vain(run, rank) == 0 || is_last_copy(run, rank)) &&
                             !run_mend(run, rank)->must_move;
    const bool was_there = !run->members[rank].unheard;
    run_mend(run, rank)->must_move = false;
    const struct node *node = node_find(s, run->members[rank].node_id);
    text = emit_text(s, "%s", text); /* it may live in what goes */
    count_loss(s, run, rank, fault, text);
    if (faults[fault].blames_host && node != NULL && node->host != NULL) {
        run_mend(run, rank)->before.blame = host_blame(s, node->host, text);
    }
    tell_loss(s, job, rank, fault, text);
    if (!tries_again) {
        vacate(s, job, rank, fault, text);
    } else if (is_last_copy(run, rank)) {
        pause_last_copy(s, run, rank);
    }
    stand_still(s, job, was_there, text); /* after it: nobody may be missing any more */
}

bool recover_stops(const struct sched *s, const struct job *job, enum fault fault)
{
    return faults[fault].recovers && recover_is_on(s, job) && job->run->n_in[RANK_FAILED] == 0;
}

void recover_stand_stopping(struct sched *s, struct job *job, const char *text)
{
    if (job->state == JOB_RUNNING) {
        job_set(s, job, JOB_ON_LOSS, text, "");
        ready_expect(s, job->run);
    }
}

void recover_lose_stopping(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                           const char *text)
{
    struct run *run = job->run;
    text = emit_text(s, "%s", text); /* it may live in what goes */
    forget_complaint(s, run);
    if (is_of_its_mesh(fault)) { /* whom it is about holds like the others, and stops */
        return;
    }
    count_loss(s, run, rank, fault, text);
    tell_loss(s, job, rank, fault, text);
    vacate(s, job, rank, fault, text);
    run->stop_is_out = false; /* the others, and who saves now, have their time from now on */
    recover_stand_stopping(s, job, text);
    if (run->n_in[RANK_MISSING] == 0) {
        timer_stop(s, &run->adopt);
    }
    watch_stir(s, job);
}

void recover_again(struct sched *s, struct run *run)
{
    stand_still(s, run->job, false, "");
}

/* A link has two ends. Who holds the state does not give way to who has none. Else the one that is
 * complained of tries again, and moves; if the same rank does not reach the next one either, it
 * moves itself. */
uint32_t recover_blames(struct sched *s, struct run *run, uint32_t rank, uint32_t by,
                        const char **text)
{
    if (by == rank || !recover_is_on(s, run->job)) {
        return rank;
    }
    if (run->members[rank].has_state && !run->members[by].has_state) {
        run_mend(run, by)->must_move = true;
        *text = rank_text(s, run->job, by, "was given up",
                          emit_text(s, "it does not reach rank %u, which holds the state: %.150s",
                                    rank, causes_bare(s, *text)));
        return by;
    }
    struct mend *mend = run_mend(run, rank);
    const bool again = budget_in_vain(run, rank) > 0 && mend->unreached != 0 &&
                       mend->unreached_by == by + 1 &&
                       mend->unreached != run->members[rank].incarnation;
    mend->unreached_by = by + 1;
    if (!again) {
        return rank;
    }
    mend->unreached = 0;
    run_mend(run, by)->must_move = true;
    *text = rank_text(s, run->job, by, "was given up",
                      emit_text(s, "it reaches rank %u on none of two nodes: %.150s", rank,
                                causes_bare(s, *text)));
    return by;
}

/* ---- a round ------------------------------------------------------------------------------------
 */

/* All ranks that are somebody's hear us. */
static bool all_hear(const struct run *run)
{
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        const struct hold *hold = run->members[rank].hold;
        if (hold != NULL && hold->node->conn == NULL) {
            return false;
        }
    }
    return true;
}

static const char *new_words(struct sched *s, const struct job *job)
{
    const char *words = "";
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct member *member = &job->run->members[rank];
        if (member->state == RANK_LOST) {
            words =
                emit_text(s, "%s%srank %u is node %s's on %.60s", words,
                          words[0] != '\0' ? ", " : "", rank, member->node_id, member->host_name);
        }
    }
    return words[0] != '\0' ? words : "the same nodes try again";
}

static void begin_round(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    const char *who = new_words(s, job);
    const char *facts = NULL;
    list_remove(&run->recovering);
    job->generation = ++s->generation;
    emit_put_meta(s, "generation", s->generation);
    emit_put_job(s, job, false);
    facts = recover_round_facts(s, job); /* before all are assigned: who is new is LOST yet */
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct member *member = &run->members[rank];
        member->hold->generation = job->generation;
        member->hold->heard = 0;
        member->hold->has_said = false;
        if (member->state == RANK_LOST) {
            emit_put_member(s, job, rank);
        }
        rank_set(run, rank, RANK_ON_ASSIGN);
    }
    event_of_job(s, "job.recovering", job,
                 emit_text(s, "generation %llu: %s", (unsigned long long)job->generation, who),
                 facts);
    emit_log(s, MS_LOG_NOTICE, "job.recovering job=%llu generation=%llu ranks=%s",
             (unsigned long long)job->id, (unsigned long long)job->generation, emit_quote(s, who));
    if (!run->met_unfit ||
        !timer_is_armed(&run->ready)) { /* else who could not serve would buy time */
        ready_expect(s, run);
    }
    if (run_assign(s, job) && (job->plan == NULL || run_tell_plan(s, job))) {
        watch_stir(s, job);
    }
}

bool recover_settle(struct sched *s)
{
    if (s->draining || s->refusal[0] != '\0' || !generations_left(s)) {
        return false;
    }
    bool began = false;
    struct list *at = s->recovering.next;
    while (at != &s->recovering && !sched_tick_is_full(s)) {
        struct run *run = list_item(at, struct run, recovering);
        struct job *job = run->job;
        at = at->next;
        if (run->not_before_ms <= s->now.mono_ms && all_hear(run) &&
            (recover_n_vacant(run) == 0 || vacant_fill(s, job))) {
            begin_round(s, job);
            began = true;
            at = s->recovering.next; /* a job that ended may have taken others along */
        }
    }
    return began;
}

bool recover_wants_nodes(const struct sched *s)
{
    for (const struct list *at = s->recovering.next; at != &s->recovering; at = at->next) {
        const struct run *run = list_item(at, struct run, recovering);
        const bool wants = timer_is_armed(&run->round) && /* until it was looked at, too */
                           run->round.at_ms <= run->wants_until_ms;
        if (wants && recover_n_vacant(run) > 0) {
            return true;
        }
    }
    return false;
}

/* ---- it goes on ---------------------------------------------------------------------------------
 */

/* Where no rank holds what was told of last: a rank that does is one step behind at the most. Of
 * ranks that train for themselves each has its own. */
static bool goes_back(struct run *run)
{
    const struct mend *first = run_mend(run, 0);
    const uint64_t step = first->state.step;
    const uint64_t told = first->state.told > run->furthest ? first->state.told : run->furthest;
    const bool is_back =
        !run_is_apart(run) && told > (first->state.from == MS_STATE_CHECKPOINT ? step : step + 1);
    if (is_back) {
        run->again_from = step + 1;
        run->again_to = told;
    }
    return is_back;
}

const char *recover_end(struct sched *s, struct job *job, const char **ret_facts)
{
    struct run *run = job->run;
    struct recovered how = {.is_back = run->stands_still && goes_back(run),
                            .is_least = run->stall.is_least};
    budget_start(run);
    stall_is_over(run);
    if (!run->stands_still) {
        return NULL;
    }
    how.still_ms = s->now.mono_ms - run->still_ms;
    run->n_stumbled = 0;
    run->met_unfit = false;
    timer_stop(s, &run->round);
    run->n_recoveries++;
    run->recovering_ms += (uint64_t)how.still_ms;
    run->recovering_least |= how.is_least;
    run->stands_still = false;
    *ret_facts = recover_state_facts(s, job, &how);
    return recover_state_words(s, job, &how);
}
