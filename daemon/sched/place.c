/* place.c - placement: all ranks of the first job in the queue, or none */
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *why_unsuited(struct sched *s, const struct job *job, uint32_t rank)
{
    const char *who = rank_words(s, job, rank);
    return job->recovery
               ? emit_text(s,
                           "%s is of a release (0.1) that cannot go on after a loss, and there are "
                           "not %u nodes that can: update msworker there, or submit the job with "
                           "`recovery: false`",
                           who, job->workers)
               : emit_text(s,
                           "%s is of a release (0.1) that knows no plan of others, and there are "
                           "not %u nodes that do: update msworker there, or submit the job without "
                           "--plan",
                           who, job->workers);
}

/* False: one of its ranks cannot serve it, and the job was lost. */
static bool all_suit(struct sched *s, struct job *job)
{
    for (uint32_t rank = 0; rank < job->workers && !job_is_for_all(job); rank++) {
        if (!node_knows_plans(job->run->members[rank].hold->node)) {
            run_lost(s, job, rank, FAULT_UNTOLD, MS_E_UNSUPPORTED, why_unsuited(s, job, rank));
            return false;
        }
    }
    return true;
}

void place_job(struct sched *s, struct job *job, struct node **nodes)
{
    queue_remove(s, job);
    job->generation = ++s->generation;
    run_create(job);
    job->n_tries++;
    job->n_met = s->n_registered > job->n_met ? s->n_registered : job->n_met;
    job_set(s, job, JOB_ON_PLACE,
            emit_text(s, "on %u node%s, generation %llu", job->workers,
                      job->workers == 1 ? "" : "s", (unsigned long long)job->generation),
            event_number(s, "generation", job->generation));
    emit_put_meta(s, "generation", s->generation);
    emit_put_job(s, job, false);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        run_give(s, job, rank, nodes[rank]);
        rank_begin(job->run, rank, RANK_PREPARING);
        emit_put_member(s, job, rank);
    }
    emit_log(s, MS_LOG_NOTICE, "job.placed job=%llu generation=%llu workers=%u name=%s",
             (unsigned long long)job->id, (unsigned long long)job->generation, job->workers,
             emit_quote(s, job->name));
    ready_expect(s, job->run);
    if (!run_assign(s, job)) {
        return;
    }
    if (!all_suit(s, job) || (job->plan_given && !run_tell_plan(s, job))) {
        return;
    }
    watch_stir(s, job);
    watch_news(s);
}

/* Sorting all of 16k idle nodes for each small job would cost 10 ms a job: a thousand more than it
 * wants are choice enough. */
enum { SPARE_CANDIDATES = 1000 };

/* Nodes for jobs that are not for all: those that are not idle are waited for. */
static uint32_t n_that_know_plans(const struct sched *s)
{
    uint32_t n = 0;
    for (const struct list *at = s->beating.next; at != &s->beating; at = at->next) {
        const struct node *node = list_item(at, const struct node, beating);
        n += node_is_usable(node) && node_knows_plans(node);
    }
    return n;
}

static size_t take_of(struct sched *s, struct node **nodes, size_t n, size_t room, bool all,
                      bool aside)
{
    for (struct list *at = s->idle.next; at != &s->idle && n < room; at = at->next) {
        struct node *node = list_item(at, struct node, idle);
        if ((all || node_knows_plans(node)) && !home_is_kept(s, node, NULL) &&
            host_is_aside(node->host) == aside) {
            nodes[n++] = node;
        }
    }
    return n;
}

/* Hosts that are set aside serve where no others can. */
static size_t take_idle(struct sched *s, struct node **nodes, size_t room, uint32_t want, bool all)
{
    const size_t n = take_of(s, nodes, 0, room, all, false);
    return n < want ? take_of(s, nodes, n, room, all, true) : n;
}

static bool place_first(struct sched *s)
{
    struct job *job = queue_next(s);
    const uint64_t was_short = s->queue.short_job;
    s->queue.short_job = 0;
    if (recover_wants_nodes(s)) { /* of a job that runs: it goes first */
        return false;
    }
    if (job == NULL || s->draining || s->refusal[0] != '\0' || !generations_left(s)) {
        return false;
    }
    if (job->workers + home_mark(s) > s->n_idle) {
        return false; /* nobody overtakes: a large job would never start */
    }
    size_t room = job->workers + SPARE_CANDIDATES;
    struct node **nodes = emit_alloc(s, room * sizeof(struct node *));
    size_t n = take_idle(s, nodes, room, job->workers, job_is_for_all(job));
    if (n < job->workers &&
        (n_that_know_plans(s) >= job->workers || queue_may_grow(s, job, was_short))) {
        return false; /* some are busy, or on their way */
    }
    if (n < job->workers) { /* it ends, in words that name one */
        n = take_idle(s, nodes, room, job->workers, true);
    }
    assert(n >= job->workers);
    rank_choose(s, nodes, n, job->workers);
    place_job(s, job, nodes);
    return true;
}

void place_settle(struct sched *s)
{
    /* nodes that are as silent as those just lost would be next in line, and cost the job a try */
    while ((s->due & DUE_PLACE) != 0 && !s->leases_behind && !sched_tick_is_full(s)) {
        s->due &= ~(unsigned)DUE_PLACE;
        s->due |= recover_settle(s) || place_first(s) ? DUE_PLACE : 0;
    }
}
