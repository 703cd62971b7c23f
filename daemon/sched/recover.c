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

enum trait {
    RECOVERS = 1,
    COUNTS = 2,      /* against the rank: it may be what it computes that ends its process */
    BLAMES_HOST = 4, /* which lost its process, unless that comes back */
    IS_FINAL = 8,    /* its process has ended the rank, or cannot serve it: others do */
    LETS_GO = 16,    /* its process says so, or has to: it holds nothing any more */
    AGAIN = 32,      /* nobody gives way: all try again */
    IS_OWN = 64,     /* word of the process about itself */
    OF_LINKS = 128,  /* between ranks: it may be nothing that the rank computes */
};

static const unsigned traits[FAULTS] = {
    [FAULT_LOST] = RECOVERS | COUNTS | BLAMES_HOST,
    [FAULT_LEFT] = RECOVERS | LETS_GO | IS_OWN,
    [FAULT_MISSING] = RECOVERS,
    [FAULT_LEAVING] = RECOVERS | IS_FINAL | LETS_GO | IS_OWN,
    [FAULT_GAVE_UP] = RECOVERS | COUNTS | IS_FINAL | LETS_GO | IS_OWN,
    [FAULT_SHORT] = IS_FINAL | LETS_GO | IS_OWN,
    [FAULT_UNFIT] = RECOVERS | IS_FINAL | LETS_GO | IS_OWN,
    [FAULT_UNREADY] = RECOVERS | IS_FINAL,
    [FAULT_COMPLAINT] = RECOVERS | COUNTS | AGAIN | OF_LINKS,
    [FAULT_LINK] = RECOVERS | COUNTS | OF_LINKS,
    [FAULT_BESIDE] = RECOVERS,
    [FAULT_MESH] = RECOVERS | COUNTS | AGAIN | IS_OWN | OF_LINKS,
    [FAULT_OFF_MESH] = RECOVERS | COUNTS | IS_OWN | OF_LINKS,
    [FAULT_WORN] = RECOVERS | IS_FINAL | LETS_GO | IS_OWN,
};

static bool has(enum fault fault, enum trait trait)
{
    return (traits[fault] & trait) != 0;
}

bool recover_is_on(const struct sched *s, const struct job *job)
{
    /* a standing cluster places a job anew that has not begun, perhaps on other nodes */
    return job->recovery &&
           (job_has_begun(job) || (job->state == JOB_PLACING && !s->mode->places_anew));
}

bool recover_is_of_links(enum fault fault)
{
    return has(fault, OF_LINKS);
}

bool recover_is_own_link(enum fault fault)
{
    return has(fault, OF_LINKS) && has(fault, IS_OWN);
}

bool recover_counts(enum fault fault)
{
    return has(fault, COUNTS);
}

bool recover_is_loss(enum fault fault)
{
    return has(fault, RECOVERS);
}

/* Its process was to take the place of a lost one, and never came so far. */
static bool is_newcomer(const struct job *job, uint32_t rank)
{
    const struct member *member = &job->run->members[rank];
    return job->run->stands_still && !member->has_state &&
           (member->state == RANK_PREPARING || member->state == RANK_READY ||
            member->state == RANK_LOST || member->state == RANK_FAILED);
}

/* What of it is spent by this loss: a process more that ended before it was ready, or that the
 * others did not reach ... */
static bool stumbles(const struct sched *s, const struct job *job, uint32_t rank, enum fault fault)
{
    return is_newcomer(job, rank) &&
           (fault == FAULT_LOST || fault == FAULT_GAVE_UP || has(fault, OF_LINKS) ||
            (fault == FAULT_UNFIT && !s->mode->places_anew));
}

bool recover_is_stumbled_out(const struct run *run, uint32_t rank)
{
    const struct mend *mend = run->mends != NULL ? &run->mends[rank] : NULL;
    return mend != NULL && mend->n_unready - mend->n_missed >= MS_STUMBLES_MAX;
}

bool recover_may(struct sched *s, const struct job *job, uint32_t rank, enum fault fault)
{
    if (!has(fault, RECOVERS) || !recover_is_on(s, job)) {
        return false;
    }
    if (fault == FAULT_UNREADY) { /* who holds the state and does not get on is no newcomer */
        return job->state == JOB_RECOVERING && is_newcomer(job, rank) &&
               job->run->members[rank].state == RANK_PREPARING;
    }
    if (stumbles(s, job, rank, fault)) {
        return !recover_is_stumbled_out(job->run, rank);
    }
    return !has(fault, COUNTS) || budget_spent(job->run, rank) == NULL;
}

/* ---- a rank is lost -----------------------------------------------------------------------------
 */

static void count_loss(struct sched *s, struct run *run, uint32_t rank, enum fault fault,
                       const char *text)
{
    struct mend *mend = run_mend(run, rank);
    budget_keep(run, rank);
    mend->before.may_be_away = has(fault, BLAMES_HOST);
    if (run->members[rank].has_state || run->members[rank].has_plan) {
        const struct node *node = node_find(s, run->members[rank].node_id);
        mend->holder.may_live = has(fault, BLAMES_HOST);
        mend->holder.is_cut = node != NULL && node->notice == NOTICE_CLOSED;
        mend->holder.lost_ms = s->now.mono_ms;
        ms_text_copy(mend->holder.node_id, sizeof(mend->holder.node_id),
                     run->members[rank].node_id);
    }
    mend->is_over = has(fault, IS_FINAL);
    free(mend->last);
    mend->last = dup_text(text);
    run->n_ranks_lost++;
    if (stumbles(s, run->job, rank, fault)) {
        /* of those on other hosts that says nothing; how many they are is bounded */
        const bool is_link = has(fault, OF_LINKS);
        const bool is_missed =
            home_is_tried(s, run, rank, is_link) ||
            (is_link && run->n_links < MS_LINKS_MAX && vacant_has_untried(s, run, rank));
        mend->n_missed += is_missed;
        mend->n_unready++;
        vacant_note_stumble(s, run, rank);
        return;
    }
    if (fault == FAULT_WORN) { /* the next process has tries of its own */
        mend->n_unready = mend->n_missed = 0;
    }
    if (has(fault, COUNTS)) {
        budget_count(run, rank, fault, text);
    }
}

bool recover_may_live(const struct sched *s, const struct mend *mend)
{
    const struct node *node = mend->holder.may_live ? node_find(s, mend->holder.node_id) : NULL;
    return mend->holder.may_live && (node == NULL || node->conn == NULL);
}

uint32_t recover_awaited(const struct sched *s, const struct run *run, int64_t *ret_until_ms)
{
    const int64_t bound_ms = ready_bound_ms(s);
    const int64_t wait_ms =
        bound_ms >= 0 && bound_ms / 2 < s->cfg.lease_ms ? bound_ms / 2 : s->cfg.lease_ms;
    const bool may =
        s->mode->places_anew && run->mends != NULL && !run_is_held_beside(run, MS_WORKERS_MAX);
    uint32_t last = MS_WORKERS_MAX;
    *ret_until_ms = s->now.mono_ms;
    for (uint32_t rank = 0; may && rank < run->job->workers; rank++) {
        const int64_t until_ms = run->mends[rank].holder.lost_ms + wait_ms;
        if (until_ms > *ret_until_ms && recover_may_live(s, &run->mends[rank])) {
            *ret_until_ms = until_ms;
            last = rank;
        }
    }
    return last;
}

/* At the next time from which on it may begin, or others may have the idle nodes. */
static void arm_round(struct sched *s, struct run *run)
{
    int64_t awaited_ms = 0;
    (void)recover_awaited(s, run, &awaited_ms);
    const int64_t times_ms[] = {run->again_ms,
                                run->stumbled_until_ms,
                                run->not_back_ms,
                                run->formers_until_ms,
                                run->wants_until_ms,
                                run->spare_ms,
                                run->lost_ms + MS_CANCEL_GRACE_MS,
                                awaited_ms,
                                home_until_ms(s, run)};
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < MS_ARRAY_SIZE(times_ms); i++) {
        const bool is_next = times_ms[i] > s->now.mono_ms && times_ms[i] < next_ms;
        next_ms = is_next ? times_ms[i] : next_ms;
    }
    if (next_ms < INT64_MAX) {
        timer_arm(s, &run->round, TIMER_ROUND, next_ms);
    }
}

void recover_round_timeout(struct sched *s, struct run *run)
{
    s->due |= DUE_PLACE;
    if (!list_empty(&run->recovering)) {
        arm_round(s, run);
    }
}

/* The job stands still from now on, if it did not before; for a newcomer, who held nothing of it,
 * no time begins anew in which it may end without who is lost. */
static void stand_still(struct sched *s, struct job *job, bool was_there, bool was_newcomer,
                        const char *text)
{
    struct run *run = job->run;
    const int64_t since_ms = stall_since_ms(s, run, was_there);
    /* of one that held the state; who cannot serve buys no time */
    const bool is_loss = text[0] != '\0' && !was_newcomer;
    const bool stood_still = run->stands_still;
    const bool is_timed = stood_still && run->met_unfit && !is_loss;
    complaint_forget(s, run);
    if (job->state == JOB_RUNNING) {
        job_set(s, job, JOB_ON_LOSS, text, "");
    }
    if (!stood_still || since_ms < run->still_ms) {
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
    run->spare_ms = after_ms(s, MS_FORMER_SPARE_MS);
    run->lost_ms = was_newcomer ? run->lost_ms : s->now.mono_ms;
    run->home_ms = is_loss || !stood_still ? s->now.mono_ms : run->home_ms;
    run->called_off = false;
    arm_round(s, run);
    s->due |= DUE_PLACE;
    watch_stir(s, job);
    watch_news(s);
}

/* Nobody has it any more. What its process holds it keeps, unless it lets go of it: by a Stop of
 * that code. */
static void vacate(struct sched *s, struct job *job, uint32_t rank, bool lets_go, int code,
                   const char *text)
{
    struct member *member = &job->run->members[rank];
    const bool said_done = rank_is_over(member) && member->state != RANK_LOST;
    const bool is_kept = !lets_go && former_leaves(s, job->run, rank);
    home_loses(s, job->run, rank);
    if (member->state != RANK_LOST) {
        rank_set(job->run, rank, RANK_ON_LOSS);
    }
    member->has_plan = member->may_lack_plan = false;
    member->has_state = member->unheard = member->may_save = false;
    member->saving = member->passed_over = false;
    if (!is_kept) {
        rank_release(s, job, rank, said_done, code, text, text);
    }
}

void recover_vacate(struct sched *s, struct job *job, uint32_t rank, int code, const char *text)
{
    run_mend(job->run, rank)->before.may_be_away = false; /* who was has lost it to this one */
    vacate(s, job, rank, true, code, text);
}

static void vacate_for(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                       const char *text)
{
    if (fault == FAULT_UNFIT || fault == FAULT_UNREADY || fault == FAULT_WORN) {
        vacant_note_unfit(s, job->run, job->run->members[rank].incarnation);
        job->run->met_unfit = fault != FAULT_UNREADY; /* which took all the time that there was */
    }
    if ((fault == FAULT_LINK || fault == FAULT_OFF_MESH) && !run_holds_state(job->run, rank) &&
        !stumbles(s, job, rank, fault)) { /* else it is noted */
        vacant_note_stumble(s, job->run, rank);
    }
    vacate(s, job, rank, has(fault, LETS_GO), MS_E_ABORTED, text);
}

/* How long its end may have been there to be seen; -1: not known, or it said it itself. */
static int64_t silence_before(const struct sched *s, const struct job *job, uint32_t rank,
                              enum fault fault)
{
    const struct node *node = node_find(s, job->run->members[rank].node_id);
    return has(fault, IS_OWN) || node == NULL ? -1 : node_silent_ms(s, node);
}

static void tell_loss(struct sched *s, const struct job *job, uint32_t rank, enum fault fault,
                      bool at_end, const char *text)
{
    const unsigned long long step = job->run->furthest;
    const int64_t silent_ms = silence_before(s, job, rank, fault);
    char told[64] = "no step was told since the scheduler started";
    char silence[64] = "";
    if (at_end) {
        snprintf(told, sizeof(told), "all steps are made, nobody takes its place");
    } else if (step > 0) {
        snprintf(told, sizeof(told), "step %llu was told last", step);
    }
    if (silent_ms >= 0) {
        snprintf(silence, sizeof(silence), ", its node was last heard of %lld ms before",
                 (long long)silent_ms);
    }
    const char *kind = at_end ? "job.rank_gone" : "job.rank_lost";
    event_of_job(s, kind, job,
                 text_behind(s,
                             emit_text(s, "generation %llu, %s%s: ",
                                       (unsigned long long)job->generation, told, silence),
                             text),
                 recover_loss_facts(s, job, rank, fault, silent_ms));
    emit_log(s, MS_LOG_WARNING, "%s job=%llu generation=%llu rank=%u then=%s reason=%s", kind,
             (unsigned long long)job->id, (unsigned long long)job->generation, rank,
             has(fault, AGAIN) ? "again"
             : at_end          ? "over"
                               : "vacant",
             emit_quote(s, text));
}

static void wait_at_least(struct sched *s, struct run *run, int64_t ms)
{
    const int64_t until_ms = after_ms(s, ms);
    run->again_ms = until_ms > run->again_ms ? until_ms : run->again_ms;
}

/* What it is short of may be there again soon, and its tries are few. */
static void pause_tries(struct sched *s, struct run *run, uint32_t rank)
{
    static const int64_t pauses_ms[MS_RESTARTS_MAX] = {500, 2000, 5000};
    const uint32_t in_vain = budget_in_vain(run, rank);
    const uint32_t n = in_vain > 0 ? in_vain : run_mend(run, rank)->n_unready;
    const uint32_t last = MS_RESTARTS_MAX - 1;
    wait_at_least(s, run, pauses_ms[n == 0 ? 0 : n - 1 < last ? n - 1 : last]);
}

/* The ends of connections of a rack that fails come one by one, and each round tells all ranks. */
static void gather_losses(struct sched *s, struct run *run)
{
    if (run->job->workers >= MS_GATHER_RANKS) {
        wait_at_least(s, run, run->job->workers / 16);
    }
}

static void note_loss(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                      bool at_end, const char *text)
{
    const struct member *member = &job->run->members[rank];
    const struct node *node = node_find(s, member->node_id);
    count_loss(s, job->run, rank, fault, text);
    /* what ended a process while we were down nobody saw: it may have been told to leave */
    if (has(fault, BLAMES_HOST) && !member->unheard && node != NULL && node->host != NULL) {
        host_blame(s, node->host, job, rank, text);
    }
    tell_loss(s, job, rank, fault, at_end, text);
}

void recover_lose(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                  const char *text)
{
    struct run *run = job->run;
    const bool was_there = !run->members[rank].unheard;
    const bool was_newcomer = is_newcomer(job, rank);
    text = emit_text(s, "%s", text); /* it may live in what goes */
    note_loss(s, job, rank, fault, false, text);
    gather_losses(s, run);
    if (!has(fault, AGAIN)) {
        vacate_for(s, job, rank, fault, text);
    } else if (run_is_last_copy(run, rank) ||
               (s->mode->by_hand && (fault == FAULT_MESH || !run->members[rank].has_state))) {
        pause_tries(s, run, rank);
    }
    /* after it: nobody may be missing any more */
    stand_still(s, job, was_there, was_newcomer, text);
}

bool recover_stops(const struct sched *s, const struct job *job, enum fault fault)
{
    return has(fault, RECOVERS) && recover_is_on(s, job) && job->run->n_in[RANK_FAILED] == 0;
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
    complaint_forget(s, run);
    if (has(fault, AGAIN)) { /* whom it is about holds like the others, and stops */
        return;
    }
    count_loss(s, run, rank, fault, text);
    tell_loss(s, job, rank, fault, false, text);
    vacate_for(s, job, rank, fault, text);
    /* the others, and who saves now, have their time from now on: not again for one that is lost
     * again and again, for each of them would wait for ever */
    run->stop_is_out = run->stop_is_out && run_mend(run, rank)->is_back;
    recover_stand_stopping(s, job, text);
    if (run->n_in[RANK_MISSING] == 0) {
        timer_stop(s, &run->adopt);
    }
    watch_stir(s, job);
}

enum end_loss recover_end_loss(struct sched *s, const struct job *job, uint32_t rank,
                               enum fault fault)
{
    if (!has(fault, RECOVERS) || !recover_is_on(s, job)) {
        return END_LOSS_NONE;
    }
    if (!has(fault, AGAIN) && calloff_goes_on_without(job->run, rank)) {
        return END_LOSS_GOES_ON;
    }
    const bool is_spent = !recover_may(s, job, rank, fault);
    return is_spent && calloff_may(job->run, rank) ? END_LOSS_CALLS_OFF : END_LOSS_NONE;
}

void recover_lose_at_end(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                         enum end_loss how, const char *text)
{
    struct run *run = job->run;
    text = emit_text(s, "%s", text); /* it may live in what goes */
    note_loss(s, job, rank, fault, true, text);
    complaint_forget(s, run);
    if (!has(fault, AGAIN)) {
        vacate_for(s, job, rank, fault, text);
    }
    if (run->n_in[RANK_MISSING] == 0) {
        timer_stop(s, &run->adopt);
    }
    watch_stir(s, job);
    if (how == END_LOSS_GOES_ON) { /* last: the job may end */
        save_lost(s, run, rank);
    } else {
        calloff_begin(s, job);
    }
}

void recover_again(struct sched *s, struct run *run)
{
    stand_still(s, run->job, false, false, "");
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
    save_forget(s, run);
    job->generation = ++s->generation;
    emit_put_meta(s, "generation", s->generation);
    emit_put_job(s, job, false);
    facts = recover_round_facts(s, job); /* before all are assigned: who is new is LOST yet */
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct member *member = &run->members[rank];
        member->hold->generation = job->generation;
        member->hold->heard = 0;
        member->hold->has_said = false;
        member->weights_sha256[0] = '\0'; /* it ends anew, if it had */
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
    calloff_watch_round(s, run);
    if (run_assign(s, job) && (job->plan == NULL || run_tell_plan(s, job))) {
        watch_stir(s, job);
    }
}

/* A round of a few ranks has the room of what ends need on a full disk: its rows take the place of
 * others. A large one waits for space. */
bool recover_has_disk(const struct sched *s, const struct run *run)
{
    const size_t cost =
        recover_n_vacant(run) * MS_STORE_MEMBER_COST((size_t)MS_STORE_MEMBER_TEXTS) +
        MS_STORE_COST(run->job->spec_bytes + MS_STORE_RESULTS) + MS_STORE_PAGE;
    return s->refusal[0] == '\0' || (!s->refuses_ends && cost <= MS_STORE_LAST / 2);
}

void recover_expect(struct sched *s)
{
    for (struct list *at = s->recovering.next; at != &s->recovering; at = at->next) {
        ready_expect(s, list_item(at, struct run, recovering));
    }
}

/* Of these no more in a turn than the room that was seen. */
static bool is_next_turns(const struct sched *s)
{
    return s->refusal[0] != '\0' && s->store_bytes > MS_STORE_LAST / 4;
}

bool recover_settle(struct sched *s)
{
    if (s->draining || !generations_left(s)) {
        return false;
    }
    bool began = false;
    int64_t until_ms = 0;
    struct list *at = s->recovering.next;
    (void)home_mark(s);
    while (at != &s->recovering && !sched_tick_is_full(s)) {
        struct run *run = list_item(at, struct run, recovering);
        struct job *job = run->job;
        at = at->next;
        if (!all_hear(run) || formers_are_awaited(s, run) || s->now.mono_ms < run->again_ms ||
            home_is_saving(s, run) || !recover_has_disk(s, run)) {
            continue;
        }
        if (recover_awaited(s, run, &until_ms) < MS_WORKERS_MAX) {
            arm_round(s, run);
            continue;
        }
        if (is_next_turns(s)) {
            timer_arm(s, &run->round, TIMER_ROUND, s->now.mono_ms);
            continue;
        }
        formers_choose(s, job);
        if (recover_n_vacant(run) > 0 && !vacant_fill(s, job)) {
            if (s->now.mono_ms >= run->lost_ms + MS_CANCEL_GRACE_MS &&
                calloff_may(run, job->workers)) {
                calloff_begin(s, job);
                (void)home_mark(s); /* nodes are idle again */
                at = s->recovering.next;
                continue;
            }
            arm_round(s, run);
            continue;
        }
        begin_round(s, job);
        (void)home_mark(s);
        began = true;
        at = s->recovering.next; /* a job that ended may have taken others along */
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

/* Where no rank holds what was told of last: a rank that does is one step behind at the most. */
static bool goes_back(struct run *run)
{
    const struct mend *first = run_mend(run, 0);
    const uint64_t step = first->state.step;
    const uint64_t told = first->state.told > run->furthest ? first->state.told : run->furthest;
    const bool is_back = told > (first->state.from == MS_STATE_CHECKPOINT ? step : step + 1);
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
    run->went_on_from = run_mend(run, 0)->state.step;
    run->recovering_ms += (uint64_t)how.still_ms;
    run->recovering_least |= how.is_least;
    run->stands_still = false;
    *ret_facts = recover_state_facts(s, job, &how);
    return recover_state_words(s, job, &how);
}
