/* last.c - which ranks have what the last step left
 *
 *     holds     its process has that state in memory, whatever it was told of a round since
 *     has said  how it ended (RankDone), and was told of no round since
 *     has all   is done, and said the digest of what all ranks hold
 *     can end   has said such a digest, or holds the state: with no round to come it ends with it
 *     can save  ... and may be asked to
 *
 * Of a job that goes on after losses, whose ranks hold one state. How many steps there are is
 * stored; how they ended they say again after a restart. */
#include "daemon/sched/state.h"

bool last_is_made(const struct node *node, const Ms__RankDone *msg)
{
    return !msg->stopped && (msg->code == MS_OK || (msg->steps > 0 && !node->leaving));
}

static void note(struct run *run, uint64_t steps)
{
    run->last_step = steps > run->last_step ? steps : run->last_step;
}

void last_note_ready(struct run *run, const Ms__RankReady *msg)
{
    note(run, msg->steps_total); /* 0: of a release before this one, which does not say it */
}

void last_note_done(struct run *run, const struct node *node, const Ms__RankDone *msg)
{
    if (last_is_made(node, msg) && msg->code == MS_OK) { /* it may be sooner than was said */
        run->last_step = msg->steps;
    } else if (last_is_made(node, msg)) {
        note(run, msg->steps);
    }
}

bool last_is_known(const struct run *run)
{
    return run->last_step > 0 && run->job->recovery && job_has_begun(run->job);
}

bool last_is_short(const struct run *run, uint64_t step)
{
    return run->last_step == 0 || step < run->last_step || step < run->furthest;
}

/* Whatever it has said of its end since: of a round, too. */
bool last_holds(const struct run *run, uint32_t rank)
{
    const struct member *member = &run->members[rank];
    return last_is_known(run) && member->hold != NULL && member->state != RANK_MISSING &&
           (member->has_state || member->state == RANK_READY) && !last_is_short(run, member->step);
}

/* It says the digest of what all ranks hold. */
static bool says_of_all(const struct run *run, uint32_t rank)
{
    return run->members[rank].weights_sha256[0] != '\0' ||
           (run->called_off && last_holds(run, rank));
}

/* One that stood, and has said no digest before, saves. */
bool last_can_save(const struct run *run, uint32_t rank)
{
    return rank == 0 || says_of_all(run, rank);
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
