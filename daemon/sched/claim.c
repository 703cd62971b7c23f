/* claim.c - what a process says that it holds: believed so far, taken up, or told to let go */
#include "daemon/sched/state.h"

#include <assert.h>

typedef unsigned long long ull;

/* The highest generation that a node may report: all claims since the start together raise ours by
 * one step at the most, and never to where the next start would refuse it. */
static uint64_t generation_highest(const struct sched *s)
{
    uint64_t step = MS_GENERATION_STEP_MAX - s->generation_raised;
    uint64_t room = MS_GENERATION_MAX - 1 - s->generation;
    return s->generation + (step < room ? step : room);
}

/* Likewise the job ids that nodes may name: a database that was restored must not give them again.
 */
static uint64_t job_highest(const struct sched *s)
{
    uint64_t step = MS_GENERATION_STEP_MAX - s->jobs_raised;
    uint64_t room = MS_JOB_ID_MAX - 1 - s->next_job;
    return s->next_job + (step < room ? step : room) - 1;
}

/* NULL, or why what it says of its job cannot be true. */
const char *claim_refusal(struct sched *s, const Ms__Register *msg)
{
    if (msg->generation > generation_highest(s)) {
        return emit_text(s,
                         "node %s reports generation %llu, and this cluster is at %llu: it is of "
                         "another cluster, or lies; restart that worker",
                         msg->node_id, (ull)msg->generation, (ull)s->generation);
    }
    if (msg->job > job_highest(s)) {
        return emit_text(s,
                         "node %s says that it has job %llu, and the next one here is %llu: it is "
                         "of another cluster, or lies; restart that worker",
                         msg->node_id, (ull)msg->job, (ull)s->next_job);
    }
    return NULL;
}

static void raise_generation(struct sched *s, uint64_t generation, const char *by)
{
    if (generation > s->generation && generation <= generation_highest(s)) {
        s->generation_raised += generation - s->generation;
        s->generation = generation;
        emit_put_meta(s, "generation", generation);
        emit_log(s, MS_LOG_WARNING,
                 "generation.raised generation=%llu: a node knows a newer one, "
                 "going on above it",
                 (ull)generation);
        event_of_all(s, "generation.raised", by,
                     emit_text(s, "to %llu: a node knows a newer one", (ull)generation),
                     event_number(s, "generation", generation));
    }
}

static void raise_next_job(struct sched *s, uint64_t job, const char *by)
{
    if (job >= s->next_job && job <= job_highest(s) && s->mode->no_submit == NULL) {
        s->jobs_raised += job + 1 - s->next_job;
        s->next_job = job + 1;
        emit_put_meta(s, "next_job", s->next_job);
        emit_log(s, MS_LOG_WARNING,
                 "job.next_raised next=%llu: a node has a job that the database does not know, "
                 "going on above it",
                 (ull)s->next_job);
        event_of_all(s, "job.next_raised", by,
                     emit_text(s, "to %llu: a node has a job that the database does not know",
                               (ull)s->next_job),
                     event_number(s, "next_job", s->next_job));
    }
}

void claim_raise(struct sched *s, const struct claim *claim, const char *by)
{
    raise_next_job(s, claim->job, by);
    raise_generation(s, claim->generation, by);
}

/* Of a job that recovers: it was assigned anew, and has not heard of it; or it was to stop in the
 * generation that it knew, and says that it knows a newer one. */
static struct hold *find_other(const struct node *node, const struct claim *claim)
{
    struct hold *hold = hold_first(node);
    const bool is_its = hold != NULL && hold->job != NULL && hold->job->recovery &&
                        hold->job_id == claim->job && hold->rank == claim->rank;
    return is_its && claim->generation <= hold->job->generation ? hold : NULL;
}

/* The rank that the process says it holds, if it is one that we gave to exactly this process. */
struct hold *claim_find(const struct node *node, const struct node_info *info,
                        const struct claim *claim)
{
    struct hold *hold = hold_find(node, claim->job, claim->generation, claim->rank);
    hold = hold != NULL ? hold : find_other(node, claim);
    return hold != NULL && hold->job != NULL &&
                   hold->job->run->members[hold->rank].incarnation == info->incarnation
               ? hold
               : NULL;
}

/* A rank of a job that is over, or that never was: the process has to let go of it. */
void claim_stop(struct sched *s, struct node *node, const struct claim *claim)
{
    const struct job *job = job_find(s, claim->job);
    int code = MS_E_ABORTED;
    const char *text = NULL;
    if (job == NULL) {
        text = emit_text(s, "job %llu is not known to this scheduler%s", (ull)claim->job,
                         s->cfg.has_database ? ""
                                             : ", which was started anew and keeps no jobs across "
                                               "that: start the job's processes again");
    } else if (job_is_ended(job)) {
        code = job->code;
        text = job->reason;
    } else if (job->run != NULL && job->run->cancelling) {
        code = MS_E_CANCELLED;
        text = emit_text(s, "%s; its other ranks stop without this one", job->run->cancel_text);
    } else if (job->state == JOB_QUEUED) {
        text = emit_text(s,
                         "job %llu waits in the queue again: while its ranks were getting ready "
                         "one was lost, or the scheduler restarted",
                         (ull)claim->job);
    } else {
        text =
            emit_text(s,
                      "job %llu runs in generation %llu without this process, which has "
                      "rank %u of generation %llu",
                      (ull)claim->job, (ull)job->generation, claim->rank, (ull)claim->generation);
    }
    if (hold_find(node, claim->job, claim->generation, claim->rank) == NULL) {
        hold_let_go(s, hold_add(s, node, claim->job, claim->generation, claim->rank));
    }
    if (job != NULL && job_is_ended(job)) {
        s->mode->found_ended(s, job, node, claim);
    }
    send_stop(s, node, claim->job, claim->generation, code, text);
}

/* If we had been away ourselves, that is part of the cause. Where nobody vouches for the end of the
 * first process, it is only known that it did not find us again. */
static const char *why_lost(struct sched *s, const struct job *job, uint32_t rank,
                            bool same_process)
{
    const struct run *run = job->run;
    const bool is_missing = run->members[rank].state == RANK_MISSING;
    if (is_missing && !same_process && s->mode->by_hand) {
        return emit_text(
            s,
            "its process did not come back within %lld ms after %s, and another one has its place",
            (long long)(s->now.mono_ms - run->adopt.at_ms + run->expect_ms), run->expected);
    }
    const char *why = same_process ? "its process reconnected without the rank"
                                   : "its process ended and another one registered in its place";
    return is_missing ? emit_text(s, "%s after %s", why, run->expected) : why;
}

/* It was told to let go of what it claims. It may not have heard of the generation in which it was,
 * and has to be told of the one that it knows. */
static bool lets_go_of(struct hold *hold, const struct claim *claim)
{
    const bool is_it = hold->job == NULL && hold->job_id == claim->job &&
                       hold->rank == claim->rank && hold->generation >= claim->generation;
    if (is_it) {
        hold->generation = claim->generation;
    }
    return is_it;
}

/* Ranks that we gave to this node id and that its process does not have now. Of those it was told
 * to let go of, the claimed one stays: it has yet to. */
void claim_lose_others(struct sched *s, struct node *node, const struct hold *ours,
                       const struct claim *claim, bool same_process)
{
    struct list *at = node->holds.next;
    while (at != &node->holds) {
        struct hold *hold = list_item(at, struct hold, by_node);
        struct job *job = hold->job;
        uint32_t rank = hold->rank;
        at = at->next;
        if (hold == ours || lets_go_of(hold, claim)) {
            continue;
        }
        hold_drop(s, hold);
        node->notice = same_process ? NOTICE_RETURNED : NOTICE_REPLACED;
        if (job != NULL) {
            run_lost(s, job, rank, FAULT_LOST, MS_E_CLOSED,
                     rank_text(s, job, rank, "was lost", why_lost(s, job, rank, same_process)));
            at = node->holds.next; /* the end of a job may have changed the others */
        }
    }
}
