/* former.c - processes whose rank another one has, and that may still hold the state */
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list: whose rank was taken first ------------------------------------------------------
 */

static void drop(struct run *run, const struct former *former)
{
    const size_t i = (size_t)(former - run->formers);
    if (former->hold != NULL) {
        former->hold->keeps = NULL;
    }
    memmove(&run->formers[i], &run->formers[i + 1], (--run->n_formers - i) * sizeof(*run->formers));
}

/* Its incarnation alone is in every Assign, and anybody may use it. */
static bool is_process(const struct former *former, const char *node_id, const char *principal,
                       uint64_t incarnation)
{
    return former->incarnation == incarnation && strcmp(former->node_id, node_id) == 0 &&
           strcmp(former->principal, principal) == 0;
}

static bool forget(struct run *run, const char *node_id, const char *principal,
                   uint64_t incarnation)
{
    bool was_ready = false;
    for (uint32_t i = run->n_formers; i > 0; i--) {
        const struct former *former = &run->formers[i - 1];
        if (is_process(former, node_id, principal, incarnation)) {
            was_ready = was_ready || former->was_ready;
            drop(run, former);
        }
    }
    return was_ready;
}

bool former_forget(struct run *run, const struct node *node)
{
    return forget(run, node->info.node_id, node->info.principal, node->info.incarnation);
}

/* NULL: there are too many. Those that are not here go first. */
static struct former *add(struct run *run)
{
    const uint32_t most = run->job->workers + MS_FORMERS_MORE;
    if (run->formers == NULL) {
        run->formers = memory_take(most * sizeof(*run->formers));
    }
    uint32_t i = 0;
    while (i < run->n_formers && run->formers[i].hold != NULL) {
        i++;
    }
    if (run->n_formers == most && i < run->n_formers) {
        drop(run, &run->formers[i]);
    }
    if (run->n_formers == most) {
        return NULL;
    }
    struct former *former = &run->formers[run->n_formers++];
    *former = (struct former){.hold = NULL};
    return former;
}

static struct former *find(const struct run *run, uint32_t rank, const struct node_info *info)
{
    for (uint32_t i = 0; i < run->n_formers; i++) {
        struct former *former = &run->formers[i];
        if (former->rank == rank &&
            is_process(former, info->node_id, info->principal, info->incarnation)) {
            return former;
        }
    }
    return NULL;
}

bool former_was(const struct run *run, uint32_t rank, const struct node_info *info)
{
    return find(run, rank, info) != NULL;
}

bool former_is(const struct run *run, const struct hold *hold)
{
    bool is = false;
    for (uint32_t i = 0; !is && i < run->n_formers; i++) {
        is = run->formers[i].hold == hold;
    }
    return is;
}

uint32_t formers_here(const struct run *run)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_formers; i++) {
        n += run->formers[i].hold != NULL;
    }
    return n;
}

bool run_is_held_beside(const struct run *run, uint32_t rank)
{
    bool is = formers_here(run) > 0;
    for (uint32_t i = 0; !is && i < run->job->workers; i++) {
        is = i != rank && run_holds_state(run, i);
    }
    return is;
}

bool run_is_last_copy(const struct run *run, uint32_t rank)
{
    return run_holds_state(run, rank) && !run_is_held_beside(run, rank);
}

/* ---- coming and going --------------------------------------------------------------------------
 */

/* It knows no newer generation, and would not obey. */
static void keep(struct run *run, struct former *former, struct hold *hold)
{
    hold_settle(hold);
    hold->keeps = run;
    former->hold = hold;
}

bool former_leaves(struct sched *s, struct run *run, uint32_t rank)
{
    struct member *member = &run->members[rank];
    const bool may_hold = member->has_state || member->has_plan || member->unheard;
    (void)forget(run, member->node_id, member->principal, member->incarnation);
    struct former *former =
        may_hold && !run->cancelling && run->job->state != JOB_PLACING ? add(run) : NULL;
    if (former == NULL) {
        return false;
    }
    former->rank = rank;
    former->incarnation = member->incarnation;
    former->step = member->step;
    former->has_state = member->has_state;
    former->was_ready = member->has_state || member->has_plan;
    ms_text_copy(former->node_id, sizeof(former->node_id), member->node_id);
    ms_text_copy(former->principal, sizeof(former->principal), member->principal);
    struct hold *hold = member->hold;
    if (hold == NULL || hold->node->conn == NULL) {
        return false;
    }
    hold->has_said |= rank_is_over(member) && member->state != RANK_LOST;
    hold_unbind(hold);
    keep(run, former, hold);
    emit_log(s, MS_LOG_NOTICE,
             "job.state_kept job=%llu rank=%u node=%s: until another process has the rank",
             (unsigned long long)run->job->id, rank, emit_quote(s, former->node_id));
    return true;
}

void former_gone(struct sched *s, struct hold *hold)
{
    struct run *run = hold->keeps;
    hold->keeps = NULL;
    if (run != NULL) {
        run->home_ms = s->now.mono_ms; /* it may have been the last one that held the state */
    }
    for (uint32_t i = 0; run != NULL && i < run->n_formers; i++) {
        if (run->formers[i].hold == hold) {
            run->formers[i].hold = NULL;
        }
    }
}

static bool rank_holds(const struct run *run, uint32_t rank, uint64_t furthest)
{
    const struct member *member = &run->members[rank];
    return run_holds_state(run, rank) && (member->has_state || member->step + 1 >= furthest);
}

static bool former_holds(const struct former *former, uint64_t furthest)
{
    return former->has_state || former->step + 1 >= furthest;
}

/* Those that trained are one step apart at the most, whatever was told of it; who was only ready
 * may have begun anew. */
static uint64_t furthest_of(const struct run *run, const struct former *former)
{
    return former->step > run->furthest ? former->step : run->furthest;
}

static bool is_held_by_rank(const struct run *run, const struct former *former)
{
    const uint64_t furthest = furthest_of(run, former);
    bool is = false;
    for (uint32_t rank = 0; !is && rank < run->job->workers; rank++) {
        is = rank_holds(run, rank, furthest);
    }
    return is;
}

/* By a rank, or by who is to have one. */
static bool is_held(const struct run *run, const struct former *former)
{
    const uint64_t furthest = furthest_of(run, former);
    bool is = is_held_by_rank(run, former);
    for (uint32_t i = 0; !is && i < run->n_formers; i++) {
        const struct former *other = &run->formers[i];
        is = other->is_chosen && former_holds(other, furthest);
    }
    return is;
}

static bool is_missed(const struct run *run, const struct former *former)
{
    return run->n_in[RANK_MISSING] == 0 && !is_held(run, former);
}

bool former_comes(struct sched *s, struct node *node, const struct claim *claim)
{
    struct job *job = job_find(s, claim->job);
    if (job == NULL || job->state != JOB_RECOVERING || claim->generation > job->generation) {
        return false;
    }
    struct run *run = job->run;
    struct former *former = find(run, claim->rank, &node->info);
    const bool may_come = former != NULL && (former->hold != NULL || list_empty(&node->holds)) &&
                          (former->was_ready || claim_has_state(claim));
    if (!may_come) {
        return false;
    }
    former->step = claim->step > former->step ? claim->step : former->step;
    former->has_state |= claim_has_state(claim);
    recover_saw_step(s, run, claim->step);
    if (former->hold == NULL) {
        keep(run, former, hold_add(s, node, job->id, claim->generation, claim->rank));
    }
    former->hold->step = claim->step;
    emit_log(s, MS_LOG_NOTICE, "job.state_kept job=%llu rank=%u node=%s: it came back with it",
             (unsigned long long)job->id, claim->rank, emit_quote(s, node->info.node_id));
    watch_stir(s, job);
    if (run->cancelling) {
        stop_look(s, job);
    } else if (list_empty(&run->recovering) && is_missed(run, former)) {
        recover_again(s, run);
    }
    s->due |= DUE_PLACE; /* a round may have waited for it */
    return true;
}

/* ---- its rank, again ---------------------------------------------------------------------------
 */

static bool is_vacant(const struct run *run, uint32_t rank)
{
    return run->members[rank].hold == NULL;
}

/* Others reach it, as far as they said; of two that do not reach each other the older one does. */
static bool is_welcome(const struct run *run, const struct former *former)
{
    const bool is_cut_off = former->hold != NULL && links_cut_off(run, former->hold->node->machine);
    return !is_cut_off && !links_are_bad(run, former->incarnation) &&
           !vacant_is_unfit(run, former->incarnation);
}

static bool may_have(const struct run *run, const struct former *former)
{
    return former->hold != NULL && (is_welcome(run, former) || is_missed(run, former));
}

static void displace(struct sched *s, struct job *job, const struct former *former)
{
    struct run *run = job->run;
    const uint32_t rank = former->rank;
    const char *node_id = run->members[rank].node_id;
    emit_log(s, MS_LOG_NOTICE,
             "job.rank_yields job=%llu rank=%u node=%s to=%s: which holds what it lacks",
             (unsigned long long)job->id, rank, emit_quote(s, node_id),
             emit_quote(s, former->node_id));
    run->not_back_ms = after_ms(s, MS_FORMER_WAIT_MS);
    recover_vacate(s, job, rank, MS_E_ABORTED,
                   emit_text(s, "node %s has rank %u of job %llu again, with all that it holds",
                             former->node_id, rank, (unsigned long long)job->id));
}

/* In the order in which they lost their ranks: of two that do not reach each other the first does.
 */
void formers_choose(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    for (uint32_t i = 0; i < run->n_formers; i++) {
        struct former *former = &run->formers[i];
        const bool is_needed = !run_holds_state(run, former->rank) || is_missed(run, former);
        if (!is_needed || former_chosen(run, former->rank) != NULL || !may_have(run, former)) {
            continue;
        }
        if (!is_vacant(run, former->rank)) {
            displace(s, job, former);
        }
        former->is_chosen = true;
    }
}

struct former *former_chosen(const struct run *run, uint32_t rank)
{
    for (uint32_t i = 0; i < run->n_formers; i++) {
        if (run->formers[i].rank == rank && run->formers[i].is_chosen) {
            return &run->formers[i];
        }
    }
    return NULL;
}

bool former_is_chosen(const struct run *run, uint64_t process)
{
    bool is = false;
    for (uint32_t i = 0; !is && i < run->n_formers; i++) {
        is = run->formers[i].is_chosen && run->formers[i].incarnation == process;
    }
    return is;
}

void formers_unchoose(struct run *run)
{
    for (uint32_t i = 0; i < run->n_formers; i++) {
        run->formers[i].is_chosen = false;
    }
}

/* It begins anew, with more of what it lacked; but where that is its end nobody starts it again,
 * and who is only to have a rank may be gone before it has. */
static bool is_worn(const struct sched *s, const struct run *run, const struct former *former)
{
    return !s->mode->by_hand && links_are_bad_of_itself(run, former->incarnation) &&
           is_held_by_rank(run, former);
}

static struct former *who_may_again(const struct sched *s, struct run *run, uint32_t rank)
{
    for (uint32_t i = 0; i < run->n_formers; i++) {
        struct former *former = &run->formers[i];
        if (former->rank == rank && former->hold != NULL && !is_worn(s, run, former)) {
            return former;
        }
    }
    return NULL;
}

struct former *former_choose_again(const struct sched *s, struct run *run, uint32_t rank)
{
    struct former *former = who_may_again(s, run, rank);
    if (former != NULL) {
        former->is_chosen = true;
    }
    return former;
}

void former_give(struct sched *s, struct run *run, struct former *former)
{
    struct hold *hold = former->hold;
    struct member *member = &run->members[former->rank];
    const uint64_t known = hold->generation;
    const uint64_t step = former->step;
    const bool has_state = former->has_state;
    drop(run, former);
    run_take(run, hold->rank, hold->node);
    hold_bind(hold, run->job);
    hold->generation = run->job->generation;
    hold->heard = known != run->job->generation ? known : 0;
    member->has_state = has_state;
    member->has_plan = member->may_lack_plan =
        !has_state; /* it was ready, and may have begun anew */
    member->step = step;
    emit_log(s, MS_LOG_NOTICE, "job.rank_back job=%llu rank=%u node=%s: with all that it holds",
             (unsigned long long)run->job->id, hold->rank, emit_quote(s, member->node_id));
}

bool formers_are_awaited(const struct sched *s, const struct run *run)
{
    bool are = false;
    for (uint32_t i = 0; !are && i < run->n_formers; i++) {
        const struct former *former = &run->formers[i];
        are = former->is_awaited && former->hold == NULL && !is_held(run, former);
    }
    return are && s->now.mono_ms < run->formers_until_ms && formers_here(run) == 0;
}

void formers_expect(struct run *run, int64_t until_ms)
{
    for (uint32_t i = 0; i < run->n_formers; i++) {
        run->formers[i].is_awaited = true;
    }
    run->formers_until_ms = until_ms;
}

void formers_stretch(struct sched *s, int64_t ms)
{
    for (struct list *at = s->placed.next; at != &s->placed; at = at->next) {
        struct run *run = list_item(at, struct job, lane)->run;
        run->formers_until_ms += ms;
        run->wants_until_ms += ms;
        run->spare_ms += ms;
        run->lost_ms += ms;
        run->home_ms += ms;
        run->back_ms += ms;
        for (uint32_t rank = 0; run->mends != NULL && rank < run->job->workers; rank++) {
            run->mends[rank].holder.lost_ms += ms;
        }
    }
}

void formers_note(struct sched *s, const struct node *node)
{
    for (struct list *at = s->placed.next; at != &s->placed; at = at->next) {
        struct run *run = list_item(at, struct job, lane)->run;
        for (uint32_t i = 0; i < run->n_formers; i++) {
            struct former *former = &run->formers[i];
            if (former->is_awaited && strcmp(former->node_id, node->info.node_id) == 0) {
                former->is_awaited = false;
                s->due |= DUE_PLACE;
            }
        }
    }
}

/* ---- the end -----------------------------------------------------------------------------------
 */

static void let_go(struct sched *s, struct run *run, const struct former *former, int code,
                   const char *text)
{
    struct hold *hold = former->hold;
    drop(run, former);
    run->home_ms = s->now.mono_ms; /* likewise */
    hold_let_go(s, hold);
    send_stop(s, hold->node, hold->job_id, hold->generation, code, text);
    if (hold->has_said) {
        hold_drop(s, hold);
    }
}

void former_said(struct sched *s, struct hold *hold, const Ms__RankDone *msg)
{
    struct run *run = hold->keeps;
    hold->has_said = true;
    last_note_done(run, hold->node, msg);
    if (last_is_made(hold->node, msg)) { /* it is done, and keeps it until it hears Stop */
        return;
    }
    const struct former *former = run->formers;
    while (former->hold != hold) {
        former++;
    }
    let_go(s, run, former, MS_E_ABORTED, "it had lost its rank to another process");
}

/* How many others hold what it does, as ranks or kept like it. */
static uint32_t n_others(const struct run *run, const struct former *former)
{
    const uint64_t furthest = furthest_of(run, former);
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        n += rank_holds(run, rank, furthest);
    }
    for (uint32_t i = 0; i < run->n_formers; i++) {
        const struct former *other = &run->formers[i];
        n += other != former && other->hold != NULL && !other->is_spared &&
             former_holds(other, furthest);
    }
    return n;
}

static bool may_be_spared(const struct sched *s, struct run *run, struct former *former)
{
    const bool has_way_back =
        is_vacant(run, former->rank) && who_may_again(s, run, former->rank) == former;
    const bool is_late = s->now.mono_ms >= run->wants_until_ms;
    return former->hold != NULL && !former->is_chosen && !has_way_back && is_held(run, former) &&
           n_others(run, former) >= (is_late || is_worn(s, run, former) ? 1 : 2);
}

static uint32_t n_lacking(struct sched *s, struct run *run)
{
    const uint32_t n_vacant = recover_n_vacant(run);
    uint32_t n_there = vacant_n_fit(s, run);
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        n_there += is_vacant(run, rank) && who_may_again(s, run, rank) != NULL;
    }
    return n_vacant > n_there ? n_vacant - n_there : 1; /* some take no rank but their own */
}

/* Whoever lets go for a job that cannot run all the same has done so for nothing. */
static bool spare_enough(struct sched *s, struct run *run)
{
    uint32_t lacking = n_lacking(s, run);
    for (uint32_t i = run->n_formers; i > 0 && lacking > 0; i--) {
        struct former *former = &run->formers[i - 1];
        former->is_spared = may_be_spared(s, run, former);
        lacking -= former->is_spared;
    }
    return lacking == 0;
}

static void spare(struct sched *s, struct run *run, const struct former *former, const char *text)
{
    emit_log(s, MS_LOG_NOTICE, "job.state_let_go job=%llu rank=%u node=%s: for the job lacks it",
             (unsigned long long)run->job->id, former->rank, emit_quote(s, former->node_id));
    let_go(s, run, former, MS_E_ABORTED, text);
    run->spare_ms = after_ms(s, MS_FORMER_SPARE_MS); /* until it is idle, or gone */
}

void formers_spare(struct sched *s, struct run *run)
{
    if (run->n_formers == 0 || s->mode->by_hand || s->now.mono_ms < run->spare_ms ||
        run->n_in[RANK_MISSING] > 0) {
        return;
    }
    const char *text = emit_text(
        s, "job %llu lacks a node, and others hold its state: this one may take a rank anew",
        (unsigned long long)run->job->id);
    const bool is_enough = spare_enough(s, run);
    for (uint32_t i = run->n_formers; i > 0; i--) {
        struct former *former = &run->formers[i - 1];
        const bool goes = former->is_spared && is_enough;
        former->is_spared = false;
        if (goes) {
            spare(s, run, former, text);
        }
    }
}

/* Another process has its rank, or is to have it again before. */
static bool is_behind_another(const struct run *run, const struct former *former)
{
    bool is = former->hold != NULL && !is_vacant(run, former->rank);
    for (const struct former *first = run->formers; former->hold != NULL && !is; first++) {
        if (first == former) {
            return false;
        }
        is = first->hold != NULL && first->rank == former->rank;
    }
    return is;
}

bool formers_yield(struct sched *s)
{
    for (struct list *at = s->recovering.next; at != &s->recovering; at = at->next) {
        struct run *run = list_item(at, struct run, recovering);
        const bool may = s->now.mono_ms >= run->spare_ms && run->n_in[RANK_MISSING] == 0;
        for (uint32_t i = run->n_formers; may && i > 0; i--) {
            const struct former *former = &run->formers[i - 1];
            if (is_behind_another(run, former) && n_others(run, former) > 0) {
                spare(s, run, former, "its job lacks a node, which may take its place");
                return true;
            }
        }
    }
    return false;
}

void formers_release(struct sched *s, struct run *run, int code, const char *text)
{
    while (run->n_formers > 0) {
        const struct former *last = &run->formers[run->n_formers - 1];
        if (last->hold != NULL) {
            let_go(s, run, last, code, text);
        } else {
            drop(run, last);
        }
    }
}

/* ---- cancelled meanwhile -----------------------------------------------------------------------
 */

void formers_step_in(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    for (uint32_t i = 0; i < run->n_formers;) {
        struct former *former = &run->formers[i];
        const uint32_t rank = former->rank;
        i++;
        if (former->hold == NULL || !is_missed(run, former)) {
            continue;
        }
        if (!is_vacant(run, rank)) {
            recover_vacate(s, job, rank, MS_E_ABORTED, job->run->cancel_text);
        }
        former_give(s, run, former);
        emit_put_member(s, job, rank); /* a restart has to know whose word it takes */
        rank_set(run, rank, RANK_ON_ASSIGN);
        i = 0;
    }
}

/* ---- words -------------------------------------------------------------------------------------
 */

const char *formers_words(struct sched *s, const struct run *run)
{
    const char *words = "";
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_formers; i++) {
        const struct former *former = &run->formers[i];
        if (former->hold != NULL && n++ == 0) {
            words = emit_text(s, "; node %s keeps the state of rank %u until then", former->node_id,
                              former->rank);
        }
    }
    return n > 1 ? emit_text(s, "%s, and %u more theirs", words, n - 1) : words;
}

/* ---- as the row keeps them ----------------------------------------------------------------------
 */

static void pack_those(struct sched *s, const struct run *run, bool here, Ms__JobResults *msg)
{
    for (uint32_t i = 0; i < run->n_formers && msg->n_formers < MS_FORMERS_STORED; i++) {
        struct former *former = &run->formers[i];
        if ((former->hold != NULL) != here) {
            continue;
        }
        Ms__Former *one = emit_alloc(s, sizeof(*one));
        ms__former__init(one);
        one->rank = former->rank;
        one->node_id = former->node_id;
        one->principal = former->principal;
        one->incarnation = former->incarnation;
        one->step = former->step;
        one->was_ready = former->was_ready;
        msg->formers[msg->n_formers++] = one;
    }
}

/* Those that are kept before the others. */
void formers_pack(struct sched *s, const struct run *run, Ms__JobResults *msg)
{
    if (run->n_formers == 0 || job_is_ended(run->job)) {
        return;
    }
    msg->formers = emit_alloc(s, MS_FORMERS_STORED * sizeof(Ms__Former *));
    pack_those(s, run, true, msg);
    pack_those(s, run, false, msg);
}

void formers_unpack(struct run *run, const Ms__JobResults *msg)
{
    for (size_t i = 0; i < msg->n_formers && run->job->state == JOB_RECOVERING; i++) {
        const Ms__Former *from = msg->formers[i];
        struct former *former = from->rank < run->job->workers ? add(run) : NULL;
        if (former != NULL) {
            former->rank = from->rank;
            former->incarnation = from->incarnation;
            former->step = from->step;
            former->was_ready = from->was_ready;
            ms_text_copy(former->node_id, sizeof(former->node_id), from->node_id);
            ms_text_copy(former->principal, sizeof(former->principal), from->principal);
        }
    }
}
