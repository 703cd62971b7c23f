/* stop.c - a placed job is asked to end after its step
 *
 *     RUNNING     -> its ranks make their step, and stop together
 *     RECOVERING  -> they stand at the boundary of one and stop there. No round begins any more;
 * one that is out goes on to Start, and they stop after its first step
 *
 * A rank that is lost meanwhile counts as over, where the job recovers: the others cannot make
 * their step without it, hold, and stop. Rank 0 saves; where it is lost, the lowest that is left.
 * That it is lost may be known only when all others have stopped and trusted in it: nobody has let
 * go of his state before the job's end, so one of them is asked to save after its end.
 *
 * What ends may be its connection alone, or all of them where a firewall restarts: whose end was
 * not seen has the time in which it knocks again before anything is decided without it, as who is
 * missing after a restart has.
 *
 * Each has MS_CANCEL_GRACE_MS from when it was asked, and from each loss after that. Who lives
 * answers at once, with a heartbeat: who said nothing is lost then, however long the lease, as is
 * who was to take a lost rank's place and is not ready, for the others wait for it. Those that are
 * left go on as after any loss. */
#include "daemon/sched/state.h"

#include <string.h>

enum { CANCEL_SHOWN = 120 /* of why it is to end: what is saved comes behind it */ };

/* Rank 0 is lost, or passed over, or ended in the middle: whether it has saved nobody knows. */
static bool needs_another(const struct run *run)
{
    const struct member *first = &run->members[0];
    return first->state == RANK_LOST ||
           (rank_is_over(first) ? !first->may_save || run->unsaved : first->passed_over);
}

/* Rank 0 made the last step, or stood there, and saved what it had to. */
static bool has_last(const struct run *run)
{
    const struct member *first = &run->members[0];
    return rank_is_over(first) && first->is_complete && !needs_another(run);
}

/* Nobody waits for the others. */
static uint32_t n_settled(const struct run *run)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        n += rank_is_over(&run->members[rank]) || run->members[rank].passed_over;
    }
    return n;
}

/* It was asked to save, and may be about to: another one beside it might write into one folder. */
static bool is_at_it(const struct run *run, uint32_t rank)
{
    const struct member *member = &run->members[rank];
    return rank != 0 && member->hold != NULL && !member->passed_over &&
           (!rank_is_over(member) || (run->late_asked && run->late_saver == rank));
}

/* Who saves. One that was to take the place of a lost rank may hold nothing yet, and without
 * recovery each may train for itself: the job's weights are rank 0's. */
static uint32_t saver_of(const struct job *job)
{
    uint32_t lowest = job->workers;
    const bool has_saved = rank_is_over(&job->run->members[0]) && !needs_another(job->run);
    if (!job->recovery || has_saved) {
        return 0;
    }
    if (job->run->kept[0] != '\0') { /* whoever gets further than that is asked when it is over */
        return job->run->saver;
    }
    if (is_at_it(job->run, job->run->asked)) {
        return job->run->asked;
    }
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct member *member = &job->run->members[rank];
        if (member->hold == NULL || rank_is_over(member)) {
            continue;
        }
        if (member->has_plan || member->has_state) { /* who was taken back says nothing of a plan */
            return rank;
        }
        lowest = lowest < job->workers ? lowest : rank;
    }
    return lowest < job->workers ? lowest : 0;
}

static void begin_grace(struct sched *s, struct run *run)
{
    timer_arm(s, &run->grace, TIMER_GRACE, after_ms(s, MS_CANCEL_GRACE_MS));
}

/* From now on each has his time, and has to say a word. */
static void arm_grace(struct sched *s, struct run *run)
{
    begin_grace(s, run);
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        struct hold *hold = run->members[rank].hold;
        if (hold != NULL) {
            hold->node->spoke = false;
        }
    }
}

static void tell(struct sched *s, struct job *job, struct hold *hold, bool saves)
{
    hold_settle(hold);
    job->run->asked = saves && hold->rank != 0 ? hold->rank : job->run->asked;
    send_stop_at_step(s, hold, MS_E_CANCELLED, job->run->cancel_text, saves);
}

static void forget_passed_over(struct run *run)
{
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        run->members[rank].passed_over = false;
    }
}

uint32_t stop_awaited(const struct sched *s, const struct job *job, int64_t *ret_until_ms)
{
    uint32_t last = MS_WORKERS_MAX;
    *ret_until_ms = INT64_MIN;
    for (uint32_t rank = 0; job->recovery && rank < job->workers; rank++) {
        const int64_t ms = recover_comes_until(s, job->run, rank);
        if (ms > *ret_until_ms) {
            *ret_until_ms = ms;
            last = rank;
        }
    }
    return last;
}

/* One may be on its way that was lost: its connection ended, and it knocks again. Nothing is
 * decided without it, for it may be a step ahead, or about to save. */
static bool may_come_back(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    int64_t until_ms = 0;
    (void)stop_awaited(s, job, &until_ms);
    if (run->back_wait == BACK_OVER || until_ms <= run->back_ms || has_last(run)) {
        timer_stop(s, &run->back);
        return false;
    }
    run->late_asked &= run->members[run->late_saver].hold != NULL;
    if (run->back_wait == BACK_NOT_YET) {
        run->back_wait = BACK_AWAITED;
        begin_grace(s, run);
    }
    timer_arm(s, &run->back, TIMER_BACK, until_ms);
    watch_stir(s, job);
    return true;
}

void stop_back_timeout(struct sched *s, struct run *run)
{
    run->back_ms = s->now.mono_ms;
    stop_look(s, run->job);
}

void stop_note_arrival(struct sched *s, const struct node *node)
{
    struct list *at = s->placed.next;
    while (at != &s->placed) {
        struct job *job = list_item(at, struct job, lane);
        at = at->next;
        if (recover_note_arrival(job->run, node) && timer_is_armed(&job->run->back)) {
            stop_look(s, job);
            at = s->placed.next; /* a job that ended may have taken others along */
        }
    }
}

/* Where some are missing after a restart, or may come back, it is not known yet who saves: they are
 * told together, and have their time from then on. */
static void tell_all(struct sched *s, struct job *job, bool over_too)
{
    struct run *run = job->run;
    if (may_come_back(s, job) || run->n_in[RANK_MISSING] > 0) {
        return;
    }
    if (!run->stop_is_out) {
        run->stop_is_out = true;
        arm_grace(s, run);
        forget_passed_over(run);
    }
    const uint32_t saver = saver_of(job);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct member *member = &run->members[rank];
        if (member->hold != NULL && (over_too || !rank_is_over(member))) {
            tell(s, job, member->hold, saver != 0 && rank == saver);
        }
    }
}

/* The furthest that is saved. */
static uint64_t saved_step(const struct run *run)
{
    const uint64_t first = needs_another(run) ? 0 : run->members[0].steps;
    return first > run->kept_step ? first : run->kept_step;
}

/* Who saves after its end, for rank 0 is lost, or a step behind: of those that ended well the
 * lowest at the furthest step, where nobody has saved that. job->workers: nobody. */
static uint32_t late_saver_of(const struct job *job)
{
    const struct run *run = job->run;
    uint32_t saver = job->workers;
    uint64_t step = saved_step(run);
    for (uint32_t rank = run->unsaved ? 0 : 1; rank < job->workers; rank++) {
        const struct member *member = &run->members[rank];
        if (member->hold != NULL && rank_is_over(member) && member->may_save &&
            member->steps > step) {
            saver = rank;
            step = member->steps;
        }
    }
    return saver;
}

static void ask_late_saver(struct sched *s, struct job *job, uint32_t rank)
{
    struct run *run = job->run;
    const bool is_again = run->late_asked && run->late_saver == rank;
    const bool has_time = run->stop_is_out || run->n_in[RANK_MISSING] > 0;
    if (!is_again || !has_time) { /* what is left of the others' may be nothing */
        run->stop_is_out = true;
        arm_grace(s, run);
    }
    if (!is_again) {
        run->late_asked = run->members[rank].saving = true;
        run->late_saver = rank;
        tell(s, job, run->members[rank].hold, true);
        watch_stir(s, job);
    }
}

/* " in <folder>" of that log; "": it is not known, or a part of it would lead nowhere. */
static const char *folder_words(struct sched *s, const char *log_path)
{
    enum { PLACE_SHOWN = 120 };
    const char *slash = log_path != NULL ? strrchr(log_path, '/') : NULL;
    const int n = slash != NULL ? (int)(slash - log_path) : 0;
    return n > 0 && n <= PLACE_SHOWN ? emit_text(s, " in %.*s", n, log_path) : "";
}

static bool holds_nothing(const struct member *member)
{
    return !member->has_state && !member->has_plan;
}

/* Which of the checkpoints from before are whole is known where they lie, and to `msctl run`, which
 * looks there: this says where, and what goes on from the newest of those. */
static const char *before_words(struct sched *s, const struct job *job)
{
    const struct run *run = job->run;
    const struct member *first = &run->members[0];
    if (!spec_says(job->spec, job->spec_bytes, "\"checkpoint\":{")) {
        return ", and the job has no key checkpoint";
    }
    const char *way = s->mode->no_submit != NULL
                          ? "key resume"
                          : emit_text(s, "msctl submit --resume %llu", (unsigned long long)job->id);
    if (home_is_elsewhere(s, run)) { /* whoever had rank 0 since has saved none */
        return emit_text(
            s, "; the checkpoint of step %llu, or a later one, is on %s%s: %s goes on from it",
            (unsigned long long)run->home.step, home_place(s, run),
            folder_words(s, run->home.log_path), way);
    }
    if (run->home.step == 0 && job->has_home && s->mode->places_anew) {
        return ", and no checkpoint from before is known";
    }
    const bool is_newcomer = first->hold != NULL && holds_nothing(first); /* it may have none */
    const bool is_at_home = !s->mode->places_anew || (run->home.step > 0 && first->hold != NULL &&
                                                      home_is(run, first->hold->node));
    const char *folder = s->mode->names_run_dir || (is_newcomer && !is_at_home)
                             ? ""
                             : folder_words(s, first->log_path);
    return folder[0] != '\0'
               ? emit_text(s,
                           "; what key checkpoint had saved before is on host %.40s%s: %s goes on "
                           "from the newest that is whole",
                           first->host_name, folder, way)
               : "";
}

static bool has_holder(const struct run *run)
{
    bool has = false;
    for (uint32_t rank = 0; !has && rank < run->job->workers; rank++) {
        has = run->members[rank].hold != NULL;
    }
    return has;
}

/* Some are left, and none of them had got as far as to take the state. */
static bool none_held(const struct run *run)
{
    bool is = has_holder(run);
    for (uint32_t rank = 0; is && rank < run->job->workers; rank++) {
        is = holds_nothing(&run->members[rank]);
    }
    return is;
}

static const char *kept_words(struct sched *s, const struct job *job)
{
    const struct run *run = job->run;
    if (has_last(run) && run->kept[0] == '\0') {
        return emit_text(s, "rank 0 (node %s) had made the last step, and saved it",
                         run->members[0].node_id);
    }
    if (run->kept[0] != '\0' && run->unsaved && run->kept_step < run->last_step) {
        return text_behind(s,
                           emit_text(s, "%s; the weights of step %llu are not saved%s", run->kept,
                                     (unsigned long long)run->last_step,
                                     run->unkept[0] != '\0' ? ": " : ""),
                           run->unkept);
    }
    if (run->kept[0] != '\0') {
        const bool is_nothing = run->kept_step == 0 && none_held(run);
        return is_nothing ? emit_text(s, "%s%s", run->kept, before_words(s, job)) : run->kept;
    }
    if (run->unkept[0] != '\0') {
        return text_behind(
            s, run->unsaved ? "the weights are not saved: " : "nothing is saved: ", run->unkept);
    }
    const bool is_none = none_held(run);
    const char *why = is_none            ? "no rank that is left held the state"
                      : !has_holder(run) ? "no rank is left"
                                         : "no rank that is left did";
    return (is_none || run->n_in[RANK_LOST] > 0) && needs_another(run)
               ? emit_text(s, "nothing is saved: %s%s", why, before_words(s, job))
               : "";
}

static void stop_end(struct sched *s, struct job *job)
{
    const struct run *run = job->run;
    const char *kept = kept_words(s, job);
    job_end(s, job, JOB_ON_CANCEL, MS_E_CANCELLED,
            text_behind(s,
                        emit_text(s, "%s%s", text_fit(s, run->cancel_text, CANCEL_SHOWN),
                                  kept[0] != '\0' ? "; " : ""),
                        kept));
}

void stop_over(struct sched *s, struct job *job)
{
    if (may_come_back(s, job)) {
        return;
    }
    const uint32_t saver = late_saver_of(job);
    if (job->recovery && saver < job->workers) {
        ask_late_saver(s, job, saver);
    } else {
        stop_end(s, job);
    }
}

void stop_look(struct sched *s, struct job *job)
{
    formers_step_in(s, job);
    if (run_n_over(job->run) < job->workers) {
        tell_all(s, job, false);
    }
    stop_settle(s, job);
}

void stop_settle(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    if (!run->cancelling) {
        return;
    }
    if (timer_is_armed(&run->back) && run_n_over(run) < job->workers) {
        tell_all(s, job, false); /* what was said may leave nothing that the others wait for */
    }
    if (n_settled(run) == job->workers) {
        stop_over(s, job);
    }
}

void run_stop_at_step(struct sched *s, struct job *job, const char *text)
{
    struct run *run = job->run;
    run->cancelling = true;
    run->stop_is_out = run->late_asked = false;
    run->back_wait = BACK_NOT_YET;
    run->asked = 0;
    run->back_ms = s->now.mono_ms;
    timer_stop(s, &run->save_again);
    save_offer(run); /* there may be room by now */
    ms_text_copy(run->cancel_text, sizeof(run->cancel_text), text);
    arm_grace(s, run);
    if (!list_empty(&run->recovering)) {
        list_remove(&run->recovering);
        s->due |= DUE_PLACE; /* the nodes that it wanted are the queue's again */
    }
    formers_step_in(s, job);
    emit_put_job(s, job, false); /* a restart must still know that somebody asked for it */
    event_of_job(s, "job.cancel_asked", job, text, event_number(s, "generation", job->generation));
    tell_all(s, job, !run->unsaved); /* else what they would say again might pass for an answer */
    emit_log(s, MS_LOG_NOTICE, "job.stopping job=%llu reason=%s", (unsigned long long)job->id,
             emit_quote(s, text));
    watch_stir(s, job);
    if (n_settled(run) == job->workers) { /* no step follows */
        stop_over(s, job);
    } else { /* one may have come back to a round that another was due after */
        run_look_ready(s, job);
    }
}

void stop_came_back(struct sched *s, const struct hold *hold)
{
    struct run *run = hold->job->run;
    if (run->late_saver == hold->rank) { /* what it was told may be lost with its connection */
        run->late_asked = false;
    }
    stop_look(s, hold->job);
}

/* Returns how many. */
static uint32_t lose_late(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    uint32_t n = 0;
    for (uint32_t rank = 0; recover_stops(s, job, FAULT_LOST) && rank < job->workers; rank++) {
        const struct member *member = &run->members[rank];
        const bool is_asked = !rank_is_over(member) || (run->late_asked && rank == run->late_saver);
        if (member->hold == NULL || !is_asked) {
            continue;
        }
        const bool spoke = member->hold->node->spoke;
        if (spoke && !recover_may(s, job, rank, FAULT_UNREADY)) { /* else the others wait for it */
            continue;
        }
        member->hold->node->notice = NOTICE_SILENT; /* where it said nothing */
        const char *text =
            emit_text(s, "it %s in the %d s since it was asked to stop",
                      spoke ? "did not get ready" : "said nothing", MS_CANCEL_GRACE_MS / 1000);
        recover_lose_stopping(s, job, rank, spoke ? FAULT_UNREADY : FAULT_LOST,
                              rank_text(s, job, rank, "was lost", text));
        n++;
    }
    return n;
}

/* They live, and do not get to their end: a disk may hang. Whoever did has what they have. */
static bool pass_over(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        run->members[rank].passed_over |= !rank_is_over(&run->members[rank]);
    }
    const uint32_t saver = job->recovery ? late_saver_of(job) : job->workers;
    if (saver == job->workers) {
        return false;
    }
    if (run->unkept[0] == '\0' && !rank_is_over(&run->members[0])) {
        stop_note_unkept(s, run, 0, emit_text(s, "nothing in %d s", MS_CANCEL_GRACE_MS / 1000));
    }
    ask_late_saver(s, job, saver);
    return true;
}

void run_grace_timeout(struct sched *s, struct run *run)
{
    if (run->n_in[RANK_MISSING] > 0) { /* that wait has an end of its own */
        arm_grace(s, run);
        return;
    }
    if (run->back_wait == BACK_AWAITED) {
        run->back_wait = BACK_OVER;
    }
    if (timer_is_armed(&run->back) || lose_late(s, run->job) > 0) {
        run->stop_is_out = false;
        stop_look(s, run->job);
        return;
    }
    if (run->late_asked) { /* its disk may hang */
        run->late_asked = false;
        run->members[run->late_saver].may_save = false;
        stop_note_unkept(s, run, run->late_saver,
                         emit_text(s, "nothing in %d s", MS_CANCEL_GRACE_MS / 1000));
        if (n_settled(run) == run->job->workers) {
            stop_over(s, run->job);
            return;
        }
    }
    if (pass_over(s, run->job)) {
        return;
    }
    job_end(s, run->job, JOB_ON_CANCEL, MS_E_CANCELLED,
            text_behind(s,
                        emit_text(s, "%s; the step did not end within %d s%s",
                                  text_fit(s, run->cancel_text, CANCEL_SHOWN),
                                  MS_CANCEL_GRACE_MS / 1000, run->kept[0] != '\0' ? "; " : ""),
                        run->kept));
}

void stop_note_unkept(struct sched *s, struct run *run, uint32_t rank, const char *text)
{
    ms_text_copy(
        run->unkept, sizeof(run->unkept),
        text_behind(s, emit_text(s, "rank %u (node %s) says: ", rank, run->members[rank].node_id),
                    text[0] != '\0' ? text : "it could not"));
}

/* Its word is ours, given back: it had nothing to save, and was told to stop. */
static bool is_echo(const struct run *run, uint32_t rank, const Ms__RankDone *msg)
{
    return msg->code == MS_E_CANCELLED && holds_nothing(&run->members[rank]) &&
           strcmp(msg->text, run->cancel_text) == 0;
}

void stop_note_kept(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg)
{
    struct run *run = job->run;
    if (is_echo(run, rank, msg)) {
        return;
    }
    if (msg->code != MS_OK && rank == 0) {
        stop_note_unkept(s, run, rank, msg->text);
    } else if (msg->code == MS_OK && msg->text[0] != '\0' && msg->steps >= run->kept_step) {
        run->kept_step = msg->steps;
        run->saver = rank;
        ms_text_copy(
            run->kept, sizeof(run->kept),
            text_behind(s,
                        emit_text(s, "rank %u (node %s) says: ", rank, run->members[rank].node_id),
                        msg->text));
    }
}

void stop_said_again(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg)
{
    struct run *run = job->run;
    if (msg->text[0] == '\0') { /* it says that it ended, and nothing new */
        return;
    }
    if (msg->code != MS_OK && !run->members[rank].saving) { /* it had said so before */
        return;
    }
    save_answered(s, run, rank);
    if (msg->code == MS_OK) {
        stop_note_kept(s, job, rank, msg);
    } else {
        run->members[rank].may_save = false;
        stop_note_unkept(s, run, rank, msg->text);
    }
    stop_settle(s, job);
}
