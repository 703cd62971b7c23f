/* run_stop.c - the end of a private cluster: workers first, then the scheduler, nothing is left
 *
 *     grace -> TERM to workers -> KILL | all workers reaped -> TERM to the scheduler -> KILL | over
 *
 * The scheduler outlives the workers so that none of them logs a lost connection on the good path.
 */
#include "cli/run.h"

size_t run_workers_alive(const struct run *run)
{
    size_t n = 0;
    for (size_t i = 1; i < run->n_children; i++) {
        n += (size_t)child_is_alive(&run->children[i]);
    }
    return n;
}

static void signal_workers(struct run *run, int number)
{
    for (size_t i = 1; i < run->n_children; i++) {
        child_signal(&run->children[i], number);
    }
}

/* Started again too late for a rank: nobody would tell it that the job has ended. */
static void term_spare_workers(struct run *run)
{
    const Ms__JobInfo *job = run->n_restarts > 0 && run->last != NULL ? run->last->job : NULL;
    for (size_t i = 0; job != NULL && i < job->n_ranks && 1 + i < run->n_children; i++) {
        struct child *child = &run->children[1 + i]; /* here ranks are node ids */
        if (job->ranks[i]->pid != (uint32_t)child->pid) {
            child_signal(child, SIGTERM);
        }
    }
}

/* What the next passing of RUN_TIMER_STOP does. */
enum stop_step { STOP_TERM_WORKERS, STOP_KILL_WORKERS, STOP_KILL_SCHEDULER };

static void set_step(struct run *run, enum stop_step step, int64_t ms)
{
    run->stop_step = (int)step;
    run_timer_set(run, RUN_TIMER_STOP, ms);
}

static void term_workers(struct run *run)
{
    signal_workers(run, SIGTERM);
    set_step(run, STOP_KILL_WORKERS, run->term_ms);
}

/* The job has not ended, and no scheduler sees to that: TERM is all that they hear. */
static int may_save(const struct run *run)
{
    return run->job.recovery && run->stage == RUN_TRAINING && !run_job_ended(run);
}

void run_stop(struct run *run, int64_t grace_ms)
{
    if (run->stage >= RUN_STOPPING) {
        return;
    }
    run->term_ms = may_save(run) ? RUN_SAVE_MS : RUN_TERM_MS;
    run->stage = RUN_STOPPING;
    if (grace_ms > 0) {
        term_spare_workers(run);
        set_step(run, STOP_TERM_WORKERS, grace_ms);
    } else {
        term_workers(run);
    }
}

void run_kill(struct run *run)
{
    for (size_t i = 0; i < run->n_children; i++) {
        child_signal(&run->children[i], SIGKILL);
    }
    run->stage = run->stage < RUN_STOPPING ? RUN_STOPPING : run->stage;
}

static void on_time(struct run *run)
{
    switch ((enum stop_step)run->stop_step) {
    case STOP_TERM_WORKERS:
        term_workers(run);
        break;
    case STOP_KILL_WORKERS:
        signal_workers(run, SIGKILL);
        break;
    case STOP_KILL_SCHEDULER:
        child_signal(&run->children[0], SIGKILL);
        break;
    }
}

void run_stop_next(struct run *run)
{
    if (run->fired[RUN_TIMER_STOP]) {
        run->fired[RUN_TIMER_STOP] = 0;
        on_time(run);
    }
    if (run_workers_alive(run) > 0) {
        return;
    }
    if (run->n_children == 0 || !child_is_alive(&run->children[0])) {
        run->stage = RUN_OVER;
    } else if (!run->stop_scheduler) {
        run->stop_scheduler = 1;
        child_signal(&run->children[0], SIGTERM);
        set_step(run, STOP_KILL_SCHEDULER, RUN_SCHEDULER_TERM_MS);
    }
}
