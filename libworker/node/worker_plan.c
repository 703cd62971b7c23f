/* worker_plan.c - the plan that a rank is told to obey, until the trainer makes it
 *
 * There is one place for the rank in hand and one for the next; one that goes on under another
 * generation keeps the plan that it has. */
#include "libworker/node/worker_impl.h"

#include "proto/file_write.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
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
    const int goes_on = worker->life.generation != 0 && worker->life.has_obeyed;
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

void worker_drop_kept_plan(struct worker *worker)
{
    drop(&worker->kept_plan);
}

void worker_drop_plans(struct worker *worker)
{
    drop(&worker->plan);
    drop(&worker->kept_plan);
}

int worker_find_plan(const struct worker *worker, const char **ret, struct ms_err *err)
{
    /* no order changes it before it is obeyed */
    const char *heard = worker->plan != NULL ? worker->plan->plan : NULL;
    const char *own = worker->cfg->plan;
    if (own != NULL && heard != NULL && strcmp(own, heard) != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "rank 0 trains by another plan than --plan of this worker says: start all "
                       "workers with the same file");
    }
    *ret = heard != NULL ? heard : own;
    return 0;
}

/* Of a dynamic cluster, whose scheduler ends with the job: nobody can be asked for it then. Other
 * jobs' plans are kept for `msctl show --plan`. */
void worker_write_plan(struct worker *worker)
{
    char path[MS_PATH_MAX + sizeof("/plan.txt")];
    char note[MS_PATH_MAX + MS_ERR_TEXT_MAX];
    const char *text = train_plan_text(worker->train);
    struct ms_err err = {0, ""};
    if (worker->cfg->mode != WORKER_DYNAMIC || worker->rank != 0 || worker->run_dir[0] == '\0') {
        return;
    }
    snprintf(path, sizeof(path), "%s/plan.txt", worker->run_dir);
    if (ms_file_save(path, text, strlen(text), &err) < 0) {
        snprintf(note, sizeof(note), "%s is not written: %s", path, err.text);
        worker_on_note(worker, note);
    }
}

/* Where the plan for that generation belongs; NULL: nowhere. Under the lock. */
static Ms__Plan **plan_slot(struct worker *worker, uint64_t generation)
{
    if (worker->assign != NULL && worker->assign->generation == generation) {
        return &worker->plan;
    }
    if (worker->kept != NULL && worker->kept->generation == generation) {
        return &worker->kept_plan;
    }
    return NULL;
}

/* What has to be in that place, as far as it is settled: a rank that is held to go on obeys one
 * already. NULL: anything. Under the lock. */
static const Ms__Plan *settled(const struct worker *worker, Ms__Plan *const *slot)
{
    const int goes_on = worker->life.state == LIFE_HOLDING && worker->life.is_held;
    return slot == NULL ? NULL : *slot != NULL ? *slot : goes_on ? worker->plan : NULL;
}

int worker_take_plan(struct worker *worker, Ms__Plan *plan)
{
    struct life_input input = {
        .event = LIFE_PLAN, .job = plan->job, .generation = plan->generation};
    pthread_mutex_lock(&worker->lock);
    Ms__Plan **slot = plan_slot(worker, plan->generation);
    const Ms__Plan *same = settled(worker, slot);
    const int is_second = slot != NULL && *slot != NULL;
    const int is_other = same != NULL && strcmp(same->plan, plan->plan) != 0;
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
