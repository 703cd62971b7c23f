/* save.c - all ranks have made the last step, and rank 0 could not save the weights
 *
 *     RUNNING, all are DONE -> the lowest that has not tried is asked to save them (Stop `saves`)
 *     it has                -> the job has SUCCEEDED, with the weights that lie there
 *     none could            -> after MS_SAVE_AGAIN_MS all try again, rank 0 first: somebody may
 *                              make room, or cancels the job
 *
 * Nobody lets go of his state before the job's end, so who is lost meanwhile is replaced as after
 * any step, and rank 0 tries to save when all have ended again. Of ranks that train for themselves
 * nobody else has rank 0's weights. Nothing is stored: after a restart all say again how they
 * ended. */
#include "daemon/sched/state.h"

bool save_has_ended(const struct node *node, const Ms__RankDone *msg)
{
    return !msg->stopped && (msg->code == MS_OK || (msg->steps > 0 && !node->leaving));
}

bool save_failed(struct sched *s, const struct hold *hold, const Ms__RankDone *msg)
{
    const struct job *job = hold->job;
    return msg->code != MS_OK && save_has_ended(hold->node, msg) && !job->run->cancelling &&
           job->run->members[hold->rank].state == RANK_TRAINING && recover_is_on(s, job);
}

void save_note(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg)
{
    struct run *run = job->run;
    struct member *member = &run->members[rank];
    run->late_asked = run->late_asked && run->late_saver != rank;
    member->may_save = msg->code == MS_OK;
    if (msg->code == MS_OK) {
        stop_note_kept(s, job, rank, msg);
        return;
    }
    member->unsaved = true;
    if (rank == 0 || run->unkept[0] == '\0') { /* it was to save, and has more to save than they */
        stop_note_unkept(s, run, rank, msg->text);
    }
    if (!run->save_waits) { /* else it is no news */
        emit_log(s, MS_LOG_WARNING, "job.not_saved job=%llu rank=%u reason=%s",
                 (unsigned long long)job->id, rank, emit_quote(s, msg->text));
    }
}

/* ... and none is lost, or missing, or asked to stop. */
static bool all_are_done(const struct run *run)
{
    return run->job->state == JOB_RUNNING && list_empty(&run->recovering) && !run->cancelling &&
           run->n_in[RANK_DONE] == run->job->workers;
}

bool save_is_owed(const struct run *run)
{
    return all_are_done(run) && run->members[0].unsaved && run->kept[0] == '\0';
}

static void ask(struct sched *s, struct run *run, uint32_t rank)
{
    run->late_asked = true;
    run->late_saver = rank;
    send_stop_at_step(s, run->members[rank].hold,
                      "all steps are made, and the weights are not saved yet", true);
    watch_stir(s, run->job);
}

void save_ask(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    uint32_t rank = 1;
    if (run->late_asked || timer_is_armed(&run->save_again)) {
        return;
    }
    while (rank < job->workers && (run_is_apart(run) || run->members[rank].unsaved)) {
        rank++;
    }
    if (rank < job->workers) {
        ask(s, run, rank);
        return;
    }
    run->save_waits = true;
    timer_arm(s, &run->save_again, TIMER_SAVE, after_ms(s, MS_SAVE_AGAIN_MS));
    watch_stir(s, job);
}

void save_timeout(struct sched *s, struct run *run)
{
    if (!save_is_owed(run)) { /* a round is due, or a cancel */
        return;
    }
    for (uint32_t rank = 1; rank < run->job->workers; rank++) {
        run->members[rank].unsaved = false;
        run->members[rank].may_save = true;
    }
    ask(s, run, 0);
}

bool save_said_again(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg)
{
    struct run *run = job->run;
    const bool is_asked = run->late_asked && run->late_saver == rank;
    const bool is_new = msg->code == MS_OK ? msg->text[0] != '\0' : is_asked;
    if (!run->members[0].unsaved || !is_new) {
        return false;
    }
    if (msg->code == MS_OK) { /* it may have had no memory for their digest before */
        ms_text_copy(run->members[rank].weights_sha256, sizeof(run->members[rank].weights_sha256),
                     msg->weights_sha256);
    }
    save_note(s, job, rank, msg);
    return all_are_done(run);
}

void save_came_back(struct sched *s, const struct hold *hold)
{
    struct run *run = hold->job->run;
    if (run->job->state == JOB_RUNNING && list_empty(&run->recovering) && run->late_asked &&
        run->late_saver == hold->rank) {
        ask(s, run, hold->rank); /* what it was asked may be lost with its connection */
    }
}

void save_forget(struct sched *s, struct run *run)
{
    timer_stop(s, &run->save_again);
    run->late_asked = run->save_waits = false;
    run->kept[0] = run->unkept[0] = '\0';
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        run->members[rank].unsaved = false;
    }
}

const char *save_words(struct sched *s, const struct job *job)
{
    const struct run *run = job->run;
    const bool is_alone = job->workers == 1 || run_is_apart(run);
    const char *head =
        run->late_asked && !run->save_waits
            ? emit_text(s, "all steps are made; waits for %s to save the weights: ",
                        rank_words(s, job, run->late_saver))
            : emit_text(s,
                        "all steps are made, and %s save the weights (tried again every %d s: make "
                        "room, or cancel the job): ",
                        is_alone ? "rank 0 cannot" : "no rank can", MS_SAVE_AGAIN_MS / 1000);
    return text_behind(s, head, run->unkept);
}

const char *save_end(struct sched *s, struct run *run, const char *text)
{
    if (!run->members[0].unsaved) {
        run->saver = 0; /* whoever else says so */
        return text;
    }
    const char *saved = text_fit(s, run->kept, MS_TEXT_MAX / 2);
    return run->saver == 0 ? text_behind(s, emit_text(s, "%s; ", text), run->kept)
                           : text_behind(s, emit_text(s, "%s; %s; ", text, saved), run->unkept);
}
