/* links.c - ranks that do not reach each other: which of the two gives way
 *
 * A link has two ends, and the scheduler sees neither. So it keeps what processes said of each
 * other since the job made its last step, and judges a complaint of A about B by that:
 *
 *     A speaks of itself                            the first time all try again, then A moves, or
 *                                                   tries on where nobody would start it again
 *     one of them trained, the other has a copy,
 *     or only one of them holds the state           the other one moves; but not because of who has
 *                                                   less, where one that trained was not reached
 *     it is the first one of both                   all try again
 *     one of the two has bad links to more
 *     processes than the other                      that one moves
 *     else                                          who is a step behind moves, or B; a newcomer
 *                                                   tries on where nobody would start it again
 *
 * Between two of one machine, links to processes of others that have given way do not count: that
 * was settled, and says nothing of either. One of the two is slow, or hangs.
 *
 * What two processes say is true of their machines, as far as anybody knows: idle nodes of one that
 * a rank's does not reach are asked last; and where both trained, and one side of the cut has nodes
 * for all ranks and the other one has not, or fewer ranks, all ranks of the other side move.
 *
 * Never moved is the last one that holds the state: then it is the other one. What moves is the
 * rank; the process keeps what it holds until another one has it (former.h). */
#include "daemon/sched/state.h"

#include <stdlib.h>

/* ---- what was said ------------------------------------------------------------------------------
 */

static struct link *find(const struct run *run, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < run->n_links; i++) {
        struct link *link = &run->links[i];
        if ((link->a == a && link->b == b) || (link->a == b && link->b == a)) {
            return link;
        }
    }
    return NULL;
}

static void drop(struct run *run, uint32_t i)
{
    memmove(&run->links[i], &run->links[i + 1], (--run->n_links - i) * sizeof(*run->links));
}

/* How often it was told of, this time included. */
static uint32_t note(struct run *run, const struct member *x, const struct member *y,
                     bool have_trained)
{
    const uint64_t a = x->incarnation;
    const uint64_t b = y->incarnation;
    struct link *link = find(run, a, b);
    if (link == NULL) {
        if (run->links == NULL) {
            run->links = memory_take(MS_LINKS_MAX * sizeof(*run->links));
        }
        if (run->n_links == MS_LINKS_MAX) {
            drop(run, 0);
        }
        link = &run->links[run->n_links++];
        *link = (struct link){.a = a, .b = b, .machine_a = x->machine, .machine_b = y->machine};
    }
    link->step = run->furthest;
    link->is_new = true;
    link->have_trained = have_trained;
    return ++link->n;
}

/* Whatever was told since the last start was at this step, and what was before it is made good. */
void links_got_further(struct run *run)
{
    for (uint32_t i = run->n_links; i > 0; i--) {
        struct link *link = &run->links[i - 1];
        if (run->furthest > link->step && run->stands_still && link->is_new) {
            link->step = run->furthest;
        } else if (run->furthest > link->step) {
            drop(run, i - 1);
        }
    }
}

void links_started(struct run *run)
{
    for (uint32_t i = 0; i < run->n_links; i++) {
        struct link *link = &run->links[i];
        link->is_new = false;
        link->step = link->step < run->furthest ? link->step : run->furthest;
    }
}

void links_forget(struct run *run)
{
    free(run->links);
    run->links = NULL;
    run->n_links = 0;
}

/* ---- judging ------------------------------------------------------------------------------------
 */

static bool is_rank(const struct run *run, uint64_t process)
{
    bool is = former_is_chosen(run, process);
    for (uint32_t rank = 0; !is && rank < run->job->workers; rank++) {
        const struct member *member = &run->members[rank];
        is = member->hold != NULL && member->incarnation == process;
    }
    return is;
}

/* Itself: its mesh ended twice for a reason of its own. */
bool links_are_bad(const struct run *run, uint64_t process)
{
    bool are = false;
    for (uint32_t i = 0; !are && i < run->n_links; i++) {
        const struct link *link = &run->links[i];
        const bool is_its = link->a == process || link->b == process;
        const uint64_t other = link->a == process ? link->b : link->a;
        are = is_its && (other == process || is_rank(run, other));
    }
    return are;
}

bool links_are_bad_of_itself(const struct run *run, uint64_t process)
{
    return find(run, process, process) != NULL;
}

/* Of two machines; each has reached itself. */
static bool are_cut(const struct run *run, uint64_t x, uint64_t y)
{
    bool are = false;
    for (uint32_t i = 0; x != y && x != 0 && y != 0 && !are && i < run->n_links; i++) {
        const struct link *link = &run->links[i];
        are = (link->machine_a == x && link->machine_b == y) ||
              (link->machine_a == y && link->machine_b == x);
    }
    return are;
}

bool links_cut_off(const struct run *run, uint64_t machine)
{
    bool is = false;
    for (uint32_t i = 0; !is && i < run->n_links; i++) {
        const struct link *link = &run->links[i];
        const uint64_t other = link->machine_a == machine   ? link->machine_b
                               : link->machine_b == machine ? link->machine_a
                                                            : machine;
        for (uint32_t rank = 0; other != machine && other != 0 && !is && rank < run->job->workers;
             rank++) {
            is = run->members[rank].hold != NULL && run->members[rank].machine == other;
        }
    }
    return is;
}

static bool is_settled(const struct run *run, const struct link *link, uint64_t process)
{
    return link->machine_a != link->machine_b &&
           !is_rank(run, link->a == process ? link->b : link->a);
}

/* The processes that one of two ranks does not reach, as far as that says anything about the two.
 */
static uint32_t n_bad(const struct run *run, const struct member *member,
                      const struct member *other)
{
    const uint64_t process = member->incarnation;
    const bool are_near = member->machine != 0 && member->machine == other->machine;
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_links; i++) {
        const struct link *link = &run->links[i];
        n += link->a != link->b && (link->a == process || link->b == process) &&
             !(are_near && is_settled(run, link, process));
    }
    return n;
}

/* Neither has another link, settled or not: who tries once more spends a try of the job. */
static bool has_one_link(const struct run *run, uint64_t process)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_links; i++) {
        const struct link *link = &run->links[i];
        n += link->a != link->b && (link->a == process || link->b == process);
    }
    return n == 1;
}

/* ... to another one that trained as it did: no newcomer that says so. */
static bool is_firmly_bad(const struct run *run, uint64_t process)
{
    bool is = false;
    for (uint32_t i = 0; !is && i < run->n_links; i++) {
        const struct link *link = &run->links[i];
        is = link->a != link->b && link->have_trained && (link->a == process || link->b == process);
    }
    return is;
}

/* Who says what it holds may be mistaken, or lie; who trained with the others is one of them. */
enum { HAS_NOTHING, HAS_A_COPY, HAS_TRAINED };

static int standing(const struct run *run, uint32_t rank)
{
    return !run_holds_state(run, rank)    ? HAS_NOTHING
           : run->members[rank].has_state ? HAS_TRAINED
                                          : HAS_A_COPY;
}

static struct verdict all_try_again(uint32_t rank, const char *text)
{
    return (struct verdict){rank, FAULT_COMPLAINT, text, 0};
}

static struct verdict moves(uint32_t rank, const char *text)
{
    return (struct verdict){rank, FAULT_LINK, text, 0};
}

static struct verdict gives_up(struct sched *s, const struct run *run, uint32_t rank,
                               const char *why, const char *text)
{
    const char *cause = emit_text(s, "%s: %s", why, text_fit(s, causes_bare(s, text), 180));
    return moves(rank, rank_text(s, run->job, rank, "was given up", cause));
}

/* It complained, and has to move itself. */
static struct verdict moves_itself(struct sched *s, const struct run *run, uint32_t by,
                                   uint32_t rank, const char *text)
{
    const uint32_t n = n_bad(run, &run->members[by], &run->members[rank]);
    return gives_up(
        s, run, by,
        standing(run, rank) > standing(run, by)
            ? emit_text(s, "it does not reach rank %u, which holds the state", rank)
        : n > 1 ? emit_text(s, "%u processes and it do not reach each other, the last is rank %u's",
                            n, rank)
                : emit_text(s, "it is behind rank %u, and they do not reach each other", rank),
        text);
}

/* ---- two sides ---- */

/* The ranks that are on a machine that this one reaches, as far as anybody said. */
static uint32_t n_on_side(const struct run *run, uint64_t machine, bool *ret_has_state)
{
    uint32_t n = 0;
    *ret_has_state = false;
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        const struct member *member = &run->members[rank];
        const bool is = member->hold != NULL && !are_cut(run, machine, member->machine);
        n += is;
        *ret_has_state |= is && standing(run, rank) == HAS_TRAINED;
    }
    return n;
}

/* It has nodes for all ranks, and one that trained: how many ranks it has; 0: no. */
static uint32_t side_can(struct sched *s, const struct run *run, uint64_t machine)
{
    bool has_state = false;
    const uint32_t n = n_on_side(run, machine, &has_state);
    const uint32_t want = run->job->workers - n;
    uint32_t idle = 0;
    for (struct list *at = s->idle.next; at != &s->idle && idle < want; at = at->next) {
        const struct node *node = list_item(at, struct node, idle);
        idle += vacant_can_serve(run, node) && !are_cut(run, machine, node->machine);
    }
    return has_state && idle >= want ? n : 0;
}

/* All that is known of the two ends at one process of x, where more ranks are: it may hang, or have
 * lost its own ports. */
static bool is_one_process(const struct run *run, uint64_t x, uint64_t y)
{
    uint64_t first = 0;
    uint32_t ranks = 0;
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        ranks += run->members[rank].hold != NULL && run->members[rank].machine == x;
    }
    for (uint32_t i = 0; i < run->n_links; i++) {
        const struct link *link = &run->links[i];
        const uint64_t at = link->machine_a == x && link->machine_b == y   ? link->a
                            : link->machine_b == x && link->machine_a == y ? link->b
                                                                           : 0;
        if (at != 0 && first != 0 && at != first) {
            return false;
        }
        first = at != 0 ? at : first;
    }
    return ranks > 1;
}

/* Two machines do not reach each other, and only one side, or one with more ranks, can have all. 0:
 * that says nothing. */
static uint64_t better_side(struct sched *s, const struct run *run, const struct member *a,
                            const struct member *b)
{
    if (a->machine == 0 || b->machine == 0 || a->machine == b->machine ||
        is_one_process(run, a->machine, b->machine) ||
        is_one_process(run, b->machine, a->machine)) {
        return 0;
    }
    const uint32_t at_a = side_can(s, run, a->machine);
    const uint32_t at_b = side_can(s, run, b->machine);
    return at_a > at_b ? a->machine : at_b > at_a ? b->machine : 0;
}

uint32_t links_gives_way_too(const struct run *run, const struct verdict *verdict)
{
    uint32_t rank = 0;
    while (rank < run->job->workers &&
           (verdict->keeps == 0 || run->members[rank].hold == NULL ||
            run->members[rank].state == RANK_MISSING ||
            !are_cut(run, verdict->keeps, run->members[rank].machine))) {
        rank++;
    }
    return rank;
}

/* Where people start processes it tries as often as it may, if no other node is there; and ends
 * before its job would. */
static struct verdict judge_itself(struct sched *s, struct run *run, uint32_t rank,
                                   const char *text)
{
    const struct member *member = &run->members[rank];
    const bool is_first = note(run, member, member, true) == 1;
    enum fault fault = FAULT_OFF_MESH;
    if (run_is_last_copy(run, rank)) {
        fault = FAULT_MESH;
    } else if (s->mode->by_hand && !recover_may(s, run->job, rank, FAULT_OFF_MESH)) {
        fault = FAULT_WORN;
    } else if (is_first || (s->mode->by_hand && vacant_n_fit(s, run) == 0)) {
        fault = FAULT_MESH;
    }
    return (struct verdict){rank, fault, text, 0};
}

static struct verdict moves_to(struct sched *s, const struct run *run, uint32_t by, uint32_t rank,
                               const char *text)
{
    return gives_up(
        s, run, by,
        emit_text(s, "its host does not reach that of rank %u, where all ranks have nodes", rank),
        text);
}

/* A newcomer that is told to go ends, and nobody starts it again: as above. */
static struct verdict spare_newcomer(struct sched *s, const struct run *run, struct verdict verdict,
                                     uint32_t told_of, const char *text)
{
    if (!s->mode->by_hand || vacant_n_fit(s, run) > 0 ||
        standing(run, verdict.rank) == HAS_TRAINED || run_is_last_copy(run, verdict.rank)) {
        return verdict;
    }
    if (recover_may(s, run->job, verdict.rank, FAULT_COMPLAINT)) {
        return all_try_again(verdict.rank,
                             verdict.rank == told_of
                                 ? text
                                 : rank_text(s, run->job, verdict.rank, "reaches not all others",
                                             text_fit(s, causes_bare(s, text), 180)));
    }
    verdict.fault = FAULT_WORN;
    return verdict;
}

static struct verdict judge_two(struct sched *s, struct run *run, uint32_t by, uint32_t rank,
                                const char *text)
{
    const struct member *a = &run->members[by];
    const struct member *b = &run->members[rank];
    const int as = standing(run, by);
    const int bs = standing(run, rank);
    const bool have_trained = as == HAS_TRAINED && bs == HAS_TRAINED;
    const bool is_first = note(run, a, b, have_trained) == 1;
    const uint32_t n_as = n_bad(run, a, b);
    const uint32_t n_bs = n_bad(run, b, a);
    if (is_first && has_one_link(run, a->incarnation) && has_one_link(run, b->incarnation) &&
        as == bs) {
        return all_try_again(rank, text);
    }
    const bool is_behind = have_trained && a->step < b->step;
    const bool moves_a = as < bs        ? !(is_firmly_bad(run, b->incarnation) && n_bs > n_as)
                         : as > bs      ? is_firmly_bad(run, a->incarnation) && n_as > n_bs
                         : n_as != n_bs ? n_as > n_bs
                                        : is_behind;
    const uint64_t keeps = have_trained ? better_side(s, run, a, b) : 0;
    struct verdict verdict =
        keeps != 0 ? (keeps == b->machine ? moves_to(s, run, by, rank, text) : moves(rank, text))
        : (moves_a && !run_is_last_copy(run, by)) || run_is_last_copy(run, rank)
            ? moves_itself(s, run, by, rank, text)
            : moves(rank, text);
    verdict.keeps = keeps;
    return spare_newcomer(s, run, verdict, rank, text);
}

struct verdict links_judge(struct sched *s, struct run *run, const struct complaint *complaint)
{
    const uint32_t by = complaint->by;
    const uint32_t rank = complaint->rank;
    const char *text = emit_text(s, "%s", complaint->text);
    const bool are_here =
        run->members[by].state != RANK_MISSING && run->members[rank].state != RANK_MISSING;
    struct verdict verdict = {rank, by == rank ? FAULT_MESH : FAULT_COMPLAINT, text, 0};
    if (are_here && recover_is_on(s, run->job) && !run->cancelling) {
        verdict = by == rank ? judge_itself(s, run, rank, text) : judge_two(s, run, by, rank, text);
    }
    if (run->members[verdict.rank].state == RANK_MISSING) { /* nobody has heard of it */
        verdict.fault = FAULT_MISSING;
    }
    return verdict;
}
