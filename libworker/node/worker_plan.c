/* worker_plan.c - the plan that a rank is told to obey, until the trainer makes it
 *
 * There is one place for the rank in hand and one for the next; one that goes on under another
 * generation keeps the plan that it has. */
#include "libworker/node/worker_impl.h"

#include "proto/log.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <string.h>

static void drop(Ms__Plan **plan)
{
    if (*plan != NULL) {
        ms_wire_free(&(*plan)->base);
    }
    *plan = NULL;
}

void worker_leave_plan(struct worker *worker)
{
    const int goes_on = worker->life.generation != 0 && worker->life.has_trained;
    if (!goes_on) {
        drop(&worker->plan);
    }
}

void worker_next_plan(struct worker *worker)
{
    if (worker->plan == NULL) {
        worker->plan = worker->kept_plan;
        worker->kept_plan = NULL;
    }
    drop(&worker->kept_plan);
}

void worker_drop_plans(struct worker *worker)
{
    drop(&worker->plan);
    drop(&worker->kept_plan);
}

/* Where the plan for that generation belongs; NULL: nowhere. Under the lock. */
static Ms__Plan **plan_slot(struct worker *worker, uint64_t generation)
{
    if (worker->assign != NULL && worker->assign->generation == generation) {
        return &worker->plan;
    }
    if (worker->kept != NULL && worker->kept->generation == generation) {
        return worker->life.is_held ? &worker->plan : &worker->kept_plan; /* held: to go on */
    }
    return NULL;
}

int worker_take_plan(struct worker *worker, Ms__Plan *plan)
{
    struct life_input input = {
        .event = LIFE_PLAN, .job = plan->job, .generation = plan->generation};
    pthread_mutex_lock(&worker->lock);
    Ms__Plan **slot = plan_slot(worker, plan->generation);
    const int is_second = slot != NULL && *slot != NULL;
    const int is_other = is_second && strcmp((*slot)->plan, plan->plan) != 0;
    if (is_other) {
        input.code = MS_E_PROTOCOL;
        input.text = "the scheduler sent two plans that differ: which one all ranks obey is open";
    }
    int answer = is_second && !is_other ? LIFE_TAKEN : worker_apply(worker, &input, NULL);
    const int is_taken = slot != NULL && !is_second && answer == LIFE_TAKEN;
    if (is_taken) {
        *slot = plan;
    }
    pthread_mutex_unlock(&worker->lock);
    if (!is_taken && answer == LIFE_STALE) {
        return MS_E_FULL;
    }
    if (!is_taken) {
        ms_wire_free(&plan->base);
    }
    return 0;
}
