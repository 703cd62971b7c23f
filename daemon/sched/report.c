/* report.c - what ranks say: ready, progress, done, a peer is gone, back again */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

struct hold *rank_speaker(const struct conn *conn, uint64_t job, uint64_t generation, uint32_t rank)
{
    struct hold *hold = conn->node != NULL ? hold_find(conn->node, job, generation, rank) : NULL;
    return hold != NULL && hold->job != NULL ? hold : NULL;
}

static struct member *member_of(const struct hold *hold)
{
    return &hold->job->run->members[hold->rank];
}

static void member_log(struct member *member, const char *path)
{
    if (path[0] != '\0' && strcmp(path, member->log_path) != 0) {
        free(member->log_path);
        member->log_path = dup_text(path);
        member->unstored = true;
    }
}

/* ---- ready, started -----------------------------------------------------------------------------
 */

/* "": its node is gone, or did not say. */
static const char *onednn_of(const struct member *member)
{
    return member->hold != NULL ? member->hold->node->info.onednn : "";
}

/* All ranks plan for the same threads, instruction set and caches: what is left is oneDNN. */
static const char *why_plans_differ(struct sched *s, const struct member *a, const struct member *b)
{
    const char *first = onednn_of(a);
    const char *second = onednn_of(b);
    if (first[0] == '\0' || strcmp(first, second) != 0) {
        return emit_text(s, ": their oneDNN is %s and %s; install one version on both nodes",
                         first[0] != '\0' ? first : "not known",
                         second[0] != '\0' ? second : "not known");
    }
    return emit_text(s,
                     ": both have oneDNN %s, which chose otherwise; install the same build on both "
                     "nodes, or lower `isa` in their msworker.conf",
                     first);
}

/* Of members: what all ranks have to agree on, and why two of them may not; NULL: nobody knows. */
static const struct digest {
    size_t offset;
    const char *what;
    const char *(*why)(struct sched *s, const struct member *a, const struct member *b);
} plans = {offsetof(struct member, plan_sha256), "plans", why_plans_differ},
  weights = {offsetof(struct member, weights_sha256), "weights", NULL};

/* NULL, or the two ranks whose digests differ; *ret_rank is the second. Ranks without one
 * (independent trainings) differ from nobody. */
static const char *digests_differ(struct sched *s, const struct job *job, const struct digest *kind,
                                  uint32_t *ret_rank)
{
    const char *first = NULL;
    uint32_t first_rank = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const char *digest = (const char *)&job->run->members[rank] + kind->offset;
        if (digest[0] == '\0') {
            continue;
        }
        if (first == NULL) {
            first = digest;
            first_rank = rank;
        } else if (strcmp(first, digest) != 0) {
            const struct member *a = &job->run->members[first_rank];
            const struct member *b = &job->run->members[rank];
            *ret_rank = rank;
            return emit_text(s,
                             "the ranks' %s differ: rank %u (node %s) has %.16s..., rank %u "
                             "(node %s) has %.16s...%s",
                             kind->what, first_rank, a->node_id, first, rank, b->node_id, digest,
                             kind->why != NULL ? kind->why(s, a, b) : "");
        }
    }
    return NULL;
}

/* The ranks' plans are the same, and the job's; else why not, and whose it is. */
static const char *plans_differ(struct sched *s, const struct job *job, uint32_t *ret_rank)
{
    const char *differ = digests_differ(s, job, &plans, ret_rank);
    for (uint32_t rank = 0; differ == NULL && rank < job->workers; rank++) {
        *ret_rank = rank;
        differ = run_plan_differs(s, job, job->run->members[rank].plan_sha256);
    }
    return differ;
}

/* They go on from one step, with one state; else who does not, and why. Ranks that train each for
 * itself say no digest: nobody could take the place of one of them. */
static const char *states_differ(struct sched *s, const struct job *job, uint32_t *ret_rank)
{
    const struct mend *first = run_mend(job->run, 0);
    for (uint32_t rank = 1; rank < job->workers; rank++) {
        const struct mend *mend = run_mend(job->run, rank);
        *ret_rank = rank;
        if (!mend->state.has_digest || !first->state.has_digest) {
            if (job->recovery) {
                return emit_text(s,
                                 "rank %u says no digest of its state, and a job that goes on "
                                 "after a loss needs it: submit it with `recovery: false`",
                                 mend->state.has_digest ? 0 : rank);
            }
            continue;
        }
        if (mend->state.step != first->state.step) {
            return emit_text(s, "rank 0 would go on after step %llu, and rank %u after step %llu",
                             (unsigned long long)first->state.step, rank,
                             (unsigned long long)mend->state.step);
        }
        if (memcmp(mend->state.digest, first->state.digest, MS_STATE_DIGEST_LEN) != 0) {
            return emit_text(s,
                             "ranks 0 and %u have different weights after step %llu: the memory or "
                             "the processor of one of their hosts fails",
                             rank, (unsigned long long)first->state.step);
        }
    }
    return NULL;
}

static void note_state(struct run *run, uint32_t rank, const Ms__RankReady *msg)
{
    struct mend *mend = run_mend(run, rank);
    mend->state.step = msg->step;
    mend->state.told = msg->told;
    mend->state.from = msg->state_from;
    mend->state.rank = msg->state_rank;
    mend->state.bytes = msg->state_bytes;
    mend->state.ms = msg->state_ms;
    mend->state.prepared_ms = msg->prepared_ms;
    mend->state.joined_ms = msg->joined_ms;
    mend->state.has_digest = msg->state_digest.len == MS_STATE_DIGEST_LEN;
    if (mend->state.has_digest) {
        memcpy(mend->state.digest, msg->state_digest.data, MS_STATE_DIGEST_LEN);
    }
}

static const char *start_facts(struct sched *s, const struct job *job)
{
    struct facts facts;
    facts_begin(&facts);
    facts_number(&facts, "generation", job->generation);
    facts_text(&facts, "plan_sha256", job->plan_sha256);
    return facts_end(s, &facts);
}

static void all_ready(struct sched *s, struct job *job)
{
    uint32_t rank = 0;
    const char *differ = plans_differ(s, job, &rank);
    if (differ == NULL) {
        differ = states_differ(s, job, &rank);
    }
    if (differ != NULL) {
        run_lost(s, job, rank, FAULT_DISAGREE, MS_E_FAILED, differ);
        return;
    }
    ms_text_copy(job->plan_sha256, sizeof(job->plan_sha256), job->run->members[0].plan_sha256);
    const bool begins = job->state == JOB_PLACING;
    const char *facts = NULL;
    const char *recovered = recover_end(s, job, &facts);
    home_start(s, job->run, run_mend(job->run, 0)->state.step);
    job->started_ms = begins ? s->now.wall_ms : job->started_ms;
    job->n_tries = job->n_leaves = job->n_met = 0;
    timer_stop(s, &job->run->ready);
    timer_stop(s, &job->run->hang);
    job_set_reason(job, "");
    if (!job->recovery) { /* else the next one who takes a rank has to hear of it */
        plan_settle(s, job);
    }
    job->run->told = run_mend(job->run, 0)->state.step; /* an earlier one, if it went back */
    formers_release(s, job->run, MS_E_ABORTED,
                    emit_text(s,
                              "job %llu runs in generation %llu, and another process has the rank",
                              (unsigned long long)job->id, (unsigned long long)job->generation));
    job_set(s, job, JOB_ON_READY,
            recovered != NULL && !begins ? recovered : emit_text(s, "plan %.16s", job->plan_sha256),
            facts != NULL && !begins ? facts : start_facts(s, job));
    emit_put_job(s, job, false);
    for (rank = 0; rank < job->workers; rank++) {
        struct member *member = &job->run->members[rank];
        if (member->unstored) {
            emit_put_member(s, job, rank);
        }
        rank_set(job->run, rank, RANK_ON_START);
        member->has_state = true;
        send_start(s, member->hold);
        host_works(member->hold->node->host);
    }
    emit_log(s, MS_LOG_NOTICE, "job.%s job=%llu generation=%llu plan=%.16s%s",
             begins ? "started" : "recovered", (unsigned long long)job->id,
             (unsigned long long)job->generation, job->plan_sha256,
             recovered != NULL ? emit_text(s, " text=%s", emit_quote(s, recovered)) : "");
    watch_stir(s, job);
}

void run_look_ready(struct sched *s, struct job *job)
{
    const struct run *run = job->run;
    const bool all = job_is_placed(job) && run->n_in[RANK_READY] == job->workers;
    /* else one of them is failing already, all are about to hear of the next generation, or some
     * stop where they stand */
    if (all && !run->complaint.made && list_empty(&run->recovering) && !run->stands_for_good) {
        all_ready(s, job);
    }
}

void on_rank_ready(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__RankReady *msg = (const Ms__RankReady *)event->msg;
    struct hold *hold = rank_speaker(conn, msg->job, msg->generation, msg->rank);
    if (hold == NULL) {
        return;
    }
    struct job *job = hold->job;
    struct run *run = job->run;
    struct member *member = member_of(hold);
    member_log(member, msg->log_path);
    ms_text_copy(member->plan_sha256, sizeof(member->plan_sha256), msg->plan_sha256);
    if (job->state == JOB_RUNNING || member->state != RANK_PREPARING) {
        return; /* said again after a reconnect */
    }
    member->has_plan = true;
    member->may_lack_plan = false;
    member->ready_in = hold->generation;
    member->step = msg->step;
    note_state(run, hold->rank, msg);
    last_note_ready(run, msg);
    if (timer_is_armed(&run->hang)) { /* the others could wait for it only */
        calloff_watch_round(s, run);
    }
    rank_set(run, hold->rank, RANK_ON_READY);
    if (!list_empty(&run->recovering)) { /* a round may have waited for who holds the state */
        s->due |= DUE_PLACE;
    }
    watch_news(s);
    run_look_ready(s, job);
}

/* ---- progress -----------------------------------------------------------------------------------
 */

static void note_progress(struct sched *s, struct run *run, struct member *member,
                          const struct progress *progress)
{
    const uint64_t step = progress->msg.step;
    member->step = step;
    if (step > run->furthest) { /* else it may be told again, after a reconnect */
        stall_is_over(run);
    }
    recover_saw_step(s, run, step);
    run->told = step;
    run->has_progress = true;
    run->progress = *progress;
}

/* That it is there is true in a round, in whatever generation, and where another process has the
 * rank by now. */
static void note_saved(struct sched *s, const struct conn *conn, const Ms__Progress *msg)
{
    const struct hold *hold = conn->node != NULL ? hold_first(conn->node) : NULL;
    struct run *run = hold == NULL ? NULL : hold->job != NULL ? hold->job->run : hold->keeps;
    if (run != NULL && hold->job_id == msg->job && hold->rank == 0 && job_has_begun(run->job)) {
        home_note(s, run, conn->node, msg->saved);
    }
}

void on_progress(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Progress *msg = (const Ms__Progress *)event->msg;
    if (msg->saved > 0) {
        note_saved(s, conn, msg);
    }
    if (msg->step == 0 && msg->saved > 0) { /* between two steps: nothing else is news */
        return;
    }
    struct hold *hold = rank_speaker(conn, msg->job, msg->generation, msg->rank);
    if (hold == NULL || hold->job->state != JOB_RUNNING) {
        return;
    }
    struct run *run = hold->job->run;
    const bool is_again = msg->step < run->told; /* after a reconnect, or a round */
    run->told_ms = hold->rank == 0 ? s->now.mono_ms : run->told_ms;
    struct progress progress;
    progress_take(&progress, msg);
    if (!is_again) {
        note_progress(s, run, member_of(hold), &progress);
    }
    if (msg->has_eval) {
        results_note_eval(s, run, &progress, is_again);
    }
    watch_stir(s, run->job);
}

/* ---- done ---------------------------------------------------------------------------------------
 */

/* Whose steps and time are the job's. */
static uint32_t ender(const struct run *run)
{
    uint32_t rank = run->members[0].state == RANK_DONE ? 0 : run->saver;
    for (uint32_t n = 0; run->members[rank].state != RANK_DONE && n < run->job->workers; n++) {
        rank = n;
    }
    return rank;
}

void run_all_done(struct sched *s, struct job *job)
{
    struct run *run = job->run;
    const bool is_short = run->n_in[RANK_STOPPED] + run->n_in[RANK_LOST] > 0;
    if (run->cancelling && (is_short || run->unsaved)) {
        stop_over(s, job);
        return;
    }
    uint32_t rank = 0;
    const char *differ = digests_differ(s, job, &weights, &rank);
    if (differ == NULL) {
        differ = plans_differ(s, job, &rank);
    }
    if (differ != NULL) {
        run_lost(s, job, rank, FAULT_DISAGREE, MS_E_FAILED, differ);
        return;
    }
    if (save_is_owed(run)) {
        save_ask(s, job);
        return;
    }
    const struct member *first = &run->members[ender(run)];
    job->steps = first->steps;
    job->seconds = first->seconds;
    const char *text =
        emit_text(s, "%s finished %llu step%s",
                  job->workers == 1 ? "the rank" : emit_text(s, "all %u ranks", job->workers),
                  (unsigned long long)job->steps, job->steps == 1 ? "" : "s");
    text = save_end(s, run, text);
    ms_text_copy(job->weights_sha256, sizeof(job->weights_sha256),
                 (run->saver != 0 ? &run->members[run->saver] : first)->weights_sha256);
    ms_text_copy(job->plan_sha256, sizeof(job->plan_sha256), first->plan_sha256);
    job_end(s, job, JOB_ON_SUCCESS, MS_OK, text);
}

/* Codes with which a rank complains about others: they are news of somebody else's death. */
static bool is_second_hand(int code)
{
    return code == MS_E_CLOSED || code == MS_E_ABORTED || code == MS_E_TIMEOUT ||
           code == MS_E_UNREACHABLE;
}

static void rank_failed(struct sched *s, struct job *job, uint32_t rank, int code,
                        const char *cause, bool leaving)
{
    struct run *run = job->run;
    const char *text =
        rank_text(s, job, rank, leaving && code == MS_E_CANCELLED ? "left" : "failed", cause);
    const bool goes_on = recover_is_on(s, job);
    if (leaving && rank == 0 && code == MS_E_CANCELLED && run->members[0].has_state) {
        const struct node *node = run->members[0].hold->node;
        home_note(s, run, node, run->members[0].step); /* which it saves before its process ends */
    }
    if (leaving && (job->state == JOB_PLACING || goes_on)) { /* of its process, not of the job */
        run_lost(s, job, rank, FAULT_LEAVING, code, text);
        return;
    }
    if (is_second_hand(code) && goes_on) {
        run_lost(s, job, rank, FAULT_GAVE_UP, code, text);
        return;
    }
    if (job->state == JOB_RECOVERING && !run->members[rank].has_state) {
        run_lost(s, job, rank, FAULT_UNFIT, code, text);
        return;
    }
    if (job->state == JOB_PLACING && code == MS_E_NOMEM && s->mode->places_anew) {
        run_lost(s, job, rank, FAULT_SHORT, code, text);
        return;
    }
    if (code == MS_E_UNREACHABLE && s->now.mono_ms < s->stood_still_until_ms) {
        text = emit_text(s, "the scheduler stood still for %lld ms, and ranks gave up on it: %s",
                         (long long)s->stood_still_ms, text);
    }
    if (!is_second_hand(code)) {
        /* its process was asked to end: that is no cancel of the job */
        run_lost(s, job, rank, FAULT_FAILED, code == MS_E_CANCELLED ? MS_E_FAILED : code, text);
        return;
    }
    rank_set(run, rank, RANK_ON_FAILURE);
    run_complain(s, run, rank, rank, code, text);
    if (run_n_over(run) == job->workers) { /* nobody is left who could know more */
        run_complaint_timeout(s, run);
    }
}

/* The first that stops where a round stands takes no part in its Start: those who wait for that
 * hear that none comes. */
static void tell_the_rest(struct sched *s, struct job *job)
{
    if (job->run->cancelling && job->state == JOB_RECOVERING && run_n_over(job->run) == 1 &&
        job->workers > 1) {
        stop_look(s, job);
    }
}

/* What a rank's last word is to its job. */
enum last_word {
    WORD_DONE,    /* it made its steps, and saved what it had to, or could not */
    WORD_STOPPED, /* ... or stopped before, as it was asked to */
    WORD_EARLY,   /* it is done, and another rank is lost: it goes on with the others */
    WORD_SHORT, /* it was to stand where no round comes any more, and holds less than was thought */
    WORD_FAILED,
    WORD_STRANGE /* nobody had asked for it, or started it */
};

static enum last_word word_of(const struct run *run, const Ms__RankDone *msg, bool unsaved)
{
    const bool trains = run->members[msg->rank].state == RANK_TRAINING;
    if (run->cancelling && !unsaved && (msg->stopped || msg->code != MS_OK || !trains)) {
        return WORD_STOPPED;
    }
    if (run->called_off && msg->stopped && last_is_short(run, msg->steps)) {
        return WORD_SHORT;
    }
    if (msg->code != MS_OK && !unsaved) {
        return WORD_FAILED;
    }
    if (!msg->stopped && !list_empty(&run->recovering)) {
        return WORD_EARLY;
    }
    return trains && (run->called_off || !msg->stopped) ? WORD_DONE : WORD_STRANGE;
}

static void note_end(struct run *run, const struct node *node, const Ms__RankDone *msg)
{
    struct member *member = &run->members[msg->rank];
    const bool is_end = msg->code == MS_OK || last_is_made(node, msg);
    member_log(member, msg->log_path);
    member->steps = msg->steps;
    member->step = msg->steps > member->step ? msg->steps : member->step; /* sooner than a beat */
    member->seconds = msg->seconds;
    ms_text_copy(member->weights_sha256, sizeof(member->weights_sha256),
                 is_end ? msg->weights_sha256 : "");
    ms_text_copy(member->plan_sha256, sizeof(member->plan_sha256), msg->plan_sha256);
    last_note_done(run, node, msg);
}

/* It is over: was it the last, and who saves now? */
static void rank_over(struct sched *s, struct job *job, const Ms__RankDone *msg, bool unsaved,
                      bool stopped)
{
    struct run *run = job->run;
    const uint32_t rank = msg->rank;
    struct member *member = &run->members[rank];
    rank_set(run, rank, stopped ? RANK_ON_STOP : RANK_ON_DONE);
    save_answered(s, run, rank);
    /* who was asked before a restart may try again, and at a cancel all may once more */
    member->may_save = (msg->code == MS_OK && (stopped || !msg->stopped)) ||
                       (unsaved && (rank != 0 || run->cancelling));
    member->is_complete = msg->code == MS_OK && !msg->stopped;
    if (run->cancelling && !unsaved) {
        stop_note_kept(s, job, rank, msg);
    } else {
        save_note(s, job, rank, msg);
    }
    if (rank == 0 && msg->code == MS_OK && !stopped) {
        save_first_did(s, run);
    }
    tell_the_rest(s, job); /* this rank may go to one who holds more: hold is gone then */
    const bool all_over = run_n_over(run) == job->workers && list_empty(&run->recovering);
    if (!all_over && !save_all_are_done(run)) {
        save_look(s, run);
        watch_stir(s, job);
        stop_settle(s, job);
    } else if (run->complaint.made && run->n_in[RANK_FAILED] > 0) {
        run_complaint_timeout(s, run); /* else all did as they were to */
    } else {
        complaint_forget(s, run);
        run_all_done(s, job);
    }
}

static void rank_done(struct sched *s, struct hold *hold, const Ms__RankDone *msg)
{
    struct job *job = hold->job;
    struct run *run = job->run;
    const bool leaving = hold->node->leaving;
    const bool unsaved = save_failed(s, hold, msg);
    const enum last_word word = word_of(run, msg, unsaved);
    note_end(run, hold->node, msg);
    switch (word) {
    case WORD_DONE:
    case WORD_STOPPED:
        rank_over(s, job, msg, unsaved, word == WORD_STOPPED);
        return;
    case WORD_EARLY:
        if (msg->rank == 0 && msg->code != MS_OK) { /* if no round comes, it is why */
            stop_note_unkept(s, run, 0, msg->text);
        }
        hold->has_said = true;
        run->members[msg->rank].said_well = msg->code == MS_OK;
        s->due |= DUE_PLACE; /* it may be all that was waited for */
        watch_stir(s, job);
        return;
    case WORD_SHORT:
        run_lost(s, job, msg->rank, FAULT_LEAVING, MS_E_ABORTED,
                 rank_text(s, job, msg->rank, "was let go",
                           emit_text(s, "it holds step %llu, and others the last one",
                                     (unsigned long long)msg->steps)));
        return;
    case WORD_FAILED:
        rank_failed(s, job, msg->rank, msg->code, msg->text, leaving);
        return;
    case WORD_STRANGE:
        rank_failed(s, job, msg->rank, MS_E_FAILED,
                    msg->stopped ? "it stopped and nobody had asked it to"
                                 : "it says that it is done and never was started",
                    leaving);
    }
}

/* After a reconnect, or for it was asked to save after its end. */
static void said_again(struct sched *s, struct job *job, uint32_t rank, const Ms__RankDone *msg)
{
    if (job->run->cancelling) {
        stop_said_again(s, job, rank, msg);
    } else if (save_said_again(s, job, rank, msg)) {
        run_all_done(s, job);
    }
}

/* Of the generation that it knows; the round to come asks it again. */
static void note_older_end(const struct node *node, const Ms__RankDone *msg)
{
    struct hold *hold = node != NULL ? hold_first(node) : NULL;
    if (hold != NULL && hold->job != NULL && hold->job_id == msg->job && hold->rank == msg->rank &&
        hold->heard == msg->generation && msg->generation != 0) {
        hold->has_said = true;
        last_note_done(hold->job->run, node, msg);
    }
}

void on_rank_done(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__RankDone *msg = (const Ms__RankDone *)event->msg;
    if (conn->node != NULL && msg->leaving && !conn->node->leaving) {
        conn->node->leaving = true; /* whatever it had, and before the rank's end makes it idle */
        node_idle_update(s, conn->node);
    }
    struct hold *hold =
        conn->node != NULL ? hold_find(conn->node, msg->job, msg->generation, msg->rank) : NULL;
    if (hold == NULL) {
        note_older_end(conn->node, msg);
        return;
    }
    if (hold->keeps != NULL) {
        former_said(s, hold, msg);
    } else if (hold->job == NULL) {
        hold_drop(s, hold); /* the answer to Stop */
    } else if (!rank_is_over(member_of(hold)) && member_of(hold)->state != RANK_MISSING) {
        rank_done(s, hold, msg);
    } else if (rank_is_over(member_of(hold))) {
        said_again(s, hold->job, hold->rank, msg);
    }
}

/* Of itself: the mesh ended for a reason of its own, and it holds what it has. */
static bool may_report(const struct job *job, const Ms__PeerReport *msg)
{
    return msg->peer < job->workers && (msg->peer != msg->rank || job->recovery);
}

void on_peer_report(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__PeerReport *msg = (const Ms__PeerReport *)event->msg;
    const struct hold *hold = rank_speaker(conn, msg->job, msg->generation, msg->rank);
    if (hold == NULL) {
        return;
    }
    struct job *job = hold->job;
    if (!may_report(job, msg)) {
        emit_error(s, conn->id, event->id, MS_E_INVALID,
                   "PeerReport about rank %u of job %llu, which has ranks 0 to %u and this is %u",
                   msg->peer, (unsigned long long)job->id, job->workers - 1, msg->rank);
        return;
    }
    emit_log(s, MS_LOG_WARNING, "job.peer_reported job=%llu rank=%u peer=%u reason=%s",
             (unsigned long long)job->id, msg->rank, msg->peer, emit_quote(s, msg->text));
    if (!list_empty(&job->run->recovering) || job->run->called_off ||
        save_needs_no(job->run, msg->peer)) {
        return; /* the ranks stand still already, and connect anew; or it has done its part */
    }
    if (!job->run->cancelling) { /* ranks that stop do not stop at the same moment */
        run_complain(s, job->run, msg->peer, msg->rank, MS_E_CLOSED,
                     rank_text(s, job, msg->peer,
                               msg->peer == msg->rank ? "lost its mesh" : "was lost",
                               emit_text(s, "rank %u (node %s) reports: %s", msg->rank,
                                         conn->node->info.node_id, msg->text)));
    }
}

/* ---- coming back --------------------------------------------------------------------------------
 */

void run_came_back(struct sched *s, struct hold *hold, const struct claim *claim)
{
    struct job *job = hold->job;
    struct run *run = job->run;
    struct member *member = member_of(hold);
    member->has_state |= claim_has_state(claim);
    member->unheard = false;
    if (claim->generation > hold->generation) { /* whatever it was to stop in */
        hold->generation = claim->generation;
    }
    const bool has_not_heard = claim->generation != hold->generation;
    if (claim->generation < member->ready_in) { /* it has lost its way, and may begin anew */
        member->has_plan = false;
    }
    member->may_lack_plan |= member->has_plan && claim->generation > member->ready_in;
    member->pid = hold->node->info.pid;
    member->machine = hold->node->machine;
    if (claim->step > member->step || !(member->has_plan || member->has_state)) {
        member->step = claim->step; /* of a copy it says 0 until it is started */
    }
    hold->step = claim->step;
    recover_saw_step(s, run, claim->step);
    if (hold->rank == 0 && !run->has_progress && claim->step > run->told) { /* after a restart */
        run->told = claim->step;
    }
    if (member->state == RANK_MISSING) {
        member->passed_over = false; /* it has its time again */
        rank_set(run, hold->rank,
                 job->state == JOB_RUNNING || run->called_off ? RANK_ON_RESUME : RANK_ON_RETURN);
        if (run->n_in[RANK_MISSING] == 0) {
            timer_stop(s, &run->adopt);
            if (!run->stands_still && !has_not_heard) {
                stall_is_over(run);
            }
            event_of_job(s, "job.adopted", job,
                         run->n_in[RANK_LOST] > 0 ? "all that are left of its nodes are back"
                                                  : "all its nodes are back",
                         event_number(s, "generation", job->generation));
            emit_log(s, MS_LOG_NOTICE, "job.adopted job=%llu generation=%llu",
                     (unsigned long long)job->id, (unsigned long long)job->generation);
        }
        watch_stir(s, job);
    }
    if (!list_empty(&run->recovering)) { /* its host may be drained or paused: no news to a queue */
        s->due |= DUE_PLACE;
    }
    hold->heard = has_not_heard ? claim->generation : 0;
    if (has_not_heard && run->cancelling &&
        job->state != JOB_RECOVERING) { /* what was asked for cannot be waited for any more */
        job_end(s, job, JOB_ON_CANCEL, MS_E_CANCELLED,
                text_behind(s, emit_text(s, "%s; meanwhile ", text_fit(s, run->cancel_text, 200)),
                            rank_text(s, job, hold->rank, "came back",
                                      emit_text(s, "it knows of generation %llu only",
                                                (unsigned long long)claim->generation))));
        return;
    }
    if (has_not_heard && !run->cancelling && !run->called_off) {
        recover_again(s, run);
        return;
    }
    if (job->state != JOB_RUNNING && !run->called_off) {
        run_tell_plan_again(s, hold); /* ours may have been lost with the connection */
    }
    if (job->state == JOB_RUNNING && !claim->running) {
        send_start(s, hold); /* ours was lost with the connection */
    }
    if (run->cancelling) {
        stop_came_back(s, hold);
    } else {
        save_came_back(s, hold);
        save_look(s, run);
    }
}
