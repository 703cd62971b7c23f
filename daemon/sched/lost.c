/* lost.c - what becomes of a job when something befalls one of its ranks
 *
 * The one place that decides it: whoever notices a loss says which rank, what kind and in which
 * words, and nothing more. */
#include "daemon/sched/state.h"

static const struct {
    enum rank_event event; /* RANK_EVENTS: its state says it already, or nothing is known of it */
    bool places_anew;      /* while ranks get ready: the job may try again */
    bool yields;           /* to a cancel under way: what was asked for came true */
    bool pauses_host;      /* which may be dying, or unfit */
} policies[FAULTS] = {
    [FAULT_LOST] = {RANK_ON_LOSS, true, true, true},
    [FAULT_LEFT] = {RANK_ON_LOSS, true, true, true},
    [FAULT_MISSING] = {RANK_ON_LOSS, true, true, false},
    [FAULT_FAILED] = {RANK_ON_FAILURE, false, true, false},
    [FAULT_LEAVING] = {RANK_ON_FAILURE, true, true, false},
    [FAULT_GAVE_UP] = {RANK_ON_FAILURE, false, true, false},
    [FAULT_SHORT] = {RANK_ON_FAILURE, true, true, false},
    [FAULT_UNFIT] = {RANK_ON_FAILURE, false, true, false},
    [FAULT_COMPLAINT] = {RANK_EVENTS, true, true, false},
    [FAULT_LINK] = {RANK_EVENTS, true, true, false},
    [FAULT_BESIDE] = {RANK_EVENTS, true, true, false},
    [FAULT_MESH] = {RANK_EVENTS, true, true, false},
    [FAULT_OFF_MESH] = {RANK_EVENTS, true, true, false},
    [FAULT_WORN] = {RANK_EVENTS, true, true, false},
    [FAULT_UNTOLD] = {RANK_EVENTS, false, true, false},
    [FAULT_UNREADY] = {RANK_EVENTS, true, true, false},
    [FAULT_DISAGREE] = {RANK_EVENTS, false, false, false},
};

/* A host that loses one rank after the other says nothing of the job while it can be placed on
 * hosts that lose none: that is no try. */
static void blame_host(struct sched *s, struct job *job, const struct node *node, const char *text)
{
    if (node->host->n_vain > 0 && host_others_work(s, node->host, job->workers)) {
        job->n_tries--;
    }
    host_pause(s, node->host, text);
}

/* Each process may have to begin anew once, because of what it served before: that says nothing of
 * this job, however many it meets. Those that left are away for a moment, and count. */
static void excuse_leaving(struct job *job)
{
    if (job->n_leaves < job->n_met) {
        job->n_leaves++;
        job->n_tries--;
    }
}

/* No step is lost yet while ranks get ready. */
static bool may_place_anew(struct sched *s, struct job *job, uint32_t rank, enum fault fault,
                           const char *text)
{
    if (job->state != JOB_PLACING || !policies[fault].places_anew || !s->mode->places_anew) {
        return false;
    }
    struct node *node = node_find(s, job->run->members[rank].node_id);
    if (policies[fault].pauses_host && node != NULL && node->host != NULL) {
        blame_host(s, job, node, text);
    }
    if (fault == FAULT_LEAVING) {
        excuse_leaving(job);
    }
    if (fault == FAULT_SHORT && node != NULL) {
        node_rest(s, node);
    }
    return job->n_tries < MS_PLACE_TRIES_MAX;
}

void run_lost(struct sched *s, struct job *job, uint32_t rank, enum fault fault, int code,
              const char *text)
{
    struct run *run = job->run;
    enum end_loss how = END_LOSS_NONE;
    home_loses(s, run, rank);
    if (policies[fault].event != RANK_EVENTS) {
        rank_set(run, rank, policies[fault].event);
    }
    if (run->cancelling && policies[fault].yields) {
        if (recover_stops(s, job, fault)) {
            recover_lose_stopping(s, job, rank, fault, text);
            stop_look(s, job);
            return;
        }
        job_end(s, job, JOB_ON_CANCEL, MS_E_CANCELLED,
                text_behind(s, emit_text(s, "%s; meanwhile ", text_fit(s, run->cancel_text, 120)),
                            text));
    } else if ((how = recover_end_loss(s, job, rank, fault)) != END_LOSS_NONE) {
        recover_lose_at_end(s, job, rank, fault, how, text);
    } else if (recover_may(s, job, rank, fault)) {
        recover_lose(s, job, rank, fault, text);
    } else if (may_place_anew(s, job, rank, fault, text)) {
        job_requeue(s, job, text);
    } else {
        const uint32_t n_placed = job->n_tries + job->n_leaves;
        const char *spent = recover_spent(s, job, rank, fault, text);
        text = spent != NULL ? spent : text;
        run->n_ranks_lost += spent != NULL; /* the one that was too many is one more */
        run->ended_by = rank + 1;
        job_end(s, job, JOB_ON_FAILURE, code != MS_OK ? code : MS_E_FAILED,
                spent == NULL && n_placed > 1
                    ? emit_text(s, "%s; it was placed %u times and never started",
                                text_fit(s, text, 330), n_placed)
                    : text);
    }
}

void run_complain(struct sched *s, struct run *run, uint32_t rank, uint32_t by, int code,
                  const char *text)
{
    struct complaint *complaint = &run->complaint;
    const bool is_first_hand = complaint->made && by == rank && complaint->rank == rank &&
                               complaint->by != rank && recover_is_on(s, run->job);
    if (complaint->made && !is_first_hand) {
        return;
    }
    complaint->made = true;
    complaint->rank = rank;
    complaint->by = by;
    complaint->code = code;
    ms_text_copy(complaint->text, sizeof(complaint->text), text);
    if (!is_first_hand) { /* what others say of it was about the same */
        timer_arm(s, &complaint->timer, TIMER_COMPLAINT, after_ms(s, MS_BLAME_MS));
    }
    watch_stir(s, run->job);
}

void complaint_forget(struct sched *s, struct run *run)
{
    timer_stop(s, &run->complaint.timer);
    run->complaint.made = false;
}

void run_complaint_timeout(struct sched *s, struct run *run)
{
    const int code = run->complaint.code;
    const char *told = emit_text(s, "%s", run->complaint.text);
    const struct verdict verdict = links_judge(s, run, &run->complaint);
    struct job *job = run->job;
    run_lost(s, job, verdict.rank, verdict.fault, code, verdict.text);
    while (verdict.keeps != 0 && job->state == JOB_RECOVERING) {
        const uint32_t rank = links_gives_way_too(run, &verdict);
        if (rank == job->workers) {
            break;
        }
        run_lost(s, job, rank, FAULT_BESIDE, code,
                 rank_text(s, job, rank, "was given up",
                           emit_text(s,
                                     "its host does not reach another one, where all ranks have "
                                     "nodes: %s",
                                     text_fit(s, causes_bare(s, told), 150))));
    }
    run_look_ready(s, job); /* where it is to stop the Start of its round waited for this alone */
}
