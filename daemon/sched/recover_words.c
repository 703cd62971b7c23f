/* recover_words.c - what people read of a recovery */
#include "daemon/sched/state.h"

#include <string.h>

typedef unsigned long long ull;

const char *recover_spent(struct sched *s, const struct job *job, uint32_t rank, enum fault fault,
                          const char *text)
{
    const struct mend *mend =
        job->run != NULL && job->run->mends != NULL ? &job->run->mends[rank] : NULL;
    const bool is_nobodys = fault == FAULT_UNREADY && job->run->members[rank].hold == NULL;
    if (!recover_is_loss(fault) || is_nobodys) { /* where nobody took it nothing more was lost */
        return NULL;
    }
    if (mend != NULL && recover_is_stumbled_out(job->run, rank)) {
        return text_behind(
            s,
            emit_text(s, "no process got ready for rank %u, %u were tried; the last: ", rank,
                      mend->n_unready + 1),
            text);
    }
    const struct losses *spent =
        mend != NULL && recover_counts(fault) ? budget_spent(job->run, rank) : NULL;
    if (spent == NULL || spent->n_causes == 0) {
        return NULL;
    }
    const char *why = recover_is_own_link(fault) && causes_are_own(spent)
                          ? "for its process cannot connect to the other ranks"
                      : recover_is_of_links(fault) && causes_are_of_mesh(spent)
                          ? "for its process and other ranks do not reach each other"
                          : "so that the step or evaluation behind it may be what kills it";
    const char *head = emit_text(
        s, "rank %u was lost %u times, and the job did not get beyond step %llu, %s: ", rank,
        spent->n + 1, (ull)spent->step, why);
    return emit_text(s, "%s%s", head,
                     causes_words(s, spent, job->run->members[rank].node_id, fault, text,
                                  MS_TEXT_MAX - strlen(head)));
}

static const char *why_lost(const struct job *job)
{
    for (uint32_t rank = 0; job->run->mends != NULL && rank < job->workers; rank++) {
        if (job->run->members[rank].hold == NULL && job->run->mends[rank].last != NULL) {
            return job->run->mends[rank].last;
        }
    }
    return "";
}

/* "": it has no pause. */
static const char *why_paused(const struct sched *s, const struct run *run)
{
    const bool is_paused = run->mends != NULL && run->again_ms > s->now.mono_ms;
    for (uint32_t rank = 0; is_paused && rank < run->job->workers; rank++) {
        if (run->members[rank].has_state && run->mends[rank].n_lost_now > 0) {
            return run->mends[rank].last;
        }
    }
    return "";
}

/* One more rank, the nth: " 1 2 5", and no more than are of use. */
static const char *list_more(struct sched *s, const char *list, uint32_t n, uint32_t rank)
{
    enum { SHOWN = 8 };
    return n <= SHOWN       ? emit_text(s, "%s %u", list, rank)
           : n == SHOWN + 1 ? emit_text(s, "%s ...", list)
                            : list;
}

static const char *list_ranks(struct sched *s, const struct job *job, bool vacant)
{
    const char *list = "";
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct member *member = &job->run->members[rank];
        if (vacant ? member->hold != NULL : member->state != RANK_PREPARING) {
            continue;
        }
        list = list_more(s, list, ++n, rank);
    }
    return emit_text(s, "rank%s%s", n == 1 ? "" : "s", list);
}

static const char *why_not_yet(struct sched *s, const struct run *run)
{
    return s->draining                 ? "the scheduler's next start: it is shutting down"
           : !recover_has_disk(s, run) ? emit_text(s, "disk space: %s", s->refusal)
           : !generations_left(s)      ? "ever: the cluster's generations have run out"
                                       : NULL;
}

/* Who has just stumbled is given a pause. */
static const char *vacant_words(struct sched *s, const struct job *job)
{
    const struct run *run = job->run;
    const int64_t left_ms = run->stumbled_until_ms - s->now.mono_ms;
    const long long left_s = (left_ms + 999) / 1000;
    int64_t until_ms = 0;
    const uint32_t awaited = recover_awaited(s, run, &until_ms);
    const bool has_home = home_rank(s, run) < job->workers;
    const struct node *home = has_home ? home_find(s, run) : NULL;
    if (has_home && home == NULL) {
        return home_words(s, run);
    }
    if (awaited < MS_WORKERS_MAX) {
        const int64_t most_ms = until_ms - s->now.mono_ms;
        return emit_text(s,
                         "waits for node %s: no process holds the state any more, but its own may, "
                         "for its end was not seen. In %lld s others take its place. ",
                         run->mends[awaited].holder.node_id, (long long)(most_ms + 999) / 1000);
    }
    if (has_home && left_ms > 0 && s->now.mono_ms < home_until_ms(s, run)) {
        return emit_text(s, "%sNode %s, which can read it, is asked again in %lld s. ",
                         home_words(s, run), home->info.node_id, left_s);
    }
    return left_ms > 0 && vacant_n_fit(s, run) > 0
               ? emit_text(s, "asks an idle node in %lld s to take %s%s. ", left_s,
                           list_ranks(s, job, true), formers_words(s, run))
               : emit_text(s, "waits for a node to take %s: %s%s. ", list_ranks(s, job, true),
                           s->mode->takers, formers_words(s, run));
}

const char *recover_words(struct sched *s, const struct job *job)
{
    const struct run *run = job->run;
    const bool is_due = !list_empty(&run->recovering);
    const char *blocked = is_due ? why_not_yet(s, run) : NULL;
    if (blocked != NULL) {
        return emit_text(s, "lost ranks; waits for %s", blocked);
    }
    if (recover_n_vacant(run) > 0) {
        return text_behind(s, vacant_words(s, job), why_lost(job));
    }
    if (is_due && why_paused(s, run)[0] != '\0') {
        return text_behind(s, "tries again in a few seconds: ", why_paused(s, run));
    }
    if (is_due) {
        return "waits for its nodes to come back";
    }
    return emit_text(s, "generation %llu: waits for %s to load data, connect and take the state%s",
                     (ull)job->generation, list_ranks(s, job, false), formers_words(s, run));
}

/* Where it goes on, and what of that was told before. */
static const char *from_words(struct sched *s, const struct run *run, bool is_back)
{
    const struct mend *first = &run->mends[0];
    const ull step = (ull)first->state.step;
    const char *words =
        first->state.from == MS_STATE_CHECKPOINT
            ? emit_text(s, "goes on from the checkpoint of step %llu", step)
        : !is_back && step == 0
            ? "goes on after step 0, for no rank holds a later one or has a checkpoint of one"
        : is_back && step == 0 ? "begins anew, for no rank has a checkpoint that can be read"
        : is_back ? emit_text(s, "goes on after step %llu, for no rank held a later one", step)
                  : emit_text(s, "goes on after step %llu", step);
    if (!is_back) {
        return words;
    }
    return run->again_from == run->again_to
               ? emit_text(s, "%s: step %llu is trained again", words, (ull)run->again_to)
               : emit_text(s, "%s: steps %llu to %llu are trained again", words,
                           (ull)run->again_from, (ull)run->again_to);
}

const char *recover_state_words(struct sched *s, const struct job *job, const struct recovered *how)
{
    const char *words =
        emit_text(s, "generation %llu: %s; it stood still for %lld ms%s", (ull)job->generation,
                  from_words(s, job->run, how->is_back), (long long)how->still_ms,
                  how->is_least ? " since the scheduler is back" : "");
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct mend *mend = &job->run->mends[rank];
        const char *node = job->run->members[rank].node_id;
        if (mend->state.from == MS_STATE_PULLED) {
            words =
                emit_text(s,
                          "%s; rank %u (node %s) took %llu bytes from rank %u in %u ms, after %u "
                          "ms for data and plan",
                          words, rank, node, (ull)mend->state.bytes, mend->state.rank,
                          mend->state.ms, mend->state.prepared_ms);
        }
    }
    return words;
}

/* ---- what programs read of it -------------------------------------------------------------------
 */

static const char *how_lost(const struct sched *s, const struct member *member, enum fault fault)
{
    static const char *const names[FAULTS] = {
        [FAULT_LOST] = "lost",     [FAULT_LEFT] = "left",       [FAULT_MISSING] = "missing",
        [FAULT_FAILED] = "failed", [FAULT_LEAVING] = "leaving", [FAULT_GAVE_UP] = "gave_up",
        [FAULT_SHORT] = "short",   [FAULT_UNFIT] = "unfit",     [FAULT_COMPLAINT] = "complaint",
        [FAULT_UNTOLD] = "untold", [FAULT_UNREADY] = "unready", [FAULT_DISAGREE] = "disagree",
        [FAULT_MESH] = "mesh",     [FAULT_BESIDE] = "link",     [FAULT_LINK] = "link",
        [FAULT_OFF_MESH] = "mesh", [FAULT_WORN] = "mesh",
    };
    const struct node *node = fault == FAULT_LOST ? node_find(s, member->node_id) : NULL;
    return node != NULL ? notice_name(node->notice) : names[fault];
}

const char *recover_loss_facts(struct sched *s, const struct job *job, uint32_t rank,
                               enum fault fault, int64_t silent_ms)
{
    const struct run *run = job->run;
    const struct member *member = &run->members[rank];
    struct facts facts;
    facts_begin(&facts);
    facts_number(&facts, "generation", job->generation);
    facts_number(&facts, "rank", rank);
    facts_text(&facts, "node", member->node_id);
    facts_text(&facts, "host", member->host_name);
    facts_text(&facts, "how", how_lost(s, member, fault));
    if (fault == FAULT_COMPLAINT && run->complaint.made && run->complaint.by != rank) {
        facts_number(&facts, "by", run->complaint.by);
    }
    if (silent_ms >= 0) {
        facts_number(&facts, "silent_ms", (uint64_t)silent_ms);
    }
    if (run->furthest > 0) {
        facts_number(&facts, "step", run->furthest);
    }
    return facts_end(s, &facts);
}

const char *recover_round_facts(struct sched *s, const struct job *job)
{
    struct facts facts;
    facts_begin(&facts);
    facts_number(&facts, "generation", job->generation);
    facts_list(&facts, "ranks");
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct member *member = &job->run->members[rank];
        if (member->state == RANK_LOST) {
            facts_item(&facts);
            facts_number(&facts, "rank", rank);
            facts_text(&facts, "node", member->node_id);
            facts_text(&facts, "host", member->host_name);
            facts_item_end(&facts);
        }
    }
    facts_list_end(&facts, "ranks_left_out");
    return facts_end(s, &facts);
}

static void put_state(struct facts *facts, const struct job *job, uint32_t rank)
{
    const struct mend *mend = &job->run->mends[rank];
    facts_item(facts);
    facts_number(facts, "rank", rank);
    facts_text(facts, "node", job->run->members[rank].node_id);
    facts_number(facts, "from_rank", mend->state.rank);
    facts_number(facts, "bytes", mend->state.bytes);
    facts_number(facts, "ms", mend->state.ms);
    facts_number(facts, "prepared_ms", mend->state.prepared_ms);
    facts_number(facts, "joined_ms", mend->state.joined_ms);
    facts_item_end(facts);
}

const char *recover_state_facts(struct sched *s, const struct job *job, const struct recovered *how)
{
    const struct run *run = job->run;
    const struct mend *first = &run->mends[0];
    struct facts facts;
    facts_begin(&facts);
    facts_number(&facts, "generation", job->generation);
    facts_number(&facts, "step", first->state.step);
    facts_text(&facts, "from",
               first->state.from == MS_STATE_CHECKPOINT ? "checkpoint"
               : how->is_back && first->state.step == 0 ? "beginning"
                                                        : "peer");
    facts_number(&facts, "again_from", how->is_back ? run->again_from : 0);
    facts_number(&facts, "again_to", how->is_back ? run->again_to : 0);
    facts_number(&facts, "stood_still_ms", (uint64_t)how->still_ms);
    facts_flag(&facts, "stood_still_least", how->is_least);
    facts_list(&facts, "ranks");
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        if (run->mends[rank].state.from == MS_STATE_PULLED) {
            put_state(&facts, job, rank);
        }
    }
    facts_list_end(&facts, "ranks_left_out");
    return facts_end(s, &facts);
}
