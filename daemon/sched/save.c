/* save.c - all ranks have made the last step, and rank 0 could not save the weights
 *
 *     RUNNING, all are DONE -> the lowest that has not tried is asked to save them (Stop `saves`)
 *     it has                -> the job has SUCCEEDED, with the weights that lie there
 *     it says nothing       -> after MS_CANCEL_GRACE_MS the next one is: a disk may hang
 *     some are DONE, and    -> after MS_CANCEL_GRACE_MS nobody waits for them: rank 0 hangs at
 *     others say nothing       its own end, or who was asked before a restart
 *     none could            -> after MS_SAVE_AGAIN_MS all try again, rank 0 first: somebody may
 *                              make room, or cancels the job, for which all try once more
 *
 * Nobody lets go of his state before the job's end. Whoever is lost meanwhile: calloff.c. */
#include "daemon/sched/state.h"
#include "proto/state_words.h"

#include <string.h>

enum { WHY_LEAST = 60 /* bytes of why rank 0 could not: less says nothing */ };

bool save_failed(struct sched *s, const struct hold *hold, const Ms__RankDone *msg)
{
    const struct job *job = hold->job;
    return msg->code != MS_OK && last_is_made(hold->node, msg) &&
           (job->run->members[hold->rank].state == RANK_TRAINING ||
            !list_empty(&job->run->recovering)) && /* it has its rank back, before a round */
           recover_is_on(s, job);
}

void save_answered(struct sched *s, struct run *run, uint32_t rank)
{
    run->members[rank].saving = run->members[rank].passed_over = false;
    if (run->late_asked && run->late_saver == rank) {
        run->late_asked = false;
        timer_stop(s, &run->save_again);
    }
}

/* By rank 0, which was to; why, unkept says. */
static void note_unsaved(struct sched *s, struct job *job)
{
    if (!job->run->unsaved) {
        job->run->unsaved = true;
        event_of_job(s, "job.not_saved", job, job->run->unkept,
                     event_number(s, "generation", job->generation));
    }
}

/* Rank 0 has not, and never will by itself: why, it may have said. */
void save_note_lacking(struct sched *s, struct job *job)
{
    const bool is_lost = job->run->members[0].state == RANK_LOST;
    if (is_lost || job->run->unkept[0] == '\0') {
        stop_note_unkept(s, job->run, 0,
                         is_lost ? "nothing, for it is lost" : "nothing that it has saved");
    }
    note_unsaved(s, job);
}

void save_note(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg)
{
    struct run *run = job->run;
    if (msg->code == MS_OK) {
        stop_note_kept(s, job, rank, msg);
        return;
    }
    if (rank == 0 || run->unkept[0] == '\0') { /* it was to save, and has more to save than they */
        stop_note_unkept(s, run, rank, msg->text);
    }
    if (rank == 0) {
        note_unsaved(s, job);
    }
    if (!run->save_waits) { /* else it is no news */
        emit_log(s, MS_LOG_WARNING, "job.not_saved job=%llu rank=%u reason=%s",
                 (unsigned long long)job->id, rank, emit_quote(s, msg->text));
    }
}

void save_first_did(struct sched *s, struct run *run)
{
    for (uint32_t rank = 0; run->called_off && rank < run->job->workers; rank++) {
        run->members[rank].passed_over = run->members[rank].state == RANK_TRAINING;
    }
    run->unsaved = run->late_asked = false;
    run->unkept[0] = '\0';
    timer_stop(s, &run->save_again);
}

bool save_is_at_end(const struct run *run)
{
    const bool runs = run->job->state == JOB_RUNNING || run->called_off;
    return runs && list_empty(&run->recovering) && !run->cancelling;
}

static uint32_t n_passed_over(const struct run *run)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; run->n_in[RANK_TRAINING] > 0 && rank < run->job->workers; rank++) {
        n += run->members[rank].state == RANK_TRAINING && run->members[rank].passed_over;
    }
    return n;
}

bool save_all_are_done(const struct run *run)
{
    const uint32_t n = run->n_in[RANK_DONE] + run->n_in[RANK_LOST];
    return save_is_at_end(run) && run->n_in[RANK_DONE] > 0 &&
           n + run->n_in[RANK_TRAINING] == run->job->workers &&
           n + n_passed_over(run) == run->job->workers;
}

/* As it was to. */
bool save_first_has(const struct run *run)
{
    return run->members[0].is_complete && run->members[0].state == RANK_DONE;
}

/* All that are left, as ranks of a program may be: it saves what it likes itself. One that was
 * passed over may be at that. */
static bool are_placeless(const struct run *run)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        n += run->members[rank].state == RANK_DONE && run->members[rank].is_placeless;
    }
    return n > 0 && n == run->n_in[RANK_DONE] && run->n_in[RANK_TRAINING] == 0;
}

bool save_is_owed(const struct run *run)
{
    return save_all_are_done(run) && run->kept[0] == '\0' &&
           (run->unsaved || !save_first_has(run)) && !are_placeless(run);
}

bool save_needs_no(const struct run *run, uint32_t rank)
{
    const enum rank_state state = run->members[rank].state;
    return save_is_at_end(run) && run->unsaved && (state == RANK_DONE || state == RANK_LOST);
}

static void tell(struct sched *s, const struct run *run, uint32_t rank)
{
    send_stop_at_step(s, run->members[rank].hold, MS_OK,
                      "all steps are made, and the weights are not saved yet", true);
}

/* The lowest that has not tried, and is not at it: one whose disk hangs may be for long.
 * job->workers: none is left. */
static uint32_t next_saver(const struct run *run)
{
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        const struct member *member = &run->members[rank];
        if (member->state == RANK_DONE && member->may_save && !member->saving &&
            last_can_save(run, rank)) {
            return rank;
        }
    }
    return run->job->workers;
}

bool save_awaits(const struct run *run)
{
    const uint32_t n_tardy = run->n_in[RANK_TRAINING];
    const uint32_t n = run->n_in[RANK_DONE] + run->n_in[RANK_LOST] + n_tardy;
    return save_is_at_end(run) && run->job->recovery && n_tardy > 0 && n == run->job->workers &&
           (run->unsaved || run->members[0].state == RANK_TRAINING) && last_one_has_all(run) &&
           n_passed_over(run) < n_tardy;
}

void save_look(struct sched *s, struct run *run)
{
    if (save_awaits(run) && !timer_is_armed(&run->tardy)) {
        timer_arm(s, &run->tardy, TIMER_TARDY, after_ms(s, MS_CANCEL_GRACE_MS));
    }
}

/* They live, for their nodes beat. What they may still say is heard. */
static void pass_over(struct sched *s, struct run *run)
{
    const char *text = emit_text(s, "nothing in the %d s since others ended: its disk may hang",
                                 MS_CANCEL_GRACE_MS / 1000);
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        struct member *member = &run->members[rank];
        if (member->state == RANK_TRAINING && !member->passed_over) {
            member->passed_over = true;
            emit_log(s, MS_LOG_WARNING, "job.passed_over job=%llu rank=%u reason=%s",
                     (unsigned long long)run->job->id, rank, emit_quote(s, text));
        }
    }
    if (run->members[0].state == RANK_TRAINING && !run->unsaved) {
        stop_note_unkept(s, run, 0, text);
        note_unsaved(s, run->job);
    }
}

void save_tardy_timeout(struct sched *s, struct run *run)
{
    if (save_awaits(run)) {
        pass_over(s, run);
    }
    if (save_all_are_done(run)) {
        run_all_done(s, run->job);
    }
}

void save_ask(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    if (timer_is_armed(&run->save_again)) {
        return;
    }
    const uint32_t rank = next_saver(run);
    if (rank < job->workers) {
        run->late_asked = run->members[rank].saving = true;
        run->late_saver = rank;
        tell(s, run, rank);
    } else {
        run->late_asked = false;
        run->save_waits = true;
    }
    timer_arm(s, &run->save_again, run->late_asked ? TIMER_SAVE : TIMER_SAVE_AGAIN,
              after_ms(s, run->late_asked ? MS_CANCEL_GRACE_MS : MS_SAVE_AGAIN_MS));
    watch_stir(s, job);
}

void save_timeout(struct sched *s, struct run *run)
{
    if (run->late_asked) { /* the next one; what it may still say is heard */
        run->late_asked = false;
        run->members[run->late_saver].may_save = false;
    } else {
        save_offer(run);
    }
    if (save_is_owed(run)) { /* else when all are back */
        save_ask(s, run->job);
    } else {
        save_look(s, run); /* somebody may save by now, and others not end */
    }
}

void save_offer(struct run *run)
{
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        run->members[rank].may_save |= run->members[rank].state == RANK_DONE;
    }
}

bool save_said_again(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg)
{
    struct run *run = job->run;
    struct member *member = &run->members[rank];
    if (!run->unsaved || !(msg->code == MS_OK ? msg->text[0] != '\0' : member->saving)) {
        return false;
    }
    if (msg->weights_sha256[0] != '\0') { /* it may have said none before */
        ms_text_copy(member->weights_sha256, sizeof(member->weights_sha256), msg->weights_sha256);
    }
    save_answered(s, run, rank);
    member->may_save = msg->code == MS_OK;
    member->is_placeless = msg->code == MS_E_UNSUPPORTED;
    save_note(s, job, rank, msg);
    return save_all_are_done(run);
}

/* What it was told may be lost with its connection. */
void save_came_back(struct sched *s, const struct hold *hold)
{
    const struct run *run = hold->job->run;
    if (save_is_at_end(run) && run->members[hold->rank].saving) {
        tell(s, run, hold->rank);
    } else {
        calloff_came_back(s, run, hold->rank);
    }
}

void save_lost(struct sched *s, struct run *run, uint32_t rank)
{
    save_answered(s, run, rank);                              /* it never will */
    if (rank == 0 && !run->unsaved && !save_first_has(run)) { /* it was about to */
        save_note_lacking(s, run->job);
    }
    if (save_all_are_done(run)) {
        run_all_done(s, run->job);
    }
}

void save_forget(struct sched *s, struct run *run)
{
    timer_stop(s, &run->save_again);
    timer_stop(s, &run->tardy);
    timer_stop(s, &run->hang);
    run->late_asked = run->save_waits = run->unsaved = run->called_off = false;
    run->kept[0] = run->unkept[0] = '\0';
    run->kept_step = 0;
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        struct member *member = &run->members[rank];
        member->saving = member->may_save = member->passed_over = false;
        member->is_complete = member->is_placeless = false;
    }
}

const char *save_words(struct sched *s, const struct job *job)
{
    const struct run *run = job->run;
    const char *head =
        run->late_asked && !run->save_waits
            ? emit_text(s, "all steps are made; waits for %s to save the weights: ",
                        rank_words(s, job, run->late_saver))
            : emit_text(s,
                        MS_REASON_UNSAVED "%s save the weights (tried again every %d s: make "
                                          "room or mend it, or cancel the job): ",
                        job->workers == 1 ? "rank 0 cannot" : "no rank can",
                        MS_SAVE_AGAIN_MS / 1000);
    return text_behind(s, head, run->unkept);
}

const char *save_end(struct sched *s, struct run *run, const char *text)
{
    if (!run->unsaved && run->saver != 0) { /* whoever else says so */
        run->saver = 0;
        return text;
    }
    if (run->kept[0] == '\0') {
        return are_placeless(run)
                   ? emit_text(s, "%s; no rank that is left has a run directory for the weights",
                               text)
                   : text;
    }
    text = text_behind(s, emit_text(s, "%s; ", text), run->kept); /* where they are comes first */
    const bool has_room = strlen(text) + WHY_LEAST < MS_TEXT_MAX;
    return run->saver == 0 || !has_room ? text
                                        : text_behind(s, emit_text(s, "%s; ", text), run->unkept);
}
