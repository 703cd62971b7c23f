/* budget.c - how often a rank may be lost, and when that was in vain
 *
 *     since   losses with no committed step in between. A job that had to go back, to a checkpoint
 *             or to its beginning, makes its steps anew, and they count
 *     wall    losses at the furthest step at which the rank was ever lost: what it computes there
 *             may be what kills it, however often the job goes back and comes there again */
#include "daemon/sched/state.h"

#include <stdlib.h>

/* Of those that rank 0 makes between two Progresses nobody hears, if it dies. */
static uint64_t told_at_once(const struct run *run)
{
    enum { STEPS_MAX = 1000000 };
    const double step_ms = run->has_progress ? run->progress.msg.step_ms : 0;
    const double steps = step_ms > 0 ? MS_PROGRESS_MS / step_ms : 0;
    return 1 + (steps < STEPS_MAX ? (uint64_t)steps : STEPS_MAX);
}

static bool is_at_wall(const struct run *run, uint32_t rank)
{
    const struct losses *wall = &run->mends[rank].wall;
    return wall->n > 0 && run->furthest <= wall->step &&
           wall->step - run->furthest <= told_at_once(run);
}

uint32_t budget_in_vain(const struct run *run, uint32_t rank)
{
    const struct mend *mend = run->mends != NULL ? &run->mends[rank] : NULL;
    return mend == NULL || (mend->n_lost_now == 0 && run->furthest > mend->since.step)
               ? 0
               : mend->since.n;
}

const struct losses *budget_spent(const struct run *run, uint32_t rank)
{
    const struct mend *mend = run->mends != NULL ? &run->mends[rank] : NULL;
    if (budget_in_vain(run, rank) >= MS_RESTARTS_MAX) {
        return &mend->since;
    }
    return mend != NULL && mend->wall.n >= MS_RESTARTS_MAX && is_at_wall(run, rank) ? &mend->wall
                                                                                    : NULL;
}

/* ---- a loss -------------------------------------------------------------------------------------
 */

static void add(struct losses *losses, uint64_t step, const char *node_id, enum fault fault,
                const char *text)
{
    causes_add(losses, node_id, fault, text);
    losses->step = step > losses->step || losses->n == 0 ? step : losses->step;
    losses->n++;
}

static void forget(struct losses *losses)
{
    free(losses->causes);
    *losses = (struct losses){0};
}

void budget_count(struct run *run, uint32_t rank, enum fault fault, const char *text)
{
    struct mend *mend = run_mend(run, rank);
    const char *node_id = run->members[rank].node_id;
    const uint64_t step = run->furthest;
    if (budget_in_vain(run, rank) == 0) {
        forget(&mend->since);
    }
    if (step > mend->wall.step) {
        forget(&mend->wall);
    }
    if (mend->wall.n == 0 || is_at_wall(run, rank)) {
        add(&mend->wall, step, node_id, fault, text);
    }
    add(&mend->since, step, node_id, fault, text);
    mend->n_lost_now++;
}

/* ---- a loss that was none -----------------------------------------------------------------------
 */

static void copy(struct losses *to, const struct losses *from)
{
    free(to->causes);
    *to = *from;
    if (from->causes != NULL) {
        to->causes = memory_take(MS_RESTARTS_MAX * sizeof(*to->causes));
        memcpy(to->causes, from->causes, MS_RESTARTS_MAX * sizeof(*to->causes));
    }
}

void budget_keep(struct run *run, uint32_t rank)
{
    struct mend *mend = run_mend(run, rank);
    copy(&mend->before.since, &mend->since);
    copy(&mend->before.wall, &mend->wall);
    mend->before.n_lost_now = mend->n_lost_now;
    mend->before.n_unready = mend->n_unready;
    mend->before.n_missed = mend->n_missed;
}

/* ---- steps --------------------------------------------------------------------------------------
 */

static void move_on(struct losses *losses, uint32_t n_lost_now, uint64_t step)
{
    if (step > losses->step) {
        losses->n = n_lost_now;
        causes_keep_last(losses, n_lost_now);
        losses->step = step;
    }
}

/* Losses since the last start were at this step, and those before at none that counts with it. */
static void got_further(struct run *run)
{
    links_got_further(run);
    for (uint32_t rank = 0; run->mends != NULL && rank < run->job->workers; rank++) {
        struct mend *mend = &run->mends[rank];
        if (mend->n_lost_now > 0) {
            move_on(&mend->since, mend->n_lost_now, run->furthest);
            move_on(&mend->wall, mend->n_lost_now, run->furthest);
        }
    }
}

void budget_take_back(struct run *run, uint32_t rank)
{
    struct mend *mend = run_mend(run, rank);
    copy(&mend->since, &mend->before.since);
    copy(&mend->wall, &mend->before.wall);
    mend->n_lost_now = mend->before.n_lost_now;
    mend->n_unready = mend->before.n_unready;
    mend->n_missed = mend->before.n_missed;
    got_further(run); /* a step may have been told of meanwhile */
}

static void saw_step(struct run *run, uint64_t step)
{
    if (step > run->furthest) {
        run->furthest = step;
        if (run->stands_still) { /* it was told late */
            got_further(run);
        } else {
            links_got_further(run);
        }
    }
}

/* Links that are good again may let in a node that none of those that wait is better than. */
void recover_saw_step(struct sched *s, struct run *run, uint64_t step)
{
    const uint32_t n_links = run->n_links;
    saw_step(run, step);
    s->due |= run->stands_still && run->n_links < n_links ? DUE_PLACE : 0;
}

static bool all_are_at(struct run *run, uint64_t step)
{
    bool are = true;
    for (uint32_t rank = 0; are && rank < run->job->workers; rank++) {
        are = run_mend(run, rank)->state.step == step;
    }
    return are;
}

void budget_start(struct run *run)
{
    const uint64_t step = run_mend(run, 0)->state.step;
    saw_step(run, step);
    got_further(run);
    const bool goes_back = step < run->furthest && all_are_at(run, step);
    run->furthest = goes_back ? step : run->furthest;
    links_started(run);
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        struct mend *mend = run_mend(run, rank);
        mend->n_lost_now = mend->n_unready = mend->n_missed = 0;
        if (goes_back && mend->since.step > step) {
            mend->since.step = step;
        }
    }
}
