/* last.c - which ranks have what the last step left
 *
 *     holds     its process has that state in memory, whatever it was told of a round since
 *     has said  how it ended (RankDone), and was told of no round since
 *     has all   is done, and said the digest of what all ranks hold
 *     can end   has said such a digest, or holds the state: with no round to come it ends with it
 *     can save  ... and may be asked to: weights that are the job's
 *
 * Of ranks that train for themselves the job's weights are rank 0's. Stored is how many steps there
 * are, whether the ranks hold one state, and of those that do not how many each makes, and whether
 * it has saved what it had to: how they ended else all say again after a restart. */
#include "daemon/sched/state.h"

bool last_is_made(const struct node *node, const Ms__RankDone *msg)
{
    return !msg->stopped && (msg->code == MS_OK || (msg->steps > 0 && !node->leaving));
}

static void note(struct run *run, uint32_t rank, uint64_t steps)
{
    run->members[rank].last_step = steps;
    run->last_step = steps > run->last_step ? steps : run->last_step;
}

void last_note_ready(struct run *run, uint32_t rank, const Ms__RankReady *msg)
{
    if (msg->steps_total > 0) { /* a release before this one does not say it */
        note(run, rank, msg->steps_total);
    }
}

void last_note_done(struct run *run, const struct node *node, const Ms__RankDone *msg)
{
    if (last_is_made(node, msg) && msg->steps > run->members[msg->rank].last_step) {
        note(run, msg->rank, msg->steps);
    }
}

/* Of one that trains for itself its own, whose data may be other data. */
static uint64_t last_of(const struct run *run, uint32_t rank)
{
    const uint64_t own = run->replicas == REPLICAS_APART ? run->members[rank].last_step : 0;
    const uint64_t most = run->last_step > run->furthest ? run->last_step : run->furthest;
    return own > 0 ? own : most;
}

bool last_is_short(const struct run *run, uint32_t rank, uint64_t step)
{
    return run->last_step == 0 || step < last_of(run, rank);
}

bool last_is_made_by(const struct run *run, uint32_t rank)
{
    const struct member *member = &run->members[rank];
    return member->has_made || !last_is_short(run, rank, member->step);
}

/* Wherever they are now, or those that had their ranks: nobody wants their weights. */
static bool all_have_made_theirs(const struct run *run)
{
    bool have = true;
    for (uint32_t rank = 0; have && rank < run->job->workers; rank++) {
        have = last_is_made_by(run, rank);
    }
    return have;
}

bool last_is_saved_apart(const struct run *run)
{
    return run->replicas == REPLICAS_APART && run->members[0].is_complete &&
           all_have_made_theirs(run);
}

/* Whatever it has said of its end since: of a round, too. */
bool last_holds(const struct run *run, uint32_t rank)
{
    const struct member *member = &run->members[rank];
    const bool is_here = member->hold != NULL && member->state != RANK_MISSING &&
                         (member->has_state || member->state == RANK_READY) &&
                         !last_is_short(run, rank, member->step);
    return is_here && (run->replicas == REPLICAS_ALIKE ||
                       (run->replicas == REPLICAS_APART && rank == 0 && all_have_made_theirs(run)));
}

/* One that trains for itself says no digest, and one that stood none before it saves. */
bool last_can_save(const struct run *run, uint32_t rank)
{
    return rank == 0 ||
           (run->replicas != REPLICAS_APART && run->members[rank].weights_sha256[0] != '\0') ||
           (run->called_off && last_holds(run, rank));
}

/* It says the digest of what all ranks hold. Of those that train for themselves rank 0 alone says
 * one. */
static bool says_of_all(const struct run *run, uint32_t rank)
{
    return (run->members[rank].weights_sha256[0] != '\0' && run->replicas != REPLICAS_APART &&
            (rank != 0 || run->replicas == REPLICAS_ALIKE)) ||
           (run->called_off && last_holds(run, rank));
}

/* It is done, and so no rank has a step to make. */
bool last_has_all(const struct run *run, uint32_t rank)
{
    return run->members[rank].state == RANK_DONE && says_of_all(run, rank);
}

/* Or it was told of no round since it said so. */
bool last_has_said(const struct member *member)
{
    return member->state == RANK_DONE ||
           ((member->state == RANK_TRAINING || member->state == RANK_PREPARING) &&
            member->hold != NULL && member->hold->has_said && member->hold->heard == 0);
}

/* Where no round comes any more it ends with the weights, or has. */
bool last_can_end(const struct run *run, uint32_t rank)
{
    return (last_has_said(&run->members[rank]) && says_of_all(run, rank)) || last_holds(run, rank);
}

bool last_one_has_all(const struct run *run)
{
    bool has = false;
    for (uint32_t rank = 0; !has && rank < run->job->workers; rank++) {
        has = last_has_all(run, rank);
    }
    return has;
}
