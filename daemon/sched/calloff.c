/* calloff.c - nobody comes for a rank that is lost behind the last step
 *
 * Such a rank is replaced as after any step, so that log and metrics of the job are whole. But
 * while another one holds what the last step left, the job does not fail for a rank that is lost
 * once too often, that nobody takes, or that does not get ready, or hangs:
 *
 *     RECOVERING, called off -> whoever holds it stands there (Stop with code 0 and `stands`), and
 *                               says how it ended; the others are let go, and it is the end of a
 *                               RUNNING job again: save.c
 *
 * Where rank 0 could not save, and all others have ended, a lost rank is not replaced at all:
 * nothing is left to train, and a round might find no node. */
#include "daemon/sched/state.h"

bool calloff_may(const struct run *run, uint32_t without)
{
    bool can = false;
    for (uint32_t rank = 0; !can && !run->cancelling && rank < run->job->workers; rank++) {
        can = rank != without && last_can_end(run, rank);
    }
    return can && run->n_in[RANK_MISSING] == 0;
}

/* Of the others nobody has a step to make, and rank 0 could not save: one of them has, or can. */
static bool others_have_ended(const struct run *run, uint32_t rank)
{
    bool have = save_is_at_end(run) && run->unsaved;
    bool has_weights = run->kept[0] != '\0';
    for (uint32_t other = 0; have && other < run->job->workers; other++) {
        const struct member *member = &run->members[other];
        if (other != rank) {
            have = member->state == RANK_DONE || member->state == RANK_LOST ||
                   member->state == RANK_MISSING || member->passed_over;
            has_weights = has_weights || last_has_all(run, other);
        }
    }
    return have && has_weights;
}

bool calloff_goes_on_without(const struct run *run, uint32_t rank)
{
    return run->called_off ? calloff_may(run, rank) : others_have_ended(run, rank);
}

/* Whoever holds the state joins a mesh in no time; one that has yet to plan may take long. */
static bool awaits_newcomer(const struct run *run)
{
    bool does = false;
    for (uint32_t rank = 0; !does && rank < run->job->workers; rank++) {
        does = run->members[rank].state == RANK_PREPARING && !run->members[rank].has_state;
    }
    return does;
}

void calloff_watch_round(struct sched *s, struct run *run)
{
    timer_arm(s, &run->hang, TIMER_HANG, after_ms(s, MS_CANCEL_GRACE_MS));
}

/* A round that would only bring them to their end again, and one of them hangs. That no step is
 * left may be known since it began. */
void calloff_round_timeout(struct sched *s, struct run *run)
{
    if (!list_empty(&run->recovering) || run->cancelling) {
        return; /* it is over */
    }
    if (!awaits_newcomer(run) && calloff_may(run, run->job->workers)) {
        calloff_begin(s, run->job);
    } else {
        calloff_watch_round(s, run);
    }
}

/* It says how it ended, whatever it was told of a round. */
static void tell_to_stand(struct sched *s, const struct run *run, uint32_t rank)
{
    const struct member *member = &run->members[rank];
    if (member->state == RANK_TRAINING && last_holds(run, rank)) {
        hold_settle(member->hold);
        send_stop_at_step(s, member->hold, MS_OK,
                          "all steps are made, and the job ends without who is lost", false);
    }
}

void calloff_came_back(struct sched *s, const struct run *run, uint32_t rank)
{
    if (run->called_off) {
        tell_to_stand(s, run, rank);
    }
}

/* Who had ended is done, and last_has_all says whether one of them has the weights. */
static bool take_ends(struct run *run)
{
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        struct member *member = &run->members[rank];
        if (last_has_said(member) && member->state != RANK_DONE) {
            rank_set(run, rank, RANK_ON_DONE);
            member->may_save = member->is_complete = member->said_well;
        }
    }
    return last_one_has_all(run);
}

/* Those that have not ended. Who holds the last step is about to, and is told so now: he has his
 * time from then on, unless he hung before, and another one has ended. Who was told of a round and
 * does not hold it is let go, and of the others nobody waits for one that had_time to make it. */
static void settle(struct sched *s, struct job *job, bool had_time)
{
    struct run *run = job->run;
    const bool has_one = take_ends(run);
    const bool has_saved = save_first_has(run);
    const char *text = emit_text(s, "all steps of job %llu are made, and it ends without this rank",
                                 (unsigned long long)job->id);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        struct member *member = &run->members[rank];
        const bool is_over = rank_is_over(member);
        const bool trains = member->state == RANK_TRAINING;
        const bool holds = last_holds(run, rank);
        const bool hangs = holds ? member->passed_over : had_time;
        const bool is_needed = !is_over && !has_saved && holds && !(hangs && has_one);
        if (!is_over && !is_needed && !trains) {
            recover_vacate(s, job, rank, MS_OK, text); /* no failure: it may have made all, too */
        } else if (is_needed && !trains) {
            rank_set(run, rank, RANK_ON_RESUME);
            member->has_state = true; /* it may have taken it in this round */
        }
        member->passed_over = trains && !is_needed && (hangs || has_saved);
    }
}

void calloff_begin(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    const bool had_time =
        job->state == JOB_RECOVERING && s->now.mono_ms >= run->lost_ms + MS_CANCEL_GRACE_MS;
    list_remove(&run->recovering);
    s->due |= DUE_PLACE; /* the nodes that it wanted are the queue's again */
    timer_stop(s, &run->round);
    timer_stop(s, &run->ready);
    timer_stop(s, &run->tardy);
    timer_stop(s, &run->hang);
    complaint_forget(s, run);
    run->called_off = true;
    if (job->state == JOB_RUNNING) {
        job_set(s, job, JOB_ON_LOSS, "", "");
    }
    settle(s, job, had_time);
    const struct member *first = &run->members[0];
    const bool will_say = first->state == RANK_TRAINING && !first->passed_over;
    if (!will_say && !save_first_has(run)) {
        save_note_lacking(s, job);
    }
    emit_log(s, MS_LOG_NOTICE, "job.called_off job=%llu generation=%llu: all steps are made",
             (unsigned long long)job->id, (unsigned long long)job->generation);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        tell_to_stand(s, run, rank);
    }
    watch_stir(s, job);
    if (save_all_are_done(run)) {
        run_all_done(s, job);
    } else {
        save_look(s, run);
    }
}
