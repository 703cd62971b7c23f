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
    recover_pause(s, run, pauses_ms[n < last ? n : last]);
}

void vacant_note_unfit(struct sched *s, struct run *run, uint64_t incarnation)
{
    run->unfit[run->n_unfit++ % MS_UNFIT_MAX] = incarnation;
    run->met_unfit = true;
    if (!timer_is_armed(&run->unfit_timer)) {
        timer_arm(s, &run->unfit_timer, TIMER_UNFIT, after_ms(s, MS_UNFIT_MS));
    }
}

void recover_ask_again(struct sched *s, struct run *run)
{
    run->n_unfit = 0;
    s->due |= DUE_PLACE;
}

static bool is_unfit(const struct run *run, const struct node *node)
{
    for (uint32_t i = 0; i < run->n_unfit && i < MS_UNFIT_MAX; i++) {
        if (run->unfit[i] == node->info.incarnation) {
            return true;
        }
    }
    return false;
}

static bool has_stumbled(const struct sched *s, const struct run *run, const struct node *node)
{
    const uint64_t hash = run->n_stumbled > 0 ? node_hash(s, node->info.node_id) : 0;
    for (uint32_t i = 0; i < run->n_stumbled && i < MS_UNFIT_MAX; i++) {
        if (run->stumbled[i] == hash) {
            return true;
        }
    }
    return false;
}

static bool is_unreached(const struct run *run, uint32_t rank, const struct node *node)
{
    return run->mends != NULL && run->mends[rank].unreached == node->info.incarnation;
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

/* Each rank has, or had, the node of its number. */
static bool ids_are_ranks(const struct sched *s, const struct run *run)
{
    uint64_t number = 0;
    bool are = s->mode->ids_are_ranks;
    for (uint32_t rank = 0; are && rank < run->job->workers; rank++) {
        are = id_is_rank(run->members[rank].node_id, &number) && number == rank;
    }
    return are;
}

/* Then they stay what they are: a number takes no other rank. */
static bool id_allows(const char *node_id, uint32_t rank, bool are_ranks)
{
    uint64_t number = 0;
    return !are_ranks || !id_is_rank(node_id, &number) || number == rank;
}

static bool may_take(const struct run *run, uint32_t rank, const struct node *node, bool are_ranks)
{
    return node_is_idle(node) && node_knows_plans(node) && /* release 0.1 takes no state */
           !node->is_chosen && !is_unfit(run, node) &&
           id_allows(node->info.node_id, rank, are_ranks);
}

/* The one that had it; else one of its host, but where that was not reached, and of a good host;
 * whichever came first. */
static int fitness(struct sched *s, const struct run *run, uint32_t rank, const struct node *node)
{
    const struct member *member = &run->members[rank];
    const bool is_reached = run->mends == NULL || run->mends[rank].unreached == 0;
    if (is_unreached(run, rank, node) || has_stumbled(s, run, node)) {
        return 0;
    }
    return 1 + (strcmp(node->info.node_id, member->node_id) == 0 ? 1 : 0) +
           ((strcmp(node->info.host_name, member->host_name) == 0) == is_reached ? 2 : 0) +
           (host_is_aside(node->host) ? 0 : 4);
}

/* As many are looked at as anybody could want: cost.h and the length of a tick. */
enum { CANDIDATES_MAX = 2 * MS_WORKERS_MAX };

static struct node *choose(struct sched *s, const struct run *run, uint32_t rank, bool are_ranks)
{
    struct node *best = node_find(s, run->members[rank].node_id);
    best = best != NULL && may_take(run, rank, best, are_ranks) ? best : NULL;
    size_t n = 0;
    for (struct list *at = s->idle.next; at != &s->idle && n < CANDIDATES_MAX; at = at->next, n++) {
        struct node *node = list_item(at, struct node, idle);
        if (may_take(run, rank, node, are_ranks) &&
            (best == NULL || fitness(s, run, rank, node) > fitness(s, run, rank, best))) {
            best = node;
        }
    }
    return best;
}

/* Who had a rank is nobody else's choice. */
static void choose_own(struct sched *s, const struct run *run, struct node **nodes, bool are_ranks)
{
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        struct node *node =
            is_vacant(&run->members[rank]) ? node_find(s, run->members[rank].node_id) : NULL;
        if (node != NULL && may_take(run, rank, node, are_ranks) &&
            !is_unreached(run, rank, node) && !has_stumbled(s, run, node) &&
            !host_is_aside(node->host)) {
            node->is_chosen = true;
            nodes[rank] = node;
        }
    }
}

/* Whoever is asked last, and is needed all the same, has the rank that he had. */
static void give_own(struct sched *s, const struct run *run, uint32_t rank, struct node **nodes,
                     bool are_ranks)
{
    struct node *other = nodes[rank];
    struct node *own = node_find(s, run->members[rank].node_id);
    if (own == other || own == NULL || !own->is_chosen || is_unreached(run, rank, own)) {
        return;
    }
    uint32_t of = 0;
    while (nodes[of] != own) {
        of++;
    }
    if (strcmp(run->members[of].node_id, own->info.node_id) != 0 && !is_unreached(run, of, other) &&
        id_allows(other->info.node_id, of, are_ranks)) {
        nodes[of] = other;
        nodes[rank] = own;
    }
}

/* False: some rank finds nobody. */
static bool choose_all(struct sched *s, const struct run *run, struct node **nodes)
{
    const bool are_ranks = ids_are_ranks(s, run);
    choose_own(s, run, nodes, are_ranks);
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        if (!is_vacant(&run->members[rank]) || nodes[rank] != NULL) {
            continue;
        }
        nodes[rank] = choose(s, run, rank, are_ranks);
        if (nodes[rank] == NULL) {
            return false;
        }
        nodes[rank]->is_chosen = true;
    }
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        if (nodes[rank] != NULL) {
            give_own(s, run, rank, nodes, are_ranks);
        }
    }
    return true;
}

/* All vacant ranks, or none. */
bool vacant_fill(struct sched *s, struct job *job)
{
    if (recover_n_vacant(job->run) > s->n_idle) { /* a thousand come back one by one */
        return false;
    }
    struct node **nodes = emit_alloc(s, job->workers * sizeof(struct node *));
    memset(nodes, 0, job->workers * sizeof(struct node *));
    const bool all = choose_all(s, job->run, nodes);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        if (nodes[rank] != NULL) {
            nodes[rank]->is_chosen = false;
        }
        if (all && nodes[rank] != NULL) {
            run_give(s, job, rank, nodes[rank]);
        }
    }
    return all;
}

/* What its absence cost is taken back: nothing was lost. */
static void excuse(struct sched *s, struct run *run, uint32_t rank, const struct node *node)
{
    const struct mend *mend = run_mend(run, rank);
    if (mend->before.may_be_away) {
        budget_take_back(run, rank);
        host_excuse(s, node->host, mend->before.blame,
                    emit_text(s, "%s was away, and is back", rank_words(s, run->job, rank)));
    }
}

bool recover_take_back(struct sched *s, struct node *node, const struct claim *claim)
{
    struct job *job = job_find(s, claim->job);
    if (job == NULL || !job_is_placed(job) || claim->rank >= job->workers ||
        claim->generation > job->generation || !recover_is_on(s, job) || job->run->cancelling) {
        return false;
    }
    struct member *member = &job->run->members[claim->rank];
    if (!is_vacant(member) || member->incarnation != node->info.incarnation ||
        strcmp(member->node_id, node->info.node_id) != 0 ||
        strcmp(member->principal, node->info.principal) != 0 || !list_empty(&node->holds) ||
        run_mend(job->run, claim->rank)->is_over) { /* it has not heard the last word */
        return false;
    }
    excuse(s, job->run, claim->rank, node);
    run_give(s, job, claim->rank, node);
    member->hold->heard = claim->generation != job->generation ? claim->generation : 0;
    rank_set(job->run, claim->rank, RANK_ON_ASSIGN);
    member->has_state |= claim_has_state(claim);
    emit_log(s, MS_LOG_NOTICE, "job.rank_back job=%llu rank=%u node=%s: it was given up, not ended",
             (unsigned long long)job->id, claim->rank, emit_quote(s, node->info.node_id));
    recover_again(s, job->run);
    return true;
}

bool recover_has_room(const struct sched *s, const char *node_id)
{
    uint32_t n = 0;
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
