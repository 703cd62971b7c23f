/* end.c - how the ranks of a placed job are released, and how any job ends */
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdlib.h>

void rank_release(struct sched *s, struct job *job, uint32_t rank, bool said_done, int code,
                  const char *text, const char *why)
{
    struct hold *hold = job->run->members[rank].hold;
    if (hold == NULL) {
        return;
    }
    hold_settle(hold);
    hold_let_go(s, hold);
    if (hold->node->state == NODE_NEW) {
        node_gone(s, hold->node, NOTICE_MISSING, why);
        return;
    }
    send_stop(s, hold->node, job->id, hold->generation, code, text);
    if (said_done || hold->has_said) { /* and waits for this word alone */
        hold_drop(s, hold);
    }
}

/* Every rank hears Stop. Those that had said RankDone are free with it, the others when they
 * answer; one that never came back after a restart is lost. */
static void ranks_stop(struct sched *s, struct job *job, int code, const char *text)
{
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct member *member = &job->run->members[rank];
        const bool over = rank_is_over(member);
        if (!over) {
            rank_set(job->run, rank, RANK_ON_STOP);
        }
        rank_release(s, job, rank, over, code, text,
                     member->hold != NULL && member->hold->node->state == NODE_NEW
                         ? emit_text(s, "job %llu was over before it came back after %s",
                                     (unsigned long long)job->id, member->hold->node->expected)
                         : "");
    }
}

/* Nobody waits for its ranks any more. */
static void run_close(struct sched *s, struct job *job, int code, const char *text)
{
    timer_stop(s, &job->run->ready);
    timer_stop(s, &job->run->adopt);
    timer_stop(s, &job->run->grace);
    timer_stop(s, &job->run->back);
    timer_stop(s, &job->run->complaint.timer);
    timer_stop(s, &job->run->unfit_timer);
    timer_stop(s, &job->run->round);
    timer_stop(s, &job->run->evals_due);
    if (!list_empty(&job->run->recovering)) {
        list_remove(&job->run->recovering);
        s->due |= DUE_PLACE; /* the nodes that it wanted are the queue's again */
    }
    run_forget_mends(job->run);
    links_forget(job->run);
    formers_release(s, job->run, code, text);
    ranks_stop(s, job, code, text);
    save_forget(s, job->run);
}

static void log_end(struct sched *s, const struct job *job)
{
    static const char *const names[JOB_STATES] = {
        [JOB_SUCCEEDED] = "succeeded", [JOB_FAILED] = "failed", [JOB_CANCELLED] = "cancelled"};
    emit_log(s, job->state == JOB_FAILED ? MS_LOG_WARNING : MS_LOG_NOTICE,
             "job.%s job=%llu generation=%llu code=%s reason=%s", names[job->state],
             (unsigned long long)job->id, (unsigned long long)job->generation,
             emit_quote(s, ms_code_name(job->code)), emit_quote(s, job->reason));
}

/* Of one that ended early: the last that any of its ranks told of, or said as it ended. */
static uint64_t last_step(const struct job *job)
{
    const struct run *run = job->run;
    uint64_t step = run->furthest;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        step = run->members[rank].steps > step ? run->members[rank].steps : step;
    }
    return step;
}

static const char *end_facts(struct sched *s, const struct job *job)
{
    struct facts facts;
    facts_begin(&facts);
    facts_number(&facts, "generation", job->generation);
    facts_text(&facts, "code", ms_code_name(job->code));
    facts_number(&facts, "steps", job->steps);
    return facts_end(s, &facts);
}

void job_end(struct sched *s, struct job *job, enum job_event event, int code, const char *text)
{
    bool was_placed = job_is_placed(job);
    if (job->state == JOB_QUEUED) {
        load_requeue(s, job); /* or the database would keep the ranks that it had */
        queue_remove(s, job);
    }
    job->code = code;
    if (event != JOB_ON_SUCCESS && job->run != NULL) {
        job->steps = last_step(job);
    }
    job_set(s, job, event, text, end_facts(s, job));
    job_set_reason(job, text);
    plan_settle(s, job);
    purse_remove(s, job);
    spec_settle(s, job);
    job->ended_ms = s->now.wall_ms;
    emit_put_job(s, job, false);
    log_end(s, job);
    s->mode->job_ended(s, job);
    if (was_placed) {
        run_close(s, job, job->code, job->reason);
        for (uint32_t rank = 0; rank < job->workers; rank++) {
            emit_put_member(s, job, rank); /* what it shows now it shows after a restart, too */
        }
    }
    waiters_answer(s, job);
    watch_stir(s, job);
    job_keep(s, job); /* last: it may drop the job */
}

void job_requeue(struct sched *s, struct job *job, const char *text)
{
    run_close(s, job, MS_E_ABORTED,
              text_behind(
                  s,
                  emit_text(s, "job %llu goes back into the queue: ", (unsigned long long)job->id),
                  text));
    job_set(s, job, JOB_ON_REQUEUE, text, event_number(s, "generation", job->generation));
    emit_log(s, MS_LOG_WARNING, "job.requeued job=%llu generation=%llu tries=%u reason=%s",
             (unsigned long long)job->id, (unsigned long long)job->generation, job->n_tries,
             emit_quote(s, text));
    job_set_reason(job, text); /* why it had to: it is part of what the queue says */
    job->generation = 0;
    run_free(job->run);
    job->run = NULL;
    if (!job->plan_given) {
        plan_detach(s, job); /* it was made for the ranks that there were */
    }
    emit_put_job(s, job, false);
    emit_drop_members(s, job);
    queue_add(s, job);
    watch_stir(s, job);
}
