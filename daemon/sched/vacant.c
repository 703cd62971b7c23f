/* vacant.c - who takes a rank that nobody has
 *
 * The process that was given up and comes back with it; the next one of its node; an idle node, of
 * its host or of a good one. Last who was not reached, or ended before it was ready; not at all who
 * cannot serve it. */
#include "daemon/sched/state.h"

#include <string.h>

/* ---- who is asked last, or not at all -----------------------------------------------------------
 */

static uint64_t node_hash(const struct sched *s, const char *node_id)
{
    return table_hash_text(s->seed, node_id);
}

/* Others first, and a pause if there are none: its process ends again and again. */
void vacant_note_stumble(struct sched *s, struct run *run, uint32_t rank)
{
    static const int64_t pauses_ms[] = {0, 0, 100, 500, 2000, 5000};
    const uint32_t n = run_mend(run, rank)->n_unready;
    const size_t last = MS_ARRAY_SIZE(pauses_ms) - 1;
    run->stumbled[run->n_stumbled++ % MS_UNFIT_MAX] = node_hash(s, run->members[rank].node_id);
    const int64_t until_ms = after_ms(s, pauses_ms[n < last ? n : last]);
    run->stumbled_until_ms = until_ms > run->stumbled_until_ms ? until_ms : run->stumbled_until_ms;
}

void vacant_note_unfit(struct sched *s, struct run *run, uint64_t incarnation)
{
    run->unfit[run->n_unfit++ % MS_UNFIT_MAX] = incarnation;
    if (!timer_is_armed(&run->unfit_timer)) {
        timer_arm(s, &run->unfit_timer, TIMER_UNFIT, after_ms(s, MS_UNFIT_MS));
    }
}

void recover_ask_again(struct sched *s, struct run *run)
{
    run->n_unfit = 0;
    s->due |= DUE_PLACE;
}

bool vacant_is_unfit(const struct run *run, uint64_t incarnation)
{
    for (uint32_t i = 0; i < run->n_unfit && i < MS_UNFIT_MAX; i++) {
        if (run->unfit[i] == incarnation) {
            return true;
        }
    }
    return false;
}

bool vacant_has_stumbled(const struct sched *s, const struct run *run, const struct node *node)
{
    const uint64_t hash = run->n_stumbled > 0 ? node_hash(s, node->info.node_id) : 0;
    for (uint32_t i = 0; i < run->n_stumbled && i < MS_UNFIT_MAX; i++) {
        if (run->stumbled[i] == hash) {
            return true;
        }
    }
    return false;
}

/* Each rank has, or had, the node of its number; or is about to have it again. */
static bool ids_are_ranks(const struct sched *s, const struct run *run)
{
    uint64_t number = 0;
    bool are = s->mode->ids_are_ranks;
    for (uint32_t rank = 0; are && rank < run->job->workers; rank++) {
        const struct former *former = former_chosen(run, rank);
        const char *node_id = former != NULL ? former->node_id : run->members[rank].node_id;
        are = id_is_rank(node_id, &number) && number == rank;
    }
    return are;
}

/* What is true of all vacant ranks, each of which may ask each idle node. */
struct look {
    bool are_ranks;     /* ids_are_ranks */
    uint32_t home_rank; /* which is for who is at home */
    bool is_lost;       /* no process holds the state */
};

/* Once; and again when a process is told to be a rank. */
static void look_around(struct sched *s, const struct run *run, struct look *look)
{
    look->home_rank = home_rank(s, run);
    look->is_lost = !run_is_held_beside(run, MS_WORKERS_MAX);
    for (struct list *at = s->idle.next; run->n_links > 0 && at != &s->idle; at = at->next) {
        struct node *node = list_item(at, struct node, idle);
        node->is_unreached =
            links_are_bad(run, node->info.incarnation) || links_cut_off(run, node->machine);
    }
}

static bool is_unreached(const struct run *run, const struct node *node)
{
    return run->n_links > 0 && node->is_unreached;
}

/* ---- who is chosen ------------------------------------------------------------------------------
 */

static bool is_vacant(const struct member *member)
{
    return member->hold == NULL;
}

uint32_t recover_n_vacant(const struct run *run)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; run->n_in[RANK_LOST] > 0 && rank < run->job->workers; rank++) {
        n += is_vacant(&run->members[rank]);
    }
    return n;
}

/* Then they stay what they are: a number takes no other rank. */
static bool id_allows(const char *node_id, uint32_t rank, bool are_ranks)
{
    uint64_t number = 0;
    return !are_ranks || !id_is_rank(node_id, &number) || number == rank;
}

bool vacant_can_serve(const struct run *run, const struct node *node)
{
    return node_is_idle(node) && node_knows_plans(node) && /* release 0.1 takes no state */
           !vacant_is_unfit(run, node->info.incarnation);
}

/* Another job waits for it. Of two that wait for one folder the first to be submitted may have all
 * of its nodes: each might lack what the other one keeps. */
static bool is_barred(const struct sched *s, const struct run *run, const struct node *node,
                      const struct look *look)
{
    const bool goes_first =
        look->is_lost && run->home.step > 0 && run->job->id < node->kept_for && home_is(run, node);
    return home_is_kept(s, node, run) && !goes_first;
}

static bool may_take(const struct sched *s, const struct run *run, uint32_t rank,
                     const struct node *node, const struct look *look)
{
    return vacant_can_serve(run, node) && !node->is_chosen && !is_barred(s, run, node, look) &&
           id_allows(node->info.node_id, rank, look->are_ranks) &&
           (rank != look->home_rank || home_is(run, node));
}

enum { UNREACHED, STUMBLED, KEPT, FIT };

/* The one that had it; else one of its host, but where that is not reached, and of a good host;
 * whichever came first. One that another job waits for comes behind those. */
static int fitness(struct sched *s, const struct run *run, const struct member *member,
                   bool is_reached, const struct node *node)
{
    if (is_unreached(run, node)) {
        return UNREACHED;
    }
    if (vacant_has_stumbled(s, run, node)) {
        return STUMBLED;
    }
    if (home_is_kept(s, node, run)) {
        return KEPT;
    }
    const bool is_near = member->machine != 0
                             ? node->machine == member->machine
                             : strcmp(node->info.host_name, member->host_name) == 0;
    return FIT + (strcmp(node->info.node_id, member->node_id) == 0 ? 1 : 0) +
           (is_near == is_reached ? 2 : 0) + (host_is_aside(node->host) ? 0 : 4);
}

uint32_t vacant_n_fit(struct sched *s, const struct run *run)
{
    uint32_t n = 0;
    for (struct list *at = s->idle.next; at != &s->idle && n < run->job->workers; at = at->next) {
        n += vacant_can_serve(run, list_item(at, struct node, idle));
    }
    return n;
}

bool vacant_has_untried(struct sched *s, struct run *run, uint32_t rank)
{
    struct look look = {.are_ranks = ids_are_ranks(s, run)};
    bool has = false;
    (void)home_mark(s);
    look_around(s, run, &look);
    for (struct list *at = s->idle.next; !has && at != &s->idle; at = at->next) {
        const struct node *node = list_item(at, struct node, idle);
        has = may_take(s, run, rank, node, &look) && !is_unreached(run, node) &&
              !vacant_has_stumbled(s, run, node);
    }
    return has;
}

/* An idle node for each rank, or who had it and kept what it holds. */
struct choice {
    struct node *node;
    struct former *former;
};

struct fittest {
    struct node *node;
    int fitness;
};

/* As many are looked at as anybody could want: cost.h and the length of a tick. */
enum { CANDIDATES_MAX = 2 * MS_WORKERS_MAX };

static void ask(struct sched *s, const struct run *run, uint32_t rank, const struct look *look,
                struct node *node, struct fittest *best)
{
    const struct member *member = &run->members[rank];
    const bool is_reached = run->n_links == 0 || !links_are_bad(run, member->incarnation);
    const bool may = node != NULL && may_take(s, run, rank, node, look);
    const int fit = may ? fitness(s, run, member, is_reached, node) : -1;
    if (fit > best->fitness) {
        *best = (struct fittest){node, fit};
    }
}

static struct node *choose(struct sched *s, const struct run *run, uint32_t rank,
                           const struct look *look)
{
    struct fittest best = {NULL, -1};
    size_t n = 0;
    if (rank == look->home_rank) { /* or nobody, while it may come */
        struct node *node = home_next(s, run, NULL);
        for (; node != NULL && n < CANDIDATES_MAX; node = home_next(s, run, node), n++) {
            ask(s, run, rank, look, node, &best);
        }
        return best.node;
    }
    ask(s, run, rank, look, node_find(s, run->members[rank].node_id), &best);
    for (struct list *at = s->idle.next; at != &s->idle && n < CANDIDATES_MAX; at = at->next, n++) {
        ask(s, run, rank, look, list_item(at, struct node, idle), &best);
    }
    return best.node;
}

/* Who had a rank is nobody else's choice. */
static void choose_own(struct sched *s, const struct run *run, struct choice *choices,
                       struct look *look)
{
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        const bool wants = is_vacant(&run->members[rank]) && choices[rank].former == NULL;
        struct node *node = wants ? node_find(s, run->members[rank].node_id) : NULL;
        if (node != NULL && may_take(s, run, rank, node, look) && !is_unreached(run, node) &&
            !vacant_has_stumbled(s, run, node) && !host_is_aside(node->host)) {
            node->is_chosen = true;
            choices[rank].node = node;
            look->home_rank =
                home_is(run, node) ? MS_WORKERS_MAX : look->home_rank; /* it reads for all */
        }
    }
}

/* Whoever is asked last, and is needed all the same, has the rank that he had. */
static void give_own(struct sched *s, const struct run *run, uint32_t rank, struct choice *choices,
                     const struct look *look)
{
    struct node *other = choices[rank].node;
    struct node *own = node_find(s, run->members[rank].node_id);
    if (own == other || own == NULL || !own->is_chosen || is_unreached(run, own)) {
        return;
    }
    uint32_t of = 0;
    while (choices[of].node != own) {
        of++;
    }
    if (strcmp(run->members[of].node_id, own->info.node_id) != 0 && !is_unreached(run, other) &&
        id_allows(other->info.node_id, of, look->are_ranks)) {
        choices[of].node = other;
        choices[rank].node = own;
    }
}

static struct former *ask_former(struct sched *s, struct run *run, uint32_t rank, struct look *look)
{
    struct former *former =
        s->now.mono_ms >= run->not_back_ms ? former_choose_again(s, run, rank) : NULL;
    if (former != NULL) {
        look_around(s, run, look);
    }
    return former;
}

/* NOBODY: there are too few nodes. */
enum choosing { CHOSEN, PAUSES, NOBODY };

/* Who had it and is not reached comes before none, and before another one that is not either; but
 * first those that are about to be idle. */
static enum choosing choose_one(struct sched *s, struct run *run, uint32_t rank,
                                struct choice *choice, struct look *look)
{
    struct node *node = choose(s, run, rank, look);
    const uint64_t last = run->members[rank].incarnation;
    /* what is known of a process comes before what is true of its machine, as far as anybody knows
     */
    if (node == NULL || (is_unreached(run, node) && (links_are_bad(run, node->info.incarnation) ||
                                                     !links_are_bad(run, last)))) {
        choice->former = ask_former(s, run, rank, look);
    }
    const bool has_pause = s->now.mono_ms < run->stumbled_until_ms;
    if (choice->former != NULL) {
        return CHOSEN;
    }
    if (node == NULL) {
        return s->now.mono_ms < run->not_back_ms ? PAUSES : NOBODY;
    }
    if (has_pause && vacant_has_stumbled(s, run, node)) {
        return PAUSES;
    }
    node->is_chosen = true;
    choice->node = node;
    return CHOSEN;
}

/* There are fewer idle nodes than ranks: another rank leaves it one, and goes to who had it. */
static bool choose_from_another(struct sched *s, struct run *run, uint32_t rank,
                                struct choice *choices, struct look *look)
{
    for (uint32_t of = 0; of < run->job->workers; of++) {
        struct node *node = choices[of].node;
        const bool may = node != NULL && id_allows(node->info.node_id, rank, look->are_ranks);
        struct former *former = may ? ask_former(s, run, of, look) : NULL;
        if (former != NULL) {
            choices[rank].node = node;
            choices[of] = (struct choice){.former = former};
            return true;
        }
    }
    return false;
}

/* Else some rank finds nobody. */
static enum choosing choose_all(struct sched *s, struct run *run, struct choice *choices)
{
    struct look look = {.are_ranks = ids_are_ranks(s, run)};
    for (uint32_t rank = 0; run->n_formers > 0 && rank < run->job->workers; rank++) {
        choices[rank].former = former_chosen(run, rank);
    }
    look_around(s, run, &look);
    choose_own(s, run, choices, &look);
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        const bool wants = is_vacant(&run->members[rank]) && choices[rank].former == NULL &&
                           choices[rank].node == NULL;
        const enum choosing one = wants ? choose_one(s, run, rank, &choices[rank], &look) : CHOSEN;
        if (one != CHOSEN && !choose_from_another(s, run, rank, choices, &look)) {
            return one;
        }
    }
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        if (choices[rank].node != NULL) {
            give_own(s, run, rank, choices, &look);
        }
    }
    return CHOSEN;
}

/* All vacant ranks, or none. */
static enum choosing fill(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    struct choice *choices = emit_alloc(s, job->workers * sizeof(*choices));
    memset(choices, 0, job->workers * sizeof(*choices));
    const enum choosing how = choose_all(s, run, choices);
    const bool all = how == CHOSEN;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        if (choices[rank].node != NULL) {
            choices[rank].node->is_chosen = false;
        }
        if (all && choices[rank].node != NULL) {
            (void)former_forget(run, choices[rank].node); /* it begins anew */
            run_give(s, job, rank, choices[rank].node);
        }
    }
    for (uint32_t rank = 0; all && rank < job->workers; rank++) {
        struct former *former = former_chosen(run, rank); /* each moves those behind it */
        if (former != NULL) {
            former_give(s, run, former);
        }
    }
    return how;
}

bool vacant_fill(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    const bool may_do = /* a thousand come one by one */
        recover_n_vacant(run) <= s->n_idle + formers_here(run);
    const enum choosing how = may_do ? fill(s, job) : NOBODY;
    if (how == NOBODY) {
        formers_spare(s, run);
    }
    formers_unchoose(run);
    return how == CHOSEN;
}

/* What its absence cost is taken back: nothing was lost. */
static void excuse(struct run *run, uint32_t rank)
{
    if (run_mend(run, rank)->before.may_be_away) {
        budget_take_back(run, rank);
    }
}

static bool is_process_of(const struct member *member, const struct node_info *info)
{
    return member->incarnation == info->incarnation &&
           strcmp(member->node_id, info->node_id) == 0 &&
           strcmp(member->principal, info->principal) == 0;
}

bool recover_comes_to_stop(const struct sched *s, const struct node_info *info, uint64_t job_id,
                           uint32_t rank)
{
    const struct job *job = job_find(s, job_id);
    if (job == NULL || !job_is_placed(job) || !job->run->cancelling || rank >= job->workers) {
        return false;
    }
    const struct member *member = &job->run->members[rank];
    return (is_vacant(member) && is_process_of(member, info)) || former_was(job->run, rank, info);
}

static int64_t cut_until_ms(const struct sched *s, const struct run *run, uint32_t rank)
{
    const struct member *member = &run->members[rank];
    const struct mend *mend = run->mends != NULL ? &run->mends[rank] : NULL;
    const bool may = mend != NULL && !s->mode->sees_ends && is_vacant(member) && !mend->is_over &&
                     mend->holder.is_cut && strcmp(mend->holder.node_id, member->node_id) == 0 &&
                     recover_may_live(s, mend);
    return may ? mend->holder.lost_ms + MS_UNHEARD_MS : INT64_MIN;
}

/* Rank 0 of a job that stops: another one saves in its place, or is on its way and may be at it,
 * perhaps in the same folder, and the two would write over each other's weights. */
static bool is_stood_in_for(const struct sched *s, const struct run *run, uint32_t rank)
{
    const bool may = run->cancelling && run->asked != 0 && rank == 0;
    bool is = false;
    for (uint32_t other = 1; may && !is && other < run->job->workers; other++) {
        is = run->members[other].hold != NULL ||
             (run->back_wait != BACK_OVER && cut_until_ms(s, run, other) > run->back_ms);
    }
    return is;
}

int64_t recover_comes_until(const struct sched *s, const struct run *run, uint32_t rank)
{
    return is_stood_in_for(s, run, rank) ? INT64_MIN : cut_until_ms(s, run, rank);
}

bool recover_note_arrival(struct run *run, const struct node *node)
{
    bool was = false;
    const bool may = run->mends != NULL && run->n_in[RANK_LOST] > 0;
    for (uint32_t rank = 0; may && rank < run->job->workers; rank++) {
        struct mend *mend = &run->mends[rank];
        const bool is = is_vacant(&run->members[rank]) && mend->holder.is_cut &&
                        strcmp(mend->holder.node_id, node->info.node_id) == 0;
        mend->holder.is_cut &= !is;
        was = was || is;
    }
    return was;
}

bool recover_take_back(struct sched *s, struct node *node, const struct claim *claim)
{
    struct job *job = job_find(s, claim->job);
    if (job == NULL || !job_is_placed(job) || claim->rank >= job->workers ||
        claim->generation > job->generation || !recover_is_on(s, job)) {
        return false;
    }
    struct member *member = &job->run->members[claim->rank];
    const bool is_at_end = save_is_at_end(job->run);
    if (!is_vacant(member) || (is_at_end && claim->generation != job->generation) ||
        (job->run->cancelling && !claim_has_state(claim)) || /* of no use to it any more */
        is_stood_in_for(s, job->run, claim->rank) || !is_process_of(member, &node->info) ||
        !list_empty(&node->holds) ||
        run_mend(job->run, claim->rank)->is_over) { /* it has not heard the last word */
        return false;
    }
    excuse(job->run, claim->rank);
    member->step = claim->step > member->step ? claim->step : member->step;
    const bool was_ready = former_forget(job->run, node);
    run_give(s, job, claim->rank, node);
    if (is_at_end) { /* it says again how it ended */
        rank_set(job->run, claim->rank, RANK_ON_RESUME);
        member->has_state = true;
        emit_log(s, MS_LOG_NOTICE, "job.rank_back job=%llu rank=%u node=%s: with all that it holds",
                 (unsigned long long)job->id, claim->rank, emit_quote(s, node->info.node_id));
        save_came_back(s, member->hold);
        save_look(s, job->run);
        watch_stir(s, job);
        return true;
    }
    member->hold->heard = claim->generation != job->generation ? claim->generation : 0;
    rank_set(job->run, claim->rank, /* a job that runs sends no Start any more */
             job->state == JOB_RUNNING && job->run->cancelling ? RANK_ON_RESUME : RANK_ON_ASSIGN);
    member->has_state |= claim_has_state(claim);
    member->has_plan = was_ready && !member->has_state; /* a copy: of that it says nothing */
    member->may_lack_plan = member->has_plan && claim->generation > member->ready_in;
    emit_log(s, MS_LOG_NOTICE, "job.rank_back job=%llu rank=%u node=%s: it was given up, not ended",
             (unsigned long long)job->id, claim->rank, emit_quote(s, node->info.node_id));
    if (job->run->cancelling) { /* it may be the last one that holds what is to be saved */
        run_mend(job->run, claim->rank)->is_back = true;
        stop_came_back(s, member->hold);
    } else {
        recover_again(s, job->run);
    }
    return true;
}

/* At the end of a job nobody takes the rank, and its own process comes back with it; one in its
 * place hears of the end. */
static bool had_rank_at_end(const struct sched *s, const char *node_id)
{
    bool had = false;
    for (const struct list *at = s->placed.next; !had && at != &s->placed; at = at->next) {
        const struct run *run = list_item(at, struct job, lane)->run;
        const bool may = (save_is_at_end(run) || run->cancelling) && run->n_in[RANK_LOST] > 0;
        for (uint32_t rank = 0; may && !had && rank < run->job->workers; rank++) {
            const struct member *member = &run->members[rank];
            had = is_vacant(member) && strcmp(member->node_id, node_id) == 0;
        }
    }
    return had;
}

bool recover_has_room(const struct sched *s, const char *node_id)
{
    uint32_t n = 0;
    if (had_rank_at_end(s, node_id)) {
        return true;
    }
    for (const struct list *at = s->recovering.next; at != &s->recovering; at = at->next) {
        const struct run *run = list_item(at, struct run, recovering);
        const bool are_ranks = ids_are_ranks(s, run);
        for (uint32_t rank = 0; rank < run->job->workers; rank++) {
            const struct member *member = &run->members[rank];
            if (is_vacant(member) && strcmp(member->node_id, node_id) == 0) {
                return true;
            }
            n += is_vacant(member) && id_allows(node_id, rank, are_ranks);
        }
    }
    return n > s->n_idle;
}
